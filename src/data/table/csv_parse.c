/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Splitting of delimited text into fields.
 *
 *   record   fields with the separator between them, then LF, CRLF or the end of the text
 *   field    characters other than separator and line end; or, after spaces, '"' characters '"' and spaces
 *
 * A quote inside of quotes is doubled. A quote elsewhere in a field is an ordinary character. Without a separator
 * (mrc_csv.separator 0) a field is a line, and quotes have no meaning. The first pass over a text with quotes uses
 * these functions and reports all errors, so they cannot fail in later passes.
 */
#include "data/table/csv_parse.h"

#include <string.h>

/* Skips the separator or the line end after a field. Returns false if the field is followed by anything else. Sets
   out->last, and counts the line end. */
static bool finish_field(mrc_csv *csv, mrc_csv_field *out)
{
    const char *at = csv->at;
    out->last = true;
    if (at == csv->end) return true;
    if (csv->separator && *at == csv->separator) {
        out->last = false;
        csv->at = at + 1;
        return true;
    }
    if (*at == '\r' && (at + 1 == csv->end || at[1] == '\n')) at++;
    if (at < csv->end && *at != '\n') return false;
    csv->at = at < csv->end ? at + 1 : at;
    csv->line++;
    return true;
}

/* Reads a quoted field, which may contain line ends. Returns NULL, or a description of the error. */
static const char *take_quoted(mrc_csv *csv, mrc_csv_field *out)
{
    const char *at = csv->at + 1;
    out->text = at;
    out->quoted = true;
    for (;; at++) {
        if (at >= csv->end) return "a quoted field is not closed";
        if (*at == '\n') csv->line++;
        if (*at != '"') continue;
        if (at + 1 == csv->end || at[1] != '"') break;
        out->escaped = true;
        at++;
    }
    out->length = at - out->text;
    for (csv->at = at + 1; csv->at < csv->end && *csv->at == ' '; csv->at++) {}
    return finish_field(csv, out) ? NULL : "there is text after a closing quote; double the quotes inside a field";
}

const char *mrc_csv_next(mrc_csv *csv, mrc_csv_field *out)
{
    const char *at = csv->at;
    *out = (mrc_csv_field){.text = at, .line = csv->line};
    if (csv->separator) {
        while (at < csv->end && *at == ' ') at++;
        if (at < csv->end && *at == '"') {
            csv->at = at;
            return take_quoted(csv, out);
        }
        while (at < csv->end && *at != csv->separator && *at != '\n') at++;
    } else {
        const char *stop = at < csv->end ? memchr(at, '\n', (size_t)(csv->end - at)) : NULL;
        at = stop ? stop : csv->end;
    }
    /* A carriage return before a line feed or the end of the text is part of the line end. */
    bool returned = at > out->text && at[-1] == '\r' && (at == csv->end || *at == '\n');
    out->length = at - out->text - returned;
    csv->at = at;
    finish_field(csv, out);
    return NULL;
}

bool mrc_csv_skip_blank(mrc_csv *csv)
{
    const char *at = csv->at;
    while (at < csv->end && (*at == ' ' || *at == '\r')) at++;
    if (at < csv->end && *at != '\n') return false;
    csv->at = at < csv->end ? at + 1 : at;
    csv->line++;
    return true;
}

int64_t mrc_csv_copy(const mrc_csv_field *field, char *out, int64_t size)
{
    int64_t length = 0;
    for (int64_t i = 0; i < field->length && length < size - 1; i++) {
        out[length++] = field->text[i];
        if (field->escaped && field->text[i] == '"') i++;
    }
    out[length] = 0;
    return length;
}

mrc_number mrc_csv_number(const mrc_csv *csv, const mrc_csv_field *field, double *value)
{
    enum { MOST = 64 };
    /* Fields with a decimal comma and more than MOST characters are not copied, and are therefore not read as
       numbers. */
    const char *comma = csv->separator == ';' ? memchr(field->text, ',', (size_t)field->length) : NULL;
    if (!comma || field->length > MOST) return mrc_read_number(field->text, field->text + field->length, value);
    char text[MOST];
    memcpy(text, field->text, (size_t)field->length);
    text[comma - field->text] = '.';
    return mrc_read_number(text, text + field->length, value);
}

char mrc_csv_find_separator(const char *at, const char *end)
{
    enum { CANDIDATES = 4 };
    static const char candidates[CANDIDATES] = {',', ';', '\t', '|'};
    int64_t count[CANDIDATES] = {0};
    bool quoted = false;
    for (; at < end && (quoted || *at != '\n'); at++) {
        if (*at == '"') quoted = !quoted;
        for (int i = 0; i < CANDIDATES && !quoted; i++) count[i] += *at == candidates[i];
    }
    int best = 0;
    for (int i = 1; i < CANDIDATES; i++)
        if (count[i] > count[best]) best = i;
    return candidates[best];
}
