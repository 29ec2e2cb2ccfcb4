/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as they are stored in files: sizes, elements, and conversion to matrices. */
#include "data/files/array.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROW_CHARS = 256 }; /* enough for seven sizes of up to 19 digits */

/* ---- Elements ------------------------------------------------------------------------------------------------ */

int64_t mrc_element_size(mrc_element element)
{
    switch (element) {
        case MRC_ELEMENT_F64:
        case MRC_ELEMENT_U64:
        case MRC_ELEMENT_I64: return 8;
        case MRC_ELEMENT_F32:
        case MRC_ELEMENT_U32:
        case MRC_ELEMENT_I32: return 4;
        case MRC_ELEMENT_F16:
        case MRC_ELEMENT_U16:
        case MRC_ELEMENT_I16: return 2;
        case MRC_ELEMENT_U8:
        case MRC_ELEMENT_I8:
        case MRC_ELEMENT_BOOL: return 1;
        case MRC_ELEMENT_BYTES:
        case MRC_ELEMENT_UNICODE: break;
    }
    return 0;
}

bool mrc_element_is_text(mrc_element element)
{
    return element == MRC_ELEMENT_BYTES || element == MRC_ELEMENT_UNICODE;
}

bool mrc_element_is_integer(mrc_element element)
{
    return !mrc_element_is_text(element) && element != MRC_ELEMENT_F64 && element != MRC_ELEMENT_F32 &&
           element != MRC_ELEMENT_F16;
}

/* Returns the bits of a number of `size` bytes, in native byte order. */
static uint64_t load_bits(const uint8_t *at, int64_t size, bool swapped)
{
    uint64_t wide = 0;
    uint32_t word;
    uint16_t half;
    switch (size) {
        case 8: memcpy(&wide, at, 8); return swapped ? __builtin_bswap64(wide) : wide;
        case 4: memcpy(&word, at, 4); return swapped ? __builtin_bswap32(word) : word;
        case 2: memcpy(&half, at, 2); return swapped ? __builtin_bswap16(half) : half;
        default: return *at;
    }
}

/* Integers beyond 2^53 are rounded here; check_exact refuses them before an array is converted to a matrix. */
double mrc_array_number(const mrc_array *array, int64_t k)
{
    uint64_t bits = load_bits(array->data + k * array->item, array->item, array->swapped);
    double value;
    switch (array->element) {
        case MRC_ELEMENT_F64: memcpy(&value, &bits, sizeof value); return value;
        case MRC_ELEMENT_F32: return (double)mrc_float_from_bits((uint32_t)bits);
        case MRC_ELEMENT_F16: return (double)mrc_half_to_float((uint16_t)bits);
        case MRC_ELEMENT_I8: return (int8_t)bits;
        case MRC_ELEMENT_I16: return (int16_t)bits;
        case MRC_ELEMENT_I32: return (int32_t)bits;
        case MRC_ELEMENT_I64: return (double)(int64_t)bits;
        case MRC_ELEMENT_BOOL: return bits != 0;
        default: return (double)bits;
    }
}

/* ---- Text elements ------------------------------------------------------------------------------------------- */

/* Appends a code point as UTF-8. Returns false if it is invalid or does not fit. */
static bool append_character(char *out, int64_t capacity, int64_t *length, uint32_t character)
{
    int extra = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) return false;
    if (*length + extra + 1 >= capacity) return false;
    out[(*length)++] = (char)(lead[extra] | character >> (6 * extra));
    while (extra-- > 0) out[(*length)++] = (char)(0x80 | (character >> (6 * extra) & 0x3f));
    return true;
}

bool mrc_array_text(const mrc_array *array, int64_t k, char *out, int64_t size)
{
    const uint8_t *at = array->data + k * array->item;
    int64_t unit = array->element == MRC_ELEMENT_UNICODE ? 4 : 1, count = array->item / unit, length = 0;
    while (count > 0 && load_bits(at + (count - 1) * unit, unit, false) == 0) count--; /* strip the padding */
    for (int64_t i = 0; i < count; i++) {
        uint32_t character = (uint32_t)load_bits(at + i * unit, unit, array->swapped && unit == 4);
        if (character == 0) return false;
        if (unit == 4) {
            if (!append_character(out, size, &length, character)) return false;
        } else {
            if (length + 1 >= size) return false;
            out[length++] = (char)character;
        }
    }
    out[length] = 0;
    return true;
}

