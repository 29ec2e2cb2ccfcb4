/* SPDX-License-Identifier: BSD-3-Clause */
/* IDX files, plain and gzip: read exactly, refused when truncated, damaged or inconsistent with the sizes in their
   header. */
#include "support/datasets.h"

/* Three images of 2 x 2 and their labels. */
static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2,  0,  0,
                                       0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 9};
static const double pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255};

static void check_images(mercer_dataset *data, bool mapped)
{
    mercer_dataset_info info = about(data);
    assert_samples(data, 3, 4, pixels);
    assert_classes(data, "0 9", (int32_t[]){1, 0, 1});
    assert_string_equal(info.format, "idx");
    assert_int_equal(info.dtype, MERCER_U8);
    assert_int_equal(info.mapped, mapped);
    assert_int_equal(info.height, 2);
    assert_int_equal(info.width, 2);
    assert_int_equal(info.channels, 1);
    assert_int_equal(info.bytes, 12);
    mercer_dataset_free(data);
}

static void test_plain_and_packed(void **state)
{
    (void)state;
    const char *x = byte_file("images", images, sizeof images), *y = byte_file("labels", labels, sizeof labels);
    check_images(open_data(x, y), true);
    const char *xz = gzip_file("images.gz", images, sizeof images), *yz = gzip_file("labels.gz", labels, sizeof labels);
    check_images(open_data(xz, yz), false);
    check_images(open_data(x, yz), true);
}

static void test_slices(void **state)
{
    (void)state;
    mercer_dataset_options options =
        data_options(byte_file("x", images, sizeof images), byte_file("y", labels, sizeof labels));
    options.first = 1;
    options.rows = 1;
    mercer_dataset *data = open_with(&options);
    assert_samples(data, 1, 4, pixels + 4);
    assert_classes(data, "0", (int32_t[]){0});
    mercer_dataset_free(data);
    options.rows = 0;
    data = open_with(&options);
    assert_samples(data, 2, 4, pixels + 4);
    mercer_dataset_free(data);
    options.rows = 3;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 3");
    options.first = 3, options.rows = 0;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 3");
    options.first = INT64_MAX, options.rows = INT64_MAX;
    assert_refused(&options, MERCER_ERROR_SHAPE, "only 3");
}

static void test_known_classes(void **state)
{
    (void)state;
    static const char *const known[] = {"0", "5", "9"};
    mercer_dataset_options options =
        data_options(byte_file("x", images, sizeof images), byte_file("y", labels, sizeof labels));
    options.labels = known;
    options.label_count = 3;
    mercer_dataset *data = open_with(&options);
    assert_classes(data, "0 5 9", (int32_t[]){2, 0, 2});
    mercer_dataset_free(data);
    options.label_count = 2;
    assert_refused(&options, MERCER_ERROR_DATA, "y: element 0 *'9'*2 ");
}

static void test_other_elements(void **state)
{
    (void)state;
    static const unsigned char i1[] = {0, 0, 9, 1, 0, 0, 0, 2, 0xff, 127};
    static const unsigned char i2[] = {0, 0, 11, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0};
    static const unsigned char i4[] = {0, 0, 12, 1, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xfd, 0, 1, 0, 0};
    static const unsigned char f4[] = {0, 0, 13, 1, 0, 0, 0, 2, 0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0};
    static const unsigned char f8[] = {0, 0, 14, 1, 0,    0, 0, 2, 0x3f, 0xf8, 0, 0,
                                       0, 0, 0,  0, 0xc0, 0, 0, 0, 0,    0,    0, 0};
    struct {
        const void *data;
        size_t count;
        double expected[2];
        mercer_dtype dtype;
    } cases[] = {{i1, sizeof i1, {-1, 127}, MERCER_F32},
                 {i2, sizeof i2, {-2, 256}, MERCER_F32},
                 {i4, sizeof i4, {-3, 65536}, MERCER_F32},
                 {f4, sizeof f4, {1.5, -2}, MERCER_F32},
                 {f8, sizeof f8, {1.5, -2}, MERCER_F64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset *data = open_data(byte_file("x", cases[i].data, cases[i].count), NULL);
        assert_samples(data, 2, 1, cases[i].expected);
        assert_int_equal(about(data).dtype, cases[i].dtype);
        assert_int_equal(about(data).mapped, 0);
        mercer_dataset_free(data);
    }
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t count = 0; count < sizeof images; count++) {
        mercer_dataset_options options = data_options(byte_file("cut", images, count), NULL);
        options.format = "idx";
        assert_refused(&options, MERCER_ERROR_FORMAT, "cut: ");
    }
    unsigned char more[sizeof images + 1] = {0};
    memcpy(more, images, sizeof images);
    mercer_dataset_options options = data_options(byte_file("more", more, sizeof more), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "12 bytes*offset");
}

