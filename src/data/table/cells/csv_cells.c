/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow path for cells: parses a cell of any kind, and reports errors. */
#include "data/table/cells/csv_actions.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

/* ---- Actions ------------------------------------------------------------------------------------------------- */

/* Returns the action for a column of features. */
static mrc_act act_of(const mrc_cell_column *column)
{
    static const mrc_act acts[] = {[MRC_KIND_NUMBER] = ACT_NUMBER,
                                   [MRC_KIND_BOOLEAN] = ACT_BOOLEAN,
                                   [MRC_KIND_DATE] = ACT_DATE,
                                   [MRC_KIND_CATEGORY] = ACT_WORD,
                                   [MRC_KIND_DROP] = ACT_PASS};
    return mrc_notation_is_set(&column->notation) ? ACT_NOTATION : acts[column->kind];
}

mrc_take_numbers mrc_numbers_of_isa(mrc_isa isa)
{
#if defined(MERCER_X86)
    if (isa >= MRC_ISA_AVX512) return mrc_uk_numbers_u8_avx512;
#endif
    (void)isa;
    return mrc_uk_numbers_u8_scalar;
}

/* Returns whether none of the words for missing values could be a number, so that plain decimals need not be compared
   with these words. */
static bool are_no_numbers(const mrc_missing *missing)
{
    for (int64_t i = 0; i < missing->count; i++)
        if (strpbrk(missing->words[i], "0123456789")) return false;
    return true;
}

mercer_status mrc_sink_open(mrc_sink *sink, mrc_scope *scope, const mrc_layout *layout)
{
    sink->take_numbers = mrc_numbers_of_isa(scope->context->isa);
    sink->plain = are_no_numbers(sink->missing);
    MRC_TRY(mrc_marks_open(&sink->marks, scope, layout->columns));
    MRC_TRY(mrc_scope_alloc_zero(scope, &sink->names, 1, sizeof *sink->names, "names of classes"));
    MRC_TRY(mrc_scope_alloc_zero(scope, &sink->actions, layout->columns, sizeof *sink->actions, "columns of a table"));
    MRC_TRY(mrc_scope_alloc(scope, &sink->sides, layout->columns, sizeof *sink->sides, "columns of a table"));
    sink->side_count = 0;
    for (int64_t column = 0; column < layout->columns; column++) {
        struct mrc_action *action = &sink->actions[column];
        int64_t role = layout->roles[column];
        if (role >= 0 && sink->cells) {
            action->column = &sink->cells->columns[role];
            action->place = role;
            action->act = act_of(action->column);
        } else if (role <= MRC_COLUMN_TARGET) {
            action->act = sink->targets ? ACT_TARGET : sink->y.data ? ACT_VALUE : ACT_PASS;
            action->place = MRC_COLUMN_TARGET - role;
        } else if (column == layout->weight && sink->weights) {
            action->act = ACT_WEIGHT;
        } else if (column == layout->key && sink->keys) {
            action->act = ACT_KEY;
        }
        if (!action->column && action->act != ACT_PASS) sink->sides[sink->side_count++] = column;
    }
    return MERCER_OK;
}

/* ---- Failures ------------------------------------------------------------------------------------------------ */

static mercer_status fail_cell(const mrc_table *self, const mrc_csv_field *field, int64_t column, const char *what)
{
    char name[MRC_COLUMN_CHARS], excerpt[MRC_EXCERPT_CHARS];
    return mrc_fail(self->input->context, MERCER_ERROR_DATA, "%s: %s %lld, column %s: '%s' %s", self->input->path,
                    self->unit, (long long)field->line, mrc_column_text(self, column, name),
                    mrc_excerpt(excerpt, field->text, field->length), what);
}

/* ---- Features ------------------------------------------------------------------------------------------------ */

