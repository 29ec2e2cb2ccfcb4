/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small ridge regressions, scored on the rows v of the last fold:
 *
 *   G = K'K,  B = K'Y                          K = K(X, Z), rows times the square root of their weight
 *   alpha = (G + l w K(Z, Z) + 1e-10 tr(G) / p I)^-1 B
 *   e_l = |K(X_v, Z) alpha - Y_v|^2
 *
 * If the centers are all training rows, alpha = (K(Z, Z) + (l w + 1e-10 tr(K) / p) I)^-1 Y. Memory: 3 p^2 doubles and
 * blocks of 1,024 x p.
 */
#include "search/small_fits.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 }; /* rows whose kernel values are computed at a time */

typedef struct small_fits {
    mrc_backend *backend;
    const mrc_small_rows *rows;
    const mercer_kernel *kernel;
    const mercer_matrix *z; /* (p, d) */
    const double *ridges;
    int count;                      /* number of ridges */
    bool whole;                     /* the centers are all training rows, with equal weights */
    double mass;                    /* total weight of the training rows */
    mercer_matrix zz, system, gram; /* (p, p) */
    mercer_matrix rhs;              /* (p, c) */
    mercer_matrix block, targets;   /* (BLOCK, p), (BLOCK, c) */
    mercer_matrix single;           /* (BLOCK, p) f32; no data: points are f64 */
    mercer_matrix ones;             /* (p, 1) */
    mercer_matrix weights;          /* (p, ridges c) */
    mercer_matrix answers, shown;   /* (BLOCK, ridges c): predictions, and their copy in host memory */
    double *diagonal;               /* (p) */
} small_fits;

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static mercer_status open_matrices(small_fits *self, mrc_scope *scope)
{
    static const char what[] = "small fits";
    mrc_backend *backend = self->backend;
    int64_t p = self->z->rows, c = self->rows->y.cols, columns = c * self->count;
    bool single = self->rows->x.dtype != MERCER_F64;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&self->zz, p, p},   {&self->system, p, p},        {&self->gram, p, p},
               {&self->rhs, p, c},  {&self->block, BLOCK, p},     {&self->targets, BLOCK, c},
               {&self->ones, p, 1}, {&self->weights, p, columns}, {&self->answers, BLOCK, columns}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(mrc_scope_reserve(scope, backend, all[i].matrix, all[i].rows, all[i].cols, MERCER_F64, what));
    if (single) MRC_TRY(mrc_scope_reserve(scope, backend, &self->single, BLOCK, p, MERCER_F32, what));
    MRC_TRY(mrc_scope_view(scope, &self->shown, BLOCK, columns, MERCER_F64, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->diagonal, p, sizeof *self->diagonal, what));
    for (int64_t j = 0; j < p; j++) self->diagonal[j] = 1;
    mercer_matrix ones = mrc_view(self->diagonal, p, 1, MERCER_F64);
    return backend->ops->copy(backend, &self->ones, &ones);
}

void mrc_small_gather_centers(const mrc_small_rows *rows, const mercer_matrix *z)
{
    int folds = rows->count - (rows->held_out ? 1 : 0);
    size_t bytes = (size_t)(z->cols * mrc_dtype_size(z->dtype));
    for (int64_t i = 0, done = 0; done < z->rows; i++)
        for (int f = 0; f < folds && done < z->rows; f++)
            if (i < rows->folds[f].count)
                memcpy(mrc_row(z, done++), mrc_row(&rows->x, rows->folds[f].first + i), bytes);
}

/* ---- Equations --------------------------------------------------------------------------------------------------- */

static double weight_of(const small_fits *self, mrc_span rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows.count && self->rows->weights; i++) sum += self->rows->weights[rows.first + i];
    return self->rows->weights ? sum : (double)rows.count;
}

/* Multiplies rows of the matrix by the square roots of their weights. */
static mercer_status weigh(const small_fits *self, int64_t first, const mercer_matrix *matrix)
{
    double roots[BLOCK];
    if (!self->rows->weights) return MERCER_OK;
    for (int64_t i = 0; i < matrix->rows; i++) roots[i] = sqrt(self->rows->weights[first + i]);
    return self->backend->ops->scale_rows(self->backend, matrix, roots);
}

