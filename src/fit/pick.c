/* SPDX-License-Identifier: BSD-3-Clause */
/* How many centers, and which: given, all rows, samples of the augmentation, or chosen by a method. */
#include "fit/fitting.h"

#include "centers/center_selection.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "solvers/solver.h"

#include <stdio.h>
#include <string.h>

static bool is_augmented(const mercer_fit_options *options)
{
    return options->center_method && strcmp(options->center_method, "augmented") == 0;
}

bool mrc_fit_samples_are_centers(const mercer_fitting *self)
{
    const mrc_solver *solver = mrc_solver_find(self->train.solver);
    return solver && solver->traits & MRC_NEEDS_SAMPLES;
}

mercer_status mrc_fit_check_centers(const mercer_fit_options *options, mercer_context *context)
{
    mrc_center_method method;
    bool augmented = is_augmented(options);
    if (!augmented && !mrc_center_method_find(options->center_method, &method))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "center_method '%s' is not known; there are random, kmeans, rpcholesky, balanced and augmented",
                        options->center_method);
    if (augmented && !options->augment)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "center_method augmented takes samples of augment, which is NULL");
    if (augmented && options->center_type)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "center_method augmented keeps the type of the samples: leave center_type 0");
    if (options->centers < -1)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "centers is %lld; it is a number, 0: chosen, or -1: all rows",
                        (long long)options->centers);
    if ((options->center_iterations || options->center_batch) &&
        (augmented || method != MRC_CENTERS_KMEANS || options->centers < 0 || options->given_centers))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s is for center_method kmeans",
                        options->center_iterations ? "center_iterations" : "center_batch");
    return MERCER_OK;
}

/* Every row is a center, in the order of the rows. Random rows that are all of them are that, too. */
static bool takes_all(const mercer_fitting *self)
{
    const mercer_fit_options *options = &self->options;
    bool random = !options->center_method || strcmp(options->center_method, "random") == 0;
    if (options->centers != 0) return options->centers < 0 || (random && options->centers == self->info.rows);
    return mrc_fit_samples_are_centers(self) || (random && self->info.rows <= mrc_fit_default_centers(self));
}

int64_t mrc_fit_center_count(const mercer_fitting *self)
{
    if (self->options.given_centers) return self->options.given_centers->rows;
    if (takes_all(self)) return self->info.rows;
    if (self->options.centers == 0) return mrc_min(self->info.rows, mrc_fit_default_centers(self));
    /* More centers than rows are an error, but merging may leave fewer rows than the caller knows of. */
    bool fewer = self->options.centers <= self->given_rows && !self->options.augment;
    return fewer ? mrc_min(self->options.centers, self->info.rows) : self->options.centers;
}

bool mrc_fit_all_rows_count(const mercer_fitting *self)
{
    const mercer_dataset *data = self->data;
    for (int64_t i = 0; data && data->weights && i < data->rows; i++)
        if (!(data->weights[i] > 0)) return false;
    return data && takes_all(self) && !self->options.given_centers && !self->options.augment;
}

const char *mrc_fit_center_method(const mercer_fitting *self)
{
    if (self->options.given_centers) return "given";
    if (takes_all(self)) return "all";
    return self->options.center_method ? self->options.center_method : "random";
}

/* Room for p centers, or for this rank's share of them; *first tells which of them is the first. */
static mercer_status make_room(mercer_fitting *self, int64_t p, bool shared, mercer_dtype dtype, int64_t *first)
{
    int64_t rows = p, d = mrc_fit_width(self);
    *first = 0;
    if (shared && self->options.comm) MRC_TRY(mercer_comm_share(self->options.comm, first, &rows, p));
    if (self->options.center_type) dtype = self->options.center_type;
    self->centers = mrc_view(NULL, rows, d, dtype);
    MRC_TRY(mrc_alloc(self->context, &self->centers.data, rows, mrc_max(1, d) * mrc_dtype_size(dtype), "centers"));
    self->report.centers = p;
    return MERCER_OK;
}

/* The rows of a dataset, in their order. */
static mercer_status take_rows(mercer_fitting *self, const mercer_dataset *data, bool shared)
{
    int64_t first;
    MRC_TRY(make_room(self, data->rows, shared, mercer_preprocess_dtype(self->applied, data->dtype), &first));
    if (self->centers.rows == 0) return MERCER_OK;
    return mercer_dataset_read(data, &self->centers, NULL, NULL, self->applied, NULL, first);
}

static int tell_progress(void *user, int64_t done, int64_t total, double error)
{
    const mercer_fitting *self = user;
    return self->options.progress ? self->options.progress(self->options.progress_user, "centers", done, total, error)
                                  : 0;
}

