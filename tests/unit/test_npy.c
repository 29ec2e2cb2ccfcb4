/* SPDX-License-Identifier: BSD-3-Clause */
/* NPY files: every type, order and version is read; damaged, truncated and inconsistent ones are refused. */
#include "support/datasets.h"

#include "core/numbers/half.h"

#include <math.h>

static const double numbers[6] = {1, 2, 3, 4, 5, 250};

/* ---- Reading ------------------------------------------------------------------------------------------------- */

static void test_mapped_types(void **state)
{
    (void)state;
    float f4[6];
    uint16_t f2[6];
    uint8_t u1[6];
    for (int i = 0; i < 6; i++) {
        f4[i] = (float)numbers[i], u1[i] = (uint8_t)numbers[i];
        f2[i] = mrc_half_from_float((float)numbers[i]);
    }
    struct {
        const char *descr;
        const void *data;
        size_t count;
        mercer_dtype dtype;
    } cases[] = {{"<f8", numbers, 48, MERCER_F64}, {"<f4", f4, 24, MERCER_F32}, {"=f4", f4, 24, MERCER_F32},
                 {"<f2", f2, 12, MERCER_F16},      {"|u1", u1, 6, MERCER_U8},   {">u1", u1, 6, MERCER_U8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset *data =
            open_data(plain_file("x.npy", cases[i].descr, false, "3, 2", cases[i].data, cases[i].count), NULL);
        mercer_dataset_info info = about(data);
        assert_samples(data, 3, 2, numbers);
        assert_int_equal(info.dtype, cases[i].dtype);
        assert_int_equal(info.mapped, 1);
        assert_int_equal(info.bytes, (int64_t)cases[i].count);
        assert_int_equal(info.task, MERCER_TASK_UNLABELED);
        assert_int_equal(info.outputs, 0);
        assert_string_equal(info.format, "npy");
        assert_null(info.labels);
        mercer_dataset_free(data);
    }
}

static void reverse(void *data, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char *element = (unsigned char *)data + i * size, saved = element[a];
            element[a] = element[b], element[b] = saved;
        }
}

