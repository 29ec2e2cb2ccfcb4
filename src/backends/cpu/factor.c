/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cholesky factorization and triangular solves in blocks of 256. LAPACK factors the diagonal blocks. Triangles are
 * solved for 32 packed columns at a time, in parallel. The rest, nearly all of the work, is products (gemm.c). Each
 * column of a solve, and each row of L below a diagonal block, has a fixed order of operations, so results do not
 * depend on the number of threads or on the other columns.
 *
 *   A = L L':  for k:  L_kk = chol(A_kk);  L_ik = A_ik L_kk^-T  (i > k);  A_ij -= L_ik L_jk'  (k < j <= i)  n^3/3 flops
 *   L X = B:   for k:  X_k = L_kk^-1 B_k;   B_i -= L_ik X_k      (i > k)                                    n^2 c flops
 *   L'X = B:   for k descending:  X_k = L_kk^-T B_k;   B_i -= L_ki' X_k  (i < k)
 *
 * For float matrices the products are in float. Triangles are copied to double, solved, and rounded: the copies
 * take no more time than separate triangular kernels in float would save.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <lapacke.h>
#include <limits.h>
#include <string.h>

enum { BLOCK = 256, STRIP = 32 /* columns per packed strip */, FEW = 8 /* the same if B has at most 8 columns */ };

/* Return the address of an element of an f64 matrix. */
static double *at(const mercer_matrix *a, int64_t i, int64_t j)
{
    return (double *)mrc_row(a, i) + j;
}

/* Return the number of rows of diagonal block number `block`: BLOCK, or fewer for the last one. */
static int block_size(int64_t n, int64_t block)
{
    return (int)mrc_min(BLOCK, n - block * BLOCK);
}

/* ---- Triangles ----------------------------------------------------------------------------------------------- */

/* A solve of L_kk X = B or L_kk' X = B. The right-hand sides are the columns of B or, if by_rows, its rows. */
typedef struct triangle {
    const mrc_panel_ops *ops;
    const double *l;
    int64_t ld, n;
    bool transpose, by_rows;
    const mercer_matrix *b; /* (n, count), or (count, n) by rows */
    int64_t count, width;   /* number of right-hand sides, in total and per strip */
    double *spaces;         /* (threads, 2, n, width): packed strip and staging buffer of each thread */
} triangle;

/* Return the position of row k in a packed strip. Rows are in reverse order for a transposed triangle, which is solved
   from its last row. */
static int64_t strip_row(const triangle *self, int64_t k)
{
    return self->transpose ? self->n - 1 - k : k;
}

/* Pack a strip of right-hand sides and pad it with zeros to `width`, so that strips of all sizes run the same code. */
static void load_strip(const triangle *self, int64_t first, int64_t count, double *staging, double *x)
{
    const int64_t n = self->n, width = self->width;
    if (!self->by_rows) {
        for (int64_t k = 0; k < n; k++) {
            double *to = x + strip_row(self, k) * width;
            memcpy(to, at(self->b, k, first), (size_t)count * sizeof *to);
            memset(to + count, 0, (size_t)(width - count) * sizeof *to);
        }
        return;
    }
    for (int64_t r = 0; r < width; r++) {
        if (r < count)
            memcpy(staging + r * n, at(self->b, first + r, 0), (size_t)n * sizeof *x);
        else
            memset(staging + r * n, 0, (size_t)n * sizeof *x);
    }
    self->ops->interleave_f64(n, width, staging, n, x);
}

/* Write a packed strip back to B. */
static void store_strip(const triangle *self, int64_t first, int64_t count, double *staging, const double *x)
{
    const int64_t n = self->n, width = self->width;
    if (!self->by_rows) {
        for (int64_t k = 0; k < n; k++)
            memcpy(at(self->b, k, first), x + strip_row(self, k) * width, (size_t)count * sizeof *x);
        return;
    }
    self->ops->interleave_f64(width, n, x, width, staging);
    for (int64_t r = 0; r < count; r++) memcpy(at(self->b, first + r, 0), staging + r * n, (size_t)n * sizeof *x);
}

