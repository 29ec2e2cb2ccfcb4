/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Augmentation: random changes of samples.
 *
 *   noise    x_j + sigma z_j,   z_j ~ N(0, 1), from core/numbers/random_normal.h
 *   shift    x(r - v, c - u, channel), 0 outside;   u, v uniform in -k .. k
 *   crop     a window of the image with a border of k pixels of 0: the same distribution as shift
 *   flip     x(r, W - 1 - c, channel), with probability 1/2
 *   mixup    l x + (1 - l) x',  l y + (1 - l) y',   l ~ Beta(a, a),  x' another sample of the block, uniformly
 *
 * x (H, W, C) interleaved. This file makes the random draws; core/numbers/changes.h applies them to rows in host memory
 * and, with the same results, to rows on a device. The draws of part i for sample k in pass e come from random sequence
 * (e, k) of the seed, beginning with word i 2^32. Cost: O(features) per sample; noise is the most expensive: a Philox
 * block per four features.
 *
 * Beta(a, a) is g / (g + g') with two Gamma(a) numbers, drawn as logarithms by Marsaglia and Tsang's method. For small
 * a, Gamma(a) = Gamma(a + 1) U^(1/a) underflows, but its logarithm does not.
 */
#include "data/prepare/augment.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 5, PART_CHARS = 128 };

/* Mixed into the seed, so that augmentation and the order of samples draw different numbers. */
#define SEED_SALT UINT64_C(0x6175676d656e7473)

typedef enum part_kind { NOISE, SHIFT, CROP, FLIP, MIXUP, KINDS } part_kind;

typedef struct part {
    part_kind kind;
    double sigma, alpha;
    int32_t pixels;
} part;

struct mrc_augment {
    mrc_augment_shape shape;
    uint64_t seed;
    int parts, mixing; /* number of parts; index of the part that mixes, -1: none */
    part part[MOST_PARTS];
    mrc_normal_table normals;
};

/* ---- Specifications ------------------------------------------------------------------------------------------ */

#define AT(field) offsetof(part, field)

static const mrc_spec_form forms[KINDS] = {
    [NOISE] = {"noise", "noise:sigma=20", {{"sigma", AT(sigma), MRC_REAL, true, true, 0, 1e30, 0}}},
    [SHIFT] = {"shift", "shift:pixels=2", {{"pixels", AT(pixels), MRC_WHOLE, true, true, 0, 1e6, 0}}},
    [CROP] = {"crop", "crop:pad=2", {{"pad", AT(pixels), MRC_WHOLE, true, true, 0, 1e6, 0}}},
    [FLIP] = {"flip", "flip", {{0}}},
    [MIXUP] = {"mixup", "mixup:alpha=0.4", {{"alpha", AT(alpha), MRC_REAL, true, false, 0, 1e6, 0}}},
};

/* Checks the image shape for a part that moves pixels. The shape must match the number of features, and the image must
   be larger than the move. */
static mercer_status check_image(mercer_context *context, const mrc_augment_shape *shape, const part *found)
{
    const char *name = forms[found->kind].name;
    if (found->kind == NOISE || found->kind == MIXUP) return MERCER_OK;
    int64_t pixels, features;
    if (shape->height < 1 || shape->width < 1 || shape->channels < 1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "augmentation %s: the data have no image shape; set height, width and channels", name);
    if (!mrc_multiply(shape->height, shape->width, &pixels) || !mrc_multiply(pixels, shape->channels, &features) ||
        features != shape->features)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "augmentation %s: images of %lld x %lld x %lld do not match the %lld features of the samples",
                        name, (long long)shape->height, (long long)shape->width, (long long)shape->channels,
                        (long long)shape->features);
    int64_t side = mrc_min(shape->height, shape->width);
    if (found->pixels >= side)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "augmentation %s: %d pixels would move the whole image of width or height %lld out of view",
                        name, (int)found->pixels, (long long)side);
    return MERCER_OK;
}

/* Returns the number of characters up to the '+' that joins two parts. This '+' is followed by a name, unlike the '+'
   in the exponent of a number. */
static size_t part_length(const char *text)
{
    for (size_t i = 0; text[i]; i++) {
        bool letter = (text[i + 1] >= 'a' && text[i + 1] <= 'z') || text[i + 1] == 0 || text[i + 1] == '+';
        if (text[i] == '+' && letter) return i;
    }
    return strlen(text);
}

