/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operands on the device: host operands are copied to scratch, and results are copied back.
 *
 *   copy                         path                                                              waits for the device
 *   within the device            one queued copy                                                   no
 *   to the device, up to 2 MB    host threads to the ring, queued copy                             if the ring is full
 *   to the device, larger        the same, part by part (mrc_cuda_send_large)                      if the ring is full
 *   to the host                  queued copy to the ring, then host threads                        yes
 *   rows of more than 2 MB       one copy of the driver from or to pageable memory                 yes
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

mrc_memory mrc_cuda_memory_of(const void *memory)
{
    struct cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
        cudaGetLastError();
        return MRC_HOST;
    }
    return attributes.type == cudaMemoryTypeDevice ? MRC_CUDA : MRC_HOST;
}

mercer_status mrc_cuda_scratch(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    *out = mrc_view(NULL, rows, cols, dtype);
    out->memory = MRC_CUDA;
    return mrc_cuda_push(backend, &out->data, rows * cols * mrc_dtype_size(dtype));
}

mercer_status mrc_cuda_queue_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    size_t size = (size_t)mrc_dtype_size(to->dtype), width = (size_t)to->cols * size;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    bool dense = (to->ld == to->cols && from->ld == from->cols) || to->rows == 1;
    enum cudaMemcpyKind kind = to->memory == MRC_HOST     ? cudaMemcpyDeviceToHost
                               : from->memory == MRC_HOST ? cudaMemcpyHostToDevice
                                                          : cudaMemcpyDeviceToDevice;
    if (dense)
        MRC_CUDA_TRY(backend, cudaMemcpyAsync(to->data, from->data, width * (size_t)to->rows, kind, stream));
    else
        MRC_CUDA_TRY(backend, cudaMemcpy2DAsync(to->data, (size_t)to->ld * size, from->data, (size_t)from->ld * size,
                                                width, (size_t)to->rows, kind, stream));
    return MERCER_OK;
}

/* Copies elements of one dtype between any memories. If exactly one side is on the host, the copy goes through the
   ring. A copy of up to MRC_CUDA_RING_PART bytes to the device does not wait. */
static mercer_status move_operand(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    int64_t bytes = to->rows * to->cols * mrc_dtype_size(to->dtype);
    bool up = from->memory == MRC_HOST, down = to->memory == MRC_HOST;
    if (bytes == 0) return MERCER_OK;
    if (up == down) return mrc_cuda_queue_copy(backend, to, from);
    if (bytes > MRC_CUDA_RING_PART) {
        if (bytes / to->rows <= MRC_CUDA_RING_PART)
            return up ? mrc_cuda_send_large(backend, to, from) : mrc_cuda_fetch_large(backend, to, from);
        MRC_TRY(mrc_cuda_queue_copy(backend, to, from));
        return mrc_cuda_sync(backend); /* the caller may change or read the host memory as soon as this returns */
    }
    mercer_matrix ring = mrc_view(NULL, to->rows, to->cols, to->dtype);
    MRC_TRY(mrc_cuda_ring(backend, bytes, &ring.data));
    if (up) mrc_cuda_copy_rows(backend, &ring, from);
    MRC_TRY(mrc_cuda_queue_copy(backend, up ? to : &ring, up ? &ring : from));
    if (up) return MERCER_OK;
    MRC_TRY(mrc_cuda_sync(backend));
    mrc_cuda_copy_rows(backend, to, &ring);
    return MERCER_OK;
}

mercer_status mrc_cuda_read(mrc_backend *backend, const mercer_matrix *operand, mercer_matrix *out)
{
    *out = *operand;
    if (operand->memory == MRC_CUDA) return MERCER_OK;
    MRC_TRY(mrc_cuda_scratch(backend, out, operand->rows, operand->cols, operand->dtype));
    return move_operand(backend, out, operand);
}

mercer_status mrc_cuda_write(mrc_backend *backend, const mercer_matrix *operand, bool content, mercer_matrix *out)
{
    if (content) return mrc_cuda_read(backend, operand, out);
    *out = *operand;
    if (operand->memory == MRC_CUDA) return MERCER_OK;
    return mrc_cuda_scratch(backend, out, operand->rows, operand->cols, operand->dtype);
}

mercer_status mrc_cuda_write_back(mrc_backend *backend, const mercer_matrix *operand, const mercer_matrix *device)
{
    return operand->memory == MRC_CUDA ? MERCER_OK : move_operand(backend, operand, device);
}

/* The array is copied as a column of bytes: it takes the same paths as a matrix, and a large array can be divided
   anywhere. */
mercer_status mrc_cuda_upload(mrc_backend *backend, void *out, const void *host, int64_t bytes)
{
    mercer_matrix from = mrc_view((void *)host, bytes, 1, MERCER_U8), to;
    MRC_TRY(mrc_cuda_scratch(backend, &to, bytes, 1, MERCER_U8));
    memcpy(out, &to.data, sizeof to.data);
    return move_operand(backend, &to, &from);
}

/* Waits even if the array has no elements. */
mercer_status mrc_cuda_download(mrc_backend *backend, void *host, const void *device, int64_t bytes)
{
    mercer_matrix to = mrc_view(host, bytes, 1, MERCER_U8), from = mrc_view((void *)device, bytes, 1, MERCER_U8);
    from.memory = MRC_CUDA;
    return bytes > 0 ? move_operand(backend, &to, &from) : mrc_cuda_sync(backend);
}

/* Matrices of equal type are copied without a kernel, unless the rows of a view overlap (ld < cols): 2-D copies of the
   driver do not accept overlapping rows. */
mercer_status mrc_cuda_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    mercer_matrix target, source;
    if (to->memory == MRC_HOST && from->memory == MRC_HOST) return mrc_host_copy(backend, to, from);
    if (to->rows == 0 || to->cols == 0) return MERCER_OK;
    mrc_cuda_select(backend);
    if (to->dtype == from->dtype && to->ld >= to->cols && from->ld >= from->cols)
        return move_operand(backend, to, from);
    MRC_TRY(mrc_check_copy(backend, to, from));
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, from, &source));
    MRC_TRY(mrc_cuda_write(backend, to, false, &target));
    MRC_CUDA_TRY(backend, mrc_launch_convert(mrc_cuda_of(backend)->stream, target, source));
    return mrc_cuda_write_back(backend, to, &target);
}
