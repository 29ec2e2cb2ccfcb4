/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary centers: for any batches, every shard has its share of them, the same on any number of ranks; the
 * products of the shards add up to the product with all of them; files store them contiguously, and restore them.
 *
 * No messages are sent: each rank of a job has a separate communicator that only knows the rank's number.
 */
#include "support/training.h"

#include "solvers/iteration/temporary_centers.h"

enum { N = 120, P = 40, D = 3, C = 2, SHARDS = 8 };

typedef struct rank {
    mrc_comm comm;
    mrc_centers centers;
    mrc_temporary_centers temporary;
} rank;

typedef struct job {
    task data;
    mercer_matrix g; /* (N, C), gradients of the samples */
    double origin[D];
    int ranks;
    rank rank[SHARDS];
} job;

static void open_job(job *self, int ranks, int64_t most)
{
    *self = (job){.ranks = ranks, .g = data_matrix(N, C, 0, MERCER_F64)};
    self->data = task_open(context, "laplace:bandwidth=2", (sizes){N, P, D, C}, 1, MERCER_F64);
    data_fill_normal(&self->g, (mrc_rng){51, 1}, 0, 1);
    for (int r = 0; r < ranks; r++) {
        rank *own = &self->rank[r];
        int64_t first, rows;
        own->comm = (mrc_comm){.context = context, .rank = r, .ranks = ranks, .shards = SHARDS, .link_settled = true};
        mrc_comm_rows(&own->comm, P, r, &first, &rows);
        mercer_matrix z = mrc_rows(&self->data.z, first, rows);
        assert_succeeds(context, mrc_centers_create(&own->centers, context->backend, &own->comm, &self->data.kernel, &z,
                                                    P, self->origin, MERCER_F64));
        assert_succeeds(context, mrc_temporary_centers_create(&own->temporary, &own->centers, most, C, MERCER_F64));
    }
}

static void close_job(job *self)
{
    for (int r = 0; r < self->ranks; r++) {
        mrc_temporary_centers_destroy(&self->rank[r].temporary);
        mrc_centers_destroy(&self->rank[r].centers);
    }
    free(self->g.data);
    task_close(&self->data);
}

/* Appends the samples first .. first + m - 1 as a batch on all ranks. */
static void append(job *self, int64_t first, int64_t m)
{
    mercer_matrix x = mrc_rows(&self->data.x, first, m), g = mrc_rows(&self->g, first, m);
    for (int r = 0; r < self->ranks; r++) {
        assert_succeeds(context, mrc_temporary_centers_append(&self->rank[r].temporary, &x, &g, -0.5));
        assert_succeeds(context, mrc_temporary_centers_pack(&self->rank[r].temporary));
        assert_int_equal(self->rank[r].temporary.packed, self->rank[r].temporary.count);
    }
}

/* Collects what files would store: points and weights of all ranks in order. */
static void collect(job *self, int64_t count, dense points, dense weights)
{
    int64_t next = 0;
    for (int r = 0; r < self->ranks; r++) {
        const mrc_temporary_centers *own = &self->rank[r].temporary;
        const mercer_matrix *const all[] = {&own->points, &own->weights};
        const dense to[] = {points, weights};
        int64_t first, rows;
        mrc_temporary_centers_rows(own, &first, &rows);
        assert_int_equal(first, count == 0 ? 0 : next);
        next += rows;
        for (int i = 0; i < 2; i++) {
            mercer_matrix used = mrc_temporary_centers_used(own, all[i]), host = used;
            mrc_temporary_centers_close_up(own, &host);
            assert_int_equal(host.rows, rows);
            for (int64_t row = 0; row < rows; row++)
                for (int64_t j = 0; j < host.cols; j++) AT(to[i], first + row, j) = mrc_load(&host, row, j);
            mrc_temporary_centers_spread(own, &host);
            assert_int_equal(host.rows, used.rows);
        }
    }
    assert_int_equal(next, count);
}

