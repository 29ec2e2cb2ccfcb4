/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth and ridge of a round of learning, chosen together by small fits that are solved directly:
 *
 *   for each bandwidth:  K = K(X, Z),  G = K'K,  B = K'Y
 *     for each ridge l:  alpha = (G + l n K(Z, Z) + 1e-10 tr(G) / p I)^-1 B,   e = mean of |K(V, Z) alpha - Y_V|^2
 *   the pair with the smallest e
 *
 * X (n, d) are at most 8,192 rows of the samples, Z (p, d) at most 1,024 of them or of the centers given, V (n', d) at
 * most 8,192 rows held back; samples that count more than once are rows times the root of their weight. What is best
 * for these is nearly what is best for all, l being the ridge of one sample. Cost: 2 n p^2 flops for each bandwidth and
 * p^3 / 3 for each ridge, all in double; memory 3 p^2 and some rows of p, at most 80 MB.
 */
#include "fit/fitting.h"

#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 8192, MOST_CENTERS = 1024, BLOCK_ROWS = 1024, RIDGES = 5 };
static const double ridges[RIDGES] = {1e-7, 1e-6, 1e-5, 1e-4, 1e-3};
#define JITTER         1e-10
#define RANDOM_CENTERS UINT64_C(0x67726964)

/* Rows in double: targets centred as the model will have them. */
typedef struct points {
    mercer_matrix x, y;
    double *weights; /* (rows), or NULL */
    double total;    /* of the weights */
    void *memory;
} points;

typedef struct grid {
    mercer_context *context;
    const mercer_fitting *sample;
    const mercer_preprocess *preprocess;
    mercer_kernel kernel;
    points train, held;
    mercer_matrix z;                /* (p, d) */
    mercer_matrix zz, gram, system; /* (p, p) */
    mercer_matrix rhs;              /* (p, c) */
    mercer_matrix block;            /* (BLOCK_ROWS, p) */
    mercer_matrix weights, answers; /* (p, ridges c), (n', ridges c) */
    const double *tried;            /* ridges, */
    int count;                      /* and how many */
    void *memory;
    mrc_choice best;
} grid;

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Targets minus their mean and, of regression, over their deviation; as they are where the options say so. */
static mercer_status centre_targets(const grid *self, const mercer_matrix *y)
{
    const char *how = self->sample->options.target_transform;
    const mercer_dataset *data = self->sample->data;
    double *mean;
    if (how && strcmp(how, "none") == 0) return MERCER_OK;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &mean, 2 * y->cols, sizeof *mean, "moments of the targets"));
    double *deviation = mean + y->cols;
    MRC_TRY(mercer_dataset_target_moments(data, mean, deviation));
    bool scaled = data->task != MERCER_TASK_CLASSIFICATION;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t l = 0; l < y->cols; l++)
            mrc_store(y, i, l, (mrc_load(y, i, l) - mean[l]) / (scaled && deviation[l] > 0 ? deviation[l] : 1));
    return MERCER_OK;
}

/* Rows spread over a dataset. */
static mercer_status read_points(const grid *self, const mercer_dataset *from, points *out)
{
    int64_t m = mrc_min(from->rows, MOST_ROWS), d = mercer_preprocess_width(self->preprocess, from->features);
    int64_t rows[MOST_ROWS], c = from->outputs;
    MRC_TRY(mrc_alloc(self->context, &out->memory, m, (d + c + 1) * (int64_t)sizeof(double), "rows of small fits"));
    double *numbers = out->memory;
    out->x = mrc_view(numbers, m, d, MERCER_F64), out->y = mrc_view(numbers + m * d, m, c, MERCER_F64);
    out->weights = from->weights ? numbers + m * (d + c) : NULL;
    out->total = 0;
    for (int64_t i = 0; i < m; i++) rows[i] = (int64_t)((double)i * (double)from->rows / (double)m);
    MRC_TRY(mercer_dataset_read(from, &out->x, &out->y, NULL, self->preprocess, rows, 0));
    for (int64_t i = 0; i < m; i++) {
        if (out->weights) out->weights[i] = from->weights[rows[i]];
        out->total += out->weights ? out->weights[i] : 1;
    }
    MRC_TRY(mrc_check_finite(self->context, "samples", &out->x, NULL));
    return centre_targets(self, &out->y);
}

