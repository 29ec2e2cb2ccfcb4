/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elementary functions for the elementwise micro-kernels (uk_panel_body.h): plain C without branches or tables, which
 * the compiler vectorizes. Every rounding is explicit, so that results are bitwise identical on all instruction sets. u
 * is 2^-53.
 *
 *   exp     x = n ln 2 + r, |r| <= ln 2 / 2 (two-part ln 2);  e^r = 1 + (r + r^2 q(r));  times 2^n in two steps.
 *           Only the second step may round, so that subnormal results round once.
 *           float: x <= 80, q of degree 4 (minimax, relative error 3.1e-9): at most 1 ulp, checked on all floats below
 *           0; exp(-inf) = 0
 *           double: x <= 709, q the Taylor polynomial to r^13 (error 4e-18); total: half an ulp from the last
 *           sum, and, in units of u for results in [0.7, 1), 0.25 each from r and from r + r^2 q, 0.1 from r^2 q: at
 *           most 1.2 ulp
 *   log     x = 2^k m, sqrt(1/2) <= m < sqrt(2), f = m - 1 exact, s = f / (2 + f), z = s^2:  log m = f - s (f - 2 z
 *           Q(z)) with atanh(s) = s (1 + z Q(z)), Q of degree 7 (error 2^-60);  + k ln 2 (two parts, k times the first
 *           part is exact). s (f - ..) is at most a fifth of log m, so its three roundings add 0.6 u to the roundings
 *           of the last sums: at most 1.6 ulp. log(+0) is far below any other value, but not -infinity. Float:
 *           Q of degree 3 (error 2^-29), the same roundings: at most 2 ulp (derived in tests/unit/test_exppower.c);
 *           log(+0) = -167 ln 2
 *   log1p   x >= 0, w = 1 + x:  log w + (x - (w - 1)) / w
 *   power   x >= 0: exp(l), l = p log x; 0 for x = 0, infinity for l >= 709: relative error u (4.2 |l| + 2.4). The
 *           powers 1/2 and 3/2 are a root and a product: relative errors u and 2 u
 *   acos    asin(s) = s (1 + z P(z)), z = s^2 <= 1/4, P of degree 12 (error 2^-57);  |x| < 1/2: pi/2 - asin x;  else
 *           with s = sqrt((1 - |x|) / 2): 2 asin(s), or pi minus 2 asin(s). Roundings of s, z, the product and the
 *           sum: at most 2.5 ulp
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float exp_f32(float x)
{
    const float magic = 0x1.8p23f; /* adding it leaves the rounded integer in the low mantissa bits */
    x = x < -104.0f ? -104.0f : x; /* exp(-104) already rounds to 0 */
    float shifted = fmaf(x, 0x1.715476p0f, magic);
    float n = shifted - magic;
    float r = fmaf(n, -0x1.62e4p-1f, x); /* ln 2 to 15 bits, so that the product with n is exact */
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float q = 0x1.6a23cep-10f;
    q = fmaf(q, r, 0x1.123a2p-7f);
    q = fmaf(q, r, 0x1.5558f2p-5f);
    q = fmaf(q, r, 0x1.555492p-3f);
    q = fmaf(q, r, 0x1.fffffcp-2f);
    float e = fmaf(r * r, q, r) + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    int32_t exponent = (int32_t)(bits - 0x4b400000u); /* n, between -150 and 116 */
    int32_t half = exponent >> 1;
    uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(exponent - half + 127) << 23;
    float scale_low, scale_high;
    memcpy(&scale_low, &low, sizeof low);
    memcpy(&scale_high, &high, sizeof high);
    return e * scale_low * scale_high;
}

static inline float log_f32(float x)
{
    const uint32_t one = 0x3f800000u, root = 0x3f3504f3u; /* 1, sqrt(1/2) */
    float tiny = x < 0x1p-100f ? 40.0f : 0.0f;
    x = x < 0x1p-100f ? x * 0x1p40f : x;
    uint32_t bits, mantissa;
    memcpy(&bits, &x, sizeof bits);
    bits = bits - root + one; /* the exponent changes at sqrt(1/2) 2^k */
    mantissa = (bits & 0x007fffffu) + root;
    float k = (float)(int32_t)(bits >> 23) - 127.0f - tiny, m;
    memcpy(&m, &mantissa, sizeof m);
    float f = m - 1.0f, s = f / (2.0f + f), z = s * s;
    float q = 0x1.c71c72p-4f;
    q = fmaf(q, z, 0x1.24924ap-3f);
    q = fmaf(q, z, 0x1.99999ap-3f);
    q = fmaf(q, z, 0x1.555556p-2f);
    float rest = fmaf(-2.0f * z, q, f);
    float log_m = fmaf(-s, rest, f);
    return fmaf(k, 0x1.62e4p-1f, fmaf(k, 0x1.7f7d1cp-20f, log_m)); /* ln 2 in two parts, as in exp */
}

