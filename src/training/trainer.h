/* SPDX-License-Identifier: BSD-3-Clause */
/* The trainer: set-up, epochs, validation, watchdog and report around the iteration or an exact solver. */
#ifndef MRC_TRAINING_TRAINER_H
#define MRC_TRAINING_TRAINER_H

#include "plan/plan.h"
#include "solvers/normal/exact_solvers.h"
#include "solvers/state.h"

/* What is trained: borrowed from the model. */
typedef struct mrc_target {
    const mercer_kernel *kernel;
    const mercer_matrix *z;       /* (rows, d) this rank's share of the p centers */
    int64_t p;                    /* of all ranks */
    const mercer_matrix *weights; /* (rows, c) f32 or f64: start and result */
    const double *origin;         /* (d) */
    const mrc_units *units;       /* of the targets; NULL: as they are */
    mercer_plan *plan;            /* where the plan of the last report is kept */
} mrc_target;

/* Notices NaN and growing losses. Losses are averaged over batches with weight, so that a single hard batch is no
   alarm. */
typedef struct mrc_watchdog {
    double loss, target; /* running means of the squared error and of the squared targets */
    double best;         /* lowest running loss so far */
    double seen;         /* samples in the running means, fading */
} mrc_watchdog;

/* The moments at which a state may be saved. */
typedef enum mrc_keep_moment {
    MRC_KEEP_STEP,  /* between steps: if checkpoint_seconds have passed */
    MRC_KEEP_EPOCH, /* at the end of an epoch or of a step of cg: unless the last one is too young for what it cost */
    MRC_KEEP_NOW    /* at the start and before stopping: always, and failure to save is a failure */
} mrc_keep_moment;

typedef struct mercer_trainer {
    mercer_context *context;
    mrc_backend *backend;
    mrc_comm *comm, *own_comm;
    mrc_target target;
    mercer_train_options options;
    char solver[16], projector_name[16];

    bool ready;           /* the parts below exist */
    bool planned;         /* the plan is that of the next fit, */
    int64_t planned_rows; /* on so many samples */
    mercer_dtype planned_points;
    mercer_source there;           /* on a device: the samples as fit will read them, */
    const mercer_source *there_of; /* whose they are (NULL: none), */
    const void *there_user;        /* its user */
    int64_t there_bytes;
    mrc_plan plan;
    mrc_centers centers;
    mrc_sample_stream stream;
    mrc_kernel_blocks kernel_blocks;
    mrc_eigensystem system;
    int64_t *sample_rows; /* (s) */
    mrc_projector *projector;
    mrc_iteration iteration;
    mercer_matrix rollback_weights; /* field: weights to go back to */
    mercer_matrix best;             /* field: weights of the best validation result */
    bool have_best;
    double best_score;
    int64_t since_best;
    mrc_watchdog watchdog;

    bool trusted_source;     /* of the next fit: see mrc_sample_stream */
    mrc_keeper keeper;       /* no functions: nothing is kept */
    bool resuming;           /* the next fit begins with what the keeper has */
    int64_t planned_threads; /* what the plan of the training that goes on was made for; 0: this machine's */
    double roughness;        /* of K(Z,Z), once it was needed */
    double spread;           /* bandwidth over the median distance, once it was needed */
    bool have_roughness, have_spread;
    int64_t planned_budget;
    bool setting_up;              /* what is done now is told to the progress callback */
    bool stop_asked;              /* which answered that it is enough */
    char phase[32];               /* what it was told last */
    double last_keep, last_shown; /* when a state was saved, when progress was shown */
    double keep_cost;             /* seconds that the last one took */
    bool keep_failed;             /* it could not be written, and that was said */
    double earlier_seconds;       /* of the training that goes on */
    double kept_seconds;          /* of training when a state was saved */
    int64_t projector_calls;      /* the projector's, when a state was saved */
    int64_t epoch, pass_rows;     /* where in the samples training is */
    mrc_loss totals;              /* of the pass under way */
    double *spectrum;             /* eigenvalues of the last set-up */
    int64_t spectrum_count;

    int64_t n, samples;   /* samples in a pass; seen so far */
    int64_t bytes_before; /* held by the context when training began */
    double start;
    double setup_seconds;        /* of the iteration */
    mrc_exact_times exact_times; /* of direct, cg or polishing */
    mercer_report report;
} mrc_trainer;

