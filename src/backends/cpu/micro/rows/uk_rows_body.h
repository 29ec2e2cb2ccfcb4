/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/rows: body of the micro-kernels for products of stored rows with few columns, included once by
 * each file after it has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h          UK_LOAD_HALF(address)   load a vector of halves
 *   UK_DOTS, UK_SUMS     the functions                      UK_GROUP       maximum outputs at a time
 *   UK_TWO               1: two rows share their weights    UK_STRIP       columns per strip, at most 32
 *   UK_AHEAD, UK_AHEAD_COLUMNS   distance of prefetches: rows for sums, columns for dots
 *
 *   dots   sums_rj[l] += sum over k = l (mod 16) of row_r[k] v_j[k]        16 chains of FMAs per row and output
 *   sums   out_j[k]    = sum_i rows_i[k] g_ij                              one chain over the rows
 *
 * The chains do not depend on the vector length or on the grouping of outputs and columns, so results are bitwise
 * identical. Every element of a row is loaded (and converted from half precision) once for all outputs of a group.
 */
#include "backends/cpu/micro/uk_vectors.h"

#define UK_PARTS (16 / UK_LANES)       /* number of vectors for 16 floats */
#define UK_WIDE  (UK_STRIP / UK_LANES) /* number of vectors for a strip */

/* Load stored values as floats. */
static inline UK_ALWAYS UK_VECTOR load_stored(bool half, const void *row, int64_t k)
{
    return half ? UK_LOAD_HALF((const uint16_t *)row + k) : UK_LOAD((const float *)row + k);
}

/* Add to the dots of `rows` (1 or 2) rows for n outputs, with rows * n * UK_PARTS sums in registers. */
static inline UK_ALWAYS void dots_of(bool half, int rows, int n, int64_t count, const void *const *from, const float *v,
                                     float *sums, int64_t stride)
{
    UK_VECTOR sum[2][UK_GROUP][UK_PARTS];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
        for (int j = 0; j < n; j++)
#pragma GCC unroll 16
            for (int q = 0; q < UK_PARTS; q++) sum[r][j][q] = UK_LOAD(sums + r * stride + 16 * j + q * UK_LANES);
    for (int64_t k = 0; k < count; k += 16, v += 16 * n) {
        UK_VECTOR row[2][UK_PARTS];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
            for (int q = 0; q < UK_PARTS; q++) row[r][q] = load_stored(half, from[r], k + q * UK_LANES);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) /* prefetch the part of the same rows that the next call reads */
            __builtin_prefetch((const char *)from[r] + (k + UK_AHEAD_COLUMNS) * (half ? 2 : 4), 0, 2);
#pragma GCC unroll 16
        for (int j = 0; j < n; j++)
#pragma GCC unroll 16
            for (int q = 0; q < UK_PARTS; q++) {
                UK_VECTOR weight = UK_LOAD(v + 16 * j + q * UK_LANES);
#pragma GCC unroll 2
                for (int r = 0; r < rows; r++) sum[r][j][q] = UK_FMA(row[r][q], weight, sum[r][j][q]);
            }
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
        for (int j = 0; j < n; j++)
#pragma GCC unroll 16
            for (int q = 0; q < UK_PARTS; q++) UK_STORE(sums + r * stride + 16 * j + q * UK_LANES, sum[r][j][q]);
}

/* Two rows at a time share the loads of their weights, if the instruction set has enough registers. */
static inline UK_ALWAYS void dots_group(bool half, int n, int64_t rows, int64_t count, const void *const *from,
                                        const float *v, float *sums, int64_t stride)
{
    int64_t i = 0;
    for (; UK_TWO && i + 2 <= rows; i += 2) dots_of(half, 2, n, count, from + i, v, sums + i * stride, stride);
    for (; i < rows; i++) dots_of(half, 1, n, count, from + i, v, sums + i * stride, stride);
}

/* Compute the sums over the rows for n outputs and one strip of columns, with n * UK_WIDE sums in registers. The
   prefetch addresses the same columns of a later row, because the rows may be far apart. */
static inline UK_ALWAYS void sums_of(bool half, int n, int64_t rows, const void *const *from, int64_t first,
                                     const float *g, float *out)
{
    UK_VECTOR sum[UK_GROUP][UK_WIDE];
#pragma GCC unroll 16
    for (int j = 0; j < n; j++)
#pragma GCC unroll 32
        for (int q = 0; q < UK_WIDE; q++) sum[j][q] = UK_ZERO();
    for (int64_t i = 0; i < rows; i++, g += n) {
        UK_VECTOR row[UK_WIDE];
        __builtin_prefetch((const char *)from[i + UK_AHEAD < rows ? i + UK_AHEAD : i] + first * (half ? 2 : 4));
#pragma GCC unroll 32
        for (int q = 0; q < UK_WIDE; q++) row[q] = load_stored(half, from[i], first + q * UK_LANES);
#pragma GCC unroll 16
        for (int j = 0; j < n; j++) {
            UK_VECTOR factor = UK_FILL(g[j]);
#pragma GCC unroll 32
            for (int q = 0; q < UK_WIDE; q++) sum[j][q] = UK_FMA(row[q], factor, sum[j][q]);
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < n; j++)
#pragma GCC unroll 32
        for (int q = 0; q < UK_WIDE; q++) UK_STORE(out + j * UK_STRIP + q * UK_LANES, sum[j][q]);
}

/* Each number of outputs has its own code with constant bounds, so that the sums stay in registers. */
#define UK_EVERY_GROUP(GROUP)  \
    switch (n) {               \
        GROUP(1);              \
        GROUP(2);              \
        GROUP(3);              \
        GROUP(4);              \
        GROUP(5);              \
        GROUP(6);              \
        UK_LARGE_GROUPS(GROUP) \
        default: break;        \
    }
#if UK_GROUP > 6
#define UK_LARGE_GROUPS(GROUP) \
    GROUP(7);                  \
    GROUP(8);                  \
    GROUP(9);                  \
    GROUP(10);                 \
    GROUP(11);                 \
    GROUP(12);
#else
#define UK_LARGE_GROUPS(GROUP)
#endif

void UK_DOTS(bool half, int n, int64_t rows, int64_t count, const void *const *from, const float *v, float *sums,
             int64_t stride)
{
#define GROUP(width)                                                      \
    case width:                                                           \
        if (half)                                                         \
            dots_group(true, width, rows, count, from, v, sums, stride);  \
        else                                                              \
            dots_group(false, width, rows, count, from, v, sums, stride); \
        break
    UK_EVERY_GROUP(GROUP)
#undef GROUP
}

void UK_SUMS(bool half, int n, int64_t rows, const void *const *from, int64_t first, const float *g, float *out)
{
#define GROUP(width)                                          \
    case width:                                               \
        if (half)                                             \
            sums_of(true, width, rows, from, first, g, out);  \
        else                                                  \
            sums_of(false, width, rows, from, first, g, out); \
        break
    UK_EVERY_GROUP(GROUP)
#undef GROUP
}
