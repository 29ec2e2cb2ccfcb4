/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid input to the public kernel matrix calls: the right status, a message that names the argument, untouched
   outputs. */
#include "support/check.h"

#include "support/data.h"

#include "kernels/kernel.h"

#include <float.h>

enum { M = 4, P = 3, D = 5, C = 2, MARK = 0x3c };

/* Arguments of a valid call. Each test makes one of them invalid. */
typedef struct fixture {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix X, Z, W, K, Y, diagonal;
    float x[M * D], z[P * D], w[P * C];
    unsigned char out[256]; /* output buffer; K, Y and the diagonal all point here, and each call writes one of them */
} fixture;

static void reset(fixture *f, const char *spec)
{
    mercer_context *context = f->context;
    memset(f, 0, sizeof *f);
    f->context = context;
    assert_succeeds(context, mercer_kernel_parse(&f->kernel, context, spec));
    f->X = mercer_matrix_view(f->x, M, D, MERCER_F32);
    f->Z = mercer_matrix_view(f->z, P, D, MERCER_F32);
    f->W = mercer_matrix_view(f->w, P, C, MERCER_F32);
    f->K = mercer_matrix_view(f->out, M, P, MERCER_F32);
    f->Y = mercer_matrix_view(f->out, M, C, MERCER_F32);
    f->diagonal = mercer_matrix_view(f->out, M, 1, MERCER_F32);
    data_fill_normal(&f->X, (mrc_rng){1, 1}, 1, 1);
    data_fill_normal(&f->Z, (mrc_rng){1, 2}, 1, 1);
    data_fill_normal(&f->W, (mrc_rng){1, 3}, 0, 1);
    memset(f->out, MARK, sizeof f->out);
}

enum { EVAL = 1, MATMUL = 2, DIAGONAL = 4, ALL = 7 };

static void untouched(const fixture *f, const char *what)
{
    for (size_t i = 0; i < sizeof f->out; i++)
        assert_that(f->out[i] == MARK, "%s: byte %d of the output was written", what, (int)i);
}

/* Check that each call in `which` fails with `status` and a message that contains `part`, and writes nothing. */
static void refuse(fixture *f, int which, mercer_status status, const char *part)
{
    if (which & EVAL)
        assert_fails(f->context, mercer_kernel_eval(f->context, &f->K, &f->kernel, &f->X, &f->Z), status, part);
    untouched(f, "eval");
    if (which & MATMUL)
        assert_fails(f->context, mercer_kernel_matmul(f->context, &f->Y, &f->kernel, &f->X, &f->Z, &f->W), status,
                     part);
    untouched(f, "matmul");
    if (which & DIAGONAL)
        assert_fails(f->context, mercer_kernel_diagonal(f->context, &f->diagonal, &f->kernel, &f->X), status, part);
    untouched(f, "diagonal");
}

static void test_the_good_call(void **state)
{
    fixture *f = *state;
    reset(f, "gaussian:bandwidth=2");
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &f->K, &f->kernel, &f->X, &f->Z));
    assert_succeeds(f->context, mercer_kernel_matmul(f->context, &f->Y, &f->kernel, &f->X, &f->Z, &f->W));
    assert_succeeds(f->context, mercer_kernel_diagonal(f->context, &f->diagonal, &f->kernel, &f->X));
    for (int i = 0; i < M; i++) assert_true(mrc_load(&f->diagonal, i, 0) == 1);
    assert_int_equal(f->out[M * P * sizeof(float)], MARK);
}

