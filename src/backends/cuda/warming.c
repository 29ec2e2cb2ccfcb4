/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuBLAS and cuSOLVER load a CUDA kernel into the device at its first use. Loading takes some milliseconds per kernel,
 * and 0.1 s or more in the setup of a training run. A background thread triggers the loading with dummy calls while the
 * host reads and packs samples. The calls are products of each type and shape that the setup uses, a Cholesky
 * factorization, a triangular solve and eigenvectors. They use small operands and their own handles and stream. Only
 * the destruction of the backend waits for the thread, after a request to stop early. Errors are ignored, because the
 * real call will report them.
 */
#include "backends/cuda/cuda.h"

#include "core/memory.h"

/* Rows of the operands; rows of the solvers' matrix; matrices per batch; bytes of one square operand in double. */
enum { SIDE = 2048, FEW = 192, BATCH = 4, BYTES = SIDE * SIDE * 8 };

/* A product C (m, n) with depth k, column-major as in cuBLAS. All samples use the same square operands of SIDE rows. */
typedef struct sample {
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    bool left, right;       /* whether the operand is transposed */
    int64_t m, n, k, batch; /* batch: number of matrices; 0: a plain product */
} sample;

static const sample samples[] = {
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, false, SIDE, SIDE, SIDE, 0},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, true, SIDE, SIDE, SIDE, 0},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, true, false, 64, 64, 64, BATCH},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, true, false, 256, 256, 256, BATCH},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, true, false, 1024, 1024, 1024, 1},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, false, 64, 64, 64, BATCH},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, false, 256, 256, 256, BATCH},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, false, 1024, 1024, 1024, 1},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, false, true, 512, SIDE, SIDE, 1},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false, false, 16, SIDE, SIDE, 0},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false, true, 16, 1024, SIDE, 0},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, false, true, 1024, 1024, SIDE, 0},
    {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, true, false, SIDE, SIDE, SIDE, 0},
    {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, true, false, SIDE, SIDE, SIDE, 0},
};

/* Queues one product; errors are ignored. The first BYTES of memory are both operands, the rest is the result. */
static void run_sample(const mrc_cuda *cuda, cublasHandle_t blas, const sample *s, char *memory)
{
    static const double one64 = 1, zero64 = 0;
    static const float one32 = 1, zero32 = 0;
    static const int32_t one = 1, zero = 0;
    bool wide = s->compute == CUBLAS_COMPUTE_64F, whole = s->compute == CUBLAS_COMPUTE_32I;
    const void *alpha = wide ? (const void *)&one64 : whole ? (const void *)&one : &one32;
    const void *beta = wide ? (const void *)&zero64 : whole ? (const void *)&zero : &zero32;
    cublasOperation_t left = s->left ? CUBLAS_OP_T : CUBLAS_OP_N, right = s->right ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (s->batch == 0)
        (void)cuda->libraries.cublasGemmEx_64(blas, left, right, s->m, s->n, s->k, alpha, memory, s->in, SIDE, memory,
                                              s->in, SIDE, beta, memory + BYTES, s->out, SIDE, s->compute,
                                              CUBLAS_GEMM_DEFAULT);
    else
        (void)cuda->libraries.cublasGemmStridedBatchedEx_64(
            blas, left, right, s->m, s->n, s->k, alpha, memory, s->in, SIDE, s->m, memory, s->in, SIDE, s->m, beta,
            memory + BYTES, s->out, SIDE, s->m, s->batch, s->compute, CUBLAS_GEMM_DEFAULT);
}

/* Calls the solvers with A = I / 2 of FEW rows, so that a factor and eigenvectors exist. memory must be zero: only the
   two high bytes of 1/2, 3fe0, are set. */
