/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fingerprint of a dataset: XXH3 of its shape, its samples (only evenly spaced blocks if they are large), its targets
 * and its class names. Weights, keys, names of columns and the schema are not included.
 *
 * The hash does not depend on how rows are stored: in one matrix, in parts, or with padding. Streaming and one-shot
 * XXH3 give the same value, so each form of storage uses the variant that needs no copy. Numbers are hashed in the byte
 * order of the machine.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"

#include <string.h>
#include <xxhash.h>

/* Samples of up to WHOLE_BYTES are hashed completely, in about 0.1 s. Of larger samples, BLOCKS evenly spaced blocks
   are hashed, 4 MiB in total. */
enum { BLOCKS = 64, BLOCK_BYTES = 1 << 16, WHOLE_BYTES = 1 << 30 };

/* Hashes data with the previous hash as the seed, so that the result depends on all data so far. */
static uint64_t mix_block(uint64_t hash, const void *data, int64_t bytes)
{
    return XXH3_64bits_withSeed(data, (size_t)bytes, hash);
}

/* Rows of one matrix or of several parts. Both are hashed as one contiguous sequence of bytes. */
typedef struct stored {
    const mercer_matrix *matrix;
    const mrc_parts *parts;
    XXH3_state_t *state; /* streaming state, for parts and for rows with padding */
    int64_t most;        /* largest size in bytes that is hashed completely */
} stored;

/* Hashes bytes at .. at + bytes - 1 of a matrix whose rows have `row` bytes and begin `stride` bytes apart. Padding
   does not count in these offsets. */
static uint64_t mix_apart(uint64_t hash, const stored *rows, int64_t row, int64_t stride, int64_t at, int64_t bytes)
{
    const char *data = rows->matrix->data;
    XXH3_64bits_reset_withSeed(rows->state, hash);
    for (int64_t end = at + bytes, next; at < end; at = next) {
        next = mrc_min(end, (at / row + 1) * row);
        XXH3_64bits_update(rows->state, data + at / row * stride + at % row, (size_t)(next - at));
    }
    return XXH3_64bits_digest(rows->state);
}

/* Hashes bytes at .. at + bytes - 1 of all rows. */
static uint64_t mix_range(uint64_t hash, const stored *rows, int64_t at, int64_t bytes)
{
    int64_t size = mrc_dtype_size(rows->matrix->dtype), row = rows->matrix->cols * size;
    bool apart = rows->matrix->ld > rows->matrix->cols && rows->matrix->rows > 1;
    if (rows->parts->count == 0 && apart && row > 0)
        return mix_apart(hash, rows, row, rows->matrix->ld * size, at, bytes);
    if (rows->parts->count == 0) return mix_block(hash, (const char *)rows->matrix->data + at, bytes);
    XXH3_64bits_reset_withSeed(rows->state, hash);
    for (int64_t i = 0; i < rows->parts->count; i++) {
        const mrc_part *part = &rows->parts->list[i];
        int64_t begin = mrc_max(at, part->first * row), end = (part->first + part->rows.rows) * row;
        end = mrc_min(end, at + bytes);
        if (begin < end)
            XXH3_64bits_update(rows->state, (const char *)part->rows.data + (begin - part->first * row),
                               (size_t)(end - begin));
    }
    return XXH3_64bits_digest(rows->state);
}

/* Hashes all rows, or evenly spaced blocks of them from the first byte to the last. */
static uint64_t mix_samples(uint64_t hash, const stored *rows)
{
    int64_t bytes = rows->matrix->rows * rows->matrix->cols * mrc_dtype_size(rows->matrix->dtype);
    if (bytes <= rows->most) return mix_range(hash, rows, 0, bytes);
    int64_t span = bytes - BLOCK_BYTES;
    for (int64_t i = 0; i < BLOCKS; i++) {
        /* span * i / (BLOCKS - 1) without overflow */
        int64_t at = span / (BLOCKS - 1) * i + span % (BLOCKS - 1) * i / (BLOCKS - 1);
        hash = mix_range(hash, rows, at, BLOCK_BYTES);
    }
    return hash;
}

/* Hashes stored samples and targets. The limit `most` applies to samples only: targets are always hashed completely. */
static uint64_t mix_stored(uint64_t hash, const mercer_dataset *dataset, XXH3_state_t *state, int64_t most)
{
    const stored x = {&dataset->x, &dataset->x_parts, state, most}, y = {&dataset->y, &dataset->y_parts, state, most};
    hash = mix_samples(hash, &x);
    if (dataset->labels) hash = mix_block(hash, dataset->labels, dataset->rows * (int64_t)sizeof(int32_t));
    if (!mrc_dataset_has_values(dataset)) return hash;
    return mix_range(hash, &y, 0, dataset->rows * dataset->y.cols * mrc_dtype_size(dataset->y.dtype));
}

/* Hashes some synthetic samples with their targets. These values identify the sequence and the dataset's first sample
   in it. */
static mercer_status mix_computed(uint64_t *hash, const mercer_dataset *dataset)
{
    int64_t row = dataset->features * mrc_dtype_size(dataset->dtype), count = mrc_min(dataset->rows, BLOCKS);
    mercer_matrix x, y;
    MRC_SCOPE(scope, dataset->context);
    MRC_TRY(mrc_scope_view(&scope, &x, 1, dataset->features, dataset->dtype, "a fingerprint"));
    MRC_TRY(mrc_scope_view(&scope, &y, 1, dataset->outputs, MERCER_F64, "a fingerprint"));
    for (int64_t i = 0; i < count; i++) {
        int64_t at = count > 1 ? (dataset->rows - 1) / (count - 1) * i : 0;
        mrc_dataset_fetch(dataset, NULL, at, &x, &y, NULL);
        *hash = mix_block(*hash, x.data, row);
        *hash = mix_block(*hash, y.data, dataset->outputs * (int64_t)sizeof(double));
    }
    return MERCER_OK;
}

mercer_status mrc_dataset_hash(const mercer_dataset *dataset, int64_t most, uint64_t *out)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    if (!out) return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    int64_t shape[] = {dataset->rows, dataset->features, dataset->outputs, dataset->dtype, dataset->task};
    uint64_t hash = mix_block(0, shape, sizeof shape);
    if (dataset->synth) {
        MRC_TRY(mix_computed(&hash, dataset));
    } else {
        XXH3_state_t *state = XXH3_createState();
        if (!state) return mrc_fail(dataset->context, MERCER_ERROR_MEMORY, "out of memory for a fingerprint");
        hash = mix_stored(hash, dataset, state, most);
        XXH3_freeState(state);
    }
    for (int64_t i = 0; dataset->label_names && i < dataset->outputs; i++)
        hash = mix_block(hash, dataset->label_names[i], (int64_t)strlen(dataset->label_names[i]) + 1);
    *out = hash;
    return MERCER_OK;
}

mercer_status mrc_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out)
{
    return mrc_dataset_hash(dataset, WHOLE_BYTES, out);
}

mercer_status mrc_dataset_checksum(const mercer_dataset *dataset, uint64_t *out)
{
    return mrc_dataset_hash(dataset, INT64_MAX, out);
}
