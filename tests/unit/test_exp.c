/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The float exponential of every instruction set: at most 1 ulp from the correctly rounded result, and bitwise
 * identical on all of them. The test walks the floats from -0 to -infinity in steps of 101 bit patterns;
 * MERCER_TEST_LONG=1 tests every float (takes some minutes).
 */
#include "backends/cpu/micro/ukernels.h"
#include "kernels/formulas.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 4096 };

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Replace each value x by exp(x), computed by the Gaussian map with factor 1. */
static void map_exp(mrc_isa isa, float *values)
{
    const mrc_map map = {.id = MRC_KERNEL_GAUSSIAN, .a = 1, .in_float = true};
    mrc_ukernels_for(isa).panel->map_f32(&map, BATCH, values);
}

static void test_one_ulp_and_equal_bits(void **state)
{
    (void)state;
    const uint32_t minus_infinity = 0xff800000u;
    const uint64_t step = getenv("MERCER_TEST_LONG") ? 1 : 101;
    /* Scalar code calls a library function for each fma and is slow, so its test runs only a tenth of the batches. */
    uint64_t batches = 0;
    uint32_t worst = 0;
    static float input[BATCH], best[BATCH], other[BATCH];
    for (uint64_t bits = 0x80000000u; bits <= minus_infinity; bits += step * BATCH, batches++) {
        for (uint64_t i = 0; i < BATCH; i++) {
            uint64_t at = bits + i * step;
            input[i] = from_bits((uint32_t)(at < minus_infinity ? at : minus_infinity));
        }
        memcpy(best, input, sizeof best);
        map_exp(mrc_isa_best(), best);
        for (int i = 0; i < BATCH; i++) {
            /* exp in double is accurate to 1 ulp of double, so the value rounded to float is the correctly rounded
               result except next to ties. */
            uint32_t right = to_bits((float)exp((double)input[i])), got = to_bits(best[i]);
            uint32_t off = right > got ? right - got : got - right;
            if (off > 1) fail_msg("exp(%a) = %a, off by %u ulp", (double)input[i], (double)best[i], off);
            if (off > worst) worst = off;
        }
        for (int isa = 0; isa < (int)mrc_isa_best(); isa++) {
            if (isa == MRC_ISA_SCALAR && batches % 10) continue;
            memcpy(other, input, sizeof other);
            map_exp((mrc_isa)isa, other);
            assert_memory_equal(other, best, sizeof best);
        }
    }
    print_message("exp: worst difference from the correctly rounded value %u ulp\n", worst);
}

static void test_ends(void **state)
{
    (void)state;
    float values[BATCH] = {0.0f, -0.0f, -INFINITY, -1e30f, -104.0f, -103.0f};
    map_exp(mrc_isa_best(), values);
    assert_true(values[0] == 1.0f && values[1] == 1.0f && values[2] == 0.0f && values[3] == 0.0f && values[4] == 0.0f);
    assert_true(values[5] == from_bits(1)); /* the smallest subnormal */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_ulp_and_equal_bits), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
