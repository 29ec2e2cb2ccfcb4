/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of kernel functions: everything that parse, print, checks and tests need to know of each. */
#ifndef MRC_KERNELS_TABLE_H
#define MRC_KERNELS_TABLE_H

#include "core/spec.h"
#include "kernels/kernel.h"

typedef struct mrc_kernel_entry {
    mrc_spec_form form; /* name, example and parameters, which are fields of mercer_kernel */
    mercer_kernel_id id;
    mrc_argument argument;
    bool angular;
    double (*of_distance)(const mercer_kernel *kernel, double sqdist);
    double (*of_inner)(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm);
    double steepness; /* >= max |dK/dr| * bandwidth; 0: depends on parameters, or not a function of r */
} mrc_kernel_entry;

extern const mrc_kernel_entry mrc_kernel_table[];
extern const int mrc_kernel_table_size;

/* NULL if the id is not in the table (callbacks are not). */
const mrc_kernel_entry *mrc_kernel_find(int32_t id);

#endif
