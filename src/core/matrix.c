/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix views: element access, and the checks of arguments. */
#include "core/matrix.h"

#include "core/memory.h"
#include "core/numbers/half.h"
#include "core/threads/parallel.h"

#include <math.h>
#include <string.h>

int64_t mrc_dtype_size(mercer_dtype dtype)
{
    switch (dtype) {
        case MERCER_F64: return 8;
        case MERCER_F32: return 4;
        case MERCER_F16: return 2;
        case MERCER_U8: return 1;
    }
    return 0;
}

const char *mrc_dtype_name(mercer_dtype dtype)
{
    switch (dtype) {
        case MERCER_F64: return "f64";
        case MERCER_F32: return "f32";
        case MERCER_F16: return "f16";
        case MERCER_U8: return "u8";
    }
    return "?";
}

mercer_matrix mrc_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    return (mercer_matrix){.data = data, .rows = rows, .cols = cols, .ld = cols, .dtype = dtype, .memory = MRC_HOST};
}

mercer_status mrc_scope_view(mrc_scope *scope, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype,
                             const char *what)
{
    *out = mrc_view(NULL, rows, cols, dtype);
    return mrc_scope_alloc(scope, &out->data, rows, cols * mrc_dtype_size(dtype), what);
}

mercer_matrix mrc_rows(const mercer_matrix *matrix, int64_t first, int64_t rows)
{
    mercer_matrix part = *matrix;
    part.data = mrc_row(matrix, first);
    part.rows = rows;
    return part;
}

mercer_matrix mrc_columns(const mercer_matrix *matrix, int64_t first, int64_t cols)
{
    mercer_matrix part = *matrix;
    part.data = (char *)matrix->data + first * mrc_dtype_size(matrix->dtype);
    part.cols = cols;
    return part;
}

mercer_matrix mrc_block(const mercer_matrix *matrix, int64_t i, int64_t j, int64_t rows, int64_t cols)
{
    mercer_matrix part = mrc_rows(matrix, i, rows);
    return mrc_columns(&part, j, cols);
}

/* ---- Elements ------------------------------------------------------------------------------------------------ */

double mrc_load(const mercer_matrix *matrix, int64_t i, int64_t j)
{
    const void *row = mrc_row(matrix, i);
    switch (matrix->dtype) {
        case MERCER_F64: return ((const double *)row)[j];
        case MERCER_F32: return (double)((const float *)row)[j];
        case MERCER_F16: return (double)mrc_half_to_float(((const uint16_t *)row)[j]);
        case MERCER_U8: return ((const uint8_t *)row)[j];
    }
    return 0;
}

void mrc_store(const mercer_matrix *matrix, int64_t i, int64_t j, double value)
{
    void *row = mrc_row(matrix, i);
    if (matrix->dtype == MERCER_F64)
        ((double *)row)[j] = value;
    else
        ((float *)row)[j] = (float)value;
}

bool mrc_rows_equal(const mercer_matrix *a, int64_t i, const mercer_matrix *b, int64_t j)
{
    size_t bytes = (size_t)(a->cols * mrc_dtype_size(a->dtype));
    if (bytes == 0) return true;
    if (a->dtype == b->dtype && memcmp(mrc_row(a, i), mrc_row(b, j), bytes) == 0) return true;
    /* compare values, because equal values may have different bytes: 0 and -0, or values of two dtypes */
    for (int64_t k = 0; k < a->cols; k++)
        if (mrc_load(a, i, k) != mrc_load(b, j, k)) return false;
    return true;
}

void mrc_load_row_f64(const mercer_matrix *matrix, int64_t i, double *out)
{
    const void *row = mrc_row(matrix, i);
    if (matrix->dtype == MERCER_F64)
        memcpy(out, row, (size_t)matrix->cols * sizeof *out);
    else if (matrix->dtype == MERCER_F32)
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = (double)((const float *)row)[j];
    else if (matrix->dtype == MERCER_F16)
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = (double)mrc_half_to_float(((const uint16_t *)row)[j]);
    else
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = ((const uint8_t *)row)[j];
}

void mrc_load_row_f32(const mercer_matrix *matrix, int64_t i, float *out)
{
    const void *row = mrc_row(matrix, i);
    if (matrix->dtype == MERCER_F64)
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = (float)((const double *)row)[j];
    else if (matrix->dtype == MERCER_F32)
        memcpy(out, row, (size_t)matrix->cols * sizeof *out);
    else if (matrix->dtype == MERCER_F16)
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = mrc_half_to_float(((const uint16_t *)row)[j]);
    else
        for (int64_t j = 0; j < matrix->cols; j++) out[j] = ((const uint8_t *)row)[j];
}

