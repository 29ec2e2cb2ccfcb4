/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies between host and device.
 *
 * Ring: small arrays (row numbers, factors) are copied to page-locked memory, and the stream copies them to the device.
 * The caller may reuse its memory at once, and no thread waits. A part of the ring is reused when an event signals that
 * the copies from this part are done. Large matrices pass through the ring part by part in both directions: all threads
 * copy one part while the copy engine transfers others. From memory that is not page-locked the driver copies at a
 * tenth of that speed.
 *
 * Slots: the points of a batch and its targets each go to one of four slots. A slot is a page-locked buffer and a
 * device buffer; a separate stream copies from the first to the second:
 *
 *     host       pack t+1 into slot C       ...
 *     copies       slot C -> device           (waits until batch t-1, which used slot C, is computed)
 *     stream     batch t, from slot A ...     batch t+1 (waits for the copy)
 *
 * Nothing is allocated once the slots have the size of a batch.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <string.h>

enum {
    PIECE = 4 << 20,   /* bytes of a batch per copy to the device */
    SHARE = 128 << 10, /* bytes per piece of parallel work */
    UNIT = 64          /* alignment in the ring, in bytes */
};

/* ---- Setup --------------------------------------------------------------------------------------------------- */

/* Allocates page-locked host memory, counted by the context. *out is set only on success. */
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

/* On failure the events and the stream that exist stay in the state; mrc_cuda_close_staging releases them. */
mercer_status mrc_cuda_open_staging(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    MRC_CUDA_TRY(backend, cudaStreamCreateWithFlags(&cuda->copies, cudaStreamNonBlocking));
    for (int i = 0; i < MRC_CUDA_RING_PARTS; i++)
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->ring.done[i], cudaEventDisableTiming));
    for (int i = 0; i < MRC_CUDA_SLOTS; i++) {
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->slots[i].used, cudaEventDisableTiming));
        MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&cuda->slots[i].ready, cudaEventDisableTiming));
    }
    return lock_memory(backend, &cuda->ring.memory, (int64_t)MRC_CUDA_RING_PARTS * MRC_CUDA_RING_PART);
}

void mrc_cuda_close_staging(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (cuda->copies) cudaStreamSynchronize(cuda->copies);
    for (int i = 0; i < MRC_CUDA_SLOTS; i++) {
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

/* ---- Rows in host memory --------------------------------------------------------------------------------------- */

typedef struct row_copy {
    const mercer_matrix *to, *from;
    int64_t rows_each;
} row_copy;

static void copy_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const row_copy *self = argument;
    const mercer_matrix *to = self->to, *from = self->from;
    int64_t first = piece * self->rows_each, end = mrc_min(to->rows, first + self->rows_each);
    size_t width = (size_t)(to->cols * mrc_dtype_size(to->dtype));
    if (to->ld == to->cols && from->ld == from->cols)
        memcpy(mrc_row(to, first), mrc_row(from, first), (size_t)(end - first) * width);
    else
        for (int64_t i = first; i < end; i++) memcpy(mrc_row(to, i), mrc_row(from, i), width);
}

/* Copies in pieces of about SHARE bytes; a single piece is copied by the calling thread. */
void mrc_cuda_copy_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    int64_t width = to->cols * mrc_dtype_size(to->dtype);
    row_copy job = {to, from, mrc_max(1, SHARE / mrc_max(1, width))};
    int64_t pieces = (to->rows + job.rows_each - 1) / job.rows_each;
    mrc_parallel_for(pieces > 1 ? backend->context->threads : 1, pieces, copy_some, &job);
}

/* ---- The ring ------------------------------------------------------------------------------------------------ */

/* When the next piece does not fit the current part, the next part is used. The event of the old part then covers all
   copies from it, because these copies were queued on the stream before the event. */
mercer_status mrc_cuda_ring(mrc_backend *backend, int64_t bytes, void **out)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_ring_memory *ring = &cuda->ring;
    if (ring->used + bytes > MRC_CUDA_RING_PART) {
        MRC_CUDA_TRY(backend, cudaEventRecord(ring->done[ring->part], cuda->stream));
        ring->part = (ring->part + 1) % MRC_CUDA_RING_PARTS;
        ring->used = 0;
        MRC_CUDA_TRY(backend,
                     cudaEventSynchronize(ring->done[ring->part])); /* returns at once if it was never recorded */
    }
    *out = ring->memory + (int64_t)ring->part * MRC_CUDA_RING_PART + ring->used;
    ring->used += mrc_round_up(bytes, UNIT);
    return MERCER_OK;
}

/* Returns the rows from `first` on that fit a part of the ring, or fewer at the end of the matrix. */
static mercer_matrix piece_of(const mercer_matrix *matrix, int64_t first)
{
    int64_t rows = MRC_CUDA_RING_PART / (matrix->cols * mrc_dtype_size(matrix->dtype));
    return mrc_rows(matrix, first, mrc_min(rows, matrix->rows - first));
}

/* Each piece takes a whole part of the ring, so packing the next piece waits only until the copy engine has read the
   oldest part. */
