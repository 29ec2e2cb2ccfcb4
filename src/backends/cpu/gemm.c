/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dense products on the micro-kernels, C = alpha op(A) op(B) + beta C in float or double.
 *
 *   C_ij <- fma(alpha, S_0, beta C_ij),  C_ij <- fma(alpha, S_b, C_ij),   b = 1, 2, ...
 *   S_b = sum_k op(A)_ik op(B)_kj over the b-th block of 256 k, one chain of FMAs from 0
 *
 * Only this rule determines the rounding of an element: it does not depend on the position in C, the size of C, the
 * number of threads or the instruction set. Equal rows of op(A) give equal rows of the product. Everything else below
 * may be chosen for speed.
 *
 * Both factors are packed into panels, the left one for broadcasts (mr), the right one for vectors (nr):
 *
 *   broad    for each 1024 columns and each 256 indices of the depth: pack the right side, shared by all workers; then
 *            pieces of rows in parallel, each of which packs its part of the left side (at most 240 rows, to fit the L2
 *            cache)
 *   narrow   one side has few rows: pieces of the other side in parallel, each panel packed and used immediately, while
 *            it is in the L1 cache. The few rows are the left side; if they are the columns of C, the transpose of C is
 *            computed. With one or two such rows the time is that of reading the other side from memory once.
 *            Contiguous columns of the other side are multiplied in place. Contiguous rows are transposed first, and
 *            then multiplied without padding.
 *
 * Cost: 2 m n k flops, (m n / 1024 + n) k elements packed. Memory: 2 MB, plus 0.5 MB per worker.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

enum {
    DEPTH = 256,         /* length of an FMA chain */
    COLUMNS = 1024,      /* columns of the right side packed at a time */
    ROWS = 240,          /* maximum rows of the left side per piece: a multiple of every mr */
    LEAST_ROWS = 48,     /* minimum rows per piece, so that packing is worth its cost */
    LEAST_COLUMNS = 128, /* minimum columns per piece */
    NEAR = 1024, /* width, in bytes, of the group of packed columns that the left side is multiplied with at a time */
    AHEAD = 16,  /* number of rows prefetched ahead of a copy */
    NARROW = 48, /* maximum rows of the smaller side for the narrow case */
    LONE = 2,    /* maximum rows of the smaller side for which packing the other side costs more than the products */
    CHAINS = 64, /* columns of the other side multiplied at a time if the smaller side has at most LONE rows */
    PIECES = 4,  /* pieces per thread, for load balance */
    LEAST_WORK = 1 << 16 /* minimum multiplications per piece: fewer are not worth waking a thread */
};

/* One factor: the rows of op(A), or the columns of op(B). */
typedef struct side {
    const char *data;
    int64_t count, ld;
    bool by_rows; /* true: each row is contiguous; false: each index of the depth is contiguous across the rows */
} side;

typedef struct gemm {
    const mrc_ukernels *uk;
    bool wide; /* true: double; false: float */
    int64_t size, mr, nr, depth;
    double alpha, beta;
    side left, right;
    char *c;
    int64_t down, across; /* distance, in elements, between rows of C and between columns of C */
    bool lower;           /* compute only entries with row >= column; all other entries are undefined */
    char *shared;         /* broad: packed columns of the right side */
    char *spaces;         /* one struct space per worker */
    int64_t space_bytes, left_bytes, panel_bytes;
    int64_t k, deep;                 /* start and length of the current part of the depth */
    int64_t column, columns;         /* broad: first packed column, and number of packed columns */
    int64_t rows_each, columns_each; /* rows and columns per piece */
} gemm;

/* Scratch space of a worker: its packed part of the left side, a packed panel of the right side, the rows of an
   incomplete panel, a tile of products. */
typedef struct space {
    char *left, *panel, *staging, *tile;
} space;

static space space_of(const gemm *self, int worker)
{
    space out;
    out.left = self->spaces + worker * self->space_bytes;
    out.panel = out.left + self->left_bytes;
    out.staging = out.panel + self->panel_bytes;
    out.tile = out.staging + self->panel_bytes;
    return out;
}

/* ---- Pieces of work ------------------------------------------------------------------------------------------ */

