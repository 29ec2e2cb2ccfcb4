# SPDX-License-Identifier: BSD-3-Clause
# The CUDA backend: mercer_add_cuda(target) adds src/backends/cuda to the objects of the library.
#
# Device code is compiled by one nvcc command per file. So CMake needs no C++ compiler on machines without CUDA, and each file
# can have its own architectures. Files named *_sm90.cu use instructions that only Hopper GPUs have (sm_90a). All other files
# are compiled for MERCER_CUDA_ARCHITECTURES, and to PTX for future GPUs. The CUDA runtime is linked statically; cuBLAS and
# cuSOLVER are loaded when a backend is created.

set(MERCER_CUDA_ARCHITECTURES "80;89;90;100" CACHE STRING "Compute capabilities to compile for, without the dot")
option(MERCER_CUDA_QUICK "Compile device code four times as fast, into slow kernels; for machines without a GPU" OFF)

# Only nvcc 13 and later support -Ofc; with an older nvcc, MERCER_CUDA_QUICK has no effect.
set(mercer_nvcc_flags -std=c++17 -O3)
if(MERCER_CUDA_QUICK AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND mercer_nvcc_flags -Ofc=max)
endif()

function(mercer_add_cuda target)
  file(GLOB_RECURSE host_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/cuda/*.c")
  file(GLOB_RECURSE device_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cu")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/cuda/*.h"
    "${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cuh" "${PROJECT_SOURCE_DIR}/src/kernels/*.h"
    "${PROJECT_SOURCE_DIR}/src/core/numbers/*.h" "${PROJECT_SOURCE_DIR}/include/mercer/*.h")
  set(common "")
  foreach(architecture IN LISTS MERCER_CUDA_ARCHITECTURES)
    list(APPEND common "-gencode=arch=compute_${architecture},code=sm_${architecture}")
    set(last ${architecture})
  endforeach()
  list(APPEND common "-gencode=arch=compute_${last},code=compute_${last}")
  # Line numbers are for profilers. They contain folder names and survive stripping, so redistributed builds omit them: their
  # bytes must not depend on the build folder.
  set(line_info -lineinfo)
  if(MERCER_BUNDLED)
    set(line_info "")
  endif()
  set(objects "")
  foreach(source IN LISTS device_sources)
    get_filename_component(name "${source}" NAME)
    set(architectures ${common})
    if(name MATCHES "_sm90\\.cu$")
      set(architectures "-gencode=arch=compute_90a,code=sm_90a")
    endif()
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
    set(object "${PROJECT_BINARY_DIR}/cuda/${name}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/cuda"
      COMMAND "${MERCER_NVCC}" ${mercer_nvcc_flags} ${line_info} ${architectures}
        -Xcompiler=-fPIC,-fvisibility=hidden,-fno-threadsafe-statics,-fno-exceptions,-fno-rtti -I include -I src
        -c "${path}" -o "${object}"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      DEPENDS "${source}" ${headers}
      COMMENT "Compiling ${name} with nvcc"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  target_sources(${target} PRIVATE ${host_sources})
  set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/backends/registry.c" APPEND PROPERTY
    COMPILE_DEFINITIONS MERCER_HAVE_CUDA=1)
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(mercer_cuda_objects DEPENDS ${objects})
  set(mercer_cuda_object_files ${objects} PARENT_SCOPE)
endfunction()

# mercer_cuda_program(name source): build a CUDA C++ program that uses internals of the library.
function(mercer_cuda_program name source)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  add_custom_command(OUTPUT "${program}"
    COMMAND "${MERCER_NVCC}" ${mercer_nvcc_flags} -gencode=arch=compute_90,code=sm_90
      -I "${PROJECT_SOURCE_DIR}/include" -I "${PROJECT_SOURCE_DIR}/src"
      "${CMAKE_CURRENT_SOURCE_DIR}/${source}" "${PROJECT_BINARY_DIR}/cuda/fused_pack.cu.o"
      "${PROJECT_BINARY_DIR}/cuda/fused_half_sm90.cu.o" "${PROJECT_BINARY_DIR}/cuda/fused_bytes_sm90.cu.o"
      -ldl -o "${program}"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" mercer_cuda_objects
    COMMENT "Building ${name} with nvcc"
    VERBATIM)
  add_custom_target(${name}_program ALL DEPENDS "${program}")  # not ${name}: Ninja uses one namespace for files and targets
endfunction()
