/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The planner.
 *
 *   solver   auto: direct, cg or ep4, whichever is estimated to be fastest among those that fit
 *   sizes    the solver's own choice (iteration_plan.c, cg_solver.c, direct.c)
 *   memory   permanent and temporary allocations of the parts, the backend's scratch space, then a block of kernel
 *            values per batch
 *   cache    K(X, Z) if it fits the remaining memory and samples are used more than once; in half precision if the
 *            cache fits only then
 *
 * Estimates are flops of the dominant products, and seconds at a nominal rate of the instruction set. They only have to
 * rank solvers correctly; predictions for users are corrected by a measured rate (fit/hyperparameters.c).
 */
#include "plan/plan.h"

#include "comm/comm.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    /* memory of a device that plans leave free: for the libraries' workspaces and for other programs */
    DEVICE_MARGIN = 512 << 20,
    TILE_BYTES = 6 << 20, /* generous estimate of a worker's scratch space in the fused products */
    MOST_CANDIDATES = 4   /* largest number of solvers that auto compares */
};

/* Estimates count flops and bytes only, so a difference of less than 30 % says nothing about the real times. */
#define NEARLY_AS_FAST 1.3
#define WIDE_BANDWIDTH 100 /* in median distances */

/* ---- Machine and budget -------------------------------------------------------------------------------------- */

/*
 * Returns the cost of a feature in a distance, relative to its cost in a matrix product: 1 in norm 2, where distances
 * come from products. Otherwise |x - z| takes three operations (subtract, mask, add) instead of one fused operation;
 * for bytes, one instruction handles 8 differences. A general power takes a logarithm and an exponential in double.
 */
static double effort_of(const mrc_plan_request *request, const mrc_capabilities *machine)
{
    enum { SINGLE = 3, POWER = 60 };
    static const double bytes = 0.6;
    if (request->norm <= 0 || request->norm >= 2) return 1;
    double single = machine->rate_differences > 0 ? machine->rate / machine->rate_differences
                    : request->points == MERCER_U8 && request->real == MERCER_F32 && request->norm == 1
                        ? bytes
                        : (double)SINGLE;
    return request->norm == 1 ? single : POWER * single;
}

/* Assumed float flops per second and thread: scalar, AVX2, AVX-512, AVX-512 with VNNI, AMX (whose tiles only help
   bytes). Plans use these instead of measured rates, because two runs on one machine must choose the same solver. */
static const double per_thread[] = {0.5e9, 35e9, 75e9, 75e9, 75e9};
_Static_assert(sizeof per_thread / sizeof *per_thread == MRC_ISA_COUNT, "a rate for every instruction set");

double mrc_plan_nominal_rate(const mrc_machine *machine)
{
    mrc_capabilities can = machine->backend->ops->capabilities(machine->backend, machine->arithmetic == MRC_FAST);
    return can.rate_double > 0 ? can.rate_double : per_thread[machine->isa] * machine->threads / 2;
}

/* Sets the rates of the backend, for double arithmetic if the weights are double. Sets the description of the problem
   that the cost functions read. If the backend reports no memory bandwidth, host memory is assumed to deliver 6 GB/s to
   each of up to four threads. */
static void rate_machine(mrc_planner *self)
{
    int threads = self->request->threads;
    mrc_backend *backend = self->request->machine.backend;
    mrc_capabilities machine = backend->ops->capabilities(backend, self->plan->half);
    self->device = machine.memory != MRC_HOST;
    self->rate = machine.rate > 0 ? machine.rate : per_thread[self->request->machine.isa] * threads;
    self->rate_double = machine.rate_double > 0 ? machine.rate_double : self->rate / 2;
    self->bandwidth = machine.bandwidth > 0 ? machine.bandwidth : 6e9 * (threads < 4 ? threads : 4);
    const mrc_plan_request *request = self->request;
    self->problem = (mrc_problem){.n = request->n,
                                  .p = request->p,
                                  .d = request->d,
                                  .c = request->c,
                                  .real_size = mrc_dtype_size(request->real),
                                  .point_size = mrc_dtype_size(request->points),
                                  .effort = effort_of(request, &machine),
                                  .gathers = self->device,
                                  .float_factors = machine.float_factors,
                                  .shards = request->shards};
    bool own = machine.cached_size > 0 && request->real == MERCER_F32;
    self->cached_size = own ? machine.cached_size : self->problem.real_size;
    if (request->real == MERCER_F64) self->rate = self->rate_double;
}

