/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of a distance as mixtures of products. Every built-in kernel of a distance is a completely monotone function
 * of s = sum_k |x_k - z_k|^p, so by Bernstein's theorem
 *
 *   phi(s) = integral exp(-v s) dP(v),    P >= 0, P total = phi(0) = 1
 *
 * and each exp(-v s) is a product over the features. gaussian, laplace-l1, and lpq with p = q are one such term. For
 * all other kernels P is replaced by a sum: rates evenly spaced in log v, and weights that solve
 *
 *   min sum_i (phi(s_i) - sum_j weight_j exp(-v_j s_i))^2,   weights >= 0
 *
 * where the s_i are 0 and values evenly spaced in log s (non-negative least squares, Lawson & Hanson 1974, chapter 23,
 * with an orthogonal basis of the active columns). The grid includes an infinite rate, whose term is 1 if s = 0 and
 * otherwise 0. Few rates get a weight: for exp(-s^g) about 20 to 50 that are not negligible at s > 1.
 *
 * Error bound. The arguments reach from LOW to HIGH with 1 - phi(LOW) and phi(HIGH) negligible. In between, the error
 * is smooth in log s and oscillates with a period of at least the spacing of the rates, 0.05. It is evaluated with a
 * spacing of 0.01; twice the largest error found bounds the error between these arguments. Both functions decrease:
 * below LOW they are between their values at 0 and at LOW, above HIGH between their values at HIGH and 0.
 *
 * Cost: some seconds at most (exponents near 0.1), usually less than 0.1 s. All arithmetic is double and in a fixed
 * order.
 */
#include "explain/mixture.h"

#include "kernels/formulas.h"
#include "kernels/table.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define TARGET     3.5e-11 /* error at which the fit stops */
#define GOAL       1.2e-10 /* error bound at which no finer grid of rates is tried */
#define WORST      1e-8    /* largest error bound that is accepted */
#define FIT_STEP   0.12    /* spacing of arguments of the fit, in log s */
#define CHECK_STEP 0.01
#define LEAST_LOW  1e-60 /* limits of the arguments, in units of bandwidth^p */
#define MOST_HIGH  1e30
#define LAST_RATE  50.0  /* largest finite rate times LOW: exp(-50) is negligible */
#define INFINITE   1e300 /* a rate whose term is 0 for every argument above 1e-297 */
#define DEPENDENT  1e-13 /* least share of a new column's norm outside the span of the active columns */

enum { MOST_ACTIVE = 400 };

/* ---- Non-negative least squares ---------------------------------------------------------------------------------- */

typedef struct least_squares {
    int64_t rows, columns;
    const double *matrix; /* (columns, rows): columns are contiguous */
    const double *wanted; /* (rows) */
    double *residual;     /* (rows) */
    double *basis;        /* (MOST_ACTIVE, rows) orthonormal basis of the active columns */
    double *factor;       /* (MOST_ACTIVE, MOST_ACTIVE) upper triangle: active columns = basis' factor */
    double *share;        /* (MOST_ACTIVE) products of the basis vectors with `wanted` */
    double *x, *next;     /* (MOST_ACTIVE) weights of the active columns; least-squares solution */
    int64_t active[MOST_ACTIVE], count;
    bool *closed; /* (columns) active, or rejected since the last step */
} least_squares;

/* Returns the inner product. Eight sums, which are added in order, let the compiler use vectors without changing the
   result. */
static double dot(int64_t n, const double *restrict a, const double *restrict b)
{
    double lanes[8] = {0}, rest = 0;
    int64_t whole = n - n % 8;
    for (int64_t i = 0; i < whole; i += 8)
        for (int j = 0; j < 8; j++) lanes[j] += a[i + j] * b[i + j];
    for (int64_t i = whole; i < n; i++) rest += a[i] * b[i];
    for (int j = 0; j < 8; j++) rest += lanes[j];
    return rest;
}

static void subtract(int64_t n, double factor, const double *restrict a, double *restrict out)
{
    for (int64_t i = 0; i < n; i++) out[i] -= factor * a[i];
}

/* Subtracts from the residual its components along basis vectors first .. end - 1, and adds the components to their
   shares. If the residual is already orthogonal to these vectors, this removes only rounding errors. */
static void project_residual(least_squares *self, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        double part = dot(self->rows, self->basis + i * self->rows, self->residual);
        self->share[i] += part;
        subtract(self->rows, part, self->basis + i * self->rows, self->residual);
    }
}

