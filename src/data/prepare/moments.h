/* SPDX-License-Identifier: BSD-3-Clause */
/* Mean and standard deviation of targets: the units that training learns them in (core/numbers/units.h). */
#ifndef MRC_DATA_PREPARE_MOMENTS_H
#define MRC_DATA_PREPARE_MOMENTS_H

#include "data/dataset.h"

/* Of the columns of Y (n, c) f32 or f64, n > 0, finite, with weights (n) >= 0 or NULL: all 1. A column that is
   constant, as far as double can tell, has the deviation 1. Both outputs (c), untouched on failure. */
mercer_status mrc_moments(mercer_context *context, const mercer_matrix *y, const double *weights, double *mean,
                          double *deviation);
/* The same of a dataset's targets, one-hot for classes; of computed samples the first 4096 stand for all. */
mercer_status mrc_dataset_moments(const mercer_dataset *dataset, double *mean, double *deviation);

#endif
