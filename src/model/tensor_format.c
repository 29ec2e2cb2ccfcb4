/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor files: names, types and checksums in the form used by headers. Also the checks of texts before they reach the
   JSON library: UTF-8 for writing, nesting and size for parsing. */
#include "model/tensor_format.h"

#include "core/spec.h"
#include "model/tensor_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files hold little-endian numbers and are mapped as they are");

static const struct {
    mercer_dtype dtype;
    const char *name;
} types[] = {{MERCER_F64, "F64"}, {MERCER_F32, "F32"}, {MERCER_F16, "F16"}, {MERCER_U8, "U8"}};

enum { TYPES = sizeof types / sizeof types[0] };

const char *mrc_tensor_dtype_name(mercer_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype) return types[i].name;
    return "?";
}

mercer_dtype mrc_tensor_dtype(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0) return types[i].dtype;
    return (mercer_dtype)0;
}

/* Returns whether a name is valid. Names appear in messages, so they contain nothing that could break a line or a
   terminal. */
bool mrc_tensor_name_valid(const char *name)
{
    static const char valid[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);
    return length > 0 && length < MRC_TENSOR_NAME_CHARS && strspn(name, valid) == length;
}

void mrc_tensor_digits(uint64_t checksum, char digits[MRC_TENSOR_DIGITS + 1])
{
    snprintf(digits, MRC_TENSOR_DIGITS + 1, "%016" PRIx64, checksum);
}

bool mrc_tensor_header_checksum(const char *header, int64_t length, uint64_t *out)
{
    const size_t start = sizeof MRC_TENSOR_HEADER_START - 1, rest = start + MRC_TENSOR_DIGITS;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return false;
    (void)XXH3_64bits_reset(state); /* these fail only for NULL */
    (void)XXH3_64bits_update(state, header, start);
    (void)XXH3_64bits_update(state, "0000000000000000", MRC_TENSOR_DIGITS);
    (void)XXH3_64bits_update(state, header + rest, (size_t)length - rest);
    *out = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return true;
}

mercer_status mrc_check_text(mercer_context *context, const char *name, const char *text)
{
    const unsigned char *next = (const unsigned char *)text;
    for (int length; *next; next += length) {
        length = mrc_utf8_length(next);
        if (length == 0)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: byte %lld (from 0) is not UTF-8 text; convert it",
                            name, (long long)(next - (const unsigned char *)text));
    }
    return MERCER_OK;
}

/* Scans without parsing. The text may be invalid JSON; the parser reports that. A backslash skips the next character,
   so an escaped quotation mark does not end a string. */
bool mrc_json_is_bounded(const char *text, int64_t length, int depth, int64_t commas)
{
    bool in_string = false;
    int open = 0;
    for (int64_t i = 0; i < length; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++open > depth) return false;
        } else if (c == '}' || c == ']') {
            open--;
        } else if (c == ',' && --commas < 0) {
            return false;
        }
    }
    return true;
}
