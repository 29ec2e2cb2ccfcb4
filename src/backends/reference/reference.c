/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference backend: the required operations as plain loops over the scalar double kernel functions. These loops
 * are slow, simple and correct. Every other backend, and algorithms on small problems, are tested against them.
 *
 *   kernel_matmul     y_i = sum_j K(x_i, z_j) w_j, summed in double          O(m p (d + c))
 *   kernel_transpose  h_j = sum_i K(x_i, z_j) g_i
 */
#include "backends/reference/dense.h"

#include "core/matrix.h"
#include "core/memory.h"

static mercer_status create_reference(mrc_backend *backend)
{
    (void)backend;
    return MERCER_OK;
}

static void destroy_reference(mrc_backend *backend)
{
    (void)backend;
}

static mrc_capabilities reference_capabilities(const mrc_backend *backend, bool half)
{
    (void)backend, (void)half;
    return (mrc_capabilities){.isa = "scalar", .point_dtypes = MRC_ACCEPT_ANY, .memory = MRC_HOST};
}

/* Add K(X, Z) W to sums (m, c), one row of K at a time. The caller writes y at the end, so that y is untouched if a
   callback fails. rows: scratch space for two rows (2 d). */
static mercer_status accumulate_products(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                         double *sums, double *rows)
{
    int64_t d = pair->x->cols, c = w->cols;
    double *x = rows, *z = rows + d;
    for (int64_t i = 0; i < pair->x->rows; i++) {
        mrc_load_row_f64(pair->x, i, x);
        for (int64_t j = 0; j < pair->z->rows; j++) {
            double value;
            mrc_load_row_f64(pair->z, j, z);
            if (!mrc_kernel_reference(pair->kernel, d, x, z, &value))
                return mrc_fail(backend->context, MERCER_ERROR_CALLBACK,
                                "kernel: the callback failed at row %lld of X, %lld of Z", (long long)i, (long long)j);
            for (int64_t k = 0; k < c; k++) sums[i * c + k] += value * mrc_load(w, j, k);
        }
    }
    return MERCER_OK;
}

static mercer_status kernel_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add)
{
    double *sums, *rows;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &sums, y->rows * y->cols, sizeof *sums, "sums"));
    MRC_TRY(mrc_scope_alloc(&scope, &rows, 2 * pair->x->cols, sizeof *rows, "two rows"));
    MRC_TRY(accumulate_products(backend, pair, w, sums, rows));
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) mrc_store(y, i, j, sums[i * y->cols + j] + (add ? mrc_load(y, i, j) : 0));
    return MERCER_OK;
}

/* No column of K is cached, so kernel_transpose computes all of them again. */
static mercer_status kernel_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_cached_block *cached)
{
    cached->columns = 0;
    return kernel_matmul(backend, pair, w, f, false);
}

static mercer_status kernel_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_cached_block *cached)
{
    (void)cached;
    mrc_pair swapped = {.kernel = pair->kernel, .x = pair->z, .z = pair->x, .origin = pair->origin};
    return kernel_matmul(backend, &swapped, g, h, false);
}

const mrc_backend_ops mrc_reference_backend = {
    .api_version = MRC_BACKEND_API,
    .name = "reference",
    .create = create_reference,
    .destroy = destroy_reference,
    .capabilities = reference_capabilities,
    .alloc = mrc_host_alloc,
    .free = mrc_host_free,
    .copy = mrc_host_copy,
    .sync = mrc_host_sync,
    .kernel_matmul = kernel_matmul,
    .kernel_forward = kernel_forward,
    .kernel_transpose = kernel_transpose,
    .gemm = mrc_default_gemm,
};
