/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: two short descents, one longer, and the final ridge.
 *
 *   1  norm 1   exp(-(sum_k s_k |x_k - z_k|)^g)        s over standardized and ranked copies, g, ridge
 *   2  norm 2   exp(-|A'(x - z)|^g)                     x: the blend of copies that stage 1 found; A full, or diagonal
 *   3  the better of both on held-out rows, continued with larger draws
 *   4  the ridge at SIZES numbers of centers, by small fits to more rows, scored on the held-out rows
 *
 * With a given kernel its norm decides between 1 and 2. Held-out rows are not drawn by the descents; tables of fewer
 * than 1,200 rows have none: descents draw from all rows and stage 4 is cross-validated.
 *
 * Few rows allow few steps: each step fits the parameters to the noise of its draw, and draws from few rows share their
 * noise. The number of steps is therefore limited by the number of units.
 */
#include "search/search.h"

#include "centers/center_selection.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/weighted.h"
#include "data/equal_rows.h"
#include "kernels/formulas.h"

#include <math.h>
#include <string.h>

/* What an effort means. */
typedef struct effort {
    int first, second;       /* steps of stages 1 and 2, and of stage 3 */
    int64_t fitted, centers; /* of draws in stages 1 and 2; stage 3 takes twice as many rows */
    int64_t rows;            /* to read */
    int64_t score_rows, score_centers;
    int64_t final_centers;
} effort;
static const effort efforts[] = {{12, 16, 512, 128, 8192, 4096, 512, 1500},
                                 {24, 32, 768, 192, 16384, 8192, 1024, 3000},
                                 {30, 50, 1024, 256, 32768, 8192, 1024, 6000},
                                 {50, 90, 1536, 384, 65536, 16384, 1536, 10000},
                                 {60, 150, 2048, 512, 131072, 16384, 2048, 16000}};

enum { LEAST_UNITS = 50, UNITS_PER_STEP = 16, LEAST_STEPS = 8, MAP_COORDINATES = 160, MAP_ROWS = 20, RIDGES = 7 };
enum { SEQUENCE = 0x64657363, MEDIAN_ROWS = 1000 };
#define FIRST_RIDGE 1e-4
#define SLACK       0.01 /* the largest ridge whose error is within this of the smallest is taken */
#define DROPPED     1e-4 /* copies with a smaller share of the largest weight are dropped */

typedef struct searcher {
    const mrc_search_task *task;
    mrc_search_result *result;
    mrc_scope *scope;
    effort effort;
    mrc_split split;
    mrc_criterion criterion;
    mrc_search_points points;
    mrc_descent_rows rows;   /* of norm 1: columns of points */
    mrc_descent_rows joined; /* of norm 2: one column per feature */
    mercer_matrix joined_x;  /* (n, features) f32: all rows */
    double *weights;         /* (width) of the columns, by stage 1, relative to the largest of its feature */
    double *shares;          /* (features) weight of each feature */
    int64_t pool;            /* rows that descents draw from: the first of the points */
    int total, done;         /* steps, for progress */
    bool stopped;
} searcher;

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Order the pool's rows by unit; with times, units are rows in the order of time. */
static mercer_status order_rows(searcher *self)
{
    const mercer_dataset *data = self->task->data;
    int64_t n = self->pool, *unit, *order, *start, units = n;
    MRC_TRY(mrc_scope_alloc(self->scope, &unit, 3 * n + 2, sizeof *unit, "row numbers"));
    order = unit + n, start = order + n;
    mrc_keyed *sorted;
    MRC_TRY(mrc_scope_alloc(self->scope, &sorted, n, sizeof *sorted, "keys of rows"));
    bool times = data->key_kind == MRC_KEYS_TIMES;
    if (!times) MRC_TRY(mrc_row_units(data, self->split.rows, n, unit, &units));
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (mrc_keyed){times ? data->keys[self->split.rows[i]] : (double)unit[i], i};
    mrc_keyed_sort(sorted, n);
    for (int64_t i = 0, u = 0; i < n; i++) {
        order[i] = sorted[i].row;
        if (i == 0 || times || sorted[i].key != sorted[i - 1].key) start[u++] = i;
    }
    start[units] = n;
    self->rows = (mrc_descent_rows){.x = mrc_rows(&self->points.x, 0, n),
                                    .y = mrc_rows(&self->points.y, 0, n),
                                    .weights = self->points.weights,
                                    .order = order,
                                    .start = start,
                                    .units = units,
                                    .early = times ? n * 3 / 4 : 0};
    return MERCER_OK;
}

static mercer_status open_rows(searcher *self)
{
    const mrc_search_task *task = self->task;
    int64_t row = task->data->features * 2 * (int64_t)sizeof(float);
    int64_t most = mrc_max(256, mrc_min(self->effort.rows, task->memory / 8 / mrc_max(1, row)));
    mrc_criterion_find(NULL, task->data, &self->criterion);
    MRC_TRY(mrc_split_make(&self->split, task->data, self->criterion, most, task->seed));
    self->points = (mrc_search_points){.scope = self->scope};
    MRC_TRY(mrc_search_points_read(&self->points, task, &self->split));
    bool held_out = self->criterion == MRC_HOLDOUT;
    self->pool = held_out ? self->split.folds[0].count : self->split.count;
    return order_rows(self);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

static bool is_norm_1(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) == 1;
}

/* The kernel function of a norm, with bandwidth 1. */
static mercer_kernel kernel_for(const mrc_search_task *task, bool norm_1)
{
    mercer_kernel kernel = {.id = norm_1 ? MRC_KERNEL_EXPPOWER_L1 : MRC_KERNEL_EXPPOWER};
    kernel.gamma = norm_1 ? 0.85 : 1.3;
    if (task->kernel) kernel = *task->kernel;
    kernel.bandwidth = 1;
    return kernel;
}

static int count_steps(const searcher *self, int wanted)
{
    int64_t most = mrc_max(LEAST_STEPS, self->rows.units / UNITS_PER_STEP);
    return (int)mrc_min(wanted, most);
}

static mrc_descent_kind kind_of(const searcher *self, bool norm_1)
{
    bool given = self->task->preprocess && self->task->preprocess->map;
    int64_t k = self->points.blended ? self->points.features : self->points.width;
    if (given) return MRC_LEARN_SCALE;
    return norm_1 || k > MAP_COORDINATES || self->rows.units < MAP_ROWS * k ? MRC_LEARN_SCALES : MRC_LEARN_MAP;
}

static int watch(void *user, int step, double error)
{
    searcher *self = user;
    const mrc_search_task *task = self->task;
    (void)step;
    self->done++;
    if (task->progress && task->progress(task->progress_user, "search", self->done, self->total, error))
        self->stopped = true;
    if (task->save) task->save(task->save_user, self->stopped);
    if (task->deadline > 0 && mrc_seconds() > task->deadline) self->result->cut = true;
    return self->stopped || self->result->cut;
}

static mercer_status run_stage(searcher *self, int stage, bool norm_1, int steps)
{
    bool last = stage == MRC_SEARCH_STAGES - 1, stopped;
    const mrc_descent_rows *rows = norm_1 || !self->joined.x.data ? &self->rows : &self->joined;
    mrc_descent descent = {.context = self->task->context,
                           .rows = rows,
                           .kind = kind_of(self, norm_1),
                           .kernel = kernel_for(self->task, norm_1),
                           .learns_exponent = !self->task->kernel,
                           .learns_ridge = self->task->ridge < 0,
                           .steps = steps,
                           .fitted = self->effort.fitted * (last ? 2 : 1),
                           .held = self->effort.fitted * (last ? 2 : 1),
                           .centers = self->effort.centers * (last ? 3 : 2) / 2,
                           .seed = self->task->seed,
                           .sequence = (uint64_t)SEQUENCE + ((uint64_t)stage << 32),
                           .progress = watch,
                           .progress_user = self};
    self->done += (int)self->task->state->stages[stage].step;
    MRC_TRY(mrc_descent_run(&descent, &self->task->state->stages[stage], &stopped));
    self->result->steps += (int64_t)self->task->state->stages[stage].step;
    if (!self->stopped) return MERCER_OK;
    return mrc_fail(self->task->context, MERCER_ERROR_CALLBACK, "the progress callback stopped the search");
}

/* ---- Starting points --------------------------------------------------------------------------------------------- */

/* The median distance of some rows of the pool, coordinates times factors (k); 1 if more than half coincide. */
static mercer_status find_median(const searcher *self, const mercer_matrix *x, const mercer_kernel *kernel,
                                 const double *factors, double *out)
{
    int64_t m = mrc_min(MEDIAN_ROWS, x->rows), k = x->cols;
    mercer_matrix some;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_view(&scope, &some, m, k, MERCER_F32, "rows of the search"));
    for (int64_t i = 0; i < m; i++) {
        const float *from = mrc_row(x, i);
        float *to = mrc_row(&some, i);
        for (int64_t j = 0; j < k; j++) to[j] = (float)((double)from[j] * (factors ? factors[j] : 1));
    }
    return mercer_kernel_median_distance(self->task->context, out, kernel, &some, 0);
}

