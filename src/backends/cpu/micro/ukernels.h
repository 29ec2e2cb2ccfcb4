/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cpu/micro: micro-kernels, stateless functions on packed tiles, each for one instruction set. They neither
 * allocate memory nor use threads. ukernels.inc lists all of them; each listed one is declared, selectable and tested
 * (tests/conformance runs every ISA).
 *
 * A packed panel of `width` rows stores them interleaved, value k of row r at panel[k * width + r], so that a vector
 * contains the same feature of adjacent rows. Missing rows are zeros.
 *
 * Contract for bitwise identical results on every instruction set, in every batch and at every tile position: an inner
 * product is ONE chain of fused multiply-adds over k = 0, 1, ..., starting from 0. This applies to products and norms,
 * so the product of a row with an equal row is exactly its squared norm. A sum of absolute differences is one chain of
 * additions over k = 0, 1, ..., each difference rounded once.
 */
#ifndef MRC_BACKENDS_CPU_MICRO_UKERNELS_H
#define MRC_BACKENDS_CPU_MICRO_UKERNELS_H

#include "core/cpuinfo.h"
#include "kernels/kernel.h"

/* C (mr, nr), row i at c + i * nr:  C_ij = sum_k a[k * mr + i] * b[k * nr + j] */
typedef void mrc_gemm_f32_fn(int64_t depth, const float *a, const float *b, float *c);
typedef void mrc_gemm_f64_fn(int64_t depth, const double *a, const double *b, double *c);

/* Sums of absolute differences have the same function types as products: C_ij = sum_k |b[k * nr + j] - a[k * mr + i]|.
   For bytes the sums are exact: value k of row r of a panel is at panel[((k / 8) * width + r) * 8 + k % 8], padded with
   zeros. groups: 8-byte groups per row. */
typedef void mrc_sad_u8_fn(int64_t groups, const void *a, const void *b, float *c);

/*
 * Layout of packed rows with groups of adjacent features that have at most one nonzero value. A group takes one element
 * for that value and another element for the index of its feature, -1 if all values of the group are 0. A row contains
 * its `values` values first, then the indices of its groups. lengths: (count, 2), alternating numbers of ungrouped
 * features and of groups, in the order of the features. For sums of differences, the values of a group are positive,
 * and all nonzero values of a feature are equal.
 */
typedef struct mrc_runs {
    const int32_t *lengths;
    int64_t count, values;
} mrc_runs;

/* Products of panels in this layout or, if l1, sums of absolute differences. The results are bitwise identical to those
   of panels without groups. */
typedef void mrc_groups_f32_fn(bool l1, const mrc_runs *runs, const float *a, const float *b, float *c);
typedef void mrc_groups_f64_fn(bool l1, const mrc_runs *runs, const double *a, const double *b, double *c);

/*
 * Exact products of bytes, with `group` adjacent features of a row stored together: value k of row r of a panel is at
 * panel[((k / group) * width + r) * group + k % group]. group 2: int16 values 0 .. 255 on both sides. group 4: bytes;
 * a contains value - 128 (signed), b the value (unsigned), and start_j = 128 * sum of b's row j undoes the shift. group
 * 64: unsigned bytes on both sides, a in groups of 64 and b in groups of 4, features padded with zeros to a multiple of
 * 64. start is 0 for groups 2 and 64. `groups` counts the 32-bit words of a packed row: 16 in a group of 64, else 1.
 */
typedef void mrc_dot_u8_fn(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c);

/*
 * Products of few rows of X with `count` (1 .. lanes) rows of Z that are ld apart and not packed. z_j = row j - origin,
 *   dots[i * stride + j] = sum_k z_jk x[k * width + i]  (i < width),   norms[j] = sum_k z_jk^2
 * All lanes are written; lanes count, count + 1, ... repeat the last row.
 */
typedef void mrc_few_f32_fn(int64_t depth, int64_t count, const float *z, int64_t ld, const float *origin,
                            int64_t width, const float *x, float *dots, int64_t stride, float *norms);
typedef void mrc_few_f64_fn(int64_t depth, int64_t count, const double *z, int64_t ld, const double *origin,
                            int64_t width, const double *x, double *dots, int64_t stride, double *norms);

/* The same for sums of absolute differences, without an origin: sums[i * stride + j] = sum_k |z_jk - x[k * width + i]|,
   where z_j is row j. */
typedef void mrc_few_l1_f32_fn(int64_t depth, int64_t count, const float *z, int64_t ld, int64_t width, const float *x,
                               float *sums, int64_t stride);
typedef void mrc_few_l1_f64_fn(int64_t depth, int64_t count, const double *z, int64_t ld, int64_t width,
                               const double *x, double *sums, int64_t stride);

/*
 * Sums of pair values (panels * mr, nr), one per center and row of X, times the signs of the differences of each
 * feature: sums[k * nr + i] = sum_j values[j * nr + i] sign(x[k * nr + i] - z_jk), one chain over j. The panels have
 * the layout for sums of absolute differences: z consists of `panels` panels of mr centers each, x of one panel of nr
 * rows. sign(0) = 0.
 */
