/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The planner. Letters: n samples, p centers, d features, c outputs, m batch, s Nystrom sample, q eigenpairs, T period.
 *
 *   s       p/3 between 500 and 3,000 (10,000 for p >= 50,000), at most n, and s^2 doubles within half the budget
 *   q       s/20, at most p/10: a larger q biases the fixed point towards weighted least squares
 *   m       the critical batch beta/t of the data, at most n and such that m p values fit a quarter of the budget
 *   T       p/m: the temporary centers are then as many as the centers; far beyond, the model would follow the centers'
 *           labels alone
 *   solver  auto: direct, cg or ep4, whichever is estimated to be fastest among those that fit
 *   projector  exact while its factor fits half the budget and p^3/3 pays against the epochs; pcg on a stored K(Z,Z)
 *              while that fits;
 *           bgs with carry beyond
 *   cache   K(X, Z) if it fits what is left and samples are seen more than once; in half precision if only that fits
 *
 * Estimates: flops of the dominant products, and seconds at a nominal rate for the instruction set. They decide, they
 * do not promise.
 */
#include "plan/plan_parts.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEVICE_MARGIN = 512 << 20 };

#define NEARLY_AS_FAST 1.3
#define CHEAP_SECONDS  0.5
#define WIDE_BANDWIDTH 100 /* times the median distance */

static void say(mrc_planner *self, const char *format, ...) MRC_PRINTF(2, 3);
static void say(mrc_planner *self, const char *format, ...)
{
    size_t used = strlen(self->public_plan->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->public_plan->text + used, sizeof self->public_plan->text - used, format, arguments);
    va_end(arguments);
}

/* ---- Machine and budget -------------------------------------------------------------------------------------- */

static void rate_machine(mrc_planner *self)
{
    /* Flops a second in float: scalar, AVX2, AVX-512, with VNNI, AMX (whose tiles are for bytes, not for floats). */
    static const double per_thread[] = {0.5e9, 35e9, 75e9, 75e9, 75e9};
    _Static_assert(sizeof per_thread / sizeof *per_thread == MRC_ISA_COUNT, "a rate for every instruction set");
    int threads = self->request->threads;
    mrc_backend *backend = self->request->context->backend;
    mrc_capabilities machine = backend ? backend->ops->capabilities(backend) : (mrc_capabilities){0};
    self->device = machine.memory != MERCER_HOST && backend;
    self->rate = machine.rate > 0 ? machine.rate : per_thread[self->request->context->isa] * threads;
    self->rate_double = machine.rate_double > 0 ? machine.rate_double : self->rate / 2;
    self->bandwidth = machine.bandwidth > 0 ? machine.bandwidth : 6e9 * (threads < 4 ? threads : 4);
    self->real_size = mrc_dtype_size(self->request->real);
    self->point_size = mrc_dtype_size(self->request->points);
    self->kept_size = machine.kept_size > 0 && self->request->real == MERCER_F32 ? machine.kept_size : self->real_size;
    if (self->request->real == MERCER_F64) self->rate = self->rate_double;
}

int64_t mrc_plan_share(bool device, int64_t available)
{
    if (!device) return available / 2;
    return mrc_max(available / 2, available - available / 16 - DEVICE_MARGIN);
}

static void set_budget(mrc_planner *self)
{
    int64_t asked = self->options->memory;
    mrc_backend *backend = self->request->context->backend;
    int64_t available = backend ? backend->ops->free_memory(backend) : mrc_free_memory();
    self->plan->budget = self->request->budget > 0 ? self->request->budget
                         : asked > 0               ? asked
                                                   : mrc_plan_share(self->device, available);
    char budget[MRC_BYTES_TEXT];
    say(self, "memory budget %s (%s)\n", mrc_bytes_text(budget, self->plan->budget),
        asked > 0      ? "given"
        : self->device ? "what is free on the device, but for a margin"
                       : "half of what is free");
}

/* ---- Parts of the iteration ---------------------------------------------------------------------------------- */

