/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that cross processes: a module (comm/module.h) behind the communicator's table. */
#define _GNU_SOURCE /* gethostname */

#include "comm/comm.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_CHARS = 64, LIST_CHARS = 200 };

#define LEAVE_SECONDS 1.0

/* Where a rank lives, for messages. */
typedef struct place {
    char host[HOST_CHARS];
    int64_t process;
} place;

typedef struct module_comm {
    mrc_comm base;
    const mrc_module *module;
    void *state;
    place *places; /* (ranks) */
    bool known;    /* places are filled */
    unsigned char *missing;
} module_comm;

/* ---- Exchanges ------------------------------------------------------------------------------------------------ */

/* "rank 2 (node7, process 1234), rank 3 ..." */
static void list_missing(const module_comm *self, char *text)
{
    int used = 0, listed = 0, all = 0;
    for (int r = 0; r < self->base.ranks; r++) all += self->missing[r];
    for (int r = 0; r < self->base.ranks && used < LIST_CHARS / 2 && listed < 3; r++) {
        if (!self->missing[r]) continue;
        used += snprintf(text + used, (size_t)(LIST_CHARS - used), "%srank %d", listed++ ? ", " : "", r);
        if (self->known)
            used += snprintf(text + used, (size_t)(LIST_CHARS - used), " (%.40s, process %lld)", self->places[r].host,
                             (long long)self->places[r].process);
    }
    if (all > listed) snprintf(text + used, (size_t)(LIST_CHARS - used), " and %d others", all - listed);
}

static mercer_status judge(module_comm *self, const mrc_outcome *outcome)
{
    mercer_context *context = self->base.context;
    char who[LIST_CHARS] = "another rank";
    switch (outcome->kind) {
        case MRC_OUTCOME_DONE: return MERCER_OK;
        case MRC_OUTCOME_LEFT:
            self->base.left_code = outcome->code;
            return mrc_fail(context, MERCER_ERROR_COMM, "rank %d ended: %s", outcome->rank, outcome->text);
        case MRC_OUTCOME_SILENT:
            list_missing(self, who);
            return mrc_fail(context, MERCER_ERROR_COMM,
                            "%s has died or stopped: no word for %.3g s, the deadline; the job ends", who,
                            self->base.deadline);
        case MRC_OUTCOME_FAILED: break;
    }
    return mrc_fail(context, MERCER_ERROR_COMM, "%s: %s", self->module->name, outcome->text);
}

static mercer_status exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    module_comm *self = (module_comm *)comm;
    mrc_outcome outcome = {.missing = self->missing};
    memset(self->missing, 0, (size_t)comm->ranks);
    self->module->exchange(self->state, send, receive, comm->deadline, &outcome);
    return judge(self, &outcome);
}

static mercer_status listen_to(mrc_comm *comm, bool alive)
{
    module_comm *self = (module_comm *)comm;
    mrc_outcome outcome = {.missing = self->missing};
    self->module->listen(self->state, alive, &outcome);
    return judge(self, &outcome);
}

static void leave(mrc_comm *comm, int code, const char *text, bool *first_left)
{
    module_comm *self = (module_comm *)comm;
    mrc_outcome outcome = {.missing = self->missing};
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
}

/* ---- Joining -------------------------------------------------------------------------------------------------- */

static mercer_status allocate(module_comm *self)
{
    mercer_context *context = self->base.context;
    void *memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, 2 * (int64_t)self->base.ranks, sizeof(mrc_piece), "the ranks' pieces"));
    self->base.pieces = memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, self->base.ranks, sizeof(place), "the ranks' places"));
    self->places = memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, self->base.ranks, 1, "the list of missing ranks"));
    self->missing = memory;
    return MERCER_OK;
}

static mercer_status introduce(module_comm *self)
{
    mrc_comm *comm = &self->base;
    place *own = &self->places[comm->rank];
    if (gethostname(own->host, sizeof own->host - 1) != 0) snprintf(own->host, sizeof own->host, "?");
    own->process = (int64_t)getpid();
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) pieces[r] = (mrc_piece){&self->places[r], sizeof(place)};
    MRC_TRY(mrc_comm_gather(comm, MERCER_HOST, pieces));
    self->known = true;
    return MERCER_OK;
}

static mercer_status join(module_comm *self, const char *name)
{
    mrc_comm *comm = &self->base;
    mrc_outcome outcome = {.kind = MRC_OUTCOME_DONE};
    const void *table;
    MRC_TRY(mrc_module_load(comm->context, name, MRC_MODULE_SYMBOL, &table));
    self->module = table;
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
    static const mrc_comm_ops ops = {"module", exchange, listen_to, leave, destroy};
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
