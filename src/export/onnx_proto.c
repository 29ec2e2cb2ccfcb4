/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of ONNX files. Field numbers are those of onnx.proto, version 7 of the format with operator set 13.
 *
 * A message is preceded by its length, so an inner message is encoded completely before it is added to the outer one.
 * The graph and its large tensors are exceptions: their lengths are computed when the file is written. Fields of a
 * message may have any order, so large tensors come after all nodes.
 */
#include "export/onnx_proto.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 7, OPERATORS = 13, NAME_CHARS = 24 };
#define MOST_BYTES INT64_C(0x7fffffff) /* size limit of a protocol buffer */

/* ---- Bytes --------------------------------------------------------------------------------------------------- */

/* Appends bytes, in a buffer that grows by doubling; finished buffers are reused. Does nothing after a failure, so that
   callers can build a graph without checking each step. */
static void add_bytes(mrc_onnx *self, mrc_bytes *to, const void *data, int64_t count)
{
    if (self->status != MERCER_OK) return;
    if (to->capacity == 0 && self->spares > 0) *to = self->spare[--self->spares];
    if (to->count + count > to->capacity) {
        char *larger;
        int64_t capacity = 2 * (to->count + count) + 256;
        self->status = mrc_alloc(self->context, &larger, capacity, 1, "an ONNX graph");
        if (self->status != MERCER_OK) return;
        if (to->count > 0) memcpy(larger, to->data, (size_t)to->count);
        mrc_free(self->context, to->data);
        to->data = larger;
        to->capacity = capacity;
    }
    if (count > 0) memcpy(to->data + to->count, data, (size_t)count);
    to->count += count;
}

/* Appends a number in groups of 7 bits, lowest first; the highest bit of a byte is set if another byte follows. */
static void add_varint(mrc_onnx *self, mrc_bytes *to, uint64_t value)
{
    unsigned char bytes[10];
    int count = 0;
    for (; value >= 128; value >>= 7) bytes[count++] = (unsigned char)(value | 128);
    bytes[count++] = (unsigned char)value;
    add_bytes(self, to, bytes, count);
}

/* Adds a field of type 0: a number. Negative numbers take 10 bytes, as two's complement of 64 bits. */
static void add_integer(mrc_onnx *self, mrc_bytes *to, int field, int64_t value)
{
    add_varint(self, to, (uint64_t)field << 3);
    add_varint(self, to, (uint64_t)value);
}

/* Adds key and length of a field of type 2; its bytes must follow. */
static void add_length(mrc_onnx *self, mrc_bytes *to, int field, int64_t bytes)
{
    add_varint(self, to, (uint64_t)field << 3 | 2);
    add_varint(self, to, (uint64_t)bytes);
}

static void add_text(mrc_onnx *self, mrc_bytes *to, int field, const char *text)
{
    int64_t length = (int64_t)strlen(text);
    add_length(self, to, field, length);
    add_bytes(self, to, text, length);
}

/* Adds a message as a field, and clears it. Its buffer goes to the spares, or is released if there are enough of
   them. */
static void add_message(mrc_onnx *self, mrc_bytes *to, int field, mrc_bytes *message)
{
    add_length(self, to, field, message->count);
    add_bytes(self, to, message->data, message->count);
    message->count = 0;
    if (message->capacity > 0 && self->spares < MRC_ONNX_SPARES)
        self->spare[self->spares++] = *message;
    else
        mrc_free(self->context, message->data);
    *message = (mrc_bytes){0};
}

void mrc_onnx_close(mrc_onnx *self)
{
    for (int i = 0; i < self->larges; i++) mrc_free(self->context, self->large[i].head.data);
    for (int i = 0; i < self->spares; i++) mrc_free(self->context, self->spare[i].data);
    mrc_free(self->context, self->graph.data);
    *self = (mrc_onnx){.context = self->context};
}

/* ---- Tensors ------------------------------------------------------------------------------------------------- */

static const char *value_name(char name[NAME_CHARS], int v)
{
    snprintf(name, NAME_CHARS, "v%d", v);
    return name;
}

/* Adds everything of a TensorProto except the data: dims = 1, data_type = 2, name = 8, raw_data = 9. The data, `bytes`
   bytes in little-endian order, must follow. Returns the index of a new value. */
static int begin_tensor(mrc_onnx *self, mrc_bytes *to, mrc_onnx_type type, const int64_t *dims, int count,
                        int64_t bytes)
{
    char name[NAME_CHARS];
    for (int i = 0; i < count; i++) add_integer(self, to, 1, dims[i]);
    add_integer(self, to, 2, type);
    add_text(self, to, 8, value_name(name, self->values));
    add_length(self, to, 9, bytes);
    return self->values++;
}

