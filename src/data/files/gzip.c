/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decompression of a gzip file into memory, or into a temporary file if it would take too much memory.
 *
 * The uncompressed size stored at the end of the file is only a hint: it may be wrong, or maliciously large. It is
 * capped by the memory limit and by the largest compression ratio of deflate; if it is too small, the buffer grows.
 */
#include "core/file/spill.h"
#include "core/memory.h"
#include "data/files/input.h"

#include <string.h>
#include <zlib.h>

enum {
    LEAST_ROOM = 1 << 16,
    MOST_RATIO = 1032,          /* maximum compression ratio of deflate */
    MOST_BYTES_A_CALL = 1 << 30 /* limit per call: zlib counts in unsigned int */
};

typedef struct unpacking {
    mrc_input *input;
    z_stream stream;
    char *memory; /* (room) output buffer, filled up to `made` */
    int64_t room, made;
    int64_t taken;   /* input bytes consumed so far */
    mrc_spill spill; /* temporary file that receives full buffers, if `spills` */
    mrc_mapping map; /* mapping of the temporary file */
    bool spills;
    const char *released; /* the pages of the compressed file before this address were released */
} unpacking;

/* zlib's allocator, so that its memory is counted with all other memory of the context. */
static void *allocate_for_zlib(void *user, unsigned count, unsigned size)
{
    void *memory;
    return mrc_alloc(user, &memory, count, size, "unpacking") == MERCER_OK ? memory : Z_NULL;
}

static void release_for_zlib(void *user, void *memory)
{
    mrc_free(user, memory);
}

/* Returns the initial buffer size: one byte more than the stored size, so that zlib sees the end of the data before the
   buffer is full. */
static int64_t size_hint(const mrc_input *input)
{
    if (input->bytes < 18) return LEAST_ROOM;
    const uint8_t *tail = input->data + input->bytes - 4;
    int64_t hint = (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24, most;
    if (mrc_multiply(input->bytes, MOST_RATIO, &most)) hint = mrc_min(hint, most);
    return hint + 1;
}

/* Moves the decompressed bytes from the buffer to the temporary file. */
static mercer_status empty_room(unpacking *self)
{
    int64_t made = self->made;
    self->made = 0;
    return mrc_spill_write(&self->spill, self->memory, made);
}

/* Makes space for at least one more byte: grows the buffer, or flushes it to the temporary file. */
static mercer_status grow_output(unpacking *self)
{
    mrc_input *input = self->input;
    int64_t free_bytes = input->budget->allowed - input->budget->used;
    int64_t room = self->room ? self->room * 2 : mrc_max(size_hint(input), LEAST_ROOM);
    if (!self->spills && mrc_budget_spills(input->budget, room)) {
        MRC_TRY(mrc_spill_open(&self->spill, input->context));
        self->spills = true;
        room = LEAST_ROOM;
    }
    if (self->spills && self->room > 0) return empty_room(self);
    room = mrc_max(mrc_min(room, self->room + free_bytes), self->room + 1);
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, room - self->room));
    MRC_TRY(mrc_move(input->context, &self->memory, self->made, room, "the unpacked file"));
    self->room = room;
    return MERCER_OK;
}

static mercer_status fail_corrupt(const unpacking *self, const char *what)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                    "%s: gzip data %s at offset %lld; download or create "
                    "the file again",
                    self->input->path, what, (long long)self->taken);
}

/* Calls zlib once. *ended: a member of the file is complete. */
static mercer_status advance(unpacking *self, bool *ended)
{
    z_stream *stream = &self->stream;
    mrc_input *input = self->input;
    int64_t in = mrc_min(input->bytes - self->taken, MOST_BYTES_A_CALL);
    int64_t out = mrc_min(self->room - self->made, MOST_BYTES_A_CALL);
    stream->next_in = (Bytef *)(input->data + self->taken);
    stream->avail_in = (uInt)in;
    stream->next_out = (Bytef *)self->memory + self->made;
    stream->avail_out = (uInt)out;
    int result = inflate(stream, Z_NO_FLUSH);
    self->taken += in - (int64_t)stream->avail_in;
    self->made += out - (int64_t)stream->avail_out;
    mrc_input_release(input, &self->released, (const char *)input->data + self->taken);
    *ended = result == Z_STREAM_END;
    if (*ended) return MERCER_OK;
    if (result == Z_MEM_ERROR) return MERCER_ERROR_MEMORY; /* allocate_for_zlib() has set the error message */
    if (result != Z_OK && result != Z_BUF_ERROR) return fail_corrupt(self, "are damaged");
    if (self->made == self->room) return grow_output(self);
    if (self->taken == input->bytes) return fail_corrupt(self, "end too early");
    return MERCER_OK;
}

/* Returns whether the rest of the file is padding, which some tools append. */
static bool only_zeros_left(const unpacking *self)
{
    for (int64_t i = self->taken; i < self->input->bytes; i++)
        if (self->input->data[i]) return false;
    return true;
}

/* Decompresses all members: a gzip file is a sequence of members, possibly padded with zeros. */
static mercer_status unpack(unpacking *self)
{
    MRC_TRY(grow_output(self));
    for (;;) {
        bool ended;
        MRC_TRY(advance(self, &ended));
        if (!ended) continue;
        if (only_zeros_left(self)) return MERCER_OK;
        if (inflateReset(&self->stream) != Z_OK) return fail_corrupt(self, "are damaged");
    }
}

static void close_unpacking(unpacking *self)
{
    inflateEnd(&self->stream);
    mrc_spill_close(&self->spill);
    mrc_unmap(&self->map);
    mrc_free(self->input->context, self->memory);
}

mercer_status mrc_gzip_unpack(mrc_input *input)
{
    mercer_context *context = input->context;
    MRC_OWNED(close_unpacking) unpacking self = {.input = input, .released = (const char *)input->data};
    self.stream.zalloc = allocate_for_zlib;
    self.stream.zfree = release_for_zlib;
    self.stream.opaque = context;
    int result = inflateInit2(&self.stream, 15 + 16); /* 15: largest window; + 16: expect a gzip header */
    if (result == Z_MEM_ERROR) return MERCER_ERROR_MEMORY;
    if (result != Z_OK)
        return mrc_fail(context, MERCER_ERROR_INTERNAL, "%s: zlib cannot start (%d)", input->path, result);
    MRC_TRY(unpack(&self));
    if (self.spills) {
        MRC_TRY(empty_room(&self));
        MRC_TRY(mrc_spill_map(&self.spill, &self.map));
        self.made = self.map.bytes;
        input->budget->used -= self.room;
    }
    if (self.made == 0 && !input->part)
        return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: the gzip file is empty", input->path);
    if (input->map.owner) input->budget->used -= input->copied;
    mrc_unmap(&input->map);
    mrc_free(context, input->memory);
    input->map = self.map, self.map = (mrc_mapping){0};
    input->memory = NULL;
    if (!self.spills) input->memory = self.memory, self.memory = NULL;
    input->data = self.spills ? input->map.data : input->memory;
    input->bytes = self.made;
    return MERCER_OK;
}