static void test_converted_types(void **state)
{
    (void)state;
    int8_t i1[4] = {-128, 0, 1, 127};
    int16_t i2[4] = {-32768, 0, 1, 32767};
    uint16_t u2[4] = {0, 1, 2, 65535};
    int32_t i4[4] = {-16777216, 0, 1, 16777216}, large4[4] = {-2147483647 - 1, 0, 1, 16777217};
    uint32_t u4[4] = {0, 1, 2, 4294967295u};
    int64_t i8[4] = {-5, 0, 1, 4000}, large8[4] = {-9007199254740991, 0, 1, 9007199254740991};
    uint64_t u8[4] = {0, 1, 2, 4000};
    uint8_t b1[4] = {0, 1, 1, 0};
    struct {
        const char *descr;
        void *data;
        size_t size;
        mercer_dtype dtype;
        double expected[4];
    } cases[] = {{"|i1", i1, 1, MERCER_F32, {-128, 0, 1, 127}},
                 {"<i2", i2, 2, MERCER_F32, {-32768, 0, 1, 32767}},
                 {"<u2", u2, 2, MERCER_F32, {0, 1, 2, 65535}},
                 {"<i4", i4, 4, MERCER_F32, {-16777216, 0, 1, 16777216}},
                 {"<i4", large4, 4, MERCER_F64, {-2147483648.0, 0, 1, 16777217}},
                 {"<u4", u4, 4, MERCER_F64, {0, 1, 2, 4294967295.0}},
                 {"<i8", i8, 8, MERCER_F32, {-5, 0, 1, 4000}},
                 {"<u8", u8, 8, MERCER_F32, {0, 1, 2, 4000}},
                 {"<i8", large8, 8, MERCER_F64, {-9007199254740991.0, 0, 1, 9007199254740991.0}},
                 {"|b1", b1, 1, MERCER_U8, {0, 1, 1, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            char descr[8];
            snprintf(descr, sizeof descr, "%s", cases[i].descr);
            if (swapped) descr[0] = '>', reverse(cases[i].data, cases[i].size, 4);
            mercer_dataset *data =
                open_data(plain_file("x.npy", descr, false, "4", cases[i].data, cases[i].size * 4), NULL);
            assert_samples(data, 4, 1, cases[i].expected);
            assert_int_equal(about(data).dtype, cases[i].dtype);
            assert_int_equal(about(data).mapped, 0);
            mercer_dataset_free(data);
        }
}

static void test_swapped_floats(void **state)
{
    (void)state;
    double f8[6];
    float f4[6];
    uint16_t f2[6];
    for (int i = 0; i < 6; i++)
        f8[i] = numbers[i], f4[i] = (float)numbers[i], f2[i] = mrc_half_from_float((float)numbers[i]);
    reverse(f8, 8, 6), reverse(f4, 4, 6), reverse(f2, 2, 6);
    struct {
        const char *descr;
        const void *data;
        size_t count;
        mercer_dtype dtype;
    } cases[] = {{">f8", f8, 48, MERCER_F64}, {">f4", f4, 24, MERCER_F32}, {">f2", f2, 12, MERCER_F16}};
    for (size_t i = 0; i < 3; i++) {
        mercer_dataset *data =
            open_data(plain_file("x.npy", cases[i].descr, false, "2, 3", cases[i].data, cases[i].count), NULL);
        assert_samples(data, 2, 3, numbers);
        assert_int_equal(about(data).dtype, cases[i].dtype);
        mercer_dataset_free(data);
    }
}

/* Element (i, k1, k2) = 100 i + 10 k1 + k2, stored with the first index fastest. */
static void test_fortran_order(void **state)
{
    (void)state;
    uint8_t data[12], one[3] = {7, 8, 9};
    double expected[12], slice[6];
    for (int i = 0; i < 2; i++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 2; b++) {
                data[i + 2 * a + 6 * b] = (uint8_t)(100 * i + 10 * a + b);
                expected[6 * i + 2 * a + b] = 100 * i + 10 * a + b;
            }
    memcpy(slice, expected + 6, sizeof slice);
    mercer_dataset_options options = data_options(plain_file("x.npy", "|u1", true, "2, 3, 2", data, 12), NULL);
    mercer_dataset *dataset = open_with(&options);
    assert_samples(dataset, 2, 6, expected);
    assert_int_equal(about(dataset).dtype, MERCER_U8);
    assert_int_equal(about(dataset).height, 3);
    assert_int_equal(about(dataset).width, 2);
    mercer_dataset_free(dataset);
    options.first = 1;
    dataset = open_with(&options);
    assert_samples(dataset, 1, 6, slice);
    mercer_dataset_free(dataset);
    dataset = open_data(plain_file("x.npy", "|u1", true, "3,", one, 3), NULL); /* both orders are the same */
    assert_int_equal(about(dataset).mapped, 1);
    mercer_dataset_free(dataset);
}

static void test_versions_and_headers(void **state)
{
    (void)state;
    static const char *const headers[] = {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n",
                                          "{'shape': (3L, 2L), 'descr': '<f8', 'fortran_order': False}",
                                          "{\"descr\":\"f8\",\"shape\":(3,2),\"fortran_order\":False}   \n",
                                          "  {'descr': '<f8', 'shape': ( 3 , 2 , ), 'fortran_order': False, }"};
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
            /* The data begin at any offset, so they are copied unless they are aligned. */
            mercer_dataset *data = open_data(npy_file("x.npy", version, headers[i], numbers, 48), NULL);
            assert_samples(data, 3, 2, numbers);
            size_t offset = (version == 1 ? 10 : 12) + strlen(headers[i]);
            assert_int_equal(about(data).mapped, offset % 8 == 0);
            mercer_dataset_free(data);
        }
    /* Header lengths of more than one byte, and of more than two bytes from version 2 on: the high and the low bytes
       of the length are used. */
    static char wide[70000];
    for (int version = 1; version <= 2; version++) {
        int length = version == 1 ? 700 : 66000;
        snprintf(wide, sizeof wide, "%-*s\n", length - 1, headers[1]);
        mercer_dataset *data = open_data(npy_file("x.npy", version, wide, numbers, 48), NULL);
        assert_samples(data, 3, 2, numbers);
        mercer_dataset_free(data);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    mercer_dataset *data = open_data(plain_file("x.npy", "<f8", false, "6,", numbers, 48), NULL);
    assert_samples(data, 6, 1, numbers);
    assert_int_equal(about(data).height, 0);
    mercer_dataset_free(data);
    data = open_data(plain_file("x.npy", "<f8", false, "1, 2, 3", numbers, 48), NULL);
    assert_samples(data, 1, 6, numbers);
    assert_int_equal(about(data).height, 2);
    assert_int_equal(about(data).width, 3);
    assert_int_equal(about(data).channels, 1);
    mercer_dataset_free(data);
    data = open_data(plain_file("x.npy", "<f8", false, "1, 1, 2, 3", numbers, 48), NULL);
    assert_int_equal(about(data).width, 2);
    assert_int_equal(about(data).channels, 3);
    mercer_dataset_free(data);
}

/* ---- Refusals ------------------------------------------------------------------------------------------------ */

static void refuse(int version, const char *header, size_t count, mercer_status status, const char *part)
{
    unsigned char data[64] = {0};
    mercer_dataset_options options = data_options(npy_file("bad.npy", version, header, data, count), NULL);
    assert_refused(&options, status, part);
    assert_refused(&options, status, "bad.npy: ");
}

static void test_bad_headers(void **state)
{
    (void)state;
    const mercer_status bad = MERCER_ERROR_FORMAT;
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", 40, bad, "truncated");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", 56, bad, "48 bytes*69*56*array");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", 40, bad, "48 bytes*offset");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8, bad, "no dimensions");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }", 0, bad, "no elements");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 8, bad, "sizes*larger");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", 8, bad, "sizes*larger");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, bad, "too large");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", 8, bad, "'shape'*tuple");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3 4), }", 8, bad, "offset 63: 'shape'*bracket");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': 3, }", 8, bad, "'shape'*tuple");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 8, bad, "8 dimensions");
    refuse(1, "{'descr': '<f8', 'fortran_order': Falsch, 'shape': (1,), }", 8, bad, "True nor False");
    refuse(1, "{'descr': '<f8', 'shape': (1,), }", 8, bad, "'fortran_order'");
    refuse(1, "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8, bad, "twice");
    refuse(1, "{'descr': '<f8', 'owner': '<f8', 'fortran_order': False, 'shape': (1,), }", 8, bad, "unknown entry");
    refuse(1, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", 8, bad, "structured");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } x", 8, bad, "'}'");
    refuse(1, "{'descr': '<f8, 'fortran_order': False, 'shape': (1,), }", 8, MERCER_ERROR_DTYPE, "elements*type '");
    refuse(1, "{'descr': '<f8", 0, bad, "structured");
    refuse(1, "", 8, bad, "begin with '{'");
    refuse(1, "{", 8, bad, "offset 11: *quotes");
    refuse(4, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8, bad, "version 4.0");
    static const char *const types[] = {"|O", "<c16", "<f16", "<M8[ns]", "|V8", "<f3", "f",
                                        "",   "<",    "<i8x", "<U",      "<U0", "|S0"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }", types[i]);
        refuse(1, header, 8, MERCER_ERROR_DTYPE, "elements*type '");
    }
    refuse(1, "{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", 8, MERCER_ERROR_DTYPE, "text; *numbers");
}