/* Solve for one strip of right-hand sides, a piece of parallel work. */
static void solve_strip(void *argument, int64_t index, int worker)
{
    const triangle *self = argument;
    const int64_t n = self->n, first = index * self->width, count = mrc_min(self->width, self->count - first);
    double *x = self->spaces + worker * 2 * n * self->width, *staging = x + n * self->width;
    load_strip(self, first, count, staging, x);
    if (self->transpose) /* with rows and columns reversed, L' is a lower triangle */
        self->ops->solve(n, self->width, self->l + (n - 1) * (self->ld + 1), -1, -self->ld, x);
    else
        self->ops->solve(n, self->width, self->l, self->ld, 1, x);
    store_strip(self, first, count, staging, x);
}

/* Solve with one diagonal block l (n, n); X overwrites B. */
static mercer_status solve_triangle(mrc_backend *backend, const mercer_matrix *l, bool transpose, bool by_rows,
                                    const mercer_matrix *b)
{
    mrc_cpu *cpu = backend->state;
    int threads = backend->context->threads;
    triangle self = {.ops = cpu->uk.panel,
                     .l = l->data,
                     .ld = l->ld,
                     .n = l->rows,
                     .transpose = transpose,
                     .by_rows = by_rows,
                     .b = b,
                     .count = by_rows ? b->rows : b->cols};
    self.width = self.count <= FEW ? FEW : STRIP;
    int64_t bytes = threads * 2 * self.n * self.width * (int64_t)sizeof(double);
    MRC_TRY(mrc_arena_reserve(&cpu->arena, bytes));
    self.spaces = mrc_arena_push(&cpu->arena, bytes);
    mrc_parallel_for(threads, (self.count + self.width - 1) / self.width, solve_strip, &self);
    mrc_arena_reset(&cpu->arena);
    return MERCER_OK;
}

/* ---- Cholesky ------------------------------------------------------------------------------------------------ */

/* Set *out to the block itself if it is f64, or to a copy in double in `buffer` if it is f32. */
static mercer_status open_block(mrc_backend *backend, const mercer_matrix *block, double *buffer, mercer_matrix *out)
{
    *out = *block;
    if (block->dtype == MERCER_F64) return MERCER_OK;
    *out = mrc_view(buffer, block->rows, block->cols, MERCER_F64);
    return mrc_cpu_copy(backend, out, block);
}

/* Round the block back if open_block made a copy. */
static mercer_status close_block(mrc_backend *backend, const mercer_matrix *block, const mercer_matrix *opened)
{
    return block->dtype == MERCER_F64 ? MERCER_OK : mrc_cpu_copy(backend, block, opened);
}

/* Allocate `rows` times BLOCK doubles, the buffer of open_block, if a is f32; set *out to NULL if a is f64. */
static mercer_status allocate_doubles(mrc_scope *scope, const mercer_matrix *a, int64_t rows, double **out)
{
    *out = NULL;
    if (a->dtype == MERCER_F64) return MERCER_OK;
    return mrc_scope_alloc(scope, out, rows * BLOCK, sizeof **out, "blocks in double");
}

/* Factor a diagonal block in double in place. Set *bad to its first row whose pivot is not positive; -1: none. */
static mercer_status factor_diagonal(mrc_backend *backend, const mercer_matrix *block, int64_t *bad)
{
    /* The lower triangle in row-major order is the upper triangle in column-major order. */
    MRC_TRY(mrc_blas_begin(backend->context));
    lapack_int info =
        LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)block->rows, block->data, (lapack_int)block->ld);
    mrc_blas_end();
    if (info < 0)
        return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "Cholesky: LAPACK dpotrf returned %d", (int)info);
    /* Not every LAPACK detects a NaN, so info is not sufficient: find the first pivot that is not positive. */
    int64_t end = info > 0 ? info - 1 : block->rows, row = 0;
    while (row<end && * at(block, row, row)> 0) row++;
    *bad = info == 0 && row == end ? -1 : row;
    return MERCER_OK;
}

