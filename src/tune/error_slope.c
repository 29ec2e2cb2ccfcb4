/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error on rows held back, and its slope in the scales of the features.
 *
 *   A, B     rows that are fitted to (n), and judged on;  Z the first p rows of A
 *   M        K_A' K_A + l n K_ZZ,   alpha = M^-1 K_A' Y_A,   E = |K_B alpha - Y_B|^2 / (|B| c)
 *
 * Every kernel value depends on the scales s_k = log of the factor of coordinate k of all points. With R = dE/d(K_B
 * alpha) = 2 (K_B alpha - Y_B) / (|B| c) and U = M^-1 K_B' R, what E changes by is, summed over outputs,
 *
 *   dE = R' dK_B alpha + (Y_A - K_A alpha)' dK_A U - (K_A U)' dK_A alpha - l n U' dK_ZZ alpha
 *
 * and the rows of Z are rows of A, so dE = sum_ij W_ij dK_ij over rows i of A and B, W_ij = sum_l (q_il alpha_jl +
 * t_il u_jl), with
 *
 *   q = -K_A U - l n U (of the rows of Z) on A, R on B        t = Y_A - K_A alpha on A, 0 on B
 *
 * A function of the distance in norm 1 or 2 has dK_ij/ds_k = -psi(r_ij) |x_ik - z_jk|^norm, psi its slope
 * (kernels/formulas.h): so W is one product of (m, 2 c) and (2 c, p), and dE/ds_k a sum over all pairs (feature_sums of
 * backends/backend.h), in which nothing cancels within a pair: |psi (x - z)^norm| is at most about 1, however large psi
 * is where points are near. Rows with weights: K and Y times the roots of them, q and t once more.
 *
 * Where the backend computes in host memory, K and psi are functions of the same distances, which are formed once, if
 * those are surely numbers of their type.
 *
 * Cost: n p^2 + p^3 / 3 flops, 4 m p c for W, one pass over the distances (a device: two) and one over the differences.
 * Memory: 16 m p bytes, 24 in double, and 16 p^2.
 */
#include "tune/descent.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

/* ---- Room -------------------------------------------------------------------------------------------------------- */

mercer_status mrc_slope_open(mrc_slope_room *self, mrc_scope *scope, mrc_backend *backend, const mrc_draw *like,
                             int64_t fitted, int64_t centers)
{
    static const char what[] = "steps of descent";
    int64_t m = like->x.rows, p = centers, c = like->y.cols;
    mercer_dtype points = like->x.dtype;
    *self = (mrc_slope_room){.backend = backend, .m = m, .n = fitted, .p = p, .d = like->x.cols, .c = c};
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
        mercer_dtype dtype;
    } all[] = {{&self->sums, m, p, points},         {&self->steepness, m, p, points},
               {&self->k, m, p, MERCER_F64},        {&self->y, m, c, MERCER_F64},
               {&self->zz, p, p, MERCER_F64},       {&self->factor, p, p, MERCER_F64},
               {&self->ones, p, 1, MERCER_F64},     {&self->residual, m, c, MERCER_F64},
               {&self->left, m, 2 * c, MERCER_F64}, {&self->right, p, 2 * c, MERCER_F64}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(mrc_scope_matrix(scope, backend, all[i].matrix, all[i].rows, all[i].cols, all[i].dtype, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->roots, m, sizeof *self->roots, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->numbers, mrc_max(p, c), sizeof *self->numbers, what));
    for (int64_t j = 0; j < p; j++) self->numbers[j] = 1;
    mercer_matrix ones = mrc_view(self->numbers, p, 1, MERCER_F64);
    return backend->ops->copy(backend, &self->ones, &ones);
}

/* ---- The fit ----------------------------------------------------------------------------------------------------- */

