/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search. An arm is a kernel function with a preprocessing; its rounds have each a metric, and in it bandwidths
 * (multiples of the median distance) and ridges are judged together by small fits.
 *
 *   level 0   512 centers, 4,096 rows    all arms: round 0 without a metric, bandwidths 1/4 to 4, 8 .. 32 while the
 *                                        widest is the best; then a metric from the gradients of the best fit
 *                                        (features/agop.h) and the next round, which tries its last bandwidth and
 *                                        neighbours as long as they are better. From round 2 on the better half goes on
 *   level 1   1,024 and 10,240           the 4 best arms, from their best metric on: up to 2 further rounds; then, for
 *                                        the 2 best, scales by descent (tune/descent.h), if rows are held back: by
 *                                        other criteria the rows that are judged on would have been seen
 *   level 2   3,072 and 20,480           the 3 best as they are, all ridges: more centers serve rough kernels more than
 *                                        smooth ones, and small fits flatter the latter
 *
 * Last, the best with a quarter and half of its centers: what more of them bring (fit/tuned/tuned_size.c).
 *
 * The smallest error of all wins: of two fits alike, that of the larger level errs less, so levels need no correction.
 * Every fit is counted in flops before it is made, and none is that would go over the budget: what is tried depends on
 * sizes, options and the nominal speed of the machine, not on clocks.
 */
#include "tune/tune.h"

#include "core/matrix.h"
#include "features/agop.h"
#include "tune/descent.h"

#include <math.h>
#include <string.h>

enum {
    LEVELS = 3,
    MOST_ARMS = MRC_TUNE_KERNELS * MRC_TUNE_PREPARATIONS,
    STEPS = MRC_TUNE_STEPS, /* multiples: 1/4 .. 32 */
    FIRST_TRIED = 5,        /* of round 0: 1/4 .. 4, then wider ones */
    HALVING_ROUND = 2,
    GRADIENT_ROWS = 2048,
    MOST_FULL = 1024,    /* features of a full metric */
    LEAST_CENTERS = 256, /* of which a quarter tells something */
    MOST_TRIES = 4096
};
static const struct {
    int64_t rows, centers;
    int arms;
    int64_t rounds; /* further ones */
    bool climbs;    /* neighbours of a bandwidth are tried */
    int descents;   /* arms whose scales go down */
} levels[LEVELS] = {{4096, 512, MOST_ARMS, 0, true, 0}, {10240, 1024, 4, 2, true, 2}, {20480, 3072, 3, 0, false, 0}};
static const double all_ridges[MRC_TUNE_RIDGES] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3};

typedef struct arm {
    int kernel, preparation;
    mrc_metric now, best; /* of the next round, and of the best */
    int64_t round, best_round;
    int step, best_step; /* of the bandwidth */
    double ridge, error; /* of the best, at the last level that it came to */
    double last_error;   /* the same, of arms left behind too; infinity: there was none */
    int last_level;
    bool ended; /* no better, or nothing to learn from */
} arm;

typedef struct search {
    const mrc_tune_task *task;
    mercer_context *context;
    mrc_tune_result *result;
    mrc_tune_points points;
    mrc_split split;
    arm arms[MOST_ARMS];
    int arm_count;
    int level;
    int64_t rows_at_most, p;       /* of the level */
    int64_t winner_rows, winner_p; /* of the level that the best is of */
    mrc_small_rows rows;
    mrc_small_fits *fits;
    mrc_metric winner; /* of the best of all */
    bool out_of_budget;
    bool left_out; /* a descent that would have gone over it */
    int64_t total; /* tries expected, for progress */
} search;

/* A round of an arm. */
typedef struct round_of {
    arm *of;
    mercer_kernel kernel;
    mercer_matrix x, z;
    double unit;
    double errors[STEPS]; /* the best of all ridges; infinity: not tried */
    double ridges[STEPS];
    int best;
    mercer_matrix weights; /* (p, c) of the best, */
    bool fitted;           /* unless its errors are from the journal */
} round_of;

static double multiple_of(int step)
{
    return exp2(step - 2);
}

/* ---- One bandwidth ----------------------------------------------------------------------------------------------- */

