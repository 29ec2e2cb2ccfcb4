/* SPDX-License-Identifier: BSD-3-Clause */
/* From the cells of a table to the samples of a dataset: what columns are at first sight, and in the end. */
#ifndef MRC_DATA_TABLE_CSV_SCHEMA_H
#define MRC_DATA_TABLE_CSV_SCHEMA_H

#include "data/table/cells/csv_cells.h"

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
/* The schema of the cells, or of their tallies, unless one is given; the dataset keeps its text. */
mercer_status mrc_column_set_find(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);
/* Cells are to be read again, by the schema that was found: columns that it leaves out have no cells any more. */
mercer_status mrc_column_set_adopt(mrc_column_set *columns, mrc_layout *layout);
/* How many features the cells of a row become. */
int64_t mrc_column_set_features(const mrc_column_set *columns);
/* The dataset's samples, which are cells in its memory, become features. */
mercer_status mrc_column_set_encode(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);
/* Names of features, and warnings about cells that the schema does not expect. */
mercer_status mrc_column_set_finish(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);

#endif
