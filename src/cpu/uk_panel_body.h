/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Body of the elementwise work, included once per instruction set after UK_PANEL_NAME and UK_PANEL_FN(name). Plain C
 * that the compiler vectorises; every rounding is written out (fma where fused), so all instruction sets give the same
 * bits.
 *
 *   norms_r = sum_k v_kr^2                          one FMA chain, as in the product micro-kernels
 *   r^2     = (|x|^2 + |z|^2) - 2 x.z               one FMA; exactly 0 for equal rows; clamped at 0
 *   exp(x)  for x <= 0: n = round(x / ln 2), r = x - n ln 2 (two-part ln 2), exp(r) = 1 + r + r^2 q(r) with q of degree 4
 *           (minimax on |r| <= ln2/2, relative error 3.1e-9), times 2^n in two exact-or-final steps so that subnormal results
 *           round once. At most 1 ulp from the correctly rounded value, checked on all floats. exp(-inf) = 0.
 */
#include <math.h>
#include <string.h>

enum { POWER_STRIP = 64 }; /* values raised to a power at a time: their bases stay in registers or cache */

static inline float exp_f32(float x)
{
    const float magic = 0x1.8p23f; /* adding it leaves the rounded integer in the low mantissa bits */
    x = x < -104.0f ? -104.0f : x; /* exp(-104) already rounds to 0 */
    float shifted = fmaf(x, 0x1.715476p0f, magic);
    float n = shifted - magic;
    float r = fmaf(n, -0x1.62e4p-1f, x); /* ln 2 to 15 bits: n times it is exact */
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float q = 0x1.6a23cep-10f;
    q = fmaf(q, r, 0x1.123a2p-7f);
    q = fmaf(q, r, 0x1.5558f2p-5f);
    q = fmaf(q, r, 0x1.555492p-3f);
    q = fmaf(q, r, 0x1.fffffcp-2f);
    float e = fmaf(r * r, q, r) + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    int32_t exponent = (int32_t)(bits - 0x4b400000u); /* n, between -150 and 0 */
    int32_t half = exponent >> 1;
    uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(exponent - half + 127) << 23;
    float scale_low, scale_high;
    memcpy(&scale_low, &low, sizeof low);
    memcpy(&scale_high, &high, sizeof high);
    return e * scale_low * scale_high;
}

static void UK_PANEL_FN(sqnorms_f32)(int64_t depth, int64_t width, const float *panel, float *norms)
{
    for (int64_t r = 0; r < width; r++) norms[r] = 0;
    for (int64_t k = 0; k < depth; k++)
        for (int64_t r = 0; r < width; r++) norms[r] = fmaf(panel[k * width + r], panel[k * width + r], norms[r]);
}

static void UK_PANEL_FN(sqnorms_f64)(int64_t depth, int64_t width, const double *panel, double *norms)
{
    for (int64_t r = 0; r < width; r++) norms[r] = 0;
    for (int64_t k = 0; k < depth; k++)
        for (int64_t r = 0; r < width; r++) norms[r] = fma(panel[k * width + r], panel[k * width + r], norms[r]);
}

static bool UK_PANEL_FN(sqdist_f32)(int64_t rows, int64_t width, float *restrict tile, const float *restrict x_norms,
                                    const float *restrict z_norms, float near)
{
    int suspicious = 0;
    for (int64_t j = 0; j < rows; j++) {
        float *row = tile + j * width;
        for (int64_t i = 0; i < width; i++) {
            float sum = x_norms[i] + z_norms[j];
            float square = fmaf(-2.0f, row[i], sum);
            suspicious |= !(square > near * sum);
            row[i] = square > 0 ? square : 0;
        }
    }
    return suspicious != 0;
}

static bool UK_PANEL_FN(sqdist_f64)(int64_t rows, int64_t width, double *restrict tile, const double *restrict x_norms,
                                    const double *restrict z_norms, double near)
{
    int suspicious = 0;
    for (int64_t j = 0; j < rows; j++) {
        double *row = tile + j * width;
        for (int64_t i = 0; i < width; i++) {
            double sum = x_norms[i] + z_norms[j];
            double square = fma(-2.0, row[i], sum);
            suspicious |= !(square > near * sum);
            row[i] = square > 0 ? square : 0;
        }
    }
    return suspicious != 0;
}

static void UK_PANEL_FN(pack_u8)(int64_t d, int group, int64_t width, int64_t r, uint8_t flip,
                                 const uint8_t *restrict row, void *restrict panel, int32_t *sum, int32_t *squares)
{
    int32_t total = 0, total_squares = 0;
    for (int64_t k = 0; k < d; k++) {
        total += row[k];
        total_squares += row[k] * row[k];
    }
    *sum = total;
    *squares = total_squares;
    int64_t whole = d / group * group;
    if (group == 2) {
        int16_t *out = (int16_t *)panel + 2 * r;
        for (int64_t k = 0; k < whole; k += 2, out += 2 * width) out[0] = row[k], out[1] = row[k + 1];
        if (whole < d) out[0] = row[whole];
        return;
    }
    uint8_t *out = (uint8_t *)panel + 4 * r;
    const uint32_t flips = flip * UINT32_C(0x01010101);
    for (int64_t k = 0; k < whole; k += 4, out += 4 * width) {
        uint32_t word;
        memcpy(&word, row + k, sizeof word);
        word ^= flips; /* adds 128 to each byte, modulo 256: as signed bytes, value - 128 */
        memcpy(out, &word, sizeof word);
    }
    for (int64_t k = whole; k < d; k++) *out++ = row[k] ^ flip;
}

