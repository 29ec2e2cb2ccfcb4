/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli: the program `mercer`, written on the public header alone.
 *
 * main.c finds the command and reads its options (options/), commands/ has the commands, ranks/ several ranks at once,
 * report/ the HTML page about a run, terminal/ everything that is printed. This header has what all of them share:
 * options, errors, memory, output files, the run log, the terminal.
 *
 * The program ends with one of the exit codes below. Data go to stdout, messages to stderr. An error is one line:
 * "mercer: file: what is wrong: what to do".
 */
#ifndef MERCER_CLI_H
#define MERCER_CLI_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <mercer/evaluation.h>
#include <mercer/ranks.h>

/* ---- Exit codes and options (options/) --------------------------------------------------------------------------- */

typedef enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1,      /* training broke down, memory refused */
    CLI_USAGE = 2,        /* the command line or configuration is wrong */
    CLI_DATA = 65,        /* a file's contents are wrong, or do not fit */
    CLI_MISSING = 66,     /* an input file does not exist */
    CLI_INTERNAL = 70,    /* a mistake in Mercer */
    CLI_IO = 74,          /* reading or writing failed */
    CLI_INTERRUPTED = 75, /* interrupted, can be resumed */
    CLI_RANKS = 76,       /* another rank died, stopped or was started differently */
    CLI_SIGINT = 130,     /* interrupted, nothing to resume */
    CLI_SIGTERM = 143
} cli_exit;

/* The options of one call, from defaults, configuration file, environment and command line. */
typedef struct cli_values cli_values;

/* An option is asked for by its long name without dashes; a name that the command does not have is a mistake of the
   program (exit code 70). Values were checked when they were read. */
const char *cli_text(const cli_values *v, const char *name);     /* NULL if it has no value */
int64_t cli_integer(const cli_values *v, const char *name);      /* also bytes; 0 if it has no value, or "auto" */
double cli_number(const cli_values *v, const char *name);        /* also durations, in seconds; 0 if it has no value */
int cli_flag(const cli_values *v, const char *name);             /* 1 if set */
mercer_switch cli_switch(const cli_values *v, const char *name); /* on|off|auto */
int cli_given(const cli_values *v, const char *name);            /* 1 unless the value is the default */
int cli_is(const cli_values *v, const char *name, const char *text); /* the value is this text */
int cli_has(const cli_values *v, const char *name);                  /* the command has this option */
int cli_positional_count(const cli_values *v);
const char *cli_positional(const cli_values *v, int i); /* NULL behind the last */
const char *cli_command_name(const cli_values *v);

/* ---- Errors (error.c) -------------------------------------------------------------------------------------------- */

/* Prints "mercer: ..." on stderr, in one line whatever the text holds (cli_visible), and returns `code`. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "mercer: warning: ...", whatever --quiet says; an equal text only once. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit code for a status, and its error with the context's last message. */
int cli_exit_code(mercer_status status);
int cli_fail(mercer_context *context, mercer_status status);
/* CLI_OK for MERCER_OK, else cli_fail. */
int cli_check(mercer_context *context, mercer_status status);
/* Passes an exit code other than CLI_OK on to the caller. */
#define CLI_TRY(call)                                    \
    do {                                                 \
        int cli_try_code = (call);                       \
        if (cli_try_code != CLI_OK) return cli_try_code; \
    } while (0)
