/* SPDX-License-Identifier: BSD-3-Clause */
/* Model files with any byte changed or missing, or with contents that are not a valid model, are refused; a failed
   write leaves the existing file unchanged. */
#include "support/stored_models.h"

#include "support/fitted.h"
#include "support/info.h"
#include "support/tampered.h"

/* ---- Damage -------------------------------------------------------------------------------------------------- */

static void must_refuse(const char *path, const char *what, size_t place)
{
    mercer_model *loaded = NULL;
    mercer_status status = mercer_model_load(&loaded, context, NULL, path);
    assert_that(status == MERCER_ERROR_FORMAT && !loaded, "%s %zu: %s", what, place, mercer_status_string(status));
    assert_true(strncmp(mercer_last_error(context), path, strlen(path)) == 0);
}

static void test_every_byte(void **state)
{
    (void)state;
    static const unsigned char masks[] = {0x01, 0x20, 0x80};
    const char *path = in_folder("damaged");
    file_bytes good = rich_file(path);
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    for (size_t i = 0; i < good.count; i++)
        for (size_t m = 0; m < sizeof masks; m++) {
            unsigned char bad = good.data[i] ^ masks[m];
            assert_int_equal(pwrite(file, &bad, 1, (off_t)i), 1);
            must_refuse(path, "byte", i);
            assert_int_equal(pwrite(file, &good.data[i], 1, (off_t)i), 1);
        }
    mercer_model_free(load(path)); /* restored */
    close(file);
    free(good.data);
}

static void test_every_length(void **state)
{
    (void)state;
    const char *path = in_folder("damaged");
    file_bytes good = rich_file(path);
    for (size_t length = good.count; length-- > 0;) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        must_refuse(path, "length", length);
    }
    write_bytes(path, good.data, good.count);
    assert_int_equal(truncate(path, (off_t)good.count + 1), 0);
    must_refuse(path, "length", good.count + 1);
    free(good.data);
}

/* ---- Valid containers without a valid model ------------------------------------------------------------------ */

/* A model file with one metadata string or tensor replaced, added or removed. */
typedef struct forgery {
    const char *key, *value; /* metadata string to set; value NULL: remove it */
    mrc_tensor tensor;       /* tensor to replace or add, by its name; data NULL: remove it */
    const char *part;        /* expected part of the message */
} forgery;

static void check_forgery(const forgery *lie, mercer_status expected)
{
    float centers[2 * 3] = {1, 2, 3, 4, 5, 6}, weights[2 * 1] = {1, -1};
    double origin[3] = {0}, shift[3] = {0}, factor[3] = {1, 1, 1}, offset = 200, scale = 3;
    mrc_tensor tensors[] = {{.name = "centers", .value = mrc_view(centers, 2, 3, MERCER_F32)},
                            {.name = "weights", .value = mrc_view(weights, 2, 1, MERCER_F32)},
                            {.name = "origin", .value = mrc_view(origin, 1, 3, MERCER_F64), .vector = true},
                            {.name = "targets.offset", .value = mrc_view(&offset, 1, 1, MERCER_F64), .vector = true},
                            {.name = "targets.scale", .value = mrc_view(&scale, 1, 1, MERCER_F64), .vector = true},
                            {.name = "preprocess.shift", .value = mrc_view(shift, 1, 3, MERCER_F64), .vector = true},
                            {.name = "preprocess.factor", .value = mrc_view(factor, 1, 3, MERCER_F64), .vector = true},
                            {0}}; /* for one added tensor */
    mrc_metadata texts[] = {{"format", "mercer-model"},
                            {"format_version", "2"},
                            {"kernel", "laplace:bandwidth=2"},
                            {"labels", "[\"a\"]"},
                            {"feature_names", "[\"a\",\"b\",\"c\"]"},
                            {"target_names", "[\"t\"]"},
                            {"preprocess", "standardise"}, /* check-words: allow spelling -ise (file format) */
                            {"preprocess_folded", "false"},
                            {"kernel_before_preprocess", "laplace:bandwidth=2"},
                            {"members", NULL}};
    int64_t count = 0, entries = sizeof texts / sizeof *texts;
    for (int64_t i = 0; lie->key && i < entries; i++)
        if (strcmp(texts[i].key, lie->key) == 0) texts[i].value = lie->value;
    bool found = false;
    for (size_t i = 0; tensors[i].name; i++) {
        bool same = lie->tensor.name && strcmp(tensors[i].name, lie->tensor.name) == 0;
        found |= same;
        if (same && !lie->tensor.value.data) continue;
        tensors[count++] = same ? lie->tensor : tensors[i];
    }
    if (lie->tensor.name && !found) tensors[count++] = lie->tensor;
    const char *path = in_folder("forged");
    mercer_model *model;
    assert_succeeds(context, mrc_tensor_file_write(context, path, tensors, count, texts, entries));
    mercer_status status = mercer_model_load(&model, context, NULL, path);
    if (expected == MERCER_OK) {
        assert_succeeds(context, status);
    } else {
        assert_fails(context, status, expected, lie->part);
        assert_true(strncmp(mercer_last_error(context), path, strlen(path)) == 0);
        assert_null(model);
    }
    mercer_model_free(model);
}

