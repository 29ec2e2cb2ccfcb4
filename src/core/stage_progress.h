/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of progress callbacks outside training. */
#ifndef MRC_CORE_STAGE_PROGRESS_H
#define MRC_CORE_STAGE_PROGRESS_H

#include "mercer/mercer.h"

#include <stdbool.h>

/* Reports `done` of `total` steps of a stage, unless callback is NULL; returns whether the callback requests a stop. */
static inline bool mrc_progress(mercer_progress_callback callback, void *user, const char *stage, int64_t done,
                                int64_t total, double error)
{
    if (!callback) return false;
    const mercer_progress progress = {
        .struct_size = sizeof progress, .stage = stage, .done = done, .total = total, .error = error};
    return callback(user, &progress) != 0;
}

#endif
