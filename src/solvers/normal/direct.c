/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel least squares by dense factorization, in double.
 *
 *   minimize  sum_i w_i |K(x_i, Z) alpha - y_i|^2 + lambda alpha' K(Z,Z) alpha + rho |alpha|^2
 *
 *   K(Z,Z) = L L'                                            (p, p)
 *   alpha  = L^-T beta                                       the RKHS metric: |f|_H^2 = |beta|^2
 *   B_b    = L^-1 K(Z, X_b) W_b^1/2                          (p, b) for a batch of b rows
 *   G      = sum_b B_b B_b',   R = sum_b B_b W_b^1/2 Y_b     (p, p), (p, c)
 *   (G + lambda I) beta = R                                  Cholesky, one step of refinement
 *
 * rho is mrc_rounding_penalty: 0 in double. In float it acts like p more samples with kernel rows sqrt(rho) e_j and
 * label 0, and is added in that form; the known zeros of L^-1 e_j are skipped.
 *
 * Only blocks on and below the diagonal of G are summed; the blocks above the diagonal are their transposes.
 *
 * Cost: n p (2 d + 2 p + 2 c) + 2/3 p^3 flops (in float 2/3 p^3 more), one pass over the data. Bytes: 16 p^2 for L and
 * G, then the larger of a batch's block 8 p b and a copy of G; and 24 p c.
 *
 * Why not K_ZX K_XZ alpha = K_ZX y: its condition number is the product of the condition numbers of G and K(Z,Z). The
 * equations for beta have the condition number of G, for which double is precise enough even with wide bandwidths.
 *
 * Caveat: if K(Z,Z) is singular (equal centers), or G is (fewer samples than centers, lambda = 0), the solution is not
 * unique. A jitter on the diagonal then selects one solution, and the report contains the jitter.
 */
#include "solvers/normal/exact_solvers.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/normal/exact_job.h"
#include "solvers/operators/spd.h"

#include <math.h>

enum {
    MOST_ROWS = 1024, /* maximum rows per batch: enough for the products to run at full speed */
    BLOCK = 512       /* block size of G, which is summed by block columns */
};

typedef struct direct_state {
    mrc_exact_solver *exact;
    mrc_centers *centers;
    mrc_backend *backend;
    int64_t rows;        /* maximum rows per batch */
    mercer_matrix z;     /* (p, d) all centers */
    mercer_matrix l, g;  /* (p, p) */
    mercer_matrix right; /* R (p, c) */
    mercer_matrix beta;  /* (p, c) */
    mercer_matrix block; /* B_b (p, rows) */
    mercer_matrix y;     /* (rows, c) */
    mercer_matrix zeros; /* (p, 1) */
    double mass, mean;   /* mass: sum of the sample weights; mean: mean of K(z, z) */
    double *root;        /* (rows) square roots of sample weights */
} direct_state;

mrc_bytes mrc_exact_direct_bytes(const mrc_problem *problem, int64_t batch)
{
    double p = (double)problem->p, c = (double)problem->c, rows = (double)mrc_min(batch, MOST_ROWS);
    double doubles = p * (2 * p + 2 * c + 1);       /* L, G; R, beta; zeros */
    double block = fmax(rows * (p + c + 1), p * p); /* block of a batch, or the factor of G */
    double scratch = p * fmax(c, 2), points = 0;    /* scratch of factorization or refinement; copy of all centers */
    if (problem->ranks > 1) points = p * (double)(problem->d * problem->point_size);
    return (mrc_bytes){.replicated = 8 * (doubles + block + scratch) + points + 64 * 12};
}

mrc_problem mrc_exact_problem(const mrc_exact_solver *exact)
{
    const mrc_centers *centers = exact->centers;
    return (mrc_problem){.n = exact->n,
                         .p = centers->p,
                         .d = centers->z.cols,
                         .c = exact->c,
                         .shards = centers->all_shards,
                         .real_size = mrc_dtype_size(centers->real),
                         .point_size = mrc_dtype_size(centers->z.dtype)};
}