int64_t mrc_plan_share(bool device, int64_t available)
{
    if (!device) return available / 2;
    return mrc_max(available / 2, available - available / 16 - DEVICE_MARGIN);
}

/* Sets the memory budget: the budget of the request (set for several ranks and for resumed runs), else the given
   option, else the default share of free memory. */
static void set_budget(mrc_planner *self)
{
    int64_t asked = self->options->memory;
    self->plan->budget = self->request->budget > 0 ? self->request->budget
                         : asked > 0               ? asked
                                                   : mrc_plan_share(self->device, self->request->machine.free_memory);
    char budget[MRC_BYTES_TEXT];
    mrc_plan_say(self->public_plan, "memory budget %s (%s)\n", mrc_bytes_text(budget, self->plan->budget),
                 asked > 0      ? "given"
                 : self->device ? "free memory of the device, less a margin"
                                : "half of the free memory");
}

/* ---- Memory and time ----------------------------------------------------------------------------------------- */

/*
 * Returns the device bytes in addition to those of the solver: the scratch memory of operations, the copy of the
 * centers, and two copies of the weights, for checks and checkpoints.
 */
static int64_t device_bytes(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mercer_plan *plan = self->public_plan;
    mrc_backend *backend = request->machine.backend;
    int64_t widest = mrc_max(2 * request->c, mrc_max(plan->eigenpairs, plan->projector_eigenpairs));
    int64_t s = mrc_max(plan->nystrom, plan->projector_nystrom);
    mrc_extent work = {.rows = mrc_max(plan->batch, mrc_max(s, plan->projector_block)),
                       .centers = mrc_max(request->p, plan->period * plan->batch),
                       .features = request->d,
                       .outputs = request->c,
                       .wide = widest,
                       .eigen = mrc_max(mrc_eigensystem_largest(plan->nystrom, plan->eigenpairs),
                                        mrc_eigensystem_largest(plan->projector_nystrom, plan->projector_eigenpairs)),
                       .points = request->points,
                       .real = request->real,
                       .half = self->plan->half};
    int64_t own = backend->ops->work_bytes ? backend->ops->work_bytes(backend, &work) : 0;
    return own + request->p * (request->d * self->problem.point_size + 2 * request->c * self->problem.real_size);
}

/* Returns the bytes of scratch memory and of one batch. The tile of a worker holds packed rows and panels of the fused
   products (backends/cpu/tile.h), rounded up. */
static int64_t workspace_bytes(const mrc_planner *self)
{
    const mrc_problem *problem = &self->problem;
    int64_t wide = mrc_max(problem->real_size, 4), m = self->public_plan->batch;
    int64_t tile = TILE_BYTES + 512 * (problem->d * wide + 16 * problem->c * 2) + 300 * problem->d * wide;
    /* In addition to the scratch space: a batch's targets in double, the batch as the source returns it with two more
       copies of its targets, and each shard's part of the predictions. */
    return (self->device ? device_bytes(self) : self->request->threads * tile) +
           m * problem->c * (int64_t)sizeof(double) +
           m * (problem->d * problem->point_size + 3 * problem->c * problem->real_size) +
           (problem->shards > 1 ? problem->shards * m * problem->c * problem->real_size : 0);
}

/* Chooses whether K(X, Z) is cached, within `left` bytes, and returns the bytes of the caches. A cache may take nine
   tenths of what remains after a batch's block. Without a cache, a batch's block is saved between the two products that
   use it, up to half of the memory. */
