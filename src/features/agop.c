/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * G = (1/m) sum_i sum_l g_il g_il',   g_il = grad f_l(x_i)
 *
 * With signs xi_l = +-1, drawn anew for every part of the rows, h_i = sum_l xi_l g_il is the gradient of one function,
 * the sum with weights alpha xi, and E h_i h_i' = sum_l g_il g_il': all outputs for the price of one. Cost with signs:
 * a product of m rows with d + 1 columns, 2 m p (2 d + 1) flops, and m d^2 for the outer products, of which one half is
 * computed.
 */
#include "features/agop.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <string.h>

enum { PART_ROWS = 512, BLOCK_ROWS = 2048, SIGN_BITS = 0x7369676e };

void mrc_outer_add(const mercer_matrix *G, const mercer_matrix *gradients, int64_t c, double factor)
{
    int64_t d = G->cols;
    for (int64_t i = 0; i < gradients->rows; i++)
        for (int64_t l = 0; l < c; l++) {
            const double *g = (const double *)mrc_row(gradients, i) + l * d;
            for (int64_t a = 0; a < G->rows; a++) {
                double *row = mrc_row(G, a);
                for (int64_t b = 0; b < d; b++) row[b] += factor * (G->rows == 1 ? g[b] : g[a]) * g[b];
            }
        }
}

/* The same by the backend, on and below the diagonal: gradients seen as (m c, d). */
static mercer_status add_outer(mrc_backend *backend, const mercer_matrix *G, const mercer_matrix *gradients, int64_t c,
                               double factor)
{
    if (G->rows == 1) {
        mrc_outer_add(G, gradients, c, factor);
        return MERCER_OK;
    }
    mercer_matrix g = mrc_view(gradients->data, gradients->rows * c, G->cols, MERCER_F64);
    return backend->ops->gram(backend, factor, &g, 1, G);
}

/* sums (p) = alpha xi; signs: room for c. */
static void sum_outputs(const mercer_matrix *alpha, mrc_rng rng, int64_t part, double *sums, double *signs)
{
    int64_t c = alpha->cols;
    for (int64_t l = 0; l < c; l++) signs[l] = mrc_random_below(rng, (uint64_t)(part * c + l), 2) == 1 ? -1 : 1;
    for (int64_t j = 0; j < alpha->rows; j++) {
        sums[j] = 0;
        for (int64_t l = 0; l < c; l++) sums[j] += signs[l] * mrc_load(alpha, j, l);
    }
}

static mercer_status add_parts(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                               const mercer_matrix *alpha, uint64_t seed, const mercer_matrix *G, double *signed_sum,
                               double *gradients)
{
    int64_t m = x->rows;
    bool each = signed_sum == NULL;
    int64_t rows = each ? BLOCK_ROWS : PART_ROWS;
    bool wide = mrc_value_dtype(x, sum->z, alpha, NULL) == MERCER_F64 || !mrc_gradient_in_float(sum->kernel);
    mercer_dtype real = wide ? MERCER_F64 : MERCER_F32;
    mercer_matrix weights = each ? *alpha : mrc_view(signed_sum, alpha->rows, 1, MERCER_F64);
    for (int64_t first = 0; first < m; first += rows) {
        mercer_matrix part = mrc_rows(x, first, mrc_min(rows, m - first));
        mercer_matrix g = mrc_view(gradients, part.rows, weights.cols * x->cols, MERCER_F64);
        if (!each) sum_outputs(alpha, (mrc_rng){seed, SIGN_BITS}, first / rows, signed_sum, signed_sum + alpha->rows);
        MRC_TRY(mrc_gradient_product(backend, sum, &part, &weights, real, &g));
        MRC_TRY(add_outer(backend, G, &g, weights.cols, 1 / (double)m));
    }
    if (G->rows > 1) mrc_gram_mirror(G);
    return MERCER_OK;
}

mercer_status mrc_agop(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                       const mercer_matrix *alpha, uint64_t seed, const mercer_matrix *G)
{
    int64_t c = alpha->cols > MRC_AGOP_OUTPUTS ? 1 : alpha->cols;
    double *gradients, *signs = NULL;
    MRC_SCOPE(scope, backend->context);
    for (int64_t i = 0; i < G->rows; i++) memset(mrc_row(G, i), 0, (size_t)G->cols * sizeof(double));
    int64_t rows = alpha->cols > c ? PART_ROWS : mrc_min(BLOCK_ROWS, x->rows);
    MRC_TRY(mrc_scope_alloc(&scope, &gradients, rows * c, x->cols * (int64_t)sizeof *gradients, "gradients"));
    if (alpha->cols > c)
        MRC_TRY(mrc_scope_alloc(&scope, &signs, alpha->rows + alpha->cols, sizeof *signs, "signed weights"));
    return add_parts(backend, sum, x, alpha, seed, G, signs, gradients);
}
