/* SPDX-License-Identifier: BSD-3-Clause */
/* Which backends of the registry tests run, and how often. */
#ifndef MRC_TESTS_LEVELS_H
#define MRC_TESTS_LEVELS_H

#include "backends/backend.h"

#include <string.h>

/* Whether another instruction set than the lowest is other code: a backend tells what it was tuned to. */
static inline bool follows_level(const mrc_backend *backend)
{
    const char *tuned_to = mrc_backend_capabilities(backend).isa;
    return backend->context->isa == MRC_ISA_SCALAR || strcmp(tuned_to, mrc_isa_name(backend->context->isa)) == 0;
}

/* Whether a failure to make a backend only says that its device is not there. */
static inline bool is_left_out(const mrc_backend_ops *ops, mercer_status status)
{
    return status == MERCER_ERROR_UNSUPPORTED && ops->devices;
}

#endif
