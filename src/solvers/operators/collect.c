/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collects rows of a field, or of the centers, from the ranks that own them, by index or as a range. Also adds rows
 * that are the same on every rank to rows of a field (scatter).
 *
 * Collecting `count` rows of k elements sends each row from its owner to all ranks: count k (R - 1) / R elements per
 * rank. If GPUs can exchange data directly, the rows do not pass through host memory.
 *
 * Products Y = K(Z,Z) V are here as well. They cost p^2 (d + k) multiply-adds, or p^2 k with a stored K(Z,Z). With
 * several shards, Z and V are collected in blocks of about the size of a shard, 256 to 4096 centers. So memory stays
 * O(4096 (d + k)).
 */
#include "solvers/operators/center_shards.h"

#include "core/matrix.h"
#include "core/memory.h"

enum { LEAST_COLLECTED = 256 }; /* minimum rows per block, because every block is a round of messages */

/* ---- By index ------------------------------------------------------------------------------------------------ */

/* Return the rank that owns a center: shares are ranges, in the order of the ranks. */
static int owner_of(const mrc_centers *centers, int64_t id, const int64_t *ends)
{
    int low = 0, high = centers->comm->ranks - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (id < ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Scratch space of a collection: the requested rows and their owners. */
typedef struct collection {
    int64_t *ends;        /* (ranks) end of each rank's share of the centers */
    int64_t *starts;      /* (ranks + 1) first row of each rank in the packed list */
    int64_t *local;       /* rows in the field of those requested rows that this rank owns */
    int64_t *place;       /* (count) index of each requested row in the packed list */
    mercer_matrix packed; /* (count, k) rows by owner, in memory that messages can use */
} collection;

/* Sort the requested rows by owner, with a counting sort over the ranks. */
static mercer_status open_collection(mrc_centers *centers, mrc_scope *scope, const mercer_matrix *field,
                                     const int64_t *ids, int64_t count, collection *out)
{
    int ranks = centers->comm->ranks, rank = centers->comm->rank;
    int64_t own = 0;
    MRC_TRY(mrc_scope_alloc_zero(scope, &out->ends, 2 * ranks + 1 + 2 * count, sizeof *out->ends, "numbers of rows"));
    out->starts = out->ends + ranks;
    out->local = out->starts + ranks + 1;
    out->place = out->local + count;
    MRC_TRY(mrc_scope_matrix_in(scope, centers->backend, &out->packed, mrc_comm_memory(centers->comm, field->memory),
                                count, field->cols, field->dtype, "collected rows"));
    for (int r = 0; r < ranks; r++) {
        int64_t first, rows;
        mrc_comm_rows(centers->comm, centers->p, r, &first, &rows);
        out->ends[r] = first + rows;
    }
    for (int64_t i = 0; i < count; i++) {
        int owner = owner_of(centers, ids[i], out->ends);
        out->place[i] = out->starts[owner + 1]++; /* index among the owner's rows */
        if (owner == rank) out->local[own++] = ids[i] - centers->first;
    }
    for (int r = 0; r < ranks; r++) out->starts[r + 1] += out->starts[r];
    for (int64_t i = 0; i < count; i++) out->place[i] += out->starts[owner_of(centers, ids[i], out->ends)];
    return MERCER_OK;
}

/* Exchange the rows of the list, so that every rank has all of them, packed in the order of the ranks. */
static mercer_status share_rows(mrc_centers *centers, const mercer_matrix *field, const collection *list)
{
    mrc_comm *comm = centers->comm;
    mrc_backend *backend = centers->backend;
    int64_t row = field->cols * mrc_dtype_size(field->dtype), first = list->starts[comm->rank];
    mercer_matrix own = mrc_rows(&list->packed, first, list->starts[comm->rank + 1] - first);
    if (own.rows > 0) MRC_TRY(backend->ops->gather_rows(backend, &own, field, list->local));
    MRC_TRY(backend->ops->sync(backend));
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++)
        pieces[r] = (mrc_piece){(char *)list->packed.data + list->starts[r] * row,
                                (list->starts[r + 1] - list->starts[r]) * row};
    return mrc_comm_gather(comm, list->packed.memory, pieces);
}

mercer_status mrc_centers_collect(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids, int64_t count,
                                  const mercer_matrix *out)
{
    mrc_backend *backend = centers->backend;
    const mercer_matrix *from = field ? field : &centers->z;
    if (centers->comm->ranks == 1) return backend->ops->gather_rows(backend, out, from, ids);
    collection list;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(open_collection(centers, &scope, from, ids, count, &list));
    MRC_TRY(share_rows(centers, from, &list));
    return count > 0 ? backend->ops->gather_rows(backend, out, &list.packed, list.place) : MERCER_OK;
}

/* List the requested rows that this rank owns: `which` are their positions in the list, `rows` their rows in the field.
   Returns their number. */
static int64_t list_local(const mrc_centers *centers, const int64_t *ids, int64_t count, int64_t *which, int64_t *rows)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = ids[i] - centers->first;
        if (row < 0 || row >= centers->z.rows) continue;
        which[found] = i;
        rows[found++] = row;
    }
    return found;
}

