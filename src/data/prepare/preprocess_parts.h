/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal functions shared by the files of preprocessing. */
#ifndef MRC_DATA_PREPARE_PREPROCESS_PARTS_H
#define MRC_DATA_PREPARE_PREPROCESS_PARTS_H

#include "data/prepare/preprocess.h"

enum {
    MRC_LEVEL_SIZE = 2, /* size of a 0/1 feature of a category compared with numbers of variance 1 */
    MRC_LEVEL_SIGNS = 4 /* size of a level divided by the size of a flag for missing values */
};

/* Returns the derivative of mrc_rank_value; at a knot, the mean of the derivatives on both sides. */
double mrc_rank_slope(const double *knots, const double *normal, double x);
/* Fits a RANK. */
mercer_status mrc_preprocess_fit_rank(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data);
/* Fits a BLEND with equal weights. */
mercer_status mrc_preprocess_fit_blend(mercer_preprocess **out, mercer_context *context, const mercer_dataset *data);
/* BLEND: return the transformed value of x in feature k, and its derivative with respect to x. */
double mrc_blend_value(const mercer_preprocess *preprocess, int64_t k, double x);
double mrc_blend_slope(const mercer_preprocess *preprocess, int64_t k, double x);
/* For 0/1 features of a table, sets the shift to 0 and the factor to `size`. Flags of missing values get the factor
   size / MRC_LEVEL_SIGNS. Other features are not changed. */
mercer_status mrc_preprocess_flags(mercer_context *context, const mercer_dataset *data, double *shift, double *factor,
                                   double size);

#endif
