/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects the backends of the registry and the instruction sets that tests use. */
#ifndef MRC_TESTS_LEVELS_H
#define MRC_TESTS_LEVELS_H

#include "backends/backend.h"

#include <string.h>

/* Return whether the context's instruction set must be tested: it is the lowest, or the backend has code for it. */
static inline bool follows_level(const mrc_backend *backend)
{
    const char *tuned_to = backend->ops->capabilities(backend, false).isa;
    return backend->context->isa == MRC_ISA_SCALAR || strcmp(tuned_to, mrc_isa_name(backend->context->isa)) == 0;
}

/* Return whether a failure to create a backend only means that its device is missing. */
static inline bool is_left_out(const mrc_backend_ops *ops, mercer_status status)
{
    return status == MERCER_ERROR_UNSUPPORTED && ops->devices;
}

#endif
