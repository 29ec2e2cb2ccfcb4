/* SPDX-License-Identifier: BSD-3-Clause */
/* What small_fits.c and closed_form.c share: their matrices, and kernel values of a block of rows. */
#ifndef MRC_TUNE_SMALL_PARTS_H
#define MRC_TUNE_SMALL_PARTS_H

#include "tune/small_fits.h"

enum { MRC_SMALL_BLOCK = 1024 }; /* rows */

struct mrc_small_fits {
    mercer_context *context;
    const mrc_small_rows *rows;
    mrc_criterion criterion;
    const double *ridges;
    int count, grams; /* of ridges; of Gram matrices that are kept apart */
    int64_t p;
    mercer_kernel kernel;           /* the one that is tried, */
    mercer_matrix x, z;             /* its points, (rows, d), (p, d), */
    const mrc_kept_sums *distances; /* or NULL: from the points */
    double mass;                    /* and the weight of the rows that are fitted to */
    mercer_matrix zz, system;       /* (p, p) */
    mercer_matrix total, gram;      /* (p, p) of all rows that are fitted to; (grams p, p) */
    mercer_matrix total_rhs, rhs;
    mercer_matrix block, targets;   /* (MRC_SMALL_BLOCK, p), (MRC_SMALL_BLOCK, c) */
    mercer_matrix weights, answers; /* (p, ridges c), (held rows, ridges c) */
    mercer_matrix values;           /* (1, p): eigenvalues, of closed forms */
    mercer_matrix single;           /* (MRC_SMALL_BLOCK, p) f32; no data: points are in double */
    mercer_matrix ones;             /* (p, 1) */
    mercer_matrix shown;            /* (held rows, ridges c): the answers in host memory */
    double *diagonal;               /* (p) */
    bool whole;                     /* centers are all rows that are fitted to */
    bool there; /* matrices lie where the backend computes, which is elsewhere; closed forms look into them */
    void *memory, *single_memory;
};

double mrc_small_weight(const mrc_small_fits *self, mrc_span rows);
/* Kernel values and targets of at most MRC_SMALL_BLOCK rows, times the roots of their weights. */
mercer_status mrc_small_block(mrc_small_fits *self, int64_t first, int64_t count, mercer_matrix *block,
                              mercer_matrix *targets);
/* K(Z, Z), into zz. */
mercer_status mrc_small_centers(mrc_small_fits *self);
/* closed_form.c */
mercer_status mrc_small_closed(mrc_small_fits *self, double *errors);
mercer_status mrc_small_closed_weights(mrc_small_fits *self, double ridge, const mercer_matrix *weights);

#endif
