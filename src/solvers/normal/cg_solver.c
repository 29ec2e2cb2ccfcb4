/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conjugate gradients as a solver: the choice of the preconditioner, the cost of a step, and training. Also polishing:
 * a few steps of conjugate gradients that start from the result of the iterative solvers.
 *
 *   with a factor    1 or 2 p^2 doubles;  2 n p d + 1/3 or 2/3 p^3 + steps (4 n p c + 4 p^2 c) flops
 *   polynomial       p^2 halves or floats and 2 p q, all of it divided among ranks;
 *                    2 n p d + 2 p (p + s) (d + q) + steps (4 n p c + 4 k p^2 c) flops
 */
#include "solvers/normal/exact_job.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/normal/exact_solvers.h"

#include <math.h>

enum {
    STEPS = 30, /* maximum number of steps; tolerance and slack usually end a run earlier */
    /* p / s above which the exact factor is not used with several shards, because the factor is large */
    SHARED_SAMPLES = 4,
    FEWEST_SAMPLE = 500,    /* minimum number of centers that define a coarse space, unless there are fewer centers */
    LARGEST_SAMPLE = 3000,  /* maximum number of centers that define a coarse space */
    FEWEST_READ_ROWS = 256, /* minimum number of rows per batch; with fewer rows products are slow */
    /* size of a batch's block of K that stays in the last-level cache of common processors */
    READ_BLOCK_BYTES = 24 << 20,
    HALF_CACHE_BYTES = 256 << 20 /* a cache of K(X,Z) above this size is in half precision */
};

/* Roughness above which half precision and a polynomial are as good as float and a factor: the small eigenvalues of
   K(Z,Z) are then large enough for half precision, and for a polynomial to approximate. */
#define ROUGH 0.25
/* The exact preconditioner is used if its estimated time is at most this multiple of the polynomial's time, because it
   needs fewer steps. On MNIST with 10,000 centers its set-up takes longer than the steps it saves. */
#define PREFER_EXACT 1.1
/* Steps end when the relative preconditioned gradient is below TOLERANCE, or when the objective can decrease by at most
   a fraction SLACK. TOLERANCE is the effective criterion if targets have no noise. Measured with 20 % of the training
   rows held out: SLACK 1e-2 instead of 1e-3 takes 15 steps instead of 20 on kin40k, 6 instead of 8 on housing, and 6
   instead of 9 on letter; R2 and accuracy change by at most .0001. SLACK is not used with a given number of steps, nor
   in polishing. */
#define TOLERANCE 1e-4
#define SLACK     1e-2

/* ---- Plan and cost ------------------------------------------------------------------------------------------- */

/* Return the number of rows per batch. On the host the number is small enough that the batch's block of K stays in the
   processor's cache between its two products. */
static int64_t read_rows(const mrc_planner *planner)
{
    const mrc_problem *problem = &planner->problem;
    int64_t rows = MRC_READ_ROWS;
    while (!planner->device && rows > FEWEST_READ_ROWS && rows * problem->p * problem->real_size > READ_BLOCK_BYTES)
        rows /= 2;
    return mrc_min(rows, problem->n);
}

/* Return the number of steps until the slack is reached, for a ridge l per sample: l^-0.14. Measured: adult 4
   (l about 9e-5), housing 6 (1e-6), letter 6 (7e-7), kin40k 15 (1e-8). */
static double expected_steps(const mercer_plan *plan, double samples)
{
    double ridge = plan->lambda / fmax(samples, 1), steps = ridge > 0 ? ceil(pow(ridge, -0.14)) : 12;
    return fmin((double)plan->epochs, fmax(steps, 2));
}

/* Return the bytes that CG holds with a preconditioner. Set *seconds to the time to create the preconditioner and to
   apply it in all steps. */
static double preconditioner_bytes(const mrc_planner *planner, const mrc_preconditioner_sizes *sizes, double *seconds)
{
    mrc_cost once, each;
    mrc_exact_cg_cost(&planner->problem, planner->public_plan->batch, planner->options->lambda, sizes, &once, &each);
    double bytes = mrc_bytes_sum(once.held);
    mrc_cost_repeat(&once, &each, expected_steps(planner->public_plan, (double)planner->problem.n));
    *seconds = mrc_plan_seconds(planner, &once);
    return bytes;
}

/* Choose the exact factor if it fits and is not much slower. With several shards a large factor is avoided, because
   every rank would need all of it. The number of shards decides, because results must not depend on the number of
   ranks. The polynomial stores K(Z,Z) in half precision only if nothing else uses the stored matrix; products with a
   ridge term do. */
