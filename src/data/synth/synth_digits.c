/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images of digits that imitate handwriting: each sample is a sequence of strokes.
 *
 * Sample i draws, all from (seed, i):
 *   1. a digit, uniformly, and one of the ways to write it;
 *   2. its control points, each moved by a normal jitter, joined by Catmull-Rom curves cut into straight pieces;
 *   3. a linear map: size in both directions, slant, rotation, and a shift:  q = R(phi) S(slant) diag(sx, sy) p + t;
 *   4. the pen: radius r and softness, and the brightness of the ink;
 *   5. with probability 1/4, a stray stroke that belongs to no digit;
 *   6. pixels:  ink * clamp((r - distance to the nearest piece) / softness + 1/2)  + noise, rounded and clamped to 0 ..
 *               255.
 *
 * Cost: distances are computed only between a piece and the pixels near it, about 2,000 distances and 784 normal
 * numbers per digit.
 */
#include "data/synth/synth_kinds.h"

#include <math.h>

enum { SIDE = 28, STRIDE = 32, ROWS = SIDE, MOST_POINTS = 12, MOST_STROKES = 3, CUTS = 4, LANES = 8 };

/* Control points as pairs (x, y) in hundredths of the digit's box, x to the right, y down. A point given twice makes a
   corner. */
typedef struct stroke {
    int count;
    signed char xy[2 * MOST_POINTS];
} stroke;

/* One way to write a digit, as strokes. */
typedef struct glyph {
    int strokes;
    stroke stroke[MOST_STROKES];
} glyph;

enum { MOST_WAYS = 4 };

/* All ways to write a digit; a sample draws one of them uniformly. */
typedef struct way {
    int ways;
    glyph glyph[MOST_WAYS];
} way;

