/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoints: saving the state of a training run, and resuming from it.
 *
 * A state has everything that steps change: weights, sums since the last projection, temporary centers, averages, the
 * position in the samples, the watchdog. Set-up is repeated instead of saved: its eigensystems and factors are
 * deterministic functions of data, options and plan. They are large, and the values of the plan that determine the
 * result (sizes, choices, and the machine that they were made for) are part of the state. A resumed run restores the
 * values that it could choose differently (machine, solver, ridge, arithmetic), makes its plan, and must arrive at the
 * same values. Ranks compare their values in the same way.
 *
 * The file is a model file with additional tensors: state.plan (1, values) f64, state.names (2, 16) u8 (solver and
 * projector, padded with zeros), state.numbers and the matrices of the trainer's state list. Its model has the weights
 * that training would return at that moment, so it can be used for predictions. The caller's note is the note of that
 * model.
 */
#include "training/trainer.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "model/model_file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Limits for values of a checkpoint, which may be damaged: far above any machine, and exact as doubles. */
#define MOST_THREADS 1000000
#define MOST_BYTES   9e15
/* default seconds between checkpoints within an epoch: the work that an interruption can lose */
#define KEEP_SECONDS 600.0
#define MOST_SECONDS 1e10 /* limit of a training run's seconds: 300 years */

/* ---- The plan's values ------------------------------------------------------------------------------------------- */

/* The values, in the order of the file: new values are added at the end. A double holds 53 bits, so 64-bit numbers are
   two values. */
#define PLAN_VALUES(X)                                  \
    X(threads, request->threads)                        \
    X(budget, request->budget)                          \
    X(n, job->n)                                        \
    X(p, request->p)                                    \
    X(d, request->d)                                    \
    X(c, request->c)                                    \
    X(type, request->real)                              \
    X(shards, request->shards)                          \
    X(epochs, plan->epochs)                             \
    X(batch, plan->batch)                               \
    X(nystrom, plan->nystrom)                           \
    X(eigenpairs, plan->eigenpairs)                     \
    X(period, plan->period)                             \
    X(projector_nystrom, plan->projector_nystrom)       \
    X(projector_eigenpairs, plan->projector_eigenpairs) \
    X(projector_passes, plan->projector_passes)         \
    X(projector_block, plan->projector_block)           \
    X(carry, plan->carry)                               \
    X(average, plan->average)                           \
    X(decay, plan->decay)                               \
    X(cache_data, plan->cache_data)                     \
    X(cache_centers, plan->cache_centers)               \
    X(step_factor, plan->step_factor)                   \
    X(lambda, plan->lambda)                             \
    X(half_precision, job->plan.half_chosen)            \
    X(polish, job->options.polish)                      \
    X(patience, job->options.patience)                  \
    X(seed, (uint32_t)job->options.seed)                \
    X(seed_high, job->options.seed >> 32)               \
    X(targets, (uint32_t)targets)                       \
    X(targets_high, targets >> 32)

#define AS_INDEX(name, value) VALUE_##name,
#define AS_NAME(name, value)  #name,
#define AS_VALUE(name, value) (double)(value),

enum { PLAN_VALUES(AS_INDEX) VALUE_COUNT };
static const char *const value_names[] = {PLAN_VALUES(AS_NAME)};
_Static_assert(sizeof value_names / sizeof *value_names <= MRC_STATE_VALUES, "enough capacity for all values");

/* Lists the values of the current plan, in the order of PLAN_VALUES, and the names of solver and projector. */
static void list_plan(const mrc_trainer *self, mrc_state_plan *out)
{
    const mrc_job *job = &self->job;
    const mrc_plan_request *request = &self->request;
    const mercer_plan *plan = &job->plan.public_plan;
    /* A hash of the target transform: a checkpoint of a training run with other targets must not be resumed. */
    const uint64_t targets =
        mrc_units_given(job->target.units) ? mrc_units_print(job->target.units, job->target.weights->cols) : 0;
    const double values[] = {PLAN_VALUES(AS_VALUE)};
    memset(out, 0, sizeof *out);
    memcpy(out->values, values, sizeof values);
    out->count = VALUE_COUNT;
    snprintf(out->solver, sizeof out->solver, "%s", plan->solver);
    snprintf(out->projector, sizeof out->projector, "%s", plan->projector);
}