static void test_no_model(void **state)
{
    (void)state;
    static double many[64];
    static double column[2] = {1, NAN}, nans[3] = {0, 0, NAN};
    static double units[5] = {0, -1, INFINITY, NAN, 5};
#define VIEW(rows, cols, dtype) mrc_view(many, rows, cols, dtype)
    const forgery texts[] = {
        {"format", "pt", {0}, "format"},
        {"format", NULL, {0}, "format"},
        {"format_version", NULL, {0}, "format_version"},
        {"format_version", "0", {0}, "format_version"},
        {"format_version", "1.5", {0}, "format_version"},
        {"format_version", "", {0}, "format_version"},
        {"format_version", "99999999999999999999", {0}, "format_version"},
        {"format_version", "11", {0}, "newer Mercer"},
        {"format_version", "999999999", {0}, "newer Mercer"},
        {"format_version", "1000000000", {0}, "no valid format_version"},
        {"format_version", "1", {0}, "target units"}, /* units, which a reader of version 1 would ignore */
        {"kernel", NULL, {0}, "kernel"},
        {"kernel", "", {0}, "kernel"},
        {"kernel", "la\nplace\x1b[1m", {0}, "la?place?[1m"},
        {"kernel", "laplace", {0}, "bandwidth"},
        {"kernel", "laplace:bandwidth=0", {0}, "bandwidth"},
        {"kernel", "laplace:bandwidth=1e999", {0}, "bandwidth"},
        {"labels", "", {0}, "labels"},
        {"labels", "[]]", {0}, "labels"},
        {"labels", "{\"a\":1}", {0}, "labels"},
        {"labels", "[1]", {0}, "label"},
        {"labels", "[\"a\",\"b\",\"c\"]", {0}, "labels"},
        {"labels", "[[[\"a\"]]]", {0}, "labels"},
        {"feature_names", "[]]", {0}, "feature_names"},
        {"feature_names", "{\"a\":1}", {0}, "feature_names"},
        {"feature_names", "[1]", {0}, "feature_names"},
        {"feature_names", "[\"a\"]", {0}, "feature_names"},
        {"feature_names", "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]", {0}, "feature_names"},
        {"target_names", "[null]", {0}, "target_names"},
        {"target_names", "3", {0}, "target_names"},
        {"preprocess", "", {0}, "preprocess"},
        {"preprocess", "wash", {0}, "preprocess"},
        {"preprocess", "standardise:", {0}, "preprocess"}, /* check-words: allow spelling -ise (file format) */
        {"preprocess", "standardize", {0}, "preprocess"},
        {"preprocess", "scale:factor=nan", {0}, "preprocess"},
        {"preprocess_folded", "true", {0}, "preprocess*kernel"},
    };
    const forgery tensors[] = {
        {NULL, NULL, {.name = "centers"}, "\"centers\""},
        {NULL, NULL, {.name = "weights"}, "\"weights\""},
        {NULL, NULL, {.name = "origin"}, "\"origin\""},
        {NULL, NULL, {.name = "preprocess.shift"}, "\"preprocess.shift\""},
        {NULL, NULL, {.name = "preprocess.factor"}, "\"preprocess.factor\""},
        {NULL, NULL, {.name = "targets.offset"}, "\"targets.offset\""},
        {NULL, NULL, {.name = "targets.scale"}, "\"targets.scale\""},
        {NULL, NULL, {.name = "targets.offset", .value = VIEW(1, 2, MERCER_F64)}, "targets.offset"},
        {NULL, NULL, {.name = "targets.offset", .value = VIEW(1, 1, MERCER_F32)}, "targets.offset"},
        {NULL, NULL, {.name = "targets.offset", .value = mrc_view(&units[2], 1, 1, MERCER_F64)}, "targets.offset"},
        {NULL, NULL, {.name = "targets.offset", .value = mrc_view(&units[3], 1, 1, MERCER_F64)}, "targets.offset"},
        {NULL,
         NULL,
         {.name = "targets.scale", .value = mrc_view(&units[0], 1, 1, MERCER_F64)},
         "scale 0 (from 0) is 0"},
        {NULL,
         NULL,
         {.name = "targets.scale", .value = mrc_view(&units[1], 1, 1, MERCER_F64)},
         "scale 0 (from 0) is -1"},
        {NULL, NULL, {.name = "targets.scale", .value = mrc_view(&units[2], 1, 1, MERCER_F64)}, "targets.scale"},
        {NULL, NULL, {.name = "targets.scale", .value = mrc_view(&units[3], 1, 1, MERCER_F64)}, "targets.scale"},
        {NULL, NULL, {.name = "centers", .value = VIEW(0, 3, MERCER_F32)}, "tensor"},
        {NULL, NULL, {.name = "centers", .value = VIEW(3, 3, MERCER_F32)}, "tensor"},
        {NULL, NULL, {.name = "centers", .value = VIEW(2, 4, MERCER_F32)}, "tensor"},
        {NULL, NULL, {.name = "weights", .value = VIEW(2, 0, MERCER_F32)}, "no outputs"},
        {NULL, NULL, {.name = "weights", .value = VIEW(2, 1, MERCER_U8)}, "weights"},
        {NULL, NULL, {.name = "weights", .value = VIEW(2, 1, MERCER_F16)}, "weights"},
        {NULL, NULL, {.name = "weights", .value = VIEW(1, 2, MERCER_F32)}, "weights"},
        {NULL, NULL, {.name = "origin", .value = VIEW(1, 3, MERCER_F32)}, "origin"},
        {NULL, NULL, {.name = "origin", .value = VIEW(3, 1, MERCER_F64)}, "origin"},
        {NULL, NULL, {.name = "preprocess.shift", .value = VIEW(1, 2, MERCER_F64)}, "preprocess.shift"},
        {NULL, NULL, {.name = "weights", .value = mrc_view(column, 2, 1, MERCER_F64)}, "weights: *row 1"},
        {NULL, NULL, {.name = "origin", .value = mrc_view(nans, 1, 3, MERCER_F64)}, "origin"},
        {NULL, NULL, {.name = "metric", .value = VIEW(3, 3, MERCER_F64)}, "metric, which its format_version"},
        {"format_version", "3", {.name = "metric", .value = VIEW(3, 4, MERCER_F64)}, "metric"},
        {"format_version", "3", {.name = "metric", .value = VIEW(3, 3, MERCER_F32)}, "metric"},
        {"format_version", "3", {.name = "metric", .value = VIEW(0, 3, MERCER_F64)}, "empty"},
        {"format_version", "3", {.name = "metric", .value = VIEW(2, 3, MERCER_F64)}, "more columns"},
        {"format_version", "3", {.name = "metric", .value = VIEW(4, 3, MERCER_F64)}, "preprocess.shift"},
        {"format_version", "3", {.name = "metric", .value = mrc_view(nans, 1, 3, MERCER_F64)}, "metric"},
    };
#undef VIEW
    check_forgery(&(forgery){0}, MERCER_OK);
    check_forgery(&(forgery){.key = "labels", .value = "[\"a\",\"b\"]"}, MERCER_OK);
    check_forgery(&(forgery){.key = "preprocess_folded"}, MERCER_OK);
    check_forgery(&(forgery){.key = "format_version", .value = "3"}, MERCER_OK); /* higher than necessary */
    check_forgery(
        &(forgery){"format_version", "3", {.name = "metric", .value = mrc_view(many, 3, 3, MERCER_F64)}, NULL},
        MERCER_OK);
    check_forgery(&(forgery){.tensor = {.name = "targets.scale", .value = mrc_view(&units[4], 1, 1, MERCER_F64)}},
                  MERCER_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_forgery(&texts[i], MERCER_ERROR_FORMAT);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) check_forgery(&tensors[i], MERCER_ERROR_FORMAT);
}

