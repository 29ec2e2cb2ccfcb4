/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of a file of separated text: how many records and columns, their names, which one is the target. */
#ifndef MRC_DATA_CSV_TABLE_H
#define MRC_DATA_CSV_TABLE_H

#include "data/csv_parse.h"
#include "data/readers.h"

enum { MRC_COLUMN_CHARS = 80 }; /* of a column in a message */

typedef struct mrc_table {
    const mrc_input *input; /* borrowed */
    mrc_csv start;          /* the first record, header or not */
    mrc_csv data;           /* the first record of data */
    int64_t columns, records;
    bool header;
    int64_t target; /* column; -1: none */
} mrc_table;

/* Counts all records of a file, and columns of the first one. A part of several files may have none. */
mercer_status mrc_table_open(mrc_table *out, const mrc_input *input, mrc_format format);
/* The first line names the columns: a text stands over a number, or one of the names is that of a target (`target`, or a
   customary one if that is NULL). There is at least one record. */
bool mrc_table_shows_header(const mrc_table *self, const char *target);
/* The first field of the first record is no number. */
bool mrc_table_begins_with_text(const mrc_table *self);
/* Sets header, data and records, given whether there is a header. */
void mrc_table_set_header(mrc_table *self, bool header);
/* Sets the target: the column that was asked for, by name or index; if that is NULL and one is needed, the one that has a
   customary name. */
mercer_status mrc_table_find_target(mrc_table *self, const char *asked, bool needed);
/* A further file of a table whose first one is `lead`: the same columns, the same target; the names once more, or not.
   `features`: columns other than the target are numbers. */
mercer_status mrc_table_follow(mrc_table *self, const mrc_table *lead, mercer_switch header, bool features);

/* The name of a column without spaces around it, cut to size - 1. */
void mrc_copy_name(const mrc_csv_field *field, char *out, int64_t size);
/* Column `column` as a message names it: 'name', or its number. */
const char *mrc_column_text(const mrc_table *self, int64_t column, char out[MRC_COLUMN_CHARS]);

#endif
