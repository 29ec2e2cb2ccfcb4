/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators that cross processes: finding, loading and wrapping a module (comm/module.h).
 *
 * mercer_NAME.so is looked for in the folders of MERCER_MODULES, beside the library or program that this code is part of,
 * in the folder "mercer" beside it and in ../lib/mercer, and where it was to be installed.
 */
#define _GNU_SOURCE /* dladdr */

#include "comm/comm.h"
#include "core/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MERCER_MODULE_FOLDER
#define MERCER_MODULE_FOLDER "/usr/local/lib/mercer"
#endif

enum { PATH_CHARS = 1024, LIST_CHARS = 200 };

#define LEAVE_SECONDS 1.0

typedef struct module_comm {
    mrc_comm base;
    void *library;
    const mrc_module *module;
    void *state;
    mrc_rank_place *places; /* (ranks) */
    bool known;             /* places are filled */
    unsigned char *missing;
} module_comm;

/* ---- Loading -------------------------------------------------------------------------------------------------- */

static void *try_folder(const char *folder, int length, const char *inside, const char *name, char *path, char *error)
{
    snprintf(path, PATH_CHARS, "%.*s%smercer_%s.so", length, folder, inside, name);
    if (access(path, F_OK) != 0) return NULL;
    /* Global: the message-passing library loads parts of its own, which look for its names. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const char *why = library ? NULL : dlerror();
    if (why) snprintf(error, LIST_CHARS, "%s", why);
    return library;
}

static void *find_library(const char *name, char *path, char *error)
{
    void *library = NULL;
    const char *folders = getenv("MERCER_MODULES");
    for (const char *at = folders; at && *at && !library; at += strcspn(at, ":"), at += *at == ':')
        if (*at != ':') library = try_folder(at, (int)strcspn(at, ":"), "/", name, path, error);
    static const char here; /* something that lies in the library or program this is part of */
    Dl_info about;
    if (!library && dladdr(&here, &about) && about.dli_fname) {
        char own[PATH_CHARS];
        ssize_t length = strchr(about.dli_fname, '/') ? -1 : readlink("/proc/self/exe", own, sizeof own - 1);
        if (length < 0) length = snprintf(own, sizeof own, "%s", about.dli_fname);
        own[mrc_min(length, PATH_CHARS - 1)] = 0;
        const char *slash = strrchr(own, '/');
        static const char *const beside[] = {"/", "/mercer/", "/../lib/mercer/"};
        for (int i = 0; i < 3 && slash && !library; i++)
            library = try_folder(own, (int)(slash - own), beside[i], name, path, error);
    }
    if (!library) library = try_folder(MERCER_MODULE_FOLDER, (int)strlen(MERCER_MODULE_FOLDER), "/", name, path, error);
    return library;
}

static mercer_status load(module_comm *self, const char *name)
{
    mercer_context *context = self->base.context;
    char path[PATH_CHARS], error[LIST_CHARS] = "";
    self->library = find_library(name, path, error);
    if (!self->library && error[0])
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "the communicator %s cannot be loaded: %s", name, error);
    if (!self->library)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "the communicator %s is not here: no mercer_%s.so beside the library or in the folders of "
                        "MERCER_MODULES; build Mercer where its library is installed",
                        name, name);
    mrc_module_function function;
    void *symbol = dlsym(self->library, MRC_MODULE_SYMBOL);
    memcpy(&function, &symbol, sizeof function); /* an object pointer may not be cast to one of a function */
    if (symbol) self->module = function();
    if (self->module && self->module->version == MRC_MODULE_VERSION) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "%s: belongs to another version of Mercer", path);
}

/* ---- Exchanges ------------------------------------------------------------------------------------------------ */

static mercer_status exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    module_comm *self = (module_comm *)comm;
    mrc_outcome outcome = {.missing = self->missing};
    memset(self->missing, 0, (size_t)comm->ranks);
    self->module->exchange(self->state, send, receive, comm->deadline, &outcome);
    return mrc_comm_judge(comm, self->module->name, self->known ? self->places : NULL, &outcome);
}

static void leave(mrc_comm *comm, int code, const char *text, bool *first_left)
{
    module_comm *self = (module_comm *)comm;
    mrc_outcome outcome = {.missing = self->missing};
    comm->broken = true;
    self->module->leave(self->state, code, text, LEAVE_SECONDS, &outcome);
    *first_left = outcome.kind == MRC_OUTCOME_LEFT;
}

static void destroy(mrc_comm *comm)
{
    module_comm *self = (module_comm *)comm;
    if (self->state) self->module->close(self->state, !comm->broken);
    mrc_free(comm->context, comm->pieces);
    mrc_free(comm->context, self->places);
    mrc_free(comm->context, self->missing);
    /* The library stays loaded: message-passing libraries leave things behind that would not survive. */
}

/* ---- Joining -------------------------------------------------------------------------------------------------- */

static mercer_status allocate(module_comm *self)
{
    mercer_context *context = self->base.context;
    void *memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, 2 * (int64_t)self->base.ranks, sizeof(mrc_piece), "the ranks' pieces"));
    self->base.pieces = memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, self->base.ranks, sizeof(mrc_rank_place), "the ranks' places"));
    self->places = memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, self->base.ranks, 1, "the list of missing ranks"));
    self->missing = memory;
    return MERCER_OK;
}

static mercer_status introduce(module_comm *self)
{
    mrc_comm *comm = &self->base;
    mrc_rank_place *own = &self->places[comm->rank];
    if (gethostname(own->host, sizeof own->host - 1) != 0) snprintf(own->host, sizeof own->host, "?");
    own->process = (int64_t)getpid();
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) pieces[r] = (mrc_piece){&self->places[r], sizeof(mrc_rank_place)};
    MRC_TRY(mrc_comm_gather(comm, pieces));
    self->known = true;
    return MERCER_OK;
}

static mercer_status join(module_comm *self, const char *name)
{
    mrc_comm *comm = &self->base;
    mrc_outcome outcome = {.kind = MRC_OUTCOME_DONE};
    MRC_TRY(load(self, name));
    self->module->open(&self->state, &comm->rank, &comm->ranks, &outcome);
    if (!self->state)
        return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: cannot join the job: %s", name, outcome.text);
    MRC_TRY(allocate(self));
    if (comm->ranks > mrc_comm_shards(comm, INT64_MAX / 4))
        return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT,
                        "%d ranks are more than the %d shards of the centers; give at least as many shards",
                        comm->ranks, mrc_comm_shards(comm, INT64_MAX / 4));
    return introduce(self);
}

mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline)
{
    static const mrc_comm_ops ops = {"module", exchange, leave, destroy};
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(module_comm), "the communicator"));
    module_comm *self = memory;
    self->base = (mrc_comm){.ops = &ops, .context = context, .ranks = 1, .shards = shards, .deadline = deadline};
    mercer_status status = join(self, name);
    if (status != MERCER_OK) {
        self->base.broken = true; /* the others may be elsewhere */
        mrc_comm_free(&self->base);
        return status;
    }
    *out = &self->base;
    return MERCER_OK;
}
