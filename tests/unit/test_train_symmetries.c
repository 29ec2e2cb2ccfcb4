/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of the task that must not change a trained model, or must change it in a known way, for every solver,
 * projector and backend: samples in another order, points and bandwidth scaled together, points translated, features in
 * another order, targets doubled, added or in another order (classes renamed), a row twice instead of weight two.
 *
 * All samples are one batch and the Nystrom sample, so that nothing is random. As in test_identities.c two ways to
 * compute the same K steps differ by one step's rounding each, |alpha - alpha'|_H <= K kappa (n + p + V) u S. Samples
 * in another order also round the top q eigenvectors differently: by n u lambda_1 / delta, delta = lambda_q - lambda_{q+1},
 * which enters a step once. Factors of two are exact in every operation: such models are compared bit for bit.
 */
#include "support/training.h"

#include "support/levels.h"

enum { N = 60, P = 20, D = 4, C = 2, PAIRS = 3, EPOCHS = 3 };

static const double PCG_TOLERANCE = 1e-13; /* relative residual: pcg is linear in y only at convergence */
static const char *const KERNEL = "laplace:bandwidth=2";

typedef struct method {
    const char *solver, *projector;
    bool on_samples; /* true: the centers are the samples */
} method;

static const method methods[] = {
    {"direct", NULL, false},    {"cg", NULL, false},     {"ep3-exact", NULL, false}, {"nytro", NULL, false},
    {"gd", NULL, false},        {"ep3", NULL, false},    {"ep4", "exact", false},    {"ep4", "ep2", false},
    {"ep4", "pcg", false},      {"ep4", "bgs", false},   {"ep2", NULL, true},        {"ep1", NULL, true},
    {"richardson", NULL, true}, {"pegasos", NULL, true}, {"krr", NULL, true},
};

static bool is_pcg(const method *how)
{
    return how->projector && strcmp(how->projector, "pcg") == 0;
}

static mercer_train_options options_of(const method *how)
{
    mercer_train_options options = options_for(how->solver);
    bool stochastic = strcmp(how->solver, "pegasos") == 0 || strncmp(how->solver, "ep", 2) == 0;
    options.projector = how->projector;
    if (stochastic && strcmp(how->solver, "ep3-exact") != 0) options.batch = N;
    options.nystrom = N, options.eigenpairs = PAIRS, options.epochs = EPOCHS;
    if (strcmp(how->solver, "cg") == 0) options.epochs = 200; /* to convergence: single steps are not linear in y */
    if (projects(how->solver)) {
        options.projector_nystrom = P, options.projector_eigenpairs = 4, options.projector_block = 8;
        options.projector_tolerance = 1e-300, options.projector_passes = 2; /* a tolerance would stop by rounding */
        if (is_pcg(how)) options.projector_tolerance = PCG_TOLERANCE, options.projector_passes = 10 * P;
    }
    return options;
}

/* Points and targets on a grid: their sums and shifts are exact. */
static task make_task(mercer_context *with, const method *how)
{
    task out = task_open(with, KERNEL, (sizes){N, how->on_samples ? 0 : P, D, C}, 1, MERCER_F64);
    mercer_matrix *const all[] = {&out.x, &out.z, &out.y};
    for (int m = 0; m < 3; m++)
        for (int64_t i = 0; i < all[m]->rows * all[m]->cols; i++) {
            double *value = (double *)all[m]->data + i;
            *value = round(*value * 0x1p20) * 0x1p-20;
        }
    return out;
}

/* ---- Changes of the task, and their effect on the weights ----------------------------------------------------- */

static int64_t place(int64_t i)
{
    return (7 * i + 3) % N;
}

static void permute_rows(mercer_matrix *x)
{
    mercer_matrix old = data_matrix(x->rows, x->cols, 0, MERCER_F64);
    size_t row = (size_t)x->cols * sizeof(double);
    memcpy(old.data, x->data, (size_t)x->rows * row);
    for (int64_t i = 0; i < x->rows; i++) memcpy(mrc_row(x, i), mrc_row(&old, place(i)), row);
    free(old.data);
}

static void permute_samples(task *self, const method *how)
{
    permute_rows(&self->x), permute_rows(&self->y);
    if (how->on_samples) permute_rows(&self->z);
}

