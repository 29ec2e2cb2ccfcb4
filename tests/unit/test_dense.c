/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dense linear algebra of every backend. With e = 2^-53 and g(k) = k e / (1 - k e) (Higham, Accuracy and Stability,
 * ch. 3, 8, 10):
 *
 *   gemm       |C - C^|   <= g(k + 4) (|alpha| |A||B| + |beta| |C|)   any order of summation; e = 2^-24 for float
 *   cholesky   |A - L L'| <= g(n + 1) |L||L'|                         elementwise
 *   solve      |B - L X|  <= g(n + 2) |L||X|                          elementwise; 2: 1/L_ii may be used
 *   eigen      |A V - V D|_F <= 10 n e |A|_F, |V'V - I|_F <= 10 n e sqrt(n)   both are n times a few e for Jacobi (each
 *              entry takes part in n rotations per sweep, and the last sweeps are the identity up to e) and for
 *              Householder methods
 *
 * Residuals are formed in long double, so that their own rounding (2^-64) does not count.
 */
#include "support/backends.h"
#include "support/data.h"

#include <float.h>

static const int64_t sizes[] = {0, 1, 2, 3, 17, 64, 65};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Sizes beyond one block of 256, with few and with many rows after it. */
static const int64_t blocked[] = {300, 340, 560};
enum { BLOCKED = sizeof blocked / sizeof *blocked };

static double gamma_of(double k, double unit)
{
    return k * unit / (1 - k * unit);
}

static double unit_of(mercer_dtype dtype)
{
    return dtype == MERCER_F32 ? 0x1p-24 : 0x1p-53;
}

/* ---- Eigenvectors -------------------------------------------------------------------------------------------- */

enum { RANDOM, IDENTITY, SINGULAR, CLUSTERED, TINY, KINDS };

static mercer_matrix symmetric(int64_t n, int kind)
{
    mercer_matrix a = data_matrix(n, n, n + 3, MERCER_F64), f = data_matrix(n, n, 0, MERCER_F64);
    data_fill_normal(&f, (mrc_rng){31, (uint64_t)n}, 0, 1);
    const double *factor = f.data;
    int64_t rank = kind == SINGULAR ? (n + 1) / 2 : n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = 0; k < rank; k++) sum += factor[i * n + k] * factor[j * n + k];
            if (kind == RANDOM) sum = factor[i * n + j];
            if (kind == IDENTITY) sum = i == j;
            if (kind == CLUSTERED) sum = (i == j) + 1e-9 * sum;
            if (kind == TINY) sum *= 1e-100;
            mrc_store(&a, i, j, sum);
            mrc_store(&a, j, i, sum);
        }
    }
    free(f.data);
    set_sentinels(&a);
    return a;
}

/* Compute |A v - value v|^2 of one pair, and |A|_F^2. */
static void residual(const mercer_matrix *a, const mercer_matrix *v, int64_t which, double value, double *error,
                     double *all)
{
    *error = *all = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        long double sum = -(long double)value * mrc_load(v, i, which);
        for (int64_t k = 0; k < a->rows; k++) {
            sum += (long double)mrc_load(a, i, k) * mrc_load(v, k, which);
            *all += mrc_load(a, i, k) * mrc_load(a, i, k);
        }
        *error += (double)(sum * sum);
    }
}

static void check_vectors(const mercer_matrix *v, const char *what)
{
    int64_t n = v->rows;
    double off = 0;
    for (int64_t a = 0; a < v->cols; a++) {
        double top = 0;
        for (int64_t i = 0; i < n; i++)
            if (fabs(mrc_load(v, i, a)) > fabs(top)) top = mrc_load(v, i, a);
        assert_that(top > 0, "%s: vector %d has its largest entry negative", what, (int)a);
        for (int64_t b = 0; b < v->cols; b++) {
            long double dot = a == b ? -1 : 0;
            for (int64_t i = 0; i < n; i++) dot += (long double)mrc_load(v, i, a) * mrc_load(v, i, b);
            off += (double)(dot * dot);
        }
    }
    double bound = 10 * (double)n * 0x1p-53 * sqrt((double)n);
    assert_that(sqrt(off) <= bound, "%s: |V'V - I| = %g, bound %g", what, sqrt(off), bound);
}