static void test_lying_headers(void **state)
{
    (void)state;
    unsigned char file[64] = {0, 0, 8, 3};
    mercer_dataset_options options = data_options(in_folder("lie"), NULL);
    options.format = "idx";
    memset(file + 4, 0xff, 12); /* 2^96 elements */
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "sizes*larger");
    file[4] = 0x7f; /* representable as int64_t, but too large for a file */
    memset(file + 12, 0, 4), file[15] = 1;
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "truncated");
    memset(file + 4, 0, 12);
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "no elements");
    file[3] = 9;
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "9 dimensions");
    file[3] = 0;
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "0 dimensions");
    file[2] = 10; /* not an IDX type code */
    byte_file("lie", file, sizeof file);
    assert_refused(&options, MERCER_ERROR_FORMAT, "not an IDX file");
}

/* A file without a known extension is recognized as IDX by its first four bytes if valid sizes follow. */
static void test_recognized(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[8];
        size_t count;
        const char *part;
    } cases[] = {{{0, 0, 8, 1}, 8, "elements"},
                 {{0, 0, 14, 1, 0, 0, 0, 1}, 8, "8 bytes*offset"},
                 {{0, 0, 8, 8}, 8, "IDX header*36 bytes*truncated"},
                 {{0, 0, 10, 1}, 8, "IDX"},
                 {{0, 0, 8, 1}, 7, "recognized"},
                 {{1, 0, 8, 1}, 8, "recognized"},
                 {{0, 1, 8, 1}, 8, "recognized"},
                 {{0, 0, 7, 1}, 8, "recognized"},
                 {{0, 0, 15, 1}, 8, "recognized"},
                 {{0, 0, 8, 0}, 8, "recognized"},
                 {{0, 0, 8, 9}, 8, "recognized"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_dataset_options options = data_options(byte_file("nameless", cases[i].bytes, cases[i].count), NULL);
        assert_refused(&options, MERCER_ERROR_FORMAT, cases[i].part);
    }
    mercer_dataset_options options = data_options(byte_file("cut", images, 4), NULL);
    options.format = "idx";
    assert_refused(&options, MERCER_ERROR_FORMAT, "IDX header*16 bytes*truncated");
    byte_file("cut", images, 3);
    assert_refused(&options, MERCER_ERROR_FORMAT, "IDX");
    /* An empty file among several is refused, because each file has a header. */
    byte_file("part-1", images, sizeof images), byte_file("part-2", images, 0);
    options = data_options(in_folder("part-*"), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "part-2: *empty");
}

/* ---- gzip ---------------------------------------------------------------------------------------------------- */

static void test_damaged_gzip(void **state)
{
    (void)state;
    file_bytes packed = read_bytes(gzip_file("x.gz", images, sizeof images));
    for (size_t count = 2; count < packed.count; count++) {
        mercer_dataset_options options = data_options(byte_file("cut.gz", packed.data, count), NULL);
        assert_refused(&options, MERCER_ERROR_FORMAT, "cut.gz: gzip*offset");
    }
    for (size_t i = 2; i < packed.count; i++) { /* a flipped bit is detected or harmless */
        packed.data[i] ^= 0x10;
        mercer_dataset_options options = data_options(byte_file("odd.gz", packed.data, packed.count), NULL);
        mercer_dataset *data;
        mercer_status status = mercer_dataset_open(&data, context, &options);
        if (status == MERCER_OK) {
            assert_samples(data, 3, 4, pixels);
            mercer_dataset_free(data);
        } else {
            assert_true(status == MERCER_ERROR_FORMAT && strstr(mercer_last_error(context), "odd.gz"));
        }
        packed.data[i] ^= 0x10;
    }
    mercer_dataset_options options = data_options(gzip_file("none.gz", "", 0), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "none.gz");
    free(packed.data);
}

