/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro: micro-kernels, stateless functions on packed tiles, one instruction set each. They allocate
 * nothing and know no threads. ukernels.inc lists them all; a listed one is declared, selectable and thereby tested
 * (conformance runs every ISA).
 *
 * A packed panel of `width` rows stores them interleaved, value k of row r at panel[k * width + r], so that a vector
 * holds the same feature of neighbouring rows. Missing rows are zeros.
 *
 * The contract that makes results the same bits on every instruction set, in every batch and at every tile position:
 * an inner product is ONE chain of fused multiply-adds over k = 0, 1, ..., starting from 0. Products and norms both
 * follow it, so a row's product with an equal row equals its squared norm exactly. A sum of absolute differences is one
 * chain of sums over k = 0, 1, ..., each difference rounded once.
 */
#ifndef MRC_BACKENDS_CPU_MICRO_UKERNELS_H
#define MRC_BACKENDS_CPU_MICRO_UKERNELS_H

#include "core/cpuinfo.h"
#include "kernels/kernel.h"

/* C (mr, nr), row i at c + i * nr:  C_ij = sum_k a[k * mr + i] * b[k * nr + j] */
typedef void mrc_gemm_f32_fn(int64_t depth, const float *a, const float *b, float *c);
typedef void mrc_gemm_f64_fn(int64_t depth, const double *a, const double *b, double *c);

/* Sums of absolute differences: the same with C_ij = sum_k |b[k * nr + j] - a[k * mr + i]|. Functions of that type. Of
   bytes, exactly: value k of row r of a panel is at panel[((k / 8) * width + r) * 8 + k % 8], zeros behind the last. */
typedef void mrc_sad_u8_fn(int64_t groups, const void *a, const void *b, float *c);

/*
 * Packed rows in which a group of neighbouring features that has at most one value other than 0 takes one place, and a
 * second one for the number of that feature, -1 if there is none. A row has its `values` first, then the numbers of its
 * groups. lengths: (count, 2), how many features of their own and how many groups follow each other. For sums of
 * differences, values of a group are positive, and one feature's are all the same.
 */
typedef struct mrc_runs {
    const int32_t *lengths;
    int64_t count, values;
} mrc_runs;

/* The products of such panels, or l1: sums of absolute differences, to the bit what they are of all features. */
typedef void mrc_groups_f32_fn(bool l1, const mrc_runs *runs, const float *a, const float *b, float *c);
typedef void mrc_groups_f64_fn(bool l1, const mrc_runs *runs, const double *a, const double *b, double *c);

/*
 * Products of bytes, exactly, with `group` neighbouring features of a row together: value k of row r of a panel is at
 * panel[((k / group) * width + r) * group + k % group]. group 2: int16 values 0 .. 255 on both sides. group 4: bytes,
 * a holds value - 128 (signed), b the value (unsigned), and start_j = 128 * sum of b's row j undoes the shift. group
 * 64: unsigned bytes on both sides, a in groups of 64 and b in groups of 4, features padded with zeros to a multiple of
 * 64. start is 0 for groups 2 and 64. `groups` counts the 32-bit words of a packed row: 16 in a group of 64, else 1.
 */
typedef void mrc_dot_u8_fn(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c);

/*
 * Products for few rows of X with `count` (1 .. lanes) rows of Z that lie ld apart, not packed: z_j = row j - origin,
 *   dots[i * stride + j] = sum_k z_jk x[k * width + i]  (i < width),   norms[j] = sum_k z_jk^2
 * All lanes are written; those from count on repeat the last row.
 */
typedef void mrc_few_f32_fn(int64_t depth, int64_t count, const float *z, int64_t ld, const float *origin,
                            int64_t width, const float *x, float *dots, int64_t stride, float *norms);
typedef void mrc_few_f64_fn(int64_t depth, int64_t count, const double *z, int64_t ld, const double *origin,
                            int64_t width, const double *x, double *dots, int64_t stride, double *norms);

/* sums[i * stride + j] = sum_k |row_jk - x[k * width + i]|: the same for absolute differences. */
typedef void mrc_few_l1_f32_fn(int64_t depth, int64_t count, const float *z, int64_t ld, int64_t width, const float *x,
                               float *sums, int64_t stride);
typedef void mrc_few_l1_f64_fn(int64_t depth, int64_t count, const double *z, int64_t ld, int64_t width,
                               const double *x, double *sums, int64_t stride);

