/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/options: the table of options, and everything that is generated from it and from the table of commands: the
 * command line parser, configuration files, --help, man pages, completions, and the reference in docs/cli.md.
 *
 * An option is a row of option_table.c; option_values.c checks and stores its value. Values come from defaults, the
 * configuration file, the environment and the command line; later sources override earlier ones.
 */
#ifndef MERCER_CLI_OPTIONS_H
#define MERCER_CLI_OPTIONS_H

#include "cli.h"

typedef enum cli_type {
    CLI_TEXT,
    CLI_LIST,     /* comma-separated texts; a repeated option appends to the list */
    CLI_INPUT,    /* input path; must differ from all output files */
    CLI_OUTPUT,   /* output path */
    CLI_INTEGER,  /* 10000, 100k, 5M, 1G (powers of 1000), or a keyword from `words` */
    CLI_BYTES,    /* 8G, 16GiB, 500MB */
    CLI_NUMBER,   /* 0.5, 1e-3, or a keyword from `words` */
    CLI_DURATION, /* seconds: 30, 30s, 10m, 1.5h */
    CLI_CHOICE,   /* a keyword from `words` */
    CLI_SWITCH,   /* on, off, auto */
    CLI_FLAG      /* present or absent, without a value */
} cli_type;

/* Commands as bits; each option stores the set of commands that accept it. */
enum {
    CLI_TRAIN = 1 << 0,
    CLI_PREDICT = 1 << 1,
    CLI_EVAL = 1 << 2,
    CLI_PLAN = 1 << 3,
    CLI_INSPECT = 1 << 4,
    CLI_RESUME = 1 << 5,
    CLI_CENTERS = 1 << 6,
    CLI_SYNTH = 1 << 7,
    CLI_CONVERT = 1 << 8,
    CLI_BENCH = 1 << 9,
    CLI_DEMO = 1 << 10,
    CLI_REPORT = 1 << 11,
    CLI_COMPLETIONS = 1 << 12,
    CLI_MAN = 1 << 13,
    CLI_HELP = 1 << 14,
    CLI_EXPLAIN = 1 << 15,
    CLI_EXPORT = 1 << 17
};

typedef struct cli_option {
    const char *name;
    const char *alias; /* second long name, or NULL */
    char letter;       /* short name, or 0 */
    cli_type type;
    const char *metavar; /* placeholder of the value in the help text; NULL for flags */
    const char *words; /* "a|b|c": keywords of a choice, alternatives to a number, or completions of a text; or NULL */
    const char *fallback;    /* default value; NULL: none */
    const char *environment; /* environment variable with the default value, or NULL */
    uint32_t commands;       /* bits of the commands that accept the option */
    uint32_t required;       /* bits of the commands that require the option */
    const char *group;       /* section heading in the help text */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name;
    uint32_t bit;
    int (*run)(const cli_values *v);
    int least, most;        /* minimum and maximum number of positional arguments */
    const char *positional; /* placeholder of the positional arguments in the help text, or "" */
    const char *summary;
    const char *description;
    const char *examples; /* one command per line */
    const char *words;    /* "a|b": completions of the first positional argument; "FILE", "DIR"; or NULL */
    int hidden;           /* true: not listed in the overview */
} cli_command;

/* Returns whether the value is the name of a file or folder. */
static inline int cli_is_path(const cli_option *option)
{
    return option->type == CLI_INPUT || option->type == CLI_OUTPUT;
}

/* Returns the length of the prefix before the path in a value such as "file:PATH"; 0 if the value contains no path. */
int cli_path_in(const cli_option *option, const char *text);

extern const cli_option *cli_options;
extern int cli_option_count;
/* Builds cli_options; called once, before any other function of cli/options. */
void cli_options_init(void);
extern const cli_command cli_commands[];
extern const int cli_command_count;

/* Find a command or option; NULL if not found. Names are not abbreviated; '_' in an option name counts as '-'. */
const cli_command *cli_find_command(const char *name);
const cli_option *cli_find_option(const cli_command *command, const char *name);
const cli_option *cli_find_letter(const cli_command *command, char letter);
/* Returns the option of a command that follows `before` in table order; the first option if `before` is NULL, NULL
   after the last option. If `group` is not NULL, only options of this group count. */
