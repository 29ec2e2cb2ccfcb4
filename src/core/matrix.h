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
    MRC_ACCEPT_REAL = MRC_ACCEPT_F64 | MRC_ACCEPT_F32, /* what is computed in and written to */
    MRC_ACCEPT_ANY = MRC_ACCEPT_REAL | MRC_ACCEPT_F16 | MRC_ACCEPT_U8
};

int64_t mrc_dtype_size(mercer_dtype dtype);     /* bytes; 0 if it is no dtype */
const char *mrc_dtype_name(mercer_dtype dtype); /* "f64", ...; "?" if it is none */

/* Address of element (i, 0). */
static inline void *mrc_row(const mercer_matrix *matrix, int64_t i)
{
    return (char *)matrix->data + i * matrix->ld * mrc_dtype_size(matrix->dtype);
}

/* Element (i, j) as a double, exactly; and back, rounded to the dtype (f32, f64 only). */
double mrc_load(const mercer_matrix *matrix, int64_t i, int64_t j);
void mrc_store(const mercer_matrix *matrix, int64_t i, int64_t j, double value);

/* Row i, exactly; as floats only from f32, f16 and u8. */
void mrc_load_row_f64(const mercer_matrix *matrix, int64_t i, double *out);
void mrc_load_row_f32(const mercer_matrix *matrix, int64_t i, float *out);

/* Doubles into row i, rounded to any dtype; bytes are clamped to 0 .. 255. */
void mrc_store_row_f64(const mercer_matrix *matrix, int64_t i, const double *values);

/* Whether row i of a and row j of b, of as many columns, have the same values, all of them finite. */
bool mrc_rows_equal(const mercer_matrix *a, int64_t i, const mercer_matrix *b, int64_t j);

/* Views: of contiguous host memory; of some rows of a view, of some columns, of both from element (i, j) on. */
mercer_matrix mrc_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype);
mercer_matrix mrc_rows(const mercer_matrix *matrix, int64_t first, int64_t rows);
mercer_matrix mrc_columns(const mercer_matrix *matrix, int64_t first, int64_t cols);
mercer_matrix mrc_block(const mercer_matrix *matrix, int64_t i, int64_t j, int64_t rows, int64_t cols);

/* A view of host memory, not cleared, that lives as long as the scope. */
mercer_status mrc_scope_view(mrc_scope *scope, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype,
                             const char *what);

/* The view is usable: not NULL, sizes sane and not overflowing, ld >= cols, dtype among `accept` (MRC_ACCEPT_...). */
mercer_status mrc_check_matrix(mercer_context *context, const char *name, const mercer_matrix *matrix, int accept);
mercer_status mrc_check_size(mercer_context *context, const char *name, const mercer_matrix *matrix, int64_t rows,
                             int64_t cols);
mercer_status mrc_check_apart(mercer_context *context, const char *out_name, const mercer_matrix *out,
                              const char *in_name, const mercer_matrix *in);

/* Every element is finite; the message says where the first that is not stands. *largest, if not NULL: max
   |element|. */
mercer_status mrc_check_finite(mercer_context *context, const char *name, const mercer_matrix *matrix, double *largest);
/* Its message, of that element. */
mercer_status mrc_fail_finite(mercer_context *context, const char *name, int64_t i, int64_t j, double value);

/* Sample weights (n), or NULL: finite and not negative. */
mercer_status mrc_check_weights(mercer_context *context, const double *weights, int64_t n);
/* Class numbers (n), all in 0 .. classes - 1. */
mercer_status mrc_check_classes(mercer_context *context, const int32_t *labels, int64_t n, int64_t classes);

#endif
