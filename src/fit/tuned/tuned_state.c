/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A search in a checkpoint. Until training has written its own, the file of the checkpoint holds what the search found
 * so far (tune/journal.c): a tensor file with
 *
 *   search.errors   (fits, ridges) f64    of every fit, in their order
 *   search.shapes   (metrics, 3) f64      directions of every metric that was learned (0: none), whether it is
 *                                         diagonal, and the step of the bandwidth that it came with
 *   search.maps     (1, numbers) f64      their maps, one behind the other
 *   search.rate     (1, 1) f64            flops a second, by which work was counted
 *   search.of       (1, characters) u8    what it is a search of
 *
 * Work is counted at the same rate when it goes on, so that it ends where it would have ended: in the same bytes.
 *
 * While members of a mean are trained (tuned_members.c), the same tensors stand beside them in a model file: the member
 * in training, with its state (training/checkpoint.c), and behind it those that are done; or, without a state, those
 * that are done alone.
 */
#include "fit/tuned/tuned.h"

#include "core/clock.h"
#include "core/matrix.h"
#include "core/numbers/bounds.h"
#include "model/tensor_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_SECONDS = 600 };

/* What determines a search, but for data and rate; and how many of its bests are wanted. */
void mrc_fit_describe_search(mercer_fitting *self, const mrc_tune_task *task)
{
    char *of = self->tuning->of;
    int at = snprintf(
        of, MRC_SEARCH_CHARS,
        "criterion %s, %lld rounds, %lld centers, ridge %a, budget %a, seed %llu, %lld rows, %lld features, %lld more;",
        mrc_criterion_name(task->criterion), (long long)task->rounds, (long long)task->centers, task->ridge,
        task->budget, (unsigned long long)task->seed, (long long)self->info.rows, (long long)self->info.features,
        (long long)mrc_max(0, task->next));
    for (int i = 0; i < task->kernel_count; i++)
        at += snprintf(of + at, (size_t)(MRC_SEARCH_CHARS - at), " %s", task->kernel_names[i]);
    for (int i = 0; i < task->preparation_count; i++)
        at += snprintf(of + at, (size_t)(MRC_SEARCH_CHARS - at), " %s", task->preparations[i]);
}

const mrc_tensor *mrc_fit_search_tensors(mrc_tuning *self)
{
    mrc_journal *journal = &self->journal;
    const mrc_tensor tensors[MRC_SEARCH_TENSORS] = {
        {.name = "search.errors", .value = mrc_view(journal->errors, journal->fits, journal->ridges, MERCER_F64)},
        {.name = "search.shapes", .value = mrc_view(journal->shapes, journal->metrics, MRC_JOURNAL_SHAPE, MERCER_F64)},
        {.name = "search.maps", .value = mrc_view(journal->maps, 1, journal->numbers, MERCER_F64)},
        {.name = "search.rate", .value = mrc_view(&self->rate, 1, 1, MERCER_F64)},
        {.name = "search.of", .value = mrc_view(self->of, 1, (int64_t)strlen(self->of), MERCER_U8)}};
    memcpy(self->tensors, tensors, sizeof tensors);
    return self->tensors;
}

