/* SPDX-License-Identifier: BSD-3-Clause */
/* Named solvers of the EigenPro family: rows that fix parts of the one iteration. */
#ifndef MRC_SOLVERS_ITERATION_PRESETS_H
#define MRC_SOLVERS_ITERATION_PRESETS_H

#include "solvers/iteration/iteration.h"

/* A named solver: which parts of the iteration it fixes. 0 or NULL leaves a choice to the planner. */
typedef struct mrc_preset {
    const char *name;
    bool exact; /* direct, cg: not the iteration */
    mrc_update update;
    bool no_eigenpairs; /* q = 0 */
    bool whole_sample;  /* s = n */
    bool whole_batch;   /* m = n */
    int64_t period;     /* T */
    const char *projector;
    double gamma;
    mercer_switch average; /* what AUTO means */
    const char *says;      /* one line for people */
} mrc_preset;

const mrc_preset *mrc_preset_find(const char *name);
/* Every name, separated by ", ". */
void mrc_preset_names(char *text, size_t size);

#endif