static void trim(mrc_csv_field *field)
{
    while (field->length > 0 && (*field->text == ' ' || *field->text == '\t')) field->text++, field->length--;
    while (field->length > 0 && (field->text[field->length - 1] == ' ' || field->text[field->length - 1] == '\t'))
        field->length--;
}

static bool is_missing_field(const mrc_sink *to, mrc_csv_field field)
{
    trim(&field);
    return mrc_is_missing(to->missing, field.text, field.length);
}

/* Returns whether a number, such as -999, is one of the words for missing values. */
static bool is_missing_number(const mrc_sink *to, double value)
{
    for (int64_t i = 0; i < to->missing->count && !to->plain; i++) {
        const char *word = to->missing->words[i];
        double number;
        if (mrc_read_number(word, word + strlen(word), &number) == MRC_NUMBER && number == value) return true;
    }
    return false;
}

/* Returns whether a cell could be of the kind that the caller requested, in a notation that is not known yet. */
static bool may_be_noted(const mrc_cell_column *column, const mrc_csv *csv, const mrc_csv_field *field)
{
    mrc_readings wanted = column->wish == MRC_KIND_DATE ? mrc_readings_dates : mrc_readings_numbers;
    return column->asked && (column->kind == MRC_KIND_NUMBER || column->kind == MRC_KIND_DATE) &&
           (mrc_readings_of(field->text, field->text + field->length, csv->separator) & wanted);
}

/* Handles a cell that does not fit the kind of its column. If the kind is fixed, this is an error; otherwise the column
   is marked to be read again as words. The rest of the column is not read in this pass. */
static mercer_status note_odd(const mrc_table *self, const mrc_csv *csv, struct mrc_action *action,
                              const mrc_csv_field *field, int64_t column, const char *what)
{
    if (action->column->fixed && !may_be_noted(action->column, csv, field)) return fail_cell(self, field, column, what);
    action->column->odd = true;
    action->act = ACT_PASS;
    return MERCER_OK;
}

/* Reads a number in any notation of mrc_read_number, or a missing value. */
static mercer_status general_number(const mrc_table *self, const mrc_csv *csv, const mrc_csv_field *field,
                                    const mrc_sink *to, int64_t column, float *cell)
{
    double value = 0;
    struct mrc_action *action = &to->actions[column];
    mrc_number kind = mrc_csv_number(csv, field, &value);
    if (kind == MRC_NUMBER && isinf((float)value)) kind = MRC_NUMBER_INFINITE;
    if (kind == MRC_NUMBER_INFINITE) return fail_cell(self, field, column, "is outside the range of f32");
    bool missing = kind == MRC_NUMBER ? is_missing_number(to, value) : is_missing_field(to, *field);
    if (!missing && kind != MRC_NUMBER)
        return note_odd(self, csv, action, field, column, "is not a number, but the column is numeric");
    if (missing && action->column->strict)
        return fail_cell(self, field, column, "is a missing value; fill it in or remove the row");
    *cell = missing ? mrc_note_gap(action->column) : mrc_cell_number(action->column, value);
    return MERCER_OK;
}

/* Reads true or false, or else a number, because booleans may also be written as 0 and 1. */
static mercer_status read_boolean(const mrc_table *self, const mrc_csv *csv, mrc_csv_field *field, const mrc_sink *to,
                                  int64_t column, float *cell)
{
    trim(field);
    bool yes = field->length == 4 && strncasecmp(field->text, "true", 4) == 0,
         no = field->length == 5 && strncasecmp(field->text, "false", 5) == 0;
    *cell = yes ? 1 : 0;
    return yes || no ? MERCER_OK : general_number(self, csv, field, to, column, cell);
}

static mercer_status read_date(const mrc_table *self, const mrc_csv *csv, const mrc_csv_field *field,
                               const mrc_sink *to, int64_t column, float *cell)
{
    double days;
    struct mrc_action *action = &to->actions[column];
    bool fine = mrc_read_date(field->text, field->text + field->length, &days);
    if (!fine && !is_missing_field(to, *field))
        return note_odd(self, csv, action, field, column, "is not a date such as 2024-02-29, but the column has dates");
    *cell = fine ? mrc_cell_number(action->column, days) : mrc_note_gap(action->column);
    return MERCER_OK;
}

