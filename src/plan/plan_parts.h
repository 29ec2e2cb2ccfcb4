/* SPDX-License-Identifier: BSD-3-Clause */
/* What the planner's files share: plan.c chooses, plan_options.c knows which options a solver has a use for,
   plan_cost.c counts bytes and flops. */
#ifndef MRC_PLAN_PLAN_PARTS_H
#define MRC_PLAN_PLAN_PARTS_H

#include "plan/plan.h"

enum {
    EPOCHS_DEFAULT = 6,
    EPOCHS_CACHED = 10,
    CG_STEPS = 30,
    CG_TYPICAL_STEPS = 12,
    BLOCK_DEFAULT = 2500,
    ROUNDED_BATCH = 2048,    /* from here on the batch of a device is rounded down to its tiles */
    BLOCK_DEVICE = 4096,     /* fills a GPU; a multiple of the tiles of its products */
    GUESSED_BATCH_PER_Q = 5, /* m* is about 5 q on image data; only until the data have been seen */
    DEFLATED_DEGREE = 3,     /* products with K(Z,Z) in a polynomial: what it is as a rule */
    SHARED_SAMPLES = 4,      /* p / s from which on shards do without the exact factor: below it is small */
    FEWEST_SAMPLE = 500,
    LARGEST_SAMPLE = 3000, /* centers that a coarse space is made of */
    FEWEST_READ_ROWS = 256,
    READ_BLOCK_BYTES = 24 << 20,
    HALF_CACHE_BYTES = 256 << 20, /* what conjugate gradients keep of K(X,Z) is in half precision from here on */
    TILE_BYTES = 6 << 20          /* scratch of a worker in the fused products, a generous share */
};

/* Roughness from which on half precision and a polynomial serve conjugate gradients as well as float and a factor
   do. */
#define ROUGH 0.25
/* The exact preconditioner takes fewer steps, if not many. */
#define PREFER_EXACT 1.5

typedef struct mrc_planner {
    const mrc_plan_request *request;
    const mercer_train_options *options;
    mrc_plan *plan;
    mercer_plan *public_plan;
    double rate, rate_double; /* flops a second */
    double bandwidth;         /* bytes a second */
    int64_t real_size, point_size;
    int64_t kept_size; /* bytes that a kernel value takes in a batch's kept block */
    bool device;       /* matrices live elsewhere than in host memory */
} mrc_planner;

/* Bytes, room for a batch's block and caching of an iterative plan; MERCER_ERROR_MEMORY if it does not fit. */
mercer_status mrc_plan_iteration_memory(mrc_planner *self);
/* Flops and seconds of it. */
void mrc_plan_iteration_cost(mrc_planner *self);
/* All of that for direct or cg; false if it does not fit the budget (shown->bytes says what it needs). */
bool mrc_plan_exact_solver(mrc_planner *self, bool direct);

/* plan_options.c: MERCER_ERROR_ARGUMENT for values out of range. */
mercer_status mrc_plan_check_options(mercer_context *context, const mercer_train_options *options);
/* plan_options.c: the name of an option that was given and says how to train where this solver does nothing of the
   kind; NULL if there is none. And of a size that has nothing to be the size of. */
const char *mrc_plan_unsuited(const mrc_preset *preset, const mercer_train_options *options);
const char *mrc_plan_useless_size(const mrc_preset *preset, const mercer_train_options *options);

#endif
