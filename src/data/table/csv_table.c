/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Structure of delimited text: the first pass, the header, and further files of the same table.
 *
 * The first pass reads all of the text, twice if it has quotes. It refuses zero bytes, UTF-16, quotes that are not
 * closed, text after a closing quote, and empty lines before a record; empty lines at the end are ignored. In text
 * without quotes, each line is a record, so lines are counted and not split. The number of fields of later records is
 * checked by the second pass (cells/csv_records.c).
 */
#include "data/table/csv_table.h"

#include "core/memory.h"
#include "data/table/cells/csv_marks.h"
#include "data/table/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_CHARS = 64 }; /* buffer for a column name that is compared with short names */

static mercer_status fail_line(const mrc_table *self, int64_t line, const char *what)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT, "%s: line %lld: %s", self->input->path, (long long)line,
                    what);
}

/* ---- First pass ---------------------------------------------------------------------------------------------- */

/* Skips a byte order mark and finds the separator. separator 0: detect it; newline: fields are lines. */
static mercer_status begin_table(mrc_table *self, const mrc_input *input, char separator)
{
    if (input->bytes == 0) return MERCER_OK;
    const char *at = (const char *)input->data, *end = at + input->bytes;
    if (input->bytes >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0))
        return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: is UTF-16 text; save it as UTF-8", input->path);
    if (input->bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* byte order mark of UTF-8 */
    separator = separator == 0 ? mrc_csv_find_separator(at, end) : separator == '\n' ? 0 : separator;
    self->start = (mrc_csv){.at = at, .end = end, .line = 1, .separator = separator};
    return MERCER_OK;
}

/* Counts the columns of the first record, which is at the beginning of the text. */
static mercer_status count_columns(mrc_table *self)
{
    mrc_csv csv = self->start;
    mrc_csv_field field;
    do {
        const char *wrong = mrc_csv_next(&csv, &field);
        if (wrong) return fail_line(self, field.line, wrong);
        self->columns++;
    } while (!field.last);
    return MERCER_OK;
}

/* State of the first pass, which reads the text in pieces, each while it is in the cache. */
typedef struct walk {
    const char *at;       /* position of the next line */
    const char *released; /* end of the pages already released */
    int64_t line;         /* line number of `at` */
    int64_t blank;        /* number of the first empty line before a record; 0: none */
    int64_t empty;        /* number of the first empty line; 0: none */
    bool quoted;          /* true: there are quotes, so records may span lines */
} walk;

/* Counts records that begin before `stop`. Without quotes each line is a record. An empty line is an error only if a
   record follows, so the number of the first empty line is saved. */
static void count_lines(mrc_table *self, walk *state, const char *stop)
{
    const char *at = state->at, *end = self->start.end;
    for (; at < stop && !state->blank; state->line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        mrc_csv csv = {.at = at, .end = end};
        /* A line that begins with a printable ASCII character is not empty, which decides nearly all lines. */
        if (*at > ' ' || !mrc_csv_skip_blank(&csv)) {
            state->blank = state->empty;
            self->records++;
        } else if (!state->empty) {
            state->empty = state->line;
        }
        at = next ? next + 1 : end;
    }
    state->at = at;
}

/* Fast path of count_lines for pieces without empty lines, many bytes at a time. The line that contains the last byte
   of the piece is counted, and the next piece begins after that line. */
static void count_plain_lines(mrc_table *self, walk *state, const char *stop)
{
    const char *at = state->at, *end = self->start.end;
    int64_t more;
    if (at >= stop) return;
    bool low = (unsigned char)*at <= ' ' || (stop - at > 1 && stop[-2] == '\n' && (unsigned char)stop[-1] <= ' ');
    if (state->empty || low || !mrc_uk_lines_u8_scalar(at, stop - 1, &more)) {
        count_lines(self, state, stop);
        return;
    }
    const char *next = memchr(stop - 1, '\n', (size_t)(end - stop + 1));
    self->records += 1 + more;
    state->line += 1 + more;
    state->at = next ? next + 1 : end;
}

/* Looks for zero bytes and quotes and counts records, in pieces that fit into the cache. */
static mercer_status look_through(mrc_table *self, walk *state)
{
    enum { PIECE_BYTES = 256 << 10 };
    const char *begin = (const char *)self->input->data, *end = self->start.end, *stop;
    *state = (walk){.at = self->start.at, .released = begin, .line = 1};
    for (const char *at = self->start.at; at < end; at = stop) {
        stop = end - at > PIECE_BYTES ? at + PIECE_BYTES : end;
        const char *zero = memchr(at, 0, (size_t)(stop - at));
        if (zero)
            return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                            "%s: has a zero byte at offset %lld; the file is not text", self->input->path,
                            (long long)(zero - begin));
        if (self->start.separator && !state->quoted) state->quoted = memchr(at, '"', (size_t)(stop - at)) != NULL;
        if (!state->quoted) count_plain_lines(self, state, stop);
        mrc_input_release(self->input, &state->released, stop);
    }
    return MERCER_OK;
}

