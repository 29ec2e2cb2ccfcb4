/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Body of the micro-kernel for exact byte products on a unit of tile registers (16 rows of 64 bytes), included after
 * UK_NAME and
 *
 *   UK_BEGIN(), UK_END()                whole tiles are set up; nothing of them is left
 *   UK_TILE_LOAD(t, address, stride)    tile t = 16 rows of 64 bytes, stride bytes apart
 *   UK_TILE_STORE(t, address, stride)
 *   UK_TILE_DOT(c, a, b)                c[i][j] += sum_g sum_{k < 4} a[i][4 g + k] b[g][4 j + k]: words of c, unsigned
 *                                       bytes of a and b
 *
 *   C_ij = start_j + sum_k a_ik b_jk,   i < 16, j < 32;   exact in 32 bits for d <= 32768
 *
 * Layouts are those of group 64 (ukernels.h): a row of a's tile is 64 features of a center, a row of b's tile 4
 * features of 16 rows of X. A row of start, read with stride 0, is all rows of a tile. Each step is 2 tile products for
 * 3 loads, which lie in cache.
 */
void UK_NAME(int64_t groups, const void *a, const void *b, const int32_t *start, int32_t *c)
{
    enum { WORDS = 16, TILE = 1024, ROW = 64, B_STRIDE = 128 }; /* words of a row, bytes of a tile, ... */
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