static void check_eigen(mrc_backend *backend, int64_t n, int64_t q, int kind)
{
    char what[64];
    snprintf(what, sizeof what, "n = %d, q = %d, kind %d", (int)n, (int)q, kind);
    mercer_matrix a = symmetric(n, kind), original = symmetric(n, kind), v = data_matrix(n, q, q + 2, MERCER_F64);
    double *values = calloc((size_t)q + 1, sizeof *values);
    values[q] = 42;
    set_sentinels(&v);
    assert_succeeds(backend->context, backend->ops->eigen_top(backend, &a, q, values, &v));
    assert_true(sentinels_intact(&v) && sentinels_intact(&a));
    assert_true(values[q] == 42);
    double trace = 0, sum = 0, error, all = 0;
    for (int64_t i = 0; i < q; i++) {
        assert_that(i == 0 || values[i] <= values[i - 1], "%s: value %d is above the one before", what, (int)i);
        residual(&original, &v, i, values[i], &error, &all);
        double bound = 10 * (double)n * 0x1p-53 * sqrt(all);
        assert_that(sqrt(error) <= bound, "%s: residual of pair %d is %g, bound %g", what, (int)i, sqrt(error), bound);
        sum += values[i];
    }
    check_vectors(&v, what);
    for (int64_t i = 0; i < n; i++) trace += mrc_load(&original, i, i);
    /* If all pairs were computed, the trace shows that no eigenvalue is missing or repeated. */
    if (q == n)
        assert_that(fabs(sum - trace) <= 10 * (double)(n * n) * 0x1p-53 * sqrt(all), "%s: trace %g, sum %g", what,
                    trace, sum);
    free(values), free(a.data), free(original.data), free(v.data);
}

static void eigen_on(mrc_backend *backend)
{
    for (int s = 0; s < SIZES; s++) {
        for (int kind = 0; kind < KINDS; kind++) {
            check_eigen(backend, sizes[s], sizes[s], kind);
            check_eigen(backend, sizes[s], (sizes[s] + 3) / 4, kind);
            check_eigen(backend, sizes[s], 0, kind);
        }
    }
}

/* The top q eigenvalues must be the largest; those of a diagonal matrix are known. */
static void eigen_order_on(mrc_backend *backend)
{
    enum { N = 9 };
    double a[N * N] = {0}, values[3], vectors[N * 3];
    for (int i = 0; i < N; i++) a[i * N + i] = (i * 5) % N - 4; /* a permutation of -4 .. 4 */
    mercer_matrix view = mrc_view(a, N, N, MERCER_F64), v = mrc_view(vectors, N, 3, MERCER_F64);
    assert_succeeds(backend->context, backend->ops->eigen_top(backend, &view, 3, values, &v));
    assert_true(values[0] == 4 && values[1] == 3 && values[2] == 2);
    assert_true(vectors[7 * 3 + 0] == 1 && vectors[5 * 3 + 1] == 1 &&
                vectors[3 * 3 + 2] == 1); /* 7 * 5 mod 9 = 8 is the largest */
}

/* ---- Cholesky and triangular systems ------------------------------------------------------------------------- */

static mercer_matrix positive_definite(int64_t n, mercer_dtype dtype)
{
    mercer_matrix a = symmetric(n, SINGULAR);                                      /* semidefinite */
    for (int64_t i = 0; i < n; i++) mrc_store(&a, i, i, mrc_load(&a, i, i) + 0.5); /* shifted by 1/2 */
    if (dtype == MERCER_F64) return a;
    mercer_matrix rounded = data_matrix(n, n, a.ld, dtype);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) mrc_store(&rounded, i, j, mrc_load(&a, i, j));
    set_sentinels(&rounded);
    free(a.data);
    return rounded;
}

