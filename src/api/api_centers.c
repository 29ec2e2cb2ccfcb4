/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: choosing centers, from a matrix and from a dataset. */
#include "centers/center_selection.h"

#include "api/api_options.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"

#include <stdlib.h>
#include <string.h>

typedef enum method { RANDOM, KMEANS, RPCHOLESKY, BALANCED, METHODS } method;
static const char *const method_names[METHODS] = {"random", "kmeans", "rpcholesky", "balanced"};

/* ---- Checks -------------------------------------------------------------------------------------------------- */

static mercer_status find_method(mercer_context *context, const char *name, method *out)
{
    for (int i = 0; i < METHODS; i++)
        if (strcmp(name ? name : "random", method_names[i]) == 0) return *out = (method)i, MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                    "options: method '%s' is not known; there are random, kmeans, rpcholesky and balanced", name);
}

static mercer_status check_labels(mercer_context *context, mercer_center_options *options, int64_t n)
{
    if (!options->labels)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: method balanced needs labels (a class number for each row of X)");
    int64_t most = options->classes > 0 ? options->classes : (int64_t)INT32_MAX, found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (options->labels[i] < 0 || options->labels[i] >= most)
            return mrc_fail(context, MERCER_ERROR_DATA, "labels: element %lld (from 0) is %d, classes are 0 .. %lld",
                            (long long)i, (int)options->labels[i], (long long)most - 1);
        found = mrc_max(found, options->labels[i] + INT64_C(1));
    }
    if (options->classes == 0) options->classes = found;
    return MERCER_OK;
}

static mercer_status check_options(mercer_context *context, mercer_center_options *options, method *chosen)
{
    MRC_TRY(find_method(context, options->method, chosen));
    struct {
        const char *name;
        int64_t value, least;
    } const whole[] = {{"classes", options->classes, 0},
                       {"iterations", options->iterations, 0},
                       {"batch", options->batch, -1},
                       {"memory", options->memory, 0}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i].value < whole[i].least)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %lld, it must be at least %lld",
                            whole[i].name, (long long)whole[i].value, (long long)whole[i].least);
    if (*chosen != KMEANS && (options->iterations != 0 || options->batch != 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is for method kmeans, not for %s",
                        options->iterations != 0 ? "iterations" : "batch",
                        options->method ? options->method : "random");
    if (*chosen == RPCHOLESKY) {
        if (!options->kernel)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: method rpcholesky needs the model's kernel");
        MRC_TRY(mrc_kernel_check(context, options->kernel));
    }
    if (options->memory == 0) options->memory = mrc_free_memory() / 2;
    return MERCER_OK;
}

/* What is wanted here of how many centers: all of them, or this rank's share. */
typedef struct wanted {
    int64_t p, first;
} wanted;

static mercer_status find_share(mercer_context *context, const mercer_matrix *centers,
                                const mercer_center_options *options, wanted *out)
{
    int64_t rows = 0;
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    *out = (wanted){.p = centers->rows};
    if (options->total_centers == 0) return MERCER_OK;
    if (!options->comm || options->total_centers < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: total_centers is %lld; it is for the ranks of a comm",
                        (long long)options->total_centers);
    out->p = options->total_centers;
    mrc_comm_rows(options->comm, out->p, options->comm->rank, &out->first, &rows);
    if (rows == centers->rows) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_SHAPE,
                    "centers has %lld rows, this rank's share of %lld is %lld: see mercer_comm_share",
                    (long long)centers->rows, (long long)out->p, (long long)rows);
}

/* All ranks must choose alike: with the memory of rank 0. */
static mercer_status share_memory(mercer_center_options *options)
{
    return options->comm ? mrc_comm_broadcast(options->comm, &options->memory, sizeof options->memory) : MERCER_OK;
}

static mercer_status check_sizes(mercer_context *context, const mercer_matrix *centers, int64_t p, int64_t n, int64_t d)
{
    if (centers->cols != d)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers has %lld columns, the samples have %lld",
                        (long long)centers->cols, (long long)d);
    if (p > n)
        return mrc_fail(
            context, MERCER_ERROR_SHAPE,
            "%lld centers are asked for, but there are only %lld samples; take at most %lld centers or give "
            "more samples",
            (long long)p, (long long)n, (long long)n);
    if (p > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers: %lld rows are more than %d", (long long)p, INT32_MAX);
    return MERCER_OK;
}

