/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prediction, F = offset + scale K(P(X), Z) W, where P is the model's preprocessing, and offset and scale are the units
 * of its targets (0 and 1 if it has none).
 *
 * X (m, d) is processed in blocks, so that scratch space does not depend on m. The result of a row depends on that row
 * only, so it is the same for any block size. P(X) may exceed the range of float, so each block is checked between
 * preprocessing and product. After an error F is unchanged only if the first block failed.
 *
 * If the model is in float and has units, the product is in float even for an F in double: only offset and scale are
 * applied in double, which preserves digits that float does not have.
 */
#include "model/model.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/softmax.h"
#include "core/threads/parallel.h"
#include "solvers/operators/center_shards.h"

#include <stdio.h>

enum {
    BLOCK_ROWS = 4096,        /* minimum number of rows of a block */
    ROWS_A_THREAD = 512,      /* block size of the CPU backend: with fewer rows threads would be idle */
    BLOCK_BYTES = 64 << 20,   /* limit of a block of preprocessed rows (but at least one row) */
    PART_ROWS = 256,          /* rows that a thread preprocesses at a time */
    DEVICE_ROWS = 32768,      /* block size for a device: one block is transferred while another is computed */
    DEVICE_BYTES = 128 << 20, /* limit of a block on a device; there are several at a time */
};

/* A block of rows that are processed together, and its scratch space. */
typedef struct input_block {
    mercer_dtype dtype; /* type of the preprocessed rows */
    int64_t rows;
    void *memory;            /* host memory for preprocessed rows; NULL: not needed */
    mercer_matrix given;     /* (rows, features) host copy of device rows that the host preprocesses; else no data */
    mercer_matrix on_device; /* (rows, d) device memory for rows that the device preprocesses; else no data */
    mercer_matrix product;   /* (rows, c) K(P(X), Z) W if it cannot be stored in F; else no data */
    mrc_centers *centers;    /* centers of a model that ranks share; NULL: one process */
    mrc_centers shared;
    mrc_scope scope;
} input_block;

static void close_block(input_block *block)
{
    if (block->centers) mrc_centers_destroy(block->centers);
    mrc_scope_close(&block->scope);
}

/* Returns the kind of memory that the backend computes in: host memory or device memory. */
static mrc_memory home_of(const mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    return mrc_backend_memory(backend);
}

/* Allocates the scratch space of a block. F: destination of the predictions; NULL: host memory in the type of the
   weights. The identity needs no preprocessed rows. A map (x - shift) factor is applied on the device to rows in its
   memory. All other preprocessing runs on the host and needs a host copy of device rows. The product has its own matrix
   if F is in other memory, or has another type because units are applied after the product. */
static mercer_status allocate_block(mercer_model *model, const mercer_matrix *X, const mercer_matrix *F,
                                    input_block *out)
{
    int64_t d = model->centers.cols, c = model->weights.cols, size = mrc_dtype_size(out->dtype);
    mercer_matrix x = mrc_view(NULL, X->rows, d, out->dtype);
    mercer_dtype result = F ? F->dtype : model->weights.dtype;
    mercer_dtype own = mrc_value_dtype(&x, &model->centers, &model->weights, NULL);
    bool identity = mrc_preprocess_is_identity(model->preprocess), apart = mrc_units_given(&model->units);
    mrc_memory home = home_of(model);
    if (!identity) out->rows = mrc_max(1, mrc_min(out->rows, BLOCK_BYTES / mrc_max(1, d * size)));
    bool on_device = X->memory != MRC_HOST && mrc_preprocess_is_affine(model->preprocess);
    if (on_device)
        MRC_TRY(mrc_scope_matrix(&out->scope, model->context->backend, &out->on_device, out->rows, d, out->dtype,
                                 "preprocessed samples"));
    if (!identity && !on_device)
        MRC_TRY(mrc_scope_alloc(&out->scope, &out->memory, out->rows * d, size, "preprocessed samples"));
    if (!identity && !on_device && X->memory != MRC_HOST)
        MRC_TRY(mrc_scope_view(&out->scope, &out->given, out->rows, X->cols, X->dtype, "samples of a device"));
    apart = apart && own != result && own != MERCER_F64;
    if (home == MRC_HOST || out->centers)
        return apart ? mrc_scope_view(&out->scope, &out->product, out->rows, c, own, "predictions") : MERCER_OK;
    if (F && F->memory == home && !apart) return MERCER_OK;
    return mrc_scope_matrix(&out->scope, model->context->backend, &out->product, out->rows, c, apart ? own : result,
                            "predictions");
}

