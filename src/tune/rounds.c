/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of an arm: bandwidths and ridges in a metric, judged together; then the metric of the next one, by gradients
 * of the best fit (features/agop.h) or by descent (tune/descent.h), of every view from the rows that it is fitted to,
 * so that those that it is judged on are not seen.
 */
#include "tune/search_parts.h"

#include "core/matrix.h"
#include "features/agop.h"
#include "tune/descent.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = MRC_TUNE_STEPS,
    GRADIENT_ROWS = 2048,
    MOST_FULL = 1024 /* features of a full metric */
};

double mrc_search_multiple(int step)
{
    return exp2(step - 2);
}

mercer_status mrc_search_unit(mrc_tune_search *self, const mercer_kernel *kernel, const mercer_matrix *z, double *unit)
{
    mercer_status status = mercer_kernel_median_distance(self->context, unit, kernel, z, 0);
    if (status == MERCER_ERROR_DATA) *unit = 0;
    return status == MERCER_ERROR_DATA ? MERCER_OK : status;
}

static double multiple_of(const mrc_round *round, int step)
{
    return mrc_search_multiple(step) * exp2(round->shift);
}

/* Where the parabola through values at -1, 0 and 1 is lowest, between them. */
static double lowest(double before, double middle, double after)
{
    double bend = before - 2 * middle + after;
    if (!isfinite(bend)) return 0;
    if (bend <= 0) return before < after ? -1 : 1;
    return fmax(-1, fmin(1, (before - after) / bend / 2));
}

/* ---- One bandwidth ----------------------------------------------------------------------------------------------- */

/* Whether one pass over the rows serves all folds: their points are the same. */
static bool is_joint(const mrc_tune_search *self, const mrc_round *round)
{
    return self->joint && !round->metrics[0].map;
}

/* Flops of a fit: those of double, and its kernel values. */
double mrc_round_cost(const mrc_tune_search *self, const mrc_round *round)
{
    bool kept = round->pass && round->pass->counted;
    double n = 0, flops = 0, effort = kept ? 0 : mrc_feature_flops(&round->kernel);
    for (int f = 0; f < self->rows.count; f++) n += (double)self->rows.folds[f].count;
    double values = n * (double)self->p * (effort * (double)round->width + MRC_VALUE_FLOPS);
    if (is_joint(self, round)) return mrc_small_fits_flops(self->joint) + values;
    for (int v = 0; v < self->view_count; v++) flops += mrc_small_fits_flops(self->fits[v]) + values;
    return flops;
}

mercer_status mrc_search_tell(mrc_tune_search *self)
{
    const mrc_tune_task *task = self->task;
    const mrc_tune_result *result = self->result;
    int64_t done = result->count, total = done < self->total ? self->total : done + 1;
    if (!task->progress || !task->progress(task->progress_user, "tuning", done, total, result->error)) return MERCER_OK;
    if (task->keep) task->keep(task->keep_user, task, true);
    return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "stopped while the model was searched for");
}

static void note(mrc_tune_search *self, const mrc_round *round, int step, const double *errors, int best)
{
    mrc_tune_result *result = self->result;
    const mrc_arm *of = round->of;
    mercer_tune_try *at = &result->tries[result->count++];
    *at = (mercer_tune_try){.kernel = self->task->kernel_names[of->kernel],
                            .preprocess = self->task->preparations[of->preparation],
                            .round = of->round,
                            .rows = self->rows_at_most,
                            .centers = self->p,
                            .multiple = multiple_of(round, step),
                            .bandwidth = multiple_of(round, step) * round->units[0],
                            .ridge = round->ridges[step],
                            .error = errors[best]};
    memcpy(at->errors, errors, (size_t)result->ridge_count * sizeof *errors);
}

mercer_status mrc_round_map(mrc_tune_search *self, const mrc_round *round, int view, mercer_matrix *x, mercer_matrix *z)
{
    return mrc_tune_points_map(&self->points, round->preparation, &round->metrics[view], &self->views[view], self->p, x,
                               z);
}

mercer_status mrc_round_units(mrc_tune_search *self, mrc_round *round, bool *zero)
{
    mercer_matrix x, z;
    *zero = false, round->width = 0;
    for (int v = 0; v < self->view_count; v++) {
        MRC_TRY(mrc_round_map(self, round, v, &x, &z));
        MRC_TRY(mrc_search_unit(self, &round->kernel, &z, &round->units[v]));
        *zero = *zero || round->units[v] == 0;
        round->width = mrc_max(round->width, x.cols);
    }
    return MERCER_OK;
}

