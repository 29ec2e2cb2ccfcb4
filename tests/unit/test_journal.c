/* SPDX-License-Identifier: BSD-3-Clause */
/* A search that was stopped goes on where it was: from its journal, and from a checkpoint. */
#include "support/datasets.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "fit/fitting.h"
#include "mercer/advanced.h"
#include "model/tensor_file.h"
#include "tune/tune.h"

#include <math.h>

enum { ROWS = 200, D = 4 };

static double x_all[ROWS][D], y_all[ROWS];

static int open_tests(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < D; j++) x_all[i][j] = mrc_random_normal((mrc_rng){9, 0}, (uint64_t)(i * D + j));
        y_all[i] = sin(2 * x_all[i][0]) + fabs(x_all[i][1]);
    }
    return open_datasets(state);
}

static mercer_dataset *open_rows(void)
{
    mercer_matrix x = mercer_matrix_view(x_all, ROWS, D, MERCER_F64),
                  y = mercer_matrix_view(y_all, ROWS, 1, MERCER_F64);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y};
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    return data;
}

/* Says stop at the so many-th call of a search; -1: never. */
static int stop_at;
static int watch(void *user, const char *phase, int64_t done, int64_t total, double error)
{
    (void)user, (void)done, (void)total, (void)error;
    return strcmp(phase, "tuning") == 0 && stop_at >= 0 && stop_at-- == 0;
}

static mercer_status search(mercer_dataset *data, mrc_journal *journal, mrc_tune_result *out)
{
    static const char *const names[] = {"laplace-l1", "gaussian"}, *const preparations[] = {"standardise", "rank"};
    mercer_kernel kernels[2];
    assert_succeeds(context, mercer_kernel_parse(&kernels[0], context, "laplace-l1:bandwidth=1"));
    assert_succeeds(context, mercer_kernel_parse(&kernels[1], context, "gaussian:bandwidth=1"));
    const mrc_tune_task task = {.context = context,
                                .data = data,
                                .kernels = kernels,
                                .kernel_count = 2,
                                .kernel_names = names,
                                .preparations = preparations,
                                .preparation_count = 2,
                                .rounds = 2,
                                .centers = 30,
                                .ridge = -1,
                                .criterion = MRC_KFOLD,
                                .budget = 1e6,
                                .rate = 1e9,
                                .memory = INT64_C(1) << 30,
                                .progress = watch,
                                .journal = journal};
    return mrc_tune(&task, out);
}

/* Stopped anywhere, with and without the metrics, a search ends with what it ends with otherwise, and makes no fit twice
   that the journal has. */
static void test_journal(void **state)
{
    (void)state;
    enum { STEP = 12 }; /* a third of the search, about */
    mercer_dataset *data = open_rows();
    mrc_tune_result whole, found;
    stop_at = -1;
    assert_succeeds(context, search(data, NULL, &whole));
    assert_true(whole.count > 3 * STEP);
    for (int kept = 0; kept < 2; kept++)
        for (int cut = 0; cut < (int)whole.count; cut += STEP) {
            mrc_journal journal = {
                .context = context, .ridges = MRC_TUNE_RIDGES, .features = D, .most_numbers = kept ? 100000 : 0};
            stop_at = cut;
            assert_int_equal(search(data, &journal, &found), MERCER_ERROR_CALLBACK);
            assert_int_equal(journal.fits, cut);
            assert_true(kept ? cut < STEP || journal.metrics > 0 : journal.metrics == 0);
            mrc_tune_free(&found);
            for (int again = 0; again < 2; again++) { /* the second time there is nothing left to do */
                int64_t before = journal.fits;
                journal.next_fit = journal.next_metric = journal.next_number = 0;
                assert_succeeds(context, search(data, &journal, &found));
                assert_int_equal(found.count, whole.count);
                for (int64_t i = 0; i < whole.count; i++)
                    assert_memory_equal(found.tries[i].errors, whole.tries[i].errors, sizeof whole.tries[i].errors);
                assert_true(found.error == whole.error && found.ridge == whole.ridge && found.round == whole.round);
                assert_int_equal(found.metric.rows, whole.metric.rows);
                assert_memory_equal(found.metric.data, whole.metric.data,
                                    (size_t)(whole.metric.rows * D) * sizeof(double));
                assert_true(again ? journal.fits == before : journal.fits > before);
                mrc_tune_free(&found);
            }
            mrc_journal_free(&journal);
        }
    mrc_tune_free(&whole);
    mercer_dataset_free(data);
}