/* A file that has more members than its format version allows. */
static void test_members(void **state)
{
    (void)state;
    check_forgery(&(forgery){"members", "2", {0}, "members, which its format_version"}, MERCER_ERROR_FORMAT);
}

/* ---- Parts of newer file versions ------------------------------------------------------------------------------ */

/* Write a file with the parts that rich_file omits. kind 0: ranks of features and targets, intervals of values, a
   schema; 1: a full metric, logarithms of targets, intervals of classes; 2: like 1 with a diagonal metric. */
static void newer_file(const char *path, int kind)
{
    static const char *const names[D] = {"v", "w", "x", "y", "z"};
    double scores[C * 4], curve[2 * C * 3];
    mercer_preprocess *preprocess;
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F32, MERCER_F64);
    mercer_matrix x = make_samples(MERCER_F32);
    for (int i = 0; i < C * 4; i++) scores[i] = (i % 4 + 1) / 4.0;
    for (int i = 0; i < 2 * C * 3; i++) curve[i] = i % 3 + 1;
    assert_succeeds(context, fit_to_matrix(&preprocess, context, kind ? "standardize" : "rank", &x));
    if (kind) {
        double m[D * D] = {0};
        for (int i = 0; i < D; i++) m[i * D + i] = i + 1;
        m[1] = m[D] = 0.5;
        mercer_matrix metric = mrc_view(m, kind == 1 ? D : 1, D, MERCER_F64);
        set_metric(preprocess, &metric, D);
    }
    mercer_matrix numbers = mrc_view(curve, kind ? C : 2 * C, kind ? 1 : 3, MERCER_F64);
    mercer_matrix lists = mrc_view(scores, kind ? 1 : C, 4, MERCER_F64);
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, names, D));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, names, kind ? 1 : C));
    assert_succeeds(context,
                    mrc_units_set_curve(&model->units, context, kind ? MRC_CURVE_LOG : MRC_CURVE_RANK, C, &numbers));
    assert_succeeds(context, mercer_model_set_calibration(model, 1.5, kind ? 20 : 0));
    assert_succeeds(context, mrc_model_set_intervals(model, &lists, 44.5,
                                                     kind ? MERCER_TASK_CLASSIFICATION : MERCER_TASK_REGRESSION));
