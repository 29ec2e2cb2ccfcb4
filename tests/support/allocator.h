/* SPDX-License-Identifier: BSD-3-Clause */
/* An allocator that counts what is alive, can fail the n-th request, and marks memory so that stale reads show. */
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
    int64_t misused;  /* requests with an alignment that is no power of two, releases of NULL */
    mercer_allocator table;
} test_allocator;

static inline void *test_allocate(void *user, size_t bytes, size_t alignment)
{
    test_allocator *self = user;
    self->requests++;
    if (alignment == 0 || (alignment & (alignment - 1))) self->misused++;
    if (self->fail_at && (self->requests == self->fail_at || (self->fail_after && self->requests > self->fail_at)))
        return NULL;
    size_t unit = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    void *memory =
        aligned_alloc(unit, (bytes + unit) / unit * unit); /* at least a byte, and a multiple as C11 wants it */
    if (!memory) return NULL;
    memset(memory, 0xa5, bytes); /* neither zero nor a number: use of uncleared memory shows */
    self->live++;
    return memory;
}

static inline void test_release(void *user, void *memory)
{
    test_allocator *self = user;
    if (!memory) self->misused++;
    self->live--;
    free(memory);
}

static inline const mercer_allocator *test_allocator_table(test_allocator *self)
{
    self->table = (mercer_allocator){sizeof self->table, test_allocate, test_release, self};
    return &self->table;
}

#endif
