/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stages size and centers: the number of centers, and their choice (given centers, all rows, augmented samples, or rows
 * selected by a method).
 */
#include "fit/fitting.h"

#include "centers/center_selection.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/stage_progress.h"
#include "model/model.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Predicted relative reduction of the error that justifies doubling the centers. At the default effort the tables hr
   and credit of docs/tables.md are predicted to gain less, and get 3,000 instead of 6,000 centers. On splits of the
   training files this reduces the AUC of hr by .0006 and of credit by .0001. A limit of .015 affected adult, bank and
   housing as well: AUC -.0011 and -.0007, R2 -.0028 (means of three splits). */
#define GAIN 0.005

/* below this the number of centers is not halved, even if no plan fits: the plan then fails with its reason */
enum { LEAST_CENTERS = 256 };

bool mrc_fit_is_augmented(const mercer_fit_options *options)
{
    return options->centers.method && strcmp(options->centers.method, "augmented") == 0;
}

/* Returns whether the given solver requires that the centers are the samples, in their order. */
static bool samples_are_centers(const mercer_fitting *self)
{
    const mrc_solver *solver = mrc_solver_find(self->request->train.solver);
    return solver && solver->traits & MRC_NEEDS_SAMPLES;
}

/* Returns whether all rows are centers, in their order. A random choice of as many centers as rows counts as well. */
static bool takes_all(const mercer_fitting *self)
{
    int64_t wanted = self->record.centers;
    bool random = !self->options->centers.method || strcmp(self->options->centers.method, "random") == 0;
    if (wanted != 0) return wanted < 0 || (random && wanted == self->info.rows);
    return samples_are_centers(self) || (random && self->info.rows <= mrc_fit_default_centers(self));
}

int64_t mrc_fit_center_count(const mercer_fitting *self)
{
    int64_t wanted = self->record.centers;
    if (self->options->centers.given) return self->options->centers.given->rows;
    if (takes_all(self)) return self->info.rows;
    if (wanted == 0) return mrc_min(self->info.rows, mrc_fit_default_centers(self));
    /* More centers than rows are an error, unless there are fewer rows only because equal ones were merged. */
    bool fewer = wanted <= self->given_rows && !self->options->data.augment;
    return fewer ? mrc_min(wanted, self->info.rows) : wanted;
}

bool mrc_fit_all_rows_count(const mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    for (int64_t i = 0; data && data->weights && i < data->rows; i++)
        if (!(data->weights[i] > 0)) return false;
    return data && takes_all(self) && !self->options->centers.given && !self->options->data.augment;
}

const char *mrc_fit_center_method(const mercer_fitting *self)
{
    if (self->options->centers.given) return "given";
    if (takes_all(self)) return "all";
    return self->options->centers.method ? self->options->centers.method : "random";
}

/* ---- Number of centers ------------------------------------------------------------------------------------------- */

/* Returns whether the fit chooses the number of centers. */
static bool is_size_open(const mercer_fitting *self)
{
    bool random = !self->options->centers.method || strcmp(self->options->centers.method, "random") == 0;
    return self->options->centers.count == 0 && !self->options->centers.given && random && !self->options->data.augment;
}

/* Returns the number of centers of the effort level, or half of it if the second half is predicted to reduce the error
   by less than GAIN. */
static int64_t size_by_gain(const mercer_fitting *self)
{
    int64_t most = mrc_min(mrc_fit_default_centers(self), self->info.rows);
    double gain = self->search_report.centers[0] > 0 ? mrc_search_gain(&self->search_report, most / 2, most) : 1;
    return gain >= GAIN || most == self->info.rows ? most : most / 2;
}

/* Records a number of centers that the fit has chosen. */
static void set_size(mercer_fitting *self, int64_t p)
{
    int64_t n = self->info.rows;
    /* use all rows if p is at least four fifths of them, because the samples are then the centers and faster solvers
       apply */
    self->record.centers = p >= n - n / 5 ? -1 : p;
}

/* Sets the size of a fit that searches. If the fit chooses the solver, it requests a solver that converges. The request
   is withdrawn if no plan of such a solver fits into memory. A number of centers that the caller has not set is halved
   until a plan fits. An existing model keeps its size. */
