/* SPDX-License-Identifier: BSD-3-Clause */
/* Model files: a model as a tensor file (docs/model-file.md). */
#ifndef MRC_MODEL_MODEL_FILE_H
#define MRC_MODEL_MODEL_FILE_H

#include "model/model.h"
#include "model/tensor_file.h"

#define MRC_MODEL_FORMAT "mercer-model"
/* The least version that says all a reader must know to predict: a model without units of its targets, without a
   metric, without a transform of its targets, without a schema and without members is a file of version 1. A reader
   that does not know notations would take "1.234" for 1.234 where it is 1234. */
#define MRC_MODEL_FORMAT_PLAIN     "1"
#define MRC_MODEL_FORMAT_UNITS     "2"
#define MRC_MODEL_FORMAT_METRIC    "3" /* or a transform */
#define MRC_MODEL_FORMAT_SCHEMA    "4"
#define MRC_MODEL_FORMAT_GAPS      "5" /* a schema that says how gaps are filled */
#define MRC_MODEL_FORMAT_MEMBERS   "6"
#define MRC_MODEL_FORMAT_NOTATIONS "7" /* a schema with notations of numbers or dates */
#define MRC_MODEL_FORMAT_SHIFT     "8" /* shifts of classes in probabilities */

/* What stands before the names of the tensors and texts of a member but the first: "member1.", ... */
enum { MRC_MEMBER_CHARS = 32 };
void mrc_member_prefix(int64_t number, char prefix[MRC_MEMBER_CHARS]);

/*
 * Writes the model to path, atomically, and `extras` more tensors with names of the caller's ("state.alpha"), which
 * mrc_model_read passes over. options may be NULL: types as they are in the model.
 */
mercer_status mrc_model_write(mercer_model *model, const char *path, const mercer_save_options *options,
                              const mrc_tensor *extra, int64_t extras);

/* ["cat","dog"], released with mrc_free; *out stays as it is if there are none. */
mercer_status mrc_print_names(mercer_context *context, const char *const *names, int64_t count, char **out);

/* The model in a file, checked, or this rank's share of it if comm is not NULL; its centers, weights and origin lie in
   the private mapping of the file. */
mercer_status mrc_model_read(mercer_model **out, mercer_context *context, mrc_comm *comm, const char *path);

#endif
