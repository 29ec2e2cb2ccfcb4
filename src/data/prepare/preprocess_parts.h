/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a preprocessing share. */
#ifndef MRC_DATA_PREPARE_PREPROCESS_PARTS_H
#define MRC_DATA_PREPARE_PREPROCESS_PARTS_H

#include "data/prepare/preprocess.h"

enum {
    MRC_LEVEL_SIZE = 2, /* of a level of a category beside numbers of variance 1 */
    MRC_LEVEL_SIGNS = 4 /* how many signs that a value is missing are as large as a level */
};

/* The derivative of mrc_rank_value; at a knot, the mean of those on both sides. */
double mrc_rank_slope(const double *knots, const double *normal, double x);
/* One of that kind, fitted. */
mercer_status mrc_preprocess_fit_rank(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data);
/* Fits a BLEND with equal weights. */
mercer_status mrc_preprocess_fit_blend(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data);
/* BLEND: returns the value of x in feature k, and its derivative there. */
double mrc_blend_value(const mercer_preprocess *preprocess, int64_t k, double x);
double mrc_blend_slope(const mercer_preprocess *preprocess, int64_t k, double x);
/* Features of a table that are 0 or 1 get the shift 0 and this factor, signs a part of it; others
   stay. */
mercer_status mrc_preprocess_flags(mercer_context *context, const mercer_dataset *data, double *shift, double *factor,
                                   double size);

#endif
