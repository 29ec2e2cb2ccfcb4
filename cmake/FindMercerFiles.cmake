# SPDX-License-Identifier: BSD-3-Clause
# Find the libraries for reading and writing files: jansson (JSON), xxHash (checksums) and zlib (gzip-compressed input).
# libzstd and liblzma are optional, for input compressed with zstd and xz.
#
# Result: MercerFiles_FOUND, MercerFiles_LIBRARIES, MercerFiles_DEFINITIONS and the target MercerFiles::MercerFiles.
#
# This file is installed with Mercer, because programs that link the static library need this file, too.

include(FindPackageHandleStandardArgs)

set(MercerFiles_LIBRARIES "")
set(files_variables "")
foreach(part "jansson:jansson.h:jansson" "xxhash:xxhash.h:xxhash" "zlib:zlib.h:z")
  string(REPLACE ":" ";" part "${part}")
  list(GET part 0 name)
  list(GET part 1 header)
  list(GET part 2 library)
  find_path(MercerFiles_${name}_INCLUDE_DIR ${header})
  find_library(MercerFiles_${name}_LIBRARY NAMES ${library})
  mark_as_advanced(MercerFiles_${name}_INCLUDE_DIR MercerFiles_${name}_LIBRARY)
  list(APPEND files_variables MercerFiles_${name}_LIBRARY MercerFiles_${name}_INCLUDE_DIR)
  list(APPEND MercerFiles_LIBRARIES "${MercerFiles_${name}_LIBRARY}")
  list(APPEND files_include_dirs "${MercerFiles_${name}_INCLUDE_DIR}")
endforeach()

# Optional libraries: name, header, library, and the definition that the sources test.
set(MercerFiles_DEFINITIONS "")
foreach(part "zstd:zstd.h:zstd:MERCER_ZSTD" "lzma:lzma.h:lzma:MERCER_XZ")
  string(REPLACE ":" ";" part "${part}")
  list(GET part 0 name)
  list(GET part 1 header)
  list(GET part 2 library)
  list(GET part 3 definition)
  find_path(MercerFiles_${name}_INCLUDE_DIR ${header})
  find_library(MercerFiles_${name}_LIBRARY NAMES ${library})
  mark_as_advanced(MercerFiles_${name}_INCLUDE_DIR MercerFiles_${name}_LIBRARY)
  if(MercerFiles_${name}_INCLUDE_DIR AND MercerFiles_${name}_LIBRARY)
    list(APPEND MercerFiles_LIBRARIES "${MercerFiles_${name}_LIBRARY}")
    list(APPEND MercerFiles_DEFINITIONS ${definition})
    list(APPEND files_include_dirs "${MercerFiles_${name}_INCLUDE_DIR}")
  endif()
endforeach()

find_package_handle_standard_args(MercerFiles REQUIRED_VARS ${files_variables}
  REASON_FAILURE_MESSAGE "Mercer needs jansson, xxHash and zlib with their headers. On Debian and Ubuntu: \
apt-get install libjansson-dev libxxhash-dev zlib1g-dev (or run tools/setup)")

if(MercerFiles_FOUND AND NOT TARGET MercerFiles::MercerFiles)
  list(REMOVE_DUPLICATES files_include_dirs)
  add_library(MercerFiles::MercerFiles INTERFACE IMPORTED)
  set_target_properties(MercerFiles::MercerFiles PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${files_include_dirs}"
    INTERFACE_LINK_LIBRARIES "${MercerFiles_LIBRARIES}")
endif()
