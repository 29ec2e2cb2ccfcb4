/* SPDX-License-Identifier: BSD-3-Clause */
/* Matches columns by name: the only place that decides which column of a table is which feature of a model. */
#ifndef MRC_DATA_TABLE_COLUMNS_H
#define MRC_DATA_TABLE_COLUMNS_H

#include "core/context.h"

/*
 * Sets places[j] to the index in `found` of column wanted[j]. Columns that are not wanted are ignored. Names may
 * repeat: the k-th `found` column of a name is the k-th wanted one, provided both have the same number of them. A
 * missing name is an error, MERCER_ERROR_MISMATCH; the message begins with `what` and ends with the nearest unmatched
 * name.
 */
mercer_status mrc_columns_match(mercer_context *context, const char *what, const char *const *found,
                                int64_t found_count, const char *const *wanted, int64_t wanted_count, int64_t *places);

#endif
