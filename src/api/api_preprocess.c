/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: preprocessing of features. */
#include "data/prepare/preprocess.h"

#include "api/api_options.h"
#include "core/matrix.h"
#include "data/dataset.h"

mercer_status mercer_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                    mercer_dataset *dataset)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    return mrc_preprocess_fit(out, context, spec, dataset);
}

/* NULL describes the identity. The metric is a borrowed view: (features, width), or (1, width) for weights of the
   features. */
mercer_status mercer_preprocess_query(const mercer_preprocess *preprocess, mercer_preprocess_info *info)
{
    mercer_preprocess_info ours = {.struct_size = sizeof ours,
                                   .spec = mrc_preprocess_spec(preprocess),
                                   .features = mrc_preprocess_features(preprocess),
                                   .width = mrc_preprocess_width(preprocess, 0),
                                   .identity = mrc_preprocess_is_identity(preprocess),
                                   .kernel = mrc_preprocess_kernel(preprocess)};
    const mrc_linear_map *map = preprocess ? preprocess->map : NULL;
    ours.blend = mrc_preprocess_blend_weights(preprocess);
    if (map) ours.metric = mrc_view(map->values, map->diagonal ? 1 : map->features, map->width, MERCER_F64);
    return mrc_write_struct(preprocess ? preprocess->context : NULL, info, &ours, MRC_STRUCT(mercer_preprocess_info),
                            "info");
}

/* `out` may be of type u8 or f16 only if rows are copied unchanged; any arithmetic needs a result in f32 or f64. X is
   checked first, because the type and width of `out` follow from it. */
mercer_status mercer_preprocess_apply(const mercer_preprocess *preprocess, const mercer_matrix *out,
                                      const mercer_matrix *X)
{
    if (!preprocess) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "preprocess is NULL");
    mercer_context *context = preprocess->context;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    int64_t fitted = mrc_preprocess_features(preprocess);
    if (fitted > 0 && X->cols != fitted)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld columns, but the preprocessing was fitted to %lld",
                        (long long)X->cols, (long long)fitted);
    bool as_it_is = out && out->dtype == X->dtype && mrc_preprocess_is_identity(preprocess);
    MRC_TRY(mrc_check_matrix(context, "out", out, as_it_is ? MRC_ACCEPT_ANY : MRC_ACCEPT_REAL));
    MRC_TRY(mrc_check_size(context, "out", out, X->rows, mrc_preprocess_width(preprocess, X->cols)));
    MRC_TRY(mrc_check_apart(context, "out", out, "X", X));
    mrc_preprocess_rows(preprocess, out, X);
    return MERCER_OK;
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

void mercer_preprocess_free(mercer_preprocess *self)
{
    mrc_preprocess_free(self);
}
