/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost model of the parts of a training run. Every solver, projector, preconditioner and cache describes its own cost
 * as an mrc_cost. The planner (src/plan) adds these up, for one process and for several ranks.
 */
#ifndef MRC_SOLVERS_COST_H
#define MRC_SOLVERS_COST_H

#include "core/context.h"

#include <stdbool.h>

/* Problem sizes and machine properties that costs depend on. */
typedef struct mrc_problem {
    int64_t n, p, d, c;            /* number of samples, centers, features, outputs */
    int64_t real_size, point_size; /* bytes per weight and per feature */
    /* cost per pair and feature of a distance, relative to a matrix product; above 1 for sums of differences; 0 means
       1 */
    double effort;
    bool gathers;       /* devices: cached kernel values are gathered in the type of the weights before each product */
    bool float_factors; /* Cholesky factors exist in float; the matrix is then stored in double next to them */
    int shards;         /* number of shards of the centers */
    int ranks;          /* number of ranks; 0 or 1: a single process, which sends no messages */
    double nodes;       /* number of partial sums that a rank sends in a sum over shards, averaged over the ranks */
} mrc_problem;

/* Return the number of features times `effort`. A pair costs twice this number of flops, at the speed of matrix
   products. */
static inline double mrc_problem_features(const mrc_problem *problem)
{
    return (double)problem->d * (problem->effort > 0 ? problem->effort : 1);
}

/* Return the bytes of memory traffic per cached kernel value of `size` bytes that is used in `products` products. */
static inline double mrc_problem_reads(const mrc_problem *problem, double size, int products)
{
    return problem->gathers ? size + (1 + products) * (double)problem->real_size : size;
}

/* Memory in bytes. shared: total over all ranks, divided among them; replicated: held by every rank. */
typedef struct mrc_bytes {
    double shared, replicated;
} mrc_bytes;

typedef struct mrc_cost {
    mrc_bytes held;   /* bytes allocated while the part exists */
    mrc_bytes peak;   /* additional bytes while the part is used */
    mrc_bytes set_up; /* additional bytes during set-up, when nothing of `peak` is allocated */
    double flops;     /* flops in the type of the weights */
    double doubles;   /* flops in double */
    double serial;    /* flops in double on one thread (LAPACK) */
    double waiting;   /* flops limited by memory bandwidth: their time is the time to read `read` bytes */
    /* flops (of all kinds above) that every rank repeats; all other flops are divided among the ranks */
    double alike;
    double read;         /* bytes that are read by operations limited by memory bandwidth */
    double sent, rounds; /* bytes that a rank sends (mean over ranks), and number of message rounds */
    double state;        /* bytes in a checkpoint */
} mrc_cost;

static inline double mrc_bytes_sum(mrc_bytes bytes)
{
    return bytes.shared + bytes.replicated;
}

static inline mrc_bytes mrc_bytes_add(mrc_bytes a, mrc_bytes b)
{
    return (mrc_bytes){a.shared + b.shared, a.replicated + b.replicated};
}

/* Return the operand with the larger sum: the memory needed by two parts that never exist at the same time. */
static inline mrc_bytes mrc_bytes_larger(mrc_bytes a, mrc_bytes b)
{
    return mrc_bytes_sum(a) >= mrc_bytes_sum(b) ? a : b;
}

/* Convert to an integer number of bytes; INT64_MAX if out of range. */
static inline int64_t mrc_bytes_whole(double bytes)
{
    return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

/* Return the sum of all kinds of flops. */
double mrc_cost_flops(const mrc_cost *cost);
/* Add `times` the work and messages of a part. The memory of the part is not added, because the part exists only
   once. */
void mrc_cost_repeat(mrc_cost *sum, const mrc_cost *part, double times);

/*
 * Add the cost of messages: of `times` sums of b bytes, of rows that their owners send to all, or of `count` flags.
 * With R ranks, a rank sends these bytes:
 *
 *   sum of b bytes          (nodes + 1) b (R - 1) / R;   nodes b (R - 1) in one round if b <= 8192
 *   rows by their owners    b (R - 1) / R
 *   flag                    1 to every other rank
 */
void mrc_cost_sums(mrc_cost *cost, const mrc_problem *problem, double bytes, double times);
void mrc_cost_rows(mrc_cost *cost, const mrc_problem *problem, double bytes, double rounds);
void mrc_cost_flags(mrc_cost *cost, const mrc_problem *problem, double count);

#endif
