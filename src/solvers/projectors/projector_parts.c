/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts that projectors share.
 *
 *   times   Y = K(Z,Z) V           p^2 (d + k) multiply-adds, or p^2 k on a kept K(Z,Z). With several shards Z and V
 *                                  are collected in blocks of as many centers as a shard has, 256 to 4096 of them, so
 *                                  that memory stays O(4096 (d + k)).
 *   factor  L L' = K(B,B) + mu I   in double, b^3/3 (spd.c). mu = 0 unless the factor fails.
 *
 * When is a solution fit to be stored? x = (K + mu I)^-1 b is found in double and rounded to type real (unit roundoff
 * u), which changes K x by at most u |x| |K|_2 <= u |x| trace K. Where K is nearly singular |x| is huge and the rounded
 * x useless. Because |x| <= |b| / mu, a shift mu = 10 u trace K keeps the damage below |b|/10 whatever K is: relative
 * to the mean of the diagonal that is 10 u b. It is applied only where |x| shows that it is needed, since it makes the
 * solve inexact by mu x.
 */
#include "solvers/projectors/projector_parts.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/operators/spd.h"

#include <math.h>

#define ROUNDING_HARM 0.1

enum { LEAST_COLLECTED = 256 }; /* every block is a round of messages */

double mrc_unit_roundoff(mercer_dtype real)
{
    return real == MERCER_F32 ? 0x1p-24 : 0x1p-53;
}

mercer_status mrc_matrix_norm(mrc_backend *backend, const mercer_matrix *a, double *out)
{
    void *memory;
    MRC_TRY(mrc_alloc(backend->context, &memory, a->cols, sizeof(double), "column norms"));
    const double *squares = memory;
    mercer_status status = backend->ops->column_dots(backend, a, a, memory);
    double sum = 0;
    for (int64_t j = 0; j < a->cols && status == MERCER_OK; j++) sum += squares[j];
    mrc_free(backend->context, memory);
    *out = sqrt(sum);
    return status;
}

/* ---- Products with K(Z,Z) ------------------------------------------------------------------------------------ */

int64_t mrc_collect_rows(int64_t p, int shards)
{
    int64_t shard = (p + shards - 1) / shards;
    return mrc_min(p, mrc_min(MRC_COLLECT_BLOCK, mrc_max(LEAST_COLLECTED, shard)));
}

/* A block of consecutive centers that every rank has, and the rows of a field that belong to it. */
typedef struct block {
    int64_t size; /* rows of the largest */
    int64_t *ids;
    mercer_matrix points, rows; /* (block, d), (block, k) */
} block;

static void block_destroy(block *self, mrc_centers *centers)
{
    mrc_matrix_destroy(centers->backend, &self->rows);
    mrc_matrix_destroy(centers->backend, &self->points);
    mrc_free(centers->context, self->ids);
    *self = (block){0};
}

static mercer_status block_create(block *self, mrc_centers *centers, bool with_points, int64_t k)
{
    int64_t size = mrc_collect_rows(centers->p, centers->all_shards);
    void *ids;
    *self = (block){.size = size};
    MRC_TRY(mrc_alloc(centers->context, &ids, size, sizeof(int64_t), "the numbers of a block of centers"));
    self->ids = ids;
    mercer_status status = mrc_matrix_create(centers->backend, &self->points, with_points ? size : 0, centers->z.cols,
                                             centers->z.dtype, "a block of centers");
    if (status == MERCER_OK)
        status = mrc_matrix_create(centers->backend, &self->rows, size, k, centers->real, "rows of a block of centers");
    if (status != MERCER_OK) block_destroy(self, centers);
    return status;
}

/* Collects centers first .. first + count - 1, and their rows of v. Either may be left out. */
static mercer_status block_collect(block *self, mrc_centers *centers, int64_t first, int64_t count,
                                   const mercer_matrix *v, mercer_matrix *points, mercer_matrix *rows)
{
    for (int64_t i = 0; i < count; i++) self->ids[i] = first + i;
    if (points) *points = mrc_rows(&self->points, 0, count);
    if (points) MRC_TRY(mrc_centers_collect(centers, NULL, self->ids, count, points));
    if (rows) *rows = mrc_rows(&self->rows, 0, count);
    if (rows) MRC_TRY(mrc_centers_collect(centers, v, self->ids, count, rows));
    return MERCER_OK;
}

/* One shard: nothing needs to be collected. (With more, blocks of centers are added in the same order on any number of
   ranks.) */
static bool is_alone(const mrc_centers *centers)
{
    return centers->all_shards == 1;
}

