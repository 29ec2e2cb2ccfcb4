/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernel matrices and products, accurate to the arithmetic of their operands (float, double, exact bytes).
 *
 *   Y = K(X, Z) W:   for each block of up to 8192 rows of X           packed: centered, one type, padded
 *                      for each block of up to 8192 centers           packed the same way
 *                        D = X_b Z_b'                                 one matrix product (cuBLAS)      2 m p d flops
 *                            or sums of |differences|^p               differences.cu                   2 m p d
 *                        K = profile(D)                               in place, profile.cu             memory-bound
 *                        sums += K W_b                                multiply_weights.cu, in double   2 m p c flops
 *                      Y_b = sums
 *
 * kernel_eval stores K instead; kernel_forward does both, for as many columns of K as fit the caller's memory. A user's
 * function is called on the host, block by block. Products of L1 kernels in float and bytes are computed separately
 * (cuda_differences.c). Scratch: one block of products (256 MB in float) and the packed rows, independent of m and p.
 */
#include "backends/cuda/cuda.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "kernels/formulas.h"

/* Rows per block; rows per block for a user's function, whose values are copied to the host; the unit of padding, which
   products of bytes require. */
enum { BLOCK = 8192, CALLBACK_BLOCK = 1024, LANES = 16 };

/* From this many features on, bytes could overflow 32-bit sums; they are multiplied in double, which is also exact. */
enum { MOST_BYTE_FEATURES = 1 << 17 };

/* Most columns of W for the kernel of multiply_weights.cu; more columns use a matrix product. */
enum { MOST_WEIGHED = 64 };

/* The packed rows of one side of a product. norms: squared norms of the packed rows. sums: their sums for bytes, the
   inverses of their scale factors if they are split into halves, otherwise unused. */
typedef struct packed {
    mercer_matrix points; /* the unpacked rows, on the device */
    void *rows;
    double *norms, *sums;
} packed;

typedef struct job {
    mrc_backend *backend;
    const mrc_pair *pair;
    mrc_cuda_arithmetic arithmetic;
    bool direct;       /* whether dots are sums of |differences|^norm */
    double norm;       /* norm p of the kernel's distance */
    mercer_dtype real; /* dtype of kernel values: f32 or f64 */
    int64_t block;     /* rows of X, and centers, per block */
    int64_t width;     /* padded number of features */
    double *origin;    /* (d) on the device, or NULL */
    mercer_matrix x, z, w, sums;
    mercer_matrix staged; /* (block, d): device copy of rows of X that are on the host */
    packed px, pz;
    void *dots;                /* (block, block) */
    mercer_matrix space;       /* (block, block): values, if they cannot be stored in dots */
    double *parts;             /* scratch of mrc_launch_multiply_weights */
    mercer_matrix typed, wide; /* (block, c): weights and products in the dtype of values, if c > MOST_WEIGHED */
    double *host;              /* (block, block) values for a user's function, otherwise NULL */
    double *host_norms;        /* (2 block): squared norms of the rows of X, of Z */
} job;

/* Returns the bytes of a packed element. A split row has two halves per element, as many bytes as a float. */
static int64_t element_bytes(mrc_cuda_arithmetic arithmetic)
{
    return arithmetic == MRC_CUDA_F64 ? 8 : arithmetic == MRC_CUDA_F32 ? 4 : 1;
}

/* ---- Setup --------------------------------------------------------------------------------------------------- */

/* Allocates scratch for `rows` packed rows of one side; every block uses the same scratch. */
static mercer_status make_packed(job *self, packed *out, int64_t rows)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(mrc_cuda_push(backend, &out->rows, rows * self->width * element_bytes(self->arithmetic)));
    MRC_TRY(mrc_cuda_push(backend, &out->norms, rows * 8));
    return mrc_cuda_push(backend, &out->sums, rows * 8);
}

