/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: the model object, its file format, prediction, and its device-resident copy.
 *
 * A model has a kernel function, centers and weights, the origin that distances are computed from, the preprocessing of
 * its samples, the units of its targets, and the names of its columns and classes. With several ranks, each rank holds
 * its own rows of the centers and weights.
 *
 * model_file.h reads and writes models as tensor files (tensor_file.h), in the safetensors layout with checksums;
 * several ranks can write one file together.
 */
#ifndef MRC_MODEL_MODEL_H
#define MRC_MODEL_MODEL_H

#include "backends/backend.h"
#include "comm/comm.h"
#include "core/context.h"
#include "core/file/file.h"
#include "core/numbers/units.h"
#include "data/prepare/preprocess.h"
#include "mercer/evaluation.h"

#include <stdbool.h>

/* Calibration from held-out rows: probabilities and intervals. It does not change predictions. */
typedef struct mrc_calibration {
    double temperature; /* softmax temperature of the probabilities; 0: unknown */
    double curvature;   /* curvature of the scores (core/numbers/softmax.h); 0: none */
    double *shift;      /* (c) added to curved scores before the softmax; owned; NULL: none */
    /* (lists, count) conformity scores, each list ascending; owned; NULL: none. Regression: one list of |f - y| per
       output. Classification: one list, the probability ranked before the true class (core/numbers/softmax.h). Entry k
       of a list is an upper bound of a share (k + 1) / count of the scores. */
    double *scores;
    int64_t lists, count;
    double rows; /* effective number of rows that the scores come from: (sum w)^2 / sum w^2 */
    bool classes;
} mrc_calibration;

/* Copy of the model in the memory of the device that its context computes on. */
typedef struct mrc_device_copy {
    mercer_matrix z, w; /* centers and weights; no data: the model is not on the device */
    mrc_packed *packed; /* z packed for products, or NULL; owned */
    bool sent;          /* w is a copy of the model's weights, whose hash was `hash` at that time */
    uint64_t hash;
} mrc_device_copy;

struct mercer_model {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix centers; /* (rows, d) owned, or in map */
    mercer_matrix weights; /* (rows, c) owned, or in map; f32 or f64 */
    mrc_units units;       /* units of the targets: f = offset + scale K(x, Z) alpha */
    mrc_comm *comm;        /* ranks that share the model, borrowed; NULL: one process */
    /* number of centers of all ranks (p); index of this rank's first center. With one process: rows = p, first = 0. */
    int64_t total, first;
    /* (d) owned, or in map: mean of the centers at the creation of the model (mrc_model_find_origin). It never
       changes, so that training and prediction use the same kernel matrix. */
    double *origin;
    mrc_mapping map;               /* mapped file of a loaded model; otherwise empty */
    mercer_preprocess *preprocess; /* owned; NULL: none */
    const char **labels;           /* (label_count) names of the outputs, owned, one allocation; NULL: none */
    int64_t label_count;
    const char **feature_names; /* (d) names of the sample columns; NULL: columns are matched by position */
    const char **target_names;  /* (target_count) names of the target columns; NULL: unknown */
    int64_t target_count;
    char *note;           /* free text of the caller, owned; NULL: none */
    char *record;         /* state of an unfinished fit (fit/fit_checkpoint.c), owned; NULL: none */
    char *schema;         /* schema of the table that samples are read from (data/schema), owned; NULL: none */
    bool fills_gaps;      /* the schema fills missing values */
    bool reads_notations; /* the schema has a column with a number or date notation */
    bool has_statistics;  /* the schema has statistics of the targets by level */
    mrc_calibration calibration;
    mrc_device_copy placed; /* device copy, owned; see mrc_model_upload */
    mercer_plan *plan; /* plan in the last training report, owned; NULL: the model was not trained by this process */
    /* Models whose predictions are averaged (members.c): the model itself, then the other models, owned. */
    mercer_model *members[MERCER_MEMBERS];
    int64_t member_count; /* 1 for a single model */
    bool inside;          /* its tensors are in the file mapping of the model that owns it */
};

