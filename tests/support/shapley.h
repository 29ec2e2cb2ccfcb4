/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapley values in plain double: by enumeration of all subsets, for any kernel, and for kernels that are products by
   elementary symmetric sums. */
#ifndef MRC_TESTS_SHAPLEY_H
#define MRC_TESTS_SHAPLEY_H

#include "support/check.h"

#include "kernels/kernel.h"

#include <math.h>

/* A sum f(x) = sum_j alpha_j K(x, z_j) with one output. */
typedef struct plain_sum {
    const mercer_kernel *kernel;
    int64_t p, d;
    const double *z, *alpha; /* (p, d), (p) */
    int64_t players;
    const int64_t *owner; /* (d) player of each feature */
} plain_sum;

static inline double plain_output(const plain_sum *sum, const double *x)
{
    double total = 0, value;
    for (int64_t j = 0; j < sum->p; j++) {
        assert_true(mrc_kernel_reference(sum->kernel, sum->d, x, sum->z + j * sum->d, &value));
        total += sum->alpha[j] * value;
    }
    return total;
}

/* Adds share times the values of a row and a background row to values (players): the mean over all subsets S of the
   other players of v(S and k) - v(S), with weight |S|! (n - 1 - |S|)! / n!. */
static inline void enumerate_values(const plain_sum *sum, const double *x, const double *b, double share,
                                    double *values)
{
    int64_t n = sum->players, count = INT64_C(1) << n;
    double *v = malloc(sizeof(double) * (size_t)count), mixed[64];
    for (int64_t set = 0; set < count; set++) {
        for (int64_t l = 0; l < sum->d; l++) mixed[l] = (set >> sum->owner[l] & 1) ? x[l] : b[l];
        v[set] = plain_output(sum, mixed);
    }
    for (int64_t k = 0; k < n; k++)
        for (int64_t set = 0; set < count; set++) {
            if (set >> k & 1) continue;
            int64_t size = __builtin_popcountll((unsigned long long)set);
            double weight = exp(lgamma((double)size + 1) + lgamma((double)(n - size)) - lgamma((double)n + 1));
            values[k] += share * weight * (v[set | INT64_C(1) << k] - v[set]);
        }
    free(v);
}

/* Adds share times the interaction of columns k and l to *value: the mean over all subsets S of the other players of
   v(S and k and l) - v(S and k) - v(S and l) + v(S), with weight |S|! (n - 2 - |S|)! / (n - 1)!. */
static inline void enumerate_interaction(const plain_sum *sum, const double *x, const double *b, double share,
                                         int64_t k, int64_t l, double *value)
{
    int64_t n = sum->players, one = INT64_C(1) << k, other = INT64_C(1) << l;
    double v[4], mixed[64];
    for (int64_t set = 0; set < INT64_C(1) << n; set++) {
        if (set & (one | other)) continue;
        int64_t size = __builtin_popcountll((unsigned long long)set),
                sets[4] = {set, set | one, set | other, set | one | other};
        for (int i = 0; i < 4; i++) {
            for (int64_t f = 0; f < sum->d; f++) mixed[f] = (sets[i] >> sum->owner[f] & 1) ? x[f] : b[f];
            v[i] = plain_output(sum, mixed);
        }
        double weight = exp(lgamma((double)size + 1) + lgamma((double)(n - 1 - size)) - lgamma((double)n));
        *value += share * weight * (v[3] - v[2] - v[1] + v[0]);
    }
}

/* Computes the values of enumerate_values for a kernel exp(-rate sum_l |x_l - z_l|^power), where each feature is a
   player. With a_l and b_l the factors of x and b, v(S and k) - v(S) summed over the sets of size s is (a_k - b_k) e_s,
   e_s the coefficients of prod_{l != k} (b_l + a_l u). All terms are positive, so there is no cancellation. */
static inline void symmetric_values(const plain_sum *sum, double rate, double power, const double *x, const double *b,
                                    double share, double *values)
{
    int64_t n = sum->d;
    double *e = malloc(sizeof(double) * (size_t)(3 * n)), *left = e + n, *right = left + n;
    for (int64_t j = 0; j < sum->p; j++) {
        for (int64_t l = 0; l < n; l++) {
            left[l] = exp(-rate * pow(fabs(x[l] - sum->z[j * n + l]), power));
            right[l] = exp(-rate * pow(fabs(b[l] - sum->z[j * n + l]), power));
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t degree = 0;
            double mean = 0, choose = 1; /* binomial coefficient of (n - 1, s) */
            for (int64_t s = 0; s < n; s++) e[s] = s == 0;
            for (int64_t l = 0; l < n; l++) {
                if (l == k) continue;
                for (int64_t s = ++degree; s > 0; s--) e[s] = e[s] * right[l] + e[s - 1] * left[l];
                e[0] *= right[l];
            }
            for (int64_t s = 0; s < n; s++) {
                mean += e[s] / choose / (double)n;
                choose *= (double)(n - 1 - s) / (double)(s + 1);
            }
            values[k] += share * sum->alpha[j] * (left[k] - right[k]) * mean;
        }
    }
    free(e);
}

#endif
