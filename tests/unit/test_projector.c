/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requirements of every projector: a true residual (see support/projection.h), and a solution. Because K (theta -
 * theta*) = -r exactly, theta is within (|r| + slack) / lambda_min of the solution theta*.
 */
#include "support/projection.h"

/*
 * Returns by how much theta lowers J(theta) = theta' K theta - 2 theta' h, the error in the norm of the RKHS up to a
 * constant: theta' (h + r). Conjugate gradients and Gauss-Seidel lower J with every pass, but the residual itself may
 * rise occasionally.
 */
static double gain_after(problem *self, int kind, const mrc_projector_options *options)
{
    double sum = 0, residual = once(self, kind, options, "gain").residual;
    for (int64_t i = 0; i < self->z.rows; i++)
        for (int64_t j = 0; j < self->h.cols; j++)
            sum += mrc_load(&self->theta, i, j) * (mrc_load(&self->h0, i, j) + mrc_load(&self->h, i, j));
    if (options->passes > 1) assert_that(residual < 0.5, "%s: residual %g", kinds[kind], residual);
    return sum;
}

/* For every kind, type, backend and number of ranks, with and without stored kernel values, the residual is the true
   one, and theta improves. */
static void test_residual(void **state)
{
    (void)state;
    for (int v = 0; v < 12; v++) {
        setting s = usual;
        s.real = v & 1 ? MERCER_F32 : MERCER_F64, s.backend = v & 2 ? "reference" : "cpu", s.ranks = 1 + v / 4;
        if (v & 2) s.p = 90;
        problem self;
        open_problem(&self, &s, NULL);
        for (int kind = 0; kind < KINDS; kind++) {
            for (int store = 0; store < 2; store++) {
                mrc_projector_options one = options_of(1), many = options_of(6);
                one.store = many.store = one.sampled = many.sampled = store;
                double early = gain_after(&self, kind, &one), late = gain_after(&self, kind, &many);
                assert_that(early > 0 && late > early * (1 - 1e-5), "%s: gain %g after 1 pass, %g after 6", kinds[kind],
                            early, late);
            }
        }
        close_problem(&self);
    }
}

/* Computes the solution theta* for all columns (in the shape of self->h0) by eigenvectors in double. Returns
   lambda_min. */
static double direct_solution(problem *self, const mercer_matrix *solution)
{
    int64_t p = self->z.rows, c = self->h0.cols;
    mercer_matrix a = data_matrix(p, p, 0, MERCER_F64), v = data_matrix(p, p, 0, MERCER_F64);
    double *values = calloc((size_t)p, sizeof *values), least;
    memcpy(a.data, self->k.data, (size_t)(p * p) * sizeof(double));
    assert_succeeds(&self->context, self->backend->ops->eigen_top(self->backend, &a, p, values, &v));
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < c; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p; k++) {
                double dot = 0;
                for (int64_t l = 0; l < p; l++) dot += mrc_load(&v, l, k) * mrc_load(&self->h0, l, j);
                sum += mrc_load(&v, i, k) * dot / values[k];
            }
            mrc_store(solution, i, j, sum);
        }
    least = values[p - 1];
    free(a.data), free(v.data), free(values);
    return least;
}

static void test_solution(void **state)
{
    (void)state;
    setting s = usual;
    s.p = 80;
    problem self;
    open_problem(&self, &s, NULL);
    mercer_matrix solution = data_matrix(s.p, s.c, 0, MERCER_F64);
    double least = direct_solution(&self, &solution);
    assert_true(least > 1e-3);
    for (int kind = 0; kind < KINDS; kind++) {
        mrc_projector_options options = options_of(3000);
        options.tolerance = kind == EP2 ? 1e-4 : 1e-11; /* ep2 is slow in the directions it does not deflate */
        mrc_projection report = once(&self, kind, &options, "solution");
        double slack = slack_of(&self, updates_of(&self, kind, &options, report.passes));
        double bound = (norm_of(&self.h) + slack) / least, error = distance_of(&self.theta, &solution);
        assert_that(report.residual <= options.tolerance, "%s: residual %g", kinds[kind], report.residual);
        assert_that(report.passes < 3000, "%s did not stop at the tolerance", kinds[kind]);
        assert_that(error <= bound, "%s: |theta - theta*| = %g, bound %g", kinds[kind], error, bound);
    }
    free(solution.data);
    close_problem(&self);
}

/* The number of ranks changes only the order of sums. A perturbation e of r changes theta by at most |e| /
   lambda_min. */
static void test_ranks(void **state)
{
    (void)state;
    mercer_matrix first = data_matrix(usual.p, usual.c, 0, MERCER_F64),
                  solution = data_matrix(usual.p, usual.c, 0, MERCER_F64);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int ranks = 1; ranks <= 3; ranks++) {
            setting s = usual;
            s.ranks = ranks;
            problem self;
            open_problem(&self, &s, NULL);
            mrc_projector_options options = options_of(2);
            mrc_projection report = once(&self, kind, &options, "ranks");
            double bound =
                slack_of(&self, updates_of(&self, kind, &options, report.passes)) / direct_solution(&self, &solution);
            double moved = distance_of(&self.theta, &first);
            assert_true(bound < 1e-3 * norm_of(&self.theta));
            if (ranks > 1)
                assert_that(moved <= bound, "%s with %d ranks: theta moved by %g, bound %g", kinds[kind], ranks, moved,
                            bound);
            if (ranks == 1) mrc_backend_registry[0]->copy(self.backend, &first, &self.theta);
            close_problem(&self);
        }
    }
    free(first.data), free(solution.data);
}

