/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core: what every other folder is built on; it includes none of them.
 *
 * The context (this header: allocator, threads, log sink, text of the last error), counted memory and arenas, matrix
 * views, files that are mapped or written atomically, texts of the form name:key=value, time and processor. threads/
 * has the only code that starts threads, numbers/ random numbers, half precision and units of targets.
 */
#ifndef MRC_CORE_CONTEXT_H
#define MRC_CORE_CONTEXT_H

#include "mercer/advanced.h"

#include "core/cpuinfo.h"

#include <stdbool.h>

struct mrc_backend;
struct mrc_starting;

/* Where the elements of a matrix lie: its field `memory`. */
typedef int32_t mrc_memory;
enum { MRC_HOST = MERCER_HOST, MRC_CUDA = MERCER_CUDA };

enum { MRC_ERROR_CHARS = 1024, MRC_WARNINGS = 64 };

/* One recorded warning. The texts have fixed sizes so that recording one cannot fail. */
typedef struct mrc_warning {
    char field[64];
    char text[MRC_ERROR_CHARS];
} mrc_warning;

struct mercer_context {
    mercer_allocator allocator;
    mercer_log_sink log;
    void *log_user;
    mercer_log_level log_level;
    int threads;
    mrc_isa isa;
    bool half_precision;           /* float products may be rounded to it where a machine gains by that, now */
    bool precision_by_plan;        /* arithmetic "auto": only while a training runs whose plan says so */
    struct mrc_backend *backend;   /* made and released by src/api */
    struct mrc_starting *starting; /* what becomes it when a thread is done; NULL: nothing */
    int64_t bytes_now;             /* counted by core/memory.c */
    int64_t bytes_peak;
    int64_t bytes_high; /* the peak since it was last set to bytes_now: that of a part of the work */
    char error[MRC_ERROR_CHARS];
    const char *error_field;            /* static; option or argument that the error is about; "": none */
    mrc_warning warnings[MRC_WARNINGS]; /* the first warning_count are set */
    int warning_count;
};

#if defined(__GNUC__)
#define MRC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define MRC_PRINTF(text, first)
#endif

/*
 * Records the message (for the calling thread if context is NULL) and returns status, so that a failure is one line:
 *     return mrc_fail(context, MERCER_ERROR_SHAPE, "W has %d rows, Z has %d", ...);
 */
mercer_status mrc_fail(mercer_context *context, mercer_status status, const char *format, ...) MRC_PRINTF(3, 4);

/*
 * Reason of a refusal as a value, for functions whose caller decides whether it is an error.
 * mrc_refuse fills it in and returns the status; mrc_fail_with makes it the context's error.
 */
typedef struct mrc_reason {
    mercer_status status;
    const char *field; /* static; option that was refused, or "" */
    char text[MRC_ERROR_CHARS];
} mrc_reason;
mercer_status mrc_refuse(mrc_reason *reason, const char *field, mercer_status status, const char *format, ...)
    MRC_PRINTF(4, 5);
mercer_status mrc_fail_with(mercer_context *context, const mrc_reason *reason);

/* Records which option or argument a failure is about (a static text), unless that is known already; returns status. */
mercer_status mrc_blame(mercer_context *context, const char *field, mercer_status status);

/*
 * Records that an input was ignored, dropped, rounded, guessed or overridden, and hands the text to the log sink.
 * `field` is the option or column concerned, "" for none. Inputs are warned about in this way only: the program prints
 * these texts and lists them with --json, Python turns them into warnings. A text that is recorded already is only
 * logged. Safe with context == NULL (does nothing).
 */
void mrc_warn(mercer_context *context, const char *field, const char *format, ...) MRC_PRINTF(3, 4);

/* Hands a line to the context's sink if it wants that level. Safe with context == NULL (does nothing). */
void mrc_log(mercer_context *context, mercer_log_level level, const char *format, ...) MRC_PRINTF(3, 4);

/* Passes a failure on to the caller. */
#define MRC_TRY(call)                                           \
    do {                                                        \
        mercer_status mrc_try_status = (call);                  \
        if (mrc_try_status != MERCER_OK) return mrc_try_status; \
    } while (0)

/* The public functions of the same names, without mercer_. */
const char *mrc_status_string(mercer_status status);
const char *mrc_last_error_field(const mercer_context *context);
const char *mrc_last_error(const mercer_context *context);
const char *mrc_warning_of(const mercer_context *context, int index, const char **field);
void mrc_clear_warnings(mercer_context *context);

#endif
