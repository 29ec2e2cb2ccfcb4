/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan of a training; and set-up of an iterative solver: a sample of the data, its eigensystem, beta and the
 * critical batch, the plan refined with those numbers, and the parts it asks for.
 *
 * The sample is read from a pass of its own (number -1): X_s must be drawn from what the batches are drawn from. Rows
 * beyond the first s are "fresh": beta is estimated on them, because on the sample itself it comes out too low.
 */
#include "training/trainer.h"

#include "centers/center_selection.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/normal/roughness.h"
#include "solvers/projectors/projector_parts.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROUGHNESS_CENTERS = 1000, SPREAD_CENTERS = 200, FRESH_ROWS = 2000, POWER_STEPS = 30, BETA_ROWS = 64 };

#define PLAIN_MARGIN 1.1 /* on the largest eigenvalue that gradient descent estimates from a sample */

/* ---- The plan ------------------------------------------------------------------------------------------------ */

/* Bandwidth over the median distance of some centers; 0 for kernel functions without one, and for centers that
   coincide. */
static mercer_status measure_spread(mrc_trainer *self, double *out)
{
    const mercer_kernel *kernel = self->target.kernel;
    const mercer_matrix *z = self->target.z;
    double median = 0;
    *out = 0;
    if (mrc_kernel_argument(kernel) != MRC_ON_DISTANCE || mrc_kernel_is_callback(kernel) || z->rows < 2)
        return MERCER_OK;
    mercer_matrix some = *z; /* spread evenly: rows may be in some order */
    some.rows = mrc_min(z->rows, SPREAD_CENTERS), some.ld = z->ld * (z->rows / some.rows);
    char error[MRC_ERROR_CHARS];
    memcpy(error, self->context->error, sizeof error);
    mercer_status status = mrc_median_distance(self->backend, &some, 0, &median);
    if (status != MERCER_OK && status != MERCER_ERROR_DATA) return status;
    memcpy(self->context->error, error, sizeof error);
    if (status == MERCER_OK && median > 0) *out = kernel->bandwidth / median;
    return MERCER_OK;
}

/* What a plan wants to know of the kernel matrix, once. */
static mercer_status look_at_kernel(mrc_trainer *self)
{
    const char *solver = self->options.solver;
    bool cg = !solver || strcmp(solver, "auto") == 0 || strcmp(solver, "cg") == 0;
    if (!self->have_spread) MRC_TRY(measure_spread(self, &self->spread));
    self->have_spread = true;
    if (!cg || self->have_roughness || self->target.p < ROUGHNESS_CENTERS) return MERCER_OK;
    MRC_TRY(mrc_roughness(self->backend, self->comm, self->target.kernel, self->target.z, self->target.p,
                          self->target.origin, &self->roughness));
    self->have_roughness = true;
    mrc_log(self->context, MERCER_LOG_DEBUG, "plan: roughness %.3f of the kernel matrix", self->roughness);
    return MERCER_OK;
}

static mrc_plan_request request_for(const mrc_trainer *self, int64_t n, bool rows_known, mercer_dtype points)
{
    return (mrc_plan_request){.context = self->context,
                              .options = &self->options,
                              .n = n,
                              .p = self->target.p,
                              .d = self->target.z->cols,
                              .c = self->target.weights->cols,
                              .real = self->target.weights->dtype,
                              .points = points,
                              .shards = mrc_comm_shards(self->comm, self->target.p),
                              .threads = (int)self->planned_threads,
                              .budget = self->planned_budget,
                              .roughness = self->roughness,
                              .spread = self->comm->rank == 0 ? self->spread : 0, /* one rank says it */
                              .rows_known = rows_known,
                              .bounded = mrc_kernel_argument(self->target.kernel) == MRC_ON_DISTANCE &&
                                         !mrc_kernel_is_callback(self->target.kernel)};
}

mercer_status mrc_trainer_make_plan(mrc_trainer *self, int64_t n, bool rows_known, mercer_dtype points)
{
    MRC_TRY(look_at_kernel(self));
    mrc_plan_request request = request_for(self, n, rows_known, points);
    MRC_TRY(mrc_make_plan(&self->plan, &request));
    self->planned_budget = self->plan.budget; /* free memory changes; the plan must not */
    return MERCER_OK;
}

