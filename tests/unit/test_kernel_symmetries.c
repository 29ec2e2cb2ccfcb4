/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel values must not change, for every kernel function, backend and type, if points and bandwidth are scaled
 * together, points are translated, features or rows are reordered, or both sides are swapped. Products must be linear.
 *
 * No reference values are needed: the exact values are equal, both computed ones are within value_error of them
 * (conformance/budget.h) and are rounded once, so they differ by at most the sum of the two bounds. Points are on a
 * grid, so that scaling by a power of two and shifting do not round.
 */
#include "support/check.h"

#include "conformance/budget.h"
#include "kernels/table.h"
#include "mercer/advanced.h"
#include "support/data.h"
#include "support/info.h"
#include "support/levels.h"

enum { M = 9, P = 13, D = 7, C = 2 };

typedef struct points {
    mercer_kernel kernel;
    mercer_matrix x, z; /* (M, D), (P, D) */
} points;

typedef void (*change)(points *self);

static points make_points(const char *spec, mercer_dtype dtype)
{
    points out = {.x = data_matrix(M, D, 0, dtype), .z = data_matrix(P, D, 0, dtype)};
    assert_succeeds(NULL, mercer_kernel_parse(&out.kernel, NULL, spec));
    data_fill_normal(&out.x, (mrc_rng){61, 1}, 0, 2);
    data_fill_normal(&out.z, (mrc_rng){61, 2}, 0, 2);
    for (int64_t k = 0; k < D; k++) {
        for (int64_t i = 0; i < M; i++) data_store(&out.x, i, k, round(8 * mrc_load(&out.x, i, k)) / 8);
        for (int64_t i = 0; i < P; i++) data_store(&out.z, i, k, round(8 * mrc_load(&out.z, i, k)) / 8);
        data_store(&out.z, 0, k, mrc_load(&out.x, 0, k)); /* a center that coincides with a sample */
    }
    return out;
}

static void free_points(points *self)
{
    free(self->x.data), free(self->z.data);
}

static mercer_matrix values_of(mercer_context *context, const points *self)
{
    mercer_matrix k = data_matrix(self->x.rows, self->z.rows, 0, self->x.dtype);
    assert_succeeds(context, mercer_kernel_eval(context, &k, &self->kernel, &self->x, &self->z));
    return k;
}

/* Return the bound of |computed value - exact value|. */
static double allowed(const points *self, int64_t i, int64_t j)
{
    double x[D], z[D], mean[D] = {0}, value;
    const arithmetic *how = self->x.dtype == MERCER_F64 ? &in_double : &in_float;
    for (int64_t r = 0; r < self->z.rows; r++)
        for (int64_t k = 0; k < D; k++) mean[k] += mrc_load(&self->z, r, k) / (double)self->z.rows;
    mrc_load_row_f64(&self->x, i, x), mrc_load_row_f64(&self->z, j, z);
    assert_true(mrc_kernel_reference(&self->kernel, D, x, z, &value));
    double e = value_error(&self->kernel, D, x, z, mean, how);
    return e + how->unit * (fabs(value) + e);
}

static void compare(mercer_context *context, const char *what, const points *a, const points *b, bool swapped)
{
    mercer_matrix one = values_of(context, a), two = values_of(context, b);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < P; j++) {
            double first = mrc_load(&one, i, j), second = swapped ? mrc_load(&two, j, i) : mrc_load(&two, i, j);
            double bound = allowed(a, i, j) + (swapped ? allowed(b, j, i) : allowed(b, i, j));
            assert_that(fabs(first - second) <= bound, "%s, kernel %d, %s (%d, %d): %.17g and %.17g, bound %g", what,
                        a->kernel.id, mrc_dtype_name(a->x.dtype), (int)i, (int)j, first, second, bound);
        }
    free(one.data), free(two.data);
}

/* ---- Changes ------------------------------------------------------------------------------------------------- */

static void scale_matrix(mercer_matrix *x, double factor, double shift)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t k = 0; k < D; k++) data_store(x, i, k, factor * mrc_load(x, i, k) + shift * (double)(k % 3));
}

static void scale(points *self)
{
    scale_matrix(&self->x, 4, 0), scale_matrix(&self->z, 4, 0);
    self->kernel.bandwidth *= 4;
}

static void translate(points *self)
{
    scale_matrix(&self->x, 1, 16), scale_matrix(&self->z, 1, 16);
}

static void reorder_matrix(mercer_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++) {
        double row[D];
        mrc_load_row_f64(x, i, row);
        for (int64_t k = 0; k < D; k++) data_store(x, i, k, row[(3 * k + 2) % D]);
    }
}

