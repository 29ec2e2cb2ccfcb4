/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C = alpha op(A) B + beta C of float matrices on tensor cores, if C has many columns.
 *
 *   a f = high + low, b g_j = high + low      halves; powers of two: one f for A, one g_j per column of B
 *   S = (low | high | high) (high | low | high)'       one product of three times the depth, with float sums
 *   C = alpha S / (f g_j) + beta C
 *
 * Relative error: 2^-22 for the rounding of each factor and for the omitted low low, and about sqrt(k) 2^-24 for the
 * float sums over the depth k, as in products of floats. Entries below 2^-36 of the largest one are lost, because
 * halves end at 2^-24.
 *
 * Cost: 6 m n k flops in half precision; A is read twice and written as 6 bytes per entry. Scratch: 6 bytes per entry
 * of 32,768 rows of A and of B, and floats for 32,768 rows of C.
 */
#include "backends/cuda/cuda.h"

#include "backends/cuda/half_precision/fused.h"
#include "core/matrix.h"
#include "core/memory.h"

enum { CHUNK = 32768, FEWEST_COLUMNS = 192, PARTS = 3, UNIT = 8 };

typedef struct split {
    mrc_backend *backend;
    const mrc_gemm *job;
    mercer_matrix a, b, c;
    int64_t depth;      /* depth of one product; padded if A is not transposed, because the depth is then the row length
                           of the parts of A */
    int64_t a_ld, b_ld; /* leading dimensions of the parts; b_ld is also that of sums */
    void *a_parts, *b_parts;
    float *sums, *left, *right; /* sums of the product; factors f of A, g of B */
} split;

/* Splitting reads and writes both factors, which pays off only for large products with many columns. B must not be
   transposed, because each column of B has its own factor. */
static bool pays(const mrc_gemm *job)
{
    int64_t depth = job->transpose_a ? job->a->rows : job->a->cols;
    bool floats =
        job->a->dtype == MERCER_F32 && job->b->dtype == MERCER_F32 && job->c->dtype == MERCER_F32 && !job->transpose_b;
    return floats && job->c->cols >= FEWEST_COLUMNS &&
           (double)job->c->rows * (double)job->c->cols * (double)depth >= 0x1p30;
}

/* Allocates the parts of a chunk of A and of B and the sums, and computes the factors of the whole matrices, which all
   chunks share. */
static mercer_status allocate_split(split *self)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    bool transposed = self->job->transpose_a;
    int64_t chunk = mrc_min(CHUNK, self->a.rows), n = self->c.cols;
    self->depth = transposed ? chunk : mrc_round_up(self->a.cols, UNIT);
    self->a_ld = transposed ? mrc_round_up(self->a.cols, UNIT) : PARTS * self->depth;
    self->b_ld = mrc_round_up(n, UNIT);
    MRC_TRY(mrc_cuda_push(backend, &self->a_parts, (transposed ? PARTS : 1) * chunk * self->a_ld * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->b_parts, PARTS * self->depth * self->b_ld * 2));
    MRC_TRY(mrc_cuda_push(backend, &self->sums, (transposed ? self->a_ld : chunk) * self->b_ld * 4));
    MRC_TRY(mrc_cuda_push(backend, &self->left, 4));
    MRC_TRY(mrc_cuda_push(backend, &self->right, n * 4));
    MRC_CUDA_TRY(backend, mrc_launch_split_factor(stream, self->a, self->left));
    MRC_CUDA_TRY(backend, mrc_fused_find_factors(stream, self->b, self->right));
    return MERCER_OK;
}

/* Writes the parts of some rows of A: one below the other if the rows are the depth, otherwise side by side. */
static mercer_status split_a(split *self, const mercer_matrix *some)
{
    bool transposed = self->job->transpose_a;
    int64_t cols = transposed ? self->a_ld : self->depth, step = transposed ? some->rows * self->a_ld : self->depth;
    MRC_CUDA_TRY(self->backend, mrc_launch_split(mrc_cuda_of(self->backend)->stream, *some, self->left, 0, 0,
                                                 some->rows, cols, step, self->a_ld, self->a_parts));
    return MERCER_OK;
}

