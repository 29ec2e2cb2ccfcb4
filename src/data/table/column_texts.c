/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Columns of a table as text, to be written next to predictions. Of a text file, only the read position and the current
 * record are in memory. Of a Parquet file, the texts of a block of rows are in memory, printed as in a CSV file.
 *
 * Files and slice are found in the same way as for samples (csv.c). Record i therefore belongs to sample i of a dataset
 * with the same options, unless records are skipped because their target is missing.
 */
#include "data/table/column_texts.h"

#include "core/memory.h"
#include "data/opening.h"
#include "data/parquet/parquet_rows.h"

#include <string.h>

struct mercer_column_texts {
    mercer_context *context;
    mercer_dataset_options options; /* copy; its strings are borrowed and valid only during mrc_column_texts_open */
    mrc_opening opening;            /* has the memory budget, which the files refer to */
    mrc_files files;
    mrc_table *tables; /* (files.names.count) */
    void *names;       /* (count) column names, a list of texts in one block */
    int64_t count;
    int64_t *columns;     /* (count) indices of the columns in the table */
    int64_t file;         /* index of the current file */
    mrc_csv at;           /* position of the next record in the current file */
    const char *released; /* the pages of the file before this address were released */
    int64_t left;         /* records left in the current file */
    int64_t rows;         /* records left in all files */
    int64_t block, taken; /* Parquet: number of rows in the block of texts; number of these rows returned so far */
    char *buffer;         /* (buffer_bytes) buffer for texts of the current record, each zero-terminated */
    int64_t buffer_bytes;
    const char **fields; /* (count) texts of the current record */
};

/* ---- Opening --------------------------------------------------------------------------------------------------- */

/* Splits a comma-separated list of names; spaces around a name are ignored. */
static mercer_status split_names(mercer_column_texts *self, const char *list)
{
    char *copy;
    const char **pointers;
    int64_t length = (int64_t)strlen(list), most = 1;
    for (const char *at = list; *at; at++) most += *at == ',';
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &copy, length + 1, 1, "names of columns"));
    MRC_TRY(mrc_scope_alloc(&scope, &pointers, most, sizeof *pointers, "names of columns"));
    char *next = memcpy(copy, list, (size_t)length + 1);
    while (next) {
        char *name = next + strspn(next, " "), *end = strchr(name, ',');
        next = end ? end + 1 : NULL;
        if (!end) end = name + strlen(name);
        while (end > name && end[-1] == ' ') end--;
        *end = 0;
        if (!*name) return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "columns: '%s' has an empty name", list);
        pointers[self->count++] = name;
    }
    return mrc_copy_texts(self->context, &self->names, pointers, self->count);
}

/* Finds the columns by their names in the header. */
static mercer_status find_columns(mercer_column_texts *self, const mrc_table *lead)
{
    const char *const *names = self->names;
    if (!lead->header)
        return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                        "%s: has no header line; columns can be copied only by "
                        "name",
                        self->files.name);
    for (int64_t k = 0; k < self->count; k++) {
        self->columns[k] = mrc_table_find(lead, names[k]);
        if (self->columns[k] < 0)
            return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "%s: has %s column '%s'", self->files.name,
                            self->columns[k] == -1 ? "no" : "more than one", names[k]);
    }
    return MERCER_OK;
}

/* Opens all files. Header lines are found as in csv.c, so that records and samples correspond. Unlike in csv.c, the
   names of a schema or of the options do not identify a header. */
static mercer_status open_tables(mercer_column_texts *self, mrc_slice *slice)
{
    int64_t count = self->files.names.count, total = 0, lead = 0;
    bool parquet = self->files.format == &mrc_format_parquet;
    MRC_TRY(mrc_alloc_zero(self->context, &self->tables, count, sizeof(mrc_table), "files of a table"));
    for (int64_t i = 0; i < count; i++) {
        MRC_TRY(parquet ? mrc_parquet_table_open(&self->tables[i], &self->files.inputs[i])
                        : mrc_table_open(&self->tables[i], &self->files.inputs[i], self->files.format->separator));
        if (self->tables[lead].records == 0) lead = i;
    }
    mrc_table *first = &self->tables[lead];
    mercer_switch header = self->options.header;
    bool shown =
        parquet || (header == MERCER_AUTO && first->records > 0 && mrc_table_shows_header(first, self->options.target));
    mrc_table_set_header(first, shown || header == MERCER_ON);
    MRC_TRY(find_columns(self, first));
    for (int64_t i = 0; i < count; i++) {
        if (i != lead) mrc_table_set_header(&self->tables[i], mrc_table_repeats_names(&self->tables[i], first));
        total += self->tables[i].records;
    }
    return mrc_slice_resolve(slice, self->context, self->files.name, total);
}

/* Sets the read position to the first record of a file. */
static void begin_file(mercer_column_texts *self, int64_t file)
{
    if (self->tables[self->file].parquet) mrc_parquet_rows_begin(self->tables[self->file].parquet, 0);
    self->file = file;
    self->at = self->tables[file].data;
    self->released = self->at.at;
    self->left = self->tables[file].records;
    self->block = self->taken = 0;
}

/* Skips a record. */
static void pass_record(mercer_column_texts *self)
{
    mrc_csv_field field = {.last = false};
    if (self->tables[self->file].parquet) {
        self->at.line++;
        field.last = true;
    }
    while (!field.last) mrc_csv_next(&self->at, &field);
    self->left--;
}

