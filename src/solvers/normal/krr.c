/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel ridge regression: the centers are the samples, so that K factors out of the normal equations.
 *
 *   minimize  sum_i w_i |f(x_i) - y_i|^2 + lambda alpha' K alpha,   f(x_i) = (K alpha)_i,   K = K(Z, Z) (p, p), Z = X
 *
 *   A alpha = Y,   A = K + diag(mu_i),   mu_i = max(lambda / w_i, floor)           p equations for each output
 *
 *   K               lower triangle, in double, stored only if the factor is in float             once
 *   L L' ~ A        Cholesky, in float where the backend has that, else in double                once
 *   alpha           conjugate gradients on A in double, preconditioned by (L L')^-1              a few steps
 *
 * The floor is the size of the errors that rounding the weights causes: 4 u k sqrt(p) in float (u = 2^-24, k = mean
 * K(z,z)), which is the equivalent of the penalty of spd.h; 16 eps p k in double. If the factorization in float fails,
 * a shift is added to the diagonal of the factor, never to A: this takes more steps for the same solution. If the shift
 * would exceed SHIFT_STEPS times the smallest mu_i, the factor is computed in double, with shifts up to LARGEST_SHIFT
 * if necessary.
 *
 * If weights are in float, predictions are sums in float, in which large weights of opposite signs cancel. The residual
 * y_i - f(x_i) is mu_i alpha_i. The rounding error of a prediction is at most u k |alpha|_1, and usually smaller by a
 * factor of sqrt(p). If this bound is not small compared with the residual, the loss is computed again from
 * predictions. If that loss exceeds the loss according to the equations by more than a fraction LOST, the equations are
 * solved again. The floor is then 10 u k p, for which the bound is a tenth of the residual. In both cases the loss of
 * predictions is reported.
 *
 * Cost: p^2 d flops in double for K, p^3 / 3 for the factor; a step reads K twice (8 p^2 bytes) and the factor twice. A
 * factor in double overwrites K, so that each step evaluates K again, 2 p^2 (d + c). The normal equations of direct.c
 * take 8 times the flops of the factor. Bytes: 8 p^2 for a factor in double, or for a factor in float and half of K in
 * double; 8 p c for each of six vectors.
 *
 * Caveat: a sample of weight 0 has no equation. If some samples have weight 0, the planner treats the centers as
 * different from the samples.
 */
#include "solvers/normal/exact_solvers.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/normal/exact_job.h"
#include "solvers/operators/spd.h"

#include <float.h>
#include <math.h>

/* READ: samples per batch. BLOCK: rows of K that are evaluated, stored and multiplied together. NO_GAIN_STEPS: the run
   ends after this number of consecutive steps that reduce the smallest residual by less than 10 %. Fewer such steps do
   not mean that rounding errors prevent progress, because the residual of conjugate gradients is not monotone. */
enum { READ = 1024, BLOCK = 256, MOST_STEPS = 200, NO_GAIN_STEPS = 8, VECTORS = 6 };

static const double SHIFT_STEPS = 1000,         /* largest shift of the factor, relative to the smallest mu */
    LARGEST_SHIFT = 1e-4,                       /* largest shift, relative to the mean diagonal */
    ENOUGH_FLOAT = 1e-7, ENOUGH_DOUBLE = 1e-13, /* residuals, relative to |Y|, that are small enough */
    USELESS = 1e-3,                             /* residual, relative to |Y|, above which the solver fails */
    /* DOUBTFUL: bound of the rounding error, relative to the residual. LOST: relative increase of the loss. See
       above */
    DOUBTFUL = 0.25, LOST = 0.05;

typedef struct krr_state {
    mrc_exact_solver *exact;
    mrc_centers *centers;
    mrc_backend *backend;
    mercer_matrix z;      /* (p, d) all centers */
    mercer_matrix factor; /* (p, p) f32 or f64 */
    mercer_matrix cached; /* lower triangle of K in f64, by blocks of rows (cached_rows); or empty */
    bool evaluated;       /* `cached` has been computed */
    /* (p, c) f64. y: targets, later products with A; alpha: weights; r: residuals */
    mercer_matrix y, alpha, r;
    mercer_matrix s, direction, scaled; /* (p, c) f64: preconditioned residuals */
    mercer_matrix rough;                /* (p, c) f32: scratch for preconditioned residuals with a factor in float */
    double *diagonal, *mu, *raised;     /* (p) diagonal: K(z, z); mu: mu_i; raised: their sum plus a shift */
    double *weights;                    /* (p) sample weights */
    double *rs, *norms, *some;          /* (c) rs: r_j' s_j; norms: |y|^2; some: scratch space of a step */
    double mean, least;                 /* mean: mean of K(z, z); least: smallest mu_i */
    double floor;                       /* floor of mu_i, divided by mean */
} krr_state;

mrc_bytes mrc_exact_krr_bytes(const mrc_problem *problem)
{
    double p = (double)problem->p, c = (double)problem->c;
    double points = problem->ranks > 1 ? p * (double)(problem->d * problem->point_size) : 0;
    return (mrc_bytes){.replicated = 8 * p * p + 4 * p * BLOCK + 8 * p * ((VECTORS + 1) * c + 4) + points};
}

/* ---- The equations ------------------------------------------------------------------------------------------- */

/* Allocate the vectors, the factor and, if it fits, the stored K. Every rank holds all centers. */
static mercer_status prepare_krr(krr_state *self, mrc_scope *scope)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->centers->p, c = self->exact->c;
    mercer_matrix *const vectors[] = {&self->y, &self->alpha, &self->r, &self->s, &self->direction, &self->scaled};
    MRC_TRY(mrc_centers_gather_all(self->centers, scope, &self->z));
    for (int i = 0; i < VECTORS; i++)
        MRC_TRY(mrc_scope_matrix(scope, backend, vectors[i], p, c, MERCER_F64, "vectors of the equations"));
    double *numbers;
    MRC_TRY(mrc_scope_alloc(scope, &numbers, 4 * p + 3 * c, sizeof *numbers, "diagonals of the equations"));
    self->diagonal = numbers, self->mu = self->diagonal + p, self->raised = self->mu + p,
    self->weights = self->raised + p;
    self->rs = self->weights + p, self->norms = self->rs + c, self->some = self->norms + c;
    mercer_matrix on_device, host = mrc_view(self->diagonal, p, 1, MERCER_F64);
    MRC_TRY(mrc_scope_matrix(scope, backend, &on_device, p, 1, MERCER_F64, "the diagonal of K(Z, Z)"));
    MRC_TRY(backend->ops->kernel_diagonal(backend, self->centers->kernel, &self->z, &on_device));
    MRC_TRY(backend->ops->copy(backend, &host, &on_device));
    for (int64_t i = 0; i < p; i++) self->mean += self->diagonal[i] / (double)p;
    return MERCER_OK;
}

