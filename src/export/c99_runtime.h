/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The code of exported C files: predictions of a kernel model, row by row.
 *
 *   cells -> features -> preprocessing in double -> stored type -> argument of the kernel -> kernel value -> sums
 *
 * An exported file consists of this text, with the headers below in place of their #include lines, between the macros
 * and the data of its model (c99_file.c). Tests compile it unchanged. It computes one row in the arithmetic of
 * backends/cpu, every rounding included: one chain of fused multiply-adds over the features, one over each TILE
 * centers, whose sums are added in double. Only libm's exp, log, sine, cosine and acos may differ from machine to
 * machine.
 *
 * Doubles hold all numbers. In a member whose arithmetic is single, they are floats: a sum, product or quotient of two
 * floats that is rounded to double and then to float is what float arithmetic gives.
 *
 * Macros: FEATURES of a sample, OUTPUTS, WIDTH (the most features after preprocessing), SAMPLE (type of samples),
 * PUBLIC(name) (names of public functions); CLASSES if outputs are classes; COLUMNS of a table, if it is one.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Fuse only where fma is written. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-tree-slp-vectorize")
#endif

#include "backends/cpu/micro/uk_math_body.h"
#include "data/prepare/rank_value.h"

enum { TILE = 240 };

/* ---- Data ------------------------------------------------------------------------------------------------------ */

typedef SAMPLE sample;

typedef enum number_type { BYTE, FLOAT, DOUBLE } number_type;

typedef enum step { STEP_NONE, STEP_SCALE, STEP_SHIFT, STEP_UNIT, STEP_RANK, STEP_BLEND } step;

typedef enum kernel {
    LAPLACE,
    GAUSSIAN,
    MATERN32,
    MATERN52,
    EXPPOWER,
    CAUCHY,
    RATIONAL_QUADRATIC,
    POLYNOMIAL,
    LINEAR,
    NTK,
    NNGP,
    LAPLACE_L1,
    EXPPOWER_L1,
    LPQ
} kernel;

/* A single model. */
typedef struct member {
    int centers, width;
    number_type type, weight_type; /* of centers and samples; of weights: FLOAT or DOUBLE */
    const void *points, *weights;  /* (centers, width), (centers, OUTPUTS) */
    const double *origin;          /* (width) subtracted from samples and centers; NULL for 0 */
    const double *norms;           /* (centers) squared norms of the centers; NULL where they are not needed */
    step step;                     /* preprocessing */
    const double *shift, *factor;  /* (FEATURES); STEP_SCALE: a single factor */
    const double *knots, *normal;  /* (FEATURES, MRC_RANK_KNOTS), (MRC_RANK_KNOTS) */
    const double *rank_weight;     /* (FEATURES) weights of the ranks in STEP_BLEND */
    const double *metric;          /* (FEATURES, width), or (width) if diagonal; NULL for none */
    bool diagonal;                 /* the metric is diagonal */
    bool wide;                     /* kernel and sums in double, otherwise in float */
    bool wide_kernel;              /* the kernel in double */
    bool exact;                    /* bytes: arguments of the kernel are exact integers */
    bool four;                     /* exact distances are sums of four chains */
    bool rounded;                  /* sums are rounded to float */
    kernel kernel;
    double a, b, bias; /* constants of the kernel; b of NTK and NNGP: 1 and 0 */
    int degree;        /* exponent of the polynomial; number of layers of NTK and NNGP */
    double norm;       /* p of sums |x_k - z_k|^p; 2: squared distance by products; 0: inner product */
} member;

/* A model, or the mean of several. */
typedef struct ensemble {
    int count;
    const member *const *members; /* (count) */
    const double *offset, *scale; /* (OUTPUTS) units of the targets; NULL for none */
    const double *curve;       /* transform of the targets: (OUTPUTS, 1) log, (2 OUTPUTS, knots) rank; NULL for none */
    int knots;                 /* 1: log */
    bool rounded;              /* scores are floats */
    double temperature;        /* of probabilities */
    double curvature;          /* of scores before probabilities; 0 for none */
    const double *class_shift; /* (OUTPUTS) added to curved scores; NULL for none */
} ensemble;

static const ensemble the_model;

/* Round to float. Through memory: gcc 12 forgets the rounding of neighbors that it joins in a vector. */
static double rounded(double value)
{
    volatile float single = (float)value;
    return (double)single;
}