/* Pack contiguous rows into a panel: a transposition. */
static void interleave(const gemm *self, int64_t width, const void *rows, int64_t ld, void *panel)
{
    const mrc_panel_ops *ops = self->uk->panel;
    if (self->wide)
        ops->interleave_f64(self->deep, width, rows, ld, panel);
    else
        ops->interleave_f32(self->deep, width, rows, ld, panel);
}

/* Copy `bytes` bytes of each of `deep` rows, which are `step` bytes apart, to a contiguous panel. */
static inline __attribute__((always_inline)) void copy_strip(int64_t deep, size_t bytes, const char *at, int64_t step,
                                                             char *panel)
{
    for (int64_t k = 0; k < deep; k++, at += step, panel += bytes) {
        for (size_t byte = 0; byte < bytes && k + AHEAD < deep; byte += MRC_ALIGNMENT)
            __builtin_prefetch(at + AHEAD * step + byte);
        memcpy(panel, at, bytes);
    }
}

/* Call copy_strip, specialized for the existing panel widths: a call of memcpy for so few bytes would take longer than
   the copy itself. */
static void copy_whole(int64_t deep, int64_t bytes, const char *at, int64_t step, char *panel)
{
    switch (bytes) {
        case 48: copy_strip(deep, 48, at, step, panel); break;
        case 64: copy_strip(deep, 64, at, step, panel); break;
        case 96: copy_strip(deep, 96, at, step, panel); break;
        case 128: copy_strip(deep, 128, at, step, panel); break;
        default: copy_strip(deep, (size_t)bytes, at, step, panel);
    }
}

/* Pack `width` rows of a side, starting at row `first`; rows beyond its end are zeros. Only an incomplete panel of
   contiguous rows needs staging (width, deep): the transposition reads full panels. */
static void pack_side(const gemm *self, const side *from, int64_t first, int64_t width, char *staging, char *panel)
{
    const int64_t size = self->size, deep = self->deep, ld = from->ld, count = mrc_min(width, from->count - first);
    if (!from->by_rows) {
        const char *at = from->data + (self->k * ld + first) * size;
        if (count == width) {
            copy_whole(deep, width * size, at, ld * size, panel);
            return;
        }
        for (int64_t k = 0; k < deep; k++, at += ld * size, panel += width * size) {
            memcpy(panel, at, (size_t)(count * size));
            memset(panel + count * size, 0, (size_t)((width - count) * size));
        }
        return;
    }
    const char *at = from->data + (first * ld + self->k) * size;
    if (count == width) {
        interleave(self, width, at, ld, panel);
        return;
    }
    for (int64_t r = 0; r < width; r++) {
        if (r < count)
            memcpy(staging + r * deep * size, at + r * ld * size, (size_t)(deep * size));
        else
            memset(staging + r * deep * size, 0, (size_t)(deep * size));
    }
    interleave(self, width, staging, deep, panel);
}

/* C = alpha tile + beta C for the first part of the depth, C += alpha tile for the other parts. */
static void blend(const gemm *self, int64_t rows, int64_t columns, int64_t width, const void *tile, void *c)
{
    const mrc_panel_ops *ops = self->uk->panel;
    double beta = self->k == 0 ? self->beta : 1;
    if (self->wide)
        ops->blend_f64(rows, columns, width, tile, self->alpha, beta, c, self->down, self->across);
    else
        ops->blend_f32(rows, columns, width, tile, (float)self->alpha, (float)beta, c, self->down, self->across);
}

/* Compute one tile of C, starting at `row` and `column`; skip it if it is above the diagonal and only the lower
   triangle is requested. tile: scratch space (mr, nr). left, right: packed panels of mr and nr rows. */
static void multiply_tile(const gemm *self, const void *left, const void *right, void *tile, int64_t row,
                          int64_t column)
{
    const int64_t rows = mrc_min(self->mr, self->left.count - row),
                  columns = mrc_min(self->nr, self->right.count - column);
    void *c = self->c + (row * self->down + column * self->across) * self->size;
    if (self->lower && column > row + rows - 1) return;
    if (self->across == 1) /* prefetch C, which blend needs after the chain */
        for (int64_t i = 0; i < rows; i++)
            for (int64_t byte = 0; byte < columns * self->size; byte += MRC_ALIGNMENT)
                __builtin_prefetch((char *)c + i * self->down * self->size + byte, 1);
    if (self->wide)
        self->uk->gemm_f64(self->deep, left, right, tile);
    else
        self->uk->gemm_f32(self->deep, left, right, tile);
    blend(self, rows, columns, self->nr, tile, c);
}