static void reorder_features(points *self)
{
    reorder_matrix(&self->x), reorder_matrix(&self->z);
}

static void swap_sides(points *self)
{
    mercer_matrix x = self->x;
    self->x = self->z, self->z = x;
}

static const struct {
    const char *what;
    change apply;
    bool of_distances, swaps; /* of_distances: only valid for functions of the distance */
} changes[] = {{"points and bandwidth scaled", scale, true, false},
               {"points translated", translate, true, false},
               {"features reordered", reorder_features, false, false},
               {"sides swapped", swap_sides, false, true}};

/* ---- Every kernel, backend and type -------------------------------------------------------------------------- */

/* Reordering rows does not change any bit; twice the weights give exactly twice the product. */
static void check_exact(mercer_context *context, const points *self)
{
    points moved = make_points("linear", self->x.dtype);
    mercer_matrix w = data_matrix(P, C, 0, self->x.dtype), y[3];
    moved.kernel = self->kernel;
    data_fill_normal(&w, (mrc_rng){61, 3}, 0, 1);
    for (int64_t i = 0; i < M; i++)
        for (int64_t k = 0; k < D; k++) data_store(&moved.x, i, k, mrc_load(&self->x, (4 * i + 1) % M, k));
    for (int r = 0; r < 3; r++) {
        y[r] = data_matrix(M, C, 0, self->x.dtype);
        if (r == 2)
            for (int64_t j = 0; j < P * C; j++) data_store(&w, j / C, j % C, 2 * mrc_load(&w, j / C, j % C));
        assert_succeeds(
            context, mercer_kernel_matmul(context, &y[r], &self->kernel, r == 1 ? &moved.x : &self->x, &self->z, &w));
    }
    for (int64_t i = 0; i < M; i++)
        for (int64_t k = 0; k < C; k++) {
            assert_true(mrc_load(&y[1], i, k) == mrc_load(&y[0], (4 * i + 1) % M, k));
            assert_true(mrc_load(&y[2], i, k) == 2 * mrc_load(&y[0], i, k));
        }
    for (int r = 0; r < 3; r++) free(y[r].data);
    free(w.data);
    free_points(&moved);
}

static void check_kernel(mercer_context *context, const char *spec, mercer_dtype dtype)
{
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
        points a = make_points(spec, dtype), b = make_points(spec, dtype);
        if (!changes[c].of_distances || mrc_kernel_is_stationary(&a.kernel)) {
            changes[c].apply(&b);
            compare(context, changes[c].what, &a, &b, changes[c].swaps);
        }
        free_points(&a), free_points(&b);
    }
    points a = make_points(spec, dtype);
    check_exact(context, &a);
    free_points(&a);
}

static void test_every_kernel_and_backend(void **state)
{
    (void)state;
    for (int b = 0; mrc_backend_registry[b]; b++)
        for (int isa = 0; isa <= (int)mrc_isa_best(); isa += mrc_max(1, (int)mrc_isa_best())) {
            mercer_context *context = NULL;
            mercer_context_options options = MERCER_INIT(mercer_context_options);
            options.backend = mrc_backend_registry[b]->name, options.isa = mrc_isa_name((mrc_isa)isa);
            mercer_status status = mercer_context_create(&context, &options);
            if (is_left_out(mrc_backend_registry[b], status)) break;
            assert_succeeds(NULL, status);
            for (int k = 0; k < mrc_kernel_table_size; k++) {
                check_kernel(context, kernel_info(k).example, MERCER_F32);
                check_kernel(context, kernel_info(k).example, MERCER_F64);
            }
            mercer_context_free(context);
        }
}

/* The bound is tight enough to detect a change of only the bandwidth by 1 in 3000. */
static void test_the_bound_says_something(void **state)
{
    (void)state;
    mercer_context *context;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    assert_succeeds(NULL, mercer_context_create(&context, &options));
    points a = make_points("gaussian:bandwidth=3", MERCER_F32), b = make_points("gaussian:bandwidth=3.001", MERCER_F32);
    mercer_matrix one = values_of(context, &a), two = values_of(context, &b);
    assert_true(fabs(mrc_load(&one, 1, 2) - mrc_load(&two, 1, 2)) > allowed(&a, 1, 2) + allowed(&b, 1, 2));
    free(one.data), free(two.data);
    free_points(&a), free_points(&b);
    mercer_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel_and_backend),
        cmocka_unit_test(test_the_bound_says_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