typedef void mrc_signs_f32_fn(int64_t depth, int64_t panels, const float *z, const float *x, const float *values,
                              float *sums);
typedef void mrc_signs_f64_fn(int64_t depth, int64_t panels, const double *z, const double *x, const double *values,
                              double *sums);

/*
 * Weighted sums of the terms of one feature. v contains rows of `columns` (a multiple of 64) weights, ld apart. Only
 * the rows listed in `which` take part: x[r] belongs to row which[r] of v, z[j] to column j.
 *   sums[l] (16) = sum over r < rows, j = l (mod 16), of v[which[r] * ld + j] t,   t = |x[r] - z[j]|^norm, norm 1 or 2
 * rest: t is reduced by |z[j]|^norm, the term of x = 0. There are 64 chains of FMAs; each takes every 64th column, row
 * after row. Four chains are added, in two pairs, to give one sum.
 */
typedef void mrc_features_f32_fn(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which,
                                 const float *v, int64_t ld, const float *x, const float *z, float *sums);
typedef void mrc_features_f64_fn(int norm, bool rest, int64_t rows, int64_t columns, const int32_t *which,
                                 const double *v, int64_t ld, const double *x, const double *z, double *sums);

/*
 * Products of stored rows, float or (half) binary16, with n outputs, 1 .. rows_group; from[i] points to row i.
 *   dots   sums[r * stride + 16 j + l] += sum over k = l (mod 16), k < count, of row_r[k] v_j[k]; count a multiple of
 *          16, v packed: v_j[k] at v[(k / 16) * 16 n + 16 j + k % 16]
 *   sums   out[j * strip + k] = sum_i row_i[first + k] g[i * n + j], k < strip, one chain over the rows
 */
typedef void mrc_rows_dots_fn(bool half, int n, int64_t rows, int64_t count, const void *const *from, const float *v,
                              float *sums, int64_t stride);
typedef void mrc_rows_sums_fn(bool half, int n, int64_t rows, const void *const *from, int64_t first, const float *g,
                              float *out);

/* A vectorized kernel function: a row of MRC_VECTOR_FORMS (kernels/formulas.h) with its constants. */
typedef struct mrc_map {
    int32_t id;    /* 0: no vectorized form for this kernel or these parameters, use the scalar formula */
    int degree;    /* exponent of a power; number of layers of an angular kernel */
    double a, b;   /* constants of the form */
    bool in_float; /* true: there is a float form, and its constants are in the range of float */
} mrc_map;

/* Return the vectorized form of a kernel. */
mrc_map mrc_map_for(const mercer_kernel *kernel);

