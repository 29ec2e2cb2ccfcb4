/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Defaults of the optional operations, except dense linear algebra (dense.c), and host memory. Plain loops in double,
 * written for correctness rather than speed. A backend overrides the operations that it can do better.
 */
#include "backends/reference/dense.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <string.h>

/* ---- Host memory --------------------------------------------------------------------------------------------- */

mercer_status mrc_host_alloc(mrc_backend *backend, void **out, int64_t bytes, const char *what)
{
    return mrc_alloc(backend->context, out, bytes, 1, what);
}

void mrc_host_free(mrc_backend *backend, void *memory)
{
    mrc_free(backend->context, memory);
}

mercer_status mrc_host_sync(mrc_backend *backend)
{
    (void)backend;
    return MERCER_OK;
}

enum { CLEARED_ROWS = 256 }; /* rows cleared by a thread at a time */

static void clear_rows(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const mercer_matrix *matrix = argument;
    size_t bytes = (size_t)(matrix->cols * mrc_dtype_size(matrix->dtype));
    int64_t end = mrc_min((piece + 1) * CLEARED_ROWS, matrix->rows);
    /* Row by row, because a view may be part of a wider matrix. */
    for (int64_t i = piece * CLEARED_ROWS; i < end && bytes > 0; i++) memset(mrc_row(matrix, i), 0, bytes);
}

/* Rows are cleared in parallel, because the first write to new memory is slow: the operating system clears each page
   first. */
static mercer_status default_clear(mrc_backend *backend, const mercer_matrix *matrix)
{
    mercer_matrix copy = *matrix;
    mrc_parallel_for(backend->context->threads, (matrix->rows + CLEARED_ROWS - 1) / CLEARED_ROWS, clear_rows, &copy);
    return MERCER_OK;
}

static int64_t default_free_memory(mrc_backend *backend)
{
    (void)backend;
    return mrc_free_memory();
}

/* No packed form exists, so products use the rows as they are. pack_rows stays NULL: callers call it only for a copy
   that pack_create returned. */
static mercer_status default_pack_create(mrc_backend *backend, mrc_packed **out, const mercer_kernel *kernel,
                                         const double *origin, const mercer_matrix *like)
{
    (void)backend, (void)kernel, (void)origin, (void)like;
    *out = NULL;
    return MERCER_OK;
}

static void default_pack_free(mrc_backend *backend, mrc_packed *packed)
{
    (void)backend, (void)packed;
}

/* The elements are in the memory of the backend already. *out refers to them, so they must stay unchanged while *out is
   used. */
static mercer_status default_stage(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *out)
{
    (void)backend;
    *out = *matrix;
    return MERCER_OK;
}

mercer_status mrc_check_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    bool to_half = to->dtype == MERCER_F16 && from->dtype == MERCER_F32;
    if (to->dtype == from->dtype || to->dtype == MERCER_F32 || to->dtype == MERCER_F64 || to_half) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_DTYPE, "copy: %s cannot be converted to %s",
                    mrc_dtype_name(from->dtype), mrc_dtype_name(to->dtype));
}

/* Convert row `source` of `from` to row i of `to`. The last case is f32 to f16, the only other conversion that
   mrc_check_copy accepts. */
static void copy_row(const mercer_matrix *to, int64_t i, const mercer_matrix *from, int64_t source)
{
    if (to->dtype == from->dtype)
        memcpy(mrc_row(to, i), mrc_row(from, source), (size_t)(to->cols * mrc_dtype_size(to->dtype)));
    else if (to->dtype == MERCER_F64)
        mrc_load_row_f64(from, source, mrc_row(to, i));
    else if (to->dtype == MERCER_F32)
        mrc_load_row_f32(from, source, mrc_row(to, i));
    else
        for (int64_t j = 0; j < to->cols; j++)
            ((uint16_t *)mrc_row(to, i))[j] = mrc_half_from_float(((const float *)mrc_row(from, source))[j]);
}