/* Store the targets, weights and mu_i of a batch by center. */
static mercer_status take_batch(krr_state *self, const mercer_batch *batch)
{
    mrc_exact_solver *exact = self->exact;
    double floor = self->floor * self->mean;
    if (!batch->rows)
        return mrc_fail(self->centers->context, MERCER_ERROR_UNSUPPORTED,
                        "solver krr uses the samples as centers, so its source must report the row numbers of a "
                        "batch");
    for (int64_t i = 0; i < batch->X.rows; i++) {
        double weight = batch->weights ? batch->weights[i] : 1;
        exact->mass += weight;
        self->weights[batch->rows[i]] = weight;
        self->mu[batch->rows[i]] = fmax(exact->lambda / weight, floor);
        self->least = fmin(self->least, self->mu[batch->rows[i]]);
    }
    return self->backend->ops->scatter_rows(self->backend, &self->y, &batch->Y, batch->rows);
}

/* Read the targets and weights of all samples once and find the smallest mu_i. */
static mercer_status read_samples(krr_state *self)
{
    self->least = INFINITY, self->exact->mass = 0;
    MRC_TRY(mrc_sample_stream_restart(self->exact->stream, 0));
    for (;;) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_next(self->exact->stream, READ, &batch));
        if (batch.X.rows == 0) return MERCER_OK;
        MRC_TRY(take_batch(self, &batch));
    }
}

