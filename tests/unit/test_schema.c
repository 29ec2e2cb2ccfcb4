/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables with words, dates and missing values: detected column kinds, their features, and new tables read in the same
   way. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "data/dataset.h"
#include "data/schema/date.h"
#include "data/schema/schema.h"

#include <jansson.h>
#include <math.h>

static mercer_dataset_options table_options(const char *name, const char *text)
{
    mercer_dataset_options options = data_options(text_file(name, text), NULL);
    options.target = "y";
    options.task = MERCER_TASK_REGRESSION;
    return options;
}

static mercer_dataset *open_table(const char *text)
{
    mercer_dataset_options options = table_options("t.csv", text);
    return open_with(&options);
}

static void refuse(const char *text, mercer_status status, const char *part)
{
    mercer_dataset_options options = table_options("bad.csv", text);
    assert_refused(&options, status, part);
}

/* ---- Dates ----------------------------------------------------------------------------------------------------- */

static void test_dates(void **state)
{
    (void)state;
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t expected = 0; /* day number, counted from 2000-01-01 */
    for (int year = 2000; year < 2101; year++)
        for (int month = 1; month <= 12; month++) {
            int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            int days = month_days[month - 1] + (month == 2 && leap);
            for (int day = 1; day <= days + 1; day++) {
                char text[40];
                double found = -1;
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                assert_int_equal(mrc_read_date(text, text + strlen(text), &found), day <= days);
                if (day <= days) assert_true(found == (double)expected++);
            }
        }
    static const struct {
        const char *text;
        double days;
    } times[] = {{"2000-01-02T12:00", 1.5},
                 {"2000-01-01 06:00:00", 0.25},
                 {"1999-12-31", -1},
                 {"2000-01-01T06:00+06:00", 0},
                 {"2000-01-01T06:00Z", 0.25},
                 {" 2000-01-03 ", 2},
                 {"2000-01-01T00:00:43.200", 0.0005},
                 {"2000-01-01T06:00-0600", 0.5},
                 {"2000-01-01T00:00:00.", 0},
                 {"2000-01-01T24:00", 1},
                 {"2000-01-01T23:59:60", 1},
                 {"0001-01-01", -730119},
                 {"2000-01-01T00:00:43.2Z", 0.0005},
                 {"2000-01-01T00:00-01:30", 0.0625}};
    static const char *const wrong[] = {"2000-1-01",
                                        "2000-13-01",
                                        "20000101",
                                        "2000-01-01x",
                                        "2000-01-01T",
                                        "2000-01",
                                        "",
                                        "2000-01-01T25:00",
                                        "12:30",
                                        "0000-01-01",
                                        "2000-00-01",
                                        "2000-01-00",
                                        "2000-01-01T12:60",
                                        "2000-01-01T12:00:61",
                                        "2000-01-01T12:00:6",
                                        "2000-01-01T12:00x",
                                        "2000-01-01T12:00+1",
                                        "2000-01-01T12:00+01",
                                        "2000-01-01T12:00+01;00",
                                        "2000-01-01T12:00+01:0",
                                        "2000-01-01T1200",
                                        "2000-01-01T12:00:05.2x",
                                        "2000-01-01T12:00ZZ",
                                        "2000-01-01T12:00+01:00x",
                                        "2000/01/01",
                                        "2000-01/01",
                                        "2000-01-01T12:0:00"};
    double found;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_true(mrc_read_date(times[i].text, times[i].text + strlen(times[i].text), &found));
        assert_that(fabs(found - times[i].days) < 1e-12, "%s is %.17g", times[i].text, found);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(mrc_read_date(wrong[i], wrong[i] + strlen(wrong[i]), &found));
}

/* ---- Tables with known features -------------------------------------------------------------------------------- */

static double single(double value)
{
    volatile float rounded = (float)value; /* without volatile some compilers omit the rounding when they vectorize */
    return (double)rounded;
}