/*
 * Values (panels * mr, nr) of pairs, one for each center and row of X, summed with the signs of their differences in
 * each feature: sums[k * nr + i] = sum_j values[j * nr + i] sign(x[k * nr + i] - z_jk), one chain over j. Panels of the
 * sums of differences: z of `panels` times mr centers one after the other, x of nr rows. sign(0) = 0.
 */
typedef void mrc_signs_f32_fn(int64_t depth, int64_t panels, const float *z, const float *x, const float *values,
                              float *sums);
typedef void mrc_signs_f64_fn(int64_t depth, int64_t panels, const double *z, const double *x, const double *values,
                              double *sums);

/*
 * Terms of one feature over rows of weights, `columns` (a multiple of 64) apart from each other by ld, of which those
 * of the list take part: x[r] belongs to row which[r] of v, z[j] to column j.
 *   sums[l] (16) = sum over r < rows, j = l (mod 16), of v[which[r] * ld + j] t,   t = |x[r] - z[j]|^norm, norm 1 or 2
 * rest: t less |z[j]|^norm, what a row adds to that of x = 0. Each of 64 chains of FMAs has every 64th column of one
 * row after the other; four of them make a sum, as two pairs.
 */
typedef void mrc_features_f32_fn(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which,
                                 const float *v, int64_t ld, const float *x, const float *z, float *sums);
typedef void mrc_features_f64_fn(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which,
                                 const double *v, int64_t ld, const double *x, const double *z, double *sums);

/*
 * Products of stored rows, float or (half) binary16, with n outputs, 1 .. group; from[i] points to row i.
 *   dots   sums[r * stride + 16 j + l] += sum over k = l (mod 16), k < count, of row_r[k] v_j[k]; count a multiple of
 *          16, v packed: v_j[k] at v[(k / 16) * 16 n + 16 j + k % 16]
 *   sums   out[j * strip + k] = sum_i row_i[first + k] g[i * n + j], k < strip, one chain over the rows
 */
typedef void mrc_rows_dots_fn(bool half, int n, int64_t rows, int64_t count, const void *const *from, const float *v,
                              float *sums, int64_t stride);
typedef void mrc_rows_sums_fn(bool half, int n, int64_t rows, const void *const *from, int64_t first, const float *g,
                              float *out);

/* A kernel function as vectors compute it: a row of MRC_VECTOR_FORMS (kernels/formulas.h) with its constants. */
typedef struct mrc_map {
    int32_t id; /* 0: it has none, or not for these parameters: the scalar formula is used */
    int degree; /* of a power; layers of an angular kernel */
    double a, b;
    bool in_float; /* in float too: there is such a form, and its constants are floats */
} mrc_map;

mrc_map mrc_map_for(const mercer_kernel *kernel);