/* Return the number of elements in the blocks of rows before `first`, each with the columns up to its diagonal. */
static int64_t cached_before(int64_t first)
{
    int64_t blocks = first / BLOCK;
    return (int64_t)BLOCK * BLOCK * (blocks * (blocks + 1) / 2) + (first - blocks * BLOCK) * first;
}

/* Return rows first .. first + count - 1 of the stored K, as a view (count, first + count). first: a multiple of
   BLOCK. */
static mercer_matrix cached_rows(const krr_state *self, int64_t first, int64_t count)
{
    return mrc_view((double *)self->cached.data + cached_before(first), count, first + count, MERCER_F64);
}

/* Write rows first .. first + count - 1 of K, up to the diagonal block, to the factor, and to the stored K if K is
   stored. */
static mercer_status form_rows(krr_state *self, int64_t first, int64_t count)
{
    mercer_matrix rows = mrc_rows(&self->z, first, count), until = mrc_rows(&self->z, 0, first + count),
                  block = mrc_block(&self->factor, first, 0, count, first + count);
    if (!self->cached.data) return mrc_points_eval(self->centers, &rows, &until, &block);
    mercer_matrix cached = cached_rows(self, first, count);
    if (!self->evaluated) MRC_TRY(mrc_points_eval(self->centers, &rows, &until, &cached));
    return self->backend->ops->copy(self->backend, &block, &cached);
}

/* Form the lower triangle of A, its diagonal raised by `shift`, in the factor. */
static mercer_status form_krr(krr_state *self, double shift)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->z.rows;
    for (int64_t first = 0; first < p; first += BLOCK) {
        mrc_centers_notify(self->centers, "kernel matrix of centers", (double)first / (double)p);
        MRC_TRY(form_rows(self, first, mrc_min(BLOCK, p - first)));
    }
    self->evaluated = self->cached.data != NULL;
    mercer_matrix diagonal = self->factor, raised = mrc_view(self->raised, p, 1, MERCER_F64);
    diagonal.cols = 1, diagonal.ld = self->factor.ld + 1;
    for (int64_t i = 0; i < p; i++) self->raised[i] = self->diagonal[i] + self->mu[i] + shift;
    return backend->ops->copy(backend, &diagonal, &raised);
}

/* Factor L L' = A, with a shift of its diagonal if necessary. Set *found to whether a shift of at most `most` was
   enough. */
static mercer_status factor_as(krr_state *self, mrc_scope *scope, mercer_dtype dtype, double most, bool *found)
{
    mrc_backend *backend = self->backend;
    int64_t p = self->centers->p, bad;
    double shift = 0, least = (dtype == MERCER_F32 ? 0x1p-23 : DBL_EPSILON) * sqrt((double)p) * self->mean;
    MRC_TRY(mrc_scope_reserve(scope, backend, &self->factor, p, p, dtype, "the factor"));
    *found = false;
    while (shift <= most) {
        MRC_TRY(form_krr(self, shift));
        mrc_centers_notify(self->centers, "factorization", -1);
        MRC_TRY(backend->ops->cholesky(backend, &self->factor, &bad));
        self->centers->flops += (double)p * (double)p * (double)p / 3;
        *found = bad < 0;
        self->exact->jitter = shift / self->mean;
        if (*found) return MERCER_OK;
        double next = fmax(10 * shift, least);
        if (!(next > shift)) break; /* the diagonal is 0 (a linear kernel, points at 0), and so is every shift */
        shift = next;
    }
    return MERCER_OK;
}

