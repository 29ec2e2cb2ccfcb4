/* SPDX-License-Identifier: BSD-3-Clause */
/* The table columns that a model uses, from its schema or its features. */
#include "explain/model_columns.h"

#include "core/memory.h"

mercer_status mrc_model_columns_open(mrc_model_columns *out, const mercer_model *model)
{
    *out = (mrc_model_columns){.count = mrc_model_features(model)};
    if (!model->schema) return MERCER_OK;
    MRC_TRY(mrc_schema_read(&out->schema, model->context, model->schema));
    out->count = out->schema->used;
    return MERCER_OK;
}

void mrc_model_columns_close(mrc_model_columns *columns)
{
    mrc_schema_free(columns->schema);
}

/* Without a schema a column is one feature, with the name of the feature if the model has names; all its other fields
   are 0. index must be in 0 .. count - 1: dropped columns of the schema are not counted. */
mrc_column mrc_model_column(const mrc_model_columns *columns, const mercer_model *model, int64_t index)
{
    if (!columns->schema)
        return (mrc_column){
            .name = model->feature_names ? model->feature_names[index] : NULL, .first = index, .width = 1};
    const mrc_column *column = columns->schema->columns;
    for (;; column++)
        if (column->kind != MRC_KIND_DROP && index-- == 0) return *column;
}

mercer_status mrc_model_columns_names(const mrc_model_columns *columns, const mercer_model *model, void **out)
{
    const char **list;
    bool named = true;
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_alloc(&scope, &list, columns->count, sizeof *list, "names of columns"));
    for (int64_t j = 0; j < columns->count; j++) {
        list[j] = mrc_model_column(columns, model, j).name;
        named = named && list[j];
    }
    return named ? mrc_copy_texts(model->context, out, list, columns->count) : MERCER_OK;
}