/* ---- Sizes --------------------------------------------------------------------------------------------------- */

int64_t mrc_array_row(const mrc_array *array)
{
    int64_t row = 1;
    for (int i = 1; i < array->dims; i++) row *= array->shape[i];
    return row;
}

mercer_status mrc_array_locate(mrc_array *array, const mrc_input *input, int64_t offset)
{
    int64_t count = 1, bytes, left = input->bytes - offset;
    bool fits = true;
    for (int i = 0; i < array->dims; i++) fits = fits && mrc_multiply(count, array->shape[i], &count);
    if (!fits || !mrc_multiply(count, array->item, &bytes))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: the sizes in the header are larger than any file; the file is damaged", input->path);
    /* One of several files may have no rows, but none of the other sizes may be 0. */
    bool no_rows = input->part && array->shape[0] == 0 && mrc_array_row(array) > 0;
    if (count == 0 && !no_rows)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: contains no elements", input->path);
    if (bytes != left)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: the header requires %lld bytes from offset %lld on, but %lld are left; the file is %s",
                        input->path, (long long)bytes, (long long)offset, (long long)left,
                        left < bytes ? "truncated" : "damaged or contains more than one array");
    array->data = input->data + offset;
    return MERCER_OK;
}

/* Describes a row for messages, such as "28 x 28 u8". Returns out. */
static const char *row_text(const mrc_array *array, char out[ROW_CHARS])
{
    static const char *const names[] = {"f64", "f32", "f16", "u8",  "i8",   "u16",  "i16",
                                        "u32", "i32", "u64", "i64", "bool", "text", "text"};
    int length = 0;
    for (int i = 1; i < array->dims; i++)
        length += snprintf(out + length, ROW_CHARS - (size_t)length, "%s%lld", i > 1 ? " x " : "",
                           (long long)array->shape[i]);
    snprintf(out + length, ROW_CHARS - (size_t)length, "%s%s", array->dims > 1 ? " " : "one ", names[array->element]);
    return out;
}

mercer_status mrc_array_check_like(const mrc_array *array, const mrc_input *input, const mrc_array *like,
                                   const mrc_input *like_input)
{
    char found[ROW_CHARS], wanted[ROW_CHARS];
    bool same = array->dims == like->dims;
    for (int i = 1; i < array->dims && same; i++) same = array->shape[i] == like->shape[i];
    if (same && array->element == like->element) return MERCER_OK;
    return mrc_fail(input->context, same ? MERCER_ERROR_DTYPE : MERCER_ERROR_SHAPE,
                    "%s: has rows of %s, but %s has rows of %s; files of one dataset must have the same columns and "
                    "type",
                    input->path, row_text(array, found), like_input->path, row_text(like, wanted));
}

/* ---- Conversion ---------------------------------------------------------------------------------------------- */

/* Returns the offset, in elements, of element (0, j) of a Fortran array; j counts in C order. */
static int64_t fortran_column(const mrc_array *array, int64_t j)
{
    int64_t place = 0, stride = array->shape[0], block = mrc_array_row(array);
    for (int i = 1; i < array->dims; i++) {
        block /= array->shape[i];
        place += j / block % array->shape[i] * stride;
        stride *= array->shape[i];
    }
    return place;
}

/* Chooses f32 for wide integers if that is exact for all of them, else f64. Fails if f64 is not exact either. Integers
   up to 2^24 are exact in f32. From 2^53 on, f64 cannot distinguish neighbors. */
static mercer_status check_exact(const mrc_array *array, const mrc_input *input, int64_t first, int64_t rows,
                                 mercer_dtype *dtype)
{
    int64_t cols = mrc_array_row(array), n = array->shape[0];
    double largest = 0;
    /* The rows of a slice are not contiguous in a Fortran array, so the whole array is scanned. */
    for (int64_t k = array->fortran ? 0 : first * cols; k < (array->fortran ? n : first + rows) * cols; k++) {
        int64_t row = array->fortran ? k % n : k / cols;
        if (row < first || row >= first + rows) continue;
        double size = fabs(mrc_array_number(array, k));
        if (size >= 0x1p53)
            return mrc_fail(input->context, MERCER_ERROR_DATA,
                            "%s: row %lld (from 0) has the integer %.0f, which is too large to be exact as f64; "
                            "save the array as float64",
                            input->path, (long long)row, size);
        largest = size > largest ? size : largest;
    }
    *dtype = largest <= 0x1p24 ? MERCER_F32 : MERCER_F64;
    return MERCER_OK;
}