mercer_status mrc_host_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    MRC_TRY(mrc_check_copy(backend, to, from));
    for (int64_t i = 0; i < to->rows; i++) copy_row(to, i, from, i);
    return MERCER_OK;
}

/* ---- Kernel matrices ----------------------------------------------------------------------------------------- */

/* Column j of k is for row j of Z; k may have fewer columns than Z has rows. If a callback fails, the values computed
   before the failure have been stored. */
static mercer_status default_kernel_eval(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *k)
{
    int64_t d = pair->x->cols;
    double *x, value;
    if (k->cols == 0) return MERCER_OK; /* if k has no columns, its number of rows does not matter */
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    MRC_TRY(mrc_scope_alloc(&scope, &x, 2 * d, sizeof *x, "two rows"));
    for (int64_t i = 0; i < k->rows; i++) {
        mrc_load_row_f64(pair->x, i, x);
        for (int64_t j = 0; j < k->cols; j++) {
            mrc_load_row_f64(pair->z, j, x + d);
            if (!mrc_kernel_reference(pair->kernel, d, x, x + d, &value))
                return mrc_fail(backend->context, MERCER_ERROR_CALLBACK,
                                "kernel: the callback failed at row %lld of X, %lld of Z", (long long)i, (long long)j);
            mrc_store(k, i, j, value);
        }
    }
    return MERCER_OK;
}

/* One chain of sums in double over the features, rounded once to the type of `sums`. */
static mercer_status default_kernel_sums(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *sums)
{
    const double norm = mrc_kernel_norm(pair->kernel);
    int64_t d = pair->x->cols;
    double *x;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &x, 2 * d, sizeof *x, "two rows"));
    for (int64_t i = 0; i < sums->rows; i++) {
        mrc_load_row_f64(pair->x, i, x);
        for (int64_t j = 0; j < sums->cols; j++) {
            double sum = 0;
            mrc_load_row_f64(pair->z, j, x + d);
            for (int64_t k = 0; k < d; k++) sum += mrc_difference_power(norm, x[k] - x[d + k]);
            mrc_store(sums, i, j, sum);
        }
    }
    return MERCER_OK;
}

static mercer_status default_kernel_of_sums(mrc_backend *backend, const mercer_kernel *kernel,
                                            const mercer_matrix *sums, const mercer_matrix *k)
{
    MRC_TRY(mrc_backend_check_kernel(backend, kernel));
    for (int64_t i = 0; i < k->rows; i++)
        for (int64_t j = 0; j < k->cols; j++) mrc_store(k, i, j, mrc_kernel_of_distance(kernel, mrc_load(sums, i, j)));
    return MERCER_OK;
}

/* Add the contribution of pair (x, z) to the sums (c, d) of a row of X: value times w (c) times the signs of x - z. */
static void add_signs(int64_t d, const double *x, const double *z, double value, int64_t c, const double *w,
                      double *sums)
{
    for (int64_t l = 0; l < c; l++)
        for (int64_t k = 0; k < d; k++) sums[l * d + k] += value * w[l] * (double)((x[k] > z[k]) - (x[k] < z[k]));
}

/* Sums in double over all centers; row i of Y is rounded once, when all of its centers have been added. */
static mercer_status default_kernel_signs(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                          const mercer_matrix *y)
{
    int64_t d = pair->x->cols, c = w->cols;
    double *x, value;
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &x, 2 * d + c + c * d, sizeof *x, "sums of a row"));
    double *z = x + d, *weights = z + d, *sums = weights + c;
    for (int64_t i = 0; i < y->rows; i++) {
        mrc_load_row_f64(pair->x, i, x);
        memset(sums, 0, (size_t)(c * d) * sizeof *sums);
        for (int64_t j = 0; j < w->rows; j++) {
            mrc_load_row_f64(pair->z, j, z);
            mrc_load_row_f64(w, j, weights);
            if (!mrc_kernel_reference(pair->kernel, d, x, z, &value))
                return mrc_fail(backend->context, MERCER_ERROR_CALLBACK, "kernel: the callback failed");
            add_signs(d, x, z, value, c, weights, sums);
        }
        for (int64_t k = 0; k < c * d; k++) mrc_store(y, i, k, sums[k]);
    }
    return MERCER_OK;
}

