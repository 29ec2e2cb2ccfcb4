/* SPDX-License-Identifier: BSD-3-Clause */
/* Validation, best weights, patience and progress at the end of an epoch or CG step. */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { VALIDATION_ROWS = 2048 };

mercer_status mrc_trainer_validate(mrc_trainer *self, const mercer_matrix *alpha, double *loss, double *accuracy)
{
    const mercer_matrix *x = self->options.validation_X, *y = self->options.validation_Y;
    const double *weights = self->options.validation_weights;
    *loss = *accuracy = NAN;
    if (!x || x->rows == 0) return MERCER_OK;
    double start = mrc_seconds();
    mrc_loss sums = {0};
    int64_t block = mrc_min(VALIDATION_ROWS, x->rows);
    mercer_matrix f;
    MRC_TRY(mrc_matrix_create(self->backend, &f, block, y->cols, self->centers.real, "validation predictions"));
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < x->rows && status == MERCER_OK; first += block) {
        int64_t rows = mrc_min(block, x->rows - first);
        mercer_matrix part_x = mrc_rows(x, first, rows), part_y = mrc_rows(y, first, rows),
                      part_f = mrc_rows(&f, 0, rows);
        status = mrc_centers_predict(&self->centers, &part_x, alpha, &part_f, NULL);
        if (status == MERCER_OK) status = mrc_sample_stream_enter(&self->stream, &part_y);
        if (status == MERCER_OK)
            status = mrc_loss_add(&sums, self->backend, &part_f, &part_y, weights ? weights + first : NULL,
                                  self->target.units);
    }
    mrc_matrix_destroy(self->backend, &f);
    if (status != MERCER_OK) return status;
    *loss = mrc_loss_mean(&sums, y->cols);
    if (self->options.classification == MERCER_ON) *accuracy = mrc_loss_accuracy(&sums);
    self->report.validation_seconds += mrc_seconds() - start;
    return MERCER_OK;
}

/* Higher is better: accuracy for classification, minus the loss otherwise. */
static mercer_status remember_best(mrc_trainer *self, const mercer_matrix *candidate, double score)
{
    if (self->have_best && !(score > self->best_score)) {
        self->since_best++;
        return MERCER_OK;
    }
    if (!self->best.data)
        MRC_TRY(mrc_field_create(&self->centers, &self->best, candidate->cols, self->centers.real, "the best weights"));
    MRC_TRY(self->backend->ops->copy(self->backend, &self->best, candidate));
    self->have_best = true;
    self->best_score = score;
    self->since_best = 0;
    return MERCER_OK;
}

mercer_status mrc_trainer_end_epoch(mrc_trainer *self, const mercer_matrix *candidate, mercer_progress *progress,
                                    int *stop)
{
    *stop = 0;
    MRC_TRY(mrc_trainer_validate(self, candidate, &progress->validation_loss, &progress->validation_accuracy));
    self->report.validation_loss = progress->validation_loss;
    self->report.validation_accuracy = progress->validation_accuracy;
    if (self->options.patience > 0 && self->options.validation_X) {
        bool by_accuracy = self->options.classification == MERCER_ON;
        MRC_TRY(
            remember_best(self, candidate, by_accuracy ? progress->validation_accuracy : -progress->validation_loss));
        if (self->since_best >= self->options.patience) *stop = 1;
    }
    progress->struct_size = sizeof *progress;
    progress->seconds = self->earlier_seconds + mrc_seconds() - self->start;
    progress->pass_total = self->n;
    progress->samples = self->samples;
    if (!self->options.progress) return MERCER_OK;
    bool enough = self->options.progress(self->options.progress_user, progress) != 0 || self->stop_asked;
    MRC_TRY(mrc_comm_any(self->comm, enough, &enough));
    if (enough) *stop = 2;
    return MERCER_OK;
}
