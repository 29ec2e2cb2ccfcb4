/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples where they are computed with: a source that stands in for one over a dataset. */
#ifndef MRC_TRAINING_DEVICE_SOURCE_H
#define MRC_TRAINING_DEVICE_SOURCE_H

#include "training/trainer.h"

/*
 * For a source over a dataset whose samples are not changed on the way: one with the same samples in the same order,
 * whose batches lie where the backend's matrices do. Stored samples are copied there once, if they take at most `most`
 * bytes; those of a teacher (synth_teacher.c) are drawn there, X to the same bits, Y to the rounding of the kernel
 * products. For other sources out->next is NULL. `source` must outlive it.
 */
mercer_status mrc_device_source_create(mercer_source *out, mrc_backend *backend, const mercer_source *source,
                                       int64_t most);

/* Plans for, or fits, the samples where the trainer reads them from: the source's, or those on the device, which stay
   there until they are dropped. */
mercer_status mrc_trainer_on_samples(mrc_trainer *trainer, const mercer_source *source,
                                     mercer_status (*act)(mrc_trainer *trainer, const mercer_source *source));
void mrc_trainer_drop_samples(mrc_trainer *trainer);

#endif
