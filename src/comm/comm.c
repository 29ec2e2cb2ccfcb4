/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of one rank, and how centers are divided into shards and shards among ranks. */
#include "comm/comm.h"

#include "core/memory.h"

enum { CENTERS_A_SHARD = 4096, LEAST_SHARDS = 8, MOST_SHARDS = 1024 };

static mercer_status exchange_nothing(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    (void)comm, (void)send, (void)receive;
    return MERCER_OK;
}

static mercer_status hear_nothing(mrc_comm *comm, bool alive)
{
    (void)comm, (void)alive;
    return MERCER_OK;
}

static void leave_nobody(mrc_comm *comm, int code, const char *text, bool *first_left)
{
    (void)comm, (void)code, (void)text;
    *first_left = false;
}

static void destroy_nothing(mrc_comm *comm)
{
    (void)comm;
}

static const mrc_comm_ops self_ops = {"self", exchange_nothing, hear_nothing, leave_nobody, destroy_nothing};
static const mrc_comm_ops virtual_ops = {"virtual", exchange_nothing, hear_nothing, leave_nobody, destroy_nothing};

static mercer_status create(mrc_comm **out, mercer_context *context, const mrc_comm_ops *ops, int shards)
{
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(mrc_comm), "the communicator"));
    *out = memory;
    **out = (mrc_comm){.ops = ops, .context = context, .ranks = 1, .shards = shards};
    return MERCER_OK;
}

mercer_status mrc_comm_create_self(mrc_comm **out, mercer_context *context)
{
    return create(out, context, &self_ops, 1);
}

mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int shards)
{
    return create(out, context, &virtual_ops, shards);
}

void mrc_comm_free(mrc_comm *comm)
{
    if (!comm) return;
    mrc_comm_unlink(comm);
    comm->ops->destroy(comm);
    mrc_free(comm->context, comm);
}

bool mrc_comm_leave(mrc_comm *comm, int code, const char *text)
{
    if (comm->ranks == 1 || comm->left) return comm->first_left;
    comm->left = comm->broken = true;
    /* First: the other ranks may end the job as soon as they get the message. */
    if (comm->leaving) comm->leaving(comm->leaving_user, code, text);
    comm->ops->leave(comm, code, text, &comm->first_left);
    return comm->first_left;
}

/* ---- Shares --------------------------------------------------------------------------------------------------- */

void mrc_share(int64_t count, int64_t parts, int64_t index, int64_t *first, int64_t *size)
{
    int64_t each = count / parts, more = count % parts; /* the first `more` parts get one more */
    *first = index * each + mrc_min(index, more);
    *size = each + (index < more ? 1 : 0);
}

int mrc_comm_shards(const mrc_comm *comm, int64_t p)
{
    int shards = LEAST_SHARDS;
    if (comm->shards > 0) return comm->shards;
    while (shards < MOST_SHARDS && 2 * (int64_t)shards * CENTERS_A_SHARD <= p) shards *= 2;
    return shards;
}

void mrc_shard_rows(int64_t p, int64_t shards, int64_t index, int64_t *first, int64_t *rows)
{
    int64_t unit = p >= MRC_LARGE_SHARD * shards ? MRC_ALIGNED_ROWS : 1, units;
    mrc_share((p + unit - 1) / unit, shards, index, first, &units);
    *first *= unit;
    *rows = mrc_min(units * unit, p - *first);
}

void mrc_comm_rows(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count)
{
    int64_t shards = mrc_comm_shards(comm, p), begin, own, end, rows;
    mrc_share(shards, comm->ranks, rank, &begin, &own);
    mrc_shard_rows(p, shards, begin, first, &rows);
    *count = 0;
    if (own == 0) return;
    mrc_shard_rows(p, shards, begin + own - 1, &end, &rows);
    *count = end + rows - *first;
}