mercer_status mrc_trainer_replace_plan(mrc_trainer *self, const char *solver, const char *why)
{
    const mercer_source *source = self->stream.source;
    mrc_plan_request request = request_for(self, source->rows, true, source->dtype);
    return mrc_replace_plan(&self->plan, &request, solver, why);
}

/* ---- Solvers whose centers are the samples ------------------------------------------------------------------- */

static mercer_status check_centers_are_samples(mrc_trainer *self, const mercer_matrix *sample, const int64_t *rows,
                                               int64_t n)
{
    const mercer_matrix *z = self->target.z;
    if (!rows)
        return mrc_fail(self->context, MERCER_ERROR_UNSUPPORTED,
                        "solver %s has the samples as centers: its source must say which rows a batch holds",
                        self->plan.public_plan.solver);
    if (self->target.p != n)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                        "solver %s has the samples as centers: the model has %lld centers, the source %lld samples",
                        self->plan.public_plan.solver, (long long)self->target.p, (long long)n);
    mercer_matrix x;
    mercer_status status = MERCER_OK;
    MRC_TRY(mrc_host_open(self->backend, sample, &x));
    for (int64_t i = 0; i < sample->rows && status == MERCER_OK; i++) {
        int64_t row = rows[i] - self->centers.first;
        if (row < 0 || row >= z->rows) continue; /* another rank looks at it */
        for (int64_t k = 0; k < z->cols && status == MERCER_OK; k++)
            if (mrc_load(&x, i, k) != mrc_load(z, row, k))
                status = mrc_fail(self->context, MERCER_ERROR_DATA,
                                  "solver %s has the samples as centers: sample %lld differs from center %lld",
                                  self->plan.public_plan.solver, (long long)rows[i], (long long)rows[i]);
    }
    status = mrc_host_close(self->backend, sample, &x, false, status);
    return mrc_comm_together(self->comm, status, "centers");
}

/* Largest eigenvalue of K_ZX K_XZ / n + ridge K_ZZ, for gradient descent on the weights, by power iteration on the
   sample. */
static mercer_status find_plain_top(mrc_trainer *self, const mercer_matrix *sample, double ridge, double *top)
{
    mrc_centers *centers = &self->centers;
    mercer_matrix v = {0}, values = {0}, smooth = {0};
    mercer_status status = mrc_field_create(centers, &v, 1, centers->real, "a vector");
    if (status == MERCER_OK)
        status = mrc_matrix_create(self->backend, &values, sample->rows, 1, centers->real, "a vector");
    if (status == MERCER_OK) status = mrc_field_create(centers, &smooth, 1, centers->real, "a vector");
    mercer_matrix ones = {0};
    if (status == MERCER_OK) status = mrc_host_open(self->backend, &v, &ones);
    for (int64_t i = 0; i < v.rows && status == MERCER_OK; i++) mrc_store(&ones, i, 0, 1);
    status = mrc_host_close(self->backend, &v, &ones, true, status);
    *top = 0;
    for (int step = 0; step < POWER_STEPS && status == MERCER_OK; step++) {
        double norm = 0;
        status = mrc_centers_norm(centers, &v, &norm);
        if (status == MERCER_OK) status = self->backend->ops->axpby(self->backend, 1 / fmax(norm, 1e-300), &v, 0, &v);
        if (status == MERCER_OK) status = mrc_centers_predict(centers, sample, &v, &values, NULL);
        if (status == MERCER_OK && ridge > 0) status = mrc_centers_times(centers, NULL, &v, &smooth);
        if (status == MERCER_OK) status = mrc_centers_transpose(centers, sample, &values, &v, NULL);
        double mean = 1 / (double)sample->rows;
        if (status == MERCER_OK) status = self->backend->ops->axpby(self->backend, ridge, &smooth, mean, &v);
        if (status == MERCER_OK) status = mrc_centers_norm(centers, &v, top);
    }
    *top *= PLAIN_MARGIN;
    mrc_matrix_destroy(self->backend, &smooth);
    mrc_matrix_destroy(self->backend, &values);
    mrc_matrix_destroy(self->backend, &v);
    return status;
}

typedef struct norms_job {
    const mercer_matrix *rows, *room; /* (b, d), (b, centers of the largest shard) */
} norms_job;

