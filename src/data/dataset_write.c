/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes datasets to NPY files and tables. Files are written atomically, and in blocks of rows, because the data may be
   larger than memory. */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>

/* ---- Text ---------------------------------------------------------------------------------------------------- */

enum { BUFFER_BYTES = 1 << 16, NUMBER_CHARS = 40 };

/* Delimited text, written through a buffer. */
typedef struct text_writer {
    mercer_context *context;
    mrc_writer *to; /* borrowed */
    char separator; /* ',' or '\t' */
    char *buffer;
    int64_t used;
    mercer_status status; /* status of the first failed write; later output is dropped */
} text_writer;

static mercer_status text_open(text_writer *out, mrc_writer *to, char separator)
{
    *out = (text_writer){.context = to->context, .to = to, .separator = separator};
    return mrc_alloc(to->context, &out->buffer, BUFFER_BYTES, 1, "a block of text");
}

/* Writes the buffered text. Returns the status of the first failed write. */
static mercer_status text_flush(text_writer *self)
{
    if (self->status == MERCER_OK) self->status = mrc_writer_write(self->to, self->buffer, self->used);
    self->used = 0;
    return self->status;
}

/* Appends text to the buffer, and writes the buffer whenever it is full. */
static void put_cell(text_writer *self, const char *text, int64_t length)
{
    while (length > 0) {
        if (self->used == BUFFER_BYTES) text_flush(self);
        int64_t count = mrc_min(length, BUFFER_BYTES - self->used);
        memcpy(self->buffer + self->used, text, (size_t)count);
        self->used += count, text += count, length -= count;
    }
}

/* Writes a name, in quotes if it is empty or contains a separator, a quote or a line break. */
static void put_name(text_writer *self, const char *name)
{
    const char special[] = {self->separator, '"', '\n', '\r', 0};
    bool quoted = !*name || strpbrk(name, special);
    if (quoted) put_cell(self, "\"", 1);
    /* Each piece ends with a quote, which is written twice. */
    for (const char *quote; (quote = strchr(name, '"')); name = quote + 1) {
        put_cell(self, name, quote + 1 - name);
        put_cell(self, "\"", 1);
    }
    put_cell(self, name, (int64_t)strlen(name));
    if (quoted) put_cell(self, "\"", 1);
}

/* Writes a line of names. */
static mercer_status text_names(text_writer *self, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) put_cell(self, &self->separator, 1);
        put_name(self, names[i]);
    }
    put_cell(self, "\n", 1);
    return self->status;
}

/* Writes rows of numbers with the fewest digits that read back as the same values. */
static mercer_status text_rows(text_writer *self, const mercer_matrix *rows)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        for (int64_t j = 0; j < rows->cols; j++) {
            char number[NUMBER_CHARS];
            double value = mrc_load(rows, i, j);
            if (j > 0) put_cell(self, &self->separator, 1);
            if (rows->dtype == MERCER_F64)
                mrc_print_number(value, number, sizeof number);
            else
                mrc_print_single((float)value, number, sizeof number);
            put_cell(self, number, (int64_t)strlen(number));
        }
        put_cell(self, "\n", 1);
    }
    return self->status;
}

enum { BLOCK_BYTES = 1 << 20, HEADER_UNIT = 64 };

/* Returns the NPY type string of numbers in the byte order of this machine. */
static const char *descr_of(mercer_dtype dtype)
{
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1;
    switch (dtype) {
        case MERCER_F64: return little ? "<f8" : ">f8";
        case MERCER_F32: return little ? "<f4" : ">f4";
        case MERCER_F16: return little ? "<f2" : ">f2";
        case MERCER_U8: return "|u1";
    }
    return "";
}

/* Writes an NPY header, version 1.0. Spaces before the final newline align the data to 64 bytes, so that readers can
   map the data. */
