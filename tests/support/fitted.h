/* SPDX-License-Identifier: BSD-3-Clause */
/* Preprocessings that are fitted to a matrix, and metrics as their last step. */
#ifndef MRC_TESTS_FITTED_H
#define MRC_TESTS_FITTED_H

#include "support/check.h"
#include "support/info.h"

#include "core/memory.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"
#include "features/metric.h"

static inline mercer_status fit_to_matrix(mercer_preprocess **out, mercer_context *owner, const char *spec,
                                          const mercer_matrix *x)
{
    mercer_dataset data = {.context = owner, .rows = x->rows, .features = x->cols, .dtype = x->dtype, .x = *x};
    return mercer_preprocess_fit(out, owner, spec, &data);
}

/* Set the metric of kernels of the L2 distance on samples of `features` features. */
static inline void set_metric(mercer_preprocess *preprocess, const mercer_matrix *metric, int64_t features)
{
    mrc_metric made;
    mercer_context *owner = preprocess->context;
    MRC_SCOPE(scope, owner);
    assert_succeeds(owner, mrc_metric_given(&made, &scope, owner->backend, features, metric));
    assert_succeeds(owner, mrc_preprocess_set_map(preprocess, features, made.width, made.diagonal, made.map));
}

#endif
