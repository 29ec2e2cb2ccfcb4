/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allowed error of a backend, derived from the arithmetic it promises; nothing here is fitted to results.
 *
 * Let u = 2^-24 (float) or 2^-53 (double) and g(k) = k u / (1 - k u). Terms of second order are covered by raising k by
 * one or two.
 *
 * Distances. An origin o is subtracted from both rows first: a = x - o, b = z - o, each coordinate rounded once. If a
 * backend may choose between origins, the larger error is allowed. Zero terms may be left out of any chain: they add no
 * error. Norms and inner products are single chains of d fused multiply-adds, and r^2 = (|a|^2 + |b|^2) - 2 a.b.
 * With S = |a|^2 + |b|^2 >= 2 |a||b|:
 *     coordinates   move a - b by at most u (|a| + |b|) in length:    2 r u (|a| + |b|)
 *     norms         g(d) S         product  2 g(d) |a||b| <= g(d) S         sum  u S        last step  u r^2
 *     e2 = 2 g(d + 2) S + u S + u r^2 + 2 r u (|a| + |b|),    error of r:  e2 / (r + sqrt(max(0, r^2 - e2)))
 * Pairs with computed r^2 <= near S (2^-10 float, 2^-20 double) are evaluated from their coordinates in double and
 * rounded once: r is off by u r. A pair counts as such only if it is one for every admissible rounding:
 * r^2 + e2 <= near S (1 - g(d + 2)).
 * Two matrices of bytes have exact integer distances, rounded once: u r. A search for nearest rows does not round
 * them. It may return another row than the reference only if the two distances differ by no more than their errors.
 *
 * Sums of |differences|^p. No origin is subtracted: each term is a difference that is rounded once, added to the sum so
 * far.
 *     p = 1         at most d roundings of a term (the first sum is exact), subnormal differences and sums are exact:
 *                   e = g(d) s. Bytes: integers below 2^24, exact in float, too
 *     other p       in double for any type of s: |t|^p = exp(l), l = p log |t|. With u = 2^-53, t is off by u, log by
 *                   1.6 ulp = 3.2 u of itself, the product by u, exp by 1.2 ulp = 2.4 u:  a term by
 *                   u (p + 4.2 |l| + 2.4), the sum by g(d) s; then one rounding to the type of s. Terms that underflow
 *                   lose at most the smallest double each. pow of the reference: 2 u.
 *     p = 1/2, 3/2  a square root and a product, u each, in place of 4.2 |l| + 2.4, here and in the reference
 * A user's function gets s^(1/p).
 *
 * Functions of the distance fall monotonically, so an error e of r changes them by at most
 * max(K(r - e) - K(r), K(r) - K(r + e)). Their own evaluation adds  K u (steps + 2 y)  where y, about -log K, is the
 * argument of exp, with a rounded constant and a rounded product. Steps:
 *     laplace, gaussian 3 (exp within one and a half ulp)   matern32 + 2   matern52 + 5
 *     cauchy, and all that are computed in double, 3
 * exppower, in the arithmetic of the points: y = (r/b)^g = exp(p) has p = g/2 log(r^2/b^2) off by u (2 + 4.8 |p|): two
 * roundings of its argument, 2.8 u of log (unit/test_exppower.c), a constant and a product. With 3 u of exp, y is off
 * by u y (5 + 4.8 |log y|). exppower-l1 is analogous with p = g log(s/b), g <= 1. lpq is computed in vectors of double,
 * with p = q/p' log(s b^-p'), q <= p': its definition has four roundings in the argument of its last power, and exp in
 * double is off by 2.4 u: 6.4 instead of 5. For rational-quadratic, also computed in vectors of double, y = alpha
 * log1p(t) is off by 7.2 u y: three roundings of t, 3.2 ulp of log1p, a product.
 * Where exp is subnormal it is off by up to 1.5 steps of the smallest float, which matern's polynomial then multiplies.
 *
 * Inner products: e_t = g(d) sum |x_k z_k|; bytes u |t|.
 *     linear        e_t + u |t|
 *     polynomial    base = s t + o is off by e = s e_t + u (|s t| + |o| + |base|),
 *                   the power by (|base| + e)^k (1 + g(k)) - |base|^k
 *     ntk, nngp     layer by layer, see angular_error. Pairs with t^2 > (1 - near) |x|^2 |z|^2 are evaluated from
 *                   coordinates in double.
 *
 * Products. y = sum_j w_j K_j: one chain over 240 centers at most in the arithmetic of K, chains added in double:
 *     sum |w_j| E_j  +  (g(240) + tiles 2^-53) sum |w_j| (|K_j| + E_j)  +  one rounding to the output
 * (and one more when added to Y).
 * The saved block of K is rounded to the type of W and summed over m rows in any order: g(max(240, m)) of that type
 * instead.
 *
 * Sums over pairs for a feature, of v t, t = |x - z|^n, n = 1 or 2: v is a product in double, rounded. t has 1 rounding
 * (n = 2: 3 with that of the difference); computed as t - |z|^n, its terms and difference have 4 of (|x - z|^n +
 * |z|^n). A sum of 32 rows of v has 31; a chain of 256 FMAs and two sums have 258. The total is at most g(296) sum |v|
 * (|x - z|^n + |z|^n) in the type of the points, and sums in double.
 *
 * The reference has errors of the same form with u = 2^-53; they are added. Each step of a chain may underflow: by at
 * most the smallest number of its type.
 */