/* Reads a number or a date in the notation of the column. */
static mercer_status read_notation(const mrc_table *self, const mrc_csv_field *field, const mrc_sink *to,
                                   int64_t column, float *cell)
{
    char what[MRC_COLUMN_CHARS], text[MRC_NOTATION_CHARS];
    double value = 0;
    mrc_cell_column *of = to->actions[column].column;
    bool fine = mrc_read_value(of->kind, &of->notation, field->text, field->text + field->length, &value);
    bool missing = fine ? of->notation.decimal && is_missing_number(to, value) : is_missing_field(to, *field);
    if (fine && isinf((float)value)) return fail_cell(self, field, column, "is outside the range of f32");
    if (!fine && !missing) {
        snprintf(what, sizeof what, "is not a %s such as %s, as in the rest of the column",
                 of->kind == MRC_KIND_DATE ? "date" : "number", mrc_notation_text(&of->notation, text));
        return fail_cell(self, field, column, what); /* a column with a notation is fixed */
    }
    *cell = missing ? mrc_note_gap(of) : mrc_cell_number(of, value);
    return MERCER_OK;
}

/* Adds a word to the levels, or maps it to `beyond` if the levels come from a schema. */
static mercer_status new_word(const mrc_table *self, const mrc_csv_field *field, mrc_cell_column *column, float *cell)
{
    int64_t number = -1;
    if (column->closed) {
        if (column->beyond < 0) mrc_note_unknown(column, field->text, field->length);
        *cell = column->beyond;
        return MERCER_OK;
    }
    MRC_TRY(mrc_levels_add(&column->levels, field->text, field->length, self->input->path, field->line, &number));
    *cell = (float)number;
    return MERCER_OK;
}

/* Reads a word of a category, and adds it to the cache of recent words. */
static mercer_status read_word(const mrc_table *self, const mrc_csv_field *field, const mrc_sink *to, int64_t column,
                               float *cell)
{
    char copy[MRC_LABEL_CHARS];
    mrc_csv_field word = *field;
    if (word.escaped) {
        word.length = mrc_csv_copy(field, copy, sizeof copy);
        word.text = copy;
    }
    trim(&word);
    mrc_cell_column *of = to->actions[column].column;
    int64_t number = mrc_levels_find(&of->levels, word.text, word.length);
    bool missing = number < 0 && is_missing_field(to, word);
    if (number < 0 && !missing) return new_word(self, &word, of, cell);
    *cell = missing ? mrc_note_gap(of) : (float)number;
    /* The cache compares fields as they are in the text, with the spaces around them. */
    if (of->levels.recent && !field->escaped)
        mrc_recent_note(of->levels.recent, field->text, field->length, missing ? MRC_GAP_NUMBER : number);
    return MERCER_OK;
}

/* ---- Targets and weights ------------------------------------------------------------------------------------- */

/* Reads a single target, which may be a class. */
static mercer_status read_target(const mrc_csv *csv, const mrc_sink *to, const mrc_csv_field *field, bool *missing)
{
    char text[MRC_LABEL_CHARS + 1];
    double value;
    *missing = to->leave_out && is_missing_field(to, *field);
    if (*missing) return MERCER_OK;
    bool noted = mrc_notation_is_set(&to->targets->notation);
    /* If fields are separated by semicolons, a number may have a decimal comma, which mrc_targets_text does not
       read. */
    if (csv->separator == ';' && !noted && mrc_csv_number(csv, field, &value) == MRC_NUMBER)
        return mrc_targets_number(to->targets, value, field->line);
    if (!field->escaped) {
        MRC_TRY(mrc_targets_text(to->targets, field->text, field->length, field->line));
        if (!to->targets->too_many)
            mrc_recent_note(to->names, field->text, field->length, to->targets->classes[to->targets->rows - 1]);
        return MERCER_OK;
    }
    return mrc_targets_text(to->targets, text, mrc_csv_copy(field, text, sizeof text), field->line);
}

