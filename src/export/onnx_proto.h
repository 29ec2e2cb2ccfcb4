/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONNX files: the few messages of the format that a model needs, encoded as protocol buffers.
 *
 *   ModelProto { GraphProto { NodeProto ..., TensorProto ..., inputs, outputs }, operator set, texts }
 *
 * A field is a key (number << 3 | type), then a number in groups of 7 bits (type 0), or a length and bytes (type 2).
 * Nodes and small tensors are collected in memory; large tensors are borrowed until the file is written.
 */
#ifndef MRC_EXPORT_ONNX_PROTO_H
#define MRC_EXPORT_ONNX_PROTO_H

#include "export/export.h"

typedef struct mrc_bytes {
    char *data;
    int64_t count, capacity;
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
    const void *data; /* borrowed until the file is written; NULL: the data is in head */
    int64_t bytes;
} mrc_onnx_tensor;

enum { MRC_ONNX_TENSORS = 2 * MERCER_MEMBERS, MRC_ONNX_SPARES = 8 };

/* A graph under construction. Values are numbered; value v is named "v<number>". The first failure is saved in
   `status`. */
typedef struct mrc_onnx {
    mercer_context *context;
    mrc_bytes graph;                         /* fields of GraphProto */
    mrc_onnx_tensor large[MRC_ONNX_TENSORS]; /* tensors that are not copied */
    int larges;
    mrc_bytes spare[MRC_ONNX_SPARES]; /* buffers of finished messages, for reuse */
    int spares;
    int values;
    mercer_status status;
} mrc_onnx;

void mrc_onnx_close(mrc_onnx *onnx);

/* Constants; each function returns the index of its value. A tensor of up to three dimensions (d2 or d3 < 0: fewer; d1
   < 0: a scalar). */
int mrc_onnx_doubles(mrc_onnx *onnx, int64_t d1, int64_t d2, int64_t d3, const double *values);
int mrc_onnx_number(mrc_onnx *onnx, double value);
int mrc_onnx_integers(mrc_onnx *onnx, int64_t count, const int64_t *values); /* count < 0: a scalar */
/* A matrix in its own type, borrowed until the file is written. */
int mrc_onnx_matrix(mrc_onnx *onnx, const mercer_matrix *matrix);

/* Adds a node, without its negative operands. Returns the index of the result. */
int mrc_onnx_node(mrc_onnx *onnx, const char *operator, int a, int b, int c);
/* The same as mrc_onnx_node with an attribute: an integer, or a list of one integer (axes; only single axes are
   used). */
int mrc_onnx_with(mrc_onnx *onnx, const char *operator, int a, int b, const char *attribute, int64_t value, bool list);
int mrc_onnx_cast(mrc_onnx *onnx, int a, mrc_onnx_type type);

/* mrc_onnx_input adds an input (rows, width) of the graph and returns its value. mrc_onnx_output makes value v an
   output with a name. width < 0: the shape is (rows). */
int mrc_onnx_input(mrc_onnx *onnx, const char *name, mrc_onnx_type type, int64_t width);
void mrc_onnx_output(mrc_onnx *onnx, int v, const char *name, mrc_onnx_type type, int64_t width);

/* Writes the file. `keys` and `texts` (count) become properties of the model; keys whose text is NULL are left out. */
mercer_status mrc_onnx_write(mrc_onnx *onnx, const char *path, const char *const *keys, const char *const *texts,
                             int count);

#endif