/* Orthogonalizes active column k against the previous ones, twice: neighboring columns are nearly parallel, and one
   pass would leave rounding errors along the basis. Returns false if the column is linearly dependent on the previous
   columns. */
static bool add_to_basis(least_squares *self, int64_t k)
{
    int64_t n = self->rows;
    const double *column = self->matrix + self->active[k] * n;
    double *vector = self->basis + k * n, *factor = self->factor + k;
    memcpy(vector, column, (size_t)n * sizeof *vector);
    for (int64_t i = 0; i <= k; i++) factor[i * MOST_ACTIVE] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < k; i++) {
            double part = dot(n, self->basis + i * n, vector);
            factor[i * MOST_ACTIVE] += part;
            subtract(n, part, self->basis + i * n, vector);
        }
    double norm = sqrt(dot(n, vector, vector));
    if (!(norm > DEPENDENT * sqrt(dot(n, column, column)))) return false;
    factor[k * MOST_ACTIVE] = norm;
    for (int64_t i = 0; i < n; i++) vector[i] /= norm;
    self->share[k] = 0;
    return true;
}

/* Computes the residual of the active columns with two projections. A single projection leaves rounding errors along
   the basis, relative to the wanted values, which would hide the signs of small weights. */
static void restart_residual(least_squares *self)
{
    memcpy(self->residual, self->wanted, (size_t)self->rows * sizeof *self->residual);
    memset(self->share, 0, MOST_ACTIVE * sizeof *self->share);
    for (int pass = 0; pass < 2; pass++) project_residual(self, 0, self->count);
}

/* Solves factor next = share. */
static void solve(least_squares *self)
{
    for (int64_t i = self->count - 1; i >= 0; i--) {
        double sum = self->share[i];
        for (int64_t k = i + 1; k < self->count; k++) sum -= self->factor[i * MOST_ACTIVE + k] * self->next[k];
        self->next[i] = sum / self->factor[i * MOST_ACTIVE + i];
    }
}

/* Moves the weights towards the solution until the first weight becomes 0, and drops the columns whose weight is 0. */
static void drop_columns(least_squares *self)
{
    double step = 1;
    int64_t kept = 0, first = self->count, least = -1;
    for (int64_t i = 0; i < self->count; i++)
        if (self->next[i] <= 0) {
            double here = self->x[i] / (self->x[i] - self->next[i]);
            if (least < 0 || here < step) step = here, least = i;
        }
    for (int64_t i = 0; i < self->count; i++) {
        self->x[i] += step * (self->next[i] - self->x[i]);
        if (i == least || self->x[i] <= 0) {
            self->closed[self->active[i]] = false;
            first = mrc_min(first, kept);
            continue;
        }
        self->active[kept] = self->active[i], self->x[kept] = self->x[i];
        kept++;
    }
    self->count = kept;
    for (int64_t k = first; k < kept; k++) add_to_basis(self, k);
    restart_residual(self);
}

/* Adds a column if its weight becomes positive. Returns whether the column was added. */
static bool add_column(least_squares *self, int64_t column)
{
    self->closed[column] = true;
    self->active[self->count] = column;
    if (!add_to_basis(self, self->count)) return false;
    self->x[self->count++] = 0;
    project_residual(self, self->count - 1, self->count);
    project_residual(self, 0, self->count);
    solve(self);
    if (self->next[self->count - 1] > 0) return true;
    self->count--;
    restart_residual(self);
    return false;
}

static double largest_residual(const least_squares *self)
{
    double largest = 0;
    for (int64_t i = 0; i < self->rows; i++) largest = fmax(largest, fabs(self->residual[i]));
    return largest;
}

/* Returns the open column with the largest product with the residual, or -1. */
static int64_t best_column(const least_squares *self)
{
    int64_t best = -1;
    double most = 0;
    for (int64_t j = 0; j < self->columns; j++) {
        double value = self->closed[j] ? 0 : dot(self->rows, self->matrix + j * self->rows, self->residual);
        if (value > most) most = value, best = j;
    }
    return best;
}

/* Adds the column with the largest correlation until the residual is small or no column improves it. After each
   addition the weights are moved to the least-squares solution; columns whose weight would become negative are dropped.
   A rejected column is considered again after the next successful step. */
