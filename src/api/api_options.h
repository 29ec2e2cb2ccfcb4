/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the public functions. They check arguments and call the other folders, which do the work.
 *
 * This header has the functions that read and write public structs. These begin with struct_size, so that callers that
 * were compiled with an older or newer header can be served.
 */
#ifndef MRC_API_API_OPTIONS_H
#define MRC_API_API_OPTIONS_H

#include "core/context.h"

/* Size and name of a public struct; the name is used in messages. */
#define MRC_STRUCT(type) sizeof(type), #type

/*
 * Copies the caller's struct (NULL: all 0) into ours of `size` bytes. A caller built with an older header passes a
 * shorter struct; the missing fields become 0. A caller built with a newer header may have set fields that do not exist
 * here; that is an error, because ignoring them would be silently wrong.
 */
mercer_status mrc_read_struct(mercer_context *context, void *ours, size_t size, const char *type, const void *theirs,
                              const char *name);

/* Copies the fields that both structs have from ours to the caller's, which may be shorter or longer. The caller's
   struct_size is not changed. */
mercer_status mrc_write_struct(mercer_context *context, void *theirs, const void *ours, size_t size, const char *type,
                               const char *name);

/* Checks that the context is not NULL, and waits until its device is initialized (mercer_context_options.deferred).
   Public functions that use the backend, or create objects that do, call it first. */
mercer_status mrc_context_ready(mercer_context *context);

/* An integer option and its smallest allowed value. */
typedef struct mrc_bound {
    const char *name;
    int64_t value, least;
} mrc_bound;
/* Fails with ARGUMENT, with the name of the option, if a value is below its limit. */
mercer_status mrc_check_bounds(mercer_context *context, const mrc_bound *bounds, size_t count);

/* Reads and checks the caller's shape, and sets types that are 0 to their defaults. */
mercer_status mrc_read_shape(mercer_context *context, mercer_shape *ours, const mercer_shape *theirs);

/* Checks that a dataset fits a model: MERCER_ERROR_MISMATCH if it was read with another schema, other columns or
   other classes, MERCER_ERROR_SHAPE if it has another number of features. */
mercer_status mrc_check_model_dataset(const mercer_model *model, const mercer_dataset *data);

#endif
