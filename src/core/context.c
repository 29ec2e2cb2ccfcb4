/* SPDX-License-Identifier: BSD-3-Clause */
/* Status texts, error recording, log lines. */
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>

/* Failures that happen before a context exists (bad options, kernel_parse(NULL, ...)). */
static _Thread_local char thread_error[MRC_ERROR_CHARS];

#define STATUS_AS_CASE(name, value, text) \
    case name: return text;

const char *mercer_status_string(mercer_status status)
{
    switch (status) {
        MERCER_STATUS_LIST(STATUS_AS_CASE)
        case MERCER_STATUS_MAX_: break;
    }
    return "unknown status";
}

mercer_status mrc_fail(mercer_context *context, mercer_status status, const char *format, ...)
{
    char *text = context ? context->error : thread_error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, MRC_ERROR_CHARS, format, arguments);
    va_end(arguments);
    mrc_log(context, MERCER_LOG_DEBUG, "%s: %s", mercer_status_string(status), text);
    return status;
}

const char *mercer_last_error(const mercer_context *context)
{
    return context ? context->error : thread_error;
}

void mrc_log(mercer_context *context, mercer_log_level level, const char *format, ...)
{
    if (!context || !context->log || level > context->log_level) return;
    char line[MRC_ERROR_CHARS];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    context->log(context->log_user, level, line);
}
