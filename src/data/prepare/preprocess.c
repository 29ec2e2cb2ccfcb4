/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preprocessing of features: construction from parts, and application.
 *
 *   scale                 y_j = x_j v
 *   standardize, minmax   y_j = (x_j - shift_j) factor_j
 *   unit                  y_j = x_j / |x|,   |x|^2 = sum_j x_j^2
 *   rank                  y_j = R_j(x_j), the normal quantile of the rank of x_j (preprocess_rank.c), or x_j factor_j
 *   blend                 y_j = (x_j - shift_j) factor_j + rank_weight_j R_j(x_j)   (preprocess_blend.c)
 *   then, with a metric   y A, or y_j a_j
 *
 * x (n, d) of any dtype, y (n, d) f32 or f64; shift, factor (d). All arithmetic is in double, rounded once to the type
 * of y. Rows are independent: the result of a row is bitwise identical in every batch. Cost: O(n d).
 *
 * Caveat: |x|^2 of values beyond 1e154 overflows, below 1e-154 it loses bits; such rows are divided by their largest
 * magnitude first.
 */
#include "data/prepare/preprocess.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "core/threads/parallel.h"
#include "data/dataset.h"
#include "data/prepare/preprocess_parts.h"
#include "kernels/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Kinds --------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"none", "scale", "standardize", "minmax", "unit", "rank", "blend"};
/* Model files keep the spelling of version 0.1, because versions 0.1 and 0.2 can read only this spelling. */
/* check-words: allow spelling -ise (part of the file format) */
static const char *const stored_names[] = {"none", "scale", "standardise", "minmax", "unit", "rank", "blend"};

const char *mrc_preprocess_name(mrc_preprocess_kind kind)
{
    return names[kind];
}

const char *mrc_preprocess_stored_spec(const mercer_preprocess *self)
{
    return self->kind == MRC_PREPROCESS_SCALE ? self->spec : stored_names[self->kind];
}

bool mrc_preprocess_find_stored(const char *name, mrc_preprocess_kind *kind)
{
    for (int i = 0; i < (int)(sizeof stored_names / sizeof *stored_names); i++)
        if (strcmp(name, stored_names[i]) == 0) {
            *kind = (mrc_preprocess_kind)i;
            return true;
        }
    return false;
}

/* ---- Making and releasing ------------------------------------------------------------------------------------- */

mercer_status mrc_preprocess_create(mercer_preprocess **out, mercer_context *context, mrc_preprocess_kind kind,
                                    double scale, int64_t features, const double *shift, const double *factor)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *self = NULL;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the preprocessing"));
    self->context = context;
    self->kind = kind;
    self->features = features;
    self->scale = scale;
    if (features > 0) {
        MRC_TRY(mrc_alloc(context, &self->shift, features, 2 * sizeof(double), "the preprocessing"));
        self->factor = self->shift + features;
        memcpy(self->shift, shift, (size_t)features * sizeof(double));
        memcpy(self->factor, factor, (size_t)features * sizeof(double));
    }
    int used = snprintf(self->spec, sizeof self->spec, "%s", names[kind]);
    if (kind == MRC_PREPROCESS_SCALE) {
        char number[MRC_SPEC_WORD / 2];
        mrc_print_number(scale, number, sizeof number);
        snprintf(self->spec + used, sizeof self->spec - (size_t)used, ":factor=%s", number);
    }
    *out = self, self = NULL;
    return MERCER_OK;
}

mercer_status mrc_preprocess_copy(mercer_preprocess **out, mercer_context *context, const mercer_preprocess *from)
{
    MRC_OWNED(mrc_release_preprocess) mercer_preprocess *self = NULL;
    const mrc_linear_map *map = from->map;
    *out = NULL;
    MRC_TRY(mrc_preprocess_create(&self, context, from->kind, from->scale, from->features, from->shift, from->factor));
    self->folded = from->folded;
    self->kernel = from->kernel;
    if (from->knots) MRC_TRY(mrc_preprocess_set_knots(self, from->knots));
    if (from->rank_weight) {
        MRC_TRY(mrc_preprocess_set_rank_weight(self, from->rank_weight, from->unit, from->flag));
        memcpy(self->rank_weight, from->rank_weight, (size_t)(2 * from->features) * sizeof *from->rank_weight);
    }
    if (map) MRC_TRY(mrc_preprocess_set_map(self, map->features, map->width, map->diagonal, map->values));
    *out = self, self = NULL;
    return MERCER_OK;
}

