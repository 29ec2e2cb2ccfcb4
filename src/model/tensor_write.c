/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing tensor files. Checksums stand before the data, so every tensor is gone through twice: once for its checksum,
 * once to be written. Rows that have gaps or change their type are packed into a buffer of about a megabyte.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"
#include "model/tensor_writer.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { BUFFER_BYTES = 1 << 20 };

/* ---- Conversion ---------------------------------------------------------------------------------------------- */

/* False if the type cannot hold the value. */
static bool convert(double value, mercer_dtype dtype, void *out)
{
    switch (dtype) {
        case MERCER_F64: *(double *)out = value; return true;
        case MERCER_F32: *(float *)out = (float)value; return isfinite(*(float *)out);
        case MERCER_F16:
            *(uint16_t *)out = mrc_half_from_float((float)value);
            return (*(uint16_t *)out & 0x7c00) != 0x7c00;
        case MERCER_U8:
            if (!(value >= 0 && value <= 255 && value == floor(value))) return false;
            *(uint8_t *)out = (uint8_t)value;
            return true;
    }
    return false;
}

static mercer_status pack_row(mercer_context *context, const mrc_placed *item, int64_t i, char *out)
{
    const mercer_matrix *value = &item->tensor->value;
    int64_t size = mrc_dtype_size(item->stored);
    if (item->stored == value->dtype) {
        memcpy(out, mrc_row(value, i), (size_t)(value->cols * size));
        return MERCER_OK;
    }
    for (int64_t j = 0; j < value->cols; j++)
        if (!convert(mrc_load(value, i, j), item->stored, out + j * size))
            return mrc_fail(context, MERCER_ERROR_DATA, "%s: element at row %lld, column %lld (from 0) is %g, %s",
                            item->tensor->name, (long long)i, (long long)j, mrc_load(value, i, j),
                            item->stored == MERCER_U8    ? "but u8 holds whole numbers 0 .. 255 only"
                            : item->stored == MERCER_F16 ? "which is too large for f16; store f32"
                                                         : "which is too large for f32; store f64");
    return MERCER_OK;
}

static bool needs_packing(const mrc_placed *item)
{
    const mercer_matrix *value = &item->tensor->value;
    return item->stored != value->dtype || (value->ld != value->cols && value->rows > 1);
}

mercer_status mrc_tensor_writer_visit(const mrc_tensor_writer *self, const mrc_placed *item, mrc_visitor visit,
                                      void *user)
{
    int64_t rows = item->tensor->value.rows, bytes = rows * item->row_bytes;
    if (bytes == 0) return MERCER_OK;
    if (!needs_packing(item)) return visit(user, item->tensor->value.data, bytes);
    int64_t row_bytes = item->row_bytes, block = mrc_max(1, self->buffer_bytes / row_bytes);
    for (int64_t first = 0; first < rows; first += block) {
        int64_t some = mrc_min(block, rows - first);
        for (int64_t i = 0; i < some; i++)
            MRC_TRY(pack_row(self->context, item, first + i, self->buffer + i * row_bytes));
        MRC_TRY(visit(user, self->buffer, some * row_bytes));
    }
    return MERCER_OK;
}

/* ---- Places and checksums ------------------------------------------------------------------------------------ */

