/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plan costs on several ranks: bytes on the wire, seconds, memory of a rank, a checkpoint.
 *
 * Letters as in plan.c; R ranks, S shards, e bytes of a weight, x bytes of a feature. Bytes that a rank sends, the mean
 * over ranks:
 *
 *   sum of N elements    (nodes + 1) N e (R - 1) / R        nodes: what is left of a rank's shards in the tree, about
 *                        one;
 *                        nodes N e (R - 1) if N e <= 8192   in one round
 *   rows by their owners N e (R - 1) / R
 *
 *   batch       predictions, the temporary centers' with them: sum of m c;  ridge: sum of q c;  two flags
 *   projection  exact p c rows;   pcg: a pass p c rows, p (c + d x/e) if K(Z,Z) is not kept, and a sum of q c;
 *               bgs: a pass p d x/e rows and, for each block, sums of b c and q c;   ep2: p (c + q + d x/e) rows
 *   epoch       n / m batches, their projections, and the validation's sum
 *
 *   cg          an epoch is a step: n / m batches, and in place of projections once M^-1 r, 7 column sums, and with a
 *               ridge two products with K(Z,Z). M^-1 deflated: 2 k products, p c rows each, and 2 (k + 2) sums of q c,
 *               k: the polynomial's degree, for which its typical one stands; or with a factor: 8 p c rows. (Now and
 *               then alpha rides along and doubles a batch's sum: not counted.)
 *
 * Seconds on the wire: bytes / bandwidth + rounds x latency. What all ranks compute alike (products with the
 * preconditioner's sample, eigensystems) does not get faster with R; everything that has a row for each center does.
 */
#include "plan/plan_ranks.h"

#include "comm/comm.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "plan/plan_parts.h"
#include "solvers/projectors/projector_parts.h"

#include <math.h>
#include <string.h>

#define LATENCY 20e-6

typedef struct wire {
    double ranks, nodes;  /* nodes: mean over ranks */
    double bytes, rounds; /* so far */
} wire;

/* `times` sums of so many bytes each. */
static void add_sums(wire *self, double bytes, double times)
{
    if (self->ranks < 2 || bytes <= 0) return;
    bool one = bytes <= MRC_ONE_ROUND_BYTES;
    self->bytes += times * (one ? self->nodes * bytes * (self->ranks - 1)
                                : (self->nodes + 1) * bytes * (self->ranks - 1) / self->ranks);
    self->rounds += times * (one ? 1 : 2);
}

static void add_rows(wire *self, double bytes, double rounds)
{
    if (self->ranks < 2 || bytes <= 0) return;
    self->bytes += bytes * (self->ranks - 1) / self->ranks;
    self->rounds += rounds;
}

static void add_flags(wire *self, double count)
{
    if (self->ranks < 2) return;
    self->bytes += count * (self->ranks - 1);
    self->rounds += count;
}

/* What projecting sends: mrc_project and the kinds' own. */
static void add_projection(wire *self, const mercer_plan *plan, const mercer_shape *shape, int shards, double e,
                           double x)
{
    double p = (double)shape->centers, c = (double)shape->outputs, d = (double)shape->features;
    double q = (double)plan->projector_eigenpairs, passes = (double)plan->projector_passes;
    double strips = ceil(p / (double)mrc_collect_rows(shape->centers, shards)), norm = 8 * c;
    add_sums(self, norm, 2);
    if (strcmp(plan->projector, "exact") == 0) {
        add_rows(self, p * c * e, 1);
        return;
    }
    if (strcmp(plan->projector, "pcg") == 0) {
        bool kept = plan->cache_centers;
        add_sums(self, q * c * e, passes + 1);
        add_sums(self, norm, 3 * passes + 1);
        add_rows(self, passes * p * (c * e + (kept ? 0 : d * x)), passes * strips * (kept ? 1 : 2));
        return;
    }
    bool bgs = strcmp(plan->projector, "bgs") == 0;
    double block = bgs ? (double)plan->projector_block : fmin(p, 8192), blocks = ceil(p / fmax(block, 1));
    add_sums(self, norm, passes);
    add_rows(self, passes * p * (d * x + (bgs ? 0 : (c + q) * e)), passes * blocks * (bgs ? 1 : 3));
    if (!bgs) return;
    add_sums(self, p / blocks * c * e, passes * blocks);
    add_sums(self, q * c * e, passes * (blocks + 1));
}

/* What a step of conjugate gradients sends beside the batches of its pass: cg.c, normal_factor.c,
   polynomial_preconditioner.c. */
static void add_cg_step(wire *self, const mercer_plan *plan, const mercer_shape *shape, double e)
{
    double p = (double)shape->centers, c = (double)shape->outputs, q = (double)plan->eigenpairs, k = DEFLATED_DEGREE;
    bool preconditioner = plan->eigenpairs > 0;
    double products = plan->lambda > 0 ? 2 : 0,
           norms = (preconditioner ? 7 : 6) + (plan->lambda > 0 ? preconditioner ? 3 : 1 : 0);
    if (preconditioner) {
        add_sums(self, q * c * e, 2 * (k + 2));
        add_rows(self, (2 * k + products) * p * c * e, 2 * k + products);
    } else {
        add_rows(self, (1 + products) * p * c * 8, 1 + products);
    }
    add_sums(self, 8 * c, norms);
    add_flags(self, 4); /* weights are finite; what the trainer agrees on after a step */
}

static double mean_nodes(int shards, int ranks)
{
    double nodes = 0;
    for (int r = 0; r < ranks; r++) {
        int64_t first, count;
        mrc_share(shards, ranks, r, &first, &count);
        nodes += mrc_comm_node_count(shards, (int)first, (int)(first + count));
    }
    return nodes / ranks;
}

/* ---- Memory and checkpoints ----------------------------------------------------------------------------------- */

/* Fields of an iteration (iteration.c, trainer.c, projectors): columns of a matrix with a row for each center. */
static double field_columns(const mercer_plan *plan, double c)
{
    double columns = (8 + plan->carry) * c + (double)plan->eigenpairs;
    if (strcmp(plan->projector, "bgs") == 0) columns += 2 * (double)plan->projector_eigenpairs;
    if (strcmp(plan->projector, "pcg") == 0) columns += (double)plan->projector_eigenpairs + 3 * c;
    if (strcmp(plan->projector, "ep2") == 0) columns += (double)plan->projector_eigenpairs;
    return columns;
}

/* Conjugate gradients: vectors of a row for each center, and what the preconditioner needs (normal.c,
   polynomial_preconditioner.c). */
static void count_cg_memory(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape, double e,
                            double x)
{
    double p = (double)shape->centers, c = (double)shape->outputs, d = (double)shape->features;
    double n = (double)shape->samples, m = (double)plan->batch, s = (double)plan->nystrom, q = (double)plan->eigenpairs;
    double vectors = 8 * 10 * c + 4 * c * e, set_up = 0; /* six, both, sum; v, h */
    double shared = p * (d * x + 3 * c * e + vectors) + m * p * e;
    double whole = m * (d * x + 4 * c * e + 3 * c * e) + 2 * floor((double)out->shards / out->ranks) * m * c * e;
    if (plan->cache_data) shared += n * p * (plan->cache_data == MRC_CACHE_HALF ? 2 : e), whole += n;
    if (q > 0) {
        shared += p * p * (plan->cache_centers == MRC_CACHE_HALF ? 2 : e) + p * (3 * q + 3 * c) * e;
        whole += 2 * p * c * e + 64 * p * e; /* V, as it is and as products take it; a few rows of K */
        set_up = fmax(fmin(1024, p) * (d * x + q * e), s * (d * x + q * e) + 1.3 * 8 * s * s);
    } else {
        whole += 8 * p * (p * (plan->lambda > 0 ? 2 : 1) + 2 * c) + p * d * x;
    }
    out->shared_bytes = shared / out->ranks;
    out->replicated_bytes = whole + set_up;
    out->checkpoint_bytes = p * (d * x + c * e + 4 * 8 * c); /* the model; alpha, the best, residual, direction */
}

static void count_memory(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape, double e, double x)
{
    double p = (double)shape->centers, c = (double)shape->outputs, d = (double)shape->features;
    double n = (double)shape->samples, m = (double)plan->batch, s = (double)plan->nystrom, q = (double)plan->eigenpairs;
    double temporary = plan->period > 1 ? (double)plan->period * m * (d * x + c * e) : 0;
    double shared = p * (d * x + c * e + field_columns(plan, c) * e) + m * p * e + temporary;
    if (plan->cache_data) shared += n * p * (plan->cache_data == 2 ? 2 : e);
    if (plan->cache_centers && strcmp(plan->projector, "pcg") == 0) shared += p * p * e;
    if (strcmp(plan->projector, "bgs") == 0) shared += p * (d * x + 16); /* sorted by blocks, and the order */
    double whole = s * (d * x + q * e) + m * (d * x + 3 * c * e) + m * s * e;
    if (strcmp(plan->projector, "exact") == 0) whole += 8 * p * p;
    if (strcmp(plan->projector, "bgs") == 0) whole += 8 * pow((double)plan->projector_block, 2);
    double set_up = 1.3 * 8 * fmax(s * s, pow((double)plan->projector_nystrom, 2));
    out->shared_bytes = shared / out->ranks;
    out->replicated_bytes = fmax(whole, set_up);
    /* The model, and what steps change: weights, good, sum, carried, average; temporary centers; the sample's
       weights. */
    out->checkpoint_bytes = p * (d * x + c * e * (5 + plan->carry)) + temporary + s * c * e;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

/* Flops of the projections of an epoch: shared out, and done by every rank (factors of blocks). */
static void count_projections(const mercer_plan *plan, const mercer_shape *shape, double batches, double *shared,
                              double *alike)
{
    double p = (double)shape->centers, d = (double)shape->features, c = (double)shape->outputs;
    double passes = ceil(batches / fmax(1, (double)plan->period)) * (double)plan->projector_passes;
    bool bgs = strcmp(plan->projector, "bgs") == 0;
    *shared = *alike = 0;
    if (bgs) *shared = passes * p * p * (d + 2 * c); /* every pair once */
    if (bgs) *alike = passes * p * pow((double)plan->projector_block, 2) / 3;
    if (strcmp(plan->projector, "ep2") == 0) *shared = passes * 2 * p * p * (d + c);
    if (strcmp(plan->projector, "pcg") == 0) *shared = passes * 2 * p * p * c;
}

static void count_seconds(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape, double batches)
{
    double n = (double)shape->samples, c = (double)shape->outputs, d = (double)shape->features;
    double s = (double)plan->nystrom, rate = plan->seconds > 0 ? plan->flops / plan->seconds : 1;
    double epochs = fmax(1, (double)plan->epochs), projecting, factors;
    if (strcmp(plan->solver, "cg") == 0) { /* factors and products with them are every rank's work */
        double p = (double)shape->centers, steps = fmin(epochs, CG_TYPICAL_STEPS);
        double whole = plan->eigenpairs > 0 ? 0 : 2 * p * p * d + p * p * p / 3 + steps * 4 * p * p * c;
        out->compute_seconds = (fmax(0, plan->flops - whole) / out->ranks + whole) / steps / rate;
        return;
    }
    count_projections(plan, shape, batches, &projecting, &factors);
    double alike = 2 * n * s * (d + c) * (plan->period > 1 ? 2 : 1) + factors; /* an epoch, every rank */
    double set_up = 2 * s * s * d + 40 * s * s * (double)plan->eigenpairs;     /* once, every rank */
    double shared = fmax(0, plan->flops - set_up - epochs * alike) / epochs;   /* an epoch, shared out */
    out->compute_seconds = (shared / out->ranks + alike) / rate;
    out->projection_share = (projecting / out->ranks + factors) / rate / fmax(out->compute_seconds, 1e-300);
}

void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network)
{
    double e = (double)mrc_dtype_size(shape->weights), x = (double)mrc_dtype_size(shape->points);
    double m = (double)plan->batch, c = (double)shape->outputs,
           latency = network->latency > 0 ? network->latency : LATENCY;
    double batches = ceil((double)shape->samples / fmax(m, 1));
    mrc_comm comm = {.ranks = network->ranks, .shards = network->shards};
    int shards = mrc_comm_shards(&comm, shape->centers);
    *out = (mercer_rank_plan){.struct_size = sizeof *out, .ranks = network->ranks, .shards = shards};
    int64_t first;
    mrc_comm_rows(&comm, shape->centers, 0, &first, &out->centers_a_rank);
    wire batch = {.ranks = network->ranks, .nodes = mean_nodes(shards, network->ranks)}, projection = batch;
    add_sums(&batch, m * c * e, 1);
    bool cg = strcmp(plan->solver, "cg") == 0, projects = strcmp(plan->projector, "none") != 0;
    if (plan->lambda > 0 && !cg) add_sums(&batch, (double)plan->eigenpairs * c * e, 1);
    if (!cg) add_flags(&batch, 2);
    if (projects) add_projection(&projection, plan, shape, shards, e, x);
    if (cg) add_cg_step(&projection, plan, shape, e);
    wire epoch = batch;
    double projections = cg ? 1 : projects ? ceil(batches / fmax(1, (double)plan->period)) : 0;
    epoch.bytes = batches * batch.bytes + projections * projection.bytes;
    epoch.rounds = batches * batch.rounds + projections * projection.rounds;
    if (cg) { /* batches are large: the last one is smaller */
        epoch = projection;
        add_sums(&epoch, m * c * e, batches - 1);
        add_sums(&epoch, ((double)shape->samples - (batches - 1) * m) * c * e, 1);
    }
    double rows = (double)network->validation_rows, whole = floor(rows / 2048);
    add_sums(&epoch, 2048 * c * e, whole);
    add_sums(&epoch, (rows - 2048 * whole) * c * e, 1);
    double speed = network->bytes_per_second;
    out->batch_bytes = batch.bytes, out->projection_bytes = projection.bytes, out->epoch_bytes = epoch.bytes;
    out->batch_seconds = batch.bytes / speed + batch.rounds * latency;
    out->projection_seconds = projection.bytes / speed + projection.rounds * latency;
    out->epoch_seconds = epoch.bytes / speed + epoch.rounds * latency;
    if (cg)
        count_cg_memory(out, plan, shape, e, x);
    else
        count_memory(out, plan, shape, e, x);
    count_seconds(out, plan, shape, batches);
}

/* ---- Room on devices ------------------------------------------------------------------------------------------ */

typedef struct room {
    uint64_t place;
    int64_t bytes;
} room;

mercer_status mrc_rank_room(mrc_backend *backend, mrc_comm *comm, int64_t *each)
{
    room own = {.place = backend->ops->capabilities(backend).place};
    char *records;
    *each = 0;
    if (own.place) own.bytes = mrc_plan_share(true, backend->ops->free_memory(backend));
    MRC_TRY(mrc_comm_records(comm, &own, sizeof own, &records));
    const room *all = (const room *)(const void *)records;
    int64_t least = INT64_MAX;
    for (int r = 0; r < comm->ranks; r++) {
        int64_t sharing = 1; /* itself */
        for (int i = 0; i < comm->ranks; i++) sharing += i != r && all[i].place == all[r].place;
        least = mrc_min(least, all[r].bytes / sharing);
    }
    mrc_free(comm->context, records);
    *each = least;
    return MERCER_OK;
}
