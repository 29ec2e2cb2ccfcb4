/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The held-out error of a small fit and its gradient with respect to the hyperparameters.
 *
 *   A, B     training rows (n) and held-out rows, m in total; the centers Z are the first p rows of A
 *   M        K_A' K_A + l n K_ZZ,   alpha = M^-1 K_A' Y_A,   E = |K_B alpha - Y_B|^2 / (|B| c)
 *
 * where l is the ridge, |B| the number of held-out rows, and c the number of outputs. With R = 2 (K_B alpha - Y_B) /
 * (|B| c) and U = M^-1 K_B' R, a change dK of the kernel values changes E by
 *
 *   dE = R' dK_B alpha + (Y_A - K_A alpha)' dK_A U - (K_A U)' dK_A alpha - l n U' dK_ZZ alpha     (summed over outputs)
 *
 * Z are rows of A, so dE = sum_ij W_ij dK_ij over the rows i of A and B, W = q alpha' + t U', with
 *
 *   q = -K_A U - l n U (rows of Z) on A, R on B        t = Y_A - K_A alpha on A, 0 on B
 *
 * and dE / dlog l = -l n sum U' K_ZZ alpha. From W:
 *
 *   scales    s_k = log of the factor of coordinate k: dK_ij/ds_k = -psi_ij |x_ik - z_jk|^norm with the slope psi of
 *             the kernel function (kernels/formulas.h), so dE/ds_k is one sum over all pairs (feature_sums). Nothing
 *             cancels within a pair: |psi (x - z)^norm| is at most about 1, however large psi is for near points.
 *   map       points x A in norm 2: dE/dA = S A, S = sum_ij V_ij (x_i - z_j)(x_i - z_j)', V_ij = -W_ij psi_ij. With the
 *             row and column sums of V on diagonals D_r, D_c:  S = B + B',  B = X'(D_r X / 2 - V Z) + Z' D_c Z / 2
 *   exponent dE/dgamma = sum_ij W_ij (K(gamma + h) - K(gamma - h))_ij / 2 h. h = 1e-3 has an error of h^2 / 6 times the
 *   third derivative of K, far below the noise of a draw, and costs two more evaluations of the function.
 *
 * Weighted rows: K and Y are multiplied by the square roots of the weights; q and t are multiplied by them once more.
 *
 * Host backends compute the distances once and evaluate K, psi and the two shifted exponents from them.
 *
 * Cost: n p^2 + p^3 / 3 flops, 4 m p c for W, one pass over the distances and one over the differences; with a map of k
 * coordinates 2 m p k + 4 m k^2. Memory: 20 m p bytes in float, 32 in double, and 16 p^2.
 */
#include "search/error_gradient.h"

#include "core/matrix.h"
#include "core/threads/parallel.h"
#include "kernels/formulas.h"
#include "search/small_fits.h"

#include <math.h>

/* h of the central difference for the exponent */
#define EXPONENT_STEP 1e-3
/* Upper bound of slopes in V: the slope of a peaked kernel is infinite for equal points. Distinct float points have
   smaller slopes for exponents of at least 0.5. */
#define LARGEST_SLOPE  1e12
#define LARGEST_JITTER 1e-5 /* upper bound of the jitter of the equations */
/* number of partial sums over rows; fixed, so that results do not depend on the number of threads */
enum { PARTS = 16 };

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

