/* SPDX-License-Identifier: BSD-3-Clause */
/* Missing numbers are imputed from the other values of their row, in the training table, in new tables and after
   loading a model file. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "data/dataset.h"
#include "data/schema/schema.h"

#include <math.h>

enum { GAP_ROWS = 300, NUMBERS = 4 };

/* Write a table with four correlated number columns (some cells missing), a word column and a target; the caller
   frees the text. cells: (GAP_ROWS, NUMBERS), receives the numbers, NaN where missing. */
static char *gappy_table(double *cells)
{
    mrc_rng rng = {.seed = 8};
    char *text = malloc(100 * GAP_ROWS + 64), *at = text + sprintf(text, "a,b,w,c,d,y\n");
    for (int i = 0; i < GAP_ROWS; i++) {
        double *x = cells + (size_t)i * NUMBERS, u[NUMBERS];
        for (int j = 0; j < NUMBERS; j++) u[j] = mrc_random_uniform(rng, 9 * (uint64_t)i + (uint64_t)j);
        const double exact[] = {u[0], 100 * u[0] + 20 * u[1], -u[1] + 0.5 * u[2], 1e-3 * (u[0] - u[2] + u[3])};
        for (int j = 0; j < NUMBERS; j++) {
            x[j] = mrc_random_uniform(rng, 9 * (uint64_t)i + 4 + (uint64_t)j) < 0.2 ? (double)NAN
                                                                                    : (double)(float)exact[j];
            at += isnan(x[j]) ? sprintf(at, ",") : sprintf(at, "%.9g,", x[j]);
            if (j == 1) at += sprintf(at, "w%d,", i % 3);
        }
        at += sprintf(at, "%d\n", i % 5);
    }
    return text;
}

static mercer_dataset *open_gappy(const char *text)
{
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    options.task = MERCER_TASK_REGRESSION;
    return open_with(&options);
}

/* Solve a x = b by elimination; a is overwritten, b becomes the solution. */
static void eliminate(double a[NUMBERS][NUMBERS], double *b, int n)
{
    for (int p = 0; p < n; p++)
        for (int i = p + 1; i < n; i++) {
            double factor = a[i][p] / a[p][p];
            for (int j = p; j < n; j++) a[i][j] -= factor * a[p][j];
            b[i] -= factor * b[p];
        }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) b[i] -= a[i][j] * b[j];
        b[i] /= a[i][i];
    }
}

/* Reference imputation: ridge regression of the missing values on the present ones, R_mo (R_oo + rho I)^-1 z_o,
   solved separately for each row. */
static void fill_plainly(double *cells, double mean[NUMBERS], double deviation[NUMBERS])
{
    double r[NUMBERS][NUMBERS];
#define Z(i, j) ((cells[(i)*NUMBERS + (j)] - mean[j]) / deviation[j])
    for (int j = 0; j < NUMBERS; j++) {
        double sum = 0, squares = 0, known = 0;
        for (int i = 0; i < GAP_ROWS; i++)
            if (!isnan(cells[i * NUMBERS + j])) sum += cells[i * NUMBERS + j], known++;
        mean[j] = sum / known;
        for (int i = 0; i < GAP_ROWS; i++)
            if (!isnan(cells[i * NUMBERS + j])) squares += pow(cells[i * NUMBERS + j] - mean[j], 2);
        deviation[j] = sqrt(squares / known);
    }
    for (int j = 0; j < NUMBERS; j++)
        for (int k = 0; k < NUMBERS; k++) {
            double sum = 0, known = 0;
            for (int i = 0; i < GAP_ROWS; i++)
                if (!isnan(Z(i, j)) && !isnan(Z(i, k))) sum += Z(i, j) * Z(i, k), known++;
            r[j][k] = j == k ? 1 + (double)NUMBERS / GAP_ROWS : sum / known;
        }
    for (int i = 0; i < GAP_ROWS; i++) {
        double a[NUMBERS][NUMBERS], b[NUMBERS], filled[NUMBERS];
        int known[NUMBERS], n = 0;
        for (int j = 0; j < NUMBERS; j++)
            if (!isnan(Z(i, j))) known[n++] = j;
        for (int j = 0; j < n; j++) {
            b[j] = Z(i, known[j]);
            for (int k = 0; k < n; k++) a[j][k] = r[known[j]][known[k]];
        }
        eliminate(a, b, n);
        for (int j = 0; j < NUMBERS; j++) {
            filled[j] = 0;
            for (int k = 0; k < n; k++) filled[j] += r[j][known[k]] * b[k];
        }
        for (int j = 0; j < NUMBERS; j++)
            if (isnan(cells[i * NUMBERS + j])) cells[i * NUMBERS + j] = mean[j] + deviation[j] * filled[j];
    }
#undef Z
}

