/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What more centers bring. A search tried its best with p/4, p/2 and p centers: errors e0, e1, e2. Each doubling is
 * taken to bring rho = (e1 - e2) / (e0 - e1) of what the one before brought, which holds for errors a + b P^-s. So with
 * P centers
 *
 *     e(P) = e2 - (e1 - e2) rho (1 - rho^k) / (1 - rho),   k = log2(P / p)
 */
#include "tune/tune.h"

#include <math.h>

#define MOST_RHO 0.9 /* errors that fall by the same at each doubling would not end above 0 */

double mrc_tune_error_with(const mrc_tune_result *found, int64_t centers)
{
    const double *e = found->center_errors;
    double before = e[0] - e[1], last = e[1] - e[2], rho = before > 0 ? fmin(last / before, MOST_RHO) : MOST_RHO;
    if (found->centers[0] == 0) return (double)NAN;
    if (!(last > 0)) return e[2];
    double k = log2((double)centers / (double)found->centers[2]);
    return fmax(0, e[2] - last * rho * (1 - pow(rho, k)) / (1 - rho));
}

double mrc_tune_gain(const mrc_tune_result *found, int64_t centers, int64_t more)
{
    double error = mrc_tune_error_with(found, centers);
    return error > 0 ? (error - mrc_tune_error_with(found, more)) / error : (double)NAN;
}
