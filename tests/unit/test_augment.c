/* SPDX-License-Identifier: BSD-3-Clause */
/* Augmentation: distribution of each part, element positions after moves, rounding per type, invalid specifications. */
#include "support/counted.h"

#include "support/data.h"

#include "data/prepare/augment.h"

/* Samples with all buffers that an augmentation needs. */
typedef struct samples {
    mrc_augment_block block;
    mercer_matrix x, y, spare_x, spare_y;
    void *row;
} samples;

static samples make_samples(int64_t rows, int64_t features, int64_t outputs, mercer_dtype dtype)
{
    samples out = {.x = data_matrix(rows, features, 0, dtype),
                   .y = data_matrix(rows, outputs, 0, MERCER_F32),
                   .spare_x = data_matrix(rows, features, 0, dtype),
                   .spare_y = data_matrix(rows, outputs, 0, MERCER_F32),
                   .row = malloc((size_t)(features * mrc_dtype_size(dtype)))};
    assert_non_null(out.row);
    return out;
}

static void free_samples(samples *self)
{
    free(self->x.data), free(self->y.data), free(self->spare_x.data), free(self->spare_y.data), free(self->row);
}

/* Apply a specification to samples first, first + 1, ... of a pass; the result is in self->block. */
static void apply(mercer_context *context, samples *self, const char *spec, mrc_augment_shape shape, uint64_t seed,
                  int64_t pass, int64_t first)
{
    mrc_augment *augment;
    assert_succeeds(context, mrc_augment_create(&augment, context, spec, &shape, seed));
    self->block = (mrc_augment_block){.pass = pass,
                                      .first = first,
                                      .x = self->x,
                                      .y = self->y,
                                      .spare_x = self->spare_x,
                                      .spare_y = self->spare_y,
                                      .row = self->row};
    mrc_augment_apply(augment, &self->block);
    mrc_augment_free(context, augment);
}

/* ---- Noise --------------------------------------------------------------------------------------------------- */

static void check_noise(mercer_context *context, mercer_dtype dtype, double sigma, double rounding)
{
    enum { N = 300, D = 300 };
    samples set = make_samples(N, D, 1, dtype);
    for (int64_t i = 0; i < N * D; i++) data_store(&set.x, i / D, i % D, 128);
    apply(context, &set, sigma == 20 ? "noise:sigma=20" : "noise:sigma=0.25", (mrc_augment_shape){.features = D}, 3, 0,
          0);
    double sum = 0, squares = 0, fourth = 0, neighbors = 0, before = 0;
    for (int64_t i = 0; i < N * D; i++) {
        double gap = mrc_load(&set.block.x, i / D, i % D) - 128;
        sum += gap, squares += gap * gap, fourth += gap * gap * gap * gap;
        neighbors += gap * before;
        before = gap;
    }
    double n = N * D, variance = sigma * sigma + rounding * rounding / 12;
    assert_that(fabs(sum / n) < 6 * sqrt(variance / n), "%s: mean %g", mrc_dtype_name(dtype), sum / n);
    assert_that(fabs(squares / n / variance - 1) < 6 * sqrt(2 / n), "%s: variance %g, wanted %g", mrc_dtype_name(dtype),
                squares / n, variance);
    assert_that(fabs(fourth / n / (variance * variance) - 3) < 6 * sqrt(96 / n) + 5e-3, "%s: fourth moment %g",
                mrc_dtype_name(dtype), fourth / n / (variance * variance));
    assert_that(fabs(neighbors / n) < 6 * variance / sqrt(n), "%s: neighbors %g", mrc_dtype_name(dtype), neighbors / n);
    free_samples(&set);
}

static void test_noise(void **state)
{
    fixture *self = *state;
    check_noise(self->context, MERCER_U8, 20, 1);
    check_noise(self->context, MERCER_F32, 20, 0);
    check_noise(self->context, MERCER_F64, 0.25, 0);
    check_noise(self->context, MERCER_F16, 20, 0.125); /* spacing of halves in 128 .. 256; 1/16 below */
}

/* Bytes near the ends are clamped, not wrapped. */
static void test_noise_is_clamped(void **state)
{
    fixture *self = *state;
    samples set = make_samples(50, 100, 1, MERCER_U8);
    for (int64_t i = 0; i < 50 * 100; i++) ((uint8_t *)set.x.data)[i] = i % 2 ? 255 : 0;
    apply(self->context, &set, "noise:sigma=20", (mrc_augment_shape){.features = 100}, 3, 0, 0);
    int64_t held = 0;
    for (int64_t i = 0; i < 50 * 100; i++) {
        int value = ((uint8_t *)set.x.data)[i];
        held += value == (i % 2 ? 255 : 0);
        assert_that(i % 2 ? value > 120 : value < 135, "%d", value);
    }
    assert_that(held > 2200 && held < 2900, "%lld of 5000 at the ends", (long long)held);
    free_samples(&set);
}

