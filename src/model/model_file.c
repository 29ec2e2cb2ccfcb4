/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing model files. */
#include "model/model_file.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "kernels/kernel.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { KERNEL_CHARS = 512, OWN_TENSORS = 11 };

/* What a model file consists of; texts that were made for it. */
typedef struct contents {
    mrc_tensor *tensors; /* (OWN_TENSORS + extras) */
    int64_t count;
    char kernel[KERNEL_CHARS], kernel_before[KERNEL_CHARS];
    char *labels, *features, *targets; /* JSON, or NULL */
    char temperature[32], interval_rows[32];
} contents;

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
                        "a kernel given by a callback cannot be stored in a model file; use one that has a name");
    /* A model whose kernel values overflow predicts NaN, whatever its weights. */
    mercer_dtype centers = options->centers ? options->centers : model->centers.dtype,
                 weights = options->weights ? options->weights : model->weights.dtype;
    mercer_dtype real = centers == MERCER_F64 || weights == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    return mrc_kernel_check_range(context, &model->kernel, "centers", &model->centers, real);
}

/* The last gate: whatever made the numbers, or changed them since, a file never holds NaN or infinity. State of
   a training is looked at when it is read (training/checkpoint.c), centers were for the kernel's range. */
static mercer_status check_numbers(const mercer_model *model, const contents *of)
{
    for (int64_t i = 0; i < of->count; i++)
        if (of->tensors[i].value.data != model->centers.data)
            MRC_TRY(mrc_check_finite(model->context, of->tensors[i].name, &of->tensors[i].value, NULL));
    if (!isfinite(model->calibration.temperature) || !isfinite(model->calibration.rows))
        return mrc_fail(model->context, MERCER_ERROR_DATA, "the model's temperature or number of rows is not finite");
    return MERCER_OK;
}

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

static mercer_status collect_texts(const mercer_model *model, contents *out)
{
    const mercer_preprocess *preprocess = model->preprocess;
    MRC_TRY(mrc_kernel_print(model->context, &model->kernel, out->kernel, KERNEL_CHARS, NULL));
    if (preprocess && preprocess->folded)
        MRC_TRY(mrc_kernel_print(model->context, &preprocess->kernel, out->kernel_before, KERNEL_CHARS, NULL));
    mrc_print_number(model->calibration.temperature, out->temperature, sizeof out->temperature);
    mrc_print_number(model->calibration.rows, out->interval_rows, sizeof out->interval_rows);
    MRC_TRY(mrc_print_names(model->context, model->labels, model->label_count, &out->labels));
    MRC_TRY(mrc_print_names(model->context, model->feature_names, mrc_model_features(model), &out->features));
    return mrc_print_names(model->context, model->target_names, model->target_count, &out->targets);
}

static void add_vector(contents *out, const char *name, double *values, int64_t count)
{
    out->tensors[out->count++] =
        (mrc_tensor){.name = name, .value = mrc_view(values, 1, count, MERCER_F64), .vector = true};
}

static void collect_tensors(const mercer_model *model, const mercer_save_options *options, contents *out)
{
    const mercer_preprocess *preprocess = model->preprocess;
    bool shared = model->comm && model->comm->ranks > 1;
    int64_t total = shared ? model->total : 0, first = shared ? model->first : 0;
    out->tensors[out->count++] = (mrc_tensor){
        .name = "centers", .value = model->centers, .stored = options->centers, .total = total, .first = first};
    out->tensors[out->count++] = (mrc_tensor){
        .name = "weights", .value = model->weights, .stored = options->weights, .total = total, .first = first};
    add_vector(out, "origin", model->origin, model->centers.cols);
    if (mrc_units_given(&model->units)) {
        add_vector(out, "targets.offset", model->units.offset, model->weights.cols);
        add_vector(out, "targets.scale", model->units.scale, model->weights.cols);
    }
    if (model->units.curve.numbers)
        out->tensors[out->count++] = (mrc_tensor){
            .name = "targets.curve",
            .value = mrc_view(model->units.curve.numbers,
                              mrc_curve_size(&model->units.curve, model->weights.cols) / model->units.curve.count,
                              model->units.curve.count, MERCER_F64)};
    if (model->calibration.scores)
        out->tensors[out->count++] = (mrc_tensor){.name = "intervals.scores",
                                                  .value = mrc_view(model->calibration.scores, model->calibration.lists,
                                                                    model->calibration.count, MERCER_F64)};
    if (preprocess && preprocess->features > 0) {
        add_vector(out, "preprocess.shift", preprocess->shift, preprocess->features);
        add_vector(out, "preprocess.factor", preprocess->factor, preprocess->features);
        if (preprocess->knots)
            out->tensors[out->count++] =
                (mrc_tensor){.name = "preprocess.quantiles",
                             .value = mrc_view(preprocess->knots, preprocess->features, MRC_RANK_KNOTS, MERCER_F64)};
    }
    const mrc_linear_map *map = preprocess ? preprocess->map : NULL;
    if (map && map->diagonal)
        add_vector(out, "metric", map->values, map->features);
    else if (map)
        out->tensors[out->count++] =
            (mrc_tensor){.name = "metric", .value = mrc_view(map->values, map->features, map->width, MERCER_F64)};
}

