/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix views: element access in every dtype, and checks whose messages name the argument. */
#include "support/check.h"

#include "core/matrix.h"
#include "support/data.h"

#include <float.h>

static const mercer_dtype dtypes[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void test_dtypes(void **state)
{
    (void)state;
    const int64_t sizes[DTYPES] = {8, 4, 2, 1};
    const char *const names[DTYPES] = {"f64", "f32", "f16", "u8"};
    for (int i = 0; i < DTYPES; i++) {
        assert_int_equal(mrc_dtype_size(dtypes[i]), sizes[i]);
        assert_string_equal(mrc_dtype_name(dtypes[i]), names[i]);
    }
    assert_int_equal(mrc_dtype_size((mercer_dtype)0), 0);
    assert_int_equal(mrc_dtype_size((mercer_dtype)5), 0);
    assert_string_equal(mrc_dtype_name((mercer_dtype)99), "?");
}

static void test_views_and_elements(void **state)
{
    (void)state;
    for (int t = 0; t < DTYPES; t++) {
        mercer_matrix matrix = data_matrix(5, 3, 7, dtypes[t]);
        for (int64_t i = 0; i < 5; i++)
            for (int64_t j = 0; j < 3; j++) data_store(&matrix, i, j, (double)(10 * i + j)); /* exact in all dtypes */
        assert_int_equal((char *)mrc_row(&matrix, 2) - (char *)matrix.data, 2 * 7 * mrc_dtype_size(dtypes[t]));
        mercer_matrix part = mrc_rows(&matrix, 2, 2);
        assert_int_equal(part.rows, 2);
        assert_int_equal(part.cols, 3);
        assert_int_equal(part.ld, 7);
        assert_true(mrc_load(&part, 1, 2) == 32);
        double row[3];
        float narrow[3];
        mrc_load_row_f64(&matrix, 4, row);
        mrc_load_row_f32(&matrix, 4, narrow);
        for (int64_t j = 0; j < 3; j++) {
            assert_true(row[j] == (double)(40 + j));
            assert_true(narrow[j] == (float)(40 + j));
            assert_true(mrc_load(&matrix, 4, j) == (double)(40 + j));
        }
        free(matrix.data);
    }
}

static void test_store_rounds(void **state)
{
    (void)state;
    double wide[2] = {0, 7};
    float narrow[2] = {0, 7};
    mercer_matrix f64 = mercer_matrix_view(wide, 1, 2, MERCER_F64);
    mercer_matrix f32 = mercer_matrix_view(narrow, 1, 2, MERCER_F32);
    mrc_store(&f64, 0, 0, 0.1);
    mrc_store(&f32, 0, 0, 0.1);
    assert_true(wide[0] == 0.1 && wide[1] == 7);
    assert_true(narrow[0] == 0.1f && narrow[1] == 7);
    assert_int_equal(f64.ld, 2);
    assert_int_equal(f64.memory, MRC_HOST);
    assert_int_equal(f64.reserved[0] | f64.reserved[1], 0);
}

/* Rows of doubles converted to every type: rounded, and clamped to the range of bytes. */
static void test_store_rows(void **state)
{
    (void)state;
    const double values[4] = {-3, 1.3, 254.7, 1e4};
    const double wanted[DTYPES][4] = {{-3, 1.3, 254.7, 1e4},
                                      {-3, (double)1.3f, (double)254.7f, 1e4},
                                      {-3, 1.2998046875, 254.75, 1e4},
                                      {0, 1, 255, 255}};
    for (int t = 0; t < DTYPES; t++) {
        mercer_matrix a = data_matrix(2, 4, 0, dtypes[t]);
        double back[4];
        float narrow[4];
        mrc_store_row_f64(&a, 1, values);
        mrc_load_row_f64(&a, 1, back);
        mrc_load_row_f32(&a, 1, narrow);
        for (int j = 0; j < 4; j++) {
            assert_true(back[j] == wanted[t][j] && narrow[j] == (float)wanted[t][j]);
            assert_true(mrc_load(&a, 1, j) == wanted[t][j]);
        }
        free(a.data);
    }
    mercer_matrix none = {.dtype = (mercer_dtype)9};
    assert_true(mrc_load(&none, 0, 0) == 0);
}

/* Checks of sample weights and of class labels. */
static void test_weights_and_classes(void **state)
{
    (void)state;
    const double weights[] = {0, 1, -1, (double)NAN, (double)INFINITY};
    const int32_t labels[] = {0, 2, -1, 3};
    mercer_context context = {.threads = 1};
    assert_succeeds(&context, mrc_check_weights(&context, NULL, 9));
    assert_succeeds(&context, mrc_check_weights(&context, weights, 2));
    for (int i = 2; i < 5; i++)
        assert_fails(&context, mrc_check_weights(&context, weights + i, 1), MERCER_ERROR_DATA, "weights: element 0");
    assert_succeeds(&context, mrc_check_classes(&context, NULL, 0, 1));
    assert_succeeds(&context, mrc_check_classes(&context, labels, 2, 3));
    assert_fails(&context, mrc_check_classes(&context, NULL, 1, 3), MERCER_ERROR_ARGUMENT, "labels is NULL");
    assert_fails(&context, mrc_check_classes(&context, labels, 2, 0), MERCER_ERROR_SHAPE, "classes is 0");
    assert_fails(&context, mrc_check_classes(&context, labels, 3, 3), MERCER_ERROR_DATA, "element 2 (from 0) is -1");
    assert_fails(&context, mrc_check_classes(&context, labels + 3, 1, 3), MERCER_ERROR_DATA, "classes are 0 .. 2");
}

static void test_good_matrices(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    float data[12] = {0};
    mercer_matrix m = mrc_view(data, 3, 4, MERCER_F32);
    assert_succeeds(&context, mrc_check_matrix(&context, "X", &m, MRC_ACCEPT_ANY));
    m = mrc_view(NULL, 0, 4, MERCER_F32); /* nothing is read: data may be NULL */
    assert_succeeds(&context, mrc_check_matrix(&context, "X", &m, MRC_ACCEPT_ANY));
    m = mrc_view(NULL, INT64_MAX, 0, MERCER_F64);
    assert_succeeds(&context, mrc_check_matrix(&context, "X", &m, MRC_ACCEPT_ANY));
    m = mrc_view(data, 1, 4, MERCER_F32);
    m.ld = INT64_MAX; /* never multiplied, because there is no second row */
    assert_succeeds(&context, mrc_check_matrix(&context, "X", &m, MRC_ACCEPT_ANY));
}

static void expect(const mercer_matrix *matrix, int accept, mercer_status status, const char *part)
{
    mercer_context context = {.threads = 1};
    assert_fails(&context, mrc_check_matrix(&context, "Argument7", matrix, accept), status, part);
    assert_non_null(strstr(context.error, "Argument7"));
}

static void test_bad_matrices(void **state)
{
    (void)state;
    float data[12] = {0};
    const mercer_matrix good = mrc_view(data, 3, 4, MERCER_F32);
    mercer_matrix m;
    expect(NULL, MRC_ACCEPT_ANY, MERCER_ERROR_ARGUMENT, "NULL");
    m = good, m.data = NULL, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_ARGUMENT, "data is NULL");
    m = good, m.rows = -1, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "negative");
    m = good, m.cols = -4, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "-4");
    m = good, m.rows = INT64_MIN, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "negative");
    m = good, m.ld = 3, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "leading dimension 3");
    m = good, m.ld = -4, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "leading dimension");
    m = good, m.dtype = (mercer_dtype)0, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_DTYPE, "f64, f32, f16, u8");
    m = good, m.dtype = (mercer_dtype)77, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_DTYPE, "77");
    m = good, m.dtype = (mercer_dtype)-1, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_DTYPE, "-1");
    m = good, m.dtype = MERCER_F16, expect(&m, MRC_ACCEPT_REAL, MERCER_ERROR_DTYPE, "f32 or f64");
    m = good, m.dtype = MERCER_U8, expect(&m, MRC_ACCEPT_REAL, MERCER_ERROR_DTYPE, "u8");
    m = good, expect(&m, MRC_ACCEPT_F64, MERCER_ERROR_DTYPE, "use f64");
    m = good, m.memory = 3, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_UNSUPPORTED, "memory kind 3");
    m = good, m.reserved[0] = 1, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_ARGUMENT, "reserved");
    m = good, m.reserved[1] = -1, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_ARGUMENT, "reserved");
    m = good, m.rows = INT64_C(1) << 62, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "address space");
    m = good, m.cols = m.ld = INT64_C(1) << 62, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "address space");
    m = good, m.cols = m.ld = INT64_MAX, m.rows = 1, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "address space");
    m = good, m.ld = INT64_MAX / 2, expect(&m, MRC_ACCEPT_ANY, MERCER_ERROR_SHAPE, "address space");
}

