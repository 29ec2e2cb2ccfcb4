/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The elementary functions of the vector code in double, against the C library in long double: errors stay within the
 * bounds derived in uk_math_body.h. Rounded to float, log and acos are at most 1 ulp off: every 101st float bit
 * pattern, or all of them with MERCER_TEST_LONG=1 (some minutes). The kernels built from them have the same bits on
 * every instruction set.
 */
#include "support/check.h"

#include "support/info.h"

#include "backends/cpu/micro/uk_math_body.h"
#include "backends/cpu/micro/ukernels.h"
#include "core/numbers/random.h"
#include "kernels/table.h"

#include <float.h>
#include <math.h>

enum { BATCH = 4096 };

/* Compiled for FMA, because otherwise every fma would be a library call. Results are bitwise identical with and without
   this flag. */
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

typedef void (*batch_function)(const double *in, double *out);
#define BATCH_OF(name)                                              \
    static void name##_plain(const double *in, double *out)         \
    {                                                               \
        for (int i = 0; i < BATCH; i++) out[i] = name##_f64(in[i]); \
    }                                                               \
    FAST static void name##_fast(const double *in, double *out)     \
    {                                                               \
        for (int i = 0; i < BATCH; i++) out[i] = name##_f64(in[i]); \
    }                                                               \
    static void name##_batch(const double *in, double *out)         \
    {                                                               \
        fast() ? name##_fast(in, out) : name##_plain(in, out);      \
    }
BATCH_OF(exp)
BATCH_OF(log)
BATCH_OF(log1p)
BATCH_OF(acos)

/* ---- All floats ---------------------------------------------------------------------------------------------- */

/* Map floats to integers in ascending order, negative ones first: neighbors differ by 1. */
static int64_t place_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x80000000u ? -(int64_t)(bits & 0x7fffffffu) : (int64_t)bits;
}

