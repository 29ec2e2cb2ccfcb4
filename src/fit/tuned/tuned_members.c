/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mean of models: the best that a search found and the bests of other kernel functions and preprocessings, each
 * trained as it would be alone, with the same rows, number of centers and rules of scale (tuned.c). They are trained
 * before the first, so that nothing of its training is held meanwhile, and become its members (model/members.c).
 *
 * With a checkpoint its file has all of them that are done, whatever is in training: behind a member in training, with
 * the search, which tells those that follow (tuned_state.c); behind the first, which is the last to be trained, without
 * it. When a member is done, the file is written before the next begins.
 */
#include "fit/tuned/tuned.h"

#include "core/memory.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>

mercer_status mrc_fit_check_average(const mercer_fit_options *options, mercer_context *context)
{
    int64_t count = options->average_models;
    if (count < 0 || count > MERCER_MEMBERS)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "average_models is %lld, it must be 1 to %d, or 0: one model",
                        (long long)count, MERCER_MEMBERS);
    if (count < 2) return MERCER_OK;
    const char *set = options->comm ? "comm" : options->model ? "model" : NULL;
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
    if (!self->tuning) return self->model ? mrc_model_members(self->model) : 1;
    return self->tuning->result.found ? 1 + self->tuning->result.next_count : 1;
}

mercer_status mrc_fit_check_members(const mercer_fitting *self)
{
    int64_t found = mrc_model_members(self->model), asked = mrc_max(1, self->options.average_models);
    if (found <= asked || self->beside || self->model_borrowed) return MERCER_OK; /* a trainer refuses the last */
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                    "%s: belongs to other options: it is the mean of %lld models, but average_models is %lld",
                    self->options.checkpoint, (long long)found, (long long)asked);
}

/* One in training, and what its options point to. */
typedef struct member {
    const mercer_fitting *of;
    int number;
    bool stopped;
    mercer_kernel kernel;
    mercer_train_options train;
} member;

static int watch_member(void *user, const mercer_progress *progress)
{
    member *self = user;
    const mercer_fit_options *options = &self->of->options;
    (void)progress;
    if (options->progress &&
        options->progress(options->progress_user, "members", self->number, mrc_fit_members(self->of) - 1, 0))
        self->stopped = true;
    return self->stopped;
}

/* Its fit: from `checkpoint`, unless that is NULL. */
static mercer_status open_member(member *self, const char *checkpoint, mercer_fitting **out)
{
    const mercer_fitting *of = self->of;
    mrc_tune_choice *choice = &of->tuning->result.next[self->number];
    mercer_fit_options options = of->options;
    double lambda;
    options.preprocess = of->tuning->preparations[choice->preparation];
    options.metric = choice->metric.data ? &choice->metric : NULL;
    MRC_TRY(mrc_fit_scale_choice(of, choice, options.preprocess, &self->kernel, &lambda));
    options.kernel_function = &self->kernel, options.kernel = NULL, options.bandwidth = 0;
    mrc_fit_without_search(&options);
    options.train = &self->train, options.merge = MERCER_OFF;
    options.class_weight = options.calibrate_to = NULL; /* the samples have them */
    options.calibrate = options.intervals = MERCER_OFF;
    options.validation = of->watched ? of->validation : NULL, options.validation_fraction = 0;
    options.checkpoint = checkpoint;
    self->train = of->train;
    if (!of->lambda_given) self->train.lambda = lambda;
    if (of->no_ridge) self->train.lambda = -1;
    self->train.progress = watch_member, self->train.progress_user = self;
    return mercer_fitting_open(out, of->context, of->data, &options);
}

/* Puts a member that is done at the end of the list. Of a model that was read, those behind it are the list. */
static mercer_status add_member(mercer_model **list, mercer_fitting *fitting)
{
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    MRC_TRY(mercer_fitting_take_model(fitting, &model));
    if (model->next) *list = model->next;
    model->next = NULL;
    if (*list) MRC_TRY(mrc_model_append(*list, model));
    if (!*list) *list = model;
    model = NULL;
    return MERCER_OK;
}

