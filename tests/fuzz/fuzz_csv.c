/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: arbitrary bytes as delimited text. The first byte chooses format, header, targets, columns, task and
   part. */
#include "fuzz/fuzz.h"

static mercer_status read_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    mrc_target_wish wish = {.task = reading->options->task};
    MRC_TRY(reading->format->read_samples(reading, dataset));
    return reading->have_targets ? mrc_targets_finish(&reading->targets, &wish, dataset) : MERCER_OK;
}

static mercer_status read_targets(mrc_reading *reading, mercer_dataset *dataset)
{
    mrc_target_wish wish = {.task = reading->options->task};
    MRC_TRY(reading->format->read_targets(reading, dataset, 3));
    return reading->have_targets ? mrc_targets_finish(&reading->targets, &wish, dataset) : MERCER_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const targets[] = {NULL, "label", "-1", "0,b"}, *const columns[] = {"a", "b"};
    static const mercer_task tasks[] = {MERCER_TASK_AUTO, MERCER_TASK_CLASSIFICATION, MERCER_TASK_REGRESSION,
                                        MERCER_TASK_UNLABELED};
    mrc_budget budget;
    if (size < 2) return 0;
    unsigned choice = data[0];
    mrc_input input = fuzz_input(data + 1, size - 1, &budget);
    budget.spill = size & 1; /* texts of odd size go through a temporary file */
    bool alone = choice >= 0xc0;
    mercer_dataset_options options = {.target = targets[choice & 3],
                                      .task = tasks[choice >> 2 & 3],
                                      .columns = choice & 0x80 && !alone ? columns : NULL,
                                      .column_count = choice & 0x80 && !alone ? 2 : 0,
                                      .header = choice & 0x10 ? MERCER_AUTO : MERCER_ON};
    mrc_reading reading = {.input = &input,
                           .count = 1,
                           .name = input.path,
                           .options = &options,
                           .format = mrc_format_find(choice & 0x20 ? "csv"
                                                     : alone       ? "text"
                                                                   : "tsv"),
                           .slice = {.first = choice & 0x40 ? 1 : 0, .rows = alone ? 2 : 0},
                           .want_targets = options.task != MERCER_TASK_UNLABELED};
    mercer_dataset *dataset = fuzz_dataset();
    mercer_status status = alone ? read_targets(&reading, dataset) : read_samples(&reading, dataset);
    if (status == MERCER_OK)
        fuzz_touch(dataset);
    else
        fuzz_refused(status);
    if (reading.have_targets) mrc_targets_close(&reading.targets);
    mercer_dataset_free(dataset);
    return 0;
}
