/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor files: files that are written can be read; a file with inconsistent content is refused before it is used. */
#include "support/check.h"

#include "model/tensor_file.h"
#include "model/tensor_format.h"
#include "support/data.h"
#include "support/folder.h"

#include <sys/resource.h>

static mercer_context *context;

static int open_all(void **state)
{
    (void)state;
    folder_open();
    return mercer_context_create(&context, NULL);
}

static int close_all(void **state)
{
    (void)state;
    mercer_context_free(context);
    folder_close();
    return 0;
}

/* ---- Round trips --------------------------------------------------------------------------------------------- */

enum { SHAPES = 6 };
static const int64_t shapes[SHAPES][2] = {{3, 5}, {1, 7}, {4, 1}, {0, 4}, {3, 0}, {200, 33}};

/* Every type, shape and leading dimension in one file. */
static void test_round_trip(void **state)
{
    (void)state;
    static const mercer_dtype types[] = {MERCER_U8, MERCER_F16, MERCER_F64, MERCER_F32};
    static const mrc_metadata texts[] = {{"plain", "text"},
                                         {"left out", NULL},
                                         {"quotes", "a \"b\" \\ / \n\t\x01 \"xxh3.header\":\""},
                                         {"é", "日本"},
                                         {"", ""}};
    enum { COUNT = 4 * SHAPES * 2 };
    mrc_tensor tensors[COUNT];
    char names[COUNT][16];
    int count = 0;
    for (int t = 0; t < 4; t++)
        for (int s = 0; s < SHAPES; s++)
            for (int gap = 0; gap < 2; gap++, count++) {
                mercer_matrix value = data_matrix(shapes[s][0], shapes[s][1], shapes[s][1] + gap, types[t]);
                data_fill_uniform(&value, (mrc_rng){5, (uint64_t)count}, 0, 200);
                snprintf(names[count], sizeof names[count], "t.%d", count);
                tensors[count] = (mrc_tensor){.name = names[count], .value = value, .vector = shapes[s][0] == 1};
            }
    const char *path = in_folder("round"), *again = in_folder("again");
    assert_succeeds(context, mrc_tensor_file_write(context, path, tensors, COUNT, texts, 5));
    assert_succeeds(context, mrc_tensor_file_write(context, again, tensors, COUNT, texts, 5));
    assert_same_bytes(path, again);

    mrc_tensor_file *file;
    assert_succeeds(context, mrc_tensor_file_open(&file, context, path));
    for (int i = 0; i < COUNT; i++) {
        const mercer_matrix *value = &tensors[i].value;
        mercer_matrix found;
        assert_true(mrc_tensor_file_find(file, names[i], &found));
        assert_true(found.dtype == value->dtype && found.rows == value->rows && found.cols == value->cols);
        assert_int_equal((uintptr_t)found.data % (uintptr_t)mrc_dtype_size(value->dtype), 0);
        for (int64_t r = 0; r < found.rows; r++)
            assert_memory_equal(mrc_row(&found, r), mrc_row(value, r),
                                (size_t)(found.cols * mrc_dtype_size(found.dtype)));
    }
    mercer_matrix none;
    assert_false(mrc_tensor_file_find(file, "t.", &none));
    for (int i = 0; i < 5; i++) {
        const char *text = mrc_tensor_file_metadata(file, texts[i].key);
        assert_true(texts[i].value ? text && strcmp(text, texts[i].value) == 0 : text == NULL);
    }
    int64_t length;
    const char *header = mrc_tensor_file_header(file, &length);
    assert_true(header[0] == '{' && header[length - 1] == '}');
    mrc_tensor_file_close(file);

    file_bytes raw = read_bytes(path);
    uint64_t announced;
    memcpy(&announced, raw.data, 8);
    assert_int_equal((announced + 8) % 64, 0); /* data begin at a multiple of 64 */
    free(raw.data);
    for (int i = 0; i < COUNT; i++) free(tensors[i].value.data);
}

