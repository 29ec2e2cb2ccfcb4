/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: numbers with suffixes, checks, and the accessors that commands use. */
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cli_values {
    const cli_command *command;
    char **texts;        /* (cli_option_count) value as text; NULL: not set */
    cli_origin *origins; /* (cli_option_count) origin of each value */
    char **positional;
    int positional_count;
};

cli_values *cli_values_new(const cli_command *command)
{
    cli_values *v = cli_allocate(1, sizeof *v);
    v->command = command;
    v->texts = cli_allocate(cli_option_count, sizeof *v->texts);
    v->origins = cli_allocate(cli_option_count, sizeof *v->origins);
    for (int i = 0; i < cli_option_count; i++)
        if (cli_options[i].fallback != NULL) v->texts[i] = cli_copy(cli_options[i].fallback);
    return v;
}

cli_values *cli_values_copy(const cli_values *v)
{
    cli_values *copy = cli_values_new(v->command);
    for (int i = 0; i < cli_option_count; i++) {
        free(copy->texts[i]);
        copy->texts[i] = v->texts[i] != NULL ? cli_copy(v->texts[i]) : NULL;
        copy->origins[i] = v->origins[i];
    }
    for (int i = 0; i < v->positional_count; i++) cli_values_add_positional(copy, v->positional[i]);
    return copy;
}

void cli_values_free(cli_values *v)
{
    if (v == NULL) return;
    for (int i = 0; i < cli_option_count; i++) free(v->texts[i]);
    for (int i = 0; i < v->positional_count; i++) free(v->positional[i]);
    free(v->texts);
    free(v->origins);
    free(v->positional);
    free(v);
}

const cli_command *cli_values_command(const cli_values *v)
{
    return v->command;
}

/* ---- Parsing numbers --------------------------------------------------------------------------------------------- */

/* Parses a finite decimal number at the start of text; *rest is the text after it. strtod would also accept "nan"
   and hexadecimal. */
static int read_decimal(const char *text, double *out, const char **rest)
{
    const char *digits = text + (*text == '+' || *text == '-');
    if (!isdigit((unsigned char)digits[0]) && !(digits[0] == '.' && isdigit((unsigned char)digits[1]))) return -1;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return -1;
    char *end = NULL;
    *out = strtod(text, &end);
    *rest = end;
    return isfinite(*out) ? 0 : -1;
}

int cli_read_number(const char *text, double *out)
{
    const char *rest = NULL;
    double value = 0;
    if (read_decimal(text, &value, &rest) != 0 || *rest != '\0') return -1;
    *out = value;
    return 0;
}

int cli_read_integer(const char *text, int64_t *out)
{
    /* Parse plain digits as an integer, because a seed may need all 63 bits. */
    if (isdigit((unsigned char)text[0])) {
        char *end = NULL;
        errno = 0;
        long long whole = strtoll(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            *out = whole;
            return 0;
        }
    }
    const char *rest = NULL;
    double value = 0, factor = 1;
    if (read_decimal(text, &value, &rest) != 0) return -1;
    static const char letters[] = "kmg";
    const char *letter = *rest != '\0' ? strchr(letters, tolower((unsigned char)*rest)) : NULL;
    if (letter != NULL) factor = pow(1000, (double)(letter - letters + 1)), rest++;
    double product = value * factor;
    if (*rest != '\0' || product < 0 || product >= 9007199254740992.0 || product != floor(product)) return -1;
    *out = (int64_t)product;
    return 0;
}

static int read_duration(const char *text, double *out)
{
    const char *rest = NULL;
    double value = 0, factor = 0;
    if (read_decimal(text, &value, &rest) != 0 || value < 0) return -1;
    if (*rest == '\0' || strcmp(rest, "s") == 0)
        factor = 1;
    else if (strcmp(rest, "ms") == 0)
        factor = 1e-3;
    else if (strcmp(rest, "m") == 0 || strcmp(rest, "min") == 0)
        factor = 60;
    else if (strcmp(rest, "h") == 0)
        factor = 3600;
    if (factor == 0) return -1;
    *out = value * factor;
    return 0;
}

int cli_has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0') && length > 0) return 1;
    }
    return 0;
}

/* ---- Setting and getting ----------------------------------------------------------------------------------------- */

static int report_invalid_value(const cli_option *option, const char *value, const char *where, const char *wanted)
{
    if (option->words == NULL) return cli_error(CLI_USAGE, "%s: '%s' is not %s", where, value, wanted);
    CLI_OWNED(cli_drop) char *list = cli_word_list(option->words);
    if (option->type == CLI_CHOICE)
        cli_error(CLI_USAGE, "%s: '%s' is not one of %s", where, value, list);
    else
        cli_error(CLI_USAGE, "%s: '%s' is not %s, or one of: %s", where, value, wanted, list);
    return CLI_USAGE;
}

/* Returns whether the value is the old spelling of a choice, which is still accepted. */
static int is_old_spelling(const cli_option *option, const char *value)
{
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    return strcmp(option->name, "target-transform") == 0 && strcmp(value, "standardise") == 0;
}

