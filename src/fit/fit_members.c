/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Averaged models: efforts 4 and 5 train MEMBERS models on the same training rows, each with its own seed, search and
 * centers. Predictions are averaged (model/members.c). Calibration, intervals and validation scores are those of the
 * average, on rows that no member was trained on.
 *
 * Measured at effort 5 with 16,000 centers per model, 1 - R2 or 1 - AUC of one model and of the average of three: .1376
 * and .1370 (housing), .0741 and .0718 (adult), .0658 and .0651 (bank), .0194 and .0191 (letter).
 *
 * The first member is the fit itself; the other members are separate fits that run after the first. A checkpoint
 * contains the first member only; a resumed fit trains the other members again, with bitwise identical results.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/numbers/random.h"
#include "core/stage_progress.h"
#include "model/model.h"

enum { MEMBERS = 3, LEAST_EFFORT = 4 };
#define RANDOM_MEMBERS UINT64_C(0x6d656d62657273)

int64_t mrc_fit_member_count(const mercer_fitting *self)
{
    bool single = !self->searches || self->ensemble || self->options->run.comm || self->options->centers.given;
    return single || self->record.effort < LEAST_EFFORT ? 1 : MEMBERS;
}

/* ---- One member -------------------------------------------------------------------------------------------------- */

/* Reports all progress of a member as the stage "members" of the whole fit. */
static int watch_member(void *user, const mercer_progress *progress)
{
    const mercer_fitting *self = *(mercer_fitting *const *)user;
    const mercer_fit_run *run = &self->ensemble->request->options.run;
    (void)progress;
    return mrc_progress(run->progress, run->progress_user, "members", self->number, self->ensemble->report.members, 0);
}

/* Opens the fit of a member: the same rows and options, but its own seed, no calibration and no checkpoint. Effort and
   memory are those that the whole fit has decided. The member borrows data and validation rows of the whole fit. */
static mercer_status open_member(mercer_fitting *self, int64_t number)
{
    mrc_fit_request request = *self->request;
    mercer_fit_options *options = &request.options;
    mercer_train_options *train = &request.train;
    options->run.seed = train->seed = mrc_random_u64((mrc_rng){options->run.seed, RANDOM_MEMBERS}, (uint64_t)number);
    options->search.effort = self->record.effort, options->search.budget = 0, options->run.memory = self->memory;
    options->validation.calibrate = options->validation.intervals = MERCER_OFF;
    options->data.class_weight = options->validation.calibrate_to = NULL; /* already in the row weights */
    options->validation.data = self->watched ? self->validation : NULL, options->validation.fraction = 0;
    options->run.checkpoint = train->checkpoint = NULL;
    options->run.progress = train->progress = watch_member;
    options->run.progress_user = train->progress_user = &self->members[number];
    MRC_TRY(mrc_fitting_open(&self->members[number], self->context, self->data, &request));
    mercer_fitting *member = self->members[number];
    member->ensemble = self, member->number = number, member->deadline = self->deadline;
    return MERCER_OK;
}

/* Trains a member and adds its model to the average, unless the caller or the deadline stopped it. */
static mercer_status train_member(mercer_fitting *self, int64_t number)
{
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    MRC_TRY(open_member(self, number));
    mercer_fitting *member = self->members[number];
    mercer_status status = mrc_fitting_run(member);
    if (status == MERCER_ERROR_CALLBACK || member->training.stopped == MERCER_STOP_CALLBACK) {
        self->training.stopped = MERCER_STOP_CALLBACK;
        return MERCER_OK;
    }
    MRC_TRY(status);
    if (member->training.stopped == MERCER_STOP_BUDGET) return MERCER_OK;
    mercer_source_free(&member->source);
    MRC_TRY(mercer_fitting_take_model(member, &model));
    MRC_TRY(mrc_model_append(self->model, model));
    model = NULL;
    return MERCER_OK;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

/* Replaces the validation scores of the first member by the scores of the average. */
static mercer_status score_mean(mercer_fitting *self)
{
    mercer_evaluation *evaluation = NULL;
    mercer_metrics metrics = {.struct_size = sizeof metrics};
    if (!self->watched) return MERCER_OK;
    MRC_TRY(mercer_evaluate(&evaluation, self->model, self->validation, NULL));
    mercer_status status = mercer_evaluation_query(evaluation, &metrics);
    mercer_evaluation_free(evaluation);
    self->training.validation_loss = metrics.mse, self->training.validation_accuracy = metrics.accuracy;
    return status;
}

/* report.members becomes the number of models that were trained; a mean of fewer models is a valid result. */
mercer_status mrc_fit_train_members(mercer_fitting *self)
{
    /* With a budget, a member is started only if it would end in time, assuming that it takes as long as the first
       one. */
    double first_seconds = mrc_seconds() - self->opened;
    for (int64_t i = 1; i < self->report.members && self->training.stopped != MERCER_STOP_CALLBACK; i++) {
        if (self->deadline > 0 && mrc_seconds() + first_seconds > self->deadline) break;
        MRC_TRY(train_member(self, i));
        if (self->model->member_count <= i) break;
    }
    self->report.members = self->model->member_count;
    return self->report.members > 1 ? score_mean(self) : MERCER_OK;
}