/* Sums in double over all pairs, row by row of X. out is also the accumulator. */
static mercer_status default_feature_sums(mrc_backend *backend, const mrc_feature_sums *job, double *out)
{
    int64_t d = job->x->cols;
    double *x;
    for (int64_t k = 0; k < d; k++) out[k] = 0;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &x, 2 * d, sizeof *x, "two rows"));
    for (int64_t i = 0; i < job->x->rows; i++) {
        mrc_load_row_f64(job->x, i, x);
        for (int64_t j = 0; j < job->z->rows; j++) {
            double weight = mrc_load(job->a, i, j) * mrc_load(job->b, i, j);
            mrc_load_row_f64(job->z, j, x + d);
            for (int64_t k = 0; k < d; k++) out[k] += weight * mrc_difference_power(job->norm, x[k] - x[d + k]);
        }
    }
    return MERCER_OK;
}

/* A kernel of the distance has one value on the whole diagonal, which is evaluated for the first row only. A callback
   is called for each row. */
static mercer_status default_kernel_diagonal(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                                             const mercer_matrix *diagonal)
{
    double *row, value = 0;
    bool constant = mrc_kernel_is_stationary(kernel) && !mrc_kernel_is_callback(kernel); /* a function of x - x = 0 */
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_backend_check_kernel(backend, kernel));
    MRC_TRY(mrc_scope_alloc(&scope, &row, x->cols, sizeof *row, "a row"));
    for (int64_t i = 0; i < x->rows; i++) {
        if (i == 0 || !constant) mrc_load_row_f64(x, i, row);
        if ((i == 0 || !constant) && !mrc_kernel_reference(kernel, x->cols, row, row, &value))
            return mrc_fail(backend->context, MERCER_ERROR_CALLBACK, "kernel: the callback failed at row %lld of X",
                            (long long)i);
        mrc_store(diagonal, i, 0, value);
    }
    return MERCER_OK;
}

static mercer_status default_row_sqnorms(mrc_backend *backend, const mercer_matrix *x, double *norms)
{
    (void)backend;
    for (int64_t i = 0; i < x->rows; i++) {
        norms[i] = 0;
        for (int64_t j = 0; j < x->cols; j++) norms[i] += mrc_load(x, i, j) * mrc_load(x, i, j);
    }
    return MERCER_OK;
}

static mercer_status default_column_mean(mrc_backend *backend, const mercer_matrix *x, double *mean)
{
    (void)backend;
    for (int64_t j = 0; j < x->cols; j++) mean[j] = 0;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) mean[j] += mrc_load(x, i, j);
    for (int64_t j = 0; j < x->cols && x->rows > 0; j++) mean[j] /= (double)x->rows;
    return MERCER_OK;
}

/* The comparison is strict, so the first row of Z wins a tie. The first row is always taken, even if its sum is
   infinite. */
static mercer_status default_nearest_rows(mrc_backend *backend, const mrc_search *search, int32_t *nearest,
                                          double *sums)
{
    const double norm = search->norm > 0 ? search->norm : 2;
    int64_t d = search->x->cols;
    double *x;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &x, 2 * d, sizeof *x, "two rows"));
    double *z = x + d;
    for (int64_t i = 0; i < search->x->rows; i++) {
        mrc_load_row_f64(search->x, i, x);
        for (int64_t j = 0; j < search->z->rows; j++) {
            double sum = 0;
            mrc_load_row_f64(search->z, j, z);
            for (int64_t k = 0; k < d; k++) sum += mrc_difference_power(norm, x[k] - z[k]);
            if (j > 0 && !(sum < sums[i])) continue;
            sums[i] = sum;
            nearest[i] = (int32_t)j;
        }
    }
    return MERCER_OK;
}

