/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets from strings and bytes in the test's source; memory leaks are found at the end. */
#ifndef MRC_TESTS_DATASETS_H
#define MRC_TESTS_DATASETS_H

#include "support/check.h"

#include "core/matrix.h"
#include "support/allocator.h"
#include "support/folder.h"

#include <zlib.h>

enum { WARNING_CHARS = 2048 };

static mercer_context *context;
static test_allocator allocator;

static inline int open_datasets(void **state)
{
    (void)state;
    folder_open();
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 1;
    options.allocator = test_allocator_table(&allocator);
    return mercer_context_create(&context, &options) != MERCER_OK;
}

static inline int close_datasets(void **state)
{
    (void)state;
    mercer_context_free(context);
    folder_close();
    return allocator.live != 0 || allocator.misused != 0;
}

/* Write a string or bytes to a file in the test's folder; return the path of the file. */
static inline const char *text_file(const char *name, const char *text)
{
    const char *path = in_folder(name);
    write_bytes(path, text, strlen(text));
    return path;
}

static inline const char *byte_file(const char *name, const void *data, size_t count)
{
    const char *path = in_folder(name);
    write_bytes(path, data, count);
    return path;
}

static inline const char *gzip_file(const char *name, const void *data, size_t count)
{
    const char *path = in_folder(name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_true(count == 0 || gzwrite(file, data, (unsigned)count) == (int)count);
    assert_int_equal(gzclose(file), Z_OK);
    return path;
}

/* Write an NPY file with this version, header text and data to the folder; return the path of the file. */
static inline const char *npy_file(const char *name, int version, const char *header, const void *data, size_t count)
{
    static unsigned char all[1 << 17] = "\x93NUMPY";
    size_t begin = version == 1 ? 10 : 12, length = strlen(header);
    assert_true(begin + length + count <= sizeof all);
    all[6] = (unsigned char)version;
    for (size_t i = 8; i < begin; i++) all[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(all + begin, header, length);
    if (count) memcpy(all + begin + length, data, count);
    return byte_file(name, all, begin + length + count);
}

/* Write an NPY file with a header like numpy's, padded so that the data begin at a multiple of 64. */
static inline const char *plain_file(const char *name, const char *descr, bool fortran, const char *shape,
                                     const void *data, size_t count)
{
    char header[128];
    int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr,
                          fortran ? "True" : "False", shape);
    snprintf(header + length, sizeof header - (size_t)length, "%*s\n", 117 - length, "");
    return npy_file(name, 1, header, data, count);
}

static inline mercer_dataset_options data_options(const char *x, const char *y)
{
    mercer_dataset_options options;
    options = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    options.x = x;
    options.y = y;
    return options;
}

static inline mercer_dataset *open_with(const mercer_dataset_options *options)
{
    mercer_dataset *dataset = NULL;
    assert_succeeds(context, mercer_dataset_open(&dataset, context, options));
    return dataset;
}

static inline mercer_dataset *open_data(const char *x, const char *y)
{
    mercer_dataset_options options = data_options(x, y);
    return open_with(&options);
}

static inline void save_last_warning(void *user, mercer_log_level level, const char *message)
{
    (void)level;
    snprintf(user, WARNING_CHARS, "%s", message);
}

/* Check that opening succeeds and that its last warning mentions `says`; NULL: no warning is allowed. */
static inline void assert_warning(const mercer_dataset_options *options, const char *says)
{
    char warned[WARNING_CHARS] = "";
    mercer_context_options with = MERCER_INIT(mercer_context_options);
    mercer_context *listening;
    mercer_dataset *data;
    with.log = save_last_warning, with.log_user = warned, with.log_level = MERCER_LOG_WARNING;
    assert_succeeds(NULL, mercer_context_create(&listening, &with));
    assert_succeeds(listening, mercer_dataset_open(&data, listening, options));
    if (says)
        assert_that(mentions(warned, says), "'%s', not '%s'", warned, says);
    else
        assert_string_equal(warned, "");
    mercer_dataset_free(data);
    mercer_context_free(listening);
}

/* Check that opening fails with that status and a message that mentions `part`, and that it leaks no memory. */
#define assert_refused(options, status, part) check_refused((options), (status), (part), __FILE__, __LINE__)

static inline void check_refused(const mercer_dataset_options *options, mercer_status status, const char *part,
                                 const char *file, int line)
{
    mercer_dataset *dataset = (mercer_dataset *)&allocator; /* not NULL: a failure must set the pointer to NULL */
    int64_t live = allocator.live;
    mercer_status got = mercer_dataset_open(&dataset, context, options);
    check_fails(context, got, status, part, "mercer_dataset_open", file, line);
    if (got == MERCER_OK || dataset || allocator.live != live || strchr(mercer_last_error(context), '\n')) {
        print_error("a refused dataset left memory or files, or its message has several lines: '%s'\n",
                    mercer_last_error(context));
        _fail(file, line);
    }
}

static inline mercer_dataset_info about(const mercer_dataset *dataset)
{
    mercer_dataset_info info = {.struct_size = sizeof info};
    assert_succeeds(context, mercer_dataset_query(dataset, &info));
    return info;
}

/* Check that the samples are these numbers, row by row. */
static inline void assert_samples(const mercer_dataset *dataset, int64_t rows, int64_t cols, const double *expected)
{
    mercer_matrix x = mercer_dataset_samples(dataset);
    assert_int_equal(x.rows, rows);
    assert_int_equal(x.cols, cols);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            assert_that(mrc_load(&x, i, j) == expected[i * cols + j], "(%lld, %lld) is %.9g, not %.9g", (long long)i,
                        (long long)j, mrc_load(&x, i, j), expected[i * cols + j]);
}

/* Check the class names (separated by spaces) and the class number of each row. */
static inline void assert_classes(const mercer_dataset *dataset, const char *names, const int32_t *labels)
{
    mercer_dataset_info info = about(dataset);
    assert_int_equal(info.task, MERCER_TASK_CLASSIFICATION);
    char joined[1024] = "";
    for (int64_t i = 0; i < info.outputs; i++) {
        if (i) strcat(joined, " ");
        strcat(joined, info.labels[i]);
    }
    assert_string_equal(joined, names);
    for (int64_t i = 0; i < info.rows; i++) assert_int_equal(mercer_dataset_labels(dataset)[i], labels[i]);
}

/* Check the feature names, separated by bars. */
static inline void assert_feature_names(const mercer_dataset *data, const char *names)
{
    char joined[2048] = "";
    mercer_dataset_info info = about(data);
    for (int64_t j = 0; j < info.features; j++) {
        if (j) strcat(joined, "|");
        strcat(joined, info.feature_names[j]);
    }
    assert_string_equal(joined, names);
}

/* Check the regression targets, compared in double. */
static inline void assert_values(const mercer_dataset *dataset, int64_t cols, const double *expected)
{
    mercer_dataset_info info = about(dataset);
    assert_int_equal(info.task, MERCER_TASK_REGRESSION);
    assert_int_equal(info.outputs, cols);
    assert_null(mercer_dataset_labels(dataset));
    mercer_matrix x = mrc_view(malloc((size_t)(info.rows * info.features * 8)), info.rows, info.features, info.dtype);
    mercer_matrix y = mrc_view(malloc((size_t)(info.rows * cols * 8)), info.rows, cols, MERCER_F64);
    assert_succeeds(context, mercer_dataset_read(dataset, &x, &y, NULL, NULL, NULL, 0));
    for (int64_t i = 0; i < info.rows * cols; i++)
        assert_that(((double *)y.data)[i] == expected[i], "target %lld is %.17g", (long long)i, ((double *)y.data)[i]);
    free(x.data), free(y.data);
}

#endif
