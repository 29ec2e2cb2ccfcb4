/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a fit: how much samples, model and stream take, how much is left for training, and a plan that fits.
 * With M bytes in total, p centers with d features and c outputs, and v validation rows:
 *
 *     left = M - p (d s + c r) - v (d s + c t) - min(4 n (d s + c r), 64 MiB) - samples held in memory
 *
 * s, r, t are the sizes of a feature, a weight and a target in bytes. Samples and model are in host memory; device
 * memory is used for training only.
 */
#include "fit/fitting.h"

#include "backends/backend.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sets memory, on_device and device_each. The host budget is the option or half of the free memory. Several ranks with
   devices also agree on device_each, the smallest share of a rank; otherwise it stays 0. Collective. */
mercer_status mrc_fit_find_memory(mercer_fitting *self)
{
    mrc_backend *backend = self->context->backend;
    mercer_comm *comm = self->options->run.comm;
    mercer_comm_info info = {.struct_size = sizeof info};
    self->on_device = mrc_backend_memory(backend) != MRC_HOST;
    self->memory = self->options->run.memory > 0 ? self->options->run.memory : mrc_free_memory() / 2;
    self->report.memory = self->memory;
    if (!comm) return MERCER_OK;
    MRC_TRY(mercer_comm_query(comm, &info));
    /* Free memory differs between ranks, but all must make the same decisions. */
    if (self->options->run.memory == 0) MRC_TRY(mercer_comm_broadcast(comm, &self->memory, sizeof self->memory));
    self->report.memory = self->memory;
    if (info.ranks > 1) MRC_TRY(mrc_rank_memory(backend, comm, &self->device_each));
    self->report.device_memory = self->device_each;
    return MERCER_OK;
}

/* Returns the type of weights and class targets. */
static mercer_dtype real_type(const mercer_fitting *self)
{
    if (self->options->run.precision) return self->options->run.precision;
    return self->info.dtype == MERCER_F64 ? MERCER_F64 : MERCER_F32;
}

/* Returns the type of the targets. Values stay in double until training has subtracted their mean, because float would
   round the difference; class targets are 0 and 1, exact in any type. */
mercer_dtype mrc_fit_target_type(const mercer_fitting *self)
{
    return self->info.task == MERCER_TASK_CLASSIFICATION ? real_type(self) : MERCER_F64;
}

/* Returns the bytes of a preprocessed sample and its target. */
static double row_bytes(const mercer_fitting *self, mercer_dtype target)
{
    return (double)mrc_fit_width(self) * (double)mrc_dtype_size(self->report.points) +
           (double)self->info.outputs * (double)mrc_dtype_size(target);
}

/* Returns the number of validation rows to score: all, or evenly spaced rows if all of them would take more than a
   quarter of the memory. */
int64_t mrc_fit_validation_rows(const mercer_fitting *self)
{
    const mercer_dataset *held = self->validation;
    if (!held || !self->watched) return 0;
    mercer_dtype dtype = mrc_preprocess_dtype(self->applied, held->dtype);
    int64_t row =
        mrc_fit_width(self) * mrc_dtype_size(dtype) + held->outputs * mrc_dtype_size(mrc_fit_target_type(self));
    return mrc_min(held->rows, self->memory / 4 / row + 1);
}

/* Returns whether the library stores the samples in its own memory: they are neither mapped, nor borrowed from the
   caller, nor computed. */
static bool is_held(const mercer_fitting *self)
{
    if (self->data) return !self->data->synth && !self->data->borrowed && !self->info.mapped;
    return !self->info.mapped && (!self->info.format || strcmp(self->info.format, "synthetic") != 0);
}

/* Returns the sizes of a training run with p centers, for the planner. Once the stream is open, `samples` is the number
   of samples that it delivers, which may exceed the number of rows with augmentation. */
static mercer_shape shape_of(const mercer_fitting *self, int64_t p)
{
    return (mercer_shape){
        .struct_size = sizeof(mercer_shape),
        .samples = self->source.rows > 0 ? self->source.rows : self->info.rows,
        .centers = p,
        .features = mrc_fit_width(self),
        .outputs = mrc_max(1, self->info.outputs),
        .points = self->report.points,
        .weights = self->options->run.precision,
        .shards = self->options->run.comm ? mrc_comm_shards(self->options->run.comm, p) : self->options->run.shards,
        .on_samples = self->record.converge == MERCER_ON && mrc_fit_all_rows_count(self) ? MERCER_ON : MERCER_AUTO};
}

/* Plans p centers within a number of bytes, from sizes only. An unset ridge has no influence on sizes. */
static mercer_status plan_within(const mercer_fitting *self, int64_t p, int64_t memory, mercer_plan *plan,
                                 mrc_reason *reason)
{
    const mrc_machine machine = mrc_machine_of(self->context);
    mercer_train_options options = mrc_fit_train_options(self);
    mercer_shape shape = shape_of(self, p);
    mrc_plan full;
    options.memory = memory, options.lambda = fmax(options.lambda, 0);
    MRC_TRY(mrc_plan_shape(&full, &machine, &shape, &options, reason));
    *plan = full.public_plan;
    return MERCER_OK;
}

/* Returns the bytes that each rank needs for a plan. plan->bytes counts one process with all data, so the other ranks'
   shares are subtracted. With polishing, each rank is assumed to need all of plan->bytes. */
