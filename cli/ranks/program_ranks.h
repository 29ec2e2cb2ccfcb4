/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/ranks: the program as one of several ranks. Ranks are processes of a launcher (mpirun -n 4 mercer train ...) or
 * threads of this process, one per device of a list (--device cuda:0,cuda:1): rank_threads.c, devices.c.
 *
 * All ranks run the same command. Only rank 0 prints results, and writes the files that are not written by all ranks. A
 * rank that fails sends its error to the other ranks before it ends.
 */
#ifndef MERCER_CLI_PROGRAM_RANKS_H
#define MERCER_CLI_PROGRAM_RANKS_H

#include "cli.h"

/* Joins the MPI job if --comm and the launcher require one, and checks that all ranks were started with the same
   options. For a list of devices, creates one rank per device. Returns an exit code. */
int cli_ranks_open(cli_values *v);
/* Ends this rank. If every rank succeeded or was interrupted, the ranks shut down together; otherwise this rank
   notifies the other ranks. Returns the exit code. */
int cli_ranks_close(int code);

/* Returns the communicator; NULL if this process is the only rank and holds all centers. */
mercer_comm *cli_comm(void);
/* Returns the communicator's context; NULL without a communicator. */
mercer_context *cli_comm_context(void);
int cli_rank(void);   /* 0 if there is one rank */
int cli_ranks(void);  /* 1 if there is one rank */
int cli_is_mpi(void); /* 1 for several processes, or one process with --comm mpi */
/* Releases a context, unless it belongs to the communicator. */
void cli_release_context(mercer_context *context);

/* Returns the memory limit in bytes of all ranks together, as decided by rank 0; 0 if there is one rank. */
int64_t cli_ranks_memory(void);
/* Sets *stop on all ranks if any of them received a signal to end. Returns an exit code. */
int cli_interrupted(int *stop);
/* Checks that all ranks have the same bytes; otherwise prints an error about `what` and returns CLI_RANKS. */
int cli_agree(const char *what, const void *data, int64_t bytes);

/* Ends the program immediately, from any rank and thread, with an error that is always printed. */
_Noreturn void cli_give_up(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Records the text of an error. Returns 1 if the caller must print the error now: on rank 0, unless rank 0 has already
   printed an error. Other ranks print their error in cli_ranks_close, if rank 0 prints none. */
int cli_ranks_blame(const char *text);
/* From now on, a failing rank also writes its error to DIR/errors.log, because launchers may lose output. */
void cli_ranks_folder(const char *path);
/* Waits until the launcher has read all of stderr: when a rank fails, mpirun drops output that it has not read. */
void cli_wait_read(void);

/* ---- Devices (devices.c) ----------------------------------------------------------------------------------------- */

typedef struct cli_devices {
    char **names; /* (count) device names as mercer_context_create accepts them */
    int count;
    int list; /* true if --device is a list, even of one device: each device gets a rank */
} cli_devices;
/* Parses --device; prints errors. Returns an exit code; release `out` with cli_devices_free in either case. */
int cli_devices_read(const cli_values *v, cli_devices *out);
void cli_devices_free(cli_devices *devices);
int cli_names_gpu(const cli_values *v); /* 1 if --device names a GPU, or auto finds one */
/* Creates a context for one device. If `deferred`, the device starts in the background. Returns an exit code. */
int cli_make_context(const cli_values *v, const char *device, int threads, int deferred, mercer_context **out);

/* ---- Threads as ranks (rank_threads.c) --------------------------------------------------------------------------- */

/* State of a rank; thread-local. */
typedef struct cli_rank_state {
    mercer_comm *comm;
    mercer_context *context;
    int rank, ranks;
    int mpi, local; /* ranks are processes (mpi) or threads (local) */
    int64_t memory;
    double deadline;
    char blame[512]; /* error with which this rank ends; "" if there is none */
    int said;        /* true if `blame` has been printed */
    char *folder;    /* run folder for errors.log; NULL: none */
} cli_rank_state;
cli_rank_state *cli_rank_state_here(void);

/* Creates contexts and communicators for all ranks; this thread becomes rank 0. Returns an exit code. */
int cli_local_open(const cli_values *v, const cli_devices *devices, const mercer_comm_options *options);
/* Starts the command on the other ranks; does nothing if there is only one rank in this process. Returns an exit
   code. */
int cli_local_start(const cli_values *v);
/* Joins the rank threads; exits with `code` if one has not finished by the deadline. */
void cli_local_join(int code);

#endif
