/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of separators and line ends in blocks of text: what the code of every instruction set does. */
#ifndef MRC_DATA_TABLE_CELLS_MARK_KERNELS_H
#define MRC_DATA_TABLE_CELLS_MARK_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Text is looked at in blocks of so many bytes; up to so many numbers more than are meant are written to a list. */
enum { MRC_MARK_BLOCK = 64, MRC_MARK_SPARE = 16 };

/* Lists of places, counted from where the text begins. */
typedef struct mrc_mark_lists {
    uint32_t *ends, *lines; /* where the next is written: of separators and line ends; of line ends */
    const uint32_t *full;   /* no block is looked at once `ends` is there */
    bool quoted;            /* there is a quote: nothing behind it is listed */
} mrc_mark_lists;

/* Whole blocks of a text, up to the first quote. */
void mrc_uk_marks_scalar(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);
void mrc_uk_marks_avx512(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);

#endif