/* |K(Z_s,x)|^2 for a block of rows x. part: (1, b) f64. */
static mercer_status add_norms(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    const norms_job *job = argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard), k = *job->room;
    k.rows = job->rows->rows, k.cols = k.ld = z.rows;
    MRC_TRY(mrc_points_eval(centers, job->rows, &z, &k));
    return centers->backend->ops->row_sqnorms(centers->backend, &k, part->data);
}

/* The largest |K(Z,x)|^2 over the sample, with a margin, a block of rows at a time. */
static mercer_status find_plain_beta(mrc_trainer *self, const mercer_matrix *sample, double *beta)
{
    mrc_centers *centers = &self->centers;
    int64_t block = mrc_min(BETA_ROWS, sample->rows), largest = 0;
    for (int i = 0; i < centers->shards; i++) largest = mrc_max(largest, centers->shard[i].rows);
    mercer_matrix k;
    MRC_TRY(mrc_matrix_create(self->backend, &k, block, largest, centers->real, "a block of K(X_s, Z)"));
    mercer_status status = MERCER_OK;
    *beta = 0;
    for (int64_t first = 0; first < sample->rows && status == MERCER_OK; first += block) {
        double norms[BETA_ROWS];
        mercer_matrix rows = mrc_rows(sample, first, mrc_min(block, sample->rows - first)),
                      sums = mrc_view(norms, 1, rows.rows, MERCER_F64);
        norms_job job = {&rows, &k};
        status = mrc_centers_sum(centers, &sums, add_norms, &job);
        for (int64_t i = 0; i < rows.rows && status == MERCER_OK; i++) *beta = fmax(*beta, PLAIN_MARGIN * norms[i]);
    }
    mrc_matrix_destroy(self->backend, &k);
    return status;
}

/* *top: the larger of itself and the first values of a diagonal. */
static mercer_status raise_to(mrc_trainer *self, const mercer_matrix *diagonal, int64_t rows, double *top)
{
    mercer_matrix first = mrc_rows(diagonal, 0, rows), host;
    MRC_TRY(mrc_host_open(self->backend, &first, &host));
    for (int64_t i = 0; i < rows; i++) *top = fmax(*top, mrc_load(&host, i, 0));
    return mrc_host_close(self->backend, &first, &host, false, MERCER_OK);
}

/*
 * Where K(x,x) is not the same everywhere, the rows seen so far say too little of its largest value: one pass over the
 * data finds it, and beta grows in proportion.
 */
static mercer_status raise_beta(mrc_trainer *self, const mercer_matrix *fresh)
{
    mrc_backend *backend = self->backend;
    if (mrc_kernel_argument(self->target.kernel) == MRC_ON_DISTANCE || !self->stream.source) return MERCER_OK;
    mercer_matrix diagonal;
    double seen = 0, all = 0;
    MRC_TRY(
        mrc_matrix_create(backend, &diagonal, mrc_max(fresh->rows, MRC_READ_ROWS), 1, MERCER_F64, "kernel diagonal"));
    mercer_status status = backend->ops->kernel_diagonal(backend, self->target.kernel, fresh, &diagonal);
    if (status == MERCER_OK) status = raise_to(self, &diagonal, fresh->rows, &seen);
    if (status == MERCER_OK) status = mrc_sample_stream_restart(&self->stream, -1);
    for (mercer_batch batch = {.X.rows = 1}; status == MERCER_OK && batch.X.rows > 0;) {
        mrc_trainer_tell(self, "step size", (double)self->stream.in_pass / (double)mrc_max(self->n, 1));
        status = mrc_sample_stream_next(&self->stream, MRC_READ_ROWS, &batch);
        if (status == MERCER_OK)
            status = backend->ops->kernel_diagonal(backend, self->target.kernel, &batch.X, &diagonal);
        if (status == MERCER_OK) status = raise_to(self, &diagonal, batch.X.rows, &all);
    }
    mrc_matrix_destroy(backend, &diagonal);
    /* Samples that lie on a device were not looked at before (mrc_sample_stream_next). */
    if (status == MERCER_OK && !(all <= (mrc_trainer_arithmetic(self) == MERCER_F64 ? DBL_MAX : (double)FLT_MAX)))
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "source: X: values of the kernel overflow: scale the features by a preprocessing");
    if (status == MERCER_OK && all > seen && seen > 0) self->report.beta *= all / seen;
    return status;
}

/* ---- Parts --------------------------------------------------------------------------------------------------- */

