/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/few: body of the product micro-kernels for few rows of X, included for float and for double by
 * each file after it has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h; one center in each lane
 *   UK_NAME, UK_NAME_L1  the functions                       UK_MOST        maximum rows of X at a time
 *   UK_TRANSPOSE(v)      transposes UK_LANES vectors in place
 *
 *   z_jk = row_jk - o_k;   dots_ij = sum_k z_jk x_ki;   norms_j = sum_k z_jk^2;   each one chain of FMAs over k
 *   sums_ij = sum_k |row_jk - x_ki|   (L1)           one chain of sums over k; neither origin nor norms
 *
 * Rows of Z are read in place, UK_LANES features of UK_LANES rows at a time, and transposed in registers. A center is
 * then a lane, and its chain runs over the features, as in all micro-kernels. Cost: 2 (width + 1) flops and about 4
 * shuffled elements per element of Z, which is read from memory once.
 */
#include "backends/cpu/micro/uk_vectors.h"

/* Add the term of one more feature to the chains. */
static inline UK_ALWAYS UK_VECTOR UK_TYPED(few_step)(bool l1, UK_VECTOR v, UK_VECTOR x, UK_VECTOR sum)
{
    return l1 ? UK_ADD(sum, UK_ABS(UK_SUB(v, x))) : UK_FMA(v, x, sum);
}

/* Add the last features, fewer than a vector, without reading beyond the ends of the inputs. */
static inline UK_ALWAYS void UK_TYPED(few_tail)(bool l1, int n, int64_t rest, const UK_REAL *const *rows,
                                                const UK_REAL *origin, int64_t width, const UK_REAL *x, UK_VECTOR *sum,
                                                UK_VECTOR *norm)
{
    for (int64_t k = 0; k < rest; k++, x += width) {
        UK_REAL column[UK_LANES];
        for (int r = 0; r < UK_LANES; r++) column[r] = l1 ? rows[r][k] : rows[r][k] - origin[k];
        UK_VECTOR v = UK_LOAD(column);
        if (!l1) *norm = UK_FMA(v, v, *norm);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) sum[i] = UK_TYPED(few_step)(l1, v, UK_FILL(x[i]), sum[i]);
    }
}

/* Process n rows of X. n is a constant in all callers, so that the n chains of a vector of centers stay in registers. x
   points to the first of these rows in the packed panel, which is `width` rows wide. */
static inline UK_ALWAYS void UK_TYPED(few_rows)(bool l1, int n, int64_t depth, const UK_REAL *const *rows,
                                                const UK_REAL *origin, int64_t width, const UK_REAL *x, UK_REAL *dots,
                                                int64_t stride, UK_REAL *norms)
{
    UK_VECTOR sum[UK_MOST], norm = UK_ZERO();
    const UK_REAL *at[UK_LANES];
    for (int r = 0; r < UK_LANES; r++) at[r] = rows[r];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) sum[i] = UK_ZERO();
    int64_t k = 0;
    for (; k + UK_LANES <= depth; k += UK_LANES) {
        UK_VECTOR v[UK_LANES], o = l1 ? UK_ZERO() : UK_LOAD(origin + k);
#pragma GCC unroll 16
        for (int r = 0; r < UK_LANES; r++) v[r] = l1 ? UK_LOAD(at[r] + k) : UK_SUB(UK_LOAD(at[r] + k), o);
        UK_TRANSPOSE(v);
#pragma GCC unroll 16
        for (int q = 0; q < UK_LANES; q++, x += width) {
            if (!l1) norm = UK_FMA(v[q], v[q], norm);
#pragma GCC unroll 8
            for (int i = 0; i < n; i++) sum[i] = UK_TYPED(few_step)(l1, v[q], UK_FILL(x[i]), sum[i]);
        }
    }
    for (int r = 0; r < UK_LANES; r++) at[r] += k;
    UK_TYPED(few_tail)(l1, n, depth - k, at, l1 ? NULL : origin + k, width, x, sum, &norm);
    if (!l1) UK_STORE(norms, norm);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) UK_STORE(dots + i * stride, sum[i]);
}

/* Lanes without a center read the last center again, because a read after the end of Z could fault. Up to UK_MOST rows
   of X are processed at a time; the passes after the first read the centers from cache. */
static inline UK_ALWAYS void UK_TYPED(few_all)(bool l1, int64_t depth, int64_t count, const UK_REAL *z, int64_t ld,
                                               const UK_REAL *origin, int64_t width, const UK_REAL *x, UK_REAL *dots,
                                               int64_t stride, UK_REAL *norms)
{
    const UK_REAL *rows[UK_LANES];
    for (int r = 0; r < UK_LANES; r++) rows[r] = z + (r < count ? r : count - 1) * ld;
    int64_t i = 0;
#define ROWS(n) \
    case n: UK_TYPED(few_rows)(l1, n, depth, rows, origin, width, x + i, dots + i * stride, stride, norms); break
    for (; i + UK_MOST <= width; i += UK_MOST)
        UK_TYPED(few_rows)(l1, UK_MOST, depth, rows, origin, width, x + i, dots + i * stride, stride, norms);
    switch (width - i) {
        ROWS(1);
        ROWS(2);
        ROWS(3);
#if UK_MOST > 4
        ROWS(4);
        ROWS(5);
        ROWS(6);
        ROWS(7);
#endif
        default: break;
    }
#undef ROWS
}

void UK_NAME(int64_t depth, int64_t count, const UK_REAL *z, int64_t ld, const UK_REAL *origin, int64_t width,
             const UK_REAL *x, UK_REAL *dots, int64_t stride, UK_REAL *norms)
{
    UK_TYPED(few_all)(false, depth, count, z, ld, origin, width, x, dots, stride, norms);
}

void UK_NAME_L1(int64_t depth, int64_t count, const UK_REAL *z, int64_t ld, int64_t width, const UK_REAL *x,
                UK_REAL *sums, int64_t stride)
{
    UK_TYPED(few_all)(true, depth, count, z, ld, NULL, width, x, sums, stride, NULL);
}

#undef UK_F32
#undef UK_NAME
#undef UK_NAME_L1
#undef UK_TRANSPOSE
