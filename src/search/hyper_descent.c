/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stochastic descent of the held-out error over all hyperparameters of a kernel at once.
 *
 *   for t = 1 .. T:  draw training rows, centers and held-out rows;  g = gradient of their error (error_gradient.c)
 *     a = .9 a + .1 g,  b = .99 b + .01 g^2                     (both corrected for their start at 0)
 *     theta -= rate_i cos-decay(t / T) a / sqrt(b)
 *
 * which is Adam (Kingma and Ba 2015). theta: logarithms of the factors c of the coordinates; the entries of a map B, if
 * one is learned; the exponent of the kernel as a logit of its range; the logarithm of the ridge. With a map,
 * coordinate j is a copy of feature f_j and the points are x A,
 *
 *   A_j = c_j B_f(j)      dE/dB_f = sum over j with f_j = f of c_j (dE/dA)_j      dE/dlog c_j = c_j B_f(j) . (dE/dA)_j
 *
 * Adam's steps do not depend on the size of a gradient. So a factor can change by e^(rate T / 2) in T steps; for T = 60
 * that is a factor of about 1,800.
 *
 * With few rows, all draws contain much the same noise, and the descent would fit it. So the descent minimizes E (1 + P
 * / n) for n distinct rows, with the prior
 *
 *   P = 2.5 sum_k (s_k - mean s)^2 + 50 sum_ij (B_ij - b I_ij)^2 / b^2        s = log c,  b = tr(B) / features
 *
 * As n log(E) / 2 is a negative log likelihood, these are normal priors of standard deviation 0.6 and 0.14.
 *
 * A given bandwidth h fixes the mean factor of the features at 1 / h: after each step all factors are multiplied by the
 * same number, and the component of the gradient in that direction is removed. With a map, the mean of c is 1 and the
 * mean of the squared rows of B is 1 / h^2.
 *
 * A step whose equations cannot be solved or whose gradient is not finite is rejected: the parameters of the previous
 * step are restored, and the rates are halved.
 *
 * Draws are functions of the seed and the step number. So a descent that is resumed from its state gives bitwise
 * identical results, for any number of threads. Cost: T times the cost of error_gradient.c.
 */
#include "search/hyper_descent.h"

#include "core/matrix.h"
#include "core/numbers/random.h"
#include "search/error_gradient.h"

#include <math.h>
#include <string.h>

/* Rates per step, chosen on ten tables. Each is the rate of one kind of parameter: logarithms of factors, entries of a
   map relative to their size, the logit of the exponent, the logarithm of the ridge. */
#define RATE_SCALE    0.25
#define RATE_MAP      0.10
#define RATE_EXPONENT 0.10
#define RATE_RIDGE    0.20

/* Strengths of the prior, chosen between 1 and 400 by the errors on held-out training rows. The eight tables of
   docs/tables.md were used, with two samples of 300 rows and two of 1,000 rows each. Without a prior the errors are 26
   % larger with 300 rows and 11 % larger with 1,000 rows. */
#define PRIOR_SCALE 5.0
#define PRIOR_MAP   100.0

/* The exponent is updated in every second step only, because its derivative costs as much as all others together. */
enum { EXPONENT_PERIOD = 2 };

#define PI 3.14159265358979323846
/* Adam's decay rates for the mean of the gradient (MOMENTUM) and of its square (SQUARES). MOMENTUM is the value of the
   paper. SQUARES is .99 instead of .999, because there are only 16 to 150 steps. */
#define MOMENTUM  0.9
#define SQUARES   0.99
#define SMOOTHING 0.8 /* factor of the exponential smoothing of the reported error */
/* limit of a factor's logarithm: beyond e^14 a coordinate has no effect or dominates all others */
#define LARGEST_LOG 14.0

/* Ranges of exponents in norm 1 and norm 2. Kernels with smaller exponents are so peaked that they improved none of the
   tables tried. */
#define L1_LEAST 0.4
#define L1_MOST  1.0
#define L2_LEAST 0.6
#define L2_MOST  2.0
/* Range of ridges per unit of sample weight. As targets have variance 1, the largest makes predictions nearly
   constant. */
#define RIDGE_LEAST 1e-10
#define RIDGE_MOST  1.0

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* Returns the number of factors of the coordinates, which are the first parameters. */
static int64_t count_factors(const mrc_descent_space *space)
{
    return space->kind == MRC_LEARN_SCALE ? 1 : space->x.cols;
}

/* Returns the number of entries of the map B, which follow the factors. */
static int64_t count_entries(const mrc_descent_space *space)
{
    return space->kind == MRC_LEARN_MAP ? space->features * space->features : 0;
}

