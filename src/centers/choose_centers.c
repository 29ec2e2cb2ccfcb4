/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selection of centers by the requested method, from a matrix or from a dataset. If the rows come from a dataset, only
 * the rows that the method needs are read, and at most as many as fit into memory.
 */
#include "centers/center_selection.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "data/prepare/preprocess.h"

#include <stdlib.h>
#include <string.h>

static const char *const method_names[MRC_CENTER_METHODS] = {"random", "kmeans", "rpcholesky", "balanced"};

bool mrc_center_method_find(const char *name, mrc_center_method *out)
{
    for (int i = 0; i < MRC_CENTER_METHODS; i++)
        if (strcmp(name ? name : "random", method_names[i]) == 0) return *out = (mrc_center_method)i, true;
    return false;
}

mercer_status mrc_check_center_kernel(mercer_context *context, mrc_center_method method, const mercer_kernel *kernel)
{
    if (method != MRC_CENTERS_KMEANS || mrc_kernel_argument(kernel) != MRC_ON_DIFFERENCES) return MERCER_OK;
    return mrc_fail(
        context, MERCER_ERROR_ARGUMENT,
        "center_method kmeans needs a kernel of the L2 distance, but this kernel has p = %g; use random, balanced or "
        "rpcholesky",
        mrc_kernel_norm(kernel));
}

/* Checks that values fit centers of type u8. Values outside of 0 .. 255 would be clamped and become other points. */
static mercer_status check_bytes(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X)
{
    if (centers->dtype != MERCER_U8 || X->dtype == MERCER_U8) return MERCER_OK;
    for (int64_t i = 0; i < X->rows; i++)
        for (int64_t j = 0; j < X->cols; j++) {
            double value = mrc_load(X, i, j);
            if (value >= -0.5 && value <= 255.5) continue;
            return mrc_fail(context, MERCER_ERROR_DATA,
                            "centers are u8 (0 .. 255), but X has %g at row %lld, column %lld (from 0); use f32 "
                            "centers",
                            value, (long long)i, (long long)j);
        }
    return MERCER_OK;
}

/* Copies the listed rows of X to `centers`, rounded to the dtype of `centers`. rows NULL: the first rows. */
static mercer_status copy_rows(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                               const int64_t *rows)
{
    double *row;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &row, X->cols, sizeof *row, "a row"));
    for (int64_t i = 0; i < centers->rows; i++) {
        mrc_load_row_f64(X, rows ? rows[i] : i, row);
        mrc_store_row_f64(centers, i, row);
    }
    return MERCER_OK;
}

/* Chooses row numbers by the methods that need no features: random, weighted and balanced. */
static mercer_status number_rows(const mrc_center_request *request, const double *weights, int64_t n, int64_t *rows)
{
    const mercer_center_options *options = &request->options;
    if (request->method == MRC_CENTERS_BALANCED)
        return mrc_choose_balanced(request->context, options->seed, options->labels, n, options->classes, request->p,
                                   rows);
    if (weights) return mrc_choose_weighted(request->context, options->seed, weights, n, request->p, rows);
    mrc_choose_random(options->seed, n, request->p, rows);
    return MERCER_OK;
}

/* Chooses rows of X as centers, for all methods except k-means. */
static mercer_status choose_rows(const mrc_center_request *request, mrc_center_selection *selection)
{
    int64_t *rows;
    MRC_SCOPE(scope, request->context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, selection->p, sizeof *rows, "row numbers"));
    MRC_TRY(request->method == MRC_CENTERS_RPCHOLESKY ? mrc_rpcholesky(selection, rows)
                                                      : number_rows(request, NULL, selection->x->rows, rows));
    return copy_rows(request->context, request->centers, selection->x, rows + selection->first);
}

