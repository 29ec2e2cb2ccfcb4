/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: arbitrary bytes as a model file. The bytes are loaded twice: unchanged, and with corrected checksums.
 * Without this correction, the checksums would reject every mutation before the later code is reached. A model that
 * loads must predict.
 */
#define _GNU_SOURCE /* memfd_create */

#include "fuzz/fuzz.h"
#include "fuzz/fuzz_file.h"
#include "support/info.h"

enum { MOST_BYTES = 1 << 16, MOST_COLUMNS = 64 };

static void load(const uint8_t *data, size_t size)
{
    mercer_model *model;
    double x[MOST_COLUMNS] = {0}, f[MOST_COLUMNS];
    mercer_context *context = fuzz_context();
    const char *path = fuzz_file(data, size);
    mercer_status status = mercer_model_load(&model, context, NULL, path);
    if (status != MERCER_OK) {
        const char *message = mercer_last_error(context);
        if (model || !strstr(message, path) || strchr(message, '\n')) abort(); /* one line that names the file */
        return;
    }
    int64_t d = model_info(model).centers.cols, c = model_info(model).weights.cols;
    if (d <= MOST_COLUMNS && c <= MOST_COLUMNS) {
        mercer_matrix in = mrc_view(x, 1, d, MERCER_F64), out = mrc_view(f, 1, c, MERCER_F64);
        status = mercer_model_predict(model, &out, &in);
        /* Weights or units can be so large that predictions overflow, which is an error. */
        if (status != MERCER_OK && status != MERCER_ERROR_DATA && status != MERCER_ERROR_NUMERIC) abort();
    }
    mercer_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[MOST_BYTES];
    if (size > sizeof copy) return 0;
    load(data, size);
    memcpy(copy, data, size);
    fuzz_put_right(copy, size);
    load(copy, size);
    return 0;
}