static void test_null(void **state)
{
    fixture *f = *state;
    mercer_context *c = f->context;
    reset(f, "gaussian:bandwidth=2");
    assert_fails(NULL, mercer_kernel_eval(NULL, &f->K, &f->kernel, &f->X, &f->Z), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(NULL, mercer_kernel_matmul(NULL, &f->Y, &f->kernel, &f->X, &f->Z, &f->W), MERCER_ERROR_ARGUMENT,
                 "context");
    assert_fails(NULL, mercer_kernel_diagonal(NULL, &f->diagonal, &f->kernel, &f->X), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(c, mercer_kernel_eval(c, NULL, &f->kernel, &f->X, &f->Z), MERCER_ERROR_ARGUMENT, "K is NULL");
    assert_fails(c, mercer_kernel_eval(c, &f->K, NULL, &f->X, &f->Z), MERCER_ERROR_ARGUMENT, "kernel is NULL");
    assert_fails(c, mercer_kernel_eval(c, &f->K, &f->kernel, NULL, &f->Z), MERCER_ERROR_ARGUMENT, "X is NULL");
    assert_fails(c, mercer_kernel_eval(c, &f->K, &f->kernel, &f->X, NULL), MERCER_ERROR_ARGUMENT, "Z is NULL");
    assert_fails(c, mercer_kernel_matmul(c, NULL, &f->kernel, &f->X, &f->Z, &f->W), MERCER_ERROR_ARGUMENT, "Y is NULL");
    assert_fails(c, mercer_kernel_matmul(c, &f->Y, NULL, &f->X, &f->Z, &f->W), MERCER_ERROR_ARGUMENT, "kernel is NULL");
    assert_fails(c, mercer_kernel_matmul(c, &f->Y, &f->kernel, NULL, &f->Z, &f->W), MERCER_ERROR_ARGUMENT, "X is NULL");
    assert_fails(c, mercer_kernel_matmul(c, &f->Y, &f->kernel, &f->X, NULL, &f->W), MERCER_ERROR_ARGUMENT, "Z is NULL");
    assert_fails(c, mercer_kernel_matmul(c, &f->Y, &f->kernel, &f->X, &f->Z, NULL), MERCER_ERROR_ARGUMENT, "W is NULL");
    assert_fails(c, mercer_kernel_diagonal(c, NULL, &f->kernel, &f->X), MERCER_ERROR_ARGUMENT, "D is NULL");
    assert_fails(c, mercer_kernel_diagonal(c, &f->diagonal, NULL, &f->X), MERCER_ERROR_ARGUMENT, "kernel is NULL");
    assert_fails(c, mercer_kernel_diagonal(c, &f->diagonal, &f->kernel, NULL), MERCER_ERROR_ARGUMENT, "X is NULL");
    f->X.data = NULL, refuse(f, ALL, MERCER_ERROR_ARGUMENT, "X: data is NULL");
    reset(f, "linear"), f->Z.data = NULL, refuse(f, EVAL | MATMUL, MERCER_ERROR_ARGUMENT, "Z: data is NULL");
    reset(f, "linear"), f->W.data = NULL, refuse(f, MATMUL, MERCER_ERROR_ARGUMENT, "W: data is NULL");
    reset(f, "linear"), f->K.data = f->Y.data = f->diagonal.data = NULL;
    refuse(f, ALL, MERCER_ERROR_ARGUMENT, "data is NULL");
    reset(f, "linear"), f->kernel = (mercer_kernel){0}, refuse(f, ALL, MERCER_ERROR_KERNEL, "kernel");
    reset(f, "gaussian:bandwidth=2"), f->kernel.bandwidth = -1, refuse(f, ALL, MERCER_ERROR_KERNEL, "bandwidth");
}

static void test_shapes(void **state)
{
    fixture *f = *state;
    const char *spec = "laplace:bandwidth=1";
    reset(f, spec), f->X.rows = -1, refuse(f, ALL, MERCER_ERROR_SHAPE, "X");
    reset(f, spec), f->Z.cols = -5, refuse(f, EVAL | MATMUL, MERCER_ERROR_SHAPE, "Z");
    reset(f, spec), f->W.rows = -2, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "W");
    reset(f, spec), f->X.ld = D - 1, refuse(f, ALL, MERCER_ERROR_SHAPE, "X: leading dimension");
    reset(f, spec), f->Z.ld = 0, refuse(f, EVAL | MATMUL, MERCER_ERROR_SHAPE, "Z: leading dimension");
    reset(f, spec), f->K.ld = P - 1, refuse(f, EVAL, MERCER_ERROR_SHAPE, "K: leading dimension");
    reset(f, spec), f->Y.ld = -C, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "Y: leading dimension");
    reset(f, spec), f->X.rows = INT64_C(1) << 62, refuse(f, ALL, MERCER_ERROR_SHAPE, "X");
    reset(f, spec), f->Z.rows = INT64_C(1) << 62, refuse(f, EVAL | MATMUL, MERCER_ERROR_SHAPE, "Z");
    reset(f, spec), f->Y.rows = INT64_C(1) << 62, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "Y");
    reset(f, spec), f->K.cols = f->K.ld = INT64_MAX, refuse(f, EVAL, MERCER_ERROR_SHAPE, "K");
    reset(f, spec), f->Z.cols = D - 1, refuse(f, EVAL | MATMUL, MERCER_ERROR_SHAPE, "Z has 4");
    reset(f, spec), f->W.rows = P - 1, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "W has 2 rows");
    reset(f, spec), f->K.rows = M - 1, refuse(f, EVAL, MERCER_ERROR_SHAPE, "3 x 3");
    reset(f, spec), f->K.cols = f->K.ld = P + 1, refuse(f, EVAL, MERCER_ERROR_SHAPE, "K is 4 x 4");
    reset(f, spec), f->Y.rows = M + 1, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "Y is 5 x 2");
    reset(f, spec), f->Y.cols = 1, refuse(f, MATMUL, MERCER_ERROR_SHAPE, "Y is 4 x 1");
    reset(f, spec), f->diagonal.cols = f->diagonal.ld = 2, refuse(f, DIAGONAL, MERCER_ERROR_SHAPE, "D is 4 x 2");
    reset(f, spec), f->diagonal.rows = 1, refuse(f, DIAGONAL, MERCER_ERROR_SHAPE, "D is 1 x 1");
}

