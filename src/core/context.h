/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core: the foundation of all other folders. It does not include headers of other folders.
 *
 * The folder contains the context (this header: allocator, threads, log sink, last error), counted memory and arenas,
 * matrix views, specifications of the form name:key=value, time, and detection of the processor's features. file/ maps
 * files and writes them atomically; threads/ has the only code that starts threads; numbers/ has random numbers, half
 * precision and target units.
 */
#ifndef MRC_CORE_CONTEXT_H
#define MRC_CORE_CONTEXT_H

#include "mercer/advanced.h"

#include "core/cpuinfo.h"

#include <stdbool.h>

struct mrc_backend;
struct mrc_starting;

/* Kind of memory that holds the elements of a matrix (its field `memory`). */
typedef int32_t mrc_memory;
enum { MRC_HOST = MERCER_HOST, MRC_CUDA = MERCER_CUDA };

enum { MRC_ERROR_CHARS = 1024, MRC_WARNINGS = 64 };

/* Arithmetic of matrix products in float. FAST: operands are rounded to half precision if that is faster. BY_PLAN: the
   plan of each training run chooses; products outside training runs are accurate. */
typedef enum mrc_arithmetic { MRC_ACCURATE, MRC_FAST, MRC_BY_PLAN } mrc_arithmetic;

/* One recorded warning. Its strings have fixed sizes, so recording a warning cannot fail. */
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
    mrc_arithmetic arithmetic;     /* value of the option `arithmetic` */
    struct mrc_backend *backend;   /* created and released by src/api */
    struct mrc_starting *starting; /* backend that a background thread is creating; NULL: none */
    int64_t bytes_now;             /* bytes allocated now; maintained by core/memory.c */
    int64_t bytes_peak;
    int64_t bytes_high; /* peak since a caller last reset it to bytes_now, for example at the start of a training run */
    char error[MRC_ERROR_CHARS];
    const char *error_field;            /* option or argument that the error concerns, static text; "": none */
    mrc_warning warnings[MRC_WARNINGS]; /* only the first warning_count entries are set */
    int warning_count;
};

#if defined(__GNUC__)
#define MRC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define MRC_PRINTF(text, first)
#endif

/*
 * Records the message (for the calling thread if context is NULL) and returns status, so that failing takes one line:
 *     return mrc_fail(context, MERCER_ERROR_SHAPE, "W has %d rows, Z has %d", ...);
 */
mercer_status mrc_fail(mercer_context *context, mercer_status status, const char *format, ...) MRC_PRINTF(3, 4);
/* Like mrc_fail; also records the option or argument (a static text) that the failure is about. */
mercer_status mrc_fail_at(mercer_context *context, const char *field, mercer_status status, const char *format, ...)
    MRC_PRINTF(4, 5);

/*
 * A failure as a value, for functions whose caller decides whether the failure is an error. mrc_refuse fills the value
 * in and returns its status; mrc_fail_with makes the value the context's error.
 */
typedef struct mrc_reason {
    mercer_status status;
    const char *field; /* option that was refused, static text; "": none */
    char text[MRC_ERROR_CHARS];
} mrc_reason;
mercer_status mrc_refuse(mrc_reason *reason, const char *field, mercer_status status, const char *format, ...)
    MRC_PRINTF(4, 5);
mercer_status mrc_fail_with(mercer_context *context, const mrc_reason *reason);
/* Moves the context's error into a value, for an attempt whose failure is not necessarily an error of the call. If
   status is MERCER_OK, the value has no message. */
mrc_reason mrc_take_error(mercer_context *context, mercer_status status);

/* Records which option or argument (a static text) a failure concerns, unless a field is recorded already. Returns
   status. */
mercer_status mrc_blame(mercer_context *context, const char *field, mercer_status status);

/*
 * Records that an input was ignored, dropped, rounded, guessed or overridden, and passes the text to the log sink.
 * field: the option or column concerned, "" for none. All warnings about inputs are issued by this function: the
 * program prints them and lists them with --json, Python turns them into its own warnings. A text that is already
 * recorded is only logged. Does nothing if context is NULL.
 */
void mrc_warn(mercer_context *context, const char *field, const char *format, ...) MRC_PRINTF(3, 4);

/* Passes a line to the context's log sink if its level is enabled. Does nothing if context is NULL. */
void mrc_log(mercer_context *context, mercer_log_level level, const char *format, ...) MRC_PRINTF(3, 4);

/* Returns from the enclosing function if the call fails, with its status. */
#define MRC_TRY(call)                                           \
    do {                                                        \
        mercer_status mrc_try_status = (call);                  \
        if (mrc_try_status != MERCER_OK) return mrc_try_status; \
    } while (0)

/* Implement the public functions of the same names, with mercer_ in place of mrc_. */
const char *mrc_status_string(mercer_status status);
const char *mrc_last_error_field(const mercer_context *context);
const char *mrc_last_error(const mercer_context *context);
const char *mrc_warning_of(const mercer_context *context, int index, const char **field);
void mrc_clear_warnings(mercer_context *context);

#endif
