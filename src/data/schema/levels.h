/* SPDX-License-Identifier: BSD-3-Clause */
/* The distinct words of a column, numbered in the order of first occurrence, in a hash table of bounded size. */
#ifndef MRC_DATA_SCHEMA_LEVELS_H
#define MRC_DATA_SCHEMA_LEVELS_H

#include "core/memory.h"
#include "data/schema/recent.h"

#include <stdbool.h>

/* Largest number of distinct words of a column, and of their bytes; later words are MRC_LEVEL_BEYOND. */
enum { MRC_MOST_LEVELS = 1 << 16, MRC_LEVELS_BYTES = 1 << 24, MRC_LEVEL_BEYOND = -1 };

typedef struct mrc_level {
    int64_t text, length; /* offset of the zero-terminated word in `texts`; its length */
    const char *path;     /* file of the first occurrence; borrowed */
    int64_t line;         /* line or row of the first occurrence */
    int64_t count;        /* number of cells counted so far that have this word */
    float final;          /* cell of this word after the schema has been found */
} mrc_level;

typedef struct mrc_levels {
    mercer_context *context;
    mrc_level *list; /* (count) */
    int64_t count, capacity;
    char *texts;
    int64_t texts_used, texts_capacity;
    int32_t *slots; /* (slot_count, a power of two) indices into list; -1 is empty */
    int64_t slot_count;
    mrc_recent *recent; /* cache of recently seen words; NULL while there are no words */
} mrc_levels;

void mrc_levels_open(mrc_levels *out, mercer_context *context);
void mrc_levels_close(mrc_levels *levels);
/* Returns the index of a word, or -1 if it is not present. */
int64_t mrc_levels_find(const mrc_levels *levels, const char *text, int64_t length);
/* Adds a word that is not present. Sets *number to its index, or to MRC_LEVEL_BEYOND if a limit is reached. */
mercer_status mrc_levels_add(mrc_levels *levels, const char *text, int64_t length, const char *path, int64_t line,
                             int64_t *number);
const char *mrc_levels_text(const mrc_levels *levels, int64_t number);

#endif