static void choose_preconditioner(mrc_planner *planner)
{
    const mrc_plan_request *request = planner->request;
    int64_t s = mrc_max(FEWEST_SAMPLE, mrc_min(request->p / 15, LARGEST_SAMPLE));
    bool half = request->real == MERCER_F32 && request->bounded && planner->options->lambda == 0;
    bool rough = request->roughness >= ROUGH;
    const mrc_preconditioner_sizes factor = {0}, polynomial = {.sample = s,
                                                               .basis = s * 3 / 10,
                                                               .stored = half ? MERCER_F16 : request->real};
    double factor_seconds, polynomial_seconds;
    double exact = preconditioner_bytes(planner, &factor, &factor_seconds);
    double other = preconditioner_bytes(planner, &polynomial, &polynomial_seconds);
    bool slow = rough && request->p > 2 * s && factor_seconds > PREFER_EXACT * polynomial_seconds;
    bool shared = rough && request->p > SHARED_SAMPLES * s && request->shards > 1;
    /* The other half of the budget is left to the cache of K(X,Z), which every step reads. */
    bool large = exact > (double)planner->plan->budget / 2 && other < exact;
    if (slow || shared || large) planner->plan->preconditioner_sizes = polynomial;
}

/* Choose the batch, the steps, the preconditioner and the caching that the planner should grant. */
static mercer_status choose_cg(mrc_planner *planner)
{
    const mrc_plan_request *request = planner->request;
    mercer_plan *plan = planner->public_plan;
    const mrc_preconditioner_sizes *sizes = &planner->plan->preconditioner_sizes;
    plan->batch = read_rows(planner);
    plan->epochs = planner->options->epochs > 0 ? planner->options->epochs : STEPS;
    choose_preconditioner(planner);
    plan->nystrom = sizes->sample, plan->eigenpairs = sizes->basis;
    plan->cache_centers = sizes->stored == MERCER_F16 ? MRC_CACHE_HALF : 1;
    int64_t block = plan->batch * request->p * planner->problem.real_size;
    /* Large caches are limited by memory bandwidth: half the bytes take half the time (for the loss of accuracy see
       spd.h). */
    planner->caching = (mrc_caching){.block = block,
                                     .block_with_cache = block,
                                     .repeated = true,
                                     .half = request->roughness >= ROUGH,
                                     .half_from = HALF_CACHE_BYTES};
    return MERCER_OK;
}

/* Describe the final choices in the plan's text, when it is known what is cached. */
static void describe_cg(mrc_planner *planner)
{
    const mrc_preconditioner_sizes *sizes = &planner->plan->preconditioner_sizes;
    mercer_plan *plan = planner->public_plan;
    mrc_plan_say(plan, "reads batches of %lld%s\n", (long long)plan->batch,
                 plan->cache_data == MRC_CACHE_HALF ? ", K(X,Z) cached in half precision"
                 : plan->cache_data                 ? ", K(X,Z) cached"
                                                    : "");
    if (sizes->basis > 0)
        mrc_plan_say(plan,
                     "preconditioner: K(Z,Z) in %s, q = %lld directions from s = %lld centers, and a polynomial\n",
                     mrc_dtype_name(sizes->stored), (long long)sizes->basis, (long long)sizes->sample);
}

static void cg_cost(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    const mercer_plan *sizes = &plan->public_plan;
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size;
    out->epochs = expected_steps(sizes, (double)problem->n);
    out->batches = ceil((double)problem->n / fmax((double)sizes->batch, 1));
    out->projections = 1, out->all_projections = out->epochs;
    double m = (double)problem->n / out->batches;
    mrc_exact_cg_cost(problem, sizes->batch, sizes->lambda, &plan->preconditioner_sizes, &out->set_up,
                      &out->projection);
    out->set_up.held.shared += 3 * p * c * e; /* weights, best weights, and a copy in transit to the model */
    out->set_up.state = 4 * 8 * p * c;        /* alpha, best alpha, residual, direction */
    out->batch.flops = 2 * m * p * ((sizes->cache_data ? 0 : mrc_problem_features(problem)) + 2 * c);
    if (sizes->cache_data)
        out->batch.read = m * p * mrc_problem_reads(problem, sizes->cache_data == MRC_CACHE_HALF ? 2 : e, 2);
    mrc_cost_sums(&out->batch, problem, m * c * e, 1);
    /* messages: whether weights are finite, and the decisions that ranks make together after a step */
    mrc_cost_flags(&out->projection, problem, 4);
}

/* ---- Training ------------------------------------------------------------------------------------------------ */

