/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants and helpers shared by the reader and the writer of tensor files. */
#ifndef MRC_MODEL_TENSOR_FORMAT_H
#define MRC_MODEL_TENSOR_FORMAT_H

#include "core/context.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    MRC_TENSOR_LENGTH_BYTES = 8,
    MRC_TENSOR_MOST_HEADER = 100000000, /* bytes; the limit of the safetensors package */
    MRC_TENSOR_DATA_ALIGNMENT = 64,
    MRC_TENSOR_DIGITS = 16 /* hexadecimal digits of a checksum */
};

/* The header begins with this text, the digits of its own checksum, and a quotation mark. */
#define MRC_TENSOR_HEADER_START "{\"__metadata__\":{\"xxh3.header\":\""

/* Convert a type to its name ("F64", ...) and back; 0 for an unknown name. */
const char *mrc_tensor_dtype_name(mercer_dtype dtype);
mercer_dtype mrc_tensor_dtype(const char *name);

bool mrc_tensor_name_valid(const char *name);

/* Writes the checksum as hexadecimal text. */
void mrc_tensor_digits(uint64_t checksum, char digits[MRC_TENSOR_DIGITS + 1]);

/* Computes the XXH3-64 of a header with the digits of its own checksum replaced by zeros. Returns false if out of
   memory. */
bool mrc_tensor_header_checksum(const char *header, int64_t length, uint64_t *out);

/* Returns whether the parser ran out of memory: it then sets no error text, or the out-of-memory code. */
static inline bool mrc_json_no_memory(const json_error_t *error)
{
    return error->text[0] == 0 || json_error_code(error) == json_error_out_of_memory;
}

#endif
