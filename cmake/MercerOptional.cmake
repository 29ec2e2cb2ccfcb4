# SPDX-License-Identifier: BSD-3-Clause
# Optional parts: CUDA, MPI and NCCL. Each option is AUTO, ON or OFF; the outcome is left as one line of
# text in mercer_<part>_text for the summary. Nothing here enables a language.

# mercer_optional(part what found version): settles one part.
function(mercer_optional part what found version)
  string(TOUPPER "${MERCER_${part}}" wish)
  if(NOT wish MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|1|0|YES|NO)$")
    message(FATAL_ERROR "MERCER_${part} is '${MERCER_${part}}'; it must be AUTO, ON or OFF")
  endif()
  if(wish MATCHES "^(OFF|FALSE|0|NO)$")
    set(text "off")
  elseif(found)
    set(text "found ${version}; no ${what} code in this version")
    string(REPLACE "  " " " text "${text}")
    string(REPLACE " ;" ";" text "${text}")
  elseif(wish STREQUAL "AUTO")
    set(text "not found")
  else()
    message(FATAL_ERROR "MERCER_${part} is ON but ${part} was not found")
  endif()
  set(mercer_${part}_text "${text}" PARENT_SCOPE)
endfunction()

if(MERCER_CUDA)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND)
    set(cuda_version "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
  endif()
endif()
mercer_optional(CUDA GPU "${CUDAToolkit_FOUND}" "${cuda_version}")

if(MERCER_MPI)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)  # QUIET does not reach what it asks pkg-config
  find_package(MPI QUIET COMPONENTS C)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
endif()
mercer_optional(MPI MPI "${MPI_C_FOUND}" "${MPI_C_VERSION}")

if(MERCER_NCCL)
  find_path(MERCER_NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_HOME PATH_SUFFIXES include)
  find_library(MERCER_NCCL_LIBRARY nccl HINTS ENV NCCL_HOME PATH_SUFFIXES lib lib64)
  mark_as_advanced(MERCER_NCCL_INCLUDE_DIR MERCER_NCCL_LIBRARY)
  if(MERCER_NCCL_INCLUDE_DIR AND MERCER_NCCL_LIBRARY)
    set(nccl_found TRUE)
    file(STRINGS "${MERCER_NCCL_INCLUDE_DIR}/nccl.h" nccl_lines
      REGEX "^#define NCCL_(MAJOR|MINOR)[ \t]+[0-9]+")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" nccl_version "${nccl_lines}")
  endif()
endif()
mercer_optional(NCCL NCCL "${nccl_found}" "${nccl_version}")
