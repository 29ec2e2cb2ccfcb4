/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of kernel functions: everything that parse, print, checks and tests need to know of each. */
#ifndef MRC_KERNELS_TABLE_H
#define MRC_KERNELS_TABLE_H

#include "kernels/kernel.h"

enum { MRC_KERNEL_MAX_PARAMETERS = 3 };

/* One parameter: where it lives in mercer_kernel, and which values are valid: low < value (or <=) and value <= high. */
typedef struct mrc_parameter {
    const char *name;
    size_t offset;
    bool integer;
    bool required;
    bool low_included;
    double low, high;
    double fallback; /* when not given and not required */
} mrc_parameter;

typedef struct mrc_kernel_entry {
    mercer_kernel_id id;
    const char *name;
    const char *example;
    mrc_argument argument;
    bool angular;
    double (*of_distance)(const mercer_kernel *kernel, double sqdist);
    double (*of_inner)(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm);
    double steepness; /* >= max |dK/dr| * bandwidth; 0: depends on parameters, or not a function of r */
    mrc_parameter parameters[MRC_KERNEL_MAX_PARAMETERS]; /* up to the first without a name */
} mrc_kernel_entry;

extern const mrc_kernel_entry mrc_kernel_table[];
extern const int mrc_kernel_table_size;

/* NULL if the id is not in the table (callbacks are not). */
const mrc_kernel_entry *mrc_kernel_find(int32_t id);

double mrc_parameter_get(const mercer_kernel *kernel, const mrc_parameter *parameter);
void mrc_parameter_set(mercer_kernel *kernel, const mrc_parameter *parameter, double value);
bool mrc_parameter_valid(const mrc_parameter *parameter, double value);
/* "> 0", ">= 1 and <= 64, whole" */
void mrc_parameter_range(const mrc_parameter *parameter, char *text, size_t size);

#endif
