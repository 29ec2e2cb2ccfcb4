/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading of a Parquet file as a table (data/table/csv_table.h). */
#ifndef MRC_DATA_PARQUET_ROWS_H
#define MRC_DATA_PARQUET_ROWS_H

#include "data/parquet/parquet.h"
#include "data/table/cells/csv_cells.h"

/* Cells of the words of a dictionary. Each cell is set when its word first occurs. */
typedef struct mrc_code_cells {
    float *cells; /* (capacity) cell of each code; below 0: not known */
    int64_t capacity;
    int64_t generation; /* generation of the reader's dictionary that the cells belong to */
} mrc_code_cells;

/* Texts of the values of some columns, for a block of rows. */
typedef struct mrc_parquet_texts {
    char *bytes; /* (capacity) each text with a zero byte after it */
    int64_t used, capacity;
    int64_t *begins; /* (columns read as text, MRC_PARQUET_BATCH) offsets in `bytes`; -1: the value is in `numbers` */
    /* bytes of each text, and numbers that need no text; the same shape as `begins` */
    int64_t *lengths;
    double *numbers;
} mrc_parquet_texts;

/* Reading position in the columns of a file. */
struct mrc_parquet_rows {
    mrc_parquet file;
    char *header;                /* line with the names of the columns */
    mrc_parquet_reader *readers; /* (columns) opened when they are first used */
    mrc_code_cells *codes;       /* (columns) */
    int64_t *skips;              /* (columns) rows to skip before the next value */
    mrc_parquet_batch *batch;
    mrc_parquet_texts texts;
    int64_t held; /* bytes taken from the budget for the lists above */
};

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Opens a file as a table. Its header line is made of the column names, and messages count its rows. The caller closes
   the table even if this fails. */
mercer_status mrc_parquet_table_open(mrc_table *out, const mrc_input *input);
void mrc_parquet_table_close(mrc_table *table);
/* Like mrc_records_read. csv->line is the number of the next row, from 1. */
mercer_status mrc_parquet_records_read(const mrc_table *table, mrc_csv *csv, mrc_sink *to, int64_t count);
/* Calls `visit` with the first `count` values of a column as fields. */
typedef void (*mrc_visit_field)(void *user, const mrc_csv_field *field);
mercer_status mrc_parquet_sample(const mrc_table *table, int64_t column, int64_t count, mrc_visit_field visit,
                                 void *user);

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Moves to row `first`: closes all readers, which then start again at this row. */
void mrc_parquet_rows_begin(mrc_parquet_rows *rows, int64_t first);
/* Decodes up to `most` further values of a column into rows->batch. */
mercer_status mrc_parquet_rows_next(mrc_parquet_rows *rows, int64_t column, int64_t most);
/* Makes the field of value i of rows->batch, with a text in `buffer` or in the page. Fails if the text has a zero
   byte. */
mercer_status mrc_parquet_rows_field(const mrc_parquet_rows *rows, int64_t column, int64_t i, int64_t row,
                                     char buffer[MRC_PARQUET_TEXT_CHARS], mrc_csv_field *out);
/* Reads the texts of the next `count` values, up to MRC_PARQUET_BATCH, of some columns. as_numbers[k]: values of
   columns[k] that need no text are stored in `numbers` instead. */
mercer_status mrc_parquet_texts_read(mrc_parquet_rows *rows, const int64_t *columns, const bool *as_numbers,
                                     int64_t column_count, int64_t count);

#endif