/* Reads the parts of a specification, joined by '+'. */
static mercer_status read_parts(mercer_context *context, mrc_augment *self, const char *spec)
{
    const mrc_spec_grammar grammar = {"augmentation", MERCER_ERROR_ARGUMENT, forms, sizeof *forms, KINDS};
    for (const char *text = spec;; text++) { /* skip the '+' */
        size_t length = part_length(text);
        char word[PART_CHARS];
        if (length >= sizeof word) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "augmentation: a part is too long");
        memcpy(word, text, length);
        word[length] = 0;
        part found = {0};
        int index;
        MRC_TRY(mrc_spec_read(context, &grammar, word, &found, &index));
        found.kind = (part_kind)index;
        for (int i = 0; i < self->parts; i++)
            if (self->part[i].kind == found.kind)
                return mrc_fail(context, MERCER_ERROR_ARGUMENT, "augmentation: %s is given twice", forms[index].name);
        MRC_TRY(check_image(context, &self->shape, &found));
        if (found.kind == MIXUP) self->mixing = self->parts;
        self->part[self->parts++] = found; /* fits: there are MOST_PARTS kinds, and none is given twice */
        text += length;
        if (!*text) return MERCER_OK;
    }
}

mercer_status mrc_augment_create(mrc_augment **out, mercer_context *context, const char *spec,
                                 const mrc_augment_shape *shape, uint64_t seed)
{
    mrc_augment *self;
    *out = NULL;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self, 1, sizeof *self, "the augmentation"));
    self->shape = *shape;
    self->seed = seed ^ SEED_SALT;
    self->mixing = -1;
    mrc_normal_table_init(&self->normals);
    MRC_TRY(read_parts(context, self, spec));
    mrc_scope_disown(&scope);
    *out = self;
    return MERCER_OK;
}

void mrc_augment_free(mercer_context *context, mrc_augment *self)
{
    mrc_free(context, self);
}

int mrc_augment_parts(const mrc_augment *self)
{
    return self->parts;
}

int mrc_augment_mixing(const mrc_augment *self)
{
    return self ? self->mixing : -1;
}

int mrc_augment_mixes(const mrc_augment *self)
{
    return mrc_augment_mixing(self) >= 0;
}

/* ---- Draws --------------------------------------------------------------------------------------------------- */

/* Combines pass and sample into one number. The pass, which counts from -1, takes the upper 24 bits, and the sample the
   lower 40 bits. */
int64_t mrc_augment_sequence(int64_t pass, int64_t k)
{
    return (int64_t)((uint64_t)(pass + 1) << 40 ^ (uint64_t)k);
}

static mrc_rng rng_of(const mrc_augment *self, int64_t pass, int64_t k)
{
    return (mrc_rng){self->seed, (uint64_t)mrc_augment_sequence(pass, k)};
}

static uint64_t first_word(int index)
{
    return (uint64_t)index << 32;
}

mrc_change mrc_augment_change(const mrc_augment *self, int index)
{
    const mrc_augment_shape *shape = &self->shape;
    const part *found = &self->part[index];
    return (mrc_change){.kind = found->kind == NOISE   ? MRC_CHANGE_NOISE
                                : found->kind == MIXUP ? MRC_CHANGE_MIX
                                                       : MRC_CHANGE_MOVE,
                        .normals = &self->normals,
                        .seed = self->seed,
                        .first = first_word(index),
                        .sigma = found->sigma,
                        .image = {shape->height, shape->width, shape->channels}};
}

mrc_image_move mrc_augment_move(const mrc_augment *self, int index, int64_t pass, int64_t k)
{
    mrc_rng rng = rng_of(self, pass, k);
    /* A draw takes 64 bits, that is, two words. */
    uint64_t draw = first_word(index) / 2;
    int64_t most = self->part[index].pixels;
    if (self->part[index].kind == FLIP) return (mrc_image_move){.mirrored = (int32_t)mrc_random_below(rng, draw, 2)};
    return (mrc_image_move){.right = (int32_t)(mrc_random_below(rng, draw, 2 * most + 1) - most),
                            .down = (int32_t)(mrc_random_below(rng, draw + 1, 2 * most + 1) - most)};
}

