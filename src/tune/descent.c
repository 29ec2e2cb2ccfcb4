/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descent in the scales of the features: what a small fit errs by on rows that it has not seen, made smaller.
 *
 *   for t = 1 .. STEPS:  rows drawn anew, slope g of their error (error_slope.c)
 *     a = .8 a + .2 g,  b = .95 b + .05 g^2                    (both corrected for their beginning at 0)
 *     s -= RATE min(1, 2 (1 - t / (STEPS + 1))) a / sqrt(b)
 *
 * which is Adam (Kingma and Ba 2015): steps of about RATE in the logarithm of every factor, whatever the size of its
 * slope, so that in all a factor can go over two powers of ten. An average of squared gradients (features/agop.h) is
 * large where f is steep; this one is large where a feature helps to predict: the two differ for a feature that is 0
 * for most rows and decides over the others.
 *
 * Rows are those that the search fits to: the ones that it judges by are not seen. Bits are the same for any number of
 * threads. Cost: STEPS times that of error_slope.c at FITTED + JUDGED rows and CENTERS centers.
 */
#include "tune/descent.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <math.h>
#include <string.h>

enum { STEPS = 40, FITTED = 3072, JUDGED = 2048, CENTERS = 384, LEAST_ROWS = 320 };
enum { DRAW_BITS = 0x64726177 };
#define RATE        0.2
#define MOMENTUM    0.8
#define FORGOTTEN   0.05 /* of the squares, a step */
#define LARGEST_LOG 12   /* of a factor: weights that small or large are as good as 0 or infinite */

typedef struct sizes {
    int64_t fitted, judged, centers;
} sizes;

static int64_t count_rows(const mrc_descent *task)
{
    int64_t sum = 0;
    for (int i = 0; i < task->spans; i++) sum += task->rows[i].count;
    return sum;
}

/* The i-th of the rows to draw of. */
static int64_t row_of(const mrc_descent *task, int64_t i)
{
    int span = 0;
    while (i >= task->rows[span].count) i -= task->rows[span++].count;
    return task->rows[span].first + i;
}

/* Three fifths are fitted to, to a quarter of them as centers if they are few. */
static sizes sizes_of(const mrc_descent *task)
{
    int64_t n = count_rows(task);
    sizes s = {.fitted = mrc_min(FITTED, n * 3 / 5), .judged = mrc_min(JUDGED, n * 2 / 5)};
    s.centers = mrc_max(1, mrc_min(CENTERS, s.fitted / 4));
    return s;
}

bool mrc_descent_possible(const mrc_descent *task)
{
    mercer_kernel slope;
    return count_rows(task) >= LEAST_ROWS && mrc_kernel_slope(task->kernel, &slope);
}

/* A pass over the distances, another where they are not kept, and three flops for each difference of a pair. */
double mrc_descent_flops(const mrc_descent *task)
{
    sizes s = sizes_of(task);
    double m = (double)(s.fitted + s.judged), p = (double)s.centers, d = (double)task->x.cols;
    double values = m * p * (d * (2 * mrc_feature_flops(task->kernel) + 3) + 3 * MRC_VALUE_FLOPS);
    double dense = (double)s.fitted * p * p + p * p * p / 3 + 10 * m * p * (double)task->y.cols;
    return STEPS * (values + dense);
}

/* What draws are made of, where the backend computes: the rows themselves, or a copy of them. */
typedef struct source {
    mercer_matrix x, y;
    int64_t *rows;             /* (m) of a step */
    double *factors, *weights; /* (d); (m), or NULL */
} source;

static mercer_status open_rows(mrc_backend *backend, mrc_scope *scope, const mercer_matrix *rows, mercer_matrix *out)
{
    *out = *rows;
    if (backend->ops->capabilities(backend).memory == MRC_HOST) return MERCER_OK;
    MRC_TRY(mrc_scope_matrix(scope, backend, out, rows->rows, rows->cols, rows->dtype, "rows of descent"));
    return backend->ops->copy(backend, out, rows);
}

