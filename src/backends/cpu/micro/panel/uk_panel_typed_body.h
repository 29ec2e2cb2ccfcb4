/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The elementwise work that is the same in float and in double. uk_panel_body.h includes this file once for each type,
 * after defining REAL, TYPED(name) (name of a function), MATH(name) (name of a function of uk_math_body.h), SQRT, FMA,
 * NOTHING (exp(-NOTHING) is 0) and IS_F32. This file undefines these macros at the end.
 *
 *   norms_r = sum_k v_kr^2                          one FMA chain, as in the product micro-kernels
 *   powers  = sum_k |x_k - z_k|^p                   exp(p log |x_k - z_k|) in double, or a square root if p is 1/2 or
 *                                                   3/2; one chain of sums
 *   r^2     = (|x|^2 + |z|^2) - 2 x.z               one FMA; exactly 0 for equal rows; clamped at 0
 *   kernel values of r^2 or x.z                     the forms of kernels/formulas.h
 */

static void TYPED(center)(int64_t d, const REAL *restrict origin, REAL *restrict row)
{
    for (int64_t k = 0; k < d; k++) row[k] -= origin[k];
}

/* Inlined with the widths of panels and MOST_CHAINS as constants, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void TYPED(chains_of)(int64_t depth, int64_t width, const REAL *restrict a,
                                                                   const REAL *restrict b, int64_t ld, REAL *restrict c)
{
    REAL sum[MOST_CHAINS];
    for (int64_t j = 0; j < width; j++) sum[j] = 0;
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t j = 0; j < width && k + ROWS_AHEAD < depth; j += 64 / (int64_t)sizeof(REAL))
            __builtin_prefetch(b + (k + ROWS_AHEAD) * ld + j);
        for (int64_t j = 0; j < width; j++) sum[j] = FMA(a[k], b[k * ld + j], sum[j]);
    }
    for (int64_t j = 0; j < width; j++) c[j] = sum[j];
}

/* Compute sums of products, one FMA chain each. */
static void TYPED(chains)(int64_t depth, int64_t width, const REAL *restrict a, const REAL *restrict b, int64_t ld,
                          REAL *restrict c)
{
    switch (width) {
        case 8: TYPED(chains_of)(depth, 8, a, b, ld, c); break;
        case 16: TYPED(chains_of)(depth, 16, a, b, ld, c); break;
        case 32: TYPED(chains_of)(depth, 32, a, b, ld, c); break;
        case MOST_CHAINS: TYPED(chains_of)(depth, MOST_CHAINS, a, b, ld, c); break;
        default: TYPED(chains_of)(depth, width, a, b, ld, c);
    }
}

static void TYPED(add)(int64_t d, const REAL *restrict row, double *restrict sum)
{
    for (int64_t k = 0; k < d; k++) sum[k] += (double)row[k];
}

/* Return a bit mask of the nonzero values among up to 64. */
static inline uint64_t TYPED(nonzeros)(int64_t count, const REAL *row)
{
    uint64_t bits = 0;
    for (int64_t k = 0; k < count; k++) bits |= (uint64_t)(row[k] != 0) << k;
    return bits;
}

/* Add a row to the statistics of groups.c: before_k, and level_k, the only nonzero value of feature k, or NaN if the
   feature has several nonzero values. */
static void TYPED(scan)(int64_t d, const REAL *restrict row, int32_t *restrict before, REAL *restrict level)
{
    int32_t last = -1;
    for (int64_t first = 0; first < d; first += 64) {
        uint64_t bits = TYPED(nonzeros)(d - first < 64 ? d - first : 64, row + first);
        for (; bits; bits &= bits - 1) {
            int32_t k = (int32_t)first + __builtin_ctzll(bits);
            before[k] = before[k] > last ? before[k] : last;
            level[k] = level[k] == 0 || level[k] == row[k] ? row[k] : (REAL)NAN;
            last = k;
        }
    }
}

/* Write a row in the layout with groups: its values, then the index of the nonzero feature of every group. */
static void TYPED(compress)(int64_t d, int64_t values, int64_t groups, const int32_t *restrict value_at,
                            const int32_t *restrict group_at, const REAL *restrict row, REAL *restrict out)
{
    for (int64_t k = 0; k < values; k++) out[k] = 0;
    for (int64_t k = 0; k < groups; k++) out[values + k] = -1;
    for (int64_t first = 0; first < d; first += 64) {
        uint64_t bits = TYPED(nonzeros)(d - first < 64 ? d - first : 64, row + first);
        for (; bits; bits &= bits - 1) {
            int64_t k = first + __builtin_ctzll(bits);
            out[value_at[k]] = row[k];
            out[group_at[k]] = (REAL)k;
        }
    }
}

