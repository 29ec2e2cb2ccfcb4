/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checkpoint of a fit is one file with the state of the running stage.
 *
 * While the search runs it is a tensor file with
 *
 *   search.memory   (1, numbers) f64   parameters and moments of all descents, then the journal
 *   search.stages   (4, 3) f64         completed steps, rate and smoothed error of each descent
 *   search.sizes    (1, 2) f64         effort, rows of the journal
 *
 * Its metadata have, under "search", the options that determine the search; a fit with other options cannot resume the
 * search and fails. Draws depend on the seed and the step only, so a resumed search gives bitwise identical results.
 *
 * While training runs it is the file of the trainer (training/checkpoint.c): a model with the state of training. Its
 * metadata have, under "fit_record", the results of earlier stages as JSON: effort, ridge, errors and steps of the
 * search. A resumed fit reads them instead of searching again. The results contain no times, because all ranks must
 * write equal files.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/bounds.h"
#include "model/model.h"
#include "model/tensor_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST 1e100 /* numbers of a record above this limit are ignored: the file is not trusted */
/* SAVE_SECONDS: a search takes seconds at effort 3, so by default only longer searches are saved while they run. If the
   caller stops the search, its state is saved in any case. STAGE_NUMBERS: columns of search.stages. */
enum { SAVE_SECONDS = 60, STAGE_NUMBERS = 3 };

/* Writes the options and sizes that determine a search, to be compared when it is resumed. */
static void describe_search(const mercer_fitting *self, const mrc_search_task *task, char text[MRC_SEARCH_TEXT])
{
    char kernel[MERCER_KERNEL_TEXT] = "open";
    if (task->kernel) (void)mrc_kernel_print(NULL, task->kernel, kernel, sizeof kernel, NULL);
    const char *transform = self->options->data.target_transform ? self->options->data.target_transform : "auto";
    snprintf(text, MRC_SEARCH_TEXT,
             "kernel %.200s, preprocess %s, metric %s, norm 2 %s, targets %s, weights %s, ridge %a, seed %llu, %lld "
             "rows, %lld features, %lld outputs",
             kernel, task->preprocess ? mrc_preprocess_spec(task->preprocess) : "open",
             self->options->kernel.metric ? "given" : "open", task->norm_2 ? "only" : "too", transform,
             self->data->weights ? "given" : "none", task->ridge, (unsigned long long)task->seed,
             (long long)self->info.rows, (long long)self->info.features, (long long)self->info.outputs);
}

/* mrc_search_task.save: writes the state of the search if it is due. A failure is only a warning. */
static void save_search(void *user, bool now)
{
    mercer_fitting *self = user;
    mrc_search_state *state = &self->search;
    const mrc_search_task *task = self->search_task;
    double seconds =
        self->request->train.checkpoint_seconds > 0 ? self->request->train.checkpoint_seconds : SAVE_SECONDS;
    double stages[MRC_SEARCH_STAGES][STAGE_NUMBERS], sizes[2] = {self->record.effort, (double)state->steps};
    char text[MRC_SEARCH_TEXT];
    if (!now && mrc_seconds() - self->search_saved < seconds) return;
    for (int s = 0; s < MRC_SEARCH_STAGES; s++)
        stages[s][0] = state->stages[s].step, stages[s][1] = state->stages[s].rate,
        stages[s][2] = state->stages[s].error;
    const mrc_tensor tensors[] = {
        {.name = "search.memory", .value = mrc_view(state->memory, 1, state->numbers, MERCER_F64)},
        {.name = "search.stages", .value = mrc_view(stages, MRC_SEARCH_STAGES, STAGE_NUMBERS, MERCER_F64)},
        {.name = "search.sizes", .value = mrc_view(sizes, 1, 2, MERCER_F64)}};
    describe_search(self, task, text);
    const mrc_metadata metadata[] = {{"search", text}};
    if (mrc_tensor_file_write(self->context, self->request->train.checkpoint, tensors, 3, metadata, 1) != MERCER_OK)
        mrc_warn(self->context, "checkpoint", "cannot write a checkpoint of the search: %s",
                 mrc_last_error(self->context));
    self->search_saved = mrc_seconds();
}