static void set_common(const searcher *self, mrc_descent_state *state, const mercer_kernel *kernel)
{
    int64_t own = state->count - 2;
    state->step = 0, state->rate = 1, state->error = (double)NAN;
    state->values[own] = self->task->kernel ? 0 : mrc_descent_parameter(kernel, kernel->gamma);
    state->values[own + 1] = log(self->task->ridge >= 0 ? fmax(self->task->ridge, 1e-300) : FIRST_RIDGE);
    memset(state->mean, 0, (size_t)state->count * sizeof(double));
    memset(state->square, 0, (size_t)state->count * sizeof(double));
}

/* Equal scales, so that the median distance is 1. factors (k): relative scales; NULL: all 1. */
static mercer_status start_descent(const searcher *self, mrc_descent_state *state, bool norm_1, const mercer_matrix *x,
                                   const double *factors)
{
    mercer_kernel kernel = kernel_for(self->task, norm_1);
    mrc_descent_kind kind = kind_of(self, norm_1);
    int64_t k = x->cols;
    double median;
    MRC_TRY(find_median(self, x, &kernel, factors, &median));
    if (!(median > 0) || !isfinite(median)) median = 1;
    set_common(self, state, &kernel);
    if (kind == MRC_LEARN_MAP) memset(state->values, 0, (size_t)(k * k) * sizeof(double));
    for (int64_t j = 0; j < (kind == MRC_LEARN_SCALE ? 1 : k); j++) {
        double factor = fmax((factors && kind != MRC_LEARN_SCALE ? factors[j] : 1) / median, 1e-6);
        state->values[kind == MRC_LEARN_MAP ? j * k + j : j] = kind == MRC_LEARN_MAP ? factor : log(factor);
    }
    return MERCER_OK;
}

