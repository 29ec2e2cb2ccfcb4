/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of k-means share. The mathematics is in kmeans.c and kmeans_seed.c. */
#ifndef MRC_CENTERS_KMEANS_H
#define MRC_CENTERS_KMEANS_H

#include "centers/center_selection.h"

typedef struct mrc_kmeans_state {
    mrc_center_selection *selection;
    mrc_backend *backend;
    mercer_context *context;
    int64_t n, d, p;
    int64_t rounds;   /* at most */
    bool lloyd;       /* all rows in each round */
    int64_t batch;    /* rows in a round */
    int64_t capacity; /* rows there is room for: those of a round, and those the seeds are drawn from */
    int64_t seen;     /* rows that mini-batches have taken so far */
    bool stopped;     /* by the progress callback */

    mercer_matrix x;      /* (m, d) rows under work: X itself, or a sample in `sample` */
    mercer_matrix sample; /* (capacity, d) of X's dtype; data is NULL if all rows are used */
    mercer_matrix there;  /* (m, d) the rows under work where the backend computes, or x again */
    mercer_matrix room;   /* (capacity, d) for them there; data is NULL if they stay in host memory */
    mercer_matrix z;      /* (p, d) centers, f32 or f64 */
    mercer_matrix z_u8;   /* (p, d) the same rounded, if X is u8 */
    bool rounded;         /* rows are compared with z_u8 */

    /* For each row under work, room for capacity of them. */
    int32_t *nearest, *fresh_nearest; /* its center; the same among new centers only */
    double *distances, *fresh_distances;
    int64_t *order; /* rows sorted by center; a heap of rows */
    double *sums;   /* running sums of weights, while seeding */

    double *weights; /* (p) rows that each center is the mean of; older rounds count less */
    int64_t *starts; /* (p + 1) where the rows of a center begin in `order` */
    int64_t *seeds;  /* (p) rows that the first centers are */
    double *scratch; /* (threads, 3, d) */
} mrc_kmeans_state;

/* Draws p rows of self->x as first centers (kmeans_seed.c): seeds, nearest and distances are set. */
mercer_status mrc_kmeans_seed(mrc_kmeans_state *self);
/* Bytes that takes, beyond the state's own. */
int64_t mrc_kmeans_seed_bytes(const mrc_center_selection *selection);

/* Centers become means of the rows assigned to them; the past counts `keep` times what it did. Those without rows get
   the farthest ones. */
void mrc_kmeans_update(mrc_kmeans_state *self, double keep);

/* The nearest row of search->z for each row of search->x; ranks divide the rows of x and exchange the results. */
mercer_status mrc_kmeans_search(mrc_kmeans_state *self, const mrc_search *search, int32_t *nearest, double *distances);

/* Calls the progress callback; sets stopped if it, or that of another rank, asks to stop. */
mercer_status mrc_kmeans_tell(mrc_kmeans_state *self, int64_t done, double error);

#endif
