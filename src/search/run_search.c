/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: two short descents, a longer one, and the final ridge.
 *
 *   1  norm 1   exp(-(sum_k s_k |x_k - z_k|)^g)        s over standardized and ranked copies, g, ridge
 *   2  norm 2   exp(-|A'(x - z)|^g)                     x: the blend of copies that stage 1 found; A full, or diagonal
 *   3  norm 1 continued with larger draws, or  4  norm 2 continued: the better of both on held-out rows
 *   5  the ridge at SIZES numbers of centers, by small fits to more rows, scored on the held-out rows
 *
 * With a given kernel its norm selects stage 1 or 2. A given bandwidth fixes the mean of s, or the size of A. Descents
 * do not draw held-out rows. Tables of fewer than 2,000 rows have no held-out rows: descents draw from all rows and
 * stage 5 is cross-validated.
 *
 * With folds the number of steps decreases as 1 / rows above STEP_ROWS rows, so that 1,000 rows take half a second.
 * This increases errors by 1 % on samples of 1,000 rows of the eight tables of docs/tables.md. From ALL_STEPS_ROWS rows
 * on there is time for all steps: fewer steps reduced the R2 of kin40k by .006 with 1,300 and 1,900 rows.
 */
#include "search/search_parts.h"

#include "centers/center_selection.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/weighted.h"
#include "core/stage_progress.h"
#include "data/equal_rows.h"
#include "kernels/formulas.h"

#include <math.h>
#include <string.h>

enum { LEAST_UNITS = 50, STEP_ROWS = 500, ALL_STEPS_ROWS = 1200, MAP_ROWS = 20 };
enum { SEQUENCE = 0x64657363, MEDIAN_ROWS = 500 };
#define FIRST_RIDGE  1e-4
#define HEAD_START   1.01 /* largest ratio of errors up to which a map is preferred to weights */
#define LEAST_WEIGHT 0.05 /* smallest weight of a copy at the start of a map */

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Sets the cuts: positions between half and three quarters of the rows where the time changes, or else the last such
   position before. Returns their number. */
static int64_t find_cuts(const mrc_keyed *sorted, int64_t n, int64_t *cuts)
{
    int64_t count = 0, last = mrc_max(1, n * 3 / 4);
    for (int64_t i = mrc_max(1, n / 2); i <= last; i++)
        if (sorted[i - 1].key != sorted[i].key) cuts[count++] = i;
    if (count > 0) return count;
    while (last > 1 && sorted[last - 1].key == sorted[last].key) last--;
    cuts[0] = last;
    return 1;
}

/* Sorts the pool's rows by unit. With times, every row is a unit, in the order of time. */
static mercer_status order_rows(mrc_searcher *self)
{
    const mercer_dataset *data = self->task->data;
    int64_t n = self->pool, *unit, *order, *start, *cuts, units = n, different;
    MRC_TRY(mrc_scope_alloc(self->scope, &unit, 4 * n + 2, sizeof *unit, "row numbers"));
    order = unit + n, start = order + n, cuts = start + n + 1;
    mrc_keyed *sorted;
    MRC_TRY(mrc_scope_alloc(self->scope, &sorted, n, sizeof *sorted, "keys of rows"));
    bool times = data->key_kind == MRC_KEYS_TIMES;
    MRC_TRY(mrc_row_units(data, self->split.rows, n, unit, &different));
    if (!times) units = different;
    double *first = NULL;
    if (times) MRC_TRY(mrc_scope_alloc(self->scope, &first, data->rows, sizeof *first, "times of rows"));
    if (times) MRC_TRY(mrc_first_times(data, first));
    for (int64_t i = 0; i < n; i++) sorted[i] = (mrc_keyed){times ? first[self->split.rows[i]] : (double)unit[i], i};
    mrc_keyed_sort(sorted, n);
    for (int64_t i = 0, u = 0; i < n; i++) {
        order[i] = sorted[i].row;
        if (i == 0 || times || sorted[i].key != sorted[i - 1].key) start[u++] = i;
    }
    if (units < 2)
        return mrc_fail(data->context, MERCER_ERROR_DATA,
                        "search: all its training rows are in one group, so no group can be held out; turn the search "
                        "off or drop the groups");
    start[units] = n;
    self->rows = (mrc_descent_rows){.x = mrc_rows(&self->points.x, 0, n),
                                    .y = mrc_rows(&self->points.y, 0, n),
                                    .weights = self->points.weights,
                                    .order = order,
                                    .start = start,
                                    .units = units,
                                    .different = different,
                                    .cuts = cuts,
                                    .cut_count = times ? find_cuts(sorted, n, cuts) : 0};
    return MERCER_OK;
}

static mercer_status open_rows(mrc_searcher *self)
{
    const mrc_search_task *task = self->task;
    int64_t row = task->data->features * 2 * (int64_t)sizeof(float);
    int64_t most = mrc_max(256, mrc_min(self->effort.rows, task->memory / 8 / mrc_max(1, row)));
    MRC_TRY(mrc_split_make(&self->split, task->data, most, task->seed));
    self->points = (mrc_search_points){.scope = self->scope};
    MRC_TRY(mrc_search_points_read(&self->points, task, &self->split));
    self->pool = self->split.held_out ? self->split.folds[0].count : self->split.count;
    return order_rows(self);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* Returns whether the kernel is given and has this norm. */
static bool is_given(const mrc_search_task *task, bool norm_1)
{
    return task->kernel && (mrc_kernel_norm(task->kernel) == 1) == norm_1;
}

/* Returns the kernel to start from in a norm, with bandwidth 1. */
static mercer_kernel kernel_for(const mrc_search_task *task, bool norm_1)
{
    mercer_kernel kernel = {.id = norm_1 ? MRC_KERNEL_EXPPOWER_L1 : MRC_KERNEL_EXPPOWER};
    kernel.gamma = norm_1 ? 0.85 : 1.3;
    if (is_given(task, norm_1)) kernel = *task->kernel;
    kernel.bandwidth = 1;
    return kernel;
}

static int count_steps(const mrc_searcher *self, int wanted)
{
    bool fewer = !self->split.held_out && self->pool > STEP_ROWS && self->pool < ALL_STEPS_ROWS;
    return fewer ? (int)(wanted * STEP_ROWS / self->pool) : wanted;
}

int64_t mrc_searcher_features(const mrc_searcher *self)
{
    return self->points.blended ? self->points.features : self->points.width;
}

mrc_descent_kind mrc_searcher_kind(const mrc_searcher *self, bool norm_1)
{
    bool given = self->task->preprocess && self->task->preprocess->map;
    int64_t k = mrc_searcher_features(self);
    if (given) return MRC_LEARN_SCALE;
    return norm_1 || k > MRC_MAP_FEATURES || self->rows.different < MAP_ROWS * k ? MRC_LEARN_SCALES : MRC_LEARN_MAP;
}

static int watch(void *user, int step, double error)
{
    mrc_searcher *self = user;
    const mrc_search_task *task = self->task;
    mrc_search_state *state = task->state;
    const mrc_descent_state *stage = &state->stages[self->stage];
    const double *last = stage->values + stage->count - 2;
    int64_t done = 0;
    (void)step;
    for (int s = 0; s < MRC_SEARCH_STAGES; s++) done += (int64_t)state->stages[s].step;
    if (state->steps < MRC_SEARCH_STEPS) {
        double *row = state->journal + state->steps++ * MRC_JOURNAL_COLUMNS;
        row[0] = self->stage + 1, row[1] = isfinite(error) ? error : 0, row[3] = exp(last[1]);
        row[2] = self->learns_exponent ? mrc_descent_exponent(&self->kernel, last[0]) : 0;
    }
    if (mrc_progress(task->progress, task->progress_user, "search", done, self->total, error)) self->stopped = true;
    if (task->save) task->save(task->save_user, self->stopped);
    if (task->deadline > 0 && mrc_seconds() > task->deadline) self->result->cut = true;
    return self->stopped || self->result->cut;
}

/* Runs a descent of `steps` steps up to step `until`. */
static mercer_status run_stage(mrc_searcher *self, int stage, bool norm_1, int steps, int until)
{
    bool large = stage >= 2, stopped;
    mrc_descent_kind kind = mrc_searcher_kind(self, norm_1);
    bool joined = !norm_1 && kind != MRC_LEARN_MAP && self->joined.x.data;
    mrc_descent descent = {.context = self->task->context,
                           .rows = joined ? &self->joined : &self->rows,
                           .kind = kind,
                           .feature = self->points.feature,
                           .features = mrc_searcher_features(self),
                           .kernel = kernel_for(self->task, norm_1),
                           .bandwidth = self->task->bandwidth,
                           .learns_exponent = !is_given(self->task, norm_1),
                           .learns_ridge = self->task->ridge < 0,
                           .steps = steps,
                           .until = until,
                           .fitted = self->effort.fitted * (large ? 2 : 1),
                           .held = self->effort.fitted * (large ? 2 : 1),
                           .centers = self->effort.centers * (large ? 3 : 2) / 2,
                           .seed = self->task->seed,
                           .sequence = (uint64_t)SEQUENCE + ((uint64_t)stage << 32),
                           .progress = watch,
                           .progress_user = self};
    self->stage = stage, self->kernel = descent.kernel, self->learns_exponent = descent.learns_exponent;
    MRC_TRY(mrc_descent_run(&descent, &self->task->state->stages[stage], &stopped));
    if (!self->stopped) return MERCER_OK;
    return mrc_fail(self->task->context, MERCER_ERROR_CALLBACK, "the progress callback stopped the search");
}

/* ---- Starting points --------------------------------------------------------------------------------------------- */

/* Computes the median distance of some rows of the pool, with coordinates multiplied by factors (k; NULL: all 1). */
static mercer_status find_median(const mrc_searcher *self, const mercer_matrix *x, const mercer_kernel *kernel,
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

/* Resets a state except for the parameters of the points. */
static void set_common(const mrc_searcher *self, mrc_descent_state *state, bool norm_1)
{
    mercer_kernel kernel = kernel_for(self->task, norm_1);
    int64_t own = state->count - 2;
    state->step = 0, state->rate = 1, state->error = (double)NAN;
    state->values[own] = is_given(self->task, norm_1) ? 0 : mrc_descent_parameter(&kernel, kernel.gamma);
    state->values[own + 1] = log(self->task->ridge >= 0 ? fmax(self->task->ridge, 1e-300) : FIRST_RIDGE);
    memset(state->mean, 0, (size_t)state->count * sizeof(double));
    memset(state->square, 0, (size_t)state->count * sizeof(double));
}

/* Initializes a descent with scales in the given ratios (k; NULL: equal) and a median distance of 1. */
static mercer_status start_descent(const mrc_searcher *self, mrc_descent_state *state, bool norm_1,
                                   const mercer_matrix *x, const double *factors)
{
    mercer_kernel kernel = kernel_for(self->task, norm_1);
    mrc_descent_kind kind = mrc_searcher_kind(self, norm_1);
    int64_t k = x->cols;
    double median;
    MRC_TRY(find_median(self, x, &kernel, factors, &median));
    if (!(median > 0) || !isfinite(median)) median = 1;
    set_common(self, state, norm_1);
    int64_t width = self->points.width;
    double *map = state->values + width;
    if (kind == MRC_LEARN_MAP) {
        for (int64_t j = 0; j < width; j++) /* no copy is dropped at the start */
            state->values[j] = self->weights ? log(fmax(self->weights[j], LEAST_WEIGHT)) : 0;
        memset(map, 0, (size_t)(k * k) * sizeof(double));
    }
    for (int64_t j = 0; j < (kind == MRC_LEARN_SCALE ? 1 : k); j++) {
        double factor = fmax((factors && kind != MRC_LEARN_SCALE ? factors[j] : 1) / median, 1e-6);
        if (kind == MRC_LEARN_MAP)
            map[j * k + j] = factor;
        else
            state->values[j] = log(factor);
    }
    return MERCER_OK;
}

/* Blends the copies with the weights of stage 1 into the points of norm 2, one column per feature. */
static mercer_status join_copies(mrc_searcher *self, const mrc_descent_state *state)
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

/* ---- The search -------------------------------------------------------------------------------------------------- */

static mercer_status open_state(mrc_searcher *self)
{
    mrc_search_state *state = self->task->state;
    int64_t d = mrc_searcher_features(self), width = self->points.width, at = 0;
    mrc_descent_kind kind = mrc_searcher_kind(self, false);
    int64_t first = mrc_descent_count(mrc_searcher_kind(self, true), width, d),
            second = mrc_descent_count(kind, kind == MRC_LEARN_MAP ? width : d, d);
    int64_t counts[MRC_SEARCH_STAGES] = {first, second, first, second};
    int64_t numbers = 8 * (first + second) + MRC_SEARCH_STEPS * MRC_JOURNAL_COLUMNS;
    if (state->memory && state->numbers != numbers)
        return mrc_fail(self->task->context, MERCER_ERROR_MISMATCH,
                        "the checkpoint belongs to a training with other data or options: its search has %lld numbers, "
                        "this one %lld",
                        (long long)state->numbers, (long long)numbers);
    state->numbers = numbers;
    if (!state->memory)
        MRC_TRY(mrc_alloc_zero(self->task->context, &state->memory, numbers, sizeof(double), "the search"));
    for (int s = 0; s < MRC_SEARCH_STAGES; s++) {
        mrc_descent_state *stage = &state->stages[s];
        stage->count = counts[s];
        stage->values = state->memory + at, stage->before = stage->values + counts[s];
        stage->mean = stage->before + counts[s], stage->square = stage->mean + counts[s];
        at += 4 * counts[s];
    }
    state->journal = state->memory + at;
    return MERCER_OK;
}

void mrc_search_state_free(mrc_search_state *state, mercer_context *context)
{
    mrc_free(context, state->memory);
    *state = (mrc_search_state){0};
}

static mrc_candidate candidate_of(const mrc_searcher *self, const mrc_descent_state *state, bool norm_1)
{
    mrc_candidate made = {.norm_1 = norm_1, .kernel = kernel_for(self->task, norm_1), .state = state};
    if (!is_given(self->task, norm_1))
        made.kernel.gamma = mrc_descent_exponent(&made.kernel, state->values[state->count - 2]);
    made.ridge = self->task->ridge >= 0 ? self->task->ridge : exp(state->values[state->count - 1]);
    return made;
}

/* Continues the descent of a candidate with larger draws, up to step `until` of `steps`. */
static mercer_status continue_descent(mrc_searcher *self, mrc_candidate *candidate, int steps, int until)
{
    int stage = candidate->norm_1 ? 2 : 3;
    mrc_descent_state *state = &self->task->state->stages[stage];
    if (self->result->cut) return MERCER_OK;
    if (state->step == 0) {
        memcpy(state->values, candidate->state->values, (size_t)state->count * sizeof(double));
        int64_t own = state->count - 2;
        double exponent = state->values[own], ridge = state->values[own + 1];
        set_common(self, state, candidate->norm_1);
        state->values[own] = exponent, state->values[own + 1] = ridge, state->rate = 0.6;
    }
    MRC_TRY(run_stage(self, stage, candidate->norm_1, steps, until));
    *candidate = candidate_of(self, state, candidate->norm_1);
    return MERCER_OK;
}

/* Continues the better of two candidates. A map needs more steps than weights do, so it is preferred if it is only a
   little worse. */
static mercer_status continue_best(mrc_searcher *self, const mrc_candidate *l1, const mrc_candidate *l2, int steps,
                                   mrc_candidate *best)
{
    double head_start = mrc_searcher_kind(self, false) == MRC_LEARN_MAP ? HEAD_START : 1;
    *best = l2->error < head_start * l1->error ? *l2 : *l1;
    return continue_descent(self, best, steps, steps);
}

/* Runs stage 1, and makes the blend of copies that stage 2 uses. */
static mercer_status run_norm_1(mrc_searcher *self, int steps, mrc_candidate *out)
{
    mrc_descent_state *state = &self->task->state->stages[0];
    if (state->step == 0) MRC_TRY(start_descent(self, state, true, &self->rows.x, NULL));
    MRC_TRY(run_stage(self, 0, true, steps, steps));
    if (self->points.blended) MRC_TRY(join_copies(self, state));
    *out = candidate_of(self, state, true);
    return MERCER_OK;
}

static mercer_status run_norm_2(mrc_searcher *self, int steps, mrc_candidate *out)
{
    mrc_descent_state *state = &self->task->state->stages[1];
    const mercer_matrix *x = self->joined.x.data ? &self->joined.x : &self->rows.x;
    if (state->step == 0) MRC_TRY(start_descent(self, state, false, x, self->shares));
    MRC_TRY(run_stage(self, 1, false, steps, steps));
    *out = candidate_of(self, state, false);
    return MERCER_OK;
}

static mercer_status run_stages(mrc_searcher *self, mrc_candidate *best)
{
    const mrc_search_task *task = self->task;
    bool norm_1 = task->kernel ? is_given(task, true) : !task->norm_2, norm_2 = !is_given(task, true);
    /* Without a map, norm 2 was worse than norm 1 on all tables with many features that were tried. */
    if (norm_1 && mrc_searcher_kind(self, false) == MRC_LEARN_SCALES && mrc_searcher_features(self) > MRC_MAP_FEATURES)
        norm_2 = false;
    bool blends = norm_1 || self->points.blended;
    int steps = count_steps(self, self->effort.first), more = count_steps(self, self->effort.second);
    mrc_candidate l1 = {.error = (double)INFINITY}, l2 = {.error = (double)INFINITY};
    self->total = (blends ? steps : 0) + (norm_2 ? steps : 0) + more;
    if (blends) MRC_TRY(run_norm_1(self, steps, &l1));
    if (norm_1 && self->result->cut) norm_2 = false;
    if (norm_2) MRC_TRY(run_norm_2(self, steps, &l2));
    if (norm_1 && norm_2) {
        MRC_TRY(mrc_search_score(self, &l1));
        MRC_TRY(mrc_search_score(self, &l2));
        return continue_best(self, &l1, &l2, more, best);
    }
    *best = norm_2 ? l2 : l1;
    return continue_descent(self, best, more, more);
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
    mrc_effort effort = mrc_effort_of(task->effort, task->data->rows, task->data->features);
    mrc_searcher self = {.task = task, .result = out, .scope = &scope, .effort = effort};
    mrc_candidate best;
    *out = (mrc_search_result){0};
    mercer_status status = open_rows(&self);
    if (status == MERCER_OK) status = open_state(&self);
    if (status == MERCER_OK) status = run_stages(&self, &best);
    if (status == MERCER_OK) status = mrc_search_finish(&self, &best);
    if (status == MERCER_OK) status = mrc_search_keep(&self, &best);
    mrc_free(task->context, self.split.rows);
    mrc_preprocess_free(self.points.preprocess);
    return status;
}
