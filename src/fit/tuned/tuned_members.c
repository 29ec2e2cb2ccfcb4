/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mean of models: the best that a search found and the bests of other kernel functions and preprocessings, each
 * trained as it would be alone, with the same rows, number of centers and rules of scale (tuned.c). They are trained
 * before the first, so that nothing of its training is held meanwhile, and become its members (model/members.c).
 */
#include "fit/tuned/tuned.h"

#include "core/memory.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>

mercer_status mrc_fit_check_average(const mercer_fit_options *options, const mercer_train_options *train,
                                    mercer_context *context)
{
    int64_t count = options->average_models;
    if (count < 0 || count > MERCER_MEMBERS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "average_models is %lld, it must be 1 to %d, or 0: one model",
                        (long long)count, MERCER_MEMBERS);
    if (count < 2) return MERCER_OK;
    const char *set = options->comm                              ? "comm"
                      : options->model                           ? "model"
                      : options->checkpoint || train->checkpoint ? "checkpoint"
                                                                 : NULL;
    if (set)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "options: average_models is %lld, and %s is set: several models are trained by one process, "
                        "from the beginning",
                        (long long)count, set);
    if (options->tune == MERCER_OFF)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: average_models is %lld, and tune is off: it is the bests of a search that are "
                        "averaged",
                        (long long)count);
    return MERCER_OK;
}

int64_t mrc_fit_members(const mercer_fitting *self)
{
    return self->tuning && self->tuning->result.found ? 1 + self->tuning->result.next_count : 1;
}

typedef struct member_watch {
    const mercer_fitting *fitting;
    int number;
    bool stopped;
} member_watch;

static int watch_member(void *user, const mercer_progress *progress)
{
    member_watch *self = user;
    const mercer_fit_options *options = &self->fitting->options;
    (void)progress;
    if (options->progress &&
        options->progress(options->progress_user, "members", self->number, mrc_fit_members(self->fitting) - 1, 0))
        self->stopped = true;
    return self->stopped;
}

static mercer_status train_member(mercer_fitting *self, int number, mercer_model **out)
{
    mrc_tune_choice *choice = &self->tuning->result.next[number];
    member_watch watch = {.fitting = self, .number = number};
    mercer_train_options train = self->train;
    mercer_fit_options options = self->options;
    mercer_kernel kernel;
    double lambda;
    options.preprocess = self->tuning->preparations[choice->preparation];
    options.metric = choice->metric.data ? &choice->metric : NULL;
    MRC_TRY(mrc_fit_scale_choice(self, choice, options.preprocess, &kernel, &lambda));
    options.kernel_function = &kernel, options.kernel = NULL, options.bandwidth = 0;
    options.train = &train, options.tune = options.merge = MERCER_OFF, options.average_models = 0;
    options.calibrate = options.intervals = MERCER_OFF, options.class_weight = NULL; /* the samples have them */
    options.validation = self->watched ? self->validation : NULL, options.validation_fraction = 0;
    if (!self->lambda_given) train.lambda = lambda;
    train.progress = watch_member, train.progress_user = &watch;
    MRC_TRY(mercer_fit(out, self->context, self->data, &options, NULL));
    if (!watch.stopped) return MERCER_OK;
    mercer_model_free(*out);
    *out = NULL;
    return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "stopped while models to be averaged were trained");
}

mercer_status mrc_fit_train_members(mercer_fitting *self, mercer_model **first)
{
    for (int i = 0; i < (int)mrc_fit_members(self) - 1; i++) {
        MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
        MRC_TRY(train_member(self, i, &model));
        if (*first) MRC_TRY(mrc_model_append(*first, model));
        if (!*first) *first = model;
        model = NULL;
    }
    return MERCER_OK;
}

void mrc_fit_tell_members(const mercer_fitting *self, mercer_plan *plan)
{
    const mrc_tuning *tuning = self->tuning;
    if (self->options.average_models < 2 || (!tuning && !self->report.untuned)) return;
    if (mrc_fit_members(self) == 1) {
        mrc_plan_say(plan, "not averaged: there is one model alone\n");
        return;
    }
    mrc_plan_say(plan, "averaged: %lld models of as many centers, the best and", (long long)mrc_fit_members(self));
    for (int i = 0; i < tuning->result.next_count; i++) {
        const mrc_tune_choice *choice = &tuning->result.next[i];
        mrc_plan_say(plan, "%s %s, %s (error %.4g)", i > 0 ? ";" : "", tuning->names[choice->kernel],
                     tuning->preparations[choice->preparation], choice->error);
    }
    mrc_plan_say(plan, "\n");
}
