/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: datasets, from files and synthetic.
 *
 * Only mercer_dataset_from_arrays waits for the device of the context, because its arrays may be in device memory. The
 * other functions need no device, so they can run while it is initialized (mercer_context_options.deferred).
 */
#include "data/dataset.h"

#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/files/readers.h"
#include "data/prepare/preprocess.h"
#include "data/synth/synth.h"
#include "data/table/column_texts.h"
#include "data/targets.h"

#include <string.h>

int mercer_format_list(mercer_format_info *out, int index)
{
    int count = 0;
    while (mrc_formats[count]) count++;
    if (index < 0 || index >= count) return 0;
    const mercer_format_info info = {.struct_size = sizeof info,
                                     .name = mrc_formats[index]->name,
                                     .samples = mrc_format_holds(mrc_formats[index], false),
                                     .targets = mrc_format_holds(mrc_formats[index], true)};
    return mrc_write_struct(NULL, out, &info, MRC_STRUCT(mercer_format_info), "out") == MERCER_OK;
}

/* Checks a list of at most `most` names: list and length must both be set, or neither. `what` is the word for one
   name in messages. */
static mercer_status check_names(mercer_context *context, const char *what, const char *const *names, int64_t count,
                                 int64_t most)
{
    if (count < 0 || count > most || (count == 0) != (names == NULL))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: %s_count is %lld, but %ss is %s; set both or neither, with at most %lld entries",
                        what, (long long)count, what, names ? "set" : "NULL", (long long)most);
    for (int64_t i = 0; i < count; i++)
        if (!names[i])
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %ss[%lld] is NULL", what, (long long)i);
    return MERCER_OK;
}

/* Checks the options that do not depend on the files. A wrong option is therefore reported even if a file is
   missing. */
static mercer_status check_options(mercer_context *context, const mercer_dataset_options *options)
{
    if (options->group_column && options->time_column)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: group_column and time_column are both set; set "
                        "only one");
    if (!options->x || !options->x[0])
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: x is missing; name the file of samples");
    if (options->y && !options->y[0])
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: y is empty; name the file of targets, or NULL");
    if (options->header != MERCER_AUTO && options->header != MERCER_ON && options->header != MERCER_OFF)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: header is %d; use MERCER_AUTO, MERCER_ON or MERCER_OFF", (int)options->header);
    if (options->mapping != MERCER_AUTO && options->mapping != MERCER_ON && options->mapping != MERCER_OFF)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: mapping is %d; use MERCER_AUTO, MERCER_ON or MERCER_OFF", (int)options->mapping);
    if (options->task < MERCER_TASK_AUTO || options->task > MERCER_TASK_UNLABELED)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: task is %d; use one of MERCER_TASK_...",
                        (int)options->task);
    if (options->features < 0 || options->first < 0 || options->rows < 0 || options->memory < 0 || options->spill < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: features, first, rows, memory and spill must not be negative (%lld, %lld, %lld, "
                        "%lld, %lld)",
                        (long long)options->features, (long long)options->first, (long long)options->rows,
                        (long long)options->memory, (long long)options->spill);
    MRC_TRY(check_names(context, "column", options->columns, options->column_count, INT64_MAX));
    if (options->schema && (options->kinds || options->only || options->columns))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: schema defines the columns; kinds, only and columns must not be set with it");
    MRC_TRY(check_names(context, "label", options->labels, options->label_count, MRC_MOST_CLASSES));
    if (options->labels && options->task == MERCER_TASK_REGRESSION)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: labels has no effect with regression; leave it "
                        "NULL");
    return MERCER_OK;
}

mercer_status mercer_dataset_open(mercer_dataset **out, mercer_context *context, const mercer_dataset_options *options)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    mercer_dataset_options ours;
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_dataset_options), options, "options"));
    MRC_TRY(check_options(context, &ours));
    return mrc_dataset_open(out, context, &ours);
}

mercer_status mercer_dataset_synthesize(mercer_dataset **out, mercer_context *context, const char *spec, int64_t first,
                                        int64_t rows, uint64_t seed)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    int64_t end;
    if (first < 0 || rows < 1 || !mrc_add(first, rows, &end))
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%lld samples from number %lld on; there must be at least 1, with numbers in 0 .. 2^63 - 1",
                        (long long)rows, (long long)first);
    return mrc_synth_dataset(out, context, spec, first, rows, seed);
}

