/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: version, status messages, contexts.
 *
 * With the option `deferred`, a context begins with the CPU backend while a thread creates the requested backend.
 * Functions that need no device, such as those that open files, run meanwhile. Functions that use the backend, or
 * create objects that do, call mrc_context_ready first.
 */
#include "core/clock.h"
#include "core/context.h"

#include "api/api_options.h"
#include "backends/backend.h"
#include "core/memory.h"
#include "core/threads/background.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

const char *mercer_version(void)
{
    return TEXT_OF(MERCER_VERSION_MAJOR) "." TEXT_OF(MERCER_VERSION_MINOR) "." TEXT_OF(MERCER_VERSION_PATCH);
}

/* Reads and checks the options. There is no context yet, so messages belong to the thread. */
static mercer_status read_options(mercer_context_options *ours, mercer_allocator *allocator,
                                  const mercer_context_options *theirs)
{
    MRC_TRY(mrc_read_struct(NULL, ours, MRC_STRUCT(mercer_context_options), theirs, "options"));
    MRC_TRY(mrc_read_struct(NULL, allocator, MRC_STRUCT(mercer_allocator), ours->allocator, "options: allocator"));
    if (ours->threads < 0)
        return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "options: threads is %d; it must be at least 0", ours->threads);
    if (!allocator->allocate != !allocator->release)
        return mrc_fail(NULL, MERCER_ERROR_ARGUMENT,
                        "options: allocator must have both allocate and release, or "
                        "neither");
    return MERCER_OK;
}

/* Parses the option `arithmetic`. */
static mercer_status choose_arithmetic(const char *asked, mrc_arithmetic *arithmetic)
{
    static const char *const names[] = {[MRC_ACCURATE] = "accurate", [MRC_FAST] = "fast", [MRC_BY_PLAN] = "auto"};
    *arithmetic = MRC_BY_PLAN;
    if (!asked) return MERCER_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(asked, names[i]) == 0) {
            *arithmetic = (mrc_arithmetic)i;
            return MERCER_OK;
        }
    return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "options: arithmetic is '%s'; valid: auto, accurate, fast", asked);
}

/* Chooses the instruction set: the requested set, the set that MERCER_ISA names, or the best set that the machine
   supports. */
static mercer_status choose_isa(const char *asked, mrc_isa *isa)
{
    const char *source = asked ? "options: isa" : "environment: MERCER_ISA";
    if (!asked) asked = getenv("MERCER_ISA");
    *isa = mrc_isa_best();
    if (!asked || !asked[0]) return MERCER_OK;
    mrc_isa wanted;
    if (!mrc_isa_from_name(asked, &wanted))
        return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "%s is '%s'; valid: %s", source, asked, mrc_isa_names());
    if (wanted > *isa)
        return mrc_fail(NULL, MERCER_ERROR_UNSUPPORTED,
                        "%s is '%s', but this machine and build support only up to "
                        "%s",
                        source, asked, mrc_isa_name(*isa));
    *isa = wanted;
    return MERCER_OK;
}

/* A backend that a background thread creates. The thread has a context of its own (`own`), so that the two threads
   share neither memory counters nor messages. That context must live as long as the backend, because it has counted
   part of the backend's memory. */
struct mrc_starting {
    mercer_context own;
    const char *name;
    mrc_backend *backend;
    mrc_background *thread; /* NULL: finished */
    mercer_status status;
};

/* The work of the thread: creates the backend. A failure is reported by the call that waits for it. Background work
   must not use the context of its owner; this work allocates from `own`. */
static void make_backend(void *argument, int64_t piece)
{
    (void)piece;
    struct mrc_starting *self = argument;
    self->status = mrc_backend_create(&self->backend, &self->own, self->name);
}

/* Starts creating the backend in the background. Returns false if the backend must be created synchronously, for
   example because the caller's allocator may not be thread-safe. */
static bool start_backend(mercer_context *context, const char *name)
{
    struct mrc_starting *self;
    if (!name || context->allocator.allocate || !mrc_backend_is_slow(name)) return false;
    size_t length = strlen(name) + 1;
    if (mrc_alloc_zero(context, &self, 1, (int64_t)(sizeof *self + length), "the backend") != MERCER_OK) return false;
    self->own = *context;
    /* The log sink belongs to the caller's thread. The name is copied, because the options may be gone before it is
       read. */
    self->own.log = NULL;
    self->own.bytes_now = self->own.bytes_peak = self->own.bytes_high = 0;
    self->name = memcpy(self + 1, name, length);
    mercer_status status = mrc_background_start(&self->thread, context, make_backend, self);
    if (mrc_take_error(context, status).status != MERCER_OK) {
        mrc_free(context, self);
        return false;
    }
    context->starting = self;
    mrc_background_permit(self->thread, 1);
    return true;
}

/* Logs the backend in use, and warns about an arithmetic that it does not have. */
static void tell_backend(mercer_context *context)
{
    mrc_backend *backend = context->backend;
    if (context->arithmetic == MRC_FAST && mrc_backend_memory(backend) == MRC_HOST)
        mrc_warn(context, "arithmetic", "arithmetic fast has no effect on backend %s; it is for GPUs",
                 backend->ops->name);
    mrc_log(context, MERCER_LOG_INFO, "mercer %s: backend %s, isa %s, %d threads", mercer_version(), backend->ops->name,
            mrc_isa_name(context->isa), context->threads);
}

