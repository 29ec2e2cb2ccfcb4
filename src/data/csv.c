/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CSV and TSV: a first walk over the text counts its records, so that all memory is taken (or refused) before a number is
 * read; a second walk reads them.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/csv_parse.h"
#include "data/number.h"
#include "data/readers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_CHARS = 64 }; /* of a column in a message, or when compared with a short name */

typedef struct table {
    mrc_reading *reading;
    mrc_csv start; /* the first record, header or not */
    mrc_csv data;  /* the first record of data */
    int64_t columns, records;
    bool header;
    int64_t target; /* column; -1: none */
} table;

static mercer_status fail_line(const table *self, int64_t line, const char *what)
{
    return mrc_fail(self->reading->input->context, MERCER_ERROR_FORMAT, "%s: line %lld: %s", self->reading->input->path,
                    (long long)line, what);
}

/* ---- First walk ---------------------------------------------------------------------------------------------- */

static mercer_status begin(table *self, mrc_reading *reading)
{
    const mrc_input *input = reading->input;
    const char *at = (const char *)input->data, *end = at + input->bytes;
    *self = (table){.reading = reading, .target = -1};
    if (input->bytes >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: is UTF-16 text; save it as UTF-8", input->path);
    const char *zero = memchr(at, 0, (size_t)input->bytes);
    if (zero)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: a zero byte at offset %lld; it is not text",
                        input->path, (long long)(zero - at));
    if (input->bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* the mark of UTF-8 */
    char separator = reading->format == MRC_FORMAT_TSV    ? '\t'
                     : reading->format == MRC_FORMAT_TEXT ? 0
                                                          : mrc_csv_find_separator(at, end);
    self->start = (mrc_csv){.at = at, .end = end, .line = 1, .separator = separator};
    return MERCER_OK;
}

/* Counts records, and columns of the first one. */
static mercer_status count_records(table *self)
{
    mrc_csv csv = self->start;
    mrc_csv_field field;
    int64_t blank = 0;
    while (csv.at < csv.end) {
        int64_t line = csv.line;
        if (mrc_csv_skip_blank(&csv)) {
            if (!blank) blank = line;
            continue;
        }
        if (blank) return fail_line(self, blank, "is empty; only at the end of the file lines may be");
        do {
            const char *wrong = mrc_csv_next(&csv, &field);
            if (wrong) return fail_line(self, field.line, wrong);
            if (self->records == 0) self->columns++;
        } while (!field.last);
        self->records++;
    }
    if (self->records == 0) return fail_line(self, 1, "the file holds nothing but empty lines");
    return MERCER_OK;
}

/* ---- Header and target --------------------------------------------------------------------------------------- */

static mrc_number kind_of(const mrc_csv_field *field)
{
    double value;
    return mrc_read_number(field->text, field->text + field->length, &value);
}

/* The name of a column, without spaces around it. */
static void copy_name(const mrc_csv_field *field, char *out, int64_t size)
{
    int64_t length = mrc_csv_copy(field, out, size), skipped = 0;
    while (length > 0 && (out[length - 1] == ' ' || out[length - 1] == '\t')) out[--length] = 0;
    while (out[skipped] == ' ' || out[skipped] == '\t') skipped++;
    memmove(out, out + skipped, (size_t)(length - skipped) + 1);
}

/* Names that say "this is the target" without being asked. */
static bool is_customary(const char *name)
{
    static const char *const names[] = {"target", "label", "class", "y"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

/* The first line names the columns: a text stands over a number, or one of the names is that of a target. */
static bool looks_like_header(const table *self)
{
    const char *target = self->reading->options->target;
    mrc_csv first = self->start, second = self->start;
    mrc_csv_field above, below = {.last = false};
    do mrc_csv_next(&second, &below);
    while (!below.last);
    bool more = self->records > 1, any_text = false;
    below.last = !more;
    do {
        char name[NAME_CHARS];
        mrc_csv_next(&first, &above);
        copy_name(&above, name, sizeof name);
        bool text = kind_of(&above) == MRC_NUMBER_TEXT;
        any_text = any_text || text;
        bool named = is_customary(name) && name[1]; /* "y" alone may as well mean yes */
        if (text && (named || (target && strcmp(name, target) == 0))) return true;
        if (below.last) continue;
        mrc_csv_next(&second, &below);
        if (text && kind_of(&below) == MRC_NUMBER) return true;
    } while (!above.last);
    return !more && any_text;
}

/* Sets header and data, given whether there is one. */
static void set_header(table *self, bool header)
{
    mrc_csv_field field = {.last = !header};
    self->header = header;
    self->data = self->start;
    while (!field.last) mrc_csv_next(&self->data, &field);
    if (header) self->records--;
}

/* The column whose name `matches` (a customary one if wanted is NULL); -1: none, -2: several. */
static int64_t find_column(const table *self, const char *wanted)
{
    mrc_csv csv = self->start;
    mrc_csv_field field = {.last = !self->header};
    int64_t found = -1;
    for (int64_t column = 0; !field.last; column++) {
        char name[MRC_ERROR_CHARS];
        mrc_csv_next(&csv, &field);
        copy_name(&field, name, sizeof name);
        if (wanted ? strcmp(name, wanted) != 0 : !is_customary(name)) continue;
        if (found >= 0) return -2;
        found = column;
    }
    return found;
}

/* Column `column` as a message names it. */
static const char *column_text(const table *self, int64_t column, char out[NAME_CHARS + 16])
{
    mrc_csv csv = self->start;
    mrc_csv_field field = {.last = !self->header};
    char name[NAME_CHARS], excerpt[MRC_EXCERPT_CHARS];
    for (int64_t i = 0; i <= column && !field.last; i++) mrc_csv_next(&csv, &field);
    if (self->header) copy_name(&field, name, sizeof name);
    if (self->header)
        snprintf(out, NAME_CHARS + 16, "'%s'", mrc_excerpt(excerpt, name, (int64_t)strlen(name)));
    else
        snprintf(out, NAME_CHARS + 16, "%lld (from 0)", (long long)column);
    return out;
}

static bool parse_index(const char *text, int64_t *index)
{
    double value;
    if (mrc_read_number(text, text + strlen(text), &value) != MRC_NUMBER) return false;
    *index = (int64_t)value;
    return fabs(value) < 1e9 && value == floor(value);
}

static mercer_status find_asked_target(table *self, const char *target)
{
    const mrc_input *input = self->reading->input;
    int64_t column = find_column(self, target), index;
    if (column == -2)
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: several columns are named '%s'; give the index of the target, from 0", input->path,
                        target);
    if (column < 0 && parse_index(target, &index)) {
        column = index < 0 ? self->columns + index : index;
        if (column < 0 || column >= self->columns)
            return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                            "%s: target column %lld does not exist; there are %lld columns, counted from 0",
                            input->path, (long long)index, (long long)self->columns);
    }
    if (column < 0) {
        char first[NAME_CHARS + 16], last[NAME_CHARS + 16];
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: no column is named '%s'; there are %lld columns, from %s to %s%s", input->path, target,
                        (long long)self->columns, column_text(self, 0, first),
                        column_text(self, self->columns - 1, last),
                        self->header ? "" : ", without names (no header was found)");
    }
    self->target = column;
    return MERCER_OK;
}

