/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching of columns by name. All code that assigns columns of a table to features of a model uses
   mrc_columns_match. */
#ifndef MRC_DATA_TABLE_COLUMNS_H
#define MRC_DATA_TABLE_COLUMNS_H

#include "core/context.h"

/*
 * Sets places[j] to the index in `found` of column wanted[j]. Other columns are ignored. Names may repeat: the k-th
 * found column of a name is matched with the k-th wanted column of this name. Fails with MERCER_ERROR_MISMATCH if the
 * two lists do not contain a wanted name equally often. The message begins with `what`, and for a missing name suggests
 * the nearest unmatched name.
 */
mercer_status mrc_columns_match(mercer_context *context, const char *what, const char *const *found,
                                int64_t found_count, const char *const *wanted, int64_t wanted_count, int64_t *places);

#endif
