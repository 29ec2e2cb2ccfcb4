/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of the iteration ("Toward Large Kernel Models", algorithm 1; delayed projection as in EigenPro 4).
 *
 *   f = K(., Z) alpha + K(., X_tmp) w_tmp + K(., X_s) w_s
 *
 * One step on a batch X_m, Y_m with sample weights w, eta the step over the batch size:
 *
 *   g      = w (f(X_m) - Y_m)                                    (m, c)
 *   u      = E' K(X_s, X_m) g                                    (q, c)
 *   h      = K(Z, X_m) g - C u,   C = K(Z, X_s) E D              (p, c)   values of P K(., X_m) g at the centers
 *   PROJECT:      sum -= eta h;   append X_m to X_tmp with weights -eta g;   w_s += eta E D u
 *                 every T steps: solve K(Z,Z) theta = sum (+ left), alpha += theta, drop the temporary part
 *   COORDINATES:  alpha at the batch's rows -= eta g;  alpha at the sample's rows += eta E D u      (Z = X: EigenPro 2)
 *   PLAIN:        alpha -= eta h                                                              (gradient descent in R^p)
 *
 * With T = 1 there is no temporary part. In PLAIN a ridge lambda adds lambda/n m K(Z,Z) alpha to h. Otherwise the ridge
 * adds rho P f, with rho = eta m lambda / n, to the gradient: every weight shrinks by the factor 1 - rho, and the
 * preconditioner's correction is rho K(., X_s) E D E' f(X_s). Here E' f(X_s) = D^-1 C' alpha + v, where v (q, c) is the
 * contribution of the temporary part, updated by v += -eta u + eta s Lambda D u.
 *
 * Cost of a step: 2 m p (d + 2c) + 2 m (T m / 2) (d + c) + 2 m s (d + 2c) + 2 p q c flops, and a projection every T
 * steps.
 */
#include "solvers/iteration/iteration.h"

#include "core/clock.h"
#include "core/matrix.h"

#include <math.h>
#include <string.h>

/* ---- Creation ------------------------------------------------------------------------------------------------ */

static bool uses_temporary(const mrc_iteration_options *options)
{
    return options->update == MRC_UPDATE_PROJECT && options->period > 1;
}

static bool needs_center_values(const mrc_iteration_options *options)
{
    return options->update != MRC_UPDATE_COORDINATES || options->ridge > 0;
}

mrc_bytes mrc_iteration_bytes(const mrc_problem *problem, const mrc_iteration_options *options, int64_t s, int64_t q)
{
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size, m = (double)options->batch;
    double columns = (4 + (options->carry ? 1 : 0) + (options->update == MRC_UPDATE_PROJECT ? 1 : 0)) * c;
    if (needs_center_values(options)) columns += (double)q;
    mrc_bytes held = {e * p * columns, e * c * (2 * m + 2 * (double)s + 3 * (double)q)};
    if (!uses_temporary(options)) return held;
    held.shared += (double)options->period * m * ((double)(problem->d * problem->point_size) + c * e);
    held.replicated += m * (double)s * e;
    return held;
}

/* Compute C = K(Z, X_s) E D. */
static mercer_status create_correction(mrc_iteration *self)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    const mrc_eigensystem *system = self->system;
    if (system->q == 0 || !needs_center_values(&self->options)) return MERCER_OK;
    mercer_matrix ed;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_field_create(centers, &self->c, system->q, centers->real, "the preconditioner at the centers"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &ed, system->s, system->q, centers->real, "scaled eigenvectors"));
    MRC_TRY(backend->ops->copy(backend, &ed, &system->vectors));
    MRC_TRY(backend->ops->scale_columns(backend, &ed, system->d));
    return mrc_centers_apply(centers, &system->points, &ed, &self->c, false);
}

