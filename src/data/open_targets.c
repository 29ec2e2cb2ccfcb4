/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets in separate files: classes are collected, values are used in place where possible.
 *
 * Target i belongs to sample i of all files together. The files must therefore have one target for each sample in the
 * files of samples, even if only a slice is read. Integers in one column are collected unless the caller asked for
 * regression, because they may be classes; mrc_targets_finish decides.
 */
#include "core/matrix.h"
#include "data/opening.h"

#include <string.h>

/* Checks that there is one target per sample of all files, not only of the slice. */
static mercer_status check_rows(const mrc_opening *self, int64_t rows)
{
    if (rows == self->slice.total) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_SHAPE, "%s has %lld targets, but %s has %lld samples", self->options->y,
                    (long long)rows, self->options->x, (long long)self->slice.total);
}

/* ---- Classes ------------------------------------------------------------------------------------------------- */

/* Adds an element of an array (a number or a string) to the targets. */
static mercer_status collect_element(mrc_targets *targets, const mrc_array *array, int64_t i)
{
    char text[MRC_LABEL_CHARS];
    if (!mrc_element_is_text(array->element)) return mrc_targets_number(targets, mrc_array_number(array, i), i);
    if (mrc_array_text(array, i, text, sizeof text)) return mrc_targets_text(targets, text, (int64_t)strlen(text), i);
    return mrc_fail(targets->context, MERCER_ERROR_DATA, "%s: element %lld (from 0) is not a text of at most %d bytes",
                    targets->path, (long long)i, MRC_LABEL_CHARS - 1);
}

/* Adds the elements of the slice. targets->path names the current file in messages. */
static mercer_status collect_files(mrc_targets *targets, const mrc_files *files, const mrc_slice *slice)
{
    for (int64_t k = 0, before = 0; k < files->names.count; before += files->arrays[k++].shape[0]) {
        int64_t first, rows;
        mrc_files_overlap(files, slice, k, before, &first, &rows);
        targets->path = files->names.list[k];
        for (int64_t i = first; i < first + rows; i++) MRC_TRY(collect_element(targets, &files->arrays[k], i));
    }
    targets->path = files->name;
    return MERCER_OK;
}

/* Collects one target per sample, which may be a class. */
static mercer_status collect_arrays(mrc_opening *self, const mrc_files *files)
{
    mrc_element element = files->arrays[0].element;
    bool labels = files->format->labels || mrc_element_is_text(element);
    mrc_target_origin origin = labels                            ? MRC_TARGETS_LABELS
                               : mrc_element_is_integer(element) ? MRC_TARGETS_INTEGER
                                                                 : MRC_TARGETS_REAL;
    MRC_OWNED(mrc_targets_close) mrc_targets targets = {0};
    MRC_TRY(mrc_budget_take(self->context, &self->budget, files->name, self->slice.rows * MRC_TARGET_BYTES));
    MRC_TRY(mrc_targets_open(&targets, self->context, files->name, origin, self->slice.rows));
    MRC_TRY(collect_files(&targets, files, &self->slice));
    const mrc_target_wish wish = {self->options->task, self->options->labels, self->options->label_count};
    if (mrc_targets_find_notation(&targets, &wish)) {
        mrc_targets_clear(&targets);
        MRC_TRY(collect_files(&targets, files, &self->slice));
    }
    return mrc_opening_finish_targets(self, &targets);
}

/* ---- Values -------------------------------------------------------------------------------------------------- */

/* Returns the path of the file that contains row `row`, counted over all files, for a message. */
static const char *name_of_row(const mrc_files *files, int64_t row)
{
    int64_t k = 0;
    while (k < files->names.count - 1 && row >= files->arrays[k].shape[0]) row -= files->arrays[k++].shape[0];
    return files->names.list[k];
}

/* Uses arrays as target values, in place where possible. Fails if a value is not finite. */
static mercer_status take_values(mrc_opening *self, mrc_files *files)
{
    mercer_dataset *dataset = self->dataset;
    mrc_parts *parts = &dataset->y_parts;
    MRC_TRY(mrc_files_parts(files, &self->slice, true, parts));
    for (int64_t i = 0; i < parts->count; i++)
        MRC_TRY(mrc_check_finite(self->context, name_of_row(files, self->slice.first + parts->list[i].first),
                                 &parts->list[i].rows, NULL));
    dataset->task = MERCER_TASK_REGRESSION;
    dataset->outputs = parts->list[0].rows.cols;
    mrc_parts_finish(self->context, parts, &dataset->y, &dataset->y_map, &dataset->y_memory);
    return MERCER_OK;
}

/* ---- Opening ------------------------------------------------------------------------------------------------- */

/* Opens targets in array files, and decides between classes and values. */
static mercer_status open_arrays(mrc_opening *self, mrc_files *files)
{
    mercer_task task = self->options->task;
    int64_t total;
    MRC_TRY(mrc_files_parse(files, NULL, &total));
    MRC_TRY(check_rows(self, total));
    const mrc_array *array = files->arrays;
    bool column = mrc_array_row(array) == 1, text = mrc_element_is_text(array->element);
    bool classes = task == MERCER_TASK_CLASSIFICATION || self->options->labels || text;
    if (classes && !column)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                        "%s: has %lld columns, but classes must be one column of numbers or names", files->name,
                        (long long)mrc_array_row(array));
    if (task == MERCER_TASK_AUTO && column && mrc_element_is_integer(array->element)) classes = true;
    return classes ? collect_arrays(self, files) : take_values(self, files);
}

/* Reads targets from text files. If there are several target columns, the reader stores them in the dataset and leaves
   have_targets false. */
static mercer_status open_text(mrc_opening *self, const mrc_files *files)
{
    MRC_OWNED(mrc_reading_close) mrc_reading reading = mrc_opening_reading(self, files);
    MRC_TRY(files->format->read_targets(&reading, self->dataset, self->slice.total));
    MRC_TRY(check_rows(self, reading.slice.total));
    return reading.have_targets ? mrc_opening_finish_targets(self, &reading.targets) : MERCER_OK;
}

mercer_status mrc_open_targets(mrc_opening *self)
{
    MRC_OWNED(mrc_files_close) mrc_files files = {0};
    MRC_TRY(mrc_files_open(&files, self, self->options->y, self->options->y_format, true));
    return files.format->parse ? open_arrays(self, &files) : open_text(self, &files);
}