/* Rows of the matrix times the root of their weight. */
static void weigh(const points *of, int64_t first, const mercer_matrix *matrix)
{
    for (int64_t i = 0; i < matrix->rows && of->weights; i++)
        for (int64_t k = 0; k < matrix->cols; k++)
            mrc_store(matrix, i, k, mrc_load(matrix, i, k) * sqrt(of->weights[first + i]));
}

/* Given centers, in the mapped space, or random rows of X. */
static mercer_status take_centers(grid *self)
{
    const mercer_dataset *given = self->sample->options.given_centers;
    int64_t rows[MOST_CENTERS], from = given ? given->rows : self->train.x.rows, d = self->z.cols;
    mrc_rng rng = {self->sample->options.seed, RANDOM_CENTERS};
    for (int64_t j = 0; j < self->z.rows; j++) rows[j] = mrc_random_permutation(rng, from, j);
    if (given) return mercer_dataset_read(given, &self->z, NULL, NULL, self->preprocess, rows, 0);
    for (int64_t j = 0; j < self->z.rows; j++)
        memcpy(mrc_row(&self->z, j), mrc_row(&self->train.x, rows[j]), (size_t)d * sizeof(double));
    return MERCER_OK;
}

static mercer_status make_room(grid *self)
{
    const mercer_dataset *given = self->sample->options.given_centers;
    int64_t wanted = given                               ? given->rows
                     : self->sample->options.centers > 0 ? self->sample->options.centers
                                                         : MOST_ROWS;
    int64_t n = given ? wanted : self->train.x.rows, p = mrc_min(mrc_min(wanted, n), MOST_CENTERS);
    int64_t d = self->train.x.cols, c = self->train.y.cols, columns = c * self->count, held = self->held.x.rows;
    int64_t numbers = p * (d + 3 * p + c + BLOCK_ROWS + columns) + held * columns;
    MRC_TRY(mrc_alloc(self->context, &self->memory, numbers, sizeof(double), "small fits"));
    double *at = self->memory;
    mercer_matrix *const all[] = {&self->z,   &self->zz,    &self->gram,    &self->system,
                                  &self->rhs, &self->block, &self->weights, &self->answers};
    const int64_t shapes[][2] = {{p, d}, {p, p},          {p, p},       {p, p},
                                 {p, c}, {BLOCK_ROWS, p}, {p, columns}, {held, columns}};
    for (int i = 0; i < 8; i++) {
        *all[i] = mrc_view(at, shapes[i][0], shapes[i][1], MERCER_F64);
        at += shapes[i][0] * shapes[i][1];
    }
    return take_centers(self);
}

/* ---- One bandwidth ----------------------------------------------------------------------------------------------- */

static mercer_status make_equations(grid *self)
{
    mrc_backend *backend = self->context->backend;
    mrc_pair pair = {.kernel = &self->kernel, .x = &self->z, .z = &self->z};
    MRC_TRY(backend->ops->kernel_eval(backend, &pair, &self->zz));
    for (int64_t first = 0; first < self->train.x.rows; first += BLOCK_ROWS) {
        int64_t count = mrc_min(BLOCK_ROWS, self->train.x.rows - first);
        mercer_matrix x = mrc_rows(&self->train.x, first, count), y = mrc_rows(&self->train.y, first, count),
                      block = mrc_rows(&self->block, 0, count);
        pair.x = &x;
        MRC_TRY(backend->ops->kernel_eval(backend, &pair, &block));
        weigh(&self->train, first, &block);
        double beta = first > 0 ? 1 : 0;
        mrc_gemm gram = {true, false, 1, beta, &block, &block, &self->gram},
                 rhs = {true, false, 1, beta, &block, &y, &self->rhs};
        MRC_TRY(backend->ops->gemm(backend, &gram));
        MRC_TRY(backend->ops->gemm(backend, &rhs));
    }
    return MERCER_OK;
}

