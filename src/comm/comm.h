/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm: ranks and their collective operations. Ranks (processes, or threads of one process) divide the centers among
 * them and combine their results by collective operations.
 *
 * The centers are divided into S shards, consecutive and as even as possible, and the shards among R <= S ranks in the
 * same way. S does not depend on R: sums over centers are formed within shards first and then over shards in one fixed
 * tree, so that any number of ranks gives the same bits. `virtual` is one rank with S
 * shards, `local` ranks are threads of this process, and modules (module.h) connect processes. A module's one operation
 * is an exchange; the collectives below are made of it.
 */
#ifndef MRC_COMM_COMM_H
#define MRC_COMM_COMM_H

#include "comm/module.h"
#include "core/memory.h"
#include "mercer/ranks.h"

#include <stdbool.h>

typedef struct mercer_comm mrc_comm;

/* Host and process of a rank, for messages. */
enum { MRC_HOST_CHARS = 64 };
typedef struct mrc_rank_place {
    char host[MRC_HOST_CHARS];
    int64_t process;
} mrc_rank_place;

/* How device memory is exchanged. AUTO: from GPU to GPU if all ranks can, else through host memory. NEVER: through host
   memory. ALWAYS: from GPU to GPU, and a failure where that is impossible. */
typedef enum mrc_link_wish { MRC_LINK_AUTO = 0, MRC_LINK_NEVER, MRC_LINK_ALWAYS } mrc_link_wish;
typedef struct mrc_link mrc_link;

struct mercer_comm {
    const mrc_module *module; /* NULL: one rank */
    void *state;              /* the module's */
    mercer_context *context;
    int rank, ranks;
    int shards;      /* 0: as many as suit the number of centers */
    double deadline; /* seconds without a message after which other ranks count as dead */
    bool broken;     /* an exchange failed: no other may follow */
    int left_code;   /* the exit code of a rank that left, or 0 */
    bool left;       /* this rank has left, */
    bool first_left; /* and so had rank 0 */
    void (*leaving)(void *user, int code, const char *text); /* called before the exit message is sent, or NULL */
    void *leaving_user;
    int64_t exchanges, bytes_sent, bytes_received;
    mrc_piece *pieces;      /* (2 ranks) scratch of the collectives */
    unsigned char *missing; /* (ranks) scratch of exchanges */
    mrc_rank_place *places; /* (ranks) NULL: not known */
    mrc_link_wish wish;
    bool link_settled; /* mrc_comm_link has been called */
    mrc_link *link;    /* for exchanges of device memory (comm_link.c); NULL: they go through host memory */
};

void mrc_comm_free(mrc_comm *comm);
MRC_RELEASE(mrc_release_comm, mrc_comm, mrc_comm_free)
/* One rank with S >= 1 shards. */
mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int shards);
/* The ranks of a job, by the module of that name ("mpi"). */
mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline);
/* Ranks that are threads of this process, each with a context of its own (ranks): all of them or none. */
mercer_status mrc_comm_create_local(mrc_comm **out, mercer_context *const *contexts, int ranks, int shards,
                                    double deadline);
/* One of several ranks, not connected yet. */
mercer_status mrc_comm_allocate(mrc_comm **out, mercer_context *context, int rank, int ranks, int shards,
                                double deadline);
/* An exchange of host memory; and, without waiting, a failure if a rank has left. alive: tells the other ranks that
   this one waits. */
mercer_status mrc_comm_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive);
mercer_status mrc_comm_listen(mrc_comm *comm, bool alive);
/* Tells the other ranks, once, that this rank ends. True if rank 0 has left as well. */
bool mrc_comm_leave(mrc_comm *comm, int code, const char *text);

/* The table that mercer_NAME.so exports by that symbol. */
mercer_status mrc_module_load(mercer_context *context, const char *name, const char *symbol, const void **table);

/* ---- Device memory (comm_link.c) ------------------------------------------------------------------------------ */

/* Decides, once, whether the ranks' GPUs exchange directly. device: the number of this rank's GPU; -1: it has none. A
   collective call. A link that cannot be made is a failure only if a rank requires one. */
mercer_status mrc_comm_link(mrc_comm *comm, int device);
/* exchange with pieces in device memory, which no kernel is working on. */
mercer_status mrc_link_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive);
void mrc_comm_unlink(mrc_comm *comm);

