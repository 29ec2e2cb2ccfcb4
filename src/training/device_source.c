/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source with batches in device memory. The source that it replaces still decides which samples come next, but their
 * features are produced on the device:
 *
 *   stored     X (n, d) is preprocessed once, then stored on the device; a batch is a gather of rows. Targets are small
 *              and are sent from the host.
 *   augmented  X is not preprocessed;  own   = parts before mixing, applied to rows of X
 *                                      other = the same parts, applied to the rows of their mixing partners
 *                                      x     = preprocessing of (parts after mixing, applied to l own + (1 - l) other)
 *   teacher    x ~ N(0, I) is drawn (bitwise identical to the host), y = K(x, Z*) alpha* + noise is a device product.
 *
 * The host draws random numbers per sample (its move, its mixing partner); the device draws those per feature. Both are
 * functions of (seed, pass, sample), so batches are bitwise identical to those of the host
 * (data/stream/dataset_stream.c), for any batch size. Mixing doubles the cost of the parts before it. Only the batch
 * and its partners are read.
 */
#include "training/trainer.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"
#include "data/synth/synth.h"

#include <stdio.h>

/* rows that one task handles: enough work per task that its overhead does not matter */
enum { ROWS_EACH = 256 };

typedef struct device_source {
    mrc_backend *backend;
    const mercer_source *from;
    mrc_stream_contents contents;
    mrc_teacher teacher;  /* teacher of drawn samples; no centers: samples are stored */
    mercer_matrix points; /* (n, d) all stored samples, or (P, d) the teacher's centers */
    mercer_matrix alpha;  /* (P, c) */
    mrc_scope own, batch; /* owners of points and alpha, and of the buffers below */
    int64_t capacity;     /* capacity of these buffers, in rows */
    /* (capacity, width) features and (capacity, c) noise of a teacher, on the device; (capacity, c) targets, on the
       device for a teacher, else in host memory */
    mercer_matrix x, y, noise;
    mercer_matrix partner_y;          /* targets of the mixing partners */
    mercer_matrix mine, other, moved; /* (rows, features) of the dataset's dtype: augmented samples, their mixing
                                         partners, destination of moves */
    int64_t *sequences;               /* (capacity) index of the random sequence for the noise of each sample */
    mrc_image_move *moves;            /* (capacity) move of each sample */
    mrc_stream_samples samples;       /* the samples of the batch, as chosen by the replaced source */
    int64_t *numbers;                 /* (capacity) numbers of a teacher's samples */
    double *weights;                  /* (capacity) row weights of the batch */
} device_source;

/* Returns whether samples are augmented. Augmented samples differ between passes, so the stream must check every batch;
   otherwise the check of the stored rows suffices. */
