/* SPDX-License-Identifier: BSD-3-Clause */
/* Training by an exact solver: direct, cg; and polishing, which is a few steps of cg from where the iteration ended. */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Far below what a test error can show: the relative preconditioned gradient, which counts where labels have no noise,
   and the share of the objective that is still to be gained. Whoever names a number of steps wants them, and polishing
   is exact work: then the first alone counts. */
#define CG_TOLERANCE 1e-4
#define CG_SLACK     1e-4

typedef struct watcher {
    mrc_trainer *trainer;
    const mercer_matrix *alpha;
    int64_t steps;
    mercer_status status;
    int stop;
} watcher;

static bool watch(void *user, int64_t step, double relative_gradient, double loss)
{
    watcher *self = user;
    mrc_trainer *trainer = self->trainer;
    mercer_progress progress = {.epoch = step,
                                .epochs = self->steps,
                                .train_loss = loss / (double)trainer->target.weights->cols,
                                .train_accuracy = NAN,
                                .projection_residual = relative_gradient};
    trainer->samples += trainer->n;
    trainer->report.epochs = trainer->epoch = step;
    trainer->report.train_loss = progress.train_loss;
    self->status = mrc_trainer_end_epoch(trainer, self->alpha, &progress, &self->stop);
    return self->status != MERCER_OK || self->stop != 0;
}

static mercer_status poll(void *user, bool *stop)
{
    return mrc_trainer_poll(user, stop);
}

static mercer_status keep(void *user, const mrc_state *own, bool now)
{
    watcher *self = user;
    return mrc_trainer_keep(self->trainer, own, self->alpha, now ? MRC_KEEP_NOW : MRC_KEEP_EPOCH);
}

static mercer_status recall(void *user, mrc_state *own)
{
    return mrc_trainer_recall(((watcher *)user)->trainer, own);
}

static void add_times(mrc_exact_times *sum, const mrc_exact_times *more)
{
    sum->setup += more->setup, sum->forward += more->forward;
    sum->gradient += more->gradient, sum->solve += more->solve;
}

/* direct never sees a prediction: one more pass shows the loss of the weights as they are returned. */
static mercer_status measure_fit(mrc_trainer *self, mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    double since = mrc_seconds(), fit;
    MRC_TRY(mrc_objective(exact, alpha, &fit, NULL));
    self->report.train_loss = exact->mass > 0 ? fit / (exact->mass * (double)exact->c) : 0;
    mrc_lap(&since, &self->exact_times.forward);
    return MERCER_OK;
}

static mercer_status run(mrc_trainer *self, mrc_kernel_blocks *kernel_blocks, const mercer_matrix *alpha, bool direct,
                         int64_t steps, bool polishing)
{
    watcher monitor = {.trainer = self, .alpha = alpha, .steps = steps};
    mrc_exact_solver exact = {.centers = &self->centers,
                              .stream = &self->stream,
                              .kernel_blocks = kernel_blocks,
                              .n = self->n,
                              .c = alpha->cols,
                              .units = self->target.units,
                              .lambda = self->options.lambda,
                              .steps = steps,
                              .tolerance = CG_TOLERANCE,
                              .slack = polishing || self->options.epochs > 0 ? 0 : CG_SLACK,
                              .preconditioner_sizes = self->plan.preconditioner_sizes,
                              .monitor = direct || polishing ? NULL : watch,
                              .monitor_user = &monitor,
                              .memory = self->plan.budget,
                              .keep = direct || polishing ? NULL : keep,
                              .recall = self->resuming && !direct && !polishing ? recall : NULL,
                              .keep_user = &monitor};
    self->stream.poll = poll, self->stream.poll_user = self;
    mercer_status status = direct ? mrc_exact_direct(&exact, alpha) : mrc_exact_cg(&exact, alpha);
    self->stream.poll = NULL;
    add_times(&self->exact_times, &exact.times);
    if (status != MERCER_OK && !(direct && self->stream.stopped)) return status;
    MRC_TRY(monitor.status);
    if (self->stream.stopped) monitor.stop = 2;
    self->report.stopped = monitor.stop;
    if (polishing) return MERCER_OK;
    self->report.epochs = direct ? 1 : exact.steps_done;
    if (!direct) self->report.projection_residual_last = exact.relative_gradient;
    if (!direct) self->report.train_loss = exact.loss / (double)alpha->cols;
    return direct && !monitor.stop ? measure_fit(self, &exact, alpha) : MERCER_OK;
}