mercer_status mrc_array_dtype(const mrc_array *array, const mrc_input *input, int64_t first, int64_t rows, bool real,
                              mercer_dtype *dtype)
{
    switch (array->element) {
        case MRC_ELEMENT_F64: *dtype = MERCER_F64; return MERCER_OK;
        case MRC_ELEMENT_F32: *dtype = MERCER_F32; return MERCER_OK;
        case MRC_ELEMENT_F16: *dtype = real ? MERCER_F32 : MERCER_F16; return MERCER_OK;
        case MRC_ELEMENT_U8:
        case MRC_ELEMENT_BOOL: *dtype = real ? MERCER_F32 : MERCER_U8; return MERCER_OK;
        case MRC_ELEMENT_I8:
        case MRC_ELEMENT_U16:
        case MRC_ELEMENT_I16: *dtype = MERCER_F32; return MERCER_OK;
        case MRC_ELEMENT_U32:
        case MRC_ELEMENT_I32:
        case MRC_ELEMENT_U64:
        case MRC_ELEMENT_I64: return check_exact(array, input, first, rows, dtype);
        case MRC_ELEMENT_BYTES:
        case MRC_ELEMENT_UNICODE: break;
    }
    return mrc_fail(input->context, MERCER_ERROR_DTYPE, "%s: contains text; samples must be numbers", input->path);
}

/* Returns whether the stored bytes can be used in place as a matrix of that dtype: same type, byte order and storage
   order, and aligned. */
static bool serves_as_it_is(const mrc_array *array, mercer_dtype dtype)
{
    bool same = (array->element == MRC_ELEMENT_F64 && dtype == MERCER_F64) ||
                (array->element == MRC_ELEMENT_F32 && dtype == MERCER_F32) ||
                (array->element == MRC_ELEMENT_F16 && dtype == MERCER_F16) ||
                (array->element == MRC_ELEMENT_U8 && dtype == MERCER_U8);
    bool ordered = !array->fortran || array->dims == 1;
    return same && ordered && (!array->swapped || array->item == 1) &&
           (uintptr_t)array->data % (size_t)array->item == 0;
}

/* Stores a value that the dtype can represent. Unlike mrc_store, also writes u8 and f16. */
static void store_element(const mercer_matrix *matrix, int64_t i, int64_t j, double value)
{
    if (matrix->dtype == MERCER_U8)
        ((uint8_t *)mrc_row(matrix, i))[j] = (uint8_t)value;
    else if (matrix->dtype == MERCER_F16)
        ((uint16_t *)mrc_row(matrix, i))[j] = mrc_half_from_float((float)value);
    else
        mrc_store(matrix, i, j, value);
}

/* Converts rows from `first` on, in storage order, so that the file is read sequentially. */
static void convert_elements(const mercer_matrix *out, const mrc_array *array, int64_t first)
{
    if (array->fortran) {
        for (int64_t j = 0; j < out->cols; j++) {
            int64_t column = fortran_column(array, j) + first;
            for (int64_t i = 0; i < out->rows; i++) store_element(out, i, j, mrc_array_number(array, column + i));
        }
    } else {
        for (int64_t i = 0; i < out->rows; i++)
            for (int64_t j = 0; j < out->cols; j++)
                store_element(out, i, j, mrc_array_number(array, (first + i) * out->cols + j));
    }
}

mercer_status mrc_array_matrix(mercer_matrix *out, void **memory, const mrc_array *array, const mrc_input *input,
                               int64_t first, int64_t rows, mercer_dtype dtype)
{
    int64_t cols = mrc_array_row(array), size = mrc_dtype_size(dtype);
    *memory = NULL;
    if (serves_as_it_is(array, dtype)) {
        /* The mapping is private: writing to the view does not change the file. */
        *out = mrc_view((uint8_t *)(uintptr_t)array->data + first * cols * size, rows, cols, dtype);
        return MERCER_OK;
    }
    /* rows * cols fits, because mrc_array_locate has checked the size of the whole array. */
    int64_t bytes;
    if (!mrc_multiply(rows * cols, size, &bytes)) bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, bytes));
    MRC_TRY(mrc_alloc(input->context, memory, rows * cols, size, "converted samples"));
    *out = mrc_view(*memory, rows, cols, dtype);
    convert_elements(out, array, first);
    return MERCER_OK;
}