static void test_kinds(void **state)
{
    (void)state;
    mercer_dataset *data = open_table("a,b,when,ok,same,none,y\n"
                                      "1,red,2024-01-01,true,7,,1\n"
                                      ",blue,2024-07-01,FALSE,7,NA,2\n"
                                      "3, red ,?,True,7,,3\n");
    const double early = 8766, late = 8766 + 182, mean = (early + late) / 2;
    double s[3], c[3];
    mrc_date_season(early, &s[0], &c[0]);
    mrc_date_season(late, &s[1], &c[1]);
    mrc_date_season(mean, &s[2], &c[2]);
    const double expected[] = {1, 0, 0, 1, early, single(s[0]), single(c[0]), 0, 1, /* red, early */
                               2, 1, 1, 0, late,  single(s[1]), single(c[1]), 0, 0, /* the mean of a, blue */
                               3, 0, 0, 1, mean,  single(s[2]), single(c[2]), 1, 1};
    assert_feature_names(data, "a|a missing|b=blue|b=red|when|when sine|when cosine|when missing|ok");
    assert_samples(data, 3, 9, expected);
    assert_non_null(strstr(about(data).schema, "{\"name\":\"same\",\"kind\":\"drop\",\"why\":\"constant\"}"));
    assert_true(mentions(about(data).schema, "{\"name\":\"none\",\"kind\":\"drop\",\"why\":\"*missing\"}"));
    mercer_dataset_free(data);
    /* Numbers without missing values are unchanged, for all values. */
    data = open_table("a,same,y\n1,7,1\n2,7,2\n");
    assert_null(about(data).schema);
    assert_samples(data, 2, 2, (double[]){1, 7, 2, 7});
    mercer_dataset_free(data);
    /* A missing category is a separate level; a word in a late row turns the earlier numbers of its column into
       words. */
    char text[4096] = "k,y\n,0\n";
    for (int i = 0; i < 300; i++) snprintf(text + strlen(text), 16, "%d,%d\n", i % 2, i);
    for (int i = 0; i < 60; i++) strcat(text, "x,1\n");
    data = open_table(text);
    assert_feature_names(data, "k=0|k=1|k=x|k missing");
    mercer_matrix x = mercer_dataset_samples(data);
    for (int64_t i = 0; i < x.rows; i++) {
        int64_t level = i == 0 ? 3 : i > 300 ? 2 : (i - 1) % 2;
        for (int64_t j = 0; j < 4; j++) assert_true(mrc_load(&x, i, j) == (j == level));
    }
    mercer_dataset_free(data);
}

static void test_separators(void **state)
{
    (void)state;
    static const char *const texts[] = {"a;b;y\n1,5;u;1\n-2,25;v;2\n", "a|b|y\n1.5|u|1\n-2.25|v|2\n",
                                        "a\tb\ty\r\n1.5\tu\t1\r\n-2.25\tv\t2\r\n",
                                        "a,b,y\n\"1.5\",\"u\",1\n-2.25,\"v\",2\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mercer_dataset *data = open_table(texts[i]);
        assert_feature_names(data, "a|b=u|b=v");
        assert_samples(data, 2, 3, (double[]){1.5, 1, 0, -2.25, 0, 1});
        assert_values(data, 1, (double[]){1, 2});
        mercer_dataset_free(data);
    }
    mercer_dataset *data = open_table("b,y\n\"one, \"\"two\"\"\nthree\",1\nother,2\n");
    assert_feature_names(data, "b=one, \"two\"\nthree|b=other");
    assert_samples(data, 2, 2, (double[]){1, 0, 0, 1});
    mercer_dataset_free(data);
}

/* ---- A table against a reference implementation ---------------------------------------------------------------- */

enum { ROWS = 500, WORDS = 300 };

/* A number with missing values, and a word out of 300: the first 300 rows have word i each, later rows one of the
   first 200. The last words are the rarest. */
