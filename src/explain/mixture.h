/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel of a distance as a sum of products over the features: mixture.c has the method and its error bound. */
#ifndef MRC_EXPLAIN_MIXTURE_H
#define MRC_EXPLAIN_MIXTURE_H

#include "core/memory.h"
#include "kernels/kernel.h"

/* phi(s) = sum_i weight_i exp(-rate_i s) for the argument s = sum_k |x_k - z_k|^p of a kernel, with weights > 0 whose
   sum is about 1. Each term is a product over the features. */
typedef struct mrc_mixture {
    int64_t count;
    double *rate, *weight; /* (count) rates ascending */
    double error;          /* bound of the difference to the kernel for every s >= 0; 0 for kernels that are products */
} mrc_mixture;

/* Finds the mixture of a built-in kernel of a distance; the scope owns its arrays. Fails with MERCER_ERROR_UNSUPPORTED,
   with the kernel's name, for other kernels, and if no mixture is within 1e-8 of the kernel. */
mercer_status mrc_mixture_find(mrc_mixture *out, mrc_scope *scope, const mercer_kernel *kernel);

#endif
