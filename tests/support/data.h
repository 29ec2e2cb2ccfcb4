/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices for tests: allocation, elements of any dtype, reproducible random content. */
#ifndef MRC_TESTS_DATA_H
#define MRC_TESTS_DATA_H

#include "core/matrix.h"
#include "core/numbers/half.h"
#include "core/numbers/random.h"

#include <math.h>
#include <stdlib.h>

/* Set element (i, j) to value, rounded to the dtype; u8 is clamped to 0 .. 255. */
static inline void data_store(const mercer_matrix *matrix, int64_t i, int64_t j, double value)
{
    void *row = mrc_row(matrix, i);
    switch (matrix->dtype) {
        case MERCER_F64: ((double *)row)[j] = value; break;
        case MERCER_F32: ((float *)row)[j] = (float)value; break;
        case MERCER_F16: ((uint16_t *)row)[j] = mrc_half_from_float((float)value); break;
        case MERCER_U8: ((uint8_t *)row)[j] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : lrint(value)); break;
    }
}

/* Allocate a zeroed matrix with leading dimension ld (0: cols). Release with free(matrix.data). */
static inline mercer_matrix data_matrix(int64_t rows, int64_t cols, int64_t ld, mercer_dtype dtype)
{
    mercer_matrix matrix = mrc_view(NULL, rows, cols, dtype);
    if (ld > cols) matrix.ld = ld;
    matrix.data = calloc((size_t)(rows * matrix.ld * mrc_dtype_size(dtype) + 1), 1);
    if (!matrix.data) abort();
    return matrix;
}

/* Return the elements as (rows, cols) doubles, for loops in which mrc_load would be too slow. Release with free. */
static inline double *data_values(const mercer_matrix *matrix)
{
    double *values = calloc((size_t)(matrix->rows * matrix->cols) + 1, sizeof *values);
    if (!values) abort();
    for (int64_t i = 0; i < matrix->rows; i++) mrc_load_row_f64(matrix, i, values + i * matrix->cols);
    return values;
}

/* Fill with independent normal numbers; element (i, j) depends only on (rng, i, j). */
static inline void data_fill_normal(const mercer_matrix *matrix, mrc_rng rng, double mean, double deviation)
{
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t j = 0; j < matrix->cols; j++)
            data_store(matrix, i, j, mean + deviation * mrc_random_normal(rng, (uint64_t)(i * matrix->cols + j)));
}

static inline void data_fill_uniform(const mercer_matrix *matrix, mrc_rng rng, double low, double high)
{
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t j = 0; j < matrix->cols; j++)
            data_store(matrix, i, j, low + (high - low) * mrc_random_uniform(rng, (uint64_t)(i * matrix->cols + j)));
}

#endif
