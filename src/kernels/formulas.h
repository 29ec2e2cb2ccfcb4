/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions of all kernel functions, each in one place. Four lists, in this order:
 *
 *   MRC_KERNELS       the definition in double, name, parameters and their ranges, and an example. A kernel in this
 *                     list can be parsed and printed, and is computed by the reference, CPU and GPU backends.
 *   MRC_VECTOR_FORMS  faster forms for CPU vectors, with constants computed once per kernel
 *   MRC_FLOAT_FORMS   forms in float for the GPU
 *   MRC_HALF_FORMS    forms in half precision for the GPU
 *
 * The last three lists are optional. For a kernel without a row in such a list, the definition is evaluated in double
 * and the result is rounded once.
 *
 * Functions of the distance, with s = r^2 = |x - z|^2 and bandwidth b:
 *
 *   laplace     exp(-r/b)                       matern32  (1 + u) exp(-u),            u = sqrt(3) r/b
 *   gaussian    exp(-s / (2 b^2))               matern52  (1 + u + u^2/3) exp(-u),    u = sqrt(5) r/b
 *   exppower    exp(-(r/b)^gamma)               cauchy    1 / (1 + s/b^2)
 *   rational-quadratic  (1 + s / (2 alpha b^2))^-alpha
 *
 * All are 1 at r = 0, decrease with r, and are positive semi-definite in every dimension (exppower for 0 < gamma <= 2).
 *
 * Each has a slope psi(r) = -phi'(r) / r; the gradient in x of phi(|x - z|) is -psi(r) (x - z):
 *
 *   laplace     exp(-r/b) / (b r)               matern32  3 exp(-u) / b^2
 *   gaussian    phi / b^2                       matern52  5 (1 + u) exp(-u) / (3 b^2)
 *   exppower    gamma t exp(-t) / s, t = (r/b)^gamma      cauchy    2 phi^2 / b^2
 *   rational-quadratic  (1 + s / (2 alpha b^2))^(-alpha - 1) / b^2
 *
 * Functions of a sum s = sum_k |x_k - z_k|^p (below) have the slope -p dphi/ds: the derivative in x_k is this slope
 * times -|x_k - z_k|^(p - 1) sign(x_k - z_k). For p = 2 this slope equals psi:
 *
 *   laplace-l1  phi / b        exppower-l1, lpq  q t exp(-t) / s, t = (r/b)^q (q = gamma)
 *
 * A slope that has no finite limit at r = 0 is defined as 0 at r = 0: either |psi (x - z)| stays bounded, or the
 * direction is undefined. A slope is computed like a kernel function and has its own id, see mrc_kernel_slope
 * (kernels/kernel.h).
 *
 * Functions of a distance in another norm, with s = sum_k |x_k - z_k|^p and r = s^(1/p). Such sums cannot be computed
 * from inner products, so they are formed from differences, pair by pair:
 *
 *   laplace-l1  exp(-r/b), p = 1                exppower-l1  exp(-(r/b)^gamma), p = 1
 *   lpq         exp(-(r/b)^q) = exp(-s^(q/p) / b^q)
 *
 * laplace-l1 is lpq with p = q = 1, exppower-l1 is lpq with p = 1 and q = gamma, and lpq with p = 2 is exppower with
 * gamma = q. lpq is positive semi-definite in every dimension for 0 < q <= p <= 2: s is then conditionally negative
 * definite, and so is its power q/p <= 1 (Schoenberg 1938).
 *
 * Functions of the inner product t = x.z and the squared norms:
 *
 *   linear  t        polynomial  (scale t + offset)^degree
 *
 *   nngp, ntk of a fully connected ReLU network with L = depth hidden layers, weight variance 2 (norm-preserving) and
 *   bias variance v^2 (bias = v). With k0(c) = 1 - acos(c)/pi,  k1(c) = c k0(c) + sqrt(1 - c^2)/pi  (Cho & Saul 2009)
 *   and
 *
 *       S_0 = t + v^2,   N_l(x) = |x|^2 + (l + 1) v^2       (N_l(x) is S_l(x, x), because k1(1) = 1)
 *       c_l = S_{l-1} / sqrt(N_{l-1}(x) N_{l-1}(z)),        clamped to [-1, 1]
 *       S_l = sqrt(N_{l-1}(x) N_{l-1}(z)) k1(c_l) + v^2
 *       T_0 = S_0,   T_l = T_{l-1} k0(c_l) + S_l
 *
 *   nngp = S_L, ntk = T_L (Jacot et al. 2018). For a zero vector and v = 0, S_l = T_l = 0, which is the limit.
 *
 * Accuracy: near c = 1, acos(c) is about sqrt(2 (1 - c)), so an error e in c becomes an error of about sqrt(e) in the
 * result. Fast code must evaluate nearly parallel pairs from accurate inner products.
 */
