/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Converts scores f (c) of classes to probabilities, in double:
 *
 *   p_j = exp(g_j / T) / sum_k exp(g_k / T),    g = asinh(k f) / asinh(k), or f if the curvature k is 0
 *
 * Least squares makes f an estimate of the probability itself, so the logarithm of f is the natural logit: g is linear
 * near 0 and approaches a logarithm from |f| = 1 / k on. g increases strictly with f, so the curvature changes neither
 * the likeliest class nor, with two classes, the ranking of rows.
 *
 * Classes are ranked by descending probability, ties by ascending index. The probability ahead of class j is the sum
 * over all classes that rank before it: 0 for the likeliest. The set of a threshold t contains the classes whose
 * probability ahead is at most t. It is the smallest set of likeliest classes whose total probability exceeds t.
 */
#ifndef MRC_CORE_NUMBERS_SOFTMAX_H
#define MRC_CORE_NUMBERS_SOFTMAX_H

#include <stdint.h>

/* T of models without calibration. With two classes, scores of 1 and 0 then become probabilities of 0.98 and 0.02. */
#define MRC_TEMPERATURE_WITHOUT_DATA 0.25

/* Replaces scores f (c) by g. Curvature: 0, or at least MRC_CURVATURE_LEAST. */
void mrc_softmax_curve(double *f, int64_t c, double curvature);
/* Computes p (c) from f (c), which mrc_softmax_curve has replaced by g; p may be f. Returns log sum_k exp((f_k - max f)
   / T). The largest score is subtracted because f / T may overflow. */
double mrc_softmax(double *p, const double *f, int64_t c, double temperature);
/* Returns the probability ahead of class j. */
double mrc_softmax_ahead(const double *p, int64_t c, int64_t j);
/* Writes the class numbers in the set of a threshold to members (c), likeliest first. Returns their count. Cost: O(c)
   per member. */
int64_t mrc_softmax_set(const double *p, int64_t c, double threshold, int32_t *members);

#endif
