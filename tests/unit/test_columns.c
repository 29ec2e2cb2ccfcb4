/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns by name: names stored in models, datasets read in a requested column order, several target columns; columns
   in memory. */
#include "support/datasets.h"

#include "support/info.h"

#include <math.h>

static const char *const abc[] = {"a", "b", "c"};

static mercer_model *model_of(int64_t features, int64_t outputs)
{
    mercer_model *model = NULL;
    mercer_kernel kernel;
    double values[16] = {0};
    mercer_matrix z = mrc_view(values, 1, features, MERCER_F64);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=1"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, outputs, MERCER_F64));
    return model;
}

static void assert_names(const char *const *names, const char *joined)
{
    char text[256] = "";
    assert_non_null(names);
    int64_t count = 1;
    for (const char *at = joined; *at; at++) count += *at == ' ';
    for (int64_t i = 0; i < count; i++) {
        if (i) strcat(text, " ");
        strcat(text, names[i]);
    }
    assert_string_equal(text, joined);
}

/* ---- Models -------------------------------------------------------------------------------------------------- */

static void test_models_keep_names(void **state)
{
    (void)state;
    static const char *const yz[] = {"y", "größe"}, *const hole[] = {"a", NULL, "c"},
                             *const latin[] = {"a", "\xf6", "c"};
    mercer_model *model = model_of(3, 2), *loaded = NULL;
    assert_null(model_info(model).feature_names);
    assert_int_equal(model_info(model).target_count, 0);
    assert_null(model_info(model).target_names);
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, abc, 3));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, yz, 2));
    assert_succeeds(context, mercer_model_save(model, in_folder("m"), NULL));
    assert_succeeds(context, mercer_model_load(&loaded, context, NULL, in_folder("m")));
    assert_names(model_info(loaded).feature_names, "a b c");
    assert_names(model_info(loaded).target_names, "y größe");
    assert_int_equal(model_info(loaded).target_count, 2);
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_FEATURES, abc, 2), MERCER_ERROR_SHAPE,
                 "model has 3 features");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_FEATURES, NULL, 3), MERCER_ERROR_ARGUMENT,
                 "NULL");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_FEATURES, hole, 3), MERCER_ERROR_ARGUMENT,
                 "name 1 (from 0) is NULL");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_FEATURES, latin, 3), MERCER_ERROR_ARGUMENT,
                 "not UTF-8");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_TARGETS, abc, 3), MERCER_ERROR_SHAPE,
                 "model has 2 outputs");
    assert_fails(NULL, mercer_model_set_names(NULL, MERCER_NAMES_FEATURES, abc, 3), MERCER_ERROR_ARGUMENT, "model");
    assert_fails(NULL, mercer_model_set_names(NULL, MERCER_NAMES_TARGETS, abc, 1), MERCER_ERROR_ARGUMENT, "model");
    assert_names(model_info(loaded).feature_names, "a b c"); /* rejected names do not replace the old names */
    assert_succeeds(context, mercer_model_set_names(loaded, MERCER_NAMES_FEATURES, NULL, 0));
    assert_null(model_info(loaded).feature_names);
    mercer_model_free(model), mercer_model_free(loaded);
}

