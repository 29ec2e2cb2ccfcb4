/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing of model files. docs/model-file.md lists tensors and metadata.
 *
 * A file is collected completely before it is written: a list of tensors, which are views of the model, and a list of
 * texts. The order of both lists is fixed, so equal models give equal bytes. With ranks every rank collects the same
 * lists, with its own rows of centers and weights.
 */
#include "model/model_file.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "kernels/kernel.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* OWN_: largest numbers of tensors and texts of the whole model (collect_common; describe_model: 3 about the format and
   12 others). POINT_: the same for each member (collect_points, describe_member). They determine the sizes of the
   lists. */
enum { KERNEL_CHARS = 512, OWN_TENSORS = 5, POINT_TENSORS = 8, OWN_TEXTS = 15, POINT_TEXTS = 4, KEY_CHARS = 64 };

/* Names of the tensors and metadata of one member, and its kernel. */
typedef struct member_texts {
    char prefix[MRC_MEMBER_CHARS]; /* prefix of the tensor and metadata names; "" for the first member */
    char kernel[KERNEL_CHARS], kernel_before[KERNEL_CHARS];
    char names[POINT_TENSORS][KEY_CHARS], keys[POINT_TEXTS][KEY_CHARS];
} member_texts;

/* Contents of a model file, and the strings that were printed for it (owned). */
typedef struct contents {
    mrc_tensor *tensors; /* (OWN_TENSORS + members * POINT_TENSORS + extras) */
    int64_t count;
    member_texts *members;  /* (member_count of the model) */
    mrc_metadata *metadata; /* (OWN_TEXTS + members * POINT_TEXTS) */
    int64_t entries;
    char member_digits[24];
    char *labels, *features, *targets; /* JSON, or NULL */
    char temperature[32], curvature[32], interval_rows[32];
} contents;

/* Checks that a member can be stored in a file with these types. Single values that do not fit their type are refused
   later, by tensor_write.c. A callback kernel is refused, because a file cannot contain it. */
static mercer_status check_model(const mercer_model *model, const mercer_save_options *options)
{
    mercer_context *context = model->context;
    if (options->centers && mrc_dtype_size(options->centers) == 0)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "options: centers: dtype %d is not one of f64, f32, f16, u8",
                        (int)options->centers);
    if (options->weights && options->weights != MERCER_F64 && options->weights != MERCER_F32)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "options: weights: dtype %s is not accepted here; use f32 or f64",
                        mrc_dtype_name(options->weights));
    if (mrc_kernel_is_callback(&model->kernel))
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "a callback kernel cannot be saved in a model file; use a built-in kernel");
    /* A model whose kernel values overflow would predict NaN for any weights. */
    mercer_dtype centers = options->centers ? options->centers : model->centers.dtype,
                 weights = options->weights ? options->weights : model->weights.dtype;
    mercer_dtype real = centers == MERCER_F64 || weights == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    return mrc_kernel_check_range(context, &model->kernel, "centers", &model->centers, real);
}

/* Returns whether a tensor is the centers of a member. Comparing addresses is enough, because tensors are borrowed. */
static bool is_centers(const mercer_model *model, const void *data)
{
    for (int64_t m = 0; m < model->member_count; m++)
        if (model->members[m]->centers.data == data) return true;
    return false;
}

/* Checks that a file never contains NaN or infinity, wherever the numbers come from. The state of a training run is
   checked when it is read (training/checkpoint.c). Centers were checked when the model was created. */
static mercer_status check_numbers(const mercer_model *model, const contents *file)
{
    for (int64_t i = 0; i < file->count; i++)
        if (!is_centers(model, file->tensors[i].value.data))
            MRC_TRY(mrc_check_finite(model->context, file->tensors[i].name, &file->tensors[i].value, NULL));
    const mrc_calibration *known = &model->calibration;
    if (!isfinite(known->temperature) || !isfinite(known->curvature) || !isfinite(known->rows))
        return mrc_fail(model->context, MERCER_ERROR_DATA,
                        "the model's temperature, curvature or number of rows is not finite");
    return MERCER_OK;
}

