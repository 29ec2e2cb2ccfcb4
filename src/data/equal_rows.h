/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows that a split must not separate. A row that occurs both in the training rows and in the held-out rows makes
 * held-out errors too small. Therefore all splits work on units: the rows of a group if the data have groups, else the
 * rows with equal features.
 *
 * Rows are equal if their features (and targets and keys, if requested) have the same values; -0 equals 0. They are
 * compared by 128-bit hashes: for n rows the probability that two distinct rows are mistaken for equal is below n^2 /
 * 2^128, which is 10^-22 for 10^8 rows. Cost: the rows are read once, and the hash table takes 40 to 80 bytes per
 * distinct row. Merging also sorts the hashes of the distinct rows and takes 16 bytes per row.
 */
#ifndef MRC_DATA_EQUAL_ROWS_H
#define MRC_DATA_EQUAL_ROWS_H

#include "data/dataset.h"

/* Numbers the distinct rows of rows[0 .. count - 1] (NULL: the rows 0 .. count - 1) from 0 in the order of their first
   occurrence: id[i] is the number of row i, *distinct the number of distinct rows. */
mercer_status mrc_equal_rows(const mercer_dataset *data, const int64_t *rows, int64_t count, bool with_targets,
                             int64_t *id, int64_t *distinct);

/* Numbers the units in the same way: groups, or rows with equal features. Synthetic samples are all distinct. */
mercer_status mrc_row_units(const mercer_dataset *data, const int64_t *rows, int64_t count, int64_t *id,
                            int64_t *units);

/* Sets times (rows) to the earliest time among the rows with equal features, so that no split by time separates equal
   rows. */
mercer_status mrc_first_times(const mercer_dataset *data, double *times);

/* Merges rows with equal features, targets and keys, and drops merged rows whose total weight is not positive. The
   *count merged rows are ordered by a hash, so that the result depends only on the content of the rows, not on their
   order. rows[i] is the first of the rows that merged row i stands for, weights[i] their total weight. Both arrays have
   space for data->rows elements. */
mercer_status mrc_merge_rows(const mercer_dataset *data, int64_t *rows, double *weights, int64_t *count);

#endif
