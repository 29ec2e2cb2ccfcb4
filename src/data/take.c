/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies rows of a dataset into a new dataset in memory.
 *
 * The copy is independent of the files and memory of the original. Synthetic samples are computed once and stored. Rows
 * may be listed in any order and repeatedly.
 */
#include "data/dataset.h"

#include "core/matrix.h"
#include "core/memory.h"

/* Copies all names and the schema. Classes have one target column; values have one per output. */
static mercer_status copy_names(const mercer_dataset *from, mercer_dataset *to)
{
    int64_t targets = from->task == MERCER_TASK_CLASSIFICATION ? 1 : from->outputs;
    MRC_TRY(mrc_dataset_copy_names(to, from->label_names, from->outputs, &to->label_text, &to->label_names));
    MRC_TRY(mrc_dataset_copy_names(to, from->feature_names, from->features, &to->feature_text, &to->feature_names));
    MRC_TRY(mrc_dataset_copy_names(to, from->target_names, targets, &to->target_text, &to->target_names));
    MRC_TRY(mrc_dataset_copy_schema(to, from->schema));
    return mrc_dataset_copy_names(to, from->unused_names, from->unused, &to->unused_text, &to->unused_names);
}

/* Copies samples, targets, weights and keys of the listed rows. */
static mercer_status copy_rows(const mercer_dataset *from, mercer_dataset *to, const int64_t *rows)
{
    int64_t row;
    mercer_dtype real = mrc_dataset_has_values(from) ? from->y.dtype : MERCER_F32;
    if (!mrc_multiply(from->features, mrc_dtype_size(from->dtype), &row))
        return mrc_fail(to->context, MERCER_ERROR_SHAPE, "a sample of %lld features is too large",
                        (long long)from->features);
    MRC_TRY(mrc_alloc(to->context, &to->x_memory, to->rows, row, "samples of a part"));
    to->x = mrc_view(to->x_memory, to->rows, to->features, to->dtype);
    if (to->task == MERCER_TASK_CLASSIFICATION) {
        MRC_TRY(mrc_alloc(to->context, &to->label_memory, to->rows, sizeof *to->labels, "labels of a part"));
        to->labels = to->label_memory;
    } else if (to->task == MERCER_TASK_REGRESSION) {
        MRC_TRY(
            mrc_alloc(to->context, &to->y_memory, to->rows, to->outputs * mrc_dtype_size(real), "targets of a part"));
        to->y = mrc_view(to->y_memory, to->rows, to->outputs, real);
    }
    mrc_dataset_fetch(from, rows, 0, &to->x, to->y.data ? &to->y : NULL, to->labels);
    double *weights, *keys;
    if (from->keys) MRC_TRY(mrc_dataset_make_keys(to, from->key_kind, &keys));
    for (int64_t i = 0; i < to->rows && from->keys; i++) keys[i] = from->keys[rows[i]];
    if (!from->weights) return MERCER_OK;
    MRC_TRY(mrc_dataset_make_weights(to, &weights));
    for (int64_t i = 0; i < to->rows; i++) weights[i] = from->weights[rows[i]];
    return MERCER_OK;
}

mercer_status mrc_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows, int64_t count)
{
    MRC_OWNED(mrc_release_dataset) mercer_dataset *to = NULL;
    MRC_TRY(mrc_alloc_zero(from->context, &to, 1, sizeof(mercer_dataset), "the dataset"));
    *to = (mercer_dataset){.context = from->context,
                           .format = from->format,
                           .task = from->task,
                           .rows = count,
                           .features = from->features,
                           .outputs = from->outputs,
                           .dtype = from->dtype,
                           .height = from->height,
                           .width = from->width,
                           .channels = from->channels,
                           .unused = from->unused,
                           .distinct = from->distinct,
                           .left_out = from->left_out};
    MRC_TRY(copy_names(from, to));
    MRC_TRY(copy_rows(from, to, rows));
    *out = to, to = NULL;
    return MERCER_OK;
}