/* ---- Images -------------------------------------------------------------------------------------------------- */

/* Find the shift by up to k pixels that turns the image (h, w, c) with element j = j + 1 into this row; count each
   shift. */
static void check_shift(const mercer_matrix *x, int64_t row, mrc_augment_shape s, int k, int64_t counts[])
{
    for (int v = -k; v <= k; v++)
        for (int u = -k; u <= k; u++) {
            bool same = true;
            for (int64_t y = 0; y < s.height && same; y++)
                for (int64_t z = 0; z < s.width && same; z++)
                    for (int64_t c = 0; c < s.channels && same; c++) {
                        int64_t from_y = y - v, from_z = z - u;
                        bool inside = from_y >= 0 && from_y < s.height && from_z >= 0 && from_z < s.width;
                        double wanted = inside ? (double)((from_y * s.width + from_z) * s.channels + c + 1) : 0;
                        same = mrc_load(x, row, (y * s.width + z) * s.channels + c) == wanted;
                    }
            if (same) {
                counts[(v + k) * (2 * k + 1) + u + k]++;
                return;
            }
        }
    fail_msg("row %d is not a shift of the image", (int)row);
}

static void check_shifts(mercer_context *context, const char *spec, mercer_dtype dtype, mrc_augment_shape shape)
{
    enum { N = 5000, K = 2, CELLS = (2 * K + 1) * (2 * K + 1) };
    samples set = make_samples(N, shape.features, 1, dtype);
    int64_t counts[CELLS] = {0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < shape.features; j++) data_store(&set.x, i, j, (double)(j + 1));
    apply(context, &set, spec, shape, 3, 0, 0);
    for (int64_t i = 0; i < N; i++) check_shift(&set.block.x, i, shape, K, counts);
    double expected = (double)N / CELLS, sum = 0;
    for (int i = 0; i < CELLS; i++) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    assert_that(sum < 24 + 6 * sqrt(2 * 24), "%s: chi-square %g of 24 degrees", spec, sum); /* mean 24, variance 48 */
    free_samples(&set);
}

static void test_shift_and_crop(void **state)
{
    fixture *self = *state;
    check_shifts(self->context, "shift:pixels=2", MERCER_U8, (mrc_augment_shape){6 * 5, 6, 5, 1});
    check_shifts(self->context, "crop:pad=2", MERCER_F32, (mrc_augment_shape){4 * 7 * 3, 4, 7, 3});
}

static void test_flip(void **state)
{
    fixture *self = *state;
    enum { N = 2000, H = 3, W = 5, C = 2 };
    samples set = make_samples(N, H * W * C, 1, MERCER_F64);
    mrc_augment_shape shape = {H * W * C, H, W, C};
    for (int64_t i = 0; i < N * H * W * C; i++) ((double *)set.x.data)[i] = (double)(i % (H * W * C));
    apply(self->context, &set, "flip", shape, 3, 0, 0);
    int64_t flipped = 0;
    for (int64_t i = 0; i < N; i++) {
        double first = mrc_load(&set.x, i, 0);
        bool mirrored = first != 0;
        flipped += mirrored;
        for (int64_t j = 0; j < H * W * C; j++) {
            int64_t y = j / (W * C), z = j / C % W, c = j % C;
            int64_t from = mirrored ? (y * W + W - 1 - z) * C + c : j;
            assert_true(mrc_load(&set.x, i, j) == (double)from);
        }
    }
    assert_that(llabs(flipped - N / 2) < 6 * sqrt(N) / 2, "%lld of %d mirrored", (long long)flipped, (int)N);
    apply(self->context, &set, "flip", shape, 3, 0, 0); /* Mirroring the same samples again restores them. */
    for (int64_t i = 0; i < N * H * W * C; i++) assert_true(((double *)set.x.data)[i] == (double)(i % (H * W * C)));
    free_samples(&set);
}

/* ---- Mixing -------------------------------------------------------------------------------------------------- */

