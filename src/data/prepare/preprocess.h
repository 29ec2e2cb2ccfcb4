/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/prepare: processing of samples and targets between a dataset and the kernel.
 *
 * Preprocessing of features, in this header: x' = (x - shift) * factor for each feature, x / |x|, or the normal
 * quantile of a feature's rank (preprocess_rank.c). Another kind is a weighted sum of the standardized value and this
 * quantile (preprocess_blend.c). If the kernel has a metric, x' A follows (linear_map.h). A preprocessing is plain
 * data, so that model files can store it; preprocess_fit.c fits its numbers to data. augment.h changes samples at
 * random, moments.c finds mean and deviation of targets.
 */
#ifndef MRC_DATA_PREPARE_PREPROCESS_H
#define MRC_DATA_PREPARE_PREPROCESS_H

#include "core/context.h"
#include "data/dataset.h"
#include "data/prepare/linear_map.h"
#include "data/prepare/rank_value.h"

#include <stdbool.h>

typedef enum mrc_preprocess_kind {
    MRC_PREPROCESS_NONE,
    MRC_PREPROCESS_SCALE, /* one factor */
    MRC_PREPROCESS_STANDARDIZE,
    MRC_PREPROCESS_MINMAX,
    MRC_PREPROCESS_UNIT,
    MRC_PREPROCESS_RANK, /* normal quantiles */
    MRC_PREPROCESS_BLEND /* weighted sum of STANDARDIZE and RANK */
} mrc_preprocess_kind;

struct mercer_preprocess {
    mercer_context *context;
    mrc_preprocess_kind kind;
    double scale;     /* factor of SCALE */
    int64_t features; /* 0 if all features are treated alike */
    /* (features) STANDARDIZE, MINMAX, BLEND. RANK: features with factor > 0 are multiplied by the factor instead of
       ranked. One allocation. */
    double *shift, *factor;
    double *knots, *normal; /* (features, MRC_RANK_KNOTS), (MRC_RANK_KNOTS) RANK, BLEND; one allocation */
    /* (2, features) BLEND: row 0 has the weights of the rank transform, 0 for flags; row 1 has the weights of the
       standardized values, unknown if read from a model file. One allocation together with unit and flag. */
    double *rank_weight;
    double *unit;         /* (features) BLEND: factor of STANDARDIZE; NULL if read from a model file */
    bool *flag;           /* (features) BLEND: true for 0/1 features of a table; NULL if read from a model file */
    bool folded;          /* SCALE: the factor is in the kernel's bandwidth */
    mercer_kernel kernel; /* if folded: the kernel before folding */
    mrc_linear_map *map;  /* metric of the kernel, applied last; owned; NULL if there is none, or if folded */
    char spec[64];
};

/* Returns the name of a kind in specs. */
const char *mrc_preprocess_name(mrc_preprocess_kind kind);

/* Return the spec of a preprocessing as model files store it, and find the kind for a stored name (false if the name is
   unknown). */
const char *mrc_preprocess_stored_spec(const mercer_preprocess *self);
bool mrc_preprocess_find_stored(const char *name, mrc_preprocess_kind *kind);

/* Makes a preprocessing from its parts. shift and factor (features) are copied; they are NULL if features is 0. Also
   sets the field `spec`. */
mercer_status mrc_preprocess_create(mercer_preprocess **out, mercer_context *context, mrc_preprocess_kind kind,
                                    double scale, int64_t features, const double *shift, const double *factor);
/* Sets the quantiles of a RANK or BLEND to a copy of knots (features, MRC_RANK_KNOTS). */
mercer_status mrc_preprocess_set_knots(mercer_preprocess *preprocess, const double *knots);
mercer_status mrc_preprocess_copy(mercer_preprocess **out, mercer_context *context, const mercer_preprocess *from);

/* Makes a preprocessing from a spec such as "standardize" and fits it to data. data may be NULL for kinds that are not
   fitted. */
mercer_status mrc_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                 const mercer_dataset *data);

/* ---- Blend ---- */

/* Copies arrays of a BLEND: rank_weight (features), and unit and flag (features), both NULL if unknown. */
mercer_status mrc_preprocess_set_rank_weight(mercer_preprocess *preprocess, const double *rank_weight,
                                             const double *unit, const bool *flag);
/*
 * Replaces the weights of a BLEND that was fitted to data, or of a copy of it. Feature k becomes
 *     standard_weight_k * standardized_k + rank_weight_k * R_k
 * with standardized_k the result of STANDARDIZE and R_k the result of RANK. The new weights multiply these results, not
 * the previous weights. For a flag, rank_weight_k is ignored. Both arrays (features), 0 .. MRC_METRIC_MOST. Fails with
 * MERCER_ERROR_ARGUMENT, and changes nothing, if a weight is out of range. Also fails if the preprocessing was read
 * from a model file, because model files store only the products.
 */
