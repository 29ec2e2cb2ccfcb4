/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source of batches (mercer_source) over a dataset.
 *
 *   row numbers (order.c)  ->  fetch  ->  augment  ->  preprocess  ->  a chunk of samples  ->  batches
 *
 * Sample k of pass e is a function of (seed, e, k), so any thread may produce it, at any time and in any batch. Only
 * mixup combines samples, and only samples of the same chunk. The number of rows in a chunk depends only on the size of
 * a row, so chunks are the same for any batch size.
 *
 * With a prefetch thread, chunk i is produced in buffer i mod RING while the caller computes with earlier chunks.
 * next_batch() then copies from the chunks into the batch. Without a prefetch thread, next_batch() produces samples
 * directly in the batch; or, with mixup, chunk by chunk in one buffer.
 *
 * Memory: RING chunks of about 2 MiB, up to two more chunks as scratch, and the batch. Rows larger than 256 KiB make
 * larger chunks, of CHUNK_LEAST rows.
 */
#include "data/stream/dataset_stream.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/background.h"
#include "core/threads/parallel.h"
#include "data/stream/order.h"

#include <math.h>
#include <string.h>

/* A chunk fits into the cache of a core, but is so large that passing it from thread to thread costs little in
   comparison. NUMBERS_EACH: row numbers that one task computes. */
enum { RING = 4, CHUNK_BYTES = 2 << 20, CHUNK_LEAST = 8, CHUNK_MOST = 1 << 16, NUMBERS_EACH = 256 };

/* Samples with their targets and row numbers. */
typedef struct chunk {
    mercer_matrix x, y;
    int64_t *rows;
} chunk;

typedef struct data_stream {
    mercer_context *context;
    mercer_dataset data; /* copy of the caller's struct; the memory that it points to is borrowed */
    const double *weights;
    const mercer_preprocess *preprocess;
    mrc_augment *augment;
    mrc_order order;
    int64_t samples;
    bool names_rows; /* true: batches report their row numbers */
    mercer_dtype x_dtype, y_dtype;
    int64_t width; /* number of columns of preprocessed samples */

    int64_t pass, position;
    int64_t chunk_rows;
    chunk raw[2];      /* scratch: samples before preprocessing, and mixed samples; data NULL if not needed */
    int threads;       /* number of threads that produce the samples of a chunk */
    void *row;         /* scratch for one sample per thread */
    int64_t row_bytes; /* bytes between the scratch rows of two threads */
    chunk ring[RING];
    int64_t made; /* without a prefetch thread: index of the chunk in ring[0]; -1: none */
    mrc_background *background;
    bool ahead; /* true: the prefetch thread works on this pass */

    double checked;   /* time of the last check of the files, in seconds */
    int64_t capacity; /* capacity of the batch, in rows */
    chunk batch;
    double *batch_weights;
} data_stream;

/* ---- Producing samples --------------------------------------------------------------------------------------- */

static chunk part_of(const chunk *whole, int64_t first, int64_t rows)
{
    return (chunk){mrc_rows(&whole->x, first, rows), mrc_rows(&whole->y, first, rows), whole->rows + first};
}

/* Returns the first other->rows rows of scratch, or `other` if scratch has no data. */
static mercer_matrix scratch_or(const mercer_matrix *scratch, const mercer_matrix *other)
{
    return scratch->data ? mrc_rows(scratch, 0, other->rows) : *other;
}

/* Rows of a chunk, divided among threads: a few pieces per thread. */
typedef struct sharing {
    data_stream *self;
    /* rows, x, y: row numbers and destination of the rows that fetch_some reads, all from one window */
    const int64_t *rows;
    mercer_matrix x, y;
    mrc_augment_block block; /* block of all rows */
    const chunk *out;
    int64_t rows_each;
} sharing;

/* Divides rows into about four pieces per thread, so that threads finish together. Returns the number of pieces. */
static int64_t share_of_rank(data_stream *self, sharing *job, int64_t rows)
{
    job->rows_each = mrc_max(1, rows / (4 * (int64_t)self->threads));
    return (rows + job->rows_each - 1) / job->rows_each;
}

/* A task of mrc_parallel_for: fetches the rows of one piece. */
static void fetch_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const sharing *job = argument;
    int64_t first = piece * job->rows_each, rows = mrc_min(job->rows_each, job->x.rows - first);
    mercer_matrix x = mrc_rows(&job->x, first, rows), y = mrc_rows(&job->y, first, rows);
    mrc_dataset_fetch(&job->self->data, job->rows + first, 0, &x, &y, NULL);
}

