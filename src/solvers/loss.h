/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets: squared errors and correct labels. */
#ifndef MRC_SOLVERS_LOSS_H
#define MRC_SOLVERS_LOSS_H

#include "backends/backend.h"
#include "core/numbers/units.h"

/* Reported losses are weighted by the sample weights. Divergence is detected from unweighted sums, which a single row
   with a large weight cannot dominate. */
typedef struct mrc_loss {
    double squared_error;  /* sum over rows and outputs, without weights */
    double squared_target; /* sum of (target - offset)^2: the squared error of a model with weights 0 */
    double weighted_error; /* sum over rows and outputs, each row times its weight */
    /* total weight of the rows whose prediction and target have their maximum in the same column (ties: first) */
    double right;
    double weight; /* sum of the weights of all rows */
    int64_t rows;
} mrc_loss;

/* Add the rows of predictions F (m, c) against targets Y (m, c) with weights (m), NULL: all 1, to the sums. If units
   are given, F and Y are in these units, and the sums are in the original units: squares of output j are multiplied by
   scale_j^2, and classes are compared with offsets. */
mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                           const double *weights, const mrc_units *units);
/* Add the sums of `other` to those of `loss`. */
void mrc_loss_join(mrc_loss *loss, const mrc_loss *other);

/* Return weighted means over rows, for c outputs; 0 if the total weight is 0. */
double mrc_loss_mean(const mrc_loss *loss, int64_t c);
double mrc_loss_accuracy(const mrc_loss *loss);

#endif