static void test_reference(void **state)
{
    (void)state;
    mrc_rng rng = {.seed = 3};
    double values[ROWS], sum = 0;
    int words[ROWS], counts[WORDS] = {0}, known = 0;
    char *text = malloc(64 * ROWS + 64), *at = text + sprintf(text, "a,w,y\n");
    for (int i = 0; i < ROWS; i++) {
        values[i] =
            i % 7 == 3 ? (double)NAN : (double)(float)(floor(mrc_random_uniform(rng, 2 * (uint64_t)i) * 4000) / 8 - 9);
        words[i] = i < WORDS ? i : (int)(mrc_random_uniform(rng, 2 * (uint64_t)i + 1) * 200);
        counts[words[i]]++;
        if (!isnan(values[i])) sum += values[i], known++;
        at += isnan(values[i]) ? sprintf(at, ",w%03d,%d\n", words[i], i)
                               : sprintf(at, "%.17g,w%03d,%d\n", values[i], words[i], i);
    }
    /* The 255 most frequent words, for equal counts the first by name; then sorted by name. */
    int order[WORDS], feature[WORDS];
    for (int k = 0; k < WORDS; k++) order[k] = k;
    for (int k = 1; k < WORDS; k++)
        for (int j = k; j > 0 && counts[order[j]] > counts[order[j - 1]]; j--) {
            int other = order[j];
            order[j] = order[j - 1];
            order[j - 1] = other;
        }
    for (int k = 0; k < WORDS; k++) feature[k] = 2 + 255;
    for (int k = 0; k < 255; k++) {
        feature[order[k]] = 2;
        for (int j = 0; j < 255; j++) feature[order[k]] += order[j] < order[k];
    }
    mercer_dataset_options options = table_options("t.csv", text);
    options.kinds = "w:category"; /* repeated words, because distinct words would be detected as identifiers */
    mercer_dataset *data = open_with(&options);
    mercer_matrix x = mercer_dataset_samples(data);
    assert_int_equal(x.cols, 2 + 255 + 1 + 1); /* the last one is tested by test_level_statistics.c */
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < x.cols - 1; j++) {
            double expected = j == 0   ? (double)(float)(isnan(values[i]) ? sum / known : values[i])
                              : j == 1 ? isnan(values[i])
                                       : j == feature[words[i]];
            assert_that(mrc_load(&x, i, j) == expected, "(%d, %d) is %g, not %g", i, j, mrc_load(&x, i, j), expected);
        }
    assert_string_equal(about(data).feature_names[257], "w other");
    assert_string_equal(about(data).feature_names[x.cols - 1], "w target");
    mercer_dataset_free(data);
    free(text);
}

/* ---- New tables ------------------------------------------------------------------------------------------------ */

