/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Classification metrics from scores f (c), with p = softmax((g + shift) / T), g the curved scores. With weights w and
 * their sum W:
 *
 *   log loss = sum w (-log p_y) / W          Brier score = sum w |p - e_y|^2 / W, halved for two classes
 *   AUC of class j = sum_{y_a = j, y_b != j} w_a w_b ([s_a > s_b] + [s_a = s_b] / 2) / (W_j (W - W_j))
 *
 * For AUC rows are ranked by s = log(p_j / (1 - p_j)), because p itself is rounded and has ties near 1. One sort and
 * one pass give the sum over all pairs: each row of the class adds the weight of the other classes' rows with lower
 * scores, and half the weight of the other classes' rows with the same score.
 *
 * Cost: O(c) per row, and c sorts of the saved rows.
 */
#include "metrics/metrics.h"

#include "core/memory.h"
#include "core/numbers/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rows ------------------------------------------------------------------------------------------------------ */

/* Computes margins[j] = log(p_j / (1 - p_j)) = f_j / T - log sum_{k != j} exp(f_k / T). For the likeliest class the sum
   over the other classes is computed separately, because 1 - p loses digits. log_sum: log sum exp((f - f_best) / T).
   All scores are used as differences from the largest score: f / T may overflow, and infinity minus infinity is NaN,
   which cannot be ranked. */
static void find_margins(const mercer_evaluation *self, const double *f, const double *p, double log_sum, int64_t best,
                         double *margins)
{
    double t = self->options.temperature, second = -(double)INFINITY, rest = 0;
    int64_t c = self->outputs;
    for (int64_t j = 0; j < c; j++)
        if (j != best && f[j] > second) second = f[j];
    for (int64_t j = 0; j < c; j++)
        if (j != best) rest += exp((f[j] - second) / t);
    for (int64_t j = 0; j < c; j++) margins[j] = (f[j] - f[best]) / t - (log_sum + log1p(-p[j]));
    margins[best] = c > 1 ? (f[best] - second) / t - log(rest) : 0;
    if (c == 2) margins[0] = (f[0] - f[1]) / t, margins[1] = -margins[0];
}

/* Updates coverage and size of the class sets. */
static void add_interval(mercer_evaluation *self, const double *p, int32_t label, double weight)
{
    if (!self->options.radius) return;
    double threshold = self->options.radius[0];
    self->covered[label] += mrc_softmax_ahead(p, self->outputs, label) <= threshold ? weight : 0;
    self->sizes[label] += weight * (double)mrc_softmax_set(p, self->outputs, threshold, self->members);
}

/* Two classes are determined for a row. `best`, the largest score, is the predicted class and counts for accuracy and
   the confusion matrix. `likeliest` has the largest probability; class shifts can make the two differ. */
void mrc_class_row(mercer_evaluation *self, const double *f, int32_t label, double weight, double *margins)
{
    int64_t c = self->outputs, best = 0, likeliest = 0;
    /* p shares the scratch space of y, which classes do not need */
    double *p = self->row + c, *g = self->shifted, error = 0, brier = 0;
    const double *shift = self->options.class_shift;
    memcpy(g, f, (size_t)c * sizeof *g);
    mrc_softmax_curve(g, c, self->options.curvature);
    for (int64_t j = 0; j < c && shift; j++) g[j] += shift[j];
    double log_sum = mrc_softmax(p, g, c, self->options.temperature);
    for (int64_t j = 0; j < c; j++) {
        double truth = j == label ? 1 : 0;
        error += (f[j] - truth) * (f[j] - truth);
        brier += (p[j] - truth) * (p[j] - truth);
        if (f[j] > f[best]) best = j;
        if (g[j] > g[likeliest]) likeliest = j;
    }
    find_margins(self, g, p, log_sum, likeliest, margins);
    if (!(weight > 0)) return;
    self->squared_error += weight * error;
    self->log_loss += weight * (log_sum - (g[label] - g[likeliest]) / self->options.temperature);
    self->brier += weight * (c == 2 ? brier / 2 : brier);
    self->confusion[label * c + best] += weight;
    double sure = p[likeliest], place = sure * MRC_CALIBRATION_BINS; /* may be beyond the last bin (p = 1), or NaN */
    mrc_confidence_bin *bin = &self->bins[place < MRC_CALIBRATION_BINS ? (int64_t)place : MRC_CALIBRATION_BINS - 1];
    bin->weight += weight;
    bin->confidence += weight * sure;
    bin->right += likeliest == label ? weight : 0;
    add_interval(self, p, label, weight);
}