/* Augments the rows of one piece, unless they were mixed, and preprocesses them. */
static void change_some(void *argument, int64_t piece, int worker)
{
    const sharing *job = argument;
    data_stream *self = job->self;
    int64_t first = piece * job->rows_each, rows = mrc_min(job->rows_each, job->out->x.rows - first);
    mrc_augment_block block = job->block;
    block.first += first;
    block.x = mrc_rows(&job->block.x, first, rows), block.y = mrc_rows(&job->block.y, first, rows);
    if (self->row) block.row = (char *)self->row + worker * self->row_bytes;
    if (self->augment && !mrc_augment_mixes(self->augment)) mrc_augment_apply(self->augment, &block);
    mercer_matrix out = mrc_rows(&job->out->x, first, rows);
    if (block.x.data != out.data) mrc_preprocess_rows(self->preprocess, &out, &block.x);
}

/* Produces samples first, first + 1, ... of the pass in `out`, which has at most chunk_rows rows. */
static void make_samples(data_stream *self, int64_t first, const chunk *out)
{
    /* Each step writes to the buffer of the next step: fetched rows go to raw[0], mixed rows to raw[1], the last step
       writes to `out`. Where a buffer is not needed, `out` takes its place. */
    sharing job = {.self = self,
                   .out = out,
                   .block = {.pass = self->pass,
                             .first = first,
                             .x = scratch_or(&self->raw[0].x, &out->x),
                             .y = scratch_or(&self->raw[0].y, &out->y),
                             .spare_x = scratch_or(&self->raw[1].x, &out->x),
                             .spare_y = out->y,
                             .row = self->row}};
    /* Rows of one chunk may come from several windows, which must be opened in order, by one thread. */
    for (int64_t done = 0; done < out->x.rows;) {
        int64_t found = mrc_order_rows(&self->order, first + done, out->x.rows - done, out->rows + done);
        job.rows = out->rows + done;
        job.x = mrc_rows(&job.block.x, done, found), job.y = mrc_rows(&job.block.y, done, found);
        mrc_parallel_for(self->threads, share_of_rank(self, &job, found), fetch_some, &job);
        done += found;
    }
    /* Mixing needs all rows of the chunk, so one thread mixes them. Mixing swaps the buffers: job.block.x then has the
       mixed rows. */
    if (mrc_augment_mixes(self->augment)) mrc_augment_apply(self->augment, &job.block);
    if (!self->augment && job.block.x.data == out->x.data) return;
    mrc_parallel_for(self->threads, share_of_rank(self, &job, out->x.rows), change_some, &job);
}

/* Produces chunk `number` in its buffer of the ring. Runs in the prefetch thread, or in get_chunk if there is no such
   thread. */
static void make_chunk(void *argument, int64_t number)
{
    data_stream *self = argument;
    int64_t first = number * self->chunk_rows;
    chunk out =
        part_of(&self->ring[self->background ? number % RING : 0], 0, mrc_min(self->chunk_rows, self->samples - first));
    make_samples(self, first, &out);
}

/* Returns chunk `number`, produced now or by the prefetch thread, which may continue with later chunks. */
static const chunk *get_chunk(data_stream *self, int64_t number)
{
    if (!self->background) {
        if (self->made != number) make_chunk(self, number);
        self->made = number;
        return &self->ring[0];
    }
    if (!self->ahead) mrc_background_reset(self->background, number);
    self->ahead = true;
    int64_t chunks = (self->samples - 1) / self->chunk_rows + 1;
    /* chunks before `number` were consumed, so their buffers may be overwritten */
    mrc_background_permit(self->background, mrc_min(chunks, number + RING));
    mrc_background_wait(self->background, number);
    return &self->ring[number % RING];
}

/* ---- The source ------------------------------------------------------------------------------------------------ */

/* Stops the prefetch thread, if there is one. Afterwards only the caller uses the stream. */
static void pause_thread(data_stream *self)
{
    if (self->ahead) mrc_background_reset(self->background, 0);
    self->ahead = false;
}

static int restart_pass(void *user, int64_t epoch)
{
    data_stream *self = user;
    pause_thread(self);
    mrc_order_restart(&self->order, epoch);
    self->pass = epoch;
    self->position = 0;
    self->made = -1;
    return 0;
}

/* mercer_source.skip: skips samples without producing them, because any position can be produced directly. */
static int skip_samples(void *user, int64_t rows)
{
    data_stream *self = user;
    if (rows < 0 || rows > self->samples - self->position) {
        mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "cannot skip %lld samples; the pass has %lld left",
                 (long long)rows, (long long)(self->samples - self->position));
        return 1;
    }
    pause_thread(self);
    self->position += rows;
    return 0;
}

