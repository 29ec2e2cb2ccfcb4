/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/prepare: what happens to samples and targets between a dataset and the kernel.
 *
 * Preprocessing of features, in this header:  x' = (x - shift) * factor  for each feature, x / |x|, or the normal
 * quantile of its rank (preprocess_rank.c); then, if the kernel has a metric, x' A (linear_map.h). It is plain data, so
 * that model files can store it; preprocess_fit.c finds the numbers. augment.h makes new samples of those read,
 * moments.c finds mean and deviation of targets.
 */
#ifndef MRC_DATA_PREPARE_PREPROCESS_H
#define MRC_DATA_PREPARE_PREPROCESS_H

#include "core/context.h"
#include "data/dataset.h"
#include "data/prepare/linear_map.h"

#include <stdbool.h>

typedef enum mrc_preprocess_kind {
    MRC_PREPROCESS_NONE,
    MRC_PREPROCESS_SCALE, /* one factor */
    MRC_PREPROCESS_STANDARDISE,
    MRC_PREPROCESS_MINMAX,
    MRC_PREPROCESS_UNIT,
    MRC_PREPROCESS_RANK /* normal quantiles */
} mrc_preprocess_kind;

enum { MRC_RANK_KNOTS = 256 };

struct mercer_preprocess {
    mercer_context *context;
    mrc_preprocess_kind kind;
    double scale;           /* SCALE */
    int64_t features;       /* 0 if nothing depends on the feature */
    double *shift, *factor; /* (features) STANDARDISE, MINMAX; RANK: a factor above 0 is all that happens; one block */
    double *knots, *normal; /* (features, MRC_RANK_KNOTS), (MRC_RANK_KNOTS) RANK; one block */
    bool folded;            /* SCALE: the factor is in the kernel's bandwidth */
    mercer_kernel kernel;   /* if folded: the kernel before */
    mrc_linear_map *map;    /* owned: the metric of the kernel, applied last; NULL: none. Not with folded */
    char spec[64];
};

/* The name of a kind as it stands in a spec; and the kind of a name, or false. */
const char *mrc_preprocess_name(mrc_preprocess_kind kind);
bool mrc_preprocess_find(const char *name, mrc_preprocess_kind *kind);

/* Makes one from its parts; shift and factor (features) are copied, NULL if features is 0. Sets spec. */
mercer_status mrc_preprocess_create(mercer_preprocess **out, mercer_context *context, mrc_preprocess_kind kind,
                                    double scale, int64_t features, const double *shift, const double *factor);
/* RANK: the quantiles (features, MRC_RANK_KNOTS), copied. */
mercer_status mrc_preprocess_set_knots(mercer_preprocess *preprocess, const double *knots);
mercer_status mrc_preprocess_copy(mercer_preprocess **out, mercer_context *context, const mercer_preprocess *from);

/* The same from a text such as "standardise", fitted to data where it needs them; data may be NULL where it does
   not. */
mercer_status mrc_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                 const mercer_dataset *data);
mercer_status mrc_preprocess_fit_matrix(mercer_preprocess **out, mercer_context *context, const char *spec,
                                        const mercer_matrix *x);

/* True if samples pass unchanged (preprocess NULL, none, or folded). */
bool mrc_preprocess_is_identity(const mercer_preprocess *preprocess);
/* True if it is (x - shift) * factor, feature by feature, and nothing more. */
bool mrc_preprocess_is_affine(const mercer_preprocess *preprocess);
/* The number of features that samples must have, 0: any. */
int64_t mrc_preprocess_features(const mercer_preprocess *preprocess);
/* Adds a metric, or replaces it: see mrc_linear_map_create; its features are those of the preprocessing. */
mercer_status mrc_preprocess_set_map(mercer_preprocess *preprocess, int64_t features, int64_t width, bool diagonal,
                                     const double *values);
/* out = the preprocessed rows of x; of the type that mercer_preprocess_dtype tells, or f32 or f64. Shapes have been
   checked. Any thread; never fails, never allocates. */
void mrc_preprocess_rows(const mercer_preprocess *preprocess, const mercer_matrix *out, const mercer_matrix *x);
/* As mrc_dataset_fetch, with x of another type too and preprocessed. Arguments have been checked. */
mercer_status mrc_dataset_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t first, const mercer_matrix *X, const mercer_matrix *Y, int32_t *labels);

/* The gradients in samples x of functions whose gradients in what became of them are known: rows (m, c d') to (m, c d),
   gradients of c functions side by side, f64. `gradients` may be the rows of `mapped` where the width stays. */
void mrc_preprocess_pull_back(const mercer_preprocess *preprocess, const mercer_matrix *x, int64_t c,
                              const mercer_matrix *mapped, const mercer_matrix *gradients);

/* Puts the factor of SCALE into the bandwidth of a kernel of the distance, if that can be: whether it was. */
bool mrc_preprocess_fold(mercer_preprocess *preprocess, mercer_kernel *kernel);

/* Of the columns of Y (n, c) f32 or f64, n > 0, finite, with weights (n) >= 0 or NULL: all 1. A column that is
   constant, as far as double can tell, has the deviation 1. Both outputs (c), untouched on failure. */
mercer_status mrc_moments(mercer_context *context, const mercer_matrix *y, const double *weights, double *mean,
                          double *deviation);
/* The same of a dataset's targets, one-hot for classes; of computed samples the first 4096 stand for all. */
mercer_status mrc_dataset_moments(const mercer_dataset *dataset, double *mean, double *deviation);

#endif
