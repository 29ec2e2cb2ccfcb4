/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Row and element operations as typed loops. The results equal those of the defaults (src/backends/defaults.c), which
 * convert every element, but these loops are several times faster; copies run in parallel. Arithmetic is in double, and
 * each result is rounded once to its type.
 */
#include "backends/cpu/cpu.h"
#include "core/matrix.h"
#include "core/threads/parallel.h"

#include <string.h>

enum { ROWS_EACH = 64 };         /* rows per piece of parallel work */
enum { LEAST_SHARED = 1 << 16 }; /* minimum number of elements for which waking threads pays off */

typedef struct row_job {
    const mrc_panel_ops *panel;
    const mercer_matrix *to, *from;
    const int64_t *rows; /* row indices into from, or into to if scatter; NULL: 0, 1, ... */
    bool scatter;
} row_job;

/* Convert one row to the type of the destination, by a fast path for the common pairs of types. */
static void copy_row(const row_job *self, int64_t row)
{
    const mercer_matrix *to = self->to, *from = self->from;
    int64_t other = self->rows ? self->rows[row] : row, i = self->scatter ? other : row,
            source = self->scatter ? row : other;
    if (to->dtype == from->dtype)
        memcpy(mrc_row(to, i), mrc_row(from, source), (size_t)(to->cols * mrc_dtype_size(to->dtype)));
    else if (to->dtype == MERCER_F16)
        self->panel->to_half(to->cols, mrc_row(from, source), mrc_row(to, i));
    else if (to->dtype == MERCER_F32 && from->dtype == MERCER_F16)
        self->panel->from_half(to->cols, mrc_row(from, source), mrc_row(to, i));
    else if (to->dtype == MERCER_F64)
        mrc_load_row_f64(from, source, mrc_row(to, i));
    else
        mrc_load_row_f32(from, source, mrc_row(to, i));
}

/* A piece of parallel work: ROWS_EACH rows of the side that is not indexed. Scattered rows are distinct, so two pieces
   never write the same row. */
static void copy_rows(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const row_job *self = argument;
    int64_t end = mrc_min((piece + 1) * ROWS_EACH, self->scatter ? self->from->rows : self->to->rows);
    for (int64_t i = piece * ROWS_EACH; i < end; i++) copy_row(self, i);
}

mercer_status mrc_cpu_gather_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                  const int64_t *rows)
{
    row_job self = {((mrc_cpu *)backend->state)->uk.panel, to, from, rows, false};
    mrc_parallel_for(backend->context->threads, (to->rows + ROWS_EACH - 1) / ROWS_EACH, copy_rows, &self);
    return MERCER_OK;
}

mercer_status mrc_cpu_scatter_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                   const int64_t *rows)
{
    row_job self = {((mrc_cpu *)backend->state)->uk.panel, to, from, rows, true};
    mrc_parallel_for(backend->context->threads, (from->rows + ROWS_EACH - 1) / ROWS_EACH, copy_rows, &self);
    return MERCER_OK;
}

mercer_status mrc_cpu_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    MRC_TRY(mrc_check_copy(backend, to, from));
    return mrc_cpu_gather_rows(backend, to, from, NULL);
}

#define BOTH(a, b, type) ((a)->dtype == (type) && (b)->dtype == (type))

typedef struct sum_job {
    double a, b;
    const mercer_matrix *x, *y;
} sum_job;