/* The weight of the rows that a view is judged on. */
static double judged(const mrc_tune_search *self, int view)
{
    mrc_span held = self->views[view].folds[self->views[view].count - 1];
    double sum = 0;
    for (int64_t i = 0; i < held.count && self->points.weights; i++) sum += self->points.weights[held.first + i];
    return self->points.weights ? sum : (double)held.count;
}

/* The distances that a round shares with others: nobody has to have formed them yet. Views in metrics of their own have
   no points in common. */
static mrc_pass *find_pass(mrc_tune_search *self, const mrc_round *round)
{
    enum { SHARE = 8 }; /* of the memory, for each norm */
    const mrc_arm *of = round->of;
    double norm = mrc_kernel_norm(&round->kernel);
    int64_t metric = of->now[0].map ? ++self->metrics : 0;
    bool squares = round->units[0] >= 1e-12 && round->units[0] <= 1e12; /* of distances are floats */
    if (!self->climbs || !squares || (self->view_count > 1 && !is_joint(self, round))) return NULL;
    if (!mrc_kept_sums_fit(self->context, &self->rows, self->p, self->task->memory / SHARE)) return NULL;
    mrc_pass *pass = &self->passes[norm == 1 ? 0 : 1];
    bool same = pass->norm == norm && pass->level == self->level && pass->preparation == of->preparation &&
                pass->metric == metric;
    if (same) return pass;
    pass->norm = norm, pass->level = self->level, pass->preparation = of->preparation, pass->metric = metric;
    pass->counted = pass->distances.there = false;
    return pass;
}

/* One fit, to points that are mapped, of all rows; pass: or NULL. */
static mercer_status fit(mrc_tune_search *self, mrc_small_fits *fits, const mrc_round *round, mrc_pass *pass,
                         const mercer_matrix *x, const mercer_matrix *z, double *errors)
{
    mrc_kept_sums *distances = pass ? &pass->distances : NULL;
    if (distances && !distances->there)
        MRC_TRY(mrc_kept_sums_make(distances, self->context, &round->kernel, &self->rows, x, z));
    return mrc_small_fits_try(fits, &round->kernel, x, z, distances, errors);
}

/* The kernel with the bandwidth of a view, and its points. */
static mercer_status fit_view(mrc_tune_search *self, mrc_round *round, double multiple, int view, double *errors)
{
    mercer_matrix x, z;
    MRC_TRY(mrc_round_map(self, round, view, &x, &z));
    round->kernel.bandwidth = multiple * round->units[view];
    mrc_pass *pass = self->view_count == 1 ? round->pass : NULL;
    return fit(self, self->fits[view], round, pass, &x, &z, errors);
}

static mercer_status fit_joint(mrc_tune_search *self, mrc_round *round, double multiple, double *errors)
{
    mercer_matrix x, z;
    MRC_TRY(mrc_tune_points_map(&self->points, round->preparation, &round->metrics[0], &self->rows, self->p, &x, &z));
    round->kernel.bandwidth = multiple * round->units[0];
    return fit(self, self->joint, round, round->pass, &x, &z, errors);
}

/* The mean over all that are judged on. */
static mercer_status fit_views(mrc_tune_search *self, mrc_round *round, double multiple, double *errors)
{
    double own[MRC_RIDGES], all = 0;
    int ridges = self->result->ridge_count;
    if (self->view_count == 1) return fit_view(self, round, multiple, 0, errors);
    if (is_joint(self, round)) return fit_joint(self, round, multiple, errors);
    for (int r = 0; r < ridges; r++) errors[r] = 0;
    for (int v = 0; v < self->view_count; v++) {
        MRC_TRY(fit_view(self, round, multiple, v, own));
        double weight = judged(self, v);
        for (int r = 0; r < ridges; r++) errors[r] += weight * own[r];
        all += weight;
    }
    for (int r = 0; r < ridges; r++) errors[r] /= all;
    return MERCER_OK;
}

/* The errors of a fit, from the journal if it has them: *fitted tells. */
mercer_status mrc_round_fit(mrc_tune_search *self, mrc_round *round, double multiple, double *errors, bool *fitted)
{
    const mrc_tune_task *task = self->task;
    *fitted = !mrc_journal_recall_fit(task->journal, errors);
    if (!*fitted) return MERCER_OK;
    MRC_TRY(fit_views(self, round, multiple, errors));
    MRC_TRY(mrc_journal_add_fit(task->journal, errors));
    if (task->keep) task->keep(task->keep_user, task, false);
    return MERCER_OK;
}

