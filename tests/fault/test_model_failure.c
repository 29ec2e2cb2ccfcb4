/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the n-th allocation fail, n = 1, 2, ... until a call succeeds, for all calls that create, save, load and apply
 * a model. Does the same for the allocations of the JSON library, which do not use the context's allocator. The status
 * must be MERCER_ERROR_MEMORY, no change may be partial, nothing may leak, and the same call must then succeed.
 */
#include "support/check.h"

#include "support/allocator.h"

#include "support/fitted.h"
#include "support/info.h"
#include "support/stored_models.h"

#include <jansson.h>

enum { MOST_ALLOCATIONS = 2000 };

typedef struct fixture {
    test_allocator counter;
    mercer_context *context;
    mercer_preprocess *preprocess;
    mercer_model *model, *loaded;
    mercer_matrix x, f;
    int32_t labels[M];
    char header[4096];
} fixture;

typedef mercer_status (*call)(fixture *self);

static const char *const names[C] = {"zero", "one", "two"};

static mercer_status call_labels(fixture *self)
{
    return mercer_model_set_names(self->model, MERCER_NAMES_LABELS, names, C);
}

static mercer_status call_note(fixture *self)
{
    return mercer_model_set_note(self->model, "a note");
}

static mercer_status call_targets(fixture *self)
{
    return mercer_model_set_targets(self->model, (const double[C]){200, 0, -3}, NULL);
}

static mercer_status call_moments(fixture *self)
{
    double mean[C], deviation[C];
    mercer_matrix y = make_samples(MERCER_F64); /* targets: the values do not matter */
    y.cols = C;
    mercer_status status = mercer_target_moments(self->context, mean, deviation, &y, NULL);
    free(y.data);
    return status;
}

/* Predict in double with a model in float. */
static mercer_status call_predict_wide(fixture *self)
{
    mercer_matrix f = data_matrix(M, C, 0, MERCER_F64);
    mercer_status status = mercer_model_predict(self->model, &f, &self->x);
    free(f.data);
    return status;
}

static mercer_status call_preprocess(fixture *self)
{
    return mercer_model_set_preprocess(self->model, self->preprocess);
}

static const char *const columns[D] = {"v", "w", "x", "y", "z"};

static mercer_status call_feature_names(fixture *self)
{
    return mercer_model_set_names(self->model, MERCER_NAMES_FEATURES, columns, D);
}

static mercer_status call_target_names(fixture *self)
{
    return mercer_model_set_names(self->model, MERCER_NAMES_TARGETS, names, C);
}

static mercer_status call_match(fixture *self)
{
    static const char *const table[D + 1] = {"z", "y", "other", "x", "w", "v"};
    int64_t places[D];
    MRC_TRY(mercer_model_set_names(self->model, MERCER_NAMES_FEATURES, columns, D));
    return mercer_model_match(self->model, places, table, D + 1);
}

static mercer_status call_predict(fixture *self)
{
    return mercer_model_predict(self->model, &self->f, &self->x);
}

static mercer_status call_classify(fixture *self)
{
    return mercer_model_classify(self->model, self->labels, &self->x);
}

static mercer_status call_save(fixture *self)
{
    const mercer_save_options options = {sizeof options, MERCER_F16, MERCER_F64};
    return mercer_model_save(self->model, in_folder("model"), &options);
}

static mercer_status call_load(fixture *self)
{
    mercer_model_free(self->loaded);
    return mercer_model_load(&self->loaded, self->context, NULL, in_folder("stored"));
}

static mercer_status call_header(fixture *self)
{
    return mercer_model_file_header(self->context, self->header, sizeof self->header, NULL, in_folder("stored"));
}

static mercer_status call_export_c99(fixture *self)
{
    return mercer_model_export(self->model, in_folder("model.c"), NULL);
}

static mercer_status call_export_onnx(fixture *self)
{
    return mercer_model_export(self->model, in_folder("model.onnx"), NULL);
}

static const struct {
    const char *name;
    call run;
} calls[] = {{"set_labels", call_labels},
             {"set_note", call_note},
             {"set_preprocess", call_preprocess},
             {"set_targets", call_targets},
             {"set_feature_names", call_feature_names},
             {"set_target_names", call_target_names},
             {"match", call_match},
             {"predict", call_predict},
             {"predict in double", call_predict_wide},
             {"classify", call_classify},
             {"target_moments", call_moments},
             {"save", call_save},
             {"load", call_load},
             {"file_header", call_header},
             {"export as c99", call_export_c99},
             {"export as onnx", call_export_onnx}};

enum { SETTERS = 6 };

/* ---- Memory of the JSON library ------------------------------------------------------------------------------ */

static struct {
    int64_t requests, fail_at, live;
} json_counter;

