/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets: squared errors and right labels. */
#ifndef MRC_SOLVERS_LOSS_H
#define MRC_SOLVERS_LOSS_H

#include "backends/backend.h"
#include "core/numbers/units.h"

/* What is reported counts the sample weights. What tells divergence does not: one heavy row would drown the others. */
typedef struct mrc_loss {
    double squared_error;  /* sum over rows and outputs */
    double squared_target; /* the same of the targets, less their offset: the error of a model without weights */
    double weighted_error; /* sum over rows and outputs, times the rows' weights */
    double right;          /* weight of the rows whose largest output is the largest target (the first of equals) */
    double weight;         /* of all rows */
    int64_t rows;
} mrc_loss;

/* Adds the rows of predictions F (m, c) against targets Y (m, c) with weights (m), NULL: all 1, to the sums. If units
   are given, F and Y have been brought to them, and the sums are those of what they were: squares of output j count
   scale_j^2, and classes are compared with offsets. */
mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                           const double *weights, const mrc_units *units);
/* Adds the sums of one to those of another. */
void mrc_loss_join(mrc_loss *loss, const mrc_loss *other);

/* Weighted means over rows, for c outputs; 0 where there is no weight. */
double mrc_loss_mean(const mrc_loss *loss, int64_t c);
double mrc_loss_accuracy(const mrc_loss *loss);

#endif
