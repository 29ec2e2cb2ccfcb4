/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading of tensor files. The file is mapped, or read into memory. Nothing in it is trusted before it is checked.
 * Sizes that the file claims are compared with its real size before memory is allocated: a header is parsed only if the
 * file contains all of it.
 */
#include "model/tensor_file.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "model/tensor_format.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { COPIED = 256 << 20 }; /* size in bytes of the largest file that is copied instead of mapped */
/* Limits of a header, far above the needs of any model. MOST_DEPTH: header, entry of a tensor, its shape. */
enum { MOST_DEPTH = 3, MOST_COMMAS = 1 << 16 };

typedef struct entry {
    const char *name;   /* borrowed from root */
    int64_t begin, end; /* byte offsets from the end of the header */
    mercer_matrix value;
} entry;

struct mrc_tensor_file {
    mercer_context *context;
    char *path; /* part of this allocation */
    mrc_mapping map;
    int64_t header_bytes;
    json_t *root;
    const json_t *metadata; /* a part of root */
    entry *entries;         /* (count), ordered by begin */
    int64_t count;
};

static mercer_status damaged(const mrc_tensor_file *self, const char *format, ...) MRC_PRINTF(2, 3);

/* Fails with a message that says where the file is damaged. */
static mercer_status damaged(const mrc_tensor_file *self, const char *format, ...)
{
    char what[MRC_ERROR_CHARS / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: %s; the file is damaged or not a Mercer model", self->path,
                    what);
}

static const char *header_text(const mrc_tensor_file *self)
{
    return (const char *)self->map.data + MRC_TENSOR_LENGTH_BYTES;
}

static int64_t data_bytes(const mrc_tensor_file *self)
{
    return self->map.bytes - MRC_TENSOR_LENGTH_BYTES - self->header_bytes;
}

/* ---- Header -------------------------------------------------------------------------------------------------- */

/* Reads the length of the header and checks that the file contains it. */
static mercer_status find_header(mrc_tensor_file *self)
{
    uint64_t length;
    int64_t available = self->map.bytes - MRC_TENSOR_LENGTH_BYTES;
    if (available <= 0) return damaged(self, "only %lld bytes, too short for a header", (long long)self->map.bytes);
    memcpy(&length, self->map.data, sizeof length);
    if (length > (uint64_t)available || length > MRC_TENSOR_MOST_HEADER)
        return damaged(self, "at offset 0: the header size is %llu bytes, but the file has only %lld more",
                       (unsigned long long)length, (long long)mrc_min(available, MRC_TENSOR_MOST_HEADER));
    self->header_bytes = (int64_t)length;
    const int64_t start = sizeof MRC_TENSOR_HEADER_START - 1;
    if (self->header_bytes < start + MRC_TENSOR_DIGITS ||
        memcmp(header_text(self), MRC_TENSOR_HEADER_START, start) != 0)
        return damaged(self, "at offset %d: the header does not begin with its checksum", MRC_TENSOR_LENGTH_BYTES);
    return MERCER_OK;
}

/* Checks the checksum of the header. */
static mercer_status check_header(const mrc_tensor_file *self)
{
    uint64_t sum;
    char digits[MRC_TENSOR_DIGITS + 1];
    if (!mrc_tensor_header_checksum(header_text(self), self->header_bytes, &sum))
        return mrc_fail(self->context, MERCER_ERROR_MEMORY, "%s: out of memory for a checksum", self->path);
    mrc_tensor_digits(sum, digits);
    if (memcmp(header_text(self) + sizeof MRC_TENSOR_HEADER_START - 1, digits, MRC_TENSOR_DIGITS) == 0)
        return MERCER_OK;
    return damaged(self, "the checksum of the header is wrong");
}

/* Duplicate names are rejected, because readers could differ in which entry they use. */
static json_t *parse_tensors(const mrc_tensor_file *self, json_error_t *error)
{
    *error = (json_error_t){0};
    return json_loadb(header_text(self), (size_t)self->header_bytes, JSON_REJECT_DUPLICATES, error);
}

/* Parses a second time to distinguish bad JSON from a lack of memory. The parser may report a failed allocation inside
   a string as a bad token. A real bad token fails again at the same position; a failed allocation fails at another
   position or not at all. */
static mercer_status parse_again(mrc_tensor_file *self, const json_error_t *first)
{
    json_error_t error;
    self->root = parse_tensors(self, &error);
    if (self->root) return MERCER_OK;
    if (mrc_json_no_memory(first) || mrc_json_no_memory(&error) || error.position != first->position)
        return mrc_fail(self->context, MERCER_ERROR_MEMORY, "%s: out of memory for the header", self->path);
    return damaged(self, "at offset %lld: the header is not valid JSON",
                   (long long)error.position + MRC_TENSOR_LENGTH_BYTES);
}

