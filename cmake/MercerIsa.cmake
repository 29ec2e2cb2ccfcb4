# SPDX-License-Identifier: BSD-3-Clause
# Instruction sets by file name: *_avx2.c, *_avx512.c, *_avx512vnni.c and *_amx.c of src/backends/cpu and
# src/data/table/cells, linear_map_avx512.c of src/data/prepare and game_block_*.c of src/explain are compiled for the
# instruction set in their name. All other files are compiled for the baseline instruction set, so that the library loads on
# any x86-64 processor; it selects its micro-kernels at run time. (Link-time optimization is not used, because it could move
# code of one kind into the other.)
#
# Sets MERCER_X86, MERCER_AMX (Linux, and a compiler that supports it) and mercer_isa_names (for the summary); defines
# mercer_apply_isa().

include(CheckCCompilerFlag)

set(mercer_isa_avx2 -mavx2 -mfma -mf16c)
set(mercer_isa_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma)
set(mercer_isa_avx512vnni ${mercer_isa_avx512} -mavx512vnni)

set(mercer_isa_amx ${mercer_isa_avx512vnni} -mamx-tile -mamx-int8)

set(MERCER_X86 OFF)
set(MERCER_AMX OFF)
set(mercer_isa_names scalar)
if(MERCER_VECTORS AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(MERCER_X86 ON)
  foreach(isa avx2 avx512 avx512vnni)
    string(REPLACE ";" " " isa_flags "${mercer_isa_${isa}}")
    check_c_compiler_flag("${isa_flags}" MERCER_COMPILES_${isa})
    if(MERCER_COMPILES_${isa})
      list(APPEND mercer_isa_names ${isa})
    else()
      # Use all instruction sets or none: the sources have a single switch, and every compiler with good C11 support knows all
      # three.
      set(MERCER_X86 OFF)
    endif()
  endforeach()
endif()
if(NOT MERCER_X86)
  set(mercer_isa_names scalar)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  check_c_compiler_flag("-mamx-tile -mamx-int8" MERCER_COMPILES_amx)
  if(MERCER_COMPILES_amx)
    set(MERCER_AMX ON)
    list(APPEND mercer_isa_names amx)
  endif()
endif()

# mercer_apply_isa(list_name): set the flags of each source in the list; remove sources that cannot be compiled.
function(mercer_apply_isa list_name)
  set(kept "")
  foreach(source IN LISTS ${list_name})
    set(options "")
    if(source MATCHES "/src/(backends/cpu/.*|data/table/cells/.*|data/prepare/linear_map|explain/game_block)_(avx2|avx512|avx512vnni|amx)\\.c$")
      if(NOT MERCER_X86 OR (CMAKE_MATCH_2 STREQUAL "amx" AND NOT MERCER_AMX))
        continue()
      endif()
      list(APPEND options ${mercer_isa_${CMAKE_MATCH_2}})
    endif()
    if(source MATCHES "/src/(backends/cpu/micro/.*|core/(numbers/(changes|random_normal)|matrix)|data/(prepare/(preprocess|preprocess_fit)|schema/(encode|gaps|schema)|synth/synth_[a-z]*)|explain/(game_block[a-z0-9_]*|mixture))\\.c$")
      # These files contain elementwise loops, which benefit from vectorization. The two math flags do not change results:
      # they permit a sqrt that does not set errno, and comparisons that become masks.
      list(APPEND options $<$<CONFIG:Release>:-O3> -fno-math-errno -fno-trapping-math)
    endif()
    if(options)
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${options}")
    endif()
    list(APPEND kept "${source}")
  endforeach()
  set(${list_name} "${kept}" PARENT_SCOPE)
endfunction()
