/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program as one of several ranks that a launcher has started: mpirun -n 4 mercer train ... All of them do the same; rank 0
 * alone talks, and writes files that have one writer. A rank that fails tells the others before it ends.
 */
#ifndef MERCER_CLI_RANKS_H
#define MERCER_CLI_RANKS_H

#include "cli.h"

/* Joins the job, if --comm and the launcher say so, and checks that all ranks were started alike. Exit code. */
int cli_ranks_open(cli_values *v);
/* The end of the program: in order if all went well everywhere, otherwise the others are told. Returns the exit code. */
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

/* An error's text, to be printed by rank 0 at once and by others when they find that rank 0 will not. */
void cli_ranks_blame(const char *text);

#endif
