/* SPDX-License-Identifier: BSD-3-Clause */
/* Permutation importance of the columns of a table, and partial dependence: importance.c has the definitions. */
#ifndef MRC_EXPLAIN_IMPORTANCE_H
#define MRC_EXPLAIN_IMPORTANCE_H

#include "data/dataset.h"
#include "model/model.h"

#include "mercer/evaluation.h"

struct mercer_importance {
    mercer_context *context;
    int64_t count;
    void *names;            /* (count) a list of texts in one block; NULL: they have none */
    double *drops, *errors; /* (count) */
    double score;
    mercer_task task;
    int64_t rows, repeats;
};

/* Measures the importance of all columns. Data and options have been checked. */
mercer_status mrc_importance_measure(mercer_importance **out, mercer_model *model, const mercer_dataset *data,
                                     const mercer_permutation_options *options);
void mrc_importance_free(mercer_importance *importance);
MRC_RELEASE(mrc_release_importance, mercer_importance, mrc_importance_free)

/* Sets values (*count, at most the rows of F) of a column, and row k of F to the mean prediction with value k. */
mercer_status mrc_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column, double *values,
                                     const mercer_matrix *F, int64_t *count);

#endif
