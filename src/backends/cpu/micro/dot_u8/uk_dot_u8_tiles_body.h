/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Body of the micro-kernel for exact byte products in tile registers (16 rows of 64 bytes each), included after UK_NAME
 * and
 *
 *   UK_BEGIN(), UK_END()                configure full tiles; release all tile state
 *   UK_TILE_LOAD(t, address, stride)    tile t = 16 rows of 64 bytes, stride bytes apart
 *   UK_TILE_STORE(t, address, stride)
 *   UK_TILE_DOT(c, a, b)                c[i][j] += sum_g sum_{k < 4} a[i][4 g + k] b[g][4 j + k]: words of c, unsigned
 *                                       bytes of a and b
 *
 *   C_ij = start_j + sum_k a_ik b_jk,   i < 16, j < 32;   exact in 32 bits for d <= 32768
 *
 * Layouts are those of group 64 (ukernels.h): a row of a's tile is 64 features of a center, a row of b's tile 4
 * features of 16 rows of X. A row of start, loaded with stride 0, fills all rows of a tile. Each step has 2 tile
 * products and 3 tile loads, from cache.
 */
void UK_NAME(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c)
{
    /* Words per tile row, bytes per tile, bytes per tile row, bytes from a row of b (or c) to the next. */
    enum { WORDS = 16, TILE = 1024, ROW = 64, B_STRIDE = 128 };
    const char *left = a, *right = b;
    UK_BEGIN();
    UK_TILE_LOAD(0, start, 0);
    UK_TILE_LOAD(1, start + WORDS, 0);
    for (int64_t g = 0; g < groups; g += WORDS, left += TILE, right += 2 * TILE) {
        UK_TILE_LOAD(2, left, ROW);
        UK_TILE_LOAD(3, right, B_STRIDE);
        UK_TILE_LOAD(4, right + ROW, B_STRIDE);
        UK_TILE_DOT(0, 2, 3);
        UK_TILE_DOT(1, 2, 4);
    }
    UK_TILE_STORE(0, c, B_STRIDE);
    UK_TILE_STORE(1, c + WORDS, B_STRIDE);
    UK_END();
}
