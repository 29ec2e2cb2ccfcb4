/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses specifications of the form "name:parameter=value,..."; error messages list the valid names or parameters. */
#include "core/spec.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_CHARS = 512, WORD_CHARS = MRC_SPEC_WORD };

/* ---- Numbers ------------------------------------------------------------------------------------------------- */

/* strtod expects the decimal point of the locale, so the point is replaced before the call. The set of allowed
   characters excludes hexadecimal numbers, infinity and NaN, which strtod would accept. */
bool mrc_scan_number(const char *word, double *value)
{
    size_t length = strlen(word);
    if (length == 0 || length >= WORD_CHARS || strspn(word, "0123456789+-.eE") != length) return false;
    char local[WORD_CHARS];
    snprintf(local, sizeof local, "%s", word);
    char *point = strchr(local, '.');
    if (point) *point = localeconv()->decimal_point[0];
    char *end;
    *value = strtod(local, &end);
    return *end == 0 && isfinite(*value);
}

/* Returns the number of digits before the point: with fewer significant digits %g would print an exponent. */
static int whole_digits(double value)
{
    return fabs(value) >= 1 && fabs(value) < 1e15 ? 1 + (int)log10(fabs(value)) : 1;
}

/* Replaces the decimal point of the locale by a point. */
static void set_point(char *text)
{
    char *point = strchr(text, localeconv()->decimal_point[0]);
    if (point) *point = '.';
}

void mrc_print_number(double value, char *text, size_t size)
{
    for (int digits = whole_digits(value); digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    set_point(text);
}

void mrc_print_single(float value, char *text, size_t size)
{
    /* Start at FLT_DIG digits: %g drops trailing zeros, so fewer digits would not give a shorter text. */
    int fewest = whole_digits((double)value);
    for (int digits = fewest > FLT_DIG ? fewest : FLT_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        snprintf(text, size, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) break;
    }
    set_point(text);
}

/* ---- Parameters ---------------------------------------------------------------------------------------------- */

double mrc_parameter_get(const void *object, const mrc_parameter *parameter)
{
    const char *field = (const char *)object + parameter->offset;
    if (parameter->kind == MRC_REAL) {
        double value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    int32_t value;
    memcpy(&value, field, sizeof value);
    return value;
}

void mrc_parameter_set(void *object, const mrc_parameter *parameter, double value)
{
    char *field = (char *)object + parameter->offset;
    if (parameter->kind == MRC_REAL) {
        memcpy(field, &value, sizeof value);
        return;
    }
    int32_t whole = (int32_t)value;
    memcpy(field, &whole, sizeof whole);
}

bool mrc_parameter_valid(const mrc_parameter *parameter, double value)
{
    if (!(value <= parameter->high)) return false; /* also false for NaN */
    if (parameter->low_included ? value < parameter->low : value <= parameter->low) return false;
    return parameter->kind == MRC_REAL || value == floor(value);
}

void mrc_parameter_range(const mrc_parameter *parameter, char *text, size_t size)
{
    if (parameter->kind == MRC_WORD) {
        snprintf(text, size, "a name");
        return;
    }
    char upper[48] = "";
    if (parameter->high < 1e300) snprintf(upper, sizeof upper, " and <= %g", parameter->high);
    snprintf(text, size, "%s %g%s%s", parameter->low_included ? ">=" : ">", parameter->low, upper,
             parameter->kind == MRC_WHOLE ? ", whole" : "");
}

/* Returns whether parameter i exists; the list ends at a NULL name or when the array is full. */
static bool has_parameter(const mrc_spec_form *form, int i)
{
    return i < MRC_SPEC_PARAMETERS && form->parameters[i].name;
}

/* ---- Messages ------------------------------------------------------------------------------------------------ */

static const mrc_spec_form *form_at(const mrc_spec_grammar *grammar, int index)
{
    return (const mrc_spec_form *)((const char *)grammar->forms + (size_t)index * grammar->stride);
}

static void append_text(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Returns the Levenshtein distance of two words: the number of letters to change, insert or delete. Returns WORD_CHARS
   if b is longer than WORD_CHARS. One row of the table of distances between prefixes is updated in place. */
static int edits(const char *a, const char *b)
{
    int row[WORD_CHARS + 1], length = (int)strlen(b);
    if (length > WORD_CHARS) return WORD_CHARS;
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < length; j++) {
            int change = diagonal + (a[i] != b[j]), other = 1 + (row[j] < row[j + 1] ? row[j] : row[j + 1]);
            diagonal = row[j + 1];
            row[j + 1] = change < other ? change : other;
        }
    }
    return row[length];
}

void mrc_consider_name(const char *word, const char *name, const char **best, int *fewest)
{
    int count = edits(word, name);
    if (count < *fewest && 2 * count <= (int)strlen(name)) {
        *fewest = count;
        *best = name;
    }
}

static void suggest(const char *name, char *text, size_t size)
{
    text[0] = 0;
    if (name) snprintf(text, size, " (did you mean '%s'?)", name);
}

/* Fails with a message that lists the valid names and suggests the most similar name. */
static mercer_status fail_name(mercer_context *context, const mrc_spec_grammar *grammar, const char *name)
{
    char names[TEXT_CHARS] = "", hint[2 * WORD_CHARS];
    const char *best = NULL;
    int fewest = WORD_CHARS;
    for (int i = 0; i < grammar->count; i++) {
        const char *known = form_at(grammar, i)->name;
        if (strncmp(known, form_at(grammar, i)->example, strlen(known)) != 0) continue; /* skip old names */
        if (i > 0) append_text(names, sizeof names, ", ");
        append_text(names, sizeof names, known);
        mrc_consider_name(name, known, &best, &fewest);
    }
    suggest(best, hint, sizeof hint);
    if (!name[0])
        return mrc_fail(context, grammar->status, "%s specification has no name; valid names: %s (for example %s)",
                        grammar->what, names, form_at(grammar, 0)->example);
    return mrc_fail(context, grammar->status, "unknown %s '%s'%s; valid names: %s", grammar->what, name, hint, names);
}

/* Lists the parameters of a form: "bandwidth (> 0), gamma (> 0 and <= 2)". */
static void list_parameters(const mrc_spec_form *form, char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0; has_parameter(form, i); i++) {
        const mrc_parameter *parameter = &form->parameters[i];
        char range[96], item[192];
        mrc_parameter_range(parameter, range, sizeof range);
        snprintf(item, sizeof item, "%s%s (%s%s)", i ? ", " : "", parameter->name, range,
                 parameter->required ? ", required" : "");
        append_text(text, size, item);
    }
    if (!text[0]) append_text(text, size, "none");
}