/* A file without any tensor is valid. */
static void test_empty(void **state)
{
    (void)state;
    mrc_tensor_file *file;
    mercer_matrix none;
    assert_succeeds(context, mrc_tensor_file_write(context, in_folder("empty"), NULL, 0, NULL, 0));
    assert_succeeds(context, mrc_tensor_file_open(&file, context, in_folder("empty")));
    assert_true(!mrc_tensor_file_find(file, "", &none) && !mrc_tensor_file_metadata(file, "format"));
    mrc_tensor_file_close(file);
}

/* A mapping remains valid after the file object is freed; writing to it does not change the file. */
static void test_mapping_is_private(void **state)
{
    (void)state;
    double values[4] = {1, 2, 3, 4};
    mrc_tensor tensor = {.name = "x", .value = mrc_view(values, 2, 2, MERCER_F64)};
    mrc_tensor_file *file;
    mercer_matrix x;
    const char *path = in_folder("private");
    assert_succeeds(context, mrc_tensor_file_write(context, path, &tensor, 1, NULL, 0));
    assert_succeeds(context, mrc_tensor_file_open(&file, context, path));
    assert_true(mrc_tensor_file_find(file, "x", &x));
    mrc_mapping map = mrc_tensor_file_take_mapping(file);
    mrc_tensor_file_close(file);
    assert_true(mrc_load(&x, 1, 1) == 4);
    mrc_store(&x, 1, 1, -1);
    mrc_unmap(&map);
    assert_succeeds(context, mrc_tensor_file_open(&file, context, path));
    mrc_tensor_file_close(file);
}

/* ---- Conversion ---------------------------------------------------------------------------------------------- */

static void test_stored_types(void **state)
{
    (void)state;
    static const mercer_dtype types[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    mercer_matrix from = data_matrix(300, 1000, 1001, MERCER_F64); /* more than one buffer */
    data_fill_uniform(&from, (mrc_rng){6, 1}, 0, 255);
    for (int64_t i = 0; i < from.rows; i++)
        for (int64_t j = 0; j < from.cols; j++) mrc_store(&from, i, j, floor(mrc_load(&from, i, j)));
    for (int t = 0; t < 4; t++) {
        mrc_tensor tensor = {.name = "x", .value = from, .stored = types[t]};
        mrc_tensor_file *file;
        mercer_matrix x;
        assert_succeeds(context, mrc_tensor_file_write(context, in_folder("typed"), &tensor, 1, NULL, 0));
        assert_succeeds(context, mrc_tensor_file_open(&file, context, in_folder("typed")));
        assert_true(mrc_tensor_file_find(file, "x", &x) && x.dtype == types[t]);
        for (int64_t i = 0; i < from.rows; i++)
            for (int64_t j = 0; j < from.cols; j++)
                assert_true(mrc_load(&x, i, j) == mrc_load(&from, i, j)); /* integers below 256 fit all types */
        mrc_tensor_file_close(file);
    }
    free(from.data);
}

static void test_values_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        mercer_dtype stored;
        double value;
        bool fits;
    } cases[] = {{MERCER_U8, 255, true},     {MERCER_U8, 256, false},     {MERCER_U8, -1, false},
                 {MERCER_U8, 0.5, false},    {MERCER_U8, NAN, false},     {MERCER_F16, 65504, true},
                 {MERCER_F16, 65519, true},  {MERCER_F16, 65520, false},  {MERCER_F16, -1e300, false},
                 {MERCER_F32, 3.4e38, true}, {MERCER_F32, 3.5e38, false}, {MERCER_F32, INFINITY, false},
                 {MERCER_F16, 1e-300, true}};
    const char *path = in_folder("fits");
    write_bytes(path, "old", 3);
    int files = folder_count();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double values[6] = {0, 0, 0, 0, cases[i].value, 0};
        mrc_tensor tensor = {.name = "x", .value = mrc_view(values, 2, 3, MERCER_F64), .stored = cases[i].stored};
        mercer_status status = mrc_tensor_file_write(context, path, &tensor, 1, NULL, 0);
        if (cases[i].fits) {
            assert_succeeds(context, status);
            write_bytes(path, "old", 3);
            continue;
        }
        assert_fails(context, status, MERCER_ERROR_DATA, "x: *row 1, column 1");
        file_bytes saved = read_bytes(path);
        assert_true(saved.count == 3 && memcmp(saved.data, "old", 3) == 0);
        free(saved.data);
        assert_int_equal(folder_count(), files);
    }
}

