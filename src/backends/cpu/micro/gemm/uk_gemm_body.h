/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/gemm: body of the product micro-kernels, included once by each file after it has defined
 *
 *   UK_NAME              the function          UK_REAL        float or double
 *   UK_MR                height                UK_VECTOR      a vector of UK_REAL
 *   UK_NV                vectors in a row      UK_LANES       its length
 *   UK_ZERO(), UK_LOAD(address), UK_STORE(address, v), UK_FILL(scalar)
 *   UK_STEP(sum, a, b)   sum + a * b in one rounding, or what else is added up over features (micro/differences)
 *
 *   C_ij = sum_k a[k * MR + i] b[k * NR + j],   i < MR,  j < NR = UK_NV * UK_LANES,   one chain of FMAs over k
 *
 * Cost: 2 MR NR flops and (MR + NR) loads for each k; C stays in MR * UK_NV registers.
 */
#define UK_NR (UK_NV * UK_LANES)

void UK_NAME(int64_t depth, const UK_REAL *a, const UK_REAL *b, UK_REAL *c)
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
            for (int v = 0; v < UK_NV; v++) sum[i][v] = UK_STEP(sum[i][v], factor, row[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < UK_MR; i++)
#pragma GCC unroll 4
        for (int v = 0; v < UK_NV; v++) UK_STORE(c + i * UK_NR + v * UK_LANES, sum[i][v]);
}
