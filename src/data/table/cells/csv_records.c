/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading of records of a table.
 *
 * In a piece of text without quotes the ends of fields are found first (csv_marks.h). Then cells are read column by
 * column, so that the processor can predict the branches for cells of one kind. Records with quotes and records at the
 * end of the file are split by mrc_csv_next. Nearly all cells are plain decimals (plain_number.h) or words that
 * occurred recently in the column (recent.h). All other cells take the slow path, mrc_cell_read.
 *
 * The result is the same as if records were read one after the other. Columns are independent, except that a record
 * without a target is skipped, so targets are read first. If several cells are invalid, the first one in the text is
 * reported.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/table/cells/csv_actions.h"
#include "data/table/cells/plain_number.h"
#include "data/table/cells/plain_numbers.h"

/* FEW_BYTES: bytes that fast paths may read from the beginning of a field on; PIECE_ROWS: maximum number of records in
   a piece */
enum { FEW_BYTES = 48, PIECE_ROWS = 1024 };

static mercer_status fail_columns(const mrc_table *self, int64_t line, bool fewer)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                    "%s: line %lld has %s columns than the first line, which has %lld", self->input->path,
                    (long long)line, fewer ? "fewer" : "more", (long long)self->columns);
}

static float *cells_of(const mrc_sink *to, int64_t row)
{
    return to->cells ? (float *)mrc_row(&to->cells->x, row - to->base) : NULL;
}

/* ---- Fast paths ---------------------------------------------------------------------------------------------- */

/* Position of a text, and the properties of its file that fast paths need. */
typedef struct place {
    const char *begin; /* beginning of the file */
    int64_t line;
    char decimal; /* decimal mark in addition to '.' */
} place;

static place cell_place(const mrc_table *self, const mrc_csv *csv)
{
    return (place){(const char *)self->input->data, csv->line, csv->separator == ';' ? ',' : '.'};
}

/* Fast path for a plain decimal or an empty field. Returns false, and changes nothing, for anything else. */
static inline bool take_number(mrc_cell_column *column, const char *text, int64_t length, const place *at, float *cell)
{
    double value;
    if (length == 0 && !column->strict) {
        *cell = mrc_note_gap(column);
        return true;
    }
    if (length == 0 || !mrc_plain_number(text, length, at->decimal, at->begin, &value)) return false;
    *cell = mrc_cell_number(column, value);
    return true;
}

/* Fast path for a recent word or an empty field. Returns false, and changes nothing, for anything else. */
static inline bool take_word(mrc_cell_column *column, const char *text, int64_t length, float *cell)
{
    int32_t number = length == 0 ? MRC_GAP_NUMBER : MRC_RECENT_NONE;
    if (length > 0 && column->levels.recent) number = mrc_recent_find(column->levels.recent, text, length);
    if (number == MRC_RECENT_NONE) return false;
    *cell = number < 0 ? mrc_note_gap(column) : (float)number;
    return true;
}

/* Returns whether targets may take the fast path for plain decimals. */
static inline bool has_plain_targets(const mrc_sink *to)
{
    return to->plain && !mrc_notation_is_set(&to->targets->notation);
}

/* Takes a target that is a plain decimal or a recent class name. Returns false if it is anything else. */
static inline bool take_target(const mrc_sink *to, const char *text, int64_t length, const place *at,
                               mercer_status *status)
{
    double value;
    if (length == 0) return false;
    if (has_plain_targets(to) && mrc_plain_number(text, length, at->decimal, at->begin, &value)) {
        *status = mrc_targets_number(to->targets, value, at->line);
        return true;
    }
    int32_t number = to->targets->too_many ? MRC_RECENT_NONE : mrc_recent_find(to->names, text, length);
    if (number < 0) return false;
    *status = mrc_targets_again(to->targets, number);
    return true;
}

/* Takes a cell that is a plain decimal, a recent word, or empty. Returns false, and changes nothing, if it is anything
   else. FEW_BYTES bytes must be readable. */
static bool take_cell(const mrc_sink *to, const struct mrc_action *action, const char *text, int64_t length,
                      const place *at, float *cells, mercer_status *status)
{
    *status = MERCER_OK;
    switch (action->act) {
        case ACT_PASS: return true;
        case ACT_WORD: return take_word(action->column, text, length, &cells[action->place]);
        case ACT_NUMBER: return to->plain && take_number(action->column, text, length, at, &cells[action->place]);
        case ACT_TARGET: return take_target(to, text, length, at, status);
        default: return false;
    }
}