static void run_solver(const mrc_cuda *cuda, cudaStream_t stream, cusolverDnHandle_t solver, cublasHandle_t blas,
                       char *memory)
{
    static const double one = 1;
    const mrc_cuda_libraries *call = &cuda->libraries;
    void *parts[] = {memory, memory + BYTES / 2, memory + BYTES};
    double *a = parts[0], *work = parts[1], *values = parts[2];
    int *info = (int *)(memory + BYTES + BYTES / 2), size = 0, found = 0;
    cudaMemset2DAsync((char *)a + 6, (size_t)(FEW + 1) * 8, 0xe0, 1, FEW, stream);
    cudaMemset2DAsync((char *)a + 7, (size_t)(FEW + 1) * 8, 0x3f, 1, FEW, stream);
    if (call->cusolverDnDpotrf_bufferSize(solver, CUBLAS_FILL_MODE_UPPER, FEW, a, FEW, &size) ==
            CUSOLVER_STATUS_SUCCESS &&
        (int64_t)size * 8 <= BYTES / 2)
        (void)call->cusolverDnDpotrf(solver, CUBLAS_FILL_MODE_UPPER, FEW, a, FEW, work, size, info);
    (void)call->cublasDtrsm_v2_64(blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT,
                                  FEW, FEW, &one, a, FEW, work, FEW);
    if (call->cusolverDnDsyevdx_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I,
                                           CUBLAS_FILL_MODE_UPPER, FEW, a, FEW, 0, 0, 2, FEW, &found, values,
                                           &size) == CUSOLVER_STATUS_SUCCESS &&
        (int64_t)size * 8 <= BYTES / 2)
        (void)call->cusolverDnDsyevdx(solver, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_UPPER,
                                      FEW, a, FEW, 0, 0, 2, FEW, &found, values, work, size, info);
}

/* Queues all samples and waits for them. The request to stop is checked between calls. */
static void use_handles(const mrc_cuda *cuda, cudaStream_t stream, char *memory)
{
    cublasHandle_t blas = NULL;
    cusolverDnHandle_t solver = NULL;
    if (cuda->libraries.cublasCreate_v2(&blas) == CUBLAS_STATUS_SUCCESS &&
        cuda->libraries.cublasSetStream_v2(blas, stream) == CUBLAS_STATUS_SUCCESS)
        for (size_t i = 0; i < sizeof samples / sizeof *samples && !atomic_load(&cuda->ending); i++)
            run_sample(cuda, blas, &samples[i], memory);
    if (blas && !atomic_load(&cuda->ending) && cuda->libraries.cusolverDnCreate(&solver) == CUSOLVER_STATUS_SUCCESS &&
        cuda->libraries.cusolverDnSetStream(solver, stream) == CUSOLVER_STATUS_SUCCESS)
        run_solver(cuda, stream, solver, blas, memory);
    cudaStreamSynchronize(stream);
    if (solver) cuda->libraries.cusolverDnDestroy(solver);
    if (blas) cuda->libraries.cublasDestroy_v2(blas);
}

/* Runs on the background thread, so it must not use a context or counted memory. Its device memory returns to the
   pool. */
static void warm(void *argument, int64_t piece)
{
    (void)piece;
    const mrc_cuda *cuda = argument;
    cudaStream_t stream = NULL;
    void *memory = NULL;
    if (atomic_load(&cuda->ending) || cudaSetDevice(cuda->device) != cudaSuccess) return;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
        cudaMallocAsync(&memory, (size_t)2 * BYTES, stream) == cudaSuccess) {
        cudaMemsetAsync(memory, 0, (size_t)2 * BYTES, stream);
        use_handles(cuda, stream, memory);
        cudaFreeAsync(memory, stream);
    }
    if (stream) {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
    cudaGetLastError(); /* clear the error: a failure here must not fail later calls */
}

/* Failing to start the thread is not an error: the libraries then load their kernels at the first real call. */
void mrc_cuda_start_warming(mrc_backend *backend)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (mrc_background_start(&cuda->warming, backend->context, warm, cuda) == MERCER_OK)
        mrc_background_permit(cuda->warming, 1);
    else
        cuda->warming = NULL;
}
