/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of csv, tsv and parquet files as text, to be written next to predictions. */
#ifndef MRC_DATA_TABLE_COLUMN_TEXTS_H
#define MRC_DATA_TABLE_COLUMN_TEXTS_H

#include "core/context.h"

#include "mercer/evaluation.h"

/* Opens the columns. columns: comma-separated names. The caller has checked the options. */
mercer_status mrc_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                    const mercer_dataset_options *options, const char *columns);
void mrc_column_texts_free(mercer_column_texts *texts);
const char *const *mrc_column_texts_names(const mercer_column_texts *texts, int64_t *count);
/* Reads the next record. *fields (one text per column) is borrowed until the next call; NULL after the last record. */
mercer_status mrc_column_texts_next(mercer_column_texts *texts, const char *const **fields);

#endif