static mercer_status fail_parameter(mercer_context *context, const mrc_spec_grammar *grammar, const mrc_spec_form *form,
                                    const char *what, const char *word)
{
    char valid[TEXT_CHARS], hint[2 * WORD_CHARS];
    const char *best = NULL;
    int fewest = WORD_CHARS;
    list_parameters(form, valid, sizeof valid);
    for (int i = 0; has_parameter(form, i); i++) mrc_consider_name(word, form->parameters[i].name, &best, &fewest);
    suggest(fewest > 0 ? best : NULL, hint, sizeof hint);
    return mrc_fail(context, grammar->status, "%s %s: %s '%s'%s; parameters of %s: %s (for example %s)", grammar->what,
                    form->name, what, word, hint, form->name, valid, form->example);
}

/* ---- Parsing ------------------------------------------------------------------------------------------------- */

/* Copies the text up to a delimiter into `word` and returns the rest. A word that is too long for the buffer cannot be
   valid; it is cut and ends in "..", so that it does not match a name or number. */
static const char *take_word(const char *text, const char *delimiters, char word[WORD_CHARS])
{
    size_t length = strcspn(text, delimiters);
    if (length < WORD_CHARS)
        snprintf(word, WORD_CHARS, "%.*s", (int)length, text);
    else
        snprintf(word, WORD_CHARS, "%.*s..", WORD_CHARS - 3, text);
    return text + length;
}

