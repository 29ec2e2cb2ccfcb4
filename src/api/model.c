/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: making models, and sources of samples. */
#include "model/model.h"

#include "api/options.h"
#include "backend/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/memory_source.h"

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
