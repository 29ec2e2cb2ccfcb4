/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preprocessing by a weighted sum of the standardized value and the rank transform of each feature.
 *
 *   y_k = factor_k (x_k - shift_k) + rank_weight_k R_k(x_k),   factor_k = standard_weight_k unit_k
 *
 * R_k is the transform of preprocess_rank.c; shift_k and unit_k are the shift and the factor of standardize: mean and 1
 * / deviation. For flags they are 0 and the factor that mrc_preprocess_flags sets. Flags are the 0/1 features of a
 * table (data/schema). The rank weight of a flag is 0. With weights >= 0 both terms are nondecreasing, so y_k is too.
 * After fitting, both weights are 0.5, and flags have the standard weight 1.
 *
 * x (n, d); shift, factor, unit, rank_weight (d); all arithmetic is double. Cost: that of rank.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "data/prepare/preprocess.h"
#include "data/prepare/preprocess_parts.h"

#include <math.h>
#include <string.h>

/* ---- Applying ------------------------------------------------------------------------------------------------ */

/* Returns the rank transform of x in feature k. */
static double rank_value(const mercer_preprocess *self, int64_t k, double x)
{
    return mrc_rank_value(self->knots + k * MRC_RANK_KNOTS, self->normal, x);
}

double mrc_blend_value(const mercer_preprocess *self, int64_t k, double x)
{
    double value = (x - self->shift[k]) * self->factor[k], weight = self->rank_weight[k];
    return weight > 0 ? value + weight * rank_value(self, k, x) : value;
}

double mrc_blend_slope(const mercer_preprocess *self, int64_t k, double x)
{
    double slope = self->factor[k], weight = self->rank_weight[k];
    if (!(weight > 0)) return slope;
    return slope + weight * mrc_rank_slope(self->knots + k * MRC_RANK_KNOTS, self->normal, x);
}

void mrc_preprocess_blend_parts(const mercer_preprocess *self, const mercer_matrix *standard,
                                const mercer_matrix *ranked, const mercer_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t k = 0; k < self->features; k++) {
            double value = mrc_load(x, i, k);
            mrc_store(standard, i, k, (value - self->shift[k]) * self->unit[k]);
            mrc_store(ranked, i, k, self->flag[k] ? 0 : rank_value(self, k, value));
        }
}

bool mrc_preprocess_is_flag(const mercer_preprocess *self, int64_t k)
{
    return self->flag[k];
}

/* ---- Weights ------------------------------------------------------------------------------------------------- */

mercer_status mrc_preprocess_set_rank_weight(mercer_preprocess *self, const double *rank_weight, const double *unit,
                                             const bool *flag)
{
    double *memory;
    int64_t d = self->features;
    if (d == 0) return MERCER_OK;
    /* One block: rank weights (d), standard weights (d), units (d), flags (d). */
    MRC_TRY(mrc_alloc(self->context, &memory, d, 3 * sizeof *memory + sizeof(bool), "the preprocessing"));
    mrc_free(self->context, self->rank_weight);
    self->rank_weight = memory;
    self->unit = unit ? memory + 2 * d : NULL;
    self->flag = flag ? (void *)(memory + 3 * d) : NULL;
    memcpy(self->rank_weight, rank_weight, (size_t)d * sizeof(double));
    /* The factor is the product of standard weight and unit. If the unit is known, the weight is factor / unit. */
    for (int64_t k = 0; k < d; k++) memory[d + k] = unit && unit[k] > 0 ? self->factor[k] / unit[k] : 0;
    if (unit) memcpy(self->unit, unit, (size_t)d * sizeof(double));
    if (flag) memcpy(self->flag, flag, (size_t)d * sizeof(bool));
    return MERCER_OK;
}

static mercer_status check_weight(const mercer_preprocess *self, const char *name, int64_t k, double weight)
{
    if (mrc_in_range(weight, 0, MRC_METRIC_MOST)) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                    "preprocessing blend: the %s weight of feature %lld (from 0) is %g; use a number in 0 .. %g", name,
                    (long long)k, weight, MRC_METRIC_MOST);
}

mercer_status mrc_preprocess_set_blend(mercer_preprocess *self, const double *standard_weight,
                                       const double *rank_weight)
{
    if (self->kind != MRC_PREPROCESS_BLEND)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "preprocessing %s is not a blend and has no weights",
                        mrc_preprocess_name(self->kind));
    if (self->features > 0 && !self->unit)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "preprocessing blend was read from a model file without its units; fit it to data to set "
                        "its weights");
    for (int64_t k = 0; k < self->features; k++) {
        MRC_TRY(check_weight(self, "standard", k, standard_weight[k]));
        if (!self->flag[k]) MRC_TRY(check_weight(self, "rank", k, rank_weight[k]));
        if (!isfinite(standard_weight[k] * self->unit[k]))
            return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                            "preprocessing blend: the standard weight %g of feature %lld (from 0) overflows when "
                            "divided by the deviation; use a smaller weight",
                            standard_weight[k], (long long)k);
    }
    for (int64_t k = 0; k < self->features; k++) {
        self->rank_weight[self->features + k] = standard_weight[k];
        self->factor[k] = standard_weight[k] * self->unit[k];
        self->rank_weight[k] = self->flag[k] ? 0 : rank_weight[k];
    }
    return MERCER_OK;
}

mercer_matrix mrc_preprocess_blend_weights(const mercer_preprocess *self)
{
    if (!self || self->kind != MRC_PREPROCESS_BLEND || !self->unit) return (mercer_matrix){0};
    return mrc_view(self->rank_weight, 2, self->features, MERCER_F64);
}

/* ---- Fitting ------------------------------------------------------------------------------------------------- */

/* Combines a fitted STANDARDIZE and a fitted RANK of the same features; moves the knots of `ranked` into the result. */
static mercer_status combine(mercer_preprocess **out, const mercer_preprocess *standard, mercer_preprocess *ranked)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *self = NULL;
    mercer_context *context = standard->context;
    int64_t d = standard->features;
    double *weights;
    bool *flag;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, 2 * d, sizeof *weights, "weights of features"));
    MRC_TRY(mrc_scope_alloc(&scope, &flag, d, sizeof *flag, "weights of features"));
    double *standard_weight = weights, *rank_weight = weights + d;
    for (int64_t k = 0; k < d; k++) {
        flag[k] = ranked->factor[k] > 0;
        standard_weight[k] = flag[k] ? 1 : 0.5;
        rank_weight[k] = flag[k] ? 0 : 0.5;
    }
    MRC_TRY(mrc_preprocess_create(&self, context, MRC_PREPROCESS_BLEND, 0, d, standard->shift, standard->factor));
    MRC_TRY(mrc_preprocess_set_rank_weight(self, rank_weight, standard->factor, flag));
    self->knots = ranked->knots, self->normal = ranked->normal;
    ranked->knots = ranked->normal = NULL;
    MRC_TRY(mrc_preprocess_set_blend(self, standard_weight, rank_weight));
    *out = self, self = NULL;
    return MERCER_OK;
}

mercer_status mrc_preprocess_fit_blend(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *standard = NULL;
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *ranked = NULL;
    if (!data || data->rows < 1)
        return mrc_fail(context, data ? MERCER_ERROR_SHAPE : MERCER_ERROR_ARGUMENT,
                        "preprocessing blend needs data: %s", data ? "there are no samples" : "dataset is NULL");
    MRC_TRY(mrc_preprocess_fit(&standard, context, "standardize", data));
    MRC_TRY(mrc_preprocess_fit_rank(&ranked, context, data));
    return combine(out, standard, ranked);
}
