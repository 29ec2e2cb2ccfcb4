/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structs with struct_size, parsing of sizes, compatibility of datasets and models.
 *
 * Every public struct begins with struct_size, so the size is known before any other field is read. A field that is 0
 * means "default" in every version; that is why a shorter struct can be extended with zeros.
 */
#include "api/api_options.h"

#include "core/matrix.h"
#include "core/spec.h"
#include "data/dataset.h"
#include "model/model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Returns struct_size, the first field of a caller's struct. Uses memcpy, because the type of the struct is unknown. */
static size_t size_of(const void *theirs)
{
    size_t size;
    memcpy(&size, theirs, sizeof size);
    return size;
}

static mercer_status fail_size(mercer_context *context, const char *name, const char *type, size_t size)
{
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: struct_size is %zu; set it to sizeof(%s)", name, size, type);
}

/* The copy has the caller's struct_size if `theirs` is given, and `size` otherwise. Newer fields are unknown here, but
   they can only be in the bytes after our last field, where bytes of 0 mean defaults. */
mercer_status mrc_read_struct(mercer_context *context, void *ours, size_t size, const char *type, const void *theirs,
                              const char *name)
{
    memset(ours, 0, size);
    memcpy(ours, &size, sizeof size);
    if (!theirs) return MERCER_OK;
    size_t their_size = size_of(theirs);
    if (their_size < sizeof(size_t)) return fail_size(context, name, type, their_size);
    for (size_t i = size; i < their_size; i++)
        if (((const char *)theirs)[i])
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: a field is set that version %s does not support", name,
                            mercer_version());
    memcpy(ours, theirs, their_size < size ? their_size : size);
    memcpy(ours, &size, sizeof size); /* the copy is complete and may be passed to other functions */
    return MERCER_OK;
}

/* Both structs begin with struct_size, so the copy overwrites the struct_size of the caller, which is then restored.
   Fields of a longer struct that do not exist here keep the caller's values. */
mercer_status mrc_write_struct(mercer_context *context, void *theirs, const void *ours, size_t size, const char *type,
                               const char *name)
{
    if (!theirs) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", name);
    size_t their_size = size_of(theirs);
    if (their_size < sizeof(size_t)) return fail_size(context, name, type, their_size);
    memcpy(theirs, ours, their_size < size ? their_size : size);
    memcpy(theirs, &their_size, sizeof their_size);
    return MERCER_OK;
}

mercer_status mrc_check_bounds(mercer_context *context, const mrc_bound *bounds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bounds[i].value < bounds[i].least)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %lld; it must be at least %lld",
                            bounds[i].name, (long long)bounds[i].value, (long long)bounds[i].least);
    return MERCER_OK;
}

/* Sizes are checked before types, because the defaults of the types do not depend on them. Weights are f64 only for
   points in f64, as in mercer_model_create. */
mercer_status mrc_read_shape(mercer_context *context, mercer_shape *ours, const mercer_shape *theirs)
{
    MRC_TRY(mrc_read_struct(context, ours, MRC_STRUCT(mercer_shape), theirs, "shape"));
    if (ours->samples < 1 || ours->centers < 1 || ours->features < 1 || ours->outputs < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "shape: samples, centers, features and outputs are %lld, %lld, %lld, %lld; they must be at "
                        "least 1",
                        (long long)ours->samples, (long long)ours->centers, (long long)ours->features,
                        (long long)ours->outputs);
    if (ours->points == 0) ours->points = MERCER_F32;
    if (ours->weights == 0) ours->weights = ours->points == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    if (mrc_dtype_size(ours->points) == 0 || (ours->weights != MERCER_F32 && ours->weights != MERCER_F64))
        return mrc_fail(context, MERCER_ERROR_DTYPE,
                        "shape: the type of points or weights is wrong; weights must "
                        "be f32 or f64");
    if (ours->shards < -1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "shape: shards is %d; it must be at least -1", ours->shards);
    return MERCER_OK;
}

/* Parses NUMBER [blanks] [k|m|g|t] [b|ib], in upper or lower case. "b" selects powers of 1000; "ib" and no ending
   select powers of 1024, so "8G" is 8 GiB. Fractions of a byte are dropped. The limit is 2^53, above which doubles skip
   integers. */
mercer_status mercer_parse_bytes(int64_t *bytes, mercer_context *context, const char *text)
{
    static const char letters[] = "kmgt";
    char number[64];
    if (!bytes || !text) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", bytes ? "text" : "bytes");
    size_t digits = strspn(text, "+0123456789.eE");
    snprintf(number, sizeof number, "%.*s", (int)digits, text);
    const char *rest = text + digits + strspn(text + digits, " ");
    const char *letter = *rest ? strchr(letters, tolower((unsigned char)*rest)) : NULL;
    const char *ending = letter ? rest + 1 : rest;
    bool decimal = strcasecmp(ending, "b") == 0;
    bool known = decimal || !*ending || (letter && strcasecmp(ending, "ib") == 0);
    double value = 0, power = letter ? (double)(letter - letters + 1) : 0;
    bool read = digits < sizeof number && mrc_scan_number(number, &value);
    value = floor(value * pow(decimal ? 1000 : 1024, power));
    if (!known || !read || !(value >= 1 && value < 9007199254740992.0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "'%s' is not a size such as 500MB, 8G or 16GiB", text);
    *bytes = (int64_t)value;
    return MERCER_OK;
}

/* The check compares one label per output. A list of another length, such as two labels for one output, is therefore
   not compared. */
mercer_status mrc_check_model_dataset(const mercer_model *model, const mercer_dataset *data)
{
    bool classes = model->labels && model->label_count == model->weights.cols;
    const mrc_sample_form form = {.whose = "the model",
                                  .schema = model->schema,
                                  .feature_names = model->feature_names,
                                  .labels = classes ? model->labels : NULL,
                                  .features = mrc_model_features(model),
                                  .outputs = model->weights.cols};
    return mrc_dataset_check_form(model->context, data, "data", &form);
}
