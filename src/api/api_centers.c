/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: choosing centers, from a matrix and from a dataset.
 *
 * Order of the checks: options, number of centers of all ranks, shape against the samples, overlap, labels. Only then
 * do the ranks agree on a memory limit. The methods (src/centers) rely on a request in which every option that was 0
 * has its default value.
 */
#include "centers/center_selection.h"

#include "api/api_options.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/prepare/preprocess.h"

#include <math.h>

/* ---- Checks -------------------------------------------------------------------------------------------------- */

/* Checks the labels (n) for `balanced`. If the number of classes is not given, it becomes the largest label plus 1, so
   classes without rows are possible. */
static mercer_status check_labels(mercer_context *context, mercer_center_options *options, int64_t n)
{
    if (!options->labels)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: method balanced needs labels (a class number for each row of X)");
    int64_t found = 0;
    MRC_TRY(mrc_check_classes(context, options->labels, n, options->classes > 0 ? options->classes : INT32_MAX));
    for (int64_t i = 0; i < n; i++) found = mrc_max(found, options->labels[i] + INT64_C(1));
    if (options->classes == 0) options->classes = found;
    return MERCER_OK;
}

/* Checks the options that need neither samples nor ranks, and sets `method` and the default memory limit. The kernel is
   optional for k-means, which uses it only to refuse a distance other than L2. */
static mercer_status check_options(mrc_center_request *request)
{
    mercer_context *context = request->context;
    mercer_center_options *options = &request->options;
    if (!mrc_center_method_find(options->method, &request->method))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: method '%s' is unknown; valid: random, kmeans, rpcholesky, balanced",
                        options->method);
    const mrc_bound whole[] = {{"classes", options->classes, 0},
                               {"iterations", options->iterations, 0},
                               {"batch", options->batch, -1},
                               {"memory", options->memory, 0}};
    MRC_TRY(mrc_check_bounds(context, whole, sizeof whole / sizeof *whole));
    if (request->method != MRC_CENTERS_KMEANS && (options->iterations != 0 || options->batch != 0))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: %s has no effect with method %s; set it only for "
                        "kmeans",
                        options->iterations != 0 ? "iterations" : "batch",
                        options->method ? options->method : "random");
    if (request->method == MRC_CENTERS_RPCHOLESKY) {
        if (!options->kernel)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: method rpcholesky needs the model's kernel");
        MRC_TRY(mrc_kernel_check(context, options->kernel));
    }
    if (request->method == MRC_CENTERS_KMEANS && options->kernel) {
        MRC_TRY(mrc_kernel_check(context, options->kernel));
        MRC_TRY(mrc_check_center_kernel(context, request->method, options->kernel));
    }
    if (options->memory == 0) options->memory = mrc_free_memory() / 2;
    return MERCER_OK;
}

/* Sets p, the total number of centers, and checks that `centers` has the size of all of them or of this rank's
   share. */
static mercer_status find_share(mrc_center_request *request)
{
    mercer_context *context = request->context;
    const mercer_center_options *options = &request->options;
    int64_t rows = 0;
    MRC_TRY(mrc_check_matrix(context, "centers", request->centers, MRC_ACCEPT_ANY));
    request->p = request->centers->rows;
    if (options->total_centers == 0) return MERCER_OK;
    if (!options->comm || options->total_centers < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: total_centers is %lld without comm; set it only "
                        "with comm",
                        (long long)options->total_centers);
    request->p = options->total_centers;
    mrc_comm_rows(options->comm, request->p, options->comm->rank, &request->first, &rows);
    if (rows == request->centers->rows) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_SHAPE,
                    "centers has %lld rows, but this rank's share of %lld is %lld; see mercer_comm_share",
                    (long long)request->centers->rows, (long long)request->p, (long long)rows);
}

/* Broadcasts rank 0's memory limit: the choice depends on it, and all ranks must make the same choice. */
static mercer_status share_memory(mercer_center_options *options)
{
    return options->comm ? mrc_comm_broadcast(options->comm, &options->memory, sizeof options->memory) : MERCER_OK;
}

/* Checks the shape of the centers against n samples with d features. */
static mercer_status check_sizes(const mrc_center_request *request, int64_t n, int64_t d)
{
    mercer_context *context = request->context;
    int64_t p = request->p;
    if (request->centers->cols != d)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers has %lld columns, but the samples have %lld",
                        (long long)request->centers->cols, (long long)d);
    if (p > n)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%lld centers are requested from %lld samples; use at most %lld centers", (long long)p,
                        (long long)n, (long long)n);
    if (p > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers: %lld rows are more than the maximum of %d", (long long)p,
                        INT32_MAX);
    return MERCER_OK;
}

/* Reads the options and checks everything that does not depend on samples. */
static mercer_status read_request(mrc_center_request *request, const mercer_center_options *options)
{
    MRC_TRY(
        mrc_read_struct(request->context, &request->options, MRC_STRUCT(mercer_center_options), options, "options"));
    MRC_TRY(check_options(request));
    return find_share(request);
}

static mercer_status write_report(mrc_center_request *request, mercer_center_report *theirs, double start)
{
    request->report.struct_size = sizeof request->report;
    request->report.seconds = mrc_seconds() - start;
    return theirs ? mrc_write_struct(request->context, theirs, &request->report, MRC_STRUCT(mercer_center_report),
                                     "report")
                  : MERCER_OK;
}

mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                                    const mercer_center_options *options, mercer_center_report *report)
{
    MRC_TRY(mrc_context_ready(context));
    double start = mrc_seconds();
    mrc_center_request request = {.context = context, .centers = centers};
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(read_request(&request, options));
    MRC_TRY(check_sizes(&request, X->rows, X->cols));
    MRC_TRY(mrc_check_apart(context, "centers", centers, "X", X));
    if (request.method == MRC_CENTERS_BALANCED) MRC_TRY(check_labels(context, &request.options, X->rows));
    MRC_TRY(share_memory(&request.options));
    MRC_TRY(mrc_choose_centers(&request, X));
    return write_report(&request, report, start);
}

mercer_status mercer_choose_centers_from(mercer_dataset *dataset, const mercer_matrix *centers,
                                         const mercer_preprocess *preprocess, const mercer_center_options *options,
                                         mercer_center_report *report)
{
    if (!dataset) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "dataset is NULL");
    mercer_context *context = dataset->context;
    MRC_TRY(mrc_context_ready(context));
    double start = mrc_seconds();
    mrc_center_request request = {.context = context, .centers = centers};
    MRC_TRY(read_request(&request, options));
    if (request.options.labels)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: labels is set, but the dataset already has labels; leave it NULL");
    MRC_TRY(check_sizes(&request, dataset->rows, mrc_preprocess_width(preprocess, dataset->features)));
    for (int64_t first = 0; !dataset->synth && first < dataset->rows;) {
        mrc_part part = mrc_dataset_part(dataset, first);
        MRC_TRY(mrc_check_apart(context, "centers", centers, "the dataset", &part.rows));
        first += part.rows.rows;
    }
    MRC_TRY(share_memory(&request.options));
    MRC_TRY(mrc_choose_centers_from(&request, dataset, preprocess));
    return write_report(&request, report, start);
}

/* ---- Nearest rows and the median distance -------------------------------------------------------------------- */

/* Sets *norm to the norm of the kernel's distance, or to 2 without a kernel. Fails with MERCER_ERROR_KERNEL for a
   kernel of the inner product. */
static mercer_status norm_of(mercer_context *context, const mercer_kernel *kernel, double *norm)
{
    *norm = 2;
    if (!kernel) return MERCER_OK;
    MRC_TRY(mrc_kernel_check(context, kernel));
    *norm = mrc_kernel_norm(kernel);
    if (*norm > 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_KERNEL,
                    "kernel: a function of the inner product has no distance; use a "
                    "kernel of the distance");
}

/* Finds the nearest row of Z for each row of X. sums (n), or NULL: sum_k |x_k - z_k|^norm. If the largest elements show
   that sums in float could overflow, the sums are computed in double (search.wide). The indices are 32-bit, which
   limits the rows of Z. */
static mercer_status search_rows(mercer_context *context, double norm, int32_t *nearest, double *sums,
                                 const mercer_matrix *X, const mercer_matrix *Z)
{
    double x_top, z_top;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "Z", Z, MRC_ACCEPT_ANY));
    if (X->cols != Z->cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "X has %lld columns, but Z has %lld; they must have the same "
                        "features",
                        (long long)X->cols, (long long)Z->cols);
    if (Z->rows < 1 || Z->rows > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "Z has %lld rows; it must have 1 .. %d", (long long)Z->rows,
                        INT32_MAX);
    if (X->rows > 0 && !nearest) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "nearest is NULL");
    MRC_TRY(mrc_check_finite(context, "X", X, &x_top));
    MRC_TRY(mrc_check_finite(context, "Z", Z, &z_top));
    mrc_search search = {.x = X, .z = Z, .norm = norm};
    MRC_TRY(mrc_check_range(context, fmax(x_top, z_top), X->cols, &search.wide));
    MRC_SCOPE(scope, context);
    if (!sums) MRC_TRY(mrc_scope_alloc(&scope, &sums, X->rows, sizeof *sums, "distances"));
    return context->backend->ops->nearest_rows(context->backend, &search, nearest, sums);
}

/* Without a kernel the sums are returned: squared distances of bytes are integers, and a root would round them. With a
   kernel the root gives the distance that the kernel is a function of. */
mercer_status mercer_nearest_rows(mercer_context *context, int32_t *nearest, double *distances,
                                  const mercer_kernel *kernel, const mercer_matrix *X, const mercer_matrix *Z)
{
    MRC_TRY(mrc_context_ready(context));
    double norm;
    MRC_TRY(norm_of(context, kernel, &norm));
    MRC_TRY(search_rows(context, norm, nearest, distances, X, Z));
    for (int64_t i = 0; kernel && i < X->rows && distances; i++) distances[i] = mrc_norm_root(norm, distances[i]);
    return MERCER_OK;
}

/* A median of 0 is refused, because it cannot be a bandwidth. *out is written only after all checks. */
mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_kernel *kernel,
                                     const mercer_matrix *X, uint64_t seed)
{
    MRC_TRY(mrc_context_ready(context));
    double norm, top, median;
    bool wide;
    MRC_TRY(norm_of(context, kernel, &norm));
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    if (X->rows < 2)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld rows; a median distance needs at least 2",
                        (long long)X->rows);
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(mrc_check_range(context, top, X->cols, &wide));
    MRC_TRY(mrc_median_distance(context->backend, norm, X, seed, &median));
    if (median == 0)
        return mrc_fail(context, MERCER_ERROR_DATA,
                        "X: all %lld compared rows are equal, so there is no median distance; set a bandwidth",
                        (long long)mrc_min(X->rows, MRC_MEDIAN_ROWS));
    *out = median;
    return MERCER_OK;
}
