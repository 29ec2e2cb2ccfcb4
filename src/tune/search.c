/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search. An arm is a kernel function with a preprocessing; its rounds have each a metric, and in it bandwidths
 * (multiples of the median distance) and ridges are judged together by small fits.
 *
 *   level 0   512 centers, 4,096 rows    all arms: round 0 without a metric, bandwidths 1/4 to 4, 8 .. 32 while the
 *                                        widest is the best; then a metric from the gradients of the best fit
 *                                        (features/agop.h) and the next round, which tries its last bandwidth and
 *                                        neighbours as long as they are better, until a round comes back to it. From
 *                                        round 2 on the better half goes on
 *   level 1   1,024 and 10,240           the 4 best arms, from their best metric on: up to 2 further rounds; then, for
 *                                        the 2 best, scales by descent (tune/descent.h), if rows are held back: by
 *                                        other criteria the rows that are judged on would have been seen
 *   level 2   3,072 and 20,480           the 3 best as they are, all ridges: more centers serve rough kernels more than
 *                                        smooth ones, and small fits flatter the latter. Where the error depends on the
 *                                        bandwidth, up to 2 further rounds, and of the best half steps of it
 *
 * Arms that are far behind the best do not come to the next level: on eight tables of 2,000 rows none of those within
 * 1.25 times its error made up more than 7 % by the centers of level 2.
 *
 * Last, the best with a quarter and half of its centers: what more of them bring (fit/tuned/tuned_size.c).
 *
 * The smallest error of the last level wins: few centers hold a fit down as a ridge does, so that of small fits the
 * best ridge may be far too small for the training proper.
 * Every fit is counted in flops before it is made, and none is that would go over the budget: what is tried depends on
 * sizes, options and the nominal speed of the machine, not on clocks.
 */
#include "tune/search_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

enum {
    LEVELS = 3,
    HALVING_ROUND = 2,
    LEAST_CENTERS = 256 /* of which a quarter tells something */
};
static const struct {
    int64_t rows, centers;
    int64_t share; /* of fewer rows that are fitted to, centers are 1 / share */
    int arms;
    int64_t rounds; /* further ones */
    bool climbs;    /* neighbours of a bandwidth are tried */
    int descents;   /* arms whose scales go down */
    double behind;  /* arms that err more than so many times the best are left behind */
} levels[LEVELS] = {{4096, 512, 4, MRC_TUNE_ARMS, 0, true, 0, 0},
                    {10240, 1024, 3, 4, 2, true, 2, 1.25},
                    {20480, 3072, 1, 3, 2, false, 0, 1.05}};
/* Of the logarithm of the error, by twice and by half the bandwidth together. An error that depends less on the scale
   of the metric does not depend on its details: at the last level neither further rounds nor half steps would tell. */
#define SHARP 0.07
static const double all_ridges[MRC_TUNE_RIDGES] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3};

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

static int64_t fitted_rows(const mrc_tune_search *self)
{
    int64_t sum = 0;
    for (int f = 0; f < self->split.fold_count; f++) sum += self->split.folds[f].count;
    return self->rows.held_out ? sum - self->split.folds[self->split.fold_count - 1].count : sum;
}

static int64_t centers_at(const mrc_tune_search *self, int level, int64_t rows)
{
    const mercer_dataset *given = self->task->given_centers;
    bool judged = self->task->criterion == MRC_HOLDOUT || self->task->criterion == MRC_KFOLD;
    int64_t share = judged ? levels[level].share : 1;
    int64_t p = mrc_min(mrc_min(levels[level].centers, mrc_max(1, rows / share)), mrc_max(1, self->task->centers));
    int64_t squares = self->task->criterion == MRC_KFOLD ? 6 * MRC_FOLDS : MRC_FOLDS + 4;
    double room = (double)self->task->memory / 4 / (sizeof(double) * (double)squares);
    if (self->task->memory > 0) p = mrc_min(p, mrc_max(1, (int64_t)sqrt(room)));
    return mrc_min(p, given ? given->rows : rows);
}

/* Room for fits with p centers. */
static mercer_status open_fits(mrc_tune_search *self, int64_t p)
{
    mrc_criterion criterion = self->task->criterion == MRC_KFOLD ? MRC_HOLDOUT : self->task->criterion;
    self->p = p;
    for (int v = 0; v < self->view_count; v++) {
        mrc_small_fits_free(self->fits[v]);
        self->fits[v] = NULL;
        MRC_TRY(mrc_small_fits_create(&self->fits[v], self->context, &self->views[v], p, criterion,
                                      self->result->ridges, self->result->ridge_count));
    }
    mrc_small_fits_free(self->joint);
    self->joint = NULL;
    if (self->view_count == 1) return MERCER_OK;
    return mrc_small_fits_create(&self->joint, self->context, &self->rows, p, MRC_KFOLD, self->result->ridges,
                                 self->result->ridge_count);
}

