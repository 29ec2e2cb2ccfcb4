/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/table/cells: the second walk over a table: cells, targets and weights of its records.
 *
 * csv_marks.h finds where fields end, plain_number.h reads decimals, csv_records.c walks over records, csv_cells.c says
 * what becomes of a cell.
 */
#ifndef MRC_DATA_TABLE_CELLS_CSV_CELLS_H
#define MRC_DATA_TABLE_CELLS_CSV_CELLS_H

#include "data/schema/recent.h"
#include "data/schema/schema.h"
#include "data/table/cells/csv_marks.h"
#include "data/table/cells/plain_numbers.h"
#include "data/table/csv_table.h"

/* Where the parts of a record go. */
typedef struct mrc_sink {
    mrc_cells *cells;           /* x: room for all rows, or for a block of them; NULL if features are not wanted */
    mercer_matrix y;            /* (rows, targets) f64, if there are several */
    mrc_targets *targets;       /* if there is one */
    double *weights;            /* (rows), or NULL */
    double *keys;               /* (rows), or NULL: */
    mrc_key_kind key_kind;      /* of what */
    const mrc_missing *missing; /* words */
    bool leave_out;             /* records without a target are passed over, and counted */
    int64_t rows;               /* that were kept */
    int64_t base;               /* the first of them that the cells hold */
    int64_t left_out, left_line;
    const char *released;       /* up to where pages of the file were given back; NULL when another file begins */
    struct mrc_action *actions; /* (columns) what happens to a cell; owned */
    mrc_recent *names;          /* targets that are names, by their numbers; owned */
    int64_t *sides, side_count; /* columns that are no features and not passed over; owned */
    mrc_marks marks;
    mrc_take_numbers take_numbers;
    bool plain; /* no number means that there is no value */
} mrc_sink;

mercer_status mrc_sink_open(mrc_sink *sink, mrc_scope *scope, const mrc_layout *layout);
/* The next `count` records, into rows sink->rows and further. The first walk has been over them. */
mercer_status mrc_records_read(const mrc_table *table, mrc_csv *csv, mrc_sink *to, int64_t count);
void mrc_records_skip(mrc_csv *csv, int64_t count);

#endif
