/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm: ranks and their collective operations. Ranks (processes, or threads of one process) divide the centers among
 * themselves and combine their results by collective operations.
 *
 * The centers are divided into S consecutive shards of nearly equal size. The shards are divided among R <= S ranks in
 * the same way. S does not depend on R. Sums over centers are formed first within shards, then over shards in one fixed
 * tree. So results are bitwise identical for any number of ranks. A `virtual` communicator is one rank with S shards,
 * `local` ranks are threads of this process, and modules (module.h) connect processes. The only data transfer of a
 * module is the exchange, from which the collectives below are built.
 */
#ifndef MRC_COMM_COMM_H
#define MRC_COMM_COMM_H

#include "comm/module.h"
#include "core/memory.h"
#include "mercer/ranks.h"

#include <stdbool.h>

typedef struct mercer_comm mrc_comm;

/* Host and process of a rank, for error messages. */
enum { MRC_HOST_CHARS = 64 };
typedef struct mrc_rank_process {
    char host[MRC_HOST_CHARS];
    int64_t process;
} mrc_rank_process;

/* How to exchange device memory. AUTO: from GPU to GPU if all ranks can, else through host memory. NEVER: through host
   memory. ALWAYS: from GPU to GPU; an error if that is impossible. */
typedef enum mrc_link_wish { MRC_LINK_AUTO = 0, MRC_LINK_NEVER, MRC_LINK_ALWAYS } mrc_link_wish;
typedef struct mrc_link mrc_link;

struct mercer_comm {
    const mrc_module *module; /* NULL: one rank */
    void *state;              /* state of the module */
    mercer_context *context;
    int rank, ranks;
    int shards;      /* number of shards; 0: derived from the number of centers */
    double deadline; /* seconds without a message after which other ranks count as dead */
    bool broken;     /* an exchange failed: no further exchange may follow */
    int left_code;   /* exit code of the rank that left, or 0 */
    bool left;       /* this rank has left */
    bool first_left; /* rank 0 has left as well; set by mrc_comm_leave */
    void (*leaving)(void *user, int code, const char *text); /* called before the exit message is sent, or NULL */
    void *leaving_user;
    int64_t exchanges, bytes_sent, bytes_received;
    mrc_piece *pieces;        /* (2 ranks) scratch space of the collectives */
    unsigned char *missing;   /* (ranks) scratch space of exchanges */
    mrc_rank_process *places; /* (ranks) host and process of each rank; NULL: unknown */
    mrc_link_wish wish;
    bool link_settled; /* mrc_comm_link has been called */
    mrc_link *link;    /* link for device memory (comm_link.c); NULL: exchanges go through host memory */
};

void mrc_comm_free(mrc_comm *comm);
MRC_RELEASE(mrc_release_comm, mrc_comm, mrc_comm_free)
/* Creates a communicator of one rank with S = shards >= 1. */
mercer_status mrc_comm_create_virtual(mrc_comm **out, mercer_context *context, int shards);
/* Joins the job through the module `name` ("mpi"), which determines this rank and the number of ranks. */
mercer_status mrc_comm_create_module(mrc_comm **out, mercer_context *context, const char *name, int shards,
                                     double deadline);
/* Creates ranks that are threads of this process, each with its own context: out and contexts are (ranks). On failure
   no rank is created. */
mercer_status mrc_comm_create_local(mrc_comm **out, mercer_context *const *contexts, int ranks, int shards,
                                    double deadline);
/* Allocates the communicator of one rank without connecting it. */
mercer_status mrc_comm_allocate(mrc_comm **out, mercer_context *context, int rank, int ranks, int shards,
                                double deadline);
/* mrc_comm_exchange exchanges host memory. mrc_comm_listen fails if a rank has left, without waiting; alive: also
   notifies the other ranks that this rank is waiting. */
mercer_status mrc_comm_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive);
mercer_status mrc_comm_listen(mrc_comm *comm, bool alive);
/* Notifies the other ranks that this rank ends; only the first call has an effect. Returns whether rank 0 has left as
   well. */
bool mrc_comm_leave(mrc_comm *comm, int code, const char *text);

/* Loads mercer_NAME.so and sets *table to the table that it exports as `symbol`. */
mercer_status mrc_module_load(mercer_context *context, const char *name, const char *symbol, const void **table);

/* ---- Device memory (comm_link.c) ------------------------------------------------------------------------------ */

/* Decides, at its first call, whether the ranks' GPUs exchange directly. device: index of this rank's GPU; -1: none.
   Collective. If no link is possible, the call fails only if some rank requires a link. */
mercer_status mrc_comm_link(mrc_comm *comm, int device);
/* Exchanges pieces of device memory, which no kernel may be using. */
mercer_status mrc_link_exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive);
void mrc_comm_unlink(mrc_comm *comm);

