/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns matched by their names: the one place that says which column of a table is which feature of a model. */
#ifndef MRC_DATA_TABLE_COLUMNS_H
#define MRC_DATA_TABLE_COLUMNS_H

#include "core/context.h"

/*
 * places[j] = the column of `found` that wanted[j] is. Columns that are not wanted are ignored. Names may repeat: the
 * k-th column of a name is the k-th one wanted, provided there are as many. A name that is not there is refused with
 * MERCER_ERROR_MISMATCH; `what` begins the message, and the nearest name that is left over ends it.
 */
mercer_status mrc_columns_match(mercer_context *context, const char *what, const char *const *found,
                                int64_t found_count, const char *const *wanted, int64_t wanted_count, int64_t *places);

#endif
