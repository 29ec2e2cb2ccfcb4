/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of csv and tsv files as they stand there: what is written beside predictions. */
#ifndef MRC_DATA_TABLE_COLUMN_TEXTS_H
#define MRC_DATA_TABLE_COLUMN_TEXTS_H

#include "core/context.h"

#include "mercer/evaluation.h"

/* Options have been checked. columns: names with commas between them. */
mercer_status mrc_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                    const mercer_dataset_options *options, const char *columns);
void mrc_column_texts_free(mercer_column_texts *texts);
const char *const *mrc_column_texts_names(const mercer_column_texts *texts, int64_t *count);
/* The next record; *fields is NULL behind the last. */
mercer_status mrc_column_texts_next(mercer_column_texts *texts, const char *const **fields);

#endif
