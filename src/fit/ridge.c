/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ridge of a fit without a hyperparameter search, which has too few rows, samples that are not a table, or tune
 * off. Without a ridge such a fit would interpolate, and its errors on new rows could be arbitrarily large.
 *
 *   l*      = the largest l with E(l) <= (1 + SLACK) min E        lambda = l* k W
 *   E(l)    the squared error of small fits (search/small_fits.h) on held-out rows, in the units of training
 *   k, W    mean of K(z, z); total weight of the training rows
 *
 * The small fits have at most 8,192 rows and 1,024 centers; below 2,000 rows E is cross-validated (search/split.c). The
 * model may have more centers, which need a larger ridge if anything, so the largest l within SLACK is used. Fewer than
 * LEAST_ROWS rows do not determine a ridge: l* is then DEFAULT_RIDGE. A model that is trained further keeps the ridge
 * of its note.
 *
 * Generalized cross-validation was tried instead. It treats equal or grouped rows as independent: on six tables with
 * groups of four similar rows its ridges were up to 10^6 times smaller, and AUC was lower by up to .035. Without groups
 * R2 was lower by up to .06.
 *
 * Cost: n p^2 flops and p^3 / 3 per ridge; with cross-validation 2 n^3 / 3 per ridge. Measured with AVX-512: 0.7 s on
 * one core for 1,900 rows, all of them centers; 0.02 s on two cores for 12,000 rows and 200 centers.
 */
#include "fit/fitting.h"

#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* MOST_ROWS and MOST_CENTERS bound the cost (see above). The ridges are powers of ten, because the error is flat near
   its minimum and the largest ridge within SLACK is chosen. */
enum { MOST_ROWS = 8192, MOST_CENTERS = 1024, LEAST_ROWS = 20, RIDGES = 8 };
static const double relative_ridges[RIDGES] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
#define DEFAULT_RIDGE 1e-3
#define PLANNED_RIDGE 1e-6 /* ridge in plans from sizes, without data: costs do not depend on the ridge */
#define SLACK         0.01

typedef struct ridge_search {
    mercer_fitting *fitting;
    mrc_scope *scope;
    mrc_split split;
    mrc_small_rows rows;
    int64_t centers;       /* number of centers of the small fits */
    double scale;          /* mean of K(z, z) */
    double ridges[RIDGES]; /* relative_ridges times scale */
} ridge_search;

/* Reads the rows of the split, preprocessed, and their transformed targets. */
static mercer_status read_rows(ridge_search *self)
{
    const mercer_fitting *fitting = self->fitting;
    const mercer_dataset *data = fitting->data;
    int64_t n = mrc_folds_rows(&self->split.folds), d = mrc_fit_width(fitting);
    mercer_dtype dtype = data->dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
    double *weights;
    MRC_TRY(mrc_scope_view(self->scope, &self->rows.x, n, d, dtype, "rows of small fits"));
    MRC_TRY(mrc_scope_view(self->scope, &self->rows.y, n, data->outputs, MERCER_F64, "targets of small fits"));
    MRC_TRY(mercer_dataset_read(data, &self->rows.x, &self->rows.y, NULL, fitting->applied, self->split.rows, 0));
    MRC_TRY(mrc_check_finite(fitting->context, "samples", &self->rows.x, NULL));
    mrc_units_apply(fitting->model ? &fitting->model->units : &fitting->units, &self->rows.y, &self->rows.y);
    if (!data->weights) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(self->scope, &weights, n, sizeof *weights, "weights of small fits"));
    for (int64_t i = 0; i < n; i++) weights[i] = data->weights[self->split.rows[i]];
    self->rows.weights = weights;
    return MERCER_OK;
}

/* Copies training rows into z, taken from the folds in turn. Row i of every fold is taken before row i + 1 of any fold,
   so that all folds contribute equally. */
static void gather_rows(const mrc_small_rows *rows, const mercer_matrix *z)
{
    const mrc_folds *folds = &rows->folds;
    int count = folds->held_out ? 1 : folds->count;
    size_t bytes = (size_t)(z->cols * mrc_dtype_size(z->dtype));
    for (int64_t i = 0, done = 0; done < z->rows; i++)
        for (int f = 0; f < count && done < z->rows; f++)
            if (folds->start[f] + i < folds->start[f + 1])
                memcpy(mrc_row(z, done++), mrc_row(&rows->x, folds->start[f] + i), bytes);
}

/* Computes the mean of K(z, z), relative to which ridges are tried: kernels such as polynomials have values far from
   1. */
