/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products of stored rows with few columns: K (m, p) in float or half precision. Rows may be anywhere in memory; they
 * are read once and in place.
 *
 *   Y = K W    rows in parallel, 32 at a time; 512 of their columns and the packed weights of these columns stay in L1
 *   Y = K' W   strips of 16 or 32 columns in parallel, all their sums in registers; sums over 512 rows are added in
 *              double
 *
 * 2 m p c flops and m p values from memory: on processors with AVX-512 both take the same time for c of about 10. BLAS
 * would pack K, which costs more than the product. Sums consist of 16 float chains of at most 1024 products each
 * (uk_rows_body.h), added in double, independently of the number of threads.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

enum {
    ROWS_EACH = 32,      /* forward: rows per piece */
    CHUNK = 512,         /* forward: columns of K at a time */
    CHUNKS_A_CHAIN = 32, /* forward: chunks per float chain: 32 * 512 / 16 = 1024 products */
    ROWS_A_CHAIN = 512,  /* transposed: rows per float chain */
    STRIPS_EACH = 8,     /* transposed: strips per piece */
    MOST_GROUP = 12,     /* maximum rows_group of all instruction sets */
    LANES = 16           /* float chains per sum */
};

typedef struct rows_job {
    const mrc_ukernels *uk;
    const mercer_matrix *w, *y;
    int64_t p, m;
    bool half;
    int64_t size;      /* bytes per stored value */
    const void **rows; /* (m): addresses of the rows of K */
    float *packed;     /* forward: weights (c, p rounded up to 16) in the order of dots; transposed: (m, c) by groups */
    char *spaces;      /* one forward_space or transpose_space per worker */
    int64_t space_bytes; /* bytes of the space of one worker */
} rows_job;

/* Return n: outputs first .. first + n - 1 form a group, which is processed together. The outputs are divided into as
   few groups as the micro-kernel allows, of nearly equal size: 13 outputs with at most 12 per group are 7 and 6. */
static int group_at(const rows_job *self, int64_t first)
{
    int64_t c = self->w->cols, groups = (c + self->uk->rows_group - 1) / self->uk->rows_group;
    return (int)mrc_min((c + groups - 1) / groups, c - first);
}

static const float *weights_of(const rows_job *self, int64_t i)
{
    return mrc_row(self->w, i);
}

/* ---- Forward ------------------------------------------------------------------------------------------------- */

/* Pack the weights of one chunk of columns of K: group by group, 16 columns at a time. */
static void pack_chunk(void *argument, int64_t chunk, int worker)
{
    (void)worker;
    const rows_job *self = argument;
    const int64_t padded = mrc_round_up(self->p, LANES), end = mrc_min((chunk + 1) * CHUNK, padded);
    for (int64_t first = 0; first < self->w->cols; first += group_at(self, first)) {
        const int n = group_at(self, first);
        float *out = self->packed + first * padded + chunk * CHUNK * n;
        for (int64_t k = chunk * CHUNK; k < end; k += LANES, out += LANES * n)
            for (int l = 0; l < LANES; l++)
                for (int j = 0; j < n; j++)
                    out[LANES * j + l] = k + l < self->p ? weights_of(self, k + l)[first + j] : 0;
    }
}

/* Add the 16 chains of one row and output in a fixed order: repeatedly add the upper half to the lower half, in
   place. */
static double add_lanes(float *lanes)
{
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++) lanes[l] += lanes[l + width];
    return (double)lanes[0];
}

/* Scratch space of a worker: 16 chains and a sum in double for each of its rows and outputs, and the address of each
   row at the current columns. */
typedef struct forward_space {
    float sums[ROWS_EACH][MOST_GROUP * LANES];
    double totals[ROWS_EACH][MOST_GROUP];
    float tails[ROWS_EACH][LANES]; /* the last columns of K, fewer than 16, padded with zeros */
    const void *at[ROWS_EACH];
} forward_space;

/* Add the chains of all rows to their totals and start new ones, which bounds the length of a float chain. */
static void flush_lanes(forward_space *space, int64_t rows, int n)
{
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) space->totals[i][j] += add_lanes(space->sums[i] + LANES * j);
    memset(space->sums, 0, (size_t)rows * sizeof space->sums[0]);
}