/* The product of bytes works on multiples of 16 rows, so the rows after the last one must be initialized. */
static mercer_status clear_packed(job *self, const packed *out, int64_t rows)
{
    if (self->arithmetic != MRC_CUDA_BYTES) return MERCER_OK;
    mercer_matrix view = mrc_view(out->rows, rows, self->width, MERCER_U8);
    view.memory = MRC_CUDA;
    return mrc_cuda_clear(self->backend, &view);
}

/* Sets the origin for kernels of the L2 distance: that of the pair, otherwise the mean of Z. Bytes, inner products and
   differences need no origin. */
static mercer_status find_origin(job *self)
{
    if (mrc_kernel_argument(self->pair->kernel) != MRC_ON_DISTANCE || self->arithmetic == MRC_CUDA_BYTES ||
        self->z.cols == 0)
        return MERCER_OK;
    if (!self->pair->origin) return mrc_cuda_device_mean(self->backend, &self->z, &self->origin);
    return mrc_cuda_upload(self->backend, &self->origin, self->pair->origin, self->z.cols * 8);
}

/* Chooses the arithmetic, copies Z and W to the device and allocates scratch for one block. The dtype of kernel values
   follows from x, z, w (unless NULL) and out. scope owns the host memory for a user's function; it may be NULL for
   other kernels. Kernel values overwrite the products, unless values and products differ in element size or a user's
   function needs the values in double. */
static mercer_status prepare_product(job *self, mrc_backend *backend, mrc_scope *scope, const mrc_pair *pair,
                                     const mercer_matrix *w, const mercer_matrix *out)
{
    *self = (job){.backend = backend, .pair = pair};
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    self->real = mrc_value_dtype(pair->x, pair->z, w, out);
    self->direct = mrc_kernel_argument(pair->kernel) == MRC_ON_DIFFERENCES;
    self->norm = mrc_kernel_norm(pair->kernel);
    bool bytes = pair->x->dtype == MERCER_U8 && pair->z->dtype == MERCER_U8 && (!self->direct || self->norm == 1);
    self->arithmetic = bytes && pair->x->cols < MOST_BYTE_FEATURES ? MRC_CUDA_BYTES
                       : bytes || self->real == MERCER_F64         ? MRC_CUDA_F64
                                                                   : MRC_CUDA_F32;
    self->width = mrc_round_up(mrc_max(pair->x->cols, 1), LANES);
    self->block = mrc_kernel_is_callback(pair->kernel) ? CALLBACK_BLOCK : BLOCK;
    self->x = *pair->x;
    if (self->x.memory == MRC_HOST)
        MRC_TRY(
            mrc_cuda_scratch(backend, &self->staged, mrc_min(self->x.rows, self->block), self->x.cols, self->x.dtype));
    MRC_TRY(mrc_cuda_read(backend, pair->z, &self->z));
    if (w) MRC_TRY(mrc_cuda_read(backend, w, &self->w));
    MRC_TRY(find_origin(self));
    int64_t rows = mrc_round_up(mrc_min(self->x.rows, self->block), LANES),
            cols = mrc_round_up(mrc_min(self->z.rows, self->block), LANES);
    MRC_TRY(make_packed(self, &self->px, rows));
    MRC_TRY(make_packed(self, &self->pz, cols));
    int64_t dot_bytes = self->arithmetic == MRC_CUDA_F64 ? 8 : 4;
    MRC_TRY(mrc_cuda_push(backend, &self->dots, rows * cols * dot_bytes));
    if (mrc_kernel_is_callback(pair->kernel) || dot_bytes != mrc_dtype_size(self->real))
        MRC_TRY(mrc_cuda_scratch(backend, &self->space, rows, cols,
                                 mrc_kernel_is_callback(pair->kernel) ? MERCER_F64 : self->real));
    int64_t side = mrc_max(rows, cols);
    if (mrc_kernel_is_callback(pair->kernel))
        MRC_TRY(mrc_scope_alloc(scope, &self->host, side * side + 2 * side, sizeof *self->host,
                                "arguments of the callback kernel"));
    if (self->host) self->host_norms = self->host + side * side;
    if (!w) return MERCER_OK;
    if (w->cols > MOST_WEIGHED) {
        mercer_dtype values = self->space.data ? self->space.dtype : self->real;
        MRC_TRY(mrc_cuda_scratch(backend, &self->typed, cols, w->cols, values));
        MRC_TRY(mrc_cuda_scratch(backend, &self->wide, rows, w->cols, values));
        return mrc_cuda_scratch(backend, &self->sums, rows, w->cols, MERCER_F64);
    }
    MRC_TRY(mrc_cuda_push(backend, &self->parts, mrc_multiply_weights_groups(cols) * rows * self->w.cols * 8));
    return mrc_cuda_scratch(backend, &self->sums, rows, self->w.cols, MERCER_F64);
}

