/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a column: open addressing, at most half of the slots filled. */
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
    mrc_free(self->context, self->list);
    mrc_free(self->context, self->texts);
    mrc_free(self->context, self->slots);
    mrc_levels_open(self, self->context);
}

const char *mrc_levels_text(const mrc_levels *self, int64_t number)
{
    return self->texts + self->list[number].text;
}

/* The slot of a word, or the empty one where it belongs. There are slots. */
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

void mrc_levels_note(mrc_levels *self, const char *text, int64_t length, int64_t number)
{
    uint64_t words[2] = {0, 0};
    if (length == 0 || length > MRC_RECENT_BYTES) return;
    memcpy(words, text, (size_t)length);
    mrc_recent_word *place = &self->recent[mrc_recent_place(self, words[0], words[1]) - self->recent];
    *place = (mrc_recent_word){words[0], words[1], (int32_t)length, (int32_t)number};
}

static mercer_status grow_slots(mrc_levels *self)
{
    void *memory;
    int64_t count = self->slot_count ? 2 * self->slot_count : FIRST_SLOTS;
    MRC_TRY(mrc_alloc(self->context, &memory, count, sizeof *self->slots, "words of a column"));
    mrc_free(self->context, self->slots);
    self->slots = memory;
    self->slot_count = count;
    memset(self->slots, 0xff, (size_t)count * sizeof *self->slots);
    for (int64_t i = 0; i < self->count; i++)
        *find_slot(self, mrc_levels_text(self, i), self->list[i].length) = (int32_t)i;
    return MERCER_OK;
}

/* Moves *memory to a larger block, of which the first `used` bytes are kept. */
static mercer_status grow_block(mercer_context *context, void **memory, int64_t used, int64_t bytes)
{
    void *larger;
    MRC_TRY(mrc_alloc(context, &larger, bytes, 1, "words of a column"));
    if (used) memcpy(larger, *memory, (size_t)used);
    mrc_free(context, *memory);
    *memory = larger;
    return MERCER_OK;
}

static mercer_status make_room(mrc_levels *self, int64_t length)
{
    const int64_t each = (int64_t)sizeof *self->list;
    if (self->texts_used + length + 1 > self->texts_room) {
        int64_t room = 2 * self->texts_room + length + 1024;
        void *texts = self->texts;
        MRC_TRY(grow_block(self->context, &texts, self->texts_used, room));
        self->texts = texts;
        self->texts_room = room;
    }
    if (self->count == self->room) {
        int64_t room = self->room ? 2 * self->room : FIRST_SLOTS;
        void *list = self->list;
        MRC_TRY(grow_block(self->context, &list, self->count * each, room * each));
        self->list = list;
        self->room = room;
    }
    return 2 * (self->count + 1) > self->slot_count ? grow_slots(self) : MERCER_OK;
}

mercer_status mrc_levels_add(mrc_levels *self, const char *text, int64_t length, const char *path, int64_t line,
                             int64_t *number)
{
    *number = MRC_LEVEL_BEYOND;
    if (self->count == MRC_MOST_LEVELS || self->texts_used + length + 1 > MRC_LEVELS_BYTES) return MERCER_OK;
    MRC_TRY(make_room(self, length));
    self->list[self->count] = (mrc_level){.text = self->texts_used, .length = length, .path = path, .line = line};
    memcpy(self->texts + self->texts_used, text, (size_t)length);
    self->texts[self->texts_used + length] = 0;
    self->texts_used += length + 1;
    *find_slot(self, text, length) = (int32_t)self->count;
    *number = self->count++;
    return MERCER_OK;
}
