/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic "fast" on a GPU against the CPU: the error of half precision for every kernel that has a fused form, every
 * type of points, few and many outputs, accumulation, and coordinates out of range. Skipped without a GPU.
 */
#include "support/check.h"

#include "backends/backend.h"
#include "core/matrix.h"
#include "support/data.h"

#include <math.h>

static mercer_context *open_context(const char *backend, const char *arithmetic)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context = NULL;
    options.backend = backend, options.arithmetic = arithmetic;
    mercer_status status = mercer_context_create(&context, &options);
    if (status == MERCER_ERROR_UNSUPPORTED && strcmp(backend, "cpu") != 0) {
        print_message("    %s\n", mercer_last_error(NULL));
        return NULL;
    }
    assert_succeeds(NULL, status);
    return context;
}

/* Return |Y - Y_cpu| / |Y_cpu|. */
static double difference(const mercer_matrix *y, const mercer_matrix *right)
{
    double error = 0, norm = 0;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            double e = mrc_load(y, i, j) - mrc_load(right, i, j);
            error += e * e, norm += mrc_load(right, i, j) * mrc_load(right, i, j);
        }
    return sqrt(error / norm);
}

static void test_products(void **state)
{
    (void)state;
    static const char *const kernels[] = {"laplace:bandwidth=10",   "gaussian:bandwidth=10", "matern32:bandwidth=10",
                                          "matern52:bandwidth=10",  "cauchy:bandwidth=10",   "linear",
                                          "laplace-l1:bandwidth=50"};
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F16, MERCER_U8};
    static const int64_t shapes[][4] = {/* m, p, d, c */
                                        {129, 257, 7, 1},    {300, 700, 50, 10},  {64, 1000, 200, 40},
                                        {90, 300, 20, 64},   {257, 600, 130, 65}, {200, 500, 33, 100},
                                        {70, 16700, 9, 100}, {150, 400, 60, 1000}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    mercer_context *gpu = open_context("cuda", "fast"), *cpu = open_context("cpu", "fast");
    for (int k = 0; k < 7 && gpu; k++)
        for (int t = 0; t < 3; t++)
            for (int s = 0; s < SHAPES; s++) {
                const int64_t *n = shapes[s];
                mercer_kernel kernel;
                assert_succeeds(cpu, mercer_kernel_parse(&kernel, cpu, kernels[k]));
                if (types[t] == MERCER_U8 && kernel.bandwidth > 0) kernel.bandwidth *= 20;
                double mean = types[t] == MERCER_U8 ? 128 : 3, size = types[t] == MERCER_U8 ? 30 : 1;
                mercer_matrix x = data_matrix(n[0], n[2], 0, types[t]), z = data_matrix(n[1], n[2], 0, types[t]);
                mercer_matrix w = data_matrix(n[1], n[3], 0, MERCER_F32), y = data_matrix(n[0], n[3], 0, MERCER_F32),
                              right = data_matrix(n[0], n[3], 0, MERCER_F32);
                data_fill_normal(&x, (mrc_rng){1, 1}, mean, size);
                data_fill_normal(&z, (mrc_rng){1, 2}, mean, size);
                data_fill_normal(&w, (mrc_rng){1, 3}, 1, 1);
                /* A center that coincides with a sample. */
                memcpy(mrc_row(&z, 0), mrc_row(&x, 5), (size_t)(n[2] * mrc_dtype_size(types[t])));
                assert_succeeds(gpu, mercer_kernel_matmul(gpu, &y, &kernel, &x, &z, &w));
                assert_succeeds(cpu, mercer_kernel_matmul(cpu, &right, &kernel, &x, &z, &w));
                double error = difference(&y, &right);
                assert_that(error < 5e-4, "%s, type %d, shape %d: %g", kernels[k], t, s, error);
                free(x.data), free(z.data), free(w.data), free(y.data), free(right.data);
            }
    mercer_context_free(gpu), mercer_context_free(cpu);
}

