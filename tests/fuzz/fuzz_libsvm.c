/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: arbitrary bytes as LIBSVM text. The first byte chooses task, number of features and part. */
#include "fuzz/fuzz.h"

static mercer_status read_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    mrc_target_wish wish = {.task = reading->options->task};
    MRC_TRY(reading->format->read_samples(reading, dataset));
    return reading->have_targets ? mrc_targets_finish(&reading->targets, &wish, dataset) : MERCER_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mercer_task tasks[] = {MERCER_TASK_AUTO, MERCER_TASK_CLASSIFICATION, MERCER_TASK_REGRESSION,
                                        MERCER_TASK_UNLABELED};
    mrc_budget budget;
    if (size < 2) return 0;
    unsigned choice = data[0];
    mrc_input input = fuzz_input(data + 1, size - 1, &budget);
    mercer_dataset_options options = {.task = tasks[choice & 3], .features = choice & 4 ? 5 : 0};
    mrc_reading reading = {.input = &input,
                           .count = 1,
                           .name = input.path,
                           .options = &options,
                           .format = mrc_format_find("libsvm"),
                           .slice = {.first = choice & 8 ? 1 : 0, .rows = choice & 16 ? 1 : 0},
                           .want_targets = options.task != MERCER_TASK_UNLABELED};
    mercer_dataset *dataset = fuzz_dataset();
    mercer_status status = read_samples(&reading, dataset);
    if (status == MERCER_OK)
        fuzz_touch(dataset);
    else
        fuzz_refused(status);
    if (reading.have_targets) mrc_targets_close(&reading.targets);
    mercer_dataset_free(dataset);
    return 0;
}