static void test_match(void **state)
{
    (void)state;
    static const char *const mixed[] = {"c", "id", "a", "b"}, *const twice[] = {"b", "a", "c", "a"},
                             *const capital[] = {"a", "B", "c"}, *const typo[] = {"a", "b", "price_eur"};
    static const char *const long_names[] = {"a", "b", "price_usd"}, *const repeated[] = {"a", "b", "a"},
                             *const hole[] = {"a", NULL};
    mercer_model *model = model_of(3, 1);
    int64_t columns[3] = {7, 7, 7};
    /* If the model or the table has no names, columns match by position. */
    assert_succeeds(context, mercer_model_match(model, columns, mixed, 3));
    assert_true(columns[0] == 0 && columns[1] == 1 && columns[2] == 2);
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, abc, 3));
    assert_succeeds(context, mercer_model_match(model, columns, NULL, 3));
    assert_true(columns[0] == 0 && columns[1] == 1 && columns[2] == 2);
    assert_fails(context, mercer_model_match(model, columns, NULL, 4), MERCER_ERROR_SHAPE, "4 columns");
    assert_succeeds(context, mercer_model_match(model, columns, mixed, 4));
    assert_true(columns[0] == 2 && columns[1] == 3 && columns[2] == 0);
    columns[0] = columns[1] = columns[2] = 7;
    assert_fails(context, mercer_model_match(model, columns, twice, 4), MERCER_ERROR_MISMATCH, "2 columns");
    assert_fails(context, mercer_model_match(model, columns, mixed, 3), MERCER_ERROR_MISMATCH, "no column 'b'");
    assert_fails(context, mercer_model_match(model, columns, capital, 3), MERCER_ERROR_MISMATCH, "no column 'b'");
    assert_fails(context, mercer_model_match(model, columns, hole, 2), MERCER_ERROR_ARGUMENT, "names[1]");
    assert_fails(context, mercer_model_match(model, NULL, abc, 3), MERCER_ERROR_ARGUMENT, "columns");
    assert_fails(context, mercer_model_match(model, columns, abc, -1), MERCER_ERROR_ARGUMENT, "count");
    assert_fails(NULL, mercer_model_match(NULL, columns, abc, 3), MERCER_ERROR_ARGUMENT, "model");
    assert_true(columns[0] == 7 && columns[1] == 7 && columns[2] == 7); /* untouched */
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, long_names, 3));
    assert_fails(context, mercer_model_match(model, columns, typo, 3), MERCER_ERROR_MISMATCH, "'price_eur'");
    /* Repeated names match in order: the first occurrence matches the first. */
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, repeated, 3));
    assert_succeeds(context, mercer_model_match(model, columns, twice, 4));
    assert_true(columns[0] == 1 && columns[1] == 0 && columns[2] == 3);
    mercer_model_free(model);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

static void test_columns_in_order(void **state)
{
    (void)state;
    folder_clear();
    static const double expected[] = {1, 2, 3, 4, 5, 6};
    mercer_dataset_options options = data_options(text_file("x.csv", "c,id,y,a,b\n3,p q,0.5,1,2\n6,r,1.5,4,5\n"), NULL);
    options.columns = abc, options.column_count = 3;
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    assert_values(data, 1, (double[]){0.5, 1.5});
    assert_names(about(data).feature_names, "a b c");
    assert_names(about(data).target_names, "y");
    assert_int_equal(about(data).unused, 1);
    assert_names(about(data).unused_names, "id");
    mercer_dataset *part = NULL;
    assert_succeeds(context, mercer_dataset_take(&part, data, (int64_t[]){1}, 1));
    assert_names(about(part).target_names, "y");
    assert_names(about(part).unused_names, "id");
    mercer_dataset_free(part), mercer_dataset_free(data);
    options.task = MERCER_TASK_UNLABELED; /* without targets the target column is one more unused column */
    data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    assert_int_equal(about(data).unused, 2);
    mercer_dataset_free(data);
    /* Several files, with names only in the first. */
    text_file("p-1.csv", "b,c,a\n2,3,1\n"), text_file("p-2.csv", "5,6,4\n");
    options.x = in_folder("p-*.csv");
    data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    mercer_dataset_free(data);
    /* Without names columns match by position, and their number must match the model's. */
    options.x = text_file("x.csv", "1,2,3\n4,5,6\n");
    data = open_with(&options);
    assert_samples(data, 2, 3, expected);
    assert_null(about(data).feature_names);
    mercer_dataset_free(data);
    options.x = text_file("x.csv", "1,2\n4,5\n");
    assert_refused(&options, MERCER_ERROR_SHAPE, "x.csv: 2 features*3");
    options.x = text_file("x.csv", "a,b,d\n1,2,3\n");
    assert_refused(&options, MERCER_ERROR_MISMATCH, "x.csv: *'c'*model");
    options.x = text_file("x.csv", "a,b,c,c\n1,2,3,4\n");
    assert_refused(&options, MERCER_ERROR_MISMATCH, "x.csv");
    options.x = text_file("x.csv", "b,c,a\n1,2,x\n");
    assert_refused(&options, MERCER_ERROR_DATA, "x.csv: line 2, column 'a': 'x'*number");
    options.column_count = 0;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "column_count is 0");
    options.columns = (const char *const[]){"a", NULL}, options.column_count = 2;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "columns[1] is NULL");
}

