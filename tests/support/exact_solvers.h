/* SPDX-License-Identifier: BSD-3-Clause */
/* A small problem, the setup of an exact solver for it, and its solution in long double. */
#ifndef MRC_TESTS_EXACT_SOLVERS_H
#define MRC_TESTS_EXACT_SOLVERS_H

#include "support/check.h"

#include "support/allocator.h"
#include "support/data.h"

#include "solvers/normal/exact_solvers.h"

enum { N = 150, P = 21, D = 3, C = 3, BATCH = 32 };
static const double UNIT = 0x1p-53;

/* ---- A small problem ----------------------------------------------------------------------------------------- */

typedef struct problem {
    mercer_matrix x, y, z; /* (n, D), (n, c), (p, D) */
    double *weights;       /* (n) or NULL */
    double lambda;
    mercer_kernel kernel;
} problem;

typedef mercer_status (*solver_call)(mrc_exact_solver *exact, const mercer_matrix *alpha);

typedef struct sequence {
    const problem *data;
    int64_t at;
    int64_t rows[BATCH];
} sequence;

static inline int restart(void *user, int64_t epoch)
{
    (void)epoch;
    ((sequence *)user)->at = 0;
    return 0;
}

static inline int next(void *user, int64_t most, mercer_batch *batch)
{
    sequence *self = user;
    int64_t count = self->data->x.rows - self->at;
    if (count > most) count = most;
    if (count > BATCH) count = BATCH;
    batch->X = mrc_rows(&self->data->x, self->at, count);
    batch->Y = mrc_rows(&self->data->y, self->at, count);
    batch->weights = self->data->weights ? self->data->weights + self->at : NULL;
    for (int64_t i = 0; i < count; i++) self->rows[i] = self->at + i;
    batch->rows = self->rows;
    self->at += count;
    return 0;
}

static inline problem make_problem(int64_t n, int64_t p, int64_t c, mercer_dtype dtype)
{
    problem out = {
        .x = data_matrix(n, D, 0, dtype), .y = data_matrix(n, c, 0, dtype), .z = data_matrix(p, D, 0, dtype)};
    assert_succeeds(NULL, mercer_kernel_parse(&out.kernel, NULL, "laplace:bandwidth=2"));
    data_fill_normal(&out.x, (mrc_rng){5, 1}, 0, 1);
    data_fill_normal(&out.z, (mrc_rng){5, 2}, 0, 1);
    for (int64_t i = 0; i < n; i++) {
        double a = mrc_load(&out.x, i, 0), b = mrc_load(&out.x, i, 1);
        for (int64_t j = 0; j < c; j++) {
            double noise = 0.2 * mrc_random_normal((mrc_rng){5, 3 + (uint64_t)j}, (uint64_t)i);
            data_store(&out.y, i, j, sin((double)(j + 1) * a) + b + noise);
        }
    }
    return out;
}

static inline void free_problem(problem *data)
{
    free(data->x.data), free(data->y.data), free(data->z.data), free(data->weights);
}

static inline void add_weights(problem *data)
{
    data->weights = malloc((size_t)data->x.rows * sizeof(double));
    for (int64_t i = 0; i < data->x.rows; i++) data->weights[i] = (double)(i % 4);
}

/* ---- Setup of an exact solver ------------------------------------------------------------------------------------ */

typedef struct bench {
    test_allocator counter;
    mercer_context context;
    mrc_backend *backend;
    mrc_comm *comm;
    mrc_centers centers;
    mrc_kernel_blocks passes;
    mrc_sample_stream stream;
    mercer_source source;
    sequence samples;
    mercer_matrix alpha; /* from malloc, not from the counting allocator */
    mrc_exact_solver exact;
} bench;

static const double origin[D] = {0};

static inline void open_bench(bench *self, const problem *data, int ranks, mercer_dtype real, bool cache)
{
    memset(self, 0, sizeof *self);
    self->context =
        (mercer_context){.threads = 2, .isa = mrc_isa_best(), .allocator = *test_allocator_table(&self->counter)};
    mercer_context *context = &self->context;
    assert_succeeds(context, mrc_backend_create(&self->backend, context, "cpu"));
    context->backend = self->backend; /* needed to check the batches of a source */
    assert_succeeds(context, ranks > 1 ? mrc_comm_create_virtual(&self->comm, context, ranks)
                                       : mrc_comm_create_virtual(&self->comm, context, 1));
    assert_succeeds(context, mrc_centers_create(&self->centers, self->backend, self->comm, &data->kernel, &data->z,
                                                data->z.rows, origin, real));
    assert_succeeds(context, mrc_kernel_blocks_create(&self->passes, &self->centers, BATCH, 1 << 20,
                                                      cache ? data->x.rows : 0, self->centers.real));
    self->samples = (sequence){.data = data};
    self->source = (mercer_source){.struct_size = sizeof(mercer_source),
                                   .rows = data->x.rows,
                                   .features = D,
                                   .outputs = data->y.cols,
                                   .dtype = data->x.dtype,
                                   .restart = restart,
                                   .next = next,
                                   .user = &self->samples};
    assert_succeeds(context, mrc_sample_stream_open(&self->stream, context, &self->source, D, data->y.cols));
    self->alpha = data_matrix(data->z.rows, data->y.cols, 0, real);
    self->exact = (mrc_exact_solver){.centers = &self->centers,
                                     .stream = &self->stream,
                                     .kernel_blocks = &self->passes,
                                     .n = data->x.rows,
                                     .c = data->y.cols,
                                     .lambda = data->lambda,
                                     .steps = 200,
                                     .tolerance = 1e-13};
}

