/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mean of several models. Member 0 is the model itself, which has the names, schema and calibration. All members
 * have the same target units.
 *
 *   f(x) = (1 / k) sum_m f_m(x)         f_m in the units of the targets; the same for gradients
 *
 * Sums are in double, in the order of the members. Members are evaluated one after the other on all rows. Scratch
 * space: two results in double; the caller's result is written at the end.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"

mercer_status mrc_model_append(mercer_model *model, mercer_model *member)
{
    mercer_context *context = model->context;
    if (model->comm || member->comm || member->context != context)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "members of a model must have the same process and "
                        "context");
    if (mrc_model_features(model) != mrc_model_features(member) || model->weights.cols != member->weights.cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "members of a model must have the same features and outputs");
    if (member->member_count > 1 || model->member_count == MERCER_MEMBERS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "a model can be the mean of at most %d single models",
                        MERCER_MEMBERS);
    model->members[model->member_count++] = member;
    return MERCER_OK;
}

mercer_status mrc_model_mean(mercer_model *model, mrc_member_call call, const mercer_matrix *out,
                             const mercer_matrix *X)
{
    mrc_backend *backend = model->context->backend;
    mercer_matrix sum, one;
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_view(&scope, &sum, out->rows, out->cols, MERCER_F64, "predictions of members"));
    MRC_TRY(mrc_scope_view(&scope, &one, out->rows, out->cols, MERCER_F64, "predictions of members"));
    double share = 1 / (double)model->member_count, *total = sum.data;
    const double *own = one.data;
    for (int64_t m = 0; m < model->member_count; m++) {
        MRC_TRY(call(model->members[m], &one, X));
        for (int64_t i = 0; i < out->rows * out->cols; i++) total[i] = (m == 0 ? 0 : total[i]) + share * own[i];
    }
    return backend->ops->copy(backend, out, &sum);
}
