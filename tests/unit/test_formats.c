/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of formats: its public interface; every reader rejects invalid bytes with a message that names the file. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/files/readers.h"

static mercer_format_info format_info(int index)
{
    mercer_format_info info = MERCER_INIT(mercer_format_info);
    assert_int_equal(mercer_format_list(&info, index), 1);
    return info;
}

static bool format_holds(int index, bool targets)
{
    mercer_format_info info = format_info(index);
    return targets ? info.targets : info.samples;
}

static int format_count(void)
{
    int count = 0;
    while (mrc_formats[count]) count++;
    return count;
}

static void test_list(void **state)
{
    (void)state;
    static const char *const known[] = {"npy", "idx", "csv", "tsv", "libsvm", "cifar10", "cifar100", "raw", "text"};
    static const int holds[][2] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {0, 1}};
    const int count = format_count();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int at = 0;
        while (at < count && strcmp(format_info(at).name, known[i]) != 0) at++;
        assert_that(at < count, "format %s is not in the list", known[i]);
        assert_true(mrc_format_find(known[i]) == mrc_formats[at]);
        for (int targets = 0; targets < 2; targets++) assert_int_equal(format_holds(at, targets), holds[i][targets]);
    }
    for (int i = 0; i < count; i++) {
        assert_true(format_holds(i, 0) || format_holds(i, 1));
        assert_that(!mrc_formats[i]->parse || (!mrc_formats[i]->read_samples && !mrc_formats[i]->read_targets),
                    "format %s is both arrays and text", format_info(i).name);
        for (int k = 0; k < i; k++) assert_string_not_equal(format_info(k).name, format_info(i).name);
    }
    mercer_format_info info = MERCER_INIT(mercer_format_info);
    assert_int_equal(mercer_format_list(&info, -1), 0);
    assert_int_equal(mercer_format_list(&info, count), 0);
    assert_null(mrc_format_find("hdf5"));
}

/* Check that the options are rejected and that the message lists all valid formats between `before` and `after`. */
static void refused_with_names(const mercer_dataset_options *options, mercer_status status, const char *before,
                               bool targets, const char *last, const char *after)
{
    char part[512];
    int left = 0, used = snprintf(part, sizeof part, "%s", before);
    for (int i = 0; i < format_count(); i++) left += format_holds(i, targets);
    for (int i = 0; i < format_count(); i++)
        if (format_holds(i, targets)) {
            used += snprintf(part + used, sizeof part - (size_t)used, "%s%s", format_info(i).name,
                             --left == 0 ? after
                             : left == 1 ? last
                                         : ", ");
        }
    assert_refused(options, status, part);
}

static void test_unknown_names(void **state)
{
    (void)state;
    mercer_dataset_options options = data_options(text_file("data.csv", "1,2\n3,4\n"), NULL);
    options.y = options.x;
    options.format = "hdf5";
    refused_with_names(&options, MERCER_ERROR_ARGUMENT, "'hdf5'*samples; use auto, ", false, " or ", "");
    options.format = "text";
    assert_refused(&options, MERCER_ERROR_ARGUMENT, "'text'*samples; use auto, npy, ");
    options.format = NULL;
    options.y_format = "libsvm";
    refused_with_names(&options, MERCER_ERROR_ARGUMENT, "'libsvm'*targets; use auto, ", true, " or ", "");
    options.y_format = NULL;
    options.x = byte_file("data.npz", "PK\3\4....", 8);
    refused_with_names(&options, MERCER_ERROR_FORMAT, "zip*npz*", false, " and ", ", *.gz, .zst, .xz");
    options.x = byte_file("noise", "\1\0\2\0\3\0\4\0", 8);
    refused_with_names(&options, MERCER_ERROR_FORMAT, "format*: ", false, " or ", "");
    options.x = text_file("data.csv", "1,2\n3,4\n");
    options.y = byte_file("y.bin", "\1\2", 2);
    refused_with_names(&options, MERCER_ERROR_FORMAT, "format*: ", true, " or ", "");
}

/* Random bytes, on their own or after the beginning of a valid file, are either read or rejected with a message that
   names the file. */
static void test_any_bytes(void **state)
{
    (void)state;
    static const char *const marks[] = {"", "\x93NUMPY\1\0v\0{'descr': '<f4', ", "1 1:2\n", "a,b\n1,2\n"};
    for (int f = 0; f < format_count(); f++) {
        for (uint64_t round = 0; round < 80; round++) {
            char bytes[200];
            size_t head = strlen(marks[round % 4]), size = head + round;
            memcpy(bytes, marks[round % 4], head);
            for (size_t i = head; i < size; i++)
                bytes[i] = (char)(256 * mrc_random_uniform((mrc_rng){5, round}, (uint64_t)i));
            if (size == 0) continue;
            mercer_dataset *dataset = NULL;
            mercer_dataset_options options = data_options(byte_file("bytes", bytes, size), NULL);
            options.format = format_holds(f, 0) ? format_info(f).name : NULL;
            options.raw = "f32:3";
            mercer_status status = mercer_dataset_open(&dataset, context, &options);
            assert_that(status == MERCER_OK || mentions(mercer_last_error(context), "bytes"), "%s: %s",
                        format_info(f).name, mercer_last_error(context));
            assert_true((status == MERCER_OK) == (dataset != NULL));
            mercer_dataset_free(dataset);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_unknown_names),
                                       cmocka_unit_test(test_any_bytes)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
