/* SPDX-License-Identifier: BSD-3-Clause */
/* What a model computes. */
#ifndef MRC_MODEL_PREDICT_H
#define MRC_MODEL_PREDICT_H

#include "model/model.h"

/* F (m, c) = f(X), and labels (m) of the largest outputs. Types and sizes of the arguments were checked, values are
   here. */
mercer_status mrc_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);
mercer_status mrc_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);

/* Fills model->origin: the mean of all centers, the same on any number of ranks. */
mercer_status mrc_model_find_origin(mercer_model *model);

#endif