mercer_status mrc_trainer_agree_on_plan(const mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    struct {
        mrc_state_plan plan;
        char version[16], backend[16];
        double isa;
    } all;
    if (job->comm->ranks == 1) return MERCER_OK;
    memset(&all, 0, sizeof all); /* the padding is compared, too */
    list_plan(self, &all.plan);
    snprintf(all.version, sizeof all.version, "%s", mercer_version());
    snprintf(all.backend, sizeof all.backend, "%s", job->backend->ops->name);
    all.isa = (double)job->context->isa;
    return mrc_comm_agree(job->comm, "another plan, version or instruction set", &all, sizeof all);
}

/* ---- The list ------------------------------------------------------------------------------------------------ */

/* Lists the trainer's part of the state. Names are part of the file format. Bounds protect against damaged files. */
static void list_trainer(mrc_trainer *self, mrc_state *state)
{
    mrc_job *job = &self->job;
    mercer_report *report = &job->report;
    const double any = (double)INFINITY; /* losses may overflow before the watchdog halves the steps */
    const double most = 1 + 1e-9;        /* limit of an accuracy, with rounding error */
    const mrc_state_number numbers[] = {
        {"epoch", .integer = &job->epoch},
        {"pass_rows", .integer = &job->pass_rows},
        {"samples", .integer = &job->samples},
        {"since_best", .integer = &self->since_best},
        {"totals.rows", .integer = &job->totals.rows},
        {"halvings", .integer = &report->halvings},
        {"epochs", .integer = &report->epochs},
        {"seconds", .real = &self->saved_seconds, .high = MOST_SECONDS},
        {"best_score", .real = &self->best_score, .low = -any, .high = most, .unknown = true},
        {"watchdog.loss", .real = &job->watchdog.loss, .high = any, .unknown = true},
        {"watchdog.target", .real = &job->watchdog.target, .high = any, .unknown = true},
        {"watchdog.best", .real = &job->watchdog.best, .high = any, .unknown = true},
        {"watchdog.seen", .real = &job->watchdog.samples, .high = MRC_ROWS_MOST},
        {"totals.squared_error", .real = &job->totals.squared_error, .high = any, .unknown = true},
        {"totals.squared_target", .real = &job->totals.squared_target, .high = any, .unknown = true},
        {"totals.weighted_error", .real = &job->totals.weighted_error, .high = any, .unknown = true},
        {"totals.right", .real = &job->totals.right, .high = DBL_MAX},
        {"totals.weight", .real = &job->totals.weight, .high = DBL_MAX},
        {"heaviest", .real = &job->stream.heaviest, .high = DBL_MAX},
        {"train_loss", .real = &report->train_loss, .high = any, .unknown = true},
        {"train_accuracy", .real = &report->train_accuracy, .high = most, .unknown = true},
        {"validation_loss", .real = &report->validation_loss, .high = any, .unknown = true},
        {"validation_accuracy", .real = &report->validation_accuracy, .high = most, .unknown = true},
        {"have_best", .flag = &job->have_best}};
    mrc_state_add_numbers(state, numbers, sizeof numbers / sizeof *numbers);
    mercer_matrix none = mrc_view(NULL, 0, job->target.weights->cols, job->target.weights->dtype);
    mrc_state_add_field(state, "state.best", job->have_best && job->best.data ? &job->best : &none, job->target.p);
    list_plan(self, &state->plan);
}

/* Lists the trainer's state, then the solver's. */
static void list_all(mrc_trainer *self, mrc_state *state)
{
    memset(state, 0, sizeof *state);
    list_trainer(self, state);
    if (self->job.plan.solver->ops->list) self->job.plan.solver->ops->list(&self->job, state);
}

/* Replaces the matrices of the state by host copies with contiguous rows, as they are in a file. live: receives the
   original matrices. */
