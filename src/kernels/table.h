/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of formulas.h as a table with the data of each kernel that parsing, printing, checks and tests need. */
#ifndef MRC_KERNELS_TABLE_H
#define MRC_KERNELS_TABLE_H

#include "core/spec.h"
#include "kernels/kernel.h"

typedef struct mrc_kernel_entry {
    mrc_spec_form form; /* name, example and parameters (fields of mercer_kernel) */
    int32_t id;
    mrc_argument argument;
    bool angular;
} mrc_kernel_entry;

extern const mrc_kernel_entry mrc_kernel_table[];
extern const int mrc_kernel_table_size;

/* Find a kernel by its id, or by the name at the beginning of a specification. Return NULL if the table has no such
   kernel; callbacks are not in the table. */
const mrc_kernel_entry *mrc_kernel_find(int32_t id);
const mrc_kernel_entry *mrc_kernel_named(const char *spec);

/* Checks q <= p for kernels with the parameters p and q, which must already be in their ranges. */
mercer_status mrc_kernel_check_powers(mercer_context *context, const mercer_kernel *kernel);

#endif