static void permute_back(dense a, const method *how)
{
    if (!how->on_samples) return;
    dense old = dense_copy(a);
    for (int64_t i = 0; i < a.rows; i++) memcpy(&AT(a, place(i), 0), &AT(old, i, 0), C * sizeof(double));
    free(old.a);
}

static void map_points(task *self, double factor, double shift)
{
    mercer_matrix *const both[] = {&self->x, &self->z};
    for (int m = 0; m < 2; m++)
        for (int64_t i = 0; i < both[m]->rows; i++)
            for (int64_t k = 0; k < D; k++)
                mrc_store(both[m], i, k, factor * mrc_load(both[m], i, k) + shift * (double)(k + 1));
}

static void scale_points(task *self, const method *how)
{
    (void)how;
    map_points(self, 4, 0);
    self->kernel.bandwidth *= 4;
}

static void translate_points(task *self, const method *how)
{
    (void)how;
    map_points(self, 1, 2);
}

/* Swaps columns 0 and 1, and likewise all other pairs. */
static void swap_columns(mercer_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t k = 0; k + 1 < x->cols; k += 2) {
            double first = mrc_load(x, i, k);
            mrc_store(x, i, k, mrc_load(x, i, k + 1)), mrc_store(x, i, k + 1, first);
        }
}

static void swap_features(task *self, const method *how)
{
    (void)how;
    swap_columns(&self->x), swap_columns(&self->z);
}

static void swap_classes(task *self, const method *how)
{
    (void)how;
    swap_columns(&self->y);
}

static void swap_back(dense a, const method *how)
{
    (void)how;
    for (int64_t i = 0; i < a.rows; i++) {
        double first = AT(a, i, 0);
        AT(a, i, 0) = AT(a, i, 1), AT(a, i, 1) = first;
    }
}

static void double_targets(task *self, const method *how)
{
    (void)how;
    for (int64_t i = 0; i < N * C; i++) ((double *)self->y.data)[i] *= 2;
}

static void halve(dense a, const method *how)
{
    (void)how;
    for (int64_t i = 0; i < a.rows * a.cols; i++) a.a[i] /= 2;
}

static const struct {
    const char *what;
    void (*apply)(task *self, const method *how);
    void (*undo)(dense weights, const method *how); /* undoes the change; NULL: the weights must be equal */
    bool exact;
} changes[] = {{"samples permuted", permute_samples, permute_back, false},
               {"points and bandwidth scaled", scale_points, NULL, true},
               {"points translated", translate_points, NULL, false},
               {"features swapped", swap_features, NULL, false},
               {"classes renamed", swap_classes, swap_back, false},
               {"targets doubled", double_targets, halve, true}};

/* ---- Bounds --------------------------------------------------------------------------------------------------- */

/* Returns the largest allowed difference between two training runs of the same model. */
static double limit_of(const task *self, const method *how, dense a)
{
    kernels k = kernels_of(self);
    double values[N];
    dense vectors = dense_new(N, N);
    dense_eigen(k.xx, values, vectors);
    double turn = values[0] / (values[PAIRS - 1] - values[PAIRS]);
    bool is_cg = strcmp(how->solver, "cg") == 0, normal = is_cg || strcmp(how->solver, "direct") == 0;
    double limit = (EPOCHS + 1) * one_step_error(self, &k, a) * (1 + turn);
    if (is_pcg(how)) limit += (EPOCHS + 1) * k.condition * PCG_TOLERANCE * (rkhs_norm(k.zz, a) + dense_norm(k.y));
    if (normal) limit *= k.condition;                            /* their systems have the squared condition */
    if (is_cg) limit += 2e-4 * k.condition * rkhs_norm(k.zz, a); /* stops at 1e-4 of the gradient */
    assert_that(is_cg || limit < 1e-3 * rkhs_norm(k.zz, a), "%s: the bound %g says nothing", how->solver, limit);
    free(vectors.a);
    kernels_free(&k);
    return limit;
}

static double distance_of(const task *self, dense a, dense b)
{
    dense zz = dense_kernel(&self->kernel, &self->z, &self->z);
    double out = rkhs_distance(zz, a, b);
    free(zz.a);
    return out;
}

/* ---- Tests ---------------------------------------------------------------------------------------------------- */