/* Sizes whose products overflow int64_t, with buffers that are far too small: the calls must reject these sizes before
   they compute. */
static void test_enormous_empty_matrices(void **state)
{
    fixture *f = *state;
    const int64_t huge = INT64_MAX;
    reset(f, "laplace:bandwidth=1");
    f->X.cols = f->Z.cols = 0; /* without features no data is needed, so any number of rows is valid */
    f->X.rows = f->K.rows = huge;
    refuse(f, EVAL, MERCER_ERROR_SHAPE, "K");
    f->Y.rows = huge;
    refuse(f, MATMUL, MERCER_ERROR_SHAPE, "Y");
    f->diagonal.rows = huge;
    refuse(f, DIAGONAL, MERCER_ERROR_SHAPE, "D");
}

static void test_dtypes(void **state)
{
    fixture *f = *state;
    const char *spec = "laplace:bandwidth=1";
    reset(f, spec), f->X.dtype = (mercer_dtype)9, refuse(f, ALL, MERCER_ERROR_DTYPE, "X: dtype 9");
    reset(f, spec), f->Z.dtype = (mercer_dtype)0, refuse(f, EVAL | MATMUL, MERCER_ERROR_DTYPE, "Z: dtype 0");
    reset(f, spec), f->W.dtype = MERCER_F16, refuse(f, MATMUL, MERCER_ERROR_DTYPE, "W: dtype f16");
    reset(f, spec), f->K.dtype = MERCER_U8, refuse(f, EVAL, MERCER_ERROR_DTYPE, "K: dtype u8");
    reset(f, spec), f->Y.dtype = MERCER_F16, refuse(f, MATMUL, MERCER_ERROR_DTYPE, "f32 or f64");
    reset(f, spec), f->diagonal.dtype = MERCER_U8, refuse(f, DIAGONAL, MERCER_ERROR_DTYPE, "D: dtype u8");
    reset(f, spec), f->X.memory = 1, refuse(f, ALL, MERCER_ERROR_UNSUPPORTED, "X: memory kind");
    reset(f, spec), f->X.reserved[1] = 5, refuse(f, ALL, MERCER_ERROR_ARGUMENT, "X: reserved");
}

static void test_overlap(void **state)
{
    fixture *f = *state;
    reset(f, "laplace:bandwidth=1");
    f->X.data = f->out; /* inputs inside the output buffer; its MARK bytes are finite as floats */
    refuse(f, EVAL, MERCER_ERROR_OVERLAP, "K overlaps X");
    refuse(f, MATMUL, MERCER_ERROR_OVERLAP, "Y overlaps X");
    refuse(f, DIAGONAL, MERCER_ERROR_OVERLAP, "D overlaps X");
    reset(f, "laplace:bandwidth=1"), f->Z.data = f->out + 20;
    refuse(f, EVAL, MERCER_ERROR_OVERLAP, "K overlaps Z");
    refuse(f, MATMUL, MERCER_ERROR_OVERLAP, "Y overlaps Z");
    reset(f, "laplace:bandwidth=1"), f->W.data = f->out + 28; /* overlaps by one element */
    refuse(f, MATMUL, MERCER_ERROR_OVERLAP, "Y overlaps W");
    reset(f, "laplace:bandwidth=1"), f->X.data = f->Z.data; /* inputs may share memory */
    f->X.rows = f->K.rows = P;
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &f->K, &f->kernel, &f->X, &f->Z));
}

