/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers: Philox against its authors' known answers, moments, independence of sequences, permutations.
 *
 * Statistical bounds are six standard errors of the statistic (one false alarm in 10^9), and the seeds are fixed: a
 * failure means that the generator has changed, not bad luck.
 */
#include "support/check.h"

#include "core/numbers/random.h"

#include <math.h>
#include <stdbool.h>

static const mrc_rng base = {.seed = 0x0123456789abcdef, .sequence = 7};

/* ---- Philox -------------------------------------------------------------------------------------------------- */

static void test_known_answers(void **state)
{
    (void)state;
    /* kat_vectors of Random123: counter, key, result */
    static const uint32_t rows[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        mrc_philox4x32(rows[i], rows[i] + 4, out);
        assert_memory_equal(out, rows[i] + 6, sizeof out);
    }
}

/* Draw k is half (k mod 2) of block k / 2: any draw is available without the previous ones, in any order. */
static void test_draws_are_direct(void **state)
{
    (void)state;
    const uint64_t places[] = {0, 1, 2, 3, 1000001, UINT64_C(1) << 33, (UINT64_C(1) << 63) + 5};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t block = places[i] / 2;
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)base.sequence,
                                     (uint32_t)(base.sequence >> 32)};
        const uint32_t key[2] = {(uint32_t)base.seed, (uint32_t)(base.seed >> 32)};
        uint32_t words[4];
        mrc_philox4x32(counter, key, words);
        uint64_t wanted = words[2 * (places[i] % 2)] | (uint64_t)words[2 * (places[i] % 2) + 1] << 32;
        assert_true(mrc_random_u64(base, places[i]) == wanted);
        assert_true(mrc_random_uniform(base, places[i]) == (double)(wanted >> 11) * 0x1p-53);
    }
}

/* ---- Moments ------------------------------------------------------------------------------------------------- */

enum { DRAWS = 200000 };

/* |mean of the statistic - expected| <= 6 sqrt(variance of one term / draws) */
static void check_mean(const char *what, double sum, double count, double expected, double variance)
{
    double error = fabs(sum / count - expected), bound = 6 * sqrt(variance / count);
    assert_that(error <= bound, "%s: off by %g, bound %g (seed %llx)", what, error, bound,
                (unsigned long long)base.seed);
}

