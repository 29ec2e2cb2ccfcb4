/* SPDX-License-Identifier: BSD-3-Clause */
/* An allocator that counts live blocks and can fail the n-th request. It fills memory with a mark that reveals reads of
   uninitialized memory and writes past the end. */
#ifndef MRC_TESTS_ALLOCATOR_H
#define MRC_TESTS_ALLOCATOR_H

#include "mercer/advanced.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_allocator {
    int64_t requests; /* number of requests so far, failed ones included */
    int64_t fail_at;  /* number (from 1) of the request that fails; 0: none */
    bool fail_after;  /* true: all later requests fail, too */
    int64_t live;     /* number of blocks not released */
    int64_t misused; /* count of alignments that are not a power of two, releases of NULL, bytes written past the end */
    mercer_allocator table;
} test_allocator;

/* Header in front of a block: its allocation, and the end of the requested bytes. */
typedef struct test_block {
    unsigned char *base, *end;
    size_t tail; /* number of bytes after the end, which must keep the mark */
} test_block;

enum { TEST_BLOCK_BYTES = 64, TEST_MARK = 0xa5 };

static inline void *test_allocate(void *user, size_t bytes, size_t alignment)
{
    test_allocator *self = user;
    self->requests++;
    if (alignment == 0 || (alignment & (alignment - 1))) self->misused++;
    if (self->fail_at && (self->requests == self->fail_at || (self->fail_after && self->requests > self->fail_at)))
        return NULL;
    size_t unit = alignment < TEST_BLOCK_BYTES ? TEST_BLOCK_BYTES : alignment;
    size_t size = (bytes + unit) / unit * unit; /* at least one byte more than requested, for the mark */
    unsigned char *base = size > bytes ? aligned_alloc(unit, unit + size) : NULL;
    if (!base) return NULL;
    memset(base + unit, TEST_MARK, size); /* neither zero nor a valid number: reveals the use of uninitialized memory */
    ((test_block *)(void *)(base + unit))[-1] = (test_block){base, base + unit + bytes, size - bytes};
    self->live++;
    return base + unit;
}

static inline void test_release(void *user, void *memory)
{
    test_allocator *self = user;
    self->live--;
    if (!memory) self->misused++;
    if (!memory) return;
    test_block block = ((test_block *)memory)[-1];
    for (size_t i = 0; i < block.tail && i < TEST_BLOCK_BYTES; i++) self->misused += block.end[i] != TEST_MARK;
    free(block.base);
}

static inline const mercer_allocator *test_allocator_table(test_allocator *self)
{
    self->table = (mercer_allocator){sizeof self->table, test_allocate, test_release, self};
    return &self->table;
}

#endif