static void choose_sample(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mrc_preset *preset = self->plan->preset;
    mercer_plan *public_plan = self->public_plan;
    int64_t s = request->p >= 50000 ? 10000 : mrc_max(500, mrc_min(3000, request->p / 3));
    if (preset->no_eigenpairs) s = 1000;
    if (preset->whole_sample) s = request->n;
    if (self->options->nystrom > 0) s = self->options->nystrom;
    s = mrc_min(s, request->n);
    int64_t most = (int64_t)sqrt((double)self->plan->budget / 2 / 8 / 1.3);
    if (s > most && !preset->whole_sample) {
        say(self, "s cut from %lld to %lld: K(X_s, X_s) in double has to fit half the budget\n", (long long)s,
            (long long)most);
        s = mrc_max(most, 1);
    }
    int64_t q = mrc_min(s / 20, request->p / 10);
    if (preset->update == MRC_UPDATE_COORDINATES) q = s / 20; /* nothing is projected: no bias to keep small */
    if (self->options->eigenpairs > 0) q = self->options->eigenpairs;
    if (self->options->eigenpairs < 0 || preset->no_eigenpairs) q = 0;
    public_plan->nystrom = s;
    public_plan->eigenpairs = mrc_max(0, mrc_min(q, s - 1));
    say(self, "s = %lld samples for the preconditioner, q = %lld eigenpairs\n", (long long)s,
        (long long)public_plan->eigenpairs);
    if (public_plan->eigenpairs > request->p / 10 && preset->update == MRC_UPDATE_PROJECT)
        say(self, "warning: q is above p/10 = %lld: the fixed point moves away from least squares\n",
            (long long)request->p / 10);
}

static void choose_batch(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mrc_preset *preset = self->plan->preset;
    mercer_plan *public_plan = self->public_plan;
    bool seen = request->critical_batch > 0;
    int64_t m = seen ? request->critical_batch : mrc_max(1, GUESSED_BATCH_PER_Q * public_plan->eigenpairs);
    if (preset->whole_batch) m = request->n;
    if (self->options->batch > 0) m = self->options->batch;
    int64_t most = mrc_max(1, self->plan->budget / 4 / mrc_max(1, request->p * self->kept_size));
    if (m > most && !preset->whole_batch && self->options->batch == 0) m = most;
    if (self->device && m > ROUNDED_BATCH && self->options->batch == 0) m -= m % 256; /* whole tiles of rows */
    public_plan->batch = mrc_max(1, mrc_min(m, request->n));
    say(self, "m = %lld (%s)\n", (long long)public_plan->batch,
        preset->whole_batch                   ? "all samples"
        : self->options->batch > 0            ? "given"
        : seen && m < request->critical_batch ? "what memory allows"
        : seen                                ? "critical batch"
                                              : "guess until the data have been seen");
    int64_t period = preset->period ? preset->period : mrc_max(1, request->p / public_plan->batch);
    if (preset->update != MRC_UPDATE_PROJECT) period = 1;
    if (self->options->period > 0) period = self->options->period;
    public_plan->period = period;
    if (preset->update == MRC_UPDATE_PROJECT) say(self, "T = %lld batches between projections\n", (long long)period);
}

static mercer_status choose_projector(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mrc_preset *preset = self->plan->preset;
    mercer_plan *public_plan = self->public_plan;
    snprintf(public_plan->projector, sizeof public_plan->projector, "none");
    self->plan->projector = NULL;
    if (preset->update != MRC_UPDATE_PROJECT) return MERCER_OK;
    double p = (double)request->p, n = (double)request->n;
    const char *name = self->options->projector;
    if (!name || strcmp(name, "auto") == 0) name = preset->projector;
    const char *why = "given";
    if (!name) {
        double factor_seconds = p * p * p / 3 / self->rate_double;
        double epochs_seconds = (double)public_plan->epochs * 3 * n * p * (double)request->d / self->rate;
        /* K in double, and its factor in place; a solve needs (p, c) twice */
        bool exact_fits = 8 * p * p <= 0.45 * (double)self->plan->budget;
        bool stored_fits = (double)self->real_size * p * p <= 0.45 * (double)self->plan->budget;
        name = exact_fits && factor_seconds <= epochs_seconds ? "exact" : stored_fits ? "pcg" : "bgs";
        why = strcmp(name, "exact") == 0 ? "its factor fits and pays"
              : strcmp(name, "pcg") == 0 ? "K(Z,Z) fits, its factor does not pay"
                                         : "K(Z,Z) does not fit the budget";
    }
    self->plan->projector = mrc_projector_find(name);
    if (!self->plan->projector)
        return mrc_fail(request->context, MERCER_ERROR_ARGUMENT,
                        "projector '%s' is unknown; valid: auto, exact, ep2, pcg, bgs", name);
    snprintf(public_plan->projector, sizeof public_plan->projector, "%s", name);
    say(self, "projector %s: %s\n", name, why);
    return MERCER_OK;
}