mercer_status mrc_gradient_open(mrc_gradient_buffer *self, mrc_scope *scope, mrc_backend *backend, const mrc_draw *like,
                                int64_t fitted, int64_t centers)
{
    static const char what[] = "steps of the search";
    int64_t m = like->x.rows, p = centers, c = like->y.cols, k = like->plain.data ? like->plain.cols : 0;
    int64_t mapped = k > 0 ? m : 0;
    mercer_dtype points = like->x.dtype;
    *self = (mrc_gradient_buffer){.backend = backend, .m = m, .n = fitted, .p = p, .d = like->x.cols, .c = c};
    self->on_host = mrc_backend_memory(backend) == MRC_HOST;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
        mercer_dtype dtype;
    } all[] = {{&self->sums, m, p, points},           {&self->k, m, p, MERCER_F64},
               {&self->y, m, c, MERCER_F64},          {&self->w, m, p, points},
               {&self->other, m, p, points},          {&self->zz, p, p, MERCER_F64},
               {&self->factor, p, p, MERCER_F64},     {&self->residual, m, c, MERCER_F64},
               {&self->left, m, 2 * c, MERCER_F64},   {&self->right, p, 2 * c, MERCER_F64},
               {&self->left_p, m, 2 * c, points},     {&self->right_p, p, 2 * c, points},
               {&self->pairs, mapped, p, MERCER_F64}, {&self->products, mapped, k, MERCER_F64},
               {&self->plain, mapped, k, MERCER_F64}, {&self->moment, k, k, MERCER_F64}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(
            mrc_scope_matrix(scope, backend, all[i].matrix, all[i].rows, mrc_max(1, all[i].cols), all[i].dtype, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->roots, m, sizeof *self->roots, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->numbers, mrc_max(m, mrc_max(2 * p, c)), sizeof *self->numbers, what));
    if (k > 0 && !self->on_host) MRC_TRY(mrc_scope_alloc(scope, &self->host, 3 * m * p, sizeof *self->host, what));
    return mrc_scope_alloc(scope, &self->parts, k > 0 ? PARTS * p : 1, sizeof *self->parts, what);
}

/* ---- The fit ----------------------------------------------------------------------------------------------------- */

/* Sets the square roots of the weights. Sets *fitted and *held to the total weights of the training rows and of the
   held-out rows. */
static void weigh_rows(mrc_gradient_buffer *self, const double *weights, double *fitted, double *held)
{
    *fitted = *held = 0;
    for (int64_t i = 0; i < self->m; i++) {
        double w = weights ? weights[i] : 1;
        self->roots[i] = sqrt(w);
        *(i < self->n ? fitted : held) += w;
    }
}

/* Evaluates a kernel function for all pairs of rows and centers into `out`, in the type of the points. Host backends
   reuse the distances that they have saved. */
static mercer_status evaluate_function(const mrc_gradient_buffer *self, const mercer_kernel *kernel,
                                       const mrc_draw *draw, const mercer_matrix *out)
{
    const mrc_backend_ops *ops = self->backend->ops;
    mercer_matrix z = mrc_rows(&draw->x, 0, self->p);
    mrc_pair pair = {.kernel = kernel, .x = &draw->x, .z = &z};
    if (self->on_host) return ops->kernel_of_sums(self->backend, kernel, &self->sums, out);
    return ops->kernel_eval(self->backend, &pair, out);
}

/* Computes K and Y, multiplied by the square roots of the weights, and K_ZZ. */
static mercer_status evaluate_error(const mrc_gradient_buffer *self, const mercer_kernel *kernel, const mrc_draw *draw)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    mercer_matrix z = mrc_rows(&draw->x, 0, self->p), own = mrc_rows(&self->k, 0, self->p);
    mrc_pair pair = {.kernel = kernel, .x = &draw->x, .z = &z};
    if (self->on_host) MRC_TRY(ops->kernel_sums(backend, &pair, &self->sums));
    MRC_TRY(evaluate_function(self, kernel, draw, &self->other));
    MRC_TRY(ops->copy(backend, &self->k, &self->other));
    MRC_TRY(ops->copy(backend, &self->zz, &own)); /* the centers are the first rows */
    MRC_TRY(ops->copy(backend, &self->y, &draw->y));
    if (!draw->weights) return MERCER_OK;
    MRC_TRY(ops->scale_rows(backend, &self->k, self->roots));
    return ops->scale_rows(backend, &self->y, self->roots);
}

/* Forms M with a jitter relative to the mean of its diagonal, and factorizes it. */
static mercer_status factorize_with(const mrc_gradient_buffer *self, double penalty, double jitter, bool *solved)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    mercer_matrix fitted = mrc_rows(&self->k, 0, self->n);
    MRC_TRY(ops->copy(backend, &self->factor, &self->zz));
    MRC_TRY(ops->gram(backend, 1, &fitted, penalty, &self->factor));
    return mrc_small_factorize(backend, &self->factor, &self->factor, 0, jitter, self->numbers, solved);
}

