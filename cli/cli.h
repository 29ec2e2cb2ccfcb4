/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli: the program `mercer`, which uses only the public header of the library.
 *
 * main.c finds the command and reads its options (options/). commands/ contains the commands, ranks/ runs several ranks
 * at once, report/ makes the HTML report of a run, terminal/ does all printing. This header declares what these folders
 * share: options, errors, memory, output files, the run log, the terminal.
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
    CLI_FAILURE = 1,      /* training diverged, or not enough memory */
    CLI_USAGE = 2,        /* the command line or configuration is wrong */
    CLI_DATA = 65,        /* invalid or mismatched file contents */
    CLI_MISSING = 66,     /* an input file does not exist */
    CLI_INTERNAL = 70,    /* bug in Mercer */
    CLI_IO = 74,          /* reading or writing failed */
    CLI_INTERRUPTED = 75, /* interrupted, can be resumed */
    CLI_RANKS = 76,       /* another rank died, stopped or was started differently */
    CLI_SIGINT = 130,     /* interrupted, nothing to resume */
    CLI_SIGTERM = 143
} cli_exit;

/* The option values of one program run, from defaults, configuration file, environment and command line. */
typedef struct cli_values cli_values;

/* Separator of file names in a value of --x that names several files, as in mercer_dataset_options.x. */
#define CLI_FILE_SEPARATOR "\x1f"

/* Getters of option values. `name` is the long option name without leading dashes. A command without this option is a
   bug in the caller (exit code 70). The values are valid, because cli_values_set has checked them. */
const char *cli_text(const cli_values *v, const char *name);     /* NULL if not set */
int64_t cli_integer(const cli_values *v, const char *name);      /* for sizes: bytes; 0 if not set or "auto" */
double cli_number(const cli_values *v, const char *name);        /* for durations: seconds; 0 if not set */
int cli_flag(const cli_values *v, const char *name);             /* 1 if set */
mercer_switch cli_switch(const cli_values *v, const char *name); /* on|off|auto */
int cli_given(const cli_values *v, const char *name); /* 1 if set by configuration, environment or command line */
int cli_is(const cli_values *v, const char *name, const char *text); /* 1 if the value equals `text` */
int cli_has(const cli_values *v, const char *name);                  /* 1 if the command has this option */
int cli_positional_count(const cli_values *v);
const char *cli_positional(const cli_values *v, int i); /* NULL after the last */
const char *cli_command_name(const cli_values *v);

/* ---- Errors (error.c) -------------------------------------------------------------------------------------------- */

/* Prints "mercer: ..." on stderr as a single line, with control characters escaped (cli_visible), and returns
   `code`. */
int cli_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints "mercer: warning: ..." even with --quiet; each text is printed only once. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Return the exit code for a status. cli_fail also prints the last error message of the context. */
int cli_exit_code(mercer_status status);
int cli_fail(mercer_context *context, mercer_status status);
/* Returns CLI_OK for MERCER_OK, otherwise calls cli_fail. */
int cli_check(mercer_context *context, mercer_status status);
/* Returns from the calling function if the exit code is not CLI_OK. */
#define CLI_TRY(call)                                    \
    do {                                                 \
        int cli_try_code = (call);                       \
        if (cli_try_code != CLI_OK) return cli_try_code; \
    } while (0)
