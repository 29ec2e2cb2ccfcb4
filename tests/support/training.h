/* SPDX-License-Identifier: BSD-3-Clause */
/* A small learning problem, and training on it through the public API. */
#ifndef MRC_TESTS_TRAINING_H
#define MRC_TESTS_TRAINING_H

#include "support/check.h"

#include "mercer/ranks.h"
#include "solvers/solver.h"
#include "support/dense.h"
#include "support/info.h"
#include "support/sources.h"

static const double U = 0x1p-53;

/* Context shared by all tests of a program; opened by cmocka_run_group_tests(tests, open_all, close_all). */
static mercer_context *context;

/* Upper bound of the error of a kernel value in unit roundoffs: distances of rows that are not close lose a few
   digits. */
static const double V = 256;

typedef struct task {
    mercer_context *context;
    mercer_kernel kernel;
    mercer_matrix x, y, z; /* (n, d), (n, c), (p, d) */
    double *weights;       /* (n) or NULL */
    uint64_t seed;         /* seed of the sample order */
} task;

typedef struct sizes {
    int64_t n, p, d, c;
} sizes;

static inline mercer_context *open_context(int threads)
{
    mercer_context *made;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = threads;
    assert_succeeds(NULL, mercer_context_create(&made, &options));
    return made;
}

static inline int open_all(void **state)
{
    (void)state;
    context = open_context(2);
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    mercer_context_free(context);
    return 0;
}

/* Create noisy smooth targets; samples and centers are normal with deviation `spread`. p = 0: centers = samples. */
static inline task task_open(mercer_context *with, const char *kernel, sizes of, double spread, mercer_dtype dtype)
{
    task out = {.context = with, .seed = 7};
    assert_succeeds(with, mercer_kernel_parse(&out.kernel, with, kernel));
    out.x = data_matrix(of.n, of.d, 0, dtype), out.y = data_matrix(of.n, of.c, 0, dtype);
    out.z = data_matrix(of.p ? of.p : of.n, of.d, 0, dtype);
    data_fill_normal(&out.x, (mrc_rng){21, 1}, 0, spread);
    data_fill_normal(&out.z, (mrc_rng){21, of.p ? 2 : 1}, 0, spread);
    for (int64_t i = 0; i < of.n; i++)
        for (int64_t j = 0; j < of.c; j++) {
            double noise = 0.2 * mrc_random_normal((mrc_rng){21, 3 + (uint64_t)j}, (uint64_t)i);
            data_store(&out.y, i, j, sin((double)(j + 1) * mrc_load(&out.x, i, 0) / spread) + noise);
        }
    return out;
}

static inline void task_close(task *self)
{
    free(self->x.data), free(self->y.data), free(self->z.data), free(self->weights);
}

static inline mercer_train_options options_for(const char *solver)
{
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    options.solver = solver;
    options.seed = 3;
    return options;
}

/* Return whether a named solver uses the samples as centers. */
static inline bool needs_samples(const char *solver)
{
    const mrc_solver *row = mrc_solver_find(solver);
    return row && row->traits & MRC_NEEDS_SAMPLES;
}

/* Return whether a named solver projects, so that the options of projectors apply to it. */
static inline bool projects(const char *solver)
{
    const mrc_solver *row = mrc_solver_find(solver);
    return row && row->traits & MRC_USES_PROJECTOR;
}

/* Copy the report's plan, because the report outlives its model. There are two buffers: a copy is valid until the
   second call after it. */
static inline void copy_plan(mercer_report *report)
{
    static mercer_plan plans[2];
    static int last;
    last = !last;
    plans[last] = *report->plan;
    report->plan = &plans[last];
}

/* Return the weights of a model of type `real` trained by `ranks` ranks (0: no communicator). report may be NULL. */
static inline dense train_as(const task *self, const mercer_train_options *options, int ranks, mercer_dtype real,
                             mercer_report *report)
{
    mercer_context *with = self->context;
    mercer_model *model;
    mercer_source source;
    mercer_comm *comm = NULL;
    mercer_trainer *trainer;
    assert_succeeds(with, mercer_model_create(&model, with, NULL, &self->kernel, &self->z, self->y.cols, real));
    assert_succeeds(with, source_from_matrices(&source, with, &self->x, &self->y, self->weights, self->seed));
    if (ranks > 0) assert_succeeds(with, mrc_comm_create_virtual(&comm, with, ranks));
    assert_succeeds(with, mercer_trainer_create(&trainer, model, comm, options));
    if (report) report->struct_size = sizeof *report;
    assert_succeeds(with, mercer_trainer_fit(trainer, &source, report));
    if (report) copy_plan(report);
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    for (int64_t k = 0; k < out.rows * out.cols; k++) assert_true(isfinite(out.a[k]));
    mercer_trainer_free(trainer);
    mercer_comm_free(comm);
    mercer_source_free(&source);
    mercer_model_free(model);
    return out;
}

