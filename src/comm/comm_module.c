/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators between processes: finding and loading modules (comm/module.h), and joining a job.
 *
 * A module is a file mercer_NAME.so. It is searched for, in this order, in the folders of the environment variable
 * MERCER_MODULES; in the folder of the library or program that contains this code, its subfolder "mercer", and
 * ../lib/mercer; and in the folder of the installation. A module is never unloaded, because message-passing libraries
 * leave threads and exit handlers in the process.
 *
 * A process with more privileges than its caller (set-uid, set-gid, capabilities) loads modules only from the folder of
 * the installation. Otherwise the caller could run any code with these privileges, by setting MERCER_MODULES or by
 * linking to the program from another folder.
 */
#define _GNU_SOURCE /* gethostname */

#include "comm/comm.h"
#include "core/file/beside.h"
#include "core/memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MERCER_MODULE_FOLDER
#define MERCER_MODULE_FOLDER "/usr/local/lib/mercer"
#endif

enum { PATH_CHARS = 2 * MRC_BESIDE_CHARS, WHY_CHARS = 200 };

/* Loads the module from one folder. Returns NULL if the folder does not contain the module, or if loading fails; then
   `error` has the reason. */
static void *try_folder(const char *folder, int length, const char *inside, const char *name, char *path, char *error)
{
    snprintf(path, PATH_CHARS, "%.*s%smercer_%s.so", length, folder, inside, name);
    if (access(path, F_OK) != 0) return NULL;
    /* RTLD_GLOBAL: the message-passing library loads plugins that need its symbols. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const char *why = library ? NULL : dlerror();
    if (why) snprintf(error, WHY_CHARS, "%s", why);
    return library;
}

/* Searches the folders that the user who starts the process controls: the folders of MERCER_MODULES, and folders near
   the library or program. */
static void *find_chosen(const char *name, char *path, char *error)
{
    void *library = NULL;
    const char *folders = getenv("MERCER_MODULES");
    for (const char *at = folders; at && *at && !library; at += strcspn(at, ":"), at += *at == ':')
        if (*at != ':') library = try_folder(at, (int)strcspn(at, ":"), "/", name, path, error);
    char own[MRC_BESIDE_CHARS];
    static const char *const nearby[] = {"/", "/mercer/", "/../lib/mercer/"};
    bool known = mrc_own_folder(own);
    for (int i = 0; i < 3 && known && !library; i++)
        library = try_folder(own, (int)strlen(own), nearby[i], name, path, error);
    return library;
}

/* The folder of the installation is searched last. With elevated privileges no other folder is searched. */
static void *find_library(const char *name, char *path, char *error)
{
    void *library = mrc_has_raised_rights() ? NULL : find_chosen(name, path, error);
    if (!library) library = try_folder(MERCER_MODULE_FOLDER, (int)strlen(MERCER_MODULE_FOLDER), "/", name, path, error);
    return library;
}

/* The version is the first field of every table, so it can be read before the type of the table is known to match. */
mercer_status mrc_module_load(mercer_context *context, const char *name, const char *symbol, const void **table)
{
    char path[PATH_CHARS], error[WHY_CHARS] = "";
    *table = NULL;
    void *library = find_library(name, path, error);
    if (!library && error[0])
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "the communicator %s cannot be loaded: %s", name, error);
    if (!library && mrc_has_raised_rights())
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "the communicator %s was not found: a set-uid process searches only %s, not MERCER_MODULES; "
                        "install Mercer there or run it without set-uid",
                        name, MERCER_MODULE_FOLDER);
    if (!library)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "the communicator %s was not found: there is no mercer_%s.so next to the library or in the "
                        "folders of MERCER_MODULES; build Mercer with support for this communicator",
                        name, name);
    mrc_module_function function;
    void *address = dlsym(library, symbol);
    /* memcpy, because C does not allow a cast from an object pointer to a function pointer */
    memcpy(&function, &address, sizeof function);
    const void *found = address ? function() : NULL;
    if (!found || *(const int *)found != MRC_MODULE_VERSION)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "%s: is from another version of Mercer; install the "
                        "matching version",
                        path);
    *table = found;
    return MERCER_OK;
}

/* ---- Joining a job -------------------------------------------------------------------------------------------- */

/* Sends host name and process id of this rank to all others, for error messages. */
static mercer_status introduce_module(mrc_comm *comm)
{
    mrc_rank_process own = {.process = (int64_t)getpid()};
    if (gethostname(own.host, sizeof own.host - 1) != 0) snprintf(own.host, sizeof own.host, "?");
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &own, sizeof own, &comm->places));
    mrc_scope_disown(&scope);
    return MERCER_OK;
}

/* Checks that every rank gets at least one shard, and introduces the ranks to each other. */
static mercer_status join_module(mrc_comm *comm)
{
    if (comm->ranks > mrc_comm_shards(comm, INT64_MAX / 4))
        return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT,
                        "%d ranks are more than the %d shards of the centers; use at least one shard per rank",
                        comm->ranks, mrc_comm_shards(comm, INT64_MAX / 4));
    return introduce_module(comm);
}

/* A failure after joining closes the module without waiting, because the other ranks may be in a collective call. */
mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline)
{
    mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
    const void *table;
    void *state;
    int rank, ranks;
    *out = NULL;
    mercer_status status = mrc_module_load(context, name, MRC_MODULE_SYMBOL, &table);
    if (!table) return status;
    const mrc_module *module = table;
    module->open(&state, &rank, &ranks, &failure);
    if (!state) return mrc_fail(context, MERCER_ERROR_COMM, "%s: cannot join the job: %s", name, failure.text);
    status = mrc_comm_allocate(out, context, rank, ranks, shards, deadline);
    if (status != MERCER_OK) module->close(state, 0);
    MRC_TRY(status);
    (*out)->module = module, (*out)->state = state;
    status = join_module(*out);
    if (status == MERCER_OK) return MERCER_OK;
    (*out)->broken = true; /* closing must not wait for the other ranks, which may be in another call */
    mrc_comm_free(*out);
    *out = NULL;
    return status;
}