static void test_several_targets(void **state)
{
    (void)state;
    folder_clear();
    static const double both[] = {10, 0.25, 20, 1e300};
    const char *text = "u,a,v\n10,1,0.25\n20,2,1e300\n";
    static const char *const asked[] = {"u,v", " u , v ", "0,-1", "u,2"};
    for (int i = 0; i < 4; i++) {
        mercer_dataset_options options = data_options(text_file("x.csv", text), NULL);
        options.target = asked[i];
        mercer_dataset *data = open_with(&options);
        assert_samples(data, 2, 1, (double[]){1, 2});
        assert_values(data, 2, both);
        assert_names(about(data).target_names, "u v");
        mercer_dataset_free(data);
    }
    mercer_dataset_options options = data_options(in_folder("x.csv"), NULL);
    options.target = "v,u";
    mercer_dataset *data = open_with(&options);
    assert_values(data, 2, (double[]){0.25, 10, 1e300, 20});
    mercer_dataset_free(data);
    options.target = "u,v,u";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "column 'u'");
    options.target = "u,z";
    assert_refused(&options, MERCER_ERROR_MISMATCH, "'z'");
    options.target = "u,";
    assert_refused(&options, MERCER_ERROR_MISMATCH, "''");
    options.target = "u,v", options.task = MERCER_TASK_CLASSIFICATION;
    assert_refused(&options, MERCER_ERROR_SHAPE, "2 columns*targets");
    /* All columns of a target file are targets. */
    options = data_options(text_file("x.csv", "1\n2\n"), text_file("y.csv", "p,q,r\n1,2,3\n4,5,6\n"));
    data = open_with(&options);
    assert_values(data, 3, (double[]){1, 2, 3, 4, 5, 6});
    assert_names(about(data).target_names, "p q r");
    mercer_dataset_free(data);
    options.target = "r,p";
    data = open_with(&options);
    assert_values(data, 2, (double[]){3, 1, 6, 4});
    mercer_dataset_free(data);
    options.target = NULL, options.y = text_file("y.csv", "1,2\n4,x\n");
    assert_refused(&options, MERCER_ERROR_DATA, "'x'");
    /* A target name that contains a comma. */
    options = data_options(text_file("x.csv", "\"u,v\",a\n10,1\n"), NULL);
    options.target = "u,v", options.task = MERCER_TASK_REGRESSION;
    data = open_with(&options);
    assert_values(data, 1, (double[]){10});
    mercer_dataset_free(data);
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

static void assert_text(const char *name, const char *expected)
{
    char text[512] = "";
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    assert_string_equal(text, expected);
}