static inline void close_bench(bench *self)
{
    free(self->alpha.data);
    mrc_kernel_blocks_destroy(&self->passes);
    mrc_centers_destroy(&self->centers);
    mercer_comm_free(self->comm);
    mrc_backend_free(self->backend);
    assert_that(self->context.bytes_now == 0, "%lld bytes leak", (long long)self->context.bytes_now);
    assert_that(self->counter.live == 0, "%lld blocks leak", (long long)self->counter.live);
}

/* Return alpha as computed by one exact solver, in a new matrix that the caller frees. */
static inline mercer_matrix exact_times(const problem *data, solver_call call, int ranks)
{
    bench self;
    open_bench(&self, data, ranks, MERCER_F64, ranks == 2);
    assert_succeeds(&self.context, call(&self.exact, &self.alpha));
    mercer_matrix alpha = self.alpha;
    self.alpha.data = NULL;
    close_bench(&self);
    return alpha;
}

/* ---- The reference, in long double --------------------------------------------------------------------------- */

typedef struct reference {
    int64_t p, c;
    long double *a;  /* (p, p) Cholesky factor of A */
    mercer_matrix k; /* (n, p) f64 */
    mercer_matrix alpha;
    double condition;
} reference;

static inline mercer_matrix kernel_matrix(const problem *data, const mercer_matrix *x)
{
    mercer_matrix k = data_matrix(x->rows, data->z.rows, 0, MERCER_F64);
    for (int64_t i = 0; i < x->rows; i++) {
        for (int64_t j = 0; j < data->z.rows; j++) {
            double a[D], b[D], value;
            mrc_load_row_f64(x, i, a), mrc_load_row_f64(&data->z, j, b);
            assert_true(mrc_kernel_reference(&data->kernel, D, a, b, &value));
            mrc_store(&k, i, j, value);
        }
    }
    return k;
}

static inline void factor(long double *a, int64_t p)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j <= i; j++) {
            long double sum = a[i * p + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * p + k] * a[j * p + k];
            a[i * p + j] = i == j ? sqrtl(sum) : sum / a[j * p + j];
        }
    }
}

static inline void solve(const long double *l, int64_t p, long double *b)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= l[i * p + k] * b[k];
        b[i] /= l[i * p + i];
    }
    for (int64_t i = p - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < p; k++) b[i] -= l[k * p + i] * b[k];
        b[i] /= l[i * p + i];
    }
}

static inline double weight_of(const problem *data, int64_t i)
{
    return data->weights ? data->weights[i] : 1;
}

/* Write A to self->a; return |A|_F^2. */
static inline long double form_normal(const problem *data, reference *self)
{
    mercer_matrix kz = kernel_matrix(data, &data->z);
    long double norm = 0;
    for (int64_t i = 0; i < self->p; i++) {
        for (int64_t j = 0; j < self->p; j++) {
            long double sum = (long double)data->lambda * mrc_load(&kz, i, j);
            for (int64_t s = 0; s < data->x.rows; s++)
                sum += (long double)weight_of(data, s) * mrc_load(&self->k, s, i) * mrc_load(&self->k, s, j);
            self->a[i * self->p + j] = sum;
            norm += sum * sum;
        }
    }
    free(kz.data);
    return norm;
}

static inline reference solve_reference(const problem *data)
{
    reference self = {.p = data->z.rows, .c = data->y.cols, .k = kernel_matrix(data, &data->x)};
    int64_t p = self.p;
    self.a = malloc((size_t)(p * p) * sizeof(long double));
    self.alpha = data_matrix(p, self.c, 0, MERCER_F64);
    long double *b = malloc((size_t)p * sizeof(long double)), norm = form_normal(data, &self), inverse = 0;
    factor(self.a, p);
    for (int64_t j = 0; j < self.c; j++) {
        for (int64_t i = 0; i < p; i++) {
            b[i] = 0;
            for (int64_t s = 0; s < data->x.rows; s++)
                b[i] += (long double)weight_of(data, s) * mrc_load(&self.k, s, i) * mrc_load(&data->y, s, j);
        }
        solve(self.a, p, b);
        for (int64_t i = 0; i < p; i++) mrc_store(&self.alpha, i, j, (double)b[i]);
    }
    for (int64_t j = 0; j < p; j++) {
        for (int64_t i = 0; i < p; i++) b[i] = i == j;
        solve(self.a, p, b);
        for (int64_t i = 0; i < p; i++) inverse += b[i] * b[i];
    }
    self.condition = (double)sqrtl(norm * inverse);
    free(b);
    return self;
}

static inline void free_reference(reference *self)
{
    free(self->a), free(self->k.data), free(self->alpha.data);
}

/* Return |A - B|_F / |B|_F. */
static inline double difference(const mercer_matrix *a, const mercer_matrix *b)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < b->rows; i++) {
        for (int64_t j = 0; j < b->cols && j < a->cols; j++) {
            error += pow(mrc_load(a, i, j) - mrc_load(b, i, j), 2);
            size += pow(mrc_load(b, i, j), 2);
        }
    }
    return size > 0 ? sqrt(error / size) : sqrt(error);
}

static inline double bound(const reference *ref, double tolerance)
{
    return ref->condition * (40 * (double)ref->p * UNIT + tolerance * sqrt(ref->condition));
}

static const struct {
    const char *name;
    solver_call call;
    double tolerance;
} exact_solvers[] = {{"direct", mrc_exact_direct, 0}, {"cg", mrc_exact_cg, 1e-13}};
enum { EXACT_SOLVERS = 2 };

#endif
