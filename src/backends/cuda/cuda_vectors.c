/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Row and element operations: copy operands to the device, launch a kernel (elements.cu, normals.cu, sums.cu,
 * feature_sums.cu), copy results back. All of them have the same steps:
 *
 *   MRC_CUDA_SCRATCH      scratch that is released when the function returns
 *   mrc_cuda_read         operands that are only read; a copy if they are on the host
 *   mrc_cuda_write        operands that are written; their content is copied if the operation also reads it
 *   mrc_cuda_upload       row numbers and factors, which are always on the host
 *   mrc_launch_...        one kernel, queued on the stream of the backend
 *   mrc_cuda_write_back   copies a result to the host and waits; does nothing for results on the device
 *
 * Launches require sizes > 0, so operations on empty operands return before the launch.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

static bool is_empty(const mercer_matrix *a)
{
    return a->rows == 0 || a->cols == 0;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------- */

typedef struct host_rows {
    const mercer_matrix *to, *from;
    const int64_t *rows;
} host_rows;

enum { HOST_ROWS = 256 }; /* rows per piece of parallel work */

/* A piece of parallel work on host matrices of one dtype: copies HOST_ROWS of the listed rows of `from` to `to`. */
static void gather_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const host_rows *job = argument;
    int64_t first = piece * HOST_ROWS, end = mrc_min(first + HOST_ROWS, job->to->rows);
    size_t bytes = (size_t)(job->to->cols * mrc_dtype_size(job->to->dtype));
    for (int64_t i = first; i < end; i++) memcpy(mrc_row(job->to, i), mrc_row(job->from, job->rows[i]), bytes);
}

mercer_status mrc_cuda_gather_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                   const int64_t *rows)
{
    mercer_matrix target, source;
    int64_t *list;
    if (is_empty(to)) return MERCER_OK;
    MRC_TRY(mrc_check_copy(backend, to, from));
    if (to->memory == MRC_HOST && from->memory == MRC_HOST && to->dtype == from->dtype) {
        /* Gather on the host: going through the device would upload all of `from`. */
        int64_t pieces = (to->rows + HOST_ROWS - 1) / HOST_ROWS;
        mrc_parallel_for(backend->context->threads, pieces, gather_some, &(host_rows){to, from, rows});
        return MERCER_OK;
    }
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    MRC_TRY(mrc_cuda_write(backend, to, false, &target));
    MRC_TRY(mrc_cuda_upload(backend, &list, rows, to->rows * (int64_t)sizeof *rows));
    MRC_CUDA_TRY(backend, mrc_launch_gather(mrc_cuda_of(backend)->stream, target, source, list));
    return mrc_cuda_write_back(backend, to, &target);
}

/* The content of a host matrix is copied to the device first: rows that are not listed keep their values. */
mercer_status mrc_cuda_scatter_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                    const int64_t *rows)
{
    mercer_matrix target, source;
    int64_t *list;
    if (is_empty(from)) return MERCER_OK;
    MRC_TRY(mrc_check_copy(backend, to, from));
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    MRC_TRY(mrc_cuda_write(backend, to, true, &target));
    MRC_TRY(mrc_cuda_upload(backend, &list, rows, from->rows * (int64_t)sizeof *rows));
    MRC_CUDA_TRY(backend, mrc_launch_scatter(mrc_cuda_of(backend)->stream, target, source, list));
    return mrc_cuda_write_back(backend, to, &target);
}

mercer_status mrc_cuda_scatter_add_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                                        const int64_t *rows, double factor)
{
    mercer_matrix target, source;
    int64_t *list;
    if (is_empty(from)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    MRC_TRY(mrc_cuda_write(backend, to, true, &target));
    MRC_TRY(mrc_cuda_upload(backend, &list, rows, from->rows * (int64_t)sizeof *rows));
    MRC_CUDA_TRY(backend, mrc_launch_scatter_add(mrc_cuda_of(backend)->stream, target, source, list, factor));
    return mrc_cuda_write_back(backend, to, &target);
}

/* ---- Elements ------------------------------------------------------------------------------------------------ */

mercer_status mrc_cuda_axpby(mrc_backend *backend, double a, const mercer_matrix *x, double b, const mercer_matrix *y)
{
    mercer_matrix source, target;
    if (is_empty(y)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, x, &source));
    MRC_TRY(mrc_cuda_write(backend, y, b != 0, &target));
    MRC_CUDA_TRY(backend, mrc_launch_axpby(mrc_cuda_of(backend)->stream, a, source, b, target));
    return mrc_cuda_write_back(backend, y, &target);
}

static mercer_status scale_elements(mrc_backend *backend, const mercer_matrix *x, const double *factors, bool columns)
{
    mercer_matrix target;
    double *list;
    if (is_empty(x)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, x, true, &target));
    MRC_TRY(mrc_cuda_upload(backend, &list, factors, (columns ? x->cols : x->rows) * (int64_t)sizeof *factors));
    MRC_CUDA_TRY(backend, mrc_launch_scale(mrc_cuda_of(backend)->stream, target, list, columns));
    return mrc_cuda_write_back(backend, x, &target);
}

