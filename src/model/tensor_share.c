/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensor files written by several ranks.
 *
 * Rank 0 makes the temporary file in its full size, every rank writes its rows to their places and makes them durable.
 * Then tensor i is read back and summed by rank i mod R, piece by piece, and rank 0 writes the header, which holds the
 * checksums, and gives the file its name. A rank that is lost at any moment leaves the old file as it was.
 */
#include "core/memory.h"
#include "model/tensor_writer.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { NAME_CHARS = 4096, PIECE = 8 << 20 };

typedef struct shared_file {
    mrc_comm *comm;
    mrc_tensor_writer writer;
    mrc_writer file;
    char temporary[NAME_CHARS];
    int64_t at; /* where the next bytes go */
} shared_file;

static int64_t data_start(const shared_file *self)
{
    return MRC_TENSOR_LENGTH_BYTES + self->writer.header_bytes;
}

static int64_t data_end(const shared_file *self)
{
    return self->writer.count > 0 ? self->writer.items[self->writer.count - 1].end : 0;
}

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

/* The file in its size, under its temporary name, open on every rank. */
static mercer_status open_file(shared_file *self, const char *path)
{
    mercer_context *context = self->comm->context;
    mercer_status status = MERCER_OK;
    if (self->comm->rank == 0) {
        status = mrc_writer_open(&self->file, context, path);
        if (status == MERCER_OK) status = mrc_writer_resize(&self->file, data_start(self) + data_end(self));
        if (status == MERCER_OK && strlen(self->file.temporary) >= NAME_CHARS)
            status = mrc_fail(context, MERCER_ERROR_IO, "%.80s...: the name is too long", path);
        if (status == MERCER_OK) snprintf(self->temporary, NAME_CHARS, "%s", self->file.temporary);
    }
    MRC_TRY(mrc_comm_together(self->comm, status, "writing"));
    MRC_TRY(mrc_comm_broadcast(self->comm, self->temporary, NAME_CHARS));
    if (self->comm->rank > 0) status = mrc_writer_join(&self->file, context, self->temporary);
    return mrc_comm_together(self->comm, status, "writing");
}

static mercer_status write_some(void *user, const void *bytes, int64_t count)
{
    shared_file *self = user;
    MRC_TRY(mrc_writer_write_at(&self->file, bytes, count, self->at));
    self->at += count;
    return MERCER_OK;
}

static mercer_status write_rows(shared_file *self)
{
    for (int64_t i = 0; i < self->writer.count; i++) {
        const mrc_placed *item = &self->writer.items[i];
        if (item->tensor->total == 0 && self->comm->rank > 0) continue;
        self->at = data_start(self) + item->begin + item->tensor->first * item->row_bytes;
        MRC_TRY(mrc_tensor_writer_visit(&self->writer, item, write_some, self));
    }
    return self->comm->rank > 0 ? mrc_writer_commit(&self->file) : MERCER_OK;
}

static void sum_bytes(const mrc_mapping *map, int64_t begin, int64_t end, XXH3_state_t *state, char *digits)
{
    (void)XXH3_64bits_reset(state);
    for (int64_t at = begin; at < end; at += PIECE) {
        int64_t some = mrc_min(PIECE, end - at);
        (void)XXH3_64bits_update(state, (const char *)map->data + at, (size_t)some);
        mrc_mapping_release(map, at, some);
    }
    mrc_tensor_digits(XXH3_64bits_digest(state), digits);
}

