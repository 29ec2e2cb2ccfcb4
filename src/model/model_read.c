/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading of model files. The tensor file itself has been checked; these functions check that it contains a valid
 * model.
 *
 * The contents are not trusted: sizes must agree, numbers must be finite and in range, and the setters of the model
 * (mrc_model_set_...) check texts and lists again. Their messages get the path as a prefix (inside_range). A feature in
 * a file whose format_version is too low is an error: a reader of that version would ignore it and predict wrongly.
 *
 * Tensors are views of the file; texts and small lists are copied. Optional parts that are absent keep their defaults,
 * as in files of older versions. The members of a mean are read by the same functions, with a prefix of their names.
 */
#include "model/model_file.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "core/spec.h"
#include "kernels/kernel.h"
#include "model/tensor_format.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct model_reader {
    mercer_context *context;
    const char *path;
    mrc_tensor_file *file;
    mercer_model *model;
    char prefix[MRC_MEMBER_CHARS]; /* prefix of a member's tensor and metadata names; "" for the first member */
} model_reader;

/* ---- Messages ------------------------------------------------------------------------------------------------ */

/* Fails because of the contents of the file; the message includes the remedy. */
static mercer_status fail_model(const model_reader *self, const char *what)
{
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: %s; write the file again with Mercer", self->path, what);
}

/* Prefixes the message of a failure with the file and the part that failed. The message may quote the file, so control
   characters are replaced to keep the message on one line. */
static mercer_status inside_range(const model_reader *self, const char *part, mercer_status status)
{
    char text[MRC_ERROR_CHARS];
    if (status == MERCER_OK) return status;
    snprintf(text, sizeof text, "%s", mrc_last_error(self->context));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    return mrc_fail(self->context, status == MERCER_ERROR_MEMORY ? status : MERCER_ERROR_FORMAT, "%s: %s: %s",
                    self->path, part, text);
}

/* ---- Parts --------------------------------------------------------------------------------------------------- */

/* All format versions, in order. */
enum { PLAIN, UNITS, METRIC, SCHEMA, GAPS, MEMBERS, NOTATIONS, SHIFT, CURVATURE, LEVELS, VERSIONS };
static const char *const versions[] = {MRC_MODEL_FORMAT_PLAIN,     MRC_MODEL_FORMAT_UNITS, MRC_MODEL_FORMAT_METRIC,
                                       MRC_MODEL_FORMAT_SCHEMA,    MRC_MODEL_FORMAT_GAPS,  MRC_MODEL_FORMAT_MEMBERS,
                                       MRC_MODEL_FORMAT_NOTATIONS, MRC_MODEL_FORMAT_SHIFT, MRC_MODEL_FORMAT_CURVATURE,
                                       MRC_MODEL_FORMAT_LEVELS};

/* Returns the index of the file's version in `versions`, or -1 if it is not known. */
static int version_of(const model_reader *self)
{
    const char *found = mrc_tensor_file_metadata(self->file, "format_version");
    for (int i = VERSIONS - 1; i >= 0; i--)
        if (found && strcmp(found, versions[i]) == 0) return i;
    return -1;
}

/* An unknown version is "newer" only if it looks like a version, a number of up to 9 digits; otherwise the file is
   damaged. */
static mercer_status check_format(const model_reader *self)
{
    const char *format = mrc_tensor_file_metadata(self->file, "format");
    const char *version = mrc_tensor_file_metadata(self->file, "format_version");
    if (!format || strcmp(format, MRC_MODEL_FORMAT) != 0)
        return fail_model(self,
                          "its metadata have no \"format\": \"" MRC_MODEL_FORMAT "\", so it is not a Mercer model");
    if (version_of(self) >= 0) return MERCER_OK;
    if (!version || strlen(version) > 9 || strspn(version, "0123456789") != strlen(version) || atol(version) < 1)
        return fail_model(self, "its metadata have no valid format_version");
    return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                    "%s: written by a newer Mercer (model format %s, version %s reads %s); update Mercer", self->path,
                    version, mercer_version(), versions[VERSIONS - 1]);
}

/* Return a metadata string of the member that is being read, or NULL; find a tensor of the member, and return whether
   it exists. */
