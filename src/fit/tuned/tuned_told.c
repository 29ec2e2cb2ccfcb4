/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told of a search: in the report, what was tried, what won, by how much, and how flat the best is; in the
   plan, the same in words. */
#include "fit/tuned/tuned.h"

#include "core/matrix.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

#define FLAT 1.01 /* errors up to this many times the smallest are as good */

static bool same_arm(const mercer_tune_try *a, const mercer_tune_try *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->preprocess, b->preprocess) == 0;
}

/* The best with another kernel or preprocessing, of fits as large as the best. */
static int64_t find_second(const mercer_fit_report *report, const mercer_tune_try *best)
{
    int64_t second = -1;
    for (int64_t i = 0; i < report->try_count; i++) {
        const mercer_tune_try *one = &report->tries[i];
        if (one->rows != best->rows || one->centers != best->centers || same_arm(one, best)) continue;
        if (second < 0 || one->error < report->tries[second].error) second = i;
    }
    return second;
}

/* Rows of the largest fits of the kernel, preprocessing and metric of the best of which several bandwidths were
   tried. */
static int64_t find_around(const mercer_fit_report *report, const mercer_tune_try *best)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < report->try_count; i++)
        for (int64_t k = 0; k < i; k++) {
            const mercer_tune_try *a = &report->tries[i], *b = &report->tries[k];
            bool both = same_arm(a, best) && same_arm(b, best) && a->round == best->round && b->round == best->round;
            if (both && a->rows == b->rows && a->multiple != b->multiple) rows = mrc_max(rows, a->rows);
        }
    return rows > 0 ? rows : best->rows;
}

/* Between which bandwidths and ridges errors are as good as the smallest, of the fits around the best. */
static void find_flatness(mercer_fit_report *report, const mercer_tune_try *best)
{
    double smallest = (double)INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < report->try_count; i++) {
            const mercer_tune_try *one = &report->tries[i];
            if (!same_arm(one, best) || one->round != best->round || one->rows != report->tune_around) continue;
            if (pass == 0) smallest = fmin(smallest, one->error);
            for (int r = 0; r < report->tune_ridge_count && pass == 1; r++) {
                if (!(one->errors[r] <= FLAT * smallest)) continue;
                report->tune_flat[0] = fmin(report->tune_flat[0], one->multiple);
                report->tune_flat[1] = fmax(report->tune_flat[1], one->multiple);
                report->tune_flat_ridge[0] = fmin(report->tune_flat_ridge[0], report->tune_ridges[r]);
                report->tune_flat_ridge[1] = fmax(report->tune_flat_ridge[1], report->tune_ridges[r]);
            }
        }
}

void mrc_fit_report_search(mercer_fitting *self)
{
    const mrc_tune_result *found = &self->tuning->result;
    mercer_fit_report *report = &self->report;
    report->tries = found->tries;
    report->try_count = found->count;
    report->best_try = report->tune_second = -1;
    for (int64_t i = 0; i < found->count && report->best_try < 0; i++)
        if (found->tries[i].error == found->error) report->best_try = i;
    memcpy(report->tune_ridges, found->ridges, sizeof found->ridges);
    report->tune_ridge_count = found->ridge_count;
    report->tune_seconds = found->seconds, report->tune_whole = found->whole;
    report->tune_error = found->error, report->tune_multiple = found->multiple, report->tune_ridge = found->ridge;
    report->tune_rows = found->rows, report->tune_held = found->held;
    for (int i = 0; i < MRC_TUNE_SIZES; i++)
        report->tune_centers[i] = found->centers[i], report->tune_center_errors[i] = found->center_errors[i];
    if (report->best_try < 0) return;
    const mercer_tune_try *best = &report->tries[report->best_try];
    report->tune_second = find_second(report, best);
    report->tune_around = find_around(report, best);
    report->tune_flat[0] = report->tune_flat[1] = best->multiple;
    report->tune_flat_ridge[0] = report->tune_flat_ridge[1] = best->ridge;
    find_flatness(report, best);
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

static void tell_best(const mercer_fit_report *report, mercer_plan *plan)
{
    const mercer_tune_try *best = &report->tries[report->best_try];
    mrc_plan_say(plan,
                 "tuned: %s, %s, metric of round %lld, bandwidth %.3g times the median distance, ridge %.1e a "
                 "sample: error %.5g",
                 best->kernel, best->preprocess, (long long)best->round, report->tune_multiple, report->tune_ridge,
                 best->error);
    if (report->tune_second >= 0) {
        const mercer_tune_try *second = &report->tries[report->tune_second];
        mrc_plan_say(plan, "; %.1f %% more with %s, %s", 100 * (second->error / best->error - 1), second->kernel,
                     second->preprocess);
    }
    mrc_plan_say(plan, "\ntuned: within 1 %% of that: bandwidths %.3g to %.3g, ridges %.0e to %.0e\n",
                 report->tune_flat[0], report->tune_flat[1], report->tune_flat_ridge[0], report->tune_flat_ridge[1]);
}

static void tell_centers(const mercer_fitting *self, mercer_plan *plan)
{
    const mercer_fit_report *report = &self->report;
    const double *errors = report->tune_center_errors;
    mrc_plan_say(plan, "tuned: %lld centers, about %.1f s of training", (long long)report->centers,
                 self->tuning->seconds);
    if (report->tune_centers[0] > 0)
        mrc_plan_say(plan, "; errors with %lld, %lld, %lld: %.4g, %.4g, %.4g", (long long)report->tune_centers[0],
                     (long long)report->tune_centers[1], (long long)report->tune_centers[2], errors[0], errors[1],
                     errors[2]);
    if (isfinite(report->tune_more_centers))
        mrc_plan_say(plan, "; twice as many would take away about %.1f %%", 100 * report->tune_more_centers);
    mrc_plan_say(plan, "\n");
}

static void tell_search(const mercer_fitting *self, mercer_plan *plan)
{
    const mercer_fit_report *report = &self->report;
    if (!self->tuning) {
        if (report->untuned)
            mrc_plan_say(plan, "not tuned: %s\n", report->untuned);
        else if (self->options.tune == MERCER_ON && !self->size_recalled)
            mrc_plan_say(plan, "tuned: before it, %.1f s of counted work at most\n", mrc_fit_tune_budget(self));
        return;
    }
    const mrc_tune_result *found = &self->tuning->result;
    if (!found->found) {
        mrc_plan_say(plan, "not tuned: the budget is too small for one candidate, the defaults are taken\n");
        return;
    }
    mrc_plan_say(plan, "tuned: %lld fits of up to %lld rows, %.1f s of counted work%s, judged by %s\n",
                 (long long)found->count, (long long)found->rows, found->seconds,
                 found->whole ? "" : " (the budget ended it)", mrc_criterion_name(self->tuning->criterion));
    tell_best(report, plan);
    if (self->tuning->seconds > 0) tell_centers(self, plan);
}

void mrc_fit_tell_tuning(const mercer_fitting *self, mercer_plan *plan)
{
    tell_search(self, plan);
    mrc_fit_tell_members(self, plan);
}