/* Returns whether rows are packed as two halves. Rows for sums of differences never are, because the sums need the
   coordinates. */
static int splits(const job *self)
{
    return !self->direct && mrc_splits(self->arithmetic, self->width);
}

/* ---- One block ----------------------------------------------------------------------------------------------- */

/* Packs rows first .. first + rows - 1 of a side; rows on the host go through the staging buffer. out->points refers to
   the same rows unpacked, for pairs that are recomputed. */
static mercer_status pack_points(job *self, packed *out, const mercer_matrix *points, int64_t first, int64_t rows)
{
    out->points = mrc_rows(points, first, rows);
    if (points->memory == MRC_HOST) {
        mercer_matrix to = mrc_rows(&self->staged, 0, rows);
        MRC_TRY(mrc_cuda_copy(self->backend, &to, &out->points));
        out->points = to;
    }
    MRC_TRY(clear_packed(self, out, mrc_round_up(rows, LANES)));
    MRC_CUDA_TRY(self->backend,
                 mrc_launch_pack(mrc_cuda_of(self->backend)->stream, self->arithmetic, splits(self), out->points,
                                 self->origin, self->width, out->rows, out->norms, out->sums));
    return MERCER_OK;
}

/* Replaces the arguments in values by the results of the user's function, on the host. */
static mercer_status call_back(job *self, const mercer_matrix *values)
{
    const mercer_kernel *kernel = self->pair->kernel;
    mercer_matrix host = mrc_view(self->host, values->rows, values->cols, MERCER_F64);
    bool inner = mrc_kernel_argument(kernel) == MRC_ON_INNER;
    double *x_norms = self->host_norms, *z_norms = self->host_norms + values->rows;
    MRC_TRY(mrc_cuda_copy(self->backend, &host, values));
    if (inner) MRC_TRY(mrc_cuda_row_sqnorms(self->backend, &self->px.points, x_norms));
    if (inner) MRC_TRY(mrc_cuda_row_sqnorms(self->backend, &self->pz.points, z_norms));
    mercer_kernel_block block = {.struct_size = sizeof block,
                                 .rows = host.rows,
                                 .cols = host.cols,
                                 .ld = host.ld,
                                 .values = self->host,
                                 .x_sqnorms = inner ? x_norms : NULL,
                                 .z_sqnorms = inner ? z_norms : NULL};
    if (kernel->callback(kernel->callback_user, &block))
        return mrc_fail(self->backend->context, MERCER_ERROR_CALLBACK, "kernel: the callback reported failure");
    return mrc_cuda_copy(self->backend, values, &host);
}

/* Computes the sums of |differences|^norm of the packed rows instead of their products. */
static mercer_status add_differences(job *self)
{
    mrc_differences sums = {.arithmetic = self->arithmetic,
                            .power = self->norm,
                            .rows = self->px.points.rows,
                            .cols = self->pz.points.rows,
                            .width = self->width,
                            .a = self->px.rows,
                            .b = self->pz.rows,
                            .sums = self->dots,
                            .ld = mrc_round_up(self->pz.points.rows, LANES)};
    MRC_CUDA_TRY(self->backend, mrc_launch_differences(mrc_cuda_of(self->backend)->stream, &sums));
    return MERCER_OK;
}

