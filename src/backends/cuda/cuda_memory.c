/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory. It is allocated from the device's pool in the order of the backend's stream, so freed memory is reused
 * without a driver call. The context counts every byte, together with host memory.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

enum { ALIGNMENT = 256, FIRST_SIZE = 64, SMALLEST_SCRATCH = 1 << 20 }; /* FIRST_SIZE: initial capacity of the list */

/* ---- Blocks -------------------------------------------------------------------------------------------------- */

mercer_status mrc_cuda_take(mrc_backend *backend, mrc_cuda_block *block, int64_t bytes, const char *what)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    void *memory = NULL;
    int64_t size = mrc_round_up(mrc_max(bytes, 1), ALIGNMENT);
    mrc_cuda_select(backend);
    cudaError_t error = cudaMallocAsync(&memory, (size_t)size, cuda->stream);
    if (error == cudaErrorMemoryAllocation) { /* the pool may be fragmented: return its memory, retry */
        cudaGetLastError();
        cudaStreamSynchronize(cuda->stream);
        cudaMemPoolTrimTo(cuda->pool, 0);
        error = cudaMallocAsync(&memory, (size_t)size, cuda->stream);
    }
    if (error != cudaSuccess) {
        cudaGetLastError();
        return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "out of device memory: %lld bytes for %s (%s)",
                        (long long)bytes, what, cudaGetErrorString(error));
    }
    *block = (mrc_cuda_block){memory, size};
    mrc_count_bytes(backend->context, size);
    return MERCER_OK;
}

void mrc_cuda_give(mrc_backend *backend, mrc_cuda_block *block)
{
    if (!block->memory) return;
    mrc_cuda_select(backend);
    cudaFreeAsync(block->memory, mrc_cuda_of(backend)->stream);
    mrc_count_bytes(backend->context, -block->bytes);
    *block = (mrc_cuda_block){0};
}

mercer_status mrc_cuda_reserve_block(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (cuda->count < cuda->capacity) return MERCER_OK;
    int64_t capacity = mrc_max(FIRST_SIZE, 2 * cuda->capacity);
    mrc_cuda_block *blocks;
    MRC_TRY(mrc_alloc(backend->context, &blocks, capacity, sizeof *blocks, "the list of device memory"));
    if (cuda->count) memcpy(blocks, cuda->blocks, (size_t)cuda->count * sizeof *blocks);
    mrc_free(backend->context, cuda->blocks);
    cuda->blocks = blocks;
    cuda->capacity = capacity;
    return MERCER_OK;
}

/* The list stores the size of each block, which mrc_cuda_free needs for the count of the context. The capacity of the
   list is reserved first, so a block is never lost. */
mercer_status mrc_cuda_alloc(mrc_backend *backend, void **out, int64_t bytes, const char *what)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    *out = NULL;
    MRC_TRY(mrc_cuda_reserve_block(backend));
    MRC_TRY(mrc_cuda_take(backend, &cuda->blocks[cuda->count], bytes, what));
    *out = cuda->blocks[cuda->count++].memory;
    return MERCER_OK;
}

/* Searches from the newest block back. The last block takes the place of the freed block in the list. Addresses that
   are not in the list are ignored, NULL included. */
void mrc_cuda_free(mrc_backend *backend, void *memory)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    for (int64_t i = cuda->count - 1; i >= 0 && memory; i--) {
        if (cuda->blocks[i].memory != (char *)memory) continue;
        mrc_cuda_give(backend, &cuda->blocks[i]);
        cuda->blocks[i] = cuda->blocks[--cuda->count];
        return;
    }
}

void mrc_cuda_release_all(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    for (int64_t i = 0; i < cuda->count; i++) mrc_cuda_give(backend, &cuda->blocks[i]);
    for (int i = 0; i < cuda->scratches; i++) mrc_cuda_give(backend, &cuda->scratch[i]);
    mrc_free(backend->context, cuda->blocks);
    cuda->blocks = NULL;
    cuda->count = cuda->capacity = cuda->scratches = 0;
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
}

/* Kernels cannot return a status, so a coordinate outside the range of halves sets a flag in mapped memory. This
   function reports the flag once and clears it. */
mercer_status mrc_cuda_sync(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_select(backend);
    MRC_CUDA_TRY(backend, cudaStreamSynchronize(cuda->stream));
    if (!*cuda->overflow) return MERCER_OK;
    *cuda->overflow = 0;
    return mrc_fail(backend->context, MERCER_ERROR_DATA,
                    "arithmetic fast: a coordinate is more than 500 bandwidths from the origin, too large for half "
                    "precision; use a larger bandwidth, other units or arithmetic accurate");
}

