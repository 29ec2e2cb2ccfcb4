/* SPDX-License-Identifier: BSD-3-Clause */
/* The model object. */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

static mercer_status fill(mercer_model *model, const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    int64_t p = centers->rows, d = centers->cols, size = mrc_dtype_size(centers->dtype), elements;
    void *origin;
    model->centers = mrc_view(NULL, p, d, centers->dtype);
    model->weights = mrc_view(NULL, p, outputs, weights);
    if (!mrc_multiply(p, outputs, &elements))
        return mrc_fail(model->context, MERCER_ERROR_SHAPE, "outputs: %lld x %lld weights overflow memory",
                        (long long)p, (long long)outputs);
    MRC_TRY(mrc_alloc(model->context, &model->centers.data, p * d, size, "the centers"));
    for (int64_t i = 0; i < p; i++) memcpy(mrc_row(&model->centers, i), mrc_row(centers, i), (size_t)(d * size));
    MRC_TRY(mrc_alloc_zero(model->context, &model->weights.data, elements, mrc_dtype_size(weights), "the weights"));
    MRC_TRY(mrc_alloc_zero(model->context, &origin, d, sizeof(double), "the origin"));
    model->origin = origin;
    return MERCER_OK;
}

mercer_status mrc_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                               const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(mercer_model), "the model"));
    mercer_model *model = memory;
    model->context = context;
    model->kernel = *kernel;
    mercer_status status = fill(model, centers, outputs, weights);
    if (status != MERCER_OK) {
        mrc_model_free(model);
        return status;
    }
    *out = model;
    return MERCER_OK;
}

void mrc_model_free(mercer_model *model)
{
    if (!model) return;
    mercer_context *context = model->context;
    mrc_free(context, model->origin);
    mrc_free(context, model->weights.data);
    mrc_free(context, model->centers.data);
    mrc_free(context, model);
}