static mercer_status create_parts(mrc_trainer *self, const mercer_matrix *sample, int64_t n)
{
    const mercer_plan *plan = &self->plan.public_plan;
    const mrc_preset *preset = self->plan.preset;
    mrc_iteration_options options = {.update = preset->update,
                                     .batch = plan->batch,
                                     .period = plan->period,
                                     .carry = plan->carry,
                                     .gamma = plan->step_factor,
                                     .ridge = plan->lambda / (double)n};
    if (preset->update == MRC_UPDATE_PLAIN) {
        MRC_TRY(find_plain_top(self, sample, options.ridge, &options.plain_top));
        options.plain_beta = options.plain_top; /* full batches have no sampling noise */
        if (plan->batch < n) MRC_TRY(find_plain_beta(self, sample, &options.plain_beta));
    }
    MRC_TRY(mrc_kernel_blocks_create(&self->kernel_blocks, &self->centers, plan->batch, self->plan.keep_bytes,
                                     plan->cache_data ? n : 0,
                                     plan->cache_data == MRC_CACHE_HALF ? MERCER_F16 : self->centers.real));
    if (self->plan.projector) mrc_trainer_tell(self, "projector", -1);
    if (self->plan.projector)
        MRC_TRY(mrc_projector_create(&self->projector, self->plan.projector, &self->centers,
                                     &self->plan.projector_options));
    if (self->projector)
        self->projector->room = self->kernel_blocks.kept; /* projections come between the batches' products */
    MRC_TRY(mrc_iteration_create(&self->iteration, &self->centers, &self->kernel_blocks, &self->system, self->projector,
                                 self->report.beta, self->target.weights->cols, &options));
    self->iteration.sample_rows = self->sample_rows;
    self->iteration.units = self->target.units;
    const mercer_matrix *start = self->target.weights;
    MRC_TRY(self->backend->ops->copy(self->backend, &self->iteration.alpha, start));
    MRC_TRY(mrc_field_create(&self->centers, &self->rollback_weights, start->cols, self->centers.real,
                             "weights to go back to"));
    return self->backend->ops->copy(self->backend, &self->rollback_weights, start);
}

static mercer_status copy_rows(mrc_trainer *self, const int64_t *rows, int64_t count)
{
    void *memory;
    if (!rows) return MERCER_OK;
    MRC_TRY(mrc_alloc(self->context, &memory, count, sizeof *rows, "row numbers of the sample"));
    memcpy(memory, rows, (size_t)count * sizeof *rows);
    self->sample_rows = memory;
    return MERCER_OK;
}

/* For mercer_trainer_spectrum, which may be asked for after everything else is gone. */
static mercer_status remember_spectrum(mrc_trainer *self)
{
    void *memory;
    mrc_free(self->context, self->spectrum);
    self->spectrum = NULL, self->spectrum_count = 0;
    MRC_TRY(mrc_alloc(self->context, &memory, self->system.q + 1, sizeof(double), "eigenvalues"));
    self->spectrum = memory;
    self->spectrum_count = self->system.q + 1;
    for (int64_t i = 0; i < self->system.q; i++) self->spectrum[i] = self->system.lambda[i];
    self->spectrum[self->system.q] = self->system.tail;
    return MERCER_OK;
}

static mercer_status build(mrc_trainer *self, const mercer_matrix *sample, const int64_t *rows, int64_t n)
{
    if (self->plan.preset->update == MRC_UPDATE_COORDINATES) MRC_TRY(check_centers_are_samples(self, sample, rows, n));
    int64_t s = mrc_min(self->plan.public_plan.nystrom, sample->rows), fresh_rows = sample->rows - s;
    mercer_matrix first = mrc_rows(sample, 0, s);
    mercer_matrix fresh = fresh_rows > 0 ? mrc_rows(sample, s, fresh_rows) : first;
    MRC_TRY(copy_rows(self, rows, s));
    MRC_TRY(mrc_eigensystem_create(&self->system, &self->centers, &first, self->plan.public_plan.eigenpairs,
                                   self->options.seed));
    mrc_trainer_tell(self, "step size", -1);
    MRC_TRY(mrc_eigensystem_beta(&self->system, &self->centers, &fresh, &self->report.beta));
    MRC_TRY(raise_beta(self, &fresh));
    self->report.tail = self->system.tail;
    mrc_plan_request request = request_for(self, n, rows != NULL, sample->dtype);
    request.critical_batch = mrc_critical_batch(self->report.beta, self->system.tail, n);
    MRC_TRY(mrc_refine_plan(&self->plan, &request));
    self->plan.public_plan.eigenpairs = self->system.q; /* directions lost in rounding are left out */
    /* Here and not by the planner, which is asked several times. */
    if (self->system.q > self->target.p / 10 && self->plan.preset->update == MRC_UPDATE_PROJECT)
        mrc_log(self->context, MERCER_LOG_WARNING,
                "q = %lld eigenpairs are more than a tenth of the %lld centers: the result is biased away from least "
                "squares; lower q, or finish with polish",
                (long long)self->system.q, (long long)self->target.p);
    MRC_TRY(remember_spectrum(self));
    return create_parts(self, sample, n);
}

