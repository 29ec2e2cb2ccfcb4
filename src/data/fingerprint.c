/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that tells one dataset from another: XXH3 of its shape, of blocks spread over its samples, of its targets. */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"

#include <string.h>
#include <xxhash.h>

enum { BLOCKS = 64, BLOCK_BYTES = 1 << 16 };

/* Chained: each part's hash depends on those before it. */
static uint64_t mix(uint64_t hash, const void *data, int64_t bytes)
{
    return XXH3_64bits_withSeed(data, (size_t)bytes, hash);
}

static uint64_t mix_samples(uint64_t hash, const mercer_dataset *dataset)
{
    int64_t bytes = dataset->rows * dataset->features * mrc_dtype_size(dataset->dtype);
    const char *data = dataset->x.data;
    if (bytes <= (int64_t)BLOCKS * BLOCK_BYTES) return mix(hash, data, bytes);
    int64_t room = bytes - BLOCK_BYTES;
    for (int64_t i = 0; i < BLOCKS; i++) {
        /* room * i / (BLOCKS - 1) without overflow */
        int64_t at = room / (BLOCKS - 1) * i + room % (BLOCKS - 1) * i / (BLOCKS - 1);
        hash = mix(hash, data + at, BLOCK_BYTES);
    }
    return hash;
}

/* Samples that are computed: some rows with their targets say which sequence it is and where it begins. */
static mercer_status mix_computed(uint64_t *hash, const mercer_dataset *dataset)
{
    int64_t row = dataset->features * mrc_dtype_size(dataset->dtype), count = mrc_min(dataset->rows, BLOCKS);
    void *memory;
    MRC_TRY(mrc_alloc(dataset->context, &memory, mrc_round_up(row, 8) + dataset->outputs * (int64_t)sizeof(double), 1,
                      "a fingerprint"));
    mercer_matrix x = mrc_view(memory, 1, dataset->features, dataset->dtype);
    mercer_matrix y = mrc_view((char *)memory + mrc_round_up(row, 8), 1, dataset->outputs, MERCER_F64);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = count > 1 ? (dataset->rows - 1) / (count - 1) * i : 0;
        mrc_dataset_fetch(dataset, NULL, at, &x, &y, NULL);
        *hash = mix(*hash, x.data, row);
        *hash = mix(*hash, y.data, dataset->outputs * (int64_t)sizeof(double));
    }
    mrc_free(dataset->context, memory);
    return MERCER_OK;
}

mercer_status mrc_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out)
{
    int64_t shape[] = {dataset->rows, dataset->features, dataset->outputs, dataset->dtype, dataset->task};
    uint64_t hash = mix(0, shape, sizeof shape);
    if (dataset->synth) {
        MRC_TRY(mix_computed(&hash, dataset));
    } else {
        hash = mix_samples(hash, dataset);
        if (dataset->labels) hash = mix(hash, dataset->labels, dataset->rows * (int64_t)sizeof(int32_t));
        if (dataset->y.data)
            hash = mix(hash, dataset->y.data, dataset->rows * dataset->y.cols * mrc_dtype_size(dataset->y.dtype));
    }
    for (int64_t i = 0; dataset->label_names && i < dataset->outputs; i++)
        hash = mix(hash, dataset->label_names[i], (int64_t)strlen(dataset->label_names[i]) + 1);
    *out = hash;
    return MERCER_OK;
}
