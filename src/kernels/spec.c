/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel specifications as text: "laplace:bandwidth=10" to a mercer_kernel and back, with errors that say what is
   valid. */
#include "kernels/table.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_CHARS = 512, WORD_CHARS = 64 };

/* ---- Messages ------------------------------------------------------------------------------------------------ */

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

static void list_names(char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        if (i > 0) append(text, size, ", ");
        append(text, size, mrc_kernel_table[i].name);
    }
}

/* "bandwidth (> 0), gamma (> 0 and <= 2)" */
static void list_parameters(const mrc_kernel_entry *entry, char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0; i < MRC_KERNEL_MAX_PARAMETERS && entry->parameters[i].name; i++) {
        const mrc_parameter *parameter = &entry->parameters[i];
        char range[96], item[192];
        mrc_parameter_range(parameter, range, sizeof range);
        snprintf(item, sizeof item, "%s%s (%s%s)", i ? ", " : "", parameter->name, range,
                 parameter->required ? ", required" : "");
        append(text, size, item);
    }
    if (!text[0]) append(text, size, "none");
}

static mercer_status fail_name(mercer_context *context, const char *name)
{
    char names[TEXT_CHARS];
    list_names(names, sizeof names);
    if (!name[0])
        return mrc_fail(context, MERCER_ERROR_KERNEL,
                        "kernel specification has no name; valid names: %s (for example %s)", names,
                        mrc_kernel_table[0].example);
    return mrc_fail(context, MERCER_ERROR_KERNEL, "unknown kernel '%s'; valid names: %s", name, names);
}

static mercer_status fail_parameter(mercer_context *context, const mrc_kernel_entry *entry, const char *what,
                                    const char *word)
{
    char valid[TEXT_CHARS];
    list_parameters(entry, valid, sizeof valid);
    return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel %s: %s '%s'; parameters of %s: %s (for example %s)",
                    entry->name, what, word, entry->name, valid, entry->example);
}

/* ---- Parsing ------------------------------------------------------------------------------------------------- */

/* Copies up to a delimiter into word and returns what follows. No valid word fills the buffer: one that would is cut and ends in
   "..", which no name and no number does. */
static const char *take_word(const char *text, const char *delimiters, char word[WORD_CHARS])
{
    size_t length = strcspn(text, delimiters);
    if (length < WORD_CHARS)
        snprintf(word, WORD_CHARS, "%.*s", (int)length, text);
    else
        snprintf(word, WORD_CHARS, "%.*s..", WORD_CHARS - 3, text);
    return text + length;
}

/* A number in C notation whatever the locale's decimal point is. The whole word must be used. */
static bool parse_number(const char *word, double *value)
{
    if (!word[0] || strspn(word, "0123456789+-.eE") != strlen(word)) return false;
    char local[WORD_CHARS];
    snprintf(local, sizeof local, "%s", word);
    char *point = strchr(local, '.');
    if (point) *point = localeconv()->decimal_point[0];
    char *end;
    *value = strtod(local, &end);
    return *end == 0 && isfinite(*value);
}

static const mrc_parameter *find_parameter(const mrc_kernel_entry *entry, const char *name, int *index)
{
    for (*index = 0; *index < MRC_KERNEL_MAX_PARAMETERS && entry->parameters[*index].name; ++*index)
        if (strcmp(entry->parameters[*index].name, name) == 0) return &entry->parameters[*index];
    return NULL;
}

/* One "name=value". Marks it in *given; a second mention is an error. */
static mercer_status parse_parameter(mercer_context *context, const mrc_kernel_entry *entry, const char **text,
                                     mercer_kernel *kernel, unsigned *given)
{
    char name[WORD_CHARS], word[WORD_CHARS];
    *text = take_word(*text, "=,", name);
    int index;
    const mrc_parameter *parameter = find_parameter(entry, name, &index);
    if (!parameter) return fail_parameter(context, entry, "unknown parameter", name);
    if (**text != '=') return fail_parameter(context, entry, "no value given for", name);
    *text = take_word(*text + 1, ",", word);
    double value;
    if (!parse_number(word, &value)) return fail_parameter(context, entry, "not a number:", word);
    if (!mrc_parameter_valid(parameter, value)) {
        char range[96];
        mrc_parameter_range(parameter, range, sizeof range);
        return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel %s: %s=%s is out of range; it must be %s", entry->name,
                        name, word, range);
    }
    if (*given & 1u << index) return fail_parameter(context, entry, "given twice:", name);
    *given |= 1u << index;
    mrc_parameter_set(kernel, parameter, value);
    return MERCER_OK;
}

static mercer_status parse_parameters(mercer_context *context, const mrc_kernel_entry *entry, const char *text,
                                      mercer_kernel *kernel)
{
    unsigned given = 0;
    while (*text) {
        MRC_TRY(parse_parameter(context, entry, &text, kernel, &given));
        if (*text != ',') break;
        text++;
        if (!*text) return fail_parameter(context, entry, "nothing follows the last", ",");
    }
    for (int i = 0; i < MRC_KERNEL_MAX_PARAMETERS && entry->parameters[i].name; i++) {
        const mrc_parameter *parameter = &entry->parameters[i];
        if (given & 1u << i) continue;
        if (parameter->required) return fail_parameter(context, entry, "missing parameter", parameter->name);
        mrc_parameter_set(kernel, parameter, parameter->fallback);
    }
    return MERCER_OK;
}

mercer_status mrc_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    char name[WORD_CHARS];
    const char *rest = take_word(spec, ":", name);
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        const mrc_kernel_entry *entry = &mrc_kernel_table[i];
        if (strcmp(entry->name, name) != 0) continue;
        mercer_kernel kernel = {.id = entry->id};
        MRC_TRY(parse_parameters(context, entry, *rest == ':' ? rest + 1 : rest, &kernel));
        *out = kernel;
        return MERCER_OK;
    }
    return fail_name(context, name);
}

/* ---- Printing ------------------------------------------------------------------------------------------------ */

/* The shortest decimal that reads back to the same double, with a point whatever the locale; 10, not 1e+01. */
static void print_number(double value, char *text, size_t size)
{
    int fewest = fabs(value) >= 1 && fabs(value) < 1e15 ? 1 + (int)log10(fabs(value)) : 1;
    for (int digits = fewest; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    char *point = strchr(text, localeconv()->decimal_point[0]);
    if (point) *point = '.';
}

mercer_status mrc_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text, size_t size,
                               size_t *needed)
{
    MRC_TRY(mrc_kernel_check(context, kernel));
    if (mrc_kernel_is_callback(kernel))
        return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel: a callback has no text form");
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    char line[TEXT_CHARS] = "";
    append(line, sizeof line, entry->name);
    for (int i = 0; i < MRC_KERNEL_MAX_PARAMETERS && entry->parameters[i].name; i++) {
        char number[WORD_CHARS], item[2 * WORD_CHARS];
        print_number(mrc_parameter_get(kernel, &entry->parameters[i]), number, sizeof number);
        snprintf(item, sizeof item, "%c%s=%s", i ? ',' : ':', entry->parameters[i].name, number);
        append(line, sizeof line, item);
    }
    size_t bytes = strlen(line) + 1;
    if (needed) *needed = bytes;
    if (bytes > size)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text: %zu bytes are too few, %zu are needed", size, bytes);
    if (!text) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text is NULL");
    memcpy(text, line, bytes);
    return MERCER_OK;
}
