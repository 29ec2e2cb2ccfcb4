/* SPDX-License-Identifier: BSD-3-Clause */
/* Instruction sets supported by this processor and operating system. */
#ifndef MRC_CORE_CPUINFO_H
#define MRC_CORE_CPUINFO_H

#include <stdbool.h>

/* Levels in ascending order: each level includes all earlier levels. */
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
/* Finds a level by name. Returns false if the name is unknown. */
bool mrc_isa_from_name(const char *text, mrc_isa *isa);
/* Returns the highest level that the processor, the operating system and this build of the library all support. */
mrc_isa mrc_isa_best(void);
/* Returns all names separated by ", ", for messages. */
const char *mrc_isa_names(void);
/* Returns the number of processors this process may run on, at least 1. */
int mrc_processors(void);

#endif
