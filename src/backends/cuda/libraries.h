/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuBLAS and cuSOLVER, loaded when a CUDA backend is created. A Mercer library built with CUDA therefore also loads on
 * machines that have neither these libraries nor a driver. The lists below contain all functions of cuBLAS and cuSOLVER
 * that Mercer calls.
 */
#ifndef MRC_BACKENDS_CUDA_LIBRARIES_H
#define MRC_BACKENDS_CUDA_LIBRARIES_H

#include "core/context.h"

#include <cublas_v2.h>
#include <cusolverDn.h>

#define MRC_CUBLAS_FUNCTIONS(X)      \
    X(cublasCreate_v2)               \
    X(cublasDestroy_v2)              \
    X(cublasSetStream_v2)            \
    X(cublasGemmEx_64)               \
    X(cublasGemmStridedBatchedEx_64) \
    X(cublasDtrsm_v2_64)

#define MRC_CUSOLVER_FUNCTIONS(X)  \
    X(cusolverDnCreate)            \
    X(cusolverDnDestroy)           \
    X(cusolverDnSetStream)         \
    X(cusolverDnDpotrf)            \
    X(cusolverDnDpotrf_bufferSize) \
    X(cusolverDnDsyevdx)           \
    X(cusolverDnDsyevdx_bufferSize)

#define MRC_AS_POINTER(name) __typeof__(&name) name;

typedef struct mrc_cuda_libraries {
    void *cublas, *cusolver; /* handles from dlopen */
    MRC_CUBLAS_FUNCTIONS(MRC_AS_POINTER)
    MRC_CUSOLVER_FUNCTIONS(MRC_AS_POINTER)
} mrc_cuda_libraries;

#undef MRC_AS_POINTER

/* Loads both libraries and looks up all functions. If a library or a function is missing, returns
   MERCER_ERROR_UNSUPPORTED with its name in the message; the caller must unload the libraries in that case, too. */
mercer_status mrc_cuda_load_libraries(mercer_context *context, mrc_cuda_libraries *out);
void mrc_cuda_unload_libraries(mrc_cuda_libraries *libraries);

#endif
