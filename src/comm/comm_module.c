/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that cross processes: a module (comm/module.h) behind the communicator's table. */
#define _GNU_SOURCE /* gethostname */

#include "comm/comm.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAVE_SECONDS 2.0 /* to wait for rank 0's message */

typedef struct module_comm {
    mrc_comm base;
    const mrc_module *module;
    void *state;
    mrc_rank_place *places; /* (ranks) */
    bool known;             /* places are filled */
    unsigned char *missing;
} module_comm;

/* ---- Exchanges ------------------------------------------------------------------------------------------------ */

static mercer_status exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    module_comm *self = (module_comm *)comm;
    mrc_comm_error failure = {.missing = self->missing};
    memset(self->missing, 0, (size_t)comm->ranks);
    self->module->exchange(self->state, send, receive, comm->deadline, &failure);
    return mrc_comm_check(comm, self->module->name, self->known ? self->places : NULL, &failure);
}

static mercer_status listen_to(mrc_comm *comm, bool alive)
{
    module_comm *self = (module_comm *)comm;
    mrc_comm_error failure = {.missing = self->missing};
    self->module->listen(self->state, alive, &failure);
    return mrc_comm_check(comm, self->module->name, self->known ? self->places : NULL, &failure);
}

static void leave(mrc_comm *comm, int code, const char *text, bool *first_left)
{
    module_comm *self = (module_comm *)comm;
    mrc_comm_error failure = {.missing = self->missing};
    self->module->leave(self->state, code, text, LEAVE_SECONDS, &failure);
    *first_left = failure.kind == MRC_COMM_ERROR_LEFT;
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
    MRC_TRY(mrc_comm_gather(comm, MERCER_HOST, pieces));
    self->known = true;
    return MERCER_OK;
}

static mercer_status join(module_comm *self, const char *name)
{
    mrc_comm *comm = &self->base;
    mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
    const void *table;
    MRC_TRY(mrc_module_load(comm->context, name, MRC_MODULE_SYMBOL, &table));
    self->module = table;
    self->module->open(&self->state, &comm->rank, &comm->ranks, &failure);
    if (!self->state)
        return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: cannot join the job: %s", name, failure.text);
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
        self->base.broken = true; /* the other ranks may be in another call */
        mrc_comm_free(&self->base);
        return status;
    }
    *out = &self->base;
    return MERCER_OK;
}