/* The failure of an exchange as a status with its message. */
mercer_status mrc_comm_check(mrc_comm *comm, const mrc_comm_error *failure);

/* ---- Shares --------------------------------------------------------------------------------------------------- */

/* Part number `index` of `count` things in `parts` parts, as even as possible, the larger ones first. */
void mrc_share(int64_t count, int64_t parts, int64_t index, int64_t *first, int64_t *size);
/* Shards of at least LARGE_SHARD rows begin at multiples of ALIGNED_ROWS. Sums of at most ONE_ROUND bytes take one
   round. */
enum { MRC_LARGE_SHARD = 512, MRC_ALIGNED_ROWS = 64, MRC_ONE_ROUND_BYTES = 8192 };
/* The rows of shard number `index` of p centers: as even as possible but, unless shards are small, beginning at a
   multiple of 64. A device can then use a part of a packed form of all centers. And a shard's part of a field has the
   same alignment to 256 bytes on every rank, by which a library of the device may choose its algorithm. */
void mrc_shard_rows(int64_t p, int64_t shards, int64_t index, int64_t *first, int64_t *rows);
/* S for p centers: the communicator's own, or a power of two between 8 and 1024, with 4,096 centers or more each beyond
   8: products with few leave a GPU idle. */
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
/* What collectives need of a backend whose memory is not host memory: operations of its table. */
typedef struct mrc_worker {
    struct mrc_backend *self;
    mrc_memory memory;
    mercer_status (*alloc)(struct mrc_backend *self, void **out, int64_t bytes, const char *what);
    void (*free)(struct mrc_backend *self, void *memory);
    mercer_status (*copy)(struct mrc_backend *self, const mercer_matrix *to, const mercer_matrix *from);
    mercer_status (*axpby)(struct mrc_backend *self, double a, const mercer_matrix *x, double b,
                           const mercer_matrix *y);
    mercer_status (*sync)(struct mrc_backend *self);
} mrc_worker;

/*
 * parts[i] (local) is the contribution of local shard i: f32 or f64, rows without gaps, all of one shape. parts[0]
 * becomes the sum over all shards, the others are overwritten. The order of additions is that of a binary tree over the
 * shards. worker: of the memory that parts lie in; NULL: the host's.
 */
mercer_status mrc_comm_sum(mrc_comm *comm, mrc_shards shards, const mercer_matrix *parts, const mrc_worker *worker);
/* The memory for messages about matrices in `memory`: the same if the ranks have a link, else host memory. */
mrc_memory mrc_comm_memory(const mrc_comm *comm, mrc_memory memory);
/* Pieces of all ranks, in place: piece r (of these sizes, the same on all ranks) is filled in by rank r. In host
   memory, or in device memory if mrc_comm_memory says so; no kernel may be working on it. */
mercer_status mrc_comm_gather(mrc_comm *comm, mrc_memory memory, const mrc_piece *all);
/* A small record of every rank, in rank order, to a pointer whose address is `out`; it lives as long as the scope. */
mercer_status mrc_comm_records(mrc_comm *comm, mrc_scope *scope, const void *mine, int64_t bytes, void *out);
/* One rank's bytes on every rank, in memory as for mrc_comm_gather; and rank 0's, in host memory. */
mercer_status mrc_comm_spread(mrc_comm *comm, mrc_memory memory, int from, void *data, int64_t bytes);
mercer_status mrc_comm_broadcast(mrc_comm *comm, void *data, int64_t bytes);
/* *value becomes the largest of all ranks'. */
mercer_status mrc_comm_largest(mrc_comm *comm, double *value);
/* True on every rank if it is on one. */
mercer_status mrc_comm_any(mrc_comm *comm, bool mine, bool *any);
/* `status` if it is a failure here; else MERCER_OK if it is on all ranks; else a failure that names a rank where it is
   not. All ranks continue or none does. */
mercer_status mrc_comm_together(mrc_comm *comm, mercer_status status, const char *what);
/* MERCER_ERROR_COMM on every rank unless all have the same bytes. `what` as in "other options than rank 0". */
mercer_status mrc_comm_agree(mrc_comm *comm, const char *what, const void *data, int64_t bytes);

#endif