static int64_t choose_caches(mrc_planner *self, int64_t left)
{
    const mrc_plan_request *request = self->request;
    mrc_caching *wanted = &self->caching;
    mrc_cost whole, halved;
    mrc_kernel_blocks_cost(&self->problem, 0, 1, &whole);
    mrc_kernel_blocks_cost(&self->problem, 0, MRC_CACHE_HALF, &halved);
    int64_t cache = mrc_bytes_whole(mrc_bytes_sum(whole.held)), half = mrc_bytes_whole(mrc_bytes_sum(halved.held));
    int64_t available = (left - wanted->block_with_cache) * 9 / 10;
    bool may = self->options->cache != MERCER_OFF && request->rows_known && wanted->repeated &&
               wanted->block_with_cache <= left / 2;
    bool fits = may && cache <= available;
    bool halves = may && half <= available && request->real == MERCER_F32 && request->bounded && wanted->half &&
                  (!fits || cache > wanted->half_from);
    wanted->recompute &= fits || halves;
    if (wanted->recompute) fits = halves = false;
    self->public_plan->cache_data = halves ? MRC_CACHE_HALF : fits;
    self->plan->batch_block_bytes = halves || fits ? wanted->block_with_cache : mrc_min(wanted->block, left / 2);
    return self->plan->batch_block_bytes + (halves ? half : fits ? cache : 0);
}

/* Checks that set-up and training fit the budget, then spends the rest on caches. Fails with MERCER_ERROR_MEMORY. */
static mercer_status share_memory(mrc_planner *self)
{
    const mrc_solver *row = self->plan->solver;
    mrc_solver_cost cost = {0};
    row->ops->cost(&self->problem, self->plan, &cost);
    double base = mrc_bytes_sum(cost.set_up.held) + (double)workspace_bytes(self);
    int64_t running = mrc_bytes_whole(base + mrc_bytes_sum(cost.set_up.peak));
    int64_t set_up = mrc_bytes_whole(base + mrc_bytes_sum(cost.set_up.set_up)), budget = self->plan->budget;
    char has[MRC_BYTES_TEXT], needs[MRC_BYTES_TEXT], hint[64] = "reduce p or nystrom, or increase memory";
    if (running > budget || set_up > budget) {
        if (!(row->traits & MRC_USES_SIZES))
            snprintf(hint, sizeof hint, "use %s, reduce p or increase memory", mrc_solver_fallback()->name);
        return mrc_refuse(self->reason, "memory", MERCER_ERROR_MEMORY,
                          "the memory budget of %s is too small: %s with p = %lld needs %s; %s",
                          mrc_bytes_text(has, budget), row->name, (long long)self->problem.p,
                          mrc_bytes_text(needs, mrc_max(running, set_up)), hint);
    }
    self->public_plan->bytes = mrc_max(set_up, running + choose_caches(self, budget - running));
    return MERCER_OK;
}

/* Adds up the costs of set-up, caches, all batches and all projections. */
static void estimate_time(mrc_planner *self)
{
    mrc_solver_cost cost = {0};
    self->plan->solver->ops->cost(&self->problem, self->plan, &cost);
    mrc_cost all = {0}, caches;
    mrc_kernel_blocks_cost(&self->problem, self->plan->batch_block_bytes, self->public_plan->cache_data, &caches);
    mrc_cost_repeat(&all, &cost.set_up, 1);
    mrc_cost_repeat(&all, &caches, 1);
    mrc_cost_repeat(&all, &cost.batch, cost.epochs * cost.batches);
    mrc_cost_repeat(&all, &cost.projection, cost.all_projections);
    self->public_plan->flops = mrc_cost_flops(&all);
    self->public_plan->seconds = mrc_plan_seconds(self, &all);
}

/* ---- The plan ------------------------------------------------------------------------------------------------ */

/* Plans one solver: its arithmetic, because rates and cache sizes depend on it, then its sizes, its memory, its time.
   Fails with MERCER_ERROR_MEMORY, with the reason, if the plan does not fit. */