/* clang-format off */
static const way digits[10] = {
    /* 0 */ {3, {
        {1, {{9, {50, 0, 18, 14, 5, 50, 18, 86, 50, 100, 82, 86, 95, 50, 82, 14, 50, 0}}}},
        {1, {{10, {62, 4, 30, 8, 12, 40, 18, 80, 45, 99, 78, 84, 92, 46, 78, 12, 52, 1, 40, 10}}}},
        {1, {{9, {46, 0, 28, 16, 22, 52, 30, 88, 52, 100, 72, 84, 78, 48, 70, 12, 46, 0}}}}}},
    /* 1 */ {3, {
        {1, {{2, {50, 0, 50, 100}}}},
        {1, {{5, {28, 24, 42, 12, 54, 0, 54, 0, 52, 100}}}},
        {2, {{5, {30, 22, 44, 10, 52, 0, 52, 0, 52, 98}}, {2, {26, 100, 80, 99}}}}}},
    /* 2 */ {3, {
        {1, {{9, {12, 26, 24, 6, 52, 0, 80, 12, 80, 36, 50, 66, 10, 98, 10, 98, 92, 97}}}},
        {1, {{11, {14, 22, 36, 2, 68, 4, 78, 30, 58, 62, 30, 88, 12, 92, 18, 76, 40, 84, 68, 98, 94, 90}}}},
        {1, {{8, {10, 18, 46, 0, 84, 14, 74, 46, 36, 76, 8, 97, 8, 97, 90, 99}}}}}},
    /* 3 */ {3, {
        {1, {{10, {14, 14, 42, 0, 76, 10, 74, 36, 40, 47, 40, 47, 82, 58, 88, 82, 52, 100, 10, 86}}}},
        {1, {{8, {12, 4, 84, 3, 84, 3, 44, 42, 80, 54, 86, 82, 50, 100, 12, 88}}}},
        {1, {{9, {20, 10, 52, 0, 78, 18, 58, 42, 46, 46, 74, 56, 84, 80, 54, 99, 18, 92}}}}}},
    /* 4 */ {3, {
        {2, {{5, {34, 2, 12, 60, 12, 60, 50, 61, 94, 58}}, {2, {72, 20, 66, 100}}}},
        {1, {{6, {66, 100, 66, 2, 66, 2, 8, 66, 8, 66, 96, 66}}}},
        {2, {{5, {18, 4, 14, 44, 30, 56, 62, 52, 80, 44}}, {3, {84, 0, 78, 48, 72, 100}}}}}},
    /* 5 */ {3, {
        {2, {{8, {26, 4, 20, 46, 20, 46, 54, 36, 86, 56, 82, 86, 48, 100, 10, 88}}, {2, {26, 4, 88, 2}}}},
        {1, {{11, {86, 3, 30, 5, 30, 5, 22, 42, 22, 42, 56, 38, 84, 58, 78, 88, 46, 100, 22, 96, 10, 86}}}},
        {1, {{8, {84, 4, 44, 2, 24, 20, 36, 40, 70, 54, 82, 78, 56, 98, 14, 92}}}}}},
    /* 6 */ {3, {
        {1, {{10, {72, 2, 34, 28, 12, 66, 26, 96, 60, 100, 84, 78, 70, 54, 40, 54, 20, 72, 18, 80}}}},
        {1, {{10, {50, 0, 26, 36, 16, 74, 34, 99, 66, 96, 80, 74, 64, 56, 38, 62, 24, 80, 26, 88}}}},
        {1, {{9, {84, 8, 52, 6, 22, 40, 12, 78, 42, 100, 80, 86, 78, 60, 46, 52, 18, 68}}}}}},
    /* 7 */ {4, {
        {1, {{5, {8, 4, 90, 3, 90, 3, 58, 50, 40, 100}}}},
        {2, {{5, {10, 4, 88, 2, 88, 2, 60, 48, 42, 100}}, {2, {28, 52, 84, 48}}}},
        {1, {{6, {10, 20, 16, 4, 50, 6, 90, 2, 66, 48, 56, 100}}}},
        {1, {{5, {14, 6, 84, 10, 84, 10, 70, 50, 36, 98}}}}}},
    /* 8 */ {3, {
        {1, {{12, {78, 14, 48, 0, 20, 16, 36, 42, 74, 62, 84, 86, 50, 100, 16, 86, 26, 60, 64, 40, 80, 18, 66, 4}}}},
        {2, {{8, {50, 0, 24, 10, 26, 36, 50, 46, 74, 34, 76, 10, 52, 0, 40, 2}},
             {8, {50, 46, 18, 62, 16, 88, 48, 100, 82, 88, 84, 62, 54, 46, 42, 48}}}},
        {1, {{11, {50, 48, 22, 30, 32, 4, 66, 2, 76, 26, 50, 48, 20, 72, 30, 98, 68, 98, 78, 70, 50, 48}}}}}},
    /* 9 */ {3, {
        {1, {{10, {82, 20, 54, 0, 20, 12, 16, 38, 44, 52, 76, 40, 84, 14, 82, 50, 76, 80, 70, 100}}}},
        {1, {{11, {80, 16, 50, 0, 18, 16, 22, 44, 56, 50, 80, 28, 80, 10, 80, 58, 66, 92, 38, 100, 16, 90}}}},
        {2, {{8, {50, 0, 22, 10, 18, 38, 46, 52, 76, 38, 80, 12, 56, 0, 44, 2}}, {3, {80, 10, 76, 54, 60, 100}}}}}},
};
/* clang-format on */

/* Draws of a sample: words 0 .. 15 for choices, normal numbers from SHAPE on for the shape, and from NOISE on for the
   pixels; each stroke uses JITTER normal numbers of the shape. Words: 0 digit, 1 way, 2 to 4 pen, 5 to 8 stray stroke.
   Normal numbers of the shape: 0 to 5 map and position, 6 and 7 stray stroke, from 8 on the strokes. */
enum { WORDS = 16, SHAPE = 16, SHAPE_NORMALS = 112, NOISE = 128, JITTER = 24 };

typedef struct point {
    float x, y;
} point;

/* Shape and pen of one sample. */
typedef struct hand {
    float xx, xy, yx, yy; /* the linear map */
    point center;
    float radius, softness, ink;
} hand;

