/* SPDX-License-Identifier: BSD-3-Clause */
/* Models predict according to their weights; sources deliver every sample once per pass, in a reproducible order. */
#include "support/training.h"

#include "support/fitted.h"
#include "support/info.h"
#include "support/sources.h"

#include "kernels/table.h"
#include "mercer/evaluation.h"
#include "model/model.h"

enum { N = 50, P = 20, D = 5, C = 3 };

/* ---- Models -------------------------------------------------------------------------------------------------- */

static void test_model_keeps_its_own(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    mercer_model *model;
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, C, 0));
    mercer_matrix centers = model_info(model).centers, weights = model_info(model).weights;
    assert_memory_equal(centers.data, t.z.data, P * D * sizeof(float));
    assert_true(centers.data != t.z.data && centers.dtype == MERCER_F32 && weights.dtype == MERCER_F32);
    assert_int_equal(weights.rows, P);
    assert_int_equal(weights.cols, C);
    for (int64_t i = 0; i < P * C; i++) assert_true(((float *)weights.data)[i] == 0);
    assert_memory_equal(model_info(model).kernel, &t.kernel, sizeof t.kernel);
    mercer_model_free(model);
    assert_true(model_info(NULL).kernel == NULL && model_info(NULL).weights.data == NULL);
    task_close(&t);
}

/* Predictions have the same bits as mercer_kernel_matmul for all types, both row by row and all at once. */
static void test_predict_is_the_product(void **state)
{
    (void)state;
    static const mercer_dtype types[][3] = {{MERCER_F32, MERCER_F32, MERCER_F32},
                                            {MERCER_F64, MERCER_F64, MERCER_F64},
                                            {MERCER_U8, MERCER_U8, MERCER_F32},
                                            {MERCER_F16, MERCER_F32, MERCER_F64}};
    for (int k = 0; k < mrc_kernel_table_size; k++)
        for (int i = 0; i < 4; i++) {
            mercer_kernel kernel;
            mercer_model *model;
            mercer_matrix x = data_matrix(N, D, 0, types[i][0]), z = data_matrix(P, D, 0, types[i][1]);
            data_fill_uniform(&x, (mrc_rng){71, 1}, 0, 9), data_fill_uniform(&z, (mrc_rng){71, 2}, 0, 9);
            assert_succeeds(context, mercer_kernel_parse(&kernel, context, kernel_info(k).example));
            assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, C, types[i][2]));
            mercer_matrix w = model_info(model).weights, f = data_matrix(N, C, 0, types[i][2]);
            mercer_matrix expected = data_matrix(N, C, 0, types[i][2]), one = data_matrix(N, C, 0, types[i][2]);
            data_fill_normal(&w, (mrc_rng){71, 3}, 0, 1);
            assert_succeeds(context, mercer_model_predict(model, &f, &x));
            assert_succeeds(context, mercer_kernel_matmul(context, &expected, &kernel, &x, &z, &w));
            size_t bytes = (size_t)(N * C * mrc_dtype_size(types[i][2]));
            assert_that(memcmp(f.data, expected.data, bytes) == 0, "%s, types %d", kernel_info(k).example, i);
            for (int64_t r = 0; r < N; r++) {
                mercer_matrix row = mrc_rows(&x, r, 1), to = mrc_rows(&one, r, 1);
                assert_succeeds(context, mercer_model_predict(model, &to, &row));
            }
            assert_that(memcmp(f.data, one.data, bytes) == 0, "%s, types %d: rows depend on each other",
                        kernel_info(k).example, i);
            mercer_matrix none = mrc_rows(&x, 0, 0), empty = mrc_rows(&f, 0, 0);
            assert_succeeds(context, mercer_model_predict(model, &empty, &none));
            assert_succeeds(context, mercer_model_classify(model, NULL, &none));
            mercer_model_free(model);
            free(x.data), free(z.data), free(f.data), free(expected.data), free(one.data);
        }
}