/* Creates a model without tensors, whose only member is the model itself. */
mercer_status mrc_model_open(mercer_model **out, mercer_context *context);
/* Creates a model with copies of the centers and zero weights. Arguments have been checked. comm may be NULL; otherwise
   `centers` is this rank's share of `total`. The caller must fill model->origin. */
mercer_status mrc_model_create(mercer_model **out, mercer_context *context, mrc_comm *comm, const mercer_kernel *kernel,
                               const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights);

/* Appends `member`, a single model, and takes ownership of it unless the call fails. */
mercer_status mrc_model_append(mercer_model *model, mercer_model *member);
/* Calls `call` for each member and writes the mean of the results to out. */
typedef mercer_status (*mrc_member_call)(mercer_model *member, const mercer_matrix *out, const mercer_matrix *X);
mercer_status mrc_model_mean(mercer_model *model, mrc_member_call call, const mercer_matrix *out,
                             const mercer_matrix *X);

/* Returns the number of columns of samples. Centers have the same number of columns, unless a metric maps samples to
   fewer columns. */
int64_t mrc_model_features(const mercer_model *model);

/* Compute F (m, c) = f(X), or labels (m), the indices of the largest outputs. The caller has checked types and sizes;
   the values of X are checked here. */
mercer_status mrc_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);
mercer_status mrc_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);
/* Applies curvature and class shifts to scores (c). */
void mrc_model_curve_scores(const mercer_model *model, double *scores);
/* Computes P (m, c): softmax of the curved and shifted outputs at the model's temperature. */
mercer_status mrc_model_probabilities(mercer_model *model, const mercer_matrix *P, const mercer_matrix *X);

/*
 * Copies the model to the device that its context computes on, if the device has its own memory. Centers are copied
 * once and stay until mrc_model_drop_device_copy or until the model is freed; weights are copied again whenever they
 * have changed. If device memory is too small, `placed` has no data, and products stream the model from the host in
 * parts.
 */
mercer_status mrc_model_upload(mercer_model *model);
void mrc_model_drop_device_copy(mercer_model *model);

/* Sets model->origin to the mean of all centers, with 0 for features that are flags (mrc_clear_flags). The result
   does not depend on the number of ranks. */
mercer_status mrc_model_find_origin(mercer_model *model);

/* Set the names of the classes, features and target columns: see mercer_names. */
mercer_status mrc_model_set_labels(mercer_model *model, const char *const *labels, int64_t count);
mercer_status mrc_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count);
mercer_status mrc_model_set_target_names(mercer_model *model, const char *const *names, int64_t count);
/* Implementations of the public functions of the same names with the prefix mercer_; mrc_model_set_record has no public
   function. */
mercer_status mrc_model_set_note(mercer_model *model, const char *note);
mercer_status mrc_model_set_record(mercer_model *model, const char *record);
mercer_status mrc_model_set_schema(mercer_model *model, const char *schema);
mercer_status mrc_model_set_calibration(mercer_model *model, double temperature, double curvature);
mercer_status mrc_model_interval(const mercer_model *model, double *radius, double level);

/* Returns the temperature of the probabilities: the model's, or the default. */
double mrc_model_temperature(const mercer_model *model);
/* Sets shifts (c) that are added to curved scores before the softmax; copied. NULL: none. */
mercer_status mrc_model_set_class_shift(mercer_model *model, const double *shift);
/*
 * Sets the conformity scores that intervals are computed from. They must come from rows that the model was not trained
 * on. Copied; NULL removes the scores. Regression: |f - y|, scores (outputs, k). Classification: scores (1, k), the
 * total probability of the classes that rank before the true class. Each row of `scores` is ascending; a share (i + 1)
 * / k of the rows has a score of at most entry i. rows: their effective number, (sum w)^2 / sum w^2 with sample weights
 * w.
 */
mercer_status mrc_model_set_intervals(mercer_model *model, const mercer_matrix *scores, double rows, mercer_task task);

#endif
