/* SPDX-License-Identifier: BSD-3-Clause */
/* The model on a device, between predictions: centers as they are and packed for its products, and the weights. */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"

enum { MOST_STAGED = 64 << 20 }; /* bytes of weights that pass through page-locked memory, which stays reserved */

void mrc_model_unplace(mercer_model *model)
{
    mrc_placed *placed = &model->placed;
    mrc_backend *backend = model->context->backend;
    if (!placed->z.data && !placed->w.data) return;
    backend->ops->pack_free(backend, placed->packed);
    mrc_matrix_destroy(backend, &placed->z);
    mrc_matrix_destroy(backend, &placed->w);
    *placed = (mrc_placed){0};
}

static mercer_status bring_centers(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_placed *placed = &model->placed;
    const mercer_matrix *z = &model->centers, *w = &model->weights;
    MRC_TRY(mrc_matrix_reserve(backend, &placed->z, z->rows, z->cols, z->dtype, "the centers"));
    MRC_TRY(mrc_matrix_reserve(backend, &placed->w, w->rows, w->cols, w->dtype, "the weights"));
    MRC_TRY(backend->ops->copy(backend, &placed->z, z));
    MRC_TRY(backend->ops->pack_create(backend, &placed->packed, &model->kernel, model->origin, z));
    return placed->packed ? backend->ops->pack_rows(backend, placed->packed, 0, &placed->z) : MERCER_OK;
}

static mercer_status bring_weights(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    const mercer_matrix *w = &model->weights;
    mercer_matrix staged = *w;
    if (w->rows * w->cols * mrc_dtype_size(w->dtype) <= MOST_STAGED) MRC_TRY(backend->ops->stage(backend, w, &staged));
    return backend->ops->copy(backend, &model->placed.w, &staged);
}

mercer_status mrc_model_place(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    if (backend->ops->capabilities(backend).memory == MRC_HOST) return MERCER_OK;
    mercer_status status = model->placed.z.data ? MERCER_OK : bring_centers(model);
    if (status == MERCER_OK) status = bring_weights(model);
    if (status == MERCER_OK) return MERCER_OK;
    mrc_model_unplace(model);
    return status == MERCER_ERROR_MEMORY ? MERCER_OK : status;
}