/* Chooses type and size of blocks. If product, centers and weights are float, samples in double are rounded after the
   preprocessing. Rounding before it could make large numbers with small differences equal; without rounding all
   arithmetic would be in double. */
static mercer_status open_block(mercer_model *model, const mercer_matrix *X, const mercer_matrix *F, input_block *out)
{
    mercer_dtype result = F ? F->dtype : model->weights.dtype;
    out->dtype = mrc_preprocess_dtype(model->preprocess, X->dtype);
    bool single = model->centers.dtype != MERCER_F64 && model->weights.dtype != MERCER_F64;
    /* units are applied in double after the product */
    single &= result != MERCER_F64 || mrc_units_given(&model->units);
    if (single && !mrc_preprocess_is_identity(model->preprocess)) out->dtype = MERCER_F32;
    int64_t rows = mrc_max(BLOCK_ROWS, (int64_t)ROWS_A_THREAD * model->context->threads);
    if (home_of(model) != MRC_HOST) {
        int64_t row = mrc_max(1, X->cols * mrc_dtype_size(out->dtype));
        rows = mrc_max(BLOCK_ROWS, mrc_min(DEVICE_ROWS, DEVICE_BYTES / row));
    }
    out->rows = mrc_max(1, mrc_min(rows, X->rows));
    if (model->comm && mrc_comm_shards(model->comm, model->total) > 1) {
        MRC_TRY(mrc_centers_create(&out->shared, model->context->backend, model->comm, &model->kernel, &model->centers,
                                   model->total, model->origin, model->weights.dtype));
        out->centers = &out->shared;
        if (model->context->arithmetic == MRC_FAST) MRC_TRY(mrc_centers_allow_half(&out->shared));
    }
    return allocate_block(model, X, F, out);
}

/* Rows `from` are preprocessed to rows `to`, in parts of PART_ROWS; parts are independent. */
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

/* Preprocesses up to block->rows rows of X; *out becomes a view of the result. */
static mercer_status preprocess_block(const mercer_model *model, const input_block *block, const mercer_matrix *X,
                                      mercer_matrix *out)
{
    mrc_backend *backend = model->context->backend;
    mercer_matrix from = *X;
    *out = *X;
    if (block->on_device.data) {
        const mrc_affine map = {.shift = model->preprocess->shift, .factor = model->preprocess->factor};
        *out = mrc_rows(&block->on_device, 0, X->rows);
        return backend->ops->affine(backend, out, X, &map);
    }
    if (!block->memory) return MERCER_OK;
    if (X->memory != MRC_HOST) {
        from = mrc_rows(&block->given, 0, X->rows);
        MRC_TRY(backend->ops->copy(backend, &from, X));
    }
    *out = mrc_view(block->memory, X->rows, model->centers.cols, block->dtype);
    rows_task task = {model->preprocess, out, &from};
    int64_t parts = (X->rows + PART_ROWS - 1) / PART_ROWS;
    mrc_parallel_for(parts > 1 ? model->context->threads : 1, parts, preprocess_part, &task);
    return MERCER_OK;
}

/* Checks that the kernel values of rows x do not overflow the type of the product, which depends on F unless units are
   applied afterward. */
static mercer_status check_range(mercer_model *model, const char *name, const mercer_matrix *x, const mercer_matrix *F)
{
    bool apart = mrc_units_given(&model->units); /* the product and F may have different types */
    mercer_dtype real = mrc_value_dtype(x, &model->centers, &model->weights, apart ? NULL : F);
    return mrc_matrix_check_range(model->context->backend, &model->kernel, name, x, real);
}

