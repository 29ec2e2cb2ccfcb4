/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/table: files of separated text (csv, tsv).
 *
 * csv_parse.h splits text into fields, number.h reads decimals, this header has the frame of a file: records, columns,
 * their names and roles (csv_layout.c finds the separator and whether there is a header line). csv.c reads samples and
 * targets; columns.h matches columns by name.
 *
 * A file is read twice: once to count, so that memory is refused before a number is read, and once for the numbers.
 */
#ifndef MRC_DATA_TABLE_CSV_TABLE_H
#define MRC_DATA_TABLE_CSV_TABLE_H

#include "data/files/readers.h"
#include "data/schema/schema.h"
#include "data/table/csv_parse.h"

enum { MRC_COLUMN_CHARS = 80 }; /* of a column in a message */

/* What a column is: feature number `role` if that is >= 0; target number MRC_COLUMN_TARGET - role if it is at most
   MRC_COLUMN_TARGET; or not used. */
enum { MRC_COLUMN_FEATURE = 0, MRC_COLUMN_UNUSED = -1, MRC_COLUMN_TARGET = -2 };

/* Every file of a table has the same. */
typedef struct mrc_layout {
    int64_t *roles; /* (columns) */
    int64_t columns, features, targets, unused;
    void *names;             /* (columns) a list of texts in one block; NULL without a header */
    int64_t weight, id, key; /* columns that are neither features nor targets; -1: none */
    signed char *kinds;      /* (columns) the mrc_kind that was asked for; -1: none */
    signed char *orders;     /* (columns) the mrc_date_order that was asked for */
} mrc_layout;

typedef struct mrc_table {
    const mrc_input *input; /* borrowed */
    mrc_csv start;          /* the first record, header or not */
    mrc_csv data;           /* the first record of data */
    int64_t columns, records;
    bool header;
    const mrc_layout *layout; /* NULL until it is known */
} mrc_table;

/* Counts all records of a file, and columns of the first one. A part of several files may have none. */
mercer_status mrc_table_open(mrc_table *out, const mrc_input *input, char separator);
/* The first line names the columns: a text stands over a number, or one of the names is that of a target (one of
   `target`, or a customary one if that is NULL). There is at least one record. */
bool mrc_table_shows_header(const mrc_table *self, const char *target);
/* The first line has one of these names, which lie `stride` bytes apart; NULL is none. */
bool mrc_table_names_one(const mrc_table *self, const char *const *names, int64_t count, size_t stride);
/* The first field of the first record is no number. */
bool mrc_table_begins_with_text(const mrc_table *self);
/* Sets header, data and records, given whether there is a header. */
void mrc_table_set_header(mrc_table *self, bool header);

typedef struct mrc_layout_wish {
    const char *target;         /* a name or an index, or several with commas between them; NULL: not said */
    bool needed;                /* not said: the column that has a customary name */
    bool alone;                 /* a table of targets alone: not said, all columns; what is not a target is not used */
    const char *const *columns; /* (column_count) names of the features wanted, in their order; NULL: all others */
    int64_t column_count;
    const char *kinds, *only, *weight, *id, *key; /* as in mercer_dataset_options */
    const mrc_schema *schema;                     /* instead: the columns that it uses, in its order */
} mrc_layout_wish;

/* Finds targets and features. Columns are matched by their names where the table has any. To be released even if it
   fails. */
mercer_status mrc_layout_find(mrc_layout *out, const mrc_table *table, const mrc_layout_wish *wish);
void mrc_layout_free(mercer_context *context, mrc_layout *layout);
/* The names of all features, targets or unused columns (MRC_COLUMN_...) in their order, a list in one block; NULL
   without a header, or if there are none. */
mercer_status mrc_layout_names(const mrc_layout *layout, mercer_context *context, int64_t kind, void **out);
/* A further file of a table whose first one is `lead`: the same columns, the same layout; the names once more, or
   not. */
mercer_status mrc_table_follow(mrc_table *self, const mrc_table *lead, mercer_switch header);

/* The column of that name; -1: none, -2: several. Without a name: the one that has a customary name of a target. */
int64_t mrc_table_find(const mrc_table *self, const char *name);
/* The name of a column without spaces around it, cut to size - 1. */
void mrc_copy_name(const mrc_csv_field *field, char *out, int64_t size);
/* Column `column` as a message names it: 'name', or its number. */
const char *mrc_column_text(const mrc_table *self, int64_t column, char out[MRC_COLUMN_CHARS]);

#endif