static mercer_status open_parts(mercer_column_texts *self, const char *columns)
{
    const mercer_dataset_options *options = &self->options;
    mrc_opening *opening = &self->opening;
    *opening = (mrc_opening){.context = self->context,
                             .options = options,
                             .budget = mrc_budget_of(options),
                             .slice = {.first = options->first, .rows = options->rows}};
    MRC_TRY(split_names(self, columns));
    MRC_TRY(mrc_alloc(self->context, &self->columns, self->count, sizeof *self->columns, "names of columns"));
    MRC_TRY(mrc_alloc(self->context, &self->fields, self->count, sizeof *self->fields, "names of columns"));
    MRC_TRY(mrc_files_open(&self->files, opening, options->x, options->format, false));
    if (self->files.format != mrc_format_find("csv") && self->files.format != mrc_format_find("tsv") &&
        self->files.format != &mrc_format_parquet)
        return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                        "%s: is %s; columns can be copied only from csv, tsv and parquet files", options->x,
                        self->files.format->name);
    MRC_TRY(open_tables(self, &opening->slice));
    self->rows = opening->slice.rows;
    begin_file(self, 0);
    for (int64_t skip = opening->slice.first; skip > 0;) {
        if (self->left == 0) {
            begin_file(self, self->file + 1);
            continue;
        }
        pass_record(self);
        skip--;
    }
    return MERCER_OK;
}

MRC_RELEASE(release_texts, mercer_column_texts, mrc_column_texts_free)
mercer_status mrc_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                    const mercer_dataset_options *options, const char *columns)
{
    MRC_OWNED(release_texts) mercer_column_texts *self = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "columns of text"));
    self->context = context;
    self->options = *options;
    MRC_TRY(open_parts(self, columns));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_column_texts_free(mercer_column_texts *self)
{
    if (!self) return;
    for (int64_t i = 0; self->tables && i < self->files.names.count; i++) mrc_parquet_table_close(&self->tables[i]);
    MRC_FREE_ALL(self->context, self->buffer, (void *)self->fields, self->columns, self->names, self->tables);
    if (self->files.context) mrc_files_close(&self->files);
    mrc_free(self->context, self);
}

const char *const *mrc_column_texts_names(const mercer_column_texts *self, int64_t *count)
{
    *count = self->count;
    return self->names;
}

/* ---- Records --------------------------------------------------------------------------------------------------- */

/* Grows the buffer to at least `bytes` bytes. */
static mercer_status reserve_texts(mercer_column_texts *self, int64_t bytes)
{
    if (bytes <= self->buffer_bytes) return MERCER_OK;
    MRC_TRY(mrc_move(self->context, &self->buffer, 0, 2 * bytes, "a record"));
    self->buffer_bytes = 2 * bytes;
    return MERCER_OK;
}

/* Returns the texts of the next row of a Parquet file. Texts are read in blocks of rows. */
static mercer_status next_row(mercer_column_texts *self, const char *const **fields)
{
    mrc_parquet_rows *rows = self->tables[self->file].parquet;
    const mrc_parquet_texts *texts = &rows->texts;
    if (self->taken == self->block) {
        bool *as_numbers;
        MRC_SCOPE(scope, self->context);
        MRC_TRY(mrc_scope_alloc_zero(&scope, &as_numbers, self->count, sizeof *as_numbers, "names of columns"));
        if (self->block == 0) mrc_parquet_rows_begin(rows, self->at.line - 1);
        self->block = mrc_min(MRC_PARQUET_BATCH, mrc_min(self->left, self->rows));
        self->taken = 0;
        MRC_TRY(mrc_parquet_texts_read(rows, self->columns, as_numbers, self->count, self->block));
    }
    for (int64_t k = 0; k < self->count; k++)
        self->fields[k] = texts->bytes + texts->begins[k * MRC_PARQUET_BATCH + self->taken];
    self->taken++, self->left--, self->rows--;
    *fields = self->fields;
    return MERCER_OK;
}

mercer_status mrc_column_texts_next(mercer_column_texts *self, const char *const **fields)
{
    mrc_csv_field field;
    int64_t used = 0, column = 0, line;
    *fields = NULL;
    if (self->rows == 0) return MERCER_OK;
    while (self->left == 0) begin_file(self, self->file + 1);
    if (self->tables[self->file].parquet) return next_row(self, fields);
    const mrc_table *table = &self->tables[self->file];
    const char *begin = self->at.at;
    mrc_csv ahead = self->at;
    do mrc_csv_next(&ahead, &field);
    while (!field.last);
    /* A column may be asked for several times, so each text may be nearly as long as the record. */
    MRC_TRY(reserve_texts(self, self->count * (int64_t)(ahead.at - begin + 1)));
    line = self->at.line;
    do {
        mrc_csv_next(&self->at, &field);
        for (int64_t k = 0; k < self->count; k++) {
            if (self->columns[k] != column) continue;
            self->fields[k] = self->buffer + used;
            used += mrc_csv_copy(&field, self->buffer + used, self->buffer_bytes - used) + 1;
        }
        column++;
    } while (!field.last);
    if (column != table->columns)
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: line %lld has %s columns than the first line",
                        table->input->path, (long long)line, column < table->columns ? "fewer" : "more");
    mrc_input_release(table->input, &self->released, self->at.at);
    self->left--, self->rows--;
    *fields = self->fields;
    return MERCER_OK;
}