static double held_by_a_rank(const mercer_fitting *self, int64_t p, const mercer_plan *plan, int count)
{
    mercer_rank_plan ranks = {.struct_size = sizeof ranks};
    mercer_network network = {.struct_size = sizeof network, .ranks = count, .bytes_per_second = 1e9};
    mercer_shape shape = shape_of(self, p);
    network.shards = shape.shards;
    if (!shape.weights) shape.weights = plan->precision;
    if (self->request->train.polish > 0 ||
        mercer_plan_ranks(self->context, &ranks, plan, &shape, &network) != MERCER_OK)
        return (double)plan->bytes;
    return (double)plan->bytes - (count - 1) * ranks.shared_bytes;
}

/*
 * Plans for several devices. Their memory is not one pool: the bytes of each rank must fit its device. Sets *memory to
 * the given budget of all ranks. Without a given budget, finds the largest budget for which each rank's part fits, by
 * reducing the budget in steps of an eighth. Fails with MERCER_ERROR_MEMORY if no budget fits.
 */
static mercer_status plan_on_devices(const mercer_fitting *self, int64_t p, mercer_plan *plan, int64_t *memory,
                                     mrc_reason *reason)
{
    *reason = (mrc_reason){.status = MERCER_ERROR_COMM, .field = "", .text = "the ranks cannot be counted"};
    mercer_comm_info info = {.struct_size = sizeof info};
    MRC_TRY(mercer_comm_query(self->options->run.comm, &info));
    int64_t given = self->options->run.memory;
    *memory = given > 0 ? given : self->device_each * info.ranks;
    for (;;) {
        mercer_status status = plan_within(self, p, *memory, plan, reason);
        if (status != MERCER_OK || held_by_a_rank(self, p, plan, info.ranks) <= (double)self->device_each)
            return status;
        if (given > 0 || *memory <= self->device_each)
            return mrc_refuse(reason, "memory", MERCER_ERROR_MEMORY, "the plan does not fit the devices");
        *memory = mrc_max(*memory / 8 * 7, self->device_each);
    }
}

/* For training on one device, returns the option `memory` unchanged (0: the planner's default), because samples and
   model are in host memory. For several devices, returns the budget of all ranks, or 0 if no plan fits. */
int64_t mrc_fit_memory_left(const mercer_fitting *self, int64_t p)
{
    enum {
        LEAST = 1 << 20,
        STREAM = 64 << 20
        /* LEAST: smallest result, which the planner reports as too small. STREAM: largest buffers of a stream */
    };
    if (self->device_each > 0) {
        mercer_plan plan;
        int64_t memory = 0;
        mrc_reason reason;
        return plan_on_devices(self, p, &plan, &memory, &reason) == MERCER_OK ? memory : 0;
    }
    if (self->on_device) return self->options->run.memory;
    double row = row_bytes(self, real_type(self)), stream = 4 * row * (double)self->info.rows;
    double bytes = row * (double)p + row_bytes(self, mrc_fit_target_type(self)) * (double)mrc_fit_validation_rows(self);
    bytes += stream < STREAM ? stream : STREAM;
    if (is_held(self)) bytes += (double)self->info.bytes;
    double left = (double)self->memory - bytes;
    return left < LEAST ? LEAST : (int64_t)left;
}

/* Plans p centers in the memory that is left. A failure is returned in *reason and does not set the error of the
   context. */
static mercer_status try_plan(const mercer_fitting *self, int64_t p, mercer_plan *plan, mrc_reason *reason)
{
    int64_t memory;
    if (self->device_each > 0) return plan_on_devices(self, p, plan, &memory, reason);
    return plan_within(self, p, mrc_fit_memory_left(self, p), plan, reason);
}

bool mrc_fit_try_plan(const mercer_fitting *self, int64_t p, mercer_plan *plan)
{
    mrc_reason reason;
    return try_plan(self, p, plan, &reason) == MERCER_OK;
}

/* A predicate of mrc_plan_largest, which finds the largest p with a plan. */
static bool plan_fits(void *user, int64_t p)
{
    mercer_plan plan;
    return mrc_fit_try_plan(user, p, &plan);
}

/* Formats a count with thousands separators: 1,000,000. */
static const char *count_text(char text[32], int64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count), out = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

/* Fails because p centers do not fit. The message has the largest number of centers that fits. */
static mercer_status refuse(mercer_fitting *self, int64_t p)
{
    char bytes[MRC_BYTES_TEXT], asked[32];
    int64_t most = mrc_plan_largest(p, plan_fits, self);
    self->report.largest_centers = most > 0 ? most : -1;
    mrc_bytes_text(bytes, self->device_each > 0 ? self->device_each : self->memory);
    if (most == 0)
        return mrc_fail(self->context, MERCER_ERROR_MEMORY, "%s: the memory is too small for any number of centers",
                        bytes);
    return mrc_fail(self->context, MERCER_ERROR_MEMORY,
                    "%s centers do not fit into the memory of %s%s; use at most about %lld", count_text(asked, p),
                    bytes, self->device_each > 0 ? " per device" : "", (long long)most);
}

mercer_status mrc_fit_plan(mercer_fitting *self, int64_t p, mercer_plan *plan)
{
    mercer_plan own;
    mrc_reason reason;
    mercer_status status = try_plan(self, p, plan ? plan : &own, &reason);
    if (status == MERCER_OK) return MERCER_OK;
    /* For one device the planner's message already has the largest number of centers that fits. */
    bool one_device = self->on_device && self->device_each == 0;
    return status == MERCER_ERROR_MEMORY && !one_device ? refuse(self, p) : mrc_fail_with(self->context, &reason);
}
