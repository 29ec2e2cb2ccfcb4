/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datasets: finding, reading and releasing their rows.
 *
 * Samples are stored in one matrix (x), in a list of parts, or computed by a generator (synth). Targets are class
 * numbers (labels), one matrix (y), or a second list of parts, whose boundaries may differ from the boundaries of the
 * sample parts. mrc_dataset_fetch handles all of these forms; mrc_dataset_part and mrc_dataset_target need stored
 * samples.
 */
#include "data/dataset.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/synth/synth.h"

#include <stdio.h>
#include <string.h>

/* ---- Releasing ----------------------------------------------------------------------------------------------- */

void mrc_parts_free(mercer_context *context, mrc_parts *parts)
{
    for (int64_t i = 0; i < parts->count; i++) {
        mrc_unmap(&parts->list[i].map);
        mrc_free(context, parts->list[i].memory);
    }
    mrc_free(context, parts->list);
    *parts = (mrc_parts){0};
}

void mrc_dataset_free(mercer_dataset *dataset)
{
    if (!dataset) return;
    mercer_context *context = dataset->context;
    /* A view owns only its lists of parts. The pointers that are released below are NULL in a view, except for arrays
       that the view itself allocated. */
    if (dataset->borrowed) {
        mrc_free(context, dataset->x_parts.list);
        mrc_free(context, dataset->y_parts.list);
    } else {
        mrc_unmap(&dataset->x_map);
        mrc_unmap(&dataset->y_map);
        mrc_parts_free(context, &dataset->x_parts);
        mrc_parts_free(context, &dataset->y_parts);
        mrc_synth_free(context, dataset->synth);
    }
    MRC_FREE_ALL(context, dataset->x_memory, dataset->y_memory, dataset->label_memory, dataset->label_text,
                 dataset->feature_text, dataset->target_text, dataset->unused_text, dataset->weight_memory,
                 dataset->key_memory, dataset->schema_text, dataset);
}

const char *mrc_dataset_class_name(const mercer_dataset *dataset, int64_t k, char number[MRC_CLASS_CHARS])
{
    if (dataset->label_names) return dataset->label_names[k];
    snprintf(number, MRC_CLASS_CHARS, "%lld", (long long)k);
    return number;
}

/* ---- Finding rows -------------------------------------------------------------------------------------------- */

/* Finds the part that contains a row, by bisection. The first rows of parts ascend and no part is empty, so this is the
   last part that begins at or before the row. */
static const mrc_part *find_part(const mrc_parts *parts, int64_t row)
{
    int64_t low = 0, high = parts->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (parts->list[middle].first <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return &parts->list[low];
}

mrc_part mrc_dataset_part(const mercer_dataset *dataset, int64_t row)
{
    if (dataset->x_parts.count > 0) return *find_part(&dataset->x_parts, row);
    return (mrc_part){.rows = dataset->x, .map = dataset->x_map};
}

bool mrc_dataset_is_mapped(const mercer_dataset *dataset)
{
    /* A mapping with an owner is a copy of the file in memory. */
    bool mapped = dataset->x_map.data && !dataset->x_map.owner && dataset->x.data;
    for (int64_t i = 0; i < dataset->x_parts.count; i++) {
        const mrc_mapping *map = &dataset->x_parts.list[i].map;
        mapped = mapped || (map->data && !map->owner);
    }
    return mapped;
}

mercer_status mrc_dataset_check(const mercer_dataset *dataset)
{
    const mrc_parts *const both[] = {&dataset->x_parts, &dataset->y_parts};
    MRC_TRY(mrc_mapping_check(&dataset->x_map));
    MRC_TRY(mrc_mapping_check(&dataset->y_map));
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < both[k]->count; i++) MRC_TRY(mrc_mapping_check(&both[k]->list[i].map));
    return MERCER_OK;
}

bool mrc_dataset_has_values(const mercer_dataset *dataset)
{
    return dataset->y.data || dataset->y_parts.count > 0;
}

void mrc_dataset_hint(const mercer_dataset *dataset, mrc_mapping_hint give, int64_t first, int64_t count)
{
    while (count > 0 && !dataset->synth) {
        /* A part without a mapping, such as converted rows, gets no hint. */
        mrc_part part = mrc_dataset_part(dataset, first);
        int64_t size = part.rows.ld * mrc_dtype_size(part.rows.dtype);
        int64_t some = mrc_min(count, part.first + part.rows.rows - first);
        if (part.map.data) {
            int64_t base = (char *)part.rows.data - (char *)part.map.data;
            give(&part.map, base + (first - part.first) * size, some * size);
        }
        first += some;
        count -= some;
    }
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

/* Copies the target values of row `from` into row `to` of y, converted to the type of y. */
static void copy_values(const mercer_dataset *dataset, int64_t from, const mercer_matrix *y, int64_t to)
{
    const mrc_part *part = dataset->y_parts.count > 0 ? find_part(&dataset->y_parts, from) : NULL;
    const mercer_matrix *values = part ? &part->rows : &dataset->y;
    int64_t row = part ? from - part->first : from;
    if (values->dtype == y->dtype)
        memcpy(mrc_row(y, to), mrc_row(values, row), (size_t)(y->cols * mrc_dtype_size(y->dtype)));
    else
        for (int64_t j = 0; j < y->cols; j++) mrc_store(y, to, j, mrc_load(values, row, j));
}

void mrc_dataset_target(const mercer_dataset *dataset, int64_t from, const mercer_matrix *y, int64_t to)
{
    if (!dataset->labels) {
        copy_values(dataset, from, y, to);
        return;
    }
    memset(mrc_row(y, to), 0, (size_t)(y->cols * mrc_dtype_size(y->dtype)));
    mrc_store(y, to, dataset->labels[from], 1);
}

void mrc_dataset_fetch(const mercer_dataset *dataset, const int64_t *rows, int64_t first, const mercer_matrix *x,
                       const mercer_matrix *y, int32_t *labels)
{
    size_t bytes = (size_t)(dataset->features * mrc_dtype_size(dataset->dtype));
    mrc_part part = {0};
    for (int64_t i = 0; i < x->rows; i++) {
        int64_t from = rows ? rows[i] : first + i;
        if (dataset->synth) {
            mrc_synth_sample(dataset->synth, dataset->synth_first + from, x, y, i, labels ? &labels[i] : NULL);
            continue;
        }
        /* Neighboring rows are usually in one part, so search only if a row is outside of the previous part. The
           initial part is empty, so the first row always causes a search. */
        if (from < part.first || from >= part.first + part.rows.rows) part = mrc_dataset_part(dataset, from);
        memcpy(mrc_row(x, i), mrc_row(&part.rows, from - part.first), bytes);
        if (y) mrc_dataset_target(dataset, from, y, i);
        if (labels) labels[i] = dataset->labels[from];
    }
    /* Pages of listed rows are not released here, but by the reading order in blocks (stream/order.c). */
    if (dataset->spilled && !rows) mrc_dataset_hint(dataset, mrc_mapping_release, first, x->rows);
}
