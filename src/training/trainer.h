/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * training: a single training run. The trainer makes a plan, runs the solver of that plan, and provides the services
 * that all solvers need: validation, checkpoints, progress.
 *
 *   trainer.c           fit, attempts, streaming, the report
 *   trainer_plan.c      the plan: its inputs, and agreement of the ranks
 *   checkpoint.c        saving and resuming, and the values of a plan that checkpoints store and ranks compare
 *   trainer_progress.c  validation, best weights, patience, progress, the check of half precision
 */
#ifndef MRC_TRAINING_TRAINER_H
#define MRC_TRAINING_TRAINER_H

#include "data/stream/dataset_stream.h"
#include "model/model.h"
#include "model/tensor_file.h"
#include "plan/plan.h"
#include "solvers/state.h"

#include <stdatomic.h>

/* Facts about centers and samples that the caller knows, so that the trainer need not measure them. */
typedef struct mrc_known {
    bool on_samples; /* for all i, center i is sample i of the source, and every sample has a positive weight */
    double spread;   /* approximate bandwidth divided by the median distance between centers; 0: unknown */
} mrc_known;

/* Copies of strings of the options; "" for none. */
enum { MRC_TEXT_SOLVER, MRC_TEXT_PROJECTOR, MRC_TEXT_PATH, MRC_TEXT_NOTE, MRC_TEXTS };

typedef struct mercer_trainer {
    mrc_job job; /* must be the first member: job callbacks cast the job to its trainer */
    mercer_model *model;
    mrc_comm *own_comm;
    const char **texts; /* (MRC_TEXTS) owned */

    mrc_known known;
    mrc_plan_request request; /* input of the planner; samples as of the last plan */
    bool planned;             /* job.plan can be used by the next fit, if that fit has request.n samples of the same
                                 type */
    /* the request has the spread and coordinates of the centers (measured), the roughness of the kernel matrix
       (have_roughness) */
    bool measured, have_roughness;
    mrc_reason half_refused; /* failure of half precision; request.accurate points to its text */
    /* largest bytes of the plans that broke down, for the report of the fit */
    int64_t given_up_bytes;
    /* largest mean squared change of predictions by half precision so far, relative to the loss */
    double rounding;
    int64_t rounding_rows;   /* number of rows that `rounding` was measured on; 0: not measured */
    mercer_source on_device; /* device-resident source of the same samples; `next` is NULL if there is none */
    const mercer_source *on_device_source; /* source that `on_device` was made for; NULL: none */
    const void *on_device_user; /* user pointer of on_device_source, to detect another source at the same address */
    int64_t on_device_bytes;
    bool trusted_source, new_points; /* settings of the next sample stream (sample_stream.h) */

    double best_score;
    int64_t since_best;             /* epochs since the best score */
    bool stop_asked;                /* the progress callback requested a stop */
    char phase[32];                 /* set-up phase that was last reported */
    double last_shown;              /* time of the last progress report, on the clock of mrc_seconds */
    mrc_tensor_file *resumed;       /* open checkpoint that training resumes from, until it is read; or NULL */
    double last_save, save_seconds; /* time of the last checkpoint, and the seconds that writing it took */
    bool save_failed;               /* the last write failed, and a warning was issued */
    atomic_bool save_requested;     /* request, possibly from another thread, to save at the next step */
    double earlier_seconds;         /* seconds of training before the run was resumed */
    double saved_seconds;           /* seconds of training at the last checkpoint */
    int64_t bytes_before;           /* bytes allocated by the context when training began */
    double start;
} mrc_trainer;

mercer_status mrc_trainer_create(mrc_trainer **out, mercer_model *model, mrc_comm *comm,
                                 const mercer_train_options *options);
void mrc_trainer_free(mrc_trainer *trainer);
/* Makes the plan of the next fit, which is used if that fit's source has the same number and type of samples. */
mercer_status mrc_trainer_plan(mrc_trainer *trainer, const mercer_source *source);
mercer_status mrc_trainer_fit(mrc_trainer *trainer, const mercer_source *source);
mercer_status mrc_trainer_step(mrc_trainer *trainer, const mercer_batch *batch);
/* Updates job.report, also while training is running. */
void mrc_trainer_fill_report(mrc_trainer *trainer);

