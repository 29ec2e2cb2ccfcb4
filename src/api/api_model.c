/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: creation and loading of models, their description, predictions, target units.
 *
 * With a communicator, creating and loading are collective. A rank whose own arguments are wrong must still take part
 * in every exchange. These functions therefore combine the statuses of all ranks (mrc_comm_together) instead of
 * returning at once.
 */
#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "explain/gradient.h"
#include "kernels/kernel.h"
#include "model/model.h"
#include "model/model_file.h"

/* Checks sizes and types and creates a model. total: number of centers of all ranks. `centers` has been checked as a
   matrix. Its values are checked here, once: writing a file relies on finite centers (model_file.c). */
static mercer_status create_model(mercer_model **out, mercer_context *context, mercer_comm *comm,
                                  const mercer_kernel *kernel, const mercer_matrix *centers, int64_t total,
                                  int64_t outputs, mercer_dtype weights)
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

/* Sets *total to the number of centers of all ranks, and checks that `centers` is this rank's share. status: the result
   of earlier checks of `centers` on this rank. Collective: if these checks have failed on any rank, *total becomes -1,
   and this rank's own status is returned. */
static mercer_status count_centers(mercer_comm *comm, mercer_status status, const mercer_matrix *centers,
                                   int64_t *total)
{
    int64_t first, rows, *counts, mine = status == MERCER_OK ? centers->rows : -1;
    *total = -1;
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &mine, sizeof mine, &counts));
    for (int r = 0; r < comm->ranks; r++)
        if (counts[r] < 0) return status;
    *total = 0;
    for (int r = 0; r < comm->ranks; r++)
        if (!mrc_add(*total, counts[r], total))
            return mrc_fail(comm->context, MERCER_ERROR_SHAPE,
                            "centers: the number of centers on all ranks together is too large");
    mrc_comm_rows(comm, *total, comm->rank, &first, &rows);
    if (mine == rows) return MERCER_OK;
    return mrc_fail(comm->context, MERCER_ERROR_SHAPE,
                    "centers has %lld rows, but this rank's share of %lld is %lld; see mercer_comm_share",
                    (long long)mine, (long long)*total, (long long)rows);
}

/* Creates this rank's share of a model. Every path makes the same exchanges: count_centers, then mrc_comm_together. A
   rank with wrong arguments reports its own error; the other ranks report an error that names this rank. */
static mercer_status create_shared(mercer_model **out, mercer_comm *comm, const mercer_kernel *kernel,
                                   const mercer_matrix *centers, int64_t outputs, mercer_dtype weights)
{
    int64_t total;
    mercer_status status = mrc_check_matrix(comm->context, "centers", centers, MRC_ACCEPT_ANY);
    status = count_centers(comm, status, centers, &total);
    if (status == MERCER_OK && total >= 0)
        status = create_model(out, comm->context, comm, kernel, centers, total, outputs, weights);
    return mrc_comm_together(comm, status, "the model");
}

/* Checks that a communicator, if any, belongs to the context. */
static mercer_status check_comm(mercer_context *context, const mercer_comm *comm)
{
    if (!comm || comm->context == context) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "comm: it was made from another context");
}

/* The origin is the mean of the centers of all ranks, so mrc_model_find_origin is collective, too. It runs after all
   ranks have created their shares. */
mercer_status mercer_model_create(mercer_model **out, mercer_context *context, mercer_comm *comm,
                                  const mercer_kernel *kernel, const mercer_matrix *centers, int64_t outputs,
                                  mercer_dtype weights)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(check_comm(context, comm));
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    if (comm) {
        MRC_TRY(create_shared(&model, comm, kernel, centers, outputs, weights));
    } else {
        MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
        MRC_TRY(create_model(&model, context, NULL, kernel, centers, centers->rows, outputs, weights));
    }
    MRC_TRY(mrc_model_find_origin(model));
    *out = model, model = NULL;
    return MERCER_OK;
}

/* If a rank fails to read the file, no rank gets a model, even if the other ranks can read the file. */
mercer_status mercer_model_load(mercer_model **out, mercer_context *context, mercer_comm *comm, const char *path)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(check_comm(context, comm));
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    if (!comm) return mrc_model_read(out, context, NULL, path);
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    MRC_TRY(mrc_comm_together(comm, mrc_model_read(&model, context, comm, path), "the model"));
    *out = model, model = NULL;
    return MERCER_OK;
}

