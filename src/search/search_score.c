/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scores of candidates by small fits, the final ridge, and the prediction of the error with more centers.
 *
 *   l* = the largest ridge l with E(l) <= (1 + s) min E,     E: held-out squared error with the most centers
 *
 * Among ridges that few held-out rows cannot distinguish, the largest is the safest: s = min(1 %, 4 / held-out rows).
 *
 * Cost: see small_fits.h.
 */
#include "search/search_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

/* Number of ridges. With folds, fewer ridges are needed, because the descent learned its ridge on the same number of
   rows */
enum { RIDGES = 7, FOLD_RIDGES = 4 };
#define MOST_SLACK 0.01
#define SLACK_ROWS 4.0

/* Rows and ridges of a candidate's small fits. */
typedef struct scorer {
    mrc_small_rows rows;
    double ridges[MRC_RIDGES];
    int count;
} scorer;

/* Sets the rows to the candidate's points: up to score_rows training rows and half as many held-out rows, or score_rows
   rows in all folds together. */
static mercer_status open_scorer(const mrc_searcher *self, mrc_scope *scope, const mrc_candidate *candidate,
                                 scorer *out)
{
    const mrc_folds *from = &self->split.folds;
    const mrc_search_points *points = &self->points;
    int64_t most = self->effort.score_rows, each = from->held_out ? most : (most + from->count - 1) / from->count;
    *out = (scorer){.rows.folds = *from};
    int64_t *start = out->rows.folds.start;
    for (int f = 0; f < from->count; f++)
        start[f + 1] =
            start[f] + mrc_min(from->start[f + 1] - from->start[f], from->held_out && f > 0 ? most / 2 : each);
    int64_t n = start[from->count], width = candidate->space->norm == 1 ? points->width : points->features;
    double *weights = NULL;
    MRC_TRY(mrc_scope_view(scope, &out->rows.x, n, width, MERCER_F32, "rows of small fits"));
    MRC_TRY(mrc_scope_view(scope, &out->rows.y, n, points->y.cols, MERCER_F64, "targets of small fits"));
    if (points->weights) MRC_TRY(mrc_scope_alloc(scope, &weights, n, sizeof *weights, "weights of small fits"));
    for (int f = 0; f < from->count; f++) {
        int64_t first = from->start[f], count = start[f + 1] - start[f];
        mercer_matrix to = mrc_rows(&out->rows.x, start[f], count);
        MRC_TRY(mrc_search_points_map(self, candidate, first, &to));
        memcpy(mrc_row(&out->rows.y, start[f]), mrc_row(&points->y, first),
               (size_t)(count * points->y.cols) * sizeof(double));
        if (weights) memcpy(weights + start[f], points->weights + first, (size_t)count * sizeof(double));
    }
    out->rows.weights = weights;
    return MERCER_OK;
}

/* Returns the number of centers of small fits: at most the number of training rows; with folds, the number of rows. */
static int64_t size_for(const scorer *with, int64_t wanted)
{
    int64_t n = mrc_folds_training(&with->rows.folds);
    return with->rows.folds.held_out ? mrc_min(wanted, n) : n;
}

/* Returns the index of the largest ridge whose error is within the slack of the smallest error. Expects ridges in
   descending order. */
static int pick_ridge(const double *errors, int count, int64_t held)
{
    double slack = fmin(MOST_SLACK, SLACK_ROWS / (double)mrc_max(1, held)), least = (double)INFINITY;
    for (int r = 0; r < count; r++) least = fmin(least, errors[r]);
    for (int r = 0; r < count; r++)
        if (errors[r] <= (1 + slack) * least) return r;
    return 0;
}

/* Scores all ridges with p centers. Sets *ridge to the ridge that pick_ridge chooses, and *error to the error with this
   ridge. */
static mercer_status score_candidate(const mrc_searcher *self, const scorer *with, const mercer_kernel *kernel,
                                     int64_t p, double *ridge, double *error)
{
    double errors[MRC_RIDGES];
    MRC_TRY(mrc_small_fits(self->task->context, &with->rows, kernel, p, with->ridges, with->count, errors));
    int r = pick_ridge(errors, with->count, mrc_folds_scored(&with->rows.folds));
    *ridge = with->ridges[r];
    *error = errors[r];
    return MERCER_OK;
}

