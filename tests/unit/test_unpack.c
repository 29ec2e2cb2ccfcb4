/* SPDX-License-Identifier: BSD-3-Clause */
/* Files compressed with zstd and xz. gzip is tested in test_idx.c. */
#include "support/parts.h"

/* A table of 12 rows: columns a and b, label x, y or z. */
static const char header[] = "a,b,label\n";
static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x6c, 0x5d, 0x02, 0x00, 0x32, 0x44, 0x0d, 0x13, 0xa0,
                               0xa5, 0xe9, 0xe0, 0x4d, 0xbc, 0x50, 0x05, 0xc7, 0xb7, 0xd6, 0xb6, 0xb5, 0x7d, 0x6f,
                               0xfe, 0x57, 0x77, 0x14, 0x4d, 0x67, 0xe1, 0x77, 0x45, 0xd7, 0x03, 0x68, 0x1a, 0x8a,
                               0x84, 0x9e, 0xc0, 0x4e, 0xf1, 0xb8, 0x45, 0xd3, 0x59, 0x63, 0x2c, 0x3a, 0x0b, 0xbf,
                               0x9e, 0xb3, 0x6c, 0xab, 0x09, 0x14, 0x62, 0x2e, 0x93, 0x08, 0x00, 0x54, 0x98, 0x01,
                               0x6e, 0x80, 0x36, 0x80, 0xcc, 0x52, 0x77, 0x41, 0x1b, 0x40, 0x46, 0xf7, 0x9a, 0x4f};
static const uint8_t xz[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00,
    0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x6b, 0x00, 0x44, 0x5d, 0x00, 0x30, 0x8b, 0x08, 0x42, 0xe8,
    0x98, 0x9c, 0x21, 0xac, 0xc0, 0xb7, 0x88, 0xf5, 0xfb, 0x99, 0x9a, 0xa0, 0xd7, 0xcb, 0xfb, 0xe4, 0x5e, 0x96,
    0x99, 0x5b, 0x68, 0xa1, 0xeb, 0xf6, 0xa5, 0xd9, 0x6a, 0x16, 0xd4, 0x69, 0x4b, 0xc7, 0x17, 0xe2, 0xa1, 0xbb,
    0x95, 0x49, 0xf1, 0x07, 0x83, 0x45, 0xf3, 0x6c, 0xdc, 0x40, 0x92, 0x55, 0xb0, 0x4d, 0xd6, 0x04, 0x31, 0x79,
    0xc6, 0xbf, 0x19, 0x87, 0xfd, 0x36, 0xa0, 0xb8, 0xc1, 0x00, 0xa4, 0x58, 0x84, 0xa1, 0x00, 0x01, 0x5c, 0x6c,
    0x00, 0x8a, 0x8c, 0x72, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a};

static const struct {
    const char *name, *library;
    const uint8_t *data;
    size_t size;
} files[] = {{"zstd", "libzstd", zstd, sizeof zstd}, {"xz", "liblzma", xz, sizeof xz}};
enum { FILES = 2 };

/* Returns whether Mercer was built with the library of a format; if not, the error names it. */
static bool is_linked(int f)
{
    mercer_dataset_options options = data_options(byte_file("t.csv", files[f].data, files[f].size), NULL);
    mercer_dataset *data = NULL;
    if (mercer_dataset_open(&data, context, &options) != MERCER_OK) {
        char part[128];
        snprintf(part, sizeof part, "%s*without %s", files[f].name, files[f].library);
        assert_refused(&options, MERCER_ERROR_FORMAT, part);
    }
    mercer_dataset_free(data);
    return data != NULL;
}

static mercer_dataset *open_plain(int copies)
{
    char text[1024];
    int used = snprintf(text, sizeof text, "%s", header);
    for (int i = 0; i < 12 * copies; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%d,%d.5,%c\n", i % 12, i % 12 * 7 % 5, "xyz"[i % 3]);
    return open_data(text_file("plain.csv", text), NULL);
}

static void test_same_data(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++) {
        if (!is_linked(f)) continue;
        for (int64_t spill = 0; spill < 2; spill++) {
            mercer_dataset_options options = data_options(in_folder("t.csv"), NULL);
            options.spill = spill; /* 1: unpack into a temporary file */
            mercer_dataset *data = open_with(&options), *plain = open_plain(1);
            assert_same_rows(data, plain);
            mercer_dataset_free(data), mercer_dataset_free(plain);
        }
    }
}

/* A file may consist of several frames; padding with zeros is ignored. */
static void test_frames(void **state)
{
    (void)state;
    static uint8_t all[2048];
    for (int f = 0; f < FILES; f++) {
        if (!is_linked(f)) continue;
        memset(all, 0, sizeof all);
        memcpy(all, files[f].data, files[f].size), memcpy(all + files[f].size, files[f].data, files[f].size);
        mercer_dataset_options options = data_options(byte_file("two.csv", all, 2 * files[f].size + 8), NULL);
        assert_refused(&options, MERCER_ERROR_DATA, "line 14, column 'a': 'a'*number");
        options.kinds = "a:category,b:category";
        mercer_dataset *data = open_with(&options);
        assert_int_equal(about(data).rows, 25); /* the second header is a record */
        mercer_dataset_free(data);
    }
}

static void test_damaged(void **state)
{
    (void)state;
    static uint8_t bytes[1024];
    for (int f = 0; f < FILES; f++) {
        if (!is_linked(f)) continue;
        char part[64];
        mercer_dataset *data;
        snprintf(part, sizeof part, "cut.csv: %s data", files[f].name);
        for (size_t count = 6; count < files[f].size; count++) {
            mercer_dataset_options options = data_options(byte_file("cut.csv", files[f].data, count), NULL);
            assert_refused(&options, MERCER_ERROR_FORMAT, part);
        }
        memcpy(bytes, files[f].data, files[f].size);
        for (size_t i = 6; i < files[f].size; i++) { /* a flipped bit gives an error or another table, never a crash */
            bytes[i] ^= 0x10;
            mercer_dataset_options options = data_options(byte_file("odd.csv", bytes, files[f].size), NULL);
            if (mercer_dataset_open(&data, context, &options) == MERCER_OK)
                mercer_dataset_free(data);
            else
                assert_non_null(strstr(mercer_last_error(context), "odd.csv"));
            bytes[i] ^= 0x10;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_data), cmocka_unit_test(test_frames),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
