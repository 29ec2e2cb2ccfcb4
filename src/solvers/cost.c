/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of costs, and the cost of messages between ranks. */
#include "solvers/cost.h"

#include "comm/comm.h"

double mrc_cost_flops(const mrc_cost *cost)
{
    return cost->flops + cost->doubles + cost->serial + cost->waiting;
}

void mrc_cost_repeat(mrc_cost *sum, const mrc_cost *part, double times)
{
    sum->flops += times * part->flops, sum->doubles += times * part->doubles;
    sum->serial += times * part->serial, sum->waiting += times * part->waiting;
    sum->alike += times * part->alike, sum->read += times * part->read;
    sum->sent += times * part->sent, sum->rounds += times * part->rounds;
}

void mrc_cost_sums(mrc_cost *cost, const mrc_problem *problem, double bytes, double times)
{
    double others = problem->ranks - 1;
    if (problem->ranks < 2 || bytes <= 0) return;
    bool one = bytes <= MRC_ONE_ROUND_BYTES;
    cost->sent += times * bytes * others * (one ? problem->nodes : (problem->nodes + 1) / problem->ranks);
    cost->rounds += times * (one ? 1 : 2);
}

void mrc_cost_rows(mrc_cost *cost, const mrc_problem *problem, double bytes, double rounds)
{
    if (problem->ranks < 2 || bytes <= 0) return;
    cost->sent += bytes * (problem->ranks - 1) / problem->ranks;
    cost->rounds += rounds;
}

void mrc_cost_flags(mrc_cost *cost, const mrc_problem *problem, double count)
{
    if (problem->ranks < 2) return;
    cost->sent += count * (problem->ranks - 1);
    cost->rounds += count;
}
