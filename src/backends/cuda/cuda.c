/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA backend: its table of operations and the selection of its device. Operands may be in host or device memory
 * in any combination; host operands are copied for the call (operands.c). All work goes to one stream, except for the
 * copies of batches (stage.c). An operation that returns numbers to the host waits for them; other operations return as
 * soon as their work is queued.
 */
#include "backends/cuda/cuda.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <dlfcn.h>
#include <stdio.h>

mercer_status mrc_cuda_check(mrc_backend *backend, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return MERCER_OK;
    cudaGetLastError(); /* clear the error, so that later calls do not report it again */
    mercer_status status = error == cudaErrorMemoryAllocation ? MERCER_ERROR_MEMORY : MERCER_ERROR_INTERNAL;
    return mrc_fail(backend->context, status, "CUDA: %s: %s", what, cudaGetErrorString(error));
}

/* ---- The device ---------------------------------------------------------------------------------------------- */

/* Returns the number of devices, 0 without a driver. Initializes the driver. */
static int devices(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError(); /* clear the error: a missing driver must not fail later calls */
    return 0;
}

/* Returns whether the driver is installed, without the CUDA runtime, which would initialize it. */
static bool may_be_here(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver) dlclose(driver);
    return driver != NULL;
}

/* Returns the reason why no device was found. Without a driver the runtime reports an insufficient driver, which would
   be misleading. */
static const char *why_none(cudaError_t error)
{
    int driver = 0;
    if (error == cudaSuccess) return "the driver reports none";
    if (error != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess || driver > 0)
        return cudaGetErrorString(error);
    return "no NVIDIA driver is installed";
}

/* Sets *device to the number of the requested device. Fails if no device has this number. */
static mercer_status find_device(mrc_backend *backend, int *device)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (error != cudaSuccess || count == 0)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "no CUDA device: %s", why_none(error));
    *device = backend->device;
    if (backend->device < count) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "no CUDA device %d; there are %d, numbered from 0",
                    backend->device, count);
}

/* Returns a hash of the GPU's UUID (FNV-1a), never 0. Device numbers do not identify a GPU: they differ between
   processes and may be aliases. */
static uint64_t hash_of_uuid(const struct cudaDeviceProp *properties)
{
    uint64_t place = 0xCBF29CE484222325u;
    for (size_t i = 0; i < sizeof properties->uuid.bytes; i++)
        place = (place ^ (unsigned char)properties->uuid.bytes[i]) * 0x100000001B3u;
    return place | 1;
}

/* Opens the device, its stream and pool, then the libraries. On failure the fields that were set remain set, and
   destroy_cuda releases exactly those. The stream does not synchronize with the legacy default stream, so callers order
   their own work explicitly (callers.c). */
static mercer_status open_device(mrc_backend *backend, mrc_cuda *cuda)
{
    struct cudaDeviceProp properties;
    double since = mrc_seconds();
    MRC_TRY(find_device(backend, &cuda->device));
    MRC_CUDA_TRY(backend, cudaSetDevice(cuda->device));
    MRC_CUDA_TRY(backend, cudaGetDeviceProperties(&properties, cuda->device));
    if (properties.major < 8)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                        "CUDA device %d (%s) has compute capability %d.%d; this build needs 8.0 or more", cuda->device,
                        properties.name, properties.major, properties.minor);
    snprintf(cuda->name, sizeof cuda->name, "%s, sm_%d%d", properties.name, properties.major, properties.minor);
    cuda->hopper = properties.major == 9;
    cuda->difference_columns = mrc_difference_most_columns(properties.sharedMemPerBlockOptin);
    cuda->place = hash_of_uuid(&properties);
    void *overflow;
    MRC_CUDA_TRY(backend, cudaHostAlloc(&overflow, sizeof *cuda->overflow, cudaHostAllocMapped));
    cuda->overflow = overflow;
    *cuda->overflow = 0;
    MRC_CUDA_TRY(backend, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    MRC_CUDA_TRY(backend, cudaDeviceGetDefaultMemPool(&cuda->pool, cuda->device));
    uint64_t keep = UINT64_MAX; /* the pool retains freed memory, so that training loops need no driver calls */
    MRC_CUDA_TRY(backend, cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    MRC_TRY(mrc_cuda_reserve_block(backend));
    MRC_TRY(mrc_cuda_open_staging(backend));
    mrc_lap(&since, &cuda->device_seconds);
    MRC_TRY(mrc_cuda_load_libraries(backend->context, &cuda->libraries));
    if (cuda->libraries.cublasCreate_v2(&cuda->blas) != CUBLAS_STATUS_SUCCESS ||
        cuda->libraries.cublasSetStream_v2(cuda->blas, cuda->stream) != CUBLAS_STATUS_SUCCESS)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "cuBLAS cannot start on %s", cuda->name);
    if (cuda->libraries.cusolverDnCreate(&cuda->solver) != CUSOLVER_STATUS_SUCCESS ||
        cuda->libraries.cusolverDnSetStream(cuda->solver, cuda->stream) != CUSOLVER_STATUS_SUCCESS)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "cuSOLVER cannot start on %s", cuda->name);
    mrc_cuda_start_warming(backend);
    mrc_lap(&since, &cuda->library_seconds);
    return MERCER_OK;
}