/* Creates the fields (one row per center) that the update needs. */
static mercer_status create_fields(mrc_iteration *self, int64_t c)
{
    mrc_centers *centers = self->centers;
    bool projects = self->options.update == MRC_UPDATE_PROJECT;
    MRC_TRY(mrc_field_create(centers, &self->alpha, c, centers->real, "weights"));
    MRC_TRY(mrc_field_create(centers, &self->average, c, centers->real, "averaged weights"));
    MRC_TRY(mrc_field_create(centers, &self->h, c, centers->real, "values at the centers"));
    if (projects) MRC_TRY(mrc_field_create(centers, &self->sum, c, centers->real, "accumulated steps"));
    if (projects || self->options.ridge > 0)
        MRC_TRY(mrc_field_create(centers, &self->theta, c, centers->real, "projected steps"));
    if (self->options.carry) MRC_TRY(mrc_field_create(centers, &self->left, c, centers->real, "carried residual"));
    return create_correction(self);
}

/* Creates the matrices of a batch and of the sample. */
static mercer_status create_scratch(mrc_iteration *self, int64_t c)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t m = self->options.batch, s = self->system->s, q = self->system->q;
    MRC_TRY(mrc_matrix_create(backend, &self->f, m, c, centers->real, "predictions"));
    MRC_TRY(mrc_matrix_create(backend, &self->g, m, c, centers->real, "residuals"));
    MRC_TRY(mrc_matrix_create(backend, &self->ks, s, c, centers->real, "values at the sample"));
    MRC_TRY(mrc_matrix_create(backend, &self->u, q, c, centers->real, "eigencoefficients"));
    MRC_TRY(mrc_matrix_create(backend, &self->du, q, c, centers->real, "eigencoefficients"));
    MRC_TRY(mrc_matrix_create(backend, &self->values, q, c, centers->real, "eigencoefficients"));
    MRC_TRY(mrc_matrix_create(backend, &self->sample_weights, s, c, centers->real, "the sample's weights"));
    if (!uses_temporary(&self->options)) return MERCER_OK;
    MRC_TRY(mrc_temporary_centers_create(&self->temporary, centers, self->options.period * m, c,
                                         self->system->points.dtype));
    if (q == 0) return MERCER_OK;
    self->sample_cache.bytes = m * s * mrc_dtype_size(centers->real);
    return backend->ops->alloc(backend, &self->sample_cache.memory, self->sample_cache.bytes,
                               "a batch's block with the sample");
}

mercer_status mrc_iteration_create(mrc_iteration *out, mrc_centers *centers, mrc_kernel_blocks *kernel_blocks,
                                   const mrc_eigensystem *system, mrc_projector *projector, double beta,
                                   int64_t outputs, const mrc_iteration_options *options)
{
    *out = (mrc_iteration){.options = *options,
                           .centers = centers,
                           .kernel_blocks = kernel_blocks,
                           .system = system,
                           .projector = projector,
                           .beta = beta,
                           .heaviest = 1,
                           .halving = 1,
                           .decay = 1};
    /* let backends round residuals to half precision (2^-12), once for all products of a step */
    kernel_blocks->round_weights = true;
    MRC_TRY(mrc_points_pack(centers, &system->points, 0, system->points.rows));
    MRC_TRY(create_fields(out, outputs));
    return create_scratch(out, outputs);
}

