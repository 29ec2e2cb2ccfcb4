/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: ranks (processes, or threads of one) that share out the centers, and what they may ask of each other.
 *
 * The centers are cut into S shards, consecutive and as even as possible, and the shards are dealt to R <= S ranks in the
 * same way. S does not depend on R: whatever is summed over centers is summed within shards first and then over shards in
 * one fixed tree, so that any number of ranks gives the same bits. `self` is one rank with one shard, `virtual` one rank
 * with S of them.
 *
 * A communicator has one operation, exchange; the collectives below are made of it.
 */
#ifndef MRC_COMM_COMM_H
#define MRC_COMM_COMM_H

#include "comm/module.h"
#include "core/context.h"

#include <stdbool.h>

typedef struct mercer_comm mrc_comm;

typedef struct mrc_comm_ops {
    const char *name;
    /* As in comm/module.h: send[r] goes to rank r, receive[r] comes from it. Only called with more than one rank. */
    mercer_status (*exchange)(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive);
    void (*leave)(mrc_comm *comm, int code, const char *text, bool *first_left);
    void (*destroy)(mrc_comm *comm);
} mrc_comm_ops;

struct mercer_comm {
    const mrc_comm_ops *ops;
    mercer_context *context;
    int rank, ranks;
    int shards;      /* 0: as many as suit the number of centers */
    double deadline; /* seconds without news after which the others are given up */
    bool broken;     /* an exchange failed: no other can follow */
    int left_code;   /* the code that a rank which left gave, or 0 */
    int64_t exchanges, bytes_sent, bytes_received;
    mrc_piece *pieces; /* (2 ranks) scratch of the collectives */
};

/* One rank, one shard; and one rank, S >= 1 shards. */
mercer_status mrc_comm_create_self(mrc_comm **out, mercer_context *context);
mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int shards);
/* The ranks of a job, by the module of that name ("mpi"). */
mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline);
/* Ranks that are threads of this process, each with a context of its own (ranks): all of them or none. */
mercer_status mrc_comm_create_local(mrc_comm **out, mercer_context *const *contexts, int ranks, int shards,
                                    double deadline);
void mrc_comm_free(mrc_comm *comm);

/* Where a rank lives, for messages. */
enum { MRC_HOST_CHARS = 64 };
typedef struct mrc_rank_place {
    char host[MRC_HOST_CHARS];
    int64_t process;
} mrc_rank_place;
/* The outcome of an exchange as a status with its message. name: of who carries it; places (ranks): NULL if not known. */
mercer_status mrc_comm_judge(mrc_comm *comm, const char *name, const mrc_rank_place *places,
                             const mrc_outcome *outcome);

/* ---- Shares --------------------------------------------------------------------------------------------------- */

/* Part number `index` of `count` things in `parts` parts, as even as possible, the larger ones first. */
void mrc_share(int64_t count, int64_t parts, int64_t index, int64_t *first, int64_t *size);
/* S for p centers: the communicator's own, or a power of two with about 1,000 centers each, between 8 and 1024. */
int mrc_comm_shards(const mrc_comm *comm, int64_t p);
/* How many nodes of the tree of a sum are left of shards first .. end - 1 of `all`, when they have been added up. */
int mrc_comm_node_count(int all, int first, int end);
/* Rows of a matrix of p rows that a rank owns: those of its shards. */
void mrc_comm_rows(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count);

/* ---- Collectives (collective.c): every rank calls them in the same order ---------------------------------------- */

/* Shards of a sum: number `first` .. first + local - 1 of `all`. */
typedef struct mrc_shards {
    int all, first, local;
} mrc_shards;
/*
 * parts[i] (local) is the contribution of local shard i: f32 or f64, rows without gaps, all of one shape. parts[0] becomes the sum
 * over all shards, the others are spoiled. The order of additions is that of a binary tree over the shards.
 */
mercer_status mrc_comm_sum(mrc_comm *comm, mrc_shards shards, const mercer_matrix *parts);
/* Pieces of all ranks, in place: piece r (of these sizes, the same on all ranks) is filled in by rank r. */
mercer_status mrc_comm_gather(mrc_comm *comm, const mrc_piece *all);
/* Rank 0's bytes on every rank. */
mercer_status mrc_comm_broadcast(mrc_comm *comm, void *data, int64_t bytes);
/* True on every rank if it is on one. */
mercer_status mrc_comm_any(mrc_comm *comm, bool mine, bool *any);
/* `status` if it is a failure here; else MERCER_OK if all ranks are well; else a failure that names a rank that is not.
   Every rank goes on or none does. */
mercer_status mrc_comm_together(mrc_comm *comm, mercer_status status, const char *what);
/* MERCER_ERROR_COMM on every rank unless all have the same bytes. `what` as in "other options than rank 0". */
mercer_status mrc_comm_agree(mrc_comm *comm, const char *what, const void *data, int64_t bytes);

#endif
