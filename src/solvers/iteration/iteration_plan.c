/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sizes and cost of the iteration. Symbols: n samples, p centers, d features, c outputs, m batch, s Nystrom sample, q
 * eigenpairs, T period.
 *
 *   s       p/3 between 500 and 3,000 (10,000 for p >= 50,000), at most n, and s^2 doubles within half the budget
 *   q       s/20, at most p/10: a larger q biases the fixed point toward weighted least squares
 *   m       the critical batch beta/t of the data; at most n, and m p values must fit into a quarter of the budget
 *   T       p/m: there are then as many temporary centers as centers; with far more, the model would depend only on the
 *           labels near the centers. On a device, each of several epochs is divided into equal periods of about that
 *           length
 *   projector  the first suitable projector in the table of projectors
 *
 * Solver paper follows the printed rule ("Toward Large Kernel Models", appendix on hyperparameters): q = s/10, also for
 * the projector, and 50 epochs. The paper has s "as big as GPU memory allows"; here s is 5,000, as in the authors'
 * program. For the projector the paper refers to EigenPro 2: 2,000 centers, 10,000 from p = 100,000 on.
 *
 *   bytes   fields p (6 c + q), temporary centers T m (d + c), sample s (d + q), block m p, projector, cache n p
 *   flops   of an epoch 2 n p (d + 2 c) + n T m (d + c) + 2 or 4 n s (d + c), of a batch 2 p q c, and of the projector
 */
#include "solvers/iteration/iteration_solver.h"

#include "core/memory.h"
#include "solvers/normal/exact_job.h"

#include <math.h>
#include <stdio.h>

enum {
    EPOCHS_DEFAULT = 6, /* without a cache, where every epoch evaluates K(X,Z) */
    EPOCHS_CACHED = 10, /* fewest epochs with a cache, up to EPOCHS_MOST; see cached_epochs */
    EPOCHS_MOST = 100,
    CACHED_VALUES = 1000000000, /* 4 GB in float, about a second of memory bandwidth */
    EPOCHS_PRINTED = 50,        /* epochs in the paper's figures; the paper's table does not state epochs */
    SAMPLE_PRINTED = 5000,
    PAIRS_PRINTED = 10,     /* s / q */
    BLOCK_DEFAULT = 2500,   /* the Cholesky factor of a block takes 50 MB in double */
    ROUNDED_BATCH = 2048,   /* on a device, batches above this size are rounded down to whole tiles */
    BLOCK_DEVICE = 4096,    /* fills a GPU; a multiple of the tiles of its products */
    GUESSED_BATCH_PER_Q = 5 /* m* / q on image data; used only until the data have been read */
};

/* ---- Sizes --------------------------------------------------------------------------------------------------- */

/* Chooses s and q. */
static void choose_sample(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mrc_solver *row = self->plan->solver;
    const mrc_preset *preset = &row->preset;
    mercer_plan *plan = self->public_plan;
    bool pairs = (row->traits & MRC_USES_EIGENPAIRS) != 0;
    int64_t s = request->p >= 50000 ? 10000 : mrc_max(500, mrc_min(3000, request->p / 3));
    if (!pairs) s = 1000;
    if (preset->rule == MRC_STEP_PRINTED) s = SAMPLE_PRINTED;
    if (preset->whole_sample) s = request->n;
    if (self->options->nystrom > 0) s = self->options->nystrom;
    s = mrc_min(s, request->n);
    int64_t most = (int64_t)sqrt((double)self->plan->budget / 2 / 8 / 1.3);
    if (s > most && !preset->whole_sample) {
        mrc_plan_say(plan,
                     "s reduced from %lld to %lld, because K(X_s, X_s) in double must fit into half of the "
                     "memory\n",
                     (long long)s, (long long)most);
        s = mrc_max(most, 1);
    }
    int64_t q = mrc_min(s / 20, request->p / 10);
    /* without projections there is no bias that a large q increases */
    if (preset->update == MRC_UPDATE_COORDINATES) q = s / 20;
    if (preset->rule == MRC_STEP_PRINTED) q = s / PAIRS_PRINTED;
    if (self->options->eigenpairs > 0) q = self->options->eigenpairs;
    if (self->options->eigenpairs < 0 || !pairs) q = 0;
    plan->nystrom = s;
    plan->eigenpairs = mrc_max(0, mrc_min(q, s - 1));
    mrc_plan_say(plan, "s = %lld samples for the preconditioner, q = %lld eigenpairs\n", (long long)s,
                 (long long)plan->eigenpairs);
    if (plan->eigenpairs > request->p / 10 && preset->update == MRC_UPDATE_PROJECT)
        mrc_plan_say(plan, "warning: q is above p/10 = %lld, so the result is biased away from least squares\n",
                     (long long)request->p / 10);
}

