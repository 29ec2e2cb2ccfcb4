/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/features: sums over pairs of rows for one feature, used for derivatives with respect to feature
 * scales. This is the body, included for float and for double by each file after it has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h        UK_NAME      the function
 *
 *   sums[l] = sum over rows r and columns j = l (mod 16) of v_rj t(x_r, z_j),   t = |x - z| or (x - z)^2;
 *   if rest, t(0, z_j) is subtracted from t(x_r, z_j)
 *
 * A step is a difference, its absolute value or square, and an FMA, on 64 columns at a time. There are 64 chains for
 * every vector length, so that results are bitwise identical.
 */
#include "backends/cpu/micro/uk_vectors.h"

#undef UK_CHAINS
#undef UK_QUARTER
#define UK_CHAINS  (64 / UK_LANES) /* number of vectors for 64 sums */
#define UK_QUARTER (16 / UK_LANES)

static inline UK_ALWAYS UK_VECTOR UK_TYPED(term)(int norm, bool rest, UK_VECTOR x, UK_VECTOR z)
{
    UK_VECTOR t = UK_SUB(x, z);
    t = norm == 1 ? UK_ABS(t) : UK_MUL(t, t);
    return rest ? UK_SUB(t, norm == 1 ? UK_ABS(z) : UK_MUL(z, z)) : t;
}

static inline UK_ALWAYS void UK_TYPED(rows_of)(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which,
                                               const UK_REAL *v, int64_t ld, const UK_REAL *x, const UK_REAL *z,
                                               UK_REAL *sums)
{
    UK_VECTOR sum[UK_CHAINS];
#pragma GCC unroll 64
    for (int q = 0; q < UK_CHAINS; q++) sum[q] = UK_ZERO();
    for (int64_t r = 0; r < rows; r++) {
        const UK_REAL *weights = v + which[r] * ld;
        UK_VECTOR own = UK_FILL(x[r]);
        for (int64_t j = 0; j < columns; j += 64)
#pragma GCC unroll 64
            for (int q = 0; q < UK_CHAINS; q++)
                sum[q] = UK_FMA(UK_LOAD(weights + j + q * UK_LANES),
                                UK_TYPED(term)(norm, rest, own, UK_LOAD(z + j + q * UK_LANES)), sum[q]);
    }
#pragma GCC unroll 16
    for (int q = 0; q < UK_QUARTER; q++)
        UK_STORE(sums + q * UK_LANES,
                 UK_ADD(UK_ADD(sum[q], sum[q + UK_QUARTER]), UK_ADD(sum[q + 2 * UK_QUARTER], sum[q + 3 * UK_QUARTER])));
}

void UK_NAME(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which, const UK_REAL *v, int64_t ld,
             const UK_REAL *x, const UK_REAL *z, UK_REAL *sums)
{
    if (norm == 1 && rest)
        UK_TYPED(rows_of)(1, true, rows, columns, which, v, ld, x, z, sums);
    else if (norm == 1)
        UK_TYPED(rows_of)(1, false, rows, columns, which, v, ld, x, z, sums);
    else if (rest)
        UK_TYPED(rows_of)(2, true, rows, columns, which, v, ld, x, z, sums);
    else
        UK_TYPED(rows_of)(2, false, rows, columns, which, v, ld, x, z, sums);
}

#undef UK_F32
#undef UK_NAME
