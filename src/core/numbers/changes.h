/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of samples: what the parts of an augmentation (data/prepare/augment.h) do once their numbers are drawn.
 * Here for the host, row by row; backends do the same to rows that lie on a device (change_rows), to the same bits.
 *
 *   noise    x_j + sigma z_j              z the numbers of random_normal.h
 *   move     x(r - down, c - right, channel), 0 outside, of the image or of its mirror image
 *   mix      l x + (1 - l) x'
 *
 * Values keep their type: bytes are rounded to nearest and clamped to 0 .. 255, halves rounded to nearest. Bytes,
 * halves and floats are computed in float, doubles in double, every operation rounded.
 */
#ifndef MRC_CORE_NUMBERS_CHANGES_H
#define MRC_CORE_NUMBERS_CHANGES_H

#include "mercer/mercer.h"

#include "core/numbers/host_device.h"
#include "core/numbers/random_normal.h"

/* (height, width, channels) interleaved; 0 if samples are no images. */
typedef struct mrc_image_shape {
    int64_t height, width, channels;
} mrc_image_shape;

/* To the right and down, by less than the image is wide and high; mirrored before. */
typedef struct mrc_image_move {
    int32_t right, down, mirrored;
} mrc_image_move;

typedef enum mrc_change_kind { MRC_CHANGE_NOISE, MRC_CHANGE_MOVE, MRC_CHANGE_MIX } mrc_change_kind;

/* One change of m samples; its arrays lie in host memory. */
typedef struct mrc_change {
    mrc_change_kind kind;
    const mrc_normal_table *normals; /* NOISE: numbers first, first + 1, ... (a multiple of 4) of sequence */
    uint64_t seed, first;            /* sequences[i] of the seed */
    const int64_t *sequences;        /* (m) */
    double sigma;
    mrc_image_shape image;       /* MOVE */
    const mrc_image_move *moves; /* (m) */
    const double *shares;        /* (m) MIX: l */
} mrc_change;

/* Where element j of a moved image comes from; -1: from outside, it is 0. */
MRC_HD int64_t mrc_moved_from(mrc_image_shape image, mrc_image_move move, int64_t j)
{
    int64_t channel = j % image.channels, pixel = j / image.channels;
    int64_t row = pixel / image.width - move.down, column = pixel % image.width - move.right;
    if (row < 0 || row >= image.height || column < 0 || column >= image.width) return -1;
    if (move.mirrored) column = image.width - 1 - column;
    return (row * image.width + column) * image.channels + channel;
}

/* Rows of n elements of any dtype. Noise is added in place; `to` of a moved row is apart from `from`, that of a mixed
   one may be a or b. */
void mrc_add_noise(void *row, int64_t n, mercer_dtype dtype, const mrc_change *noise, int64_t sequence);
void mrc_move_row(void *to, const void *from, int64_t element_size, mrc_image_shape image, mrc_image_move move);
void mrc_mix_rows(void *to, const void *a, const void *b, int64_t n, mercer_dtype dtype, double share);

/* All rows of `from`, in host memory: to (m, d) of the same dtype; other (m, d): what is mixed with, else NULL. `to`
   may be `from` unless rows are moved. */
void mrc_change_rows(const mrc_change *change, const mercer_matrix *to, const mercer_matrix *from,
                     const mercer_matrix *other);

#endif
