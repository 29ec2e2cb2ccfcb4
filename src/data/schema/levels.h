/* SPDX-License-Identifier: BSD-3-Clause */
/* The different words of a column, numbered as they come, found by a hash table of bounded size. */
#ifndef MRC_DATA_SCHEMA_LEVELS_H
#define MRC_DATA_SCHEMA_LEVELS_H

#include "core/memory.h"
#include "data/schema/recent.h"

#include <stdbool.h>

/* So many different words are told apart, of so many bytes in all; what comes later is MRC_LEVEL_BEYOND. */
enum { MRC_MOST_LEVELS = 1 << 16, MRC_LEVELS_BYTES = 1 << 24, MRC_LEVEL_BEYOND = -1 };

typedef struct mrc_level {
    int64_t text, length; /* in `texts`, zero-terminated */
    const char *path;     /* where it was seen first; borrowed */
    int64_t line;
    int64_t count; /* cells that hold it, as far as they were counted */
    float final;   /* the cell that it becomes, once the schema is found */
} mrc_level;

typedef struct mrc_levels {
    mercer_context *context;
    mrc_level *list; /* (count) */
    int64_t count, room;
    char *texts;
    int64_t texts_used, texts_room;
    int32_t *slots; /* (slot_count), a power of two; -1 is empty */
    int64_t slot_count;
    mrc_recent *recent; /* those that were noted; NULL as long as there are no words */
} mrc_levels;

void mrc_levels_open(mrc_levels *out, mercer_context *context);
void mrc_levels_close(mrc_levels *levels);
/* The number of a word, or -1. */
int64_t mrc_levels_find(const mrc_levels *levels, const char *text, int64_t length);
/* The same for a word that is not there, which is added; MRC_LEVEL_BEYOND if there is no room for it. */
mercer_status mrc_levels_add(mrc_levels *levels, const char *text, int64_t length, const char *path, int64_t line,
                             int64_t *number);
const char *mrc_levels_text(const mrc_levels *levels, int64_t number);

#endif