/* ---- Preprocessing --------------------------------------------------------------------------------------------- */

/* Return the sum of 64 chains, which are added in order. */
static double sum_of_squares(const double *x, double divisor)
{
    double lanes[64] = {0}, sum = 0;
    for (int j = 0; j < FEATURES; j++) {
        double value = x[j] / divisor;
        lanes[j % 64] += value * value;
    }
    for (int j = 0; j < 64; j++) sum += lanes[j];
    return sum;
}

static void make_unit(double *x)
{
    double sum = sum_of_squares(x, 1), largest = 1;
    if (!(sum > 1e-290 && sum < 1e290)) {
        largest = 0;
        for (int j = 0; j < FEATURES; j++) largest = fmax(largest, fabs(x[j]));
        if (largest == 0) return;
        sum = sum_of_squares(x, largest);
    }
    double root = sqrt(sum);
    for (int j = 0; j < FEATURES; j++) x[j] = x[j] / largest / root;
}

static double step_value(const member *m, int j, double x)
{
    double value;
    switch (m->step) {
        case STEP_SCALE: return x * m->factor[0];
        case STEP_SHIFT: return (x - m->shift[j]) * m->factor[j];
        case STEP_RANK:
            return m->factor[j] > 0 ? x * m->factor[j] : mrc_rank_value(m->knots + j * MRC_RANK_KNOTS, m->normal, x);
        case STEP_BLEND:
            value = (x - m->shift[j]) * m->factor[j];
            if (!(m->rank_weight[j] > 0)) return value;
            return value + m->rank_weight[j] * mrc_rank_value(m->knots + j * MRC_RANK_KNOTS, m->normal, x);
        default: return x;
    }
}

static void apply_metric(const member *m, const double *x, double *out)
{
    for (int j = 0; j < m->width; j++) {
        out[j] = m->diagonal ? x[j] * m->metric[j] : 0;
        for (int k = 0; k < FEATURES && !m->diagonal; k++) out[j] += x[k] * m->metric[k * m->width + j];
    }
}

/* Preprocess a sample and round it to the type of the centers; return false if a value is not finite. */
static bool prepare(const member *m, const sample *x, double *out)
{
    double row[FEATURES];
    for (int j = 0; j < FEATURES; j++) {
        row[j] = (double)x[j];
        if (!isfinite(row[j])) return false;
        row[j] = step_value(m, j, row[j]);
    }
    if (m->step == STEP_UNIT) make_unit(row);
    if (m->metric) apply_metric(m, row, out);
    for (int j = 0; j < m->width; j++) {
        if (!m->metric) out[j] = row[j];
        if (m->type == FLOAT) out[j] = rounded(out[j]);
        if (!isfinite(out[j])) return false;
    }
    return true;
}

/* ---- Argument of the kernel ------------------------------------------------------------------------------------ */

/* Round to the arithmetic of the member. */
static double real(const member *m, double value)
{
    return m->wide ? value : (double)(float)value;
}

static void load_center(const member *m, int j, double *z)
{
    const size_t first = (size_t)j * (size_t)m->width;
    const int d = m->width;
    if (m->type == BYTE)
        for (int k = 0; k < d; k++) z[k] = ((const unsigned char *)m->points)[first + (size_t)k];
    else if (m->type == FLOAT)
        for (int k = 0; k < d; k++) z[k] = (double)((const float *)m->points)[first + (size_t)k];
    else
        memcpy(z, (const double *)m->points + first, (size_t)d * sizeof *z);
}

/* x.(z - origin) in one chain of fused multiply-adds; origin may be NULL. */
static double inner(const member *m, const double *x, const double *z, const double *origin)
{
    double wide = 0;
    float single = 0;
    if (m->wide) {
        for (int k = 0; k < m->width; k++) wide = fma(origin ? z[k] - origin[k] : z[k], x[k], wide);
        return wide;
    }
    for (int k = 0; k < m->width; k++)
        single = fmaf(origin ? (float)z[k] - (float)origin[k] : (float)z[k], (float)x[k], single);
    return (double)single;
}

/* x.z in double, which is exact for bytes. */
static double plain_inner(const member *m, const double *x, const double *z)
{
    double sum = 0;
    for (int k = 0; k < m->width; k++) sum += x[k] * z[k];
    return sum;
}