/* The transposed product with the same cached block, and with more columns than a single product supports. */
static void check_wide_transpose(mercer_context *gpu, mercer_context *cpu, const mrc_pair *pair,
                                 const mrc_cached_block *cached)
{
    enum { C = 300 };
    mercer_matrix g = data_matrix(pair->x->rows, C, 0, MERCER_F32), h = data_matrix(pair->z->rows, C, 0, MERCER_F32),
                  right = data_matrix(pair->z->rows, C, 0, MERCER_F32);
    data_fill_normal(&g, (mrc_rng){3, 5}, 1, 1);
    assert_succeeds(gpu, gpu->backend->ops->kernel_transpose(gpu->backend, pair, &g, &h, cached));
    assert_succeeds(cpu, mercer_kernel_matmul(cpu, &right, pair->kernel, pair->z, pair->x, &g));
    double error = difference(&h, &right);
    assert_that(error < 5e-4, "%d columns: %g", (int)C, error);
    free(g.data), free(h.data), free(right.data);
}

/* The second half-precision part of rounded weights is zero, so omitting it changes only the order of summation. */
static void check_short_weights(mercer_context *gpu, const mrc_pair *pair, const mercer_matrix *g,
                                const mrc_cached_block *cached)
{
    mrc_backend *backend = gpu->backend;
    mercer_matrix both = data_matrix(pair->z->rows, g->cols, 0, MERCER_F32),
                  one = data_matrix(pair->z->rows, g->cols, 0, MERCER_F32);
    mrc_pair rounded = *pair;
    rounded.short_weights = true;
    assert_succeeds(gpu, backend->ops->round_half(backend, g));
    assert_succeeds(gpu, backend->ops->kernel_transpose(backend, pair, g, &both, cached));
    assert_succeeds(gpu, backend->ops->kernel_transpose(backend, &rounded, g, &one, cached));
    double error = difference(&one, &both);
    assert_that(error < 4e-6, "%lld columns of rounded weights: %g", (long long)g->cols, error); /* 64 x 2^-24 */
    free(both.data), free(one.data);
}

/* Compares F = K W and H = K' G with the CPU: with a cache for none, some or all of K, with Z packed in advance or not,
   with few and many outputs. Also compares H for a rounded G, whose result does not depend on the algorithm of the
   product. */
static void test_cached_products(void **state)
{
    (void)state;
    enum { M = 300, P = 1000, D = 40, SKIPPED = 8 };
    static const int64_t widths[] = {1, 10, 20, 64, 65, 100, 1000};
    mercer_context *gpu = open_context("cuda", "fast"), *cpu = open_context("cpu", "fast");
    for (int v = 0; v < 12 * 7 && gpu; v++) {
        const int64_t C = widths[v / 12];
        mercer_dtype type = v & 1 ? MERCER_U8 : MERCER_F32;
        bool packs = v & 2;
        mrc_backend *backend = gpu->backend;
        mercer_kernel kernel;
        assert_succeeds(cpu, mercer_kernel_parse(&kernel, cpu, "laplace:bandwidth=10"));
        if (type == MERCER_U8) kernel.bandwidth *= 20;
        mercer_matrix x = data_matrix(M, D, 0, type), all = data_matrix(P + SKIPPED, D, 0, type),
                      z = mrc_rows(&all, SKIPPED, P);
        mercer_matrix w = data_matrix(P, C, 0, MERCER_F32), g = data_matrix(M, C, 0, MERCER_F32);
        mercer_matrix f = data_matrix(M, C, 0, MERCER_F32), h = data_matrix(P, C, 0, MERCER_F32),
                      right_f = data_matrix(M, C, 0, MERCER_F32), right_h = data_matrix(P, C, 0, MERCER_F32);
        data_fill_normal(&x, (mrc_rng){3, 1}, type == MERCER_U8 ? 128 : 3, type == MERCER_U8 ? 30 : 1);
        data_fill_normal(&all, (mrc_rng){3, 2}, type == MERCER_U8 ? 128 : 3, type == MERCER_U8 ? 30 : 1);
        data_fill_normal(&w, (mrc_rng){3, 3}, 1, 1), data_fill_normal(&g, (mrc_rng){3, 4}, 1, 1);
        double origin[D];
        for (int k = 0; k < D; k++) origin[k] = 2.5;
        mrc_pair pair = {.kernel = &kernel, .x = &x, .z = &z, .origin = origin, .first_z = SKIPPED, .half = true};
        mrc_packed *packed = NULL;
        if (packs) {
            assert_succeeds(gpu, backend->ops->pack_create(backend, &packed, &kernel, origin, &all));
            mercer_matrix top = mrc_rows(&all, 0, 100), rest = mrc_rows(&all, 100, P + SKIPPED - 100);
            assert_succeeds(gpu, backend->ops->pack_rows(backend, packed, 100, &rest));
            assert_succeeds(gpu, backend->ops->pack_rows(backend, packed, 0, &top));
            pair.packed_z = packed;
        }
        mrc_cached_block cached = {.bytes = (int64_t)304 * 1024 * 2 * (v / 4 % 3) /
                                            2}; /* whole tiles: 16 rows, 256 centers */
        assert_succeeds(gpu, backend->ops->alloc(backend, &cached.memory, cached.bytes, "cached"));
        assert_succeeds(gpu, backend->ops->kernel_forward(backend, &pair, &w, &f, &cached));
        int64_t expected[] = {0, 512, P};
        assert_true(cached.columns == expected[v / 4 % 3] || !cached.opaque); /* other forms round differently */
        assert_succeeds(gpu, backend->ops->kernel_transpose(backend, &pair, &g, &h, &cached));
        assert_succeeds(cpu, mercer_kernel_matmul(cpu, &right_f, &kernel, &x, &z, &w));
        assert_succeeds(cpu, mercer_kernel_matmul(cpu, &right_h, &kernel, &z, &x, &g));
        double forward = difference(&f, &right_f), back = difference(&h, &right_h);
        assert_that(forward < 5e-4 && back < 5e-4, "case %d: %g, %g", v, forward, back);
        check_wide_transpose(gpu, cpu, &pair, &cached);
        check_short_weights(gpu, &pair, &g, &cached);
        backend->ops->free(backend, cached.memory);
        backend->ops->pack_free(backend, packed);
        free(x.data), free(all.data), free(w.data), free(g.data), free(f.data), free(h.data);
        free(right_f.data), free(right_h.data);
    }
    mercer_context_free(gpu), mercer_context_free(cpu);
}

