/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONNX files: the few messages of the format that a model needs, encoded as protocol buffers.
 *
 *   ModelProto { GraphProto { NodeProto ..., TensorProto ..., inputs, outputs }, operator set, texts }
 *
 * A field is a key (number << 3 | type), then a number in groups of 7 bits (type 0), or a length and bytes (type 2).
 * Nodes and small tensors are collected in memory; large ones stay where they are until the file is written.
 */
#ifndef MRC_EXPORT_ONNX_PROTO_H
#define MRC_EXPORT_ONNX_PROTO_H

#include "export/export.h"

typedef struct mrc_bytes {
    char *data;
    int64_t count, room;
} mrc_bytes;

/* TensorProto.DataType */
typedef enum mrc_onnx_type {
    MRC_ONNX_FLOAT = 1,
    MRC_ONNX_UINT8 = 2,
    MRC_ONNX_INT64 = 7,
    MRC_ONNX_FLOAT16 = 10,
    MRC_ONNX_DOUBLE = 11
} mrc_onnx_type;

typedef struct mrc_onnx_tensor {
    mrc_bytes head;   /* fields before the data */
    const void *data; /* borrowed until the file is written; NULL: in head */
    int64_t bytes;
} mrc_onnx_tensor;

enum { MRC_ONNX_TENSORS = 2 * MERCER_MEMBERS, MRC_ONNX_SPARES = 8 };

/* A graph being made. Values are numbered; number v is called "v<number>". The first failure stays. */
typedef struct mrc_onnx {
    mercer_context *context;
    mrc_bytes graph;                         /* fields of GraphProto */
    mrc_onnx_tensor large[MRC_ONNX_TENSORS]; /* tensors that are not copied */
    int larges;
    mrc_bytes spare[MRC_ONNX_SPARES]; /* memory of messages that have become fields of others */
    int spares;
    int values;
    mercer_status status;
} mrc_onnx;

void mrc_onnx_close(mrc_onnx *onnx);

/* Constants: a tensor of up to three dimensions (d2 or d3 negative: there are fewer; d1 negative: a single number). */
int mrc_onnx_doubles(mrc_onnx *onnx, int64_t d1, int64_t d2, int64_t d3, const double *values);
int mrc_onnx_number(mrc_onnx *onnx, double value);
int mrc_onnx_integers(mrc_onnx *onnx, int64_t count, const int64_t *values); /* count negative: a single one */
/* A matrix of its own type, not copied. */
int mrc_onnx_matrix(mrc_onnx *onnx, const mercer_matrix *matrix);

/* Nodes, of which operands that are negative are left out. The result's number comes back. */
int mrc_onnx_node(mrc_onnx *onnx, const char *operator, int a, int b, int c);
/* The same with an attribute: a whole number, or a list of one (of several axes, only one is used here). */
int mrc_onnx_with(mrc_onnx *onnx, const char *operator, int a, int b, const char *attribute, int64_t value, bool list);
int mrc_onnx_cast(mrc_onnx *onnx, int a, mrc_onnx_type type);

/* The graph's input (rows, width), a value; and an output, by which value v gets a name. width negative: (rows). */
int mrc_onnx_input(mrc_onnx *onnx, const char *name, mrc_onnx_type type, int64_t width);
void mrc_onnx_output(mrc_onnx *onnx, int v, const char *name, mrc_onnx_type type, int64_t width);

/* Writes the file; `keys` and `texts` (count) become properties of the model, those without a text are left out. */
mercer_status mrc_onnx_write(mrc_onnx *onnx, const char *path, const char *const *keys, const char *const *texts,
                             int count);

#endif
