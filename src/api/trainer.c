/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: plans, communicators, trainers. */
#include "algo/trainer.h"

#include "api/options.h"
#include "core/matrix.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* ---- Communicators ------------------------------------------------------------------------------------------- */

mercer_status mercer_comm_create_virtual(mercer_comm **out, mercer_context *context, int ranks)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (ranks < 1) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "ranks is %d, it must be at least 1", ranks);
    return mrc_comm_create_virtual(out, context, ranks);
}

void mercer_comm_free(mercer_comm *comm)
{
    mrc_comm_free(comm);
}

/* ---- Options and plan ---------------------------------------------------------------------------------------- */

mercer_status mercer_train_options_init(mercer_train_options *options, size_t struct_size)
{
    return mrc_init_struct(options, struct_size, "options");
}

static mercer_status check_switch(mercer_context *context, const char *name, mercer_switch value)
{
    if (value == MERCER_AUTO || value == MERCER_ON || value == MERCER_OFF) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %d; use MERCER_AUTO, MERCER_ON or MERCER_OFF", name,
                    (int)value);
}

static mercer_status check_validation(mercer_model *model, const mercer_train_options *options)
{
    mercer_context *context = model->context;
    const mercer_matrix *X = options->validation_X, *Y = options->validation_Y;
    if (!X && !Y) {
        if (options->patience > 0)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: patience needs validation_X and validation_Y");
        return MERCER_OK;
    }
    if (!X || !Y)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is NULL", X ? "validation_Y" : "validation_X");
    MRC_TRY(mrc_check_matrix(context, "validation_X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "validation_Y", Y, MRC_ACCEPT_REAL));
    if (X->rows == 0) return mrc_fail(context, MERCER_ERROR_SHAPE, "validation_X has no rows");
    MRC_TRY(mrc_check_size(context, "validation_X", X, X->rows, model->centers.cols));
    MRC_TRY(mrc_check_size(context, "validation_Y", Y, X->rows, model->weights.cols));
    MRC_TRY(mrc_check_finite(context, "validation_X", X, NULL));
    return mrc_check_finite(context, "validation_Y", Y, NULL);
}

static mercer_status read_options(mercer_model *model, mercer_train_options *ours, const mercer_train_options *theirs)
{
    MRC_TRY(mrc_read_struct(model->context, ours, sizeof *ours, theirs, "options"));
    MRC_TRY(check_switch(model->context, "carry", ours->carry));
    MRC_TRY(check_switch(model->context, "average", ours->average));
    MRC_TRY(check_switch(model->context, "decay", ours->decay));
    MRC_TRY(check_switch(model->context, "cache", ours->cache));
    MRC_TRY(check_switch(model->context, "classification", ours->classification));
    return check_validation(model, ours);
}

mercer_status mercer_train_plan(mercer_model *model, mercer_plan *out, int64_t samples,
                                const mercer_train_options *options)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_train_options chosen;
    MRC_TRY(read_options(model, &chosen, options));
    mrc_plan_request request = {.context = model->context,
                                .options = &chosen,
                                .n = samples,
                                .p = model->centers.rows,
                                .d = model->centers.cols,
                                .c = model->weights.cols,
                                .real = model->weights.dtype,
                                .points = model->centers.dtype,
                                .ranks = 1,
                                .threads = model->context->threads,
                                .rows_known = true};
    mrc_plan plan;
    MRC_TRY(mrc_make_plan(&plan, &request));
    return mrc_write_struct(model->context, out, &plan.shown, sizeof plan.shown, "out");
}

/* ---- Trainer ------------------------------------------------------------------------------------------------- */

mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                    const mercer_train_options *options)
{
    mercer_context *context = model ? model->context : NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_train_options chosen;
    MRC_TRY(read_options(model, &chosen, options));
    /* A plan for one sample: unknown names and values out of range are refused here, not hours later. */
    mrc_plan plan;
    mrc_plan_request request = {.context = context,
                                .options = &chosen,
                                .n = 1,
                                .p = 1,
                                .d = 1,
                                .c = 1,
                                .real = MERCER_F32,
                                .points = MERCER_F32,
                                .ranks = 1,
                                .threads = 1};
    mercer_train_options names = chosen;
    if (names.memory > 0) names.memory = 0;
    request.options = &names;
    MRC_TRY(mrc_make_plan(&plan, &request));
    mrc_target target = {&model->kernel, &model->centers, &model->weights, model->origin};
    return mrc_trainer_create(out, context->backend, comm, &target, &chosen);
}

void mercer_trainer_free(mercer_trainer *trainer)
{
    mrc_trainer_free(trainer);
}

mercer_status mercer_trainer_fit(mercer_trainer *trainer, mercer_report *report, const mercer_source *source)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    MRC_TRY(mrc_trainer_fit(trainer, source));
    return report ? mrc_write_struct(trainer->context, report, &trainer->report, sizeof trainer->report, "report")
                  : MERCER_OK;
}

mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                  const double *weights)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mercer_context *context = trainer->context;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    if (X->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "X has no rows");
    MRC_TRY(mrc_check_size(context, "X", X, X->rows, trainer->target.z->cols));
    MRC_TRY(mrc_check_size(context, "Y", Y, X->rows, trainer->target.weights->cols));
    MRC_TRY(mrc_check_finite(context, "X", X, NULL));
    MRC_TRY(mrc_check_finite(context, "Y", Y, NULL));
    MRC_TRY(mrc_check_weights(context, weights, X->rows));
    if (trainer->ready && X->dtype != trainer->system.points.dtype)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "X is %s, earlier batches were %s", mrc_dtype_name(X->dtype),
                        mrc_dtype_name(trainer->system.points.dtype));
    mercer_batch batch = {.X = *X, .Y = *Y, .weights = weights};
    return mrc_trainer_step(trainer, &batch);
}

mercer_status mercer_trainer_finish(mercer_trainer *trainer)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    return mrc_trainer_finish(trainer);
}

mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mrc_trainer_fill_report(trainer);
    return mrc_write_struct(trainer->context, report, &trainer->report, sizeof trainer->report, "report");
}
