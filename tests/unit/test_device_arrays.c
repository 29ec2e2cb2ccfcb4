/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers' arrays in backend memory, passed to the public functions, on every backend: results are bitwise identical to
 * those from host memory. A backend without its own memory rejects such arrays with a message that names it.
 */
#include "support/backends.h"
#include "support/data.h"
#include "support/fitted.h"
#include "support/info.h"

#include "model/model.h"

#include <math.h>

enum { M = 300, P = 150, D = 21, C = 3 };

/* Run `test` on a context that uses `backend`, as the public functions require. */
static void with_backend(mrc_backend *backend, void (*test)(mercer_context *context))
{
    backend->context->backend = backend;
    test(backend->context);
    backend->context->backend = NULL;
}

static mrc_memory home_of(const mercer_context *context)
{
    return mrc_backend_memory(context->backend);
}

/* Return a copy of `host` in backend memory, with `gap` elements of row padding; release with mrc_matrix_destroy. */
static mercer_matrix bring(mercer_context *context, const mercer_matrix *host, int64_t gap)
{
    mercer_matrix all;
    assert_succeeds(context,
                    mrc_matrix_create(context->backend, &all, host->rows, host->cols + gap, host->dtype, "test"));
    all.cols = host->cols;
    assert_succeeds(context, context->backend->ops->copy(context->backend, &all, host));
    return all;
}

static mercer_matrix random_matrix(int64_t rows, int64_t cols, mercer_dtype dtype, uint64_t sequence)
{
    mercer_matrix made = data_matrix(rows, cols, 0, dtype);
    data_fill_normal(&made, (mrc_rng){11, sequence}, 0, 1);
    return made;
}

static void same_bits(mercer_context *context, const mercer_matrix *on_device, const mercer_matrix *here)
{
    mercer_matrix copy = data_matrix(here->rows, here->cols, 0, here->dtype);
    assert_succeeds(context, context->backend->ops->copy(context->backend, &copy, on_device));
    assert_memory_equal(copy.data, here->data, (size_t)(here->rows * here->cols * mrc_dtype_size(here->dtype)));
    free(copy.data);
}

static void refuse(mercer_context *context, mercer_status got, mercer_status expected, const char *text)
{
    assert_int_equal(got, expected);
    assert_that(mentions(mercer_last_error(context), text), "'%s' is not in '%s'", text, mercer_last_error(context));
}

/* ---- Elements ------------------------------------------------------------------------------------------------ */

static void scans(mercer_context *context)
{
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16};
    mrc_backend *backend = context->backend;
    for (int t = 0; t < 3; t++) {
        mercer_matrix x = random_matrix(70, 37, types[t], 5);
        double largest, expected = 0;
        int64_t first;
        for (int64_t i = 0; i < x.rows * x.cols; i++) expected = fmax(expected, fabs(mrc_load(&x, i / 37, i % 37)));
        for (int gap = 0; gap < 2; gap++) {
            mercer_matrix on_device = bring(context, &x, gap);
            assert_succeeds(context, backend->ops->scan(backend, &on_device, &first, &largest));
            assert_that(first == -1 && largest == expected, "%lld, %g, not %g", (long long)first, largest, expected);
            mrc_matrix_destroy(backend, &on_device);
        }
        double row[37];
        for (int bad = 0; bad < 2; bad++) { /* two bad elements: the first is reported, whether infinite or NaN */
            mrc_load_row_f64(&x, 41, row);
            row[8] = bad ? (double)NAN : -(double)INFINITY, row[30] = (double)NAN;
            mrc_store_row_f64(&x, 41, row), mrc_store_row_f64(&x, 55, row);
            mercer_matrix on_device = bring(context, &x, 3);
            assert_succeeds(context, backend->ops->scan(backend, &on_device, &first, &largest));
            assert_int_equal(first, 41 * 37 + 8);
            assert_true(isfinite(largest) && largest <= expected);
            refuse(context, mrc_matrix_check_finite(backend, "Q", &on_device, NULL), MERCER_ERROR_DATA,
                   bad ? "Q: *row 41, column 8*NaN" : "Q: *row 41, column 8*infinite");
            mrc_matrix_destroy(backend, &on_device);
        }
        free(x.data);
    }
}

