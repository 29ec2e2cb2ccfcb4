/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to the cells of a column. */
#ifndef MRC_DATA_TABLE_CELLS_CSV_ACTIONS_H
#define MRC_DATA_TABLE_CELLS_CSV_ACTIONS_H

#include "data/table/cells/csv_cells.h"

#include <math.h>

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
    int64_t place;           /* column of the cells, or of several targets */
    mrc_cell_column *column; /* of the cells */
};

enum { MRC_GAP_NUMBER = -1 }; /* a recent word that means: no value */

static inline float mrc_note_gap(mrc_cell_column *column)
{
    column->gaps++;
    return (float)NAN;
}

/* A field of column `column` goes where its action says: into the row `cells`, or row to->rows of something else.
   *left_out is set if it is a target, and missing. */
mercer_status mrc_cell_read(const mrc_table *table, const mrc_csv *csv, const mrc_sink *to, int64_t column,
                            mrc_csv_field *field, float *cells, bool *left_out);

#endif