/* Reads one of several targets, or a weight. */
static mercer_status read_value(const mrc_table *self, const mrc_csv *csv, const mrc_sink *to,
                                const mrc_csv_field *field, int64_t column, bool *missing, double *out)
{
    bool target = to->actions[column].act == ACT_VALUE;
    mrc_number kind = mrc_csv_number(csv, field, out);
    *missing = target && to->leave_out &&
               (is_missing_field(to, *field) || (kind == MRC_NUMBER && is_missing_number(to, *out)));
    if (*missing || (kind == MRC_NUMBER && (target || *out >= 0))) return MERCER_OK;
    return fail_cell(self, field, column,
                     kind == MRC_NUMBER            ? "is a weight below 0; weights must be at least 0"
                     : kind == MRC_NUMBER_MISSING  ? "is a missing value; fill it in or remove the row"
                     : kind == MRC_NUMBER_INFINITE ? "is outside the range of f64"
                     : target                      ? "is not a number; use one target column for classes"
                                                   : "is not a number; weights must be numbers");
}

/* Reads a key: a group as 53 bits of a hash of its text, which a double holds exactly; a time as a number, or a date in
   days. */
static mercer_status read_key(const mrc_table *self, const mrc_csv *csv, const mrc_sink *to, const mrc_csv_field *field,
                              int64_t column, double *out)
{
    char text[MRC_LABEL_CHARS + 1];
    int64_t length = field->escaped ? mrc_csv_copy(field, text, sizeof text) : field->length;
    const char *start = field->escaped ? text : field->text;
    if (to->key_kind == MRC_KEYS_GROUPS) {
        *out = (double)(XXH3_64bits(start, (size_t)length) >> 11);
        return MERCER_OK;
    }
    if (mrc_csv_number(csv, field, out) == MRC_NUMBER || mrc_read_date(start, start + length, out)) return MERCER_OK;
    return fail_cell(self, field, column, "is neither a number nor a date; times must be numbers or dates");
}

/* ---- All actions ----------------------------------------------------------------------------------------------- */

mercer_status mrc_cell_read(const mrc_table *self, const mrc_csv *csv, const mrc_sink *to, int64_t column,
                            mrc_csv_field *field, float *cells, bool *left_out)
{
    const struct mrc_action *action = &to->actions[column];
    bool missing = false;
    double value = 0;
    /* if there are no cells, no column is a feature, and `nowhere` is not written */
    float nowhere = 0, *cell = cells ? cells + action->place : &nowhere;
    switch (action->act) {
        case ACT_PASS: break;
        case ACT_NUMBER: return general_number(self, csv, field, to, column, cell);
        case ACT_BOOLEAN: return read_boolean(self, csv, field, to, column, cell);
        case ACT_DATE: return read_date(self, csv, field, to, column, cell);
        case ACT_NOTATION: return read_notation(self, field, to, column, cell);
        case ACT_WORD: return read_word(self, field, to, column, cell);
        case ACT_TARGET:
            if (!*left_out) MRC_TRY(read_target(csv, to, field, &missing));
            break;
        case ACT_VALUE:
            MRC_TRY(read_value(self, csv, to, field, column, &missing, &value));
            ((double *)mrc_row(&to->y, to->rows))[action->place] = value;
            break;
        case ACT_WEIGHT:
            MRC_TRY(read_value(self, csv, to, field, column, &missing, &value));
            to->weights[to->rows] = value;
            break;
        case ACT_KEY: return read_key(self, csv, to, field, column, &to->keys[to->rows]);
    }
    *left_out = *left_out || missing;
    return MERCER_OK;
}