/* Concatenated members are one file; zeros after the last one are padding, anything else is damage. */
static void test_gzip_members(void **state)
{
    (void)state;
    file_bytes one = read_bytes(gzip_file("a.gz", images, 10)),
               two = read_bytes(gzip_file("b.gz", images + 10, sizeof images - 10));
    unsigned char all[512] = {0};
    memcpy(all, one.data, one.count), memcpy(all + one.count, two.data, two.count);
    mercer_dataset *data = open_data(byte_file("x.gz", all, one.count + two.count), NULL);
    assert_samples(data, 3, 4, pixels);
    mercer_dataset_free(data);
    data = open_data(byte_file("x.gz", all, one.count + two.count + 100), NULL);
    assert_samples(data, 3, 4, pixels);
    mercer_dataset_free(data);
    mercer_dataset_options cut = data_options(byte_file("x.gz", all, one.count + two.count - 5), NULL);
    assert_refused(&cut, MERCER_ERROR_FORMAT, "x.gz: gzip*offset");
    all[one.count + two.count + 3] = 'x';
    mercer_dataset_options options = data_options(byte_file("x.gz", all, one.count + two.count + 100), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.gz: gzip data are damaged");
    free(one.data), free(two.data);
}

/* Ten million zeros compressed to ten thousand bytes, with any value in the size field at the end of the file. */
static void test_gzip_bomb(void **state)
{
    (void)state;
    enum { SIZE = 10000000 };
    unsigned char *zeros = calloc(SIZE, 1);
    static const unsigned char header[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0x98, 0x96, 0x80 - 12};
    memcpy(zeros, header, sizeof header);
    file_bytes packed = read_bytes(gzip_file("x.gz", zeros, SIZE));
    for (int lie = 0; lie < 3; lie++) {
        mercer_dataset_options options = data_options(byte_file("x.gz", packed.data, packed.count), NULL);
        options.memory = SIZE / 4;
        assert_refused(&options, MERCER_ERROR_MEMORY, "x.gz: needs");
        assert_refused(&options, MERCER_ERROR_MEMORY, "2500000");
        options.memory = SIZE + 1; /* a limit that is just enough if the buffer does not grow */
        if (lie == 0) {
            mercer_dataset_free(open_with(&options));
            options.memory = 0; /* without a limit, the size field is trusted: one buffer of that size is allocated */
            int64_t before = context->bytes_now;
            mercer_dataset *data = open_with(&options);
            int64_t held = context->bytes_now - before;
            assert_that(held > SIZE && held < SIZE + 8192, "%lld bytes", (long long)held);
            mercer_dataset_free(data);
        }
        memset(packed.data + packed.count - 4, lie ? 0xff : 0, 4);
    }
    free(packed.data), free(zeros);
}

/* Two members, so that the size field at the end covers only half. The buffer grows up to the memory limit and is
   counted once; packed bytes that were read into memory count until they are unpacked; a spilled file has the same
   contents. */
static void test_growing_gzip(void **state)
{
    (void)state;
    enum { HALF = 1 << 20, SIZE = 2 * HALF };
    unsigned char *bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i % 251 + i / 65536);
    static const unsigned char header[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0x1f, 0xff, 0xf4},
                               label[] = {0, 0, 8, 1, 0, 0, 0, 1, 7};
    memcpy(bytes, header, sizeof header);
    file_bytes one = read_bytes(gzip_file("a.gz", bytes, HALF)),
               two = read_bytes(gzip_file("b.gz", bytes + HALF, HALF));
    unsigned char *all = malloc(one.count + two.count);
    memcpy(all, one.data, one.count), memcpy(all + one.count, two.data, two.count);
    int64_t packed = (int64_t)(one.count + two.count);
    for (int k = 0; k < 3; k++) {
        mercer_dataset_options options = data_options(byte_file("x.gz", all, (size_t)packed), NULL);
        options.memory = SIZE + 1;
        if (k == 1) options.memory += packed, options.mapping = MERCER_OFF, options.y = gzip_file("y.gz", label, 9);
        if (k == 2) options.memory = 1 << 18, options.spill = 1;
        mercer_dataset *data = open_with(&options);
        assert_memory_equal(mercer_dataset_samples(data).data, bytes + sizeof header, SIZE - sizeof header);
        mercer_dataset_free(data);
        options.memory -= 2;
        if (k < 2) assert_refused(&options, MERCER_ERROR_MEMORY, "x.gz: needs");
    }
    free(one.data), free(two.data), free(all), free(bytes);
}

/* A small file that claims to hold four gigabytes does not cause an allocation of that size. */
static void test_lying_gzip(void **state)
{
    (void)state;
    file_bytes packed = read_bytes(gzip_file("x.gz", images, sizeof images));
    memset(packed.data + packed.count - 4, 0xff, 4);
    mercer_dataset_options options = data_options(byte_file("x.gz", packed.data, packed.count), NULL);
    int64_t before = context->bytes_high = context->bytes_now;
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.gz: gzip data are damaged");
    assert_that(context->bytes_high - before < 1 << 20, "%lld bytes", (long long)(context->bytes_high - before));
    free(packed.data);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    mercer_dataset_options options =
        data_options(gzip_file("x.gz", images, sizeof images), gzip_file("y.gz", labels, sizeof labels));
    for (int64_t fail_at = 1;; fail_at++) {
        mercer_dataset *data = NULL;
        int64_t live = allocator.live;
        allocator.requests = 0, allocator.fail_at = fail_at;
        mercer_status status = mercer_dataset_open(&data, context, &options);
        int64_t requests = allocator.requests;
        allocator.fail_at = 0;
        if (status == MERCER_OK) {
            assert_true(fail_at > 5 && requests < fail_at);
            mercer_dataset_free(data);
            break;
        }
        assert_int_equal(status, MERCER_ERROR_MEMORY);
        assert_null(data);
        assert_int_equal(allocator.live, live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_and_packed), cmocka_unit_test(test_slices),
                                       cmocka_unit_test(test_known_classes),    cmocka_unit_test(test_other_elements),
                                       cmocka_unit_test(test_truncated),        cmocka_unit_test(test_lying_headers),
                                       cmocka_unit_test(test_damaged_gzip),     cmocka_unit_test(test_gzip_members),
                                       cmocka_unit_test(test_gzip_bomb),        cmocka_unit_test(test_lying_gzip),
                                       cmocka_unit_test(test_out_of_memory),    cmocka_unit_test(test_recognized),
                                       cmocka_unit_test(test_growing_gzip)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
