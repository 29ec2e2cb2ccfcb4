/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of an arm: bandwidths and ridges in a metric, judged together; then the metric of the next one, by gradients
 * of the best fit (features/agop.h) or by descent (tune/descent.h).
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

/* ---- One bandwidth ----------------------------------------------------------------------------------------------- */

/* Flops of a fit: those of double, and its kernel values. */
double mrc_round_cost(const mrc_tune_search *self, const mrc_round *round)
{
    bool kept = round->pass && round->pass->counted;
    double n = 0, effort = kept ? 0 : mrc_feature_flops(&round->kernel);
    for (int f = 0; f < self->rows.count; f++) n += (double)self->rows.folds[f].count;
    return mrc_small_fits_flops(self->fits) + n * (double)self->p * (effort * (double)round->x.cols + MRC_VALUE_FLOPS);
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
                            .multiple = mrc_search_multiple(step),
                            .bandwidth = mrc_search_multiple(step) * round->unit,
                            .ridge = result->ridges[best],
                            .error = errors[best]};
    memcpy(at->errors, errors, (size_t)result->ridge_count * sizeof *errors);
}

/* The distances that a round shares with others: nobody has to have formed them yet. */
static mrc_pass *find_pass(mrc_tune_search *self, const mrc_round *round)
{
    enum { SHARE = 8 }; /* of the memory, for each norm */
    const mrc_arm *of = round->of;
    double norm = mrc_kernel_norm(&round->kernel);
    int64_t metric = of->now.map ? ++self->metrics : 0;
    bool squares = round->unit >= 1e-12 && round->unit <= 1e12; /* of distances are floats */
    if (!self->climbs || !squares) return NULL;
    if (!mrc_kept_sums_fit(self->context, &self->rows, self->p, self->task->memory / SHARE)) return NULL;
    mrc_pass *pass = &self->passes[norm == 1 ? 0 : 1];
    bool same = pass->norm == norm && pass->level == self->level && pass->preparation == of->preparation &&
                pass->metric == metric;
    if (same) return pass;
    pass->norm = norm, pass->level = self->level, pass->preparation = of->preparation, pass->metric = metric;
    pass->counted = pass->distances.there = false;
    return pass;
}

static mercer_status fit(mrc_tune_search *self, const mrc_round *round, double *errors)
{
    mrc_kept_sums *distances = round->pass ? &round->pass->distances : NULL;
    if (distances && !distances->there)
        MRC_TRY(mrc_kept_sums_make(distances, self->context, &round->kernel, &self->rows, &round->x, &round->z));
    return mrc_small_fits_try(self->fits, &round->kernel, &round->x, &round->z, distances, errors);
}

/* The errors of a fit, from the journal if it has them: *fitted tells. */
mercer_status mrc_round_fit(mrc_tune_search *self, const mrc_round *round, double *errors, bool *fitted)
{
    const mrc_tune_task *task = self->task;
    *fitted = !mrc_journal_recall_fit(task->journal, errors);
    if (!*fitted) return MERCER_OK;
    MRC_TRY(fit(self, round, errors));
    MRC_TRY(mrc_journal_add_fit(task->journal, errors));
    if (task->keep) task->keep(task->keep_user, task, false);
    return MERCER_OK;
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
    round->kernel.bandwidth = mrc_search_multiple(step) * round->unit;
    bool fitted;
    MRC_TRY(mrc_round_fit(self, round, errors, &fitted));
    int best = 0;
    for (int r = 1; r < result->ridge_count; r++)
        if (errors[r] < errors[best]) best = r;
    note(self, round, step, errors, best);
    round->errors[step] = errors[best], round->ridges[step] = result->ridges[best];
    if (!isfinite(errors[best]) || (round->best >= 0 && errors[best] >= round->errors[round->best])) return MERCER_OK;
    round->best = step, round->fitted = fitted;
    return fitted ? mrc_small_fits_weights(self->fits, result->ridges[best], &round->weights) : MERCER_OK;
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

static mercer_status try_bandwidths(mrc_tune_search *self, mrc_round *round)
{
    const mrc_arm *of = round->of;
    bool first = self->level == 0 && of->round == 0;
    for (int i = 0; i < STEPS; i++) round->errors[i] = (double)INFINITY;
    for (int i = 0; first && i < MRC_TUNE_FIRST; i++) MRC_TRY(try_step(self, round, i));
    if (!first) MRC_TRY(try_step(self, round, of->step));
    return self->climbs ? climb(self, round) : MERCER_OK;
}

mercer_status mrc_search_copy(mrc_tune_search *self, mrc_metric *to, const mrc_metric *from)
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

mrc_norm mrc_search_norm(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) == 1 ? MRC_NORM_1 : MRC_NORM_2;
}

