/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix views: sizes, checks with messages that name the argument, element access. */
#ifndef MRC_CORE_MATRIX_H
#define MRC_CORE_MATRIX_H

#include "core/memory.h"

/* Sets of dtypes, for checks. */
enum {
    MRC_ACCEPT_F64 = 1 << MERCER_F64,
    MRC_ACCEPT_F32 = 1 << MERCER_F32,
    MRC_ACCEPT_F16 = 1 << MERCER_F16,
    MRC_ACCEPT_U8 = 1 << MERCER_U8,
    MRC_ACCEPT_REAL = MRC_ACCEPT_F64 | MRC_ACCEPT_F32, /* types for computations and outputs */
    MRC_ACCEPT_ANY = MRC_ACCEPT_REAL | MRC_ACCEPT_F16 | MRC_ACCEPT_U8
};

int64_t mrc_dtype_size(mercer_dtype dtype);     /* returns bytes per element; 0 for an invalid dtype */
const char *mrc_dtype_name(mercer_dtype dtype); /* "f64", ...; "?" for an invalid dtype */

/* Returns the address of element (i, 0). */
static inline void *mrc_row(const mercer_matrix *matrix, int64_t i)
{
    return (char *)matrix->data + i * matrix->ld * mrc_dtype_size(matrix->dtype);
}

/* mrc_load returns element (i, j) as a double, exactly. mrc_store rounds a double to the dtype (f32 and f64 only) and
   stores it in element (i, j). */
double mrc_load(const mercer_matrix *matrix, int64_t i, int64_t j);
void mrc_store(const mercer_matrix *matrix, int64_t i, int64_t j, double value);

/* Load row i into out (cols). Conversions are exact, except that mrc_load_row_f32 rounds f64 values. */
void mrc_load_row_f64(const mercer_matrix *matrix, int64_t i, double *out);
void mrc_load_row_f32(const mercer_matrix *matrix, int64_t i, float *out);

/* Stores values (cols) in row i, rounded to the matrix's dtype; u8 is clamped to 0 .. 255. */
void mrc_store_row_f64(const mercer_matrix *matrix, int64_t i, const double *values);

/* Returns whether row i of a and row j of b have equal values. Both have the same number of columns, and all values are
   finite. */
bool mrc_rows_equal(const mercer_matrix *a, int64_t i, const mercer_matrix *b, int64_t j);

/* Make views. mrc_view: of contiguous host memory. The other functions make a view of a part of a matrix: rows,
   columns, or a block that begins at element (i, j). */
mercer_matrix mrc_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);
mercer_matrix mrc_rows(const mercer_matrix *matrix, int64_t first, int64_t rows);
mercer_matrix mrc_columns(const mercer_matrix *matrix, int64_t first, int64_t cols);
mercer_matrix mrc_block(const mercer_matrix *matrix, int64_t i, int64_t j, int64_t rows, int64_t cols);

/* Allocates a host matrix, not cleared, that lives as long as the scope. */
mercer_status mrc_scope_view(mrc_scope *scope, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype,
                             const char *what);

/* Checks of arguments; `name` is the argument's name in messages. mrc_check_matrix: the view is not NULL, is in host
   memory, and has a dtype in `accept` (MRC_ACCEPT_...). Sizes are not negative and do not overflow; ld >= cols.
   mrc_check_size: the matrix has the shape rows x cols. mrc_check_apart: `out` and `in` share no element. */
mercer_status mrc_check_matrix(mercer_context *context, const char *name, const mercer_matrix *matrix, int accept);
mercer_status mrc_check_size(mercer_context *context, const char *name, const mercer_matrix *matrix, int64_t rows,
                             int64_t cols);
mercer_status mrc_check_apart(mercer_context *context, const char *out_name, const mercer_matrix *out,
                              const char *in_name, const mercer_matrix *in);

/* Checks that every element is finite; otherwise the message names the position of the first NaN or infinity. Sets
   *largest, unless NULL, to max |element|, or to 255 for u8. */
mercer_status mrc_check_finite(mercer_context *context, const char *name, const mercer_matrix *matrix, double *largest);
/* Fails with the message of mrc_check_finite about element (i, j), whose value is `value`. */
mercer_status mrc_fail_finite(mercer_context *context, const char *name, int64_t i, int64_t j, double value);

/* Checks that sample weights (n) are finite and not negative; NULL is valid. */
mercer_status mrc_check_weights(mercer_context *context, const double *weights, int64_t n);
/* Checks that class numbers (n) are all in 0 .. classes - 1. */
mercer_status mrc_check_classes(mercer_context *context, const int32_t *labels, int64_t n, int64_t classes);

#endif