static const char *own_text(const model_reader *self, const char *key)
{
    char name[MRC_TENSOR_NAME_CHARS];
    snprintf(name, sizeof name, "%s%s", self->prefix, key);
    return mrc_tensor_file_metadata(self->file, name);
}

static bool own_tensor(const model_reader *self, const char *name, mercer_matrix *out)
{
    char whole[MRC_TENSOR_NAME_CHARS];
    snprintf(whole, sizeof whole, "%s%s", self->prefix, name);
    return mrc_tensor_file_find(self->file, whole, out);
}

/* Reads the kernel function under a metadata key. The parser checks names and ranges of all parameters. */
static mercer_status read_kernel(const model_reader *self, const char *key, mercer_kernel *out)
{
    const char *text = own_text(self, key);
    if (!text) return fail_model(self, "its metadata have no kernel");
    return inside_range(self, key, mrc_kernel_parse(self->context, out, text));
}

/* Reads a tensor of the member. It must have these sizes (-1: any), one of the types `accept`, and finite values. *out
   is a view of the file, and is set even if a check fails. */
static mercer_status read_tensor(const model_reader *self, const char *name, int64_t rows, int64_t cols, int accept,
                                 mercer_matrix *out)
{
    if (!own_tensor(self, name, out))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: has no tensor \"%s%s\", so it is not a Mercer model",
                        self->path, self->prefix, name);
    if (!(accept & 1 << out->dtype) || (rows >= 0 && out->rows != rows) || (cols >= 0 && out->cols != cols))
        return mrc_fail(
            self->context, MERCER_ERROR_FORMAT,
            "%s: tensor \"%s%s\" is %lld x %lld of %s, which does not match the other tensors; write the file "
            "again with Mercer",
            self->path, self->prefix, name, (long long)out->rows, (long long)out->cols, mrc_dtype_name(out->dtype));
    return inside_range(self, "tensor", mrc_check_finite(self->context, name, out, NULL));
}

/* Reads centers (p, d), weights (p, c) and origin (d). These tensors define p, d and c; all other sizes are compared
   with them. */
static mercer_status read_tensors(const model_reader *self)
{
    mercer_model *model = self->model;
    mercer_matrix origin;
    MRC_TRY(read_tensor(self, "centers", -1, -1, MRC_ACCEPT_ANY, &model->centers));
    MRC_TRY(read_tensor(self, "weights", model->centers.rows, -1, MRC_ACCEPT_REAL, &model->weights));
    if (model->centers.rows < 1 || model->weights.cols < 1) return fail_model(self, "it has no centers or no outputs");
    MRC_TRY(read_tensor(self, "origin", 1, model->centers.cols, MRC_ACCEPT_F64, &origin));
    model->origin = origin.data;
    return MERCER_OK;
}

/* Reads the units of the targets. In a file of version 1 units are an error, because readers of that version would
   ignore them and predict in the wrong units. One of the two tensors requires the other. */
static mercer_status read_units(const model_reader *self)
{
    mercer_model *model = self->model;
    int64_t c = model->weights.cols;
    mercer_matrix offset, scale;
    bool have = mrc_tensor_file_find(self->file, "targets.offset", &offset) ||
                mrc_tensor_file_find(self->file, "targets.scale", &scale);
    if (!have) return MERCER_OK;
    if (version_of(self) < UNITS)
        return fail_model(self, "it has target units, which its format_version does not "
                                "support");
    MRC_TRY(read_tensor(self, "targets.offset", 1, c, MRC_ACCEPT_F64, &offset));
    MRC_TRY(read_tensor(self, "targets.scale", 1, c, MRC_ACCEPT_F64, &scale));
    return inside_range(self, "targets", mrc_units_set(&model->units, self->context, c, offset.data, scale.data));
}

/* Checks the range of a metric: larger entries could overflow in products with samples. */
static mercer_status check_metric(const model_reader *self, const mercer_matrix *map)
{
    for (int64_t i = 0; i < map->rows * map->cols; i++) {
        double value = mrc_load(map, i / map->cols, i % map->cols);
        if (!mrc_in_range(value, -MRC_METRIC_MOST, MRC_METRIC_MOST))
            return mrc_fail(
                self->context, MERCER_ERROR_FORMAT,
                "%s: an entry of its metric is %g; it must be in -%g .. %g; write the file again with Mercer",
                self->path, value, MRC_METRIC_MOST, MRC_METRIC_MOST);
    }
    return MERCER_OK;
}

