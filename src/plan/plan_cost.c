/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plan costs: bytes that are held at the peak, flops of the dominant products, and seconds at the nominal rate
 * of the machine.
 *
 *   iteration  fields p (6 c + q), temporary centers T m (d + c), sample s (d + q), block m p, projector, cache n p
 *   direct     3 p^2 doubles;  2 n p d + 2 n p^2 + 2/3 p^3 flops (4/3 p^3 in float), and 2 n p (d + c) for the loss
 *   cg         1 or 2 p^2 doubles, cache n p;  2 n p d + 1/3 or 2/3 p^3 + steps (4 n p c + 4 p^2 c) flops; or,
 *              deflated, p^2 halves or floats and 2 p q (all of it shared out among ranks);  2 n p d + 2 p (p + s) (d +
 *              q) + steps (4 n p c + 4 k p^2 c) flops
 */
#include "plan/plan_parts.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/normal/exact_solvers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory and cost ----------------------------------------------------------------------------------------- */

static mrc_iteration_options iteration_options(const mrc_planner *self)
{
    return (mrc_iteration_options){.update = self->plan->preset->update,
                                   .batch = self->public_plan->batch,
                                   .period = self->public_plan->period,
                                   .carry = self->public_plan->carry,
                                   .ridge = self->public_plan->lambda};
}

/*
 * On a device: its copy of the centers, what its operations hold, and the copies that the host makes of weights (to
 * look at them, to save them).
 */
static int64_t device_bytes(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mercer_plan *public_plan = self->public_plan;
    mrc_backend *backend = request->context->backend;
    int64_t widest = mrc_max(2 * request->c, mrc_max(public_plan->eigenpairs, public_plan->projector_eigenpairs));
    int64_t s = mrc_max(public_plan->nystrom, public_plan->projector_nystrom);
    mrc_extent work = {
        .rows = mrc_max(public_plan->batch, mrc_max(s, public_plan->projector_block)),
        .centers = mrc_max(request->p, public_plan->period * public_plan->batch),
        .features = request->d,
        .outputs = request->c,
        .wide = widest,
        .eigen = mrc_max(mrc_eigensystem_largest(public_plan->nystrom, public_plan->eigenpairs),
                         mrc_eigensystem_largest(public_plan->projector_nystrom, public_plan->projector_eigenpairs)),
        .points = request->points,
        .real = request->real};
    int64_t own = backend->ops->work_bytes ? backend->ops->work_bytes(backend, &work) : 0;
    return own + request->p * (request->d * self->point_size + 2 * request->c * self->real_size);
}

static int64_t workspace_bytes(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    int64_t tile = TILE_BYTES + 512 * (request->d * mrc_max(self->real_size, 4) + 16 * request->c * 2) +
                   300 * request->d * mrc_max(self->real_size, 4);
    /* one batch as the source hands it out, its targets in their units, and the shards' parts of predictions */
    return (self->device ? device_bytes(self) : request->threads * tile) +
           self->public_plan->batch * request->c * (int64_t)sizeof(double) +
           self->public_plan->batch * (request->d * self->point_size + 3 * request->c * self->real_size) +
           (request->shards > 1 ? request->shards * self->public_plan->batch * request->c * self->real_size : 0);
}

static mrc_cg_size cg_size(const mrc_planner *self, int64_t batch)
{
    return (mrc_cg_size){.p = self->request->p,
                         .d = self->request->d,
                         .c = self->request->c,
                         .batch = batch,
                         .lambda = self->options->lambda,
                         .preconditioner_sizes = self->plan->preconditioner_sizes,
                         .shards = self->request->shards,
                         .real_size = self->real_size,
                         .point_size = self->point_size};
}

/* Polishing: the factor of K(Z,Z), which makes it exact, and the vectors of conjugate gradients. */
static int64_t polish_bytes(const mrc_planner *self)
{
    if (self->options->polish == 0) return 0;
    mrc_cg_size size = cg_size(self, mrc_min(MRC_READ_ROWS, self->request->n));
    return mrc_exact_cg_bytes(&size) + size.batch * size.c * (int64_t)sizeof(double); /* and a batch of targets */
}

