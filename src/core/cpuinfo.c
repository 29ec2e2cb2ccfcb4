/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detection of instruction sets. This file is compiled without ISA flags, so that it runs on every processor. A level
 * is usable only if the processor has its instructions (cpuid) and the operating system saves its registers (xgetbv).
 * The compiler's builtin and have_amx check both conditions.
 */
#define _GNU_SOURCE
#include "core/cpuinfo.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>
#if defined(MERCER_X86)
#include <cpuid.h>
#endif
#if defined(MERCER_AMX)
#include <sys/syscall.h>
#endif

#define ISA_AS_TEXT(id, name) name,
static const char *const isa_names[] = {MRC_ISA_LIST(ISA_AS_TEXT)};

const char *mrc_isa_name(mrc_isa isa)
{
    return isa_names[isa];
}

bool mrc_isa_from_name(const char *text, mrc_isa *isa)
{
    for (int i = 0; i < MRC_ISA_COUNT; i++) {
        if (strcmp(text, isa_names[i]) == 0) {
            *isa = (mrc_isa)i;
            return true;
        }
    }
    return false;
}

const char *mrc_isa_names(void)
{
    return "scalar, avx2, avx512, avx512vnni, amx";
}

#if defined(MERCER_X86)
/* Returns whether the processor has instructions that convert half precision. This calls cpuid because not every
   compiler's builtin supports "f16c". These instructions use the registers of AVX2, so mrc_isa_best checks the
   operating system by checking for AVX2. */
static bool have_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#if defined(MERCER_AMX)
/*
 * Returns whether AMX is usable. The processor must have tiles and int8 products of tiles (bits 24 and 25 of leaf 7).
 * The operating system must save tile state (bits 17 and 18 of XCR0) and permit its use by this process. If the system
 * refuses permission (an old Linux kernel, a small alternative signal stack), the caller falls back to AVX512VNNI.
 */
static bool have_amx(void)
{
    enum {
        OSXSAVE = 1 << 27,
        TILE_AND_INT8 = 3 << 24,
        TILE_STATE = 3 << 17,
        REQUEST_PERMISSION = 0x1023,
        TILE_DATA = 18
    };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & TILE_AND_INT8) != TILE_AND_INT8) return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATE) == TILE_STATE && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#endif

/* Each level requires all features that the files of that level are compiled for. */
mrc_isa mrc_isa_best(void)
{
#if defined(MERCER_X86)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !have_f16c()) return MRC_ISA_SCALAR;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return MRC_ISA_AVX2;
    if (!__builtin_cpu_supports("avx512vnni")) return MRC_ISA_AVX512;
#if defined(MERCER_AMX)
    if (have_amx()) return MRC_ISA_AMX;
#endif
    return MRC_ISA_AVX512VNNI;
#else
    return MRC_ISA_SCALAR;
#endif
}

/* The affinity mask of the process may contain fewer processors than the machine has. */
int mrc_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