static mercer_status plan_solver(mrc_planner *self, const mrc_solver *row)
{
    self->plan->half_chosen = mrc_plan_rounds(self->request, row);
    self->plan->half = self->plan->half_chosen || self->request->machine.arithmetic == MRC_FAST;
    self->plan->solver = row;
    rate_machine(self);
    self->caching = (mrc_caching){0};
    snprintf(self->public_plan->solver, sizeof self->public_plan->solver, "%s", row->name);
    snprintf(self->public_plan->projector, sizeof self->public_plan->projector, "none");
    MRC_TRY(row->ops->choose(self));
    MRC_TRY(share_memory(self));
    row->ops->complete_plan(self);
    estimate_time(self);
    return MERCER_OK;
}

/* A solver that auto may choose, and its plan. */
typedef struct candidate {
    const mrc_solver *row;
    const char *unsuited; /* a given option that the solver refuses, so that there is no plan; or NULL */
    bool fits;
    bool short_steps; /* takes gradient steps, whose size one heavy sample would limit */
    mrc_plan plan;
} candidate;

/* Plans a candidate, unless its solver refuses a given option. A plan that does not fit only removes the candidate. */
static mercer_status ask(mrc_planner *self, candidate *one)
{
    one->unsuited = mrc_plan_unsuited(one->row, self->options);
    if (one->unsuited) return MERCER_OK;
    mercer_status status = plan_solver(self, one->row);
    one->fits = status == MERCER_OK;
    one->short_steps = one->row->traits & MRC_USES_STEPS && self->request->unevenness > MRC_UNEVEN_WEIGHTS;
    one->plan = *self->plan;
    return status == MERCER_ERROR_MEMORY ? MERCER_OK : status;
}

/* Adds to the plan's text the estimated time of a candidate, or why it was not chosen. */
static void say_candidate(mercer_plan *plan, const candidate *one, const char *before)
{
    if (one->unsuited)
        mrc_plan_say(plan, "%s%s does not support %s", before, one->row->name, one->unsuited);
    else if (!one->fits)
        mrc_plan_say(plan, "%s%s does not fit into memory", before, one->row->name);
    else if (one->short_steps)
        mrc_plan_say(plan, "%s%s would take short steps, because one sample has a much larger weight than the others",
                     before, one->row->name);
    else
        mrc_plan_say(plan, "%s%s %.1f s", before, one->row->name, one->plan.public_plan.seconds);
}

/* Returns whether a candidate can be chosen. One with short_steps is chosen only if no other fits. */
static bool in_question(const candidate *one, bool others)
{
    return one->fits && !(others && one->short_steps);
}

/*
 * Chooses the solver with the smallest estimated time. The table lists solvers that converge first. Estimates are
 * rough, so the first solver is chosen that is cheap in absolute terms or takes at most NEARLY_AS_FAST times as long as
 * the fastest. The last candidate accepts all options except converge, so some solver can always be planned.
 */
static mercer_status choose_solver(mrc_planner *self)
{
    mrc_plan start = *self->plan;
    candidate all[MOST_CANDIDATES];
    int count = 0;
    double fastest = INFINITY;
    bool others = false; /* a solver that does not take short steps fits */
    const mrc_solver *row;
    for (int i = 0; (row = mrc_solver_row(i)) && count < MOST_CANDIDATES; i++) {
        if (!(row->traits & MRC_FOR_AUTO)) continue;
        if (row->traits & MRC_NEEDS_SAMPLES && !self->request->on_samples) continue;
        candidate *one = &all[count++];
        *one = (candidate){.row = row};
        *self->plan = start;
        MRC_TRY(ask(self, one));
        others |= in_question(one, true);
    }
    for (int i = 0; i < count; i++)
        if (in_question(&all[i], others)) fastest = fmin(fastest, all[i].plan.public_plan.seconds);
    for (int i = 0; i < count; i++) {
        const candidate *one = &all[i];
        if (!in_question(one, others) ||
            one->plan.public_plan.seconds > fmax(NEARLY_AS_FAST * fastest, one->row->cheap))
            continue;
        *self->plan = one->plan;
        mrc_plan_say(self->public_plan, "solver %s: %s; estimates:", one->row->name, one->row->description);
        for (int k = 0; k < count; k++) say_candidate(self->public_plan, &all[k], k ? ", " : " ");
        mrc_plan_say(self->public_plan, "\n");
        return MERCER_OK;
    }
    /* nothing fits: plan the last candidate, which needs the least memory, for its error message */
    *self->plan = start;
    const mrc_solver *last = mrc_solver_fallback();
    for (int i = 0; i < count; i++)
        if (!all[i].unsuited) last = all[i].row;
    return plan_solver(self, last);
}

