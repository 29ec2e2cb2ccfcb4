/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The iteration step by step against a reference in plain C, which represents every function by weights of all possible
 * points:  f = K(., Z) A + K(., X) w + K(., X_s) w_s.  The reference has no accumulator, no v and no correction matrix.
 *
 * Both compute the same numbers in a different order. Sums run over n, p or s terms with kernel values accurate to V u,
 * and a projection magnifies their rounding by the condition kappa of K(Z,Z); steps are non-expansive, so k of them
 * give
 *
 *     k kappa (n + p + s + V) u sqrt(n) (|y| + |A|)
 */
#include "support/training.h"

#include "solvers/iteration/iteration.h"

enum { N = 60, P = 14, D = 4, C = 2, S = 40, M = 8 };

typedef struct setting {
    mrc_update update;
    int64_t period, q;
    double ridge; /* lambda / n */
    bool weighted;
    int ranks;
} setting;

typedef struct bench {
    const setting *is;
    task data;
    mrc_comm *comm;
    mrc_centers centers;
    mrc_kernel_blocks passes;
    mrc_eigensystem system;
    mrc_projector *projector;
    mrc_iteration iteration;
    int64_t sample_rows[S];
    double origin[D];
    /* the reference in plain C */
    kernels k;
    dense xs, zs, ss, e; /* K(X, X_s), K(Z, X_s), K(X_s, X_s), E */
    dense a, w, ws;      /* weights of Z, X, X_s */
    double steps;
} bench;

static const char *projector_name = "exact";

static void open_projector(bench *self)
{
    mrc_projector_options options = {.nystrom = P, .eigenpairs = 3, .passes = 1, .block = 5, .gamma = 0.9, .seed = 5};
    if (self->is->update == MRC_UPDATE_PROJECT)
        assert_succeeds(context, mrc_projector_create(&self->projector, mrc_projector_find(projector_name),
                                                      &self->centers, &options));
}

static void open_bench(bench *self, const setting *is, bool carry)
{
    *self = (bench){.is = is};
    task *t = &self->data;
    *t = task_open(context, "laplace:bandwidth=2", (sizes){N, is->update == MRC_UPDATE_COORDINATES ? 0 : P, D, C}, 1,
                   MERCER_F64);
    if (is->weighted) t->weights = calloc(N, sizeof(double));
    for (int64_t i = 0; is->weighted && i < N; i++) t->weights[i] = 0.5 * (double)(i % 5);
    assert_succeeds(context, mrc_comm_create_virtual(&self->comm, context, is->ranks));
    assert_succeeds(context, mrc_centers_create(&self->centers, context->backend, self->comm, &t->kernel, &t->z,
                                                t->z.rows, self->origin, MERCER_F64));
    mercer_matrix sample = data_matrix(S, D, 0, MERCER_F64);
    for (int64_t i = 0; i < S; i++) {
        self->sample_rows[i] = mrc_random_permutation((mrc_rng){31, 1}, N, i);
        memcpy(mrc_row(&sample, i), mrc_row(&t->x, self->sample_rows[i]), D * sizeof(double));
    }
    assert_succeeds(context, mrc_eigensystem_create(&self->system, &self->centers, &sample, is->q, 5));
    assert_succeeds(context, mrc_kernel_blocks_create(&self->passes, &self->centers, M, M * P * 8,
                                                      is->ranks == 1 ? 0 : N, self->centers.real));
    open_projector(self);
    mrc_iteration_options options = {.update = is->update,
                                     .batch = M,
                                     .period = is->period,
                                     .carry = carry,
                                     .gamma = 0.7,
                                     .ridge = is->ridge,
                                     .plain_top = 5,
                                     .plain_beta = 5};
    assert_succeeds(context, mrc_iteration_create(&self->iteration, &self->centers, &self->passes, &self->system,
                                                  self->projector, 0.9, C, &options));
    self->iteration.sample_rows = self->sample_rows;
    self->k = kernels_of(t);
    self->xs = dense_kernel(&t->kernel, &t->x, &sample), self->zs = dense_kernel(&t->kernel, &t->z, &sample);
    self->ss = dense_kernel(&t->kernel, &sample, &sample), self->e = dense_of(&self->system.vectors);
    self->a = dense_new(t->z.rows, C), self->w = dense_new(N, C), self->ws = dense_new(S, C);
    free(sample.data);
}