static inline double from_bits_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t to_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double exp_f64(double x)
{
    const double magic = 0x1.8p52;
    x = x < -746.0 ? -746.0 : x; /* exp(-746) rounds to 0 */
    double shifted = fma(x, 0x1.71547652b82fep+0, magic);
    double n = shifted - magic;
    double r = fma(n, -0x1.62e42fefa38p-1, x); /* ln 2 to 42 bits, so that the product with n is exact */
    r = fma(n, -0x1.ef35793c7673p-45, r);
    double q = 0x1.6124613a86d09p-33;
    q = fma(q, r, 0x1.1eed8eff8d898p-29);
    q = fma(q, r, 0x1.ae64567f544e4p-26);
    q = fma(q, r, 0x1.27e4fb7789f5cp-22);
    q = fma(q, r, 0x1.71de3a556c734p-19);
    q = fma(q, r, 0x1.a01a01a01a01ap-16);
    q = fma(q, r, 0x1.a01a01a01a01ap-13);
    q = fma(q, r, 0x1.6c16c16c16c17p-10);
    q = fma(q, r, 0x1.1111111111111p-7);
    q = fma(q, r, 0x1.5555555555555p-5);
    q = fma(q, r, 0x1.5555555555555p-3);
    q = fma(q, r, 0x1p-1);
    double e = fma(r * r, q, r) + 1.0;
    uint64_t exponent = to_bits_f64(shifted) - UINT64_C(0x4338000000000000) + 2048; /* n + 2048, positive */
    uint64_t half = exponent >> 1; /* a logical shift: AVX2 has no arithmetic one for 64 bits */
    double scale_low = from_bits_f64((half - 1024 + 1023) << 52);
    double scale_high = from_bits_f64((exponent - half - 1024 + 1023) << 52);
    return e * scale_low * scale_high;
}

static inline double log_f64(double x)
{
    const uint64_t one = UINT64_C(0x3ff0000000000000), root = UINT64_C(0x3fe6a09e667f3bcd); /* 1, sqrt(1/2) */
    double tiny = x < 0x1p-1000 ? 60.0 : 0.0;
    x = x < 0x1p-1000 ? x * 0x1p60 : x;
    uint64_t bits = to_bits_f64(x) - root + one; /* the exponent changes at sqrt(1/2) 2^k */
    uint64_t mantissa = (bits & UINT64_C(0x000fffffffffffff)) + root;
    /* Convert the exponent to double by placing it in the mantissa of 2^52. */
    double k = from_bits_f64((bits >> 52) | UINT64_C(0x4330000000000000)) - 0x1p52 - 1023.0 - tiny;
    double f = from_bits_f64(mantissa) - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double q = 0x1.0c2c748b6f13cp-4;
    q = fma(q, z, 0x1.0fbaab3c72fc6p-4);
    q = fma(q, z, 0x1.3b1c5ae500a38p-4);
    q = fma(q, z, 0x1.745cf85360411p-4);
    q = fma(q, z, 0x1.c71c720302bd8p-4);
    q = fma(q, z, 0x1.2492492475dbcp-3);
    q = fma(q, z, 0x1.9999999999a3ep-3);
    q = fma(q, z, 0x1.5555555555555p-2);
    double rest = fma(-2.0 * z, q, f);
    double m = fma(-s, rest, f);
    return fma(k, 0x1.62e42fefa38p-1, fma(k, 0x1.ef35793c7673p-45, m));
}

/* Compute x^p by exp and log; infinity where exp would leave its range. */
static inline double power_f64(double x, double p)
{
    double u = p * log_f64(x), value = exp_f64(u < 709.0 ? u : 709.0);
    value = u < 709.0 ? value : (double)INFINITY;
    return x > 0 ? value : 0;
}

static inline double power_1_2_f64(double x, double p)
{
    (void)p;
    return sqrt(x);
}

static inline double power_3_2_f64(double x, double p)
{
    (void)p;
    return x * sqrt(x);
}

static inline double log1p_f64(double x)
{
    double w = 1.0 + x;
    return log_f64(w) + (x - (w - 1.0)) / w;
}

static inline double acos_f64(double x)
{
    const double half_pi = 0x1.921fb54442d18p+0, half_pi_rest = 0x1.1a62633145c07p-54;
    double size = fabs(x);
    double outer = 0.5 - 0.5 * size; /* exact for size >= 0.5, where it is used */
    double z = size < 0.5 ? x * x : outer;
    double s = size < 0.5 ? x : sqrt(outer);
    double p = 0x1.d72b2bc8155f8p-6;
    p = fma(p, z, -0x1.e6aaa8a0a04cep-7);
    p = fma(p, z, 0x1.1d189408314efp-6);
    p = fma(p, z, 0x1.65a9c4dfcf8b1p-8);
    p = fma(p, z, 0x1.52420b04b37bep-7);
    p = fma(p, z, 0x1.782651caa6547p-7);
    p = fma(p, z, 0x1.c9cf07674736ap-7);
    p = fma(p, z, 0x1.1c4d35cf95421p-6);
    p = fma(p, z, 0x1.6e8bb1c8209a2p-6);
    p = fma(p, z, 0x1.f1c71c1db0623p-6);
    p = fma(p, z, 0x1.6db6db6e31f13p-5);
    p = fma(p, z, 0x1.3333333332ecap-4);
    p = fma(p, z, 0x1.5555555555556p-3);
    double asin = fma(s * z, p, s);
    double inner = half_pi - (asin - half_pi_rest);
    double left = 2.0 * (half_pi - (asin - half_pi_rest));
    return size < 0.5 ? inner : x > 0 ? 2.0 * asin : left;
}
