/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets: opened from files, read row by row, released. */
#include "data/dataset.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/array.h"
#include "data/readers.h"
#include "data/synth.h"

#include <string.h>

typedef struct opening {
    mercer_context *context;
    const mercer_dataset_options *options;
    mercer_dataset *dataset;
    mrc_budget budget;
    mrc_slice slice; /* of the file of samples */
} opening;

mercer_status mrc_slice_settle(mrc_slice *slice, const mrc_input *input, int64_t total)
{
    int64_t end;
    slice->total = total;
    if (total == 0) return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: holds no samples", input->path);
    if (slice->rows == 0) slice->rows = total - slice->first;
    if (slice->rows > 0 && mrc_add(slice->first, slice->rows, &end) && end <= total) return MERCER_OK;
    return mrc_fail(input->context, MERCER_ERROR_SHAPE,
                    "%s: rows from %lld on were asked for (%lld of them), it has %lld", input->path,
                    (long long)slice->first, (long long)mrc_max(slice->rows, 1), (long long)total);
}

/* ---- Samples ------------------------------------------------------------------------------------------------- */

/* Three or four dimensions are images, by the custom of who writes such files. */
static void set_image(mercer_dataset *dataset, const mrc_array *array)
{
    if (array->dims != 3 && array->dims != 4) return;
    dataset->height = array->shape[1];
    dataset->width = array->shape[2];
    dataset->channels = array->dims == 4 ? array->shape[3] : 1;
}

static mercer_status parse_array(mrc_array *array, const mrc_input *input, mrc_format format, const char *raw)
{
    if (format == MRC_FORMAT_NPY) return mrc_npy_parse(array, input);
    return format == MRC_FORMAT_IDX ? mrc_idx_parse(array, input) : mrc_raw_parse(array, input, raw);
}

static mercer_status open_array(opening *self, mrc_input *input, mrc_format format)
{
    mercer_dataset *dataset = self->dataset;
    mrc_array array;
    void *memory;
    MRC_TRY(parse_array(&array, input, format, self->options->raw));
    MRC_TRY(mrc_slice_settle(&self->slice, input, array.shape[0]));
    MRC_TRY(mrc_array_matrix(&dataset->x, &memory, &array, input, self->slice.first, self->slice.rows, false));
    set_image(dataset, &array);
    if (memory) {
        dataset->x_memory = memory;
        return MERCER_OK;
    }
    dataset->x_map = input->map;
    dataset->x_memory = input->memory;
    input->map = (mrc_mapping){0};
    input->memory = NULL;
    return MERCER_OK;
}

static mercer_status open_text(opening *self, const mrc_input *input, mrc_format format)
{
    mrc_reading reading = {.input = input,
                           .options = self->options,
                           .format = format,
                           .slice = self->slice,
                           .want_targets = !self->options->y && self->options->task != MERCER_TASK_UNLABELLED};
    mercer_status status = format == MRC_FORMAT_LIBSVM ? mrc_libsvm_samples(&reading, self->dataset)
                                                       : mrc_csv_samples(&reading, self->dataset);
    self->slice = reading.slice;
    mrc_target_wish wish = {self->options->task, self->options->labels, self->options->label_count};
    if (status == MERCER_OK && reading.have_targets)
        status = mrc_targets_settle(&reading.targets, &wish, self->dataset);
    if (reading.have_targets) mrc_targets_close(&reading.targets);
    return status;
}

static mercer_status open_samples(opening *self)
{
    mrc_input input;
    mrc_format format;
    MRC_TRY(mrc_input_open(&input, self->context, self->options->x, &self->budget));
    mercer_status status = mrc_find_format(&format, &input, self->options->format, false);
    if (status == MERCER_OK) {
        bool text = format == MRC_FORMAT_CSV || format == MRC_FORMAT_TSV || format == MRC_FORMAT_LIBSVM;
        self->dataset->format = mrc_format_name(format);
        status = text ? open_text(self, &input, format) : open_array(self, &input, format);
    }
    mrc_input_close(&input);
    return status;
}

/* ---- Targets in a file of their own -------------------------------------------------------------------------- */