static void choose_projector_sizes(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mercer_train_options *options = self->options;
    mercer_plan *public_plan = self->public_plan;
    if (!self->plan->projector) return;
    bool pcg = strcmp(public_plan->projector, "pcg") == 0, bgs = strcmp(public_plan->projector, "bgs") == 0;
    int64_t s = request->p >= 50000 ? 10000 : 3000;
    int64_t most = (int64_t)sqrt((double)self->plan->budget / 4 / 8 / 1.3);
    s = mrc_min(mrc_min(options->projector_nystrom > 0 ? options->projector_nystrom : s, request->p), mrc_max(1, most));
    int64_t q = request->p >= 50000 ? 1000 : 500;
    int64_t q_most = self->plan->budget / 8 / mrc_max(1, 2 * request->p * self->real_size);
    q = options->projector_eigenpairs > 0 ? options->projector_eigenpairs : mrc_min(q, mrc_max(1, q_most));
    public_plan->projector_nystrom = s;
    public_plan->projector_eigenpairs = mrc_min(q, s / 2);
    public_plan->projector_passes = options->projector_passes > 0 ? options->projector_passes : pcg ? 30 : 1;
    int64_t block_most = (int64_t)sqrt((double)self->plan->budget / 8 / 8);
    int64_t block = self->device ? BLOCK_DEVICE : BLOCK_DEFAULT;
    public_plan->projector_block =
        mrc_min(options->projector_block > 0 ? options->projector_block : mrc_min(block, block_most), request->p);
    /* Solves with factors are many small steps, which a device is slow at: it keeps the inverses of the blocks. */
    bool inverses = bgs && self->device &&
                    (double)request->p * (double)public_plan->projector_block * (double)self->real_size <=
                        (double)self->plan->budget / 4;
    mercer_switch carry = options->carry == MERCER_AUTO ? (bgs ? MERCER_ON : MERCER_OFF) : options->carry;
    public_plan->carry = carry == MERCER_ON;
    self->plan->projector_options =
        (mrc_projector_options){.nystrom = s,
                                .eigenpairs = public_plan->projector_eigenpairs,
                                .passes = public_plan->projector_passes,
                                .tolerance = options->projector_tolerance > 0 ? options->projector_tolerance
                                             : pcg                            ? 0.03
                                                                              : 0,
                                .block = public_plan->projector_block,
                                .gamma = 0.95,
                                .store = pcg || inverses,
                                .seed = options->seed + 1};
    if (strcmp(public_plan->projector, "exact") != 0)
        say(self, "projector: s = %lld, q = %lld, at most %lld passes%s\n", (long long)s,
            (long long)public_plan->projector_eigenpairs, (long long)public_plan->projector_passes,
            public_plan->carry ? ", carrying the residual" : "");
    public_plan->cache_centers = strcmp(public_plan->projector, "exact") == 0 || pcg;
}

/* ---- The iteration ------------------------------------------------------------------------------------------- */

static mercer_status plan_iteration(mrc_planner *self)
{
    mercer_plan *public_plan = self->public_plan;
    const mrc_preset *preset = self->plan->preset;
    public_plan->epochs = self->options->epochs > 0 ? self->options->epochs : EPOCHS_DEFAULT;
    choose_sample(self);
    choose_batch(self);
    MRC_TRY(choose_projector(self));
    choose_projector_sizes(self);
    public_plan->step_factor = self->options->step_factor > 0 ? self->options->step_factor : preset->gamma;
    /* Batches that are draws of the data leave noise in the iterates wherever the labels cannot be met. */
    mercer_switch sampled = public_plan->batch < self->request->n ? MERCER_ON : MERCER_OFF;
    mercer_switch average = preset->average == MERCER_AUTO ? sampled : preset->average;
    if (self->options->average != MERCER_AUTO) average = self->options->average;
    mercer_switch decay = self->options->decay == MERCER_AUTO ? preset->average : self->options->decay;
    public_plan->average = average == MERCER_ON;
    public_plan->decay = decay == MERCER_ON;
    MRC_TRY(mrc_plan_iteration_memory(self));
    if (public_plan->cache_data && self->options->epochs == 0) public_plan->epochs = EPOCHS_CACHED;
    mrc_plan_iteration_cost(self);
    say(self, "%lld epochs, gamma %.2f%s%s%s\n", (long long)public_plan->epochs, public_plan->step_factor,
        public_plan->average ? ", averaging" : "", public_plan->decay ? ", step decay" : "",
        public_plan->cache_data == MRC_CACHE_HALF
            ? ", K(X,Z) kept between epochs in half precision, since float does not fit"
        : public_plan->cache_data ? ", K(X,Z) kept between epochs"
                                  : "");
    return MERCER_OK;
}

