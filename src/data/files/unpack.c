/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decompression of a gzip, zstd or xz file into memory, or into a temporary file if it would take too much memory.
 *
 * The uncompressed size stored at the end of a gzip file is only a hint: it may be wrong, or maliciously large. It is
 * capped by the memory limit and by the largest compression ratio of deflate; if it is too small, the buffer grows.
 * libzstd and liblzma are optional. A build without them refuses files that need them, with an error that names the
 * missing library.
 */
#include "core/file/spill.h"
#include "core/memory.h"
#include "data/files/input.h"

#include <string.h>
#include <zlib.h>

#if defined(MERCER_ZSTD)
#include <zstd.h>
#endif
#if defined(MERCER_XZ)
#include <lzma.h>
#endif

enum {
    LEAST_CAPACITY = 1 << 16,
    MOST_RATIO = 1032,          /* maximum compression ratio of deflate */
    MOST_BYTES_A_CALL = 1 << 30 /* limit per call: zlib counts in unsigned int */
};

typedef struct unpacking unpacking;

/* A compressed format. */
typedef struct packing {
    const char *name;
    const char *mark; /* (mark_bytes) first bytes of every file */
    int mark_bytes;
    const char *library; /* library that the build lacks for this format; NULL: the format is supported */
    mercer_status (*open)(unpacking *self);
    /* Decompresses up to *in bytes to up to *out bytes, and sets both to the numbers of bytes used. Sets *ended to
       whether a part of the file (a member or frame) is complete. */
    mercer_status (*step)(unpacking *self, int64_t *in, int64_t *out, bool *ended);
    /* Also called if `open` has failed. */
    void (*close)(unpacking *self);
} packing;

struct unpacking {
    mrc_input *input;
    const packing *packing;
    z_stream stream;
#if defined(MERCER_ZSTD)
    ZSTD_DStream *zstd;
#endif
#if defined(MERCER_XZ)
    lzma_stream xz;
    lzma_allocator allocator;
#endif
    char *memory; /* (capacity) output buffer, filled up to `made` */
    int64_t capacity, made;
    int64_t taken;   /* input bytes consumed so far */
    mrc_spill spill; /* temporary file that receives full buffers, if `spills` */
    mrc_mapping map; /* mapping of the temporary file */
    bool spills;
    const char *released; /* the pages of the compressed file before this address were released */
};

/* ---- Output ------------------------------------------------------------------------------------------------------ */

/* Returns the initial buffer size: one byte more than the stored size, so that zlib sees the end of the data before the
   buffer is full. The last four bytes of a gzip file are the size of its last member modulo 2^32. Header and trailer of
   a member take 18 bytes. */
static int64_t size_hint(const mrc_input *input)
{
    if (input->bytes < 18) return LEAST_CAPACITY;
    const uint8_t *tail = input->data + input->bytes - 4;
    int64_t hint = (int64_t)tail[0] | (int64_t)tail[1] << 8 | (int64_t)tail[2] << 16 | (int64_t)tail[3] << 24, most;
    if (mrc_multiply(input->bytes, MOST_RATIO, &most)) hint = mrc_min(hint, most);
    return hint + 1;
}

/* Moves the decompressed bytes from the buffer to the temporary file. */
static mercer_status spill_output(unpacking *self)
{
    int64_t made = self->made;
    self->made = 0;
    return mrc_spill_write(&self->spill, self->memory, made);
}

/* Makes space for at least one more byte: grows the buffer, or flushes it to the temporary file. The buffer doubles
   until it reaches the memory limit. One byte more is then requested, so that the budget reports the error. */
static mercer_status grow_output(unpacking *self)
{
    mrc_input *input = self->input;
    int64_t free_bytes = input->budget->allowed - input->budget->used;
    int64_t first = strcmp(self->packing->name, "gzip") == 0 ? size_hint(input) : 0;
    int64_t capacity = self->capacity ? self->capacity * 2 : mrc_max(first, LEAST_CAPACITY);
    if (!self->spills && mrc_budget_spills(input->budget, capacity)) {
        MRC_TRY(mrc_spill_open(&self->spill, input->context));
        self->spills = true;
        capacity = LEAST_CAPACITY;
    }
    if (self->spills && self->capacity > 0) return spill_output(self);
    capacity = mrc_max(mrc_min(capacity, self->capacity + free_bytes), self->capacity + 1);
    MRC_TRY(mrc_budget_take(input->context, input->budget, input->path, capacity - self->capacity));
    MRC_TRY(mrc_move(input->context, &self->memory, self->made, capacity, "the unpacked file"));
    self->capacity = capacity;
    return MERCER_OK;
}

static mercer_status fail_corrupt(const unpacking *self, const char *what)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                    "%s: %s data %s at offset %lld; download or create the file again", self->input->path,
                    self->packing->name, what, (long long)self->taken);
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

