/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search: two short descents, a longer one, and the final ridge.
 *
 *   1  norm 1   exp(-(sum_k s_k |x_k - z_k|)^g)        s over standardized and ranked copies, g, ridge
 *   2  norm 2   exp(-|A'(x - z)|^g)                     x: the blend of copies that stage 1 found; A full, or diagonal
 *   3  norm 1 continued with larger draws, or 4 norm 2 continued, whichever is better on held-out rows
 *   5  the final ridge: small fits to more rows, with three numbers of centers, scored on the held-out rows
 *
 * If a kernel is given, its norm selects stage 1 or 2. A given bandwidth fixes the mean of s, or the size of A.
 * Descents do not use these held-out rows; the rows that they hold out in each draw are training rows. Tables of fewer
 * than 2,000 rows have no held-out rows: descents draw from all rows, and stage 5 is cross-validated.
 *
 * With folds and more than STEP_ROWS rows, the number of steps is proportional to 1 / rows. A search with 1,000 rows
 * then takes half a second. The reduction increases errors by 1 % on samples of 1,000 rows of the eight tables of
 * docs/tables.md. Tables of ALL_STEPS_ROWS rows or more get all steps: with fewer steps the R2 of kin40k was lower by
 * .006 for samples of 1,300 and 1,900 rows.
 */
#include "search/search_parts.h"

#include "centers/center_selection.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/stage_progress.h"
#include "data/equal_rows.h"
#include "kernels/formulas.h"

#include <math.h>
#include <string.h>

/* LEAST_UNITS: smallest number of distinct rows or groups to search. MAP_ROWS: smallest number of distinct rows per
   feature to learn a map; with fewer rows, the d^2 entries of the map would fit noise. */
enum { LEAST_UNITS = 50, STEP_ROWS = 500, ALL_STEPS_ROWS = 1200, MAP_ROWS = 20 };
/* SEQUENCE: the first random sequence of the descents ("desc"). MEDIAN_ROWS: rows of the median distance, an initial
   guess that the descent corrects. POSSIBLE_ROWS: evenly spaced rows in which LEAST_UNITS units must be found. */
enum { SEQUENCE = 0x64657363, MEDIAN_ROWS = 500, POSSIBLE_ROWS = 4096 };
#define FIRST_RIDGE 1e-4 /* ridge per unit of sample weight at the start of a descent */
/* largest ratio of errors up to which a map is preferred to weights: a map gains more from the remaining steps */
#define HEAD_START 1.01
/* smallest weight of a copy at the start of a map, so that the descent can still increase it */
#define LEAST_WEIGHT   0.05
#define CONTINUED_RATE 0.6 /* factor of the rates of stages 3 and 4, which start near an optimum */

/* Splits the table, reads the rows of the split within an eighth of the memory, and finds their units. */
static mercer_status open_rows(mrc_searcher *self)
{
    const mrc_search_task *task = self->task;
    int64_t row = task->data->features * 2 * (int64_t)sizeof(float) + task->data->outputs * (int64_t)sizeof(double);
    int64_t most = mrc_max(256, mrc_min(self->effort.rows, task->memory / 8 / mrc_max(1, row)));
    MRC_TRY(mrc_split_make(&self->split, task->data, most, task->seed));
    self->points = (mrc_search_points){.scope = self->scope};
    MRC_TRY(mrc_search_points_read(&self->points, task, &self->split));
    mrc_search_points *points = &self->points;
    int64_t n = self->pool = mrc_folds_training(&self->split.folds);
    self->rows = (mrc_descent_rows){.y = mrc_rows(&points->y, 0, n), .weights = points->weights};
    if (points->blended)
        MRC_TRY(mrc_scope_view(self->scope, &self->blend, points->x.rows, points->features, MERCER_F32,
                               "rows of the search"));
    return mrc_split_units(task->data, self->split.rows, n, self->scope, &self->rows);
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* Index of the first stage with larger draws, counted from 0: stages LARGE and LARGE + 1 continue stages 0 and 1. */
enum { LARGE = 2 };

/* Returns whether a kernel is given and has this norm; every norm other than 1 counts as 2. */
static bool is_given(const mrc_search_task *task, int norm)
{
    return task->kernel && (mrc_kernel_norm(task->kernel) == 1) == (norm == 1);
}

/* Returns the kind of parameters that the search learns in a norm: one scale if a metric is given, a linear map in norm
   2 for few features and enough rows, else a scale per coordinate. */
static mrc_descent_kind choose_kind(const mrc_searcher *self, int norm)
{
    const mercer_preprocess *given = self->task->preprocess;
    int64_t d = self->points.features;
    if (given && given->map) return MRC_LEARN_SCALE;
    return norm == 1 || d > MRC_MAP_FEATURES || self->rows.different < MAP_ROWS * d ? MRC_LEARN_SCALES : MRC_LEARN_MAP;
}

/* Sets the parameters that the descents in a norm learn. Without a given kernel they start from an exponent between the
   Laplace and Gaussian kernel. */
static void open_space(mrc_searcher *self, int norm)
{
    const mrc_search_points *points = &self->points;
    mrc_descent_space *space = &self->spaces[norm - 1];
    *space = (mrc_descent_space){.norm = norm,
                                 .kind = choose_kind(self, norm),
                                 .x = points->x,
                                 .feature = points->feature,
                                 .features = points->features,
                                 .kernel = {.id = MRC_KERNEL_EXPPOWER, .gamma = 1.3},
                                 .learns_exponent = !is_given(self->task, norm)};
    if (norm == 1) space->kernel = (mercer_kernel){.id = MRC_KERNEL_EXPPOWER_L1, .gamma = 0.85};
    if (is_given(self->task, norm)) space->kernel = *self->task->kernel;
    space->kernel.bandwidth = 1;
    if (norm == 2 && points->blended && space->kind != MRC_LEARN_MAP) space->x = self->blend;
}

/* Reduces the number of steps for small tables (see the top of the file). */
static int count_steps(const mrc_searcher *self, int wanted)
{
    bool fewer = !self->split.folds.held_out && self->pool > STEP_ROWS && self->pool < ALL_STEPS_ROWS;
    return fewer ? (int)(wanted * STEP_ROWS / self->pool) : wanted;
}

/* The descents' progress callback: writes a journal row, reports progress, saves the state, and checks the deadline. */
static int watch_search(void *user, int step, double error)
{
    mrc_searcher *self = user;
    const mrc_search_task *task = self->task;
    mrc_search_state *state = task->state;
    const mrc_descent_state *stage = &state->stages[self->stage];
    const mrc_descent_space *space = &self->spaces[self->stage % LARGE];
    const double *last = stage->values + stage->count - 2;
    int64_t done = 0;
    (void)step;
    for (int s = 0; s < MRC_SEARCH_STAGES; s++) done += (int64_t)state->stages[s].step;
    if (state->steps < MRC_SEARCH_STEPS) {
        double *row = state->journal + state->steps++ * MRC_JOURNAL_COLUMNS;
        row[0] = self->stage + 1;
        row[1] = isfinite(error) ? error : 0;
        row[2] = space->learns_exponent ? mrc_descent_exponent(&space->kernel, last[0]) : 0;
        row[3] = task->ridge >= 0 ? task->ridge : exp(last[1]);
    }
    if (mrc_progress(task->progress, task->progress_user, "search", done, self->total, error)) self->stopped = true;
    if (task->save) task->save(task->save_user, self->stopped);
    if (task->deadline > 0 && mrc_seconds() > task->deadline) self->result->report.cut = true;
    return self->stopped || self->result->report.cut;
}

/* Runs or continues one descent. Stages have separate random sequences. */
static mercer_status run_stage(mrc_searcher *self, int stage, int steps)
{
    bool large = stage >= LARGE, stopped;
    mrc_descent descent = {.context = self->task->context,
                           .rows = &self->rows,
                           .space = &self->spaces[stage % LARGE],
                           .bandwidth = self->task->bandwidth,
                           .learns_ridge = self->task->ridge < 0,
                           .steps = steps,
                           .fitted = self->effort.fitted * (large ? 2 : 1),
                           .centers = self->effort.centers * (large ? 3 : 2) / 2,
                           .seed = self->task->seed,
                           .sequence = (uint64_t)SEQUENCE + ((uint64_t)stage << 32),
                           .progress = watch_search,
                           .progress_user = self};
    self->stage = stage;
    MRC_TRY(mrc_descent_run(&descent, &self->task->state->stages[stage], &stopped));
    if (!self->stopped) return MERCER_OK;
    return mrc_fail(self->task->context, MERCER_ERROR_CALLBACK, "the progress callback stopped the search");
}

/* ---- Starting points --------------------------------------------------------------------------------------------- */

/* Computes the median distance between the first rows of x, with coordinates multiplied by factors (k; NULL: all 1). */
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
    return mercer_median_distance(self->task->context, out, kernel, &some, 0);
}

/* Resets a state except for its parameters: no steps, no moments, no error. */
static void reset_state(mrc_descent_state *state, double rate)
{
    state->step = 0;
    state->rate = rate;
    state->error = (double)NAN;
    memset(state->mean, 0, (size_t)state->count * sizeof(double));
    memset(state->square, 0, (size_t)state->count * sizeof(double));
}

/* Initializes stage 1 or 2 so that the median distance is 1. The scales are equal or, after a blend, the weights of the
   features from stage 1. */
static mercer_status start_descent(const mrc_searcher *self, int norm)
{
    const mrc_descent_space *space = &self->spaces[norm - 1];
    mrc_descent_state *state = &self->task->state->stages[norm - 1];
    const double *shares = norm == 2 ? self->shares : NULL;
    mercer_matrix x = mrc_rows(shares ? &self->blend : &self->points.x, 0, self->pool);
    double median, *values = state->values, *own = values + state->count - 2;
    MRC_TRY(find_median(self, &x, &space->kernel, shares, &median));
    if (!(median > 0) || !isfinite(median)) median = 1;
    reset_state(state, 1);
    own[0] = space->learns_exponent ? mrc_descent_parameter(&space->kernel, space->kernel.gamma) : 0;
    own[1] = log(self->task->ridge >= 0 ? fmax(self->task->ridge, 1e-300) : FIRST_RIDGE);
    int64_t d = x.cols, width = space->x.cols;
    if (space->kind != MRC_LEARN_MAP) {
        for (int64_t j = 0; j < (space->kind == MRC_LEARN_SCALE ? 1 : d); j++)
            values[j] = log(fmax((shares ? shares[j] : 1) / median, 1e-6));
        return MERCER_OK;
    }
    for (int64_t j = 0; j < width; j++) /* every copy starts with a positive weight */
        values[j] = self->weights ? log(fmax(self->weights[j], LEAST_WEIGHT)) : 0;
    memset(values + width, 0, (size_t)(d * d) * sizeof(double));
    for (int64_t j = 0; j < d; j++) values[width + j * d + j] = fmax((shares ? shares[j] : 1) / median, 1e-6);
    return MERCER_OK;
}

/* Makes the points of norm 2, with one column per feature: the sum of the feature's copies, weighted by the factors of
   stage 1. */
static mercer_status blend_copies(mrc_searcher *self)
{
    const mrc_search_points *points = &self->points;
    const double *values = self->task->state->stages[0].values;
    MRC_TRY(mrc_scope_alloc(self->scope, &self->weights, points->width, sizeof(double), "scales"));
    MRC_TRY(mrc_scope_alloc_zero(self->scope, &self->shares, points->features, sizeof(double), "scales"));
    for (int64_t j = 0; j < points->width; j++) self->shares[points->feature[j]] += exp(values[j]);
    for (int64_t j = 0; j < points->width; j++) self->weights[j] = exp(values[j]) / self->shares[points->feature[j]];
    mrc_search_points_blend(points, self->weights, &self->blend);
    return MERCER_OK;
}

/* ---- The search -------------------------------------------------------------------------------------------------- */

/* Allocates the state, or checks the size of a restored state, and sets the views of its memory. */
static mercer_status open_state(mrc_searcher *self)
{
    mrc_search_state *state = self->task->state;
    int64_t counts[LARGE], at = 0;
    for (int i = 0; i < LARGE; i++) counts[i] = mrc_descent_count(&self->spaces[i]);
    int64_t numbers = 8 * (counts[0] + counts[1]) + MRC_SEARCH_STEPS * MRC_JOURNAL_COLUMNS;
    if (state->memory && state->numbers != numbers)
        return mrc_fail(self->task->context, MERCER_ERROR_MISMATCH,
                        "the checkpoint was written with other data or options: its search has %lld numbers, but this "
                        "search has %lld",
                        (long long)state->numbers, (long long)numbers);
    state->numbers = numbers;
    if (!state->memory)
        MRC_TRY(mrc_alloc_zero(self->task->context, &state->memory, numbers, sizeof(double), "the search"));
    for (int s = 0; s < MRC_SEARCH_STAGES; s++) {
        mrc_descent_state *stage = &state->stages[s];
        int64_t count = stage->count = counts[s % LARGE];
        stage->values = state->memory + at, stage->before = stage->values + count;
        stage->mean = stage->before + count, stage->square = stage->mean + count;
        at += 4 * count;
    }
    state->journal = state->memory + at;
    return MERCER_OK;
}

void mrc_search_state_free(mrc_search_state *state, mercer_context *context)
{
    mrc_free(context, state->memory);
    *state = (mrc_search_state){0};
}

/* Returns the current kernel and ridge of a stage as a candidate, whose `values` point into the state. */
static mrc_candidate candidate_of(const mrc_searcher *self, int stage)
{
    const mrc_descent_space *space = &self->spaces[stage % LARGE];
    const mrc_descent_state *state = &self->task->state->stages[stage];
    const double *own = state->values + state->count - 2;
    mrc_candidate made = {.space = space, .values = state->values, .kernel = space->kernel};
    if (space->learns_exponent) made.kernel.gamma = mrc_descent_exponent(&made.kernel, own[0]);
    made.ridge = self->task->ridge >= 0 ? self->task->ridge : exp(own[1]);
    return made;
}

/* Continues the descent of a candidate with larger draws. */
static mercer_status continue_descent(mrc_searcher *self, mrc_candidate *candidate, int steps)
{
    int stage = LARGE + candidate->space->norm - 1;
    mrc_descent_state *state = &self->task->state->stages[stage];
    if (self->result->report.cut) return MERCER_OK;
    if (state->step == 0) {
        memcpy(state->values, candidate->values, (size_t)state->count * sizeof(double));
        reset_state(state, CONTINUED_RATE);
    }
    MRC_TRY(run_stage(self, stage, steps));
    *candidate = candidate_of(self, stage);
    return MERCER_OK;
}

/* Scores two candidates and continues the better one. A linear map needs more descent steps than feature weights do, so
   a map is preferred even if its error is slightly larger. Continuing both instead takes a quarter longer and changes
   no mean score significantly (eight tables, ten splits). */
static mercer_status continue_best(mrc_searcher *self, mrc_candidate *l1, mrc_candidate *l2, int steps,
                                   mrc_candidate *best)
{
    double head_start = self->spaces[1].kind == MRC_LEARN_MAP ? HEAD_START : 1;
    MRC_TRY(mrc_search_score(self, l1));
    MRC_TRY(mrc_search_score(self, l2));
    *best = l2->error < head_start * l1->error ? *l2 : *l1;
    return continue_descent(self, best, steps);
}

/* Runs stage 1 or 2. Stage 1 also makes the blended points of stage 2. */
static mercer_status run_norm(mrc_searcher *self, int norm, int steps, mrc_candidate *out)
{
    int stage = norm - 1;
    if (self->task->state->stages[stage].step == 0) MRC_TRY(start_descent(self, norm));
    MRC_TRY(run_stage(self, stage, steps));
    if (norm == 1 && self->points.blended) MRC_TRY(blend_copies(self));
    *out = candidate_of(self, stage);
    return MERCER_OK;
}

/* Runs the stages that the given kernel and preprocessing leave open, and returns the best candidate. */
static mercer_status run_stages(mrc_searcher *self, mrc_candidate *best)
{
    const mrc_search_task *task = self->task;
    bool norm_1 = task->kernel ? is_given(task, 1) : !task->norm_2, norm_2 = !is_given(task, 1);
    /* Without a map, norm 2 was worse than norm 1 on all tables tried that have many features. */
    if (norm_1 && self->spaces[1].kind == MRC_LEARN_SCALES && self->points.features > MRC_MAP_FEATURES) norm_2 = false;
    bool blends = norm_1 || self->points.blended;
    int steps = count_steps(self, self->effort.first), more = count_steps(self, self->effort.second);
    mrc_candidate l1, l2;
    self->total = (blends ? steps : 0) + (norm_2 ? steps : 0) + more;
    if (blends) MRC_TRY(run_norm(self, 1, steps, &l1));
    if (norm_1 && self->result->report.cut) norm_2 = false;
    if (norm_2) MRC_TRY(run_norm(self, 2, steps, &l2));
    if (norm_1 && norm_2) return continue_best(self, &l1, &l2, more, best);
    *best = norm_2 ? l2 : l1;
    return continue_descent(self, best, more);
}

mercer_status mrc_search_possible(const mercer_dataset *data, bool *possible)
{
    int64_t n = mrc_min(data->rows, POSSIBLE_ROWS), *rows, units = data->rows;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, 2 * n, sizeof *rows, "row numbers"));
    /* Take rows from all parts of the table, because it may be sorted by group. */
    for (int64_t i = 0; i < n; i++) rows[i] = i * data->rows / n;
    if (data->key_kind != MRC_KEYS_TIMES) MRC_TRY(mrc_row_units(data, rows, n, rows + n, &units));
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
    for (int norm = 1; norm <= 2 && status == MERCER_OK; norm++) open_space(&self, norm);
    if (status == MERCER_OK) status = open_state(&self);
    if (status == MERCER_OK) status = run_stages(&self, &best);
    if (status == MERCER_OK) status = mrc_search_finish(&self, &best);
    if (status == MERCER_OK) status = mrc_search_use_candidate(&self, &best);
    mrc_free(task->context, self.split.rows);
    mrc_preprocess_free(self.points.preprocess);
    return status;
}
