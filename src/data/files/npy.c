/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NPY files: "\x93NUMPY", version, length of the header, and a header such as
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 * then the elements. The header is a Python literal. Only the subset that numpy writes is accepted.
 *
 *   bytes 0 .. 5   mark
 *   bytes 6, 7     version: 1.0, 2.0 or 3.0
 *   from byte 8    length of the header, little-endian: two bytes in version 1, four in versions 2 and 3
 *
 * Structured, object and complex types are refused, and so are arrays of 0 or more than 8 dimensions. The file must end
 * with the last element.
 */
#include "data/files/readers.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

typedef struct header {
    const mrc_input *input;
    const char *at, *end;
    bool have_descr, have_order, have_shape;
} header;

/* Fails with the offset of the current position. */
static mercer_status fail_header(const header *self, const char *what)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT, "%s: NPY header at offset %lld: %s", self->input->path,
                    (long long)((const uint8_t *)self->at - self->input->data), what);
}

static void skip_spaces(header *self)
{
    while (self->at < self->end && (*self->at == ' ' || *self->at == '\n' || *self->at == '\t')) self->at++;
}

/* Skips spaces, and then the character `wanted` if it comes next. Returns whether `wanted` was skipped. */
static bool take_char(header *self, char wanted)
{
    skip_spaces(self);
    if (self->at >= self->end || *self->at != wanted) return false;
    self->at++;
    return true;
}

/* Skips spaces, and then a word if it comes next. Returns whether the word was skipped. */
static bool take_word(header *self, const char *word)
{
    skip_spaces(self);
    size_t length = strlen(word);
    if ((size_t)(self->end - self->at) < length || memcmp(self->at, word, length) != 0) return false;
    self->at += length;
    return true;
}

/* Reads a quoted string without escapes into `out`, truncated to fit. Returns false if the next character is not a
   quote, or the closing quote is missing. */
static bool take_string(header *self, char *out, size_t size)
{
    skip_spaces(self);
    if (self->at >= self->end || (*self->at != '\'' && *self->at != '"')) return false;
    const char *begin = self->at + 1, *close = memchr(begin, *self->at, (size_t)(self->end - begin));
    if (!close) return false;
    snprintf(out, size, "%.*s", (int)mrc_min(close - begin, 100), begin);
    self->at = close + 1;
    return true;
}

/* ---- Header entries ------------------------------------------------------------------------------------------ */

/* Parses the number after the letter of a 'descr'. Returns -1 if the text is not a number or the number is too
   large. */
static int64_t descr_number(const char *text)
{
    int64_t number = 0;
    if (!*text) return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > 1 << 20) return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

/* Finds the element type for a letter and a size. U and S are text of any size; sizes of U are in characters. */
static bool element_of(char letter, int64_t size, mrc_element *element)
{
    static const struct {
        char letter;
        mrc_element element;
    } rows[] = {{'f', MRC_ELEMENT_F64}, {'f', MRC_ELEMENT_F32}, {'f', MRC_ELEMENT_F16}, {'u', MRC_ELEMENT_U8},
                {'u', MRC_ELEMENT_U16}, {'u', MRC_ELEMENT_U32}, {'u', MRC_ELEMENT_U64}, {'i', MRC_ELEMENT_I8},
                {'i', MRC_ELEMENT_I16}, {'i', MRC_ELEMENT_I32}, {'i', MRC_ELEMENT_I64}, {'b', MRC_ELEMENT_BOOL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].letter == letter && mrc_element_size(rows[i].element) == size) {
            *element = rows[i].element;
            return true;
        }
    *element = letter == 'U' ? MRC_ELEMENT_UNICODE : MRC_ELEMENT_BYTES;
    return (letter == 'U' || letter == 'S') && size > 0;
}

/* Returns whether a byte order is the opposite of this machine's. The orders '|' (single bytes) and '=' (native) are
   never swapped. */
static bool order_is_swapped(char order)
{
    const uint16_t one = 1;
    bool little = *(const uint8_t *)&one == 1;
    return order == (little ? '>' : '<');
}

/* Reads the element type, such as '<f8'. */
static mercer_status take_descr(header *self, mrc_array *array)
{
    char text[64], excerpt[MRC_EXCERPT_CHARS];
    if (!take_string(self, text, sizeof text))
        return fail_header(self, "'descr' is not a simple type; structured arrays are not supported");
    const char *rest = text + (*text && strchr("<>|=", *text));
    int64_t size = descr_number(*rest ? rest + 1 : rest);
    if (!element_of(*rest, size, &array->element))
        return mrc_fail(self->input->context, MERCER_ERROR_DTYPE,
                        "%s: elements of type '%s' are not supported; save the array as float64, float32, float16, "
                        "uint8 or another integer type",
                        self->input->path, mrc_excerpt(excerpt, text, (int64_t)strlen(text)));
    array->item = array->element == MRC_ELEMENT_UNICODE ? 4 * size : size;
    array->swapped = order_is_swapped(text[0]);
    return MERCER_OK;
}

