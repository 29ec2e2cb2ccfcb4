/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: plans and trainers.
 *
 * Options are checked by the planner (mrc_plan_check_options). It returns failures as values, because it also plans
 * alternatives that may fail. Here a failure becomes the error of the context.
 */
#include "plan/plan.h"
#include "training/trainer.h"

#include "api/api_options.h"
#include "backends/backend.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "model/model.h"

#include <math.h>

/* ---- Options and plan ---------------------------------------------------------------------------------------- */

/* The kind follows from the traits of the solver's entry in the table of solvers: steps over batches, epochs over all
   samples, or neither. */
mercer_solver_kind mercer_solver_kind_of(const char *name)
{
    const mrc_solver *row = mrc_solver_find(name);
    if (!row) return MERCER_SOLVER_NONE;
    if (row->traits & MRC_USES_STEPS)
        return row->traits & MRC_NEEDS_SAMPLES ? MERCER_SOLVER_ON_SAMPLES : MERCER_SOLVER_BATCHES;
    return row->traits & MRC_USES_EPOCHS ? MERCER_SOLVER_STEPS : MERCER_SOLVER_DIRECT;
}

/* Writes an entry of the list of solvers or projectors to the caller's struct. Returns 1, or 0 if the struct is NULL or
   has no valid struct_size. Lists have no context, so the message belongs to the calling thread. */
static int describe_plan(mercer_solver_info *out, const char *name, const char *description, mercer_solver_kind kind)
{
    const mercer_solver_info info = {sizeof info, name, description, kind};
    return mrc_write_struct(NULL, out, &info, MRC_STRUCT(mercer_solver_info), "out") == MERCER_OK;
}

int mercer_solver_list(mercer_solver_info *out, int index)
{
    const mrc_solver *row = mrc_solver_row(index);
    return row && describe_plan(out, row->name, row->description, mercer_solver_kind_of(row->name));
}

int mercer_projector_list(mercer_solver_info *out, int index)
{
    const mrc_projector_ops *row = mrc_projector_row(index);
    return row && describe_plan(out, row->name, row->description, MERCER_SOLVER_NONE);
}

/* Checks that weights (n), if any, are finite, not negative, and not all 0. */
static mercer_status check_validation_weights(mercer_context *context, const double *weights, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; weights && i < n; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return mrc_fail(context, MERCER_ERROR_DATA,
                            "validation_weights: element %lld (from 0) is %g; it must be at least 0", (long long)i,
                            weights[i]);
        sum += weights[i];
    }
    if (!weights || (sum > 0 && isfinite(sum))) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA, "validation_weights: the sum is %g; it must be above 0", sum);
}

/* Checks the validation set, and that there is a validation set if an option requires one. validation_X has
   preprocessed rows, so it is compared with the columns of the centers, not with the features of the model. Its kernel
   values must not overflow. */