/* ---- One record ---------------------------------------------------------------------------------------------- */

/* Reads a record with quotes, at the end of the file, or with a wrong number of fields. */
static mercer_status read_record(const mrc_table *self, mrc_csv *csv, mrc_sink *to)
{
    place at = cell_place(self, csv);
    float *cells = cells_of(to, to->rows);
    int64_t line = csv->line;
    bool left_out = false;
    for (int64_t column = 0; column < self->columns; column++) {
        mrc_csv_field field;
        mercer_status status;
        mrc_csv_next(csv, &field); /* cannot fail: the first pass has checked the text */
        at.line = field.quoted ? field.line : line;
        bool fast = !field.escaped && csv->end - field.text > FEW_BYTES;
        if (!fast || !take_cell(to, &to->actions[column], field.text, field.length, &at, cells, &status))
            status = mrc_cell_read(self, csv, to, column, &field, cells, &left_out);
        MRC_TRY(status);
        if (field.last != (column == self->columns - 1)) return fail_columns(self, line, field.last);
    }
    mrc_end_record(to, left_out, line);
    return MERCER_OK;
}

/* ---- Many records ---------------------------------------------------------------------------------------------- */

/* Consecutive records whose field ends are known. */
typedef struct piece {
    const mrc_table *table;
    const mrc_csv *csv;
    mrc_sink *to;
    const char *base;
    const uint32_t *ends; /* (rows, columns) ends of fields, from base; ends[-1]: end of the previous record */
    int64_t rows, columns;
    int64_t line, first_row;    /* line of the first record, and its row */
    int32_t places[PIECE_ROWS]; /* (rows) row of the dataset for each record, minus first_row */
    place at;
    mrc_eight_numbers numbers[PIECE_ROWS / 8]; /* converted numbers of one column */
    int64_t failed_row, failed_column;         /* first invalid cell in text order; -1: none */
} piece;

/* Returns the text of a field, which is not zero-terminated. */
static inline const char *field_of(const piece *self, int64_t row, int64_t column, int64_t *length)
{
    const uint32_t *end = self->ends + row * self->columns + column;
    uint32_t begin = end[-1] + 1;
    *length = (int64_t)*end - begin;
    return self->base + begin;
}

/* Slow path: reads a cell of any kind. */
static mercer_status read_general(const piece *self, int64_t row, int64_t column, bool *left_out)
{
    int64_t length;
    const char *text = field_of(self, row, column, &length);
    bool last = column == self->columns - 1;
    mrc_csv_field field = {.text = text, .length = length, .line = self->line + row, .last = last};
    if (last && length > 0 && text[length - 1] == '\r') field.length--;
    float *cells = cells_of(self->to, self->first_row + self->places[row]);
    return mrc_cell_read(self->table, self->csv, self->to, column, &field, cells, left_out);
}

/* Saves the position of an invalid cell if no earlier cell in text order is invalid. Later columns may have earlier
   records, because columns are read one after the other. The rest of the column is not read. Only running out of memory
   is returned as a failure; read_piece reports other errors. */
static mercer_status note_wrong(piece *self, int64_t row, int64_t column, mercer_status status)
{
    if (status == MERCER_ERROR_MEMORY) return status;
    if (self->failed_row < 0 || row < self->failed_row || (row == self->failed_row && column < self->failed_column)) {
        self->failed_row = row;
        self->failed_column = column;
    }
    return MERCER_OK;
}

/* Converts the plain decimals of a column into self->numbers. `of`: column of the cells, for its origin; NULL for
   targets. */
static void take_numbers(piece *self, int64_t column, int64_t rows, const mrc_cell_column *of)
{
    const mrc_fields fields = {.base = self->base,
                               .begin = self->at.begin,
                               .ends = self->ends + column,
                               .stride = self->columns,
                               .decimal = self->at.decimal,
                               .origin = of ? of->origin : 0,
                               .off = of ? of->off : 0};
    self->to->take_numbers(&fields, rows, self->numbers);
}

