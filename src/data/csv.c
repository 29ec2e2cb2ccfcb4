/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CSV and TSV: a first walk over the text counts its records, so that all memory is taken (or refused) before a number
 * is read; a second walk reads them. A table may go on in further files.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/csv_table.h"
#include "data/number.h"

#include <math.h>
#include <string.h>

/* The files of a table. */
typedef struct tables {
    mrc_reading *reading;
    mrc_table *list; /* (reading->count) */
    mrc_table *lead; /* the first one that holds anything */
    int64_t records; /* of all */
} tables;

/* ---- First walk ---------------------------------------------------------------------------------------------- */

static mercer_status open_tables(tables *self, mrc_reading *reading)
{
    void *memory;
    *self = (tables){.reading = reading};
    MRC_TRY(mrc_alloc(reading->input->context, &memory, reading->count, sizeof(mrc_table), "files of a table"));
    self->list = self->lead = memory;
    mercer_status status = MERCER_OK;
    for (int64_t i = 0; i < reading->count && status == MERCER_OK; i++) {
        status = mrc_table_open(&self->list[i], &reading->input[i], reading->format);
        if (i > 0 && self->lead->records == 0) self->lead = &self->list[i];
        self->records += self->list[i].records;
    }
    if (status == MERCER_OK && self->records == 0)
        status = mrc_fail(reading->input->context, MERCER_ERROR_FORMAT, "%s: holds no samples", reading->name);
    if (status != MERCER_OK) mrc_free(reading->input->context, memory);
    return status;
}

static void close_tables(tables *self)
{
    mrc_free(self->reading->input->context, self->list);
}

/* What the first file shows holds for all that follow. */
static mercer_status follow_lead(tables *self, bool features)
{
    self->records = 0;
    for (int64_t i = 0; i < self->reading->count; i++) {
        mrc_table *table = &self->list[i];
        if (table != self->lead) MRC_TRY(mrc_table_follow(table, self->lead, self->reading->options->header, features));
        self->records += table->records;
    }
    return MERCER_OK;
}

/* ---- Second walk --------------------------------------------------------------------------------------------- */

static mercer_status read_target(mrc_targets *targets, const mrc_csv_field *field)
{
    if (!field->escaped) return mrc_targets_text(targets, field->text, field->length, field->line);
    char text[MRC_LABEL_CHARS + 1];
    return mrc_targets_text(targets, text, mrc_csv_copy(field, text, sizeof text), field->line);
}

static mercer_status fail_cell(const mrc_table *self, const mrc_csv_field *field, int64_t column, mrc_number kind)
{
    char name[MRC_COLUMN_CHARS], excerpt[MRC_EXCERPT_CHARS];
    const char *what = kind == MRC_NUMBER_MISSING ? "the value is missing; fill it in or leave the row out"
                       : kind == MRC_NUMBER_TEXT  ? "is not a number; features must be (is it the target?)"
                                                  : "is outside the range of f32";
    return mrc_fail(self->input->context, MERCER_ERROR_DATA, "%s: line %lld, column %s: '%s' %s", self->input->path,
                    (long long)field->line, mrc_column_text(self, column, name),
                    mrc_excerpt(excerpt, field->text, field->length), what);
}

static mercer_status fail_columns(const mrc_table *self, int64_t line, bool fewer)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                    "%s: line %lld has %s columns than the first line, which has %lld", self->input->path,
                    (long long)line, fewer ? "fewer" : "more", (long long)self->columns);
}

/* One record: features into row (NULL: they are not wanted), the target to the targets (unless NULL). */
static mercer_status read_record(const mrc_table *self, mrc_csv *csv, float *row, mrc_targets *targets)
{
    mrc_csv_field field;
    int64_t line = csv->line;
    for (int64_t column = 0; column < self->columns; column++) {
        mrc_csv_next(csv, &field); /* the first walk has seen that it is well-formed */
        if (field.last != (column == self->columns - 1)) return fail_columns(self, line, field.last);
        if (column == self->target) {
            if (targets) MRC_TRY(read_target(targets, &field));
        } else if (row) {
            double value = 0;
            mrc_number kind = mrc_read_number(field.text, field.text + field.length, &value);
            *row = (float)value;
            if (kind == MRC_NUMBER && isinf(*row)) kind = MRC_NUMBER_INFINITE;
            if (kind != MRC_NUMBER) return fail_cell(self, &field, column, kind);
            row++;
        }
    }
    return MERCER_OK;
}

static void skip_records(mrc_csv *csv, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        mrc_csv_field field;
        do mrc_csv_next(csv, &field);
        while (!field.last);
    }
}

/* Reads the slice; x is (rows, features) f32 or NULL. */
static mercer_status read_records(const tables *self, const mercer_matrix *x, mrc_targets *targets)
{
    const mrc_slice *slice = &self->reading->slice;
    int64_t before = 0, end = slice->first + slice->rows;
    for (int64_t k = 0; k < self->reading->count; before += self->list[k++].records) {
        const mrc_table *table = &self->list[k];
        int64_t first = mrc_max(slice->first, before), last = mrc_min(end, before + table->records);
        if (first >= last) continue;
        mrc_csv csv = table->data;
        if (targets) targets->path = table->input->path;
        skip_records(&csv, first - before);
        for (int64_t i = first - slice->first; i < last - slice->first; i++)
            MRC_TRY(read_record(table, &csv, x ? (float *)mrc_row(x, i) : NULL, targets));
    }
    if (targets) targets->path = self->reading->name;
    return MERCER_OK;
}

