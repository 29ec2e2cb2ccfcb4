/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: arbitrary bytes as an IDX file, decompressed if they look like gzip. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mrc_budget budget;
    mrc_array array;
    mrc_input input = fuzz_input(data, size, &budget);
    mercer_status status = MERCER_OK;
    if (size == 0) return 0;
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b) status = mrc_unpack(&input);
    if (status == MERCER_OK) status = mrc_format_find("idx")->parse(&array, &input, NULL);
    if (status == MERCER_OK)
        fuzz_array(&array, &input);
    else
        fuzz_refused(status);
    mrc_input_close(&input);
    return 0;
}