mercer_status mrc_preprocess_set_map(mercer_preprocess *self, int64_t features, int64_t width, bool diagonal,
                                     const double *values)
{
    mrc_linear_map *map;
    MRC_TRY(mrc_linear_map_create(&map, self->context, features, width, diagonal, values));
    mrc_linear_map_free(self->context, self->map);
    self->map = map;
    return MERCER_OK;
}

void mrc_preprocess_free(mercer_preprocess *self)
{
    if (!self) return;
    mrc_linear_map_free(self->context, self->map);
    mrc_free(self->context, self->shift);       /* shift and factor are one allocation */
    mrc_free(self->context, self->knots);       /* knots and normal are one allocation */
    mrc_free(self->context, self->rank_weight); /* rank_weight, unit and flag are one allocation */
    mrc_free(self->context, self);
}

/* ---- Applying ------------------------------------------------------------------------------------------------ */

bool mrc_preprocess_is_identity(const mercer_preprocess *self)
{
    return !self || (!self->map && (self->kind == MRC_PREPROCESS_NONE || self->folded));
}

bool mrc_preprocess_is_affine(const mercer_preprocess *preprocess)
{
    return preprocess && !preprocess->map &&
           (preprocess->kind == MRC_PREPROCESS_STANDARDIZE || preprocess->kind == MRC_PREPROCESS_MINMAX);
}

int64_t mrc_preprocess_features(const mercer_preprocess *self)
{
    return !self ? 0 : self->map ? self->map->features : self->features;
}

const char *mrc_preprocess_spec(const mercer_preprocess *self)
{
    return self ? self->spec : "none";
}

const mercer_kernel *mrc_preprocess_kernel(const mercer_preprocess *self)
{
    return self && self->folded ? &self->kernel : NULL;
}

int64_t mrc_preprocess_width(const mercer_preprocess *self, int64_t features)
{
    return self && self->map ? self->map->width : features;
}

