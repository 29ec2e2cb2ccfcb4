/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that cross processes: joining a job by a module that is loaded for it. */
#define _GNU_SOURCE /* gethostname */

#include "comm/comm.h"
#include "core/memory.h"

#include <stdio.h>
#include <unistd.h>

/* Tells all ranks where this one runs, for messages about it. */
static mercer_status introduce(mrc_comm *comm)
{
    mrc_rank_place own = {.process = (int64_t)getpid()};
    if (gethostname(own.host, sizeof own.host - 1) != 0) snprintf(own.host, sizeof own.host, "?");
    return mrc_comm_records(comm, &own, sizeof own, &comm->places);
}

static mercer_status join(mrc_comm *comm)
{
    if (comm->ranks > mrc_comm_shards(comm, INT64_MAX / 4))
        return mrc_fail(comm->context, MERCER_ERROR_ARGUMENT,
                        "%d ranks are more than the %d shards of the centers; give at least as many shards",
                        comm->ranks, mrc_comm_shards(comm, INT64_MAX / 4));
    return introduce(comm);
}

mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline)
{
    mrc_comm_error failure = {.kind = MRC_COMM_ERROR_DONE};
    const void *table;
    void *state;
    int rank, ranks;
    *out = NULL;
    MRC_TRY(mrc_module_load(context, name, MRC_MODULE_SYMBOL, &table));
    const mrc_module *module = table;
    module->open(&state, &rank, &ranks, &failure);
    if (!state) return mrc_fail(context, MERCER_ERROR_COMM, "%s: cannot join the job: %s", name, failure.text);
    mercer_status status = mrc_comm_allocate(out, context, rank, ranks, shards, deadline);
    if (status != MERCER_OK) {
        module->close(state, 0);
        return status;
    }
    (*out)->module = module, (*out)->state = state;
    status = join(*out);
    if (status == MERCER_OK) return MERCER_OK;
    (*out)->broken = true; /* the other ranks may be in another call */
    mercer_comm_free(*out);
    *out = NULL;
    return status;
}