/* Ties are resolved in favor of the first output: in a fresh model all outputs are 0. */
static void test_classify_ties(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    mercer_model *model;
    int32_t labels[N];
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t.kernel, &t.z, C, 0));
    memset(labels, 0x3c, sizeof labels);
    assert_succeeds(context, mercer_model_classify(model, labels, &t.x));
    for (int64_t i = 0; i < N; i++) assert_int_equal(labels[i], 0);
    mercer_matrix w = model_info(model).weights;
    for (int64_t i = 0; i < P; i++) mrc_store(&w, i, 1, 1), mrc_store(&w, i, 2, 1);
    assert_succeeds(context, mercer_model_classify(model, labels, &t.x));
    for (int64_t i = 0; i < N; i++) assert_int_equal(labels[i], 1);
    mercer_model_free(model);
    task_close(&t);
}

static void test_bad_models(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F64);
    mercer_model *model, *made;
    assert_succeeds(context, mercer_model_create(&made, context, NULL, &t.kernel, &t.z, C, MERCER_F64));
    const mercer_kernel *kernel = &t.kernel;
    mercer_matrix z = t.z, x = t.x, out = data_matrix(N, C, 0, MERCER_F64), bad;
    bad = mrc_rows(&z, 0, 0);
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &bad, C, 0), MERCER_ERROR_SHAPE,
                 "centers");
    bad = z, bad.rows = -1;
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &bad, C, 0), MERCER_ERROR_SHAPE,
                 "centers");
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &z, 0, 0), MERCER_ERROR_SHAPE, "outputs");
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &z, INT64_MAX / 4, 0), MERCER_ERROR_SHAPE,
                 "outputs");
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &z, C, MERCER_U8), MERCER_ERROR_DTYPE,
                 "weights");
    mercer_kernel wrong = *kernel;
    wrong.bandwidth = -1;
    assert_fails(context, mercer_model_create(&model, context, NULL, &wrong, &z, C, 0), MERCER_ERROR_KERNEL,
                 "bandwidth");
    double saved = mrc_load(&z, 2, 1);
    mrc_store(&z, 2, 1, NAN);
    assert_fails(context, mercer_model_create(&model, context, NULL, kernel, &z, C, 0), MERCER_ERROR_DATA, "centers");
    mrc_store(&z, 2, 1, saved);
    bad = x, bad.cols = D - 1;
    assert_fails(context, mercer_model_predict(made, &out, &bad), MERCER_ERROR_SHAPE, "X");
    bad = out, bad.rows = N - 1;
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_SHAPE, "F");
    bad = out, bad.dtype = MERCER_F16;
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_DTYPE, "F");
    bad = mrc_view(x.data, N, C, MERCER_F64);
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_OVERLAP, "F");
    saved = mrc_load(&x, 2, 1);
    mrc_store(&x, 2, 1, INFINITY);
    int32_t labels[N];
    assert_fails(context, mercer_model_predict(made, &out, &x), MERCER_ERROR_DATA, "X");
    assert_fails(context, mercer_model_classify(made, labels, &x), MERCER_ERROR_DATA, "X");
    mrc_store(&x, 2, 1, saved);
    for (int64_t i = 0; i < N * C; i++) assert_true(((double *)out.data)[i] == 0);
    free(out.data);
    mercer_model_free(made);
    task_close(&t);
}

/* ---- Sources ------------------------------------------------------------------------------------------------- */

/* Read one pass in batches of at most `most`; `order` receives the row numbers. Check that each row has its own X, Y
   and weight. */
static void read_pass(const mercer_source *source, const task *t, const int32_t *labels, int64_t epoch, int64_t most,
                      int64_t *order)
{
    int64_t count = 0;
    bool seen[N] = {false};
    assert_int_equal(source->restart(source->user, epoch), 0);
    for (;;) {
        mercer_batch batch;
        assert_int_equal(source->next(source->user, most, &batch), 0);
        if (batch.X.rows == 0) break;
        assert_true(batch.X.rows <= most && batch.X.rows == batch.Y.rows && batch.X.cols == D);
        for (int64_t i = 0; i < batch.X.rows; i++) {
            int64_t row = batch.rows[i];
            assert_true(row >= 0 && row < N && !seen[row]);
            seen[row] = true;
            order[count++] = row;
            for (int64_t j = 0; j < D; j++) assert_true(mrc_load(&batch.X, i, j) == mrc_load(&t->x, row, j));
            for (int64_t j = 0; j < C; j++)
                assert_true(mrc_load(&batch.Y, i, j) == (labels ? labels[row] == j : mrc_load(&t->y, row, j)));
            if (t->weights) assert_true(batch.weights[i] == t->weights[row]);
        }
        assert_true(!t->weights == !batch.weights);
    }
    assert_int_equal(count, N);
}