/* Reads the map of a metric. *out has no data if there is none. Sets *features to the number of columns of samples. In
   a file of an older version a metric is an error, because readers of that version would ignore it. */
static mercer_status find_metric(const model_reader *self, mercer_matrix *out, int64_t *features)
{
    int64_t width = self->model->centers.cols;
    *features = width;
    *out = (mercer_matrix){0};
    if (!own_tensor(self, "metric", out)) return MERCER_OK;
    if (version_of(self) < METRIC)
        return fail_model(self, "it has a metric, which its format_version does not support");
    MRC_TRY(read_tensor(self, "metric", -1, width, MRC_ACCEPT_F64, out));
    if (out->rows < 1) return fail_model(self, "its metric is empty");
    MRC_TRY(check_metric(self, out));
    if (out->rows > 1) *features = out->rows;
    return width <= *features ? MERCER_OK : fail_model(self, "its metric has more columns than samples have");
}

/* Reads the transform of the targets. In a file of an older version a transform is an error, because readers of that
   version would ignore it. */
static mercer_status read_curve(const model_reader *self)
{
    mercer_model *model = self->model;
    const char *name = mrc_tensor_file_metadata(self->file, "target_transform");
    mrc_curve_kind kind;
    mercer_matrix numbers;
    if (!name) return MERCER_OK;
    if (version_of(self) < METRIC)
        return fail_model(self, "it has a target_transform, which its format_version does not support");
    if (!mrc_curve_find(name, &kind)) return fail_model(self, "its target_transform is unknown");
    MRC_TRY(read_tensor(self, "targets.curve", -1, -1, MRC_ACCEPT_F64, &numbers));
    return inside_range(self, "targets",
                        mrc_units_set_curve(&model->units, self->context, kind, model->weights.cols, &numbers));
}

/* Checks that factors are not negative: they are inverse widths, or 0 for a constant feature. Shifts may be any
   numbers. */
static mercer_status check_factors(const model_reader *self, const mercer_matrix *factor)
{
    for (int64_t j = 0; j < factor->cols; j++)
        if (mrc_load(factor, 0, j) < 0)
            return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                            "%s: preprocess.factor of feature %lld (from 0) is %g; it must not be negative; write the "
                            "file again with Mercer",
                            self->path, (long long)j, mrc_load(factor, 0, j));
    return MERCER_OK;
}

/* Checks that the quantiles of each feature do not decrease. They are equal where values of the samples repeat. */
static mercer_status check_knots(const model_reader *self, const mercer_matrix *knots)
{
    for (int64_t j = 0; j < knots->rows; j++)
        for (int64_t k = 1; k < knots->cols; k++)
            if (mrc_load(knots, j, k) < mrc_load(knots, j, k - 1))
                return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                                "%s: preprocess.quantiles of feature %lld (from 0) descend at entry %lld; write the "
                                "file again with Mercer",
                                self->path, (long long)j, (long long)k);
    return MERCER_OK;
}

/* Reads the rank weights of a blend. A file has the weights in use, but not the units that mrc_preprocess_set_blend
   needs to change them. */
static mercer_status read_rank_weight(const model_reader *self, mercer_preprocess *preprocess)
{
    mercer_matrix weight = {0};
    int64_t d = preprocess->features;
    if (d > 0) MRC_TRY(read_tensor(self, "preprocess.rank_weight", 1, d, MRC_ACCEPT_F64, &weight));
    for (int64_t j = 0; j < d; j++)
        if (!mrc_in_range(mrc_load(&weight, 0, j), 0, MRC_METRIC_MOST))
            return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                            "%s: preprocess.rank_weight of feature %lld (from 0) is %g; it must be in 0 .. %g; write "
                            "the file again with Mercer",
                            self->path, (long long)j, mrc_load(&weight, 0, j), MRC_METRIC_MOST);
    return mrc_preprocess_set_rank_weight(preprocess, weight.data, NULL, NULL);
}

/* Creates the preprocessing for d features: from its tensors if its kind stores numbers, else from its text. Without
   features (d = 0) there are no shifts and factors. */
