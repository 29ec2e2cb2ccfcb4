/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain: what a model's predictions depend on.
 *
 *   gradient.h     gradients of a model's outputs in its samples
 *   importance.h   permutation importance of the columns of a table, partial dependence
 */
#ifndef MRC_EXPLAIN_GRADIENT_H
#define MRC_EXPLAIN_GRADIENT_H

#include "backends/backend.h"
#include "model/model.h"

/*
 * The definition, in scalar double: gradients (m, c d) of f_l(x) = sum_j alpha_jl phi(|x - z_j|) at the rows of x,
 * those of c outputs side by side, in the norm of the kernel. x (m, d), z (p, d), alpha (p, c) of any type, gradients
 * f64. A pair that coincides adds 0, and in norm 1 so does a feature in which it does. The kernel has a slope. Cost:
 * O(m p c d).
 */
mercer_status mrc_gradient_reference(mercer_context *context, const mercer_kernel *kernel, const mercer_matrix *x,
                                     const mercer_matrix *z, const mercer_matrix *alpha,
                                     const mercer_matrix *gradients);

/* A sum f_l(x) = sum_j alpha_jl phi(|x - z_j|) of a function of the L2 or L1 distance. */
typedef struct mrc_expansion {
    const mercer_kernel *kernel;
    const mercer_matrix *z; /* (p, d) any dtype, host; among ranks: those of this rank */
    const double *origin;   /* (d) amid them */
    mrc_comm *comm;         /* ranks that share z and the weights; NULL: all are here */
    int64_t total;          /* centers of all ranks; not read if comm is NULL */
} mrc_expansion;
static inline mrc_expansion mrc_expansion_of(const mercer_model *model)
{
    return (mrc_expansion){&model->kernel, &model->centers, model->origin, model->comm, model->total};
}

/* The same by fused products in double with the slope in place of the kernel: x (m, d) and alpha (p, c) in host memory.
   In norm 1 the processor computes it for a backend with memory of its own. Among ranks each has its rows of z and
   alpha and all of x, calls it, and gets all gradients, to the same bits for any number of them. Memory beyond the
   arguments: at most 64 MiB, or a row of weights, or 16 rows of sums for each shard of this rank. */
mercer_status mrc_gradient_product(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                                   const mercer_matrix *alpha, const mercer_matrix *gradients);

/* Gradients (m, c d) f32 or f64 of the model's outputs in the units of X, preprocessing and metric included. Arguments
   have been checked but for the values of X. MERCER_ERROR_UNSUPPORTED: a kernel without a slope, a model of ranks. */
mercer_status mrc_model_gradient(mercer_model *model, const mercer_matrix *gradients, const mercer_matrix *X);

/* MERCER_ERROR_UNSUPPORTED, by name, unless the kernel has a slope, which is then in *slope. */
mercer_status mrc_gradient_slope(mercer_context *context, const mercer_kernel *kernel, mercer_kernel *slope);

#endif
