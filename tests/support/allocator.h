/* SPDX-License-Identifier: BSD-3-Clause */
/* An allocator that counts what is alive, can fail the n-th request, and marks memory so that stale reads show, and what
   was written behind its end. */
#ifndef MRC_TESTS_ALLOCATOR_H
#define MRC_TESTS_ALLOCATOR_H

#include "mercer/advanced.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_allocator {
    int64_t requests; /* so far, failed ones included */
    int64_t fail_at;  /* the request (from 1) that fails; 0: none */
    bool fail_after;  /* and every later one */
    int64_t live;     /* blocks not released */
    int64_t misused;  /* requests with an alignment that is no power of two, releases of NULL, writes behind the end */
    mercer_allocator table;
} test_allocator;

/* In front of a block: what was allocated, and how many bytes were asked for. */
typedef struct test_block {
    unsigned char *base, *end;
    size_t tail; /* bytes behind the end that stay as they are */
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
    size_t room = (bytes + unit) / unit * unit; /* at least a byte more */
    unsigned char *base = room > bytes ? aligned_alloc(unit, unit + room) : NULL;
    if (!base) return NULL;
    memset(base + unit, TEST_MARK, room); /* neither zero nor a number: use of uncleared memory shows */
    ((test_block *)(void *)(base + unit))[-1] = (test_block){base, base + unit + bytes, room - bytes};
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