/* ---- Rows and elements --------------------------------------------------------------------------------------- */

static mercer_status default_gather_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                         const int64_t *rows)
{
    (void)backend;
    for (int64_t i = 0; i < to->rows; i++) copy_row(to, i, from, rows[i]);
    return MERCER_OK;
}

/* One copy per row by the backend's own operation, which supports every memory and every conversion. */
static mercer_status default_scatter_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                          const int64_t *rows)
{
    for (int64_t i = 0; i < from->rows; i++) {
        mercer_matrix one = mrc_rows(from, i, 1), target = mrc_rows(to, rows[i], 1);
        MRC_TRY(backend->ops->copy(backend, &target, &one));
    }
    return MERCER_OK;
}

static mercer_status default_scatter_add_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                              const int64_t *rows, double factor)
{
    for (int64_t i = 0; i < from->rows; i++) {
        mercer_matrix one = mrc_rows(from, i, 1), target = mrc_rows(to, rows[i], 1);
        MRC_TRY(backend->ops->axpby(backend, factor, &one, 1, &target));
    }
    return MERCER_OK;
}

/* Evaluate as many rows of K at a time as the scratch space holds. The rows are multiplied before they are stored: the
   product uses the values before rounding to the type of stored->k. */
static mercer_status default_kernel_rows(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                         const mercer_matrix *y, const mrc_stored *stored)
{
    const mrc_backend_ops *ops = backend->ops;
    for (int64_t first = 0; first < stored->count; first += stored->scratch->rows) {
        int64_t count = mrc_min(stored->scratch->rows, stored->count - first);
        mercer_matrix block = mrc_rows(stored->scratch, 0, count), x = mrc_rows(pair->x, first, count);
        mrc_pair part = *pair;
        part.x = &x;
        MRC_TRY(ops->kernel_eval(backend, &part, &block));
        if (w) {
            mercer_matrix y_part = mrc_rows(y, first, count);
            mrc_gemm job = {false, false, 1, stored->add ? 1 : 0, &block, w, &y_part};
            MRC_TRY(ops->gemm(backend, &job));
        }
        if (stored->rows) {
            MRC_TRY(ops->scatter_rows(backend, stored->k, &block, stored->rows + first));
        } else {
            mercer_matrix to = mrc_rows(stored->k, first, count);
            MRC_TRY(ops->copy(backend, &to, &block));
        }
    }
    return MERCER_OK;
}

/* The scratch space holds one block of rows of K at a time. For K W, a block yields the same number of rows of Y. For
   K' W, each block adds a term to Y, and the first block overwrites Y. A block is reused (same_rows) only if it
   contains all rows, because otherwise the last block has overwritten the first. */
mercer_status mrc_default_rows_product(mrc_backend *backend, const mrc_stored *stored, bool transpose,
                                       const mercer_matrix *w, const mercer_matrix *y)
{
    const mrc_backend_ops *ops = backend->ops;
    if (transpose && stored->count == 0) return ops->clear(backend, y);
    for (int64_t first = 0; first < stored->count; first += stored->scratch->rows) {
        int64_t count = mrc_min(stored->scratch->rows, stored->count - first);
        mercer_matrix block = mrc_rows(stored->scratch, 0, count);
        if (stored->same_rows && count == stored->count) {
            /* nothing to do: the buffer still contains the whole block */
        } else if (stored->rows) {
            MRC_TRY(ops->gather_rows(backend, &block, stored->k, stored->rows + first));
        } else {
            mercer_matrix from = mrc_rows(stored->k, first, count);
            MRC_TRY(ops->copy(backend, &block, &from));
        }
        mercer_matrix w_part = transpose ? mrc_rows(w, first, count) : *w;
        mercer_matrix y_part = transpose ? *y : mrc_rows(y, first, count);
        mrc_gemm job = {transpose, false, 1, transpose && first > 0 ? 1 : 0, &block, &w_part, &y_part};
        MRC_TRY(ops->gemm(backend, &job));
    }
    return MERCER_OK;
}

