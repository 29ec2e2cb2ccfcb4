/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/options: the table of options, and everything that is made from it and from the table of commands: the parser of
 * the command line, configuration files, --help, man pages, completions, and the reference in docs/cli.md.
 *
 * An option is a row of option_table.c; option_values.c checks and keeps its value. Values come from defaults, the
 * configuration file, the environment and the command line; the later ones win.
 */
#ifndef MERCER_CLI_OPTIONS_H
#define MERCER_CLI_OPTIONS_H

#include "cli.h"

typedef enum cli_type {
    CLI_TEXT,
    CLI_LIST,     /* texts with commas between them; given again, they are added */
    CLI_INPUT,    /* a path that is read; no output may be the same file */
    CLI_OUTPUT,   /* a path that is written */
    CLI_INTEGER,  /* 10000, 100k, 5M, 1G (powers of 1000); also one of the words in `words` */
    CLI_BYTES,    /* 8G, 16GiB, 500MB */
    CLI_NUMBER,   /* 0.5, 1e-3; also one of the words */
    CLI_DURATION, /* seconds: 30, 30s, 10m, 1.5h */
    CLI_CHOICE,   /* one of the words */
    CLI_SWITCH,   /* on, off, auto */
    CLI_FLAG      /* given or not */
} cli_type;

/* Commands as bits: an option has the set of those that take it. */
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
    const char *alias; /* another long name, or NULL */
    char letter;       /* short name, or 0 */
    cli_type type;
    const char *metavar;     /* what stands for the value in texts; NULL for flags */
    const char *words;       /* "a|b|c": of a choice, instead of a number, or for completing a text; or NULL */
    const char *fallback;    /* the default, or NULL: none */
    const char *environment; /* a variable that is read, or NULL */
    uint32_t commands;       /* who takes it */
    uint32_t required;       /* who must have it */
    const char *group;       /* its heading in help texts */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name;
    uint32_t bit;
    int (*run)(const cli_values *v);
    int least, most;        /* positional arguments */
    const char *positional; /* their text, or "" */
    const char *summary;
    const char *description;
    const char *examples; /* lines, each a command */
    const char *words; /* "a|b": what the first positional argument may be, for completions; "FILE", "DIR"; or NULL */
    int hidden;        /* not listed in the overview */
} cli_command;

/* The value is the name of a file or folder. */
static inline int cli_is_path(const cli_option *option)
{
    return option->type == CLI_INPUT || option->type == CLI_OUTPUT;
}

/* Characters before the path in a text "file:PATH" of an option that takes one; 0: there is none. */
int cli_path_in(const cli_option *option, const char *text);

extern const cli_option *cli_options;
extern int cli_option_count;
/* Makes the table; called once, before anything else. */
void cli_options_init(void);
extern const cli_command cli_commands[];
extern const int cli_command_count;

/* NULL if there is none. Names are compared as wholes; '_' in a name counts as '-'. */
const cli_command *cli_find_command(const char *name);
const cli_option *cli_find_option(const cli_command *command, const char *name);
const cli_option *cli_find_letter(const cli_command *command, char letter);
/* The options of a command in their order, of one group or (NULL) of all: the one behind `before`; NULL: the first. */
const cli_option *cli_next_option(const cli_command *command, const char *group, const cli_option *before);
/* The name that was most likely meant, or NULL. */
const char *cli_suggest_option(const cli_command *command, const char *name);
const char *cli_suggest_command(const char *name);

/* ---- Values (option_values.c)
   ------------------------------------------------------------------------------------------- */

typedef enum cli_origin { CLI_FROM_DEFAULT, CLI_FROM_CONFIG, CLI_FROM_ENVIRONMENT, CLI_FROM_COMMAND } cli_origin;

cli_values *cli_values_new(const cli_command *command); /* with the defaults */
cli_values *cli_values_copy(const cli_values *v);
void cli_values_free(cli_values *v);
CLI_RELEASE(cli_drop_values, cli_values, cli_values_free)
const cli_command *cli_values_command(const cli_values *v);
/* Checks the value and keeps a copy, unless what is there comes from a stronger origin. `where` begins the message of
   an error: "--epochs", "run.json: epochs". Exit code. */
int cli_values_set(cli_values *v, const cli_option *option, const char *value, cli_origin origin, const char *where);
void cli_values_add_positional(cli_values *v, const char *text);
cli_origin cli_values_origin(const cli_values *v, const cli_option *option);
const char *cli_values_get(const cli_values *v, const cli_option *option); /* NULL if it has no value */

/* Numbers with their suffixes; 0, or -1 if the text is none. */
int cli_read_integer(const char *text, int64_t *out);
int cli_read_number(const char *text, double *out);
/* True if `word` is one of "a|b|c". */
int cli_has_word(const char *words, const char *word);

/* ---- The command line (parse.c) and configuration files (config.c) ----------------------------------------------- */

/* Reads arguments behind the command's name into v. *help is set if --help is among them. Exit code. */
int cli_parse(cli_values *v, int count, char **arguments, int *help);
/* What the environment and --config add. Exit code. */
int cli_read_environment(cli_values *v);
int cli_read_config(cli_values *v, const char *path);
/* Keys of an object as values; `from` names it in errors. */
int cli_take_config(cli_values *v, const json_t *object, const char *from, cli_origin origin);
/* Options that must be there and are not. Exit code. */
int cli_check_required(const cli_values *v);
/* No file is both read and written, or written twice, under whatever names: nothing has been opened yet. Exit code. */
int cli_check_files(const cli_values *v);
/* Size and time of every file that is read, by option and name: what changed since is known by it. */
json_t *cli_input_states(const cli_values *v);
/* All values as an object that --config takes; those without a value are left out, and those whose default would change
   its meaning if it were given. */
json_t *cli_config_object(const cli_values *v);
int cli_print_config(const cli_values *v);
/* A text as JSON: a string, or {"hex": ...} if it is not UTF-8, as names of files may be. */
json_t *cli_json_text(const char *text);

/* ---- Texts made from the tables (help.c, man.c, command_completions.c)
   --------------------------------------------------- */

void cli_print_overview(FILE *file);
void cli_print_help(FILE *file, const cli_command *command);
/* "-o, --output FILE" */
void cli_option_title(char *text, size_t size, const cli_option *option);
/* The help of an option, with its words and default. Released with free. */
char *cli_option_help(const cli_option *option);
/* "a|b|c" as "a, b, c". Released with free. */
char *cli_word_list(const char *words);
extern const char *const cli_exit_codes[][2]; /* {"65", "what it means"}, ..., {NULL, NULL} */
/* The headings of groups in their order, ended by NULL. */
extern const char *const cli_groups[];

#endif