/* Elementwise work on panels and tiles, one set per instruction set. */
typedef struct mrc_panel_ops {
    /* panel[k * width + r] = rows[r * ld + k] */
    void (*interleave_f32)(int64_t depth, int64_t width, const float *rows, int64_t ld, float *panel);
    void (*interleave_f64)(int64_t depth, int64_t width, const double *rows, int64_t ld, double *panel);
    /* row[k] -= origin[k] */
    void (*center_f32)(int64_t d, const float *origin, float *row);
    void (*center_f64)(int64_t d, const double *origin, double *row);
    /* For each value k of a row that is not 0: before[k] becomes at least the number of the one before it, and level[k]
       the value if it was 0, NaN if it was another. */
    void (*scan_f32)(int64_t d, const float *row, int32_t *before, float *level);
    void (*scan_f64)(int64_t d, const double *row, int32_t *before, double *level);
    /* A row of mrc_runs: values that are not 0 go to out[value_at[k]], and their numbers to out[group_at[k]]; the other
       values are 0, the other numbers -1. */
    void (*compress_f32)(int64_t d, int64_t values, int64_t groups, const int32_t *value_at, const int32_t *group_at,
                         const float *row, float *out);
    void (*compress_f64)(int64_t d, int64_t values, int64_t groups, const int32_t *value_at, const int32_t *group_at,
                         const double *row, double *out);
    /* norms[r] = sum_k panel[k * width + r]^2; width <= 32 */
    void (*sqnorms_f32)(int64_t depth, int64_t width, const float *panel, float *norms);
    void (*sqnorms_f64)(int64_t depth, int64_t width, const double *panel, double *norms);
    /* tile (rows, width) of products becomes squared distances, clamped at 0; true if some pair is closer than the
       products can tell: distance^2 <= near * (x + z), or not a number. */
    bool (*sqdist_f32)(int64_t rows, int64_t width, float *tile, const float *x_norms, const float *z_norms,
                       float near);
    bool (*sqdist_f64)(int64_t rows, int64_t width, double *tile, const double *x_norms, const double *z_norms,
                       double near);
    /* One row of d bytes into a panel of bytes: row r of width, groups of 2 int16, 4, 8 or 64 bytes; flip is added to
       every byte (group 4). The sum and the sum of squares come back. The panel's groups beyond d are left alone. */
    void (*pack_u8)(int64_t d, int group, int64_t width, int64_t r, uint8_t flip, const uint8_t *row, void *panel,
                    int32_t *sum, int32_t *squares);
    /* sum_k x_k z_k of bytes, exactly; and sum_k |x_k - z_k| */
    int32_t (*inner_u8)(int64_t d, const uint8_t *x, const uint8_t *z);
    int32_t (*sad_u8)(int64_t d, const uint8_t *x, const uint8_t *z);
    /* C (mr, nr) of packed panels as in a product: C_ij = sum_k |b[k * nr + j] - a[k * mr + i]|^power, 0 < power < 2,
       in double, rounded once; nr <= 32 */
    void (*powers_f32)(int64_t depth, double power, int64_t mr, int64_t nr, const float *a, const float *b, float *c);
    void (*powers_f64)(int64_t depth, double power, int64_t mr, int64_t nr, const double *a, const double *b,
                       double *c);
    /* sums[k] (16) = sum_j weights[j * 16 + k] values[j], one chain over j < count */
    void (*few_sums_f32)(int64_t count, const float *weights, const float *values, float *sums);
    void (*few_sums_f64)(int64_t count, const double *weights, const double *values, double *sums);
    /* Halves to floats, exactly, and floats to the nearest halves, ties to even. */
    void (*from_half)(int64_t count, const uint16_t *from, float *to);
    void (*to_half)(int64_t count, const float *from, uint16_t *to);
    /* sum[k] += row[k] */
    void (*add_f32)(int64_t d, const float *row, double *sum);
    void (*add_f64)(int64_t d, const double *row, double *sum);
    /* exact integer products and norms to squared distances */
    void (*sqdist_u8)(int64_t rows, int64_t width, const int32_t *dots, const int32_t *x_norms, const int32_t *z_norms,
                      float *out);
    /* Smallest of each column and its row, the first of equals; rows >= 1: of squared distances, and of those that
       integer products and norms make */
    void (*nearest_f32)(int64_t rows, int64_t width, const float *tile, float *best, int32_t *at);
    void (*nearest_f64)(int64_t rows, int64_t width, const double *tile, double *best, int32_t *at);
    void (*nearest_u8)(int64_t rows, int64_t width, const int32_t *dots, const int32_t *x_norms, const int32_t *z_norms,
                       int32_t *best, int32_t *at);
    /* squared distances or products to kernel values, in place; the map is in_float */
    void (*map_f32)(const mrc_map *map, int64_t count, float *values);
    /* the same evaluated in double, of a map that is not angular; values are finite, and not negative for a function of
       the distance */
    void (*map_f64)(const mrc_map *map, int64_t count, double *values);
    void (*map_wide_f32)(const mrc_map *map, int64_t count, float *values);
    /* no value is infinite or not a number */
    bool (*finite_f32)(int64_t count, const float *values);
    bool (*finite_f64)(int64_t count, const double *values);
    /* c[i * down + j * across] = alpha tile[i * width + j] + beta c[...], fused, for i < rows, j < columns; beta == 0
       does not read c */
    void (*blend_f32)(int64_t rows, int64_t columns, int64_t width, const float *tile, float alpha, float beta,
                      float *c, int64_t down, int64_t across);
    void (*blend_f64)(int64_t rows, int64_t columns, int64_t width, const double *tile, double alpha, double beta,
                      double *c, int64_t down, int64_t across);
    /* c[j] = sum_k a[k] b[k * ld + j] for j < width <= 64, each one chain of FMAs over k < depth, as in a product */
    void (*chains_f32)(int64_t depth, int64_t width, const float *a, const float *b, int64_t ld, float *c);
    void (*chains_f64)(int64_t depth, int64_t width, const double *a, const double *b, int64_t ld, double *c);
    /* L X = X for packed columns, x[j * width + r] of column r, width <= 32: L_jk (k <= j) at l[j * down + k * across],
       x_j = (x_j - L_j0 x_0 - L_j1 x_1 - ...) / L_jj, one chain of FMAs */
    void (*solve)(int64_t n, int64_t width, const double *l, int64_t down, int64_t across, double *x);
    /* ntk or nngp of inner products with one row of squared norm `down`; the other norms are across[i] */
    void (*angular)(const mrc_map *map, int64_t count, const double *dots, const double *across, double down,
                    double *out);
} mrc_panel_ops;