int64_t mrc_descent_count(const mrc_descent_space *space)
{
    return count_factors(space) + count_entries(space) + 2;
}

static void find_range(const mercer_kernel *kernel, double *least, double *most)
{
    bool first = mrc_kernel_norm(kernel) == 1;
    *least = first ? L1_LEAST : L2_LEAST, *most = first ? L1_MOST : L2_MOST;
}

double mrc_descent_exponent(const mercer_kernel *kernel, double parameter)
{
    double least, most;
    find_range(kernel, &least, &most);
    return least + (most - least) / (1 + exp(-parameter));
}

double mrc_descent_parameter(const mercer_kernel *kernel, double exponent)
{
    double least, most;
    find_range(kernel, &least, &most);
    double share = fmin(0.999, fmax(0.001, (exponent - least) / (most - least)));
    return log(share / (1 - share));
}

/* Returns dgamma / dparameter. */
static double exponent_slope(const mercer_kernel *kernel, double parameter)
{
    double least, most, share = 1 / (1 + exp(-parameter));
    find_range(kernel, &least, &most);
    return (most - least) * share * (1 - share);
}

/* ---- Draws ------------------------------------------------------------------------------------------------------- */

/* Buffers of a descent. */
typedef struct workspace {
    const mrc_descent *task;
    mrc_backend *backend;
    mercer_matrix x, y; /* all rows, in the backend's memory */
    mercer_matrix map;  /* (k, features) f32: A */
    mrc_draw draw;      /* (fitted + held) rows */
    mrc_gradient_buffer buffer;
    mrc_error_gradient gradient;
    int64_t fitted, held;
    int64_t *numbers; /* (fitted + held) row numbers of a draw */
    /* weights (fitted + held): row weights, or NULL; factors (k): factors of the coordinates */
    double *weights, *factors;
    double *slope;     /* (count) gradient with respect to the parameters */
    float *entries;    /* (k, features) entries of the map A, host memory */
    double *map_slope; /* (k, features) dE/dA */
} workspace;

/* A random order of the units first .. first + count - 1. Positions next .. end - 1 of this order are still to be
   drawn. */
typedef struct unit_order {
    mrc_rng rng;
    int64_t first, count, next, end;
} unit_order;

/* Writes `wanted` row numbers to `out`: the rows of the next units in order. If the units have fewer rows, rows are
   repeated. */
static void draw_units(const mrc_descent_rows *rows, unit_order *units, int64_t wanted, int64_t *out)
{
    int64_t drawn = 0;
    while (drawn < wanted && units->next < units->end) {
        int64_t unit = units->first + mrc_random_permutation(units->rng, units->count, units->next++);
        for (int64_t i = rows->start[unit]; i < rows->start[unit + 1] && drawn < wanted; i++)
            out[drawn++] = rows->order[i];
    }
    for (int64_t i = drawn; i < wanted && drawn > 0; i++) out[i] = out[i % drawn];
}

/* Draws the rows of a step. If rows have times, training rows come from units before a random cut, and held-out rows
   from units after the cut. Otherwise both come from one random order of units. The last unit of that order is reserved
   for held-out rows, because the training rows may use up all other units. */
static void draw_numbers(workspace *self, int step)
{
    const mrc_descent_rows *rows = self->task->rows;
    mrc_rng rng = {self->task->seed, self->task->sequence + (uint64_t)step};
    int64_t n = rows->units, early = 0;
    if (rows->cut_count > 0) early = rows->cuts[mrc_random_below(rng, 0, rows->cut_count)];
    unit_order units = {rng, 0, early > 0 ? early : n, 0, early > 0 ? early : mrc_max(1, n - 1)};
    draw_units(rows, &units, self->fitted, self->numbers);
    if (early > 0)
        units = (unit_order){rng, early, n - early, 0, n - early};
    else
        units.end = n;
    draw_units(rows, &units, self->held, self->numbers + self->fitted);
}