/* Factorizes M, with larger jitters if necessary. Kernel values of points in float are rounded, so K_ZZ of a smooth
   kernel with a large bandwidth can have negative eigenvalues larger than the default jitter. With only the default
   jitter, every step of such a descent would be rejected. */
static mercer_status factorize_fold(const mrc_gradient_buffer *self, double penalty, bool *solved)
{
    *solved = false;
    for (double jitter = MRC_SMALL_JITTER; !*solved && jitter < LARGEST_JITTER; jitter *= 100)
        MRC_TRY(factorize_with(self, penalty, jitter, solved));
    return MERCER_OK;
}

/* Computes to = M^-1 rows' values (p, c), for kernel rows (k, p) and values (k, c). */
static mercer_status solve_fold(const mrc_gradient_buffer *self, const mercer_matrix *rows, const mercer_matrix *values,
                                const mercer_matrix *to)
{
    const mrc_backend_ops *ops = self->backend->ops;
    mrc_gemm product = {.transpose_a = true, .alpha = 1, .a = rows, .b = values, .c = to};
    MRC_TRY(ops->gemm(self->backend, &product));
    MRC_TRY(ops->triangular_solve(self->backend, &self->factor, false, to));
    return ops->triangular_solve(self->backend, &self->factor, true, to);
}

/* Computes alpha, the residuals K alpha - Y, the error and U. weight: total weight of the held-out rows, times c.
   Residuals of held-out rows are multiplied by 2 / weight afterwards, which makes them R. */
static mercer_status fit_weights(const mrc_gradient_buffer *self, double weight, double *error)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t n = self->n, rest = self->m - n;
    mercer_matrix fitted = mrc_rows(&self->k, 0, n), y = mrc_rows(&self->y, 0, n), others = mrc_rows(&self->k, n, rest),
                  off = mrc_rows(&self->residual, n, rest), alpha = mrc_columns(&self->right, 0, self->c),
                  u = mrc_columns(&self->right, self->c, self->c);
    MRC_TRY(solve_fold(self, &fitted, &y, &alpha));
    MRC_TRY(ops->copy(backend, &self->residual, &self->y));
    mrc_gemm residuals = {.alpha = 1, .beta = -1, .a = &self->k, .b = &alpha, .c = &self->residual};
    MRC_TRY(ops->gemm(backend, &residuals));
    MRC_TRY(ops->column_dots(backend, &off, &off, self->numbers));
    *error = 0;
    for (int64_t l = 0; l < self->c; l++) *error += self->numbers[l] / weight;
    MRC_TRY(ops->axpby(backend, 2 / weight, &off, 0, &off));
    return solve_fold(self, &others, &off, &u);
}

/* ---- The slope --------------------------------------------------------------------------------------------------- */

/* Computes left = [q | t]. */
static mercer_status join_parts(const mrc_gradient_buffer *self, double penalty, bool weighted)
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

/* Computes w = left right'. The type of the points is accurate enough, because W is multiplied by kernel values and
   slopes of that type. */
static mercer_status form_weights(const mrc_gradient_buffer *self)
{
    const mrc_backend_ops *ops = self->backend->ops;
    MRC_TRY(ops->copy(self->backend, &self->left_p, &self->left));
    MRC_TRY(ops->copy(self->backend, &self->right_p, &self->right));
    mrc_gemm job = {.transpose_b = true, .alpha = 1, .a = &self->left_p, .b = &self->right_p, .c = &self->w};
    return ops->gemm(self->backend, &job);
}

/* Computes *out = sum_ij W_ij K_ij for another kernel. */
static mercer_status sum_products(const mrc_gradient_buffer *self, const mercer_kernel *kernel, const mrc_draw *draw,
                                  double *out)
{
    MRC_TRY(evaluate_function(self, kernel, draw, &self->other));
    MRC_TRY(self->backend->ops->column_dots(self->backend, &self->w, &self->other, self->numbers));
    *out = 0;
    for (int64_t j = 0; j < self->p; j++) *out += self->numbers[j];
    return MERCER_OK;
}

