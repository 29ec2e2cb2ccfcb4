/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, warnings and notes on stderr: one line each, even if a file name contains line breaks. On a terminal, long
   lines are wrapped at words. */
#include "data.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static void print_line(const char *prefix, const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    CLI_OWNED(cli_drop) char *named = cli_name_pipes(text);
    CLI_OWNED(cli_drop) char *shown = cli_visible(named);
    CLI_OWNED(cli_drop) char *line = cli_format("%s%s", prefix, shown);
    cli_bar_make_way();
    cli_print_wrapped(stderr, line, 0, cli_is_terminal(stderr) ? cli_width(stderr) : 0);
    fputc('\n', stderr);
}

int cli_error(int code, const char *format, ...)
{
    char text[512];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    vsnprintf(text, sizeof text, format, again);
    if (cli_ranks_blame(text)) print_line("mercer: ", format, arguments);
    va_end(again);
    va_end(arguments);
    return code;
}

/* Warnings printed so far. They need no lock, because only one thread of rank 0 prints warnings. */
static struct {
    char *texts[256];
    size_t count;
} printed;

void cli_warn(const char *format, ...)
{
    char text[2048];
    va_list arguments, again;
    if (cli_rank() > 0) return;
    va_start(arguments, format);
    va_copy(again, arguments);
    vsnprintf(text, sizeof text, format, again);
    va_end(again);
    size_t i = 0;
    while (i < printed.count && strcmp(printed.texts[i], text) != 0) i++;
    if (i == printed.count) {
        if (i < sizeof printed.texts / sizeof printed.texts[0]) printed.texts[printed.count++] = cli_copy(text);
        print_line("mercer: warning: ", format, arguments);
    }
    va_end(arguments);
}

json_t *cli_warnings_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < printed.count; i++) {
        CLI_OWNED(cli_drop) char *named = cli_name_pipes(printed.texts[i]);
        json_array_append_new(list, cli_json_text(named));
    }
    return list;
}

/* Log callback of the library: prints messages of level warning or error as warnings. */
static void print_warning(void *user, mercer_log_level level, const char *message)
{
    (void)user;
    if (level <= MERCER_LOG_WARNING) cli_warn("%s", message);
}

int cli_exit_code(mercer_status status)
{
    switch (status) {
        case MERCER_OK: return CLI_OK;
        case MERCER_ERROR_ARGUMENT:
        case MERCER_ERROR_KERNEL: return CLI_USAGE;
        case MERCER_ERROR_SHAPE:
        case MERCER_ERROR_DTYPE:
        case MERCER_ERROR_DATA:
        case MERCER_ERROR_FORMAT:
        case MERCER_ERROR_MISMATCH: return CLI_DATA;
        case MERCER_ERROR_MEMORY:
        case MERCER_ERROR_UNSUPPORTED:
        case MERCER_ERROR_NUMERIC: return CLI_FAILURE;
        case MERCER_ERROR_MISSING: return CLI_MISSING;
        case MERCER_ERROR_IO: return CLI_IO;
        case MERCER_ERROR_COMM: return CLI_RANKS;
        case MERCER_ERROR_OVERLAP:
        case MERCER_ERROR_CALLBACK:
        case MERCER_ERROR_INTERNAL:
        case MERCER_STATUS_MAX_: return CLI_INTERNAL;
    }
    return CLI_INTERNAL;
}

int cli_fail(mercer_context *context, mercer_status status)
{
    const char *message = mercer_last_error(context);
    return cli_error(cli_exit_code(status), "%s", *message != '\0' ? message : mercer_status_string(status));
}

int cli_check(mercer_context *context, mercer_status status)
{
    return status == MERCER_OK ? CLI_OK : cli_fail(context, status);
}

void cli_drop(void *pointer)
{
    free(*(void **)pointer);
}

void cli_drop_context(mercer_context **context)
{
    cli_release_context(*context);
}

void cli_say(const cli_values *v, const char *format, ...)
{
    if (cli_flag(v, "quiet") || cli_rank() > 0) return;
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}

