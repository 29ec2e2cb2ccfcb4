/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over the points for many kernels: what functions of the distance take (sum_k |x_k - z_k|^p) of rows and
 * centers, and of centers among themselves, is kept, and the kernel matrix of a bandwidth or an exponent is a function
 * of it, element by element. K has the bits that it has without.
 *
 * A pass serves the bandwidths of a round, and in the first round, where there is no metric yet, all kernel functions
 * of a norm: so there is one for each norm. Memory of each: 4 n p + 8 p^2 bytes, if that is within what is allowed.
 */
#include "tune/small_fits.h"

#include "core/matrix.h"

void mrc_kept_sums_free(mrc_kept_sums *self)
{
    if (self->context) mrc_free(self->context, self->memory);
    *self = (mrc_kept_sums){0};
}

/* Where the distances of a fold begin. */
static int64_t place_of(const mrc_small_rows *rows, int fold)
{
    int64_t place = 0;
    for (int f = 0; f < fold; f++) place += rows->folds[f].count;
    return place;
}

bool mrc_kept_sums_fit(mercer_context *context, const mrc_small_rows *rows, int64_t p, int64_t room)
{
    mrc_backend *backend = context->backend;
    double bytes = (double)place_of(rows, rows->count) * (double)p * sizeof(float) + (double)p * (double)p * 8;
    /* A device forms distances faster than it would read them. */
    return backend->ops->capabilities(backend).memory == MRC_HOST && rows->x.dtype == MERCER_F32 &&
           (room <= 0 || bytes <= (double)room);
}

static mercer_status make_room(mrc_kept_sums *self, int64_t n, int64_t p)
{
    int64_t bytes = n * p * (int64_t)sizeof(float), all = p * p * (int64_t)sizeof(double) + bytes;
    if (all > self->bytes) {
        mrc_free(self->context, self->memory);
        self->memory = NULL, self->bytes = 0;
        MRC_TRY(mrc_alloc(self->context, &self->memory, all, 1, "distances of the search"));
        self->bytes = all;
    }
    self->centers = mrc_view(self->memory, p, p, MERCER_F64);
    self->sums = mrc_view((double *)self->memory + p * p, n, p, MERCER_F32);
    return MERCER_OK;
}

mercer_status mrc_kept_sums_make(mrc_kept_sums *self, mercer_context *context, const mercer_kernel *kernel,
                                 const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *z)
{
    mrc_backend *backend = context->backend;
    mrc_pair pair = {.kernel = kernel, .x = z, .z = z};
    self->context = context;
    MRC_TRY(make_room(self, place_of(rows, rows->count), z->rows));
    MRC_TRY(backend->ops->kernel_sums(backend, &pair, &self->centers));
    for (int f = 0; f < rows->count; f++) {
        mercer_matrix own = mrc_rows(x, rows->folds[f].first, rows->folds[f].count),
                      to = mrc_rows(&self->sums, place_of(rows, f), own.rows);
        pair.x = &own;
        MRC_TRY(backend->ops->kernel_sums(backend, &pair, &to));
    }
    self->there = true;
    return MERCER_OK;
}

mercer_matrix mrc_kept_sums_rows(const mrc_kept_sums *self, const mrc_small_rows *rows, int64_t first, int64_t count)
{
    int f = 0;
    while (first < rows->folds[f].first || first >= rows->folds[f].first + rows->folds[f].count) f++;
    return mrc_rows(&self->sums, place_of(rows, f) + first - rows->folds[f].first, count);
}
