/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary centers: points and weights of the batches since the last projection. Like the centers, they are divided
 * among the shards: K(., X_tmp) w_tmp = sum_s K(., X_s) w_s.
 *
 * Shard s has part s of mrc_share(t, S) of the t temporary centers. The parts depend only on t and S, so they are the
 * same for any number of ranks and known when training is resumed. When a batch of m rows increases t to t + m, every
 * shard receives a contiguous range of the rows of the batch.
 */
#ifndef MRC_SOLVERS_ITERATION_TEMPORARY_CENTERS_H
#define MRC_SOLVERS_ITERATION_TEMPORARY_CENTERS_H

#include "solvers/operators/center_shards.h"

typedef struct mrc_temporary_centers {
    mrc_centers *centers;
    mercer_matrix points, weights; /* (rows, d), (rows, c): buffers of the local shards, one after the other */
    int64_t most;                  /* capacity of all shards together; 0: temporary centers are not used */
    int64_t count;                 /* current number of temporary centers, of all shards */
    int64_t packed;                /* number of temporary centers that are in the backend's packed form */
} mrc_temporary_centers;

/* Create the buffers. The caller must destroy the object even if the call fails. */
mercer_status mrc_temporary_centers_create(mrc_temporary_centers *out, mrc_centers *centers, int64_t most,
                                           int64_t outputs, mercer_dtype points);
void mrc_temporary_centers_destroy(mrc_temporary_centers *temporary);

/* Append the points x (m, d) with weights factor g (m, c); this rank stores only its part of the points. */
mercer_status mrc_temporary_centers_append(mrc_temporary_centers *temporary, const mercer_matrix *x,
                                           const mercer_matrix *g, double factor);
/* Pack the points appended since the last call. After a restore no point is packed yet, so all points are packed. */
mercer_status mrc_temporary_centers_pack(mrc_temporary_centers *temporary);
/* Add K(x, X_s) w_s of local shard number `shard` to part (m, c). */
mercer_status mrc_temporary_centers_add(const mrc_temporary_centers *temporary, int shard, const mercer_matrix *x,
                                        const mercer_matrix *part);
/* Multiply all weights of temporary centers by a factor. */
mercer_status mrc_temporary_centers_scale(mrc_temporary_centers *temporary, double factor);
/* Remove all temporary centers, after a projection. The buffers stay allocated. */
void mrc_temporary_centers_drop(mrc_temporary_centers *temporary);

/*
 * Functions for saved states. In a file the rows of all shards are contiguous; the buffers have unused rows between the
 * shards. rows: the range of this rank's rows among the rows of all ranks; used: the part of `points` or `weights` from
 * the first to the last row in use, with the unused rows between them; close_up removes these unused rows in host
 * memory, spread inserts them again.
 */
void mrc_temporary_centers_rows(const mrc_temporary_centers *temporary, int64_t *first, int64_t *rows);
mercer_matrix mrc_temporary_centers_used(const mrc_temporary_centers *temporary, const mercer_matrix *matrix);
void mrc_temporary_centers_close_up(const mrc_temporary_centers *temporary, mercer_matrix *host);
void mrc_temporary_centers_spread(const mrc_temporary_centers *temporary, mercer_matrix *host);

#endif
