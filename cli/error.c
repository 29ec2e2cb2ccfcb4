/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors and talk on stderr: one line each, whatever a file's name holds. */
#include "options.h"
#include "ranks.h"

#include <stdarg.h>
#include <string.h>

/* Prints a text with line breaks and other control characters written out, so that it stays one line. */
static void print_visible(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '\n')
            fputs("\\n", stderr);
        else if (c < 32 || c == 127)
            fprintf(stderr, "\\x%02x", c);
        else
            fputc(c, stderr);
    }
}

__attribute__((format(printf, 2, 0))) static void print_line(const char *prefix, const char *format, va_list arguments)
{
    char text[4096];
    vsnprintf(text, sizeof text, format, arguments);
    fputs(prefix, stderr);
    print_visible(text);
    fputc('\n', stderr);
}

int cli_error(int code, const char *format, ...)
{
    char text[512];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    vsnprintf(text, sizeof text, format, again);
    cli_ranks_blame(text);
    if (cli_rank() == 0) print_line("mercer: ", format, arguments);
    va_end(again);
    va_end(arguments);
    return code;
}

void cli_warn(const char *format, ...)
{
    va_list arguments;
    if (cli_rank() > 0) return;
    va_start(arguments, format);
    print_line("mercer: warning: ", format, arguments);
    va_end(arguments);
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

void cli_say(const cli_values *v, const char *format, ...)
{
    if (cli_flag(v, "quiet") || cli_rank() > 0) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

int cli_context(const cli_values *v, mercer_context **out)
{
    mercer_context_options options = MERCER_CONTEXT_OPTIONS_INIT;
    *out = cli_comm_context();
    if (*out != NULL) return CLI_OK; /* all that ranks share is made from one */
    if (cli_integer(v, "threads") > 4096)
        return cli_error(CLI_USAGE, "--threads: %s is more than 4096", cli_text(v, "threads"));
    const char *device = cli_text(v, "device");
    int numbered =
        strncmp(device, "cuda:", 5) == 0 && device[5] != 0 && strspn(device + 5, "0123456789") == strlen(device + 5);
    if (!numbered && !cli_has_word("cpu|cuda|auto|reference", device))
        return cli_error(CLI_USAGE, "--device: '%s' is none of cpu, cuda, cuda:N, auto, reference", device);
    options.threads = (int)cli_integer(v, "threads");
    options.backend = device;
    options.arithmetic = cli_text(v, "arithmetic");
    mercer_status status = mercer_context_create(out, &options);
    return status == MERCER_OK ? CLI_OK : cli_fail(NULL, status);
}