/* Return a period that divides an epoch evenly. An epoch ends with a projection, which costs as much after a few
   batches as after a whole period. So with several epochs all periods are made equal. They are lengthened up to one and
   a half times if there is memory for the temporary centers. A single epoch is not divided evenly: its result is the
   mean of its later iterates, one per projection, and longer periods would give fewer iterates to average. */
static int64_t even_period(const mrc_planner *self, int64_t period)
{
    const mrc_problem *problem = &self->problem;
    int64_t m = self->public_plan->batch, batches = (problem->n - 1) / m + 1;
    int64_t projections = mrc_max(1, (2 * batches + period) / (2 * period));
    int64_t even = (batches + projections - 1) / projections;
    int64_t row = problem->d * problem->point_size + problem->c * problem->real_size;
    bool many = self->public_plan->epochs > 1, fits = even <= self->plan->budget / 8 / (m * row);
    return many && fits ? even : period;
}

/* Chooses m and T. */
static void choose_batch(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mrc_preset *preset = &self->plan->solver->preset;
    mercer_plan *plan = self->public_plan;
    bool measured = request->critical_batch > 0;
    int64_t m = measured ? request->critical_batch : mrc_max(1, GUESSED_BATCH_PER_Q * plan->eigenpairs);
    if (preset->whole_batch) m = request->n;
    if (self->options->batch > 0) m = self->options->batch;
    int64_t most = mrc_max(1, self->plan->budget / 4 / mrc_max(1, request->p * self->cached_size));
    if (m > most && !preset->whole_batch && self->options->batch == 0) m = most;
    if (self->device && m > ROUNDED_BATCH && self->options->batch == 0) m -= m % 256; /* whole tiles of rows */
    plan->batch = mrc_max(1, mrc_min(m, request->n));
    mrc_plan_say(plan, "m = %lld (%s)\n", (long long)plan->batch,
                 preset->whole_batch                       ? "all samples"
                 : self->options->batch > 0                ? "given"
                 : measured && m < request->critical_batch ? "memory limit"
                 : measured                                ? "critical batch"
                                                           : "estimate until data are read");
    int64_t period = preset->period ? preset->period : mrc_max(1, request->p / plan->batch);
    if (self->device && !preset->period) period = even_period(self, period);
    if (preset->update != MRC_UPDATE_PROJECT) period = 1;
    if (self->options->period > 0) period = self->options->period;
    plan->period = period;
    if (preset->update == MRC_UPDATE_PROJECT)
        mrc_plan_say(plan, "T = %lld batches between projections\n", (long long)period);
}

/* ---- Projector ----------------------------------------------------------------------------------------------- */

/* Choose the projector named by the options or the preset, else the first suitable projector of the table. */
static mercer_status choose_projector(mrc_planner *self)
{
    const char *name = self->options->projector, *why = "given";
    if (mrc_name_is_auto(name)) name = self->plan->solver->preset.projector;
    const mrc_projector_ops *projector = mrc_projector_find(name), *row;
    for (int i = 0; !projector && (row = mrc_projector_row(i)); i++) {
        why = row->suits ? row->suits(self) : NULL;
        if (why) projector = row;
    }
    if (!projector)
        return mrc_refuse(self->reason, "projector", MERCER_ERROR_UNSUPPORTED, "no projector supports these sizes");
    self->plan->projector = projector;
    snprintf(self->public_plan->projector, sizeof self->public_plan->projector, "%s", projector->name);
    mrc_plan_say(self->public_plan, "projector %s: %s\n", projector->name, why);
    return MERCER_OK;
}