static mercer_status open_all(mrc_trainer *self, mrc_state *state, mercer_matrix *live)
{
    for (int i = 0; i < state->matrix_count; i++) {
        live[i] = state->matrices[i].value;
        state->matrices[i].value.data = NULL; /* nothing to close if opening this or an earlier matrix fails */
    }
    for (int i = 0; i < state->matrix_count; i++) {
        MRC_TRY(mrc_host_open(self->job.backend, &live[i], &state->matrices[i].value));
        if (state->matrices[i].temporary)
            mrc_temporary_centers_close_up(state->matrices[i].temporary, &state->matrices[i].value);
    }
    return MERCER_OK;
}

/* Frees the host copies; first copies them back to the original matrices if `changed`. Returns the first error. */
static mercer_status close_all(mrc_trainer *self, mrc_state *state, const mercer_matrix *live, bool changed,
                               mercer_status status)
{
    for (int i = 0; i < state->matrix_count; i++) {
        if (state->matrices[i].temporary)
            mrc_temporary_centers_spread(state->matrices[i].temporary, &state->matrices[i].value);
        status = mrc_host_close(self->job.backend, &live[i], &state->matrices[i].value, changed, status);
    }
    return status;
}

/* ---- Saving ------------------------------------------------------------------------------------------------------ */

/* Returns the index in the whole matrix of this rank's first row. Temporary centers are divided separately from the
   model's centers. */
static int64_t first_row(const mrc_trainer *self, const mrc_state_matrix *entry)
{
    return entry->temporary ? entry->first : self->model->first;
}

/* Writes the file atomically. weights (p, c): the model's weights if training ended now. With several ranks,
   collective. */
static mercer_status write_file(mrc_trainer *self, const mrc_state *state, const mercer_matrix *weights)
{
    mrc_tensor tensors[MRC_STATE_MATRICES + 3];
    double numbers[MRC_STATE_NUMBERS];
    mrc_state_plan plan = state->plan;
    const char *note = self->texts[MRC_TEXT_NOTE];
    char names[2][MRC_STATE_NAME];
    int count = 0;
    mrc_state_read_numbers(state, numbers);
    memcpy(names[0], plan.solver, sizeof plan.solver), memcpy(names[1], plan.projector, sizeof plan.projector);
    tensors[count++] =
        (mrc_tensor){.name = "state.numbers", .value = mrc_view(numbers, 1, state->number_count, MERCER_F64)};
    tensors[count++] = (mrc_tensor){.name = "state.plan", .value = mrc_view(plan.values, 1, plan.count, MERCER_F64)};
    tensors[count++] = (mrc_tensor){.name = "state.names", .value = mrc_view(names, 2, MRC_STATE_NAME, MERCER_U8)};
    bool shared = self->model->comm && self->model->comm->ranks > 1;
    for (int i = 0; i < state->matrix_count; i++) {
        const mrc_state_matrix *entry = &state->matrices[i];
        tensors[count++] = (mrc_tensor){.name = entry->name,
                                        .value = entry->value,
                                        .total = shared ? entry->total : 0,
                                        .first = first_row(self, entry)}; /* ignored if the matrix is not divided */
    }
    mercer_model current = *self->model; /* a shallow copy, with the current weights */
    current.members[0] = &current;
    current.weights = *weights;
    if (*note) current.note = (char *)note;
    return mrc_model_write(&current, self->texts[MRC_TEXT_PATH], NULL, tensors, count);
}

/* Writes a checkpoint from host copies of the state and of the weights. Everything that was opened is closed, also
   after a failure. */
static mercer_status save(mrc_trainer *self, mrc_state *state, const mercer_matrix *weights)
{
    mercer_matrix live[MRC_STATE_MATRICES], host = {0};
    mercer_status status = open_all(self, state, live);
    if (status == MERCER_OK) status = mrc_host_open(self->job.backend, weights, &host);
    if (status == MERCER_OK) status = write_file(self, state, &host);
    status = mrc_host_close(self->job.backend, weights, &host, false, status);
    return close_all(self, state, live, false, status);
}

/* Returns whether a checkpoint is due on this rank. At the end of an epoch one is due if writing takes at most a fifth
   of the time and at least a second has passed, or if writing takes at most a twentieth of the time: short fits on
   small models should not spend their time on checkpoints. Within an epoch only the time limit counts. */