mercer_status mrc_centers_scatter_add(mrc_centers *centers, const mercer_matrix *field, const int64_t *ids,
                                      int64_t count, const mercer_matrix *from, double factor)
{
    mrc_backend *backend = centers->backend;
    if (centers->comm->ranks == 1) return backend->ops->scatter_add_rows(backend, field, from, ids, factor);
    int64_t *which;
    mercer_matrix own;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &which, 2 * count, sizeof *which, "numbers of rows"));
    int64_t *rows = which + count, found = list_local(centers, ids, count, which, rows);
    if (found == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_matrix(&scope, backend, &own, found, from->cols, from->dtype, "rows of a field"));
    MRC_TRY(backend->ops->gather_rows(backend, &own, from, which));
    return backend->ops->scatter_add_rows(backend, field, &own, rows, factor);
}

/* ---- Ranges -------------------------------------------------------------------------------------------------- */

/* Return the rows of `matrix` whose global indices are in first .. first + count - 1. begins: global index of the first
   row of `matrix`. */
static mercer_matrix overlap(const mercer_matrix *matrix, int64_t begins, int64_t first, int64_t count)
{
    int64_t begin = mrc_max(begins, first), end = mrc_min(begins + matrix->rows, first + count);
    return end > begin ? mrc_rows(matrix, begin - begins, end - begin) : mrc_rows(matrix, 0, 0);
}

/* All-gather: each rank has written its own rows to `out` and receives the rows of all other ranks. `out` must be in
   memory that the transport can use. */
static mercer_status gather_shares(mrc_centers *centers, int64_t first, const mercer_matrix *out)
{
    mrc_comm *comm = centers->comm;
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) {
        int64_t begins, rows;
        mrc_comm_rows(comm, centers->p, r, &begins, &rows);
        mercer_matrix part = overlap(out, first, begins, rows);
        pieces[r] = (mrc_piece){part.data, part.rows * part.cols * mrc_dtype_size(part.dtype)};
    }
    MRC_TRY(centers->backend->ops->sync(centers->backend));
    return mrc_comm_gather(comm, out->memory, pieces);
}

/* All-gather to any memory, through host memory if the transport cannot use `out` directly. */
static mercer_status share_range(mrc_centers *centers, int64_t first, const mercer_matrix *out)
{
    if (mrc_comm_memory(centers->comm, out->memory) == out->memory) return gather_shares(centers, first, out);
    mercer_matrix host;
    MRC_TRY(mrc_host_open(centers->backend, out, &host));
    mercer_status status = gather_shares(centers, first, &host);
    return mrc_host_close(centers->backend, out, &host, true, status);
}

mercer_status mrc_centers_range(mrc_centers *centers, const mercer_matrix *field, int64_t first, int64_t count,
                                const mercer_matrix *out)
{
    const mercer_matrix *from = field ? field : &centers->z;
    mercer_matrix here = overlap(from, centers->first, first, count);
    mercer_matrix place = overlap(out, first, centers->first, from->rows);
    if (here.rows > 0) MRC_TRY(centers->backend->ops->copy(centers->backend, &place, &here));
    return centers->comm->ranks > 1 ? share_range(centers, first, out) : MERCER_OK;
}