/* The ridge with the smallest error, or from there towards a neighbour, to the lowest point of the parabola through the
   logarithms of the three errors: ridges are factors of 10 apart, and the error is smooth in their logarithm. Only
   where the search ends with all rows as centers, as the training has them: fewer hold a fit down as a ridge does, so
   that what is best there is rather too small for more, and half a step less would be still smaller. */
static double choose_ridge(const mrc_tune_search *self, const double *errors, int best)
{
    const mrc_tune_result *result = self->result;
    double ridge = result->ridges[best];
    if (!self->ends_whole || best == 0 || best + 1 == result->ridge_count) return ridge;
    double shift = lowest(log(errors[best - 1]), log(errors[best]), log(errors[best + 1])); /* at most half a step */
    return ridge * pow(result->ridges[best + (shift > 0 ? 1 : -1)] / ridge, fabs(shift));
}

static mercer_status try_step(mrc_tune_search *self, mrc_round *round, int step)
{
    double errors[MRC_RIDGES], flops = mrc_round_cost(self, round);
    mrc_tune_result *result = self->result;
    if (isfinite(round->errors[step]) || self->out_of_budget) return MERCER_OK;
    MRC_TRY(mrc_search_tell(self));
    if (result->seconds + flops / self->task->rate > self->task->budget || result->count == MRC_TUNE_TRIES) {
        self->out_of_budget = true;
        return MERCER_OK;
    }
    result->seconds += flops / self->task->rate;
    if (round->pass) round->pass->counted = true;
    bool fitted;
    MRC_TRY(mrc_round_fit(self, round, multiple_of(round, step), errors, &fitted));
    int best = 0;
    for (int r = 1; r < result->ridge_count; r++)
        if (errors[r] < errors[best]) best = r;
    round->errors[step] = errors[best], round->ridges[step] = choose_ridge(self, errors, best);
    note(self, round, step, errors, best);
    if (!isfinite(errors[best]) || (round->best >= 0 && errors[best] >= round->errors[round->best])) return MERCER_OK;
    round->best = step, round->fitted = fitted && self->view_count == 1;
    return round->fitted ? mrc_small_fits_weights(self->fits[0], round->ridges[step], &round->weights) : MERCER_OK;
}

/* ---- A round ----------------------------------------------------------------------------------------------------- */

/* The best so far, and neighbours of it as long as one is better. */
static mercer_status climb(mrc_tune_search *self, mrc_round *round)
{
    for (int from = -1; from != round->best && !self->out_of_budget;) {
        from = round->best;
        if (from < 0) return MERCER_OK;
        if (from + 1 < STEPS) MRC_TRY(try_step(self, round, from + 1));
        if (from > 0) MRC_TRY(try_step(self, round, from - 1));
    }
    return MERCER_OK;
}

/* Of a metric that is a little better than the one before, the best bandwidth is nearly always the same multiple of the
   median distance: an arm that came back to it once goes on without neighbours. */
static mercer_status try_bandwidths(mrc_tune_search *self, mrc_round *round)
{
    mrc_arm *of = round->of;
    bool first = self->level == 0 && of->round == 0;
    for (int i = 0; i < STEPS; i++) round->errors[i] = (double)INFINITY;
    for (int i = 0; first && i < MRC_TUNE_FIRST; i++) MRC_TRY(try_step(self, round, i));
    if (!first) MRC_TRY(try_step(self, round, of->step));
    if (!self->climbs || of->settled) return MERCER_OK;
    MRC_TRY(climb(self, round));
    round->around = true;
    of->settled = !first && round->best == of->step;
    return MERCER_OK;
}

/* A neighbour that was not tried, beyond the ends, is taken to be as far above as the other. */
static double bend_of(const mrc_round *round)
{
    int best = round->best;
    double below = best > 0 ? log(round->errors[best - 1] / round->errors[best]) : (double)INFINITY,
           above = best + 1 < STEPS ? log(round->errors[best + 1] / round->errors[best]) : (double)INFINITY;
    if (!isfinite(below)) below = above;
    if (!isfinite(above)) above = below;
    return isfinite(below) ? below + above : 0;
}

