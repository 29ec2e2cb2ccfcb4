/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datasets that borrow their samples from the caller's memory or from another dataset; and functions that give a
 * dataset its own weights, keys, names and schema.
 *
 * A view points to the rows, the names and the schema of another dataset. It copies none of them, so it needs only
 * O(parts) memory.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"

#include <string.h>

/* Allocates a dataset as a shallow copy of `like`, including its owning pointers, which the caller must replace. */
static mercer_status allocate_parts(mercer_dataset **out, mercer_context *context, const mercer_dataset *like)
{
    MRC_TRY(mrc_alloc_zero(context, out, 1, sizeof(mercer_dataset), "the dataset"));
    **out = *like;
    return MERCER_OK;
}

mercer_status mrc_dataset_make_weights(mercer_dataset *dataset, double **weights)
{
    MRC_TRY(mrc_alloc(dataset->context, weights, dataset->rows, sizeof **weights, "sample weights"));
    mrc_free(dataset->context, dataset->weight_memory);
    dataset->weights = dataset->weight_memory = *weights;
    return MERCER_OK;
}

mercer_status mrc_dataset_make_keys(mercer_dataset *dataset, mrc_key_kind kind, double **keys)
{
    double *memory;
    MRC_TRY(mrc_alloc(dataset->context, &memory, dataset->rows, sizeof *memory, "keys of samples"));
    mrc_free(dataset->context, dataset->key_memory);
    dataset->key_memory = memory;
    dataset->keys = *keys = memory;
    dataset->key_kind = kind;
    return MERCER_OK;
}

mercer_status mrc_dataset_copy_schema(mercer_dataset *dataset, const char *text)
{
    if (!text) return MERCER_OK;
    int64_t size = (int64_t)strlen(text) + 1;
    MRC_TRY(mrc_alloc(dataset->context, &dataset->schema_text, size, 1, "the schema"));
    memcpy(dataset->schema_text, text, (size_t)size);
    dataset->schema = dataset->schema_text;
    return MERCER_OK;
}

/* ---- Views of another dataset ---------------------------------------------------------------------------------- */

/* Copies the list of parts, restricted to rows first .. first + rows - 1. The copied parts borrow their rows. */
static mercer_status cut_parts(mercer_context *context, mrc_parts *out, const mrc_parts *whole, int64_t first,
                               int64_t rows)
{
    *out = (mrc_parts){0};
    if (whole->count == 0) return MERCER_OK;
    MRC_TRY(mrc_alloc(context, &out->list, whole->count, sizeof *out->list, "parts of a dataset"));
    for (int64_t i = 0; i < whole->count; i++) {
        mrc_part part = whole->list[i];
        int64_t from = mrc_max(first, part.first), end = mrc_min(first + rows, part.first + part.rows.rows);
        if (from >= end) continue;
        part.rows = mrc_rows(&part.rows, from - part.first, end - from);
        part.first = from - first;
        out->list[out->count++] = part;
    }
    return MERCER_OK;
}

/* Reduces a matrix to a range of rows. A matrix without data (rows in parts, or synthetic samples) only changes its
   shape. */
static void cut_matrix(mercer_matrix *matrix, int64_t first, int64_t rows)
{
    if (matrix->data) *matrix = mrc_rows(matrix, first, rows);
    if (matrix->cols > 0) matrix->rows = rows;
}

mercer_status mrc_dataset_range(mercer_dataset **out, const mercer_dataset *from, int64_t first, int64_t rows)
{
    MRC_OWNED(mrc_release_dataset) mercer_dataset *self = NULL;
    *out = NULL;
    MRC_TRY(allocate_parts(&self, from->context, from));
    self->borrowed = true;
    /* The shallow copy still points to everything that `from` owns. Clear the owning pointers, so that freeing the view
       does not free that memory; x, y, labels and names keep their addresses. */
    self->x_memory = self->y_memory = self->label_memory = self->weight_memory = self->key_memory = NULL;
    self->label_text = self->feature_text = self->target_text = self->unused_text = self->schema_text = NULL;
    self->x_parts = self->y_parts = (mrc_parts){0};
    self->rows = rows;
    cut_matrix(&self->x, first, rows);
    cut_matrix(&self->y, first, rows);
    cut_matrix(&self->on_device, first, rows);
    if (self->labels) self->labels += first;
    if (self->weights) self->weights += first;
    if (self->keys) self->keys += first;
    /* Synthetic samples are not stored: the view begins `first` samples later in the sequence of the generator. */
    self->synth_first += first;
    MRC_TRY(cut_parts(from->context, &self->x_parts, &from->x_parts, first, rows));
    MRC_TRY(cut_parts(from->context, &self->y_parts, &from->y_parts, first, rows));
    *out = self, self = NULL;
    return MERCER_OK;
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------- */

mercer_status mrc_dataset_copy_names(mercer_dataset *self, const char *const *names, int64_t count, void **memory,
                                     const char *const **list)
{
    if (!names) return MERCER_OK;
    MRC_TRY(mrc_copy_texts(self->context, memory, names, count));
    *list = *memory;
    return MERCER_OK;
}

mercer_status mrc_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                      const mercer_dataset_arrays *arrays)
{
    const mercer_matrix *X = arrays->X, *Y = arrays->Y;
    mercer_task task = arrays->labels ? MERCER_TASK_CLASSIFICATION : Y ? MERCER_TASK_REGRESSION : MERCER_TASK_UNLABELED;
    const mercer_dataset like = {.context = context,
                                 .format = "array",
                                 .task = task,
                                 .rows = X->rows,
                                 .features = X->cols,
                                 .outputs = arrays->labels ? arrays->classes
                                            : Y            ? Y->cols
                                                           : 0,
                                 .dtype = X->dtype,
                                 .x = *X,
                                 .y = Y ? *Y : (mercer_matrix){0},
                                 .labels = (int32_t *)arrays->labels,
                                 .weights = arrays->weights,
                                 .keys = arrays->groups ? arrays->groups : arrays->times,
                                 .key_kind = arrays->groups  ? MRC_KEYS_GROUPS
                                             : arrays->times ? MRC_KEYS_TIMES
                                                             : MRC_KEYS_NONE,
                                 .borrowed = true};
    MRC_OWNED(mrc_release_dataset) mercer_dataset *self = NULL;
    MRC_TRY(allocate_parts(&self, context, &like));
    MRC_TRY(mrc_dataset_copy_names(self, arrays->label_names, self->outputs, &self->label_text, &self->label_names));
    MRC_TRY(
        mrc_dataset_copy_names(self, arrays->feature_names, self->features, &self->feature_text, &self->feature_names));
    MRC_TRY(mrc_dataset_copy_schema(self, arrays->schema));
    *out = self, self = NULL;
    return MERCER_OK;
}