static mercer_status check_rows(const opening *self, int64_t rows)
{
    if (rows == self->slice.total) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_SHAPE, "%s has %lld targets, %s has %lld samples; they must agree",
                    self->options->y, (long long)rows, self->options->x, (long long)self->slice.total);
}

/* One target a sample, which may be a class. */
static mercer_status collect_array(opening *self, const mrc_array *array, const mrc_input *input)
{
    const mrc_slice *slice = &self->slice;
    mrc_targets targets;
    MRC_TRY(mrc_budget_take(self->context, &self->budget, input->path, slice->rows * MRC_TARGET_BYTES));
    bool discrete = mrc_element_is_integer(array->element) || mrc_element_is_text(array->element);
    mrc_target_origin origin = discrete ? MRC_TARGETS_INTEGER : MRC_TARGETS_REAL;
    MRC_TRY(mrc_targets_open(&targets, self->context, input->path, origin, slice->rows));
    mercer_status status = MERCER_OK;
    for (int64_t i = slice->first; i < slice->first + slice->rows && status == MERCER_OK; i++) {
        if (mrc_element_is_text(array->element)) {
            char text[MRC_LABEL_CHARS];
            if (mrc_array_text(array, i, text, sizeof text))
                status = mrc_targets_text(&targets, text, (int64_t)strlen(text), i);
            else
                status = mrc_fail(self->context, MERCER_ERROR_DATA,
                                  "%s: element %lld (from 0) is not a text of at most %d bytes", input->path,
                                  (long long)i, MRC_LABEL_CHARS - 1);
        } else {
            status = mrc_targets_number(&targets, mrc_array_number(array, i), i);
        }
    }
    mrc_target_wish wish = {self->options->task, self->options->labels, self->options->label_count};
    if (status == MERCER_OK) status = mrc_targets_settle(&targets, &wish, self->dataset);
    mrc_targets_close(&targets);
    return status;
}

/* Values, used as they are stored where that is possible. */
static mercer_status take_values(opening *self, const mrc_array *array, mrc_input *input)
{
    mercer_dataset *dataset = self->dataset;
    void *memory;
    MRC_TRY(mrc_array_matrix(&dataset->y, &memory, array, input, self->slice.first, self->slice.rows, true));
    dataset->y_memory = memory;
    MRC_TRY(mrc_check_finite(self->context, input->path, &dataset->y, NULL));
    dataset->task = MERCER_TASK_REGRESSION;
    dataset->outputs = dataset->y.cols;
    if (memory) return MERCER_OK;
    dataset->y_map = input->map;
    dataset->y_memory = input->memory;
    input->map = (mrc_mapping){0};
    input->memory = NULL;
    return MERCER_OK;
}

static mercer_status open_target_array(opening *self, mrc_input *input, mrc_format format)
{
    mrc_array array;
    mercer_task task = self->options->task;
    MRC_TRY(parse_array(&array, input, format, NULL));
    MRC_TRY(check_rows(self, array.shape[0]));
    bool column = mrc_array_row(&array) == 1, text = mrc_element_is_text(array.element);
    bool classes = task == MERCER_TASK_CLASSIFICATION || self->options->labels || text;
    if (classes && !column)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                        "%s: has %lld columns; classes are one column of numbers or names", input->path,
                        (long long)mrc_array_row(&array));
    if (task == MERCER_TASK_AUTO && column && mrc_element_is_integer(array.element)) classes = true;
    return classes ? collect_array(self, &array, input) : take_values(self, &array, input);
}

static mercer_status open_target_text(opening *self, const mrc_input *input, mrc_format format)
{
    mrc_reading reading = {.input = input, .options = self->options, .format = format, .slice = self->slice};
    mercer_status status = mrc_csv_targets(&reading, self->slice.total);
    if (status == MERCER_OK) status = check_rows(self, reading.slice.total);
    mrc_target_wish wish = {self->options->task, self->options->labels, self->options->label_count};
    if (status == MERCER_OK) status = mrc_targets_settle(&reading.targets, &wish, self->dataset);
    if (reading.have_targets) mrc_targets_close(&reading.targets);
    return status;
}