static void check_source(const mercer_source *source, const task *t, const int32_t *labels)
{
    int64_t first[N], again[N], other[N], order[N];
    assert_int_equal(source->rows, N);
    assert_int_equal(source->features, D);
    assert_int_equal(source->outputs, C);
    read_pass(source, t, labels, 0, 7, first);
    read_pass(source, t, labels, 1, 7, other);
    assert_true(memcmp(first, other, sizeof first) != 0); /* a new order for each pass */
    read_pass(source, t, labels, -1, 50, other);
    assert_true(memcmp(first, other, sizeof first) != 0); /* the pass from which samples are drawn */
    read_pass(source, t, labels, 0, 33, again);
    assert_memory_equal(first, again, sizeof first); /* the same pass again, in other batches */
    for (int64_t i = 0; i < N; i++) order[i] = i;
    assert_true(memcmp(first, order, sizeof first) != 0);
}

static void test_source_order(void **state)
{
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++) {
        task t = task_open(context, "linear", (sizes){N, P, D, C}, 1, MERCER_F32);
        int32_t labels[N];
        if (weighted) t.weights = calloc(N, sizeof(double));
        for (int64_t i = 0; i < N; i++) labels[i] = (int32_t)(i % C);
        for (int64_t i = 0; weighted && i < N; i++) t.weights[i] = (double)i / 7;
        mercer_source source, same, different;
        assert_succeeds(context, source_from_matrices(&source, context, &t.x, &t.y, t.weights, 9));
        check_source(&source, &t, NULL);
        assert_succeeds(context, source_from_labels(&same, context, &t.x, labels, C, t.weights, 9));
        check_source(&same, &t, labels);
        assert_succeeds(context, source_from_matrices(&different, context, &t.x, &t.y, t.weights, 10));
        int64_t a[N], b[N], c[N];
        read_pass(&source, &t, NULL, 3, 10, a), read_pass(&same, &t, labels, 3, 10, b);
        read_pass(&different, &t, NULL, 3, 10, c);
        assert_memory_equal(a, b, sizeof a);
        assert_true(memcmp(a, c, sizeof a) != 0);
        mercer_source_free(&source), mercer_source_free(&same), mercer_source_free(&different);
        mercer_source_free(&source); /* a released source is empty: no effect */
        task_close(&t);
    }
}

/* Rows with padding between them are read correctly. */
static void test_strided_source(void **state)
{
    (void)state;
    task t = task_open(context, "linear", (sizes){N, P, D, C}, 1, MERCER_F32), wide = t;
    wide.x = data_matrix(N, D, D + 3, MERCER_F32), wide.y = data_matrix(N, C, C + 1, MERCER_F32);
    for (int64_t i = 0; i < N; i++) {
        memcpy(mrc_row(&wide.x, i), mrc_row(&t.x, i), D * sizeof(float));
        memcpy(mrc_row(&wide.y, i), mrc_row(&t.y, i), C * sizeof(float));
    }
    mercer_source source;
    assert_succeeds(context, source_from_matrices(&source, context, &wide.x, &wide.y, NULL, 9));
    check_source(&source, &t, NULL);
    mercer_source_free(&source);
    free(wide.x.data), free(wide.y.data);
    task_close(&t);
}