#ifndef MRC_KERNELS_FORMULAS_H
#define MRC_KERNELS_FORMULAS_H

#include "mercer/advanced.h"

#include "core/numbers/bounds.h"
#include "core/numbers/host_device.h"

#include <math.h>
#include <stdbool.h>

/* ---- Definitions: of the squared distance s >= 0 ----------------------------------------------------------------- */

/* Matern values from u and decay = exp(-u), in any type. decay = 0 is a special case because infinity * 0 would be
   NaN. */
#define MRC_MATERN32(u, decay) ((decay) > 0 ? (1 + (u)) * (decay) : 0)
#define MRC_MATERN52(u, decay) ((decay) > 0 ? (1 + (u) + (u) * (u) / 3) * (decay) : 0)

MRC_HD double mrc_laplace(const mercer_kernel *kernel, double s)
{
    return exp(-sqrt(s) / kernel->bandwidth);
}

MRC_HD double mrc_gaussian(const mercer_kernel *kernel, double s)
{
    return exp(-0.5 * (s / kernel->bandwidth / kernel->bandwidth)); /* two divisions, because b^2 might underflow */
}

MRC_HD double mrc_matern32(const mercer_kernel *kernel, double s)
{
    double u = sqrt(3 * s) / kernel->bandwidth, decay = exp(-u);
    return MRC_MATERN32(u, decay);
}

MRC_HD double mrc_matern52(const mercer_kernel *kernel, double s)
{
    double u = sqrt(5 * s) / kernel->bandwidth, decay = exp(-u);
    return MRC_MATERN52(u, decay);
}

MRC_HD double mrc_exppower(const mercer_kernel *kernel, double s)
{
    return exp(-pow(sqrt(s) / kernel->bandwidth, kernel->gamma));
}

MRC_HD double mrc_cauchy(const mercer_kernel *kernel, double s)
{
    return 1 / (1 + s / kernel->bandwidth / kernel->bandwidth);
}

MRC_HD double mrc_rational_quadratic(const mercer_kernel *kernel, double s)
{
    double alpha = kernel->alpha;
    return exp(-alpha * log1p(s / kernel->bandwidth / kernel->bandwidth / (2 * alpha)));
}

/* ---- Slopes of the squared distance; named as the definition, with _slope ---------------------------------------- */

MRC_HD double mrc_laplace_slope(const mercer_kernel *kernel, double s)
{
    double r = sqrt(s);
    return r > 0 ? exp(-r / kernel->bandwidth) / kernel->bandwidth / r : 0;
}

MRC_HD double mrc_gaussian_slope(const mercer_kernel *kernel, double s)
{
    return mrc_gaussian(kernel, s) / kernel->bandwidth / kernel->bandwidth;
}

MRC_HD double mrc_matern32_slope(const mercer_kernel *kernel, double s)
{
    return 3 * exp(-sqrt(3 * s) / kernel->bandwidth) / kernel->bandwidth / kernel->bandwidth;
}

MRC_HD double mrc_matern52_slope(const mercer_kernel *kernel, double s)
{
    double u = sqrt(5 * s) / kernel->bandwidth, decay = exp(-u);
    return 5 * MRC_MATERN32(u, decay) / 3 / kernel->bandwidth / kernel->bandwidth;
}