/* The checksums of this rank's tensors, into digits (count, MRC_TENSOR_DIGITS + 1). */
static mercer_status sum_tensors(shared_file *self, char *digits)
{
    mercer_context *context = self->comm->context;
    mrc_mapping map;
    MRC_TRY(mrc_map_file(context, &map, self->temporary));
    XXH3_state_t *state = XXH3_createState();
    mercer_status status = state ? MERCER_OK : mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for a checksum");
    int64_t wanted = data_start(self) + data_end(self);
    if (status == MERCER_OK && map.bytes != wanted)
        status =
            mrc_fail(context, MERCER_ERROR_IO, "%s: has %lld bytes here, rank 0 made it %lld; is the folder shared?",
                     self->temporary, (long long)map.bytes, (long long)wanted);
    for (int64_t i = self->comm->rank; i < self->writer.count && status == MERCER_OK; i += self->comm->ranks) {
        const mrc_placed *item = &self->writer.items[i];
        sum_bytes(&map, data_start(self) + item->begin, data_start(self) + item->end, state,
                  digits + i * (MRC_TENSOR_DIGITS + 1));
    }
    XXH3_freeState(state);
    mrc_unmap(&map);
    return status;
}

/* Each rank sums some tensors; all of them get to know all checksums. */
static mercer_status share_sums(shared_file *self)
{
    mrc_comm *comm = self->comm;
    int64_t bytes = self->writer.count * (MRC_TENSOR_DIGITS + 1);
    void *memory;
    MRC_TRY(mrc_alloc_zero(comm->context, &memory, comm->ranks, bytes, "checksums"));
    char *digits = memory;
    mercer_status status = sum_tensors(self, digits + comm->rank * bytes);
    status = mrc_comm_together(comm, status, "writing");
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) pieces[r] = (mrc_piece){digits + r * bytes, bytes};
    if (status == MERCER_OK) status = mrc_comm_gather(comm, MRC_HOST, pieces);
    for (int64_t i = 0; i < self->writer.count && status == MERCER_OK; i++)
        memcpy(self->writer.items[i].digits, digits + i % comm->ranks * bytes + i * (MRC_TENSOR_DIGITS + 1),
               MRC_TENSOR_DIGITS + 1);
    mrc_free(comm->context, memory);
    return status;
}

static mercer_status finish(shared_file *self, const mrc_metadata *metadata, int64_t entries)
{
    if (self->comm->rank > 0) return MERCER_OK;
    MRC_TRY(mrc_tensor_writer_header(&self->writer, metadata, entries));
    uint64_t length = (uint64_t)self->writer.header_bytes;
    MRC_TRY(mrc_writer_write_at(&self->file, &length, sizeof length, 0));
    MRC_TRY(mrc_writer_write_at(&self->file, self->writer.header, self->writer.header_bytes, sizeof length));
    return mrc_writer_commit(&self->file);
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static mercer_status write_shared(shared_file *self, const char *path, const mrc_tensor *tensors, int64_t count,
                                  const mrc_metadata *metadata, int64_t entries)
{
    mercer_status status = mrc_tensor_writer_begin(&self->writer, tensors, count, metadata, entries);
    for (int64_t i = 0; i < self->writer.count && status == MERCER_OK; i++)
        mrc_tensor_digits(0, self->writer.items[i].digits); /* the header is as long with any digits */
    if (status == MERCER_OK) status = mrc_tensor_writer_header(&self->writer, metadata, entries);
    MRC_TRY(mrc_comm_together(self->comm, status, "writing"));
    MRC_TRY(open_file(self, path));
    MRC_TRY(mrc_comm_together(self->comm, write_rows(self), "writing"));
    MRC_TRY(share_sums(self));
    return mrc_comm_together(self->comm, finish(self, metadata, entries), "writing");
}

mercer_status mrc_tensor_file_write_shared(mrc_comm *comm, const char *path, const mrc_tensor *tensors, int64_t count,
                                           const mrc_metadata *metadata, int64_t entries)
{
    shared_file self = {.comm = comm, .writer = {.context = comm->context}, .file = {.descriptor = -1}};
    mercer_status status = write_shared(&self, path, tensors, count, metadata, entries);
    mrc_writer_cancel(&self.file); /* nothing is left to cancel after a commit */
    mrc_tensor_writer_end(&self.writer);
    return status;
}