/* Return the number of element types to test: f64, and f32 if the backend factors it. */
static int factor_types(mrc_backend *backend)
{
    return backend->ops->capabilities(backend, false).float_factors ? 2 : 1;
}
static const mercer_dtype factor_type[] = {MERCER_F64, MERCER_F32};
static const double factor_unit[] = {0x1p-53, 0x1p-24};

static void check_factor(const mercer_matrix *a, const mercer_matrix *l, double unit)
{
    int64_t n = a->rows;
    double *values = data_values(l);
    for (int64_t i = 0; i < n; i += SANITIZED ? 7 : 1) {
        const double *row = values + i * n;
        for (int64_t j = 0; j < n; j++) {
            if (j > i) assert_true(row[j] == 0);
            if (j > i) continue;
            long double sum = -(long double)mrc_load(a, i, j), size = 0;
            for (int64_t k = 0; k <= j; k++) {
                long double term = (long double)row[k] * values[j * n + k];
                sum += term, size += fabsl(term);
            }
            double bound = gamma_of((double)n + 1, unit) * (double)size;
            assert_that(fabs((double)sum) <= bound, "n = %d, (%d, %d): %g, bound %g", (int)n, (int)i, (int)j,
                        (double)sum, bound);
        }
    }
    free(values);
}

static void cholesky_on(mrc_backend *backend)
{
    for (int s = 0; s < SIZES + (SANITIZED ? 1 : BLOCKED); s++) {
        int64_t n = s < SIZES ? sizes[s] : blocked[s - SIZES];
        for (int t = 0; t < factor_types(backend); t++) {
            mercer_matrix a = positive_definite(n, factor_type[t]), l = positive_definite(n, factor_type[t]);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = i + 1; j < n; j++) mrc_store(&l, i, j, NAN); /* the upper triangle is not read */
            int64_t bad;
            assert_succeeds(backend->context, backend->ops->cholesky(backend, &l, &bad));
            assert_int_equal(bad, -1);
            check_factor(&a, &l, factor_unit[t]);
            assert_true(sentinels_intact(&l));
            free(a.data), free(l.data);
        }
    }
}

static void not_definite_on(mrc_backend *backend)
{
    const double bad[] = {-1, 0, NAN};
    for (int b = 0; b < 3; b++) {
        for (int64_t row = 0; row < 33; row += 16) { /* the first, the middle and the last row */
            mercer_matrix a = positive_definite(33, factor_type[row / 16 % factor_types(backend)]);
            for (int64_t j = 0; j < 33; j++) {
                if (j == row) continue;
                mrc_store(&a, row, j, 0);
                mrc_store(&a, j, row, 0);
            }
            mrc_store(&a, row, row, bad[b]);
            int64_t found;
            assert_succeeds(backend->context, backend->ops->cholesky(backend, &a, &found));
            assert_int_equal(found, row);
            free(a.data);
        }
    }
}

/* Return the largest entry of |A X - I|. */
static double inverse_error(const mercer_matrix *a, const mercer_matrix *x)
{
    double worst = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->rows; j++) {
            double sum = i == j ? -1 : 0;
            for (int64_t k = 0; k < a->rows; k++) sum += mrc_load(a, i, k) * mrc_load(x, k, j);
            worst = fmax(worst, fabs(sum));
        }
    return worst;
}

/*
 * Invert three matrices in one call; the second is not positive definite. The bound holds for every algorithm: with
 * X = A^-1 (I + E), |A X - I| <= n^2 g(n) |A| |A^-1| u-sized products of |L^-1| and |L|; the matrices are shifted by
 * 1/2, so |A^-1| <= 2 and |A| <= its trace. The upper triangles are not read. The smallest squared pivot is not less
 * than the smallest eigenvalue, 1/2, and not greater than the first pivot, A_00.
 */