/* Reads the target of a record: a converted plain decimal, a recent class name, or anything else by the slow path. */
static mercer_status read_target(piece *self, int64_t row, int64_t column, bool *left_out)
{
    const mrc_eight_numbers *numbers = &self->numbers[row / 8];
    mrc_sink *to = self->to;
    if (numbers->plain >> row % 8 & 1)
        return mrc_targets_number(to->targets, numbers->values[row % 8], self->line + row);
    int64_t length;
    const char *text = field_of(self, row, column, &length);
    int32_t number = MRC_RECENT_NONE;
    if (column == self->columns - 1 && length > 0 && text[length - 1] == '\r') length--;
    if (length > 0 && !to->targets->too_many) number = mrc_recent_find(to->names, text, length);
    return number >= 0 ? mrc_targets_again(to->targets, number) : read_general(self, row, column, left_out);
}

/* Reads targets, weights and keys record by record: a record without a target is left out, which shifts the rows of all
   further records. */
static mercer_status read_sides(piece *self, const struct mrc_action *actions)
{
    mrc_sink *to = self->to;
    const int64_t *sides = to->sides;
    for (int64_t i = 0; i < (self->rows + 7) / 8; i++) self->numbers[i].plain = 0;
    for (int64_t k = 0; k < to->side_count; k++)
        if (actions[sides[k]].act == ACT_TARGET && has_plain_targets(to))
            take_numbers(self, sides[k], self->rows, NULL);
    for (int64_t row = 0; row < self->rows; row++) {
        bool left_out = false;
        self->places[row] = (int32_t)(to->rows - self->first_row);
        for (int64_t k = 0; k < to->side_count; k++) {
            bool target = actions[sides[k]].act == ACT_TARGET; /* at most one column */
            mercer_status status =
                target ? read_target(self, row, sides[k], &left_out) : read_general(self, row, sides[k], &left_out);
            if (status) return note_wrong(self, row, sides[k], status);
        }
        mrc_end_record(to, left_out, self->line + row);
    }
    return MERCER_OK;
}

/* Reads a cell that the fast loops below cannot read. Returns false if the rest of the column need not be read. */
static bool read_over(piece *self, int64_t row, int64_t column, mercer_status *status)
{
    bool left_out = false;
    *status = read_general(self, row, column, &left_out);
    if (!*status) return self->to->actions[column].act != ACT_PASS;
    *status = note_wrong(self, row, column, *status);
    return false;
}

/* Cells of a column: record i has the cell first[places[i] * stride]. */
typedef struct column_cells {
    float *first;
    int64_t stride;
} column_cells;

static column_cells cells_of_column(const piece *self, int64_t cell)
{
    const mercer_matrix *x = &self->to->cells->x;
    int64_t row = self->first_row - self->to->base;
    return (column_cells){(float *)mrc_row(x, row) + cell, (float *)mrc_row(x, 1) - (float *)mrc_row(x, 0)};
}

/* Stores up to eight numbers of a column one by one. Returns false if the rest of the column need not be read. */
static bool store_each(piece *self, int64_t index, int64_t row, int64_t end, column_cells cells, mercer_status *status)
{
    mrc_cell_column *column = self->to->actions[index].column;
    const mrc_eight_numbers *numbers = &self->numbers[row / 8];
    unsigned empty = column->strict ? 0 : numbers->empty;
    for (int64_t k = 0; row < end; row++, k++) {
        if ((numbers->plain | empty) >> k & 1) {
            /* The value of an empty field is NaN, which becomes the cell and has no rounding error. */
            cells.first[self->places[row] * cells.stride] = mrc_cell_number(column, numbers->values[k]);
            column->gaps += empty >> k & 1;
        } else if (!read_over(self, row, index, status)) {
            return false;
        }
    }
    return true;
}

/* Reads a column of numbers, eight at a time where all of them are plain decimals or empty. */
static mercer_status read_numbers(piece *self, int64_t index, int64_t rows)
{
    const struct mrc_action *action = &self->to->actions[index];
    const column_cells cells = cells_of_column(self, action->place);
    mercer_status status = MERCER_OK;
    take_numbers(self, index, rows, action->column);
    for (int64_t row = 0; row < rows; row += 8) {
        const mrc_eight_numbers *numbers = &self->numbers[row / 8];
        unsigned empty = action->column->strict ? 0 : numbers->empty;
        /* An incomplete group at the end never has all eight bits. */
        if ((numbers->plain | empty) == 0xff && numbers->over == 0) {
            const int32_t *places = self->places + row;
            for (int k = 0; k < 8; k++) cells.first[places[k] * cells.stride] = numbers->cells[k];
            action->column->gaps += __builtin_popcount(empty);
        } else if (!store_each(self, index, row, mrc_min(row + 8, rows), cells, &status)) {
            break;
        }
    }
    return status;
}