/* Orders the tensors by the size of their elements, so that each begins at a multiple of it. */
static mercer_status place_tensors(mrc_tensor_writer *self, const mrc_tensor *tensors, int64_t count)
{
    int64_t place = 0;
    for (int64_t size = 8; size > 0; size /= 2)
        for (int64_t i = 0; i < count; i++) {
            mercer_dtype stored = tensors[i].stored ? tensors[i].stored : tensors[i].value.dtype;
            if (mrc_dtype_size(stored) != size) continue;
            const mercer_matrix *value = &tensors[i].value;
            mrc_placed *item = &self->items[self->count++];
            int64_t elements, bytes, rows = tensors[i].total > 0 ? tensors[i].total : value->rows;
            *item = (mrc_placed){
                .tensor = &tensors[i], .stored = stored, .begin = place, .rows = rows, .row_bytes = value->cols * size};
            if (!mrc_multiply(rows, value->cols, &elements) || !mrc_multiply(elements, size, &bytes) ||
                !mrc_add(place, bytes, &place))
                return mrc_fail(self->context, MERCER_ERROR_SHAPE, "%s: %lld x %lld elements overflow a file",
                                tensors[i].name, (long long)rows, (long long)value->cols);
            item->end = place;
            if (needs_packing(item))
                self->buffer_bytes = mrc_max(self->buffer_bytes, mrc_max(BUFFER_BYTES, value->cols * size));
        }
    return MERCER_OK;
}

static mercer_status update(void *user, const void *bytes, int64_t count)
{
    (void)XXH3_64bits_update(user, bytes, (size_t)count); /* fails for NULL only */
    return MERCER_OK;
}

static mercer_status sum_tensors(mrc_tensor_writer *self)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) return mrc_fail(self->context, MERCER_ERROR_MEMORY, "out of memory for a checksum");
    mercer_status status = MERCER_OK;
    for (int64_t i = 0; i < self->count && status == MERCER_OK; i++) {
        (void)XXH3_64bits_reset(state);
        status = mrc_tensor_writer_visit(self, &self->items[i], update, state);
        mrc_tensor_digits(XXH3_64bits_digest(state), self->items[i].digits);
    }
    XXH3_freeState(state);
    return status;
}

/* ---- Header -------------------------------------------------------------------------------------------------- */

/* The JSON calls fail only without memory: texts have been checked. */
static bool add_metadata(mrc_tensor_writer *self, const mrc_metadata *metadata, int64_t entries)
{
    json_t *object = json_object();
    if (json_object_set_new(self->root, "__metadata__", object) != 0) return false;
    if (json_object_set_new(object, "xxh3.header", json_string("0000000000000000")) != 0) return false;
    for (int64_t i = 0; i < entries; i++)
        if (metadata[i].value && json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)) != 0)
            return false;
    for (int64_t i = 0; i < self->count; i++) {
        char key[MRC_TENSOR_NAME_CHARS + 8];
        snprintf(key, sizeof key, "xxh3.%s", self->items[i].tensor->name);
        if (json_object_set_new(object, key, json_string(self->items[i].digits)) != 0) return false;
    }
    return true;
}

static bool add_tensors(mrc_tensor_writer *self)
{
    for (int64_t i = 0; i < self->count; i++) {
        const mrc_placed *item = &self->items[i];
        const mercer_matrix *value = &item->tensor->value;
        json_t *shape = item->tensor->vector ? json_pack("[I]", (json_int_t)value->cols)
                                             : json_pack("[I,I]", (json_int_t)item->rows, (json_int_t)value->cols);
        json_t *about = json_pack("{s:s,s:o,s:[I,I]}", "dtype", mrc_tensor_dtype_name(item->stored), "shape", shape,
                                  "data_offsets", (json_int_t)item->begin, (json_int_t)item->end);
        if (json_object_set_new(self->root, item->tensor->name, about) != 0) return false;
    }
    return true;
}

