/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets: squared errors and right labels. */
#ifndef MRC_ALGO_LOSS_H
#define MRC_ALGO_LOSS_H

#include "backend/backend.h"

typedef struct mrc_loss {
    double squared_error;  /* sum over rows and outputs */
    double squared_target; /* the same of the targets: the error of the zero model */
    int64_t right;         /* rows whose largest output is the largest target (the first of equals) */
    int64_t rows;
} mrc_loss;

/* Adds the rows of predictions F (m, c) against targets Y (m, c) to the sums. */
mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y);

#endif
