/* SPDX-License-Identifier: BSD-3-Clause */
/* Manual pages, generated from the tables: mercer(1) and mercer-COMMAND(1). */
#include "commands/commands.h"
#include "options/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Writes text with troff's special characters escaped; "-" becomes a hyphen-minus that can be copied. */
static void put_escaped(FILE *file, const char *text)
{
    int line_begins = 1;
    for (; *text != '\0'; text++) {
        if (line_begins && (*text == '.' || *text == '\'')) fputs("\\&", file);
        if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else
            fputc(*text, file);
        line_begins = *text == '\n';
    }
}

static void put_title(FILE *file, const char *page)
{
    fputs(".TH \"", file);
    for (const char *at = page; *at != '\0'; at++) {
        if (*at == '-') fputc('\\', file);
        fputc(toupper((unsigned char)*at), file);
    }
    fprintf(file, "\" \"1\" \"\" \"mercer %s\" \"Mercer\"\n", mercer_version());
}

static void put_exit_codes(FILE *file)
{
    fputs(".SH EXIT STATUS\n", file);
    for (int i = 0; cli_exit_codes[i][0] != NULL; i++) {
        fprintf(file, ".TP\n.B %s\n", cli_exit_codes[i][0]);
        put_escaped(file, cli_exit_codes[i][1]);
        fputs(".\n", file);
    }
}

static void put_heading(FILE *file, const char *group)
{
    fputs(".SH ", file);
    for (; *group != '\0'; group++) fputc(toupper((unsigned char)*group), file);
    fputs(" OPTIONS\n", file);
}

static void put_command_page(FILE *file, const cli_command *command)
{
    CLI_OWNED(cli_drop) char *page = cli_format("mercer-%s", command->name);
    put_title(file, page);
    fputs(".SH NAME\n", file);
    put_escaped(file, page);
    fputs(" \\- ", file);
    put_escaped(file, command->summary);
    fprintf(file, "\n.SH SYNOPSIS\n.B mercer %s\n", command->name);
    if (*command->positional != '\0') fprintf(file, ".I %s\n", command->positional);
    fputs(".RI [ options ]\n.SH DESCRIPTION\n", file);
    put_escaped(file, command->description);
    fputc('\n', file);
    for (int g = 0; cli_groups[g] != NULL; g++) {
        const cli_option *option = cli_next_option(command, cli_groups[g], NULL);
        if (option != NULL) put_heading(file, cli_groups[g]);
        for (; option != NULL; option = cli_next_option(command, cli_groups[g], option)) {
            char title[80];
            cli_option_title(title, sizeof title, option);
            CLI_OWNED(cli_drop) char *help = cli_option_help(option);
            fputs(".TP\n.B ", file);
            put_escaped(file, title);
            fputc('\n', file);
            put_escaped(file, help);
            fputs(".\n", file);
        }
    }
    put_exit_codes(file);
    fputs(".SH EXAMPLES\n.nf\n", file);
    put_escaped(file, command->examples);
    fputs("\n.fi\n.SH SEE ALSO\n.BR mercer (1)\n", file);
}

static void put_overview_page(FILE *file)
{
    put_title(file, "mercer");
    fputs(".SH NAME\nmercer \\- train, evaluate and use large kernel models\n"
          ".SH SYNOPSIS\n.B mercer\n.I COMMAND\n.RI [ options ]\n.SH DESCRIPTION\n"
          "Mercer trains models f(x) = sum_j alpha_j K(x, z_j) with many centers z_j on much data.\n"
          "Each command has its own page.\n.SH COMMANDS\n",
          file);
    for (int i = 0; i < cli_command_count; i++) {
        if (cli_commands[i].hidden) continue;
        fprintf(file, ".TP\n.BR mercer\\-%s (1)\n", cli_commands[i].name);
        put_escaped(file, cli_commands[i].summary);
        fputs(".\n", file);
    }
    put_exit_codes(file);
    fputs(".SH ENVIRONMENT\n", file);
    for (int i = 0; i < cli_option_count; i++) {
        if (cli_options[i].environment == NULL) continue;
        fprintf(file, ".TP\n.B %s\ndefault of \\-\\-%s.\n", cli_options[i].environment, cli_options[i].name);
    }
    fputs(".TP\n.B NO_COLOR\nno colors.\n", file);
}

/* Writes one page to a file or stdout; command NULL: the overview. */
static int write_page(const char *path, const cli_command *command)
{
    cli_output *output = NULL;
    CLI_TRY(cli_output_open(&output, path));
    if (command == NULL)
        put_overview_page(cli_output_file(output));
    else
        put_command_page(cli_output_file(output), command);
    return cli_output_close(output);
}

static int write_all(const char *folder)
{
    char *path = cli_format("%s/mercer.1", folder);
    int code = write_page(path, NULL);
    free(path);
    for (int i = 0; i < cli_command_count && code == CLI_OK; i++) {
        if (cli_commands[i].hidden) continue;
        path = cli_format("%s/mercer-%s.1", folder, cli_commands[i].name);
        code = write_page(path, &cli_commands[i]);
        free(path);
    }
    return code;
}

int cli_man(const cli_values *v)
{
    const char *name = cli_positional(v, 0), *path = cli_text(v, "output");
    const cli_command *command = name != NULL ? cli_find_command(name) : NULL;
    if (name != NULL && command == NULL) return cli_error(CLI_USAGE, "no command '%s'; see mercer help", name);
    if (cli_text(v, "directory") != NULL) return write_all(cli_text(v, "directory"));
    return write_page(path != NULL ? path : "-", command);
}
