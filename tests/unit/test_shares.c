/* SPDX-License-Identifier: BSD-3-Clause */
/* Distribution of centers to shards, and of shards to ranks: every center once, as evenly as possible. */
#include "support/check.h"

#include "comm/comm.h"
#include "core/memory.h"

static void test_shards(void **state)
{
    static const int64_t sizes[] = {0, 1, 7, 8, 9, 127, 128, 129, 1000, 1001, 10000000, 10000003};
    static const int counts[] = {1, 3, 8, 11, 1024};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            int64_t p = sizes[i], next = 0, least = INT64_MAX, most = 0, first, rows;
            bool aligned = p >= 512 * (int64_t)counts[k];
            for (int s = 0; s < counts[k]; s++, next = first + rows) {
                mrc_shard_rows(p, counts[k], s, &first, &rows);
                assert_int_equal(first, next);
                assert_true(rows >= 0);
                if (aligned) assert_int_equal(first % 64, 0);
                least = mrc_min(least, rows);
                most = mrc_max(most, rows);
            }
            assert_int_equal(next, p);
            assert_that(most - least <= (aligned ? 127 : 1), "%lld centers in %d shards: %lld to %lld", (long long)p,
                        counts[k], (long long)least, (long long)most);
        }
}

static void test_ranks(void **state)
{
    static const int64_t sizes[] = {0, 3, 100, 5000, 1000003};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int ranks = 1; ranks <= 8; ranks++) {
            mrc_comm comm = {.ranks = ranks};
            int64_t next = 0, first, count;
            for (int r = 0; r < ranks; r++, next = first + count) {
                mrc_comm_rows(&comm, sizes[i], r, &first, &count);
                assert_int_equal(first, next);
            }
            assert_int_equal(next, sizes[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shards), cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
