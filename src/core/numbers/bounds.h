/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of the scalars in model files, checkpoints and schemas. The ranges contain every value that a training run
 * writes, and are narrow enough that quotients and counts computed from such scalars stay finite. The functions that
 * set such a scalar check the same range, so that every model that can be created can be read.
 */
#ifndef MRC_CORE_NUMBERS_BOUNDS_H
#define MRC_CORE_NUMBERS_BOUNDS_H

#include <stdbool.h>

/* Temperature of probabilities. Calibration searches 0.01 .. 10. */
#define MRC_TEMPERATURE_LEAST 1e-6
#define MRC_TEMPERATURE_MOST  1e6
/* Curvature of class scores. Calibration tries 4 .. 256. */
#define MRC_CURVATURE_LEAST 1e-3
#define MRC_CURVATURE_MOST  1e6

/* Number of held-out rows that prediction intervals are computed from. */
#define MRC_INTERVAL_ROWS_MOST 1e15

/* Target units. Deviations above 1e154 overflow when they are squared; below 1e-150 the squares underflow. */
#define MRC_TARGET_MOST        1e300
#define MRC_TARGET_SCALE_LEAST 1e-150
#define MRC_TARGET_SCALE_MOST  1e155

/* Bandwidths of kernels; their inverses must be finite. */
#define MRC_BANDWIDTH_LEAST 1e-300
#define MRC_BANDWIDTH_MOST  1e300

/* Entries of the linear map of a metric, which is the square root of a matrix of finite doubles: at most about
   1e154. */
#define MRC_METRIC_MOST 1e155

/* Exponents of kernels (gamma, p, q). */
#define MRC_EXPONENT_LEAST 1e-3

/* Cells of a table are floats, so these bounds also hold for their means, deviations and origins. A deviation is the
   root of a mean of squares. */
#define MRC_CELL_MOST            1e39
#define MRC_CELL_DEVIATION_LEAST 1e-60
/* Number of missing values in a column. */
#define MRC_ROWS_MOST 1e15

/* Ridge, and flops per second, in the saved state of a hyperparameter search. */
#define MRC_RIDGE_MOST 1e100
#define MRC_RATE_LEAST 1e6
#define MRC_RATE_MOST  1e18

/* Returns whether low <= value <= high; false for NaN. */
static inline bool mrc_in_range(double value, double low, double high)
{
    return value >= low && value <= high;
}

#endif