mercer_status mrc_plan_iteration_memory(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *public_plan = self->public_plan;
    mrc_iteration_options parts = iteration_options(self);
    int64_t s = public_plan->nystrom, q = public_plan->eigenpairs, held = 0, peak = 0;
    int64_t base =
        mrc_iteration_bytes(&parts, request->p, request->d, request->c, s, q, self->real_size, self->point_size) +
        s * (request->d * self->point_size + q * self->real_size) + workspace_bytes(self) +
        request->p * request->c * self->real_size * 2; /* the watchdog's good weights and the best ones */
    if (self->plan->projector)
        self->plan->projector->bytes(&self->plan->projector_options, request->p, request->d, request->c,
                                     self->real_size, self->point_size, &held, &peak);
    /* The sample's matrix and fresh rows exist during set-up only; the projector is made after it. */
    int64_t set_up = mrc_eigensystem_scratch_bytes(s, q) + 2 * s * request->d * self->point_size;
    int64_t before_block = base + mrc_max(held + peak, polish_bytes(self)); /* the projector is gone by then */
    int64_t left = self->plan->budget - before_block;
    /* Devices keep whole tiles, maybe in half precision; beside a cache there is room for the block as it is. */
    int64_t block = mrc_round_up(public_plan->batch, self->device ? 16 : 1) *
                    mrc_round_up(request->p, self->device ? 256 : 1) * self->kept_size;
    int64_t whole = mrc_max(block, public_plan->batch * request->p * self->real_size);
    char budget[MRC_BYTES_TEXT], needed[MRC_BYTES_TEXT];
    if (left < 0 || set_up + base > self->plan->budget)
        return mrc_fail(
            request->context, MERCER_ERROR_MEMORY,
            "the memory budget of %s is too small: %s with p = %lld needs %s; lower p or s, or raise memory",
            mrc_bytes_text(budget, self->plan->budget), public_plan->solver, (long long)request->p,
            mrc_bytes_text(needed, mrc_max(before_block, set_up + base)));
    int64_t cache = request->n * request->p * self->real_size + request->n;
    int64_t half = request->n * request->p * 2 + request->n, beside = left - whole;
    bool again = public_plan->epochs > 1 || self->options->cache == MERCER_ON;
    bool may = self->options->cache != MERCER_OFF && request->rows_known && again && whole <= left / 2;
    public_plan->cache_data = may && cache <= beside * 9 / 10;
    /* Half precision only where float does not fit, and only for values that it holds. Polishing is exact work. */
    if (may && !public_plan->cache_data && request->real == MERCER_F32 && request->bounded &&
        self->options->polish == 0 && half <= beside * 9 / 10)
        public_plan->cache_data = MRC_CACHE_HALF, cache = half;
    self->plan->keep_bytes = public_plan->cache_data ? whole : mrc_min(block, left / 2);
    public_plan->bytes =
        mrc_max(set_up + base, before_block + self->plan->keep_bytes + (public_plan->cache_data ? cache : 0));
    return MERCER_OK;
}

void mrc_plan_iteration_cost(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *public_plan = self->public_plan;
    double n = (double)request->n, p = (double)request->p, d = (double)request->d, c = (double)request->c;
    double s = (double)public_plan->nystrom, q = (double)public_plan->eigenpairs, m = (double)public_plan->batch,
           T = (double)public_plan->period;
    double evaluations = public_plan->cache_data ? 1 : (double)public_plan->epochs;
    double batches = ceil(n / m) * (double)public_plan->epochs, projections = ceil(batches / T);
    double flops = 2 * n * p * d * evaluations + (double)public_plan->epochs * 4 * n * p * c;
    if (T > 1) flops += (double)public_plan->epochs * n * T * m * (d + c);
    flops += (double)public_plan->epochs * 2 * n * s * (d + c) * (T > 1 ? 2 : 1) + batches * 2 * p * q * c;
    flops += 2 * s * s * d + 40 * s * s * q + 2 * p * s * (d + q);
    double doubles = 0;
    if (self->plan->projector) {
        double sp = (double)public_plan->projector_nystrom, qp = (double)public_plan->projector_eigenpairs,
               b = (double)public_plan->projector_block;
        double passes = (double)public_plan->projector_passes;
        if (strcmp(public_plan->projector, "exact") == 0)
            doubles = p * p * p / 3 + projections * 4 * p * p * c, flops += 2 * p * p * d;
        else if (strcmp(public_plan->projector, "pcg") == 0)
            flops += 2 * p * p * d + projections * passes * 2 * p * p * c;
        else
            flops += projections * passes * 2 * p * p * (d + c), doubles = projections * passes * p * b * b / 3;
        if (strcmp(public_plan->projector, "bgs") == 0) flops -= projections * passes * p * p * d; /* a pair once */
        flops += 2 * p * sp * (d + qp) + 40 * sp * sp * qp;
    }
    public_plan->flops = flops + doubles;
    public_plan->seconds = flops / self->rate + doubles / self->rate_double;
}

