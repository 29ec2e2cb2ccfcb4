/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Augmentation.
 *
 *   noise    x_j + sigma z_j,   z_j ~ N(0, 1), the law of core/numbers/random_normal.h
 *   shift    x(r - v, c - u, channel), 0 outside;   u, v uniform in -k .. k
 *   crop     a window of the image with k pixels of 0 around it: the same law as shift
 *   flip     x(r, W - 1 - c, channel), with probability 1/2
 *   mixup    l x + (1 - l) x',  l y + (1 - l) y',   l ~ Beta(a, a),  x' another sample of the block, uniformly
 *
 * x (H, W, C) interleaved. Values stay of the type that the data have: bytes are rounded to nearest and clamped to 0 ..
 * 255, halves rounded to nearest. Draws of part i of sample k in pass e: sequence (e, k) of the seed, from word i 2^32
 * on. Cost: O(features) a sample; noise is the dearest at a Philox block for every four features.
 *
 * Beta(a, a) is g / (g + g') with two Gamma(a) numbers, which Marsaglia and Tsang's method draws as logarithms:
 * Gamma(a) = Gamma(a + 1) U^(1/a) underflows for small a, its logarithm does not.
 */
#include "data/prepare/augment.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/half.h"
#include "core/numbers/random_normal.h"
#include "core/spec.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 5, PART_CHARS = 128, PIECE = 128 };

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
    int parts;
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

static mercer_status check_image(mercer_context *context, const mrc_augment_shape *shape, const part *found)
{
    const char *name = forms[found->kind].name;
    if (found->kind == NOISE || found->kind == MIXUP) return MERCER_OK;
    int64_t pixels, features;
    if (shape->height < 1 || shape->width < 1 || shape->channels < 1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "augmentation %s: the data have no image shape; give height, width and channels", name);
    if (!mrc_multiply(shape->height, shape->width, &pixels) || !mrc_multiply(pixels, shape->channels, &features) ||
        features != shape->features)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "augmentation %s: images of %lld x %lld x %lld do not have the %lld features of the samples",
                        name, (long long)shape->height, (long long)shape->width, (long long)shape->channels,
                        (long long)shape->features);
    int64_t side = mrc_min(shape->height, shape->width);
    if (found->pixels >= side)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "augmentation %s: %d pixels would move all of an image that is %lld wide or high away", name,
                        (int)found->pixels, (long long)side);
    return MERCER_OK;
}

/* Characters up to the '+' that joins two parts: one that a name follows, not the exponent of a number. */
static size_t part_length(const char *text)
{
    for (size_t i = 0; text[i]; i++) {
        bool letter = (text[i + 1] >= 'a' && text[i + 1] <= 'z') || text[i + 1] == 0 || text[i + 1] == '+';
        if (text[i] == '+' && letter) return i;
    }
    return strlen(text);
}