/* ---- Internal to the trainer_*.c files --------------------------------------------------------------------------- */

/* checkpoint.c, called by solvers through mrc_job_host: saves a checkpoint if one is due; restores the state of a
   resumed training. A failed save is an error only if `moment` demands it; otherwise it is a warning, and one more
   message is logged when saving works again. */
mercer_status mrc_trainer_save(mrc_job *job, const mercer_matrix *weights, mrc_save_moment moment);
mercer_status mrc_trainer_restore(mrc_job *job);
/* Opens the file that training resumes from, and checks that it belongs to the model. It stays open until its matrices
   are loaded. */
mercer_status mrc_trainer_open_checkpoint(mrc_trainer *trainer, const char *path);
/* Fails with MERCER_ERROR_COMM unless all ranks have the same plan values. */
mercer_status mrc_trainer_agree_on_plan(const mrc_trainer *trainer);
/* Restores the inputs of the plan from the open file. */
mercer_status mrc_trainer_restore_plan(mrc_trainer *trainer);

/* trainer_plan.c, in this order: sets the parts of the request that are known when the trainer is created; completes
   the request for n samples of dtype `points`, and measures the centers; makes the plan; refines it (mrc_job_host);
   logs its warnings. */
void mrc_trainer_open_request(mrc_trainer *trainer);
mercer_status mrc_trainer_begin_plan(mrc_trainer *trainer, int64_t n, mercer_dtype points);
mercer_status mrc_trainer_make_plan(mrc_trainer *trainer);
mercer_status mrc_trainer_refine(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points);
void mrc_trainer_warn_of_plan(const mrc_trainer *trainer);

/* trainer.c: releases the state of a training run, not the trainer; returns the type of kernel values, which does not
   depend on the type of the samples. */
void mrc_trainer_tear_down(mrc_trainer *trainer);
mercer_dtype mrc_trainer_value_dtype(const mrc_job *job);

/* trainer_progress.c, called by solvers through mrc_job_host: computes the validation loss; ends an epoch or CG step
   and decides whether to stop; reports progress between steps if it is due. */
mercer_status mrc_trainer_validate(mrc_job *job, const mercer_matrix *alpha);
mercer_status mrc_trainer_end_epoch(mrc_job *job, const mercer_matrix *candidate, mercer_progress *progress,
                                    mercer_stop *stop);
mercer_status mrc_trainer_poll(mrc_job *job, bool *stop);
/* Adds the result of the check of half precision to the plan's text. */
void mrc_trainer_log_precision(mrc_trainer *trainer);
/* An mrc_notice: reports the phase of set-up if it has changed or a progress report is due. */
void mrc_trainer_notice(void *trainer, const char *what, double share);

/* ---- Samples in device memory ------------------------------------------------------------------------------------ */

/*
 * Creates a source with the samples of a given source, in the same order, whose batches are in the backend's memory.
 * Works for sources over a dataset; for other sources out->next is set to NULL. Stored samples are copied to the device
 * once, if they take at most `most` bytes, and are augmented there. Samples of a teacher (synth_teacher.c) are drawn on
 * the device: X is bitwise identical, Y equal up to the rounding of the kernel products. `source` must outlive *out.
 */
mercer_status mrc_device_source_create(mercer_source *out, mrc_backend *backend, const mercer_source *source,
                                       int64_t most);

/* Calls `act` (plan or fit) with the source that the trainer should read: the device-resident copy if there is one,
   else `source` itself. The copy stays until mrc_trainer_drop_samples. */
mercer_status mrc_trainer_on_samples(mrc_trainer *trainer, const mercer_source *source,
                                     mercer_status (*act)(mrc_trainer *trainer, const mercer_source *source));
void mrc_trainer_drop_samples(mrc_trainer *trainer);

/* Implementation of the public function of the same name with the prefix mercer_. */
mercer_status mrc_trainer_finish(mrc_trainer *self);

#endif