/* |x - z|^2 in double, from coordinates. */
static double exact_square(const member *m, const double *x, const double *z)
{
    double one = 0, four[4] = {0};
    for (int k = 0; k < m->width && !m->four; k++) one += (x[k] - z[k]) * (x[k] - z[k]);
    for (int k = 0; k < m->width && m->four; k++) four[k & 3] += (x[k] - z[k]) * (x[k] - z[k]);
    return m->four ? (four[0] + four[1]) + (four[2] + four[3]) : one;
}

/* Return the argument of the kernel for bytes, in integers. */
static double byte_argument(const member *m, const double *x, int j)
{
    const unsigned char *z = (const unsigned char *)m->points + (size_t)j * (size_t)m->width;
    int32_t sum = 0;
    for (int k = 0; k < m->width; k++) {
        int32_t value = (int32_t)x[k], difference = value - z[k];
        sum += m->norm == 2 ? difference * difference : m->norm == 1 ? abs(difference) : value * z[k];
    }
    return real(m, sum);
}

/* sum_k |x_k - z_k| */
static double distance_l1(const member *m, const double *x, const double *z)
{
    double wide = 0;
    float single = 0;
    if (m->wide) {
        for (int k = 0; k < m->width; k++) wide += fabs(x[k] - z[k]);
        return wide;
    }
    for (int k = 0; k < m->width; k++) single += fabsf((float)x[k] - (float)z[k]);
    return (double)single;
}

/* sum_k |x_k - z_k|^p */
static double sum_of_powers(const member *m, const double *x, const double *z)
{
    double sum = 0, p = m->norm;
    for (int k = 0; k < m->width; k++) {
        double size = fabs(x[k] - z[k]);
        sum += p == 0.5 ? power_1_2_f64(size, p) : p == 1.5 ? power_3_2_f64(size, p) : power_f64(size, p);
    }
    return real(m, sum);
}

/* Products are accurate enough where the distance is not small compared with the norms. */
static double nearness(const member *m)
{
    return m->wide ? 0x1p-20 : 0x1p-10;
}

/* |x - z|^2 by products, or from coordinates if x and z are too near for products. point: x - origin; norms: the sum of
   both squared norms. */
static double square(const member *m, const double *x, const double *z, const double *point, double norms)
{
    double dot = inner(m, point, z, m->origin), sum = real(m, norms);
    double value = m->wide ? fma(-2, dot, sum) : (double)fmaf(-2, (float)dot, (float)sum);
    return value > real(m, nearness(m) * sum) ? value : real(m, exact_square(m, x, z));
}

/* ---- Kernel values --------------------------------------------------------------------------------------------- */

static float value_f32(const member *m, float s)
{
    const float a = (float)m->a, b = (float)m->b;
    float u = a * sqrtf(s);
    u = u < 128.0f ? u : 128.0f;
    switch (m->kernel) {
        case LAPLACE: return exp_f32(a * sqrtf(s));
        case GAUSSIAN:
        case LAPLACE_L1: return exp_f32(a * s);
        case MATERN32: return (1 + u) * exp_f32(-u);
        case MATERN52: return fmaf(u, fmaf(u, 1.0f / 3, 1), 1) * exp_f32(-u);
        case CAUCHY: return 1 / fmaf(s, a, 1);
        case EXPPOWER:
        case EXPPOWER_L1:
            u = b * log_f32(a * s);
            u = u < 7 ? u : 7;
            return s > 0 ? exp_f32(-exp_f32(u)) : 1;
        default: return NAN; /* other kernels are evaluated in double */
    }
}

static double value_f64(const member *m, double s)
{
    const double a = m->a, b = m->b;
    double u = a * sqrt(s);
    u = u < 800.0 ? u : 800.0;
    if (isinf(s)) return 0;
    switch (m->kernel) {
        case LAPLACE: return exp_f64(a * sqrt(s));
        case GAUSSIAN:
        case LAPLACE_L1: return exp_f64(a * s);
        case MATERN32: return (1 + u) * exp_f64(-u);
        case MATERN52: return fma(u, fma(u, 1.0 / 3, 1), 1) * exp_f64(-u);
        case CAUCHY: return 1 / fma(s, a, 1);
        case RATIONAL_QUADRATIC: return exp_f64(b * log1p_f64(a * s));
        default: /* EXPPOWER, EXPPOWER_L1, LPQ */
            u = b * log_f64(a * s);
            u = u < 7 ? u : 7;
            return s > 0 ? exp_f64(-exp_f64(u)) : 1;
    }
}

