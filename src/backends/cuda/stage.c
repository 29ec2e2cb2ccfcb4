/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between host and device without waiting.
 *
 * The ring: small things (row numbers, factors, targets of a batch) are copied into page-locked memory and from there
 * by the stream itself, so the caller's memory is free at once and no thread waits. A part of the ring is used again
 * when the copies out of it are done, which an event tells.
 *
 * Slots: the points of a batch go into one of two slots, each a page-locked and a device buffer, by a stream of their
 * own:
 *
 *     host       pack t+1 into slot B       ...
 *     copies       slot B -> device           (waits until batch t-1, which was in B, is computed)
 *     stream     batch t, from slot A ...     batch t+1 (waits for the copy)
 *
 * Nothing is allocated once both slots have the size of a batch.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

enum { PIECE = 16 << 20, SHARE = 1 << 20, UNIT = 64 };

/* ---- Making -------------------------------------------------------------------------------------------------- */

static mercer_status lock_memory(mrc_backend *backend, char **out, int64_t bytes)
{
    void *memory = NULL;
    cudaError_t error = cudaHostAlloc(&memory, (size_t)bytes, cudaHostAllocDefault);
    if (error != cudaSuccess) {
        cudaGetLastError();
        return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "out of page-locked memory: %lld bytes (%s)",
                        (long long)bytes, cudaGetErrorString(error));
    }
    mrc_count_bytes(backend->context, bytes);
    *out = memory;
    return MERCER_OK;
}

static void unlock_memory(mrc_backend *backend, char **memory, int64_t bytes)
{
    if (!*memory) return;
    cudaFreeHost(*memory);
    mrc_count_bytes(backend->context, -bytes);
    *memory = NULL;
}

mercer_status mrc_cuda_open_staging(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    MRC_CUDA_TRY(backend, cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking));
    for (int i = 0; i < MRC_CUDA_RING_PARTS; i++)
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->ring.done[i], cudaEventDisableTiming));
    for (int i = 0; i < 2; i++) {
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->slots[i].used, cudaEventDisableTiming));
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->slots[i].ready, cudaEventDisableTiming));
    }
    return lock_memory(backend, &cuda->ring.memory, (int64_t)MRC_CUDA_RING_PARTS * MRC_CUDA_RING_PART);
}

void mrc_cuda_close_staging(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (cuda->copies) cudaStreamSynchronize(cuda->copies);
    for (int i = 0; i < 2; i++) {
        mrc_cuda_slot *slot = &cuda->slots[i];
        unlock_memory(backend, &slot->locked, slot->locked_bytes);
        mrc_cuda_give(backend, &slot->device);
        if (slot->used) cudaEventDestroy(slot->used);
        if (slot->ready) cudaEventDestroy(slot->ready);
    }
    for (int i = 0; i < MRC_CUDA_RING_PARTS; i++)
        if (cuda->ring.done[i]) cudaEventDestroy(cuda->ring.done[i]);
    unlock_memory(backend, &cuda->ring.memory, (int64_t)MRC_CUDA_RING_PARTS * MRC_CUDA_RING_PART);
    if (cuda->copies) cudaStreamDestroy(cuda->copies);
    cuda->copies = NULL;
}

/* ---- The ring ------------------------------------------------------------------------------------------------ */

mercer_status mrc_cuda_ring(mrc_backend *backend, int64_t bytes, void **out)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_ring_memory *ring = &cuda->ring;
    if (ring->used + bytes > MRC_CUDA_RING_PART) {
        MRC_CUDA_TRY(backend, cudaEventRecord(ring->done[ring->part], cuda->stream));
        ring->part = (ring->part + 1) % MRC_CUDA_RING_PARTS;
        ring->used = 0;
        MRC_CUDA_TRY(backend, cudaEventSynchronize(ring->done[ring->part])); /* at once if nothing was recorded */
    }
    *out = ring->memory + (int64_t)ring->part * MRC_CUDA_RING_PART + ring->used;
    ring->used += mrc_round_up(bytes, UNIT);
    return MERCER_OK;
}