static mercer_status open_targets(opening *self)
{
    mrc_input input;
    mrc_format format;
    MRC_TRY(mrc_input_open(&input, self->context, self->options->y, &self->budget));
    mercer_status status = mrc_find_format(&format, &input, self->options->y_format, true);
    if (status == MERCER_OK) {
        bool array = format == MRC_FORMAT_NPY || format == MRC_FORMAT_IDX;
        status = array ? open_target_array(self, &input, format) : open_target_text(self, &input, format);
    }
    mrc_input_close(&input);
    return status;
}

/* ---- Opening and releasing ----------------------------------------------------------------------------------- */

static mercer_status open_files(opening *self)
{
    mercer_dataset *dataset = self->dataset;
    mercer_task task = self->options->task;
    MRC_TRY(open_samples(self));
    dataset->rows = dataset->x.rows;
    dataset->features = dataset->x.cols;
    dataset->dtype = dataset->x.dtype;
    if (self->options->y && task != MERCER_TASK_UNLABELLED) MRC_TRY(open_targets(self));
    if (dataset->task == MERCER_TASK_AUTO) {
        if (task == MERCER_TASK_CLASSIFICATION || task == MERCER_TASK_REGRESSION)
            return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "%s: holds no targets; give the file of targets (y)",
                            self->options->x);
        dataset->task = MERCER_TASK_UNLABELLED;
    }
    return MERCER_OK;
}

mercer_status mrc_dataset_open(mercer_dataset **out, mercer_context *context, const mercer_dataset_options *options)
{
    void *memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(mercer_dataset), "the dataset"));
    opening self = {.context = context,
                    .options = options,
                    .dataset = memory,
                    .budget = {.allowed = options->memory > 0 ? options->memory : mrc_free_memory() / 2},
                    .slice = {.first = options->first, .rows = options->rows}};
    self.dataset->context = context;
    mercer_status status = open_files(&self);
    if (status == MERCER_OK)
        *out = self.dataset;
    else
        mrc_dataset_free(self.dataset);
    return status;
}

void mrc_dataset_free(mercer_dataset *dataset)
{
    if (!dataset) return;
    mercer_context *context = dataset->context;
    mrc_unmap(&dataset->x_map);
    mrc_unmap(&dataset->y_map);
    mrc_free(context, dataset->x_memory);
    mrc_free(context, dataset->y_memory);
    mrc_free(context, dataset->label_memory);
    mrc_free(context, dataset->label_text);
    mrc_free(context, dataset->feature_text);
    mrc_synth_free(context, dataset->synth);
    mrc_free(context, dataset);
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

void mrc_dataset_target(const mercer_dataset *dataset, int64_t from, const mercer_matrix *y, int64_t to)
{
    if (dataset->labels) {
        memset(mrc_row(y, to), 0, (size_t)(y->cols * mrc_dtype_size(y->dtype)));
        mrc_store(y, to, dataset->labels[from], 1);
    } else if (dataset->y.dtype == y->dtype) {
        memcpy(mrc_row(y, to), mrc_row(&dataset->y, from), (size_t)(y->cols * mrc_dtype_size(y->dtype)));
    } else {
        for (int64_t j = 0; j < y->cols; j++) mrc_store(y, to, j, mrc_load(&dataset->y, from, j));
    }
}

void mrc_dataset_fetch(const mercer_dataset *dataset, const int64_t *rows, int64_t first, const mercer_matrix *x,
                       const mercer_matrix *y, int32_t *labels)
{
    size_t bytes = (size_t)(dataset->features * mrc_dtype_size(dataset->dtype));
    for (int64_t i = 0; i < x->rows; i++) {
        int64_t from = rows ? rows[i] : first + i;
        if (dataset->synth) {
            mrc_synth_sample(dataset->synth, dataset->synth_first + from, x, y, i, labels ? &labels[i] : NULL);
            continue;
        }
        memcpy(mrc_row(x, i), mrc_row(&dataset->x, from), bytes);
        if (y) mrc_dataset_target(dataset, from, y, i);
        if (labels) labels[i] = dataset->labels[from];
    }
}
