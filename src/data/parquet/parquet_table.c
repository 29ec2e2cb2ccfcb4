/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Parquet file as a table: a header line made of the names of its columns, and values of its columns as text.
 *
 * The header line is a CSV line in memory, so that table/csv_table.c and table/csv_layout.c find columns in the same
 * way as in text files. Each column has its own read position, because its pages are separate in the file. All columns
 * share one batch of decoded values, so texts that must live longer are copied.
 */
#include "core/memory.h"
#include "data/parquet/parquet_rows.h"

#include <string.h>

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Writes the names as a line of quoted fields. */
static mercer_status write_header(mrc_parquet_rows *self, mrc_table *table)
{
    const mrc_parquet *file = &self->file;
    mercer_context *context = file->input->context;
    int64_t bytes = 0;
    /* Upper bound: all characters are quotes, which are doubled, and each name gets two quotes and a separator. */
    for (int64_t c = 0; c < file->count; c++) bytes += 2 * file->columns[c].name_length + 3;
    MRC_TRY(mrc_budget_take(context, file->input->budget, file->input->path, bytes));
    self->held += bytes;
    MRC_TRY(mrc_alloc(context, &self->header, bytes, 1, "names of columns"));
    char *at = self->header;
    for (int64_t c = 0; c < file->count; c++) {
        const mrc_parquet_column *column = &file->columns[c];
        *at++ = '"';
        for (int64_t i = 0; i < column->name_length; i++) {
            if (column->name[i] == '"') *at++ = '"';
            *at++ = column->name[i];
        }
        *at++ = '"';
        *at++ = c + 1 < file->count ? ',' : '\n';
    }
    table->start = (mrc_csv){.at = self->header, .end = at, .line = 0, .separator = ','};
    return MERCER_OK;
}

static mercer_status open_rows(mrc_parquet_rows *self, mrc_table *table)
{
    const mrc_input *input = table->input;
    mercer_context *context = input->context;
    const int64_t each = (int64_t)(sizeof *self->readers + sizeof *self->codes + sizeof *self->skips);
    MRC_TRY(mrc_parquet_open(&self->file, input));
    int64_t count = self->file.count, bytes = count * each + (int64_t)sizeof *self->batch;
    MRC_TRY(mrc_budget_take(context, input->budget, input->path, bytes));
    self->held += bytes;
    MRC_TRY(mrc_alloc_zero(context, &self->readers, count, sizeof *self->readers, "columns of a table"));
    MRC_TRY(mrc_alloc_zero(context, &self->codes, count, sizeof *self->codes, "columns of a table"));
    MRC_TRY(mrc_alloc_zero(context, &self->skips, count, sizeof *self->skips, "columns of a table"));
    MRC_TRY(mrc_alloc_zero(context, &self->batch, 1, sizeof *self->batch, "values of a column"));
    MRC_TRY(write_header(self, table));
    table->data = table->start;
    table->columns = count;
    /* The header line counts as a record until mrc_table_set_header subtracts it. */
    return mrc_add(self->file.rows, 1, &table->records) ? MERCER_OK : mrc_parquet_fail(input, "it has too many rows");
}

mercer_status mrc_parquet_table_open(mrc_table *out, const mrc_input *input)
{
    *out = (mrc_table){.input = input, .unit = "row"};
    MRC_TRY(mrc_alloc_zero(input->context, &out->parquet, 1, sizeof *out->parquet, "a Parquet file"));
    out->parquet->file.input = input;
    return open_rows(out->parquet, out);
}

