/* SPDX-License-Identifier: BSD-3-Clause */
/* Half precision: all 65536 values, and rounding against a reference that uses bisection. */
#include "support/check.h"

#include "backends/cpu/micro/ukernels.h"
#include "core/numbers/half.h"

#include <math.h>
#include <stdbool.h>

static bool half_is_nan(uint16_t half)
{
    return (half & 0x7fff) > 0x7c00;
}

/* The value of a half from its definition, in double. */
static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/*
 * Return the half nearest to |value|, by bisection over the ordered non-negative halves 0 .. 0x7bff and then 65536 in
 * place of infinity. Differences of a float and a half are exact in double, so the comparison is too. Ties go to the
 * even pattern.
 */
static uint16_t nearest_half(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs((double)value);
    if (size >= 65536) return sign | 0x7c00;
    uint16_t low = 0, high = 0x7c00;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (half_value(middle) <= size)
            low = middle;
        else
            high = middle;
    }
    double below = size - half_value(low), above = (high == 0x7c00 ? 65536 : half_value(high)) - size;
    if (below != above) return sign | (below < above ? low : high);
    return sign | (low % 2 == 0 ? low : high);
}

static void check_rounding(float value)
{
    uint16_t got = mrc_half_from_float(value), wanted = nearest_half(value);
    assert_that(got == wanted, "%a gives %04x, the nearest half is %04x", (double)value, got, wanted);
}

static void test_every_half_round_trips(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        float value = mrc_half_to_float(half);
        if (half_is_nan(half)) {
            assert_that(isnan(value), "half %04x", half);
            assert_that(half_is_nan(mrc_half_from_float(value)), "half %04x", half);
            continue;
        }
        assert_that((double)value == half_value(half), "half %04x became %a", half, (double)value);
        assert_that(!signbit(value) == !(half & 0x8000), "half %04x lost its sign", half);
        assert_that(mrc_half_from_float(value) == half, "half %04x came back as %04x", half,
                    mrc_half_from_float(value));
    }
}

/* Between neighbors a < b: test the midpoint (exact as a float), the adjacent floats, and points a quarter away. */
static void test_rounding_between_neighbors(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        double a = half_value((uint16_t)bits), b = bits + 1 == 0x7c00 ? 65536 : half_value((uint16_t)(bits + 1));
        float middle = (float)((a + b) / 2);
        assert_true((double)middle == (a + b) / 2);
        const float values[] = {middle, nextafterf(middle, 0), nextafterf(middle, INFINITY), (float)(a + (b - a) / 4),
                                (float)(a + 3 * (b - a) / 4)};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            check_rounding(values[i]);
            check_rounding(-values[i]);
        }
    }
}

static void test_rounding_at_the_edges(void **state)
{
    (void)state;
    const float values[] = {0.0f,      0x1p-149f, 0x1p-126f,   0x1p-30f, 0x1p-25f, 0x1.000002p-25f, 0x1.fffffep-26f,
                            0x1p-24f,  0x1p-14f,  0x1.ffp-15f, 65504,    65519,    65519.996f,      65520,
                            65535,     65536,     1e6f,        3.4e38f,  1,        0x1.001p0f,      0x1.003p0f,
                            0x1.004p0f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check_rounding(values[i]);
        check_rounding(-values[i]);
    }
    assert_int_equal(mrc_half_from_float(INFINITY), 0x7c00);
    assert_int_equal(mrc_half_from_float(-INFINITY), 0xfc00);
    assert_int_equal(mrc_half_from_float(-0.0f), 0x8000);
    assert_int_equal(mrc_half_from_float(65520), 0x7c00); /* a tie between 65504 and 65536: even is infinity */
    assert_int_equal(mrc_half_from_float(0x1p-25f), 0);   /* a tie between 0 and the smallest: even is 0 */
}

/* Every class of NaN pattern: quiet, signaling, both signs, payload only in bits that a half does not have. */
static void test_nan(void **state)
{
    (void)state;
    const uint32_t patterns[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0x7f801000, 0x7fa00000};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        uint16_t half = mrc_half_from_float(mrc_float_from_bits(patterns[i]));
        assert_that(half_is_nan(half), "pattern %08x became %04x", patterns[i], half);
        assert_int_equal(half >> 15, patterns[i] >> 31);
    }
}

/* A coarse sweep over all floats: every 4099th (a prime, so that all low bits occur). */
static void test_sweep_over_floats(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099) {
        float value = mrc_float_from_bits((uint32_t)bits);
        if (!isnan(value)) check_rounding(value);
    }
}

/* The conversions of each instruction set agree with the scalar code. An odd count leaves a remainder for the scalar
   code. */
static void test_every_instruction_set(void **state)
{
    (void)state;
    enum { COUNT = 8191 };
    static uint16_t halves[COUNT];
    static float floats[COUNT];
    for (int isa = 0; isa <= (int)mrc_isa_best(); isa++) {
        const mrc_panel_ops *panel = mrc_ukernels_for((mrc_isa)isa).panel;
        for (uint32_t first = 0; first < 0x7c00; first += COUNT) { /* all finite halves, and their negatives */
            for (uint32_t i = 0; i < COUNT; i++) halves[i] = (uint16_t)((first + i) % 0x7c00 | (i % 2 ? 0x8000 : 0));
            panel->from_half(COUNT, halves, floats);
            for (int i = 0; i < COUNT; i++)
                assert_int_equal(mrc_bits_from_float(floats[i]), mrc_bits_from_float(mrc_half_to_float(halves[i])));
        }
        for (uint64_t first = 0; first < 0x7f800000; first += (uint64_t)COUNT * 997) { /* every 997th finite float */
            for (uint64_t i = 0; i < COUNT; i++)
                floats[i] = mrc_float_from_bits((uint32_t)((first + i * 997) % 0x7f800000) | (i % 2 ? 0x80000000 : 0));
            panel->to_half(COUNT, floats, halves);
            for (int i = 0; i < COUNT; i++) assert_int_equal(halves[i], mrc_half_from_float(floats[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half_round_trips), cmocka_unit_test(test_rounding_between_neighbors),
        cmocka_unit_test(test_rounding_at_the_edges),  cmocka_unit_test(test_nan),
        cmocka_unit_test(test_sweep_over_floats),      cmocka_unit_test(test_every_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