/* Flops of a fit: those of double, and its kernel values. */
static double cost_of(const search *self, const round_of *round)
{
    double n = 0, effort = mrc_kernel_norm(&round->kernel) == 2 ? 1 : 3;
    enum { VALUE = 20 };
    for (int f = 0; f < self->rows.count; f++) n += (double)self->rows.folds[f].count;
    return mrc_small_fits_flops(self->fits) + n * (double)self->p * (effort * (double)round->x.cols + VALUE);
}

static mercer_status tell(search *self)
{
    const mrc_tune_task *task = self->task;
    const mrc_tune_result *result = self->result;
    int64_t done = result->count, total = done < self->total ? self->total : done + 1;
    if (!task->progress || !task->progress(task->progress_user, "tuning", done, total, result->error)) return MERCER_OK;
    if (task->keep) task->keep(task->keep_user, task, true);
    return mrc_fail(self->context, MERCER_ERROR_CALLBACK, "stopped while the model was searched for");
}

static void note(search *self, const round_of *round, int step, const double *errors, int best)
{
    mrc_tune_result *result = self->result;
    const arm *of = round->of;
    mercer_tune_try *at = &result->tries[result->count++];
    *at = (mercer_tune_try){.kernel = self->task->kernel_names[of->kernel],
                            .preprocess = self->task->preparations[of->preparation],
                            .round = of->round,
                            .rows = self->rows_at_most,
                            .centers = self->p,
                            .multiple = multiple_of(step),
                            .bandwidth = multiple_of(step) * round->unit,
                            .ridge = result->ridges[best],
                            .error = errors[best]};
    memcpy(at->errors, errors, (size_t)result->ridge_count * sizeof *errors);
}

/* The errors of a fit, from the journal if it has them: *fitted tells. */
static mercer_status fit(search *self, const round_of *round, double *errors, bool *fitted)
{
    const mrc_tune_task *task = self->task;
    *fitted = !mrc_journal_recall_fit(task->journal, errors);
    if (!*fitted) return MERCER_OK;
    MRC_TRY(mrc_small_fits_try(self->fits, &round->kernel, &round->x, &round->z, errors));
    MRC_TRY(mrc_journal_add_fit(task->journal, errors));
    if (task->keep) task->keep(task->keep_user, task, false);
    return MERCER_OK;
}

static mercer_status try_step(search *self, round_of *round, int step)
{
    double errors[MRC_RIDGES], flops = cost_of(self, round);
    mrc_tune_result *result = self->result;
    if (isfinite(round->errors[step]) || self->out_of_budget) return MERCER_OK;
    MRC_TRY(tell(self));
    if (result->seconds + flops / self->task->rate > self->task->budget || result->count == MOST_TRIES) {
        self->out_of_budget = true;
        return MERCER_OK;
    }
    result->seconds += flops / self->task->rate;
    round->kernel.bandwidth = multiple_of(step) * round->unit;
    bool fitted;
    MRC_TRY(fit(self, round, errors, &fitted));
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
static mercer_status climb(search *self, round_of *round)
{
    for (int from = -1; from != round->best && !self->out_of_budget;) {
        from = round->best;
        if (from < 0) return MERCER_OK;
        if (from + 1 < STEPS) MRC_TRY(try_step(self, round, from + 1));
        if (from > 0) MRC_TRY(try_step(self, round, from - 1));
    }
    return MERCER_OK;
}

static mercer_status try_bandwidths(search *self, round_of *round)
{
    const arm *of = round->of;
    bool first = self->level == 0 && of->round == 0;
    for (int i = 0; i < STEPS; i++) round->errors[i] = (double)INFINITY;
    for (int i = 0; first && i < FIRST_TRIED; i++) MRC_TRY(try_step(self, round, i));
    if (!first) MRC_TRY(try_step(self, round, of->step));
    return levels[self->level].climbs ? climb(self, round) : MERCER_OK;
}

static mercer_status copy_metric(search *self, mrc_metric *to, const mrc_metric *from)
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

static mrc_norm norm_of(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) == 1 ? MRC_NORM_1 : MRC_NORM_2;
}