/* (a s + b)^degree */
static double power_value(const member *m, double s)
{
    double wide = fma(m->a, s, m->b), wide_base = wide;
    float single = fmaf((float)m->a, (float)s, (float)m->b), base = single;
    for (int k = 1; k < m->degree; k++) wide *= wide_base, single *= base;
    return m->wide ? wide : (double)single;
}

/* Evaluate the layers of NTK and NNGP as the vector code does. */
static double angular(const member *m, double dot, double xx, double zz)
{
    const double variance = m->a, inverse_pi = 0x1.45f306dc9c883p-2;
    double s = dot + variance, t = s;
    bool same = dot == xx && dot == zz;
    for (int layer = 1; layer <= m->degree; layer++) {
        double z_norm = fma(layer, variance, zz), x_norm = fma(layer, variance, xx);
        double norms = same ? z_norm : sqrt(z_norm) * sqrt(x_norm);
        double c = same || norms == 0 ? 1.0 : s / norms;
        c = c > 1.0 ? 1.0 : c < -1.0 ? -1.0 : c;
        double k0 = fma(-inverse_pi, acos_f64(c), 1.0);
        double k1 = fma(c, k0, sqrt(fma(-c, c, 1.0)) * inverse_pi);
        s = fma(norms, k1, variance);
        t = fma(t, k0, s);
    }
    return m->b > 0 ? t : s;
}

/* Evaluate the layers by their definition (kernels/formulas.h), for rows that are nearly parallel. */
static double parallel(const member *m, double dot, double xx, double zz)
{
    const double pi = 3.14159265358979323846, variance = m->bias * m->bias;
    double s = dot + variance, t = s;
    bool same = dot == xx && dot == zz;
    for (int layer = 1; layer <= m->degree; layer++) {
        double x_norm = xx + layer * variance, z_norm = zz + layer * variance;
        double norms = same ? x_norm : sqrt(x_norm) * sqrt(z_norm);
        double c = same || norms == 0 ? 1 : s / norms;
        c = c > 1 ? 1 : c < -1 ? -1 : c;
        double k0 = 1 - acos(c) / pi, k1 = c * k0 + sqrt(1 - c * c) / pi;
        s = norms * k1 + variance;
        t = t * k0 + s;
    }
    return m->b > 0 ? t : s;
}

/* xx: squared norm of x */
static double angle_value(const member *m, const double *x, double xx, int j)
{
    double z[WIDTH];
    load_center(m, j, z);
    if (m->exact) return real(m, angular(m, plain_inner(m, x, z), xx, plain_inner(m, z, z)));
    double dot = inner(m, x, z, NULL), zz = m->norms[j];
    if (dot * dot <= (1 - nearness(m)) * (xx * zz)) return real(m, angular(m, dot, xx, zz));
    return real(m, parallel(m, plain_inner(m, x, z), plain_inner(m, x, x), plain_inner(m, z, z)));
}

/* K(x, z_j). point: x - origin, but x for NTK and NNGP; norm: squared norm of point. */
static double kernel_value(const member *m, const double *x, const double *point, double norm, int j)
{
    double z[WIDTH], s;
    if (m->kernel == NTK || m->kernel == NNGP) return angle_value(m, x, norm, j);
    if (m->exact) {
        s = byte_argument(m, x, j);
    } else {
        load_center(m, j, z);
        s = m->norm == 2   ? square(m, x, z, point, norm + m->norms[j])
            : m->norm == 1 ? distance_l1(m, x, z)
            : m->norm != 0 ? sum_of_powers(m, x, z)
                           : inner(m, x, z, NULL);
    }
    if (m->kernel == LINEAR) return s;
    if (m->kernel == POLYNOMIAL) return power_value(m, s);
    return m->wide_kernel ? real(m, value_f64(m, s)) : (double)value_f32(m, (float)s);
}

/* ---- Sums ------------------------------------------------------------------------------------------------------ */

/* sum + weights of center j times value, in one chain of fused multiply-adds. */
static void add_center(const member *m, int j, double value, double *sum)
{
    const size_t first = (size_t)j * OUTPUTS;
    const float *single = m->weights;
    const double *wide = m->weights;
    for (size_t c = 0; c < OUTPUTS; c++) {
        double weight = m->weight_type == FLOAT ? (double)single[first + c] : wide[first + c];
        sum[c] = m->wide ? fma(weight, value, sum[c]) : (double)fmaf((float)weight, (float)value, (float)sum[c]);
    }
}