static void size_of_search(mercer_fitting *self)
{
    const mercer_train_options *train = &self->request->train;
    mercer_plan plan;
    bool open = is_size_open(self);
    bool chooses = mrc_name_is_auto(train->solver) && !train->epochs && !train->patience && !train->converge;
    int64_t p = self->model ? self->model->total : size_by_gain(self);
    if (open) set_size(self, p);
    if (!self->model && !self->preprocess) self->report.points = mrc_fit_points(self->options, &self->info);
    /* the search scored candidates by exact solutions, so an unconverged model would be worse than its score */
    if (chooses) self->record.converge = MERCER_ON;
    bool fits = (open || chooses) && mrc_fit_try_plan(self, mrc_fit_center_count(self), &plan);
    while (open && p > LEAST_CENTERS && !fits) {
        set_size(self, p /= 2);
        fits = mrc_fit_try_plan(self, mrc_fit_center_count(self), &plan);
    }
    /* Training options or too little memory may leave only batch solvers, which do not run to convergence. */
    if (chooses && (!fits || mercer_solver_kind_of(plan.solver) == MERCER_SOLVER_BATCHES))
        self->record.converge = MERCER_AUTO;
    int64_t chosen = mrc_fit_center_count(self);
    if (self->search_report.centers[0] > 0 && chosen < self->info.rows)
        self->search_report.more_centers =
            mrc_search_gain(&self->search_report, chosen, mrc_min(2 * chosen, self->info.rows));
}

/* The ridge of a search is set before the size, because solvers and their costs depend on it. Other fits choose the
   ridge after the size, by small fits with up to that number of centers. */
mercer_status mrc_fit_choose_size(mercer_fitting *self)
{
    self->report.members = mrc_fit_member_count(self);
    self->search_report.more_centers = (double)NAN;
    if (self->search_report.steps) MRC_TRY(mrc_fit_choose_ridge(self)); /* plans depend on it */
    if (self->searches) size_of_search(self);
    int64_t p = mrc_fit_center_count(self), n = self->info.rows;
    if (p <= n || self->model || self->options->centers.given || mrc_fit_is_augmented(self->options)) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_SHAPE, "centers is %lld, more than the %lld rows of the data",
                    (long long)p, (long long)n);
}

/* ---- Choice of centers ------------------------------------------------------------------------------------------- */

/* Allocates p centers or, if `shared`, this rank's share of them. Sets *first to the index of the first center that is
   allocated. */
static mercer_status allocate_centers(mercer_fitting *self, int64_t p, bool shared, mercer_dtype dtype, int64_t *first)
{
    int64_t rows = p, d = mrc_fit_width(self);
    *first = 0;
    if (shared && self->options->run.comm) MRC_TRY(mercer_comm_share(self->options->run.comm, first, &rows, p));
    if (self->options->centers.type) dtype = self->options->centers.type;
    self->centers = mrc_view(NULL, rows, d, dtype);
    MRC_TRY(mrc_alloc(self->context, &self->centers.data, rows, mrc_max(1, d) * mrc_dtype_size(dtype), "centers"));
    self->report.centers = p;
    return MERCER_OK;
}

/* Takes all rows of a dataset, in their order, as centers. */
static mercer_status take_rows(mercer_fitting *self, const mercer_dataset *data, bool shared)
{
    int64_t first;
    MRC_TRY(allocate_centers(self, data->rows, shared, mrc_preprocess_dtype(self->applied, data->dtype), &first));
    if (self->centers.rows == 0) return MERCER_OK;
    return mercer_dataset_read(data, &self->centers, NULL, NULL, self->applied, NULL, first);
}