static void check_changes(mercer_context *with, const char *backend, const method *how)
{
    task t = make_task(with, how);
    mercer_train_options options = options_of(how);
    dense a = train(&t, &options, NULL);
    double limit = limit_of(&t, how, a);
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
        task other = make_task(with, how);
        changes[c].apply(&other, how);
        dense b = train(&other, &options, NULL);
        if (changes[c].undo) {
            assert_that(dense_distance(a, b) > 0 || !how->on_samples, "%s: nothing was changed", changes[c].what);
            changes[c].undo(b, how);
        }
        double error = changes[c].exact ? dense_distance(a, b) : distance_of(&t, a, b);
        assert_that(error <= (changes[c].exact ? 0 : limit), "%s %s on %s, %s: %g, bound %g", how->solver,
                    how->projector ? how->projector : "", backend, changes[c].what, error,
                    changes[c].exact ? 0 : limit);
        free(b.a);
        task_close(&other);
    }
    free(a.a);
    task_close(&t);
}

/* Checks alpha(y + y') = alpha(y) + alpha(y'). */
static void check_sum(mercer_context *with, const char *backend, const method *how)
{
    mercer_train_options options = options_of(how);
    task t[3];
    dense a[3];
    double limit = 0;
    for (int r = 0; r < 3; r++) {
        t[r] = make_task(with, how);
        for (int64_t i = 0; i < N * C; i++) {
            double first = ((double *)t[r].y.data)[i], second = (double)(i % 5) - 2;
            ((double *)t[r].y.data)[i] = r == 0 ? first : r == 1 ? second : first + second;
        }
        a[r] = train(&t[r], &options, NULL);
        limit += limit_of(&t[r], how, a[r]);
    }
    dense_add(a[0], 1, a[1]);
    double error = distance_of(&t[2], a[0], a[2]);
    assert_that(error <= limit, "%s %s on %s, sum of targets: %g, bound %g", how->solver,
                how->projector ? how->projector : "", backend, error, limit);
    for (int r = 0; r < 3; r++) free(a[r].a), task_close(&t[r]);
}

static void test_every_method_and_backend(void **state)
{
    (void)state;
    for (int b = 0; mrc_backend_registry[b]; b++) {
        const char *name = mrc_backend_registry[b]->name;
        mercer_context *with = NULL;
        mercer_context_options options = MERCER_INIT(mercer_context_options);
        options.backend = name, options.threads = 2;
        mercer_status status = mercer_context_create(&with, &options);
        if (is_left_out(mrc_backend_registry[b], status)) continue;
        assert_succeeds(NULL, status);
        size_t every = SANITIZED ? 3 : 1; /* a subset on each backend */
        for (size_t m = (size_t)b % every; m < sizeof methods / sizeof *methods; m += every) {
            check_changes(with, name, &methods[m]);
            check_sum(with, name, &methods[m]);
        }
        mercer_context_free(with);
    }
}

/* The exact solvers give the same result for a row of weight two and for a row that occurs twice. (The others:
   test_identities.c.) */
static void test_weight_two_is_the_row_twice(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        const method *how = &methods[m];
        mercer_train_options options = options_of(how);
        task t = make_task(context, how), twice = make_task(context, how);
        t.weights = calloc(N, sizeof(double));
        free(twice.x.data), free(twice.y.data);
        int64_t rows = N + N / 3, at = 0;
        twice.x = data_matrix(rows, D, 0, MERCER_F64), twice.y = data_matrix(rows, C, 0, MERCER_F64);
        for (int64_t i = 0; i < N; i++) {
            t.weights[i] = i % 3 == 0 ? 2 : 1;
            for (int r = 0; r < (int)t.weights[i]; r++, at++) {
                memcpy(mrc_row(&twice.x, at), mrc_row(&t.x, i), D * sizeof(double));
                memcpy(mrc_row(&twice.y, at), mrc_row(&t.y, i), C * sizeof(double));
            }
        }
        assert_int_equal(at, rows);
        dense a = train(&t, &options, NULL), b = train(&twice, &options, NULL);
        free(t.weights), t.weights = NULL;
        dense plain = train(&t, &options, NULL);
        double limit = 2 * limit_of(&t, how, a), error = distance_of(&t, a, b);
        assert_that(error <= limit, "%s: %g, bound %g", how->solver, error, limit);
        assert_true(m == 1 || distance_of(&t, plain, b) > limit);
        free(a.a), free(b.a), free(plain.a);
        task_close(&t), task_close(&twice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_and_backend),
        cmocka_unit_test(test_weight_two_is_the_row_twice),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
