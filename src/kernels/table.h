/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of formulas.h as a table: everything that parse, print, checks and tests need to know of each kernel. */
#ifndef MRC_KERNELS_TABLE_H
#define MRC_KERNELS_TABLE_H

#include "core/spec.h"
#include "kernels/kernel.h"

typedef struct mrc_kernel_entry {
    mrc_spec_form form; /* name, example and parameters, which are fields of mercer_kernel */
    int32_t id;
    mrc_argument argument;
    bool angular;
} mrc_kernel_entry;

extern const mrc_kernel_entry mrc_kernel_table[];
extern const int mrc_kernel_table_size;

/* NULL if the id is not in the table (callbacks are not), or no kernel has the name that a text begins with. */
const mrc_kernel_entry *mrc_kernel_find(int32_t id);
const mrc_kernel_entry *mrc_kernel_named(const char *spec);

/* Where a kernel has the parameters p and q: q <= p, each being in its range. */
mercer_status mrc_kernel_check_powers(mercer_context *context, const mercer_kernel *kernel);

#endif
