/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber, 2022), with blocks of pivots that have the same distribution
 * as one at a time (Epperly, Tropp, Webber, 2024). It chooses rows Z of X for which K(X,Z) K(Z,Z)^-1 K(Z,X) is close to
 * K(X,X).
 *
 *   left_i = K(x_i,x_i) - |F_i|^2       residual of the diagonal, K - F F'  (n) double
 *   draw candidates S with probability left_i / sum left                    b of them
 *   H = K(S,S) - F_S F_S'               residual of K(S,S)                  (b, b) double
 *   in turn: accept candidate i with probability H_ii / left_i, with its current residual H_ii, and then eliminate it
 *   from the rest of H: this gives a column of the Cholesky factor L of H over the accepted candidates T
 *   F <- [F, (K(X,T) - F F_T') L^-T]    new columns of F                    (n, p) working precision
 *
 * Symbols: X (n, d), F (n, k) after k pivots. Cost: n p kernel values, n p^2 flops, p b^2 for H. Memory: n p numbers.
 * If F does not fit into memory, a random subset of the rows replaces X: as many rows as fit, at least p.
 *
 * A residual below the rounding error of F (1e-5 of the diagonal in float, 1e-12 in double) counts as 0. If all
 * residuals are 0, the numerical rank of K(X,X) is below p, and random rows become the remaining centers.
 */
#include "centers/center_selection.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/stage_progress.h"

#include <math.h>

enum { MOST_CANDIDATES = 240, STRIP = 4096, BYTES_PER_ROW = 24 };

typedef struct pivoting {
    mrc_center_selection *selection;
    mrc_backend *backend;
    mercer_context *context;
    const mercer_kernel *kernel;
    int64_t n, d, p; /* number of rows of X or of its sample, number of features, number of pivots to find */
    int64_t b;       /* largest number of candidates per round */
    int64_t strip_rows;
    int64_t have; /* number of pivots so far */
    uint64_t draws;
    double noise;
    mercer_matrix x;                /* (n, d) */
    mercer_matrix f;                /* (n, p) real */
    mercer_matrix strip;            /* (strip_rows, b) real; strip_rows <= 4096 */
    mercer_matrix points;           /* (b, d) rows of X */
    mercer_matrix f_real, f_f64;    /* (b, p) rows of F, in its type and in double */
    mercer_matrix h, l, inverse;    /* (b, b) f64 */
    mercer_matrix inverse_real;     /* (b, b) real */
    double *diagonal, *left, *sums; /* (n) diagonal: K(x_i, x_i); left: residuals; sums: running sums of residuals */
    int64_t *sample;                /* (n) rows of X in `x`, if not all are used */
    int64_t *rows;                  /* (p) pivots, as rows of `x`; borrowed */
} pivoting;

/* ---- Sizes and memory ---------------------------------------------------------------------------------------- */

static mercer_dtype real_type(const mrc_center_selection *selection)
{
    return selection->x->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

/* Sets n to the number of rows to use: all rows, or if these do not fit in memory, as many as fit together with their
   copies. Fails if fewer than p rows fit. */
static mercer_status choose_part(pivoting *self)
{
    const mercer_matrix *x = self->selection->x;
    int64_t real = mrc_dtype_size(real_type(self->selection)), memory = self->selection->options->memory;
    int64_t b = self->b = mrc_min(MOST_CANDIDATES, self->p);
    self->strip_rows = mrc_min(STRIP, x->rows);
    int64_t point = x->cols * mrc_dtype_size(x->dtype);
    int64_t fixed = b * (point + self->p * (real + 8)) + b * b * (3 * 8 + real) + self->strip_rows * b * real;
    int64_t row = self->p * real + BYTES_PER_ROW, least = fixed + self->p * (row + point + 8);
    self->n = x->rows;
    if ((memory - fixed) / row >= x->rows) return MERCER_OK;
    self->n = mrc_max(0, memory - fixed) / (row + point + 8);
    if (self->n < self->p)
        return mrc_fail(self->context, MERCER_ERROR_MEMORY,
                        "rpcholesky of %lld centers needs at least %lld bytes, but the memory limit is %lld; raise the "
                        "limit or use fewer centers",
                        (long long)self->p, (long long)least, (long long)memory);
    mrc_log(self->context, MERCER_LOG_INFO, "rpcholesky: using %lld random rows of %lld, because of the memory limit",
            (long long)self->n, (long long)x->rows);
    return MERCER_OK;
}

static mercer_status allocate_pivoting(pivoting *self, mrc_scope *scope)
{
    const mercer_matrix *x = self->selection->x;
    mercer_dtype real = real_type(self->selection);
    int64_t n = self->n, p = self->p, d = self->d, b = self->b;
    bool part = n < x->rows;
    struct {
        mercer_matrix *out;
        int64_t rows, cols;
        mercer_dtype dtype;
    } const matrices[] = {{&self->f, n, p, real},
                          {&self->strip, self->strip_rows, b, real},
                          {&self->points, b, d, x->dtype},
                          {&self->f_real, b, p, real},
                          {&self->f_f64, b, p, MERCER_F64},
                          {&self->h, b, b, MERCER_F64},
                          {&self->l, b, b, MERCER_F64},
                          {&self->inverse, b, b, MERCER_F64},
                          {&self->inverse_real, b, b, real},
                          {&self->x, part ? n : 0, d, x->dtype}};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        *matrices[i].out = mrc_view(NULL, matrices[i].rows, matrices[i].cols, matrices[i].dtype);
        MRC_TRY(mrc_scope_alloc(scope, &matrices[i].out->data, matrices[i].rows,
                                matrices[i].cols * mrc_dtype_size(matrices[i].dtype), "randomly pivoted Cholesky"));
    }
    MRC_TRY(mrc_scope_alloc(scope, &self->diagonal, 3 * n, sizeof *self->diagonal, "the diagonal of K(X,X)"));
    MRC_TRY(mrc_scope_alloc(scope, &self->sample, part ? n : 0, sizeof *self->sample, "a part of the rows"));
    self->left = self->diagonal + n;
    self->sums = self->left + n;
    if (!part) {
        self->x = *x;
        return MERCER_OK;
    }
    mrc_choose_random(self->selection->options->seed, x->rows, n, self->sample);
    return self->backend->ops->gather_rows(self->backend, &self->x, x, self->sample);
}

/* ---- A round ------------------------------------------------------------------------------------------------- */

/* Gathers the rows of F and of X that `rows` (count) lists. */
static mercer_status gather_pivots(pivoting *self, const int64_t *rows, int64_t count)
{
    mercer_matrix f = mrc_block(&self->f, 0, 0, self->n, self->have),
                  to = mrc_block(&self->f_real, 0, 0, count, self->have);
    mercer_matrix points = mrc_rows(&self->points, 0, count);
    MRC_TRY(self->backend->ops->gather_rows(self->backend, &points, &self->x, rows));
    return self->backend->ops->gather_rows(self->backend, &to, &f, rows);
}

/* Computes H = K(S,S) - F_S F_S' for the candidates S = rows (count). */
static mercer_status residual_block(pivoting *self, const int64_t *rows, int64_t count)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(gather_pivots(self, rows, count));
    mercer_matrix points = mrc_rows(&self->points, 0, count), from = mrc_block(&self->f_real, 0, 0, count, self->have);
    mercer_matrix to = mrc_block(&self->f_f64, 0, 0, count, self->have), h = mrc_block(&self->h, 0, 0, count, count);
    mrc_pair pair = {.kernel = self->kernel, .x = &points, .z = &points};
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &h));
    MRC_TRY(backend->ops->copy(backend, &to, &from));
    mrc_gemm job = {.transpose_b = true, .alpha = -1, .beta = 1, .a = &to, .b = &to, .c = &h};
    return backend->ops->gemm(backend, &job);
}