static void inverse_on(mrc_backend *backend)
{
    enum { COUNT = 3, BAD = 1 };
    static const int64_t some[] = {1, 2, 31, 63, 64, 65, 128, 150, 200};
    for (size_t s = 0; s < sizeof some / sizeof *some; s += SANITIZED ? 2 : 1) {
        int64_t n = some[s];
        mercer_matrix a = positive_definite(n, MERCER_F64), x = data_matrix(COUNT * n, n, n + 3, MERCER_F64),
                      scratch = data_matrix(COUNT * n, n, n, MERCER_F64);
        double trace = 0, least[COUNT];
        set_sentinels(&x);
        for (int64_t i = 0; i < n; i++) {
            trace += mrc_load(&a, i, i);
            for (int64_t j = 0; j < n; j++)
                for (int k = 0; k < COUNT; k++)
                    mrc_store(&x, k * n + i, j,
                              j > i ? (double)NAN : (k + 1) * mrc_load(&a, i, j) * (k == BAD ? -1 : 1));
        }
        assert_succeeds(backend->context, backend->ops->invert(backend, &x, &scratch, least));
        assert_true(sentinels_intact(&x));
        for (int k = 0; k < COUNT; k += 2) {
            mercer_matrix one = mrc_rows(&x, k * n, n);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) mrc_store(&one, i, j, (k + 1) * mrc_load(&one, i, j));
            double worst = inverse_error(&a, &one), bound = gamma_of(4 * (double)n, 0x1p-53) * 2 * trace * sqrt(n);
            assert_that(worst <= bound, "n = %d: |A X - I| = %g, bound %g", (int)n, worst, bound);
            assert_true(least[k] >= 0.499 * (k + 1) && least[k] <= 1.001 * (k + 1) * mrc_load(&a, 0, 0));
        }
        assert_false(least[BAD] > 0);
        free(a.data), free(x.data), free(scratch.data);
    }
}

/* Compare the row losses with their definition, in both types, with and without units (scale and offset). */
static void losses_on(mrc_backend *backend)
{
    enum { M = 70, C = 37 };
    double scale[C], offset[C];
    for (int j = 0; j < C; j++) scale[j] = 1 + 0.1 * j, offset[j] = j % 5 - 2;
    for (int type = 0; type < 2; type++)
        for (int units = 0; units < 2; units++) {
            mercer_dtype dtype = type ? MERCER_F32 : MERCER_F64;
            mercer_matrix f = data_matrix(M, C, C + 2, dtype), y = data_matrix(M, C, C, dtype);
            mrc_row_loss got[M];
            data_fill_normal(&f, (mrc_rng){7, 1}, 0, 1);
            data_fill_normal(&y, (mrc_rng){7, 2}, 0, 1);
            for (int j = 0; j < C; j++) mrc_store(&y, 3, j, 1), mrc_store(&f, 3, j, 2); /* all equal: class 0 */
            assert_succeeds(backend->context, backend->ops->row_losses(backend, &f, &y, units ? scale : NULL,
                                                                       units ? offset : NULL, got));
            for (int64_t i = 0; i < M; i++) {
                double error = 0, size = 0;
                int guess = 0, truth = 0;
                for (int j = 0; j < C; j++) {
                    double a = units ? scale[j] : 1, value = a * mrc_load(&f, i, j), target = a * mrc_load(&y, i, j);
                    double g = units ? scale[guess] : 1, t = units ? scale[truth] : 1;
                    error += (value - target) * (value - target), size += target * target;
                    if (value + (units ? offset[j] : 0) > g * mrc_load(&f, i, guess) + (units ? offset[guess] : 0))
                        guess = j;
                    if (target + (units ? offset[j] : 0) > t * mrc_load(&y, i, truth) + (units ? offset[truth] : 0))
                        truth = j;
                }
                assert_that(got[i].error == error && got[i].size == size && got[i].right == (guess == truth),
                            "row %d: %.17g, %.17g, %g; expected %.17g, %.17g, %d", (int)i, got[i].error, got[i].size,
                            got[i].right, error, size, guess == truth);
            }
            free(f.data), free(y.data);
        }
}