/* Computes dE/dgamma by a central difference. */
static mercer_status find_exponent(const mrc_gradient_buffer *self, const mercer_kernel *kernel, const mrc_draw *draw,
                                   double *out)
{
    double above, below;
    mercer_kernel moved = *kernel;
    moved.gamma = kernel->gamma + EXPONENT_STEP;
    MRC_TRY(sum_products(self, &moved, draw, &above));
    moved.gamma = kernel->gamma - EXPONENT_STEP;
    MRC_TRY(sum_products(self, &moved, draw, &below));
    *out = (above - below) / (2 * EXPONENT_STEP);
    return MERCER_OK;
}

/* Computes dE/dlog l. Overwrites part of the residuals. */
static mercer_status find_ridge(const mrc_gradient_buffer *self, double penalty, double *out)
{
    const mrc_backend_ops *ops = self->backend->ops;
    mercer_matrix alpha = mrc_columns(&self->right, 0, self->c), u = mrc_columns(&self->right, self->c, self->c),
                  /* reuse the memory of the residuals, which are not needed any more */
        product = mrc_block(&self->residual, 0, 0, self->p, self->c);
    mrc_gemm job = {.alpha = 1, .a = &self->zz, .b = &alpha, .c = &product};
    MRC_TRY(ops->gemm(self->backend, &job));
    MRC_TRY(ops->column_dots(self->backend, &u, &product, self->numbers));
    *out = 0;
    for (int64_t l = 0; l < self->c; l++) *out -= penalty * self->numbers[l];
    return MERCER_OK;
}

/* Computes dE/ds for all coordinates. self->other has the slopes. */
static mercer_status find_scales(const mrc_gradient_buffer *self, const mercer_kernel *kernel, const mrc_draw *draw,
                                 double *out)
{
    mercer_matrix z = mrc_rows(&draw->x, 0, self->p);
    mrc_feature_sums sums = {
        .norm = mrc_kernel_norm(kernel) == 1 ? 1 : 2, .x = &draw->x, .z = &z, .a = &self->w, .b = &self->other};
    MRC_TRY(self->backend->ops->feature_sums(self->backend, &sums, out));
    for (int64_t k = 0; k < self->d; k++) out[k] = -out[k];
    return MERCER_OK;
}

/* Arguments of form_pairs, which computes V from W and the slopes in host memory. Rows are summed in PARTS parts, so
   that sums do not depend on the number of threads. */
typedef struct pair_job {
    mercer_matrix w, psi, v; /* (m, p) */
    double *rows, *columns;  /* (m), (PARTS, p): halved row and column sums */
} pair_job;

/* Computes one part of V. The loop over float rows is separate so that the compiler can vectorize it. */
static void form_pairs(void *argument, int64_t part, int worker)
{
    const pair_job *job = argument;
    (void)worker;
    int64_t m = job->v.rows, p = job->v.cols, first = m * part / PARTS, end = m * (part + 1) / PARTS;
    double *columns = job->columns + part * p;
    bool single = job->w.dtype == MERCER_F32;
    for (int64_t j = 0; j < p; j++) columns[j] = 0;
    for (int64_t i = first; i < end; i++) {
        const float *w = mrc_row(&job->w, i), *psi = mrc_row(&job->psi, i);
        double *v = mrc_row(&job->v, i), sum = 0;
        for (int64_t j = 0; j < p && single; j++) {
            double slope = (double)psi[j];
            v[j] = -(double)w[j] * (slope < LARGEST_SLOPE ? slope : LARGEST_SLOPE);
        }
        for (int64_t j = 0; j < p && !single; j++)
            v[j] = -mrc_load(&job->w, i, j) * fmin(mrc_load(&job->psi, i, j), LARGEST_SLOPE);
        for (int64_t j = 0; j < p; j++) columns[j] += v[j] / 2;
        for (int64_t j = 0; j < p; j++) sum += v[j] / 2;
        job->rows[i] = sum;
    }
}