/* Accepts candidates in turn and computes L over the accepted candidates. Moves the accepted candidates to the front of
   rows; returns their number. */
static int64_t accept_pivots(pivoting *self, int64_t *rows, int64_t count)
{
    double *h = self->h.data, *l = self->l.data;
    const int64_t b = self->b;
    int64_t accepted[MOST_CANDIDATES] = {0}, taken = 0;
    mrc_rng rng = {self->selection->options->seed, MRC_RANDOM_ACCEPT};
    for (int64_t i = 0; i < count && self->have + taken < self->p; i++) {
        double now = h[i * b + i], before = self->left[rows[i]];
        if (!(now > self->noise * self->diagonal[rows[i]])) continue;
        if (!(mrc_random_uniform(rng, self->draws + (uint64_t)i) * before < now)) continue;
        double pivot = sqrt(now);
        for (int64_t s = 0; s < taken; s++) l[taken * b + s] = h[i * b + accepted[s]];
        for (int64_t s = taken + 1; s < b; s++) l[taken * b + s] = 0;
        l[taken * b + taken] = pivot;
        accepted[taken++] = i;
        for (int64_t j = i + 1; j < count; j++) { /* column i of the factor stays in H; all later columns are updated */
            h[j * b + i] /= pivot;
            for (int64_t k = i + 1; k <= j; k++) h[j * b + k] -= h[j * b + i] * h[k * b + i];
        }
    }
    self->draws += (uint64_t)count;
    for (int64_t s = 0; s < taken; s++) rows[s] = rows[accepted[s]];
    return taken;
}