void mrc_iteration_destroy(mrc_iteration *self)
{
    if (!self->centers) return;
    mrc_backend *backend = self->centers->backend;
    mrc_temporary_centers_destroy(&self->temporary);
    mrc_points_forget(self->centers, &self->system->points);
    mrc_points_forget(self->centers, &self->x);
    mercer_matrix *const all[] = {
        &self->alpha,  &self->c, &self->sum, &self->left, &self->h, &self->theta, &self->average, &self->sample_weights,
        &self->values, &self->f, &self->g,   &self->ks,   &self->u, &self->du,    &self->x,       &self->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mrc_matrix_destroy(backend, all[i]);
    backend->ops->free(backend, self->sample_cache.memory);
    memset(self, 0, sizeof *self);
}

/* ---- A step -------------------------------------------------------------------------------------------------- */

/* Sets a matrix to 0, if this iteration uses it. */
static mercer_status clear(mrc_iteration *self, const mercer_matrix *a)
{
    mrc_backend *backend = self->centers->backend;
    return a->data ? backend->ops->clear(backend, a) : MERCER_OK;
}

/* Return the copy of the batch in the backend's memory, which take_in has made once for all products of the step. */
static mercer_batch local_batch(const mrc_iteration *self, const mercer_batch *batch)
{
    mercer_batch local = *batch;
    if (self->x.data) local.X = mrc_rows(&self->x, 0, batch->X.rows);
    if (self->y.data) local.Y = mrc_rows(&self->y, 0, batch->Y.rows);
    return local;
}

/* Copy the batch to the backend's memory, if that is not host memory. The copy may still be in progress on return. */
static mercer_status take_in(mrc_iteration *self, const mercer_batch *batch)
{
    mrc_backend *backend = self->centers->backend;
    mercer_matrix staged;
    if (mrc_backend_memory(backend) == MRC_HOST) return MERCER_OK;
    if (!self->x.data)
        MRC_TRY(mrc_matrix_create(backend, &self->x, self->options.batch, batch->X.cols, batch->X.dtype, "a batch"));
    if (!self->y.data)
        MRC_TRY(
            mrc_matrix_create(backend, &self->y, self->options.batch, batch->Y.cols, batch->Y.dtype, "its targets"));
    mercer_matrix to = mrc_rows(&self->x, 0, batch->X.rows);
    MRC_TRY(backend->ops->stage(backend, &batch->X, &staged));
    MRC_TRY(backend->ops->copy(backend, &to, &staged));
    mercer_matrix targets = mrc_rows(&self->y, 0, batch->Y.rows);
    MRC_TRY(backend->ops->stage(backend, &batch->Y, &staged));
    MRC_TRY(backend->ops->copy(backend, &targets, &staged));
    return mrc_points_pack(self->centers, &self->x, 0, batch->X.rows);
}

/* Compute F = f(X_m): the parts of the weights and of the temporary centers in one sum over shards, then the sample's
   part. */
static mercer_status forward_batch(mrc_iteration *self, const mercer_batch *batch, const mercer_matrix *f)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    if (self->temporary.count == 0) return mrc_kernel_blocks_forward(self->kernel_blocks, batch, &self->alpha, NULL, f);
    MRC_TRY(mrc_temporary_centers_pack(&self->temporary));
    MRC_TRY(mrc_kernel_blocks_forward(self->kernel_blocks, batch, &self->alpha, &self->temporary, f));
    if (self->system->q == 0) return MERCER_OK;
    mercer_matrix part = mrc_rows(&self->g, 0, batch->X.rows);
    mrc_pair pair = mrc_points_pair(centers, &batch->X, &self->system->points);
    centers->flops += 2.0 * (double)(batch->X.rows * self->system->s) * (double)(batch->X.cols + f->cols);
    MRC_TRY(backend->ops->kernel_forward(backend, &pair, &self->sample_weights, &part, &self->sample_cache));
    return backend->ops->axpby(backend, 1, &part, 1, f);
}

mercer_status mrc_iteration_residual(mrc_iteration *self, const mercer_batch *batch, mrc_loss *result)
{
    double start = mrc_seconds();
    mercer_matrix f = mrc_rows(&self->f, 0, batch->X.rows);
    self->sample_cache.columns = 0;
    MRC_TRY(take_in(self, batch));
    mercer_batch local = local_batch(self, batch);
    MRC_TRY(forward_batch(self, &local, &f));
    *result = (mrc_loss){0};
    MRC_TRY(mrc_loss_add(result, self->centers->backend, &f, &local.Y, batch->weights, self->units));
    self->forward_seconds += mrc_seconds() - start;
    return MERCER_OK;
}

