/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: centers, nearest rows, the median distance. */
#include "algo/choice.h"

#include "api/options.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef enum method { RANDOM, KMEANS, RPCHOLESKY, BALANCED, METHODS } method;
static const char *const method_names[METHODS] = {"random", "kmeans", "rpcholesky", "balanced"};

mercer_status mercer_center_options_init(mercer_center_options *options, size_t struct_size)
{
    return mrc_init_struct(options, struct_size, "options");
}

/* ---- Checks -------------------------------------------------------------------------------------------------- */

/*
 * Squared distances between rows with values up to `top` must be numbers: *wide tells whether they need double. (Kernels
 * do without this check: they are 0 where a distance overflows.)
 */
static mercer_status check_range(mercer_context *context, double top, int64_t d, bool *wide)
{
    double square = 4 * top * top * (double)mrc_max(d, 1);
    *wide = top > 0 && !(square <= 1e36 && top >= 1e-15);
    if (top <= 0 || (square <= 1e300 && top >= 1e-140)) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_DATA,
                    "X has values up to %g: squared distances of %lld features leave the range of f64; scale the data",
                    top, (long long)d);
}

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
    if (*chosen == RPCHOLESKY) {
        if (!options->kernel)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: method rpcholesky needs the model's kernel");
        MRC_TRY(mrc_kernel_check(context, options->kernel));
    }
    if (options->memory == 0) options->memory = mrc_free_memory() / 2;
    return MERCER_OK;
}

static mercer_status check_sizes(mercer_context *context, const mercer_matrix *centers, int64_t n, int64_t d)
{
    MRC_TRY(mrc_check_matrix(context, "centers", centers, MRC_ACCEPT_ANY));
    if (centers->cols != d)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers has %lld columns, the samples have %lld",
                        (long long)centers->cols, (long long)d);
    if (centers->rows > n)
        return mrc_fail(
            context, MERCER_ERROR_SHAPE,
            "%lld centers are asked for, but there are only %lld samples; take at most %lld centers or give "
            "more samples",
            (long long)centers->rows, (long long)n, (long long)n);
    if (centers->rows > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "centers: %lld rows are more than %d", (long long)centers->rows,
                        INT32_MAX);
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

/* centers = rows of X, rounded to the centers' type. */
static mercer_status copy_rows(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                               const int64_t *rows)
{
    void *row;
    MRC_TRY(mrc_alloc(context, &row, X->cols, sizeof(double), "a row"));
    for (int64_t i = 0; i < centers->rows; i++) {
        mrc_load_row_f64(X, rows[i], row);
        mrc_store_row_f64(centers, i, row);
    }
    mrc_free(context, row);
    return MERCER_OK;
}

/* The methods that choose rows as they are. */
static mercer_status choose_rows(mrc_choice *choice, method chosen, const mercer_matrix *centers)
{
    mercer_context *context = choice->backend->context;
    const mercer_center_options *options = choice->options;
    void *memory;
    MRC_TRY(mrc_alloc(context, &memory, choice->p, sizeof(int64_t), "row numbers"));
    mercer_status status = MERCER_OK;
    if (chosen == RANDOM)
        mrc_choose_random(options->seed, choice->x->rows, choice->p, memory);
    else if (chosen == BALANCED)
        status = mrc_choose_balanced(context, options->seed, options->labels, choice->x->rows, options->classes,
                                     choice->p, memory);
    else
        status = mrc_rpcholesky(choice, memory);
    if (status == MERCER_OK) status = copy_rows(context, centers, choice->x, memory);
    mrc_free(context, memory);
    return status;
}

mercer_status mercer_choose_centers(mercer_context *context, const mercer_matrix *centers, const mercer_matrix *X,
                                    const mercer_center_options *options, mercer_center_report *report)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    double start = mrc_seconds(), top;
    method chosen = RANDOM;
    mercer_center_options ours;
    MRC_TRY(mrc_read_struct(context, &ours, sizeof ours, options, "options"));
    MRC_TRY(check_options(context, &ours, &chosen));
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(check_sizes(context, centers, X->rows, X->cols));
    MRC_TRY(mrc_check_apart(context, "centers", centers, "X", X));
    if (chosen == BALANCED) MRC_TRY(check_labels(context, &ours, X->rows));
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(check_bytes(context, centers, X));
    mrc_choice choice = {.backend = context->backend, .x = X, .p = centers->rows, .options = &ours};
    choice.report.struct_size = sizeof choice.report;
    if (chosen == KMEANS) MRC_TRY(check_range(context, top, X->cols, &choice.wide));
    if (choice.p > 0) MRC_TRY(chosen == KMEANS ? mrc_kmeans(&choice, centers) : choose_rows(&choice, chosen, centers));
    choice.report.seconds = mrc_seconds() - start;
    return report ? mrc_write_struct(context, report, &choice.report, sizeof choice.report, "report") : MERCER_OK;
}

/* ---- Nearest rows and the median distance --------------------------------------------------------------------- */

mercer_status mercer_nearest(mercer_context *context, int32_t *nearest, double *sqdistances, const mercer_matrix *X,
                             const mercer_matrix *Z)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    double x_top, z_top;
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    MRC_TRY(mrc_check_matrix(context, "Z", Z, MRC_ACCEPT_ANY));
    if (X->cols != Z->cols)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld columns, Z has %lld: they must have the same features",
                        (long long)X->cols, (long long)Z->cols);
    if (Z->rows < 1 || Z->rows > INT32_MAX)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "Z has %lld rows, it must have 1 .. %d", (long long)Z->rows,
                        INT32_MAX);
    if (X->rows > 0 && !nearest) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "nearest is NULL");
    MRC_TRY(mrc_check_finite(context, "X", X, &x_top));
    MRC_TRY(mrc_check_finite(context, "Z", Z, &z_top));
    mrc_search search = {.x = X, .z = Z};
    MRC_TRY(check_range(context, fmax(x_top, z_top), X->cols, &search.wide));
    void *room = NULL;
    if (!sqdistances) MRC_TRY(mrc_alloc(context, &room, X->rows, sizeof(double), "distances"));
    mercer_status status =
        context->backend->ops->nearest_rows(context->backend, &search, nearest, sqdistances ? sqdistances : room);
    mrc_free(context, room);
    return status;
}

mercer_status mercer_median_distance(mercer_context *context, double *out, const mercer_matrix *X, uint64_t seed)
{
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    MRC_TRY(mrc_check_matrix(context, "X", X, MRC_ACCEPT_ANY));
    if (X->rows < 2)
        return mrc_fail(context, MERCER_ERROR_SHAPE, "X has %lld rows: a distance takes two", (long long)X->rows);
    double top, median;
    bool wide;
    MRC_TRY(mrc_check_finite(context, "X", X, &top));
    MRC_TRY(check_range(context, top, X->cols, &wide));
    MRC_TRY(mrc_median_distance(context->backend, X, seed, &median));
    *out = median;
    return MERCER_OK;
}
