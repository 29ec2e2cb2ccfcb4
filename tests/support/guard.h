/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrices between guard pages: a read or write one byte outside of the page the data touch ends the program at the culprit. The data
 * either end exactly where the guard begins or begin exactly where the other one ends. Gaps between rows hold 0xff (NaN in every
 * float type), which must neither be used nor changed.
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
    size_t bytes; /* of the mapping */
} guarded;

/* at_end: the last byte of the last row is the last byte before the guard. */
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