/* Prints JSON into memory of the context; Jansson's own functions would use the allocator of the C library. */
static mercer_status print_json(mercer_context *context, const json_t *value, char **out)
{
    size_t length = json_dumpb(value, NULL, 0, JSON_COMPACT);
    if (length == 0) return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the names");
    MRC_TRY(mrc_alloc(context, out, (int64_t)length + 1, 1, "the names"));
    if (json_dumpb(value, *out, length, JSON_COMPACT) != length)
        return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the names");
    (*out)[length] = 0;
    return MERCER_OK;
}

mercer_status mrc_print_names(mercer_context *context, const char *const *names, int64_t count, char **out)
{
    if (!names || count == 0) return MERCER_OK;
    json_auto_t *array = json_array();
    bool fine = array != NULL;
    for (int64_t i = 0; i < count && fine; i++) fine = json_array_append_new(array, json_string(names[i])) == 0;
    return fine ? print_json(context, array, out)
                : mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the names");
}

void mrc_member_prefix(int64_t number, char prefix[MRC_MEMBER_CHARS])
{
    prefix[0] = 0;
    if (number > 0) snprintf(prefix, MRC_MEMBER_CHARS, "member%lld.", (long long)number);
}

/* Prints numbers and names for the metadata. Numbers get the shortest decimal that reads back exactly. */
static mercer_status collect_texts(const mercer_model *model, contents *out)
{
    mrc_print_number(model->calibration.temperature, out->temperature, sizeof out->temperature);
    mrc_print_number(model->calibration.curvature, out->curvature, sizeof out->curvature);
    mrc_print_number(model->calibration.rows, out->interval_rows, sizeof out->interval_rows);
    MRC_TRY(mrc_print_names(model->context, model->labels, model->label_count, &out->labels));
    MRC_TRY(mrc_print_names(model->context, model->feature_names, mrc_model_features(model), &out->features));
    return mrc_print_names(model->context, model->target_names, model->target_count, &out->targets);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Adds an array of doubles, borrowed, as a tensor with one dimension. */
static void add_vector(contents *out, const char *name, double *values, int64_t count)
{
    out->tensors[out->count++] =
        (mrc_tensor){.name = name, .value = mrc_view(values, 1, count, MERCER_F64), .vector = true};
}

enum { CENTERS, WEIGHTS, ORIGIN, SHIFT, FACTOR, QUANTILES, RANK_WEIGHT, METRIC };

/* Sets the names of a member's tensors, and adds its centers, weights and origin. With several ranks centers and
   weights are divided (total > 0); the origin is equal on all ranks, and rank 0 writes it. */
static void collect_points(const mercer_model *model, const mercer_save_options *options, member_texts *texts,
                           contents *out)
{
    static const char *const own[POINT_TENSORS] = {"centers",
                                                   "weights",
                                                   "origin",
                                                   "preprocess.shift",
                                                   "preprocess.factor",
                                                   "preprocess.quantiles",
                                                   "preprocess.rank_weight",
                                                   "metric"};
    bool shared = model->comm && model->comm->ranks > 1;
    int64_t total = shared ? model->total : 0, first = shared ? model->first : 0;
    char(*names)[KEY_CHARS] = texts->names;
    for (int i = 0; i < POINT_TENSORS; i++) snprintf(names[i], KEY_CHARS, "%s%s", texts->prefix, own[i]);
    out->tensors[out->count++] = (mrc_tensor){
        .name = names[CENTERS], .value = model->centers, .stored = options->centers, .total = total, .first = first};
    out->tensors[out->count++] = (mrc_tensor){
        .name = names[WEIGHTS], .value = model->weights, .stored = options->weights, .total = total, .first = first};
    add_vector(out, names[ORIGIN], model->origin, model->centers.cols);
}

/* Adds a member's preprocessing and metric. */
static void collect_preprocess(const mercer_model *model, const member_texts *texts, contents *out)
{
    const mercer_preprocess *preprocess = model->preprocess;
    const mrc_linear_map *map = preprocess ? preprocess->map : NULL;
    const char(*names)[KEY_CHARS] = texts->names;
    if (preprocess && preprocess->features > 0) {
        add_vector(out, names[SHIFT], preprocess->shift, preprocess->features);
        add_vector(out, names[FACTOR], preprocess->factor, preprocess->features);
        if (preprocess->knots)
            out->tensors[out->count++] =
                (mrc_tensor){.name = names[QUANTILES],
                             .value = mrc_view(preprocess->knots, preprocess->features, MRC_RANK_KNOTS, MERCER_F64)};
        if (preprocess->rank_weight) add_vector(out, names[RANK_WEIGHT], preprocess->rank_weight, preprocess->features);
    }
    if (map && map->diagonal)
        add_vector(out, names[METRIC], map->values, map->features);
    else if (map)
        out->tensors[out->count++] =
            (mrc_tensor){.name = names[METRIC], .value = mrc_view(map->values, map->features, map->width, MERCER_F64)};
}

/* Adds the tensors that all members share. */
static void collect_common(const mercer_model *model, contents *out)
{
    const mrc_curve *curve = &model->units.curve;
    if (mrc_units_given(&model->units)) {
        add_vector(out, "targets.offset", model->units.offset, model->weights.cols);
        add_vector(out, "targets.scale", model->units.scale, model->weights.cols);
    }
    if (curve->numbers)
        out->tensors[out->count++] =
            (mrc_tensor){.name = "targets.curve",
                         .value = mrc_view(curve->numbers, mrc_curve_size(curve, model->weights.cols) / curve->count,
                                           curve->count, MERCER_F64)};
    if (model->calibration.shift) add_vector(out, "classes.shift", model->calibration.shift, model->weights.cols);
    if (model->calibration.scores)
        out->tensors[out->count++] = (mrc_tensor){.name = "intervals.scores",
                                                  .value = mrc_view(model->calibration.scores, model->calibration.lists,
                                                                    model->calibration.count, MERCER_F64)};
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

/* Returns the lowest format version that a reader must support; see model_file.h. A version includes all lower
   versions, so the feature of the model with the highest version decides; the tests are in descending order. */
static const char *format_version(const mercer_model *model)
{
    if (model->schema && model->has_statistics) return MRC_MODEL_FORMAT_LEVELS;
    if (model->calibration.curvature > 0) return MRC_MODEL_FORMAT_CURVATURE;
    if (model->calibration.shift) return MRC_MODEL_FORMAT_SHIFT;
    if (model->schema && model->reads_notations) return MRC_MODEL_FORMAT_NOTATIONS;
    if (model->member_count > 1) return MRC_MODEL_FORMAT_MEMBERS;
    if (model->schema) return model->fills_gaps ? MRC_MODEL_FORMAT_GAPS : MRC_MODEL_FORMAT_SCHEMA;
    if ((model->preprocess && model->preprocess->map) || model->units.curve.numbers) return MRC_MODEL_FORMAT_METRIC;
    return mrc_units_given(&model->units) ? MRC_MODEL_FORMAT_UNITS : MRC_MODEL_FORMAT_PLAIN;
}

/* Adds the metadata for kernel function and preprocessing of a member. */
static mercer_status describe_member(const mercer_model *model, member_texts *texts, contents *out)
{
    static const char *const own[POINT_TEXTS] = {"kernel", "preprocess", "preprocess_folded",
                                                 "kernel_before_preprocess"};
    const mercer_preprocess *preprocess = model->preprocess;
    bool folded = preprocess && preprocess->folded;
    MRC_TRY(mrc_kernel_print(model->context, &model->kernel, texts->kernel, KERNEL_CHARS, NULL));
    if (folded)
        MRC_TRY(mrc_kernel_print(model->context, &preprocess->kernel, texts->kernel_before, KERNEL_CHARS, NULL));
    const char *values[POINT_TEXTS] = {texts->kernel, preprocess ? mrc_preprocess_stored_spec(preprocess) : NULL,
                                       preprocess ? (folded ? "true" : "false") : NULL,
                                       folded ? texts->kernel_before : NULL};
    char(*keys)[KEY_CHARS] = texts->keys;
    for (int i = 0; i < POINT_TEXTS; i++) {
        snprintf(keys[i], KEY_CHARS, "%s%s", texts->prefix, own[i]);
        out->metadata[out->entries++] = (mrc_metadata){keys[i], values[i]};
    }
    return MERCER_OK;
}

static void add_texts(contents *out, const mrc_metadata *texts, int64_t count)
{
    memcpy(out->metadata + out->entries, texts, (size_t)count * sizeof *texts);
    out->entries += count;
}

/* Adds the metadata that all members share, then the metadata of each member. */
static mercer_status describe_model(const mercer_model *model, contents *out)
{
    const mrc_calibration *known = &model->calibration;
    const mrc_metadata format[] = {
        {"format", MRC_MODEL_FORMAT}, {"format_version", format_version(model)}, {"mercer_version", mercer_version()}};
    const mrc_metadata rest[] = {
        {"labels", out->labels},
        {"feature_names", out->features},
        {"target_names", out->targets},
        {"target_transform", mrc_curve_name(model->units.curve.kind)},
        {"temperature", known->temperature > 0 ? out->temperature : NULL},
        {"curvature", known->curvature > 0 ? out->curvature : NULL},
        {"intervals", !known->scores   ? NULL
                      : known->classes ? "classes"
                                       : "values"},
        {"interval_rows", known->scores ? out->interval_rows : NULL},
        {"schema", model->schema},
        {"note", model->note},
        {"fit_record", model->record},
        {"members", model->member_count > 1 ? out->member_digits : NULL},
    };
    add_texts(out, format, sizeof format / sizeof *format);
    MRC_TRY(describe_member(model, &out->members[0], out));
    add_texts(out, rest, sizeof rest / sizeof *rest);
    for (int64_t i = 1; i < model->member_count; i++)
        MRC_TRY(describe_member(model->members[i], &out->members[i], out));
    return MERCER_OK;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Allocates the lists of a file and sets the prefixes of the members. After a failure the caller releases what
   exists. */
static mercer_status allocate_contents(const mercer_model *model, int64_t extras, contents *out)
{
    mercer_context *context = model->context;
    int64_t count = model->member_count;
    snprintf(out->member_digits, sizeof out->member_digits, "%lld", (long long)count);
    MRC_TRY(mrc_alloc(context, &out->tensors, OWN_TENSORS + count * POINT_TENSORS + extras, sizeof(mrc_tensor),
                      "the tensor list"));
    MRC_TRY(mrc_alloc(context, &out->metadata, OWN_TEXTS + count * POINT_TEXTS, sizeof(mrc_metadata), "texts"));
    MRC_TRY(mrc_alloc_zero(context, &out->members, count, sizeof *out->members, "texts"));
    for (int64_t i = 0; i < count; i++) mrc_member_prefix(i, out->members[i].prefix);
    return MERCER_OK;
}

/* Collects all tensors and metadata of the file. Tensors are borrowed from the model. */
static mercer_status collect(const mercer_model *model, const mercer_save_options *options, const mrc_tensor *extra,
                             int64_t extras, contents *out)
{
    MRC_TRY(allocate_contents(model, extras, out));
    for (int64_t i = 0; i < model->member_count; i++) {
        const mercer_model *member = model->members[i];
        MRC_TRY(check_model(member, options));
        collect_points(member, options, &out->members[i], out);
        if (i == 0) collect_common(model, out);
        collect_preprocess(member, &out->members[i], out);
    }
    MRC_TRY(check_numbers(model, out));
    if (extras > 0) memcpy(out->tensors + out->count, extra, (size_t)extras * sizeof *extra);
    out->count += extras;
    MRC_TRY(collect_texts(model, out));
    return describe_model(model, out);
}

static mercer_status write_contents(const mercer_model *model, const char *path, const contents *file)
{
    if (model->comm && model->comm->ranks > 1)
        return mrc_tensor_file_write_shared(model->comm, path, file->tensors, file->count, file->metadata,
                                            file->entries);
    return mrc_tensor_file_write(model->context, path, file->tensors, file->count, file->metadata, file->entries);
}

mercer_status mrc_model_write(mercer_model *model, const char *path, const mercer_save_options *options,
                              const mrc_tensor *extra, int64_t extras)
{
    const mercer_save_options as_it_is = {.struct_size = sizeof as_it_is};
    if (!options) options = &as_it_is;
    contents file = {.count = 0};
    mercer_status status = collect(model, options, extra, extras, &file);
    if (model->comm) /* either all ranks write the file, or none of them */
        status = mrc_comm_together(model->comm, status, "the model");
    if (status == MERCER_OK) status = write_contents(model, path, &file);
    MRC_FREE_ALL(model->context, file.labels, file.features, file.targets, file.tensors, file.metadata, file.members);
    return status;
}
