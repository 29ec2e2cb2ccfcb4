/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary centers, divided among the shards.
 *
 *   F_s += K(X, X_s) w_s for each local shard s, X (m, d), X_s (t_s, d), w_s (t_s, c), t_s about t / S
 *
 * Every shard has capacity for its share of a whole period, so that appending a batch moves no rows. Cost of a product:
 * 2 m t (d + c) / R flops on each of R ranks. Memory: T m (d + c) elements, on R ranks T m (d + c) / R each.
 */
#include "solvers/iteration/temporary_centers.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

/* Backends reuse the packed form of a range of rows only if the range begins at a multiple of ROWS_TOGETHER. Large
   shares are aligned like large shards of the centers (MRC_ALIGNED_ROWS). */
enum { ROWS_TOGETHER = 4 };

/* Rows of a shard. offset: first row of its buffer in this rank's matrices; rows, first: its part of `count` rows. */
typedef struct share {
    int64_t offset, rows, first;
} share;

static share share_of(const mrc_temporary_centers *self, int shard, int64_t count)
{
    const mrc_centers *centers = self->centers;
    int64_t largest, first;
    mrc_share(self->most, centers->all_shards, 0, &first, &largest); /* shard 0 has the largest share */
    int64_t unit = largest >= MRC_LARGE_SHARD ? MRC_ALIGNED_ROWS : ROWS_TOGETHER;
    share out = {.offset = shard * mrc_round_up(largest, unit)};
    mrc_share(count, centers->all_shards, centers->first_shard + shard, &out.first, &out.rows);
    return out;
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

mercer_status mrc_temporary_centers_create(mrc_temporary_centers *out, mrc_centers *centers, int64_t most,
                                           int64_t outputs, mercer_dtype points)
{
    *out = (mrc_temporary_centers){.centers = centers, .most = most};
    share last = share_of(out, centers->shards - 1, most);
    int64_t rows = mrc_max(1, last.offset + last.rows);
    MRC_TRY(mrc_matrix_create(centers->backend, &out->points, rows, centers->z.cols, points, "temporary centers"));
    return mrc_matrix_create(centers->backend, &out->weights, rows, outputs, centers->real, "temporary weights");
}

void mrc_temporary_centers_destroy(mrc_temporary_centers *self)
{
    if (!self->centers) return;
    mrc_points_forget(self->centers, &self->points);
    mrc_matrix_destroy(self->centers->backend, &self->points);
    mrc_matrix_destroy(self->centers->backend, &self->weights);
    memset(self, 0, sizeof *self);
}

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

mercer_status mrc_temporary_centers_append(mrc_temporary_centers *self, const mercer_matrix *x, const mercer_matrix *g,
                                           double factor)
{
    mrc_backend *backend = self->centers->backend;
    int64_t count = self->count + x->rows;
    for (int i = 0; i < self->centers->shards; i++) {
        share before = share_of(self, i, self->count), after = share_of(self, i, count);
        int64_t from = after.first - before.first, rows = after.rows - before.rows;
        if (rows == 0) continue; /* a small batch may give this shard no rows */
        mercer_matrix points = mrc_rows(&self->points, before.offset + before.rows, rows),
                      weights = mrc_rows(&self->weights, before.offset + before.rows, rows),
                      own_x = mrc_rows(x, from, rows), own_g = mrc_rows(g, from, rows);
        MRC_TRY(backend->ops->copy(backend, &points, &own_x));
        MRC_TRY(backend->ops->axpby(backend, factor, &own_g, 0, &weights));
    }
    self->count = count;
    return MERCER_OK;
}

mercer_status mrc_temporary_centers_pack(mrc_temporary_centers *self)
{
    for (int i = 0; i < self->centers->shards; i++) {
        share before = share_of(self, i, self->packed), now = share_of(self, i, self->count);
        if (now.rows > before.rows)
            MRC_TRY(mrc_points_pack(self->centers, &self->points, now.offset + before.rows, now.rows - before.rows));
    }
    self->packed = self->count;
    return MERCER_OK;
}

mercer_status mrc_temporary_centers_add(const mrc_temporary_centers *self, int shard, const mercer_matrix *x,
                                        const mercer_matrix *part)
{
    share own = share_of(self, shard, self->count);
    if (own.rows == 0) return MERCER_OK;
    mercer_matrix points = mrc_rows(&self->points, own.offset, own.rows),
                  weights = mrc_rows(&self->weights, own.offset, own.rows);
    return mrc_points_matmul(self->centers, x, &points, &weights, part, true);
}

mercer_status mrc_temporary_centers_scale(mrc_temporary_centers *self, double factor)
{
    for (int i = 0; i < (self->count > 0 ? self->centers->shards : 0); i++) {
        share own = share_of(self, i, self->count);
        mercer_matrix weights = mrc_rows(&self->weights, own.offset, own.rows);
        if (own.rows == 0) continue;
        MRC_TRY(self->centers->backend->ops->axpby(self->centers->backend, factor, &weights, 0, &weights));
    }
    return MERCER_OK;
}

void mrc_temporary_centers_drop(mrc_temporary_centers *self)
{
    self->count = self->packed = 0;
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

void mrc_temporary_centers_rows(const mrc_temporary_centers *self, int64_t *first, int64_t *rows)
{
    *first = *rows = 0;
    if (self->count == 0) return;
    share last = share_of(self, self->centers->shards - 1, self->count);
    *first = share_of(self, 0, self->count).first;
    *rows = last.first + last.rows - *first;
}

mercer_matrix mrc_temporary_centers_used(const mrc_temporary_centers *self, const mercer_matrix *matrix)
{
    int64_t end = 0;
    for (int i = 0; i < (self->count > 0 ? self->centers->shards : 0); i++) {
        share own = share_of(self, i, self->count);
        if (own.rows > 0) end = own.offset + own.rows;
    }
    return mrc_rows(matrix, 0, end);
}

/* Move rows within a host matrix; source and destination may overlap. */
static void move_rows(const mercer_matrix *host, int64_t to, int64_t from, int64_t rows)
{
    if (to == from || rows == 0) return;
    memmove(mrc_row(host, to), mrc_row(host, from), (size_t)(rows * host->ld * mrc_dtype_size(host->dtype)));
}

void mrc_temporary_centers_close_up(const mrc_temporary_centers *self, mercer_matrix *host)
{
    if (!host->data || self->count == 0) return;
    host->rows = 0;
    for (int i = 0; i < self->centers->shards; i++) {
        share own = share_of(self, i, self->count);
        move_rows(host, host->rows, own.offset, own.rows);
        host->rows += own.rows;
    }
}

void mrc_temporary_centers_spread(const mrc_temporary_centers *self, mercer_matrix *host)
{
    if (!host->data || self->count == 0) return;
    for (int i = self->centers->shards - 1; i >= 0; i--) {
        share own = share_of(self, i, self->count);
        host->rows -= own.rows;
        move_rows(host, own.offset, host->rows, own.rows);
    }
    host->rows = mrc_temporary_centers_used(self, host).rows;
}