#ifndef MRC_TESTS_BUDGET_H
#define MRC_TESTS_BUDGET_H

#include "backends/backend.h"
#include "support/kernel_table.h"

#include <math.h>

/* Arithmetic of kernel values. */
typedef struct arithmetic {
    double unit; /* unit roundoff u */
    double near;
    bool bytes; /* true: distances and products are exact integers */
} arithmetic;

static const arithmetic in_float = {0x1p-24, 0x1p-10, false};
static const arithmetic in_double = {0x1p-53, 0x1p-20, false};

/* Return the smallest positive number of the type with that unit roundoff. */
static inline double smallest_of(double unit)
{
    return unit < 0x1p-24 ? 0x1p-1074 : 0x1p-149;
}

enum { FEATURE_CHAIN = 296 };

static inline double gamma_k(double k, double unit)
{
    return k * unit / (1 - k * unit);
}

/* Sums over the coordinates of a pair of rows, in double. The rounding of these sums is far below u of float; for
   double the caller adds it. */
typedef struct pair_sums {
    double sqdist;     /* |x - z|^2 */
    double sum, logs;  /* s = sum |x_k - z_k|^p in the kernel's norm, and sum |x_k - z_k|^p |log |x_k - z_k|^p| */
    double a2, b2;     /* |x - o|^2, |z - o|^2 */
    double dot, terms; /* x.z and sum |x_k z_k| */
    double xx, zz;
} pair_sums;

/* Return whether powers with this exponent are computed without a logarithm. */
static inline bool by_roots(double norm)
{
    return norm == 0.5 || norm == 1 || norm == 1.5 || norm == 2;
}

static inline pair_sums pair_sums_of(double norm, int64_t d, const double *x, const double *z, const double *origin)
{
    pair_sums s = {0};
    for (int64_t k = 0; k < d; k++) {
        double o = origin ? origin[k] : 0, term = norm > 0 ? mrc_difference_power(norm, x[k] - z[k]) : 0;
        s.sum += term;
        s.logs += term > 0 && !by_roots(norm) ? term * fabs(log(term)) : 0;
        s.sqdist += (x[k] - z[k]) * (x[k] - z[k]);
        s.a2 += (x[k] - o) * (x[k] - o);
        s.b2 += (z[k] - o) * (z[k] - o);
        s.dot += x[k] * z[k];
        s.terms += fabs(x[k] * z[k]);
        s.xx += x[k] * x[k];
        s.zz += z[k] * z[k];
    }
    return s;
}

/* Return e2 of the formula above; 0 for pairs that are evaluated from their coordinates, and for bytes. */
static inline double products_error(const pair_sums *s, double d, const arithmetic *how)
{
    double u = how->unit, r = sqrt(s->sqdist), all = s->a2 + s->b2;
    if (how->bytes) return 0;
    double e2 = (2 * gamma_k(d + 2, u) + u) * all + u * s->sqdist + 2 * r * u * (sqrt(s->a2) + sqrt(s->b2));
    return s->sqdist + e2 <= how->near * all * (1 - gamma_k(d + 2, u)) ? 0 : e2;
}

static inline double distance_error(const pair_sums *s, double d, const arithmetic *how)
{
    double r = sqrt(s->sqdist), e2 = products_error(s, d, how);
    double exact = how->unit * r + gamma_k(d + 4, 0x1p-53) * r;
    return e2 > 0 ? e2 / (r + sqrt(fmax(0, s->sqdist - e2))) + exact : exact;
}