static mercer_status make_preprocess(const model_reader *self, const char *spec, int64_t d)
{
    mrc_preprocess_kind kind;
    mercer_preprocess **out = &self->model->preprocess;
    bool known = mrc_preprocess_find_stored(spec, &kind), blend = known && kind == MRC_PREPROCESS_BLEND;
    bool rank = blend || (known && kind == MRC_PREPROCESS_RANK);
    if (!known || (kind != MRC_PREPROCESS_STANDARDIZE && kind != MRC_PREPROCESS_MINMAX && !rank))
        return inside_range(self, "preprocess", mrc_preprocess_fit(out, self->context, spec, NULL));
    mercer_matrix shift = {0}, factor = {0}, knots = {0};
    if (d > 0) MRC_TRY(read_tensor(self, "preprocess.shift", 1, d, MRC_ACCEPT_F64, &shift));
    if (d > 0) MRC_TRY(read_tensor(self, "preprocess.factor", 1, d, MRC_ACCEPT_F64, &factor));
    if (rank) MRC_TRY(read_tensor(self, "preprocess.quantiles", d, MRC_RANK_KNOTS, MRC_ACCEPT_F64, &knots));
    MRC_TRY(check_factors(self, &factor));
    MRC_TRY(check_knots(self, &knots));
    MRC_TRY(mrc_preprocess_create(out, self->context, kind, 0, d, shift.data, factor.data));
    if (rank) MRC_TRY(mrc_preprocess_set_knots(*out, knots.data));
    return blend ? read_rank_weight(self, *out) : MERCER_OK;
}

/* A metric without a preprocessing gets the preprocessing "none" as its carrier. A folded factor excludes a metric, and
   only a single factor can be folded (data/prepare/preprocess.h). */
static mercer_status read_preprocess(const model_reader *self)
{
    const char *spec = own_text(self, "preprocess"), *folded = own_text(self, "preprocess_folded");
    mercer_matrix metric;
    int64_t d;
    MRC_TRY(find_metric(self, &metric, &d));
    if (!spec && !metric.data) return MERCER_OK;
    MRC_TRY(make_preprocess(self, spec ? spec : "none", d));
    mercer_preprocess *made = self->model->preprocess;
    if (metric.data) MRC_TRY(mrc_preprocess_set_map(made, d, metric.cols, metric.rows == 1, metric.data));
    if (!folded || strcmp(folded, "true") != 0) return MERCER_OK;
    if (metric.data) return fail_model(self, "its preprocessing cannot be part of the kernel together with a metric");
    if (made->kind != MRC_PREPROCESS_SCALE) return fail_model(self, "its preprocessing cannot be part of the kernel");
    made->folded = true;
    return read_kernel(self, "kernel_before_preprocess", &made->kernel);
}

/* Passes the strings of a JSON array to a setter, which checks and copies them. */
typedef mercer_status (*set_names)(mercer_model *model, const char *const *names, int64_t count);

static mercer_status take_names(const model_reader *self, const char *key, const json_t *array, set_names set)
{
    const char **names;
    int64_t count = (int64_t)json_array_size(array);
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &names, count, sizeof *names, "the names"));
    for (int64_t i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(array, (size_t)i));
        if (!names[i])
            return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                            "%s: its %s are not all strings; write the file again with Mercer", self->path, key);
    }
    return inside_range(self, key, set(self->model, names, count));
}

/* Reads a list of at most `most` names; the list is optional, because older files do not have it. Commas are counted
   before the text is parsed, which limits the memory that the parser allocates. */
static mercer_status read_names(const model_reader *self, const char *key, int64_t most, set_names set)
{
    const char *text = mrc_tensor_file_metadata(self->file, key);
    if (!text) return MERCER_OK;
    if (!mrc_json_is_bounded(text, (int64_t)strlen(text), 1, mrc_max(most, 1) - 1))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: it has too many %s; write the file again with Mercer",
                        self->path, key);
    json_error_t error = {0};
    json_auto_t *array = json_loads(text, 0, &error);
    if (!array) /* Jansson may report a failed allocation as a bad token, so parse a second time */
        array = json_loads(text, 0, &error);
    if (!array && mrc_json_no_memory(&error))
        return mrc_fail(self->context, MERCER_ERROR_MEMORY, "%s: out of memory for the %s", self->path, key);
    if (!json_is_array(array))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                        "%s: its %s are not a JSON array; write the file again with Mercer", self->path, key);
    return take_names(self, key, array, set);
}

