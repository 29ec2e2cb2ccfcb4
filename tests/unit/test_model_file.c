/* SPDX-License-Identifier: BSD-3-Clause */
/* Model files: a loaded model equals the saved one, bit for bit. */
#include "support/stored_models.h"

#include "support/fitted.h"
#include "support/info.h"
#include "support/sources.h"

#include "kernels/table.h"

/* ---- Round trips --------------------------------------------------------------------------------------------- */

static void test_round_trips(void **state)
{
    (void)state;
    static const mercer_dtype types[][3] = {{MERCER_F32, MERCER_F32, MERCER_F32},
                                            {MERCER_F64, MERCER_F64, MERCER_F64},
                                            {MERCER_U8, MERCER_F32, MERCER_U8},
                                            {MERCER_F16, MERCER_F64, MERCER_F32}};
    for (int k = 0; k < mrc_kernel_table_size; k++)
        for (int t = 0; t < 4; t++) {
            const char *spec = kernel_info(k).example;
            mercer_model *model = make_model(spec, types[t][0], types[t][1]);
            mercer_model *loaded = save_and_load(model, in_folder("model"));
            assert_memory_equal(model_info(loaded).kernel, model_info(model).kernel, sizeof(mercer_kernel));
            assert_true(model_info(loaded).centers.dtype == types[t][0]);
            assert_true(model_info(loaded).weights.dtype == types[t][1]);
            assert_same_predictions(model, loaded, types[t][2], spec);
            assert_true(model_info(loaded).labels == NULL && model_info(loaded).preprocess == NULL);
            assert_string_equal(model_info(loaded).note, "");
            mercer_model_free(model), mercer_model_free(loaded);
        }
}

/* Bandwidths without a short decimal form survive saving and loading. */
static void test_kernel_bits(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 50; i++) {
        char spec[96];
        snprintf(spec, sizeof spec, "exppower:bandwidth=%.17g,gamma=%.17g",
                 exp(20 * mrc_random_normal((mrc_rng){32, 1}, i)), 1 + 0.9 * mrc_random_uniform((mrc_rng){32, 2}, i));
        mercer_model *model = make_model(spec, MERCER_F32, MERCER_F32),
                     *loaded = save_and_load(model, in_folder("model"));
        assert_memory_equal(model_info(loaded).kernel, model_info(model).kernel, sizeof(mercer_kernel));
        mercer_model_free(model), mercer_model_free(loaded);
    }
}

static void test_labels_and_note(void **state)
{
    (void)state;
    static const char *const labels[C] = {"zero \"quoted\"", "", "größer\n\\"};
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F32, MERCER_F32);
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_LABELS, labels, C));
    assert_succeeds(context, mercer_model_set_note(model, "{\"epochs\": 3}"));
    mercer_model *loaded = save_and_load(model, in_folder("model"));
    assert_int_equal(model_info(loaded).label_count, C);
    for (int i = 0; i < C; i++) assert_string_equal(model_info(loaded).labels[i], labels[i]);
    assert_string_equal(model_info(loaded).note, "{\"epochs\": 3}");
    /* Refused labels do not replace the old labels. */
    static const char *const wrong[C] = {"a", NULL, "c"}, *const latin[C] = {"a", "b", "gr\xf6\xdf"};
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, labels, 2), MERCER_ERROR_SHAPE,
                 "model has 3 outputs");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, labels, -1), MERCER_ERROR_SHAPE,
                 "labels");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, NULL, C), MERCER_ERROR_ARGUMENT,
                 "labels is NULL");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, wrong, C), MERCER_ERROR_ARGUMENT,
                 "label 1");
    assert_fails(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, latin, C), MERCER_ERROR_ARGUMENT,
                 "label 2 (from 0): byte 2 (from 0) is not UTF-8");
    assert_fails(context, mercer_model_set_note(loaded, "\x80"), MERCER_ERROR_ARGUMENT, "note");
    assert_string_equal(model_info(loaded).labels[0], labels[0]);
    assert_string_equal(model_info(loaded).note, "{\"epochs\": 3}");
    /* Labels and note can be removed. */
    assert_succeeds(context, mercer_model_set_names(loaded, MERCER_NAMES_LABELS, NULL, 0));
    assert_succeeds(context, mercer_model_set_note(loaded, NULL));
    assert_null(model_info(loaded).labels);
    assert_int_equal(model_info(loaded).label_count, 0);
    assert_string_equal(model_info(loaded).note, "");
    mercer_model_free(model), mercer_model_free(loaded);
    mercer_model_info info = MERCER_INIT(mercer_model_info);
    assert_fails(NULL, mercer_model_query(NULL, &info), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(NULL, mercer_model_set_names(NULL, (mercer_names)4, NULL, 0), MERCER_ERROR_ARGUMENT, "list is 4");
}