/* Computes the products of the packed rows. *out describes them for the profile kernels. */
static mercer_status multiply_points(job *self, mrc_profile_job *out)
{
    const mercer_kernel *kernel = self->pair->kernel;
    int64_t rows = self->px.points.rows, cols = self->pz.points.rows, ld = mrc_round_up(cols, LANES);
    bool bytes = self->arithmetic == MRC_CUDA_BYTES;
    *out = (mrc_profile_job){.kernel = *kernel,
                             .on_distance = mrc_kernel_is_stationary(kernel),
                             .direct = self->direct,
                             .split = splits(self),
                             .norm = self->norm,
                             .angular = mrc_kernel_is_angular(kernel),
                             .arithmetic = self->arithmetic,
                             .x = self->px.points,
                             .z = self->pz.points,
                             .x_norms = self->px.norms,
                             .z_norms = self->pz.norms,
                             .x_sums = self->px.sums,
                             .z_sums = self->pz.sums,
                             .dots = self->dots,
                             .dots_ld = ld};
    if (self->direct) return add_differences(self);
    return mrc_cuda_dots(self->backend, self->arithmetic, bytes ? mrc_round_up(rows, LANES) : rows, bytes ? ld : cols,
                         self->width, self->px.rows, self->pz.rows, self->dots, ld);
}

/* Computes the kernel values of the packed rows of X and the packed centers. *values becomes a view of them. */
static mercer_status evaluate_block(job *self, mercer_matrix *values)
{
    mrc_profile_job profile;
    MRC_TRY(multiply_points(self, &profile));
    *values = mrc_view(self->dots, self->px.points.rows, self->pz.points.rows, self->real);
    if (self->space.data) values->data = self->space.data, values->dtype = self->space.dtype;
    values->ld = profile.dots_ld;
    values->memory = MRC_CUDA;
    profile.values = *values;
    MRC_CUDA_TRY(self->backend, mrc_launch_profile(mrc_cuda_of(self->backend)->stream, &profile));
    return mrc_kernel_is_callback(self->pair->kernel) ? call_back(self, values) : MERCER_OK;
}

/* sums += K W. For many columns this is a matrix product, which sums in the dtype of K within a block. */
static mercer_status multiply_weights(job *self, const mercer_matrix *values, const mercer_matrix *w,
                                      const mercer_matrix *sums)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    if (!self->wide.data) {
        MRC_CUDA_TRY(backend, mrc_launch_multiply_weights(stream, *values, *w, self->parts, sums->data));
        return MERCER_OK;
    }
    mercer_matrix typed = mrc_rows(&self->typed, 0, w->rows), out = mrc_rows(&self->wide, 0, values->rows);
    MRC_TRY(mrc_cuda_copy(backend, &typed, w));
    mrc_gemm product = {.alpha = 1, .a = values, .b = &typed, .c = &out};
    MRC_TRY(mrc_cuda_gemm(backend, &product));
    MRC_CUDA_TRY(backend, mrc_launch_axpby(stream, 1, out, 1, *sums));
    return MERCER_OK;
}

/* ---- All blocks ---------------------------------------------------------------------------------------------- */

/* Computes the product block by block. k receives columns 0 .. k->cols - 1 of K and may have no columns. y: (m, c) on
   the device, or NULL. */
static mercer_status run_product(job *self, const mercer_matrix *k, const mercer_matrix *y, bool add)
{
    mrc_backend *backend = self->backend;
    cudaStream_t stream = mrc_cuda_of(backend)->stream;
    for (int64_t i = 0; i < self->x.rows; i += self->block) {
        int64_t rows = mrc_min(self->block, self->x.rows - i);
        mercer_matrix sums = mrc_rows(&self->sums, 0, rows);
        MRC_TRY(pack_points(self, &self->px, &self->x, i, rows));
        if (y) MRC_TRY(mrc_cuda_clear(backend, &sums));
        for (int64_t j = 0; j < self->z.rows; j += self->block) {
            int64_t cols = mrc_min(self->block, self->z.rows - j), stored = mrc_max(0, mrc_min(cols, k->cols - j));
            mercer_matrix values;
            MRC_TRY(pack_points(self, &self->pz, &self->z, j, cols));
            MRC_TRY(evaluate_block(self, &values));
            if (stored > 0) {
                mercer_matrix to = mrc_block(k, i, j, rows, stored), from = mrc_columns(&values, 0, stored);
                MRC_TRY(mrc_cuda_copy(backend, &to, &from));
            }
            if (!y) continue;
            mercer_matrix weights = mrc_rows(&self->w, j, cols);
            MRC_TRY(multiply_weights(self, &values, &weights, &sums));
        }
        if (!y) continue;
        mercer_matrix out = mrc_rows(y, i, rows);
        MRC_CUDA_TRY(backend, mrc_launch_store_sums(stream, sums.data, out, add));
    }
    return MERCER_OK;
}