/* Replaces the CPU backend by the backend that the thread has created. On failure the CPU backend stays, so that the
   context can be released normally. The bytes that the thread has allocated are added to those of the context. */
static void take_backend(mercer_context *context)
{
    struct mrc_starting *self = context->starting;
    mrc_background_wait(self->thread, 0);
    mrc_background_stop(self->thread);
    self->thread = NULL;
    if (self->status != MERCER_OK) return;
    mrc_backend_free(context->backend);
    context->backend = self->backend;
    context->backend->context = context;
    mrc_count_bytes(context, self->own.bytes_now);
    tell_backend(context);
}

/* A failed start is reported by every later call, not only by the first one. */
mercer_status mrc_context_ready(mercer_context *context)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    struct mrc_starting *self = context->starting;
    if (!self) return MERCER_OK;
    if (self->thread) take_backend(context);
    return self->status == MERCER_OK ? MERCER_OK : mrc_fail(context, self->status, "%s", self->own.error);
}

/* Releases a backend that no call has needed. If the thread still creates it, waits for the thread first. */
static void drop_starting(mercer_context *context)
{
    struct mrc_starting *self = context->starting;
    if (!self) return;
    mrc_background_stop(self->thread); /* waits for the thread */
    if (self->backend && self->backend != context->backend) mrc_backend_free(self->backend);
}

/* Options are checked before anything is allocated. Until the context exists, messages belong to the calling thread;
   the message of a failed backend is copied there. log_level 0 is the default: warnings and errors. */
mercer_status mercer_context_create(mercer_context **out, const mercer_context_options *options)
{
    if (!out) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    mercer_context_options chosen;
    mercer_allocator allocator;
    mrc_isa isa;
    mrc_arithmetic arithmetic;
    MRC_TRY(read_options(&chosen, &allocator, options));
    MRC_TRY(choose_arithmetic(chosen.arithmetic, &arithmetic));
    MRC_TRY(choose_isa(chosen.isa, &isa));
    mercer_context *context = mrc_raw_alloc(&allocator, sizeof *context);
    if (!context)
        return mrc_fail(NULL, MERCER_ERROR_MEMORY, "out of memory: %zu bytes for the context", sizeof *context);
    memset(context, 0, sizeof *context);
    context->allocator = allocator;
    context->log = chosen.log;
    context->log_user = chosen.log_user;
    context->log_level = chosen.log_level ? chosen.log_level : MERCER_LOG_WARNING;
    context->threads = chosen.threads ? chosen.threads : mrc_processors();
    context->isa = isa;
    context->arithmetic = arithmetic;
    bool later = chosen.deferred && start_backend(context, chosen.backend);
    mercer_status status = mrc_backend_create(&context->backend, context, later ? NULL : chosen.backend);
    if (status != MERCER_OK) {
        mrc_fail(NULL, status, "%s", context->error); /* keep the message after the context is released */
        mercer_context_free(context);
        return status;
    }
    if (!later) tell_backend(context);
    *out = context;
    return MERCER_OK;
}

/* `starting` is released after the backend (see struct mrc_starting). The allocator is copied, because the context is
   the last block that it releases. */
void mercer_context_free(mercer_context *context)
{
    if (!context) return;
    drop_starting(context);
    mrc_backend_free(context->backend);
    mrc_free(context, context->starting);
    mercer_allocator allocator = context->allocator;
    mrc_raw_free(&allocator, context);
}

mercer_status mercer_context_query(mercer_context *context, mercer_context_info *info)
{
    MRC_TRY(mrc_context_ready(context));
    mrc_capabilities can = context->backend->ops->capabilities(context->backend, false);
    mercer_context_info all = {.struct_size = sizeof all,
                               .backend = context->backend->ops->name,
                               .isa = can.isa,
                               .device = can.memory == MRC_HOST ? -1 : context->backend->device,
                               .stream = can.stream,
                               .device_seconds = can.device_seconds,
                               .library_seconds = can.library_seconds,
                               .threads = context->threads,
                               .bytes_now = context->bytes_now,
                               .bytes_peak = context->bytes_peak};
    return mrc_write_struct(context, info, &all, MRC_STRUCT(mercer_context_info), "info");
}

mercer_status mercer_context_wait(mercer_context *context, void *stream)
{
    MRC_TRY(mrc_context_ready(context));
    mrc_backend *backend = context->backend;
    return backend->ops->wait ? backend->ops->wait(backend, stream) : MERCER_OK;
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

int mercer_device_count(const char *name)
{
    return mrc_device_count(name);
}

const char *mercer_status_string(mercer_status status)
{
    return mrc_status_string(status);
}

const char *mercer_last_error_field(const mercer_context *context)
{
    return mrc_last_error_field(context);
}

const char *mercer_last_error(const mercer_context *context)
{
    return mrc_last_error(context);
}

const char *mercer_warning(const mercer_context *context, int index, const char **field)
{
    return mrc_warning_of(context, index, field);
}

void mercer_clear_warnings(mercer_context *context)
{
    mrc_clear_warnings(context);
}

int64_t mercer_free_memory(void)
{
    return mrc_free_memory();
}
