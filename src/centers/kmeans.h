/* SPDX-License-Identifier: BSD-3-Clause */
/* State and functions shared by the files of k-means. kmeans.c and kmeans_seed.c describe the mathematics. */
#ifndef MRC_CENTERS_KMEANS_H
#define MRC_CENTERS_KMEANS_H

#include "centers/center_selection.h"

typedef struct mrc_kmeans_state {
    mrc_center_selection *selection;
    mrc_backend *backend;
    mercer_context *context;
    int64_t n, d, p;
    int64_t rounds; /* largest number of rounds */
    bool lloyd;     /* Lloyd: each round uses all rows */
    int64_t batch;  /* rows per round */
    /* capacity of buffers in rows: the number of rows of a round, or of rows that seeds are drawn from, whichever is
       larger */
    int64_t capacity;
    int64_t rows_seen; /* number of rows taken by mini-batches so far */
    bool stopped;      /* the progress callback has requested a stop */

    mercer_matrix x;         /* (m, d) current rows: X itself, or the rows in `sample` */
    mercer_matrix sample;    /* (capacity, d) of X's dtype; data is NULL if all rows are used */
    mercer_matrix on_device; /* (m, d) the current rows in the backend's memory, or x */
    mercer_matrix buffer;    /* (capacity, d) device buffer for `on_device`; data is NULL if rows stay in host memory */
    mercer_matrix z;         /* (p, d) centers, f32 or f64 */
    mercer_matrix z_u8;      /* (p, d) z rounded to bytes, if X is u8 */
    bool rounded;            /* the search for nearest centers uses z_u8 */

    /* Arrays (capacity) with one entry per current row. */
    /* nearest: index of the nearest center; fresh_nearest: index of the nearest new seed */
    int32_t *nearest, *fresh_nearest;
    double *distances, *fresh_distances;
    int64_t *order; /* rows sorted by center; also scratch space for drawn row numbers and for a heap of rows */
    double *sums;   /* running sums of weights while seeding; shares the memory of `order` */

    double *weights; /* (p) number of rows that each center is the mean of; rows of older rounds count less */
    int64_t *starts; /* (p + 1) start of each center's rows in `order` */
    int64_t *seeds;  /* (p) rows chosen as first centers */
    double *scratch; /* (threads, 3, d) scratch space of update_center: sum, row, center */
} mrc_kmeans_state;

/* Draws p rows of self->x as first centers (kmeans_seed.c); sets seeds, nearest and distances. */
mercer_status mrc_kmeans_seed(mrc_kmeans_state *self);
/* Returns the bytes that seeding takes in addition to the arrays of the state. */
int64_t mrc_kmeans_seed_bytes(const mrc_center_selection *selection);

/* Moves centers to the means of the rows assigned to them; first multiplies the weights of earlier rows by `keep`.
   Centers without rows get the farthest rows. */
void mrc_kmeans_update(mrc_kmeans_state *self, double keep);

/* Finds the nearest row of search->z for each row of search->x. Ranks divide the rows of x and exchange their
   results. */
mercer_status mrc_kmeans_search(mrc_kmeans_state *self, const mrc_search *search, int32_t *nearest, double *distances);

/* Calls the progress callback, and sets `stopped` if the callback of any rank requests a stop. */
mercer_status mrc_kmeans_notify(mrc_kmeans_state *self, int64_t done, double error);

#endif
