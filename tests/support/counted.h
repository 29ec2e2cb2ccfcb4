/* SPDX-License-Identifier: BSD-3-Clause */
/* A context with two threads and a counting allocator. With cmocka_run_group_tests(tests, set_up, tear_down), a leak is
   a failure. */
#ifndef MRC_TESTS_COUNTED_H
#define MRC_TESTS_COUNTED_H

#include "support/check.h"

#include "support/allocator.h"

typedef struct fixture {
    mercer_context *context;
    test_allocator memory;
} fixture;

static int set_up(void **state)
{
    static fixture self;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 2;
    options.allocator = test_allocator_table(&self.memory);
    *state = &self;
    return mercer_context_create(&self.context, &options) != MERCER_OK;
}

static int tear_down(void **state)
{
    fixture *self = *state;
    mercer_context_free(self->context);
    return self->memory.live != 0 || self->memory.misused != 0;
}

#endif