/* Bytes hold 0 .. 255: a value outside would be changed, not rounded. */
static mercer_status check_bytes(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X)
{
    if (centers->dtype != MERCER_U8 || X->dtype == MERCER_U8) return MERCER_OK;
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t j = 0; j < X->cols; j++) {
            double value = mrc_load(X, i, j);
            if (value >= -0.5 && value <= 255.5) continue;
            return mrc_fail(context, MERCER_ERROR_DATA,
                            "centers are u8, which holds 0 .. 255, but X has %g at row %lld, column %lld (from 0); "
                            "use f32 centers",
                            value, (long long)i, (long long)j);
        }
    return MERCER_OK;
}

/* ---- Choosing ------------------------------------------------------------------------------------------------ */

/* centers = rows of X, or its first ones if rows is NULL, rounded to the centers' type. */
static mercer_status copy_rows(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                               const int64_t *rows)
{
    void *row;
    MRC_TRY(mrc_alloc(context, &row, X->cols, sizeof(double), "a row"));
    for (int64_t i = 0; i < centers->rows; i++) {
        mrc_load_row_f64(X, rows ? rows[i] : i, row);
        mrc_store_row_f64(centers, i, row);
    }
    mrc_free(context, row);
    return MERCER_OK;
}

/* Numbers of rows, for the methods that need nothing else of them. */
static mercer_status number_rows(mercer_context *context, method chosen, const mercer_center_options *options,
                                 int64_t n, int64_t p, int64_t *rows)
{
    if (chosen == BALANCED)
        return mrc_choose_balanced(context, options->seed, options->labels, n, options->classes, p, rows);
    mrc_choose_random(options->seed, n, p, rows);
    return MERCER_OK;
}

/* The methods that choose rows as they are. */
static mercer_status choose_rows(mrc_center_selection *selection, method chosen, const mercer_matrix *centers)
{
    mercer_context *context = selection->backend->context;
    void *rows;
    MRC_TRY(mrc_alloc(context, &rows, selection->p, sizeof(int64_t), "row numbers"));
    mercer_status status =
        chosen == RPCHOLESKY ? mrc_rpcholesky(selection, rows)
                             : number_rows(context, chosen, selection->options, selection->x->rows, selection->p, rows);
    if (status == MERCER_OK) status = copy_rows(context, centers, selection->x, (int64_t *)rows + selection->first);
    mrc_free(context, rows);
    return status;
}

/* Everything but X's values has been checked. */
static mercer_status choose(mercer_context *context, const mercer_matrix *centers, wanted which, const mercer_matrix *X,
                            method chosen, const mercer_center_options *options, mercer_center_report *report)
{
    double top;
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(check_bytes(context, centers, X));
    mrc_center_selection selection = {.backend = context->backend, .x = X, .p = which.p, .options = options};
    selection.comm = options->comm, selection.first = which.first;
    if (chosen == KMEANS) MRC_TRY(mrc_check_range(context, top, X->cols, &selection.wide));
    if (selection.p > 0)
        MRC_TRY(chosen == KMEANS ? mrc_kmeans(&selection, centers) : choose_rows(&selection, chosen, centers));
    *report = selection.report;
    return MERCER_OK;
}

static mercer_status write_report(mercer_context *context, mercer_center_report *theirs, mercer_center_report *ours,
                                  double start)
{
    ours->struct_size = sizeof *ours;
    ours->seconds = mrc_seconds() - start;
    return theirs ? mrc_write_struct(context, theirs, ours, MRC_STRUCT(mercer_center_report), "report") : MERCER_OK;
}

mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                                    const mercer_center_options *options, mercer_center_report *report)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    double start = mrc_seconds();
    method chosen = RANDOM;
    mercer_center_options ours;
    mercer_center_report done = {0};
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_center_options), options, "options"));
    MRC_TRY(check_options(context, &ours, &chosen));
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    wanted which;
    MRC_TRY(find_share(context, centers, &ours, &which));
    MRC_TRY(check_sizes(context, centers, which.p, X->rows, X->cols));
    MRC_TRY(mrc_check_apart(context, "centers", centers, "X", X));
    if (chosen == BALANCED) MRC_TRY(check_labels(context, &ours, X->rows));
    MRC_TRY(share_memory(&ours));
    MRC_TRY(choose(context, centers, which, X, chosen, &ours, &done));
    return write_report(context, report, &done, start);
}

