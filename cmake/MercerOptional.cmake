# SPDX-License-Identifier: BSD-3-Clause
# Optional parts: CUDA, MPI and NCCL. Each option is AUTO, ON or OFF; mercer_<part>_text is the result as a line of text for
# the summary.

# mercer_optional(part what found version): decide whether to build a part, and set mercer_<part>_used to TRUE or FALSE.
# `what` names the code of the part that this version of Mercer lacks; it is empty for a part that can be built.
function(mercer_optional part what found version)
  string(TOUPPER "${MERCER_${part}}" wish)
  if(NOT wish MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|1|0|YES|NO)$")
    message(FATAL_ERROR "MERCER_${part} is '${MERCER_${part}}'; it must be AUTO, ON or OFF")
  endif()
  if(wish MATCHES "^(OFF|FALSE|0|NO)$")
    set(text "off")
  elseif(found)
    if(what)
      set(text "found ${version}; no ${what} code in this version")
      string(REPLACE "  " " " text "${text}")
      string(REPLACE " ;" ";" text "${text}")
    else()
      set(text "${version}")
      set(mercer_${part}_used TRUE PARENT_SCOPE)
    endif()
  elseif(wish STREQUAL "AUTO")
    set(text "not found")
  else()
    message(FATAL_ERROR "MERCER_${part} is ON but ${part} was not found")
  endif()
  set(mercer_${part}_text "${text}" PARENT_SCOPE)
endfunction()

# The backend needs nvcc, the static CUDA runtime, and the headers of cuBLAS and cuSOLVER, which are loaded at run time.
# Sanitized builds test host code, so they are built without CUDA.
set(cuda_found FALSE)
if(MERCER_CUDA AND NOT MERCER_SANITIZE)
  find_package(CUDAToolkit 12.3 QUIET)
  if(CUDAToolkit_FOUND)
    set(cuda_version "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
    find_path(MERCER_CUSOLVER_INCLUDE_DIR cusolverDn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(MERCER_CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(MERCER_CUSOLVER_INCLUDE_DIR MERCER_CUBLAS_INCLUDE_DIR)
    find_program(MERCER_NVCC nvcc HINTS "${CUDAToolkit_BIN_DIR}")
    mark_as_advanced(MERCER_NVCC)
    if(MERCER_NVCC AND TARGET CUDA::cudart_static AND MERCER_CUSOLVER_INCLUDE_DIR AND MERCER_CUBLAS_INCLUDE_DIR)
      set(cuda_found TRUE)
    endif()
  endif()
endif()
if(MERCER_SANITIZE AND NOT "${MERCER_CUDA}" STREQUAL "ON")
  set(MERCER_CUDA OFF)
endif()
mercer_optional(CUDA "" "${cuda_found}" "${cuda_version}")

if(MERCER_MPI)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)  # QUIET does not silence pkg-config, which find_package calls
  find_package(MPI QUIET COMPONENTS C)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
endif()
mercer_optional(MPI "" "${MPI_C_FOUND}" "${MPI_C_VERSION}")

# NCCL connects GPUs, so it is used only together with CUDA.
if(MERCER_NCCL AND mercer_CUDA_used)
  find_path(MERCER_NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(MERCER_NCCL_LIBRARY nccl HINTS ENV NCCL_HOME ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  mark_as_advanced(MERCER_NCCL_INCLUDE_DIR MERCER_NCCL_LIBRARY)
  if(MERCER_NCCL_INCLUDE_DIR AND MERCER_NCCL_LIBRARY)
    set(nccl_found TRUE)
    file(STRINGS "${MERCER_NCCL_INCLUDE_DIR}/nccl.h" nccl_lines
      REGEX "^#define NCCL_(MAJOR|MINOR)[ \t]+[0-9]+")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" nccl_version "${nccl_lines}")
  endif()
endif()
mercer_optional(NCCL "" "${nccl_found}" "${nccl_version}")
