/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... of every public function that no other test of this folder covers:
 * evaluation, gradients, importance, fits in steps, plans, copies of datasets, communicators. Such a call succeeds
 * without the failed allocation or returns MERCER_ERROR_MEMORY, leaks nothing, and succeeds when it is repeated.
 * tests/tools/test_fault_coverage.py finds functions that are in no test.
 */
#include "support/check.h"

#include "mercer/evaluation.h"
#include "mercer/ranks.h"
#include "support/allocator.h"
#include "support/folder.h"

#include <math.h>

enum { N = 60, D = 2, C = 2, P = 8, MOST_ALLOCATIONS = 3000 };

typedef struct fixture {
    test_allocator counter;
    mercer_context *context;
    mercer_dataset *data;
    mercer_model *model;
    mercer_matrix x, scores;
} fixture;

static double X[N][D], scores[N][C];
static int32_t labels[N];

static mercer_dataset_arrays arrays_of(const fixture *f)
{
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &f->x, arrays.labels = labels, arrays.classes = C;
    return arrays;
}

/* Options of a small fit without a search, with held-out rows, for probabilities and intervals. */
static mercer_fit_options options_of(mercer_train_options *train)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    *train = (mercer_train_options){.struct_size = sizeof *train, .solver = "ep4", .epochs = 2, .lambda = 1e-3};
    options.train = train, options.centers.count = P, options.run.memory = 1 << 28, options.search.effort = 1;
    options.search.tune = MERCER_OFF, options.validation.fraction = 0.25, options.validation.intervals = MERCER_ON;
    return options;
}

/* ---- Probabilities, metrics, explanations ---------------------------------------------------------------------- */

static mercer_status call_probabilities(fixture *f)
{
    double values[N * C];
    int32_t members[N * C];
    mercer_matrix p = mercer_matrix_view(values, N, C, MERCER_F64);
    mercer_model_info info = MERCER_INIT(mercer_model_info);
    double temperature, curvature, radius[C];
    MRC_TRY(mercer_calibrate(f->context, &temperature, &curvature, &f->scores, labels, NULL));
    MRC_TRY(mercer_model_set_calibration(f->model, temperature, curvature));
    MRC_TRY(mercer_model_query(f->model, &info));
    MRC_TRY(mercer_model_probabilities(f->model, &p, &f->x));
    MRC_TRY(mercer_model_interval(f->model, radius, 0.8));
    return mercer_class_sets(f->context, members, &p, radius[0]);
}

static mercer_status read_evaluation(const mercer_evaluation *evaluation)
{
    mercer_metrics metrics = MERCER_INIT(mercer_metrics);
    mercer_output_metrics one = MERCER_INIT(mercer_output_metrics);
    double x[N], y[N];
    int64_t count;
    MRC_TRY(mercer_evaluation_query(evaluation, &metrics));
    MRC_TRY(mercer_evaluation_output(evaluation, &one, 1));
    MRC_TRY(mercer_evaluation_curve(evaluation, "roc", 1, x, y, N, &count));
    assert_non_null(mercer_evaluation_confusion(evaluation));
    return MERCER_OK;
}

static mercer_status call_evaluate(fixture *f)
{
    mercer_evaluation *evaluation = NULL;
    mercer_status status = mercer_evaluate(&evaluation, f->model, f->data, NULL);
    assert_true((status == MERCER_OK) == (evaluation != NULL));
    if (status == MERCER_OK) status = read_evaluation(evaluation);
    mercer_evaluation_free(evaluation);
    return status;
}

static mercer_status call_evaluation(fixture *f)
{
    mercer_evaluation *evaluation = NULL;
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    options.task = MERCER_TASK_CLASSIFICATION, options.outputs = C, options.rows = N;
    MRC_TRY(mercer_evaluation_create(&evaluation, f->context, &options));
    mercer_status status = mercer_evaluation_add(evaluation, &f->scores, NULL, labels, NULL);
    if (status == MERCER_OK) status = read_evaluation(evaluation);
    mercer_evaluation_free(evaluation);
    return status;
}

static mercer_status call_gradient(fixture *f)
{
    double values[N * C * D];
    mercer_matrix g = mercer_matrix_view(values, N, C * D, MERCER_F64);
    return mercer_model_gradient(f->model, &g, &f->x);
}

static mercer_status call_shap(fixture *f)
{
    double values[N * C * D];
    double pairs[N * C * D * D];
    mercer_matrix v = mercer_matrix_view(values, N, C * D, MERCER_F64),
                  squares = mercer_matrix_view(pairs, N, C * D * D, MERCER_F64);
    mercer_shap *shap = NULL;
    mercer_shap_info info = MERCER_INIT(mercer_shap_info);
    mercer_status status = mercer_model_shap(&shap, f->model, &f->x, NULL);
    assert_true((status == MERCER_OK) == (shap != NULL));
    if (status == MERCER_OK) status = mercer_shap_query(shap, &info);
    if (status == MERCER_OK) status = mercer_shap_values(shap, &v, &f->x);
    if (status == MERCER_OK) status = mercer_shap_interactions(shap, &squares, &f->x);
    mercer_shap_free(shap);
    return status;
}

