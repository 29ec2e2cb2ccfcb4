/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imputation of missing numbers from the other numbers of their row: see gaps.h.
 *
 * Rows are sampled while the table is tallied (schema.c). The matrix P of gaps.h is computed once from the sample and
 * stored in the schema. Rows are filled in while they are encoded (encode.c). For r sampled rows and k columns, finding
 * P costs O(r k^2 + k^3) time and 3 k^2 doubles; the sample has a buffer of MRC_GAPS_ROWS floats per column of the
 * table.
 */
#include "data/schema/gaps.h"

#include "core/memory.h"
#include "data/schema/schema.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Sampling rows ------------------------------------------------------------------------------------------- */

mercer_status mrc_spread_rows_add(mrc_spread_rows *self, mercer_context *context, int64_t index, const float *cells,
                                  int64_t columns)
{
    size_t bytes = (size_t)columns * sizeof(float);
    if (columns > MRC_GAPS_COLUMNS) return MERCER_OK;
    if (!self->cells) {
        MRC_TRY(mrc_alloc(context, &self->cells, MRC_GAPS_ROWS * columns, sizeof(float), "rows of a table"));
        self->saved = 0, self->stride = 1;
    }
    if (index & (self->stride - 1)) return MERCER_OK; /* take every stride-th row; the stride is a power of two */
    if (self->saved == MRC_GAPS_ROWS) {
        /* The buffer is full: drop every other row and take rows half as often from now on. */
        self->saved /= 2, self->stride *= 2;
        for (int64_t i = 1; i < self->saved; i++)
            memcpy(self->cells + i * columns, self->cells + 2 * i * columns, bytes);
        if (index & (self->stride - 1)) return MERCER_OK;
    }
    memcpy(self->cells + self->saved++ * columns, cells, bytes);
    return MERCER_OK;
}

/* ---- Checking ------------------------------------------------------------------------------------------------ */

/* Limits for P. Schemas made from tables have pivots above 1e-4 and entries up to about 1,000, because rho >= 0.001 is
   added to a diagonal of ones. The limits reject only damaged or invented schemas. */
#define LEAST_PIVOT 1e-9
#define MOST_ENTRY  1e12

/* Tries a Cholesky factorization of P. The system of a row with missing numbers is a principal submatrix of P, so it is
   positive definite if P is. */
bool mrc_precision_valid(int64_t count, const double *precision)
{
    enum { MOST = MRC_GAPS_COLUMNS };
    double factor[MOST * (MOST + 1) / 2];
    for (int64_t i = 0; i < count; i++) {
        double *row = factor + i * (i + 1) / 2;
        for (int64_t j = 0; j <= i; j++) {
            const double *other = factor + j * (j + 1) / 2;
            double rest = precision[i * count + j];
            if (!(fabs(rest) <= MOST_ENTRY)) return false;
            for (int64_t k = 0; k < j; k++) rest -= row[k] * other[k];
            if (i == j && !(rest > LEAST_PIVOT)) return false;
            row[j] = i == j ? sqrt(rest) : rest / other[j];
        }
    }
    return true;
}

/* ---- Fitting ------------------------------------------------------------------------------------------------- */

/* Scratch space of mrc_gaps_find: the columns that take part, and sums over rows. */
typedef struct finding {
    const mrc_spread_rows *rows;
    int64_t columns;                  /* number of cells per row */
    int64_t count;                    /* number of columns that take part */
    int64_t places[MRC_GAPS_COLUMNS]; /* (count) indices of these columns among the cells */
    double mean[MRC_GAPS_COLUMNS], deviation[MRC_GAPS_COLUMNS];
    double *products, *pairs, *inverse; /* (count, count) sums of z_i z_j; numbers of rows with both; (R + rho I)^-1 */
} finding;

/* Returns the standard deviation of a column in the sample of rows; missing values do not count. */
static double deviation_of(const mrc_spread_rows *rows, int64_t columns, int64_t j, double mean)
{
    double sum = 0, known = 0;
    for (int64_t i = 0; i < rows->saved; i++) {
        float cell = rows->cells[i * columns + j];
        if (isnan(cell)) continue;
        sum += ((double)cell - mean) * ((double)cell - mean);
        known++;
    }
    return known > 0 ? sqrt(sum / known) : 0;
}

/* Chooses the columns that take part in the imputation. Returns false if no number is missing, or if fewer than two
   columns take part. */
static bool choose_gap_rule(finding *self, const mrc_column *columns)
{
    bool gaps = false;
    for (int64_t j = 0; j < self->columns; j++) {
        const mrc_column *column = &columns[j];
        if (column->kind != MRC_KIND_NUMBER && column->kind != MRC_KIND_DATE) continue;
        double deviation = deviation_of(self->rows, self->columns, j, column->mean);
        if (!(deviation > 0) || !isfinite(1 / deviation)) continue;
        self->places[self->count] = j;
        self->mean[self->count] = column->mean;
        self->deviation[self->count++] = deviation;
        gaps = gaps || column->missing > 0;
    }
    return gaps && self->count > 1;
}