static mercer_status copy_metric(mrc_tune_search *self, mrc_metric *to, const mrc_metric *from)
{
    mrc_metric_free(to);
    *to = (mrc_metric){
        .context = self->context, .features = from->features, .width = from->width, .diagonal = from->diagonal};
    if (!from->map) return MERCER_OK;
    int64_t numbers = from->diagonal ? from->features : from->features * from->width;
    MRC_TRY(mrc_alloc(self->context, &to->map, numbers, sizeof(double), "a metric"));
    memcpy(to->map, from->map, (size_t)numbers * sizeof(double));
    return MERCER_OK;
}

mercer_status mrc_search_copy(mrc_tune_search *self, mrc_metric *to, const mrc_metric *from)
{
    for (int v = 0; v < self->view_count; v++) MRC_TRY(copy_metric(self, &to[v], &from[v]));
    return MERCER_OK;
}

mrc_norm mrc_search_norm(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) == 1 ? MRC_NORM_1 : MRC_NORM_2;
}

/* The first rows that a view is fitted to, one behind the other. */
static void gather_rows(const mrc_small_rows *rows, const mercer_matrix *x, const mercer_matrix *to)
{
    int64_t done = 0;
    for (int f = 0; f < rows->count && done < to->rows; f++)
        for (int64_t i = 0; i < rows->folds[f].count && done < to->rows; i++)
            memcpy(mrc_row(to, done++), mrc_row(x, rows->folds[f].first + i), (size_t)x->cols * sizeof(float));
}

static int64_t fitted_rows(const mrc_small_rows *rows)
{
    int64_t sum = 0;
    for (int f = 0; f < rows->count - (rows->held_out ? 1 : 0); f++) sum += rows->folds[f].count;
    return sum;
}

/* From gradients of the best fit of a view; *zero: they are. */
static mercer_status compute_metric(mrc_tune_search *self, mrc_round *round, int view, mrc_metric *next, bool *zero)
{
    mrc_backend *backend = self->context->backend;
    double errors[MRC_RIDGES], multiple = mrc_search_multiple(round->best), *G, *origin;
    float *weights;
    mercer_matrix all, x, z;
    MRC_SCOPE(scope, self->context);
    if (!round->fitted) {
        MRC_TRY(fit_view(self, round, multiple, view, errors));
        MRC_TRY(mrc_small_fits_weights(self->fits[view], round->ridges[round->best], &round->weights));
    }
    MRC_TRY(mrc_round_map(self, round, view, &all, &z));
    int64_t width = all.cols, c = self->points.c, m = mrc_min(fitted_rows(&self->views[view]), GRADIENT_ROWS);
    bool diagonal = mrc_search_norm(&round->kernel) == MRC_NORM_1 || self->points.d > MOST_FULL;
    MRC_TRY(mrc_scope_alloc(&scope, &G, diagonal ? 1 : width, width * (int64_t)sizeof *G, "gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &origin, width, sizeof *origin, "gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * c, sizeof *weights, "gradients"));
    MRC_TRY(mrc_scope_view(&scope, &x, m, width, MERCER_F32, "gradients"));
    gather_rows(&self->views[view], &all, &x);
    mercer_matrix gradients = mrc_view(G, diagonal ? 1 : width, width, MERCER_F64);
    mercer_matrix alpha = mrc_view(weights, self->p, c, MERCER_F32);
    round->kernel.bandwidth = multiple * round->units[view];
    MRC_TRY(backend->ops->column_mean(backend, &z, origin));
    MRC_TRY(backend->ops->copy(backend, &alpha, &round->weights));
    mrc_expansion sum = {.kernel = &round->kernel, .z = &z, .origin = origin};
    MRC_TRY(mrc_agop(backend, &sum, &x, &alpha, self->task->seed, &gradients));
    return mrc_metric_next(next, backend, mrc_search_norm(&round->kernel), &round->of->now[view], &gradients, zero);
}

/* The metric of the next round, of one view. */
static mercer_status learn_view(mrc_tune_search *self, mrc_round *round, int view, mrc_metric *next)
{
    mrc_arm *of = round->of;
    mrc_journal *journal = self->task->journal;
    const mrc_metric none = {0};
    bool found, zero = false;
    MRC_TRY(mrc_journal_recall_metric(journal, next, NULL, &found));
    if (found) {
        zero = !next->map;
    } else {
        MRC_TRY(compute_metric(self, round, view, next, &zero));
        MRC_TRY(mrc_journal_add_metric(journal, zero ? &none : next, 0));
    }
    of->ended = of->ended || zero;
    return MERCER_OK;
}

