/* SPDX-License-Identifier: BSD-3-Clause */
/* Consecutive rows of a field, or of the centers, on every rank: what is needed of all centers, a strip at a time or whole. */
#include "algo/centers.h"

#include "core/matrix.h"
#include "core/memory.h"

/* The rows of a range that lie in another. */
static mercer_matrix overlap(const mercer_matrix *matrix, int64_t begins, int64_t first, int64_t count)
{
    int64_t begin = mrc_max(begins, first), end = mrc_min(begins + matrix->rows, first + count);
    return end > begin ? mrc_rows(matrix, begin - begins, end - begin) : mrc_rows(matrix, 0, 0);
}

/* Every rank has put its rows where they belong; now the others' as well. out: where messages can lie. */
static mercer_status gather(mrc_centers *centers, int64_t first, const mercer_matrix *out)
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

static mercer_status share(mrc_centers *centers, int64_t first, const mercer_matrix *out)
{
    if (mrc_comm_memory(centers->comm, out->memory) == out->memory) return gather(centers, first, out);
    mercer_matrix host;
    MRC_TRY(mrc_host_open(centers->backend, out, &host));
    mercer_status status = gather(centers, first, &host);
    return mrc_host_close(centers->backend, out, &host, true, status);
}

mercer_status mrc_centers_range(mrc_centers *centers, const mercer_matrix *field, int64_t first, int64_t count,
                                const mercer_matrix *out)
{
    const mercer_matrix *from = field ? field : &centers->z;
    mercer_matrix here = overlap(from, centers->first, first, count);
    mercer_matrix place = overlap(out, first, centers->first, from->rows);
    if (here.rows > 0) MRC_TRY(centers->backend->ops->copy(centers->backend, &place, &here));
    return centers->comm->ranks > 1 ? share(centers, first, out) : MERCER_OK;
}

mercer_status mrc_centers_gather_all(mrc_centers *centers, mercer_matrix *memory, mercer_matrix *all)
{
    *memory = (mercer_matrix){0};
    *all = centers->z;
    if (centers->comm->ranks == 1) return MERCER_OK; /* not: has all rows, which one of several may have */
    MRC_TRY(mrc_matrix_create(centers->backend, memory, centers->p, centers->z.cols, centers->z.dtype, "all centers"));
    *all = *memory;
    return mrc_centers_range(centers, NULL, 0, centers->p, memory);
}