static void free_passes(mrc_tune_search *self)
{
    for (size_t i = 0; i < sizeof self->passes / sizeof *self->passes; i++)
        mrc_kept_sums_free(&self->passes[i].distances);
}

/* The rows with one part after the other held back; *fitted: how many are fitted to, at least. */
static void make_views(mrc_tune_search *self, int64_t *fitted)
{
    int last = self->rows.count - 1;
    for (int v = 0; v < self->view_count; v++) {
        mrc_small_rows *view = &self->views[v];
        int64_t sum = 0;
        *view = self->rows;
        if (self->task->criterion == MRC_KFOLD) {
            view->held_out = true;
            view->folds[v] = self->rows.folds[last], view->folds[last] = self->rows.folds[v];
        }
        for (int f = 0; f < view->count - (view->held_out ? 1 : 0); f++) sum += view->folds[f].count;
        *fitted = v == 0 ? sum : mrc_min(*fitted, sum);
    }
}

/* The rows of a level: of each fold that is fitted to, its share. How many they are, and its centers. Of the last,
   whether these are all rows that are fitted to. */
static int64_t take_rows(mrc_tune_search *self, int level, int64_t *p)
{
    int64_t all = fitted_rows(self), wanted = mrc_min(levels[level].rows, all), sum = 0;
    int last = self->split.fold_count - (self->rows.held_out ? 1 : 0);
    for (int f = 0; f < last; f++) {
        mrc_span *fold = &self->rows.folds[f];
        *fold = self->split.folds[f];
        fold->count = mrc_max(1, (int64_t)((double)fold->count * (double)wanted / (double)all));
        sum += fold->count;
    }
    int64_t fitted = sum;
    make_views(self, &fitted);
    *p = centers_at(self, level, fitted);
    if (level == LEVELS - 1) self->ends_whole = *p == fitted;
    return sum;
}

/* *same: the fits of the level before. */
static mercer_status open_level(mrc_tune_search *self, int level, bool *same)
{
    int64_t p, sum = take_rows(self, level, &p);
    *same = level > 0 && sum == self->rows_at_most && p == self->p;
    if (*same) return MERCER_OK;
    self->level = level, self->rows_at_most = sum, self->climbs = levels[level].climbs;
    if (!self->climbs) free_passes(self);
    return open_fits(self, p);
}

/* The arm with the `rank`-th smallest error, the first of equals. */
static mrc_arm *ranked(mrc_tune_search *self, int rank)
{
    for (int i = 0; i < self->arm_count; i++) {
        int before = 0;
        for (int k = 0; k < self->arm_count; k++)
            before +=
                self->arms[k].error < self->arms[i].error || (k < i && self->arms[k].error == self->arms[i].error);
        if (before == rank) return &self->arms[i];
    }
    return NULL;
}

/* Arms that err more than that are left behind. */
static double most_error(const mrc_tune_search *self)
{
    double least = (double)INFINITY;
    for (int i = 0; i < self->arm_count; i++) least = fmin(least, self->arms[i].error);
    return levels[self->level].behind * least;
}

static mercer_status first_level(mrc_tune_search *self)
{
    int64_t rounds = self->task->rounds;
    for (int64_t round = 0; round <= rounds && !self->out_of_budget; round++) {
        for (int i = 0; i < self->arm_count && !self->out_of_budget; i++) {
            bool better;
            if (!self->arms[i].ended) MRC_TRY(mrc_round_do(self, &self->arms[i], round == rounds, &better));
        }
        for (int i = self->arm_count / 2; i < self->arm_count && round >= HALVING_ROUND - 1; i++)
            ranked(self, i)->ended = true;
    }
    return MERCER_OK;
}

/* From the best metric on, as long as a round is better. */
static mercer_status go_on(mrc_tune_search *self, mrc_arm *of)
{
    bool known = !self->climbs && of->bend < SHARP;
    int64_t most = known ? 0 : mrc_min(levels[self->level].rounds, self->task->rounds);
    MRC_TRY(mrc_search_copy(self, of->now, of->best));
    of->error = (double)INFINITY, of->ended = of->settled = false, of->step = of->best_step, of->round = of->best_round;
    bool better = true;
    for (int64_t i = 0; i <= most && better && !of->ended && !self->out_of_budget; i++)
        MRC_TRY(mrc_round_do(self, of, i == most, &better));
    return MERCER_OK;
}

