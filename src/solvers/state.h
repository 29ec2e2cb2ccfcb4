/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that is saved to resume a training run: a list of its matrices and numbers. Saving and restoring use the
 * same list, so they cannot disagree.
 */
#ifndef MRC_SOLVERS_STATE_H
#define MRC_SOLVERS_STATE_H

#include "core/context.h"

#include <stdbool.h>

struct mrc_temporary_centers;

enum { MRC_STATE_MATRICES = 24, MRC_STATE_NUMBERS = 64, MRC_STATE_VALUES = 40, MRC_STATE_NAME = 16 };

/* A number of the state and its valid range in a file. Exactly one of the pointers integer, real and flag is set. */
typedef struct mrc_state_number {
    const char *name; /* for messages */
    int64_t *integer; /* integer >= 0 */
    double *real;     /* low .. high */
    bool *flag;
    double low, high;
    bool unknown; /* NaN is valid, too, and means not measured */
} mrc_state_number;

typedef struct mrc_state_matrix {
    const char *name;
    mercer_matrix value; /* view of the matrix in use; no rows if the solver does not have it */
    int64_t total;       /* > 0: value has this rank's share of that number of rows; 0: all ranks have the same rows */
    const struct mrc_temporary_centers
        *temporary; /* set for temporary centers, whose matrices have unused rows between the shards */
    int64_t first;  /* temporary centers: index of this rank's first row among the rows of all ranks */
} mrc_state_matrix;

/* The sizes and choices of a plan that must be the same when training is resumed. */
typedef struct mrc_state_plan {
    double values[MRC_STATE_VALUES]; /* the first `count` are set */
    int count;
    char solver[MRC_STATE_NAME], projector[MRC_STATE_NAME];
} mrc_state_plan;

typedef struct mrc_state {
    mrc_state_matrix matrices[MRC_STATE_MATRICES];
    mrc_state_number numbers[MRC_STATE_NUMBERS];
    int matrix_count, number_count;
    bool overflow; /* the lists are too short, so the state must not be saved or restored */
    mrc_state_plan plan;
} mrc_state;

void mrc_state_add_matrix(mrc_state *state, const char *name, const mercer_matrix *value);
void mrc_state_add_field(mrc_state *state, const char *name, const mercer_matrix *value, int64_t p);
/* Add points or weights of temporary centers: the rows of this rank that are in use. */
void mrc_state_add_temporary(mrc_state *state, const char *name, const mercer_matrix *value,
                             const struct mrc_temporary_centers *temporary);
void mrc_state_add_numbers(mrc_state *state, const mrc_state_number *numbers, int count);

/* Copy the numbers, in the order of the list, to doubles (integers stay below 2^53). */
void mrc_state_read_numbers(const mrc_state *state, double *values);
/* Set the numbers. If a value is invalid, change nothing and set *wrong to the first such number; otherwise *wrong is
   NULL. */
void mrc_state_write_numbers(mrc_state *state, const double *values, const mrc_state_number **wrong);

#endif