/* Blend the copies by the weights of stage 1: the points of norm 2, one column per feature. */
static mercer_status join_copies(searcher *self, const mrc_descent_state *state)
{
    mrc_search_points *points = &self->points;
    int64_t d = points->features;
    MRC_TRY(mrc_scope_alloc(self->scope, &self->weights, points->width + d, sizeof(double), "scales"));
    self->shares = self->weights + points->width;
    for (int64_t k = 0; k < d; k++) self->shares[k] = 0;
    for (int64_t j = 0; j < points->width; j++) self->shares[points->feature[j]] += exp(state->values[j]);
    for (int64_t j = 0; j < points->width; j++)
        self->weights[j] = exp(state->values[j]) / self->shares[points->feature[j]];
    MRC_TRY(mrc_scope_view(self->scope, &self->joined_x, points->x.rows, d, MERCER_F32, "rows of the search"));
    mrc_search_points_join(points, self->weights, &self->joined_x);
    self->joined = self->rows;
    self->joined.x = mrc_rows(&self->joined_x, 0, self->pool);
    return MERCER_OK;
}

/* ---- Scores ------------------------------------------------------------------------------------------------------ */

/* A candidate: points in which its kernel has bandwidth 1. */
typedef struct candidate {
    bool norm_1;
    mercer_kernel kernel;
    double ridge, error;
    const mrc_descent_state *state;
} candidate;

