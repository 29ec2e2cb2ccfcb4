/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the fused tensor-core product in isolation: checks sampled rows against a double reference, then times the
 * fused product. Also times the plain matrix product of the same shape, whose rate is the upper limit.
 *
 *   bench_fused            the shapes of docs/gpu.md; one line of JSON per shape
 *   bench_fused --check    small shapes, every kernel, correctness only
 */
#include "backends/cuda/half_precision/fused.h"
#include "kernels/formulas.h"

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

enum { SAMPLED = 64 };

static __device__ float noise(uint64_t index, uint64_t seed)
{
    uint64_t h = (index + 1) * 0x9e3779b97f4a7c15ull + seed * 0xd1342543de82ef95ull;
    float sum = 0;
    for (int i = 0; i < 4; i++) { /* nearly normal: the sum of four uniform numbers, scaled to variance 1 */
        h ^= h >> 31, h *= 0xbf58476d1ce4e5b9ull, h ^= h >> 29, h *= 0x94d049bb133111ebull;
        sum += (float)(h >> 40) * 0x1p-24f - 0.5f;
    }
    return sum * 1.7320508f;
}

static __global__ void fill_float(float *to, int64_t count, uint64_t seed, float size)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = size * noise(i, seed);
}

static __global__ void fill_bytes(uint8_t *to, int64_t count, uint64_t seed)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        to[i] = (uint8_t)fminf(255, fmaxf(0, 100 + 60 * noise(i, seed)));
}

/* Compute the reference with one block per (sampled row, output): the sum over all centers, in double, from the points
   before rounding. */
template <typename T>
static __global__ void reference(mercer_kernel kernel, const T *x, const T *z, const float *w, int64_t p, int64_t d,
                                 int64_t c, const int64_t *rows, double *out)
{
    __shared__ double sums[16][256];
    const T *row = x + rows[blockIdx.x] * d;
    for (int64_t k = 0; k < c; k++) sums[k][threadIdx.x] = 0;
    for (int64_t j = threadIdx.x; j < p; j += 256) {
        double s = 0;
        for (int64_t i = 0; i < d; i++) {
            double difference = (double)row[i] - (double)z[j * d + i];
            s += difference * difference;
        }
        double value = mrc_formula_of_distance(&kernel, s);
        for (int64_t k = 0; k < c; k++) sums[k][threadIdx.x] += value * (double)w[j * c + k];
    }
    __syncthreads();
    if (threadIdx.x >= c) return;
    double sum = 0;
    for (int i = 0; i < 256; i++) sum += sums[threadIdx.x][i];
    out[blockIdx.x * c + threadIdx.x] = sum;
}

template <typename T> static T *device(int64_t count)
{
    void *memory;
    CHECK(cudaMalloc(&memory, (size_t)std::max<int64_t>(count, 1) * sizeof(T)));
    return (T *)memory;
}

/* ---- The ceiling --------------------------------------------------------------------------------------------- */

static void *cublas_function(const char *name)
{
    static void *library = NULL;
    if (!library) library = dlopen("libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("/usr/local/cuda/lib64/libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) fprintf(stderr, "cuBLAS: no %s: %s\n", name, dlerror());
    return function;
}

