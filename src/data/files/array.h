/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as they are stored in files, with element types, byte orders and storage orders that a matrix view cannot
   represent. */
#ifndef MRC_DATA_FILES_ARRAY_H
#define MRC_DATA_FILES_ARRAY_H

#include "data/files/input.h"

typedef enum mrc_element {
    MRC_ELEMENT_F64,
    MRC_ELEMENT_F32,
    MRC_ELEMENT_F16,
    MRC_ELEMENT_U8,
    MRC_ELEMENT_I8,
    MRC_ELEMENT_U16,
    MRC_ELEMENT_I16,
    MRC_ELEMENT_U32,
    MRC_ELEMENT_I32,
    MRC_ELEMENT_U64,
    MRC_ELEMENT_I64,
    MRC_ELEMENT_BOOL,
    MRC_ELEMENT_BYTES,  /* text, padded with zeros */
    MRC_ELEMENT_UNICODE /* text, four bytes per character, padded with zeros */
} mrc_element;

enum { MRC_ARRAY_DIMS = 8 };

typedef struct mrc_array {
    mrc_element element;
    int64_t item; /* bytes per element */
    bool swapped; /* true: byte order opposite to that of this machine */
    bool fortran; /* true: the first index varies fastest (column-major) */
    int dims;     /* 1 .. MRC_ARRAY_DIMS */
    int64_t shape[MRC_ARRAY_DIMS];
    const uint8_t *data;
} mrc_array;

int64_t mrc_element_size(mrc_element element); /* bytes; 0 for text elements */
bool mrc_element_is_integer(mrc_element element);
bool mrc_element_is_text(mrc_element element);

/* Sets array->data, which begins at `offset`. The elements must extend exactly to the end of the file. An array without
   elements is an error, unless it has no rows and the file is one of several. */
mercer_status mrc_array_locate(mrc_array *array, const mrc_input *input, int64_t offset);
/* Returns the number of elements per row: the product of all sizes but the first. */
int64_t mrc_array_row(const mrc_array *array);
/* Checks that the rows of two arrays can be concatenated: same element type, same sizes except the first. The message
   of an error names both files. */
mercer_status mrc_array_check_like(const mrc_array *array, const mrc_input *input, const mrc_array *like,
                                   const mrc_input *like_input);
/* Returns element k, counted in storage order, as a double. */
double mrc_array_number(const mrc_array *array, int64_t k);
/* Writes text element k to `out` as zero-terminated UTF-8; BYTES elements are copied unchanged. Returns false if the
   text contains a zero or an invalid code point, or does not fit in `size` bytes. */
bool mrc_array_text(const mrc_array *array, int64_t k, char *out, int64_t size);

/* Chooses the matrix dtype for rows first .. first + rows - 1: the element type itself where a dtype exists for it; u8
   for bool; for other integers f32 if that is exact for all values, else f64. With `real`, the result is f32 or f64.
   Text elements and integers that f64 cannot represent are errors. */
mercer_status mrc_array_dtype(const mrc_array *array, const mrc_input *input, int64_t first, int64_t rows, bool real,
                              mercer_dtype *dtype);
/* Makes a matrix of rows first .. first + rows - 1. `dtype` is the result of mrc_array_dtype, or F64 if that is F32.
   All dimensions but the first are flattened in C order. If the stored bytes can be used in place, *out is a view of
   them and *memory is NULL; otherwise the elements are converted into *memory, which the caller releases. */
mercer_status mrc_array_matrix(mercer_matrix *out, void **memory, const mrc_array *array, const mrc_input *input,
                               int64_t first, int64_t rows, mercer_dtype dtype);

#endif