/* b == 0 must not read Y: it may be uninitialized, and 0 times NaN is NaN. */
static mercer_status default_axpby(mrc_backend *backend, double a, const mercer_matrix *x, double b,
                                   const mercer_matrix *y)
{
    (void)backend;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++)
            mrc_store(y, i, j, a * mrc_load(x, i, j) + (b != 0 ? b * mrc_load(y, i, j) : 0));
    return MERCER_OK;
}

static mercer_status default_scale_rows(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    (void)backend;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) mrc_store(x, i, j, factors[i] * mrc_load(x, i, j));
    return MERCER_OK;
}

static mercer_status default_scale_columns(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    (void)backend;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) mrc_store(x, i, j, factors[j] * mrc_load(x, i, j));
    return MERCER_OK;
}

static mercer_status default_add_columns(mrc_backend *backend, const mercer_matrix *x, const double *factors,
                                         const mercer_matrix *y)
{
    (void)backend;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) mrc_store(y, i, j, mrc_load(y, i, j) + mrc_load(x, i, j) * factors[j]);
    return MERCER_OK;
}

static mercer_status default_round_half(mrc_backend *backend, const mercer_matrix *x)
{
    (void)backend;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            float *value = (float *)mrc_row(x, i) + j;
            *value = mrc_round_to_half(*value);
        }
    return MERCER_OK;
}

static mercer_status default_symmetrize(mrc_backend *backend, const mercer_matrix *a)
{
    (void)backend;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double mean = (mrc_load(a, i, j) + mrc_load(a, j, i)) / 2;
            mrc_store(a, i, j, mean);
            mrc_store(a, j, i, mean);
        }
    return MERCER_OK;
}

static mercer_status default_column_dots(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y,
                                         double *out)
{
    (void)backend;
    for (int64_t j = 0; j < x->cols; j++) out[j] = 0;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) out[j] += mrc_load(x, i, j) * mrc_load(y, i, j);
    return MERCER_OK;
}

static mercer_status default_draw_normals(mrc_backend *backend, const mrc_normal_table *table, uint64_t seed,
                                          const int64_t *sequences, uint64_t first, const mercer_matrix *x)
{
    (void)backend;
    for (int64_t i = 0; i < x->rows; i++)
        mrc_random_normals(table, (mrc_rng){seed, (uint64_t)sequences[i]}, first, x->cols, mrc_row(x, i));
    return MERCER_OK;
}

static mercer_status default_change_rows(mrc_backend *backend, const mrc_change *change, const mercer_matrix *to,
                                         const mercer_matrix *from, const mercer_matrix *other)
{
    (void)backend;
    mrc_change_rows(change, to, from, other);
    return MERCER_OK;
}

/* Matrices of a device are copied to the host for the loop. The strict comparisons choose the first column for ties. */
static mercer_status default_row_losses(mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                                        const double *scale, const double *offset, mrc_row_loss *out)
{
    mercer_matrix values, targets;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_open(&scope, backend, f, &values));
    MRC_TRY(mrc_scope_open(&scope, backend, y, &targets));
    for (int64_t i = 0; i < y->rows; i++) {
        int64_t guess = 0, truth = 0;
        double top = 0, top_target = 0;
        out[i] = (mrc_row_loss){0};
        for (int64_t j = 0; j < y->cols; j++) {
            double value = mrc_load(&values, i, j), target = mrc_load(&targets, i, j);
            if (scale) value *= scale[j], target *= scale[j];
            out[i].error += (value - target) * (value - target);
            out[i].size += target * target;
            if (offset) value += offset[j], target += offset[j];
            if (j == 0 || value > top) top = value, guess = j;
            if (j == 0 || target > top_target) top_target = target, truth = j;
        }
        out[i].right = guess == truth;
    }
    return MERCER_OK;
}