/* Compute u = E' K(X_s, X_m) g, reusing K(X_m, X_s) if forward_batch has cached it, and du = D u. */
static mercer_status eigencoefficients(mrc_iteration *self, const mercer_batch *batch, const mercer_matrix *g)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    const mrc_eigensystem *system = self->system;
    if (system->q == 0) return MERCER_OK;
    mrc_pair pair = mrc_points_pair(centers, &batch->X, &system->points);
    pair.short_weights = self->kernel_blocks->short_weights;
    int64_t width = g->cols + (self->sample_cache.columns == system->s ? 0 : batch->X.cols);
    centers->flops += 2.0 * (double)(batch->X.rows * system->s) * (double)width;
    MRC_TRY(backend->ops->kernel_transpose(backend, &pair, g, &self->ks, &self->sample_cache));
    MRC_TRY(mrc_split_gemm(centers, true, 1, &system->vectors, &self->ks, 0, &self->u));
    MRC_TRY(backend->ops->copy(backend, &self->du, &self->u));
    return backend->ops->scale_rows(backend, &self->du, system->d);
}

/* Compute y += D v, then x = D^-1 y. */
static mercer_status add_values(mrc_iteration *self, const mercer_matrix *y, const mercer_matrix *x)
{
    mrc_backend *backend = self->centers->backend;
    const double *d = self->system->d;
    mercer_matrix hy, hx, v;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_open(&scope, backend, y, &hy));
    MRC_TRY(mrc_scope_open(&scope, backend, x, &hx));
    MRC_TRY(mrc_scope_open(&scope, backend, &self->values, &v));
    for (int64_t i = 0; i < self->system->q; i++)
        for (int64_t j = 0; j < y->cols; j++) {
            double value = mrc_load(&hy, i, j) + d[i] * mrc_load(&v, i, j);
            mrc_store(&hy, i, j, value);
            mrc_store(&hx, i, j, d[i] > 0 ? value / d[i] : 0);
        }
    MRC_TRY(mrc_host_close(backend, x, &hx, true, MERCER_OK));
    return mrc_host_close(backend, y, &hy, true, MERCER_OK);
}

/* Compute v += -eta u + rate s Lambda D u; D u is in du. */
static mercer_status follow_values(mrc_iteration *self, double eta, double rate)
{
    mrc_backend *backend = self->centers->backend;
    const mrc_eigensystem *system = self->system;
    mercer_matrix v, u, du;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_open(&scope, backend, &self->values, &v));
    MRC_TRY(mrc_scope_open(&scope, backend, &self->u, &u));
    MRC_TRY(mrc_scope_open(&scope, backend, &self->du, &du));
    for (int64_t i = 0; i < system->q; i++)
        for (int64_t j = 0; j < v.cols; j++) {
            double value = mrc_load(&v, i, j);
            if (eta != 0) value -= eta * mrc_load(&u, i, j);
            mrc_store(&v, i, j, value + rate * (double)system->s * system->lambda[i] * mrc_load(&du, i, j));
        }
    return mrc_host_close(backend, &self->values, &v, true, MERCER_OK);
}

