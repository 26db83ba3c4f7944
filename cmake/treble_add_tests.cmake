# cmake -D PROGRAM=... -D WORKING_DIRECTORY=... -D LABEL=... -D PREFIX=... -D PROCESSORS=... -D OUT=...
#       -P treble_add_tests.cmake
#   Writes to OUT an add_test() for each case of a doctest program. Like doctest_discover_tests(), but a case's name may
#   hold any character.

execute_process(COMMAND ${PROGRAM} --list-test-cases
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)

set(script "")
while(listing MATCHES "^([^\n]*)\n(.*)$")
  set(case "${CMAKE_MATCH_1}")
  set(listing "${CMAKE_MATCH_2}")
  if(case MATCHES "^(\\[doctest\\]|=====)")
    continue()
  endif()
  # In a filter a comma separates names, and a backslash escapes.
  string(REGEX REPLACE "([\\,])" "\\\\\\1" filter "${case}")
  # A name that doctest does not find would pass without running; that it ran nothing fails the test.
  string(APPEND script
    "add_test([==[${PREFIX}${case}]==] [==[${PROGRAM}]==] [==[--test-case=${filter}]==])\n"
    "set_tests_properties([==[${PREFIX}${case}]==] PROPERTIES\n"
    "  WORKING_DIRECTORY [==[${WORKING_DIRECTORY}]==] LABELS \"${LABEL}\" PROCESSORS ${PROCESSORS}\n"
    "  FAIL_REGULAR_EXPRESSION \"test cases: +0 \")\n")
endwhile()
if(script STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} has no test case")
endif()
file(WRITE ${OUT} "${script}")