/* ---- The plan ------------------------------------------------------------------------------------------------ */

static void describe_exact_solver(mrc_planner *self)
{
    const mrc_preconditioner_sizes *preconditioner_sizes = &self->plan->preconditioner_sizes;
    say(self, "reads batches of %lld%s\n", (long long)self->public_plan->batch,
        self->public_plan->cache_data == MRC_CACHE_HALF ? ", K(X,Z) kept between steps in half precision"
        : self->public_plan->cache_data                 ? ", K(X,Z) kept between steps"
                                                        : "");
    if (preconditioner_sizes->basis > 0)
        say(self, "preconditioner: K(Z,Z) in %s, q = %lld directions from s = %lld centers, and a polynomial\n",
            mrc_dtype_name(preconditioner_sizes->stored), (long long)preconditioner_sizes->basis,
            (long long)preconditioner_sizes->sample);
}

/* Plans one solver into a plan of its own. MERCER_ERROR_MEMORY, with the reason as message, if it does not fit. */
static mercer_status plan_solver(mrc_planner *self, const char *name)
{
    self->plan->preset = mrc_preset_find(name);
    snprintf(self->public_plan->solver, sizeof self->public_plan->solver, "%s", name);
    if (!self->plan->preset->exact) return plan_iteration(self);
    bool direct = strcmp(name, "direct") == 0;
    if (mrc_plan_exact_solver(self, direct)) {
        describe_exact_solver(self);
        return MERCER_OK;
    }
    char budget[MRC_BYTES_TEXT], needed[MRC_BYTES_TEXT];
    return mrc_fail(self->request->context, MERCER_ERROR_MEMORY,
                    "the memory budget of %s is too small: %s with p = %lld needs %s; use ep4, lower p or raise memory",
                    mrc_bytes_text(budget, self->plan->budget), name, (long long)self->request->p,
                    mrc_bytes_text(needed, self->public_plan->bytes));
}

/* What became of a candidate, for the plan's text. */
static void describe_candidate(char *text, size_t size, const mrc_plan *plan, const char *unsuited, bool fits)
{
    if (unsuited)
        snprintf(text, size, "%s has no use for %s", plan->public_plan.solver, unsuited);
    else if (!fits)
        snprintf(text, size, "%s does not fit", plan->public_plan.solver);
    else
        snprintf(text, size, "%s %.1f s", plan->public_plan.solver, plan->public_plan.seconds);
}

/*
 * The fastest estimate wins, but an estimate is only that: a solver that goes to the end of the problem is preferred
 * while it is cheap or nearly as fast. Solvers that would ignore an option are not asked; ep4 has a use for all of
 * them.
 */
static mercer_status choose_solver(mrc_planner *self)
{
    enum { CANDIDATES = 3 };
    static const char *const candidates[CANDIDATES] = {"direct", "cg", "ep4"}; /* in order of preference */
    mercer_context *context = self->request->context;
    mrc_plan start = *self->plan, plans[CANDIDATES];
    bool fits[CANDIDATES];
    double fastest = INFINITY;
    char error[MRC_ERROR_CHARS]; /* that a candidate does not fit is no failure of the call */
    char what[CANDIDATES][64];
    memcpy(error, context->error, sizeof error);
    for (int i = 0; i < CANDIDATES; i++) {
        const char *unsuited = mrc_plan_unsuited(mrc_preset_find(candidates[i]), self->options);
        *self->plan = start;
        snprintf(self->public_plan->solver, sizeof self->public_plan->solver, "%s", candidates[i]);
        mercer_status status = unsuited ? MERCER_ERROR_MEMORY : plan_solver(self, candidates[i]);
        if (status != MERCER_OK && status != MERCER_ERROR_MEMORY) return status;
        fits[i] = status == MERCER_OK;
        plans[i] = *self->plan;
        describe_candidate(what[i], sizeof what[i], &plans[i], unsuited, fits[i]);
        if (fits[i]) fastest = fmin(fastest, self->public_plan->seconds);
    }
    memcpy(context->error, error, sizeof error);
    for (int i = 0; i < CANDIDATES; i++) {
        if (!fits[i] || plans[i].public_plan.seconds > fmax(NEARLY_AS_FAST * fastest, i == 0 ? CHEAP_SECONDS : 0))
            continue;
        *self->plan = plans[i];
        say(self, "solver %s: %s; estimates: %s, %s, %s\n", candidates[i], plans[i].preset->says, what[0], what[1],
            what[2]);
        return MERCER_OK;
    }
    *self->plan = start; /* nothing fits: say what the one that needs least memory needs */
    return plan_solver(self, "ep4");
}