static int ends_at_once;

void cli_end_at_once(void)
{
    ends_at_once = 1;
}

int cli_ends_at_once(void)
{
    return ends_at_once;
}

void cli_give_up(int code, const char *format, ...)
{
    char prefix[32] = "mercer: ";
    va_list arguments;
    va_start(arguments, format);
    if (cli_rank() > 0) snprintf(prefix, sizeof prefix, "mercer: rank %d: ", cli_rank());
    print_line(prefix, format, arguments);
    va_end(arguments);
    if (cli_ranks() == 1) exit(code);
    cli_wait_read();
    fflush(NULL);
    _Exit(code); /* exit would wait for computing threads and other ranks */
}

int cli_make_context(const cli_values *v, const char *device, int threads, int deferred, mercer_context **out)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    *out = NULL;
    if (threads > 4096)
        return cli_error(CLI_USAGE, "--threads: %s is more than the maximum of 4096", cli_text(v, "threads"));
    options.threads = threads;
    options.backend = device;
    options.arithmetic = cli_text(v, "arithmetic");
    options.log = print_warning;
    options.deferred = deferred;
    return cli_check(NULL, mercer_context_create(out, &options));
}

static int make_context(const cli_values *v, int deferred, mercer_context **out)
{
    CLI_OWNED(cli_devices_free) cli_devices devices = {0};
    *out = cli_comm_context();
    if (*out != NULL) return CLI_OK; /* with several ranks, all objects use the communicator's context */
    CLI_TRY(cli_devices_read(v, &devices));
    int64_t threads = cli_integer(v, "threads");
    if (devices.list)
        return cli_error(CLI_USAGE, "--device: %s: mercer %s uses only one device; name one", cli_text(v, "device"),
                         cli_command_name(v));
    return cli_make_context(v, devices.names[0], threads > 4096 ? 4097 : (int)threads, deferred, out);
}

int cli_context(const cli_values *v, mercer_context **out)
{
    return make_context(v, 0, out);
}

int cli_context_deferred(const cli_values *v, mercer_context **out)
{
    return make_context(v, 1, out);
}

/* ---- Locating elements that are not finite ----------------------------------------------------------------------- */

/* The library sees only blocks of a file, so the program searches for the row and column of a value that is not
   finite. */
/* Returns the index of the first NaN or infinite element of a block, or -1. */
static int64_t first_bad(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return i;
    return -1;
}

/* Finds and prints the position of the first value that is not finite; returns false if all are finite. */
static int find_bad(const mercer_dataset *dataset, const char *name)
{
    mercer_dataset_info info = cli_data_info(dataset);
    int64_t most = 1 + (1 << 20) / (info.features + 1), place = -1;
    if (info.dtype == MERCER_U8) return 0;
    CLI_OWNED(cli_drop) double *values = cli_allocate(most * info.features, sizeof *values);
    for (int64_t first = 0; first < info.rows && place < 0; first += most) {
        int64_t m = info.rows - first < most ? info.rows - first : most;
        mercer_matrix X = mercer_matrix_view(values, m, info.features, MERCER_F64);
        if (mercer_dataset_read(dataset, &X, NULL, NULL, NULL, NULL, first) != MERCER_OK) break;
        place = first_bad(values, m * info.features);
        if (place >= 0)
            cli_error(CLI_DATA, "%s: row %" PRId64 ", column %" PRId64 " (from 0) is %s; replace it or remove the row",
                      name, first + place / info.features, place % info.features,
                      isnan(values[place]) ? "NaN" : "infinite");
    }
    return place >= 0;
}

int cli_fail_on(mercer_context *context, mercer_status status, const mercer_dataset *dataset, const char *name)
{
    if (status == MERCER_ERROR_DATA && dataset != NULL) {
        CLI_OWNED(cli_drop) char *message = cli_copy(mercer_last_error(context));
        if (!find_bad(dataset, name)) cli_error(CLI_DATA, "%s: %s", name, message);
        return CLI_DATA;
    }
    return cli_fail(context, status);
}
