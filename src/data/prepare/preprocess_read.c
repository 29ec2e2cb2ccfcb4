/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a dataset as a preprocessing makes them, through a buffer of some rows as they are stored. */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"

enum { READ_BYTES = 1 << 20 };

static mercer_status read_preprocessed(const mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                       const int64_t *rows, int64_t first, const mercer_matrix *X,
                                       const mercer_matrix *Y, int32_t *labels)
{
    int64_t row = mrc_max(1, dataset->features * mrc_dtype_size(dataset->dtype));
    int64_t room = mrc_max(1, mrc_min(X->rows, READ_BYTES / row));
    void *memory;
    MRC_TRY(mrc_alloc(dataset->context, &memory, room, row, "a block of samples"));
    for (int64_t i = 0; i < X->rows; i += room) {
        int64_t count = mrc_min(room, X->rows - i);
        mercer_matrix stored = mrc_view(memory, count, dataset->features, dataset->dtype);
        mercer_matrix x = mrc_rows(X, i, count), y = Y ? mrc_rows(Y, i, count) : (mercer_matrix){0};
        mrc_dataset_fetch(dataset, rows ? rows + i : NULL, first + i, &stored, Y ? &y : NULL,
                          labels ? labels + i : NULL);
        mrc_preprocess_rows(preprocess, &x, &stored);
    }
    mrc_free(dataset->context, memory);
    return MERCER_OK;
}

mercer_status mrc_dataset_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t first, const mercer_matrix *X, const mercer_matrix *Y, int32_t *labels)
{
    if (!mrc_preprocess_is_identity(preprocess) || X->dtype != dataset->dtype)
        return read_preprocessed(dataset, preprocess, rows, first, X, Y, labels);
    mrc_dataset_fetch(dataset, rows, first, X, Y, labels);
    return MERCER_OK;
}
