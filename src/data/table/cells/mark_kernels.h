/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that list separators and line ends in blocks of text, one per instruction set. */
#ifndef MRC_DATA_TABLE_CELLS_MARK_KERNELS_H
#define MRC_DATA_TABLE_CELLS_MARK_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes in a block of text; number of entries that a kernel may write beyond the end of a list. */
enum { MRC_MARK_BLOCK = 64, MRC_MARK_SPARE = 16 };

/* Lists of offsets from the beginning of the text. */
typedef struct mrc_mark_lists {
    /* next entry to write for separators and line ends (ends), and for line ends only (lines) */
    uint32_t *ends, *lines;
    const uint32_t *full; /* the kernel stops when `ends` reaches this */
    bool quoted;          /* true: there is a quote; nothing after it is listed */
} mrc_mark_lists;

/* List the separators and line ends in the full blocks of a text, up to the first quote. */
void mrc_uk_marks_u8_scalar(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);
void mrc_uk_marks_u8_avx512(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);

#endif
