/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading order of the rows of a dataset: a function of (seed, pass), computed for any position without a list. */
#ifndef MRC_DATA_STREAM_ORDER_H
#define MRC_DATA_STREAM_ORDER_H

#include "data/dataset.h"

enum { MRC_ORDER_BLOCKS = 1024 }; /* maximum number of blocks in a window */

typedef struct mrc_order {
    const mercer_dataset *data;
    uint64_t seed;
    int threads; /* number of threads that shuffle rows; 0 or 1: only the calling thread */
    int64_t pass;
    int64_t block;                    /* rows per block; 1: rows are shuffled individually */
    int64_t blocks;                   /* number of blocks; the last may be shorter */
    int64_t window;                   /* blocks per window; rows are shuffled within a window */
    int64_t windows;                  /* number of windows */
    int64_t open;                     /* current window, counted across repetitions of the rows; -1: none */
    int64_t starts[MRC_ORDER_BLOCKS]; /* first row of each block of the current window */
} mrc_order;

/* Initializes an order. block: rows per block; 0: chosen by data size. data is borrowed. */
void mrc_order_init(mrc_order *order, const mercer_dataset *data, int64_t block, uint64_t seed);
/* Begins a pass and releases the file pages that the previous pass holds in memory. */
void mrc_order_restart(mrc_order *order, int64_t pass);
/* Writes the rows of samples first, first + 1, ... and returns their number: between 1 and `count`, all from one
   window. Samples beyond the number of rows repeat the rows, and each repetition has its own order. Advises the system
   which parts of a mapped file are needed soon, and which are no longer needed. Any thread may call this function, but
   with block > 1 only one thread at a time. Never fails or allocates. */
int64_t mrc_order_rows(mrc_order *order, int64_t first, int64_t count, int64_t *rows);

#endif
