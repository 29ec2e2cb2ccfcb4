/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading of records of a Parquet file into cells, targets, weights and keys.
 *
 * A value has the same meaning as its text in a CSV file. Values without a fast path below are printed as this text,
 * which mrc_cell_read reads. Numbers and dates become cells directly. A word of a dictionary is read as text only when
 * it first occurs.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "data/parquet/parquet_rows.h"
#include "data/table/cells/csv_actions.h"

#include <string.h>

/* A block of rows while its columns are read. */
typedef struct block {
    const mrc_table *table;
    mrc_parquet_rows *rows;
    const mrc_csv *csv;
    mrc_sink *to;
    int64_t first_row, count;
    int32_t places[MRC_PARQUET_BATCH]; /* (count) row of the dataset for each record, minus first_row */
} block;

/* Cells of a column: record i of the block has the cell first[places[i] * stride]. */
typedef struct column_cells {
    float *first;
    int64_t stride;
} column_cells;

static column_cells cells_of_column(const block *self, int64_t cell)
{
    const mercer_matrix *x = &self->to->cells->x;
    int64_t row = self->first_row - self->to->base;
    return (column_cells){(float *)mrc_row(x, row) + cell, (float *)mrc_row(x, 1) - (float *)mrc_row(x, 0)};
}

/* ---- Targets, weights and keys ----------------------------------------------------------------------------------- */

/* Returns whether numbers of a side column (target, weight or key) may be used without their text. */
static bool takes_numbers(const mrc_sink *to, mrc_act act)
{
    if (act == ACT_TARGET) return to->plain && !mrc_notation_is_set(&to->targets->notation);
    return to->plain && (act == ACT_VALUE || act == ACT_WEIGHT);
}

/* Stores a number of a side column without its text. Returns false if the text is needed for an error message. */
static bool take_number(const block *self, const struct mrc_action *action, double value, int64_t line,
                        mercer_status *status)
{
    mrc_sink *to = self->to;
    *status = MERCER_OK;
    if (action->act == ACT_TARGET) {
        *status = mrc_targets_number(to->targets, value, line);
    } else if (action->act == ACT_VALUE) {
        ((double *)mrc_row(&to->y, to->rows))[action->place] = value;
    } else {
        to->weights[to->rows] = value;
        return value >= 0;
    }
    return true;
}

/* Reads side column k of a record. */
static mercer_status read_side(const block *self, int64_t k, int64_t row, int64_t line, bool *left_out)
{
    const mrc_parquet_texts *texts = &self->rows->texts;
    int64_t column = self->to->sides[k], place = k * MRC_PARQUET_BATCH + row;
    char buffer[MRC_PARQUET_TEXT_CHARS];
    mrc_csv_field field = {.line = line};
    mercer_status status;
    if (texts->begins[place] < 0) {
        if (take_number(self, &self->to->actions[column], texts->numbers[place], line, &status)) return status;
        mrc_print_number(texts->numbers[place], buffer, sizeof buffer);
        field.text = buffer;
        field.length = (int64_t)strlen(buffer);
    } else {
        field.text = texts->bytes + texts->begins[place];
        field.length = texts->lengths[place];
    }
    return mrc_cell_read(self->table, self->csv, self->to, column, &field, NULL, left_out);
}

/* Reads targets, weights and keys record by record: a record without a target is left out, which shifts the rows of all
   further records. */
static mercer_status read_sides(block *self)
{
    mrc_sink *to = self->to;
    int64_t count = to->side_count;
    bool *as_numbers;
    MRC_SCOPE(scope, self->table->input->context);
    MRC_TRY(mrc_scope_alloc(&scope, &as_numbers, count, sizeof *as_numbers, "columns of a table"));
    for (int64_t k = 0; k < count; k++) as_numbers[k] = takes_numbers(to, to->actions[to->sides[k]].act);
    if (count > 0) MRC_TRY(mrc_parquet_texts_read(self->rows, to->sides, as_numbers, count, self->count));
    for (int64_t row = 0; row < self->count; row++) {
        int64_t line = self->csv->line + row;
        bool left_out = false;
        self->places[row] = (int32_t)(to->rows - self->first_row);
        for (int64_t k = 0; k < count; k++)
            if (!left_out || to->actions[to->sides[k]].act != ACT_TARGET)
                MRC_TRY(read_side(self, k, row, line, &left_out));
        mrc_end_record(to, left_out, line);
    }
    return MERCER_OK;
}

/* ---- Features ---------------------------------------------------------------------------------------------------- */

