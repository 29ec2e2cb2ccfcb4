/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of samples: the steps of an augmentation (data/prepare/augment.h), for random numbers that the caller
 * supplies. The functions here change rows in host memory; change_rows of a backend gives bitwise identical results for
 * rows in device memory.
 *
 *   noise    x_j + sigma z_j              z the numbers of random_normal.h
 *   move     x(r - down, c - right, channel), where x is the image or its mirror image, and 0 outside the image
 *   mix      l x + (1 - l) x'
 *
 * Values keep their type: bytes are rounded to nearest and clamped to 0 .. 255, halves rounded to nearest. Bytes,
 * halves and floats are computed in float, doubles in double, each operation rounded separately (not fused).
 */
#ifndef MRC_CORE_NUMBERS_CHANGES_H
#define MRC_CORE_NUMBERS_CHANGES_H

#include "mercer/mercer.h"

#include "core/numbers/host_device.h"
#include "core/numbers/random_normal.h"

/* Shape (height, width, channels) of an image with interleaved channels; 0 if samples are not images. */
typedef struct mrc_image_shape {
    int64_t height, width, channels;
} mrc_image_shape;

/* Shift of an image in pixels, |right| < width and |down| < height. mirrored: left and right are swapped before the
   shift. */
typedef struct mrc_image_move {
    int32_t right, down, mirrored;
} mrc_image_move;

typedef enum mrc_change_kind { MRC_CHANGE_NOISE, MRC_CHANGE_MOVE, MRC_CHANGE_MIX } mrc_change_kind;

/* One part of an augmentation, applied to m samples; its arrays are in host memory and borrowed. */
typedef struct mrc_change {
    mrc_change_kind kind;
    const mrc_normal_table *normals; /* NOISE: table of normal numbers, borrowed */
    /* NOISE: row i uses draws first (a multiple of 4), first + 1, ... of random sequence sequences[i] */
    uint64_t seed, first;
    const int64_t *sequences; /* (m) */
    double sigma;
    mrc_image_shape image;       /* MOVE: shape of all samples */
    const mrc_image_move *moves; /* (m) */
    const double *shares;        /* MIX: (m) weight l of the first sample per row */
} mrc_change;

/* Returns the source index of element j of a moved image; -1 if the source is outside the image, so that element j is
   0. */
MRC_HD int64_t mrc_moved_from(mrc_image_shape image, mrc_image_move move, int64_t j)
{
    int64_t channel = j % image.channels, pixel = j / image.channels;
    int64_t row = pixel / image.width - move.down, column = pixel % image.width - move.right;
    if (row < 0 || row >= image.height || column < 0 || column >= image.width) return -1;
    if (move.mirrored) column = image.width - 1 - column;
    return (row * image.width + column) * image.channels + channel;
}

/* Change one row of n elements of any dtype. Noise is added in place. When moving, `to` must not overlap `from`; when
   mixing, `to` may be a or b. */
void mrc_add_noise(void *row, int64_t n, mercer_dtype dtype, const mrc_change *noise, int64_t sequence);
void mrc_move_row(void *to, const void *from, int64_t element_size, mrc_image_shape image, mrc_image_move move);
void mrc_mix_rows(void *to, const void *a, const void *b, int64_t n, mercer_dtype dtype, double share);

/* Changes all rows of `from` (m, d), in host memory, and writes them to `to` (m, d) of the same dtype. other (m, d):
   second samples for MIX, else NULL. `to` may be `from`, except for MOVE. */
void mrc_change_rows(const mrc_change *change, const mercer_matrix *to, const mercer_matrix *from,
                     const mercer_matrix *other);

#endif
