/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensor files: named matrices and metadata strings in the safetensors layout, with checksums of everything.
 *
 *   8 bytes      length N of the header, little-endian, N <= 100,000,000
 *   N bytes      the header: JSON, then spaces up to a multiple of 64 bytes from the beginning of the file
 *   the rest     the tensors, row-major, little-endian, without space between them
 *
 * Header:  {"__metadata__": {"xxh3.header": H, key: text, ..., "xxh3.NAME": H, ...},
 *           NAME: {"dtype": "F64" | "F32" | "F16" | "U8", "shape": [rows, cols] or [cols], "data_offsets": [begin,
 *           end]}}
 *
 * H is the 16 hexadecimal digits of an XXH3-64 checksum: of a tensor's bytes, or of the header with the digits of its
 * own entry, which comes first, replaced by zeros. Any changed byte is therefore detected. Tensors are ordered by
 * element size, largest first, so that each begins at a multiple of its element size. Files with the same contents are
 * bitwise identical.
 */
#ifndef MRC_MODEL_TENSOR_FILE_H
#define MRC_MODEL_TENSOR_FILE_H

#include "comm/comm.h"
#include "core/file/file.h"
#include "core/memory.h"

#include <stdbool.h>

enum { MRC_TENSOR_NAME_CHARS = 64 };

typedef struct mrc_tensor {
    const char *name;    /* letters, digits, '.', '_', '-'; shorter than MRC_TENSOR_NAME_CHARS */
    mercer_matrix value; /* host matrix with any ld; may have 0 rows or columns */
    mercer_dtype stored; /* type in the file; 0: the type of value */
    bool vector;         /* stored with the shape [cols]; value has one row */
    /* > 0: number of rows of all ranks; `value` has those from `first` on; 0: value is complete */
    int64_t total;
    int64_t first;
} mrc_tensor;

typedef struct mrc_metadata {
    const char *key, *value; /* UTF-8; an entry with a value of NULL is left out */
} mrc_metadata;

/* Checks that a text is UTF-8, as JSON requires. Otherwise fails with MERCER_ERROR_ARGUMENT; the message begins with
   `name`. */
mercer_status mrc_check_text(mercer_context *context, const char *name, const char *text);

/* Returns whether the brackets of a JSON text are nested at most `depth` deep, and it has at most `commas` commas, not
   counting those in strings. This limits the memory that a parser allocates for the text. */
bool mrc_json_is_bounded(const char *text, int64_t length, int depth, int64_t commas);

/*
 * Writes a file atomically. Values are converted to the stored type, rounded to nearest. Fails with MERCER_ERROR_DATA,
 * and writes nothing, if a value does not fit (beyond the range of f16 or f32, or not an integer in 0 .. 255 for u8).
 */
mercer_status mrc_tensor_file_write(mercer_context *context, const char *path, const mrc_tensor *tensors, int64_t count,
                                    const mrc_metadata *metadata, int64_t entries);

/* Writes the same file, byte for byte, by all ranks: each rank writes its own rows, and rank 0 also writes the tensors
   that are not divided. No rank needs a complete tensor. Collective; the path must be on a shared file system. */
mercer_status mrc_tensor_file_write_shared(mrc_comm *comm, const char *path, const mrc_tensor *tensors, int64_t count,
                                           const mrc_metadata *metadata, int64_t entries);

/* A tensor file, mapped. */
typedef struct mrc_tensor_file mrc_tensor_file;

/* Maps a file and checks everything: sizes, types, offsets, checksums. Messages begin with the path. */
mercer_status mrc_tensor_file_open(mrc_tensor_file **out, mercer_context *context, const char *path);
/* The same as mrc_tensor_file_open, for contents that outlive the call: a file of up to 256 MiB is copied into
   memory, so that later changes to the file have no effect. */
mercer_status mrc_tensor_file_read(mrc_tensor_file **out, mercer_context *context, const char *path);
void mrc_tensor_file_close(mrc_tensor_file *file);
MRC_RELEASE(mrc_release_tensor_file, mrc_tensor_file, mrc_tensor_file_close)

/* Sets *out to a view of the tensor in the mapping, which may be written to without changing the file; a vector is
   one row. Returns false if the file has no tensor of that name. */
bool mrc_tensor_file_find(const mrc_tensor_file *file, const char *name, mercer_matrix *out);
/* Returns a metadata entry, borrowed; NULL if it does not exist. */
const char *mrc_tensor_file_metadata(const mrc_tensor_file *file, const char *key);
/* Returns the header without its padding, borrowed and not zero-terminated. */
const char *mrc_tensor_file_header(const mrc_tensor_file *file, int64_t *length);
/* Passes ownership of the mapping, which contains all views, to the caller, who must unmap it. */
mrc_mapping mrc_tensor_file_take_mapping(mrc_tensor_file *file);

#endif