static mercer_status read_parts(mercer_context *context, mrc_augment *self, const char *spec)
{
    const mrc_spec_grammar grammar = {"augmentation", MERCER_ERROR_ARGUMENT, forms, sizeof *forms, KINDS};
    for (const char *text = spec;; text++) { /* over the '+' */
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
        self->part[self->parts++] = found; /* there is room: kinds are as many, and none comes twice */
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
    mrc_normal_table_init(&self->normals);
    MRC_TRY(read_parts(context, self, spec));
    mrc_scope_keep(&scope);
    *out = self;
    return MERCER_OK;
}

void mrc_augment_free(mercer_context *context, mrc_augment *self)
{
    mrc_free(context, self);
}

int mrc_augment_mixes(const mrc_augment *self)
{
    for (int i = 0; self && i < self->parts; i++)
        if (self->part[i].kind == MIXUP) return 1;
    return 0;
}

/* ---- Draws --------------------------------------------------------------------------------------------------- */

/* Pass -1 is the first; passes and samples are far from filling their parts of the number. */
static mrc_rng rng_of(const mrc_augment *self, int64_t pass, int64_t k)
{
    return (mrc_rng){self->seed, (uint64_t)(pass + 1) << 40 ^ (uint64_t)k};
}

static uint64_t first_word(int index)
{
    return (uint64_t)index << 32;
}

/* ---- Noise --------------------------------------------------------------------------------------------------- */

static void add_noise_u8(uint8_t *x, const float *normals, float sigma)
{
    for (int j = 0; j < PIECE; j++) {
        float value = (float)x[j] + sigma * normals[j] + 0.5f;
        value = value > 0 ? value : 0;
        x[j] = (uint8_t)(int)(value < 255 ? value : 255);
    }
}

static void add_noise_f32(float *x, const float *normals, float sigma)
{
    for (int j = 0; j < PIECE; j++) x[j] += sigma * normals[j];
}

/* `count` <= PIECE features of a row, of any type. The last piece of a row is copied out to a full one. */
static void add_noise(const mercer_matrix *x, int64_t row, int64_t first, int64_t count, const float *normals,
                      double sigma)
{
    int64_t size = mrc_dtype_size(x->dtype);
    char *at = (char *)mrc_row(x, row) + first * size;
    double whole[PIECE] = {0};
    void *piece = count == PIECE ? (void *)at : whole;
    if (piece != at) memcpy(piece, at, (size_t)(count * size));
    switch (x->dtype) {
        case MERCER_U8: add_noise_u8(piece, normals, (float)sigma); break;
        case MERCER_F32: add_noise_f32(piece, normals, (float)sigma); break;
        case MERCER_F64:
            for (int j = 0; j < PIECE; j++) ((double *)piece)[j] += sigma * (double)normals[j];
            break;
        case MERCER_F16:
            for (int j = 0; j < PIECE; j++) {
                uint16_t *half = (uint16_t *)piece + j;
                *half = mrc_half_from_float(mrc_half_to_float(*half) + (float)sigma * normals[j]);
            }
            break;
    }
    if (piece != at) memcpy(at, piece, (size_t)(count * size));
}

static void apply_noise(const mrc_augment *self, int index, mrc_rng rng, const mercer_matrix *x, int64_t row)
{
    for (int64_t first = 0; first < x->cols; first += PIECE) {
        float normals[PIECE];
        mrc_random_normals(&self->normals, rng, first_word(index) + (uint64_t)first, PIECE, normals);
        add_noise(x, row, first, mrc_min(PIECE, x->cols - first), normals, self->part[index].sigma);
    }
}

/* ---- Images -------------------------------------------------------------------------------------------------- */

static void apply_shift(const mrc_augment *self, int index, mrc_rng rng, void *image, int64_t size, void *copy)
{
    int64_t h = self->shape.height, w = self->shape.width, pixel = self->shape.channels * size,
            k = self->part[index].pixels;
    int64_t u = mrc_random_below(rng, first_word(index) / 2, 2 * k + 1) - k;
    int64_t v = mrc_random_below(rng, first_word(index) / 2 + 1, 2 * k + 1) - k;
    if (u == 0 && v == 0) return;
    memcpy(copy, image, (size_t)(h * w * pixel));
    memset(image, 0, (size_t)(h * w * pixel));
    size_t bytes = (size_t)((w - (u < 0 ? -u : u)) * pixel);
    for (int64_t y = mrc_max(0, v); y < mrc_min(h, h + v); y++)
        memcpy((char *)image + (y * w + mrc_max(0, u)) * pixel,
               (const char *)copy + ((y - v) * w + mrc_max(0, -u)) * pixel, bytes);
}

static void apply_flip(const mrc_augment *self, int index, mrc_rng rng, void *image, int64_t size, void *copy)
{
    int64_t h = self->shape.height, w = self->shape.width, pixel = self->shape.channels * size;
    if (mrc_random_below(rng, first_word(index) / 2, 2) == 0) return;
    memcpy(copy, image, (size_t)(h * w * pixel));
    for (int64_t y = 0; y < h; y++)
        for (int64_t c = 0; c < w; c++)
            memcpy((char *)image + (y * w + c) * pixel, (const char *)copy + (y * w + w - 1 - c) * pixel,
                   (size_t)pixel);
}

/* ---- Mixing -------------------------------------------------------------------------------------------------- */

/* log of a Gamma(shape) number; *k counts the draws. */
static double log_gamma_number(mrc_rng rng, uint64_t *k, double shape)
{
    double boost = 0, d = shape - 1.0 / 3;
    if (shape < 1) {
        boost = log(1 - mrc_random_uniform(rng, (*k)++)) / shape;
        d += 1;
    }
    double c = 1 / sqrt(9 * d);
    for (;;) {
        *k += *k % 2; /* a normal number is made of a pair of draws */
        double z = mrc_random_normal(rng, *k), v = 1 + c * z;
        double u = 1 - mrc_random_uniform(rng, *k + 2);
        *k += 4;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(u) < 0.5 * z * z + d - d * v + d * log(v)) return log(d * v) + boost;
    }
}