#define NUMBER "{\"kind\":\"number\",\"mean\":1,\"missing\":0}"
    if (!kind)
        assert_succeeds(context, mercer_model_set_schema(model, "{\"missing\":[],\"columns\":[" NUMBER "," NUMBER
                                                                "," NUMBER "," NUMBER "," NUMBER "]}"));
#undef NUMBER
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    mercer_model *again = load(path);
    double level[C], before[C];
    assert_same_predictions(model, again, MERCER_F32, "newer parts");
    assert_true(model_info(again).temperature == 1.5 && model_info(again).curvature == (kind ? 20 : 0));
    assert_string_equal(model_info(again).target_names[0], "v");
    assert_int_equal(model_info(again).target_count, kind ? 1 : C);
    assert_int_equal(model_info(again).interval_task, kind ? MERCER_TASK_CLASSIFICATION : MERCER_TASK_REGRESSION);
    assert_true(model_info(again).interval_rows == 44.5);
    assert_succeeds(context, mercer_model_interval(model, before, 0.4));
    assert_succeeds(context, mercer_model_interval(again, level, 0.4));
    assert_memory_equal(before, level, (kind ? 1 : C) * sizeof(double));
    mercer_model_free(again), mercer_model_free(model);
    mercer_preprocess_free(preprocess);
    free(x.data);
}

/* A single feature can have a preprocessing, too. A file has no entries for parts that the model does not have. The
   range of valid centers is that of the types in the file. */