/* ---- AUC ------------------------------------------------------------------------------------------------------- */

typedef struct ranked {
    /* own, other: weight of the row if it is of the class, or of another class; otherwise 0 */
    double score, own, other;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *left = a, *right = b;
    return (left->score > right->score) - (left->score < right->score);
}

/* Sorts the saved rows by their score for class j, ascending. The caller frees *out. */
static mercer_status rank_rows(const mercer_evaluation *self, int64_t j, ranked **out)
{
    MRC_TRY(mrc_alloc(self->context, out, self->saved, sizeof **out, "ranks"));
    for (int64_t i = 0; i < self->saved; i++) {
        double w = self->saved_weights[i];
        bool own = self->saved_labels[i] == j;
        (*out)[i] = (ranked){self->scores[i * self->outputs + j], own ? w : 0, own ? 0 : w};
    }
    qsort(*out, (size_t)self->saved, sizeof **out, compare_ranked);
    return MERCER_OK;
}

/* Computes the AUC of class j. NaN if the class or all other classes together have no weight, or if a score is NaN,
   which cannot be ranked. */
static mercer_status auc_of(const mercer_evaluation *self, int64_t j, double *out)
{
    ranked *list;
    double below = 0, pairs = 0, all = 0;
    bool ranked_all = true;
    MRC_TRY(rank_rows(self, j, &list));
    for (int64_t i = 0, next; i < self->saved; i = next) {
        double own = list[i].own, other = list[i].other;
        ranked_all = ranked_all && !isnan(list[i].score);
        /* Start at i + 1, because a NaN does not equal itself, and a group of ties must not be empty. */
        for (next = i + 1; next < self->saved && list[next].score == list[i].score; next++)
            own += list[next].own, other += list[next].other;
        pairs += own * (below + other / 2);
        below += other, all += own;
    }
    mrc_free(self->context, list);
    *out = ranked_all && below > 0 && all > 0 ? pairs / (below * all) : (double)NAN;
    return MERCER_OK;
}

/* Computes the AUC of the second of two classes, or with more classes the mean over all classes that have an AUC. */
static mercer_status mean_auc(const mercer_evaluation *self, double *out)
{
    double sum = 0, one;
    int64_t count = 0;
    if (self->outputs == 2) return auc_of(self, 1, out);
    for (int64_t j = 0; j < self->outputs; j++) {
        MRC_TRY(auc_of(self, j, &one));
        if (isfinite(one)) sum += one, count++;
    }
    *out = count > 0 ? sum / (double)count : (double)NAN;
    return MERCER_OK;
}

/* Writes the points of the ROC curve from (0, 0) to (1, 1): one per threshold, or `capacity` evenly spaced points. */
static mercer_status roc_curve(const mercer_evaluation *self, int64_t j, double *x, double *y, int64_t capacity,
                               int64_t *count)
{
    ranked *list;
    double own = 0, other = 0, a = 0, b = 0;
    *count = 0;
    MRC_TRY(rank_rows(self, j, &list));
    for (int64_t i = 0; i < self->saved; i++) own += list[i].own, other += list[i].other;
    int64_t step = capacity > 2 ? (self->saved + capacity - 3) / (capacity - 2) : self->saved, since = step;
    for (int64_t i = self->saved - 1; i >= -1 && own > 0 && other > 0 && *count < capacity; i--) {
        bool whole = i < 0 || i == self->saved - 1 || list[i].score != list[i + 1].score;
        if (i < 0 || (whole && since >= step)) {
            x[*count] = b / other, y[*count] = a / own;
            (*count)++;
            since = 0;
        }
        if (i >= 0) a += list[i].own, b += list[i].other, since++;
    }
    mrc_free(self->context, list);
    return MERCER_OK;
}