mercer_status mrc_trainer_create(mrc_trainer **out, mrc_backend *backend, mrc_comm *comm, const mrc_target *target,
                                 const mercer_train_options *options);
void mrc_trainer_free(mrc_trainer *trainer);
/* Makes the plan of the next fit, if that is on a source like this one. */
mercer_status mrc_trainer_plan(mrc_trainer *trainer, const mercer_source *source);
mercer_status mrc_trainer_fit(mrc_trainer *trainer, const mercer_source *source);
mercer_status mrc_trainer_step(mrc_trainer *trainer, const mercer_batch *batch);
mercer_status mrc_trainer_finish(mrc_trainer *trainer);
/* The report so far, numbers of the running parts included. */
void mrc_trainer_fill_report(mrc_trainer *trainer);

/* ---- Its own files share these ------------------------------------------------------------------------------- */

/* trainer_setup.c: the plan for n samples of dtype `points`. Made once for a training: set-up refines it. */
mercer_status mrc_trainer_make_plan(mrc_trainer *trainer, int64_t n, bool rows_known, mercer_dtype points);
/* trainer_setup.c: another solver's in its place. */
mercer_status mrc_trainer_replace_plan(mrc_trainer *trainer, const char *solver, const char *why);
/* trainer_setup.c: everything an iterative solver needs, from a sample (rows, d) of the data with row numbers or
   NULL. */
mercer_status mrc_trainer_set_up(mrc_trainer *trainer, const mercer_matrix *sample, const int64_t *rows, int64_t n);
void mrc_trainer_tear_down(mrc_trainer *trainer);
/* trainer_setup.c: reads a sample of s + fresh rows from the stream and sets up. */
mercer_status mrc_trainer_set_up_from_stream(mrc_trainer *trainer);

/* trainer_validate.c: loss and accuracy of a field of weights on the validation set; NaN without one. */
mercer_status mrc_trainer_validate(mrc_trainer *trainer, const mercer_matrix *alpha, double *loss, double *accuracy);
/* trainer_validate.c: validation of the candidate weights, best weights, patience, progress. *stop: 0 go on, 1
   patience, 2 callback. */
mercer_status mrc_trainer_end_epoch(mrc_trainer *trainer, const mercer_matrix *candidate, mercer_progress *progress,
                                    int *stop);

/* trainer_keep.c: saves the state if a keeper is there and it is time. Failure to save is a warning, when it begins and
   when it ends, unless it is needed now. `own` lists what the solver keeps beyond the trainer; NULL: the
   iteration's. */
mercer_status mrc_trainer_keep(mrc_trainer *trainer, const mrc_state *own, const mercer_matrix *weights,
                               mrc_keep_moment moment);
/* trainer_keep.c: goes on with the state that the keeper has, numbers first, then (once there is room) matrices. */
mercer_status mrc_trainer_recall_plan(mrc_trainer *trainer);
mercer_status mrc_trainer_recall(mrc_trainer *trainer, mrc_state *own);
/* trainer_keep.c: the plan in words, with all sizes and choices that decide about the result. */
void mrc_trainer_describe(const mrc_trainer *trainer, char *text, size_t size);
/* trainer_keep.c: shows progress between steps if it is time; *stop: if a rank's callback says so. */
mercer_status mrc_trainer_poll(mrc_trainer *trainer, bool *stop);
/* trainer_keep.c: an mrc_notice: shows what set-up does, if it is something else than before or if it is time. */
void mrc_trainer_tell(void *trainer, const char *what, double share);

/* trainer_exact.c: direct, cg, and polishing at the end. */
mercer_status mrc_trainer_fit_exact(mrc_trainer *trainer);
mercer_status mrc_trainer_polish(mrc_trainer *trainer, const mercer_matrix *alpha);

/* trainer.c: the type that kernel values are computed in, whatever that of the samples. */
mercer_dtype mrc_trainer_arithmetic(const mrc_trainer *trainer);

/* The weights training would return now: the best validated ones, the average, or the last. */
const mercer_matrix *mrc_trainer_candidate(const mrc_trainer *trainer);
/* Writes a field into the model, unless it holds a value that is not finite. */
mercer_status mrc_trainer_publish(mrc_trainer *trainer, const mercer_matrix *alpha);

#endif