/* Prints a line on stderr; prints nothing with --quiet. */
void cli_say(const cli_values *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ignores SIGXFSZ: exceeding the file size limit (ulimit -f) becomes a write error that names the file instead of
   killing the program. */
void cli_outgrow_limits(void); /* signals.c */
/* Handles SIGBUS: if a memory-mapped file is truncated while in use, the program ends with an error that names the
   file. */
void cli_outlive_files(void); /* lost_file.c */
/* Opens /dev/null for standard streams that were closed at startup, so that no file opened later gets descriptor 0, 1
   or 2. */
void cli_guard_streams(void); /* output.c */

/* cli_end_at_once: from now on, do not free device memory, which takes 0.25 s; the driver reclaims the memory when the
   process ends. cli_ends_at_once returns whether cli_end_at_once was called. */
void cli_end_at_once(void);
int cli_ends_at_once(void);

/* ---- Context ----------------------------------------------------------------------------------------------------- */

/* Creates a context from --threads and --device; prints errors. Returns an exit code. */
int cli_context(const cli_values *v, mercer_context **out);
/* Same as cli_context, but the device starts in the background while data are opened. */
int cli_context_deferred(const cli_values *v, mercer_context **out);

/*
 * Declares an owning variable: `release` is called with its address when the variable goes out of scope.
 *
 *     CLI_OWNED(cli_drop) char *text = cli_copy("...");
 */
#define CLI_OWNED(release) __attribute__((cleanup(release)))
void cli_drop(void *pointer); /* release function for memory from cli_allocate, cli_copy and similar */
void cli_drop_context(mercer_context **context);
/* Defines a function `release` for CLI_OWNED that passes the pointer to `end`. */
#define CLI_RELEASE(release, type, end)         \
    static inline void release(type **variable) \
    {                                           \
        end(*variable);                         \
    }
CLI_RELEASE(cli_drop_dataset, mercer_dataset, mercer_dataset_free)
CLI_RELEASE(cli_drop_model, mercer_model, mercer_model_free)

/* ---- Memory and strings (text.c): these exit the program when out of memory -------------------------------------- */

void *cli_allocate(int64_t count, size_t size); /* zeroed; release with free */
char *cli_copy(const char *text);
char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* release with free */
/* Returns `text` with formatted text appended; releases `text`, which may be NULL. */
char *cli_append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns a copy in which line breaks, escapes and other terminal control characters are replaced by escape sequences
   such as \n and \x1b. */
char *cli_visible(const char *text);
/* Reallocates the array `items` of `count` elements so that one more element fits. *capacity is the capacity in
   elements. */
void *cli_grow(void *items, int64_t count, int64_t *capacity, size_t size);

enum { CLI_SHORT = 32 };
const char *cli_bytes_text(char text[CLI_SHORT], int64_t bytes);    /* 3.9 GB */
const char *cli_count_text(char text[CLI_SHORT], int64_t count);    /* 60,000 */
const char *cli_seconds_text(char text[CLI_SHORT], double seconds); /* 0.42 s, 1 min 20 s, 3 h 05 min */
/* Writes `value` with the fewest digits that read back as the same float (if `single`) or the same double. */
const char *cli_number_text(char text[CLI_SHORT], double value, int single);
int cli_ends_with(const char *text, const char *ending);
double cli_now(void);       /* seconds of a monotonic clock */
void cli_start_clock(void); /* called once at program start */
double cli_elapsed(void);   /* seconds since the program started */

/* ---- Input files read by the program itself, such as configuration files (read_file.c) --------------------------- */

/* Reads a whole file and appends a zero byte; the caller frees *out. Accepts regular files and the pipes of process
   substitutions; refuses files that could block or never end. `missing`: text printed after the name if the file
   does not exist, or NULL. Returns an exit code. */
int cli_read_file(const char *path, char **out, size_t *length, const char *missing);

/* ---- Output files (output.c): appear under their name when complete, or not at all ------------------------------- */

/* Checks that `path` can be written; call this before a long computation. Returns 0, or prints the reason and returns
   CLI_IO or CLI_MISSING. */
int cli_check_output(const char *path);

typedef struct cli_output cli_output;
/* Opens a temporary file in the same folder as `path` ("-": stdout itself). Returns an exit code. */
int cli_output_open(cli_output **out, const char *path);
FILE *cli_output_file(cli_output *output);
/* Flushes, syncs and renames the file, and frees `output`. Prints errors. Returns an exit code. */
int cli_output_close(cli_output *output);
/* Makes a file name durable by syncing the folder that contains it. */
void cli_sync_name(const char *path);
void cli_output_drop(cli_output *output); /* deletes the temporary file; NULL is allowed */

/* Prints one JSON object and a newline on stdout; takes ownership. Returns an exit code. */
int cli_print_json(json_t *object);
/* Prints the result of a command with --json, after adding "warnings": the texts of all warnings printed so far. Takes
   ownership of `object`. Returns an exit code. */
int cli_print_answer(json_t *object);
/* Returns the texts of all warnings printed so far as an array. */
json_t *cli_warnings_json(void);
json_t *cli_json_real(double value); /* null if it is NaN or infinite */

/* ---- The run log (log.c): one JSON object per line --------------------------------------------------------------- */

typedef struct cli_log cli_log;
/* Checks that `path` is an existing log that can be appended to, or can be created. Does not open the log. Returns an
   exit code. */
int cli_check_log(const char *path);
/* Opens a log; appends if the log exists. If `path` is NULL, the log discards all events. Returns an exit code. */
int cli_log_open(cli_log **out, const char *path);
/* Writes {"event": name, ...}; takes ownership of `object`. Write errors are reported by cli_log_close. */
void cli_log_event(cli_log *log, const char *name, json_t *object);
int cli_log_has_file(const cli_log *log); /* 1 if events are written to a file, 0 if they are discarded */
int cli_log_close(cli_log *log);          /* NULL is allowed; prints errors, returns an exit code */

/* ---- Terminal (terminal.c) --------------------------------------------------------------------------------------- */

int cli_is_terminal(FILE *file);                 /* 1 if it is a terminal that can move its cursor */
int cli_width(FILE *file);                       /* width in columns */
int cli_colors(const cli_values *v, FILE *file); /* 1 if output is colored; honors --color, NO_COLOR and TERM */

/* A progress bar on the last line, redrawn at most 10 times per second; inactive if stderr is not a terminal. */
typedef struct cli_bar {
    int on; /* true if stderr is a terminal and --quiet was not given */
    int colors;
    int drawn;   /* true if the bar is on the screen */
    double last; /* time of the last drawing (cli_now) */
} cli_bar;
void cli_bar_init(cli_bar *bar, const cli_values *v);
/* Draws the bar. share: fraction of the work done, 0 .. 1 (negative: unknown); text: printed after the bar; force:
   draw even if the last drawing was less than 0.1 s ago. */
void cli_bar_draw(cli_bar *bar, double share, const char *text, int force);
void cli_bar_clear(cli_bar *bar);
/* Clears the active bar, if any, before a line of text is printed; the next cli_bar_draw restores it. */
void cli_bar_make_way(void);

/* Prints text that starts in column `begin`, wrapped at column `width`, with continuation lines indented to `begin`;
   unwrapped if fewer than 20 columns remain. */
void cli_print_wrapped(FILE *file, const char *text, int begin, int width);

/* A table with aligned columns. */
typedef struct cli_table cli_table;
cli_table *cli_table_new(int columns, const char *alignment); /* "lrr": left, right, right */
void cli_table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a row of two columns and releases `text`; adds nothing if `text` is NULL. */
void cli_table_row(cli_table *table, const char *name, char *text);
void cli_table_line(cli_table *table);              /* horizontal rule before the next row */
void cli_table_print(cli_table *table, FILE *file); /* prints and frees the table */
void cli_table_free(cli_table *table);

#endif