/* Allocator for zlib, so that memory of zlib is counted with all other memory of the context. */
static void *allocate_for_zlib(void *user, unsigned count, unsigned size)
{
    void *memory;
    return mrc_alloc(user, &memory, count, size, "unpacking") == MERCER_OK ? memory : Z_NULL;
}

static void release_for_zlib(void *user, void *memory)
{
    mrc_free(user, memory);
}

static mercer_status open_gzip(unpacking *self)
{
    self->stream.zalloc = allocate_for_zlib;
    self->stream.zfree = release_for_zlib;
    self->stream.opaque = self->input->context;
    int result = inflateInit2(&self->stream, 15 + 16); /* 15: largest window; + 16: expect a gzip header */
    if (result == Z_MEM_ERROR) return MERCER_ERROR_MEMORY;
    if (result == Z_OK) return MERCER_OK;
    return mrc_fail(self->input->context, MERCER_ERROR_INTERNAL, "%s: zlib cannot start (%d)", self->input->path,
                    result);
}

static mercer_status step_gzip(unpacking *self, int64_t *in, int64_t *out, bool *ended)
{
    z_stream *stream = &self->stream;
    stream->next_in = (Bytef *)(self->input->data + self->taken);
    stream->avail_in = (uInt)*in;
    stream->next_out = (Bytef *)self->memory + self->made;
    stream->avail_out = (uInt)*out;
    int result = inflate(stream, Z_NO_FLUSH);
    *in -= (int64_t)stream->avail_in;
    *out -= (int64_t)stream->avail_out;
    *ended = result == Z_STREAM_END;
    if (*ended) return inflateReset(stream) == Z_OK ? MERCER_OK : fail_corrupt(self, "are damaged");
    if (result == Z_MEM_ERROR) return MERCER_ERROR_MEMORY; /* allocate_for_zlib() has set the error message */
    /* Z_BUF_ERROR means that input or output is used up: advance() provides more, or reports that the file ends too
       early. */
    return result == Z_OK || result == Z_BUF_ERROR ? MERCER_OK : fail_corrupt(self, "are damaged");
}

static void close_gzip(unpacking *self)
{
    inflateEnd(&self->stream);
}

/* ---- zstd -------------------------------------------------------------------------------------------------------- */

#if defined(MERCER_ZSTD)
static mercer_status open_zstd(unpacking *self)
{
    self->zstd = ZSTD_createDStream();
    if (self->zstd) return MERCER_OK;
    return mrc_fail(self->input->context, MERCER_ERROR_MEMORY, "%s: not enough memory for zstd", self->input->path);
}

static mercer_status step_zstd(unpacking *self, int64_t *in, int64_t *out, bool *ended)
{
    ZSTD_inBuffer from = {self->input->data + self->taken, (size_t)*in, 0};
    ZSTD_outBuffer to = {self->memory + self->made, (size_t)*out, 0};
    size_t result = ZSTD_decompressStream(self->zstd, &to, &from);
    *in = (int64_t)from.pos;
    *out = (int64_t)to.pos;
    *ended = result == 0;
    return ZSTD_isError(result) ? fail_corrupt(self, "are damaged") : MERCER_OK;
}

static void close_zstd(unpacking *self)
{
    ZSTD_freeDStream(self->zstd);
}
#endif

/* ---- xz ---------------------------------------------------------------------------------------------------------- */

#if defined(MERCER_XZ)
static void *allocate_for_xz(void *user, size_t count, size_t size)
{
    void *memory;
    return mrc_alloc(user, &memory, (int64_t)count, (int64_t)size, "unpacking") == MERCER_OK ? memory : NULL;
}

static mercer_status open_xz(unpacking *self)
{
    const mrc_budget *budget = self->input->budget;
    self->xz = (lzma_stream)LZMA_STREAM_INIT;
    self->allocator = (lzma_allocator){allocate_for_xz, release_for_zlib, self->input->context};
    self->xz.allocator = &self->allocator;
    uint64_t most = (uint64_t)mrc_max(budget->allowed - budget->used, 1);
    if (lzma_stream_decoder(&self->xz, most, LZMA_CONCATENATED) == LZMA_OK) return MERCER_OK;
    return mrc_fail(self->input->context, MERCER_ERROR_MEMORY, "%s: not enough memory for xz", self->input->path);
}

static mercer_status step_xz(unpacking *self, int64_t *in, int64_t *out, bool *ended)
{
    /* Streams may follow each other (LZMA_CONCATENATED), so the decoder ends only after LZMA_FINISH, at the end of the
       file. */
    bool last = self->taken + *in == self->input->bytes;
    self->xz.next_in = self->input->data + self->taken;
    self->xz.avail_in = (size_t)*in;
    self->xz.next_out = (uint8_t *)self->memory + self->made;
    self->xz.avail_out = (size_t)*out;
    lzma_ret result = lzma_code(&self->xz, last ? LZMA_FINISH : LZMA_RUN);
    *in -= (int64_t)self->xz.avail_in;
    *out -= (int64_t)self->xz.avail_out;
    *ended = result == LZMA_STREAM_END;
    if (result == LZMA_MEM_ERROR) return MERCER_ERROR_MEMORY; /* allocate_for_xz() has set the error message */
    if (result == LZMA_MEMLIMIT_ERROR)
        return mrc_fail(self->input->context, MERCER_ERROR_MEMORY,
                        "%s: unpacking needs more than the limit of %lld bytes of memory; raise the limit",
                        self->input->path, (long long)self->input->budget->allowed);
    return result == LZMA_OK || result == LZMA_BUF_ERROR || *ended ? MERCER_OK : fail_corrupt(self, "are damaged");
}

