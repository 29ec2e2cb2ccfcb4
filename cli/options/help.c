/* SPDX-License-Identifier: BSD-3-Clause */
/* --help, generated from the tables. */
#include "commands/commands.h"
#include "options/options.h"

#include <limits.h>
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
    /* Do not show the keywords of a text option, which are only hints for completion, or "auto" of a number, which the
       help shows as the default. */
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

static void print_option(FILE *file, const cli_option *option, const char *help, int indent, int width)
{
    char title[80];
    cli_option_title(title, sizeof title, option);
    int used = fprintf(file, "  %s%s", option->letter == '\0' ? "    " : "", title);
    if (used > indent - 2)
        fprintf(file, "\n%*s", indent, "");
    else
        fprintf(file, "%*s", indent - used, "");
    cli_print_wrapped(file, help, indent, width);
    fputc('\n', file);
}

/* The options that most users need, by command. Commands without a row show all their options. */
static const struct {
    uint32_t command;
    const char *names;
} common[] = {
    {CLI_TRAIN, "target|task|drop|columns|missing|effort|budget|output|force|verbose|json|help"},
    {CLI_PREDICT, "id-column|keep|probabilities|interval|output|output-format|json|help"},
    {CLI_EVAL, "target|each|confusion|interval|json|help"},
    {CLI_EXPLAIN, "permutation|gradients|repeats|target|json|help"},
    {CLI_PLAN, "target|rows|features|centers|effort|memory|json|help"},
};

/* Returns the names of the common options of a command; NULL if the help shows all options. */
static const char *common_options(const cli_command *command)
{
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (common[i].command == command->bit) return common[i].names;
    return NULL;
}

/* Returns the first clause of an option's help text, followed by the keywords of a choice. Release with free. */
static char *short_help(const cli_option *option)
{
    const char *help = strncmp(option->help, "csv: ", 5) == 0 ? option->help + 5 : option->help;
    const char *bracket = strstr(help, " (");
    size_t length = strcspn(help, ";");
    if (bracket != NULL && (size_t)(bracket - help) < length) length = (size_t)(bracket - help);
    if (option->type != CLI_CHOICE) return cli_format("%.*s", (int)length, help);
    CLI_OWNED(cli_drop) char *words = cli_word_list(option->words);
    return cli_format("%.*s: %s", (int)length, help, words);
}

static void print_common_options(FILE *file, const cli_command *command, const char *names, int width)
{
    for (const char *at = names; *at != '\0';) {
        size_t length = strcspn(at, "|");
        CLI_OWNED(cli_drop) char *name = cli_format("%.*s", (int)length, at);
        const cli_option *option = cli_find_option(command, name);
        CLI_OWNED(cli_drop) char *help = short_help(option);
        print_option(file, option, help, 28, width);
        at += length + (at[length] == '|');
    }
    fprintf(file, "\nAll options: mercer %s --help all, or man mercer-%s\n", command->name, command->name);
}

/* Prints the examples of a command, up to `most` of them. */
static void print_examples(FILE *file, const cli_command *command, int most)
{
    for (const char *line = command->examples; *line != '\0' && most > 0; most--) {
        int length = (int)strcspn(line, "\n");
        fprintf(file, "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
}

void cli_print_help(FILE *file, const cli_command *command, int all)
{
    const char *names = all ? NULL : common_options(command);
    int width = cli_width(file) < 100 ? cli_width(file) : 100;
    if (width < 60) width = 60;
    fprintf(file, "mercer %s: %s\n\nusage: mercer %s%s%s [options]\n\n", command->name, command->summary, command->name,
            *command->positional ? " " : "", command->positional);
    if (names != NULL) {
        print_examples(file, command, 1);
        fputc('\n', file);
        print_common_options(file, command, names, width);
        return;
    }
    cli_print_wrapped(file, command->description, 0, width);
    fprintf(file, "\n\nExamples:\n");
    print_examples(file, command, INT_MAX);
    for (int g = 0; cli_groups[g] != NULL; g++) {
        const cli_option *option = cli_next_option(command, cli_groups[g], NULL);
        if (option != NULL) fprintf(file, "\n%s:\n", cli_groups[g]);
        for (; option != NULL; option = cli_next_option(command, cli_groups[g], option)) {
            CLI_OWNED(cli_drop) char *help = cli_option_help(option);
            print_option(file, option, help, 32, width);
        }
    }
    fprintf(file, "\nExit codes: see mercer help\n");
}

void cli_print_overview(FILE *file)
{
    fprintf(file, "mercer %s: large kernel models\n\nusage: mercer COMMAND [options]\n\n", mercer_version());
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i].hidden) fprintf(file, "  %-13s %s\n", cli_commands[i].name, cli_commands[i].summary);
    fprintf(file, "\n  mercer COMMAND --help       the options that most users need\n"
                  "  mercer COMMAND --help all   all options\n"
                  "  mercer --version            the version\n\n"
                  "Numbers may be written 20k, 5M; sizes 8G, 16GiB; times 30s, 10m, 1h.\n\nExit codes:\n");
    for (int i = 0; cli_exit_codes[i][0] != NULL; i++)
        fprintf(file, "  %-9s %s\n", cli_exit_codes[i][0], cli_exit_codes[i][1]);
}

int cli_help(const cli_values *v)
{
    const char *name = cli_positional(v, 0), *all = cli_positional(v, 1);
    if (name == NULL) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    if (all != NULL && strcmp(all, "all") != 0)
        return cli_error(CLI_USAGE, "help: unexpected argument '%s'; use mercer help %s all", all, name);
    const cli_command *command = cli_find_command(name);
    if (command == NULL) {
        const char *meant = cli_suggest_command(name);
        return cli_error(CLI_USAGE, "no command '%s'%s%s%s", name, meant ? "; did you mean '" : "; see mercer help",
                         meant ? meant : "", meant ? "'?" : "");
    }
    cli_print_help(stdout, command, all != NULL);
    return CLI_OK;
}
