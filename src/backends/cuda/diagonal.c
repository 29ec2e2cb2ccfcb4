/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagonal K(x_i, x_i): with the double formulas on the device, or with the user's function on the host. */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

/* Calls the user's function for each row of X, with the inner product of the row with itself and its norms, or with the
   distance 0. */
static mercer_status diagonal_by_callback(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                                          const mercer_matrix *diagonal)
{
    bool inner = mrc_kernel_argument(kernel) == MRC_ON_INNER;
    double *norms;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &norms, 2 * x->rows, sizeof *norms, "the diagonal"));
    double *values = norms + x->rows;
    MRC_TRY(mrc_cuda_row_sqnorms(backend, x, norms));
    for (int64_t i = 0; i < x->rows; i++) {
        values[i] = inner ? norms[i] : 0;
        mercer_kernel_block one = {sizeof one, 1, 1, 1, &values[i], inner ? &norms[i] : NULL, inner ? &norms[i] : NULL};
        if (kernel->callback(kernel->callback_user, &one))
            return mrc_fail(backend->context, MERCER_ERROR_CALLBACK, "kernel: the callback failed at row %lld of X",
                            (long long)i);
    }
    mercer_matrix host = mrc_view(values, x->rows, 1, MERCER_F64);
    return mrc_cuda_copy(backend, diagonal, &host);
}

mercer_status mrc_cuda_kernel_diagonal(mrc_backend *backend, const mercer_kernel *kernel, const mercer_matrix *x,
                                       const mercer_matrix *diagonal)
{
    mercer_matrix points, out;
    if (x->rows == 0) return MERCER_OK;
    MRC_TRY(mrc_backend_check_kernel(backend, kernel));
    if (mrc_kernel_is_callback(kernel)) return diagonal_by_callback(backend, kernel, x, diagonal);
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, x, &points));
    MRC_TRY(mrc_cuda_write(backend, diagonal, false, &out));
    MRC_CUDA_TRY(backend, mrc_launch_diagonal(mrc_cuda_of(backend)->stream, kernel, mrc_kernel_is_stationary(kernel),
                                              points, out));
    return mrc_cuda_write_back(backend, diagonal, &out);
}