/* Checks the values of X before preprocessing. F: destination of the predictions; NULL: they have the type of the
   weights. */
static mercer_status check_input(mercer_model *model, const mercer_matrix *X, const mercer_matrix *F)
{
    if (mrc_preprocess_is_identity(model->preprocess)) return check_range(model, "X", X, F);
    return mrc_matrix_check_finite(model->context->backend, "X", X, NULL);
}

/* Checks that predictions are finite. The range of X has been checked, so the remaining causes are large weights, a
   user's kernel function, or a manipulated file. */
static mercer_status check_predictions(mercer_model *model, const mercer_matrix *f)
{
    mercer_status status = mrc_matrix_check_finite(model->context->backend, "predictions", f, NULL);
    if (status != MERCER_ERROR_DATA) return status;
    return mrc_fail(
        model->context, MERCER_ERROR_NUMERIC,
        "the predictions are not finite: weights or kernel values overflow %s at these samples; scale the samples "
        "or use f64",
        mrc_dtype_name(f->dtype));
}

/* A prediction: its model, samples and destinations. */
typedef struct prediction prediction;
struct prediction {
    mercer_model *model;
    const mercer_matrix *X;
    const mercer_matrix *F; /* destination; NULL: each block is passed to `take` in the type of the weights */
    /* receives outputs f of the rows from `first` on */
    void (*take)(const prediction *self, const mercer_matrix *f, int64_t first);
    int32_t *labels;                    /* for take_labels */
    const mercer_matrix *probabilities; /* for take_probabilities */
    /* (c) scratch space for take_probabilities */
    double *row;
};

/* ---- Products -------------------------------------------------------------------------------------------------- */

/* Checks the range of a preprocessed block; the message has the index of its first row. */
static mercer_status check_preprocessed(const prediction *self, const mercer_matrix *x, int64_t first)
{
    char name[80];
    snprintf(name, sizeof name, "X preprocessed (%s), from row %lld on",
             mrc_preprocess_name(self->model->preprocess->kind), (long long)first);
    return check_range(self->model, name, x, self->F);
}

/* Preprocesses and checks the block that begins at row `first`, and stages it for the product. A device may still be
   computing the previous block. */
static mercer_status make_ready(const prediction *self, const input_block *block, int64_t first, mercer_matrix *out)
{
    mercer_model *model = self->model;
    mrc_backend *backend = model->context->backend;
    mercer_matrix part = mrc_rows(self->X, first, mrc_min(block->rows, self->X->rows - first)), x;
    MRC_TRY(preprocess_block(model, block, &part, &x));
    if (block->memory || block->on_device.data) MRC_TRY(check_preprocessed(self, &x, first));
    *out = x;
    return block->centers ? MERCER_OK : backend->ops->stage(backend, &x, out);
}

/* Computes K(x, Z) W with the device copy of the model if there is one, or together with the other ranks. */
static mercer_status multiply_part(mercer_model *model, const input_block *block, const mercer_matrix *product,
                                   const mercer_matrix *x)
{
    mrc_backend *backend = model->context->backend;
    const mrc_device_copy *placed = &model->placed;
    bool on_device = placed->z.data;
    if (block->centers) return mrc_centers_predict(block->centers, x, &model->weights, product, NULL);
    mrc_pair pair = {.kernel = &model->kernel,
                     .x = x,
                     .z = on_device ? &placed->z : &model->centers,
                     .origin = model->origin,
                     .packed_z = on_device ? placed->packed : NULL,
                     .half = model->context->arithmetic == MRC_FAST};
    return backend->ops->kernel_matmul(backend, &pair, on_device ? &placed->w : &model->weights, product, false);
}

/* Returns the destination of the product of the rows whose predictions are f. */
static mercer_matrix product_of(const input_block *block, const mercer_matrix *f)
{
    return block->product.data ? mrc_rows(&block->product, 0, f->rows) : *f;
}

/* Converts the product to predictions in the units of the targets. Converting float to double is exact, so copying
   first does not change the result. */