/* Sizes at and below the limits: few centers, more eigenpairs or larger blocks than centers, no coarse space, no
   columns. */
static void test_sizes(void **state)
{
    (void)state;
    static const int64_t ps[] = {1, 2, 3, 7, 41},
                         others[][3] = {{0, 0, 1}, {100, 0, 100}, {100, 100, 3}, {2, 1, 5}, {5, 5, 1}};
    for (int i = 0; i < 5; i++)
        for (int o = 0; o < 5; o++)
            for (int v = 0; v < 4; v++) {
                setting s = usual;
                s.p = ps[i], s.c = o % 3, s.ranks = 1 + v / 2 * 2, s.real = v & 1 ? MERCER_F32 : MERCER_F64;
                problem self;
                open_problem(&self, &s, NULL);
                mrc_projector_options options = options_of(2);
                options.nystrom = others[o][0], options.eigenpairs = others[o][1], options.block = others[o][2];
                options.store = options.sampled = v & 1;
                for (int kind = 0; kind < KINDS; kind++) assert_true(once(&self, kind, &options, "sizes").residual < 2);
                close_problem(&self);
            }
}

/* A buffer for kernel values, absent, too small or sufficient, changes the work of bgs but not its result: the same
   steps, rounded in another order. Steps are bounded by 1 / lambda_min times the rounding error left in the
   residual; 1e-6 is far above. */
static void test_buffer_sizes(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        setting s = usual;
        s.ranks = ranks;
        problem self;
        open_problem(&self, &s, NULL);
        mercer_matrix plain = data_matrix(s.p, s.c, 0, MERCER_F64);
        for (int part = 0; part <= 2; part++) {
            mrc_projector_options options = options_of(2);
            mrc_projector *projector;
            mrc_cached_block buffers[3] = {0};
            for (int i = 0; i < ranks; i++) {
                buffers[i].bytes = options.block * self.centers.shard[i].rows * 8 * part / 2;
                buffers[i].memory = calloc((size_t)buffers[i].bytes + 1, 1);
            }
            assert_succeeds(&self.context,
                            mrc_projector_create(&projector, mrc_projector_find("bgs"), &self.centers, &options));
            projector->buffers = buffers;
            project(&self, BGS, projector, "buffers");
            if (part == 0) mrc_backend_registry[0]->copy(self.backend, &plain, &self.theta);
            assert_that(distance_of(&self.theta, &plain) <= 1e-6 * norm_of(&plain), "theta differs");
            for (int i = 0; i < ranks; i++) free(buffers[i].memory);
            mrc_projector_free(projector);
        }
        free(plain.data);
        close_problem(&self);
    }
}

static void test_zero(void **state)
{
    (void)state;
    problem self;
    open_problem(&self, &usual, NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        mrc_projector_options options = options_of(2);
        for (int64_t i = 0; i < usual.p; i++) mrc_store(&self.h0, i, 1, 0); /* one zero column: it stays 0 */
        once(&self, kind, &options, "zero column");
        for (int64_t i = 0; i < usual.p; i++)
            assert_true(mrc_load(&self.theta, i, 1) == 0 && mrc_load(&self.h, i, 1) == 0);
    }
    for (int64_t i = 0; i < usual.p; i++) mrc_store(&self.h0, i, 0, 0); /* all columns */
    for (int kind = 0; kind < KINDS; kind++) {
        mrc_projector_options options = options_of(2);
        mrc_projection report = once(&self, kind, &options, "zero");
        assert_true(report.residual == 0 && report.passes == 0 && norm_of(&self.theta) == 0);
    }
    close_problem(&self);
}

/* Kernel matrices that are singular in float or double: theta stays small enough to be rounded, and the residual
   true. */
static void test_ill_conditioned(void **state)
{
    (void)state;
    static const char *const kernels[] = {"gaussian:bandwidth=30", "linear", "polynomial:degree=2",
                                          "laplace:bandwidth=2"};
    for (int v = 0; v < 8; v++) {
        setting s = usual;
        s.kernel = kernels[v / 2], s.real = v & 1 ? MERCER_F32 : MERCER_F64;
        problem self;
        open_problem(&self, &s, NULL);
        if (v / 2 == 3) /* equal centers */
            for (int64_t j = 0; j < s.d; j++)
                for (int64_t i = 1; i < 20; i++) mrc_store(&self.z, i, j, mrc_load(&self.z, 0, j));
        reference_kernel(&self);
        for (int64_t i = 0; i < s.p; i++) /* a right-hand side in the range of K: one of its columns */
            for (int64_t j = 0; j < s.c; j++) data_store(&self.h0, i, j, mrc_load(&self.k, i, j));
        for (int kind = 0; kind < KINDS; kind++)
            for (int store = 0; store < 2; store++) {
                mrc_projector_options options = options_of(5);
                options.store = options.sampled = store;
                mrc_projection report = once(&self, kind, &options, s.kernel);
                double worst = kind == EP2 ? 2 : kind == PCG ? 0.2 : 1e-2;
                assert_that(report.residual < worst, "%s %s %s: residual %g", s.kernel, mrc_dtype_name(s.real),
                            kinds[kind], report.residual);
                if (kind == EP2) continue; /* the steps of ep2 add up to large weights that cancel */
                assert_that(norm_of(&self.k) * norm_of(&self.theta) * unit_of(&self) <= 0.2 * norm_of(&self.h0),
                            "%s %s: |theta| = %g", s.kernel, kinds[kind], norm_of(&self.theta));
            }
        close_problem(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual),        cmocka_unit_test(test_solution), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_zero),     cmocka_unit_test(test_buffer_sizes),
        cmocka_unit_test(test_ill_conditioned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
