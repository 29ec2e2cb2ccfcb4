/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exppower kernels in float, K = exp(-y), y = e^p, p = b log(a s): the logarithm, the exponential of positive numbers,
 * and the kernel map, which are bitwise identical on every instruction set. The tests walk the floats from 0 to the
 * largest in steps of 101 bit patterns, for kernels in steps of 499; MERCER_TEST_LONG=1 tests every float (takes some
 * minutes).
 *
 * Errors, with u = 2^-24:
 *
 *   log  x = 2^k m, f = m - 1 exact, |f| < 0.415. s (f - 2 z Q) has three roundings and is at most 0.071: 0.21 u. Its
 *        difference from f, log m, is below 0.35, where half an ulp is u / 4; Q adds 0.01 u: 0.47 u in all.
 *        k = 0:   log m itself. s (f - ..) is at most a fifth of log m, so three of its roundings, 0.62 u of log m, and
 *                 half an ulp: 1.2 ulp, and relatively 1.65 u.
 *        k != 0:  |log x| >= 0.346. The sum with the small part of k ln 2 rounds once more by u / 4: 0.72 u before the
 *                 last sum. For |log x| < 1/2, where an ulp is u / 2, that is 1.44 ulp, and 0.5 for the last sum: 1.94
 *                 ulp, relatively 2.8 u. Elsewhere the error is smaller.
 *   p    a and a s are rounded: error 2 u of log, 2 b u of p. log adds 2.8 u, b and the product u each, relatively:
 *        e_p = u (2 b + 4.8 |p|)
 *   y    exp is within 1.5 ulp, 3 u:  e_y = y (e_p + 3 u)
 *   K    e_K = K (e_y + 3 u), plus 1.5 times the smallest float where K is subnormal
 *
 * e_p and e_y are below 2^-10 as long as K is not 0, so terms of second order are covered by 1 + 2^-9. Where a s is
 * subnormal or 0, y <= 2^(-126 b) < 2^-25 because b is at least 0.2, so K rounds to 1; where a s is infinite, K is 0.
 */
#include "support/check.h"

#include "backends/cpu/micro/uk_math_body.h"
#include "backends/cpu/micro/ukernels.h"
#include "kernels/formulas.h"

#include <float.h>
#include <math.h>

enum { BATCH = 4096 };

