/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of points for the fused products, and the packed forms of points that many products use.
 *
 * A packed form is found by address: it is used for every view whose rows are inside a packed matrix. A solver knows
 * which points recur. Because products find packed forms by address, the functions between solver and products need not
 * pass them on. In return the solver must call mrc_points_pack or mrc_points_forget when the points change. Cost: one
 * pass over the points for each packing; the backend's form takes 1 or 2 bytes per coordinate.
 */
#include "solvers/operators/center_shards.h"

#include "core/matrix.h"

/* Return the distance between consecutive rows in bytes. */
static int64_t row_bytes(const mercer_matrix *matrix)
{
    return matrix->ld * mrc_dtype_size(matrix->dtype);
}

/* Return the packed form that contains all rows of a view, or NULL; set *first to the index in the packed form of the
   view's first row. */
static const mrc_packed *find_packed(const mrc_centers *centers, const mercer_matrix *view, int64_t *first)
{
    for (int i = 0; i < MRC_MOST_PACKED; i++) {
        const mercer_matrix *whole = &centers->packed[i].points;
        if (!whole->data || whole->ld != view->ld || whole->cols != view->cols || whole->dtype != view->dtype) continue;
        ptrdiff_t offset = (const char *)view->data - (const char *)whole->data;
        if (offset < 0 || offset % row_bytes(whole) != 0) continue;
        *first = offset / row_bytes(whole);
        if (*first + view->rows <= whole->rows) return centers->packed[i].packed;
    }
    return NULL;
}

mrc_pair mrc_points_pair(const mrc_centers *centers, const mercer_matrix *a, const mercer_matrix *b)
{
    mrc_pair pair = {.kernel = centers->kernel, .x = a, .z = b, .origin = centers->origin, .half = centers->half};
    pair.packed_x = find_packed(centers, a, &pair.first_x);
    pair.packed_z = find_packed(centers, b, &pair.first_z);
    return pair;
}

/* Return the slot of the points with this address, else a free slot, or NULL. */
static mrc_packed_points *slot_of(mrc_centers *centers, const void *data)
{
    mrc_packed_points *free_one = NULL;
    for (int i = 0; i < MRC_MOST_PACKED; i++) {
        if (centers->packed[i].points.data == data) return &centers->packed[i];
        if (!centers->packed[i].points.data) free_one = &centers->packed[i];
    }
    return free_one;
}

mercer_status mrc_points_pack(mrc_centers *centers, const mercer_matrix *whole, int64_t first, int64_t count)
{
    mrc_backend *backend = centers->backend;
    if (!centers->half || !whole->data || whole->cols == 0) return MERCER_OK;
    mrc_packed_points *place = slot_of(centers, whole->data);
    if (!place) return MERCER_OK; /* the list is full: the points are used unpacked */
    if (!place->packed)
        MRC_TRY(backend->ops->pack_create(backend, &place->packed, centers->kernel, centers->origin, whole));
    if (!place->packed) return MERCER_OK;
    mercer_matrix rows = mrc_rows(whole, first, count);
    place->points = *whole;
    mercer_status status = backend->ops->pack_rows(backend, place->packed, first, &rows);
    if (status != MERCER_OK) mrc_points_forget(centers, whole);
    return status;
}

void mrc_points_forget(mrc_centers *centers, const mercer_matrix *whole)
{
    mrc_packed_points *place = whole->data ? slot_of(centers, whole->data) : NULL;
    if (!place || !place->points.data) return;
    centers->backend->ops->pack_free(centers->backend, place->packed);
    *place = (mrc_packed_points){0};
}
