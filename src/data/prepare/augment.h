/* SPDX-License-Identifier: BSD-3-Clause */
/* Augmentation: new samples made of those that are read. What happens to sample k of pass e is a function of
   (seed, e, k). */
#ifndef MRC_DATA_PREPARE_AUGMENT_H
#define MRC_DATA_PREPARE_AUGMENT_H

#include "core/context.h"
#include "core/numbers/changes.h"

typedef struct mrc_augment mrc_augment;

/* The shape of samples. */
typedef struct mrc_augment_shape {
    int64_t features;
    int64_t height, width, channels; /* of images; 0 if they are none */
} mrc_augment_shape;

/* Reads "noise:sigma=10+flip". The parts act in the order given. */
mercer_status mrc_augment_create(mrc_augment **out, mercer_context *context, const char *spec,
                                 const mrc_augment_shape *shape, uint64_t seed);
void mrc_augment_free(mercer_context *context, mrc_augment *augment);
/* Samples are mixed with others of their block: blocks must not depend on how they are read, and two buffers are
   needed. */
int mrc_augment_mixes(const mrc_augment *augment);

/* A block of samples k = first, first + 1, ... of a pass, changed in place; or, when samples are mixed, in `spare`. */
typedef struct mrc_augment_block {
    int64_t pass, first;
    mercer_matrix x, y;             /* (m, features) of any dtype, (m, outputs) f32 or f64 */
    mercer_matrix spare_x, spare_y; /* the same shapes and types; needed only when samples are mixed */
    void *row;                      /* room for one row of x */
} mrc_augment_block;

/* Any thread; never fails, never allocates. Afterwards x and y are what they should be; the buffers may have been
   swapped with the spare ones. */
void mrc_augment_apply(const mrc_augment *augment, mrc_augment_block *block);

/* The same for callers that apply the parts to samples that lie elsewhere: part `index`, without what is drawn for each
   sample, which the functions below tell. */
int mrc_augment_parts(const mrc_augment *augment);
int mrc_augment_mixing(const mrc_augment *augment); /* the part that mixes, -1: none; augment may be NULL */
mrc_change mrc_augment_change(const mrc_augment *augment, int index);
/* Of sample k of a pass: its sequence of numbers; where a part moves it; which sample of its block, rows `first` and
   following, it is mixed with, and its own share. */
int64_t mrc_augment_sequence(int64_t pass, int64_t k);
mrc_image_move mrc_augment_move(const mrc_augment *augment, int index, int64_t pass, int64_t k);
int64_t mrc_augment_partner(const mrc_augment *augment, int64_t pass, int64_t k, int64_t first, int64_t rows,
                            double *share);

#endif
