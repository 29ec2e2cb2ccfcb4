/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel functions, in scalar double: the definition that all other code is measured by.
 *
 * Functions of the distance, with s = r^2 = |x - z|^2 and bandwidth b:
 *
 *   laplace     exp(-r/b)                       matern32  (1 + u) exp(-u),            u = sqrt(3) r/b
 *   gaussian    exp(-s / (2 b^2))               matern52  (1 + u + u^2/3) exp(-u),    u = sqrt(5) r/b
 *   exppower    exp(-(r/b)^gamma)               cauchy    1 / (1 + s/b^2)
 *   rational-quadratic  (1 + s / (2 alpha b^2))^-alpha
 *
 * All are 1 at r = 0 and positive semi-definite in every dimension (exppower for 0 < gamma <= 2).
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
 *   nngp = S_L, ntk = T_L (Jacot et al. 2018). A zero vector without bias has S_l = T_l = 0, the limit.
 *
 * Caveats: near c = 1, acos(c) is about sqrt(2 (1 - c)): an error e in c becomes sqrt(e) in the result, so fast code
 * must evaluate nearly parallel pairs from accurate inner products.
 */
#include "kernels/table.h"

#include <math.h>

#define PI 3.14159265358979323846

static double laplace(const mercer_kernel *kernel, double sqdist)
{
    return exp(-sqrt(sqdist) / kernel->bandwidth);
}

static double gaussian(const mercer_kernel *kernel, double sqdist)
{
    return exp(-0.5 * (sqdist / kernel->bandwidth / kernel->bandwidth)); /* b^2 might underflow */
}

static double matern32(const mercer_kernel *kernel, double sqdist)
{
    double u = sqrt(3 * sqdist) / kernel->bandwidth;
    double decay = exp(-u);
    return decay > 0 ? (1 + u) * decay : 0; /* infinity * 0 would be NaN */
}

static double matern52(const mercer_kernel *kernel, double sqdist)
{
    double u = sqrt(5 * sqdist) / kernel->bandwidth;
    double decay = exp(-u);
    return decay > 0 ? (1 + u + u * u / 3) * decay : 0;
}

static double exppower(const mercer_kernel *kernel, double sqdist)
{
    return exp(-pow(sqrt(sqdist) / kernel->bandwidth, kernel->gamma));
}

static double cauchy(const mercer_kernel *kernel, double sqdist)
{
    return 1 / (1 + sqdist / kernel->bandwidth / kernel->bandwidth);
}

static double rational_quadratic(const mercer_kernel *kernel, double sqdist)
{
    double a = kernel->alpha, b = kernel->bandwidth;
    return exp(-a * log1p(sqdist / b / b / (2 * a)));
}

static double polynomial(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm)
{
    (void)x_sqnorm, (void)z_sqnorm;
    double base = kernel->scale * dot + kernel->offset, power = 1;
    for (int32_t i = 0; i < kernel->degree; i++) power *= base;
    return power;
}

static double linear(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm)
{
    (void)kernel, (void)x_sqnorm, (void)z_sqnorm;
    return dot;
}

/* One pass over the layers gives both: S_L and T_L. */
static void relu_layers(const mercer_kernel *kernel, double dot, double xx, double zz, double *nngp, double *ntk)
{
    double variance = kernel->bias * kernel->bias;
    double s = dot + variance, t = s;
    bool same =
        dot == xx && dot == zz; /* coincident vectors: the angle is 0 in every layer, whatever the roundings say */
    for (int32_t layer = 1; layer <= kernel->depth; layer++) {
        double x_norm = xx + layer * variance, z_norm = zz + layer * variance;
        double norms = same ? x_norm : sqrt(x_norm) * sqrt(z_norm); /* the product itself might overflow */
        double c = same || norms == 0 ? 1 : s / norms;
        c = c > 1 ? 1 : c < -1 ? -1 : c;
        double k0 = 1 - acos(c) / PI;
        double k1 = c * k0 + sqrt(1 - c * c) / PI;
        s = norms * k1 + variance;
        t = t * k0 + s;
    }
    *nngp = s;
    *ntk = t;
}

static double relu_ntk(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm)
{
    double nngp, ntk;
    relu_layers(kernel, dot, x_sqnorm, z_sqnorm, &nngp, &ntk);
    return ntk;
}

