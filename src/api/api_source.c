/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: sources of samples, over arrays and datasets.
 *
 * Both are streams over a dataset (data/stream/dataset_stream.h). Arrays become a dataset on the stack: the stream
 * copies the struct and borrows the arrays, so the caller must keep them as long as the source.
 */
#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "data/stream/dataset_stream.h"

#include <string.h>

/* Returns the number of threads that prepare samples: all threads of the context if training runs on a device, because
   the CPU is then idle; otherwise 1. */
static int sample_threads(mercer_context *context)
{
    mrc_backend *backend = context->backend;
    return mrc_backend_memory(backend) == MRC_HOST ? 1 : context->threads;
}

/* ---- Arrays -------------------------------------------------------------------------------------------------- */

/* Sets the targets of the dataset to labels or Y; one of them is required, because a source is used for training. The
   stream turns labels into one-hot rows of `classes` columns, so the labels are checked against that number here. */
static mercer_status take_targets(mercer_context *context, mercer_dataset *data, const mercer_dataset_arrays *arrays)
{
    const mercer_matrix *X = arrays->X, *Y = arrays->Y;
    if (Y && arrays->labels) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: Y and labels are both set");
    if (!arrays->labels && arrays->classes)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: classes is set, but labels is NULL");
    if (arrays->labels) {
        data->task = MERCER_TASK_CLASSIFICATION;
        data->labels = (int32_t *)arrays->labels;
        data->outputs = arrays->classes;
        return mrc_check_classes(context, arrays->labels, X->rows, arrays->classes);
    }
    if (!Y) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: Y and labels are NULL; set one of them");
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    if (Y->rows != X->rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "Y has %lld rows, but X has %lld", (long long)Y->rows,
                        (long long)X->rows);
    data->task = MERCER_TASK_REGRESSION;
    data->y = *Y;
    data->outputs = Y->cols;
    return mrc_check_finite(context, "Y", Y, NULL);
}

/* X must have been checked before take_targets, which compares row counts with it. Values are scanned after that, since
   this is the only check that reads all of X. Rows are shuffled individually (block 1). No thread reads ahead, because
   a sample costs only a copy. */
mercer_status mercer_source_from_arrays(mercer_source *out, mercer_context *context,
                                        const mercer_dataset_arrays *arrays, uint64_t seed)
{
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!arrays) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays is NULL");
    mercer_dataset_arrays ours;
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_dataset_arrays), arrays, "arrays"));
    MRC_TRY(mrc_check_matrix(context, "X", ours.X, MRC_ACCEPT_ANY));
    mercer_dataset data = {
        .context = context, .rows = ours.X->rows, .features = ours.X->cols, .dtype = ours.X->dtype, .x = *ours.X};
    MRC_TRY(take_targets(context, &data, &ours));
    MRC_TRY(mrc_check_finite(context, "X", ours.X, NULL));
    MRC_TRY(mrc_check_weights(context, ours.weights, ours.X->rows));
    const mrc_data_stream_options options = {.stream = {.seed = seed, .block = 1, .prefetch = MERCER_OFF},
                                             .weights = ours.weights,
                                             .threads = sample_threads(context)};
    return mrc_data_stream_create(out, context, &data, &options);
}

/* Clears the struct, so that a second call has no effect. The struct belongs to the caller. */
void mercer_source_free(mercer_source *source)
{
    if (!source || !source->release) return;
    source->release(source->user);
    memset(source, 0, sizeof *source);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Checks the numbers of the options; the stream itself checks the text of the augmentation. */
static mercer_status check_numbers(mercer_context *context, const mercer_stream_options *options)
{
    const mrc_bound numbers[] = {{"height", options->height, 0},
                                 {"width", options->width, 0},
                                 {"channels", options->channels, 0},
                                 {"samples", options->samples, 0},
                                 {"block", options->block, 0}};
    MRC_TRY(mrc_check_bounds(context, numbers, sizeof numbers / sizeof *numbers));
    if (options->prefetch < MERCER_AUTO || options->prefetch > MERCER_OFF)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: prefetch is %d; use MERCER_AUTO, _ON or _OFF",
                        (int)options->prefetch);
    return MERCER_OK;
}

/* Checks that the dataset can be trained on with this preprocessing. */
static mercer_status check_dataset(mercer_context *context, const mercer_dataset *data,
                                   const mercer_preprocess *preprocess)
{
    if (data->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "dataset: has no samples");
    if (data->task == MERCER_TASK_UNLABELED || data->outputs < 1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "dataset: has no targets to learn");
    int64_t fitted = mrc_preprocess_features(preprocess);
    if (fitted > 0 && fitted != data->features)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "preprocess was fitted to %lld features, but the dataset has "
                        "%lld",
                        (long long)fitted, (long long)data->features);
    return MERCER_OK;
}

mercer_status mercer_source_from_dataset(mercer_source *out, mercer_dataset *dataset,
                                         const mercer_stream_options *options)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    mercer_context *context = dataset->context;
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    mrc_data_stream_options wanted = {.threads = sample_threads(context)};
    MRC_TRY(mrc_read_struct(context, &wanted.stream, MRC_STRUCT(mercer_stream_options), options, "options"));
    MRC_TRY(check_numbers(context, &wanted.stream));
    MRC_TRY(check_dataset(context, dataset, wanted.stream.preprocess));
    return mrc_data_stream_create(out, context, dataset, &wanted);
}
