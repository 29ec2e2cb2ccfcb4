/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... until a whole fit succeeds: merged and weighted samples, held-out rows,
 * every method of choosing centers, calibration on a validation set and by cross-validation, intervals, class weights,
 * target transforms. Hyperparameter searches: over everything, over a metric for a given kernel, with a budget, and
 * resumed from a checkpoint. The status must be MERCER_ERROR_MEMORY, no model is returned, nothing may leak, and the
 * last fit must give the same model as a fit without failures.
 */
#include "support/check.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "support/allocator.h"
#include "support/folder.h"
#include "support/info.h"

enum { N = 60, D = 2, MOST_ALLOCATIONS = 6000 };

static double X[N][D], Y[N], weights[N];
static int32_t labels[N];

typedef struct fit_case {
    const char *name, *solver, *method;
    int64_t centers;
    double fraction;
    bool merged, calibrated;
    const char *class_weight, *transform; /* class weights; transform of regression targets; NULL: none */
    enum { NONE, SEARCHED, FEATURES, BUDGETED, RESUMED } search; /* RESUMED: from the checkpoint of a stopped search */
} fit_case;

static const fit_case cases[] = {{"plain", "direct", NULL, 10, 0, false, false, NULL, NULL, NONE},
                                 {"merged", "direct", NULL, 0, 0, true, false, NULL, NULL, NONE},
                                 {"held out", "ep4", NULL, 10, 0.25, true, true, NULL, NULL, NONE},
                                 {"kmeans", "cg", "kmeans", 8, 0, false, false, NULL, NULL, NONE},
                                 {"balanced", "direct", "balanced", 8, 0, false, false, NULL, NULL, NONE},
                                 {"folds", "direct", NULL, -1, 0, true, true, "balanced", NULL, NONE},
                                 {"class weights", "direct", NULL, 10, 0.25, false, false, "1=2", NULL, NONE},
                                 {"log", "direct", NULL, 10, 0.25, false, false, NULL, "log", NONE},
                                 {"rank", "direct", NULL, 10, 0, true, false, NULL, "rank", NONE},
                                 {"search", "direct", NULL, 10, 0, false, false, NULL, NULL, SEARCHED},
                                 {"weighted search", "direct", NULL, 10, 0, true, true, "1=2", NULL, SEARCHED},
                                 {"features", "direct", NULL, 10, 0, false, false, NULL, NULL, FEATURES},
                                 {"budget", "direct", NULL, 10, 0, false, false, NULL, NULL, BUDGETED},
                                 {"search resumed", "cg", NULL, 10, 0, false, false, NULL, NULL, RESUMED}};

static int stop_in_search(void *user, const mercer_progress *progress)
{
    (void)user;
    return strcmp(progress->stage, "search") == 0 && progress->done == 12;
}

static mercer_status fit_once(mercer_context *context, const fit_case *of, bool stopped, mercer_model **model,
                              double *temperature)
{
    mercer_matrix x = mercer_matrix_view(X, N, D, MERCER_F64), y = mercer_matrix_view(Y, N, 1, MERCER_F64);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    mercer_train_options train = MERCER_INIT(mercer_train_options);
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_dataset *data = NULL;
    arrays.X = &x, arrays.weights = of->merged ? weights : NULL;
    if (of->transform)
        arrays.Y = &y;
    else
        arrays.labels = labels, arrays.classes = 2;
    options.data.class_weight = of->class_weight, options.data.target_transform = of->transform;
    train.solver = of->solver, train.epochs = 2;
    options.train = &train, options.run.memory = 1 << 28, options.centers.count = of->centers;
    options.centers.method = of->method, options.validation.fraction = of->fraction, options.search.effort = 1;
    options.data.merge = of->merged ? MERCER_ON : MERCER_OFF,
    options.validation.calibrate = of->calibrated ? MERCER_ON : MERCER_OFF;
    options.search.tune = of->search ? MERCER_AUTO : MERCER_OFF;
    if (of->search == FEATURES) options.search.learn_features = MERCER_ON, options.kernel.spec = "gaussian";
    if (of->search == BUDGETED) options.search.budget = 1e6; /* large enough never to be exhausted */
    if (of->search == RESUMED && stopped)
        train.checkpoint = in_folder("c"), options.run.progress = stop_in_search;
    else if (of->search == RESUMED)
        options.run.checkpoint = in_folder("c");
    mercer_status status = mercer_dataset_from_arrays(&data, context, &arrays);
    if (status == MERCER_OK) status = mercer_fit(model, context, data, &options, &report);
    mercer_dataset_free(data);
    *temperature = report.temperature;
    return status;
}

static void leave_checkpoint(const fit_case *of)
{
    mercer_context *context = NULL;
    mercer_model *model = NULL;
    double temperature;
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    assert_fails(context, fit_once(context, of, true, &model, &temperature), MERCER_ERROR_CALLBACK, "search");
    mercer_context_free(context);
}

static void test_case(const fit_case *of)
{
    double wanted = 0, temperature, found = 0, undisturbed = 0;
    if (of->search == RESUMED) leave_checkpoint(of);
    for (int64_t n = 0;; n++) {
        test_allocator counter = {0};
        mercer_context_options options = MERCER_INIT(mercer_context_options);
        mercer_context *context = NULL;
        mercer_model *model = NULL;
        options.threads = 1, options.allocator = test_allocator_table(&counter);
        assert_succeeds(NULL, mercer_context_create(&context, &options));
        counter.requests = 0, counter.fail_at = n;
        mercer_status status = fit_once(context, of, false, &model, &temperature);
        bool failed = counter.fail_at > 0 && counter.requests >= counter.fail_at;
        if (status == MERCER_OK) {
            found = *(double *)model_info(model).weights.data;
            if (n == 0) undisturbed = found, wanted = temperature;
        } else {
            const char *message = mercer_last_error(context);
            bool by_source = status == MERCER_ERROR_CALLBACK && mentions(message, "memory");
            assert_that(status == MERCER_ERROR_MEMORY || by_source, "%s, allocation %d: %s", of->name, (int)n, message);
            assert_null(model);
        }
        mercer_model_free(model);
        mercer_context_free(context);
        assert_that(counter.live == 0, "%s, allocation %d: %d blocks are left", of->name, (int)n, (int)counter.live);
        assert_int_equal(counter.misused, 0);
        if (n > 0 && !failed) {
            assert_int_equal(status, MERCER_OK);
            assert_true(found == undisturbed && (temperature == wanted || !of->calibrated));
            break;
        }
        assert_that(n < MOST_ALLOCATIONS, "%s: more than %d allocations", of->name, MOST_ALLOCATIONS);
    }
}

static void test_fits(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) X[i][j] = mrc_random_normal((mrc_rng){5, 0}, (uint64_t)(i * D + j));
        Y[i] = 1 + i, labels[i] = (X[i][0] > 0) != (i % 7 == 0);
        weights[i] = 1 + i % 2;
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) test_case(&cases[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fits)};
    folder_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    folder_close();
    return failed;
}
