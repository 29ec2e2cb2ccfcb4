/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Products with the kernel matrix of shared-out centers, and the few global sums built on the communicator's allreduce.
 *
 *   F = sum_r K(X, Z_r) W_r       each rank's part (m, c), then allreduce
 *   A = sum_r U_r' V_r            the same for (k, c)
 *
 * A rank's part of a result of small size lives in scratch made for the call, so nothing here grows with the number of
 * batches.
 */
#include "algo/centers.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

mercer_status mrc_matrix_reserve(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                                 mercer_dtype dtype, const char *what)
{
    *out = mrc_view(NULL, rows, cols, dtype);
    out->memory = backend->ops->capabilities(backend).memory;
    int64_t elements, bytes;
    if (!mrc_multiply(rows, cols, &elements) || !mrc_multiply(elements, mrc_dtype_size(dtype), &bytes))
        return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "%s: %lld x %lld is more than memory can address", what,
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

mercer_status mrc_matrix_check_finite(mrc_backend *backend, const char *name, const mercer_matrix *matrix,
                                      double *largest)
{
    mercer_matrix host;
    MRC_TRY(mrc_host_open(backend, matrix, &host));
    mercer_status status = mrc_check_finite(backend->context, name, &host, largest);
    return mrc_host_close(backend, matrix, &host, false, status);
}

mercer_status mrc_field_create(mrc_centers *centers, mercer_matrix *out, int64_t columns, mercer_dtype dtype,
                               const char *what)
{
    return mrc_matrix_create(centers->backend, out, centers->z.rows, columns, dtype, what);
}

mercer_status mrc_centers_create(mrc_centers *out, mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel,
                                 const mercer_matrix *z, const double *origin, mercer_dtype real)
{
    *out = (mrc_centers){.context = backend->context,
                         .backend = backend,
                         .comm = comm,
                         .kernel = kernel,
                         .origin = origin,
                         .real = real,
                         .p = z->rows,
                         .shards = comm->local};
    void *memory;
    MRC_TRY(mrc_alloc(backend->context, &memory, comm->local, sizeof(mrc_shard), "the shares of the ranks"));
    out->shard = memory;
    int64_t rows = 0, first = 0;
    mrc_comm_share(comm, z->rows, comm->first, &out->first, &rows);
    for (int i = 0; i < comm->local; i++) {
        mrc_comm_share(comm, z->rows, comm->first + i, &first, &rows);
        out->shard[i] = (mrc_shard){.offset = first - out->first, .rows = rows};
    }
    out->z = mrc_rows(z, out->first, first + rows - out->first);
    if (backend->ops->capabilities(backend).memory == z->memory) return MERCER_OK;
    mercer_matrix given = out->z;
    mercer_status status = mrc_matrix_create(backend, &out->own, given.rows, given.cols, given.dtype, "the centers");
    if (status == MERCER_OK) status = backend->ops->copy(backend, &out->own, &given);
    if (status == MERCER_OK) status = mrc_points_pack(out, &out->own, 0, out->own.rows);
    if (status != MERCER_OK) mrc_centers_destroy(out);
    if (status == MERCER_OK) out->z = out->own;
    return status;
}

void mrc_centers_destroy(mrc_centers *centers)
{
    if (centers->own.data) mrc_points_forget(centers, &centers->own);
    if (centers->shard) mrc_free(centers->context, centers->shard);
    if (centers->own.data) mrc_matrix_destroy(centers->backend, &centers->own);
    memset(centers, 0, sizeof *centers);
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

static void count_product(mrc_centers *centers, int64_t m, int64_t p, int64_t width)
{
    centers->flops += 2.0 * (double)m * (double)p * (double)width;
}

mercer_status mrc_points_matmul(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                                const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    count_product(centers, a->rows, b->rows, a->cols + w->cols);
    return centers->backend->ops->kernel_matmul(centers->backend, &pair, w, y, add);
}

mercer_status mrc_points_eval(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                              const mercer_matrix *k)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    count_product(centers, a->rows, b->rows, a->cols);
    return centers->backend->ops->kernel_eval(centers->backend, &pair, k);
}

mercer_status mrc_points_store(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                               const mercer_matrix *w, const mercer_matrix *y, const mrc_stored *to)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    count_product(centers, a->rows, b->rows, a->cols + (w ? w->cols : 0));
    return centers->backend->ops->kernel_rows(centers->backend, &pair, w, y, to);
}