void mrc_plan_warn(mrc_plan *plan, const char *field, const char *format, ...)
{
    if (plan->warning_count == MRC_PLAN_WARNINGS) return;
    mrc_plan_warning *one = &plan->warnings[plan->warning_count++];
    one->field = field;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(one->text, sizeof one->text, format, arguments);
    va_end(arguments);
}

/* Warns about a bandwidth so large that the kernel matrix is nearly constant and training cannot distinguish
   samples. */
static void mention_bandwidth(mrc_planner *self)
{
    char text[256];
    if (self->request->spread < WIDE_BANDWIDTH) return;
    snprintf(text, sizeof text,
             "the bandwidth is %.0f times the median distance between centers, so all samples are nearly equal for the "
             "kernel; use a smaller bandwidth",
             self->request->spread);
    mrc_plan_warn(self->plan, "bandwidth", "%s", text);
    mrc_plan_say(self->public_plan, "warning: %s\n", text);
}

/* Adds the lines about caches and estimates. */
static void say_sums(mrc_planner *self)
{
    mercer_plan *plan = self->public_plan;
    const mrc_projector_ops *projector = self->plan->projector;
    bool matrix = projector ? projector->stores == MRC_STORES_MATRIX : self->plan->preconditioner_sizes.basis > 0;
    char bytes[MRC_BYTES_TEXT];
    mrc_plan_say(plan, "weights and kernel values in %s; cached: %s%s%s\n", mrc_dtype_name(self->request->real),
                 plan->cache_data ? "K(X,Z)" : "", plan->cache_data && plan->cache_centers ? ", " : "",
                 plan->cache_centers ? matrix ? "K(Z,Z)" : "the factor of K(Z,Z)"
                 : plan->cache_data  ? ""
                                     : "nothing");
    if (self->plan->polish > 0) mrc_plan_say(plan, "polish: %lld final CG steps\n", (long long)self->plan->polish);
    mrc_plan_say(plan, "estimated %s, %.3g flops, %.1f s\n", mrc_bytes_text(bytes, plan->bytes), plan->flops,
                 plan->seconds);
    if (self->request->sizes_only)
        mrc_plan_say(plan, "from sizes only; training examines the kernel matrix first and may choose differently\n");
}

const mrc_solver *mrc_plan_named_solver(const mrc_plan_request *request)
{
    return request->solver ? request->solver : mrc_solver_find(request->options->solver);
}

/* Lists what to try if training breaks down. Only automatic choices are replaced: first half precision by accurate
   arithmetic, then the solver by the fallback. Explicit choices of the caller are kept. */
static void list_attempts(mrc_planner *self)
{
    mrc_plan *plan = self->plan;
    const mrc_solver *fallback = mrc_solver_fallback();
    if (plan->half_chosen) plan->attempts[plan->attempt_count++] = (mrc_attempt){.accurate = true};
    if (mrc_name_is_auto(self->options->solver) && plan->solver != fallback)
        plan->attempts[plan->attempt_count++] = (mrc_attempt){.solver = fallback};
}

