/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h: several processes or threads that hold one model together. The rules at the top of mercer.h hold here. */
#ifndef MERCER_RANKS_H
#define MERCER_RANKS_H

#include "advanced.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Several processes, the ranks of a job that mpirun, srun or the like has started, or several threads of one process,
 * hold one model together. Its centers are cut into shards, and every rank has some of them; what is summed over
 * centers is summed over shards in an order that depends on their number alone, so that any number of ranks gives the
 * same bits. Every rank makes the same calls in the same order, with the same samples: streams are read by each of
 * them.
 *
 * A rank that fails, dies or stops is noticed by the others when they next need it: their calls fail with
 * MERCER_ERROR_COMM and a message that names it, at the latest after the deadline. Nothing but mercer_comm_leave and
 * the _free functions may follow.
 */
typedef struct mercer_comm_options {
    size_t struct_size;
    const char *kind; /* "mpi" (a module that is loaded when it is asked for), "self": this process alone, or "auto":
                         mpi if a launcher started the process; NULL: auto */
    int shards;       /* 0: MERCER_SHARDS_AUTO, for "self" 1 */
    double deadline;  /* seconds without a word after which a rank is given up; 0: 60 */
    const char *exchange; /* of what lies on GPUs: "host", through host memory; "nccl", from GPU to GPU, or not at all;
                             "auto" or NULL: from GPU to GPU if every rank has one of its own, and NCCL */
    /* NULL, or called once on a rank that ends for a reason, before it tells the others: they end, and a launcher ends
       the job, as soon as they know. So what this rank has to say must be said here. `text` is the reason. */
    void (*leaving)(void *user, int code, const char *text);
    void *leaving_user;
} mercer_comm_options;

/* Joins the ranks of a job; waits for all of them. Errors: UNSUPPORTED (mpi is not here), COMM. */
MERCER_API mercer_status mercer_comm_create(mercer_comm **out, mercer_context *context,
                                            const mercer_comm_options *options);
/* One process with `ranks` shards: gives the bits that so many shards give on any number of ranks. */
MERCER_API mercer_status mercer_comm_create_virtual(mercer_comm **out, mercer_context *context, int ranks);
/*
 * Ranks that are threads of this process, one for each context (ranks), all different: one on each of several GPUs,
 * say. out (ranks) gets their communicators, all or none; out[r] is then used, as contexts[r] is, by one thread of its
 * own, which the caller starts, and everything said of ranks that are processes holds for these threads. options: kind
 * is NULL, "auto" or "local", shards 0 or at least ranks. An error's text is that of contexts[0]. Errors: SHAPE, COMM.
 */
MERCER_API mercer_status mercer_comm_create_local(mercer_comm **out, mercer_context *const *contexts, int ranks,
                                                  const mercer_comm_options *options);
/* Releases it. An orderly end: all ranks call it. After a failure it does not wait for the others. */
MERCER_API void mercer_comm_free(mercer_comm *comm);

/* How many processes a launcher has started together with this one, and (unless rank is NULL) which of them this is; 0
   if none did. Looks at the environment only. */
MERCER_API int mercer_comm_launched(int *rank);

typedef struct mercer_comm_info {
    size_t struct_size;
    int rank, ranks;
    int shards;        /* 0: by the number of centers */
    int broken;        /* 1: an exchange failed */
    int left_code;     /* the code that another rank gave mercer_comm_leave, if that was why */
    int64_t exchanges; /* so far */
    int64_t bytes_sent, bytes_received;
    int direct; /* 1: what lies on GPUs goes from GPU to GPU (settled when a model is first used) */
} mercer_comm_info;

/* What a communicator is and has done. */
MERCER_API mercer_status mercer_comm_query(const mercer_comm *comm, mercer_comm_info *info);

/* Which of so many centers are this rank's: `count` from `first` on. Errors: SHAPE. */
MERCER_API mercer_status mercer_comm_share(const mercer_comm *comm, int64_t *first, int64_t *count, int64_t centers);
/* How many shards they are cut into (1 if comm is NULL). */
MERCER_API int mercer_comm_shard_count(const mercer_comm *comm, int64_t centers);

/* A model that all ranks share. centers (count, d) is this rank's share of `total`. mercer_model_centers and _weights
   are those of this rank; mercer_model_predict, _classify and _save, and training, are calls of all ranks: they get the
   same X, and the same result. The file is written by all of them, each its part; none ever holds the whole. Errors:
   those of mercer_model_create, and COMM. */
MERCER_API mercer_status mercer_model_create_shared(mercer_model **out, mercer_comm *comm, const mercer_kernel *kernel,
                                                    const mercer_matrix *centers, int64_t total, int64_t outputs,
                                                    mercer_dtype weights);
/* The same from a file, of which each rank maps its share. Errors: those of mercer_model_load, and COMM. */
MERCER_API mercer_status mercer_model_load_shared(mercer_model **out, mercer_comm *comm, const char *path);
/* The number of centers, of all ranks. */
MERCER_API int64_t mercer_model_size(const mercer_model *model);

/* Ranks and what is between them. */
typedef struct mercer_network {
    size_t struct_size;
    int ranks;
    int shards;              /* 0: by the number of centers */
    double bytes_per_second; /* that a rank can send */
    double latency;          /* seconds of a message; 0: 20 microseconds */
    int64_t validation_rows; /* looked at after every epoch */
} mercer_network;

/* What a plan would cost on several ranks. Bytes are those that a rank sends, the mean over ranks. */
typedef struct mercer_rank_plan {
    size_t struct_size;
    int ranks, shards;
    int64_t centers_a_rank; /* of the rank with the most */
    double batch_bytes, projection_bytes, epoch_bytes;
    double batch_seconds, projection_seconds, epoch_seconds; /* on the wire */
    double compute_seconds;                                  /* of an epoch, on a rank like this machine */
    double projection_share;                                 /* of them, in projections */
    double shared_bytes;                                     /* memory of a rank that falls with their number, */
    double replicated_bytes;                                 /* and memory that does not */
    double checkpoint_bytes;                                 /* of the file */
} mercer_rank_plan;

/* The cost of a plan for a shape (mercer_plan_shape) on so many ranks. */
MERCER_API mercer_status mercer_plan_ranks(mercer_context *context, mercer_rank_plan *out, const mercer_plan *plan,
                                           const mercer_shape *shape, const mercer_network *network);

/* What training may use of each rank's device if it is not told (options.memory is for all ranks together): the
   smallest part of what is free there, less a margin; ranks that share a device share its memory. 0 if they compute in
   host memory. A call of all ranks. */
MERCER_API mercer_status mercer_comm_device_bytes(mercer_comm *comm, int64_t *each);

/* Rank 0's bytes on all ranks. Errors of this and the next two: COMM. */
MERCER_API mercer_status mercer_comm_broadcast(mercer_comm *comm, void *data, int64_t bytes);
/* *any = 1 on all ranks if `mine` is not 0 on one of them. */
MERCER_API mercer_status mercer_comm_any(mercer_comm *comm, int *any, int mine);
/* MERCER_ERROR_COMM on all ranks, unless they all have the same bytes. The message says "rank 2 has WHAT than rank
   0". */
MERCER_API mercer_status mercer_comm_agree(mercer_comm *comm, const char *what, const void *data, int64_t bytes);
/* This rank ends with an exit code, for a reason: the others' next call fails with that reason. A rank that has already
   left, because an exchange failed, leaves once. Waits up to two seconds for the others to take the message. Returns 1
   if rank 0 has left as well: its options.leaving has returned by then. */
MERCER_API int mercer_comm_leave(mercer_comm *comm, int code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