/* Reads a number from the metadata, which must be present and in the range. */
static mercer_status read_scalar(const model_reader *self, const char *key, double low, double high, double *out)
{
    const char *text = mrc_tensor_file_metadata(self->file, key);
    *out = 0;
    if (text && mrc_scan_number(text, out) && mrc_in_range(*out, low, high)) return MERCER_OK;
    return inside_range(self, key,
                        mrc_fail(self->context, MERCER_ERROR_FORMAT,
                                 "'%.40s' is not a number in %g .. %g; write the file again with Mercer",
                                 text ? text : "", low, high));
}

/* Reads temperature and curvature, which may be missing. */
static mercer_status read_probabilities(const model_reader *self)
{
    double temperature = 0, curvature = 0;
    if (mrc_tensor_file_metadata(self->file, "temperature"))
        MRC_TRY(read_scalar(self, "temperature", MRC_TEMPERATURE_LEAST, MRC_TEMPERATURE_MOST, &temperature));
    if (mrc_tensor_file_metadata(self->file, "curvature")) {
        if (version_of(self) < CURVATURE)
            return fail_model(self, "it has a curvature of class scores, which its format_version does not support");
        MRC_TRY(read_scalar(self, "curvature", MRC_CURVATURE_LEAST, MRC_CURVATURE_MOST, &curvature));
    }
    return inside_range(self, "temperature", mrc_model_set_calibration(self->model, temperature, curvature));
}

/* Reads the calibration, which may be missing. Intervals need three entries: their task, the number of rows and the
   scores. */
static mercer_status read_calibration(const model_reader *self)
{
    mercer_matrix scores;
    double value;
    const char *kind = mrc_tensor_file_metadata(self->file, "intervals");
    MRC_TRY(read_probabilities(self));
    if (mrc_tensor_file_find(self->file, "classes.shift", &scores)) {
        if (version_of(self) < SHIFT)
            return fail_model(self, "it has class shifts, which its format_version does not "
                                    "support");
        MRC_TRY(read_tensor(self, "classes.shift", 1, self->model->weights.cols, MRC_ACCEPT_F64, &scores));
        MRC_TRY(inside_range(self, "classes.shift", mrc_model_set_class_shift(self->model, scores.data)));
    }
    if (!kind) return MERCER_OK;
    if (strcmp(kind, "classes") != 0 && strcmp(kind, "values") != 0)
        return fail_model(self, "its intervals have an unknown task");
    MRC_TRY(read_scalar(self, "interval_rows", 1, MRC_INTERVAL_ROWS_MOST, &value));
    MRC_TRY(read_tensor(self, "intervals.scores", -1, -1, MRC_ACCEPT_F64, &scores));
    mercer_task task = strcmp(kind, "classes") == 0 ? MERCER_TASK_CLASSIFICATION : MERCER_TASK_REGRESSION;
    return inside_range(self, "intervals", mrc_model_set_intervals(self->model, &scores, value, task));
}

/* Reads the schema. In a file of an older version a schema is an error, because a reader of that version would read
   cells as features. */
static mercer_status read_schema(const model_reader *self)
{
    const char *schema = mrc_tensor_file_metadata(self->file, "schema");
    if (!schema) return MERCER_OK;
    if (version_of(self) < SCHEMA)
        return fail_model(self, "it has a schema, which its format_version does not support");
    MRC_TRY(inside_range(self, "schema", mrc_model_set_schema(self->model, schema)));
    if (self->model->fills_gaps && version_of(self) < GAPS)
        return fail_model(self, "its schema fills in missing values, which its format_version does not support");
    if (self->model->reads_notations && version_of(self) < NOTATIONS)
        return fail_model(self, "its schema has notations, which its format_version does not support");
    if (self->model->has_statistics && version_of(self) < LEVELS)
        return fail_model(self, "its schema has statistics of levels, which its format_version does not support");
    return MERCER_OK;
}

/* ---- Models -------------------------------------------------------------------------------------------------- */

/* Reads a member after the first and appends it to the model. It has its own centers, kernel and preprocessing; names,
   schema and calibration belong to the first member. */