/* ---- Conjugate gradients --------------------------------------------------------------------------------------- */

/* Compute out = K v from the lower triangle: its rows times v, and the transposes of these rows, without the diagonal
   blocks, times v. */
static mercer_status multiply_cached(krr_state *self, const mercer_matrix *v, const mercer_matrix *out)
{
    for (int64_t first = 0, p = self->z.rows; first < p; first += BLOCK) {
        int64_t count = mrc_min(BLOCK, p - first);
        mercer_matrix rows = cached_rows(self, first, count), left = mrc_columns(&rows, 0, first);
        mercer_matrix until = mrc_rows(v, 0, first + count), own = mrc_rows(v, first, count),
                      to = mrc_rows(out, first, count), before = mrc_rows(out, 0, first);
        MRC_TRY(mrc_counted_gemm(self->centers, false, false, 1, &rows, &until, 0, &to));
        if (first > 0) MRC_TRY(mrc_counted_gemm(self->centers, true, false, 1, &left, &own, 1, &before));
    }
    return MERCER_OK;
}

/* Compute out = K v + mu u. */
static mercer_status multiply_krr(krr_state *self, const mercer_matrix *v, const mercer_matrix *u,
                                  const mercer_matrix *out)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(self->cached.data ? multiply_cached(self, v, out)
                              : mrc_points_matmul(self->centers, &self->z, &self->z, v, out, false));
    MRC_TRY(backend->ops->copy(backend, &self->scaled, u));
    MRC_TRY(backend->ops->scale_rows(backend, &self->scaled, self->mu));
    return backend->ops->axpby(backend, 1, &self->scaled, 1, out);
}

/* Compute s = (L L')^-1 r. */
static mercer_status precondition_krr(krr_state *self)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *at = self->factor.dtype == MERCER_F32 ? &self->rough : &self->s;
    MRC_TRY(backend->ops->copy(backend, at, &self->r));
    MRC_TRY(mrc_spd_solve(self->centers, &self->factor, at));
    return at == &self->s ? MERCER_OK : backend->ops->copy(backend, &self->s, at);
}

/* Compute y_j += sign factors_j x_j. */
static mercer_status add_columns(krr_state *self, double sign, const double *factors, const mercer_matrix *x,
                                 const mercer_matrix *y)
{
    for (int64_t j = 0; j < x->cols; j++) {
        mercer_matrix from = mrc_columns(x, j, 1), to = mrc_columns(y, j, 1);
        MRC_TRY(self->backend->ops->axpby(self->backend, sign * factors[j], &from, 1, &to));
    }
    return MERCER_OK;
}

/* Find the largest |r_j| / |y_j|. */
static mercer_status measure_residual(krr_state *self, double *largest)
{
    double *squares = self->some;
    MRC_TRY(self->backend->ops->column_dots(self->backend, &self->r, &self->r, squares));
    *largest = 0;
    for (int64_t j = 0; j < self->exact->c; j++)
        if (self->norms[j] > 0) *largest = fmax(*largest, sqrt(squares[j] / self->norms[j]));
    return MERCER_OK;
}

/* Take one step of conjugate gradients in double, for all columns in one product with K. */
static mercer_status krr_step(krr_state *self)
{
    const mrc_backend_ops *ops = self->backend->ops;
    int64_t c = self->exact->c;
    double *some = self->some;
    mercer_matrix *product = &self->y; /* overwrites the targets, which were copied to r */
    MRC_TRY(multiply_krr(self, &self->direction, &self->direction, product));
    MRC_TRY(ops->column_dots(self->backend, &self->direction, product, some));
    for (int64_t j = 0; j < c; j++) some[j] = some[j] > 0 ? self->rs[j] / some[j] : 0; /* step lengths */
    MRC_TRY(add_columns(self, 1, some, &self->direction, &self->alpha));
    MRC_TRY(add_columns(self, -1, some, product, &self->r));
    MRC_TRY(precondition_krr(self));
    for (int64_t j = 0; j < c; j++) some[j] = self->rs[j];
    MRC_TRY(ops->column_dots(self->backend, &self->r, &self->s, self->rs));
    for (int64_t j = 0; j < c; j++)
        some[j] = some[j] > 0 ? self->rs[j] / some[j] : 0; /* factors of the previous direction */
    MRC_TRY(ops->scale_columns(self->backend, &self->direction, some));
    return ops->axpby(self->backend, 1, &self->s, 1, &self->direction);
}

