/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small ridge regressions, scored on held-out rows:
 *
 *   for each fold f:       G_f = K_f' K_f,  B_f = K_f' Y_f         K_f = K(X_f, Z), rows times the root of their weight
 *   for each fold v that is scored, each ridge l:
 *     alpha = (G + l w K(Z, Z) + 1e-10 tr(G) / p I)^-1 B,   G, B, w sums over the other folds
 *     e_l  += |K(X_v, Z) alpha - Y_v|^2
 *
 * The Gram matrix of the others is the sum minus the fold's own, so k folds cost one pass over the rows. If the centers
 * are all training rows, alpha = (K(Z, Z) + (l w + 1e-10 tr(K) / p) I)^-1 Y. Memory: (folds + 3) p^2 doubles and
 * blocks of 1,024 rows of p.
 */
#include "search/small_fits.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 }; /* rows whose kernel values are formed at once */

struct mrc_small_fits {
    mercer_context *context;
    const mrc_small_rows *rows;
    const double *ridges;
    int count, grams; /* number of ridges; of separate Gram matrices */
    int64_t p;
    mercer_kernel kernel;      /* kernel of the current call, */
    mercer_matrix x, z;        /* its points (rows, d), (p, d), */
    double mass;               /* and the weight of the training rows */
    mercer_matrix zz, system;  /* (p, p) */
    mercer_matrix total, gram; /* (p, p) sum over training rows; (grams p, p) */
    mercer_matrix total_rhs, rhs;
    mercer_matrix block, targets;   /* (BLOCK, p), (BLOCK, c) */
    mercer_matrix weights, answers; /* (p, ridges c), (held rows, ridges c) */
    mercer_matrix single;           /* (BLOCK, p) f32; no data: points are f64 */
    mercer_matrix ones;             /* (p, 1) */
    mercer_matrix shown;            /* (held rows, ridges c): the answers in host memory */
    double *diagonal;               /* (p) */
    bool whole;                     /* the centers are all training rows */
    bool on_device;                 /* matrices are in the backend's own memory */
    void *memory, *single_memory;
};

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static int64_t most_rows(const mrc_small_rows *rows)
{
    int64_t most = 0;
    for (int f = 0; f < rows->count; f++) most = mrc_max(most, rows->folds[f].count);
    return most;
}

/* Whether the centers are all training rows, with equal weights. */
static bool is_whole(const mrc_small_rows *rows, int64_t p)
{
    int64_t fitted = 0;
    for (int f = 0; f < rows->count - 1; f++) fitted += rows->folds[f].count;
    return rows->held_out && !rows->weights && p == fitted;
}

/* Allocate in the memory that the backend computes in. */
static mercer_status take(const mrc_small_fits *self, void **out, int64_t bytes, const char *what)
{
    mrc_backend *backend = self->context->backend;
    return self->on_device ? backend->ops->alloc(backend, out, bytes, what)
                           : mrc_alloc(self->context, out, bytes, 1, what);
}

static void release(const mrc_small_fits *self, void *memory)
{
    mrc_backend *backend = self->context->backend;
    if (!self->on_device)
        mrc_free(self->context, memory);
    else if (memory)
        backend->ops->free(backend, memory);
}

/* Allocate all matrices in one block. */
static mercer_status allocate(mrc_small_fits *self)
{
    int64_t p = self->p, c = self->rows->y.cols, columns = c * self->count;
    int64_t held = most_rows(self->rows), grams = self->grams;
    int32_t where =
        self->on_device ? self->context->backend->ops->capabilities(self->context->backend).memory : MRC_HOST;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&self->zz, p, p},
               {&self->system, p, p},
               {&self->total, p, p},
               {&self->gram, grams * p, p},
               {&self->rhs, grams * p, c},
               {&self->total_rhs, p, c},
               {&self->block, BLOCK, p},
               {&self->targets, BLOCK, c},
               {&self->weights, p, columns},
               {&self->answers, held, columns},
               {&self->ones, p, 1}};
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
    if (self->on_device) {
        self->shown = mrc_view(NULL, held, columns, MERCER_F64);
        MRC_TRY(mrc_alloc(self->context, &self->shown.data, held * columns, sizeof(double), "small fits"));
    }
    if (self->rows->x.dtype == MERCER_F64) return MERCER_OK;
    MRC_TRY(take(self, &self->single_memory, BLOCK * p * (int64_t)sizeof(float), "kernel values"));
    self->single = mrc_view(self->single_memory, BLOCK, p, MERCER_F32);
    self->single.memory = where;
    return MERCER_OK;
}

mercer_status mrc_small_fits_create(mrc_small_fits **out, mercer_context *context, const mrc_small_rows *rows,
                                    int64_t p, const double *ridges, int count)
{
    MRC_OWNED(mrc_release_small_fits) mrc_small_fits *self = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "small fits"));
    *self = (mrc_small_fits){.context = context, .rows = rows, .p = p, .ridges = ridges, .count = count};
    self->grams = rows->held_out ? 1 : rows->count;
    self->whole = is_whole(rows, p);
    self->on_device = context->backend->ops->capabilities(context->backend).memory != MRC_HOST;
    MRC_TRY(allocate(self));
    *out = self;
    self = NULL;
    return MERCER_OK;
}

void mrc_small_fits_free(mrc_small_fits *self)
{
    if (!self) return;
    release(self, self->single_memory);
    release(self, self->memory);
    if (self->on_device) mrc_free(self->context, self->shown.data);
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

/* ---- Equations --------------------------------------------------------------------------------------------------- */

static double weight_of(const mrc_small_fits *self, mrc_span rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows.count && self->rows->weights; i++) sum += self->rows->weights[rows.first + i];
    return self->rows->weights ? sum : (double)rows.count;
}