static candidate candidate_of(const searcher *self, const mrc_descent_state *state, bool norm_1)
{
    candidate made = {.norm_1 = norm_1, .kernel = kernel_for(self->task, norm_1), .state = state};
    if (!self->task->kernel) made.kernel.gamma = mrc_descent_exponent(&made.kernel, state->values[state->count - 2]);
    made.ridge = self->task->ridge >= 0 ? self->task->ridge : exp(state->values[state->count - 1]);
    return made;
}

/* The points of a candidate, scaled or mapped, of the rows from `first` on. */
static mercer_status make_points(const searcher *self, const candidate *of, int64_t first, const mercer_matrix *to)
{
    const mercer_matrix *all = of->norm_1 || !self->joined_x.data ? &self->points.x : &self->joined_x;
    mrc_descent_kind kind = kind_of(self, of->norm_1);
    const double *values = of->state->values;
    int64_t k = all->cols;
    for (int64_t i = 0; i < to->rows; i++) {
        const float *from = mrc_row(all, first + i);
        float *out = mrc_row(to, i);
        for (int64_t j = 0; j < k && kind != MRC_LEARN_MAP; j++)
            out[j] = (float)((double)from[j] * exp(values[kind == MRC_LEARN_SCALE ? 0 : j]));
        if (kind != MRC_LEARN_MAP) continue;
        for (int64_t j = 0; j < k; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) sum += (double)from[l] * values[l * k + j];
            out[j] = (float)sum;
        }
    }
    return MERCER_OK;
}

/* Small fits of a candidate to at most `rows` training rows. */
typedef struct scorer {
    mrc_small_rows rows;
    mercer_matrix z;
    double ridges[MRC_RIDGES];
    int count;
} scorer;

static mercer_status open_scorer(const searcher *self, mrc_scope *scope, const candidate *of, int64_t rows, scorer *out)
{
    const mrc_split *split = &self->split;
    int64_t k = of->norm_1 || !self->joined_x.data ? self->points.width : self->points.features, at = 0;
    bool held_out = self->criterion == MRC_HOLDOUT;
    int64_t each = held_out ? rows : (rows + split->fold_count - 1) / split->fold_count;
    int64_t n = 0;
    for (int f = 0; f < split->fold_count; f++)
        n += mrc_min(split->folds[f].count, held_out && f > 0 ? rows / 2 : each);
    *out = (scorer){.rows = {.count = split->fold_count, .held_out = held_out, .own_centers = true}};
    MRC_TRY(mrc_scope_view(scope, &out->rows.x, n, k, MERCER_F32, "rows of small fits"));
    MRC_TRY(mrc_scope_view(scope, &out->rows.y, n, self->points.y.cols, MERCER_F64, "targets of small fits"));
    double *weights = NULL;
    if (self->points.weights) MRC_TRY(mrc_scope_alloc(scope, &weights, n, sizeof *weights, "weights of small fits"));
    for (int f = 0; f < split->fold_count; f++) {
        mrc_span from = split->folds[f];
        int64_t count = mrc_min(from.count, held_out && f > 0 ? rows / 2 : each);
        mercer_matrix to = mrc_rows(&out->rows.x, at, count);
        MRC_TRY(make_points(self, of, from.first, &to));
        for (int64_t i = 0; i < count; i++) {
            memcpy(mrc_row(&out->rows.y, at + i), mrc_row(&self->points.y, from.first + i),
                   (size_t)self->points.y.cols * sizeof(double));
            if (weights) weights[at + i] = self->points.weights[from.first + i];
        }
        out->rows.folds[f] = (mrc_span){at, count};
        at += count;
    }
    out->rows.weights = weights;
    return MERCER_OK;
}

/* Score all ridges with p centers. */
static mercer_status score(const searcher *self, scorer *with, const mercer_kernel *kernel, int64_t p, double *errors)
{
    MRC_OWNED(mrc_release_small_fits) mrc_small_fits *fits = NULL;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_view(&scope, &with->z, p, with->rows.x.cols, MERCER_F32, "centers of small fits"));
    mrc_small_gather_centers(&with->rows, &with->rows.x, &with->z);
    MRC_TRY(
        mrc_small_fits_create(&fits, self->task->context, &with->rows, p, self->criterion, with->ridges, with->count));
    return mrc_small_fits_try(fits, kernel, &with->rows.x, &with->z, NULL, errors);
}