static void test_size(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    float data[12];
    mercer_matrix m = mrc_view(data, 3, 4, MERCER_F32);
    assert_succeeds(&context, mrc_check_size(&context, "W", &m, 3, 4));
    assert_fails(&context, mrc_check_size(&context, "W", &m, 4, 4), MERCER_ERROR_SHAPE, "3 x 4");
    assert_fails(&context, mrc_check_size(&context, "W", &m, 3, 5), MERCER_ERROR_SHAPE, "3 x 5");
}

/* ---- Overlap ------------------------------------------------------------------------------------------------- */

static mercer_status apart(mercer_context *context, const mercer_matrix *out, const mercer_matrix *in)
{
    mercer_status forth = mrc_check_apart(context, "Y", out, "X", in);
    mercer_status back = mrc_check_apart(context, "Y", in, "X", out);
    assert_int_equal(forth, back); /* overlap is symmetric */
    return forth;
}

static void test_overlap_of_blocks(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    double data[64];
    mercer_matrix a = mrc_view(data, 4, 4, MERCER_F64), b = mrc_view(data + 16, 4, 4, MERCER_F64);
    assert_succeeds(&context, apart(&context, &a, &b)); /* adjacent blocks do not overlap */
    b.data = data + 15;
    assert_fails(&context, apart(&context, &a, &b), MERCER_ERROR_OVERLAP, "overlaps");
    assert_fails(&context, apart(&context, &a, &a), MERCER_ERROR_OVERLAP, "Y overlaps X");
    b = mrc_view((char *)data + 1, 2, 2, MERCER_U8); /* inside the other, with another type */
    assert_fails(&context, apart(&context, &a, &b), MERCER_ERROR_OVERLAP, "overlaps");
    b = mrc_view(data, 0, 4, MERCER_F64);
    assert_succeeds(&context, apart(&context, &a, &b)); /* an empty matrix overlaps nothing */
    b = mrc_view(data, 4, 0, MERCER_F64);
    assert_succeeds(&context, apart(&context, &a, &b));
}