/* A solver that was named is there, and has a use for what was said about it. */
static mercer_status check_solver(const mrc_planner *self, const char *name)
{
    mercer_context *context = self->request->context;
    const mrc_preset *preset = mrc_preset_find(name);
    if (!preset) {
        char names[256];
        mrc_preset_names(names, sizeof names);
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "solver '%s' is unknown; valid: %s", name, names);
    }
    const char *option = mrc_plan_unsuited(preset, self->options);
    if (!option) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                    "options: solver %s (%s) has no use for %s: leave it out, or choose another solver", name,
                    preset->says, option);
}

static void mention_useless_size(mrc_planner *self)
{
    const char *option = mrc_plan_useless_size(self->plan->preset, self->options);
    if (!option) return;
    say(self, "warning: solver %s has no use for %s\n", self->public_plan->solver, option);
    if (!self->request->trial && !self->request->sizes_only) /* a training may choose another solver */
        mrc_log(self->request->context, MERCER_LOG_WARNING, "solver %s has no use for %s, which was given",
                self->public_plan->solver, option);
}

static void mention_bandwidth(mrc_planner *self)
{
    static const char *const words = "the bandwidth is %.0f times the median distance between centers: to the kernel "
                                     "function all samples are nearly the same";
    char text[256];
    if (self->request->spread < WIDE_BANDWIDTH) return;
    snprintf(text, sizeof text, words, self->request->spread);
    say(self, "warning: %s\n", text);
    if (!self->request->trial) mrc_log(self->request->context, MERCER_LOG_WARNING, "%s", text);
}

static mercer_status make_plan(mrc_plan *out, const mrc_plan_request *request)
{
    memset(out, 0, sizeof *out);
    mrc_planner self = {.request = request, .options = request->options, .plan = out, .public_plan = &out->public_plan};
    MRC_TRY(mrc_plan_check_options(request->context, request->options));
    if (request->p < 1 || request->n < 1 || request->c < 1)
        return mrc_fail(request->context, MERCER_ERROR_SHAPE,
                        "training needs at least one sample, one center and one output");
    rate_machine(&self);
    set_budget(&self);
    out->public_plan.struct_size = sizeof out->public_plan;
    out->public_plan.precision = request->real;
    out->public_plan.lambda = self.options->lambda;
    const char *solver = self.options->solver;
    if (!solver || strcmp(solver, "auto") == 0) {
        MRC_TRY(choose_solver(&self));
    } else {
        MRC_TRY(check_solver(&self, solver));
        MRC_TRY(plan_solver(&self, solver));
        say(&self, "solver %s: %s\n", solver, out->preset->says);
    }
    mention_useless_size(&self);
    mention_bandwidth(&self);
    say(&self, "weights and kernel values in %s; kept: %s%s%s\n", mrc_dtype_name(request->real),
        out->public_plan.cache_data ? "K(X,Z)" : "",
        out->public_plan.cache_data && out->public_plan.cache_centers ? ", " : "",
        out->public_plan.cache_centers
            ? strcmp(out->public_plan.projector, "pcg") == 0 || out->preconditioner_sizes.basis > 0
                  ? "K(Z,Z)"
                  : "the factor of K(Z,Z)"
        : out->public_plan.cache_data ? ""
                                      : "nothing");
    if (self.options->polish > 0) say(&self, "polish: %lld CG steps at the end\n", (long long)self.options->polish);
    char bytes[MRC_BYTES_TEXT];
    say(&self, "estimated %s, %.3g flops, %.1f s\n", mrc_bytes_text(bytes, out->public_plan.bytes),
        out->public_plan.flops, out->public_plan.seconds);
    if (request->sizes_only)
        say(&self, "from sizes alone: a training looks at the kernel matrix first, and may choose otherwise\n");
    return MERCER_OK;
}

