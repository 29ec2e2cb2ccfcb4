/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples stored, augmented or drawn on a device, on every backend: the same samples in the same order as from the host
 * source they replace. Points are bitwise identical; a teacher's targets differ by the rounding of kernel products.
 */
#include "support/backends.h"
#include "support/counted.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/sources.h"

#include "core/numbers/random.h"
#include "training/trainer.h"

#include <math.h>

/* Run `test` on a context that uses `backend`, as the public functions require. */
static void with_backend(mrc_backend *backend, void (*test)(mercer_context *context))
{
    backend->context->backend = backend;
    test(backend->context);
    backend->context->backend = NULL;
}

static mercer_matrix host_copy(mercer_context *context, const mercer_matrix *a)
{
    mercer_matrix out = data_matrix(a->rows, a->cols, 0, a->dtype);
    assert_succeeds(context, context->backend->ops->copy(context->backend, &out, a));
    return out;
}

/* Compare both sources over three passes in batches of odd sizes, the last pass after a skip. y_error: allowed absolute
   error of the targets. */
static void compare(mercer_context *context, const mercer_source *host, const mercer_source *on_device, double y_error)
{
    for (int64_t pass = -1; pass < 2; pass++) {
        /* Both sources share one position, so the host's samples of a pass are saved first and compared afterwards. */
        int64_t n = host->rows, d = host->features, c = host->outputs, done = pass == 1 ? 13 : 0, batches = 0;
        mercer_matrix x = data_matrix(n, d, 0, host->dtype), y = data_matrix(n, c, 0, MERCER_F64);
        double *weights = calloc((size_t)n, sizeof *weights);
        int64_t *rows = calloc((size_t)n, sizeof *rows), first = done;
        mercer_batch batch;
        assert_int_equal(host->restart(host->user, pass), 0);
        if (done) assert_int_equal((host->skip)(host->user, done), 0);
        while (host->next(host->user, 37, &batch) == 0 && batch.X.rows > 0) {
            for (int64_t i = 0; i < batch.X.rows; i++) {
                memcpy(mrc_row(&x, done + i), mrc_row(&batch.X, i), (size_t)(d * mrc_dtype_size(host->dtype)));
                for (int64_t j = 0; j < c; j++) mrc_store(&y, done + i, j, mrc_load(&batch.Y, i, j));
                rows[done + i] = batch.rows ? batch.rows[i] : -1;
                weights[done + i] = batch.weights ? batch.weights[i] : 1;
            }
            done += batch.X.rows;
        }
        assert_int_equal(done, n);
        assert_int_equal(on_device->restart(on_device->user, pass), 0);
        done = first;
        if (done) assert_int_equal((on_device->skip)(on_device->user, done), 0);
        while (on_device->next(on_device->user, 50 + batches % 7, &batch) == 0 && batch.X.rows > 0) {
            mercer_matrix points = host_copy(context, &batch.X), targets = host_copy(context, &batch.Y);
            assert_true(batch.X.memory == mrc_backend_memory(context->backend));
            for (int64_t i = 0; i < points.rows; i++) {
                assert_memory_equal(mrc_row(&points, i), mrc_row(&x, done + i), (size_t)(d * mrc_dtype_size(x.dtype)));
                for (int64_t j = 0; j < c; j++)
                    assert_that(fabs(mrc_load(&targets, i, j) - mrc_load(&y, done + i, j)) <= y_error,
                                "target %lld, %lld: %g, not %g", (long long)(done + i), (long long)j,
                                mrc_load(&targets, i, j), mrc_load(&y, done + i, j));
                assert_int_equal(batch.rows ? batch.rows[i] : -1, rows[done + i]);
                assert_true((batch.weights ? batch.weights[i] : 1) == weights[done + i]);
            }
            done += points.rows, batches++;
            free(points.data), free(targets.data);
        }
        assert_int_equal(done, n);
        free(x.data), free(y.data), free(weights), free(rows);
    }
}

/* Compare stored samples; they need exactly `bytes` of device memory, so one byte less must leave them on the host. */
static void compare_stored(mercer_context *context, const mercer_source *host, int64_t bytes)
{
    mercer_source on_device;
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, host, bytes - 1));
    assert_null(on_device.next);
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, host, bytes));
    assert_non_null(on_device.next);
    compare(context, host, &on_device, 0);
    mercer_source_free(&on_device);
}

