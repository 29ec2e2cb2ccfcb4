/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples in memory. Row k of pass e is permutation_e(k), computed directly from (seed, e, k): no index array, any
 * place of any pass can be found again. A batch is gathered into buffers that grow to the largest batch asked for.
 */
#include "data/memory_source.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/random.h"

#include <string.h>

typedef struct memory_source {
    mercer_context *context;
    mercer_matrix x, y; /* y without data: labels */
    const int32_t *labels;
    const double *weights;
    uint64_t seed;
    mrc_stream order; /* of the pass that is being read */
    int64_t position;
    int64_t room; /* rows the buffers hold */
    mercer_matrix batch_x, batch_y;
    double *batch_weights;
    int64_t *batch_rows;
} memory_source;

static int restart(void *user, int64_t epoch)
{
    memory_source *self = user;
    self->order = (mrc_stream){self->seed, (uint64_t)(epoch + 2)}; /* the pass for samples is number -1 */
    self->position = 0;
    return 0;
}

static void release_buffers(memory_source *self)
{
    mrc_free(self->context, self->batch_x.data);
    mrc_free(self->context, self->batch_y.data);
    mrc_free(self->context, self->batch_weights);
    mrc_free(self->context, self->batch_rows);
    self->batch_x.data = self->batch_y.data = NULL;
    self->batch_weights = NULL;
    self->batch_rows = NULL;
    self->room = 0;
}

static mercer_status make_room(memory_source *self, int64_t rows)
{
    if (rows <= self->room) return MERCER_OK;
    release_buffers(self);
    void *weights = NULL, *numbers = NULL;
    self->batch_x = mrc_view(NULL, 0, self->x.cols, self->x.dtype);
    self->batch_y = mrc_view(NULL, 0, self->y.cols, self->y.dtype);
    MRC_TRY(
        mrc_alloc(self->context, &self->batch_x.data, rows * self->x.cols, mrc_dtype_size(self->x.dtype), "a batch"));
    MRC_TRY(
        mrc_alloc(self->context, &self->batch_y.data, rows * self->y.cols, mrc_dtype_size(self->y.dtype), "a batch"));
    MRC_TRY(mrc_alloc(self->context, &weights, rows, sizeof(double), "a batch"));
    self->batch_weights = weights;
    MRC_TRY(mrc_alloc(self->context, &numbers, rows, sizeof(int64_t), "a batch"));
    self->batch_rows = numbers;
    self->room = rows;
    return MERCER_OK;
}

static void copy_row(memory_source *self, int64_t to, int64_t from)
{
    memcpy(mrc_row(&self->batch_x, to), mrc_row(&self->x, from),
           (size_t)(self->x.cols * mrc_dtype_size(self->x.dtype)));
    self->batch_rows[to] = from;
    if (self->weights) self->batch_weights[to] = self->weights[from];
    void *row = mrc_row(&self->batch_y, to);
    size_t bytes = (size_t)(self->y.cols * mrc_dtype_size(self->y.dtype));
    if (self->y.data) {
        memcpy(row, mrc_row(&self->y, from), bytes);
    } else {
        memset(row, 0, bytes);
        ((float *)row)[self->labels[from]] = 1;
    }
}

static int next(void *user, int64_t most, mercer_batch *batch)
{
    memory_source *self = user;
    int64_t rows = mrc_min(most, self->x.rows - self->position);
    if (make_room(self, rows) != MERCER_OK) return 1;
    for (int64_t i = 0; i < rows; i++)
        copy_row(self, i, mrc_random_permutation(self->order, self->x.rows, self->position + i));
    self->position += rows;
    self->batch_x.rows = self->batch_y.rows = rows;
    *batch = (mercer_batch){.X = self->batch_x,
                            .Y = self->batch_y,
                            .weights = self->weights ? self->batch_weights : NULL,
                            .rows = self->batch_rows};
    return 0;
}

static int skip(void *user, int64_t rows)
{
    memory_source *self = user;
    self->position = mrc_min(self->position + rows, self->x.rows);
    return 0;
}

static const char *last_error(void *user)
{
    return mrc_error_text(((memory_source *)user)->context);
}

static void release(void *user)
{
    memory_source *self = user;
    release_buffers(self);
    mrc_free(self->context, self);
}

mercer_status mrc_memory_source_create(mercer_source *out, mercer_context *context,
                                       const mrc_memory_source_options *options)
{
    void *memory;
    memset(out, 0, sizeof *out);
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(memory_source), "the source"));
    memory_source *self = memory;
    self->context = context;
    self->x = *options->x;
    self->y = options->y ? *options->y : mrc_view(NULL, options->x->rows, options->classes, MERCER_F32);
    self->labels = options->labels;
    self->weights = options->weights;
    self->seed = options->seed;
    *out = (mercer_source){.struct_size = sizeof *out,
                           .rows = self->x.rows,
                           .features = self->x.cols,
                           .outputs = self->y.cols,
                           .dtype = self->x.dtype,
                           .restart = restart,
                           .next = next,
                           .last_error = last_error,
                           .release = release,
                           .user = self,
                           .skip = skip};
    return MERCER_OK;
}
