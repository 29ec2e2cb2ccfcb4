/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel functions of tiles, included by uk_panel_body.h: squared distances or inner products become kernel values in
 * place. Formulas: kernels/formulas.c; exp, log and acos: uk_math_body.h. In float what needs exp and roots alone; in
 * double everything, and there also the float values of kernels that would lose accuracy (powers, angles).
 */
#include "backends/cpu/micro/uk_math_body.h"

enum {
    POWER_STRIP = 64, /* values raised to a power at a time: their bases stay in registers or cache */
    WIDE_STRIP = 64   /* values that are evaluated in double at a time */
};

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
        case MRC_MAP_EXPPOWER: /* these are evaluated in double */
        case MRC_MAP_RATIONAL_QUADRATIC:
        case MRC_MAP_ANGULAR:
        case MRC_MAP_LINEAR:
        case MRC_MAP_NONE: break;
    }
}

/* ---- In double: all kernels, and in float those without a form of their own -------------------------------------- */

static inline double exppower(double a, double b, double square)
{
    double power = b * log_f64(a * square); /* (r / bandwidth)^gamma = exp(power) */
    power = power < 7.0 ? power : 7.0;      /* exp(-exp(7)) is 0 */
    return square > 0 ? exp_f64(-exp_f64(power)) : 1.0;
}

static void UK_PANEL_FN(map_f64)(const mrc_wide_map *map, int64_t count, double *restrict values)
{
    const double a = map->a, b = map->b;
    switch (map->kind) {
        case MRC_MAP_LAPLACE:
            for (int64_t i = 0; i < count; i++) values[i] = exp_f64(a * sqrt(values[i]));
            break;
        case MRC_MAP_GAUSSIAN:
            for (int64_t i = 0; i < count; i++) values[i] = exp_f64(a * values[i]);
            break;
        case MRC_MAP_MATERN32:
            for (int64_t i = 0; i < count; i++) {
                double u = a * sqrt(values[i]);
                u = u < 800.0 ? u : 800.0; /* exp(-800) is 0, and infinity * 0 would be NaN */
                values[i] = (1.0 + u) * exp_f64(-u);
            }
            break;
        case MRC_MAP_MATERN52:
            for (int64_t i = 0; i < count; i++) {
                double u = a * sqrt(values[i]);
                u = u < 800.0 ? u : 800.0;
                values[i] = fma(u, fma(u, 0x1.5555555555555p-2, 1.0), 1.0) * exp_f64(-u);
            }
            break;
        case MRC_MAP_CAUCHY:
            for (int64_t i = 0; i < count; i++) values[i] = 1.0 / fma(values[i], a, 1.0);
            break;
        case MRC_MAP_EXPPOWER:
            for (int64_t i = 0; i < count; i++) values[i] = exppower(a, b, values[i]);
            break;
        case MRC_MAP_RATIONAL_QUADRATIC:
            for (int64_t i = 0; i < count; i++) values[i] = exp_f64(b * log1p_f64(a * values[i]));
            break;
        case MRC_MAP_POLYNOMIAL:
            for (int64_t first = 0; first < count; first += POWER_STRIP) {
                int64_t end = first + POWER_STRIP < count ? first + POWER_STRIP : count;
                double base[POWER_STRIP] = {0};
                for (int64_t i = first; i < end; i++) values[i] = base[i - first] = fma(a, values[i], b);
                for (int k = 1; k < map->degree; k++)
                    for (int64_t i = first; i < end; i++) values[i] *= base[i - first];
            }
            break;
        case MRC_MAP_ANGULAR: /* has a function of its own */
        case MRC_MAP_LINEAR:
        case MRC_MAP_NONE: break;
    }
}

static void UK_PANEL_FN(map_wide_f32)(const mrc_wide_map *map, int64_t count, float *restrict values)
{
    for (int64_t first = 0; first < count; first += WIDE_STRIP) {
        int64_t some = first + WIDE_STRIP < count ? WIDE_STRIP : count - first;
        double strip[WIDE_STRIP] = {0};
        for (int64_t i = 0; i < some; i++) strip[i] = (double)values[first + i];
        UK_PANEL_FN(map_f64)(map, WIDE_STRIP, strip);
        for (int64_t i = 0; i < some; i++) values[first + i] = (float)strip[i];
    }
}

static bool UK_PANEL_FN(finite_f32)(int64_t count, const float *values)
{
    int infinite = 0;
    for (int64_t i = 0; i < count; i++) infinite |= !(values[i] <= 0x1.fffffep127f);
    return !infinite;
}

static bool UK_PANEL_FN(finite_f64)(int64_t count, const double *values)
{
    int infinite = 0;
    for (int64_t i = 0; i < count; i++) infinite |= !(values[i] <= 0x1.fffffffffffffp1023);
    return !infinite;
}

/* Layers of kernels/formulas.c: S and T of a strip, one layer after the other. */
static void UK_PANEL_FN(angular)(const mrc_wide_map *map, int64_t count, const double *restrict dots,
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
