/* SPDX-License-Identifier: BSD-3-Clause */
/* Input files: opened, unpacked, recognised by what they hold and then by their names. */
#define _XOPEN_SOURCE 700 /* stat, strncasecmp */

#include "data/files/input.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

mercer_status mrc_budget_take(mercer_context *context, mrc_budget *budget, const char *path, int64_t bytes)
{
    int64_t needed;
    if (mrc_add(budget->used, bytes, &needed) && needed <= budget->allowed) {
        budget->used = needed;
        return MERCER_OK;
    }
    return mrc_fail(context, MERCER_ERROR_MEMORY,
                    "%s: needs %lld more bytes of memory, %lld are allowed in all and %lld taken: raise the limit, or "
                    "convert the file to npy, which is mapped instead of read",
                    path, (long long)bytes, (long long)budget->allowed, (long long)budget->used);
}

/* ---- Opening ------------------------------------------------------------------------------------------------- */

static mercer_status fail_empty(const mrc_input *input)
{
    return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: the file is empty", input->path);
}

static bool is_gzip(const mrc_input *input)
{
    return input->bytes >= 2 && input->data[0] == 0x1f && input->data[1] == 0x8b;
}

mercer_status mrc_input_open(mrc_input *out, mercer_context *context, const char *path, mrc_budget *budget, bool part)
{
    struct stat about;
    *out = (mrc_input){.context = context, .budget = budget, .path = path, .part = part};
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return mrc_fail(context, MERCER_ERROR_IO, "%s: is a folder, not a file", path);
    MRC_TRY(mrc_map_file(context, &out->map, path));
    out->data = out->map.data;
    out->bytes = out->map.bytes;
    mercer_status status = MERCER_OK;
    if (out->bytes == 0 && !part) status = fail_empty(out);
    if (status == MERCER_OK && is_gzip(out)) status = mrc_gzip_unpack(out);
    if (status != MERCER_OK) mrc_input_close(out);
    return status;
}

void mrc_input_close(mrc_input *input)
{
    mrc_unmap(&input->map);
    mrc_free(input->context, input->memory);
    *input = (mrc_input){.context = input->context};
}

const char *mrc_excerpt(char out[MRC_EXCERPT_CHARS], const char *text, int64_t length)
{
    int64_t most = MRC_EXCERPT_CHARS - 4, kept = mrc_min(length, most);
    for (int64_t i = 0; i < kept; i++) out[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
    snprintf(out + kept, 4, "%s", length > most ? "..." : "");
    return out;
}

/* ---- Formats ------------------------------------------------------------------------------------------------- */

typedef struct name_row {
    const char *name;
    mrc_format format;
} name_row;

static const name_row format_names[] = {
    {"npy", MRC_FORMAT_NPY},   {"idx", MRC_FORMAT_IDX},       {"csv", MRC_FORMAT_CSV}, {"tsv", MRC_FORMAT_TSV},
    {"text", MRC_FORMAT_TEXT}, {"libsvm", MRC_FORMAT_LIBSVM}, {"raw", MRC_FORMAT_RAW}};

static const name_row endings[] = {
    {".npy", MRC_FORMAT_NPY},         {".csv", MRC_FORMAT_CSV},       {".tsv", MRC_FORMAT_TSV},
    {".tab", MRC_FORMAT_TSV},         {".libsvm", MRC_FORMAT_LIBSVM}, {".svm", MRC_FORMAT_LIBSVM},
    {".svmlight", MRC_FORMAT_LIBSVM}, {".raw", MRC_FORMAT_RAW},       {".bin", MRC_FORMAT_RAW},
    {"-ubyte", MRC_FORMAT_IDX},       {".idx", MRC_FORMAT_IDX},       {".labels", MRC_FORMAT_TEXT}};

const char *mrc_format_name(mrc_format format)
{
    for (size_t i = 0; i < sizeof format_names / sizeof *format_names; i++)
        if (format_names[i].format == format) return format_names[i].name;
    return "unknown";
}

static mercer_status format_of_name(mrc_format *out, const mrc_input *input, const char *name, bool targets)
{
    for (size_t i = 0; i < sizeof format_names / sizeof *format_names; i++)
        if (strcmp(format_names[i].name, name) == 0) *out = format_names[i].format;
    if (*out == MRC_FORMAT_UNKNOWN || (*out == MRC_FORMAT_TEXT && !targets) ||
        (targets && (*out == MRC_FORMAT_LIBSVM || *out == MRC_FORMAT_RAW)))
        return mrc_fail(input->context, MERCER_ERROR_ARGUMENT,
                        "%s: '%s' is not a format of %s; use auto, npy, idx, csv, "
                        "tsv%s",
                        input->path, name, targets ? "targets" : "samples", targets ? " or text" : ", libsvm or raw");
    return MERCER_OK;
}

static bool ends_in(const char *path, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length >= size && strncasecmp(path + length - size, ending, size) == 0;
}

static mrc_format format_of_ending(const char *path)
{
    size_t length = strlen(path);
    if (ends_in(path, length, ".gz")) length -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(path, length, endings[i].name)) return endings[i].format;
    return MRC_FORMAT_UNKNOWN;
}

