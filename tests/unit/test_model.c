/* SPDX-License-Identifier: BSD-3-Clause */
/* Models predict what their weights say; sources hand out every sample once a pass, in an order that can be had again.
   */
#include "support/training.h"

enum { N = 50, P = 20, D = 5, C = 3 };

/* ---- Models -------------------------------------------------------------------------------------------------- */

static void test_model_keeps_its_own(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    mercer_model *model;
    assert_succeeds(context, mercer_model_create(&model, context, &t.kernel, &t.z, C, 0));
    mercer_matrix centers = mercer_model_centers(model), weights = mercer_model_weights(model);
    assert_memory_equal(centers.data, t.z.data, P * D * sizeof(float));
    assert_true(centers.data != t.z.data && centers.dtype == MERCER_F32 && weights.dtype == MERCER_F32);
    assert_int_equal(weights.rows, P);
    assert_int_equal(weights.cols, C);
    for (int64_t i = 0; i < P * C; i++) assert_true(((float *)weights.data)[i] == 0);
    assert_memory_equal(mercer_model_kernel(model), &t.kernel, sizeof t.kernel);
    mercer_model_free(model);
    assert_true(mercer_model_kernel(NULL) == NULL && mercer_model_weights(NULL).data == NULL);
    task_close(&t);
}

/* The same bits as mercer_kernel_matmul, whatever the types, and row by row as all at once. */
static void test_predict_is_the_product(void **state)
{
    (void)state;
    static const mercer_dtype types[][3] = {{MERCER_F32, MERCER_F32, MERCER_F32},
                                            {MERCER_F64, MERCER_F64, MERCER_F64},
                                            {MERCER_U8, MERCER_U8, MERCER_F32},
                                            {MERCER_F16, MERCER_F32, MERCER_F64}};
    for (int k = 0; k < mercer_kernel_count(); k++)
        for (int i = 0; i < 4; i++) {
            mercer_kernel kernel;
            mercer_model *model;
            mercer_matrix x = data_matrix(N, D, 0, types[i][0]), z = data_matrix(P, D, 0, types[i][1]);
            data_fill_uniform(&x, (mrc_rng){71, 1}, 0, 9), data_fill_uniform(&z, (mrc_rng){71, 2}, 0, 9);
            assert_succeeds(context, mercer_kernel_parse(&kernel, context, mercer_kernel_example(k)));
            assert_succeeds(context, mercer_model_create(&model, context, &kernel, &z, C, types[i][2]));
            mercer_matrix w = mercer_model_weights(model), f = data_matrix(N, C, 0, types[i][2]);
            mercer_matrix expected = data_matrix(N, C, 0, types[i][2]), one = data_matrix(N, C, 0, types[i][2]);
            data_fill_normal(&w, (mrc_rng){71, 3}, 0, 1);
            assert_succeeds(context, mercer_model_predict(model, &f, &x));
            assert_succeeds(context, mercer_kernel_matmul(context, &expected, &kernel, &x, &z, &w));
            size_t bytes = (size_t)(N * C * mrc_dtype_size(types[i][2]));
            assert_that(memcmp(f.data, expected.data, bytes) == 0, "%s, types %d", mercer_kernel_example(k), i);
            for (int64_t r = 0; r < N; r++) {
                mercer_matrix row = mrc_rows(&x, r, 1), to = mrc_rows(&one, r, 1);
                assert_succeeds(context, mercer_model_predict(model, &to, &row));
            }
            assert_that(memcmp(f.data, one.data, bytes) == 0, "%s, types %d: rows depend on each other",
                        mercer_kernel_example(k), i);
            mercer_matrix none = mrc_rows(&x, 0, 0), empty = mrc_rows(&f, 0, 0);
            assert_succeeds(context, mercer_model_predict(model, &empty, &none));
            assert_succeeds(context, mercer_model_classify(model, NULL, &none));
            mercer_model_free(model);
            free(x.data), free(z.data), free(f.data), free(expected.data), free(one.data);
        }
}

