/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prediction, F = offset + scale K(P(X), Z) W with P the model's preprocessing, offset and scale the units of
 * its targets (0 and 1 if it has none).
 *
 * X (m, d) is preprocessed block by block: scratch is a block, whatever m. A row's result depends on that row alone, so
 * blocks change no bit of it. P may overflow the range of float: X is gone through once before, so that nothing is
 * written if it does; that costs O(m d) beside the O(m p d) of the product.
 *
 * Units are for the digits that float does not have: an F in double does not make the product double where the model
 * is in float, but keeps what offset and scale add to it.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/softmax.h"
#include "core/threads/parallel.h"
#include "solvers/operators/center_shards.h"

#include <stdio.h>

enum {
    BLOCK_ROWS = 4096,
    ROWS_A_THREAD = 512,    /* the backend's own blocks: fewer would leave threads idle */
    BLOCK_BYTES = 64 << 20, /* of preprocessed rows, at most (but one row at least) */
    PART_ROWS = 256,        /* preprocessed by a thread at a time */
};

/* Rows that are preprocessed together, and room for them; no memory if they go as they are. */
typedef struct input_block {
    mercer_dtype dtype;
    int64_t rows;
    void *memory;
    mercer_matrix product; /* (rows, c) K(P(X), Z) W where it has another type than F; otherwise no data */
    mrc_centers *centers;  /* of a model that ranks share; NULL: it is here alone */
    mrc_centers shared;
    mrc_scope scope;
} input_block;

static void close_block(input_block *block)
{
    if (block->centers) mrc_centers_destroy(block->centers);
    mrc_scope_close(&block->scope);
}

static mercer_status make_room(mercer_model *model, const mercer_matrix *X, mercer_dtype result, input_block *out)
{
    int64_t d = model->centers.cols, c = model->weights.cols, size = mrc_dtype_size(out->dtype);
    mercer_matrix x = mrc_view(NULL, X->rows, d, out->dtype);
    mercer_dtype own = mrc_value_dtype(&x, &model->centers, &model->weights, NULL);
    bool identity = mrc_preprocess_is_identity(model->preprocess);
    if (!identity) out->rows = mrc_max(1, mrc_min(out->rows, BLOCK_BYTES / mrc_max(1, d * size)));
    if (!identity) MRC_TRY(mrc_scope_alloc(&out->scope, &out->memory, out->rows * d, size, "preprocessed samples"));
    if (!mrc_units_given(&model->units) || own == result || own == MERCER_F64) return MERCER_OK;
    return mrc_scope_view(&out->scope, &out->product, out->rows, c, own, "predictions");
}

/* result: the type of the predictions. Where the product, centers and weights are float, doubles are rounded after
   the preprocessing: before, large numbers that differ little would become equal; as double, all arithmetic would
   be. */
static mercer_status open_block(mercer_model *model, const mercer_matrix *X, mercer_dtype result, input_block *out)
{
    out->dtype = mercer_preprocess_dtype(model->preprocess, X->dtype);
    bool single = model->centers.dtype != MERCER_F64 && model->weights.dtype != MERCER_F64;
    single &= result != MERCER_F64 || mrc_units_given(&model->units); /* which are applied in double */
    if (single && !mrc_preprocess_is_identity(model->preprocess)) out->dtype = MERCER_F32;
    int64_t rows = mrc_max(BLOCK_ROWS, (int64_t)ROWS_A_THREAD * model->context->threads);
    out->rows = mrc_max(1, mrc_min(rows, X->rows));
    if (model->comm && mrc_comm_shards(model->comm, model->total) > 1) {
        MRC_TRY(mrc_centers_create(&out->shared, model->context->backend, model->comm, &model->kernel, &model->centers,
                                   model->total, model->origin, model->weights.dtype));
        out->centers = &out->shared;
    }
    return make_room(model, X, result, out);
}

