/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors of float or double and their operations, for the bodies of micro-kernels. The including file first defines
 * UK_BITS (512: AVX-512, 256: AVX2, 0: portable C, one element) and UK_F32 (1: float, 0: double); it may include this
 * header again for the other type.
 *
 *   UK_REAL, UK_VECTOR, UK_LANES     element type, vector type, elements per vector
 *   UK_ZERO(), UK_FILL(scalar), UK_LOAD(address), UK_STORE(address, v), UK_ADD(a, b), UK_SUB(a, b), UK_MUL(a, b),
 *   UK_ABS(a)
 *   UK_FMA(a, b, c)                  a * b + c with one rounding
 *   UK_SAME(a, b), UK_LESS(a, b), UK_OTHER(a, b)    mask of the lanes with a = b, a < b, a != b
 *   UK_ADD_IF(lanes, sum, v), UK_FMA_IF(lanes, a, b, sum)    sum + v, a * b + sum in the lanes of the mask, else sum
 *   UK_TYPED(name)                   name of a function of the body for UK_REAL
 */
#undef UK_REAL
#undef UK_VECTOR
#undef UK_LANES
#undef UK_CALL
#if UK_BITS == 512 && UK_F32
#define UK_REAL       float
#define UK_VECTOR     __m512
#define UK_LANES      16
#define UK_CALL(name) _mm512_##name##_ps
#elif UK_BITS == 512
#define UK_REAL       double
#define UK_VECTOR     __m512d
#define UK_LANES      8
#define UK_CALL(name) _mm512_##name##_pd
#elif UK_BITS == 256 && UK_F32
#define UK_REAL       float
#define UK_VECTOR     __m256
#define UK_LANES      8
#define UK_CALL(name) _mm256_##name##_ps
#elif UK_BITS == 256
#define UK_REAL       double
#define UK_VECTOR     __m256d
#define UK_LANES      4
#define UK_CALL(name) _mm256_##name##_pd
#elif UK_F32
#define UK_REAL       float
#define UK_VECTOR     float
#define UK_LANES      1
#define UK_CALL(name) name##f
#else
#define UK_REAL       double
#define UK_VECTOR     double
#define UK_LANES      1
#define UK_CALL(name) name
#endif

#ifndef UK_ALWAYS /* the same for both types */
#define UK_ALWAYS            __attribute__((always_inline))
#define UK_JOIN(name, real)  name##_##real
#define UK_NAMED(name, real) UK_JOIN(name, real)
#define UK_TYPED(name)       UK_NAMED(name, UK_REAL)
#if UK_BITS > 0
#include <immintrin.h>
#define UK_ZERO()            UK_CALL(setzero)()
#define UK_FILL(scalar)      UK_CALL(set1)(scalar)
#define UK_LOAD(address)     UK_CALL(loadu)(address)
#define UK_STORE(address, v) UK_CALL(storeu)(address, v)
#define UK_ADD(a, b)         UK_CALL(add)(a, b)
#define UK_SUB(a, b)         UK_CALL(sub)(a, b)
#define UK_MUL(a, b)         UK_CALL(mul)(a, b)
#define UK_FMA(a, b, c)      UK_CALL(fmadd)(a, b, c)
#else
#include <math.h>
#define UK_ZERO()            0
#define UK_FILL(scalar)      (scalar)
#define UK_LOAD(address)     (*(address))
#define UK_STORE(address, v) (*(address) = (v))
#define UK_ADD(a, b)         ((a) + (b))
#define UK_SUB(a, b)         ((a) - (b))
#define UK_MUL(a, b)         ((a) * (b))
#define UK_FMA(a, b, c)      UK_CALL(fma)(a, b, c)
#endif
#if UK_BITS == 256 /* AVX2 has no absolute value and no masks: the other lanes add 0, which changes no sum >= 0 */
#define UK_ABS(a)                   UK_CALL(andnot)(UK_CALL(set1)((UK_REAL)-0.0), a)
#define UK_LANES_IF(a, b, how)      UK_CALL(cmp)(a, b, how)
#define UK_ADD_IF(lanes, sum, v)    UK_ADD(sum, UK_CALL (and)(lanes, v))
#define UK_FMA_IF(lanes, a, b, sum) UK_FMA(UK_CALL (and)(lanes, a), b, sum)
#elif UK_BITS == 512
#define UK_ABS(a)                   UK_CALL(abs)(a)
#define UK_LANES_IF(a, b, how)      UK_NAMED(UK_CALL(cmp), mask)(a, b, how)
#define UK_ADD_IF(lanes, sum, v)    UK_CALL(mask_add)(sum, lanes, sum, v)
#define UK_FMA_IF(lanes, a, b, sum) UK_CALL(mask3_fmadd)(a, b, sum, lanes)
#else
#define UK_ABS(a)                   UK_CALL(fabs)(a)
#define UK_ADD_IF(lanes, sum, v)    ((sum) + (v) * (UK_REAL)(lanes))
#define UK_FMA_IF(lanes, a, b, sum) UK_FMA((a) * (UK_REAL)(lanes), b, sum)
#endif
#if UK_BITS > 0
#define UK_SAME(a, b)  UK_LANES_IF(a, b, _CMP_EQ_OQ)
#define UK_LESS(a, b)  UK_LANES_IF(a, b, _CMP_LT_OQ)
#define UK_OTHER(a, b) UK_LANES_IF(a, b, _CMP_NEQ_OQ)
#else
#define UK_SAME(a, b)  ((a) == (b))
#define UK_LESS(a, b)  ((a) < (b))
#define UK_OTHER(a, b) ((a) != (b))
#endif
#endif