static mercer_status train_member(mercer_fitting *self, int number, const char *checkpoint, mercer_model **done)
{
    MRC_OWNED(mrc_release_fitting) mercer_fitting *fitting = NULL;
    member one = {.of = self, .number = number};
    MRC_TRY(open_member(&one, checkpoint, &fitting));
    if (self->train.checkpoint || checkpoint)
        fitting->beside = mrc_fit_search_tensors(self->tuning), fitting->beside_count = MRC_SEARCH_TENSORS;
    if (!checkpoint) fitting->done = *done, *done = NULL;
    MRC_TRY(mercer_fitting_run(fitting, NULL));
    if (one.stopped)
        return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "stopped while models to be averaged were trained");
    return add_member(done, fitting);
}

/* All members so far, with the search. That it cannot be written is a failure, as at the beginning of a training. */
static mercer_status keep_members(mercer_fitting *self, mercer_model *done)
{
    if (!self->train.checkpoint || !done) return MERCER_OK;
    done->beside = mrc_fit_search_tensors(self->tuning), done->beside_count = MRC_SEARCH_TENSORS;
    mercer_status status = mercer_model_save(done, self->train.checkpoint, NULL);
    done->beside = NULL, done->beside_count = 0;
    return status;
}

/* Those of the checkpoint that goes on. */
static mercer_status recall_members(mercer_fitting *self, mercer_model **done, int *count)
{
    const mrc_tuning *tuning = self->tuning;
    *count = (int)(tuning->kept_members - (tuning->kept_training ? 1 : 0));
    if (tuning->kept_members < 1 || tuning->kept_members > mrc_fit_members(self) - 1)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: belongs to a training with other data or options: it has %lld members, and %lld are to "
                        "be trained before the best",
                        tuning->kept_in, (long long)tuning->kept_members, (long long)mrc_fit_members(self) - 1);
    return tuning->kept_training ? MERCER_OK : mercer_model_load(done, self->context, tuning->kept_in);
}

mercer_status mrc_fit_train_members(mercer_fitting *self)
{
    MRC_OWNED(mrc_release_model) mercer_model *done = NULL;
    const mrc_tuning *tuning = self->tuning;
    int first = 0;
    if (!tuning) return MERCER_OK; /* or the checkpoint has them all */
    if (tuning->kept_in) MRC_TRY(recall_members(self, &done, &first));
    for (int i = first; i < (int)mrc_fit_members(self) - 1; i++) {
        MRC_TRY(train_member(self, i, i == first && tuning->kept_training ? tuning->kept_in : NULL, &done));
        MRC_TRY(keep_members(self, done));
    }
    if (done) MRC_TRY(mrc_model_append(self->model, done));
    done = NULL;
    return MERCER_OK;
}

void mrc_fit_tell_members(const mercer_fitting *self, mercer_plan *plan)
{
    const mrc_tuning *tuning = self->tuning;
    if (self->options.average_models < 2 || (!tuning && !self->report.untuned && !self->size_recalled)) return;
    if (mrc_fit_members(self) == 1) {
        mrc_plan_say(plan, "not averaged: there is one model alone\n");
        return;
    }
    mrc_plan_say(plan, "averaged: %lld models of as many centers", (long long)mrc_fit_members(self));
    mrc_plan_say(plan, tuning ? ", the best and" : ", as the checkpoint has them");
    for (int i = 0; tuning && i < tuning->result.next_count; i++) {
        const mrc_tune_choice *choice = &tuning->result.next[i];
        mrc_plan_say(plan, "%s %s, %s (error %.4g)", i > 0 ? ";" : "", tuning->names[choice->kernel],
                     tuning->preparations[choice->preparation], choice->error);
    }
    mrc_plan_say(plan, "\n");
}
