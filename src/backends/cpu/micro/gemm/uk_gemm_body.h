/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/gemm: body of the product micro-kernels, included for float and for double by each file after it
 * has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h                  UK_MR, UK_NV    height, vectors per row
 *   UK_NAME, UK_NAME_L1, UK_NAME_GROUPS  the functions
 *
 *   C_ij = sum_k a[k * MR + i] b[k * NR + j],   i < MR,  j < NR = UK_NV * UK_LANES,   one chain of FMAs over k
 *   C_ij = sum_k |b[k * NR + j] - a[k * MR + i]|   (L1)                               one chain of sums over k
 *
 * Groups of features with at most one nonzero value per row (mrc_runs), x at feature k_x and z at feature k_z: the
 * chains omit the terms of zeros, which would not change any bit. For each group,
 *   C_ij += x z if k_x = k_z;   (L1) C_ij += |x| and |z|, in the order of k_x and k_z, if k_x != k_z;   else nothing
 *
 * Cost: 2 MR NR flops and (MR + NR) loads per k; C stays in MR * UK_NV registers.
 */
#include "backends/cpu/micro/uk_vectors.h"

#undef UK_NR
#define UK_NR (UK_NV * UK_LANES)

/* Add the terms of one more value of each row. */
static inline UK_ALWAYS void UK_TYPED(value_step)(bool l1, const UK_REAL *a, const UK_REAL *b,
                                                  UK_VECTOR sum[UK_MR][UK_NV])
{
    UK_VECTOR row[UK_NV];
#pragma GCC unroll 4
    for (int v = 0; v < UK_NV; v++) row[v] = UK_LOAD(b + v * UK_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++) {
        UK_VECTOR factor = UK_FILL(a[i]);
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++)
            sum[i][v] = l1 ? UK_ADD(sum[i][v], UK_ABS(UK_SUB(row[v], factor))) : UK_FMA(factor, row[v], sum[i][v]);
    }
}

/* Add the terms of one more group of each row: its nonzero value, and the index of its feature. */
static inline UK_ALWAYS void UK_TYPED(group_step)(bool l1, const UK_REAL *a, const UK_REAL *b, const UK_REAL *a_at,
                                                  const UK_REAL *b_at, UK_VECTOR sum[UK_MR][UK_NV])
{
    UK_VECTOR row[UK_NV], row_at[UK_NV];
#pragma GCC unroll 4
    for (int v = 0; v < UK_NV; v++) row[v] = UK_LOAD(b + v * UK_LANES), row_at[v] = UK_LOAD(b_at + v * UK_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++) {
        UK_VECTOR factor = UK_FILL(a[i]), at = UK_FILL(a_at[i]);
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) {
            if (!l1) {
                sum[i][v] = UK_FMA_IF(UK_SAME(row_at[v], at), row[v], factor, sum[i][v]);
                continue;
            }
            sum[i][v] = UK_ADD_IF(UK_LESS(row_at[v], at), sum[i][v], row[v]);
            sum[i][v] = UK_ADD_IF(UK_OTHER(row_at[v], at), sum[i][v], factor);
            sum[i][v] = UK_ADD_IF(UK_LESS(at, row_at[v]), sum[i][v], row[v]);
        }
    }
}

static inline UK_ALWAYS void UK_TYPED(clear)(UK_VECTOR sum[UK_MR][UK_NV])
{
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_ZERO();
}

static inline UK_ALWAYS void UK_TYPED(write)(UK_VECTOR sum[UK_MR][UK_NV], UK_REAL *c)
{
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(c + i * UK_NR + v * UK_LANES, sum[i][v]);
}

/* l1 is a constant in both callers, so the branch in the inner loop disappears. */
static inline UK_ALWAYS void UK_TYPED(multiply)(bool l1, int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_VECTOR sum[UK_MR][UK_NV];
    UK_TYPED(clear)(sum);
    for (int64_t k = 0; k < depth; k++, a += UK_MR, b += UK_NR) UK_TYPED(value_step)(l1, a, b, sum);
    UK_TYPED(write)(sum, c);
}

/* Go through the runs in the order of the features: in each run, ungrouped values, then groups. The indices of the
   groups follow all values of a panel, so the indices have their own pointers. */
static inline UK_ALWAYS void UK_TYPED(look_up)(bool l1, const mrc_runs *runs, const UK_REAL *a, const UK_REAL *b,
                                               UK_REAL *c)
{
    UK_VECTOR sum[UK_MR][UK_NV];
    const UK_REAL *a_at = a + runs->values * UK_MR, *b_at = b + runs->values * UK_NR;
    UK_TYPED(clear)(sum);
    for (int64_t run = 0; run < runs->count; run++) {
        for (int32_t k = 0; k < runs->lengths[2 * run]; k++, a += UK_MR, b += UK_NR)
            UK_TYPED(value_step)(l1, a, b, sum);
        for (int32_t k = 0; k < runs->lengths[2 * run + 1]; k++) {
            UK_TYPED(group_step)(l1, a, b, a_at, b_at, sum);
            a += UK_MR, b += UK_NR, a_at += UK_MR, b_at += UK_NR;
        }
    }
    UK_TYPED(write)(sum, c);
}

void UK_NAME(int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_TYPED(multiply)(false, depth, a, b, c);
}

void UK_NAME_L1(int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_TYPED(multiply)(true, depth, a, b, c);
}

void UK_NAME_GROUPS(bool l1, const mrc_runs *runs, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    if (l1)
        UK_TYPED(look_up)(true, runs, a, b, c);
    else
        UK_TYPED(look_up)(false, runs, a, b, c);
}

#undef UK_F32
#undef UK_NAME
#undef UK_NAME_L1
#undef UK_NAME_GROUPS
