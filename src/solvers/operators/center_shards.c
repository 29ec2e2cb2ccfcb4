/* SPDX-License-Identifier: BSD-3-Clause */
/* Products with the kernel matrix of centers that are distributed over ranks, and sums over all shards. A shard's part
   of a sum is in scratch space that is freed when the call ends. */
#include "solvers/operators/center_shards.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

mercer_status mrc_field_create(mrc_centers *centers, mercer_matrix *out, int64_t columns, mercer_dtype dtype,
                               const char *what)
{
    return mrc_matrix_create(centers->backend, out, centers->z.rows, columns, dtype, what);
}

mercer_status mrc_scope_field(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t columns,
                              mercer_dtype dtype, const char *what)
{
    return mrc_scope_matrix(scope, centers->backend, out, centers->z.rows, columns, dtype, what);
}

mercer_status mrc_scope_points(mrc_scope *scope, mrc_centers *centers, mercer_matrix *out, int64_t count,
                               const char *what)
{
    return mrc_scope_matrix(scope, centers->backend, out, count, centers->z.cols, centers->z.dtype, what);
}

mercer_status mrc_centers_create(mrc_centers *out, mrc_backend *backend, mrc_comm *comm, const mercer_kernel *kernel,
                                 const mercer_matrix *z, int64_t p, const double *origin, mercer_dtype real)
{
    int64_t begin, shards, first, rows;
    mrc_memory home = mrc_backend_memory(backend);
    *out = (mrc_centers){.context = backend->context,
                         .backend = backend,
                         .comm = comm,
                         .kernel = kernel,
                         .origin = origin,
                         .real = real,
                         .z = *z,
                         .p = p,
                         .all_shards = mrc_comm_shards(comm, p)};
    mrc_share(out->all_shards, comm->ranks, comm->rank, &begin, &shards);
    if (shards == 0)
        return mrc_fail(backend->context, MERCER_ERROR_ARGUMENT,
                        "%d ranks are more than the %d shards of the centers; use at least one shard per rank",
                        comm->ranks, out->all_shards);
    out->first_shard = (int)begin;
    out->shards = (int)shards;
    MRC_TRY(mrc_comm_link(comm, home != MRC_HOST ? backend->device : -1));
    MRC_TRY(mrc_alloc(backend->context, &out->shard, shards, sizeof *out->shard, "the shards of the centers"));
    mrc_comm_rows(comm, p, comm->rank, &out->first, &rows);
    for (int64_t i = 0; i < shards; i++) {
        mrc_shard_rows(p, out->all_shards, begin + i, &first, &rows);
        out->shard[i] = (mrc_shard){.offset = first - out->first, .rows = rows};
    }
    if (home == z->memory) return MERCER_OK;
    mercer_matrix given = out->z;
    mercer_status status = mrc_matrix_create(backend, &out->own, given.rows, given.cols, given.dtype, "the centers");
    if (status == MERCER_OK) status = backend->ops->copy(backend, &out->own, &given);
    if (status != MERCER_OK) mrc_centers_destroy(out);
    if (status == MERCER_OK) out->z = out->own;
    return status;
}

mercer_status mrc_centers_allow_half(mrc_centers *centers)
{
    centers->half = true;
    return mrc_points_pack(centers, &centers->own, 0, centers->own.rows);
}

void mrc_centers_destroy(mrc_centers *centers)
{
    if (centers->own.data) mrc_points_forget(centers, &centers->own);
    if (centers->shard) mrc_free(centers->context, centers->shard);
    if (centers->own.data) mrc_matrix_destroy(centers->backend, &centers->own);
    memset(centers, 0, sizeof *centers);
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

mercer_status mrc_points_matmul(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                                const mercer_matrix *w, const mercer_matrix *y, bool add)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    mrc_count_product(centers, a->rows, b->rows, a->cols + w->cols);
    return centers->backend->ops->kernel_matmul(centers->backend, &pair, w, y, add);
}

mercer_status mrc_points_eval(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                              const mercer_matrix *k)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    mrc_count_product(centers, a->rows, b->rows, a->cols);
    return centers->backend->ops->kernel_eval(centers->backend, &pair, k);
}