/* Makes a plan without looking for a smaller number of centers if it does not fit. */
static mercer_status make_plan(mrc_plan *out, const mrc_plan_request *request, mrc_reason *reason)
{
    const mrc_solver *row = mrc_plan_named_solver(request);
    memset(out, 0, sizeof *out);
    mrc_planner self = {.request = request,
                        .options = request->options,
                        .reason = reason,
                        .plan = out,
                        .public_plan = &out->public_plan};
    MRC_TRY(mrc_plan_check_options(request->options, reason));
    if (request->p < 1 || request->n < 1 || request->c < 1)
        return mrc_refuse(reason, "", MERCER_ERROR_SHAPE,
                          "training needs at least one sample, one center and one output");
    rate_machine(&self);
    set_budget(&self);
    out->public_plan.struct_size = sizeof out->public_plan;
    out->public_plan.precision = request->real;
    out->public_plan.lambda = fmax(self.options->lambda, 0);
    MRC_TRY(row ? plan_solver(&self, row) : choose_solver(&self));
    if (row) mrc_plan_say(self.public_plan, "solver %s: %s\n", row->name, row->description);
    mrc_plan_say_precision(request, out);
    mrc_plan_mention_useless(&self);
    mention_bandwidth(&self);
    say_sums(&self);
    list_attempts(&self);
    return MERCER_OK;
}

int64_t mrc_plan_largest(int64_t p, bool (*fits)(void *user, int64_t p), void *user)
{
    int64_t low = 0, high = p;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        *(fits(user, middle) ? &low : &high) = middle;
    }
    return low;
}

/* Returns whether the request would fit with p centers; for mrc_plan_largest. */
static bool has_plan(void *user, int64_t p)
{
    mrc_plan plan;
    mrc_plan_request other = *(const mrc_plan_request *)user;
    const mrc_solver *row = mrc_plan_named_solver(&other);
    mrc_reason reason;
    other.p = p;
    if (row && row->traits & MRC_NEEDS_SAMPLES) other.n = p; /* the centers are the samples */
    return make_plan(&plan, &other, &reason) == MERCER_OK;
}

mercer_status mrc_make_plan(mrc_plan *out, const mrc_plan_request *request, mrc_reason *reason)
{
    mrc_reason first;
    mercer_status status = make_plan(out, request, &first);
    if (status == MERCER_OK) return MERCER_OK;
    *reason = first;
    if (status != MERCER_ERROR_MEMORY) return status;
    mrc_plan_request asked = *request;
    int64_t most = mrc_plan_largest(request->p, has_plan, &asked);
    if (most == 0) return mrc_refuse(reason, first.field, status, "%s; no number of centers fits", first.text);
    return mrc_refuse(reason, first.field, status, "%s; the largest p that fits is %lld", first.text, (long long)most);
}

/* Returns whether half precision is faster on this machine. The answer depends on the kernel function. A plan from
   sizes only does not know the kernel and assumes the default kernel of a fit. */
static bool gains_by_half(mrc_backend *backend)
{
    mercer_kernel kernel;
    return backend->ops->gains_by_half && mrc_kernel_parse(NULL, &kernel, "laplace:bandwidth=1") == MERCER_OK &&
           backend->ops->gains_by_half(backend, &kernel);
}