mercer_status mrc_centers_times(mrc_centers *centers, const mercer_matrix *kept, const mercer_matrix *v,
                                const mercer_matrix *out)
{
    if (is_alone(centers) && kept) return mrc_counted_gemm(centers, false, false, 1, kept, v, 0, out);
    if (is_alone(centers)) return mrc_points_matmul(centers, &centers->z, &centers->z, v, out, false);
    block self;
    MRC_TRY(block_create(&self, centers, !kept, v->cols));
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < centers->p && status == MERCER_OK; first += self.size) {
        int64_t count = mrc_min(self.size, centers->p - first);
        mercer_matrix points, rows;
        status = block_collect(&self, centers, first, count, v, kept ? NULL : &points, &rows);
        if (status != MERCER_OK) break;
        if (kept) {
            mercer_matrix k = mrc_columns(kept, first, count);
            status = mrc_centers_multiply(centers, 1, &k, &rows, first > 0, out);
        } else {
            status = mrc_centers_apply(centers, &points, &rows, out, first > 0);
        }
    }
    block_destroy(&self, centers);
    return status;
}

mercer_status mrc_centers_keep(mrc_centers *centers, mercer_matrix *out)
{
    MRC_TRY(mrc_field_create(centers, out, centers->p, centers->real, "K(Z,Z)"));
    block self = {0};
    mercer_status status = MERCER_OK;
    if (is_alone(centers)) {
        status = mrc_points_eval(centers, &centers->z, &centers->z, out);
    } else {
        status = block_create(&self, centers, true, 0);
        for (int64_t first = 0; first < centers->p && status == MERCER_OK; first += self.size) {
            mercer_matrix points, k = mrc_columns(out, first, mrc_min(self.size, centers->p - first));
            status = block_collect(&self, centers, first, k.cols, NULL, &points, NULL);
            if (status == MERCER_OK) status = mrc_centers_eval(centers, &points, &k);
        }
        block_destroy(&self, centers);
    }
    if (status != MERCER_OK) mrc_matrix_destroy(centers->backend, out);
    return status;
}

/* ---- Cholesky factors ---------------------------------------------------------------------------------------- */

double mrc_factor_safe_shift(mercer_dtype real, int64_t b)
{
    return mrc_unit_roundoff(real) / ROUNDING_HARM * (double)b;
}

bool mrc_factor_too_rough(const mrc_factor *factor, mercer_dtype real, double x_norm, double b_norm)
{
    /* Negated, so that a solution that is not finite counts as too rough. */
    return !(mrc_unit_roundoff(real) * x_norm * factor->trace <= ROUNDING_HARM * b_norm);
}

mercer_status mrc_points_trace(mrc_centers *centers, const mercer_matrix *points, double *trace)
{
    mrc_backend *backend = centers->backend;
    mercer_matrix diagonal;
    *trace = 0;
    MRC_TRY(mrc_matrix_create(backend, &diagonal, points->rows, 1, MERCER_F64, "the diagonal of a block"));
    mercer_status status = backend->ops->kernel_diagonal(backend, centers->kernel, points, &diagonal);
    mercer_matrix host = {0};
    if (status == MERCER_OK) status = mrc_host_open(backend, &diagonal, &host);
    for (int64_t i = 0; i < points->rows && status == MERCER_OK; i++) *trace += mrc_load(&host, i, 0);
    status = mrc_host_close(backend, &diagonal, &host, false, status);
    mrc_matrix_destroy(backend, &diagonal);
    return status;
}

mercer_status mrc_factor_kernel(mrc_centers *centers, const mercer_matrix *points, mrc_factor *factor)
{
    MRC_TRY(mrc_points_trace(centers, points, &factor->trace));
    /* K(B,B) = 0 (a linear kernel, points at 0) has no scale to shift by; any will do, since nothing fits. */
    mrc_spd job = {.points = points, .shift = factor->trace > 0 ? 0 : 1, .what = "projection: K(Z,Z)"};
    MRC_TRY(mrc_spd_factor(centers, &job, &factor->l, &factor->relative, NULL));
    factor->shift = job.shift + factor->relative * factor->trace / (double)points->rows;
    return MERCER_OK;
}

/* ---- Samples of the centers ---------------------------------------------------------------------------------- */

void mrc_draw_centers(uint64_t seed, uint64_t sequence, int64_t p, int64_t first, int64_t count, int64_t *ids)
{
    for (int64_t i = 0; i < count; i++) ids[i] = mrc_random_permutation((mrc_rng){seed, sequence}, p, first + i);
}

mercer_status mrc_sample_system(mrc_eigensystem *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed,
                                int64_t *ids)
{
    mercer_matrix sample;
    *out = (mrc_eigensystem){0};
    mrc_draw_centers(seed, MRC_RANDOM_SAMPLE, centers->p, 0, s, ids);
    MRC_TRY(
        mrc_matrix_create(centers->backend, &sample, s, centers->z.cols, centers->z.dtype, "a sample of the centers"));
    mercer_status status = mrc_centers_collect(centers, NULL, ids, s, &sample);
    if (status == MERCER_OK) status = mrc_eigensystem_create(out, centers, &sample, q, seed);
    mrc_matrix_destroy(centers->backend, &sample);
    return status;
}

void mrc_sample_system_bytes(const mrc_problem *problem, int64_t s, int64_t q, int64_t *held, int64_t *total)
{
    int64_t points = s * problem->d * problem->point_size;
    q = mrc_max(0, mrc_min(q, s - 1));
    *held = points + s * q * problem->real_size + 16 * q;
    *total = *held + points + mrc_eigensystem_scratch_bytes(s, q);
}
