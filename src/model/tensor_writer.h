/* SPDX-License-Identifier: BSD-3-Clause */
/* What the writers of tensor files share: places, bytes as they are in the file, and the header. */
#ifndef MRC_MODEL_TENSOR_WRITER_H
#define MRC_MODEL_TENSOR_WRITER_H

#include "model/tensor_file.h"
#include "model/tensor_format.h"

#include <jansson.h>

/* A tensor in its place in the file. */
typedef struct mrc_placed {
    const mrc_tensor *tensor;
    mercer_dtype stored;
    int64_t begin, end;      /* in the data */
    int64_t rows, row_bytes; /* in the file: all of them, those of other ranks too */
    char digits[MRC_TENSOR_DIGITS + 1];
} mrc_placed;

typedef struct mrc_tensor_writer {
    mercer_context *context;
    mrc_placed *items; /* (count) in the order of the file */
    int64_t count;
    char *buffer; /* (buffer_bytes) */
    int64_t buffer_bytes;
    json_t *root;
    char *header; /* (header_bytes) padded */
    int64_t header_bytes;
} mrc_tensor_writer;

typedef mercer_status (*mrc_visitor)(void *user, const void *bytes, int64_t count);

/* Places the tensors. end must follow, whatever happens. */
mercer_status mrc_tensor_writer_begin(mrc_tensor_writer *writer, const mrc_tensor *tensors, int64_t count,
                                      const mrc_metadata *metadata, int64_t entries);
/* Hands the bytes of the rows that are here, as they are in the file, to a visitor, piece by piece. */
mercer_status mrc_tensor_writer_visit(const mrc_tensor_writer *writer, const mrc_placed *item, mrc_visitor visit,
                                      void *user);
/* The header with the digits that the items have now. */
mercer_status mrc_tensor_writer_header(mrc_tensor_writer *writer, const mrc_metadata *metadata, int64_t entries);
void mrc_tensor_writer_end(mrc_tensor_writer *writer);

#endif