/* The best arms of the level, as they are before the first of them goes down. */
static mercer_status descend_best(mrc_tune_search *self)
{
    mrc_arm *best[MRC_TUNE_ARMS];
    int count = (int)mrc_min(levels[self->level].descents, self->arm_count);
    if (!self->views[0].held_out || self->task->rounds == 0) return MERCER_OK;
    for (int i = 0; i < count; i++) best[i] = ranked(self, i);
    double most = most_error(self);
    for (int i = 0; i < count && !self->out_of_budget; i++) {
        best[i]->settled = false;
        if (isfinite(best[i]->error) && best[i]->error <= most) MRC_TRY(mrc_round_descend(self, best[i]));
    }
    return MERCER_OK;
}

/* Neighbours of the best bandwidth of the level, if its round went without: they tell how flat the best is. */
static mercer_status look_around(mrc_tune_search *self)
{
    mrc_arm *of = ranked(self, 0);
    bool better;
    if (!of || !self->climbs || of->around || !isfinite(of->error) || self->out_of_budget) return MERCER_OK;
    MRC_TRY(mrc_search_copy(self, of->now, of->best));
    of->ended = of->settled = false, of->step = of->best_step, of->round = of->best_round;
    return mrc_round_do(self, of, true, &better);
}

static mercer_status further_level(mrc_tune_search *self)
{
    mrc_arm *list[MRC_TUNE_ARMS];
    int count = 0;
    for (int i = 0; i < self->arm_count && i < levels[self->level].arms; i++) list[count++] = ranked(self, i);
    double most = most_error(self);
    while (count > 1 && !(list[count - 1]->error <= most)) count--;
    for (int i = 0; i < count && !self->out_of_budget; i++)
        if (isfinite(list[i]->error)) MRC_TRY(go_on(self, list[i]));
    for (int i = 0; i < self->arm_count; i++) { /* those left behind are out */
        bool in = false;
        for (int k = 0; k < count; k++) in = in || list[k] == &self->arms[i];
        if (!in) self->arms[i].error = (double)INFINITY;
    }
    MRC_TRY(descend_best(self));
    MRC_TRY(look_around(self));
    mrc_arm *best = ranked(self, 0);
    bool sharp = best && !self->climbs && isfinite(best->error) && best->bend >= SHARP && !self->out_of_budget;
    return sharp ? mrc_round_between(self, best) : MERCER_OK;
}

/* ---- What more centers bring ------------------------------------------------------------------------------------- */

/* The best, with p centers: the error of the best of all ridges. */
static mercer_status try_size(mrc_tune_search *self, int64_t p, double *error)
{
    mrc_tune_result *result = self->result;
    mrc_round round = {
        .kernel = self->task->kernels[result->kernel], .preparation = result->preparation, .metrics = self->winner};
    double errors[MRC_RIDGES];
    bool fitted, zero;
    MRC_TRY(open_fits(self, p));
    MRC_TRY(mrc_round_units(self, &round, &zero));
    double seconds = mrc_round_cost(self, &round) / self->task->rate;
    *error = (double)INFINITY;
    if (zero || result->seconds + seconds > self->task->budget) return MERCER_OK;
    MRC_TRY(mrc_search_tell(self));
    result->seconds += seconds;
    MRC_TRY(mrc_round_fit(self, &round, result->multiple, errors, &fitted));
    for (int r = 0; r < result->ridge_count; r++) *error = fmin(*error, errors[r]);
    return MERCER_OK;
}

