/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IDX files, the format of MNIST: two zero bytes, element type, number of dimensions, the sizes as 32-bit numbers, then
 * the elements. All numbers are big-endian. Types: 08 u8, 09 i8, 0b i16, 0c i32, 0d f32, 0e f64. The file must end with
 * the last element. Integers in a file of targets are class labels (mrc_format.labels).
 */
#include "data/files/readers.h"

static bool element_of(uint8_t code, mrc_element *element)
{
    switch (code) {
        case 0x08: *element = MRC_ELEMENT_U8; return true;
        case 0x09: *element = MRC_ELEMENT_I8; return true;
        case 0x0b: *element = MRC_ELEMENT_I16; return true;
        case 0x0c: *element = MRC_ELEMENT_I32; return true;
        case 0x0d: *element = MRC_ELEMENT_F32; return true;
        case 0x0e: *element = MRC_ELEMENT_F64; return true;
        default: return false;
    }
}

/* Reads the header; `shape` is not used. */
static mercer_status parse_idx(mrc_array *out, const mrc_input *input, const char *shape)
{
    (void)shape;
    const uint8_t *data = input->data;
    const uint16_t one = 1;
    *out = (mrc_array){.swapped = *(const uint8_t *)&one == 1};
    if (input->bytes < 4 || data[0] || data[1] || !element_of(data[2], &out->element))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: is not an IDX file (wrong first bytes)", input->path);
    out->item = mrc_element_size(out->element);
    out->dims = data[3];
    if (out->dims < 1 || out->dims > MRC_ARRAY_DIMS)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: IDX with %d dimensions is not supported; use 1 to "
                        "%d",
                        input->path, out->dims, MRC_ARRAY_DIMS);
    int64_t offset = 4 + 4 * (int64_t)out->dims;
    if (input->bytes < offset)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: the IDX header of %lld bytes is truncated",
                        input->path, (long long)offset);
    for (int i = 0; i < out->dims; i++) {
        const uint8_t *at = data + 4 + 4 * i;
        out->shape[i] = (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3];
    }
    return mrc_array_locate(out, input, offset);
}

/* Two zero bytes are weak evidence, so the type and the number of dimensions must be valid as well. */
static bool is_marked(const mrc_input *input)
{
    const uint8_t *data = input->data;
    return input->bytes >= 8 && data[0] == 0 && data[1] == 0 && data[2] >= 8 && data[2] <= 14 && data[3] >= 1 &&
           data[3] <= 8;
}

const mrc_format mrc_format_idx = {.name = "idx",
                                   .endings = {"-ubyte", ".idx"},
                                   .has_header = true,
                                   .labels = true,
                                   .is_marked = is_marked,
                                   .parse = parse_idx};