/* ---- Slots --------------------------------------------------------------------------------------------------- */

/* Growing waits for everything: it happens with the first batches only. */
static mercer_status grow(mrc_backend *backend, mrc_cuda_slot *slot, int64_t bytes)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (bytes <= slot->locked_bytes) return MERCER_OK;
    MRC_CUDA_TRY(backend, cudaStreamSynchronize(cuda->copies));
    mrc_cuda_give(backend, &slot->device);
    unlock_memory(backend, &slot->locked, slot->locked_bytes);
    slot->locked_bytes = 0;
    MRC_TRY(mrc_cuda_take(backend, &slot->device, bytes, "a batch"));
    MRC_TRY(lock_memory(backend, &slot->locked, bytes));
    slot->locked_bytes = bytes;
    MRC_CUDA_TRY(backend, cudaStreamSynchronize(cuda->stream)); /* the other stream may use what this one allocated */
    return MERCER_OK;
}

typedef struct packing {
    const mercer_matrix *from;
    char *to;
    int64_t width; /* bytes of a row */
    int64_t first, end, rows_each;
} packing;

static void pack_rows(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const packing *self = argument;
    int64_t first = self->first + piece * self->rows_each, end = mrc_min(self->end, first + self->rows_each);
    if (self->from->ld == self->from->cols) {
        memcpy(self->to + first * self->width, mrc_row(self->from, first), (size_t)((end - first) * self->width));
        return;
    }
    for (int64_t i = first; i < end; i++)
        memcpy(self->to + i * self->width, mrc_row(self->from, i), (size_t)self->width);
}

/* A piece is copied to the device while the next one is packed. */
static mercer_status send(mrc_backend *backend, mrc_cuda_slot *slot, const mercer_matrix *from)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    int64_t width = from->cols * mrc_dtype_size(from->dtype), rows = mrc_max(1, PIECE / width);
    for (int64_t first = 0; first < from->rows; first += rows) {
        int64_t count = mrc_min(rows, from->rows - first);
        packing job = {.from = from,
                       .to = slot->locked,
                       .width = width,
                       .first = first,
                       .end = first + count,
                       .rows_each = mrc_max(1, SHARE / width)};
        mrc_parallel_for(backend->context->threads, (count + job.rows_each - 1) / job.rows_each, pack_rows, &job);
        MRC_CUDA_TRY(backend, cudaMemcpyAsync(slot->device.memory + first * width, slot->locked + first * width,
                                              (size_t)(count * width), cudaMemcpyHostToDevice, cuda->copies));
    }
    return MERCER_OK;
}

mercer_status mrc_cuda_stage(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *out)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    *out = *matrix;
    if (matrix->memory != MRC_HOST) return MERCER_OK;
    out->memory = MRC_CUDA;
    out->ld = matrix->cols;
    if (matrix->rows == 0 || matrix->cols == 0) return MERCER_OK;
    mrc_cuda_slot *slot = &cuda->slots[cuda->turn], *other = &cuda->slots[1 - cuda->turn];
    mrc_cuda_select(backend);
    MRC_TRY(grow(backend, slot, matrix->rows * matrix->cols * mrc_dtype_size(matrix->dtype)));
    /* What computes with the other slot has been queued by now, and nothing more of it will be after the next call. */
    MRC_CUDA_TRY(backend, cudaEventRecord(other->used, cuda->stream));
    MRC_CUDA_TRY(backend, cudaEventSynchronize(slot->ready)); /* the page-locked part has been read */
    MRC_CUDA_TRY(backend, cudaStreamWaitEvent(cuda->copies, slot->used, 0));
    MRC_TRY(send(backend, slot, matrix));
    MRC_CUDA_TRY(backend, cudaEventRecord(slot->ready, cuda->copies));
    MRC_CUDA_TRY(backend, cudaStreamWaitEvent(cuda->stream, slot->ready, 0));
    out->data = slot->device.memory;
    cuda->turn = 1 - cuda->turn;
    return MERCER_OK;
}