/* Multiplies the new columns of F by L^-T and subtracts their squares from the residuals of the diagonal. */
static mercer_status finish_columns(pivoting *self, int64_t count)
{
    mrc_backend *backend = self->backend;
    mercer_matrix l = mrc_block(&self->l, 0, 0, count, count), inverse = mrc_block(&self->inverse, 0, 0, count, count);
    mercer_matrix factor = mrc_block(&self->inverse_real, 0, 0, count, count);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++) mrc_store(&inverse, i, j, i == j ? 1 : 0);
    MRC_TRY(backend->ops->triangular_solve(backend, &l, false, &inverse));
    MRC_TRY(backend->ops->copy(backend, &factor, &inverse));
    mercer_matrix columns = mrc_columns(&self->f, self->have, count);
    for (int64_t first = 0; first < self->n; first += self->strip_rows) {
        mercer_matrix part = mrc_rows(&columns, first, mrc_min(self->strip_rows, self->n - first));
        mercer_matrix strip = mrc_block(&self->strip, 0, 0, part.rows, count);
        mrc_gemm job = {.transpose_b = true, .alpha = 1, .a = &part, .b = &factor, .c = &strip};
        MRC_TRY(backend->ops->gemm(backend, &job));
        MRC_TRY(backend->ops->copy(backend, &part, &strip));
        for (int64_t i = 0; i < part.rows; i++) {
            double row[MOST_CANDIDATES], *left = &self->left[first + i];
            mrc_load_row_f64(&part, i, row);
            for (int64_t j = 0; j < count; j++) *left -= row[j] * row[j];
            if (!(*left > self->noise * self->diagonal[first + i])) *left = 0;
        }
    }
    return MERCER_OK;
}

/* Draws `count` candidates, accepts some of them as pivots, and computes their columns of F. */
static mercer_status one_round(pivoting *self, int64_t count)
{
    mrc_backend *backend = self->backend;
    int64_t rows[MOST_CANDIDATES];
    mrc_rng rng = {self->selection->options->seed, MRC_RANDOM_DRAW};
    for (int64_t i = 0; i < count; i++)
        rows[i] = mrc_draw_row(self->sums, self->n, mrc_random_uniform(rng, self->draws + (uint64_t)i));
    MRC_TRY(residual_block(self, rows, count));
    int64_t first = rows[0], taken = accept_pivots(self, rows, count);
    if (taken == 0) { /* the residual of the first candidate is only rounding error: exclude its row */
        self->left[first] = 0;
        return MERCER_OK;
    }
    MRC_TRY(gather_pivots(self, rows, taken));
    mercer_matrix points = mrc_rows(&self->points, 0, taken), columns = mrc_columns(&self->f, self->have, taken);
    mercer_matrix f = mrc_block(&self->f, 0, 0, self->n, self->have),
                  f_rows = mrc_block(&self->f_real, 0, 0, taken, self->have);
    mrc_pair pair = {.kernel = self->kernel, .x = &self->x, .z = &points};
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &columns));
    mrc_gemm job = {.transpose_b = true, .alpha = -1, .beta = 1, .a = &f, .b = &f_rows, .c = &columns};
    MRC_TRY(backend->ops->gemm(backend, &job));
    MRC_TRY(finish_columns(self, taken));
    for (int64_t s = 0; s < taken; s++) {
        self->left[rows[s]] = 0;
        self->rows[self->have + s] = rows[s];
    }
    self->have += taken;
    return MERCER_OK;
}