mercer_status mrc_cuda_scale_rows(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    return scale_elements(backend, x, factors, false);
}

mercer_status mrc_cuda_scale_columns(mrc_backend *backend, const mercer_matrix *x, const double *factors)
{
    return scale_elements(backend, x, factors, true);
}

mercer_status mrc_cuda_add_columns(mrc_backend *backend, const mercer_matrix *x, const double *factors,
                                   const mercer_matrix *y)
{
    mercer_matrix source, target;
    double *list;
    if (is_empty(y)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, x, &source));
    MRC_TRY(mrc_cuda_write(backend, y, true, &target));
    MRC_TRY(mrc_cuda_upload(backend, &list, factors, y->cols * (int64_t)sizeof *factors));
    MRC_CUDA_TRY(backend, mrc_launch_add_columns(mrc_cuda_of(backend)->stream, source, list, target));
    return mrc_cuda_write_back(backend, y, &target);
}

mercer_status mrc_cuda_round_half(mrc_backend *backend, const mercer_matrix *x)
{
    mercer_matrix target;
    if (is_empty(x)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, x, true, &target));
    MRC_CUDA_TRY(backend, mrc_launch_round_half(mrc_cuda_of(backend)->stream, target));
    return mrc_cuda_write_back(backend, x, &target);
}

mercer_status mrc_cuda_affine(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from,
                              const mrc_affine *map)
{
    mercer_matrix source, target;
    double *shift = NULL, *factor = NULL, *offset = NULL;
    int64_t bytes = to->cols * (int64_t)sizeof *factor;
    if (is_empty(to)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    MRC_TRY(mrc_cuda_write(backend, to, false, &target));
    if (map->shift) MRC_TRY(mrc_cuda_upload(backend, &shift, map->shift, bytes));
    if (map->factor) MRC_TRY(mrc_cuda_upload(backend, &factor, map->factor, bytes));
    if (map->offset) MRC_TRY(mrc_cuda_upload(backend, &offset, map->offset, bytes));
    MRC_CUDA_TRY(backend, mrc_launch_affine(mrc_cuda_of(backend)->stream, target, source, shift, factor, offset));
    return mrc_cuda_write_back(backend, to, &target);
}

mercer_status mrc_cuda_symmetrize(mrc_backend *backend, const mercer_matrix *a)
{
    mercer_matrix target;
    if (is_empty(a)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, a, true, &target));
    MRC_CUDA_TRY(backend, mrc_launch_symmetrize(mrc_cuda_of(backend)->stream, target));
    return mrc_cuda_write_back(backend, a, &target);
}

mercer_status mrc_cuda_draw_normals(mrc_backend *backend, const mrc_normal_table *table, uint64_t seed,
                                    const int64_t *sequences, uint64_t first, const mercer_matrix *x)
{
    mercer_matrix out;
    void *atoms, *list;
    if (is_empty(x)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, x, false, &out));
    MRC_TRY(mrc_cuda_upload(backend, &atoms, table->atoms, sizeof table->atoms));
    MRC_TRY(mrc_cuda_upload(backend, &list, sequences, x->rows * (int64_t)sizeof *sequences));
    MRC_CUDA_TRY(backend, mrc_launch_normals(mrc_cuda_of(backend)->stream, out, atoms, seed, list, first));
    return mrc_cuda_write_back(backend, x, &out);
}

/* Sets *out to the change with its arrays copied to scratch, and *atoms to the copied table of normal numbers; *atoms
   is NULL unless the change is NOISE. */
static mercer_status upload_change(mrc_backend *backend, const mrc_change *change, int64_t m, mrc_change *out,
                                   void **atoms)
{
    void *list;
    *out = *change;
    *atoms = NULL;
    switch (change->kind) {
        case MRC_CHANGE_NOISE:
            MRC_TRY(mrc_cuda_upload(backend, atoms, change->normals->atoms, sizeof change->normals->atoms));
            MRC_TRY(mrc_cuda_upload(backend, &list, change->sequences, m * (int64_t)sizeof *change->sequences));
            out->sequences = list;
            break;
        case MRC_CHANGE_MOVE:
            MRC_TRY(mrc_cuda_upload(backend, &list, change->moves, m * (int64_t)sizeof *change->moves));
            out->moves = list;
            break;
        case MRC_CHANGE_MIX:
            MRC_TRY(mrc_cuda_upload(backend, &list, change->shares, m * (int64_t)sizeof *change->shares));
            out->shares = list;
            break;
    }
    return MERCER_OK;
}

