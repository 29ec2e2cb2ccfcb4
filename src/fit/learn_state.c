/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of learning in a checkpoint. Until training has written its own, the file of the checkpoint holds what the
 * rounds so far came to: a tensor file with
 *
 *   rounds.numbers   (1, 7) f64   next round, whether all are done, best round, its bandwidth, ridge and error, the
 *                                 first median distance
 *   rounds.errors    (1, t) f64   on rows held back, by round
 *   rounds.now, rounds.best       M (d, d) or weights (1, d) f64, of the next round and of the best; 0 rows: none
 *
 * and in the metadata under "rounds" what they are rounds of. A round depends on nothing else, so that a fit that goes
 * on from there ends in the same bytes.
 */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/bounds.h"
#include "model/tensor_file.h"

#include <string.h>

enum { NUMBERS = 7 };

mercer_status mrc_rounds_write(mercer_context *context, const char *path, const char *of, const mrc_rounds *rounds)
{
    double numbers[NUMBERS] = {(double)rounds->next,
                               rounds->done ? 1 : 0,
                               (double)rounds->best_round,
                               rounds->choice.bandwidth,
                               rounds->choice.ridge,
                               rounds->choice.error,
                               rounds->unit};
    double errors[MERCER_ROUNDS + 1];
    memcpy(errors, rounds->errors, sizeof errors);
    const mrc_tensor tensors[] = {
        {.name = "rounds.numbers", .value = mrc_view(numbers, 1, NUMBERS, MERCER_F64)},
        {.name = "rounds.errors", .value = mrc_view(errors, 1, rounds->next, MERCER_F64)},
        {.name = "rounds.now", .value = rounds->now.data ? rounds->now : mrc_view(NULL, 0, 1, MERCER_F64)},
        {.name = "rounds.best", .value = rounds->best.data ? rounds->best : mrc_view(NULL, 0, 1, MERCER_F64)}};
    const mrc_metadata metadata[] = {{"rounds", of}};
    return mrc_tensor_file_write(context, path, tensors, 4, metadata, 1);
}

static mercer_status read_matrix(mercer_context *context, const char *path, const mrc_tensor_file *file,
                                 const char *name, int64_t d, double *room, mercer_matrix *out)
{
    mercer_matrix found;
    bool there = mrc_tensor_file_find(file, name, &found) && found.dtype == MERCER_F64;
    *out = (mercer_matrix){0};
    if (there && found.rows == 0) return MERCER_OK;
    if (!there || found.cols != d || (found.rows != 1 && found.rows != d))
        return mrc_fail(context, MERCER_ERROR_MISMATCH, "%s: its %s is missing or of another shape", path, name);
    MRC_TRY(mrc_check_finite(context, name, &found, NULL));
    *out = mrc_view(room, found.rows, d, MERCER_F64);
    for (int64_t i = 0; i < found.rows; i++) memcpy(mrc_row(out, i), mrc_row(&found, i), (size_t)d * sizeof(double));
    return MERCER_OK;
}

static mercer_status check_scalar(mercer_context *context, const char *path, const char *name, double value, double low,
                                  double high)
{
    if (mrc_in_range(value, low, high)) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: the %s of its rounds of learning is %g, it must be in %g .. %g",
                    path, name, value, low, high);
}

static mercer_status read_rounds(mercer_context *context, const char *path, const mrc_tensor_file *file, const char *of,
                                 int64_t d, double *now, double *best, mrc_rounds *out)
{
    mercer_matrix numbers, errors;
    const char *found = mrc_tensor_file_metadata(file, "rounds");
    if (!found || strcmp(found, of) != 0)
        return mrc_fail(context, MERCER_ERROR_MISMATCH,
                        "%s: belongs to a training with other data or options: it has rounds of \"%s\", this one is of "
                        "\"%s\"",
                        path, found ? found : "nothing", of);
    bool whole = mrc_tensor_file_find(file, "rounds.numbers", &numbers) && numbers.dtype == MERCER_F64 &&
                 numbers.rows == 1 && numbers.cols == NUMBERS && mrc_tensor_file_find(file, "rounds.errors", &errors) &&
                 errors.dtype == MERCER_F64 && errors.rows == 1;
    const double *n = whole ? numbers.data : NULL;
    whole = whole && n[0] == (double)errors.cols && errors.cols >= 1 && errors.cols <= MERCER_ROUNDS + 1 && n[2] >= 0 &&
            n[2] < n[0];
    if (!whole) return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: its rounds of learning cannot be read", path);
    MRC_TRY(check_scalar(context, path, "bandwidth", n[3], MRC_BANDWIDTH_LEAST, MRC_BANDWIDTH_MOST));
    MRC_TRY(check_scalar(context, path, "ridge", n[4], 0, MRC_RIDGE_MOST));
    MRC_TRY(check_scalar(context, path, "median distance", n[6], 0, MRC_BANDWIDTH_MOST));
    *out = (mrc_rounds){.next = (int64_t)n[0],
                        .done = n[1] != 0,
                        .best_round = (int64_t)n[2],
                        .choice = {n[3], n[4], n[5]},
                        .unit = n[6]};
    for (int64_t i = 0; i < errors.cols; i++) out->errors[i] = mrc_load(&errors, 0, i);
    MRC_TRY(read_matrix(context, path, file, "rounds.now", d, now, &out->now));
    return read_matrix(context, path, file, "rounds.best", d, best, &out->best);
}

mercer_status mrc_rounds_read(mercer_context *context, const char *path, const char *of, int64_t d, double *now,
                              double *best, mrc_rounds *out)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    MRC_TRY(mrc_tensor_file_open(&file, context, path));
    return read_rounds(context, path, file, of, d, now, best, out);
}

mercer_status mrc_rounds_found(mercer_context *context, const char *path, bool *found)
{
    MRC_OWNED(mrc_release_tensor_file) mrc_tensor_file *file = NULL;
    MRC_TRY(mrc_tensor_file_open(&file, context, path));
    *found = mrc_tensor_file_metadata(file, "rounds") != NULL;
    return MERCER_OK;
}