static int64_t training_rows(const mrc_small_rows *rows)
{
    int64_t n = 0;
    for (int f = 0; f < rows->count - (rows->held_out ? 1 : 0); f++) n += rows->folds[f].count;
    return n;
}

/* The smallest error of a candidate near its ridge, with few centers. */
static mercer_status score_candidate(const searcher *self, candidate *of)
{
    scorer with;
    double errors[MRC_RIDGES];
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, of, self->effort.score_rows / 2, &with));
    with.count = self->task->ridge >= 0 ? 1 : 3;
    for (int r = 0; r < with.count; r++) with.ridges[r] = of->ridge * (with.count == 1 ? 1 : pow(10, 1 - r) * 0.3);
    int64_t p = mrc_min(self->effort.score_centers / 2, training_rows(&with.rows));
    MRC_TRY(score(self, &with, &of->kernel, p, errors));
    of->error = (double)INFINITY;
    for (int r = 0; r < with.count; r++) of->error = fmin(of->error, errors[r]);
    return MERCER_OK;
}

/* The largest ridge whose error is within SLACK of the smallest. Ridges descend. */
static int pick_ridge(const double *errors, int count, double *least)
{
    *least = (double)INFINITY;
    for (int r = 0; r < count; r++) *least = fmin(*least, errors[r]);
    for (int r = 0; r < count; r++)
        if (errors[r] <= (1 + SLACK) * *least) return r;
    return 0;
}

/* Stage 4. */
static mercer_status finish(searcher *self, candidate *best)
{
    mrc_search_result *result = self->result;
    scorer with;
    double errors[MRC_RIDGES];
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, best, self->effort.score_rows, &with));
    with.count = self->task->ridge >= 0 ? 1 : RIDGES;
    for (int r = 0; r < with.count; r++)
        with.ridges[r] = with.count == 1 ? best->ridge : fmin(1, best->ridge * pow(10, 1 - 0.5 * r));
    int64_t n = training_rows(&with.rows), p = mrc_min(self->effort.score_centers, n);
    for (int s = 0; s < MRC_SEARCH_SIZES; s++) {
        int64_t size = p >> (MRC_SEARCH_SIZES - 1 - s);
        if (size < 1) continue;
        MRC_TRY(score(self, &with, &best->kernel, size, errors));
        int r = pick_ridge(errors, with.count, &result->errors[s]);
        result->centers[s] = size;
        result->ridge = with.ridges[r], result->error = errors[r];
    }
    result->rows = n, result->held = with.rows.held_out ? with.rows.folds[with.rows.count - 1].count : n;
    return MERCER_OK;
}

/* ---- The model's preprocessing ----------------------------------------------------------------------------------- */

/* Weights of the copies into the blend, relative to the largest, which becomes the kernel's bandwidth. */
static mercer_status keep_scales(searcher *self, const candidate *best)
{
    mrc_search_points *points = &self->points;
    const double *values = best->state->values;
    int64_t d = points->features, width = points->width;
    double *all, largest = 0;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &all, 2 * d + width, sizeof *all, "scales"));
    for (int64_t j = 0; j < width; j++) largest = fmax(largest, all[2 * d + j] = exp(values[j]));
    for (int64_t j = 0; j < width; j++) {
        double share = all[2 * d + j] / largest;
        all[2 * d + j] = share >= DROPPED ? share : 0;
        if (points->blended) all[(j < d ? 0 : d) + points->feature[j]] = all[2 * d + j];
    }
    self->result->kernel.bandwidth = 1 / largest;
    if (points->blended) return mrc_preprocess_set_blend(points->preprocess, all, all + d);
    return mrc_preprocess_set_map(points->preprocess, width, width, true, all + 2 * d);
}