/* The weights of the best, whose errors came from the journal. */
static mercer_status fit_again(search *self, round_of *round)
{
    double errors[MRC_RIDGES];
    round->kernel.bandwidth = multiple_of(round->best) * round->unit;
    MRC_TRY(mrc_small_fits_try(self->fits, &round->kernel, &round->x, &round->z, errors));
    return mrc_small_fits_weights(self->fits, round->ridges[round->best], &round->weights);
}

/* From gradients of the best fit; *zero: they are. */
static mercer_status compute_metric(search *self, round_of *round, mrc_metric *next, bool *zero)
{
    mrc_backend *backend = self->context->backend;
    int64_t width = round->x.cols, c = self->points.c, m = mrc_min(self->rows.folds[0].count, GRADIENT_ROWS);
    bool diagonal = norm_of(&round->kernel) == MRC_NORM_1 || self->points.d > MOST_FULL;
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
    round->kernel.bandwidth = multiple_of(round->best) * round->unit;
    MRC_TRY(backend->ops->column_mean(backend, &round->z, origin));
    MRC_TRY(backend->ops->copy(backend, &alpha, &round->weights));
    mrc_expansion sum = {.kernel = &round->kernel, .z = &round->z, .origin = origin};
    MRC_TRY(mrc_agop(backend, &sum, &x, &alpha, self->task->seed, &gradients));
    return mrc_metric_next(next, backend, norm_of(&round->kernel), &round->of->now, &gradients, zero);
}

/* The metric of the next round. */
static mercer_status learn_metric(search *self, round_of *round)
{
    arm *of = round->of;
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
static mercer_status take_over(search *self, const round_of *round)
{
    arm *of = round->of;
    mrc_tune_result *result = self->result;
    double error = round->errors[round->best];
    of->step = round->best;
    if (!(error < of->error)) return MERCER_OK;
    of->error = of->last_error = error, of->best_step = round->best, of->ridge = round->ridges[round->best];
    of->best_round = of->round, of->last_level = self->level;
    MRC_TRY(copy_metric(self, &of->best, &of->now));
    if (result->found && error >= result->error) return MERCER_OK;
    result->found = true;
    result->kernel = of->kernel, result->preparation = of->preparation, result->round = of->round;
    result->multiple = multiple_of(round->best), result->ridge = of->ridge, result->error = error;
    self->winner_rows = self->rows_at_most, self->winner_p = self->p;
    return copy_metric(self, &self->winner, &of->now);
}

/* *better: than the arm's rounds before, at this level. */
static mercer_status do_round(search *self, arm *of, bool last, bool *better)
{
    double *weights, before = of->error;
    round_of round = {.of = of, .kernel = self->task->kernels[of->kernel], .best = -1};
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, self->p * self->points.c, sizeof *weights, "weights"));
    round.weights = mrc_view(weights, self->p, self->points.c, MERCER_F64);
    MRC_TRY(mrc_tune_points_map(&self->points, of->preparation, &of->now, &self->rows, self->p, &round.x, &round.z));
    *better = false;
    mercer_status status = mercer_kernel_median_distance(self->context, &round.unit, &round.kernel, &round.z, 0);
    of->ended = status == MERCER_ERROR_DATA; /* more than half of all pairs coincide */
    if (of->ended) return MERCER_OK;
    MRC_TRY(status);
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

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

static int64_t fitted_rows(const search *self)
{
    int64_t sum = 0;
    for (int f = 0; f < self->split.fold_count; f++) sum += self->split.folds[f].count;
    return self->rows.held_out ? sum - self->split.folds[self->split.fold_count - 1].count : sum;
}

static int64_t centers_at(const search *self, int level, int64_t rows)
{
    const mercer_dataset *given = self->task->given_centers;
    int64_t p = mrc_min(levels[level].centers, mrc_max(1, self->task->centers));
    double room = (double)self->task->memory / 4 / (sizeof(double) * (MRC_FOLDS + 4));
    if (self->task->memory > 0) p = mrc_min(p, mrc_max(1, (int64_t)sqrt(room)));
    return mrc_min(p, given ? given->rows : rows);
}

/* Room for fits with p centers. */
static mercer_status open_fits(search *self, int64_t p)
{
    self->p = p;
    mrc_small_fits_free(self->fits);
    self->fits = NULL;
    return mrc_small_fits_create(&self->fits, self->context, &self->rows, p, self->task->criterion,
                                 self->result->ridges, self->result->ridge_count);
}

