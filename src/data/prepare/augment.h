/* SPDX-License-Identifier: BSD-3-Clause */
/* Augmentation: random changes of samples while they are read. The change of sample k in pass e is a function of (seed,
   e, k). */
#ifndef MRC_DATA_PREPARE_AUGMENT_H
#define MRC_DATA_PREPARE_AUGMENT_H

#include "core/context.h"
#include "core/numbers/changes.h"

typedef struct mrc_augment mrc_augment;

/* The shape of samples. */
typedef struct mrc_augment_shape {
    int64_t features;
    int64_t height, width, channels; /* image size; 0 if samples are not images */
} mrc_augment_shape;

/* Reads "noise:sigma=10+flip". The parts act in the order given. */
mercer_status mrc_augment_create(mrc_augment **out, mercer_context *context, const char *spec,
                                 const mrc_augment_shape *shape, uint64_t seed);
void mrc_augment_free(mercer_context *context, mrc_augment *augment);
/* Returns whether samples are mixed with others of their block. The caller must then form the same blocks in every
   reading order, and must provide the spare buffers. */
int mrc_augment_mixes(const mrc_augment *augment);

/* A block of samples k = first, first + 1, ... of a pass, changed in place, or written to the spare buffers if samples
   are mixed. */
typedef struct mrc_augment_block {
    int64_t pass, first;
    mercer_matrix x, y;             /* (m, features) of any dtype, (m, outputs) f32 or f64 */
    mercer_matrix spare_x, spare_y; /* the same shapes and types; needed only when samples are mixed */
    void *row;                      /* scratch space for one row of x */
} mrc_augment_block;

/* Applies all parts to a block. Afterwards x and y are the changed samples and targets; they may have been swapped with
   the spare buffers. Thread-safe; never fails or allocates. */
void mrc_augment_apply(const mrc_augment *augment, mrc_augment_block *block);

/* For callers that apply the parts themselves, to samples on a device: the number of parts, and the change of part
   `index` without the random draws per sample, which the functions below return. */
int mrc_augment_parts(const mrc_augment *augment);
int mrc_augment_mixing(const mrc_augment *augment); /* index of the part that mixes, -1: none; augment may be NULL */
mrc_change mrc_augment_change(const mrc_augment *augment, int index);
/* Return the random draws for sample k of a pass: the number of its random sequence; its move by part `index`; and the
   index of the sample that is mixed with it. Both are in the block of samples first .. first + rows - 1. *share is set
   to the weight of sample k itself. */
int64_t mrc_augment_sequence(int64_t pass, int64_t k);
mrc_image_move mrc_augment_move(const mrc_augment *augment, int index, int64_t pass, int64_t k);
int64_t mrc_augment_partner(const mrc_augment *augment, int64_t pass, int64_t k, int64_t first, int64_t rows,
                            double *share);

#endif
