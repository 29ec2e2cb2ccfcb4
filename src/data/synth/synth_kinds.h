/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface between synth.c and the kinds of synthetic samples. */
#ifndef MRC_DATA_SYNTH_SYNTH_KINDS_H
#define MRC_DATA_SYNTH_SYNTH_KINDS_H

#include "core/numbers/random_normal.h"
#include "data/synth/synth.h"

#include "core/spec.h"

/* Parameters that a spec may set; each kind uses its own. */
typedef struct mrc_synth_parameters {
    double noise;
    int32_t classes;            /* spirals, clusters */
    int32_t d, c, centers;      /* teacher; clusters use d and centers */
    double bandwidth;           /* teacher: bandwidth, 0: sqrt(d); clusters: overlap */
    char kernel[MRC_SPEC_WORD]; /* teacher; "": laplace */
} mrc_synth_parameters;

struct mrc_synth {
    const struct mrc_synth_kind *kind;
    mrc_synth_parameters parameters;
    uint64_t seed;
    mrc_normal_table normals;
    mercer_kernel kernel; /* teacher */
    float *z;             /* (centers, d) teacher, clusters */
    float *alpha;         /* (centers, c) teacher */
};

/*
 * A kind of samples. `prepare` sets the sizes of the dataset and the tables that samples need. `sample` computes sample
 * number `index`: it writes the features, and either returns the class or writes the values into row `row` of y (may be
 * NULL) and returns 0.
 */
typedef struct mrc_synth_kind {
    mrc_spec_form form;
    mercer_task task;
    mercer_dtype dtype;
    mercer_status (*prepare)(mercer_dataset *dataset, mrc_synth *synth);
    int32_t (*sample)(const mrc_synth *synth, int64_t index, void *features, const mercer_matrix *y, int64_t row);
} mrc_synth_kind;

mercer_status mrc_synth_prepare_digits(mercer_dataset *dataset, mrc_synth *synth);
int32_t mrc_synth_digit(const mrc_synth *synth, int64_t index, void *features, const mercer_matrix *y, int64_t row);
mercer_status mrc_synth_prepare_teacher(mercer_dataset *dataset, mrc_synth *synth);
int32_t mrc_synth_teach(const mrc_synth *synth, int64_t index, void *features, const mercer_matrix *y, int64_t row);
mercer_status mrc_synth_prepare_clusters(mercer_dataset *dataset, mrc_synth *synth);
int32_t mrc_synth_cluster(const mrc_synth *synth, int64_t index, void *features, const mercer_matrix *y, int64_t row);
/* Returns the probability that the best classifier is wrong at x. shares (classes): scratch space. */
double mrc_synth_cluster_error(const mrc_synth *synth, const float *x, double *shares);

#endif