template <typename F> static double milliseconds(cudaStream_t stream, F work, int repeats)
{
    std::vector<float> times;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < repeats + 2; i++) {
        CHECK(cudaEventRecord(start, stream));
        work();
        CHECK(cudaEventRecord(stop, stream));
        CHECK(cudaEventSynchronize(stop));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        if (i >= 2) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/* Return the TFLOP/s (or TOP/s) of X Z' without kernel values, in blocks of 16384 centers, with the products stored as
   halves (or int32). */
static double ceiling(cudaStream_t stream, bool bytes, int64_t m, int64_t p, int64_t d, const void *x, const void *z,
                      int64_t ld)
{
    auto create = (decltype(&cublasCreate_v2))cublas_function("cublasCreate_v2");
    auto set = (decltype(&cublasSetStream_v2))cublas_function("cublasSetStream_v2");
    typedef cublasStatus_t (*gemm_function)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                            const void *, const void *, cudaDataType, int, const void *, cudaDataType,
                                            int, const void *, void *, cudaDataType, int, cublasComputeType_t,
                                            cublasGemmAlgo_t);
    gemm_function gemm = (gemm_function)cublas_function("cublasGemmEx");
    cublasHandle_t handle;
    if (!create || !set || !gemm || create(&handle) != CUBLAS_STATUS_SUCCESS) return 0;
    set(handle, stream);
    int64_t block = std::min<int64_t>(p, 16384);
    void *out = device<float>(m * block);
    float one = 1, zero = 0;
    int32_t one_int = 1, zero_int = 0;
    int failed = 0;
    double ms = milliseconds(
        stream,
        [&] {
            for (int64_t j = 0; j + block <= p; j += block)
                failed |= gemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)block, (int)m, (int)ld,
                               bytes ? (void *)&one_int : &one, (const char *)z + j * ld * (bytes ? 1 : 2),
                               bytes ? CUDA_R_8I : CUDA_R_16F, (int)ld, x, bytes ? CUDA_R_8I : CUDA_R_16F, (int)ld,
                               bytes ? (void *)&zero_int : &zero, out, bytes ? CUDA_R_32I : CUDA_R_16F, (int)block,
                               bytes ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        },
        5);
    if (failed) fprintf(stderr, "cuBLAS returned %d\n", failed);
    CHECK(cudaFree(out));
    return 2e-9 * (double)m * (double)(p / block * block) * (double)d / ms;
}

/* ---- One shape ----------------------------------------------------------------------------------------------- */

struct shape {
    const char *name;
    int id;
    double bandwidth;
    bool bytes;
    int64_t m, p, d, c;
    bool timed, coincident; /* coincident: true if the first rows of X equal centers */
};

static mercer_matrix view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    mercer_matrix a = {data, rows, cols, cols, dtype, 1 /* device memory */, {0, 0}};
    return a;
}

/* Time the product that also stores K, and the product of the transposed stored K, in both layouts that cuBLAS
   supports. */
template <typename F>
static void time_kept(cudaStream_t stream, const shape &s, mrc_fused_job &job, F product, int columns, int64_t padded,
                      const void *parts)
{
    auto create = (decltype(&cublasCreate_v2))cublas_function("cublasCreate_v2");
    auto set = (decltype(&cublasSetStream_v2))cublas_function("cublasSetStream_v2");
    auto gemm = (decltype(&cublasGemmEx_64))cublas_function("cublasGemmEx_64");
    cublasHandle_t handle;
    if (!create || !set || !gemm || create(&handle) != CUBLAS_STATUS_SUCCESS) return;
    set(handle, stream);
    float one = 1, zero = 0;
    const int64_t rows16 = mrc_fused_cached_rows(s.m);
    job.saved = device<__half>(rows16 * padded), job.saved_columns = padded;
    float *out = device<float>(padded * columns);
    double ms = milliseconds(stream, product, 10);
    int failed = 0;
    double rows = milliseconds(
        stream,
        [&] {
            failed |= gemm(handle, CUBLAS_OP_T, CUBLAS_OP_T, columns, padded, rows16, &one, parts, CUDA_R_16F, padded,
                           job.saved, CUDA_R_16F, padded, &zero, out, CUDA_R_32F, columns, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT);
        },
        5);
    double cols = milliseconds(
        stream,
        [&] {
            failed |= gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, padded, columns, rows16, &one, job.saved, CUDA_R_16F,
                           padded, parts, CUDA_R_16F, padded, &zero, out, CUDA_R_32F, padded, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT);
        },
        5);
    double bytes = 2e-9 * (double)s.m * (double)padded;
    printf(", \"kept_ms\": %.3f, \"transpose_tt_ms\": %.3f, \"transpose_nn_ms\": %.3f, \"kept_tb_s\": %.2f", ms, rows,
           cols, bytes / std::min(rows, cols));
    if (failed) fprintf(stderr, "cuBLAS returned %d\n", failed);
    CHECK(cudaFree(job.saved));
    CHECK(cudaFree(out));
    job.saved = NULL, job.saved_columns = 0;
}