mercer_status mrc_centers_gather_all(mrc_centers *centers, mrc_scope *scope, mercer_matrix *all)
{
    *all = centers->z;
    if (centers->comm->ranks == 1)
        return MERCER_OK; /* z.rows == p would be the wrong test: with several ranks, one rank may have all rows */
    MRC_TRY(mrc_scope_points(scope, centers, all, centers->p, "all centers"));
    return mrc_centers_range(centers, NULL, 0, centers->p, all);
}

/* ---- Products with K(Z,Z) ------------------------------------------------------------------------------------ */

int64_t mrc_collect_rows(int64_t p, int shards)
{
    int64_t shard = (p + shards - 1) / shards;
    return mrc_min(p, mrc_min(MRC_COLLECT_BLOCK, mrc_max(LEAST_COLLECTED, shard)));
}

/* Return whether there is only one shard, so that nothing needs to be collected. The number of ranks must not decide
   this: with several shards, blocks are added in the same order for any number of ranks. */
static bool is_alone(const mrc_centers *centers)
{
    return centers->all_shards == 1;
}

/* Add K(Z, Z_b) V_b to out for a block of consecutive centers; for the first block, set out to the product. points,
   rows: buffers for the block's centers and their rows of V. */
static mercer_status add_block(mrc_centers *centers, const mercer_matrix *cached, const mercer_matrix *v,
                               const mercer_matrix *points, const mercer_matrix *rows, int64_t first,
                               const mercer_matrix *out)
{
    int64_t count = mrc_min(rows->rows, centers->p - first);
    mercer_matrix part = mrc_rows(rows, 0, count), z = mrc_rows(points, 0, count);
    MRC_TRY(mrc_centers_range(centers, v, first, count, &part));
    if (cached) {
        mercer_matrix k = mrc_columns(cached, first, count);
        return mrc_centers_multiply(centers, 1, &k, &part, first > 0, out);
    }
    MRC_TRY(mrc_centers_range(centers, NULL, first, count, &z));
    return mrc_centers_apply(centers, &z, &part, out, first > 0);
}

mercer_status mrc_centers_times(mrc_centers *centers, const mercer_matrix *cached, const mercer_matrix *v,
                                const mercer_matrix *out)
{
    if (is_alone(centers) && cached) return mrc_counted_gemm(centers, false, false, 1, cached, v, 0, out);
    if (is_alone(centers)) return mrc_points_matmul(centers, &centers->z, &centers->z, v, out, false);
    mrc_backend *backend = centers->backend;
    int64_t size = mrc_collect_rows(centers->p, centers->all_shards);
    mercer_matrix points = {0}, rows;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &rows, size, v->cols, centers->real, "rows of a block of centers"));
    if (!cached) MRC_TRY(mrc_scope_points(&scope, centers, &points, size, "a block of centers"));
    for (int64_t first = 0; first < centers->p; first += size)
        MRC_TRY(add_block(centers, cached, v, &points, &rows, first, out));
    return MERCER_OK;
}

/* Compute this rank's rows of K(Z,Z), block by block of columns. */
static mercer_status evaluate_blocks(mrc_centers *centers, const mercer_matrix *out)
{
    int64_t size = mrc_collect_rows(centers->p, centers->all_shards);
    mercer_matrix points;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_points(&scope, centers, &points, size, "a block of centers"));
    for (int64_t first = 0; first < centers->p; first += size) {
        mercer_matrix k = mrc_columns(out, first, mrc_min(size, centers->p - first)), z = mrc_rows(&points, 0, k.cols);
        MRC_TRY(mrc_centers_range(centers, NULL, first, k.cols, &z));
        MRC_TRY(mrc_centers_eval(centers, &z, &k));
    }
    return MERCER_OK;
}

mercer_status mrc_centers_store_kernel(mrc_centers *centers, mercer_matrix *out)
{
    MRC_TRY(mrc_field_create(centers, out, centers->p, centers->real, "K(Z,Z)"));
    mercer_status status =
        is_alone(centers) ? mrc_points_eval(centers, &centers->z, &centers->z, out) : evaluate_blocks(centers, out);
    if (status != MERCER_OK) mrc_matrix_destroy(centers->backend, out);
    return status;
}