/* Writes the parts of some rows of B one below the other, each with `rows` rows; rows after the last one are 0. */
static mercer_status split_b(split *self, const mercer_matrix *some, int64_t rows)
{
    MRC_CUDA_TRY(self->backend, mrc_launch_split(mrc_cuda_of(self->backend)->stream, *some, self->right, 1, 1, rows,
                                                 self->b_ld, rows * self->b_ld, self->b_ld, self->b_parts));
    return MERCER_OK;
}

/* Computes sums (rows, n) = the product of the parts, or += if add. */
static mercer_status multiply_split(split *self, int64_t rows, int64_t depth, bool add)
{
    static const float one = 1, zero = 0;
    mrc_cuda *cuda = mrc_cuda_of(self->backend);
    cublasStatus_t status = cuda->libraries.cublasGemmEx_64(
        cuda->blas, CUBLAS_OP_N, self->job->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, self->b_ld, rows, PARTS * depth,
        &one, self->b_parts, CUDA_R_16F, self->b_ld, self->a_parts, CUDA_R_16F, self->a_ld, add ? &one : &zero,
        self->sums, CUDA_R_32F, self->b_ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return MERCER_OK;
    return mrc_fail(self->backend->context, MERCER_ERROR_INTERNAL, "cuBLAS: a product of split factors returned %d",
                    (int)status);
}

static mercer_status store_split(split *self, const mercer_matrix *to)
{
    MRC_CUDA_TRY(self->backend,
                 mrc_launch_store_split(mrc_cuda_of(self->backend)->stream, self->sums, self->b_ld, self->job->alpha,
                                        self->left, self->right, self->job->beta, *to));
    return MERCER_OK;
}

/* C = A' B: the depth is the number of rows of A and B; these rows are processed in chunks. */
static mercer_status run_transposed(split *self)
{
    for (int64_t first = 0; first < self->a.rows; first += CHUNK) {
        int64_t count = mrc_min(CHUNK, self->a.rows - first);
        mercer_matrix a = mrc_rows(&self->a, first, count), b = mrc_rows(&self->b, first, count);
        MRC_TRY(split_a(self, &a));
        MRC_TRY(split_b(self, &b, count));
        MRC_TRY(multiply_split(self, self->a_ld, count, first > 0));
    }
    return store_split(self, &self->c);
}

/* C = A B: B is split once. A is split in chunks of rows, and each chunk yields rows of C. */
static mercer_status run_rows(split *self)
{
    MRC_TRY(split_b(self, &self->b, self->depth));
    for (int64_t first = 0; first < self->a.rows; first += CHUNK) {
        int64_t count = mrc_min(CHUNK, self->a.rows - first);
        mercer_matrix a = mrc_rows(&self->a, first, count), to = mrc_rows(&self->c, first, count);
        MRC_TRY(split_a(self, &a));
        MRC_TRY(multiply_split(self, count, self->depth, false));
        MRC_TRY(store_split(self, &to));
    }
    return MERCER_OK;
}

mercer_status mrc_cuda_split_gemm(mrc_backend *backend, const mrc_gemm *job)
{
    if (!pays(job)) return mrc_cuda_gemm(backend, job);
    split self = {.backend = backend, .job = job};
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(mrc_cuda_read(backend, job->a, &self.a));
    MRC_TRY(mrc_cuda_read(backend, job->b, &self.b));
    MRC_TRY(mrc_cuda_write(backend, job->c, job->beta != 0, &self.c));
    MRC_TRY(allocate_split(&self));
    MRC_TRY(job->transpose_a ? run_transposed(&self) : run_rows(&self));
    return mrc_cuda_write_back(backend, job->c, &self.c);
}
