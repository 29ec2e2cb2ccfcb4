/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What parts of a training cost. Every solver, projector, preconditioner and cache says it of itself in an mrc_cost;
 * the planner adds them up (src/plan), for one process and for several ranks.
 */
#ifndef MRC_SOLVERS_COST_H
#define MRC_SOLVERS_COST_H

#include "core/context.h"

#include <stdbool.h>

/* The sizes that costs are functions of. */
typedef struct mrc_problem {
    int64_t n, p, d, c;            /* samples, centers, features, outputs */
    int64_t real_size, point_size; /* bytes of a weight, of a feature */
    double effort;                 /* of a feature of a pair, products being 1: sums of differences take longer; 0: 1 */
    bool gathers; /* values that are kept are gathered in the type of weights before they are multiplied: a device's */
    bool float_factors; /* there are Cholesky factors in float, beside which a matrix in double is kept */
    int shards;         /* of the centers */
    int ranks;          /* 0 or 1: one process, which sends nothing */
    double nodes;       /* what is left of a rank's shards in the tree of a sum, mean over ranks */
} mrc_problem;

/* The features of a pair as flops count them: 2 of these for each pair, at the rate of products. */
static inline double mrc_problem_features(const mrc_problem *problem)
{
    return (double)problem->d * (problem->effort > 0 ? problem->effort : 1);
}

/* Bytes that are moved for a kept value of `size` bytes that so many products read. */
static inline double mrc_problem_reads(const mrc_problem *problem, double size, int products)
{
    return problem->gathers ? size + (1 + products) * (double)problem->real_size : size;
}

/* Bytes that are divided among the ranks, of all together, and bytes that every rank holds. */
typedef struct mrc_bytes {
    double shared, whole;
} mrc_bytes;

typedef struct mrc_cost {
    mrc_bytes held;      /* as long as the part is there */
    mrc_bytes peak;      /* on top while it is used */
    mrc_bytes set_up;    /* on top while it is made, when nothing that `peak` counts is there yet */
    double flops;        /* in the type of the weights */
    double doubles;      /* flops in double */
    double serial;       /* flops in double of one thread: LAPACK's */
    double waiting;      /* flops that wait for memory, which `read` counts: they take no time of their own */
    double alike;        /* of all flops, those that every rank does; the others are divided */
    double read;         /* bytes, where reading takes the time */
    double sent, rounds; /* bytes that a rank sends, mean over ranks, in so many rounds of messages */
    double state;        /* bytes of it in a checkpoint */
} mrc_cost;

static inline double mrc_bytes_sum(mrc_bytes bytes)
{
    return bytes.shared + bytes.whole;
}

static inline mrc_bytes mrc_bytes_add(mrc_bytes a, mrc_bytes b)
{
    return (mrc_bytes){a.shared + b.shared, a.whole + b.whole};
}

/* The one that takes more in one process: of things that are never there together. */
static inline mrc_bytes mrc_bytes_larger(mrc_bytes a, mrc_bytes b)
{
    return mrc_bytes_sum(a) >= mrc_bytes_sum(b) ? a : b;
}

/* As a whole number; INT64_MAX for what is beyond. */
static inline int64_t mrc_bytes_whole(double bytes)
{
    return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

/* All flops of it. */
double mrc_cost_flops(const mrc_cost *cost);
/* `times` the work and the messages of a part. What it holds is not added: that is there once. */
void mrc_cost_repeat(mrc_cost *sum, const mrc_cost *part, double times);

/*
 * Bytes that a rank sends, R ranks, S shards:
 *
 *   sum of b bytes          (nodes + 1) b (R - 1) / R;   nodes b (R - 1) in one round if b <= 8192
 *   rows by their owners    b (R - 1) / R
 *   flag                    1 to every other rank
 */
void mrc_cost_sums(mrc_cost *cost, const mrc_problem *problem, double bytes, double times);
void mrc_cost_rows(mrc_cost *cost, const mrc_problem *problem, double bytes, double rounds);
void mrc_cost_flags(mrc_cost *cost, const mrc_problem *problem, double count);

#endif
