/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Row and element operations in typed loops: the same results as the defaults in src/backend (which convert every
 * element), several times faster. Arithmetic is in double and rounded once to the type of the result.
 */
#include "core/matrix.h"
#include "cpu/cpu.h"

#define BOTH(a, b, type) ((a)->dtype == (type) && (b)->dtype == (type))

mercer_status mrc_cpu_axpby(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y)
{
    (void)backend;
    for (int64_t i = 0; i < y->rows; i++) {
        if (BOTH(x, y, MERCER_F32)) {
            const float *from = mrc_row(x, i);
            float *to = mrc_row(y, i);
            if (b == 0)
                for (int64_t j = 0; j < y->cols; j++) to[j] = (float)(a * (double)from[j]);
            else
                for (int64_t j = 0; j < y->cols; j++) to[j] = (float)(a * (double)from[j] + b * (double)to[j]);
        } else if (BOTH(x, y, MERCER_F64)) {
            const double *from = mrc_row(x, i);
            double *to = mrc_row(y, i);
            if (b == 0)
                for (int64_t j = 0; j < y->cols; j++) to[j] = a * from[j];
            else
                for (int64_t j = 0; j < y->cols; j++) to[j] = a * from[j] + b * to[j];
        } else {
            for (int64_t j = 0; j < y->cols; j++)
                mrc_store(y, i, j, a * mrc_load(x, i, j) + (b != 0 ? b * mrc_load(y, i, j) : 0));
        }
    }
    return MERCER_OK;
}

mercer_status mrc_cpu_scatter_add_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                       const int64_t *rows, double factor)
{
    for (int64_t i = 0; i < from->rows; i++) {
        mercer_matrix target = mrc_rows(to, rows[i], 1), source = mrc_rows(from, i, 1);
        MRC_TRY(mrc_cpu_axpby(backend, factor, &source, 1, &target));
    }
    return MERCER_OK;
}

mercer_status mrc_cpu_column_dots(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double *out)
{
    (void)backend;
    for (int64_t j = 0; j < x->cols; j++) out[j] = 0;
    for (int64_t i = 0; i < x->rows; i++) {
        if (BOTH(x, y, MERCER_F32)) {
            const float *left = mrc_row(x, i), *right = mrc_row(y, i);
            for (int64_t j = 0; j < x->cols; j++) out[j] += (double)left[j] * (double)right[j];
        } else if (BOTH(x, y, MERCER_F64)) {
            const double *left = mrc_row(x, i), *right = mrc_row(y, i);
            for (int64_t j = 0; j < x->cols; j++) out[j] += left[j] * right[j];
        } else {
            for (int64_t j = 0; j < x->cols; j++) out[j] += mrc_load(x, i, j) * mrc_load(y, i, j);
        }
    }
    return MERCER_OK;
}