/* The sums of the weights of both kinds of rows. */
static void weigh(mrc_slope_room *self, const double *weights, double *fitted, double *judged)
{
    *fitted = *judged = 0;
    for (int64_t i = 0; i < self->m; i++) {
        double w = weights ? weights[i] : 1;
        self->roots[i] = sqrt(w);
        *(i < self->n ? fitted : judged) += w;
    }
}

/* Whether distances are kept. */
static bool keeps_sums(const mrc_slope_room *self, const mercer_kernel *kernel)
{
    bool squares = kernel->bandwidth >= 1e-12 && kernel->bandwidth <= 1e12; /* of distances are floats */
    return squares && self->backend->ops->capabilities(self->backend).memory == MRC_HOST;
}

/* K and Y, times the roots of the weights, and K_ZZ; small fits take float values of float points, too. */
static mercer_status evaluate(const mrc_slope_room *self, const mercer_kernel *kernel, const mrc_draw *draw)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    mercer_matrix z = mrc_rows(&draw->x, 0, self->p);
    mrc_pair rows = {.kernel = kernel, .x = &draw->x, .z = &z}, centers = {.kernel = kernel, .x = &z, .z = &z};
    if (keeps_sums(self, kernel)) {
        MRC_TRY(ops->kernel_sums(backend, &rows, &self->sums));
        MRC_TRY(ops->kernel_of_sums(backend, kernel, &self->sums, &self->k));
    } else {
        MRC_TRY(ops->kernel_eval(backend, &rows, &self->sums));
        MRC_TRY(ops->copy(backend, &self->k, &self->sums));
    }
    MRC_TRY(ops->kernel_eval(backend, &centers, &self->zz));
    MRC_TRY(ops->copy(backend, &self->y, &draw->y));
    if (!draw->weights) return MERCER_OK;
    MRC_TRY(ops->scale_rows(backend, &self->k, self->roots));
    return ops->scale_rows(backend, &self->y, self->roots);
}

static mercer_status factorise(const mrc_slope_room *self, double penalty, bool *solved)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    mercer_matrix fitted = mrc_rows(&self->k, 0, self->n), diagonal = mrc_columns(&self->factor, 0, 1),
                  seen = mrc_view(self->numbers, self->p, 1, MERCER_F64);
    double trace = 0;
    diagonal.ld = self->p + 1;
    MRC_TRY(ops->copy(backend, &self->factor, &self->zz));
    MRC_TRY(ops->gram(backend, 1, &fitted, penalty, &self->factor));
    MRC_TRY(ops->copy(backend, &seen, &diagonal));
    for (int64_t j = 0; j < self->p; j++) trace += self->numbers[j];
    MRC_TRY(ops->axpby(backend, MRC_SMALL_JITTER * trace / (double)self->p, &self->ones, 1, &diagonal));
    mercer_status status = ops->cholesky(backend, &self->factor);
    *solved = status == MERCER_OK;
    return status == MERCER_ERROR_NUMERIC ? MERCER_OK : status;
}

/* to (p, c) = M^-1 rows' values. */
static mercer_status solve(const mrc_slope_room *self, const mercer_matrix *rows, const mercer_matrix *values,
                           const mercer_matrix *to)
{
    const mrc_backend_ops *ops = self->backend->ops;
    mrc_gemm product = {.transpose_a = true, .alpha = 1, .a = rows, .b = values, .c = to};
    MRC_TRY(ops->gemm(self->backend, &product));
    MRC_TRY(ops->triangular_solve(self->backend, &self->factor, false, to));
    return ops->triangular_solve(self->backend, &self->factor, true, to);
}

