/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/gemm: body of the product micro-kernels, included for float and for double by each file after it
 * has defined
 *
 *   UK_BITS, UK_F32      the vectors: uk_vectors.h                  UK_MR, UK_NV    height, vectors in a row
 *   UK_NAME, UK_NAME_L1  the functions
 *
 *   C_ij = sum_k a[k * MR + i] b[k * NR + j],   i < MR,  j < NR = UK_NV * UK_LANES,   one chain of FMAs over k
 *   C_ij = sum_k |b[k * NR + j] - a[k * MR + i]|   (L1)                               one chain of sums over k
 *
 * Cost: 2 MR NR flops and (MR + NR) loads for each k; C stays in MR * UK_NV registers.
 */
#include "backends/cpu/micro/uk_vectors.h"

#undef UK_NR
#define UK_NR (UK_NV * UK_LANES)

static inline UK_ALWAYS void UK_TYPED(multiply)(bool l1, int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_VECTOR sum[UK_MR][UK_NV];
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_ZERO();
    for (int64_t k = 0; k < depth; k++, a += UK_MR, b += UK_NR) {
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
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(c + i * UK_NR + v * UK_LANES, sum[i][v]);
}

void UK_NAME(int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_TYPED(multiply)(false, depth, a, b, c);
}

void UK_NAME_L1(int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
{
    UK_TYPED(multiply)(true, depth, a, b, c);
}

#undef UK_F32
#undef UK_NAME
#undef UK_NAME_L1
