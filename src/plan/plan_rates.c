/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The speed of this machine, measured: flops per second of a product of two SIZE x SIZE matrices in double, the best of
 * three. It takes a few milliseconds. Predictions of time use it; decisions about a model do not, because they must not
 * depend on a clock.
 */
#include "plan/plan.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>

enum { SIZE = 384, REPEATS = 3 };

mercer_status mrc_plan_measure(mercer_context *context, double *flops_per_second)
{
    mrc_backend *backend = context->backend;
    mercer_matrix host, a, b, c;
    double least = (double)INFINITY;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &host, SIZE, SIZE, MERCER_F64, "a measurement"));
    for (int64_t i = 0; i < SIZE; i++)
        for (int64_t j = 0; j < SIZE; j++) mrc_store(&host, i, j, 1.0 / (double)(1 + i + j));
    mercer_matrix *const all[] = {&a, &b, &c};
    for (int k = 0; k < 3; k++) {
        MRC_TRY(mrc_scope_matrix(&scope, backend, all[k], SIZE, SIZE, MERCER_F64, "a measurement"));
        MRC_TRY(backend->ops->copy(backend, all[k], &host));
    }
    for (int k = 0; k < REPEATS; k++) {
        mrc_gemm job = {.alpha = 1, .a = &a, .b = &b, .c = &c};
        double start = mrc_seconds();
        MRC_TRY(backend->ops->gemm(backend, &job));
        MRC_TRY(backend->ops->copy(backend, &host, &c)); /* waits for a device */
        least = fmin(least, mrc_seconds() - start);
    }
    *flops_per_second = 2.0 * SIZE * SIZE * SIZE / fmax(least, 1e-9);
    return MERCER_OK;
}
