/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fuzz targets of the readers: a context, and the fuzzer's bytes as an input file. */
#ifndef MRC_TESTS_FUZZ_H
#define MRC_TESTS_FUZZ_H

#include "core/matrix.h"
#include "core/memory.h"
#include "data/files/array.h"
#include "data/files/readers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_MEMORY = 1 << 24 };

static inline mercer_context *fuzz_context(void)
{
    static mercer_context *context;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 1;
    if (!context && mercer_context_create(&context, &options) != MERCER_OK) abort();
    return context;
}

static inline mrc_input fuzz_input(const uint8_t *data, size_t size, mrc_budget *budget)
{
    *budget = (mrc_budget){.allowed = FUZZ_MEMORY};
    return (mrc_input){
        .context = fuzz_context(), .budget = budget, .path = "input", .data = data, .bytes = (int64_t)size};
}

static inline mercer_dataset *fuzz_dataset(void)
{
    void *memory;
    if (mrc_alloc_zero(fuzz_context(), &memory, 1, sizeof(mercer_dataset), "a dataset") != MERCER_OK) abort();
    ((mercer_dataset *)memory)->context = fuzz_context();
    return memory;
}

/* Check an error: its message must be one line, and name the file unless it is about an argument or memory. */
static inline void fuzz_refused(mercer_status status)
{
    const char *message = mercer_last_error(fuzz_context());
    if (status == MERCER_OK || !message[0] || strchr(message, '\n')) abort();
    if (status != MERCER_ERROR_ARGUMENT && status != MERCER_ERROR_MEMORY && !strstr(message, "input")) abort();
}

/* Read every sample, label and name of a dataset and check that they are valid. */
static inline void fuzz_touch(const mercer_dataset *dataset)
{
    for (int64_t i = 0; i < dataset->x.rows; i++)
        for (int64_t j = 0; j < dataset->x.cols; j++) (void)mrc_load(&dataset->x, i, j);
    for (int64_t i = 0; dataset->labels && i < dataset->x.rows; i++)
        if (dataset->labels[i] < 0 || dataset->labels[i] >= dataset->outputs) abort();
    for (int64_t i = 0; dataset->label_names && i < dataset->outputs; i++)
        if (strlen(dataset->label_names[i]) >= MRC_LABEL_CHARS) abort();
    for (int64_t j = 0; dataset->feature_names && j < dataset->x.cols; j++) (void)strlen(dataset->feature_names[j]);
    if (dataset->y.data && mrc_check_finite(fuzz_context(), "y", &dataset->y, NULL) != MERCER_OK) abort();
}

/* Read all rows, and all but the first and the last, as samples and as real numbers; read text elements as text. */
static inline void fuzz_array(const mrc_array *array, const mrc_input *input)
{
    for (int i = 0; i < 4; i++) {
        mercer_matrix matrix;
        mercer_dtype dtype;
        void *memory;
        int64_t first = i / 2, rows = array->shape[0] - 2 * first;
        if (rows < 1) continue;
        input->budget->used = 0;
        mercer_status status = mrc_array_dtype(array, input, first, rows, i % 2, &dtype);
        if (status == MERCER_OK) status = mrc_array_matrix(&matrix, &memory, array, input, first, rows, dtype);
        if (status != MERCER_OK) {
            fuzz_refused(status);
            continue;
        }
        for (int64_t k = 0; k < matrix.rows * matrix.cols; k++)
            (void)mrc_load(&matrix, k / matrix.cols, k % matrix.cols);
        mrc_free(input->context, memory);
    }
    for (int64_t k = 0; mrc_element_is_text(array->element) && k < array->shape[0] * mrc_array_row(array); k++) {
        char text[MRC_LABEL_CHARS];
        if (mrc_array_text(array, k, text, sizeof text) && strlen(text) >= sizeof text) abort();
    }
}

#endif