/* ---- Exact solvers ------------------------------------------------------------------------------------------- */

/* Rows that conjugate gradients read at a time: in host memory so few that their block stays in the processor's cache
   between the two products with it. */
static int64_t read_rows(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    mrc_backend *backend = request->context->backend;
    int64_t rows = MRC_READ_ROWS;
    bool host = !backend || backend->ops->capabilities(backend).memory == MERCER_HOST;
    while (host && rows > FEWEST_READ_ROWS && rows * request->p * self->real_size > READ_BLOCK_BYTES) rows /= 2;
    return mrc_min(rows, request->n);
}

/* Conjugate gradients stop by themselves, as a rule long before the most steps they may take. */
static double expected_steps(const mrc_planner *self)
{
    return (double)mrc_min(self->public_plan->epochs, CG_TYPICAL_STEPS);
}

/* Small eigenvalues of K(Z,Z) are not so small that half precision would lose them, or a polynomial not reach them. */
static bool is_rough(const mrc_planner *self)
{
    return self->request->roughness >= ROUGH;
}

/* Seconds that a preconditioner of conjugate gradients takes: to make it, and in all steps. */
static double factor_seconds(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    double p = (double)request->p, d = (double)request->d, steps = expected_steps(self);
    double factors = self->options->lambda > 0 ? 2 : 1;
    return factors * (2 * p * p * d + p * p * p / 3) / self->rate_double + steps * 4 * 8 * p * p / self->bandwidth;
}

static double preconditioner_seconds(const mrc_planner *self, const mrc_preconditioner_sizes *preconditioner_sizes)
{
    const mrc_plan_request *request = self->request;
    double p = (double)request->p, d = (double)request->d, c = (double)request->c, steps = expected_steps(self);
    double s = (double)preconditioner_sizes->sample, q = (double)preconditioner_sizes->basis,
           products = 2 * DEFLATED_DEGREE;
    double stored = p * p * (double)mrc_dtype_size(preconditioner_sizes->stored);
    /* The sample's eigenvalues are LAPACK's work, which has one thread. */
    double singles = 2 * p * (s + p) * (d + q) + 12 * p * q * q + steps * products * 2 * p * p * c;
    return singles / self->rate + 4 * s * s * s / (self->rate_double / request->threads) +
           steps * products * stored / self->bandwidth;
}

/* How conjugate gradients are preconditioned: by the exact factor while it fits and is not much slower, and unless the
   centers are in shards for ranks, each of which would need the whole of it (that alone decides: the number of ranks
   must not). Half precision where nothing but the preconditioner sees it: a ridge is a product with K(Z,Z) too. */
static void choose_preconditioner(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    int64_t s = mrc_max(FEWEST_SAMPLE, mrc_min(request->p / 15, LARGEST_SAMPLE));
    bool half = request->real == MERCER_F32 && request->bounded && self->options->lambda == 0;
    mrc_preconditioner_sizes preconditioner_sizes = {
        .sample = s, .basis = s * 3 / 10, .stored = half ? MERCER_F16 : request->real};
    mrc_cg_size size = cg_size(self, self->public_plan->batch);
    int64_t exact = mrc_exact_cg_bytes(&size);
    size.preconditioner_sizes = preconditioner_sizes;
    int64_t preconditioner = mrc_exact_cg_bytes(&size);
    bool slow = is_rough(self) && request->p > 2 * s &&
                factor_seconds(self) > PREFER_EXACT * preconditioner_seconds(self, &preconditioner_sizes);
    bool shared = is_rough(self) && request->p > SHARED_SAMPLES * s && request->shards > 1;
    /* Half the budget: what is read again and again, K(X,Z), wants to be kept as well. */
    bool large = exact > self->plan->budget / 2 && preconditioner < exact;
    if (slow || shared || large) self->plan->preconditioner_sizes = preconditioner_sizes;
}

