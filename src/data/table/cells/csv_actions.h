/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions: how the cells of a column are processed. */
#ifndef MRC_DATA_TABLE_CELLS_CSV_ACTIONS_H
#define MRC_DATA_TABLE_CELLS_CSV_ACTIONS_H

#include "data/table/cells/csv_cells.h"

#include <math.h>

/* PASS: the column is not read, or not read further in this pass. NOTATION: a number or date in another notation. WORD:
   a category. TARGET: the only target, a number or a class. VALUE: one of several targets. KEY: a group or a time. */
typedef enum mrc_act {
    ACT_PASS,
    ACT_NUMBER,
    ACT_BOOLEAN,
    ACT_DATE,
    ACT_NOTATION,
    ACT_WORD,
    ACT_TARGET,
    ACT_VALUE,
    ACT_WEIGHT,
    ACT_KEY
} mrc_act;

struct mrc_action {
    mrc_act act;
    int64_t place;           /* index of the column among the cells, or among several targets */
    mrc_cell_column *column; /* column of the cells; NULL if it is not a feature */
};

enum { MRC_GAP_NUMBER = -1 }; /* index of a recent word that means a missing value */

/* Counts a missing value and returns its cell. */
static inline float mrc_note_gap(mrc_cell_column *column)
{
    column->gaps++;
    return (float)NAN;
}

/* Counts a record as a row or as a skipped record. */
static inline void mrc_end_record(mrc_sink *to, bool left_out, int64_t line)
{
    to->rows += !left_out;
    if (left_out && to->left_out++ == 0) to->left_line = line;
}

/* Processes a field by the action of column `column`: stores it in the row `cells`, or as the target, weight or key of
   row to->rows. Sets *left_out if a target is missing. */
mercer_status mrc_cell_read(const mrc_table *table, const mrc_csv *csv, const mrc_sink *to, int64_t column,
                            mrc_csv_field *field, float *cells, bool *left_out);

#endif