static void test_new_tables(void **state)
{
    (void)state;
    static const char old[] = "a,b,id,when,y\n1,red,5,2024-01-01,1\n,blue,5,2024-07-01,2\n3,red,5,2025-01-01,3\n";
    static const char shuffled[] = "new,when,b,a\n9,2024-01-01,red,1\n9,2024-07-01,blue,\n9,2025-01-01,red,3\n";
    mercer_dataset *data = open_table(old);
    mercer_matrix x = mercer_dataset_samples(data);
    char *schema = strdup(about(data).schema);
    mercer_dataset_options options = data_options(text_file("new.csv", shuffled), NULL);
    options.task = MERCER_TASK_UNLABELED;
    options.schema = schema;
    mercer_dataset *again = open_with(&options);
    mercer_matrix z = mercer_dataset_samples(again);
    assert_true(z.rows == 3 && z.cols == x.cols);
    assert_memory_equal(z.data, x.data, (size_t)(x.rows * x.cols) * sizeof(float));
    assert_string_equal(about(again).schema, schema);
    mercer_dataset_free(again);
    /* Without column names, columns are matched by position; their number must be that of the training table, including
       excluded columns. */
    options.x = text_file("new.csv", "1,red,5,2024-01-01\n,blue,5,2024-07-01\n3,red,5,2025-01-01\n");
    options.header = MERCER_OFF;
    again = open_with(&options);
    assert_memory_equal(mercer_dataset_samples(again).data, x.data, (size_t)(x.rows * x.cols) * sizeof(float));
    mercer_dataset_free(again);
    options.x = text_file("new.csv", "1,red,2024-01-01\n");
    assert_refused(&options, MERCER_ERROR_SHAPE, "3 columns*names*4");
    options.header = MERCER_AUTO;
    options.x = text_file("new.csv", "a,c,when\n1,red,2024-01-01\n");
    assert_refused(&options, MERCER_ERROR_MISMATCH, "'b'*model");
    options.x = text_file("new.csv", "a,b,when\nx,red,2024-01-01\n");
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'a': 'x'*number");
    options.x = text_file("new.csv", "a,b,when\n1,red,yesterday\n");
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'when': 'yesterday'*date");
    /* A word that is not a level sets none of the level features. */
    options.x = text_file("new.csv", "a,b,when\n1,green,2024-01-01\n1,,2024-01-01\n");
    again = open_with(&options);
    z = mercer_dataset_samples(again);
    for (int i = 0; i < 2; i++) assert_true(mrc_load(&z, i, 2) == 0 && mrc_load(&z, i, 3) == 0);
    mercer_dataset_free(again);
    options.schema = "{\"columns\":[]}";
    assert_refused(&options, MERCER_ERROR_FORMAT, "schema*columns");
    options.schema = "{";
    assert_refused(&options, MERCER_ERROR_FORMAT, "the schema: line 1");
    mercer_dataset_free(data);
    free(schema);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static void test_options(void **state)
{
    (void)state;
    static const char text[] = "zip,id,w,a,y\n100,r1,2,-999,1\n200,r2,0.5,4,2\n100,r3,1,unknown,3\n";
    mercer_dataset_options options = table_options("t.csv", text);
    options.kinds = "zip:category, id:drop";
    options.weight_column = "w";
    options.missing = "-999,unknown";
    mercer_dataset *data = open_with(&options);
    assert_feature_names(data, "zip=100|zip=200|a|a missing");
    assert_samples(data, 3, 4, (double[]){1, 0, 4, 1, 0, 1, 4, 0, 1, 0, 4, 1});
    assert_true(data->weights[0] == 2 && data->weights[1] == 0.5 && data->weights[2] == 1);
    char *schema = strdup(about(data).schema);
    mercer_dataset_free(data);
    options.kinds = options.weight_column = options.missing = NULL;
    options.schema = schema; /* the schema includes the missing words */
    data = open_with(&options);
    assert_samples(data, 3, 4, (double[]){1, 0, 4, 1, 0, 1, 4, 0, 1, 0, 4, 1});
    mercer_dataset_free(data);
    options.kinds = "a:number";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "schema");
    options.schema = NULL;
    assert_refused(&options, MERCER_ERROR_DATA, "line 4, column 'a': 'unknown'*number");
    options.kinds = "zap:category";
    assert_refused(&options, MERCER_ERROR_MISMATCH, "'zap'");
    options.kinds = "zip:word";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "'zip:word'");
    options.kinds = "y:drop";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "column 'y'*target");
    options.kinds = "numbers"; /* numbers only, without missing values */
    assert_refused(&options, MERCER_ERROR_DATA, "line 2, column 'id': 'r1'*number");
    options.kinds = NULL;
    options.only = "zip,w";
    data = open_with(&options); /* numbers only: no schema */
    assert_null(about(data).schema);
    assert_feature_names(data, "zip|w");
    mercer_dataset_free(data);
    options.only = NULL;
    options.id_column = "id";
    options.kinds = "a:drop";
    data = open_with(&options);
    assert_feature_names(data, "zip|w");
    mercer_dataset_free(data);
    options = table_options("t.csv", "a,w,y\n1,1,1\n2,-1,2\n");
    options.weight_column = "w";
    assert_refused(&options, MERCER_ERROR_DATA, "line 3, column 'w': '-1'*weight");
    free(schema);
}

static void test_bad_tables(void **state)
{
    (void)state;
    char text[4096] = "a,y\n";
    for (int i = 0; i < 100; i++) snprintf(text + strlen(text), 16, i == 40 ? "oops,1\n" : "%d.5,1\n", i);
    refuse(text, MERCER_ERROR_DATA,
           "line 42, column 'a': 'oops'*number*99 of 100*--missing='oops'*--columns 'a:category'");
    refuse("a,a,y\n1,x,1\n2,z,2\n", MERCER_ERROR_FORMAT, "column 'a' occurs twice");
    refuse("a,a,y\n1,3,1\n2,4,2\n", MERCER_ERROR_FORMAT, "column 'a' occurs twice");
    refuse("a,y\nx,\ny,NA\n", MERCER_ERROR_DATA, "target*missing");
    refuse("a,y\nx,1\nx,2\n", MERCER_ERROR_DATA, "no column");
    refuse("a,y\nM\xfcnchen,1\nUlm,2\n", MERCER_ERROR_FORMAT, "line 2, column 'a': byte 0xfc is not UTF-8");
    refuse("a,b,y\nx,1,1\nz,2\n", MERCER_ERROR_FORMAT, "line 3 has fewer columns");
    /* Rows without a target are left out, also from means and levels. */
    mercer_dataset *data = open_table("a,b,y\n1,u,1\n100,w,\n3,v,2\n,u,4\n");
    assert_int_equal(about(data).left_out, 1);
    assert_feature_names(data, "a|a missing|b=u|b=v");
    assert_samples(data, 3, 4, (double[]){1, 0, 1, 0, 3, 0, 0, 1, 2, 1, 1, 0});
    assert_values(data, 1, (double[]){1, 2, 4});
    mercer_dataset_free(data);
    /* A column in which every row has a different word carries no information. */
    strcpy(text, "name,a,y\n");
    for (int i = 0; i < 40; i++) snprintf(text + strlen(text), 40, "n%d,%d,%d\n", i, i, i);
    data = open_table(text);
    assert_feature_names(data, "a");
    assert_non_null(strstr(about(data).schema, "different text"));
    mercer_dataset_free(data);
}

