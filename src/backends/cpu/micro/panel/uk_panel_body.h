/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro/panel: body of the elementwise work, included once per instruction set after UK_PANEL_NAME and
 * UK_PANEL_FN(name). Plain C that the compiler vectorizes; every rounding is explicit (fma where fused), so results
 * are bitwise identical on all instruction sets. uk_panel_typed_body.h contains the code shared by float and double
 * (norms, distances, kernel values); this file contains bytes, half precision, transposes, and work only in double.
 */
#include "backends/cpu/micro/uk_math_body.h"
#include "core/numbers/half.h"
#include "kernels/formulas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
    MOST_WIDTH = 32,  /* maximum width of a packed panel */
    POWER_STRIP = 64, /* values raised to a power at a time; their bases stay in registers or cache */
    WIDE_STRIP = 64,  /* float values evaluated in double at a time */
    MOST_CHAINS = 64, /* maximum number of sums of `chains` at a time */
    ROWS_AHEAD = 16   /* rows prefetched ahead of these sums */
};

typedef double (*power_of)(double size, double p); /* inlined by its callers */

#define REAL        float
#define TYPED(name) UK_PANEL_FN(name##_f32)
#define MATH(name)  name##_f32
#define SQRT        sqrtf
#define FMA         fmaf
#define NOTHING     128.0f
#define IS_F32      1
#include "backends/cpu/micro/panel/uk_panel_typed_body.h"

#define REAL        double
#define TYPED(name) UK_PANEL_FN(name##_f64)
#define MATH(name)  name##_f64
#define SQRT        sqrt
#define FMA         fma
#define NOTHING     800.0
#define IS_F32      0
#include "backends/cpu/micro/panel/uk_panel_typed_body.h"

/* Transpose blocks of 4 rows by 4 features in registers, four rows from end to end, so that each cache line is read
   once. The remaining elements are copied one by one. */
static void UK_PANEL_FN(interleave_f32)(int64_t depth, int64_t width, const float *restrict rows, int64_t ld,
                                        float *restrict panel)
{
    int64_t r = 0;
#if defined(__SSE2__)
    for (; r + 4 <= width; r += 4) {
        int64_t k = 0;
        for (; k + 4 <= depth; k += 4) {
            const float *from = rows + r * ld + k;
            float *to = panel + k * width + r;
            __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + ld), c = _mm_loadu_ps(from + 2 * ld),
                   d = _mm_loadu_ps(from + 3 * ld);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(to, a);
            _mm_storeu_ps(to + width, b);
            _mm_storeu_ps(to + 2 * width, c);
            _mm_storeu_ps(to + 3 * width, d);
        }
        for (; k < depth; k++)
            for (int q = 0; q < 4; q++) panel[k * width + r + q] = rows[(r + q) * ld + k];
    }
#endif
    for (; r < width; r++)
        for (int64_t k = 0; k < depth; k++) panel[k * width + r] = rows[r * ld + k];
}

#if defined(__AVX__)
static inline void UK_PANEL_FN(turn_4x4)(const double *restrict from, int64_t ld, double *restrict to, int64_t width)
{
    __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + ld), c = _mm256_loadu_pd(from + 2 * ld),
            d = _mm256_loadu_pd(from + 3 * ld);
    __m256d ab = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b), cd = _mm256_unpacklo_pd(c, d),
            cd_odd = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab, cd, 0x20));
    _mm256_storeu_pd(to + width, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20));
    _mm256_storeu_pd(to + 2 * width, _mm256_permute2f128_pd(ab, cd, 0x31));
    _mm256_storeu_pd(to + 3 * width, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31));
}
#endif

static void UK_PANEL_FN(interleave_f64)(int64_t depth, int64_t width, const double *restrict rows, int64_t ld,
                                        double *restrict panel)
{
    int64_t r = 0;
#if defined(__AVX__)
    for (; r + 4 <= width; r += 4) {
        int64_t k = 0;
        for (; k + 4 <= depth; k += 4) UK_PANEL_FN(turn_4x4)(rows + r * ld + k, ld, panel + k * width + r, width);
        for (; k < depth; k++)
            for (int q = 0; q < 4; q++) panel[k * width + r + q] = rows[(r + q) * ld + k];
    }
#endif
#if defined(__SSE2__)
    for (; r + 2 <= width; r += 2) {
        const double *from = rows + r * ld;
        int64_t k = 0;
        for (; k + 2 <= depth; k += 2) {
            __m128d a = _mm_loadu_pd(from + k), b = _mm_loadu_pd(from + ld + k);
            _mm_storeu_pd(panel + k * width + r, _mm_unpacklo_pd(a, b));
            _mm_storeu_pd(panel + (k + 1) * width + r, _mm_unpackhi_pd(a, b));
        }
        for (; k < depth; k++) panel[k * width + r] = from[k], panel[k * width + r + 1] = from[ld + k];
    }
#endif
    for (; r < width; r++)
        for (int64_t k = 0; k < depth; k++) panel[k * width + r] = rows[r * ld + k];
}