/* Returns a number in 0 .. 1 (exclusive) from the upper 24 bits of a word, which a float holds exactly. */
static float unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* Draws size, slant, rotation, position and pen of a sample. */
static hand draw_hand(const uint32_t words[WORDS], const float shape[SHAPE_NORMALS])
{
    float width = 14.5f + 2.3f * shape[0], height = 18.5f + 1.9f * shape[1];
    float slant = 0.16f + 0.18f * shape[2], turn = 0.13f * shape[3];
    if (width < 7) width = 7;
    if (height < 11) height = 11;
    /* A rotation to second order, which needs no libm and is identical on every machine. */
    float cosine = 1 - 0.5f * turn * turn, sine = turn;
    hand out;
    out.xx = width * cosine, out.yx = width * sine;
    out.xy = -height * (slant * cosine + sine), out.yy = height * (cosine - slant * sine);
    out.center = (point){0.5f * SIDE - 0.5f + 1.15f * shape[4], 0.5f * SIDE - 0.5f + 1.15f * shape[5]};
    out.radius = 0.9f + 0.9f * unit(words[2]);
    out.softness = 0.9f + 0.9f * unit(words[3]);
    out.ink = 255 * (0.55f + 0.45f * unit(words[4]));
    return out;
}

/* ---- Drawing --------------------------------------------------------------------------------------------------- */

/* Squared distances from pixels to the nearest piece; columns after the image pad rows to whole vectors. */
typedef struct canvas {
    float near[ROWS][STRIDE];
} canvas;

static int clamp_index(float value, int most)
{
    return value < 0 ? 0 : value > (float)most ? most : (int)value;
}

static float least(float a, float b)
{
    return a < b ? a : b;
}
static float most(float a, float b)
{
    return a > b ? a : b;
}

/* Lowers near[y][x] to the squared distance to the segment from a to b, for the pixels within `reach` of the
   segment. */
static void draw_piece(canvas *self, point a, point b, float reach)
{
    float low_x = least(a.x, b.x) - reach, high_x = most(a.x, b.x) + reach;
    float low_y = least(a.y, b.y) - reach, high_y = most(a.y, b.y) + reach;
    if (high_x < 0 || high_y < 0 || low_x > SIDE - 1 || low_y > SIDE - 1) return;
    int first = clamp_index(low_x, STRIDE - LANES), last = clamp_index(high_x, SIDE - 1);
    int top = clamp_index(low_y, SIDE - 1), bottom = clamp_index(high_y, SIDE - 1);
    /* A segment of nearly no length counts as the point a, because t stays 0. */
    float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy, over = length > 1e-6f ? 1 / length : 0;
    for (int y = top; y <= bottom; y++)
        for (int x = first; x <= last && x <= STRIDE - LANES; x += LANES) {
            float *near = &self->near[y][x];
            float up = (float)y - a.y;
            for (int i = 0; i < LANES; i++) {
                float along = (float)(x + i) - a.x, t = (along * dx + up * dy) * over;
                t = t < 0 ? 0 : t;
                t = t > 1 ? 1 : t;
                float gap_x = along - t * dx, gap_y = up - t * dy, gap = gap_x * gap_x + gap_y * gap_y;
                near[i] = gap < near[i] ? gap : near[i];
            }
        }
}

/* Returns the point at t of the Catmull-Rom curve from b to c, given their neighbors a and d. */
static point on_curve(point a, point b, point c, point d, float t)
{
    float t2 = t * t, t3 = t2 * t;
    float wa = 0.5f * (-t + 2 * t2 - t3), wb = 0.5f * (2 - 5 * t2 + 3 * t3);
    float wc = 0.5f * (t + 4 * t2 - 3 * t3), wd = 0.5f * (t3 - t2);
    return (point){wa * a.x + wb * b.x + wc * c.x + wd * d.x, wa * a.y + wb * b.y + wc * c.y + wd * d.y};
}

/* Draws the curve through all points of a stroke; the end points have no outer neighbors and are repeated. */
static void draw_stroke(canvas *self, const point *points, int count, float reach)
{
    for (int i = 0; i + 1 < count; i++) {
        point a = points[i > 0 ? i - 1 : 0], b = points[i], c = points[i + 1],
              d = points[i + 2 < count ? i + 2 : i + 1];
        point from = b;
        for (int cut = 1; cut <= CUTS; cut++) {
            point to = on_curve(a, b, c, d, (float)cut / CUTS);
            draw_piece(self, from, to, reach);
            from = to;
        }
    }
}

