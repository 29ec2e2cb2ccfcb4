/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: each kernel function once. How a machine computes many values of them is the backends' part.
 *
 * formulas.h has every function once, in lists that the backends and the tests walk; table.h is the same list as a
 * table of names, parameters and ranges. Here: text to kernel and back, checks, questions about one, and the value in
 * scalar double that all other code is tested against.
 */
#ifndef MRC_KERNELS_KERNEL_H
#define MRC_KERNELS_KERNEL_H

#include "core/context.h"

#include <stdbool.h>

/*
 * The pair form of a kernel, what it is a function of: the squared L2 distance; the inner product with both squared
 * norms; or the sum of |x_k - z_k|^p, p not 2. Matrix products give the first two, the last is formed from differences.
 */
typedef enum mrc_argument { MRC_ON_DISTANCE, MRC_ON_INNER, MRC_ON_DIFFERENCES } mrc_argument;

/* "laplace:bandwidth=10" to a kernel and back; the contracts are those of mercer_kernel_parse and
   mercer_kernel_print. */
mercer_status mrc_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec);
mercer_status mrc_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text, size_t size,
                               size_t *needed);

/* The kernel is one we know and its parameters are in range; the message lists what is valid. */
mercer_status mrc_kernel_check(mercer_context *context, const mercer_kernel *kernel);

mrc_argument mrc_kernel_argument(const mercer_kernel *kernel);
/* p of the distance (sum_k |x_k - z_k|^p)^(1/p) that the kernel is a function of; 0: it is one of the inner product. */
double mrc_kernel_norm(const mercer_kernel *kernel);
/* A function of a distance, in any norm: K(x, x) is the same for all x, and for those of the list 1, the largest. */
bool mrc_kernel_is_stationary(const mercer_kernel *kernel);
/* The sum s = sum_k |x_k - z_k|^p that a distance in that norm is the 1/p-th power of, and that power. */
double mrc_difference_power(double norm, double difference);
double mrc_norm_root(double norm, double sum);
bool mrc_kernel_is_callback(const mercer_kernel *kernel);
/* Inner-product kernels of the angle, ill-conditioned where vectors are nearly parallel (ntk, nngp). */
bool mrc_kernel_is_angular(const mercer_kernel *kernel);

/* The slope of a function of the L2 distance, psi = -phi'(r) / r, or of the L1 distance, -phi'(r), as a function that
   backends compute as they do phi: false if it has none. It is neither parsed nor printed, and no kernel of a model. */
bool mrc_kernel_slope(const mercer_kernel *kernel, mercer_kernel *slope);
/* The number of the kernel whose slope this one is; its own if it is none. */
int32_t mrc_kernel_base(int32_t id);

/* The formulas, of sum = sum_k |x_k - z_k|^p >= 0 in the kernel's norm: for the L2 norm the squared distance. Not for
   callbacks. */
double mrc_kernel_of_distance(const mercer_kernel *kernel, double sum);
double mrc_kernel_of_inner(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm);

/* K(x, z) from the coordinates in double; false if a callback failed. Cost: O(d). */
bool mrc_kernel_reference(const mercer_kernel *kernel, int64_t d, const double *x, const double *z, double *out);

/* No inner product of rows of at most that squared norm, and no kernel value of them, is larger; infinity if that is
   not a number. For functions of the inner product. */
double mrc_kernel_largest(const mercer_kernel *kernel, double sqnorm);

/* The rows are finite, and kernel values of any two of them fit type `real` (f32 or f64); the message names a row and
   says what to do. For rows in host memory. */
mercer_status mrc_kernel_check_range(mercer_context *context, const mercer_kernel *kernel, const char *name,
                                     const mercer_matrix *x, mercer_dtype real);

#endif