/* Shrink f by rho and add the preconditioner's correction of the ridge term. */
static mercer_status apply_ridge(mrc_iteration *self, double rho)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    const mrc_eigensystem *system = self->system;
    if (system->q > 0) {
        /* y = D E' f(X_s) = C' alpha + D v, then x = D^-1 y */
        mercer_matrix *y = &self->du, *x = &self->u;
        MRC_TRY(mrc_centers_inner(centers, &self->c, &self->alpha, y));
        MRC_TRY(add_values(self, y, x));
    }
    mercer_matrix *const shrinking[] = {&self->alpha, &self->sum, &self->sample_weights, &self->values};
    for (int i = 0; i < 4; i++)
        if (shrinking[i]->data && shrinking[i]->rows > 0)
            MRC_TRY(backend->ops->axpby(backend, 1 - rho, shrinking[i], 0, shrinking[i]));
    MRC_TRY(mrc_temporary_centers_scale(&self->temporary, 1 - rho));
    if (system->q == 0) return MERCER_OK;
    if (self->options.update == MRC_UPDATE_COORDINATES) {
        MRC_TRY(mrc_split_gemm(centers, false, rho, &system->vectors, &self->du, 0, &self->ks));
        return mrc_centers_scatter_add(centers, &self->alpha, self->sample_rows, system->s, &self->ks, 1);
    }
    MRC_TRY(mrc_centers_multiply(centers, rho, &self->c, &self->u, 1, &self->sum));
    if (!uses_temporary(&self->options)) return MERCER_OK;
    MRC_TRY(mrc_split_gemm(centers, false, rho, &system->vectors, &self->du, 1, &self->sample_weights));
    return follow_values(self, 0, rho);
}

/* Add the step to the temporary part: X_m with weights -eta g, the sample with eta E D u. */
static mercer_status append_temporary(mrc_iteration *self, const mercer_batch *batch, const mercer_matrix *g,
                                      double eta)
{
    const mrc_eigensystem *system = self->system;
    MRC_TRY(mrc_temporary_centers_append(&self->temporary, &batch->X, g, -eta));
    if (system->q == 0) return MERCER_OK;
    if (self->options.ridge > 0) MRC_TRY(follow_values(self, eta, eta));
    return mrc_split_gemm(self->centers, false, eta, &system->vectors, &self->du, 1, &self->sample_weights);
}

/* Takes a step of MRC_UPDATE_COORDINATES. */
static mercer_status update_coordinates(mrc_iteration *self, const mercer_batch *batch, const mercer_matrix *g,
                                        double eta)
{
    const mrc_eigensystem *system = self->system;
    MRC_TRY(mrc_centers_scatter_add(self->centers, &self->alpha, batch->rows, batch->X.rows, g, -eta));
    if (system->q == 0) return MERCER_OK;
    MRC_TRY(mrc_split_gemm(self->centers, false, eta, &system->vectors, &self->du, 0, &self->ks));
    return mrc_centers_scatter_add(self->centers, &self->alpha, self->sample_rows, system->s, &self->ks, 1);
}

/* Adds alpha to the running mean. */
static mercer_status update_average(mrc_iteration *self)
{
    if (!self->averaging) return MERCER_OK;
    double share = 1 / (double)++self->averaged;
    return self->centers->backend->ops->axpby(self->centers->backend, share, &self->alpha, 1 - share, &self->average);
}

/* Returns eta for a batch of m rows. */
static double step_size(const mrc_iteration *self, int64_t m)
{
    const mrc_iteration_options *options = &self->options;
    bool plain = options->update == MRC_UPDATE_PLAIN;
    double heaviest = plain && options->ridge > 0 ? fmax(self->heaviest, 1) : self->heaviest;
    double beta = plain ? options->plain_beta : self->beta, tail = plain ? options->plain_top : self->system->tail;
    /* sample weights do not multiply the ridge; in PLAIN the ridge is part of plain_top */
    double ridge = plain ? 0 : options->ridge;
    return mrc_step_over_batch(options->rule, heaviest * beta, heaviest * tail, m, options->gamma, ridge) *
           self->halving * self->decay;
}

