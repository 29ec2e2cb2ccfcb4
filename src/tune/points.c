/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of a search: read once for each preprocessing, in float, and mapped by the metric of a candidate when it is its
 * turn. Memory: 4 n d bytes for each preprocessing, and once more for those mapped.
 */
#include "tune/tune.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

static mercer_status make(mrc_tune_points *self, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    *out = mrc_view(NULL, rows, cols, dtype);
    return mrc_scope_alloc(self->scope, &out->data, rows * mrc_max(1, cols), mrc_dtype_size(dtype),
                           "rows of the search");
}

/* Samples, and centers that are given, after one preprocessing, which is fitted to all samples. */
static mercer_status prepare(mrc_tune_points *self, const mrc_tune_task *task, const mrc_split *split, int which,
                             int64_t most_centers)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *preprocess = NULL;
    MRC_TRY(mercer_preprocess_fit(&preprocess, self->context, task->preparations[which], task->data));
    MRC_TRY(make(self, &self->plain[which], self->n, self->d, MERCER_F32));
    MRC_TRY(mercer_dataset_read(task->data, &self->plain[which], which == 0 ? &self->y : NULL, NULL, preprocess,
                                split->rows, 0));
    MRC_TRY(mrc_check_finite(self->context, "samples", &self->plain[which], NULL));
    if (!task->given_centers) return MERCER_OK;
    int64_t p = mrc_min(task->given_centers->rows, most_centers);
    MRC_TRY(make(self, &self->centers[which], p, self->d, MERCER_F32));
    return mercer_dataset_read(task->given_centers, &self->centers[which], NULL, NULL, preprocess, NULL, 0);
}

mercer_status mrc_tune_points_read(mrc_tune_points *self, const mrc_tune_task *task, const mrc_split *split,
                                   int64_t most_centers)
{
    const double *weights = task->data->weights;
    self->n = split->count, self->d = task->data->features, self->c = task->data->outputs;
    MRC_TRY(make(self, &self->y, self->n, self->c, MERCER_F64));
    MRC_TRY(make(self, &self->mapped, self->n, self->d, MERCER_F32));
    MRC_TRY(make(self, &self->z, most_centers, self->d, MERCER_F32));
    MRC_TRY(mrc_scope_alloc(self->scope, &self->map, self->d, mrc_max(1, self->d) * (int64_t)sizeof *self->map,
                            "a metric"));
    for (int i = 0; i < task->preparation_count; i++) MRC_TRY(prepare(self, task, split, i, most_centers));
    if (weights)
        MRC_TRY(mrc_scope_alloc(self->scope, &self->weights, self->n, sizeof *self->weights, "weights of samples"));
    for (int64_t i = 0; i < self->n && weights; i++) self->weights[i] = weights[split->rows[i]];
    mrc_units_enter(task->units, &self->y, &self->y);
    return MERCER_OK;
}

/* to = from A. */
static mercer_status map_rows(mrc_tune_points *self, const mrc_metric *metric, const mercer_matrix *from,
                              const mercer_matrix *to)
{
    mrc_backend *backend = self->context->backend;
    if (!metric->map || metric->diagonal) {
        MRC_TRY(backend->ops->copy(backend, to, from));
        return metric->map ? backend->ops->scale_columns(backend, to, metric->map) : MERCER_OK;
    }
    mercer_matrix a = mrc_view(self->map, self->d, metric->width, MERCER_F32);
    for (int64_t i = 0; i < self->d * metric->width; i++) self->map[i] = (float)metric->map[i];
    mrc_gemm job = {.alpha = 1, .a = from, .b = &a, .c = to};
    return backend->ops->gemm(backend, &job);
}

mercer_status mrc_tune_points_map(mrc_tune_points *self, int preparation, const mrc_metric *metric,
                                  const mrc_small_rows *rows, int64_t p, mercer_matrix *x, mercer_matrix *z)
{
    int64_t width = metric->map ? metric->width : self->d;
    *x = mrc_view(self->mapped.data, self->n, width, MERCER_F32), *z = mrc_view(self->z.data, p, width, MERCER_F32);
    for (int f = 0; f < rows->count; f++) {
        mrc_span fold = rows->folds[f];
        mercer_matrix from = mrc_rows(&self->plain[preparation], fold.first, fold.count),
                      to = mrc_rows(x, fold.first, fold.count);
        MRC_TRY(map_rows(self, metric, &from, &to));
    }
    if (self->centers[preparation].data) {
        mercer_matrix from = mrc_rows(&self->centers[preparation], 0, p);
        return map_rows(self, metric, &from, z);
    }
    mrc_small_gather_centers(rows, x, z);
    return MERCER_OK;
}