static void test_bad_sources(void **state)
{
    (void)state;
    task t = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F64);
    mercer_source source;
    mercer_matrix x = t.x, y = t.y, bad = mrc_rows(&y, 0, N - 1);
    double weights[N] = {1};
    int32_t labels[N] = {0};
    assert_fails(context, source_from_matrices(&source, context, &x, &bad, NULL, 1), MERCER_ERROR_SHAPE, "Y");
    bad = y, bad.dtype = MERCER_U8;
    assert_fails(context, source_from_matrices(&source, context, &x, &bad, NULL, 1), MERCER_ERROR_DTYPE, "Y");
    weights[5] = -1;
    assert_fails(context, source_from_matrices(&source, context, &x, &y, weights, 1), MERCER_ERROR_DATA, "weights");
    weights[5] = NAN;
    assert_fails(context, source_from_labels(&source, context, &x, labels, 3, weights, 1), MERCER_ERROR_DATA,
                 "weights");
    assert_fails(context, source_from_labels(&source, context, &x, labels, 0, NULL, 1), MERCER_ERROR_SHAPE, "classes");
    labels[7] = 3;
    assert_fails(context, source_from_labels(&source, context, &x, labels, 3, NULL, 1), MERCER_ERROR_DATA, "labels");
    labels[7] = -1;
    assert_fails(context, source_from_labels(&source, context, &x, labels, 3, NULL, 1), MERCER_ERROR_DATA, "labels");
    double saved = mrc_load(&y, 3, 1);
    mrc_store(&y, 3, 1, NAN);
    assert_fails(context, source_from_matrices(&source, context, &x, &y, NULL, 1), MERCER_ERROR_DATA, "Y");
    mrc_store(&y, 3, 1, saved);
    task_close(&t);
}

/* ---- A device -------------------------------------------------------------------------------------------------- */

/* The context's backend simulates a device with separate memory: arguments must have been copied to this memory. */
static int64_t copies, refuse_copy;

static mrc_capabilities elsewhere(const mrc_backend *backend, bool half)
{
    (void)half;
    (void)backend;
    return (mrc_capabilities){.isa = "elsewhere", .memory = MRC_CUDA};
}

static mercer_status (*true_copy)(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);

static mercer_status count_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from)
{
    if (++copies == refuse_copy) return mrc_fail(backend->context, MERCER_ERROR_INTERNAL, "device");
    return true_copy(backend, to, from);
}

static mercer_status refuse_alloc(mrc_backend *backend, void **out, int64_t bytes, const char *what)
{
    *out = NULL;
    return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "no %lld bytes for %s", (long long)bytes, what);
}

/* Compute predictions, labels and probabilities of x; samples and results may be in host or device memory. */
static mercer_status use(mercer_model *model, const mercer_matrix *x, const mercer_matrix *f, int32_t *labels,
                         const mercer_matrix *p)
{
    MRC_TRY(mrc_model_predict(model, f, x));
    MRC_TRY(mrc_model_classify(model, labels, x));
    return mrc_model_probabilities(model, p, x);
}

/* Return a model. kind: 0 only weights; 1 an affine preprocessing and target units; 2 ranks, and logarithms of
   targets. */
static mercer_model *model_of_kind(const task *t, int kind)
{
    static const char *const specs[] = {"none", "standardize", "rank"};
    mercer_model *model;
    mercer_preprocess *preprocess;
    double shifts[C] = {3, 4, 5};
    mercer_matrix numbers = mrc_view(shifts, C, 1, MERCER_F64);
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &t->kernel, &t->z, C, 0));
    mercer_matrix w = model_info(model).weights;
    data_fill_normal(&w, (mrc_rng){71, 3}, 0, 0.2);
    assert_succeeds(context, fit_to_matrix(&preprocess, context, specs[kind], &t->x));
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    if (kind == 1)
        assert_succeeds(context, mercer_model_set_targets(model, (double[C]){1, 2, 3}, (double[C]){0.5, 1, 2}));
    if (kind == 2) assert_succeeds(context, mrc_units_set_curve(&model->units, context, MRC_CURVE_LOG, C, &numbers));
    mercer_preprocess_free(preprocess);
    return model;
}

