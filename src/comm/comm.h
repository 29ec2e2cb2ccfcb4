/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: how ranks that share out the centers add things up. The table has one collective; everything global
 * that the algorithms need is built on it (algo/centers.h).
 *
 * A process holds `local` of the `ranks` ranks, numbered first .. first + local - 1: one for a process of a parallel
 * job, all of them for `self` (one rank) and `virtual` (R ranks in this process, served in turn).
 */
#ifndef MRC_COMM_COMM_H
#define MRC_COMM_COMM_H

#include "core/context.h"

typedef struct mercer_comm mrc_comm;

typedef struct mrc_comm_ops {
    const char *name;
    /*
     * parts[i] is the buffer of local rank i, all of one shape and dtype (f32, f64; u8 and f16 as raw bytes of which at most one
     * rank's are not 0). On return every one holds the sum over all ranks, added in rank order. f32 is summed in double.
     */
    mercer_status (*allreduce)(mrc_comm *comm, const mercer_matrix *parts);
    void (*destroy)(mrc_comm *comm);
} mrc_comm_ops;

struct mercer_comm {
    const mrc_comm_ops *ops;
    mercer_context *context;
    int ranks, first, local;
};

/* One rank. Never fails to work: allreduce does nothing. */
mercer_status mrc_comm_create_self(mrc_comm **out, mercer_context *context);
/* R >= 1 ranks in this process. */
mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int ranks);
void mrc_comm_free(mrc_comm *comm);

/* Rows of a matrix of p rows that rank r owns: first and count, as even as possible. */
void mrc_comm_share(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count);

#endif
