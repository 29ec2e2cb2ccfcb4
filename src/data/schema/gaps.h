/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imputation: missing numbers are filled in from the other numbers of their row.
 *
 * The numbers z of a row, in standard deviations from their means, are modeled as normal. Their correlations R come
 * from a sample of the training rows. With P = (R + rho I)^-1 the mean of the missing numbers (m), given the observed
 * ones (o), solves
 *     P_mm z_m = -P_mo z_o,
 * the ridge regression of z_m on z_o: one small system per row with missing numbers, one equation per missing number.
 * R_ij is the mean of z_i z_j over the rows that have both; rho = max(0.001, k / rows) for k numbers, multiplied by
 * ten until R + rho I is positive definite. An imputed number is at most MRC_GAPS_FAR standard deviations from the
 * mean of its column.
 *
 * The sample is every 2^s-th row of the table, with the smallest s that gives at most MRC_GAPS_ROWS rows. One pass over
 * the table finds this sample. Only numbers and dates take part, and only in tables of at most MRC_GAPS_COLUMNS
 * columns; all other missing values become the mean of their column.
 */
#ifndef MRC_DATA_SCHEMA_GAPS_H
#define MRC_DATA_SCHEMA_GAPS_H

#include "core/context.h"
#include "data/schema/gaps_fill.h"

#include <stdbool.h>

enum { MRC_GAPS_ROWS = 16384, MRC_GAPS_LEAST_ROWS = 64 };

struct mrc_column;

/* A sample of rows, evenly spaced over the rows seen so far. */
typedef struct mrc_spread_rows {
    float *cells;          /* (MRC_GAPS_ROWS, columns); NULL before the first row or if there are too many columns */
    int64_t saved, stride; /* number of rows in `cells`; every stride-th row of the table is taken */
} mrc_spread_rows;

/* Adds row `index` if it belongs to the sample. Must be called for every row, in order from 0. */
mercer_status mrc_spread_rows_add(mrc_spread_rows *to, mercer_context *context, int64_t index, const float *cells,
                                  int64_t columns);

/* The columns that take part in the imputation, in the form that encode.c uses. */
typedef struct mrc_gaps {
    int64_t count;
    int64_t cells[MRC_GAPS_COLUMNS]; /* (count) indices of the columns among the cells of a row */
    double *mean, *deviation;        /* (count) */
    double *factor;                  /* (count) 1 / deviation */
    double *precision;               /* (count, count) P */
} mrc_gaps;

/*
 * Finds the columns that take part, and the matrix P. Kind, mean and missing of all columns (count) must be set. For
 * the columns that take part, sets deviation, `gap` and precision (the row of P up to the diagonal). *memory holds the
 * rows of P; the caller releases it with mrc_free. *memory is NULL, and no column takes part, if no number is missing
 * or there are too few data.
 */
mercer_status mrc_gaps_find(const mrc_spread_rows *rows, mercer_context *context, struct mrc_column *columns,
                            int64_t count, double **memory);

/* Returns whether a precision matrix P (count, count) is positive definite and finite. Only its lower triangle is
   read. */
bool mrc_precision_valid(int64_t count, const double *precision);

/* Sets values (gaps->count) to the numbers of a row of cells, with missing numbers filled in. Returns false if no
   number is missing. */
bool mrc_gaps_values(const mrc_gaps *gaps, const float *cells, double *values);

#endif