/* Check the shares and partners of mixup, both known because all features of sample i are i and targets are one-hot. */
static void check_mixup(mercer_context *context, const char *spec, double alpha)
{
    enum { N = 1000, D = 3 };
    samples set = make_samples(N, D, N, MERCER_F64);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < D; j++) data_store(&set.x, i, j, (double)i);
        data_store(&set.y, i, i, 1);
    }
    apply(context, &set, spec, (mrc_augment_shape){.features = D}, 3, 0, 0);
    double sum = 0, squares = 0, distance = 0;
    for (int64_t i = 0; i < N; i++) {
        double share = mrc_load(&set.block.y, i, i), total = 0;
        int64_t partner = -1;
        for (int64_t j = 0; j < N; j++) {
            double target = mrc_load(&set.block.y, i, j);
            total += target;
            if (j != i && target > 0) {
                assert_true(partner < 0);
                partner = j;
            }
        }
        assert_that(fabs(total - 1) < 1e-6, "targets sum to %g", total);
        assert_true(share >= 0 && share <= 1);
        if (partner >= 0) {
            double wanted = share * (double)i + (1 - share) * (double)partner;
            for (int64_t j = 0; j < D; j++)
                assert_that(fabs(mrc_load(&set.block.x, i, j) - wanted) < 1e-7 * N, "%g, wanted %g",
                            mrc_load(&set.block.x, i, j), wanted);
            distance += (double)((partner - i + N) % N) / N;
        }
        sum += share, squares += (share - 0.5) * (share - 0.5);
    }
    double variance = 1 / (4 * (2 * alpha + 1)), kurtosis_bound = 1.0 / 16; /* of Beta(a, a); (l - 1/2)^4 <= 1/16 */
    assert_that(fabs(sum / N - 0.5) < 6 * sqrt(variance / N), "%s: mean share %g", spec, sum / N);
    assert_that(fabs(squares / N - variance) < 6 * sqrt(kurtosis_bound * variance * 4 / N),
                "%s: variance %g, wanted %g", spec, squares / N, variance);
    assert_that(fabs(distance / N - 0.5) < 0.1, "%s: partners are %g of the way round", spec, distance / N);
    free_samples(&set);
}

static void test_mixup(void **state)
{
    fixture *self = *state;
    check_mixup(self->context, "mixup:alpha=0.4", 0.4);
    check_mixup(self->context, "mixup:alpha=1", 1);
    check_mixup(self->context, "mixup:alpha=3", 3);
}

/* A tiny Beta parameter concentrates all shares at 0 and 1 and must not yield NaN. */
static void test_mixup_at_the_ends(void **state)
{
    fixture *self = *state;
    samples set = make_samples(500, 2, 1, MERCER_U8);
    for (int64_t i = 0; i < 500; i++) ((uint8_t *)set.x.data)[2 * i] = (uint8_t)(i % 256), data_store(&set.y, i, 0, 1);
    apply(self->context, &set, "mixup:alpha=0.0001", (mrc_augment_shape){.features = 2}, 3, 0, 0);
    for (int64_t i = 0; i < 500; i++) assert_that(fabs(mrc_load(&set.block.y, i, 0) - 1) < 1e-6, "row %d", (int)i);
    free_samples(&set);
    set = make_samples(1, 2, 1, MERCER_F32); /* A block of one sample has no partner and stays unchanged. */
    data_store(&set.x, 0, 0, 5);
    apply(self->context, &set, "mixup:alpha=1", (mrc_augment_shape){.features = 2}, 3, 0, 0);
    assert_true(fabs(mrc_load(&set.block.x, 0, 0) - 5) < 1e-6);
    free_samples(&set);
}

static void test_mixup_of_bytes_is_rounded(void **state)
{
    fixture *self = *state;
    enum { N = 400 };
    samples bytes = make_samples(N, 3, N, MERCER_U8), doubles = make_samples(N, 3, N, MERCER_F64);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < 3; j++) {
            double value = floor(256 * mrc_random_uniform((mrc_rng){1, 2}, (uint64_t)(3 * i + j)));
            data_store(&bytes.x, i, j, value), data_store(&doubles.x, i, j, value);
        }
    apply(self->context, &bytes, "mixup:alpha=1", (mrc_augment_shape){.features = 3}, 3, 1, 0);
    apply(self->context, &doubles, "mixup:alpha=1", (mrc_augment_shape){.features = 3}, 3, 1, 0);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < 3; j++) {
            double gap = mrc_load(&bytes.block.x, i, j) - mrc_load(&doubles.block.x, i, j);
            assert_that(fabs(gap) <= 0.5001, "off by %g", gap);
        }
    free_samples(&bytes), free_samples(&doubles);
}

/* ---- Draws --------------------------------------------------------------------------------------------------- */