static bool check_and_time(const shape &s)
{
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    mercer_kernel kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.id = s.id, kernel.bandwidth = s.bandwidth;
    int64_t size = s.bytes ? 1 : 4, ld = (s.d + 15) / 16 * 16, padded = mrc_fused_padded(s.p),
            m_padded = mrc_fused_padded(s.m), units = mrc_fused_units(s.p);
    int columns = mrc_fused_columns(s.c);
    char *x = device<char>(s.m * s.d * size), *z = device<char>(s.p * s.d * size);
    char *px = device<char>(s.m * ld * 2), *pz = device<char>(s.p * ld * 2);
    float *w = device<float>(s.p * s.c), *y = device<float>(s.m * s.c), *factors = device<float>(s.c);
    float *x_norms = device<float>(m_padded), *z_norms = device<float>(padded);
    float *sums = device<float>(units * s.m * columns);
    __half *weights = device<__half>(columns * padded);
    if (s.bytes) {
        fill_bytes<<<1024, 256, 0, stream>>>((uint8_t *)x, s.m * s.d, 1);
        fill_bytes<<<1024, 256, 0, stream>>>((uint8_t *)z, s.p * s.d, 2);
    } else {
        fill_float<<<1024, 256, 0, stream>>>((float *)x, s.m * s.d, 1, 0.3f);
        fill_float<<<1024, 256, 0, stream>>>((float *)z, s.p * s.d, 2, 0.3f);
    }
    if (s.coincident) CHECK(cudaMemcpyAsync(x, z, std::min(s.m, s.p) * s.d * size, cudaMemcpyDeviceToDevice, stream));
    fill_float<<<1024, 256, 0, stream>>>(w, s.p * s.c, 3, 0.01f);
    CHECK(cudaMemsetAsync(y, 0xff, s.m * s.c * 4, stream));
    CHECK(cudaMemsetAsync(sums, 0xff, units * s.m * columns * 4, stream));
    CHECK(cudaGetLastError());
    int *overflow = device<int>(1);
    auto pack = [&](void *from, int64_t rows, char *to, float *norms, int64_t capacity) {
        mercer_matrix points = view(from, rows, s.d, s.bytes ? MERCER_U8 : MERCER_F32);
        CHECK(s.bytes ? mrc_fused_pack_bytes(stream, points, ld, to, (int32_t *)norms, capacity)
                      : mrc_fused_pack_half(stream, &kernel, points, NULL, ld, to, norms, capacity, overflow));
    };
    pack(x, s.m, px, x_norms, m_padded);
    pack(z, s.p, pz, z_norms, padded);
    mrc_fused_job job = {&kernel, s.bytes, s.m,     s.p,     s.d,     ld,   px,
                         pz,      x_norms, z_norms, weights, factors, sums, view(y, s.m, s.c, MERCER_F32),
                         0};
    auto product = [&] {
        CHECK(mrc_fused_pack_weights(stream, view(w, s.p, s.c, MERCER_F32), columns, padded, weights, factors));
        CHECK(mrc_fused_product(stream, &job));
    };
    product();
    CHECK(cudaStreamSynchronize(stream));

    std::vector<int64_t> rows;
    for (int64_t i = 0; i < SAMPLED; i++)
        rows.push_back(s.m * i / SAMPLED + (i % 7) * (s.m / 997) % std::max<int64_t>(1, s.m / SAMPLED));
    int64_t *device_rows = device<int64_t>(SAMPLED);
    double *wanted = device<double>(SAMPLED * s.c);
    CHECK(cudaMemcpy(device_rows, rows.data(), SAMPLED * 8, cudaMemcpyHostToDevice));
    if (s.bytes)
        reference<<<SAMPLED, 256, 0, stream>>>(kernel, (uint8_t *)x, (uint8_t *)z, w, s.p, s.d, s.c, device_rows,
                                               wanted);
    else
        reference<<<SAMPLED, 256, 0, stream>>>(kernel, (float *)x, (float *)z, w, s.p, s.d, s.c, device_rows, wanted);
    CHECK(cudaStreamSynchronize(stream));
    std::vector<float> got(s.m * s.c), again(s.m * s.c);
    std::vector<double> right(SAMPLED * s.c);
    CHECK(cudaMemcpy(got.data(), y, s.m * s.c * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(right.data(), wanted, SAMPLED * s.c * 8, cudaMemcpyDeviceToHost));
    double error = 0, norm = 0;
    bool finite = true;
    for (float value : got) finite = finite && std::isfinite(value);
    for (int64_t i = 0; i < SAMPLED; i++)
        for (int64_t k = 0; k < s.c; k++) {
            double e = got[rows[i] * s.c + k] - right[i * s.c + k];
            error += e * e, norm += right[i * s.c + k] * right[i * s.c + k];
        }
    error = sqrt(error / norm);
    product(); /* run again, to check that the result is bitwise identical */
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(again.data(), y, s.m * s.c * 4, cudaMemcpyDeviceToHost));
    bool same = memcmp(got.data(), again.data(), got.size() * 4) == 0;
    /* In short sums, terms with random weights can cancel, so that the result is small compared with the terms: allow a
       larger error. */
    bool good = finite && same && error <= (s.timed ? 5e-4 : 2e-3);
    printf("{\"bench\": \"fused\", \"kernel\": \"%s\", \"rows\": \"%s\", \"m\": %lld, \"p\": %lld, \"d\": %lld, "
           "\"c\": %lld, \"coincident\": %s, \"relative_error\": %.3g, \"same_bits\": %s, \"finite\": %s",
           s.name, s.bytes ? "u8" : "f16", (long long)s.m, (long long)s.p, (long long)s.d, (long long)s.c,
           s.coincident ? "true" : "false", error, same ? "true" : "false", finite ? "true" : "false");
    if (s.timed) {
        double flops = 2e-9 * (double)s.m * (double)s.p * (double)s.d, ms = milliseconds(stream, product, 10);
        double top = ceiling(stream, s.bytes, s.m, s.p, s.d, px, pz, ld), ms2 = milliseconds(stream, product, 10);
        ms = std::min(ms, ms2);
        printf(", \"ms\": %.3f, \"tflops\": %.1f, \"gemm_tflops\": %.1f, \"share\": %.3f", ms, flops / ms, top,
               top > 0 ? flops / ms / top : 0);
        time_kept(stream, s, job, product, columns, padded, weights);
    }
    printf("}\n");
    fflush(stdout);
    void *all[] = {x, z, px, pz, w, y, factors, x_norms, z_norms, sums, weights, device_rows, wanted, overflow};
    for (void *memory : all) CHECK(cudaFree(memory));
    CHECK(cudaStreamDestroy(stream));
    return good;
}

