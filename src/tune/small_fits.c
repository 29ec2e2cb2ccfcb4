/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small ridge regressions, judged on rows held back:
 *
 *   for each fold f:       G_f = K_f' K_f,  B_f = K_f' Y_f         K_f = K(X_f, Z), rows times the root of their weight
 *   for each fold v that is judged, each ridge l:
 *     alpha = (G + l w K(Z, Z) + 1e-10 tr(G) / p I)^-1 B,   G, B, w sums over the other folds
 *     e_l  += |K(X_v, Z) alpha - Y_v|^2
 *
 * The Gram matrix of the others is the sum less the fold's own, so k folds cost one pass over the rows. Where centers
 * are all rows that are fitted to, alpha = (K(Z, Z) + (l w + 1e-10 tr(K) / p) I)^-1 Y. Closed forms are in
 * closed_form.c. Memory: (folds + 3) p^2 doubles and some rows of p.
 */
#include "tune/small_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

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

/* Whether centers are all rows that are fitted to, and none weighs more than another. */
static bool is_whole(const mrc_small_rows *rows, int64_t p, mrc_criterion criterion)
{
    int64_t fitted = 0;
    for (int f = 0; f < rows->count - 1; f++) fitted += rows->folds[f].count;
    return rows->own_centers && criterion == MRC_HOLDOUT && !rows->weights && p == fitted;
}

/* Memory where matrices lie. */
static mercer_status take(const mrc_small_fits *self, void **out, int64_t bytes, const char *what)
{
    mrc_backend *backend = self->context->backend;
    return self->there ? backend->ops->alloc(backend, out, bytes, what) : mrc_alloc(self->context, out, bytes, 1, what);
}

static void give_back(const mrc_small_fits *self, void *memory)
{
    mrc_backend *backend = self->context->backend;
    if (!self->there)
        mrc_free(self->context, memory);
    else if (memory)
        backend->ops->free(backend, memory);
}

/* Matrices one behind the other. */
static mercer_status make_room(mrc_small_fits *self)
{
    int64_t p = self->p, c = self->rows->y.cols, columns = c * self->count;
    int64_t held = is_closed(self) ? MRC_SMALL_BLOCK : most_rows(self->rows), grams = self->grams;
    int32_t where = self->there ? self->context->backend->ops->capabilities(self->context->backend).memory : MRC_HOST;
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
               {&self->ones, p, 1},
               {&self->values, 1, p}};
    int64_t numbers = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) numbers += all[i].rows * all[i].cols;
    MRC_TRY(take(self, &self->memory, numbers * (int64_t)sizeof(double), "small fits"));
    double *at = self->memory;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].matrix = mrc_view(at, all[i].rows, all[i].cols, MERCER_F64);
        all[i].matrix->memory = where;
        at += all[i].rows * all[i].cols;
    }
    MRC_TRY(self->context->backend->ops->clear(self->context->backend, &self->gram)); /* half of it stays */
    MRC_TRY(mrc_alloc(self->context, &self->diagonal, p, sizeof(double), "small fits"));
    for (int64_t j = 0; j < p; j++) self->diagonal[j] = 1;
    mercer_matrix ones = mrc_view(self->diagonal, p, 1, MERCER_F64);
    MRC_TRY(self->context->backend->ops->copy(self->context->backend, &self->ones, &ones));
    self->shown = self->answers;
    if (self->there) {
        self->shown = mrc_view(NULL, held, columns, MERCER_F64);
        MRC_TRY(mrc_alloc(self->context, &self->shown.data, held * columns, sizeof(double), "small fits"));
    }
    if (self->rows->x.dtype == MERCER_F64) return MERCER_OK;
    MRC_TRY(take(self, &self->single_memory, MRC_SMALL_BLOCK * p * (int64_t)sizeof(float), "kernel values"));
    self->single = mrc_view(self->single_memory, MRC_SMALL_BLOCK, p, MERCER_F32);
    self->single.memory = where;
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
    self->whole = is_whole(rows, p, criterion);
    self->there = !is_closed(self) && context->backend->ops->capabilities(context->backend).memory != MRC_HOST;
    MRC_TRY(make_room(self));
    *out = self;
    self = NULL;
    return MERCER_OK;
}

void mrc_small_fits_free(mrc_small_fits *self)
{
    if (!self) return;
    give_back(self, self->single_memory);
    give_back(self, self->memory);
    if (self->there) mrc_free(self->context, self->shown.data);
    MRC_FREE_ALL(self->context, self->diagonal, self);
}

