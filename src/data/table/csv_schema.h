/* SPDX-License-Identifier: BSD-3-Clause */
/* From the cells of a table to the samples of a dataset: initial and final kinds of columns, schema, encoding. */
#ifndef MRC_DATA_TABLE_CSV_SCHEMA_H
#define MRC_DATA_TABLE_CSV_SCHEMA_H

#include "data/table/cells/csv_cells.h"

/* State of the columns of a table while it is read. */
typedef struct mrc_column_set {
    mercer_context *context;
    mrc_cells cells;
    const char *given;   /* text of the schema in the options, borrowed; NULL: none */
    mrc_schema *schema;  /* schema read from `given`, or found; owned; NULL: none */
    mrc_missing missing; /* words for missing values in the options */
    void *missing_memory;
    const mrc_missing *words; /* words in use: `missing`, the words of the schema, or the default words */
} mrc_column_set;

/* Reads the schema and the words for missing values from the options, before the layout is known. */
mercer_status mrc_column_set_open(mrc_column_set *out, mercer_context *context, const mercer_dataset_options *options);
void mrc_column_set_close(mrc_column_set *columns);
/* Sets up the columns of the cells, with kinds from the options, the schema or the first records of the table.
   `strict`: all columns are numbers, and a missing value is an error. */
mercer_status mrc_column_set_prepare(mrc_column_set *columns, const mrc_table *lead, bool strict);
/* Turns columns that had cells of another kind into categories. Returns whether there were such columns; the records
   must then be read again. */
bool mrc_column_set_turn_odd(mrc_column_set *columns);
/* Finds the schema from the cells, or from their tallies, unless the options give a schema. The dataset gets a copy of
   the schema's text. statistics: number of statistics of the targets per category with many levels. */
mercer_status mrc_column_set_find(mrc_column_set *columns, const mrc_table *lead, int64_t statistics,
                                  mercer_dataset *dataset);
/* Prepares for reading the cells again by the schema that was found: columns that the schema does not use become
   unused. */
mercer_status mrc_column_set_adopt(mrc_column_set *columns, mrc_layout *layout);
/* Returns the number of features per row. */
int64_t mrc_column_set_features(const mrc_column_set *columns);
/* Encodes the cells, whose memory the dataset owns, and replaces them by the features as the samples of the dataset. */
mercer_status mrc_column_set_encode(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);
/* Sets the names of features; warns about cells that the schema does not expect and about rounding to float. */
mercer_status mrc_column_set_finish(mrc_column_set *columns, const mrc_table *lead, mercer_dataset *dataset);

#endif
