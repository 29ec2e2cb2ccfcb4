/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan of a trainer: measurements that the planner needs, and the plan itself, which all ranks follow. Centers are
 * measured once per trainer, samples once per fit. With several ranks the plan is made for rank 0's machine.
 */
#include "training/trainer.h"

#include "centers/center_selection.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/stream/dataset_stream.h"
#include "solvers/normal/exact_solvers.h"

#include <math.h>

/* ROUGHNESS_CENTERS: with fewer centers every solver is fast, so measuring would not pay. ROUNDING_CENTERS: measured
   for half precision. SPREAD_CENTERS: 19,900 distances are enough for a warning about extreme bandwidths.
   MOST_EQUATIONS: more centers need more than 16 GiB for the factor of K(Z, Z) in float. */
enum { ROUGHNESS_CENTERS = 1000, ROUNDING_CENTERS = 1000, SPREAD_CENTERS = 200, MOST_EQUATIONS = 65536 };

/* ---- Centers ----------------------------------------------------------------------------------------------------- */

void mrc_trainer_open_request(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mrc_target *target = &job->target;
    self->request = (mrc_plan_request){.options = &job->options,
                                       .p = target->p,
                                       .d = target->z->cols,
                                       .c = target->weights->cols,
                                       .real = target->weights->dtype,
                                       .shards = mrc_comm_shards(job->comm, target->p),
                                       .norm = mrc_kernel_norm(target->kernel),
                                       .bounded = mrc_kernel_is_stationary(target->kernel) &&
                                                  !mrc_kernel_is_callback(target->kernel)};
}

/* Measures the coordinates that determine the error of half precision (plan_precision.c). The measured centers are
   evenly spaced, because rows may be sorted. */
static void look_at_rounding(mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    const mrc_target *target = &job->target;
    const mrc_backend_ops *ops = job->backend->ops;
    const mercer_matrix *z = target->z;
    mrc_plan_request *request = &self->request;
    double sum = 0, bandwidth = target->kernel->bandwidth;
    request->gains_by_half = ops->gains_by_half && ops->gains_by_half(job->backend, target->kernel);
    if (!request->gains_by_half || job->context->arithmetic != MRC_BY_PLAN || z->rows == 0 || z->dtype == MERCER_U8)
        return;
    int64_t rows = mrc_min(z->rows, ROUNDING_CENTERS), step = z->rows / rows;
    for (int64_t i = 0; i < rows; i++) {
        double squares = 0, fourths = 0;
        for (int64_t k = 0; k < z->cols; k++) {
            double x = (mrc_load(z, i * step, k) - target->origin[k]) / bandwidth;
            squares += x * x, fourths += x * x * x * x;
            request->farthest = fmax(request->farthest, fabs(x));
        }
        if (squares > 0) sum += fourths / squares;
    }
    request->coordinates = sum / (double)rows;
}

/* Computes the ratio of the bandwidth to the median distance of some centers; 0 for kernels without a bandwidth and for
   identical centers. */
static mercer_status measure_spread(const mrc_job *job, double *out)
{
    const mercer_kernel *kernel = job->target.kernel;
    const mercer_matrix *z = job->target.z;
    double median = 0;
    *out = 0;
    if (!mrc_kernel_is_stationary(kernel) || mrc_kernel_is_callback(kernel) || z->rows < 2) return MERCER_OK;
    mercer_matrix some = *z; /* evenly spaced rows, because the centers may be sorted */
    some.rows = mrc_min(z->rows, SPREAD_CENTERS), some.ld = z->ld * (z->rows / some.rows);
    MRC_TRY(mrc_median_distance(job->backend, mrc_kernel_norm(kernel), &some, 0, &median));
    if (median > 0) *out = kernel->bandwidth / median;
    return MERCER_OK;
}

/* Measures the centers once. Only rank 0 measures them, because only its results are used. */
static mercer_status measure_centers(mrc_trainer *self)
{
    if (self->measured || self->job.comm->rank > 0) return MERCER_OK;
    look_at_rounding(self);
    self->request.spread = self->known.spread;
    if (self->request.spread == 0) MRC_TRY(measure_spread(&self->job, &self->request.spread));
    self->measured = true;
    return MERCER_OK;
}