/* Compute outputs first .. first + n - 1 of rows row .. row + rows - 1, in chunks of columns of K that stay in L1. The
   last, incomplete vector of columns is copied to a padded buffer, because the micro-kernel reads full vectors. */
static void dots_of_rows(const rows_job *self, forward_space *space, int64_t row, int64_t rows, int64_t first, int n)
{
    const int64_t whole = self->p / LANES * LANES, stride = MOST_GROUP * LANES;
    const float *packed = self->packed + first * mrc_round_up(self->p, LANES);
    memset(space->sums, 0, (size_t)rows * sizeof space->sums[0]);
    memset(space->totals, 0, (size_t)rows * sizeof space->totals[0]);
    for (int64_t k = 0; k < whole; k += CHUNK) {
        for (int64_t i = 0; i < rows; i++) space->at[i] = (const char *)self->rows[row + i] + k * self->size;
        self->uk->rows_dots(self->half, n, rows, mrc_min(CHUNK, whole - k), space->at, packed + k * n, space->sums[0],
                            stride);
        if (k / CHUNK % CHUNKS_A_CHAIN == CHUNKS_A_CHAIN - 1) flush_lanes(space, rows, n);
    }
    if (whole < self->p) {
        memset(space->tails, 0, sizeof space->tails);
        for (int64_t i = 0; i < rows; i++) {
            memcpy(space->tails[i], (const char *)self->rows[row + i] + whole * self->size,
                   (size_t)((self->p - whole) * self->size));
            space->at[i] = space->tails[i];
        }
        self->uk->rows_dots(self->half, n, rows, LANES, space->at, packed + whole * n, space->sums[0], stride);
    }
    flush_lanes(space, rows, n);
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) ((float *)mrc_row(self->y, row + i))[first + j] = (float)space->totals[i][j];
}

static void forward_piece(void *argument, int64_t piece, int worker)
{
    const rows_job *self = argument;
    forward_space *space = (void *)(self->spaces + worker * self->space_bytes);
    int64_t row = piece * ROWS_EACH, rows = mrc_min(ROWS_EACH, self->m - row);
    for (int64_t first = 0; first < self->w->cols; first += group_at(self, first))
        dots_of_rows(self, space, row, rows, first, group_at(self, first));
}

static void forward_rows(rows_job *self, int threads)
{
    mrc_parallel_for(threads, (mrc_round_up(self->p, LANES) + CHUNK - 1) / CHUNK, pack_chunk, self);
    mrc_parallel_for(threads, (self->m + ROWS_EACH - 1) / ROWS_EACH, forward_piece, self);
}

/* ---- Transposed ---------------------------------------------------------------------------------------------- */

enum { WIDEST_STRIP = 32 };

/* Scratch space of a worker, for one strip of columns of K and one group of outputs: (outputs, strip) chains and sums
   in double, and the address of each row. */
typedef struct transpose_space {
    float sums[MOST_GROUP * WIDEST_STRIP];
    double totals[MOST_GROUP * WIDEST_STRIP];
    float tails[ROWS_A_CHAIN][WIDEST_STRIP]; /* the last columns of some rows, padded with zeros */
    const void *at[ROWS_A_CHAIN];
} transpose_space;

/* Compute rows k .. k + width - 1 of Y = K' W, for outputs first .. first + n - 1. An incomplete strip of K is copied
   to a padded buffer, because the micro-kernel reads full strips. */