/* Reads a column of words. */
static mercer_status read_words(piece *self, int64_t index, int64_t rows)
{
    const struct mrc_action *action = &self->to->actions[index];
    const column_cells cells = cells_of_column(self, action->place);
    mercer_status status = MERCER_OK;
    for (int64_t row = 0; row < rows; row++) {
        int64_t length;
        const char *text = field_of(self, row, index, &length);
        if (take_word(action->column, text, length, &cells.first[self->places[row] * cells.stride])) continue;
        if (!read_over(self, row, index, &status)) break;
    }
    return status;
}

/* Reads a column of another kind by the slow path. */
static mercer_status read_others(piece *self, int64_t column, int64_t rows)
{
    mercer_status status = MERCER_OK;
    for (int64_t row = 0; row < rows; row++)
        if (!read_over(self, row, column, &status)) break;
    return status;
}

/* Reads all columns of a piece, and reports the first invalid cell. */
static mercer_status read_piece(piece *self)
{
    const struct mrc_action *actions = self->to->actions;
    self->first_row = self->to->rows;
    self->failed_row = -1;
    MRC_TRY(read_sides(self, actions));
    int64_t rows = self->failed_row < 0 ? self->rows : self->failed_row + 1;
    for (int64_t column = 0; column < self->columns; column++) {
        mercer_status status = MERCER_OK;
        switch (actions[column].act) {
            case ACT_NUMBER:
                status = self->to->plain ? read_numbers(self, column, rows) : read_others(self, column, rows);
                break;
            case ACT_WORD: status = read_words(self, column, rows); break;
            case ACT_BOOLEAN:
            case ACT_NOTATION:
            case ACT_DATE: status = read_others(self, column, rows); break;
            default: break;
        }
        MRC_TRY(status);
    }
    if (self->failed_row < 0) return MERCER_OK;
    bool left_out = false;
    /* reads the cell again for its error message */
    return read_general(self, self->failed_row, self->failed_column, &left_out);
}

/* Reads records from csv->at on, as far as their field ends are known. Sets *done to the number of records read. */
static mercer_status read_marked(const mrc_table *self, mrc_csv *csv, mrc_sink *to, int64_t most, int64_t *done)
{
    int64_t columns = self->columns, records = mrc_min(most, mrc_marks_find(&to->marks, csv, columns, FEW_BYTES));
    const uint32_t *ends = to->marks.ends;
    if (records > 8 && records < most) records -= records % 8; /* the remaining records become part of the next piece */
    piece part = {
        .table = self, .csv = csv, .to = to, .base = csv->at, .columns = columns, .at = cell_place(self, csv)};
    for (*done = 0; *done < records; *done += part.rows) {
        part.rows = mrc_min(records - *done, PIECE_ROWS);
        part.ends = ends + *done * columns;
        part.line = csv->line;
        MRC_TRY(read_piece(&part));
        csv->line += part.rows;
    }
    if (records > 0) csv->at += ends[records * columns - 1] + 1;
    return MERCER_OK;
}

mercer_status mrc_records_read(const mrc_table *self, mrc_csv *csv, mrc_sink *to, int64_t count)
{
    if (!to->released) to->released = csv->at;
    while (count > 0) {
        int64_t done;
        MRC_TRY(read_marked(self, csv, to, count, &done));
        /* Nothing is marked: the next record has quotes or a wrong number of fields, is near the end, is very long, or
           is a line without fields. */
        if (done == 0) MRC_TRY(read_record(self, csv, to));
        count -= mrc_max(done, 1);
        mrc_input_release(self->input, &to->released, csv->at);
    }
    return MERCER_OK;
}

void mrc_records_skip(mrc_csv *csv, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        mrc_csv_field field;
        do mrc_csv_next(csv, &field);
        while (!field.last);
    }
}
