/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: the units of a model's targets, and those that suit given ones. */
#include "core/matrix.h"
#include "data/prepare/moments.h"
#include "model/model.h"

mercer_status mercer_model_set_targets(mercer_model *model, const double *offset, const double *scale)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    return mrc_units_set(&model->units, model->context, model->weights.cols, offset, scale);
}

const double *mercer_model_target_offset(const mercer_model *model)
{
    return model ? model->units.offset : NULL;
}

const double *mercer_model_target_scale(const mercer_model *model)
{
    return model ? model->units.scale : NULL;
}

static mercer_status check_outputs(mercer_context *context, const double *mean, const double *deviation)
{
    if (mean && deviation) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", mean ? "deviation" : "mean");
}

mercer_status mercer_target_moments(mercer_context *context, double *mean, double *deviation, const mercer_matrix *Y,
                                    const double *weights)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    MRC_TRY(check_outputs(context, mean, deviation));
    if (Y->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "Y has no rows");
    MRC_TRY(mrc_check_finite(context, "Y", Y, NULL));
    MRC_TRY(mrc_check_weights(context, weights, Y->rows));
    return mrc_moments(context, Y, weights, mean, deviation);
}

mercer_status mercer_dataset_target_moments(const mercer_dataset *dataset, double *mean, double *deviation)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    MRC_TRY(check_outputs(dataset->context, mean, deviation));
    if (dataset->task == MERCER_TASK_UNLABELLED)
        return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "the dataset has no targets");
    if (dataset->rows < 1) return mrc_fail(dataset->context, MERCER_ERROR_SHAPE, "the dataset has no rows");
    return mrc_dataset_moments(dataset, mean, deviation);
}
