/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrices between guard pages. A read or write outside the data's own pages ends the program at the faulting
 * instruction. The data either end exactly at the upper guard page or begin exactly after the lower one. The padding
 * between rows holds 0xff (NaN in every float type) and must be neither read nor changed.
 */
#ifndef MRC_TESTS_GUARD_H
#define MRC_TESTS_GUARD_H

#include "core/matrix.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded {
    mercer_matrix matrix;
    void *mapping;
    size_t bytes; /* size of the mapping */
} guarded;

/* Create a matrix filled with 0xff. at_end: its last byte is the last byte before the upper guard page. */
static inline guarded guarded_matrix(int64_t rows, int64_t cols, int64_t ld, mercer_dtype dtype, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t span = rows > 0 && cols > 0 ? (size_t)(((rows - 1) * ld + cols) * mrc_dtype_size(dtype)) : 0;
    size_t inside = (span + page - 1) / page * page;
    guarded made = {.bytes = inside + 2 * page};
    made.mapping = mmap(NULL, made.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made.mapping == MAP_FAILED ||
        (inside && mprotect((char *)made.mapping + page, inside, PROT_READ | PROT_WRITE))) {
        perror("guard pages");
        exit(2);
    }
    char *start = (char *)made.mapping + page;
    if (inside) memset(start, 0xff, inside);
    made.matrix = mrc_view(at_end ? start + inside - span : start, rows, cols, dtype);
    made.matrix.ld = ld;
    return made;
}

static inline void guarded_free(guarded *made)
{
    munmap(made->mapping, made->bytes);
}

static inline bool guarded_gaps_intact(const guarded *made)
{
    const mercer_matrix *matrix = &made->matrix;
    int64_t size = mrc_dtype_size(matrix->dtype);
    for (int64_t i = 0; i + 1 < matrix->rows && matrix->cols > 0; i++) {
        const unsigned char *gap = (const unsigned char *)mrc_row(matrix, i) + matrix->cols * size;
        for (int64_t k = 0; k < (matrix->ld - matrix->cols) * size; k++)
            if (gap[k] != 0xff) return false;
    }
    return true;
}

#endif