/* Counts the records of a text with quotes by splitting all fields, because line ends may be inside of fields. */
static mercer_status count_quoted(mrc_table *self, walk *state)
{
    mrc_csv csv = self->start;
    mrc_csv_field field;
    self->records = 0;
    state->released = csv.at;
    state->blank = state->empty = 0;
    while (csv.at < csv.end) {
        int64_t line = csv.line;
        if (mrc_csv_skip_blank(&csv)) {
            if (!state->empty) state->empty = line;
            continue;
        }
        state->blank = state->empty;
        if (state->blank) return MERCER_OK;
        do {
            const char *wrong = mrc_csv_next(&csv, &field);
            if (wrong) return fail_line(self, field.line, wrong);
        } while (!field.last);
        self->records++;
        mrc_input_release(self->input, &state->released, csv.at);
    }
    return MERCER_OK;
}

/* Counts the records, and the columns of the first record. */
static mercer_status count_records(mrc_table *self)
{
    walk state;
    MRC_TRY(look_through(self, &state));
    if (state.quoted) MRC_TRY(count_quoted(self, &state));
    if (state.blank) return fail_line(self, state.blank, "is empty; remove it");
    if (self->records > 0) return count_columns(self);
    return self->input->part ? MERCER_OK : fail_line(self, 1, "the file has only empty lines");
}

mercer_status mrc_table_open(mrc_table *out, const mrc_input *input, char separator)
{
    *out = (mrc_table){.input = input, .unit = "line"};
    MRC_TRY(begin_table(out, input, separator));
    MRC_TRY(count_records(out));
    out->data = out->start;
    return MERCER_OK;
}

/* ---- Header --------------------------------------------------------------------------------------------------- */

static mrc_number kind_of(const mrc_table *self, const mrc_csv_field *field)
{
    double value;
    return mrc_csv_number(&self->start, field, &value);
}

void mrc_copy_name(const mrc_csv_field *field, char *out, int64_t size)
{
    int64_t length = mrc_csv_copy(field, out, size), skipped = 0;
    while (length > 0 && (out[length - 1] == ' ' || out[length - 1] == '\t')) out[--length] = 0;
    while (out[skipped] == ' ' || out[skipped] == '\t') skipped++;
    memmove(out, out + skipped, (size_t)(length - skipped) + 1);
}

