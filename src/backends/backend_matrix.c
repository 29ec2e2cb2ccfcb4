/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocate and release matrices of a backend, check them, and give the host access to them, for the few small loops
   that no operation of the table covers. */
#include "backends/backend.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

mercer_status mrc_matrix_reserve(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                 mercer_dtype dtype, const char *what)
{
    *out = mrc_view(NULL, rows, cols, dtype);
    out->memory = mrc_backend_memory(backend);
    int64_t elements, bytes;
    if (!mrc_multiply(rows, cols, &elements) || !mrc_multiply(elements, mrc_dtype_size(dtype), &bytes))
        return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "%s: %lld x %lld exceeds the address space", what,
                        (long long)rows, (long long)cols);
    return backend->ops->alloc(backend, &out->data, bytes, what);
}

mercer_status mrc_matrix_create(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what)
{
    MRC_TRY(mrc_matrix_reserve(backend, out, rows, cols, dtype, what));
    mercer_status status = backend->ops->clear(backend, out);
    if (status != MERCER_OK) mrc_matrix_destroy(backend, out);
    return status;
}

void mrc_matrix_destroy(mrc_backend *backend, mercer_matrix *matrix)
{
    backend->ops->free(backend, matrix->data);
    memset(matrix, 0, sizeof *matrix);
}

/* Release function of a scope for a matrix in backend memory. */
static void release_data(void *backend, void *data)
{
    ((mrc_backend *)backend)->ops->free(backend, data);
}

mercer_status mrc_scope_reserve(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                mercer_dtype dtype, const char *what)
{
    MRC_TRY(mrc_matrix_reserve(backend, out, rows, cols, dtype, what));
    return mrc_scope_add(scope, release_data, backend, out->data);
}

mercer_status mrc_scope_matrix(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                               mercer_dtype dtype, const char *what)
{
    MRC_TRY(mrc_matrix_create(backend, out, rows, cols, dtype, what));
    return mrc_scope_add(scope, release_data, backend, out->data);
}

mercer_status mrc_scope_matrix_in(mrc_scope *scope, mrc_backend *backend, mercer_matrix *out, mrc_memory memory,
                                  int64_t rows, int64_t cols, mercer_dtype dtype, const char *what)
{
    if (memory != MRC_HOST) return mrc_scope_matrix(scope, backend, out, rows, cols, dtype, what);
    *out = mrc_view(NULL, rows, cols, dtype);
    return mrc_scope_alloc_zero(scope, &out->data, rows * cols, mrc_dtype_size(dtype), what);
}

/* The diagonal is viewed as a column whose rows are ld + 1 elements apart, so one copy sets it in any memory. */
mercer_status mrc_set_identity(mrc_backend *backend, const mercer_matrix *a)
{
    mercer_matrix diagonal = *a;
    double *ones;
    diagonal.cols = 1, diagonal.ld = a->ld + 1;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &ones, a->rows, sizeof *ones, "a column of ones"));
    for (int64_t i = 0; i < a->rows; i++) ones[i] = 1;
    mercer_matrix host = mrc_view(ones, a->rows, 1, MERCER_F64);
    MRC_TRY(backend->ops->clear(backend, a));
    return backend->ops->copy(backend, &diagonal, &host);
}

/* Only MRC_CUDA is checked by the backend. Every other kind of memory, also an invalid one, goes to the check of host
   matrices, which accepts host memory only. */
mercer_status mrc_backend_check_matrix(mrc_backend *backend, const char *name, const mercer_matrix *matrix, int accept)
{
    mrc_memory memory = matrix ? matrix->memory : MRC_HOST;
    if (memory != MRC_CUDA) return mrc_check_matrix(backend->context, name, matrix, accept);
    mercer_matrix view = *matrix;
    if (!backend->ops->check_memory)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "%s: memory kind %d (GPU) is not supported by backend %s, which computes on the CPU; use "
                        "host memory",
                        name, (int)memory, backend->ops->name);
    view.memory = MRC_HOST; /* the other checks are the same as for host memory */
    MRC_TRY(mrc_check_matrix(backend->context, name, &view, accept));
    return backend->ops->check_memory(backend, name, matrix);
}

/* On a device one scan finds the first element that is not finite. Only that element is copied to the host, for the
   message. Bytes are always finite. */
mercer_status mrc_matrix_check_finite(mrc_backend *backend, const char *name, const mercer_matrix *matrix,
                                      double *largest)
{
    int64_t first;
    double top, value;
    mercer_matrix one, host = mrc_view(&value, 1, 1, MERCER_F64);
    if (matrix->memory == MRC_HOST || matrix->dtype == MERCER_U8)
        return mrc_check_finite(backend->context, name, matrix, largest);
    MRC_TRY(backend->ops->scan(backend, matrix, &first, &top));
    if (largest) *largest = top;
    if (first < 0) return MERCER_OK;
    one = mrc_block(matrix, first / matrix->cols, first % matrix->cols, 1, 1);
    MRC_TRY(backend->ops->copy(backend, &host, &one));
    return mrc_fail_finite(backend->context, name, first / matrix->cols, first % matrix->cols, value);
}