/* Chooses the sizes of the projector that the options leave open. */
static void choose_projector_sizes(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mercer_train_options *options = self->options;
    const mrc_projector_ops *projector = self->plan->projector;
    mercer_plan *plan = self->public_plan;
    double budget = (double)self->plan->budget;
    bool printed = self->plan->solver->preset.rule == MRC_STEP_PRINTED;
    int64_t s = request->p >= 50000 ? 10000 : 3000, most = (int64_t)sqrt(budget / 4 / 8 / 1.3);
    if (printed) s = request->p >= 100000 ? 10000 : 2000;
    s = mrc_min(mrc_min(options->projector_nystrom > 0 ? options->projector_nystrom : s, request->p), mrc_max(1, most));
    int64_t q = printed ? s / PAIRS_PRINTED : request->p >= 50000 ? 1000 : 500;
    int64_t q_most = self->plan->budget / 8 / mrc_max(1, (self->device ? 1 : 2) * request->p * self->problem.real_size);
    q = options->projector_eigenpairs > 0 ? options->projector_eigenpairs : mrc_min(q, mrc_max(1, q_most));
    int64_t block = mrc_min(self->device ? BLOCK_DEVICE : BLOCK_DEFAULT, (int64_t)sqrt(budget / 8 / 8));
    plan->projector_nystrom = s;
    plan->projector_eigenpairs = mrc_min(q, s / 2);
    plan->projector_passes = options->projector_passes > 0 ? options->projector_passes : projector->passes;
    plan->projector_block = mrc_min(options->projector_block > 0 ? options->projector_block : block, request->p);
    plan->carry = options->carry == MERCER_AUTO ? projector->carry : options->carry == MERCER_ON;
    plan->cache_centers = projector->stores == MRC_STORES_MATRIX || projector->stores == MRC_STORES_FACTOR;
    bool inverses = (double)request->p * (double)(plan->projector_block * self->problem.real_size) <= budget / 4;
    self->plan->projector_options = mrc_projector_options_of(plan, projector);
    self->plan->projector_options.seed = options->seed + 1;
    if (printed) self->plan->projector_options.rule = MRC_STEP_PRINTED, self->plan->projector_options.gamma = 0.5;
    if (options->projector_tolerance > 0) self->plan->projector_options.tolerance = options->projector_tolerance;
    if (projector->stores == MRC_STORES_INVERSES) self->plan->projector_options.store = self->device && inverses;
    /* With rough pairs (eigensystem.c) results on a device differ from results on the CPU anyway. Otherwise `sampled`
       stays off, so that device and CPU use the same method. */
    self->plan->projector_options.sampled = self->device && mrc_eigensystem_largest(s, plan->projector_eigenpairs) < s;
    if (projector->stores != MRC_STORES_FACTOR)
        mrc_plan_say(plan, "projector: s = %lld, q = %lld, at most %lld passes%s\n", (long long)s,
                     (long long)plan->projector_eigenpairs, (long long)plan->projector_passes,
                     plan->carry ? ", with carried residual" : "");
}

/* ---- The plan ------------------------------------------------------------------------------------------------ */

/* Return whether evaluating K(X,Z) is as fast as reading it. */
static bool evaluates_as_fast(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    bool fast = self->device && request->gains_by_half && self->plan->half && request->real == MERCER_F32;
    if (!fast || self->options->cache == MERCER_ON) return false;
    double flops = 2 * mrc_problem_features(&self->problem);
    double bytes = mrc_problem_reads(&self->problem, (double)self->problem.real_size, 2);
    return flops / self->rate <= bytes / self->bandwidth;
}

/* Return the caching that the iteration requests. Devices cache whole tiles of a batch's block, possibly in half
   precision; in addition to a cache of all samples, the block needs space in the type of the weights. The cache is in
   half precision only if float does not fit, and never with polishing, which must be exact. */
static mrc_caching caching(const mrc_planner *self)
{
    int64_t m = self->public_plan->batch, p = self->problem.p;
    int64_t block =
        mrc_round_up(m, self->device ? 16 : 1) * mrc_round_up(p, self->device ? 256 : 1) * self->cached_size;
    return (mrc_caching){.block = block,
                         .block_with_cache = mrc_max(block, m * p * self->problem.real_size),
                         .repeated = self->public_plan->epochs > 1 || self->options->cache == MERCER_ON,
                         .recompute = evaluates_as_fast(self),
                         .half = self->options->polish == 0,
                         .half_from = INT64_MAX};
}

mercer_status mrc_iteration_choose(mrc_planner *self)
{
    mercer_plan *plan = self->public_plan;
    const mercer_train_options *options = self->options;
    const mrc_preset *preset = &self->plan->solver->preset;
    plan->epochs = options->epochs > 0                ? options->epochs
                   : preset->rule == MRC_STEP_PRINTED ? EPOCHS_PRINTED
                                                      : EPOCHS_DEFAULT;
    choose_sample(self);
    choose_batch(self);
    if (preset->update == MRC_UPDATE_PROJECT) {
        MRC_TRY(choose_projector(self));
        choose_projector_sizes(self);
    }
    plan->step_factor = options->step_factor > 0 ? options->step_factor : preset->gamma;
    /* If the labels cannot be fitted, random batches leave noise in the iterates; averaging removes it. */
    mercer_switch sampled = plan->batch < self->request->n ? MERCER_ON : MERCER_OFF;
    mercer_switch average = preset->average == MERCER_AUTO ? sampled : preset->average;
    if (options->average != MERCER_AUTO) average = options->average;
    plan->average = average == MERCER_ON;
    plan->decay = (options->decay == MERCER_AUTO ? preset->average : options->decay) == MERCER_ON;
    self->plan->polish = options->polish;
    self->caching = caching(self);
    return MERCER_OK;
}

