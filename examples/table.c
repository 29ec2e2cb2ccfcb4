/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table [FILE.csv]: learns the rents in a table (examples/tables/flats.csv) from its first 800 rows, saves the model,
 * loads it again, and prints its error on the other rows. Text columns and missing values are handled automatically.
 * The model stores the schema of the columns, which is then used to read other tables.
 */
#include <mercer/advanced.h>
#include <mercer/evaluation.h>

#include <stdio.h>

static const char *const saved = "flats.safetensors";

/* Open `rows` rows from row `first` on. schema: from a model, or NULL to infer the column types from the file. */
static mercer_status open_rows(mercer_dataset **data, mercer_context *context, const char *path, const char *schema,
                               int64_t first, int64_t rows)
{
    mercer_dataset_options options = MERCER_INIT(mercer_dataset_options);
    options.x = path, options.target = "rent", options.schema = schema, options.first = first, options.rows = rows;
    return mercer_dataset_open(data, context, &options);
}

static mercer_status learn(mercer_context *context, const char *path)
{
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    mercer_status status = open_rows(&data, context, path, NULL, 0, 800);
    if (status == MERCER_OK) status = mercer_fit(&model, context, data, NULL, NULL); /* NULL: default options */
    if (status == MERCER_OK) status = mercer_model_save(model, saved, NULL);
    mercer_model_free(model), mercer_dataset_free(data);
    return status;
}

static mercer_status judge(mercer_context *context, const char *path, double *r2)
{
    mercer_dataset *data = NULL;
    mercer_model *model = NULL;
    mercer_evaluation *evaluation = NULL;
    mercer_metrics metrics = MERCER_INIT(mercer_metrics);
    mercer_model_info info = MERCER_INIT(mercer_model_info);
    mercer_status status = mercer_model_load(&model, context, NULL, saved);
    if (status == MERCER_OK) status = mercer_model_query(model, &info);
    if (status == MERCER_OK) status = open_rows(&data, context, path, info.schema, 800, 0);
    if (status == MERCER_OK) status = mercer_evaluate(&evaluation, model, data, NULL);
    if (status == MERCER_OK) status = mercer_evaluation_query(evaluation, &metrics);
    *r2 = metrics.r2;
    mercer_evaluation_free(evaluation), mercer_model_free(model), mercer_dataset_free(data);
    return status;
}

int main(int count, char **arguments)
{
    const char *path = count > 1 ? arguments[1] : "examples/tables/flats.csv";
    mercer_context *context = NULL;
    double r2 = 0;
    int ok = !mercer_context_create(&context, NULL) && !learn(context, path) && !judge(context, path, &r2);
    if (ok) printf("R2 on rows that were not seen: %.3f\n", r2);
    if (!ok) fprintf(stderr, "%s\n", mercer_last_error(context));
    mercer_context_free(context);
    return ok && r2 > 0.9 ? 0 : 1;
}