static void *json_allocate(size_t size)
{
    if (++json_counter.requests == json_counter.fail_at) return NULL;
    json_counter.live++;
    return malloc(size);
}

static void json_release(void *memory)
{
    if (memory) json_counter.live--;
    free(memory);
}

/* ---- Calls --------------------------------------------------------------------------------------------------- */

static void open_fixture(fixture *self)
{
    *self = (fixture){.x = make_samples(MERCER_F32), .f = data_matrix(M, C, 0, MERCER_F32)};
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.allocator = test_allocator_table(&self->counter);
    assert_succeeds(NULL, mercer_context_create(&self->context, &options));
    context = self->context; /* global that the helpers use */
    self->model = make_model("laplace:bandwidth=3", MERCER_F32, MERCER_F32);
    assert_succeeds(context, fit_to_matrix(&self->preprocess, context, "standardize", &self->x));
    free(rich_file(in_folder("stored")).data);
    for (int i = 0; i < SETTERS; i++) assert_succeeds(context, calls[i].run(self)); /* set every optional part */
}

static void close_fixture(fixture *self)
{
    mercer_model_free(self->model), mercer_model_free(self->loaded);
    mercer_preprocess_free(self->preprocess);
    mercer_context_free(self->context);
    assert_int_equal(self->counter.live, 0);
    assert_int_equal(self->counter.misused, 0);
    free(self->x.data), free(self->f.data);
}

static void check_saved(fixture *self)
{
    mercer_model *saved;
    assert_succeeds(self->context, mercer_model_load(&saved, self->context, NULL, in_folder("model")));
    assert_string_equal(model_info(saved).labels[2], names[2]);
    assert_string_equal(model_info(saved).note, "a note");
    assert_string_equal(model_info(saved).feature_names[4], columns[4]);
    assert_string_equal(model_info(saved).target_names[1], names[1]);
    mercer_model_free(saved);
}

/* Run call c with allocation n failing; return true if the call made fewer than n allocations. */
static bool fail_one(int c, int n, bool json)
{
    fixture self;
    folder_clear();
    open_fixture(&self);
    write_bytes(in_folder("model"), "old", 3);
    memset(self.f.data, 0x3c, sizeof(float) * M * C), memset(self.labels, 0x3c, sizeof self.labels);
    int64_t json_before = json_counter.live;
    if (json)
        json_counter.fail_at = json_counter.requests + n;
    else
        self.counter.fail_at = self.counter.requests + n;
    mercer_status status = calls[c].run(&self);
    bool failed = json ? json_counter.requests >= json_counter.fail_at : self.counter.requests >= self.counter.fail_at;
    json_counter.fail_at = self.counter.fail_at = 0;
    if (status != MERCER_OK) {
        assert_that(status == MERCER_ERROR_MEMORY, "%s, allocation %d: %s, %s", calls[c].name, n,
                    mercer_status_string(status), mercer_last_error(self.context));
        assert_that(json_counter.live == json_before, "%s, allocation %d: JSON leaks", calls[c].name, n);
        for (size_t i = 0; i < sizeof(float) * M * C; i++) assert_int_equal(((char *)self.f.data)[i], 0x3c);
        for (int i = 0; i < M; i++) assert_int_equal(self.labels[i], 0x3c3c3c3c);
        assert_true(self.header[0] == 0 && self.loaded == NULL && folder_count() == 2);
        assert_string_equal(model_info(self.model).labels[1], names[1]);
        assert_string_equal(model_info(self.model).note, "a note");
        assert_string_equal(preprocess_info(model_info(self.model).preprocess).spec, "standardize");
        file_bytes saved = read_bytes(in_folder("model"));
        assert_int_equal(saved.count, 3);
        free(saved.data);
        assert_succeeds(self.context, calls[c].run(&self));
    }
    if (calls[c].run == call_save) check_saved(&self); /* whether or not an allocation failed before */
    close_fixture(&self);
    return !failed;
}

static void fail_each(bool json)
{
    for (int c = 0; c < (int)(sizeof calls / sizeof *calls); c++) {
        int n = 1;
        while (!fail_one(c, n, json)) {
            n++;
            assert_that(n < MOST_ALLOCATIONS, "%s never succeeds", calls[c].name);
        }
        assert_that(json || n > 1 || calls[c].run == call_header, "%s allocates nothing", calls[c].name);
    }
}

static void test_context_memory(void **state)
{
    (void)state;
    fail_each(false);
}

static void test_json_memory(void **state)
{
    (void)state;
    fail_each(true);
}

static int open_files_only(void **state)
{
    (void)state;
    folder_open();
    json_set_alloc_funcs(json_allocate, json_release);
    return 0;
}

static int close_files_only(void **state)
{
    (void)state;
    folder_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_context_memory), cmocka_unit_test(test_json_memory)};
    return cmocka_run_group_tests(tests, open_files_only, close_files_only);
}
