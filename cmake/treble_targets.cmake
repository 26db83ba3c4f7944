# One folder is one target. treble_folder() declares the folder's objects and, beside them, its unit tests.

# Settings that every target of ours shares; they never reach those who link to us.
add_library(treble_settings INTERFACE)
target_compile_features(treble_settings INTERFACE cxx_std_20)
set(compiler_options
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # A designated initializer names what it sets; operands that are left out are empty.
  -Wno-missing-field-initializers
  # GCC 12 at -O3 takes "text" + std::string for overlapping copies: gcc.gnu.org/bugzilla, 105651.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # The baseline; AVX2 and AVX-512 code is chosen at run time (src/cpu).
  -march=x86-64-v2
  # a*b+c stays two roundings where the source says so; kernels ask for fused steps by name.
  -ffp-contract=off)
target_compile_options(treble_settings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${compiler_options};-Wpedantic>")
# nvcc hands them to the compiler of the host's half, whose code, as nvcc makes it, is not pedantic.
target_compile_options(treble_settings INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-Xcompiler=$<JOIN:${compiler_options},,>;--expt-relaxed-constexpr>")
if(TREBLE_WARNINGS_AS_ERRORS)
  target_compile_options(treble_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Werror>")
endif()
if(TREBLE_SANITIZE)
  target_compile_options(treble_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TREBLE_SANITIZE}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  target_link_options(treble_settings INTERFACE -fsanitize=${TREBLE_SANITIZE})
endif()
if(TREBLE_SANITIZE MATCHES "address" AND TREBLE_SANITIZE MATCHES "undefined")
  # Where these warn, the access that follows stops the address sanitizer; they are a sixth of the compile time.
  target_compile_options(treble_settings INTERFACE -fno-sanitize=null,object-size,pointer-overflow,vptr)
endif()

# For folders of vector code, linked after treble_settings.
add_library(treble_kernel_settings INTERFACE)
if(TREBLE_SANITIZE MATCHES "address")
  # Kernels hold their sums in local arrays of vectors. These become registers only when loops are unrolled first (-O2)
  # and nothing marks the ends of scopes or takes an element's address; otherwise every access to them is checked, and a
  # request takes three times as long. Reads and writes of tensors are checked all the same.
  target_compile_options(treble_kernel_settings INTERFACE
    -O2 -fno-sanitize-address-use-after-scope -fno-sanitize=alignment,bounds)
endif()

# Coverage for libFuzzer, which Clang has; tests/fuzz links it.
if(TREBLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TREBLE_FUZZ: libFuzzer comes with Clang; configure with --preset fuzz")
  endif()
  target_compile_options(treble_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# treble_folder(NAME SOURCES a.cpp ... [TESTS a_test.cpp ...] [DEPENDS folder ...] [LIBRARIES pkg::target ...]
#               [TEST_DEPENDS folder ...])
#   The objects treble_NAME of the current folder and, with TESTS, the program treble_NAME_tests. DEPENDS names the
#   other folders that the sources include; scripts/check_arrows.py holds the includes to it. TEST_DEPENDS names those
#   that only the tests include.
function(treble_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;TESTS;DEPENDS;LIBRARIES;TEST_DEPENDS")
  treble_folders_below(below ${ARG_DEPENDS})

  add_library(treble_${name} OBJECT ${ARG_SOURCES})
  set_target_properties(treble_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    TREBLE_FOLDERS_BELOW "${below}")
  target_include_directories(treble_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  list(TRANSFORM ARG_DEPENDS PREPEND treble_)
  target_link_libraries(treble_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LIBRARIES} PRIVATE treble_settings)
  set_property(GLOBAL APPEND PROPERTY TREBLE_FOLDERS ${name})
  set_property(GLOBAL APPEND PROPERTY TREBLE_LIBRARIES ${ARG_LIBRARIES})

  if(TREBLE_BUILD_TESTS AND ARG_TESTS)
    treble_test_program(treble_${name}_tests FOLDERS ${name} ${ARG_TEST_DEPENDS} SOURCES ${ARG_TESTS})
  endif()
endfunction()

# treble_folders_below(OUT folder ...): the folders and all that they depend on, each once.
function(treble_folders_below out)
  set(folders ${ARGN})
  foreach(folder IN LISTS ARGN)
    get_target_property(below treble_${folder} TREBLE_FOLDERS_BELOW)
    list(APPEND folders ${below})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(${out} ${folders} PARENT_SCOPE)
endfunction()

# treble_library(): all folders' objects as the library `treble`, static unless BUILD_SHARED_LIBS. Called once, after
# the last folder.
function(treble_library)
  get_property(folders GLOBAL PROPERTY TREBLE_FOLDERS)
  get_property(libraries GLOBAL PROPERTY TREBLE_LIBRARIES)
  list(REMOVE_DUPLICATES libraries)
  set_property(GLOBAL PROPERTY TREBLE_LIBRARIES ${libraries})
  list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:treble_\\1>" OUTPUT_VARIABLE objects)

  add_library(treble ${objects})
  add_library(Treble::treble ALIAS treble)
  set_target_properties(treble PROPERTIES
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    # While the major version is 0, a minor one may break callers.
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(treble INTERFACE cxx_std_20)
  target_include_directories(treble INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(treble PRIVATE ${libraries})
  if(TREBLE_SANITIZE)
    target_link_options(treble PRIVATE -fsanitize=${TREBLE_SANITIZE})
  endif()
endfunction()

# treble_test_program(NAME FOLDERS folder ... SOURCES a_test.cpp ... [LABEL label] [PREFIX text] [DATA folder]
#                     [ALL_CORES])
#   A doctest program made of the objects of the folders and of those below them; CTest runs each case on its own.
#   PREFIX: before the cases' names, where two programs have the same cases. DATA: where they find tests/data, if not
#   there. ALL_CORES: its cases use every core, so CTest runs nothing beside them.
function(treble_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "ALL_CORES" "LABEL;PREFIX;DATA" "FOLDERS;SOURCES")
  treble_folders_below(folders ${ARG_FOLDERS})
  list(TRANSFORM folders PREPEND treble_)
  if(NOT TARGET treble_test_main)  # compiled once: it is most of what a small test program takes
    add_library(treble_test_main OBJECT ${PROJECT_SOURCE_DIR}/tests/main.cpp)
    target_link_libraries(treble_test_main PRIVATE doctest::doctest treble_settings)
  endif()
  add_executable(${name} $<TARGET_OBJECTS:treble_test_main> ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${folders} doctest::doctest treble_settings)
  if(NOT ARG_DATA)
    set(ARG_DATA ${PROJECT_SOURCE_DIR}/tests/data)
  endif()
  target_compile_definitions(${name} PRIVATE TREBLE_TEST_DATA="${ARG_DATA}")

  set(processors 1)
  if(ARG_ALL_CORES)
    cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  endif()
  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${name}_cases.cmake)
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${tests} VERBATIM
    COMMAND ${CMAKE_COMMAND}
      -D PROGRAM=$<TARGET_FILE:${name}>
      -D WORKING_DIRECTORY=${CMAKE_CURRENT_BINARY_DIR}
      -D LABEL=${ARG_LABEL}
      -D PREFIX=${ARG_PREFIX}
      -D PROCESSORS=${processors}
      -D OUT=${tests}
      -P ${PROJECT_SOURCE_DIR}/cmake/treble_add_tests.cmake)
  # Not built yet: a test of that name fails, so that no case is missed in silence.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(CONFIGURE OUTPUT ${include} @ONLY CONTENT
    "if(EXISTS [==[@tests@]==])\n  include([==[@tests@]==])\nelse()\n  add_test(@name@ @name@_is_not_built)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