static mercer_status find_scale(ridge_search *self)
{
    mrc_backend *backend = self->fitting->context->backend;
    const mercer_matrix *x = &self->rows.x;
    mercer_matrix z, device, own, points;
    int64_t p = self->centers;
    self->scale = 0;
    MRC_TRY(mrc_scope_view(self->scope, &z, p, x->cols, x->dtype, "centers of small fits"));
    gather_rows(&self->rows, &z);
    MRC_TRY(mrc_scope_view(self->scope, &own, p, 1, MERCER_F64, "the diagonal of K(Z, Z)"));
    MRC_TRY(mrc_scope_matrix(self->scope, backend, &device, p, 1, MERCER_F64, "the diagonal of K(Z, Z)"));
    MRC_TRY(mrc_scope_matrix(self->scope, backend, &points, p, x->cols, x->dtype, "centers of small fits"));
    MRC_TRY(backend->ops->copy(backend, &points, &z));
    MRC_TRY(backend->ops->kernel_diagonal(backend, &self->fitting->kernel, &points, &device));
    MRC_TRY(backend->ops->copy(backend, &own, &device));
    for (int64_t i = 0; i < p; i++) self->scale += mrc_load(&own, i, 0) / (double)p;
    if (!(self->scale > 0) || !isfinite(self->scale)) self->scale = 1;
    return MERCER_OK;
}

/* Sets *out to the chosen ridge, relative to the scale. *out is not changed if no small fit could be solved. */
static mercer_status compare_ridges(ridge_search *self, double *out)
{
    mercer_context *context = self->fitting->context;
    const mercer_kernel *kernel = &self->fitting->kernel;
    double errors[RIDGES], least = (double)INFINITY;
    for (int r = 0; r < RIDGES; r++) self->ridges[r] = relative_ridges[r] * self->scale;
    MRC_TRY(mrc_small_fits(context, &self->rows, kernel, self->centers, self->ridges, RIDGES, errors));
    for (int r = 0; r < RIDGES; r++) least = fmin(least, errors[r]);
    for (int r = 0; r < RIDGES && isfinite(least); r++)
        if (errors[r] <= (1 + SLACK) * least) *out = relative_ridges[r];
    return MERCER_OK;
}

/* Chooses a ridge relative to the scale. *ridge is not changed if the rows do not determine one. */
static mercer_status search_ridge(ridge_search *self, double *ridge)
{
    const mercer_dataset *data = self->fitting->data;
    if (data->rows < LEAST_ROWS) return MERCER_OK;
    mercer_status status = mrc_split_make(&self->split, data, MOST_ROWS, self->fitting->options->run.seed);
    if (status == MERCER_ERROR_DATA) return MERCER_OK; /* a single unit, or a class without training rows */
    MRC_TRY(status);
    self->rows = (mrc_small_rows){.folds = self->split.folds};
    int64_t most = mrc_min(MOST_CENTERS, mrc_max(1, mrc_fit_center_count(self->fitting)));
    self->centers = mrc_min(mrc_folds_training(&self->split.folds), most);
    MRC_TRY(read_rows(self));
    MRC_TRY(find_scale(self));
    return compare_ridges(self, ridge);
}

/* Searches the ridge, per unit of weight, by small fits. *ridge is not changed if the rows do not determine one. */
static mercer_status search_alone(mercer_fitting *self, double *ridge)
{
    double relative = DEFAULT_RIDGE;
    MRC_SCOPE(scope, self->context);
    ridge_search task = {.fitting = self, .scope = &scope, .scale = 1};
    mercer_status status = search_ridge(&task, &relative);
    mrc_free(self->context, task.split.rows);
    *ridge = relative * task.scale;
    return status;
}

/* report->ridge is per unit of weight, record.ridge is multiplied by the total weight. The ridge of a note is scaled by
   the ratio of the weights; equal weights leave the ridge bitwise unchanged. */
mercer_status mrc_fit_choose_ridge(mercer_fitting *self)
{
    mercer_search_report *report = &self->search_report;
    double noted, before, ridge = PLANNED_RIDGE;
    if (self->record.ridge > 0 || mrc_fit_has_no_ridge(self->request) || self->record.resumes) return MERCER_OK;
    double now = self->data ? mrc_fit_count_samples(self->data) : (double)mrc_max(1, self->info.rows);
    if (self->model && mrc_fit_read_note(self->model, &noted, &before)) {
        self->record.ridge = noted * (before == now ? 1 : now / before);
        return MERCER_OK;
    }
    if (self->data && !report->steps) MRC_TRY(search_alone(self, &report->ridge));
    if (self->data) ridge = report->ridge;
    self->record.ridge = ridge * now;
    return MERCER_OK;
}
