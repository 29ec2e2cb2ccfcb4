/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions for bash, zsh and fish, generated from the tables of commands and options. */
#include "commands/commands.h"
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

/* Returns "a|b|c" as "a b c". Release with free. */
static char *spaced(const char *words)
{
    char *text = cli_copy(words != NULL ? words : "");
    for (char *at = strchr(text, '|'); at != NULL; at = strchr(at, '|')) *at = ' ';
    return text;
}

/* Returns the possible values of an option, separated by spaces; NULL if the option is not a choice from a list.
   Release with free. */
static char *option_words(const cli_option *option)
{
    if (option->type == CLI_SWITCH) return cli_copy("on off auto");
    return option->words != NULL && !cli_is_path(option) ? spaced(option->words) : NULL;
}

/* Returns the possible first arguments of a command; "" if the first argument is a file; NULL if the command takes no
   argument. Release with free. */
static char *argument_words(const cli_command *command)
{
    if (command->words == NULL) return NULL;
    return strchr(command->words, '|') != NULL ? spaced(command->words) : cli_copy("");
}

/* Writes the first clause of a help text without characters that are special to the shell. */
static void put_plain(FILE *file, const char *text)
{
    for (; *text != '\0' && *text != ';'; text++)
        if (strchr("'\"`$\\[]", *text) == NULL) fputc(*text == ':' ? ',' : *text, file);
}

/* ---- bash -------------------------------------------------------------------------------------------------------- */

static void put_bash_command(FILE *file, const cli_command *command)
{
    fprintf(file, "    %s)\n        case \"$previous\" in\n", command->name);
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;) {
        if (option->type == CLI_FLAG) continue;
        char *words = option_words(option);
        fprintf(file, "        --%s", option->name);
        if (option->letter != '\0') fprintf(file, "|-%c", option->letter);
        if (words != NULL)
            fprintf(file, ") words='%s' ;;\n", words);
        else
            fprintf(file, ") %s ;;\n", cli_is_path(option) ? "files=1" : "return");
        free(words);
    }
    fputs("        *) words='", file);
    for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;)
        fprintf(file, " --%s", option->name);
    fputs("'", file);
    char *words = argument_words(command);
    if (words != NULL) fputs("; [[ $current == -* ]] || ", file);
    if (words != NULL && *words != '\0') fprintf(file, "words='%s'", words);
    if (words != NULL && *words == '\0') fputs("files=1", file);
    fputs(" ;;\n        esac ;;\n", file);
    free(words);
}

static void put_bash(FILE *file)
{
    fputs("# bash completion for mercer; made by: mercer completions bash\n_mercer()\n{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]} words='' files=0\n"
          "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '",
          file);
    for (int i = 0; i < cli_command_count; i++)
        if (!cli_commands[i].hidden) fprintf(file, "%s ", cli_commands[i].name);
    fputs("--help --version' -- \"$current\"))\n        return\n    fi\n    case \"$command\" in\n", file);
    for (int i = 0; i < cli_command_count; i++) put_bash_command(file, &cli_commands[i]);
    fputs("    esac\n    if ((files)); then\n        compopt -o filenames 2>/dev/null\n"
          "        COMPREPLY=($(compgen -f -- \"$current\"))\n    else\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n    fi\n}\n"
          "complete -F _mercer mercer\n",
          file);
}

/* ---- zsh --------------------------------------------------------------------------------------------------------- */

static void put_zsh_option(FILE *file, const cli_option *option)
{
    CLI_OWNED(cli_drop) char *words = option_words(option);
    if (option->letter != '\0')
        fprintf(file, "            '(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter,
                option->name);
    else
        fprintf(file, "            '--%s[", option->name);
    put_plain(file, option->help);
    fputs(option->type != CLI_FLAG ? "]:value:" : "]", file);
    if (words != NULL) fprintf(file, "(%s)", words);
    fputs(cli_is_path(option) ? "_files' \\\n" : "' \\\n", file);
}

static void put_zsh(FILE *file)
{
    fputs("#compdef mercer\n# zsh completion for mercer; made by: mercer completions zsh\n_mercer() {\n"
          "    local -a commands\n    commands=(\n",
          file);
    for (int i = 0; i < cli_command_count; i++) {
        if (cli_commands[i].hidden) continue;
        fprintf(file, "        '%s:", cli_commands[i].name);
        put_plain(file, cli_commands[i].summary);
        fputs("'\n", file);
    }
    fputs("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n",
          file);
    for (int c = 0; c < cli_command_count; c++) {
        const cli_command *command = &cli_commands[c];
        fprintf(file, "    %s)\n        _arguments -s \\\n", command->name);
        for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;)
            put_zsh_option(file, option);
        CLI_OWNED(cli_drop) char *words = argument_words(command);
        if (words != NULL && *words != '\0')
            fprintf(file, "            '1:argument:(%s)' ;;\n", words);
        else
            fprintf(file, "            '*:argument:%s' ;;\n", words != NULL ? "_files" : "");
    }
    /* If zsh autoloads the file, its contents are the body of the completion function, which must then call _mercer. If
       the user sources the file, it only registers _mercer. */
    fputs("    esac\n}\nif [[ $funcstack[1] == _mercer ]]; then\n    _mercer \"$@\"\nelse\n"
          "    compdef _mercer mercer\nfi\n",
          file);
}

/* ---- fish -------------------------------------------------------------------------------------------------------- */

static void put_fish(FILE *file)
{
    fputs("# fish completion for mercer; made by: mercer completions fish\ncomplete -c mercer -f\n", file);
    for (int i = 0; i < cli_command_count; i++) {
        if (cli_commands[i].hidden) continue;
        fprintf(file, "complete -c mercer -n __fish_use_subcommand -a %s -d '", cli_commands[i].name);
        put_plain(file, cli_commands[i].summary);
        fputs("'\n", file);
    }
    for (int c = 0; c < cli_command_count; c++) {
        const cli_command *command = &cli_commands[c];
        for (const cli_option *option = NULL; (option = cli_next_option(command, NULL, option)) != NULL;) {
            char *words = option_words(option);
            fprintf(file, "complete -c mercer -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
            if (option->letter != '\0') fprintf(file, " -s %c", option->letter);
            if (option->type != CLI_FLAG) fputs(cli_is_path(option) ? " -rF" : " -x", file);
            if (words != NULL) fprintf(file, " -a '%s'", words);
            fputs(" -d '", file);
            put_plain(file, option->help);
            fputs("'\n", file);
            free(words);
        }
        char *words = argument_words(command);
        if (words != NULL) fprintf(file, "complete -c mercer -n '__fish_seen_subcommand_from %s'", command->name);
        if (words != NULL && *words != '\0') fprintf(file, " -a '%s'\n", words);
        if (words != NULL && *words == '\0') fputs(" -F\n", file);
        free(words);
    }
}

int cli_completions(const cli_values *v)
{
    const char *shell = cli_positional(v, 0);
    if (!cli_has_word("bash|zsh|fish", shell))
        return cli_error(CLI_USAGE, "completions: '%s' is not one of bash, zsh, fish", shell);
    const char *path = cli_text(v, "output");
    cli_output *output = NULL;
    CLI_TRY(cli_output_open(&output, path != NULL ? path : "-"));
    if (strcmp(shell, "bash") == 0)
        put_bash(cli_output_file(output));
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(cli_output_file(output));
    else
        put_fish(cli_output_file(output));
    return cli_output_close(output);
}