void mrc_small_gather_centers(const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *z)
{
    int folds = rows->count - (rows->held_out ? 1 : 0);
    size_t bytes = (size_t)(x->cols * mrc_dtype_size(x->dtype));
    for (int64_t i = 0, done = 0; done < z->rows; i++)
        for (int f = 0; f < folds && done < z->rows; f++)
            if (i < rows->folds[f].count) memcpy(mrc_row(z, done++), mrc_row(x, rows->folds[f].first + i), bytes);
}

double mrc_small_flops(const mrc_small_rows *rows, int64_t centers, mrc_criterion criterion, int count)
{
    double p = (double)centers, c = (double)rows->y.cols, n = 0, held = 0, judged = 0;
    for (int f = 0; f < rows->count; f++) {
        bool last = f == rows->count - 1, gram = criterion != MRC_HOLDOUT || !last;
        double own = (double)rows->folds[f].count;
        n += gram ? own : 0;
        held += gram && criterion != MRC_KFOLD ? 0 : own;
        judged += gram && criterion != MRC_KFOLD ? 0 : 1;
    }
    if (criterion == MRC_LOO || criterion == MRC_GCV)
        return (criterion == MRC_LOO ? 5 : 2) * n * p * p + 10 * p * p * p;
    double sums = is_whole(rows, centers, criterion) ? 0 : n * p * (p + 2 * c);
    return sums + count * (judged * (p * p * p / 3 + 2 * p * p * c) + 2 * held * p * c);
}

double mrc_small_fits_flops(const mrc_small_fits *self)
{
    return mrc_small_flops(self->rows, self->p, self->criterion, self->count);
}

/* ---- Equations --------------------------------------------------------------------------------------------------- */

double mrc_small_weight(const mrc_small_fits *self, mrc_span rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows.count && self->rows->weights; i++) sum += self->rows->weights[rows.first + i];
    return self->rows->weights ? sum : (double)rows.count;
}

/* Rows of the matrix times the root of their weight. */
static mercer_status weigh(const mrc_small_fits *self, int64_t first, const mercer_matrix *matrix)
{
    mrc_backend *backend = self->context->backend;
    double roots[MRC_SMALL_BLOCK];
    if (!self->rows->weights) return MERCER_OK;
    for (int64_t i = 0; i < matrix->rows; i++) roots[i] = sqrt(self->rows->weights[first + i]);
    return backend->ops->scale_rows(backend, matrix, roots);
}

/* Kernel values of at most MRC_SMALL_BLOCK rows: computed in the type of the points, kept in double. */
static mercer_status evaluate(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix x = mrc_rows(&self->x, first, count);
    mrc_pair pair = {.kernel = &self->kernel, .x = &x, .z = &self->z};
    *block = mrc_rows(&self->block, 0, count);
    if (self->distances) {
        mercer_matrix sums = mrc_kept_sums_rows(self->distances, self->rows, first, count);
        return backend->ops->kernel_of_sums(backend, &self->kernel, &sums, block);
    }
    if (!self->single.data) return backend->ops->kernel_eval(backend, &pair, block);
    mercer_matrix single = mrc_rows(&self->single, 0, count);
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &single));
    return backend->ops->copy(backend, block, &single);
}

mercer_status mrc_small_centers(mrc_small_fits *self)
{
    mrc_backend *backend = self->context->backend;
    mrc_pair pair = {.kernel = &self->kernel, .x = &self->z, .z = &self->z};
    if (!self->distances) return backend->ops->kernel_eval(backend, &pair, &self->zz);
    return backend->ops->kernel_of_sums(backend, &self->kernel, &self->distances->centers, &self->zz);
}

mercer_status mrc_small_block(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block,
                              mercer_matrix *targets)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix y = mrc_rows(&self->rows->y, first, count);
    *targets = mrc_rows(&self->targets, 0, count);
    MRC_TRY(evaluate(self, first, count, block));
    MRC_TRY(backend->ops->copy(backend, targets, &y));
    MRC_TRY(weigh(self, first, block));
    return weigh(self, first, targets);
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
        MRC_TRY(backend->ops->gram(backend, 1, &block, beta, gram));
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

/* The fold's own sums are added to those of all, or taken away. */
static mercer_status add_fold(mrc_small_fits *self, int f, double sign)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix gram = gram_of(self, f), rhs = rhs_of(self, f);
    MRC_TRY(backend->ops->axpby(backend, sign, &gram, 1, &self->total));
    return backend->ops->axpby(backend, sign, &rhs, 1, &self->total_rhs);
}