/* The weights of the best, whose errors came from the journal. */
static mercer_status fit_again(mrc_tune_search *self, mrc_round *round)
{
    double errors[MRC_RIDGES];
    round->kernel.bandwidth = mrc_search_multiple(round->best) * round->unit;
    MRC_TRY(fit(self, round, errors));
    return mrc_small_fits_weights(self->fits, round->ridges[round->best], &round->weights);
}

/* From gradients of the best fit; *zero: they are. */
static mercer_status compute_metric(mrc_tune_search *self, mrc_round *round, mrc_metric *next, bool *zero)
{
    mrc_backend *backend = self->context->backend;
    int64_t width = round->x.cols, c = self->points.c, m = mrc_min(self->rows.folds[0].count, GRADIENT_ROWS);
    bool diagonal = mrc_search_norm(&round->kernel) == MRC_NORM_1 || self->points.d > MOST_FULL;
    double *G, *origin;
    float *weights;
    MRC_SCOPE(scope, self->context);
    if (!round->fitted) MRC_TRY(fit_again(self, round));
    MRC_TRY(mrc_scope_alloc(&scope, &G, diagonal ? 1 : width, width * (int64_t)sizeof *G, "gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &origin, width, sizeof *origin, "gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * c, sizeof *weights, "gradients"));
    mercer_matrix x = mrc_rows(&round->x, self->rows.folds[0].first, m);
    mercer_matrix gradients = mrc_view(G, diagonal ? 1 : width, width, MERCER_F64);
    mercer_matrix alpha = mrc_view(weights, self->p, c, MERCER_F32);
    round->kernel.bandwidth = mrc_search_multiple(round->best) * round->unit;
    MRC_TRY(backend->ops->column_mean(backend, &round->z, origin));
    MRC_TRY(backend->ops->copy(backend, &alpha, &round->weights));
    mrc_expansion sum = {.kernel = &round->kernel, .z = &round->z, .origin = origin};
    MRC_TRY(mrc_agop(backend, &sum, &x, &alpha, self->task->seed, &gradients));
    return mrc_metric_next(next, backend, mrc_search_norm(&round->kernel), &round->of->now, &gradients, zero);
}

/* The metric of the next round. */
static mercer_status learn_metric(mrc_tune_search *self, mrc_round *round)
{
    mrc_arm *of = round->of;
    mrc_journal *journal = self->task->journal;
    MRC_OWNED(mrc_metric_free) mrc_metric next = {0};
    const mrc_metric none = {0};
    bool found;
    MRC_TRY(mrc_journal_recall_metric(journal, &next, NULL, &found));
    if (found) {
        of->ended = !next.map;
    } else {
        MRC_TRY(compute_metric(self, round, &next, &of->ended));
        MRC_TRY(mrc_journal_add_metric(journal, of->ended ? &none : &next, 0));
    }
    if (of->ended) return MERCER_OK;
    mrc_metric_free(&of->now);
    of->now = next;
    next = (mrc_metric){0};
    return MERCER_OK;
}

/* What an arm came to. */
static mercer_status take_over(mrc_tune_search *self, const mrc_round *round)
{
    mrc_arm *of = round->of;
    mrc_tune_result *result = self->result;
    double error = round->errors[round->best];
    of->step = round->best;
    if (!(error < of->error)) return MERCER_OK;
    of->error = of->last_error = error, of->best_step = round->best, of->ridge = round->ridges[round->best];
    of->best_round = of->round, of->last_level = self->level;
    MRC_TRY(mrc_search_copy(self, &of->best, &of->now));
    if (result->found && self->winner_level == self->level && error >= result->error) return MERCER_OK;
    result->found = true;
    result->kernel = of->kernel, result->preparation = of->preparation, result->round = of->round;
    result->multiple = mrc_search_multiple(round->best), result->ridge = of->ridge, result->error = error;
    self->winner_rows = self->rows_at_most, self->winner_p = self->p, self->winner_level = self->level;
    return mrc_search_copy(self, &self->winner, &of->now);
}

