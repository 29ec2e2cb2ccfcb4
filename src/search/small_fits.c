/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small ridge regressions, scored on the held-out rows v:
 *
 *   G = K'K,  B = K'Y                          K = K(X, Z), rows times the square root of their weight
 *   alpha = (G + l w K(Z, Z) + 1e-10 tr(G) / p I)^-1 B
 *   e_l = |K(X_v, Z) alpha - Y_v|^2
 *
 * If all training rows are centers, alpha = (K(Z, Z) + (l w + 1e-10 tr(K) / p) I)^-1 Y. Memory: 3 p^2 doubles, and
 * blocks of 1,024 x p.
 */
#include "search/small_fits.h"

#include "core/matrix.h"

#include <math.h>

enum { BLOCK = 1024 }; /* number of rows whose kernel values are computed together */

typedef struct small_fits {
    mrc_backend *backend;
    const mrc_small_rows *rows;
    const mercer_kernel *kernel;
    mercer_matrix z;                /* (p, d) centers: the first rows */
    int64_t fitted;                 /* number of training rows */
    int count;                      /* number of ridges */
    bool is_square;                 /* all training rows are centers and have equal weights, so K'K is not needed */
    double mass;                    /* total weight of the training rows */
    mercer_matrix zz, system, gram; /* (p, p) */
    mercer_matrix rhs;              /* (p, c) */
    mercer_matrix block, targets;   /* (BLOCK, p), (BLOCK, c) */
    mercer_matrix single;           /* (BLOCK, p) f32; data is NULL if points are f64 */
    mercer_matrix weights;          /* (p, ridges c) */
    mercer_matrix answers;          /* (BLOCK, ridges c) predictions */
    mercer_matrix host_answers;     /* their copy in host memory */
    double *diagonal;               /* (2 p) scratch space */
} small_fits;

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Allocates all matrices, in double, and a block in float for kernel values of float points. */
static mercer_status open_matrices(small_fits *self, mrc_scope *scope)
{
    static const char what[] = "small fits";
    mrc_backend *backend = self->backend;
    int64_t p = self->z.rows, c = self->rows->y.cols, columns = c * self->count;
    bool single = self->rows->x.dtype != MERCER_F64;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&self->zz, p, p},
               {&self->system, p, p},
               {&self->gram, p, p},
               {&self->rhs, p, c},
               {&self->block, BLOCK, p},
               {&self->targets, BLOCK, c},
               {&self->weights, p, columns},
               {&self->answers, BLOCK, columns}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(mrc_scope_reserve(scope, backend, all[i].matrix, all[i].rows, all[i].cols, MERCER_F64, what));
    if (single) MRC_TRY(mrc_scope_reserve(scope, backend, &self->single, BLOCK, p, MERCER_F32, what));
    MRC_TRY(mrc_scope_view(scope, &self->host_answers, BLOCK, columns, MERCER_F64, what));
    return mrc_scope_alloc(scope, &self->diagonal, 2 * p, sizeof *self->diagonal, what);
}

/* ---- Equations --------------------------------------------------------------------------------------------------- */

/* Returns the total weight of rows first .. end - 1. */
static double weight_of(const mrc_small_rows *rows, int64_t first, int64_t end)
{
    double sum = 0;
    for (int64_t i = first; i < end && rows->weights; i++) sum += rows->weights[i];
    return rows->weights ? sum : (double)(end - first);
}

/* Multiplies row i of a matrix by the square root of the weight of row first + i. */
static mercer_status weigh_small_fit(const small_fits *self, int64_t first, const mercer_matrix *matrix)
{
    double roots[BLOCK];
    if (!self->rows->weights) return MERCER_OK;
    for (int64_t i = 0; i < matrix->rows; i++) roots[i] = sqrt(self->rows->weights[first + i]);
    return self->backend->ops->scale_rows(self->backend, matrix, roots);
}

