/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: kernel functions, kernel matrices and products.
 *
 * The operations of a backend expect checked arguments: kernel, views, sizes and overlap are checked here. The values
 * of X, Z and W are checked last, because that reads the matrices, possibly in device memory.
 */
#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "kernels/table.h"

#include <float.h>
#include <math.h>

mercer_matrix mercer_matrix_view(void *data, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    return mrc_view(data, rows, cols, dtype);
}

int mercer_kernel_list(mercer_kernel_info *out, int index)
{
    mercer_kernel_info info = {.struct_size = sizeof info};
    _Static_assert(sizeof info.parameters / sizeof *info.parameters == MRC_SPEC_PARAMETERS, "all parameters fit");
    if (index < 0 || index >= mrc_kernel_table_size) return 0;
    info.name = mrc_kernel_table[index].form.name;
    info.example = mrc_kernel_table[index].form.example;
    for (int i = 0; i < MRC_SPEC_PARAMETERS; i++) info.parameters[i] = mrc_kernel_table[index].form.parameters[i].name;
    return mrc_write_struct(NULL, out, &info, MRC_STRUCT(mercer_kernel_info), "out") == MERCER_OK;
}

/* mrc_kernel_parse and mrc_kernel_print check their own arguments, because other folders call them with texts of the
   caller, too. */
mercer_status mercer_kernel_parse(mercer_kernel *out, mercer_context *context, const char *spec)
{
    return mrc_kernel_parse(context, out, spec);
}

mercer_status mercer_kernel_print(mercer_context *context, char *text, size_t size, size_t *needed,
                                  const mercer_kernel *kernel)
{
    return mrc_kernel_print(context, kernel, text, size, needed);
}

mercer_status mercer_kernel_from_callback(mercer_kernel *out, mercer_context *context, mercer_kernel_id on,
                                          mercer_kernel_callback callback, void *user)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!callback) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "callback is NULL");
    if (on != MERCER_KERNEL_CALLBACK_DISTANCE && on != MERCER_KERNEL_CALLBACK_INNER)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "on is %d; use MERCER_KERNEL_CALLBACK_DISTANCE or MERCER_KERNEL_CALLBACK_INNER", (int)on);
    *out = (mercer_kernel){.id = (int32_t)on, .callback = callback, .callback_user = user};
    return MERCER_OK;
}

/* ---- Checks -------------------------------------------------------------------------------------------------- */

/* Checks the kernel, and type, memory and columns of X and Z. */
static mercer_status check_points(mercer_context *context, const mercer_kernel *kernel, const mercer_matrix *X,
                                  const mercer_matrix *Z)
{
    MRC_TRY(mrc_kernel_check(context, kernel));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "Z", Z, MRC_ACCEPT_ANY));
    if (X->cols == Z->cols) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_SHAPE,
                    "X has %lld columns, but Z has %lld; they must have the same "
                    "features",
                    (long long)X->cols, (long long)Z->cols);
}

/*
 * Checks that all values are finite and, for functions of the inner product, that no product of two rows can overflow
 * the arithmetic and become infinite or NaN. Distances that overflow are harmless: kernels with a moderate bandwidth
 * are 0 there, and others are computed in double.
 */
static mercer_status check_values(mercer_context *context, const mercer_kernel *kernel, const mercer_matrix *X,
                                  const mercer_matrix *Z, mercer_dtype arithmetic)
{
    double x_top, z_top;
    MRC_TRY(mrc_matrix_check_finite(context->backend, "X", X, &x_top));
    MRC_TRY(mrc_matrix_check_finite(context->backend, "Z", Z, &z_top));
    if (mrc_kernel_is_stationary(kernel)) return MERCER_OK;
    double top = fmax(x_top, z_top), limit = arithmetic == MERCER_F64 ? DBL_MAX : (double)FLT_MAX;
    if (mrc_kernel_largest(kernel, top * top * (double)X->cols) <= limit) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA,
                    "X or Z has values up to %g, so inner products of %lld features could overflow %s; scale the "
                    "data%s",
                    top, (long long)X->cols, arithmetic == MERCER_F64 ? "f64" : "f32",
                    arithmetic == MERCER_F64 ? "" : " or use f64");
}

