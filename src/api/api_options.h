/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the public functions. They check arguments and call; what is computed stands in the other folders. Where only
 * a handle is to be checked, the other folder has the public function itself.
 *
 * This header: structs that cross the boundary begin with struct_size; reading and writing old and new ones.
 */
#ifndef MRC_API_API_OPTIONS_H
#define MRC_API_API_OPTIONS_H

#include "core/context.h"

/* The size of a struct of the header and its name, which messages tell. */
#define MRC_STRUCT(type) sizeof(type), #type

/*
 * Copies the caller's struct (NULL: all 0) into ours of `size` bytes. A caller built against an older header has a
 * shorter one: the rest is 0. One built against a newer header may have set fields we do not know: refused, not
 * ignored.
 */
mercer_status mrc_read_struct(mercer_context *context, void *ours, size_t size, const char *type, const void *theirs,
                              const char *name);

/* Copies our struct into the caller's, which may be shorter or longer: only the fields that both have. The caller's
   struct_size is not changed. */
mercer_status mrc_write_struct(mercer_context *context, void *theirs, const void *ours, size_t size, const char *type,
                               const char *name);

/* A number of some options, and the least that it may be. */
typedef struct mrc_bound {
    const char *name;
    int64_t value, least;
} mrc_bound;
mercer_status mrc_check_bounds(mercer_context *context, const mrc_bound *bounds, size_t count);

/* The caller's shape, checked; types that it leaves open are chosen. */
mercer_status mrc_read_shape(mercer_context *context, mercer_shape *ours, const mercer_shape *theirs);

/* MERCER_ERROR_MISMATCH if the samples were read with another schema, other columns or other classes than the model's,
   MERCER_ERROR_SHAPE if they have another number of features. */
mercer_status mrc_check_model_dataset(const mercer_model *model, const mercer_dataset *data);

#endif
