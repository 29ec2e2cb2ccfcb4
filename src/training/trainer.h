/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * training: one training. The trainer makes a plan, runs the solver that it names, and does what all solvers need:
 * validation, checkpoints, progress.
 *
 *   trainer.c           the plan, fit, streaming, the report
 *   trainer_state.c     checkpoints: saving and going on
 *   trainer_progress.c  validation, best weights, patience, progress
 *   trainer_precision.c whether products may be rounded to half precision, before and after
 */
#ifndef MRC_TRAINING_TRAINER_H
#define MRC_TRAINING_TRAINER_H

#include "data/stream/dataset_stream.h"
#include "model/model.h"
#include "plan/plan.h"

#include <stdatomic.h>

typedef struct mercer_trainer {
    mrc_job job; /* first: a job's host finds its trainer here */
    mrc_comm *own_comm;
    char solver[16], projector_name[16];

    bool planned;                /* the plan is that of the next fit, */
    int64_t planned_rows;        /* on so many samples */
    mercer_dtype planned_points; /* of this type */
    int64_t planned_threads;     /* what the plan of the training that goes on was made for; 0: this machine's */
    int64_t planned_budget;
    double roughness;  /* of K(Z,Z), once it was needed */
    double spread;     /* bandwidth over the median distance, once it was needed */
    double unevenness; /* heaviest sample weight over their mean; 0 if not known */
    bool have_roughness, have_spread;
    double coordinates, farthest; /* of centers from the origin, in bandwidths, once they were needed */
    bool gains_by_half, have_coordinates;
    bool streaming;                 /* batches come one by one */
    char accurate[MRC_ERROR_CHARS]; /* why products are not rounded any more; "": they may be */
    int64_t given_up_bytes;         /* of plans that broke down: their peak is that of the whole fit, too */
    double rounding;                /* the most that rounding made of the loss on rows that were held back, */
    int64_t rounding_rows;          /* of so many; 0: it was not looked at */
    bool on_samples;                /* the centers are the samples of the source that was planned for */
    mercer_source there;            /* on a device: the samples as fit will read them, */
    const mercer_source *there_of;  /* whose they are (NULL: none), */
    const void *there_user;         /* its user */
    int64_t there_bytes;
    bool trusted_source, new_points; /* of the next fit: see mrc_sample_stream */

    double best_score;
    int64_t since_best;          /* epochs */
    bool stop_asked;             /* the progress callback answered that it is enough */
    char phase[32];              /* what it was told last */
    double last_shown;           /* when */
    mrc_keeper keeper;           /* no functions: nothing is kept */
    double last_keep, keep_cost; /* when a state was saved, and the seconds that took */
    bool keep_failed;            /* it could not be written, and that was said */
    atomic_bool keep_asked;      /* somebody wants one at the next step */
    double earlier_seconds;      /* of the training that goes on */
    double kept_seconds;         /* of training when a state was saved */
    int64_t bytes_before;        /* held by the context when training began */
    double start;
} mrc_trainer;

mercer_status mrc_trainer_create(mrc_trainer **out, mrc_backend *backend, mrc_comm *comm, const mrc_target *target,
                                 const mercer_train_options *options);
void mrc_trainer_free(mrc_trainer *trainer);
/* Makes the plan of the next fit, if that is on a source like this one. */
mercer_status mrc_trainer_plan(mrc_trainer *trainer, const mercer_source *source);
/* The plan for n samples of dtype `points`. Made once for a training: set-up refines it. */
mercer_status mrc_trainer_make_plan(mrc_trainer *trainer, int64_t n, bool rows_known, mercer_dtype points);
mercer_status mrc_trainer_fit(mrc_trainer *trainer, const mercer_source *source);
mercer_status mrc_trainer_step(mrc_trainer *trainer, const mercer_batch *batch);
/* The report so far, numbers of the running parts included. */
void mrc_trainer_fill_report(mrc_trainer *trainer);

/* ---- Its own files share these ------------------------------------------------------------------------------- */

/* trainer_state.c, as a job's host: failure to save is a warning, when it begins and when it ends, unless it is needed
   now. */