static void release_chunk(data_stream *self, chunk *old)
{
    MRC_FREE_ALL(self->context, old->x.data, old->y.data, old->rows);
    *old = (chunk){0};
}

static mercer_status make_matrix(data_stream *self, mercer_matrix *out, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    int64_t elements;
    *out = mrc_view(NULL, rows, cols, dtype);
    if (!mrc_multiply(rows, cols, &elements))
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "a batch of %lld samples is too large", (long long)rows);
    return mrc_alloc(self->context, &out->data, elements, mrc_dtype_size(dtype), "a batch");
}

static mercer_status allocate_chunk(data_stream *self, chunk *out, int64_t rows)
{
    MRC_TRY(make_matrix(self, &out->x, rows, self->width, self->x_dtype));
    MRC_TRY(make_matrix(self, &out->y, rows, self->data.outputs, self->y_dtype));
    return mrc_alloc(self->context, &out->rows, rows, sizeof *out->rows, "a batch");
}

/* Grows the batch to `rows` rows. */
static mercer_status allocate_batch(data_stream *self, int64_t rows)
{
    if (rows <= self->capacity) return MERCER_OK;
    release_chunk(self, &self->batch);
    mrc_free(self->context, self->batch_weights);
    self->batch_weights = NULL;
    self->capacity = 0;
    MRC_TRY(allocate_chunk(self, &self->batch, rows));
    if (self->weights) MRC_TRY(mrc_alloc(self->context, &self->batch_weights, rows, sizeof(double), "a batch"));
    self->capacity = rows;
    return MERCER_OK;
}

static void copy_samples(const chunk *to, const chunk *from)
{
    memcpy(to->x.data, from->x.data, (size_t)(from->x.rows * from->x.ld * mrc_dtype_size(from->x.dtype)));
    memcpy(to->y.data, from->y.data, (size_t)(from->y.rows * from->y.ld * mrc_dtype_size(from->y.dtype)));
    memcpy(to->rows, from->rows, (size_t)from->x.rows * sizeof *from->rows);
}

/* Writes some or all of the next `left` samples to the batch, from row `at` on. Returns the number of samples. */
static int64_t fill_batch(data_stream *self, int64_t at, int64_t left)
{
    if (!self->background && !mrc_augment_mixes(self->augment)) {
        chunk to = part_of(&self->batch, at, mrc_min(left, self->chunk_rows));
        make_samples(self, self->position, &to);
        return to.x.rows;
    }
    int64_t number = self->position / self->chunk_rows, first = self->position % self->chunk_rows;
    int64_t rows = mrc_min(left, self->chunk_rows - first);
    chunk from = part_of(get_chunk(self, number), first, rows), to = part_of(&self->batch, at, rows);
    copy_samples(&to, &from);
    return rows;
}

/* Checks that mapped files were not truncated or modified. Does so at most every 20 ms, because there may be thousands
   of files. */
static mercer_status check_files(data_stream *self)
{
    static const double every = 0.02; /* interval between checks, in seconds */
    double now = mrc_seconds();
    if (now - self->checked < every && now >= self->checked) return MERCER_OK;
    self->checked = now;
    return mrc_dataset_check(&self->data);
}

/* mercer_source.next: fills the batch from one or more chunks. */
static int next_batch(void *user, int64_t most, mercer_batch *batch)
{
    data_stream *self = user;
    int64_t rows = mrc_min(most, self->samples - self->position);
    if (allocate_batch(self, rows) != MERCER_OK || check_files(self) != MERCER_OK) return 1;
    for (int64_t done = 0; done < rows;) {
        int64_t found = fill_batch(self, done, rows - done);
        done += found;
        self->position += found;
    }
    for (int64_t i = 0; self->weights && i < rows; i++) self->batch_weights[i] = self->weights[self->batch.rows[i]];
    chunk out = part_of(&self->batch, 0, rows);
    batch->X = out.x, batch->Y = out.y;
    batch->weights = self->batch_weights;
    batch->rows = self->names_rows ? out.rows : NULL;
    return 0;
}

/* ---- Row numbers instead of samples ------------------------------------------------------------------------------ */

