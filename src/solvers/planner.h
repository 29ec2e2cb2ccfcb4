/* SPDX-License-Identifier: BSD-3-Clause */
/* What a solver sees of the planner when it is asked which sizes it would take: the question, the machine, and the plan
   that it fills in. The planner itself is src/plan. */
#ifndef MRC_SOLVERS_PLANNER_H
#define MRC_SOLVERS_PLANNER_H

#include "solvers/cost.h"
#include "solvers/normal/polynomial_preconditioner.h"
#include "solvers/projectors/projector.h"

/* Rows of a batch where the data are only read: by exact solvers, by polishing, by passes that look for a maximum. */
enum { MRC_READ_ROWS = 2048 };

/* Heaviest over mean sample weight, beyond which explicit steps, which the heaviest bounds, are too short. */
#define MRC_UNEVEN_WEIGHTS 100

struct mrc_solver;

typedef struct mrc_plan_request {
    mrc_machine machine;
    const mercer_train_options *options;
    int64_t n, p, d, c;
    mercer_dtype real, points; /* of weights, of samples */
    int shards;                /* of the centers */
    int threads;
    int64_t budget; /* bytes, when they have been decided before; 0: from the options or from what is free */
    /* Once the data have been seen: the critical batch. 0 before. */
    int64_t critical_batch;
    double roughness;  /* of K(Z,Z) (roughness.c); 0 if not known */
    bool bounded;      /* kernel values lie between 0 and 1 */
    double norm;       /* of the kernel's distance, mrc_kernel_norm */
    bool rows_known;   /* the source says which samples a batch holds, as far as known */
    double spread;     /* bandwidth over the median distance between centers; 0 if not known */
    double unevenness; /* heaviest sample weight over their mean; 0 if not known */
    bool on_samples;   /* the centers are the samples, each once, none of weight 0 */
    bool sizes_only;   /* there is no kernel matrix yet that could be looked at */
    /* Of half precision, where the context leaves it to the plan (plan_precision.c): */
    bool gains_by_half;   /* the backend does, with this kernel function; as far as known */
    bool streaming;       /* batches come one by one from a caller: nothing can be held back, or begun again */
    double coordinates;   /* how far the centers lie from the origin, mean square of coordinates in bandwidths; */
    double farthest;      /* the largest one; both 0 if not known */
    const char *accurate; /* why not to round, if that has been found out; or NULL */
} mrc_plan_request;

enum { MRC_PLAN_WARNINGS = 8 };

/* A warning to log if the plan is used. */
typedef struct mrc_plan_warning {
    const char *field; /* static; option concerned */
    char text[256];
} mrc_plan_warning;

/* What the plan fixes beyond the public struct. */
typedef struct mrc_plan {
    mercer_plan public_plan;
    const struct mrc_solver *solver;
    const mrc_projector_ops *projector; /* NULL: none needed */
    mrc_projector_options projector_options;
    mrc_preconditioner_sizes preconditioner_sizes; /* of conjugate gradients; basis 0: an exact factor */
    bool on_samples;                               /* the request's */
    int64_t polish;                                /* steps of conjugate gradients at the end */
    int64_t keep_bytes;                            /* buffer for a batch's kernel block */
    bool half_precision;                           /* chosen for products by the plan */
    int64_t budget;
    mrc_plan_warning warnings[MRC_PLAN_WARNINGS];
    int warning_count;
} mrc_plan;

/* What a solver wants to cache of K(X,Z); the planner grants what fits. */
typedef struct mrc_caching {
    int64_t block;     /* bytes of a batch's block between its two products, as they keep it; 0: there is only one */
    int64_t beside;    /* the same beside a cache of all samples */
    bool again;        /* all samples are read more than once: a cache of them pays */
    bool anew;         /* but evaluating them again takes no longer than reading them: they are not kept */
    bool half;         /* half precision would do, */
    int64_t half_from; /* and is taken from so many bytes on even where there is room for more */
} mrc_caching;

typedef struct mrc_planner {
    const mrc_plan_request *request;
    const mercer_train_options *options;
    mrc_reason *reason; /* of a failure */
    bool half;          /* products are rounded to half precision */
    mrc_plan *plan;
    mercer_plan *public_plan;
    mrc_problem problem;
    double rate, rate_double; /* flops a second */
    double bandwidth;         /* bytes a second */
    int64_t kept_size;        /* bytes that a kernel value takes in a batch's kept block */
    bool device;              /* matrices live elsewhere than in host memory */
    mrc_caching caching;
} mrc_planner;

/* One more line, or a part of one, of the plan's text. */
void mrc_plan_say(mercer_plan *plan, const char *format, ...) MRC_PRINTF(2, 3);

/* Seconds that work takes at the machine's nominal rates. */
double mrc_plan_seconds(const mrc_planner *planner, const mrc_cost *work);

#endif