/* Selects p centers among the rows of a dataset by the method of the options. */
static mercer_status choose_fit_centers(mercer_fitting *self, mercer_dataset *from, int64_t p, bool shared)
{
    int64_t first;
    MRC_TRY(allocate_centers(self, p, shared, self->report.points, &first));
    self->choice.struct_size = sizeof self->choice;
    const mercer_center_options options = {.struct_size = sizeof options,
                                           .method = self->options->centers.method,
                                           .seed = self->options->run.seed,
                                           .kernel = &self->kernel,
                                           .iterations = self->options->centers.iterations,
                                           .batch = self->options->centers.batch,
                                           .memory = mrc_fit_memory_left(self, p),
                                           .progress = self->options->run.progress,
                                           .progress_user = self->options->run.progress_user,
                                           .comm = self->options->run.comm,
                                           .total_centers = shared && self->options->run.comm ? p : 0};
    return mercer_choose_centers_from(from, &self->centers, self->applied, &options, &self->choice);
}

/* Creates a dataset of the rows with distinct features, because a repeated center makes K(Z, Z) singular. *out is not
   changed if all rows are distinct, or if the solver needs all samples as centers. The caller owns *out. */
static mercer_status take_distinct(const mercer_fitting *self, mercer_dataset **out)
{
    int64_t *rows, count;
    if (!mrc_fit_merges(self) || samples_are_centers(self)) return MERCER_OK;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_fit_distinct_rows(&scope, self->data, &rows, &count));
    return count < self->data->rows ? mrc_dataset_take(out, self->data, rows, count) : MERCER_OK;
}

/* Draws augmented samples as centers, more than there are rows if requested. Their stream has its own seed, so that
   training does not see the same samples. */
static mercer_status draw_augmented(mercer_fitting *self, int64_t p, bool shared)
{
    enum { CENTER_STREAM = 0x7a656e74, MOST = 4096 };
    mercer_source source = {0};
    const mercer_fit_run *run = &self->options->run;
    int64_t first, done = 0;
    MRC_TRY(allocate_centers(self, p, shared, self->report.points, &first));
    int64_t row_bytes = self->centers.cols * mrc_dtype_size(self->centers.dtype);
    MRC_TRY(mrc_fit_open_stream(self, run->seed + CENTER_STREAM, p, &source));
    bool failed = source.restart(source.user, 0), stopped = false;
    while (!failed && done < p && !stopped) {
        mercer_batch batch = {0};
        failed = source.next(source.user, mrc_min(p - done, MOST), &batch);
        if (failed || batch.X.rows == 0) break;
        for (int64_t i = 0; i < batch.X.rows; i++, done++) {
            if (done < first || done >= first + self->centers.rows) continue; /* center of another rank */
            memcpy(mrc_row(&self->centers, done - first), mrc_row(&batch.X, i), (size_t)row_bytes);
        }
        bool asked = mrc_progress(run->progress, run->progress_user, "centers", done, p, 0);
        /* with several ranks a stop is ignored, because all of them must stop at the same sample */
        stopped = asked && !run->comm;
    }
    mercer_source_free(&source);
    if (failed || done < p)
        return mrc_fail(self->context, stopped ? MERCER_ERROR_CALLBACK : MERCER_ERROR_DATA,
                        stopped ? "stopped during the selection of centers" : "the samples for centers cannot be read");
    return MERCER_OK;
}

/* Order: given centers, augmented samples, then rows of the data. In the last case equal rows count once, unless the
   solver needs all samples. centers_are_rows is set only if center i is exactly sample i of the stream. */
mercer_status mrc_fit_choose_centers(mercer_fitting *self, bool shared)
{
    const mercer_fit_options *options = self->options;
    int64_t p = mrc_fit_center_count(self);
    bool given = options->centers.given != NULL, all = takes_all(self);
    snprintf(self->report.center_method, sizeof self->report.center_method, "%s", mrc_fit_center_method(self));
    if (given && options->centers.given->features != self->info.features)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "centers.given: %lld features, but the data have %lld",
                        (long long)options->centers.given->features, (long long)self->info.features);
    if (given && options->centers.count > 0 && options->centers.count != p)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "centers.given has %lld rows, but centers is %lld",
                        (long long)p, (long long)options->centers.count);
    if (shared) MRC_TRY(mrc_fit_plan(self, p, NULL)); /* centers that are not trained need no memory for training */
    if (given) return take_rows(self, options->centers.given, shared);
    if (options->centers.count > p)
        mrc_warn(self->context, "centers.count",
                 "centers is %lld, but there are only %lld distinct training rows; all of them are centers",
                 (long long)options->centers.count, (long long)p);
    if (mrc_fit_is_augmented(options) && !all) return draw_augmented(self, p, shared);
    MRC_OWNED(mrc_release_dataset) mercer_dataset *distinct = NULL;
    MRC_TRY(take_distinct(self, &distinct));
    mercer_dataset *from = distinct ? distinct : self->data;
    if (!all) return choose_fit_centers(self, from, mrc_min(p, from->rows), shared);
    self->centers_are_rows =
        !distinct && !options->centers.type && options->data.samples == 0 && mrc_fit_all_rows_count(self);
    return take_rows(self, from, shared);
}

