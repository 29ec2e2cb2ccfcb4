/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain product X Z' with cuBLAS in the dtype of the points: the baseline for the speed of kernel products. */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"

/* Types of the points, of the result and of the sums, and the constants 1 and 0 in the type that cuBLAS expects. */
typedef struct plain_types {
    cudaDataType_t in, out;
    cublasComputeType_t compute;
    const void *one, *zero;
} plain_types;

static const plain_types *types_of(mercer_dtype dtype)
{
    static const float one_float = 1, zero_float = 0;
    static const double one_double = 1, zero_double = 0;
    static const int32_t one_int = 1, zero_int = 0;
    static const plain_types all[] = {
        [MERCER_F64] = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, &one_double, &zero_double},
        [MERCER_F32] = {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, &one_float, &zero_float},
        [MERCER_F16] = {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, &one_float, &zero_float},
        [MERCER_U8] = {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, &one_int, &zero_int}};
    return &all[dtype];
}

/* Sizes that cuBLAS rejects are MERCER_ERROR_UNSUPPORTED, which measure.c treats as a missing baseline. */
mercer_status mrc_cuda_gemm_baseline(mrc_backend *backend, const mercer_matrix *x, const mercer_matrix *z, void *out)
{
    mrc_cuda *cuda = mrc_cuda_of(backend);
    const plain_types *types = types_of(x->dtype);
    mrc_cuda_select(backend);
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_T, CUBLAS_OP_N, z->rows, x->rows, x->cols, types->one, z->data, types->in, z->ld, x->data,
        types->in, x->ld, types->zero, out, types->out, z->rows, types->compute, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "cuBLAS: a product of %s points returned %d",
                    mrc_dtype_name(x->dtype), (int)status);
}
