/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Projectors from create to free: the order of their blocks, invalid arguments, failing allocations, their predicted
 * memory; and the coarse space.
 */
#include "support/projection.h"

/* The same seed gives bitwise identical results; the next projection of ep2 uses the batches in another order. */
static void test_order(void **state)
{
    (void)state;
    problem self;
    open_problem(&self, &usual, NULL);
    mercer_matrix first = data_matrix(usual.p, usual.c, 0, MERCER_F64);
    for (int kind = 0; kind < KINDS; kind++)
        for (int store = 0; store < 2; store++) {
            mrc_projector_options options = options_of(2);
            options.store = options.sampled = store;
            once(&self, kind, &options, "order");
            mrc_backend_registry[0]->copy(self.backend, &first, &self.theta);
            mrc_projector *projector;
            assert_succeeds(&self.context,
                            mrc_projector_create(&projector, mrc_projector_find(kinds[kind]), &self.centers, &options));
            project(&self, kind, projector, "order");
            assert_true(distance_of(&self.theta, &first) == 0);
            project(&self, kind, projector, "order");
            assert_true((distance_of(&self.theta, &first) == 0) == (kind != EP2));
            mrc_projector_free(projector);
        }
    free(first.data);
    close_problem(&self);
}

static void test_arguments(void **state)
{
    (void)state;
    problem self;
    open_problem(&self, &usual, NULL);
    assert_null(mrc_projector_find("cholesky"));
    assert_null(mrc_projector_find(NULL));
    mrc_projector *projector = (mrc_projector *)&self;
    mrc_projector_options bad[] = {options_of(0), options_of(1), options_of(1), options_of(1), options_of(1)};
    bad[1].block = 0, bad[2].gamma = 1, bad[3].tolerance = NAN, bad[4].eigenpairs = -1;
    for (int i = 0; i < 5; i++) {
        assert_fails(&self.context, mrc_projector_create(&projector, mrc_projector_find("bgs"), &self.centers, &bad[i]),
                     MERCER_ERROR_ARGUMENT, "projector");
        assert_null(projector);
    }
    mrc_projector_options options = options_of(1);
    mrc_projection report;
    assert_succeeds(&self.context,
                    mrc_projector_create(&projector, mrc_projector_find("bgs"), &self.centers, &options));
    mrc_store(&self.h, 3, 1, INFINITY);
    assert_fails(&self.context, mrc_project(projector, &self.h, &self.theta, &report), MERCER_ERROR_NUMERIC,
                 "right-hand side");
    mrc_projector_free(projector);
    mrc_projector_free(NULL);
    close_problem(&self);
}

/* For every n, the n-th allocation of create and project fails: no memory leaks, and the next attempt succeeds. */
static void test_allocation_failures(void **state)
{
    (void)state;
    setting s = usual;
    s.p = 60, s.ranks = 2;
    for (int kind = 0; kind < KINDS * 2; kind++) {
        test_allocator allocator = {0};
        problem self;
        open_problem(&self, &s, &allocator);
        mrc_projector_options options = options_of(1);
        options.store = options.sampled = kind % 2;
        once(&self, kind / 2, &options, "warm"); /* leaves the backend's scratch memory allocated */
        int64_t before = self.context.bytes_now;
        mercer_status status = MERCER_ERROR_MEMORY;
        for (int n = 1; status != MERCER_OK; n++) {
            assert_true(n < 500);
            mrc_projector *projector;
            mrc_projection report;
            data_fill_normal(&self.h, (mrc_rng){11, 2}, 0, 1);
            allocator.fail_at = allocator.requests + n;
            status = mrc_projector_create(&projector, mrc_projector_find(kinds[kind / 2]), &self.centers, &options);
            if (status == MERCER_OK) status = mrc_project(projector, &self.h, &self.theta, &report);
            assert_true(status == MERCER_OK || status == MERCER_ERROR_MEMORY);
            mrc_projector_free(projector);
            assert_that(self.context.bytes_now == before, "%s, allocation %d: %lld bytes are left", kinds[kind / 2], n,
                        (long long)(self.context.bytes_now - before));
        }
        close_problem(&self);
        assert_true(allocator.live == 0 && allocator.misused == 0);
    }
}

/* The bytes reported to the planner are never fewer than those used, except for the 64 bytes next to each block,
   and not many more. */
static void test_bytes(void **state)
{
    (void)state;
    setting s = usual;
    s.p = 600, s.c = 5;
    for (int v = 0; v < KINDS * 4; v++) {
        s.real = v & 2 ? MERCER_F32 : MERCER_F64;
        problem self;
        open_problem(&self, &s, NULL);
        mrc_projector_options options = options_of(1);
        options.nystrom = 300, options.eigenpairs = 60, options.block = 150, options.store = v & 1;
        options.sampled = !options.store; /* combined inverses are for devices */
        int64_t size = mrc_dtype_size(s.real);
        mrc_problem sizes = {.p = s.p, .d = s.d, .c = s.c, .real_size = size, .point_size = size, .shards = 1};
        mrc_cost made, each;
        mrc_projector_cost(mrc_projector_find(kinds[v / 4]), &sizes, &options, &made, &each);
        int64_t held = (int64_t)mrc_bytes_sum(made.held), peak = (int64_t)mrc_bytes_sum(made.peak);
        assert_true(each.sent == 0 && mrc_cost_flops(&made) > 0 && mrc_cost_flops(&each) > 0);
        once(&self, v / 4, &options, "warm");
        mrc_projector *projector;
        int64_t before = self.context.bytes_now;
        self.context.bytes_peak = before;
        assert_succeeds(&self.context,
                        mrc_projector_create(&projector, mrc_projector_find(kinds[v / 4]), &self.centers, &options));
        project(&self, v / 4, projector, "bytes");
        int64_t now = self.context.bytes_now - before, most = self.context.bytes_peak - before, headers = 64 * 64;
        assert_that(now <= held + headers && now >= held * 9 / 10, "%s: holds %lld, said %lld", kinds[v / 4],
                    (long long)now, (long long)held);
        assert_that(most <= held + peak + headers && most >= (held + peak) / 2, "%s: peak %lld, said %lld",
                    kinds[v / 4], (long long)most, (long long)(held + peak));
        mrc_projector_free(projector);
        close_problem(&self);
    }
}