typedef struct rows_task {
    const mercer_preprocess *preprocess;
    const mercer_matrix *to, *from;
} rows_task;

static void preprocess_part(void *argument, int64_t part, int worker)
{
    (void)worker;
    const rows_task *task = argument;
    int64_t first = part * PART_ROWS, rows = mrc_min(PART_ROWS, task->from->rows - first);
    mercer_matrix to = mrc_rows(task->to, first, rows), from = mrc_rows(task->from, first, rows);
    mrc_preprocess_rows(task->preprocess, &to, &from);
}

/* At most block->rows rows of X as the kernel sees them. */
static mercer_matrix preprocessed(const mercer_model *model, const input_block *block, const mercer_matrix *X)
{
    if (!block->memory) return *X;
    mercer_matrix out = mrc_view(block->memory, X->rows, model->centers.cols, block->dtype);
    rows_task task = {model->preprocess, &out, X};
    int64_t parts = (X->rows + PART_ROWS - 1) / PART_ROWS;
    mrc_parallel_for(parts > 1 ? model->context->threads : 1, parts, preprocess_part, &task);
    return out;
}

static mercer_status check_range(mercer_model *model, const char *name, const mercer_matrix *x, const mercer_matrix *F)
{
    bool apart = mrc_units_given(&model->units); /* the product has a type of its own */
    mercer_dtype real = mrc_value_dtype(x, &model->centers, &model->weights, apart ? NULL : F);
    return mrc_kernel_check_range(model->context, &model->kernel, name, x, real);
}

static mercer_status check_preprocessed(mercer_model *model, const input_block *block, const mercer_matrix *X,
                                        const mercer_matrix *F)
{
    for (int64_t first = 0; block->memory && first < X->rows; first += block->rows) {
        mercer_matrix part = mrc_rows(X, first, mrc_min(block->rows, X->rows - first));
        mercer_matrix x = preprocessed(model, block, &part);
        char name[80];
        snprintf(name, sizeof name, "X preprocessed (%s), from row %lld on",
                 mrc_preprocess_name(model->preprocess->kind), (long long)first);
        MRC_TRY(check_range(model, name, &x, F));
    }
    return MERCER_OK;
}

/* F: the predictions, or NULL if they are of the type of the weights. */
static mercer_status check_input(mercer_model *model, const mercer_matrix *X, const mercer_matrix *F)
{
    if (mrc_preprocess_is_identity(model->preprocess)) return check_range(model, "X", X, F);
    return mrc_check_finite(model->context, "X", X, NULL);
}

/* What is left after the ranges were checked: large weights, a user's function, a file that was tampered with. */
static mercer_status check_predictions(mercer_model *model, const mercer_matrix *f)
{
    if (mrc_check_finite(model->context, "predictions", f, NULL) == MERCER_OK) return MERCER_OK;
    return mrc_fail(
        model->context, MERCER_ERROR_NUMERIC,
        "the model's predictions are not finite: its weights or kernel values are too large for %s at these "
        "samples",
        mrc_dtype_name(f->dtype));
}

/* ---- Where the model is ---------------------------------------------------------------------------------------- */

/* The model where the backend computes: on a device, a copy for the length of a call, so that it goes there once. */
typedef struct placed_model {
    mrc_backend *backend; /* what the copy is for; NULL: there is none */
    mercer_matrix z, w;
    mercer_matrix own_z, own_w;
    mrc_packed *packed; /* of z, or NULL */
} placed_model;

static void unplace(placed_model *placed)
{
    mrc_backend *backend = placed->backend;
    if (!backend) return;
    backend->ops->pack_free(backend, placed->packed);
    mrc_matrix_destroy(backend, &placed->own_z);
    mrc_matrix_destroy(backend, &placed->own_w);
}

