/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth and ridge of a round of learning, chosen together by small fits (tune/small_fits.h): for each bandwidth and
 * each ridge a fit to X, judged by its squared error on V; the pair with the smallest wins.
 *
 * X (n, d) are at most 8,192 rows of the samples, Z (p, d) at most 1,024 of them or of the centers given, V (n', d) at
 * most 8,192 rows held back; samples that count more than once are rows times the root of their weight. What is best
 * for these is nearly what is best for all, l being the ridge of one sample. Cost: n p^2 flops for each bandwidth and
 * p^3 / 3 for each ridge, all in double; memory 4 p^2 and some rows of p, at most 80 MB.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "tune/small_fits.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 8192, MOST_CENTERS = 1024, RIDGES = 5 };
static const double ridges[RIDGES] = {1e-7, 1e-6, 1e-5, 1e-4, 1e-3};
#define RANDOM_CENTERS UINT64_C(0x67726964)

typedef struct grid {
    mercer_context *context;
    const mercer_fitting *sample;
    const mercer_preprocess *preprocess;
    mercer_kernel kernel;
    mrc_small_rows rows; /* those fitted to, then those held back, in double; targets centred as the model's will be */
    double *weights;     /* (rows), of `rows` */
    mercer_matrix z;     /* (p, d) */
    const double *tried; /* ridges, */
    int count;           /* and how many */
    mrc_choice best;
} grid;

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Rows spread over a dataset become a fold. */
static mercer_status read_fold(grid *self, const mercer_dataset *from, int fold)
{
    int64_t rows[MOST_ROWS], first = fold > 0 ? self->rows.folds[0].count : 0, m = mrc_min(from->rows, MOST_ROWS);
    mercer_matrix x = mrc_rows(&self->rows.x, first, m), y = mrc_rows(&self->rows.y, first, m);
    self->rows.folds[fold] = (mrc_span){first, m};
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)from->rows / (double)m);
    for (int64_t i = 0; i < m; i++) self->weights[first + i] = from->weights ? from->weights[rows[i]] : 1;
    MRC_TRY(mercer_dataset_read(from, &x, &y, NULL, self->preprocess, rows, 0));
    MRC_TRY(mrc_check_finite(self->context, "samples", &x, NULL));
    mrc_units_enter(&self->sample->units, &y, &y);
    return MERCER_OK;
}

static mercer_status read_rows(grid *self, mrc_scope *scope)
{
    const mercer_dataset *data = self->sample->data, *held = self->sample->validation;
    int64_t n = mrc_min(data->rows, MOST_ROWS) + mrc_min(held->rows, MOST_ROWS), c = data->outputs;
    int64_t d = mercer_preprocess_width(self->preprocess, data->features);
    double *numbers;
    MRC_TRY(mrc_scope_alloc(scope, &numbers, n, (d + c + 1) * (int64_t)sizeof *numbers, "rows of small fits"));
    self->rows = (mrc_small_rows){
        .x = mrc_view(numbers, n, d, MERCER_F64), .y = mrc_view(numbers + n * d, n, c, MERCER_F64), .count = 2};
    self->weights = numbers + n * (d + c);
    if (data->weights || held->weights) self->rows.weights = self->weights;
    MRC_TRY(read_fold(self, data, 0));
    return read_fold(self, held, 1);
}

/* Given centers, in the mapped space, or random rows of X. */
static mercer_status take_centers(grid *self, mrc_scope *scope)
{
    const mercer_dataset *given = self->sample->options.given_centers;
    int64_t wanted = given                               ? given->rows
                     : self->sample->options.centers > 0 ? self->sample->options.centers
                                                         : MOST_ROWS;
    int64_t from = given ? given->rows : self->rows.folds[0].count, d = self->rows.x.cols;
    int64_t p = mrc_min(mrc_min(wanted, from), MOST_CENTERS), rows[MOST_CENTERS];
    self->z = mrc_view(NULL, p, d, MERCER_F64);
    MRC_TRY(mrc_scope_alloc(scope, &self->z.data, p * d, sizeof(double), "centers of small fits"));
    mrc_rng rng = {self->sample->options.seed, RANDOM_CENTERS};
    for (int64_t j = 0; j < p; j++) rows[j] = mrc_random_permutation(rng, from, j);
    if (given) return mercer_dataset_read(given, &self->z, NULL, NULL, self->preprocess, rows, 0);
    for (int64_t j = 0; j < p; j++)
        memcpy(mrc_row(&self->z, j), mrc_row(&self->rows.x, rows[j]), (size_t)d * sizeof(double));
    return MERCER_OK;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static mercer_status try_all(grid *self, const double *bandwidths, int count, int at_least)
{
    MRC_OWNED(mrc_release_small_fits) mrc_small_fits *fits = NULL;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(read_rows(self, &scope));
    MRC_TRY(take_centers(self, &scope));
    MRC_TRY(
        mrc_small_fits_create(&fits, self->context, &self->rows, self->z.rows, MRC_HOLDOUT, self->tried, self->count));
    for (int i = 0; i < count && (i < at_least || self->best.bandwidth == bandwidths[i - 1]); i++) {
        double errors[RIDGES];
        self->kernel.bandwidth = bandwidths[i];
        MRC_TRY(mrc_small_fits_try(fits, &self->kernel, &self->rows.x, &self->z, NULL, errors));
        for (int r = 0; r < self->count; r++)
            if (errors[r] < self->best.error) self->best = (mrc_choice){bandwidths[i], self->tried[r], errors[r]};
    }
    return MERCER_OK;
}

mercer_status mrc_fit_choose(const mercer_fitting *sample, const mercer_kernel *kernel,
                             const mercer_preprocess *preprocess, const double *bandwidths, int count, int at_least,
                             double ridge, mrc_choice *out)
{
    grid self = {.context = sample->context, .sample = sample, .preprocess = preprocess, .kernel = *kernel};
    self.tried = ridge >= 0 ? &ridge : ridges;
    self.count = ridge >= 0 ? 1 : (int)RIDGES;
    self.best = (mrc_choice){bandwidths[0], fmax(ridge, 0), (double)INFINITY};
    MRC_TRY(try_all(&self, bandwidths, count, at_least));
    *out = self.best;
    return MERCER_OK;
}