static double relu_nngp(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm)
{
    double nngp, ntk;
    relu_layers(kernel, dot, x_sqnorm, z_sqnorm, &nngp, &ntk);
    return nngp;
}

/* ---- The table ----------------------------------------------------------------------------------------------- */

/* clang-format off */
#define AT(field) offsetof(mercer_kernel, field)
#define BANDWIDTH {"bandwidth", AT(bandwidth), MRC_REAL, true, false, 0, 1e300, 0}
#define DEPTH     {"depth", AT(depth), MRC_WHOLE, false, true, 1, 64, 1}
#define BIAS      {"bias", AT(bias), MRC_REAL, false, true, 0, 1e100, 0}

/* Steepness: laplace |K'| = 1/b at 0; gaussian e^-1/2 at r = b; matern32 3u e^-u / (b sqrt 3) at u = 1; ... */
const mrc_kernel_entry mrc_kernel_table[] = {
    {{"laplace", "laplace:bandwidth=10", {BANDWIDTH}}, MERCER_KERNEL_LAPLACE, MRC_ON_DISTANCE, false, laplace, NULL,
     1.0},
    {{"gaussian", "gaussian:bandwidth=5", {BANDWIDTH}}, MERCER_KERNEL_GAUSSIAN, MRC_ON_DISTANCE, false, gaussian, NULL,
     0.6065306597126334},
    {{"matern32", "matern32:bandwidth=8", {BANDWIDTH}}, MERCER_KERNEL_MATERN32, MRC_ON_DISTANCE, false, matern32, NULL,
     0.63719},
    {{"matern52", "matern52:bandwidth=8", {BANDWIDTH}}, MERCER_KERNEL_MATERN52, MRC_ON_DISTANCE, false, matern52, NULL,
     0.62609},
    {{"exppower", "exppower:bandwidth=10,gamma=0.7", {BANDWIDTH, {"gamma", AT(gamma), MRC_REAL, true, false, 0, 2, 0}}},
     MERCER_KERNEL_EXPPOWER, MRC_ON_DISTANCE, false, exppower, NULL, 0},
    {{"cauchy", "cauchy:bandwidth=10", {BANDWIDTH}}, MERCER_KERNEL_CAUCHY, MRC_ON_DISTANCE, false, cauchy, NULL,
     0.6495190528383290},
    {{"rational-quadratic", "rational-quadratic:bandwidth=10,alpha=0.5",
      {BANDWIDTH, {"alpha", AT(alpha), MRC_REAL, false, false, 0, 1e100, 1}}},
     MERCER_KERNEL_RATIONAL_QUADRATIC, MRC_ON_DISTANCE, false, rational_quadratic, NULL, 0.6065306597126334},
    {{"polynomial", "polynomial:degree=3,scale=0.01,offset=1",
      {{"degree", AT(degree), MRC_WHOLE, false, true, 1, 64, 3},
       {"scale", AT(scale), MRC_REAL, false, false, 0, 1e100, 1},
       {"offset", AT(offset), MRC_REAL, false, true, 0, 1e100, 1}}},
     MERCER_KERNEL_POLYNOMIAL, MRC_ON_INNER, false, NULL, polynomial, 0},
    {{"linear", "linear", {{0}}}, MERCER_KERNEL_LINEAR, MRC_ON_INNER, false, NULL, linear, 0},
    {{"ntk", "ntk:depth=2,bias=0.1", {DEPTH, BIAS}}, MERCER_KERNEL_NTK, MRC_ON_INNER, true, NULL, relu_ntk, 0},
    {{"nngp", "nngp:depth=2,bias=0.1", {DEPTH, BIAS}}, MERCER_KERNEL_NNGP, MRC_ON_INNER, true, NULL, relu_nngp, 0},
};
/* clang-format on */
const int mrc_kernel_table_size = sizeof mrc_kernel_table / sizeof *mrc_kernel_table;

const mrc_kernel_entry *mrc_kernel_find(int32_t id)
{
    for (int i = 0; i < mrc_kernel_table_size; i++)
        if ((int32_t)mrc_kernel_table[i].id == id) return &mrc_kernel_table[i];
    return NULL;
}