/* A model with one output may have the labels of two classes. */
static void test_two_labels(void **state)
{
    (void)state;
    static const char *const labels[] = {"no", "yes", "perhaps"};
    double center[2] = {1, 2};
    mercer_matrix z = mrc_view(center, 1, 2, MERCER_F64);
    mercer_kernel kernel;
    mercer_model *model;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "linear"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 1, 0));
    assert_fails(context, mercer_model_set_names(model, MERCER_NAMES_LABELS, labels, 3), MERCER_ERROR_SHAPE, "1 or 2");
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_LABELS, labels, 2));
    mercer_model *loaded = save_and_load(model, in_folder("model"));
    assert_string_equal(model_info(loaded).labels[1], "yes");
    assert_int_equal(model_info(loaded).label_count, 2);
    mercer_model_free(model), mercer_model_free(loaded);
}

/* ---- Preprocessing ------------------------------------------------------------------------------------------- */

/* A model with a preprocessing predicts the same as the model without it on preprocessed samples, block by block. */
static void test_preprocess(void **state)
{
    (void)state;
    static const char *const specs[] = {"none", "scale", "scale:factor=0.37", "standardize", "minmax", "unit"};
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_U8, MERCER_F16};
    enum { ROWS = 4200 }; /* more than a block */
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 4; t++) {
            mercer_preprocess *preprocess;
            mercer_matrix x = data_matrix(ROWS, D, D + 1, types[t]), f = data_matrix(ROWS, C, C + 2, MERCER_F64);
            data_fill_uniform(&x, (mrc_rng){33, 1}, 0, 100);
            assert_succeeds(context, fit_to_matrix(&preprocess, context, specs[s], &x));
            mercer_dtype after = mrc_preprocess_dtype(preprocess, types[t]);
            mercer_matrix y = data_matrix(ROWS, D, 0, after), expected = data_matrix(ROWS, C, C + 2, MERCER_F64);
            assert_succeeds(context, mercer_preprocess_apply(preprocess, &y, &x));
            mercer_model *plain = make_model("gaussian:bandwidth=2", MERCER_F32, MERCER_F32);
            mercer_model *model = make_model("gaussian:bandwidth=2", MERCER_F32, MERCER_F32);
            assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
            mercer_preprocess_free(preprocess); /* the model has its own copy of the preprocessing */
            mercer_model *loaded = save_and_load(model, in_folder("model"));
            assert_string_equal(preprocess_info(model_info(loaded).preprocess).spec,
                                preprocess_info(model_info(model).preprocess).spec);
            assert_succeeds(context, mercer_model_predict(plain, &expected, &y));
            assert_succeeds(context, mercer_model_predict(loaded, &f, &x));
            assert_that(memcmp(f.data, expected.data, ROWS * (C + 2) * sizeof(double)) == 0, "%s %d", specs[s], t);
            /* Labels come from predictions in the type of the weights: preprocessed doubles are rounded once. */
            static int32_t labels[ROWS], same[ROWS];
            bool rounds = after == MERCER_F64 && s > 0; /* "none" does not round */
            mercer_matrix rounded = data_matrix(ROWS, D, 0, MERCER_F32);
            assert_succeeds(context, mercer_preprocess_apply(model_info(model).preprocess, &rounded, &x));
            assert_succeeds(context, mercer_model_classify(plain, same, rounds ? &rounded : &y));
            free(rounded.data);
            assert_succeeds(context, mercer_model_classify(loaded, labels, &x));
            assert_memory_equal(labels, same, sizeof labels);
            assert_succeeds(context, mercer_model_set_preprocess(loaded, NULL));
            assert_null(model_info(loaded).preprocess);
            mercer_model_free(plain), mercer_model_free(model), mercer_model_free(loaded);
            free(x.data), free(y.data), free(f.data), free(expected.data);
        }
}