/* Pack the rows of a piece for the current part of the depth. */
static void pack_left(const gemm *self, const space *own, int64_t row, int64_t rows)
{
    for (int64_t i = 0; i < rows; i += self->mr)
        pack_side(self, &self->left, row + i, self->mr, own->staging, own->left + i * self->deep * self->size);
}

/* ---- Broad --------------------------------------------------------------------------------------------------- */

/* Pack one panel of the right side, which all workers read: a piece of parallel work. */
static void pack_right_panel(void *argument, int64_t index, int worker)
{
    const gemm *self = argument;
    space own = space_of(self, worker);
    pack_side(self, &self->right, self->column + index * self->nr, self->nr, own.staging,
              self->shared + index * self->nr * self->deep * self->size);
}

/* Compute a piece of rows of C for the packed columns. */
static void broad_piece(void *argument, int64_t index, int worker)
{
    const gemm *self = argument;
    space own = space_of(self, worker);
    int64_t across = (self->columns + self->columns_each - 1) / self->columns_each;
    int64_t last = (self->left.count + self->rows_each - 1) / self->rows_each - 1;
    /* Last rows first: they are the longest ones of a lower triangle. */
    int64_t row = (last - index / across) * self->rows_each;
    int64_t rows = mrc_min(self->rows_each, self->left.count - row);
    int64_t begin = index % across * self->columns_each, end = mrc_min(begin + self->columns_each, self->columns);
    if (self->lower && self->column + begin > row + rows - 1) return;
    pack_left(self, &own, row, rows);
    const int64_t near = NEAR / self->size, deep_bytes = self->deep * self->size;
    for (; begin < end; begin += near) /* these columns stay in L2, a panel of the left side in L1 */
        for (int64_t i = 0; i < rows; i += self->mr)
            for (int64_t j = begin; j < mrc_min(begin + near, end); j += self->nr)
                multiply_tile(self, own.left + i * deep_bytes, self->shared + j * deep_bytes, own.tile, row + i,
                              self->column + j);
}

/* Choose the rows and columns per piece: enough pieces for all threads, but not so small that packing dominates. */
static void choose_broad_pieces(gemm *self, int threads)
{
    int64_t wanted = PIECES * (int64_t)threads, m = self->left.count;
    int64_t rows = mrc_max(LEAST_ROWS, mrc_round_up((m + wanted - 1) / wanted, self->mr));
    self->rows_each = mrc_min(ROWS, rows);
    int64_t down = (m + self->rows_each - 1) / self->rows_each, across = mrc_max(1, wanted / down);
    int64_t columns = mrc_min(COLUMNS, self->right.count);
    self->columns_each = mrc_round_up(mrc_max(LEAST_COLUMNS, (columns + across - 1) / across), self->nr);
}

/* For each block of columns and each part of the depth: pack the right side, then compute pieces of rows. */
static void run_broad(gemm *self, int threads)
{
    const int64_t n = self->right.count;
    for (self->column = 0; self->column < n; self->column += COLUMNS) {
        self->columns = mrc_min(COLUMNS, n - self->column);
        for (self->k = 0; self->k < self->depth; self->k += DEPTH) {
            self->deep = mrc_min(DEPTH, self->depth - self->k);
            mrc_parallel_for(threads, (self->columns + self->nr - 1) / self->nr, pack_right_panel, self);
            int64_t down = (self->left.count + self->rows_each - 1) / self->rows_each;
            int64_t across = (self->columns + self->columns_each - 1) / self->columns_each;
            mrc_parallel_for(threads, down * across, broad_piece, self);
        }
    }
}

/* ---- Narrow -------------------------------------------------------------------------------------------------- */

/* Copy the current part of the rows of the left side to own->left (count, deep), each contiguous. */
static void copy_left(const gemm *self, const space *own)
{
    const int64_t size = self->size, step = self->left.by_rows ? size : self->left.ld * size;
    for (int64_t i = 0; i < self->left.count; i++) {
        const char *at = self->left.data + (self->left.by_rows ? i * self->left.ld * size : i * size) + self->k * step;
        char *to = own->left + i * self->deep * size;
        for (int64_t k = 0; k < self->deep; k++) memcpy(to + k * size, at + k * step, (size_t)size);
    }
}

