/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Augmentation and preprocessing of rows in device memory. The host draws random numbers per sample (its move, its
 * mixing partner); the device draws those per feature. Both are functions of (seed, pass, sample), so batches are
 * bitwise identical to those of the host (data/stream/dataset_stream.c), for any batch size.
 *
 *   own     = parts before mixing, applied to rows of the dataset
 *   other   = the same parts, applied to the rows of their mixing partners
 *   x       = preprocessing of (parts after mixing, applied to l own + (1 - l) other)
 *
 * Mixing doubles the cost of the parts before it. Only the batch and its partners are read.
 */
#include "training/trainer.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"

/* samples whose random numbers one task draws: enough work to pay for handing out the task */
enum { DRAWN_EACH = 256 };

/* A blend, ranks or a map would need the host's tables on the device; only shift and factor are implemented there. */
bool mrc_device_changes_take(const mrc_stream_contents *contents)
{
    return !contents->preprocess || mrc_preprocess_is_affine(contents->preprocess);
}

void mrc_device_changes_release(mrc_device_changes *self)
{
    if (!self->backend) return;
    mercer_matrix *const all[] = {&self->own, &self->other, &self->spare};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mrc_matrix_destroy(self->backend, all[i]);
    MRC_FREE_ALL(self->backend->context, self->sequences, self->moves);
    self->sequences = NULL, self->moves = NULL;
}

/* Returns whether some part moves pixels, which cannot be done in place. */
static bool moves(const mrc_augment *augment)
{
    for (int i = 0; i < mrc_augment_parts(augment); i++)
        if (mrc_augment_change(augment, i).kind == MRC_CHANGE_MOVE) return true;
    return false;
}

mercer_status mrc_device_changes_create(mrc_device_changes *self, mrc_backend *backend,
                                        const mrc_stream_contents *contents, int64_t rows)
{
    const mercer_dataset *data = contents->data;
    mercer_context *context = backend->context;
    *self = (mrc_device_changes){.backend = backend, .contents = *contents};
    mercer_matrix *const wanted[] = {&self->own, mrc_augment_mixes(contents->augment) ? &self->other : NULL,
                                     moves(contents->augment) ? &self->spare : NULL};
    for (int i = 0; i < 3; i++)
        if (wanted[i])
            MRC_TRY(mrc_matrix_create(backend, wanted[i], rows, data->features, data->dtype, "a batch's samples"));
    MRC_TRY(mrc_alloc(context, &self->sequences, rows, sizeof *self->sequences, "a batch's draws"));
    return mrc_alloc(context, &self->moves, rows, sizeof *self->moves, "a batch's draws");
}

/* ---- Parts --------------------------------------------------------------------------------------------------- */

/* Random draws of one part for samples of a pass: sample numbers[i], or first + i if numbers is NULL. */
typedef struct drawing {
    mrc_device_changes *self;
    int index;
    mrc_change_kind kind;
    int64_t pass, first, rows;
    const int64_t *numbers;
} drawing;

/* A task of mrc_parallel_for: draws the random numbers of up to DRAWN_EACH samples into the buffers. */
static void draw_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const drawing *job = argument;
    mrc_device_changes *self = job->self;
    int64_t begin = piece * DRAWN_EACH, end = mrc_min(job->rows, begin + DRAWN_EACH);
    for (int64_t i = begin; i < end; i++) {
        int64_t k = job->numbers ? job->numbers[i] : job->first + i;
        if (job->kind == MRC_CHANGE_NOISE) self->sequences[i] = mrc_augment_sequence(job->pass, k);
        if (job->kind == MRC_CHANGE_MOVE)
            self->moves[i] = mrc_augment_move(self->contents.augment, job->index, job->pass, k);
    }
}

/* Applies parts begin .. end - 1, none of which mixes, to the first `rows` rows of x. numbers (rows): the samples,
   whose random numbers are used; NULL: consecutive samples from samples->first on. A move writes to `spare` and then
   swaps it with x, so x may have other memory afterwards. */
static mercer_status apply_parts(mrc_device_changes *self, int begin, int end, const mrc_stream_samples *samples,
                                 const int64_t *numbers, int64_t rows, mercer_matrix *x)
{
    mrc_backend *backend = self->backend;
    for (int index = begin; index < end; index++) {
        mrc_change change = mrc_augment_change(self->contents.augment, index);
        drawing job = {self, index, change.kind, samples->pass, samples->first, rows, numbers};
        mrc_parallel_for(backend->context->threads, (rows + DRAWN_EACH - 1) / DRAWN_EACH, draw_some, &job);
        change.sequences = self->sequences, change.moves = self->moves;
        bool apart = change.kind == MRC_CHANGE_MOVE;
        mercer_matrix from = mrc_rows(x, 0, rows), to = apart ? mrc_rows(&self->spare, 0, rows) : from;
        MRC_TRY(backend->ops->change_rows(backend, &change, &to, &from, NULL));
        if (!apart) continue;
        mercer_matrix before = *x;
        *x = self->spare, self->spare = before;
    }
    return MERCER_OK;
}

mercer_status mrc_device_changes_apply(mrc_device_changes *self, const mercer_matrix *points,
                                       const mrc_stream_samples *samples, int64_t rows, mercer_matrix *x)
{
    mrc_backend *backend = self->backend;
    const mrc_augment *augment = self->contents.augment;
    const mercer_preprocess *preprocess = self->contents.preprocess;
    int parts = mrc_augment_parts(augment), mixing = mrc_augment_mixing(augment);
    mercer_matrix own = mrc_rows(&self->own, 0, rows);
    MRC_TRY(backend->ops->gather_rows(backend, &own, points, samples->rows));
    MRC_TRY(apply_parts(self, 0, mixing >= 0 ? mixing : parts, samples, NULL, rows, &self->own));
    if (mixing >= 0) {
        mercer_matrix other = mrc_rows(&self->other, 0, rows);
        MRC_TRY(backend->ops->gather_rows(backend, &other, points, samples->partner_rows));
        MRC_TRY(apply_parts(self, 0, mixing, samples, samples->partners, rows, &self->other));
        mrc_change mix = mrc_augment_change(augment, mixing);
        mix.shares = samples->shares;
        /* take the views again, because moves may have swapped the matrices */
        own = mrc_rows(&self->own, 0, rows), other = mrc_rows(&self->other, 0, rows);
        MRC_TRY(backend->ops->change_rows(backend, &mix, &own, &own, &other));
        MRC_TRY(apply_parts(self, mixing + 1, parts, samples, NULL, rows, &self->own));
    }
    own = mrc_rows(&self->own, 0, rows);
    if (!preprocess) {
        *x = own;
        return MERCER_OK;
    }
    const mrc_affine map = {.shift = preprocess->shift, .factor = preprocess->factor};
    return backend->ops->affine(backend, x, &own, &map);
}
