/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plan costs: bytes that are held at the peak, flops of the dominant products, and seconds at the nominal rate
 * of the machine.
 *
 *   iteration  fields p (6 c + q), temporary centers T m (d + c), sample s (d + q), block m p, projector, cache n p
 *   direct     3 p^2 doubles;  2 n p d + 3 n p^2 + 2/3 p^3 flops
 *   cg         1 or 2 p^2 doubles, cache n p;  2 n p d + 2/3 p^3 + steps (4 n p c + 8 p^2 c) flops
 */
#include "algo/plan_parts.h"

#include "algo/judges.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory and cost ----------------------------------------------------------------------------------------- */

static mrc_iteration_options iteration_options(const mrc_planner *self)
{
    return (mrc_iteration_options){.update = self->plan->preset->update,
                                   .batch = self->shown->batch,
                                   .period = self->shown->period,
                                   .carry = self->shown->carry,
                                   .ridge = self->shown->lambda};
}

/*
 * On a device: its copy of the centers, what its operations hold, and the copies that the host makes of weights (to look
 * at them, to save them).
 */
static int64_t device_bytes(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    const mercer_plan *shown = self->shown;
    mrc_backend *backend = request->context->backend;
    int64_t widest = mrc_max(2 * request->c, mrc_max(shown->eigenpairs, shown->projector_eigenpairs));
    int64_t s = mrc_max(shown->nystrom, shown->projector_nystrom);
    mrc_extent work = {.rows = mrc_max(shown->batch, mrc_max(s, shown->projector_block)),
                       .centers = mrc_max(request->p, shown->period * shown->batch),
                       .features = request->d,
                       .outputs = request->c,
                       .wide = widest,
                       .eigen = mrc_max(mrc_eigensystem_largest(shown->nystrom, shown->eigenpairs),
                                        mrc_eigensystem_largest(shown->projector_nystrom, shown->projector_eigenpairs)),
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
    /* one batch as the source hands it out, and the ranks' parts of predictions */
    return (self->device ? device_bytes(self) : request->threads * tile) +
           self->shown->batch * (request->d * self->point_size + 3 * request->c * self->real_size) +
           (request->ranks > 1 ? request->ranks * self->shown->batch * request->c * self->real_size : 0);
}

/* Polishing is a judge's work: the factor of K(Z,Z) and the vectors of conjugate gradients. */
static int64_t polish_bytes(const mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    if (self->options->polish == 0) return 0;
    return mrc_judge_cg_bytes(request->p, request->c, mrc_min(MRC_READ_ROWS, request->n), self->options->lambda);
}

mercer_status mrc_plan_iteration_memory(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *shown = self->shown;
    mrc_iteration_options parts = iteration_options(self);
    int64_t s = shown->nystrom, q = shown->eigenpairs, held = 0, peak = 0;
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
    /* Devices keep whole tiles of centers. */
    int64_t block = mrc_round_up(shown->batch, self->device ? 16 : 1) *
                    mrc_round_up(request->p, self->device ? 256 : 1) * self->kept_size;
    if (left < 0 || set_up + base > self->plan->budget)
        return mrc_fail(request->context, MERCER_ERROR_MEMORY,
                        "the memory budget of %.2f GiB is too small: %s with p = %lld needs %.2f GiB; lower p or s, or "
                        "raise memory",
                        mrc_gib((double)self->plan->budget), shown->solver, (long long)request->p,
                        mrc_gib((double)mrc_max(before_block, set_up + base)));
    self->plan->keep_bytes = mrc_min(block, left / 2);
    left -= self->plan->keep_bytes;
    int64_t cache = request->n * request->p * self->real_size + request->n;
    int64_t half = request->n * request->p * 2 + request->n;
    bool again = shown->epochs > 1 || self->options->cache == MERCER_ON;
    bool may = self->options->cache != MERCER_OFF && request->rows_known && again && self->plan->keep_bytes == block;
    shown->cache_data = may && cache <= left * 9 / 10;
    /* Half precision only where float does not fit, and only for values that it holds. Polishing is exact work. */
    if (may && !shown->cache_data && request->real == MERCER_F32 && request->bounded && self->options->polish == 0 &&
        half <= left * 9 / 10)
        shown->cache_data = MRC_CACHE_HALF, cache = half;
    shown->bytes = mrc_max(set_up + base, before_block + self->plan->keep_bytes + (shown->cache_data ? cache : 0));
    return MERCER_OK;
}

void mrc_plan_iteration_cost(mrc_planner *self)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *shown = self->shown;
    double n = (double)request->n, p = (double)request->p, d = (double)request->d, c = (double)request->c;
    double s = (double)shown->nystrom, q = (double)shown->eigenpairs, m = (double)shown->batch,
           T = (double)shown->period;
    double evaluations = shown->cache_data ? 1 : (double)shown->epochs;
    double batches = ceil(n / m) * (double)shown->epochs, projections = ceil(batches / T);
    double flops = 2 * n * p * d * evaluations + (double)shown->epochs * 4 * n * p * c;
    if (T > 1) flops += (double)shown->epochs * n * T * m * (d + c);
    flops += (double)shown->epochs * 2 * n * s * (d + c) * (T > 1 ? 2 : 1) + batches * 2 * p * q * c;
    flops += 2 * s * s * d + 40 * s * s * q + 2 * p * s * (d + q);
    double doubles = 0;
    if (self->plan->projector) {
        double sp = (double)shown->projector_nystrom, qp = (double)shown->projector_eigenpairs,
               b = (double)shown->projector_block;
        double passes = (double)shown->projector_passes;
        if (strcmp(shown->projector, "exact") == 0)
            doubles = p * p * p / 3 + projections * 4 * p * p * c, flops += 2 * p * p * d;
        else if (strcmp(shown->projector, "pcg") == 0)
            flops += 2 * p * p * d + projections * passes * 2 * p * p * c;
        else
            flops += projections * passes * 2 * p * p * (d + c), doubles = projections * passes * p * b * b / 3;
        if (strcmp(shown->projector, "bgs") == 0) flops -= projections * passes * p * p * d; /* a pair once */
        flops += 2 * p * sp * (d + qp) + 40 * sp * sp * qp;
    }
    shown->flops = flops + doubles;
    shown->seconds = flops / self->rate + doubles / self->rate_double;
}