/* *better: than the arm's rounds before, at this level. */
mercer_status mrc_round_do(mrc_tune_search *self, mrc_arm *of, bool last, bool *better)
{
    double *weights, before = of->error;
    mrc_round round = {.of = of, .kernel = self->task->kernels[of->kernel], .best = -1};
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * self->points.c, sizeof *weights, "weights"));
    round.weights = mrc_view(weights, self->p, self->points.c, MERCER_F64);
    MRC_TRY(mrc_tune_points_map(&self->points, of->preparation, &of->now, &self->rows, self->p, &round.x, &round.z));
    *better = false;
    MRC_TRY(mrc_search_unit(self, &round.kernel, &round.z, &round.unit));
    of->ended = round.unit == 0;
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

/* ---- Scales by descent ------------------------------------------------------------------------------------------- */

/* The step of the bandwidth that is nearest to b, of centers (p, width) in float. */
static mercer_status nearest_step(mrc_tune_search *self, const mercer_kernel *kernel, const mercer_matrix *z, double b,
                                  int *step)
{
    double unit;
    MRC_TRY(mrc_search_unit(self, kernel, z, &unit));
    if (unit > 0) *step = (int)fmax(0, fmin(STEPS - 1, round(log2(b / unit)) + 2));
    return MERCER_OK;
}

/* Scales by descent, from the points and the bandwidth of the best of the arm on; the metric that they make, and the
   step of the bandwidth in it. */
static mercer_status compute_descent(mrc_tune_search *self, const mrc_arm *of, const mrc_descent *task,
                                     const mercer_matrix *z, mrc_metric *next, int *step)
{
    double *logs;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &logs, z->cols, sizeof *logs, "scales of features"));
    MRC_TRY(mrc_descend(task, logs));
    for (int64_t j = 0; j < z->rows; j++)
        for (int64_t k = 0; k < z->cols; k++) ((float *)mrc_row(z, j))[k] *= (float)exp(logs[k]);
    *step = of->best_step;
    MRC_TRY(nearest_step(self, task->kernel, z, task->kernel->bandwidth, step));
    return mrc_metric_scaled(next, self->context->backend, mrc_search_norm(task->kernel), &of->best, logs);
}

static mercer_status descend(mrc_tune_search *self, mrc_arm *of, const mrc_descent *task, const mercer_matrix *z)
{
    mrc_journal *journal = self->task->journal;
    MRC_OWNED(mrc_metric_free) mrc_metric next = {0};
    bool found;
    MRC_TRY(mrc_search_tell(self));
    MRC_TRY(mrc_journal_recall_metric(journal, &next, &of->step, &found));
    if (!found) {
        MRC_TRY(compute_descent(self, of, task, z, &next, &of->step));
        MRC_TRY(mrc_journal_add_metric(journal, &next, of->step));
    }
    mrc_metric_free(&of->now);
    of->now = next;
    next = (mrc_metric){0};
    return MERCER_OK;
}

/* One more round of an arm, with its scales by descent. */
mercer_status mrc_round_descend(mrc_tune_search *self, mrc_arm *of)
{
    mercer_kernel kernel = self->task->kernels[of->kernel];
    mercer_matrix x, z;
    double unit;
    bool better;
    MRC_TRY(mrc_tune_points_map(&self->points, of->preparation, &of->best, &self->rows, self->p, &x, &z));
    MRC_TRY(mrc_search_unit(self, &kernel, &z, &unit));
    if (unit == 0) return MERCER_OK;
    kernel.bandwidth = mrc_search_multiple(of->best_step) * unit;
    const mrc_descent task = {.context = self->context,
                              .kernel = &kernel,
                              .ridge = of->ridge,
                              .x = x,
                              .y = self->points.y,
                              .weights = self->points.weights,
                              .rows = self->rows.folds[0],
                              .seed = self->task->seed};
    double seconds = mrc_descent_flops(&task) / self->task->host_rate;
    if (!mrc_descent_possible(&task)) return MERCER_OK;
    self->left_out = self->left_out || self->result->seconds + seconds > self->task->budget;
    if (self->left_out) return MERCER_OK;
    self->result->seconds += seconds;
    MRC_TRY(descend(self, of, &task, &z));
    of->round = of->best_round + 1, of->ended = false;
    return mrc_round_do(self, of, true, &better);
}