static void test_bad_texts(void **state)
{
    (void)state;
    mrc_metadata text = {"note", "\xff\xfe"};
    assert_fails(context, mrc_tensor_file_write(context, in_folder("text"), NULL, 0, &text, 1), MERCER_ERROR_ARGUMENT,
                 "note: byte 0 (from 0) is not UTF-8");
    double value = 1;
    mrc_tensor tensor = {.name = "a b", .value = mrc_view(&value, 1, 1, MERCER_F64)};
    assert_fails(context, mrc_tensor_file_write(context, in_folder("text"), &tensor, 1, NULL, 0), MERCER_ERROR_ARGUMENT,
                 "a b");
    assert_true(access(in_folder("text"), F_OK) != 0);
}

static void test_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "a\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2x",
                                      "\xe0\x9f\xbf",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xff",
                                      "\xf0\x90\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_succeeds(context, mrc_check_text(context, "good", good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(context, mrc_check_text(context, "bad", bad[i]), MERCER_ERROR_ARGUMENT, "bad: byte 0");
}

/* ---- Inconsistent files -------------------------------------------------------------------------------------- */

#define START "{\"__metadata__\":{\"xxh3.header\":\"0000000000000000\""
#define TENSOR(name, dtype, shape, offsets) \
    ",\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Writes a file with that header, followed by `data` zero bytes; announced: the header length in the file, -1: the
   true length. */
static void forge(const char *path, const char *header, size_t length, int64_t announced, size_t data)
{
    unsigned char *memory = calloc(1, 8 + length + data);
    uint64_t says = announced == -1 ? length : (uint64_t)announced;
    assert_non_null(memory);
    memcpy(memory, &says, 8);
    memcpy(memory + 8, header, length);
    write_bytes(path, memory, 8 + length + data);
    free(memory);
}

static int64_t most_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}

static void refuse(const char *header, size_t length, int64_t announced, size_t data, const char *part)
{
    mrc_tensor_file *file;
    const char *path = in_folder("lie");
    forge(path, header, length, announced, data);
    assert_fails(context, mrc_tensor_file_open(&file, context, path), MERCER_ERROR_FORMAT, part);
    assert_fails(context, MERCER_ERROR_FORMAT, MERCER_ERROR_FORMAT, path); /* the message names the file */
    assert_null(strchr(mercer_last_error(context), '\n'));
    assert_null(file);
}

