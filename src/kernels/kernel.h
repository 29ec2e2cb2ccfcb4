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

/* What a kernel is a function of: the squared L2 distance, or the inner product with both squared norms. */
typedef enum mrc_argument { MRC_ON_DISTANCE, MRC_ON_INNER } mrc_argument;

/* "laplace:bandwidth=10" to a kernel and back; the contracts are those of mercer_kernel_parse and
   mercer_kernel_print. */
mercer_status mrc_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec);
mercer_status mrc_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text, size_t size,
                               size_t *needed);

/* The kernel is one we know and its parameters are in range; the message lists what is valid. */
mercer_status mrc_kernel_check(mercer_context *context, const mercer_kernel *kernel);

mrc_argument mrc_kernel_argument(const mercer_kernel *kernel);
bool mrc_kernel_is_callback(const mercer_kernel *kernel);
/* Inner-product kernels of the angle, ill-conditioned where vectors are nearly parallel (ntk, nngp). */
bool mrc_kernel_is_angular(const mercer_kernel *kernel);

/* The slope psi = -phi'(r) / r of a function of the distance, as a function that backends compute as they do phi: false
   if it has none (functions of the inner product, callbacks). It is neither parsed nor printed, and is no kernel of a
   model. */
bool mrc_kernel_slope(const mercer_kernel *kernel, mercer_kernel *slope);
/* The number of the kernel whose slope this one is; its own if it is none. */
int32_t mrc_kernel_base(int32_t id);

/* The formulas. sqdist >= 0. Not for callbacks. */
double mrc_kernel_of_distance(const mercer_kernel *kernel, double sqdist);
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