/* Parses the header. Its nesting and size are limited first, because the parser is recursive and allocates memory. */
static mercer_status parse_header(mrc_tensor_file *self)
{
    if (!mrc_json_is_bounded(header_text(self), self->header_bytes, MOST_DEPTH, MOST_COMMAS))
        return damaged(self, "the header nests more than %d levels or has more than %d values", MOST_DEPTH,
                       MOST_COMMAS);
    json_error_t error;
    self->root = parse_tensors(self, &error);
    if (!self->root) MRC_TRY(parse_again(self, &error));
    self->metadata = json_object_get(self->root, "__metadata__");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)self->metadata, key, value)
    {
        if (!json_is_string(value)) return damaged(self, "an entry of __metadata__ is not text");
    }
    return MERCER_OK;
}

/* ---- Tensors ------------------------------------------------------------------------------------------------- */

/* Returns element `index` of an array of sizes; -1 if it is not a size. */
static int64_t size_at(const json_t *array, size_t index)
{
    const json_t *value = json_array_get(array, index);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? (int64_t)json_integer_value(value) : -1;
}

/* Reads the shape of a tensor, and checks that its elements fill the offsets exactly. The view is used as an array of
   its type, so the position must be aligned; the mapping itself begins at a page or an allocation. */
static mercer_status read_shape(const mrc_tensor_file *self, const json_t *shape, entry *out)
{
    size_t rank = json_array_size(shape);
    int64_t rows = rank == 2 ? size_at(shape, 0) : 1, cols = rank > 0 ? size_at(shape, rank - 1) : -1;
    if ((rank != 1 && rank != 2) || rows < 0 || cols < 0)
        return damaged(self, "tensor \"%s\": its shape is not one or two sizes", out->name);
    int64_t size = mrc_dtype_size(out->value.dtype), bytes;
    if (!mrc_multiply(rows, cols, &bytes) || !mrc_multiply(bytes, size, &bytes) || bytes != out->end - out->begin)
        return damaged(self, "tensor \"%s\": %lld x %lld elements of %lld bytes do not fill offsets %lld .. %lld",
                       out->name, (long long)rows, (long long)cols, (long long)size, (long long)out->begin,
                       (long long)out->end);
    int64_t place = MRC_TENSOR_LENGTH_BYTES + self->header_bytes + out->begin;
    if (place % size != 0)
        return damaged(self, "tensor \"%s\": begins at byte %lld, not at a multiple of %lld", out->name,
                       (long long)place, (long long)size);
    out->value = mrc_view((char *)self->map.data + place, rows, cols, out->value.dtype);
    return MERCER_OK;
}

/* Reads and checks the description of a tensor. */
static mercer_status read_tensor(const mrc_tensor_file *self, const char *name, const json_t *about, entry *out)
{
    if (!mrc_tensor_name_valid(name))
        return damaged(self, "a tensor has a name that is too long or not of letters, digits, '.', '_', '-'");
    const json_t *dtype = json_object_get(about, "dtype"), *offsets = json_object_get(about, "data_offsets");
    if (json_object_size(about) != 3 || !json_is_string(dtype) || json_array_size(offsets) != 2)
        return damaged(self, "tensor \"%s\": is not described by dtype, shape and data_offsets", name);
    *out = (entry){.name = name, .begin = size_at(offsets, 0), .end = size_at(offsets, 1)};
    out->value.dtype = mrc_tensor_dtype(json_string_value(dtype));
    if (!out->value.dtype) return damaged(self, "tensor \"%s\": its dtype is not one of F64, F32, F16, U8", name);
    if (out->begin < 0 || out->end < out->begin || out->end > data_bytes(self))
        return damaged(self, "tensor \"%s\": offsets %lld .. %lld are not within the %lld bytes of data", name,
                       (long long)out->begin, (long long)out->end, (long long)data_bytes(self));
    return read_shape(self, json_object_get(about, "shape"), out);
}

static int compare_entries(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end); /* empty tensors first */
}

/* Reads all tensors, and checks that they cover the data completely and do not overlap. Together with the checksums
   this means that every byte of the data is verified. */