MRC_HD double mrc_exppower_slope(const mercer_kernel *kernel, double s)
{
    double t = pow(sqrt(s) / kernel->bandwidth, kernel->gamma), decay = exp(-t);
    return s > 0 && decay > 0 ? kernel->gamma * t * decay / s : 0;
}

MRC_HD double mrc_cauchy_slope(const mercer_kernel *kernel, double s)
{
    double value = mrc_cauchy(kernel, s);
    return 2 * value / kernel->bandwidth * value / kernel->bandwidth;
}

MRC_HD double mrc_rational_quadratic_slope(const mercer_kernel *kernel, double s)
{
    double alpha = kernel->alpha, inside = s / kernel->bandwidth / kernel->bandwidth / (2 * alpha);
    return exp(-(alpha + 1) * log1p(inside)) / kernel->bandwidth / kernel->bandwidth;
}

/* ---- Definitions: of the sum s = sum_k |x_k - z_k|^p >= 0 -------------------------------------------------------- */

/* Returns size^p for size = |t|. The powers 1/2 and 3/2 need only a square root, which is faster than pow. */
MRC_HD double mrc_power(double size, double p)
{
    if (p == 1.5) return size * sqrt(size);
    if (p == 0.5) return sqrt(size);
    return p == 1 ? size : p == 2 ? size * size : pow(size, p);
}

MRC_HD double mrc_laplace_l1(const mercer_kernel *kernel, double s)
{
    return exp(-s / kernel->bandwidth);
}

MRC_HD double mrc_exppower_l1(const mercer_kernel *kernel, double s)
{
    return exp(-pow(s / kernel->bandwidth, kernel->gamma));
}

MRC_HD double mrc_lpq(const mercer_kernel *kernel, double s)
{
    double root = pow(kernel->bandwidth, kernel->p / 2); /* the root, because b^p might overflow or underflow */
    return exp(-pow(s / root / root, kernel->q / kernel->p));
}

MRC_HD double mrc_laplace_l1_slope(const mercer_kernel *kernel, double s)
{
    return mrc_laplace_l1(kernel, s) / kernel->bandwidth;
}

MRC_HD double mrc_exppower_l1_slope(const mercer_kernel *kernel, double s)
{
    double t = pow(s / kernel->bandwidth, kernel->gamma), decay = exp(-t);
    return s > 0 && decay > 0 ? kernel->gamma * t * decay / s : 0;
}

MRC_HD double mrc_lpq_slope(const mercer_kernel *kernel, double s)
{
    double root = pow(kernel->bandwidth, kernel->p / 2), t = pow(s / root / root, kernel->q / kernel->p);
    double decay = exp(-t);
    return s > 0 && decay > 0 ? kernel->q * t * decay / s : 0;
}

/* ---- Definitions: of the inner product t and the squared norms --------------------------------------------------- */

MRC_HD double mrc_polynomial(const mercer_kernel *kernel, double t, double xx, double zz)
{
    (void)xx, (void)zz;
    double base = kernel->scale * t + kernel->offset, power = 1;
    for (int32_t i = 0; i < kernel->degree; i++) power *= base;
    return power;
}

MRC_HD double mrc_linear(const mercer_kernel *kernel, double t, double xx, double zz)
{
    (void)kernel, (void)xx, (void)zz;
    return t;
}