/* A scaling folded into the bandwidth: bytes remain bytes, and the file has the original kernel. */
static void test_folded(void **state)
{
    (void)state;
    mercer_kernel kernel;
    mercer_preprocess *preprocess;
    mercer_model *model;
    mercer_matrix x = make_samples(MERCER_U8), z = mrc_rows(&x, 0, P);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=0.3"));
    assert_succeeds(context, fit_to_matrix(&preprocess, context, "scale", &x));
    assert_true(mrc_preprocess_fold(preprocess, &kernel));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, C, 0));
    mercer_matrix w = model_info(model).weights;
    data_fill_normal(&w, (mrc_rng){31, 2}, 0, 1);
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    mercer_model *loaded = save_and_load(model, in_folder("model"));
    assert_memory_equal(model_info(loaded).kernel, &kernel, sizeof kernel);
    const mercer_kernel *before = preprocess_info(model_info(loaded).preprocess).kernel;
    assert_memory_equal(before, preprocess_info(preprocess).kernel, sizeof kernel);
    assert_true(before->bandwidth == 0.3);
    assert_same_predictions(model, loaded, MERCER_U8, "folded");
    mercer_preprocess_free(preprocess);
    mercer_model_free(model), mercer_model_free(loaded);
    free(x.data);
}

static void test_bad_preprocess(void **state)
{
    (void)state;
    mercer_preprocess *preprocess, *huge;
    mercer_model *model = make_model("gaussian:bandwidth=2", MERCER_F32, MERCER_F32);
    mercer_matrix x = make_samples(MERCER_F32), wide = data_matrix(M, D + 1, 0, MERCER_F32);
    mercer_matrix f = data_matrix(M, C, 0, MERCER_F32);
    int32_t labels[M];
    assert_succeeds(context, fit_to_matrix(&preprocess, context, "minmax", &wide));
    assert_fails(context, mercer_model_set_preprocess(model, preprocess), MERCER_ERROR_SHAPE, "6 features");
    assert_null(model_info(model).preprocess);
    /* An overflow in the first block of preprocessed values is found before anything is written. */
    assert_succeeds(context, fit_to_matrix(&huge, context, "scale:factor=1e60", &x));
    assert_succeeds(context, mercer_model_set_preprocess(model, huge));
    memset(f.data, 0x3c, M * C * sizeof(float)), memset(labels, 0x3c, sizeof labels);
    assert_fails(context, mercer_model_predict(model, &f, &x), MERCER_ERROR_DATA, "X preprocessed (scale)");
    assert_fails(context, mercer_model_classify(model, labels, &x), MERCER_ERROR_DATA, "X preprocessed (scale)");
    for (size_t i = 0; i < M * C * sizeof(float); i++) assert_int_equal(((char *)f.data)[i], 0x3c);
    for (int i = 0; i < M; i++) assert_int_equal(labels[i], 0x3c3c3c3c);
    mercer_preprocess_free(preprocess), mercer_preprocess_free(huge);
    mercer_model_free(model);
    free(x.data), free(wide.data), free(f.data);
}

/* An overflow in a later block is also an error, although rows before it were written. */
static void test_late_overflow(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    mercer_preprocess *preprocess;
    mercer_model *model = make_model("gaussian:bandwidth=2", MERCER_F32, MERCER_F32);
    mercer_matrix x = data_matrix(ROWS, D, 0, MERCER_F32), f = data_matrix(ROWS, C, 0, MERCER_F32);
    int32_t *labels = calloc(ROWS, sizeof *labels);
    assert_succeeds(context, fit_to_matrix(&preprocess, context, "scale:factor=1e30", &x));
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    assert_succeeds(context, mercer_model_predict(model, &f, &x));
    data_store(&x, ROWS - 1, 0, 1e20);
    assert_fails(context, mercer_model_predict(model, &f, &x), MERCER_ERROR_DATA, "X preprocessed (scale), from row");
    assert_fails(context, mercer_model_classify(model, labels, &x), MERCER_ERROR_DATA, "X preprocessed (scale)");
    mercer_preprocess_free(preprocess);
    mercer_model_free(model);
    free(x.data), free(f.data), free(labels);
}

/* ---- Types, memory, overwriting ------------------------------------------------------------------------------ */

