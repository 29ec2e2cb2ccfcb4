/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend: its operations table, and the fused operations, which call the driver in product.c. */
#include "backends/cpu/cpu.h"

#include "backends/cpu/tile.h"
#include "core/matrix.h"

/* Choose the micro-kernels for the instruction set of the context. */
static mercer_status create_cpu(mrc_backend *backend)
{
    MRC_TRY(mrc_alloc_zero(backend->context, &backend->state, 1, sizeof(mrc_cpu), "the CPU backend"));
    mrc_cpu *cpu = backend->state;
    cpu->uk = mrc_ukernels_for(backend->context->isa);
    mrc_arena_init(&cpu->arena, backend->context);
    return MERCER_OK;
}

static void destroy_cpu(mrc_backend *backend)
{
    mrc_cpu *cpu = backend->state;
    mrc_arena_destroy(&cpu->arena);
    mrc_free(backend->context, cpu);
}

/* Half precision changes nothing here: the CPU backend never uses it in products. */
static mrc_capabilities cpu_capabilities(const mrc_backend *backend, bool half)
{
    (void)half;
    return (mrc_capabilities){.isa = mrc_isa_name(backend->context->isa),
                              .point_dtypes = MRC_ACCEPT_ANY,
                              .memory = MRC_HOST,
                              .float_factors = true};
}

static mercer_status kernel_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add)
{
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, pair, w, y, NULL));
    product.add = add;
    return mrc_product_run(&product, backend);
}

static mercer_status kernel_signs(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                  const mercer_matrix *y)
{
    mrc_product product;
    MRC_TRY(mrc_product_init_signs(&product, backend, pair, w, y));
    return mrc_product_run(&product, backend);
}

static mercer_status kernel_eval(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *k)
{
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, pair, NULL, NULL, k));
    return mrc_product_run(&product, backend);
}

/* Compute the arguments of the kernel, that is kernel_eval without the kernel function. */
static mercer_status kernel_sums(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *sums)
{
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, pair, NULL, NULL, sums));
    product.arguments = true;
    return mrc_product_run(&product, backend);
}

/* One pass yields both results: the rows of K, rounded to the type of stored->k, and Y, from the values before that
   rounding. */
static mercer_status kernel_rows(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                 const mercer_matrix *y, const mrc_stored *stored)
{
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, pair, w, y, stored->k));
    product.k_rows = stored->rows;
    product.add = stored->add;
    return mrc_product_run(&product, backend);
}

/* Columns of K are cached in the type of the weights, because kernel_transpose multiplies them with such weights. */
static mercer_status kernel_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_cached_block *cached)
{
    mercer_matrix k = mrc_view(cached->memory, pair->x->rows, 0, w->dtype);
    int64_t column_bytes = pair->x->rows * mrc_dtype_size(k.dtype);
    k.cols = k.ld = column_bytes ? mrc_min(cached->bytes / column_bytes, pair->z->rows) : 0;
    mrc_product product;
    MRC_TRY(mrc_product_init(&product, backend, pair, w, f, &k));
    MRC_TRY(mrc_product_run(&product, backend));
    cached->columns = k.cols;
    return MERCER_OK;
}

/* Multiply the cached columns of K by gemm, and evaluate the remaining columns again. */
static mercer_status kernel_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_cached_block *cached)
{
    int64_t columns = cached->columns;
    if (columns > 0) {
        mercer_matrix k = mrc_view(cached->memory, pair->x->rows, columns, g->dtype), top = mrc_rows(h, 0, columns);
        mrc_gemm job = {.transpose_a = true, .alpha = 1, .a = &k, .b = g, .c = &top};
        MRC_TRY(mrc_cpu_gemm(backend, &job));
    }
    if (columns == h->rows) return MERCER_OK;
    mercer_matrix rest = mrc_rows(pair->z, columns, pair->z->rows - columns),
                  bottom = mrc_rows(h, columns, h->rows - columns);
    mrc_pair swapped = {.kernel = pair->kernel, .x = &rest, .z = pair->x, .origin = pair->origin};
    return kernel_matmul(backend, &swapped, g, &bottom, false);
}

const mrc_backend_ops mrc_cpu_backend = {.api_version = MRC_BACKEND_API,
                                         .name = "cpu",
                                         .create = create_cpu,
                                         .destroy = destroy_cpu,
                                         .capabilities = cpu_capabilities,
                                         .alloc = mrc_host_alloc,
                                         .free = mrc_host_free,
                                         .sync = mrc_host_sync,
                                         .kernel_matmul = kernel_matmul,
                                         .kernel_forward = kernel_forward,
                                         .kernel_transpose = kernel_transpose,
                                         .kernel_eval = kernel_eval,
                                         .kernel_sums = kernel_sums,
                                         .kernel_signs = kernel_signs,
                                         .kernel_rows = kernel_rows,
                                         MRC_CPU_OPERATIONS(MRC_ENTER_OPERATION)};
