/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a dataset: one, or several whose rows are concatenated.
 *
 * Samples (open.c) and targets (open_targets.c) both open their files here. Rows are numbered over all files in the
 * order of their names. A slice may begin and end inside any file. A file without rows in the slice gets no part.
 */
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/opening.h"

#include <string.h>

mercer_status mrc_slice_resolve(mrc_slice *slice, mercer_context *context, const char *name, int64_t total)
{
    int64_t end;
    slice->total = total;
    if (total == 0) return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: contains no samples", name);
    /* If `first` is not below `total`, the number of rows becomes 0 or negative and is refused below. */
    if (slice->rows == 0) slice->rows = total - slice->first;
    if (slice->rows > 0 && mrc_add(slice->first, slice->rows, &end) && end <= total) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_SHAPE,
                    "%s: rows from %lld on are requested (%lld rows), but there are only %lld", name,
                    (long long)slice->first, (long long)mrc_max(slice->rows, 1), (long long)total);
}

/* The default budget is half of the memory that is free at this moment. */
mrc_budget mrc_budget_of(const mercer_dataset_options *options)
{
    return (mrc_budget){.allowed = options->memory > 0 ? options->memory : mrc_free_memory() / 2,
                        .spill = options->spill,
                        .copies = options->mapping == MERCER_OFF};
}

mrc_reading mrc_opening_reading(const mrc_opening *opening, const mrc_files *files)
{
    return (mrc_reading){.input = files->inputs,
                         .count = files->names.count,
                         .name = files->name,
                         .options = opening->options,
                         .format = files->format,
                         .slice = opening->slice};
}

void mrc_reading_close(mrc_reading *reading)
{
    mrc_targets_close(&reading->targets);
}

mercer_status mrc_opening_finish_targets(mrc_opening *opening, mrc_targets *targets)
{
    const mercer_dataset_options *options = opening->options;
    mrc_target_wish wish = {options->task, options->labels, options->label_count};
    return mrc_targets_finish(targets, &wish, opening->dataset);
}

/* ---- Opening ------------------------------------------------------------------------------------------------- */

/* Opens all files. Contexts are set first, so that closing is safe after a failure. */
static mercer_status open_inputs(mrc_files *self, mrc_opening *opening)
{
    int64_t count = self->names.count;
    MRC_TRY(mrc_alloc_zero(opening->context, &self->inputs, count, sizeof(mrc_input), "files of a dataset"));
    for (int64_t i = 0; i < count; i++) self->inputs[i].context = opening->context;
    for (int64_t i = 0; i < count; i++)
        MRC_TRY(mrc_input_open(&self->inputs[i], opening->context, self->names.list[i], &opening->budget, count > 1));
    return MERCER_OK;
}

mercer_status mrc_files_open(mrc_files *out, mrc_opening *opening, const char *name, const char *format, bool targets)
{
    *out = (mrc_files){.context = opening->context, .name = name};
    MRC_TRY(mrc_names_find(&out->names, opening->context, name));
    if (out->names.count > 1 && strchr(name, MRC_NAME_SEPARATOR))
        out->name = out->names.list[0]; /* a list is too long for messages */
    MRC_TRY(open_inputs(out, opening));
    MRC_TRY(mrc_format_of_files(&out->format, out->inputs, out->names.count, format, targets));
    if (out->names.count > 1)
        mrc_log(opening->context, MERCER_LOG_INFO, "%s: %lld files, from %s to %s", name, (long long)out->names.count,
                out->names.list[0], out->names.list[out->names.count - 1]);
    return MERCER_OK;
}

void mrc_files_close(mrc_files *self)
{
    for (int64_t i = 0; self->inputs && i < self->names.count; i++) mrc_input_close(&self->inputs[i]);
    mrc_free(self->context, self->inputs);
    mrc_free(self->context, self->arrays);
    mrc_names_free(self->context, &self->names);
    *self = (mrc_files){0};
}

/* ---- Arrays -------------------------------------------------------------------------------------------------- */

