/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: preprocessing of features. */
#include "data/prepare/preprocess.h"

#include "core/matrix.h"
#include "data/dataset.h"
#include "features/metric.h"
#include "kernels/kernel.h"

static mercer_status check_arguments(mercer_preprocess **out, mercer_context *context, const char *spec)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    return MERCER_OK;
}

mercer_status mercer_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                    mercer_dataset *dataset)
{
    MRC_TRY(check_arguments(out, context, spec));
    return mrc_preprocess_fit(out, context, spec, dataset);
}

mercer_status mercer_preprocess_fit_matrix(mercer_preprocess **out, mercer_context *context, const char *spec,
                                           const mercer_matrix *X)
{
    MRC_TRY(check_arguments(out, context, spec));
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    return mrc_preprocess_fit_matrix(out, context, spec, X);
}

mercer_status mercer_preprocess_fold(mercer_preprocess *preprocess, mercer_kernel *kernel, int *folded)
{
    if (!preprocess) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "preprocess is NULL");
    mercer_context *context = preprocess->context;
    MRC_TRY(mrc_kernel_check(context, kernel));
    if (preprocess->folded)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "preprocess: its factor is in a kernel's bandwidth already; fit another for this kernel");
    bool possible = mrc_preprocess_fold(preprocess, kernel);
    if (folded) *folded = possible;
    return MERCER_OK;
}

const mercer_kernel *mercer_preprocess_kernel(const mercer_preprocess *preprocess)
{
    return preprocess && preprocess->folded ? &preprocess->kernel : NULL;
}

const char *mercer_preprocess_spec(const mercer_preprocess *preprocess)
{
    return preprocess ? preprocess->spec : "none";
}

mercer_matrix mercer_preprocess_metric(const mercer_preprocess *preprocess)
{
    const mrc_linear_map *map = preprocess ? preprocess->map : NULL;
    if (!map) return (mercer_matrix){0};
    return mrc_view(map->values, map->diagonal ? 1 : map->features, map->width, MERCER_F64);
}

mercer_status mercer_preprocess_set_metric(mercer_preprocess *preprocess, const mercer_matrix *metric, int64_t features)
{
    if (!preprocess) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "preprocess is NULL");
    mercer_context *context = preprocess->context;
    if (features < 1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "features is %lld, it must be at least 1", (long long)features);
    if (preprocess->features > 0 && preprocess->features != features)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "features is %lld, the preprocessing was fitted to %lld",
                        (long long)features, (long long)preprocess->features);
    if (preprocess->folded)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "preprocess: its factor is in a kernel's bandwidth; set the metric before it is folded");
    mrc_metric made;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_metric_given(&made, &scope, context->backend, features, metric));
    return mrc_preprocess_set_map(preprocess, features, made.width, made.diagonal, made.map);
}

mercer_status mercer_preprocess_apply(const mercer_preprocess *preprocess, const mercer_matrix *out,
                                      const mercer_matrix *X)
{
    if (!preprocess) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "preprocess is NULL");
    mercer_context *context = preprocess->context;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    int64_t fitted = mrc_preprocess_features(preprocess);
    if (fitted > 0 && X->cols != fitted)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld columns, the preprocessing was fitted to %lld",
                        (long long)X->cols, (long long)fitted);
    bool as_it_is = out && out->dtype == X->dtype && mrc_preprocess_is_identity(preprocess);
    MRC_TRY(mrc_check_matrix(context, "out", out, as_it_is ? MRC_ACCEPT_ANY : MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "out", out, X->rows, mrc_preprocess_width(preprocess, X->cols)));
    MRC_TRY(mrc_check_apart(context, "out", out, "X", X));
    mrc_preprocess_rows(preprocess, out, X);
    return MERCER_OK;
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

const char *mercer_preprocess_auto(const char *format, mercer_dtype dtype)
{
    return mrc_preprocess_auto(format, dtype);
}

void mercer_preprocess_free(mercer_preprocess *self)
{
    mrc_preprocess_free(self);
}

int64_t mercer_preprocess_width(const mercer_preprocess *self, int64_t features)
{
    return mrc_preprocess_width(self, features);
}

mercer_dtype mercer_preprocess_dtype(const mercer_preprocess *self, mercer_dtype dtype)
{
    return mrc_preprocess_dtype(self, dtype);
}
