/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks numerically, on one small random problem, two statements of the paper: the lemma on the fixed point of
 * EigenPro 3 with exact projection, and the properties of the stochastic step.
 *
 *   a <- a - eta K_ZZ^-1 K_ZX (I - Q) (K_XZ a - y),      Q = E (I - t / Lambda) E', the top q of K_XX = E Lambda E',
 *   A = K_ZX (I - Q) K_XZ,                               limit A^-1 K_ZX (I - Q) y        t the next eigenvalue
 *
 * The step multiplies the error by I - eta K_ZZ^-1 A. With K_ZZ = L L', this matrix has the eigenvalues of I - eta L^-1
 * A L^-T. So the iteration converges if and only if eta < 2 / lmax(L^-1 A L^-T). The paper prints 2 / lmax(A), without
 * K_ZZ. The program computes both bounds and iterates with both steps.
 *
 * With y = K_XZ a* + xi, E xi = 0, E xi xi' = sigma^2 I, the limit has mean a* and E |a - a*|^2 / sigma^2 = tr(A^-2 B),
 * B = K_ZX (I - Q)^2 K_XZ = A - K_ZX Q (I - Q) K_XZ, hence tr(A^-1) - tr(A^-2 K_ZX Q (I - Q) K_XZ). The paper prints n
 * in place of tr(A^-1).
 *
 * A batch of m of n rows, drawn without replacement: (n/m) h_m has the mean h = sum of v_i, where v_i is the term of
 * row i, and E |(n/m) h_m - h|^2 = n^2 / m (1 - m/n) S^2,  S^2 = sum |v_i - h/n|^2 / (n - 1).
 *
 * All arithmetic is in double, with K by plain loops and eigenvalues by LAPACK. Prints one JSON object. Takes a few
 * milliseconds.
 */
#include "../bench.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>

enum { N = 60, P = 10, D = 4, QS = 6, BATCH = 12, STEPS = 400, LIMIT_STEPS = 200000, DRAWS = 20000 };

static double normal(uint64_t *state)
{
    return sqrt(-2 * log(1 - bench_random(state))) * cos(6.283185307179586 * bench_random(state));
}

/* Compute K(X, Z) of the Laplace kernel exp(-|x - z| / 2), in row-major order. */
static void kernel(const double *X, int n, const double *Z, int p, double *K)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < p; j++) {
            double sum = 0;
            for (int k = 0; k < D; k++) sum += (X[i * D + k] - Z[j * D + k]) * (X[i * D + k] - Z[j * D + k]);
            K[i * p + j] = exp(-sqrt(sum) / 2);
        }
}

/* Compute C (m, n) = op(A) B, all row-major; A is (m, k), or (k, m) if `transposed`. */
static void product(bool transposed, int m, int n, int k, const double *A, const double *B, double *C)
{
    cblas_dgemm(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, CblasNoTrans, m, n, k, 1, A, transposed ? m : k,
                B, n, 0, C, n);
}

static double largest_eigenvalue(const double *A, int n)
{
    double copy[P * P], values[P];
    memcpy(copy, A, (size_t)(n * n) * sizeof *copy);
    return LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'N', 'U', n, copy, n, values) == 0 ? values[n - 1] : (double)NAN;
}

typedef struct problem {
    double K_ZZ[P * P], K_XZ[N * P], Q[N * N];
    double G[N * P]; /* (I - Q) K_XZ */
    double A[P * P], B[P * P];
    double step[P * P];     /* K_ZZ^-1 A */
    double inverse[P * P];  /* A^-1 */
    double to_limit[P * N]; /* A^-1 K_ZX (I - Q), which maps y to the limit */
    double bound, printed_bound;
} problem;

/* Compute Q from the eigensystem of K(X, X). */
static bool make_preconditioner(problem *self, const double *X)
{
    double E[N * N], values[N];
    kernel(X, N, X, N, E);
    if (LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'U', N, E, N, values) != 0) return false;
    double tail = values[N - QS - 1];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = N - QS; k < N; k++) sum += E[i * N + k] * (1 - tail / values[k]) * E[j * N + k];
            self->Q[i * N + j] = sum;
        }
    return true;
}