static bool is_due(const mrc_trainer *self, mrc_save_moment moment)
{
    double most = self->job.options.checkpoint_seconds > 0 ? self->job.options.checkpoint_seconds : KEEP_SECONDS;
    double pause = fmin(20 * self->save_seconds, fmax(1, 5 * self->save_seconds));
    double since = mrc_seconds() - self->last_save;
    if (moment == MRC_SAVE_NOW || atomic_load(&self->save_requested)) return true;
    return self->job.comm->rank == 0 && (since >= most || (moment == MRC_SAVE_EPOCH && since >= pause));
}

/* Warns once when saving starts to fail, and logs once when it works again. Training continues in between. */
static void tell_failure(mrc_trainer *self, const mrc_reason *reason)
{
    bool failed = reason->status != MERCER_OK;
    if (failed && !self->save_failed)
        mrc_warn(self->job.context, "checkpoint",
                 "no checkpoint can be written after %" PRId64 " samples; training continues without one: %s",
                 self->job.samples, reason->text);
    if (!failed && self->save_failed)
        mrc_log(self->job.context, MERCER_LOG_WARNING, "checkpoints are written again, after %" PRId64 " samples",
                self->job.samples);
    self->save_failed = failed;
}

mercer_status mrc_trainer_save(mrc_job *job, const mercer_matrix *weights, mrc_save_moment moment)
{
    mrc_trainer *self = (mrc_trainer *)job;
    bool due;
    if (!*self->texts[MRC_TEXT_PATH]) return MERCER_OK;
    /* due by the clock of rank 0, or by a request to any rank */
    MRC_TRY(mrc_comm_any(self->job.comm, is_due(self, moment), &due));
    if (!due) return MERCER_OK;
    /* cleared before writing, so that a request during the write leads to another checkpoint */
    atomic_store(&self->save_requested, false);
    mrc_state state;
    double start = mrc_seconds();
    self->saved_seconds = self->earlier_seconds + start - self->start;
    list_all(self, &state);
    if (state.overflow) return mrc_fail(self->job.context, MERCER_ERROR_INTERNAL, "the state of training is too long");
    mercer_status status = save(self, &state, weights);
    self->last_save = mrc_seconds();
    self->save_seconds = self->last_save - start;
    if (moment == MRC_SAVE_NOW || (status != MERCER_OK && self->job.comm->broken)) return status;
    mrc_reason reason = mrc_take_error(self->job.context, status);
    tell_failure(self, &reason);
    return MERCER_OK;
}

/* ---- The file to resume from ------------------------------------------------------------------------------------- */

/* Checks that the checkpoint has the kernel and this rank's centers of the model, bit for bit: otherwise the resumed
   training would continue from weights of another model. */
static mercer_status check_model(const mrc_trainer *self, const mrc_tensor_file *file, const char *path)
{
    const mercer_matrix *z = &self->model->centers;
    mercer_matrix found;
    char kernel[512];
    const char *theirs = mrc_tensor_file_metadata(file, "kernel");
    MRC_TRY(mercer_kernel_print(self->job.context, kernel, sizeof kernel, NULL, &self->model->kernel));
    if (!theirs || strcmp(theirs, kernel) != 0)
        return mrc_fail(self->job.context, MERCER_ERROR_MISMATCH, "%s: its kernel is %s, but the model has %s", path,
                        theirs ? theirs : "missing", kernel);
    bool same = mrc_tensor_file_find(file, "centers", &found) && found.rows == self->model->total &&
                found.cols == z->cols && found.dtype == z->dtype;
    if (same) found = mrc_rows(&found, self->model->first, z->rows);
    for (int64_t row = 0; row < z->rows && same; row++)
        same = memcmp(mrc_row(&found, row), mrc_row(z, row), (size_t)(z->cols * mrc_dtype_size(z->dtype))) == 0;
    if (same) return MERCER_OK;
    return mrc_fail(self->job.context, MERCER_ERROR_MISMATCH,
                    "%s: its centers differ from those of the model; load the model from the checkpoint", path);
}

mercer_status mrc_trainer_open_checkpoint(mrc_trainer *self, const char *path)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    mercer_matrix plan;
    MRC_TRY(mrc_tensor_file_open(&file, self->job.context, path));
    MRC_TRY(check_model(self, file, path));
    if (!mrc_tensor_file_find(file, "state.plan", &plan))
        return mrc_fail(self->job.context, MERCER_ERROR_FORMAT,
                        "%s: is a model file without the state of a training run; name a checkpoint", path);
    mrc_tensor_file_close(self->resumed);
    self->resumed = file, file = NULL;
    self->job.resuming = true;
    return MERCER_OK;
}