/* Return the number of epochs with a cache. An epoch over a small cache takes milliseconds, and 10 epochs are too few
   for a small ridge: with 500 rows and a ridge of 1e-6 per row, the test error is 35 % above the error of the exact
   solution after 10 epochs, and 6 % above it after 100. So all epochs together read CACHED_VALUES values of K(X,Z),
   which takes about a second. */
static int64_t cached_epochs(const mrc_planner *self)
{
    int64_t values = mrc_max(1, self->problem.n * self->problem.p);
    return mrc_max(EPOCHS_CACHED, mrc_min(EPOCHS_MOST, CACHED_VALUES / values));
}

void mrc_iteration_complete_plan(mrc_planner *self)
{
    mercer_plan *plan = self->public_plan;
    bool printed = self->plan->solver->preset.rule == MRC_STEP_PRINTED;
    bool cheap = plan->cache_data || self->caching.recompute;
    if (cheap && self->options->epochs == 0 && !printed) plan->epochs = cached_epochs(self);
    mrc_plan_say(plan, "%lld epochs, gamma %.2f%s%s%s%s\n", (long long)plan->epochs, plan->step_factor,
                 printed ? ", beta = max K(x,x) and steps as printed" : "", plan->average ? ", averaging" : "",
                 plan->decay ? ", step decay" : "",
                 plan->cache_data == MRC_CACHE_HALF ? ", K(X,Z) cached in half precision, because float does not fit"
                 : plan->cache_data                 ? ", K(X,Z) cached"
                 : self->caching.recompute          ? ", K(X,Z) recomputed, which is as fast as reading it"
                                                    : "");
}

/* ---- Cost ---------------------------------------------------------------------------------------------------- */

/* Add the projector's cost. The projector and polishing never exist at the same time. */
static void add_projector(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    mrc_cost once = {0};
    if (plan->projector)
        mrc_projector_cost(plan->projector, problem, &plan->projector_options, &once, &out->projection);
    mrc_cost_repeat(&out->set_up, &once, 1);
    out->set_up.peak = mrc_bytes_add(once.held, once.peak);
    if (plan->polish > 0)
        out->set_up.peak = mrc_bytes_larger(out->set_up.peak, mrc_polish_bytes(problem, plan->public_plan.lambda));
}

void mrc_iteration_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    const mercer_plan *sizes = &plan->public_plan;
    double n = (double)problem->n, p = (double)problem->p, d = (double)problem->d, c = (double)problem->c;
    double s = (double)sizes->nystrom, q = (double)sizes->eigenpairs, T = (double)sizes->period;
    double e = (double)problem->real_size, points = d * (double)problem->point_size, epochs = (double)sizes->epochs;
    mrc_iteration_options options = {.update = plan->solver->preset.update,
                                     .batch = sizes->batch,
                                     .period = sizes->period,
                                     .carry = sizes->carry,
                                     .ridge = sizes->lambda};
    out->epochs = epochs;
    out->batches = ceil(n / (double)sizes->batch);
    out->projections = plan->projector ? ceil(out->batches / T) : 0;
    /* This estimate ignores the projections at the ends of epochs. With few samples they would rule out ep4, which
       is fast there. */
    out->all_projections = plan->projector ? ceil(out->batches * epochs / T) : 0;
    double m = n / out->batches, temporary = T > 1 ? T * (double)sizes->batch : 0;
    mrc_cost *once = &out->set_up, *batch = &out->batch;
    once->held = mrc_iteration_bytes(problem, &options, sizes->nystrom, sizes->eigenpairs);
    once->held.replicated += s * (points + q * e);
    once->held.shared += 2 * p * c * e; /* weights for rollback, and the best weights */
    /* The sample's kernel matrix and the fresh rows exist only during set-up. */
    once->set_up.replicated = (double)mrc_eigensystem_scratch_bytes(sizes->nystrom, sizes->eigenpairs) + 2 * s * points;
    double pair = mrc_problem_features(problem);
    once->alike = 2 * s * s * pair + 40 * s * s * q;
    once->flops = once->alike + 2 * p * s * (pair + q);
    once->state = p * c * e * (double)(4 + sizes->carry) + temporary * (points + c * e) + s * c * e;
    batch->alike = 2 * m * s * (pair + c) * (T > 1 ? 2 : 1);
    batch->flops = batch->alike + 2 * m * p * ((sizes->cache_data ? 0 : pair) + 2 * c) + m * temporary * (pair + c) +
                   2 * p * q * c;
    if (sizes->cache_data && problem->gathers)
        batch->read = m * p * mrc_problem_reads(problem, sizes->cache_data == MRC_CACHE_HALF ? 2 : e, 2);
    mrc_cost_sums(batch, problem, m * c * e, 1);
    if (sizes->lambda > 0) mrc_cost_sums(batch, problem, q * c * e, 1);
    mrc_cost_flags(batch, problem, 2);
    add_projector(problem, plan, out);
}
