/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel functions of tiles, included by uk_panel_body.h: squared distances or inner products become kernel values in
 * place. The forms: kernels/formulas.h; exp, log and acos: uk_math_body.h. In float what needs exp and roots alone; in
 * double everything, and there also the float values of kernels that would lose accuracy (powers, angles).
 */
#include "backends/cpu/micro/uk_math_body.h"
#include "kernels/formulas.h"

enum {
    POWER_STRIP = 64, /* values raised to a power at a time: their bases stay in registers or cache */
    WIDE_STRIP = 64   /* values that are evaluated in double at a time */
};

/* The operations of the forms, in the arithmetic that REAL and TYPED name. */
#define EXP(x)       TYPED(exp)(x)
#define LOG(x)       TYPED(log)(x)
#define LOG1P(x)     TYPED(log1p)(x)
#define SQRT(x)      TYPED(sqrt)(x)
#define CAP(x)       TYPED(cap)(x)
#define FMA(x, y, z) TYPED(fma)(x, y, z)

#define FORM(ID, TYPES, first, second, value) FORM_##TYPES(ID, value)
#define FORM_ANGLE(ID, value)                 /* has a function of its own */
#define FORM_FLOAT(ID, value)                 \
    case MRC_KERNEL_##ID:                     \
        for (int64_t i = 0; i < count; i++) { \
            REAL s = values[i], u = 0;        \
            (void)u;                          \
            values[i] = value;                \
        }                                     \
        break;
#define FORM_POWER(ID, value)                                                                         \
    case MRC_KERNEL_##ID:                                                                             \
        for (int64_t first = 0; first < count; first += POWER_STRIP) {                                \
            int64_t end = first + POWER_STRIP < count ? first + POWER_STRIP : count;                  \
            REAL base[POWER_STRIP] = {0};                                                             \
            for (int64_t i = first; i < end; i++) values[i] = base[i - first] = FMA(a, values[i], b); \
            for (int k = 1; k < map->degree; k++)                                                     \
                for (int64_t i = first; i < end; i++) values[i] *= base[i - first];                   \
        }                                                                                             \
        break;

#define REAL        float
#define TYPED(name) name##_f32
#define FORM_DOUBLE(ID, value)
static void UK_PANEL_FN(map_f32)(const mrc_map *map, int64_t count, float *restrict values)
{
    const float a = (float)map->a, b = (float)map->b;
    switch (map->id) {
        MRC_VECTOR_FORMS(FORM)
        default: break;
    }
}
#undef REAL
#undef TYPED
#undef FORM_DOUBLE

#define REAL                   double
#define TYPED(name)            name##_f64
#define FORM_DOUBLE(ID, value) FORM_FLOAT(ID, value)
static void UK_PANEL_FN(map_f64)(const mrc_map *map, int64_t count, double *restrict values)
{
    const double a = map->a, b = map->b;
    switch (map->id) {
        MRC_VECTOR_FORMS(FORM)
        default: break;
    }
}
#undef REAL
#undef TYPED
#undef FORM_DOUBLE

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

/* The layers of kernels/formulas.h: S and T of a strip, one layer after the other. */
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