/* Computes the kernel values of up to BLOCK rows. The values are evaluated in the type of the points and converted to
   double, because evaluating them in double would cost more than the fit. */
static mercer_status evaluate_small_fit(const small_fits *self, int64_t first, int64_t count, mercer_matrix *block)
{
    mrc_backend *backend = self->backend;
    mercer_matrix x = mrc_rows(&self->rows->x, first, count);
    mrc_pair pair = {.kernel = self->kernel, .x = &x, .z = &self->z};
    *block = mrc_rows(&self->block, 0, count);
    if (!self->single.data) return backend->ops->kernel_eval(backend, &pair, block);
    mercer_matrix single = mrc_rows(&self->single, 0, count);
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &single));
    return backend->ops->copy(backend, block, &single);
}

/* Adds up to BLOCK training rows to G and B. Only the lower triangle of G is computed, because the factorization reads
   nothing else. */
static mercer_status add_rows(const small_fits *self, int64_t first, int64_t count)
{
    mrc_backend *backend = self->backend;
    mercer_matrix block, from = mrc_rows(&self->rows->y, first, count), y = mrc_rows(&self->targets, 0, count);
    mrc_gemm job = {.transpose_a = true, .alpha = 1, .beta = 1, .a = &block, .b = &y, .c = &self->rhs};
    MRC_TRY(evaluate_small_fit(self, first, count, &block));
    MRC_TRY(backend->ops->copy(backend, &y, &from));
    MRC_TRY(weigh_small_fit(self, first, &block));
    MRC_TRY(weigh_small_fit(self, first, &y));
    MRC_TRY(backend->ops->gram(backend, 1, &block, 1, &self->gram));
    return backend->ops->gemm(backend, &job);
}

/* Computes the parts of the equations that all ridges share. */
static mercer_status make_equations(const small_fits *self)
{
    mrc_backend *backend = self->backend;
    mrc_pair centers = {.kernel = self->kernel, .x = &self->z, .z = &self->z};
    mercer_matrix targets = mrc_rows(&self->rows->y, 0, self->z.rows);
    MRC_TRY(backend->ops->kernel_eval(backend, &centers, &self->zz));
    if (self->is_square) return backend->ops->copy(backend, &self->rhs, &targets);
    MRC_TRY(backend->ops->clear(backend, &self->gram));
    MRC_TRY(backend->ops->clear(backend, &self->rhs));
    for (int64_t first = 0; first < self->fitted; first += BLOCK)
        MRC_TRY(add_rows(self, first, mrc_min(BLOCK, self->fitted - first)));
    return MERCER_OK;
}

/* ---- Solutions --------------------------------------------------------------------------------------------------- */

mercer_status mrc_small_factorize(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *base,
                                  double penalty, double jitter, double *diagonal, bool *solved)
{
    int64_t n = a->rows, bad;
    double trace = 0;
    mercer_matrix of_base = mrc_columns(base, 0, 1), of_a = mrc_columns(a, 0, 1),
                  base_values = mrc_view(diagonal, n, 1, MERCER_F64), values = mrc_view(diagonal + n, n, 1, MERCER_F64);
    of_base.ld = base->ld + 1, of_a.ld = a->ld + 1; /* views of the diagonals */
    MRC_TRY(backend->ops->copy(backend, &base_values, &of_base));
    MRC_TRY(backend->ops->copy(backend, &values, &of_a));
    for (int64_t i = 0; i < n; i++) trace += diagonal[i];
    for (int64_t i = 0; i < n; i++) diagonal[n + i] += penalty + jitter * trace / (double)n;
    MRC_TRY(backend->ops->copy(backend, &of_a, &values));
    MRC_TRY(backend->ops->cholesky(backend, a, &bad));
    *solved = bad < 0;
    return MERCER_OK;
}

/* Solves the equations for one ridge. Sets *solved to whether they were positive definite; if not, weights are not
   set. */
