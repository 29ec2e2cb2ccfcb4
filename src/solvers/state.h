/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be saved of a training to resume it: a list of its matrices and numbers. One function lists them; saving
 * and restoring both walk that list, so they cannot disagree.
 */
#ifndef MRC_SOLVERS_STATE_H
#define MRC_SOLVERS_STATE_H

#include "core/context.h"

#include <stdbool.h>

struct mrc_temporary_centers;

enum { MRC_STATE_MATRICES = 24, MRC_STATE_NUMBERS = 64, MRC_STATE_PLAN = 512 };

/* A number of a training, and the values of it that a file may hold. Exactly one of the pointers is set. */
typedef struct mrc_state_number {
    const char *name; /* for messages */
    int64_t *whole;   /* 0 or more */
    double *real;     /* low .. high */
    bool *flag;
    double low, high;
    bool unknown; /* NaN is valid too: it was not measured */
} mrc_state_number;

typedef struct mrc_state_matrix {
    const char *name;
    mercer_matrix value; /* a view of the live matrix; no rows if there is none */
    int64_t total;       /* > 0: value has this rank's of so many rows. Otherwise all ranks have the same. */
    const struct mrc_temporary_centers *temporary; /* not rows of a field but of these, which lie with room between */
    int64_t first;                                 /* them, and begin here */
} mrc_state_matrix;

typedef struct mrc_state {
    mrc_state_matrix matrices[MRC_STATE_MATRICES];
    mrc_state_number numbers[MRC_STATE_NUMBERS];
    int matrix_count, number_count;
    bool overflow;             /* more was listed than there is room for: it must not be saved or restored */
    char plan[MRC_STATE_PLAN]; /* sizes and choices that must be the same when training is resumed, as text */
} mrc_state;

void mrc_state_add_matrix(mrc_state *state, const char *name, const mercer_matrix *value);
void mrc_state_add_field(mrc_state *state, const char *name, const mercer_matrix *value, int64_t p);
/* Points or weights of temporary centers: those of this rank that are in use. */
void mrc_state_add_temporary(mrc_state *state, const char *name, const mercer_matrix *value,
                             const struct mrc_temporary_centers *temporary);
void mrc_state_add_numbers(mrc_state *state, const mrc_state_number *numbers, int count);

/* The numbers in the order of the list, as doubles (whole numbers stay below 2^53). */
void mrc_state_read_numbers(const mrc_state *state, double *values);
/* Changes nothing if a value is not one that its number may have: *wrong is the first such number, otherwise NULL. */
void mrc_state_write_numbers(mrc_state *state, const double *values, const mrc_state_number **wrong);

/* Where states are kept: given to the trainer from outside, because the algorithms know no files. */
typedef struct mrc_keeper {
    /* Writes the state; `weights` (p, c) are those the model would get now. */
    mercer_status (*save)(void *user, const mrc_state *state, const mercer_matrix *weights);
    /* The plan's text of a state that was saved. */
    mercer_status (*load_plan)(void *user, char *text, size_t size);
    /* Fills in the numbers, or the matrices, of a state that was saved. MERCER_ERROR_MISMATCH if it is another's. */
    mercer_status (*load_numbers)(void *user, mrc_state *state);
    mercer_status (*load_matrices)(void *user, mrc_state *state);
    void *user;
} mrc_keeper;

#endif