static void affine(mercer_context *context)
{
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32};
    mrc_backend *backend = context->backend;
    double shift[C] = {0.7, 3, -1e3}, factor[C] = {1, 0.3, 7}, offset[C] = {3, -0.1, 1e6};
    mrc_affine map = {shift, factor, offset};
    for (int t = 0; t < 4; t++) {
        mercer_matrix from = random_matrix(M, C, types[t / 2], 6), out = data_matrix(M, C, 0, types[t % 2]);
        mercer_matrix on_device = bring(context, &from, 0), to = bring(context, &out, 2);
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < C; j++) { /* volatile: separate roundings, no fused operation */
                volatile double difference = mrc_load(&from, i, j) - shift[j], product = factor[j] * difference;
                mrc_store(&out, i, j, offset[j] + product);
            }
        assert_succeeds(context, backend->ops->affine(backend, &to, &on_device, &map));
        same_bits(context, &to, &out);
        mrc_matrix_destroy(backend, &on_device), mrc_matrix_destroy(backend, &to);
        free(from.data), free(out.data);
    }
}

/* Copy matrices larger than one transfer chunk both ways, with and without row padding, one after the other. */
static void large_copies(mercer_context *context)
{
    static const int64_t sizes[][3] = {{1000, 700, 0}, {2100, 1250, 3}, {5, 600000, 1}, {2300001, 1, 0}};
    mrc_backend *backend = context->backend;
    for (int k = 0; k < 4; k++) {
        mercer_matrix x = data_matrix(sizes[k][0], sizes[k][1], sizes[k][1] + sizes[k][2], MERCER_F32), on_device[2];
        mercer_matrix back = data_matrix(x.rows, x.cols, x.ld, MERCER_F32);
        set_sentinels(&x), set_sentinels(&back);
        for (int64_t i = 0; i < x.rows; i++)
            for (int64_t j = 0; j < x.cols; j++) ((float *)mrc_row(&x, i))[j] = (float)(i * 7 + j);
        for (int time = 0; time < 2; time++) { /* the first copy may be in flight when the second starts */
            on_device[time] = bring(context, &x, time);
            for (int64_t j = 0; j < x.cols && time == 0; j++) ((float *)mrc_row(&x, x.rows - 1))[j] += 1;
        }
        for (int time = 1; time >= 0; time--) {
            assert_succeeds(context, backend->ops->copy(backend, &back, &on_device[time]));
            for (int64_t i = 0; i < x.rows; i++)
                for (int64_t j = 0; j < x.cols; j++) {
                    float expected = (float)(i * 7 + j) + (time == 1 && i == x.rows - 1 ? 1 : 0);
                    if (((float *)mrc_row(&back, i))[j] != expected)
                        fail_msg("size %d, %lld, %lld", k, (long long)i, (long long)j);
                }
            assert_true(sentinels_intact(&back));
            mrc_matrix_destroy(backend, &on_device[time]);
        }
        free(x.data), free(back.data);
    }
}

static void elements_on(mrc_backend *backend)
{
    if (backend->context->isa == MRC_ISA_SCALAR) with_backend(backend, large_copies);
    with_backend(backend, scans);
    with_backend(backend, affine);
}

/* ---- Products and predictions ---------------------------------------------------------------------------------- */

typedef struct operands {
    mercer_matrix x, z, w, y;
} operands;

static void products(mercer_context *context)
{
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64, MERCER_F16, MERCER_U8};
    mrc_backend *backend = context->backend;
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=3"));
    for (int t = 0; t < 4; t++) {
        mercer_dtype real = types[t] == MERCER_F64 ? MERCER_F64 : MERCER_F32;
        operands here = {data_matrix(M, D, 0, types[t]), data_matrix(P, D, 0, types[t]), random_matrix(P, C, real, 3),
                         data_matrix(M, C, 0, real)};
        data_fill_normal(&here.x, (mrc_rng){11, 1}, types[t] == MERCER_U8 ? 9 : 0, 1);
        data_fill_normal(&here.z, (mrc_rng){11, 2}, types[t] == MERCER_U8 ? 9 : 0, 1);
        operands on_device = {bring(context, &here.x, 5), bring(context, &here.z, 0), bring(context, &here.w, 1),
                              bring(context, &here.y, 2)};
        mercer_matrix k = data_matrix(M, P, 0, real), k_there = bring(context, &k, 3);
        assert_succeeds(context, mercer_kernel_matmul(context, &here.y, &kernel, &here.x, &here.z, &here.w));
        assert_succeeds(context,
                        mercer_kernel_matmul(context, &on_device.y, &kernel, &on_device.x, &on_device.z, &on_device.w));
        same_bits(context, &on_device.y, &here.y);
        assert_succeeds(context, mercer_kernel_matmul(context, &on_device.y, &kernel, &here.x, &on_device.z, &here.w));
        same_bits(context, &on_device.y, &here.y);
        assert_succeeds(context, mercer_kernel_eval(context, &k, &kernel, &here.x, &here.z));
        assert_succeeds(context, mercer_kernel_eval(context, &k_there, &kernel, &on_device.x, &here.z));
        same_bits(context, &k_there, &k);
        mercer_matrix *const all[] = {&on_device.x, &on_device.z, &on_device.w, &on_device.y, &k_there};
        for (int i = 0; i < 5; i++) mrc_matrix_destroy(backend, all[i]);
        free(here.x.data), free(here.z.data), free(here.w.data), free(here.y.data), free(k.data);
    }
}