/* Those of all views: each is learned from the metrics as they were. */
static mercer_status learn_metric(mrc_tune_search *self, mrc_round *round)
{
    mrc_arm *of = round->of;
    mrc_metric next[MRC_VIEWS] = {{0}};
    mercer_status status = MERCER_OK;
    for (int v = 0; v < self->view_count && status == MERCER_OK; v++) status = learn_view(self, round, v, &next[v]);
    for (int v = 0; v < self->view_count; v++) {
        bool taken = status == MERCER_OK && !of->ended;
        if (taken) mrc_metric_free(&of->now[v]);
        if (taken) of->now[v] = next[v];
        if (!taken) mrc_metric_free(&next[v]);
    }
    return status;
}

/* What an arm came to. */
static mercer_status take_over(mrc_tune_search *self, const mrc_round *round)
{
    mrc_arm *of = round->of;
    mrc_tune_result *result = self->result;
    double error = round->errors[round->best];
    of->step = round->best;
    if (round->around && of->round == of->best_round && error <= of->error)
        of->around = true, of->bend = bend_of(round);
    if (!(error < of->error)) return MERCER_OK;
    of->error = of->last_error = error, of->best_step = round->best, of->ridge = round->ridges[round->best];
    of->best_round = of->round, of->last_level = self->level;
    if (self->climbs) of->around = round->around, of->bend = bend_of(round);
    MRC_TRY(mrc_search_copy(self, of->best, of->now));
    if (result->found && self->winner_level == self->level && error >= result->error) return MERCER_OK;
    result->found = true;
    result->kernel = of->kernel, result->preparation = of->preparation, result->round = of->round;
    result->multiple = mrc_search_multiple(round->best), result->ridge = of->ridge, result->error = error;
    self->winner_rows = self->rows_at_most, self->winner_p = self->p, self->winner_level = self->level;
    return mrc_search_copy(self, self->winner, of->now);
}

/* *better: than the arm's rounds before, at this level. */
mercer_status mrc_round_do(mrc_tune_search *self, mrc_arm *of, bool last, bool *better)
{
    double *weights, before = of->error;
    mrc_round round = {.of = of,
                       .kernel = self->task->kernels[of->kernel],
                       .preparation = of->preparation,
                       .metrics = of->now,
                       .best = -1};
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * self->points.c, sizeof *weights, "weights"));
    round.weights = mrc_view(weights, self->p, self->points.c, MERCER_F64);
    *better = false;
    MRC_TRY(mrc_round_units(self, &round, &of->ended));
    if (of->ended) return MERCER_OK;
    round.pass = find_pass(self, &round);
    MRC_TRY(try_bandwidths(self, &round));
    if (round.best < 0) {
        of->ended = true;
        return MERCER_OK;
    }
    MRC_TRY(take_over(self, &round));
    *better = of->error < before;
    if (!last && !self->out_of_budget) MRC_TRY(learn_metric(self, &round));
    of->round++;
    return MERCER_OK;
}

mercer_status mrc_round_between(mrc_tune_search *self, mrc_arm *of)
{
    mrc_tune_result *result = self->result;
    double *weights, ridges[3] = {0, of->ridge, 0}, logs[3] = {0, log(of->error), 0};
    bool zero;
    mrc_round round = {
        .of = of, .kernel = self->task->kernels[of->kernel], .preparation = of->preparation, .metrics = of->best};
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * self->points.c, sizeof *weights, "weights"));
    round.weights = mrc_view(weights, self->p, self->points.c, MERCER_F64);
    MRC_TRY(mrc_round_units(self, &round, &zero));
    of->round = of->best_round;
    for (int side = 0; side < 3; side += 2) {
        round.best = -1, round.errors[of->best_step] = (double)INFINITY, round.shift = 0.5 * (side - 1);
        if (!zero) MRC_TRY(try_step(self, &round, of->best_step));
        if (round.best < 0) return MERCER_OK;
        logs[side] = log(round.errors[of->best_step]), ridges[side] = round.ridges[of->best_step];
        result->error = fmin(result->error, round.errors[of->best_step]);
    }
    double to = lowest(logs[0], logs[1], logs[2]);
    of->error = of->last_error = result->error;
    of->ridge = result->ridge = ridges[1 + (int)lround(to)];
    result->multiple = mrc_search_multiple(of->best_step) * exp2(0.5 * to);
    return MERCER_OK;
}

/* ---- Scales by descent ------------------------------------------------------------------------------------------- */

