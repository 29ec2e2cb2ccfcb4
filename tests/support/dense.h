/* SPDX-License-Identifier: BSD-3-Clause */
/* Small dense linear algebra in plain C with long double sums, the reference for training tests. */
#ifndef MRC_TESTS_DENSE_H
#define MRC_TESTS_DENSE_H

#include "support/data.h"

#include "kernels/kernel.h"

typedef struct dense {
    int64_t rows, cols;
    double *a;
} dense;

#define AT(m, i, j) ((m).a[(i) * (m).cols + (j)])

static inline dense dense_new(int64_t rows, int64_t cols)
{
    dense out = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(double))};
    if (!out.a) abort();
    return out;
}

static inline dense dense_copy(dense a)
{
    dense out = dense_new(a.rows, a.cols);
    memcpy(out.a, a.a, (size_t)(a.rows * a.cols) * sizeof(double));
    return out;
}

static inline dense dense_of(const mercer_matrix *matrix)
{
    dense out = dense_new(matrix->rows, matrix->cols);
    for (int64_t i = 0; i < out.rows; i++)
        for (int64_t j = 0; j < out.cols; j++) AT(out, i, j) = mrc_load(matrix, i, j);
    return out;
}

/* Return K(A, B) by the scalar reference. */
static inline dense dense_kernel(const mercer_kernel *kernel, const mercer_matrix *a, const mercer_matrix *b)
{
    dense out = dense_new(a->rows, b->rows), x = dense_of(a), z = dense_of(b);
    for (int64_t i = 0; i < out.rows; i++)
        for (int64_t j = 0; j < out.cols; j++)
            if (!mrc_kernel_reference(kernel, a->cols, &AT(x, i, 0), &AT(z, j, 0), &AT(out, i, j))) abort();
    free(x.a), free(z.a);
    return out;
}

/* Return op(A) op(B). */
static inline dense dense_times(bool ta, bool tb, dense a, dense b)
{
    int64_t inner = ta ? a.rows : a.cols;
    dense out = dense_new(ta ? a.cols : a.rows, tb ? b.rows : b.cols);
    for (int64_t i = 0; i < out.rows; i++)
        for (int64_t j = 0; j < out.cols; j++) {
            long double sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += (long double)(ta ? AT(a, k, i) : AT(a, i, k)) * (tb ? AT(b, j, k) : AT(b, k, j));
            AT(out, i, j) = (double)sum;
        }
    return out;
}

static inline dense dense_transposed(dense a)
{
    dense out = dense_new(a.cols, a.rows);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++) AT(out, j, i) = AT(a, i, j);
    return out;
}

/* Y += factor X */
static inline void dense_add(dense y, double factor, dense x)
{
    for (int64_t k = 0; k < y.rows * y.cols; k++) y.a[k] += factor * x.a[k];
}

static inline double dense_norm(dense a)
{
    long double sum = 0;
    for (int64_t k = 0; k < a.rows * a.cols; k++) sum += (long double)a.a[k] * a.a[k];
    return (double)sqrtl(sum);
}

/* Return |A - B|_F. */
static inline double dense_distance(dense a, dense b)
{
    long double sum = 0;
    for (int64_t k = 0; k < a.rows * a.cols; k++)
        sum += ((long double)a.a[k] - b.a[k]) * ((long double)a.a[k] - b.a[k]);
    return (double)sqrtl(sum);
}

/* Return the lower Cholesky factor of a positive definite matrix. */
static inline dense dense_factor(dense a)
{
    dense l = dense_new(a.rows, a.rows);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j <= i; j++) {
            long double sum = AT(a, i, j);
            for (int64_t k = 0; k < j; k++) sum -= (long double)AT(l, i, k) * AT(l, j, k);
            AT(l, i, j) = (double)(i == j ? sqrtl(sum) : sum / AT(l, j, j));
        }
    return l;
}

/* B <- L^-1 B, or L^-T B. */
static inline void dense_triangular(dense l, bool transpose, dense b)
{
    for (int64_t step = 0; step < l.rows; step++) {
        int64_t i = transpose ? l.rows - 1 - step : step;
        for (int64_t j = 0; j < b.cols; j++) {
            long double sum = AT(b, i, j);
            for (int64_t k = transpose ? i + 1 : 0; k < (transpose ? l.rows : i); k++)
                sum -= (long double)(transpose ? AT(l, k, i) : AT(l, i, k)) * AT(b, k, j);
            AT(b, i, j) = (double)(sum / AT(l, i, i));
        }
    }
}

