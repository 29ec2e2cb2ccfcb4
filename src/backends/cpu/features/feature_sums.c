/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out_k = sum_ij A_ij B_ij |x_ik - z_jk|^norm, norm 1 or 2, for every feature k:
 *
 *   transpose the centers                                         d p numbers
 *   for each block of 32 rows of X    (parallel)                  transpose it, d 32 numbers
 *     for each strip of 512 centers
 *       v = A B, and the sum of its rows
 *       for each feature              micro-kernel `features`, only on rows with nonzero values if these are few
 *   add the sums of the blocks, in order
 *
 * Cost: 3 flops per pair and feature, for features with few nonzero values only per pair with a nonzero value, plus 3
 * flops per pair. Memory: d (p + 64) numbers, d doubles per block of 32 rows, and 33 x 512 and d x 33 numbers per
 * worker. A feature of a block is summed in chains of at most 256 terms in the type of the points, then in double.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

/* Rows of X per block; centers per strip; sums that a micro-kernel returns; chains that it uses, each over every 64th
   center. */
enum { ROWS = 32, STRIP = 512, LANES = 16, CHAINS = 64 };

typedef struct feature_job {
    const mrc_ukernels *uk;
    const mrc_feature_sums *job;
    int64_t size, columns; /* bytes per number; number of centers, rounded up to CHAINS */
    void *z;               /* (d, columns): transposed centers */
    double *parts;         /* (blocks, d): sums of the blocks */
    char *spaces;          /* one struct space per worker */
    int64_t space_bytes;
} feature_job;

/* Scratch space of a worker. */
typedef struct space {
    void *weights;        /* (ROWS + 1, STRIP): weights of the rows, then their sum */
    void *x;              /* (d, ROWS): transposed block of X, then one row (d) */
    double *left, *right; /* (STRIP): a row of A and of B */
} space;

static int64_t weights_bytes(const feature_job *self)
{
    return (ROWS + 1) * STRIP * self->size;
}

static int64_t rows_bytes(const feature_job *self)
{
    return mrc_round_up(self->job->x->cols * (ROWS + 1) * self->size, MRC_ALIGNMENT);
}

static space space_of(const feature_job *self, int worker)
{
    char *at = self->spaces + worker * self->space_bytes;
    space out = {.weights = at, .x = at + weights_bytes(self)};
    out.left = (void *)(at + weights_bytes(self) + rows_bytes(self));
    out.right = out.left + STRIP;
    return out;
}

#define REAL        float
#define TYPED(name) name##_f32
#define LOAD_ROW    mrc_load_row_f32
#include "backends/cpu/features/feature_sums_body.h"

#define REAL        double
#define TYPED(name) name##_f64
#define LOAD_ROW    mrc_load_row_f64
#include "backends/cpu/features/feature_sums_body.h"

mercer_status mrc_cpu_feature_sums(mrc_backend *backend, const mrc_feature_sums *job, double *out)
{
    mrc_cpu *cpu = backend->state;
    bool wide = mrc_value_dtype(job->x, job->z, NULL, NULL) == MERCER_F64;
    int64_t d = job->x->cols, blocks = (job->x->rows + ROWS - 1) / ROWS,
            threads = mrc_max(1, backend->context->threads);
    feature_job self = {.uk = &cpu->uk,
                        .job = job,
                        .size = wide ? (int64_t)sizeof(double) : (int64_t)sizeof(float),
                        .columns = mrc_round_up(job->z->rows, CHAINS)};
    for (int64_t k = 0; k < d; k++) out[k] = 0;
    self.space_bytes = weights_bytes(&self) + rows_bytes(&self) + 2 * STRIP * (int64_t)sizeof(double);
    int64_t centers = mrc_round_up(d * self.columns * self.size, MRC_ALIGNMENT),
            parts = mrc_round_up(blocks * d * (int64_t)sizeof(double), MRC_ALIGNMENT);
    MRC_TRY(mrc_arena_reserve(&cpu->arena, centers + parts + threads * self.space_bytes));
    self.z = mrc_arena_push(&cpu->arena, centers);
    self.parts = mrc_arena_push(&cpu->arena, parts);
    self.spaces = mrc_arena_push(&cpu->arena, threads * self.space_bytes);
    if (wide)
        turn_centers_f64(&self);
    else
        turn_centers_f32(&self);
    mrc_parallel_for((int)threads, blocks, wide ? sum_rows_f64 : sum_rows_f32, &self);
    for (int64_t block = 0; block < blocks; block++)
        for (int64_t k = 0; k < d; k++) out[k] += self.parts[block * d + k];
    mrc_arena_reset(&cpu->arena);
    return MERCER_OK;
}