static mercer_status bring(mercer_model *model, placed_model *out)
{
    mrc_backend *backend = model->context->backend;
    const mercer_matrix *z = &model->centers, *w = &model->weights;
    MRC_TRY(mrc_matrix_create(backend, &out->own_z, z->rows, z->cols, z->dtype, "the centers"));
    MRC_TRY(mrc_matrix_create(backend, &out->own_w, w->rows, w->cols, w->dtype, "the weights"));
    MRC_TRY(backend->ops->copy(backend, &out->own_z, z));
    MRC_TRY(backend->ops->copy(backend, &out->own_w, w));
    MRC_TRY(backend->ops->pack_create(backend, &out->packed, &model->kernel, model->origin, z));
    return out->packed ? backend->ops->pack_rows(backend, out->packed, 0, &out->own_z) : MERCER_OK;
}

static mercer_status place(mercer_model *model, placed_model *out)
{
    mrc_backend *backend = model->context->backend;
    *out = (placed_model){.z = model->centers, .w = model->weights};
    if (backend->ops->capabilities(backend).memory == MRC_HOST) return MERCER_OK;
    out->backend = backend;
    mercer_status status = bring(model, out);
    if (status == MERCER_OK) out->z = out->own_z, out->w = out->own_w;
    if (status != MERCER_ERROR_MEMORY) return status;
    unplace(out);
    *out = (placed_model){.z = model->centers, .w = model->weights};
    return MERCER_OK; /* then the products take it in parts */
}

/* ---- Products -------------------------------------------------------------------------------------------------- */

static mercer_status multiply(mercer_model *model, const placed_model *placed, const input_block *block,
                              const mercer_matrix *F, const mercer_matrix *X)
{
    mrc_backend *backend = model->context->backend;
    mercer_matrix x = preprocessed(model, block, X);
    if (block->centers) return mrc_centers_predict(block->centers, &x, &model->weights, F, NULL);
    mrc_pair pair = {
        .kernel = &model->kernel, .x = &x, .z = &placed->z, .origin = model->origin, .packed_z = placed->packed};
    return backend->ops->kernel_matmul(backend, &pair, &placed->w, F, false);
}

static mercer_status predict_block(mercer_model *model, const placed_model *placed, const input_block *block,
                                   const mercer_matrix *F, const mercer_matrix *X)
{
    mercer_matrix product = block->product.data ? mrc_rows(&block->product, 0, F->rows) : *F;
    MRC_TRY(multiply(model, placed, block, &product, X));
    if (mrc_units_given(&model->units)) mrc_units_leave(&model->units, F, &product);
    return MERCER_OK;
}

/* What is done with samples once everything is in its place. */
typedef struct prediction prediction;
struct prediction {
    mercer_model *model;
    const mercer_matrix *X;
    const mercer_matrix *F; /* where predictions go; NULL: to `take`, block by block, in the type of the weights */
    void (*take)(const prediction *self, const mercer_matrix *f, int64_t first); /* outputs f of rows first, ... */
    int32_t *labels;                                                             /* for take_labels */
    const mercer_matrix *probabilities;                                          /* for take_probabilities */
    double *row;                                                                 /* (c), room for it */
};

static mercer_status predict_into(const prediction *self, const placed_model *placed, const input_block *block)
{
    const mercer_matrix *X = self->X, *F = self->F;
    if (!block->memory && !block->product.data) return predict_block(self->model, placed, block, F, X);
    for (int64_t first = 0; first < X->rows; first += block->rows) {
        int64_t some = mrc_min(block->rows, X->rows - first);
        mercer_matrix x = mrc_rows(X, first, some), f = mrc_rows(F, first, some);
        MRC_TRY(predict_block(self->model, placed, block, &f, &x));
    }
    return MERCER_OK;
}