static void test_save_options(void **state)
{
    (void)state;
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    mercer_model *model = make_model("gaussian:bandwidth=2", MERCER_F64, MERCER_F64);
    mercer_matrix z = model_info(model).centers, w = model_info(model).weights;
    for (int t = 0; t < 4; t++)
        for (int u = 0; u < 2; u++) {
            mercer_save_options options = {sizeof options, types[t], types[u]};
            assert_succeeds(context, mercer_model_save(model, in_folder("model"), &options));
            mercer_model *loaded = load(in_folder("model"));
            mercer_matrix lz = model_info(loaded).centers, lw = model_info(loaded).weights;
            assert_true(lz.dtype == types[t] && lw.dtype == types[u]);
            for (int64_t i = 0; i < P; i++) {
                for (int64_t j = 0; j < D; j++) assert_true(mrc_load(&lz, i, j) == mrc_load(&z, i, j));
                for (int64_t j = 0; j < C; j++)
                    assert_true(mrc_load(&lw, i, j) == (u ? (double)(float)mrc_load(&w, i, j) : mrc_load(&w, i, j)));
            }
            mercer_model_free(loaded);
        }
    mercer_save_options options = {sizeof options, MERCER_U8, 0};
    mrc_store(&z, 3, 2, 0.5);
    assert_fails(context, mercer_model_save(model, in_folder("model"), &options), MERCER_ERROR_DATA,
                 "centers: *row 3, column 2");
    options = (mercer_save_options){sizeof options, 0, MERCER_F16};
    assert_fails(context, mercer_model_save(model, in_folder("model"), &options), MERCER_ERROR_DTYPE, "weights");
    options = (mercer_save_options){sizeof options, (mercer_dtype)9, 0};
    assert_fails(context, mercer_model_save(model, in_folder("model"), &options), MERCER_ERROR_DTYPE, "centers");
    options = (mercer_save_options){0};
    assert_fails(context, mercer_model_save(model, in_folder("model"), &options), MERCER_ERROR_ARGUMENT, "struct_size");
    mrc_store(&w, 1, 1, NAN);
    assert_fails(context, mercer_model_save(model, in_folder("model"), NULL), MERCER_ERROR_DATA, "weights");
    mercer_model_free(model);
}

/* A loaded model needs hardly any memory except for the mapping. Its weights can be modified, and saved to the
   mapped file itself. */
static void test_save_over_itself(void **state)
{
    (void)state;
    const char *path = in_folder("model");
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F32, MERCER_F32);
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    int64_t before = context->bytes_now;
    mercer_model *loaded = load(path);
    assert_that(context->bytes_now - before < 2048, "%lld bytes", (long long)(context->bytes_now - before));
    mercer_matrix w = model_info(loaded).weights, v = model_info(model).weights;
    mrc_store(&w, 2, 1, 7), mrc_store(&v, 2, 1, 7);
    file_bytes old = read_bytes(path);
    assert_succeeds(context, mercer_model_save(loaded, path, NULL));
    file_bytes new = read_bytes(path);
    assert_true(old.count == new.count &&memcmp(old.data, new.data, old.count) != 0);
    assert_same_predictions(model, loaded, MERCER_F32, "old mapping"); /* the old mapping stays valid */
    mercer_model *again = load(path);
    assert_same_predictions(model, again, MERCER_F32, "new file");
    mercer_model_free(model), mercer_model_free(loaded), mercer_model_free(again);
    free(old.data), free(new.data);
}

/* A loaded model can be trained further. */
static void test_train_loaded(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){100, P, D, C}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    mercer_model *models[2];
    options.epochs = 2;
    assert_succeeds(context, mercer_model_create(&models[0], context, NULL, &t.kernel, &t.z, C, 0));
    assert_succeeds(context, mercer_model_save(models[0], in_folder("model"), NULL));
    models[1] = load(in_folder("model"));
    for (int i = 0; i < 2; i++) {
        mercer_source source;
        mercer_trainer *trainer;
        assert_succeeds(context, source_from_matrices(&source, context, &t.x, &t.y, NULL, 7));
        assert_succeeds(context, mercer_trainer_create(&trainer, models[i], NULL, &options));
        assert_succeeds(context, mercer_trainer_fit(trainer, &source, NULL));
        mercer_trainer_free(trainer);
        mercer_source_free(&source);
    }
    mercer_matrix a = model_info(models[0]).weights, b = model_info(models[1]).weights;
    assert_memory_equal(a.data, b.data, P * C * sizeof(float));
    mercer_model_free(models[0]), mercer_model_free(models[1]);
    task_close(&t);
}

