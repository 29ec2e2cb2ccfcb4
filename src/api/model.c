/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: models and sources of samples. */
#include "model/model.h"

#include "api/options.h"
#include "backend/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/memory_source.h"

#include <math.h>
#include <string.h>

/* ---- Models -------------------------------------------------------------------------------------------------- */

mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                  const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    MRC_TRY(mrc_kernel_check(context, kernel));
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    if (centers->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "centers: a model needs at least one");
    if (outputs < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "outputs is %lld, it must be at least 1", (long long)outputs);
    if (!weights) weights = centers->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    if (weights != MERCER_F32 && weights != MERCER_F64)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "weights: dtype %s is not accepted here; use f32 or f64",
                        mrc_dtype_name(weights));
    MRC_TRY(mrc_check_finite(context, "centers", centers, NULL));
    mercer_model *model;
    MRC_TRY(mrc_model_create(&model, context, kernel, centers, outputs, weights));
    mercer_status status = context->backend->ops->column_mean(context->backend, &model->centers, model->origin);
    if (status != MERCER_OK) {
        mrc_model_free(model);
        return status;
    }
    *out = model;
    return MERCER_OK;
}

void mercer_model_free(mercer_model *model)
{
    mrc_model_free(model);
}

const mercer_kernel *mercer_model_kernel(const mercer_model *model)
{
    return model ? &model->kernel : NULL;
}

mercer_matrix mercer_model_centers(const mercer_model *model)
{
    return model ? model->centers : (mercer_matrix){0};
}

mercer_matrix mercer_model_weights(const mercer_model *model)
{
    return model ? model->weights : (mercer_matrix){0};
}

static mercer_status check_input(mercer_model *model, const mercer_matrix *X)
{
    mercer_context *context = model->context;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    if (X->cols != model->centers.cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld columns, the model's centers have %lld",
                        (long long)X->cols, (long long)model->centers.cols);
    return mrc_check_finite(context, "X", X, NULL);
}

static mercer_status predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    mrc_backend *backend = model->context->backend;
    mrc_pair pair = {.kernel = &model->kernel, .x = X, .z = &model->centers, .origin = model->origin};
    return backend->ops->kernel_matmul(backend, &pair, &model->weights, F, false);
}

mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    MRC_TRY(check_input(model, X));
    MRC_TRY(mrc_check_matrix(context, "F", F, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "F", F, X->rows, model->weights.cols));
    MRC_TRY(mrc_check_apart(context, "F", F, "X", X));
    return predict(model, F, X);
}

enum { CLASSIFY_ROWS = 4096 };

mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    MRC_TRY(check_input(model, X));
    if (X->rows > 0 && !labels) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "labels is NULL");
    int64_t block = mrc_min(CLASSIFY_ROWS, X->rows), c = model->weights.cols;
    void *memory;
    MRC_TRY(mrc_alloc(context, &memory, block * c, mrc_dtype_size(model->weights.dtype), "predictions"));
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < X->rows && status == MERCER_OK; first += block) {
        mercer_matrix part = mrc_rows(X, first, mrc_min(block, X->rows - first));
        mercer_matrix f = mrc_view(memory, part.rows, c, model->weights.dtype);
        status = predict(model, &f, &part);
        for (int64_t i = 0; i < part.rows && status == MERCER_OK; i++) {
            int32_t best = 0;
            for (int32_t j = 1; j < c; j++)
                if (mrc_load(&f, i, j) > mrc_load(&f, i, best)) best = j;
            labels[first + i] = best;
        }
    }
    mrc_free(context, memory);
    return status;
}

/* ---- Sources ------------------------------------------------------------------------------------------------- */

static mercer_status create_source(mercer_source *out, mercer_context *context,
                                   const mrc_memory_source_options *options)
{
    MRC_TRY(mrc_check_matrix(context, "X", options->x, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_finite(context, "X", options->x, NULL));
    MRC_TRY(mrc_check_weights(context, options->weights, options->x->rows));
    return mrc_memory_source_create(out, context, options);
}

mercer_status mercer_source_from_matrices(mercer_source *out, mercer_context *context, const mercer_matrix *X,
                                          const mercer_matrix *Y, const double *weights, uint64_t seed)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    if (Y->rows != X->rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "Y has %lld rows, X has %lld", (long long)Y->rows,
                        (long long)X->rows);
    MRC_TRY(mrc_check_finite(context, "Y", Y, NULL));
    mrc_memory_source_options options = {.x = X, .y = Y, .weights = weights, .seed = seed};
    return create_source(out, context, &options);
}

mercer_status mercer_source_from_labels(mercer_source *out, mercer_context *context, const mercer_matrix *X,
                                        const int32_t *labels, int64_t classes, const double *weights, uint64_t seed)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    if (!labels && X->rows > 0) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "labels is NULL");
    if (classes < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "classes is %lld, it must be at least 1", (long long)classes);
    for (int64_t i = 0; i < X->rows; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return mrc_fail(context, MERCER_ERROR_DATA, "labels: element %lld (from 0) is %d, classes are 0 .. %lld",
                            (long long)i, (int)labels[i], (long long)classes - 1);
    mrc_memory_source_options options = {
        .x = X, .labels = labels, .classes = classes, .weights = weights, .seed = seed};
    return create_source(out, context, &options);
}

void mercer_source_release(mercer_source *source)
{
    if (!source || !source->release) return;
    source->release(source->user);
    memset(source, 0, sizeof *source);
}
