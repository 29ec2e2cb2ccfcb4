/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of a search, read once, in float. Without a given preprocessing every numeric feature x_k has two copies,
 * standardized S_k and ranked R_k (data/prepare/preprocess_rank.c), and the descent weighs them. Both are nondecreasing
 * functions of x_k, so in norm 1
 *
 *   a |S - S'| + b |R - R'| = |T - T'|,   T = a S + b R,   a, b >= 0
 *
 * so a kernel of both copies is a kernel of the single column T, which the model uses (preprocessing "blend"). Memory:
 * 4 n width bytes.
 */
#include "search/search_parts.h"

#include "core/matrix.h"

#include <math.h>

/* number of rows per block when reading */
enum { BLOCK = 1024 };

/* Sets the feature of each column: first all features in order, then the features that have a ranked copy. Flags (0 or
   1) have no ranked copy, because it would equal the flag. */
static mercer_status number_columns(mrc_search_points *self, int64_t features)
{
    int64_t d = mrc_preprocess_width(self->preprocess, features);
    MRC_TRY(mrc_scope_alloc(self->scope, &self->feature, 2 * d, sizeof *self->feature, "columns of the search"));
    self->features = d, self->width = 0;
    for (int64_t k = 0; k < d; k++) self->feature[self->width++] = k;
    for (int64_t k = 0; k < d && self->blended; k++)
        if (!mrc_preprocess_is_flag(self->preprocess, k)) self->feature[self->width++] = k;
    return MERCER_OK;
}

/* Reads both copies of the features, and the targets, of the given rows. */
static mercer_status read_copies(mrc_search_points *self, const mercer_dataset *data, const int64_t *rows)
{
    mercer_matrix raw, standard, ranked;
    int64_t d = self->features, n = self->x.rows;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_view(&scope, &raw, BLOCK, d, data->dtype, "rows of the search"));
    MRC_TRY(mrc_scope_view(&scope, &standard, BLOCK, d, MERCER_F32, "rows of the search"));
    MRC_TRY(mrc_scope_view(&scope, &ranked, BLOCK, d, MERCER_F32, "rows of the search"));
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t count = mrc_min(BLOCK, n - done);
        mercer_matrix r = mrc_rows(&raw, 0, count), s = mrc_rows(&standard, 0, count), t = mrc_rows(&ranked, 0, count),
                      y = mrc_rows(&self->y, done, count);
        MRC_TRY(mercer_dataset_read(data, &r, &y, NULL, NULL, rows + done, 0));
        mrc_preprocess_blend_parts(self->preprocess, &s, &t, &r);
        for (int64_t i = 0; i < count; i++) {
            float *to = mrc_row(&self->x, done + i);
            for (int64_t j = 0; j < self->width; j++)
                to[j] = ((const float *)mrc_row(j < d ? &s : &t, i))[self->feature[j]];
        }
    }
    return MERCER_OK;
}

/* Divides all targets by the square root of their mean variance, so that errors are relative to that variance. */
static void scale_targets(mrc_search_points *self)
{
    double total = 0, variance = 0;
    int64_t n = self->y.rows, c = self->y.cols;
    for (int64_t i = 0; i < n; i++) total += self->weights ? self->weights[i] : 1;
    for (int64_t l = 0; l < c; l++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            double w = self->weights ? self->weights[i] : 1, y = mrc_load(&self->y, i, l);
            sum += w * y, squares += w * y * y;
        }
        variance += (squares - sum * sum / total) / total / (double)c;
    }
    if (!(variance > 0) || !isfinite(variance)) return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < c; l++) mrc_store(&self->y, i, l, mrc_load(&self->y, i, l) / sqrt(variance));
}

mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split)
{
    mercer_dataset *data = task->data;
    int64_t n = mrc_folds_rows(&split->folds);
    self->blended = task->preprocess == NULL;
    MRC_TRY(task->preprocess ? mrc_preprocess_copy(&self->preprocess, task->context, task->preprocess)
                             : mercer_preprocess_fit(&self->preprocess, task->context, "blend", data));
    MRC_TRY(number_columns(self, data->features));
    MRC_TRY(mrc_scope_view(self->scope, &self->x, n, self->width, MERCER_F32, "rows of the search"));
    MRC_TRY(mrc_scope_view(self->scope, &self->y, n, data->outputs, MERCER_F64, "targets of the search"));
    MRC_TRY(self->blended ? read_copies(self, data, split->rows)
                          : mercer_dataset_read(data, &self->x, &self->y, NULL, self->preprocess, split->rows, 0));
    MRC_TRY(mrc_check_finite(task->context, "samples", &self->x, NULL));
    mrc_units_apply(task->units, &self->y, &self->y);
    if (data->weights) {
        MRC_TRY(mrc_scope_alloc(self->scope, &self->weights, n, sizeof *self->weights, "weights of samples"));
        for (int64_t i = 0; i < n; i++) self->weights[i] = data->weights[split->rows[i]];
    }
    scale_targets(self);
    return MERCER_OK;
}

void mrc_search_points_blend(const mrc_search_points *self, const double *weights, const mercer_matrix *out)
{
    for (int64_t i = 0; i < out->rows; i++) {
        const float *from = mrc_row(&self->x, i);
        float *to = mrc_row(out, i);
        for (int64_t k = 0; k < out->cols; k++) to[k] = 0;
        for (int64_t j = 0; j < self->width; j++) to[self->feature[j]] += (float)(weights[j] * (double)from[j]);
    }
}

