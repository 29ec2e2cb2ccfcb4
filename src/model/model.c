/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and release of models; their names, note and schema.
 *
 * Owner of centers, weights and origin: a new model has its own allocations. A loaded model has views of its mapping
 * `map`. The members of a loaded mean (`inside`) have views of the mapping of the model that owns them. Names and texts
 * are always copies.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/schema.h"
#include "model/tensor_file.h"

#include <stdio.h>
#include <string.h>

/* Allocates centers, weights and origin, and copies the centers without padding, so that rows are contiguous for files
   and hashes. After a failure the model is incomplete, but may be released. */
static mercer_status fill_model(mercer_model *model, const mercer_matrix *centers, int64_t outputs,
                                mercer_dtype weights)
{
    int64_t p = centers->rows, d = centers->cols, size = mrc_dtype_size(centers->dtype), elements;
    model->centers = mrc_view(NULL, p, d, centers->dtype);
    model->weights = mrc_view(NULL, p, outputs, weights);
    if (!mrc_multiply(p, outputs, &elements))
        return mrc_fail(model->context, MERCER_ERROR_SHAPE,
                        "outputs: %lld x %lld weights exceed the addressable memory", (long long)p, (long long)outputs);
    MRC_TRY(mrc_alloc(model->context, &model->centers.data, p * d, size, "the centers"));
    for (int64_t i = 0; i < p; i++) memcpy(mrc_row(&model->centers, i), mrc_row(centers, i), (size_t)(d * size));
    MRC_TRY(mrc_alloc_zero(model->context, &model->weights.data, elements, mrc_dtype_size(weights), "the weights"));
    return mrc_alloc_zero(model->context, &model->origin, d, sizeof *model->origin, "the origin");
}

mercer_status mrc_model_open(mercer_model **out, mercer_context *context)
{
    MRC_TRY(mrc_alloc_zero(context, out, 1, sizeof **out, "the model"));
    (*out)->context = context;
    (*out)->members[0] = *out, (*out)->member_count = 1;
    return MERCER_OK;
}

mercer_status mrc_model_create(mercer_model **out, mercer_context *context, mrc_comm *comm, const mercer_kernel *kernel,
                               const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights)
{
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    *out = NULL;
    MRC_TRY(mrc_model_open(&model, context));
    model->kernel = *kernel;
    model->comm = comm;
    model->total = total;
    if (comm) {
        int64_t rows;
        mrc_comm_rows(comm, total, comm->rank, &model->first, &rows);
    }
    MRC_TRY(fill_model(model, centers, outputs, weights));
    *out = model, model = NULL;
    return MERCER_OK;
}

/* The order matters: members first, because their tensors may be in this model's mapping; then the device copy, whose
   release needs the backend. */
void mrc_model_free(mercer_model *model)
{
    if (!model) return;
    mercer_context *context = model->context;
    for (int64_t m = 1; m < model->member_count; m++) mrc_model_free(model->members[m]);
    mrc_model_drop_device_copy(model);
    if (model->map.data) {
        mrc_unmap(&model->map);
    } else if (!model->inside) {
        MRC_FREE_ALL(context, model->origin, model->weights.data, model->centers.data);
    }
    mrc_units_clear(&model->units, context);
    mrc_preprocess_free(model->preprocess);
    MRC_FREE_ALL(context, (void *)model->labels, (void *)model->feature_names, (void *)model->target_names, model->note,
                 model->record, model->calibration.shift, model->calibration.scores, model->schema, model->plan, model);
}

int64_t mrc_model_features(const mercer_model *model)
{
    const mrc_linear_map *map = model->preprocess ? model->preprocess->map : NULL;
    return map ? map->features : model->centers.cols;
}

/* ---- Texts --------------------------------------------------------------------------------------------------- */

/* Checks that all names are valid UTF-8. `what` is the word for one name in messages. */
static mercer_status check_names(const mercer_model *model, const char *const *names, int64_t count, const char *what)
{
    mercer_context *context = model->context;
    if (count > 0 && !names) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%ss is NULL", what);
    for (int64_t i = 0; i < count; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s %lld (from 0)", what, (long long)i);
        if (!names[i]) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", name);
        MRC_TRY(mrc_check_text(context, name, names[i]));
    }
    return MERCER_OK;
}