static mercer_status visit_blocks(const prediction *self, const placed_model *placed, const input_block *block)
{
    mercer_model *model = self->model;
    mercer_matrix all;
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_view(&scope, &all, block->rows, model->weights.cols, model->weights.dtype, "predictions"));
    for (int64_t first = 0; first < self->X->rows; first += block->rows) {
        mercer_matrix part = mrc_rows(self->X, first, mrc_min(block->rows, self->X->rows - first));
        mercer_matrix f = mrc_rows(&all, 0, part.rows);
        MRC_TRY(predict_block(model, placed, block, &f, &part));
        MRC_TRY(check_predictions(model, &f));
        if (self->take) self->take(self, &f, first);
    }
    return MERCER_OK;
}

static mercer_status run(const prediction *self)
{
    mercer_model *model = self->model;
    MRC_OWNED(close_block) input_block block = {.scope = {.context = model->context}};
    MRC_OWNED(unplace) placed_model placed = {0};
    MRC_TRY(check_input(model, self->X, self->F));
    MRC_TRY(open_block(model, self->X, self->F ? self->F->dtype : model->weights.dtype, &block));
    MRC_TRY(check_preprocessed(model, &block, self->X, self->F));
    if (!block.centers) MRC_TRY(place(model, &placed));
    MRC_TRY((self->F ? predict_into : visit_blocks)(self, &placed, &block));
    return self->F ? check_predictions(model, self->F) : MERCER_OK;
}

mercer_status mrc_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    return run(&(prediction){.model = model, .X = X, .F = F});
}

/* The first of equals. */
static int32_t largest_output(const mercer_matrix *f, int64_t i)
{
    int32_t best = 0;
    for (int32_t j = 1; j < f->cols; j++)
        if (mrc_load(f, i, j) > mrc_load(f, i, best)) best = j;
    return best;
}

static void take_labels(const prediction *self, const mercer_matrix *f, int64_t first)
{
    for (int64_t i = 0; i < f->rows; i++) self->labels[first + i] = largest_output(f, i);
}

static void take_probabilities(const prediction *self, const mercer_matrix *f, int64_t first)
{
    double temperature = mercer_model_temperature(self->model, NULL);
    for (int64_t i = 0; i < f->rows; i++) {
        mrc_load_row_f64(f, i, self->row);
        mrc_softmax(self->row, self->row, f->cols, temperature);
        mrc_store_row_f64(self->probabilities, first + i, self->row);
    }
}

mercer_status mrc_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X)
{
    return run(&(prediction){.model = model, .X = X, .take = take_labels, .labels = labels});
}

mercer_status mrc_model_probabilities(mercer_model *model, const mercer_matrix *P, const mercer_matrix *X)
{
    prediction self = {.model = model, .X = X, .take = take_probabilities, .probabilities = P};
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.row, model->weights.cols, sizeof *self.row, "a row of probabilities"));
    return run(&self);
}

/* ---- The origin ------------------------------------------------------------------------------------------------- */

/* Column sums of a shard: rows times their mean. part: (1, d) f64. */
static mercer_status add_columns(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    (void)argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard);
    double *sums = part->data;
    if (z.rows == 0) return MERCER_OK;
    MRC_TRY(centers->backend->ops->column_mean(centers->backend, &z, sums));
    for (int64_t j = 0; j < part->cols; j++) sums[j] *= (double)z.rows;
    return MERCER_OK;
}

mercer_status mrc_model_find_origin(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_comm *comm = model->comm;
    if (!comm || mrc_comm_shards(comm, model->total) == 1)
        return backend->ops->column_mean(backend, &model->centers, model->origin);
    MRC_OWNED(mrc_centers_destroy) mrc_centers centers = {0};
    mercer_matrix row = mrc_view(model->origin, 1, model->centers.cols, MERCER_F64);
    MRC_TRY(mrc_centers_create(&centers, backend, comm, &model->kernel, &model->centers, model->total, model->origin,
                               model->weights.dtype));
    MRC_TRY(mrc_centers_sum(&centers, &row, add_columns, NULL));
    for (int64_t j = 0; j < row.cols; j++) model->origin[j] /= (double)model->total;
    return MERCER_OK;
}