int main(int argc, char **argv)
{
    const shape checks[] = {
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 129, 257, 72, 10, false, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 1000, 3000, 100, 3, false, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 64, 100, 8, 16, false, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 1024, 1024, 784, 10, false, true},
        {"gaussian", MRC_KERNEL_GAUSSIAN, 5, false, 1000, 3000, 300, 12, false, false},
        {"matern32", MRC_KERNEL_MATERN32, 8, false, 1000, 3000, 300, 1, false, false},
        {"matern52", MRC_KERNEL_MATERN52, 8, false, 1000, 3000, 300, 13, false, false},
        {"cauchy", MRC_KERNEL_CAUCHY, 10, false, 1000, 3000, 300, 4, false, false},
        {"laplace", MRC_KERNEL_LAPLACE, 1000, true, 1000, 3000, 784, 10, false, false},
        {"laplace", MRC_KERNEL_LAPLACE, 1000, true, 1000, 3000, 784, 10, false, true},
        {"gaussian", MRC_KERNEL_GAUSSIAN, 2000, true, 300, 5000, 100, 16, false, false},
    };
    const shape shapes[] = {
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 8192, 131072, 1280, 10, true, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 4945, 524288, 1280, 10, true, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 8192, 131072, 784, 10, true, false},
        {"gaussian", MRC_KERNEL_GAUSSIAN, 10, false, 8192, 131072, 1280, 10, true, false},
        {"laplace", MRC_KERNEL_LAPLACE, 10, false, 8192, 131072, 1280, 1, true, false},
        {"laplace", MRC_KERNEL_LAPLACE, 1000, true, 8192, 131072, 784, 10, true, false},
        {"laplace", MRC_KERNEL_LAPLACE, 1000, true, 8192, 131072, 1280, 10, true, false},
    };
    bool good = true;
    bool only_check = argc > 1 && strcmp(argv[1], "--check") == 0;
    for (const shape &s : checks) good = check_and_time(s) && good;
    if (!only_check)
        for (const shape &s : shapes) good = check_and_time(s) && good;
    printf("%s\n", good ? "all good" : "FAILED");
    return good ? 0 : 1;
}
