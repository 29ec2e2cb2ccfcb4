/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Second definitions of the kernel functions, for tests. Each kernel of MRC_KERNELS (kernels/formulas.h) has one row in
 * one of the two lists below.
 *
 * Functions of a distance: X(ID, wanted, slope, y, steps, factor, roundings)
 *   wanted     expected value, written differently and in long double, from s = sum |x_k - z_k|^p, r = s^(1/p), b,
 *              u = r / b and the kernel k
 *   slope      largest |dK/dr|, times b; INFINITY: unbounded
 *   y ...      error that evaluation adds to the error of the argument: K e (steps + roundings y) + 1.5 factor * the
 *              smallest number of the type. e is the unit roundoff; y = -log K or near it, from v = r / b and the
 *              value. Derived in conformance/budget.h.
 *
 * Functions of the inner product: X(ID, allowed), the total allowed error, from the variables that conformance/budget.h
 * has in scope. Their values are tested one by one in unit/test_kernel_values.c.
 */
#ifndef MRC_TESTS_KERNEL_TABLE_H
#define MRC_TESTS_KERNEL_TABLE_H

#include "kernels/formulas.h"

/* -log K for any function with values in (0, 1]; 0 at the ends of that interval. */
#define FALLS_TO(value) ((value) > 0 && (value) < 1 ? -log(value) : 0)

/* clang-format off */
#define DISTANCE_KERNELS(X)                                                                                            \
    X(LAPLACE, 1 / expl(u), 1, v, 3, 1, 2)                                                                             \
    X(GAUSSIAN, expl(-u * u / 2), exp(-0.5), v * v / 2, 3, 1, 2)                                                       \
    X(MATERN32, (1 + u * sqrtl(3)) / expl(u * sqrtl(3)), sqrt(3) * exp(-1), sqrt(3) * v, 5, 1 + y, 2)                  \
    X(MATERN52, (3 + 3 * sqrtl(5) * u + 5 * u * u) / (3 * expl(sqrtl(5) * u)), matern52_slope(), sqrt(5) * v, 8,       \
      1 + y + y * y / 3, 2)                                                                                            \
    X(EXPPOWER, s > 0 ? expl(-expl((long double)k->gamma * logl(u))) : 1, exppower_slope(k->gamma), pow(v, k->gamma),  \
      3, 1, y > 0 ? 5 + 4.8 * fabs(log(y)) : 0)                                                                        \
    X(LAPLACE_L1, 1 / expl(s / b), 1, v, 3, 1, 2)                                                                      \
    X(EXPPOWER_L1, s > 0 ? expl(-expl((long double)k->gamma * logl(s / b))) : 1, exppower_slope(k->gamma),             \
      pow(v, k->gamma), 3, 1, y > 0 ? 5 + 4.8 * fabs(log(y)) : 0)                                                      \
    X(LPQ, s > 0 ? expl(-expl((long double)k->q * (logl(s) / (long double)k->p - logl(b)))) : 1,                       \
      exppower_slope(k->q), pow(v, k->q), 3, 1, y > 0 ? 6.4 + 4.8 * fabs(log(y)) : 0)                                  \
    X(CAUCHY, b * b / (b * b + s), 3 * sqrt(3) / 8, FALLS_TO(value), 3, 1, 2)                                              \
    X(RATIONAL_QUADRATIC, powl(2 * k->alpha * b * b / (2 * k->alpha * b * b + s), k->alpha),                           \
      rational_quadratic_slope(k->alpha), value > 0 ? -log(value) : 746, 3, 1, 7.2)

#define INNER_KERNELS(X)                                                                                               \
    X(LINEAR, e_dot + unit * fabs(s->dot) + e_reference)                                                               \
    X(POLYNOMIAL, polynomial_error(kernel, s, e_dot + e_reference, unit))                                              \
    X(NTK, angular_value_error(kernel, s, d, e_dot, e_reference, how))                                                 \
    X(NNGP, angular_value_error(kernel, s, d, e_dot, e_reference, how))
/* clang-format on */

/* K = (1 + t + t^2/3) e^-t, t = sqrt(5) v: |dK/dt| = t (1 + t) e^-t / 3, largest where t^2 = t + 1. */
static inline double matern52_slope(void)
{
    double t = (1 + sqrt(5)) / 2;
    return sqrt(5) * t * (1 + t) * exp(-t) / 3;
}

/* K = exp(-v^g): |dK/dv| = g v^(g-1) exp(-v^g), largest where v^g = (g - 1)/g; unbounded at 0 for g < 1. */
static inline double exppower_slope(double g)
{
    double peak = (g - 1) / g;
    return g < 1 ? (double)INFINITY : g * (g > 1 ? pow(peak, peak) : 1) * exp(-peak);
}

/* K = (1 + v^2 / 2a)^-a: |dK/dv| = v (1 + v^2 / 2a)^-(a+1), largest where v^2 = a / (a + 1/2). */
static inline double rational_quadratic_slope(double a)
{
    double square = a / (a + 0.5);
    return sqrt(square) * pow(1 + square / (2 * a), -a - 1);
}

#endif
