/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: making models. */
#include "model/model.h"

#include "backend/backend.h"
#include "core/matrix.h"
#include "core/memory.h"

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