static mercer_status deliver(mercer_model *model, const mercer_matrix *f, const mercer_matrix *product)
{
    mrc_backend *backend = model->context->backend;
    const mrc_units *units = &model->units;
    bool given = mrc_units_given(units);
    mercer_matrix host;
    if (given && f->memory != MRC_HOST && units->curve.kind == MRC_CURVE_NONE)
        return backend->ops->affine(backend, f, product,
                                    &(mrc_affine){.factor = units->scale, .offset = units->offset});
    if (f->data != product->data && product->memory != MRC_HOST) MRC_TRY(backend->ops->copy(backend, f, product));
    if (!given) return MERCER_OK;
    if (product->memory == MRC_HOST) {
        mrc_units_invert(units, f, product);
        return MERCER_OK;
    }
    MRC_TRY(mrc_host_open(backend, f, &host));
    mrc_units_invert(units, &host, &host);
    return mrc_host_close(backend, f, &host, true, MERCER_OK);
}

/* Computes the predictions of all blocks in order, into F or through `take`. A device only queues a product, so the
   next block is prepared and staged before the results of the current one are fetched. */
static mercer_status visit_blocks(const prediction *self, const input_block *block)
{
    mercer_model *model = self->model;
    mercer_matrix all = {0}, x = {0};
    MRC_SCOPE(scope, model->context);
    if (!self->F)
        MRC_TRY(mrc_scope_view(&scope, &all, block->rows, model->weights.cols, model->weights.dtype, "predictions"));
    for (int64_t first = 0, next; first < self->X->rows; first = next) {
        int64_t some = mrc_min(block->rows, self->X->rows - first);
        mercer_matrix f = self->F ? mrc_rows(self->F, first, some) : mrc_rows(&all, 0, some);
        mercer_matrix product = product_of(block, &f);
        next = first + some;
        if (first == 0) MRC_TRY(make_ready(self, block, first, &x));
        MRC_TRY(multiply_part(model, block, &product, &x));
        if (next < self->X->rows) MRC_TRY(make_ready(self, block, next, &x));
        MRC_TRY(deliver(model, &f, &product));
        if (!self->F) MRC_TRY(check_predictions(model, &f));
        if (self->take) self->take(self, &f, first);
    }
    return MERCER_OK;
}

/* Predicts all rows of X. The model is copied to a device after the scratch space is allocated, if there is space
   left. */
static mercer_status run_prediction(const prediction *self)
{
    mercer_model *model = self->model;
    MRC_OWNED(close_block) input_block block = {.scope = {.context = model->context}};
    MRC_TRY(check_input(model, self->X, self->F));
    MRC_TRY(open_block(model, self->X, self->F, &block));
    if (!block.centers) MRC_TRY(mrc_model_upload(model));
    /* if no scratch space is needed, one block can have all rows */
    bool whole = !block.memory && !block.on_device.data && !block.product.data;
    if (self->F && self->F->memory == MRC_HOST && whole) block.rows = self->X->rows;
    MRC_TRY(visit_blocks(self, &block));
    return self->F ? check_predictions(model, self->F) : MERCER_OK;
}

/* Predicts with one model; also the call for each member of a mean. */
static mercer_status predict_alone(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    return run_prediction(&(prediction){.model = model, .X = X, .F = F});
}

mercer_status mrc_model_predict(mercer_model *model, const mercer_matrix *F, const mercer_matrix *X)
{
    return model->member_count > 1 ? mrc_model_mean(model, predict_alone, F, X) : predict_alone(model, F, X);
}

/* Passes all outputs to `take`. For an averaged model the outputs of all rows are computed first, in double. */
static mercer_status take_all(const prediction *self)
{
    mercer_matrix f;
    MRC_SCOPE(scope, self->model->context);
    if (self->model->member_count == 1) return run_prediction(self);
    MRC_TRY(mrc_scope_view(&scope, &f, self->X->rows, self->model->weights.cols, MERCER_F64, "predictions"));
    MRC_TRY(mrc_model_mean(self->model, predict_alone, &f, self->X));
    self->take(self, &f, 0);
    return MERCER_OK;
}