/* The step of the bandwidth that is nearest to b, of centers (p, width) in float. */
static mercer_status nearest_step(mrc_tune_search *self, const mercer_kernel *kernel, const mercer_matrix *z, double b,
                                  int *step)
{
    double unit;
    MRC_TRY(mrc_search_unit(self, kernel, z, &unit));
    if (unit > 0) *step = (int)fmax(0, fmin(MRC_TUNE_STEPS - 1, round(log2(b / unit)) + 2));
    return MERCER_OK;
}

/* What a view of the best of the arm begins with. */
static mercer_status open_view(mrc_tune_search *self, mrc_round *round, int view, mrc_descent *out, mercer_matrix *z)
{
    const mrc_small_rows *rows = &self->views[view];
    *out = (mrc_descent){.context = self->context,
                         .kernel = &round->kernel,
                         .ridge = round->of->ridge,
                         .y = self->points.y,
                         .weights = self->points.weights,
                         .spans = rows->count - 1,
                         .seed = self->task->seed};
    for (int f = 0; f < out->spans; f++) out->rows[f] = rows->folds[f];
    round->kernel.bandwidth = mrc_search_multiple(round->of->best_step) * round->units[view];
    return mrc_round_map(self, round, view, &out->x, z);
}

/* Scales by descent, from the points and the bandwidth of the best of the arm on; the metric that they make, and the
   step of the bandwidth in it. */
static mercer_status compute_descent(mrc_tune_search *self, const mrc_round *round, int view, const mrc_descent *task,
                                     const mercer_matrix *z, mrc_metric *next, int *step)
{
    double *logs;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &logs, z->cols, sizeof *logs, "scales of features"));
    MRC_TRY(mrc_descend(task, logs));
    for (int64_t j = 0; j < z->rows; j++)
        for (int64_t k = 0; k < z->cols; k++) ((float *)mrc_row(z, j))[k] *= (float)exp(logs[k]);
    *step = round->of->best_step;
    MRC_TRY(nearest_step(self, task->kernel, z, task->kernel->bandwidth, step));
    return mrc_metric_scaled(next, self->context->backend, mrc_search_norm(task->kernel), &round->metrics[view], logs);
}

static mercer_status descend(mrc_tune_search *self, mrc_round *round, int view, int *step)
{
    mrc_arm *of = round->of;
    mrc_journal *journal = self->task->journal;
    MRC_OWNED(mrc_metric_free) mrc_metric next = {0};
    mercer_matrix z;
    mrc_descent task;
    bool found;
    MRC_TRY(mrc_search_tell(self));
    MRC_TRY(mrc_journal_recall_metric(journal, &next, step, &found));
    if (!found) {
        MRC_TRY(open_view(self, round, view, &task, &z));
        MRC_TRY(compute_descent(self, round, view, &task, &z, &next, step));
        MRC_TRY(mrc_journal_add_metric(journal, &next, *step));
    }
    mrc_metric_free(&of->now[view]);
    of->now[view] = next;
    next = (mrc_metric){0};
    return MERCER_OK;
}

/* Seconds of counted work; below 0: there are too few rows. */
static mercer_status count_work(mrc_tune_search *self, mrc_round *round, double *seconds)
{
    *seconds = 0;
    for (int v = 0; v < self->view_count && *seconds >= 0; v++) {
        mrc_descent task;
        mercer_matrix z;
        MRC_TRY(open_view(self, round, v, &task, &z));
        *seconds += mrc_descent_flops(&task) / self->task->rate;
        if (!mrc_descent_possible(&task)) *seconds = -1;
    }
    return MERCER_OK;
}

mercer_status mrc_round_descend(mrc_tune_search *self, mrc_arm *of)
{
    mrc_round round = {
        .of = of, .kernel = self->task->kernels[of->kernel], .preparation = of->preparation, .metrics = of->best};
    double seconds, sum = 0;
    bool better, zero;
    MRC_TRY(mrc_round_units(self, &round, &zero));
    if (zero) return MERCER_OK;
    MRC_TRY(count_work(self, &round, &seconds));
    if (seconds < 0) return MERCER_OK;
    self->left_out = self->left_out || self->result->seconds + seconds > self->task->budget;
    if (self->left_out) return MERCER_OK;
    self->result->seconds += seconds;
    for (int v = 0; v < self->view_count; v++) {
        int step;
        MRC_TRY(descend(self, &round, v, &step));
        sum += step;
    }
    of->step = (int)lround(sum / self->view_count);
    of->round = of->best_round + 1, of->ended = false;
    return mrc_round_do(self, of, true, &better);
}