/* Each header has one error; the checksum is checked last. */
static void test_lying_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *part;
    } lies[] = {
        {START "}" TENSOR("x", "F64", "[2,2]", "[0,32]") "}", 32, "checksum"},
        {START "}" TENSOR("x", "F64", "[1152921504606846976,1]", "[0,32]") "}", 32, "\"x\": *fill"},
        {START "}" TENSOR("x", "F64", "[4294967296,4294967296]", "[0,0]") "}", 0, "\"x\": *fill"},
        {START "}" TENSOR("x", "U8", "[4294967296,4294967297]", "[0,32]") "}", 32, "\"x\": *fill"},
        {START "}" TENSOR("x", "F64", "[9223372036854775808,1]", "[0,32]") "}", 32, "JSON"},
        {START "}" TENSOR("x", "F64", "[2,3]", "[0,32]") "}", 32, "\"x\": *fill"},
        {START "}" TENSOR("x", "F64", "[-2,-2]", "[0,32]") "}", 32, "shape"},
        {START "}" TENSOR("x", "F64", "[2.0,2]", "[0,32]") "}", 32, "shape"},
        {START "}" TENSOR("x", "F64", "[\"2\",2]", "[0,32]") "}", 32, "shape"},
        {START "}" TENSOR("x", "F64", "[]", "[0,8]") "}", 8, "shape"},
        {START "}" TENSOR("x", "F64", "[1,2,2]", "[0,32]") "}", 32, "shape"},
        {START "}" TENSOR("x", "F64", "4", "[0,32]") "}", 32, "shape"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[0,1152921504606846976]") "}", 32, "not within"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[-32,0]") "}", 32, "not within"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[32,0]") "}", 32, "not within"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[0,33]") "}", 32, "not within"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[0]") "}", 32, "described"},
        {START "}" TENSOR("x", "F64", "[2,2]", "{}") "}", 32, "described"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[0,32],\"more\":1") "}", 32, "described"},
        {START "}" TENSOR("x", "I64", "[2,2]", "[0,32]") "}", 32, "dtype"},
        {START "}" TENSOR("x", "f64", "[2,2]", "[0,32]") "}", 32, "dtype"},
        {START "}" TENSOR("x\\n", "F64", "[2,2]", "[0,32]") "}", 32, "name"},
        {START "}" TENSOR("", "F64", "[2,2]", "[0,32]") "}", 32, "name"},
        {START "},\"x\":7}", 0, "described"},
        {START "},\"x\":null}", 0, "described"},
        {START "}" TENSOR("x", "F64", "[2,2]", "[0,32]") "}", 40, "tensors end"},
        {START "}}", 8, "tensors end"},
        {START "}" TENSOR("x", "F64", "[1,2]", "[0,16]") TENSOR("y", "F64", "[1,2]", "[8,24]") "}", 24, "begins at"},
        {START "}" TENSOR("x", "F64", "[1,2]", "[0,16]") TENSOR("y", "F64", "[1,2]", "[0,16]") "}", 16, "begins at"},
        {START "}" TENSOR("x", "F64", "[1,2]", "[0,16]") TENSOR("y", "F64", "[1,2]", "[24,40]") "}", 40, "begins at"},
        {START "}" TENSOR("y", "F64", "[1,2]", "[16,32]") "}", 32, "begins at"},
        {START "}" TENSOR("x", "F64", "[1,2]", "[0,16]") TENSOR("x", "F64", "[1,2]", "[16,32]") "}", 32, "JSON"},
        {START ",\"xxh3.header\":\"\"}}", 0, "JSON"},
        {START ",\"a\":1}}", 0, "text"},
        {START ",\"a\":{}}}", 0, "text"},
        {START ",\"a\":\"\xff\"}}", 0, "JSON"},
        {START ",\"a\":\"\\u0000\"}}", 0, "JSON"},
        {START "}} trailing", 0, "JSON"},
        {START "}", 0, "JSON"},
        {START "},\"x\":[[[[[[1]]]]]]}", 0, "nests"},
        {" " START "}}", 0, "header*begin*checksum"},
        {"{}", 0, "header*begin*checksum"},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, "header*begin*checksum"},
        {"{\"__metadata__\":{\"xxh3.header\":\"0\"}}", 0, "checksum"},
        {"{\"__metadata__\":{\"xxh3.header\":\"012345678901234\"}}", 0, "checksum"},
        {"\x93NUMPY", 0, "header*begin*checksum"},
    };
    int64_t before = most_memory();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        size_t length = strlen(lies[i].header);
        char padded[1024]; /* padding aligns the tensors, so that the one intended error is found */
        memset(padded, ' ', sizeof padded);
        memcpy(padded, lies[i].header, length);
        refuse(padded, (length + 8 + 63) / 64 * 64 - 8, -1, lies[i].data, lies[i].part);
    }
    assert_that(most_memory() - before < 8 << 20, "%lld bytes", (long long)(most_memory() - before));
}

/* The checksum is correct, so the header was written with this error. The message must report invalid JSON, not a lack
   of memory. */