/* Returns whether the plan depends on the roughness and the roughness is still unknown. */
static bool lacks_roughness(const mrc_trainer *self)
{
    const mrc_solver *row = mrc_plan_named_solver(&self->request);
    return (!row || row->traits & MRC_NEEDS_ROUGHNESS) && !self->have_roughness && self->request.p >= ROUGHNESS_CENTERS;
}

/* Measures the decay of the kernel matrix's eigenvalues (roughness.h), which determines how fast iterative solvers
   converge. */
static mercer_status measure_roughness(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    MRC_TRY(mrc_roughness(job->backend, job->comm, job->target.kernel, job->target.z, job->target.p, job->target.origin,
                          &self->request.roughness));
    self->have_roughness = true;
    mrc_log(job->context, MERCER_LOG_DEBUG, "plan: roughness %.3f of the kernel matrix", self->request.roughness);
    return MERCER_OK;
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Sets *same to whether every sample of the batch has a positive weight and equals the center of its row number, as far
   as that center belongs to this rank. */
static mercer_status compare_centers(const mrc_job *job, const mercer_batch *batch, bool *same)
{
    const mercer_matrix *z = job->target.z;
    mercer_matrix x;
    int64_t first, count;
    MRC_SCOPE(scope, job->context);
    mrc_comm_rows(job->comm, job->target.p, job->comm->rank, &first, &count);
    MRC_TRY(mrc_scope_open(&scope, job->backend, &batch->X, &x));
    *same = batch->rows != NULL;
    for (int64_t i = 0; i < x.rows && *same; i++) {
        int64_t row = batch->rows[i] - first;
        if (batch->weights && !(batch->weights[i] > 0)) *same = false;
        if (*same && row >= 0 && row < z->rows) *same = mrc_rows_equal(&x, i, z, row);
    }
    return MERCER_OK;
}

/* Sets *same to whether all samples are the centers, in their order. Only for callers that have not set mrc_known. */
static mercer_status compare_samples(mrc_job *job, mrc_sample_stream *stream, bool *same)
{
    bool other;
    *same = true;
    MRC_TRY(mrc_sample_stream_restart(stream, 0));
    while (*same) {
        mercer_batch batch;
        MRC_TRY(mrc_sample_stream_points(stream, MRC_READ_ROWS, &batch));
        if (batch.X.rows == 0) break;
        MRC_TRY(compare_centers(job, &batch, same));
    }
    MRC_TRY(mrc_comm_any(job->comm, !*same, &other));
    *same = !other;
    return MERCER_OK;
}

/* Sets on_samples if the centers are the samples and few enough to factorize K(Z, Z): that case has faster solvers. The
   comparison reads all samples, so it is skipped if no solver in question would use the result. */
static mercer_status look_at_samples(mrc_trainer *self, mrc_sample_stream *stream)
{
    mrc_plan_request *request = &self->request;
    const mrc_solver *row = mrc_plan_named_solver(request);
    bool asked = !row || (row->traits & MRC_FOR_AUTO && row->traits & MRC_NEEDS_SAMPLES);
    if (!asked || request->p != request->n || request->p > MOST_EQUATIONS) return MERCER_OK;
    request->on_samples = self->known.on_samples;
    return request->on_samples ? MERCER_OK : compare_samples(&self->job, stream, &request->on_samples);
}

/* ---- Machine ----------------------------------------------------------------------------------------------------- */

/* Gives all ranks the inputs of rank 0's plan: those that depend on the machine or were measured by rank 0 only. The
   memory budget is for all ranks together. */
static mercer_status share_request(mrc_trainer *self)
{
    mrc_job *job = &self->job;
    mrc_plan_request *request = &self->request;
    mrc_comm *comm = job->comm;
    if (comm->ranks == 1) return MERCER_OK;
    int64_t each, all = job->options.memory;
    MRC_TRY(mrc_rank_memory(job->backend, comm, &each));
    if (all == 0) all = each > 0 ? each * comm->ranks : job->backend->ops->free_memory(job->backend) / 2;
    struct {
        int64_t threads, budget, gains_by_half;
        double coordinates, farthest;
    } shared = {request->threads, all, request->gains_by_half, request->coordinates, request->farthest};
    MRC_TRY(mrc_comm_broadcast(comm, &shared, sizeof shared));
    request->threads = (int)shared.threads;
    request->budget = shared.budget;
    request->gains_by_half = shared.gains_by_half != 0;
    request->coordinates = shared.coordinates, request->farthest = shared.farthest;
    return MERCER_OK;
}

mercer_status mrc_trainer_begin_plan(mrc_trainer *self, int64_t n, mercer_dtype points)
{
    mrc_job *job = &self->job;
    mrc_plan_request *request = &self->request;
    mercer_status status = mrc_kernel_check_range(job->context, job->target.kernel, "centers", job->target.z,
                                                  mrc_trainer_value_dtype(job));
    if (status == MERCER_OK) status = measure_centers(self);
    MRC_TRY(mrc_comm_together(job->comm, status, "centers"));
    job->n = request->n = n;
    request->points = points;
    request->machine = mrc_machine_of(job->context);
    request->threads = request->machine.threads;
    request->budget = 0;
    request->rows_known = true;
    request->solver = NULL, request->accurate = NULL;
    request->unevenness = 0;
    request->streaming = request->on_samples = false;
    return share_request(self);
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

void mrc_trainer_warn_of_plan(const mrc_trainer *self)
{
    const mrc_plan *plan = &self->job.plan;
    for (int i = 0; i < plan->warning_count; i++)
        mrc_warn(self->job.context, plan->warnings[i].field, "%s", plan->warnings[i].text);
}

/* Roughness is measured only if the first plan is not cheap without it: the measurement takes time itself. */
mercer_status mrc_trainer_make_plan(mrc_trainer *self)
{
    mrc_plan *plan = &self->job.plan;
    mrc_reason reason;
    mercer_status status = mrc_make_plan(plan, &self->request, &reason);
    bool cheap = status == MERCER_OK && plan->public_plan.seconds <= plan->solver->cheap;
    if (lacks_roughness(self) && !cheap) {
        MRC_TRY(measure_roughness(self));
        status = mrc_make_plan(plan, &self->request, &reason);
    }
    if (status != MERCER_OK) return mrc_fail_with(self->job.context, &reason);
    mrc_trainer_warn_of_plan(self);
    /* keep the budget, because free memory changes during training but the plan must not */
    self->request.budget = plan->budget;
    return MERCER_OK;
}

mercer_status mrc_trainer_refine(mrc_job *job, int64_t critical_batch, bool rows_known, mercer_dtype points)
{
    mrc_plan_request request = ((mrc_trainer *)job)->request;
    request.critical_batch = critical_batch, request.rows_known = rows_known, request.points = points;
    mrc_reason reason;
    return mrc_refine_plan(&job->plan, &request, &reason) == MERCER_OK ? MERCER_OK
                                                                       : mrc_fail_with(job->context, &reason);
}

mercer_status mrc_trainer_plan(mrc_trainer *self, const mercer_source *source)
{
    mrc_job *job = &self->job;
    mrc_sample_stream stream;
    self->planned = false;
    mrc_trainer_tear_down(self);
    MRC_TRY(mrc_sample_stream_open(&stream, job->context, source, job->target.z->cols, job->target.weights->cols));
    stream.trusted = self->trusted_source, stream.new_points = self->new_points;
    MRC_TRY(mrc_trainer_begin_plan(self, source->rows, source->dtype));
    if (job->resuming) MRC_TRY(mrc_trainer_restore_plan(self));
    self->request.unevenness = mrc_data_stream_unevenness(source);
    MRC_TRY(look_at_samples(self, &stream));
    MRC_TRY(mrc_trainer_make_plan(self));
    MRC_TRY(mrc_trainer_agree_on_plan(self));
    self->planned = true;
    return MERCER_OK;
}
