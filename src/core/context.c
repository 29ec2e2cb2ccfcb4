/* SPDX-License-Identifier: BSD-3-Clause */
/* Status messages, error recording, log lines. */
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* the last failure of this thread in a call without a context, such as mercer_context_create */
static _Thread_local char thread_error[MRC_ERROR_CHARS];
static _Thread_local const char *thread_field = "";

/* Returns the address of the last error's field name. The name is stored in the context, or per thread if context is
   NULL. */
static const char **field_of(mercer_context *context)
{
    return context ? &context->error_field : &thread_field;
}

#define STATUS_AS_CASE(name, value, text) \
    case name: return text;

const char *mrc_status_string(mercer_status status)
{
    switch (status) {
        MERCER_STATUS_LIST(STATUS_AS_CASE)
        case MERCER_STATUS_MAX_: break;
    }
    return "unknown status";
}

/* Formats the message and stores it in the context, or for the calling thread if context is NULL. Truncates long
   messages. */
static void record_error(mercer_context *context, const char *field, mercer_status status, const char *format,
                         va_list arguments)
{
    char *text = context ? context->error : thread_error;
    vsnprintf(text, MRC_ERROR_CHARS, format, arguments);
    *field_of(context) = field;
    mrc_log(context, MERCER_LOG_DEBUG, "%s: %s", mrc_status_string(status), text);
}

mercer_status mrc_fail(mercer_context *context, mercer_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_error(context, "", status, format, arguments);
    va_end(arguments);
    return status;
}

mercer_status mrc_fail_at(mercer_context *context, const char *field, mercer_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_error(context, field, status, format, arguments);
    va_end(arguments);
    return status;
}

/* The innermost caller is the first to name a field, and its name is the most specific. Outer callers do not replace
   it. */
mercer_status mrc_blame(mercer_context *context, const char *field, mercer_status status)
{
    const char **known = field_of(context);
    if (status != MERCER_OK && (!*known || !**known)) *known = field;
    return status;
}

const char *mrc_last_error_field(const mercer_context *context)
{
    const char *field = context ? context->error_field : thread_field;
    return field ? field : "";
}

mercer_status mrc_refuse(mrc_reason *reason, const char *field, mercer_status status, const char *format, ...)
{
    va_list arguments;
    reason->status = status, reason->field = field;
    va_start(arguments, format);
    vsnprintf(reason->text, sizeof reason->text, format, arguments);
    va_end(arguments);
    return status;
}

mercer_status mrc_fail_with(mercer_context *context, const mrc_reason *reason)
{
    return mrc_fail_at(context, reason->field, reason->status, "%s", reason->text);
}

/* context must not be NULL: an error without a context is stored for the thread and cannot be taken. */
mrc_reason mrc_take_error(mercer_context *context, mercer_status status)
{
    mrc_reason reason = {.status = status, .field = ""};
    if (status == MERCER_OK) return reason;
    reason.field = mrc_last_error_field(context);
    snprintf(reason.text, sizeof reason.text, "%s", context->error);
    context->error[0] = 0, context->error_field = "";
    return reason;
}

const char *mrc_last_error(const mercer_context *context)
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

/* ---- Warnings -------------------------------------------------------------------------------------------------- */

/* Returns whether a warning with this text is recorded already. */
static bool is_recorded(const mercer_context *context, const char *text)
{
    for (int i = 0; i < context->warning_count; i++)
        if (strcmp(context->warnings[i].text, text) == 0) return true;
    return false;
}

/* When the list is full, further warnings are only logged. */
void mrc_warn(mercer_context *context, const char *field, const char *format, ...)
{
    char text[MRC_ERROR_CHARS];
    va_list arguments;
    if (!context) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!is_recorded(context, text) && context->warning_count < MRC_WARNINGS) {
        mrc_warning *warning = &context->warnings[context->warning_count++];
        snprintf(warning->field, sizeof warning->field, "%s", field);
        memcpy(warning->text, text, sizeof text);
    }
    mrc_log(context, MERCER_LOG_WARNING, "%s", text);
}

const char *mrc_warning_of(const mercer_context *context, int index, const char **field)
{
    if (field) *field = "";
    if (!context || index < 0 || index >= context->warning_count) return NULL;
    if (field) *field = context->warnings[index].field;
    return context->warnings[index].text;
}

void mrc_clear_warnings(mercer_context *context)
{
    if (context) context->warning_count = 0;
}