/* ---- Preprocessing and models ------------------------------------------------------------------------------------ */

static void test_preprocess(void **state)
{
    (void)state;
    mercer_dataset *data = open_table("a,b,y\n1,u,1\n5,v,2\n,v,3\n");
    mercer_preprocess *preprocess = NULL;
    float rows[3 * 4];
    mercer_matrix x = mrc_view(rows, 3, 4, MERCER_F32);
    assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, "auto", data));
    assert_succeeds(context, mercer_dataset_read(data, &x, NULL, NULL, preprocess, NULL, 0));
    /* a is 1, 5, 3: mean 3, variance 8/3. Level features are 0 or 2, missing-value indicators 0 or 1/2. */
    const double unit = 1 / sqrt(8.0 / 3);
    const double expected[] = {-2 * unit, 0, 2, 0, 2 * unit, 0, 0, 2, 0, 0.5, 0, 2};
    for (int i = 0; i < 12; i++)
        assert_that(fabs((double)rows[i] - expected[i]) < 1e-6, "%d is %g", i, (double)rows[i]);
    mercer_preprocess_free(preprocess);
    mercer_dataset_free(data);
}

static void test_model_file(void **state)
{
    (void)state;
    const char *path = in_folder("m.safetensors");
    mercer_dataset *data = open_table("a,b,y\n1,u,1\n5,v,2\n,v,3\n2,u,2\n");
    mercer_model *model = NULL, *again = NULL;
    assert_succeeds(context, mercer_fit(&model, context, data, NULL, NULL));
    assert_string_equal(model_info(model).schema, about(data).schema);
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    assert_succeeds(context, mercer_model_load(&again, context, NULL, path));
    assert_string_equal(model_info(again).schema, about(data).schema);
    assert_fails(context, mercer_model_set_schema(again, "[]"), MERCER_ERROR_FORMAT, "schema");
    assert_fails(context,
                 mercer_model_set_schema(again, "{\"missing\":[],\"columns\":[{\"kind\":\"number\",\"mean\":1,"
                                                "\"missing\":0}]}"),
                 MERCER_ERROR_SHAPE, "1 features");
    assert_string_equal(model_info(again).schema, about(data).schema);
    mercer_model_free(again);
    mercer_model_free(model);
    mercer_dataset_free(data);
}

/* ---- Schemas as text --------------------------------------------------------------------------------------------- */

/* Checks that a schema of one column, or of two, is refused. */
static void refuse_schema(const char *columns, const char *part)
{
    char text[1024];
    mercer_dataset *made = NULL;
    const double values[] = {1, 2};
    const mercer_table_column column = {.name = "a", .kind = "number", .values = values};
    snprintf(text, sizeof text, "{\"missing\":[\"NA\"],\"columns\":[%s]}", columns);
    assert_fails(context, mercer_dataset_from_columns(&made, context, &column, 1, 2, text), MERCER_ERROR_FORMAT, part);
    assert_null(made);
}