typedef struct dense_case {
    bool transpose;
    int64_t m, n, k;
    double alpha, beta;
} dense_case;

static void copy_values(const mercer_matrix *to, const mercer_matrix *from, bool absolute)
{
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++) {
            double value = mrc_load(from, i, j);
            mrc_store(to, i, j, absolute ? fabs(value) : value);
        }
}

/* Compare C computed from split factors with C in double, relative to |alpha| |A| |B| + |beta C|. The bound is 2^-22
   for each factor, as much for the omitted term, and float sums. Columns of B differ by 10^12, A has entries from
   2^-30 to 1. */
static void check_split(mercer_context *gpu, const dense_case *one)
{
    mrc_backend *backend = gpu->backend;
    int64_t rows = one->transpose ? one->k : one->m, cols = one->transpose ? one->m : one->k;
    mercer_matrix a = data_matrix(rows, cols, 0, MERCER_F32), b = data_matrix(one->k, one->n, 0, MERCER_F32),
                  c = data_matrix(one->m, one->n, 0, MERCER_F32), a64 = data_matrix(rows, cols, 0, MERCER_F64),
                  b64 = data_matrix(one->k, one->n, 0, MERCER_F64), right = data_matrix(one->m, one->n, 0, MERCER_F64),
                  size = data_matrix(one->m, one->n, 0, MERCER_F64);
    data_fill_normal(&a, (mrc_rng){7, 1}, 0, 1), data_fill_normal(&b, (mrc_rng){7, 2}, 0, 1);
    data_fill_normal(&c, (mrc_rng){7, 3}, 0, 1);
    for (int64_t i = 0; i < rows; i += 7) mrc_store(&a, i, i % cols, ldexp(mrc_load(&a, i, i % cols), -(int)(i % 30)));
    for (int64_t i = 0; i < one->k; i++)
        for (int64_t j = 0; j < one->n; j++) mrc_store(&b, i, j, mrc_load(&b, i, j) * pow(10, (double)(j % 13) - 6));
    copy_values(&a64, &a, false), copy_values(&b64, &b, false), copy_values(&right, &c, false);
    mrc_gemm exact = {one->transpose, false, one->alpha, one->beta, &a64, &b64, &right},
             fast = {one->transpose, false, one->alpha, one->beta, &a, &b, &c},
             bound = {one->transpose, false, fabs(one->alpha), fabs(one->beta), &a64, &b64, &size};
    copy_values(&size, &right, true);
    assert_succeeds(gpu, backend->ops->gemm(backend, &exact));
    copy_values(&a64, &a, true), copy_values(&b64, &b, true);
    assert_succeeds(gpu, backend->ops->gemm(backend, &bound));
    assert_succeeds(gpu, backend->ops->split_gemm(backend, &fast));
    double allowed = 3 * 0x1p-22 + 4 * sqrt((double)one->k) * 0x1p-24, worst = 0;
    for (int64_t i = 0; i < one->m; i++)
        for (int64_t j = 0; j < one->n; j++)
            worst = fmax(worst, fabs(mrc_load(&c, i, j) - mrc_load(&right, i, j)) / mrc_load(&size, i, j));
    assert_that(worst < allowed, "%lld x %lld, depth %lld: %g, allowed %g", (long long)one->m, (long long)one->n,
                (long long)one->k, worst, allowed);
    free(a.data), free(b.data), free(c.data), free(a64.data), free(b64.data), free(right.data), free(size.data);
}

