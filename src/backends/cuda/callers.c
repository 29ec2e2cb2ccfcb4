/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers' arrays in device memory: check that they are on the device and finite, and order the streams. The backend
 * computes on its own stream, which waits for the caller's stream by an event. Public functions wait for the backend's
 * stream before they return, so callers may use results on any stream.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

/* Managed memory is accepted on every device. For host pointers the runtime reports success or an error, depending on
   the version of CUDA; an error is cleared. */
mercer_status mrc_cuda_check_memory(mrc_backend *backend, const char *name, const mercer_matrix *matrix)
{
    struct cudaPointerAttributes found;
    int own = mrc_cuda_of(backend)->device;
    if (matrix->rows == 0 || matrix->cols == 0) return MERCER_OK;
    mrc_cuda_select(backend);
    cudaError_t error = cudaPointerGetAttributes(&found, matrix->data);
    cudaGetLastError();
    bool on_device =
        error == cudaSuccess && (found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged);
    if (!on_device)
        return mrc_fail(backend->context, MERCER_ERROR_ARGUMENT,
                        "%s: memory is MERCER_CUDA, but the address is not in GPU memory", name);
    if (found.type == cudaMemoryTypeManaged || found.device == own) return MERCER_OK;
    return mrc_fail(
        backend->context, MERCER_ERROR_UNSUPPORTED,
        "%s is on CUDA device %d, but the context uses device %d; use a context for cuda:%d, or copy the matrix", name,
        found.device, own, found.device);
}

/* Records the event on the stream of the caller and lets the backend wait for it. A stream of another device, or a
   destroyed one, is an error of the caller. */
static mercer_status order_streams(mrc_backend *backend, cudaEvent_t event, cudaStream_t other)
{
    cudaError_t error = cudaEventRecord(event, other);
    if (error == cudaSuccess) error = cudaStreamWaitEvent(mrc_cuda_of(backend)->stream, event, 0);
    if (error == cudaSuccess) return MERCER_OK;
    cudaGetLastError();
    return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                    "stream: %s; it must be a stream of CUDA device %d that has not been destroyed",
                    cudaGetErrorString(error), mrc_cuda_of(backend)->device);
}

/* stream NULL means the legacy default stream. */
mercer_status mrc_cuda_wait(mrc_backend *backend, void *stream)
{
    cudaEvent_t event;
    mrc_cuda_select(backend);
    MRC_CUDA_TRY(backend, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    mercer_status status = order_streams(backend, event, stream ? stream : cudaStreamLegacy);
    cudaEventDestroy(event); /* CUDA defers this until the work that waits for the event is done */
    return status;
}

mercer_status mrc_cuda_scan(mrc_backend *backend, const mercer_matrix *matrix, int64_t *first, double *largest)
{
    mercer_matrix source;
    mrc_scanned *on_device, found;
    *first = -1, *largest = 0;
    if (matrix->rows == 0 || matrix->cols == 0) return MERCER_OK;
    mrc_cuda_select(backend);
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, matrix, &source));
    MRC_TRY(mrc_cuda_push(backend, &on_device, (int64_t)sizeof found));
    MRC_CUDA_TRY(backend, mrc_launch_scan(mrc_cuda_of(backend)->stream, source, on_device));
    MRC_TRY(mrc_cuda_download(backend, &found, on_device, (int64_t)sizeof found));
    *first = found.first == UINT64_MAX ? -1 : (int64_t)found.first;
    *largest = found.largest;
    return MERCER_OK;
}
