/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/table: files of delimited text (csv, tsv).
 *
 * csv_parse.h splits text into fields and finds the separator, number.h reads decimals. This header describes a file:
 * its records and header line (csv_table.c), and the names and roles of its columns (csv_layout.c). csv.c reads samples
 * and targets; columns.h matches columns by name.
 *
 * A file is read twice: once to count records, so that a table too large for memory is refused before a number is read,
 * and once for the values.
 */
#ifndef MRC_DATA_TABLE_CSV_TABLE_H
#define MRC_DATA_TABLE_CSV_TABLE_H

#include "data/files/readers.h"
#include "data/schema/schema.h"
#include "data/table/csv_parse.h"

enum { MRC_COLUMN_CHARS = 80 }; /* size of a buffer for the description of a column in a message */

/* Role of a column: feature number `role` if role >= 0; target number MRC_COLUMN_TARGET - role if role is at most
   MRC_COLUMN_TARGET; otherwise unused. */
enum { MRC_COLUMN_FEATURE = 0, MRC_COLUMN_UNUSED = -1, MRC_COLUMN_TARGET = -2 };

/* Roles and kinds of columns, the same for all files of a table. */
typedef struct mrc_layout {
    int64_t *roles; /* (columns) role of each column */
    int64_t columns, features, targets, unused;
    void *names;             /* (columns) names, a list of texts in one block; NULL without a header */
    int64_t weight, id, key; /* index of the weight, id, and group or time column; -1: none */
    signed char *kinds;      /* (columns) requested mrc_kind; -1: none */
    signed char *orders;     /* (columns) requested mrc_date_order; in the block of kinds */
} mrc_layout;

typedef struct mrc_parquet_rows mrc_parquet_rows;

typedef struct mrc_table {
    const mrc_input *input; /* borrowed */
    /* values of a Parquet file, owned; NULL: the records are text. In a Parquet table, start and data contain only the
       header line, and data.line is the number of the next row, from 1 */
    mrc_parquet_rows *parquet;
    const char *unit; /* name of a record in messages: "line" or "row" */
    mrc_csv start;    /* position of the first record, header or not */
    mrc_csv data;     /* position of the first data record */
    int64_t columns, records;
    bool header;
    const mrc_layout *layout; /* borrowed; NULL until it is found */
} mrc_table;

/* Counts the records of a file, and the columns of the first record. A file that is one of several may have no
   records. */
mercer_status mrc_table_open(mrc_table *out, const mrc_input *input, char separator);
/* Returns whether the first line is a header: it has text above a number; or text that is a name in `target` or a
   customary target name (target, label or class); or text, if no record follows. The table must have at least one
   record. */
bool mrc_table_shows_header(const mrc_table *self, const char *target);
/* Returns whether the first line has one of `count` names, whose pointers are `stride` bytes apart; NULL entries are
   skipped. */
bool mrc_table_names_one(const mrc_table *self, const char *const *names, int64_t count, size_t stride);
/* Returns whether the first field of the first record is text. */
bool mrc_table_begins_with_text(const mrc_table *self);
/* Sets header and data, and excludes the header from records. */
void mrc_table_set_header(mrc_table *self, bool header);

typedef struct mrc_layout_wish {
    const char *target;         /* name or index, or a comma-separated list of them; NULL: not given */
    bool needed;                /* true: without `target`, use the column with a customary target name */
    bool alone;                 /* true: no features; without `target` all columns are targets */
    const char *const *columns; /* (column_count) names of the requested features, in order; NULL: all other columns */
    int64_t column_count;
    const char *kinds, *only, *weight, *id, *key; /* as in mercer_dataset_options */
    /* schema whose columns are used, in the order of the schema; or NULL */
    const mrc_schema *schema;
} mrc_layout_wish;

/* Finds targets and features. Columns are matched by name if the table has names. *out must be freed even after a
   failure. */
mercer_status mrc_layout_find(mrc_layout *out, const mrc_table *table, const mrc_layout_wish *wish);
void mrc_layout_free(mercer_context *context, mrc_layout *layout);
/* Sets *out to the names of all features, targets or unused columns (kind: MRC_COLUMN_...) in their order, as a list in
   one block that the caller releases; NULL without a header or without such columns. */
mercer_status mrc_layout_names(const mrc_layout *layout, mercer_context *context, int64_t kind, void **out);
/* Returns whether the first record of a further file of a table is the header of `lead`, the first file with
   records. */
bool mrc_table_repeats_names(const mrc_table *self, const mrc_table *lead);
/* Checks a further file of a table whose first file with records is `lead`, and gives it the same layout. The file must
   have the same columns; it may repeat the header or have none. */
mercer_status mrc_table_follow(mrc_table *self, const mrc_table *lead, mercer_switch header);

/* Returns the column with this name; -1: none, -2: several. name NULL: the column with a customary target name. */
int64_t mrc_table_find(const mrc_table *self, const char *name);
/* Copies the name of a column without the spaces around it, truncated to size - 1. */
void mrc_copy_name(const mrc_csv_field *field, char *out, int64_t size);
/* Describes a column for messages: 'name', or its index. Returns out. */
const char *mrc_column_text(const mrc_table *self, int64_t column, char out[MRC_COLUMN_CHARS]);

#endif