static void test_data(void **state)
{
    fixture *f = *state;
    const char *spec = "laplace:bandwidth=1";
    reset(f, spec), f->x[7] = NAN, refuse(f, ALL, MERCER_ERROR_DATA, "X: *row 1, column 2*NaN");
    reset(f, spec), f->x[0] = INFINITY, refuse(f, ALL, MERCER_ERROR_DATA, "X: *row 0, column 0*infinite");
    reset(f, spec), f->z[14] = -INFINITY, refuse(f, EVAL | MATMUL, MERCER_ERROR_DATA, "Z: *row 2, column 4");
    reset(f, spec), f->w[3] = NAN, refuse(f, MATMUL, MERCER_ERROR_DATA, "W: *row 1, column 1");
    double wide[M * D] = {0};
    wide[19] = NAN;
    reset(f, spec), f->X = mercer_matrix_view(wide, M, D, MERCER_F64);
    refuse(f, ALL, MERCER_ERROR_DATA, "X: *row 3, column 4");
    uint16_t halves[M * D] = {0};
    halves[5] = 0x7c00;
    reset(f, spec), f->X = mercer_matrix_view(halves, M, D, MERCER_F16);
    refuse(f, ALL, MERCER_ERROR_DATA, "X: *row 1, column 0");
}

/* Finite data whose inner products overflow are an error, not a result of infinity or NaN. */
static void test_overflowing_products(void **state)
{
    fixture *f = *state;
    const char *const specs[] = {"linear", "polynomial", "ntk:depth=2", "nngp:depth=1"};
    for (int i = 0; i < 4; i++) {
        reset(f, specs[i]);
        for (int k = 0; k < M * D; k++) f->x[k] = 1e19f; /* one square fits into float, the sum of five overflows */
        for (int k = 0; k < P * D; k++) f->z[k] = 1e19f;
        refuse(f, ALL, MERCER_ERROR_DATA, "overflow");
        assert_non_null(strstr(mercer_last_error(f->context), "X"));
    }
    reset(f, "polynomial:degree=20"); /* the power overflows, the inner product does not */
    for (int k = 0; k < M * D; k++) f->x[k] = 1e3f;
    refuse(f, ALL, MERCER_ERROR_DATA, "overflow");
}

/* In double such data are valid if the result is finite; a returned value must be finite and correct. */
static void test_large_products_in_double(void **state)
{
    fixture *f = *state;
    const char *const specs[] = {"linear", "nngp:depth=1", "ntk:depth=1"};
    const double sizes[] = {1e19, 1e90, 1e150};
    for (int i = 0; i < 9; i++) {
        double x[2] = {sizes[i % 3], 0}, z[2] = {sizes[i % 3], sizes[i % 3]}, k[1] = {-1};
        mercer_matrix X = mercer_matrix_view(x, 1, 2, MERCER_F64), Z = mercer_matrix_view(z, 1, 2, MERCER_F64);
        mercer_matrix K = mercer_matrix_view(k, 1, 1, MERCER_F64);
        reset(f, specs[i / 3]);
        mercer_status status = mercer_kernel_eval(f->context, &K, &f->kernel, &X, &Z);
        if (status == MERCER_ERROR_DATA) {
            assert_true(k[0] == -1);
            continue;
        }
        assert_succeeds(f->context, status);
        /* The kernels are homogeneous of degree 2, so the expected value follows from the same rows at size 1. */
        double small_x[2] = {1, 0}, small_z[2] = {1, 1}, value;
        assert_true(mrc_kernel_reference(&f->kernel, 2, small_x, small_z, &value));
        value *= sizes[i % 3] * sizes[i % 3];
        assert_that(fabs(k[0] - value) <= 64 * DBL_EPSILON * fabs(value), "%s at %g: %g, wanted %g", specs[i / 3],
                    sizes[i % 3], k[0], value);
    }
}

static int fail_late(void *user, const mercer_kernel_block *block)
{
    (void)block;
    return ++*(int *)user >= 2; /* the callback fails at the second block */
}

static int fail_now(void *user, const mercer_kernel_block *block)
{
    (void)user, (void)block;
    return -1;
}