bool mrc_plan_exact_solver(mrc_planner *self, bool direct)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *public_plan = self->public_plan;
    double n = (double)request->n, p = (double)request->p, d = (double)request->d, c = (double)request->c;
    public_plan->batch = direct ? mrc_min(MRC_READ_ROWS, request->n) : read_rows(self);
    public_plan->epochs = direct ? 1 : self->options->epochs > 0 ? self->options->epochs : CG_STEPS;
    snprintf(public_plan->projector, sizeof public_plan->projector, "none");
    if (!direct) choose_preconditioner(self);
    mrc_cg_size size = cg_size(self, public_plan->batch);
    int64_t own =
        direct ? mrc_exact_direct_bytes(request->p, request->c, public_plan->batch) : mrc_exact_cg_bytes(&size);
    int64_t base = own + workspace_bytes(self) + request->p * request->c * self->real_size * 3;
    int64_t block = public_plan->batch * request->p * self->real_size, left = self->plan->budget - base;
    public_plan->bytes = base;
    if (left < 0) return false;
    self->plan->keep_bytes = direct ? 0 : mrc_min(block, left / 2);
    left -= self->plan->keep_bytes;
    int64_t cache = request->n * request->p * self->real_size + request->n;
    int64_t half = request->n * request->p * 2 + request->n;
    bool may = !direct && self->options->cache != MERCER_OFF && request->rows_known && self->plan->keep_bytes == block;
    public_plan->cache_data = may && cache <= left * 9 / 10;
    /* Large caches are read at the speed of memory: half the bytes, half the time (see normal.c for what they cost). */
    if (may && request->real == MERCER_F32 && request->bounded && is_rough(self) && half <= left * 9 / 10 &&
        (!public_plan->cache_data || cache > HALF_CACHE_BYTES))
        public_plan->cache_data = MRC_CACHE_HALF, cache = half;
    public_plan->cache_centers = !direct && self->plan->preconditioner_sizes.stored == MERCER_F16 ? MRC_CACHE_HALF : 1;
    public_plan->nystrom = self->plan->preconditioner_sizes.sample,
    public_plan->eigenpairs = self->plan->preconditioner_sizes.basis;
    public_plan->bytes = base + self->plan->keep_bytes + (public_plan->cache_data ? cache : 0);
    double steps = expected_steps(self), doubles, singles, bytes = 0, more = 0;
    public_plan->flops = 0;
    if (direct) {
        bool rounded = request->real == MERCER_F32; /* see direct.c */
        doubles = 2 * n * p * d + 2 * n * p * p + (rounded ? 4 : 2) * p * p * p / 3;
        singles = 2 * n * p * (d + c); /* the loss */
    } else {
        const mrc_preconditioner_sizes *preconditioner_sizes = &self->plan->preconditioner_sizes;
        double q = (double)preconditioner_sizes->basis, s = (double)preconditioner_sizes->sample;
        doubles = q > 0 ? 0 : 2 * p * p * d + p * p * p / 3 + steps * 4 * p * p * c;
        singles = 2 * n * p * d * (public_plan->cache_data ? 1 : steps) + steps * 4 * n * p * c;
        bytes = steps * (public_plan->cache_data ? (double)cache : 0);
        more = q > 0 ? preconditioner_seconds(self, preconditioner_sizes) : factor_seconds(self);
        public_plan->flops = q > 0 ? 2 * p * (p + s) * (d + q) + steps * 4 * DEFLATED_DEGREE * p * p * c : doubles;
        doubles = 0;
    }
    public_plan->flops += doubles + singles;
    public_plan->seconds = doubles / self->rate_double + singles / self->rate + bytes / self->bandwidth + more;
    return true;
}