static void close_bench(bench *self)
{
    mrc_iteration_destroy(&self->iteration);
    mrc_projector_free(self->projector);
    mrc_kernel_blocks_destroy(&self->passes);
    mrc_eigensystem_destroy(&self->system, context->backend);
    mrc_centers_destroy(&self->centers);
    mercer_comm_free(self->comm);
    dense *const all[] = {&self->xs, &self->zs, &self->ss, &self->e, &self->a, &self->w, &self->ws};
    for (int i = 0; i < 7; i++) free(all[i]->a);
    kernels_free(&self->k);
    task_close(&self->data);
}

/* ---- The steps in plain C ------------------------------------------------------------------------------------ */

/* Return part of f at given points: kz A + kx w + ks w_s (kz without data: omit the first term). */
static dense values(dense kz, dense a, dense kx, dense w, dense ks, dense ws)
{
    dense out = dense_times(false, false, kx, w), part = dense_times(false, false, ks, ws);
    dense_add(out, 1, part);
    free(part.a);
    if (!kz.a) return out;
    part = dense_times(false, false, kz, a);
    dense_add(out, 1, part);
    free(part.a);
    return out;
}

/* Return f_tmp at the centers, or at X_s if `at_sample` is set. */
static dense temporary_values(bench *self, bool at_sample)
{
    dense kx = dense_transposed(at_sample ? self->xs : self->k.xz);
    dense out = values((dense){0}, self->a, kx, self->w, at_sample ? self->ss : self->zs, self->ws);
    free(kx.a);
    return out;
}

/* Add factor E D x to w_s. */
static void correct(bench *self, double factor, dense x)
{
    dense scaled = dense_copy(x);
    for (int64_t i = 0; i < x.rows; i++)
        for (int64_t j = 0; j < x.cols; j++) AT(scaled, i, j) *= self->system.d[i];
    dense part = dense_times(false, false, self->e, scaled);
    dense_add(self->ws, factor, part);
    free(scaled.a), free(part.a);
}

static void take_over(bench *self)
{
    dense tmp = temporary_values(self, false), theta = dense_solve(self->k.zz, tmp);
    dense_add(self->a, 1, theta);
    free(tmp.a), free(theta.a);
    memset(self->w.a, 0, N * C * sizeof(double)), memset(self->ws.a, 0, S * C * sizeof(double));
}

static void write_coordinates(bench *self)
{
    dense_add(self->a, 1, self->w);
    for (int64_t i = 0; i < S; i++)
        for (int64_t j = 0; j < C; j++) AT(self->a, self->sample_rows[i], j) += AT(self->ws, i, j);
    memset(self->w.a, 0, N * C * sizeof(double)), memset(self->ws.a, 0, S * C * sizeof(double));
}

static void plain_step(bench *self, const int64_t *rows, int64_t m, double eta)
{
    const setting *is = self->is;
    dense f = values(self->k.xz, self->a, self->k.xx, self->w, self->xs, self->ws), g = dense_new(N, C);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < C; j++)
            AT(g, rows[i], j) =
                (AT(f, rows[i], j) - AT(self->k.y, rows[i], j)) * (is->weighted ? self->data.weights[rows[i]] : 1);
    dense at_sample = dense_times(true, false, self->xs, g), u = dense_times(true, false, self->e, at_sample);
    double rho = eta * (double)m * is->ridge;
    if (rho > 0 && is->update != MRC_UPDATE_PLAIN) {
        dense sz = dense_transposed(self->zs), sx = dense_transposed(self->xs);
        dense fs = values(sz, self->a, sx, self->w, self->ss, self->ws), x = dense_times(true, false, self->e, fs);
        dense *const parts[] = {&self->a, &self->w, &self->ws};
        for (int i = 0; i < 3; i++) dense_add(*parts[i], -rho, *parts[i]);
        correct(self, rho, x);
        free(sz.a), free(sx.a), free(fs.a), free(x.a);
    }
    if (is->update == MRC_UPDATE_PLAIN) {
        dense h = dense_times(true, false, self->k.xz, g), penalty = dense_times(false, false, self->k.zz, self->a);
        dense_add(self->a, -eta, h);
        dense_add(self->a, -rho, penalty);
        free(h.a), free(penalty.a);
    } else {
        dense_add(self->w, -eta, g);
        correct(self, eta, u);
    }
    if (is->update == MRC_UPDATE_COORDINATES) write_coordinates(self);
    free(f.a), free(g.a), free(at_sample.a), free(u.a);
}