static void test_json_with_the_right_checksum(void **state)
{
    (void)state;
    static const char *const bad[] = {START "}", START ",\"a\":\"\\q\"}}", START ",\"a\":tru}}", START "}} x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char header[256], digits[MRC_TENSOR_DIGITS + 1];
        uint64_t sum;
        memset(header, ' ', sizeof header);
        memcpy(header, bad[i], strlen(bad[i]));
        assert_true(mrc_tensor_header_checksum(header, 248, &sum));
        mrc_tensor_digits(sum, digits);
        memcpy(header + sizeof MRC_TENSOR_HEADER_START - 1, digits, MRC_TENSOR_DIGITS);
        refuse(header, 248, -1, 0, "JSON");
    }
}

static void test_unaligned(void **state)
{
    (void)state;
    const char *header = START "}" TENSOR("b", "U8", "[1,4]", "[0,4]") TENSOR("x", "F64", "[1,1]", "[4,12]") "}";
    char padded[256];
    memset(padded, ' ', sizeof padded);
    memcpy(padded, header, strlen(header));
    refuse(padded, 248, -1, 12, "multiple");
    refuse(padded, 247, -1, 12, "multiple");
}

static void test_lying_lengths(void **state)
{
    (void)state;
    static const int64_t announced[] = {INT64_C(1) << 60, INT64_MAX, INT64_MIN + 1, 100000000, 100000001, 60, 0, 1, 2};
    const char *header = START "}}";
    mrc_tensor_file *file;
    int64_t before = most_memory();
    for (size_t i = 0; i < sizeof announced / sizeof *announced; i++) {
        forge(in_folder("lie"), header, strlen(header), announced[i], 0);
        assert_fails(context, mrc_tensor_file_open(&file, context, in_folder("lie")), MERCER_ERROR_FORMAT, "header");
    }
    for (size_t size = 0; size <= 8; size++) {
        write_bytes(in_folder("lie"), "\0\0\0\0\0\0\0\0", size);
        assert_fails(context, mrc_tensor_file_open(&file, context, in_folder("lie")), MERCER_ERROR_FORMAT, "too short");
    }
    assert_that(most_memory() - before < 8 << 20, "%lld bytes", (long long)(most_memory() - before));
}

/* Headers of the maximum length that would take a parser gigabytes: refused for their nesting and their lists. */
static void test_large_headers(void **state)
{
    (void)state;
    enum { LENGTH = 4 << 20 };
    static const struct {
        const char *fill, *part;
    } lies[] = {{"[", "nests"}, {"{\"a\":", "nests"}, {"0,", "values"}, {"\"\",", "values"}};
    char *header = malloc(LENGTH);
    assert_non_null(header);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        size_t start = (size_t)snprintf(header, LENGTH, "%s},\"x\":[", START), step = strlen(lies[i].fill);
        for (size_t k = start; k < LENGTH; k++) header[k] = lies[i].fill[(k - start) % step];
        refuse(header, LENGTH, -1, 0, lies[i].part);
    }
    free(header);
    /* A header of 100 MB that consists of zeros. */
    mrc_tensor_file *file;
    const char *path = in_folder("lie");
    forge(path, START, strlen(START), 100000000, 0);
    assert_int_equal(truncate(path, 100000008), 0);
    assert_fails(context, mrc_tensor_file_open(&file, context, path), MERCER_ERROR_FORMAT, "JSON");
    forge(path, START, strlen(START), 100000001, 0);
    assert_int_equal(truncate(path, 100000009), 0);
    assert_fails(context, mrc_tensor_file_open(&file, context, path), MERCER_ERROR_FORMAT, "header size");
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_empty),
        cmocka_unit_test(test_stored_types),       cmocka_unit_test(test_values_that_do_not_fit),
        cmocka_unit_test(test_bad_texts),          cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_mapping_is_private), cmocka_unit_test(test_lying_headers),
        cmocka_unit_test(test_unaligned),          cmocka_unit_test(test_json_with_the_right_checksum),
        cmocka_unit_test(test_lying_lengths),      cmocka_unit_test(test_large_headers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
