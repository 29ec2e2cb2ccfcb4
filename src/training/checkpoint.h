/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoint files behind a trainer. */
#ifndef MRC_TRAINING_CHECKPOINT_H
#define MRC_TRAINING_CHECKPOINT_H

#include "model/model.h"
#include "training/trainer.h"

typedef struct mrc_checkpoint mrc_checkpoint;

/* Takes what it needs of the options; the texts are copied. */
mercer_status mrc_checkpoint_create(mrc_checkpoint **out, mercer_model *model, const mercer_train_options *options);
void mrc_checkpoint_free(mrc_checkpoint *checkpoint);
/* Makes it the keeper of the trainer's state. */
void mrc_checkpoint_attach(mrc_checkpoint *checkpoint, mrc_trainer *trainer);
/* The trainer's next fit resumes from the file. */
mercer_status mrc_checkpoint_resume(mrc_checkpoint *checkpoint, mrc_trainer *trainer, const char *path);

#endif
