/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks.h: models that are shared among several processes or threads (ranks), and communicators. The rules at the top
 * of mercer.h hold here too.
 *
 * Stability: may change in a minor version; CHANGELOG.md lists every change.
 */
#ifndef MERCER_RANKS_H
#define MERCER_RANKS_H

#include "advanced.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Ranks are the processes of a job that mpirun, srun or a similar launcher has started, or several threads of one
 * process. Together they store one model. Its centers are divided into shards, and every rank holds some of the shards.
 * The order of sums over centers depends only on the number of shards, so results are bitwise identical for any number
 * of ranks. Functions for all ranks ("collective") must be called by every rank, in the same order and with the same
 * samples: every rank reads the whole stream of samples.
 *
 * A model that is created or loaded with a communicator is shared: mercer_model_predict, _classify, _save and training
 * are collective, all ranks pass the same X and get the same result. Each rank writes its own part of a model file; no
 * rank ever holds the whole model. The centers and weights in mercer_model_info are this rank's share.
 *
 * If a rank fails, dies or stops, the other ranks notice it at their next exchange, at the latest after the deadline:
 * their calls fail with MERCER_ERROR_COMM and a message that names the rank. After that, only mercer_comm_leave and the
 * _free functions may be called.
 */
typedef struct mercer_comm_options {
    size_t struct_size;
    const char *kind;     /* "mpi": processes of an MPI job, by a module that is loaded on demand; "self": only this
                             process; "auto" or NULL: "mpi" if a launcher started the process, else "self" */
    int shards;           /* number of shards of the centers, up to 65536; 0: MERCER_SHARDS_AUTO, but 1 for "self".
                             Results of "self" are bitwise identical to those of any number of ranks with the same
                             number of shards */
    double deadline;      /* seconds without a message after which another rank counts as dead, up to 1e6; 0: 60 */
    const char *exchange; /* route of data between GPUs: "host": through host memory; "nccl": directly from GPU to GPU,
                             an error if that is impossible; "auto" or NULL: directly if NCCL is available and every
                             rank has its own GPU, else through host memory */
    /* Called at most once, by mercer_comm_leave with its code and text, before the other ranks are notified; NULL:
       none. As soon as they are notified, the launcher may end the whole job: this rank must print its last messages
       here. */
    void (*leaving)(void *user, int code, const char *text);
    void *leaving_user; /* passed to `leaving` */
} mercer_comm_options;

/* Creates the communicator of this process: joins the ranks of a job, and waits until all of them have joined. The
   context must outlive the communicator. Errors: UNSUPPORTED (MPI is not available), COMM. */
MERCER_API mercer_status mercer_comm_create(mercer_comm **out, mercer_context *context,
                                            const mercer_comm_options *options);
/*
 * Creates the communicators of ranks that are threads of this process, for example one per GPU. contexts (ranks) has a
 * different context for each rank; 1 <= ranks <= 1024. out (ranks) receives all communicators, or none if the call
 * fails. The caller starts one thread per rank; only that thread may use out[r] and contexts[r]. All statements about
 * ranks apply to these threads. options: kind must be NULL, "auto" or "local", shards 0 or at least `ranks`. The
 * message of an error is stored in contexts[0]. Errors: SHAPE, COMM.
 */
MERCER_API mercer_status mercer_comm_create_local(mercer_comm **out, mercer_context *const *contexts, int ranks,
                                                  const mercer_comm_options *options);
/* Releases a communicator. All ranks must call it, for an orderly end of the job. After a failure it does not wait for
   the other ranks. */
MERCER_API void mercer_comm_free(mercer_comm *comm);

/* Returns the number of processes that a launcher started together with this one, and sets *rank (may be NULL) to the
   index of this process; 0 if no launcher did. Reads only environment variables. */
MERCER_API int mercer_comm_launched(int *rank);