static void test_overlap_of_columns(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    double data[80];
    mercer_matrix left = mrc_view(data, 6, 4, MERCER_F64), right = mrc_view(data + 4, 6, 6, MERCER_F64);
    left.ld = right.ld = 10;
    assert_succeeds(&context, apart(&context, &left, &right)); /* columns 0-3 and 4-9 of one matrix */
    right.data = data + 3;
    assert_fails(&context, apart(&context, &left, &right), MERCER_ERROR_OVERLAP, "overlaps");
    right = mrc_view(data + 4, 6, 6, MERCER_F64), right.ld = 10;
    right.data = data + 24; /* columns 4-9, two rows further down */
    right.rows = 4;
    assert_succeeds(&context, apart(&context, &left, &right));
    right.data = data + 25; /* columns 5-9 and 0: wraps into the next row */
    assert_fails(&context, apart(&context, &left, &right), MERCER_ERROR_OVERLAP, "overlaps");
    right.data = data + 4, right.ld = 11; /* with another leading dimension, rows drift into the left columns */
    assert_fails(&context, apart(&context, &left, &right), MERCER_ERROR_OVERLAP, "overlaps");
    mercer_matrix floats = mrc_view(data + 4, 6, 12, MERCER_F32);
    floats.ld = 20; /* the same stride in bytes */
    assert_succeeds(&context, apart(&context, &left, &floats));
}