/* Checks the sum over all shards of the parts that ranks would send against K(X, X_tmp) w_tmp. */
static void check_products(job *self, int64_t count)
{
    mercer_matrix x = mrc_rows(&self->data.x, 0, 7), tmp = mrc_rows(&self->data.x, 0, count),
                  g = mrc_rows(&self->g, 0, count);
    dense k = dense_kernel(&self->data.kernel, &x, &tmp), w = dense_of(&g), sum = dense_new(7, C);
    dense wanted = dense_times(false, false, k, w);
    int parts = 0;
    for (int r = 0; r < self->ranks; r++)
        for (int i = 0; i < self->rank[r].centers.shards; i++, parts++) {
            dense part = dense_new(7, C);
            mercer_matrix view = mrc_view(part.a, 7, C, MERCER_F64);
            assert_succeeds(context, mrc_temporary_centers_add(&self->rank[r].temporary, i, &x, &view));
            dense_add(sum, -2, part); /* the factor -0.5 */
            free(part.a);
        }
    assert_int_equal(parts, SHARDS);
    double error = dense_distance(sum, wanted), limit = 2 * ((double)count + V) * U * sqrt(7) * dense_norm(w);
    assert_that(error <= limit, "%d temporary centers on %d ranks: %g, bound %g", (int)count, self->ranks, error,
                limit);
    assert_true(count == 0 || limit < 1e-9 * dense_norm(wanted));
    free(k.a), free(w.a), free(sum.a), free(wanted.a);
}

/* Checks that every shard has its share for any batches, and capacity only for its share of the maximum. */
static void check_shares(job *self, int64_t count)
{
    for (int r = 0; r < self->ranks; r++) {
        const mrc_temporary_centers *own = &self->rank[r].temporary;
        int64_t first, rows, have, expected = 0, total = 0;
        for (int i = 0; i < own->centers->shards; i++) {
            mrc_share(count, SHARDS, own->centers->first_shard + i, &first, &rows);
            expected += rows;
            mrc_share(own->most, SHARDS, own->centers->first_shard + i, &first, &rows);
            total += rows;
        }
        mrc_temporary_centers_rows(own, &first, &have);
        assert_int_equal(have, expected);
        assert_int_equal(own->points.rows, own->weights.rows);
        assert_true(own->points.rows >= total);
        assert_true(own->points.rows <= total + 4 * own->centers->shards); /* each shard begins at a multiple of 4 */
    }
}

/* Tests batches of these sizes (0 ends the list) on 1, 2, 3, 4, 5 and 8 ranks. */
static void follow(const int64_t *batches, int64_t most)
{
    static const int counts[] = {1, 2, 3, 4, 5, 8};
    dense points[2] = {dense_new(N, D), dense_new(N, D)}, weights[2] = {dense_new(N, C), dense_new(N, C)};
    for (int n = 0; n < 6; n++) {
        job self;
        open_job(&self, counts[n], most);
        for (int period = 0; period < 2; period++) { /* the second period reuses the buffer of the first */
            int64_t count = 0;
            check_products(&self, 0);
            for (int i = 0; batches[i] > 0; count += batches[i++]) {
                append(&self, count, batches[i]);
                check_shares(&self, count + batches[i]);
                check_products(&self, count + batches[i]);
                collect(&self, count + batches[i], points[n > 0], weights[n > 0]);
                check_products(&self, count + batches[i]); /* collecting has not changed the centers */
            }
            for (int r = 0; r < self.ranks; r++) mrc_temporary_centers_drop(&self.rank[r].temporary);
            collect(&self, 0, points[n > 0], weights[n > 0]);
        }
        assert_true(dense_distance(points[0], points[n > 0]) == 0);
        assert_true(dense_distance(weights[0], weights[n > 0]) == 0);
        close_job(&self);
    }
    assert_true(dense_norm(points[0]) > 0 && dense_norm(weights[0]) > 0);
    for (int i = 0; i < 2; i++) free(points[i].a), free(weights[i].a);
}

static void test_batches(void **state)
{
    (void)state;
    follow((const int64_t[]){32, 32, 32, 0}, 96);          /* even */
    follow((const int64_t[]){37, 37, 20, 0}, 111);         /* uneven, with a short last batch */
    follow((const int64_t[]){5, 5, 5, 5, 5, 5, 3, 0}, 40); /* fewer rows than shards */
    follow((const int64_t[]){1, 1, 1, 0}, 4);              /* shards without rows, ranks without capacity */
    follow((const int64_t[]){7, 50, 1, 2, 0}, 120);        /* irregular batches, as some sources return */
}

static void test_scale(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= SHARDS; ranks += 3) {
        job self;
        open_job(&self, ranks, 50);
        for (int r = 0; r < ranks; r++)
            assert_succeeds(context, mrc_temporary_centers_scale(&self.rank[r].temporary, 0.5));
        append(&self, 0, 11);
        append(&self, 11, 10);
        for (int r = 0; r < ranks; r++)
            assert_succeeds(context, mrc_temporary_centers_scale(&self.rank[r].temporary, 0.25));
        for (int64_t i = 0; i < 21 * C; i++) ((double *)self.g.data)[i] *= 0.25;
        check_products(&self, 21);
        close_job(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
