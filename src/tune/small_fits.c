/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small ridge regressions, judged on rows held back:
 *
 *   for each fold f:       G_f = K_f' K_f,  B_f = K_f' Y_f         K_f = K(X_f, Z), rows times the root of their weight
 *   for each fold v that is judged, each ridge l:
 *     alpha = (G + l w K(Z, Z) + 1e-10 tr(G) / p I)^-1 B,   G, B, w sums over the other folds
 *     e_l  += |K(X_v, Z) alpha - Y_v|^2
 *
 * The Gram matrix of the others is the sum less the fold's own, so k folds cost one pass over the rows. Closed forms
 * are in closed_form.c. Memory: (folds + 3) p^2 doubles and some rows of p.
 */
#include "tune/small_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

#define JITTER 1e-10

/* ---- Room -------------------------------------------------------------------------------------------------------- */

static int64_t most_rows(const mrc_small_rows *rows)
{
    int64_t most = 0;
    for (int f = 0; f < rows->count; f++) most = mrc_max(most, rows->folds[f].count);
    return most;
}

static bool is_closed(const mrc_small_fits *self)
{
    return self->criterion == MRC_LOO || self->criterion == MRC_GCV;
}

/* Matrices one behind the other. */
static mercer_status make_room(mrc_small_fits *self)
{
    int64_t p = self->p, c = self->rows->y.cols, columns = c * self->count;
    int64_t held = is_closed(self) ? MRC_SMALL_BLOCK : most_rows(self->rows), grams = self->grams;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&self->zz, p, p},
               {&self->system, p, p},
               {&self->total, p, p},
               {&self->gram, grams * p, p},
               {&self->rhs, grams * p, c},
               {&self->total_rhs, p, c},
               {&self->block, MRC_SMALL_BLOCK, p},
               {&self->targets, MRC_SMALL_BLOCK, c},
               {&self->weights, p, columns},
               {&self->answers, held, columns},
               {&self->values, 1, p}};
    int64_t numbers = 0;
    void *memory;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) numbers += all[i].rows * all[i].cols;
    MRC_TRY(mrc_alloc(self->context, &memory, numbers, sizeof(double), "small fits"));
    self->memory = memory;
    double *at = self->memory;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].matrix = mrc_view(at, all[i].rows, all[i].cols, MERCER_F64);
        at += all[i].rows * all[i].cols;
    }
    if (self->rows->x.dtype == MERCER_F64) return MERCER_OK;
    MRC_TRY(mrc_alloc(self->context, &self->single, (int64_t)MRC_SMALL_BLOCK * p, sizeof(float), "kernel values"));
    return MERCER_OK;
}

mercer_status mrc_small_fits_create(mrc_small_fits **out, mercer_context *context, const mrc_small_rows *rows,
                                    int64_t p, mrc_criterion criterion, const double *ridges, int count)
{
    MRC_OWNED(mrc_release_small_fits) mrc_small_fits *self = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "small fits"));
    *self = (mrc_small_fits){
        .context = context, .rows = rows, .p = p, .criterion = criterion, .ridges = ridges, .count = count};
    self->grams = criterion == MRC_KFOLD ? rows->count : 1;
    MRC_TRY(make_room(self));
    *out = self;
    self = NULL;
    return MERCER_OK;
}

void mrc_small_fits_free(mrc_small_fits *self)
{
    if (!self) return;
    MRC_FREE_ALL(self->context, self->single, self->memory, self);
}

double mrc_small_fits_flops(const mrc_small_fits *self)
{
    double p = (double)self->p, c = (double)self->rows->y.cols, n = 0, held = 0, judged = 0;
    for (int f = 0; f < self->rows->count; f++) {
        bool last = f == self->rows->count - 1, gram = self->criterion != MRC_HOLDOUT || !last;
        double rows = (double)self->rows->folds[f].count;
        n += gram ? rows : 0;
        held += gram && self->criterion != MRC_KFOLD ? 0 : rows;
        judged += gram && self->criterion != MRC_KFOLD ? 0 : 1;
    }
    if (is_closed(self)) return (self->criterion == MRC_LOO ? 5 : 2) * n * p * p + 10 * p * p * p;
    return n * p * (p + 2 * c) + self->count * (judged * (p * p * p / 3 + 2 * p * p * c) + 2 * held * p * c);
}

/* ---- Equations --------------------------------------------------------------------------------------------------- */

double mrc_small_weight(const mrc_small_fits *self, mrc_span rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows.count && self->rows->weights; i++) sum += self->rows->weights[rows.first + i];
    return self->rows->weights ? sum : (double)rows.count;
}

/* Rows of the matrix times the root of their weight. */
static void weigh(const mrc_small_fits *self, int64_t first, const mercer_matrix *matrix)
{
    for (int64_t i = 0; i < matrix->rows && self->rows->weights; i++)
        for (int64_t k = 0; k < matrix->cols; k++)
            mrc_store(matrix, i, k, mrc_load(matrix, i, k) * sqrt(self->rows->weights[first + i]));
}

