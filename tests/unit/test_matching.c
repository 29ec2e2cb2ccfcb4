/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model is applied only to samples that were read with the schema, column order and classes of the model. In tables
 * whose columns need an origin, only the schema shows a mismatch: such a table has the same number of features with the
 * same names.
 */
#include "support/datasets.h"

#include "support/info.h"

#include "data/dataset.h"

#include <mercer/advanced.h>
#include <mercer/evaluation.h>

enum { N = 40 };

/* Return options for a table of N rows: column `first` has numbers from `base` on in steps of 0.001, the second
   small integers; y is a number, or one of two words if `words` is set. */
static mercer_dataset_options table(const char *name, const char *head, double base, const char *const words[2])
{
    char text[N * 40 + 100], *at = text;
    at += sprintf(at, "%s\n", head);
    for (int i = 0; i < N; i++) {
        at += sprintf(at, "%.3f,%d,", base + i * 0.001, i * i % 13);
        at += words ? sprintf(at, "%s\n", words[i % 2]) : sprintf(at, "%d.5\n", i);
    }
    mercer_dataset_options options = data_options(text_file(name, text), NULL);
    options.target = "y";
    return options;
}

static mercer_model *fit(mercer_dataset *data)
{
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    mercer_model *model = NULL;
    options.centers.count = 10, options.search.tune = MERCER_OFF;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    return model;
}

/* Assert that every function of a model and a dataset accepts the dataset (says NULL), or refuses it with MISMATCH. */
static void assert_applies(mercer_model *model, mercer_dataset *data, const char *says)
{
    mercer_evaluation *evaluation = NULL;
    mercer_importance *importance = NULL;
    double values[3], means[6];
    int64_t count, outputs = model_info(model).weights.cols;
    mercer_matrix M = mrc_view(means, 3, outputs, MERCER_F64);
    const mercer_status found[] = {mercer_evaluate(&evaluation, model, data, NULL),
                                   mercer_permutation_importance(&importance, model, data, NULL),
                                   mercer_partial_dependence(model, data, 0, values, &M, &count)};
    const char *message = mercer_last_error(context);
    for (int i = 0; i < 3; i++)
        assert_that(found[i] == (says ? MERCER_ERROR_MISMATCH : MERCER_OK), "function %d: status %d, %s", i, found[i],
                    message);
    if (says) assert_that(mentions(message, says), "'%s', not '%s'", message, says);
    mercer_evaluation_free(evaluation);
    mercer_importance_free(importance);
}

static void test_origin_of_the_dataset(void **state)
{
    (void)state;
    mercer_dataset_options near = table("near.csv", "a,b,y", 0, NULL), far = table("far.csv", "a,b,y", 1e6, NULL);
    mercer_dataset *plain = open_with(&near), *moved = open_with(&far), *numbers;
    assert_true(!plain->schema && moved->schema && plain->features == moved->features);
    mercer_model *model = fit(plain);
    assert_applies(model, plain, NULL);
    assert_applies(model, moved, "column names");
    static const char *const names[] = {"a", "b"};
    far.columns = names, far.column_count = 2;
    numbers = open_with(&far);
    assert_null(numbers->schema);
    assert_applies(model, numbers, NULL);
    mercer_model_free(model);
    mercer_dataset_free(numbers);
    mercer_dataset_free(moved);
    mercer_dataset_free(plain);
}