/* Elementwise work on panels and tiles, one set per instruction set. */
typedef struct mrc_panel_ops {
    /* panel[k * width + r] = rows[r * ld + k] */
    void (*interleave_f32)(int64_t depth, int64_t width, const float *rows, int64_t ld, float *panel);
    void (*interleave_f64)(int64_t depth, int64_t width, const double *rows, int64_t ld, double *panel);
    /* row[k] -= origin[k] */
    void (*center_f32)(int64_t d, const float *origin, float *row);
    void (*center_f64)(int64_t d, const double *origin, double *row);
    /* For each nonzero value k of a row: raise before[k] to at least the index of the previous nonzero value (-1:
       none); set level[k] to the value if it was 0, to NaN if it was a different value. */
    void (*scan_f32)(int64_t d, const float *row, int32_t *before, float *level);
    void (*scan_f64)(int64_t d, const double *row, int32_t *before, double *level);
    /* Convert a row to the layout of mrc_runs: nonzero values go to out[value_at[k]], and their indices k to
       out[group_at[k]]; all other values are 0, all other indices -1. */
    void (*compress_f32)(int64_t d, int64_t values, int64_t groups, const int32_t *value_at, const int32_t *group_at,
                         const float *row, float *out);
    void (*compress_f64)(int64_t d, int64_t values, int64_t groups, const int32_t *value_at, const int32_t *group_at,
                         const double *row, double *out);
    /* norms[r] = sum_k panel[k * width + r]^2; width <= 32 */
    void (*sqnorms_f32)(int64_t depth, int64_t width, const float *panel, float *norms);
    void (*sqnorms_f64)(int64_t depth, int64_t width, const double *panel, double *norms);
    /* Convert a tile (rows, width) of products to squared distances, clamped at 0. Return true if some pair is too
       close for this to be accurate: distance^2 <= near * (x_norm + z_norm), or not a number. */
    bool (*sqdist_f32)(int64_t rows, int64_t width, float *tile, const float *x_norms, const float *z_norms,
                       float near);
    bool (*sqdist_f64)(int64_t rows, int64_t width, double *tile, const double *x_norms, const double *z_norms,
                       double near);
    /* Copy one row of d bytes to row r of a panel of `width` rows with groups of 2 int16 or of 4, 8 or 64 bytes; flip
       is added to every byte (group 4). Return the sum and the sum of squares of the bytes. Elements of the panel
       beyond d are not written. */
    void (*pack_u8)(int64_t d, int group, int64_t width, int64_t r, uint8_t flip, const uint8_t *row, void *panel,
                    int32_t *sum, int32_t *squares);
    /* Exact sums over bytes: sum_k x_k z_k and sum_k |x_k - z_k|. */
    int32_t (*inner_u8)(int64_t d, const uint8_t *x, const uint8_t *z);
    int32_t (*sad_u8)(int64_t d, const uint8_t *x, const uint8_t *z);
    /* Compute C (mr, nr) from packed panels, with the layout of a product: C_ij = sum_k |b[k * nr + j] - a[k * mr +
       i]|^power, 0 < power < 2, in double, rounded once; nr <= 32 */
    void (*powers_f32)(int64_t depth, double power, int64_t mr, int64_t nr, const float *a, const float *b, float *c);
    void (*powers_f64)(int64_t depth, double power, int64_t mr, int64_t nr, const double *a, const double *b,
                       double *c);
    /* sums[k] (16) = sum_j weights[j * 16 + k] values[j], one chain over j < count */
    void (*few_sums_f32)(int64_t count, const float *weights, const float *values, float *sums);
    void (*few_sums_f64)(int64_t count, const double *weights, const double *values, double *sums);
    /* Convert half precision to float, exactly, and float to the nearest half, ties to even. */
    void (*from_half)(int64_t count, const uint16_t *from, float *to);
    void (*to_half)(int64_t count, const float *from, uint16_t *to);
    /* sum[k] += row[k] */
    void (*add_f32)(int64_t d, const float *row, double *sum);
    void (*add_f64)(int64_t d, const double *row, double *sum);
    /* Convert exact integer products and norms to squared distances. */
    void (*sqdist_u8)(int64_t rows, int64_t width, const int32_t *dots, const int32_t *x_norms, const int32_t *z_norms,
                      float *out);
    /* Find the smallest value of each column and its row, the first one for ties, for rows >= 1: of a tile of squared
       distances, or of the squared distances given by integer products and norms. */
    void (*nearest_f32)(int64_t rows, int64_t width, const float *tile, float *best, int32_t *at);
    void (*nearest_f64)(int64_t rows, int64_t width, const double *tile, double *best, int32_t *at);
    void (*nearest_u8)(int64_t rows, int64_t width, const int32_t *dots, const int32_t *x_norms, const int32_t *z_norms,
                       int32_t *best, int32_t *at);
    /* Convert squared distances or products to kernel values, in place; requires map->in_float. */
    void (*map_f32)(const mrc_map *map, int64_t count, float *values);
    /* The same, computed in double. The map must not be angular; values must be finite, and not negative for a kernel
       of the distance. */
    void (*map_f64)(const mrc_map *map, int64_t count, double *values);
    void (*map_wide_f32)(const mrc_map *map, int64_t count, float *values);
    /* Return true if no value is +infinity or NaN. */
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
    /* Replace packed columns X by L^-1 X, x[j * width + r] of column r, width <= 32: L_jk (k <= j) at
       l[j * down + k * across], x_j = (x_j - L_j0 x_0 - L_j1 x_1 - ...) / L_jj, one chain of FMAs. Negative steps read
       a transposed triangle from its last row. */
    void (*solve)(int64_t n, int64_t width, const double *l, int64_t down, int64_t across, double *x);
    /* Compute ntk or nngp from the inner products of one row, with squared norm `down`, with other rows, with squared
       norms across[i]. */
    void (*angular)(const mrc_map *map, int64_t count, const double *dots, const double *across, double down,
                    double *out);
} mrc_panel_ops;

/* The micro-kernels of one instruction set: each entry is the last micro-kernel in the list that the instruction set
   supports. mr and nr are the rows of a panel on the broadcast side (centers, or the left factor) and on the vector
   side (rows of X, or the right factor). */
typedef struct mrc_ukernels {
    mrc_gemm_f32_fn *gemm_f32;
    int mr_f32, nr_f32;
    mrc_gemm_f64_fn *gemm_f64;
    int mr_f64, nr_f64;
    mrc_dot_u8_fn *dot_u8;
    int mr_u8, nr_u8, group_u8;
    mrc_gemm_f32_fn *l1_f32; /* (mr_l1_f32, nr_f32) */
    mrc_gemm_f64_fn *l1_f64;
    mrc_groups_f32_fn *groups_f32; /* gemm_f32 and l1_f32 for rows with groups (mrc_runs) */
    mrc_groups_f64_fn *groups_f64;
    int group_cost; /* cost of a group, in features; only larger groups save time */
    mrc_sad_u8_fn *sad_u8;
    int mr_l1_f32, mr_l1_f64, mr_sad_u8;
    mrc_signs_f32_fn *signs_f32; /* on panels of l1_f32 and l1_f64 */
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

/* Return the micro-kernels of an instruction set. */
mrc_ukernels mrc_ukernels_for(mrc_isa isa);

/* Declarations of all micro-kernels of the list. */
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
