/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers: one table of solvers, and their parts. A row is a name, a line for messages, and the functions that choose
 * its sizes, say what it costs and train with it. direct and cg have functions of their own; all others are presets of
 * the one iteration (mrc_preset).
 *
 * Folders: iteration/ (presets of EigenPro), normal/ (direct, cg), projectors/, operators/ (products that all use).
 *
 * A solver is given an mrc_job, which the trainer fills in, and calls back through its host: it knows neither the
 * trainer nor the planner. To add one: a file with its mrc_solver_ops, and a row in solver.c.
 */
#ifndef MRC_SOLVERS_SOLVER_H
#define MRC_SOLVERS_SOLVER_H

#include "solvers/iteration/iteration.h"
#include "solvers/normal/exact_solvers.h"
#include "solvers/planner.h"

/* ---- A training under way ------------------------------------------------------------------------------------ */

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

typedef struct mrc_job mrc_job;

/* What the trainer does for a solver. */
typedef struct mrc_job_host {
    /* The plan's sizes once more, now that the critical batch is known, and whether batches say which rows they
       hold. */
    mercer_status (*refine)(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points);
    /* Saves the state if it is time; `weights` are those that the model would get now. */
    mercer_status (*keep)(mrc_job *job, const mercer_matrix *weights, mrc_keep_moment moment);
    /* Goes on with the state that was saved. */
    mercer_status (*recall)(mrc_job *job);
    /* Shows progress between steps if it is time; *stop: if a rank's callback says so. */
    mercer_status (*poll)(mrc_job *job, bool *stop);
    /* Validation of the candidate weights, best weights, patience, progress. *stop: not 0, why it ends here. */
    mercer_status (*end_epoch)(mrc_job *job, const mercer_matrix *candidate, mercer_progress *progress,
                               mercer_stop *stop);
    /* Loss and accuracy of weights on the validation set, into the report; NaN without one. */
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
    bool resuming;       /* begins with the state that was saved */
    bool announces;      /* set-up reports to the progress callback */
    mrc_centers centers; /* which tell what set-up does: mrc_centers_tell */
    mrc_sample_stream stream;
    mrc_kernel_blocks kernel_blocks;
    void *state; /* the solver's own; NULL until create has made it */

    int64_t n, samples;       /* samples in a pass; seen so far */
    int64_t epoch, pass_rows; /* where in the samples training is */
    mrc_loss totals;          /* of the pass under way */
    mrc_watchdog watchdog;
    bool have_best;
    mercer_matrix best;    /* field: weights of the best validation result */
    double step, residual; /* the last step's eta / m; what the last projection left */
    mrc_exact_times times; /* of direct, cg or polishing */
    double *spectrum;      /* eigenvalues of the last set-up */
    int64_t spectrum_count;
    mercer_report report;
};

/* The kernel blocks that the plan asks for. */
mercer_status mrc_job_kernel_blocks(mrc_job *job);
/* The weights training would return now: the best validated ones, or the solver's. */
const mercer_matrix *mrc_job_candidate(const mrc_job *job);

/* ---- The table ----------------------------------------------------------------------------------------------- */

/* Which options a solver has a use for, and what it needs. */
enum {
    MRC_USES_EPOCHS = 1,
    MRC_USES_SIZES = 2,      /* batch, nystrom */
    MRC_USES_EIGENPAIRS = 4, /* q */
    MRC_USES_STEPS = 8,      /* step_factor, average, decay, polish */
    MRC_USES_PROJECTOR = 16, /* projector and its sizes, carry */
    MRC_USES_PERIOD = 32,
    MRC_NEEDS_SAMPLES = 64,    /* the centers are the samples */
    MRC_NEEDS_ROUGHNESS = 128, /* its plan depends on the spectrum of K(Z,Z) */
    MRC_FOR_AUTO = 256,        /* auto may take it; the first such row is preferred, the last has a use for the most */
    MRC_CONVERGES = 512        /* its weights are exact, or it goes on until they are as good */
};

/* Bytes of everything and the work of set-up; of a batch; and of a projection, or of what a step of cg does beside its
   batches. An epoch has so many of both. */
typedef struct mrc_solver_cost {
    mrc_cost set_up, batch, projection;
    double batches, projections; /* in an epoch */
    double epochs;               /* that it is expected to take, */
    double all_projections;      /* and projections in all of them */
} mrc_solver_cost;

typedef struct mrc_solver_ops {
    /* Fills in the sizes that the options leave open, and says why. */
    mercer_status (*choose)(mrc_planner *planner);
    /* The last choices, once memory has been assigned, and what the plan's text should say of it. */
    void (*settle)(mrc_planner *planner);
    /* For a plan with these sizes; *out is cleared before. Kernel blocks and caches are not in it. */
    void (*cost)(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out);
    /* Set-up, from `first` samples, or from the job's stream if that is NULL. destroy is called after a failure too. */
    mercer_status (*create)(mrc_job *job, const mercer_matrix *first);
    /* Trains to the end. */
    mercer_status (*run)(mrc_job *job);
    /* One step on a batch of the caller's, and the end of such steps. No function: it cannot. */
    mercer_status (*step)(mrc_job *job, const mercer_batch *batch);
    mercer_status (*finish)(mrc_job *job);
    /* Lists what steps change; NULL: nothing, it starts again. */
    void (*list)(mrc_job *job, mrc_state *state);
    /* False if numbers that were read from a checkpoint cannot be right. NULL: they always are. */
    bool (*check)(const mrc_job *job);
    const mercer_matrix *(*weights)(const mrc_job *job);
    void (*destroy)(mrc_job *job);
} mrc_solver_ops;

/* Which parts of the iteration a row fixes. 0 or NULL leaves a choice to the planner. */
typedef struct mrc_preset {
    mrc_update update;
    bool whole_sample; /* s = n */
    bool whole_batch;  /* m = n */
    int64_t period;    /* T */
    const char *projector;
    mrc_step_rule rule; /* PRINTED: also of the projector, and sizes and epochs are the paper's (iteration_plan.c) */
    double gamma;
    mercer_switch average; /* what AUTO means */
} mrc_preset;

typedef struct mrc_solver {
    const char *name, *says; /* at most 15 characters; one line for messages */
    const mrc_solver_ops *ops;
    unsigned traits;   /* MRC_USES_..., MRC_NEEDS_... */
    double cheap;      /* seconds of an estimate up to which auto takes it even if others are faster */
    mrc_preset preset; /* of the iteration */
} mrc_solver;

/* NULL if the name is none. */
const mrc_solver *mrc_solver_find(const char *name);
/* Row i of the table; NULL behind the last. */
const mrc_solver *mrc_solver_row(int i);
/* What auto takes where others fail or do not fit. */
const mrc_solver *mrc_solver_fallback(void);
/* "auto" (NULL, too) leaves the choice to the planner. */
bool mrc_name_is_auto(const char *name);

#endif