/* Computes pairs = V in the backend's memory, and its halved row and column sums, rows (m) and columns (p). */
static mercer_status make_pairs(const mrc_gradient_buffer *self, double *rows, double *columns)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t m = self->m, p = self->p;
    pair_job job = {.w = self->w, .psi = self->other, .v = self->pairs, .rows = rows, .columns = self->parts};
    if (self->host) {
        job.w = mrc_view(self->host, m, p, self->w.dtype), job.v = mrc_view(self->host + m * p, m, p, MERCER_F64);
        job.psi = mrc_view(self->host + 2 * m * p, m, p, self->other.dtype);
        MRC_TRY(ops->copy(backend, &job.w, &self->w));
        MRC_TRY(ops->copy(backend, &job.psi, &self->other));
    }
    mrc_parallel_for(backend->context->threads, PARTS, form_pairs, &job);
    for (int64_t j = 0; j < p; j++) columns[j] = 0;
    for (int part = 0; part < PARTS; part++)
        for (int64_t j = 0; j < p; j++) columns[j] += self->parts[part * p + j];
    return self->host ? ops->copy(backend, &self->pairs, &job.v) : MERCER_OK;
}

/* Computes S = B + B' into out (k, k), host memory. The three products that form B use the same buffer y in turn. */
static mercer_status find_moment(const mrc_gradient_buffer *self, const mrc_draw *draw, double *out)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t k = self->plain.cols, p = self->p;
    const mercer_matrix *x = &self->plain, *y = &self->products;
    mercer_matrix z = mrc_rows(x, 0, p), shown = mrc_view(out, k, k, MERCER_F64), own = mrc_rows(y, 0, p);
    MRC_TRY(ops->copy(backend, x, &draw->plain));
    MRC_TRY(make_pairs(self, self->roots, self->numbers));
    mrc_gemm spread = {.alpha = -1, .a = &self->pairs, .b = &z, .c = y};
    MRC_TRY(ops->gemm(backend, &spread)); /* y = -V Z */
    mrc_gemm first = {.transpose_a = true, .alpha = 1, .a = x, .b = y, .c = &self->moment};
    MRC_TRY(ops->gemm(backend, &first));
    mrc_gemm more = {.transpose_a = true, .alpha = 1, .beta = 1, .a = x, .b = y, .c = &self->moment};
    MRC_TRY(ops->copy(backend, y, x));
    MRC_TRY(ops->scale_rows(backend, y, self->roots)); /* y = D_r X / 2 */
    MRC_TRY(ops->gemm(backend, &more));
    MRC_TRY(ops->copy(backend, &own, &z));
    MRC_TRY(ops->scale_rows(backend, &own, self->numbers)); /* y = D_c Z / 2 */
    mrc_gemm last = {.transpose_a = true, .alpha = 1, .beta = 1, .a = &z, .b = &own, .c = &self->moment};
    MRC_TRY(ops->gemm(backend, &last));
    MRC_TRY(ops->symmetrize(backend, &self->moment)); /* (B + B') / 2 */
    MRC_TRY(ops->copy(backend, &shown, &self->moment));
    for (int64_t i = 0; i < k * k; i++) out[i] *= 2;
    return MERCER_OK;
}

mercer_status mrc_error_gradient_find(mrc_gradient_buffer *self, const mercer_kernel *kernel, double ridge,
                                      bool by_exponent, const mrc_draw *draw, mrc_error_gradient *out)
{
    double fitted, held;
    mercer_kernel slope;
    weigh_rows(self, draw->weights, &fitted, &held);
    MRC_TRY(evaluate_error(self, kernel, draw));
    MRC_TRY(factorize_fold(self, ridge * fitted, &out->solved));
    if (!out->solved) return MERCER_OK;
    MRC_TRY(fit_weights(self, held * (double)self->c, &out->error));
    MRC_TRY(join_parts(self, ridge * fitted, draw->weights != NULL));
    MRC_TRY(form_weights(self));
    MRC_TRY(find_ridge(self, ridge * fitted, &out->ridge));
    out->exponent = 0;
    if (by_exponent) MRC_TRY(find_exponent(self, kernel, draw, &out->exponent));
    mrc_kernel_slope(kernel, &slope);
    MRC_TRY(evaluate_function(self, &slope, draw, &self->other));
    return draw->plain.data ? find_moment(self, draw, out->moment) : find_scales(self, kernel, draw, out->scales);
}