/* Returns T_L (see the top of this file) if ntk is true, else S_L; one pass over the layers computes both. */
MRC_HD double mrc_relu_layers(const mercer_kernel *kernel, double dot, double xx, double zz, bool ntk)
{
    const double pi = 3.14159265358979323846;
    double variance = kernel->bias * kernel->bias, s = dot + variance, t = s;
    /* equal vectors have the angle 0 in every layer, in spite of rounding errors */
    bool same = dot == xx && dot == zz;
    for (int32_t layer = 1; layer <= kernel->depth; layer++) {
        double x_norm = xx + layer * variance, z_norm = zz + layer * variance;
        double norms = same ? x_norm : sqrt(x_norm) * sqrt(z_norm); /* the product of the norms might overflow */
        double c = same || norms == 0 ? 1 : s / norms;
        c = c > 1 ? 1 : c < -1 ? -1 : c;
        double k0 = 1 - acos(c) / pi, k1 = c * k0 + sqrt(1 - c * c) / pi;
        s = norms * k1 + variance;
        t = t * k0 + s;
    }
    return ntk ? t : s;
}

MRC_HD double mrc_ntk(const mercer_kernel *kernel, double t, double xx, double zz)
{
    return mrc_relu_layers(kernel, t, xx, zz, true);
}