static int check_value(const cli_option *option, const char *value, const char *where)
{
    int64_t integer = 0;
    double number = 0;
    if (option->words != NULL && option->type != CLI_TEXT && cli_has_word(option->words, value)) return CLI_OK;
    switch (option->type) {
        case CLI_INTEGER:
            if (cli_read_integer(value, &integer) == 0) return CLI_OK;
            return report_invalid_value(option, value, where, "a whole number such as 500, 20k or 5M");
        case CLI_BYTES:
            if (mercer_parse_bytes(&integer, NULL, value) == MERCER_OK) return CLI_OK;
            return report_invalid_value(option, value, where, "a size such as 500MB, 8G or 16GiB");
        case CLI_NUMBER:
            if (cli_read_number(value, &number) == 0 && number >= 0) return CLI_OK;
            return report_invalid_value(option, value, where, "a number >= 0 such as 0.5 or 1e-3");
        case CLI_DURATION:
            if (read_duration(value, &number) == 0) return CLI_OK;
            return report_invalid_value(option, value, where, "a time such as 30s, 10m or 1h");
        case CLI_CHOICE:
            return is_old_spelling(option, value) ? CLI_OK : report_invalid_value(option, value, where, "a choice");
        case CLI_SWITCH:
            if (cli_has_word("on|off|auto", value)) return CLI_OK;
            return cli_error(CLI_USAGE, "%s: '%s' is not one of on, off, auto", where, value);
        case CLI_FLAG:
            if (cli_has_word("true|false", value)) return CLI_OK;
            return cli_error(CLI_USAGE, "%s: unexpected value '%s'; this option takes no value", where, value);
        case CLI_TEXT:
        case CLI_LIST:
        case CLI_INPUT:
        case CLI_OUTPUT:
            if (*value == '\0') return cli_error(CLI_USAGE, "%s: the value is empty", where);
            return CLI_OK;
    }
    return CLI_OK;
}

int cli_values_set(cli_values *v, const cli_option *option, const char *value, cli_origin origin, const char *where)
{
    int64_t i = option - cli_options;
    CLI_TRY(check_value(option, value, where));
    if (v->origins[i] > origin) return CLI_OK;
    free(v->texts[i]);
    v->texts[i] = cli_copy(value);
    v->origins[i] = origin;
    return CLI_OK;
}

void cli_values_add_positional(cli_values *v, const char *text)
{
    int64_t capacity = v->positional_count;
    v->positional = cli_grow(v->positional, capacity, &capacity, sizeof *v->positional);
    v->positional[v->positional_count++] = cli_copy(text);
}

cli_origin cli_values_origin(const cli_values *v, const cli_option *option)
{
    return v->origins[option - cli_options];
}

const char *cli_values_get(const cli_values *v, const cli_option *option)
{
    return v->texts[option - cli_options];
}

static const cli_option *command_option(const cli_values *v, const char *name)
{
    const cli_option *option = cli_find_option(v->command, name);
    if (option == NULL) cli_give_up(CLI_INTERNAL, "internal error: %s has no option %s", v->command->name, name);
    return option;
}

const char *cli_text(const cli_values *v, const char *name)
{
    return cli_values_get(v, command_option(v, name));
}

int64_t cli_integer(const cli_values *v, const char *name)
{
    const cli_option *option = command_option(v, name);
    const char *text = cli_values_get(v, option);
    int64_t value = 0;
    if (text == NULL || strcmp(text, "auto") == 0) return 0;
    if (option->words != NULL && cli_has_word(option->words, text)) return -1;
    if (option->type == CLI_BYTES)
        mercer_parse_bytes(&value, NULL, text);
    else
        cli_read_integer(text, &value);
    return value;
}

double cli_number(const cli_values *v, const char *name)
{
    const cli_option *option = command_option(v, name);
    const char *text = cli_values_get(v, option);
    double value = 0;
    if (text == NULL || strcmp(text, "auto") == 0) return 0;
    if (option->words != NULL && cli_has_word(option->words, text)) return -1;
    if (option->type == CLI_DURATION)
        read_duration(text, &value);
    else
        cli_read_number(text, &value);
    /* An explicit 0 means none, but to the library 0 means the default, so return -1, which means none. */
    return value == 0 && option->words != NULL && cli_has_word(option->words, "none") ? -1 : value;
}

int cli_flag(const cli_values *v, const char *name)
{
    const char *text = cli_text(v, name);
    return text != NULL && strcmp(text, "true") == 0;
}

mercer_switch cli_switch(const cli_values *v, const char *name)
{
    const char *text = cli_text(v, name);
    if (text == NULL || strcmp(text, "auto") == 0) return MERCER_AUTO;
    return strcmp(text, "on") == 0 ? MERCER_ON : MERCER_OFF;
}

int cli_given(const cli_values *v, const char *name)
{
    return cli_values_origin(v, command_option(v, name)) != CLI_FROM_DEFAULT;
}

int cli_has(const cli_values *v, const char *name)
{
    return cli_find_option(v->command, name) != NULL;
}

int cli_is(const cli_values *v, const char *name, const char *text)
{
    const char *value = cli_text(v, name);
    return value != NULL && strcmp(value, text) == 0;
}

int cli_positional_count(const cli_values *v)
{
    return v->positional_count;
}

const char *cli_positional(const cli_values *v, int i)
{
    return i < v->positional_count ? v->positional[i] : NULL;
}

const char *cli_command_name(const cli_values *v)
{
    return v->command->name;
}