/* ---- Metrics --------------------------------------------------------------------------------------------------- */

/* Computes the weights of row j (*own) and column j (*given) of the confusion matrix. */
static void margins_of(const mercer_evaluation *self, int64_t j, double *own, double *given)
{
    *own = *given = 0;
    for (int64_t k = 0; k < self->outputs; k++) {
        *own += self->confusion[j * self->outputs + k];
        *given += self->confusion[k * self->outputs + j];
    }
}

/* Returns F1 of class j, 2 TP / (actual + predicted); NaN for a class that neither occurs nor is predicted. */
static double f1_of(const mercer_evaluation *self, int64_t j)
{
    double own, given, hits = self->confusion[j * self->outputs + j];
    margins_of(self, j, &own, &given);
    return own + given > 0 ? 2 * hits / (own + given) : (double)NAN;
}

mercer_status mrc_class_metrics(const mercer_evaluation *self, mercer_metrics *out)
{
    double right = 0, covered = 0, sizes = 0, f1 = 0, off = 0;
    int64_t occur = 0;
    for (int64_t j = 0; j < self->outputs; j++) {
        double one = f1_of(self, j);
        if (isfinite(one)) f1 += one, occur++;
        right += self->confusion[j * self->outputs + j];
        covered += self->covered[j], sizes += self->sizes[j];
    }
    for (int k = 0; k < MRC_CALIBRATION_BINS; k++) off += fabs(self->bins[k].right - self->bins[k].confidence);
    MRC_TRY(mean_auc(self, &out->auc));
    out->mse = self->squared_error / (self->weight * (double)self->outputs);
    out->accuracy = right / self->weight;
    out->log_loss = self->log_loss / self->weight;
    out->brier = self->brier / self->weight;
    out->f1 = occur > 0 ? f1 / (double)occur : (double)NAN;
    out->calibration_error = off / self->weight;
    out->temperature = self->options.temperature, out->curvature = self->options.curvature;
    if (self->options.radius) out->coverage = covered / self->weight, out->interval_size = sizes / self->weight;
    return MERCER_OK;
}

mercer_status mrc_class_each(const mercer_evaluation *self, int64_t index, mercer_output_metrics *out)
{
    double own, given, hits = self->confusion[index * self->outputs + index];
    margins_of(self, index, &own, &given);
    MRC_TRY(auc_of(self, index, &out->auc));
    out->weight = own;
    out->precision = given > 0 ? hits / given : (double)NAN;
    out->recall = own > 0 ? hits / own : (double)NAN;
    out->f1 = f1_of(self, index);
    if (!self->options.radius) return MERCER_OK;
    out->coverage = own > 0 ? self->covered[index] / own : (double)NAN;
    out->interval_size = own > 0 ? self->sizes[index] / own : (double)NAN;
    return MERCER_OK;
}

mercer_status mrc_class_curve(const mercer_evaluation *self, const char *name, int64_t index, double *x, double *y,
                              int64_t capacity, int64_t *count)
{
    if (strcmp(name, "roc") == 0) return roc_curve(self, index, x, y, capacity, count);
    if (strcmp(name, "calibration") != 0)
        return mrc_fail(self->context, MERCER_ERROR_ARGUMENT,
                        "name: classification has no curve '%s'; valid: roc, calibration", name);
    *count = 0;
    for (int k = 0; k < MRC_CALIBRATION_BINS && *count < capacity; k++) {
        const mrc_confidence_bin *bin = &self->bins[k];
        if (!(bin->weight > 0)) continue;
        x[*count] = bin->confidence / bin->weight;
        y[*count] = bin->right / bin->weight;
        (*count)++;
    }
    return MERCER_OK;
}