mercer_status mrc_cuda_change_rows(mrc_backend *backend, const mrc_change *change, const mercer_matrix *to,
                                   const mercer_matrix *from, const mercer_matrix *other)
{
    mercer_matrix target, source, partner = {.data = NULL};
    mrc_change on_device;
    void *atoms;
    if (is_empty(to)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    if (other) MRC_TRY(mrc_cuda_read(backend, other, &partner));
    MRC_TRY(mrc_cuda_write(backend, to, false, &target));
    MRC_TRY(upload_change(backend, change, to->rows, &on_device, &atoms));
    MRC_CUDA_TRY(backend, mrc_launch_changes(mrc_cuda_of(backend)->stream, &on_device, atoms, target, source, partner));
    return mrc_cuda_write_back(backend, to, &target);
}

/* ---- Sums ---------------------------------------------------------------------------------------------------- */

/* Computes factor * sum_i x_ij y_ij for operands on the device, and sets *out to the address of the sums (cols) in
   scratch. y NULL: all ones. */
static mercer_status column_sums(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double factor,
                                 double **out)
{
    double *parts;
    MRC_TRY(mrc_cuda_push(backend, &parts, mrc_sum_parts(x->rows) * x->cols * 8));
    MRC_TRY(mrc_cuda_push(backend, out, x->cols * 8));
    mercer_matrix nothing = {.data = NULL};
    MRC_CUDA_TRY(backend,
                 mrc_launch_column_sums(mrc_cuda_of(backend)->stream, *x, y ? *y : nothing, factor, parts, *out));
    return MERCER_OK;
}

/* Computes out (cols) on the host: factor * sum_i x_ij y_ij for operands in any memory. y NULL: all ones. */
static mercer_status sum_columns(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double factor,
                                 double *out)
{
    mercer_matrix left, right;
    double *sums;
    if (x->cols > 0) memset(out, 0, (size_t)x->cols * sizeof *out);
    if (is_empty(x)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, x, &left));
    if (y) MRC_TRY(mrc_cuda_read(backend, y, &right));
    MRC_TRY(column_sums(backend, &left, y ? &right : NULL, factor, &sums));
    return mrc_cuda_download(backend, out, sums, x->cols * 8);
}

mercer_status mrc_cuda_device_mean(mrc_backend *backend, const mercer_matrix *x, double **mean)
{
    return column_sums(backend, x, NULL, 1 / (double)x->rows, mean);
}

mercer_status mrc_cuda_column_dots(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *y, double *out)
{
    return sum_columns(backend, x, y, 1, out);
}

mercer_status mrc_cuda_column_mean(mrc_backend *backend, const mercer_matrix *x, double *mean)
{
    return sum_columns(backend, x, NULL, 1 / (double)x->rows, mean);
}

mercer_status mrc_cuda_row_sqnorms(mrc_backend *backend, const mercer_matrix *x, double *norms)
{
    mercer_matrix source;
    double *sums;
    if (x->rows > 0) memset(norms, 0, (size_t)x->rows * sizeof *norms);
    if (is_empty(x)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, x, &source));
    MRC_TRY(mrc_cuda_push(backend, &sums, x->rows * 8));
    MRC_CUDA_TRY(backend, mrc_launch_row_sqnorms(mrc_cuda_of(backend)->stream, source, sums));
    return mrc_cuda_download(backend, norms, sums, x->rows * 8);
}

mercer_status mrc_cuda_feature_sums(mrc_backend *backend, const mrc_feature_sums *job, double *out)
{
    mercer_matrix x, z, a, b, parts;
    double *sums;
    int64_t d = job->x->cols;
    if (d > 0) memset(out, 0, (size_t)d * sizeof *out);
    if (is_empty(job->x) || is_empty(job->z)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, job->x, &x));
    MRC_TRY(mrc_cuda_read(backend, job->z, &z));
    MRC_TRY(mrc_cuda_read(backend, job->a, &a));
    MRC_TRY(mrc_cuda_read(backend, job->b, &b));
    MRC_TRY(mrc_cuda_scratch(backend, &parts, mrc_feature_blocks(x.rows), d, MERCER_F64));
    bool wide = mrc_value_dtype(&x, &z, NULL, NULL) == MERCER_F64;
    MRC_CUDA_TRY(backend,
                 mrc_launch_feature_sums(mrc_cuda_of(backend)->stream, wide, job->norm, x, z, a, b, parts.data));
    MRC_TRY(column_sums(backend, &parts, NULL, 1, &sums));
    return mrc_cuda_download(backend, out, sums, d * 8);
}

mercer_status mrc_cuda_row_losses(mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                                  const double *scale, const double *offset, mrc_row_loss *out)
{
    mercer_matrix values, targets;
    double *losses, *factors = NULL, *shifts = NULL;
    int64_t bytes = y->rows * (int64_t)sizeof *out, row = y->cols * (int64_t)sizeof *scale;
    memset(out, 0, (size_t)bytes);
    if (is_empty(y)) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, f, &values));
    MRC_TRY(mrc_cuda_read(backend, y, &targets));
    if (scale) MRC_TRY(mrc_cuda_upload(backend, &factors, scale, row));
    if (offset) MRC_TRY(mrc_cuda_upload(backend, &shifts, offset, row));
    MRC_TRY(mrc_cuda_push(backend, &losses, bytes));
    MRC_CUDA_TRY(backend,
                 mrc_launch_row_losses(mrc_cuda_of(backend)->stream, values, targets, factors, shifts, losses));
    return mrc_cuda_download(backend, out, losses, bytes);
}
