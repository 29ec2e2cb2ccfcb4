/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: model files; names, note, schema and preprocessing of models. */
#include "model/model_file.h"

#include "api/api_options.h"
#include "data/table/columns.h"

#include <string.h>

mercer_status mercer_model_save(mercer_model *model, const char *path, const mercer_save_options *options)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (!path) return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "path is NULL");
    mercer_save_options ours;
    MRC_TRY(mrc_read_struct(model->context, &ours, MRC_STRUCT(mercer_save_options), options, "options"));
    return mrc_model_write(model, path, &ours, NULL, 0);
}

/* The whole file is read and all checksums are verified, so a header is never returned from a damaged file. *needed
   includes the terminating zero. *needed is set before the size is checked, so a call with size 0 sets it and fails. */
mercer_status mercer_model_file_header(mercer_context *context, char *text, size_t size, size_t *needed,
                                       const char *path)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    if (size > 0 && !text) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text is NULL");
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    MRC_TRY(mrc_tensor_file_open(&file, context, path));
    int64_t length;
    const char *header = mrc_tensor_file_header(file, &length);
    size_t bytes = (size_t)length + 1;
    if (needed) *needed = bytes;
    if (bytes > size)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text: %zu bytes are too few; %zu are needed", size, bytes);
    memcpy(text, header, bytes - 1);
    text[bytes - 1] = 0;
    return MERCER_OK;
}

/* ---- Labels, note, preprocessing ----------------------------------------------------------------------------- */

/* Sets columns[j] to the index of the caller's column that is feature j. If both sides have names, additional columns
   are allowed. Otherwise columns are matched by position, so there must be as many columns as features. */
mercer_status mercer_model_match(const mercer_model *model, int64_t *columns, const char *const *names, int64_t count)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    int64_t features = mrc_model_features(model);
    if (!columns) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "columns is NULL");
    if (count < 0) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "count is %lld", (long long)count);
    for (int64_t i = 0; names && i < count; i++)
        if (!names[i]) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "names[%lld] is NULL", (long long)i);
    if (names && model->feature_names)
        return mrc_columns_match(context, "names", names, count, model->feature_names, features, columns);
    if (count != features)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "%lld columns, but the model was trained on %lld",
                        (long long)count, (long long)features);
    for (int64_t j = 0; j < features; j++) columns[j] = j;
    return MERCER_OK;
}

/* A preprocessing with fitted = 0, such as a single factor, applies to any number of features. The copy is made before
   the old preprocessing is released, so a failure leaves the model unchanged. */
mercer_status mercer_model_set_preprocess(mercer_model *model, const mercer_preprocess *preprocess)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    mercer_preprocess *copy = NULL;
    int64_t fitted = mrc_preprocess_features(preprocess), width = mrc_preprocess_width(preprocess, fitted);
    if (fitted > 0 && width != model->centers.cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "preprocess: makes samples of %lld features, but the centers of the model have %lld",
                        (long long)width, (long long)model->centers.cols);
    if (model->feature_names && fitted > 0 && fitted != mrc_model_features(model))
        return mrc_fail(context, MERCER_ERROR_SHAPE, "preprocess: is for %lld features, but the model has %lld names",
                        (long long)fitted, (long long)mrc_model_features(model));
    if (preprocess) MRC_TRY(mrc_preprocess_copy(&copy, context, preprocess));
    mrc_preprocess_free(model->preprocess);
    model->preprocess = copy;
    return MERCER_OK;
}
