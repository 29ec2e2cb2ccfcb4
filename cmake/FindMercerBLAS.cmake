# SPDX-License-Identifier: BSD-3-Clause
# Find the C interfaces of BLAS and LAPACK: cblas.h, lapacke.h and their libraries.
#
# MERCER_BLAS chooses the library: "openblas" (default) or "generic" (libcblas, else libblas).
# Result: MercerBLAS_FOUND, MercerBLAS_LIBRARIES and the target MercerBLAS::MercerBLAS.
#
# This file is installed with Mercer, because programs that link the static library need this file, too.

include(CheckSourceCompiles)
include(CMakePushCheckState)

if(NOT MERCER_BLAS)
  set(MERCER_BLAS openblas)
endif()
if(MERCER_BLAS STREQUAL "openblas")
  set(blas_names openblas)
  set(blas_suffixes openblas openblas-pthread)
elseif(MERCER_BLAS STREQUAL "generic")
  set(blas_names cblas blas)
  set(blas_suffixes "")
else()
  message(FATAL_ERROR "MERCER_BLAS is '${MERCER_BLAS}'; it must be openblas or generic")
endif()

find_path(MercerBLAS_${MERCER_BLAS}_INCLUDE_DIR cblas.h PATH_SUFFIXES ${blas_suffixes})
find_path(MercerBLAS_LAPACKE_INCLUDE_DIR lapacke.h PATH_SUFFIXES lapacke openblas)
find_library(MercerBLAS_${MERCER_BLAS}_LIBRARY NAMES ${blas_names} NAMES_PER_DIR)
# Some OpenBLAS builds contain LAPACKE; then there is no separate LAPACKE library.
find_library(MercerBLAS_LAPACKE_LIBRARY NAMES lapacke)
mark_as_advanced(MercerBLAS_${MERCER_BLAS}_INCLUDE_DIR MercerBLAS_LAPACKE_INCLUDE_DIR
  MercerBLAS_${MERCER_BLAS}_LIBRARY MercerBLAS_LAPACKE_LIBRARY)

set(MercerBLAS_LIBRARIES "")
foreach(library ${MercerBLAS_LAPACKE_LIBRARY} ${MercerBLAS_${MERCER_BLAS}_LIBRARY})
  if(library)
    list(APPEND MercerBLAS_LIBRARIES "${library}")
  endif()
endforeach()
# A static OpenBLAS does not bring the Fortran runtime that LAPACK calls, and does not link the functions that blas.c
# references weakly.
if("${MercerBLAS_${MERCER_BLAS}_LIBRARY}" MATCHES "\\.a$")
  foreach(name gfortran quadmath)
    execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-file-name=lib${name}.a
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(IS_ABSOLUTE "${file}")
      list(APPEND MercerBLAS_LIBRARIES "${file}")
    endif()
  endforeach()
  set(MercerBLAS_LINK_OPTIONS "LINKER:-u,openblas_set_num_threads,-u,openblas_get_num_threads")
endif()
set(MercerBLAS_INCLUDE_DIRS
  "${MercerBLAS_${MERCER_BLAS}_INCLUDE_DIR}" "${MercerBLAS_LAPACKE_INCLUDE_DIR}")
list(REMOVE_DUPLICATES MercerBLAS_INCLUDE_DIRS)

if(MercerBLAS_${MERCER_BLAS}_INCLUDE_DIR AND MercerBLAS_LAPACKE_INCLUDE_DIR
    AND MercerBLAS_${MERCER_BLAS}_LIBRARY)
  # Check that a program links: some versions of libblas have no C interface.
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES ${MercerBLAS_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${MercerBLAS_LIBRARIES} m)
  if(TARGET Threads::Threads)
    list(APPEND CMAKE_REQUIRED_LIBRARIES Threads::Threads)
  endif()
  set(CMAKE_REQUIRED_QUIET TRUE)
  check_source_compiles(C "
    #include <cblas.h>
    #include <lapacke.h>
    int main(void)
    {
        double a = 4.0;
        return LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', 1, &a, 1) + (int)cblas_ddot(1, &a, 1, &a, 1);
    }" MercerBLAS_${MERCER_BLAS}_LINKS)
  cmake_pop_check_state()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MercerBLAS
  REQUIRED_VARS MercerBLAS_${MERCER_BLAS}_LIBRARY MercerBLAS_${MERCER_BLAS}_INCLUDE_DIR
    MercerBLAS_LAPACKE_INCLUDE_DIR MercerBLAS_${MERCER_BLAS}_LINKS
  REASON_FAILURE_MESSAGE "Mercer needs CBLAS and LAPACKE. On Debian and Ubuntu: \
apt-get install libopenblas-dev liblapacke-dev (or run tools/setup). Elsewhere: OpenBLAS and LAPACKE \
with their headers cblas.h and lapacke.h, and their prefix in CMAKE_PREFIX_PATH.")

if(MercerBLAS_FOUND AND NOT TARGET MercerBLAS::MercerBLAS)
  add_library(MercerBLAS::MercerBLAS INTERFACE IMPORTED)
  set_target_properties(MercerBLAS::MercerBLAS PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${MercerBLAS_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${MercerBLAS_LIBRARIES}"
    INTERFACE_LINK_OPTIONS "${MercerBLAS_LINK_OPTIONS}")
endif()
