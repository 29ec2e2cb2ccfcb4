/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parquet files: every encoding, page version and codec gives the same dataset as the equal CSV file, and forged files are
 * errors. The files are made by tests/fuzz/make_parquet.py.
 */
#include "support/parts.h"

#include "core/numbers/random.h"
#include "data/dataset.h"

enum { MOST_BYTES = 1 << 14, GOLDEN = 10 };

static const char *const golden[GOLDEN] = {"plain", "dictionary", "delta",  "delta-2",   "split",
                                           "pages", "times",      "polars", "duckdb-V1", "duckdb-V2"};

static const char *corpus(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], MERCER_CORPUS "/parquet/%s", name);
    return path;
}

static size_t read_corpus(const char *name, uint8_t *out)
{
    char file[64];
    snprintf(file, sizeof file, "%s.parquet", name);
    FILE *from = fopen(corpus(file), "rb");
    assert_non_null(from);
    size_t size = fread(out, 1, MOST_BYTES, from);
    assert_true(size > 12 && size < MOST_BYTES);
    fclose(from);
    return size;
}

/* ---- Equal tables ------------------------------------------------------------------------------------------------ */

static void assert_same_text(const char *one, const char *other)
{
    assert_int_equal(one == NULL, other == NULL);
    if (one) assert_string_equal(one, other);
}

/* Checks that the file gives the same dataset as table.csv, with these options. */
static void assert_like_csv(const char *name, const mercer_dataset_options *with)
{
    char file[64];
    snprintf(file, sizeof file, "%s.parquet", name);
    mercer_dataset_options options = *with;
    options.x = corpus(file);
    mercer_dataset *parquet = open_with(&options);
    options.x = corpus("table.csv");
    mercer_dataset *csv = open_with(&options);
    assert_string_equal(about(parquet).format, "parquet");
    assert_same_text(parquet->schema, csv->schema);
    assert_int_equal(parquet->left_out, csv->left_out);
    csv->format = parquet->format;
    assert_same_data(parquet, csv);
}

static void test_golden(void **state)
{
    (void)state;
    mercer_dataset_options all[] = {data_options(NULL, NULL), data_options(NULL, NULL), data_options(NULL, NULL),
                                    data_options(NULL, NULL), data_options(NULL, NULL), data_options(NULL, NULL),
                                    data_options(NULL, NULL), data_options(NULL, NULL)};
    enum { COUNT = sizeof all / sizeof *all };
    all[0].target = "label";
    all[1].target = "real"; /* some rows have no target */
    all[2].target = "single,cents";
    all[3].task = MERCER_TASK_UNLABELED;
    all[4].target = "label", all[4].spill = 1; /* in a temporary file, block by block */
    all[5].target = "word", all[5].first = 9, all[5].rows = 20, all[5].task = MERCER_TASK_CLASSIFICATION;
    all[6].target = "single", all[6].weight_column = "natural", all[6].group_column = "code";
    all[7].target = "label", all[7].kinds = "whole:category,single:category,day:drop,code:category";
    all[7].missing = "0.1,Rome";
    for (int i = 0; i < GOLDEN; i++)
        for (int k = 0; k < COUNT; k++) assert_like_csv(golden[i], &all[k]);
}

/* libzstd is optional. Without it, the error names the codec. */
static void test_zstd(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(corpus("dictionary-2.parquet"), NULL);
    mercer_dataset *dataset = NULL;
    options.target = "label";
    if (mercer_dataset_open(&dataset, context, &options) != MERCER_OK) {
        assert_refused(&options, MERCER_ERROR_FORMAT, "zstd (6)*libzstd");
        return;
    }
    mercer_dataset_free(dataset);
    assert_like_csv("dictionary-2", &options);
}

