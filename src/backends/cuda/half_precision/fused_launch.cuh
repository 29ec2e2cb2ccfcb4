/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches the fused product: tensor maps for the copy engine, and the choice among the compiled variants. */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_LAUNCH_CUH
#define MRC_BACKENDS_CUDA_HALF_PRECISION_FUSED_LAUNCH_CUH

#include "backends/cuda/half_precision/fused_kernel.cuh"

extern "C" {
cudaError_t mrc_fused_half_sm90(cudaStream_t stream, const mrc_fused_job *job);
cudaError_t mrc_fused_bytes_sm90(cudaStream_t stream, const mrc_fused_job *job);
}

typedef CUresult (*encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/* Looks up the driver's function by name, because the library is not linked against the driver; NULL if not found. */
static encode_function find_encode(void)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
        return NULL;
    return (encode_function)function;
}

/* Creates the map for copies of boxes (box_rows, 128 bytes) of a matrix (rows, cols); elements outside it read as 0. */
static bool make_map(CUtensorMap *map, encode_function encode, CUtensorMapDataType type, int size, const void *data,
                     int64_t rows, int64_t cols, int64_t ld, int box_rows)
{
    cuuint64_t sizes[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, pitch[1] = {(cuuint64_t)(ld * size)};
    cuuint32_t box[2] = {(cuuint32_t)(ROW_BYTES / size), (cuuint32_t)box_rows}, step[2] = {1, 1};
    return encode(map, type, 2, (void *)data, sizes, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* Launches one variant. A variant needs more than the 48 KB of shared memory that a kernel has by default, so the limit
   is raised. */
template <int KERNEL, int COLUMNS, bool SAVE, typename Rows>
static cudaError_t launch_form(cudaStream_t stream, const mrc_fused_job *job, const CUtensorMap *maps,
                               const fused_arguments &arguments)
{
    void (*kernel)(CUtensorMap, CUtensorMap, CUtensorMap, fused_arguments) = fused<KERNEL, COLUMNS, SAVE, Rows>;
    const int bytes = fused_shared_bytes<COLUMNS>();
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    unsigned blocks = (unsigned)(arguments.row_blocks * mrc_fused_units(job->p));
    kernel<<<blocks, THREADS, bytes, stream>>>(maps[0], maps[1], maps[2], arguments);
    return cudaGetLastError();
}

template <int KERNEL, bool SAVE, typename Rows>
static cudaError_t launch_columns(cudaStream_t stream, const mrc_fused_job *job, const CUtensorMap *maps,
                                  const fused_arguments &arguments)
{
    switch (mrc_fused_columns(job->y.cols)) {
        case 8: return launch_form<KERNEL, 8, SAVE, Rows>(stream, job, maps, arguments);
        case 24: return launch_form<KERNEL, 24, SAVE, Rows>(stream, job, maps, arguments);
        case 32: return launch_form<KERNEL, 32, SAVE, Rows>(stream, job, maps, arguments);
        default: return cudaErrorNotSupported;
    }
}

template <int KERNEL, typename Rows>
static cudaError_t launch_kernel(cudaStream_t stream, const mrc_fused_job *job, const CUtensorMap *maps,
                                 const fused_arguments &arguments)
{
    return arguments.saved_tiles > 0 ? launch_columns<KERNEL, true, Rows>(stream, job, maps, arguments)
                                     : launch_columns<KERNEL, false, Rows>(stream, job, maps, arguments);
}

/* Creates the maps of X, Z and the packed weights and launches the variant for the kernel function. type, size: element
   type of the rows and its bytes. Row blocks are rounded up to whole clusters; rows after the last one are read as 0,
   and their sums are not stored. */
template <typename Rows>
static cudaError_t launch_fused(cudaStream_t stream, const mrc_fused_job *job, CUtensorMapDataType type, int size)
{
    CUtensorMap maps[3];
    encode_function encode = find_encode();
    int columns = mrc_fused_columns(job->y.cols);
    int64_t padded = mrc_fused_padded(job->p), tiles = padded / MRC_FUSED_CENTERS, units = mrc_fused_units(job->p);
    if (!encode || columns == 0) return cudaErrorNotSupported;
    if (!make_map(&maps[0], encode, type, size, job->x, job->m, job->d, job->ld, MRC_FUSED_ROWS) ||
        !make_map(&maps[1], encode, type, size, job->z, job->p, job->d, job->ld, MRC_FUSED_CENTERS / CLUSTER) ||
        !make_map(&maps[2], encode, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, job->weights, columns, padded, padded, columns))
        return cudaErrorInvalidValue;
    double unit = job->bytes ? 1 : mrc_fused_unit(job->kernel);
    int64_t pairs = (job->m + CLUSTER * MRC_FUSED_ROWS - 1) / (CLUSTER * MRC_FUSED_ROWS);
    fused_arguments arguments = {(int32_t)job->m,
                                 (int32_t)((job->d * size + ROW_BYTES - 1) / ROW_BYTES),
                                 (int32_t)tiles,
                                 (int32_t)((tiles + units - 1) / units),
                                 (int32_t)(pairs * CLUSTER),
                                 (float)(mrc_fused_scale(job->kernel) / (unit * unit)),
                                 job->x_norms,
                                 job->z_norms,
                                 job->sums,
                                 (uint4 *)job->saved,
                                 job->saved ? (int32_t)(job->saved_columns / MRC_FUSED_CENTERS) : 0,
                                 (int32_t)mrc_fused_cached_rows(job->m),
                                 job->saved_columns / 8};
    switch (job->kernel->id) {
#define FORM(ID, scale, value) \
    case MRC_KERNEL_##ID: return launch_kernel<MRC_KERNEL_##ID, Rows>(stream, job, maps, arguments);
        MRC_HALF_FORMS(FORM)
#undef FORM
        default: return cudaErrorNotSupported;
    }
}

#endif