static void draw(mercer_context *context)
{
    static const char *const specs[] = {"teacher:d=21,c=3,centers=7,noise=0.25", "teacher:d=8,c=70,centers=30",
                                        "teacher:d=300,c=1,centers=200,kernel=gaussian,noise=0.1",
                                        "teacher:d=5,c=2,centers=9,kernel=linear"};
    for (int i = 0; i < 4; i++) {
        mercer_dataset *data;
        mercer_source host, on_device;
        mercer_stream_options options = {.struct_size = sizeof options, .seed = 4};
        assert_succeeds(context,
                        mercer_dataset_synthesize(&data, context, specs[i], 1000000007, SANITIZED ? 130 : 400, 11));
        assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
        assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, 0));
        assert_non_null(on_device.next);
        compare(context, &host, &on_device, 2e-5); /* targets are about 1 in size and sums of up to 200 floats */
        mercer_source_free(&on_device);
        mercer_source_free(&host);
        mercer_dataset_free(data);
    }
}

static void draw_on(mrc_backend *backend)
{
    with_backend(backend, draw);
}

static void test_teacher(void **state)
{
    (void)state;
    for_each_backend(draw_on);
}

static void store(mercer_context *context)
{
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_F16, MERCER_U8};
    for (int t = 0; t < 4; t++) {
        mercer_matrix x = data_matrix(333, 19, t == 2 ? 24 : 0, types[t]), y = data_matrix(333, 2, 0, MERCER_F64);
        double weights[333];
        for (int i = 0; i < 333; i++) weights[i] = 1 + i % 3;
        data_fill_normal(&x, (mrc_rng){1, 1}, types[t] == MERCER_U8 ? 100 : 0, types[t] == MERCER_U8 ? 20 : 1);
        data_fill_normal(&y, (mrc_rng){1, 2}, 0, 1);
        mercer_source host, on_device;
        assert_succeeds(context, source_from_matrices(&host, context, &x, &y, t % 2 ? weights : NULL, 5));
        int64_t bytes = 333 * 19 * mrc_dtype_size(types[t]);
        compare_stored(context, &host, bytes);
        mercer_source_free(&host);
        int32_t labels[333];
        for (int i = 0; i < 333; i++) labels[i] = i * 7 % 5;
        assert_succeeds(context, source_from_labels(&host, context, &x, labels, 5, NULL, 6));
        assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, bytes));
        compare(context, &host, &on_device, 0);
        mercer_source_free(&on_device);
        mercer_source_free(&host);
        free(x.data), free(y.data);
    }
}

/* Samples standardized and mapped to fewer columns, once for all passes. */
static void store_preprocessed(mercer_context *context)
{
    enum { N = 333, D = 19, WIDTH = 7 };
    mercer_matrix x = data_matrix(N, D, 0, MERCER_F32), y = data_matrix(N, 2, 0, MERCER_F64);
    mercer_dataset *data;
    mercer_preprocess *preprocess;
    mercer_source host;
    mercer_stream_options options = {.struct_size = sizeof options, .seed = 3};
    double map[D * WIDTH];
    for (int i = 0; i < D * WIDTH; i++) map[i] = mrc_random_normal((mrc_rng){1, 3}, (uint64_t)i);
    data_fill_normal(&x, (mrc_rng){1, 1}, 2, 3);
    data_fill_normal(&y, (mrc_rng){1, 2}, 0, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y};
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, "standardize", data));
    assert_succeeds(context, mrc_preprocess_set_map(preprocess, D, WIDTH, false, map));
    options.preprocess = preprocess;
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
    int64_t bytes = N * WIDTH * mrc_dtype_size(host.dtype);
    compare_stored(context, &host, bytes);
    mercer_source_free(&host);
    mercer_preprocess_free(preprocess), mercer_dataset_free(data);
    free(x.data), free(y.data);
}

static void store_on(mrc_backend *backend)
{
    with_backend(backend, store);
    with_backend(backend, store_preprocessed);
}

static void test_stored(void **state)
{
    (void)state;
    for_each_backend(store_on);
}