/* Inlined with constant widths, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void TYPED(sqnorms_of)(int64_t depth, int64_t width, const REAL *panel,
                                                                    REAL *norms)
{
    REAL sum[MOST_WIDTH];
    for (int64_t r = 0; r < width; r++) sum[r] = 0;
    for (int64_t k = 0; k < depth; k++)
        for (int64_t r = 0; r < width; r++) sum[r] = FMA(panel[k * width + r], panel[k * width + r], sum[r]);
    for (int64_t r = 0; r < width; r++) norms[r] = sum[r];
}

static void TYPED(sqnorms)(int64_t depth, int64_t width, const REAL *panel, REAL *norms)
{
    switch (width) {
        case 4: TYPED(sqnorms_of)(depth, 4, panel, norms); break;
        case 6: TYPED(sqnorms_of)(depth, 6, panel, norms); break;
        case 8: TYPED(sqnorms_of)(depth, 8, panel, norms); break;
        case 12: TYPED(sqnorms_of)(depth, 12, panel, norms); break;
        case 16: TYPED(sqnorms_of)(depth, 16, panel, norms); break;
        case 32: TYPED(sqnorms_of)(depth, 32, panel, norms); break;
        default: TYPED(sqnorms_of)(depth, width, panel, norms); break; /* any number of rows up to MRC_FEW_ROWS */
    }
}

/* Compute squared distances from inner products and norms. Returns whether some are so small that cancellation may have
   made them inaccurate. */
static bool TYPED(sqdist)(int64_t rows, int64_t width, REAL *restrict tile, const REAL *restrict x_norms,
                          const REAL *restrict z_norms, REAL near)
{
    int suspicious = 0;
    for (int64_t j = 0; j < rows; j++) {
        REAL *row = tile + j * width;
        for (int64_t i = 0; i < width; i++) {
            REAL sum = x_norms[i] + z_norms[j];
            REAL square = FMA(-2, row[i], sum);
            suspicious |= !(square > near * sum);
            row[i] = square > 0 ? square : 0;
        }
    }
    return suspicious != 0;
}

/* Compute nr chains of sums over the features for each row of a. The function `power` is inlined, so that the loop over
   the width is vectorized. */
static inline __attribute__((always_inline)) void TYPED(powers_of)(power_of power, int64_t depth, double p, int64_t mr,
                                                                   int64_t nr, const REAL *restrict a,
                                                                   const REAL *restrict b, REAL *restrict c)
{
    for (int64_t i = 0; i < mr; i++) {
        double sum[MOST_WIDTH] = {0};
        for (int64_t k = 0; k < depth; k++)
            for (int64_t j = 0; j < nr; j++) sum[j] += power(fabs((double)b[k * nr + j] - (double)a[k * mr + i]), p);
        for (int64_t j = 0; j < nr; j++) c[i * nr + j] = (REAL)sum[j];
    }
}

/* Call powers_of with constant widths, so that loops over the width have a known length. */
static inline __attribute__((always_inline)) void TYPED(powers_by)(power_of power, int64_t depth, double p, int64_t mr,
                                                                   int64_t nr, const REAL *a, const REAL *b, REAL *c)
{
    switch (nr) {
        case 4: TYPED(powers_of)(power, depth, p, mr, 4, a, b, c); break;
        case 8: TYPED(powers_of)(power, depth, p, mr, 8, a, b, c); break;
        case 16: TYPED(powers_of)(power, depth, p, mr, 16, a, b, c); break;
        case 32: TYPED(powers_of)(power, depth, p, mr, 32, a, b, c); break;
        default: TYPED(powers_of)(power, depth, p, mr, nr, a, b, c); break;
    }
}

/* Sum the powers of differences. The exponents 1/2 and 3/2 are roots, which are faster and more accurate than exp and
   log. */
static void TYPED(powers)(int64_t depth, double p, int64_t mr, int64_t nr, const REAL *a, const REAL *b, REAL *c)
{
    if (p == 1.5)
        TYPED(powers_by)(power_3_2_f64, depth, p, mr, nr, a, b, c);
    else if (p == 0.5)
        TYPED(powers_by)(power_1_2_f64, depth, p, mr, nr, a, b, c);
    else
        TYPED(powers_by)(power_f64, depth, p, mr, nr, a, b, c);
}

static void TYPED(few_sums)(int64_t count, const REAL *restrict weights, const REAL *restrict values,
                            REAL *restrict sums)
{
    REAL sum[16] = {0};
    for (int64_t j = 0; j < count; j++)
        for (int k = 0; k < 16; k++) sum[k] = FMA(weights[j * 16 + k], values[j], sum[k]);
    memcpy(sums, sum, sizeof sum);
}

/* The loop selects values without branches, so that it is vectorized over the columns. A NaN never replaces a value,
   because comparisons with NaN are false. */
static void TYPED(nearest)(int64_t rows, int64_t width, const REAL *restrict tile, REAL *restrict best,
                           int32_t *restrict at)
{
    for (int64_t i = 0; i < width; i++) best[i] = tile[i], at[i] = 0;
    for (int64_t j = 1; j < rows; j++)
        for (int64_t i = 0; i < width; i++) {
            bool less = tile[j * width + i] < best[i];
            best[i] = less ? tile[j * width + i] : best[i];
            at[i] = less ? (int32_t)j : at[i];
        }
}