static void test_callbacks_that_fail(void **state)
{
    fixture *f = *state;
    for (int on = MERCER_KERNEL_CALLBACK_DISTANCE; on <= MERCER_KERNEL_CALLBACK_INNER; on++) {
        reset(f, "linear");
        assert_succeeds(f->context,
                        mercer_kernel_from_callback(&f->kernel, f->context, (mercer_kernel_id)on, fail_now, NULL));
        refuse(f, ALL, MERCER_ERROR_CALLBACK, "callback");
        int calls = 0; /* success if all rows fit into one block; else the callback's error */
        f->kernel.callback = fail_late, f->kernel.callback_user = &calls;
        mercer_status status = mercer_kernel_diagonal(f->context, &f->diagonal, &f->kernel, &f->X);
        assert_int_equal(status, calls >= 2 ? MERCER_ERROR_CALLBACK : MERCER_OK);
    }
    mercer_kernel kernel, before;
    memset(&kernel, 0x5a, sizeof kernel);
    memset(&before, 0x5a, sizeof before);
    assert_fails(f->context,
                 mercer_kernel_from_callback(NULL, f->context, MERCER_KERNEL_CALLBACK_INNER, fail_now, NULL),
                 MERCER_ERROR_ARGUMENT, "out");
    assert_fails(f->context, mercer_kernel_from_callback(&kernel, f->context, MERCER_KERNEL_CALLBACK_INNER, NULL, NULL),
                 MERCER_ERROR_ARGUMENT, "callback");
    assert_fails(f->context, mercer_kernel_from_callback(&kernel, f->context, (mercer_kernel_id)1, fail_now, NULL),
                 MERCER_ERROR_ARGUMENT, "on");
    assert_memory_equal(&kernel, &before, sizeof kernel);
}

/* After a failed call the context works as before. */
static void test_context_survives(void **state)
{
    fixture *f = *state;
    reset(f, "gaussian:bandwidth=2");
    float expected[M * P], after[M * P];
    mercer_matrix K = mercer_matrix_view(expected, M, P, MERCER_F32);
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &K, &f->kernel, &f->X, &f->Z));
    f->X.rows = -1, refuse(f, ALL, MERCER_ERROR_SHAPE, "X");
    f->X.rows = M;
    K.data = after;
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &K, &f->kernel, &f->X, &f->Z));
    assert_memory_equal(expected, after, sizeof after);
}

static void test_empty_sizes(void **state)
{
    fixture *f = *state;
    reset(f, "gaussian:bandwidth=2");
    f->X.rows = f->K.rows = f->Y.rows = f->diagonal.rows = 0;
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &f->K, &f->kernel, &f->X, &f->Z));
    assert_succeeds(f->context, mercer_kernel_matmul(f->context, &f->Y, &f->kernel, &f->X, &f->Z, &f->W));
    assert_succeeds(f->context, mercer_kernel_diagonal(f->context, &f->diagonal, &f->kernel, &f->X));
    untouched(f, "no rows");
    reset(f, "gaussian:bandwidth=2"); /* no centers: Y becomes 0 */
    f->Z.rows = f->W.rows = 0;
    assert_succeeds(f->context, mercer_kernel_matmul(f->context, &f->Y, &f->kernel, &f->X, &f->Z, &f->W));
    for (int i = 0; i < M * C; i++) assert_true(((float *)f->out)[i] == 0);
    reset(f, "gaussian:bandwidth=2"); /* no features: all rows are equal, so K is 1 */
    f->X.cols = f->Z.cols = 0;
    assert_succeeds(f->context, mercer_kernel_eval(f->context, &f->K, &f->kernel, &f->X, &f->Z));
    for (int i = 0; i < M * P; i++) assert_true(((float *)f->out)[i] == 1);
}

static int make_fixture(void **state, const char *backend)
{
    fixture *f = calloc(1, sizeof *f);
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.backend = backend;
    *state = f;
    return !f || mercer_context_create(&f->context, &options) != MERCER_OK;
}

static int make_cpu(void **state)
{
    return make_fixture(state, "cpu");
}

static int make_reference(void **state)
{
    return make_fixture(state, "reference");
}

static int free_fixture(void **state)
{
    fixture *f = *state;
    mercer_context_free(f->context);
    free(f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_good_call),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_enormous_empty_matrices),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_overflowing_products),
        cmocka_unit_test(test_large_products_in_double),
        cmocka_unit_test(test_callbacks_that_fail),
        cmocka_unit_test(test_context_survives),
        cmocka_unit_test(test_empty_sizes),
    };
    int failed = cmocka_run_group_tests_name("api on cpu", tests, make_cpu, free_fixture);
    return failed + cmocka_run_group_tests_name("api on reference", tests, make_reference, free_fixture);
}