mercer_status mrc_points_store(mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b,
                               const mercer_matrix *w, const mercer_matrix *y, const mrc_stored *to)
{
    mrc_pair pair = mrc_points_pair(centers, a, b);
    mrc_count_product(centers, a->rows, b->rows, a->cols + (w ? w->cols : 0));
    return centers->backend->ops->kernel_rows(centers->backend, &pair, w, y, to);
}

mercer_status mrc_counted_gemm(mrc_centers *centers, bool transpose_a, bool transpose_b, double alpha,
                               const mercer_matrix *a, const mercer_matrix *b, double beta, const mercer_matrix *c)
{
    mrc_gemm job = {transpose_a, transpose_b, alpha, beta, a, b, c};
    mrc_count_product(centers, c->rows, c->cols, transpose_a ? a->rows : a->cols);
    return centers->backend->ops->gemm(centers->backend, &job);
}

mercer_status mrc_split_gemm(mrc_centers *centers, bool transpose_a, double alpha, const mercer_matrix *a,
                             const mercer_matrix *b, double beta, const mercer_matrix *c)
{
    const mrc_backend_ops *ops = centers->backend->ops;
    mrc_gemm job = {transpose_a, false, alpha, beta, a, b, c};
    mrc_count_product(centers, c->rows, c->cols, transpose_a ? a->rows : a->cols);
    return (centers->half ? ops->split_gemm : ops->gemm)(centers->backend, &job);
}

mercer_matrix mrc_centers_part(const mrc_centers *centers, const mercer_matrix *field, int i)
{
    return mrc_rows(field, centers->shard[i].offset, centers->shard[i].rows);
}

mercer_status mrc_centers_transpose(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *g,
                                    const mercer_matrix *h, const mrc_cached_block *cached, bool short_weights)
{
    static const mrc_cached_block nothing = {0};
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix z = mrc_centers_part(centers, &centers->z, i), out = mrc_centers_part(centers, h, i);
        mrc_pair pair = mrc_points_pair(centers, x, &z);
        pair.short_weights = short_weights;
        int64_t uncached = z.rows - (cached ? cached[i].columns : 0); /* number of columns that were not cached */
        mrc_count_product(centers, x->rows, z.rows, g->cols);
        mrc_count_product(centers, x->rows, uncached, x->cols);
        MRC_TRY(
            centers->backend->ops->kernel_transpose(centers->backend, &pair, g, &out, cached ? &cached[i] : &nothing));
    }
    return MERCER_OK;
}

bool mrc_centers_short_weights(const mrc_centers *centers, int64_t c)
{
    mrc_capabilities can = centers->backend->ops->capabilities(centers->backend, centers->half);
    return centers->real == MERCER_F32 && can.short_from > 0 && c >= can.short_from;
}

mercer_status mrc_centers_apply(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *w,
                                const mercer_matrix *h, bool add)
{
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix z = mrc_centers_part(centers, &centers->z, i), out = mrc_centers_part(centers, h, i);
        MRC_TRY(mrc_points_matmul(centers, &z, b, w, &out, add));
    }
    return MERCER_OK;
}

mercer_status mrc_centers_eval(mrc_centers *centers, const mercer_matrix *b, const mercer_matrix *k)
{
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix z = mrc_centers_part(centers, &centers->z, i), out = mrc_centers_part(centers, k, i);
        MRC_TRY(mrc_points_eval(centers, &z, b, &out));
    }
    return MERCER_OK;
}

mercer_status mrc_centers_multiply(mrc_centers *centers, double alpha, const mercer_matrix *u, const mercer_matrix *a,
                                   double beta, const mercer_matrix *h)
{
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix from = mrc_centers_part(centers, u, i), out = mrc_centers_part(centers, h, i);
        MRC_TRY(mrc_split_gemm(centers, false, alpha, &from, a, beta, &out));
    }
    return MERCER_OK;
}

/* ---- Sums of the shards' parts -------------------------------------------------------------------------------- */