mercer_status mrc_counted_gemm(mrc_centers *centers, bool transpose_a, bool transpose_b, double alpha,
                               const mercer_matrix *a, const mercer_matrix *b, double beta, const mercer_matrix *c)
{
    mrc_gemm job = {transpose_a, transpose_b, alpha, beta, a, b, c};
    count_product(centers, c->rows, c->cols, transpose_a ? a->rows : a->cols);
    return centers->backend->ops->gemm(centers->backend, &job);
}

static mercer_matrix part_of(const mercer_matrix *field, const mrc_shard *shard)
{
    return mrc_rows(field, shard->offset, shard->rows);
}

mercer_status mrc_centers_transpose(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *g,
                                    const mercer_matrix *h, const mrc_kept *kept)
{
    static const mrc_kept nothing = {0};
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix z = part_of(&centers->z, &centers->shard[i]), out = part_of(h, &centers->shard[i]);
        mrc_pair pair = mrc_points_pair(centers, x, &z);
        int64_t again = z.rows - (kept ? kept[i].columns : 0); /* what must be evaluated anew */
        count_product(centers, x->rows, z.rows, g->cols);
        count_product(centers, x->rows, again, x->cols);
        MRC_TRY(centers->backend->ops->kernel_transpose(centers->backend, &pair, g, &out, kept ? &kept[i] : &nothing));
    }
    return MERCER_OK;
}

/* ---- One rank's parts, then their sum ------------------------------------------------------------------------ */

mercer_status mrc_sum_over_ranks(mrc_centers *centers, const mercer_matrix *out, mrc_part_work work, void *argument)
{
    if (centers->comm->ranks == 1) return work(centers, 0, out, argument);
    void *views;
    /* In host memory, which every operation takes: communicators know no backend. */
    mercer_matrix memory = mrc_view(NULL, centers->shards * out->rows, out->cols, out->dtype);
    MRC_TRY(mrc_alloc(centers->context, &views, centers->shards, sizeof(mercer_matrix), "the ranks' parts"));
    mercer_matrix *parts = views;
    mercer_status status = mrc_alloc_zero(centers->context, &memory.data, memory.rows * memory.cols,
                                          mrc_dtype_size(memory.dtype), "the ranks' parts");
    for (int i = 0; i < centers->shards && status == MERCER_OK; i++) {
        parts[i] = mrc_rows(&memory, i * out->rows, out->rows);
        status = work(centers, i, &parts[i], argument);
    }
    if (status == MERCER_OK) status = centers->comm->ops->allreduce(centers->comm, parts);
    if (status == MERCER_OK) status = centers->backend->ops->copy(centers->backend, out, &parts[0]);
    mrc_free(centers->context, memory.data);
    mrc_free(centers->context, views);
    return status;
}

typedef struct predict_job {
    const mercer_matrix *x, *w;
    mrc_kept *kept;
} predict_job;

static mercer_status predict_part(mrc_centers *centers, int rank, const mercer_matrix *part, void *argument)
{
    predict_job *job = argument;
    mercer_matrix z = part_of(&centers->z, &centers->shard[rank]), w = part_of(job->w, &centers->shard[rank]);
    mrc_pair pair = mrc_points_pair(centers, job->x, &z);
    count_product(centers, job->x->rows, z.rows, job->x->cols + w.cols);
    if (!job->kept) return centers->backend->ops->kernel_matmul(centers->backend, &pair, &w, part, false);
    return centers->backend->ops->kernel_forward(centers->backend, &pair, &w, part, &job->kept[rank]);
}