/* Copies a name from a row of bytes, which in a damaged file may lack its terminating zero. */
static void copy_name(char name[MRC_STATE_NAME], const mercer_matrix *names, int64_t row)
{
    memcpy(name, mrc_row(names, row), MRC_STATE_NAME);
    name[MRC_STATE_NAME - 1] = 0;
}

/* Reads the plan of the open file, which must have plan->count values. This function and the next two fail with
   MISMATCH if the file has another layout, with FORMAT if values are invalid. */
static mercer_status load_plan(const mrc_trainer *self, mrc_state_plan *plan)
{
    mercer_matrix values, names;
    if (!mrc_tensor_file_find(self->resumed, "state.plan", &values) || values.dtype != MERCER_F64 || values.rows != 1 ||
        values.cols != plan->count || !mrc_tensor_file_find(self->resumed, "state.names", &names) ||
        names.dtype != MERCER_U8 || names.rows != 2 || names.cols != MRC_STATE_NAME)
        return mrc_fail(self->job.context, MERCER_ERROR_MISMATCH, "the checkpoint's plan is from another version");
    for (int i = 0; i < plan->count; i++) plan->values[i] = mrc_load(&values, 0, i);
    copy_name(plan->solver, &names, 0);
    copy_name(plan->projector, &names, 1);
    return MERCER_OK;
}

/* Reads the numbers of the open file into the variables that the state lists. All ranges are checked first; nothing is
   changed if a number is out of range. */
static mercer_status load_numbers(const mrc_trainer *self, mrc_state *state)
{
    mercer_matrix found;
    const mrc_state_number *wrong;
    double numbers[MRC_STATE_NUMBERS];
    if (!mrc_tensor_file_find(self->resumed, "state.numbers", &found) || found.dtype != MERCER_F64 || found.rows != 1 ||
        found.cols != state->number_count)
        return mrc_fail(self->job.context, MERCER_ERROR_MISMATCH, "the checkpoint is from another solver or version");
    for (int64_t i = 0; i < found.cols; i++) numbers[i] = mrc_load(&found, 0, i);
    mrc_state_write_numbers(state, numbers, &wrong);
    if (!wrong) return MERCER_OK;
    return mrc_fail(self->job.context, MERCER_ERROR_FORMAT, "the checkpoint's %s is %g, which is out of range",
                    wrong->name, numbers[wrong - state->numbers]);
}

/* Reads the matrices into the entries' memory and closes the file. */
static mercer_status load_matrices(mrc_trainer *self, mrc_state *state)
{
    for (int i = 0; i < state->matrix_count; i++) {
        mrc_state_matrix *entry = &state->matrices[i];
        mercer_matrix found;
        int64_t rows = entry->total > 0 ? entry->total : entry->value.rows;
        if (!mrc_tensor_file_find(self->resumed, entry->name, &found) || found.rows != rows ||
            (found.rows > 0 && (found.cols != entry->value.cols || found.dtype != entry->value.dtype)))
            return mrc_fail(self->job.context, MERCER_ERROR_MISMATCH,
                            "the checkpoint's %s is missing or does not have the expected shape", entry->name);
        if (entry->total > 0) found = mrc_rows(&found, first_row(self, entry), entry->value.rows);
        MRC_TRY(mrc_check_finite(self->job.context, entry->name, &found, NULL));
        for (int64_t row = 0; row < found.rows; row++)
            memcpy(mrc_row(&entry->value, row), mrc_row(&found, row),
                   (size_t)(found.cols * mrc_dtype_size(found.dtype)));
    }
    mrc_tensor_file_close(self->resumed);
    self->resumed = NULL;
    return MERCER_OK;
}

/* ---- Resuming ---------------------------------------------------------------------------------------------------- */

/* Restores the solver that `auto` chose. The solver is not chosen again, because training may have broken down with the
   planner's first choice and replaced it. */