/* Pack a row of bytes in groups of adjacent features, and sum its values and squares on the way. The panel must have
   been cleared if d is not a multiple of the group, because the rest of the last group is not written. */
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
    if (group == 8) {
        uint8_t *out = (uint8_t *)panel + 8 * r;
        for (int64_t k = 0; k < whole; k += 8, out += 8 * width) memcpy(out, row + k, 8);
        memcpy(out, row + whole, (size_t)(d - whole));
        return;
    }
    if (group == 64) {
        uint8_t *out = (uint8_t *)panel + 64 * r;
        for (int64_t k = 0; k < whole; k += 64, out += 64 * width) memcpy(out, row + k, 64);
        memcpy(out, row + whole, (size_t)(d - whole));
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

/* Compute squared distances of bytes from inner products and norms, exactly. */
static void UK_PANEL_FN(sqdist_u8)(int64_t rows, int64_t width, const int32_t *restrict dots,
                                   const int32_t *restrict x_norms, const int32_t *restrict z_norms,
                                   float *restrict out)
{
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < width; i++) {
            /* The distance fits in 31 bits although the sum of the norms may not: unsigned arithmetic wraps around,
               and the result is correct. */
            int32_t square =
                (int32_t)((uint32_t)x_norms[i] + (uint32_t)z_norms[j] - 2u * (uint32_t)dots[j * width + i]);
            out[j * width + i] = (float)(square > 0 ? square : 0); /* only results for padding rows can be negative */
        }
}

static int32_t UK_PANEL_FN(inner_u8)(int64_t d, const uint8_t *restrict x, const uint8_t *restrict z)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < d; k++) sum += x[k] * z[k];
    return sum;
}

static int32_t UK_PANEL_FN(sad_u8)(int64_t d, const uint8_t *restrict x, const uint8_t *restrict z)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < d; k++) sum += abs(x[k] - z[k]);
    return sum;
}

/* Convert half precision to float: by conversion instructions if the instruction set has them, else by
   mrc_half_to_float. */
static void UK_PANEL_FN(from_half)(int64_t count, const uint16_t *restrict from, float *restrict to)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
    for (; i < count; i++) to[i] = mrc_half_to_float(from[i]);
}

/* Rounding to nearest even is part of the instruction, so it does not depend on the rounding mode of the thread. */
static void UK_PANEL_FN(to_half)(int64_t count, const float *restrict from, uint16_t *restrict to)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++) to[i] = mrc_half_from_float(from[i]);
}

/* Padding rows are not among the `rows`, so every distance is that of an existing center. */
static void UK_PANEL_FN(nearest_u8)(int64_t rows, int64_t width, const int32_t *restrict dots,
                                    const int32_t *restrict x_norms, const int32_t *restrict z_norms,
                                    int32_t *restrict best, int32_t *restrict at)
{
    for (int64_t i = 0; i < width; i++) best[i] = INT32_MAX, at[i] = 0; /* no distance is larger */
    for (int64_t j = 0; j < rows; j++)
        for (int64_t i = 0; i < width; i++) {
            int32_t square = /* unsigned, as in sqdist_u8 */
                (int32_t)((uint32_t)x_norms[i] + (uint32_t)z_norms[j] - 2u * (uint32_t)dots[j * width + i]);
            bool less = square < best[i];
            best[i] = less ? square : best[i];
            at[i] = less ? (int32_t)j : at[i];
        }
}

/* Inlined with constant widths, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void UK_PANEL_FN(solve_of)(int64_t n, int64_t width,
                                                                        const double *restrict l, int64_t down,
                                                                        int64_t across, double *restrict x)
{
    for (int64_t j = 0; j < n; j++) {
        const double *row = l + j * down;
        double sum[MOST_WIDTH];
        for (int64_t r = 0; r < width; r++) sum[r] = x[j * width + r];
        for (int64_t k = 0; k < j; k++)
            for (int64_t r = 0; r < width; r++) sum[r] = fma(-row[k * across], x[k * width + r], sum[r]);
        for (int64_t r = 0; r < width; r++) x[j * width + r] = sum[r] / row[j * across];
    }
}

/* Solve a lower triangular system for a packed strip of right-hand sides. */
static void UK_PANEL_FN(solve)(int64_t n, int64_t width, const double *restrict l, int64_t down, int64_t across,
                               double *restrict x)
{
    if (width == MOST_WIDTH)
        UK_PANEL_FN(solve_of)(n, MOST_WIDTH, l, down, across, x);
    else
        UK_PANEL_FN(solve_of)(n, width, l, down, across, x);
}