void mrc_store_row_f64(const mercer_matrix *matrix, int64_t i, const double *values)
{
    void *row = mrc_row(matrix, i);
    if (matrix->dtype == MERCER_F64)
        memcpy(row, values, (size_t)matrix->cols * sizeof *values);
    else if (matrix->dtype == MERCER_F32)
        for (int64_t j = 0; j < matrix->cols; j++) ((float *)row)[j] = (float)values[j];
    else if (matrix->dtype == MERCER_F16)
        for (int64_t j = 0; j < matrix->cols; j++) ((uint16_t *)row)[j] = mrc_half_from_float((float)values[j]);
    else
        for (int64_t j = 0; j < matrix->cols; j++) ((uint8_t *)row)[j] = (uint8_t)lrint(fmax(0, fmin(255, values[j])));
}

/* ---- Checks -------------------------------------------------------------------------------------------------- */

/* Computes the number of bytes from the first element to the end of the last. Returns false on overflow. Sizes must be
   >= 0. */
static bool span_bytes(const mercer_matrix *matrix, int64_t *bytes)
{
    int64_t elements;
    *bytes = 0;
    if (matrix->rows == 0 || matrix->cols == 0) return true;
    return mrc_multiply(matrix->rows - 1, matrix->ld, &elements) && mrc_add(elements, matrix->cols, &elements) &&
           mrc_multiply(elements, mrc_dtype_size(matrix->dtype), bytes) && *bytes <= PTRDIFF_MAX;
}

static mercer_status check_dtype(mercer_context *context, const char *name, mercer_dtype dtype, int accept)
{
    if (mrc_dtype_size(dtype) == 0)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "%s: dtype %d is not one of f64, f32, f16, u8", name, (int)dtype);
    if (!(accept & 1 << dtype))
        return mrc_fail(context, MERCER_ERROR_DTYPE, "%s: dtype %s is not accepted here; use %s", name,
                        mrc_dtype_name(dtype), accept == MRC_ACCEPT_F64 ? "f64" : "f32 or f64");
    return MERCER_OK;
}

mercer_status mrc_check_matrix(mercer_context *context, const char *name, const mercer_matrix *matrix, int accept)
{
    if (!matrix) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", name);
    if (matrix->rows < 0 || matrix->cols < 0)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "%s: %lld x %lld has a negative size", name,
                        (long long)matrix->rows, (long long)matrix->cols);
    MRC_TRY(check_dtype(context, name, matrix->dtype, accept));
    if (matrix->memory != MRC_HOST)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "%s: memory kind %d is not supported by this backend or function; use host memory", name,
                        (int)matrix->memory);
    if (matrix->reserved[0] || matrix->reserved[1])
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "%s: reserved words must be 0; initialize the view with "
                        "mercer_matrix_view",
                        name);
    if (matrix->ld < matrix->cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "%s: leading dimension %lld is smaller than its %lld columns",
                        name, (long long)matrix->ld, (long long)matrix->cols);
    int64_t bytes;
    if (!span_bytes(matrix, &bytes))
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%s: %lld x %lld with leading dimension %lld exceeds the address space", name,
                        (long long)matrix->rows, (long long)matrix->cols, (long long)matrix->ld);
    if (bytes > 0 && !matrix->data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: data is NULL", name);
    return MERCER_OK;
}

mercer_status mrc_check_size(mercer_context *context, const char *name, const mercer_matrix *matrix, int64_t rows,
                             int64_t cols)
{
    if (matrix->rows == rows && matrix->cols == cols) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_SHAPE, "%s is %lld x %lld; it must be %lld x %lld", name,
                    (long long)matrix->rows, (long long)matrix->cols, (long long)rows, (long long)cols);
}

/* Returns whether a and b are disjoint column ranges of one matrix. Their memory ranges overlap, but they share no
   element. */
static bool columns_apart(const mercer_matrix *a, const mercer_matrix *b)
{
    int64_t stride, other;
    if (!mrc_multiply(a->ld, mrc_dtype_size(a->dtype), &stride) ||
        !mrc_multiply(b->ld, mrc_dtype_size(b->dtype), &other) || stride != other || stride == 0)
        return false;
    int64_t width_a = a->cols * mrc_dtype_size(a->dtype), width_b = b->cols * mrc_dtype_size(b->dtype);
    int64_t offset = (int64_t)(((intptr_t)b->data - (intptr_t)a->data) % stride);
    if (offset < 0) offset += stride;
    return offset >= width_a && offset + width_b <= stride;
}

/* First compares the ranges of bytes, then allows disjoint columns of one matrix. Empty matrices never overlap. */
mercer_status mrc_check_apart(mercer_context *context, const char *out_name, const mercer_matrix *out,
                              const char *in_name, const mercer_matrix *in)
{
    int64_t out_bytes, in_bytes;
    if (!span_bytes(out, &out_bytes) || !span_bytes(in, &in_bytes) || out_bytes == 0 || in_bytes == 0) return MERCER_OK;
    uintptr_t out_start = (uintptr_t)out->data, in_start = (uintptr_t)in->data;
    if (out_start + (uintptr_t)out_bytes <= in_start || in_start + (uintptr_t)in_bytes <= out_start) return MERCER_OK;
    if (columns_apart(out, in)) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_OVERLAP, "%s overlaps %s in memory; use separate memory for the output",
                    out_name, in_name);
}

/* ---- Finite values ------------------------------------------------------------------------------------------- */