/* Computes kernel values of up to BLOCK rows in the type of the points and stores them in double, because evaluating
   them in double would cost more than the fit. */
static mercer_status evaluate(const small_fits *self, int64_t first, int64_t count, mercer_matrix *block)
{
    mrc_backend *backend = self->backend;
    mercer_matrix x = mrc_rows(&self->rows->x, first, count);
    mrc_pair pair = {.kernel = self->kernel, .x = &x, .z = self->z};
    *block = mrc_rows(&self->block, 0, count);
    if (!self->single.data) return backend->ops->kernel_eval(backend, &pair, block);
    mercer_matrix single = mrc_rows(&self->single, 0, count);
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &single));
    return backend->ops->copy(backend, block, &single);
}

/* Adds a fold's rows to G and B. */
static mercer_status add_fold(small_fits *self, mrc_span rows)
{
    mrc_backend *backend = self->backend;
    for (int64_t done = 0; done < rows.count; done += BLOCK) {
        int64_t first = rows.first + done, count = mrc_min(BLOCK, rows.count - done);
        mercer_matrix block, from = mrc_rows(&self->rows->y, first, count), y = mrc_rows(&self->targets, 0, count);
        mrc_gemm job = {true, false, 1, 1, &block, &y, &self->rhs};
        MRC_TRY(evaluate(self, first, count, &block));
        MRC_TRY(backend->ops->copy(backend, &y, &from));
        MRC_TRY(weigh(self, first, &block));
        MRC_TRY(weigh(self, first, &y));
        MRC_TRY(backend->ops->gram(backend, 1, &block, 1, &self->gram));
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    self->mass += weight_of(self, rows);
    return MERCER_OK;
}

/* Gathers the targets of the centers, which are all training rows. */
static mercer_status gather_targets(small_fits *self)
{
    const mrc_small_rows *rows = self->rows;
    mercer_matrix targets;
    MRC_SCOPE(scope, self->backend->context);
    MRC_TRY(mrc_scope_view(&scope, &targets, self->z->rows, rows->y.cols, MERCER_F64, "targets"));
    for (int64_t i = 0, done = 0; done < self->z->rows; i++)
        for (int f = 0; f < rows->count - 1; f++)
            if (i < rows->folds[f].count)
                memcpy(mrc_row(&targets, done++), mrc_row(&rows->y, rows->folds[f].first + i),
                       (size_t)rows->y.cols * sizeof(double));
    self->mass = (double)self->z->rows;
    return self->backend->ops->copy(self->backend, &self->rhs, &targets);
}

/* Sums the equations over all training rows. Only the lower triangle is set, because a factorization reads nothing
   else. */
static mercer_status make_equations(small_fits *self)
{
    mrc_backend *backend = self->backend;
    const mrc_small_rows *rows = self->rows;
    mrc_pair centers = {.kernel = self->kernel, .x = self->z, .z = self->z};
    int64_t fitted = 0;
    for (int f = 0; f < rows->count - 1; f++) fitted += rows->folds[f].count;
    self->whole = !rows->weights && self->z->rows == fitted;
    MRC_TRY(backend->ops->kernel_eval(backend, &centers, &self->zz));
    if (self->whole) return gather_targets(self);
    MRC_TRY(backend->ops->clear(backend, &self->gram));
    MRC_TRY(backend->ops->clear(backend, &self->rhs));
    for (int f = 0; f < rows->count - 1; f++) MRC_TRY(add_fold(self, rows->folds[f]));
    return MERCER_OK;
}

/* ---- Solutions --------------------------------------------------------------------------------------------------- */

/* Solves for the weights of one ridge. *solved: the system was positive definite. */
static mercer_status solve(const small_fits *self, double ridge, const mercer_matrix *weights, bool *solved)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->z->rows, bad;
    double trace = 0, own = self->whole ? ridge * self->mass : 0; /* penalty on the diagonal */
    const mercer_matrix *base = self->whole ? &self->zz : &self->gram;
    mercer_matrix seen = mrc_view(self->diagonal, p, 1, MERCER_F64), of_base = mrc_columns(base, 0, 1),
                  of_system = mrc_columns(&self->system, 0, 1);
    of_base.ld = of_system.ld = p + 1; /* views of the diagonals */
    MRC_TRY(backend->ops->copy(backend, &seen, &of_base));
    for (int64_t j = 0; j < p; j++) trace += self->diagonal[j];
    MRC_TRY(backend->ops->copy(backend, &self->system, base));
    if (!self->whole) MRC_TRY(backend->ops->axpby(backend, ridge * self->mass, &self->zz, 1, &self->system));
    MRC_TRY(backend->ops->axpby(backend, own + MRC_SMALL_JITTER * trace / (double)p, &self->ones, 1, &of_system));
    MRC_TRY(backend->ops->cholesky(backend, &self->system, &bad));
    *solved = bad < 0;
    if (!*solved) return MERCER_OK;
    MRC_TRY(backend->ops->copy(backend, weights, &self->rhs));
    MRC_TRY(backend->ops->triangular_solve(backend, &self->system, false, weights));
    return backend->ops->triangular_solve(backend, &self->system, true, weights);
}

