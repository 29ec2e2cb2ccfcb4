/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cross-validated error of kernel ridge regression, with all folds from one factorization. K is the kernel matrix
 * of all n rows, with rows and columns multiplied by the square roots of the weights. Y has the targets, with rows
 * multiplied by the same numbers. l is the ridge, and w is the total weight times 1 - 1 / folds. I_v has the columns of
 * the identity for the rows of fold v:
 *
 *   L L' = K + (l w + 1e-10 tr(K) / n) I      F_v = L^-1 I_v      t = L^-1 Y      Y_v - f_v = (F_v' F_v)^-1 F_v' t
 *
 * F_v' F_v is the diagonal block of the inverse for the rows of fold v. It gives the residual of a fit without these
 * rows (the leave-one-out identity for blocks). Rows of F_v before fold v are 0. Cost per ridge: 2 n^3 / 3 + n^3 / (2
 * folds) flops; one fit per fold would take folds n^3 / 3. Memory: 2 n^2 + (n + n_v) n_v doubles.
 */
#include "search/small_fits.h"

#include "core/matrix.h"

#include <math.h>

typedef struct validation {
    mrc_backend *backend;
    const mrc_small_rows *rows;
    mercer_matrix k, factor;   /* (n, n) */
    mercer_matrix y, t;        /* (n, c) */
    mercer_matrix part, block; /* (n, most), (most, most): F_v and F_v' F_v; most: size of the largest fold */
    mercer_matrix residual;    /* (most, c) */
    double *numbers;           /* (max(2 n, c)) scratch space */
} validation;

/* Allocates all matrices, in double: the residuals of nearly interpolating fits are differences of close numbers. */
static mercer_status open_matrices(validation *self, mrc_scope *scope)
{
    static const char what[] = "cross-validation";
    const mrc_folds *folds = &self->rows->folds;
    int64_t n = self->rows->x.rows, c = self->rows->y.cols, most = 1;
    for (int f = 0; f < folds->count; f++) most = mrc_max(most, folds->start[f + 1] - folds->start[f]);
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&self->k, n, n},       {&self->factor, n, n},      {&self->y, n, c},          {&self->t, n, c},
               {&self->part, n, most}, {&self->block, most, most}, {&self->residual, most, c}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(mrc_scope_reserve(scope, self->backend, all[i].matrix, all[i].rows, all[i].cols, MERCER_F64, what));
    return mrc_scope_alloc(scope, &self->numbers, mrc_max(2 * n, c), sizeof *self->numbers, what);
}

/* Computes K and Y, multiplied by the square roots of the weights. Sets *mass to the total weight. */
static mercer_status evaluate_folds(const validation *self, const mercer_kernel *kernel, double *mass)
{
    mrc_backend *backend = self->backend;
    const mrc_small_rows *rows = self->rows;
    mrc_pair pair = {.kernel = kernel, .x = &rows->x, .z = &rows->x};
    *mass = (double)rows->x.rows;
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &self->k));
    MRC_TRY(backend->ops->copy(backend, &self->y, &rows->y));
    if (!rows->weights) return MERCER_OK;
    *mass = 0;
    for (int64_t i = 0; i < rows->x.rows; i++) {
        *mass += rows->weights[i];
        self->numbers[i] = sqrt(rows->weights[i]);
    }
    MRC_TRY(backend->ops->scale_rows(backend, &self->k, self->numbers));
    MRC_TRY(backend->ops->scale_columns(backend, &self->k, self->numbers));
    return backend->ops->scale_rows(backend, &self->y, self->numbers);
}

/* Factorizes K with the penalty added to its diagonal, and computes t. Sets *solved to whether the factorization
   exists. */
static mercer_status fit_fold(const validation *self, double penalty, bool *solved)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(backend->ops->copy(backend, &self->factor, &self->k));
    MRC_TRY(mrc_small_factorize(backend, &self->factor, &self->k, penalty, MRC_SMALL_JITTER, self->numbers, solved));
    if (!*solved) return MERCER_OK;
    MRC_TRY(backend->ops->copy(backend, &self->t, &self->y));
    return backend->ops->triangular_solve(backend, &self->factor, false, &self->t);
}

/* Adds to *sum the squared residuals of the fold that begins at row a and has k rows. Only rows a, a + 1, ... of F_v
   are computed, because all rows before a are 0. */
static mercer_status add_fold(const validation *self, int64_t a, int64_t k, double *sum, bool *solved)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t rest = self->k.rows - a, c = self->y.cols, bad;
    mercer_matrix part = mrc_block(&self->part, 0, 0, rest, k), square = mrc_rows(&part, 0, k),
                  block = mrc_block(&self->block, 0, 0, k, k), residual = mrc_rows(&self->residual, 0, k),
                  t = mrc_rows(&self->t, a, rest), factor = mrc_block(&self->factor, a, a, rest, rest);
    mrc_gemm product = {.transpose_a = true, .alpha = 1, .a = &part, .b = &t, .c = &residual};
    MRC_TRY(ops->clear(backend, &part));
    MRC_TRY(mrc_set_identity(backend, &square));
    MRC_TRY(ops->triangular_solve(backend, &factor, false, &part));
    MRC_TRY(ops->gram(backend, 1, &part, 0, &block));
    MRC_TRY(ops->gemm(backend, &product));
    MRC_TRY(ops->cholesky(backend, &block, &bad));
    *solved = bad < 0;
    if (!*solved) return MERCER_OK;
    MRC_TRY(ops->triangular_solve(backend, &block, false, &residual));
    MRC_TRY(ops->triangular_solve(backend, &block, true, &residual));
    MRC_TRY(ops->column_dots(backend, &residual, &residual, self->numbers));
    for (int64_t l = 0; l < c; l++) *sum += self->numbers[l];
    return MERCER_OK;
}

/* Computes the sum of the squared residuals of all folds for one ridge. */
static mercer_status score_fold(const validation *self, double penalty, double *sum, bool *solved)
{
    const mrc_folds *folds = &self->rows->folds;
    *sum = 0;
    MRC_TRY(fit_fold(self, penalty, solved));
    for (int f = 0; f < folds->count && *solved; f++) {
        int64_t first = folds->start[f], count = folds->start[f + 1] - first;
        if (count > 0) MRC_TRY(add_fold(self, first, count, sum, solved));
    }
    return MERCER_OK;
}

mercer_status mrc_cross_validate(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                                 const double *ridges, int count, double *errors)
{
    validation self = {.backend = context->backend, .rows = rows};
    double mass, share = 1 - 1 / (double)rows->folds.count;
    MRC_SCOPE(scope, context);
    MRC_TRY(open_matrices(&self, &scope));
    MRC_TRY(evaluate_folds(&self, kernel, &mass));
    for (int r = 0; r < count; r++) {
        bool solved;
        MRC_TRY(score_fold(&self, ridges[r] * mass * share, &errors[r], &solved));
        errors[r] = solved ? errors[r] / (mass * (double)rows->y.cols) : (double)INFINITY;
    }
    return MERCER_OK;
}
