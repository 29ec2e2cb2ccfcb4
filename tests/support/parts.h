/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that two datasets are equal in all public properties, wherever their rows are stored. */
#ifndef MRC_TESTS_PARTS_H
#define MRC_TESTS_PARTS_H

#include "support/datasets.h"

/* Return the path of a file or pattern in the folder. It stays valid for sixteen calls; calls of in_folder do not
   count. */
static inline const char *all_of(const char *name)
{
    static char paths[16][FOLDER_CHARS + 128];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void assert_same_info(const mercer_dataset *one, const mercer_dataset *other)
{
    mercer_dataset_info a = about(one), b = about(other);
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.features, b.features);
    assert_int_equal(a.outputs, b.outputs);
    assert_int_equal(a.dtype, b.dtype);
    assert_int_equal(a.task, b.task);
    assert_string_equal(a.format, b.format);
    assert_int_equal(a.height, b.height);
    assert_int_equal(a.width, b.width);
    assert_int_equal(a.channels, b.channels);
    assert_int_equal(a.mapped, b.mapped);
    assert_int_equal(a.bytes, b.bytes);
    assert_int_equal(a.feature_names == NULL, b.feature_names == NULL);
    for (int64_t i = 0; a.feature_names && i < a.features; i++)
        assert_string_equal(a.feature_names[i], b.feature_names[i]);
    for (int64_t i = 0; a.labels && i < a.outputs; i++) assert_string_equal(a.labels[i], b.labels[i]);
    uint64_t left, right;
    assert_succeeds(context, mercer_dataset_fingerprint(one, &left));
    assert_succeeds(context, mercer_dataset_fingerprint(other, &right));
    assert_true(left == right);
}

/* Compare all rows in order, as written to NPY files. */
static inline void assert_same_rows(const mercer_dataset *one, const mercer_dataset *other)
{
    bool targets = about(one).task != MERCER_TASK_UNLABELED;
    const char *x[] = {in_folder("x1.npy"), in_folder("x2.npy")}, *y[] = {in_folder("y1.npy"), in_folder("y2.npy")};
    assert_succeeds(context, mercer_dataset_write(one, x[0], targets ? y[0] : NULL));
    assert_succeeds(context, mercer_dataset_write(other, x[1], targets ? y[1] : NULL));
    assert_same_bytes(x[0], x[1]);
    if (targets) assert_same_bytes(y[0], y[1]);
}

/* Compare two passes in random order, each with a preprocessing fitted to its own dataset. */
static inline void assert_same_stream(mercer_dataset *one, mercer_dataset *other, int64_t block, const char *spec)
{
    mercer_dataset *data[2] = {one, other};
    mercer_source source[2];
    mercer_preprocess *preprocess[2];
    mercer_batch batch[2];
    memset(batch, 0, sizeof batch);
    for (int i = 0; i < 2; i++) {
        assert_succeeds(context, mercer_preprocess_fit(&preprocess[i], context, spec, data[i]));
        mercer_stream_options options = {.struct_size = sizeof options, .seed = 5, .block = block};
        options.preprocess = preprocess[i];
        options.prefetch = i ? MERCER_ON : MERCER_OFF;
        assert_succeeds(context, mercer_source_from_dataset(&source[i], data[i], &options));
    }
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 2; i++) assert_int_equal(source[i].restart(source[i].user, epoch), 0);
        do {
            for (int i = 0; i < 2; i++) assert_int_equal(source[i].next(source[i].user, 11, &batch[i]), 0);
            const mercer_matrix *x = &batch[0].X, *y = &batch[0].Y;
            assert_int_equal(x->rows, batch[1].X.rows);
            assert_int_equal(x->dtype, batch[1].X.dtype);
            if (x->rows == 0) break;
            assert_memory_equal(x->data, batch[1].X.data, (size_t)(x->rows * x->ld * mrc_dtype_size(x->dtype)));
            assert_memory_equal(y->data, batch[1].Y.data, (size_t)(y->rows * y->ld * mrc_dtype_size(y->dtype)));
            assert_memory_equal(batch[0].rows, batch[1].rows, (size_t)x->rows * sizeof(int64_t));
        } while (true);
    }
    for (int i = 0; i < 2; i++) mercer_source_free(&source[i]), mercer_preprocess_free(preprocess[i]);
}

/* Compare info, rows and streams; free both datasets. */
static inline void assert_same_data(mercer_dataset *one, mercer_dataset *other)
{
    assert_same_info(one, other);
    assert_same_rows(one, other);
    if (about(one).task != MERCER_TASK_UNLABELED) {
        assert_same_stream(one, other, 0, "standardize");
        assert_same_stream(one, other, 7, "none");
    }
    mercer_dataset_free(one), mercer_dataset_free(other);
}

#endif