static void test_origin_of_the_model(void **state)
{
    (void)state;
    mercer_dataset_options near = table("near.csv", "a,b,y", 0, NULL), far = table("far.csv", "a,b,y", 1e6, NULL),
                           further = table("further.csv", "a,b,y", 2e6, NULL);
    mercer_dataset *plain = open_with(&near), *moved = open_with(&far), *other = open_with(&further);
    mercer_model *model = fit(moved);
    assert_applies(model, moved, NULL);
    assert_applies(model, plain, "schema*model*schema of");
    assert_applies(model, other, "own schema*model*schema of");
    further.schema = near.schema = model_info(model).schema;
    mercer_dataset *read[] = {open_with(&further), open_with(&near)};
    assert_applies(model, read[0], NULL);
    assert_applies(model, read[1], NULL);
    /* Arrays contain features that are already encoded. */
    mercer_matrix X = mercer_dataset_samples(moved);
    mercer_dataset_arrays arrays = MERCER_INIT(mercer_dataset_arrays);
    arrays.X = &X, arrays.Y = &moved->y;
    mercer_dataset *features = NULL;
    assert_succeeds(context, mercer_dataset_from_arrays(&features, context, &arrays));
    assert_applies(model, features, NULL);
    mercer_dataset *const all[] = {features, read[0], read[1], other, moved, plain};
    mercer_model_free(model);
    for (int i = 0; i < 6; i++) mercer_dataset_free(all[i]);
}

static void test_columns_and_classes(void **state)
{
    (void)state;
    static const char *const own[] = {"no", "yes"}, *const others[] = {"maybe", "no"};
    mercer_dataset_options one = table("one.csv", "a,b,y", 0, own), two = table("two.csv", "b,a,y", 0, own),
                           three = table("three.csv", "a,b,y", 0, others);
    mercer_dataset *data = open_with(&one), *turned = open_with(&two), *renamed = open_with(&three);
    mercer_model *model = fit(data);
    assert_applies(model, data, NULL);
    assert_applies(model, turned, "column 0 *'b'*'a'");
    mercer_evaluation *evaluation = NULL;
    assert_fails(context, mercer_evaluate(&evaluation, model, renamed, NULL), MERCER_ERROR_MISMATCH,
                 "class 0 (from 0) is 'maybe'");
    two.columns = model_info(model).feature_names, two.column_count = model_info(model).features;
    mercer_dataset *in_order = open_with(&two);
    assert_applies(model, in_order, NULL);
    mercer_dataset *const all[] = {in_order, renamed, turned, data};
    mercer_model_free(model);
    for (int i = 0; i < 4; i++) mercer_dataset_free(all[i]);
}

static void test_fits(void **state)
{
    (void)state;
    static const char *const own[] = {"no", "yes"}, *const others[] = {"maybe", "no"};
    mercer_dataset_options near = table("near.csv", "a,b,y", 0, own), far = table("far.csv", "a,b,y", 1e6, own),
                           three = table("three.csv", "a,b,y", 0, others);
    mercer_dataset *data = open_with(&near), *moved = open_with(&far), *renamed = open_with(&three);
    mercer_model *model = fit(data), *out = NULL;
    mercer_fit_options good = MERCER_INIT(mercer_fit_options), bad;
    good.centers.count = 10, good.search.tune = MERCER_OFF;
    bad = good, bad.validation.data = moved;
    assert_fails(context, mercer_fit(&out, context, data, &bad, NULL), MERCER_ERROR_MISMATCH, "validation data");
    bad.validation.data = renamed;
    assert_fails(context, mercer_fit(&out, context, data, &bad, NULL), MERCER_ERROR_MISMATCH, "class 0");
    bad = good, bad.centers.count = 0, bad.centers.given = moved;
    assert_fails(context, mercer_fit(&out, context, data, &bad, NULL), MERCER_ERROR_MISMATCH, "centers.given");
    bad = good, bad.run.model = model;
    assert_fails(context, mercer_fit(&out, context, renamed, &bad, NULL), MERCER_ERROR_MISMATCH,
                 "data: class 0 (from 0) is 'maybe'");
    assert_fails(context, mercer_fit(&out, context, moved, &bad, NULL), MERCER_ERROR_MISMATCH, "schema");
    mercer_model_free(model);
    mercer_dataset_free(renamed);
    mercer_dataset_free(moved);
    mercer_dataset_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_origin_of_the_dataset),
        cmocka_unit_test(test_origin_of_the_model),
        cmocka_unit_test(test_columns_and_classes),
        cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
