/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the speed of a machine for products of a given shape.
 *
 *   product   Y = K(X, Z) W through the backend's table, operands in the backend's memory
 *   plain     X Z' by gemm_baseline, in the type of the points or in half precision; by gemm, in float or double, if
 *             the backend does not have gemm_baseline
 *   copies    X from host memory to the backend's memory, as for a batch, and back
 *
 * Each time is the best of RUNS runs after a warm-up run. Memory: the operands, and one (m, p) matrix for the plain
 * product.
 */
#include "backends/backend.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <math.h>

/* PATTERN_ROWS random rows are generated on the host and repeated to fill the operands. */
enum { RUNS = 5, PATTERN_ROWS = 1024 };

typedef struct measuring {
    mrc_backend *backend;
    mrc_scope *scope; /* owner of all allocations, except products */
    mercer_shape shape;
    const mercer_kernel *kernel;
    mercer_matrix host;       /* (pattern, d): random points */
    mercer_matrix x, z, w, y; /* operands */
    mercer_matrix a, b;       /* X and Z converted to the type of the plain product; data is NULL if not necessary */
    void *products;           /* (m, p): result of the plain product */
    mercer_matrix batch;      /* (m, d) in host memory */
} measuring;

typedef mercer_status (*measured_work)(measuring *self);

/* Measure the seconds of RUNS runs after one warm-up run; sort them in ascending order. */
static mercer_status time_runs(measuring *self, measured_work work, double seconds[RUNS])
{
    mrc_backend *backend = self->backend;
    for (int run = -1; run < RUNS; run++) {
        double start = mrc_seconds(), taken;
        MRC_TRY(work(self));
        MRC_TRY(backend->ops->sync(backend));
        taken = mrc_seconds() - start;
        int place = run;
        for (; place > 0 && seconds[place - 1] > taken; place--) seconds[place] = seconds[place - 1];
        if (run >= 0) seconds[place] = taken;
    }
    return MERCER_OK;
}

/* Set *best to the seconds of the fastest run. */
static mercer_status time_best(measuring *self, measured_work work, double *best)
{
    double seconds[RUNS];
    MRC_TRY(time_runs(self, work, seconds));
    *best = seconds[0];
    return MERCER_OK;
}

/* ---- Operands ------------------------------------------------------------------------------------------------ */

/* Fill `to` with the rows of the pattern, repeated. Both matrices have the same number of columns. */
static mercer_status repeat(measuring *self, const mercer_matrix *to, const mercer_matrix *pattern)
{
    for (int64_t first = 0; first < to->rows; first += pattern->rows) {
        int64_t rows = mrc_min(pattern->rows, to->rows - first);
        mercer_matrix part = mrc_rows(to, first, rows), from = mrc_rows(pattern, 0, rows);
        MRC_TRY(self->backend->ops->copy(self->backend, &part, &from));
    }
    return MERCER_OK;
}

/* Fill contiguous points with random bytes, or with floats in [-1, 1) that are exact multiples of 2^-23. */
static void fill_pattern(const mercer_matrix *points)
{
    mrc_rng rng = {1, 1};
    for (int64_t i = 0; i < points->rows * points->cols; i++) {
        uint64_t bits = mrc_random_u64(rng, (uint64_t)i);
        if (points->dtype == MERCER_U8)
            ((uint8_t *)points->data)[i] = (uint8_t)bits;
        else
            ((float *)points->data)[i] = (float)(bits >> 40) * 0x1p-23F - 1;
    }
}

/* Allocate and fill X (m, d), Z (p, d), W (p, c) and Y (m, c) in the memory of the backend. The pattern is as wide as
   the wider of d and c, and points and weights are views of its first columns. The scope owns everything. */