/* Rows of several files are gathered on the device. */
static void gather(mercer_context *context)
{
    static const int64_t rows[] = {100, 1, 232};
    mercer_matrix x = data_matrix(333, 19, 0, MERCER_F32), y = data_matrix(333, 2, 0, MERCER_F64);
    data_fill_normal(&x, (mrc_rng){1, 1}, 0, 1);
    data_fill_normal(&y, (mrc_rng){1, 2}, 0, 1);
    folder_open();
    for (int64_t i = 0, first = 0; i < 3; first += rows[i++]) {
        char name[32];
        mercer_matrix some = mrc_rows(&x, first, rows[i]), values = mrc_rows(&y, first, rows[i]);
        snprintf(name, sizeof name, "x-%lld.npy", (long long)i);
        assert_succeeds(context, mercer_matrix_write_npy(context, &some, in_folder(name)));
        name[0] = 'y';
        assert_succeeds(context, mercer_matrix_write_npy(context, &values, in_folder(name)));
    }
    mercer_dataset *data;
    mercer_source host, on_device;
    mercer_dataset_options options = {
        .struct_size = sizeof options, .x = in_folder("x-*.npy"), .y = in_folder("y-*.npy")};
    mercer_stream_options order = {.struct_size = sizeof order, .seed = 4};
    assert_succeeds(context, mercer_dataset_open(&data, context, &options));
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &order));
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, 333 * 19 * 4));
    assert_non_null(on_device.next);
    compare(context, &host, &on_device, 0);
    mercer_source_free(&on_device);
    mercer_source_free(&host);
    mercer_dataset_free(data);
    mercer_matrix last = mrc_rows(&x, 101, 232);
    mrc_store(&last, 7, 2, (double)NAN);
    assert_succeeds(context, mercer_matrix_write_npy(context, &last, in_folder("x-2.npy")));
    assert_succeeds(context, mercer_dataset_open(&data, context, &options));
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &order));
    assert_fails(context, mrc_device_source_create(&on_device, context->backend, &host, 333 * 19 * 4),
                 MERCER_ERROR_DATA, "X, rows from 101 *row 7, column 2");
    mercer_source_free(&host);
    mercer_dataset_free(data);
    folder_close();
    free(x.data), free(y.data);
}

static void gather_on(mrc_backend *backend)
{
    with_backend(backend, gather);
}

static void test_several_files(void **state)
{
    (void)state;
    for_each_backend(gather_on);
}

/* Images of bytes, halves, floats and doubles, with more samples than rows. Mixed samples are produced in chunks of up
   to 2 MiB; the large images make several chunks necessary. */
static void augment(mercer_context *context)
{
    static const struct {
        const char *spec, *preprocess;
        mercer_dtype dtype;
        int64_t side, samples;
        bool labels;
    } cases[] = {{"noise:sigma=15", NULL, MERCER_U8, 7, 0, true},
                 {"noise:sigma=0.3", "standardize", MERCER_F32, 6, 200, false},
                 {"shift:pixels=2", NULL, MERCER_F16, 6, 150, false},
                 {"flip+crop:pad=3+noise:sigma=20+shift:pixels=1", "minmax", MERCER_U8, 7, 131, true},
                 {"mixup:alpha=0.4", NULL, MERCER_U8, 5, 220, false},
                 {"flip+noise:sigma=0.5+mixup:alpha=1+shift:pixels=2", "standardize", MERCER_F64, 160, 22, true},
                 {"shift:pixels=2+mixup:alpha=0.2+noise:sigma=9+flip", NULL, MERCER_F16, 300, 23, true}};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        bool large = cases[t].side > 100;
        int64_t n = large ? 12 : 120, d = cases[t].side * cases[t].side;
        mercer_matrix x = data_matrix(n, d, 0, cases[t].dtype), y = data_matrix(n, 2, 0, MERCER_F64);
        int32_t labels[120];
        double weights[120];
        for (int i = 0; i < n; i++) labels[i] = i * 7 % 5, weights[i] = 1 + i % 3;
        if (cases[t].dtype == MERCER_U8)
            data_fill_uniform(&x, (mrc_rng){1, 1}, 0, 255);
        else
            data_fill_uniform(&x, (mrc_rng){1, 1}, -1, 2);
        data_fill_normal(&y, (mrc_rng){1, 2}, 0, 1);
        mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .weights = t % 2 ? weights : NULL};
        if (cases[t].labels)
            arrays.labels = labels, arrays.classes = 5;
        else
            arrays.Y = &y;
        mercer_dataset *data;
        mercer_preprocess *preprocess = NULL;
        mercer_source host;
        assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
        if (cases[t].preprocess)
            assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, cases[t].preprocess, data));
        mercer_stream_options options = {.struct_size = sizeof options,
                                         .seed = 3,
                                         .preprocess = preprocess,
                                         .augment = cases[t].spec,
                                         .height = cases[t].side,
                                         .width = cases[t].side,
                                         .samples = cases[t].samples,
                                         .prefetch = t % 2 ? MERCER_ON : MERCER_OFF};
        assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
        int64_t bytes = n * d * mrc_dtype_size(cases[t].dtype);
        compare_stored(context, &host, bytes);
        mercer_source_free(&host);
        mercer_preprocess_free(preprocess), mercer_dataset_free(data);
        free(x.data), free(y.data);
    }
}

/* Augmentation does not depend on the instruction set, so one is enough. */
static void augment_on(mrc_backend *backend)
{
    if (backend->context->isa == 0) with_backend(backend, augment);
}

static void test_augmented(void **state)
{
    (void)state;
    for_each_backend(augment_on);
}

