/* SPDX-License-Identifier: BSD-3-Clause */
/* The table columns that a model uses, each with all its features: the levels of a category, the flag for missing
   values. Without a schema each feature is a column. */
#ifndef MRC_EXPLAIN_MODEL_COLUMNS_H
#define MRC_EXPLAIN_MODEL_COLUMNS_H

#include "data/schema/schema.h"
#include "model/model.h"

typedef struct mrc_model_columns {
    mrc_schema *schema; /* NULL: each feature is a column */
    int64_t count;
} mrc_model_columns;

mercer_status mrc_model_columns_open(mrc_model_columns *out, const mercer_model *model);
void mrc_model_columns_close(mrc_model_columns *columns);
/* Returns column `index` of the used columns. */
mrc_column mrc_model_column(const mrc_model_columns *columns, const mercer_model *model, int64_t index);
/* Copies the names of the columns to one block, which the caller frees; NULL if a column has no name. */
mercer_status mrc_model_columns_names(const mrc_model_columns *columns, const mercer_model *model, void **out);

#endif
