/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: the model object, and its file.
 *
 * A model has a kernel function, centers and weights, the origin that distances are computed from, the preprocessing of
 * its samples, the units of its targets, and names of columns and classes. Among ranks each holds its rows of centers
 * and weights.
 *
 * model_file.h reads and writes models as tensor files (tensor_file.h), in the safetensors layout with checksums;
 * all ranks may write one file.
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

/* What rows that were not trained on tell of predictions; it changes none. */
typedef struct mrc_calibration {
    double temperature; /* of probabilities; 0: not known */
    double *shift;      /* (c) added to scores before the softmax; owned; NULL: none */
    /* (lists, count) ascending; NULL: none. For values |f - y| of each output; for classes one list, the probability
       ahead of the class (core/numbers/softmax.h). Entry k of a list has a share (k + 1) / count at most as large. */
    double *scores;
    int64_t lists, count;
    double rows; /* that they are of, in effect: (sum w)^2 / sum w^2 */
    bool classes;
} mrc_calibration;

/* The model in the memory of the device that its context computes on. */
typedef struct mrc_placed {
    mercer_matrix z, w; /* no data: it is not there */
    mrc_packed *packed; /* of z, or NULL */
    bool sent;          /* w has the model's weights, as they were when they had this hash */
    uint64_t hash;
} mrc_placed;

struct mercer_model {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix centers; /* (rows, d) owned, or in map */
    mercer_matrix weights; /* (rows, c) owned, or in map; f32 or f64 */
    mrc_units units;       /* of the targets: f = offset + scale K(x, Z) alpha */
    mrc_comm *comm;        /* borrowed: the ranks that share the model; NULL: one process */
    int64_t total, first;  /* p, of all ranks; number of the first row here. Alone: rows = p, first = 0. */
    /* (d) owned, or in map: amid the centers the model was made of (mrc_model_find_origin). Fixed, so that training and
       prediction use one kernel matrix. */
    double *origin;
    mrc_mapping map;               /* if the model was loaded: the file; otherwise empty */
    mercer_preprocess *preprocess; /* owned; NULL: none */
    const char **labels;           /* (label_count) names of the outputs, with their texts in one block; NULL: none */
    int64_t label_count;
    const char **feature_names; /* (d) names of the columns of samples; NULL: columns go by position */
    const char **target_names;  /* (target_count) names of the columns of targets; NULL: unknown */
    int64_t target_count;
    char *note;           /* owned; NULL: none */
    char *record;         /* of a fit that is under way (fit/fit_checkpoint.c), owned; NULL: none */
    char *schema;         /* owned; of the table that samples are made of (data/schema); NULL: none */
    bool fills_gaps;      /* the schema has a matrix for it */
    bool reads_notations; /* the schema has a column with a notation */
    mrc_calibration calibration;
    mrc_placed placed; /* owned; see mrc_model_place */
    mercer_plan *plan; /* owned; of the training that was last reported; NULL: there was no trainer */
    /* Models whose predictions are averaged (members.c): the model itself, then others, which it owns. */
    mercer_model *members[MERCER_MEMBERS];
    int64_t member_count; /* 1 of most models */
    bool inside;          /* its tensors lie in the mapping of the model that owns it */
};

/* Makes a model without tensors, its own only member. */
mercer_status mrc_model_open(mercer_model **out, mercer_context *context);
/* Arguments have been checked. comm may be NULL; if not, centers are this rank's share of `total`. origin is left for
   the caller to fill. */
mercer_status mrc_model_create(mercer_model **out, mercer_context *context, mrc_comm *comm, const mercer_kernel *kernel,
                               const mercer_matrix *centers, int64_t total, int64_t outputs, mercer_dtype weights);

/* Adds `member`, a single model, and takes ownership of it unless that fails. */
mercer_status mrc_model_append(mercer_model *model, mercer_model *member);
/* Calls `call` for each member and writes the mean of the results to out. */
typedef mercer_status (*mrc_member_call)(mercer_model *member, const mercer_matrix *out, const mercer_matrix *X);
mercer_status mrc_model_mean(mercer_model *model, mrc_member_call call, const mercer_matrix *out,
                             const mercer_matrix *X);

/* Columns that samples have: the centers have as many unless a metric maps to fewer. */
int64_t mrc_model_features(const mercer_model *model);

/* F (m, c) = f(X), and labels (m) of the largest outputs. Types and sizes of the arguments were checked, values are
   here. */
mercer_status mrc_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X);
mercer_status mrc_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X);
/* Adds the shifts of the classes to scores (c). */
void mrc_model_shift_scores(const mercer_model *model, double *scores);
/* P (m, c): softmax of the outputs, by the model's temperature. */
mercer_status mrc_model_probabilities(mercer_model *model, const mercer_matrix *P, const mercer_matrix *X);

/*
 * Brings the model to the device that its context computes on, if that has memory of its own: centers once, they stay
 * until unplace or the end of the model; weights whenever they have been written since. If there is no
 * room, placed stays without data, and products take the model from the host in parts.
 */
mercer_status mrc_model_place(mercer_model *model);
void mrc_model_unplace(mercer_model *model);

/* Fills model->origin: the mean of all centers, 0 where features are flags (mrc_clear_flags); the same on any number of
   ranks. */
mercer_status mrc_model_find_origin(mercer_model *model);

/* The public functions of the same names, without mercer_. */
mercer_status mrc_model_set_labels(mercer_model *model, const char *const *labels, int64_t count);
mercer_status mrc_model_set_feature_names(mercer_model *model, const char *const *names, int64_t count);
mercer_status mrc_model_set_target_names(mercer_model *model, const char *const *names, int64_t count);
mercer_status mrc_model_set_note(mercer_model *model, const char *note);
mercer_status mrc_model_set_record(mercer_model *model, const char *record);
mercer_status mrc_model_set_schema(mercer_model *model, const char *schema);
mercer_status mrc_model_set_temperature(mercer_model *model, double temperature);
mercer_status mrc_model_set_class_shift(mercer_model *model, const double *shift);
const double *mrc_model_class_shift(const mercer_model *model);
mercer_status mrc_model_set_intervals(mercer_model *model, const mercer_matrix *scores, double rows, mercer_task task);
mercer_status mrc_model_interval(const mercer_model *model, double *radius, double level);

#endif