/* Computes Y = K W, or Y += K W if add, and stores the first columns of K in k, which may have no columns. */
static mercer_status multiply_block(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *y, bool add, const mercer_matrix *k)
{
    job self;
    mercer_matrix out;
    MRC_CUDA_SCRATCH(backend);
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(prepare_product(&self, backend, &scope, pair, w, y));
    MRC_TRY(mrc_cuda_write(backend, y, add, &out));
    MRC_TRY(run_product(&self, k, &out, add));
    return mrc_cuda_write_back(backend, y, &out);
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

/* Half precision is tried first, then the fused kernel for differences. Both decline operands that they do not support,
   and the product by blocks accepts everything. */
mercer_status mrc_cuda_kernel_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                     const mercer_matrix *y, bool add)
{
    static const mercer_matrix nothing = {0};
    if (y->rows == 0 || y->cols == 0) return MERCER_OK;
    if (pair->z->rows == 0) return add ? MERCER_OK : mrc_cuda_clear(backend, y);
    if (mrc_cuda_uses_half(pair, w, y)) return mrc_cuda_half_matmul(backend, pair, w, y, add);
    if (mrc_cuda_uses_differences(pair, w, y)) return mrc_cuda_multiply_differences(backend, pair, w, y, add, &nothing);
    return multiply_block(backend, pair, w, y, add, &nothing);
}

mercer_status mrc_cuda_kernel_eval(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *k)
{
    job self;
    if (k->rows == 0 || k->cols == 0) return MERCER_OK;
    MRC_CUDA_SCRATCH(backend);
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(prepare_product(&self, backend, &scope, pair, NULL, k));
    return run_product(&self, k, NULL, false);
}

/* Finds the nearest rows block by block. The running minimum of a block of rows stays on the device until all centers
   have been compared. */
static mercer_status search_rows(job *self, int32_t *nearest, double *sqdistances)
{
    mrc_backend *backend = self->backend;
    void *numbers, *best;
    MRC_TRY(mrc_cuda_push(backend, &numbers, self->block * (int64_t)sizeof *nearest));
    MRC_TRY(mrc_cuda_push(backend, &best, self->block * (int64_t)sizeof *sqdistances));
    for (int64_t i = 0; i < self->x.rows; i += self->block) {
        int64_t rows = mrc_min(self->block, self->x.rows - i);
        MRC_TRY(pack_points(self, &self->px, &self->x, i, rows));
        for (int64_t j = 0; j < self->z.rows; j += self->block) {
            mrc_profile_job profile;
            MRC_TRY(pack_points(self, &self->pz, &self->z, j, mrc_min(self->block, self->z.rows - j)));
            MRC_TRY(multiply_points(self, &profile));
            MRC_CUDA_TRY(backend, mrc_launch_nearest(mrc_cuda_of(backend)->stream, &profile, j, j == 0, numbers, best));
        }
        MRC_TRY(mrc_cuda_download(backend, nearest + i, numbers, rows * (int64_t)sizeof *nearest));
        MRC_TRY(mrc_cuda_download(backend, sqdistances + i, best, rows * (int64_t)sizeof *sqdistances));
    }
    return MERCER_OK;
}