static bool make_problem(problem *self, uint64_t *state)
{
    double X[N * D], Z[P * D], L[P * P], scaled[P * P];
    for (int i = 0; i < N * D; i++) X[i] = normal(state);
    for (int i = 0; i < P * D; i++) Z[i] = normal(state);
    kernel(Z, P, Z, P, self->K_ZZ);
    kernel(X, N, Z, P, self->K_XZ);
    if (!make_preconditioner(self, X)) return false;
    product(false, N, P, N, self->Q, self->K_XZ, self->G);
    for (int i = 0; i < N * P; i++) self->G[i] = self->K_XZ[i] - self->G[i];
    product(true, P, P, N, self->K_XZ, self->G, self->A);
    product(true, P, P, N, self->G, self->G, self->B);

    memcpy(L, self->K_ZZ, sizeof L);
    memcpy(self->step, self->A, sizeof L);
    memcpy(scaled, self->A, sizeof L);
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', P, L, P) != 0) return false;
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', P, P, L, P, self->step, P);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, P, P, 1, L, P, scaled, P);
    cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, P, P, 1, L, P, scaled, P);
    self->bound = 2 / largest_eigenvalue(scaled, P);
    self->printed_bound = 2 / largest_eigenvalue(self->A, P);

    memcpy(L, self->A, sizeof L);
    if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', P, L, P) != 0) return false;
    for (int i = 0; i < P * P; i++) self->inverse[i] = i % (P + 1) == 0;
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', P, P, L, P, self->inverse, P);
    for (int i = 0; i < P; i++)
        for (int j = 0; j < N; j++) self->to_limit[i * N + j] = self->G[j * P + i];
    LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', P, N, L, P, self->to_limit, N);
    return true;
}