static mercer_status call_importance(fixture *f)
{
    mercer_importance *importance = NULL;
    mercer_importance_info info = MERCER_INIT(mercer_importance_info);
    double values[8], means[8 * C];
    mercer_matrix m = mercer_matrix_view(means, 8, C, MERCER_F64);
    int64_t count;
    mercer_status status = mercer_permutation_importance(&importance, f->model, f->data, NULL);
    if (status == MERCER_OK) status = mercer_importance_query(importance, &info);
    mercer_importance_free(importance);
    return status == MERCER_OK ? mercer_partial_dependence(f->model, f->data, 0, values, &m, &count) : status;
}

/* ---- Fits in steps, plans, trainers ---------------------------------------------------------------------------- */

static mercer_status run_fitting(mercer_fitting *fitting)
{
    mercer_fit_report report = MERCER_INIT(mercer_fit_report);
    mercer_report trained = MERCER_INIT(mercer_report);
    mercer_fit_parts parts = MERCER_INIT(mercer_fit_parts);
    mercer_decision decision = MERCER_INIT(mercer_decision);
    mercer_plan plan = MERCER_INIT(mercer_plan);
    mercer_model *model = NULL;
    double values[P];
    int64_t count;
    int exists;
    MRC_TRY(mercer_fitting_prepare(fitting, &plan));
    MRC_TRY(mercer_fitting_run(fitting, &report));
    MRC_TRY(mercer_fitting_query(fitting, &report));
    MRC_TRY(mercer_fitting_decision(fitting, 0, &decision, &exists));
    MRC_TRY(mercer_fitting_parts(fitting, &parts));
    MRC_TRY(mercer_trainer_report(parts.trainer, &trained));
    MRC_TRY(mercer_trainer_spectrum(parts.trainer, values, P, &count));
    assert_int_equal(mercer_trainer_checkpoint(parts.trainer), MERCER_ERROR_ARGUMENT); /* there is no such file */
    mercer_status status = mercer_fitting_take_model(fitting, &model);
    mercer_model_free(model);
    return status;
}

static mercer_status call_fitting(fixture *f)
{
    mercer_train_options train;
    mercer_fit_options options = options_of(&train);
    mercer_fitting *fitting = NULL;
    MRC_TRY(mercer_fitting_open(&fitting, f->context, f->data, &options));
    mercer_status status = run_fitting(fitting);
    mercer_fitting_free(fitting);
    return status;
}

static mercer_status call_centers(fixture *f)
{
    mercer_train_options train;
    mercer_fit_options options = options_of(&train);
    mercer_fitting *fitting = NULL;
    mercer_matrix centers;
    MRC_TRY(mercer_fitting_open(&fitting, f->context, f->data, &options));
    mercer_status status = mercer_fitting_centers(fitting, &centers);
    mercer_fitting_free(fitting);
    return status;
}

static mercer_status call_plans(fixture *f)
{
    mercer_train_options train;
    mercer_fit_options options = options_of(&train);
    mercer_dataset_info info = MERCER_INIT(mercer_dataset_info);
    mercer_plan plan = MERCER_INIT(mercer_plan);
    mercer_rank_plan ranks = MERCER_INIT(mercer_rank_plan);
    mercer_network network = {.struct_size = sizeof network, .ranks = 2, .bytes_per_second = 1e9};
    mercer_shape shape = {
        .struct_size = sizeof shape, .samples = N, .centers = P, .features = D, .outputs = C, .shards = 8};
    int64_t bytes;
    MRC_TRY(mercer_parse_bytes(&bytes, f->context, "64M"));
    MRC_TRY(mercer_fit_check(f->context, &options));
    MRC_TRY(mercer_dataset_query(f->data, &info));
    options.validation = (mercer_fit_validation){.data = NULL};
    MRC_TRY(mercer_fit_plan(f->context, &plan, &info, &options, NULL));
    MRC_TRY(mercer_plan_shape(f->context, &plan, &shape, &train));
    return mercer_plan_ranks(f->context, &ranks, &plan, &shape, &network);
}

