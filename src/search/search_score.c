/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scores of candidates by small fits, the final ridge, and the error with more centers.
 *
 *   l* = the largest ridge l with E(l) <= (1 + s) min E,     E: held-out squared error at the largest size
 *
 * Among ridges that few held-out rows cannot distinguish, the largest is the safest: s = min(1 %, 4 / held-out rows).
 *
 * Cost: that of small_fits.h.
 */
#include "search/search_parts.h"

#include "core/matrix.h"

#include <math.h>
#include <string.h>

enum { RIDGES = 7, FOLD_RIDGES = 4 }; /* with folds smaller ridges are not needed, because descents fit as many rows */
#define MOST_SLACK 0.01
#define SLACK_ROWS 4.0

/* Rows and ridges of a candidate's small fits. */
typedef struct scorer {
    mrc_small_rows rows;
    double ridges[MRC_RIDGES];
    int count;
} scorer;

static mercer_status open_scorer(const mrc_searcher *self, mrc_scope *scope, const mrc_candidate *candidate,
                                 int64_t rows, scorer *out)
{
    const mrc_split *split = &self->split;
    int64_t k = mrc_search_points_width(self, candidate), at = 0;
    bool held_out = split->held_out;
    int64_t each = held_out ? rows : (rows + split->fold_count - 1) / split->fold_count;
    int64_t n = 0;
    for (int f = 0; f < split->fold_count; f++)
        n += mrc_min(split->folds[f].count, held_out && f > 0 ? rows / 2 : each);
    *out = (scorer){.rows = {.count = split->fold_count, .held_out = held_out}};
    MRC_TRY(mrc_scope_view(scope, &out->rows.x, n, k, MERCER_F32, "rows of small fits"));
    MRC_TRY(mrc_scope_view(scope, &out->rows.y, n, self->points.y.cols, MERCER_F64, "targets of small fits"));
    double *weights = NULL;
    if (self->points.weights) MRC_TRY(mrc_scope_alloc(scope, &weights, n, sizeof *weights, "weights of small fits"));
    for (int f = 0; f < split->fold_count; f++) {
        mrc_span from = split->folds[f];
        int64_t count = mrc_min(from.count, held_out && f > 0 ? rows / 2 : each);
        mercer_matrix to = mrc_rows(&out->rows.x, at, count);
        mrc_search_points_map(self, candidate, from.first, &to);
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

/* Scores all ridges: with p centers on the held-out rows, or by cross-validation with all rows as centers. */
static mercer_status score(const mrc_searcher *self, const scorer *with, const mercer_kernel *kernel, int64_t p,
                           double *errors)
{
    mercer_context *context = self->task->context;
    mercer_matrix z;
    MRC_SCOPE(scope, context);
    if (!with->rows.held_out)
        return mrc_cross_validate(context, &with->rows, kernel, with->ridges, with->count, errors);
    MRC_TRY(mrc_scope_view(&scope, &z, p, with->rows.x.cols, MERCER_F32, "centers of small fits"));
    mrc_small_gather_centers(&with->rows, &z);
    return mrc_small_fits(context, &with->rows, kernel, &z, with->ridges, with->count, errors);
}

static int64_t training_rows(const mrc_small_rows *rows)
{
    int64_t n = 0;
    for (int f = 0; f < rows->count - (rows->held_out ? 1 : 0); f++) n += rows->folds[f].count;
    return n;
}

/* Returns the number of centers of small fits. */
static int64_t size_for(const mrc_searcher *self, const scorer *with, int64_t wanted)
{
    int64_t n = training_rows(&with->rows);
    return self->split.held_out ? mrc_min(wanted, n) : n;
}

/* Returns the index of the largest ridge whose error is within the slack of the smallest error. Ridges are in
   descending order. */
static int pick_ridge(const double *errors, int count, int64_t held)
{
    double slack = fmin(MOST_SLACK, SLACK_ROWS / (double)mrc_max(1, held)), least = (double)INFINITY;
    for (int r = 0; r < count; r++) least = fmin(least, errors[r]);
    for (int r = 0; r < count; r++)
        if (errors[r] <= (1 + slack) * least) return r;
    return 0;
}

/* Returns the number of rows that are scored. */
static int64_t scored_rows(const mrc_small_rows *rows)
{
    return rows->held_out ? rows->folds[rows->count - 1].count : training_rows(rows);
}

/* Scores all ridges at MRC_SEARCH_SIZES numbers of centers, up to p, and chooses one for each; the last choice is
   the result. With folds there is one size only. */
static mercer_status score_sizes(const mrc_searcher *self, scorer *with, const mercer_kernel *kernel, int64_t p,
                                 mrc_search_result *out)
{
    double errors[MRC_RIDGES];
    for (int s = with->rows.held_out ? 0 : MRC_SEARCH_SIZES - 1; s < MRC_SEARCH_SIZES; s++) {
        int64_t size = p >> (MRC_SEARCH_SIZES - 1 - s);
        if (size < 1) continue;
        MRC_TRY(score(self, with, kernel, size, errors));
        int r = pick_ridge(errors, with->count, scored_rows(&with->rows));
        out->centers[s] = size;
        out->ridge = with->ridges[r], out->error = out->errors[s] = errors[r];
    }
    return MERCER_OK;
}

mercer_status mrc_search_score(const mrc_searcher *self, mrc_candidate *candidate)
{
    scorer with;
    double errors[MRC_RIDGES];
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, candidate, self->effort.score_rows, &with));
    with.count = self->task->ridge >= 0 || !self->split.held_out ? 1 : 3;
    for (int r = 0; r < with.count; r++)
        with.ridges[r] = candidate->ridge * (with.count == 1 ? 1 : pow(10, 1 - r) * 0.3);
    int64_t p = size_for(self, &with, self->effort.score_size / 2);
    MRC_TRY(score(self, &with, &candidate->kernel, p, errors));
    candidate->error = (double)INFINITY;
    for (int r = 0; r < with.count; r++) candidate->error = fmin(candidate->error, errors[r]);
    mrc_log(self->task->context, MERCER_LOG_INFO, "search: held-out error %.5g in norm %d", candidate->error,
            candidate->norm_1 ? 1 : 2);
    return MERCER_OK;
}