static void solve_nonnegative(least_squares *self)
{
    restart_residual(self);
    for (int64_t step = 0; step < 4 * self->columns && self->count < MOST_ACTIVE; step++) {
        if (largest_residual(self) <= TARGET) return;
        int64_t column = best_column(self);
        if (column < 0) return;
        if (!add_column(self, column)) continue;
        for (;;) {
            bool positive = true;
            for (int64_t i = 0; i < self->count; i++) positive = positive && self->next[i] > 0;
            if (positive) break;
            drop_columns(self);
            solve(self);
        }
        memcpy(self->x, self->next, (size_t)self->count * sizeof *self->x);
        memset(self->closed, 0, (size_t)self->columns * sizeof *self->closed);
        for (int64_t i = 0; i < self->count; i++) self->closed[self->active[i]] = true;
    }
}

/* ---- Mixtures ---------------------------------------------------------------------------------------------------- */

static mercer_status refuse(mercer_context *context, const mercer_kernel *kernel, const char *why)
{
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                    "kernel %s: %s; train with a kernel such as laplace-l1 or gaussian",
                    entry ? entry->form.name : "callback", why);
}

/* Returns the rate of a kernel that is a single product, in units of bandwidth^-p; 0 for all other kernels. */
static double single_rate(const mercer_kernel *kernel)
{
    switch (kernel->id) {
        case MRC_KERNEL_GAUSSIAN: return 0.5;
        case MRC_KERNEL_LAPLACE_L1: return 1;
        case MRC_KERNEL_EXPPOWER: return kernel->gamma == 2 ? 1 : 0;
        case MRC_KERNEL_EXPPOWER_L1: return kernel->gamma == 1 ? 1 : 0;
        case MRC_KERNEL_LPQ: return kernel->p == kernel->q ? 1 : 0;
        default: return 0;
    }
}

/* The range of arguments in which a kernel with bandwidth 1 is fitted. */
typedef struct fit_range {
    const mercer_kernel *unit;
    double low, high;
} fit_range;

/* Finds the range of arguments: up to an error of about TARGET, the kernel is 1 below the range and 0 above. The range
   is limited to LEAST_LOW .. MOST_HIGH; error_outside bounds the error beyond the range. */
static fit_range find_range(const mercer_kernel *unit)
{
    fit_range range = {unit, 1, 1};
    while (1 - mrc_kernel_of_distance(unit, range.low) > TARGET && range.low > LEAST_LOW) range.low /= 2;
    while (mrc_kernel_of_distance(unit, range.high) > TARGET / 100 && range.high < MOST_HIGH) range.high *= 2;
    return range;
}

/* Fills the matrix, the wanted values and the rates. Row 0 is s = 0; the last column has an infinite rate. */
static void fill_problem(const fit_range *range, double spacing, least_squares *self, double *matrix, double *wanted,
                         double *rates)
{
    for (int64_t j = 0; j < self->columns; j++)
        rates[j] = j + 1 < self->columns ? 1e-2 / range->high * exp(spacing * (double)j) : INFINITE;
    for (int64_t i = 0; i < self->rows; i++) {
        double s = i == 0 ? 0 : range->low * exp(FIT_STEP * (double)(i - 1));
        wanted[i] = mrc_kernel_of_distance(range->unit, s);
        for (int64_t j = 0; j < self->columns; j++) matrix[j * self->rows + i] = exp(-rates[j] * s);
    }
    self->matrix = matrix, self->wanted = wanted;
}

static double mixture_value(const mrc_mixture *mixture, double s)
{
    double sum = 0;
    for (int64_t i = 0; i < mixture->count; i++) sum += mixture->weight[i] * exp(-mixture->rate[i] * s);
    return sum;
}

/* Returns the share of the error bound for arguments outside the range. */
static double error_outside(const fit_range *range)
{
    return fmax(1 - mrc_kernel_of_distance(range->unit, range->low), mrc_kernel_of_distance(range->unit, range->high));
}

/* Returns the error bound that the comment at the top of this file derives. */
static double bound_error(const fit_range *range, const mrc_mixture *mixture)
{
    double most = fabs(1 - mixture_value(mixture, 0));
    int64_t steps = (int64_t)ceil((log(range->high) - log(range->low)) / CHECK_STEP);
    for (int64_t i = 0; i < steps; i++) {
        double s = range->low * exp((double)i * CHECK_STEP);
        most = fmax(most, fabs(mrc_kernel_of_distance(range->unit, s) - mixture_value(mixture, s)));
    }
    return 2 * most + error_outside(range);
}