/* Any allocation may fail, during the upload of the samples or in a batch; all memory must be freed. */
static void test_failing_allocations(void **state)
{
    fixture *self = *state;
    mercer_context *context = self->context;
    mercer_matrix x = data_matrix(40, 16, 0, MERCER_U8), y = data_matrix(40, 2, 0, MERCER_F32);
    mercer_dataset *data;
    mercer_preprocess *preprocess;
    mercer_source host, on_device;
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &x, .Y = &y};
    data_fill_uniform(&x, (mrc_rng){1, 1}, 0, 255);
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, "minmax", data));
    mercer_stream_options options = {.struct_size = sizeof options,
                                     .preprocess = preprocess,
                                     .augment = "shift:pixels=1+mixup:alpha=1",
                                     .height = 4,
                                     .width = 4,
                                     .prefetch = MERCER_OFF};
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
    int64_t live = self->memory.live;
    int failures = 0;
    for (bool done = false; !done; failures += !done) {
        mercer_batch batch;
        self->memory.fail_at = self->memory.requests + failures + 1;
        mercer_status status = mrc_device_source_create(&on_device, context->backend, &host, INT64_MAX);
        if (status == MERCER_OK) {
            assert_int_equal(on_device.restart(on_device.user, 0), 0);
            done = on_device.next(on_device.user, 30, &batch) == 0;
            if (!done) assert_non_null(strstr(on_device.last_error(on_device.user), "a batch"));
            mercer_source_free(&on_device);
        } else {
            assert_int_equal(status, MERCER_ERROR_MEMORY);
        }
        assert_int_equal(self->memory.live, live);
    }
    self->memory.fail_at = 0;
    assert_true(failures > 10);
    mercer_source_free(&host);
    mercer_preprocess_free(preprocess), mercer_dataset_free(data);
    free(x.data), free(y.data);
}

/* Unsupported synthetic samples, augmentation that only the host implements, and callers' sources stay on the host. */
static void test_others(void **state)
{
    (void)state;
    mercer_context *context;
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    mercer_dataset *data;
    mercer_source host, on_device;
    mercer_stream_options options = {.struct_size = sizeof options};
    assert_succeeds(context, mercer_dataset_synthesize(&data, context, "digits", 0, 50, 1));
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, INT64_MAX));
    assert_null(on_device.next);
    mercer_source_free(&host);
    mercer_dataset_free(data);
    assert_succeeds(context, mercer_dataset_synthesize(&data, context, "teacher", 0, 50, 1));
    options.augment = "noise:sigma=1";
    assert_succeeds(context, mercer_source_from_dataset(&host, data, &options));
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, INT64_MAX));
    assert_null(on_device.next);
    mercer_source theirs = host;
    theirs.next = NULL;
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &theirs, INT64_MAX));
    assert_null(on_device.next);
    assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, NULL, INT64_MAX));
    assert_null(on_device.next);
    mercer_source_free(&host);
    mercer_dataset_free(data);
    /* Non-affine preprocessing, and mixed samples of a source that reads in blocks, stay on the host. */
    mercer_matrix points = data_matrix(40, 3, 0, MERCER_F32), values = data_matrix(40, 1, 0, MERCER_F32);
    data_fill_normal(&points, (mrc_rng){1, 1}, 0, 1);
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &points, .Y = &values};
    mercer_preprocess *preprocess;
    assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
    assert_succeeds(context, mercer_preprocess_fit(&preprocess, context, "unit", data));
    for (int i = 0; i < 2; i++) {
        mercer_stream_options left = {.struct_size = sizeof left, .augment = i ? "mixup:alpha=1" : "noise:sigma=1"};
        left.preprocess = i ? NULL : preprocess, left.block = i ? 4 : 0;
        assert_succeeds(context, mercer_source_from_dataset(&host, data, &left));
        assert_succeeds(context, mrc_device_source_create(&on_device, context->backend, &host, INT64_MAX));
        assert_null(on_device.next);
        mercer_source_free(&host);
    }
    mercer_preprocess_free(preprocess), mercer_dataset_free(data);
    free(points.data), free(values.data);
    /* A value that is not finite is an error when the samples are uploaded. */
    mercer_matrix x = data_matrix(5, 2, 0, MERCER_F32), y = data_matrix(5, 1, 0, MERCER_F32);
    assert_succeeds(context, source_from_matrices(&host, context, &x, &y, NULL, 1));
    mrc_store(&x, 3, 1, (double)NAN);
    assert_fails(context, mrc_device_source_create(&on_device, context->backend, &host, INT64_MAX), MERCER_ERROR_DATA,
                 "row 3, column 1");
    mercer_source_free(&host);
    free(x.data), free(y.data);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_teacher),
                                       cmocka_unit_test(test_stored),
                                       cmocka_unit_test(test_several_files),
                                       cmocka_unit_test(test_augmented),
                                       cmocka_unit_test(test_failing_allocations),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
