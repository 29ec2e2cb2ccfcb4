/* SPDX-License-Identifier: BSD-3-Clause */
/* Model files: a model as a tensor file (docs/model-file.md). */
#ifndef MRC_MODEL_MODEL_FILE_H
#define MRC_MODEL_MODEL_FILE_H

#include "model/model.h"
#include "model/tensor_file.h"

#define MRC_MODEL_FORMAT "mercer-model"
/* Format versions. A file gets the lowest version whose readers support everything that its predictions depend on. A
   model without target units, metric, target transform, schema and members has version 1, so that old readers can read
   it. Old readers must not read other models: a reader that does not support notations, for example, would read "1.234"
   as 1.234 even if it means 1234. */
#define MRC_MODEL_FORMAT_PLAIN     "1"
#define MRC_MODEL_FORMAT_UNITS     "2"
#define MRC_MODEL_FORMAT_METRIC    "3" /* a metric, or a transform of the targets */
#define MRC_MODEL_FORMAT_SCHEMA    "4"
#define MRC_MODEL_FORMAT_GAPS      "5" /* a schema that fills missing values */
#define MRC_MODEL_FORMAT_MEMBERS   "6"
#define MRC_MODEL_FORMAT_NOTATIONS "7"  /* a schema with number or date notations */
#define MRC_MODEL_FORMAT_SHIFT     "8"  /* class shifts of the probabilities */
#define MRC_MODEL_FORMAT_CURVATURE "9"  /* curvature of the class scores */
#define MRC_MODEL_FORMAT_LEVELS    "10" /* a schema with statistics of levels */

/* Writes the prefix of a member's tensor and metadata names: "member1.", ...; empty for member 0. */
enum { MRC_MEMBER_CHARS = 32 };
void mrc_member_prefix(int64_t number, char prefix[MRC_MEMBER_CHARS]);

/*
 * Writes the model to path, atomically, together with `extras` additional tensors with names chosen by the caller
 * ("state.alpha"), which mrc_model_read ignores. options may be NULL: the types are stored as in the model.
 */
mercer_status mrc_model_write(mercer_model *model, const char *path, const mercer_save_options *options,
                              const mrc_tensor *extra, int64_t extras);

/* Prints names as a JSON array, ["cat","dog"], that the caller releases with mrc_free. Without names *out is not
   changed. */
mercer_status mrc_print_names(mercer_context *context, const char *const *names, int64_t count, char **out);

/* Reads and checks a model file, or this rank's share of it if comm is not NULL. The model's centers, weights and
   origin are views of a private mapping of the file. */
mercer_status mrc_model_read(mercer_model **out, mercer_context *context, mrc_comm *comm, const char *path);

#endif
