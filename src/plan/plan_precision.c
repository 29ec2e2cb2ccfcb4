/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Automatic half precision. With arithmetic "auto" the plan decides whether a training run may round its products to
 * half precision (arithmetic "fast"); the trainer then checks that the result is accurate enough.
 *
 * Error of a kernel value, for kernels with values up to 1. With u = 2^-11, halves have relative errors up to u,
 * assumed to be independent and uniformly distributed: variance u^2 / 3.
 *
 *   value        rounded to half                                         u^2 / 3
 *   coordinates  r = |x - z| changes by sum_k (x_k - z_k) (e_k - f_k) / r, where e and f are the errors of x and z:
 *                variance u^2 / 3 times the mean of x_k^2 + z_k^2 with weights (x_k - z_k)^2 / r^2. In units of the
 *                bandwidth no slope of the functions exceeds 1 (0.61 to 0.65, laplace 1): at most u^2 / 3 2 M^2, where
 *                M^2 = sum_k x_k^4 / sum_k x_k^2 is that mean as seen from the origin. Bytes have exact distances: 0
 *   sums         in float over up to 4,096 centers, with weights of 22 bits: about 2^-18, negligible
 *
 * so that error = u / sqrt(3) sqrt(1 + 2 M^2): 2.8e-4 for bytes. Even a mean of n samples is uncertain by 1 / sqrt(n)
 * of their standard deviation, so smaller errors than that are harmless. This assumes that the targets have noise,
 * which is checked after training:
 *
 *   |f_fast - f_accurate|^2  <=  sqrt(2 / n) / 10  |f_accurate - y|^2      on held-out rows
 *
 * The relative uncertainty of a loss on n rows is sqrt(2 / n). Rounding errors are independent of the targets and add
 * their mean square to the loss, so the limit is a tenth of what could be detected.
 */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>

#define HALF_UNIT 0x1p-11
#define FARTHEST  500.0 /* largest coordinate, in bandwidths, that a half can hold */
/* largest mean squared change by rounding, as a share of the statistical uncertainty of the loss */
#define SHARE_OF_DOUBT 0.1

double mrc_rounding_error(double coordinates)
{
    return HALF_UNIT * sqrt((1 + 2 * coordinates) / 3);
}

double mrc_rounding_limit(int64_t n)
{
    return SHARE_OF_DOUBT * sqrt(2 / (double)n);
}

/* Bytes are exact in half precision, so only their kernel values are rounded. */
static double request_error(const mrc_plan_request *request)
{
    return mrc_rounding_error(request->points == MERCER_U8 ? 0 : request->coordinates);
}

/* Returns whether products must not be rounded, with the reason in `why`. */
static bool must_be_accurate(const mrc_plan_request *request, const mrc_solver *row, char *why, size_t size)
{
    double justified = 1 / sqrt((double)request->n);
    const char *reason = request->accurate                 ? request->accurate
                         : !(row->traits & MRC_USES_STEPS) ? "the solver reaches errors below half precision"
                         : request->options->polish > 0    ? "polishing reaches errors below half precision"
                         : request->real == MERCER_F64 || request->points == MERCER_F64 ? "double precision"
                         : request->streaming ? "single batches provide no rows to check half precision"
                                              : NULL;
    if (reason)
        snprintf(why, size, "%s", reason);
    else if (request->points != MERCER_U8 && request->farthest > FARTHEST)
        snprintf(why, size,
                 "a coordinate is %.0f bandwidths from the origin, above the limit of %.0f for half precision",
                 request->farthest, FARTHEST);
    else if (request_error(request) > justified)
        snprintf(why, size, "the error of half precision, %.1e, is above the limit of %.1e for %lld samples",
                 request_error(request), justified, (long long)request->n);
    else
        return false;
    return true;
}

bool mrc_plan_rounds(const mrc_plan_request *request, const mrc_solver *row)
{
    char why[MRC_ERROR_CHARS];
    return request->machine.arithmetic == MRC_BY_PLAN && request->gains_by_half &&
           !must_be_accurate(request, row, why, sizeof why);
}

void mrc_plan_say_precision(const mrc_plan_request *request, mrc_plan *plan)
{
    char why[MRC_ERROR_CHARS];
    if (request->machine.arithmetic != MRC_BY_PLAN || !request->gains_by_half) return;
    if (must_be_accurate(request, plan->solver, why, sizeof why))
        mrc_plan_say(&plan->public_plan, "arithmetic accurate: %s\n", why);
    else
        mrc_plan_say(&plan->public_plan,
                     "arithmetic fast: the error, about %.1e, is below the limit of %.1e for %lld samples; to be "
                     "confirmed on held-out rows\n",
                     request_error(request), 1 / sqrt((double)request->n), (long long)request->n);
}