/* ---- From a dataset -------------------------------------------------------------------------------------------- */

enum { LABELS_BYTES = 1 << 20, KMEANS_ROWS = 512, KMEANS_LEAST = 65536 };

/* The class of every sample, where they are computed and not stored. */
static mercer_status compute_labels(const mercer_dataset *dataset, int32_t *labels)
{
    int64_t row = mrc_max(1, dataset->features * mrc_dtype_size(dataset->dtype));
    int64_t room = mrc_max(1, LABELS_BYTES / row);
    void *memory;
    MRC_TRY(mrc_alloc(dataset->context, &memory, room, row, "a block of samples"));
    for (int64_t first = 0; first < dataset->rows; first += room) {
        mercer_matrix x = mrc_view(memory, mrc_min(room, dataset->rows - first), dataset->features, dataset->dtype);
        mrc_dataset_fetch(dataset, NULL, first, &x, NULL, labels + first);
    }
    mrc_free(dataset->context, memory);
    return MERCER_OK;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* `count` samples in memory, preprocessed: those that `rows` names. *memory is to be released, whatever happens. */
static mercer_status read_rows(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t count, void **memory, mercer_matrix *out)
{
    mercer_dtype dtype = mrc_preprocess_dtype(preprocess, dataset->dtype);
    int64_t row = dataset->features * mrc_dtype_size(dtype);
    MRC_TRY(mrc_alloc(dataset->context, memory, count, row, "samples to choose centers from"));
    *out = mrc_view(*memory, count, dataset->features, dtype);
    return mercer_dataset_read(dataset, out, NULL, NULL, preprocess, rows, 0);
}

/* random and balanced: only the rows that become centers are read. */
static mercer_status choose_few(mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                const mercer_matrix *centers, wanted which, method chosen,
                                mercer_center_options *options, int64_t *rows)
{
    mercer_context *context = dataset->context;
    void *labels = NULL, *memory = NULL;
    mercer_matrix part;
    if (chosen == BALANCED && !(options->labels = dataset->labels)) {
        if (dataset->task != MERCER_TASK_CLASSIFICATION)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                            "options: method balanced needs classes, and the dataset has none; use random");
        MRC_TRY(mrc_alloc(context, &labels, dataset->rows, sizeof(int32_t), "labels"));
        options->labels = labels;
    }
    options->classes = dataset->outputs;
    mercer_status status = labels ? compute_labels(dataset, labels) : MERCER_OK;
    if (status == MERCER_OK) status = number_rows(context, chosen, options, dataset->rows, which.p, rows);
    if (status == MERCER_OK) status = read_rows(dataset, preprocess, rows + which.first, centers->rows, &memory, &part);
    if (status == MERCER_OK) status = mrc_check_finite(context, "the centers' samples", &part, NULL);
    if (status == MERCER_OK) status = check_bytes(context, centers, &part);
    if (status == MERCER_OK) status = copy_rows(context, centers, &part, NULL);
    mrc_free(context, memory);
    mrc_free(context, labels);
    return status;
}

/*
 * How many rows kmeans and rpcholesky get to see: as many as fit half of the memory; for rpcholesky, with p numbers
 * each in the other half; for kmeans, no more than its mini-batches would ever take.
 */
static int64_t count_part(const mercer_dataset *dataset, const mercer_preprocess *preprocess, int64_t p, method chosen,
                          int64_t memory)
{
    int64_t size = mrc_dtype_size(mrc_preprocess_dtype(preprocess, dataset->dtype));
    int64_t fit = memory / 2 / mrc_max(1, dataset->features * size + (int64_t)sizeof(int64_t));
    int64_t useful =
        chosen == RPCHOLESKY ? memory / 2 / (p * mrc_max(size, 4)) : mrc_max(KMEANS_LEAST, KMEANS_ROWS * p);
    return mrc_min(dataset->rows, mrc_min(fit, useful));
}