static float float_at(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static const uint64_t largest = 0x7f7fffff;

/* Fill a batch with every `step`-th float from bit pattern `from` on, up to `end`. Return the next bit pattern. */
static uint64_t fill(float *input, uint64_t from, uint64_t end, uint64_t step)
{
    if (getenv("MERCER_TEST_LONG")) step = 1;
    for (uint64_t i = 0; i < BATCH; i++) {
        uint64_t at = from + i * step;
        input[i] = float_at(at < end ? at : end);
    }
    return from + BATCH * step;
}

/* ---- Elementary functions ---------------------------------------------------------------------------------------- */

/* Compile for FMA: without it every fma is a library call. Results are bitwise identical with and without this flag. */
#if defined(__x86_64__) && defined(__GNUC__)
#define FAST __attribute__((target("avx2,fma")))
static bool fast(void)
{
    return mrc_isa_best() >= MRC_ISA_AVX2;
}
#else
#define FAST
static bool fast(void)
{
    return false;
}
#endif

static void log_plain(const float *in, float *out)
{
    for (int i = 0; i < BATCH; i++) out[i] = log_f32(in[i]);
}
FAST static void log_fast(const float *in, float *out)
{
    for (int i = 0; i < BATCH; i++) out[i] = log_f32(in[i]);
}

static double ulp_of(double value)
{
    return value == 0 ? 0x1p-149 : ldexp(1, ilogb(value) - 23);
}

static void test_log(void **state)
{
    (void)state;
    static float in[BATCH], out[BATCH];
    double worst = 0, relative = 0;
    for (uint64_t at = 1; at <= largest;) {
        at = fill(in, at, largest, 101);
        fast() ? log_fast(in, out) : log_plain(in, out);
        for (int i = 0; i < BATCH; i++) {
            double exact = log((double)in[i]), off = fabs((double)out[i] - exact);
            assert_that(off <= 2 * ulp_of(exact), "log(%a) = %a, off by %g ulp", (double)in[i], (double)out[i],
                        off / ulp_of(exact));
            assert_that(off <= 2.8 * 0x1p-24 * fabs(exact), "log(%a) = %a", (double)in[i], (double)out[i]);
            worst = fmax(worst, off / ulp_of(exact));
            relative = fmax(relative, exact == 0 ? 0 : off / fabs(exact));
        }
    }
    print_message("log: at most %.3f ulp, and %.3f u of itself\n", worst, relative * 0x1p24);
    in[0] = 1, in[1] = 0;
    log_plain(in, out);
    assert_true(out[0] == 0 && fabs((double)out[1] + 167 * log(2)) < 1e-4);
}

/* exp of 0 to 7, the arguments from which t^b is computed, by the Gaussian map with factor 1. */
static void test_exp(void **state)
{
    (void)state;
    const mrc_map map = {.id = MRC_KERNEL_GAUSSIAN, .a = 1, .in_float = true};
    static float in[BATCH], best[BATCH], other[BATCH];
    for (uint64_t at = 0; at <= 0x40e00000;) {
        at = fill(in, at, 0x40e00000, 101);
        memcpy(best, in, sizeof best);
        mrc_ukernels_for(mrc_isa_best()).panel->map_f32(&map, BATCH, best);
        for (int i = 0; i < BATCH; i++) {
            double exact = exp((double)in[i]);
            assert_that(fabs((double)best[i] - exact) <= 1.5 * ulp_of(exact), "exp(%a) = %a", (double)in[i],
                        (double)best[i]);
        }
        for (int isa = 0; isa < (int)mrc_isa_best(); isa++) {
            memcpy(other, in, sizeof other);
            mrc_ukernels_for((mrc_isa)isa).panel->map_f32(&map, BATCH, other);
            assert_memory_equal(other, best, sizeof best);
        }
    }
}

/* ---- The kernel -------------------------------------------------------------------------------------------------- */

static mrc_map map_for(const char *spec, mercer_kernel *kernel)
{
    assert_succeeds(NULL, mrc_kernel_parse(NULL, kernel, spec));
    return mrc_map_for(kernel);
}

/* Check the value `got` at one s; return its error as a fraction of the bound. */
static double check_value(const char *spec, const mrc_map *map, float s, float got)
{
    const double u = 0x1p-24, b = map->b, p = b * (log(map->a) + log((double)s)), y = exp(p), exact = exp(-y);
    double e_y = y * (u * (2 * b + 4.8 * fabs(p)) + 3 * u) * (1 + 0x1p-9);
    double bound = s > 0 ? exact * (e_y + 3 * u) * (1 + 0x1p-9) + 1.5 * 0x1p-149 : 0;
    double off = fabs((double)got - (s > 0 ? exact : 1));
    assert_that(off <= bound, "%s: K(%a) = %a, wanted %a, off by %g, bound %g", spec, (double)s, (double)got, exact,
                off, bound);
    return bound > 0 ? off / bound : 0;
}

static void test_kernels(void **state)
{
    (void)state;
    /* Some bandwidths make the product a s overflow or underflow to 0 for some floats s. */
    static const char *const specs[] = {"exppower:bandwidth=1,gamma=0.4",      "exppower:bandwidth=10,gamma=1.3",
                                        "exppower:bandwidth=0.03,gamma=2",     "exppower:bandwidth=1e15,gamma=0.4",
                                        "exppower:bandwidth=1e-15,gamma=0.4",  "exppower-l1:bandwidth=3,gamma=0.7",
                                        "exppower-l1:bandwidth=1e-4,gamma=0.2"};
    static float in[BATCH], best[BATCH], other[BATCH];
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        mercer_kernel kernel;
        const mrc_map map = map_for(specs[k], &kernel);
        double worst = 0;
        uint64_t batches = 0;
        assert_true(map.in_float);
        for (uint64_t at = 0; at <= largest; batches++) {
            at = fill(in, at, largest, 499);
            memcpy(best, in, sizeof best);
            mrc_ukernels_for(mrc_isa_best()).panel->map_f32(&map, BATCH, best);
            for (int i = 0; i < BATCH; i++) worst = fmax(worst, check_value(specs[k], &map, in[i], best[i]));
            for (int isa = 0; isa < (int)mrc_isa_best(); isa++) {
                if (isa == MRC_ISA_SCALAR && batches % 4) continue; /* slow: a quarter of the batches */
                memcpy(other, in, sizeof other);
                mrc_ukernels_for((mrc_isa)isa).panel->map_f32(&map, BATCH, other);
                assert_memory_equal(other, best, sizeof best);
            }
        }
        print_message("%s: at most %.2f of the bound\n", specs[k], worst);
    }
}

/* Exponents so small that values beyond the range of float matter are evaluated in double. */
static void test_small_exponents(void **state)
{
    (void)state;
    static const char *const wide[] = {"exppower:bandwidth=1,gamma=0.39", "exppower-l1:bandwidth=1,gamma=0.19"};
    for (int k = 0; k < 2; k++) {
        mercer_kernel kernel, slope;
        mrc_map map = map_for(wide[k], &kernel);
        assert_true(map.id != 0 && !map.in_float);
        assert_true(mrc_kernel_slope(&kernel, &slope));
        assert_false(mrc_map_for(&slope).in_float);
    }
}

static void test_ends(void **state)
{
    (void)state;
    mercer_kernel kernel;
    const mrc_map map = map_for("exppower:bandwidth=2,gamma=0.4", &kernel);
    float values[BATCH] = {0.0f, INFINITY, FLT_MAX, 0x1p-149f};
    mrc_ukernels_for(mrc_isa_best()).panel->map_f32(&map, BATCH, values);
    assert_true(values[0] == 1 && values[1] == 0 && values[2] == 0 && values[3] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_exp),
                                       cmocka_unit_test(test_kernels), cmocka_unit_test(test_small_exponents),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