/* A valid file with any other length, or with any byte of its header changed, is refused or read safely. */
static void test_truncated_and_changed(void **state)
{
    (void)state;
    const char *path = plain_file("x.npy", "<f4", false, "3, 2", numbers, 24);
    file_bytes good = read_bytes(path);
    for (size_t count = 0; count < good.count; count++) {
        mercer_dataset_options options = data_options(byte_file("cut.npy", good.data, count), NULL);
        options.format = "npy";
        assert_refused(&options, MERCER_ERROR_FORMAT, "cut.npy");
    }
    static const unsigned char odd[] = {0, ' ', '9', 0xff};
    for (size_t i = 0; i < good.count - 24; i++)
        for (size_t k = 0; k < sizeof odd; k++) {
            unsigned char saved = good.data[i];
            good.data[i] = odd[k];
            mercer_dataset_options options = data_options(byte_file("odd.npy", good.data, good.count), NULL);
            mercer_dataset *dataset;
            options.format = "npy";
            if (mercer_dataset_open(&dataset, context, &options) == MERCER_OK) mercer_dataset_free(dataset);
            good.data[i] = saved;
        }
    free(good.data);
}

/* The length field determines the end of the header: the following bytes are elements, even if they look like a part of
   the header. */
static void test_header_ends(void **state)
{
    (void)state;
    static const char whole[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (12, 3), }";
    unsigned char data[sizeof whole + 288];
    for (size_t cut = 0; cut < sizeof whole - 2; cut++) {
        char header[sizeof whole];
        memcpy(header, whole, cut), header[cut] = 0;
        memset(data, ' ', sizeof data);
        memcpy(data, whole + cut, sizeof whole - 1 - cut);
        mercer_dataset_options options = data_options(npy_file("cut.npy", 1, header, data, sizeof data), NULL);
        assert_refused(&options, MERCER_ERROR_FORMAT, "cut.npy: NPY header");
        long long offset = atoll(strstr(mercer_last_error(context), "offset ") + 7);
        assert_that(offset <= (long long)cut + 10, "cut at %zu: %s", cut, mercer_last_error(context));
    }
    /* Offsets in messages are relative to the file. The size of an element has a limit, far beyond any in use. */
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } x", 8, MERCER_ERROR_FORMAT, "at offset 68: ");
    refuse(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,,), }", 8, MERCER_ERROR_FORMAT, "at offset 63: ");
    refuse(2, "[", 8, MERCER_ERROR_FORMAT, "at offset 12: ");
    mercer_dataset_options short_one = data_options(byte_file("bad.npy", "\x93NUMPY\2\0\0\0\1\0", 12), NULL);
    assert_refused(&short_one, MERCER_ERROR_FORMAT, "NPY header*65536 bytes*truncated");
    refuse(1, "{'descr': '|S99999999', 'fortran_order': False, 'shape': (1,), }", 8, MERCER_ERROR_DTYPE,
           "elements*type '");
    refuse(1, "{'descr': '|S10485770', 'fortran_order': False, 'shape': (1,), }", 8, MERCER_ERROR_DTYPE,
           "elements*type '");
    refuse(1, "{'descr': '|S10485769', 'fortran_order': False, 'shape': (1,), }", 8, MERCER_ERROR_FORMAT,
           "10485769 bytes");
}