/* For a kernel of the distance every finite row is in range, so a device matrix is scanned in place. The check of other
   kernels needs the lengths of the rows, so the whole matrix is copied to the host. */
mercer_status mrc_matrix_check_range(mrc_backend *backend, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real)
{
    mercer_matrix host;
    if (x->memory != MRC_HOST && mrc_kernel_is_stationary(kernel))
        return mrc_matrix_check_finite(backend, name, x, NULL);
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_open(&scope, backend, x, &host));
    return mrc_kernel_check_range(backend->context, kernel, name, &host, real);
}

/* Release function of a scope for the host copy made by mrc_host_open, if it still exists. */
static void release_copy(void *backend, void *host)
{
    mercer_matrix *copy = host;
    mrc_free(((mrc_backend *)backend)->context, copy->data);
    copy->data = NULL;
}

mercer_status mrc_host_open(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host)
{
    *host = *matrix;
    if (matrix->memory == MRC_HOST) return MERCER_OK;
    *host = mrc_view(NULL, matrix->rows, matrix->cols, matrix->dtype);
    int64_t elements = matrix->rows * matrix->cols; /* the matrix exists, so this does not overflow */
    MRC_TRY(mrc_alloc(backend->context, &host->data, elements, mrc_dtype_size(matrix->dtype), "a copy for the host"));
    mercer_status status = backend->ops->copy(backend, host, matrix);
    if (status != MERCER_OK) release_copy(backend, host);
    return status;
}

mercer_status mrc_host_close(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host, bool changed,
                             mercer_status status)
{
    if (matrix->memory == MRC_HOST || !host->data) return status;
    if (changed && status == MERCER_OK) status = backend->ops->copy(backend, matrix, host);
    release_copy(backend, host);
    return status;
}

mercer_status mrc_scope_open(mrc_scope *scope, mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host)
{
    MRC_TRY(mrc_host_open(backend, matrix, host));
    return matrix->memory == MRC_HOST ? MERCER_OK : mrc_scope_add(scope, release_copy, backend, host);
}

/* ---- Origins ------------------------------------------------------------------------------------------------- */

/* Columns per piece of work. A column belongs to one piece, so its sums are formed in the order of the rows. */
enum { FLAG_COLUMNS = 64 };

/* rows (n, d) in host memory; sums (3, d) f64: sum x, sum x^2, number of nonzero x. */
typedef struct flag_sums {
    const mercer_matrix *rows, *sums;
} flag_sums;

/* Add FLAG_COLUMNS columns, starting at column piece * FLAG_COLUMNS, to the sums. */
static void add_some_flags(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const flag_sums *job = argument;
    int64_t first = piece * FLAG_COLUMNS, count = mrc_min(FLAG_COLUMNS, job->rows->cols - first);
    mercer_matrix part = mrc_columns(job->rows, first, count);
    double row[FLAG_COLUMNS] = {0}, sum[FLAG_COLUMNS] = {0}, squares[FLAG_COLUMNS] = {0}, nonzero[FLAG_COLUMNS] = {0};
    for (int64_t i = 0; i < part.rows; i++) {
        mrc_load_row_f64(&part, i, row);
        for (int k = 0; k < FLAG_COLUMNS; k++) {
            sum[k] += row[k];
            squares[k] += row[k] * row[k];
            nonzero[k] += row[k] != 0 ? 1 : 0;
        }
    }
    for (int64_t k = 0; k < count; k++) {
        ((double *)mrc_row(job->sums, 0))[first + k] += sum[k];
        ((double *)mrc_row(job->sums, 1))[first + k] += squares[k];
        ((double *)mrc_row(job->sums, 2))[first + k] += nonzero[k];
    }
}

void mrc_add_flags(int threads, const mercer_matrix *rows, const mercer_matrix *sums)
{
    flag_sums job = {rows, sums};
    bool small = rows->rows * rows->cols < 1 << 16;
    mrc_parallel_for(small ? 1 : threads, (rows->cols + FLAG_COLUMNS - 1) / FLAG_COLUMNS, add_some_flags, &job);
}

/* Let n of the values be nonzero. By Cauchy-Schwarz, these n values are all equal if n sum x^2 = (sum x)^2, up to
   rounding. Values that are only nearly equal pass the test, too, which does no harm: 0 is a good origin for them. */
void mrc_clear_flags(const mercer_matrix *sums, int64_t rows, double *origin)
{
    for (int64_t k = 0; k < sums->cols; k++) {
        double sum = mrc_load(sums, 0, k), squares = mrc_load(sums, 1, k), nonzero = mrc_load(sums, 2, k);
        bool one = nonzero * squares - sum * sum <= 1e-9 * nonzero * squares;
        if (nonzero < (double)rows && one) origin[k] = 0;
    }
}
