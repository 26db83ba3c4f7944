# What `cmake --install` puts where: the library, its headers, the program, and how CMake and pkg-config find them.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Treble)

install(TARGETS treble EXPORT TrebleTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/treble TYPE INCLUDE)
install(TARGETS treble_cli)
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(treble_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
endif()

# CMake: find_package(Treble), then link Treble::treble.
install(EXPORT TrebleTargets NAMESPACE Treble:: DESTINATION ${package_dir})
configure_package_config_file(cmake/TrebleConfig.cmake.in ${PROJECT_BINARY_DIR}/TrebleConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# While the major version is 0, a minor one may break callers.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TrebleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/TrebleConfig.cmake
  ${PROJECT_BINARY_DIR}/TrebleConfigVersion.cmake
  DESTINATION ${package_dir})

# pkg-config: `pkg-config --static --libs treble` for the static library, without --static for the shared one.
set(pc_requires "")
set(pc_libs "")
get_property(libraries GLOBAL PROPERTY TREBLE_LIBRARIES)
foreach(library IN LISTS libraries)
  if(library STREQUAL "fmt::fmt")
    list(APPEND pc_requires fmt)
  elseif(library STREQUAL "simdjson::simdjson")
    list(APPEND pc_requires simdjson)
  elseif(library STREQUAL "PkgConfig::utf8proc")
    list(APPEND pc_requires libutf8proc)
  elseif(library STREQUAL "PNG::PNG")
    list(APPEND pc_requires libpng)
  elseif(library STREQUAL "JPEG::JPEG")
    list(APPEND pc_requires libjpeg)
  elseif(library STREQUAL "GIF::GIF")
    list(APPEND pc_libs -lgif)
  elseif(library STREQUAL "PkgConfig::webp")
    list(APPEND pc_requires libwebp libwebpdemux)
  elseif(library STREQUAL "OpenSSL::Crypto")
    list(APPEND pc_requires libcrypto)
  elseif(library STREQUAL "hwy::hwy")
    list(APPEND pc_requires libhwy)
  elseif(library STREQUAL "hwy::hwy_contrib")
    list(APPEND pc_requires libhwy-contrib)
  elseif(library STREQUAL "DNNL::dnnl")
    list(APPEND pc_libs -ldnnl)
  elseif(library STREQUAL "CUDA::cudart_static")
    list(APPEND pc_libs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt)
  elseif(library STREQUAL "CUDA::cublasLt")
    list(APPEND pc_libs -lcublasLt)
  elseif(library STREQUAL "OpenMP::OpenMP_CXX")
    list(APPEND pc_libs ${OpenMP_CXX_FLAGS})
  else()
    message(FATAL_ERROR "treble.pc: a folder links ${library}; give its pkg-config name in treble_install.cmake")
  endif()
endforeach()
list(JOIN pc_requires ", " pc_requires)
list(JOIN pc_libs " " pc_libs)
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/treble.pc.in ${PROJECT_BINARY_DIR}/treble.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/treble.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