/* Plans a training run on both kinds of sources. */
static mercer_status call_trainer_plan(fixture *f)
{
    mercer_train_options options = {.struct_size = sizeof options, .solver = "ep4", .epochs = 2};
    mercer_plan plan = MERCER_INIT(mercer_plan);
    mercer_dataset_arrays arrays = arrays_of(f);
    mercer_source sources[2] = {{.struct_size = sizeof sources[0]}, {.struct_size = sizeof sources[1]}};
    mercer_trainer *trainer = NULL;
    mercer_status status = mercer_source_from_arrays(&sources[0], f->context, &arrays, 3);
    if (status == MERCER_OK) status = mercer_source_from_dataset(&sources[1], f->data, NULL);
    if (status == MERCER_OK) status = mercer_trainer_create(&trainer, f->model, NULL, &options);
    for (int i = 0; i < 2 && status == MERCER_OK; i++) status = mercer_trainer_plan(trainer, &plan, &sources[i]);
    mercer_trainer_free(trainer);
    mercer_source_free(&sources[0]), mercer_source_free(&sources[1]);
    return status;
}

static mercer_status call_speed(fixture *f)
{
    mercer_speed speed = MERCER_INIT(mercer_speed);
    mercer_shape shape = {.struct_size = sizeof shape, .samples = N, .centers = P, .features = D, .outputs = C};
    mercer_kernel kernel;
    MRC_TRY(mercer_kernel_parse(&kernel, f->context, "laplace:bandwidth=3"));
    return mercer_measure_speed(f->context, &speed, &kernel, &shape);
}

/* ---- Datasets and preprocessing --------------------------------------------------------------------------------- */

static mercer_status call_datasets(fixture *f)
{
    static const double numbers[] = {1, 2.5, 4};
    static const int32_t codes[] = {0, 1, 0};
    static const char *const words[] = {"red", "blue"};
    static const int64_t rows[] = {5, 2, 9};
    mercer_table_column columns[] = {
        {.name = "a", .kind = "number", .values = numbers},
        {.name = "b", .kind = "category", .codes = codes, .words = words, .word_count = 2}};
    mercer_dataset *table = NULL, *part = NULL;
    uint64_t sum;
    mercer_status status = mercer_dataset_from_columns(&table, f->context, columns, 2, 3, NULL);
    if (status == MERCER_OK) status = mercer_dataset_take(&part, f->data, rows, 3);
    if (status == MERCER_OK) status = mercer_dataset_checksum(f->data, &sum);
    mercer_dataset_free(table), mercer_dataset_free(part);
    return status;
}

static mercer_status call_preprocess(fixture *f)
{
    static double values[N * D];
    mercer_preprocess *preprocess = NULL;
    mercer_preprocess_info info = MERCER_INIT(mercer_preprocess_info);
    mercer_matrix out = mercer_matrix_view(values, N, D, MERCER_F64);
    mercer_status status = mercer_preprocess_fit(&preprocess, f->context, "rank", f->data);
    if (status == MERCER_OK) status = mercer_preprocess_query(preprocess, &info);
    if (status == MERCER_OK) status = mercer_preprocess_apply(preprocess, &out, &f->x);
    mercer_preprocess_free(preprocess);
    return status;
}

static mercer_status call_column_texts(fixture *f)
{
    mercer_column_texts *texts = NULL;
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    const char *const *fields = NULL;
    options.x = in_folder("t.csv");
    MRC_TRY(mercer_column_texts_open(&texts, f->context, &options, "b"));
    mercer_status status = MERCER_OK;
    do status = mercer_column_texts_next(texts, &fields);
    while (status == MERCER_OK && fields);
    mercer_column_texts_free(texts);
    return status;
}

/* Sets the schema of a table with one category, which becomes two features. */
static mercer_status call_schema(fixture *f)
{
    static const int32_t codes[] = {0, 1};
    static const char *const words[] = {"red", "blue"};
    mercer_table_column column = {.name = "b", .kind = "category", .codes = codes, .words = words, .word_count = D};
    mercer_dataset_info info = MERCER_INIT(mercer_dataset_info);
    mercer_dataset *table = NULL;
    MRC_TRY(mercer_dataset_from_columns(&table, f->context, &column, 1, 2, NULL));
    mercer_status status = mercer_dataset_query(table, &info);
    if (status == MERCER_OK) status = mercer_model_set_schema(f->model, info.schema);
    if (status == MERCER_OK) status = mercer_model_set_schema(f->model, NULL);
    mercer_dataset_free(table);
    return status;
}

/* ---- Communicators ---------------------------------------------------------------------------------------------- */