mercer_dtype mrc_preprocess_dtype(const mercer_preprocess *self, mercer_dtype dtype)
{
    if (mrc_preprocess_is_identity(self)) return dtype;
    return dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

/* PIECE: number of features that are processed at a time, constant so that compilers vectorize the loops. TOGETHER:
   number of rows that are multiplied by A at a time. */
enum { PIECE = 64, TOGETHER = 32 };

/* Loads up to PIECE features of a row as doubles; the rest of the piece is 0. */
static void load_piece(const mercer_matrix *x, int64_t row, int64_t first, int64_t count, double piece[PIECE])
{
    mercer_matrix part = mrc_columns(x, first, count);
    if (count < PIECE) memset(piece, 0, PIECE * sizeof *piece);
    if (count == PIECE && x->dtype == MERCER_F32) {
        const float *from = (const float *)mrc_row(&part, row);
        for (int j = 0; j < PIECE; j++) piece[j] = (double)from[j];
    } else if (count == PIECE && x->dtype == MERCER_U8) {
        const uint8_t *from = (const uint8_t *)mrc_row(&part, row);
        for (int j = 0; j < PIECE; j++) piece[j] = from[j];
    } else {
        mrc_load_row_f64(&part, row, piece);
    }
}

static void store_piece(const mercer_matrix *out, int64_t row, int64_t first, int64_t count, const double piece[PIECE])
{
    if (out->dtype == MERCER_F64) {
        memcpy((double *)mrc_row(out, row) + first, piece, (size_t)count * sizeof *piece);
        return;
    }
    float rounded[PIECE];
    for (int j = 0; j < PIECE; j++) rounded[j] = (float)piece[j];
    memcpy((float *)mrc_row(out, row) + first, rounded, (size_t)count * sizeof *rounded);
}

/* |x| = largest * root; largest is 1 unless squares leave the range of double. */
typedef struct row_norm {
    double largest, root;
} row_norm;

/* Sums the squares of a row divided by `divisor`, in PIECE partial sums, so that compilers vectorize the loop. */
static double sum_of_squares(const mercer_matrix *x, int64_t row, double divisor)
{
    double lanes[PIECE] = {0}, sum = 0;
    for (int64_t first = 0; first < x->cols; first += PIECE) {
        double piece[PIECE];
        load_piece(x, row, first, mrc_min(PIECE, x->cols - first), piece);
        for (int j = 0; j < PIECE; j++) {
            double value = piece[j] / divisor;
            lanes[j] += value * value;
        }
    }
    for (int j = 0; j < PIECE; j++) sum += lanes[j];
    return sum;
}

/* Returns the norm of a row; scales the row first only if its squares could overflow or underflow. */
static row_norm norm_of(const mercer_matrix *x, int64_t row)
{
    double sum = sum_of_squares(x, row, 1), largest = 0;
    if (sum > 1e-290 && sum < 1e290) return (row_norm){1, sqrt(sum)}; /* well within the range of double */
    for (int64_t j = 0; j < x->cols; j++) largest = fmax(largest, fabs(mrc_load(x, row, j)));
    if (largest == 0) return (row_norm){1, 1}; /* a row of zeros stays zero */
    return (row_norm){largest, sqrt(sum_of_squares(x, row, largest))};
}

/* Applies the preprocessing to features first .. first + count - 1. Applies a diagonal map, too, but no other map. */
static void transform_piece(const mercer_preprocess *self, row_norm norm, int64_t first, int64_t count,
                            double piece[PIECE])
{
    switch (self->kind) {
        case MRC_PREPROCESS_SCALE:
            for (int j = 0; j < PIECE; j++) piece[j] *= self->scale;
            break;
        case MRC_PREPROCESS_STANDARDIZE:
        case MRC_PREPROCESS_MINMAX:
            for (int64_t j = 0; j < count; j++)
                piece[j] = (piece[j] - self->shift[first + j]) * self->factor[first + j];
            break;
        case MRC_PREPROCESS_UNIT:
            for (int j = 0; j < PIECE; j++) piece[j] = piece[j] / norm.largest / norm.root;
            break;
        case MRC_PREPROCESS_RANK:
            for (int64_t j = 0; j < count; j++) {
                double factor = self->factor[first + j];
                const double *knots = self->knots + (first + j) * MRC_RANK_KNOTS;
                piece[j] = factor > 0 ? piece[j] * factor : mrc_rank_value(knots, self->normal, piece[j]);
            }
            break;
        case MRC_PREPROCESS_BLEND:
            for (int64_t j = 0; j < count; j++) piece[j] = mrc_blend_value(self, first + j, piece[j]);
            break;
        case MRC_PREPROCESS_NONE: break;
    }
    const mrc_linear_map *map = self->map;
    for (int64_t j = 0; map && map->diagonal && j < count; j++) piece[j] *= map->values[first + j];
}

static row_norm norm_for(const mercer_preprocess *self, const mercer_matrix *x, int64_t row)
{
    return self->kind == MRC_PREPROCESS_UNIT ? norm_of(x, row) : (row_norm){1, 1};
}

/* Computes up to MRC_MAP_STRIP columns of y A, from `column` on, for up to TOGETHER rows, from `row` on. Each piece of
   A is loaded only once for all these rows. */
static void map_strip(const mercer_preprocess *self, const mercer_matrix *out, const mercer_matrix *x, int64_t row,
                      int64_t column)
{
    double sums[TOGETHER * MRC_MAP_STRIP] = {0}, pieces[TOGETHER * PIECE] = {0};
    int64_t rows = mrc_min(TOGETHER, x->rows - row), columns = mrc_min(MRC_MAP_STRIP, self->map->width - column);
    row_norm norms[TOGETHER];
    for (int64_t r = 0; r < rows; r++) norms[r] = norm_for(self, x, row + r);
    for (int64_t first = 0; first < x->cols; first += PIECE) {
        int64_t count = mrc_min(PIECE, x->cols - first);
        for (int64_t r = 0; r < rows; r++) {
            load_piece(x, row + r, first, count, pieces + r * PIECE);
            transform_piece(self, norms[r], first, count, pieces + r * PIECE);
        }
        for (int64_t r = 0; r < rows; r += MRC_MAP_ROWS)
            mrc_linear_map_add(self->map, column, first, count, pieces + r * PIECE, PIECE, sums + r * MRC_MAP_STRIP);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t done = 0; done < columns; done += PIECE)
            store_piece(out, row + r, column + done, mrc_min(PIECE, columns - done), sums + r * MRC_MAP_STRIP + done);
}

static void map_rows(const mercer_preprocess *self, const mercer_matrix *out, const mercer_matrix *x)
{
    for (int64_t row = 0; row < x->rows; row += TOGETHER)
        for (int64_t column = 0; column < self->map->width; column += MRC_MAP_STRIP)
            map_strip(self, out, x, row, column);
}

static void copy_rows(const mercer_matrix *out, const mercer_matrix *x)
{
    size_t bytes = (size_t)(x->cols * mrc_dtype_size(x->dtype));
    for (int64_t i = 0; i < x->rows; i++) memcpy(mrc_row(out, i), mrc_row(x, i), bytes);
}

void mrc_preprocess_rows(const mercer_preprocess *self, const mercer_matrix *out, const mercer_matrix *x)
{
    bool identity = mrc_preprocess_is_identity(self);
    if (identity && out->dtype == x->dtype) {
        copy_rows(out, x);
        return;
    }
    if (!identity && self->map && !self->map->diagonal) {
        map_rows(self, out, x);
        return;
    }
    for (int64_t i = 0; i < x->rows; i++) {
        row_norm norm = {1, 1};
        if (!identity) norm = norm_for(self, x, i);
        for (int64_t first = 0; first < x->cols; first += PIECE) {
            int64_t count = mrc_min(PIECE, x->cols - first);
            double piece[PIECE];
            load_piece(x, i, first, count, piece);
            if (!identity) transform_piece(self, norm, first, count, piece);
            store_piece(out, i, first, count, piece);
        }
    }
}

/* ---- Gradients ------------------------------------------------------------------------------------------------- */

/* Returns the derivative of y_k with respect to x_k for kinds that transform features one by one. */
static double feature_slope(const mercer_preprocess *self, int64_t k, double x)
{
    switch (self->kind) {
        case MRC_PREPROCESS_SCALE: return self->scale;
        case MRC_PREPROCESS_BLEND: return mrc_blend_slope(self, k, x);
        case MRC_PREPROCESS_RANK:
            if (self->factor[k] > 0) return self->factor[k];
            return mrc_rank_slope(self->knots + k * MRC_RANK_KNOTS, self->normal, x);
        default: return self->factor[k];
    }
}

/*
 * Converts one gradient. `mapped` (d') is the gradient with respect to y A, and g = A mapped (d) the gradient with
 * respect to y. The gradient with respect to x is the transpose of dy / dx times g:
 *   scale v g;   standardize, minmax factor_j g_j;   rank slope_j g_j;   unit (g - y (y.g)) / |x|;
 *   blend (factor_j + rank_weight_j slope_j) g_j, with slope_j of the rank transform
 */
static void pull_back_one(const mercer_preprocess *self, const mercer_matrix *x, int64_t row, const double *mapped,
                          double *g)
{
    const mrc_linear_map *map = self ? self->map : NULL;
    int64_t d = x->cols;
    for (int64_t k = 0; k < d; k++) {
        double sum = map ? 0 : mapped[k];
        if (map && map->diagonal) sum = map->values[k] * mapped[k];
        for (int64_t j = 0; map && !map->diagonal && j < map->width; j++)
            sum += map->values[k * map->width + j] * mapped[j];
        g[k] = sum;
    }
    if (!self || self->folded || self->kind == MRC_PREPROCESS_NONE) return;
    if (self->kind == MRC_PREPROCESS_UNIT) {
        row_norm norm = norm_of(x, row);
        double dot = 0;
        for (int64_t k = 0; k < d; k++) dot += mrc_load(x, row, k) / norm.largest / norm.root * g[k];
        for (int64_t k = 0; k < d; k++)
            g[k] = (g[k] - mrc_load(x, row, k) / norm.largest / norm.root * dot) / norm.largest / norm.root;
        return;
    }
    for (int64_t k = 0; k < d; k++) g[k] *= feature_slope(self, k, mrc_load(x, row, k));
}

void mrc_preprocess_pull_back(const mercer_preprocess *self, const mercer_matrix *x, int64_t c,
                              const mercer_matrix *mapped, const mercer_matrix *gradients)
{
    int64_t width = mrc_preprocess_width(self, x->cols);
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t l = 0; l < c; l++)
            pull_back_one(self, x, i, (const double *)mrc_row(mapped, i) + l * width,
                          (double *)mrc_row(gradients, i) + l * x->cols);
}

