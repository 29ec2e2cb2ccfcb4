/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers: the table of solvers and their parts. A row has a name, a description for messages, and the functions that
 * choose its sizes, estimate its cost and train with it. krr, direct and cg have their own functions; all others are
 * presets of one iteration (mrc_preset).
 *
 * Folders: iteration/ (the EigenPro family), normal/ (krr, direct, cg), projectors/, operators/ (products that all
 * solvers use).
 *
 * A solver receives an mrc_job, which the trainer has filled in, and calls the trainer through job->host. So solvers
 * depend on neither the trainer nor the planner. To add a solver, write a file with its mrc_solver_ops and add a row in
 * solver.c.
 */
#ifndef MRC_SOLVERS_SOLVER_H
#define MRC_SOLVERS_SOLVER_H

#include "solvers/iteration/iteration.h"
#include "solvers/normal/exact_solvers.h"
#include "solvers/planner.h"

/* ---- A running training -------------------------------------------------------------------------------------- */

/* The model that is trained; its parts are borrowed from the model. */
typedef struct mrc_target {
    const mercer_kernel *kernel;
    const mercer_matrix *z;       /* (rows, d) this rank's share of the p centers */
    int64_t p;                    /* number of centers of all ranks */
    const mercer_matrix *weights; /* (rows, c) f32 or f64: initial weights and result */
    const double *origin;         /* (d) subtracted from points in distances */
    const mrc_units *units;       /* units of the targets; NULL: not converted */
    mercer_plan *plan;            /* receives the plan of the last report */
} mrc_target;

/* Detects NaN and growing losses. Losses are averaged over batches, weighted by rows, so that a single hard batch
   raises no alarm. */
typedef struct mrc_watchdog {
    double loss, target; /* running means of the squared error and of the squared targets */
    double best;         /* lowest running loss so far */
    double samples;      /* number of samples in the running means, in which older samples have less weight */
} mrc_watchdog;

/* Moments at which the state may be saved. */
typedef enum mrc_save_moment {
    MRC_SAVE_STEP, /* between steps: saved if checkpoint_seconds have passed */
    /* at the end of an epoch or of a step of cg: skipped if writing takes long and the last checkpoint is recent */
    MRC_SAVE_EPOCH,
    MRC_SAVE_NOW /* at the start and before stopping: always saved, and failure to save is an error */
} mrc_save_moment;

typedef struct mrc_job mrc_job;

/* Services of the trainer for a solver. */
typedef struct mrc_job_host {
    /* Chooses the plan's sizes again, now that the critical batch is known, and whether batches have row numbers. */
    mercer_status (*refine)(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points);
    /* Writes a checkpoint if one is due. weights: the weights that the model would receive now. */
    mercer_status (*save)(mrc_job *job, const mercer_matrix *weights, mrc_save_moment moment);
    /* Restores the saved state. */
    mercer_status (*restore)(mrc_job *job);
    /* Reports progress between steps if a report is due; sets *stop to whether a rank's callback requests a stop. */
    mercer_status (*poll)(mrc_job *job, bool *stop);
    /* Validates the candidate weights, updates the best weights and patience, and reports progress. Sets *stop to a
       nonzero reason to stop here. */
    mercer_status (*end_epoch)(mrc_job *job, const mercer_matrix *candidate, mercer_progress *progress,
                               mercer_stop *stop);
    /* Writes loss and accuracy of the weights on the validation set to the report; NaN without a validation set. */
    mercer_status (*validate)(mrc_job *job, const mercer_matrix *weights);
} mrc_job_host;

struct mrc_job {
    const mrc_job_host *host;
    mercer_context *context;
    mrc_backend *backend;
    mrc_comm *comm;
    mrc_target target;
    mercer_train_options options;
    mrc_plan plan;
    bool ready;          /* the parts below exist */
    bool resuming;       /* training begins with the saved state */
    bool from_zero;      /* training begins with weights of 0, not with the weights of the model */
    bool announces;      /* set-up reports its progress to the progress callback */
    mrc_centers centers; /* also used to report the progress of set-up (mrc_centers_notify) */
    mrc_sample_stream stream;
    mrc_kernel_blocks kernel_blocks;
    void *state; /* the solver's own state; NULL until create has allocated it */

    int64_t n, samples;       /* n: samples per pass; samples: samples seen so far */
    int64_t epoch, pass_rows; /* position in the data: current epoch, rows read in its pass */
    mrc_loss totals;          /* sums over the current pass */
    mrc_watchdog watchdog;
    bool have_best;
    mercer_matrix best;    /* field: weights of the best validation result */
    double step, residual; /* step: eta / m of the last step; residual: relative residual of the last projection */
    mrc_exact_times times; /* seconds of krr, direct, cg or polishing */
    double *spectrum;      /* (spectrum_count) eigenvalues of the last set-up, then the tail; owned */
    int64_t spectrum_count;
    mercer_report report;
};

