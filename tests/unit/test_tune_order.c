/* SPDX-License-Identifier: BSD-3-Clause */
/* What a search tries and what it leaves out: arms, neighbours of bandwidths, ridges between those that were tried, and the
   fit of the last level that a budget always has room for. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "tune/tune.h"

#include <math.h>

enum { ROWS = 400, FITTED = ROWS - ROWS / 5, FEATURES = 4, ARMS = 3, SMOOTH = 2, FLAT = 3, KERNELS = 4 };
static const char *const names[KERNELS] = {"laplace-l1", "exppower-l1:gamma=0.9", "gaussian", "exppower-l1:gamma=0.3"};

static int64_t most_centers = ROWS;

/* Of a function of two features of four, with a budget, the kernels from `first` on. Centers may be all rows that are fitted to. */
static void search_within(double budget, int first, int arms, mrc_tune_result *out)
{
    static const char *const preparations[] = {"standardise"};
    static double x[ROWS][FEATURES], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < FEATURES; j++) x[i][j] = mrc_random_normal((mrc_rng){43, 0}, (uint64_t)(i * FEATURES + j));
        y[i] = floor(x[i][0]) + fabs(x[i][1]) + 0.05 * mrc_random_normal((mrc_rng){43, 1}, (uint64_t)i);
    }
    mercer_matrix X = mercer_matrix_view(x, ROWS, FEATURES, MERCER_F64), Y = mercer_matrix_view(y, ROWS, 1, MERCER_F64);
    mercer_dataset_arrays of = {.struct_size = sizeof of, .X = &X, .Y = &Y};
    mercer_dataset *data = NULL;
    mercer_kernel kernels[KERNELS];
    static const char *const texts[KERNELS] = {"laplace-l1:bandwidth=1", "exppower-l1:bandwidth=1,gamma=0.9",
                                               "gaussian:bandwidth=1", "exppower-l1:bandwidth=1,gamma=0.3"};
    for (int k = 0; k < KERNELS; k++) assert_succeeds(context, mercer_kernel_parse(&kernels[k], context, texts[k]));
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &of));
    mrc_tune_task task = {.context = context,
                          .data = data,
                          .kernels = kernels + first,
                          .kernel_count = arms,
                          .kernel_names = names + first,
                          .preparations = preparations,
                          .preparation_count = 1,
                          .rounds = 2,
                          .centers = most_centers,
                          .ridge = -1,
                          .criterion = MRC_HOLDOUT,
                          .budget = budget,
                          .rate = 1e9,
                          .memory = INT64_C(1) << 30};
    assert_succeeds(context, mrc_tune(&task, out));
    mercer_dataset_free(data);
}

static bool same_round(const mercer_tune_try *a, const mercer_tune_try *b)
{
    return a->kernel == b->kernel && a->round == b->round && a->centers == b->centers;
}

/* The smallest error of a kernel among fits with so many centers; NULL: of all kernels. */
static double smallest(const mrc_tune_result *found, const char *kernel, int64_t centers)
{
    double least = (double)INFINITY;
    for (int64_t i = 0; i < found->count; i++)
        if (found->tries[i].centers == centers && (!kernel || found->tries[i].kernel == kernel))
            least = fmin(least, found->tries[i].error);
    return least;
}

/* Arms that err by far more than the best are not tried with more centers; a bandwidth that a round came back to is not
   compared with its neighbours again, but at a level's end those of its best were tried; of the last level all rows that are
   fitted to are centers. */
static void test_left_out(void **state)
{
    (void)state;
    mrc_tune_result found;
    search_within(1e9, 0, ARMS, &found);
    assert_true(found.whole);
    const mercer_tune_try *tries = found.tries, *last = &tries[found.count - 1];
    int64_t alone = 0, with_best = 0;
    const int64_t sizes[] = {FITTED / 4, FITTED / 3, FITTED};
    assert_int_equal(last->centers, sizes[2]);
    const double most[] = {1.25, 1.05};
    for (int level = 0; level < 2; level++)
        for (int64_t i = 0; i < found.count; i++) {
            if (tries[i].centers != sizes[level + 1]) continue;
            double own = smallest(&found, tries[i].kernel, sizes[level]), best = smallest(&found, NULL, sizes[level]);
            assert_that(own <= most[level] * best, "%s: %g, %g of the best, goes on", tries[i].kernel, own, best);
        }
    assert_true(smallest(&found, names[2], sizes[0]) > 1.25 * smallest(&found, NULL, sizes[0]));
    const mercer_tune_try *best = NULL;
    for (int64_t i = 0; i < found.count; i++) {
        int64_t beside = 0;
        for (int64_t k = 0; k < found.count; k++) beside += k != i && same_round(&tries[k], &tries[i]);
        alone += beside == 0 && tries[i].centers < sizes[2];
        if (tries[i].centers == sizes[1] && (!best || tries[i].error < best->error)) best = &tries[i];
    }
    for (int64_t k = 0; k < found.count; k++) with_best += same_round(&tries[k], best);
    assert_true(alone > 0 && with_best >= 3);
    mrc_tune_free(&found);
}