/* ---- Header, extra tensors ----------------------------------------------------------------------------------- */

static void test_header(void **state)
{
    (void)state;
    const char *path = in_folder("model");
    size_t needed = 0;
    char text[4096], small[16] = "untouched";
    file_bytes file = rich_file(path);
    assert_fails(context, mercer_model_file_header(context, NULL, 0, &needed, path), MERCER_ERROR_ARGUMENT, "needed");
    assert_true(needed > 200 && needed < sizeof text);
    assert_fails(context, mercer_model_file_header(context, small, sizeof small, NULL, path), MERCER_ERROR_ARGUMENT,
                 "needed");
    assert_string_equal(small, "untouched");
    assert_succeeds(context, mercer_model_file_header(context, text, needed, NULL, path));
    assert_int_equal(strlen(text) + 1, needed);
    assert_true(text[0] == '{' && text[needed - 2] == '}' && memcmp(text, file.data + 8, needed - 1) == 0);
    assert_non_null(strstr(text, "\"kernel\":\"laplace:bandwidth=3\""));
    assert_non_null(strstr(text, "\"labels\":\"[\\\"a\\\",\\\"b\\\",\\\"c\\\"]\""));
    assert_fails(context, mercer_model_file_header(context, text, sizeof text, NULL, in_folder("none")),
                 MERCER_ERROR_MISSING, "none");
    file.data[30] ^= 1;
    write_bytes(path, file.data, file.count);
    assert_fails(context, mercer_model_file_header(context, text, sizeof text, NULL, path), MERCER_ERROR_FORMAT, path);
    assert_fails(NULL, mercer_model_file_header(NULL, text, sizeof text, NULL, path), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_model_file_header(context, text, sizeof text, NULL, NULL), MERCER_ERROR_ARGUMENT,
                 "path");
    assert_fails(context, mercer_model_file_header(context, NULL, 9, NULL, path), MERCER_ERROR_ARGUMENT, "text");
    free(file.data);
}

/* A checkpoint is a model file with additional tensors. */
static void test_extra_tensors(void **state)
{
    (void)state;
    const char *path = in_folder("model");
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_U8, MERCER_F32);
    mercer_matrix alpha = data_matrix(P, C, C + 1, MERCER_F64), found;
    data_fill_normal(&alpha, (mrc_rng){34, 1}, 0, 1);
    mrc_store(&alpha, 0, 0, NAN); /* extra tensors may have any values */
    mrc_tensor extra[] = {{.name = "state.alpha", .value = alpha},
                          {.name = "state.none", .value = mrc_view(NULL, 0, D, MERCER_F32)}};
    assert_succeeds(context, mrc_model_write(model, path, NULL, extra, 2));
    mercer_model *loaded = load(path);
    assert_same_predictions(model, loaded, MERCER_U8, "with extra tensors");
    mrc_tensor_file *file;
    assert_succeeds(context, mrc_tensor_file_open(&file, context, path));
    assert_true(mrc_tensor_file_find(file, "state.alpha", &found) && found.rows == P && found.cols == C);
    for (int64_t i = 0; i < P; i++) assert_memory_equal(mrc_row(&found, i), mrc_row(&alpha, i), C * sizeof(double));
    assert_true(mrc_tensor_file_find(file, "state.none", &found) && found.rows == 0 && found.cols == D);
    mrc_tensor_file_close(file);
    mercer_model_free(model), mercer_model_free(loaded);
    free(alpha.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),     cmocka_unit_test(test_kernel_bits),
        cmocka_unit_test(test_labels_and_note), cmocka_unit_test(test_two_labels),
        cmocka_unit_test(test_preprocess),      cmocka_unit_test(test_folded),
        cmocka_unit_test(test_bad_preprocess),  cmocka_unit_test(test_late_overflow),
        cmocka_unit_test(test_save_options),    cmocka_unit_test(test_save_over_itself),
        cmocka_unit_test(test_train_loaded),    cmocka_unit_test(test_header),
        cmocka_unit_test(test_extra_tensors),
    };
    return cmocka_run_group_tests(tests, open_files, close_files);
}