/* Compute columns of C, starting at `column`. right: the same columns of the right side; consecutive indices of the
   depth are ld elements apart. */
static void multiply_lone(const gemm *self, const space *own, int64_t column, int64_t columns, const char *right,
                          int64_t ld)
{
    const mrc_panel_ops *ops = self->uk->panel;
    for (int64_t i = 0; i < self->left.count; i++) {
        const char *left = own->left + i * self->deep * self->size;
        if (self->wide)
            ops->chains_f64(self->deep, columns, (const void *)left, (const void *)right, ld, (void *)own->tile);
        else
            ops->chains_f32(self->deep, columns, (const void *)left, (const void *)right, ld, (void *)own->tile);
        blend(self, 1, columns, columns, own->tile, self->c + (i * self->down + column * self->across) * self->size);
    }
}

/* Compute columns begin .. end - 1 of C for one or two rows of the left side. If the columns of the right side are
   adjacent in memory, they are read in place; otherwise panels of nr are transposed first. */
static void lone_columns(const gemm *self, const space *own, int64_t begin, int64_t end)
{
    copy_left(self, own);
    for (int64_t j = begin; j < end && !self->right.by_rows; j += CHAINS)
        multiply_lone(self, own, j, mrc_min(CHAINS, end - j),
                      self->right.data + (self->k * self->right.ld + j) * self->size, self->right.ld);
    for (int64_t j = begin; j < end && self->right.by_rows; j += self->nr) {
        pack_side(self, &self->right, j, self->nr, own->staging, own->panel);
        multiply_lone(self, own, j, mrc_min(self->nr, end - j), own->panel, self->nr);
    }
}

/* Compute a piece of columns of C over the whole depth. */
static void narrow_piece(void *argument, int64_t index, int worker)
{
    gemm self = *(const gemm *)argument; /* a copy, because each piece has its own position in the depth */
    space own = space_of(&self, worker);
    int64_t begin = index * self.columns_each, end = mrc_min(begin + self.columns_each, self.right.count);
    for (self.k = 0; self.k < self.depth; self.k += DEPTH) {
        self.deep = mrc_min(DEPTH, self.depth - self.k);
        if (self.left.count <= LONE) {
            lone_columns(&self, &own, begin, end);
            continue;
        }
        pack_left(&self, &own, 0, self.left.count);
        for (int64_t j = begin; j < end; j += self.nr) {
            pack_side(&self, &self.right, j, self.nr, own.staging, own.panel);
            for (int64_t i = 0; i < self.left.count; i += self.mr)
                multiply_tile(&self, own.left + i * self.deep * self.size, own.panel, own.tile, i, j);
        }
    }
}

/* Divide the columns of the longer side into pieces, each with enough work to be worth a thread. */
static void run_narrow(gemm *self, int threads)
{
    int64_t n = self->right.count, work = mrc_max(1, self->left.count * self->depth);
    int64_t wanted = PIECES * (int64_t)threads, columns = (n + wanted - 1) / wanted;
    columns = mrc_max(columns, (LEAST_WORK + work - 1) / work);
    self->columns_each = mrc_min(mrc_round_up(columns, self->nr), COLUMNS);
    mrc_parallel_for(threads, (n + self->columns_each - 1) / self->columns_each, narrow_piece, self);
}

/* ---- Entry --------------------------------------------------------------------------------------------------- */

/* C = beta C. beta == 0 must store zeros without reading C; the blend functions handle this case. */
static void scale_c(const gemm *self)
{
    const double zero = 0;
    const float narrow_zero = 0;
    for (int64_t i = 0; i < self->left.count; i++)
        for (int64_t j = 0; j < self->right.count; j++) {
            void *c = self->c + (i * self->down + j * self->across) * self->size;
            if (self->wide)
                self->uk->panel->blend_f64(1, 1, 1, &zero, 0, self->beta, c, 1, 1);
            else
                self->uk->panel->blend_f32(1, 1, 1, &narrow_zero, 0, (float)self->beta, c, 1, 1);
        }
}

