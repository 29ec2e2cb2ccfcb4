/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner: the one place that decides. It turns options and sizes into a plan, within a memory budget, and
   says why. */
#ifndef MRC_PLAN_PLAN_H
#define MRC_PLAN_PLAN_H

#include "solvers/iteration/iteration.h"
#include "solvers/iteration/presets.h"
#include "solvers/normal/polynomial_preconditioner.h"

/* Rows of a batch where the data are only read: by exact solvers, by polishing, by passes that look for a maximum. */
enum { MRC_READ_ROWS = 2048 };

/* Of mercer_plan.cache_data: K(X, Z) is kept in half precision. */
enum { MRC_CACHE_HALF = 2 };

typedef struct mrc_plan_request {
    mercer_context *context;
    const mercer_train_options *options;
    int64_t n, p, d, c;
    mercer_dtype real, points; /* of weights, of samples */
    int shards;                /* of the centers */
    int threads;
    int64_t budget; /* bytes, when they have been decided before; 0: from the options or from what is free */
    /* Once the data have been seen: the critical batch. 0 before. */
    int64_t critical_batch;
    double roughness; /* of K(Z,Z) (roughness.h); 0 if not known */
    bool bounded;     /* kernel values lie between 0 and 1 */
    bool rows_known;  /* the source says which samples a batch holds, as far as known */
    double spread;    /* bandwidth over the median distance between centers; 0 if not known */
    bool sizes_only;  /* there is no kernel matrix yet that could be looked at */
    bool trial;       /* one of several plans of which one is wanted: says nothing to the log, and only that it fails */
} mrc_plan_request;

/* What the plan fixes beyond the public struct. */
typedef struct mrc_plan {
    mercer_plan public_plan;
    const mrc_preset *preset;
    const mrc_projector_ops *projector; /* NULL: none needed */
    mrc_projector_options projector_options;
    mrc_preconditioner_sizes preconditioner_sizes; /* of conjugate gradients; basis 0: an exact factor */
    int64_t keep_bytes;                            /* room for a batch's kernel block */
    int64_t budget;
} mrc_plan;

/* Of so many free bytes, what a plan may use that was not told: half of a machine's that does other things too. A
   device's memory is for this: all but a margin, because it comes in pages and other programs may need a little. */
int64_t mrc_plan_share(bool device, int64_t available);

/* Fails with MERCER_ERROR_ARGUMENT for options that make no sense, MERCER_ERROR_MEMORY, naming the
   largest p that fits, if nothing fits the budget. */
mercer_status mrc_make_plan(mrc_plan *out, const mrc_plan_request *request);
/* The plan with the critical batch, and with what is known of the source by now: sizes change, and its text gains a
   line that begins with "refined:" if they do; solver, projector and epochs stay. */
mercer_status mrc_refine_plan(mrc_plan *plan, const mrc_plan_request *request);
/* A plan for another solver in place of one that failed; the text gains a line that begins with "replaced:". */
mercer_status mrc_replace_plan(mrc_plan *plan, const mrc_plan_request *request, const char *solver, const char *why);

#endif
