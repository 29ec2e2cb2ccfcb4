/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of samples on the host. Inner loops have a constant length, so that compilers vectorize them. */
#include "core/numbers/changes.h"

#include "core/matrix.h"
#include "core/numbers/half.h"

#include <string.h>

/* Elements per piece; a multiple of 4, because each call of mrc_random_normals must start at a multiple of 4. */
enum { PIECE = 128 };

/* ---- Noise --------------------------------------------------------------------------------------------------- */

static void add_to_bytes(uint8_t *x, const float *normals, float sigma)
{
    for (int j = 0; j < PIECE; j++) x[j] = mrc_byte_from_float(mrc_plus_times_f32((float)x[j], sigma, normals[j]));
}

static void add_to_floats(float *x, const float *normals, float sigma)
{
    for (int j = 0; j < PIECE; j++) x[j] = mrc_plus_times_f32(x[j], sigma, normals[j]);
}

static void add_to_doubles(double *x, const float *normals, double sigma)
{
    for (int j = 0; j < PIECE; j++) x[j] = mrc_plus_times_f64(x[j], sigma, (double)normals[j]);
}

static void add_to_halves(uint16_t *x, const float *normals, float sigma)
{
    for (int j = 0; j < PIECE; j++)
        x[j] = mrc_half_from_float(mrc_plus_times_f32(mrc_half_to_float(x[j]), sigma, normals[j]));
}

/* Adds noise to `count` <= PIECE elements of any type. An incomplete piece, at the end of a row, is copied to a full
   piece and back. */
static void add_to_piece(void *at, int64_t count, mercer_dtype dtype, const float *normals, double sigma)
{
    int64_t size = mrc_dtype_size(dtype);
    double whole[PIECE] = {0};
    void *piece = count == PIECE ? at : whole;
    if (piece != at) memcpy(piece, at, (size_t)(count * size));
    switch (dtype) {
        case MERCER_U8: add_to_bytes(piece, normals, (float)sigma); break;
        case MERCER_F32: add_to_floats(piece, normals, (float)sigma); break;
        case MERCER_F64: add_to_doubles(piece, normals, sigma); break;
        case MERCER_F16: add_to_halves(piece, normals, (float)sigma); break;
    }
    if (piece != at) memcpy(at, piece, (size_t)(count * size));
}

void mrc_add_noise(void *row, int64_t n, mercer_dtype dtype, const mrc_change *noise, int64_t sequence)
{
    int64_t size = mrc_dtype_size(dtype);
    mrc_rng rng = {noise->seed, (uint64_t)sequence};
    for (int64_t first = 0; first < n; first += PIECE) {
        float normals[PIECE];
        mrc_random_normals(noise->normals, rng, noise->first + (uint64_t)first, PIECE, normals);
        add_to_piece((char *)row + first * size, mrc_min(PIECE, n - first), dtype, normals, noise->sigma);
    }
}

/* ---- Images -------------------------------------------------------------------------------------------------- */

/* Moves the mirrored image, pixel by pixel. Pixels of `to` without a source stay unchanged (the caller sets them to
   0). */
static void move_mirrored(char *to, const char *from, mrc_image_shape image, int64_t pixel, mrc_image_move move)
{
    int64_t h = image.height, w = image.width, right = move.right, down = move.down;
    for (int64_t r = mrc_max(0, down); r < mrc_min(h, h + down); r++)
        for (int64_t c = mrc_max(0, right); c < mrc_min(w, w + right); c++)
            memcpy(to + (r * w + c) * pixel, from + ((r - down) * w + w - 1 - (c - right)) * pixel, (size_t)pixel);
}

/* Copies line by line, because the pixels of a line that stay inside the image are contiguous. If there is a shift,
   `to` is set to 0 first, because some of its pixels have no source. */
void mrc_move_row(void *to, const void *from, int64_t element_size, mrc_image_shape image, mrc_image_move move)
{
    int64_t h = image.height, pixel = image.channels * element_size, line = image.width * pixel;
    int64_t right = move.right * pixel, down = move.down;
    if (right != 0 || down != 0) memset(to, 0, (size_t)(h * line));
    if (move.mirrored) {
        move_mirrored(to, from, image, pixel, move);
        return;
    }
    size_t bytes = (size_t)(line - (right < 0 ? -right : right));
    for (int64_t r = mrc_max(0, down); r < mrc_min(h, h + down); r++)
        memcpy((char *)to + r * line + mrc_max(0, right), (const char *)from + (r - down) * line + mrc_max(0, -right),
               bytes);
}

/* ---- Mixing -------------------------------------------------------------------------------------------------- */

void mrc_mix_rows(void *to, const void *a, const void *b, int64_t n, mercer_dtype dtype, double share)
{
    float f = (float)share, g = (float)(1 - share);
    switch (dtype) {
        case MERCER_U8:
            for (int64_t j = 0; j < n; j++)
                ((uint8_t *)to)[j] = mrc_byte_from_float(
                    mrc_two_products_f32(f, (float)((const uint8_t *)a)[j], g, (float)((const uint8_t *)b)[j]));
            break;
        case MERCER_F32:
            for (int64_t j = 0; j < n; j++)
                ((float *)to)[j] = mrc_two_products_f32(f, ((const float *)a)[j], g, ((const float *)b)[j]);
            break;
        case MERCER_F64:
            for (int64_t j = 0; j < n; j++)
                ((double *)to)[j] =
                    mrc_two_products_f64(share, ((const double *)a)[j], 1 - share, ((const double *)b)[j]);
            break;
        case MERCER_F16:
            for (int64_t j = 0; j < n; j++)
                ((uint16_t *)to)[j] = mrc_half_from_float(mrc_two_products_f32(
                    f, mrc_half_to_float(((const uint16_t *)a)[j]), g, mrc_half_to_float(((const uint16_t *)b)[j])));
            break;
    }
}

/* ---- All rows ------------------------------------------------------------------------------------------------ */

void mrc_change_rows(const mrc_change *change, const mercer_matrix *to, const mercer_matrix *from,
                     const mercer_matrix *other)
{
    int64_t n = from->cols, size = mrc_dtype_size(from->dtype);
    for (int64_t i = 0; i < from->rows; i++) {
        void *row = mrc_row(to, i);
        const void *source = mrc_row(from, i);
        switch (change->kind) {
            case MRC_CHANGE_NOISE:
                if (row != source) memcpy(row, source, (size_t)(n * size));
                mrc_add_noise(row, n, from->dtype, change, change->sequences[i]);
                break;
            case MRC_CHANGE_MOVE: mrc_move_row(row, source, size, change->image, change->moves[i]); break;
            case MRC_CHANGE_MIX: mrc_mix_rows(row, source, mrc_row(other, i), n, from->dtype, change->shares[i]); break;
        }
    }
}
