/* SPDX-License-Identifier: BSD-3-Clause */
/* A source over matrices in memory, in a fresh random order for each pass. */
#ifndef MRC_DATA_MEMORY_SOURCE_H
#define MRC_DATA_MEMORY_SOURCE_H

#include "core/context.h"

/* Y (n, c), or NULL with labels (n) in 0 .. classes - 1. All borrowed. Arguments have been checked. */
typedef struct mrc_memory_source_options {
    const mercer_matrix *x, *y;
    const int32_t *labels;
    int64_t classes;
    const double *weights;
    uint64_t seed;
} mrc_memory_source_options;

mercer_status mrc_memory_source_create(mercer_source *out, mercer_context *context,
                                       const mrc_memory_source_options *options);

#endif