/* Compute the transpose of C instead, so that the side with few rows is the left one. */
static void swap_sides(gemm *self)
{
    side left = self->left;
    int64_t down = self->down;
    self->left = self->right, self->right = left;
    self->down = self->across, self->across = down;
    self->lower = false; /* with so few rows, skipping a triangle saves nothing */
}

/* Choose the case, allocate the scratch space and compute. A worker has a part of the left side, two panels (the packed
   one and staging) and a tile; in the broad case all workers share the packed columns of the right side. */
static mercer_status run_gemm(gemm *self, mrc_backend *backend)
{
    mrc_arena *arena = &((mrc_cpu *)backend->state)->arena;
    int threads = backend->context->threads;
    bool narrow = mrc_min(self->left.count, self->right.count) <= NARROW;
    if (narrow && self->left.count > self->right.count) swap_sides(self);
    if (!narrow) choose_broad_pieces(self, threads);
    int64_t deep = mrc_min(DEPTH, self->depth), left_rows = narrow ? self->left.count : self->rows_each;
    self->left_bytes = mrc_round_up(mrc_round_up(left_rows, self->mr) * deep * self->size, MRC_ALIGNMENT);
    self->panel_bytes = mrc_round_up(mrc_max(self->mr, self->nr) * deep * self->size, MRC_ALIGNMENT);
    self->space_bytes = self->left_bytes + 2 * self->panel_bytes +
                        mrc_round_up(mrc_max(CHAINS, self->mr * self->nr) * self->size, MRC_ALIGNMENT);
    int64_t columns = narrow ? 0 : mrc_round_up(mrc_min(COLUMNS, self->right.count), self->nr);
    int64_t shared_bytes = mrc_round_up(columns * deep * self->size, MRC_ALIGNMENT);
    MRC_TRY(mrc_arena_reserve(arena, shared_bytes + threads * self->space_bytes));
    self->shared = mrc_arena_push(arena, shared_bytes);
    self->spaces = mrc_arena_push(arena, threads * self->space_bytes);
    if (narrow)
        run_narrow(self, threads);
    else
        run_broad(self, threads);
    mrc_arena_reset(arena);
    return MERCER_OK;
}

/* Describe the product to the driver; empty products and alpha = 0 need no micro-kernel. The left side has the rows of
   op(A), which are contiguous unless A is transposed. The right side has the columns of op(B), which are contiguous if
   B is transposed. */
static mercer_status start_gemm(mrc_backend *backend, const mrc_gemm *job, bool lower)
{
    const mrc_ukernels *uk = &((mrc_cpu *)backend->state)->uk;
    const mercer_matrix *a = job->a, *b = job->b, *c = job->c;
    const bool wide = c->dtype == MERCER_F64;
    gemm self = {.uk = uk,
                 .wide = wide,
                 .size = mrc_dtype_size(c->dtype),
                 .mr = wide ? uk->mr_f64 : uk->mr_f32,
                 .nr = wide ? uk->nr_f64 : uk->nr_f32,
                 .depth = job->transpose_a ? a->rows : a->cols,
                 .alpha = job->alpha,
                 .beta = job->beta,
                 .left = {a->data, c->rows, a->ld, !job->transpose_a},
                 .right = {b->data, c->cols, b->ld, job->transpose_b},
                 .c = c->data,
                 .down = c->ld,
                 .across = 1,
                 .lower = lower};
    if (c->rows == 0 || c->cols == 0) return MERCER_OK;
    if (self.depth > 0 && job->alpha != 0) return run_gemm(&self, backend);
    scale_c(&self);
    return MERCER_OK;
}

mercer_status mrc_cpu_gemm(mrc_backend *backend, const mrc_gemm *job)
{
    return start_gemm(backend, job, false);
}

mercer_status mrc_cpu_gemm_lower(mrc_backend *backend, const mrc_gemm *job)
{
    return start_gemm(backend, job, true);
}

mercer_status mrc_cpu_gram(mrc_backend *backend, double alpha, const mercer_matrix *a, double beta,
                           const mercer_matrix *gram)
{
    mrc_gemm job = {.transpose_a = true, .alpha = alpha, .beta = beta, .a = a, .b = a, .c = gram};
    return start_gemm(backend, &job, true);
}