/* Which column holds the targets. `needed`: there must be one. */
static mercer_status find_target(table *self, const char *asked, bool needed)
{
    if (asked) return find_asked_target(self, asked);
    if (!needed) return MERCER_OK;
    self->target = find_column(self, NULL);
    if (self->target >= 0) return MERCER_OK;
    return mrc_fail(self->reading->input->context, MERCER_ERROR_MISMATCH,
                    "%s: %s its %lld columns is the target: give its name, or its index from 0 (target), or a file of "
                    "targets (y)",
                    self->reading->input->path,
                    self->target == -2 ? "several columns could be it; say which of" : "it does not show which of",
                    (long long)self->columns);
}

/* ---- Second walk --------------------------------------------------------------------------------------------- */

static mercer_status read_target(mrc_targets *targets, const mrc_csv_field *field)
{
    if (!field->escaped) return mrc_targets_text(targets, field->text, field->length, field->line);
    char text[MRC_LABEL_CHARS + 1];
    return mrc_targets_text(targets, text, mrc_csv_copy(field, text, sizeof text), field->line);
}

static mercer_status fail_cell(const table *self, const mrc_csv_field *field, int64_t column, mrc_number kind)
{
    char name[NAME_CHARS + 16], excerpt[MRC_EXCERPT_CHARS];
    const char *what = kind == MRC_NUMBER_MISSING ? "the value is missing; fill it in or leave the row out"
                       : kind == MRC_NUMBER_TEXT  ? "is not a number; features must be (is it the target?)"
                                                  : "is outside the range of f32";
    return mrc_fail(self->reading->input->context, MERCER_ERROR_DATA, "%s: line %lld, column %s: '%s' %s",
                    self->reading->input->path, (long long)field->line, column_text(self, column, name),
                    mrc_excerpt(excerpt, field->text, field->length), what);
}

