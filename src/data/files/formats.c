/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of formats, and detection of a file's format: by magic bytes, else by file name, else by the beginning of
 * its text. To add a format, add its name to the list and define its mrc_format at the end of its reader.
 */
#define _XOPEN_SOURCE 700 /* strncasecmp */

#include "data/files/readers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* in the order in which messages list the formats; by_text tries them in reverse order */
#define FORMATS(X)    X(npy) X(idx) X(csv) X(tsv) X(parquet) X(libsvm) X(cifar10) X(cifar100) X(raw) X(text)
#define DECLARE(name) extern const mrc_format mrc_format_##name;
#define POINT(name)   &mrc_format_##name,
FORMATS(DECLARE)
const mrc_format *const mrc_formats[] = {FORMATS(POINT) NULL};

enum { COUNT = sizeof mrc_formats / sizeof *mrc_formats - 1, NAMES_CHARS = 256 };

const mrc_format *mrc_format_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(mrc_formats[i]->name, name) == 0) return mrc_formats[i];
    return NULL;
}

bool mrc_format_holds(const mrc_format *format, bool targets)
{
    if (format->parse) return !(targets && format->no_targets);
    return targets ? format->read_targets != NULL : format->read_samples != NULL;
}

/* Writes the names of the formats for samples or targets, such as "npy, idx, csv or raw" with last = " or ". Returns
   text. */
static const char *list_names(char text[NAMES_CHARS], bool targets, const char *last)
{
    int count = 0, done = 0;
    size_t used = 0;
    for (int i = 0; i < COUNT; i++) count += mrc_format_holds(mrc_formats[i], targets);
    for (int i = 0; i < COUNT && used < NAMES_CHARS; i++) {
        if (!mrc_format_holds(mrc_formats[i], targets)) continue;
        const char *between = done == 0 ? "" : done == count - 1 ? last : ", ";
        used += (size_t)snprintf(text + used, NAMES_CHARS - used, "%s%s", between, mrc_formats[i]->name);
        done++;
    }
    return text;
}

static bool ends_in(const char *path, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length >= size && strncasecmp(path + length - size, ending, size) == 0;
}

static bool has_ending(const mrc_format *format, const char *path, size_t length)
{
    for (int i = 0; i < MRC_FORMAT_ENDINGS && format->endings[i]; i++)
        if (ends_in(path, length, format->endings[i])) return true;
    return false;
}

/* Finds the format by the ending of a file name. The ending of a compression is ignored: train.csv.gz has the ending
   .csv. */
static const mrc_format *by_ending(const char *path)
{
    size_t length = strlen(path);
    size_t packed = ends_in(path, length, ".gz") || ends_in(path, length, ".xz") ? 3
                    : ends_in(path, length, ".zst")                              ? 4
                                                                                 : 0;
    length -= packed;
    for (const mrc_format *const *row = mrc_formats; *row; row++)
        if (has_ending(*row, path, length)) return *row;
    return NULL;
}

static const mrc_format *by_mark(const mrc_input *input)
{
    for (int i = 0; i < COUNT; i++)
        if (mrc_formats[i]->is_marked && mrc_formats[i]->is_marked(input)) return mrc_formats[i];
    return NULL;
}

/* Finds the format of text. The list is searched from the end, because earlier formats accept more. Only the beginning
   of the file is examined. A file with a zero byte in its beginning is not text. */
static const mrc_format *by_text(const mrc_input *input, bool targets)
{
    size_t seen = input->bytes < 4096 ? (size_t)input->bytes : 4096;
    if (memchr(input->data, 0, seen)) return NULL;
    for (int i = COUNT - 1; i >= 0; i--)
        if (mrc_formats[i]->looks_like && mrc_formats[i]->looks_like(input, targets)) return mrc_formats[i];
    return NULL;
}

/* Returns the name of a common file type that Mercer does not read, for an error message. NULL: not recognized. */
static const char *foreign_name(const mrc_input *input)
{
    static const struct {
        const char *mark;
        int bytes;
        const char *name;
    } marks[] = {
        {"PK\3\4", 4, "a zip archive (npz?)"}, {"\x89HDF", 4, "an HDF5 file"}, {"BZh", 3, "compressed with bzip2"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (mrc_input_begins(input, marks[i].mark, marks[i].bytes)) return marks[i].name;
    return NULL;
}

/* Finds the format of one file: the format that the caller named, or the detected format. Detection fails for foreign
   file types such as zip archives. */
static mercer_status find_format(const mrc_format **out, const mrc_input *input, const char *name, bool targets)
{
    char names[NAMES_CHARS];
    if (name && strcmp(name, "auto") != 0) {
        *out = mrc_format_find(name);
        if (*out && mrc_format_holds(*out, targets)) return MERCER_OK;
        return mrc_fail(input->context, MERCER_ERROR_ARGUMENT, "%s: '%s' is not a format of %s; use auto, %s",
                        input->path, name, targets ? "targets" : "samples", list_names(names, targets, " or "));
    }
    const char *foreign = foreign_name(input);
    if (foreign)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: is %s; convert it to one of %s, optionally compressed (.gz, .zst, .xz)", input->path,
                        foreign, list_names(names, false, " and "));
    *out = by_mark(input);
    if (!*out) *out = by_ending(input->path);
    /* The ending belongs to a format that can only hold targets, so it says nothing about a file of samples. */
    if (*out && !targets && !mrc_format_holds(*out, false)) *out = NULL;
    if (!*out) *out = by_text(input, targets);
    if (*out && mrc_format_holds(*out, targets)) return MERCER_OK;
    return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: the format is not recognized; set it to one of: %s",
                    input->path, list_names(names, targets, " or "));
}

static mercer_status fail_empty(const mrc_input *input)
{
    return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: the file is empty", input->path);
}

mercer_status mrc_format_of_files(const mrc_format **out, const mrc_input *inputs, int64_t count, const char *name,
                                  bool targets)
{
    const mrc_input *lead = NULL;
    for (int64_t i = 0; i < count; i++) {
        const mrc_format *format;
        /* An empty file matches any format. The last loop refuses empty files if the format has a header. */
        if (inputs[i].bytes == 0) continue;
        MRC_TRY(find_format(&format, &inputs[i], name, targets));
        if (lead && format != *out)
            return mrc_fail(inputs[i].context, MERCER_ERROR_MISMATCH,
                            "%s: is %s, but %s is %s; files of one dataset must have the same format", inputs[i].path,
                            format->name, lead->path, (*out)->name);
        if (!lead) *out = format;
        if (!lead) lead = &inputs[i];
    }
    if (!lead) return fail_empty(&inputs[0]);
    for (int64_t i = 0; i < count && (*out)->has_header; i++)
        if (inputs[i].bytes == 0) return fail_empty(&inputs[i]);
    return MERCER_OK;
}