static void UK_PANEL_FN(sqdist_u8)(int64_t rows, int64_t width, const int32_t *restrict dots,
                                   const int32_t *restrict x_norms, const int32_t *restrict z_norms,
                                   float *restrict out)
{
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < width; i++) {
            /* The distance fits 31 bits although the sum of the norms may not: unsigned arithmetic wraps and comes
               back. */
            int32_t square =
                (int32_t)((uint32_t)x_norms[i] + (uint32_t)z_norms[j] - 2u * (uint32_t)dots[j * width + i]);
            out[j * width + i] = (float)(square > 0 ? square : 0); /* only rows that pad a panel can be negative */
        }
}

#define NEAREST(name, real)                                                                                    \
    static void UK_PANEL_FN(name)(int64_t rows, int64_t width, const real *restrict tile, real *restrict best, \
                                  int32_t *restrict at)                                                        \
    {                                                                                                          \
        for (int64_t i = 0; i < width; i++) best[i] = tile[i], at[i] = 0;                                      \
        for (int64_t j = 1; j < rows; j++)                                                                     \
            for (int64_t i = 0; i < width; i++) {                                                              \
                bool less = tile[j * width + i] < best[i];                                                     \
                best[i] = less ? tile[j * width + i] : best[i];                                                \
                at[i] = less ? (int32_t)j : at[i];                                                             \
            }                                                                                                  \
    }
NEAREST(nearest_f32, float)
NEAREST(nearest_f64, double)
#undef NEAREST

static void UK_PANEL_FN(nearest_u8)(int64_t rows, int64_t width, const int32_t *restrict dots,
                                    const int32_t *restrict x_norms, const int32_t *restrict z_norms,
                                    int32_t *restrict best, int32_t *restrict at)
{
    for (int64_t i = 0; i < width; i++) best[i] = INT32_MAX, at[i] = 0; /* no distance is larger than that */
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < width; i++) {
            int32_t square = /* unsigned, as in sqdist_u8 */
                (int32_t)((uint32_t)x_norms[i] + (uint32_t)z_norms[j] - 2u * (uint32_t)dots[j * width + i]);
            bool less = square < best[i];
            best[i] = less ? square : best[i];
            at[i] = less ? (int32_t)j : at[i];
        }
}

static void UK_PANEL_FN(map_f32)(const mrc_map *map, int64_t count, float *restrict values)
{
    const float a = map->a, b = map->b;
    switch (map->kind) {
        case MRC_MAP_LAPLACE:
            for (int64_t i = 0; i < count; i++) values[i] = exp_f32(a * sqrtf(values[i]));
            break;
        case MRC_MAP_GAUSSIAN:
            for (int64_t i = 0; i < count; i++) values[i] = exp_f32(a * values[i]);
            break;
        case MRC_MAP_MATERN32:
            for (int64_t i = 0; i < count; i++) {
                float u = a * sqrtf(values[i]);
                u = u < 128.0f ? u : 128.0f; /* exp(-128) is 0, and infinity * 0 would be NaN */
                values[i] = (1.0f + u) * exp_f32(-u);
            }
            break;
        case MRC_MAP_MATERN52:
            for (int64_t i = 0; i < count; i++) {
                float u = a * sqrtf(values[i]);
                u = u < 128.0f ? u : 128.0f;
                values[i] = fmaf(u, fmaf(u, 0x1.555556p-2f, 1.0f), 1.0f) * exp_f32(-u);
            }
            break;
        case MRC_MAP_CAUCHY:
            for (int64_t i = 0; i < count; i++) values[i] = 1.0f / fmaf(values[i], a, 1.0f);
            break;
        case MRC_MAP_POLYNOMIAL:
            for (int64_t first = 0; first < count; first += POWER_STRIP) {
                int64_t end = first + POWER_STRIP < count ? first + POWER_STRIP : count;
                float base[POWER_STRIP] = {0};
                for (int64_t i = first; i < end; i++) values[i] = base[i - first] = fmaf(a, values[i], b);
                for (int k = 1; k < map->degree; k++)
                    for (int64_t i = first; i < end; i++) values[i] *= base[i - first];
            }
            break;
        case MRC_MAP_LINEAR:
        case MRC_MAP_NONE: break;
    }
}

const mrc_panel_ops UK_PANEL_NAME = {
    .sqnorms_f32 = UK_PANEL_FN(sqnorms_f32),
    .sqnorms_f64 = UK_PANEL_FN(sqnorms_f64),
    .sqdist_f32 = UK_PANEL_FN(sqdist_f32),
    .sqdist_f64 = UK_PANEL_FN(sqdist_f64),
    .pack_u8 = UK_PANEL_FN(pack_u8),
    .sqdist_u8 = UK_PANEL_FN(sqdist_u8),
    .nearest_f32 = UK_PANEL_FN(nearest_f32),
    .nearest_f64 = UK_PANEL_FN(nearest_f64),
    .nearest_u8 = UK_PANEL_FN(nearest_u8),
    .map_f32 = UK_PANEL_FN(map_f32),
};