const mrc_parameter *mrc_spec_parameter(const mrc_spec_form *form, const char *name)
{
    for (int i = 0; has_parameter(form, i); i++)
        if (strcmp(form->parameters[i].name, name) == 0) return &form->parameters[i];
    return NULL;
}

/* Parses and checks the value of a parameter, and stores it in its field. */
static mercer_status set_value(mercer_context *context, const mrc_spec_grammar *grammar, const mrc_spec_form *form,
                               const mrc_parameter *parameter, const char *word, void *object)
{
    if (parameter->kind == MRC_WORD) {
        if (!word[0]) return fail_parameter(context, grammar, form, "no value given for", parameter->name);
        snprintf((char *)object + parameter->offset, WORD_CHARS, "%s", word);
        return MERCER_OK;
    }
    double value;
    if (!mrc_scan_number(word, &value)) return fail_parameter(context, grammar, form, "not a number:", word);
    if (!mrc_parameter_valid(parameter, value)) {
        char range[96];
        mrc_parameter_range(parameter, range, sizeof range);
        return mrc_fail(context, grammar->status, "%s %s: %s=%s is out of range; it must be %s", grammar->what,
                        form->name, parameter->name, word, range);
    }
    mrc_parameter_set(object, parameter, value);
    return MERCER_OK;
}

/* Parses one "name=value" and sets the parameter's bit in *given; a repeated parameter is an error. */
static mercer_status parse_parameter(mercer_context *context, const mrc_spec_grammar *grammar,
                                     const mrc_spec_form *form, const char **text, void *object, unsigned *given)
{
    char name[WORD_CHARS], word[WORD_CHARS];
    *text = take_word(*text, "=,", name);
    const mrc_parameter *parameter = mrc_spec_parameter(form, name);
    if (!parameter) return fail_parameter(context, grammar, form, "unknown parameter", name);
    if (**text != '=') return fail_parameter(context, grammar, form, "no value given for", name);
    *text = take_word(*text + 1, ",", word);
    unsigned mark = 1u << (parameter - form->parameters);
    if (*given & mark) return fail_parameter(context, grammar, form, "given twice:", name);
    *given |= mark;
    return set_value(context, grammar, form, parameter, word, object);
}

/* Parses all parameters, then sets the parameters that were not given to their defaults. A missing required parameter
   is an error. */
static mercer_status parse_parameters(mercer_context *context, const mrc_spec_grammar *grammar,
                                      const mrc_spec_form *form, const char *text, void *object)
{
    unsigned given = 0;
    while (*text) {
        MRC_TRY(parse_parameter(context, grammar, form, &text, object, &given));
        if (*text != ',') break;
        text++;
        if (!*text) return fail_parameter(context, grammar, form, "no parameter after", ",");
    }
    for (int i = 0; has_parameter(form, i); i++) {
        const mrc_parameter *parameter = &form->parameters[i];
        if (given & 1u << i) continue;
        if (parameter->required) return fail_parameter(context, grammar, form, "missing parameter", parameter->name);
        if (parameter->kind == MRC_WORD)
            ((char *)object)[parameter->offset] = 0;
        else
            mrc_parameter_set(object, parameter, parameter->fallback);
    }
    return MERCER_OK;
}

/* Names must match exactly; error messages suggest similar names. A text without ":" gives no parameters. */
mercer_status mrc_spec_read(mercer_context *context, const mrc_spec_grammar *grammar, const char *text, void *object,
                            int *index)
{
    char name[WORD_CHARS];
    const char *rest = take_word(text, ":", name);
    for (int i = 0; i < grammar->count; i++) {
        const mrc_spec_form *form = form_at(grammar, i);
        if (strcmp(form->name, name) != 0) continue;
        *index = i;
        return parse_parameters(context, grammar, form, *rest == ':' ? rest + 1 : rest, object);
    }
    return fail_name(context, grammar, name);
}

int mrc_utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = text[0] < 0x80 ? 1 : text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : text[0] >> 3 == 30 ? 4 : 0;
    if (length < 2) return length;
    uint32_t code = text[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) return 0; /* also rejects the terminating zero */
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}
