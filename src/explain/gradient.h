/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain: what a model's predictions depend on.
 *
 *   gradient.h     gradients of a model's outputs with respect to its samples
 *   importance.h   permutation importance of the columns of a table, partial dependence
 *   shapley.h      exact Shapley values; mixture.h writes kernels as sums of products, game_block.h has the inner loops
 */
#ifndef MRC_EXPLAIN_GRADIENT_H
#define MRC_EXPLAIN_GRADIENT_H

#include "backends/backend.h"
#include "model/model.h"

/* A sum f_l(x) = sum_j alpha_jl phi(|x - z_j|) of a function of the L2 or L1 distance. */
typedef struct mrc_expansion {
    const mercer_kernel *kernel;
    const mercer_matrix *z; /* (p, d) centers of this rank, any dtype, host memory */
    const double *origin;   /* (d) origin in the middle of the centers */
    mrc_comm *comm;         /* ranks that share z and the weights; NULL: one process */
    int64_t total;          /* number of centers of all ranks; unused if comm is NULL */
} mrc_expansion;
static inline mrc_expansion mrc_expansion_of(const mercer_model *model)
{
    return (mrc_expansion){&model->kernel, &model->centers, model->origin, model->comm, model->total};
}

/* Computes the gradients (m, c d) f64 of the c outputs of a sum at the rows of x; in each row, the d entries of output
   0 come first. Uses fused products in double, with the slope instead of the kernel. Equal pairs contribute 0; in norm
   1 equal coordinates do, too. x (m, d) and alpha (p, c) may have any type and must be in host memory. For backends
   with their own memory, norm 1 is computed on the CPU. Collective: each rank passes its rows of z and alpha and all of
   x, and receives all gradients, which are bitwise identical for any number of ranks. Scratch memory: at most 64 MiB,
   or a row of weights, or 16 rows of sums per shard of this rank, whichever is largest. */
mercer_status mrc_gradient_product(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                                   const mercer_matrix *alpha, const mercer_matrix *gradients);

/* Computes the gradients (m, c d), f32 or f64, of the model's outputs with respect to X, through preprocessing and
   metric. The caller has checked everything except the values of X. Fails with MERCER_ERROR_UNSUPPORTED if the kernel
   has no slope. All ranks that share the model must call it with the same X. */
mercer_status mrc_model_gradient(mercer_model *model, const mercer_matrix *gradients, const mercer_matrix *X);

/* Sets *slope to the kernel's slope function. Fails with MERCER_ERROR_UNSUPPORTED, with the kernel's name, if it has
   none. */
mercer_status mrc_gradient_slope(mercer_context *context, const mercer_kernel *kernel, mercer_kernel *slope);

#endif
