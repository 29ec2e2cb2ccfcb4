/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluations: accumulation of metrics row by row. */
#include "metrics/metrics.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <string.h>

enum { SAVED_BYTES = 64 << 20 }; /* default limit: two million rows with two outputs */

/* Returns the number of rows that can be saved for ranking: each takes a score per output, a weight and a label. */
static int64_t choose_capacity(const mercer_evaluation_options *options)
{
    int64_t bytes = options->memory > 0 ? options->memory : SAVED_BYTES;
    int64_t row = (options->outputs + 2) * (int64_t)sizeof(double);
    return mrc_max(1, mrc_min(options->rows, bytes / row));
}

/* Allocates all arrays. The arrays of doubles share one allocation of 13 c elements: seven sums per output, and `row`
   (6 c). The pointers of the options to arrays of the caller are replaced by pointers to the copies. */
static mercer_status allocate_rows(mercer_evaluation *self)
{
    int64_t c = self->outputs, plotted_outputs = mrc_min(c, MRC_PLOTTED_OUTPUTS);
    const char *rows = "rows of an evaluation";
    MRC_TRY(mrc_scope_alloc_zero(&self->held, &self->squared, 13 * c, sizeof(double), "an evaluation"));
    self->absolute = self->squared + c, self->mean = self->absolute + c, self->spread = self->mean + c;
    self->covered = self->spread + c, self->sizes = self->covered + c, self->missed = self->sizes + c;
    self->row = self->missed + c;
    if (self->options.radius) { /* copy the caller's array to the end of the scratch space */
        memcpy(self->row + 3 * c, self->options.radius, (size_t)(self->classes ? 1 : c) * sizeof(double));
        self->options.radius = self->row + 3 * c;
    }
    self->shifted = self->row + 4 * c;
    if (self->options.class_shift) {
        memcpy(self->row + 5 * c, self->options.class_shift, (size_t)c * sizeof(double));
        self->options.class_shift = self->row + 5 * c;
    }
    MRC_TRY(mrc_scope_alloc(&self->held, &self->members, c, sizeof(int32_t), "an evaluation"));
    MRC_TRY(mrc_scope_alloc(&self->held, &self->scores, self->capacity * c, sizeof(double), rows));
    MRC_TRY(mrc_scope_alloc(&self->held, &self->saved_weights, self->capacity, sizeof(double), rows));
    if (!self->classes)
        return mrc_scope_alloc(&self->held, &self->pairs, self->plot * plotted_outputs * 2, sizeof(double), "pairs");
    MRC_TRY(mrc_scope_alloc_zero(&self->held, &self->confusion, c * c, sizeof(double), "a confusion matrix"));
    return mrc_scope_alloc(&self->held, &self->saved_labels, self->capacity, sizeof(int32_t), rows);
}

mercer_status mrc_evaluation_create(mercer_evaluation **out, mercer_context *context,
                                    const mercer_evaluation_options *options)
{
    MRC_OWNED(mrc_release_evaluation) mercer_evaluation *self = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "an evaluation"));
    self->context = self->held.context = context;
    self->options = *options;
    self->classes = options->task == MERCER_TASK_CLASSIFICATION;
    self->outputs = options->outputs;
    self->capacity = choose_capacity(options);
    self->plot = mrc_min(options->rows, MRC_PLOTTED_ROWS);
    MRC_TRY(allocate_rows(self));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_evaluation_free(mercer_evaluation *self)
{
    if (!self) return;
    mrc_scope_close(&self->held);
    mrc_free(self->context, self);
}

/* Returns whether row i of n is saved: if floor(i m / n) differs between rows i and i - 1. This saves exactly m rows,
   evenly spaced. */
static bool is_sampled(int64_t i, int64_t n, int64_t m)
{
    return m >= n || i == 0 ||
           (int64_t)((double)i * (double)m / (double)n) != (int64_t)((double)(i - 1) * (double)m / (double)n);
}

/* Saves target and prediction of some rows for a plot. */
static void save_pair(mercer_evaluation *self, const double *f, const double *y)
{
    int64_t plotted_outputs = mrc_min(self->outputs, MRC_PLOTTED_OUTPUTS);
    if (self->plotted == self->plot || !is_sampled(self->rows, self->options.rows, self->plot)) return;
    double *to = self->pairs + 2 * plotted_outputs * self->plotted++;
    for (int64_t j = 0; j < plotted_outputs; j++) to[2 * j] = y[j], to[2 * j + 1] = f[j];
}

/* Adds a row, with its index self->rows. Rows of weight 0 change no metric and are not saved for ranking. The ranking
   scores go directly to the saved rows, or to scratch space if the row is not saved. */
static void add_row(mercer_evaluation *self, const double *f, const double *y, int32_t label, double weight)
{
    bool save =
        weight > 0 && self->saved < self->capacity && is_sampled(self->rows, self->options.rows, self->capacity);
    double *scores = save ? self->scores + self->saved * self->outputs : self->row + 2 * self->outputs;
    self->weight += weight;
    if (self->classes)
        mrc_class_row(self, f, label, weight, scores);
    else
        mrc_value_row(self, f, y, weight, scores);
    if (!self->classes) save_pair(self, f, y);
    self->rows++;
    if (!save) return;
    self->saved_weights[self->saved] = weight;
    if (self->classes) self->saved_labels[self->saved] = label;
    self->saved++;
}

mercer_status mrc_evaluation_add(mercer_evaluation *self, const mercer_matrix *F, const mercer_matrix *Y,
                                 const int32_t *labels, const double *weights)
{
    int64_t c = self->outputs;
    double *f = self->row, *y = self->row + c;
    for (int64_t i = 0; i < F->rows; i++) {
        for (int64_t j = 0; j < c; j++) {
            f[j] = mrc_load(F, i, j);
            if (Y) y[j] = mrc_load(Y, i, j);
        }
        add_row(self, f, y, labels ? labels[i] : 0, weights ? weights[i] : 1);
    }
    return MERCER_OK;
}
