/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scores of rows that were held back, for intervals (src/model/calibration.c): of values |f - y| for each output, of
 * classes the probability of all classes that rank before the right one.
 *
 * Kept is a table of at most 1,000 quantiles: entry k of m is the least score such that rows with a share of at least
 * (k + 1) / m of the weight have one that is at most as large. Without weights, and up to 1,000 rows, these are the
 * scores themselves. Cost: a sort for each list.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/softmax.h"
#include "core/numbers/weighted.h"
#include "data/equal_rows.h"
#include "model/model.h"

#include <math.h>

enum { MOST_KEPT = 1000 };

/* Of n scores, sorted here, m quantiles. */
static void fill_table(mrc_weighted *list, int64_t n, double *out, int64_t m)
{
    const double rounding = 1e-9; /* a share that is reached but for rounding is reached */
    double total = 0, sum = 0;
    int64_t k = 0;
    mrc_weighted_sort(list, n);
    for (int64_t i = 0; i < n; i++) total += list[i].weight;
    for (int64_t i = 0; i < n; i++) {
        sum += list[i].weight;
        for (; k < m && (sum * (double)m >= total * ((double)(k + 1) - rounding) || i == n - 1); k++)
            out[k] = list[i].value;
    }
}

/* Row i of what was predicted, for list j. p: room for a row. */
static double score_of(const mercer_fitting *self, const mercer_dataset *of, const mercer_matrix *predicted, int64_t i,
                       int64_t j, double *p)
{
    if (of->task != MERCER_TASK_CLASSIFICATION) return fabs(mrc_load(predicted, i, j) - mrc_load(&of->y, i, j));
    mrc_load_row_f64(predicted, i, p);
    mrc_model_shift_scores(self->model, p);
    mrc_softmax(p, p, predicted->cols, mercer_model_temperature(self->model, NULL));
    return mrc_softmax_ahead(p, predicted->cols, of->labels[i]);
}

/* *count: rows that count. *effective: the number of equally weighted, independent rows that they stand for; the rows
   of a group stand for one. */
static mercer_status count_rows(const mercer_dataset *of, const double *weights, int64_t *count, double *effective)
{
    double sum = 0, squares = 0;
    int64_t n = 0, units, *unit;
    MRC_SCOPE(scope, of->context);
    MRC_TRY(mrc_scope_alloc(&scope, &unit, of->rows, sizeof *unit, "groups of rows"));
    MRC_TRY(mrc_row_units(of, NULL, of->rows, unit, &units));
    for (int64_t i = 0; i < of->rows; i++) {
        double w = weights ? weights[i] : 1;
        sum += w, squares += w * w, n += w > 0;
    }
    *effective = squares > 0 ? fmin(sum * sum / squares, (double)units) : 0;
    *count = n;
    return MERCER_OK;
}

mercer_status mrc_fit_keep_scores(mercer_fitting *self, const mercer_dataset *of, const mercer_matrix *predicted)
{
    double effective, *row;
    const double *weights;
    int64_t n;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_fit_population_weights(self, of, &scope, &weights));
    MRC_TRY(count_rows(of, weights, &n, &effective));
    int64_t m = mrc_min(n, MOST_KEPT);
    int64_t lists = of->task == MERCER_TASK_CLASSIFICATION ? 1 : predicted->cols;
    mrc_weighted *list;
    mercer_matrix scores;
    if (n == 0) return MERCER_OK;
    MRC_TRY(mrc_scope_view(&scope, &scores, lists, m, MERCER_F64, "scores"));
    MRC_TRY(mrc_scope_alloc(&scope, &list, n, sizeof *list, "scores"));
    MRC_TRY(mrc_scope_alloc(&scope, &row, predicted->cols, sizeof *row, "a row"));
    for (int64_t j = 0; j < lists; j++) {
        int64_t at = 0;
        for (int64_t i = 0; i < of->rows; i++) {
            double w = weights ? weights[i] : 1;
            if (w > 0) list[at++] = (mrc_weighted){score_of(self, of, predicted, i, j, row), w};
        }
        fill_table(list, n, mrc_row(&scores, j), m);
    }
    return mercer_model_set_intervals(self->model, &scores, effective, of->task);
}