static void test_writing_tables(void **state)
{
    (void)state;
    folder_clear();
    mercer_dataset_options options =
        data_options(text_file("d.csv", "a,\"b, \"\"c\"\"\",t\n0.1,16777216,\"x,y\"\n1e-30,-2.5,z\n"), NULL);
    options.target = "t";
    mercer_dataset *data = open_with(&options);
    assert_succeeds(context, mercer_dataset_write(data, in_folder("x.csv"), in_folder("y.csv")));
    assert_text("x.csv", "a,\"b, \"\"c\"\"\"\n0.1,16777216\n1e-30,-2.5\n");
    assert_text("y.csv", "t\n\"x,y\"\nz\n");
    assert_succeeds(context, mercer_dataset_write(data, in_folder("x.tsv"), in_folder("y.npy")));
    assert_text("x.tsv", "a\t\"b, \"\"c\"\"\"\n0.1\t16777216\n1e-30\t-2.5\n");
    int count = folder_count();
    assert_fails(context, mercer_dataset_write(data, in_folder("x.parquet"), NULL), MERCER_ERROR_ARGUMENT,
                 ".csv or .tsv");
    assert_fails(context, mercer_dataset_write(data, in_folder("z.csv"), in_folder("y")), MERCER_ERROR_ARGUMENT,
                 ".npy");
    assert_fails(context, mercer_dataset_write(data, in_folder("z.csv"), in_folder("none/y.csv")), MERCER_ERROR_IO,
                 "none");
    assert_fails(NULL, mercer_dataset_write(NULL, in_folder("z.csv"), NULL), MERCER_ERROR_ARGUMENT, "dataset");
    assert_int_equal(folder_count(), count);
    mercer_dataset_free(data);
    static const double numbers[] = {0.1, 1.0 / 3, 1e15, -0.0};
    data = open_data(plain_file("x.npy", "<f8", false, "2, 2", numbers, sizeof numbers), NULL);
    assert_succeeds(context, mercer_dataset_write(data, in_folder("n.csv"), NULL));
    assert_text("n.csv", "0.1,0.3333333333333333\n1e+15,-0\n");
    mercer_dataset_free(data);
}

/* If the n-th allocation fails, n = 1, 2, ..., the call reports it, frees all memory and leaves no file. */
static void test_no_memory(void **state)
{
    (void)state;
    folder_clear();
    const char *x = text_file("x.csv", "c,id,u,a,v,b\n3,p,1,1,2,2\n6,r,1,4,2,5\n");
    mercer_dataset *data = NULL;
    for (int n = 1; !data; n++) {
        mercer_dataset_options options = data_options(x, NULL);
        options.columns = abc, options.column_count = 3, options.target = "u,v";
        allocator.fail_at = allocator.requests + n;
        int64_t live = allocator.live;
        mercer_status status = mercer_dataset_open(&data, context, &options);
        allocator.fail_at = 0;
        if (status == MERCER_OK) break;
        assert_int_equal(status, MERCER_ERROR_MEMORY);
        assert_true(!data && allocator.live == live && n < 100);
    }
    for (int n = 1;; n++) {
        allocator.fail_at = allocator.requests + n;
        int64_t live = allocator.live;
        mercer_status status = mercer_dataset_write(data, in_folder("o.csv"), in_folder("p.csv"));
        allocator.fail_at = 0;
        assert_true(allocator.live == live && n < 100);
        if (status == MERCER_OK) break;
        assert_int_equal(status, MERCER_ERROR_MEMORY);
        assert_int_equal(folder_count(), 1);
    }
    assert_text("p.csv", "u,v\n1,2\n1,2\n");
    mercer_dataset_free(data);
}

/* ---- Columns in memory ------------------------------------------------------------------------------------------ */

static const double day[] = {8766, 8948, 9132, 8766}, number[] = {1, (double)NAN, 3, 1}, truth[] = {1, 0, 1, 1};
static const char *const words[] = {"red", "blue"}, *const others[] = {"blue", "green"};
static const int32_t codes[] = {0, 1, 0, -1};

static mercer_status create_dataset(mercer_dataset **out, const mercer_table_column *columns, int64_t count,
                                    const char *schema)
{
    return mercer_dataset_from_columns(out, context, columns, count, 4, schema);
}

static void refuse_column(const mercer_table_column *column, const char *schema, mercer_status status, const char *part)
{
    mercer_dataset *made = NULL;
    int64_t live = allocator.live;
    assert_fails(context, create_dataset(&made, column, 1, schema), status, part);
    assert_true(made == NULL && allocator.live == live);
}