/* Norm 2: the blend of stage 1, then the map, relative to its largest entry. */
static mercer_status keep_map(searcher *self, const candidate *best)
{
    mrc_search_points *points = &self->points;
    const double *values = best->state->values;
    bool diagonal = kind_of(self, false) == MRC_LEARN_SCALES;
    int64_t d = points->blended ? points->features : points->width, count = diagonal ? d : d * d;
    double *map, largest = 0;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &map, mrc_max(count, 2 * d), sizeof *map, "the metric"));
    for (int64_t j = 0; j < points->width && points->blended; j++)
        map[(j < d ? 0 : d) + points->feature[j]] = self->weights[j];
    if (points->blended) MRC_TRY(mrc_preprocess_set_blend(points->preprocess, map, map + d));
    for (int64_t i = 0; i < count; i++) map[i] = diagonal ? exp(values[i]) : values[i];
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(map[i]));
    for (int64_t i = 0; i < count; i++) map[i] /= largest;
    self->result->kernel.bandwidth = 1 / largest;
    return mrc_preprocess_set_map(points->preprocess, d, d, diagonal, map);
}

static mercer_status keep(searcher *self, const candidate *best)
{
    mrc_search_result *result = self->result;
    result->kernel = best->kernel;
    if (kind_of(self, best->norm_1) == MRC_LEARN_SCALE)
        result->kernel.bandwidth = exp(-best->state->values[0]);
    else
        MRC_TRY(best->norm_1 ? keep_scales(self, best) : keep_map(self, best));
    result->preprocess = self->points.preprocess;
    self->points.preprocess = NULL;
    return MERCER_OK;
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

static mercer_status open_state(searcher *self)
{
    mrc_search_state *state = self->task->state;
    int64_t d = self->points.blended ? self->points.features : self->points.width;
    int64_t first = mrc_descent_count(kind_of(self, true), self->points.width),
            second = mrc_descent_count(kind_of(self, false), d), most = mrc_max(first, second), at = 0;
    int64_t counts[MRC_SEARCH_STAGES] = {first, second, most};
    bool fresh = state->memory == NULL;
    int64_t numbers = 4 * (first + second + most);
    if (!fresh && state->numbers != numbers)
        return mrc_fail(self->task->context, MERCER_ERROR_MISMATCH,
                        "the checkpoint belongs to a training with other data or options: its search has %lld numbers, "
                        "this one %lld",
                        (long long)state->numbers, (long long)numbers);
    state->numbers = numbers;
    if (fresh)
        MRC_TRY(mrc_alloc_zero(self->task->context, &state->memory, state->numbers, sizeof(double), "the search"));
    for (int s = 0; s < MRC_SEARCH_STAGES; s++) {
        mrc_descent_state *stage = &state->stages[s];
        stage->count = counts[s];
        stage->values = state->memory + at, stage->before = stage->values + counts[s];
        stage->mean = stage->before + counts[s], stage->square = stage->mean + counts[s];
        at += 4 * counts[s];
        if (fresh) stage->step = 0;
    }
    return MERCER_OK;
}

void mrc_search_state_free(mrc_search_state *state, mercer_context *context)
{
    mrc_free(context, state->memory);
    *state = (mrc_search_state){0};
}

/* Continue the winner's descent with larger draws. */
static mercer_status continue_best(searcher *self, candidate *best, int steps)
{
    mrc_descent_state *last = &self->task->state->stages[2];
    last->count = best->state->count;
    if (last->step == 0) {
        memcpy(last->values, best->state->values, (size_t)last->count * sizeof(double));
        int64_t own = last->count - 2;
        double exponent = last->values[own], ridge = last->values[own + 1];
        mercer_kernel kernel = kernel_for(self->task, best->norm_1);
        set_common(self, last, &kernel);
        last->values[own] = exponent, last->values[own + 1] = ridge, last->rate = 0.6;
    }
    MRC_TRY(run_stage(self, 2, best->norm_1, steps));
    *best = candidate_of(self, last, best->norm_1);
    return MERCER_OK;
}

static mercer_status run_stages(searcher *self, candidate *best)
{
    const mrc_search_task *task = self->task;
    mrc_descent_state *stages = task->state->stages;
    bool given = task->kernel != NULL, one_copy = !self->points.blended;
    bool first = given ? is_norm_1(task->kernel) : !task->norm_2, second = given ? !first : true;
    int short_steps = count_steps(self, self->effort.first), long_steps = count_steps(self, self->effort.second);
    bool blends = first || !one_copy; /* norm 2 takes its blend of copies from norm 1 */
    self->total = (blends ? short_steps : 0) + (second ? short_steps : 0) + long_steps;
    candidate l1 = {.error = (double)INFINITY}, l2 = {.error = (double)INFINITY};
    if (blends) {
        searcher plain = *self;
        mrc_search_task open = *task;
        if (!first && given) open.kernel = NULL, plain.task = &open; /* only for the blend */
        if (stages[0].step == 0) MRC_TRY(start_descent(&plain, &stages[0], true, &self->rows.x, NULL));
        plain.done = self->done, plain.total = self->total;
        MRC_TRY(run_stage(&plain, 0, true, short_steps));
        self->done = plain.done;
        if (!one_copy) MRC_TRY(join_copies(self, &stages[0]));
        l1 = candidate_of(&plain, &stages[0], true);
    }
    if (second) {
        const mercer_matrix *x = self->joined.x.data ? &self->joined.x : &self->rows.x;
        if (stages[1].step == 0) MRC_TRY(start_descent(self, &stages[1], false, x, self->shares));
        MRC_TRY(run_stage(self, 1, false, short_steps));
        l2 = candidate_of(self, &stages[1], false);
    }
    if (first && second) {
        MRC_TRY(score_candidate(self, &l1));
        MRC_TRY(score_candidate(self, &l2));
        mrc_log(task->context, MERCER_LOG_INFO, "search: held-out error %.5g in norm 1, %.5g in norm 2", l1.error,
                l2.error);
    }
    *best = !second || (first && l1.error <= l2.error) ? l1 : l2;
    return continue_best(self, best, long_steps);
}

mercer_status mrc_search_possible(const mercer_dataset *data, bool *possible)
{
    int64_t n = mrc_min(data->rows, 4096), *unit, units = data->rows;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &unit, n, sizeof *unit, "row numbers"));
    if (data->key_kind != MRC_KEYS_TIMES) MRC_TRY(mrc_row_units(data, NULL, n, unit, &units));
    *possible = units >= LEAST_UNITS;
    return MERCER_OK;
}

