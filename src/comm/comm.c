/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communicators that live in one process.
 *
 *   self     one rank: nothing to add.
 *   virtual  R ranks served in turn: sum_r parts_r in rank order, in double for f32, then copied back to each. It tests the
 *            distributed algorithms without a network and gives the same answer every time.
 */
#include "comm/comm.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

static mercer_status allreduce_self(mrc_comm *comm, const mercer_matrix *parts)
{
    (void)comm, (void)parts;
    return MERCER_OK;
}

static void add_bytes(const mercer_matrix *to, const mercer_matrix *from, int64_t i)
{
    unsigned char *left = mrc_row(to, i);
    const unsigned char *right = mrc_row(from, i);
    for (int64_t k = 0; k < to->cols * mrc_dtype_size(to->dtype); k++) left[k] |= right[k];
}

static void sum_row(const mercer_matrix *parts, int ranks, int64_t i)
{
    if (parts->dtype == MERCER_U8 || parts->dtype == MERCER_F16) {
        for (int r = 1; r < ranks; r++) add_bytes(&parts[0], &parts[r], i);
        return;
    }
    for (int64_t j = 0; j < parts->cols; j++) {
        double sum = 0;
        for (int r = 0; r < ranks; r++) sum += mrc_load(&parts[r], i, j);
        mrc_store(&parts[0], i, j, sum);
    }
}

static mercer_status allreduce_virtual(mrc_comm *comm, const mercer_matrix *parts)
{
    if (comm->ranks == 1) return MERCER_OK;
    for (int64_t i = 0; i < parts->rows; i++) {
        sum_row(parts, comm->ranks, i);
        size_t bytes = (size_t)(parts->cols * mrc_dtype_size(parts->dtype));
        for (int r = 1; r < comm->ranks; r++)
            if (bytes) memcpy(mrc_row(&parts[r], i), mrc_row(&parts[0], i), bytes);
    }
    return MERCER_OK;
}

static void destroy_nothing(mrc_comm *comm)
{
    (void)comm;
}

static const mrc_comm_ops self_ops = {"self", allreduce_self, destroy_nothing};
static const mrc_comm_ops virtual_ops = {"virtual", allreduce_virtual, destroy_nothing};

static mercer_status create(mrc_comm **out, mercer_context *context, const mrc_comm_ops *ops, int ranks)
{
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc(context, &memory, 1, sizeof(mrc_comm), "the communicator"));
    *out = memory;
    **out = (mrc_comm){.ops = ops, .context = context, .ranks = ranks, .first = 0, .local = ranks};
    return MERCER_OK;
}

mercer_status mrc_comm_create_self(mrc_comm **out, mercer_context *context)
{
    return create(out, context, &self_ops, 1);
}

mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int ranks)
{
    return create(out, context, &virtual_ops, ranks);
}

void mrc_comm_free(mrc_comm *comm)
{
    if (!comm) return;
    comm->ops->destroy(comm);
    mrc_free(comm->context, comm);
}

void mrc_comm_share(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count)
{
    int64_t each = p / comm->ranks, more = p % comm->ranks; /* the first `more` ranks get one row more */
    *first = rank * each + mrc_min(rank, more);
    *count = each + (rank < more ? 1 : 0);
}
