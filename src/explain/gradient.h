/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain: what a model's predictions depend on.
 *
 *   gradient.h     gradients of a model's outputs with respect to its samples
 *   importance.h   permutation importance of the columns of a table, partial dependence
 */
#ifndef MRC_EXPLAIN_GRADIENT_H
#define MRC_EXPLAIN_GRADIENT_H

#include "backends/backend.h"
#include "model/model.h"

/* A sum f_l(x) = sum_j alpha_jl phi(|x - z_j|) of a function of the L2 or L1 distance. */
typedef struct mrc_expansion {
    const mercer_kernel *kernel;
    const mercer_matrix *z; /* (p, d) centers of this rank, any dtype, host memory */
    const double *origin;   /* (d) origin amid the centers */
    mrc_comm *comm;         /* ranks that share z and the weights; NULL: one process */
    int64_t total;          /* number of centers of all ranks; unused if comm is NULL */
} mrc_expansion;
static inline mrc_expansion mrc_expansion_of(const mercer_model *model)
{
    return (mrc_expansion){&model->kernel, &model->centers, model->origin, model->comm, model->total};
}

/* Computes the gradients (m, c d) f64 of the sum at the rows of x, those of the c outputs next to each other, in the
   norm of the kernel: by fused products in double with the slope in place of the kernel. A coinciding pair adds 0; in
   norm 1 a coinciding coordinate does, too. x (m, d) and alpha (p, c) of any type are in host memory. In norm 1 the
   CPU computes them for a backend with its own memory. With several ranks,
   all ranks call it, each with its rows of z and alpha and all of x, and get all gradients, bitwise identical for
   any number of ranks. Memory beyond the arguments: at most 64 MiB, or a row of weights, or 16 rows of sums per
   shard of this rank. */
mercer_status mrc_gradient_product(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                                   const mercer_matrix *alpha, const mercer_matrix *gradients);

/* Computes gradients (m, c d), f32 or f64, of the model's outputs in the units of X, including preprocessing and
   metric. The caller has checked everything except the values of X. MERCER_ERROR_UNSUPPORTED: the kernel has no
   slope. All ranks that share the model call it with the same X. */
mercer_status mrc_model_gradient(mercer_model *model, const mercer_matrix *gradients, const mercer_matrix *X);

/* Sets *slope to the kernel's slope function; MERCER_ERROR_UNSUPPORTED, with the kernel's name, if it has none. */
mercer_status mrc_gradient_slope(mercer_context *context, const mercer_kernel *kernel, mercer_kernel *slope);

#endif