static void sums_of_strip(const rows_job *self, transpose_space *space, int64_t k, int64_t first, int n)
{
    const int strip = self->uk->rows_strip;
    const int64_t width = mrc_min(strip, self->p - k), all = (int64_t)n * strip;
    const bool once = self->m <= ROWS_A_CHAIN; /* the usual case: one chain, so no totals are necessary */
    for (int64_t i = 0; i < all; i++) space->totals[i] = space->sums[i] = 0;
    for (int64_t row = 0; row < self->m; row += ROWS_A_CHAIN) {
        int64_t rows = mrc_min(ROWS_A_CHAIN, self->m - row);
        const void *const *from = self->rows + row;
        if (width < strip) {
            memset(space->tails, 0, (size_t)rows * sizeof space->tails[0]);
            for (int64_t i = 0; i < rows; i++) {
                memcpy(space->tails[i], (const char *)from[i] + k * self->size, (size_t)(width * self->size));
                space->at[i] = space->tails[i];
            }
            from = space->at;
        }
        self->uk->rows_sums(self->half, n, rows, from, width < strip ? 0 : k, self->packed + first * self->m + row * n,
                            space->sums);
        for (int64_t i = 0; i < all && !once; i++) space->totals[i] += (double)space->sums[i];
    }
    for (int64_t i = 0; i < width; i++) {
        float *out = mrc_row(self->y, k + i);
        for (int j = 0; j < n; j++)
            out[first + j] = once ? space->sums[j * strip + i] : (float)space->totals[j * strip + i];
    }
}

static void transpose_piece(void *argument, int64_t piece, int worker)
{
    const rows_job *self = argument;
    transpose_space *space = (void *)(self->spaces + worker * self->space_bytes);
    const int64_t strip = self->uk->rows_strip, begin = piece * STRIPS_EACH * strip;
    for (int64_t first = 0; first < self->w->cols; first += group_at(self, first))
        for (int64_t k = begin; k < mrc_min(begin + STRIPS_EACH * strip, self->p); k += strip)
            sums_of_strip(self, space, k, first, group_at(self, first));
}

/* Pack the weights by groups, row after row, once for all workers; then compute pieces of columns of K in parallel. */
static void transpose_rows(rows_job *self, int threads)
{
    for (int64_t first = 0; first < self->w->cols; first += group_at(self, first)) {
        const int n = group_at(self, first);
        float *out = self->packed + first * self->m;
        for (int64_t i = 0; i < self->m; i++)
            for (int j = 0; j < n; j++) *out++ = weights_of(self, i)[first + j];
    }
    int64_t columns = STRIPS_EACH * self->uk->rows_strip;
    mrc_parallel_for(threads, (self->p + columns - 1) / columns, transpose_piece, self);
}

/* ---- Entry --------------------------------------------------------------------------------------------------- */

/* Float weights with stored rows in float or half precision are multiplied in place. All other types use the default,
   which gathers the rows in the scratch space of the caller. */
mercer_status mrc_cpu_rows_product(mrc_backend *backend, const mrc_stored *stored, bool transposed,
                                   const mercer_matrix *w, const mercer_matrix *y)
{
    const mercer_matrix *k = stored->k;
    mrc_cpu *cpu = backend->state;
    int threads = backend->context->threads;
    if (w->dtype != MERCER_F32 || (k->dtype != MERCER_F32 && k->dtype != MERCER_F16))
        return mrc_default_rows_product(backend, stored, transposed, w, y);
    if (y->rows == 0 || y->cols == 0) return MERCER_OK;
    rows_job self = {.uk = &cpu->uk,
                     .w = w,
                     .y = y,
                     .p = k->cols,
                     .m = stored->count,
                     .half = k->dtype == MERCER_F16,
                     .size = mrc_dtype_size(k->dtype)};
    int64_t pointers = mrc_round_up(self.m * (int64_t)sizeof(void *), MRC_ALIGNMENT);
    int64_t packed = mrc_round_up(4 * w->cols * (transposed ? self.m : mrc_round_up(self.p, LANES)), MRC_ALIGNMENT);
    self.space_bytes =
        mrc_round_up(transposed ? (int64_t)sizeof(transpose_space) : (int64_t)sizeof(forward_space), MRC_ALIGNMENT);
    MRC_TRY(mrc_arena_reserve(&cpu->arena, pointers + packed + threads * self.space_bytes));
    self.rows = mrc_arena_push(&cpu->arena, pointers);
    self.packed = mrc_arena_push(&cpu->arena, packed);
    self.spaces = mrc_arena_push(&cpu->arena, threads * self.space_bytes);
    for (int64_t i = 0; i < self.m; i++) self.rows[i] = mrc_row(k, stored->rows ? stored->rows[i] : i);
    if (transposed)
        transpose_rows(&self, threads);
    else
        forward_rows(&self, threads);
    mrc_arena_reset(&cpu->arena);
    return MERCER_OK;
}