mercer_status mrc_trainer_set_up(mrc_trainer *self, const mercer_matrix *sample, const int64_t *rows, int64_t n)
{
    double start = mrc_seconds();
    self->n = n;
    MRC_TRY(mrc_centers_create(&self->centers, self->backend, self->comm, self->target.kernel, self->target.z,
                               self->target.p, self->target.origin, self->target.weights->dtype));
    self->centers.notice = mrc_trainer_tell, self->centers.notice_user = self;
    mercer_status status = build(self, sample, rows, n);
    self->ready = true;
    if (status != MERCER_OK) mrc_trainer_tear_down(self);
    self->setup_seconds = mrc_seconds() - start;
    return status;
}

void mrc_trainer_tear_down(mrc_trainer *self)
{
    mrc_sample_stream_close(&self->stream);
    if (!self->ready) return;
    mrc_matrix_destroy(self->backend, &self->best);
    mrc_matrix_destroy(self->backend, &self->rollback_weights);
    mrc_iteration_destroy(&self->iteration);
    mrc_projector_free(self->projector);
    self->projector = NULL;
    mrc_kernel_blocks_destroy(&self->kernel_blocks);
    mrc_eigensystem_destroy(&self->system, self->backend);
    mrc_free(self->context, self->sample_rows);
    self->sample_rows = NULL;
    mrc_centers_destroy(&self->centers);
    self->ready = self->have_best = false;
}

/* ---- A sample from the stream -------------------------------------------------------------------------------- */

typedef struct sample_room {
    mercer_matrix points;
    int64_t *rows;
    int64_t filled;
} sample_room;

static mercer_status read_sample(mrc_trainer *self, sample_room *room)
{
    MRC_TRY(mrc_sample_stream_restart(&self->stream, -1));
    while (room->filled < room->points.rows) {
        mercer_batch batch;
        mrc_trainer_tell(self, "reading a sample", (double)room->filled / (double)room->points.rows);
        MRC_TRY(mrc_sample_stream_points(&self->stream, mrc_min(room->points.rows - room->filled, 4096), &batch));
        if (batch.X.rows == 0) break;
        mercer_matrix to = mrc_rows(&room->points, room->filled, batch.X.rows);
        MRC_TRY(self->backend->ops->copy(self->backend, &to, &batch.X));
        if (batch.rows) memcpy(room->rows + room->filled, batch.rows, (size_t)batch.X.rows * sizeof *room->rows);
        room->filled += batch.X.rows;
    }
    if (room->filled > 0) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_DATA, "source: the pass that samples are drawn from is empty");
}

mercer_status mrc_trainer_set_up_from_stream(mrc_trainer *self)
{
    const mercer_source *source = self->stream.source;
    int64_t wanted =
        mrc_min(source->rows, self->plan.public_plan.nystrom + mrc_min(FRESH_ROWS, self->plan.public_plan.nystrom));
    sample_room room = {0};
    void *rows = NULL;
    mercer_status status = mrc_matrix_create(self->backend, &room.points, wanted, source->features, source->dtype,
                                             "the sample of the data");
    if (status == MERCER_OK)
        status = mrc_alloc(self->context, &rows, wanted, sizeof *room.rows, "row numbers of the sample");
    room.rows = rows;
    if (status == MERCER_OK) status = read_sample(self, &room);
    if (status == MERCER_OK) {
        mercer_matrix sample = mrc_rows(&room.points, 0, room.filled);
        status = mrc_trainer_set_up(self, &sample, self->stream.rows_known ? room.rows : NULL, source->rows);
    }
    mrc_free(self->context, rows);
    mrc_matrix_destroy(self->backend, &room.points);
    return status;
}