enum { SCAN_PARTS = 64 };

typedef struct scan {
    const mercer_matrix *matrix;
    int64_t rows_each;
    int64_t bad_row[SCAN_PARTS]; /* (parts) first row of each part with a value that is not finite; -1: none */
    double largest[SCAN_PARTS];
} scan;

/* Raises *largest to the largest magnitude in row i. Returns whether all values are finite. The dtype must not be
   u8. */
static bool row_is_finite(const mercer_matrix *matrix, int64_t i, double *largest)
{
    double top = *largest;
    const void *row = mrc_row(matrix, i);
    if (matrix->dtype == MERCER_F32) {
        /* Without the sign, the largest bit pattern belongs to the largest magnitude, or to a NaN or infinity if there
           is one. The integers are signed, because every x86-64 processor has vector comparisons of signed integers. */
        int32_t bits = 0;
        for (int64_t j = 0; j < matrix->cols; j++) {
            int32_t size = (int32_t)(mrc_bits_from_float(((const float *)row)[j]) & 0x7fffffff);
            bits = size > bits ? size : bits;
        }
        double size = (double)mrc_float_from_bits((uint32_t)bits);
        top = size > top || isnan(size) ? size : top;
    } else if (matrix->dtype == MERCER_F16) { /* as for floats, with the bit patterns of halves */
        int16_t bits = 0;
        for (int64_t j = 0; j < matrix->cols; j++) {
            int16_t size = (int16_t)(((const uint16_t *)row)[j] & 0x7fff);
            bits = size > bits ? size : bits;
        }
        double size = (double)mrc_half_to_float((uint16_t)bits);
        top = size > top || isnan(size) ? size : top;
    } else {
        for (int64_t j = 0; j < matrix->cols; j++) {
            double size = fabs(((const double *)row)[j]);
            top = size > top || isnan(size) ? size : top;
        }
    }
    *largest = top;
    return isfinite(top);
}

/* A task of mrc_parallel_for: scans the rows of a part up to the first row with a value that is not finite. */
static void scan_part(void *argument, int64_t part, int worker)
{
    (void)worker;
    scan *work = argument;
    int64_t first = part * work->rows_each, end = mrc_min(first + work->rows_each, work->matrix->rows);
    work->bad_row[part] = -1;
    work->largest[part] = 0;
    for (int64_t i = first; i < end; i++) {
        if (row_is_finite(work->matrix, i, &work->largest[part])) continue;
        work->bad_row[part] = i;
        return;
    }
}

mercer_status mrc_fail_finite(mercer_context *context, const char *name, int64_t i, int64_t j, double value)
{
    return mrc_fail(context, MERCER_ERROR_DATA, "%s: element at row %lld, column %lld (from 0) is %s", name,
                    (long long)i, (long long)j, isnan(value) ? "NaN" : "infinite");
}

/* Rows are scanned in at most SCAN_PARTS parts; parts are evaluated in order, so the message names the first bad
   element for any number of threads. A part stops at its first bad row, so *largest is complete only on success. */
mercer_status mrc_check_finite(mercer_context *context, const char *name, const mercer_matrix *matrix, double *largest)
{
    if (largest) *largest = matrix->dtype == MERCER_U8 ? 255 : 0;
    if (matrix->dtype == MERCER_U8 || matrix->cols == 0) return MERCER_OK;
    scan work = {.matrix = matrix, .rows_each = (matrix->rows + SCAN_PARTS - 1) / SCAN_PARTS};
    int64_t parts = work.rows_each ? (matrix->rows + work.rows_each - 1) / work.rows_each : 0;
    bool small = matrix->rows * matrix->cols < 1 << 16;
    mrc_parallel_for(small ? 1 : context->threads, parts, scan_part, &work);
    for (int64_t part = 0; part < parts; part++) {
        if (largest && work.largest[part] > *largest) *largest = work.largest[part];
        int64_t i = work.bad_row[part];
        if (i < 0) continue;
        int64_t j = 0;
        while (isfinite(mrc_load(matrix, i, j))) j++;
        return mrc_fail_finite(context, name, i, j, mrc_load(matrix, i, j));
    }
    return MERCER_OK;
}

mercer_status mrc_check_weights(mercer_context *context, const double *weights, int64_t n)
{
    for (int64_t i = 0; weights && i < n; i++)
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return mrc_fail(context, MERCER_ERROR_DATA, "weights: element %lld (from 0) is %g; it must be at least 0",
                            (long long)i, weights[i]);
    return MERCER_OK;
}

mercer_status mrc_check_classes(mercer_context *context, const int32_t *labels, int64_t n, int64_t classes)
{
    if (!labels && n > 0) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "labels is NULL");
    if (classes < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "classes is %lld; it must be at least 1", (long long)classes);
    for (int64_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= classes)
            return mrc_fail(context, MERCER_ERROR_DATA, "labels: element %lld (from 0) is %d; classes are 0 .. %lld",
                            (long long)i, (int)labels[i], (long long)classes - 1);
    return MERCER_OK;
}