mercer_status mrc_cuda_send_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    for (int64_t first = 0; first < to->rows;) {
        mercer_matrix some = piece_of(from, first), on_device = mrc_rows(to, first, some.rows), staged = some;
        staged.ld = staged.cols;
        MRC_TRY(mrc_cuda_ring(backend, MRC_CUDA_RING_PART, &staged.data));
        mrc_cuda_copy_rows(backend, &staged, &some);
        MRC_TRY(mrc_cuda_queue_copy(backend, &on_device, &staged));
        first += some.rows;
    }
    return MERCER_OK;
}

/* Keeps up to three copies in flight, one fewer than the ring has parts. The part that mrc_cuda_ring returns next is
   then always free. The oldest copy is moved to the caller's memory while the others run. */
mercer_status mrc_cuda_fetch_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    mrc_cuda_ring_memory *ring = &cuda->ring;
    struct {
        mercer_matrix staged, to;
        cudaEvent_t done;
    } flying[MRC_CUDA_RING_PARTS];
    int64_t begun = 0, ended = 0;
    for (int64_t first = 0; first < to->rows || ended < begun;) {
        if (first < to->rows && begun - ended < MRC_CUDA_RING_PARTS - 1) {
            mercer_matrix some = piece_of(to, first), on_device = mrc_rows(from, first, some.rows), staged = some;
            staged.ld = staged.cols;
            MRC_TRY(mrc_cuda_ring(backend, MRC_CUDA_RING_PART, &staged.data));
            MRC_TRY(mrc_cuda_queue_copy(backend, &staged, &on_device));
            MRC_CUDA_TRY(backend, cudaEventRecord(ring->done[ring->part], cuda->stream));
            flying[begun % MRC_CUDA_RING_PARTS].staged = staged, flying[begun % MRC_CUDA_RING_PARTS].to = some;
            flying[begun++ % MRC_CUDA_RING_PARTS].done = ring->done[ring->part];
            first += some.rows;
            continue;
        }
        int at = (int)(ended++ % MRC_CUDA_RING_PARTS);
        MRC_CUDA_TRY(backend, cudaEventSynchronize(flying[at].done));
        mrc_cuda_copy_rows(backend, &flying[at].to, &flying[at].staged);
    }
    return mrc_cuda_sync(backend); /* also reports earlier asynchronous errors */
}

/* ---- Slots --------------------------------------------------------------------------------------------------- */

/* Enlarges a slot to `bytes`. This waits for both streams, but happens only with the first batches. If the page-locked
   buffer cannot be allocated, the size of the slot is 0 and the next call starts again. */
static mercer_status grow_slot(mrc_backend *backend, mrc_cuda_slot *slot, int64_t bytes)
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
    MRC_CUDA_TRY(backend, cudaStreamSynchronize(
                              cuda->stream)); /* so that the copy stream may use memory allocated on this stream */
    return MERCER_OK;
}

/* Copies a matrix to the slot's device buffer in pieces: one piece is transferred while the next piece is packed. */
static mercer_status send(mrc_backend *backend, mrc_cuda_slot *slot, const mercer_matrix *from)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    int64_t width = from->cols * mrc_dtype_size(from->dtype), rows = mrc_max(1, PIECE / width);
    mercer_matrix locked = mrc_view(slot->locked, from->rows, from->cols, from->dtype);
    for (int64_t first = 0; first < from->rows; first += rows) {
        int64_t count = mrc_min(rows, from->rows - first);
        mercer_matrix to = mrc_rows(&locked, first, count), some = mrc_rows(from, first, count);
        mrc_cuda_copy_rows(backend, &to, &some);
        MRC_CUDA_TRY(backend, cudaMemcpyAsync(slot->device.memory + first * width, slot->locked + first * width,
                                              (size_t)(count * width), cudaMemcpyHostToDevice, cuda->copies));
    }
    return MERCER_OK;
}

/* Order of events: the previous slot is marked as used on the compute stream. The host waits until the page-locked
   buffer of the new slot is free. The copy stream waits for the computation that used the device buffer of the new
   slot. The compute stream waits for the new copy. */
mercer_status mrc_cuda_stage(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *out)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    *out = *matrix;
    if (matrix->memory != MRC_HOST) return MERCER_OK;
    out->memory = MRC_CUDA;
    out->ld = matrix->cols;
    if (matrix->rows == 0 || matrix->cols == 0) return MERCER_OK;
    mrc_cuda_slot *slot = &cuda->slots[cuda->turn],
                  *last = &cuda->slots[(cuda->turn + MRC_CUDA_SLOTS - 1) % MRC_CUDA_SLOTS];
    mrc_cuda_select(backend);
    MRC_TRY(grow_slot(backend, slot, matrix->rows * matrix->cols * mrc_dtype_size(matrix->dtype)));
    /* All work that uses the previous slot has been queued: callers queue it before the next call of stage. */
    MRC_CUDA_TRY(backend, cudaEventRecord(last->used, cuda->stream));
    MRC_CUDA_TRY(backend, cudaEventSynchronize(slot->ready)); /* the page-locked buffer has been read */
    MRC_CUDA_TRY(backend, cudaStreamWaitEvent(cuda->copies, slot->used, 0));
    MRC_TRY(send(backend, slot, matrix));
    MRC_CUDA_TRY(backend, cudaEventRecord(slot->ready, cuda->copies));
    MRC_CUDA_TRY(backend, cudaStreamWaitEvent(cuda->stream, slot->ready, 0));
    out->data = slot->device.memory;
    cuda->turn = (cuda->turn + 1) % MRC_CUDA_SLOTS;
    return MERCER_OK;
}