/* Solve for alpha, starting from 0. Ends when the residual is small enough, or when steps no longer reduce it. */
static mercer_status solve_krr(krr_state *self)
{
    const mrc_backend_ops *ops = self->backend->ops;
    mrc_exact_solver *exact = self->exact;
    double enough = self->centers->real == MERCER_F32 ? ENOUGH_FLOAT : ENOUGH_DOUBLE, residual = 1, best = INFINITY;
    MRC_TRY(ops->column_dots(self->backend, &self->y, &self->y, self->norms));
    MRC_TRY(ops->copy(self->backend, &self->r, &self->y));
    MRC_TRY(ops->clear(self->backend, &self->alpha));
    MRC_TRY(precondition_krr(self));
    MRC_TRY(ops->column_dots(self->backend, &self->r, &self->s, self->rs));
    MRC_TRY(ops->copy(self->backend, &self->direction, &self->s));
    for (int64_t no_gain = 0; exact->steps_done < MOST_STEPS && no_gain < NO_GAIN_STEPS; exact->steps_done++) {
        MRC_TRY(measure_residual(self, &residual));
        if (!(residual > enough)) break;
        no_gain = residual < 0.9 * best ? 0 : no_gain + 1;
        best = fmin(best, residual);
        mrc_centers_notify(self->centers, "equations", fmin(1, log(residual) / log(enough)));
        MRC_TRY(krr_step(self));
    }
    exact->relative_gradient = residual;
    if (residual <= USELESS) return MERCER_OK;
    return mrc_fail(self->centers->context, MERCER_ERROR_NUMERIC,
                    "solver krr: after %lld steps the relative residual is %.1e; raise lambda",
                    (long long)exact->steps_done, residual);
}

/* ---- As a solver ----------------------------------------------------------------------------------------------- */

/*
 * If K is stored, compute sum_i w_i |f(x_i) - y_i|^2 without a pass over the samples, where a is alpha rounded to the
 * type of the weights:
 *
 *   y - K a = r + mu alpha + K (alpha - a),   r = y - A alpha
 */
static mercer_status measure_fit(krr_state *self)
{
    const mrc_backend_ops *ops = self->backend->ops;
    const mrc_units *units = self->exact->units;
    mercer_matrix *rounded = &self->rough, *lost = &self->direction, *error = &self->y;
    double fit = 0;
    if (!self->cached.data) return MERCER_OK;
    MRC_TRY(ops->copy(self->backend, lost, &self->alpha));
    if (self->centers->real == MERCER_F32) {
        MRC_TRY(ops->copy(self->backend, rounded, &self->alpha));
        MRC_TRY(ops->copy(self->backend, lost, rounded));
    }
    MRC_TRY(ops->axpby(self->backend, 1, &self->alpha, -1, lost));
    MRC_TRY(multiply_krr(self, lost, &self->alpha, error));
    MRC_TRY(ops->axpby(self->backend, 1, &self->r, 1, error));
    MRC_TRY(ops->copy(self->backend, &self->s, error));
    MRC_TRY(ops->scale_rows(self->backend, &self->s, self->weights));
    MRC_TRY(ops->column_dots(self->backend, error, &self->s, self->some));
    for (int64_t j = 0; j < self->exact->c; j++)
        fit += (mrc_units_given(units) ? units->scale[j] * units->scale[j] : 1) * self->some[j];
    self->exact->fit = fit;
    return MERCER_OK;
}

