/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradients of sums of kernel functions with respect to the preprocessed points:
 *
 *   norm 2   grad f_l(x_i) = q_il - s_il (x_i - o),   [q_il | s_il] = sum_j psi(r_ij) alpha_jl [z_j - o | 1]
 *   norm 1   d f_l / d x_k = -sum_j alpha_jl psi(r_ij) sign(x_ik - z_jk)
 *
 * psi is the slope (kernels/formulas.h), -phi'(r) / r in norm 2 and -phi'(r) in norm 1; o is an origin in the middle of
 * the points. In norm 2 this is one product with psi, which has d + 1 columns per output: 2 m p (d + c (d + 1)) flops.
 * Norm 1 cannot use a product. It has its own operation (kernel_signs of backends/backend.h), with two comparisons and
 * two sums per pair, feature and output.
 *
 * Cancellation: for a near pair psi may be large, about 1 / (b r), while psi (x - z) is at most K / b. The sums are
 * therefore in double for all types of points: the error of a pair is 2^-53 |x - o| / r times its share, which is below
 * 1e-9 down to r = 1e-7 |x - o|. Equal pairs have psi = 0 if psi has no limit at r = 0.
 *
 * With several ranks each shard of the centers has its own sums, which are added in the same tree as all sums over
 * shards.
 */
#include "explain/gradient.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"
#include "kernels/formulas.h"
#include "kernels/table.h"

#include <math.h>
#include <string.h>

enum {
    WEIGHT_BYTES = 32 << 20, /* limit in bytes of `weights`, and also of `sums` */
    BLOCK_ROWS = 2048,
    PART_ROWS = 64,  /* rows that a thread handles at a time */
    SHARD_ROWS = 16, /* smallest number of rows of x at a time if the centers are in shards */
};

mercer_status mrc_gradient_slope(mercer_context *context, const mercer_kernel *kernel, mercer_kernel *slope)
{
    if (mrc_kernel_slope(kernel, slope)) return MERCER_OK;
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    if (entry && entry->argument == MRC_ON_DIFFERENCES)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "kernel %s: gradients exist only for p = 1 and p = 2, but p is %g", entry->form.name,
                        kernel->p);
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                    "kernel %s: gradients exist only for built-in functions of the distance",
                    entry ? entry->form.name : "callback");
}

/* ---- Shards ------------------------------------------------------------------------------------------------------ */

/* Returns the shards of the centers and those of this rank. The centers of one process are one shard. */
static mrc_shards shards_of(const mrc_expansion *sum)
{
    int64_t first, local;
    if (!sum->comm) return (mrc_shards){.all = 1, .local = 1};
    int all = mrc_comm_shards(sum->comm, sum->total);
    mrc_share(all, sum->comm->ranks, sum->comm->rank, &first, &local);
    return (mrc_shards){all, (int)first, (int)local};
}

/* Finds the rows of local shard i among this rank's rows. */
static void find_shard(const mrc_expansion *sum, mrc_shards shards, int i, int64_t *first, int64_t *rows)
{
    int64_t here;
    *first = 0, *rows = sum->z->rows;
    if (!sum->comm) return;
    mrc_comm_rows(sum->comm, sum->total, sum->comm->rank, &here, rows);
    mrc_shard_rows(sum->total, shards.all, shards.first + i, first, rows);
    *first -= here;
}

/* Returns the number of rows of x to process at a time, for rows with `bytes` bytes of sums. The number is the same for
   any number of ranks. */
static int64_t rows_at_once(const mrc_expansion *sum, int64_t m, int64_t bytes)
{
    int64_t all = shards_of(sum).all;
    return all == 1 ? m : mrc_min(m, mrc_max(SHARD_ROWS, WEIGHT_BYTES / (bytes * all)));
}

/* ---- Fused products ---------------------------------------------------------------------------------------------- */

/* A block of rows of x, and the centers and outputs that are being processed. In norm 1 a center has no coordinates in
   its weights, because kernel_signs reads them from the points. */