/* Checks that labels are distinct: in predictions the label is all that identifies a class. */
static mercer_status check_distinct(const mercer_model *model, const char *const *labels, int64_t count)
{
    const char *repeated;
    MRC_TRY(mrc_find_repeated(model->context, labels, count, &repeated));
    if (!repeated) return MERCER_OK;
    return mrc_fail(model->context, MERCER_ERROR_ARGUMENT, "labels: '%s' occurs more than once", repeated);
}

/* Replaces a list of names by a copy of another list, in one allocation; count 0 removes the list. Changes nothing on
   failure. what: the word for one name in messages. */
static mercer_status replace_names(mercer_model *model, const char ***list, const char *const *names, int64_t count,
                                   const char *what)
{
    void *memory = NULL;
    MRC_TRY(check_names(model, names, count, what));
    if (count > 0) MRC_TRY(mrc_copy_texts(model->context, &memory, names, count));
    mrc_free(model->context, (void *)*list);
    *list = memory;
    return MERCER_OK;
}

mercer_status mrc_model_set_labels(mercer_model *model, const char *const *labels, int64_t count)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    int64_t outputs = model->weights.cols;
    if (count != 0 && count != outputs && !(count == 2 && outputs == 1))
        return mrc_fail(model->context, MERCER_ERROR_SHAPE,
                        "labels: there are %lld, but the model has %lld "
                        "outputs%s",
                        (long long)count, (long long)outputs, outputs == 1 ? " (1 or 2 labels)" : "");
    MRC_TRY(check_names(model, labels, count, "label"));
    MRC_TRY(check_distinct(model, labels, count));
    MRC_TRY(replace_names(model, &model->labels, labels, count, "label"));
    model->label_count = count;
    return MERCER_OK;
}

mercer_status mrc_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    int64_t features = mrc_model_features(model);
    if (count != 0 && count != features)
        return mrc_fail(model->context, MERCER_ERROR_SHAPE, "names: there are %lld, but the model has %lld features",
                        (long long)count, (long long)features);
    return replace_names(model, &model->feature_names, names, count, "name");
}

mercer_status mrc_model_set_target_names(mercer_model *model, const char *const *names, int64_t count)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    int64_t outputs = model->weights.cols;
    if (count != 0 && count != outputs && count != 1)
        return mrc_fail(model->context, MERCER_ERROR_SHAPE,
                        "names: there are %lld, but the model has %lld outputs (1 name or one per output)",
                        (long long)count, (long long)outputs);
    MRC_TRY(replace_names(model, &model->target_names, names, count, "name"));
    model->target_count = count;
    return MERCER_OK;
}

/* Replaces a string by a copy of another one; NULL or an empty string removes it. Changes nothing on failure. */
static mercer_status replace_text(mercer_model *model, char **to, const char *text, const char *what)
{
    void *memory = NULL;
    if (text && text[0]) {
        MRC_TRY(mrc_check_text(model->context, what, text));
        size_t size = strlen(text) + 1;
        MRC_TRY(mrc_alloc(model->context, &memory, (int64_t)size, 1, what));
        memcpy(memory, text, size);
    }
    mrc_free(model->context, *to);
    *to = memory;
    return MERCER_OK;
}

mercer_status mrc_model_set_note(mercer_model *model, const char *note)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    return replace_text(model, &model->note, note, "note");
}

mercer_status mrc_model_set_record(mercer_model *model, const char *record)
{
    return replace_text(model, &model->record, record, "record");
}

/* The schema is stored as text. It is parsed here to check it, and to record the traits that determine the format
   version of a file. Statistics of levels whose values are not known yet are refused. */
mercer_status mrc_model_set_schema(mercer_model *model, const char *schema)
{
    mrc_schema *parsed = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (schema) MRC_TRY(mrc_schema_read(&parsed, model->context, schema));
    int64_t features = parsed ? parsed->features : mrc_model_features(model);
    bool fills = parsed && parsed->gaps.count > 0, noted = parsed && parsed->noted;
    bool statistics = parsed && parsed->statistics > 0, unknown = statistics && parsed->value_count == 0;
    mrc_schema_free(parsed);
    if (unknown)
        return mrc_fail(model->context, MERCER_ERROR_FORMAT,
                        "schema: declares statistics of levels, but does not contain their values");
    if (features != mrc_model_features(model))
        return mrc_fail(model->context, MERCER_ERROR_SHAPE, "schema: has %lld features, but the model has %lld",
                        (long long)features, (long long)mrc_model_features(model));
    MRC_TRY(replace_text(model, &model->schema, schema, "schema"));
    model->fills_gaps = fills;
    model->reads_notations = noted;
    model->has_statistics = statistics;
    return MERCER_OK;
}
