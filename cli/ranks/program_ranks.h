/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/ranks: the program as one of several ranks. They are processes of a launcher (mpirun -n 4 mercer train ...) or
 * threads of this process, one for each device of a list (--device cuda:0,cuda:1): rank_threads.c, devices.c.
 *
 * All ranks run the same command. Rank 0 alone prints, and writes the files that have one writer. A rank that fails
 * sends its reason to the others before it ends.
 */
#ifndef MERCER_CLI_PROGRAM_RANKS_H
#define MERCER_CLI_PROGRAM_RANKS_H

#include "cli.h"

/* Joins the job, if --comm and the launcher say so, and checks that all ranks were started alike; or makes one rank for
   each device of a list. Exit code. */
int cli_ranks_open(cli_values *v);
/* The end of the program, or of a rank's thread: in order if all went well on every rank, otherwise the other ranks get
   a message. Returns the exit code. */
int cli_ranks_close(int code);

/* The communicator, or NULL: this process is alone and its centers are in one shard. */
mercer_comm *cli_comm(void);
/* Its context; NULL if there is none. */
mercer_context *cli_comm_context(void);
int cli_rank(void);   /* 0 if alone */
int cli_ranks(void);  /* 1 if alone */
int cli_is_mpi(void); /* several processes, or one under --comm mpi */
/* Releases a context, unless it is the communicator's. */
void cli_release_context(mercer_context *context);

/* Memory of all ranks together that rank 0 decided on; 0 if alone. */
int64_t cli_ranks_memory(void);
/* *stop on all ranks if a signal asked one of them to end. Exit code. */
int cli_interrupted(int *stop);
/* Exit code CLI_RANKS with an error, unless all ranks have the same bytes. */
int cli_agree(const char *what, const void *data, int64_t bytes);

/* Ends the program at once, on whatever rank and thread, with an error that is always printed. */
_Noreturn void cli_give_up(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An error's text. 1: to be printed now (rank 0, unless it has said why it ends); other ranks print theirs when they
   find that rank 0 will not. */
int cli_ranks_blame(const char *text);
/* From now on a rank that ends writes why into DIR/errors.log as well: launchers may lose what is printed. */
void cli_ranks_folder(const char *path);
/* Waits until what was printed on stderr has been read: mpirun drops what it has not read when a rank has failed. */
void cli_wait_read(void);

/* ---- Devices (devices.c) ----------------------------------------------------------------------------------------- */

typedef struct cli_devices {
    char **names; /* (count) as contexts take them */
    int count;
    int list; /* a list, maybe of one: a rank each */
} cli_devices;
/* What --device says. Exit code, with the error printed and nothing left to free. */
int cli_devices_read(const cli_values *v, cli_devices *out);
void cli_devices_free(cli_devices *devices);
int cli_names_gpu(const cli_values *v); /* --device does, or auto finds one */
/* A context for one of them, which is there when mercer_context_start returns if it is deferred. Exit code. */
int cli_make_context(const cli_values *v, const char *device, int threads, int deferred, mercer_context **out);

/* ---- Threads as ranks (rank_threads.c)
   ---------------------------------------------------------------------------------- */

/* What a rank knows of its job. Every thread has one of its own. */
typedef struct cli_rank_state {
    mercer_comm *comm;
    mercer_context *context;
    int rank, ranks;
    int mpi, local; /* ranks are processes; threads */
    int64_t memory;
    double deadline;
    char blame[512]; /* the error that ends this rank, */
    int said;        /* and it has been printed */
    char *folder;    /* of the run, where it is written too; NULL if there is none */
} cli_rank_state;
cli_rank_state *cli_rank_state_here(void);

/* Contexts and communicators for all ranks; this thread is rank 0. Exit code. */
int cli_local_open(const cli_values *v, const cli_devices *devices, const mercer_comm_options *options);
/* The other ranks begin the command. Nothing if this process is one rank. Exit code. */
int cli_local_start(const cli_values *v);
/* Waits for their ends; ends the program with that code if one does not come within the deadline. */
void cli_local_join(int code);

#endif
