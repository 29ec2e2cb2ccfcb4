/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets: squared errors and right labels. */
#ifndef MRC_ALGO_LOSS_H
#define MRC_ALGO_LOSS_H

#include "backend/backend.h"
#include "core/units.h"

typedef struct mrc_loss {
    double squared_error;  /* sum over rows and outputs */
    double squared_target; /* the same of the targets, less their offset: the error of a model without weights */
    int64_t right;         /* rows whose largest output is the largest target (the first of equals) */
    int64_t rows;
} mrc_loss;

/* Adds the rows of predictions F (m, c) against targets Y (m, c) to the sums. If units are given, F and Y have been
   brought to them, and the sums are those of what they were: squares of output j count scale_j^2, and classes are
   compared with offsets. */
mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                           const mrc_units *units);

#endif