static void check_solve(mrc_backend *backend, int64_t n, int64_t c, bool transpose, int type)
{
    mercer_dtype dtype = factor_type[type];
    mercer_matrix l = positive_definite(n, dtype), b = data_matrix(n, c, c + 1, dtype),
                  x = data_matrix(n, c, c + 5, dtype);
    int64_t bad;
    assert_succeeds(backend->context, backend->ops->cholesky(backend, &l, &bad));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) mrc_store(&l, i, j, NAN); /* the upper triangle is not L's and not read */
    data_fill_normal(&b, (mrc_rng){5, (uint64_t)n}, 1, 2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c; j++) mrc_store(&x, i, j, mrc_load(&b, i, j));
    set_sentinels(&x);
    assert_succeeds(backend->context, backend->ops->triangular_solve(backend, &l, transpose, &x));
    assert_true(sentinels_intact(&x) && sentinels_intact(&l));
    for (int64_t i = 0; i < n; i += SANITIZED ? 7 : 1) {
        for (int64_t j = 0; j < c; j++) {
            long double sum = -(long double)mrc_load(&b, i, j), size = 0;
            for (int64_t k = transpose ? i : 0; k < (transpose ? n : i + 1); k++) {
                long double term =
                    (long double)(transpose ? mrc_load(&l, k, i) : mrc_load(&l, i, k)) * mrc_load(&x, k, j);
                sum += term;
                size += fabsl(term);
            }
            double bound = gamma_of((double)n + 2, factor_unit[type]) * (double)size;
            assert_that(fabs((double)sum) <= bound, "n = %d, c = %d, %s (%d, %d): %g, bound %g", (int)n, (int)c,
                        transpose ? "L'" : "L", (int)i, (int)j, (double)sum, bound);
        }
    }
    free(l.data), free(b.data), free(x.data);
}

static void solve_on(mrc_backend *backend)
{
    for (int i = 0; i < 2 * factor_types(backend); i++) {
        bool transpose = i % 2;
        for (int s = 0; s < SIZES; s++)
            for (int64_t c = 0; c < 12; c += 5) check_solve(backend, sizes[s], c, transpose, i / 2);
        check_solve(backend, blocked[0], 5, transpose, i / 2);
        check_solve(backend, blocked[1], 50, transpose, i / 2);
    }
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

static void check_gemm(mrc_backend *backend, int64_t m, int64_t n, int64_t k, int transposes, mercer_dtype dtype,
                       int scaling)
{
    static const double alphas[] = {1, -0.37, 0, 2}, betas[] = {0, 1, -1.3, 0};
    bool ta = transposes & 1, tb = transposes & 2;
    mercer_matrix a = ta ? data_matrix(k, m, m + 1, dtype) : data_matrix(m, k, k + 2, dtype);
    mercer_matrix b = tb ? data_matrix(n, k, k + 3, dtype) : data_matrix(k, n, n + 1, dtype);
    mercer_matrix c = data_matrix(m, n, n + 4, dtype), old = data_matrix(m, n, 0, dtype);
    data_fill_normal(&a, (mrc_rng){1, 1}, 0.5, 1);
    data_fill_normal(&b, (mrc_rng){1, 2}, -0.5, 1);
    data_fill_normal(&old, (mrc_rng){1, 3}, 0, 1);
    mrc_gemm job = {.transpose_a = ta,
                    .transpose_b = tb,
                    .alpha = alphas[scaling],
                    .beta = betas[scaling],
                    .a = &a,
                    .b = &b,
                    .c = &c};
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) mrc_store(&c, i, j, job.beta != 0 ? mrc_load(&old, i, j) : (double)NAN);
    set_sentinels(&c);
    assert_succeeds(backend->context, backend->ops->gemm(backend, &job));
    assert_true(sentinels_intact(&c));
    double *left = data_values(&a), *right = data_values(&b);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0, size = 0;
            for (int64_t l = 0; l < k; l++) {
                long double term = (long double)left[ta ? l * m + i : i * k + l] * right[tb ? j * k + l : l * n + j];
                sum += term, size += fabsl(term);
            }
            long double wanted = job.alpha * sum + job.beta * mrc_load(&old, i, j);
            long double terms = fabsl(job.alpha) * size + fabsl(job.beta * mrc_load(&old, i, j));
            double bound = gamma_of((double)k + 4, unit_of(dtype)) * (double)terms, got = mrc_load(&c, i, j);
            assert_that(fabs(got - (double)wanted) <= bound,
                        "%s (%d, %d, %d) transposes %d: %.17g, wanted %.17g, bound %g", mrc_dtype_name(dtype), (int)m,
                        (int)n, (int)k, transposes, got, (double)wanted, bound);
        }
    }
    free(left), free(right);
    free(a.data), free(b.data), free(c.data), free(old.data);
}