/* Compute one row of a X + b Y; b = 0 must not read Y, which may be uninitialized. */
static void sum_row(const sum_job *self, int64_t i)
{
    const mercer_matrix *x = self->x, *y = self->y;
    const double a = self->a, b = self->b;
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

static void sum_rows(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const sum_job *self = argument;
    int64_t end = mrc_min((piece + 1) * ROWS_EACH, self->y->rows);
    for (int64_t i = piece * ROWS_EACH; i < end; i++) sum_row(self, i);
}

mercer_status mrc_cpu_axpby(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y)
{
    sum_job self = {a, b, x, y};
    int threads = y->rows * y->cols < LEAST_SHARED ? 1 : backend->context->threads;
    mrc_parallel_for(threads, (y->rows + ROWS_EACH - 1) / ROWS_EACH, sum_rows, &self);
    return MERCER_OK;
}

/* ---- Factors ---------------------------------------------------------------------------------------------------- */

typedef struct scale_job {
    const mercer_matrix *x;
    const double *factors;
    bool columns; /* true: one factor per column; false: one factor per row */
} scale_job;

/* Multiply one row by its factor, or by the factors of the columns. */
static void scale_row(const scale_job *self, int64_t i)
{
    const double *factors = self->factors, own = self->columns ? 0 : factors[i];
    int64_t cols = self->x->cols;
    float *single = mrc_row(self->x, i);
    double *wide = mrc_row(self->x, i);
    if (self->x->dtype == MERCER_F32 && self->columns)
        for (int64_t j = 0; j < cols; j++) single[j] = (float)(factors[j] * (double)single[j]);
    else if (self->x->dtype == MERCER_F32)
        for (int64_t j = 0; j < cols; j++) single[j] = (float)(own * (double)single[j]);
    else if (self->columns)
        for (int64_t j = 0; j < cols; j++) wide[j] *= factors[j];
    else
        for (int64_t j = 0; j < cols; j++) wide[j] *= own;
}

static void scale_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const scale_job *self = argument;
    int64_t end = mrc_min((piece + 1) * ROWS_EACH, self->x->rows);
    for (int64_t i = piece * ROWS_EACH; i < end; i++) scale_row(self, i);
}

static mercer_status scale_by_factors(const mrc_backend *backend, scale_job self)
{
    int threads = self.x->rows * self.x->cols < LEAST_SHARED ? 1 : backend->context->threads;
    mrc_parallel_for(threads, (self.x->rows + ROWS_EACH - 1) / ROWS_EACH, scale_some, &self);
    return MERCER_OK;
}

mercer_status mrc_cpu_scale_rows(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    return scale_by_factors(backend, (scale_job){x, factors, false});
}

mercer_status mrc_cpu_scale_columns(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    return scale_by_factors(backend, (scale_job){x, factors, true});
}

/* ---- Sums ------------------------------------------------------------------------------------------------------- */

/* One sum in double per column, over the rows in order, computed by the calling thread. */
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

/* ---- Kernel values of sums -------------------------------------------------------------------------------------- */

/* Values per strip. A strip is computed in the type of the sums, with the same maps as the tiles of a product
   (tile_body.h), so results are bitwise identical to those of kernel_eval. */
enum { STRIP = 256 };

typedef struct profile_job {
    const mrc_panel_ops *panel;
    const mercer_kernel *kernel;
    mrc_map map;
    const mercer_matrix *sums, *k;
} profile_job;

/* Apply the kernel function to float values, in double for kernels that would lose accuracy in float. */
static void map_float(const profile_job *self, int64_t count, float *values)
{
    if (self->map.in_float)
        self->panel->map_f32(&self->map, count, values);
    else if (self->map.id != 0 && self->panel->finite_f32(count, values))
        self->panel->map_wide_f32(&self->map, count, values);
    else
        for (int64_t j = 0; j < count; j++) values[j] = (float)mrc_kernel_of_distance(self->kernel, (double)values[j]);
}

static void map_double(const profile_job *self, int64_t count, double *values)
{
    if (self->map.id != 0 && self->panel->finite_f64(count, values))
        self->panel->map_f64(&self->map, count, values);
    else
        for (int64_t j = 0; j < count; j++) values[j] = mrc_kernel_of_distance(self->kernel, values[j]);
}

