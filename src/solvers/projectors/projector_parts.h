/* SPDX-License-Identifier: BSD-3-Clause */
/* What the projectors have in common: products with K(Z,Z), safe Cholesky factors, samples of centers. */
#ifndef MRC_SOLVERS_PROJECTORS_PROJECTOR_PARTS_H
#define MRC_SOLVERS_PROJECTORS_PROJECTOR_PARTS_H

#include "solvers/cost.h"
#include "solvers/iteration/eigensystem.h"

enum { MRC_COLLECT_BLOCK = 4096 }; /* centers that are collected at a time, at most */

/* How many of p centers in so many shards: as many as a shard has, so that it falls with the shards. */
int64_t mrc_collect_rows(int64_t p, int shards);

/* Half a unit in the last place of 1. */
double mrc_unit_roundoff(mercer_dtype real);

/* Out field = K(Z,Z) V for a field V, from K(Z here, Z) (rows, p) of type real if kept is not NULL, else evaluated. */
mercer_status mrc_centers_times(mrc_centers *centers, const mercer_matrix *kept, const mercer_matrix *v,
                                const mercer_matrix *out);
/* Makes that K(Z here, Z). */
mercer_status mrc_centers_keep(mrc_centers *centers, mercer_matrix *out);

/* L L' = K(B,B) + shift I, the shift no larger than it must be. */
typedef struct mrc_factor {
    mercer_matrix l; /* (b, b) f64, of the caller */
    double relative; /* in: least shift, relative to the mean of the diagonal; out: what was used */
    double shift;    /* the same, absolute */
    double trace;    /* of K(B,B): an upper bound of its norm */
} mrc_factor;
/* points (b, d). */
mercer_status mrc_factor_kernel(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor);
/* The trace of K(B,B). */
mercer_status mrc_points_trace(mrc_centers *centers, const mercer_matrix *points, double *trace);
/* The relative shift from which on a solution can be rounded to `real` without harm: see projector_parts.c. */
double mrc_factor_safe_shift(mercer_dtype real, int64_t b);
/* True if rounding the solution x of (L L') x = b to `real` may change K x by more than a tenth of |b|. */
bool mrc_factor_too_rough(const mrc_factor *factor, mercer_dtype real, double x_norm, double b_norm);

/* Streams of a projector's seed. */
#define MRC_RANDOM_SAMPLE    UINT64_C(0x5a73) /* the centers an eigensystem is made of: the first s of a permutation */
#define MRC_RANDOM_PARTITION UINT64_C(0x5a62) /* the order in which blocks take the centers */
/* The order of the centers in a pass of the projection under way. */
#define MRC_RANDOM_PASS(calls, pass) (UINT64_C(1) << 62 | (uint64_t)(calls) << 24 | (uint64_t)(pass))

/* ids[i] = element first + i of a random permutation of 0 .. p - 1. */
void mrc_draw_centers(uint64_t seed, uint64_t sequence, int64_t p, int64_t first, int64_t count, int64_t *ids);
/* The eigensystem of s random centers (ids: room for s, gets which), without directions below the noise level. */
mercer_status mrc_sample_system(mrc_eigensystem *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed,
                                int64_t *ids);
/* Bytes of mrc_sample_system: what it leaves, and in all at its peak. */
void mrc_sample_system_bytes(const mrc_problem *problem, int64_t s, int64_t q, int64_t *held, int64_t *total);

/* |A|_F of a matrix that every rank has. */
mercer_status mrc_matrix_norm(mrc_backend *backend, const mercer_matrix *a, double *out);

#endif