static void gemm_on(mrc_backend *backend)
{
    static const int64_t shapes[][3] = {{0, 3, 4},  {3, 0, 4},  {3, 4, 0},   {1, 1, 1},   {2, 3, 5},
                                        {17, 1, 9}, {1, 17, 9}, {64, 17, 2}, {33, 65, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (int scaling = SANITIZED ? transposes : 0; scaling < (SANITIZED ? transposes + 1 : 4); scaling++) {
                check_gemm(backend, shapes[s][0], shapes[s][1], shapes[s][2], transposes, MERCER_F64, scaling);
                check_gemm(backend, shapes[s][0], shapes[s][1], shapes[s][2], transposes, MERCER_F32, scaling);
            }
    /* Sizes that span several panels, pieces, depths and blocks of columns. */
    static const int64_t large[][3] = {{49, 1030, 5}, {1030, 49, 5}, {250, 60, 257}, {50, 70, 520}, {7, 300, 520}};
    for (size_t s = 0; s < sizeof large / sizeof *large; s += SANITIZED ? 4 : 1)
        for (int transposes = 0; transposes < 4; transposes++) {
            int scaling = transposes == 2 ? 3 : transposes; /* scaling 2 computes no product */
            check_gemm(backend, large[s][0], large[s][1], large[s][2], transposes, MERCER_F64, scaling);
            check_gemm(backend, large[s][0], large[s][1], large[s][2], transposes, MERCER_F32, scaling);
        }
}

/* The lower triangle of gram is bitwise that of gemm; with beta = 0 the old content, NaN here, is not read. */
static void gram_on(mrc_backend *backend)
{
    static const int64_t shapes[][2] = {{0, 3}, {9, 1}, {5, 17}, {300, 61}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int beta = 0; beta < 2; beta++) {
            int64_t m = shapes[s][0], n = shapes[s][1];
            mercer_matrix a = data_matrix(m, n, n + 2, MERCER_F64), c = data_matrix(n, n, n + 3, MERCER_F64),
                          gram = data_matrix(n, n, n + 1, MERCER_F64);
            data_fill_normal(&a, (mrc_rng){3, 1}, 0.5, 1);
            set_sentinels(&gram);
            for (int64_t i = 0; i < n * n; i++) {
                mrc_store(&c, i / n, i % n, beta ? (double)i : (double)NAN);
                mrc_store(&gram, i / n, i % n, beta ? (double)i : (double)NAN);
            }
            mrc_gemm job = {.transpose_a = true, .alpha = -0.7, .beta = 0.3 * beta, .a = &a, .b = &a, .c = &c};
            assert_succeeds(backend->context, backend->ops->gemm(backend, &job));
            assert_succeeds(backend->context, backend->ops->gram(backend, -0.7, &a, 0.3 * beta, &gram));
            assert_true(sentinels_intact(&gram));
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j <= i; j++) assert_true(mrc_load(&gram, i, j) == mrc_load(&c, i, j));
            free(a.data), free(c.data), free(gram.data);
        }
}

/* ---- Bits: elements computed from the same numbers are bitwise identical at any position --------------------- */

enum { FIRST_TWIN = 2 };

static void copy_row(const mercer_matrix *a, bool is_column, int64_t from, int64_t to)
{
    for (int64_t k = 0; k < (is_column ? a->rows : a->cols); k++)
        mrc_store(a, is_column ? k : to, is_column ? to : k, mrc_load(a, is_column ? k : from, is_column ? from : k));
}

static bool same_element(const mercer_matrix *a, int64_t i, int64_t j, const mercer_matrix *b, int64_t k, int64_t l)
{
    int64_t size = mrc_dtype_size(a->dtype);
    return memcmp((char *)mrc_row(a, i) + j * size, (char *)mrc_row(b, k) + l * size, (size_t)size) == 0;
}

/* Multiply matrices whose last row of op(A) and last column of op(B) are copies of those at FIRST_TWIN. */
static void gemm_twins(mrc_backend *backend, const int64_t *shape, int transposes, mercer_dtype dtype,
                       const mercer_matrix *c)
{
    bool ta = transposes & 1, tb = transposes & 2;
    int64_t m = shape[0], n = shape[1], k = shape[2];
    mercer_matrix a = ta ? data_matrix(k, m, m + 1, dtype) : data_matrix(m, k, k + 2, dtype);
    mercer_matrix b = tb ? data_matrix(n, k, k + 3, dtype) : data_matrix(k, n, n + 1, dtype);
    data_fill_normal(&a, (mrc_rng){1, 1}, 0.5, 1);
    data_fill_normal(&b, (mrc_rng){1, 2}, -0.5, 1);
    copy_row(&a, ta, FIRST_TWIN, m - 1);
    copy_row(&b, !tb, FIRST_TWIN, n - 1);
    mrc_gemm job = {.transpose_a = ta, .transpose_b = tb, .alpha = -0.37, .a = &a, .b = &b, .c = c};
    assert_succeeds(backend->context, backend->ops->gemm(backend, &job));
    for (int64_t j = 0; j < n; j++)
        assert_that(same_element(c, FIRST_TWIN, j, c, m - 1, j), "(%d, %d, %d) transposes %d: column %d of equal rows",
                    (int)m, (int)n, (int)k, transposes, (int)j);
    for (int64_t i = 0; i < m; i++)
        assert_that(same_element(c, i, FIRST_TWIN, c, i, n - 1), "(%d, %d, %d) transposes %d: row %d of equal columns",
                    (int)m, (int)n, (int)k, transposes, (int)i);
    /* A row computed on its own is bitwise identical to the same row of the full product. */
    mercer_matrix row = ta ? mrc_columns(&a, m - 1, 1) : mrc_rows(&a, m - 1, 1), alone = data_matrix(1, n, 0, dtype);
    mrc_gemm single = {.transpose_a = ta, .transpose_b = tb, .alpha = -0.37, .a = &row, .b = &b, .c = &alone};
    assert_succeeds(backend->context, backend->ops->gemm(backend, &single));
    for (int64_t j = 0; j < n; j++) assert_true(same_element(c, m - 1, j, &alone, 0, j));
    free(a.data), free(b.data), free(alone.data);
}

/* Factor a matrix and solve two systems whose last column is a copy of column FIRST_TWIN. */
static void solve_twins(mrc_backend *backend, const mercer_matrix *x)
{
    mercer_matrix l = positive_definite(x->rows, MERCER_F64);
    int64_t bad;
    assert_succeeds(backend->context, backend->ops->cholesky(backend, &l, &bad));
    data_fill_normal(x, (mrc_rng){5, 1}, 1, 2);
    copy_row(x, true, FIRST_TWIN, x->cols - 1);
    for (int transpose = 0; transpose < 2; transpose++)
        assert_succeeds(backend->context, backend->ops->triangular_solve(backend, &l, transpose, x));
    for (int64_t i = 0; i < x->rows; i++) assert_true(same_element(x, i, FIRST_TWIN, x, i, x->cols - 1));
    free(l.data);
}

typedef void (*bits_test)(mrc_backend *backend, const mercer_matrix *out, int which);

/* Run the test on every instruction set with 1, 2 and 3 threads; all results must equal the first bitwise. */
static void same_everywhere(bits_test test, int which, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    mercer_matrix first = data_matrix(rows, cols, 0, dtype), out = data_matrix(rows, cols, 0, dtype);
    for (int run = 0; run < 3 * ((int)mrc_isa_best() + 1); run++) {
        mercer_context context = {.threads = run % 3 + 1, .isa = (mrc_isa)(run / 3)};
        mrc_backend *backend = NULL;
        assert_succeeds(&context, mrc_backend_create(&backend, &context, "cpu"));
        test(backend, run == 0 ? &first : &out, which);
        mrc_backend_free(backend);
        if (run == 0) continue;
        assert_that(memcmp(first.data, out.data, (size_t)(rows * cols * mrc_dtype_size(dtype))) == 0,
                    "(%d, %d) case %d: other bits with %s, %d threads", (int)rows, (int)cols, which,
                    mrc_isa_name(context.isa), context.threads);
    }
    free(first.data), free(out.data);
}

static const int64_t bits_shapes[][3] = {{29, 27, 40}, {61, 75, 300}, {150, 9, 270}, {5, 150, 520},
                                         {4, 4, 30},   {90, 3, 64},   {60, 1030, 20}};

static void gemm_bits(mrc_backend *backend, const mercer_matrix *out, int which)
{
    gemm_twins(backend, bits_shapes[which / 4], which % 4, out->dtype, out);
}

static void solve_bits(mrc_backend *backend, const mercer_matrix *out, int which)
{
    (void)which;
    solve_twins(backend, out);
}

static void test_gemm_bits(void **state)
{
    (void)state;
    for (int which = 0; which < 4 * (int)(sizeof bits_shapes / sizeof *bits_shapes); which += SANITIZED ? 5 : 1) {
        const int64_t *shape = bits_shapes[which / 4];
        same_everywhere(gemm_bits, which, shape[0], shape[1], MERCER_F64);
        same_everywhere(gemm_bits, which, shape[0], shape[1], MERCER_F32);
    }
}

static void test_solve_bits(void **state)
{
    (void)state;
    same_everywhere(solve_bits, 0, 340, 3 + FIRST_TWIN, MERCER_F64);
    same_everywhere(solve_bits, 0, 340, 60, MERCER_F64);
}

/* The eigenvalues of c [1 1/2; 1/2 1] are 3c/2 and c/2, even if squares of the entries exceed the range of double. */
static void eigen_scale_on(mrc_backend *backend)
{
    const double scales[] = {1e-170, 1, 1e170};
    for (int i = 0; i < 3; i++) {
        double c = scales[i], entries[] = {c, c / 2, c / 2, c}, values[2], out[4];
        mercer_matrix a = mrc_view(entries, 2, 2, MERCER_F64), vectors = mrc_view(out, 2, 2, MERCER_F64);
        assert_succeeds(backend->context, backend->ops->eigen_top(backend, &a, 2, values, &vectors));
        assert_true(fabs(values[0] - 1.5 * c) <= 8 * DBL_EPSILON * c &&
                    fabs(values[1] - 0.5 * c) <= 8 * DBL_EPSILON * c);
    }
}

#define ON_EVERY_BACKEND(name)            \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        for_each_backend(name##_on);      \
    }
ON_EVERY_BACKEND(eigen)
ON_EVERY_BACKEND(eigen_order)
ON_EVERY_BACKEND(eigen_scale)
ON_EVERY_BACKEND(cholesky)
ON_EVERY_BACKEND(not_definite)
ON_EVERY_BACKEND(solve)
ON_EVERY_BACKEND(inverse)
ON_EVERY_BACKEND(losses)
ON_EVERY_BACKEND(gemm)
ON_EVERY_BACKEND(gram)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eigen),    cmocka_unit_test(test_eigen_order),  cmocka_unit_test(test_eigen_scale),
        cmocka_unit_test(test_cholesky), cmocka_unit_test(test_not_definite), cmocka_unit_test(test_solve),
        cmocka_unit_test(test_inverse),  cmocka_unit_test(test_losses),       cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gram),     cmocka_unit_test(test_gemm_bits),    cmocka_unit_test(test_solve_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
