/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line parser: --name=value, --name value, -n value, -nvalue; -- ends options. */
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

static int unknown_option(const cli_command *command, const char *shown, const char *name)
{
    const char *meant = cli_suggest_option(command, name);
    if (meant != NULL)
        return cli_error(CLI_USAGE, "%s: unknown option %s; did you mean --%s?", command->name, shown, meant);
    return cli_error(CLI_USAGE, "%s: unknown option %s; see mercer %s --help", command->name, shown, command->name);
}

/* Parser state: the arguments and the position of the next one. */
typedef struct reader {
    cli_values *v;
    const cli_command *command;
    char **arguments;
    int count, at;
    int help_all; /* true after --help all */
} reader;

/* Sets an option. A repeated option is an error, because the second value would silently override the first; a repeated
   list option appends. */
static int set_value(reader *r, const cli_option *option, const char *value, const char *where)
{
    int repeated = cli_values_origin(r->v, option) == CLI_FROM_COMMAND;
    if (!repeated) return cli_values_set(r->v, option, value, CLI_FROM_COMMAND, where);
    if (option->type != CLI_LIST)
        return cli_error(CLI_USAGE, "%s: %s is given twice; give it once", r->command->name, where);
    if (*value == '\0') return cli_error(CLI_USAGE, "%s: the value is empty", where);
    CLI_OWNED(cli_drop) char *both = cli_format("%s,%s", cli_values_get(r->v, option), value);
    return cli_values_set(r->v, option, both, CLI_FROM_COMMAND, where);
}

/* Reads the value of an option: the text after '=' (or after the letter), or the next argument. */
static int read_value(reader *r, const cli_option *option, const char *attached, const char *where)
{
    int all =
        attached != NULL ? strcmp(attached, "all") == 0 : r->at < r->count && strcmp(r->arguments[r->at], "all") == 0;
    if (all && strcmp(option->name, "help") == 0) {
        r->help_all = 1;
        r->at += attached == NULL;
        return set_value(r, option, "true", where);
    }
    if (option->type == CLI_FLAG) return set_value(r, option, attached != NULL ? attached : "true", where);
    /* A switch without a value is on. */
    int last = r->at >= r->count || r->arguments[r->at][0] == '-';
    if (attached == NULL && last && option->type == CLI_SWITCH) attached = "on";
    if (attached == NULL) {
        if (r->at >= r->count)
            return cli_error(CLI_USAGE, "%s: %s needs a value: --%s %s", r->command->name, where, option->name,
                             option->metavar);
        attached = r->arguments[r->at++];
    }
    return set_value(r, option, attached, where);
}

static int read_long_option(reader *r, const char *argument)
{
    const char *equals = strchr(argument, '=');
    int length = equals == NULL ? (int)strlen(argument) : (int)(equals - argument);
    CLI_OWNED(cli_drop) char *shown = cli_format("%.*s", length, argument);
    const cli_option *option = cli_find_option(r->command, shown + 2);
    if (option == NULL) return unknown_option(r->command, shown, shown + 2);
    return read_value(r, option, equals == NULL ? NULL : equals + 1, shown);
}

/* Reads short options: -o FILE, -oFILE; flags may be combined, as in -qf. */
static int read_short_options(reader *r, const char *argument)
{
    for (const char *at = argument + 1; *at != '\0'; at++) {
        char shown[3] = {'-', *at, '\0'};
        const cli_option *option = cli_find_letter(r->command, *at);
        if (option == NULL) return unknown_option(r->command, shown, argument + 1);
        if (option->type != CLI_FLAG) {
            const char *attached = at[1] == '\0' ? NULL : at + 1 + (at[1] == '=');
            return read_value(r, option, attached, shown);
        }
        CLI_TRY(read_value(r, option, NULL, shown));
    }
    return CLI_OK;
}

static int check_positional(const cli_values *v)
{
    const cli_command *command = cli_values_command(v);
    int count = cli_positional_count(v);
    if (count < command->least)
        return cli_error(CLI_USAGE, "%s: %s is missing: mercer %s %s", command->name, command->positional,
                         command->name, command->positional);
    if (count > command->most)
        return cli_error(CLI_USAGE, "%s: unexpected argument '%s'; see mercer %s --help", command->name,
                         cli_positional(v, command->most), command->name);
    return CLI_OK;
}

int cli_parse(cli_values *v, int count, char **arguments, int *help)
{
    reader r = {v, cli_values_command(v), arguments, count, 0, 0};
    int ended = 0;
    while (r.at < count) {
        const char *argument = arguments[r.at++];
        if (ended || argument[0] != '-' || argument[1] == '\0')
            cli_values_add_positional(v, argument);
        else if (strcmp(argument, "--") == 0)
            ended = 1;
        else if (argument[1] == '-')
            CLI_TRY(read_long_option(&r, argument));
        else
            CLI_TRY(read_short_options(&r, argument));
    }
    *help = cli_flag(v, "help") + r.help_all;
    return *help ? CLI_OK : check_positional(v);
}

int cli_read_environment(cli_values *v)
{
    const cli_command *command = cli_values_command(v);
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;) {
        if (option->environment == NULL) continue;
        const char *value = getenv(option->environment);
        if (value == NULL || *value == '\0') continue;
        CLI_TRY(cli_values_set(v, option, value, CLI_FROM_ENVIRONMENT, option->environment));
    }
    return CLI_OK;
}

int cli_check_required(const cli_values *v)
{
    const cli_command *command = cli_values_command(v);
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;) {
        if ((option->required & command->bit) == 0) continue;
        /* A required option must be given; its default value does not count. */
        if (cli_values_get(v, option) != NULL && cli_values_origin(v, option) != CLI_FROM_DEFAULT) continue;
        char title[64];
        cli_option_title(title, sizeof title, option);
        if (strcmp(option->name, "model") == 0)
            return cli_error(CLI_USAGE, "%s: the model is missing: mercer %s %s", command->name, command->name,
                             command->positional);
        return cli_error(CLI_USAGE, "%s: %s is missing: %s", command->name, title, option->help);
    }
    return CLI_OK;
}
