/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runtime of exported C files, compiled unchanged with model data that each test sets: predictions are bitwise
 * identical to the library's for every kernel function, in float, double and bytes; cells are encoded as the features
 * of their columns. tests/cli/test_export.py does the same for complete exported files.
 */
#include "support/check.h"

#include "backends/cpu/micro/ukernels.h"
#include "backends/cpu/tile.h"
#include "core/numbers/softmax.h"
#include "kernels/kernel.h"
#include "mercer/advanced.h"
#include "model/model.h"
#include "support/data.h"
#include "support/info.h"

#define FEATURES     12
#define OUTPUTS      3
#define WIDTH        12
#define COLUMNS      5
#define SAMPLE       double
#define PUBLIC(name) exported_##name
#define CLASSES
#include "export/c99_runtime.h"

_Static_assert((int)TILE == (int)MRC_TILE_CENTERS, "tiles of the library");

enum { CENTERS = 300, ROWS = 40 };

static mercer_context *context;

/* ---- Predictions ----------------------------------------------------------------------------------------------- */

static member tested; /* member that holds the data of the model under test */
static const member *const members[] = {&tested};
static const ensemble the_model = {.count = 1, .members = members, .temperature = 0.5, .curvature = 20};
const char *const exported_labels[] = {"a", "b", "c", 0};

static const struct {
    const char *spec;
    kernel kernel;
} kernels[] = {{"laplace:bandwidth=3", LAPLACE},
               {"gaussian:bandwidth=2", GAUSSIAN},
               {"matern32:bandwidth=3", MATERN32},
               {"matern52:bandwidth=3", MATERN52},
               {"exppower:bandwidth=3,gamma=0.7", EXPPOWER},
               {"cauchy:bandwidth=3", CAUCHY},
               {"rational-quadratic:bandwidth=3,alpha=0.5", RATIONAL_QUADRATIC},
               {"polynomial:degree=3,scale=0.1,offset=1", POLYNOMIAL},
               {"linear", LINEAR},
               {"ntk:depth=2,bias=0.1", NTK},
               {"nngp:depth=3,bias=0.2", NNGP},
               {"laplace-l1:bandwidth=5", LAPLACE_L1},
               {"exppower-l1:bandwidth=5,gamma=0.7", EXPPOWER_L1},
               {"lpq:p=0.5,q=0.5,bandwidth=9", LPQ},
               {"lpq:p=1.5,q=0.8,bandwidth=4", LPQ},
               {"lpq:p=1.3,q=1,bandwidth=4", LPQ}};

/* Create a model with random weights and centers, and samples x; some centers are near each other and near samples. */
static mercer_model *make_model(const char *spec, mercer_dtype dtype, mercer_matrix *x)
{
    mercer_kernel function;
    mercer_model *model;
    mercer_dtype weights = dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    mercer_matrix z = data_matrix(CENTERS, FEATURES, 0, dtype), w;
    data_fill_normal(&z, (mrc_rng){1, 0}, dtype == MERCER_U8 ? 9 : 0.5, dtype == MERCER_U8 ? 4 : 1);
    assert_succeeds(context, mercer_kernel_parse(&function, context, spec));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &function, &z, OUTPUTS, weights));
    w = model_info(model).weights;
    data_fill_normal(&w, (mrc_rng){2, 0}, 0, 1);
    *x = data_matrix(ROWS, FEATURES, 0, dtype);
    data_fill_normal(x, (mrc_rng){3, 0}, dtype == MERCER_U8 ? 9 : 0.5, dtype == MERCER_U8 ? 4 : 1);
    for (int64_t k = 0; k < FEATURES; k++) {
        data_store(x, 0, k, mrc_load(&z, 7, k));
        data_store(x, 1, k, mrc_load(&z, 8, k) * (dtype == MERCER_U8 ? 1 : 1 + 1e-6));
    }
    free(z.data);
    return model;
}

/* Fill `tested` with the values that the exporter would write for `model`. */
static void fill_in(const mercer_model *model, kernel function, double *norms)
{
    const mercer_kernel *of = &model->kernel;
    const mrc_map map = mrc_map_for(of);
    bool wide = model->centers.dtype == MERCER_F64, bytes = model->centers.dtype == MERCER_U8;
    bool direct = mrc_kernel_argument(of) == MRC_ON_DIFFERENCES;
    tested = (member){.centers = CENTERS,
                      .width = FEATURES,
                      .type = wide    ? DOUBLE
                              : bytes ? BYTE
                                      : FLOAT,
                      .weight_type = wide ? DOUBLE : FLOAT,
                      .points = model->centers.data,
                      .weights = model->weights.data,
                      .wide = wide,
                      .wide_kernel = wide || !map.in_float,
                      .four = model->centers.dtype == MERCER_F32,
                      .rounded = !wide,
                      .kernel = function,
                      .a = map.a,
                      .b = map.b,
                      .bias = of->bias,
                      .degree = map.degree,
                      .norm = mrc_kernel_norm(of)};
    tested.exact = bytes && !(direct && tested.norm != 1);
    if (tested.exact || direct) return;
    if (tested.norm > 0) tested.origin = model->origin;
    for (int j = 0; j < CENTERS; j++) {
        double z[FEATURES], point[FEATURES];
        load_center(&tested, j, z);
        for (int k = 0; k < FEATURES; k++)
            point[k] = real(&tested, z[k] - (tested.origin ? real(&tested, tested.origin[k]) : 0));
        norms[j] = inner(&tested, point, point, NULL);
    }
    tested.norms = norms;
}