/* A line on stderr; nothing with --quiet. */
void cli_say(const cli_values *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A file that would exceed the limit on its size (ulimit -f) is a failed write with an error that names the file, not
   the end of the program. */
void cli_outgrow_limits(void); /* signals.c */
/* A mapped file that is cut is an error with its name. */
void cli_outlive_files(void); /* lost_file.c */
/* Standard streams that were closed lead nowhere: the next file that is opened does not take their place. */
void cli_guard_streams(void); /* output.c */

/* Nothing of a device is given back piece by piece, which takes a quarter of a second: the end of the process does it.
   cli_ends_at_once: whether that was said. */
void cli_end_at_once(void);
int cli_ends_at_once(void);

/* ---- Context ----------------------------------------------------------------------------------------------------- */

/* A context as --threads and --device say; prints the error. Returns an exit code. */
int cli_context(const cli_values *v, mercer_context **out);
/* The same, but a device starts while data are opened: mercer_context_start comes before anything else. */
int cli_context_deferred(const cli_values *v, mercer_context **out);

/*
 * A variable that owns something: `release`, which gets its address, is called when the function returns, whichever way
 * it does.
 *
 *     CLI_OWNED(cli_drop) char *text = cli_copy("...");
 */
#define CLI_OWNED(release) __attribute__((cleanup(release)))
void cli_drop(void *pointer); /* to what cli_allocate, cli_copy and their like gave */
void cli_drop_context(mercer_context **context);
/* Defines a `release` of pointers, which calls `end`. */
#define CLI_RELEASE(release, type, end)         \
    static inline void release(type **variable) \
    {                                           \
        end(*variable);                         \
    }
CLI_RELEASE(cli_drop_dataset, mercer_dataset, mercer_dataset_free)
CLI_RELEASE(cli_drop_model, mercer_model, mercer_model_free)

/* ---- Memory and texts (text.c): these end the program when memory runs out --------------------------------------- */

void *cli_allocate(int64_t count, size_t size); /* zeroed; released with free */
char *cli_copy(const char *text);
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* released with free */
/* The text with more behind it; releases the text, which may be NULL. */
char *cli_append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text with line breaks, escapes and other characters that steer a terminal written out, as \n and \x1b. */
char *cli_visible(const char *text);
/* Items (count) with room for one more; *room is how many fit. */
void *cli_grow(void *items, int64_t count, int64_t *room, size_t size);

enum { CLI_SHORT = 32 };
const char *cli_bytes_text(char text[CLI_SHORT], int64_t bytes);    /* 3.9 GB */
const char *cli_count_text(char text[CLI_SHORT], int64_t count);    /* 60,000 */
const char *cli_seconds_text(char text[CLI_SHORT], double seconds); /* 0.42 s, 1 min 20 s, 3 h 05 min */
/* The fewest digits that read back as the same number: a float if `single`, else a double. */
const char *cli_number_text(char text[CLI_SHORT], double value, int single);
int cli_ends_with(const char *text, const char *ending);
double cli_now(void);       /* seconds of a clock that only goes forward */
void cli_start_clock(void); /* called once, when the program starts */
double cli_elapsed(void);   /* seconds since the program started */

/* ---- Files that the program itself reads, such as configurations (read_file.c) ---------------------------------- */

/* Return all bytes of a file, followed by a zero byte; the caller frees them. Reads regular files and the pipes of
   process substitutions; refuses what could make it wait or read for ever. `missing`: printed after the name if there
   is no such file, or NULL. Exit code. */
int cli_read_file(const char *path, char **out, size_t *length, const char *missing);

/* ---- Output files (output.c): appear under their name when complete, or not at all ------------------------------- */

/* 0, or prints why `path` could not be written (CLI_IO, CLI_MISSING). To be called before long work. */
int cli_check_output(const char *path);

typedef struct cli_output cli_output;
/* Opens a temporary file beside path ("-": stdout, directly). Exit code. */
int cli_output_open(cli_output **out, const char *path);
FILE *cli_output_file(cli_output *output);
/* Flushes, syncs, renames; frees. Exit code, with the error printed. */
int cli_output_close(cli_output *output);
/* Makes a name durable: its folder is on disk. */
void cli_sync_name(const char *path);
void cli_output_drop(cli_output *output); /* removes what was written; NULL is fine */

/* Prints one JSON object and a newline on stdout; steals it. Exit code. */
int cli_print_json(json_t *object);
/* The same for the answer of a command with --json: adds "warnings", the texts of all warnings printed so far. */
int cli_print_answer(json_t *object);
/* The texts of all warnings printed so far, as an array. */
json_t *cli_warnings_json(void);
json_t *cli_json_real(double value); /* null if it is NaN or infinite */

/* ---- The run log (log.c): one JSON object a line ----------------------------------------------------------------- */

typedef struct cli_log cli_log;
/* Whether a log could be written there: a new one, or behind one that is there. Opens nothing. Exit code. */
int cli_check_log(const char *path);
/* path NULL: a log that drops everything. A log that is there is continued. Exit code. */
int cli_log_open(cli_log **out, const char *path);
/* Writes {"event": name, ...}; steals the object. Failures are kept until cli_log_close. */
void cli_log_event(cli_log *log, const char *name, json_t *object);
int cli_log_is_kept(const cli_log *log); /* what is written to it is not dropped */
int cli_log_close(cli_log *log);         /* NULL is fine; exit code, with the error printed */

/* ---- Terminal (terminal.c) --------------------------------------------------------------------------------------- */

int cli_is_terminal(FILE *file);                  /* a terminal that can move its cursor */
int cli_width(FILE *file);                        /* columns */
int cli_colours(const cli_values *v, FILE *file); /* --color, NO_COLOR and TERM honoured */

/* A line at the bottom that is drawn again and again, at most 10 times a second; nothing if stderr is no terminal. */
typedef struct cli_bar {
    int on; /* stderr is a terminal, and --quiet was not given */
    int colours;
    int drawn;   /* there is something to clear */
    double last; /* when it was drawn */
} cli_bar;
void cli_bar_init(cli_bar *bar, const cli_values *v);
/* share of the work done, 0 .. 1 (negative: unknown), and text behind the bar. force: even if drawn just now. */
void cli_bar_draw(cli_bar *bar, double share, const char *text, int force);
void cli_bar_clear(cli_bar *bar);
/* Clears the bar, if there is one, for a line of text; the next cli_bar_draw brings it back. */
void cli_bar_make_way(void);

/* A text that begins in column `begin`, in lines of `width` columns that begin there too; less than 20 columns: in one
   line. */
void cli_print_wrapped(FILE *file, const char *text, int begin, int width);

/* A table with aligned columns. */
typedef struct cli_table cli_table;
cli_table *cli_table_new(int columns, const char *alignment); /* "lrr": left, right, right */
void cli_table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A row of two columns; releases the text, and leaves it out if it is NULL. */
void cli_table_row(cli_table *table, const char *name, char *text);
void cli_table_line(cli_table *table);              /* a rule before the next row */
void cli_table_print(cli_table *table, FILE *file); /* and releases it */
void cli_table_free(cli_table *table);

#endif