static void test_uniform_moments(void **state)
{
    (void)state;
    double sum = 0, squares = 0, lagged = 0, previous = 0.5;
    for (uint64_t k = 0; k < DRAWS; k++) {
        double u = mrc_random_uniform(base, k);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
        lagged += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    check_mean("mean", sum, DRAWS, 0.5, 1.0 / 12);
    check_mean("variance", squares, DRAWS, 1.0 / 12, 1.0 / 80 - 1.0 / 144); /* fourth central moment 1/80 */
    check_mean("lag 1", lagged, DRAWS, 0, 1.0 / 144);
}

static void test_normal_moments(void **state)
{
    (void)state;
    double sums[5] = {0}, pairs = 0, even = 0;
    for (uint64_t k = 0; k < DRAWS; k++) {
        double x = mrc_random_normal(base, k), power = 1;
        assert_true(isfinite(x));
        for (int i = 1; i <= 4; i++) sums[i] += power *= x;
        if (k % 2 == 0)
            even = x;
        else
            pairs += even * x;
    }
    check_mean("mean", sums[1], DRAWS, 0, 1);
    check_mean("second moment", sums[2], DRAWS, 1, 2);       /* E x^4 - 1 = 2 */
    check_mean("third moment", sums[3], DRAWS, 0, 15);       /* E x^6 */
    check_mean("fourth moment", sums[4], DRAWS, 3, 105 - 9); /* E x^8 - 9 */
    check_mean("product of pairs", pairs, DRAWS / 2, 0, 1);
}

/* The 6-sigma quantile of chi-square with df degrees of freedom, by Wilson and Hilferty's cube-root approximation. */
static double chi_square_bound(double df)
{
    double s = 2 / (9 * df);
    return df * pow(1 - s + 6 * sqrt(s), 3);
}

static double chi_square(const int *counts, int cells, double draws)
{
    double sum = 0, expected = draws / cells;
    for (int i = 0; i < cells; i++) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void test_below(void **state)
{
    (void)state;
    int counts[7] = {0};
    for (uint64_t k = 0; k < 70000; k++) {
        int64_t draw = mrc_random_below(base, k, 7);
        assert_true(draw >= 0 && draw < 7);
        counts[draw]++;
        assert_int_equal(mrc_random_below(base, k, 1), 0);
        int64_t large = mrc_random_below(base, k, INT64_MAX);
        assert_true(large >= 0 && large < INT64_MAX);
    }
    double statistic = chi_square(counts, 7, 70000);
    assert_that(statistic <= chi_square_bound(6), "chi-square %g, bound %g", statistic, chi_square_bound(6));
}

/* Neighboring seeds and sequences share no draw and are uncorrelated. */
static void test_sequences_differ(void **state)
{
    (void)state;
    const mrc_rng others[] = {{base.seed + 1, base.sequence},
                              {base.seed, base.sequence + 1},
                              {base.seed ^ UINT64_C(1) << 40, base.sequence},
                              {base.seed, base.sequence | UINT64_C(1) << 40}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double products = 0;
        for (uint64_t k = 0; k < 20000; k++) {
            assert_true(mrc_random_u64(base, k) != mrc_random_u64(others[i], k));
            products += (mrc_random_uniform(base, k) - 0.5) * (mrc_random_uniform(others[i], k) - 0.5);
        }
        check_mean("product of two sequences", products, 20000, 0, 1.0 / 144);
    }
}

/* ---- Permutations -------------------------------------------------------------------------------------------- */

static void check_bijection(mrc_rng rng, int64_t n)
{
    unsigned char *seen = calloc((size_t)n, 1);
    assert_non_null(seen);
    for (int64_t k = 0; k < n; k++) {
        int64_t value = mrc_random_permutation(rng, n, k);
        assert_that(value >= 0 && value < n, "n %lld, k %lld gives %lld", (long long)n, (long long)k, (long long)value);
        assert_that(!seen[value], "n %lld: %lld comes twice (seed %llx)", (long long)n, (long long)value,
                    (unsigned long long)rng.seed);
        seen[value] = 1;
    }
    free(seen);
}

static void test_permutation_is_a_bijection(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++) check_bijection((mrc_rng){(uint64_t)n, 3}, n);
    const int64_t large[] = {1000, 65536, 65537, 100003};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_bijection(base, large[i]);
    for (int64_t k = 0; k < 100; k++) { /* too many values to count: only checks the range */
        int64_t value = mrc_random_permutation(base, INT64_C(1) << 40, k);
        assert_true(value >= 0 && value < INT64_C(1) << 40);
    }
}

/* Returns the rank of an order of 0 .. n - 1 among all n! orders (Lehmer code). */
static int order_rank(const int64_t *order, int n)
{
    int rank = 0;
    for (int i = 0; i < n; i++) {
        int smaller = 0;
        for (int j = i + 1; j < n; j++) smaller += order[j] < order[i];
        rank = rank * (n - i) + smaller;
    }
    return rank;
}

static void check_orders(int n, int factorial, int repeats)
{
    int counts[24] = {0};
    for (int r = 0; r < repeats; r++) {
        int64_t order[4];
        for (int k = 0; k < n; k++) order[k] = mrc_random_permutation((mrc_rng){base.seed, (uint64_t)r}, n, k);
        counts[order_rank(order, n)]++;
    }
    double statistic = chi_square(counts, factorial, repeats), bound = chi_square_bound(factorial - 1);
    assert_that(statistic <= bound, "n = %d: chi-square %g, bound %g", n, statistic, bound);
}

static void test_all_orders_are_equally_likely(void **state)
{
    (void)state;
    check_orders(2, 2, 2000);
    check_orders(3, 6, 6000);
    check_orders(4, 24, 12000);
}

/* For large n the position of the first element is uniform over 16 equal parts, and a permutation has about one
   fixed point. */
static void test_large_permutations_mix(void **state)
{
    (void)state;
    enum { N = 4096, SEEDS = 4000 };
    int counts[16] = {0};
    for (int r = 0; r < SEEDS; r++) counts[mrc_random_permutation((mrc_rng){(uint64_t)r, 1}, N, 0) / (N / 16)]++;
    double statistic = chi_square(counts, 16, SEEDS);
    assert_that(statistic <= chi_square_bound(15), "chi-square %g, bound %g", statistic, chi_square_bound(15));
    double fixed = 0;
    for (int r = 0; r < 100; r++)
        for (int64_t k = 0; k < N; k++) fixed += mrc_random_permutation((mrc_rng){(uint64_t)r, 2}, N, k) == k;
    check_mean("fixed points", fixed, 100, 1, 1); /* mean and variance of the number of fixed points are 1 */
}

static void test_permutation_depends_on_seed_and_sequence(void **state)
{
    (void)state;
    int same_seed = 0, same_sequence = 0;
    for (int64_t k = 0; k < 1000; k++) {
        int64_t value = mrc_random_permutation(base, 1000, k);
        same_seed += value == mrc_random_permutation((mrc_rng){base.seed, base.sequence + 1}, 1000, k);
        same_sequence += value == mrc_random_permutation((mrc_rng){base.seed + 1, base.sequence}, 1000, k);
    }
    /* Two random permutations agree in about 1 position, with variance 1. */
    assert_that(same_seed <= 1 + 6 && same_sequence <= 1 + 6, "%d and %d places agree", same_seed, same_sequence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_draws_are_direct),
        cmocka_unit_test(test_uniform_moments),
        cmocka_unit_test(test_normal_moments),
        cmocka_unit_test(test_below),
        cmocka_unit_test(test_sequences_differ),
        cmocka_unit_test(test_permutation_is_a_bijection),
        cmocka_unit_test(test_all_orders_are_equally_likely),
        cmocka_unit_test(test_large_permutations_mix),
        cmocka_unit_test(test_permutation_depends_on_seed_and_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