static mercer_status solve_small_fit(const small_fits *self, double ridge, const mercer_matrix *weights, bool *solved)
{
    mrc_backend *backend = self->backend;
    double penalty = ridge * self->mass;
    const mercer_matrix *base = self->is_square ? &self->zz : &self->gram;
    MRC_TRY(backend->ops->copy(backend, &self->system, base));
    if (!self->is_square) MRC_TRY(backend->ops->axpby(backend, penalty, &self->zz, 1, &self->system));
    penalty = self->is_square ? penalty : 0;
    MRC_TRY(mrc_small_factorize(backend, &self->system, base, penalty, MRC_SMALL_JITTER, self->diagonal, solved));
    if (!*solved) return MERCER_OK;
    MRC_TRY(backend->ops->copy(backend, weights, &self->rhs));
    MRC_TRY(backend->ops->triangular_solve(backend, &self->system, false, weights));
    return backend->ops->triangular_solve(backend, &self->system, true, weights);
}

/* Adds the squared errors of rows first .. first + count - 1, whose predictions are in `host_answers`, to errors
   (ridges). */
static void add_errors(const small_fits *self, int64_t first, int64_t count, double *errors)
{
    const mrc_small_rows *rows = self->rows;
    int64_t c = rows->y.cols;
    for (int r = 0; r < self->count; r++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t l = 0; l < c; l++) {
                double off = mrc_load(&self->host_answers, i, r * c + l) - mrc_load(&rows->y, first + i, l);
                errors[r] += (rows->weights ? rows->weights[first + i] : 1) * off * off;
            }
}

/* Predicts up to BLOCK held-out rows with the weights of all ridges, and adds their errors. */
static mercer_status score_small_fit(const small_fits *self, int64_t first, int64_t count, double *errors)
{
    mrc_backend *backend = self->backend;
    mercer_matrix block, answers = mrc_rows(&self->answers, 0, count),
                         host_answers = mrc_rows(&self->host_answers, 0, count);
    mrc_gemm job = {.alpha = 1, .a = &block, .b = &self->weights, .c = &answers};
    MRC_TRY(evaluate_small_fit(self, first, count, &block));
    MRC_TRY(backend->ops->gemm(backend, &job));
    MRC_TRY(backend->ops->copy(backend, &host_answers, &answers));
    add_errors(self, first, count, errors);
    return MERCER_OK;
}

mercer_status mrc_small_fits(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                             int64_t p, const double *ridges, int count, double *errors)
{
    int64_t n = mrc_folds_training(&rows->folds), end = mrc_folds_rows(&rows->folds), c = rows->y.cols;
    small_fits self = {.backend = context->backend,
                       .rows = rows,
                       .kernel = kernel,
                       .z = mrc_rows(&rows->x, 0, p),
                       .fitted = n,
                       .count = count,
                       .is_square = p == n && !rows->weights,
                       .mass = weight_of(rows, 0, n)};
    bool solved[MRC_RIDGES] = {false};
    if (!rows->folds.held_out) return mrc_cross_validate(context, rows, kernel, ridges, count, errors);
    MRC_SCOPE(scope, context);
    MRC_TRY(open_matrices(&self, &scope));
    MRC_TRY(make_equations(&self));
    /* weights of ridges that cannot be solved stay 0, so that the product with all weights is finite */
    MRC_TRY(self.backend->ops->clear(self.backend, &self.weights));
    for (int r = 0; r < count; r++) {
        mercer_matrix weights = mrc_columns(&self.weights, r * c, c);
        MRC_TRY(solve_small_fit(&self, ridges[r], &weights, &solved[r]));
        errors[r] = 0;
    }
    for (int64_t first = n; first < end; first += BLOCK)
        MRC_TRY(score_small_fit(&self, first, mrc_min(BLOCK, end - first), errors));
    for (int r = 0; r < count; r++)
        errors[r] = solved[r] ? errors[r] / (weight_of(rows, n, end) * (double)c) : (double)INFINITY;
    return MERCER_OK;
}
