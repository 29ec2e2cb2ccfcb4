/* SPDX-License-Identifier: BSD-3-Clause */
/* From the cells of a table to the samples of a dataset: what columns are at first sight, and in the end. */
#ifndef MRC_DATA_TABLE_CSV_SCHEMA_H
#define MRC_DATA_TABLE_CSV_SCHEMA_H

#include "data/table/csv_cells.h"

/* Everything about the columns of one table that is being read. */
typedef struct mrc_column_set {
    mercer_context *context;
    mrc_cells cells;
    const char *given;   /* the text of a schema; borrowed, or NULL */
    mrc_schema *schema;  /* of that text, or found; NULL: none */
    mrc_missing missing; /* words that were asked for */
    void *missing_memory;
    const mrc_missing *words; /* those, or the schema's, or the customary ones */
} mrc_column_set;

/* The schema and the missing words of the options, before the layout is known. */
mercer_status mrc_column_set_open(mrc_column_set *out, mercer_context *context, const mercer_dataset_options *options);
void mrc_column_set_close(mrc_column_set *columns);
/* The columns of the cells: what they are by request, by the schema, or by the first records of the table. `strict`:
   numbers without gaps. */
mercer_status mrc_column_set_prepare(mrc_column_set *columns, const mrc_table *lead, bool strict);
/* Whether a column must be read again, as words. */
bool mrc_column_set_turn_odd(mrc_column_set *columns);
/* Samples of the cells, whose memory is the dataset's: features by the schema, which is found unless it is given. */
mercer_status mrc_column_set_settle(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);

#endif
