# Installs the build in BUILD_DIR into a folder of its own, moves that folder, and builds and runs examples/decide
# against it: once with find_package, once with pkg-config.

cmake_minimum_required(VERSION 3.25)

set(work ${BUILD_DIR}/installed_package_test)
set(prefix ${work}/moved)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern} in:\n${output}")
  endif()
endfunction()

function(expect_answer)
  expect("treble ${VERSION}, [0-9]+ tokens\nbilling: 0\\.[0-9]+\ntechnical: 0\\.[0-9]+\n")
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/installed)
file(RENAME ${work}/installed ${prefix})

run(${prefix}/${BINDIR}/treble --version)
expect("${VERSION}")

# find_package
run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/decide -B ${work}/decide
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/decide)
run(${work}/decide/decide ${RELEASE_FOLDER})
expect_answer()

# pkg-config
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
set(static "")
if(NOT EXISTS ${prefix}/${LIBDIR}/libtreble.so)
  set(static --static)
endif()
run(${PKG_CONFIG} ${static} --cflags --libs treble)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX_COMPILER} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/decide/main.cpp -o ${work}/decide_pc ${flags})
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
run(${work}/decide_pc ${RELEASE_FOLDER})
expect_answer()

file(REMOVE_RECURSE ${work})