static mercer_status fit(mercer_model **out, mercer_dataset *data, const char *from, const char *to, uint64_t seed)
{
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    train.checkpoint = to;
    options.train = &train, options.tune = MERCER_ON, options.centers = 30, options.seed = seed;
    options.tune_kernels = "laplace-l1,gaussian", options.learn_features = 1, options.tune_budget = 1e6;
    options.memory = INT64_C(1) << 30, options.checkpoint = from, options.progress = watch;
    return mercer_fit(out, context, data, &options, NULL);
}

/* The model is the same to the last bit. A checkpoint of other options is refused. */
static void test_checkpoint(void **state)
{
    (void)state;
    mercer_dataset *data = open_rows();
    mercer_model *models[2] = {NULL, NULL}, *none = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder("search.checkpoint"));
    stop_at = -1;
    assert_succeeds(context, fit(&models[0], data, NULL, NULL, 1));
    stop_at = 20;
    assert_fails(context, fit(&none, data, NULL, path, 1), MERCER_ERROR_CALLBACK, "searched for");
    stop_at = 10; /* of the fits it has: stopped once more, and nothing is lost */
    assert_fails(context, fit(&none, data, path, path, 1), MERCER_ERROR_CALLBACK, "searched for");
    stop_at = -1;
    assert_fails(context, fit(&none, data, path, NULL, 2), MERCER_ERROR_MISMATCH, "seed 1");
    assert_succeeds(context, fit(&models[1], data, path, path, 1));
    mercer_matrix w[2] = {mercer_model_weights(models[0]), mercer_model_weights(models[1])};
    assert_memory_equal(w[0].data, w[1].data, (size_t)w[0].rows * sizeof(double));
    for (int i = 0; i < 2; i++) mercer_model_free(models[i]);
    mercer_dataset_free(data);
}

/* The search of `from` again as `to`, with another rate. */
static void write_rate(const char *from, const char *to, double rate)
{
    static const char *const names[] = {"search.errors", "search.shapes", "search.maps", "search.of", "search.rate"};
    enum { TENSORS = sizeof names / sizeof *names };
    mrc_tensor tensors[TENSORS];
    mrc_tensor_file *file;
    assert_succeeds(context, mrc_tensor_file_open(&file, context, from));
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = (mrc_tensor){.name = names[i]};
        assert_true(mrc_tensor_file_find(file, names[i], &tensors[i].value));
    }
    tensors[TENSORS - 1].value = mrc_view(&rate, 1, 1, MERCER_F64);
    assert_succeeds(context, mrc_tensor_file_write(context, to, tensors, TENSORS, NULL, 0));
    mrc_tensor_file_close(file);
}

/* Numbers that no search writes: a rate by which all work is free, or none is possible. */
static void test_numbers_out_of_range(void **state)
{
    (void)state;
    static const double rates[] = {0, 1e-300, 1e3, 1e20, 1e300, INFINITY, NAN};
    static const mrc_rounds good = {.next = 1, .choice = {1, 1e-3, 0.5}, .unit = 1, .errors = {0.5}};
    mercer_dataset *data = open_rows();
    mercer_model *none = NULL;
    char path[256], other[256];
    double now[D * D], best[D * D];
    snprintf(path, sizeof path, "%s", in_folder("search.checkpoint"));
    snprintf(other, sizeof other, "%s", in_folder("other.checkpoint"));
    stop_at = 5;
    assert_fails(context, fit(&none, data, NULL, path, 1), MERCER_ERROR_CALLBACK, "searched for");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        stop_at = 1;
        write_rate(path, other, rates[i]);
        assert_fails(context, fit(&none, data, other, NULL, 1), MERCER_ERROR_FORMAT, "search.rate");
    }
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"", "bandwidth", "ridge", "median distance"};
        mrc_rounds rounds = good, found;
        if (i == 1) rounds.choice.bandwidth = 1e-320;
        if (i == 2) rounds.choice.ridge = 1e200;
        if (i == 3) rounds.unit = (double)INFINITY;
        assert_succeeds(context, mrc_rounds_write(context, other, "test", &rounds));
        mercer_status status = mrc_rounds_read(context, other, "test", D, now, best, &found);
        if (i == 0)
            assert_succeeds(context, status);
        else
            assert_fails(context, status, MERCER_ERROR_FORMAT, names[i]);
    }
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_numbers_out_of_range),
    };
    return cmocka_run_group_tests(tests, open_tests, close_datasets);
}
