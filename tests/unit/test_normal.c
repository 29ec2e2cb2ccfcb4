/* SPDX-License-Identifier: BSD-3-Clause */
/* Random words and normal numbers generated in bulk: the words equal those generated one by one, and the distribution
   of the normal numbers is counted exactly. */
#include "support/check.h"

#include "core/numbers/random_normal.h"

#include <math.h>

static const mrc_rng base = {0x123456789abcdef0u, 0xfedcba9876543210u};

/* Word k is half of 64-bit draw k / 2, for any start and length of the request. */
static void test_words_are_those_of_philox(void **state)
{
    (void)state;
    uint32_t words[200];
    const uint64_t firsts[] = {0, 4, 32, 1000, (UINT64_C(1) << 34) - 8};
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++)
        for (int64_t count = 1; count <= 200; count += 33) {
            mrc_random_words(base, firsts[f], count, words);
            for (int64_t i = 0; i < count; i++) {
                uint64_t k = firsts[f] + (uint64_t)i, pair = mrc_random_u64(base, k / 2);
                assert_true(words[i] == (uint32_t)(k % 2 ? pair >> 32 : pair));
            }
        }
}

static void test_normals_do_not_depend_on_the_request(void **state)
{
    (void)state;
    mrc_normal_table table;
    mrc_normal_table_init(&table);
    float all[300], some[300];
    mrc_random_normals(&table, base, 0, 300, all);
    for (int first = 0; first < 300; first += 52)
        for (int count = 1; count <= 300 - first; count += 37) {
            some[count < 300 ? count : 0] = 99;
            mrc_random_normals(&table, base, (uint64_t)first, count, some);
            assert_memory_equal(some, all + first, (size_t)count * sizeof *some);
            if (count < 300) assert_true(some[count] == 99);
        }
}

/* Return P(4 T[a] + 3 T[b] <= x) over all 2^24 pairs, with an index that moves down as T[a] increases. */
static double distribution(const mrc_normal_table *table, double x)
{
    double pairs = 0;
    int below = MRC_NORMAL_ATOMS;
    for (int a = 0; a < MRC_NORMAL_ATOMS; a++) {
        double most = (x * 5 * 4096 - 4 * table->atoms[a]) / 3;
        while (below > 0 && table->atoms[below - 1] > most) below--;
        pairs += below;
    }
    return pairs / MRC_NORMAL_ATOMS / MRC_NORMAL_ATOMS;
}

static void test_law(void **state)
{
    (void)state;
    mrc_normal_table table;
    mrc_normal_table_init(&table);
    double squares = 0, fourth = 0;
    for (int i = 0; i < MRC_NORMAL_ATOMS; i++) {
        assert_int_equal(table.atoms[i], -table.atoms[MRC_NORMAL_ATOMS - 1 - i]);
        if (i > 0) assert_true(table.atoms[i] >= table.atoms[i - 1]);
        double atom = table.atoms[i] / 4096.0;
        squares += atom * atom / MRC_NORMAL_ATOMS;
        fourth += atom * atom * atom * atom / MRC_NORMAL_ATOMS;
    }
    assert_that(fabs(squares - 1) < 1e-4, "variance %.8f", squares);
    assert_that(fabs(fourth - 3) < 5e-3, "fourth moment %.6f", fourth);
    for (double x = -6; x <= 6; x += 0.0137) {
        double error = fabs(distribution(&table, x) - 0.5 * erfc(-x / sqrt(2)));
        assert_that(error < 2e-5, "P(z <= %g) is off by %g", x, error);
    }
}

/* The generated numbers have that distribution: mean, variance, and no correlation between neighbors or streams. */
static void test_samples(void **state)
{
    (void)state;
    enum { N = 400000 };
    mrc_normal_table table;
    mrc_normal_table_init(&table);
    float *z = malloc(N * sizeof *z), *other = malloc(N * sizeof *z);
    assert_true(z && other);
    mrc_random_normals(&table, base, 0, N, z);
    mrc_random_normals(&table, (mrc_rng){base.seed, base.sequence + 1}, 0, N, other);
    double sum = 0, squares = 0, lag = 0, cross = 0, inside = 0;
    for (int i = 0; i < N; i++) {
        double x = (double)z[i];
        sum += x;
        squares += x * x;
        lag += x * (double)z[(i + 1) % N];
        cross += x * (double)other[i];
        inside += fabs(x) < 1;
    }
    double six = 6 / sqrt(N); /* six standard deviations of a mean of numbers of variance 1 */
    assert_that(fabs(sum / N) < six, "mean %g", sum / N);
    assert_that(fabs(squares / N - 1) < six * sqrt(2), "variance %g", squares / N);
    assert_that(fabs(lag / N) < six && fabs(cross / N) < six, "correlations %g, %g", lag / N, cross / N);
    assert_that(fabs(inside / N - 0.6826895) < six * 0.466, "inside one deviation: %g", inside / N);
    free(z), free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_those_of_philox),
        cmocka_unit_test(test_normals_do_not_depend_on_the_request),
        cmocka_unit_test(test_law),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