mercer_status mrc_trainer_keep(mrc_job *job, const mercer_matrix *weights, mrc_keep_moment moment);
mercer_status mrc_trainer_recall(mrc_job *job);
/* What must be known of a kept training before it is planned again. */
mercer_status mrc_trainer_recall_plan(mrc_trainer *trainer);
/* The plan in words, with all sizes and choices that decide about the result. */
void mrc_trainer_describe(const mrc_trainer *trainer, char *text, size_t size);

/* trainer_precision.c: what a plan wants to know of the centers; and, after an epoch, whether the plan's half precision
   may stay: MERCER_ERROR_NUMERIC if not. tell: the line of the plan that says that it did. */
void mrc_trainer_look_at_rounding(mrc_trainer *trainer);
mercer_status mrc_trainer_check_precision(mrc_trainer *trainer, const mercer_matrix *candidate);
void mrc_trainer_tell_precision(mrc_trainer *trainer);

/* trainer_progress.c, as a job's host. */
mercer_status mrc_trainer_validate(mrc_job *job, const mercer_matrix *alpha);
mercer_status mrc_trainer_end_epoch(mrc_job *job, const mercer_matrix *candidate, mercer_progress *progress,
                                    mercer_stop *stop);
mercer_status mrc_trainer_poll(mrc_job *job, bool *stop);
/* An mrc_notice: shows what set-up does, if it is something else than before or if it is time. */
void mrc_trainer_tell(void *trainer, const char *what, double share);

/* ---- Checkpoint files behind a trainer --------------------------------------------------------------------------- */

typedef struct mrc_checkpoint mrc_checkpoint;

/* Takes what it needs of the options; the texts are copied. */
mercer_status mrc_checkpoint_create(mrc_checkpoint **out, mercer_model *model, const mercer_train_options *options);
void mrc_checkpoint_free(mrc_checkpoint *checkpoint);
/* Makes it the keeper of the trainer's state. */
void mrc_checkpoint_attach(mrc_checkpoint *checkpoint, mrc_trainer *trainer);
/* The trainer's next fit resumes from the file. */
mercer_status mrc_checkpoint_resume(mrc_checkpoint *checkpoint, mrc_trainer *trainer, const char *path);

/* ---- Samples where they are computed with ------------------------------------------------------------------------ */

/*
 * For a source over a dataset: one with the same samples in the same order, whose batches lie where the backend's
 * matrices do. Stored samples are copied there once, if they take at most `most` bytes, and augmented there; those of
 * a teacher (synth_teacher.c) are drawn there, X to the same bits, Y to the rounding of the kernel products. For
 * other sources out->next is NULL. `source` must outlive it.
 */
mercer_status mrc_device_source_create(mercer_source *out, mrc_backend *backend, const mercer_source *source,
                                       int64_t most);

/* Room for what rows on the device go through when they are augmented (device_changes.c). */
typedef struct mrc_device_changes {
    mrc_backend *backend;
    mrc_stream_contents contents;
    mercer_matrix own, other, spare; /* (rows, features) of the dataset's dtype; other: mixed with; spare: moved to */
    int64_t *sequences;
    mrc_image_move *moves;
} mrc_device_changes;

/* Whether the preprocessing that follows can be done there, too. */
bool mrc_device_changes_take(const mrc_stream_contents *contents);
/* For `rows` rows, of contents that have an augmentation; to be released even if it fails. */
mercer_status mrc_device_changes_make_room(mrc_device_changes *out, mrc_backend *backend,
                                           const mrc_stream_contents *contents, int64_t rows);
void mrc_device_changes_release(mrc_device_changes *changes);
/* The first `rows` of samples, whose dataset's rows are `points`: into x (rows, width) if they are preprocessed, else
   *x becomes a view of them until the next call. */
mercer_status mrc_device_changes_apply(mrc_device_changes *changes, const mercer_matrix *points,
                                       const mrc_stream_samples *samples, int64_t rows, mercer_matrix *x);

/* Plans for, or fits, the samples where the trainer reads them from: the source's, or those on the device, which stay
   there until they are dropped. */
mercer_status mrc_trainer_on_samples(mrc_trainer *trainer, const mercer_source *source,
                                     mercer_status (*act)(mrc_trainer *trainer, const mercer_source *source));
void mrc_trainer_drop_samples(mrc_trainer *trainer);

/* The public functions of the same names, without mercer_. */
mercer_status mrc_trainer_finish(mrc_trainer *self);

#endif
