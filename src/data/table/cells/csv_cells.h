/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/table/cells: the second pass over a table, which reads cells, targets and weights.
 *
 * csv_marks.h finds the ends of fields and plain_number.h reads decimals. csv_records.c reads records, with fast paths
 * for nearly all cells; csv_cells.c is the slow path for a cell of any kind.
 */
#ifndef MRC_DATA_TABLE_CELLS_CSV_CELLS_H
#define MRC_DATA_TABLE_CELLS_CSV_CELLS_H

#include "data/schema/recent.h"
#include "data/schema/schema.h"
#include "data/table/cells/csv_marks.h"
#include "data/table/cells/plain_numbers.h"
#include "data/table/csv_table.h"

/* Destination of the parts of a record. */
typedef struct mrc_sink {
    /* cells of the features, with capacity for all rows or for one block; NULL: features are not read */
    mrc_cells *cells;
    mercer_matrix y;             /* (rows, targets) f64, for several targets */
    mrc_targets *targets;        /* destination of a single target, else NULL */
    double *weights;             /* (rows) sample weights, or NULL */
    double *keys;                /* (rows) values of a group or time column, or NULL */
    mrc_key_kind key_kind;       /* groups or times */
    const mrc_missing *missing;  /* words for missing values */
    bool leave_out;              /* true: records without a target are skipped and counted */
    int64_t rows;                /* number of rows read so far; skipped records do not count */
    int64_t base;                /* index of the first row of the block of cells */
    int64_t left_out, left_line; /* number of skipped records; line of the first skipped record */
    const char *released; /* the pages of the file before this address were released; NULL at the beginning of a file */
    struct mrc_action *actions; /* (columns) action of each column; memory of the scope */
    mrc_recent *names;          /* recent class names and their indices; memory of the scope */
    int64_t *sides, side_count; /* columns of targets, weights and keys; memory of the scope */
    mrc_marks marks;
    mrc_take_numbers take_numbers;
    bool plain; /* true: no word for missing values could be a number, so fast paths need not look for these words */
} mrc_sink;

/* Sets up the actions of all columns by their roles. Memory belongs to the scope. */
mercer_status mrc_sink_open(mrc_sink *sink, mrc_scope *scope, const mrc_layout *layout);
/* Reads the next `count` records into rows to->rows, to->rows + 1, ... The first pass has checked the records. */
mercer_status mrc_records_read(const mrc_table *table, mrc_csv *csv, mrc_sink *to, int64_t count);
void mrc_records_skip(mrc_csv *csv, int64_t count);

#endif