static void test_bad_schemas(void **state)
{
    (void)state;
#define GAP "{\"name\":\"a\",\"kind\":\"number\",\"mean\":1,\"missing\":1,"
    static const char gaps[] = "column 0 (from 0) ";
    refuse_schema("3", "column 0 *kind");
    refuse_schema("{\"kind\":\"word\"}", "column 0 *kind");
    refuse_schema("{\"name\":1,\"kind\":\"number\"}", "name");
    refuse_schema("{\"kind\":\"drop\"}", "column 0");
    refuse_schema("{\"kind\":\"drop\",\"why\":\"\"}", "schema*features");
    refuse_schema("{\"kind\":\"number\",\"mean\":1}", "missing values");
    refuse_schema("{\"kind\":\"number\",\"mean\":1,\"missing\":1.5}", "missing values");
    refuse_schema("{\"kind\":\"number\",\"mean\":1,\"missing\":-1}", "missing values");
    refuse_schema("{\"kind\":\"number\",\"missing\":0}", "column 0 *mean");
    refuse_schema("{\"kind\":\"number\",\"mean\":\"1\",\"missing\":0}", "column 0 *mean");
    refuse_schema("{\"kind\":\"number\",\"mean\":1e999,\"missing\":0}", "is not JSON");
    refuse_schema("{\"kind\":\"date\",\"mean\":1,\"origin\":\"0\",\"missing\":0}", "column 0 *origin");
#define NOTED(kind, notation) "{\"kind\":\"" kind "\",\"mean\":1,\"missing\":0,\"notation\":" notation "}"
    refuse_schema(NOTED("number", "\"1234\""), "notation");
    refuse_schema(NOTED("number", "3"), "notation");
    refuse_schema(NOTED("number", "\"d/m/Y\""), "notation");
    refuse_schema(NOTED("date", "\"1,234.5\""), "notation");
    refuse_schema(NOTED("boolean", "\"1,234.5\""), "notation");
#undef NOTED
    refuse_schema("{\"kind\":\"category\",\"missing\":0}", "column 0 *levels");
    refuse_schema("{\"kind\":\"category\",\"levels\":[\"a\",2],\"missing\":0}", "column 0 *levels");
    refuse_schema("{\"kind\":\"category\",\"levels\":[],\"missing\":0}", "column 0 *empty list");
    refuse_schema("{\"kind\":\"boolean\",\"mean\":1,\"missing\":1,\"deviation\":1,\"precision\":[1]}", gaps);
    refuse_schema(GAP "\"deviation\":1}", gaps);
    refuse_schema(GAP "\"precision\":[1]}", "column 0 *deviation");
    refuse_schema(GAP "\"deviation\":0,\"precision\":[1]}", "column 0 *deviation");
    refuse_schema(GAP "\"deviation\":1e-310,\"precision\":[1]}", "column 0 *deviation"); /* its inverse overflows */
    refuse_schema(GAP "\"deviation\":1e50,\"precision\":[1]}", "column 0 *deviation");
    refuse_schema(GAP "\"deviation\":1,\"precision\":[1,0]}", gaps);
    refuse_schema(GAP "\"deviation\":1,\"precision\":[0]}", "precision*definite");
    refuse_schema(GAP "\"deviation\":1,\"precision\":[1e300]}", "precision*definite");
    refuse_schema(GAP "\"deviation\":1,\"precision\":[\"1\"]}", "column 0 *precision*list");
    refuse_schema(GAP "\"deviation\":1,\"precision\":[1]},{\"name\":\"b\",\"kind\":\"number\",\"mean\":1,"
                      "\"missing\":1,\"deviation\":1,\"precision\":[2,1]}",
                  "precision*definite");
    refuse_schema("{\"kind\":\"number\",\"mean\":1e300,\"missing\":0}", "column 0 *mean");
    refuse_schema("{\"kind\":\"number\",\"mean\":1,\"origin\":-1e300,\"missing\":0}", "column 0 *origin");
    refuse_schema("{\"kind\":\"number\",\"mean\":1,\"missing\":9000000000000000000}", "missing values");
    refuse_schema("{\"kind\":\"category\",\"levels\":[\"a\",\"b\",\"a\"],\"missing\":0}", "level");
    refuse_schema("{\"kind\":\"category\",\"levels\":[\"a\",\"\"],\"missing\":0}", "column 0 *empty level");
    refuse_schema("{\"name\":\"a\",\"kind\":\"number\",\"mean\":1,\"missing\":0},"
                  "{\"name\":\"a\",\"kind\":\"date\",\"mean\":1,\"missing\":0}",
                  "two columns*name");
    refuse_schema(GAP "\"deviation\":1,\"precision\":[1]}," GAP "\"deviation\":1,\"precision\":[1]}",
                  "column 1 (from 0) ");
#undef GAP
    mercer_dataset *made = NULL;
    const mercer_table_column column = {.kind = "number", .values = (double[]){1}};
    static const char *const texts[] = {"{\"missing\":3,\"columns\":[{}]}", "{\"columns\":[{}]}",
                                        "{\"missing\":[1],\"columns\":[{}]}"};
    for (int i = 0; i < 3; i++)
        assert_fails(context, mercer_dataset_from_columns(&made, context, &column, 1, 1, texts[i]), MERCER_ERROR_FORMAT,
                     "list*missing");
}