/* Return A^-1 B for positive definite A, refined iteratively until rounding stops progress. */
static inline dense dense_solve(dense a, dense b)
{
    dense l = dense_factor(a), x = dense_copy(b);
    dense_triangular(l, false, x), dense_triangular(l, true, x);
    for (int round = 0; round < 3; round++) {
        dense r = dense_copy(b), ax = dense_times(false, false, a, x);
        dense_add(r, -1, ax);
        dense_triangular(l, false, r), dense_triangular(l, true, r);
        dense_add(x, 1, r);
        free(r.a), free(ax.a);
    }
    free(l.a);
    return x;
}

/* Compute the eigenvalues of a symmetric matrix in descending order, and its eigenvectors as columns, by Jacobi
   rotations. */
static inline void dense_eigen(dense matrix, double *values, dense vectors)
{
    int64_t n = matrix.rows;
    dense a = dense_copy(matrix);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) AT(vectors, i, j) = i == j;
    double size = dense_norm(matrix);
    for (int sweep = 0; sweep < 30; sweep++) {
        double off = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) {
                off += fabs(AT(a, i, j));
                if (AT(a, i, j) == 0) continue;
                double theta = (AT(a, j, j) - AT(a, i, i)) / (2 * AT(a, i, j));
                double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1);
                for (int64_t k = 0; k < n; k++) {
                    double x = AT(a, k, i), y = AT(a, k, j);
                    AT(a, k, i) = c * (x - t * y), AT(a, k, j) = c * (t * x + y);
                }
                for (int64_t k = 0; k < n; k++) {
                    double x = AT(a, i, k), y = AT(a, j, k);
                    AT(a, i, k) = c * (x - t * y), AT(a, j, k) = c * (t * x + y);
                    x = AT(vectors, k, i), y = AT(vectors, k, j);
                    AT(vectors, k, i) = c * (x - t * y), AT(vectors, k, j) = c * (t * x + y);
                }
            }
        if (off <= 1e-17 * size) break; /* quadratic convergence: another sweep would change nothing */
    }
    for (int64_t i = 0; i < n; i++) values[i] = AT(a, i, i);
    for (int64_t i = 0; i < n; i++) /* selection sort */
        for (int64_t j = i + 1; j < n; j++)
            if (values[j] > values[i]) {
                double swap = values[i];
                values[i] = values[j], values[j] = swap;
                for (int64_t k = 0; k < n; k++)
                    swap = AT(vectors, k, i), AT(vectors, k, i) = AT(vectors, k, j), AT(vectors, k, j) = swap;
            }
    free(a.a);
}

typedef struct spectrum {
    double top, bottom;
} spectrum;

/* Return the extreme eigenvalues of M^-1 A for symmetric A and M; M is positive definite (M without data: M = I). */
static inline spectrum dense_spectrum(dense a, dense m)
{
    int64_t n = a.rows;
    dense b = dense_copy(a), vectors = dense_new(n, n);
    double *values = calloc((size_t)n, sizeof(double));
    if (m.a) {
        dense l = dense_factor(m);
        dense_triangular(l, false, b);
        dense t = dense_new(n, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) AT(t, i, j) = AT(b, j, i);
        dense_triangular(l, false, t);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) AT(b, i, j) = (AT(t, i, j) + AT(t, j, i)) / 2;
        free(l.a), free(t.a);
    }
    dense_eigen(b, values, vectors);
    spectrum out = {values[0], values[n - 1]};
    free(values), free(b.a), free(vectors.a);
    return out;
}

/* Return a lower bound of the top eigenvalue of a positive semi-definite matrix, by power iteration. */
static inline double dense_top(dense a)
{
    dense v = dense_new(a.rows, 1);
    double norm = 0;
    for (int64_t i = 0; i < a.rows; i++) v.a[i] = 1 + (double)(i % 7) / 10;
    for (int step = 0; step < 200; step++) {
        dense next = dense_times(false, false, a, v);
        norm = dense_norm(next) / dense_norm(v);
        free(v.a);
        v = next;
        for (int64_t i = 0; i < v.rows && norm > 0; i++) v.a[i] /= norm;
    }
    free(v.a);
    return norm;
}

#endif
