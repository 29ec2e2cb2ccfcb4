/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensor files: named matrices and texts in the safetensors layout, with a checksum for everything.
 *
 *   8 bytes      length N of the header, little-endian, N <= 100,000,000
 *   N bytes      the header: JSON, then spaces up to a multiple of 64 bytes from the beginning of the file
 *   the rest     the tensors, row-major, little-endian, one after the other without gaps
 *
 * Header:  {"__metadata__": {"xxh3.header": H, key: text, ..., "xxh3.NAME": H, ...},
 *           NAME: {"dtype": "F64" | "F32" | "F16" | "U8", "shape": [rows, cols] or [cols], "data_offsets": [begin,
 *           end]}}
 *
 * H is 16 hexadecimal digits of XXH3-64: of a tensor's bytes, or of the header with the digits of its own entry, which
 * stands first, replaced by zeros. So a changed byte anywhere is noticed. Tensors are ordered by the size of their
 * elements, largest first: each begins at a multiple of it. The same contents give the same bytes.
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
    mercer_matrix value; /* any ld; may have 0 rows or columns */
    mercer_dtype stored; /* the type in the file; 0: that of value */
    bool vector;         /* a single row that is stored with the shape [cols] */
    int64_t total;       /* > 0: value has rows first .. of so many; other ranks have the rest */
    int64_t first;
} mrc_tensor;

typedef struct mrc_metadata {
    const char *key, *value; /* UTF-8; an entry with a value of NULL is left out */
} mrc_metadata;

/* The text is UTF-8, which JSON asks for; otherwise MERCER_ERROR_ARGUMENT with a message that begins with name. */
mercer_status mrc_check_text(mercer_context *context, const char *name, const char *text);

/* Text outside of strings nests brackets at most `depth` deep and has at most `commas` commas: a bound on what a parser
   will allocate for it. */
bool mrc_json_is_bounded(const char *text, int64_t length, int depth, int64_t commas);

/*
 * Writes a file atomically. Values are converted to the stored type, rounded to nearest; one that does not fit (beyond
 * the range of f16 or f32, or no whole number 0 .. 255 for u8) is refused with MERCER_ERROR_DATA before anything is
 * written.
 */
mercer_status mrc_tensor_file_write(mercer_context *context, const char *path, const mrc_tensor *tensors, int64_t count,
                                    const mrc_metadata *metadata, int64_t entries);

/* The same file, byte for byte, written by all ranks, each its own rows (and rank 0 what all have): no rank
   needs a whole tensor. All ranks call it, with a path on a file system that they share. */
mercer_status mrc_tensor_file_write_shared(mrc_comm *comm, const char *path, const mrc_tensor *tensors, int64_t count,
                                           const mrc_metadata *metadata, int64_t entries);

/* A tensor file, mapped. */
typedef struct mrc_tensor_file mrc_tensor_file;

/* Checks everything: sizes, types, offsets, checksums. Messages begin with the path. */
mercer_status mrc_tensor_file_open(mrc_tensor_file **out, mercer_context *context, const char *path);
/* The same for a file that is to be kept: up to 256 MiB it is copied, so that nothing that happens to it matters. */
mercer_status mrc_tensor_file_read(mrc_tensor_file **out, mercer_context *context, const char *path);
void mrc_tensor_file_close(mrc_tensor_file *file);
MRC_RELEASE(mrc_release_tensor_file, mrc_tensor_file, mrc_tensor_file_close)

/* A view of the tensor in the mapping, which may be written to without changing the file; a vector is one row. False if
   there is none of that name. */
bool mrc_tensor_file_find(const mrc_tensor_file *file, const char *name, mercer_matrix *out);
/* Borrowed; NULL if there is no such entry. */
const char *mrc_tensor_file_metadata(const mrc_tensor_file *file, const char *key);
/* The header without its padding, not zero-terminated; borrowed. */
const char *mrc_tensor_file_header(const mrc_tensor_file *file, int64_t *length);
/* Hands the mapping, and with it the views, to the caller, who unmaps it. */
mrc_mapping mrc_tensor_file_take_mapping(mrc_tensor_file *file);

#endif