bool mrc_preprocess_fold(mercer_preprocess *self, mercer_kernel *kernel)
{
    if (self->map || self->kind != MRC_PREPROCESS_SCALE || !mrc_kernel_is_stationary(kernel) ||
        mrc_kernel_is_callback(kernel))
        return false;
    /* The distance of scaled points is v |x - z|, so a bandwidth of b / v gives the same kernel values. */
    mercer_kernel scaled = *kernel;
    scaled.bandwidth /= self->scale;
    if (mrc_kernel_check(NULL, &scaled) != MERCER_OK) return false;
    self->folded = true;
    self->kernel = *kernel;
    *kernel = scaled;
    return true;
}

/* ---- Rows of a dataset, through a buffer --------------------------------------------------------------------- */

enum { READ_BYTES = 1 << 20, PIECES = 4 /* blocks per thread */ };

typedef struct reading {
    const mercer_dataset *dataset;
    const mercer_preprocess *preprocess;
    const int64_t *rows;
    int64_t first;
    const mercer_matrix *X, *Y;
    int32_t *labels;
    mercer_matrix blocks; /* (threads * block_rows, features) samples before preprocessing */
    int64_t block_rows;   /* rows per block */
} reading;

/* A task of mrc_parallel_for: fetches a block of rows into the worker's buffer and preprocesses it. */
static void read_piece(void *argument, int64_t piece, int worker)
{
    const reading *job = argument;
    int64_t i = piece * job->block_rows, count = mrc_min(job->block_rows, job->X->rows - i);
    mercer_matrix stored = mrc_rows(&job->blocks, worker * job->block_rows, count);
    mercer_matrix x = mrc_rows(job->X, i, count), y = job->Y ? mrc_rows(job->Y, i, count) : (mercer_matrix){0};
    mrc_dataset_fetch(job->dataset, job->rows ? job->rows + i : NULL, job->first + i, &stored, job->Y ? &y : NULL,
                      job->labels ? job->labels + i : NULL);
    mrc_preprocess_rows(job->preprocess, &x, &stored);
}