static mercer_status read_member(mercer_model *first, const model_reader *reader, int64_t number)
{
    MRC_OWNED(mrc_release_model) mercer_model *member = NULL;
    MRC_TRY(mrc_model_open(&member, reader->context));
    member->inside = true;
    model_reader self = {.context = reader->context, .path = reader->path, .file = reader->file, .model = member};
    mrc_member_prefix(number, self.prefix);
    MRC_TRY(read_kernel(&self, "kernel", &member->kernel));
    MRC_TRY(read_tensors(&self));
    MRC_TRY(read_preprocess(&self));
    self.prefix[0] = 0; /* the units are shared by all members */
    if (member->weights.cols != first->weights.cols) return fail_model(&self, "its members differ in their outputs");
    MRC_TRY(read_units(&self));
    MRC_TRY(read_curve(&self));
    member->total = member->centers.rows;
    MRC_TRY(inside_range(&self, "members", mrc_model_append(first, member)));
    member = NULL;
    return MERCER_OK;
}

/* Reads the members after the first. In a file of an older version they are an error, because a reader of that version
   would predict with the first member only. */
static mercer_status read_members(const model_reader *self)
{
    const char *text = mrc_tensor_file_metadata(self->file, "members");
    double count;
    if (!text) return MERCER_OK;
    if (version_of(self) < MEMBERS)
        return fail_model(self, "it has members, which its format_version does not support");
    if (!mrc_scan_number(text, &count) || !(count >= 2 && count <= MERCER_MEMBERS && count == (double)(int64_t)count))
        return fail_model(self, "its number of members is not valid");
    if (self->model->comm)
        return mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                        "%s: is the mean of %s models and cannot be shared by ranks; use one process", self->path,
                        text);
    for (int64_t i = 1; i < (int64_t)count; i++) MRC_TRY(read_member(self->model, self, i));
    return MERCER_OK;
}

/* Reads everything except the members after the first. The format is checked first, so that a file of a newer version
   is refused for this reason. */
static mercer_status read_parts(const model_reader *self)
{
    const char *note = mrc_tensor_file_metadata(self->file, "note");
    MRC_TRY(check_format(self));
    MRC_TRY(read_kernel(self, "kernel", &self->model->kernel));
    MRC_TRY(read_tensors(self));
    MRC_TRY(read_units(self));
    MRC_TRY(read_curve(self));
    MRC_TRY(read_preprocess(self));
    MRC_TRY(read_names(self, "labels", mrc_max(2, self->model->weights.cols), mrc_model_set_labels));
    MRC_TRY(read_names(self, "feature_names", mrc_model_features(self->model), mrc_model_set_feature_names));
    MRC_TRY(read_names(self, "target_names", self->model->weights.cols, mrc_model_set_target_names));
    MRC_TRY(read_calibration(self));
    MRC_TRY(read_schema(self));
    MRC_TRY(read_members(self));
    return note ? mrc_model_set_note(self->model, note) : MERCER_OK;
}

/* Reduces centers and weights to the rows of this rank. */
static void take_share(mercer_model *model)
{
    int64_t rows = model->total = model->centers.rows;
    if (!model->comm) return;
    mrc_comm_rows(model->comm, model->total, model->comm->rank, &model->first, &rows);
    mercer_matrix *const both[] = {&model->centers, &model->weights};
    for (int i = 0; i < 2; i++) *both[i] = mrc_rows(both[i], model->first, rows);
}

mercer_status mrc_model_read(mercer_model **out, mercer_context *context, mrc_comm *comm, const char *path)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    MRC_OWNED(mrc_release_model) mercer_model *model = NULL;
    *out = NULL;
    /* With ranks the file is mapped, not copied, because each rank needs its own rows only. */
    MRC_TRY((comm ? mrc_tensor_file_open : mrc_tensor_file_read)(&file, context, path));
    MRC_TRY(mrc_model_open(&model, context));
    model->comm = comm;
    model_reader self = {.context = context, .path = path, .file = file, .model = model};
    mercer_status status = read_parts(&self);
    /* taken before anything can fail, because the model's tensors are views of it */
    model->map = mrc_tensor_file_take_mapping(file);
    MRC_TRY(status);
    take_share(model);
    *out = model, model = NULL;
    return MERCER_OK;
}