/* f = sum_j w_j K(x, z_j) */
static void add_up(const member *m, const double *x, double *f)
{
    double point[WIDTH], norm = 0;
    for (int k = 0; k < m->width; k++) point[k] = real(m, x[k] - (m->origin ? m->origin[k] : 0));
    if (m->norms) norm = inner(m, point, point, NULL);
    if (m->exact) norm = plain_inner(m, x, x);
    for (int c = 0; c < OUTPUTS; c++) f[c] = 0;
    for (int first = 0; first < m->centers; first += TILE) {
        double sum[OUTPUTS] = {0};
        for (int j = first; j < m->centers && j < first + TILE; j++)
            add_center(m, j, kernel_value(m, x, point, norm, j), sum);
        for (int c = 0; c < OUTPUTS; c++) f[c] += sum[c];
    }
    for (int c = 0; c < OUTPUTS && m->rounded; c++) f[c] = rounded(f[c]);
}

/* ---- Predictions ----------------------------------------------------------------------------------------------- */

/* Return the value at x of the piecewise linear function through (from[k], to[k]), constant beyond. */
static double interpolate(const double *from, const double *to, int count, double x)
{
    int low = 0, high = count - 1;
    if (!(x > from[0])) return to[0];
    if (x >= from[high]) return to[high];
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (from[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return to[low] + (to[high] - to[low]) * ((x - from[low]) / (from[high] - from[low]));
}

/* Return output c in the units of the targets. */
static double leave_units(double value, int c)
{
    const double *curve = the_model.curve;
    const int knots = the_model.knots;
    if (!the_model.offset) return value;
    value = the_model.offset[c] + the_model.scale[c] * value;
    if (!curve) return value;
    if (knots == 1) return exp(value) - curve[c];
    return interpolate(curve + (2 * c + 1) * knots, curve + 2 * c * knots, knots, value);
}

static bool all_finite(const double *f)
{
    for (int c = 0; c < OUTPUTS; c++)
        if (!isfinite(f[c])) return false;
    return true;
}

static bool member_scores(const member *m, const sample *x, double *f)
{
    double row[WIDTH];
    if (!prepare(m, x, row)) return false;
    add_up(m, row, f);
    for (int c = 0; c < OUTPUTS; c++) f[c] = leave_units(f[c], c);
    return all_finite(f);
}

/* Computes the mean of the members; scores of a single model are rounded here. Returns false if a score is not
   finite. */
static bool scores(const sample *x, double *f)
{
    const int count = the_model.count;
    double one[OUTPUTS];
    if (count > 1)
        for (int c = 0; c < OUTPUTS; c++) f[c] = 0;
    for (int m = 0; m < count; m++) {
        if (!member_scores(the_model.members[m], x, one)) return false;
        for (int c = 0; c < OUTPUTS; c++)
            f[c] = count > 1 ? f[c] + 1.0 / count * one[c] : the_model.rounded ? rounded(one[c]) : one[c];
    }
    return all_finite(f);
}

int PUBLIC(predict)(const sample *x, double *f);
int PUBLIC(predict)(const sample *x, double *f)
{
    if (!scores(x, f)) return -1;
    for (int c = 0; c < OUTPUTS && the_model.rounded; c++) f[c] = rounded(f[c]);
    return all_finite(f) ? 0 : -1;
}

int PUBLIC(predict_rows)(long rows, const sample *x, double *f);
int PUBLIC(predict_rows)(long rows, const sample *x, double *f)
{
    for (long i = 0; i < rows; i++)
        if (PUBLIC(predict)(x + i * FEATURES, f + i * OUTPUTS) != 0) return -1;
    return 0;
}

#ifdef CLASSES

extern const char *const PUBLIC(labels)[];

int PUBLIC(classify)(const sample *x);
int PUBLIC(classify)(const sample *x)
{
    double f[OUTPUTS];
    int best = 0;
    if (!scores(x, f)) return -1;
    for (int c = 1; c < OUTPUTS; c++)
        if (f[c] > f[best]) best = c;
    return best;
}

/* Return the curved score. f is bounded, so that its product with the curvature is finite. */
static double curved(double f)
{
    const double most = 1e300;
    if (the_model.curvature == 0) return f;
    return asinh(the_model.curvature * (f > most ? most : f < -most ? -most : f)) / asinh(the_model.curvature);
}

int PUBLIC(probabilities)(const sample *x, double *p);
int PUBLIC(probabilities)(const sample *x, double *p)
{
    if (!scores(x, p)) return -1;
    for (int c = 0; c < OUTPUTS; c++) p[c] = curved(p[c]);
    for (int c = 0; c < OUTPUTS && the_model.class_shift; c++) p[c] += the_model.class_shift[c];
    double top = p[0], sum = 0;
    for (int c = 1; c < OUTPUTS; c++) top = p[c] > top ? p[c] : top;
    for (int c = 0; c < OUTPUTS; c++) {
        p[c] = exp((p[c] - top) / the_model.temperature);
        sum += p[c];
    }
    for (int c = 0; c < OUTPUTS; c++) p[c] /= sum;
    return 0;
}

#endif

#ifdef COLUMNS

#include "data/schema/date.h"
#include "data/schema/gaps_fill.h"
#include "data/table/cells/amount.h"

/* ---- Cells of a table ------------------------------------------------------------------------------------------ */

typedef enum kind { COLUMN_NUMBER, COLUMN_BOOLEAN, COLUMN_DATE, COLUMN_CATEGORY } kind;

typedef struct column {
    kind kind;
    bool has_missing, other; /* a feature for missing values; one for words that are not levels */
    int first;               /* first feature */
    const char *date;        /* order of a date, such as "d/m/Y"; NULL for an ISO date */
    char decimal;            /* decimal mark of a number with a unit or group marks; 0 for plain decimals */
    int unit;                /* unit of such a number */
    double mean, origin;     /* mean: replaces missing values; origin: subtracted before a value is rounded to float */
    /* levels of a category: words with one feature each (kept), then words that have only statistics, then NULL */
    const char *const *levels;
    int kept, statistics; /* kept: number of levels with a feature; statistics: number of features that are statistics
                             of the level */
    const double *values; /* (levels + 1, statistics) statistics of each level, then of missing values */
} column;

typedef struct table {
    const column *columns;      /* (COLUMNS) */
    const char *const *missing; /* words for missing values, then NULL */
    int gaps;                   /* number of columns whose missing values are imputed from the others; 0: means are
                                   used */
    const int *filled;          /* (gaps) indices of the cells of these columns */
    const double *deviations, *precision; /* (gaps), (gaps, gaps) */
} table;

static const table the_table;

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static int small_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool same_word(const char *word, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (small_letter(word[i]) != small_letter(text[i]) || word[i] == 0) return false;
    return word[length] == 0;
}

static bool is_missing(const char *text, size_t length)
{
    for (int i = 0; the_table.missing[i]; i++)
        if (same_word(the_table.missing[i], text, length)) return true;
    return length == 0;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

/* Reads a decimal number and nothing else, by strtod: the decimal point of the locale must be a point. */
static bool read_decimal(const char *text, const char *end, double *value)
{
    const char *at = text, *first;
    at += at < end && (*at == '-' || *at == '+');
    first = at;
    at = skip_digits(at, end);
    bool any = at > first;
    if (at < end && *at == '.') {
        first = at + 1;
        at = skip_digits(first, end);
        any = any || at > first;
    }
    if (any && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '-' || *at == '+');
        first = at;
        at = skip_digits(at, end);
        any = at > first;
    }
    if (!any || at != end) return false;
    *value = strtod(text, NULL);
    return true;
}

static bool is_missing_number(double value)
{
    for (int i = 0; the_table.missing[i]; i++) {
        const char *word = the_table.missing[i];
        double number;
        if (read_decimal(word, word + strlen(word), &number) && number == value) return true;
    }
    return false;
}

/* Reads a number or date in the notation of its column. */
static bool read_number(const column *of, const char *text, const char *end, double *value)
{
    char plain[MRC_AMOUNT_CHARS];
    if (of->date) return mrc_read_date_in(of->date, text, end, value);
    if (of->kind == COLUMN_DATE) return mrc_read_date(text, end, value);
    if (!of->decimal) return read_decimal(text, end, value);
    int unit = mrc_amount_text(text, end, of->decimal, plain);
    return unit >= 0 && mrc_unit_fits(unit, of->unit) && read_decimal(plain, plain + strlen(plain), value);
}

/* Reads a cell as a float, NAN if it is missing; returns false if the text is not a valid value of its column. */
static bool read_value(const column *of, const char *text, const char *end, float *cell)
{
    double value;
    size_t length = (size_t)(end - text);
    *cell = NAN;
    if (of->kind == COLUMN_BOOLEAN && (same_word("true", text, length) || same_word("false", text, length))) {
        *cell = length == 4 ? 1 : 0;
        return true;
    }
    if (!read_number(of, text, end, &value)) return is_missing(text, length);
    if (of->kind != COLUMN_DATE && is_missing_number(value)) return true;
    *cell = (float)(value - of->origin);
    return !isinf(*cell);
}

static void encode_word(const column *of, const char *text, size_t length, double *to)
{
    int level = 0, last = of->kept + of->other + of->has_missing;
    bool missing = is_missing(text, length), known;
    for (; of->levels[level]; level++)
        if (strlen(of->levels[level]) == length && memcmp(of->levels[level], text, length) == 0) break;
    known = of->levels[level] || (missing && of->has_missing);
    if (of->levels[level] && level < of->kept)
        to[level] = 1;
    else if (of->levels[level] || (!missing && of->other))
        to[of->kept] = 1;
    else if (missing && of->has_missing)
        to[of->kept + of->other] = 1;
    for (int k = 0; k < of->statistics && known; k++) to[last + k] = rounded(of->values[level * of->statistics + k]);
}

/* Compute values of cells. Missing values become the means of their columns, or are imputed from the other numbers of
   the row. */
static void fill_gaps(const float *cells, double *values)
{
    double z[MRC_GAPS_COLUMNS];
    int64_t missing[MRC_GAPS_COLUMNS + 1], count = 0;
    for (int c = 0; c < COLUMNS; c++) values[c] = isnan(cells[c]) ? the_table.columns[c].mean : (double)cells[c];
    for (int i = 0; i < the_table.gaps; i++) {
        int c = the_table.filled[i];
        missing[count] = i;
        count += isnan(cells[c]) ? 1 : 0;
        z[i] = isnan(cells[c]) ? 0 : (values[c] - the_table.columns[c].mean) * (1 / the_table.deviations[i]);
    }
    if (count == 0) return;
    mrc_gaps_fill(the_table.gaps, the_table.precision, missing, count, z);
    for (int64_t k = 0; k < count; k++) {
        int64_t i = missing[k];
        int c = the_table.filled[i];
        values[c] = fmin(fmax(the_table.columns[c].mean + the_table.deviations[i] * z[i], -FLT_MAX), FLT_MAX);
    }
}

static void encode_value(const column *of, bool missing, double value, double *to)
{
    *to++ = rounded(value);
    if (of->kind == COLUMN_DATE) {
        double sine, cosine;
        mrc_date_season(value + of->origin, &sine, &cosine);
        *to++ = rounded(sine);
        *to++ = rounded(cosine);
    }
    if (of->has_missing) *to = missing ? 1 : 0;
}

extern const char *const PUBLIC(columns)[];

int PUBLIC(encode)(const char *const *cells, double *x);
int PUBLIC(encode)(const char *const *cells, double *x)
{
    float numbers[COLUMNS];
    double values[COLUMNS];
    for (int j = 0; j < FEATURES; j++) x[j] = 0;
    for (int c = 0; c < COLUMNS; c++) {
        const column *of = &the_table.columns[c];
        const char *text = cells[c] ? cells[c] : "", *end = text + strlen(text);
        numbers[c] = 0;
        while (is_space(*text)) text++;
        while (end > text && is_space(end[-1])) end--;
        if (of->kind == COLUMN_CATEGORY)
            encode_word(of, text, (size_t)(end - text), x + of->first);
        else if (!read_value(of, text, end, &numbers[c]))
            return c + 1;
    }
    fill_gaps(numbers, values);
    for (int c = 0; c < COLUMNS; c++) {
        const column *of = &the_table.columns[c];
        if (of->kind != COLUMN_CATEGORY) encode_value(of, isnan(numbers[c]), values[c], x + of->first);
    }
    return 0;
}

int PUBLIC(predict_cells)(const char *const *cells, double *f);
int PUBLIC(predict_cells)(const char *const *cells, double *f)
{
    double x[FEATURES];
    int wrong = PUBLIC(encode)(cells, x);
    return wrong != 0 ? wrong : PUBLIC(predict)(x, f);
}

#endif