/* Predictions from and to backend memory, repeated after the caller has changed the model's weights. */
static void predictions_of(mercer_context *context, mercer_model *model, const mercer_matrix *x)
{
    mrc_backend *backend = context->backend;
    static const mercer_dtype types[] = {MERCER_F32, MERCER_F64};
    mercer_matrix x_there = bring(context, x, 2), w = model_info(model).weights;
    for (int round = 0; round < 4; round++) {
        mercer_matrix f = data_matrix(M, C, 0, types[round % 2]), p = data_matrix(M, C, 0, types[round % 2]);
        mercer_matrix on_device = bring(context, &f, 1), one = mrc_rows(&f, 17, 1), x_one = mrc_rows(x, 17, 1);
        int32_t labels[M], labels_there[M];
        double before = mrc_load(&f, 17, 1);
        assert_succeeds(context, mercer_model_predict(model, &f, x));
        assert_true(mrc_load(&f, 17, 1) != before);
        assert_succeeds(context, mercer_model_predict(model, &on_device, &x_there));
        same_bits(context, &on_device, &f);
        double value = mrc_load(&f, 17, 1);
        assert_succeeds(context, mercer_model_predict(model, &one, &x_one));
        /* A product of a single row may use different code: 2 (P + D) roundings to float of sums of at most 0.04 P,
           times the scale. */
        double bound = 2 * (P + D) * 0x1p-24 * (0.04 * P + 2) * 3;
        assert_that(fabs(mrc_load(&one, 0, 1) - value) <= bound, "%g, not %g", mrc_load(&one, 0, 1), value);
        assert_succeeds(context, mercer_model_classify(model, labels, x));
        assert_succeeds(context, mercer_model_classify(model, labels_there, &x_there));
        assert_memory_equal(labels, labels_there, sizeof labels);
        assert_succeeds(context, mercer_model_probabilities(model, &p, x));
        assert_succeeds(context, mercer_model_probabilities(model, &on_device, &x_there));
        same_bits(context, &on_device, &p);
        mrc_store(&w, 5, 1, mrc_load(&w, 5, 1) + 1); /* the backend already has a copy of the weights */
        mrc_matrix_destroy(backend, &on_device);
        free(f.data), free(p.data);
    }
    mrc_matrix_destroy(backend, &x_there);
}

static void predictions(mercer_context *context)
{
    mercer_kernel kernel;
    double offset[C] = {1, 20, -3}, scale[C] = {2, 0.5, 3}, shift[C] = {30, 40, 50};
    mercer_matrix x = random_matrix(M, D, MERCER_F32, 1), z = random_matrix(P, D, MERCER_F32, 2);
    mercer_matrix shifts = mrc_view(shift, C, 1, MERCER_F64);
    int64_t before = context->bytes_now;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=4"));
    /* 0: a plain model; 1: with target units; 2 to 4: with target units and standardize, a target curve or ranks. */
    for (int kind = 0; kind < 5; kind++) {
        mercer_model *model;
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, C, MERCER_F32));
        mercer_matrix w = model_info(model).weights;
        data_fill_normal(&w, (mrc_rng){11, 4}, 0, 0.01);
        if (kind > 0) assert_succeeds(context, mercer_model_set_targets(model, offset, scale));
        if (kind == 2 || kind == 4) {
            mercer_preprocess *prepare;
            const char *spec = kind == 2 ? "standardize" : "rank";
            assert_succeeds(context, fit_to_matrix(&prepare, context, spec, &x));
            assert_succeeds(context, mercer_model_set_preprocess(model, prepare));
            mercer_preprocess_free(prepare);
        }
        if (kind == 3) assert_succeeds(context, mrc_units_set_curve(&model->units, context, MRC_CURVE_LOG, C, &shifts));
        predictions_of(context, model, &x);
        mercer_model_free(model);
    }
    assert_that(context->bytes_now == before || home_of(context) != MRC_HOST, "%lld bytes are left",
                (long long)(context->bytes_now - before));
    free(x.data), free(z.data);
}

