/* SPDX-License-Identifier: BSD-3-Clause */
/* Packed rows that outlive a product: operands of the fused kernel, packed once for centers used in many products. */
#include "backends/cuda/half_precision/half_precision.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

/* *out stays NULL, without an error, for double points, points without features and kernels without a half form. */
mercer_status mrc_cuda_pack_create(mrc_backend *backend, mrc_packed **out, const mercer_kernel *kernel,
                                   const double *origin, const mercer_matrix *like)
{
    mrc_packed *packed;
    *out = NULL;
    if (like->dtype == MERCER_F64 || like->cols == 0 || !(mrc_fused_scale(kernel) > 0)) return MERCER_OK;
    MRC_TRY(mrc_alloc_zero(backend->context, &packed, 1, sizeof *packed, "packed rows"));
    *packed =
        (mrc_packed){.kernel = kernel, .bytes = mrc_half_precision_takes_bytes(backend, like), .rows = like->rows};
    packed->ld = mrc_half_precision_ld(like->cols);
    int64_t size = packed->bytes ? 1 : 2;
    mercer_status status = mrc_cuda_alloc(backend, &packed->values, packed->rows * packed->ld * size, "packed rows");
    /* A product may begin at any row and reads norms in whole tiles, so there is one tile more than the rows need. */
    if (status == MERCER_OK)
        status = mrc_cuda_alloc(backend, &packed->norms, 4 * mrc_fused_padded(packed->rows + MRC_FUSED_CENTERS),
                                "norms of packed rows");
    if (status == MERCER_OK && origin && !packed->bytes)
        status = mrc_cuda_alloc(backend, &packed->origin, like->cols * 8, "the origin of packed rows");
    if (status == MERCER_OK && packed->origin)
        status = mrc_cuda_check(backend,
                                cudaMemcpyAsync(packed->origin, origin, (size_t)like->cols * 8, cudaMemcpyHostToDevice,
                                                mrc_cuda_of(backend)->stream),
                                "copying the origin");
    /* Norms after the last row are read, although the results for these rows are discarded. */
    mercer_matrix norms = mrc_view(packed->norms, 1, mrc_fused_padded(packed->rows + MRC_FUSED_CENTERS), MERCER_F32);
    norms.memory = MRC_CUDA;
    if (status == MERCER_OK) status = mrc_cuda_clear(backend, &norms);
    if (status == MERCER_OK) status = mrc_cuda_sync(backend); /* the copy must have read the caller's origin */
    if (status != MERCER_OK) mrc_cuda_pack_free(backend, packed);
    if (status == MERCER_OK) *out = packed;
    return status;
}

void mrc_cuda_pack_free(mrc_backend *backend, mrc_packed *packed)
{
    if (!packed) return;
    mrc_cuda_free(backend, packed->values);
    mrc_cuda_free(backend, packed->norms);
    mrc_cuda_free(backend, packed->origin);
    mrc_free(backend->context, packed);
}

/* Overwrites packed rows in place, on the stream: products that were queued before still use the old rows. */
mercer_status mrc_cuda_pack_rows(mrc_backend *backend, mrc_packed *packed, int64_t first, const mercer_matrix *points)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mercer_matrix from;
    if (!packed || points->rows == 0) return MERCER_OK;
    char *rows = (char *)packed->values + first * packed->ld * (packed->bytes ? 1 : 2);
    void *norms = (char *)packed->norms + first * 4;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, points, &from));
    MRC_CUDA_TRY(backend, packed->bytes ? mrc_fused_pack_bytes(cuda->stream, from, packed->ld, rows, norms, from.rows)
                                        : mrc_fused_pack_half(cuda->stream, packed->kernel, from, packed->origin,
                                                              packed->ld, rows, norms, from.rows, cuda->overflow));
    return MERCER_OK;
}