mercer_status mrc_preprocess_set_blend(mercer_preprocess *preprocess, const double *standard_weight,
                                       const double *rank_weight);
/* Returns the weights (2, features) of a BLEND that was fitted to data, or of a copy of it. Row 0 is for R_k, row 1 for
   the standardized values. The matrix is borrowed; for other kinds it has no rows. */
mercer_matrix mrc_preprocess_blend_weights(const mercer_preprocess *preprocess);
/* Writes the standardized and the rank-transformed rows of x (m, features), without weights and the metric. Both
   outputs are (m, features), f32 or f64; flags are 0 in `ranked`. The preprocessing must be a BLEND that was fitted to
   data, or a copy of it. Thread-safe. */
void mrc_preprocess_blend_parts(const mercer_preprocess *preprocess, const mercer_matrix *standard,
                                const mercer_matrix *ranked, const mercer_matrix *x);
/* Returns whether feature k is a 0/1 feature of a table. The preprocessing must be a BLEND that was fitted to data, or
   a copy of it. */
bool mrc_preprocess_is_flag(const mercer_preprocess *preprocess, int64_t k);

/* Returns whether samples pass unchanged (preprocess NULL, none, or folded). */
bool mrc_preprocess_is_identity(const mercer_preprocess *preprocess);
/* Returns whether the preprocessing is (x - shift) * factor for each feature, and nothing else. */
bool mrc_preprocess_is_affine(const mercer_preprocess *preprocess);
/* Returns the number of features that samples must have; 0: any. */
int64_t mrc_preprocess_features(const mercer_preprocess *preprocess);
/* Sets or replaces the metric (see mrc_linear_map_create). `features` must be the number of features of the
   preprocessing. */
mercer_status mrc_preprocess_set_map(mercer_preprocess *preprocess, int64_t features, int64_t width, bool diagonal,
                                     const double *values);
/* Writes the preprocessed rows of x to out, which is f32, f64 or of the type that mrc_preprocess_dtype returns. Shapes
   must have been checked. Thread-safe; never fails or allocates. */
void mrc_preprocess_rows(const mercer_preprocess *preprocess, const mercer_matrix *out, const mercer_matrix *x);
/* Reads samples like mrc_dataset_fetch, preprocesses them and converts them to the type of X. Arguments must have been
   checked. */
mercer_status mrc_dataset_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t first, const mercer_matrix *X, const mercer_matrix *Y, int32_t *labels);

/* Converts gradients with respect to preprocessed samples to gradients with respect to the samples x. Input: the rows
   of `mapped` (m, c d'). Output: the rows of `gradients` (m, c d). A row holds the gradients of c functions side by
   side, f64. `gradients` may be `mapped` if there is no metric or a diagonal one. */
void mrc_preprocess_pull_back(const mercer_preprocess *preprocess, const mercer_matrix *x, int64_t c,
                              const mercer_matrix *mapped, const mercer_matrix *gradients);

/* Folds the factor of SCALE into the bandwidth of a stationary kernel. Returns whether that was possible. A
   preprocessing can be folded only once. */
bool mrc_preprocess_fold(mercer_preprocess *preprocess, mercer_kernel *kernel);

/* Computes mean and standard deviation of the columns of y (n, c), f32 or f64, n > 0. Fails if a value is not finite.
   weights (n) are >= 0; NULL: all 1. A column that is constant up to rounding errors of double has the deviation 1.
   Both outputs have c elements, which stay unchanged on failure. */
mercer_status mrc_moments(mercer_context *context, const mercer_matrix *y, const double *weights, double *mean,
                          double *deviation);
/* Does the same for the targets of a dataset, one-hot for classes. For synthetic samples, the first 4,096 are used. */
mercer_status mrc_dataset_moments(const mercer_dataset *dataset, double *mean, double *deviation);

/* Returns the preprocessing that auto selects for samples of a type. format: format of the dataset ("csv", "npy", ...);
   NULL for a matrix. */
const char *mrc_preprocess_auto(const char *format, mercer_dtype dtype);
/* Return the specification of the preprocessing, and the kernel before folding (NULL if nothing was folded). self may
   be NULL: no preprocessing. */
const char *mrc_preprocess_spec(const mercer_preprocess *self);
const mercer_kernel *mrc_preprocess_kernel(const mercer_preprocess *self);
/* Return the number of features, and the type, of a preprocessed sample. `features` and `dtype` are the number of
   features and the type before preprocessing. self may be NULL: no preprocessing. */
int64_t mrc_preprocess_width(const mercer_preprocess *self, int64_t features);
mercer_dtype mrc_preprocess_dtype(const mercer_preprocess *self, mercer_dtype dtype);

#endif
