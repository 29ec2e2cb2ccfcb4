/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: arbitrary bytes as a Parquet file. The seeds are complete files, which test_parquet.c reads, too, so the
 * options follow from the size of the input.
 */
#include "fuzz/fuzz.h"

#include "data/parquet/codecs.h"

/* Decompress the bytes as a page of each codec. */
static void unpack(const uint8_t *data, size_t size, const mrc_input *input)
{
    enum { CAPACITY = 1 << 12 };
    const mrc_page_place place = {.input = input, .name = "input", .name_length = 5};
    uint8_t *out = malloc(CAPACITY);
    if (!out) abort();
    for (int64_t codec = 0; codec < 8; codec++)
        if (mrc_page_unpack(&place, codec, data, (int64_t)size, out, CAPACITY) != MERCER_OK) input->budget->used = 0;
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const targets[] = {"label", "real", "whole,cents", NULL};
    static const char *const kinds[] = {NULL, "pair:drop,point:drop", "whole:category,single:category",
                                        "word:category"};
    mrc_budget budget;
    unsigned choice = (unsigned)size % 101;
    mrc_input input = fuzz_input(data, size, &budget);
    if (size == 0) return 0;
    budget.spill = choice & 1;
    mercer_dataset_options options = {.target = targets[choice >> 1 & 3],
                                      .task = targets[choice >> 1 & 3] ? MERCER_TASK_AUTO : MERCER_TASK_UNLABELED,
                                      .kinds = kinds[choice >> 3 & 3],
                                      .header = MERCER_AUTO};
    mrc_reading reading = {.input = &input,
                           .count = 1,
                           .name = input.path,
                           .options = &options,
                           .format = &mrc_format_parquet,
                           .slice = {.first = choice >> 5 & 1},
                           .want_targets = options.task != MERCER_TASK_UNLABELED};
    mrc_target_wish wish = {.task = options.task};
    mercer_dataset *dataset = fuzz_dataset();
    mercer_status status = reading.format->read_samples(&reading, dataset);
    if (status == MERCER_OK && reading.have_targets) status = mrc_targets_finish(&reading.targets, &wish, dataset);
    if (status == MERCER_OK)
        fuzz_touch(dataset);
    else
        fuzz_refused(status);
    if (reading.have_targets) mrc_targets_close(&reading.targets);
    mercer_dataset_free(dataset);
    if (choice == 0) unpack(data, size, &input);
    return 0;
}
