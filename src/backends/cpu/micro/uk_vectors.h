/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors of float or double and what the bodies of micro-kernels do with them, included after UK_BITS (512: AVX-512,
 * 256: AVX2, 0: portable C, one element) and UK_F32 (1: float, 0: double); once more in the same file for the other.
 *
 *   UK_REAL, UK_VECTOR, UK_LANES     the element, the vector, its length
 *   UK_ZERO(), UK_FILL(scalar), UK_LOAD(address), UK_STORE(address, v), UK_ADD(a, b), UK_SUB(a, b), UK_ABS(a)
 *   UK_FMA(a, b, c)                  a * b + c in one rounding
 *   UK_TYPED(name)                   the name of a function of the body for UK_REAL
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
#define UK_FMA(a, b, c)      UK_CALL(fmadd)(a, b, c)
#else
#include <math.h>
#define UK_ZERO()            0
#define UK_FILL(scalar)      (scalar)
#define UK_LOAD(address)     (*(address))
#define UK_STORE(address, v) (*(address) = (v))
#define UK_ADD(a, b)         ((a) + (b))
#define UK_SUB(a, b)         ((a) - (b))
#define UK_FMA(a, b, c)      UK_CALL(fma)(a, b, c)
#endif
#if UK_BITS == 256 /* it has no instruction for it */
#define UK_ABS(a) UK_CALL(andnot)(UK_CALL(set1)((UK_REAL)-0.0), a)
#elif UK_BITS == 512
#define UK_ABS(a) UK_CALL(abs)(a)
#else
#define UK_ABS(a) UK_CALL(fabs)(a)
#endif
#endif