static bool is_augmented(const device_source *self)
{
    return self->contents.augment;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

/* Allocates host memory for the targets of a batch; 0 and 1 of classes are stored as float. */
static mercer_status make_targets(device_source *self, int64_t rows, mercer_matrix *out)
{
    const mercer_dataset *data = self->contents.data;
    mercer_dtype dtype = mrc_dataset_has_values(data) ? data->y.dtype : MERCER_F32;
    return mrc_scope_view(&self->batch, out, rows, data->outputs, dtype, "a batch's targets");
}

/* Returns whether some part moves pixels, which cannot be done in place. */
static bool moves(const mrc_augment *augment)
{
    for (int i = 0; i < mrc_augment_parts(augment); i++)
        if (mrc_augment_change(augment, i).kind == MRC_CHANGE_MOVE) return true;
    return false;
}

/* Allocates the additional buffers for batches of up to `rows` augmented rows. */
static mercer_status make_augmented(device_source *self, int64_t rows)
{
    const mrc_augment *augment = self->contents.augment;
    const mercer_dataset *data = self->contents.data;
    mrc_scope *scope = &self->batch;
    mrc_stream_samples *samples = &self->samples;
    bool mixes = mrc_augment_mixes(augment);
    mercer_matrix *const wanted[] = {&self->mine, mixes ? &self->other : NULL, moves(augment) ? &self->moved : NULL};
    for (int i = 0; i < 3; i++)
        if (wanted[i])
            MRC_TRY(mrc_scope_matrix(scope, self->backend, wanted[i], rows, data->features, data->dtype, "a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &self->sequences, rows, sizeof *self->sequences, "a batch's draws"));
    MRC_TRY(mrc_scope_alloc(scope, &self->moves, rows, sizeof *self->moves, "a batch's draws"));
    if (!mixes) return MERCER_OK;
    MRC_TRY(mrc_scope_alloc(scope, &samples->partners, rows, sizeof *samples->partners, "a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &samples->partner_rows, rows, sizeof *samples->partner_rows, "a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &samples->shares, rows, sizeof *samples->shares, "a batch"));
    return make_targets(self, rows, &self->partner_y);
}

/* Grows the buffers to a batch of `rows` rows. Without preprocessing, augmented rows are returned from the buffers of
   the augmentation, so x is not needed. */
static mercer_status allocate_batches(device_source *self, int64_t rows)
{
    mrc_backend *backend = self->backend;
    mrc_scope *scope = &self->batch;
    const mercer_source *from = self->from;
    if (rows <= self->capacity) return MERCER_OK;
    mrc_scope_close(scope);
    self->capacity = 0, self->samples = (mrc_stream_samples){0};
    MRC_TRY(mrc_scope_alloc(scope, &self->samples.rows, rows, sizeof *self->samples.rows, "a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &self->numbers, rows, sizeof *self->numbers, "a batch"));
    MRC_TRY(mrc_scope_alloc(scope, &self->weights, rows, sizeof *self->weights, "a batch"));
    if (is_augmented(self)) MRC_TRY(make_augmented(self, rows));
    if (!is_augmented(self) || self->contents.preprocess)
        MRC_TRY(mrc_scope_matrix(scope, backend, &self->x, rows, from->features, from->dtype, "a batch"));
    if (self->teacher.centers) {
        int64_t c = self->contents.data->outputs;
        MRC_TRY(mrc_scope_matrix(scope, backend, &self->noise, rows, c, MERCER_F32, "a batch's noise"));
        MRC_TRY(mrc_scope_matrix(scope, backend, &self->y, rows, c, MERCER_F32, "a batch's targets"));
    } else {
        MRC_TRY(make_targets(self, rows, &self->y));
    }
    self->capacity = rows;
    return MERCER_OK;
}

/* ---- Augmentation ------------------------------------------------------------------------------------------------ */

/* Random draws of one part for samples of a pass: sample numbers[i], or first + i if numbers is NULL. */
typedef struct drawing {
    device_source *self;
    int index;
    mrc_change_kind kind;
    int64_t pass, first, rows;
    const int64_t *numbers;
} drawing;

/* A task of mrc_parallel_for: draws the random numbers of up to ROWS_EACH samples into the buffers. */
static void draw_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const drawing *job = argument;
    device_source *self = job->self;
    int64_t begin = piece * ROWS_EACH, end = mrc_min(job->rows, begin + ROWS_EACH);
    for (int64_t i = begin; i < end; i++) {
        int64_t k = job->numbers ? job->numbers[i] : job->first + i;
        if (job->kind == MRC_CHANGE_NOISE) self->sequences[i] = mrc_augment_sequence(job->pass, k);
        if (job->kind == MRC_CHANGE_MOVE)
            self->moves[i] = mrc_augment_move(self->contents.augment, job->index, job->pass, k);
    }
}

/* Applies parts begin .. end - 1, none of which mixes, to the first `rows` rows of x. numbers (rows): the samples,
   whose random numbers are used; NULL: consecutive samples from samples->first on. A move writes to `moved` and
   then swaps it with x, so x may have other memory afterwards. */
static mercer_status apply_parts(device_source *self, int begin, int end, const int64_t *numbers, int64_t rows,
                                 mercer_matrix *x)
{
    mrc_backend *backend = self->backend;
    for (int index = begin; index < end; index++) {
        mrc_change change = mrc_augment_change(self->contents.augment, index);
        drawing job = {self, index, change.kind, self->samples.pass, self->samples.first, rows, numbers};
        mrc_parallel_for(backend->context->threads, (rows + ROWS_EACH - 1) / ROWS_EACH, draw_some, &job);
        change.sequences = self->sequences, change.moves = self->moves;
        bool apart = change.kind == MRC_CHANGE_MOVE;
        mercer_matrix from = mrc_rows(x, 0, rows), to = apart ? mrc_rows(&self->moved, 0, rows) : from;
        MRC_TRY(backend->ops->change_rows(backend, &change, &to, &from, NULL));
        if (!apart) continue;
        mercer_matrix before = *x;
        *x = self->moved, self->moved = before;
    }
    return MERCER_OK;
}

/* Augments the first `rows` samples. With preprocessing the result is written to x (rows, width); otherwise *x becomes
   a view of it that is valid until the next call. */
static mercer_status augment(device_source *self, int64_t rows, mercer_matrix *x)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *points = &self->points;
    const mrc_stream_samples *samples = &self->samples;
    const mrc_augment *augment = self->contents.augment;
    const mercer_preprocess *preprocess = self->contents.preprocess;
    int parts = mrc_augment_parts(augment), mixing = mrc_augment_mixing(augment);
    mercer_matrix own = mrc_rows(&self->mine, 0, rows);
    MRC_TRY(backend->ops->gather_rows(backend, &own, points, samples->rows));
    MRC_TRY(apply_parts(self, 0, mixing >= 0 ? mixing : parts, NULL, rows, &self->mine));
    if (mixing >= 0) {
        mercer_matrix other = mrc_rows(&self->other, 0, rows);
        MRC_TRY(backend->ops->gather_rows(backend, &other, points, samples->partner_rows));
        MRC_TRY(apply_parts(self, 0, mixing, samples->partners, rows, &self->other));
        mrc_change mix = mrc_augment_change(augment, mixing);
        mix.shares = samples->shares;
        /* take the views again, because moves may have swapped the matrices */
        own = mrc_rows(&self->mine, 0, rows), other = mrc_rows(&self->other, 0, rows);
        MRC_TRY(backend->ops->change_rows(backend, &mix, &own, &own, &other));
        MRC_TRY(apply_parts(self, mixing + 1, parts, NULL, rows, &self->mine));
    }
    own = mrc_rows(&self->mine, 0, rows);
    if (!preprocess) {
        *x = own;
        return MERCER_OK;
    }
    const mrc_affine map = {.shift = preprocess->shift, .factor = preprocess->factor};
    return backend->ops->affine(backend, x, &own, &map);
}

/* ---- Batches ------------------------------------------------------------------------------------------------- */

/* A task of mrc_parallel_for: reads the targets of up to ROWS_EACH rows of a batch, and mixes them in the shares in
   which the samples are mixed. */
static void take_targets(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const device_source *self = argument;
    const mrc_stream_samples *samples = &self->samples;
    const mercer_matrix *y = &self->y, *other = &self->partner_y;
    int64_t first = piece * ROWS_EACH, end = mrc_min(y->rows, first + ROWS_EACH);
    for (int64_t i = first; i < end; i++) {
        mrc_dataset_target(self->contents.data, samples->rows[i], y, i);
        if (!samples->shares) continue;
        mrc_dataset_target(self->contents.data, samples->partner_rows[i], other, i);
        mrc_mix_rows(mrc_row(y, i), mrc_row(y, i), mrc_row(other, i), y->cols, y->dtype, samples->shares[i]);
    }
}

/* Produces a batch of stored samples. *x may become a view of another buffer. */
static mercer_status take_stored(device_source *self, int64_t count, mercer_matrix *x)
{
    mrc_backend *backend = self->backend;
    device_source some = *self;
    some.y = mrc_rows(&self->y, 0, count);
    mrc_parallel_for(backend->context->threads, (count + ROWS_EACH - 1) / ROWS_EACH, take_targets, &some);
    if (is_augmented(self)) return augment(self, count, x);
    return backend->ops->gather_rows(backend, x, &self->points, self->samples.rows);
}

/* Draws a batch of a teacher's samples and computes their targets. In each sample's random sequence the noise follows
   the features. It begins at a multiple of four, because one call of the generator returns four numbers. */
static mercer_status take_taught(device_source *self, const mercer_matrix *x, const mercer_matrix *y)
{
    mrc_backend *backend = self->backend;
    const mrc_teacher *teacher = &self->teacher;
    mercer_matrix noise = mrc_rows(&self->noise, 0, x->rows);
    for (int64_t i = 0; i < x->rows; i++) self->numbers[i] = self->contents.data->synth_first + self->samples.rows[i];
    MRC_TRY(backend->ops->draw_normals(backend, teacher->normals, teacher->seed, self->numbers, 0, x));
    /* Always accurate: targets must not depend on the arithmetic that training may use. */
    mrc_pair pair = {.kernel = &teacher->kernel, .x = x, .z = &self->points};
    MRC_TRY(backend->ops->kernel_matmul(backend, &pair, &self->alpha, y, false));
    if (teacher->noise == 0) return MERCER_OK;
    uint64_t first = (uint64_t)mrc_round_up(x->cols, 4);
    MRC_TRY(backend->ops->draw_normals(backend, teacher->normals, teacher->seed, self->numbers, first, &noise));
    return backend->ops->axpby(backend, teacher->noise, &noise, 1, y);
}

/* mercer_source.next. The replaced source chooses the rows; it neither reads nor copies them. */
static int next_device_batch(void *user, int64_t most, mercer_batch *batch)
{
    device_source *self = user;
    const double *weights = mrc_data_stream_weights(self->from);
    if (allocate_batches(self, mrc_min(most, self->from->rows)) != MERCER_OK) return 1;
    int64_t count = mrc_data_stream_take(self->from, most, &self->samples), *rows = self->samples.rows;
    mercer_matrix x = self->x, y = mrc_rows(&self->y, 0, count);
    if (x.data) x = mrc_rows(&x, 0, count);
    for (int64_t i = 0; i < count && weights; i++) self->weights[i] = weights[rows[i]];
    mercer_status status = MERCER_OK;
    if (count > 0) status = self->teacher.centers ? take_taught(self, &x, &y) : take_stored(self, count, &x);
    batch->X = x, batch->Y = y;
    batch->weights = weights ? self->weights : NULL;
    batch->rows = self->contents.names_rows ? rows : NULL;
    return status != MERCER_OK;
}

/* Order and position belong to the source that is replaced; restart and skip only change them there. */
static int restart_device_pass(void *user, int64_t epoch)
{
    const mercer_source *from = ((device_source *)user)->from;
    return from->restart(from->user, epoch);
}

static int skip_device_samples(void *user, int64_t rows)
{
    const mercer_source *from = ((device_source *)user)->from;
    return from->skip(from->user, rows);
}

static const char *last_error(void *user)
{
    return mrc_last_error(((device_source *)user)->backend->context);
}

static void release_device_source(void *user)
{
    device_source *self = user;
    if (!self) return;
    mrc_scope_close(&self->batch);
    mrc_scope_close(&self->own);
    mrc_free(self->backend->context, self);
}
MRC_RELEASE(release_source, device_source, release_device_source)

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* Preprocesses all samples on the host and copies them to the device, in blocks of 64 MiB so that the host needs little
   memory. */
static mercer_status bring_preprocessed(device_source *self)
{
    enum { BLOCK_BYTES = 64 << 20 };
    mrc_backend *backend = self->backend;
    const mercer_source *from = self->from;
    const mercer_dataset *data = self->contents.data;
    int64_t n = data->rows, row = mrc_max(1, from->features * mrc_dtype_size(from->dtype));
    int64_t rows = mrc_min(n, mrc_max(1, BLOCK_BYTES / row));
    mercer_matrix block;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_view(&scope, &block, rows, from->features, from->dtype, "samples to copy to the device"));
    MRC_TRY(mrc_scope_matrix(&self->own, backend, &self->points, n, from->features, from->dtype, "the samples"));
    for (int64_t first = 0; first < n; first += rows) {
        mercer_matrix some = mrc_rows(&block, 0, mrc_min(rows, n - first)),
                      to = mrc_rows(&self->points, first, some.rows);
        char name[80];
        snprintf(name, sizeof name, "source: X preprocessed, rows from %lld on", (long long)first);
        MRC_TRY(mrc_dataset_check(data));
        MRC_TRY(mrc_dataset_read(data, self->contents.preprocess, NULL, first, &some, NULL, NULL));
        MRC_TRY(mrc_check_finite(backend->context, name, &some, NULL));
        MRC_TRY(backend->ops->copy(backend, &to, &some));
    }
    return MERCER_OK;
}

/* Puts the samples, or a teacher's centers and weights, into device memory. Samples that the caller passed in device
   memory are used in place. */
static mercer_status bring_points(device_source *self)
{
    mrc_backend *backend = self->backend;
    const mrc_teacher *teacher = &self->teacher;
    const mercer_dataset *data = self->contents.data;
    if (self->contents.preprocess && !is_augmented(self)) return bring_preprocessed(self);
    if (data->on_device.data) { /* checked when the dataset was created */
        self->points = data->on_device;
        return MERCER_OK;
    }
    if (!teacher->centers) {
        MRC_TRY(mrc_scope_matrix(&self->own, backend, &self->points, data->rows, data->features, data->dtype,
                                 "the samples"));
        for (int64_t first = 0; first < data->rows;) {
            mrc_part part = mrc_dataset_part(data, first);
            mercer_matrix to = mrc_rows(&self->points, first, part.rows.rows);
            MRC_TRY(mrc_dataset_check(data));
            char name[64] = "source: X";
            if (first > 0) snprintf(name, sizeof name, "source: X, rows from %lld on", (long long)first);
            MRC_TRY(mrc_check_finite(backend->context, name, &part.rows, NULL));
            MRC_TRY(backend->ops->copy(backend, &to, &part.rows));
            first += part.rows.rows;
        }
        return MERCER_OK;
    }
    mercer_matrix z = mrc_view((void *)teacher->z, teacher->centers, data->features, MERCER_F32),
                  alpha = mrc_view((void *)teacher->alpha, teacher->centers, data->outputs, MERCER_F32);
    MRC_TRY(mrc_scope_matrix(&self->own, backend, &self->points, z.rows, z.cols, MERCER_F32, "the teacher's centers"));
    MRC_TRY(mrc_scope_matrix(&self->own, backend, &self->alpha, alpha.rows, alpha.cols, MERCER_F32,
                             "the teacher's weights"));
    MRC_TRY(backend->ops->copy(backend, &self->points, &z));
    return backend->ops->copy(backend, &self->alpha, &alpha);
}

/* Returns whether the device can produce the samples of a source; sets *teacher if it draws them. Only sources over a
   dataset qualify; synthetic data must be a teacher's samples, in the order of their numbers and not preprocessed. */
static bool can_make(const mrc_stream_contents *contents, mrc_teacher *teacher)
{
    const mercer_dataset *data = contents->data;
    *teacher = (mrc_teacher){0};
    if (!data) return false;
    if (data->synth) return contents->names_rows && !contents->preprocess && mrc_synth_teacher(data->synth, teacher);
    /* A blend, ranks or a map would need the host's tables on the device, which has shift and factor only. */
    return !contents->augment || !contents->preprocess || mrc_preprocess_is_affine(contents->preprocess);
}

/* Returns whether the samples fit in `most` bytes, in the form in which they would be stored. Samples that are drawn,
   or already are on the device, need no memory. */
static bool samples_fit(const mrc_stream_contents *contents, const mercer_source *source, int64_t most)
{
    const mercer_dataset *data = contents->data;
    bool raw = contents->augment, on_device = data->on_device.data && (raw || !contents->preprocess);
    int64_t elements, bytes;
    if (data->synth || on_device) return true;
    return mrc_multiply(data->rows, raw ? data->features : source->features, &elements) &&
           mrc_multiply(elements, mrc_dtype_size(raw ? data->dtype : source->dtype), &bytes) && bytes <= most;
}

mercer_status mrc_device_source_create(mercer_source *out, mrc_backend *backend, const mercer_source *source,
                                       int64_t most)
{
    MRC_OWNED(release_source) device_source *self = NULL;
    const mrc_stream_contents contents = mrc_data_stream_contents(source);
    mrc_teacher teacher;
    *out = (mercer_source){.struct_size = sizeof *out};
    if (!can_make(&contents, &teacher) || !samples_fit(&contents, source, most)) return MERCER_OK;
    MRC_TRY(mrc_alloc_zero(backend->context, &self, 1, sizeof *self, "the source"));
    *self = (device_source){.backend = backend, .from = source, .contents = contents, .teacher = teacher};
    self->own.context = self->batch.context = backend->context;
    MRC_TRY(bring_points(self));
    *out = *source;
    out->restart = restart_device_pass, out->next = next_device_batch, out->skip = skip_device_samples;
    out->last_error = last_error, out->release = release_device_source, out->user = self;
    self = NULL;
    return MERCER_OK;
}

/* ---- Samples of a trainer ------------------------------------------------------------------------------------- */

void mrc_trainer_drop_samples(mrc_trainer *trainer)
{
    if (trainer->on_device_source && trainer->on_device.next) trainer->on_device.release(trainer->on_device.user);
    trainer->on_device = (mercer_source){0};
    trainer->on_device_source = NULL;
    trainer->on_device_bytes = 0;
}

/*
 * Creates the device-resident source if training runs on a device. Samples that the device can draw need no memory.
 * Others are stored if they are read more than once and take at most a quarter of the device's memory; the rest of the
 * memory is left for training. Stored samples stay from the plan to the end of the fit. Too little memory is not an
 * error: training then reads from the host.
 */
static mercer_status bring_samples(mrc_trainer *trainer, const mercer_source *source)
{
    mrc_backend *backend = trainer->job.backend;
    if (source && trainer->on_device_source == source && trainer->on_device_user == source->user) return MERCER_OK;
    mrc_trainer_drop_samples(trainer);
    if (!source || mrc_backend_memory(backend) == MRC_HOST) return MERCER_OK;
    int64_t budget = trainer->job.options.memory, before = trainer->job.context->bytes_now;
    int64_t memory = backend->ops->free_memory(backend);
    if (budget > 0) /* the budget is for all ranks together, but each rank stores all samples */
        memory = mrc_min(memory, budget);
    bool once = trainer->job.options.epochs == 1 && !mrc_data_stream_contents(source).rows_vary;
    mercer_status made = mrc_device_source_create(&trainer->on_device, backend, source, once ? 0 : memory / 4);
    if (made != MERCER_OK && made != MERCER_ERROR_MEMORY) return made;
    trainer->on_device_source = source, trainer->on_device_user = source->user;
    trainer->on_device_bytes = trainer->job.context->bytes_now - before;
    return MERCER_OK;
}

mercer_status mrc_trainer_on_samples(mrc_trainer *trainer, const mercer_source *source,
                                     mercer_status (*act)(mrc_trainer *trainer, const mercer_source *source))
{
    int64_t budget = trainer->job.options.memory;
    MRC_TRY(bring_samples(trainer, source));
    if (!trainer->on_device.next) return act(trainer, source);
    if (budget > 0) trainer->job.options.memory = mrc_max(1, budget - trainer->on_device_bytes);
    trainer->trusted_source = true, trainer->new_points = is_augmented(trainer->on_device.user);
    mercer_status status = act(trainer, &trainer->on_device);
    trainer->trusted_source = trainer->new_points = false;
    trainer->job.options.memory = budget;
    return status;
}