/* Create the caches of kernel values that the plan includes. */
mercer_status mrc_job_kernel_blocks(mrc_job *job);
/* Set a field to the weights that training begins with. */
mercer_status mrc_job_first_weights(const mrc_job *job, const mercer_matrix *field);
/* Return the weights that training would return now: the weights with the best validation result, or the solver's
   weights. */
const mercer_matrix *mrc_job_candidate(const mrc_job *job);

/* ---- The table ----------------------------------------------------------------------------------------------- */

/* Options that apply to a solver, and its requirements. */
enum {
    MRC_USES_EPOCHS = 1,
    MRC_USES_SIZES = 2,      /* batch, nystrom */
    MRC_USES_EIGENPAIRS = 4, /* q */
    MRC_USES_STEPS = 8,      /* step_factor, average, decay, polish */
    MRC_USES_PROJECTOR = 16, /* projector and its sizes, carry */
    MRC_USES_PERIOD = 32,
    MRC_NEEDS_SAMPLES = 64,    /* the centers are the samples */
    MRC_NEEDS_ROUGHNESS = 128, /* the plan depends on the spectrum of K(Z,Z) */
    MRC_FOR_AUTO =
        /* auto may choose the solver. The first such row is preferred; the last such row is the fallback and accepts
           the most options */
    256,
    MRC_CONVERGES = 512 /* the solver computes exact weights, or runs to convergence */
};

/* Cost of a solver. set_up: all memory, and the work of set-up; batch: work of a batch; projection: work of a
   projection, or of a step of cg without its batches. */
typedef struct mrc_solver_cost {
    mrc_cost set_up, batch, projection;
    double batches, projections; /* number of batches, and of projections, per epoch */
    double epochs;               /* expected number of epochs */
    double all_projections;      /* expected number of projections in all epochs */
} mrc_solver_cost;

typedef struct mrc_solver_ops {
    /* Chooses the sizes that the options leave open, and explains them in the plan's text. */
    mercer_status (*choose)(mrc_planner *planner);
    /* Makes the last choices once memory has been assigned, and adds them to the plan's text. */
    void (*complete_plan)(mrc_planner *planner);
    /* Computes the cost of a plan, without kernel blocks and caches; the caller has cleared *out. */
    void (*cost)(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out);
    /* Sets up the solver from the samples `first`, or from the job's stream if first is NULL. destroy is called after a
       failure too. */
    mercer_status (*create)(mrc_job *job, const mercer_matrix *first);
    /* Trains to the end. */
    mercer_status (*run)(mrc_job *job);
    /* step takes a step on a batch of the caller; finish completes the steps so far. NULL: not supported. */
    mercer_status (*step)(mrc_job *job, const mercer_batch *batch);
    mercer_status (*finish)(mrc_job *job);
    /* Lists the state that steps change. NULL: no state is saved, and a resumed run starts from the beginning. */
    void (*list)(mrc_job *job, mrc_state *state);
    /* Returns false if numbers that were read from a checkpoint are invalid. NULL: they are always valid. */
    bool (*check)(const mrc_job *job);
    const mercer_matrix *(*weights)(const mrc_job *job);
    void (*destroy)(mrc_job *job);
} mrc_solver_ops;

/* Parts of the iteration that a row fixes. 0 or NULL leaves a choice to the planner. */
typedef struct mrc_preset {
    mrc_update update;
    bool whole_sample; /* s = n */
    bool whole_batch;  /* m = n */
    int64_t period;    /* T */
    const char *projector;
    /* step rule. PRINTED also sets the projector's rule, and the paper's sizes and epochs (iteration_plan.c) */
    mrc_step_rule rule;
    double gamma;
    mercer_switch average; /* meaning of the option average = AUTO */
} mrc_preset;

typedef struct mrc_solver {
    const char *name, *description; /* name of at most 15 characters; one-line description for messages */
    const mrc_solver_ops *ops;
    unsigned traits; /* MRC_USES_..., MRC_NEEDS_... */
    /* auto chooses this solver, even if others are faster, if its estimated time is at most this number of seconds */
    double cheap;
    mrc_preset preset; /* for solvers that are presets of the iteration */
} mrc_solver;

/* Return the solver of that name, or NULL. */
const mrc_solver *mrc_solver_find(const char *name);
/* Return row i of the table; NULL after the last. */
const mrc_solver *mrc_solver_row(int i);
/* Return the solver that auto uses if others fail or do not fit. */
const mrc_solver *mrc_solver_fallback(void);
/* Return whether a name is "auto" or NULL, which leave the choice to the planner. */
bool mrc_name_is_auto(const char *name);

#endif
