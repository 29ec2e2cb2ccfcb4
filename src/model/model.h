/* SPDX-License-Identifier: BSD-3-Clause */
/* The model object: kernel function, centers, weights, and the origin that distances are taken from. */
#ifndef MRC_MODEL_MODEL_H
#define MRC_MODEL_MODEL_H

#include "core/context.h"

struct mercer_model {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix centers; /* (p, d) owned */
    mercer_matrix weights; /* (p, c) owned, f32 or f64 */
    double
        *origin; /* (d) owned: the mean of the centers. Fixed, so that training and prediction use one kernel matrix. */
};

/* Arguments have been checked. origin is left for the caller to fill. */
mercer_status mrc_model_create(mercer_model **out, mercer_context *context, const mercer_kernel *kernel,
                               const mercer_matrix *centers, int64_t outputs, mercer_dtype weights);
void mrc_model_free(mercer_model *model);

#endif