mercer_status mrc_search_run(const mrc_search_task *task, mrc_search_result *out)
{
    MRC_SCOPE(scope, task->context);
    searcher self = {.task = task, .result = out, .scope = &scope, .effort = efforts[task->effort - 1]};
    candidate best;
    *out = (mrc_search_result){0};
    mercer_status status = open_rows(&self);
    if (status == MERCER_OK) status = open_state(&self);
    if (status == MERCER_OK) status = run_stages(&self, &best);
    if (status == MERCER_OK) status = finish(&self, &best);
    if (status == MERCER_OK) status = keep(&self, &best);
    mrc_free(task->context, self.split.rows);
    mercer_preprocess_free(self.points.preprocess);
    return status;
}

int64_t mrc_search_centers(int level, int64_t n)
{
    return mrc_min(n, efforts[level - 1].final_centers);
}

/* ---- More centers ------------------------------------------------------------------------------------------------ */

#define MOST_RHO 0.9 /* errors that fall by the same amount with each doubling would become negative */

/*
 * Errors e0, e1, e2 with p/4, p/2 and p centers. Each doubling is assumed to bring rho = (e1 - e2) / (e0 - e1) times
 * the gain of the one before, which holds for errors a + b P^-s:  e(P) = e2 - (e1 - e2) rho (1 - rho^k) / (1 - rho),
 * k = log2(P / p).
 */
double mrc_search_error_with(const mrc_search_result *found, int64_t centers)
{
    const double *e = found->errors;
    double before = e[0] - e[1], last = e[1] - e[2], rho = before > 0 ? fmin(last / before, MOST_RHO) : MOST_RHO;
    if (found->centers[0] == 0) return (double)NAN;
    if (!(last > 0)) return e[2];
    double k = log2((double)centers / (double)found->centers[2]);
    return fmax(0, e[2] - last * rho * (1 - pow(rho, k)) / (1 - rho));
}

double mrc_search_gain(const mrc_search_result *found, int64_t centers, int64_t more)
{
    double error = mrc_search_error_with(found, centers);
    return error > 0 ? (error - mrc_search_error_with(found, more)) / error : (double)NAN;
}
