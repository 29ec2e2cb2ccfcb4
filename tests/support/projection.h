/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A projection problem K(Z,Z) theta = h, and the properties that every solution must have. The residual that a
 * projector leaves in h is checked in double, with K(Z,Z) from the scalar reference.
 *
 * Tolerance of the running residual. A projection updates r at most N = passes (2 blocks + 1) times (ep2: twice a
 * batch), by products over p terms whose kernel values carry up to V = 256 unit roundoffs u (the distance of centers
 * that are not close loses a few digits to cancellation). If no increment of theta is larger than the largest theta
 * so far,
 *
 *     |r - (h - K theta)|_F  <=  N (p + V) u (|h|_F + |K|_F |theta|_F)  =: slack
 *
 * Any error in the bookkeeping is of the order of |h|, far above slack in f64.
 */
#ifndef MRC_TESTS_PROJECTION_H
#define MRC_TESTS_PROJECTION_H

#include "support/allocator.h"
#include "support/backends.h"
#include "support/data.h"

#include "solvers/projectors/projector.h"

static const char *const kinds[] = {"exact", "ep2", "pcg", "bgs"};
enum { EXACT, EP2, PCG, BGS, KINDS };

typedef struct problem {
    mercer_context context;
    mrc_backend *backend;
    mrc_comm *comm;
    mercer_kernel kernel;
    mrc_centers centers;
    mercer_matrix z, h0, h, theta; /* h0: original h, never overwritten */
    mercer_matrix k;               /* K(Z,Z) in f64 by the reference */
    double origin[8];
} problem;

typedef struct setting {
    const char *backend, *kernel;
    int ranks;
    mercer_dtype real;
    int64_t p, d, c;
} setting;

static const setting usual = {"cpu", "laplace:bandwidth=2", 1, MERCER_F64, 150, 3, 2};

static inline mrc_projector_options options_of(int64_t passes)
{
    return (mrc_projector_options){
        .nystrom = 60, .eigenpairs = 12, .passes = passes, .block = 40, .gamma = 0.9, .seed = 5};
}

static inline void reference_kernel(problem *self)
{
    double x[8], y[8], value;
    for (int64_t i = 0; i < self->z.rows; i++)
        for (int64_t j = 0; j < self->z.rows; j++) {
            mrc_load_row_f64(&self->z, i, x);
            mrc_load_row_f64(&self->z, j, y);
            assert_true(mrc_kernel_reference(&self->kernel, self->z.cols, x, y, &value));
            mrc_store(&self->k, i, j, value);
        }
}

static inline void open_problem(problem *self, const setting *s, test_allocator *allocator)
{
    *self = (problem){.context = {.threads = 2, .isa = mrc_isa_best()}};
    if (allocator) self->context.allocator = *test_allocator_table(allocator);
    assert_succeeds(&self->context, mrc_backend_create(&self->backend, &self->context, s->backend));
    assert_succeeds(&self->context, mrc_comm_create_virtual(&self->comm, &self->context, s->ranks));
    assert_succeeds(&self->context, mrc_kernel_parse(&self->context, &self->kernel, s->kernel));
    self->z = data_matrix(s->p, s->d, 0, s->real), self->k = data_matrix(s->p, s->p, 0, MERCER_F64);
    self->h0 = data_matrix(s->p, s->c, 0, s->real), self->h = data_matrix(s->p, s->c, s->c + 1, s->real);
    self->theta = data_matrix(s->p, s->c, s->c + 3, s->real);
    data_fill_normal(&self->z, (mrc_rng){11, 1}, 0, 1);
    data_fill_normal(&self->h0, (mrc_rng){11, 2}, 0, 1);
    /* To the noise in h0, add a smooth function of the centers, which the kernel represents well. */
    for (int64_t i = 0; i < s->p; i++)
        for (int64_t j = 0; j < s->c; j++)
            data_store(&self->h0, i, j, mrc_load(&self->h0, i, j) + sin(mrc_load(&self->z, i, 0) + (double)j));
    reference_kernel(self);
    assert_succeeds(&self->context, mrc_centers_create(&self->centers, self->backend, self->comm, &self->kernel,
                                                       &self->z, self->z.rows, self->origin, s->real));
}