/* Also called after open_device failed, so any number of its steps may be missing. The thread that warms the libraries
   ends first, because it uses their functions. Memory is returned to the pool before the pool is trimmed. */
static void destroy_cuda(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (cuda->stream) mrc_cuda_select(backend); /* without a stream there is no memory on the device */
    atomic_store(&cuda->ending, true);
    mrc_background_stop(cuda->warming);
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
    mrc_cuda_close_staging(backend);
    mrc_cuda_release_all(backend);
    if (cuda->solver) cuda->libraries.cusolverDnDestroy(cuda->solver);
    if (cuda->blas) cuda->libraries.cublasDestroy_v2(cuda->blas);
    mrc_cuda_unload_libraries(&cuda->libraries);
    if (cuda->pool) cudaMemPoolTrimTo(cuda->pool, 0);
    if (cuda->overflow) cudaFreeHost(cuda->overflow);
    if (cuda->stream) cudaStreamDestroy(cuda->stream);
    mrc_free(backend->context, cuda);
}

static mercer_status create_cuda(mrc_backend *backend)
{
    MRC_TRY(mrc_alloc_zero(backend->context, &backend->state, 1, sizeof(mrc_cuda), "the CUDA backend"));
    mercer_status status = open_device(backend, backend->state);
    if (status != MERCER_OK) destroy_cuda(backend);
    return status;
}

/* Rates are rough constants for the planner. They are not measured on the device in use. */
static mrc_capabilities cuda_capabilities(const mrc_backend *backend, bool half)
{
    return (mrc_capabilities){.isa = mrc_cuda_of(backend)->name,
                              .point_dtypes = MRC_ACCEPT_ANY,
                              .memory = MRC_CUDA,
                              .rate = half && mrc_cuda_of(backend)->hopper ? 500e12 : 40e12,
                              .rate_double = 40e12,
                              .rate_differences = 20e12, /* measured on an H200; 25e12 with many features */
                              .bandwidth = 3e12,
                              .cached_size = half && mrc_cuda_of(backend)->hopper ? 2 : 4,
                              .short_from = half ? MRC_CUDA_WIDE : 0,
                              .place = mrc_cuda_of(backend)->place,
                              .stream = mrc_cuda_of(backend)->stream,
                              .device_seconds = mrc_cuda_of(backend)->device_seconds,
                              .library_seconds = mrc_cuda_of(backend)->library_seconds};
}

const mrc_backend_ops mrc_cuda_backend = {.api_version = MRC_BACKEND_API,
                                          .name = "cuda",
                                          .create = create_cuda,
                                          .destroy = destroy_cuda,
                                          .capabilities = cuda_capabilities,
                                          .devices = devices,
                                          .may_be_here = may_be_here,
                                          .knows_kernel = mrc_cuda_knows_kernel,
                                          MRC_CUDA_OPERATIONS(MRC_ENTER_OPERATION)};