/* Releases a host copy of arrays in device memory. */
static void release_copy(void *context, void *memory)
{
    mrc_free(context, memory);
}

/* Checks labels or Y; both may be NULL. Labels are host memory; Y may be in device memory and is scanned there. */
static mercer_status check_targets(mercer_context *context, const mercer_dataset_arrays *arrays)
{
    int64_t n = arrays->X->rows;
    if (arrays->Y && arrays->labels)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: Y and labels are both set; set only one");
    if (!arrays->labels && (arrays->label_names || arrays->classes))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: classes or label_names is set, but labels is NULL");
    if (arrays->labels) return mrc_check_classes(context, arrays->labels, n, arrays->classes);
    if (!arrays->Y) return MERCER_OK;
    MRC_TRY(mrc_backend_check_matrix(context->backend, "Y", arrays->Y, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "Y", arrays->Y, n, arrays->Y->cols));
    return mrc_matrix_check_finite(context->backend, "Y", arrays->Y, NULL);
}

/* Creates a dataset from arrays. Arrays on a device are copied to the host; the dataset owns the copies. Until the
   dataset exists, the scope owns the copies. The device matrix X is noted as on_device, so that training can read it
   without another copy. */
static mercer_status bring_arrays(mercer_dataset **out, mercer_context *context, const mercer_dataset_arrays *arrays)
{
    static const mercer_matrix none = {0};
    mercer_dataset_arrays here = *arrays;
    const mercer_matrix *X = arrays->X, *Y = arrays->Y ? arrays->Y : &none;
    mercer_matrix x, y;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_host_open(context->backend, X, &x));
    if (x.data != X->data) MRC_TRY(mrc_scope_add(&scope, release_copy, context, x.data));
    MRC_TRY(mrc_host_open(context->backend, Y, &y));
    if (y.data != Y->data) MRC_TRY(mrc_scope_add(&scope, release_copy, context, y.data));
    here.X = &x, here.Y = arrays->Y ? &y : NULL;
    MRC_TRY(mrc_dataset_from_arrays(out, context, &here));
    if (x.data != X->data) (*out)->x_memory = x.data, (*out)->on_device = *X;
    if (y.data != Y->data) (*out)->y_memory = y.data;
    mrc_scope_disown(&scope);
    return MERCER_OK;
}

/* X is checked before everything that has one entry per row of X. Groups or times are viewed as a column, which may
   have 0 rows, so that the check of finite values needs no special case. */
mercer_status mercer_dataset_from_arrays(mercer_dataset **out, mercer_context *context,
                                         const mercer_dataset_arrays *arrays)
{
    if (out) *out = NULL;
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!arrays) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays is NULL");
    mercer_dataset_arrays ours;
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_dataset_arrays), arrays, "arrays"));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "X", ours.X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_matrix_check_finite(context->backend, "X", ours.X, NULL));
    MRC_TRY(mrc_check_weights(context, ours.weights, ours.X->rows));
    if (ours.groups && ours.times)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "arrays: groups and times are both set; set only one");
    const double *keys = ours.groups ? ours.groups : ours.times;
    mercer_matrix column = mrc_view((double *)keys, keys ? ours.X->rows : 0, 1, MERCER_F64);
    MRC_TRY(mrc_check_finite(context, ours.groups ? "groups" : "times", &column, NULL));
    MRC_TRY(check_targets(context, &ours));
    return bring_arrays(out, context, &ours);
}

mercer_status mercer_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                          const mercer_table_column *columns, int64_t count, int64_t rows,
                                          const char *schema)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!columns) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "columns is NULL");
    if (count < 1 || rows < 1)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "%lld columns of %lld rows; there must be at least one of each",
                        (long long)count, (long long)rows);
    return mrc_dataset_from_columns(out, context, columns, count, rows, schema);
}