/* With a given ridge: scores a few other ridges at the largest size. */
static mercer_status score_other_ridges(const mrc_searcher *self, scorer *with, const mercer_kernel *kernel, int64_t p,
                                        mrc_search_result *out)
{
    static const double others[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
    double errors[MRC_RIDGES];
    with->count = sizeof others / sizeof *others;
    memcpy(with->ridges, others, sizeof others);
    MRC_TRY(score(self, with, kernel, p, errors));
    int r = pick_ridge(errors, with->count, scored_rows(&with->rows));
    out->better_ridge = others[r], out->better_error = errors[r];
    return MERCER_OK;
}

mercer_status mrc_search_finish(mrc_searcher *self, const mrc_candidate *best)
{
    mrc_search_result *result = self->result;
    int64_t p;
    scorer with;
    MRC_SCOPE(scope, self->task->context);
    MRC_TRY(open_scorer(self, &scope, best, self->effort.score_rows, &with));
    with.count = self->task->ridge >= 0 ? 1 : self->split.held_out ? RIDGES : FOLD_RIDGES;
    for (int r = 0; r < with.count; r++)
        with.ridges[r] =
            with.count == 1 ? best->ridge : fmin(1, best->ridge * pow(10, (self->split.held_out ? 1 : 0.5) - 0.5 * r));
    result->rows = training_rows(&with.rows), result->held = scored_rows(&with.rows);
    p = size_for(self, &with, self->effort.score_size);
    MRC_TRY(score_sizes(self, &with, &best->kernel, p, result));
    return with.count > 1 ? MERCER_OK : score_other_ridges(self, &with, &best->kernel, p, result);
}

/* ---- More centers ------------------------------------------------------------------------------------------------ */

/* Limit of rho: with rho = 1 errors would fall by the same amount with each doubling and become negative. */
#define MOST_RHO 0.9

/*
 * Errors e0, e1, e2 with p/4, p/2 and p centers. Each doubling is assumed to gain rho = (e1 - e2) / (e0 - e1) times as
 * much as the previous one, which holds for errors a + b P^-s:
 *
 *   e(P) = e2 - (e1 - e2) rho (1 - rho^k) / (1 - rho),  k = log2(P / p)
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