/* Map a strip of sums to kernel values and convert them to the type of K. */
static void profile_strip(const profile_job *self, int64_t i, int64_t first, int64_t count)
{
    double wide[STRIP];
    float single[STRIP];
    bool in_float = self->sums->dtype == MERCER_F32;
    mercer_matrix from = mrc_block(self->sums, i, first, 1, count), to = mrc_block(self->k, i, first, 1, count),
                  strip = mrc_view(in_float ? (void *)single : (void *)wide, 1, count, self->sums->dtype);
    row_job in = {self->panel, &strip, &from, NULL, false}, out = {self->panel, &to, &strip, NULL, false};
    copy_row(&in, 0);
    if (in_float)
        map_float(self, count, single);
    else
        map_double(self, count, wide);
    copy_row(&out, 0);
}

static void profile_rows(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const profile_job *self = argument;
    int64_t end = mrc_min((piece + 1) * ROWS_EACH, self->k->rows), columns = self->k->cols;
    for (int64_t i = piece * ROWS_EACH; i < end; i++)
        for (int64_t first = 0; first < columns; first += STRIP)
            profile_strip(self, i, first, mrc_min(STRIP, columns - first));
}

mercer_status mrc_cpu_kernel_of_sums(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *sums,
                                     const mercer_matrix *k)
{
    MRC_TRY(mrc_backend_check_kernel(backend, kernel));
    profile_job self = {((mrc_cpu *)backend->state)->uk.panel, kernel, mrc_map_for(kernel), sums, k};
    mrc_parallel_for(backend->context->threads, (k->rows + ROWS_EACH - 1) / ROWS_EACH, profile_rows, &self);
    return MERCER_OK;
}

/* ---- Column means ----------------------------------------------------------------------------------------------- */

/* Column means in double: mean_k = (1/m) sum_i x_ik. Rows are divided into at most 64 parts; the division depends only
   on the number of rows. The parts are summed in parallel, and their sums are added in order, so the result does not
   depend on the number of threads. Cost: m d additions. */
enum { MOST_PARTS = 64, FEWEST_ROWS = 256 };

typedef struct mean_job {
    const mercer_matrix *x;
    const mrc_panel_ops *panel;
    int64_t rows_each;
    double *sums; /* (parts, d) */
    double *rows; /* (parts, d): one converted row per part */
} mean_job;

/* Sum the rows of one part, converted to double. */
static void sum_part(void *argument, int64_t part, int worker)
{
    (void)worker;
    mean_job *self = argument;
    int64_t d = self->x->cols, first = part * self->rows_each, end = mrc_min(first + self->rows_each, self->x->rows);
    double *sum = self->sums + part * d, *row = self->rows + part * d;
    for (int64_t k = 0; k < d; k++) sum[k] = 0;
    for (int64_t i = first; i < end; i++) {
        if (self->x->dtype == MERCER_F32) {
            self->panel->add_f32(d, mrc_row(self->x, i), sum);
            continue;
        }
        mrc_load_row_f64(self->x, i, row);
        self->panel->add_f64(d, row, sum);
    }
}

mercer_status mrc_cpu_column_mean(mrc_backend *backend, const mercer_matrix *x, double *mean)
{
    int64_t d = x->cols, rows_each = mrc_max(FEWEST_ROWS, (x->rows + MOST_PARTS - 1) / MOST_PARTS);
    int64_t parts = (x->rows + rows_each - 1) / rows_each;
    for (int64_t k = 0; k < d; k++) mean[k] = 0;
    if (parts == 0) return MERCER_OK;
    mean_job self = {.x = x, .panel = ((mrc_cpu *)backend->state)->uk.panel, .rows_each = rows_each};
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.sums, 2 * parts * d, sizeof *self.sums, "column sums"));
    self.rows = self.sums + parts * d;
    mrc_parallel_for(backend->context->threads, parts, sum_part, &self);
    for (int64_t part = 0; part < parts; part++)
        for (int64_t k = 0; k < d; k++) mean[k] += self.sums[part * d + k];
    for (int64_t k = 0; k < d; k++) mean[k] /= (double)x->rows;
    return MERCER_OK;
}
