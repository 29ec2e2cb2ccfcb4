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
#include "features/agop.h"

#include <math.h>
#include <string.h>

enum { STEPS = 40, FITTED = 3072, JUDGED = 2048, CENTERS = 384, LEAST_ROWS = 320 };
enum { DRAW_BITS = 0x64726177, SIGN_BITS = 0x736c6f70 };
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

double mrc_descent_flops(const mrc_descent *task)
{
    sizes s = sizes_of(task);
    double m = (double)(s.fitted + s.judged), p = (double)s.centers, d = (double)task->x.cols;
    double outputs = (double)(task->y.cols > MRC_AGOP_OUTPUTS ? 1 : task->y.cols);
    double effort = mrc_feature_flops(task->kernel);
    double values = m * p * (effort * d * (1 + 4 * outputs) + 3 * MRC_VALUE_FLOPS);
    double dense = (double)s.fitted * p * p + p * p * p / 3 + 6 * m * p * (double)task->y.cols;
    return STEPS * (values + dense);
}

/* Rows of a step, coordinates times exp(logs). */
static void draw_rows(const mrc_descent *task, int step, const double *logs, double *factors, mrc_draw *draw,
                      double *weights)
{
    mrc_rng rng = {task->seed, DRAW_BITS + (uint64_t)step};
    int64_t d = task->x.cols, n = count_rows(task);
    for (int64_t k = 0; k < d; k++) factors[k] = exp(logs[k]);
    for (int64_t i = 0; i < draw->x.rows; i++) {
        int64_t row = row_of(task, mrc_random_permutation(rng, n, i));
        const float *from = mrc_row(&task->x, row);
        float *to = mrc_row(&draw->x, i);
        for (int64_t k = 0; k < d; k++) to[k] = (float)((double)from[k] * factors[k]);
        memcpy(mrc_row(&draw->y, i), mrc_row(&task->y, row), (size_t)task->y.cols * sizeof(double));
        if (weights) weights[i] = task->weights[row];
    }
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

static mercer_status descend_by(const mrc_descent *task, mrc_backend *backend, double *logs)
{
    int64_t d = task->x.cols, c = task->y.cols;
    sizes s = sizes_of(task);
    mrc_draw draw = {.fitted = s.fitted, .centers = s.centers};
    moments at;
    double *factors, *weights = NULL, error;
    MRC_SCOPE(scope, task->context);
    MRC_TRY(mrc_scope_view(&scope, &draw.x, s.fitted + s.judged, d, MERCER_F32, "rows of descent"));
    MRC_TRY(mrc_scope_view(&scope, &draw.y, s.fitted + s.judged, c, MERCER_F64, "rows of descent"));
    MRC_TRY(mrc_scope_alloc(&scope, &factors, d, sizeof *factors, "rows of descent"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &at.slope, 3 * d, sizeof *at.slope, "slopes of descent"));
    if (task->weights)
        MRC_TRY(mrc_scope_alloc(&scope, &weights, s.fitted + s.judged, sizeof *weights, "rows of descent"));
    at.mean = at.slope + d, at.square = at.slope + 2 * d, draw.weights = weights;
    memset(logs, 0, (size_t)d * sizeof *logs);
    for (int step = 1; step <= STEPS; step++) {
        bool solved;
        mrc_rng signs = {task->seed, SIGN_BITS + (uint64_t)step};
        draw_rows(task, step, logs, factors, &draw, weights);
        MRC_TRY(mrc_error_slope(backend, task->kernel, task->ridge, &draw, signs, &error, at.slope, &solved));
        if (!solved) break; /* the scales so far are as good as any */
        step_down(&at, step, d, logs);
    }
    return MERCER_OK;
}

mercer_status mrc_descend(const mrc_descent *task, double *logs)
{
    mrc_backend *backend = task->context->backend, *processor = NULL;
    if (backend->ops->capabilities(backend).memory != MRC_HOST)
        MRC_TRY(mrc_backend_create(&processor, task->context, "cpu"));
    mercer_status status = descend_by(task, processor ? processor : backend, logs);
    if (processor) mrc_backend_free(processor);
    return status;
}