static mercer_status check_validation(mercer_model *model, const mercer_train_options *options)
{
    mercer_context *context = model->context;
    const mercer_matrix *X = options->validation_X, *Y = options->validation_Y;
    if (!X && !Y) {
        if (options->validation_weights)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: validation_weights needs validation_X");
        if (options->patience > 0)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: patience needs validation_X and validation_Y");
        return MERCER_OK;
    }
    if (!X || !Y)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is NULL", X ? "validation_Y" : "validation_X");
    MRC_TRY(mrc_check_matrix(context, "validation_X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "validation_Y", Y, MRC_ACCEPT_REAL));
    if (X->rows == 0) return mrc_fail(context, MERCER_ERROR_SHAPE, "validation_X has no rows");
    MRC_TRY(mrc_check_size(context, "validation_X", X, X->rows, model->centers.cols));
    MRC_TRY(mrc_check_size(context, "validation_Y", Y, X->rows, model->weights.cols));
    MRC_TRY(mrc_kernel_check_range(context, &model->kernel, "validation_X", X,
                                   mrc_value_dtype(X, &model->centers, &model->weights, NULL)));
    MRC_TRY(mrc_check_finite(context, "validation_Y", Y, NULL));
    return check_validation_weights(context, options->validation_weights, X->rows);
}

static mercer_status read_options(mercer_context *context, mercer_train_options *ours,
                                  const mercer_train_options *theirs)
{
    MRC_TRY(mrc_read_struct(context, ours, MRC_STRUCT(mercer_train_options), theirs, "options"));
    mrc_reason reason;
    return mrc_plan_check_options(ours, &reason) == MERCER_OK ? MERCER_OK : mrc_fail_with(context, &reason);
}

mercer_status mercer_plan_shape(mercer_context *context, mercer_plan *out, const mercer_shape *shape,
                                const mercer_train_options *options)
{
    MRC_TRY(mrc_context_ready(context));
    mercer_train_options chosen;
    mercer_shape ours;
    MRC_TRY(read_options(context, &chosen, options));
    MRC_TRY(mrc_read_shape(context, &ours, shape));
    const mrc_machine machine = mrc_machine_of(context);
    mrc_plan plan;
    mrc_reason reason;
    if (mrc_plan_shape(&plan, &machine, &ours, &chosen, &reason) != MERCER_OK) return mrc_fail_with(context, &reason);
    return mrc_write_struct(context, out, &plan.public_plan, MRC_STRUCT(mercer_plan), "out");
}

/* The caller's plan is not trusted: its solver must exist. With shards 0 the number is automatic, and 1,024 is the
   largest automatic number (comm/comm.c), so additional ranks would have no shard. */
mercer_status mercer_plan_ranks(mercer_context *context, mercer_rank_plan *out, const mercer_plan *plan,
                                const mercer_shape *shape, const mercer_network *network)
{
    MRC_TRY(mrc_context_ready(context));
    mercer_shape sizes;
    mercer_plan planned;
    mercer_network wire;
    mercer_rank_plan result;
    if (!plan || !network) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "plan or network is NULL");
    MRC_TRY(mrc_read_shape(context, &sizes, shape));
    MRC_TRY(mrc_read_struct(context, &planned, MRC_STRUCT(mercer_plan), plan, "plan"));
    MRC_TRY(mrc_read_struct(context, &wire, MRC_STRUCT(mercer_network), network, "network"));
    if (wire.ranks < 1 || wire.shards < 0 || (wire.shards > 0 && wire.shards < wire.ranks) ||
        !(wire.bytes_per_second > 0) || !(wire.latency >= 0) || wire.validation_rows < 0)
        return mrc_fail(
            context, MERCER_ERROR_ARGUMENT,
            "network: ranks %d and bytes_per_second %g must be above 0, shards %d at least the number of ranks, "
            "latency %g and validation_rows %lld not negative",
            wire.ranks, wire.bytes_per_second, wire.shards, wire.latency, (long long)wire.validation_rows);
    if (wire.shards == 0 && wire.ranks > 1024)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "network: more than 1024 ranks need at least one shard per rank; set shards");
    if (!mrc_solver_find(planned.solver))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "plan: solver '%.15s' is unknown", planned.solver);
    mrc_backend *backend = context->backend;
    mrc_plan_ranks(&result, &planned, &sizes, &wire, backend->ops->capabilities(backend, false).float_factors);
    return mrc_write_struct(context, out, &result, MRC_STRUCT(mercer_rank_plan), "out");
}

/* ---- Trainer ------------------------------------------------------------------------------------------------- */

/* Sets *comm to the communicator of a shared model. If the caller passes a communicator, it must be that of the model.
   A model without a communicator accepts a communicator of a single rank, because that rank has all centers. */
static mercer_status find_comm(const mercer_model *model, mercer_comm **comm)
{
    if (*comm && (*comm)->ranks > 1 && model->comm != *comm)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT,
                        "comm: the model is not shared among the ranks of comm; create the model with comm");
    if (*comm && model->comm && model->comm != *comm)
        return mrc_fail(model->context, MERCER_ERROR_ARGUMENT,
                        "comm: the model is shared among the ranks of "
                        "another comm");
    if (!*comm) *comm = model->comm;
    return MERCER_OK;
}

/* Allocates the model's plan. Reports point to this plan, so that they stay valid after the trainer is released. */
static mercer_status allocate_plan(mercer_model *model)
{
    if (model->plan) return MERCER_OK;
    return mrc_alloc_zero(model->context, &model->plan, 1, sizeof *model->plan, "the plan of a report");
}

/* The order matters: options are complete before the validation set is compared with the model, and the model changes
   last (plan, device copy). lambda -1 means a training run without ridge; the trainer expects 0 for that. */
mercer_status mercer_trainer_create(mercer_trainer **out, mercer_model *model, mercer_comm *comm,
                                    const mercer_train_options *options)
{
    mercer_context *context = model ? model->context : NULL;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    if (model->member_count > 1)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "model is the mean of %lld models, which cannot be trained further; fit a model with an effort "
                        "of at most 3",
                        (long long)model->member_count);
    mercer_train_options chosen;
    MRC_TRY(read_options(context, &chosen, options));
    MRC_TRY(check_validation(model, &chosen));
    if (chosen.lambda < 0) chosen.lambda = 0;
    MRC_TRY(find_comm(model, &comm));
    MRC_TRY(allocate_plan(model));
    mrc_model_drop_device_copy(
        model); /* training has its own copy of the centers on the device, and needs the memory */
    return mrc_trainer_create(out, model, comm, &chosen);
}

