/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: Shapley values. Matrices are in host memory: the values are computed in double on the CPU.
 *
 * The handle has one entry per member of an averaged model. The checks use the first entry, because all members have
 * the same features, outputs and target units (model/members.c).
 */
#include "explain/shapley.h"

#include "api/api_options.h"
#include "core/matrix.h"
#include "model/model.h"

/* Checks samples that are rows or background of Shapley values. A mapped model file that was truncated is reported
   here, because reading a page that no longer exists would end the process. */
static mercer_status check_rows(const mercer_model *model, const char *name, const mercer_matrix *X)
{
    MRC_TRY(mrc_check_matrix(model->context, name, X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_size(model->context, name, X, X->rows, mrc_model_features(model)));
    return mrc_mapping_check(&model->map);
}

/* options.rows is the number of centers to use as background, so it must be 0 if the caller passes a background. */
mercer_status mercer_model_shap(mercer_shap **out, mercer_model *model, const mercer_matrix *background,
                                const mercer_shap_options *options)
{
    mercer_shap_options ours;
    if (out) *out = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_shap_options), options, "options"));
    MRC_TRY(mrc_check_bounds(context, &(mrc_bound){"rows", ours.rows, 0}, 1));
    if (background) {
        MRC_TRY(check_rows(model, "background", background));
        if (background->rows < 1)
            return mrc_fail(context, MERCER_ERROR_SHAPE, "background has no rows; it must have at least one");
        if (ours.rows > 0)
            return mrc_fail(
                context, MERCER_ERROR_ARGUMENT,
                "options: rows is %lld, but a background is given; set rows to 0 or leave the background out",
                (long long)ours.rows);
    }
    return mrc_shap_create(out, model, background, ours.rows);
}

mercer_status mercer_shap_query(const mercer_shap *shap, mercer_shap_info *out)
{
    if (!shap) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "shap is NULL");
    mercer_shap_info ours = {.struct_size = sizeof ours,
                             .columns = shap->columns,
                             .outputs = shap->outputs,
                             .names = shap->names,
                             .base = shap->base,
                             .background_rows = shap->rows,
                             .from_centers = shap->from_centers,
                             .transformed = shap->members[0].model->units.curve.kind != MRC_CURVE_NONE,
                             .terms = shap->terms,
                             .error = shap->error};
    return mrc_write_struct(shap->context, out, &ours, MRC_STRUCT(mercer_shap_info), "out");
}

/* Checks X (m, d) and V (m, outputs columns), or V (m, outputs columns columns) with `pairs`. The column count is a
   product of three numbers, which may overflow for a wide table. */
static mercer_status check_values(mercer_shap *shap, const mercer_matrix *V, const mercer_matrix *X, bool pairs)
{
    if (!shap) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "shap is NULL");
    mercer_context *context = shap->context;
    int64_t columns = shap->columns;
    MRC_TRY(mrc_check_matrix(context, "V", V, MRC_ACCEPT_REAL));
    MRC_TRY(check_rows(shap->members[0].model, "X", X));
    if ((pairs && !mrc_multiply(columns, shap->columns, &columns)) || !mrc_multiply(columns, shap->outputs, &columns))
        return mrc_fail(context, MERCER_ERROR_SHAPE, "V would have too many columns");
    MRC_TRY(mrc_check_size(context, "V", V, X->rows, columns));
    return mrc_check_apart(context, "V", V, "X", X);
}

mercer_status mercer_shap_values(mercer_shap *shap, const mercer_matrix *V, const mercer_matrix *X)
{
    MRC_TRY(check_values(shap, V, X, false));
    return mrc_shap_values(shap, V, X);
}

mercer_status mercer_shap_interactions(mercer_shap *shap, const mercer_matrix *V, const mercer_matrix *X)
{
    MRC_TRY(check_values(shap, V, X, true));
    return mrc_shap_interactions(shap, V, X);
}

void mercer_shap_free(mercer_shap *shap)
{
    mrc_shap_free(shap);
}
