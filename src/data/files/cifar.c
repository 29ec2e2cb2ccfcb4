/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary files of CIFAR-10 and CIFAR-100: records without a file header. A record is a label (CIFAR-100: a coarse and a
 * fine label), then an image of 32 x 32 pixels as three planes of bytes: red, green, blue.
 *
 * Samples have the pixel order of other images, height x width x channel. Targets are in the files; for CIFAR-100 the
 * classes are the fine labels unless the target option is "coarse".
 */
#include "data/files/readers.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

enum { SIDE = 32, PLANES = 3, PLANE = SIDE * SIDE, PIXELS = PLANES * PLANE };

/* A label of a record: its name, its byte offset in the record, and the number of classes. */
typedef struct label {
    const char *name;
    int place, classes;
} label;

typedef struct kind {
    const char *title;
    int labels;     /* number of label bytes before the pixels */
    label named[2]; /* labels by name; the first one is the default */
} kind;

static const kind cifar10 = {"CIFAR-10", 1, {{"label", 0, 10}}};
static const kind cifar100 = {"CIFAR-100", 2, {{"fine", 1, 100}, {"coarse", 0, 20}}};

/* Finds the label that the target option names. */
static mercer_status find_label(const kind *of, const mrc_reading *reading, const label **out)
{
    const char *target = reading->options->target;
    for (int i = 0; i < of->labels; i++) {
        *out = &of->named[i];
        if (!target || strcmp(target, of->named[i].name) == 0) return MERCER_OK;
    }
    return mrc_fail(reading->input->context, MERCER_ERROR_ARGUMENT,
                    "%s: target '%s' does not exist; a record of %s "
                    "has %s",
                    reading->name, target, of->title, of->labels == 1 ? "'label'" : "'fine' and 'coarse'");
}

/* Adds the number of records of a file to *total. The format has no magic bytes, so the size is the only check. */
static mercer_status count_records(const kind *of, const mrc_input *input, int64_t *total)
{
    int64_t record = of->labels + PIXELS;
    if (input->bytes % record == 0 && mrc_add(*total, input->bytes / record, total)) return MERCER_OK;
    return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                    "%s: the size of %lld bytes is not a whole number of %s records of %lld bytes (%d label%s and "
                    "32 x 32 x 3 pixels)",
                    input->path, (long long)input->bytes, of->title, (long long)record, of->labels,
                    of->labels == 1 ? "" : "s");
}

/* Allocates samples and targets for the slice. */
static mercer_status allocate_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    const mrc_input *input = reading->input;
    int64_t rows = reading->slice.rows, bytes;
    if (!mrc_multiply(rows, PIXELS + MRC_TARGET_BYTES, &bytes)) bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, bytes));
    MRC_TRY(mrc_alloc(input->context, &dataset->x_memory, rows, PIXELS, "samples"));
    dataset->x = mrc_view(dataset->x_memory, rows, PIXELS, MERCER_U8);
    dataset->height = dataset->width = SIDE;
    dataset->channels = PLANES;
    if (!reading->want_targets) return MERCER_OK;
    reading->have_targets = true;
    return mrc_targets_open(&reading->targets, input->context, reading->name, MRC_TARGETS_LABELS, rows);
}

/* Adds the label of a record to the targets, after checking its range. */
static mercer_status take_label(const kind *of, const label *wanted, mrc_reading *reading, const uint8_t *record,
                                int64_t place)
{
    int value = record[wanted->place];
    if (value < wanted->classes) return mrc_targets_number(&reading->targets, value, place);
    return mrc_fail(reading->input->context, MERCER_ERROR_DATA,
                    "%s: record %lld (from 0) has the label %d (%s); labels of %s are 0 to %d", reading->targets.path,
                    (long long)place, value, wanted->name, of->title, wanted->classes - 1);
}

/* Reads the records of a file that belong to the slice. `before`: number of records in earlier files. */
static mercer_status read_file(const kind *of, const label *wanted, mrc_reading *reading, const mrc_input *input,
                               int64_t before, const mercer_matrix *x)
{
    const mrc_slice *slice = &reading->slice;
    int64_t record = of->labels + PIXELS, count = input->bytes / record;
    int64_t first = mrc_max(slice->first - before, 0), end = mrc_min(slice->first + slice->rows - before, count);
    reading->targets.path = input->path;
    for (int64_t i = first; i < end; i++) {
        const uint8_t *from = (const uint8_t *)input->data + i * record, *pixel = from + of->labels;
        uint8_t *to = mrc_row(x, before + i - slice->first);
        if (reading->have_targets) MRC_TRY(take_label(of, wanted, reading, from, i));
        /* Byte k of a sample is channel k % 3 of pixel k / 3. */
        for (int k = 0; k < PIXELS; k++) to[k] = pixel[k % PLANES * PLANE + k / PLANES];
    }
    reading->targets.path = reading->name;
    return MERCER_OK;
}

/* Reads the slice from the files of one kind. */
static mercer_status read_kind(const kind *of, mrc_reading *reading, mercer_dataset *dataset)
{
    const label *wanted = NULL;
    int64_t total = 0, before = 0;
    MRC_TRY(find_label(of, reading, &wanted));
    for (int64_t i = 0; i < reading->count; i++) MRC_TRY(count_records(of, &reading->input[i], &total));
    MRC_TRY(mrc_slice_resolve(&reading->slice, reading->input->context, reading->name, total));
    MRC_TRY(allocate_samples(reading, dataset));
    for (int64_t i = 0; i < reading->count; i++) {
        MRC_TRY(read_file(of, wanted, reading, &reading->input[i], before, &dataset->x));
        before += reading->input[i].bytes / (of->labels + PIXELS);
    }
    return MERCER_OK;
}

static mercer_status read_cifar10(mrc_reading *reading, mercer_dataset *dataset)
{
    return read_kind(&cifar10, reading, dataset);
}

static mercer_status read_cifar100(mrc_reading *reading, mercer_dataset *dataset)
{
    return read_kind(&cifar100, reading, dataset);
}

const mrc_format mrc_format_cifar10 = {.name = "cifar10",
                                       .endings = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                   "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"},
                                       .has_header = true,
                                       .read_samples = read_cifar10};

/* No endings are listed, because the file names of CIFAR-100, train.bin and test.bin, could belong to any format. */
const mrc_format mrc_format_cifar100 = {.name = "cifar100", .has_header = true, .read_samples = read_cifar100};