/* Monitor: pass the progress of a step to the trainer; return true to stop. */
static bool watch_cg(void *user, int64_t step, double relative_gradient, double loss)
{
    mrc_job *job = user;
    mrc_exact_job *self = job->state;
    mercer_progress progress = {.epoch = step,
                                .epochs = self->steps,
                                .train_loss = loss / (double)self->alpha.cols,
                                .train_accuracy = NAN,
                                .projection_residual = relative_gradient};
    job->samples += job->n;
    job->report.epochs = job->epoch = step;
    job->report.train_loss = progress.train_loss;
    self->status = job->host->end_epoch(job, &self->alpha, &progress, &self->stop);
    return self->status != MERCER_OK || self->stop != 0;
}

/* Save the state through the trainer, which decides whether saving is due. */
static mercer_status save_cg_state(void *user, bool now)
{
    mrc_job *job = user;
    return job->host->save(job, mrc_exact_weights(job), now ? MRC_SAVE_NOW : MRC_SAVE_EPOCH);
}

static mercer_status restore_cg_state(void *user)
{
    mrc_job *job = user;
    return job->host->restore(job);
}

static void list_cg(mrc_job *job, mrc_state *state)
{
    mrc_exact_cg_list(&((mrc_exact_job *)job->state)->exact, state);
}

/* Train: all steps in one call. Slack is used only if the user did not set a number of steps. */
static mercer_status run_cg(mrc_job *job)
{
    mrc_exact_job *self = job->state;
    mrc_exact_solver *exact = &self->exact;
    *exact = mrc_exact_of(job, &job->kernel_blocks);
    exact->steps = self->steps = job->plan.public_plan.epochs;
    exact->tolerance = TOLERANCE, exact->slack = job->options.epochs > 0 ? 0 : SLACK;
    exact->preconditioner_sizes = job->plan.preconditioner_sizes;
    exact->monitor = watch_cg, exact->save = save_cg_state, exact->restore = job->resuming ? restore_cg_state : NULL;
    exact->monitor_user = exact->save_user = job;
    MRC_TRY(mrc_exact_run(job, exact, &self->alpha, mrc_exact_cg));
    MRC_TRY(self->status);
    job->report.stopped = job->stream.stopped ? MERCER_STOP_CALLBACK : self->stop;
    job->report.epochs = exact->steps_done;
    job->report.projection_residual_last = exact->relative_gradient;
    job->report.train_loss = exact->loss / (double)self->alpha.cols;
    return MERCER_OK;
}

const mrc_solver_ops mrc_cg_ops = {.choose = choose_cg,
                                   .complete_plan = describe_cg,
                                   .cost = cg_cost,
                                   .create = mrc_exact_create,
                                   .run = run_cg,
                                   .list = list_cg,
                                   .weights = mrc_exact_weights,
                                   .destroy = mrc_exact_destroy};

/* ---- Polishing ----------------------------------------------------------------------------------------------- */

mrc_bytes mrc_polish_bytes(const mrc_problem *problem, double lambda)
{
    mrc_cost once, each;
    int64_t rows = mrc_min(MRC_READ_ROWS, problem->n);
    mrc_exact_cg_cost(problem, rows, lambda, &(mrc_preconditioner_sizes){0}, &once, &each);
    once.held.replicated += (double)(rows * problem->c * (int64_t)sizeof(double)); /* a batch of targets */
    return once.held;
}

mercer_status mrc_polish(mrc_job *job, const mercer_matrix *alpha)
{
    /* Create new kernel blocks: the kernel blocks of the iteration have small batches, and passes are faster with large
       batches. */
    MRC_OWNED(mrc_kernel_blocks_destroy) mrc_kernel_blocks kernel_blocks = {0};
    int64_t rows = mrc_min(MRC_READ_ROWS, job->n);
    int64_t batch_block_bytes =
        mrc_min(job->plan.batch_block_bytes, rows * job->centers.p * mrc_dtype_size(job->centers.real));
    MRC_TRY(mrc_kernel_blocks_create(&kernel_blocks, &job->centers, rows, batch_block_bytes,
                                     job->plan.public_plan.cache_data ? job->n : 0, job->centers.real));
    mrc_exact_solver exact = mrc_exact_of(job, &kernel_blocks);
    exact.steps = job->options.polish, exact.tolerance = TOLERANCE;
    job->announces = true; /* reports the set-up of the preconditioner */
    MRC_TRY(mrc_exact_run(job, &exact, alpha, mrc_exact_cg));
    job->report.stopped = job->stream.stopped ? MERCER_STOP_CALLBACK : MERCER_STOP_FINISHED;
    return MERCER_OK;
}