mercer_status mrc_centers_predict(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *w,
                                  const mercer_matrix *f, mrc_kept *kept)
{
    predict_job job = {x, w, kept};
    return mrc_sum_over_ranks(centers, f, predict_part, &job);
}

typedef struct fields_job {
    const mercer_matrix *u, *v;
    const int64_t *ids;
    int64_t count;
} fields_job;

static mercer_status inner_part(mrc_centers *centers, int rank, const mercer_matrix *part, void *argument)
{
    fields_job *job = argument;
    mercer_matrix u = part_of(job->u, &centers->shard[rank]), v = part_of(job->v, &centers->shard[rank]);
    return mrc_counted_gemm(centers, true, false, 1, &u, &v, 0, part);
}

mercer_status mrc_centers_inner(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                const mercer_matrix *out)
{
    fields_job job = {.u = u, .v = v};
    return mrc_sum_over_ranks(centers, out, inner_part, &job);
}

static mercer_status dots_part(mrc_centers *centers, int rank, const mercer_matrix *part, void *argument)
{
    fields_job *job = argument;
    mercer_matrix u = part_of(job->u, &centers->shard[rank]), v = part_of(job->v, &centers->shard[rank]);
    return centers->backend->ops->column_dots(centers->backend, &u, &v, part->data);
}

mercer_status mrc_centers_column_dots(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v, double *out)
{
    fields_job job = {.u = u, .v = v};
    mercer_matrix row = mrc_view(out, 1, u->cols, MERCER_F64);
    return mrc_sum_over_ranks(centers, &row, dots_part, &job);
}

mercer_status mrc_centers_norm(mrc_centers *centers, const mercer_matrix *u, double *out)
{
    void *memory;
    MRC_TRY(mrc_alloc(centers->context, &memory, u->cols, sizeof(double), "column norms"));
    mercer_status status = mrc_centers_column_dots(centers, u, u, memory);
    double sum = 0;
    for (int64_t j = 0; j < u->cols && status == MERCER_OK; j++) sum += ((double *)memory)[j];
    mrc_free(centers->context, memory);
    if (status == MERCER_OK) *out = sqrt(sum);
    return status;
}

/* ---- Rows by global index ------------------------------------------------------------------------------------ */

/* Every rank contributes the rows it owns and zeros elsewhere; their sum is the collection. */
static mercer_status collect_part(mrc_centers *centers, int rank, const mercer_matrix *part, void *argument)
{
    fields_job *job = argument;
    const mrc_shard *shard = &centers->shard[rank];
    for (int64_t i = 0; i < job->count; i++) {
        int64_t row = job->ids[i] - centers->first - shard->offset;
        mercer_matrix to = mrc_rows(part, i, 1);
        if (row < 0 || row >= shard->rows) continue;
        mercer_matrix from = mrc_rows(job->u, shard->offset + row, 1);
        MRC_TRY(centers->backend->ops->copy(centers->backend, &to, &from));
    }
    return MERCER_OK;
}

mercer_status mrc_centers_collect(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids, int64_t count,
                                  const mercer_matrix *out)
{
    fields_job job = {.u = field ? field : &centers->z, .ids = ids, .count = count};
    if (centers->comm->ranks == 1) return centers->backend->ops->gather_rows(centers->backend, out, job.u, ids);
    return mrc_sum_over_ranks(centers, out, collect_part, &job);
}

mercer_status mrc_centers_scatter_add(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids,
                                      int64_t count, const mercer_matrix *from, double factor)
{
    if (centers->z.rows == centers->p)
        return centers->backend->ops->scatter_add_rows(centers->backend, field, from, ids, factor);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = ids[i] - centers->first;
        if (row < 0 || row >= centers->z.rows) continue;
        mercer_matrix one = mrc_rows(from, i, 1);
        MRC_TRY(centers->backend->ops->scatter_add_rows(centers->backend, field, &one, &row, factor));
    }
    return MERCER_OK;
}
