/* SPDX-License-Identifier: BSD-3-Clause */
/* Which instruction sets this processor and operating system offer. */
#ifndef MRC_CORE_CPUINFO_H
#define MRC_CORE_CPUINFO_H

#include <stdbool.h>

/* Ordered: each level contains the ones before it. */
#define MRC_ISA_LIST(X)         \
    X(SCALAR, "scalar")         \
    X(AVX2, "avx2")             \
    X(AVX512, "avx512")         \
    X(AVX512VNNI, "avx512vnni") \
    X(AMX, "amx")

#define MRC_ISA_AS_ENUM(id, name) MRC_ISA_##id,
typedef enum mrc_isa { MRC_ISA_LIST(MRC_ISA_AS_ENUM) MRC_ISA_COUNT } mrc_isa;
#undef MRC_ISA_AS_ENUM

const char *mrc_isa_name(mrc_isa isa);
/* False if text names no level. */
bool mrc_isa_from_name(const char *text, mrc_isa *isa);
/* The best level that processor and operating system both support, and that this library was built with. */
mrc_isa mrc_isa_best(void);
/* Every name, separated by ", ", for messages. */
const char *mrc_isa_names(void);
/* Processors this process may run on, at least 1. */
int mrc_processors(void);

#endif