static void close_xz(unpacking *self)
{
    lzma_end(&self->xz);
}
#endif

static const packing packings[] = {
    {"gzip", "\x1f\x8b", 2, NULL, open_gzip, step_gzip, close_gzip},
#if defined(MERCER_ZSTD)
    {"zstd", "\x28\xb5\x2f\xfd", 4, NULL, open_zstd, step_zstd, close_zstd},
#else
    {"zstd", "\x28\xb5\x2f\xfd", 4, "libzstd", NULL, NULL, NULL},
#endif
#if defined(MERCER_XZ)
    {"xz", "\xfd\x37zXZ\0", 6, NULL, open_xz, step_xz, close_xz},
#else
    {"xz", "\xfd\x37zXZ\0", 6, "liblzma", NULL, NULL, NULL},
#endif
};

/* ---- All formats ------------------------------------------------------------------------------------------------- */

/* Makes one step of decompression. Sets *ended to whether a part of the file (a member or frame) is complete. */
static mercer_status advance(unpacking *self, bool *ended)
{
    mrc_input *input = self->input;
    int64_t in = mrc_min(input->bytes - self->taken, MOST_BYTES_A_CALL);
    int64_t out = mrc_min(self->capacity - self->made, MOST_BYTES_A_CALL);
    mercer_status status = self->packing->step(self, &in, &out, ended);
    if (status) return status;
    self->taken += in;
    self->made += out;
    mrc_input_release(input, &self->released, (const char *)input->data + self->taken);
    if (*ended) return MERCER_OK;
    if (self->made == self->capacity) return grow_output(self);
    return self->taken == input->bytes ? fail_corrupt(self, "end too early") : MERCER_OK;
}

/* Returns whether the rest of the file is empty or only zeros, which some tools append as padding. */
static bool only_zeros_left(const unpacking *self)
{
    for (int64_t i = self->taken; i < self->input->bytes; i++)
        if (self->input->data[i]) return false;
    return true;
}

/* Decompresses all parts: a file is a sequence of members or frames, possibly padded with zeros. */
static mercer_status unpack(unpacking *self)
{
    MRC_TRY(grow_output(self));
    for (;;) {
        bool ended;
        MRC_TRY(advance(self, &ended));
        if (ended && only_zeros_left(self)) return MERCER_OK;
    }
}

static void close_unpacking(unpacking *self)
{
    self->packing->close(self);
    mrc_spill_close(&self->spill);
    mrc_unmap(&self->map);
    mrc_free(self->input->context, self->memory);
}

static mercer_status unpack_file(mrc_input *input, const packing *codec)
{
    mercer_context *context = input->context;
    MRC_OWNED(close_unpacking)
    unpacking self = {.input = input, .packing = codec, .released = (const char *)input->data};
    MRC_TRY(codec->open(&self));
    MRC_TRY(unpack(&self));
    /* Write the rest to the temporary file. The buffer is released at the end of this function, so its bytes return to
       the budget. */
    if (self.spills) {
        MRC_TRY(spill_output(&self));
        MRC_TRY(mrc_spill_map(&self.spill, &self.map));
        self.made = self.map.bytes;
        input->budget->used -= self.capacity;
    }
    if (self.made == 0 && !input->part)
        return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: the %s file is empty", input->path, codec->name);
    if (input->map.owner) input->budget->used -= input->copied;
    mrc_unmap(&input->map);
    mrc_free(context, input->memory);
    /* Move the result to the input, and clear it here, so that close_unpacking does not release it. */
    input->map = self.map, self.map = (mrc_mapping){0};
    input->memory = NULL;
    if (!self.spills) input->memory = self.memory, self.memory = NULL;
    input->data = self.spills ? input->map.data : input->memory;
    input->bytes = self.made;
    return MERCER_OK;
}

mercer_status mrc_unpack(mrc_input *input)
{
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        const packing *codec = &packings[i];
        if (!mrc_input_begins(input, codec->mark, codec->mark_bytes)) continue;
        if (!codec->library) return unpack_file(input, codec);
        return mrc_fail(
            input->context, MERCER_ERROR_FORMAT,
            "%s: is compressed with %s, but Mercer was built without %s; unpack it, or compress it with gzip",
            input->path, codec->name, codec->library);
    }
    return MERCER_OK;
}