/* Set the entries right of the diagonal to 0, in one block of rows. */
static void clear_above(void *argument, int64_t index, int worker)
{
    (void)worker;
    const mercer_matrix *a = argument;
    size_t size = (size_t)mrc_dtype_size(a->dtype);
    for (int64_t i = index * BLOCK, end = mrc_min(i + BLOCK, a->rows); i < end; i++)
        memset((char *)mrc_row(a, i) + (size_t)(i + 1) * size, 0, (size_t)(a->cols - i - 1) * size);
}

mercer_status mrc_cpu_cholesky(mrc_backend *backend, const mercer_matrix *a, int64_t *bad)
{
    *bad = -1;
    if (a->ld > INT_MAX || a->rows > INT_MAX)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "Cholesky: %lld rows exceed the 32-bit sizes of LAPACK", (long long)a->rows);
    double *buffer;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(allocate_doubles(&scope, a, a->rows, &buffer));
    for (int64_t k = 0, first = 0; first < a->rows; k++) {
        int64_t size = block_size(a->rows, k), next = first + size, rest = a->rows - next;
        mercer_matrix diagonal = mrc_block(a, first, first, size, size), panel = mrc_block(a, next, first, rest, size),
                      below = mrc_block(a, next, next, rest, rest), triangle_of, panel_of;
        MRC_TRY(open_block(backend, &diagonal, buffer, &triangle_of));
        MRC_TRY(factor_diagonal(backend, &triangle_of, bad));
        if (*bad >= 0) {
            *bad += first;
            return MERCER_OK;
        }
        /* The rows below are solved with the factor in double; the factor is rounded to the type of A afterwards. */
        MRC_TRY(open_block(backend, &panel, buffer ? buffer + size * size : NULL, &panel_of));
        MRC_TRY(solve_triangle(backend, &triangle_of, false, true, &panel_of));
        MRC_TRY(close_block(backend, &panel, &panel_of));
        MRC_TRY(close_block(backend, &diagonal, &triangle_of));
        mrc_gemm update = {.transpose_b = true, .alpha = -1, .beta = 1, .a = &panel, .b = &panel, .c = &below};
        MRC_TRY(mrc_cpu_gemm_lower(backend, &update));
        first = next;
    }
    mercer_matrix upper = *a;
    mrc_parallel_for(backend->context->threads, (a->rows + BLOCK - 1) / BLOCK, clear_above, &upper);
    return MERCER_OK;
}

/* ---- Triangular systems -------------------------------------------------------------------------------------- */

mercer_status mrc_cpu_triangular_solve(mrc_backend *backend, const mercer_matrix *l, bool transpose,
                                       const mercer_matrix *b)
{
    int64_t blocks = (l->rows + BLOCK - 1) / BLOCK, n = l->rows, c = b->cols;
    if (c == 0) return MERCER_OK;
    double *buffer, *buffer_x;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(allocate_doubles(&scope, l, BLOCK, &buffer));
    MRC_TRY(allocate_doubles(&scope, l, c, &buffer_x));
    for (int64_t step = 0; step < blocks; step++) {
        int64_t k = transpose ? blocks - 1 - step : step, first = k * BLOCK, size = block_size(n, k);
        int64_t other = transpose ? 0 : first + size, rows = transpose ? first : n - other;
        mercer_matrix diagonal = mrc_block(l, first, first, size, size), x = mrc_rows(b, first, size),
                      rest = mrc_rows(b, other, rows), triangle_of, x_of;
        mercer_matrix factor =
            transpose ? mrc_block(l, first, other, size, rows) : mrc_block(l, other, first, rows, size);
        mrc_gemm update = {.transpose_a = transpose, .alpha = -1, .beta = 1, .a = &factor, .b = &x, .c = &rest};
        MRC_TRY(open_block(backend, &diagonal, buffer, &triangle_of));
        MRC_TRY(open_block(backend, &x, buffer_x, &x_of));
        MRC_TRY(solve_triangle(backend, &triangle_of, transpose, false, &x_of));
        MRC_TRY(close_block(backend, &x, &x_of));
        MRC_TRY(mrc_cpu_gemm(backend, &update));
    }
    return MERCER_OK;
}