mercer_status mrc_plan_shape(mrc_plan *out, const mrc_machine *machine, const mercer_shape *shape,
                             const mercer_train_options *options, mrc_reason *reason)
{
    if (shape->features < 1)
        return mrc_refuse(reason, "", MERCER_ERROR_SHAPE, "training needs at least one feature, but there are %lld",
                          (long long)shape->features);
    if (shape->points && mrc_dtype_size(shape->points) == 0)
        return mrc_refuse(reason, "", MERCER_ERROR_DTYPE, "samples have the unknown element type %d",
                          (int)shape->points);
    /* 0 shards in the shape mean one shard; in a communicator 0 means the default number. */
    mrc_comm comm = {.ranks = 1, .shards = shape->shards > 0 ? shape->shards : 0};
    int shards = shape->shards == 0 ? 1 : mrc_comm_shards(&comm, shape->centers);
    const mercer_dtype points = shape->points ? shape->points : MERCER_F32,
                       wide = points == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    mrc_plan_request request = {.machine = *machine,
                                .options = options,
                                .n = shape->samples,
                                .p = shape->centers,
                                .d = shape->features,
                                .c = shape->outputs,
                                .real = shape->weights ? shape->weights : wide,
                                .points = points,
                                .shards = shards,
                                .threads = machine->threads,
                                .rows_known = true,
                                .on_samples = shape->on_samples == MERCER_ON && shape->samples == shape->centers,
                                .sizes_only = true,
                                .gains_by_half = gains_by_half(machine->backend),
                                .coordinates = 1,
                                .roughness = shards > 1 ? 0.5 : 0,
                                .bounded = shards > 1};
    return mrc_make_plan(out, &request, reason);
}

/* Restores the text that the plan had before the refinement, and appends a line with the sizes that have changed, if
   any. */
static void tell_refinement(mrc_plan *plan, const mrc_plan *before)
{
    mercer_plan *now = &plan->public_plan;
    const mercer_plan *then = &before->public_plan;
    char bytes[MRC_BYTES_TEXT];
    memcpy(now->text, then->text, sizeof now->text);
    now->changes = then->changes;
    if (now->batch == then->batch && now->period == then->period && now->cache_data == then->cache_data) return;
    mrc_plan_say(now, "refined: after reading a sample of the data, m = %lld", (long long)now->batch);
    if (plan->projector) mrc_plan_say(now, ", T = %lld", (long long)now->period);
    if (now->cache_data != then->cache_data)
        mrc_plan_say(now, ", K(X,Z) is %s", now->cache_data ? "cached" : "not cached");
    mrc_plan_say(now, "; %s, %.1f s\n", mrc_bytes_text(bytes, now->bytes), now->seconds);
    now->changes += (int64_t)(strlen(now->text) - strlen(then->text));
}

mercer_status mrc_refine_plan(mrc_plan *plan, const mrc_plan_request *request, mrc_reason *reason)
{
    mercer_train_options options = *request->options;
    mrc_plan_request fixed = *request;
    mrc_plan refined;
    if (plan->projector) options.projector = plan->public_plan.projector;
    options.epochs = plan->public_plan.epochs;
    fixed.options = &options, fixed.solver = plan->solver;
    mercer_status status = make_plan(&refined, &fixed, reason);
    /* A critical batch that does not fit is halved: larger batches only save time. */
    while (status == MERCER_ERROR_MEMORY && fixed.critical_batch > plan->public_plan.batch) {
        fixed.critical_batch = mrc_max(plan->public_plan.batch, fixed.critical_batch / 2);
        status = make_plan(&refined, &fixed, reason);
    }
    MRC_TRY(status);
    tell_refinement(&refined, plan);
    *plan = refined;
    return MERCER_OK;
}

mercer_status mrc_replace_plan(mrc_plan *plan, const mrc_plan_request *request, const mrc_attempt *attempt,
                               const char *why, mrc_reason *reason)
{
    mrc_plan next;
    mrc_plan_request other = *request;
    if (attempt->solver) other.solver = attempt->solver;
    if (attempt->accurate) other.accurate = why;
    MRC_TRY(make_plan(&next, &other, reason));
    mercer_plan *now = &next.public_plan;
    memcpy(now->text, plan->public_plan.text, sizeof now->text);
    mrc_plan_say(now, "replaced: %s; %snow solver %s\n", why, plan->half_chosen ? "arithmetic accurate, " : "",
                 now->solver);
    if (next.half_chosen) mrc_plan_say_precision(&other, &next);
    now->changes = plan->public_plan.changes + (int64_t)(strlen(now->text) - strlen(plan->public_plan.text));
    *plan = next;
    return MERCER_OK;
}