static mercer_status choose(mercer_fitting *self, mercer_dataset *from, int64_t p, bool shared)
{
    int64_t first;
    MRC_TRY(make_room(self, p, shared, self->report.points, &first));
    mercer_center_report report = {.struct_size = sizeof report};
    const mercer_center_options options = {.struct_size = sizeof options,
                                           .method = self->options.center_method,
                                           .seed = self->options.seed,
                                           .kernel = &self->kernel,
                                           .iterations = self->options.center_iterations,
                                           .batch = self->options.center_batch,
                                           .memory = mrc_fit_memory_left(self, p),
                                           .progress = tell_progress,
                                           .progress_user = self,
                                           .comm = self->options.comm,
                                           .total_centers = shared && self->options.comm ? p : 0};
    MRC_TRY(mercer_choose_centers_from(from, &self->centers, self->applied, &options, &report));
    self->report.center_iterations = report.iterations;
    self->report.center_error = report.error;
    self->report.center_seconds = report.seconds;
    return MERCER_OK;
}

/* The rows with different features: a center that occurs twice makes K(Z, Z) singular. *out is to be released; NULL if
   all rows differ, or a solver was asked for whose centers are the samples. */
static mercer_status take_distinct(const mercer_fitting *self, mercer_dataset **out)
{
    int64_t *rows, count;
    if (!mrc_fit_merges(self) || mrc_fit_samples_are_centers(self)) return MERCER_OK;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_fit_distinct_rows(&scope, self->data, &rows, &count));
    return count < self->data->rows ? mrc_dataset_take(out, self->data, rows, count) : MERCER_OK;
}

/* Samples as training sees them, from a stream of their own: there may be more of them than rows. */
static mercer_status draw_augmented(mercer_fitting *self, int64_t p, bool shared)
{
    enum { CENTER_STREAM = 0x7a656e74, MOST = 4096 };
    mercer_source source = {0};
    int64_t first, done = 0;
    MRC_TRY(make_room(self, p, shared, self->report.points, &first));
    int64_t row_bytes = self->centers.cols * mrc_dtype_size(self->centers.dtype);
    MRC_TRY(mrc_fit_open_stream(self, self->options.seed + CENTER_STREAM, p, &source));
    bool failed = source.restart(source.user, 0), stopped = false;
    while (!failed && done < p && !stopped) {
        mercer_batch batch = {0};
        failed = source.next(source.user, mrc_min(p - done, MOST), &batch);
        if (failed || batch.X.rows == 0) break;
        for (int64_t i = 0; i < batch.X.rows; i++, done++) {
            if (done < first || done >= first + self->centers.rows) continue; /* another rank's */
            memcpy(mrc_row(&self->centers, done - first), mrc_row(&batch.X, i), (size_t)row_bytes);
        }
        stopped = tell_progress(self, done, p, 0) != 0 && !self->options.comm; /* ranks draw alike */
    }
    mercer_source_free(&source);
    if (failed || done < p)
        return mrc_fail(self->context, stopped ? MERCER_ERROR_CALLBACK : MERCER_ERROR_DATA,
                        stopped ? "stopped while centers were drawn" : "the samples for centers cannot be read");
    return MERCER_OK;
}

mercer_status mrc_fit_pick_centers(mercer_fitting *self, bool shared)
{
    const mercer_fit_options *options = &self->options;
    int64_t p = mrc_fit_center_count(self), n = self->info.rows;
    bool given = options->given_centers != NULL, all = takes_all(self);
    snprintf(self->report.center_method, sizeof self->report.center_method, "%s", mrc_fit_center_method(self));
    if (given && options->given_centers->features != self->info.features)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "given_centers: %lld features, but the data have %lld",
                        (long long)options->given_centers->features, (long long)self->info.features);
    if (given && options->centers > 0 && options->centers != p)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "given_centers has %lld rows, but centers is %lld",
                        (long long)p, (long long)options->centers);
    if (!given && p > n && !is_augmented(options))
        return mrc_fail(self->context, MERCER_ERROR_SHAPE, "centers is %lld, more than the %lld rows of the data",
                        (long long)p, (long long)n);
    if (shared) MRC_TRY(mrc_fit_plan(self, p, NULL)); /* centers that will not be trained need not fit */
    if (given) return take_rows(self, options->given_centers, shared);
    if (options->centers > p)
        mrc_warn(self->context, "centers",
                 "centers is %lld, but only %lld different rows are trained on: all of them "
                 "are centers",
                 (long long)options->centers, (long long)p);
    if (is_augmented(options) && !all) return draw_augmented(self, p, shared);
    MRC_OWNED(mrc_release_dataset) mercer_dataset *distinct = NULL;
    MRC_TRY(take_distinct(self, &distinct));
    mercer_dataset *from = distinct ? distinct : self->data;
    return all ? take_rows(self, from, shared) : choose(self, from, mrc_min(p, from->rows), shared);
}
