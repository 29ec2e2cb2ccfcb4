/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that samples match those that a model was trained on: the same columns, encoded by the same schema, and the
 * same classes. Without this check, a model could predict a table that was read with another schema, for example with
 * an origin subtracted from a column. Wrong predictions would be the only symptom.
 */
#include "data/dataset.h"

#include "data/files/input.h"

#include <string.h>

/* Returns an excerpt of a name for a message. */
static const char *quoted(char out[MRC_EXCERPT_CHARS], const char *name)
{
    return mrc_excerpt(out, name, (int64_t)strlen(name));
}

/* Returns whether the samples were read from a table. Other samples are features already and have no schema. */
static bool is_table(const mercer_dataset *data)
{
    static const char *const formats[] = {"csv", "tsv", "parquet", "columns"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(data->format, formats[i]) == 0) return true;
    return false;
}

/* Checks that the dataset and the form have the same schema. Samples that were not read from a table need none. */
static mercer_status check_schema(mercer_context *context, const mercer_dataset *data, const char *what,
                                  const mrc_sample_form *form)
{
    const char *found = data->schema, *wanted = form->schema, *whose = form->whose;
    if (found && wanted && strcmp(found, wanted) == 0) return MERCER_OK;
    if (!found && (!wanted || !is_table(data))) return MERCER_OK;
    if (!wanted)
        return mrc_fail(context, MERCER_ERROR_MISMATCH,
                        "%s: has its own schema, but %s has none; open the dataset with the column names of %s", what,
                        whose, whose);
    return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: %s, but %s has %s; open the dataset with the schema of %s",
                    what, found ? "was encoded by its own schema" : "was read without a schema", whose,
                    found ? "another" : "one", whose);
}

/* Returns the first index at which two lists of names differ, or -1. */
static int64_t first_difference(const char *const *found, const char *const *wanted, int64_t count)
{
    for (int64_t i = 0; found && wanted && i < count; i++)
        if (strcmp(found[i], wanted[i]) != 0) return i;
    return -1;
}

mercer_status mrc_dataset_check_form(mercer_context *context, const mercer_dataset *data, const char *what,
                                     const mrc_sample_form *form)
{
    char found[MRC_EXCERPT_CHARS], wanted[MRC_EXCERPT_CHARS];
    MRC_TRY(check_schema(context, data, what, form));
    if (data->features != form->features)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "%s: %lld features, but %s has %lld", what,
                        (long long)data->features, form->whose, (long long)form->features);
    int64_t j = first_difference(data->feature_names, form->feature_names, form->features);
    if (j >= 0)
        return mrc_fail(context, MERCER_ERROR_MISMATCH,
                        "%s: column %lld (from 0) is '%s', but %s has '%s' at this position; open the dataset with the "
                        "column names of %s",
                        what, (long long)j, quoted(found, data->feature_names[j]), form->whose,
                        quoted(wanted, form->feature_names[j]), form->whose);
    if (data->task != MERCER_TASK_CLASSIFICATION || data->outputs != form->outputs) return MERCER_OK;
    int64_t k = first_difference(data->label_names, form->labels, form->outputs);
    if (k < 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_MISMATCH,
                    "%s: class %lld (from 0) is '%s', but the class of %s is '%s'; open the dataset with the class "
                    "names of %s",
                    what, (long long)k, quoted(found, data->label_names[k]), form->whose,
                    quoted(wanted, form->labels[k]), form->whose);
}