static void test_least_parts(void **state)
{
    (void)state;
    char header[8192];
    double far[2] = {0, 1e15};
    const char *path = in_folder("least");
    mercer_kernel kernel;
    mercer_model *model;
    mercer_preprocess *preprocess;
    mercer_matrix z = mrc_view(far, 2, 1, MERCER_F64);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "polynomial:degree=2"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 1, MERCER_F64));
    for (int types = 0; types < 4; types++) { /* 1e60 is only representable in double */
        const mercer_save_options options = {sizeof options, types & 1 ? MERCER_F64 : MERCER_F32,
                                             types & 2 ? MERCER_F64 : MERCER_F32};
        mercer_status status = mercer_model_save(model, path, &options);
        if (types)
            assert_succeeds(context, status);
        else
            assert_fails(context, status, MERCER_ERROR_DATA, "centers");
    }
    mercer_model_free(model);
    far[1] = 2;
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 1, MERCER_F64));
    assert_succeeds(context, fit_to_matrix(&preprocess, context, "standardize", &z));
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    mercer_preprocess_free(preprocess);
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path));
    static const char *const absent[] = {"temperature", "interval", "target", "schema", "labels", "names", "note"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) assert_null(strstr(header, absent[i]));
    assert_non_null(strstr(header, "preprocess.factor"));
    mercer_model *again = load(path);
    double f[2][2];
    for (int i = 0; i < 2; i++) {
        mercer_matrix to = mrc_view(f[i], 2, 1, MERCER_F64);
        ((double *)(i ? again : model)->weights.data)[1] = 3;
        assert_succeeds(context, mercer_model_predict(i ? again : model, &to, &z));
    }
    assert_memory_equal(f[0], f[1], sizeof f[0]);
    mercer_model_free(again);
    mercer_model_free(model);
}

/* A vector has one dimension in the file, a matrix two, as specified in docs/model-file.md. */
static void check_shapes(const char *path, const char *metric)
{
    char header[8192];
    assert_succeeds(context, mercer_model_file_header(context, header, sizeof header, NULL, path));
    assert_non_null(strstr(header, "\"origin\":{\"dtype\":\"F64\",\"shape\":[5],"));
    assert_non_null(strstr(header, "\"centers\":{\"dtype\":\"F32\",\"shape\":[12,5],"));
    if (metric) assert_non_null(strstr(header, metric));
}

/* ---- Numbers out of range ---------------------------------------------------------------------------------------- */

static void set_first(const mercer_matrix *value, double to)
{
    data_store(value, 0, 0, to);
}

static void set_second(const mercer_matrix *value, double to)
{
    data_store(value, 0, 1, to);
}

static void set_last(const mercer_matrix *value, double to)
{
    data_store(value, value->rows - 1, value->cols - 1, to);
}

/* Assert that the file `path` with one part changed is refused by a message that contains `part`. */
static void refuse_tampered(const char *path, const tampering *with, const char *part)
{
    const char *other = in_folder("tampered");
    mercer_model *model = NULL;
    write_again(path, other, with);
    assert_fails(context, mercer_model_load(&model, context, NULL, other), MERCER_ERROR_FORMAT, part);
    assert_true(strncmp(mercer_last_error(context), other, strlen(other)) == 0);
    assert_null(model);
}