static void test_missing_values(void **state)
{
    (void)state;
    /* Indices of the number features. The missing flag follows each number; after that of b there are three levels of
       words. */
    static const int places[NUMBERS] = {0, 2, 7, 9};
    double cells[GAP_ROWS * NUMBERS], given[GAP_ROWS * NUMBERS], mean[NUMBERS], deviation[NUMBERS];
    char *text = gappy_table(cells);
    memcpy(given, cells, sizeof cells);
    fill_plainly(cells, mean, deviation);
    mercer_dataset *data = open_gappy(text);
    mercer_matrix x = mercer_dataset_samples(data);
    assert_int_equal(x.cols, 11);
    /* Tolerance: one rounding to float, and systems with a condition below (4 + rho) / rho = 301 solved in double. */
    for (int i = 0; i < GAP_ROWS; i++)
        for (int j = 0; j < NUMBERS; j++) {
            double found = mrc_load(&x, i, places[j]), expected = cells[i * NUMBERS + j];
            assert_that(fabs(found - expected) <= 0x1p-24 * fabs(expected) + 1e-12 * deviation[j],
                        "(%d, %d) is %.9g, not %.9g", i, j, found, expected);
            assert_true(mrc_load(&x, i, places[j] + 1) == isnan(given[i * NUMBERS + j]));
        }
    /* A new table read by the schema, with its columns in another order, is imputed identically. A row without any
       number gets the means. */
    char *schema = strdup(about(data).schema), *shuffled = malloc(100 * GAP_ROWS), *at = shuffled;
    at += sprintf(at, "d,w,c,b,a\n");
    for (int i = 0; i < GAP_ROWS; i++) {
        char words[NUMBERS][32] = {""};
        for (int j = 0; j < NUMBERS; j++)
            if (!isnan(given[i * NUMBERS + j])) snprintf(words[j], sizeof *words, "%.9g", given[i * NUMBERS + j]);
        at += sprintf(at, "%s,w%d,%s,%s,%s\n", words[3], i % 3, words[2], words[1], words[0]);
    }
    sprintf(at, ",w0,,,\n");
    mercer_dataset_options options = data_options(text_file("new.csv", shuffled), NULL);
    options.task = MERCER_TASK_UNLABELED;
    options.schema = schema;
    mercer_dataset *again = open_with(&options);
    mercer_matrix z = mercer_dataset_samples(again);
    assert_memory_equal(z.data, x.data, (size_t)(x.rows * x.cols) * sizeof(float));
    for (int j = 0; j < NUMBERS; j++)
        assert_true(fabs(mrc_load(&z, GAP_ROWS, places[j]) - mean[j]) <= 1e-6 * deviation[j]);
    mercer_dataset_free(again);
    /* Invalid imputation entries in a schema are refused. */
    static const char *const lies[][2] = {{"\"deviation\":0,\"precision\":[1]", "column 0 *deviation"},
                                          {"\"deviation\":1,\"precision\":[1,2]", "missing values"},
                                          {"\"deviation\":1,\"precision\":[0]", "precision*definite"},
                                          {"\"deviation\":1,\"precision\":[\"1\"]", "column 0 *precision*list"},
                                          {"\"deviation\":1e-400,\"precision\":[1]", "column 0 *deviation"},
                                          {"\"deviation\":1", "missing values"},
                                          {"\"precision\":[1]", "column 0 *deviation"},
                                          {"\"deviation\":\"1\",\"precision\":[1]", "column 0 *deviation"}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char lie[256];
        snprintf(lie, sizeof lie,
                 "{\"missing\":[],\"columns\":[{\"name\":\"a\",\"kind\":\"number\",\"mean\":1,"
                 "\"missing\":1,%s}]}",
                 lies[i][0]);
        options.schema = lie;
        assert_refused(&options, MERCER_ERROR_FORMAT, lies[i][1]);
    }
    mercer_dataset_free(data);
    free(text), free(schema), free(shuffled);
}

/* When there are too many rows, every 2^s-th row is sampled, never more than the capacity. */
static void test_spread_rows(void **state)
{
    (void)state;
    mrc_spread_rows rows = {.cells = NULL};
    for (int64_t i = 0; i < 3 * MRC_GAPS_ROWS + 5; i++) {
        float cells[2] = {(float)i, (float)-i};
        assert_succeeds(context, mrc_spread_rows_add(&rows, context, i, cells, 2));
        int64_t stride = i < MRC_GAPS_ROWS ? 1 : i < 2 * MRC_GAPS_ROWS ? 2 : 4;
        if (i % 1000 && i < 3 * MRC_GAPS_ROWS) continue;
        assert_true(rows.stride == stride && rows.saved == i / stride + 1 && rows.saved <= MRC_GAPS_ROWS);
        for (int64_t k = 0; k < rows.saved; k++)
            assert_true(rows.cells[2 * k] == (float)(k * stride) && rows.cells[2 * k + 1] == (float)(-k * stride));
    }
    mrc_free(context, rows.cells);
    rows = (mrc_spread_rows){.cells = NULL};
    float many[MRC_GAPS_COLUMNS + 1] = {0};
    assert_succeeds(context, mrc_spread_rows_add(&rows, context, 0, many, MRC_GAPS_COLUMNS + 1));
    assert_null(rows.cells);
}

/* Older readers refuse a schema that imputes missing values, so the model file must have a newer version number. */
static void test_imputation_in_model_file(void **state)
{
    (void)state;
    double cells[GAP_ROWS * NUMBERS];
    char header[65536], *text = gappy_table(cells);
    const char *path = in_folder("m.safetensors");
    mercer_dataset *data = open_gappy(text);
    mercer_model *model = NULL, *again = NULL;
    mercer_fit_options options = MERCER_INIT(mercer_fit_options);
    options.centers.count = 5;
    assert_succeeds(context, mercer_fit(&model, context, data, &options, NULL));
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path));
    assert_non_null(strstr(header, "\"format_version\":\"5\""));
    assert_succeeds(context, mercer_model_load(&again, context, NULL, path));
    assert_string_equal(model_info(again).schema, about(data).schema);
    mercer_model_free(again);
    mercer_model_free(model);
    mercer_dataset_free(data);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_missing_values), cmocka_unit_test(test_spread_rows),
                                       cmocka_unit_test(test_imputation_in_model_file)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