static double distance(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < P; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Return |a - limit| / |limit| after `steps` steps from 0; stops early when the iteration diverges. */
static double iterate(const problem *self, const double *limit, double eta, int steps)
{
    double a[P] = {0}, zero[P] = {0}, right[P];
    cblas_dgemv(CblasRowMajor, CblasNoTrans, P, P, 1, self->step, P, limit, 1, 0, right,
                1); /* K_ZZ^-1 K_ZX (I - Q) y */
    for (int t = 0; t < steps && distance(a, limit) < 1e30; t++) {
        double next[P];
        cblas_dgemv(CblasRowMajor, CblasNoTrans, P, P, 1, self->step, P, a, 1, 0, next, 1);
        for (int i = 0; i < P; i++) a[i] -= eta * (next[i] - right[i]);
    }
    return distance(a, limit) / distance(zero, limit);
}

static void print_bounds(const problem *self, const double *limit)
{
    static const double factors[] = {0.5, 0.95, 1.05, 2};
    printf("\"bound\": %.6g, \"printed_bound\": %.6g, \"printed_over_bound\": %.6g", self->bound, self->printed_bound,
           self->printed_bound / self->bound);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        printf(", \"error_%g\": %.6g", factors[i], iterate(self, limit, factors[i] * self->bound, STEPS));
    printf(", \"error_printed\": %.6g", iterate(self, limit, 0.99 * self->printed_bound, STEPS));
    /* The same problem with kernel K/10: K_ZZ^-1 A is 1/10 and A is 1/100 of the original, so the printed step is 100
       times as long. This is equivalent to 10 times the printed step for the original problem. */
    printf(", \"error_printed_tenth\": %.6g", iterate(self, limit, 0.99 * self->printed_bound * 10, STEPS));
    printf(", \"limit_error\": %.6g", iterate(self, limit, 0.95 * self->bound, LIMIT_STEPS));
}

/* Print mean and variance of the limit over random draws of the noise, next to the values of the formulas. */
static void print_noise(const problem *self, const double *truth, uint64_t *state)
{
    const double sigma = 0.1;
    double mean[P] = {0}, square[P * P], moments[P * P], zero[P] = {0}, sum = 0, variance = 0, traces[2] = {0};
    for (int draw = 0; draw < DRAWS; draw++) {
        double xi[N], a[P];
        for (int i = 0; i < N; i++) xi[i] = sigma * normal(state);
        cblas_dgemv(CblasRowMajor, CblasNoTrans, P, N, 1, self->to_limit, N, xi, 1, 0, a, 1); /* limit - truth */
        for (int i = 0; i < P; i++) mean[i] += a[i] / DRAWS, sum += a[i] * a[i] / DRAWS;
    }
    product(false, P, P, P, self->inverse, self->inverse, square);
    product(false, P, P, P, square, self->B, moments);
    for (int i = 0; i < P; i++) variance += moments[i * (P + 1)], traces[0] += self->inverse[i * (P + 1)];
    double rest[P * P];
    for (int i = 0; i < P * P; i++) rest[i] = self->A[i] - self->B[i];
    product(false, P, P, P, square, rest, moments);
    for (int i = 0; i < P; i++) traces[1] += moments[i * (P + 1)];
    /* The standard error of the mean over the draws is sigma sqrt(variance / DRAWS). */
    printf(", \"bias_in_standard_errors\": %.4g, \"truth_norm\": %.6g",
           distance(mean, zero) / (sigma * sqrt(variance / DRAWS)), distance(truth, zero));
    printf(", \"variance_measured\": %.6g, \"variance_formula\": %.6g, \"variance_mended\": %.6g, "
           "\"variance_printed\": %.6g",
           sum / (sigma * sigma), variance, traces[0] - traces[1], N - traces[1]);
}

/* Print mean and variance of the step over random batches at a = 0, next to the values of the formulas. */
static void print_batches(const problem *self, const double *y, uint64_t *state)
{
    double h[P] = {0}, mean[P] = {0}, zero[P] = {0}, spread = 0, sum = 0;
    double v[N * P]; /* row i: term of sample i in K_ZX (I - Q) (K_XZ 0 - y); the preconditioner acts on functions */
    for (int i = 0; i < N; i++)
        for (int j = 0; j < P; j++) v[i * P + j] = -self->G[i * P + j] * y[i], h[j] += v[i * P + j];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < P; j++) spread += pow(v[i * P + j] - h[j] / N, 2) / (N - 1);
    for (int draw = 0; draw < DRAWS; draw++) {
        int ids[N];
        double step[P] = {0};
        for (int i = 0; i < N; i++) ids[i] = i;
        for (int i = 0; i < BATCH; i++) {
            int j = i + (int)(bench_random(state) * (N - i)), swap = ids[i];
            ids[i] = ids[j], ids[j] = swap;
            for (int k = 0; k < P; k++) step[k] += (double)N / BATCH * v[ids[i] * P + k];
        }
        for (int k = 0; k < P; k++) mean[k] += step[k] / DRAWS;
        sum += pow(distance(step, h), 2) / DRAWS;
    }
    double formula = (double)N * N / BATCH * (1 - (double)BATCH / N) * spread;
    printf(
        ", \"step_bias_in_standard_errors\": %.4g, \"step_variance_measured\": %.6g, \"step_variance_formula\": %.6g, "
        "\"step_norm\": %.6g}\n",
        distance(mean, h) / sqrt(formula / DRAWS), sum, formula, distance(h, zero));
}

int main(int argc, char **argv)
{
    uint64_t state = argc == 3 && strcmp(argv[1], "--seed") == 0 ? (uint64_t)atoi(argv[2]) * 7919 + 1 : 0;
    problem *self = state ? malloc(sizeof *self) : NULL;
    double truth[P], y[N], limit[P];
    if (!state) return fprintf(stderr, "usage: paper_lemma --seed N\n"), 2;
    for (int i = 0; i < 20; i++) bench_random(&state);
    if (!self || !make_problem(self, &state)) {
        free(self);
        return fprintf(stderr, "paper_lemma: K(Z, Z) or A is singular for this seed\n"), 1;
    }
    for (int i = 0; i < P; i++) truth[i] = normal(&state);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, N, P, 1, self->K_XZ, P, truth, 1, 0, y, 1);
    for (int i = 0; i < N; i++) y[i] += 0.1 * normal(&state);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, P, N, 1, self->to_limit, N, y, 1, 0, limit, 1);
    printf("{\"n\": %d, \"p\": %d, \"q\": %d, ", N, P, QS);
    print_bounds(self, limit);
    print_noise(self, truth, &state);
    print_batches(self, y, &state);
    free(self);
    return 0;
}