/* U is orthonormal and close to eigenvectors; directions in which the kernel is zero are left out. */
static void test_coarse(void **state)
{
    (void)state;
    for (int v = 0; v < 12; v++) {
        setting s = usual;
        s.real = v & 1 ? MERCER_F32 : MERCER_F64, s.ranks = 1 + v / 2 % 3;
        s.kernel = v < 6 ? "laplace:bandwidth=2" : "linear";
        problem self;
        open_problem(&self, &s, NULL);
        mrc_coarse coarse;
        assert_succeeds(&self.context, mrc_coarse_create(&coarse, &self.centers, 100, 12, 3));
        assert_int_equal(coarse.q, v < 6 ? 12 : 3);
        double off = 0, ku;
        for (int64_t a = 0; a < coarse.q; a++) {
            for (int64_t b = 0; b < coarse.q; b++) {
                double dot = a == b ? -1 : 0;
                for (int64_t i = 0; i < s.p; i++) dot += mrc_load(&coarse.u, i, a) * mrc_load(&coarse.u, i, b);
                off = fmax(off, fabs(dot));
            }
            ku = 0; /* u' K u */
            for (int64_t i = 0; i < s.p; i++)
                for (int64_t j = 0; j < s.p; j++)
                    ku += mrc_load(&coarse.u, i, a) * mrc_load(&self.k, i, j) * mrc_load(&coarse.u, j, a);
            assert_true(a == 0 || coarse.w[a] <= coarse.w[a - 1]);
            /* Nystrom underestimates: w <= u' K u. By how much depends on the sample, here 100 of 150. */
            assert_that(coarse.w[a] <= ku * (1 + 1e-3) && coarse.w[a] > 0.5 * ku, "direction %d: w %g, u'Ku %g", (int)a,
                        coarse.w[a], ku);
        }
        assert_that(off <= 8 * (double)s.p * unit_of(&self), "|U'U - I| = %g", off);
        mrc_coarse_destroy(&coarse, self.backend);
        close_problem(&self);
    }
}

/* K(Z,Z) V computed by blocks of collected centers, evaluated or cached, equals the result of one rank computing it
   at once. There is more than one block. */
static void test_times(void **state)
{
    (void)state;
    enum { P = MRC_COLLECT_BLOCK + 100 };
    mercer_context context = {.threads = 2, .isa = mrc_isa_best()};
    mrc_backend *backend;
    mercer_kernel kernel;
    const double origin[2] = {0, 0};
    assert_succeeds(&context, mrc_backend_create(&backend, &context, "cpu"));
    assert_succeeds(&context, mrc_kernel_parse(&context, &kernel, "laplace:bandwidth=1"));
    mercer_matrix z = data_matrix(P, 2, 0, MERCER_F32), v = data_matrix(P, 2, 3, MERCER_F32);
    mercer_matrix wanted = data_matrix(P, 2, 0, MERCER_F32), got = data_matrix(P, 2, 4, MERCER_F32);
    data_fill_normal(&z, (mrc_rng){1, 1}, 0, 1);
    data_fill_normal(&v, (mrc_rng){1, 2}, 0, 1);
    for (int ranks = 1; ranks <= 3; ranks++) {
        mrc_comm *comm;
        mrc_centers centers;
        mercer_matrix cached;
        assert_succeeds(&context, mrc_comm_create_virtual(&comm, &context, ranks));
        assert_succeeds(&context, mrc_centers_create(&centers, backend, comm, &kernel, &z, z.rows, origin, MERCER_F32));
        assert_succeeds(&context, mrc_centers_times(&centers, NULL, &v, ranks == 1 ? &wanted : &got));
        /* Sums over P terms of size at most 1 times v: an error of P u |v| each; gemm adds as much. */
        double bound = 2 * P * 0x1p-24 * norm_of(&v) * sqrt(P);
        if (ranks > 1) assert_that(distance_of(&got, &wanted) <= bound, "%g", distance_of(&got, &wanted));
        assert_succeeds(&context, mrc_centers_store_kernel(&centers, &cached));
        assert_succeeds(&context, mrc_centers_times(&centers, &cached, &v, &got));
        assert_that(distance_of(&got, &wanted) <= bound && norm_of(&wanted) > 20 * bound, "%g, bound %g",
                    distance_of(&got, &wanted), bound);
        mrc_matrix_destroy(backend, &cached);
        mrc_centers_destroy(&centers);
        mercer_comm_free(comm);
    }
    free(z.data), free(v.data), free(wanted.data), free(got.data);
    mrc_backend_free(backend);
    assert_int_equal(context.bytes_now, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_arguments), cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_coarse),    cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