/* Gathers the points of a draw, then scales or maps them. */
static mercer_status make_points(workspace *self, const double *values)
{
    mrc_backend *backend = self->backend;
    const mrc_backend_ops *ops = backend->ops;
    int64_t k = self->x.cols;
    bool mapped = self->task->space->kind == MRC_LEARN_MAP, one = self->task->space->kind == MRC_LEARN_SCALE;
    const mercer_matrix *plain = mapped ? &self->draw.plain : &self->draw.x;
    MRC_TRY(ops->gather_rows(backend, plain, &self->x, self->numbers));
    MRC_TRY(ops->gather_rows(backend, &self->draw.y, &self->y, self->numbers));
    for (int64_t j = 0; j < k && !mapped; j++) self->factors[j] = exp(values[one ? 0 : j]);
    if (!mapped) return ops->scale_columns(backend, plain, self->factors);
    int64_t d = self->task->space->features;
    mercer_matrix entries = mrc_view(self->entries, k, d, MERCER_F32);
    for (int64_t j = 0; j < k; j++)
        for (int64_t l = 0; l < d; l++)
            self->entries[j * d + l] = (float)(exp(values[j]) * values[k + self->task->space->feature[j] * d + l]);
    MRC_TRY(ops->copy(backend, &self->map, &entries));
    mrc_gemm job = {.alpha = 1, .a = plain, .b = &self->map, .c = &self->draw.x};
    return ops->gemm(backend, &job);
}