mrc_stream_contents mrc_data_stream_contents(const mercer_source *source)
{
    if (!source || source->struct_size < sizeof *source || source->next != next_batch) return (mrc_stream_contents){0};
    const data_stream *self = source->user;
    bool known = self->order.block == 1 || !mrc_augment_mixes(self->augment);
    return (mrc_stream_contents){.data = known ? &self->data : NULL,
                                 .augment = self->augment,
                                 .preprocess = mrc_preprocess_is_identity(self->preprocess) ? NULL : self->preprocess,
                                 .names_rows = self->names_rows,
                                 .rows_vary = self->augment || self->samples > self->data.rows};
}

/* Arguments of the loop in mrc_data_stream_take: samples out->first .. out->first + count - 1, rows_each per task. */
typedef struct numbering {
    data_stream *self;
    const mrc_stream_samples *out;
    int64_t count, rows_each;
} numbering;

/* Finds the sample of the same chunk that sample k is mixed with. */
static void find_partner(data_stream *self, int64_t k, const mrc_stream_samples *out)
{
    int64_t first = k / self->chunk_rows * self->chunk_rows, i = k - out->first;
    out->partners[i] = mrc_augment_partner(self->augment, self->pass, k, first,
                                           mrc_min(self->chunk_rows, self->samples - first), &out->shares[i]);
    mrc_order_rows(&self->order, out->partners[i], 1, &out->partner_rows[i]);
}

/* A task of mrc_parallel_for: computes the row numbers of some samples, and their mixing partners. */
static void number_some(void *argument, int64_t piece, int worker)
{
    (void)worker;
    const numbering *job = argument;
    const mrc_stream_samples *out = job->out;
    int64_t first = piece * job->rows_each, end = mrc_min(job->count, first + job->rows_each);
    for (int64_t done = first; done < end;)
        done += mrc_order_rows(&job->self->order, out->first + done, end - done, out->rows + done);
    for (int64_t i = first; i < end && mrc_augment_mixes(job->self->augment); i++)
        find_partner(job->self, out->first + i, out);
}

int64_t mrc_data_stream_take(const mercer_source *source, int64_t most, mrc_stream_samples *out)
{
    data_stream *self = source->user;
    int64_t count = mrc_min(most, self->samples - self->position);
    pause_thread(self);
    out->pass = self->pass, out->first = self->position;
    /* With blocks, windows must be opened one after the other, so only one thread may compute row numbers. */
    bool alone = self->order.block > 1;
    numbering job = {self, out, count, alone ? mrc_max(1, count) : NUMBERS_EACH};
    mrc_parallel_for(alone ? 1 : self->threads, (count + job.rows_each - 1) / job.rows_each, number_some, &job);
    self->position += count;
    return count;
}

const double *mrc_data_stream_weights(const mercer_source *source)
{
    return ((const data_stream *)source->user)->weights;
}

double mrc_data_stream_unevenness(const mercer_source *source)
{
    if (source->next != next_batch) return 0;
    const data_stream *self = source->user;
    double heaviest = 0, sum = 0;
    for (int64_t i = 0; self->weights && i < self->data.rows; i++)
        heaviest = fmax(heaviest, self->weights[i]), sum += self->weights[i];
    return sum > 0 ? heaviest / (sum / (double)self->data.rows) : 0;
}

static const char *last_error(void *user)
{
    return mrc_last_error(((data_stream *)user)->context);
}

static void release_source(void *user)
{
    data_stream *self = user;
    if (!self) return;
    mrc_background_stop(self->background);
    for (int i = 0; i < RING; i++) release_chunk(self, &self->ring[i]);
    for (int i = 0; i < 2; i++) release_chunk(self, &self->raw[i]);
    release_chunk(self, &self->batch);
    mrc_free(self->context, self->batch_weights);
    mrc_free(self->context, self->row);
    mrc_augment_free(self->context, self->augment);
    mrc_free(self->context, self);
}
MRC_RELEASE(release_stream, data_stream, release_source)

/* ---- Creation -------------------------------------------------------------------------------------------------- */

static mercer_status make_augment(data_stream *self, const mercer_stream_options *options)
{
    const mercer_dataset *data = &self->data;
    mrc_augment_shape shape = {data->features, data->height, data->width, data->channels};
    if (options->height || options->width || options->channels) {
        shape.height = options->height;
        shape.width = options->width;
        shape.channels = options->channels ? options->channels : 1;
    }
    return mrc_augment_create(&self->augment, self->context, options->augment, &shape, options->seed);
}

/* Returns whether to read ahead. By default, a thread reads ahead if samples cost more than a copy: if they are
   computed, changed, or read from disk. */
