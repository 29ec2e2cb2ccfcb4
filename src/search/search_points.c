/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rows of a search, read once, in float. Without a given preprocessing every number x_k has two copies,
 * standardized S_k and ranked R_k (data/prepare/preprocess_rank.c), whose scales compete. Both are nondecreasing
 * functions of x_k, so in norm 1
 *
 *   a |S - S'| + b |R - R'| = |T - T'|,   T = a S + b R,   a, b >= 0
 *
 * and a kernel of both copies is a kernel of one column T, which is what the model keeps (preprocessing "blend").
 * Memory: 4 n width bytes.
 */
#include "search/search.h"

#include "core/matrix.h"

enum { BLOCK = 1024 };

static mercer_status number_columns(mrc_search_points *self)
{
    int64_t d = mercer_preprocess_width(self->preprocess, self->features);
    MRC_TRY(mrc_scope_alloc(self->scope, &self->feature, 2 * d, sizeof *self->feature, "columns of the search"));
    self->width = 0;
    for (int64_t k = 0; k < d; k++) self->feature[self->width++] = k;
    for (int64_t k = 0; k < d && self->blended; k++)
        if (!mrc_preprocess_is_flag(self->preprocess, k)) self->feature[self->width++] = k;
    return MERCER_OK;
}

/* Read copies of the features, and the targets. */
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

mercer_status mrc_search_points_read(mrc_search_points *self, const mrc_search_task *task, const mrc_split *split)
{
    mercer_dataset *data = task->data;
    int64_t n = split->count;
    self->features = data->features;
    self->blended = task->preprocess == NULL;
    MRC_TRY(task->preprocess ? mrc_preprocess_copy(&self->preprocess, task->context, task->preprocess)
                             : mercer_preprocess_fit(&self->preprocess, task->context, "blend", data));
    MRC_TRY(number_columns(self));
    MRC_TRY(mrc_scope_view(self->scope, &self->x, n, self->width, MERCER_F32, "rows of the search"));
    MRC_TRY(mrc_scope_view(self->scope, &self->y, n, data->outputs, MERCER_F64, "targets of the search"));
    MRC_TRY(self->blended ? read_copies(self, data, split->rows)
                          : mercer_dataset_read(data, &self->x, &self->y, NULL, self->preprocess, split->rows, 0));
    MRC_TRY(mrc_check_finite(task->context, "samples", &self->x, NULL));
    mrc_units_enter(task->units, &self->y, &self->y);
    if (!data->weights) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(self->scope, &self->weights, n, sizeof *self->weights, "weights of samples"));
    for (int64_t i = 0; i < n; i++) self->weights[i] = data->weights[split->rows[i]];
    return MERCER_OK;
}

void mrc_search_points_join(const mrc_search_points *self, const double *weights, const mercer_matrix *out)
{
    for (int64_t i = 0; i < out->rows; i++) {
        const float *from = mrc_row(&self->x, i);
        float *to = mrc_row(out, i);
        for (int64_t k = 0; k < out->cols; k++) to[k] = 0;
        for (int64_t j = 0; j < self->width; j++) to[self->feature[j]] += (float)(weights[j] * (double)from[j]);
    }
}
