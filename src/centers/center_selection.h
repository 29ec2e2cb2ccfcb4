/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * centers: choosing centers from the rows of X: at random, balanced over classes, by k-means (kmeans.c, seeded as in
 * k-means++ by kmeans_seed.c), by randomly pivoted Cholesky (rpcholesky.c); and the median distance between rows, from
 * which bandwidths are chosen (median.c).
 *
 * Every method is a function of the rows and the seed. Points are in host memory.
 */
#ifndef MRC_CENTERS_CENTER_SELECTION_H
#define MRC_CENTERS_CENTER_SELECTION_H

#include "backends/backend.h"
#include "comm/comm.h"
#include "core/numbers/random.h"
#include "data/dataset.h"

/* Sequences of random numbers, one for each use. */
#define MRC_RANDOM_CHOICE  UINT64_C(0x63683031)   /* a permutation of the rows */
#define MRC_RANDOM_DRAW    UINT64_C(0x63683032)   /* draws in proportion to weights */
#define MRC_RANDOM_ACCEPT  UINT64_C(0x63683033)   /* whether they are accepted */
#define MRC_RANDOM_FILL    UINT64_C(0x63683034)   /* a permutation: rows that make up for what is missing */
#define MRC_RANDOM_WAITS   UINT64_C(0x63683035)   /* how long rows with weights wait to be drawn */
#define MRC_RANDOM_BATCHES UINT64_C(0x6368000000) /* + pass: a permutation of the rows for mini-batches */

/* A request, checked by the caller, and its report. */
typedef struct mrc_center_selection {
    mrc_backend *backend;
    const mercer_matrix *x; /* (n, d) any dtype, finite */
    int64_t p;              /* 1 <= p <= n */
    mrc_comm *comm;         /* ranks that divide the work, all with the same rows; NULL: none */
    int64_t first;          /* number of the first center that this rank wants */
    bool wide;              /* squared distances need double: see mrc_search */
    const mercer_center_options
        *options; /* complete: memory > 0, kernel for rpcholesky, labels and classes for balanced */
    mercer_center_report report;
} mrc_center_selection;

/* ---- Choosing (choose_centers.c) ------------------------------------------------------------------------------ */

typedef enum mrc_center_method {
    MRC_CENTERS_RANDOM,
    MRC_CENTERS_KMEANS,
    MRC_CENTERS_RPCHOLESKY,
    MRC_CENTERS_BALANCED,
    MRC_CENTER_METHODS
} mrc_center_method;
/* NULL: random. */
bool mrc_center_method_find(const char *name, mrc_center_method *out);
/* MERCER_ERROR_ARGUMENT, by name, for k-means with a kernel of another distance than that which means make small. */
mercer_status mrc_check_center_kernel(mercer_context *context, mrc_center_method method, const mercer_kernel *kernel);

/* What is asked for, checked; and what came of it. */
typedef struct mrc_center_request {
    mercer_context *context;
    mrc_center_method method;
    const mercer_matrix *centers;  /* filled: p of them, or this rank's share */
    int64_t p, first;              /* all there are; the first one that is wanted here */
    mercer_center_options options; /* complete: memory > 0, kernel for rpcholesky, labels for balanced */
    mercer_center_report report;
} mrc_center_request;

mercer_status mrc_choose_centers(mrc_center_request *request, const mercer_matrix *X);
/* From a dataset, preprocessed; random rows by its weights, if it has any. */
mercer_status mrc_choose_centers_from(mrc_center_request *request, mercer_dataset *dataset,
                                      const mercer_preprocess *preprocess);

/* ---- Numbers of rows (choose_rows.c) -------------------------------------------------------------------------- */

/* p different rows of n, in random order. */
void mrc_choose_random(uint64_t seed, int64_t n, int64_t p, int64_t *rows);
/* The same with heavier rows likelier, as rows that come more often would be. Those of weight 0 come last. */
mercer_status mrc_choose_weighted(mercer_context *context, uint64_t seed, const double *weights, int64_t n, int64_t p,
                                  int64_t *rows);
/* The same with as equal a number of each class as there are; labels (n) in 0 .. classes - 1. */
mercer_status mrc_choose_balanced(mercer_context *context, uint64_t seed, const int32_t *labels, int64_t n,
                                  int64_t classes, int64_t p, int64_t *rows);
/* rows[have .. p - 1]: random rows that are not among the first `have`. taken: room for n. */
void mrc_choose_fill(uint64_t seed, int64_t n, int64_t have, int64_t p, int64_t *rows, int32_t *taken);

/* Sums weights[0 .. i] into sums[i]; the last one comes back. Weights are >= 0. */
double mrc_sum_weights(const double *weights, int64_t n, double *sums);
/* A row with probability weight / sum: the place of share (in [0, 1)) of the last sum, which is > 0, among the sums. */
int64_t mrc_draw_row(const double *sums, int64_t n, double share);

/* ---- Distances (median.c) ------------------------------------------------------------------------------------- */

/* Squared distances between rows of d values up to `top` are numbers, in double at least; *wide: in double only.
   (Kernels do without this check: they are 0 where a distance overflows.) */
mercer_status mrc_check_range(mercer_context *context, double top, int64_t d, bool *wide);
/* out (m, p) f64: the distances (sum_k |x_k - z_k|^norm)^(1/norm) between the rows of X and Z, in double. */
mercer_status mrc_distances(mrc_backend *backend, double norm, const mercer_matrix *x, const mercer_matrix *z,
                            const mercer_matrix *out);
mercer_status mrc_median_distance(mrc_backend *backend, double norm, const mercer_matrix *x, uint64_t seed,
                                  double *out);
/* How many of n rows of `row` bytes each to give to it, so that it takes at most so much memory with them; at least
   64. */
int64_t mrc_median_rows(int64_t n, int64_t row, int64_t memory);

/* ---- Methods -------------------------------------------------------------------------------------------------- */

/* k-means (kmeans.c): fills centers (rows, d), those from selection->first on, of any dtype, at the very end. */
mercer_status mrc_kmeans(mrc_center_selection *selection, const mercer_matrix *centers);

/* Randomly pivoted Cholesky (rpcholesky.c): p different rows. */
mercer_status mrc_rpcholesky(mrc_center_selection *selection, int64_t *rows);

#endif
