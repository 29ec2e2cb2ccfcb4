/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Normal numbers on the device, the bits of random_normal.c: Philox blocks of four words, each word two atoms of the
 * table, z = (4 T[a] + 3 T[b]) / 5. Whole numbers up to the last multiplication, so there is nothing to round
 * otherwise.
 */
#include "backends/cuda/device/elements.cuh"
#include "backends/cuda/device/launch.h"

enum { ATOMS = 4096, ROUNDS = 10 };

static __device__ void philox(uint64_t block, uint64_t sequence, uint64_t seed, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)sequence,
             c3 = (uint32_t)(sequence >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* One thread for a block of four numbers. */
static __global__ void draw(mercer_matrix x, const int16_t *atoms, uint64_t seed, const int64_t *sequences,
                            uint64_t first)
{
    const float unit = 1.0f / (5 * 4096);
    int64_t blocks = (x.cols + 3) / 4;
    MRC_FOR_EACH(i, b, x.rows, blocks)
    {
        uint32_t words[4];
        philox(first / 4 + (uint64_t)b, (uint64_t)sequences[i], seed, words);
        float *row = (float *)x.data + i * x.ld;
        for (int k = 0; k < 4 && 4 * b + k < x.cols; k++)
            row[4 * b + k] = (float)(4 * atoms[words[k] % ATOMS] + 3 * atoms[words[k] >> 20]) * unit;
    }
}

cudaError_t mrc_launch_normals(cudaStream_t stream, mercer_matrix x, const int16_t *atoms, uint64_t seed,
                               const int64_t *sequences, uint64_t first)
{
    draw<<<mrc_blocks(x.rows * ((x.cols + 3) / 4), MRC_CUDA_GRID), 256, 0, stream>>>(x, atoms, seed, sequences, first);
    return cudaGetLastError();
}