static mercer_status make_operands(measuring *self)
{
    mrc_backend *backend = self->backend;
    mrc_scope *scope = self->scope;
    const mercer_shape *shape = &self->shape;
    int64_t widest = mrc_max(shape->features, shape->outputs);
    mercer_dtype pattern = shape->points == MERCER_U8 ? MERCER_U8 : MERCER_F32;
    self->host = mrc_view(NULL, PATTERN_ROWS, widest, pattern);
    MRC_TRY(mrc_scope_alloc(scope, &self->host.data, PATTERN_ROWS * widest, mrc_dtype_size(pattern), "points"));
    fill_pattern(&self->host);
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->x, shape->samples, shape->features, shape->points, "X"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->z, shape->centers, shape->features, shape->points, "Z"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->w, shape->centers, shape->outputs, shape->weights, "W"));
    MRC_TRY(mrc_scope_matrix(scope, backend, &self->y, shape->samples, shape->outputs, shape->weights, "Y"));
    mercer_matrix points = mrc_columns(&self->host, 0, shape->features),
                  weights = mrc_columns(&self->host, 0, shape->outputs);
    MRC_TRY(repeat(self, &self->x, &points));
    mercer_matrix shifted = mrc_rows(&points, 1, PATTERN_ROWS - 1); /* by one row, so that X and Z differ row by row */
    MRC_TRY(repeat(self, &self->z, &shifted));
    return repeat(self, &self->w, &weights);
}

/* ---- Measurements -------------------------------------------------------------------------------------------- */

static bool is_fast(const measuring *self)
{
    return self->backend->context->arithmetic == MRC_FAST;
}

static mercer_status multiply_shape(measuring *self)
{
    mrc_pair pair = {.kernel = self->kernel, .x = &self->x, .z = &self->z, .half = is_fast(self)};
    return self->backend->ops->kernel_matmul(self->backend, &pair, &self->w, &self->y, false);
}

/* Compute X Z' (m, p) into self->products. Points that were converted (a, b) take precedence over the originals. */
static mercer_status multiply_plainly(measuring *self)
{
    mrc_backend *backend = self->backend;
    const mercer_matrix *x = self->a.data ? &self->a : &self->x, *z = self->b.data ? &self->b : &self->z;
    if (backend->ops->gemm_baseline) return backend->ops->gemm_baseline(backend, x, z, self->products);
    mercer_matrix out = mrc_view(self->products, x->rows, z->rows, x->dtype);
    mrc_gemm job = {.transpose_b = true, .alpha = 1, .a = x, .b = z, .c = &out};
    return backend->ops->gemm(backend, &job);
}

/* Measure X Z' without a kernel function: with the backend's own baseline in the type of the points, or in half
   precision if the context uses fast arithmetic; otherwise with gemm, which supports only float and double. Products of
   bytes are 32-bit integers. The caller releases self->products, also after an error. *seconds is 0 if the vendor's
   library rejects the sizes. */
static mercer_status measure_gemm_baseline(measuring *self, double *seconds)
{
    mrc_backend *backend = self->backend;
    const mercer_shape *shape = &self->shape;
    bool own = backend->ops->gemm_baseline != NULL;
    mercer_dtype dtype = shape->points;
    if (own && dtype == MERCER_F32 && is_fast(self)) dtype = MERCER_F16;
    if (!own && dtype != MERCER_F64) dtype = MERCER_F32;
    if (dtype != shape->points) {
        MRC_TRY(mrc_scope_matrix(self->scope, backend, &self->a, shape->samples, shape->features, dtype, "X"));
        MRC_TRY(mrc_scope_matrix(self->scope, backend, &self->b, shape->centers, shape->features, dtype, "Z"));
        MRC_TRY(backend->ops->copy(backend, &self->a, &self->x));
        MRC_TRY(backend->ops->copy(backend, &self->b, &self->z));
    }
    int64_t elements, bytes, size = dtype == MERCER_U8 ? 4 : mrc_dtype_size(dtype);
    if (!mrc_multiply(shape->samples, shape->centers, &elements) || !mrc_multiply(elements, size, &bytes))
        return mrc_fail(backend->context, MERCER_ERROR_MEMORY, "shape: X Z' exceeds the address space");
    MRC_TRY(backend->ops->alloc(backend, &self->products, bytes, "X Z'"));
    mercer_status status = time_best(self, multiply_plainly, seconds);
    if (status == MERCER_ERROR_UNSUPPORTED) *seconds = 0; /* the library does not support products of these sizes */
    return status == MERCER_ERROR_UNSUPPORTED ? MERCER_OK : status;
}