/* ---- Rejected input ---------------------------------------------------------------------------------------------- */

static void refusals(mercer_context *context)
{
    mercer_kernel kernel;
    mercer_matrix x = random_matrix(8, D, MERCER_F32, 1), y = data_matrix(8, 8, 0, MERCER_F32), on_device = x, out = y;
    mercer_dataset *data;
    mercer_context_info info = {.struct_size = sizeof info};
    bool host = home_of(context) == MRC_HOST;
    mercer_status expected = host ? MERCER_ERROR_UNSUPPORTED : MERCER_ERROR_ARGUMENT;
    const char *text = host ? "memory kind" : "MERCER_CUDA";
    on_device.memory = MERCER_CUDA, out.memory = MERCER_CUDA;
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &on_device};
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "laplace:bandwidth=3"));
    refuse(context, mercer_kernel_eval(context, &y, &kernel, &on_device, &x), expected, text);
    refuse(context, mercer_kernel_eval(context, &out, &kernel, &x, &x), expected, text);
    refuse(context, mercer_kernel_diagonal(context, &y, &kernel, &on_device), expected, text);
    refuse(context, mercer_dataset_from_arrays(&data, context, &arrays), expected, text);
    on_device.memory = 2;
    refuse(context, mercer_kernel_eval(context, &y, &kernel, &on_device, &x), MERCER_ERROR_UNSUPPORTED,
           "memory kind 2");
    assert_succeeds(context, mercer_context_query(context, &info));
    assert_true((info.stream == NULL) == host && (info.device < 0) == host);
    assert_succeeds(context, mercer_context_wait(context, NULL));
    free(x.data), free(y.data);
}

/* A dataset of samples in backend memory yields the same model, bitwise, as one of samples in host memory. */
static void datasets(mercer_context *context)
{
    mercer_matrix x = random_matrix(M, D, MERCER_F32, 1), y = random_matrix(M, C, MERCER_F32, 7);
    mercer_matrix x_there = bring(context, &x, 4), y_there = bring(context, &y, 0), weights[2];
    mercer_model *models[2];
    for (int k = 0; k < 2; k++) {
        mercer_dataset *data;
        mercer_fit_options options = MERCER_INIT(mercer_fit_options);
        mercer_train_options train = MERCER_INIT(mercer_train_options);
        mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = k ? &x_there : &x, .Y = k ? &y_there : &y};
        options.kernel.spec = "laplace", options.centers.count = 60, options.train = &train,
        options.data.preprocess = "none";
        train.solver = "ep4", train.epochs = 2;
        assert_succeeds(context, mercer_dataset_from_arrays(&data, context, &arrays));
        assert_succeeds(context, mercer_fit(&models[k], context, data, &options, NULL));
        mercer_dataset_free(data);
        weights[k] = model_info(models[k]).weights;
    }
    assert_memory_equal(weights[0].data, weights[1].data, sizeof(float) * 60 * C);
    mercer_model_free(models[0]), mercer_model_free(models[1]);
    mrc_matrix_destroy(context->backend, &x_there), mrc_matrix_destroy(context->backend, &y_there);
    free(x.data), free(y.data);
}

static void public_on(mrc_backend *backend)
{
    if (strcmp(backend->ops->name, "reference") == 0) return; /* slow; its defaults are tested above */
    with_backend(backend, products);
    with_backend(backend, predictions);
    with_backend(backend, datasets);
    with_backend(backend, refusals);
}

static void test_elements(void **state)
{
    (void)state;
    for_each_backend(elements_on);
}

static void test_public(void **state)
{
    (void)state;
    for_each_backend(public_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elements), cmocka_unit_test(test_public)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