/* Numbers that training never writes are refused: without a limit, temperature 1e-320 put eval into an endless loop. */
static void test_numbers_out_of_range(void **state)
{
    (void)state;
    static const struct {
        int kind; /* kind of newer_file */
        tampering with;
        const char *part;
    } all[] = {
        {0, {"temperature", .text = "1e-320"}, "temperature: '1e-320'*1e-06 .. 1e+06"},
        {0, {"temperature", .text = "1e-7"}, "temperature"},
        {0, {"temperature", .text = "1e7"}, "temperature"},
        {0, {"temperature", .text = "0"}, "temperature"},
        {0, {"temperature", .text = "1e999"}, "temperature"},
        {1, {"curvature", .text = "1e-4"}, "curvature: '1e-4'*0.001 .. 1e+06"},
        {1, {"curvature", .text = "1e7"}, "curvature"},
        {1, {"curvature", .text = "0"}, "curvature"},
        {1, {"curvature", .text = "nan"}, "curvature"},
        {1, {"temperature", .what = DROPPED}, "no temperature"},
        {1, {"format_version", .text = "8"}, "curvature*format_version"},
        {0, {"interval_rows", .text = "1e18"}, "interval_rows: '1e18'*1 .. 1e+15"},
        {0, {"interval_rows", .text = "nan"}, "interval_rows"},
        {1, {"intervals.scores", .set = set_last, .to = 7}, "7 *probability"},
        {0, {"kernel", .text = "laplace:bandwidth=1e-320"}, "bandwidth"},
        {0, {"kernel", .text = "gaussian:bandwidth=1e-305"}, "bandwidth"},
        {0, {"kernel", .text = "gaussian:bandwidth=1e305"}, "bandwidth"},
        {0, {"kernel", .text = "lpq:p=1e-300,q=1e-300,bandwidth=1"}, "p=1e-300"},
        {0, {"kernel", .text = "rational-quadratic:bandwidth=1,alpha=1e-300"}, "alpha"},
        {0, {"targets.curve", .set = set_second, .to = 1}, "not ascending"}, /* equal to the first number */
        {0, {"targets.curve", .set = set_second, .to = 9}, "not ascending"},
        {0, {"targets.curve", .set = set_last, .to = 1e301}, "1e+301 is outside"},
        {1, {"targets.curve", .set = set_last, .to = -1e301}, "-1e+301 is outside"},
        {1, {"targets.scale", .set = set_first, .to = 1e-160}, "scale 0 (from 0) is 1e-160"},
        {1, {"targets.scale", .set = set_first, .to = 1e160}, "scale 0 (from 0) is 1e+160"},
        {1, {"targets.offset", .set = set_first, .to = -1e305}, "offset 0 (from 0) is -1e+305"},
        {0, {"preprocess.quantiles", .set = set_last, .to = -1e9}, "preprocess.quantiles*feature 4 "},
        {1, {"preprocess.factor", .set = set_last, .to = -1}, "preprocess.factor*feature 4 *-1"},
        {1, {"metric", .set = set_last, .to = 1e200}, "metric is 1e+200"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *path = in_folder("newer");
        newer_file(path, all[i].kind);
        refuse_tampered(path, &all[i].with, all[i].part);
    }
    /* Two equal labels for a model with one output. */
    check_forgery(&(forgery){"labels", "[\"a\",\"a\"]", {0}, "'a'*once"}, MERCER_ERROR_FORMAT);
}

static void test_newer_parts(void **state)
{
    (void)state;
    static const tampering refused[][14] = {{{"targets.curve", .what = DROPPED},
                                             {"targets.curve", .what = ROW_LESS},
                                             {"targets.curve", .what = NOT_FINITE},
                                             {"targets.curve", .what = OTHER_TYPE},
                                             {"target_transform", .text = "root"},
                                             {"target_transform", .text = "log"},
                                             {"intervals", .text = "both"},
                                             {"interval_rows", .what = DROPPED},
                                             {"interval_rows", .text = "many"},
                                             {"interval_rows", .text = "0.5"},
                                             {"temperature", .text = "warm"},
                                             {"temperature", .text = "-1"},
                                             {"schema", .text = "{\"missing\":[],\"columns\":[]}"},
                                             {"format_version", .text = "3"}},
                                            {{"metric", .what = COLUMN_LESS},
                                             {"metric", .what = ROW_LESS},
                                             {"metric", .what = OTHER_TYPE},
                                             {"preprocess_folded", .text = "true"},
                                             {"intervals.scores", .what = DROPPED},
                                             {"intervals.scores", .what = NOT_FINITE},
                                             {"intervals", .text = "values"},
                                             {"targets.curve", .what = NOT_FINITE},
                                             {"target_transform", .text = "rank"},
                                             {"format_version", .text = "2"},
                                             {"targets.offset", .what = DROPPED},
                                             {"origin", .what = COLUMN_LESS},
                                             {"feature_names", .text = "[]]"},
                                             {"temperature", .text = ""}}};
    static const char *const ranks[] = {"preprocess.quantiles", "preprocess.shift", "preprocess.factor"};
    const char *path = in_folder("newer"), *other = in_folder("tampered");
    mercer_model *model = NULL;
    for (int kind = 0; kind < 2; kind++) {
        newer_file(path, kind);
        check_shapes(path, kind ? "\"metric\":{\"dtype\":\"F64\",\"shape\":[5,5]," : NULL);
        write_again(path, other, &(tampering){.name = ""});
        mercer_model_free(load(other));
        for (int i = 0; i < 14; i++) {
            write_again(path, other, &refused[kind][i]);
            must_refuse(other, refused[kind][i].name, (size_t)i);
        }
        for (int i = kind; i < 3; i++)
            for (damage what = DROPPED; what <= NOT_FINITE; what++) {
                if (what == ROW_LESS && i > 0) continue; /* the tensor has only one row */
                write_again(path, other, &(tampering){ranks[i], .what = what});
                must_refuse(other, ranks[i], (size_t)what);
            }
        write_again(path, other, &(tampering){"intervals", .what = DROPPED}); /* not needed for predictions */
        assert_succeeds(context, mercer_model_load(&model, context, NULL, other));
        mercer_model_free(model);
    }
    newer_file(path, 2);
    newer_file(path, 1);
    write_again(path, other, &(tampering){"preprocess", .what = DROPPED}); /* a metric without a preprocessing */
    assert_succeeds(context, mercer_model_load(&model, context, NULL, other));
    /* Invalid numbers, which no public function accepts, are not written to files either. */
    double *const numbers[] = {&model->calibration.temperature,
                               &model->calibration.curvature,
                               &model->calibration.rows,
                               model->origin,
                               model->units.scale,
                               model->units.curve.numbers,
                               model->calibration.scores};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double good = *numbers[i];
        *numbers[i] = i % 2 ? (double)INFINITY : (double)NAN;
        assert_fails(context, mercer_model_save(model, other, NULL), MERCER_ERROR_DATA, "");
        *numbers[i] = good;
    }
    assert_succeeds(context, mercer_model_save(model, other, NULL));
    mercer_model_free(model);
}