mercer_status mrc_iteration_step(mrc_iteration *self, const mercer_batch *looked_at)
{
    mrc_centers *centers = self->centers;
    mercer_batch local = local_batch(self, looked_at), *batch = &local;
    mrc_backend *backend = centers->backend;
    const mrc_iteration_options *options = &self->options;
    double start = mrc_seconds(), eta = step_size(self, batch->X.rows);
    mercer_matrix g = mrc_rows(&self->g, 0, batch->X.rows), f = mrc_rows(&self->f, 0, batch->X.rows);
    MRC_TRY(backend->ops->copy(backend, &g, &f));
    MRC_TRY(backend->ops->axpby(backend, -1, &batch->Y, 1, &g));
    if (batch->weights) MRC_TRY(backend->ops->scale_rows(backend, &g, batch->weights));
    if (self->kernel_blocks->short_weights) MRC_TRY(backend->ops->round_half(backend, &g));
    if (options->ridge > 0 && options->update != MRC_UPDATE_PLAIN)
        MRC_TRY(apply_ridge(self, eta * (double)batch->X.rows * options->ridge));
    MRC_TRY(eigencoefficients(self, batch, &g));
    if (options->update == MRC_UPDATE_COORDINATES) {
        MRC_TRY(update_coordinates(self, batch, &g, eta));
    } else {
        MRC_TRY(mrc_kernel_blocks_transpose(self->kernel_blocks, batch, &g, &self->h));
        if (self->system->q > 0) MRC_TRY(mrc_centers_multiply(centers, -1, &self->c, &self->u, 1, &self->h));
        if (options->update == MRC_UPDATE_PLAIN &&
            options->ridge > 0) { /* the gradient of the ridge term is K(Z,Z) alpha */
            MRC_TRY(mrc_centers_times(centers, NULL, &self->alpha, &self->theta));
            MRC_TRY(backend->ops->axpby(backend, (double)batch->X.rows * options->ridge, &self->theta, 1, &self->h));
        }
        const mercer_matrix *to = options->update == MRC_UPDATE_PLAIN ? &self->alpha : &self->sum;
        MRC_TRY(backend->ops->axpby(backend, -eta, &self->h, 1, to));
        if (uses_temporary(options)) MRC_TRY(append_temporary(self, batch, &g, eta));
    }
    self->steps++;
    self->pending++;
    self->last_step = eta;
    self->gradient_seconds += mrc_seconds() - start;
    if (options->update != MRC_UPDATE_PROJECT) {
        self->pending = 0;
        return update_average(self);
    }
    return self->pending >= options->period ? mrc_iteration_project(self) : MERCER_OK;
}

/* ---- Projection ---------------------------------------------------------------------------------------------- */

/* Discards the temporary centers and gradient sums since the last projection. */
static mercer_status drop_temporary(mrc_iteration *self)
{
    self->pending = 0;
    mrc_temporary_centers_drop(&self->temporary);
    MRC_TRY(clear(self, &self->sum));
    MRC_TRY(clear(self, &self->sample_weights));
    return clear(self, &self->values);
}

mercer_status mrc_iteration_project(mrc_iteration *self)
{
    if (self->pending == 0 || self->options.update != MRC_UPDATE_PROJECT) return MERCER_OK;
    mrc_backend *backend = self->centers->backend;
    double start = mrc_seconds();
    MRC_TRY(backend->ops->copy(backend, &self->h, &self->sum));
    if (self->options.carry) MRC_TRY(backend->ops->axpby(backend, 1, &self->left, 1, &self->h));
    MRC_TRY(mrc_project(self->projector, &self->h, &self->theta, &self->projection));
    MRC_TRY(backend->ops->axpby(backend, 1, &self->theta, 1, &self->alpha));
    if (self->options.carry) MRC_TRY(backend->ops->copy(backend, &self->left, &self->h));
    self->projections++;
    self->residual_sum += self->projection.residual;
    MRC_TRY(drop_temporary(self));
    MRC_TRY(backend->ops->sync(backend));
    self->projection_seconds += mrc_seconds() - start;
    return update_average(self);
}

mercer_status mrc_iteration_forget(mrc_iteration *self)
{
    self->averaged = 0;
    MRC_TRY(drop_temporary(self));
    MRC_TRY(clear(self, &self->left));
    return clear(self, &self->average);
}
