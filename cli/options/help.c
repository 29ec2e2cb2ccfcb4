/* SPDX-License-Identifier: BSD-3-Clause */
/* --help, generated from the tables. */
#include "commands/commands.h"
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

void cli_option_title(char *text, size_t size, const cli_option *option)
{
    char letter[8] = "";
    if (option->letter != '\0') snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const char *metavar = option->type == CLI_SWITCH ? "on|off|auto" : option->metavar;
    snprintf(text, size, "%s--%s%s%s", letter, option->name, metavar != NULL ? " " : "",
             metavar != NULL ? metavar : "");
}

char *cli_word_list(const char *words)
{
    char *list = cli_copy("");
    for (const char *at = words; *at != '\0';) {
        int length = (int)strcspn(at, "|");
        list = cli_append(list, "%s%.*s", *list ? ", " : "", length, at);
        at += length + (at[length] == '|');
    }
    return list;
}

char *cli_option_help(const cli_option *option)
{
    /* The keywords of a text option are only hints for completion; "auto" of a number is already shown as its
       default. */
    int listed = option->words != NULL && option->type != CLI_TEXT && strcmp(option->words, "auto") != 0;
    CLI_OWNED(cli_drop) char *words = listed ? cli_word_list(option->words) : cli_copy("");
    char *notes =
        cli_format("%s%s%s%s", words, listed && option->fallback != NULL ? "; " : "",
                   option->fallback != NULL ? "default: " : "", option->fallback != NULL ? option->fallback : "");
    char *alias = option->alias != NULL ? cli_format("; also --%s", option->alias) : cli_copy("");
    CLI_OWNED(cli_drop)
    char *variable = option->environment != NULL ? cli_format(" [%s]", option->environment) : cli_copy("");
    char *help =
        cli_format("%s%s%s%s%s%s", option->help, alias, *notes ? " (" : "", notes, *notes ? ")" : "", variable);
    free(notes);
    free(alias);
    return help;
}

static void print_option(FILE *file, const cli_option *option, int width)
{
    enum { INDENT = 32 };
    char title[80];
    cli_option_title(title, sizeof title, option);
    int used = fprintf(file, "  %s%s", option->letter == '\0' ? "    " : "", title);
    if (used > INDENT - 2)
        fprintf(file, "\n%*s", INDENT, "");
    else
        fprintf(file, "%*s", INDENT - used, "");
    CLI_OWNED(cli_drop) char *help = cli_option_help(option);
    cli_print_wrapped(file, help, INDENT, width);
    fputc('\n', file);
}

void cli_print_help(FILE *file, const cli_command *command)
{
    int width = cli_width(file) < 100 ? cli_width(file) : 100;
    if (width < 60) width = 60;
    fprintf(file, "mercer %s: %s\n\nusage: mercer %s%s%s [options]\n\n", command->name, command->summary, command->name,
            *command->positional ? " " : "", command->positional);
    cli_print_wrapped(file, command->description, 0, width);
    fprintf(file, "\n\nExamples:\n");
    for (const char *line = command->examples; *line != '\0';) {
        int length = (int)strcspn(line, "\n");
        fprintf(file, "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
    for (int g = 0; cli_groups[g] != NULL; g++) {
        const cli_option *option = cli_next_option(command, cli_groups[g], NULL);
        if (option != NULL) fprintf(file, "\n%s:\n", cli_groups[g]);
        for (; option != NULL; option = cli_next_option(command, cli_groups[g], option))
            print_option(file, option, width);
    }
    fprintf(file, "\nExit codes: see mercer help\n");
}

void cli_print_overview(FILE *file)
{
    fprintf(file, "mercer %s: large kernel models\n\nusage: mercer COMMAND [options]\n\n", mercer_version());
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i].hidden) fprintf(file, "  %-13s %s\n", cli_commands[i].name, cli_commands[i].summary);
    fprintf(file, "\n  mercer COMMAND --help   options of a command\n"
                  "  mercer --version        the version\n\n"
                  "Numbers may be written 20k, 5M; sizes 8G, 16GiB; times 30s, 10m, 1h.\n\nExit codes:\n");
    for (int i = 0; cli_exit_codes[i][0] != NULL; i++)
        fprintf(file, "  %-9s %s\n", cli_exit_codes[i][0], cli_exit_codes[i][1]);
}

int cli_help(const cli_values *v)
{
    const char *name = cli_positional(v, 0);
    if (name == NULL) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(name);
    if (command == NULL) {
        const char *meant = cli_suggest_command(name);
        return cli_error(CLI_USAGE, "no command '%s'%s%s%s", name, meant ? "; did you mean '" : "; see mercer help",
                         meant ? meant : "", meant ? "'?" : "");
    }
    cli_print_help(stdout, command);
    return CLI_OK;
}