/* Adds the squared errors of rows, whose predictions are in `shown`, to errors (ridges). */
static void add_errors(const small_fits *self, mrc_span rows, double *errors)
{
    int64_t c = self->rows->y.cols;
    for (int r = 0; r < self->count; r++)
        for (int64_t i = 0; i < rows.count; i++)
            for (int64_t l = 0; l < c; l++) {
                double off = mrc_load(&self->shown, i, r * c + l) - mrc_load(&self->rows->y, rows.first + i, l);
                errors[r] += (self->rows->weights ? self->rows->weights[rows.first + i] : 1) * off * off;
            }
}

/* Predicts the held-out rows with the weights of all ridges, and adds their errors. */
static mercer_status score(const small_fits *self, mrc_span rows, double *errors)
{
    mrc_backend *backend = self->backend;
    for (int64_t done = 0; done < rows.count; done += BLOCK) {
        mrc_span some = {rows.first + done, mrc_min(BLOCK, rows.count - done)};
        mercer_matrix block, answers = mrc_rows(&self->answers, 0, some.count),
                             shown = mrc_rows(&self->shown, 0, some.count);
        mrc_gemm job = {false, false, 1, 0, &block, &self->weights, &answers};
        MRC_TRY(evaluate(self, some.first, some.count, &block));
        MRC_TRY(backend->ops->gemm(backend, &job));
        MRC_TRY(backend->ops->copy(backend, &shown, &answers));
        add_errors(self, some, errors);
    }
    return MERCER_OK;
}

mercer_status mrc_small_fits(mercer_context *context, const mrc_small_rows *rows, const mercer_kernel *kernel,
                             const mercer_matrix *z, const double *ridges, int count, double *errors)
{
    small_fits self = {
        .backend = context->backend, .rows = rows, .kernel = kernel, .z = z, .ridges = ridges, .count = count};
    mrc_span held = rows->folds[rows->count - 1];
    int64_t c = rows->y.cols;
    bool solved[MRC_RIDGES] = {false};
    MRC_SCOPE(scope, context);
    MRC_TRY(open_matrices(&self, &scope));
    MRC_TRY(make_equations(&self));
    MRC_TRY(self.backend->ops->clear(self.backend, &self.weights));
    for (int r = 0; r < count; r++) {
        mercer_matrix weights = mrc_columns(&self.weights, r * c, c);
        MRC_TRY(solve(&self, ridges[r], &weights, &solved[r]));
        errors[r] = 0;
    }
    MRC_TRY(score(&self, held, errors));
    for (int r = 0; r < count; r++)
        errors[r] = solved[r] ? errors[r] / (weight_of(&self, held) * (double)c) : (double)INFINITY;
    return MERCER_OK;
}