/* Multiply rows of the matrix by the roots of their weights. */
static mercer_status weigh(const mrc_small_fits *self, int64_t first, const mercer_matrix *matrix)
{
    mrc_backend *backend = self->context->backend;
    double roots[BLOCK];
    if (!self->rows->weights) return MERCER_OK;
    for (int64_t i = 0; i < matrix->rows; i++) roots[i] = sqrt(self->rows->weights[first + i]);
    return backend->ops->scale_rows(backend, matrix, roots);
}

/* Compute kernel values of at most BLOCK rows in the type of the points and store them in double. */
static mercer_status evaluate(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix x = mrc_rows(&self->x, first, count);
    mrc_pair pair = {.kernel = &self->kernel, .x = &x, .z = &self->z};
    *block = mrc_rows(&self->block, 0, count);
    if (!self->single.data) return backend->ops->kernel_eval(backend, &pair, block);
    mercer_matrix single = mrc_rows(&self->single, 0, count);
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &single));
    return backend->ops->copy(backend, block, &single);
}

/* Set block and targets for at most BLOCK rows: kernel values and targets times the roots of the row weights. */
static mercer_status form_block(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block,
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

/* Sum G and B over the rows of a fold; added: on top of the current values. */
static mercer_status sum_fold(mrc_small_fits *self, mrc_span rows, bool added, const mercer_matrix *gram,
                              const mercer_matrix *rhs)
{
    mrc_backend *backend = self->context->backend;
    for (int64_t done = 0; done < rows.count; done += BLOCK) {
        int64_t count = mrc_min(BLOCK, rows.count - done);
        mercer_matrix block, y;
        double beta = added || done > 0 ? 1 : 0;
        MRC_TRY(form_block(self, rows.first + done, count, &block, &y));
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

/* Add (sign 1) the sums of a fold to the totals, or subtract them (sign -1). */
static mercer_status add_fold(mrc_small_fits *self, int f, double sign)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix gram = gram_of(self, f), rhs = rhs_of(self, f);
    MRC_TRY(backend->ops->axpby(backend, sign, &gram, 1, &self->total));
    return backend->ops->axpby(backend, sign, &rhs, 1, &self->total_rhs);
}

/* Gather the targets of the centers, which are all training rows. */
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

/* Sum each fold and all training rows; only the lower triangle is set, which is all that a factorization reads. */
static mercer_status make_equations(mrc_small_fits *self)
{
    mrc_backend *backend = self->context->backend;
    const mrc_small_rows *rows = self->rows;
    mrc_pair centers = {.kernel = &self->kernel, .x = &self->z, .z = &self->z};
    MRC_TRY(backend->ops->kernel_eval(backend, &centers, &self->zz));
    if (self->whole) return gather_targets(self);
    MRC_TRY(backend->ops->clear(backend, &self->total));
    MRC_TRY(backend->ops->clear(backend, &self->total_rhs));
    self->mass = 0;
    for (int f = 0; f < rows->count; f++) {
        if (rows->held_out && f == rows->count - 1) break;
        self->mass += weight_of(self, rows->folds[f]);
        if (rows->held_out) {
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

/* Solve for the weights of one ridge; mass: total weight of the training rows; *solved: it was positive definite. */
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

/* Add the squared errors of a fold's rows to errors (ridges). */
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

/* Predict rows by the weights of all ridges, from kernel values of the precision of the training rows: values in double
   would cost more than the fit. */
static mercer_status answer(mrc_small_fits *self, mrc_span rows, const mercer_matrix *answers)
{
    mrc_backend *backend = self->context->backend;
    for (int64_t done = 0; done < rows.count; done += BLOCK) {
        int64_t count = mrc_min(BLOCK, rows.count - done);
        mercer_matrix block, to = mrc_rows(answers, done, count);
        MRC_TRY(evaluate(self, rows.first + done, count, &block));
        mrc_gemm job = {false, false, 1, 0, &block, &self->weights, &to};
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    return MERCER_OK;
}

/* Fit all ridges to the sums in `total` and score them on the rows of one fold. */
static mercer_status score_fold(mrc_small_fits *self, mrc_span rows, double mass, double *errors)
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
    if (self->on_device) MRC_TRY(backend->ops->copy(backend, &shown, &answers));
    add_errors(self, rows, &shown, solved, errors);
    return MERCER_OK;
}

static mercer_status score(mrc_small_fits *self, double *errors)
{
    const mrc_small_rows *rows = self->rows;
    double held = 0;
    for (int r = 0; r < self->count; r++) errors[r] = 0;
    for (int f = rows->held_out ? rows->count - 1 : 0; f < rows->count; f++) {
        double own = weight_of(self, rows->folds[f]);
        held += own;
        if (rows->held_out) {
            MRC_TRY(score_fold(self, rows->folds[f], self->mass, errors));
            continue;
        }
        MRC_TRY(add_fold(self, f, -1));
        MRC_TRY(score_fold(self, rows->folds[f], self->mass - own, errors));
        MRC_TRY(add_fold(self, f, 1));
    }
    for (int r = 0; r < self->count; r++) errors[r] /= held * (double)rows->y.cols;
    return MERCER_OK;
}

mercer_status mrc_small_fits_try(mrc_small_fits *self, const mercer_kernel *kernel, const mercer_matrix *x,
                                 const mercer_matrix *z, double *errors)
{
    self->kernel = *kernel;
    self->x = *x, self->z = *z;
    MRC_TRY(make_equations(self));
    return score(self, errors);
}