/* The rows of a level: of each fold that is fitted to, its share; *same: those of the level before. */
static mercer_status open_level(search *self, int level, bool *same)
{
    int64_t all = fitted_rows(self), wanted = mrc_min(levels[level].rows, all), sum = 0;
    int last = self->split.fold_count - (self->rows.held_out ? 1 : 0);
    for (int f = 0; f < last; f++) {
        mrc_span *fold = &self->rows.folds[f];
        *fold = self->split.folds[f];
        fold->count = mrc_max(1, (int64_t)((double)fold->count * (double)wanted / (double)all));
        sum += fold->count;
    }
    int64_t p = centers_at(self, level, sum);
    *same = level > 0 && sum == self->rows_at_most && p == self->p;
    if (*same) return MERCER_OK;
    self->level = level, self->rows_at_most = sum;
    return open_fits(self, p);
}

/* The arm with the `rank`-th smallest error, the first of equals. */
static arm *ranked(search *self, int rank)
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

static mercer_status first_level(search *self)
{
    int64_t rounds = self->task->rounds;
    for (int64_t round = 0; round <= rounds && !self->out_of_budget; round++) {
        for (int i = 0; i < self->arm_count && !self->out_of_budget; i++) {
            bool better;
            if (!self->arms[i].ended) MRC_TRY(do_round(self, &self->arms[i], round == rounds, &better));
        }
        for (int i = self->arm_count / 2; i < self->arm_count && round >= HALVING_ROUND - 1; i++)
            ranked(self, i)->ended = true;
    }
    return MERCER_OK;
}

/* From the best metric on, as long as a round is better. */
static mercer_status go_on(search *self, arm *of)
{
    int64_t most = mrc_min(levels[self->level].rounds, self->task->rounds);
    MRC_TRY(copy_metric(self, &of->now, &of->best));
    of->error = (double)INFINITY, of->ended = false, of->step = of->best_step, of->round = of->best_round;
    bool better = true;
    for (int64_t i = 0; i <= most && better && !of->ended && !self->out_of_budget; i++)
        MRC_TRY(do_round(self, of, i == most, &better));
    return MERCER_OK;
}

/* The step of the bandwidth that is nearest to b, of centers (p, width) in float. */
static mercer_status nearest_step(search *self, const mercer_kernel *kernel, const mercer_matrix *z, double b,
                                  int *step)
{
    double unit;
    mercer_status status = mercer_kernel_median_distance(self->context, &unit, kernel, z, 0);
    if (status == MERCER_ERROR_DATA) return MERCER_OK; /* they coincide: what it was */
    MRC_TRY(status);
    *step = (int)fmax(0, fmin(STEPS - 1, round(log2(b / unit)) + 2));
    return MERCER_OK;
}

/* Scales by descent, from the points and the bandwidth of the best of the arm on; the metric that they make, and the
   step of the bandwidth in it. */
static mercer_status compute_descent(search *self, const arm *of, const mrc_descent *task, const mercer_matrix *z,
                                     mrc_metric *next, int *step)
{
    double *logs;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &logs, z->cols, sizeof *logs, "scales of features"));
    MRC_TRY(mrc_descend(task, logs));
    for (int64_t j = 0; j < z->rows; j++)
        for (int64_t k = 0; k < z->cols; k++) ((float *)mrc_row(z, j))[k] *= (float)exp(logs[k]);
    *step = of->best_step;
    MRC_TRY(nearest_step(self, task->kernel, z, task->kernel->bandwidth, step));
    return mrc_metric_scaled(next, self->context->backend, norm_of(task->kernel), &of->best, logs);
}