mercer_status mercer_dataset_query(const mercer_dataset *dataset, mercer_dataset_info *info)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    mercer_dataset_info ours = {.struct_size = sizeof ours,
                                .rows = dataset->rows,
                                .features = dataset->features,
                                .outputs = dataset->outputs,
                                .dtype = dataset->dtype,
                                .task = dataset->task,
                                .format = dataset->format,
                                .labels = dataset->label_names,
                                .feature_names = dataset->feature_names,
                                .height = dataset->height,
                                .width = dataset->width,
                                .channels = dataset->channels,
                                .mapped = mrc_dataset_is_mapped(dataset),
                                .bytes = dataset->rows * dataset->features * mrc_dtype_size(dataset->dtype),
                                .target_names = dataset->target_names,
                                .unused = dataset->unused,
                                .unused_names = dataset->unused_names,
                                .distinct = dataset->distinct,
                                .schema = dataset->schema,
                                .left_out = dataset->left_out};
    return mrc_write_struct(dataset->context, info, &ours, MRC_STRUCT(mercer_dataset_info), "info");
}

mercer_matrix mercer_dataset_samples(const mercer_dataset *dataset)
{
    return dataset ? dataset->x : (mercer_matrix){0};
}

const int32_t *mercer_dataset_labels(const mercer_dataset *dataset)
{
    return dataset ? dataset->labels : NULL;
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

/* Checks that the requested rows exist. A synthetic dataset could compute more samples, but only its own rows may be
   requested. */
static mercer_status check_range(const mercer_dataset *dataset, const int64_t *rows, int64_t first, int64_t count)
{
    int64_t end;
    if (!rows && count > 0 && (first < 0 || !mrc_add(first, count, &end) || end > dataset->rows))
        return mrc_fail(dataset->context, MERCER_ERROR_SHAPE,
                        "%lld rows from row %lld are requested, but the dataset has %lld", (long long)count,
                        (long long)first, (long long)dataset->rows);
    for (int64_t i = 0; rows && i < count; i++)
        if (rows[i] < 0 || rows[i] >= dataset->rows)
            return mrc_fail(dataset->context, MERCER_ERROR_SHAPE, "rows[%lld] is %lld, but the dataset has %lld rows",
                            (long long)i, (long long)rows[i], (long long)dataset->rows);
    return MERCER_OK;
}

/* Checks the shapes and types of the outputs of mercer_dataset_read. X is f32, f64, or of the type that preprocessed
   rows have, so that bytes can stay bytes. */
static mercer_status check_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                const mercer_matrix *X, const mercer_matrix *Y, const int32_t *labels)
{
    mercer_context *context = dataset->context;
    mercer_dtype dtype = mrc_preprocess_dtype(preprocess, dataset->dtype);
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_REAL | 1 << dtype));
    int64_t fitted = mrc_preprocess_features(preprocess);
    if (fitted > 0 && fitted != dataset->features)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "preprocess is for %lld features, but the dataset has %lld",
                        (long long)fitted, (long long)dataset->features);
    MRC_TRY(mrc_check_size(context, "X", X, X->rows, mrc_preprocess_width(preprocess, dataset->features)));
    if (labels && dataset->task != MERCER_TASK_CLASSIFICATION)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "labels is not NULL, but the dataset has no classes");
    if (!Y) return MERCER_OK;
    if (dataset->task == MERCER_TASK_UNLABELED)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "Y is not NULL, but the dataset has no targets");
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "Y", Y, X->rows, dataset->outputs));
    return mrc_check_apart(context, "Y", Y, "X", X);
}

mercer_status mercer_dataset_take(mercer_dataset **out, const mercer_dataset *from, const int64_t *rows, int64_t count)
{
    if (!from) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "from is NULL");
    if (!out) return mrc_fail(from->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!rows) return mrc_fail(from->context, MERCER_ERROR_ARGUMENT, "rows is NULL");
    if (count <= 0)
        return mrc_fail(from->context, MERCER_ERROR_ARGUMENT, "count is %lld; it must be at least 1", (long long)count);
    MRC_TRY(check_range(from, rows, 0, count));
    return mrc_dataset_take(out, from, rows, count);
}

/* A mapped file is checked before the read, so that it is safe to touch its pages. The check after the read makes sure
   that the file was not modified since it was opened. */
