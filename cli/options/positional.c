/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Positional arguments of commands on tables, and the defaults that follow from them:
 *
 *     mercer train TABLE...           --x TABLE --output TABLE.safetensors
 *     mercer predict MODEL TABLE...   --model MODEL --x TABLE --output - --output-format csv
 *
 * Several tables become one value of --x, separated by CLI_FILE_SEPARATOR.
 */
#include "data.h"
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

static int has_text(const cli_values *v, const char *name)
{
    return cli_has(v, name) && cli_text(v, name) != NULL;
}

/* Returns whether an option was given on the command line; positional arguments override only values from other
   origins. */
static int is_on_command_line(const cli_values *v, const char *name)
{
    return cli_values_origin(v, cli_find_option(cli_values_command(v), name)) == CLI_FROM_COMMAND;
}

static int set_value(cli_values *v, const char *name, const char *value, cli_origin origin)
{
    const cli_option *option = cli_find_option(cli_values_command(v), name);
    return cli_values_set(v, option, value, origin, name);
}

/* ---- Tables and models ------------------------------------------------------------------------------------------- */

/* Sets --x from the positional arguments except the first `skipped` arguments. */
static int take_tables(cli_values *v, int skipped)
{
    CLI_OWNED(cli_drop) char *names = NULL;
    static const char *const sources[] = {"x", "data", "synth"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (has_text(v, sources[i]) && is_on_command_line(v, sources[i]))
            return cli_error(CLI_USAGE, "%s: '%s' and --%s both name data; %s", cli_command_name(v),
                             cli_positional(v, skipped), sources[i],
                             i > 0 ? "remove one of them" : "quote file patterns, or name all tables without --x");
    for (int i = skipped; i < cli_positional_count(v); i++)
        names = cli_append(names, "%s%s", names != NULL ? CLI_FILE_SEPARATOR : "", cli_positional(v, i));
    return set_value(v, "x", names, CLI_FROM_COMMAND);
}

/* Sets --model from the first positional argument. A model file in the place of a table is an error that shows the
   right order. */
static int take_model(cli_values *v)
{
    const char *first = cli_positional(v, 0), *last = cli_positional(v, cli_positional_count(v) - 1);
    if (!cli_ends_with(first, ".safetensors") && cli_ends_with(last, ".safetensors"))
        return cli_error(CLI_USAGE, "%s: the model comes first: mercer %s %s %s", cli_command_name(v),
                         cli_command_name(v), last, first);
    return set_value(v, "model", first, CLI_FROM_COMMAND);
}

/* ---- Default outputs --------------------------------------------------------------------------------------------- */

/* Returns the length of a file name without the endings of its format and compression, such as ".csv.gz". */
static int stem_length(const char *name)
{
    static const char *const packed[] = {".gz", ".zst", ".xz"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
        if (cli_ends_with(name, packed[i]) && length > strlen(packed[i])) length -= strlen(packed[i]);
    for (size_t at = length; at > 1; at--)
        if (name[at - 1] == '.') return (int)at - 1;
    return (int)length;
}

/* Returns the name of the model file for a table, in the current folder: houses.safetensors for data/houses.csv.gz,
   part.safetensors for 'part-*.csv'. Release with free. */
static char *model_name(const cli_values *v)
{
    const char *data = cli_data_name(v);
    if (has_text(v, "x") && cli_is_pipe(data)) return cli_copy("model.safetensors");
    CLI_OWNED(cli_drop) char *whole = cli_format("%.*s", (int)strcspn(data, CLI_FILE_SEPARATOR), data);
    for (size_t end = strlen(whole); end > 1 && whole[end - 1] == '/';) whole[--end] = '\0';
    const char *slash = strrchr(whole, '/'), *name = slash != NULL ? slash + 1 : whole;
    int length = has_text(v, "x") ? stem_length(name) : (int)strcspn(name, ":");
    int wild = (int)strcspn(name, "*?[");
    if (wild < length) length = wild;
    while (length > 0 && strchr("-_. ", name[length - 1]) != NULL) length--;
    return length > 0 && name[0] != '-' ? cli_format("%.*s.safetensors", length, name) : cli_copy("model.safetensors");
}

static int set_default_output(cli_values *v)
{
    uint32_t bit = cli_values_command(v)->bit;
    int data = has_text(v, "x") || has_text(v, "data") || has_text(v, "synth");
    if (bit == CLI_TRAIN && cli_text(v, "output") == NULL && data) {
        CLI_OWNED(cli_drop) char *name = model_name(v);
        return set_value(v, "output", name, CLI_FROM_DEFAULT);
    }
    if (bit != CLI_PREDICT || cli_text(v, "output") != NULL) return CLI_OK;
    if (cli_is(v, "output-format", "auto")) CLI_TRY(set_value(v, "output-format", "csv", CLI_FROM_COMMAND));
    return set_value(v, "output", "-", CLI_FROM_DEFAULT);
}

int cli_take_positional(cli_values *v)
{
    int models = cli_has(v, "model") && cli_text(v, "model") == NULL && cli_positional_count(v) > 0;
    if (!cli_has(v, "x")) return CLI_OK;
    if (models) CLI_TRY(take_model(v));
    if (cli_positional_count(v) > models) CLI_TRY(take_tables(v, models));
    return set_default_output(v);
}