/* Map float values in double, for kernels that would lose accuracy in float. */
static void UK_PANEL_FN(map_wide_f32)(const mrc_map *map, int64_t count, float *restrict values)
{
    for (int64_t first = 0; first < count; first += WIDE_STRIP) {
        int64_t some = first + WIDE_STRIP < count ? WIDE_STRIP : count - first;
        double strip[WIDE_STRIP] = {0};
        for (int64_t i = 0; i < some; i++) strip[i] = (double)values[first + i];
        UK_PANEL_FN(map_f64)(map, WIDE_STRIP, strip);
        for (int64_t i = 0; i < some; i++) values[first + i] = (float)strip[i];
    }
}

/* Evaluate the recursion of kernels/formulas.h: S and T of a strip, layer by layer. For equal rows the cosine c is
   exactly 1. For other rows rounding may move c out of [-1, 1], so c is clamped. map->b > 0 selects T. */
static void UK_PANEL_FN(angular)(const mrc_map *map, int64_t count, const double *restrict dots,
                                 const double *restrict across, double down, double *restrict out)
{
    const double variance = map->a, inverse_pi = 0x1.45f306dc9c883p-2;
    for (int64_t first = 0; first < count; first += WIDE_STRIP) {
        int64_t some = first + WIDE_STRIP < count ? WIDE_STRIP : count - first;
        double s[WIDE_STRIP], t[WIDE_STRIP];
        for (int64_t i = 0; i < some; i++) s[i] = t[i] = dots[first + i] + variance;
        for (int layer = 1; layer <= map->degree; layer++) {
            const double z_norm = fma(layer, variance, down), z_root = sqrt(z_norm);
            for (int64_t i = 0; i < some; i++) {
                double dot = dots[first + i], xx = across[first + i], x_norm = fma(layer, variance, xx);
                bool same = dot == xx && dot == down;
                double norms = same ? x_norm : sqrt(x_norm) * z_root;
                double c = same || norms == 0 ? 1.0 : s[i] / norms;
                c = c > 1.0 ? 1.0 : c < -1.0 ? -1.0 : c;
                double k0 = fma(-inverse_pi, acos_f64(c), 1.0);
                double k1 = fma(c, k0, sqrt(fma(-c, c, 1.0)) * inverse_pi);
                s[i] = fma(norms, k1, variance);
                t[i] = fma(t[i], k0, s[i]);
            }
        }
        for (int64_t i = 0; i < some; i++) out[first + i] = map->b > 0 ? t[i] : s[i];
    }
}

const mrc_panel_ops UK_PANEL_NAME = {
    .interleave_f32 = UK_PANEL_FN(interleave_f32),
    .interleave_f64 = UK_PANEL_FN(interleave_f64),
    .center_f32 = UK_PANEL_FN(center_f32),
    .center_f64 = UK_PANEL_FN(center_f64),
    .scan_f32 = UK_PANEL_FN(scan_f32),
    .scan_f64 = UK_PANEL_FN(scan_f64),
    .compress_f32 = UK_PANEL_FN(compress_f32),
    .compress_f64 = UK_PANEL_FN(compress_f64),
    .sqnorms_f32 = UK_PANEL_FN(sqnorms_f32),
    .sqnorms_f64 = UK_PANEL_FN(sqnorms_f64),
    .sqdist_f32 = UK_PANEL_FN(sqdist_f32),
    .sqdist_f64 = UK_PANEL_FN(sqdist_f64),
    .pack_u8 = UK_PANEL_FN(pack_u8),
    .inner_u8 = UK_PANEL_FN(inner_u8),
    .sad_u8 = UK_PANEL_FN(sad_u8),
    .powers_f32 = UK_PANEL_FN(powers_f32),
    .powers_f64 = UK_PANEL_FN(powers_f64),
    .few_sums_f32 = UK_PANEL_FN(few_sums_f32),
    .few_sums_f64 = UK_PANEL_FN(few_sums_f64),
    .from_half = UK_PANEL_FN(from_half),
    .to_half = UK_PANEL_FN(to_half),
    .add_f32 = UK_PANEL_FN(add_f32),
    .add_f64 = UK_PANEL_FN(add_f64),
    .sqdist_u8 = UK_PANEL_FN(sqdist_u8),
    .nearest_f32 = UK_PANEL_FN(nearest_f32),
    .nearest_f64 = UK_PANEL_FN(nearest_f64),
    .nearest_u8 = UK_PANEL_FN(nearest_u8),
    .map_f32 = UK_PANEL_FN(map_f32),
    .map_f64 = UK_PANEL_FN(map_f64),
    .map_wide_f32 = UK_PANEL_FN(map_wide_f32),
    .finite_f32 = UK_PANEL_FN(finite_f32),
    .finite_f64 = UK_PANEL_FN(finite_f64),
    .blend_f32 = UK_PANEL_FN(blend_f32),
    .blend_f64 = UK_PANEL_FN(blend_f64),
    .chains_f32 = UK_PANEL_FN(chains_f32),
    .chains_f64 = UK_PANEL_FN(chains_f64),
    .solve = UK_PANEL_FN(solve),
    .angular = UK_PANEL_FN(angular),
};