static void recall_solver(mrc_trainer *self, const char *name)
{
    const mrc_solver *row = mrc_solver_find(name);
    if (!row || !mrc_name_is_auto(self->job.options.solver)) return;
    self->request.solver = row;
    /* the saved solver is the replacement of a solver that broke down */
    if (!(row->traits & MRC_CONVERGES)) self->job.options.converge = MERCER_AUTO;
}

mercer_status mrc_trainer_restore_plan(mrc_trainer *self)
{
    mrc_plan_request *request = &self->request;
    mercer_train_options *options = &self->job.options;
    mrc_state_plan saved = {.count = VALUE_COUNT};
    MRC_TRY(load_plan(self, &saved));
    double threads = saved.values[VALUE_threads], budget = saved.values[VALUE_budget],
           lambda = saved.values[VALUE_lambda];
    if (!mrc_in_range(threads, 1, MOST_THREADS) || !mrc_in_range(budget, 1, MOST_BYTES))
        return mrc_fail(self->job.context, MERCER_ERROR_FORMAT,
                        "the checkpoint is damaged: its plan has %g threads and %g bytes of memory", threads, budget);
    request->threads = (int)threads, request->budget = (int64_t)budget;
    recall_solver(self, saved.solver);
    /* the ridge was chosen by the fit, not by its caller */
    if (options->lambda == 0 && lambda > 0 && lambda <= MRC_RIDGE_MOST) options->lambda = lambda;
    if (saved.values[VALUE_half_precision] == 0) request->accurate = "the resumed training did not use half precision";
    return MERCER_OK;
}

/* Checks that the file has this plan. */
static mercer_status check_plan(const mrc_trainer *self, const mrc_state_plan *plan)
{
    static const char *const other = "the checkpoint belongs to a training run with other data or options";
    mercer_context *context = self->job.context;
    mrc_state_plan saved = {.count = VALUE_COUNT};
    MRC_TRY(load_plan(self, &saved));
    for (int i = 0; i < VALUE_COUNT; i++)
        if (!(saved.values[i] == plan->values[i]))
            return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: the checkpoint has %s %.17g, but this run has %.17g",
                            other, value_names[i], saved.values[i], plan->values[i]);
    if (strcmp(saved.solver, plan->solver) != 0)
        return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: the checkpoint has solver %s, but this run has %s", other,
                        saved.solver, plan->solver);
    if (strcmp(saved.projector, plan->projector) == 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: the checkpoint has projector %s, but this run has %s", other,
                    saved.projector, plan->projector);
}

/* Checks the numbers that were read. The file is not trusted: counts are used as indices and must stay within the
   matrices. */
static mercer_status check_numbers(const mrc_trainer *self)
{
    const mrc_job *job = &self->job;
    bool good = job->epoch >= 0 && job->epoch <= job->plan.public_plan.epochs && job->pass_rows >= 0 &&
                job->pass_rows <= job->n && job->samples >= 0 && self->saved_seconds >= 0;
    if (good && (!job->plan.solver->ops->check || job->plan.solver->ops->check(job))) return MERCER_OK;
    return mrc_fail(job->context, MERCER_ERROR_FORMAT, "the checkpoint's numbers are out of range");
}

/* The plan is compared before anything is changed. Numbers are read before matrices: they determine the sizes of
   temporary centers, and whether there are best weights. */
mercer_status mrc_trainer_restore(mrc_job *job)
{
    mrc_trainer *self = (mrc_trainer *)job;
    mrc_state state;
    list_all(self, &state);
    MRC_TRY(check_plan(self, &state.plan));
    MRC_TRY(load_numbers(self, &state));
    MRC_TRY(check_numbers(self));
    if (job->have_best && !job->best.data)
        MRC_TRY(mrc_field_create(&job->centers, &job->best, job->target.weights->cols, job->centers.real,
                                 "the best weights"));
    list_all(self, &state); /* list again, because sizes are known now */
    mercer_matrix live[MRC_STATE_MATRICES];
    mercer_status status = open_all(self, &state, live);
    if (status == MERCER_OK) status = load_matrices(self, &state);
    MRC_TRY(close_all(self, &state, live, true, status));
    self->earlier_seconds = self->saved_seconds;
    self->last_save = mrc_seconds();
    return MERCER_OK;
}
