/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of checkpoints: a model file with the state of a training. */
#ifndef MRC_TRAINING_CHECKPOINT_H
#define MRC_TRAINING_CHECKPOINT_H

#include "model/model.h"
#include "solvers/state.h"

typedef struct mrc_checkpoint mrc_checkpoint;

/* Creates a checkpoint writer and reader for a model. The texts of the options are copied. */
mercer_status mrc_checkpoint_create(mrc_checkpoint **out, mercer_model *model, const mercer_train_options *options);
void mrc_checkpoint_free(mrc_checkpoint *checkpoint);
/* Opens the file that training resumes from. It stays open until its matrices are loaded. */
mercer_status mrc_checkpoint_open(mrc_checkpoint *checkpoint, const char *path);
/* Returns whether there is a file to save to; false for NULL. */
bool mrc_checkpoint_saves(const mrc_checkpoint *checkpoint);
/* Writes the state; `weights` (p, c) are those the model would get now. */
mercer_status mrc_checkpoint_save(mrc_checkpoint *checkpoint, const mrc_state *state, const mercer_matrix *weights);
/* Read the plan of the open file, which must have plan->count values, the numbers and the matrices. */
mercer_status mrc_checkpoint_load_plan(mrc_checkpoint *checkpoint, mrc_state_plan *plan);
mercer_status mrc_checkpoint_load_numbers(mrc_checkpoint *checkpoint, mrc_state *state);
mercer_status mrc_checkpoint_load_matrices(mrc_checkpoint *checkpoint, mrc_state *state);

#endif