/* The weights of one ridge, into their columns; *solved: the system was positive definite. */
static mercer_status solve(grid *self, double ridge, const mercer_matrix *weights, bool *solved)
{
    mrc_backend *backend = self->context->backend;
    int64_t p = self->z.rows;
    double trace = 0;
    for (int64_t j = 0; j < p; j++) trace += mrc_load(&self->gram, j, j);
    for (int64_t i = 0; i < p; i++) {
        const double *g = mrc_row(&self->gram, i), *k = mrc_row(&self->zz, i);
        double *a = mrc_row(&self->system, i);
        for (int64_t j = 0; j < p; j++) a[j] = g[j] + ridge * self->train.total * k[j];
        a[i] += JITTER * trace / (double)p;
    }
    mercer_status status = backend->ops->cholesky(backend, &self->system);
    *solved = status == MERCER_OK;
    if (!*solved) return status == MERCER_ERROR_NUMERIC ? MERCER_OK : status;
    MRC_TRY(backend->ops->copy(backend, weights, &self->rhs));
    MRC_TRY(backend->ops->triangular_solve(backend, &self->system, false, weights));
    return backend->ops->triangular_solve(backend, &self->system, true, weights);
}

static double error_of(const grid *self, int64_t first_column)
{
    double sum = 0;
    for (int64_t i = 0; i < self->held.y.rows; i++)
        for (int64_t l = 0; l < self->held.y.cols; l++) {
            double off = mrc_load(&self->answers, i, first_column + l) - mrc_load(&self->held.y, i, l);
            sum += (self->held.weights ? self->held.weights[i] : 1) * off * off;
        }
    return sum / (self->held.total * (double)self->held.y.cols);
}

static mercer_status try_bandwidth(grid *self, double bandwidth)
{
    mrc_backend *backend = self->context->backend;
    int64_t c = self->rhs.cols;
    bool solved[RIDGES] = {false};
    self->kernel.bandwidth = bandwidth;
    MRC_TRY(make_equations(self));
    MRC_TRY(backend->ops->clear(backend, &self->weights));
    for (int r = 0; r < self->count; r++) {
        mercer_matrix weights = self->weights;
        weights.data = (double *)weights.data + r * c;
        weights.cols = c;
        MRC_TRY(solve(self, self->tried[r], &weights, &solved[r]));
    }
    mrc_pair pair = {.kernel = &self->kernel, .x = &self->held.x, .z = &self->z};
    MRC_TRY(backend->ops->kernel_matmul(backend, &pair, &self->weights, &self->answers, false));
    for (int r = 0; r < self->count; r++) {
        double error = solved[r] ? error_of(self, r * c) : (double)INFINITY;
        if (error < self->best.error) self->best = (mrc_choice){bandwidth, self->tried[r], error};
    }
    return MERCER_OK;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static mercer_status try_all(grid *self, const double *bandwidths, int count, int at_least)
{
    const mercer_fitting *sample = self->sample;
    MRC_TRY(read_points(self, sample->data, &self->train));
    MRC_TRY(read_points(self, sample->validation, &self->held));
    weigh(&self->train, 0, &self->train.y);
    MRC_TRY(make_room(self));
    for (int i = 0; i < count && (i < at_least || self->best.bandwidth == bandwidths[i - 1]); i++)
        MRC_TRY(try_bandwidth(self, bandwidths[i]));
    return MERCER_OK;
}

mercer_status mrc_fit_choose(const mercer_fitting *sample, const mercer_kernel *kernel,
                             const mercer_preprocess *preprocess, const double *bandwidths, int count, int at_least,
                             double ridge, mrc_choice *out)
{
    grid self = {.context = sample->context, .sample = sample, .preprocess = preprocess, .kernel = *kernel};
    self.tried = ridge >= 0 ? &ridge : ridges;
    self.count = ridge >= 0 ? 1 : (int)RIDGES;
    self.best = (mrc_choice){bandwidths[0], fmax(ridge, 0), (double)INFINITY};
    mercer_status status = try_all(&self, bandwidths, count, at_least);
    *out = self.best;
    MRC_FREE_ALL(self.context, self.memory, self.train.memory, self.held.memory);
    return status;
}