/* The device-resident samples are released while the trainer still exists, because it owns their source. */
void mercer_trainer_free(mercer_trainer *trainer)
{
    if (!trainer) return;
    mrc_trainer_drop_samples(trainer);
    mrc_trainer_free(trainer);
}

mercer_status mercer_trainer_resume(mercer_trainer *trainer, const char *path)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    if (!path) return mrc_fail(trainer->job.context, MERCER_ERROR_ARGUMENT, "path is NULL");
    return mrc_trainer_open_checkpoint(trainer, path);
}

mercer_status mercer_trainer_checkpoint(mercer_trainer *trainer)
{
    /* Any thread may call this, but the context belongs to the training thread: do not touch its error message. */
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    if (!*trainer->texts[MRC_TEXT_PATH])
        return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "the trainer was created without options.checkpoint");
    atomic_store(&trainer->save_requested, true);
    return MERCER_OK;
}

mercer_status mercer_trainer_spectrum(const mercer_trainer *trainer, double *values, int64_t capacity, int64_t *count)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    if (capacity < 0 || (!values && capacity > 0))
        return mrc_fail(trainer->job.context, MERCER_ERROR_ARGUMENT, "values is NULL, or capacity is negative");
    for (int64_t i = 0; i < capacity && i < trainer->job.spectrum_count; i++) values[i] = trainer->job.spectrum[i];
    if (count) *count = trainer->job.spectrum_count;
    return MERCER_OK;
}

mercer_status mercer_trainer_plan(mercer_trainer *trainer, mercer_plan *out, const mercer_source *source)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mercer_context *context = trainer->job.context;
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_trainer_on_samples(trainer, source, mrc_trainer_plan));
    return mrc_write_struct(context, out, &trainer->job.plan.public_plan, MRC_STRUCT(mercer_plan), "out");
}

/* The copy of the samples on a device is released even after a failure, because it must not outlive the caller's
   source. */
mercer_status mercer_trainer_fit(mercer_trainer *trainer, const mercer_source *source, mercer_report *report)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mercer_status status = mrc_trainer_on_samples(trainer, source, mrc_trainer_fit);
    mrc_trainer_drop_samples(trainer);
    MRC_TRY(status);
    return report ? mrc_write_struct(trainer->job.context, report, &trainer->job.report, MRC_STRUCT(mercer_report),
                                     "report")
                  : MERCER_OK;
}

/* X has preprocessed rows, so it must have the columns of the centers. Its type is fixed by the first batch, for which
   the solver was planned and set up (job.ready). */
mercer_status mercer_trainer_step(mercer_trainer *trainer, const mercer_matrix *X, const mercer_matrix *Y,
                                  const double *weights)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mercer_context *context = trainer->job.context;
    mrc_backend *backend = context->backend;
    MRC_TRY(mrc_backend_check_matrix(backend, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_backend_check_matrix(backend, "Y", Y, MRC_ACCEPT_REAL));
    if (X->rows < 1) return mrc_fail(context, MERCER_ERROR_SHAPE, "X has no rows");
    MRC_TRY(mrc_check_size(context, "X", X, X->rows, trainer->job.target.z->cols));
    MRC_TRY(mrc_check_size(context, "Y", Y, X->rows, trainer->job.target.weights->cols));
    MRC_TRY(mrc_matrix_check_range(backend, trainer->job.target.kernel, "X", X,
                                   mrc_value_dtype(X, trainer->job.target.z, trainer->job.target.weights, NULL)));
    MRC_TRY(mrc_matrix_check_finite(backend, "Y", Y, NULL));
    MRC_TRY(mrc_check_weights(context, weights, X->rows));
    if (trainer->job.ready && X->dtype != trainer->request.points)
        return mrc_fail(context, MERCER_ERROR_DTYPE, "X is %s, but earlier batches were %s", mrc_dtype_name(X->dtype),
                        mrc_dtype_name(trainer->request.points));
    mercer_batch batch = {.X = *X, .Y = *Y, .weights = weights};
    mercer_status status = mrc_trainer_step(trainer, &batch);
    if (X->memory == MRC_HOST && Y->memory == MRC_HOST) return status;
    /* wait for the device, because the caller may reuse the batch when this function returns */
    mercer_status over = backend->ops->sync(backend);
    return status != MERCER_OK ? status : over;
}

mercer_status mercer_trainer_report(mercer_trainer *trainer, mercer_report *report)
{
    if (!trainer) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "trainer is NULL");
    mrc_trainer_fill_report(trainer);
    return mrc_write_struct(trainer->job.context, report, &trainer->job.report, MRC_STRUCT(mercer_report), "report");
}

/* ---- Defined in other folders ------------------------------------------------------------------------------------ */

mercer_status mercer_trainer_finish(mrc_trainer *self)
{
    return mrc_trainer_finish(self);
}

const mercer_option *mercer_train_option(int index)
{
    return mrc_train_option(index);
}