/* Returns whether the file has a tensor of doubles with this shape; cols < 0: any number of columns. */
static bool find_value(const mrc_tensor_file *file, const char *name, int64_t rows, int64_t cols, mercer_matrix *out)
{
    return mrc_tensor_file_find(file, name, out) && out->dtype == MERCER_F64 && out->rows == rows &&
           (cols < 0 || out->cols == cols);
}

/* Reads the state and the description of a search. */
static mercer_status read_state(mercer_fitting *self, const char *path, const mrc_tensor_file *file)
{
    mrc_search_state *state = &self->search;
    mercer_matrix memory, stages, sizes;
    const char *found = mrc_tensor_file_metadata(file, "search");
    snprintf(self->search_found, sizeof self->search_found, "%s", found ? found : "nothing");
    bool whole = find_value(file, "search.memory", 1, -1, &memory) &&
                 find_value(file, "search.stages", MRC_SEARCH_STAGES, STAGE_NUMBERS, &stages) &&
                 find_value(file, "search.sizes", 1, 2, &sizes);
    double effort = whole ? mrc_load(&sizes, 0, 0) : 0, steps = whole ? mrc_load(&sizes, 0, 1) : 0;
    for (int s = 0; whole && s < MRC_SEARCH_STAGES; s++) {
        mrc_descent_state *stage = &state->stages[s];
        stage->step = mrc_load(&stages, s, 0), stage->rate = mrc_load(&stages, s, 1);
        stage->error = mrc_load(&stages, s, 2);
        whole = mrc_in_range(stage->step, 0, MRC_SEARCH_STEPS) && stage->step == floor(stage->step) &&
                mrc_in_range(stage->rate, 0, 1) && (isnan(stage->error) || stage->error >= 0);
    }
    if (!whole || !mrc_in_range(effort, 1, MRC_MOST_EFFORT) || effort != floor(effort) ||
        !mrc_in_range(steps, 0, MRC_SEARCH_STEPS) || steps != floor(steps))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: cannot read the state of the search", path);
    MRC_TRY(mrc_check_finite(self->context, "search.memory", &memory, NULL));
    MRC_TRY(mrc_alloc(self->context, &state->memory, mrc_max(1, memory.cols), sizeof(double), "the search"));
    memcpy(state->memory, memory.data, (size_t)memory.cols * sizeof(double));
    state->numbers = memory.cols, state->steps = (int64_t)steps, self->record.effort = (int)effort;
    return MERCER_OK;
}

/* Only rank 0 writes the file; the ranks run the same search. */
mercer_status mrc_fit_open_search_state(mercer_fitting *self, mrc_search_task *task)
{
    char text[MRC_SEARCH_TEXT];
    describe_search(self, task, text);
    if (self->search_found[0] && strcmp(self->search_found, text) != 0)
        return mrc_fail(
            self->context, MERCER_ERROR_MISMATCH,
            "%s: was written with other data or options: its search has \"%.400s\", but this search has \"%s\"",
            self->options->run.checkpoint, self->search_found, text);
    self->search_task = task;
    if (!self->request->train.checkpoint || (self->options->run.comm && self->options->run.comm->rank > 0))
        return MERCER_OK;
    task->save = save_search, task->save_user = self;
    self->search_saved = mrc_seconds();
    return MERCER_OK;
}

/* ---- The record -------------------------------------------------------------------------------------------------- */

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Returns the search results that a resumed fit needs; numbers that are not finite become null. */
static json_t *search_json(const mercer_fitting *self)
{
    const mercer_search_report *report = &self->search_report;
    const mercer_matrix *journal = report->steps;
    json_t *steps = json_array(), *sizes = json_array();
    for (int64_t i = 0; i < journal->rows; i++)
        for (int k = 0; k < MRC_JOURNAL_COLUMNS; k++)
            json_array_append_new(steps, real_or_null(mrc_load(journal, i, k)));
    for (int i = 0; i < MRC_SEARCH_SIZES; i++)
        json_array_append_new(
            sizes, json_pack("[I, o]", (json_int_t)report->centers[i], real_or_null(report->center_errors[i])));
    return json_pack("{so so sI sI sb so so}", "error", real_or_null(report->error), "ridge",
                     real_or_null(report->ridge), "rows", (json_int_t)report->rows, "held",
                     (json_int_t)report->held_out, "cut", report->cut, "sizes", sizes, "steps", steps);
}