static void check_model(const char *spec, kernel function, mercer_dtype dtype)
{
    double norms[CENTERS], origin[FEATURES], found[OUTPUTS], row[FEATURES];
    mercer_matrix x, f = data_matrix(ROWS, OUTPUTS, 0, MERCER_F64);
    mercer_model *model = make_model(spec, dtype, &x);
    f.dtype = dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    assert_succeeds(context, mercer_model_predict(model, &f, &x));
    fill_in(model, function, norms);
    if (tested.origin && dtype != MERCER_F64) {
        for (int k = 0; k < FEATURES; k++) origin[k] = (double)(float)tested.origin[k];
        tested.origin = origin;
    }
    for (int64_t i = 0; i < ROWS; i++) {
        mrc_load_row_f64(&x, i, row);
        assert_int_equal(exported_predict(row, found), 0);
        for (int64_t c = 0; c < OUTPUTS; c++)
            assert_that(found[c] == mrc_load(&f, i, c), "%s, row %d: %.17g, not %.17g", spec, (int)i, found[c],
                        mrc_load(&f, i, c));
    }
    mercer_model_free(model);
    free(x.data), free(f.data);
}

static void test_kernels(void **state)
{
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_U8};
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (int t = 0; t < 3; t++) check_model(kernels[i].spec, kernels[i].kernel, types[t]);
}

static void test_classes(void **state)
{
    (void)state;
    double norms[CENTERS], row[FEATURES], f[OUTPUTS], p[OUTPUTS], expected[OUTPUTS];
    mercer_matrix x;
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F64, &x);
    fill_in(model, LAPLACE, norms);
    for (int64_t i = 0; i < ROWS; i++) {
        mrc_load_row_f64(&x, i, row);
        assert_int_equal(exported_predict_rows(1, row, f), 0);
        assert_int_equal(exported_probabilities(row, p), 0);
        memcpy(expected, f, sizeof expected);
        mrc_softmax_curve(expected, OUTPUTS, the_model.curvature);
        mrc_softmax(expected, expected, OUTPUTS, the_model.temperature);
        assert_memory_equal(p, expected, sizeof p);
        int best = exported_classify(row);
        for (int c = 0; c < OUTPUTS; c++) assert_true(f[best] >= f[c]);
    }
    row[3] = NAN;
    assert_int_equal(exported_predict(row, f), -1);
    assert_int_equal(exported_classify(row), -1);
    assert_int_equal(exported_probabilities(row, p), -1);
    mercer_model_free(model);
    free(x.data);
}

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

static const char *const levels[] = {"red", "blue, dark", 0};
static const column columns[] = {{COLUMN_NUMBER, 1, 0, 0, 0, 0, 0, 2.5, 0, 0, 0, 0, 0},
                                 {COLUMN_CATEGORY, 1, 1, 2, 0, 0, 0, 0, 0, levels, 2, 0, 0},
                                 {COLUMN_DATE, 0, 0, 6, "d.m.Y", 0, 0, 0, 100, 0, 0, 0, 0},
                                 {COLUMN_BOOLEAN, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                 {COLUMN_NUMBER, 1, 0, 10, 0, ',', 2, 7, 0, 0, 0, 0, 0}};
static const char *const missing_words[] = {"NA", "-999", 0};
static const int filled[] = {0, 4};
static const double deviations[] = {2, 4}, precision[] = {2, -1, -1, 2};
static const table the_table = {columns, missing_words, 2, filled, deviations, precision};
const char *const exported_columns[] = {"number", "color", "day", "flag", "amount", 0};

static void test_cells(void **state)
{
    (void)state;
    static const struct {
        const char *cells[COLUMNS];
        double x[6]; /* features: number, missing indicator of the number, 4 levels of color */
        double day, flag, amount;
    } rows[] = {{{" 1.5 ", "red", "1.1.2000", "TRUE", "\xe2\x82\xac 1.234,5"}, {1.5, 0, 1, 0, 0, 0}, -100, 1, 1234.5},
                {{"-1e1", "blue, dark", "10.04.2000 12:00", "false", "3"}, {-10, 0, 0, 1, 0, 0}, 0.5, 0, 3},
                /* The missing number is imputed: one deviation of the amount predicts half a deviation of the number,
                   2.5 + 2 / 2. */
                {{"na", "other", "10.4.2000", "false", "11,0"}, {3.5, 1, 0, 0, 1, 0}, 0, 0, 11},
                {{"-999", 0, "10.4.2000", "false", "7"}, {2.5, 1, 0, 0, 0, 1}, 0, 0, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double x[FEATURES];
        assert_int_equal(exported_encode(rows[i].cells, x), 0);
        assert_memory_equal(x, rows[i].x, sizeof rows[i].x);
        assert_true(x[6] == rows[i].day && x[9] == rows[i].flag && x[10] == rows[i].amount && x[11] == 0);
        assert_true(fabs(x[7] * x[7] + x[8] * x[8] - 1) < 1e-6);
    }
}

static void test_bad_cells(void **state)
{
    (void)state;
    static const struct {
        int column;
        const char *text;
    } bad[] = {{0, "five"},      {0, "0x10"},  {0, "1e60"}, {0, "inf"},  {2, "2000-01-01"},
               {2, "31.2.2000"}, {3, "maybe"}, {4, "$5"},   {4, "1.23"}, {4, "007"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *cells[COLUMNS] = {"1", "red", "1.1.2000", "true", "3"};
        double f[OUTPUTS];
        cells[bad[i].column] = bad[i].text;
        assert_int_equal(exported_predict_cells(cells, f), bad[i].column + 1);
    }
}

static int open_tests(void **state)
{
    (void)state;
    return mercer_context_create(&context, NULL) == MERCER_OK ? 0 : -1;
}

static int close_tests(void **state)
{
    (void)state;
    mercer_context_free(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_cells), cmocka_unit_test(test_bad_cells)};
    return cmocka_run_group_tests(tests, open_tests, close_tests);
}
