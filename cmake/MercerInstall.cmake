# SPDX-License-Identifier: BSD-3-Clause
# Install the libraries, headers, CMake package and pkg-config file. DESTDIR is honored, and the installed tree can be moved:
# both package files find the prefix relative to their own location.

include(CMakePackageConfigHelpers)
set(mercer_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Mercer")

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/mercer/*.h")
install(FILES ${public_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mercer")

# Two export sets, because only users of the static library must find BLAS and Threads.
install(TARGETS mercer EXPORT MercerTargets)
install(TARGETS mercer_static EXPORT MercerStaticTargets)
foreach(set MercerTargets MercerStaticTargets)
  install(EXPORT ${set} NAMESPACE Mercer:: DESTINATION "${mercer_cmake_dir}")
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/MercerConfig.cmake.in" "${PROJECT_BINARY_DIR}/MercerConfig.cmake"
  INSTALL_DESTINATION "${mercer_cmake_dir}" NO_SET_AND_CHECK_MACRO)
# Before version 1.0, a minor version may break compatibility.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/MercerConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/MercerConfig.cmake"
  "${PROJECT_BINARY_DIR}/MercerConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindMercerBLAS.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindMercerFiles.cmake"
  DESTINATION "${mercer_cmake_dir}")

# --- pkg-config ---------------------------------------------------------------------------------

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()

# Library names for -l instead of absolute paths, so that the file is valid on other machines, too. Requires.private is not
# used, because with it users of the shared library would need the BLAS development files.
set(pc_private "")
foreach(library IN LISTS MercerBLAS_LIBRARIES MercerFiles_LIBRARIES)
  get_filename_component(name "${library}" NAME)
  string(REGEX REPLACE "^lib(.+)\\.(so|a|dylib).*$" "-l\\1" name "${name}")
  string(APPEND pc_private "${name} ")
endforeach()
if(mercer_CUDA_used)
  string(APPEND pc_private "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl ")
endif()
string(APPEND pc_private "-lm -pthread")

configure_file("${PROJECT_SOURCE_DIR}/cmake/mercer.pc.in" "${PROJECT_BINARY_DIR}/mercer.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mercer.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
