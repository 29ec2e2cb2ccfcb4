/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface between the planner and a solver that chooses its sizes: the request, the machine, and the plan that the
   solver fills in. The planner itself is in src/plan. */
#ifndef MRC_SOLVERS_PLANNER_H
#define MRC_SOLVERS_PLANNER_H

#include "solvers/cost.h"
#include "solvers/normal/polynomial_preconditioner.h"
#include "solvers/projectors/projector.h"

/* Rows per batch for passes in which the number of rows per batch does not affect the result: exact solvers, polishing,
   searches for a maximum. */
enum { MRC_READ_ROWS = 2048 };

/* Ratio of the largest to the mean sample weight above which explicit steps, bounded by the largest weight, are too
   short. */
#define MRC_UNEVEN_WEIGHTS 100

struct mrc_solver;

typedef struct mrc_plan_request {
    mrc_machine machine;
    const mercer_train_options *options;
    const struct mrc_solver *solver; /* solver to plan for; NULL: solver named in the options, or automatic choice */
    int64_t n, p, d, c;
    mercer_dtype real, points; /* types of the weights and of the samples */
    int shards;                /* number of shards of the centers */
    int threads;
    int64_t budget; /* memory budget in bytes if already decided; 0: derived from the options or from free memory */
    /* Critical batch, measured on the data; 0: not measured yet. */
    int64_t critical_batch;
    double roughness; /* roughness of K(Z,Z) (roughness.c); 0 if unknown */
    bool bounded;     /* kernel values are between 0 and 1 */
    double norm;      /* p of the kernel's distance, from mrc_kernel_norm */
    /* the source reports the indices of a batch's samples; assumed true before the source is opened */
    bool rows_known;
    double spread;     /* bandwidth divided by the median distance between centers; 0 if unknown */
    double unevenness; /* largest sample weight divided by the mean weight; 0 if unknown */
    bool on_samples;   /* the centers are the samples, each exactly once, and no sample has weight 0 */
    bool sizes_only;   /* only sizes are known: there is no kernel matrix yet to measure */
    /* For the choice of half precision (plan_precision.c): */
    bool gains_by_half; /* the backend has faster products in half precision for this kernel function */
    bool streaming;     /* batches arrive one by one from a caller: no rows can be held out, and no pass repeated */
    double
        coordinates; /* mean square of the centers' coordinates relative to the origin, in bandwidths; 0 if unknown */
    double farthest; /* largest absolute coordinate, in bandwidths; 0 if unknown */
    const char *accurate; /* reason not to use half precision, if one was found; else NULL */
} mrc_plan_request;

enum { MRC_PLAN_WARNINGS = 8 };

/* A warning to log if the plan is used. */
typedef struct mrc_plan_warning {
    const char *field; /* option that the warning is about; static string */
    char text[256];
} mrc_plan_warning;

/* A training run to try instead of one that broke down. */
typedef struct mrc_attempt {
    const struct mrc_solver *solver; /* NULL: solver of the request */
    bool accurate;                   /* train without half precision */
} mrc_attempt;
enum { MRC_ATTEMPTS = 2 };

/* The public plan, and choices that are not part of the public plan. */
typedef struct mrc_plan {
    mercer_plan public_plan;
    const struct mrc_solver *solver;
    const mrc_projector_ops *projector; /* NULL if the solver needs no projector */
    mrc_projector_options projector_options;
    mrc_preconditioner_sizes preconditioner_sizes; /* for conjugate gradients; basis 0: exact factor */
    bool on_samples;                               /* copied from the request */
    int64_t polish;                                /* number of conjugate gradient steps at the end */
    int64_t batch_block_bytes;                     /* bytes of the buffer for a batch's kernel block */
    bool half;                                     /* products may be rounded to half precision */
    /* half was chosen by the planner, not by the user, so training checks the result */
    bool half_chosen;
    int64_t budget;
    mrc_plan_warning warnings[MRC_PLAN_WARNINGS];
    int warning_count;
    /* training runs to try, in order and each with a new plan, if training with this plan breaks down */
    mrc_attempt attempts[MRC_ATTEMPTS];
    int attempt_count;
} mrc_plan;

/* Caching of K(X,Z) that a solver requests; the planner grants what fits. */
typedef struct mrc_caching {
    int64_t block; /* bytes of a batch's block of K as cached between its two products; 0: only one product is needed */
    int64_t block_with_cache; /* bytes of the batch's block if all samples are cached as well */
    bool repeated;            /* all samples are read more than once, so that caching them pays */
    bool recompute;           /* do not cache the samples, because evaluating K is as fast as reading it */
    bool half;                /* the cache may be in half precision, which is accurate enough for this solver */
    int64_t half_from;        /* cache size in bytes above which half precision is used even if more would fit */
} mrc_caching;

typedef struct mrc_planner {
    const mrc_plan_request *request;
    const mercer_train_options *options;
    mrc_reason *reason; /* receives the reason of a failure */
    mrc_plan *plan;
    mercer_plan *public_plan;
    mrc_problem problem;
    double rate, rate_double; /* flops per second */
    double bandwidth;         /* bytes per second */
    int64_t cached_size;      /* bytes per kernel value in a batch's cached block */
    bool device;              /* matrices are not in host memory */
    mrc_caching caching;
} mrc_planner;

/* Append a line, or a part of a line, to the plan's text. */
void mrc_plan_say(mercer_plan *plan, const char *format, ...) MRC_PRINTF(2, 3);

/* Return the seconds that work takes at the machine's nominal rates, without messages between ranks. */
double mrc_plan_seconds(const mrc_planner *planner, const mrc_cost *work);

#endif
