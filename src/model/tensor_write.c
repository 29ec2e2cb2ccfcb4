/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing of tensor files. Checksums precede the data, so every tensor is read twice: for its checksum and for writing.
 * Rows that are not contiguous, or are stored in another type, are packed into a buffer of about a megabyte. A single
 * process converts all values before it creates the file, so a value that does not fit leaves no file.
 *
 * Steps: place the tensors, compute their checksums, print the header, write. Several ranks write in another order:
 * data first, then checksums of the bytes in the file, then the header.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"
#include "model/tensor_file.h"
#include "model/tensor_format.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { BUFFER_BYTES = 1 << 20 }; /* packed rows that are hashed or written at a time */

/* A tensor and its position in the file. */
typedef struct placed {
    const mrc_tensor *tensor;
    mercer_dtype stored;
    int64_t begin, end;      /* byte offsets in the data */
    int64_t rows, row_bytes; /* number of rows in the file (of all ranks together), and size of a row in bytes */
    char digits[MRC_TENSOR_DIGITS + 1];
} placed;

/* State of one file that is written. The JSON document and the printed header are made by writer_header. */
typedef struct tensor_writer {
    mercer_context *context;
    placed *items; /* (count) in file order */
    int64_t count;
    char *buffer; /* (buffer_bytes) */
    int64_t buffer_bytes;
    json_t *root;
    char *header; /* (header_bytes), padded */
    int64_t header_bytes;
} tensor_writer;

/* Receives consecutive bytes of a tensor, in file format. */
typedef mercer_status (*visitor)(void *user, const void *bytes, int64_t count);

/* ---- Conversion ---------------------------------------------------------------------------------------------- */

/* Converts a value; returns false if the type cannot hold it. A half float whose exponent bits are all 1 is infinite or
   NaN. Values for u8 must be whole numbers: they are checked, not rounded. */
static bool convert_tensor(double value, mercer_dtype dtype, void *out)
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

/* Writes row i of this process in the stored type to `out`. The message of a failure has the index among these rows. */
static mercer_status pack_row(mercer_context *context, const placed *item, int64_t i, char *out)
{
    const mercer_matrix *value = &item->tensor->value;
    int64_t size = mrc_dtype_size(item->stored);
    if (item->stored == value->dtype) {
        memcpy(out, mrc_row(value, i), (size_t)(value->cols * size));
        return MERCER_OK;
    }
    for (int64_t j = 0; j < value->cols; j++)
        if (!convert_tensor(mrc_load(value, i, j), item->stored, out + j * size))
            return mrc_fail(context, MERCER_ERROR_DATA, "%s: element at row %lld, column %lld (from 0) is %g, %s",
                            item->tensor->name, (long long)i, (long long)j, mrc_load(value, i, j),
                            item->stored == MERCER_U8    ? "but u8 needs whole numbers 0 .. 255"
                            : item->stored == MERCER_F16 ? "which is too large for f16; store f32"
                                                         : "which is too large for f32; store f64");
    return MERCER_OK;
}

/* Returns whether the bytes of a tensor in the file differ from its bytes in memory, because of another type or of
   padding between rows. */
static bool needs_packing(const placed *item)
{
    const mercer_matrix *value = &item->tensor->value;
    return item->stored != value->dtype || (value->ld != value->cols && value->rows > 1);
}

/* Passes the bytes of this process's rows to a visitor, in file format, piece by piece. */
static mercer_status writer_visit(const tensor_writer *self, const placed *item, visitor visit, void *user)
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

/* Orders the tensors by element size, so that each begins at a multiple of its element size. */
static mercer_status place_tensors(tensor_writer *self, const mrc_tensor *tensors, int64_t count)
{
    int64_t place = 0;
    for (int64_t size = 8; size > 0; size /= 2)
        for (int64_t i = 0; i < count; i++) {
            mercer_dtype stored = tensors[i].stored ? tensors[i].stored : tensors[i].value.dtype;
            if (mrc_dtype_size(stored) != size) continue;
            const mercer_matrix *value = &tensors[i].value;
            placed *item = &self->items[self->count++];
            int64_t elements, bytes, rows = tensors[i].total > 0 ? tensors[i].total : value->rows;
            *item = (placed){
                .tensor = &tensors[i], .stored = stored, .begin = place, .rows = rows, .row_bytes = value->cols * size};
            if (!mrc_multiply(rows, value->cols, &elements) || !mrc_multiply(elements, size, &bytes) ||
                !mrc_add(place, bytes, &place))
                return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                                "%s: %lld x %lld elements exceed the maximum "
                                "file size",
                                tensors[i].name, (long long)rows, (long long)value->cols);
            item->end = place;
            if (needs_packing(item))
                self->buffer_bytes = mrc_max(self->buffer_bytes, mrc_max(BUFFER_BYTES, value->cols * size));
        }
    return MERCER_OK;
}