/* ---- Both, compared ------------------------------------------------------------------------------------------ */

static void near(bench *self, const mercer_matrix *got, dense expected, const char *what)
{
    dense have = dense_of(got);
    double limit = self->steps * self->k.condition * (N + (double)self->data.z.rows + S + V) * U * sqrt(N) *
                   (dense_norm(self->k.y) + dense_norm(self->a));
    double error = dense_distance(have, expected);
    assert_that(error <= limit, "%s, step %d: %g, bound %g, size %g (T %d, q %d, ridge %g, ranks %d)", what,
                (int)self->steps, error, limit, dense_norm(expected), (int)self->is->period, (int)self->is->q,
                self->is->ridge, self->is->ranks);
    assert_true(limit < 1e-5);
    free(have.a);
}

static void compare(bench *self)
{
    mrc_iteration *iteration = &self->iteration;
    near(self, &iteration->alpha, self->a, "alpha");
    if (self->is->update != MRC_UPDATE_PROJECT) return;
    dense sum = temporary_values(self, false);
    near(self, &iteration->sum, sum, "sum");
    free(sum.a);
    if (self->is->period == 1) return;
    near(self, &iteration->sample_weights, self->ws, "w_s");
    if (self->is->ridge == 0) return;
    dense at_sample = temporary_values(self, true), v = dense_times(true, false, self->e, at_sample);
    near(self, &iteration->values, v, "v");
    free(at_sample.a), free(v.a);
}

static mercer_batch batch_of(bench *self, int64_t first, int64_t m, int64_t *rows, double *weights)
{
    static double x[M * D], y[M * C];
    for (int64_t i = 0; i < m; i++) {
        rows[i] = mrc_random_permutation((mrc_rng){31, 2}, N, first + i);
        memcpy(x + i * D, mrc_row(&self->data.x, rows[i]), D * sizeof(double));
        memcpy(y + i * C, mrc_row(&self->data.y, rows[i]), C * sizeof(double));
        if (self->is->weighted) weights[i] = self->data.weights[rows[i]];
    }
    return (mercer_batch){sizeof(mercer_batch), mrc_view(x, m, D, MERCER_F64), mrc_view(y, m, C, MERCER_F64),
                          self->is->weighted ? weights : NULL, rows};
}

/* Make one step in both implementations, with the step-size factors that a trainer would set. */
static void step_both(bench *self, int64_t first)
{
    mrc_iteration *iteration = &self->iteration;
    int64_t rows[M], m = N - first < M ? N - first : M;
    double weights[M];
    mercer_batch batch = batch_of(self, first, m, rows, weights);
    mrc_loss loss;
    iteration->heaviest = self->is->weighted ? 2 : 1;
    iteration->halving = 0.5, iteration->decay = 0.8;
    double bound = 0.9 + (double)(m - 1) * self->system.tail; /* for the batch's operator, before weights */
    double bottom = iteration->heaviest * bound + (double)m * self->is->ridge;
    if (self->is->update == MRC_UPDATE_PLAIN) bottom = iteration->heaviest * (double)m * 5;
    double eta = 0.7 * 2 / bottom * 0.5 * 0.8;
    assert_succeeds(context, mrc_iteration_residual(iteration, &batch, &loss));
    assert_succeeds(context, mrc_iteration_step(iteration, &batch));
    assert_that(fabs(iteration->last_step - eta) <= 8 * U * eta, "step %g, rule %g", iteration->last_step, eta);
    plain_step(self, rows, m, eta);
    self->steps++;
    assert_int_equal(loss.rows, m);
}

