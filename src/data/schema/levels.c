/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The distinct words of a column: a hash table with open addressing, at most half full.
 *
 * Words are in one buffer, which moves when it grows, so levels have offsets and no pointers. All buffers grow before a
 * word is added: if an allocation fails, the table is unchanged.
 */
#include "data/schema/levels.h"

#include "core/memory.h"

#include <string.h>
#include <xxhash.h>

enum { FIRST_SLOTS = 64 };

void mrc_levels_open(mrc_levels *out, mercer_context *context)
{
    *out = (mrc_levels){.context = context};
}

void mrc_levels_close(mrc_levels *self)
{
    MRC_FREE_ALL(self->context, self->list, self->texts, self->slots, self->recent);
    mrc_levels_open(self, self->context);
}

const char *mrc_levels_text(const mrc_levels *self, int64_t number)
{
    return self->texts + self->list[number].text;
}

/* Returns the slot of a word, or the empty slot where it belongs. The slots must have been allocated. */
static int32_t *find_slot(const mrc_levels *self, const char *text, int64_t length)
{
    uint64_t mask = (uint64_t)self->slot_count - 1;
    for (uint64_t i = XXH3_64bits(text, (size_t)length);; i++) {
        int32_t *slot = &self->slots[i & mask];
        if (*slot < 0) return slot;
        const mrc_level *level = &self->list[*slot];
        if (level->length == length && memcmp(self->texts + level->text, text, (size_t)length) == 0) return slot;
    }
}

int64_t mrc_levels_find(const mrc_levels *self, const char *text, int64_t length)
{
    return self->slots ? *find_slot(self, text, length) : -1;
}

/* Doubles the hash table and inserts all words again. */
static mercer_status grow_slots(mrc_levels *self)
{
    int64_t count = self->slot_count ? 2 * self->slot_count : FIRST_SLOTS;
    MRC_TRY(mrc_move(self->context, &self->slots, 0, count * (int64_t)sizeof *self->slots, "words of a column"));
    self->slot_count = count;
    memset(self->slots, 0xff, (size_t)count * sizeof *self->slots);
    for (int64_t i = 0; i < self->count; i++)
        *find_slot(self, mrc_levels_text(self, i), self->list[i].length) = (int32_t)i;
    return MERCER_OK;
}

/* Grows the buffers for one more word of this length. */
static mercer_status reserve_level(mrc_levels *self, int64_t length)
{
    const int64_t each = (int64_t)sizeof *self->list;
    if (!self->recent)
        MRC_TRY(mrc_alloc_zero(self->context, &self->recent, 1, sizeof *self->recent, "words of a column"));
    if (self->texts_used + length + 1 > self->texts_capacity) {
        int64_t capacity = 2 * self->texts_capacity + length + 1024;
        MRC_TRY(mrc_move(self->context, &self->texts, self->texts_used, capacity, "words of a column"));
        self->texts_capacity = capacity;
    }
    if (self->count == self->capacity) {
        int64_t capacity = self->capacity ? 2 * self->capacity : FIRST_SLOTS;
        MRC_TRY(mrc_move(self->context, &self->list, self->count * each, capacity * each, "words of a column"));
        self->capacity = capacity;
    }
    return 2 * (self->count + 1) > self->slot_count ? grow_slots(self) : MERCER_OK;
}

mercer_status mrc_levels_add(mrc_levels *self, const char *text, int64_t length, const char *path, int64_t line,
                             int64_t *number)
{
    *number = MRC_LEVEL_BEYOND;
    if (self->count == MRC_MOST_LEVELS || self->texts_used + length + 1 > MRC_LEVELS_BYTES) return MERCER_OK;
    MRC_TRY(reserve_level(self, length));
    self->list[self->count] = (mrc_level){.text = self->texts_used, .length = length, .path = path, .line = line};
    memcpy(self->texts + self->texts_used, text, (size_t)length);
    self->texts[self->texts_used + length] = 0;
    self->texts_used += length + 1;
    *find_slot(self, text, length) = (int32_t)self->count;
    *number = self->count++;
    return MERCER_OK;
}
