/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Column means, in double: mean_k = (1/m) sum_i x_ik. Rows are cut into at most 64 parts by their number alone; the
 * parts are summed in parallel and added in order, so the bits do not depend on the number of threads. Cost: m d
 * additions.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/micro/ukernels.h"
#include "core/matrix.h"
#include "core/threads/parallel.h"

enum { MOST_PARTS = 64, FEWEST_ROWS = 256 };

typedef struct job {
    const mercer_matrix *x;
    const mrc_panel_ops *panel;
    int64_t rows_each;
    double *sums; /* (parts, d) */
    double *rows; /* (parts, d): one converted row each */
} job;

static void sum_part(void *argument, int64_t part, int worker)
{
    (void)worker;
    job *self = argument;
    int64_t d = self->x->cols, first = part * self->rows_each, end = mrc_min(first + self->rows_each, self->x->rows);
    double *sum = self->sums + part * d, *row = self->rows + part * d;
    for (int64_t k = 0; k < d; k++) sum[k] = 0;
    for (int64_t i = first; i < end; i++) {
        if (self->x->dtype == MERCER_F32) {
            self->panel->add_f32(d, mrc_row(self->x, i), sum);
            continue;
        }
        mrc_load_row_f64(self->x, i, row);
        self->panel->add_f64(d, row, sum);
    }
}

mercer_status mrc_cpu_column_mean(mrc_backend *backend, const mercer_matrix *x, double *mean)
{
    int64_t d = x->cols, rows_each = mrc_max(FEWEST_ROWS, (x->rows + MOST_PARTS - 1) / MOST_PARTS);
    int64_t parts = (x->rows + rows_each - 1) / rows_each;
    for (int64_t k = 0; k < d; k++) mean[k] = 0;
    if (parts == 0) return MERCER_OK;
    job self = {.x = x, .panel = ((mrc_cpu *)backend->state)->uk.panel, .rows_each = rows_each};
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.sums, 2 * parts * d, sizeof *self.sums, "column sums"));
    self.rows = self.sums + parts * d;
    mrc_parallel_for(backend->context->threads, parts, sum_part, &self);
    for (int64_t part = 0; part < parts; part++)
        for (int64_t k = 0; k < d; k++) mean[k] += self.sums[part * d + k];
    for (int64_t k = 0; k < d; k++) mean[k] /= (double)x->rows;
    return MERCER_OK;
}