/* Returns whether a name is customary for a target, so that the option `target` is not needed. */
static bool is_customary(const char *name)
{
    static const char *const names[] = {"target", "label", "class", "y"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

/* Returns whether the name is `target`, or is in the comma-separated list `target`. */
static bool is_asked(const char *name, const char *target)
{
    size_t length = strlen(name);
    if (strcmp(name, target) == 0) return true;
    for (const char *at = target; at && length > 0; at = strchr(at, ',')) {
        at += *at == ',';
        while (*at == ' ') at++;
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
    }
    return false;
}

bool mrc_table_shows_header(const mrc_table *self, const char *target)
{
    mrc_csv first = self->start, second = self->start;
    mrc_csv_field above, below = {.last = false};
    do mrc_csv_next(&second, &below);
    while (!below.last);
    bool more = self->records > 1, any_text = false;
    below.last = !more;
    do {
        char name[NAME_CHARS];
        mrc_csv_next(&first, &above);
        mrc_copy_name(&above, name, sizeof name);
        bool text = kind_of(self, &above) == MRC_NUMBER_TEXT;
        any_text = any_text || text;
        bool named = is_customary(name) && name[1]; /* "y" is customary, too, but in data it may also mean yes */
        if (text && (named || (target && is_asked(name, target)))) return true;
        if (below.last) continue;
        mrc_csv_next(&second, &below);
        if (text && kind_of(self, &below) == MRC_NUMBER) return true;
    } while (!above.last);
    return !more && any_text;
}

bool mrc_table_names_one(const mrc_table *self, const char *const *names, int64_t count, size_t stride)
{
    mrc_csv csv = self->start;
    mrc_csv_field field = {.last = false};
    while (!field.last) {
        char name[MRC_ERROR_CHARS];
        mrc_csv_next(&csv, &field);
        if (kind_of(self, &field) != MRC_NUMBER_TEXT) continue;
        mrc_copy_name(&field, name, sizeof name);
        for (int64_t i = 0; i < count; i++) {
            const char *wanted = *(const char *const *)((const char *)names + (size_t)i * stride);
            if (wanted && strcmp(wanted, name) == 0) return true;
        }
    }
    return false;
}

void mrc_table_set_header(mrc_table *self, bool header)
{
    mrc_csv_field field = {.last = !header};
    self->header = header;
    self->data = self->start;
    while (!field.last) mrc_csv_next(&self->data, &field);
    if (self->parquet) self->data.line = 1; /* names may contain line ends */
    if (header) self->records--;
}

int64_t mrc_table_find(const mrc_table *self, const char *wanted)
{
    mrc_csv csv = self->start;
    mrc_csv_field field = {.last = !self->header};
    int64_t found = -1;
    for (int64_t column = 0; !field.last; column++) {
        char name[MRC_ERROR_CHARS];
        mrc_csv_next(&csv, &field);
        mrc_copy_name(&field, name, sizeof name);
        if (wanted ? strcmp(name, wanted) != 0 : !is_customary(name)) continue;
        if (found >= 0) return -2;
        found = column;
    }
    return found;
}

const char *mrc_column_text(const mrc_table *self, int64_t column, char out[MRC_COLUMN_CHARS])
{
    mrc_csv csv = self->start;
    mrc_csv_field field = {.last = !self->header};
    char name[NAME_CHARS] = "", excerpt[MRC_EXCERPT_CHARS];
    for (int64_t i = 0; i <= column && !field.last; i++) mrc_csv_next(&csv, &field);
    if (self->header) mrc_copy_name(&field, name, sizeof name);
    if (*name)
        snprintf(out, MRC_COLUMN_CHARS, "'%s'", mrc_excerpt(excerpt, name, (int64_t)strlen(name)));
    else
        snprintf(out, MRC_COLUMN_CHARS, "%lld (from 0)", (long long)column);
    return out;
}

bool mrc_table_begins_with_text(const mrc_table *self)
{
    mrc_csv csv = self->start;
    mrc_csv_field field;
    mrc_csv_next(&csv, &field);
    return kind_of(self, &field) == MRC_NUMBER_TEXT;
}

/* ---- Further files --------------------------------------------------------------------------------------------- */

/* Returns the first column in which the first records of two files differ; -1: none. */
static int64_t first_difference(const mrc_table *a, const mrc_table *b)
{
    mrc_csv left = a->start, right = b->start;
    mrc_csv_field one, other;
    for (int64_t column = 0;; column++) {
        char name[MRC_ERROR_CHARS], other_name[MRC_ERROR_CHARS];
        mrc_csv_next(&left, &one);
        mrc_csv_next(&right, &other);
        mrc_copy_name(&one, name, sizeof name);
        mrc_copy_name(&other, other_name, sizeof other_name);
        if (one.last != other.last || strcmp(name, other_name) != 0) return column;
        if (one.last) return -1;
    }
}

static mercer_status check_columns(const mrc_table *self, const mrc_table *lead)
{
    if (self->columns == lead->columns) return MERCER_OK;
    return mrc_fail(self->input->context, MERCER_ERROR_SHAPE,
                    "%s: has %lld columns, but %s has %lld; files of one dataset must have the same columns",
                    self->input->path, (long long)self->columns, lead->input->path, (long long)lead->columns);
}

/* Returns whether the first record can only be a header: the record has text where the first file has a number. */
static bool names_features(const mrc_table *self, const mrc_table *lead)
{
    mrc_csv csv = self->start, other = lead->data;
    mrc_csv_field field = {.last = false}, below;
    for (int64_t column = 0; !field.last; column++) {
        mrc_csv_next(&csv, &field);
        mrc_csv_next(&other, &below);
        if (self->layout->roles[column] >= 0 && kind_of(self, &field) == MRC_NUMBER_TEXT &&
            kind_of(lead, &below) == MRC_NUMBER)
            return true;
    }
    return false;
}

static mercer_status fail_names(const mrc_table *self, const mrc_table *lead)
{
    char name[MRC_COLUMN_CHARS], wanted[MRC_COLUMN_CHARS];
    int64_t column = first_difference(self, lead);
    mrc_table named = *self;
    named.header = true;
    return mrc_fail(self->input->context, MERCER_ERROR_MISMATCH,
                    "%s: column %lld (from 0) is %s, but %s in %s; files of one dataset must have the same columns",
                    self->input->path, (long long)column, mrc_column_text(&named, column, name),
                    mrc_column_text(lead, column, wanted), lead->input->path);
}

bool mrc_table_repeats_names(const mrc_table *self, const mrc_table *lead)
{
    return self->records > 0 && lead->header && first_difference(self, lead) < 0;
}

mercer_status mrc_table_follow(mrc_table *self, const mrc_table *lead, mercer_switch header)
{
    self->layout = lead->layout;
    if (self->records == 0) return MERCER_OK;
    MRC_TRY(check_columns(self, lead));
    /* A first record that equals the names is a header. A first record that must be a header but differs is an error.
       Any other first record is data. */
    bool repeated = mrc_table_repeats_names(self, lead);
    bool named =
        self->parquet || header == MERCER_ON || (lead->header && lead->records > 0 && names_features(self, lead));
    if (named && !repeated) return fail_names(self, lead);
    mrc_table_set_header(self, repeated);
    return MERCER_OK;
}