/* Return the allowed error of the squared distance that nearest_rows returns: integers are not rounded there. */
static inline double sqdistance_error(const pair_sums *s, double d, const arithmetic *how)
{
    if (how->bytes) return 0;
    return products_error(s, d, how) + (how->unit + 2 * gamma_k(d + 4, 0x1p-53)) * s->sqdist + smallest_of(how->unit);
}

/* Return the allowed error of s as a sum of |differences|^p, p not 2. */
static inline double sum_error(double norm, const pair_sums *s, double d, const arithmetic *how)
{
    double wide = 0x1p-53, reference = (gamma_k(d, wide) + (norm + 2) * wide) * s->sum;
    if (norm == 1) return how->bytes ? 0 : gamma_k(d, how->unit) * s->sum + gamma_k(d, wide) * s->sum;
    double evaluation = by_roots(norm) ? 2 : 2.4;
    double terms = wide * ((norm + evaluation) * s->sum + 4.2 * s->logs) + gamma_k(d, wide) * s->sum + d * 0x1p-1074;
    return reference + terms + how->unit * (s->sum + terms) + smallest_of(how->unit);
}

/* Return the allowed error of s as nearest_rows returns it, for any p. */
static inline double search_error(double norm, const pair_sums *s, double d, const arithmetic *how)
{
    return norm == 2 ? sqdistance_error(s, d, how) : sum_error(norm, s, d, how);
}

/* Return K(r) by the scalar formula; a callback kernel calls its function. */
static inline double value_at_distance(const mercer_kernel *kernel, double r)
{
    if (!mrc_kernel_is_callback(kernel)) return mrc_kernel_of_distance(kernel, r * r);
    mercer_kernel_block block = {sizeof block, 1, 1, 1, &r, NULL, NULL};
    kernel->callback(kernel->callback_user, &block);
    return r;
}

static inline double map_error(const mercer_kernel *k, double r, double value, double u)
{
    double v = r / k->bandwidth, y = FALLS_TO(value), steps = 3, factor = 1, roundings = 2; /* values for a callback */
    switch (k->id) {
#define ROUNDINGS(ID, wanted, slope, y_of_v, number, factor_of_y, of_y) \
    case MRC_KERNEL_##ID: y = y_of_v, steps = number, factor = factor_of_y, roundings = of_y; break;
        DISTANCE_KERNELS(ROUNDINGS)
        default: break;
    }
    /* The factor grows without bound only where exp has long become 0: at 104 in float, 745 in double. */
    bool gone = y > (u < 0x1p-24 ? 746 : 104);
    return value * u * (steps + roundings * y) + (gone ? 0 : 1.5 * factor * smallest_of(u));
}

static inline double distance_value_error(const mercer_kernel *kernel, const pair_sums *s, double d,
                                          const arithmetic *how)
{
    double r = sqrt(s->sqdist), value = value_at_distance(kernel, r);
    double e = distance_error(s, d, how) + gamma_k(d + 4, 0x1p-53) * r;
    double nearer = value_at_distance(kernel, fmax(0, r - e)) - value,
           farther = value - value_at_distance(kernel, r + e);
    return fmax(nearer, farther) + map_error(kernel, r, value, how->unit) + 2 * map_error(kernel, r, value, 0x1p-53);
}

static inline double differences_value_error(const mercer_kernel *kernel, const pair_sums *s, double d,
                                             const arithmetic *how)
{
    double norm = mrc_kernel_norm(kernel), e = sum_error(norm, s, d, how);
    double value = mrc_kernel_of_distance(kernel, s->sum), r = mrc_norm_root(norm, s->sum);
    double nearer = mrc_kernel_of_distance(kernel, fmax(0, s->sum - e)) - value,
           farther = value - mrc_kernel_of_distance(kernel, s->sum + e);
    return fmax(nearer, farther) + map_error(kernel, r, value, how->unit) + 2 * map_error(kernel, r, value, 0x1p-53);
}

/* Return the largest change of acos if its argument changes by at most e: acos is monotone, so two ends suffice. */
static inline double acos_change(double c, double e)
{
    double here = acos(fmax(-1, fmin(1, c)));
    return fmax(acos(fmax(-1, fmin(1, c - e))) - here, here - acos(fmax(-1, fmin(1, c + e))));
}

/*
 * Return the allowed error of ntk and nngp. It follows the layers of kernels/formulas.h with bounds e_s, e_t on the
 * errors of S and T. c = S / n is off by e_s / n and by the relative error of n; k0 = 1 - acos(c) / pi by the change of
 * acos; k1' = k0 <= 1, so k1 is off by the error of c, and by the rounding of 1 - c^2 under the root. With c = 1 - h (a
 * multiple of u) that rounding is at most min(h^2, u / 2), so the root is off by at most min(h^2, u / 2) / sqrt(2 h) <=
 * u^(3/4), and by u / (2 sqrt(1 - c^2)).
 */