/* Computes the products and pairs (lower triangles) over all sampled rows. */
static void add_products(finding *self)
{
    double z[MRC_GAPS_COLUMNS], known[MRC_GAPS_COLUMNS];
    int64_t k = self->count;
    for (int64_t row = 0; row < self->rows->saved; row++) {
        const float *cells = self->rows->cells + row * self->columns;
        for (int64_t i = 0; i < k; i++) {
            double cell = (double)cells[self->places[i]];
            known[i] = isnan(cell) ? 0 : 1;
            z[i] = isnan(cell) ? 0 : (cell - self->mean[i]) / self->deviation[i];
        }
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j <= i; j++) {
                self->products[i * k + j] += z[i] * z[j];
                self->pairs[i * k + j] += known[i] * known[j];
            }
    }
}

/* Inverts the matrix `a` (k, k) in place by Gauss-Jordan elimination. Pivoting is not needed, because all pivots of a
   positive definite matrix are above 0. Returns false if the matrix is not positive definite, or nearly singular. */
static bool invert(double *a, int64_t k)
{
    for (int64_t p = 0; p < k; p++) {
        double pivot = a[p * k + p];
        if (!(pivot > 1e-6)) return false;
        a[p * k + p] = 1;
        for (int64_t j = 0; j < k; j++) a[p * k + j] /= pivot;
        for (int64_t i = 0; i < k; i++) {
            double factor = a[i * k + p];
            if (i == p) continue;
            a[i * k + p] = 0;
            for (int64_t j = 0; j < k; j++) a[i * k + j] -= factor * a[p * k + j];
        }
    }
    return true;
}

/* Computes (R + rho I)^-1; false if the matrix is not positive definite. Each entry is a mean over a different set of
   rows, so R need not be a correlation matrix. Entries are limited to -1 .. 1. */
static bool find_inverse(finding *self, double rho)
{
    int64_t k = self->count;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double pairs = self->pairs[i * k + j], mean = pairs > 0 ? self->products[i * k + j] / pairs : 0;
            double value = i == j ? 1 + rho : fmin(fmax(mean, -1), 1);
            self->inverse[i * k + j] = self->inverse[j * k + i] = value;
        }
    return invert(self->inverse, k) && mrc_precision_valid(k, self->inverse);
}

mercer_status mrc_gaps_find(const mrc_spread_rows *rows, mercer_context *context, mrc_column *columns, int64_t count,
                            double **memory)
{
    finding self = {.rows = rows, .columns = count};
    *memory = NULL;
    if (!rows->cells || rows->saved < MRC_GAPS_LEAST_ROWS || !choose_gap_rule(&self, columns)) return MERCER_OK;
    int64_t k = self.count, numbers = k * k;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.products, 3 * numbers, sizeof(double), "correlations of columns"));
    self.pairs = self.products + numbers, self.inverse = self.pairs + numbers;
    add_products(&self);
    double rho = fmax(0.001, (double)k / (double)rows->saved);
    /* ends at the latest when rho reaches k, because |R_ij| <= 1 makes the matrix diagonally dominant */
    while (!find_inverse(&self, rho)) rho *= 10;
    MRC_TRY(mrc_alloc(context, memory, k * (k + 1) / 2, sizeof(double), "correlations of columns"));
    double *to = *memory;
    for (int64_t i = 0; i < k; i++) {
        mrc_column *column = &columns[self.places[i]];
        column->deviation = self.deviation[i];
        column->precision = to;
        column->gap = i;
        for (int64_t j = 0; j <= i; j++) *to++ = self.inverse[i * k + j];
    }
    return MERCER_OK;
}

/* ---- Filling in ---------------------------------------------------------------------------------------------- */

bool mrc_gaps_values(const mrc_gaps *self, const float *cells, double *values)
{
    double z[MRC_GAPS_COLUMNS];
    /* One entry more, because gaps[m] is written before it is known whether number i is missing. */
    int64_t gaps[MRC_GAPS_COLUMNS + 1], m = 0;
    for (int64_t i = 0; i < self->count; i++) {
        values[i] = (double)cells[self->cells[i]];
        gaps[m] = i;
        m += isnan(values[i]) ? 1 : 0;
    }
    if (m == 0) return false;
    for (int64_t i = 0; i < self->count; i++) {
        double deviations = (values[i] - self->mean[i]) * self->factor[i];
        z[i] = isnan(values[i]) ? 0 : deviations;
    }
    mrc_gaps_fill(self->count, self->precision, gaps, m, z);
    for (int64_t k = 0; k < m; k++) {
        int64_t i = gaps[k];
        values[i] = fmin(fmax(self->mean[i] + self->deviation[i] * z[i], -FLT_MAX), FLT_MAX);
    }
    return true;
}
