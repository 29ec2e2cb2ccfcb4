/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * (L L')^-1 = M' M, M = L^-1, by matrix products.
 *
 *   M of blocks of 32 rows          triangular.cu
 *   of twice as many rows, again and again:
 *       [ L_11      ]-1   [      M_11              ]
 *       [ L_21 L_22 ]   = [ -M_22 L_21 M_11   M_22 ]        all pairs of a size in one batch
 *
 * Cost: n^3 (1/3 + 2) flops; triangular solves with a unit matrix do fewer and take several times as long. Scratch:
 * 5/4 n^2 doubles.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"

/* count products C = alpha A B of (rows, depth) (depth, cols), row-major; the next ones lie `step` elements on. */
typedef struct batch {
    int64_t rows, cols, depth, count;
    double alpha;
    const double *a, *b;
    double *c;
    int64_t a_ld, b_ld, c_ld, a_step, b_step, c_step;
} batch;

static mercer_status multiply(mrc_backend *backend, const batch *job)
{
    static const double zero = 0;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    if (job->count == 0) return MERCER_OK;
    cublasStatus_t status = cuda->libraries.cublasGemmStridedBatchedEx_64(
        cuda->blas, CUBLAS_OP_N, CUBLAS_OP_N, job->cols, job->rows, job->depth, &job->alpha, job->b, CUDA_R_64F,
        job->b_ld, job->b_step, job->a, CUDA_R_64F, job->a_ld, job->a_step, &zero, job->c, CUDA_R_64F, job->c_ld,
        job->c_step, job->count, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: products of triangles returned %d", (int)status);
}

/* M_21 of `count` pairs of blocks of w and `below` rows, the first of which begins at row `first`. */
static mercer_status join(mrc_backend *backend, const mercer_matrix *l, const mercer_matrix *m, double *room,
                          int64_t first, int64_t w, int64_t below, int64_t count)
{
    const double *factor = (const double *)l->data + first * (l->ld + 1);
    double *inverse = (double *)m->data + first * (m->ld + 1);
    int64_t l_step = 2 * w * (l->ld + 1), m_step = 2 * w * (m->ld + 1);
    batch right = {.rows = below, .cols = w, .depth = w, .count = count, .alpha = 1};
    right.a = factor + w * l->ld, right.a_ld = l->ld, right.a_step = l_step;
    right.b = inverse, right.b_ld = m->ld, right.b_step = m_step;
    right.c = room, right.c_ld = w, right.c_step = w * below;
    MRC_TRY(multiply(backend, &right));
    batch left = {.rows = below, .cols = w, .depth = below, .count = count, .alpha = -1};
    left.a = inverse + w * (m->ld + 1), left.a_ld = m->ld, left.a_step = m_step;
    left.b = room, left.b_ld = w, left.b_step = w * below;
    left.c = inverse + w * m->ld, left.c_ld = m->ld, left.c_step = m_step;
    return multiply(backend, &left);
}

mercer_status mrc_cuda_factor_inverse(mrc_backend *backend, const mercer_matrix *l, const mercer_matrix *inverse)
{
    static const double one = 1, zero = 0;
    mrc_cuda *cuda = mrc_cuda_of(backend);
    int64_t n = l->rows;
    mercer_matrix factor, out, m;
    double *room;
    if (n == 0) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, l, &factor));
    MRC_TRY(mrc_cuda_write(backend, inverse, false, &out));
    MRC_TRY(mrc_cuda_scratch(backend, &m, n, n, MERCER_F64));
    MRC_TRY(mrc_cuda_push(backend, &room, (n * n / 4 + n) * 8));
    MRC_TRY(mrc_cuda_clear(backend, &m));
    MRC_CUDA_TRY(backend, mrc_launch_invert_diagonal(cuda->stream, factor, m.data, m.ld));
    for (int64_t w = MRC_TRIANGULAR_BLOCK; w < n; w *= 2) {
        int64_t pairs = n / (2 * w), rest = n - pairs * 2 * w;
        MRC_TRY(join(backend, &factor, &m, room, 0, w, w, pairs));
        if (rest > w) MRC_TRY(join(backend, &factor, &m, room, pairs * 2 * w, w, rest - w, 1));
    }
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, m.data, CUDA_R_64F, m.ld, m.data, CUDA_R_64F, m.ld, &zero,
        out.data, CUDA_R_64F, out.ld, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS)
        return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: an inverse returned %d", (int)status);
    return mrc_cuda_write_back(backend, inverse, &out);
}