mercer_status mrc_files_parse(mrc_files *self, const char *raw, int64_t *total)
{
    MRC_TRY(mrc_alloc(self->context, &self->arrays, self->names.count, sizeof(mrc_array), "files of a dataset"));
    *total = 0;
    for (int64_t i = 0; i < self->names.count; i++) {
        MRC_TRY(self->format->parse(&self->arrays[i], &self->inputs[i], raw));
        MRC_TRY(mrc_array_check_like(&self->arrays[i], &self->inputs[i], self->arrays, self->inputs));
        if (!mrc_add(*total, self->arrays[i].shape[0], total))
            return mrc_fail(self->context, MERCER_ERROR_SHAPE, "%s: the number of rows exceeds 2^63", self->name);
    }
    return MERCER_OK;
}

void mrc_files_overlap(const mrc_files *self, const mrc_slice *slice, int64_t i, int64_t before, int64_t *first,
                       int64_t *rows)
{
    int64_t from = mrc_max(slice->first, before);
    int64_t end = mrc_min(slice->first + slice->rows, before + self->arrays[i].shape[0]);
    *first = from - before;
    *rows = mrc_max(0, end - from);
}

/* Finds a type for the rows of all files: if the integers of one file need f64, all are read as f64. Sets *parts to the
   number of files with rows in the slice. Floating-point files never differ here, because mrc_files_parse requires the
   same element type in all files. */
static mercer_status common_dtype(const mrc_files *self, const mrc_slice *slice, bool real, mercer_dtype *out,
                                  int64_t *parts)
{
    *parts = 0;
    for (int64_t i = 0, before = 0; i < self->names.count; before += self->arrays[i++].shape[0]) {
        int64_t first, rows;
        mercer_dtype dtype = MERCER_F32;
        mrc_files_overlap(self, slice, i, before, &first, &rows);
        if (rows == 0) continue;
        MRC_TRY(mrc_array_dtype(&self->arrays[i], &self->inputs[i], first, rows, real, &dtype));
        if (*parts == 0 || dtype == MERCER_F64) *out = dtype;
        ++*parts;
    }
    return MERCER_OK;
}

/* Makes a part that owns the memory of its rows: converted values, or the mapping and memory of the input. Mapping and
   memory move from the input to the part, so that mrc_files_close does not release them. */
static mercer_status make_part(mrc_part *out, const mrc_array *array, mrc_input *input, int64_t first, int64_t rows,
                               mercer_dtype dtype)
{
    MRC_TRY(mrc_array_matrix(&out->rows, &out->memory, array, input, first, rows, dtype));
    if (out->memory) return MERCER_OK;
    out->map = input->map;
    out->memory = input->memory;
    input->map = (mrc_mapping){0};
    input->memory = NULL;
    return MERCER_OK;
}

mercer_status mrc_files_parts(mrc_files *self, const mrc_slice *slice, bool real, mrc_parts *parts)
{
    mercer_dtype dtype = MERCER_F32;
    int64_t count, made = 0;
    MRC_TRY(common_dtype(self, slice, real, &dtype, &count));
    MRC_TRY(mrc_alloc_zero(self->context, &parts->list, count, sizeof *parts->list, "parts of a dataset"));
    /* The entries are zero, so mrc_parts_free may be called at any time from here on, also after a failure. */
    parts->count = count;
    for (int64_t i = 0, before = 0; i < self->names.count; before += self->arrays[i++].shape[0]) {
        int64_t first, rows;
        mrc_files_overlap(self, slice, i, before, &first, &rows);
        if (rows == 0) continue;
        parts->list[made].first = before + first - slice->first;
        MRC_TRY(make_part(&parts->list[made++], &self->arrays[i], &self->inputs[i], first, rows, dtype));
    }
    return MERCER_OK;
}

void mrc_parts_finish(mercer_context *context, mrc_parts *parts, mercer_matrix *matrix, mrc_mapping *map, void **memory)
{
    const mrc_part *last = &parts->list[parts->count - 1];
    *matrix = mrc_view(NULL, last->first + last->rows.rows, last->rows.cols, last->rows.dtype);
    if (parts->count > 1) return;
    *matrix = last->rows;
    *map = last->map;
    *memory = last->memory;
    parts->count = 0; /* *map and *memory now own the rows of the part */
    mrc_parts_free(context, parts);
}