static void follow(const setting *is)
{
    bench self;
    open_bench(&self, is, false);
    int64_t done = 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t first = 0; first < N; first += M) {
            step_both(&self, first);
            if (++done % is->period == 0 && is->update == MRC_UPDATE_PROJECT) take_over(&self);
            compare(&self);
        }
        assert_succeeds(context, mrc_iteration_project(&self.iteration)); /* end of an epoch, in mid-period */
        if (done % is->period && is->update == MRC_UPDATE_PROJECT) take_over(&self);
        done = 0;
        compare(&self);
    }
    assert_that(dense_norm(self.a) > 0.05, "|A| is %g", dense_norm(self.a));
    close_bench(&self);
}

static void test_steps(void **state)
{
    (void)state;
    static const int ranks[] = {1, 2, 3, 11}; /* 11: more ranks than rows in a batch */
    for (int variant = 0; variant < 2 * 2 * 2 * 2 * 4; variant++) {
        setting is = {.period = variant & 1 ? 3 : 1,
                      .q = variant & 2 ? 4 : 0,
                      .ridge = variant & 4 ? 0.05 : 0,
                      .weighted = variant & 8,
                      .ranks = ranks[variant / 16]};
        follow(&is);
        is.update = MRC_UPDATE_COORDINATES, is.period = 1;
        follow(&is);
        is.update = MRC_UPDATE_PLAIN, is.q = 0;
        follow(&is);
    }
}

/* Carried residuals telescope: the sum of all projection requests is K(Z,Z) alpha plus the remaining residual. */
static void test_carry(void **state)
{
    (void)state;
    static const char *const names[] = {"bgs", "ep2", "pcg", "exact"};
    for (int kind = 0; kind < 4; kind++) {
        bench self;
        setting is = {.period = 100, .q = 4, .ranks = 1 + kind % 2 * 2};
        projector_name = names[kind];
        open_bench(&self, &is, true);
        dense asked = dense_new(P, C);
        double left_norm = 0;
        for (int64_t first = 0; first < N; first += M) {
            step_both(&self, first);
            dense sum = dense_of(&self.iteration.sum);
            dense_add(asked, 1, sum);
            free(sum.a);
            assert_succeeds(context, mrc_iteration_project(&self.iteration));
            dense alpha = dense_of(&self.iteration.alpha), have = dense_times(false, false, self.k.zz, alpha);
            dense left = dense_of(&self.iteration.left);
            dense_add(have, 1, left);
            left_norm += dense_norm(left);
            near(&self, &(mercer_matrix){.data = have.a, .rows = P, .cols = C, .ld = C, .dtype = MERCER_F64}, asked,
                 names[kind]);
            free(alpha.a), free(have.a), free(left.a);
        }
        if (kind < 3) assert_true(left_norm > 1e-3); /* a single pass leaves a residual to carry */
        free(asked.a);
        close_bench(&self);
    }
    projector_name = "exact";
}

static void test_average(void **state)
{
    (void)state;
    bench self;
    setting is = {.period = 2, .q = 4, .ranks = 1};
    open_bench(&self, &is, false);
    dense mean = dense_new(P, C);
    double count = 0;
    for (int64_t first = 0; first < N; first += M) {
        int64_t before = self.iteration.projections;
        self.iteration.averaging = first >= 2 * M;
        step_both(&self, first);
        if (self.iteration.projections == before || !self.iteration.averaging) continue;
        dense alpha = dense_of(&self.iteration.alpha);
        dense_add(mean, 1, alpha);
        count++;
        free(alpha.a);
    }
    assert_int_equal(self.iteration.averaged, (int64_t)count);
    for (int64_t i = 0; i < P * C; i++) mean.a[i] /= count;
    near(&self, &self.iteration.average, mean, "average");
    assert_succeeds(context, mrc_iteration_forget(&self.iteration));
    assert_int_equal(self.iteration.averaged, 0);
    assert_int_equal(self.iteration.pending, 0);
    free(mean.a);
    close_bench(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_carry),
        cmocka_unit_test(test_average),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