static mercer_status update(void *user, const void *bytes, int64_t count)
{
    (void)XXH3_64bits_update(user, bytes, (size_t)count); /* fails only for NULL */
    return MERCER_OK;
}

MRC_RELEASE(release_state, XXH3_state_t, XXH3_freeState)

/* Computes the checksums of all tensors. This is the first pass over the values, so it also finds values that do not
   fit. */
static mercer_status sum_tensors(tensor_writer *self)
{
    MRC_OWNED(release_state) XXH3_state_t *state = XXH3_createState();
    if (!state) return mrc_fail(self->context, MERCER_ERROR_MEMORY, "out of memory for a checksum");
    for (int64_t i = 0; i < self->count; i++) {
        (void)XXH3_64bits_reset(state);
        MRC_TRY(writer_visit(self, &self->items[i], update, state));
        mrc_tensor_digits(XXH3_64bits_digest(state), self->items[i].digits);
    }
    return MERCER_OK;
}

/* ---- Header -------------------------------------------------------------------------------------------------- */

/* The texts have been checked, so the JSON calls fail only if out of memory. Jansson prints members in the order in
   which they were added: __metadata__ and in it xxh3.header must come first (MRC_TENSOR_HEADER_START). */
static bool add_metadata(tensor_writer *self, const mrc_metadata *metadata, int64_t entries)
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

static bool add_tensors(tensor_writer *self)
{
    for (int64_t i = 0; i < self->count; i++) {
        const placed *item = &self->items[i];
        const mercer_matrix *value = &item->tensor->value;
        json_t *shape = item->tensor->vector ? json_pack("[I]", (json_int_t)value->cols)
                                             : json_pack("[I,I]", (json_int_t)item->rows, (json_int_t)value->cols);
        json_t *about = json_pack("{s:s,s:o,s:[I,I]}", "dtype", mrc_tensor_dtype_name(item->stored), "shape", shape,
                                  "data_offsets", (json_int_t)item->begin, (json_int_t)item->end);
        if (json_object_set_new(self->root, item->tensor->name, about) != 0) return false;
    }
    return true;
}

/* Prints the header with the current checksums of the items. Its length, and so the position of the data, does not
   depend on the digits, so it can be printed with zeros first. Padding aligns the data; the checksum covers it, too. */
static mercer_status writer_header(tensor_writer *self, const mrc_metadata *metadata, int64_t entries)
{
    mercer_context *context = self->context;
    json_decref(self->root); /* from an earlier call */
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
                        "the header has %lld bytes, but at most %d are allowed; shorten the labels or the note",
                        (long long)self->header_bytes, MRC_TENSOR_MOST_HEADER);
    uint64_t sum;
    char digits[MRC_TENSOR_DIGITS + 1];
    MRC_TRY(mrc_alloc(context, &self->header, self->header_bytes, 1, "the header of a file"));
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

static mercer_status write_file(const tensor_writer *self, const char *path)
{
    MRC_OWNED(mrc_writer_cancel) mrc_writer file = {.descriptor = -1};
    MRC_TRY(mrc_writer_open(&file, self->context, path));
    uint64_t length = (uint64_t)self->header_bytes;
    MRC_TRY(mrc_writer_write(&file, &length, sizeof length));
    MRC_TRY(mrc_writer_write(&file, self->header, self->header_bytes));
    for (int64_t i = 0; i < self->count; i++) MRC_TRY(writer_visit(self, &self->items[i], write_some, &file));
    return mrc_writer_commit(&file);
}

/* Checks names and texts and places the tensors. The caller must call writer_end, also after a failure. */
static mercer_status writer_begin(tensor_writer *self, const mrc_tensor *tensors, int64_t count,
                                  const mrc_metadata *metadata, int64_t entries)
{
    mercer_context *context = self->context;
    for (int64_t i = 0; i < count; i++)
        if (!mrc_tensor_name_valid(tensors[i].name))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "tensor name '%s' is too long or has special characters",
                            tensors[i].name);
    for (int64_t i = 0; i < entries; i++)
        if (metadata[i].value) MRC_TRY(mrc_check_text(context, metadata[i].key, metadata[i].value));
    MRC_TRY(mrc_alloc_zero(context, &self->items, count, sizeof *self->items, "the tensor list"));
    MRC_TRY(place_tensors(self, tensors, count));
    return mrc_alloc(context, &self->buffer, self->buffer_bytes, 1, "a buffer to write from");
}