static mercer_status default_scan(mrc_backend *backend, const mercer_matrix *matrix, int64_t *first, double *largest)
{
    (void)backend;
    *first = -1, *largest = 0;
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t j = 0; j < matrix->cols; j++) {
            double value = fabs(mrc_load(matrix, i, j));
            if (isfinite(value))
                *largest = fmax(*largest, value);
            else if (*first < 0)
                *first = i * matrix->cols + j;
        }
    return MERCER_OK;
}

static mercer_status default_affine(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                    const mrc_affine *map)
{
    (void)backend;
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++) {
            double value = mrc_load(from, i, j);
            if (map->shift) value -= map->shift[j];
            if (map->factor) value *= map->factor[j];
            mrc_store(to, i, j, map->offset ? map->offset[j] + value : value);
        }
    return MERCER_OK;
}

/* Factor each matrix in place, solve L L' X = I in the matrix's part of `scratch`, and copy X back. A matrix that is
   not positive definite is skipped; the other matrices are still inverted. */
static mercer_status default_invert(mrc_backend *backend, const mercer_matrix *a, const mercer_matrix *scratch,
                                    double *least)
{
    int64_t n = a->cols, bad;
    for (int64_t first = 0; first < a->rows; first += n, least++) {
        mercer_matrix l = mrc_rows(a, first, n), inverse = mrc_rows(scratch, first, n);
        MRC_TRY(backend->ops->cholesky(backend, &l, &bad));
        *least = bad < 0 ? INFINITY : 0;
        if (bad >= 0) continue;
        for (int64_t i = 0; i < n; i++) *least = fmin(*least, mrc_load(&l, i, i) * mrc_load(&l, i, i));
        MRC_TRY(mrc_set_identity(backend, &inverse));
        MRC_TRY(backend->ops->triangular_solve(backend, &l, false, &inverse));
        MRC_TRY(backend->ops->triangular_solve(backend, &l, true, &inverse));
        MRC_TRY(backend->ops->copy(backend, &l, &inverse));
    }
    return MERCER_OK;
}

/* Compute the full matrix: the contract leaves the entries above the diagonal undefined. */
static mercer_status default_gram(mrc_backend *backend, double alpha, const mercer_matrix *a, double beta,
                                  const mercer_matrix *gram)
{
    mrc_gemm job = {.transpose_a = true, .alpha = alpha, .beta = beta, .a = a, .b = a, .c = gram};
    return backend->ops->gemm(backend, &job);
}

/* clang-format off */
/* Optional operations whose default is the function default_NAME of this file. Operations that may stay NULL are
   missing. */
#define PLAIN(X) \
    X(clear) X(free_memory) X(pack_create) X(pack_free) X(stage) X(kernel_eval) X(kernel_sums) X(kernel_of_sums) \
    X(kernel_signs) X(feature_sums) X(kernel_diagonal) X(row_sqnorms) X(column_mean) X(nearest_rows) X(gather_rows) \
    X(scatter_rows) X(scatter_add_rows) X(kernel_rows) X(axpby) X(scale_rows) X(scale_columns) X(add_columns) \
    X(round_half) X(symmetrize) X(column_dots) X(draw_normals) X(change_rows) X(invert) X(row_losses) X(scan) \
    X(affine) X(gram)
/* clang-format on */

void mrc_backend_fill_defaults(mrc_backend_ops *ops)
{
#define FILL(operation) \
    if (!ops->operation) ops->operation = default_##operation;
    PLAIN(FILL)
    /* defaults with other names, and split_gemm, whose default is a required operation */
    if (!ops->eigen_top) ops->eigen_top = mrc_default_eigen_top;
    if (!ops->cholesky) ops->cholesky = mrc_default_cholesky;
    if (!ops->triangular_solve) ops->triangular_solve = mrc_default_triangular_solve;
    if (!ops->split_gemm) ops->split_gemm = ops->gemm;
    if (!ops->rows_product) ops->rows_product = mrc_default_rows_product;
}
