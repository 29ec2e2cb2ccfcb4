/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Noiseless labels y = f*(X) with f* representable by the model: every solver finds f*, for every kernel of the table.
 *
 * The meaning of "finds", as a bound on the relative error |f(X) - y| / |y|, n samples, c outputs:
 *
 *   direct      rounding: kappa (40 p u) of its normal equations
 *   cg          1e-4 of the preconditioned gradient, times the square root of the preconditioned condition: that is
 *               |f - f*| <= 1e-4 sqrt(kappa'), kappa' at most the condition of the normal equations
 *   full batch  rate^N |f*|_H sqrt(max K(x,x) n) / |y|, rate from the eigenvalues (as in test_identities.c). On Z = X
 *               the error stays in the span of the eigenvectors it starts in: f* uses the top three
 *   stochastic  With step eta/m = 2 gamma / (b + (m - 1) t), b the largest diagonal and t the top eigenvalue of the
 *               (preconditioned) kernel, one step on a random batch lowers the squared norm by
 *               E |e|^2 - E |e+|^2 >= 2 (eta/m) m (1 - gamma) |e|_n^2,  |e|_n^2 = mean squared error over the samples,
 *               so the iterates of the later K/2 steps have a mean of |e|_n^2 of at most
 *               |e_0|^2 / ((eta/m) m (1 - gamma) K), and so has their average. The norm is that of the preconditioned
 *               kernel: at most |f*|_H^2 lambda_1 / t. Projecting onto the centers preserves it for q = 0 and costs
 *               little for small q; the bound is on an expectation, but the test sees one draw: a factor of 4 on |e|^2
 *               covers both.
 */
#include "support/training.h"

#include "support/info.h"

#include "kernels/table.h"

enum { N = 64, P = 4, D = 5, C = 2 };

typedef enum kind { DIRECT, CG, FULL, STOCHASTIC } kind;

static const struct {
    const char *name;
    const char *projector;
    kind is;
    bool on_samples, plain;
    int64_t eigenpairs, epochs;
} solvers[] = {
    {"direct", NULL, DIRECT, false, false, 0, 1},          {"cg", NULL, CG, false, false, 0, 50},
    {"nytro", NULL, FULL, false, false, -1, 400},          {"gd", NULL, FULL, false, true, -1, 400},
    {"richardson", NULL, FULL, true, false, -1, 400},      {"pegasos", NULL, STOCHASTIC, true, false, -1, 120},
    {"ep2", NULL, STOCHASTIC, true, false, 2, 120},        {"ep1", NULL, STOCHASTIC, true, false, 2, 120},
    {"ep3-exact", NULL, STOCHASTIC, false, false, 2, 200}, {"ep3", "ep2", STOCHASTIC, false, false, 2, 120},
    {"ep3", "exact", STOCHASTIC, false, false, -1, 120},   {"ep4", "exact", STOCHASTIC, false, false, 2, 120},
    {"ep4", "pcg", STOCHASTIC, false, false, 2, 120},      {"ep4", "bgs", STOCHASTIC, false, false, 2, 120},
    {"ep4", "ep2", STOCHASTIC, false, false, 2, 120},      {"paper", "ep2", STOCHASTIC, false, false, 2, 240},
};
enum { RUNS = sizeof solvers / sizeof *solvers };

static int save_step(void *user, const mercer_progress *progress)
{
    *(double *)user = progress->step;
    return 0;
}

/* Chooses alpha*. With the samples as centers: a mixture of the top three eigenvectors of K(X,X), each divided by its
   eigenvalue, so that all three contribute values of f of the same size. */
static dense choose_weights(const kernels *k, bool on_samples)
{
    dense out = dense_new(k->zz.rows, C);
    mrc_rng rng = {41, 1};
    if (!on_samples) {
        for (int64_t i = 0; i < P * C; i++) out.a[i] = mrc_random_normal(rng, (uint64_t)i);
        return out;
    }
    dense vectors = dense_new(N, N);
    double values[N];
    dense_eigen(k->xx, values, vectors);
    for (int64_t j = 0; j < C; j++)
        for (int64_t e = 0; e < 3; e++)
            for (int64_t i = 0; i < N; i++)
                AT(out, i, j) += mrc_random_normal(rng, (uint64_t)(3 * j + e)) * AT(vectors, i, e) / values[e];
    free(vectors.a);
    return out;
}

typedef struct outcome {
    double error, bound;
} outcome;

/* Returns the eigenvalues that govern the error: of K_ZZ^-1 K_ZX K_XZ, of K_ZX K_XZ, or the top three of K(X,X). */
static spectrum met_eigenvalues(const kernels *k, bool on_samples, bool plain)
{
    if (on_samples) {
        double values[N];
        dense vectors = dense_new(N, N);
        dense_eigen(k->xx, values, vectors);
        free(vectors.a);
        return (spectrum){values[0], values[2]};
    }
    dense normal = dense_times(true, false, k->xz, k->xz);
    spectrum out = dense_spectrum(normal, plain ? (dense){0} : k->zz);
    free(normal.a);
    return out;
}

static double bound_of(int run, const kernels *k, dense star, const mercer_report *report, double step)
{
    double size = dense_norm(k->y), norm = rkhs_norm(k->zz, star), diagonal = 0;
    for (int64_t i = 0; i < N; i++) diagonal = fmax(diagonal, AT(k->xx, i, i));
    if (solvers[run].is == DIRECT || solvers[run].is == CG) {
        dense normal = dense_times(true, false, k->xz, k->xz);
        spectrum of = dense_spectrum(normal, (dense){0});
        free(normal.a);
        double condition = of.top / of.bottom;
        return 40 * P * U * condition + (solvers[run].is == CG ? 1e-4 * sqrt(condition) : 0);
    }
    if (solvers[run].is == FULL) {
        spectrum mu = met_eigenvalues(k, solvers[run].on_samples, solvers[run].plain);
        double rate = fmax(fabs(1 - step * mu.top), fabs(1 - step * mu.bottom));
        double rounding = k->condition < 1e12 ? k->condition * (N + P + V) * U / (1 - rate) : 1e-9;
        double start = solvers[run].plain ? dense_norm(star) * sqrt(mu.top) : norm * sqrt(diagonal * N);
        return pow(rate, (double)solvers[run].epochs) * start / size + rounding;
    }
    double gamma = report->plan->step_factor, m = (double)report->plan->batch, steps = (double)report->steps;
    double lambda1 = dense_top(k->xx) / N, eta = 2 * gamma / (report->beta + (m - 1) * report->tail);
    double start = norm * norm * fmax(1, lambda1 / report->tail);
    return sqrt(4 * start / (eta * m * (1 - gamma) * steps) * N) / size;
}

static outcome recover(int run, const char *spec, double spread)
{
    bool on_samples = solvers[run].on_samples;
    task t = task_open(context, spec, (sizes){N, on_samples ? 0 : P, D, C}, spread, MERCER_F64);
    kernels k = kernels_of(&t);
    dense star = choose_weights(&k, on_samples), labels = dense_times(false, false, k.xz, star);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < C; j++) mrc_store(&t.y, i, j, AT(labels, i, j)), AT(k.y, i, j) = AT(labels, i, j);
    double step = 0;
    mercer_report report;
    mercer_train_options options = options_for(solvers[run].name);
    options.projector = solvers[run].projector, options.eigenpairs = solvers[run].eigenpairs;
    options.epochs = solvers[run].epochs, options.nystrom = N;
    if (solvers[run].projector) {
        options.projector_nystrom = P, options.projector_eigenpairs = 2, options.projector_passes = 20;
        options.projector_block = 2;
    }
    options.progress = save_step, options.progress_user = &step;
    if (solvers[run].is == STOCHASTIC)
        options.step_factor = 0.5, options.average = MERCER_ON, options.decay = MERCER_OFF;
    dense alpha = train(&t, &options, &report), f = dense_times(false, false, k.xz, alpha);
    outcome out = {dense_distance(f, k.y) / dense_norm(k.y), bound_of(run, &k, star, &report, step)};
    assert_int_equal(report.halvings, 0);
    free(star.a), free(labels.a), free(alpha.a), free(f.a);
    kernels_free(&k);
    task_close(&t);
    return out;
}

static void test_every_solver_and_kernel(void **state)
{
    (void)state;
    for (int run = 0; run < RUNS; run += SANITIZED ? 2 : 1) {
        double worst = 0, weakest = 0;
        /* A subset of the pairs in which every kernel occurs and, without a sanitizer, every solver. */
        const int step = SANITIZED ? 7 : 6;
        for (int i = run % step; i < mrc_kernel_table_size; i += step) {
            outcome got = recover(run, kernel_info(i).example, 5);
            assert_that(got.error <= got.bound, "%s %s, %s: error %g, bound %g", solvers[run].name,
                        solvers[run].projector ? solvers[run].projector : "", kernel_info(i).example, got.error,
                        got.bound);
            assert_that(got.bound < 1, "%s, %s: the bound %g says nothing", solvers[run].name, kernel_info(i).example,
                        got.bound);
            worst = fmax(worst, got.error), weakest = fmax(weakest, got.bound);
        }
        print_message("    %s %s: largest error %.1e, largest bound %.1e\n", solvers[run].name,
                      solvers[run].projector ? solvers[run].projector : "", worst, weakest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_solver_and_kernel),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