/* A ridge between two that were tried is the lowest point of a parabola through the logarithms of three errors, the middle one
   being the smallest. */
static void test_ridges(void **state)
{
    (void)state;
    mrc_tune_result found;
    int64_t between = 0;
    search_within(1e9, 0, ARMS, &found);
    for (int64_t i = 0; i < found.count; i++) {
        const mercer_tune_try *one = &found.tries[i];
        int best = 0;
        for (int r = 1; r < found.ridge_count; r++)
            if (one->errors[r] < one->errors[best]) best = r;
        assert_true(one->error == one->errors[best]);
        double at = log10(one->ridge / found.ridges[best]); /* in steps */
        if (best == 0 || best + 1 == found.ridge_count) {
            assert_true(one->ridge == found.ridges[best]);
            continue;
        }
        double a = log(one->errors[best - 1]), b = log(one->errors[best]), c = log(one->errors[best + 1]);
        double slope = (c - a) / 2, bend = c - 2 * b + a;
        assert_true(fabs(at) <= 0.5 + 1e-12);
        assert_that(fabs(slope + bend * at) <= 1e-9 * bend, "slope %g, bend %g at %g", slope, bend, at);
        between += fabs(at) > 0.01;
    }
    assert_true(between > 5 && found.ridge > 0);
    mrc_tune_free(&found);
}

/* With fewer centers than rows, ridges are those that were tried. */
static void test_no_ridges_between(void **state)
{
    (void)state;
    mrc_tune_result found;
    most_centers = FITTED / 2;
    search_within(1e9, 0, ARMS, &found);
    most_centers = ROWS;
    for (int64_t i = 0; i < found.count; i++) {
        bool tried = false;
        for (int r = 0; r < found.ridge_count; r++) tried = tried || found.tries[i].ridge == found.ridges[r];
        assert_true(tried);
    }
    mrc_tune_free(&found);
}

/* A gaussian errs far more with half the bandwidth or twice. At the last level it has further metrics, and of the best two fits
   more, half a step to both sides: the multiple is where the parabola through the logarithms of the three errors is lowest,
   the ridge that of the nearest of them. Of a kernel whose error is flat there is nothing of it. */
static void test_half_steps(void **state)
{
    (void)state;
    for (int smooth = 0; smooth < 2; smooth++) {
        mrc_tune_result found;
        search_within(1e9, smooth ? SMOOTH : FLAT, 1, &found);
        const mercer_tune_try *below = &found.tries[found.count - 2], *above = below + 1, *middle = NULL;
        int64_t rounds = 0;
        for (int64_t i = 0; i < found.count; i++) {
            const mercer_tune_try *one = &found.tries[i];
            bool whole = log2(one->multiple) == round(log2(one->multiple));
            assert_true(whole || (smooth && one >= below));
            rounds += one->centers == FITTED && whole;
            if (one->centers == FITTED && whole && (!middle || one->error < middle->error)) middle = one;
        }
        assert_true(smooth ? rounds > 1 : rounds == 1);
        if (smooth) {
            assert_true(below->round == middle->round && above->round == middle->round);
            assert_true(fabs(below->multiple / middle->multiple - sqrt(0.5)) < 1e-12);
            assert_true(fabs(above->multiple / middle->multiple - sqrt(2)) < 1e-12);
            double a = log(below->error), b = log(middle->error), c = log(above->error), bend = c - 2 * b + a;
            double at = 2 * log2(found.multiple / middle->multiple);
            assert_true(bend > 0 && fabs(at) <= 1);
            assert_true(fabs(at) == 1 ? (a - c) / bend / 2 * at >= 1 : fabs((c - a) / 2 + bend * at) < 1e-9 * bend);
            assert_true(found.ridge == (at < -0.5 ? below : at > 0.5 ? above : middle)->ridge);
            assert_true(found.error == fmin(middle->error, fmin(below->error, above->error)));
        }
        mrc_tune_free(&found);
    }
}

/* A budget that ends the search early leaves one fit of the last level, unless that would be more than half of it. */
static void test_last_fit(void **state)
{
    (void)state;
    mrc_tune_result whole, cut;
    search_within(1e9, 0, ARMS, &whole);
    const mercer_tune_try *last = &whole.tries[whole.count - 1];
    for (int part = 1; part < 8; part += 3) {
        double budget = whole.seconds * part / 8;
        int64_t fits = 0;
        search_within(budget, 0, ARMS, &cut);
        assert_true(!cut.whole && cut.seconds <= budget && cut.count < whole.count);
        for (int64_t i = 0; i < cut.count; i++) fits += cut.tries[i].centers == last->centers;
        assert_that(fits > 0 || part < 4, "%d / 8 of the budget: none of %lld fits is of the last level", part,
                    (long long)cut.count);
        assert_true(cut.found && (fits == 0 || cut.tries[cut.count - 1].centers == last->centers));
        mrc_tune_free(&cut);
    }
    mrc_tune_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_left_out), cmocka_unit_test(test_ridges),
                                       cmocka_unit_test(test_no_ridges_between), cmocka_unit_test(test_last_fit),
                                       cmocka_unit_test(test_half_steps)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