MRC_HD double mrc_nngp(const mercer_kernel *kernel, double t, double xx, double zz)
{
    return mrc_relu_layers(kernel, t, xx, zz, false);
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

/* clang-format off */

/* Parameters are fields of mercer_kernel: name, kind, required, whether the smallest value is valid, smallest and
   largest value, and default (mrc_parameter in core/spec.h). */
#define MRC_PARAMETER(field, ...) {#field, offsetof(mercer_kernel, field), __VA_ARGS__}
#define MRC_BANDWIDTH \
    MRC_PARAMETER(bandwidth, MRC_REAL, true, true, MRC_BANDWIDTH_LEAST, MRC_BANDWIDTH_MOST, 0)
#define MRC_GAMMA     MRC_PARAMETER(gamma, MRC_REAL, true, true, MRC_EXPONENT_LEAST, 2, 0)
#define MRC_GAMMA_L1  MRC_PARAMETER(gamma, MRC_REAL, true, true, MRC_EXPONENT_LEAST, 1, 0)
#define MRC_P         MRC_PARAMETER(p, MRC_REAL, true, true, MRC_EXPONENT_LEAST, 2, 0)
#define MRC_Q         MRC_PARAMETER(q, MRC_REAL, true, true, MRC_EXPONENT_LEAST, 2, 0) /* at most p: mrc_kernel_check */
#define MRC_ALPHA     MRC_PARAMETER(alpha, MRC_REAL, false, true, 1e-6, 1e6, 1)
#define MRC_DEGREE    MRC_PARAMETER(degree, MRC_WHOLE, false, true, 1, 64, 3)
#define MRC_SCALE     MRC_PARAMETER(scale, MRC_REAL, false, true, 1e-100, 1e100, 1)
#define MRC_OFFSET    MRC_PARAMETER(offset, MRC_REAL, false, true, 0, 1e100, 1)
#define MRC_DEPTH     MRC_PARAMETER(depth, MRC_WHOLE, false, true, 1, 64, 1)
#define MRC_BIAS      MRC_PARAMETER(bias, MRC_REAL, false, true, 0, 1e100, 0)
#define MRC_NOTHING   {0}

/* X(ID, definition, pair form, name, example, parameters...). The pair form is the argument of the function: DISTANCE,
   the squared L2 distance; DIFFERENCES, the sum of |x_k - z_k|^p with p = 1 or the parameter p (p = 2 is computed like
   DISTANCE); INNER, the inner product; ANGLE, the inner product, for functions that are ill-conditioned for nearly
   parallel vectors. Append new kernels at the end, so that the existing ids (mercer_kernel.id) stay the same. */
#define MRC_KERNELS(X)                                                                                                 \
    X(LAPLACE, mrc_laplace, DISTANCE, "laplace", "laplace:bandwidth=10", MRC_BANDWIDTH)                                \
    X(GAUSSIAN, mrc_gaussian, DISTANCE, "gaussian", "gaussian:bandwidth=5", MRC_BANDWIDTH)                             \
    X(MATERN32, mrc_matern32, DISTANCE, "matern32", "matern32:bandwidth=8", MRC_BANDWIDTH)                             \
    X(MATERN52, mrc_matern52, DISTANCE, "matern52", "matern52:bandwidth=8", MRC_BANDWIDTH)                             \
    X(EXPPOWER, mrc_exppower, DISTANCE, "exppower", "exppower:bandwidth=10,gamma=0.7", MRC_BANDWIDTH, MRC_GAMMA)       \
    X(CAUCHY, mrc_cauchy, DISTANCE, "cauchy", "cauchy:bandwidth=10", MRC_BANDWIDTH)                                    \
    X(RATIONAL_QUADRATIC, mrc_rational_quadratic, DISTANCE, "rational-quadratic",                                      \
      "rational-quadratic:bandwidth=10,alpha=0.5", MRC_BANDWIDTH, MRC_ALPHA)                                           \
    X(POLYNOMIAL, mrc_polynomial, INNER, "polynomial", "polynomial:degree=3,scale=0.01,offset=1", MRC_DEGREE,          \
      MRC_SCALE, MRC_OFFSET)                                                                                           \
    X(LINEAR, mrc_linear, INNER, "linear", "linear", MRC_NOTHING)                                                      \
    X(NTK, mrc_ntk, ANGLE, "ntk", "ntk:depth=2,bias=0.1", MRC_DEPTH, MRC_BIAS)                                         \
    X(NNGP, mrc_nngp, ANGLE, "nngp", "nngp:depth=2,bias=0.1", MRC_DEPTH, MRC_BIAS)                                     \
    X(LAPLACE_L1, mrc_laplace_l1, DIFFERENCES, "laplace-l1", "laplace-l1:bandwidth=20", MRC_BANDWIDTH)                 \
    X(EXPPOWER_L1, mrc_exppower_l1, DIFFERENCES, "exppower-l1", "exppower-l1:bandwidth=20,gamma=0.7", MRC_BANDWIDTH,   \
      MRC_GAMMA_L1)                                                                                                    \
    X(LPQ, mrc_lpq, DIFFERENCES, "lpq", "lpq:p=1.5,q=0.8,bandwidth=12", MRC_P, MRC_Q, MRC_BANDWIDTH)

/* A kernel's id is its position in the list, from 1. MERCER_KERNEL_CALLBACK_DISTANCE and above are user
   functions. */
#define MRC_KERNEL_NUMBER(ID, ...) MRC_KERNEL_##ID,
enum { MRC_KERNEL_NONE, MRC_KERNELS(MRC_KERNEL_NUMBER) MRC_KERNEL_END };
#undef MRC_KERNEL_NUMBER

/* The slope of the kernel with id k has id MRC_SLOPES + k. The lists below contain, for example, LAPLACE and its slope
   SLOPE_LAPLACE. */
enum { MRC_SLOPES = 1000 };
#define MRC_SLOPE_NUMBER(ID, ...) MRC_KERNEL_SLOPE_##ID = (int)MRC_SLOPES + (int)MRC_KERNEL_##ID,
enum { MRC_KERNELS(MRC_SLOPE_NUMBER) MRC_SLOPE_END };
#undef MRC_SLOPE_NUMBER

/*
 * CPU vectors: X(ID, TYPES, a, b, value). a and b are constants of a kernel k, in double. value is a function of s (the
 * squared distance, the sum of |x_k - z_k|^p, or the inner product) in the vector's arithmetic; each operation rounds
 * as written. u is a temporary; EXP, LOG, LOG1P, SQRT and FMA are branch-free; CAP(u) limits u to a finite number whose
 * exp(-u) is 0, so that no infinity occurs.
 *   FLOAT   computed in the vector's type, float or double
 *   DOUBLE  computed in double, and rounded for vectors of float
 * TYPES without a value:
 *   SAME    s itself;   POWER  (a s + b)^degree;   ANGLE  the ReLU layers, a = v^2, b = 1 for T and 0 for S
 */
#define MRC_VECTOR_FORMS(X)                                                                                            \
    X(LAPLACE, FLOAT, -1 / k->bandwidth, 0, EXP(a * SQRT(s)))                                                          \
    X(GAUSSIAN, FLOAT, -0.5 / k->bandwidth / k->bandwidth, 0, EXP(a * s))                                              \
    X(MATERN32, FLOAT, sqrt(3) / k->bandwidth, 0, (u = CAP(a * SQRT(s)), (1 + u) * EXP(-u)))                           \
    X(MATERN52, FLOAT, sqrt(5) / k->bandwidth, 0,                                                                      \
      (u = CAP(a * SQRT(s)), FMA(u, FMA(u, (REAL)1 / 3, 1), 1) * EXP(-u)))                                             \
    X(EXPPOWER, FLOAT, 1 / k->bandwidth / k->bandwidth, k->gamma / 2, MRC_STRETCHED)                                   \
    X(CAUCHY, FLOAT, 1 / k->bandwidth / k->bandwidth, 0, 1 / FMA(s, a, 1))                                             \
    X(RATIONAL_QUADRATIC, DOUBLE, 1 / k->bandwidth / k->bandwidth / (2 * k->alpha), -k->alpha, EXP(b * LOG1P(a * s)))  \
    X(POLYNOMIAL, POWER, k->scale, k->offset, )                                                                        \
    X(LINEAR, SAME, 1, 0, )                                                                                            \
    X(NTK, ANGLE, k->bias * k->bias, 1, )                                                                              \
    X(NNGP, ANGLE, k->bias * k->bias, 0, )                                                                             \
    X(LAPLACE_L1, FLOAT, -1 / k->bandwidth, 0, EXP(a * s))                                                             \
    X(EXPPOWER_L1, FLOAT, 1 / k->bandwidth, k->gamma, MRC_STRETCHED)                                                   \
    X(LPQ, DOUBLE, pow(k->bandwidth, -k->p), k->q / k->p, MRC_STRETCHED)                                               \
    X(SLOPE_LAPLACE, FLOAT, -1 / k->bandwidth, 0, (u = SQRT(s), u > 0 ? EXP(a * u) * (-a / u) : 0))                    \
    X(SLOPE_GAUSSIAN, FLOAT, -0.5 / k->bandwidth / k->bandwidth, 0, EXP(a * s) * (-2 * a))                             \
    X(SLOPE_MATERN32, FLOAT, sqrt(3) / k->bandwidth, 0, EXP(-(a * SQRT(s))) * (a * a))                                 \
    X(SLOPE_MATERN52, FLOAT, sqrt(5) / k->bandwidth, 0, (u = CAP(a * SQRT(s)), (1 + u) * EXP(-u) * (a * a / 3)))       \
    X(SLOPE_EXPPOWER, FLOAT, 1 / k->bandwidth / k->bandwidth, k->gamma / 2,                                            \
      (u = b * LOG(a * s), u = u < 7 ? u : 7, s > 0 ? 2 * b * EXP(u - EXP(u)) / s : 0))                                \
    X(SLOPE_CAUCHY, FLOAT, 1 / k->bandwidth / k->bandwidth, 0, (u = 1 / FMA(s, a, 1), 2 * u * a * u))                  \
    X(SLOPE_RATIONAL_QUADRATIC, DOUBLE, 1 / k->bandwidth / k->bandwidth / (2 * k->alpha), -k->alpha,                   \
      EXP((b - 1) * LOG1P(a * s)) * (-2 * a * b))                                                                      \
    X(SLOPE_LAPLACE_L1, FLOAT, -1 / k->bandwidth, 0, EXP(a * s) * -a)                                                  \
    X(SLOPE_EXPPOWER_L1, FLOAT, 1 / k->bandwidth, k->gamma,                                                            \
      (u = b * LOG(a * s), u = u < 7 ? u : 7, s > 0 ? b * EXP(u - EXP(u)) / s : 0))

/* exp(-(a s)^b). u is capped at 7, because exp(-exp(7)) is 0 already. */
#define MRC_STRETCHED (u = b * LOG(a * s), u = u < 7 ? u : 7, s > 0 ? EXP(-EXP(u)) : 1)

/* Float on the GPU: X(ID, OF, scale, value). value is a function of u and decay = exp(-u), with u = scale sqrt(s) for
   OF = ROOT and u = scale s for OF = SQUARE. */
#define MRC_FLOAT_FORMS(X)                                                                                             \
    X(LAPLACE, ROOT, 1 / k->bandwidth, decay)                                                                          \
    X(GAUSSIAN, SQUARE, 0.5 / (k->bandwidth * k->bandwidth), decay)                                                    \
    X(MATERN32, ROOT, 1.7320508075688772 / k->bandwidth, MRC_MATERN32(u, decay))                                       \
    X(MATERN52, ROOT, 2.23606797749979 / k->bandwidth, MRC_MATERN52(u, decay))                                         \
    X(LAPLACE_L1, SQUARE, 1 / k->bandwidth, decay)

/* Half precision on the GPU: X(ID, scale, value). value is 2^15 K, with t = scale s >= 0; POWER(u) is 2^(15 - u). */
#define MRC_LOG2E 1.4426950408889634
#define MRC_HALF_FORMS(X)                                                                                              \
    X(LAPLACE, MRC_LOG2E / k->bandwidth * (MRC_LOG2E / k->bandwidth), POWER(SQRT(t)))                                  \
    X(GAUSSIAN, 0.5 * MRC_LOG2E / (k->bandwidth * k->bandwidth), POWER(t))                                             \
    X(MATERN32, 3 * MRC_LOG2E / k->bandwidth * (MRC_LOG2E / k->bandwidth),                                             \
      (u = SQRT(t), POWER(u) * fmaf(u, 0.69314718f, 1.0f)))                                                            \
    X(MATERN52, 5 * MRC_LOG2E / k->bandwidth * (MRC_LOG2E / k->bandwidth),                                             \
      (u = SQRT(t), POWER(u) * fmaf(u, fmaf(u, 0.16015105f, 0.69314718f), 1.0f)))                                      \
    X(CAUCHY, 1 / (k->bandwidth * k->bandwidth), 32768.0f * RECIPROCAL(1.0f + t))

/* clang-format on */

/* ---- Definitions by kernel id; NaN for an unknown id or another pair form ---------------------------------------- */

#define MRC_CASE_DISTANCE(number, definition)  \
    case number: return definition(kernel, s); \
    case (int)MRC_SLOPES + (int)number:        \
        return definition##_slope(kernel, s);
#define MRC_CASE_DIFFERENCES(number, definition) MRC_CASE_DISTANCE(number, definition)
#define MRC_CASE_INNER(number, definition)
#define MRC_CASE_ANGLE(number, definition)
#define MRC_CASE(ID, definition, ARGUMENT, ...) MRC_CASE_##ARGUMENT(MRC_KERNEL_##ID, definition)
MRC_HD double mrc_formula_of_distance(const mercer_kernel *kernel, double s)
{
    switch (kernel->id) {
        MRC_KERNELS(MRC_CASE)
        default: return NAN;
    }
}
#undef MRC_CASE_DISTANCE
#undef MRC_CASE_DIFFERENCES
#undef MRC_CASE_INNER
#undef MRC_CASE_ANGLE

#define MRC_CASE_DISTANCE(number, definition)
#define MRC_CASE_DIFFERENCES(number, definition)
#define MRC_CASE_INNER(number, definition) \
    case number:                           \
        return definition(kernel, t, xx, zz);
#define MRC_CASE_ANGLE(number, definition) MRC_CASE_INNER(number, definition)
MRC_HD double mrc_formula_of_inner(const mercer_kernel *kernel, double t, double xx, double zz)
{
    switch (kernel->id) {
        MRC_KERNELS(MRC_CASE)
        default: return NAN;
    }
}
#undef MRC_CASE_DISTANCE
#undef MRC_CASE_DIFFERENCES
#undef MRC_CASE_INNER
#undef MRC_CASE_ANGLE
#undef MRC_CASE

#endif