static bool begins_with(const mrc_input *input, const char *magic, int64_t size)
{
    return input->bytes >= size && memcmp(input->data, magic, (size_t)size) == 0;
}

static bool is_idx(const mrc_input *input)
{
    const uint8_t *data = input->data;
    return input->bytes >= 8 && data[0] == 0 && data[1] == 0 && data[2] >= 8 && data[2] <= 14 && data[3] >= 1 &&
           data[3] <= 8;
}

/* The files people try that are none of ours: say what to do with them. */
static const char *foreign_name(const mrc_input *input)
{
    if (begins_with(input, "PK\3\4", 4)) return "a zip archive (npz?)";
    if (begins_with(input, "\x89HDF", 4)) return "an HDF5 file";
    if (begins_with(input, "PAR1", 4)) return "a Parquet file";
    if (begins_with(input, "BZh", 3)) return "packed with bzip2";
    if (begins_with(input,
                    "\xfd"
                    "7zXZ",
                    5))
        return "packed with xz";
    if (begins_with(input, "\x28\xb5\x2f\xfd", 4)) return "packed with zstd";
    return NULL;
}

/* Text: its second word has a colon after digits, or there is none and the line has no separator of columns. */
static mrc_format format_of_text(const mrc_input *input)
{
    int64_t i = 0, end = mrc_min(input->bytes, 4096);
    const char *text = (const char *)input->data;
    for (int64_t j = 0; j < end; j++)
        if (text[j] == 0) return MRC_FORMAT_UNKNOWN;
    while (i < end && text[i] != ' ' && text[i] != '\t' && text[i] != '\n') i++;
    while (i < end && (text[i] == ' ' || text[i] == '\t')) i++;
    int64_t digits = i;
    while (i < end && text[i] >= '0' && text[i] <= '9') i++;
    return i > digits && i < end && text[i] == ':' ? MRC_FORMAT_LIBSVM : MRC_FORMAT_CSV;
}

mercer_status mrc_find_format(mrc_format *out, const mrc_input *input, const char *name, bool targets)
{
    *out = MRC_FORMAT_UNKNOWN;
    if (name && strcmp(name, "auto") != 0) return format_of_name(out, input, name, targets);
    const char *foreign = foreign_name(input);
    if (foreign)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: is %s; Mercer reads npy, idx, csv, tsv, libsvm and raw, and gzip'ed ones", input->path,
                        foreign);
    if (begins_with(input, "\x93NUMPY", 6)) *out = MRC_FORMAT_NPY;
    if (*out == MRC_FORMAT_UNKNOWN && is_idx(input)) *out = MRC_FORMAT_IDX;
    if (*out == MRC_FORMAT_UNKNOWN) *out = format_of_ending(input->path);
    if (*out == MRC_FORMAT_UNKNOWN) {
        *out = format_of_text(input);
        if (targets && *out != MRC_FORMAT_UNKNOWN) *out = MRC_FORMAT_TEXT;
    }
    if (*out == MRC_FORMAT_TEXT && !targets) *out = MRC_FORMAT_CSV;
    if (*out == MRC_FORMAT_UNKNOWN || (targets && (*out == MRC_FORMAT_LIBSVM || *out == MRC_FORMAT_RAW)))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: the format is not recognised; give it: npy, idx, csv, tsv%s", input->path,
                        targets ? " or text" : ", libsvm or raw");
    return MERCER_OK;
}

mercer_status mrc_find_common_format(mrc_format *out, const mrc_input *inputs, int64_t count, const char *name,
                                     bool targets)
{
    const mrc_input *lead = NULL;
    for (int64_t i = 0; i < count; i++) {
        mrc_format format;
        if (inputs[i].bytes == 0) continue;
        MRC_TRY(mrc_find_format(&format, &inputs[i], name, targets));
        if (lead && format != *out)
            return mrc_fail(inputs[i].context, MERCER_ERROR_MISMATCH,
                            "%s: is %s, but %s is %s: files of one dataset must have one format", inputs[i].path,
                            mrc_format_name(format), lead->path, mrc_format_name(*out));
        if (!lead) *out = format;
        if (!lead) lead = &inputs[i];
    }
    if (!lead) return fail_empty(&inputs[0]);
    for (int64_t i = 0; i < count && (*out == MRC_FORMAT_NPY || *out == MRC_FORMAT_IDX); i++)
        if (inputs[i].bytes == 0) return fail_empty(&inputs[i]);
    return MERCER_OK;
}
