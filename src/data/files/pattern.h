/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a name means: itself, or those that match it in natural order. */
#ifndef MRC_DATA_FILES_PATTERN_H
#define MRC_DATA_FILES_PATTERN_H

#include "core/context.h"

typedef struct mrc_names {
    const char **list; /* (count), with their texts in one block of memory */
    int64_t count;     /* at least 1 */
} mrc_names;

/*
 * `name` is a file, or its last component has wildcards (* ? [...]) and no file has that very name: then the files of
 * the folder that match, hidden ones only if the pattern begins with a dot. Numbers inside names are compared as
 * numbers, so part-2 comes before part-10. MERCER_ERROR_MISSING if nothing matches. Released by mrc_names_free.
 */
mercer_status mrc_names_find(mrc_names *out, mercer_context *context, const char *name);
void mrc_names_free(mercer_context *context, mrc_names *names);

#endif