static mercer_status copy_in(measuring *self)
{
    mercer_matrix staged;
    return self->backend->ops->stage(self->backend, &self->batch, &staged);
}

static mercer_status copy_out(measuring *self)
{
    return self->backend->ops->copy(self->backend, &self->batch, &self->x);
}

/* Measure bytes per second to and from the device. In host memory nothing is copied, and both speeds stay 0. */
static mercer_status measure_copies(measuring *self, mercer_speed *out)
{
    double bytes = (double)(self->x.rows * self->x.cols * mrc_dtype_size(self->x.dtype)), in, back;
    if (self->x.memory == MRC_HOST) return MERCER_OK;
    self->batch = mrc_view(NULL, self->x.rows, self->x.cols, self->x.dtype);
    MRC_TRY(mrc_scope_alloc(self->scope, &self->batch.data, self->x.rows * self->x.cols, mrc_dtype_size(self->x.dtype),
                            "a batch"));
    MRC_TRY(time_best(self, copy_out, &back));
    MRC_TRY(time_best(self, copy_in, &in));
    out->to_device = bytes / in, out->from_device = bytes / back;
    return MERCER_OK;
}

mercer_status mrc_measure_speed(mrc_backend *backend, mercer_speed *out, const mercer_kernel *kernel,
                                const mercer_shape *shape)
{
    MRC_SCOPE(scope, backend->context);
    measuring self = {.backend = backend, .scope = &scope, .kernel = kernel, .shape = *shape};
    double seconds[RUNS] = {0};
    MRC_TRY(make_operands(&self));
    MRC_TRY(time_runs(&self, multiply_shape, seconds));
    out->product = seconds[0], out->median = seconds[RUNS / 2];
    mercer_status status = measure_gemm_baseline(&self, &out->plain);
    backend->ops->free(backend, self.products);
    MRC_TRY(status);
    return measure_copies(&self, out);
}

/* ---- Rate for plans ---------------------------------------------------------------------------------------------- */

/* Rows of the square matrices, and number of timed products. A product has 2 RATE_SIZE^3 flops, about 0.1 G. */
enum { RATE_SIZE = 384, RATE_REPEATS = 3 };

/* Take the best of RATE_REPEATS products of two square matrices. */
mercer_status mrc_measure_rate(mercer_context *context, double *flops_per_second)
{
    mrc_backend *backend = context->backend;
    mercer_matrix host, a, b, c;
    double least = (double)INFINITY;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_view(&scope, &host, RATE_SIZE, RATE_SIZE, MERCER_F64, "a measurement"));
    for (int64_t i = 0; i < RATE_SIZE; i++)
        for (int64_t j = 0; j < RATE_SIZE; j++) mrc_store(&host, i, j, 1.0 / (double)(1 + i + j));
    mercer_matrix *const all[] = {&a, &b, &c};
    for (int k = 0; k < 3; k++) {
        MRC_TRY(mrc_scope_matrix(&scope, backend, all[k], RATE_SIZE, RATE_SIZE, MERCER_F64, "a measurement"));
        MRC_TRY(backend->ops->copy(backend, all[k], &host));
    }
    for (int k = 0; k < RATE_REPEATS; k++) {
        mrc_gemm job = {.alpha = 1, .a = &a, .b = &b, .c = &c};
        double start = mrc_seconds();
        MRC_TRY(backend->ops->gemm(backend, &job));
        MRC_TRY(backend->ops->copy(backend, &host, &c)); /* copying to the host waits for the device */
        least = fmin(least, mrc_seconds() - start);
    }
    *flops_per_second = 2.0 * RATE_SIZE * RATE_SIZE * RATE_SIZE / fmax(least, 1e-9);
    return MERCER_OK;
}

mrc_machine mrc_machine_of(const mercer_context *context)
{
    mrc_backend *backend = context->backend;
    return (mrc_machine){.backend = backend,
                         .isa = context->isa,
                         .threads = context->threads,
                         .free_memory = backend->ops->free_memory(backend),
                         .arithmetic = context->arithmetic};
}
