/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples where they are computed with: a source that stands in for one over a dataset. */
#ifndef MRC_API_API_DEVICE_SOURCE_H
#define MRC_API_API_DEVICE_SOURCE_H

#include "backends/backend.h"

/*
 * For a source over a dataset whose samples are not changed on the way: one with the same samples in the same order,
 * whose batches lie where the backend's matrices do. Stored samples are copied there once, if they take at most `most`
 * bytes; those of a teacher (synth_teacher.c) are drawn there, X to the same bits, Y to the rounding of the kernel
 * products. For other sources out->next is NULL. `source` must outlive it.
 */
mercer_status mrc_device_source_create(mercer_source *out, mrc_backend *backend, const mercer_source *source,
                                       int64_t most);

#endif
