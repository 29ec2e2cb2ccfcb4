/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: arbitrary bytes as an NPY file. */
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mrc_budget budget;
    mrc_array array;
    mrc_input input = fuzz_input(data, size, &budget);
    if (size == 0) return 0; /* empty files are rejected before a reader is called */
    mercer_status status = mrc_format_find("npy")->parse(&array, &input, NULL);
    if (status == MERCER_OK)
        fuzz_array(&array, &input);
    else
        fuzz_refused(status);
    return 0;
}
