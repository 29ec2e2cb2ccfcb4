/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: definitions of the kernel functions. The backends compute many values of them efficiently.
 *
 * formulas.h defines every function in one place, in lists that the backends and the tests expand; table.h has the same
 * list as a table of names, parameters and ranges. This header declares parsing and printing, checks, properties of a
 * kernel, and the reference value in scalar double that all other code is tested against.
 */
#ifndef MRC_KERNELS_KERNEL_H
#define MRC_KERNELS_KERNEL_H

#include "core/context.h"

#include <stdbool.h>

/*
 * Pair form of a kernel, i.e. its argument: the squared L2 distance; the inner product and both squared norms; or the
 * sum of |x_k - z_k|^p with p < 2. Matrix products give the first two; the last is formed from differences.
 */
typedef enum mrc_argument { MRC_ON_DISTANCE, MRC_ON_INNER, MRC_ON_DIFFERENCES } mrc_argument;

/* Convert "laplace:bandwidth=10" to a kernel and back; contracts as for mercer_kernel_parse and mercer_kernel_print. */
mercer_status mrc_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec);
mercer_status mrc_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text, size_t size,
                               size_t *needed);

/* Checks that the kernel is known, or has a callback, and that its parameters are in range; the message lists what is
   valid. */
mercer_status mrc_kernel_check(mercer_context *context, const mercer_kernel *kernel);

mrc_argument mrc_kernel_argument(const mercer_kernel *kernel);
/* Returns p of the distance (sum_k |x_k - z_k|^p)^(1/p) that the kernel depends on; 0 for functions of the inner
   product. */
double mrc_kernel_norm(const mercer_kernel *kernel);
/* Returns whether the kernel is a function of a distance, in any norm. K(x, x) is then the same for all x; for built-in
   kernels it is 1, their largest value. */
bool mrc_kernel_is_stationary(const mercer_kernel *kernel);
/* With p = norm: mrc_difference_power returns |difference|^p, one term of s = sum_k |x_k - z_k|^p; mrc_norm_root
   returns the distance s^(1/p). */
double mrc_difference_power(double norm, double difference);
double mrc_norm_root(double norm, double sum);
bool mrc_kernel_is_callback(const mercer_kernel *kernel);
/* Returns whether the kernel is a function of the angle (ntk, nngp), which is ill-conditioned for nearly parallel
   vectors. */
bool mrc_kernel_is_angular(const mercer_kernel *kernel);

/* Sets *slope to the slope of a built-in kernel phi(r): -phi'(r) / r for the L2 distance r, -phi'(r) for the L1
   distance r. Backends compute slopes like kernels, but slopes cannot be parsed, printed or used in a model. Returns
   false for all other kernels. */
bool mrc_kernel_slope(const mercer_kernel *kernel, mercer_kernel *slope);
/* Returns the id of the kernel that a slope belongs to; any other id is returned unchanged. */
int32_t mrc_kernel_base(int32_t id);

/* Evaluate a kernel's definition, as a function of sum = sum_k |x_k - z_k|^p >= 0 (L2: the squared distance), or of the
   inner product and the squared norms. Not for callbacks. */
double mrc_kernel_of_distance(const mercer_kernel *kernel, double sum);
double mrc_kernel_of_inner(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm);

/* Computes K(x, z) from coordinates (d) in double. Returns false if a callback fails. Cost: O(d). */
bool mrc_kernel_reference(const mercer_kernel *kernel, int64_t d, const double *x, const double *z, double *out);

/* For functions of the inner product: returns an upper bound of the inner products and kernel values of rows with at
   most this squared norm; infinity instead of NaN. For a callback only the inner products are bounded. */
double mrc_kernel_largest(const mercer_kernel *kernel, double sqnorm);

/* Checks that rows, in host memory, are finite and that kernel values of any two of them fit type `real` (f32 or f64);
   the message names a row and suggests a remedy. */
mercer_status mrc_kernel_check_range(mercer_context *context, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real);

#endif