static void writer_end(tensor_writer *self)
{
    json_decref(self->root);
    MRC_FREE_ALL(self->context, self->header, self->buffer, self->items);
}

mercer_status mrc_tensor_file_write(mercer_context *context, const char *path, const mrc_tensor *tensors, int64_t count,
                                    const mrc_metadata *metadata, int64_t entries)
{
    MRC_OWNED(writer_end) tensor_writer self = {.context = context};
    MRC_TRY(writer_begin(&self, tensors, count, metadata, entries));
    MRC_TRY(sum_tensors(&self));
    MRC_TRY(writer_header(&self, metadata, entries));
    return write_file(&self, path);
}

/* ---- Written by all ranks ------------------------------------------------------------------------------------ */

/*
 * Tensor files written by several ranks.
 *
 * Rank 0 creates the temporary file in its full size; every rank writes its rows to their positions and syncs them.
 * Then rank i mod R reads tensor i back, piece by piece, and computes its checksum. Finally rank 0 writes the header,
 * which contains the checksums, and renames the file. If a rank is lost at any time, the old file is unchanged.
 */
enum { NAME_CHARS = 4096, PIECE = 8 << 20 }; /* PATH_MAX on Linux; bytes read back at a time */

typedef struct shared_file {
    mrc_comm *comm;
    tensor_writer writer;
    mrc_writer file;
    char temporary[NAME_CHARS];
    int64_t at; /* file position of the next bytes */
} shared_file;

static int64_t data_start(const shared_file *self)
{
    return MRC_TENSOR_LENGTH_BYTES + self->writer.header_bytes;
}

static int64_t data_end(const shared_file *self)
{
    return self->writer.count > 0 ? self->writer.items[self->writer.count - 1].end : 0;
}

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

/* Rank 0 creates the file in its full size, so that other ranks can write anywhere in it. The name is sent with a fixed
   length. */
static mercer_status make_file(shared_file *self, const char *path)
{
    if (self->comm->rank > 0) return MERCER_OK;
    MRC_TRY(mrc_writer_open(&self->file, self->comm->context, path));
    MRC_TRY(mrc_writer_resize(&self->file, data_start(self) + data_end(self)));
    if (strlen(self->file.temporary) >= NAME_CHARS)
        return mrc_fail(self->comm->context, MERCER_ERROR_IO, "%.80s...: the name is too long", path);
    snprintf(self->temporary, NAME_CHARS, "%s", self->file.temporary);
    return MERCER_OK;
}

/* Opens the file on every rank, in its full size and under its temporary name. */
static mercer_status open_file(shared_file *self, const char *path)
{
    mercer_status status = MERCER_OK;
    MRC_TRY(mrc_comm_together(self->comm, make_file(self, path), "writing"));
    MRC_TRY(mrc_comm_broadcast(self->comm, self->temporary, NAME_CHARS));
    if (self->comm->rank > 0) status = mrc_writer_join(&self->file, self->comm->context, self->temporary);
    return mrc_comm_together(self->comm, status, "writing");
}

static mercer_status place_some(void *user, const void *bytes, int64_t count)
{
    shared_file *self = user;
    MRC_TRY(mrc_writer_write_at(&self->file, bytes, count, self->at));
    self->at += count;
    return MERCER_OK;
}

/* Writes this rank's rows of divided tensors; rank 0 also writes those that are not divided. The ranks write to
   different bytes, so the order does not matter. Commit makes the bytes of the other ranks durable before rank 0
   renames the file. */
static mercer_status write_rows(shared_file *self)
{
    for (int64_t i = 0; i < self->writer.count; i++) {
        const placed *item = &self->writer.items[i];
        if (item->tensor->total == 0 && self->comm->rank > 0) continue;
        self->at = data_start(self) + item->begin + item->tensor->first * item->row_bytes;
        MRC_TRY(writer_visit(&self->writer, item, place_some, self));
    }
    return self->comm->rank > 0 ? mrc_writer_commit(&self->file) : MERCER_OK;
}

/* Computes the checksum of bytes begin .. end - 1 of the mapped file. Pages are released piece by piece, so that
   hashing a large tensor does not fill the memory. */
static void sum_bytes(const mrc_mapping *map, int64_t begin, int64_t end, XXH3_state_t *state, char *digits)
{
    (void)XXH3_64bits_reset(state);
    for (int64_t at = begin; at < end; at += PIECE) {
        int64_t some = mrc_min(PIECE, end - at);
        (void)XXH3_64bits_update(state, (const char *)map->data + at, (size_t)some);
        mrc_mapping_release(map, at, some);
    }
    mrc_tensor_digits(XXH3_64bits_digest(state), digits);
}