/* alpha, K alpha - Y; then, with that of the rows judged on times 2 / (|B| c), U. */
static mercer_status fit(const mrc_slope_room *self, double judged, double *error)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t n = self->n, held = self->m - n;
    mercer_matrix fitted = mrc_rows(&self->k, 0, n), y = mrc_rows(&self->y, 0, n), others = mrc_rows(&self->k, n, held),
                  off = mrc_rows(&self->residual, n, held), alpha = mrc_columns(&self->right, 0, self->c),
                  u = mrc_columns(&self->right, self->c, self->c);
    MRC_TRY(solve(self, &fitted, &y, &alpha));
    MRC_TRY(ops->copy(backend, &self->residual, &self->y));
    mrc_gemm residuals = {false, false, 1, -1, &self->k, &alpha, &self->residual};
    MRC_TRY(ops->gemm(backend, &residuals));
    MRC_TRY(ops->column_dots(backend, &off, &off, self->numbers));
    *error = 0;
    for (int64_t l = 0; l < self->c; l++) *error += self->numbers[l] / judged;
    MRC_TRY(ops->axpby(backend, 2 / judged, &off, 0, &off));
    return solve(self, &others, &off, &u);
}

/* ---- The slope --------------------------------------------------------------------------------------------------- */

/* left = [q | t]. */
static mercer_status join(const mrc_slope_room *self, double penalty, bool weighted)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t n = self->n, c = self->c, held = self->m - n;
    mercer_matrix q = mrc_block(&self->left, 0, 0, n, c), t = mrc_block(&self->left, 0, c, n, c),
                  q_held = mrc_block(&self->left, n, 0, held, c), t_held = mrc_block(&self->left, n, c, held, c),
                  own = mrc_block(&self->left, 0, 0, self->p, c), k = mrc_rows(&self->k, 0, n),
                  u = mrc_columns(&self->right, c, c), residual = mrc_rows(&self->residual, 0, n),
                  off = mrc_rows(&self->residual, n, held);
    mrc_gemm spread = {.alpha = -1, .a = &k, .b = &u, .c = &q};
    MRC_TRY(ops->gemm(backend, &spread));
    MRC_TRY(ops->copy(backend, &q_held, &off));
    MRC_TRY(ops->axpby(backend, -1, &residual, 0, &t));
    MRC_TRY(ops->clear(backend, &t_held));
    if (weighted) MRC_TRY(ops->scale_rows(backend, &self->left, self->roots));
    return ops->axpby(backend, -penalty, &u, 1, &own);
}

static mercer_status sum_pairs(const mrc_slope_room *self, const mercer_kernel *kernel, const mrc_draw *draw,
                               double *slope)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    mercer_matrix z = mrc_rows(&draw->x, 0, self->p);
    mercer_kernel steep;
    mrc_kernel_slope(kernel, &steep);
    mrc_pair pair = {.kernel = &steep, .x = &draw->x, .z = &z};
    MRC_TRY(keeps_sums(self, kernel) ? ops->kernel_of_sums(backend, &steep, &self->sums, &self->steepness)
                                     : ops->kernel_eval(backend, &pair, &self->steepness));
    mrc_gemm weights = {false, true, 1, 0, &self->left, &self->right, &self->k}; /* K is not needed any more */
    MRC_TRY(ops->gemm(backend, &weights));
    mrc_feature_sums sums = {
        .norm = mrc_kernel_norm(kernel) == 1 ? 1 : 2, .x = &draw->x, .z = &z, .a = &self->k, .b = &self->steepness};
    MRC_TRY(ops->feature_sums(backend, &sums, slope));
    for (int64_t k = 0; k < self->d; k++) slope[k] = -slope[k];
    return MERCER_OK;
}

mercer_status mrc_error_slope(mrc_slope_room *self, const mercer_kernel *kernel, double ridge, const mrc_draw *draw,
                              double *error, double *slope, bool *solved)
{
    double fitted, judged;
    weigh(self, draw->weights, &fitted, &judged);
    MRC_TRY(evaluate(self, kernel, draw));
    MRC_TRY(factorise(self, ridge * fitted, solved));
    if (!*solved) return MERCER_OK;
    MRC_TRY(fit(self, judged * (double)self->c, error));
    MRC_TRY(join(self, ridge * fitted, draw->weights != NULL));
    return sum_pairs(self, kernel, draw, slope);
}