/* ---- The stages -------------------------------------------------------------------------------------------------- */

/* Records the held-out errors that the search measured with several numbers of centers. */
static void record_errors(mercer_fitting *self)
{
    const mercer_search_report *report = &self->search_report;
    char sizes[160], gain[96] = "";
    size_t used = 0;
    for (int i = 0; i < MRC_SEARCH_SIZES; i++)
        used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%s%lld centers: %.4g", i ? ", " : "",
                                 (long long)report->centers[i], report->center_errors[i]);
    if (isfinite(report->more_centers))
        snprintf(gain, sizeof gain, "; twice as many centers would reduce the error by about %.1f %%",
                 100 * report->more_centers);
    mrc_fit_decide(self, "size", "errors", mrc_fit_origin(self, false, MRC_FROM_SEARCH), "%s", sizes);
    mrc_fit_explain(self, "size", "errors", "held-out error with %s%s", sizes, gain);
}

static void record_members(mercer_fitting *self)
{
    long long members = (long long)self->report.members;
    mrc_fit_decide(self, "size", "members", MRC_DEFAULT, "%lld", members);
    if (members > 1)
        mrc_fit_explain(
            self, "size", "members",
            "mean of %lld models with different seeds; solver, sizes and search are those of the first model", members);
}

void mrc_fit_record_size(mercer_fitting *self)
{
    mrc_fit_decide(self, "size", "ridge",
                   self->request->train.lambda != 0 ? MRC_GIVEN
                   : self->record.resumes           ? MRC_RESUMED
                   : self->search_report.steps      ? MRC_FROM_SEARCH
                                                    : MRC_FROM_DATA,
                   "%.17g", self->record.ridge);
    record_members(self);
    if (self->search_report.centers[0] > 0 && self->search_report.steps) record_errors(self);
}

void mrc_fit_record_centers(mercer_fitting *self)
{
    const mercer_fit_options *options = self->options;
    bool counted = options->centers.count != 0 || options->centers.given;
    bool chosen = options->centers.count < 0 || options->centers.given ||
                  (options->centers.method && strcmp(options->centers.method, "random") != 0);
    int64_t p = self->report.centers > 0 ? self->report.centers : mrc_fit_center_count(self);
    mrc_fit_decide(self, "centers", "centers",
                   mrc_fit_origin(self, counted, self->searches ? MRC_FROM_SEARCH : MRC_DEFAULT), "%lld", (long long)p);
    mrc_fit_decide(self, "centers", "center_method", mrc_fit_origin(self, chosen, MRC_DEFAULT), "%s",
                   self->report.center_method);
}

mercer_status mrc_stage_size(mercer_fitting *self)
{
    MRC_TRY(mrc_fit_choose_size(self));
    if (self->model_exists) MRC_TRY(mrc_fit_check_model(self));
    MRC_TRY(mrc_fit_choose_ridge(self));
    mrc_fit_record_size(self);
    return MERCER_OK;
}

mercer_status mrc_stage_centers(mercer_fitting *self)
{
    MRC_TRY(mrc_fit_open_stream(self, self->options->run.seed, self->options->data.samples, &self->source));
    if (!self->model_exists) MRC_TRY(mrc_fit_choose_centers(self, true));
    mrc_fit_record_centers(self); /* only now, because equal rows may have reduced the number of centers */
    if (!self->model_exists) MRC_TRY(mrc_fit_create_model(self));
    return mrc_fit_read_validation(self);
}