static mercer_status write_header(mrc_writer *writer, const char *descr, const char *shape)
{
    static const uint8_t mark[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char header[4 * HEADER_UNIT];
    int length = snprintf(header + 10, sizeof header - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                          descr, shape);
    int64_t total = mrc_round_up(10 + length + 1, HEADER_UNIT);
    memcpy(header, mark, sizeof mark);
    header[8] = (char)((total - 10) & 0xff);
    header[9] = (char)((total - 10) >> 8);
    memset(header + 10 + length, ' ', (size_t)(total - 10 - length));
    header[total - 1] = '\n';
    return mrc_writer_write(writer, header, total);
}

static mercer_status write_rows(mrc_writer *writer, const mercer_matrix *matrix)
{
    int64_t row = matrix->cols * mrc_dtype_size(matrix->dtype);
    if (matrix->ld == matrix->cols) return mrc_writer_write(writer, matrix->data, matrix->rows * row);
    for (int64_t i = 0; i < matrix->rows; i++) MRC_TRY(mrc_writer_write(writer, mrc_row(matrix, i), row));
    return MERCER_OK;
}

mercer_status mrc_matrix_write_npy(mercer_context *context, const mercer_matrix *matrix, const char *path)
{
    char shape[64];
    MRC_OWNED(mrc_writer_cancel) mrc_writer writer = {.descriptor = -1};
    snprintf(shape, sizeof shape, "%lld, %lld", (long long)matrix->rows, (long long)matrix->cols);
    MRC_TRY(mrc_writer_open(&writer, context, path));
    MRC_TRY(write_header(&writer, descr_of(matrix->dtype), shape));
    MRC_TRY(write_rows(&writer, matrix));
    return mrc_writer_commit(&writer);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Prints the NPY shape of the samples; images keep their shape. */
static void sample_shape(const mercer_dataset *dataset, char *out, size_t size)
{
    long long n = dataset->rows, h = dataset->height, w = dataset->width, c = dataset->channels;
    if (h * w * c != dataset->features || h == 0)
        snprintf(out, size, "%lld, %lld", n, (long long)dataset->features);
    else if (c == 1)
        snprintf(out, size, "%lld, %lld, %lld", n, h, w);
    else
        snprintf(out, size, "%lld, %lld, %lld, %lld", n, h, w, c);
}

/* Storage of targets in an NPY file: values, or class names. Class names are stored as integers if all of them are
   integers, else as strings. */
typedef struct target_form {
    const char *descr;
    char text_descr[32];
    int64_t bytes; /* bytes per element */
    bool integers;
    uint8_t *names; /* (outputs, bytes) encoded class names; NULL for values */
} target_form;

/* Returns whether a name is an integer that is read back as the same name: no plus sign, no leading zeros, no -0, at
   most 15 digits. Readers take integers as doubles, which hold 15 digits exactly. */
static bool is_integer_name(const char *name, int64_t *value)
{
    const char *digits = name + (*name == '-');
    size_t length = strlen(digits);
    if (length == 0 || length > 15 || strspn(digits, "0123456789") != length) return false;
    if (digits[0] == '0' && (length > 1 || digits != name)) return false;
    for (*value = 0; *digits; digits++) *value = *value * 10 + (*digits - '0');
    if (*name == '-') *value = -*value;
    return true;
}

/* Decodes UTF-8 into 32-bit characters. Returns their number, or -1 if the text is not UTF-8. out may be NULL. Refuses
   lead bytes that never occur in UTF-8 (0xc0, 0xc1, above 0xf4), but not all overlong forms. */
static int64_t decode(const char *text, uint32_t *out)
{
    int64_t count = 0;
    for (const uint8_t *at = (const uint8_t *)text; *at; count++) {
        int extra = *at < 0x80                  ? 0
                    : *at >= 0xc2 && *at < 0xe0 ? 1
                    : *at >= 0xe0 && *at < 0xf0 ? 2
                    : *at >= 0xf0 && *at < 0xf5 ? 3
                                                : -1;
        static const uint8_t mask[] = {0x7f, 0x1f, 0x0f, 0x07};
        if (extra < 0) return -1;
        uint32_t character = *at++ & mask[extra];
        for (int i = 0; i < extra; i++, at++) {
            if ((*at & 0xc0) != 0x80) return -1;
            character = character << 6 | (*at & 0x3f);
        }
        if (out) out[count] = character;
    }
    return count;
}

/* Chooses how class names are stored in an NPY file: as 64-bit integers, or as UTF-32 text of the longest name's
   length. Encodes all names once. */
static mercer_status name_form(const mercer_dataset *dataset, mrc_scope *scope, target_form *out)
{
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1;
    int64_t longest = 1;
    int64_t value = 0;
    char number[MRC_CLASS_CHARS];
    out->integers = true;
    for (int64_t i = 0; i < dataset->outputs; i++) {
        const char *name = mrc_dataset_class_name(dataset, i, number);
        int64_t length = decode(name, NULL);
        if (length < 0)
            return mrc_fail(dataset->context, MERCER_ERROR_DATA, "class %lld: the name is not UTF-8", (long long)i);
        longest = mrc_max(longest, length);
        out->integers = out->integers && is_integer_name(name, &value);
    }
    out->bytes = out->integers ? (int64_t)sizeof(int64_t) : longest * (int64_t)sizeof(uint32_t);
    MRC_TRY(mrc_scope_alloc_zero(scope, &out->names, dataset->outputs, out->bytes, "names of classes"));
    for (int64_t i = 0; i < dataset->outputs; i++) {
        const char *name = mrc_dataset_class_name(dataset, i, number);
        uint8_t *to = out->names + i * out->bytes;
        if (!out->integers) {
            decode(name, (uint32_t *)(void *)to);
        } else {
            is_integer_name(name, &value);
            *(int64_t *)(void *)to = value;
        }
    }
    snprintf(out->text_descr, sizeof out->text_descr, "%c%c%lld", little ? '<' : '>', out->integers ? 'i' : 'U',
             (long long)(out->integers ? 8 : longest));
    return MERCER_OK;
}

/* Scratch space for one block of rows. */
typedef struct block {
    int64_t rows;
    mercer_matrix x, y;
    int32_t *labels;
    uint8_t *names;
} block;

/* Allocates a block of rows that takes about BLOCK_BYTES. Samples, targets, names and class numbers share one
   allocation. Each array begins at a multiple of 8 bytes; class numbers get 8 bytes per row. */
static mercer_status open_block(const mercer_dataset *dataset, mrc_scope *scope, const target_form *form,
                                mercer_dtype values, block *out)
{
    int64_t x = mrc_round_up(dataset->features * mrc_dtype_size(dataset->dtype), 8);
    int64_t y = mrc_round_up(dataset->outputs * mrc_dtype_size(values), 8), names = mrc_round_up(form->bytes, 8);
    out->rows = mrc_max(1, mrc_min(dataset->rows, BLOCK_BYTES / (x + y + names + 8)));
    char *at;
    MRC_TRY(mrc_scope_alloc(scope, &at, out->rows, x + y + names + 8, "a block of samples"));
    out->x = mrc_view(at, out->rows, dataset->features, dataset->dtype);
    at += out->rows * x;
    out->y = mrc_view(at, out->rows, dataset->outputs, values);
    at += out->rows * y;
    out->names = (uint8_t *)at;
    at += out->rows * names;
    out->labels = (int32_t *)(void *)at;
    return MERCER_OK;
}

/* An output file, NPY or text. */
typedef struct output {
    mrc_write_form form;
    mrc_writer writer;
    text_writer text; /* buffer of a text file; not used for NPY */
} output;

static mercer_status open_output(output *out, mercer_context *context, const mrc_dataset_file *file)
{
    out->form = file->form;
    MRC_TRY(mrc_writer_open(&out->writer, context, file->path));
    if (file->form == MRC_WRITE_NPY) return MERCER_OK;
    return text_open(&out->text, &out->writer, file->form == MRC_WRITE_CSV ? ',' : '\t');
}

static mercer_status flush_output(output *self)
{
    return self->form == MRC_WRITE_NPY ? MERCER_OK : text_flush(&self->text);
}

/* Discards output that was not flushed, and the file unless it was committed. */
static void close_output(output *self)
{
    mrc_free(self->text.context, self->text.buffer);
    mrc_writer_cancel(&self->writer);
}

static mercer_status put_values(output *to, const mercer_matrix *rows)
{
    return to->form == MRC_WRITE_NPY ? write_rows(&to->writer, rows) : text_rows(&to->text, rows);
}

/* Writes the targets of a block: values, or class names as text or in their NPY form. */
static mercer_status put_targets(output *to, const mercer_dataset *dataset, const target_form *form, const block *part)
{
    if (dataset->task != MERCER_TASK_CLASSIFICATION) return put_values(to, &part->y);
    if (to->form != MRC_WRITE_NPY) {
        for (int64_t i = 0; i < part->x.rows; i++) {
            char number[MRC_CLASS_CHARS];
            const char *name = mrc_dataset_class_name(dataset, part->labels[i], number);
            text_names(&to->text, &name, 1);
        }
        return to->text.status;
    }
    for (int64_t i = 0; i < part->x.rows; i++)
        memcpy(part->names + i * form->bytes, form->names + part->labels[i] * form->bytes, (size_t)form->bytes);
    return mrc_writer_write(&to->writer, part->names, part->x.rows * form->bytes);
}

/* Reads the dataset block by block and writes each block. Mapped files are checked before each block, because they may
   be truncated meanwhile. */
static mercer_status write_blocks(const mercer_dataset *dataset, const target_form *form, block *part, output *samples,
                                  output *targets)
{
    for (int64_t first = 0; first < dataset->rows; first += part->rows) {
        part->x.rows = part->y.rows = mrc_min(part->rows, dataset->rows - first);
        bool classes = dataset->task == MERCER_TASK_CLASSIFICATION;
        MRC_TRY(mrc_dataset_check(dataset));
        mrc_dataset_fetch(dataset, NULL, first, &part->x, targets && !classes ? &part->y : NULL,
                          targets && classes ? part->labels : NULL);
        MRC_TRY(put_values(samples, &part->x));
        if (targets) MRC_TRY(put_targets(targets, dataset, form, part));
    }
    return MERCER_OK;
}

/* Writes what precedes the samples: an NPY header, or in a table the line of feature names if the dataset has them. */
static mercer_status begin_samples(output *to, const mercer_dataset *dataset)
{
    char shape[128];
    if (to->form != MRC_WRITE_NPY)
        return dataset->feature_names ? text_names(&to->text, dataset->feature_names, dataset->features) : MERCER_OK;
    sample_shape(dataset, shape, sizeof shape);
    return write_header(&to->writer, descr_of(dataset->dtype), shape);
}

/* Writes what precedes the targets; see begin_samples. A single column is written as a vector. */
static mercer_status begin_targets(output *to, const mercer_dataset *dataset, const target_form *form,
                                   mercer_dtype values)
{
    char shape[128];
    long long rows = dataset->rows, cols = dataset->outputs;
    bool classes = dataset->task == MERCER_TASK_CLASSIFICATION;
    if (to->form != MRC_WRITE_NPY)
        return dataset->target_names ? text_names(&to->text, dataset->target_names, classes ? 1 : cols) : MERCER_OK;
    if (classes || cols == 1)
        snprintf(shape, sizeof shape, "%lld,", rows);
    else
        snprintf(shape, sizeof shape, "%lld, %lld", rows, cols);
    return write_header(&to->writer, classes ? form->text_descr : descr_of(values), shape);
}

/* Writes both files completely, without committing them. */
static mercer_status write_both(const mercer_dataset *dataset, const target_form *form, block *part, output *samples,
                                output *targets)
{
    MRC_TRY(begin_samples(samples, dataset));
    if (targets) MRC_TRY(begin_targets(targets, dataset, form, part->y.dtype));
    MRC_TRY(write_blocks(dataset, form, part, samples, targets));
    MRC_TRY(flush_output(samples));
    return targets ? flush_output(targets) : MERCER_OK;
}

mercer_status mrc_dataset_file_form(mercer_context *context, mrc_dataset_file *file)
{
    static const char *const endings[] = {".npy", ".csv", ".tsv"};
    size_t length = strlen(file->path);
    for (int i = 0; i < 3; i++) {
        if (length < 4 || strcmp(file->path + length - 4, endings[i]) != 0) continue;
        file->form = (mrc_write_form)i;
        return MERCER_OK;
    }
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: unknown format; use a name that ends in .npy, .csv or .tsv",
                    file->path);
}

mercer_status mrc_dataset_write(const mercer_dataset *dataset, const mrc_dataset_file *samples,
                                const mrc_dataset_file *targets)
{
    mercer_dtype values = dataset->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    target_form form = {0};
    block part;
    MRC_SCOPE(scope, dataset->context);
    MRC_OWNED(close_output) output to = {.writer = {.descriptor = -1}}, targets_to = {.writer = {.descriptor = -1}};
    if (mrc_dataset_has_values(dataset)) values = dataset->y.dtype;
    if (targets && targets->form == MRC_WRITE_NPY && dataset->task == MERCER_TASK_CLASSIFICATION)
        MRC_TRY(name_form(dataset, &scope, &form));
    MRC_TRY(open_block(dataset, &scope, &form, values, &part));
    MRC_TRY(open_output(&to, dataset->context, samples));
    if (targets) MRC_TRY(open_output(&targets_to, dataset->context, targets));
    MRC_TRY(write_both(dataset, &form, &part, &to, targets ? &targets_to : NULL));
    /* Both files are complete. Commit the targets first: if the second commit fails, targets without samples do less
       harm than samples without targets. */
    if (targets) MRC_TRY(mrc_writer_commit(&targets_to.writer));
    return mrc_writer_commit(&to.writer);
}