mercer_status mrc_small_block(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block,
                              mercer_matrix *targets)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix x = mrc_rows(&self->x, first, count), y = mrc_rows(&self->rows->y, first, count);
    mrc_pair pair = {.kernel = &self->kernel, .x = &x, .z = &self->z};
    *block = mrc_rows(&self->block, 0, count), *targets = mrc_rows(&self->targets, 0, count);
    if (self->single) {
        mercer_matrix single = mrc_view(self->single, count, self->p, MERCER_F32);
        MRC_TRY(backend->ops->kernel_eval(backend, &pair, &single));
        MRC_TRY(backend->ops->copy(backend, block, &single));
    } else {
        MRC_TRY(backend->ops->kernel_eval(backend, &pair, block));
    }
    MRC_TRY(backend->ops->copy(backend, targets, &y));
    weigh(self, first, block);
    weigh(self, first, targets);
    return MERCER_OK;
}

/* The part of block' block on and below the diagonal, by columns of blocks. */
mercer_status mrc_small_add_gram(mrc_small_fits *self, const mercer_matrix *block, double beta,
                                 const mercer_matrix *gram)
{
    enum { WIDTH = 256 };
    mrc_backend *backend = self->context->backend;
    for (int64_t at = 0; at < self->p; at += WIDTH) {
        int64_t count = mrc_min(WIDTH, self->p - at);
        mercer_matrix own = mrc_columns(block, at, count), below = mrc_columns(block, at, self->p - at),
                      sum = mrc_block(gram, at, at, self->p - at, count);
        mrc_gemm job = {true, false, 1, beta, &below, &own, &sum};
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    return MERCER_OK;
}

void mrc_small_mirror(const mercer_matrix *gram)
{
    for (int64_t i = 0; i < gram->rows; i++) {
        double *row = mrc_row(gram, i);
        for (int64_t j = i + 1; j < gram->cols; j++) row[j] = ((const double *)mrc_row(gram, j))[i];
    }
}

/* G and B of the rows of a fold, added to what is there. */
static mercer_status sum_fold(mrc_small_fits *self, mrc_span rows, bool added, const mercer_matrix *gram,
                              const mercer_matrix *rhs)
{
    mrc_backend *backend = self->context->backend;
    for (int64_t done = 0; done < rows.count; done += MRC_SMALL_BLOCK) {
        int64_t count = mrc_min(MRC_SMALL_BLOCK, rows.count - done);
        mercer_matrix block, y;
        double beta = added || done > 0 ? 1 : 0;
        MRC_TRY(mrc_small_block(self, rows.first + done, count, &block, &y));
        MRC_TRY(mrc_small_add_gram(self, &block, beta, gram));
        mrc_gemm job = {true, false, 1, beta, &block, &y, rhs};
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    return MERCER_OK;
}

static mercer_matrix gram_of(const mrc_small_fits *self, int f)
{
    return mrc_rows(&self->gram, f * self->p, self->p);
}

static mercer_matrix rhs_of(const mrc_small_fits *self, int f)
{
    return mrc_rows(&self->rhs, f * self->p, self->p);
}

/* total += sign x part, element by element. */
static void add_matrix(const mercer_matrix *total, const mercer_matrix *part, double sign)
{
    for (int64_t i = 0; i < total->rows; i++) {
        double *to = mrc_row(total, i);
        const double *from = mrc_row(part, i);
        for (int64_t j = 0; j < total->cols; j++) to[j] += sign * from[j];
    }
}

/* The folds' own sums, and those of all that are fitted to. */
static mercer_status make_equations(mrc_small_fits *self)
{
    mrc_backend *backend = self->context->backend;
    const mrc_small_rows *rows = self->rows;
    mrc_pair pair = {.kernel = &self->kernel, .x = &self->z, .z = &self->z};
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &self->zz));
    MRC_TRY(backend->ops->clear(backend, &self->total));
    MRC_TRY(backend->ops->clear(backend, &self->total_rhs));
    self->mass = 0;
    for (int f = 0; f < rows->count; f++) {
        if (self->criterion == MRC_HOLDOUT && f == rows->count - 1) break;
        self->mass += mrc_small_weight(self, rows->folds[f]);
        if (self->criterion == MRC_HOLDOUT) {
            MRC_TRY(sum_fold(self, rows->folds[f], f > 0, &self->total, &self->total_rhs));
            continue;
        }
        mercer_matrix gram = gram_of(self, f), rhs = rhs_of(self, f);
        MRC_TRY(sum_fold(self, rows->folds[f], false, &gram, &rhs));
        mrc_small_mirror(&gram);
        add_matrix(&self->total, &gram, 1);
        add_matrix(&self->total_rhs, &rhs, 1);
    }
    if (self->criterion == MRC_HOLDOUT) mrc_small_mirror(&self->total);
    return MERCER_OK;
}

/* ---- Solutions --------------------------------------------------------------------------------------------------- */