/* Converts the failure of an exchange to a status and records its message. */
mercer_status mrc_comm_check(mrc_comm *comm, const mrc_comm_error *failure);

/* ---- Shares --------------------------------------------------------------------------------------------------- */

/* Divides `count` items into `parts` consecutive parts of nearly equal size, larger parts first. Sets *first and *size
   to the range of part `index`. */
void mrc_share(int64_t count, int64_t parts, int64_t index, int64_t *first, int64_t *size);
/* Shards of at least MRC_LARGE_SHARD rows begin at multiples of MRC_ALIGNED_ROWS. Sums of at most MRC_ONE_ROUND_BYTES
   bytes take one round. */
enum { MRC_LARGE_SHARD = 512, MRC_ALIGNED_ROWS = 64, MRC_ONE_ROUND_BYTES = 8192 };
/* Finds the rows of shard `index` of p centers. Shards are as even as possible but, unless they are small, begin at a
   multiple of 64 rows. A device can then use a part of a packed form of all centers. A shard's part of an array also
   has the same alignment to 256 bytes on every rank; device libraries may choose their algorithm by alignment. */
void mrc_shard_rows(int64_t p, int64_t shards, int64_t index, int64_t *first, int64_t *rows);
/* Returns S for p centers: comm->shards if set, else a power of two between 8 and 1024. More than 8 shards have at
   least 4,096 centers each, because products with fewer centers leave a GPU idle. */
int mrc_comm_shards(const mrc_comm *comm, int64_t p);
/* Returns the number of tree nodes (collective.c) that remain when a rank has added up its shards first .. end - 1 of
   `all` shards. */
int mrc_comm_node_count(int all, int first, int end);
/* Finds the rows of a rank's shards in a matrix of p rows, one per center. */
void mrc_comm_rows(const mrc_comm *comm, int64_t p, int rank, int64_t *first, int64_t *count);

/* ---- Collectives (collective.c): every rank calls them in the same order ---------------------------------------- */

/* This rank's shards in a sum: first .. first + local - 1 of `all`. */
typedef struct mrc_shards {
    int all, first, local;
} mrc_shards;
/* Operations of a backend with device memory that collectives need, from the backend's table. */
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
 * Sums over all shards. parts[i], i < shards.local, is the contribution of local shard i: f32 or f64, contiguous rows,
 * all of one shape. parts[0] becomes the sum; all other parts are overwritten. The additions follow a binary tree over
 * the shards (collective.c). worker: operations for the memory of parts; NULL: host memory.
 */
mercer_status mrc_comm_sum(mrc_comm *comm, mrc_shards shards, const mercer_matrix *parts, const mrc_worker *worker);
/* Returns the kind of memory through which matrices in `memory` are exchanged: `memory` itself if the ranks have a link
   or there is one rank, else host memory. */
mrc_memory mrc_comm_memory(const mrc_comm *comm, mrc_memory memory);
/* All-gathers in place: rank r has filled in piece all[r], and all other ranks receive this piece. Sizes are the same
   on all ranks. Pieces are in the memory kind that mrc_comm_memory returns; no kernel may be using device memory. */
mercer_status mrc_comm_gather(mrc_comm *comm, mrc_memory memory, const mrc_piece *all);
/* Gathers a small record of `bytes` bytes from every rank, in rank order. `out` is the address of a pointer to the
   records, which live as long as the scope. */
mercer_status mrc_comm_records(mrc_comm *comm, mrc_scope *scope, const void *mine, int64_t bytes, void *out);
/* mrc_comm_spread sends the bytes of rank `from` to all ranks; `memory` is as for mrc_comm_gather. mrc_comm_broadcast
   sends the bytes of rank 0, in host memory. */
mercer_status mrc_comm_spread(mrc_comm *comm, mrc_memory memory, int from, void *data, int64_t bytes);
mercer_status mrc_comm_broadcast(mrc_comm *comm, void *data, int64_t bytes);
/* Sets *value to the maximum over all ranks. */
mercer_status mrc_comm_largest(mrc_comm *comm, double *value);
/* Sets *any to true on every rank if `mine` is true on any rank. */
mercer_status mrc_comm_any(mrc_comm *comm, bool mine, bool *any);
/* Combines the statuses of all ranks, so that either all ranks continue or none. Returns `status` if it is a failure,
   MERCER_OK if all ranks succeeded, else a failure that names a failed rank. */
mercer_status mrc_comm_together(mrc_comm *comm, mercer_status status, const char *what);
/* Fails with MERCER_ERROR_COMM on every rank unless `data` has the same bytes on all ranks. `what` is inserted in the
   message "rank 1 has WHAT than rank 0", for example "other options". */
mercer_status mrc_comm_agree(mrc_comm *comm, const char *what, const void *data, int64_t bytes);

#endif