mercer_status mrc_choose_centers(mrc_center_request *request, const mercer_matrix *X)
{
    mercer_context *context = request->context;
    bool kmeans = request->method == MRC_CENTERS_KMEANS;
    double top;
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(check_bytes(context, request->centers, X));
    mrc_center_selection selection = {.backend = context->backend,
                                      .x = X,
                                      .p = request->p,
                                      .comm = request->options.comm,
                                      .first = request->first,
                                      .options = &request->options};
    if (kmeans) MRC_TRY(mrc_check_range(context, top, X->cols, &selection.wide));
    if (selection.p > 0) MRC_TRY(kmeans ? mrc_kmeans(&selection, request->centers) : choose_rows(request, &selection));
    request->report = selection.report;
    return MERCER_OK;
}

/* ---- From a dataset -------------------------------------------------------------------------------------------- */

/* LABELS_BYTES: size of a block of samples that are computed only for their labels. KMEANS_ROWS and KMEANS_LEAST are
   explained at count_part. */
enum { LABELS_BYTES = 1 << 20, KMEANS_ROWS = 512, KMEANS_LEAST = 65536 };

/* Computes the class of every sample, for datasets that do not store labels. */
static mercer_status compute_labels(const mercer_dataset *dataset, int32_t *labels)
{
    int64_t row = mrc_max(1, dataset->features * mrc_dtype_size(dataset->dtype));
    int64_t block_rows = mrc_max(1, LABELS_BYTES / row);
    void *memory;
    MRC_SCOPE(scope, dataset->context);
    MRC_TRY(mrc_scope_alloc(&scope, &memory, block_rows, row, "a block of samples"));
    for (int64_t first = 0; first < dataset->rows; first += block_rows) {
        mercer_matrix x =
            mrc_view(memory, mrc_min(block_rows, dataset->rows - first), dataset->features, dataset->dtype);
        mrc_dataset_fetch(dataset, NULL, first, &x, NULL, labels + first);
    }
    return MERCER_OK;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Reads `count` listed samples, preprocessed, into memory that the scope owns. */
static mercer_status read_rows(const mercer_dataset *dataset, const mercer_preprocess *preprocess, const int64_t *rows,
                               int64_t count, mrc_scope *scope, mercer_matrix *out)
{
    mercer_dtype dtype = mrc_preprocess_dtype(preprocess, dataset->dtype);
    int64_t width = mrc_preprocess_width(preprocess, dataset->features);
    MRC_TRY(mrc_scope_view(scope, out, count, width, dtype, "samples to choose centers from"));
    return mercer_dataset_read(dataset, out, NULL, NULL, preprocess, rows, 0);
}

/* Chooses centers by method random or balanced, and reads only the rows that become centers. */
static mercer_status choose_few(mrc_center_request *request, mercer_dataset *dataset,
                                const mercer_preprocess *preprocess, int64_t *rows)
{
    mercer_context *context = request->context;
    mercer_center_options *options = &request->options;
    int32_t *labels;
    mercer_matrix part;
    MRC_SCOPE(scope, context);
    if (request->method == MRC_CENTERS_BALANCED && !(options->labels = dataset->labels)) {
        if (dataset->task != MERCER_TASK_CLASSIFICATION)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                            "options: method balanced needs classes, but the dataset has none; use random");
        MRC_TRY(mrc_scope_alloc(&scope, &labels, dataset->rows, sizeof *labels, "labels"));
        MRC_TRY(compute_labels(dataset, labels));
        options->labels = labels;
    }
    options->classes = dataset->outputs;
    MRC_TRY(number_rows(request, dataset->weights, dataset->rows, rows));
    MRC_TRY(read_rows(dataset, preprocess, rows + request->first, request->centers->rows, &scope, &part));
    MRC_TRY(mrc_check_finite(context, "the centers' samples", &part, NULL));
    MRC_TRY(check_bytes(context, request->centers, &part));
    return copy_rows(context, request->centers, &part, NULL);
}

/*
 * Returns the number of rows for kmeans or rpcholesky: as many as fit in half of the memory limit. For rpcholesky the
 * other half must hold p numbers per row. For kmeans the number is at most 512 per center (all default mini-batches
 * together use about as many), or 65,536 if that is more.
 */