/* The weights of one ridge, into their columns, of rows that weigh so much; *solved: it was positive definite. */
static mercer_status solve(mrc_small_fits *self, double ridge, double mass, const mercer_matrix *weights, bool *solved)
{
    mrc_backend *backend = self->context->backend;
    int64_t p = self->p;
    double trace = 0;
    for (int64_t j = 0; j < p; j++) trace += mrc_load(&self->total, j, j);
    for (int64_t i = 0; i < p; i++) {
        const double *g = mrc_row(&self->total, i), *k = mrc_row(&self->zz, i);
        double *a = mrc_row(&self->system, i);
        for (int64_t j = 0; j < p; j++) a[j] = g[j] + ridge * mass * k[j];
        a[i] += JITTER * trace / (double)p;
    }
    mercer_status status = backend->ops->cholesky(backend, &self->system);
    *solved = status == MERCER_OK;
    if (!*solved) return status == MERCER_ERROR_NUMERIC ? MERCER_OK : status;
    MRC_TRY(backend->ops->copy(backend, weights, &self->total_rhs));
    MRC_TRY(backend->ops->triangular_solve(backend, &self->system, false, weights));
    return backend->ops->triangular_solve(backend, &self->system, true, weights);
}

/* Squared errors of the rows, by ridge, added to those of other folds. */
static void add_errors(const mrc_small_fits *self, mrc_span rows, const mercer_matrix *answers, const bool *solved,
                       double *errors)
{
    int64_t c = self->rows->y.cols;
    for (int r = 0; r < self->count; r++) {
        double sum = 0;
        for (int64_t i = 0; i < rows.count; i++)
            for (int64_t l = 0; l < c; l++) {
                double off = mrc_load(answers, i, r * c + l) - mrc_load(&self->rows->y, rows.first + i, l);
                sum += (self->rows->weights ? self->rows->weights[rows.first + i] : 1) * off * off;
            }
        errors[r] += solved[r] ? sum : (double)INFINITY;
    }
}

/* All ridges, fitted to what `total` holds, on the rows of one fold. */
static mercer_status judge_fold(mrc_small_fits *self, mrc_span rows, double mass, double *errors)
{
    mrc_backend *backend = self->context->backend;
    int64_t c = self->rows->y.cols;
    bool solved[MRC_RIDGES] = {false};
    MRC_TRY(backend->ops->clear(backend, &self->weights));
    for (int r = 0; r < self->count; r++) {
        mercer_matrix weights = mrc_columns(&self->weights, r * c, c);
        MRC_TRY(solve(self, self->ridges[r], mass, &weights, &solved[r]));
    }
    mercer_matrix x = mrc_rows(&self->x, rows.first, rows.count), answers = mrc_rows(&self->answers, 0, rows.count);
    mrc_pair pair = {.kernel = &self->kernel, .x = &x, .z = &self->z};
    MRC_TRY(backend->ops->kernel_matmul(backend, &pair, &self->weights, &answers, false));
    add_errors(self, rows, &answers, solved, errors);
    return MERCER_OK;
}

static mercer_status judge(mrc_small_fits *self, double *errors)
{
    const mrc_small_rows *rows = self->rows;
    double held = 0;
    for (int r = 0; r < self->count; r++) errors[r] = 0;
    for (int f = self->criterion == MRC_HOLDOUT ? rows->count - 1 : 0; f < rows->count; f++) {
        double own = mrc_small_weight(self, rows->folds[f]);
        held += own;
        if (self->criterion == MRC_HOLDOUT) {
            MRC_TRY(judge_fold(self, rows->folds[f], self->mass, errors));
            continue;
        }
        mercer_matrix gram = gram_of(self, f), rhs = rhs_of(self, f);
        add_matrix(&self->total, &gram, -1);
        add_matrix(&self->total_rhs, &rhs, -1);
        MRC_TRY(judge_fold(self, rows->folds[f], self->mass - own, errors));
        add_matrix(&self->total, &gram, 1);
        add_matrix(&self->total_rhs, &rhs, 1);
    }
    for (int r = 0; r < self->count; r++) errors[r] /= held * (double)rows->y.cols;
    return MERCER_OK;
}

mercer_status mrc_small_fits_try(mrc_small_fits *self, const mercer_kernel *kernel, const mercer_matrix *x,
                                 const mercer_matrix *z, double *errors)
{
    self->kernel = *kernel;
    self->x = *x, self->z = *z;
    if (is_closed(self)) return mrc_small_closed(self, errors);
    MRC_TRY(make_equations(self));
    return judge(self, errors);
}

mercer_status mrc_small_fits_weights(mrc_small_fits *self, double ridge, const mercer_matrix *weights)
{
    bool solved;
    if (is_closed(self)) return mrc_small_closed_weights(self, ridge, weights);
    MRC_TRY(solve(self, ridge, self->mass, weights, &solved));
    if (solved) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_NUMERIC, "a small fit has equations that are not positive definite");
}