/* Products of split factors: blocks of rows and of the depth, sizes that are not multiples of the tile sizes, few
   columns. */
static void test_split_gemm(void **state)
{
    (void)state;
    static const dense_case cases[] = {{false, 40001, 201, 137, 1, 0},
                                       {false, 2003, 1000, 600, -0.7, 0.3},
                                       {true, 151, 203, 40003, 1, 0},
                                       {true, 1000, 1000, 1100, 2.5, -1},
                                       {false, 3000, 10, 40000, 0.5, 1}};
    mercer_context *gpu = open_context("cuda", "fast");
    for (size_t i = 0; i < sizeof cases / sizeof *cases && gpu; i++) check_split(gpu, &cases[i]);
    mercer_context_free(gpu);
}

/* A coordinate beyond the range of half precision is refused, and the context stays usable. */
static void test_range(void **state)
{
    (void)state;
    mercer_context *gpu = open_context("cuda", "fast");
    if (!gpu) return;
    mercer_kernel kernel;
    mercer_matrix x = data_matrix(200, 4, 0, MERCER_F32), y = data_matrix(200, 1, 0, MERCER_F32);
    data_fill_normal(&x, (mrc_rng){2, 1}, 0, 1);
    mercer_matrix w = data_matrix(200, 1, 0, MERCER_F32);
    data_fill_normal(&w, (mrc_rng){2, 2}, 1, 1);
    assert_succeeds(gpu, mercer_kernel_parse(&kernel, gpu, "laplace:bandwidth=1"));
    assert_succeeds(gpu, mercer_kernel_matmul(gpu, &y, &kernel, &x, &x, &w));
    mrc_store(&x, 7, 2, 1e6);
    assert_int_equal(mercer_kernel_matmul(gpu, &y, &kernel, &x, &x, &w), MERCER_ERROR_DATA);
    assert_true(mentions(mercer_last_error(gpu), "half precision"));
    mrc_store(&x, 7, 2, 1);
    assert_succeeds(gpu, mercer_kernel_matmul(gpu, &y, &kernel, &x, &x, &w));
    free(x.data), free(y.data), free(w.data);
    mercer_context_free(gpu);
}

static void count_warnings(void *user, mercer_log_level level, const char *message)
{
    if (level == MERCER_LOG_WARNING && mentions(message, "fast")) ++*(int *)user;
}

/* Requesting "fast" where it has no effect logs a warning. */
static void test_fast_on_host(void **state)
{
    (void)state;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context = NULL;
    int warnings = 0;
    options.backend = "cpu", options.log = count_warnings, options.log_user = &warnings;
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    mercer_context_free(context);
    assert_int_equal(warnings, 0);
    options.arithmetic = "fast";
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    mercer_context_free(context);
    assert_int_equal(warnings, 1);
}

static void test_options(void **state)
{
    (void)state;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context = NULL;
    options.arithmetic = "quick";
    assert_int_equal(mercer_context_create(&context, &options), MERCER_ERROR_ARGUMENT);
    assert_true(mentions(mercer_last_error(NULL), "accurate, fast"));
    options.arithmetic = NULL, options.backend = "cuda:x";
    assert_true(mercer_context_create(&context, &options) != MERCER_OK);
    assert_null(context);
    options.backend = "cuda:1000";
    assert_true(mercer_context_create(&context, &options) != MERCER_OK);
    options.backend = "cpu:0";
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    mercer_context_free(context);
    options.backend = "auto"; /* always available */
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),     cmocka_unit_test(test_cached_products), cmocka_unit_test(test_range),
        cmocka_unit_test(test_fast_on_host), cmocka_unit_test(test_options),         cmocka_unit_test(test_split_gemm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