/* Slow path: reads value i of the batch, which belongs to record `row` of the block, as text. */
static mercer_status read_text(const block *self, int64_t column, int64_t i, int64_t row)
{
    char buffer[MRC_PARQUET_TEXT_CHARS];
    mrc_csv_field field;
    bool left_out = false;
    MRC_TRY(mrc_parquet_rows_field(self->rows, column, i, self->csv->line + row, buffer, &field));
    float *cells = mrc_row(&self->to->cells->x, self->first_row - self->to->base + self->places[row]);
    return mrc_cell_read(self->table, self->csv, self->to, column, &field, cells, &left_out);
}

/* The values of one column in the current batch. They become cells of consecutive records of the block, beginning with
   record `done`. */
typedef struct part {
    const block *block;
    int64_t column, done;
    struct mrc_action *action;
    column_cells cells;
} part;

static float *cell_at(const part *self, int64_t i)
{
    return &self->cells.first[self->block->places[self->done + i] * self->cells.stride];
}

/* Returns whether a number is in the range of float. Other numbers need a message. */
static inline bool is_plain(double value)
{
    return value >= -3.4028234663852886e38 && value <= 3.4028234663852886e38; /* the range of float; false for NaN */
}

/* Returns whether a float can be stored as a cell without further checks. Otherwise mrc_cell_number must compare the
   float with the decimal number that it stands for, to find the largest rounding error of the column. This error is at
   most half a unit in the last place of the float. */
static inline bool is_cell(const mrc_cell_column *column, double value)
{
    return column->origin == 0 && __builtin_fabs(value) * 0x1p-24 <= column->off;
}

static mercer_status read_numbers(const part *self)
{
    const mrc_parquet_rows *rows = self->block->rows;
    const mrc_parquet_column *column = &rows->file.columns[self->column];
    const mrc_parquet_batch *batch = rows->batch;
    mrc_cell_column *to = self->action->column;
    /* plain: no word for missing values is a number; direct: the stored number is what its text would be read as;
       single: the values are floats */
    bool plain = self->block->to->plain, real = column->type == MRC_PARQUET_DOUBLE;
    bool single = plain && column->type == MRC_PARQUET_FLOAT;
    bool direct = plain && column->kind == MRC_PARQUET_NUMBER && !single;
    for (int64_t i = 0; i < batch->rows && self->action->act == ACT_NUMBER; i++) {
        double value = real ? batch->reals[i] : (double)batch->integers[i];
        if (single && batch->valid[i] && is_cell(to, batch->reals[i]) && is_plain(batch->reals[i]))
            *cell_at(self, i) = (float)batch->reals[i];
        else if (batch->valid[i] && (direct || (plain && mrc_parquet_number(column, batch, i, &value))) &&
                 is_plain(value))
            *cell_at(self, i) = mrc_cell_number(to, value);
        else if (!batch->valid[i] && !to->strict)
            *cell_at(self, i) = mrc_note_gap(to);
        else
            MRC_TRY(read_text(self->block, self->column, i, self->done + i));
    }
    return MERCER_OK;
}

static mercer_status read_dates(const part *self)
{
    const mrc_parquet_rows *rows = self->block->rows;
    const mrc_parquet_column *column = &rows->file.columns[self->column];
    const mrc_parquet_batch *batch = rows->batch;
    for (int64_t i = 0; i < batch->rows && self->action->act == ACT_DATE; i++) {
        double days;
        if (batch->valid[i] && mrc_parquet_days(column, batch, i, &days))
            *cell_at(self, i) = mrc_cell_number(self->action->column, days);
        else
            MRC_TRY(read_text(self->block, self->column, i, self->done + i));
    }
    return MERCER_OK;
}

/* Prepares the cells of a dictionary. If the dictionary is new, all its cells are unknown. */
static mercer_status open_codes(const part *self, mrc_code_cells *codes)
{
    const mrc_parquet_reader *reader = &self->block->rows->readers[self->column];
    const mrc_input *input = self->block->table->input;
    int64_t count = reader->dictionary.count, bytes = count * (int64_t)sizeof(float);
    if (codes->generation == reader->generation) return MERCER_OK;
    if (count > codes->capacity) {
        MRC_TRY(mrc_budget_take(input->context, input->budget, input->path,
                                bytes - codes->capacity * (int64_t)sizeof(float)));
        codes->capacity = count;
        MRC_TRY(mrc_move(input->context, &codes->cells, 0, bytes, "words of a column"));
    }
    for (int64_t k = 0; k < count; k++) codes->cells[k] = -1;
    codes->generation = reader->generation;
    return MERCER_OK;
}