static void test_integers_too_large(void **state)
{
    (void)state;
    int64_t large[2] = {1, INT64_C(1) << 53};
    mercer_dataset_options options = data_options(plain_file("x.npy", "<i8", false, "2", large, 16), NULL);
    assert_refused(&options, MERCER_ERROR_DATA, "row 1");
    /* Only the rows that are read are checked, in either storage order. */
    const int64_t wide[6] = {1, INT64_C(1) << 53, 3, 1 << 25, 5, 6};
    for (int fortran = 0; fortran < 2; fortran++) {
        options = data_options(plain_file("x.npy", "<i8", fortran, fortran ? "2, 3" : "3, 2", wide, 48), NULL);
        assert_refused(&options, MERCER_ERROR_DATA, fortran ? "row 1 (from 0)" : "row 0 (from 0)");
        options.first = fortran ? 0 : 1, options.rows = 1;
        mercer_dataset *data = open_with(&options);
        assert_samples(data, 1, fortran ? 3 : 2, fortran ? (double[]){1, 3, 5} : (double[]){3, 1 << 25});
        assert_int_equal(about(data).dtype, fortran ? MERCER_F32 : MERCER_F64);
        mercer_dataset_free(data);
    }
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

static void test_target_types(void **state)
{
    (void)state;
    const char *x = plain_file("x.npy", "<f8", false, "6, 1", numbers, 48);
    int64_t i8[6] = {30, -4, 30, 7, 7, 30};
    mercer_dataset *data = open_data(x, plain_file("y.npy", "<i8", false, "6", i8, 48));
    assert_classes(data, "-4 7 30", (int32_t[]){2, 0, 2, 1, 1, 2});
    assert_int_equal(about(data).outputs, 3);
    mercer_dataset_free(data);
    data = open_data(x, plain_file("y.npy", "<i8", false, "6, 1", i8, 48));
    assert_classes(data, "-4 7 30", (int32_t[]){2, 0, 2, 1, 1, 2});
    mercer_dataset_free(data);
    data = open_data(x, plain_file("y.npy", "<f8", false, "6", numbers, 48));
    assert_values(data, 1, numbers);
    mercer_dataset_free(data);
    mercer_dataset_options options = data_options(x, in_folder("y.npy"));
    options.task = MERCER_TASK_CLASSIFICATION;
    data = open_with(&options);
    assert_classes(data, "1 2 3 4 5 250", (int32_t[]){0, 1, 2, 3, 4, 5});
    mercer_dataset_free(data);
    plain_file("y.npy", "<i8", false, "6", i8, 48);
    options.task = MERCER_TASK_REGRESSION;
    data = open_with(&options);
    assert_values(data, 1, (double[]){30, -4, 30, 7, 7, 30});
    mercer_dataset_free(data);
    options.task = MERCER_TASK_UNLABELED;
    data = open_with(&options);
    assert_int_equal(about(data).task, MERCER_TASK_UNLABELED);
    mercer_dataset_free(data);
}

static void test_target_matrix(void **state)
{
    (void)state;
    float f4[6] = {0.5f, 1, 2, 3, 4, 5};
    const char *x = plain_file("x.npy", "<f8", false, "2, 3", numbers, 48);
    mercer_dataset_options options = data_options(x, plain_file("y.npy", "<f4", false, "2, 3", f4, 24));
    mercer_dataset *data = open_with(&options);
    assert_values(data, 3, (double[]){0.5, 1, 2, 3, 4, 5});
    mercer_dataset_free(data);
    options.first = 1;
    data = open_with(&options);
    assert_samples(data, 1, 3, numbers + 3);
    assert_values(data, 3, (double[]){3, 4, 5});
    mercer_dataset_free(data);
    options.task = MERCER_TASK_CLASSIFICATION;
    assert_refused(&options, MERCER_ERROR_SHAPE, "3 columns");
    options = data_options(x, plain_file("y.npy", "<f4", true, "2, 3", f4, 24));
    data = open_with(&options);
    assert_values(data, 3, (double[]){0.5, 2, 4, 1, 3, 5});
    mercer_dataset_free(data);
    f4[4] = NAN;
    options = data_options(x, plain_file("y.npy", "<f4", false, "2, 3", f4, 24));
    assert_refused(&options, MERCER_ERROR_DATA, "y.npy: *row 1, column 1*NaN");
    options.task = MERCER_TASK_CLASSIFICATION;
    f4[1] = INFINITY;
    options = data_options(x, plain_file("y.npy", "<f4", false, "2", f4, 8));
    options.task = MERCER_TASK_CLASSIFICATION;
    assert_refused(&options, MERCER_ERROR_DATA, "y.npy: element 1 *infinite");
}

static void test_target_texts(void **state)
{
    (void)state;
    const char *x = plain_file("x.npy", "<f8", false, "3, 2", numbers, 48);
    uint32_t text[9] = {'k', 0xe4, 0x1f600, 'b', 0, 0, 'k', 0xe4, 0x1f600}, damaged[2] = {0, 'a'};
    mercer_dataset *data = open_data(x, plain_file("y.npy", "<U3", false, "3", text, 36));
    assert_classes(data, "b k\xc3\xa4\xf0\x9f\x98\x80", (int32_t[]){1, 0, 1});
    mercer_dataset_free(data);
    data = open_data(x, plain_file("y.npy", "|S2", false, "3", "zzy\0zz", 6));
    assert_classes(data, "y zz", (int32_t[]){1, 0, 1});
    mercer_dataset_free(data);
    data = open_data(x, plain_file("y.npy", "|S1", false, "3", "121", 3)); /* numbers stored as text are classes too */
    assert_classes(data, "1 2", (int32_t[]){0, 1, 0});
    mercer_dataset_free(data);
    data = open_data(x, plain_file("y.npy", "|S12", false, "3", "abcdefghijklb\0\0\0\0\0\0\0\0\0\0\0abcdefghijkl", 36));
    assert_classes(data, "abcdefghijkl b", (int32_t[]){0, 1, 0}); /* text sizes of more than one digit */
    mercer_dataset_free(data);
    x = plain_file("x.npy", "<f8", false, "1, 6", numbers, 48);
    mercer_dataset_options options = data_options(x, plain_file("y.npy", "<U2", false, "1", damaged, 8));
    assert_refused(&options, MERCER_ERROR_DATA, "element 0 *text");
    damaged[0] = 0x110000;
    options = data_options(x, plain_file("y.npy", "<U2", false, "1", damaged, 8));
    assert_refused(&options, MERCER_ERROR_DATA, "element 0 *text");
    static uint32_t swapped[2000];
    for (int i = 0; i < 2000; i++) swapped[i] = __builtin_bswap32(i < 3 ? 0x20ac : 0);
    data = open_data(x, plain_file("y.npy", ">U4", false, "1", swapped, 16));
    assert_classes(data, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", (int32_t[]){0});
    mercer_dataset_free(data);
    /* Strings longer than the limit for names are rejected, for any number of bytes per character. */
    for (int i = 0; i < 2000; i++) swapped[i] = __builtin_bswap32(0x20ac);
    options = data_options(x, plain_file("y.npy", ">U2000", false, "1", swapped, 8000));
    assert_refused(&options, MERCER_ERROR_DATA, "element 0 *text");
    memset(swapped, 'a', sizeof swapped);
    options = data_options(x, plain_file("y.npy", "|S8000", false, "1", swapped, 8000));
    assert_refused(&options, MERCER_ERROR_DATA, "element 0 *text");
    damaged[0] = 0xd800;
    options = data_options(x, plain_file("y.npy", "<U2", false, "1", damaged, 8));
    assert_refused(&options, MERCER_ERROR_DATA, "element 0 *text");
    damaged[0] = damaged[1] = 0;
    options = data_options(x, plain_file("y.npy", "<U2", false, "1", damaged, 8));
    assert_refused(&options, MERCER_ERROR_DATA, "missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped_types),         cmocka_unit_test(test_converted_types),
        cmocka_unit_test(test_swapped_floats),       cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_versions_and_headers), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_bad_headers),          cmocka_unit_test(test_truncated_and_changed),
        cmocka_unit_test(test_integers_too_large),   cmocka_unit_test(test_header_ends),
        cmocka_unit_test(test_target_types),         cmocka_unit_test(test_target_matrix),
        cmocka_unit_test(test_target_texts)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