/* Copies the active columns, with ascending rates, to the mixture. */
static void take_terms(const least_squares *self, const double *rates, mrc_mixture *out)
{
    for (int64_t k = 0; k < self->count; k++) {
        double rate = rates[self->active[k]];
        int64_t place = k;
        for (; place > 0 && out->rate[place - 1] > rate; place--) {
            out->rate[place] = out->rate[place - 1];
            out->weight[place] = out->weight[place - 1];
        }
        out->rate[place] = rate, out->weight[place] = self->x[k];
    }
    out->count = self->count;
}

/* Fits a mixture with a grid of rates, `spacing` apart in log v. */
static mercer_status fit_grid(mrc_mixture *out, mercer_context *context, const fit_range *range, double spacing)
{
    least_squares self = {.rows = 2 + (int64_t)(log(range->high / range->low) / FIT_STEP),
                          .columns = 2 + (int64_t)(log(LAST_RATE / range->low * range->high * 100) / spacing)};
    const char *what = "the mixture of a kernel";
    double *matrix, *wanted, *rates;
    int64_t size = sizeof(double), n = self.rows;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &matrix, n * self.columns, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &wanted, n, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &rates, self.columns, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &self.residual, n, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &self.basis, n * MOST_ACTIVE, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &self.factor, MOST_ACTIVE * MOST_ACTIVE, size, what));
    MRC_TRY(mrc_scope_alloc(&scope, &self.share, 3 * MOST_ACTIVE, size, what));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.closed, self.columns, sizeof *self.closed, what));
    self.x = self.share + MOST_ACTIVE, self.next = self.x + MOST_ACTIVE;
    fill_problem(range, spacing, &self, matrix, wanted, rates);
    solve_nonnegative(&self);
    take_terms(&self, rates, out);
    out->error = bound_error(range, out);
    return MERCER_OK;
}

/* Fits with finer and finer grids until the bound is small. Coarse grids give fewer terms. Kernels whose exponent is
   close to that of a product need fine grids, because their measure P has a narrow peak. */
static mercer_status fit_mixture(mrc_mixture *out, mercer_context *context, const mercer_kernel *unit)
{
    static const double spacings[] = {0.36, 0.15, 0.05};
    fit_range range = find_range(unit);
    mrc_mixture next = {0};
    double least = out->error = INFINITY;
    if (error_outside(&range) > WORST) return MERCER_OK;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &next.rate, 2 * MOST_ACTIVE, sizeof *next.rate, "the mixture of a kernel"));
    next.weight = next.rate + MOST_ACTIVE;
    for (size_t i = 0; i < sizeof spacings / sizeof *spacings && least > GOAL; i++) {
        MRC_TRY(fit_grid(&next, context, &range, spacings[i]));
        if (!(next.error < least)) continue;
        least = next.error;
        out->count = next.count, out->error = next.error;
        memcpy(out->rate, next.rate, (size_t)next.count * sizeof *out->rate);
        memcpy(out->weight, next.weight, (size_t)next.count * sizeof *out->weight);
    }
    return MERCER_OK;
}

mercer_status mrc_mixture_find(mrc_mixture *out, mrc_scope *scope, const mercer_kernel *kernel)
{
    mercer_kernel unit = *kernel;
    double norm = mrc_kernel_norm(kernel), rate = single_rate(kernel);
    if (!mrc_kernel_find(kernel->id) || !(norm > 0))
        return refuse(scope->context, kernel, "exact Shapley values exist only for built-in functions of the distance");
    double scale = pow(kernel->bandwidth, -norm);
    if (!isnormal(scale)) return refuse(scope->context, kernel, "its bandwidth is out of range for Shapley values");
    unit.bandwidth = 1;
    MRC_TRY(mrc_scope_alloc(scope, &out->rate, 2 * MOST_ACTIVE, sizeof *out->rate, "the mixture of a kernel"));
    out->weight = out->rate + MOST_ACTIVE;
    if (rate > 0) {
        out->count = 1, out->error = 0;
        out->rate[0] = rate, out->weight[0] = 1;
    } else {
        MRC_TRY(fit_mixture(out, scope->context, &unit));
        if (!(out->error <= WORST))
            return refuse(scope->context, kernel, "its parameters allow no mixture of products within 1e-8");
    }
    for (int64_t i = 0; i < out->count; i++) out->rate[i] = out->rate[i] < INFINITE ? out->rate[i] * scale : INFINITE;
    return MERCER_OK;
}
