/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Missing numbers, filled in from the other numbers of their row.
 *
 * Numbers z of a row, in deviations from their means, are taken for normal with the correlations R of some rows of
 * training. With P = (R + rho I)^-1 the mean of those that are missing (m), given those that are observed (o), is
 *     P_mm z_m = -P_mo z_o,
 * the ridge regression of z_m on z_o: one small system for each row with a gap, as large as there are gaps in it.
 * R_ij is the mean of z_i z_j over the rows that have both; rho = max(0.001, k / rows) for k numbers, ten times as much
 * until R + rho I is positive definite. A filled number is at most MRC_GAPS_FAR deviations from its mean.
 *
 * The rows are every 2^s-th of the table, with the least s for which they are at most MRC_GAPS_ROWS, so that one pass
 * finds them. Numbers and dates take part, in tables of at most MRC_GAPS_COLUMNS columns; others keep their means.
 */
#ifndef MRC_DATA_SCHEMA_GAPS_H
#define MRC_DATA_SCHEMA_GAPS_H

#include "core/context.h"
#include "data/schema/gaps_fill.h"

#include <stdbool.h>

enum { MRC_GAPS_ROWS = 16384, MRC_GAPS_LEAST_ROWS = 64 };

struct mrc_column;

/* Rows of cells, spread over those that were seen. */
typedef struct mrc_spread_rows {
    float *cells;         /* (MRC_GAPS_ROWS, columns), NULL: none was seen, or there are too many columns */
    int64_t kept, stride; /* rows that are there; every so many-th was taken */
} mrc_spread_rows;

/* Adds row `index`, counted from 0 and one after the other. */
mercer_status mrc_spread_rows_add(mrc_spread_rows *to, mercer_context *context, int64_t index, const float *cells,
                                  int64_t columns);

/* The numbers that take part, as encode.c uses them. */
typedef struct mrc_gaps {
    int64_t count;
    int64_t cells[MRC_GAPS_COLUMNS]; /* (count) their places among the cells of a row */
    double *mean, *deviation;        /* (count) */
    double *factor;                  /* (count) 1 / deviation */
    double *precision;               /* (count, count) P */
} mrc_gaps;

/*
 * Finds the deviation, and the row of P up to the diagonal, of those of the columns (count) that take part; their
 * kinds, means and missing values are known. *memory holds the rows, released with mrc_free; NULL if no number is
 * missing, or nothing can be said of it.
 */
mercer_status mrc_gaps_find(const mrc_spread_rows *rows, mercer_context *context, struct mrc_column *columns,
                            int64_t count, double **memory);

/* Whether a precision matrix P (count, count) is positive definite and finite. Only its lower triangle is read. */
bool mrc_precision_valid(int64_t count, const double *precision);

/* values (gaps->count) of a row of cells, with those that are missing filled in. False: none is missing. */
bool mrc_gaps_values(const mrc_gaps *gaps, const float *cells, double *values);

#endif