/* Reads words by their codes. A cell that is below 0 or NaN is not cached, because each occurrence of such a word must
   be counted. */
static mercer_status read_coded(const part *self)
{
    mrc_parquet_rows *rows = self->block->rows;
    const mrc_parquet_batch *batch = rows->batch;
    mrc_code_cells *codes = &rows->codes[self->column];
    MRC_TRY(open_codes(self, codes));
    for (int64_t i = 0; i < batch->rows; i++) {
        float *cell = cell_at(self, i), *known = batch->valid[i] ? &codes->cells[batch->codes[i]] : NULL;
        if (!known) {
            *cell = mrc_note_gap(self->action->column);
        } else if (*known >= 0) {
            *cell = *known;
        } else {
            MRC_TRY(read_text(self->block, self->column, i, self->done + i));
            if (*cell >= 0) *known = *cell;
        }
    }
    return MERCER_OK;
}

/* Reads words as text; recent words are recognized by their bytes. */
static mercer_status read_words(const part *self)
{
    const mrc_parquet_rows *rows = self->block->rows;
    const mrc_parquet_batch *batch = rows->batch;
    mrc_cell_column *to = self->action->column;
    bool text = rows->file.columns[self->column].kind == MRC_PARQUET_TEXT;
    for (int64_t i = 0; i < batch->rows; i++) {
        char copy[MRC_RECENT_BYTES] = {0};
        const mrc_parquet_word *word = &batch->words[i];
        int32_t number = batch->valid[i] ? MRC_RECENT_NONE : MRC_GAP_NUMBER;
        if (number == MRC_RECENT_NONE && text && to->levels.recent && word->length > 0 &&
            word->length <= MRC_RECENT_BYTES) {
            memcpy(copy, word->bytes, (size_t)word->length);
            number = mrc_recent_find(to->levels.recent, copy, word->length);
        }
        if (number == MRC_RECENT_NONE)
            MRC_TRY(read_text(self->block, self->column, i, self->done + i));
        else
            *cell_at(self, i) = number < 0 ? mrc_note_gap(to) : (float)number;
    }
    return MERCER_OK;
}

static mercer_status read_part(const part *self)
{
    const mrc_parquet_rows *rows = self->block->rows;
    bool coded = rows->batch->coded && rows->file.columns[self->column].kind == MRC_PARQUET_TEXT;
    switch (self->action->act) {
        case ACT_NUMBER: return read_numbers(self);
        case ACT_DATE: return read_dates(self);
        case ACT_WORD: return coded ? read_coded(self) : read_words(self);
        default: break;
    }
    for (int64_t i = 0; i < rows->batch->rows && self->action->act != ACT_PASS; i++)
        MRC_TRY(read_text(self->block, self->column, i, self->done + i));
    return MERCER_OK;
}

/* Reads a column of features. Reading stops if the column turns out to have another kind, which sets its action to
   ACT_PASS. */
static mercer_status read_column(const block *self, int64_t column)
{
    struct mrc_action *action = &self->to->actions[column];
    part each = {.block = self, .column = column, .action = action, .cells = cells_of_column(self, action->place)};
    for (; each.done < self->count && action->act != ACT_PASS; each.done += self->rows->batch->rows) {
        MRC_TRY(mrc_parquet_rows_next(self->rows, column, self->count - each.done));
        MRC_TRY(read_part(&each));
    }
    return MERCER_OK;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

mercer_status mrc_parquet_records_read(const mrc_table *table, mrc_csv *csv, mrc_sink *to, int64_t count)
{
    block self = {.table = table, .rows = table->parquet, .csv = csv, .to = to};
    /* `released` is NULL at the beginning of a file. For Parquet files it has no other meaning. */
    if (!to->released) mrc_parquet_rows_begin(table->parquet, csv->line - 1);
    to->released = csv->at;
    for (; count > 0; count -= self.count, csv->line += self.count) {
        self.count = mrc_min(count, MRC_PARQUET_BATCH);
        self.first_row = to->rows;
        MRC_TRY(read_sides(&self));
        for (int64_t column = 0; column < table->columns && to->cells; column++)
            if (to->actions[column].column && to->actions[column].act != ACT_PASS) MRC_TRY(read_column(&self, column));
    }
    /* Close the readers at the end of a file, because a table may have many files. */
    if (csv->line > table->parquet->file.rows) mrc_parquet_rows_begin(table->parquet, 0);
    return MERCER_OK;
}
