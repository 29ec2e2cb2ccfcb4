/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets, in double:  sum_ij (f_ij - y_ij)^2,  sum_ij y_ij^2,  sum_ij w_i (f_ij - y_ij)^2,
   sum of w_i over {i: argmax f_i = argmax y_i},  sum_i w_i. */
#include "solvers/loss.h"

#include "core/memory.h"

mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                           const double *weights, const mrc_units *units)
{
    bool given = mrc_units_given(units);
    mrc_row_loss *rows;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, y->rows, sizeof *rows, "losses of rows"));
    MRC_TRY(backend->ops->row_losses(backend, f, y, given ? units->scale : NULL, given ? units->offset : NULL, rows));
    for (int64_t i = 0; i < y->rows; i++) {
        double weight = weights ? weights[i] : 1;
        loss->squared_error += rows[i].error;
        loss->squared_target += rows[i].size;
        if (weight > 0) loss->weighted_error += weight * rows[i].error; /* the error of a row of weight 0 may be NaN */
        loss->right += rows[i].right > 0 ? weight : 0;
        loss->weight += weight;
    }
    loss->rows += y->rows;
    return MERCER_OK;
}

void mrc_loss_join(mrc_loss *loss, const mrc_loss *other)
{
    loss->squared_error += other->squared_error;
    loss->squared_target += other->squared_target;
    loss->weighted_error += other->weighted_error;
    loss->right += other->right;
    loss->weight += other->weight;
    loss->rows += other->rows;
}

double mrc_loss_mean(const mrc_loss *loss, int64_t c)
{
    return loss->weight > 0 ? loss->weighted_error / (loss->weight * (double)c) : 0;
}

double mrc_loss_accuracy(const mrc_loss *loss)
{
    return loss->weight > 0 ? loss->right / loss->weight : 0;
}