/* The targets of the centers, which are all rows that are fitted to. */
static mercer_status gather_targets(mrc_small_fits *self)
{
    mrc_backend *backend = self->context->backend;
    const mrc_small_rows *rows = self->rows;
    mercer_matrix targets;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_view(&scope, &targets, self->p, rows->y.cols, MERCER_F64, "targets"));
    for (int64_t i = 0, done = 0; done < self->p; i++)
        for (int f = 0; f < rows->count - 1; f++)
            if (i < rows->folds[f].count)
                memcpy(mrc_row(&targets, done++), mrc_row(&rows->y, rows->folds[f].first + i),
                       (size_t)rows->y.cols * sizeof(double));
    self->mass = (double)self->p;
    return backend->ops->copy(backend, &self->total_rhs, &targets);
}

/* The folds' own sums, and those of all that are fitted to: on and below the diagonal, which is what factors read. */
static mercer_status make_equations(mrc_small_fits *self)
{
    mrc_backend *backend = self->context->backend;
    const mrc_small_rows *rows = self->rows;
    MRC_TRY(mrc_small_centers(self));
    if (self->whole) return gather_targets(self);
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
        MRC_TRY(add_fold(self, f, 1));
    }
    return MERCER_OK;
}

/* ---- Solutions --------------------------------------------------------------------------------------------------- */

/* The weights of one ridge, into their columns, of rows that weigh so much; *solved: it was positive definite. */
static mercer_status solve(mrc_small_fits *self, double ridge, double mass, const mercer_matrix *weights, bool *solved)
{
    mrc_backend *backend = self->context->backend;
    int64_t p = self->p;
    double trace = 0, own = self->whole ? ridge * mass : 0; /* of every row */
    const mercer_matrix *base = self->whole ? &self->zz : &self->total;
    mercer_matrix seen = mrc_view(self->diagonal, p, 1, MERCER_F64), of_base = mrc_columns(base, 0, 1),
                  of_system = mrc_columns(&self->system, 0, 1);
    of_base.ld = of_system.ld = p + 1; /* their diagonals */
    MRC_TRY(backend->ops->copy(backend, &seen, &of_base));
    for (int64_t j = 0; j < p; j++) trace += self->diagonal[j];
    MRC_TRY(backend->ops->copy(backend, &self->system, base));
    if (!self->whole) MRC_TRY(backend->ops->axpby(backend, ridge * mass, &self->zz, 1, &self->system));
    MRC_TRY(backend->ops->axpby(backend, own + MRC_SMALL_JITTER * trace / (double)p, &self->ones, 1, &of_system));
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

/* Predictions of rows by the weights of all ridges, from kernel values as exact as those that are fitted to: double
   ones would cost more than the fit. */
static mercer_status answer(mrc_small_fits *self, mrc_span rows, const mercer_matrix *answers)
{
    mrc_backend *backend = self->context->backend;
    for (int64_t done = 0; done < rows.count; done += MRC_SMALL_BLOCK) {
        int64_t count = mrc_min(MRC_SMALL_BLOCK, rows.count - done);
        mercer_matrix block, to = mrc_rows(answers, done, count);
        MRC_TRY(evaluate(self, rows.first + done, count, &block));
        mrc_gemm job = {false, false, 1, 0, &block, &self->weights, &to};
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    return MERCER_OK;
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
    mercer_matrix answers = mrc_rows(&self->answers, 0, rows.count);
    MRC_TRY(answer(self, rows, &answers));
    mercer_matrix shown = mrc_rows(&self->shown, 0, rows.count);
    if (self->there) MRC_TRY(backend->ops->copy(backend, &shown, &answers));
    add_errors(self, rows, &shown, solved, errors);
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
        MRC_TRY(add_fold(self, f, -1));
        MRC_TRY(judge_fold(self, rows->folds[f], self->mass - own, errors));
        MRC_TRY(add_fold(self, f, 1));
    }
    for (int r = 0; r < self->count; r++) errors[r] /= held * (double)rows->y.cols;
    return MERCER_OK;
}

mercer_status mrc_small_fits_try(mrc_small_fits *self, const mercer_kernel *kernel, const mercer_matrix *x,
                                 const mercer_matrix *z, const mrc_kept_sums *distances, double *errors)
{
    self->kernel = *kernel;
    self->x = *x, self->z = *z, self->distances = distances;
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
