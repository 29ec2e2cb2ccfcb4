/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a plan on several ranks, per epoch. Solver, projector and caches report their costs with the messages
 * between R ranks included (cost.h); this file adds them up.
 *
 *   bytes     divided data shrinks with R, replicated data does not; the backend's scratch is not counted
 *   compute   the work on the centers is divided by R; products with the preconditioner's sample and factorizations are
 *             repeated by all ranks. Both at the plan's mean rate
 *   wire      bytes / bandwidth + rounds x latency
 */
#include "plan/plan.h"

#include "comm/comm.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

/* seconds per round of messages if the network's latency is not given */
#define LATENCY 20e-6

enum { VALIDATION_ROWS = 2048 }; /* number of rows predicted at a time, as in training/trainer_progress.c */

/* Returns the number of partial sums that a rank sends in a summation over all shards, averaged over the ranks. */
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

/* Reconstructs from a public plan what the cost functions read. Callers of mercer_plan_ranks may have stored only the
   public plan. */
static mrc_plan plan_of(const mercer_plan *plan, const mrc_problem *problem)
{
    mrc_plan out = {.public_plan = *plan,
                    .solver = mrc_solver_find(plan->solver),
                    .projector = mrc_projector_find(plan->projector),
                    .preconditioner_sizes = {.sample = plan->nystrom,
                                             .basis = plan->eigenpairs,
                                             .stored = plan->cache_centers == MRC_CACHE_HALF ? MERCER_F16
                                                       : problem->real_size == 8             ? MERCER_F64
                                                                                             : MERCER_F32},
                    .batch_block_bytes = plan->batch * problem->p * problem->real_size};
    if (out.projector) out.projector_options = mrc_projector_options_of(plan, out.projector);
    return out;
}

/* Sets the bytes per rank, and the bytes of a checkpoint, which rank 0 writes. */
static void count_memory(mercer_rank_plan *out, const mrc_problem *problem, const mrc_plan *plan, const mrc_cost *cost)
{
    double c = (double)problem->c, e = (double)problem->real_size, points = (double)(problem->d * problem->point_size);
    double model = (double)problem->p * (points + c * e), batch = (double)plan->public_plan.batch;
    mrc_cost blocks;
    mrc_kernel_blocks_cost(problem, plan->batch_block_bytes, plan->public_plan.cache_data, &blocks);
    mrc_bytes held = mrc_bytes_add(mrc_bytes_add(cost->held, cost->peak), blocks.held);
    /* A batch as the source returns it, its targets in training units, and the shards' parts of predictions. */
    held.replicated +=
        batch * (points + 8 * c + 3 * c * e) + ceil((double)problem->shards / problem->ranks) * batch * c * e;
    out->shared_bytes = (model + held.shared) / problem->ranks;
    out->replicated_bytes = fmax(held.replicated, cost->held.replicated + cost->set_up.replicated);
    out->checkpoint_bytes = model + cost->state;
}

/* Returns the flops of one rank: its share of divided work, and all of the repeated work. */
static double rank_flops(const mrc_cost *cost, int ranks)
{
    return (mrc_cost_flops(cost) - cost->alike) / ranks + cost->alike;
}

void mrc_plan_ranks(mercer_rank_plan *out, const mercer_plan *plan, const mercer_shape *shape,
                    const mercer_network *network, bool float_factors)
{
    double latency = network->latency > 0 ? network->latency : LATENCY, speed = network->bytes_per_second;
    mrc_comm comm = {.ranks = network->ranks, .shards = network->shards};
    int shards = mrc_comm_shards(&comm, shape->centers);
    mrc_problem problem = {.n = shape->samples,
                           .p = shape->centers,
                           .d = shape->features,
                           .c = shape->outputs,
                           .real_size = mrc_dtype_size(shape->weights),
                           .point_size = mrc_dtype_size(shape->points),
                           .float_factors = float_factors,
                           .shards = shards,
                           .ranks = network->ranks,
                           .nodes = mean_nodes(shards, network->ranks)};
    mrc_plan parts = plan_of(plan, &problem);
    mrc_solver_cost cost = {0};
    parts.solver->ops->cost(&problem, &parts, &cost);
    *out = (mercer_rank_plan){.struct_size = sizeof *out, .ranks = network->ranks, .shards = shards};
    int64_t first;
    mrc_comm_rows(&comm, shape->centers, 0, &first, &out->centers_a_rank);
    mrc_cost projections = {0}, epoch = {0};
    mrc_cost_repeat(&projections, &cost.projection, cost.projections);
    mrc_cost_repeat(&epoch, &cost.batch, cost.batches);
    mrc_cost_repeat(&epoch, &projections, 1);
    double rows = (double)network->validation_rows, whole = floor(rows / VALIDATION_ROWS);
    double row_bytes = (double)(problem.c * problem.real_size);
    mrc_cost_sums(&epoch, &problem, VALIDATION_ROWS * row_bytes, whole);
    mrc_cost_sums(&epoch, &problem, (rows - VALIDATION_ROWS * whole) * row_bytes, 1);
    out->batch_bytes = cost.batch.sent, out->projection_bytes = cost.projection.sent, out->epoch_bytes = epoch.sent;
    out->batch_seconds = cost.batch.sent / speed + cost.batch.rounds * latency;
    out->projection_seconds = cost.projection.sent / speed + cost.projection.rounds * latency;
    out->epoch_seconds = epoch.sent / speed + epoch.rounds * latency;
    count_memory(out, &problem, &parts, &cost.set_up);
    double rate = plan->seconds > 0 ? plan->flops / plan->seconds : 1;
    out->compute_seconds = rank_flops(&epoch, network->ranks) / rate;
    out->projection_share = rank_flops(&projections, network->ranks) / rate / fmax(out->compute_seconds, 1e-300);
}

/* ---- Device memory ----------------------------------------------------------------------------------------------- */

typedef struct device_memory {
    uint64_t place;
    int64_t bytes;
} device_memory;

mercer_status mrc_rank_memory(mrc_backend *backend, mrc_comm *comm, int64_t *each)
{
    device_memory own = {.place = backend->ops->capabilities(backend, false).place}, *all;
    *each = 0;
    if (own.place) own.bytes = mrc_plan_share(true, backend->ops->free_memory(backend));
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &own, sizeof own, &all));
    int64_t least = INT64_MAX;
    for (int r = 0; r < comm->ranks; r++) {
        int64_t sharing = 1; /* rank r itself */
        for (int i = 0; i < comm->ranks; i++) sharing += i != r && all[i].place == all[r].place;
        least = mrc_min(least, all[r].bytes / sharing);
    }
    *each = least;
    return MERCER_OK;
}
