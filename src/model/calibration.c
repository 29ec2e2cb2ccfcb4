/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calibration of a model: temperature, curvature and shifts of its probabilities, and conformity scores of held-out
 * rows.
 *
 * Split conformal prediction. With scores s_1 <= .. <= s_n of rows that the model was not trained on, a further
 * exchangeable row has a score of at most s_k with probability at least k / (n + 1). So an interval of level q uses
 *
 *     s_k with k = ceil(q (n + 1)),    or of m stored quantiles of the scores: entry ceil(q (1 + 1 / n) m)
 *
 * and there is no interval if this index is beyond the end of the list: the rows are too few for the level. With m < n
 * quantiles k is rounded up, so intervals cover up to a share 1 / m more of the rows.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "core/numbers/softmax.h"

#include <math.h>
#include <string.h>

/* Limit of class shifts. Valid shifts are far below the limit: scores are about 0 and 1, temperatures at most 10, class
   weights within 1e+-300. */
#define MOST_SHIFT 1e4
#define ROUNDING   1e-6 /* rounding error by which a sum of probabilities may exceed 1 */

mercer_status mrc_model_set_calibration(mercer_model *model, double temperature, double curvature)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (temperature != 0 && !mrc_in_range(temperature, MRC_TEMPERATURE_LEAST, MRC_TEMPERATURE_MOST))
        return mrc_fail(model->context, MERCER_ERROR_DATA, "temperature is %g; it must be in %g .. %g (0: none)",
                        temperature, MRC_TEMPERATURE_LEAST, MRC_TEMPERATURE_MOST);
    if (curvature != 0 && !mrc_in_range(curvature, MRC_CURVATURE_LEAST, MRC_CURVATURE_MOST))
        return mrc_fail(model->context, MERCER_ERROR_DATA, "curvature is %g; it must be in %g .. %g (0: none)",
                        curvature, MRC_CURVATURE_LEAST, MRC_CURVATURE_MOST);
    if (curvature != 0 && temperature == 0)
        return mrc_fail(model->context, MERCER_ERROR_DATA, "curvature is %g, but there is no temperature; set both",
                        curvature);
    model->calibration.temperature = temperature;
    model->calibration.curvature = curvature;
    return MERCER_OK;
}

mercer_status mrc_model_set_class_shift(mercer_model *model, const double *shift)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    double *memory = NULL;
    int64_t c = model->weights.cols;
    for (int64_t j = 0; shift && j < c; j++)
        if (!(fabs(shift[j]) <= MOST_SHIFT))
            return mrc_fail(model->context, MERCER_ERROR_DATA, "shift[%lld] is %g; it must be within +-%g",
                            (long long)j, shift[j], MOST_SHIFT);
    if (shift) {
        MRC_TRY(mrc_alloc(model->context, &memory, c, sizeof *memory, "shifts of classes"));
        memcpy(memory, shift, (size_t)c * sizeof *memory);
    }
    mrc_free(model->context, model->calibration.shift);
    model->calibration.shift = memory;
    return MERCER_OK;
}

double mrc_model_temperature(const mercer_model *model)
{
    return model->calibration.temperature > 0 ? model->calibration.temperature : MRC_TEMPERATURE_WITHOUT_DATA;
}

void mrc_model_curve_scores(const mercer_model *model, double *scores)
{
    mrc_softmax_curve(scores, model->weights.cols, model->calibration.curvature);
    const double *shift = model->calibration.shift;
    for (int64_t j = 0; j < model->weights.cols && shift; j++) scores[j] += shift[j];
}

/* Checks the arguments of mrc_model_set_intervals, which may come from a file. */
static mercer_status check_scores(const mercer_model *model, const mercer_matrix *scores, double rows, mercer_task task)
{
    mercer_context *context = model->context;
    bool classes = task == MERCER_TASK_CLASSIFICATION;
    MRC_TRY(mrc_check_matrix(context, "scores", scores, MRC_ACCEPT_REAL));
    if (!classes && task != MERCER_TASK_REGRESSION)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "task is %d; it must be CLASSIFICATION or REGRESSION",
                        (int)task);
    MRC_TRY(mrc_check_finite(context, "scores", scores, NULL));
    if (scores->rows != (classes ? 1 : model->weights.cols) || scores->cols < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "scores: is %lld x %lld; it must have a row for each of %lld",
                        (long long)scores->rows, (long long)scores->cols,
                        (long long)(classes ? 1 : model->weights.cols));
    if (!mrc_in_range(rows, 1, MRC_INTERVAL_ROWS_MOST))
        return mrc_fail(context, MERCER_ERROR_DATA, "rows is %g; it must be in 1 .. %g", rows, MRC_INTERVAL_ROWS_MOST);
    for (int64_t i = 0; i < scores->rows; i++)
        for (int64_t k = 0; k < scores->cols; k++)
            if (mrc_load(scores, i, k) < (k > 0 ? mrc_load(scores, i, k - 1) : 0))
                return mrc_fail(context, MERCER_ERROR_DATA,
                                "scores: list %lld (from 0) has negative values or is not ascending", (long long)i);
    if (classes && mrc_load(scores, 0, scores->cols - 1) > 1 + ROUNDING)
        return mrc_fail(context, MERCER_ERROR_DATA, "scores: %g is not a probability",
                        mrc_load(scores, 0, scores->cols - 1));
    return MERCER_OK;
}

mercer_status mrc_model_set_intervals(mercer_model *model, const mercer_matrix *scores, double rows, mercer_task task)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mrc_calibration *own = &model->calibration;
    double *memory = NULL;
    if (scores) {
        MRC_TRY(check_scores(model, scores, rows, task));
        MRC_TRY(mrc_alloc(model->context, &memory, scores->rows * scores->cols, sizeof(double), "scores"));
        for (int64_t i = 0; i < scores->rows; i++) mrc_load_row_f64(scores, i, memory + i * scores->cols);
    }
    mrc_free(model->context, own->scores);
    own->scores = memory, own->lists = own->count = 0, own->rows = 0;
    if (scores) own->lists = scores->rows, own->count = scores->cols, own->rows = rows;
    own->classes = scores && task == MERCER_TASK_CLASSIFICATION;
    return MERCER_OK;
}

mercer_status mrc_model_interval(const mercer_model *model, double *radius, double level)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (!radius) return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "radius is NULL");
    const double rounding = 1e-9; /* subtracted so that, for example, ceil(0.9 (1 + 1 / 9) 9) is 9, not 10 */
    const mrc_calibration *own = &model->calibration;
    if (!(level > 0 && level < 1))
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "level is %g; it must be between 0 and 1", level);
    if (!own->scores)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT,
                        "the model has no intervals, because it was trained without held-out rows; fit it with "
                        "intervals on");
    double place = fmax(1, ceil(level * (1 + 1 / own->rows) * (double)own->count - rounding));
    if (place > (double)own->count)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT,
                        "level is %g, but %.6g held-out rows determine levels only up to %.6g", level, own->rows,
                        own->rows / (own->rows + 1));
    for (int64_t i = 0; i < own->lists; i++) radius[i] = own->scores[i * own->count + (int64_t)place - 1];
    return MERCER_OK;
}