/* The first of equal outputs: all of them are 0 in a fresh model. */
static void test_classify_ties(void **state)
{
    (void)state;
    task t = task_open(context, "gaussian:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F32);
    mercer_model *model;
    int32_t labels[N];
    assert_succeeds(context, mercer_model_create(&model, context, &t.kernel, &t.z, C, 0));
    memset(labels, 0x3c, sizeof labels);
    assert_succeeds(context, mercer_model_classify(model, labels, &t.x));
    for (int64_t i = 0; i < N; i++) assert_int_equal(labels[i], 0);
    mercer_matrix w = mercer_model_weights(model);
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
    assert_succeeds(context, mercer_model_create(&made, context, &t.kernel, &t.z, C, MERCER_F64));
    const mercer_kernel *kernel = &t.kernel;
    mercer_matrix z = t.z, x = t.x, out = data_matrix(N, C, 0, MERCER_F64), bad;
    bad = mrc_rows(&z, 0, 0);
    assert_fails(context, mercer_model_create(&model, context, kernel, &bad, C, 0), MERCER_ERROR_SHAPE, "centers");
    bad = z, bad.rows = -1;
    assert_fails(context, mercer_model_create(&model, context, kernel, &bad, C, 0), MERCER_ERROR_SHAPE, "centers");
    assert_fails(context, mercer_model_create(&model, context, kernel, &z, 0, 0), MERCER_ERROR_SHAPE, "outputs");
    assert_fails(context, mercer_model_create(&model, context, kernel, &z, INT64_MAX / 4, 0), MERCER_ERROR_SHAPE,
                 "outputs");
    assert_fails(context, mercer_model_create(&model, context, kernel, &z, C, MERCER_U8), MERCER_ERROR_DTYPE,
                 "weights");
    mercer_kernel wrong = *kernel;
    wrong.bandwidth = -1;
    assert_fails(context, mercer_model_create(&model, context, &wrong, &z, C, 0), MERCER_ERROR_KERNEL, "bandwidth");
    double kept = mrc_load(&z, 2, 1);
    mrc_store(&z, 2, 1, NAN);
    assert_fails(context, mercer_model_create(&model, context, kernel, &z, C, 0), MERCER_ERROR_DATA, "centers");
    mrc_store(&z, 2, 1, kept);
    bad = x, bad.cols = D - 1;
    assert_fails(context, mercer_model_predict(made, &out, &bad), MERCER_ERROR_SHAPE, "X");
    bad = out, bad.rows = N - 1;
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_SHAPE, "F");
    bad = out, bad.dtype = MERCER_F16;
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_DTYPE, "F");
    bad = mrc_view(x.data, N, C, MERCER_F64);
    assert_fails(context, mercer_model_predict(made, &bad, &x), MERCER_ERROR_OVERLAP, "F");
    kept = mrc_load(&x, 2, 1);
    mrc_store(&x, 2, 1, INFINITY);
    int32_t labels[N];
    assert_fails(context, mercer_model_predict(made, &out, &x), MERCER_ERROR_DATA, "X");
    assert_fails(context, mercer_model_classify(made, labels, &x), MERCER_ERROR_DATA, "X");
    mrc_store(&x, 2, 1, kept);
    for (int64_t i = 0; i < N * C; i++) assert_true(((double *)out.data)[i] == 0);
    free(out.data);
    mercer_model_free(made);
    task_close(&t);
}

/* ---- Sources ------------------------------------------------------------------------------------------------- */

/* One pass in batches of at most `most`: which rows came; each with its own X, Y and weight. */
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
    assert_true(memcmp(first, other, sizeof first) != 0); /* a fresh order each pass */
    read_pass(source, t, labels, -1, 50, other);
    assert_true(memcmp(first, other, sizeof first) != 0); /* the pass that samples are drawn from */
    read_pass(source, t, labels, 0, 33, again);
    assert_memory_equal(first, again, sizeof first); /* the same pass again, cut elsewhere */
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
        assert_succeeds(context, mercer_source_from_matrices(&source, context, &t.x, &t.y, t.weights, 9));
        check_source(&source, &t, NULL);
        assert_succeeds(context, mercer_source_from_labels(&same, context, &t.x, labels, C, t.weights, 9));
        check_source(&same, &t, labels);
        assert_succeeds(context, mercer_source_from_matrices(&different, context, &t.x, &t.y, t.weights, 10));
        int64_t a[N], b[N], c[N];
        read_pass(&source, &t, NULL, 3, 10, a), read_pass(&same, &t, labels, 3, 10, b);
        read_pass(&different, &t, NULL, 3, 10, c);
        assert_memory_equal(a, b, sizeof a);
        assert_true(memcmp(a, c, sizeof a) != 0);
        mercer_source_free(&source), mercer_source_free(&same), mercer_source_free(&different);
        mercer_source_free(&source); /* a released source is empty: nothing happens */
        task_close(&t);
    }
}

/* Rows with gaps between them are read as what they are. */
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
    assert_succeeds(context, mercer_source_from_matrices(&source, context, &wide.x, &wide.y, NULL, 9));
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
    assert_fails(context, mercer_source_from_matrices(&source, context, &x, &bad, NULL, 1), MERCER_ERROR_SHAPE, "Y");
    bad = y, bad.dtype = MERCER_U8;
    assert_fails(context, mercer_source_from_matrices(&source, context, &x, &bad, NULL, 1), MERCER_ERROR_DTYPE, "Y");
    weights[5] = -1;
    assert_fails(context, mercer_source_from_matrices(&source, context, &x, &y, weights, 1), MERCER_ERROR_DATA,
                 "weights");
    weights[5] = NAN;
    assert_fails(context, mercer_source_from_labels(&source, context, &x, labels, 3, weights, 1), MERCER_ERROR_DATA,
                 "weights");
    assert_fails(context, mercer_source_from_labels(&source, context, &x, labels, 0, NULL, 1), MERCER_ERROR_SHAPE,
                 "classes");
    labels[7] = 3;
    assert_fails(context, mercer_source_from_labels(&source, context, &x, labels, 3, NULL, 1), MERCER_ERROR_DATA,
                 "labels");
    labels[7] = -1;
    assert_fails(context, mercer_source_from_labels(&source, context, &x, labels, 3, NULL, 1), MERCER_ERROR_DATA,
                 "labels");
    double kept = mrc_load(&y, 3, 1);
    mrc_store(&y, 3, 1, NAN);
    assert_fails(context, mercer_source_from_matrices(&source, context, &x, &y, NULL, 1), MERCER_ERROR_DATA, "Y");
    mrc_store(&y, 3, 1, kept);
    task_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_keeps_its_own), cmocka_unit_test(test_predict_is_the_product),
        cmocka_unit_test(test_classify_ties),       cmocka_unit_test(test_source_order),
        cmocka_unit_test(test_strided_source),      cmocka_unit_test(test_bad_models),
        cmocka_unit_test(test_bad_sources),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