/* Solve with a factor of type dtype. Set *found to whether the factor exists with a shift of at most `most`. */
static mercer_status answer_with(krr_state *self, mercer_dtype dtype, double most, bool *found)
{
    double since = mrc_seconds();
    MRC_SCOPE(scope, self->centers->context);
    int64_t p = self->z.rows;
    self->cached = (mercer_matrix){0}, self->evaluated = false;
    if (dtype == MERCER_F32) {
        MRC_TRY(mrc_scope_matrix(&scope, self->backend, &self->rough, p, self->exact->c, dtype, "residuals"));
        MRC_TRY(mrc_scope_reserve(&scope, self->backend, &self->cached, 1, cached_before(p), MERCER_F64, "K(Z, Z)"));
    }
    MRC_TRY(factor_as(self, &scope, dtype, most, found));
    mrc_lap(&since, &self->exact->times.setup);
    if (!*found) return MERCER_OK;
    MRC_TRY(solve_krr(self));
    MRC_TRY(measure_fit(self));
    mrc_lap(&since, &self->exact->times.solve);
    return MERCER_OK;
}

/* Solve with a factor in float if the backend supports it, because it is faster. Otherwise, or if this factorization
   fails, use a factor in double. */
static mercer_status answer(krr_state *self)
{
    bool found = false;
    double largest = LARGEST_SHIFT * self->mean;
    if (self->backend->ops->capabilities(self->backend, false).float_factors)
        MRC_TRY(answer_with(self, MERCER_F32, fmin(largest, SHIFT_STEPS * self->least), &found));
    if (!found) MRC_TRY(answer_with(self, MERCER_F64, largest, &found));
    if (found) return MERCER_OK;
    return mrc_fail(self->centers->context, MERCER_ERROR_NUMERIC,
                    "solver krr: K(Z, Z) is not positive definite, not even with %.0e of its mean diagonal added",
                    LARGEST_SHIFT);
}

/* Compute the loss according to the equations, sum_i w_i |mu_i alpha_i|^2 in the original units of the targets. Set
   *doubtful to whether the loss of predictions in float may differ from it. */
static mercer_status expect_fit(krr_state *self, double *fit, bool *doubtful)
{
    const mrc_units *units = self->exact->units;
    int64_t p = self->z.rows, c = self->exact->c;
    mercer_matrix alpha;
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_view(&scope, &alpha, p, c, MERCER_F64, "weights"));
    MRC_TRY(self->backend->ops->copy(self->backend, &alpha, &self->alpha));
    *fit = 0, *doubtful = false;
    for (int64_t j = 0; j < c; j++) {
        double sum = 0, squares = 0, scale = mrc_units_given(units) ? units->scale[j] : 1;
        for (int64_t i = 0; i < p; i++) {
            double weight = mrc_load(&alpha, i, j), residual = self->mu[i] * weight;
            sum += fabs(weight), squares += self->weights[i] * residual * residual;
        }
        double bound = 0x1p-24 * self->mean * sum;
        *doubtful = *doubtful || bound * bound > DOUBTFUL * DOUBTFUL * squares / self->exact->mass;
        *fit += scale * scale * squares;
    }
    return MERCER_OK;
}

/* Solve the equations and round the weights. */
static mercer_status find_weights(krr_state *self, const mercer_matrix *alpha)
{
    double since = mrc_seconds();
    MRC_TRY(read_samples(self));
    mrc_lap(&since, &self->exact->times.forward);
    MRC_TRY(answer(self));
    MRC_TRY(mrc_matrix_check_finite(self->backend, "solver krr: alpha", &self->alpha, NULL));
    mercer_matrix own = mrc_rows(&self->alpha, self->centers->first, self->centers->z.rows);
    return self->backend->ops->copy(self->backend, alpha, &own);
}