/* Returns the logarithm of a Gamma(shape) number. *k is the index of the next draw. A proposal d v with v = (1 + c z)^3
   is accepted if log u < z^2 / 2 + d - d v + d log v. */
static double log_gamma_number(mrc_rng rng, uint64_t *k, double shape)
{
    double boost = 0, d = shape - 1.0 / 3;
    if (shape < 1) {
        boost = log(1 - mrc_random_uniform(rng, (*k)++)) / shape;
        d += 1;
    }
    double c = 1 / sqrt(9 * d);
    for (;;) {
        *k += *k % 2; /* a normal number uses an aligned pair of draws */
        double z = mrc_random_normal(rng, *k), v = 1 + c * z;
        double u = 1 - mrc_random_uniform(rng, *k + 2);
        *k += 4;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(u) < 0.5 * z * z + d - d * v + d * log(v)) return log(d * v) + boost;
    }
}

/* Draws a Beta(alpha, alpha) number (see the top of the file). */
static double beta_number(mrc_rng rng, uint64_t k, double alpha)
{
    double a = log_gamma_number(rng, &k, alpha), b = log_gamma_number(rng, &k, alpha);
    return 1 / (1 + exp(b - a));
}

int64_t mrc_augment_partner(const mrc_augment *self, int64_t pass, int64_t k, int64_t first, int64_t rows,
                            double *share)
{
    mrc_rng rng = rng_of(self, pass, k);
    uint64_t draw = first_word(self->mixing) / 2;
    int64_t i = k - first;
    *share = beta_number(rng, draw + 2, self->part[self->mixing].alpha);
    /* any other sample of the block; a single sample is mixed with itself */
    return first + (rows > 1 ? (i + 1 + mrc_random_below(rng, draw, rows - 1)) % rows : i);
}

/* ---- Samples in host memory ------------------------------------------------------------------------------------ */

/* Mixes all samples of a block into the spare buffers, and swaps these with the block. In place, a sample would be
   mixed with a partner that has already changed. */
static void mix_rows(const mrc_augment *self, mrc_augment_block *block)
{
    const mercer_matrix x = block->x, y = block->y, to_x = block->spare_x, to_y = block->spare_y;
    for (int64_t i = 0; i < x.rows; i++) {
        double l;
        int64_t other =
            mrc_augment_partner(self, block->pass, block->first + i, block->first, x.rows, &l) - block->first;
        mrc_mix_rows(mrc_row(&to_x, i), mrc_row(&x, i), mrc_row(&x, other), x.cols, x.dtype, l);
        mrc_mix_rows(mrc_row(&to_y, i), mrc_row(&y, i), mrc_row(&y, other), y.cols, y.dtype, l);
    }
    block->x = to_x, block->y = to_y;
    block->spare_x = x, block->spare_y = y;
}

/* Moves or mirrors the images of a block, through a buffer for one row. */
static void move_pixels(const mrc_augment *self, int index, const mrc_change *change, const mrc_augment_block *block)
{
    const mercer_matrix *x = &block->x;
    int64_t size = mrc_dtype_size(x->dtype);
    for (int64_t i = 0; i < x->rows; i++) {
        mrc_image_move drawn = mrc_augment_move(self, index, block->pass, block->first + i);
        if (drawn.right == 0 && drawn.down == 0 && !drawn.mirrored) continue;
        memcpy(block->row, mrc_row(x, i), (size_t)(x->cols * size));
        mrc_move_row(mrc_row(x, i), block->row, size, change->image, drawn);
    }
}

void mrc_augment_apply(const mrc_augment *self, mrc_augment_block *block)
{
    for (int index = 0; index < self->parts; index++) {
        const mrc_change change = mrc_augment_change(self, index);
        const mercer_matrix *x = &block->x;
        switch (change.kind) {
            case MRC_CHANGE_NOISE:
                for (int64_t i = 0; i < x->rows; i++)
                    mrc_add_noise(mrc_row(x, i), x->cols, x->dtype, &change,
                                  mrc_augment_sequence(block->pass, block->first + i));
                break;
            case MRC_CHANGE_MOVE: move_pixels(self, index, &change, block); break;
            case MRC_CHANGE_MIX: mix_rows(self, block); break;
        }
    }
}
