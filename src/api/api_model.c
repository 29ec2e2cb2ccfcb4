/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: making models. */
#include "core/matrix.h"
#include "core/memory.h"
#include "model/model_file.h"
#include "solvers/operators/center_shards.h"

/* ---- The origin ----------------------------------------------------------------------------------------------- */

/* Column sums of a shard: rows times their mean. part: (1, d) f64. */
static mercer_status add_columns(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    (void)argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard);
    double *sums = part->data;
    if (z.rows == 0) return MERCER_OK;
    MRC_TRY(centers->backend->ops->column_mean(centers->backend, &z, sums));
    for (int64_t j = 0; j < part->cols; j++) sums[j] *= (double)z.rows;
    return MERCER_OK;
}

/* The mean of all centers, the same on any number of ranks. */
static mercer_status find_origin(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_comm *comm = model->comm;
    if (!comm || mrc_comm_shards(comm, model->total) == 1)
        return backend->ops->column_mean(backend, &model->centers, model->origin);
    mrc_centers centers;
    mercer_matrix row = mrc_view(model->origin, 1, model->centers.cols, MERCER_F64);
    MRC_TRY(mrc_centers_create(&centers, backend, comm, &model->kernel, &model->centers, model->total, model->origin,
                               model->weights.dtype));
    mercer_status status = mrc_centers_sum(&centers, &row, add_columns, NULL);
    mrc_centers_destroy(&centers);
    for (int64_t j = 0; j < row.cols && status == MERCER_OK; j++) model->origin[j] /= (double)model->total;
    return status;
}

/* ---- Life ----------------------------------------------------------------------------------------------------- */

static mercer_status create(mercer_model **out, mercer_context *context, mercer_comm *comm, const mercer_kernel *kernel,
                            const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights)
{
    MRC_TRY(mrc_kernel_check(context, kernel));
    if (total < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "centers: a model needs at least one");
    if (outputs < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "outputs is %lld, it must be at least 1", (long long)outputs);
    if (!weights) weights = centers->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    if (weights != MERCER_F32 && weights != MERCER_F64)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "weights: dtype %s is not accepted here; use f32 or f64",
                        mrc_dtype_name(weights));
    MRC_TRY(mrc_check_finite(context, "centers", centers, NULL));
    return mrc_model_create(out, context, comm, kernel, centers, total, outputs, weights);
}

static mercer_status finish(mercer_model **out, mercer_model *model)
{
    mercer_status status = find_origin(model);
    if (status == MERCER_OK)
        *out = model;
    else
        mrc_model_free(model);
    return status;
}

mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                  const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    mercer_model *model = NULL;
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    MRC_TRY(create(&model, context, NULL, kernel, centers, centers->rows, outputs, weights));
    return finish(out, model);
}

/* Of this rank alone: whether all of them got so far is for the caller to find out. */
static mercer_status create_share(mercer_model **out, mercer_comm *comm, const mercer_kernel *kernel,
                                  const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights)
{
    mercer_context *context = comm->context;
    int64_t first, rows;
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    if (total < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "total is %lld, a model needs centers", (long long)total);
    mrc_comm_rows(comm, total, comm->rank, &first, &rows);
    if (centers->rows != rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "centers has %lld rows, this rank's share of %lld is %lld: see mercer_comm_share",
                        (long long)centers->rows, (long long)total, (long long)rows);
    return create(out, context, comm, kernel, centers, total, outputs, weights);
}

mercer_status mercer_model_create_shared(mercer_model **out, mercer_comm *comm, const mercer_kernel *kernel,
                                         const mercer_matrix *centers, int64_t total, int64_t outputs,
                                         mercer_dtype weights)
{
    mercer_context *context = comm ? comm->context : NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    mercer_model *model = NULL;
    mercer_status status = create_share(&model, comm, kernel, centers, total, outputs, weights);
    status = mrc_comm_together(comm, status, "the model");
    if (status == MERCER_OK && model) return finish(out, model);
    mrc_model_free(model);
    return status;
}

mercer_status mercer_model_load_shared(mercer_model **out, mercer_comm *comm, const char *path)
{
    mercer_context *context = comm ? comm->context : NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    mercer_status status = mrc_comm_together(comm, mrc_model_read(out, context, comm, path), "the model");
    if (status == MERCER_OK || !*out) return status;
    mrc_model_free(*out);
    *out = NULL;
    return status;
}

int64_t mercer_model_size(const mercer_model *model)
{
    return model ? model->total : 0;
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