/* Adds a tensor with its data to the graph. Returns the index of its value. */
static int small_tensor(mrc_onnx *self, mrc_onnx_type type, const int64_t *dims, int count, const void *data)
{
    mrc_bytes tensor = {0};
    int64_t bytes = 8; /* size of a double or an integer */
    for (int i = 0; i < count; i++) bytes *= dims[i];
    int v = begin_tensor(self, &tensor, type, dims, count, bytes);
    add_bytes(self, &tensor, data, bytes);
    add_message(self, &self->graph, 5, &tensor);
    return v;
}

int mrc_onnx_doubles(mrc_onnx *self, int64_t d1, int64_t d2, int64_t d3, const double *values)
{
    const int64_t dims[] = {d1, d2, d3};
    return small_tensor(self, MRC_ONNX_DOUBLE, dims, d1 < 0 ? 0 : d2 < 0 ? 1 : d3 < 0 ? 2 : 3, values);
}

int mrc_onnx_number(mrc_onnx *self, double value)
{
    return mrc_onnx_doubles(self, -1, -1, -1, &value);
}

int mrc_onnx_integers(mrc_onnx *self, int64_t count, const int64_t *values)
{
    return small_tensor(self, MRC_ONNX_INT64, &count, count < 0 ? 0 : 1, values);
}

/* Reserves an entry of `large`, which has space for two matrices per member: centers and weights. Rows must be
   contiguous, because the data are written as one block. */
int mrc_onnx_matrix(mrc_onnx *self, const mercer_matrix *matrix)
{
    const int64_t dims[] = {matrix->rows, matrix->cols};
    mrc_onnx_type type = matrix->dtype == MERCER_F64   ? MRC_ONNX_DOUBLE
                         : matrix->dtype == MERCER_F32 ? MRC_ONNX_FLOAT
                         : matrix->dtype == MERCER_F16 ? MRC_ONNX_FLOAT16
                                                       : MRC_ONNX_UINT8;
    mrc_onnx_tensor *tensor = &self->large[self->larges++];
    tensor->data = matrix->data;
    tensor->bytes = matrix->rows * matrix->cols * mrc_dtype_size(matrix->dtype);
    return begin_tensor(self, &tensor->head, type, dims, 2, tensor->bytes);
}

/* ---- Nodes --------------------------------------------------------------------------------------------------- */

/* NodeProto: input = 1, output = 2, op_type = 4, attribute = 5. Nodes are added in the order in which they are made, so
   every operand precedes its use, as the format requires. */
static int add_node(mrc_onnx *self, const char *operator, const int * operands, int count, mrc_bytes *attribute)
{
    mrc_bytes node = {0};
    char name[NAME_CHARS];
    for (int i = 0; i < count; i++)
        if (operands[i] >= 0) add_text(self, &node, 1, value_name(name, operands[i]));
    add_text(self, &node, 2, value_name(name, self->values));
    add_text(self, &node, 4, operator);
    if (attribute) add_message(self, &node, 5, attribute);
    add_message(self, &self->graph, 1, &node);
    return self->values++;
}

int mrc_onnx_node(mrc_onnx *self, const char *operator, int a, int b, int c)
{
    const int operands[] = {a, b, c};
    return add_node(self, operator, operands, 3, NULL);
}

/* AttributeProto: name = 1, i = 3, ints = 8, type = 20 (2: an integer, 7: a list of integers). */
int mrc_onnx_with(mrc_onnx *self, const char *operator, int a, int b, const char *attribute, int64_t value, bool list)
{
    const int operands[] = {a, b};
    mrc_bytes message = {0};
    add_text(self, &message, 1, attribute);
    add_integer(self, &message, list ? 8 : 3, value);
    add_integer(self, &message, 20, list ? 7 : 2);
    return add_node(self, operator, operands, 2, &message);
}

int mrc_onnx_cast(mrc_onnx *self, int a, mrc_onnx_type type)
{
    return mrc_onnx_with(self, "Cast", a, -1, "to", type, false);
}

/* ---- Inputs and outputs -------------------------------------------------------------------------------------- */

/* ValueInfoProto { name = 1, type = 2 { tensor_type = 1 { elem_type = 1, shape = 2 { dim = 1 ... } } } };
   a dimension: dim_value = 1, dim_param = 2. */