/* The same cells yield the same features as from a file; a schema determines how another table's columns are read. */
static void test_columns_in_memory(void **state)
{
    (void)state;
    const mercer_table_column columns[] = {{"a", "number", .values = number},
                                           {"b", "category", .codes = codes, .words = words, .word_count = 2},
                                           {"when", "date", .values = day},
                                           {"ok", "boolean", .values = truth}};
    mercer_dataset_options options = data_options(
        text_file("t.csv", "a,b,when,ok\n1,red,2024-01-01,true\n,blue,2024-07-01,false\n3,red,2025-01-01,true\n"
                           "1,,2024-01-01,true\n"),
        NULL);
    options.task = MERCER_TASK_UNLABELED;
    mercer_dataset *file = open_with(&options), *made = NULL, *again = NULL;
    assert_succeeds(context, create_dataset(&made, columns, 4, NULL));
    assert_string_equal(about(made).schema, about(file).schema);
    assert_feature_names(made, "a|a missing|b=blue|b=red|b missing|when|when sine|when cosine|ok");
    mercer_matrix x = mercer_dataset_samples(file), z = mercer_dataset_samples(made);
    assert_true(z.rows == 4 && z.cols == x.cols);
    assert_memory_equal(z.data, x.data, (size_t)(x.rows * x.cols) * sizeof(float));
    /* Columns matched by name, in another order and with one extra; then unknown words, and numbers where words are
       expected. */
    static const double tens[] = {10, 20, 10, (double)NAN};
    const mercer_table_column shuffled[] = {
        columns[3], {"new", "number", .values = number}, columns[2], columns[0], columns[1]};
    assert_succeeds(context, create_dataset(&again, shuffled, 5, about(file).schema));
    assert_memory_equal(mercer_dataset_samples(again).data, x.data, (size_t)(x.rows * x.cols) * sizeof(float));
    mercer_dataset_free(again);
    const mercer_table_column fresh[] = {{"k", "category", .codes = codes, .words = others, .word_count = 2}};
    const mercer_table_column printed[] = {{"k", "number", .values = tens}};
    static const char closed[] =
        "{\"missing\":[],\"columns\":[{\"name\":\"id\",\"kind\":\"drop\",\"why\":\"asked\"},"
        "{\"name\":\"k\",\"kind\":\"category\",\"levels\":[\"10\",\"blue\"],%s\"missing\":0}]}";
    for (int other = 0; other < 2; other++) {
        char text[sizeof closed + 20];
        snprintf(text, sizeof text, closed, other ? "\"other\":true," : "");
        assert_succeeds(context, create_dataset(&again, fresh, 1, text)); /* blue, green, blue, missing */
        assert_samples(again, 4, 2 + other,
                       other ? (double[]){0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0} : (double[]){0, 1, 0, 0, 0, 1, 0, 0});
        mercer_dataset_free(again);
        assert_succeeds(context, create_dataset(&again, printed, 1, text)); /* 10, 20, 10, missing */
        assert_samples(again, 4, 2 + other,
                       other ? (double[]){1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0} : (double[]){1, 0, 0, 0, 1, 0, 0, 0});
        mercer_dataset_free(again);
    }
    /* Without names, a table of numbers only needs no schema; with a schema, columns match by position. */
    const mercer_table_column plain[] = {{.kind = "number", .values = day}, {.kind = "number", .values = truth}};
    assert_succeeds(context, create_dataset(&again, plain, 2, NULL));
    assert_null(about(again).schema);
    assert_null(about(again).feature_names);
    assert_samples(again, 4, 2, (double[]){8766, 1, 8948, 0, 9132, 1, 8766, 1});
    mercer_dataset_free(again);
    refuse_column(plain, about(file).schema, MERCER_ERROR_SHAPE, "1 columns*names");
    refuse_column(columns, about(file).schema, MERCER_ERROR_MISMATCH, "'b'");
    mercer_dataset_free(made);
    mercer_dataset_free(file);
}

