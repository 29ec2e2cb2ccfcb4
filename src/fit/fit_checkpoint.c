/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A search in a checkpoint. Until training writes its own, the checkpoint holds the state of the search: a tensor file
 * with
 *
 *   search.memory   (1, numbers) f64   parameters and moments of all descents, then the journal
 *   search.stages   (3, 3) f64         steps done, rate and smoothed error of each descent
 *   search.sizes    (1, 2) f64         effort, rows of the journal
 *
 * and in the metadata under "search" the options that determine it. Draws depend on the seed and the step only, so a
 * search that is continued gives the same bytes.
 */
#include "fit/fitting.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/bounds.h"
#include "model/tensor_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAVE_SECONDS = 60, STAGE_NUMBERS = 3, DESCRIPTION = 512 };

static void describe(const mercer_fitting *self, const mrc_search_task *task, char text[DESCRIPTION])
{
    char kernel[MERCER_KERNEL_TEXT] = "open";
    if (task->kernel) (void)mrc_kernel_print(NULL, task->kernel, kernel, sizeof kernel, NULL);
    const char *transform = self->request->options.target_transform ? self->request->options.target_transform : "auto";
    snprintf(text, DESCRIPTION,
             "kernel %.200s, preprocess %s, metric %s, norm 2 %s, targets %s, weights %s, ridge %a, seed %llu, "
             "%lld rows, %lld features, %lld outputs",
             kernel, task->preprocess ? mercer_preprocess_spec(task->preprocess) : "open",
             self->request->options.metric ? "given" : "open", task->norm_2 ? "only" : "too", transform,
             self->data->weights ? "given" : "none", task->ridge, (unsigned long long)task->seed,
             (long long)self->info.rows, (long long)self->info.features, (long long)self->info.outputs);
}

static void save(void *user, bool now)
{
    mercer_fitting *self = user;
    mrc_search_state *state = &self->search;
    const mrc_search_task *task = self->search_task;
    double seconds =
        self->request->train.checkpoint_seconds > 0 ? self->request->train.checkpoint_seconds : SAVE_SECONDS;
    double stages[MRC_SEARCH_STAGES][STAGE_NUMBERS], sizes[2] = {self->effort, (double)state->steps};
    char text[DESCRIPTION];
    if (!now && mrc_seconds() - self->search_saved < seconds) return;
    for (int s = 0; s < MRC_SEARCH_STAGES; s++)
        stages[s][0] = state->stages[s].step, stages[s][1] = state->stages[s].rate,
        stages[s][2] = state->stages[s].error;
    const mrc_tensor tensors[] = {
        {.name = "search.memory", .value = mrc_view(state->memory, 1, state->numbers, MERCER_F64)},
        {.name = "search.stages", .value = mrc_view(stages, MRC_SEARCH_STAGES, STAGE_NUMBERS, MERCER_F64)},
        {.name = "search.sizes", .value = mrc_view(sizes, 1, 2, MERCER_F64)}};
    describe(self, task, text);
    const mrc_metadata metadata[] = {{"search", text}};
    if (mrc_tensor_file_write(self->context, self->request->train.checkpoint, tensors, 3, metadata, 1) != MERCER_OK)
        mrc_warn(self->context, "checkpoint", "no checkpoint of the search can be written: %s",
                 mrc_last_error(self->context));
    self->search_saved = mrc_seconds();
}

static bool find(const mrc_tensor_file *file, const char *name, int64_t rows, int64_t cols, mercer_matrix *out)
{
    return mrc_tensor_file_find(file, name, out) && out->dtype == MERCER_F64 && out->rows == rows &&
           (cols < 0 || out->cols == cols);
}

static mercer_status load(mercer_fitting *self, const char *path, const char *text)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    mrc_search_state *state = &self->search;
    mercer_matrix memory, stages, sizes;
    MRC_TRY(mrc_tensor_file_open(&file, self->context, path));
    const char *found = mrc_tensor_file_metadata(file, "search");
    if (!found || strcmp(found, text) != 0)
        return mrc_fail(self->context, MERCER_ERROR_MISMATCH,
                        "%s: belongs to a training with other data or options: its search is of \"%.400s\", this one "
                        "of \"%s\"",
                        path, found ? found : "nothing", text);
    bool whole = find(file, "search.memory", 1, -1, &memory) &&
                 find(file, "search.stages", MRC_SEARCH_STAGES, STAGE_NUMBERS, &stages) &&
                 find(file, "search.sizes", 1, 2, &sizes);
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
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: its search cannot be read", path);
    MRC_TRY(mrc_check_finite(self->context, "search.memory", &memory, NULL));
    MRC_TRY(mrc_alloc(self->context, &state->memory, mrc_max(1, memory.cols), sizeof(double), "the search"));
    memcpy(state->memory, memory.data, (size_t)memory.cols * sizeof(double));
    state->numbers = memory.cols, state->steps = (int64_t)steps, self->effort = (int)effort;
    return MERCER_OK;
}

mercer_status mrc_fit_open_search_state(mercer_fitting *self, mrc_search_task *task)
{
    char text[DESCRIPTION];
    describe(self, task, text);
    if (self->record.resumes) MRC_TRY(load(self, self->record.resumes, text));
    task->effort = self->effort;
    self->search_task = task;
    if (!self->request->train.checkpoint || (self->request->options.comm && self->request->options.comm->rank > 0))
        return MERCER_OK;
    task->save = save, task->save_user = self;
    self->search_saved = mrc_seconds();
    return MERCER_OK;
}

mercer_status mrc_fit_has_search(mercer_context *context, const char *path, bool *found)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    mercer_matrix memory;
    MRC_TRY(mrc_tensor_file_open(&file, context, path));
    *found = mrc_tensor_file_find(file, "search.memory", &memory);
    return MERCER_OK;
}