/* A device computes the same results as the host, for inputs and outputs in host or device memory and of both types.
   Weights are sent again only if they were modified. Without device memory the host's weights are used; other failures
   are reported. */
static void test_device(void **state)
{
    (void)state;
    mrc_backend *own = context->backend, on_device = *own;
    mrc_backend_ops ops = *own->ops;
    true_copy = ops.copy;
    ops.capabilities = elsewhere, ops.copy = count_copy;
    on_device.ops = &ops;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    for (int kind = 0; kind < 3; kind++)
        for (int way = 0; way < 8; way++) {
            mercer_dtype result = way & 4 ? MERCER_F64 : MERCER_F32;
            mercer_model *model = model_of_kind(&t, kind);
            mercer_matrix x = t.x, f = data_matrix(N, C, 0, result), wanted = data_matrix(N, C, 0, result);
            mercer_matrix p = data_matrix(N, C, 0, result), chances = data_matrix(N, C, 0, result);
            int32_t labels[N], classes[N];
            assert_succeeds(context, use(model, &x, &wanted, classes, &chances));
            if (way & 1) x.memory = MRC_CUDA;
            if (way & 2) f.memory = p.memory = MRC_CUDA;
            context->backend = &on_device, copies = 0;
            mercer_status status = use(model, &x, &f, labels, &p);
            bool sent = model->placed.sent && model->placed.z.data != NULL;
            int64_t before = copies;
            mercer_status again = mrc_model_predict(model, &f, &x);
            int64_t kept = copies - before;
            ((float *)model->weights.data)[0] += 1;
            before = copies;
            mercer_status changed = mrc_model_predict(model, &p, &x);
            int64_t renewed = copies - before - kept;
            mrc_model_drop_device_copy(model);
            refuse_copy = copies + 1;
            mercer_status gone = mrc_model_predict(model, &p, &x);
            refuse_copy = 0;
            ops.alloc = refuse_alloc;
            mercer_status upload = kind == 0 && way == 0 ? mrc_model_upload(model) : MERCER_OK;
            bool placed = model->placed.z.data != NULL;
            ops.alloc = own->ops->alloc;
            mrc_model_drop_device_copy(model);
            context->backend = own;
            assert_succeeds(context, status);
            assert_succeeds(context, again);
            assert_succeeds(context, changed);
            assert_fails(context, gone, MERCER_ERROR_INTERNAL, "");
            assert_succeeds(context, upload);
            assert_that(sent && !placed && renewed == 1, "kind %d, way %d: %d copies more", kind, way, (int)renewed);
            for (int64_t i = 0; i < N * C; i++)
                assert_that(fabs(mrc_load(&f, i / C, i % C) - mrc_load(&wanted, i / C, i % C)) < 1e-5,
                            "kind %d, way %d: %g instead of %g", kind, way, mrc_load(&f, i / C, i % C),
                            mrc_load(&wanted, i / C, i % C));
            assert_memory_equal(labels, classes, sizeof labels);
            mercer_model_free(model);
            free(f.data), free(wanted.data), free(p.data), free(chances.data);
        }
    task_close(&t);
}

/* ---- Invalid metadata ------------------------------------------------------------------------------------------- */