mercer_status mrc_cuda_nearest_rows(mrc_backend *backend, const mrc_search *search, int32_t *nearest,
                                    double *sqdistances)
{
    /* A placeholder that selects the norm; this kernel function is never evaluated. */
    const double norm = search->norm > 0 ? search->norm : 2;
    const mercer_kernel any = {.id = MRC_KERNEL_LPQ, .p = norm, .q = norm, .bandwidth = 1};
    static const mercer_matrix in_double = {.dtype = MERCER_F64};
    mrc_pair pair = {.kernel = &any, .x = search->x, .z = search->z, .origin = search->origin};
    if (search->x->rows == 0) return MERCER_OK;
    job self;
    MRC_CUDA_SCRATCH(backend);
    MRC_TRY(prepare_product(&self, backend, NULL, &pair, NULL, search->wide ? &in_double : NULL));
    return search_rows(&self, nearest, sqdistances);
}

/* Returns a view of the saved columns of K, in the dtype of the weights they are multiplied with. */
static mercer_matrix cached_view(const mrc_pair *pair, const mercer_matrix *weights, const mrc_cached_block *cached,
                                 int64_t columns)
{
    mercer_matrix view = mrc_view(cached->memory, pair->x->rows, columns, weights->dtype);
    view.memory = columns > 0 ? mrc_cuda_memory_of(cached->memory) : MRC_CUDA;
    return view;
}

/* Half-precision products save columns as opaque halves. Other products save as many columns as fit, in the dtype of W,
   and kernel_transpose multiplies these columns with gemm. */
mercer_status mrc_cuda_kernel_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                      const mercer_matrix *f, mrc_cached_block *cached)
{
    int64_t column_bytes = pair->x->rows * mrc_dtype_size(w->dtype);
    int64_t columns = column_bytes ? mrc_min(cached->bytes / column_bytes, pair->z->rows) : 0;
    cached->columns = 0, cached->opaque = false;
    if (f->rows == 0 || pair->z->rows == 0 || f->cols == 0) return mrc_cuda_kernel_matmul(backend, pair, w, f, false);
    if (mrc_cuda_uses_half(pair, w, f)) return mrc_cuda_half_forward(backend, pair, w, f, cached);
    mercer_matrix k = cached_view(pair, w, cached, columns);
    bool differences = mrc_cuda_uses_differences(pair, w, f) && k.dtype == MERCER_F32 && k.memory == MRC_CUDA;
    MRC_TRY(differences ? mrc_cuda_multiply_differences(backend, pair, w, f, false, &k)
                        : multiply_block(backend, pair, w, f, false, &k));
    cached->columns = columns;
    return MERCER_OK;
}

mercer_status mrc_cuda_kernel_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                        const mercer_matrix *h, const mrc_cached_block *cached)
{
    int64_t columns = cached->columns;
    mercer_matrix top = mrc_rows(h, 0, columns);
    if (columns > 0 && cached->opaque) {
        MRC_TRY(mrc_cuda_half_transpose(backend, pair, g, &top, cached));
    } else if (columns > 0) {
        mercer_matrix k = cached_view(pair, g, cached, columns);
        mrc_gemm product = {.transpose_a = true, .alpha = 1, .a = &k, .b = g, .c = &top};
        MRC_TRY(mrc_cuda_gemm(backend, &product));
    }
    if (columns == h->rows) return MERCER_OK;
    mercer_matrix rest = mrc_rows(pair->z, columns, pair->z->rows - columns),
                  bottom = mrc_rows(h, columns, h->rows - columns);
    /* The columns that were not saved: K(Z, X) G with the sides, and their packed copies, exchanged. */
    mrc_pair swapped = {.kernel = pair->kernel,
                        .x = &rest,
                        .z = pair->x,
                        .origin = pair->origin,
                        .packed_x = pair->packed_z,
                        .packed_z = pair->packed_x,
                        .first_x = pair->first_z + columns,
                        .first_z = pair->first_x,
                        .half = pair->half};
    return mrc_cuda_kernel_matmul(backend, &swapped, g, &bottom, false);
}