/* A sample's augmentation depends on the seed, the pass and its index, not on the other samples of the block. */
static void test_draws(void **state)
{
    fixture *self = *state;
    const char *spec = "noise:sigma=3+shift:pixels=2+flip";
    mrc_augment_shape shape = {48, 6, 8, 1};
    samples all = make_samples(20, 48, 1, MERCER_F32), one = make_samples(1, 48, 1, MERCER_F32);
    apply(self->context, &all, spec, shape, 3, 4, 100);
    for (int64_t i = 0; i < 20; i++) {
        memset(one.x.data, 0, 48 * sizeof(float));
        apply(self->context, &one, spec, shape, 3, 4, 100 + i);
        assert_memory_equal(one.x.data, mrc_row(&all.x, i), 48 * sizeof(float));
        const struct {
            uint64_t seed;
            int64_t pass, first;
        } others[] = {{4, 4, 100 + i}, {3, 5, 100 + i}, {3, -1, 100 + i}, {3, 4, 101 + i}};
        for (int k = 0; k < 4; k++) {
            memset(one.x.data, 0, 48 * sizeof(float));
            apply(self->context, &one, spec, shape, others[k].seed, others[k].pass, others[k].first);
            assert_memory_not_equal(one.x.data, mrc_row(&all.x, i), 48 * sizeof(float));
        }
    }
    free_samples(&all), free_samples(&one);
}

/* Parts apply in the given order: noise before a shift leaves the border at 0; noise after the shift changes it. */
static void test_order_of_parts(void **state)
{
    fixture *self = *state;
    mrc_augment_shape shape = {64, 8, 8, 1};
    int64_t zeros[2] = {0};
    for (int i = 0; i < 2; i++) {
        samples set = make_samples(50, 64, 1, MERCER_F32);
        apply(self->context, &set, i ? "shift:pixels=3+noise:sigma=1e+0" : "noise:sigma=1+shift:pixels=3", shape, 3, 0,
              0);
        for (int64_t j = 0; j < 50 * 64; j++) zeros[i] += ((float *)set.block.x.data)[j] == 0;
        free_samples(&set);
    }
    assert_that(zeros[0] > 500 && zeros[1] < 50, "%lld and %lld zeros", (long long)zeros[0], (long long)zeros[1]);
}

/* ---- Invalid input ------------------------------------------------------------------------------------------- */

static void test_bad_specs(void **state)
{
    fixture *self = *state;
    const struct {
        const char *spec, *part;
        mercer_status status;
    } bad[] = {{"", "no name", MERCER_ERROR_ARGUMENT},
               {"noise", "missing parameter 'sigma'", MERCER_ERROR_ARGUMENT},
               {"noise:sigma=-1", ">= 0", MERCER_ERROR_ARGUMENT},
               {"noise:sigma=1+", "no name", MERCER_ERROR_ARGUMENT},
               {"+flip", "no name", MERCER_ERROR_ARGUMENT},
               {"flip++flip", "no name", MERCER_ERROR_ARGUMENT},
               {"flip+noise:sigma=1+flip", "flip*twice", MERCER_ERROR_ARGUMENT},
               {"flop", "'flip'?", MERCER_ERROR_ARGUMENT},
               {"shift:pixels=1.5", "whole", MERCER_ERROR_ARGUMENT},
               {"shift:pixel=1", "'pixels'?", MERCER_ERROR_ARGUMENT},
               {"shift:pixels=6", "6 pixels", MERCER_ERROR_ARGUMENT},
               {"crop:pixels=1", "unknown parameter 'pixels'", MERCER_ERROR_ARGUMENT},
               {"mixup:alpha=0", "> 0", MERCER_ERROR_ARGUMENT},
               {"noise:sigma=1 + flip", "noise: *number: '1 + flip'", MERCER_ERROR_ARGUMENT},
               {"rotate", "valid names: noise, shift, crop, flip, mixup", MERCER_ERROR_ARGUMENT}};
    mrc_augment_shape shape = {48, 6, 8, 1}, none = {.features = 48}, wrong = {48, 6, 9, 1};
    mrc_augment *out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(self->context, mrc_augment_create(&out, self->context, bad[i].spec, &shape, 0), bad[i].status,
                     bad[i].part);
        assert_null(out);
    }
    char spec[400] = "noise:sigma=";
    memset(spec + 12, '1', 300);
    assert_fails(self->context, mrc_augment_create(&out, self->context, spec, &shape, 0), MERCER_ERROR_ARGUMENT,
                 "too long");
    assert_fails(self->context, mrc_augment_create(&out, self->context, "flip", &none, 0), MERCER_ERROR_ARGUMENT,
                 "height*width*channels");
    assert_fails(self->context, mrc_augment_create(&out, self->context, "flip", &wrong, 0), MERCER_ERROR_SHAPE,
                 "6 x 9 x 1");
    assert_succeeds(self->context, mrc_augment_create(&out, self->context, "noise:sigma=2+mixup:alpha=1", &none, 0));
    assert_true(mrc_augment_mixes(out));
    mrc_augment_free(self->context, out);
    assert_false(mrc_augment_mixes(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_noise_is_clamped),
        cmocka_unit_test(test_shift_and_crop),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_mixup),
        cmocka_unit_test(test_mixup_at_the_ends),
        cmocka_unit_test(test_mixup_of_bytes_is_rounded),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_order_of_parts),
        cmocka_unit_test(test_bad_specs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
