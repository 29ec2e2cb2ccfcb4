/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a dataset: recognizes the formats of files by their contents, maps or reads the samples, then opens the
   targets. */
#include "core/memory.h"
#include "data/opening.h"
#include "data/schema/schema.h"

/* ---- Samples ------------------------------------------------------------------------------------------------- */

/* Treats arrays of three or four dimensions as images: (n, height, width) or (n, height, width, channels) by
   convention. */
static void set_image(mercer_dataset *dataset, const mrc_array *array)
{
    if (array->dims != 3 && array->dims != 4) return;
    dataset->height = array->shape[1];
    dataset->width = array->shape[2];
    dataset->channels = array->dims == 4 ? array->shape[3] : 1;
}

/* Opens samples in array files, in place where possible. */
static mercer_status open_arrays(mrc_opening *self, mrc_files *files)
{
    mercer_dataset *dataset = self->dataset;
    int64_t total;
    MRC_TRY(mrc_files_parse(files, self->options->raw, &total));
    MRC_TRY(mrc_slice_resolve(&self->slice, self->context, files->name, total));
    MRC_TRY(mrc_files_parts(files, &self->slice, false, &dataset->x_parts));
    set_image(dataset, files->arrays);
    mrc_parts_finish(self->context, &dataset->x_parts, &dataset->x, &dataset->x_map, &dataset->x_memory);
    return MERCER_OK;
}

/* Reads samples in text or record files, and targets unless they are in separate files. */
static mercer_status open_text(mrc_opening *self, const mrc_files *files)
{
    MRC_OWNED(mrc_reading_close) mrc_reading reading = mrc_opening_reading(self, files);
    reading.want_targets = !self->options->y && self->options->task != MERCER_TASK_UNLABELED;
    MRC_TRY(files->format->read_samples(&reading, self->dataset));
    self->slice = reading.slice;
    return reading.have_targets ? mrc_opening_finish_targets(self, &reading.targets) : MERCER_OK;
}

static mercer_status open_samples(mrc_opening *self)
{
    MRC_OWNED(mrc_files_close) mrc_files files = {0};
    MRC_TRY(mrc_files_open(&files, self, self->options->x, self->options->format, false));
    self->dataset->format = files.format->name;
    return files.format->parse ? open_arrays(self, &files) : open_text(self, &files);
}

/* ---- Dataset ------------------------------------------------------------------------------------------------- */

/* Opens samples, then targets, and sets the sizes of the dataset. */
static mercer_status open_both(mrc_opening *self)
{
    mercer_dataset *dataset = self->dataset;
    mercer_task task = self->options->task;
    MRC_TRY(open_samples(self));
    dataset->rows = dataset->x.rows;
    dataset->features = dataset->x.cols;
    dataset->dtype = dataset->x.dtype;
    /* At this point only targets in the files of samples are known. If targets are in a separate file, categories have
       no statistics of the targets. */
    MRC_TRY(mrc_dataset_add_statistics(dataset));
    if (self->options->columns && dataset->features != self->options->column_count)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "%s: %lld features, but the model was trained on %lld",
                        self->options->x, (long long)dataset->features, (long long)self->options->column_count);
    if (self->options->y && task != MERCER_TASK_UNLABELED) MRC_TRY(mrc_open_targets(self));
    /* The task is still AUTO if no targets were read. */
    if (dataset->task == MERCER_TASK_AUTO) {
        if (task == MERCER_TASK_CLASSIFICATION || task == MERCER_TASK_REGRESSION)
            return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                            "%s: contains no targets; give the file of "
                            "targets (y)",
                            self->options->x);
        dataset->task = MERCER_TASK_UNLABELED;
    }
    return MERCER_OK;
}

mercer_status mrc_dataset_open(mercer_dataset **out, mercer_context *context, const mercer_dataset_options *options)
{
    MRC_OWNED(mrc_release_dataset) mercer_dataset *dataset = NULL;
    MRC_TRY(mrc_alloc_zero(context, &dataset, 1, sizeof *dataset, "the dataset"));
    dataset->context = context;
    mrc_opening self = {.context = context,
                        .options = options,
                        .dataset = dataset,
                        .budget = mrc_budget_of(options),
                        .slice = {.first = options->first, .rows = options->rows}};
    MRC_TRY(open_both(&self));
    *out = dataset, dataset = NULL;
    return MERCER_OK;
}