typedef struct gradient_job {
    const mrc_expansion *sum;
    const mercer_kernel *slope;
    bool norm_1;
    const mercer_matrix *alpha, *x, *gradients;
    int64_t weight_columns, sum_columns; /* per output: d + 1 and d + 1; in norm 1: 1 and d */
    mercer_matrix weights; /* (centers, outputs weight_columns) alpha_j [z_j - o | 1]; in norm 1 alpha_j */
    mercer_matrix sums;    /* (m, outputs sum_columns), followed by the sums of this rank's other shards */
    double *rows;          /* (threads, d + 1) scratch space for a center */
    int64_t most;          /* maximum number of centers at a time */
    int64_t at_once;       /* maximum number of outputs at a time */
    int64_t first_center, first_output, outputs;
} gradient_job;

/* Loads row i minus the origin. */
static void load_centered(const gradient_job *job, const mercer_matrix *points, int64_t i, double *restrict row)
{
    const double *origin = job->sum->origin;
    if (points->dtype == MERCER_F32) {
        const float *from = mrc_row(points, i);
        for (int64_t k = 0; k < points->cols; k++) row[k] = (double)from[k] - origin[k];
        return;
    }
    mrc_load_row_f64(points, i, row);
    for (int64_t k = 0; k < points->cols; k++) row[k] -= origin[k];
}

/* A task of mrc_parallel_for: computes PART_ROWS rows of job->weights. */
static void fill_weights(void *argument, int64_t part, int worker)
{
    const gradient_job *job = argument;
    const mercer_matrix *z = job->sum->z, *w = &job->weights;
    int64_t columns = job->weight_columns;
    int64_t first = part * PART_ROWS, end = mrc_min(first + PART_ROWS, w->rows);
    double *row = job->rows + worker * (z->cols + 1);
    for (int64_t j = first; j < end; j++) {
        double *to = mrc_row(w, j);
        if (!job->norm_1) load_centered(job, z, job->first_center + j, row);
        row[columns - 1] = 1;
        for (int64_t l = 0; l < job->outputs; l++) {
            double a = mrc_load(job->alpha, job->first_center + j, job->first_output + l);
            for (int64_t k = 0; k < columns; k++) to[l * columns + k] = a * row[k];
        }
    }
}

/* Computes gradient (d) = q - s x from sums (d + 1) = [q | s]. */
static void take_gradient(int64_t d, const double *restrict sums, const double *restrict x, double *restrict gradient)
{
    for (int64_t k = 0; k < d; k++) gradient[k] = sums[k] - sums[d] * x[k];
}

/* A task of mrc_parallel_for: converts PART_ROWS rows of sums to gradients. */
static void take_gradients(void *argument, int64_t part, int worker)
{
    const gradient_job *job = argument;
    int64_t d = job->x->cols, first = part * PART_ROWS, end = mrc_min(first + PART_ROWS, job->x->rows);
    double *x = job->rows + worker * (d + 1);
    for (int64_t i = first; i < end; i++) {
        const double *sums = mrc_row(&job->sums, i);
        double *to = (double *)mrc_row(job->gradients, i) + job->first_output * d;
        for (int64_t k = 0; k < job->outputs * d && job->norm_1; k++) to[k] = -sums[k];
        if (job->norm_1) continue;
        load_centered(job, job->x, i, x);
        for (int64_t l = 0; l < job->outputs; l++) take_gradient(d, sums + l * (d + 1), x, to + l * d);
    }
}

static int64_t parts_of(int64_t rows)
{
    return (rows + PART_ROWS - 1) / PART_ROWS;
}

/* Adds to `sums` the products over rows first .. first + rows - 1 of the centers, some of them at a time. In norm 1 all
   of them are processed at once, because kernel_signs overwrites its output. */
static mercer_status add_centers(mrc_backend *backend, gradient_job *job, int64_t first, int64_t rows,
                                 const mercer_matrix *sums)
{
    mercer_matrix weights = job->weights;
    mercer_status status = MERCER_OK;
    for (int64_t done = 0; done < rows && status == MERCER_OK; done += job->most) {
        int64_t some = mrc_min(job->most, rows - done);
        job->first_center = first + done;
        job->weights = mrc_rows(&weights, 0, some);
        mercer_matrix centers = mrc_rows(job->sum->z, first + done, some);
        mrc_parallel_for(backend->context->threads, parts_of(some), fill_weights, job);
        mrc_pair pair = {.kernel = job->slope, .x = job->x, .z = &centers};
        pair.origin = job->norm_1 ? NULL : job->sum->origin;
        status = job->norm_1 ? backend->ops->kernel_signs(backend, &pair, &job->weights, sums)
                             : backend->ops->kernel_matmul(backend, &pair, &job->weights, sums, done > 0);
    }
    job->weights = weights;
    return status;
}