/* ---- Files that cannot be read or written -------------------------------------------------------------------- */

static void test_reading_fails(void **state)
{
    (void)state;
    mercer_model *model = (mercer_model *)folder;
    assert_fails(context, mercer_model_load(&model, context, NULL, in_folder("none")), MERCER_ERROR_MISSING, "none");
    assert_null(model);
    assert_fails(context, mercer_model_load(&model, context, NULL, folder), MERCER_ERROR_IO, "folder");
    assert_fails(context, mercer_model_load(&model, context, NULL, "/dev/null"), MERCER_ERROR_IO, "regular");
    assert_fails(context, mercer_model_load(&model, context, NULL, NULL), MERCER_ERROR_ARGUMENT, "path");
    assert_fails(context, mercer_model_load(NULL, context, NULL, "x"), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(NULL, mercer_model_load(&model, NULL, NULL, "x"), MERCER_ERROR_ARGUMENT, "context");
}

static int keep(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return 0;
}

/* If writing fails, the old file is unchanged and no other file remains. */
static void test_writing_fails(void **state)
{
    (void)state;
    folder_clear();
    const char *path = in_folder("model");
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F32, MERCER_F32), *other;
    mercer_kernel kernel;
    mercer_matrix z = model_info(model).centers;
    write_bytes(path, "old", 3);
    if (access("/dev/full", W_OK) == 0)
        assert_fails(context, mercer_model_save(model, "/dev/full", NULL), MERCER_ERROR_IO, "/dev/full");
    assert_fails(context, mercer_model_save(model, in_folder("none/model"), NULL), MERCER_ERROR_IO, "none/model");
    assert_fails(context, mercer_model_save(model, folder, NULL), MERCER_ERROR_IO, "folder");
    assert_fails(context, mercer_model_save(model, "", NULL), MERCER_ERROR_ARGUMENT, "empty");
    assert_fails(context, mercer_model_save(model, NULL, NULL), MERCER_ERROR_ARGUMENT, "path");
    assert_fails(NULL, mercer_model_save(NULL, path, NULL), MERCER_ERROR_ARGUMENT, "model");
    assert_succeeds(context, mercer_kernel_from_callback(&kernel, context, MERCER_KERNEL_CALLBACK_INNER, keep, NULL));
    assert_succeeds(context, mercer_model_create(&other, context, NULL, &kernel, &z, C, 0));
    assert_fails(context, mercer_model_save(other, path, NULL), MERCER_ERROR_UNSUPPORTED, "callback");
    mercer_model_free(other);
    if (geteuid() != 0) { /* root can write anywhere */
        assert_int_equal(chmod(folder, 0500), 0);
        mercer_status status = mercer_model_save(model, path, NULL);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_fails(context, status, MERCER_ERROR_IO, path);
    }
    file_bytes saved = read_bytes(path);
    assert_true(saved.count == 3 && memcmp(saved.data, "old", 3) == 0);
    assert_int_equal(folder_count(), 1);
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    assert_int_equal(folder_count(), 1);
    mercer_model_free(model);
    free(saved.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_newer_parts),
        cmocka_unit_test(test_least_parts),
        cmocka_unit_test(test_reading_fails),
        cmocka_unit_test(test_writing_fails),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_numbers_out_of_range),
    };
    return cmocka_run_group_tests(tests, open_files, close_files);
}
