/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many centers a tuned fit takes. From the number that an untuned fit takes on, twice as many are taken, or all
 * rows, as long as that takes at least GAIN away from the error (tune/more_centers.c) and training stays within half of
 * the seconds of the search; or if it takes no longer: all rows as centers have a shorter way. Seconds are the plan's
 * estimates, and those of cg from sizes alone may be several times too low.
 *
 * Candidates were judged by exact solutions, so training goes on to its end (converge).
 */
#include "fit/tuned/tuned.h"

#include "core/matrix.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

#define GAIN 0.005

static bool plan_size(mercer_fitting *self, int64_t p, mercer_plan *plan)
{
    self->options.centers = p == self->info.rows ? -1 : p;
    return mrc_fit_try_plan(self, p, plan);
}

static void choose_size(mercer_fitting *self, mercer_plan *plan)
{
    const mrc_tune_result *found = &self->tuning->result;
    int64_t p = mrc_fit_center_count(self), rows = self->info.rows, asked = self->options.centers;
    mercer_plan next;
    bool grown = false;
    while (p < rows) {
        int64_t more = mrc_min(2 * p, rows);
        if (rows - more < more / 4) more = rows; /* nearly all: then all */
        bool fits = plan_size(self, more, &next);
        bool pays = mrc_tune_gain(found, p, more) >= GAIN && next.seconds <= mrc_fit_tune_budget(self) / 2;
        if (!fits || !(pays || next.seconds <= plan->seconds)) break;
        p = more, *plan = next, grown = true;
    }
    self->options.centers = !grown ? asked : p == rows ? -1 : p;
    self->tuning->seconds = plan->seconds;
    self->report.tune_more_centers = p < rows ? mrc_tune_gain(found, p, mrc_min(2 * p, rows)) : (double)NAN;
}

/* Whether the number of centers is the search's to choose. */
static bool is_open(const mercer_fitting *self)
{
    const mercer_fit_options *options = &self->options;
    bool random = !options->center_method || strcmp(options->center_method, "random") == 0;
    return options->centers == 0 && !options->given_centers && random && !options->comm && !options->augment;
}

void mrc_fit_tuned_size(mercer_fitting *self)
{
    mercer_train_options *train = &self->train;
    mercer_plan plan;
    self->report.tune_more_centers = (double)NAN;
    /* Early stopping is for solvers that have epochs. */
    if (!mrc_name_is_auto(train->solver) || train->epochs || train->patience) return;
    self->report.points = mrc_fit_points(&self->options, &self->info);
    train->converge = MERCER_ON;
    if (!mrc_fit_try_plan(self, mrc_fit_center_count(self), &plan))
        train->converge = MERCER_AUTO; /* there is no room for a solver that does */
    else if (self->tuning && self->tuning->kept_members > 0)
        mrc_fit_recall_size(self, self->tuning->kept_size);
    else if (self->tuning && is_open(self))
        choose_size(self, &plan);
}

void mrc_fit_recall_size(mercer_fitting *self, int64_t p)
{
    if (is_open(self) && p != mrc_fit_center_count(self)) self->options.centers = p == self->info.rows ? -1 : p;
}