/* kmeans and rpcholesky on a random part of the rows, in the order of the file. rows: room for `count`. */
static mercer_status choose_from_part(mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                      const mercer_matrix *centers, wanted which, method chosen,
                                      mercer_center_options *options, int64_t *rows, int64_t count,
                                      mercer_center_report *report)
{
    mercer_context *context = dataset->context;
    void *memory = NULL;
    mercer_matrix part;
    mrc_choose_random(options->seed, dataset->rows, count, rows);
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    if (count < dataset->rows)
        mrc_log(context, MERCER_LOG_INFO, "centers: %s sees %lld random samples of %lld", method_names[chosen],
                (long long)count, (long long)dataset->rows);
    mercer_status status = read_rows(dataset, preprocess, rows, count, &memory, &part);
    if (status == MERCER_OK) {
        options->memory -= count * (part.cols * mrc_dtype_size(part.dtype) + (int64_t)sizeof *rows);
        status = choose(context, centers, which, &part, chosen, options, report);
    }
    mrc_free(context, memory);
    return status;
}

/* kmeans and rpcholesky on all rows as they are stored. They want one matrix: rows in several files are brought
   together. */
static mercer_status choose_from_all(mercer_dataset *dataset, const mercer_matrix *centers, wanted which, method chosen,
                                     mercer_center_options *options, mercer_center_report *report)
{
    mercer_context *context = dataset->context;
    if (dataset->x.data) return choose(context, centers, which, &dataset->x, chosen, options, report);
    mercer_matrix all = dataset->x;
    MRC_TRY(mrc_alloc(context, &all.data, all.rows, all.cols * mrc_dtype_size(all.dtype),
                      "samples to choose centers from"));
    mrc_dataset_fetch(dataset, NULL, 0, &all, NULL, NULL);
    mercer_status status = choose(context, centers, which, &all, chosen, options, report);
    mrc_free(context, all.data);
    return status;
}

static mercer_status choose_from(mercer_dataset *dataset, const mercer_preprocess *preprocess,
                                 const mercer_matrix *centers, wanted which, method chosen,
                                 mercer_center_options *options, mercer_center_report *report)
{
    mercer_context *context = dataset->context;
    int64_t p = which.p, count = p;
    bool few = chosen == RANDOM || chosen == BALANCED, mapped = mrc_dataset_is_mapped(dataset);
    if (p == 0) return MERCER_OK;
    if (!few) {
        int64_t bytes = dataset->rows * dataset->features * mrc_dtype_size(dataset->dtype);
        if (!dataset->synth && mrc_preprocess_is_identity(preprocess) && !(mapped && bytes > options->memory / 2))
            return choose_from_all(dataset, centers, which, chosen, options, report);
        count = count_part(dataset, preprocess, p, chosen, options->memory);
    }
    if (count < p)
        return mrc_fail(
            context, MERCER_ERROR_MEMORY,
            "%s of %lld centers: only %lld samples fit options: memory of %lld bytes; allow more or take fewer "
            "centers",
            method_names[chosen], (long long)p, (long long)count, (long long)options->memory);
    void *rows;
    MRC_TRY(mrc_alloc(context, &rows, count, sizeof(int64_t), "row numbers"));
    mercer_status status =
        few ? choose_few(dataset, preprocess, centers, which, chosen, options, rows)
            : choose_from_part(dataset, preprocess, centers, which, chosen, options, rows, count, report);
    mrc_free(context, rows);
    return status;
}

mercer_status mercer_choose_centers_from(mercer_dataset *dataset, const mercer_matrix *centers,
                                         const mercer_preprocess *preprocess, const mercer_center_options *options,
                                         mercer_center_report *report)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    mercer_context *context = dataset->context;
    double start = mrc_seconds();
    method chosen = RANDOM;
    mercer_center_options ours;
    mercer_center_report done = {0};
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_center_options), options, "options"));
    MRC_TRY(check_options(context, &ours, &chosen));
    if (ours.labels) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: labels is set; the dataset has its own");
    wanted which;
    MRC_TRY(find_share(context, centers, &ours, &which));
    MRC_TRY(check_sizes(context, centers, which.p, dataset->rows, dataset->features));
    for (int64_t first = 0; !dataset->synth && first < dataset->rows;) {
        mrc_part part = mrc_dataset_part(dataset, first);
        MRC_TRY(mrc_check_apart(context, "centers", centers, "the dataset", &part.rows));
        first += part.rows.rows;
    }
    MRC_TRY(share_memory(&ours));
    MRC_TRY(choose_from(dataset, preprocess, centers, which, chosen, &ours, &done));
    return write_report(context, report, &done, start);
}