/* Rows of a step, coordinates times exp(logs). */
static mercer_status draw_rows(const mrc_descent *task, mrc_backend *backend, const source *from, int step,
                               const double *logs, const mrc_draw *draw)
{
    mrc_rng rng = {task->seed, DRAW_BITS + (uint64_t)step};
    int64_t n = count_rows(task);
    for (int64_t k = 0; k < task->x.cols; k++) from->factors[k] = exp(logs[k]);
    for (int64_t i = 0; i < draw->x.rows; i++) from->rows[i] = row_of(task, mrc_random_permutation(rng, n, i));
    for (int64_t i = 0; i < draw->x.rows && task->weights; i++) from->weights[i] = task->weights[from->rows[i]];
    MRC_TRY(backend->ops->gather_rows(backend, &draw->x, &from->x, from->rows));
    MRC_TRY(backend->ops->gather_rows(backend, &draw->y, &from->y, from->rows));
    return backend->ops->scale_columns(backend, &draw->x, from->factors);
}

typedef struct moments {
    double *slope, *mean, *square; /* (d) */
} moments;

static void step_down(const moments *at, int step, int64_t d, double *logs)
{
    double rate = RATE * fmin(1, 2 * (1 - (double)step / (STEPS + 1)));
    for (int64_t k = 0; k < d; k++) {
        double g = at->slope[k];
        at->mean[k] = MOMENTUM * at->mean[k] + (1 - MOMENTUM) * g;
        at->square[k] = (1 - FORGOTTEN) * at->square[k] + FORGOTTEN * g * g;
        double mean = at->mean[k] / (1 - pow(MOMENTUM, step)), square = at->square[k] / (1 - pow(1 - FORGOTTEN, step));
        if (square > 0) logs[k] -= rate * mean / sqrt(square);
        logs[k] = fmax(-LARGEST_LOG, fmin(LARGEST_LOG, logs[k]));
    }
}

mercer_status mrc_descend(const mrc_descent *task, double *logs)
{
    static const char what[] = "rows of descent";
    mrc_backend *backend = task->context->backend;
    int64_t d = task->x.cols, c = task->y.cols;
    sizes s = sizes_of(task);
    source from = {0};
    mrc_draw draw;
    mrc_slope_room room;
    moments at;
    double error;
    MRC_SCOPE(scope, task->context);
    MRC_TRY(open_rows(backend, &scope, &task->x, &from.x));
    MRC_TRY(open_rows(backend, &scope, &task->y, &from.y));
    MRC_TRY(mrc_scope_alloc(&scope, &from.rows, s.fitted + s.judged, sizeof *from.rows, what));
    MRC_TRY(mrc_scope_alloc(&scope, &from.factors, d, sizeof *from.factors, what));
    if (task->weights) MRC_TRY(mrc_scope_alloc(&scope, &from.weights, s.fitted + s.judged, sizeof *from.weights, what));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &draw.x, s.fitted + s.judged, d, MERCER_F32, what));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &draw.y, s.fitted + s.judged, c, MERCER_F64, what));
    draw.weights = from.weights;
    MRC_TRY(mrc_slope_open(&room, &scope, backend, &draw, s.fitted, s.centers));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &at.slope, 3 * d, sizeof *at.slope, "slopes of descent"));
    at.mean = at.slope + d, at.square = at.slope + 2 * d;
    memset(logs, 0, (size_t)d * sizeof *logs);
    for (int step = 1; step <= STEPS; step++) {
        bool solved;
        MRC_TRY(draw_rows(task, backend, &from, step, logs, &draw));
        MRC_TRY(mrc_error_slope(&room, task->kernel, task->ridge, &draw, &error, at.slope, &solved));
        if (!solved) break; /* the scales so far are as good as any */
        step_down(&at, step, d, logs);
    }
    return MERCER_OK;
}