static void test_bad_columns(void **state)
{
    (void)state;
    static const double huge[] = {1, 2, 1e300, 4};
    static const int32_t beyond[] = {0, 1, 2, 0};
    const mercer_status mismatch = MERCER_ERROR_MISMATCH;
    refuse_column(&(mercer_table_column){"a", NULL, .values = number}, NULL, mismatch, "column 'a'*kind");
    refuse_column(&(mercer_table_column){NULL, "word", .values = number}, NULL, mismatch, "column 0 *kind");
    refuse_column(&(mercer_table_column){"a", "drop", .values = number}, NULL, mismatch, "column 'a'*kind");
    refuse_column(&(mercer_table_column){"a", "number", .values = NULL}, NULL, mismatch, "column 'a'*values");
    refuse_column(&(mercer_table_column){"a", "category", .values = number}, NULL, mismatch, "values");
    refuse_column(&(mercer_table_column){"a", "category", .codes = codes, .word_count = 2}, NULL, mismatch,
                  "column 'a'*values");
    refuse_column(&(mercer_table_column){"a", "category", .codes = beyond, .words = words, .word_count = 2}, NULL,
                  mismatch, "column 'a'");
    refuse_column(&(mercer_table_column){"a", "number", .values = huge}, NULL, mismatch, "column 'a'*range*f32");
    static const char schema[] =
        "{\"missing\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"%s\",\"mean\":1,\"missing\":0}]}";
    static const char *const pairs[][2] = {{"date", "number"}, {"number", "date"}};
    for (int i = 0; i < 2; i++) {
        char text[200], part[200];
        snprintf(text, sizeof text, schema, pairs[i][1]);
        snprintf(part, sizeof part, "column 'a'*%s*%s", pairs[i][0], pairs[i][1]);
        refuse_column(&(mercer_table_column){"a", pairs[i][0], .values = number}, text, mismatch, part);
    }
    static const char *const kinds[] = {"number", "date", "boolean"};
    for (int i = 0; i < 3; i++) {
        char text[200], part[200];
        snprintf(text, sizeof text, schema, kinds[i]);
        snprintf(part, sizeof part, "column 'a', row 0: '%s'*%s", words[codes[0]], kinds[i]);
        refuse_column(&(mercer_table_column){"a", "text", NULL, codes, words, 2}, text, mismatch, part);
    }
}

/* If the n-th allocation fails, n = 1, 2, ..., the call reports it and frees everything. */
static void test_columns_without_memory(void **state)
{
    (void)state;
    static const double far[] = {1.7e9, 1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 4}; /* distinct as doubles, equal as floats */
    const mercer_table_column columns[] = {{"a", "number", .values = number},
                                           {"b", "category", .codes = codes, .words = words, .word_count = 2},
                                           {"c", "number", .values = far},
                                           {"k", "number", .values = truth}};
    static const char given[] =
        "{\"missing\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"mean\":1,\"missing\":0},"
        "{\"name\":\"k\",\"kind\":\"category\",\"levels\":[\"0\",\"1\"],\"missing\":0},"
        "{\"name\":\"b\",\"kind\":\"category\",\"levels\":[\"blue\"],\"missing\":0}]}";
    for (int with = 0; with < 2; with++) {
        mercer_status status = MERCER_ERROR_MEMORY;
        for (int n = 1; status != MERCER_OK; n++) {
            mercer_dataset *made = NULL;
            int64_t live = allocator.live;
            allocator.fail_at = allocator.requests + n;
            status = create_dataset(&made, columns, 4, with ? given : NULL);
            allocator.fail_at = 0;
            assert_true(status == MERCER_ERROR_MEMORY ? !made : status == MERCER_OK && n > 8);
            mercer_dataset_free(made);
            assert_true(allocator.live == live && n < 200);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_keep_names),     cmocka_unit_test(test_match),
        cmocka_unit_test(test_columns_in_order),      cmocka_unit_test(test_several_targets),
        cmocka_unit_test(test_writing_tables),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_columns_in_memory),     cmocka_unit_test(test_bad_columns),
        cmocka_unit_test(test_columns_without_memory)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
