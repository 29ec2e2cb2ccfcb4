/* SPDX-License-Identifier: BSD-3-Clause */
/* In which order the rows of a dataset are read: a function of (seed, pass), found for any place without a list. */
#ifndef MRC_DATA_STREAM_ORDER_H
#define MRC_DATA_STREAM_ORDER_H

#include "data/dataset.h"

enum { MRC_ORDER_BLOCKS = 1024 }; /* in a window, at most */

typedef struct mrc_order {
    const mercer_dataset *data;
    uint64_t seed;
    int threads; /* that shuffle rows; 0 or 1: the caller's alone */
    int64_t pass;
    int64_t block;   /* rows read together; 1: rows are shuffled one by one */
    int64_t blocks;  /* in all; the last may be shorter */
    int64_t window;  /* blocks whose rows are shuffled among themselves */
    int64_t windows; /* in all */
    int64_t open;    /* number of the window that is being read, -1: none; counted through repetitions of the rows */
    int64_t starts[MRC_ORDER_BLOCKS]; /* first rows of its blocks */
} mrc_order;

/* block: rows read together, 0: chosen. data is borrowed. */
void mrc_order_init(mrc_order *order, const mercer_dataset *data, int64_t block, uint64_t seed);
/* A pass begins; what the last one has in memory is given back. */
void mrc_order_restart(mrc_order *order, int64_t pass);
/* The rows of samples first, first + 1, ...: at least one and at most `count`, which are read from the same window;
   tells how many. Samples beyond the number of rows are further passes over them, each with its own order. Tells the
   system which parts of a mapped file are needed soon, and which no more. Any one thread; never fails, never
   allocates. */
int64_t mrc_order_rows(mrc_order *order, int64_t first, int64_t count, int64_t *rows);

#endif