typedef struct mercer_comm_info {
    size_t struct_size;
    int rank, ranks;   /* index of this rank, from 0; number of ranks */
    int shards;        /* number of shards; 0: chosen by the number of centers */
    int broken;        /* 1: an exchange failed */
    int left_code;     /* code that another rank passed to mercer_comm_leave, if that call broke the exchange; else 0 */
    int64_t exchanges; /* number of exchanges so far */
    int64_t bytes_sent, bytes_received; /* bytes so far, by this rank */
    int direct; /* 1: GPUs exchange data directly (decided when a model is first used); 0: through host memory */
} mercer_comm_info;

/* Describes a communicator, with the number of its exchanges so far. */
MERCER_API mercer_status mercer_comm_query(const mercer_comm *comm, mercer_comm_info *info);

/* Computes this rank's share of `centers` centers: *count of them, from index *first on. Errors: SHAPE. */
MERCER_API mercer_status mercer_comm_share(const mercer_comm *comm, int64_t *first, int64_t *count, int64_t centers);

/* Number of ranks and speed of their network, for mercer_plan_ranks. */
typedef struct mercer_network {
    size_t struct_size;
    int ranks;               /* number of ranks, at least 1 */
    int shards;              /* number of shards, at least `ranks`; 0: chosen by the number of centers */
    double bytes_per_second; /* bandwidth at which a rank sends, above 0 */
    double latency;          /* seconds per message; 0: 20 microseconds */
    int64_t validation_rows; /* validation rows that are predicted after every epoch; 0: none */
} mercer_network;

/* Predicted cost of a plan on several ranks. Bytes sent are means over the ranks. */
typedef struct mercer_rank_plan {
    size_t struct_size;
    int ranks, shards;                                       /* number of ranks and of shards */
    int64_t centers_a_rank;                                  /* largest number of centers on a rank */
    double batch_bytes, projection_bytes, epoch_bytes;       /* bytes that a rank sends per batch, projection, epoch */
    double batch_seconds, projection_seconds, epoch_seconds; /* seconds of communication per batch, projection, epoch */
    double compute_seconds;  /* seconds of computation per epoch, on ranks as fast as this machine */
    double projection_share; /* share of compute_seconds in projections */
    double shared_bytes;     /* memory of a rank that decreases with the number of ranks */
    double replicated_bytes; /* memory of a rank that is the same for any number of ranks */
    double checkpoint_bytes; /* size of the checkpoint file */
} mercer_rank_plan;

/* Predicts the cost on several ranks of a plan that was made for a shape (mercer_plan_shape). Errors: SHAPE, DTYPE. */
MERCER_API mercer_status mercer_plan_ranks(mercer_context *context, mercer_rank_plan *out, const mercer_plan *plan,
                                           const mercer_shape *shape, const mercer_network *network);

/* Sends rank 0's `bytes` bytes of `data` to all ranks. Collective, as are the next two functions. Errors of all three:
   COMM. */
MERCER_API mercer_status mercer_comm_broadcast(mercer_comm *comm, void *data, int64_t bytes);
/* Sets *any to 1 on all ranks if `mine` is not 0 on at least one rank, else to 0. */
MERCER_API mercer_status mercer_comm_any(mercer_comm *comm, int *any, int mine);
/* Fails with MERCER_ERROR_COMM on all ranks unless all have the same bytes. The message says "rank 2 has WHAT than
   rank 0"; `what` is for example "other options". */
MERCER_API mercer_status mercer_comm_agree(mercer_comm *comm, const char *what, const void *data, int64_t bytes);
/* Announces that this rank ends with an exit code and a reason (`text`): the next call of the other ranks fails with
   that reason. Calls options.leaving first. Only the first call has an effect. Waits up to two seconds for the other
   ranks to receive the message. Returns 1 if rank 0 has left as well, in which case its options.leaving has returned;
   else 0. */
MERCER_API int mercer_comm_leave(mercer_comm *comm, int code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
