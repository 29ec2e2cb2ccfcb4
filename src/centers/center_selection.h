/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * centers: selection of centers from the rows of X: at random or balanced over classes (choose_rows.c), by k-means
 * (kmeans.c, with k-means++ seeds by kmeans_seed.c), or by randomly pivoted Cholesky (rpcholesky.c); and the median
 * distance between rows, from which bandwidths are chosen (median.c).
 *
 * Every method is deterministic, given the rows and the seed. Points are in host memory.
 */
#ifndef MRC_CENTERS_CENTER_SELECTION_H
#define MRC_CENTERS_CENTER_SELECTION_H

#include "backends/backend.h"
#include "comm/comm.h"
#include "core/numbers/random.h"
#include "data/dataset.h"

/* Sequence numbers for mrc_rng: each use of the seed has its own random sequence. */
#define MRC_RANDOM_CHOICE  UINT64_C(0x63683031)   /* a permutation of the rows */
#define MRC_RANDOM_DRAW    UINT64_C(0x63683032)   /* draws with probability proportional to weights */
#define MRC_RANDOM_ACCEPT  UINT64_C(0x63683033)   /* acceptance of drawn candidates */
#define MRC_RANDOM_FILL    UINT64_C(0x63683034)   /* a permutation: random rows for the remaining centers */
#define MRC_RANDOM_WAITS   UINT64_C(0x63683035)   /* waiting times of weighted rows (choose_rows.c) */
#define MRC_RANDOM_BATCHES UINT64_C(0x6368000000) /* + pass: a permutation of the rows for mini-batches */

/* Input and report of a selection method; the caller has checked the input. */
typedef struct mrc_center_selection {
    mrc_backend *backend;
    const mercer_matrix *x; /* (n, d) any dtype, finite */
    int64_t p;              /* number of centers, 1 <= p <= n */
    mrc_comm *comm;         /* ranks that share the work, all with the same rows; NULL: one rank */
    int64_t first;          /* index of the first center that this rank stores */
    bool wide;              /* squared distances need double, as in mrc_search */
    const mercer_center_options
        *options; /* with all defaults filled in: memory > 0, kernel for rpcholesky, labels and classes for balanced */
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
/* Finds a method by name (NULL: random). Returns false if the name is unknown. */
bool mrc_center_method_find(const char *name, mrc_center_method *out);
/* Fails with MERCER_ERROR_ARGUMENT for k-means with a kernel whose distance is not L2: means minimize L2 distances
   only. */
mercer_status mrc_check_center_kernel(mercer_context *context, mrc_center_method method, const mercer_kernel *kernel);

/* A checked request for centers, and its report. */
typedef struct mrc_center_request {
    mercer_context *context;
    mrc_center_method method;
    const mercer_matrix *centers; /* output: all p centers, or this rank's share */
    int64_t p, first;             /* p: number of centers of all ranks; first: index of the first center in `centers` */
    /* with all defaults filled in: memory > 0, kernel for rpcholesky, labels for balanced */
    mercer_center_options options;
    mercer_center_report report;
} mrc_center_request;

/* Chooses centers from the rows of X, in host memory. */
mercer_status mrc_choose_centers(mrc_center_request *request, const mercer_matrix *X);
/* Chooses centers from the preprocessed rows of a dataset. The random method uses the dataset's weights, if it has
   any. */
mercer_status mrc_choose_centers_from(mrc_center_request *request, mercer_dataset *dataset,
                                      const mercer_preprocess *preprocess);

/* ---- Numbers of rows (choose_rows.c) -------------------------------------------------------------------------- */

/* Chooses p distinct random rows of n, in random order. */
void mrc_choose_random(uint64_t seed, int64_t n, int64_t p, int64_t *rows);
/* Like mrc_choose_random, but draws rows in proportion to weights (n): a row of weight 2 is as likely as a row that
   occurs twice. Rows of weight 0 come last. */
mercer_status mrc_choose_weighted(mercer_context *context, uint64_t seed, const double *weights, int64_t n, int64_t p,
                                  int64_t *rows);
/* Like mrc_choose_random, but with the same number of rows from each class, as far as the class sizes allow. labels
   (n): 0 .. classes - 1. */
mercer_status mrc_choose_balanced(mercer_context *context, uint64_t seed, const int32_t *labels, int64_t n,
                                  int64_t classes, int64_t p, int64_t *rows);
/* Fills rows[have .. p - 1] with random rows that are not among the first `have`. taken (n): scratch. */
void mrc_choose_fill(uint64_t seed, int64_t n, int64_t have, int64_t p, int64_t *rows, int32_t *taken);

/* Sets sums[i] to weights[0] + ... + weights[i] and returns the last sum. Weights must be >= 0. */
double mrc_sum_weights(const double *weights, int64_t n, double *sums);
/* Returns a row with probability weight / sum, for a uniform `share` in [0, 1): the first row whose sum exceeds share
   times the last sum, which must be > 0. */
int64_t mrc_draw_row(const double *sums, int64_t n, double share);

/* ---- Distances (median.c) ------------------------------------------------------------------------------------- */

/* Checks that squared distances between rows with d values of magnitude up to `top` are in the range of double. Sets
   *wide to whether they may exceed the range of float. Kernels do not need this check, because they are 0 where a
   distance overflows. */
mercer_status mrc_check_range(mercer_context *context, double top, int64_t d, bool *wide);
/* Computes the distances (sum_k |x_k - z_k|^norm)^(1/norm) between the rows of x (m, d) and z (p, d) in double; out (m,
   p) f64. */
mercer_status mrc_distances(mrc_backend *backend, double norm, const mercer_matrix *x, const mercer_matrix *z,
                            const mercer_matrix *out);
/* Computes the median of the nonzero distances between rows. *out is 0 if all sampled rows are equal. */
enum { MRC_MEDIAN_ROWS = 2000 }; /* number of random rows used if x has more rows */
mercer_status mrc_median_distance(mrc_backend *backend, double norm, const mercer_matrix *x, uint64_t seed,
                                  double *out);
/* Returns the number of rows, up to n, that mrc_median_distance can use within `memory` bytes. row: bytes per row; the
   rows and their copy count. The result is at least min(n, 57), even if these rows need more memory. */
int64_t mrc_median_rows(int64_t n, int64_t row, int64_t memory);

/* ---- Methods -------------------------------------------------------------------------------------------------- */

/* k-means (kmeans.c): computes p centers and writes centers selection->first, selection->first + 1, ... to the rows of
   `centers` (rows, d), of any dtype. */
mercer_status mrc_kmeans(mrc_center_selection *selection, const mercer_matrix *centers);

/* Randomly pivoted Cholesky (rpcholesky.c): writes the indices of p distinct rows to rows (p). */
mercer_status mrc_rpcholesky(mrc_center_selection *selection, int64_t *rows);

#endif