/* Computes the sums over the centers of all shards into the first rows of job->sums. */
static mercer_status sum_shards(mrc_backend *backend, gradient_job *job)
{
    const mrc_expansion *sum = job->sum;
    mrc_shards shards = shards_of(sum);
    mercer_matrix *parts;
    int64_t m = job->x->rows, first, rows;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &parts, shards.local, sizeof *parts, "the shards' parts"));
    memset(job->sums.data, 0, (size_t)(job->sums.rows * job->sums.cols) * sizeof(double));
    for (int i = 0; i < shards.local; i++) {
        parts[i] = mrc_rows(&job->sums, i * m, m);
        find_shard(sum, shards, i, &first, &rows);
        MRC_TRY(add_centers(backend, job, first, rows, &parts[i]));
    }
    return sum->comm ? mrc_comm_sum(sum->comm, shards, parts, NULL) : MERCER_OK;
}

/* Computes the gradients of all outputs, some at a time, at the rows of job->x. */
static mercer_status all_outputs(mrc_backend *backend, gradient_job *job, double *weights, double *sums)
{
    int64_t c = job->alpha->cols, here = shards_of(job->sum).local;
    int64_t centers = mrc_min(job->most, job->sum->z->rows);
    for (job->first_output = 0; job->first_output < c; job->first_output += job->at_once) {
        job->outputs = mrc_min(job->at_once, c - job->first_output);
        job->weights = mrc_view(weights, centers, job->outputs * job->weight_columns, MERCER_F64);
        job->sums = mrc_view(sums, here * job->x->rows, job->outputs * job->sum_columns, MERCER_F64);
        MRC_TRY(sum_shards(backend, job));
        mrc_parallel_for(backend->context->threads, parts_of(job->x->rows), take_gradients, job);
    }
    return MERCER_OK;
}

/* Computes the gradients at all rows of x, in blocks of rows. Allocates the buffers. The number of outputs at a time
   depends on all shards and all p centers. It is therefore the same on all ranks, which must make the same
   exchanges. */
static mercer_status find_gradients(mrc_backend *backend, gradient_job *job, const mercer_matrix *x,
                                    const mercer_matrix *gradients)
{
    const mrc_expansion *sum = job->sum;
    mrc_shards shards = shards_of(sum);
    int64_t p = sum->comm ? sum->total : sum->z->rows, here = mrc_max(1, sum->z->rows), size = sizeof(double);
    int64_t row = mrc_max(1, job->sum_columns * size);
    int64_t rows = rows_at_once(sum, x->rows, row);
    int64_t in_sums = rows * shards.all * job->sum_columns,
            in_weights = (job->norm_1 ? p : mrc_min(p, BLOCK_ROWS)) * job->weight_columns;
    double *weights, *sums;
    if (x->rows == 0) return MERCER_OK;
    job->at_once =
        mrc_max(1, mrc_min(job->alpha->cols, WEIGHT_BYTES / size / mrc_max(1, mrc_max(in_sums, in_weights))));
    job->most = job->norm_1 ? here : mrc_max(1, WEIGHT_BYTES / row / job->at_once);
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &weights, mrc_min(job->most, here) * job->at_once, job->weight_columns * size,
                            "weights for gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &sums, shards.local * rows * job->at_once, row, "sums for gradients"));
    MRC_TRY(mrc_scope_alloc(&scope, &job->rows, mrc_max(1, backend->context->threads) * (x->cols + 1), size,
                            "rows for gradients"));
    for (int64_t first = 0; first < x->rows; first += rows) {
        int64_t some = mrc_min(rows, x->rows - first);
        mercer_matrix part = mrc_rows(x, first, some), to = mrc_rows(gradients, first, some);
        gradient_job block = *job;
        block.x = &part, block.gradients = &to;
        MRC_TRY(all_outputs(backend, &block, weights, sums));
    }
    return MERCER_OK;
}