static mercer_status fail_columns(const table *self, int64_t line, bool fewer)
{
    return mrc_fail(self->reading->input->context, MERCER_ERROR_FORMAT,
                    "%s: line %lld has %s columns than the first line, which has %lld", self->reading->input->path,
                    (long long)line, fewer ? "fewer" : "more", (long long)self->columns);
}

/* One record: features into row (NULL: they are not wanted), the target to the targets (unless NULL). */
static mercer_status read_record(const table *self, mrc_csv *csv, float *row, mrc_targets *targets)
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
static mercer_status read_records(const table *self, const mercer_matrix *x, mrc_targets *targets)
{
    const mrc_slice *slice = &self->reading->slice;
    mrc_csv csv = self->data;
    skip_records(&csv, slice->first);
    for (int64_t i = 0; i < slice->rows; i++)
        MRC_TRY(read_record(self, &csv, x ? (float *)mrc_row(x, i) : NULL, targets));
    return MERCER_OK;
}

/* ---- Samples ------------------------------------------------------------------------------------------------- */

static mercer_status keep_names(const table *self, mercer_dataset *dataset)
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
        copy_name(&field, at, field.length + 1);
        names[j++] = at;
        at += strlen(at) + 1;
    }
    dataset->feature_names = dataset->feature_text;
    return MERCER_OK;
}

static mercer_status make_room(table *self, mercer_dataset *dataset)
{
    mrc_reading *reading = self->reading;
    const mrc_input *input = reading->input;
    int64_t cols = self->columns - (self->target >= 0), rows = reading->slice.rows, count, bytes, each;
    if (cols == 0) return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: has no columns of features", input->path);
    each = reading->want_targets ? MRC_TARGET_BYTES : 0;
    if (!mrc_multiply(rows, cols, &count) || !mrc_multiply(count, sizeof(float), &bytes) ||
        !mrc_add(bytes, rows * each, &bytes))
        bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, bytes));
    MRC_TRY(mrc_alloc(input->context, &dataset->x_memory, count, sizeof(float), "samples"));
    dataset->x = mrc_view(dataset->x_memory, rows, cols, MERCER_F32);
    if (self->header) MRC_TRY(keep_names(self, dataset));
    if (!reading->want_targets) return MERCER_OK;
    MRC_TRY(mrc_targets_open(&reading->targets, input->context, input->path, MRC_TARGETS_TEXT, rows));
    reading->have_targets = true;
    return MERCER_OK;
}

mercer_status mrc_csv_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    table self;
    const mercer_dataset_options *options = reading->options;
    MRC_TRY(begin(&self, reading));
    MRC_TRY(count_records(&self));
    set_header(&self, options->header == MERCER_AUTO ? looks_like_header(&self) : options->header == MERCER_ON);
    /* With a file of targets of its own, `target` names a column of that. */
    MRC_TRY(find_target(&self, options->y && options->task != MERCER_TASK_UNLABELLED ? NULL : options->target,
                        reading->want_targets));
    MRC_TRY(mrc_slice_settle(&reading->slice, reading->input, self.records));
    MRC_TRY(make_room(&self, dataset));
    return read_records(&self, &dataset->x, reading->have_targets ? &reading->targets : NULL);
}

/* ---- Targets alone ------------------------------------------------------------------------------------------- */

/* One record more than there are samples: if it is no number, it is a header. */
static bool first_is_extra(const table *self, int64_t expected)
{
    mrc_csv csv = self->start;
    mrc_csv_field field;
    mrc_csv_next(&csv, &field);
    return self->records == expected + 1 && kind_of(&field) == MRC_NUMBER_TEXT;
}

mercer_status mrc_csv_targets(mrc_reading *reading, int64_t expected)
{
    table self;
    const mrc_input *input = reading->input;
    const mercer_dataset_options *options = reading->options;
    MRC_TRY(begin(&self, reading));
    MRC_TRY(count_records(&self));
    bool header = options->header == MERCER_ON;
    if (options->header == MERCER_AUTO) header = looks_like_header(&self) || first_is_extra(&self, expected);
    set_header(&self, header);
    if (self.columns == 1)
        self.target = 0;
    else
        MRC_TRY(find_target(&self, options->target, true));
    reading->slice.total = self.records;
    if (self.records != expected) return MERCER_OK; /* the caller, who knows both files, says so */
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, reading->slice.rows * MRC_TARGET_BYTES));
    MRC_TRY(mrc_targets_open(&reading->targets, input->context, input->path, MRC_TARGETS_TEXT, reading->slice.rows));
    reading->have_targets = true;
    return read_records(&self, NULL, &reading->targets);
}