mercer_status mrc_tensor_writer_header(mrc_tensor_writer *self, const mrc_metadata *metadata, int64_t entries)
{
    mercer_context *context = self->context;
    json_decref(self->root); /* of an earlier call */
    mrc_free(context, self->header);
    self->header = NULL;
    self->root = json_object();
    if (!self->root || !add_metadata(self, metadata, entries) || !add_tensors(self))
        return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the header of a file");
    int64_t length = (int64_t)json_dumpb(self->root, NULL, 0, JSON_COMPACT);
    if (length == 0) return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the header of a file");
    self->header_bytes =
        mrc_round_up(length + MRC_TENSOR_LENGTH_BYTES, MRC_TENSOR_DATA_ALIGNMENT) - MRC_TENSOR_LENGTH_BYTES;
    if (self->header_bytes > MRC_TENSOR_MOST_HEADER)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "the header takes %lld bytes, at most %d are allowed; shorten the labels or the note",
                        (long long)self->header_bytes, MRC_TENSOR_MOST_HEADER);
    void *memory;
    uint64_t sum;
    char digits[MRC_TENSOR_DIGITS + 1];
    MRC_TRY(mrc_alloc(context, &memory, self->header_bytes, 1, "the header of a file"));
    self->header = memory;
    memset(self->header, ' ', (size_t)self->header_bytes);
    if (json_dumpb(self->root, self->header, (size_t)length, JSON_COMPACT) != (size_t)length ||
        !mrc_tensor_header_checksum(self->header, self->header_bytes, &sum))
        return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the header of a file");
    mrc_tensor_digits(sum, digits);
    memcpy(self->header + sizeof MRC_TENSOR_HEADER_START - 1, digits, MRC_TENSOR_DIGITS);
    return MERCER_OK;
}

/* ---- File ---------------------------------------------------------------------------------------------------- */

static mercer_status write_some(void *user, const void *bytes, int64_t count)
{
    return mrc_writer_write(user, bytes, count);
}

static mercer_status write_file(const mrc_tensor_writer *self, const char *path)
{
    mrc_writer file;
    MRC_TRY(mrc_writer_open(&file, self->context, path));
    uint64_t length = (uint64_t)self->header_bytes;
    mercer_status status = mrc_writer_write(&file, &length, sizeof length);
    if (status == MERCER_OK) status = mrc_writer_write(&file, self->header, self->header_bytes);
    for (int64_t i = 0; i < self->count && status == MERCER_OK; i++)
        status = mrc_tensor_writer_visit(self, &self->items[i], write_some, &file);
    if (status == MERCER_OK) return mrc_writer_commit(&file);
    mrc_writer_cancel(&file);
    return status;
}

mercer_status mrc_tensor_writer_begin(mrc_tensor_writer *self, const mrc_tensor *tensors, int64_t count,
                                      const mrc_metadata *metadata, int64_t entries)
{
    mercer_context *context = self->context;
    void *memory;
    for (int64_t i = 0; i < count; i++)
        if (!mrc_tensor_name_valid(tensors[i].name))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tensor name '%s' is too long or not plain",
                            tensors[i].name);
    for (int64_t i = 0; i < entries; i++)
        if (metadata[i].value) MRC_TRY(mrc_check_text(context, metadata[i].key, metadata[i].value));
    MRC_TRY(mrc_alloc_zero(context, &memory, count, sizeof(mrc_placed), "the tensor list"));
    self->items = memory;
    MRC_TRY(place_tensors(self, tensors, count));
    MRC_TRY(mrc_alloc(context, &memory, self->buffer_bytes, 1, "a buffer to write from"));
    self->buffer = memory;
    return MERCER_OK;
}

void mrc_tensor_writer_end(mrc_tensor_writer *self)
{
    json_decref(self->root);
    mrc_free(self->context, self->header);
    mrc_free(self->context, self->buffer);
    mrc_free(self->context, self->items);
}

mercer_status mrc_tensor_file_write(mercer_context *context, const char *path, const mrc_tensor *tensors, int64_t count,
                                    const mrc_metadata *metadata, int64_t entries)
{
    mrc_tensor_writer self = {.context = context};
    mercer_status status = mrc_tensor_writer_begin(&self, tensors, count, metadata, entries);
    if (status == MERCER_OK) status = sum_tensors(&self);
    if (status == MERCER_OK) status = mrc_tensor_writer_header(&self, metadata, entries);
    if (status == MERCER_OK) status = write_file(&self, path);
    mrc_tensor_writer_end(&self);
    return status;
}