mercer_status mrc_exact_check_memory(const mrc_exact_solver *exact, const char *solver, mrc_bytes needed)
{
    int64_t bytes = mrc_bytes_whole(mrc_bytes_sum(needed));
    if (exact->memory <= 0 || bytes <= exact->memory) return MERCER_OK;
    return mrc_fail(
        exact->centers->context, MERCER_ERROR_MEMORY,
        "solver %s: %lld centers need %lld bytes, but the memory limit is %lld; use cg or an iterative solver, or "
        "increase memory",
        solver, (long long)exact->centers->p, (long long)bytes, (long long)exact->memory);
}

/* Allocate all matrices for all p centers, because this solver needs all centers on each rank. */
static mercer_status prepare_direct(direct_state *self, mrc_scope *scope)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->centers->p, c = self->exact->c;
    MRC_TRY(mrc_centers_gather_all(self->centers, scope, &self->z));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->l, p, p, MERCER_F64, "the factor of K(Z, Z)"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->g, p, p, MERCER_F64, "the normal equations"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->right, p, c, MERCER_F64, "the right-hand side"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->beta, p, c, MERCER_F64, "the solution"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->zeros, p, 1, MERCER_F64, "a column of zeros"));
    mrc_spd job = {.points = &self->z, .what = "K(Z, Z)"};
    return mrc_spd_factor(self->centers, &job, &self->l, &self->exact->jitter, &self->mean);
}

/* Multiply columns of B and rows of Y by the square roots of the weights. */
static mercer_status multiply_weights(direct_state *self, const mercer_matrix *b, const mercer_matrix *y,
                                      const double *weights)
{
    const mrc_backend_ops *ops = self->backend->ops;
    if (!weights) return MERCER_OK;
    for (int64_t i = 0; i < y->rows; i++) {
        mercer_matrix column = mrc_columns(b, i, 1);
        self->root[i] = sqrt(weights[i]);
        MRC_TRY(ops->axpby(self->backend, 0, &self->zeros, self->root[i], &column));
    }
    return ops->scale_rows(self->backend, y, self->root);
}

/* Add B B' to rows and columns first .. p - 1 of G, for B (p - first, m). Only blocks on and below the diagonal are
   computed. */
static mercer_status add_products(direct_state *self, const mercer_matrix *b, int64_t first)
{
    for (int64_t at = 0; at < b->rows; at += BLOCK) {
        int64_t count = mrc_min(BLOCK, b->rows - at);
        mercer_matrix below = mrc_rows(b, at, b->rows - at), own = mrc_rows(b, at, count),
                      sum = mrc_block(&self->g, first + at, first + at, b->rows - at, count);
        MRC_TRY(mrc_counted_gemm(self->centers, false, true, 1, &below, &own, 1, &sum));
    }
    return MERCER_OK;
}

/* Fill the blocks above the diagonal, which are still 0. */
static mercer_status complete(direct_state *self)
{
    const mrc_backend_ops *ops = self->backend->ops;
    for (int64_t at = 0; at < self->g.rows; at += BLOCK) {
        int64_t count = mrc_min(BLOCK, self->g.rows - at);
        mercer_matrix block = mrc_block(&self->g, at, at, count, count);
        MRC_TRY(ops->axpby(self->backend, 0.5, &block, 0, &block));
    }
    MRC_TRY(ops->symmetrize(self->backend, &self->g)); /* all entries of G are now half of their values */
    return ops->axpby(self->backend, 2, &self->g, 0, &self->g);
}

/* Add a batch to G and R: evaluate its kernel rows, multiply them by L^-1 and by the weights, then sum the products. */
static mercer_status add_batch(direct_state *self, const mercer_batch *batch)
{
    mrc_centers *centers = self->centers;
    mrc_exact_times *times = &self->exact->times;
    double since = mrc_seconds();
    int64_t p = centers->p, m = batch->X.rows;
    mercer_matrix b = mrc_shaped(&self->block, p, m), y = mrc_rows(&self->y, 0, m);
    MRC_TRY(mrc_points_eval(centers, &self->z, &batch->X, &b));
    mrc_lap(&since, &times->forward);
    MRC_TRY(self->backend->ops->copy(self->backend, &y, &batch->Y));
    for (int64_t i = 0; i < m; i++) self->mass += batch->weights ? batch->weights[i] : 1;
    MRC_TRY(multiply_weights(self, &b, &y, batch->weights));
    centers->flops += (double)p * (double)p * (double)m;
    MRC_TRY(self->backend->ops->triangular_solve(self->backend, &self->l, false, &b));
    MRC_TRY(add_products(self, &b, 0));
    MRC_TRY(mrc_counted_gemm(centers, false, false, 1, &b, &y, 1, &self->right));
    mrc_lap(&since, &times->gradient);
    return MERCER_OK;
}