static mercer_status take_order(header *self, mrc_array *array)
{
    array->fortran = take_word(self, "True");
    if (!array->fortran && !take_word(self, "False"))
        return fail_header(self, "'fortran_order' is neither True nor False");
    return MERCER_OK;
}

static mercer_status take_size(header *self, int64_t *size)
{
    skip_spaces(self);
    const char *begin = self->at;
    for (*size = 0; self->at < self->end && *self->at >= '0' && *self->at <= '9'; self->at++)
        if (!mrc_multiply(*size, 10, size) || !mrc_add(*size, *self->at - '0', size))
            return fail_header(self, "a size in 'shape' is too large");
    if (self->at == begin) return fail_header(self, "'shape' is not a tuple of sizes");
    if (self->at < self->end && *self->at == 'L') self->at++; /* Python 2 writes sizes such as 3L */
    return MERCER_OK;
}

/* Reads the tuple of sizes; the comma after the last size is optional. */
static mercer_status take_shape(header *self, mrc_array *array)
{
    if (!take_char(self, '(')) return fail_header(self, "'shape' is not a tuple of sizes");
    while (!take_char(self, ')')) {
        if (array->dims == MRC_ARRAY_DIMS) return fail_header(self, "'shape' has more than 8 dimensions");
        MRC_TRY(take_size(self, &array->shape[array->dims++]));
        if (take_char(self, ',')) continue;
        if (!take_char(self, ')')) return fail_header(self, "'shape' is not closed by a bracket");
        break;
    }
    if (array->dims == 0) return fail_header(self, "the array has no dimensions; it must have at least one");
    return MERCER_OK;
}

/* Reads one entry of the dictionary. The three entries may be in any order, but none may occur twice. */
static mercer_status take_entry(header *self, mrc_array *array)
{
    char key[32];
    if (!take_string(self, key, sizeof key)) return fail_header(self, "a name in quotes was expected");
    if (!take_char(self, ':')) return fail_header(self, "a colon was expected");
    bool *have = strcmp(key, "descr") == 0           ? &self->have_descr
                 : strcmp(key, "fortran_order") == 0 ? &self->have_order
                 : strcmp(key, "shape") == 0         ? &self->have_shape
                                                     : NULL;
    if (!have || *have) return fail_header(self, have ? "an entry occurs twice" : "there is an unknown entry");
    *have = true;
    if (have == &self->have_descr) return take_descr(self, array);
    return have == &self->have_order ? take_order(self, array) : take_shape(self, array);
}

static mercer_status parse_header(header *self, mrc_array *array)
{
    if (!take_char(self, '{')) return fail_header(self, "does not begin with '{'");
    while (!take_char(self, '}')) {
        MRC_TRY(take_entry(self, array));
        if (take_char(self, ',')) continue;
        if (!take_char(self, '}')) return fail_header(self, "a comma or '}' was expected");
        break;
    }
    skip_spaces(self);
    if (self->at != self->end) return fail_header(self, "there is text after the '}'");
    if (!self->have_descr || !self->have_order || !self->have_shape)
        return fail_header(self, "'descr', 'fortran_order' and 'shape' are required");
    return MERCER_OK;
}

static bool is_marked(const mrc_input *input)
{
    return mrc_input_begins(input, "\x93NUMPY", 6);
}

static mercer_status parse_npy(mrc_array *out, const mrc_input *input, const char *shape)
{
    (void)shape;
    const uint8_t *data = input->data;
    *out = (mrc_array){0};
    if (input->bytes < 10 || !is_marked(input))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: is not an NPY file (wrong first bytes)", input->path);
    int version = data[6];
    if (version < 1 || version > 3 || data[7] != 0)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: NPY version %d.%d is not supported; use 1.0 to 3.0",
                        input->path, version, data[7]);
    int64_t begin = version == 1 ? 10 : 12, length = data[8] | data[9] << 8;
    if (version > 1 && input->bytes >= 12) length |= (int64_t)data[10] << 16 | (int64_t)data[11] << 24;
    if (input->bytes < begin || length > input->bytes - begin)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: the NPY header of %lld bytes is truncated",
                        input->path, (long long)length);
    header self = {.input = input, .at = (const char *)data + begin, .end = (const char *)data + begin + length};
    MRC_TRY(parse_header(&self, out));
    return mrc_array_locate(out, input, begin + length);
}

const mrc_format mrc_format_npy = {
    .name = "npy", .endings = {".npy"}, .has_header = true, .is_marked = is_marked, .parse = parse_npy};