/* Inlined with constant widths for complete tiles. */
static inline __attribute__((always_inline)) void TYPED(blend_rows)(int64_t rows, int64_t columns, int64_t width,
                                                                    const REAL *restrict tile, REAL alpha, REAL beta,
                                                                    REAL *restrict c, int64_t down)
{
    for (int64_t i = 0; i < rows; i++, c += down, tile += width) {
        if (beta == 0)
            for (int64_t j = 0; j < columns; j++) c[j] = alpha * tile[j];
        else
            for (int64_t j = 0; j < columns; j++) c[j] = FMA(alpha, tile[j], beta * c[j]);
    }
}

static void TYPED(blend)(int64_t rows, int64_t columns, int64_t width, const REAL *restrict tile, REAL alpha, REAL beta,
                         REAL *restrict c, int64_t down, int64_t across)
{
    if (across != 1) { /* column by column, because only the columns of C may be contiguous */
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) {
                REAL *to = &c[i * down + j * across];
                *to = beta == 0 ? alpha * tile[i * width + j] : FMA(alpha, tile[i * width + j], beta * *to);
            }
    } else if (columns == 8 && width == 8) {
        TYPED(blend_rows)(rows, 8, 8, tile, alpha, beta, c, down);
    } else if (columns == 16 && width == 16) {
        TYPED(blend_rows)(rows, 16, 16, tile, alpha, beta, c, down);
    } else if (columns == 32 && width == 32) {
        TYPED(blend_rows)(rows, 32, 32, tile, alpha, beta, c, down);
    } else {
        TYPED(blend_rows)(rows, columns, width, tile, alpha, beta, c, down);
    }
}

/* ---- Kernel values ----------------------------------------------------------------------------------------------- */

/* Return whether no value is +infinity or NaN. */
static bool TYPED(finite)(int64_t count, const REAL *values)
{
    int infinite = 0;
    for (int64_t i = 0; i < count; i++) infinite |= !(values[i] < (REAL)INFINITY);
    return !infinite;
}

/* Limit an exponent to NOTHING: exp(-NOTHING) is already 0, and larger arguments would overflow in exp. */
static inline REAL TYPED(cap)(REAL u)
{
    return u < NOTHING ? u : NOTHING;
}

#define EXP   MATH(exp)
#define LOG   MATH(log)
#define LOG1P MATH(log1p)
#define CAP   TYPED(cap)

/* Expand MRC_VECTOR_FORMS into the cases of `map`: a loop over the values for each formula in this type. Kernels
   without a case leave the values unchanged. This is correct for SAME, whose value is the argument; for all other
   kernels without a case, `map` must not be called. */
#define FORM(ID, TYPES, first, second, value) FORM_##TYPES(ID, value)
#define FORM_ANGLE(ID, value)                 /* angular kernels have their own function */
#define FORM_SAME(ID, value)
#define FORM_FLOAT(ID, value)                 \
    case MRC_KERNEL_##ID:                     \
        for (int64_t i = 0; i < count; i++) { \
            REAL s = values[i], u = 0;        \
            (void)u;                          \
            values[i] = value;                \
        }                                     \
        break;
#if IS_F32
#define FORM_DOUBLE(ID, value)
#else
#define FORM_DOUBLE(ID, value) FORM_FLOAT(ID, value)
#endif
#define FORM_POWER(ID, value) \
    case MRC_KERNEL_##ID: TYPED(power)(map->degree, a, b, count, values); break;

/* values = (a values + b)^degree by repeated multiplication; each product is rounded. */
static inline void TYPED(power)(int degree, REAL a, REAL b, int64_t count, REAL *restrict values)
{
    for (int64_t first = 0; first < count; first += POWER_STRIP) {
        int64_t end = first + POWER_STRIP < count ? first + POWER_STRIP : count;
        REAL base[POWER_STRIP] = {0};
        for (int64_t i = first; i < end; i++) values[i] = base[i - first] = FMA(a, values[i], b);
        for (int k = 1; k < degree; k++)
            for (int64_t i = first; i < end; i++) values[i] *= base[i - first];
    }
}

static void TYPED(map)(const mrc_map *map, int64_t count, REAL *restrict values)
{
    const REAL a = (REAL)map->a, b = (REAL)map->b;
    switch (map->id) {
        MRC_VECTOR_FORMS(FORM)
        default: break;
    }
}

#undef REAL
#undef TYPED
#undef MATH
#undef SQRT
#undef FMA
#undef NOTHING
#undef IS_F32
#undef EXP
#undef LOG
#undef LOG1P
#undef CAP
#undef FORM
#undef FORM_ANGLE
#undef FORM_SAME
#undef FORM_FLOAT
#undef FORM_DOUBLE
#undef FORM_POWER