static void add_value(mrc_onnx *self, int field, const char *name, mrc_onnx_type type, int64_t width)
{
    mrc_bytes value = {0}, outer = {0}, tensor = {0}, shape = {0}, dimension = {0};
    add_text(self, &dimension, 2, "rows");
    add_message(self, &shape, 1, &dimension);
    if (width >= 0) {
        add_integer(self, &dimension, 1, width);
        add_message(self, &shape, 1, &dimension);
    }
    add_integer(self, &tensor, 1, type);
    add_message(self, &tensor, 2, &shape);
    add_message(self, &outer, 1, &tensor);
    add_text(self, &value, 1, name);
    add_message(self, &value, 2, &outer);
    add_message(self, &self->graph, field, &value);
}

/* An Identity node connects the named input to a numbered value. */
int mrc_onnx_input(mrc_onnx *self, const char *name, mrc_onnx_type type, int64_t width)
{
    mrc_bytes node = {0};
    char number[NAME_CHARS];
    add_value(self, 11, name, type, width);
    add_text(self, &node, 1, name);
    add_text(self, &node, 2, value_name(number, self->values));
    add_text(self, &node, 4, "Identity");
    add_message(self, &self->graph, 1, &node);
    return self->values++;
}

void mrc_onnx_output(mrc_onnx *self, int v, const char *name, mrc_onnx_type type, int64_t width)
{
    mrc_bytes node = {0};
    char number[NAME_CHARS];
    add_text(self, &node, 1, value_name(number, v));
    add_text(self, &node, 2, name);
    add_text(self, &node, 4, "Identity");
    add_message(self, &self->graph, 1, &node);
    add_value(self, 12, name, type, width);
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

/* Returns the number of bytes that add_varint writes. */
static int64_t varint_bytes(int64_t value)
{
    int64_t count = 1;
    for (uint64_t rest = (uint64_t)value; rest >= 128; rest >>= 7) count++;
    return count;
}

/* ModelProto: ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8 {version = 2},
   metadata_props = 14 {key = 1, value = 2}. */
static void add_model(mrc_onnx *self, mrc_bytes *to, const char *const *keys, const char *const *texts, int count)
{
    mrc_bytes part = {0};
    add_integer(self, to, 1, IR_VERSION);
    add_text(self, to, 2, "Mercer");
    add_text(self, to, 3, mercer_version());
    add_integer(self, &part, 2, OPERATORS);
    add_message(self, to, 8, &part);
    for (int i = 0; i < count; i++) {
        if (!texts[i]) continue;
        add_text(self, &part, 1, keys[i]);
        add_text(self, &part, 2, texts[i]);
        add_message(self, to, 14, &part);
    }
}

static void put_bytes(mrc_output *out, const mrc_bytes *bytes)
{
    mrc_output_bytes(out, bytes->data, bytes->count);
}

/* The length of the graph is the size of its collected fields plus that of its large tensors. Each large tensor takes a
   key of 1 byte (field 5, type 2), a length and the message. The limit applies to the whole file, because the model is
   one message. */
mercer_status mrc_onnx_write(mrc_onnx *self, const char *path, const char *const *keys, const char *const *texts,
                             int count)
{
    mrc_bytes head = {0}, lengths[MRC_ONNX_TENSORS] = {{0}};
    add_text(self, &self->graph, 2, "mercer");
    int64_t bytes = self->graph.count;
    for (int i = 0; i < self->larges; i++) {
        int64_t size = self->large[i].head.count + self->large[i].bytes;
        add_length(self, &lengths[i], 5, size);
        bytes += 1 + varint_bytes(size) + size;
    }
    add_model(self, &head, keys, texts, count);
    add_length(self, &head, 7, bytes);
    if (self->status == MERCER_OK && head.count + bytes > MOST_BYTES)
        self->status = mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                                "format onnx: the model is larger than 2 "
                                "GiB, the limit of the format");
    mrc_output out;
    if (self->status == MERCER_OK) self->status = mrc_output_open(&out, self->context, path);
    if (self->status == MERCER_OK) {
        put_bytes(&out, &head);
        put_bytes(&out, &self->graph);
        for (int i = 0; i < self->larges; i++) {
            put_bytes(&out, &lengths[i]);
            put_bytes(&out, &self->large[i].head);
            mrc_output_bytes(&out, self->large[i].data, self->large[i].bytes);
        }
        self->status = mrc_output_close(&out);
    }
    for (int i = 0; i < self->larges; i++) mrc_free(self->context, lengths[i].data);
    mrc_free(self->context, head.data);
    return self->status;
}