static double beta_number(mrc_rng rng, uint64_t k, double alpha)
{
    double a = log_gamma_number(rng, &k, alpha), b = log_gamma_number(rng, &k, alpha);
    return 1 / (1 + exp(b - a));
}

/* out = l a + (1 - l) b, of the dtype of all three. */
static void mix_row(const mercer_matrix *out, const mercer_matrix *x, int64_t a, int64_t b, double l)
{
    const void *pa = mrc_row(x, a), *pb = mrc_row(x, b);
    void *to = mrc_row(out, a);
    float f = (float)l, g = (float)(1 - l);
    switch (x->dtype) {
        case MERCER_U8:
            for (int64_t j = 0; j < x->cols; j++)
                ((uint8_t *)to)[j] =
                    (uint8_t)(int)(f * (float)((const uint8_t *)pa)[j] + g * (float)((const uint8_t *)pb)[j] + 0.5f);
            break;
        case MERCER_F32:
            for (int64_t j = 0; j < x->cols; j++)
                ((float *)to)[j] = f * ((const float *)pa)[j] + g * ((const float *)pb)[j];
            break;
        case MERCER_F64:
            for (int64_t j = 0; j < x->cols; j++)
                ((double *)to)[j] = l * ((const double *)pa)[j] + (1 - l) * ((const double *)pb)[j];
            break;
        case MERCER_F16:
            for (int64_t j = 0; j < x->cols; j++)
                ((uint16_t *)to)[j] = mrc_half_from_float(f * mrc_half_to_float(((const uint16_t *)pa)[j]) +
                                                          g * mrc_half_to_float(((const uint16_t *)pb)[j]));
            break;
    }
}

static void apply_mixup(const mrc_augment *self, int index, mrc_augment_block *block)
{
    int64_t m = block->x.rows;
    for (int64_t i = 0; i < m; i++) {
        mrc_rng rng = rng_of(self, block->pass, block->first + i);
        uint64_t k = first_word(index) / 2;
        int64_t other = m > 1 ? (i + 1 + mrc_random_below(rng, k, m - 1)) % m : i; /* alone: mixed with itself */
        double l = beta_number(rng, k + 2, self->part[index].alpha);
        mix_row(&block->spare_x, &block->x, i, other, l);
        mix_row(&block->spare_y, &block->y, i, other, l);
    }
    mercer_matrix x = block->x, y = block->y;
    block->x = block->spare_x, block->y = block->spare_y;
    block->spare_x = x, block->spare_y = y;
}

/* ---- All parts ----------------------------------------------------------------------------------------------- */

static void apply_to_rows(const mrc_augment *self, int index, const mrc_augment_block *block)
{
    int64_t size = mrc_dtype_size(block->x.dtype);
    for (int64_t i = 0; i < block->x.rows; i++) {
        mrc_rng rng = rng_of(self, block->pass, block->first + i);
        void *row = mrc_row(&block->x, i);
        switch (self->part[index].kind) {
            case NOISE: apply_noise(self, index, rng, &block->x, i); break;
            case SHIFT:
            case CROP: apply_shift(self, index, rng, row, size, block->row); break;
            case FLIP: apply_flip(self, index, rng, row, size, block->row); break;
            case MIXUP:
            case KINDS: break;
        }
    }
}

void mrc_augment_apply(const mrc_augment *self, mrc_augment_block *block)
{
    for (int i = 0; i < self->parts; i++)
        if (self->part[i].kind == MIXUP)
            apply_mixup(self, i, block);
        else
            apply_to_rows(self, i, block);
}
