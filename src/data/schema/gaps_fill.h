/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in the missing numbers of one row from its other numbers (gaps.h). Exported C files contain this header. */
#ifndef MRC_DATA_SCHEMA_GAPS_FILL_H
#define MRC_DATA_SCHEMA_GAPS_FILL_H

#include <math.h>
#include <stdint.h>

enum { MRC_GAPS_COLUMNS = 128, MRC_GAPS_FAR = 10 };

/* Fills in the missing numbers gaps[0 .. m - 1] of a row z (count), in deviations from the means. On input the missing
   numbers must be 0. They become their mean given the other numbers, clamped to MRC_GAPS_FAR deviations. This mean
   solves P_mm z_m = -P_mo z_o, with a Cholesky factor L of P_mm: v = L^-1 (-P_mo z_o), then z_m = L^-T v. Sums over all
   numbers are four partial sums, added in a fixed order. */
static inline void mrc_gaps_fill(int64_t count, const double *precision, const int64_t *gaps, int64_t m, double *z)
{
    double factor[MRC_GAPS_COLUMNS * (MRC_GAPS_COLUMNS + 1) / 2], v[MRC_GAPS_COLUMNS];
    for (int64_t a = 0; a < m; a++) {
        const double *row = precision + gaps[a] * count;
        double *to = factor + a * (a + 1) / 2, chains[4] = {0};
        int64_t whole = count - count % 4;
        for (int64_t k = 0; k < whole; k += 4)
            for (int64_t c = 0; c < 4; c++) chains[c] += row[k + c] * z[k + c];
        for (int64_t k = whole; k < count; k++) chains[k - whole] += row[k] * z[k];
        double sum = -(chains[0] + chains[1] + chains[2] + chains[3]);
        for (int64_t b = 0; b <= a; b++) {
            const double *other = factor + b * (b + 1) / 2;
            double rest = row[gaps[b]];
            for (int64_t k = 0; k < b; k++) rest -= to[k] * other[k];
            to[b] = b < a ? rest / other[b] : sqrt(rest);
        }
        for (int64_t b = 0; b < a; b++) sum -= to[b] * v[b];
        v[a] = sum / to[a];
    }
    for (int64_t a = m - 1; a >= 0; a--) {
        for (int64_t b = a + 1; b < m; b++) v[a] -= factor[b * (b + 1) / 2 + a] * v[b];
        v[a] /= factor[a * (a + 1) / 2 + a];
        z[gaps[a]] = fmin(fmax(v[a], -MRC_GAPS_FAR), MRC_GAPS_FAR);
    }
}

#endif