/* Computes the checksums of the tensors that this rank reads back, and writes them as text to digits (count,
   MRC_TENSOR_DIGITS + 1). */
static mercer_status sum_shared(shared_file *self, char *digits)
{
    mercer_context *context = self->comm->context;
    MRC_OWNED(mrc_unmap) mrc_mapping map = {0};
    MRC_TRY(mrc_open_file(context, &map, self->temporary, 0));
    MRC_OWNED(release_state) XXH3_state_t *state = XXH3_createState();
    if (!state) return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for a checksum");
    int64_t wanted = data_start(self) + data_end(self);
    if (map.bytes != wanted)
        return mrc_fail(context, MERCER_ERROR_IO,
                        "%s: has %lld bytes, but rank 0 wrote %lld; use a folder that all "
                        "ranks share",
                        self->temporary, (long long)map.bytes, (long long)wanted);
    for (int64_t i = self->comm->rank; i < self->writer.count; i += self->comm->ranks) {
        const placed *item = &self->writer.items[i];
        sum_bytes(&map, data_start(self) + item->begin, data_start(self) + item->end, state,
                  digits + i * (MRC_TENSOR_DIGITS + 1));
    }
    return MERCER_OK;
}

/* Computes the checksums and distributes them to all ranks. Each rank computes the checksums of some tensors. */
static mercer_status share_sums(shared_file *self)
{
    mrc_comm *comm = self->comm;
    int64_t bytes = self->writer.count * (MRC_TENSOR_DIGITS + 1);
    char *digits;
    MRC_SCOPE(scope, comm->context);
    mercer_status status = mrc_scope_alloc_zero(&scope, &digits, comm->ranks, bytes, "checksums");
    if (status == MERCER_OK) status = sum_shared(self, digits + comm->rank * bytes);
    MRC_TRY(mrc_comm_together(comm, status, "writing"));
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) pieces[r] = (mrc_piece){digits + r * bytes, bytes};
    MRC_TRY(mrc_comm_gather(comm, MRC_HOST, pieces));
    for (int64_t i = 0; i < self->writer.count; i++)
        memcpy(self->writer.items[i].digits, digits + i % comm->ranks * bytes + i * (MRC_TENSOR_DIGITS + 1),
               MRC_TENSOR_DIGITS + 1);
    return MERCER_OK;
}

/* Rank 0 writes length and header over the space reserved for them, and renames the file. */
static mercer_status finish_file(shared_file *self, const mrc_metadata *metadata, int64_t entries)
{
    if (self->comm->rank > 0) return MERCER_OK;
    MRC_TRY(writer_header(&self->writer, metadata, entries));
    uint64_t length = (uint64_t)self->writer.header_bytes;
    MRC_TRY(mrc_writer_write_at(&self->file, &length, sizeof length, 0));
    MRC_TRY(mrc_writer_write_at(&self->file, self->writer.header, self->writer.header_bytes, sizeof length));
    return mrc_writer_commit(&self->file);
}

/* ---- The whole file ---------------------------------------------------------------------------------------------- */

/* After each step the ranks agree on its success, so that either all ranks continue or none. */
static mercer_status write_shared(shared_file *self, const char *path, const mrc_tensor *tensors, int64_t count,
                                  const mrc_metadata *metadata, int64_t entries)
{
    mercer_status status = writer_begin(&self->writer, tensors, count, metadata, entries);
    for (int64_t i = 0; i < self->writer.count && status == MERCER_OK; i++)
        mrc_tensor_digits(0, self->writer.items[i].digits); /* the length of the header does not depend on the digits */
    if (status == MERCER_OK) status = writer_header(&self->writer, metadata, entries);
    MRC_TRY(mrc_comm_together(self->comm, status, "writing"));
    MRC_TRY(open_file(self, path));
    MRC_TRY(mrc_comm_together(self->comm, write_rows(self), "writing"));
    MRC_TRY(share_sums(self));
    return mrc_comm_together(self->comm, finish_file(self, metadata, entries), "writing");
}

mercer_status mrc_tensor_file_write_shared(mrc_comm *comm, const char *path, const mrc_tensor *tensors, int64_t count,
                                           const mrc_metadata *metadata, int64_t entries)
{
    shared_file self = {.comm = comm, .writer = {.context = comm->context}, .file = {.descriptor = -1}};
    mercer_status status = write_shared(&self, path, tensors, count, metadata, entries);
    mrc_writer_cancel(&self.file); /* has no effect after a commit */
    writer_end(&self.writer);
    return status;
}