mercer_status mrc_centers_sum(mrc_centers *centers, const mercer_matrix *out, mrc_part_work work, void *argument)
{
    if (centers->all_shards == 1) return work(centers, 0, out, argument);
    mrc_backend *backend = centers->backend;
    const mrc_backend_ops *ops = backend->ops;
    mrc_worker worker = {backend, out->memory, ops->alloc, ops->free, ops->copy, ops->axpby, ops->sync};
    mercer_matrix all, *parts;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &parts, centers->shards, sizeof *parts, "the shards' parts"));
    MRC_TRY(mrc_scope_matrix_in(&scope, backend, &all, out->memory, centers->shards * out->rows, out->cols, out->dtype,
                                "the shards' parts"));
    for (int i = 0; i < centers->shards; i++) {
        parts[i] = mrc_rows(&all, i * out->rows, out->rows);
        MRC_TRY(work(centers, i, &parts[i], argument));
    }
    mrc_shards which = {centers->all_shards, centers->first_shard, centers->shards};
    MRC_TRY(mrc_comm_sum(centers->comm, which, parts, out->memory == MRC_HOST ? NULL : &worker));
    return ops->copy(backend, out, &parts[0]);
}

mercer_status mrc_centers_predict_part(mrc_centers *centers, int i, const mercer_matrix *x, const mercer_matrix *w,
                                       const mercer_matrix *part, mrc_cached_block *cached)
{
    mercer_matrix z = mrc_centers_part(centers, &centers->z, i), own = mrc_centers_part(centers, w, i);
    mrc_pair pair = mrc_points_pair(centers, x, &z);
    mrc_count_product(centers, x->rows, z.rows, x->cols + w->cols);
    if (!cached) return centers->backend->ops->kernel_matmul(centers->backend, &pair, &own, part, false);
    return centers->backend->ops->kernel_forward(centers->backend, &pair, &own, part, &cached[i]);
}

typedef struct predict_job {
    const mercer_matrix *x, *w;
    mrc_cached_block *cached;
} predict_job;

/* Part of a sum over shards: the prediction from one shard. */
static mercer_status predict_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const predict_job *job = argument;
    return mrc_centers_predict_part(centers, shard, job->x, job->w, part, job->cached);
}

mercer_status mrc_centers_predict(mrc_centers *centers, const mercer_matrix *x, const mercer_matrix *w,
                                  const mercer_matrix *f, mrc_cached_block *cached)
{
    predict_job job = {x, w, cached};
    return mrc_centers_sum(centers, f, predict_part, &job);
}

typedef struct fields_job {
    const mercer_matrix *u, *v;
    const int64_t *ids;
    int64_t count;
    bool exact;
} fields_job;

/* Part of a sum over shards: U_s' V_s. */
static mercer_status inner_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    fields_job *job = argument;
    mercer_matrix u = mrc_centers_part(centers, job->u, shard), v = mrc_centers_part(centers, job->v, shard);
    return job->exact ? mrc_counted_gemm(centers, true, false, 1, &u, &v, 0, part)
                      : mrc_split_gemm(centers, true, 1, &u, &v, 0, part);
}

mercer_status mrc_centers_inner(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v,
                                const mercer_matrix *out)
{
    fields_job job = {.u = u, .v = v};
    return mrc_centers_sum(centers, out, inner_part, &job);
}

mercer_status mrc_centers_gram(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *out)
{
    fields_job job = {.u = u, .v = u, .exact = true};
    return mrc_centers_sum(centers, out, inner_part, &job);
}

/* Part of a sum over shards: the column sums of U_s times V_s. */
static mercer_status dots_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    fields_job *job = argument;
    mercer_matrix u = mrc_centers_part(centers, job->u, shard), v = mrc_centers_part(centers, job->v, shard);
    return centers->backend->ops->column_dots(centers->backend, &u, &v, part->data);
}

mercer_status mrc_centers_column_dots(mrc_centers *centers, const mercer_matrix *u, const mercer_matrix *v, double *out)
{
    fields_job job = {.u = u, .v = v};
    mercer_matrix row = mrc_view(out, 1, u->cols, MERCER_F64);
    return mrc_centers_sum(centers, &row, dots_part, &job);
}

mercer_status mrc_centers_norm(mrc_centers *centers, const mercer_matrix *u, double *out)
{
    double *squares, sum = 0;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &squares, u->cols, sizeof *squares, "column norms"));
    MRC_TRY(mrc_centers_column_dots(centers, u, u, squares));
    for (int64_t j = 0; j < u->cols; j++) sum += squares[j];
    *out = sqrt(sum);
    return MERCER_OK;
}