static float float_at(int64_t place)
{
    uint32_t bits = place < 0 ? 0x80000000u | (uint32_t)-place : (uint32_t)place;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_floats(float first, float last, batch_function ours, double (*library)(double), const char *name)
{
    const int64_t step = getenv("MERCER_TEST_LONG") ? 1 : 101;
    int64_t worst = 0;
    static double in[BATCH], out[BATCH];
    for (int64_t place = place_of(first); place <= place_of(last); place += step * BATCH) {
        for (int64_t i = 0; i < BATCH; i++) {
            int64_t at = place + i * step;
            in[i] = (double)float_at(at < place_of(last) ? at : place_of(last));
        }
        ours(in, out);
        for (int i = 0; i < BATCH; i++) {
            int64_t off = place_of((float)out[i]) - place_of((float)library(in[i]));
            off = off < 0 ? -off : off;
            assert_that(off <= 1, "%s(%a) = %a, off by %d ulp of float", name, in[i], out[i], (int)off);
            worst = off > worst ? off : worst;
        }
    }
    print_message("%s: worst difference from the correctly rounded float %d ulp\n", name, (int)worst);
}

static void test_floats(void **state)
{
    (void)state;
    check_floats(float_at(1), FLT_MAX, log_batch, log, "log");
    check_floats(0, FLT_MAX, log1p_batch, log1p, "log1p");
    check_floats(-1, 1, acos_batch, acos, "acos");
    check_floats(-800, 0, exp_batch, exp, "exp");
}

/* ---- Doubles ------------------------------------------------------------------------------------------------- */

typedef struct range {
    double low, high;
    bool logarithmic; /* evenly spaced over exponents */
} range;

static void check_doubles(range over, batch_function ours, long double (*library)(long double), double bound,
                          const char *name)
{
    static double in[BATCH], out[BATCH];
    double worst = 0;
    for (uint64_t batch = 0; batch < 100; batch++) {
        for (uint64_t i = 0; i < BATCH; i++) {
            double part = mrc_random_uniform((mrc_rng){77, 1}, batch * BATCH + i);
            in[i] = over.logarithmic ? exp(log(over.low) + part * (log(over.high) - log(over.low)))
                                     : over.low + part * (over.high - over.low);
        }
        ours(in, out);
        for (int i = 0; i < BATCH; i++) {
            long double exact = library((long double)in[i]);
            double size = fabs((double)exact);
            double ulp = size < DBL_MIN ? 0x1p-1074 : ldexp(1, ilogb(size) - 52);
            double off = (double)(fabsl((long double)out[i] - exact) / (long double)ulp);
            assert_that(off <= bound, "%s(%a) = %a, off by %g ulp", name, in[i], out[i], off);
            worst = fmax(worst, off);
        }
    }
    print_message("%s on [%g, %g]: at most %.3f ulp of double\n", name, over.low, over.high, worst);
}

static void test_doubles(void **state)
{
    (void)state;
    check_doubles((range){-40, 0, false}, exp_batch, expl, 1.2, "exp");
    check_doubles((range){-745, 0, false}, exp_batch, expl, 1.2, "exp");
    check_doubles((range){0, 7, false}, exp_batch, expl, 1.2, "exp");
    check_doubles((range){0.5, 2, false}, log_batch, logl, 1.6, "log");
    check_doubles((range){1e-323, 1e308, true}, log_batch, logl, 1.6, "log");
    check_doubles((range){1e-30, 1e30, true}, log1p_batch, log1pl, 3.2,
                  "log1p"); /* error of the log, plus a sum and a quotient */
    check_doubles((range){-1, 1, false}, acos_batch, acosl, 2.5, "acos");
    check_doubles((range){0.999, 1, false}, acos_batch, acosl, 2.5, "acos");
}

static void test_ends(void **state)
{
    (void)state;
    static double in[BATCH] = {0.0, -0.0, -INFINITY, -1e300, -746, 1, -1, 0.5, -0.5}, out[BATCH];
    exp_batch(in, out);
    assert_true(out[0] == 1 && out[1] == 1 && out[2] == 0 && out[3] == 0 && out[4] == 0);
    acos_batch(in, out);
    assert_true(out[5] == 0 && out[6] == acos(-1) && out[0] == acos(0));
    log_batch(in, out);
    assert_true(out[5] == 0);
    log1p_batch(in, out);
    assert_true(out[0] == 0);
}

/* ---- Kernels on every instruction set ------------------------------------------------------------------------- */

static void evaluate(mrc_isa isa, const mercer_kernel *kernel, const double *in, double *out)
{
    static double across[BATCH];
    const mrc_panel_ops *panel = mrc_ukernels_for(isa).panel;
    for (int i = 0; i < BATCH; i++) across[i] = 100 + i;
    memcpy(out, in, BATCH * sizeof *out);
    const mrc_map map = mrc_map_for(kernel);
    if (mrc_kernel_is_angular(kernel))
        panel->angular(&map, BATCH, in, across, in[7], out);
    else
        panel->map_f64(&map, BATCH - 3, out); /* not a whole number of vectors */
}

static void test_same_bits(void **state)
{
    (void)state;
    static const char *const further[] = {"polynomial:degree=5,scale=0.01", "ntk:depth=4,bias=0.1", "nngp:depth=3"};
    const int count = mrc_kernel_table_size;
    static double in[BATCH], first[BATCH], other[BATCH];
    for (int m = 0; m < count + 3; m++) {
        mercer_kernel kernel;
        assert_succeeds(NULL, mrc_kernel_parse(NULL, &kernel, m < count ? kernel_info(m).example : further[m - count]));
        if (mrc_map_for(&kernel).id == 0) continue; /* has no vector form */
        for (uint64_t i = 0; i < BATCH; i++) {
            double part = mrc_random_uniform((mrc_rng){78, (uint64_t)m}, i);
            in[i] = i % 5 == 0 ? 0 : i % 3 == 0 ? exp(60 * part - 30) : 200 * part;
        }
        in[7] = 107; /* inner product equal to the norm: equal rows */
        evaluate(MRC_ISA_SCALAR, &kernel, in, first);
        for (int i = 0; i < BATCH; i++) assert_true(isfinite(first[i]));
        for (int isa = 1; isa <= (int)mrc_isa_best(); isa++) {
            evaluate((mrc_isa)isa, &kernel, in, other);
            assert_memory_equal(first, other, sizeof first);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats), cmocka_unit_test(test_doubles),
                                       cmocka_unit_test(test_ends), cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