void mrc_parquet_table_close(mrc_table *table)
{
    mrc_parquet_rows *self = table->parquet;
    if (!self) return;
    const mrc_input *input = table->input;
    mrc_parquet_texts *texts = &self->texts;
    for (int64_t c = 0; self->readers && c < self->file.count; c++) mrc_parquet_reader_close(&self->readers[c]);
    for (int64_t c = 0; self->codes && c < self->file.count; c++) {
        input->budget->used -= self->codes[c].capacity * (int64_t)sizeof(float);
        mrc_free(input->context, self->codes[c].cells);
    }
    input->budget->used -= self->held + texts->capacity;
    MRC_FREE_ALL(input->context, texts->bytes, texts->begins, texts->lengths, texts->numbers, self->header,
                 self->readers, self->codes, self->skips, self->batch);
    mrc_parquet_close(&self->file);
    mrc_free(input->context, self);
    table->parquet = NULL;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

void mrc_parquet_rows_begin(mrc_parquet_rows *self, int64_t first)
{
    for (int64_t c = 0; c < self->file.count; c++) {
        mrc_parquet_reader_close(&self->readers[c]);
        /* The first dictionary of a reader has generation 1, so 0 means that no cell is known. */
        self->codes[c].generation = 0;
        self->skips[c] = first;
    }
}

mercer_status mrc_parquet_rows_next(mrc_parquet_rows *self, int64_t column, int64_t most)
{
    mrc_parquet_reader *reader = &self->readers[column];
    if (!reader->file) MRC_TRY(mrc_parquet_reader_open(reader, &self->file, column));
    return mrc_parquet_reader_next(reader, most, &self->skips[column], self->batch);
}

mercer_status mrc_parquet_rows_field(const mrc_parquet_rows *self, int64_t column, int64_t i, int64_t row,
                                     char buffer[MRC_PARQUET_TEXT_CHARS], mrc_csv_field *out)
{
    *out = (mrc_csv_field){.line = row};
    out->text = mrc_parquet_text(&self->file.columns[column], self->batch, i, buffer, &out->length);
    if (out->length > 0 && memchr(out->text, 0, (size_t)out->length))
        return mrc_page_fail(&self->readers[column].values.place, "a text has a zero byte");
    return MERCER_OK;
}

mercer_status mrc_parquet_sample(const mrc_table *table, int64_t column, int64_t count, mrc_visit_field visit,
                                 void *user)
{
    mrc_parquet_rows *self = table->parquet;
    char buffer[MRC_PARQUET_TEXT_CHARS];
    mrc_csv_field field;
    mrc_parquet_reader_close(&self->readers[column]);
    self->skips[column] = 0;
    for (int64_t done = 0; done < count; done += self->batch->rows) {
        MRC_TRY(mrc_parquet_rows_next(self, column, count - done));
        for (int64_t i = 0; i < self->batch->rows; i++) {
            MRC_TRY(mrc_parquet_rows_field(self, column, i, done + i + 1, buffer, &field));
            visit(user, &field);
        }
    }
    mrc_parquet_reader_close(&self->readers[column]);
    return MERCER_OK;
}

/* ---- Texts of several columns ------------------------------------------------------------------------------------ */

/* Allocates the lists of texts, for one block of rows of each column that is read as text. */
static mercer_status open_texts(mrc_parquet_rows *self, int64_t columns)
{
    mrc_parquet_texts *texts = &self->texts;
    const mrc_input *input = self->file.input;
    int64_t count = columns * MRC_PARQUET_BATCH;
    if (texts->begins) return MERCER_OK;
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, 3 * count * (int64_t)sizeof(int64_t)));
    self->held += 3 * count * (int64_t)sizeof(int64_t);
    MRC_TRY(mrc_alloc(input->context, &texts->begins, count, sizeof *texts->begins, "values of a column"));
    MRC_TRY(mrc_alloc(input->context, &texts->lengths, count, sizeof *texts->lengths, "values of a column"));
    return mrc_alloc(input->context, &texts->numbers, count, sizeof *texts->numbers, "values of a column");
}

/* Appends a text to the buffer. The buffer may move, so the text is recorded by its offset. */
static mercer_status add_text(mrc_parquet_rows *self, int64_t place, const mrc_csv_field *field)
{
    mrc_parquet_texts *texts = &self->texts;
    const mrc_input *input = self->file.input;
    int64_t needed = texts->used + field->length + 1;
    if (needed > texts->capacity) {
        int64_t capacity = 2 * needed;
        MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, capacity - texts->capacity));
        mercer_status status = mrc_move(input->context, &texts->bytes, texts->used, capacity, "values of a column");
        if (status) input->budget->used -= capacity - texts->capacity;
        MRC_TRY(status);
        texts->capacity = capacity;
    }
    texts->begins[place] = texts->used;
    texts->lengths[place] = field->length;
    if (field->length > 0) memcpy(texts->bytes + texts->used, field->text, (size_t)field->length);
    texts->used = needed;
    texts->bytes[needed - 1] = 0;
    return MERCER_OK;
}

mercer_status mrc_parquet_texts_read(mrc_parquet_rows *self, const int64_t *columns, const bool *as_numbers,
                                     int64_t column_count, int64_t count)
{
    mrc_parquet_batch *batch = self->batch;
    char buffer[MRC_PARQUET_TEXT_CHARS];
    mrc_csv_field field;
    MRC_TRY(open_texts(self, column_count));
    self->texts.used = 0;
    for (int64_t k = 0; k < column_count; k++) {
        const mrc_parquet_column *column = &self->file.columns[columns[k]];
        for (int64_t done = 0; done < count; done += batch->rows) {
            MRC_TRY(mrc_parquet_rows_next(self, columns[k], count - done));
            for (int64_t i = 0; i < batch->rows; i++) {
                int64_t place = k * MRC_PARQUET_BATCH + done + i;
                double *number = &self->texts.numbers[place];
                self->texts.begins[place] = -1;
                if (as_numbers[k] && batch->valid[i] && mrc_parquet_number(column, batch, i, number) &&
                    isfinite(*number))
                    continue;
                MRC_TRY(mrc_parquet_rows_field(self, columns[k], i, 0, buffer, &field));
                MRC_TRY(add_text(self, place, &field));
            }
        }
    }
    return MERCER_OK;
}