mercer_status mrc_search_score(const mrc_searcher *self, mrc_candidate *candidate)
{
    scorer with;
    double errors[MRC_RIDGES];
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, candidate, &with));
    with.count = self->task->ridge >= 0 || !self->split.folds.held_out ? 1 : 3;
    for (int r = 0; r < with.count; r++)
        with.ridges[r] = candidate->ridge * (with.count == 1 ? 1 : pow(10, 1 - r) * 0.3);
    int64_t p = size_for(&with, self->effort.score_size / 2);
    MRC_TRY(mrc_small_fits(self->task->context, &with.rows, &candidate->kernel, p, with.ridges, with.count, errors));
    candidate->error = (double)INFINITY;
    for (int r = 0; r < with.count; r++) candidate->error = fmin(candidate->error, errors[r]);
    mrc_log(self->task->context, MERCER_LOG_INFO, "search: held-out error %.5g in norm %d", candidate->error,
            candidate->space->norm);
    return MERCER_OK;
}

mercer_status mrc_search_finish(mrc_searcher *self, const mrc_candidate *best)
{
    static const double others[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
    mrc_search_result *result = self->result;
    mercer_search_report *report = &result->report;
    bool given = self->task->ridge >= 0, held_out = self->split.folds.held_out;
    scorer with;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, best, &with));
    const mrc_folds *folds = &with.rows.folds;
    with.count = given ? 1 : held_out ? RIDGES : FOLD_RIDGES;
    for (int r = 0; r < with.count; r++)
        with.ridges[r] = given ? best->ridge : fmin(1, best->ridge * pow(10, (held_out ? 1 : 0.5) - 0.5 * r));
    report->rows = mrc_folds_training(folds);
    report->held_out = mrc_folds_scored(folds);
    int64_t p = size_for(&with, self->effort.score_size);
    /* The choice at the largest size is the result. With folds there is one size only. */
    for (int s = held_out ? 0 : MRC_SEARCH_SIZES - 1; s < MRC_SEARCH_SIZES; s++) {
        int64_t size = p >> (MRC_SEARCH_SIZES - 1 - s);
        if (size < 1) continue;
        MRC_TRY(score_candidate(self, &with, &best->kernel, size, &report->ridge, &report->error));
        report->centers[s] = size;
        report->center_errors[s] = report->error;
    }
    if (!given) return MERCER_OK;
    with.count = sizeof others / sizeof *others;
    memcpy(with.ridges, others, sizeof others);
    return score_candidate(self, &with, &best->kernel, p, &result->better_ridge, &result->better_error);
}

/* ---- More centers ------------------------------------------------------------------------------------------------ */

/* Limit of rho: with rho = 1 errors would decrease by the same amount with each doubling and become negative. */
#define MOST_RHO 0.9

/*
 * Errors e0, e1, e2 with p/4, p/2 and p centers. Each doubling is assumed to gain rho = (e1 - e2) / (e0 - e1) times as
 * much as the previous doubling. This holds for errors a + b P^-s:
 *
 *   e(P) = e2 - (e1 - e2) rho (1 - rho^k) / (1 - rho),  k = log2(P / p)
 */
double mrc_search_error_with(const mercer_search_report *found, int64_t centers)
{
    const double *e = found->center_errors;
    double before = e[0] - e[1], last = e[1] - e[2], rho = before > 0 ? fmin(last / before, MOST_RHO) : MOST_RHO;
    if (found->centers[0] == 0) return (double)NAN;
    if (!(last > 0)) return e[2];
    double k = log2((double)centers / (double)found->centers[2]);
    return fmax(0, e[2] - last * rho * (1 - pow(rho, k)) / (1 - rho));
}

double mrc_search_gain(const mercer_search_report *found, int64_t centers, int64_t more)
{
    double error = mrc_search_error_with(found, centers);
    return error > 0 ? (error - mrc_search_error_with(found, more)) / error : (double)NAN;
}