/* Add all samples, in one pass over the data. */
static mercer_status read_samples(direct_state *self)
{
    MRC_TRY(mrc_sample_stream_restart(self->exact->stream, 0));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(self->exact->stream, self->rows, &batch));
        if (batch.X.rows == 0) return MERCER_OK;
        MRC_TRY(add_batch(self, &batch));
    }
}

/* Add rho L^-1 L^-T to G, several columns sqrt(rho) e_j at a time; L^-1 e_j is 0 above row j. */
static mercer_status add_rounding(direct_state *self)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->centers->p;
    double root = sqrt(mrc_rounding_penalty(self->centers->real, self->mean, self->mass));
    mercer_matrix one = mrc_view(&root, 1, 1, MERCER_F64);
    for (int64_t first = 0; first < p && root > 0; first += self->rows) {
        int64_t count = mrc_min(self->rows, p - first), left = p - first;
        mercer_matrix b = mrc_shaped(&self->block, left, count), l = mrc_block(&self->l, first, first, left, left);
        MRC_TRY(backend->ops->clear(backend, &b));
        for (int64_t j = 0; j < count; j++) {
            mercer_matrix column = mrc_columns(&b, j, 1), entry = mrc_rows(&column, j, 1);
            MRC_TRY(backend->ops->copy(backend, &entry, &one));
        }
        self->centers->flops += (double)left * (double)left * (double)count;
        MRC_TRY(backend->ops->triangular_solve(backend, &l, false, &b));
        MRC_TRY(add_products(self, &b, first));
    }
    return MERCER_OK;
}

/* Compute G and R. The buffers of a batch are freed before G is factored. */
static mercer_status sum_samples(direct_state *self)
{
    mrc_backend *backend = self->backend;
    int64_t rows = self->rows;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &self->block, self->centers->p, rows, MERCER_F64, "a batch's block"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &self->y, rows, self->exact->c, MERCER_F64, "a batch's labels"));
    MRC_TRY(mrc_scope_alloc(&scope, &self->root, rows, sizeof *self->root, "roots of weights"));
    MRC_TRY(read_samples(self));
    double since = mrc_seconds();
    MRC_TRY(add_rounding(self));
    MRC_TRY(complete(self));
    mrc_lap(&since, &self->exact->times.gradient);
    return MERCER_OK;
}

/* Refine beta += (G + lambda I)^-1 (R - (G + lambda I) beta), which removes the effect of a jitter as far as
   possible. */
static mercer_status refine_direct(direct_state *self, const mercer_matrix *factor)
{
    mrc_backend *backend = self->backend;
    mercer_matrix step;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &step, self->beta.rows, self->beta.cols, MERCER_F64, "a refinement"));
    MRC_TRY(backend->ops->copy(backend, &step, &self->right));
    MRC_TRY(mrc_counted_gemm(self->centers, false, false, -1, &self->g, &self->beta, 1, &step));
    MRC_TRY(backend->ops->axpby(backend, -self->exact->lambda, &self->beta, 1, &step));
    MRC_TRY(mrc_spd_solve(self->centers, factor, &step));
    return backend->ops->axpby(backend, 1, &step, 1, &self->beta);
}

