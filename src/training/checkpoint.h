/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoint files: a model with the state of its training. */
#ifndef MRC_TRAINING_CHECKPOINT_H
#define MRC_TRAINING_CHECKPOINT_H

#include "model/model.h"
#include "solvers/state.h"

typedef struct mrc_checkpoint mrc_checkpoint;

/* Creates the reader and writer of checkpoints for a borrowed model. Path and note are copied from the options. */
mercer_status mrc_checkpoint_create(mrc_checkpoint **out, mercer_model *model, const mercer_train_options *options);
void mrc_checkpoint_free(mrc_checkpoint *checkpoint);
/* Opens the file that training resumes from, and checks that it belongs to the model. It stays open until its matrices
   are loaded. */
mercer_status mrc_checkpoint_open(mrc_checkpoint *checkpoint, const char *path);
/* Returns whether there is a file to save to; false for NULL. */
bool mrc_checkpoint_saves(const mrc_checkpoint *checkpoint);
/* Writes the file atomically. weights (p, c): the model's weights if training ended now. With several ranks,
   collective. */
mercer_status mrc_checkpoint_save(mrc_checkpoint *checkpoint, const mrc_state *state, const mercer_matrix *weights);
/* Read the parts of the open file: the plan, which must have plan->count values; the numbers; the matrices, into the
   entries' memory. Fail with MISMATCH if the file has another layout, with FORMAT if values are invalid. */
mercer_status mrc_checkpoint_load_plan(mrc_checkpoint *checkpoint, mrc_state_plan *plan);
mercer_status mrc_checkpoint_load_numbers(mrc_checkpoint *checkpoint, mrc_state *state);
mercer_status mrc_checkpoint_load_matrices(mrc_checkpoint *checkpoint, mrc_state *state);

#endif
