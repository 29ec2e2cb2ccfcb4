/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of all ridges from one eigensystem:
 *
 *   K(Z, Z) = L L',   B = L^-1 K(Z, X) W^1/2   (p, n),   B B' = V diag(s) V',   b = V'B W^1/2 Y   (p, c)
 *
 *   leave one out   u_i = V' B_i,  h_i = sum_k u_ik^2 / (s_k + l),  f_i = sum_k u_ik b_k / (s_k + l)
 *                   e = mean of |(y_i - f_i) / (1 - h_i)|^2, exact for fixed centers
 *   GCV             |y - f|^2 = |y|^2 - sum_k (2 / (s_k + l) - s_k / (s_k + l)^2) |b_k|^2
 *                   e = |y - f|^2 / n / (1 - (1/n) sum_k s_k / (s_k + l))^2
 *
 * l is the ridge of one sample times their weight w. A sample of weight w_i is left out with all of its weight. Cost:
 * 3 n p^2 flops and an eigensystem, 3 n p^2 more to leave one out, O(n p) for a ridge. K(Z, Z) gets 1e-10 of its mean
 * diagonal.
 */
#include "tune/small_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

/* Rows of a block: as many as a (p, p) matrix has room for. */
static int64_t block_rows(const mrc_small_fits *self)
{
    return mrc_max(1, mrc_min(MRC_SMALL_BLOCK, self->p));
}

/* B (p, count) of some rows, and their targets. */
static mercer_status make_columns(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *b,
                                  mercer_matrix *targets)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix x = mrc_rows(&self->x, first, count), y = mrc_rows(&self->rows->y, first, count);
    mrc_pair pair = {.kernel = &self->kernel, .x = &self->z, .z = &x};
    double roots[MRC_SMALL_BLOCK];
    *b = mrc_view(self->block.data, self->p, count, MERCER_F64), *targets = mrc_rows(&self->targets, 0, count);
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, b));
    MRC_TRY(backend->ops->copy(backend, targets, &y));
    for (int64_t i = 0; i < count; i++) roots[i] = self->rows->weights ? sqrt(self->rows->weights[first + i]) : 1;
    MRC_TRY(backend->ops->scale_columns(backend, b, roots));
    MRC_TRY(backend->ops->scale_rows(backend, targets, roots));
    return backend->ops->triangular_solve(backend, &self->zz, false, b);
}

typedef mercer_status (*block_work)(mrc_small_fits *self, const mercer_matrix *b, const mercer_matrix *y, double *sums);

static mercer_status for_each_block(mrc_small_fits *self, block_work work, double *sums)
{
    for (int f = 0; f < self->rows->count; f++) {
        mrc_span rows = self->rows->folds[f];
        for (int64_t done = 0, step = block_rows(self); done < rows.count; done += step) {
            mercer_matrix b, y;
            MRC_TRY(make_columns(self, rows.first + done, mrc_min(step, rows.count - done), &b, &y));
            MRC_TRY(work(self, &b, &y, sums));
        }
    }
    return MERCER_OK;
}

/* B B', B Y and |Y|^2. */
static mercer_status add_products(mrc_small_fits *self, const mercer_matrix *b, const mercer_matrix *y, double *square)
{
    mrc_backend *backend = self->context->backend;
    mrc_gemm gram = {false, true, 1, 1, b, b, &self->total}, rhs = {false, false, 1, 1, b, y, &self->rhs};
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t l = 0; l < y->cols; l++) *square += mrc_load(y, i, l) * mrc_load(y, i, l);
    MRC_TRY(backend->ops->gemm(backend, &gram));
    return backend->ops->gemm(backend, &rhs);
}

/* zz = L, system = V, values = s, total_rhs = b. */
static mercer_status decompose(mrc_small_fits *self, double *square)
{
    mrc_backend *backend = self->context->backend;
    MRC_TRY(mrc_small_centers(self));
    double trace = 0;
    for (int64_t j = 0; j < self->p; j++) trace += mrc_load(&self->zz, j, j);
    for (int64_t j = 0; j < self->p; j++)
        mrc_store(&self->zz, j, j, mrc_load(&self->zz, j, j) + MRC_SMALL_JITTER * trace / (double)self->p);
    MRC_TRY(backend->ops->cholesky(backend, &self->zz));
    MRC_TRY(backend->ops->clear(backend, &self->total));
    MRC_TRY(backend->ops->clear(backend, &self->rhs));
    MRC_TRY(for_each_block(self, add_products, square));
    MRC_TRY(backend->ops->eigen_top(backend, &self->total, self->p, self->values.data, &self->system));
    mrc_gemm turn = {true, false, 1, 0, &self->system, &self->rhs, &self->total_rhs};
    return backend->ops->gemm(backend, &turn);
}