/* Compute beta, then overwrite it with alpha. */
static mercer_status solve_direct(direct_state *self)
{
    mrc_backend *backend = self->backend;
    mrc_exact_solver *exact = self->exact;
    int64_t p = self->centers->p;
    double norm, jitter = 0;
    mercer_matrix factor;
    MRC_TRY(mrc_matrix_norm(backend, &self->right, &norm));
    if (norm == 0) return MERCER_OK; /* beta is 0 already */
    if (!isfinite(norm))
        return mrc_fail(self->centers->context, MERCER_ERROR_NUMERIC,
                        "solver direct: squares of labels, sample weights or kernel values overflow; scale them");
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &factor, p, p, MERCER_F64, "the factor of the normal equations"));
    mrc_spd job = {.matrix = &self->g, .shift = exact->lambda, .what = "the matrix of the normal equations"};
    MRC_TRY(mrc_spd_factor(self->centers, &job, &factor, &jitter, NULL));
    exact->jitter = fmax(exact->jitter, jitter);
    MRC_TRY(backend->ops->copy(backend, &self->beta, &self->right));
    MRC_TRY(mrc_spd_solve(self->centers, &factor, &self->beta));
    MRC_TRY(refine_direct(self, &factor));
    return backend->ops->triangular_solve(backend, &self->l, true, &self->beta);
}

mercer_status mrc_exact_direct(mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    mrc_centers *centers = exact->centers;
    direct_state self = {.exact = exact,
                         .centers = centers,
                         .backend = centers->backend,
                         .rows = mrc_min(exact->kernel_blocks->most_rows, MOST_ROWS)};
    exact->steps_done = 0, exact->relative_gradient = 0, exact->jitter = 0, exact->stalled = false;
    exact->times = (mrc_exact_times){0};
    mrc_problem problem = mrc_exact_problem(exact);
    MRC_TRY(mrc_exact_check_memory(exact, "direct", mrc_exact_direct_bytes(&problem, self.rows)));
    double since = mrc_seconds();
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(prepare_direct(&self, &scope));
    mrc_lap(&since, &exact->times.setup);
    mrc_centers_notify(centers, "normal equations", -1);
    MRC_TRY(sum_samples(&self));
    since = mrc_seconds();
    MRC_TRY(solve_direct(&self));
    mrc_lap(&since, &exact->times.solve);
    exact->mass = self.mass;
    mercer_matrix own = mrc_rows(&self.beta, centers->first, centers->z.rows);
    MRC_TRY(mrc_matrix_check_finite(centers->backend, "solver direct: alpha", &self.beta, NULL));
    return self.backend->ops->copy(self.backend, alpha, &own);
}

/* ---- As a solver --------------------------------------------------------------------------------------------- */

/* Predict the memory, the flops and the messages of training. In double the products with G dominate. */
static void direct_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    double p = (double)problem->p, d = (double)problem->d, c = (double)problem->c, e = (double)problem->real_size;
    double rounded =
        /* adding the rounding penalty takes as many flops as the factors */
        problem->real_size == (int64_t)sizeof(float) ? 2 : 1;
    out->epochs = 1;
    out->batches = ceil((double)problem->n / fmax((double)plan->public_plan.batch, 1));
    double m = (double)problem->n / out->batches;
    out->set_up.held = mrc_exact_direct_bytes(problem, plan->public_plan.batch);
    out->set_up.held.shared += 3 * p * c * e; /* weights, best weights, and a copy in transit to the model */
    out->set_up.doubles = out->set_up.alike = rounded * 2 * p * p * p / 3;
    double pair = mrc_problem_features(problem);
    out->batch.doubles = out->batch.alike = 2 * m * p * pair + 2 * m * p * p;
    out->batch.flops = 2 * m * p * (pair + c); /* for the training loss */
    mrc_cost_rows(&out->set_up, problem, p * d * (double)problem->point_size, 1);
    mrc_cost_sums(&out->batch, problem, m * c * e, 1);
}

static mercer_status run_direct(mrc_job *job)
{
    return mrc_exact_run_once(job, mrc_exact_direct);
}

const mrc_solver_ops mrc_direct_ops = {.choose = mrc_exact_choose_once,
                                       .complete_plan = mrc_exact_complete_plan_once,
                                       .cost = direct_cost,
                                       .create = mrc_exact_create,
                                       .run = run_direct,
                                       .weights = mrc_exact_weights,
                                       .destroy = mrc_exact_destroy};