static inline double angular_error(const mercer_kernel *kernel, const pair_sums *sums, double e_dot, double norm_error,
                                   double u)
{
    const double pi = 3.14159265358979323846;
    double v2 = kernel->bias * kernel->bias, s = sums->dot + v2, t = s;
    double e_s = e_dot + 2 * u * (fabs(sums->dot) + v2), e_t = e_s;
    for (int layer = 1; layer <= kernel->depth; layer++) {
        double n = sqrt((sums->xx + layer * v2) * (sums->zz + layer * v2));
        if (n == 0) return 0;
        double c = fmax(-1, fmin(1, s / n)), e_n = norm_error + 4 * u;
        double e_c = e_s / n + fabs(c) * e_n + 2 * u;
        double k0 = 1 - acos(c) / pi, root = sqrt(fmax(0, 1 - c * c)), k1 = c * k0 + root / pi;
        double e_k0 = acos_change(c, e_c) / pi + 3 * u;
        double e_k1 = e_c + fmin(u / (2 * fmax(root, 1e-300)), pow(u, 0.75)) + 4 * u;
        s = n * k1 + v2;
        e_s = n * (e_k1 + e_n * k1) + 3 * u * s;
        e_t = fabs(t) * e_k0 + e_t * (k0 + e_k0) + e_s + 3 * u * (fabs(t) * k0 + s);
        t = t * k0 + s;
    }
    return kernel->id == MRC_KERNEL_NTK ? e_t : e_s;
}

static inline double polynomial_error(const mercer_kernel *kernel, const pair_sums *s, double e_dot, double u)
{
    double base = fabs(kernel->scale * s->dot + kernel->offset);
    double e = kernel->scale * e_dot + u * (fabs(kernel->scale * s->dot) + kernel->offset + base);
    return pow(base + e, kernel->degree) * (1 + gamma_k(kernel->degree, u) + gamma_k(kernel->degree, 0x1p-53)) -
           pow(base, kernel->degree);
}

static inline double angular_value_error(const mercer_kernel *kernel, const pair_sums *s, double d, double e_dot,
                                         double e_reference, const arithmetic *how)
{
    double u = how->unit, norm_error = how->bytes ? 0 : gamma_k(d, u);
    double bound = s->xx * s->zz, low = fmax(0, fabs(s->dot) - e_dot), e_norm = 2 * norm_error;
    double exact = 2 * angular_error(kernel, s, e_reference, gamma_k(d + 2, 0x1p-53), 0x1p-53);
    bool near = low * low > (1 - how->near) * bound * (1 + e_norm);
    return exact + (near ? 0 : angular_error(kernel, s, e_dot, norm_error, u));
}

static inline double inner_value_error(const mercer_kernel *kernel, const pair_sums *s, double d, const arithmetic *how)
{
    double unit = how->unit, e_reference = gamma_k(d + 2, 0x1p-53) * s->terms;
    double e_dot = how->bytes ? unit * fabs(s->dot) : gamma_k(d, unit) * s->terms;
    double norm_error = how->bytes ? 0 : gamma_k(d, unit);
    switch (kernel->id) {
#define ALLOWED(ID, allowed) \
    case MRC_KERNEL_##ID: return allowed;
        INNER_KERNELS(ALLOWED)
        default: break;
    }
    /* The callback of cases.h: K = t / (1 + |x||z|), and |t| <= |x||z|, so an error of the norms counts at most in
       full. */
    return (e_dot + e_reference) / (1 + sqrt(s->xx * s->zz)) + norm_error + gamma_k(d + 8, 0x1p-53) + 8 * unit;
}

/* Return the bound of |computed - reference| for one kernel value, before it is rounded to the output type. */
static inline double value_error(const mercer_kernel *kernel, int64_t d, const double *x, const double *z,
                                 const double *origin, const arithmetic *how)
{
    pair_sums s = pair_sums_of(mrc_kernel_norm(kernel), d, x, z, origin);
    if (mrc_kernel_argument(kernel) == MRC_ON_DISTANCE) return distance_value_error(kernel, &s, (double)d, how);
    if (mrc_kernel_argument(kernel) == MRC_ON_DIFFERENCES) return differences_value_error(kernel, &s, (double)d, how);
    return inner_value_error(kernel, &s, (double)d, how);
}

#endif