mercer_status mrc_fit_set_record(const mercer_fitting *self)
{
    json_auto_t *all = json_pack("{si so}", "effort", self->record.effort, "ridge", real_or_null(self->record.ridge));
    if (all && self->search_report.steps) json_object_set_new(all, "search", search_json(self));
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (!text) return mrc_fail(self->context, MERCER_ERROR_MEMORY, "out of memory for the record of a checkpoint");
    mercer_status status = mrc_model_set_record(self->model, text);
    free(text);
    return status;
}

/* Reads a number from a record. Returns 0 if it is missing or out of range: the file is not trusted. */
static double read_number(const json_t *value, double most)
{
    double number = json_number_value(value);
    return mrc_in_range(number, 0, most) ? number : 0;
}

/* Reads the journal of a search into memory that the state owns. */
static mercer_status read_steps(mercer_fitting *self, const json_t *steps)
{
    mrc_search_state *state = &self->search;
    int64_t rows = mrc_min((int64_t)json_array_size(steps) / MRC_JOURNAL_COLUMNS, MRC_SEARCH_STEPS);
    MRC_TRY(mrc_alloc_zero(self->context, &state->memory, MRC_SEARCH_STEPS * MRC_JOURNAL_COLUMNS, sizeof(double),
                           "the journal of the search"));
    for (int64_t i = 0; i < rows * MRC_JOURNAL_COLUMNS; i++) {
        double most = i % MRC_JOURNAL_COLUMNS == 0 ? MRC_SEARCH_STAGES : NUMBER_MOST;
        state->memory[i] = read_number(json_array_get(steps, (size_t)i), most);
    }
    state->journal = state->memory, state->steps = rows;
    self->journal = mrc_view(state->journal, rows, MRC_JOURNAL_COLUMNS, MERCER_F64);
    self->search_report.steps = &self->journal;
    return MERCER_OK;
}

/* Reads the results of a finished search from a record. A number that is missing or out of range becomes 0. */
static mercer_status read_search(mercer_fitting *self, const json_t *search)
{
    mercer_search_report *report = &self->search_report;
    report->error = read_number(json_object_get(search, "error"), NUMBER_MOST);
    report->ridge = read_number(json_object_get(search, "ridge"), NUMBER_MOST);
    report->rows = (int64_t)read_number(json_object_get(search, "rows"), MRC_ROWS_MOST);
    report->held_out = (int64_t)read_number(json_object_get(search, "held"), MRC_ROWS_MOST);
    report->cut = json_is_true(json_object_get(search, "cut"));
    for (int i = 0; i < MRC_SEARCH_SIZES; i++) {
        const json_t *size = json_array_get(json_object_get(search, "sizes"), (size_t)i);
        report->centers[i] = (int64_t)read_number(json_array_get(size, 0), MRC_ROWS_MOST);
        report->center_errors[i] = read_number(json_array_get(size, 1), NUMBER_MOST);
    }
    return read_steps(self, json_object_get(search, "steps"));
}

/* Restores effort, ridge and search results from a record. */
static mercer_status read_record(mercer_fitting *self, const char *path, const char *text)
{
    json_auto_t *all = text ? json_loads(text, 0, NULL) : NULL;
    if (!all)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "%s: was not written by a fit of this version", path);
    const json_t *search = json_object_get(all, "search");
    int effort = (int)read_number(json_object_get(all, "effort"), MRC_MOST_EFFORT);
    if (effort > 0 && self->options->search.effort > 0 && !(self->options->search.budget > 0) &&
        effort != self->options->search.effort)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: was written with other options: its effort is %d, but effort is %d", path, effort,
                        self->options->search.effort);
    self->record.effort = effort;
    if (self->record.ridge == 0 && !mrc_fit_has_no_ridge(self->request))
        self->record.ridge = read_number(json_object_get(all, "ridge"), MRC_RIDGE_MOST);
    return self->searches && json_is_object(search) ? read_search(self, search) : MERCER_OK;
}

/* The kind of the checkpoint follows from the presence of search.memory. A file of a training run is opened again by
   the trainer, which reads its state. */
mercer_status mrc_fit_open_checkpoint(mercer_fitting *self, const char *path, bool *searching)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    mercer_matrix memory;
    MRC_TRY(mrc_tensor_file_open(&file, self->context, path));
    *searching = mrc_tensor_file_find(file, "search.memory", &memory);
    return *searching ? read_state(self, path, file)
                      : read_record(self, path, mrc_tensor_file_metadata(file, "fit_record"));
}