/* ---- Judges -------------------------------------------------------------------------------------------------- */

bool mrc_plan_judge(mrc_planner *self, bool direct)
{
    const mrc_plan_request *request = self->request;
    mercer_plan *shown = self->shown;
    double n = (double)request->n, p = (double)request->p, d = (double)request->d, c = (double)request->c;
    shown->batch = mrc_min(MRC_READ_ROWS, request->n);
    shown->epochs = direct ? 1 : self->options->epochs > 0 ? self->options->epochs : CG_STEPS;
    snprintf(shown->projector, sizeof shown->projector, "none");
    int64_t own = direct ? mrc_judge_direct_bytes(request->p, request->c, shown->batch)
                         : mrc_judge_cg_bytes(request->p, request->c, shown->batch, shown->lambda);
    int64_t base = own + workspace_bytes(self) + request->p * request->c * self->real_size * 3;
    int64_t block = shown->batch * request->p * self->real_size, left = self->plan->budget - base;
    shown->bytes = base;
    if (left < 0) return false;
    self->plan->keep_bytes = direct ? 0 : mrc_min(block, left / 2);
    left -= self->plan->keep_bytes;
    int64_t cache = request->n * request->p * self->real_size + request->n;
    shown->cache_data = !direct && self->options->cache != MERCER_OFF && request->rows_known &&
                        self->plan->keep_bytes == block && cache <= left * 9 / 10;
    shown->cache_centers = 1;
    shown->bytes = base + self->plan->keep_bytes + (shown->cache_data ? cache : 0);
    double steps = (double)shown->epochs, doubles, singles, bytes = 0;
    if (direct) {
        doubles = 2 * n * p * d + 3 * n * p * p + 2 * p * p * p / 3;
        singles = 0;
    } else {
        doubles = 2 * p * p * d + 2 * p * p * p / 3 + steps * 8 * p * p * c / 4;
        singles = 2 * n * p * d * (shown->cache_data ? 1 : steps) + steps * 4 * n * p * c;
        bytes = steps * (shown->cache_data ? 2 * n * p * (double)self->real_size : 0) + steps * 4 * 8 * p * p;
    }
    shown->flops = doubles + singles;
    shown->seconds = doubles / self->rate_double + singles / self->rate + bytes / self->bandwidth;
    return true;
}
