/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device copy of a model, which stays on the device between predictions: centers, plain and packed for products,
 * and weights. A caller may change the weights between calls, so each call compares the hash of the weights with the
 * hash of the copy. Centers never change after the creation of a model.
 *
 * The copy is created by the first prediction. Training drops it, because it has its own copy of the centers.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

#include <xxhash.h>

/* Largest number of pieces of the weights that threads hash, and smallest size of a piece in bytes: hashing a smaller
   piece is not worth waking a thread. Both are constants, because the hash must not depend on the number of threads. */
enum { PIECES = 64, FEWEST_BYTES = 64 << 10 };

void mrc_model_drop_device_copy(mercer_model *model)
{
    mrc_device_copy *placed = &model->placed;
    mrc_backend *backend = model->context->backend;
    if (!placed->z.data && !placed->w.data) return;
    backend->ops->pack_free(backend, placed->packed);
    mrc_matrix_destroy(backend, &placed->z);
    mrc_matrix_destroy(backend, &placed->w);
    *placed = (mrc_device_copy){0};
}

/* Copies the centers, and packs them if products may use half precision. Reserves memory for the weights. On failure
   some of the memory is reserved; the caller drops it. */
static mercer_status bring_centers(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_device_copy *placed = &model->placed;
    const mercer_matrix *z = &model->centers, *w = &model->weights;
    MRC_TRY(mrc_matrix_reserve(backend, &placed->z, z->rows, z->cols, z->dtype, "the centers"));
    MRC_TRY(mrc_matrix_reserve(backend, &placed->w, w->rows, w->cols, w->dtype, "the weights"));
    MRC_TRY(backend->ops->copy(backend, &placed->z, z));
    if (model->context->arithmetic != MRC_FAST) return MERCER_OK;
    MRC_TRY(backend->ops->pack_create(backend, &placed->packed, &model->kernel, model->origin, z));
    return placed->packed ? backend->ops->pack_rows(backend, placed->packed, 0, &placed->z) : MERCER_OK;
}

/* Pieces of `each` bytes, the last one shorter. Threads write different entries of `hashes`. */
typedef struct hash_task {
    const char *bytes;
    int64_t size, each;
    uint64_t hashes[PIECES];
} hash_task;

/* A task of mrc_parallel_for: hashes one piece of the weights. The seed is the number of the piece. */
static void hash_piece(void *argument, int64_t piece, int worker)
{
    (void)worker;
    hash_task *task = argument;
    int64_t first = piece * task->each, size = mrc_min(task->each, task->size - first);
    task->hashes[piece] = XXH3_64bits_withSeed(task->bytes + first, (size_t)size, (uint64_t)piece);
}

/* Hashes the weights, whose rows are contiguous. The pieces do not depend on the number of threads. */
static uint64_t hash_weights(const mercer_model *model)
{
    const mercer_matrix *w = &model->weights;
    hash_task task = {.bytes = w->data, .size = w->rows * w->cols * mrc_dtype_size(w->dtype)};
    task.each = mrc_max(FEWEST_BYTES, (task.size + PIECES - 1) / PIECES);
    int64_t pieces = (task.size + task.each - 1) / task.each;
    mrc_parallel_for(pieces > 1 ? model->context->threads : 1, pieces, hash_piece, &task);
    return XXH3_64bits(task.hashes, (size_t)pieces * sizeof *task.hashes);
}

/* Copies the weights unless the copy is up to date. `sent` is false during the copy, so that a failed copy is repeated
   by the next call. */
static mercer_status bring_weights(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_device_copy *placed = &model->placed;
    uint64_t hash = hash_weights(model);
    if (placed->sent && placed->hash == hash) return MERCER_OK;
    placed->sent = false;
    MRC_TRY(backend->ops->copy(backend, &placed->w, &model->weights));
    placed->sent = true, placed->hash = hash;
    return MERCER_OK;
}

/* Too little memory is not an error: without a copy, products read the model from the host. */
mercer_status mrc_model_upload(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    if (mrc_backend_memory(backend) == MRC_HOST) return MERCER_OK;
    mercer_status status = model->placed.z.data ? MERCER_OK : bring_centers(model);
    if (status == MERCER_OK) status = bring_weights(model);
    if (status == MERCER_OK) return MERCER_OK;
    mrc_model_drop_device_copy(model);
    return status == MERCER_ERROR_MEMORY ? MERCER_OK : status;
}
