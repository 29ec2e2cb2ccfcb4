/* SPDX-License-Identifier: BSD-3-Clause */
/* Normal numbers, drawn on the device. */
#include "backends/cuda/cuda.h"

mercer_status mrc_cuda_draw_normals(mrc_backend *backend, const mrc_normal_table *table, uint64_t seed,
                                    const int64_t *sequences, uint64_t first, const mercer_matrix *x)
{
    mercer_matrix out;
    void *atoms, *list;
    if (x->rows == 0 || x->cols == 0) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_write(backend, x, false, &out));
    MRC_TRY(mrc_cuda_upload(backend, &atoms, table->atoms, sizeof table->atoms));
    MRC_TRY(mrc_cuda_upload(backend, &list, sequences, x->rows * (int64_t)sizeof *sequences));
    MRC_CUDA_TRY(backend, mrc_launch_normals(mrc_cuda_of(backend)->stream, out, atoms, seed, list, first));
    return mrc_cuda_write_back(backend, x, &out);
}