/* Returns the index of the largest output; the first one if several are equal. */
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

/* Converts outputs to probabilities, with curvature, shifts and temperature of the model. */
static void take_probabilities(const prediction *self, const mercer_matrix *f, int64_t first)
{
    double temperature = mrc_model_temperature(self->model);
    for (int64_t i = 0; i < f->rows; i++) {
        mrc_load_row_f64(f, i, self->row);
        mrc_model_curve_scores(self->model, self->row);
        mrc_softmax(self->row, self->row, f->cols, temperature);
        mrc_store_row_f64(self->probabilities, first + i, self->row);
    }
}

/* Calibration and class shifts have no effect on labels: the largest output is the class. */
mercer_status mrc_model_classify(mercer_model *model, int32_t *labels, const mercer_matrix *X)
{
    return take_all(&(prediction){.model = model, .X = X, .take = take_labels, .labels = labels});
}

/* Probabilities are computed on the host, in double, row by row. P may be in device memory; it is then filled at the
   end, and complete when the function returns. */
mercer_status mrc_model_probabilities(mercer_model *model, const mercer_matrix *P, const mercer_matrix *X)
{
    mrc_backend *backend = model->context->backend;
    mercer_matrix host;
    prediction self = {.model = model, .X = X, .take = take_probabilities, .probabilities = &host};
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.row, model->weights.cols, sizeof *self.row, "a row of probabilities"));
    MRC_TRY(mrc_host_open(backend, P, &host));
    MRC_TRY(mrc_host_close(backend, P, &host, true, take_all(&self)));
    return P->memory == MRC_HOST ? MERCER_OK : backend->ops->sync(backend);
}

/* ---- The origin ------------------------------------------------------------------------------------------------- */

/* Computes the column sums of a shard as the number of rows times the mean of the rows. part: (1, d) f64. Shards are
   summed in a fixed order (mrc_centers_sum), so the origin does not depend on the number of ranks. */
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

/* Collects the statistics that identify flags, for a shard of the model's centers, in host memory. part: (3, d) f64. */
static mercer_status add_flags(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const mercer_model *model = argument;
    mercer_matrix z = mrc_centers_part(centers, &model->centers, shard);
    mrc_add_flags(centers->context->threads, &z, part);
    return MERCER_OK;
}

/* Statistics of flags are collected from host memory, even if the backend computes the mean on a device. With shards
   the sums are divided by p at the end; with one shard the backend returns the mean itself. */
mercer_status mrc_model_find_origin(mercer_model *model)
{
    mrc_backend *backend = model->context->backend;
    mrc_comm *comm = model->comm;
    int64_t d = model->centers.cols;
    bool bytes = model->centers.dtype == MERCER_U8; /* products of bytes are exact with any origin */
    mercer_matrix row = mrc_view(model->origin, 1, d, MERCER_F64), flags = mrc_view(NULL, 3, d, MERCER_F64);
    MRC_SCOPE(scope, model->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &flags.data, mrc_max(1, 3 * d), sizeof(double), "the origin"));
    if (!comm || mrc_comm_shards(comm, model->total) == 1) {
        MRC_TRY(backend->ops->column_mean(backend, &model->centers, model->origin));
        if (!bytes) mrc_add_flags(model->context->threads, &model->centers, &flags);
    } else {
        MRC_OWNED(mrc_centers_destroy) mrc_centers centers = {0};
        MRC_TRY(mrc_centers_create(&centers, backend, comm, &model->kernel, &model->centers, model->total,
                                   model->origin, model->weights.dtype));
        MRC_TRY(mrc_centers_sum(&centers, &row, add_columns, NULL));
        if (!bytes) MRC_TRY(mrc_centers_sum(&centers, &flags, add_flags, model));
        for (int64_t j = 0; j < d; j++) model->origin[j] /= (double)model->total;
    }
    if (!bytes) mrc_clear_flags(&flags, model->total, model->origin);
    return MERCER_OK;
}