/* Waits until a result in device memory is complete, so that the caller may read it in any stream. Returns `status` if
   that is a failure. */
static mercer_status arrived(mercer_context *context, const mercer_matrix *out, mercer_status status)
{
    if (status != MERCER_OK || out->memory == MRC_HOST) return status;
    return context->backend->ops->sync(context->backend);
}

/* ---- Values, matrices, products ------------------------------------------------------------------------------ */

/* K must not overlap X or Z: the backend reads the points while it writes blocks of K. */
mercer_status mercer_kernel_eval(mercer_context *context, const mercer_matrix *K, const mercer_kernel *kernel,
                                 const mercer_matrix *X, const mercer_matrix *Z)
{
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(check_points(context, kernel, X, Z));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "K", K, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "K", K, X->rows, Z->rows));
    MRC_TRY(mrc_check_apart(context, "K", K, "X", X));
    MRC_TRY(mrc_check_apart(context, "K", K, "Z", Z));
    MRC_TRY(check_values(context, kernel, X, Z, mrc_value_dtype(X, Z, K, NULL)));
    mrc_pair pair = {.kernel = kernel, .x = X, .z = Z};
    return arrived(context, K, context->backend->ops->kernel_eval(context->backend, &pair, K));
}

/* Uses half precision only if the context has arithmetic fast. With "auto", only the plan of a training run may choose
   half precision. W is checked for finite values, because 0 times infinity would be NaN even where the kernel is 0. */
mercer_status mercer_kernel_matmul(mercer_context *context, const mercer_matrix *Y, const mercer_kernel *kernel,
                                   const mercer_matrix *X, const mercer_matrix *Z, const mercer_matrix *W)
{
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(check_points(context, kernel, X, Z));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "W", W, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "Y", Y, MRC_ACCEPT_REAL));
    if (W->rows != Z->rows)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "W has %lld rows, but Z has %lld; each center needs a row of "
                        "weights",
                        (long long)W->rows, (long long)Z->rows);
    MRC_TRY(mrc_check_size(context, "Y", Y, X->rows, W->cols));
    MRC_TRY(mrc_check_apart(context, "Y", Y, "X", X));
    MRC_TRY(mrc_check_apart(context, "Y", Y, "Z", Z));
    MRC_TRY(mrc_check_apart(context, "Y", Y, "W", W));
    MRC_TRY(check_values(context, kernel, X, Z, mrc_value_dtype(X, Z, W, Y)));
    MRC_TRY(mrc_matrix_check_finite(context->backend, "W", W, NULL));
    mrc_pair pair = {.kernel = kernel, .x = X, .z = Z, .half = context->arithmetic == MRC_FAST};
    return arrived(context, Y, context->backend->ops->kernel_matmul(context->backend, &pair, W, Y, false));
}

mercer_status mercer_kernel_diagonal(mercer_context *context, const mercer_matrix *D, const mercer_kernel *kernel,
                                     const mercer_matrix *X)
{
    MRC_TRY(mrc_context_ready(context));
    MRC_TRY(check_points(context, kernel, X, X));
    MRC_TRY(mrc_backend_check_matrix(context->backend, "D", D, MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "D", D, X->rows, 1));
    MRC_TRY(mrc_check_apart(context, "D", D, "X", X));
    MRC_TRY(check_values(context, kernel, X, X, mrc_value_dtype(X, D, NULL, NULL)));
    return arrived(context, D, context->backend->ops->kernel_diagonal(context->backend, kernel, X, D));
}

/* Times products with random points of the given sizes; the caller's data are not needed. */
mercer_status mercer_measure_speed(mercer_context *context, mercer_speed *out, const mercer_kernel *kernel,
                                   const mercer_shape *shape)
{
    MRC_TRY(mrc_context_ready(context));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!shape) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "shape is NULL");
    mercer_shape sizes;
    mercer_speed found = {.struct_size = sizeof found};
    MRC_TRY(mrc_kernel_check(context, kernel));
    MRC_TRY(mrc_read_shape(context, &sizes, shape));
    MRC_TRY(mrc_measure_speed(context->backend, &found, kernel, &sizes));
    return mrc_write_struct(context, out, &found, MRC_STRUCT(mercer_speed), "out");
}