static mercer_status fit(mrc_trainer *self, const mercer_matrix *alpha)
{
    const mercer_plan *plan = &self->plan.public_plan;
    bool direct = strcmp(plan->solver, "direct") == 0;
    mrc_state nothing = {0}; /* direct keeps that it has begun: it starts again from there */
    MRC_TRY(mrc_kernel_blocks_create(&self->kernel_blocks, &self->centers, plan->batch, self->plan.keep_bytes,
                                     plan->cache_data ? self->n : 0,
                                     plan->cache_data == MRC_CACHE_HALF ? MERCER_F16 : self->centers.real));
    MRC_TRY(self->backend->ops->copy(self->backend, alpha, self->target.weights));
    if (direct)
        MRC_TRY(self->resuming ? mrc_trainer_recall(self, &nothing)
                               : mrc_trainer_keep(self, &nothing, alpha, MRC_KEEP_NOW));
    MRC_TRY(run(self, &self->kernel_blocks, alpha, direct, plan->epochs, false));
    if (direct && self->report.stopped) return MERCER_OK; /* half an answer is none */
    if (direct) {
        mercer_progress progress = {
            .epoch = 1, .epochs = 1, .train_loss = self->report.train_loss, .train_accuracy = NAN};
        int stop;
        self->samples += self->n;
        MRC_TRY(mrc_trainer_end_epoch(self, alpha, &progress, &stop));
        self->report.stopped = (mercer_stop)stop;
    }
    return mrc_trainer_publish(self, self->have_best ? &self->best : alpha);
}

mercer_status mrc_trainer_fit_exact(mrc_trainer *self)
{
    self->n = self->stream.source->rows;
    MRC_TRY(mrc_centers_create(&self->centers, self->backend, self->comm, self->target.kernel, self->target.z,
                               self->target.p, self->target.origin, self->target.weights->dtype));
    self->ready = true;
    self->centers.notice = mrc_trainer_tell, self->centers.notice_user = self;
    mercer_matrix alpha;
    mercer_status status =
        mrc_field_create(&self->centers, &alpha, self->target.weights->cols, self->centers.real, "weights");
    if (status == MERCER_OK) status = fit(self, &alpha);
    mrc_matrix_destroy(self->backend, &alpha);
    return status;
}

mercer_status mrc_trainer_polish(mrc_trainer *self, const mercer_matrix *alpha)
{
    /* The iteration's passes are made for small batches; reading for CG wants large ones. */
    mrc_kernel_blocks kernel_blocks;
    int64_t rows = mrc_min(MRC_READ_ROWS, self->n);
    int64_t keep = mrc_min(self->plan.keep_bytes, rows * self->centers.p * mrc_dtype_size(self->centers.real));
    mrc_projector_free(self->projector); /* makes room for the factor */
    self->projector = self->iteration.projector = NULL;
    mrc_kernel_blocks_destroy(&self->kernel_blocks);
    MRC_TRY(mrc_kernel_blocks_create(&kernel_blocks, &self->centers, rows, keep,
                                     self->plan.public_plan.cache_data ? self->n : 0, self->centers.real));
    self->setting_up = true; /* once more: the preconditioner */
    mercer_status status = run(self, &kernel_blocks, alpha, false, self->options.polish, true);
    mrc_kernel_blocks_destroy(&kernel_blocks);
    return status;
}