static void test_bad_parts(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    const char *const names[D] = {"a", "b", "c", "d", "e"};
    double scores[2 * C] = {1, 2, 1, 2, 1, 2}, radius[C];
    mercer_matrix lists = mrc_view(scores, C, 2, MERCER_F64);
    mercer_model *model = model_of_kind(&t, 0);
    assert_fails(NULL, mercer_model_set_names(NULL, MERCER_NAMES_LABELS, names, C), MERCER_ERROR_ARGUMENT,
                 "model is NULL");
    assert_fails(NULL, mercer_model_set_names(NULL, MERCER_NAMES_FEATURES, names, D), MERCER_ERROR_ARGUMENT,
                 "model is NULL");
    assert_fails(NULL, mercer_model_set_names(NULL, MERCER_NAMES_TARGETS, names, C), MERCER_ERROR_ARGUMENT,
                 "model is NULL");
    assert_fails(NULL, mercer_model_set_note(NULL, "note"), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(NULL, mercer_model_set_schema(NULL, "{}"), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(NULL, mercer_model_set_calibration(NULL, 1, 0), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(NULL, mrc_model_set_intervals(NULL, &lists, 9, MERCER_TASK_REGRESSION), MERCER_ERROR_ARGUMENT,
                 "model is NULL");
    assert_fails(NULL, mercer_model_interval(NULL, radius, 0.5), MERCER_ERROR_ARGUMENT, "model is NULL");
    assert_fails(context, mercer_model_interval(model, NULL, 0.5), MERCER_ERROR_ARGUMENT, "radius is NULL");
    assert_fails(context, mercer_model_interval(model, radius, 0), MERCER_ERROR_ARGUMENT, "between 0 and 1");
    assert_fails(context, mercer_model_interval(model, radius, (double)NAN), MERCER_ERROR_ARGUMENT, "between 0 and 1");
    const double refused[] = {(double)INFINITY, (double)NAN, -1, 1e-4, 1e7};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_fails(context, mercer_model_set_calibration(model, 1, refused[i]), MERCER_ERROR_DATA, "curvature");
    assert_fails(context, mercer_model_set_calibration(model, 0, 20), MERCER_ERROR_DATA, "no temperature");
    assert_fails(context, mercer_model_set_calibration(model, (double)INFINITY, 0), MERCER_ERROR_DATA, "temperature");
    assert_fails(context, mercer_model_set_calibration(model, (double)NAN, 0), MERCER_ERROR_DATA, "temperature");
    assert_fails(context, mrc_model_set_intervals(model, &lists, 9, MERCER_TASK_AUTO), MERCER_ERROR_ARGUMENT, "task");
    assert_fails(context, mrc_model_set_intervals(model, &lists, 0.5, MERCER_TASK_REGRESSION), MERCER_ERROR_DATA,
                 "rows is 0.5");
    assert_fails(context, mrc_model_set_intervals(model, &lists, (double)INFINITY, MERCER_TASK_REGRESSION),
                 MERCER_ERROR_DATA, "rows is inf");
    assert_fails(context, mrc_model_set_intervals(model, &lists, 9, MERCER_TASK_CLASSIFICATION), MERCER_ERROR_SHAPE,
                 "each of 1");
    scores[3] = (double)NAN;
    assert_fails(context, mrc_model_set_intervals(model, &lists, 9, MERCER_TASK_REGRESSION), MERCER_ERROR_DATA,
                 "row 1, column 1");
    scores[3] = 2, scores[0] = -1;
    assert_fails(context, mrc_model_set_intervals(model, &lists, 9, MERCER_TASK_REGRESSION), MERCER_ERROR_DATA,
                 "scores: list 0 *ascending");
    lists.dtype = MERCER_U8;
    assert_fails(context, mrc_model_set_intervals(model, &lists, 9, MERCER_TASK_REGRESSION), MERCER_ERROR_DTYPE,
                 "scores");
    assert_fails(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, names, 2), MERCER_ERROR_SHAPE,
                 "has 5 features");
    assert_fails(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, names, 2), MERCER_ERROR_SHAPE,
                 "has 3 outputs");
    assert_fails(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, NULL, 3), MERCER_ERROR_ARGUMENT,
                 "names is NULL");
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, names, 1));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_TARGETS, names, 0));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_FEATURES, names, 0));
    assert_succeeds(context, mercer_model_set_note(model, ""));
    assert_succeeds(context, mercer_model_set_schema(model, NULL));
    assert_string_equal(model_info(model).note, "");
    mercer_model_free(model);
    task_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_keeps_its_own), cmocka_unit_test(test_predict_is_the_product),
        cmocka_unit_test(test_classify_ties),       cmocka_unit_test(test_source_order),
        cmocka_unit_test(test_strided_source),      cmocka_unit_test(test_bad_models),
        cmocka_unit_test(test_bad_sources),         cmocka_unit_test(test_device),
        cmocka_unit_test(test_bad_parts),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
