/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scores f (c) of classes as probabilities, in double:
 *
 *   p_j = exp(f_j / T) / sum_k exp(f_k / T)
 *
 * Classes are ranked by probability, the first of equals first. What is ahead of class j is the probability of all
 * classes that rank before it: 0 for the likeliest. The set of a threshold t has the classes with at most t ahead of
 * them: it is the smallest set of likeliest classes whose probability exceeds t.
 */
#ifndef MRC_CORE_NUMBERS_SOFTMAX_H
#define MRC_CORE_NUMBERS_SOFTMAX_H

#include <stdint.h>

/* T where nothing was found: a score of 1 against 0 becomes 0.98, sure, not certain. */
#define MRC_TEMPERATURE_WITHOUT_DATA 0.25

/* p may be f. Returns log sum_k exp((f_k - max f) / T): without the largest score, f / T may overflow. */
double mrc_softmax(double *p, const double *f, int64_t c, double temperature);
/* The probability ahead of class j. */
double mrc_softmax_ahead(const double *p, int64_t c, int64_t j);
/* Numbers of the classes in the set of a threshold, the likeliest first, into members (c); returns how many. Costs
   O(c) for each of them. */
int64_t mrc_softmax_set(const double *p, int64_t c, double threshold, int32_t *members);

#endif