/* What one instruction set uses: each entry is the best listed that it supports. */
typedef struct mrc_ukernels {
    mrc_gemm_f32_fn *gemm_f32;
    int mr_f32, nr_f32;
    mrc_gemm_f64_fn *gemm_f64;
    int mr_f64, nr_f64;
    mrc_dot_u8_fn *dot_u8;
    int mr_u8, nr_u8, group_u8;
    mrc_gemm_f32_fn *l1_f32; /* (mr_l1_f32, nr_f32) */
    mrc_gemm_f64_fn *l1_f64;
    mrc_groups_f32_fn *groups_f32; /* as the last two, or as products */
    mrc_groups_f64_fn *groups_f64;
    int group_cost; /* features that take as long as a group, at most */
    mrc_sad_u8_fn *sad_u8;
    int mr_l1_f32, mr_l1_f64, mr_sad_u8;
    mrc_signs_f32_fn *signs_f32; /* panels of those */
    mrc_signs_f64_fn *signs_f64;
    mrc_features_f32_fn *features_f32;
    mrc_features_f64_fn *features_f64;
    mrc_few_f32_fn *few_f32;
    mrc_few_f64_fn *few_f64;
    mrc_few_l1_f32_fn *few_l1_f32;
    mrc_few_l1_f64_fn *few_l1_f64;
    int few_lanes_f32, few_lanes_f64;
    mrc_rows_dots_fn *rows_dots;
    mrc_rows_sums_fn *rows_sums;
    int rows_group, rows_strip;
    const mrc_panel_ops *panel;
} mrc_ukernels;

mrc_ukernels mrc_ukernels_for(mrc_isa isa);

/* Declarations, from the list. */
#define MRC_UK_GEMM_F32(isa, name, mr, nr)      mrc_gemm_f32_fn name;
#define MRC_UK_GEMM_F64(isa, name, mr, nr)      mrc_gemm_f64_fn name;
#define MRC_UK_DOT_U8(isa, name, mr, nr, group) mrc_dot_u8_fn name;
#define MRC_UK_L1_F32                           MRC_UK_GEMM_F32
#define MRC_UK_L1_F64                           MRC_UK_GEMM_F64
#define MRC_UK_SAD_U8(isa, name, mr, nr)        mrc_sad_u8_fn name;
#define MRC_UK_GROUPS(isa, single, wide, cost) \
    mrc_groups_f32_fn single;                  \
    mrc_groups_f64_fn wide;
#define MRC_UK_FEW_F32(isa, name, l1_name, lanes) \
    mrc_few_f32_fn name;                          \
    mrc_few_l1_f32_fn l1_name;
#define MRC_UK_FEW_F64(isa, name, l1_name, lanes) \
    mrc_few_f64_fn name;                          \
    mrc_few_l1_f64_fn l1_name;
#define MRC_UK_ROWS(isa, dots, sums, group, strip) \
    mrc_rows_dots_fn dots;                         \
    mrc_rows_sums_fn sums;
#define MRC_UK_SIGNS(isa, single, wide) \
    mrc_signs_f32_fn single;            \
    mrc_signs_f64_fn wide;
#define MRC_UK_FEATURES(isa, single, wide) \
    mrc_features_f32_fn single;            \
    mrc_features_f64_fn wide;
#define MRC_UK_PANEL(isa, name) extern const mrc_panel_ops name;
#include "backends/cpu/micro/ukernels.inc"

#endif