/* Reads and preprocesses rows, with all threads if there are many. The result does not depend on the number of threads,
   because rows are independent. */
static mercer_status read_preprocessed(reading *job)
{
    const mercer_dataset *dataset = job->dataset;
    int64_t row = mrc_max(1, dataset->features * mrc_dtype_size(dataset->dtype)), m = job->X->rows;
    int threads = m * row > READ_BYTES ? mrc_max(1, dataset->context->threads) : 1;
    int64_t most = (m + PIECES * (int64_t)threads - 1) / (PIECES * (int64_t)threads);
    job->block_rows = mrc_max(1, mrc_min(threads > 1 ? most : m, READ_BYTES / row));
    MRC_SCOPE(scope, dataset->context);
    MRC_TRY(mrc_scope_view(&scope, &job->blocks, threads * job->block_rows, dataset->features, dataset->dtype,
                           "blocks of samples"));
    mrc_parallel_for(threads, (m + job->block_rows - 1) / job->block_rows, read_piece, job);
    return MERCER_OK;
}

mercer_status mrc_dataset_read(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t first, const mercer_matrix *X, const mercer_matrix *Y, int32_t *labels)
{
    if (!mrc_preprocess_is_identity(preprocess) || X->dtype != dataset->dtype)
        return read_preprocessed(&(reading){dataset, preprocess, rows, first, X, Y, labels, {0}, 0});
    mrc_dataset_fetch(dataset, rows, first, X, Y, labels);
    return MERCER_OK;
}
