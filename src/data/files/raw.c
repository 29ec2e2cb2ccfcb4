/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary files without a header; the caller gives type, shape and offset: "f32:1000x784@128".
 *
 *   TYPE:[ROWSx]COLUMNS[@OFFSET]    TYPE is f64, f32, f16 or u8; OFFSET bytes are skipped, 0 by default
 *
 * Numbers are in the byte order of the machine, row by row. The file must end with the last row. Without ROWS the file
 * may have any whole number of rows.
 */
#include "data/files/readers.h"

#include "core/memory.h"

#include <string.h>

static mercer_status fail_spec(const mrc_input *input, const char *spec)
{
    return mrc_fail(
        input->context, MERCER_ERROR_ARGUMENT,
        "%s: raw: '%s' is not a shape; use, for example, f32:1000x784, u8:784 (all rows) or f64:10x3@128 (skip 128 "
        "bytes), with type f64, f32, f16 or u8",
        input->path, spec ? spec : "");
}

/* Reads an unsigned integer. Returns false if there is none or it is too large. */
static bool take_number(const char **at, int64_t *number)
{
    const char *begin = *at;
    for (*number = 0; **at >= '0' && **at <= '9'; ++*at)
        if (!mrc_multiply(*number, 10, number) || !mrc_add(*number, **at - '0', number)) return false;
    return *at > begin;
}

static bool take_type(const char **at, mrc_element *element)
{
    static const struct {
        const char *name;
        mrc_element element;
    } types[] = {
        {"f64:", MRC_ELEMENT_F64}, {"f32:", MRC_ELEMENT_F32}, {"f16:", MRC_ELEMENT_F16}, {"u8:", MRC_ELEMENT_U8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(*at, types[i].name, length) != 0) continue;
        *at += length;
        *element = types[i].element;
        return true;
    }
    return false;
}

static mercer_status parse_raw(mrc_array *out, const mrc_input *input, const char *spec)
{
    const char *at = spec;
    int64_t sizes[2] = {0, 0}, offset = 0;
    *out = (mrc_array){.dims = 2};
    if (!spec || !take_type(&at, &out->element) || !take_number(&at, &sizes[0])) return fail_spec(input, spec);
    bool both = *at == 'x';
    if (both && (at++, !take_number(&at, &sizes[1]))) return fail_spec(input, spec);
    if (*at == '@' && (at++, !take_number(&at, &offset))) return fail_spec(input, spec);
    int64_t cols = both ? sizes[1] : sizes[0], row;
    out->item = mrc_element_size(out->element);
    if (*at || cols == 0 || (both && sizes[0] == 0) || !mrc_multiply(cols, out->item, &row))
        return fail_spec(input, spec);
    if (offset > input->bytes)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: has %lld bytes, too few to skip %lld", input->path,
                        (long long)input->bytes, (long long)offset);
    if (!both && (input->bytes - offset) % row != 0)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: %lld bytes from offset %lld are not a whole number of rows of %lld bytes", input->path,
                        (long long)(input->bytes - offset), (long long)offset, (long long)row);
    out->shape[0] = both ? sizes[0] : (input->bytes - offset) / row;
    out->shape[1] = cols;
    return mrc_array_locate(out, input, offset);
}

const mrc_format mrc_format_raw = {.name = "raw", .endings = {".raw", ".bin"}, .no_targets = true, .parse = parse_raw};