/* Makes the draw of a step: rows, weights, targets, and points scaled or mapped by the current parameters. */
static mercer_status draw_rows(workspace *self, int step, const double *values)
{
    const double *weights = self->task->rows->weights;
    draw_numbers(self, step);
    for (int64_t i = 0; i < self->fitted + self->held && weights; i++) self->weights[i] = weights[self->numbers[i]];
    return make_points(self, values);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

/* Computes the gradient with respect to the factors and to B from dE/dA = S A. */
static void find_map_slope(const workspace *self, const double *values)
{
    int64_t k = self->x.cols, d = self->task->space->features;
    const double *s = self->gradient.moment, *map = values + k;
    double *slope = self->map_slope, *by_map = self->slope + k;
    memset(slope, 0, (size_t)(k * d) * sizeof *slope);
    memset(by_map, 0, (size_t)(d * d) * sizeof *by_map);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            for (int64_t l = 0; l < d; l++) slope[i * d + l] += s[i * k + j] * (double)self->entries[j * d + l];
    for (int64_t j = 0; j < k; j++) {
        int64_t f = self->task->space->feature[j];
        double factor = exp(values[j]), sum = 0;
        for (int64_t l = 0; l < d; l++) {
            by_map[f * d + l] += factor * slope[j * d + l];
            sum += map[f * d + l] * slope[j * d + l];
        }
        self->slope[j] = factor * sum;
    }
}

/* Computes the gradient at the state's parameters. Sets *solved to whether the equations of the draw could be
   solved. */
static mercer_status find_gradient(workspace *self, const mrc_descent_state *state, int step, bool *solved)
{
    const mrc_descent *task = self->task;
    mercer_kernel kernel = task->space->kernel;
    int64_t own = state->count - 2, k = self->x.cols;
    const double *values = state->values;
    if (task->space->learns_exponent) kernel.gamma = mrc_descent_exponent(&kernel, values[own]);
    MRC_TRY(draw_rows(self, step, values));
    mrc_error_gradient *g = &self->gradient;
    bool by_exponent = task->space->learns_exponent && step % EXPONENT_PERIOD == 1;
    MRC_TRY(mrc_error_gradient_find(&self->buffer, &kernel, exp(values[own + 1]), by_exponent, &self->draw, g));
    *solved = g->solved && isfinite(g->error);
    if (!*solved) return MERCER_OK;
    if (task->space->kind == MRC_LEARN_MAP) find_map_slope(self, values);
    if (task->space->kind == MRC_LEARN_SCALES) memcpy(self->slope, g->scales, (size_t)k * sizeof(double));
    if (task->space->kind == MRC_LEARN_SCALE) {
        self->slope[0] = 0;
        for (int64_t j = 0; j < k; j++) self->slope[0] += g->scales[j];
    }
    self->slope[own] = by_exponent ? g->exponent * exponent_slope(&kernel, values[own]) : 0;
    self->slope[own + 1] = task->learns_ridge ? g->ridge : 0;
    return MERCER_OK;
}

/* Returns the rate of a map's entries: RATE_MAP times the root mean square of its diagonal, so that steps are relative
   to the size of the map. */
static double find_map_rate(const mrc_descent *task, const mrc_descent_state *state)
{
    int64_t d = task->space->features;
    const double *map = state->values + task->space->x.cols;
    double sum = 0;
    if (task->space->kind != MRC_LEARN_MAP) return 0;
    for (int64_t j = 0; j < d; j++) sum += map[j * d + j] * map[j * d + j];
    return RATE_MAP * sqrt(sum / (double)d);
}

/* Adds the gradient of the prior, E grad P / n, where E is the smoothed error. */
static void add_prior(const mrc_descent *task, const double *values, double error, double *slope)
{
    int64_t k = task->space->x.cols, d = task->space->features;
    const double *map = values + k;
    double share = error / (double)task->rows->different, mean = 0, diagonal = 0;
    if (task->space->kind == MRC_LEARN_SCALE) return;
    for (int64_t j = 0; j < k; j++) mean += values[j] / (double)k;
    for (int64_t j = 0; j < k; j++) slope[j] += PRIOR_SCALE * share * (values[j] - mean);
    if (task->space->kind != MRC_LEARN_MAP) return;
    for (int64_t i = 0; i < d; i++) diagonal += map[i * d + i] / (double)d;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            slope[k + i * d + j] +=
                PRIOR_MAP * share * (map[i * d + j] - (i == j ? diagonal : 0)) / (diagonal * diagonal);
}

/* If a bandwidth is given, rescales the factors and the map to that bandwidth. */
static void hold_bandwidth(const mrc_descent *task, double *values)
{
    const mrc_descent_space *space = task->space;
    int64_t k = count_factors(space), entries = count_entries(space);
    double *map = values + k, h = task->bandwidth, sum = 0, square = 0;
    double d = (double)(space->kind == MRC_LEARN_SCALE ? 1 : space->features);
    if (!(h > 0)) return;
    for (int64_t j = 0; j < k; j++) sum += exp(values[j]);
    for (int64_t i = 0; i < entries; i++) square += map[i] * map[i];
    for (int64_t j = 0; j < k; j++) values[j] += log(d / sum) - (entries > 0 ? 0 : log(h));
    for (int64_t i = 0; i < entries; i++) map[i] *= sqrt(d / square) / h;
}

/* If a bandwidth is given, removes the component of the gradient that changes the bandwidth. hold_bandwidth would undo
   such a change, and the component would distort Adam's moments. */
static void project_slope(const mrc_descent *task, const double *values, double *slope)
{
    int64_t k = count_factors(task->space), entries = count_entries(task->space);
    const double *map = values + k;
    double *by_map = slope + k, sum = 0, along = 0, square = 0, along_map = 0;
    if (!(task->bandwidth > 0)) return;
    for (int64_t j = 0; j < k; j++) sum += exp(values[j]), along += slope[j];
    for (int64_t i = 0; i < entries; i++) square += map[i] * map[i], along_map += map[i] * by_map[i];
    for (int64_t j = 0; j < k; j++) slope[j] -= along * exp(values[j]) / sum;
    for (int64_t i = 0; i < entries; i++) by_map[i] -= along_map * map[i] / square;
}

/* Updates the parameters by a step of Adam with cosine decay, and clamps them to their ranges. */
static void step_down(const mrc_descent *task, mrc_descent_state *state, const double *slope, int step)
{
    int64_t own = state->count - 2, factors = count_factors(task->space);
    double decay = state->rate * 0.5 * (1 + cos(PI * (double)(step - 1) / (double)task->steps));
    double map_rate = find_map_rate(task, state);
    for (int64_t i = 0; i < state->count; i++) {
        double g = slope[i], rate = i < factors ? RATE_SCALE : i < own ? map_rate : RATE_RIDGE;
        int updates = step;
        if (i == own) {
            if (step % EXPONENT_PERIOD != 1) continue;
            updates = (step + EXPONENT_PERIOD - 1) / EXPONENT_PERIOD, rate = EXPONENT_PERIOD * RATE_EXPONENT;
        }
        state->mean[i] = MOMENTUM * state->mean[i] + (1 - MOMENTUM) * g;
        state->square[i] = SQUARES * state->square[i] + (1 - SQUARES) * g * g;
        double mean = state->mean[i] / (1 - pow(MOMENTUM, updates)),
               square = state->square[i] / (1 - pow(SQUARES, updates));
        if (square > 0) state->values[i] -= decay * rate * mean / sqrt(square);
        if (i < factors) state->values[i] = fmax(-LARGEST_LOG, fmin(LARGEST_LOG, state->values[i]));
    }
    if (task->learns_ridge)
        state->values[own + 1] = fmax(log(RIDGE_LEAST), fmin(log(RIDGE_MOST), state->values[own + 1]));
}

/* Computes a gradient and takes a step with it, or rejects the step (see the top of the file). */
static mercer_status take_step(workspace *self, mrc_descent_state *state, int step)
{
    const mrc_descent *task = self->task;
    size_t bytes = (size_t)state->count * sizeof(double);
    bool usable;
    MRC_TRY(find_gradient(self, state, step, &usable));
    double error = self->gradient.error;
    if (isfinite(state->error)) error = SMOOTHING * state->error + (1 - SMOOTHING) * error;
    if (usable) {
        add_prior(task, state->values, error, self->slope);
        project_slope(task, state->values, self->slope);
    }
    for (int64_t i = 0; i < state->count; i++) usable = usable && isfinite(self->slope[i]);
    if (!usable) {
        memcpy(state->values, state->before, bytes);
        state->rate /= 2;
        return MERCER_OK;
    }
    memcpy(state->before, state->values, bytes);
    state->error = error;
    step_down(task, state, self->slope, step);
    hold_bandwidth(task, state->values);
    return MERCER_OK;
}

/* ---- The descent ------------------------------------------------------------------------------------------------- */

/* Copies rows to the backend's memory, once per descent; host backends use them in place. */
static mercer_status open_rows(workspace *self, mrc_scope *scope, const mercer_matrix *rows, mercer_matrix *out)
{
    mrc_backend *backend = self->backend;
    *out = *rows;
    if (mrc_backend_memory(backend) == MRC_HOST) return MERCER_OK;
    MRC_TRY(mrc_scope_matrix(scope, backend, out, rows->rows, rows->cols, rows->dtype, "rows of the search"));
    return backend->ops->copy(backend, out, rows);
}

/* Allocates the buffers. Small tables are divided between training rows and held-out rows of a draw in the ratio 3 :
   2. */
static mercer_status open_workspace(workspace *self, mrc_scope *scope, int64_t count)
{
    static const char what[] = "rows of the search";
    const mrc_descent *task = self->task;
    const mrc_descent_rows *rows = task->rows;
    int64_t n = rows->y.rows, k = task->space->x.cols, c = rows->y.cols;
    mercer_matrix x = mrc_rows(&task->space->x, 0, n);
    bool mapped = task->space->kind == MRC_LEARN_MAP;
    int64_t d = mapped ? task->space->features : k;
    self->fitted = mrc_max(1, mrc_min(task->fitted, n * 3 / 5));
    self->held = mrc_max(1, mrc_min(task->fitted, n * 2 / 5));
    int64_t m = self->fitted + self->held, p = mrc_max(1, mrc_min(task->centers, self->fitted));
    MRC_TRY(open_rows(self, scope, &x, &self->x));
    MRC_TRY(open_rows(self, scope, &rows->y, &self->y));
    MRC_TRY(mrc_scope_matrix(scope, self->backend, &self->draw.x, m, d, MERCER_F32, what));
    MRC_TRY(mrc_scope_matrix(scope, self->backend, &self->draw.y, m, c, MERCER_F64, what));
    if (mapped) MRC_TRY(mrc_scope_matrix(scope, self->backend, &self->draw.plain, m, k, MERCER_F32, what));
    if (mapped) MRC_TRY(mrc_scope_matrix(scope, self->backend, &self->map, k, d, MERCER_F32, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->entries, mapped ? k * d : 1, sizeof *self->entries, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->map_slope, mapped ? k * d : 1, sizeof *self->map_slope, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->gradient.moment, mapped ? k * k : 1, sizeof(double), what));
    MRC_TRY(mrc_scope_alloc(scope, &self->gradient.scales, k, sizeof(double), what));
    MRC_TRY(mrc_scope_alloc(scope, &self->numbers, m, sizeof *self->numbers, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->factors, k, sizeof *self->factors, what));
    MRC_TRY(mrc_scope_alloc(scope, &self->slope, count, sizeof *self->slope, what));
    if (rows->weights) MRC_TRY(mrc_scope_alloc(scope, &self->weights, m, sizeof *self->weights, what));
    self->draw.weights = self->weights;
    return mrc_gradient_open(&self->buffer, scope, self->backend, &self->draw, self->fitted, p);
}

mercer_status mrc_descent_run(const mrc_descent *task, mrc_descent_state *state, bool *stopped)
{
    workspace self = {.task = task, .backend = task->context->backend};
    MRC_SCOPE(scope, task->context);
    *stopped = false;
    if (state->step >= task->steps) return MERCER_OK;
    MRC_TRY(open_workspace(&self, &scope, state->count));
    if (state->step == 0) hold_bandwidth(task, state->values);
    if (state->step == 0) memcpy(state->before, state->values, (size_t)state->count * sizeof(double));
    while (state->step < task->steps && !*stopped) {
        MRC_TRY(take_step(&self, state, (int)state->step + 1));
        state->step++;
        *stopped = task->progress && task->progress(task->progress_user, (int)state->step, state->error) != 0;
    }
    return MERCER_OK;
}