static mercer_status try_sizes(mrc_tune_search *self)
{
    mrc_tune_result *result = self->result;
    int64_t p = self->winner_p;
    double errors[MRC_TUNE_SIZES] = {0};
    /* Fits to other rows tell nothing of the number of centers. */
    if (!result->found || self->winner_rows != self->rows_at_most || p != self->p || p < LEAST_CENTERS)
        return MERCER_OK;
    for (int i = 0; i < MRC_TUNE_SIZES - 1; i++) {
        MRC_TRY(try_size(self, p >> (MRC_TUNE_SIZES - 1 - i), &errors[i]));
        if (!isfinite(errors[i])) return MERCER_OK;
    }
    errors[MRC_TUNE_SIZES - 1] = result->error;
    for (int i = 0; i < MRC_TUNE_SIZES; i++)
        result->centers[i] = p >> (MRC_TUNE_SIZES - 1 - i), result->center_errors[i] = errors[i];
    return MERCER_OK;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static void make_arms(mrc_tune_search *self)
{
    const mrc_tune_task *task = self->task;
    for (int s = 0; s < task->preparation_count; s++)
        for (int k = 0; k < task->kernel_count; k++) {
            mrc_arm *of = &self->arms[self->arm_count++];
            *of = (mrc_arm){.kernel = k, .preparation = s, .error = (double)INFINITY, .last_error = (double)INFINITY};
            for (int v = 0; v < self->view_count; v++)
                of->now[v] = (mrc_metric){.features = self->points.d, .width = self->points.d};
        }
    self->total = self->arm_count * (MRC_TUNE_FIRST + 1 + 3 * task->rounds) + 60;
}

/* M = A A', or the weights of a diagonal one; of several views their mean. */
static mercer_status write_metric(const mrc_tune_search *self, const mrc_metric *metrics, int kernel,
                                  mercer_matrix *out)
{
    mrc_backend *backend = self->context->backend;
    int64_t d = metrics->features;
    double share = 1. / self->view_count;
    mrc_norm norm = mrc_search_norm(&self->task->kernels[kernel]);
    if (!metrics->map) return MERCER_OK;
    *out = mrc_view(NULL, metrics->diagonal ? 1 : d, d, MERCER_F64);
    MRC_TRY(mrc_alloc_zero(self->context, &out->data, out->rows * d, sizeof(double), "the metric"));
    for (int v = 0; v < self->view_count; v++) {
        const mrc_metric *metric = &metrics[v];
        for (int64_t k = 0; k < d && metric->diagonal; k++)
            mrc_store(out, 0, k, mrc_load(out, 0, k) + share * mrc_metric_weight(metric, norm, k));
        if (metric->diagonal) continue;
        mercer_matrix a = mrc_view(metric->map, d, metric->width, MERCER_F64);
        mrc_gemm job = {.transpose_b = true, .alpha = share, .beta = v > 0, .a = &a, .b = &a, .c = out};
        MRC_TRY(backend->ops->gemm(backend, &job));
    }
    return MERCER_OK;
}

/* Whether `a` is to be preferred: it was judged by larger fits, or errs less. */
static bool goes_before(const mrc_arm *a, const mrc_arm *b)
{
    return a->last_level != b->last_level ? a->last_level > b->last_level : a->last_error < b->last_error;
}

/* The bests of the arms beside the one that won. */
static mercer_status write_next(const mrc_tune_search *self)
{
    mrc_tune_result *result = self->result;
    bool taken[MRC_TUNE_ARMS] = {false};
    for (int64_t wanted = mrc_min(self->task->next, MRC_TUNE_NEXT); wanted > 0; wanted--) {
        int best = -1;
        for (int i = 0; i < self->arm_count; i++) {
            const mrc_arm *of = &self->arms[i];
            bool won = of->kernel == result->kernel && of->preparation == result->preparation;
            if (won || taken[i] || !isfinite(of->last_error)) continue;
            if (best < 0 || goes_before(of, &self->arms[best])) best = i;
        }
        if (best < 0) break;
        const mrc_arm *of = &self->arms[best];
        mrc_tune_choice *choice = &result->next[result->next_count++];
        taken[best] = true;
        *choice = (mrc_tune_choice){.kernel = of->kernel,
                                    .preparation = of->preparation,
                                    .multiple = mrc_search_multiple(of->best_step),
                                    .ridge = of->ridge,
                                    .error = of->last_error,
                                    .round = of->best_round};
        MRC_TRY(write_metric(self, of->best, of->kernel, &choice->metric));
    }
    return MERCER_OK;
}

/* Rows that there is room for. */
static int64_t most_rows(const mrc_tune_task *task)
{
    int64_t row = mrc_max(1, task->data->features) * (int64_t)sizeof(float) * (task->preparation_count + 1);
    int64_t room = task->memory > 0 ? task->memory / 4 / row : levels[LEVELS - 1].rows;
    return mrc_max(2, mrc_min(levels[LEVELS - 1].rows, room * 2 / 3));
}

/* Seconds of counted work that the levels before the last leave for one fit of it: trained is at that size or a larger
   one, and what is best there is better known by one such fit than by many small ones. 0: there is no such fit, or it
   would take more than half of the budget. */
static double last_fit(mrc_tune_search *self)
{
    const mrc_tune_task *task = self->task;
    int64_t p, first_p, first = take_rows(self, 0, &first_p), last = take_rows(self, LEVELS - 1, &p), n = 0;
    if (first == last && first_p == p) return 0;
    for (int f = 0; f < self->rows.count; f++) n += self->rows.folds[f].count;
    double flops = (double)n * (double)p * (MRC_MOST_FEATURE_FLOPS * (double)self->points.d + MRC_VALUE_FLOPS);
    mrc_criterion criterion = task->criterion == MRC_KFOLD ? MRC_HOLDOUT : task->criterion;
    flops += mrc_small_flops(&self->views[0], p, criterion, self->result->ridge_count);
    double seconds = self->view_count * flops / task->rate;
    return seconds > task->budget / 2 ? 0 : seconds;
}

/* All levels. One that its budget ends is followed by the last, which has something left. */
static mercer_status run_levels(mrc_tune_search *self, double budget)
{
    double kept = last_fit(self);
    bool cut = false;
    for (int level = 0; level < LEVELS; level++) {
        bool same, last = level == LEVELS - 1;
        if (cut && (!last || kept == 0)) continue;
        self->out_of_budget = false;
        self->own.budget = budget - (last ? 0 : kept);
        MRC_TRY(open_level(self, level, &same));
        if (same) continue;
        self->result->rows = self->rows_at_most;
        MRC_TRY(level == 0 ? first_level(self) : further_level(self));
        cut = cut || self->out_of_budget;
    }
    self->own.budget = budget;
    self->out_of_budget = cut;
    self->result->whole = !cut && !self->left_out;
    return MERCER_OK;
}

static mercer_status run(mrc_tune_search *self, mrc_scope *scope)
{
    const mrc_tune_task *task = self->task;
    mrc_tune_result *result = self->result;
    MRC_TRY(mrc_split_make(&self->split, task->data, task->criterion, most_rows(task), task->seed));
    self->rows = (mrc_small_rows){.count = self->split.fold_count,
                                  .held_out = task->criterion == MRC_HOLDOUT,
                                  .own_centers = !task->given_centers};
    memcpy(self->rows.folds, self->split.folds, sizeof self->rows.folds);
    self->view_count = task->criterion == MRC_KFOLD ? self->rows.count : 1;
    self->points = (mrc_tune_points){.scope = scope, .context = self->context};
    MRC_TRY(mrc_tune_points_read(&self->points, task, &self->split, centers_at(self, LEVELS - 1, fitted_rows(self))));
    self->rows.x = self->points.mapped, self->rows.y = self->points.y, self->rows.weights = self->points.weights;
    make_arms(self);
    result->held = self->rows.held_out ? self->rows.folds[self->rows.count - 1].count : 0;
    MRC_TRY(run_levels(self, task->budget));
    if (!self->out_of_budget) MRC_TRY(try_sizes(self));
    if (task->keep) task->keep(task->keep_user, task, true);
    if (!result->found) return MERCER_OK;
    MRC_TRY(write_metric(self, self->winner, result->kernel, &result->metric));
    return write_next(self);
}

mercer_status mrc_tune(const mrc_tune_task *task, mrc_tune_result *out)
{
    mrc_tune_search *self;
    *out = (mrc_tune_result){.context = task->context, .error = (double)INFINITY};
    out->ridge_count = task->ridge >= 0 ? 1 : MRC_TUNE_RIDGES;
    for (int r = 0; r < out->ridge_count; r++) out->ridges[r] = task->ridge >= 0 ? task->ridge : all_ridges[r];
    MRC_TRY(mrc_alloc(task->context, &out->tries, MRC_TUNE_TRIES, sizeof *out->tries, "what was tried"));
    MRC_SCOPE(scope, task->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self, 1, sizeof *self, "the search"));
    self->own = *task, self->task = &self->own, self->context = task->context, self->result = out;
    mercer_status status = run(self, &scope);
    for (int i = 0; i < self->arm_count; i++) {
        for (int v = 0; v < MRC_VIEWS; v++) {
            mrc_metric_free(&self->arms[i].now[v]);
            mrc_metric_free(&self->arms[i].best[v]);
        }
    }
    for (int v = 0; v < MRC_VIEWS; v++) {
        mrc_metric_free(&self->winner[v]);
        mrc_small_fits_free(self->fits[v]);
    }
    mrc_small_fits_free(self->joint);
    free_passes(self);
    mrc_free(self->context, self->split.rows);
    return status;
}

void mrc_tune_free(mrc_tune_result *result)
{
    mrc_free(result->context, result->tries);
    mrc_free(result->context, result->metric.data);
    for (int i = 0; i < result->next_count; i++) mrc_free(result->context, result->next[i].metric.data);
    *result = (mrc_tune_result){0};
}
