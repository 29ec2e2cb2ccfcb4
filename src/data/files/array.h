/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as files hold them: element types, byte order and storage order that a matrix view cannot say. */
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
    MRC_ELEMENT_UNICODE /* the same, four bytes a character */
} mrc_element;

enum { MRC_ARRAY_DIMS = 8 };

typedef struct mrc_array {
    mrc_element element;
    int64_t item; /* bytes of an element */
    bool swapped; /* the other byte order than this machine's */
    bool fortran; /* the first index runs fastest */
    int dims;     /* 1 .. MRC_ARRAY_DIMS */
    int64_t shape[MRC_ARRAY_DIMS];
    const uint8_t *data;
} mrc_array;

int64_t mrc_element_size(mrc_element element); /* 0 for texts */
bool mrc_element_is_integer(mrc_element element);
bool mrc_element_is_text(mrc_element element);

/* The data begin at `offset` and must reach exactly to the end of the file. Sets array->data. */
mercer_status mrc_array_place(mrc_array *array, const mrc_input *input, int64_t offset);
/* Elements of a row: the product of all sizes but the first. */
int64_t mrc_array_row(const mrc_array *array);
/* Rows of the two can stand below each other: same elements, same sizes but the first. The message names both files. */
mercer_status mrc_array_check_like(const mrc_array *array, const mrc_input *input, const mrc_array *like,
                                   const mrc_input *like_input);
/* Element number k in the order of storage as a double. */
double mrc_array_number(const mrc_array *array, int64_t k);
/* A text element as UTF-8, zero-terminated, cut to fit; false if it is not valid text. */
bool mrc_array_text(const mrc_array *array, int64_t k, char *out, int64_t size);

/* The type that rows first .. first + rows - 1 have as a matrix: their own; bool as u8; other integers as f32 if that
   is exact for all, else f64. With `real` it is f32 or f64. */
mercer_status mrc_array_dtype(const mrc_array *array, const mrc_input *input, int64_t first, int64_t rows, bool real,
                              mercer_dtype *dtype);
/* These rows as a matrix of that type, or f64 for f32; the other dimensions flattened in C order. If the stored bytes
   serve as they are, *out is a view of them and *memory NULL; otherwise they are converted into *memory, which the
   caller releases. */
mercer_status mrc_array_matrix(mercer_matrix *out, void **memory, const mrc_array *array, const mrc_input *input,
                               int64_t first, int64_t rows, mercer_dtype dtype);

#endif