/* One row with an enormous leading dimension passes mrc_check_matrix, so it must not overflow here. */
static void test_overlap_with_huge_ld(void **state)
{
    (void)state;
    mercer_context context = {.threads = 1};
    double data[8];
    mercer_matrix a = mrc_view(data, 1, 8, MERCER_F64), b = mrc_view(data, 1, 4, MERCER_F64);
    a.ld = INT64_MAX, b.ld = INT64_C(1) << 61;
    assert_fails(&context, apart(&context, &a, &b), MERCER_ERROR_OVERLAP, "overlaps");
    b.ld = INT64_MAX;
    assert_fails(&context, apart(&context, &a, &b), MERCER_ERROR_OVERLAP, "overlaps");
}

/* ---- Finite values ------------------------------------------------------------------------------------------- */

static void poison(const mercer_matrix *matrix, int64_t i, int64_t j, bool infinite)
{
    if (matrix->dtype == MERCER_F16)
        ((uint16_t *)mrc_row(matrix, i))[j] = infinite ? 0xfc00 : 0x7e01;
    else
        data_store(matrix, i, j, infinite ? -INFINITY : NAN);
}

static void test_finite_finds_the_first(void **state)
{
    (void)state;
    mercer_context context = {.threads = 3};
    for (int t = 0; t < 3; t++) { /* the floating-point dtypes */
        const int64_t places[][2] = {{0, 0}, {0, 6}, {1, 0}, {63, 3}, {64, 5}, {199, 6}};
        for (size_t p = 0; p < 2 * sizeof places / sizeof *places; p++) {
            int64_t i = places[p / 2][0], j = places[p / 2][1];
            bool infinite = p % 2;
            mercer_matrix matrix = data_matrix(200, 7, 9, dtypes[t]);
            for (int64_t k = 0; k < 200; k++) poison(&matrix, k, 7, true); /* padding between rows is not checked */
            assert_succeeds(&context, mrc_check_finite(&context, "X", &matrix, NULL));
            poison(&matrix, i, j, infinite);
            poison(&matrix, 199, 6, infinite); /* a non-finite element in a later row */
            char part[96];
            snprintf(part, sizeof part, "X: *row %d, column %d *%s", (int)i, (int)j, infinite ? "infinite" : "NaN");
            assert_fails(&context, mrc_check_finite(&context, "X", &matrix, NULL), MERCER_ERROR_DATA, part);
            free(matrix.data);
        }
    }
}

static void test_finite_reports_the_largest(void **state)
{
    (void)state;
    mercer_context context = {.threads = 2};
    const double tops[] = {-DBL_MAX, -(double)FLT_MAX, -65504};
    for (int t = 0; t < 3; t++) {
        mercer_matrix matrix = data_matrix(700, 101, 0, dtypes[t]); /* large enough for several threads */
        data_fill_normal(&matrix, (mrc_rng){1, 2}, 0, 1);
        data_store(&matrix, 456, 78, tops[t]); /* the largest finite magnitude passes */
        double largest = -1;
        assert_succeeds(&context, mrc_check_finite(&context, "X", &matrix, &largest));
        assert_true(largest == -tops[t]);
        free(matrix.data);
    }
    mercer_matrix bytes = data_matrix(3, 3, 0, MERCER_U8);
    double largest = -1;
    assert_succeeds(&context, mrc_check_finite(&context, "X", &bytes, &largest));
    assert_true(largest >= 0 && largest <= 255);
    free(bytes.data);
    mercer_matrix empty = mrc_view(NULL, 0, 5, MERCER_F32);
    assert_succeeds(&context, mrc_check_finite(&context, "X", &empty, &largest));
    assert_true(largest == 0);
    empty = mrc_view(NULL, 5, 0, MERCER_F64);
    assert_succeeds(&context, mrc_check_finite(&context, "X", &empty, &largest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_views_and_elements),
        cmocka_unit_test(test_store_rounds),
        cmocka_unit_test(test_store_rows),
        cmocka_unit_test(test_weights_and_classes),
        cmocka_unit_test(test_good_matrices),
        cmocka_unit_test(test_bad_matrices),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_overlap_of_blocks),
        cmocka_unit_test(test_overlap_of_columns),
        cmocka_unit_test(test_overlap_with_huge_ld),
        cmocka_unit_test(test_finite_finds_the_first),
        cmocka_unit_test(test_finite_reports_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