/* ---- Pivots -------------------------------------------------------------------------------------------------- */

/* Sets left = diagonal = K(x_i,x_i); sets *trace to their sum. */
static mercer_status begin_pivoting(pivoting *self, double *trace)
{
    mercer_matrix diagonal = mrc_view(self->diagonal, self->n, 1, MERCER_F64);
    double limit = real_type(self->selection) == MERCER_F64 ? 1e300 : 1e30;
    MRC_TRY(self->backend->ops->kernel_diagonal(self->backend, self->kernel, &self->x, &diagonal));
    *trace = 0;
    for (int64_t i = 0; i < self->n; i++) {
        if (!(self->diagonal[i] >= 0 && self->diagonal[i] <= limit))
            return mrc_fail(self->context, MERCER_ERROR_DATA,
                            "rpcholesky: K(x,x) of row %lld is %g; it must be between 0 and %g; scale the data",
                            (long long)(self->n < self->selection->x->rows ? self->sample[i] : i), self->diagonal[i],
                            limit);
        *trace += self->left[i] = self->diagonal[i];
    }
    return MERCER_OK;
}

/* Runs rounds until p pivots are found or all residuals are 0. */
static mercer_status draw_pivots(pivoting *self)
{
    const mercer_center_options *options = self->selection->options;
    double trace, sum = 0;
    MRC_TRY(begin_pivoting(self, &trace));
    for (;;) {
        sum = mrc_sum_weights(self->left, self->n, self->sums);
        self->selection->report.error = trace > 0 ? sum / trace : 0;
        if (self->have == self->p || !(sum > 0)) return MERCER_OK;
        if (mrc_progress(options->progress, options->progress_user, "centers", self->have, self->p,
                         self->selection->report.error))
            return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "rpcholesky: stopped by the progress callback");
        int64_t count = mrc_min(mrc_min(self->b, self->have / 2 + 1), self->p - self->have);
        MRC_TRY(one_round(self, count));
    }
}

mercer_status mrc_rpcholesky(mrc_center_selection *selection, int64_t *rows)
{
    pivoting self = {.selection = selection,
                     .backend = selection->backend,
                     .context = selection->backend->context,
                     .kernel = selection->options->kernel,
                     .d = selection->x->cols,
                     .p = selection->p,
                     .noise = real_type(selection) == MERCER_F64 ? 1e-12 : 1e-5,
                     .rows = rows};
    MRC_TRY(choose_part(&self));
    MRC_SCOPE(scope, self.context);
    MRC_TRY(allocate_pivoting(&self, &scope));
    MRC_TRY(draw_pivots(&self));
    if (self.have < self.p) {
        mrc_log(self.context, MERCER_LOG_INFO,
                "rpcholesky: after %lld centers the residual of K(X,X) is below rounding; %lld more centers are "
                "random rows",
                (long long)self.have, (long long)(self.p - self.have));
        mrc_choose_fill(selection->options->seed, self.n, self.have, self.p, rows, (void *)self.sums);
    }
    for (int64_t i = 0; i < self.p && self.n < selection->x->rows; i++) rows[i] = self.sample[rows[i]];
    return MERCER_OK;
}
