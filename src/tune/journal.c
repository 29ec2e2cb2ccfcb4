/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a search found so far, in the order in which it found it: the errors of every fit, and the metrics that were
 * learned. A search that begins with a journal takes from it what it would compute, as long as there is something, so
 * that it comes to the same place, and goes on from there. Its order depends on nothing else.
 *
 * Metrics are kept while there is room; one that is not there is learned once more.
 */
#include "tune/tune.h"

#include "core/memory.h"

#include <string.h>

/* Room for `more` numbers behind `count`. */
static mercer_status grow(mrc_journal *self, double **numbers, int64_t count, int64_t more, int64_t *room)
{
    double *larger;
    if (count + more <= *room) return MERCER_OK;
    int64_t wanted = mrc_max(2 * *room, count + more);
    MRC_TRY(mrc_alloc(self->context, &larger, wanted, sizeof *larger, "what was tried"));
    if (count > 0) memcpy(larger, *numbers, (size_t)count * sizeof *larger);
    mrc_free(self->context, *numbers);
    *numbers = larger, *room = wanted;
    return MERCER_OK;
}

void mrc_journal_free(mrc_journal *self)
{
    MRC_FREE_ALL(self->context, self->errors, self->maps, self->shapes);
    *self = (mrc_journal){0};
}

bool mrc_journal_recall_fit(mrc_journal *self, double *errors)
{
    if (!self || self->next_fit >= self->fits) return false;
    memcpy(errors, self->errors + self->next_fit++ * self->ridges, (size_t)self->ridges * sizeof *errors);
    return true;
}

mercer_status mrc_journal_add_fit(mrc_journal *self, const double *errors)
{
    if (!self) return MERCER_OK;
    MRC_TRY(grow(self, &self->errors, self->fits * self->ridges, self->ridges, &self->error_room));
    memcpy(self->errors + self->fits * self->ridges, errors, (size_t)self->ridges * sizeof *errors);
    self->next_fit = ++self->fits;
    return MERCER_OK;
}

static int64_t numbers_of(int64_t features, const double *shape)
{
    return shape[0] == 0 ? 0 : shape[1] != 0 ? features : features * (int64_t)shape[0];
}

mercer_status mrc_journal_recall_metric(mrc_journal *self, mrc_metric *out, int *step, bool *found)
{
    *found = self && self->next_metric < self->metrics;
    if (!*found) return MERCER_OK;
    const double *shape = self->shapes + MRC_JOURNAL_SHAPE * self->next_metric++;
    int64_t count = numbers_of(self->features, shape);
    *out = (mrc_metric){
        .context = self->context, .features = self->features, .width = (int64_t)shape[0], .diagonal = shape[1] != 0};
    if (step) *step = (int)shape[2];
    if (count == 0) return MERCER_OK;
    MRC_TRY(mrc_alloc(self->context, &out->map, count, sizeof *out->map, "a metric"));
    memcpy(out->map, self->maps + self->next_number, (size_t)count * sizeof *out->map);
    self->next_number += count;
    return MERCER_OK;
}

mercer_status mrc_journal_add_metric(mrc_journal *self, const mrc_metric *metric, int step)
{
    if (!self || self->full) return MERCER_OK;
    double shape[MRC_JOURNAL_SHAPE] = {metric->map ? (double)metric->width : 0, metric->diagonal, step};
    int64_t count = numbers_of(self->features, shape);
    self->full = self->numbers + count > self->most_numbers;
    if (self->full) return MERCER_OK;
    MRC_TRY(grow(self, &self->maps, self->numbers, count, &self->map_room));
    MRC_TRY(grow(self, &self->shapes, MRC_JOURNAL_SHAPE * self->metrics, MRC_JOURNAL_SHAPE, &self->shape_room));
    if (metric->map) memcpy(self->maps + self->numbers, metric->map, (size_t)count * sizeof *self->maps);
    memcpy(self->shapes + MRC_JOURNAL_SHAPE * self->metrics, shape, sizeof shape);
    self->numbers += count, self->next_number = self->numbers;
    self->next_metric = ++self->metrics;
    return MERCER_OK;
}