static void test_files(void **state)
{
    (void)state;
    static uint8_t bytes[MOST_BYTES];
    byte_file("p-1.parquet", bytes, read_corpus("plain", bytes));
    byte_file("p-2.parquet", bytes, read_corpus("dictionary", bytes));
    mercer_dataset_options options = data_options(all_of("p-*.parquet"), NULL);
    options.target = "label", options.first = 30, options.rows = 20;
    mercer_dataset *data = open_with(&options);
    assert_int_equal(data->rows, 20);
    mercer_dataset_free(data);
    byte_file("p-3.parquet", bytes, read_corpus("nested", bytes));
    assert_refused(&options, MERCER_ERROR_SHAPE, "p-3.parquet: *4 columns*p-1.parquet*11");
    options = data_options(corpus("nested.parquet"), NULL);
    options.target = "label";
    assert_refused(&options, MERCER_ERROR_FORMAT, "nested.parquet: column 'pair'*list");
    options.kinds = "pair:drop";
    assert_refused(&options, MERCER_ERROR_FORMAT, "column 'point'*struct");
    options.kinds = "pair:drop,point:drop";
    data = open_with(&options);
    assert_int_equal(about(data).features, 1);
    mercer_dataset_free(data);
    options.header = MERCER_OFF;
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "option header");
}

/* A file of targets: its only column, or a named one. */
static void test_targets(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(corpus("plain.parquet"), corpus("delta.parquet"));
    options.target = "cents";
    mercer_dataset *apart = open_with(&options);
    options.y = corpus("table.csv");
    mercer_dataset *csv = open_with(&options);
    assert_same_data(apart, csv);
}

/* ---- Damage -------------------------------------------------------------------------------------------------------- */

/* Opens the bytes as a file. A failure has a message of one line that names the file. */
static mercer_status open_bytes(const uint8_t *bytes, size_t size)
{
    mercer_dataset_options options = data_options(byte_file("x.parquet", bytes, size), NULL);
    mercer_dataset *data = NULL;
    options.target = "label";
    mercer_status status = mercer_dataset_open(&data, context, &options);
    if (status != MERCER_OK) {
        assert_null(strchr(mercer_last_error(context), '\n'));
        assert_non_null(strstr(mercer_last_error(context), "x.parquet: "));
    }
    mercer_dataset_free(data);
    return status;
}

static void test_cut(void **state)
{
    (void)state;
    static uint8_t bytes[MOST_BYTES];
    size_t size = read_corpus("plain", bytes);
    for (size_t cut = 4; cut < size; cut += cut < size - 600 ? 61 : 1)
        assert_int_not_equal(open_bytes(bytes, cut), MERCER_OK);
    uint32_t length = UINT32_MAX;
    memcpy(bytes + size - 8, &length, 4);
    mercer_dataset_options options = data_options(byte_file("x.parquet", bytes, size), NULL);
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.parquet: *footer");
    memcpy(bytes, "PARE", 4);
    byte_file("x.parquet", bytes, size);
    assert_refused(&options, MERCER_ERROR_FORMAT, "x.parquet: *encrypted");
}

/* Any byte may be wrong: the result is a dataset or an error. */
static void test_damage(void **state)
{
    (void)state;
    static const uint8_t values[] = {0x00, 0x7f, 0xff};
    static uint8_t bytes[MOST_BYTES];
    const char *const files[] = {"dictionary", "delta-2", "split"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        size_t size = read_corpus(files[f], bytes);
        for (size_t i = f; i < size; i += 3) {
            uint8_t was = bytes[i];
            bytes[i] = values[i / 3 % 3];
            open_bytes(bytes, size);
            bytes[i] = was;
        }
        assert_int_equal(open_bytes(bytes, size), MERCER_OK);
    }
    /* the checksum of a page finds any change of its values */
    size_t size = read_corpus("split", bytes);
    bytes[60] ^= 1;
    open_bytes(bytes, size);
    assert_non_null(strstr(mercer_last_error(context), "column 'whole', row group 0: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_zstd),
                                       cmocka_unit_test(test_files),  cmocka_unit_test(test_targets),
                                       cmocka_unit_test(test_cut),    cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