/* Writes to out (d) the row `from` (width), multiplied by the factors (width) and then by a map (features, d). */
static void map_row(const mrc_search_points *points, const double *factors, const double *map, int64_t d,
                    const float *from, float *out)
{
    for (int64_t l = 0; l < d; l++) {
        double sum = 0;
        for (int64_t j = 0; j < points->width; j++)
            sum += (double)from[j] * factors[j] * map[points->feature[j] * d + l];
        out[l] = (float)sum;
    }
}

mercer_status mrc_search_points_map(const mrc_searcher *self, const mrc_candidate *candidate, int64_t first,
                                    const mercer_matrix *to)
{
    const mrc_descent_space *space = candidate->space;
    const double *values = candidate->values;
    int64_t k = space->x.cols;
    double *factors;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_alloc(&scope, &factors, k, sizeof *factors, "scales"));
    for (int64_t j = 0; j < k; j++) factors[j] = exp(values[space->kind == MRC_LEARN_SCALE ? 0 : j]);
    for (int64_t i = 0; i < to->rows; i++) {
        const float *from = mrc_row(&space->x, first + i);
        float *out = mrc_row(to, i);
        if (space->kind == MRC_LEARN_MAP) map_row(&self->points, factors, values + k, to->cols, from, out);
        for (int64_t j = 0; j < k && space->kind != MRC_LEARN_MAP; j++) out[j] = (float)((double)from[j] * factors[j]);
    }
    return MERCER_OK;
}

/* ---- The model's preprocessing ----------------------------------------------------------------------------------- */

/* copies with less than this share of the largest weight are dropped from the model, which makes predictions faster */
#define DROPPED 1e-4

/* Sets the bandwidth of the result to the given bandwidth, or else to the inverse of the largest weight. Returns the
   weight that becomes 1 in the model. */
static double choose_unit(mrc_searcher *self, double largest)
{
    double given = self->task->bandwidth, unit = given > 0 ? 1 / given : largest;
    self->result->kernel.bandwidth = given > 0 ? given : 1 / largest;
    return unit;
}

/* Stores the weights of the copies (width) in the preprocessing. */
static mercer_status save_blend(const mrc_search_points *points, const double *weights)
{
    int64_t d = points->features;
    double *factors;
    MRC_SCOPE(scope, points->preprocess->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &factors, 2 * d, sizeof *factors, "scales"));
    for (int64_t j = 0; j < points->width; j++) factors[(j < d ? 0 : d) + points->feature[j]] = weights[j];
    return mrc_preprocess_set_blend(points->preprocess, factors, factors + d);
}

/* Stores the scales of a candidate, normalized by choose_unit. In norm 1 with copies, the scales are the weights of the
   blend; otherwise they are a diagonal map. */
static mercer_status save_scales(mrc_searcher *self, const mrc_candidate *best)
{
    const mrc_search_points *points = &self->points;
    int64_t k = best->space->x.cols;
    bool norm_1 = best->space->norm == 1;
    double *scales, largest = 0;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_alloc(&scope, &scales, k, sizeof *scales, "scales"));
    for (int64_t j = 0; j < k; j++) {
        scales[j] = exp(best->values[j]);
        largest = fmax(largest, scales[j]);
    }
    double unit = choose_unit(self, largest);
    for (int64_t j = 0; j < k; j++) scales[j] = norm_1 && scales[j] < DROPPED * largest ? 0 : scales[j] / unit;
    if (norm_1 && points->blended) return save_blend(points, scales);
    if (points->blended) MRC_TRY(save_blend(points, self->weights));
    return mrc_preprocess_set_map(points->preprocess, k, k, true, scales);
}

/* Stores the factors of a candidate as the weights of the blend, then its map, normalized by choose_unit. Without
   copies the factors are multiplied into the map. */
static mercer_status save_map(mrc_searcher *self, const mrc_candidate *best)
{
    const mrc_search_points *points = &self->points;
    int64_t d = points->features, width = points->width;
    double *factors, *map, largest = 0;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_alloc(&scope, &factors, width, sizeof *factors, "scales"));
    MRC_TRY(mrc_scope_alloc(&scope, &map, d * d, sizeof *map, "the metric"));
    for (int64_t j = 0; j < width; j++) factors[j] = exp(best->values[j]);
    if (points->blended) MRC_TRY(save_blend(points, factors));
    for (int64_t i = 0; i < d * d; i++) {
        map[i] = (points->blended ? 1 : factors[i / d]) * best->values[width + i];
        largest = fmax(largest, fabs(map[i]));
    }
    double unit = choose_unit(self, largest);
    for (int64_t i = 0; i < d * d; i++) map[i] /= unit;
    return mrc_preprocess_set_map(points->preprocess, d, d, false, map);
}

mercer_status mrc_search_use_candidate(mrc_searcher *self, const mrc_candidate *best)
{
    mrc_search_result *result = self->result;
    result->kernel = best->kernel;
    switch (best->space->kind) {
        case MRC_LEARN_SCALE: choose_unit(self, exp(best->values[0])); break;
        case MRC_LEARN_SCALES: MRC_TRY(save_scales(self, best)); break;
        case MRC_LEARN_MAP: MRC_TRY(save_map(self, best)); break;
    }
    result->preprocess = self->points.preprocess;
    self->points.preprocess = NULL;
    return MERCER_OK;
}
