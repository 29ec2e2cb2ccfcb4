/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions for bash, zsh and fish, made from the tables. */
#include "commands/commands.h"
#include "options/options.h"

#include <string.h>

/* "a|b|c" with `between` instead of the bars. */
static void put_words(FILE *file, const char *words, const char *between)
{
    for (; *words != '\0'; words++) {
        if (*words == '|')
            fputs(between, file);
        else
            fputc(*words, file);
    }
}

static const char *option_words(const cli_option *option)
{
    if (option->type == CLI_SWITCH) return "on|off|auto";
    return option->words;
}

/* Help without what the shell would read as something else, cut at the first clause. */
static void put_plain(FILE *file, const char *text)
{
    for (; *text != '\0' && *text != ';'; text++) {
        if (strchr("'\"`$\\[]", *text) == NULL) fputc(*text == ':' ? ',' : *text, file);
    }
}

/* ---- bash -------------------------------------------------------------------------------------------------------- */

static void put_bash_command(FILE *file, const cli_command *command)
{
    fprintf(file, "    %s)\n        case \"$previous\" in\n", command->name);
    for (int i = 0; i < cli_option_count; i++) {
        const cli_option *option = &cli_options[i];
        if ((option->commands & command->bit) == 0 || option->type == CLI_FLAG) continue;
        const char *words = option_words(option);
        fprintf(file, "        --%s", option->name);
        if (option->letter != '\0') fprintf(file, "|-%c", option->letter);
        if (cli_is_path(option)) {
            fprintf(file, ") files=1 ;;\n");
        } else if (words != NULL) {
            fputs(") words='", file);
            put_words(file, words, " ");
            fputs("' ;;\n", file);
        } else {
            fprintf(file, ") return ;;\n");
        }
    }
    fputs("        *) words='", file);
    for (int i = 0; i < cli_option_count; i++) {
        if ((cli_options[i].commands & command->bit) != 0) fprintf(file, " --%s", cli_options[i].name);
    }
    fputs("'", file);
    if (command->words != NULL && strchr(command->words, '|') != NULL) {
        fputs("; [[ $current == -* ]] || words='", file);
        put_words(file, command->words, " ");
        fputs("'", file);
    } else if (command->words != NULL) {
        fputs("; [[ $current == -* ]] || files=1", file);
    }
    fputs(" ;;\n        esac ;;\n", file);
}

static void put_bash(FILE *file)
{
    fputs("# bash completion for mercer; made by: mercer completions bash\n_mercer()\n{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]} words='' files=0\n"
          "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '",
          file);
    for (int i = 0; i < cli_command_count; i++) {
        if (!cli_commands[i].hidden) fprintf(file, "%s ", cli_commands[i].name);
    }
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
    const char *words = option_words(option);
    if (option->letter != '\0')
        fprintf(file, "            '(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter,
                option->name);
    else
        fprintf(file, "            '--%s[", option->name);
    put_plain(file, option->help);
    fputc(']', file);
    if (option->type != CLI_FLAG) {
        fputs(":value:", file);
        if (cli_is_path(option)) {
            fputs("_files", file);
        } else if (words != NULL) {
            fputc('(', file);
            put_words(file, words, " ");
            fputc(')', file);
        }
    }
    fputs("' \\\n", file);
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
        for (int i = 0; i < cli_option_count; i++) {
            if ((cli_options[i].commands & command->bit) != 0) put_zsh_option(file, &cli_options[i]);
        }
        if (command->words != NULL && strchr(command->words, '|') != NULL) {
            fputs("            '1:argument:(", file);
            put_words(file, command->words, " ");
            fputs(")' ;;\n", file);
        } else {
            fprintf(file, "            '*:argument:%s' ;;\n", command->words != NULL ? "_files" : "");
        }
    }
    /* Loaded by name it is the function's own first call; sourced it only registers itself. */
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
        for (int i = 0; i < cli_option_count; i++) {
            const cli_option *option = &cli_options[i];
            const char *words = option_words(option);
            if ((option->commands & command->bit) == 0) continue;
            fprintf(file, "complete -c mercer -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
            if (option->letter != '\0') fprintf(file, " -s %c", option->letter);
            if (cli_is_path(option)) fputs(" -rF", file);
            if (!cli_is_path(option) && option->type != CLI_FLAG) fputs(" -x", file);
            if (!cli_is_path(option) && words != NULL) {
                fputs(" -a '", file);
                put_words(file, words, " ");
                fputs("'", file);
            }
            fputs(" -d '", file);
            put_plain(file, option->help);
            fputs("'\n", file);
        }
        if (command->words == NULL) continue;
        fprintf(file, "complete -c mercer -n '__fish_seen_subcommand_from %s'", command->name);
        if (strchr(command->words, '|') != NULL) {
            fputs(" -a '", file);
            put_words(file, command->words, " ");
            fputs("'\n", file);
        } else {
            fputs(" -F\n", file);
        }
    }
}

int cli_completions(const cli_values *v)
{
    const char *shell = cli_positional(v, 0);
    if (!cli_has_word("bash|zsh|fish", shell))
        return cli_error(CLI_USAGE, "completions: '%s' is none of bash, zsh, fish", shell);
    const char *path = cli_text(v, "output");
    cli_output *output = NULL;
    int code = cli_output_open(&output, path != NULL ? path : "-");
    if (code != CLI_OK) return code;
    if (strcmp(shell, "bash") == 0)
        put_bash(cli_output_file(output));
    else if (strcmp(shell, "zsh") == 0)
        put_zsh(cli_output_file(output));
    else
        put_fish(cli_output_file(output));
    return cli_output_close(output);
}
