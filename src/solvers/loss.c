/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over predictions and targets, in double:  sum_ij (f_ij - y_ij)^2,  sum_ij y_ij^2,  sum_ij w_i (f_ij - y_ij)^2,
   sum of w_i over {i: argmax f_i = argmax y_i},  sum_i w_i. */
#include "solvers/loss.h"

#include "core/matrix.h"

static void add(mrc_loss *loss, const mercer_matrix *f, const mercer_matrix *y, const double *weights,
                const mrc_units *units)
{
    bool given = mrc_units_given(units);
    for (int64_t i = 0; i < y->rows; i++) {
        int64_t guess = 0, truth = 0;
        double top = 0, top_target = 0, error = 0, weight = weights ? weights[i] : 1;
        for (int64_t j = 0; j < y->cols; j++) {
            double value = mrc_load(f, i, j), target = mrc_load(y, i, j);
            if (given) value *= units->scale[j], target *= units->scale[j];
            error += (value - target) * (value - target);
            loss->squared_target += target * target;
            if (given) value += units->offset[j], target += units->offset[j];
            if (j == 0 || value > top) top = value, guess = j;
            if (j == 0 || target > top_target) top_target = target, truth = j;
        }
        loss->squared_error += error;
        if (weight > 0) loss->weighted_error += weight * error; /* a row that does not count may be anything */
        loss->right += guess == truth ? weight : 0;
        loss->weight += weight;
    }
    loss->rows += y->rows;
}

mercer_status mrc_loss_add(mrc_loss *loss, mrc_backend *backend, const mercer_matrix *f, const mercer_matrix *y,
                           const double *weights, const mrc_units *units)
{
    mercer_matrix host, targets;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_open(&scope, backend, f, &host));
    MRC_TRY(mrc_scope_open(&scope, backend, y, &targets));
    add(loss, &host, &targets, weights, units);
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