static mercer_status read_tensors(mrc_tensor_file *self)
{
    MRC_TRY(mrc_alloc(self->context, &self->entries, (int64_t)json_object_size(self->root), sizeof(entry),
                      "the tensor list"));
    const char *name;
    json_t *about;
    json_object_foreach(self->root, name, about)
    {
        if (about == self->metadata) continue;
        MRC_TRY(read_tensor(self, name, about, &self->entries[self->count]));
        self->count++;
    }
    qsort(self->entries, (size_t)self->count, sizeof(entry), compare_entries);
    int64_t place = 0;
    for (int64_t i = 0; i < self->count; i++) {
        const entry *next = &self->entries[i];
        if (next->begin != place)
            return damaged(self, "tensor \"%s\": begins at offset %lld, but the previous one ends at %lld", next->name,
                           (long long)next->begin, (long long)place);
        place = next->end;
    }
    if (place != data_bytes(self))
        return damaged(self, "the tensors end at offset %lld, but the data end at %lld", (long long)place,
                       (long long)data_bytes(self));
    return MERCER_OK;
}

/* ---- Checksums ----------------------------------------------------------------------------------------------- */

/* Checks the checksums of all tensors, which reads the whole file. */
static mercer_status check_tensors(const mrc_tensor_file *self)
{
    for (int64_t i = 0; i < self->count; i++) {
        const entry *next = &self->entries[i];
        char key[MRC_TENSOR_NAME_CHARS + 8], digits[MRC_TENSOR_DIGITS + 1];
        snprintf(key, sizeof key, "xxh3.%s", next->name);
        int64_t place = MRC_TENSOR_LENGTH_BYTES + self->header_bytes + next->begin;
        const char *stored = mrc_tensor_file_metadata(self, key);
        if (!stored) return damaged(self, "tensor \"%s\": has no checksum", next->name);
        mrc_tensor_digits(XXH3_64bits(next->value.data, (size_t)(next->end - next->begin)), digits);
        if (strcmp(stored, digits) != 0)
            return damaged(self, "tensor \"%s\" (from byte %lld): the checksum is wrong", next->name, (long long)place);
    }
    return MERCER_OK;
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

/* Structure first, checksums last: until the header is parsed, it is unknown which bytes belong to which tensor. A
   wrong structure therefore gets a more specific message than a wrong checksum. */
static mercer_status read_all(mrc_tensor_file *self, int64_t copied)
{
    MRC_TRY(mrc_open_file(self->context, &self->map, self->path, copied));
    MRC_TRY(find_header(self));
    MRC_TRY(parse_header(self));
    MRC_TRY(read_tensors(self));
    MRC_TRY(check_header(self));
    mercer_status status = check_tensors(self);
    MRC_TRY(mrc_mapping_check(&self->map)); /* report an I/O error instead of the wrong checksum that it causes */
    return status;
}

static mercer_status open_file(mrc_tensor_file **out, mercer_context *context, const char *path, int64_t copied)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *self = NULL;
    int64_t size = sizeof(mrc_tensor_file), chars = (int64_t)strlen(path) + 1;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, size + chars, 1, "a tensor file"));
    self->context = context;
    self->path = (char *)self + size;
    memcpy(self->path, path, (size_t)chars);
    MRC_TRY(read_all(self, copied));
    *out = self, self = NULL;
    return MERCER_OK;
}

mercer_status mrc_tensor_file_open(mrc_tensor_file **out, mercer_context *context, const char *path)
{
    return open_file(out, context, path, 0);
}

mercer_status mrc_tensor_file_read(mrc_tensor_file **out, mercer_context *context, const char *path)
{
    return open_file(out, context, path, COPIED);
}

void mrc_tensor_file_close(mrc_tensor_file *self)
{
    if (!self) return;
    json_decref(self->root);
    mrc_free(self->context, self->entries);
    mrc_unmap(&self->map);
    mrc_free(self->context, self);
}

bool mrc_tensor_file_find(const mrc_tensor_file *self, const char *name, mercer_matrix *out)
{
    for (int64_t i = 0; i < self->count; i++)
        if (strcmp(self->entries[i].name, name) == 0) {
            *out = self->entries[i].value;
            return true;
        }
    return false;
}

const char *mrc_tensor_file_metadata(const mrc_tensor_file *self, const char *key)
{
    return json_string_value(json_object_get(self->metadata, key));
}

/* The header begins with a brace, so the loop that removes trailing spaces stops there at the latest. */
const char *mrc_tensor_file_header(const mrc_tensor_file *self, int64_t *length)
{
    const char *text = header_text(self);
    *length = self->header_bytes;
    while (text[*length - 1] == ' ') --*length;
    return text;
}

mrc_mapping mrc_tensor_file_take_mapping(mrc_tensor_file *self)
{
    mrc_mapping map = self->map;
    self->map = (mrc_mapping){0};
    return map;
}
