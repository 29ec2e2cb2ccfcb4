/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions shared by host and GPU, with bitwise identical results. This file depends on nothing else in the
   library. */
#ifndef MRC_CORE_NUMBERS_HOST_DEVICE_H
#define MRC_CORE_NUMBERS_HOST_DEVICE_H

#include <stdint.h>

/* Declares a function for host and device. */
#if defined(__CUDACC__)
#define MRC_HD static __host__ __device__ __forceinline__
#else
#define MRC_HD static inline
#endif

/* Compute x + y z and x y + z w with every operation rounded. Without the intrinsics the device compiler would fuse
   multiplications and additions. */
MRC_HD float mrc_plus_times_f32(float x, float y, float z)
{
#if defined(__CUDA_ARCH__)
    return __fadd_rn(x, __fmul_rn(y, z));
#else
    return x + y * z;
#endif
}

MRC_HD double mrc_plus_times_f64(double x, double y, double z)
{
#if defined(__CUDA_ARCH__)
    return __dadd_rn(x, __dmul_rn(y, z));
#else
    return x + y * z;
#endif
}

MRC_HD float mrc_two_products_f32(float x, float y, float z, float w)
{
#if defined(__CUDA_ARCH__)
    return __fadd_rn(__fmul_rn(x, y), __fmul_rn(z, w));
#else
    return x * y + z * w;
#endif
}

MRC_HD double mrc_two_products_f64(double x, double y, double z, double w)
{
#if defined(__CUDA_ARCH__)
    return __dadd_rn(__dmul_rn(x, y), __dmul_rn(z, w));
#else
    return x * y + z * w;
#endif
}

/* Rounds to nearest, halves upwards, and clamps to 0 .. 255. */
MRC_HD uint8_t mrc_byte_from_float(float value)
{
    value = value + 0.5f;
    value = value > 0 ? value : 0;
    return (uint8_t)(int)(value < 255 ? value : 255);
}

/* Philox 4x32-10 of Salmon, Moraes, Dror and Shaw (2011): ten rounds of a keyed bijection of a 128-bit counter. */
MRC_HD void mrc_philox(uint64_t low, uint64_t high, uint64_t key, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32), c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9); /* the golden ratio */
        k1 += UINT32_C(0xBB67AE85); /* sqrt(3) - 1 */
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#endif