void mrc_fit_keep_search(void *user, const mrc_tune_task *task, bool now)
{
    mercer_fitting *self = user;
    double seconds = self->train.checkpoint_seconds > 0 ? self->train.checkpoint_seconds : KEEP_SECONDS;
    if (!self->train.checkpoint || (self->options.comm && self->options.comm->rank > 0)) return;
    if (!now && mrc_seconds() - self->tuning->kept < seconds) return;
    (void)task; /* the tuning has its journal */
    if (mrc_tensor_file_write(self->context, self->train.checkpoint, mrc_fit_search_tensors(self->tuning),
                              MRC_SEARCH_TENSORS, NULL, 0) != MERCER_OK)
        mrc_warn(self->context, "checkpoint", "no checkpoint of the search can be written: %s",
                 mercer_last_error(self->context));
    self->tuning->kept = mrc_seconds();
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

static bool find(const mrc_tensor_file *file, const char *name, int64_t cols, mercer_matrix *out)
{
    return mrc_tensor_file_find(file, name, out) && out->dtype == MERCER_F64 && (cols < 0 || out->cols == cols);
}

/* Shapes that a metric can have, and as many numbers as they say. */
static bool fit_together(const mrc_journal *journal, const mercer_matrix *shapes, const mercer_matrix *maps)
{
    double d = (double)journal->features, sum = 0;
    for (int64_t i = 0; i < shapes->rows; i++) {
        double width = mrc_load(shapes, i, 0), diagonal = mrc_load(shapes, i, 1), step = mrc_load(shapes, i, 2);
        if (!(width >= 0 && width <= d && width == floor(width)) || (diagonal != 0 && diagonal != 1) ||
            !(step >= 0 && step <= MRC_TUNE_STEPS - 1))
            return false;
        sum += width == 0 ? 0 : diagonal != 0 ? d : d * width;
    }
    return maps->rows == 1 && sum == (double)maps->cols;
}

static mercer_status take(mrc_journal *journal, double **to, int64_t *room, const mercer_matrix *from)
{
    *room = from->rows * from->cols;
    MRC_TRY(mrc_alloc(journal->context, to, mrc_max(1, *room), sizeof **to, "what was tried"));
    if (*room > 0) memcpy(*to, from->data, (size_t)*room * sizeof **to);
    return MERCER_OK;
}

/* What it is a search of, as far as that is a text of ours. */
static bool find_text(const mrc_tensor_file *file, char of[MRC_SEARCH_CHARS])
{
    mercer_matrix found;
    of[0] = '\0';
    if (!mrc_tensor_file_find(file, "search.of", &found)) return false;
    if (found.dtype != MERCER_U8 || found.rows != 1 || found.cols >= MRC_SEARCH_CHARS) return true;
    const unsigned char *bytes = found.data;
    for (int64_t i = 0; i < found.cols; i++)
        if (bytes[i] < ' ' || bytes[i] > '~') return true;
    memcpy(of, bytes, (size_t)found.cols);
    of[found.cols] = '\0';
    return true;
}

/* The members beside it, if there are. That they can be read shows when they are. */
static void look_for_members(const mrc_tensor_file *file, const char *path, mrc_tuning *tuning)
{
    mercer_matrix centers, plan;
    const char *members = mrc_tensor_file_metadata(file, "members");
    if (!mrc_tensor_file_find(file, "centers", &centers)) return;
    tuning->kept_members = members ? strtoll(members, NULL, 10) : 1;
    tuning->kept_training = mrc_tensor_file_find(file, "state.plan", &plan);
    tuning->kept_size = centers.rows;
    tuning->kept_in = path;
}

static mercer_status take_journal(mercer_fitting *self, const mrc_tensor_file *file, mrc_tune_task *task)
{
    mrc_journal *journal = task->journal;
    mercer_matrix errors, shapes, maps, rate;
    if (!find(file, "search.errors", journal->ridges, &errors) ||
        !find(file, "search.shapes", MRC_JOURNAL_SHAPE, &shapes) || !find(file, "search.maps", -1, &maps) ||
        !find(file, "search.rate", 1, &rate) || rate.rows != 1 || !fit_together(journal, &shapes, &maps))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: its search cannot be read", self->options.checkpoint);
    if (!mrc_in_range(mrc_load(&rate, 0, 0), MRC_RATE_LEAST, MRC_RATE_MOST))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: its search.rate is %g, it must be in %g .. %g",
                        self->options.checkpoint, mrc_load(&rate, 0, 0), MRC_RATE_LEAST, MRC_RATE_MOST);
    MRC_TRY(mrc_check_finite(self->context, "search.maps", &maps, NULL));
    MRC_TRY(take(journal, &journal->errors, &journal->error_room, &errors));
    MRC_TRY(take(journal, &journal->shapes, &journal->shape_room, &shapes));
    MRC_TRY(take(journal, &journal->maps, &journal->map_room, &maps));
    journal->fits = errors.rows, journal->metrics = shapes.rows, journal->numbers = maps.cols;
    task->rate = self->tuning->rate = mrc_load(&rate, 0, 0);
    return MERCER_OK;
}

mercer_status mrc_fit_recall_search(mercer_fitting *self, mrc_tune_task *task)
{
    const char *path = self->options.checkpoint, *of = self->tuning->of;
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    char found[MRC_SEARCH_CHARS];
    MRC_TRY(mrc_tensor_file_open(&file, self->context, path));
    if (!find_text(file, found) || strcmp(found, of) != 0)
        return mrc_fail(
            self->context, MERCER_ERROR_MISMATCH,
            "%s: belongs to a training with other data or options: it has a search of \"%s\", this one is of "
            "\"%s\"",
            path, found[0] ? found : "nothing", of);
    MRC_TRY(take_journal(self, file, task));
    look_for_members(file, path, self->tuning);
    if (self->tuning->kept_members > 0) task->keep = NULL; /* it is over: the file has more than it */
    return MERCER_OK;
}

mercer_status mrc_fit_search_found(mercer_context *context, const char *path, bool *found)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    char of[MRC_SEARCH_CHARS];
    MRC_TRY(mrc_tensor_file_open(&file, context, path));
    *found = find_text(file, of);
    return MERCER_OK;
}