static int64_t count_part(const mrc_center_request *request, const mercer_dataset *dataset,
                          const mercer_preprocess *preprocess)
{
    int64_t size = mrc_dtype_size(mrc_preprocess_dtype(preprocess, dataset->dtype)), memory = request->options.memory;
    int64_t fit =
        memory / 2 / mrc_max(1, mrc_preprocess_width(preprocess, dataset->features) * size + (int64_t)sizeof(int64_t));
    int64_t useful = request->method == MRC_CENTERS_RPCHOLESKY ? memory / 2 / (request->p * mrc_max(size, 4))
                                                               : mrc_max(KMEANS_LEAST, KMEANS_ROWS * request->p);
    return mrc_min(dataset->rows, mrc_min(fit, useful));
}

/* Runs kmeans or rpcholesky on `count` random rows, read in the order of the file. rows (count): scratch. */
static mercer_status choose_from_part(mrc_center_request *request, mercer_dataset *dataset,
                                      const mercer_preprocess *preprocess, int64_t *rows, int64_t count)
{
    mercer_matrix part;
    MRC_SCOPE(scope, request->context);
    mrc_choose_random(request->options.seed, dataset->rows, count, rows);
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    if (count < dataset->rows)
        mrc_log(request->context, MERCER_LOG_INFO, "centers: %s uses %lld random samples of %lld",
                method_names[request->method], (long long)count, (long long)dataset->rows);
    MRC_TRY(read_rows(dataset, preprocess, rows, count, &scope, &part));
    request->options.memory -= count * (part.cols * mrc_dtype_size(part.dtype) + (int64_t)sizeof *rows);
    return mrc_choose_centers(request, &part);
}

/* Runs kmeans or rpcholesky on all rows, unchanged. Both methods need all rows in one matrix, so rows from several
   files are copied to a new matrix. */
static mercer_status choose_from_all(mrc_center_request *request, mercer_dataset *dataset)
{
    MRC_TRY(mrc_dataset_check(dataset));
    if (dataset->x.data) return mrc_choose_centers(request, &dataset->x);
    mercer_matrix all = dataset->x;
    MRC_SCOPE(scope, request->context);
    MRC_TRY(mrc_scope_alloc(&scope, &all.data, all.rows, all.cols * mrc_dtype_size(all.dtype),
                            "samples to choose centers from"));
    mrc_dataset_fetch(dataset, NULL, 0, &all, NULL, NULL);
    return mrc_choose_centers(request, &all);
}

mercer_status mrc_choose_centers_from(mrc_center_request *request, mercer_dataset *dataset,
                                      const mercer_preprocess *preprocess)
{
    mercer_context *context = request->context;
    int64_t p = request->p, count = p, memory = request->options.memory;
    bool few = request->method == MRC_CENTERS_RANDOM || request->method == MRC_CENTERS_BALANCED;
    if (p == 0) return MERCER_OK;
    if (!few) {
        int64_t bytes = dataset->rows * dataset->features * mrc_dtype_size(dataset->dtype);
        bool large = mrc_dataset_is_mapped(dataset) && bytes > memory / 2;
        if (!dataset->synth && mrc_preprocess_is_identity(preprocess) && !large)
            return choose_from_all(request, dataset);
        count = count_part(request, dataset, preprocess);
    }
    if (count < p)
        return mrc_fail(context, MERCER_ERROR_MEMORY,
                        "%s of %lld centers: only %lld samples fit into the memory limit of %lld bytes; raise the "
                        "limit or use fewer centers",
                        method_names[request->method], (long long)p, (long long)count, (long long)memory);
    int64_t *rows;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &rows, count, sizeof *rows, "row numbers"));
    return few ? choose_few(request, dataset, preprocess, rows)
               : choose_from_part(request, dataset, preprocess, rows, count);
}