static inline dense train(const task *self, const mercer_train_options *options, mercer_report *report)
{
    return train_as(self, options, 0, MERCER_F64, report);
}

/* Kernel matrices and targets that all references are computed from. */
typedef struct kernels {
    dense zz, xz, xx, y;
    spectrum of_zz;
    double condition; /* condition number of K(Z,Z) */
} kernels;

static inline kernels kernels_of(const task *self)
{
    kernels out = {.zz = dense_kernel(&self->kernel, &self->z, &self->z),
                   .xz = dense_kernel(&self->kernel, &self->x, &self->z),
                   .xx = dense_kernel(&self->kernel, &self->x, &self->x),
                   .y = dense_of(&self->y)};
    out.of_zz = dense_spectrum(out.zz, (dense){0});
    out.condition = out.of_zz.bottom > 0 ? out.of_zz.top / out.of_zz.bottom : (double)INFINITY;
    return out;
}

static inline void kernels_free(kernels *self)
{
    free(self->zz.a), free(self->xz.a), free(self->xx.a), free(self->y.a);
}

/* Return sqrt(tr A' K A), the RKHS norm of the function with weights A. */
static inline double rkhs_norm(dense k, dense a)
{
    dense ka = dense_times(false, false, k, a), product = dense_times(true, false, a, ka);
    double trace = 0;
    for (int64_t j = 0; j < product.rows; j++) trace += AT(product, j, j);
    free(ka.a), free(product.a);
    return sqrt(fmax(trace, 0));
}

static inline double rkhs_distance(dense k, dense a, dense b)
{
    dense difference = dense_copy(a);
    dense_add(difference, -1, b);
    double out = rkhs_norm(k, difference);
    free(difference.a);
    return out;
}

/* Return (K_ZX W K_XZ + lambda K_ZZ)^-1 K_ZX W y for weights W (n, n) (W without data: I). *normal, if not NULL,
   receives the matrix in parentheses. */
static inline dense least_squares(const kernels *k, dense w, double lambda, dense *normal)
{
    dense wk = w.a ? dense_times(false, false, w, k->xz) : dense_copy(k->xz);
    dense a = dense_times(true, false, k->xz, wk), b = dense_times(true, false, wk, k->y);
    for (int64_t i = 0; i < a.rows; i++) /* remove the asymmetry due to rounding */
        for (int64_t j = 0; j < i; j++) AT(a, i, j) = AT(a, j, i) = (AT(a, i, j) + AT(a, j, i)) / 2;
    dense_add(a, lambda, k->zz);
    dense out = dense_solve(a, b);
    free(wk.a), free(b.a);
    if (normal)
        *normal = a;
    else
        free(a.a);
    return out;
}

/* Return I - Q on all samples: Q = sum_i (1 - t/lambda_i) e_i e_i' over the top q eigenpairs of K(X,X)/n, where t is
   the next eigenvalue. */
static inline dense weights_of_preconditioner(const kernels *k, int64_t q)
{
    int64_t n = k->xx.rows;
    dense vectors = dense_new(n, n), out = dense_new(n, n);
    double *values = calloc((size_t)n, sizeof(double));
    dense_eigen(k->xx, values, vectors);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            AT(out, i, j) = i == j;
            for (int64_t e = 0; e < q; e++)
                AT(out, i, j) -= (1 - values[q] / values[e]) * AT(vectors, i, e) * AT(vectors, j, e);
        }
    free(values), free(vectors.a);
    return out;
}

/* Return the largest change of the model that the rounding of one step can cause: see test_identities.c. */
static inline double one_step_error(const task *self, const kernels *k, dense star)
{
    double count = (double)(self->x.rows + self->z.rows) + V;
    return k->condition * count * U * (rkhs_norm(k->zz, star) + dense_norm(k->y));
}

#endif