static mercer_status descend(search *self, arm *of, const mrc_descent *task, const mercer_matrix *z)
{
    mrc_journal *journal = self->task->journal;
    MRC_OWNED(mrc_metric_free) mrc_metric next = {0};
    bool found;
    MRC_TRY(tell(self));
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
static mercer_status go_down(search *self, arm *of)
{
    mercer_kernel kernel = self->task->kernels[of->kernel];
    mercer_matrix x, z;
    double unit;
    bool better;
    MRC_TRY(mrc_tune_points_map(&self->points, of->preparation, &of->best, &self->rows, self->p, &x, &z));
    mercer_status status = mercer_kernel_median_distance(self->context, &unit, &kernel, &z, 0);
    if (status == MERCER_ERROR_DATA) return MERCER_OK;
    MRC_TRY(status);
    kernel.bandwidth = multiple_of(of->best_step) * unit;
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
    return do_round(self, of, true, &better);
}

static mercer_status further_level(search *self)
{
    arm *list[MOST_ARMS], *list_down[MOST_ARMS] = {NULL};
    int count = 0;
    for (int i = 0; i < self->arm_count && i < levels[self->level].arms; i++) list[count++] = ranked(self, i);
    for (int i = 0; i < count && !self->out_of_budget; i++)
        if (isfinite(list[i]->error)) MRC_TRY(go_on(self, list[i]));
    bool descends = self->rows.held_out && self->task->rounds > 0;
    for (int i = 0; i < levels[self->level].descents && descends; i++) list_down[i] = ranked(self, i);
    for (int i = 0; i < levels[self->level].descents && descends && !self->out_of_budget; i++)
        if (list_down[i] && isfinite(list_down[i]->error)) MRC_TRY(go_down(self, list_down[i]));
    for (int i = 0; i < self->arm_count; i++) { /* those left behind are out */
        bool in = false;
        for (int k = 0; k < count; k++) in = in || list[k] == &self->arms[i];
        if (!in) self->arms[i].error = (double)INFINITY;
    }
    return MERCER_OK;
}

/* ---- What more centers bring ------------------------------------------------------------------------------------- */

/* The best, with p centers: the error of the best of all ridges. */
static mercer_status try_size(search *self, int64_t p, double *error)
{
    mrc_tune_result *result = self->result;
    round_of round = {.kernel = self->task->kernels[result->kernel]};
    double errors[MRC_RIDGES];
    MRC_TRY(open_fits(self, p));
    MRC_TRY(mrc_tune_points_map(&self->points, result->preparation, &self->winner, &self->rows, p, &round.x, &round.z));
    double seconds = cost_of(self, &round) / self->task->rate;
    *error = (double)INFINITY;
    if (result->seconds + seconds > self->task->budget) return MERCER_OK;
    mercer_status status = mercer_kernel_median_distance(self->context, &round.unit, &round.kernel, &round.z, 0);
    if (status == MERCER_ERROR_DATA) return MERCER_OK;
    MRC_TRY(status);
    MRC_TRY(tell(self));
    result->seconds += seconds;
    round.kernel.bandwidth = result->multiple * round.unit;
    bool fitted;
    MRC_TRY(fit(self, &round, errors, &fitted));
    for (int r = 0; r < result->ridge_count; r++) *error = fmin(*error, errors[r]);
    return MERCER_OK;
}

static mercer_status try_sizes(search *self)
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

static void make_arms(search *self)
{
    const mrc_tune_task *task = self->task;
    for (int s = 0; s < task->preparation_count; s++)
        for (int k = 0; k < task->kernel_count; k++)
            self->arms[self->arm_count++] = (arm){.kernel = k,
                                                  .preparation = s,
                                                  .now = {.features = self->points.d, .width = self->points.d},
                                                  .error = (double)INFINITY,
                                                  .last_error = (double)INFINITY};
    self->total = self->arm_count * (FIRST_TRIED + 1 + 3 * task->rounds) + 60;
}

/* M = A A', or the weights of a diagonal one. */
static mercer_status write_metric(const search *self, const mrc_metric *metric, int kernel, mercer_matrix *out)
{
    mrc_backend *backend = self->context->backend;
    int64_t d = metric->features;
    mrc_norm norm = norm_of(&self->task->kernels[kernel]);
    if (!metric->map) return MERCER_OK;
    *out = mrc_view(NULL, metric->diagonal ? 1 : d, d, MERCER_F64);
    MRC_TRY(mrc_alloc(self->context, &out->data, out->rows * d, sizeof(double), "the metric"));
    for (int64_t k = 0; k < d && metric->diagonal; k++) mrc_store(out, 0, k, mrc_metric_weight(metric, norm, k));
    if (metric->diagonal) return MERCER_OK;
    mercer_matrix a = mrc_view(metric->map, d, metric->width, MERCER_F64);
    mrc_gemm job = {.transpose_b = true, .alpha = 1, .a = &a, .b = &a, .c = out};
    return backend->ops->gemm(backend, &job);
}

/* Whether `a` is to be preferred: it was judged by larger fits, or errs less. */
static bool goes_before(const arm *a, const arm *b)
{
    return a->last_level != b->last_level ? a->last_level > b->last_level : a->last_error < b->last_error;
}

/* The bests of the arms beside the one that won. */
static mercer_status write_next(const search *self)
{
    mrc_tune_result *result = self->result;
    bool taken[MOST_ARMS] = {false};
    for (int64_t wanted = mrc_min(self->task->next, MRC_TUNE_NEXT); wanted > 0; wanted--) {
        int best = -1;
        for (int i = 0; i < self->arm_count; i++) {
            const arm *of = &self->arms[i];
            bool won = of->kernel == result->kernel && of->preparation == result->preparation;
            if (won || taken[i] || !isfinite(of->last_error)) continue;
            if (best < 0 || goes_before(of, &self->arms[best])) best = i;
        }
        if (best < 0) break;
        const arm *of = &self->arms[best];
        mrc_tune_choice *choice = &result->next[result->next_count++];
        taken[best] = true;
        *choice = (mrc_tune_choice){.kernel = of->kernel,
                                    .preparation = of->preparation,
                                    .multiple = multiple_of(of->best_step),
                                    .ridge = of->ridge,
                                    .error = of->last_error,
                                    .round = of->best_round};
        MRC_TRY(write_metric(self, &of->best, of->kernel, &choice->metric));
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

static mercer_status run(search *self, mrc_scope *scope)
{
    const mrc_tune_task *task = self->task;
    mrc_tune_result *result = self->result;
    MRC_TRY(mrc_split_make(&self->split, task->data, task->criterion, most_rows(task), task->seed));
    self->rows = (mrc_small_rows){.count = self->split.fold_count, .held_out = task->criterion == MRC_HOLDOUT};
    memcpy(self->rows.folds, self->split.folds, sizeof self->rows.folds);
    self->points = (mrc_tune_points){.scope = scope, .context = self->context};
    MRC_TRY(mrc_tune_points_read(&self->points, task, &self->split, centers_at(self, LEVELS - 1, fitted_rows(self))));
    self->rows.x = self->points.mapped, self->rows.y = self->points.y, self->rows.weights = self->points.weights;
    make_arms(self);
    result->held = self->rows.held_out ? self->rows.folds[self->rows.count - 1].count : 0;
    for (int level = 0; level < LEVELS && !self->out_of_budget; level++) {
        bool same;
        MRC_TRY(open_level(self, level, &same));
        if (same) continue;
        result->rows = self->rows_at_most;
        MRC_TRY(level == 0 ? first_level(self) : further_level(self));
    }
    result->whole = !self->out_of_budget && !self->left_out;
    if (!self->out_of_budget) MRC_TRY(try_sizes(self));
    if (task->keep) task->keep(task->keep_user, task, true);
    if (!result->found) return MERCER_OK;
    MRC_TRY(write_metric(self, &self->winner, result->kernel, &result->metric));
    return write_next(self);
}

mercer_status mrc_tune(const mrc_tune_task *task, mrc_tune_result *out)
{
    search *self;
    *out = (mrc_tune_result){.context = task->context, .error = (double)INFINITY};
    out->ridge_count = task->ridge >= 0 ? 1 : MRC_TUNE_RIDGES;
    for (int r = 0; r < out->ridge_count; r++) out->ridges[r] = task->ridge >= 0 ? task->ridge : all_ridges[r];
    MRC_TRY(mrc_alloc(task->context, &out->tries, MOST_TRIES, sizeof *out->tries, "what was tried"));
    MRC_SCOPE(scope, task->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self, 1, sizeof *self, "the search"));
    self->task = task, self->context = task->context, self->result = out;
    mercer_status status = run(self, &scope);
    for (int i = 0; i < self->arm_count; i++) {
        mrc_metric_free(&self->arms[i].now);
        mrc_metric_free(&self->arms[i].best);
    }
    mrc_metric_free(&self->winner);
    mrc_small_fits_free(self->fits);
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