static inline void close_problem(problem *self)
{
    free(self->z.data), free(self->h0.data), free(self->h.data), free(self->theta.data), free(self->k.data);
    mrc_centers_destroy(&self->centers);
    mercer_comm_free(self->comm);
    mrc_backend_free(self->backend);
    assert_that(self->context.bytes_now == 0, "%lld bytes are left", (long long)self->context.bytes_now);
}

static inline double norm_of(const mercer_matrix *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) sum += mrc_load(a, i, j) * mrc_load(a, i, j);
    return sqrt(sum);
}

static inline double unit_of(const problem *self)
{
    return self->centers.real == MERCER_F32 ? 0x1p-24 : 0x1p-53;
}

/* Return |r - (h - K theta)|_F. */
static inline double bookkeeping_error(const problem *self)
{
    double sum = 0;
    for (int64_t i = 0; i < self->z.rows; i++)
        for (int64_t j = 0; j < self->h.cols; j++) {
            long double error = (long double)mrc_load(&self->h, i, j) - mrc_load(&self->h0, i, j);
            for (int64_t l = 0; l < self->z.rows; l++)
                error += (long double)mrc_load(&self->k, i, l) * mrc_load(&self->theta, l, j);
            sum += (double)(error * error);
        }
    return sqrt(sum);
}

static inline double slack_of(const problem *self, double updates)
{
    return updates * ((double)self->z.rows + 256) * unit_of(self) *
           (norm_of(&self->h0) + norm_of(&self->k) * norm_of(&self->theta));
}

/* Return an upper bound of the number of residual updates in a projection. ep2: at most one batch per center. */
static inline double updates_of(const problem *self, int kind, const mrc_projector_options *options, double passes)
{
    double p = (double)self->z.rows, blocks = ceil(p / fmin(p, (double)options->block));
    return 1 + passes * (kind == BGS ? 2 * blocks + 1 : kind == EP2 ? 2 * p : 1);
}

/* Project h0 and check the properties that every projection must have. */
static inline mrc_projection project(problem *self, int kind, mrc_projector *projector, const char *what)
{
    mrc_projection report;
    for (int64_t i = 0; i < self->h.rows; i++)
        for (int64_t j = 0; j < self->h.cols; j++) {
            mrc_store(&self->h, i, j, mrc_load(&self->h0, i, j));
            mrc_store(&self->theta, i, j, 77); /* garbage that the projector must clear */
        }
    set_sentinels(&self->h), set_sentinels(&self->theta);
    assert_succeeds(&self->context, mrc_project(projector, &self->h, &self->theta, &report));
    assert_true(sentinels_intact(&self->h) && sentinels_intact(&self->theta));
    double left = norm_of(&self->h), right = norm_of(&self->h0), error = bookkeeping_error(self);
    double bound = slack_of(self, updates_of(self, kind, &projector->options, report.passes));
    assert_that(isfinite(norm_of(&self->theta)), "%s %s: theta is not finite", what, kinds[kind]);
    assert_that(error <= bound, "%s %s: the residual is off by %g, bound %g, |h| %g", what, kinds[kind], error, bound,
                right);
    double reported = report.residual * right;
    assert_that(fabs(reported - left) <= 1e-12 * right, "%s %s: reported %g, left %g", what, kinds[kind], reported,
                left);
    assert_true(report.passes <= (double)projector->options.passes);
    return report;
}

static inline mrc_projection once(problem *self, int kind, const mrc_projector_options *options, const char *what)
{
    mrc_projector *projector;
    assert_non_null(mrc_projector_find(kinds[kind]));
    assert_succeeds(&self->context,
                    mrc_projector_create(&projector, mrc_projector_find(kinds[kind]), &self->centers, options));
    mrc_projection report = project(self, kind, projector, what);
    mrc_projector_free(projector);
    return report;
}

static inline double distance_of(const mercer_matrix *a, const mercer_matrix *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) sum += pow(mrc_load(a, i, j) - mrc_load(b, i, j), 2);
    return sqrt(sum);
}

#endif
