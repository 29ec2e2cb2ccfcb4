/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: creation of models, predictions, units of targets. */
#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "explain/gradient.h"
#include "kernels/kernel.h"
#include "model/model.h"
#include "model/model_file.h"

static mercer_status create(mercer_model **out, mercer_context *context, mercer_comm *comm, const mercer_kernel *kernel,
                            const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights)
{
    MRC_TRY(mrc_kernel_check(context, kernel));
    if (total < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "centers is empty; a model needs at least one center");
    if (outputs < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "outputs is %lld; it must be at least 1", (long long)outputs);
    if (!weights) weights = centers->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    if (weights != MERCER_F32 && weights != MERCER_F64)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "weights: dtype %s is not accepted here; use f32 or f64",
                        mrc_dtype_name(weights));
    MRC_TRY(mrc_check_finite(context, "centers", centers, NULL));
    return mrc_model_create(out, context, comm, kernel, centers, total, outputs, weights);
}

mercer_status mercer_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                                  const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    MRC_TRY(create(&model, context, NULL, kernel, centers, centers->rows, outputs, weights));
    MRC_TRY(mrc_model_find_origin(model));
    *out = model, model = NULL;
    return MERCER_OK;
}

/* Creates this rank's share of a model. The caller must check that all ranks succeeded. */
static mercer_status create_share(mercer_model **out, mercer_comm *comm, const mercer_kernel *kernel,
                                  const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights)
{
    mercer_context *context = comm->context;
    int64_t first, rows;
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    if (total < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "total is %lld; a model needs at least one center",
                        (long long)total);
    mrc_comm_rows(comm, total, comm->rank, &first, &rows);
    if (centers->rows != rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "centers has %lld rows, but this rank's share of %lld is %lld; see mercer_comm_share",
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
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    mercer_status status = create_share(&model, comm, kernel, centers, total, outputs, weights);
    MRC_TRY(mrc_comm_together(comm, status, "the model"));
    MRC_TRY(mrc_model_find_origin(model));
    *out = model, model = NULL;
    return MERCER_OK;
}

mercer_status mercer_model_load_shared(mercer_model **out, mercer_comm *comm, const char *path)
{
    mercer_context *context = comm ? comm->context : NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!comm) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "comm is NULL");
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    MRC_TRY(mrc_comm_together(comm, mrc_model_read(&model, context, comm, path), "the model"));
    *out = model, model = NULL;
    return MERCER_OK;
}

int64_t mercer_model_size(const mercer_model *model)
{
    return model ? model->total : 0;
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

const mercer_model *mercer_model_member(const mercer_model *model, int64_t number)
{
    return model && number >= 0 && number < model->member_count ? model->members[number] : NULL;
}

/* ---- Predictions ----------------------------------------------------------------------------------------------- */

static mercer_status check_samples(const mercer_model *model, const mercer_matrix *X)
{
    MRC_TRY(mrc_backend_check_matrix(model->context->backend, "X", X, MRC_ACCEPT_ANY));
    int64_t features = mrc_model_features(model);
    if (X->cols == features) return MERCER_OK;
    return mrc_fail(model->context, MERCER_ERROR_SHAPE, "X has %lld columns, but the model's %s %lld",
                    (long long)X->cols, features == model->centers.cols ? "centers have" : "metric takes",
                    (long long)features);
}

mercer_status mercer_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    MRC_TRY(mrc_backend_check_matrix(context->backend, "F", F, MRC_ACCEPT_REAL));
    MRC_TRY(check_samples(model, X));
    MRC_TRY(mrc_check_size(context, "F", F, X->rows, model->weights.cols));
    MRC_TRY(mrc_check_apart(context, "F", F, "X", X));
    MRC_TRY(mrc_mapping_check(&model->map));
    return mrc_model_predict(model, F, X);
}

mercer_status mercer_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    MRC_TRY(check_samples(model, X));
    if (X->rows > 0 && !labels) return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "labels is NULL");
    MRC_TRY(mrc_mapping_check(&model->map));
    return mrc_model_classify(model, labels, X);
}

mercer_status mercer_model_gradient(mercer_model *model, const mercer_matrix *G, const mercer_matrix *X)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    int64_t columns;
    MRC_TRY(mrc_check_matrix(context, "G", G, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(check_samples(model, X));
    if (!mrc_multiply(X->cols, model->weights.cols, &columns))
        return mrc_fail(context, MERCER_ERROR_SHAPE, "G would have too many columns");
    MRC_TRY(mrc_check_size(context, "G", G, X->rows, columns));
    MRC_TRY(mrc_check_apart(context, "G", G, "X", X));
    return mrc_model_gradient(model, G, X);
}

int64_t mercer_model_features(const mercer_model *model)
{
    return model ? mrc_model_features(model) : 0;
}

/* ---- Units of targets ------------------------------------------------------------------------------------------ */

mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    return mrc_units_set(&model->units, model->context, model->weights.cols, offset, scale);
}

mercer_status mercer_model_set_target_curve(mercer_model *model, const char *name, const mercer_matrix *numbers)
{
    mrc_curve_kind kind;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (!name || !mrc_curve_find(name, &kind))
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "name '%s' is unknown; valid: log, rank",
                        name ? name : "(NULL)");
    MRC_TRY(mrc_check_matrix(model->context, "numbers", numbers, MRC_ACCEPT_REAL));
    return mrc_units_bend(&model->units, model->context, kind, model->weights.cols, numbers);
}

const char *mercer_model_target_curve(const mercer_model *model)
{
    return model ? mrc_curve_name(model->units.curve.kind) : NULL;
}

const double *mercer_model_target_offset(const mercer_model *model)
{
    return model ? model->units.offset : NULL;
}

const double *mercer_model_target_scale(const mercer_model *model)
{
    return model ? model->units.scale : NULL;
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_model_free(mercer_model *model)
{
    mrc_model_free(model);
}

mercer_status mercer_model_set_labels(mercer_model *model, const char *const *labels, int64_t count)
{
    return mrc_model_set_labels(model, labels, count);
}

mercer_status mercer_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count)
{
    return mrc_model_set_feature_names(model, names, count);
}

mercer_status mercer_model_set_target_names(mercer_model *model, const char *const *names, int64_t count)
{
    return mrc_model_set_target_names(model, names, count);
}

mercer_status mercer_model_set_note(mercer_model *model, const char *note)
{
    return mrc_model_set_note(model, note);
}

mercer_status mercer_model_set_schema(mercer_model *model, const char *schema)
{
    return mrc_model_set_schema(model, schema);
}

mercer_status mercer_model_set_temperature(mercer_model *model, double temperature)
{
    return mrc_model_set_temperature(model, temperature);
}

mercer_status mercer_model_set_class_shift(mercer_model *model, const double *shift)
{
    return mrc_model_set_class_shift(model, shift);
}

const double *mercer_model_class_shift(const mercer_model *model)
{
    return mrc_model_class_shift(model);
}

mercer_status mercer_model_set_intervals(mercer_model *model, const mercer_matrix *scores, double rows,
                                         mercer_task task)
{
    return mrc_model_set_intervals(model, scores, rows, task);
}

mercer_status mercer_model_interval(const mercer_model *model, double *radius, double level)
{
    return mrc_model_interval(model, radius, level);
}