/* Maps the control points of a stroke to pixels, with jitter. */
static void place_stroke(const stroke *from, const hand *by, const float *jitter, point *out)
{
    for (int i = 0; i < from->count; i++) {
        const signed char *xy = from->xy + 2 * i;
        if (i > 0 && xy[0] == xy[-2] && xy[1] == xy[-1]) { /* a repeated point stays a corner */
            out[i] = out[i - 1];
            continue;
        }
        float x = (float)xy[0] * 0.01f - 0.5f + 0.048f * jitter[2 * i];
        float y = (float)xy[1] * 0.01f - 0.5f + 0.04f * jitter[2 * i + 1];
        out[i] = (point){by->center.x + by->xx * x + by->xy * y, by->center.y + by->yx * x + by->yy * y};
    }
}

/* Draws a short stroke near the border, with probability 1/4. */
static void draw_stray(canvas *self, const uint32_t words[WORDS], const float shape[SHAPE_NORMALS], float reach)
{
    if (words[5] % 4 != 0) return;
    point a = {unit(words[6]) * SIDE, unit(words[7]) * SIDE};
    if (words[8] % 2)
        a.x = words[8] % 4 < 2 ? 2 : SIDE - 3;
    else
        a.y = words[8] % 4 < 2 ? 2 : SIDE - 3;
    draw_piece(self, a, (point){a.x + 3 * shape[6], a.y + 3 * shape[7]}, reach);
}

/* Converts distances to ink, adds noise, and rounds to bytes. */
static void write_pixels(const mrc_synth *synth, const canvas *drawn, const hand *by, mrc_rng rng, uint8_t *out)
{
    float noise[SIDE * SIDE], deviation = (float)(255 * synth->parameters.noise);
    mrc_random_normals(&synth->normals, rng, NOISE, SIDE * SIDE, noise);
    float over = 1 / by->softness, offset = by->radius * over + 0.5f;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float ink = offset - sqrtf(drawn->near[y][x]) * over;
            ink = ink < 0 ? 0 : ink > 1 ? 1 : ink;
            float value = by->ink * ink + deviation * noise[SIDE * y + x] + 0.5f;
            value = value < 0 ? 0 : value > 255 ? 255 : value;
            out[SIDE * y + x] = (uint8_t)value;
        }
}

int32_t mrc_synth_digit(const mrc_synth *synth, int64_t index, void *features, const mercer_matrix *y, int64_t row)
{
    (void)y, (void)row;
    mrc_rng rng = {synth->seed, (uint64_t)index};
    uint32_t words[WORDS];
    mrc_random_words(rng, 0, WORDS, words);
    int32_t digit = (int32_t)((uint64_t)words[0] * 10 >> 32);
    float shape[SHAPE_NORMALS];
    mrc_random_normals(&synth->normals, rng, SHAPE, SHAPE_NORMALS, shape);
    const way *ways = &digits[digit];
    const glyph *shape_of = &ways->glyph[(uint64_t)words[1] * (uint64_t)ways->ways >> 32];
    hand by = draw_hand(words, shape);
    float reach = by.radius + by.softness;
    canvas drawn;
    for (int i = 0; i < ROWS * STRIDE; i++) drawn.near[i / STRIDE][i % STRIDE] = 1e6f;
    for (int i = 0; i < shape_of->strokes; i++) {
        point points[MOST_POINTS];
        place_stroke(&shape_of->stroke[i], &by, shape + 8 + JITTER * i, points);
        draw_stroke(&drawn, points, shape_of->stroke[i].count, reach);
    }
    draw_stray(&drawn, words, shape, reach);
    write_pixels(synth, &drawn, &by, rng, features);
    return digit;
}

mercer_status mrc_synth_prepare_digits(mercer_dataset *dataset, mrc_synth *synth)
{
    (void)synth;
    dataset->features = SIDE * SIDE;
    dataset->outputs = 10;
    dataset->height = dataset->width = SIDE;
    dataset->channels = 1;
    return MERCER_OK;
}