/* Compute weights in float, and repeat with a higher floor if the loss of predictions is much higher than expected. */
static mercer_status find_float_weights(krr_state *self, const mercer_matrix *alpha)
{
    double expected, p = (double)self->centers->p;
    bool doubtful;
    self->floor = 4 * 0x1p-24 * sqrt(p);
    MRC_TRY(find_weights(self, alpha));
    MRC_TRY(expect_fit(self, &expected, &doubtful));
    if (!doubtful) return MERCER_OK;
    MRC_TRY(mrc_objective(self->exact, alpha, &self->exact->fit, NULL));
    if (self->exact->fit <= (1 + LOST) * expected) return MERCER_OK;
    self->floor = 10 * 0x1p-24 * p;
    self->exact->steps_done = 0;
    MRC_TRY(find_weights(self, alpha));
    return mrc_objective(self->exact, alpha, &self->exact->fit, NULL);
}

mercer_status mrc_exact_krr(mrc_exact_solver *exact, const mercer_matrix *alpha)
{
    mrc_centers *centers = exact->centers;
    krr_state self = {.exact = exact, .centers = centers, .backend = centers->backend};
    exact->steps_done = 0, exact->relative_gradient = 0, exact->jitter = 0, exact->mass = 0, exact->stalled = false;
    exact->fit = (double)NAN;
    exact->times = (mrc_exact_times){0};
    mrc_problem problem = mrc_exact_problem(exact);
    MRC_TRY(mrc_exact_check_memory(exact, "krr", mrc_exact_krr_bytes(&problem)));
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(prepare_krr(&self, &scope));
    if (centers->real == MERCER_F32) return find_float_weights(&self, alpha);
    self.floor = 16 * DBL_EPSILON * (double)centers->p;
    return find_weights(&self, alpha);
}

/* Predict the cost of training. STEPS: typical number of steps of conjugate gradients with a factor in float. */
static void krr_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    enum { STEPS = 4 };
    double p = (double)problem->p, c = (double)problem->c, pair = mrc_problem_features(problem);
    mrc_cost *set_up = &out->set_up;
    out->epochs = 1;
    out->batches = ceil((double)problem->n / fmax((double)plan->public_plan.batch, 1));
    set_up->held = mrc_exact_krr_bytes(problem);
    set_up->held.shared += 3 * p * c * (double)problem->real_size; /* weights, best weights, the model's weights */
    set_up->flops = p * p * p / 3;
    if (problem->float_factors) {
        set_up->doubles = p * p * pair;
        set_up->waiting = STEPS * 8 * p * p * c;
        set_up->read = STEPS * 16 * p * p; /* K and the factor are both read twice per step */
    } else {
        set_up->flops += p * p * pair;
        set_up->doubles = STEPS * 2 * p * p * (pair + c);
        set_up->read = STEPS * 8 * p * p;
        out->batch.flops = 2 * (double)problem->n / out->batches * p * (pair + c); /* for the training loss */
    }
    set_up->alike = set_up->flops + set_up->doubles + set_up->waiting;
}

static mercer_status choose_krr(mrc_planner *planner)
{
    planner->plan->on_samples = planner->request->on_samples;
    return mrc_exact_choose_once(planner);
}

/* Create the weights. Fails if the centers are not the samples, which K as a square matrix requires. */
static mercer_status create_krr(mrc_job *job, const mercer_matrix *first)
{
    if (!job->plan.on_samples)
        return mrc_fail(job->context, MERCER_ERROR_DATA,
                        "solver krr uses the samples as centers, each once and with a positive weight, but the %lld "
                        "centers and %lld samples are not the same rows",
                        (long long)job->target.p, (long long)job->n);
    return mrc_exact_create(job, first);
}

static mercer_status run_krr(mrc_job *job)
{
    return mrc_exact_run_once(job, mrc_exact_krr);
}

const mrc_solver_ops mrc_krr_ops = {.choose = choose_krr,
                                    .complete_plan = mrc_exact_complete_plan_once,
                                    .cost = krr_cost,
                                    .create = create_krr,
                                    .run = run_krr,
                                    .weights = mrc_exact_weights,
                                    .destroy = mrc_exact_destroy};