mercer_status mercer_dataset_read(const mercer_dataset *dataset, const mercer_matrix *X, const mercer_matrix *Y,
                                  int32_t *labels, const mercer_preprocess *preprocess, const int64_t *rows,
                                  int64_t first)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    MRC_TRY(check_read(dataset, preprocess, X, Y, labels));
    MRC_TRY(check_range(dataset, rows, first, X->rows));
    MRC_TRY(mrc_dataset_check(dataset));
    MRC_TRY(mrc_dataset_read(dataset, preprocess, rows, first, X, Y, labels));
    return mrc_dataset_check(dataset);
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

/* The endings of both names are checked before the first file is written. Equal names are refused; different names of
   the same file are not detected. */
mercer_status mercer_dataset_write(const mercer_dataset *dataset, const char *x_path, const char *y_path)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    if (!x_path) return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "x_path is NULL");
    if (y_path && dataset->task == MERCER_TASK_UNLABELED)
        return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "y_path is set, but the dataset has no targets");
    if (y_path && strcmp(x_path, y_path) == 0)
        return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "x_path and y_path are the same file, %s", x_path);
    mrc_dataset_file files[] = {{x_path, MRC_WRITE_NPY}, {y_path, MRC_WRITE_NPY}};
    for (int i = 0; i < 2; i++)
        if (files[i].path) MRC_TRY(mrc_dataset_file_form(dataset->context, &files[i]));
    return mrc_dataset_write(dataset, &files[0], y_path ? &files[1] : NULL);
}

mercer_status mercer_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix, const char *path)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    MRC_TRY(mrc_check_matrix(context, "matrix", matrix, MRC_ACCEPT_ANY));
    return mrc_matrix_write_npy(context, matrix, path);
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

mercer_status mercer_target_moments(mercer_context *context, double *mean, double *deviation, const mercer_matrix *Y,
                                    const double *weights)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    MRC_TRY(mrc_check_matrix(context, "Y", Y, MRC_ACCEPT_REAL));
    if (!mean || !deviation) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", mean ? "deviation" : "mean");
    if (Y->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "Y has no rows");
    MRC_TRY(mrc_check_finite(context, "Y", Y, NULL));
    MRC_TRY(mrc_check_weights(context, weights, Y->rows));
    return mrc_moments(context, Y, weights, mean, deviation);
}

mercer_status mercer_dataset_least_error(const mercer_dataset *dataset, double *out, int64_t rows)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    if (!out) return mrc_fail(dataset->context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (rows < 1)
        return mrc_fail(dataset->context, MERCER_ERROR_SHAPE, "rows is %lld; it must be at least 1", (long long)rows);
    return mrc_synth_least_error(dataset, out, rows);
}

/* ---- Columns of text ------------------------------------------------------------------------------------------- */

mercer_status mercer_column_texts_open(mercer_column_texts **out, mercer_context *context,
                                       const mercer_dataset_options *options, const char *columns)
{
    mercer_dataset_options ours;
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out || !columns) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is NULL", out ? "columns" : "out");
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_dataset_options), options, "options"));
    MRC_TRY(check_options(context, &ours));
    return mrc_column_texts_open(out, context, &ours, columns);
}

const char *const *mercer_column_texts_names(const mercer_column_texts *texts, int64_t *count)
{
    int64_t own = 0;
    const char *const *names = texts ? mrc_column_texts_names(texts, &own) : NULL;
    if (count) *count = own;
    return names;
}

mercer_status mercer_column_texts_next(mercer_column_texts *texts, const char *const **fields)
{
    if (!texts || !fields) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "%s is NULL", texts ? "fields" : "texts");
    return mrc_column_texts_next(texts, fields);
}

void mercer_column_texts_free(mercer_column_texts *texts)
{
    mrc_column_texts_free(texts);
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_dataset_free(mercer_dataset *dataset)
{
    mrc_dataset_free(dataset);
}

mercer_status mercer_dataset_fingerprint(const mercer_dataset *dataset, uint64_t *out)
{
    return mrc_dataset_fingerprint(dataset, out);
}

mercer_status mercer_dataset_checksum(const mercer_dataset *dataset, uint64_t *out)
{
    return mrc_dataset_checksum(dataset, out);
}