const cli_option *cli_next_option(const cli_command *command, const char *group, const cli_option *before);
/* Return the name most similar to a mistyped name, or NULL if no name is similar. */
const char *cli_suggest_option(const cli_command *command, const char *name);
const char *cli_suggest_command(const char *name);

/* ---- Values (option_values.c) ------------------------------------------------------------------------------------ */

typedef enum cli_origin { CLI_FROM_DEFAULT, CLI_FROM_CONFIG, CLI_FROM_ENVIRONMENT, CLI_FROM_COMMAND } cli_origin;

cli_values *cli_values_new(const cli_command *command); /* initialized with the defaults */
cli_values *cli_values_copy(const cli_values *v);
void cli_values_free(cli_values *v);
CLI_RELEASE(cli_drop_values, cli_values, cli_values_free)
const cli_command *cli_values_command(const cli_values *v);
/* Checks the value and stores a copy, unless the current value has an origin of higher precedence. `where`: start of
   error messages, such as "--epochs" or "run.json: epochs". Returns an exit code. */
int cli_values_set(cli_values *v, const cli_option *option, const char *value, cli_origin origin, const char *where);
void cli_values_add_positional(cli_values *v, const char *text);
cli_origin cli_values_origin(const cli_values *v, const cli_option *option);
const char *cli_values_get(const cli_values *v, const cli_option *option); /* NULL if not set */

/* Parse a number with its suffix. Return 0, or -1 if the text is not a number. */
int cli_read_integer(const char *text, int64_t *out);
int cli_read_number(const char *text, double *out);
/* Returns whether `word` is one of "a|b|c". */
int cli_has_word(const char *words, const char *word);

/* ---- The command line (parse.c) and configuration files (config.c) ----------------------------------------------- */

/* Parses the arguments after the command's name into v. *help: 1 if --help is among them, 2 for --help all. Returns an
   exit code. */
int cli_parse(cli_values *v, int count, char **arguments, int *help);
/* Sets --model and --x from the positional arguments of commands on tables, and the default output file, which depends
   on them (positional.c). Returns an exit code. */
int cli_take_positional(cli_values *v);
/* Add the values from the environment and from --config. Return an exit code. */
int cli_read_environment(cli_values *v);
int cli_read_config(cli_values *v, const char *path);
/* Sets values from the keys of a JSON object; `from` names the source in errors. Returns an exit code. */
int cli_take_config(cli_values *v, const json_t *object, const char *from, cli_origin origin);
/* Copies data from standard input ("-") and pipes to temporary files, and replaces the names in `v` by the names of
   these files. Returns an exit code. */
int cli_open_pipes(cli_values *v);
/* Returns whether the path is standard input ("-") or a pipe. */
int cli_is_pipe(const char *path);
/* Returns a copy of a message in which the names of these temporary files are replaced by the names that the user
   gave. */
char *cli_name_pipes(const char *text);
/* Reports required options that are missing. Returns an exit code. */
int cli_check_required(const cli_values *v);
/* Checks that no file is both an input and an output, or two outputs, even under different names. Must be called before
   any file is opened. Returns an exit code. */
int cli_check_files(const cli_values *v);
/* Returns size and modification time of every input file, keyed by option and name, to detect changes before a
   resume. */
json_t *cli_input_states(const cli_values *v);
/* Returns the values as an object that --config accepts. Omits options without a value, and defaults that would have
   another effect if given explicitly. */
json_t *cli_config_object(const cli_values *v);
int cli_print_config(const cli_values *v);
/* Returns a text as JSON: a string, or {"hex": ...} if it is not valid UTF-8, as file names may be. */
json_t *cli_json_text(const char *text);

/* ---- Texts generated from the tables (help.c, man.c, command_completions.c) -------------------------------------- */

void cli_print_overview(FILE *file);
/* Prints the help of a command: the common options, or the description and all options. */
void cli_print_help(FILE *file, const cli_command *command, int all);
/* Writes the title of an option: "-o, --output FILE". */
void cli_option_title(char *text, size_t size, const cli_option *option);
/* Returns the help of an option with its keywords and default. Release with free. */
char *cli_option_help(const cli_option *option);
/* Returns "a|b|c" as "a, b, c". Release with free. */
char *cli_word_list(const char *words);
extern const char *const cli_exit_codes[][2]; /* {"65", "what it means"}, ..., {NULL, NULL} */
/* Group headings in display order, NULL-terminated. */
extern const char *const cli_groups[];

#endif