/* ---- Failing allocations ----------------------------------------------------------------------------------------- */

/* For every n, the n-th allocation fails: there is a message, and no memory leaks. */
static void fail_each(const mercer_dataset_options *options)
{
    for (int n = 1;; n++) {
        mercer_dataset *data = NULL;
        int64_t live = allocator.live;
        assert_true(n < 1000);
        allocator.fail_at = allocator.requests + n;
        mercer_status status = mercer_dataset_open(&data, context, options);
        allocator.fail_at = 0;
        mercer_dataset_free(data);
        assert_int_equal(allocator.live, live);
        if (status == MERCER_OK) {
            assert_true(n > 10);
            return;
        }
        assert_int_equal(status, MERCER_ERROR_MEMORY);
    }
}

static void test_allocations_fail(void **state)
{
    (void)state;
    char text[4096] = "a,b,c,when,w,y\n";
    for (int i = 0; i < 70; i++)
        snprintf(text + strlen(text), 64, "%d,%s,u%d,2024-01-%02d,1,%d\n", i, i == 60 ? "late" : "5", i, 1 + i % 28, i);
    strcat(text, ",late,,,1,4\n7,late,u1,2024-02-01,1,\n8,late,u1,2024-02-01,1,3\n9,late,u1,2024-02-01,1,3\n");
    mercer_dataset_options options = table_options("t.csv", text);
    options.kinds = "c:category";
    options.missing = "NA";
    options.weight_column = "w";
    fail_each(&options);
    mercer_dataset *data = open_with(&options);
    char *schema = strdup(about(data).schema);
    mercer_dataset_free(data);
    options.kinds = options.missing = NULL;
    options.schema = schema;
    fail_each(&options);
    free(schema);
}

static int64_t json_left; /* JSON allocations until one fails */

static void *json_memory(size_t bytes)
{
    return json_left-- == 0 ? NULL : malloc(bytes);
}

/* A text is either complete or fails for lack of memory, whichever allocation of the JSON library failed. */
static void test_texts_without_memory(void **state)
{
    (void)state;
    const char *levels[] = {"u", "v"};
    const double precision[] = {1, 0.5};
    const mrc_column columns[] = {{.name = "a",
                                   .kind = MRC_KIND_NUMBER,
                                   .mean = 1,
                                   .origin = 3,
                                   .missing = 1,
                                   .deviation = 2,
                                   .gap = 0,
                                   .precision = precision},
                                  {.name = "b", .kind = MRC_KIND_CATEGORY, .levels = levels, .level_count = 2},
                                  {.name = "c", .kind = MRC_KIND_DROP, .why = "constant"}};
    char *whole = NULL, *text = NULL;
    assert_succeeds(context, mrc_schema_print(context, columns, 3, &mrc_missing_default, &whole));
    mercer_status status = MERCER_ERROR_MEMORY;
    for (int n = 0; status != MERCER_OK; n++) {
        json_set_alloc_funcs(json_memory, free);
        json_left = n;
        status = mrc_schema_print(context, columns, 3, &mrc_missing_default, &text);
        json_set_alloc_funcs(malloc, free);
        assert_true(n < 1000 && (status == MERCER_OK || (status == MERCER_ERROR_MEMORY && !text)));
    }
    assert_string_equal(text, whole);
    mrc_free(context, text);
    mrc_free(context, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dates),       cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_separators),  cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_new_tables),  cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_bad_tables),  cmocka_unit_test(test_preprocess),
                                       cmocka_unit_test(test_model_file),  cmocka_unit_test(test_allocations_fail),
                                       cmocka_unit_test(test_bad_schemas), cmocka_unit_test(test_texts_without_memory)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