static bool wants_thread(const data_stream *self, mercer_switch prefetch)
{
    if (prefetch != MERCER_AUTO) return prefetch == MERCER_ON;
    if (self->order.block > 1) return true;
    bool dear = self->data.synth || self->augment || !mrc_preprocess_is_identity(self->preprocess);
    return dear && self->context->threads > 1;
}

/* Starts the prefetch thread if it is useful. If threads are not supported, warns, and the caller produces the
   samples. */
static mercer_status start_thread(data_stream *self, mercer_switch prefetch)
{
    if (!wants_thread(self, prefetch)) return MERCER_OK;
    mercer_status status = mrc_background_start(&self->background, self->context, make_chunk, self);
    if (status != MERCER_ERROR_UNSUPPORTED || prefetch == MERCER_ON) return status;
    mrc_warn(self->context, "memory", "%s; samples are not read ahead", mrc_last_error(self->context));
    return MERCER_OK;
}

/* Allocates scratch for the steps between fetching and the finished chunk, and the chunks of the ring. */
static mercer_status make_scratch(data_stream *self)
{
    const mercer_dataset *data = &self->data;
    bool mixes = mrc_augment_mixes(self->augment), changes = !mrc_preprocess_is_identity(self->preprocess);
    if (mixes || changes) MRC_TRY(make_matrix(self, &self->raw[0].x, self->chunk_rows, data->features, data->dtype));
    if (mixes) MRC_TRY(make_matrix(self, &self->raw[0].y, self->chunk_rows, data->outputs, self->y_dtype));
    if (mixes && changes) MRC_TRY(make_matrix(self, &self->raw[1].x, self->chunk_rows, data->features, data->dtype));
    if (self->augment) {
        self->row_bytes = mrc_round_up(data->features * mrc_dtype_size(data->dtype), MRC_ALIGNMENT);
        MRC_TRY(mrc_alloc(self->context, &self->row, self->threads, self->row_bytes, "a sample"));
    }
    int chunks = self->background ? RING : mixes ? 1 : 0;
    for (int i = 0; i < chunks; i++) MRC_TRY(allocate_chunk(self, &self->ring[i], self->chunk_rows));
    return MERCER_OK;
}

/* Sets up order, augmentation, chunk size, thread and buffers. */
static mercer_status build_stream(data_stream *self, const mercer_stream_options *options)
{
    const mercer_dataset *data = &self->data;
    mrc_order_init(&self->order, data, options->block, options->seed);
    self->order.threads = self->threads;
    if (options->augment) MRC_TRY(make_augment(self, options));
    int64_t row = data->features * mrc_dtype_size(data->dtype) + data->outputs * mrc_dtype_size(self->y_dtype);
    self->chunk_rows = mrc_max(CHUNK_LEAST, mrc_min(CHUNK_MOST, CHUNK_BYTES / mrc_max(1, row)));
    self->chunk_rows = mrc_max(1, mrc_min(self->chunk_rows, self->samples));
    /* make_scratch allocates the whole ring only if there is a thread. */
    MRC_TRY(start_thread(self, options->prefetch));
    return make_scratch(self);
}

mercer_status mrc_data_stream_create(mercer_source *out, mercer_context *context, const mercer_dataset *data,
                                     const mrc_data_stream_options *options)
{
    const mercer_stream_options *stream = &options->stream;
    MRC_OWNED(release_stream) data_stream *self = NULL;
    memset(out, 0, sizeof *out);
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "the source"));
    self->context = context;
    /* Copy the struct, so that the caller may reuse the original; the memory that it points to must stay valid. */
    self->data = *data;
    self->weights = options->weights ? options->weights : data->weights;
    self->preprocess = stream->preprocess;
    self->threads = options->threads > 1 ? options->threads : 1;
    self->samples = stream->samples ? stream->samples : data->rows;
    self->names_rows = !stream->augment && self->samples == data->rows;
    self->x_dtype = mrc_preprocess_dtype(stream->preprocess, data->dtype);
    self->width = mrc_preprocess_width(stream->preprocess, data->features);
    self->y_dtype = mrc_dataset_has_values(data) ? data->y.dtype : MERCER_F32;
    self->made = -1;
    MRC_TRY(build_stream(self, stream));
    *out = (mercer_source){.struct_size = sizeof *out,
                           .rows = self->samples,
                           .features = self->width,
                           .outputs = data->outputs,
                           .dtype = self->x_dtype,
                           .restart = restart_pass,
                           .next = next_batch,
                           .last_error = last_error,
                           .release = release_source,
                           .user = self,
                           .skip = skip_samples};
    self = NULL;
    return MERCER_OK;
}
