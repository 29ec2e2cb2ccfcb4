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
    void *names;            /* (count) names of the columns, one allocation, owned; NULL: the columns have no names */
    double *drops, *errors; /* (count) mean decrease of the score per column, and its standard error; owned */
    double score;
    mercer_task task;
    int64_t rows, repeats;
};

/* Measures the importance of all columns. The caller has checked data and options. */
mercer_status mrc_importance_measure(mercer_importance **out, mercer_model *model, const mercer_dataset *data,
                                     const mercer_permutation_options *options);
void mrc_importance_free(mercer_importance *importance);
MRC_RELEASE(mrc_release_importance, mercer_importance, mrc_importance_free)

/* Computes the partial dependence on a column: sets values (*count, at most the rows of F), and row k of F to the
   mean prediction with the column set to value k. */
mercer_status mrc_partial_dependence(mercer_model *model, const mercer_dataset *data, int64_t column, double *values,
                                     const mercer_matrix *F, int64_t *count);

#endif