/* s_k, which rounding may have made less than 0. */
static double eigenvalue(const mrc_small_fits *self, int64_t k)
{
    return fmax(mrc_load(&self->values, 0, k), 0);
}

/* 1 / (s_k + l w), 0 for what is neither in the samples nor held by a ridge. */
static double inverse(const mrc_small_fits *self, int64_t k, double ridge)
{
    double all = eigenvalue(self, k) + ridge * self->mass;
    return all > 0 ? 1 / all : 0;
}

/* (S + l w)^-1 b into columns of `weights`. */
static void scale_coordinates(const mrc_small_fits *self, double ridge, const mercer_matrix *to)
{
    for (int64_t k = 0; k < self->p; k++)
        for (int64_t l = 0; l < to->cols; l++)
            mrc_store(to, k, l, mrc_load(&self->total_rhs, k, l) * inverse(self, k, ridge));
}

static mercer_status leave_out(mrc_small_fits *self, const mercer_matrix *b, const mercer_matrix *y, double *errors)
{
    mrc_backend *backend = self->context->backend;
    int64_t c = y->cols, p = self->p;
    mercer_matrix u = mrc_view(self->gram.data, p, b->cols, MERCER_F64), f = mrc_rows(&self->answers, 0, b->cols);
    mrc_gemm turn = {true, false, 1, 0, &self->system, b, &u}, answer = {true, false, 1, 0, &u, &self->weights, &f};
    MRC_TRY(backend->ops->gemm(backend, &turn));
    MRC_TRY(backend->ops->gemm(backend, &answer));
    for (int64_t i = 0; i < b->cols; i++)
        for (int r = 0; r < self->count; r++) {
            double h = 0;
            for (int64_t k = 0; k < p; k++)
                h += mrc_load(&u, k, i) * mrc_load(&u, k, i) * inverse(self, k, self->ridges[r]);
            for (int64_t l = 0; l < c; l++) {
                double off = (mrc_load(y, i, l) - mrc_load(&f, i, r * c + l)) / (1 - h);
                errors[r] += h < 1 ? off * off : (double)INFINITY;
            }
        }
    return MERCER_OK;
}

static double cross_validate(const mrc_small_fits *self, double square, double ridge)
{
    double fit = square, trace = 0;
    for (int64_t k = 0; k < self->p; k++) {
        double s = eigenvalue(self, k), a = inverse(self, k, ridge), norm = 0;
        for (int64_t l = 0; l < self->total_rhs.cols; l++)
            norm += mrc_load(&self->total_rhs, k, l) * mrc_load(&self->total_rhs, k, l);
        fit -= (2 * a - s * a * a) * norm;
        trace += s * a;
    }
    double left = 1 - trace / self->mass;
    return left > 0 ? fmax(fit, 0) / (left * left) : (double)INFINITY;
}

mercer_status mrc_small_closed(mrc_small_fits *self, double *errors)
{
    double square = 0;
    int64_t c = self->rows->y.cols;
    self->mass = 0;
    for (int f = 0; f < self->rows->count; f++) self->mass += mrc_small_weight(self, self->rows->folds[f]);
    mercer_status status = decompose(self, &square);
    for (int r = 0; r < self->count; r++) errors[r] = status == MERCER_OK ? 0 : (double)INFINITY;
    if (status != MERCER_OK) return status == MERCER_ERROR_NUMERIC ? MERCER_OK : status;
    for (int r = 0; r < self->count && self->criterion == MRC_GCV; r++)
        errors[r] = cross_validate(self, square, self->ridges[r]);
    for (int r = 0; r < self->count; r++) {
        mercer_matrix columns = mrc_columns(&self->weights, r * c, c);
        scale_coordinates(self, self->ridges[r], &columns);
    }
    if (self->criterion == MRC_LOO) MRC_TRY(for_each_block(self, leave_out, errors));
    for (int r = 0; r < self->count; r++) errors[r] /= self->mass * (double)c;
    return MERCER_OK;
}

mercer_status mrc_small_closed_weights(mrc_small_fits *self, double ridge, const mercer_matrix *weights)
{
    mrc_backend *backend = self->context->backend;
    mercer_matrix coordinates = mrc_columns(&self->weights, 0, weights->cols);
    scale_coordinates(self, ridge, &coordinates);
    mrc_gemm turn = {false, false, 1, 0, &self->system, &coordinates, weights};
    MRC_TRY(backend->ops->gemm(backend, &turn));
    return backend->ops->triangular_solve(backend, &self->zz, true, weights);
}