/* Returns the kind of the targets that the model's intervals are for. */
static mercer_task interval_task(const mrc_calibration *calibration)
{
    if (!calibration->scores) return MERCER_TASK_UNLABELED;
    return calibration->classes ? MERCER_TASK_CLASSIFICATION : MERCER_TASK_REGRESSION;
}

/* All pointers are borrowed from the model. Centers and weights are this rank's share; `size` is the number of centers
   of all ranks. */
mercer_status mercer_model_query(const mercer_model *model, mercer_model_info *info)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    const mrc_calibration *calibration = &model->calibration;
    mercer_model_info ours = {.struct_size = sizeof ours,
                              .features = mrc_model_features(model),
                              .outputs = model->weights.cols,
                              .size = model->total,
                              .labels = (const char *const *)model->labels,
                              .label_count = model->label_count,
                              .feature_names = (const char *const *)model->feature_names,
                              .target_names = (const char *const *)model->target_names,
                              .target_count = model->target_count,
                              .schema = model->schema,
                              .note = model->note ? model->note : "",
                              .kernel = &model->kernel,
                              .preprocess = model->preprocess,
                              .centers = model->centers,
                              .weights = model->weights,
                              .target_offset = model->units.offset,
                              .target_scale = model->units.scale,
                              .target_curve = mrc_curve_name(model->units.curve.kind),
                              .temperature = mrc_model_temperature(model),
                              .calibrated = calibration->temperature > 0,
                              .curvature = calibration->curvature,
                              .class_shift = calibration->shift,
                              .interval_task = interval_task(calibration),
                              .interval_rows = calibration->scores ? calibration->rows : 0,
                              .members = (const mercer_model *const *)model->members,
                              .member_count = model->member_count};
    return mrc_write_struct(model->context, info, &ours, MRC_STRUCT(mercer_model_info), "info");
}

/* ---- Predictions ----------------------------------------------------------------------------------------------- */

/* Checks that X has the type and the number of features that the model predicts from. A metric that is not diagonal may
   take more features than the centers have columns; the message names the part that sets the number. */
static mercer_status check_samples(const mercer_model *model, const mercer_matrix *X)
{
    MRC_TRY(mrc_backend_check_matrix(model->context->backend, "X", X, MRC_ACCEPT_ANY));
    int64_t features = mrc_model_features(model);
    if (X->cols == features) return MERCER_OK;
    return mrc_fail(model->context, MERCER_ERROR_SHAPE, "X has %lld columns, but the model's %s %lld",
                    (long long)X->cols, features == model->centers.cols ? "centers have" : "metric takes",
                    (long long)features);
}

/* F must not overlap X: blocks of F are written before later blocks of X are read. The file of a mapped model is
   checked last; its pages are read only after that. */
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

/* G (m, c d) is in host memory, as is X. The product c d is computed with an overflow check before it is compared. */
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

/* ---- Target units ------------------------------------------------------------------------------------------ */

mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    return mrc_units_set(&model->units, model->context, model->weights.cols, offset, scale);
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_model_free(mercer_model *model)
{
    mrc_model_free(model);
}

mercer_status mercer_model_set_names(mercer_model *model, mercer_names list, const char *const *names, int64_t count)
{
    if (list == MERCER_NAMES_LABELS) return mrc_model_set_labels(model, names, count);
    if (list == MERCER_NAMES_FEATURES) return mrc_model_set_feature_names(model, names, count);
    if (list == MERCER_NAMES_TARGETS) return mrc_model_set_target_names(model, names, count);
    return mrc_fail(model ? model->context : NULL, MERCER_ERROR_ARGUMENT, "list is %d; use one of MERCER_NAMES_...",
                    (int)list);
}

mercer_status mercer_model_set_note(mercer_model *model, const char *note)
{
    return mrc_model_set_note(model, note);
}

mercer_status mercer_model_set_schema(mercer_model *model, const char *schema)
{
    return mrc_model_set_schema(model, schema);
}

mercer_status mercer_model_set_calibration(mercer_model *model, double temperature, double curvature)
{
    return mrc_model_set_calibration(model, temperature, curvature);
}

mercer_status mercer_model_interval(const mercer_model *model, double *radius, double level)
{
    return mrc_model_interval(model, radius, level);
}