static const char *format_version(const mercer_model *model)
{
    if (model->schema) return model->fills_gaps ? MRC_MODEL_FORMAT_GAPS : MRC_MODEL_FORMAT_SCHEMA;
    if ((model->preprocess && model->preprocess->map) || model->units.curve.numbers) return MRC_MODEL_FORMAT_METRIC;
    return mrc_units_given(&model->units) ? MRC_MODEL_FORMAT_UNITS : MRC_MODEL_FORMAT_PLAIN;
}

static mercer_status write_contents(const mercer_model *model, const char *path, const contents *of)
{
    const mercer_preprocess *preprocess = model->preprocess;
    bool folded = preprocess && preprocess->folded;
    const mrc_metadata metadata[] = {
        {"format", MRC_MODEL_FORMAT},
        {"format_version", format_version(model)},
        {"mercer_version", mercer_version()},
        {"kernel", of->kernel},
        {"preprocess", preprocess ? preprocess->spec : NULL},
        {"preprocess_folded", preprocess ? (folded ? "true" : "false") : NULL},
        {"kernel_before_preprocess", folded ? of->kernel_before : NULL},
        {"labels", of->labels},
        {"feature_names", of->features},
        {"target_names", of->targets},
        {"target_transform", mrc_curve_name(model->units.curve.kind)},
        {"temperature", model->calibration.temperature > 0 ? of->temperature : NULL},
        {"intervals", !model->calibration.scores   ? NULL
                      : model->calibration.classes ? "classes"
                                                   : "values"},
        {"interval_rows", model->calibration.scores ? of->interval_rows : NULL},
        {"schema", model->schema},
        {"note", model->note},
    };
    int64_t entries = sizeof metadata / sizeof metadata[0];
    if (model->comm && model->comm->ranks > 1)
        return mrc_tensor_file_write_shared(model->comm, path, of->tensors, of->count, metadata, entries);
    return mrc_tensor_file_write(model->context, path, of->tensors, of->count, metadata, entries);
}

static mercer_status collect(const mercer_model *model, const mercer_save_options *options, const mrc_tensor *extra,
                             int64_t extras, contents *out)
{
    MRC_TRY(check_model(model, options));
    MRC_TRY(mrc_alloc(model->context, &out->tensors, OWN_TENSORS + extras, sizeof(mrc_tensor), "the tensor list"));
    collect_tensors(model, options, out);
    MRC_TRY(check_numbers(model, out));
    if (extras > 0) memcpy(out->tensors + out->count, extra, (size_t)extras * sizeof *extra);
    out->count += extras;
    return collect_texts(model, out);
}

mercer_status mrc_model_write(mercer_model *model, const char *path, const mercer_save_options *options,
                              const mrc_tensor *extra, int64_t extras)
{
    const mercer_save_options as_it_is = {.struct_size = sizeof as_it_is};
    if (!options) options = &as_it_is;
    contents of = {.count = 0};
    mercer_status status = collect(model, options, extra, extras, &of);
    if (model->comm) status = mrc_comm_together(model->comm, status, "the model"); /* all write it, or none does */
    if (status == MERCER_OK) status = write_contents(model, path, &of);
    MRC_FREE_ALL(model->context, of.labels, of.features, of.targets, of.tensors);
    return status;
}
