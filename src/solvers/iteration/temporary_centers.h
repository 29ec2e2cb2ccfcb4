/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary centers: points and weights of the batches since the last projection, divided among the shards as the
 * centers are, K(., X_tmp) w_tmp = sum_s K(., X_s) w_s.
 *
 * Of t temporary centers shard number s has part s of mrc_share(t, S): a function of t alone, so that it is the same
 * for any number of ranks and known when training is resumed. A batch that takes t to t + m gives every
 * shard what it then lacks, rows of the batch that lie together.
 */
#ifndef MRC_SOLVERS_ITERATION_TEMPORARY_CENTERS_H
#define MRC_SOLVERS_ITERATION_TEMPORARY_CENTERS_H

#include "solvers/operators/center_shards.h"

typedef struct mrc_temporary_centers {
    mrc_centers *centers;
    mercer_matrix points, weights; /* (rows, d), (rows, c): room of the shards here, one after the other */
    int64_t most;                  /* of all shards together; 0: there are none, ever */
    int64_t count;                 /* that are there now, of all shards */
    int64_t packed;                /* of these, how many are in the backend's packed form */
} mrc_temporary_centers;

/* To be destroyed even if it fails. */
mercer_status mrc_temporary_centers_create(mrc_temporary_centers *out, mrc_centers *centers, int64_t most,
                                           int64_t outputs, mercer_dtype points);
void mrc_temporary_centers_destroy(mrc_temporary_centers *temporary);

/* The points x (m, d), of which this rank takes its part, with weights factor g (m, c). */
mercer_status mrc_temporary_centers_append(mrc_temporary_centers *temporary, const mercer_matrix *x,
                                           const mercer_matrix *g, double factor);
/* Packs those that have come since the last time; all of them after a change from outside. */
mercer_status mrc_temporary_centers_pack(mrc_temporary_centers *temporary);
/* part (m, c) += K(x, X_s) w_s for local shard number `shard`. */
mercer_status mrc_temporary_centers_add(const mrc_temporary_centers *temporary, int shard, const mercer_matrix *x,
                                        const mercer_matrix *part);
mercer_status mrc_temporary_centers_scale(mrc_temporary_centers *temporary, double factor);
void mrc_temporary_centers_drop(mrc_temporary_centers *temporary);

/*
 * For files, where the shards' rows follow each other without room between: which of all rows are here; the rows of
 * `points` or `weights` in use, with the room between; and the way there and back, in host memory, where they lie.
 */
void mrc_temporary_centers_rows(const mrc_temporary_centers *temporary, int64_t *first, int64_t *rows);
mercer_matrix mrc_temporary_centers_used(const mrc_temporary_centers *temporary, const mercer_matrix *matrix);
void mrc_temporary_centers_close_up(const mrc_temporary_centers *temporary, mercer_matrix *host);
void mrc_temporary_centers_spread(const mrc_temporary_centers *temporary, mercer_matrix *host);

#endif
