# SPDX-License-Identifier: BSD-3-Clause
# Compiler flags shared by the library, its tests and its benchmarks: mercer_set_flags(target).

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

# Line numbers (-g1) make the backtraces of users informative, and do not affect the speed.
if(CMAKE_C_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG" CACHE STRING "Flags of a release build" FORCE)
endif()
if(MERCER_SANITIZE AND CMAKE_C_FLAGS_DEBUG STREQUAL "-g")
  # Without optimization, sanitized code is too slow for the whole test suite; -O2 would double the compile time without a
  # benefit.
  set(CMAKE_C_FLAGS_DEBUG "-O1 -g1" CACHE STRING "Flags of a debug build" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

# Hardening flags, if the compiler and the C library support them. Level 3 of _FORTIFY_SOURCE also checks lengths that are
# known only at run time; control-flow protection marks the valid targets of indirect jumps.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>\nint main(void) { return (int)strlen(\"\"); }" MERCER_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
check_c_compiler_flag(-fcf-protection=full MERCER_CF_PROTECTION)
set(mercer_fortify $<IF:$<BOOL:${MERCER_FORTIFY_3}>,3,2>)

function(mercer_set_flags target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -Wdouble-promotion
    # The compiler must not fuse a*b+c where it chooses, because results would depend on the compiler and the target.
    -ffp-contract=off
    $<$<BOOL:${MERCER_WERROR}>:-Werror>)

  if(MERCER_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${MERCER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # Sanitizers hide values and lengths from GCC, which then gives false warnings. Release builds enable both warnings.
    target_compile_options(${target} PRIVATE
      $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PUBLIC -fsanitize=${MERCER_SANITIZE})
  else()
    # -U first: some distributions define their own level, and a second definition would cause a warning.
    target_compile_options(${target} PRIVATE
      $<$<CONFIG:Release>:-U_FORTIFY_SOURCE>
      $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=${mercer_fortify}>
      $<$<CONFIG:Release>:-fstack-protector-strong>
      $<$<AND:$<CONFIG:Release>,$<BOOL:${MERCER_CF_PROTECTION}>>:-fcf-protection=full>)
  endif()

  if(MERCER_COVERAGE)
    # The compiler flags that --coverage implies, written separately so that single files can be excluded.
    target_compile_options(${target} PRIVATE -fprofile-arcs -ftest-coverage)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()

# Linker flags of all shared libraries and executables.
add_link_options("LINKER:-z,relro" "LINKER:-z,now")
if(MERCER_SANITIZE)
  add_link_options(-fsanitize=${MERCER_SANITIZE})
endif()
if(MERCER_COVERAGE)
  add_link_options(--coverage)
endif()