mercer_status mrc_gradient_product(mrc_backend *backend, const mrc_expansion *sum, const mercer_matrix *x,
                                   const mercer_matrix *alpha, const mercer_matrix *gradients)
{
    mercer_kernel slope;
    mrc_backend *processor = NULL;
    MRC_TRY(mrc_gradient_slope(backend->context, sum->kernel, &slope));
    gradient_job job = {.sum = sum, .slope = &slope, .alpha = alpha, .norm_1 = mrc_kernel_norm(&slope) == 1};
    job.weight_columns = job.norm_1 ? 1 : x->cols + 1;
    job.sum_columns = job.norm_1 ? x->cols : x->cols + 1;
    if (job.norm_1 && mrc_backend_memory(backend) != MRC_HOST) /* devices do not implement kernel_signs */
        MRC_TRY(mrc_backend_create(&processor, backend->context, "cpu"));
    mercer_status status = find_gradients(processor ? processor : backend, &job, x, gradients);
    if (processor) mrc_backend_free(processor);
    return status;
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

/* Scratch space of a block of rows: preprocessed samples, and gradients with respect to them and to X. */
typedef struct gradient_block {
    mercer_matrix points, mapped, pulled;
} gradient_block;

/* Stores gradients in the units of the targets; with a target transform (log, rank), in the units of the transformed
   targets. */
static void store_gradient(const mercer_model *model, const mercer_matrix *to, const mercer_matrix *pulled, int64_t d)
{
    bool scaled = mrc_units_given(&model->units);
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t l = 0; l < model->weights.cols; l++)
            for (int64_t k = 0; k < d; k++)
                mrc_store(to, i, l * d + k, mrc_load(pulled, i, l * d + k) * (scaled ? model->units.scale[l] : 1));
}

/* Computes the gradients at a block of rows: with respect to preprocessed samples, then to X. */
static mercer_status one_block(mercer_model *model, const gradient_block *block, const mercer_matrix *to,
                               const mercer_matrix *X)
{
    mrc_expansion sum = mrc_expansion_of(model);
    mercer_matrix points = mrc_rows(&block->points, 0, X->rows), mapped = mrc_rows(&block->mapped, 0, X->rows),
                  pulled = mrc_rows(&block->pulled, 0, X->rows);
    mrc_preprocess_rows(model->preprocess, &points, X);
    MRC_TRY(mrc_check_finite(model->context, "X preprocessed", &points, NULL));
    MRC_TRY(mrc_gradient_product(model->context->backend, &sum, &points, &model->weights, &mapped));
    mrc_preprocess_pull_back(model->preprocess, X, model->weights.cols, &mapped, &pulled);
    store_gradient(model, to, &pulled, X->cols);
    return MERCER_OK;
}

/* Computes the gradients of a single model or member. */
static mercer_status gradient_alone(mercer_model *model, const mercer_matrix *gradients, const mercer_matrix *X)
{
    mercer_context *context = model->context;
    int64_t width = model->centers.cols, c = model->weights.cols, d = X->cols;
    mercer_kernel slope;
    MRC_TRY(mrc_gradient_slope(context, &model->kernel, &slope));
    MRC_TRY(mrc_check_finite(context, "X", X, NULL));
    int64_t row = mrc_max(1, c * mrc_max(width, d)) * (int64_t)sizeof(double);
    int64_t rows = mrc_max(1, mrc_min(mrc_min(BLOCK_ROWS, X->rows), WEIGHT_BYTES / row));
    gradient_block block;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &block.points, rows, width, MERCER_F64, "gradients"));
    MRC_TRY(mrc_scope_view(&scope, &block.mapped, rows, c * width, MERCER_F64, "gradients"));
    MRC_TRY(mrc_scope_view(&scope, &block.pulled, rows, c * d, MERCER_F64, "gradients"));
    for (int64_t done = 0; done < X->rows; done += rows) {
        int64_t some = mrc_min(rows, X->rows - done);
        mercer_matrix x = mrc_rows(X, done, some), to = mrc_rows(gradients, done, some);
        MRC_TRY(one_block(model, &block, &to, &x));
    }
    return MERCER_OK;
}

mercer_status mrc_model_gradient(mercer_model *model, const mercer_matrix *gradients, const mercer_matrix *X)
{
    return model->member_count > 1 ? mrc_model_mean(model, gradient_alone, gradients, X)
                                   : gradient_alone(model, gradients, X);
}
