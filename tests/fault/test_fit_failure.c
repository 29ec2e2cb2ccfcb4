/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The n-th allocation fails, n = 1, 2, ... until a whole fit succeeds: merged and weighted samples, rows held back,
 * every way to choose centers, calibration on a validation set and by cross-validation, learned features, a search, intervals,
 * weights of classes, transforms of targets, a mean of models from the beginning and from a checkpoint. The status says
 * memory, there is no model, nothing leaks, and the last fit gives what an undisturbed one gives.
 */
#include "support/check.h"

#include "core/numbers/random.h"
#include "mercer/advanced.h"
#include "support/allocator.h"
#include "support/folder.h"

enum { N = 40, D = 2, MOST_ALLOCATIONS = 6000 };

static double X[N][D], Y[N], weights[N];
static int32_t labels[N];

typedef struct fit_case {
    const char *name, *solver, *method;
    int64_t centers;
    double fraction;
    bool merged, calibrated;
    int64_t rounds;                                /* of learned features */
    const char *class_weight, *transform;          /* NULL: none; of values */
    enum { UNTUNED, TUNED, MEAN, RESUMED } search; /* RESUMED: a mean, from the training of a member on */
} fit_case;

static const fit_case cases[] = {{"plain", "direct", NULL, 10, 0, false, false, 0, NULL, NULL, UNTUNED},
                                 {"merged", "direct", NULL, 0, 0, true, false, 0, NULL, NULL, UNTUNED},
                                 {"held back", "ep4", NULL, 10, 0.25, true, true, 0, NULL, NULL, UNTUNED},
                                 {"kmeans", "cg", "kmeans", 8, 0, false, false, 0, NULL, NULL, UNTUNED},
                                 {"balanced", "direct", "balanced", 8, 0, false, false, 0, NULL, NULL, UNTUNED},
                                 {"folds", "direct", NULL, -1, 0, true, true, 0, "balanced", NULL, UNTUNED},
                                 {"features", "direct", NULL, 10, 0.25, false, false, 1, NULL, NULL, UNTUNED},
                                 {"class weights", "direct", NULL, 10, 0.25, false, false, 0, "1=2", NULL, UNTUNED},
                                 {"log", "direct", NULL, 10, 0.25, false, false, 0, NULL, "log", UNTUNED},
                                 {"rank", "direct", NULL, 10, 0, true, false, 0, NULL, "rank", UNTUNED},
                                 {"search", "direct", NULL, 10, 0, false, false, 1, NULL, NULL, TUNED},
                                 {"mean", "direct", NULL, 10, 0, false, false, 1, NULL, NULL, MEAN},
                                 {"mean resumed", "cg", NULL, 10, 0, false, false, 1, NULL, NULL, RESUMED}};

static int stop_in_member(void *user, const char *what, int64_t done, int64_t total, double seconds)
{
    (void)user, (void)done, (void)total, (void)seconds;
    return strcmp(what, "members") == 0;
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
    options.class_weight = of->class_weight, options.target_transform = of->transform;
    train.solver = of->solver, train.epochs = 2;
    options.train = &train, options.memory = 1 << 28, options.centers = of->centers;
    options.learn_features = of->rounds, options.center_method = of->method, options.validation_fraction = of->fraction;
    options.merge = of->merged ? MERCER_ON : MERCER_OFF, options.calibrate = of->calibrated ? MERCER_ON : MERCER_OFF;
    if (of->search) options.tune = MERCER_ON, options.tune_kernels = "laplace-l1";
    options.average_models = of->search > TUNED ? 2 : 0;
    if (of->search == RESUMED && stopped)
        train.checkpoint = in_folder("c"), train.progress_seconds = 1e-9, options.progress = stop_in_member;
    else if (of->search == RESUMED)
        options.checkpoint = in_folder("c");
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
    assert_fails(context, fit_once(context, of, true, &model, &temperature), MERCER_ERROR_CALLBACK, "to be averaged");
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
            found = *(double *)mercer_model_weights(model).data;
            if (n == 0) undisturbed = found, wanted = temperature;
        } else {
            const char *message = mercer_last_error(context);
            bool by_source = status == MERCER_ERROR_CALLBACK && strstr(message, "out of memory");
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