/* Memory that the pool has reserved but does not use is free for this process, although the driver counts it as
   used. */
int64_t mrc_cuda_free_memory(mrc_backend *backend)
{
    size_t now = 0, total = 0;
    uint64_t reserved = 0, used = 0;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_select(backend);
    if (cudaMemGetInfo(&now, &total) != cudaSuccess) return 0;
    cudaMemPoolGetAttribute(cuda->pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    cudaMemPoolGetAttribute(cuda->pool, cudaMemPoolAttrUsedMemCurrent, &used);
    return (int64_t)now + (int64_t)(reserved - used);
}

mercer_status mrc_cuda_clear(mrc_backend *backend, const mercer_matrix *matrix)
{
    size_t width = (size_t)(matrix->cols * mrc_dtype_size(matrix->dtype));
    if (matrix->rows == 0 || width == 0) return MERCER_OK;
    if (matrix->memory == MRC_HOST) {
        for (int64_t i = 0; i < matrix->rows; i++) memset(mrc_row(matrix, i), 0, width);
        return MERCER_OK;
    }
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    mrc_cuda_select(backend);
    if (matrix->ld == matrix->cols)
        MRC_CUDA_TRY(backend, cudaMemsetAsync(matrix->data, 0, width * (size_t)matrix->rows, stream));
    else
        MRC_CUDA_TRY(backend, cudaMemset2DAsync(matrix->data, (size_t)(matrix->ld * mrc_dtype_size(matrix->dtype)), 0,
                                                width, (size_t)matrix->rows, stream));
    return MERCER_OK;
}

/* ---- Scratch ------------------------------------------------------------------------------------------------- */

/* Remembers how much scratch is in use, and selects the device for the calling thread. */
mrc_cuda_mark mrc_cuda_begin(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_select(backend);
    return (mrc_cuda_mark){backend, cuda->scratches, cuda->used};
}

/* A new block has at least half of the total size so far, so the number of blocks grows only with the logarithm of the
   size. The rest of the previous block stays unused until the scratch is released. */
mercer_status mrc_cuda_push(mrc_backend *backend, void *out, int64_t bytes)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    int64_t size = mrc_round_up(mrc_max(bytes, 1), ALIGNMENT);
    bool fits = cuda->scratches > 0 && cuda->used + size <= cuda->scratch[cuda->scratches - 1].bytes;
    if (!fits) {
        if (cuda->scratches == (int)(sizeof cuda->scratch / sizeof *cuda->scratch))
            return mrc_fail(backend->context, MERCER_ERROR_INTERNAL,
                            "CUDA: an operation requests too many scratch "
                            "buffers");
        int64_t block = mrc_max(size, mrc_max(SMALLEST_SCRATCH, cuda->needed / 2));
        MRC_TRY(mrc_cuda_take(backend, &cuda->scratch[cuda->scratches], block, "scratch"));
        cuda->needed += cuda->scratch[cuda->scratches].bytes;
        cuda->scratches++;
        cuda->used = 0;
    }
    void *piece = cuda->scratch[cuda->scratches - 1].memory + cuda->used;
    memcpy(out, &piece, sizeof piece);
    cuda->used += size;
    return MERCER_OK;
}

/* Pieces are released in stack order. The memory may be reused while kernels that read it are still queued, because
   later work is queued on the same stream. The outermost operation merges several blocks into one; if that fails, the
   next push starts without a block. */
void mrc_cuda_end(mrc_cuda_mark *mark)
{
    mrc_backend *backend = mark->backend;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (cuda->scratches > 1 && mark->used == 0 && mark->scratches <= 1) { /* outermost: merge the blocks */
        int64_t needed = cuda->needed;
        for (int i = 0; i < cuda->scratches; i++) mrc_cuda_give(backend, &cuda->scratch[i]);
        cuda->scratches = 0, cuda->used = 0, cuda->needed = 0;
        if (mrc_cuda_take(backend, &cuda->scratch[0], needed, "scratch") == MERCER_OK)
            cuda->scratches = 1, cuda->needed = needed;
        return;
    }
    for (; cuda->scratches > mrc_max(mark->scratches, 1); cuda->scratches--) {
        cuda->needed -= cuda->scratch[cuda->scratches - 1].bytes;
        mrc_cuda_give(backend, &cuda->scratch[cuda->scratches - 1]);
    }
    cuda->used = mark->used;
}