/* The most centers for which there is a plan, 0 if for none: by bisection, since more centers need more memory. */
static int64_t largest_p(const mrc_plan_request *request)
{
    mrc_plan plan;
    const mrc_preset *preset = request->options->solver ? mrc_preset_find(request->options->solver) : NULL;
    int64_t fits = 0, fails = request->p;
    while (fails - fits > 1) {
        mrc_plan_request other = *request;
        other.p = fits + (fails - fits) / 2;
        other.trial = true;
        if (preset && preset->update == MRC_UPDATE_COORDINATES) other.n = other.p; /* the centers are the samples */
        *(make_plan(&plan, &other) == MERCER_OK ? &fits : &fails) = other.p;
    }
    return fits;
}

mercer_status mrc_make_plan(mrc_plan *out, const mrc_plan_request *request)
{
    mercer_context *context = request->context;
    mercer_status status = make_plan(out, request);
    if (status != MERCER_ERROR_MEMORY) return status;
    char reason[MRC_ERROR_CHARS];
    snprintf(reason, sizeof reason, "%s", mrc_error_text(context));
    int64_t most = largest_p(request);
    if (most == 0) return mrc_fail(context, status, "%s; no number of centers fits", reason);
    return mrc_fail(context, status, "%s; the largest p that fits is %lld", reason, (long long)most);
}

/* The line that tells what a refinement changed. */
static void tell_refinement(mrc_plan *plan, const mrc_plan *before)
{
    mrc_planner self = {.plan = plan, .public_plan = &plan->public_plan};
    const mercer_plan *now = &plan->public_plan, *then = &before->public_plan;
    char bytes[MRC_BYTES_TEXT];
    memcpy(plan->public_plan.text, before->public_plan.text, sizeof plan->public_plan.text);
    if (now->batch == then->batch && now->period == then->period && now->cache_data == then->cache_data) return;
    say(&self, "refined: now that the data were seen, m = %lld", (long long)now->batch);
    if (plan->preset->update == MRC_UPDATE_PROJECT) say(&self, ", T = %lld", (long long)now->period);
    if (now->cache_data != then->cache_data) say(&self, ", K(X,Z) is %s", now->cache_data ? "kept" : "not kept");
    say(&self, "; %s, %.1f s\n", mrc_bytes_text(bytes, now->bytes), now->seconds);
}

mercer_status mrc_refine_plan(mrc_plan *plan, const mrc_plan_request *request)
{
    mercer_context *context = request->context;
    mercer_train_options options = *request->options;
    mrc_plan_request fixed = *request;
    mrc_plan refined;
    char error[MRC_ERROR_CHARS]; /* a batch that does not fit is no failure: a smaller one does */
    memcpy(error, context->error, sizeof error);
    options.solver = plan->public_plan.solver;
    if (plan->projector) options.projector = plan->public_plan.projector;
    options.epochs = plan->public_plan.epochs;
    fixed.options = &options, fixed.trial = true;
    mercer_status status = make_plan(&refined, &fixed);
    while (status == MERCER_ERROR_MEMORY && fixed.critical_batch > plan->public_plan.batch) {
        fixed.critical_batch = mrc_max(plan->public_plan.batch, fixed.critical_batch / 2);
        status = make_plan(&refined, &fixed);
    }
    MRC_TRY(status);
    memcpy(context->error, error, sizeof error);
    tell_refinement(&refined, plan);
    *plan = refined;
    return MERCER_OK;
}

mercer_status mrc_replace_plan(mrc_plan *plan, const mrc_plan_request *request, const char *solver, const char *why)
{
    mercer_train_options options = *request->options;
    mrc_plan_request other = *request;
    mrc_plan next;
    options.solver = solver;
    other.options = &options, other.trial = true;
    MRC_TRY(make_plan(&next, &other));
    mrc_planner self = {.plan = &next, .public_plan = &next.public_plan};
    memcpy(next.public_plan.text, plan->public_plan.text, sizeof next.public_plan.text);
    say(&self, "replaced: %s; solver %s instead\n", why, solver);
    *plan = next;
    return MERCER_OK;
}