static mercer_status call_comm(fixture *f)
{
    mercer_comm_options options = MERCER_INIT(mercer_comm_options);
    mercer_comm_info info = MERCER_INIT(mercer_comm_info);
    mercer_comm *comm = NULL;
    int64_t first, count, value = 7;
    int any;
    options.kind = "self";
    MRC_TRY(mercer_comm_create(&comm, f->context, &options));
    mercer_status status = mercer_comm_query(comm, &info);
    if (status == MERCER_OK) status = mercer_comm_share(comm, &first, &count, P);
    if (status == MERCER_OK) status = mercer_comm_broadcast(comm, &value, sizeof value);
    if (status == MERCER_OK) status = mercer_comm_any(comm, &any, 1);
    if (status == MERCER_OK) status = mercer_comm_agree(comm, "another value", &value, sizeof value);
    mercer_comm_free(comm);
    return status;
}

static mercer_status call_comm_local(fixture *f)
{
    mercer_comm *comms[1] = {NULL};
    mercer_status status = mercer_comm_create_local(comms, &f->context, 1, NULL);
    assert_true((status == MERCER_OK) == (comms[0] != NULL));
    mercer_comm_free(comms[0]);
    return status;
}

/* A context that computes on the CPU has nothing to wait for. */
static mercer_status call_wait(fixture *f)
{
    return mercer_context_wait(f->context, NULL);
}

/* ---- Failing allocations ----------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    mercer_status (*run)(fixture *f);
    bool allocates;
} calls[] = {{"probabilities", call_probabilities, true},
             {"evaluate", call_evaluate, true},
             {"evaluation", call_evaluation, true},
             {"gradient", call_gradient, true},
             {"Shapley values", call_shap, true},
             {"importance", call_importance, true},
             {"fitting", call_fitting, true},
             {"centers", call_centers, true},
             {"plans", call_plans, false},
             {"trainer plan", call_trainer_plan, true},
             {"speed", call_speed, true},
             {"datasets", call_datasets, true},
             {"preprocess", call_preprocess, true},
             {"column texts", call_column_texts, true},
             {"schema", call_schema, true},
             {"communicator", call_comm, true},
             {"local communicator", call_comm_local, true},
             {"wait", call_wait, false}};

static void open_fixture(fixture *f)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_train_options train;
    mercer_fit_options fit = options_of(&train);
    *f =
        (fixture){.x = mercer_matrix_view(X, N, D, MERCER_F64), .scores = mercer_matrix_view(scores, N, C, MERCER_F64)};
    mercer_dataset_arrays arrays = arrays_of(f);
    options.threads = 1, options.allocator = test_allocator_table(&f->counter);
    assert_succeeds(NULL, mercer_context_create(&f->context, &options));
    assert_succeeds(f->context, mercer_dataset_from_arrays(&f->data, f->context, &arrays));
    assert_succeeds(f->context, mercer_fit(&f->model, f->context, f->data, &fit, NULL));
}

static void close_fixture(fixture *f, const char *what)
{
    mercer_model_free(f->model);
    mercer_dataset_free(f->data);
    mercer_context_free(f->context);
    assert_that(f->counter.live == 0, "%s: %d blocks are left", what, (int)f->counter.live);
    assert_int_equal(f->counter.misused, 0);
}

/* Run call c with allocation n failing; return whether the call made fewer allocations. A source reports a failed
   allocation as its own failure. */
static bool fail_one(int c, int64_t n)
{
    fixture f;
    open_fixture(&f);
    f.counter.requests = 0, f.counter.fail_at = n;
    mercer_status status = calls[c].run(&f);
    bool done = f.counter.requests < n;
    const char *message = mercer_last_error(f.context);
    assert_that(status == MERCER_OK || status == MERCER_ERROR_MEMORY ||
                    (status == MERCER_ERROR_CALLBACK && strstr(message, "memory")),
                "%s, allocation %d: %s: %s", calls[c].name, (int)n, mercer_status_string(status), message);
    assert_true(status == MERCER_OK || !done);
    f.counter.fail_at = 0;
    assert_succeeds(f.context, calls[c].run(&f));
    close_fixture(&f, calls[c].name);
    return done;
}

static void test_every_call(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        int64_t n = 1;
        while (!fail_one((int)c, n)) {
            n++;
            assert_that(n < MOST_ALLOCATIONS, "%s never succeeds", calls[c].name);
        }
        assert_that(n > 1 || !calls[c].allocates, "%s allocates nothing", calls[c].name);
        print_message("    %s: %d allocations\n", calls[c].name, (int)n - 1);
    }
}

static void fill_data(void)
{
    static const char table[] = "a,b\n1,red\n2,\"blue, light\"\n";
    for (int i = 0; i < N; i++) {
        X[i][0] = cos(i), X[i][1] = sin(2.0 * i);
        labels[i] = X[i][0] + 0.5 * X[i][1] > 0;
        scores[i][labels[i]] = 1 + 0.5 * cos(3.0 * i);
    }
    write_bytes(in_folder("t.csv"), table, sizeof table - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call)};
    folder_open();
    fill_data();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    folder_close();
    return failed;
}