/* ---- Samples ------------------------------------------------------------------------------------------------- */

static mercer_status keep_names(const mrc_table *self, mercer_dataset *dataset)
{
    mercer_context *context = dataset->context;
    int64_t text = self->data.at - self->start.at + self->columns, cols = dataset->x.cols;
    MRC_TRY(mrc_alloc(context, &dataset->feature_text, text + cols * (int64_t)sizeof(char *), 1, "names of columns"));
    char **names = dataset->feature_text, *at = (char *)(names + cols);
    mrc_csv csv = self->start;
    for (int64_t column = 0, j = 0; column < self->columns; column++) {
        mrc_csv_field field;
        mrc_csv_next(&csv, &field);
        if (column == self->target) continue;
        mrc_copy_name(&field, at, field.length + 1);
        names[j++] = at;
        at += strlen(at) + 1;
    }
    dataset->feature_names = dataset->feature_text;
    return MERCER_OK;
}

static mercer_status make_room(tables *self, mercer_dataset *dataset)
{
    mrc_reading *reading = self->reading;
    const mrc_table *lead = self->lead;
    const mrc_input *input = lead->input;
    int64_t cols = lead->columns - (lead->target >= 0), rows = reading->slice.rows, count, bytes, each;
    if (cols == 0) return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: has no columns of features", input->path);
    each = reading->want_targets ? MRC_TARGET_BYTES : 0;
    if (!mrc_multiply(rows, cols, &count) || !mrc_multiply(count, sizeof(float), &bytes) ||
        !mrc_add(bytes, rows * each, &bytes))
        bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, bytes));
    MRC_TRY(mrc_alloc(input->context, &dataset->x_memory, count, sizeof(float), "samples"));
    dataset->x = mrc_view(dataset->x_memory, rows, cols, MERCER_F32);
    if (lead->header) MRC_TRY(keep_names(lead, dataset));
    if (!reading->want_targets) return MERCER_OK;
    MRC_TRY(mrc_targets_open(&reading->targets, input->context, reading->name, MRC_TARGETS_TEXT, rows));
    reading->have_targets = true;
    return MERCER_OK;
}

static mercer_status read_samples(tables *self, mercer_dataset *dataset)
{
    mrc_reading *reading = self->reading;
    const mercer_dataset_options *options = reading->options;
    bool shown = options->header == MERCER_AUTO && mrc_table_shows_header(self->lead, options->target);
    mrc_table_set_header(self->lead, shown || options->header == MERCER_ON);
    /* With a file of targets of its own, `target` names a column of that. */
    MRC_TRY(mrc_table_find_target(self->lead,
                                  options->y && options->task != MERCER_TASK_UNLABELLED ? NULL : options->target,
                                  reading->want_targets));
    MRC_TRY(follow_lead(self, true));
    MRC_TRY(mrc_slice_settle(&reading->slice, reading->input->context, reading->name, self->records));
    MRC_TRY(make_room(self, dataset));
    return read_records(self, &dataset->x, reading->have_targets ? &reading->targets : NULL);
}

mercer_status mrc_csv_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    tables self;
    MRC_TRY(open_tables(&self, reading));
    mercer_status status = read_samples(&self, dataset);
    close_tables(&self);
    return status;
}

/* ---- Targets alone ------------------------------------------------------------------------------------------- */

/* One record more than there are samples, or one in each file that has any: if it is no number, it is a header. */
static bool first_is_extra(const tables *self, int64_t expected)
{
    int64_t filled = 0;
    for (int64_t i = 0; i < self->reading->count; i++) filled += self->list[i].records > 0;
    return (self->records == expected + 1 || self->records == expected + filled) &&
           mrc_table_begins_with_text(self->lead);
}

static mercer_status read_targets(tables *self, int64_t expected)
{
    mrc_reading *reading = self->reading;
    const mrc_input *input = reading->input;
    const mercer_dataset_options *options = reading->options;
    bool header = options->header == MERCER_ON;
    if (options->header == MERCER_AUTO)
        header = mrc_table_shows_header(self->lead, options->target) || first_is_extra(self, expected);
    mrc_table_set_header(self->lead, header);
    if (self->lead->columns == 1)
        self->lead->target = 0;
    else
        MRC_TRY(mrc_table_find_target(self->lead, options->target, true));
    MRC_TRY(follow_lead(self, false));
    reading->slice.total = self->records;
    if (self->records != expected) return MERCER_OK; /* the caller, who knows both files, says so */
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, reading->slice.rows * MRC_TARGET_BYTES));
    MRC_TRY(mrc_targets_open(&reading->targets, input->context, reading->name, MRC_TARGETS_TEXT, reading->slice.rows));
    reading->have_targets = true;
    return read_records(self, NULL, &reading->targets);
}

mercer_status mrc_csv_targets(mrc_reading *reading, int64_t expected)
{
    tables self;
    MRC_TRY(open_tables(&self, reading));
    mercer_status status = read_targets(&self, expected);
    close_tables(&self);
    return status;
}
