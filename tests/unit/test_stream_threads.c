/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples made by several threads: the same bytes as with one thread, for all transformations. */
#include "support/counted.h"

#include "core/matrix.h"
#include "data/stream/dataset_stream.h"

#include <stdlib.h>

static mercer_context *context;

static mercer_source open_source(mercer_dataset *data, const mercer_preprocess *preprocess, const char *augment,
                                 mercer_switch prefetch, int threads)
{
    mercer_source out;
    const mercer_stream_options stream = {
        .seed = 3, .preprocess = preprocess, .augment = augment, .samples = 1000, .prefetch = prefetch};
    const mrc_data_stream_options options = {.stream = stream, .threads = threads};
    assert_succeeds(context, mrc_data_stream_create(&out, context, data, &options));
    return out;
}

static void assert_same_rows(const mercer_matrix *a, const mercer_matrix *b)
{
    assert_true(a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype);
    for (int64_t i = 0; i < a->rows; i++)
        assert_memory_equal(mrc_row(a, i), mrc_row(b, i), (size_t)(a->cols * mrc_dtype_size(a->dtype)));
}

static void compare(mercer_dataset *data, const mercer_preprocess *preprocess, const char *augment)
{
    static const int counts[] = {2, 3, 16};
    for (int way = 0; way < 6; way += SANITIZED ? 3 : 1) {
        mercer_switch prefetch = way % 2 ? MERCER_ON : MERCER_OFF;
        mercer_source one = open_source(data, preprocess, augment, MERCER_OFF, 1),
                      many = open_source(data, preprocess, augment, prefetch, counts[way / 2]);
        for (int64_t pass = 0; pass < 2; pass++) {
            assert_int_equal(one.restart(one.user, pass), 0);
            assert_int_equal(many.restart(many.user, pass), 0);
            for (int64_t rows = 1, most = 300; rows > 0; most -= 37) {
                mercer_batch a, b;
                assert_int_equal(one.next(one.user, most, &a), 0);
                assert_int_equal(many.next(many.user, most, &b), 0);
                assert_same_rows(&a.X, &b.X);
                assert_same_rows(&a.Y, &b.Y);
                rows = a.X.rows;
                if (most < 50) most = 350;
            }
        }
        mercer_source_free(&one);
        mercer_source_free(&many);
    }
}

static void test_all_ways(void **state)
{
    context = ((fixture *)*state)->context;
    static const char *const specs[] = {"digits", "spirals:classes=3", "teacher:d=20,c=3,centers=5,noise=0.1"};
    for (int i = 0; i < 3; i++) {
        mercer_dataset *data;
        mercer_preprocess *preprocess;
        assert_succeeds(context, mercer_dataset_synthesize(&data, context, specs[i], 10, 700, 5));
        assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, "standardize", data));
        compare(data, NULL, NULL);
        compare(data, preprocess, NULL);
        compare(data, NULL, "noise:sigma=0.3");
        compare(data, preprocess, i == 0 ? "shift:pixels=2+noise:sigma=10+flip" : "noise:sigma=0.2");
        compare(data, NULL, "mixup:alpha=0.4");
        compare(data, preprocess, "noise:sigma=0.1+mixup:alpha=0.4");
        mercer_preprocess_free(preprocess);
        mercer_dataset_free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_ways)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
