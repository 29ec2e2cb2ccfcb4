/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte products on tile registers (AMX), with tiles emulated here in C, so that they can be tested on any machine: the
 * micro-kernel against plain sums, and whole products of bytes packed for it against those of the other micro-kernels,
 * bit for bit.
 */
#include "support/check.h"
#include "support/data.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/micro/ukernels.h"
#include "core/matrix.h"

static uint8_t tiles[8][16][64];
static int begun;

static void tile_load(int t, const void *address, int64_t stride)
{
    assert_int_equal(begun, 1);
    for (int row = 0; row < 16; row++) memcpy(tiles[t][row], (const char *)address + row * stride, 64);
}

static void tile_store(int t, void *address, int64_t stride)
{
    assert_int_equal(begun, 1);
    for (int row = 0; row < 16; row++) memcpy((char *)address + row * stride, tiles[t][row], 64);
}

/* emulates tdpbuud */
static void tile_dot(int c, int a, int b)
{
    for (int m = 0; m < 16; m++) {
        for (int n = 0; n < 16; n++) {
            uint32_t sum;
            memcpy(&sum, &tiles[c][m][4 * n], sizeof sum);
            for (int k = 0; k < 16; k++)
                for (int i = 0; i < 4; i++) sum += (uint32_t)tiles[a][m][4 * k + i] * tiles[b][k][4 * n + i];
            memcpy(&tiles[c][m][4 * n], &sum, sizeof sum);
        }
    }
}

#define UK_NAME                           emulated
#define UK_BEGIN()                        begun++
#define UK_END()                          begun--
#define UK_TILE_LOAD(t, address, stride)  tile_load(t, address, stride)
#define UK_TILE_STORE(t, address, stride) tile_store(t, address, stride)
#define UK_TILE_DOT(c, a, b)              tile_dot(c, a, b)
static void emulated(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c);
#include "backends/cpu/micro/dot_u8/uk_dot_u8_tiles_body.h"

enum { MR = 16, NR = 32, MOST_FEATURES = 32768 };

static void test_micro_kernel(void **state)
{
    (void)state;
    const int sizes[] = {1, 4, 63, 64, 65, 784, MOST_FEATURES};
    const mrc_panel_ops *panel = mrc_ukernels_for(MRC_ISA_SCALAR).panel;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t d = sizes[s], padded = (d + 63) / 64 * 64;
        mercer_matrix z = data_matrix(MR, d, 0, MERCER_U8), x = data_matrix(NR, d, 0, MERCER_U8);
        data_fill_uniform(&z, (mrc_rng){1, (uint64_t)d}, 0, 255),
            data_fill_uniform(&x, (mrc_rng){2, (uint64_t)d}, 0, 255);
        if (d == MOST_FEATURES) memset(z.data, 255, (size_t)(MR * d)), memset(x.data, 255, (size_t)(NR * d));
        uint8_t *a = calloc((size_t)padded, MR), *b = calloc((size_t)padded, NR);
        assert_true(a && b);
        int32_t start[NR] = {0}, c[MR * NR], sum, squares;
        for (int i = 0; i < MR; i++) panel->pack_u8(d, 64, MR, i, 0, mrc_row(&z, i), a, &sum, &squares);
        for (int j = 0; j < NR; j++) panel->pack_u8(d, 4, NR, j, 0, mrc_row(&x, j), b, &sum, &squares);
        start[NR - 1] = 7;
        emulated(padded / 4, a, b, start, c);
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++)
                assert_int_equal(c[i * NR + j],
                                 panel->inner_u8(d, mrc_row(&z, i), mrc_row(&x, j)) + (j == NR - 1 ? 7 : 0));
        free(a), free(b), free(z.data), free(x.data);
    }
    assert_int_equal(begun, 0);
}

/* Compares K W of bytes by a context's micro-kernels with K W by the emulated micro-kernel. */
static void compare_products(mercer_context *context, const char *spec, int64_t m, int64_t p, int64_t d)
{
    mercer_kernel kernel;
    mrc_cpu *cpu = context->backend->state;
    mrc_ukernels usual = cpu->uk;
    mercer_matrix x = data_matrix(m, d, 0, MERCER_U8), z = data_matrix(p, d, 0, MERCER_U8);
    mercer_matrix w = data_matrix(p, 3, 0, MERCER_F32), y[2];
    data_fill_uniform(&x, (mrc_rng){3, 1}, 0, 255), data_fill_uniform(&z, (mrc_rng){3, 2}, 0, 255);
    data_fill_normal(&w, (mrc_rng){3, 3}, 0, 1);
    int32_t *nearest[2] = {malloc((size_t)m * 4), malloc((size_t)m * 4)};
    assert_true(nearest[0] && nearest[1]);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, spec));
    for (int way = 0; way < 2; way++) {
        y[way] = data_matrix(m, 3, 0, MERCER_F32);
        if (way == 1) cpu->uk.dot_u8 = emulated, cpu->uk.mr_u8 = MR, cpu->uk.nr_u8 = NR, cpu->uk.group_u8 = 64;
        assert_succeeds(context, mercer_kernel_matmul(context, &y[way], &kernel, &x, &z, &w));
        assert_succeeds(context, mercer_nearest_rows(context, nearest[way], NULL, NULL, &x, &z));
    }
    cpu->uk = usual;
    assert_memory_equal(y[0].data, y[1].data, (size_t)(m * 3) * sizeof(float));
    assert_memory_equal(nearest[0], nearest[1], (size_t)m * 4);
    free(x.data), free(z.data), free(w.data), free(y[0].data), free(y[1].data), free(nearest[0]), free(nearest[1]);
}

static void test_products(void **state)
{
    (void)state;
    if (mrc_isa_best() < MRC_ISA_AVX512) skip(); /* panels of 32 rows have the layout of AVX-512 */
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context;
    options.threads = 1; /* there is only one set of emulated tiles */
    assert_int_equal(mercer_context_create(&context, &options), MERCER_OK);
    compare_products(context, "laplace:bandwidth=800", 70, 500, 100);
    compare_products(context, "gaussian:bandwidth=900", 33, 240, 64);
    compare_products(context, "linear", 600, 17, 3);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_micro_kernel), cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
