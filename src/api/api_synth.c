/* SPDX-License-Identifier: BSD-3-Clause */
/* Public: datasets of synthetic samples. */
#include "data/synth/synth.h"

#include "core/memory.h"

mercer_status mercer_dataset_synthesize(mercer_dataset **out, mercer_context *context, const char *spec, int64_t first,
                                        int64_t rows, uint64_t seed)
{
    if (out) *out = NULL;
    if (!context) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "context is NULL");
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    int64_t end;
    if (first < 0 || rows < 1 || !mrc_add(first, rows, &end))
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%lld samples from number %lld on: there must be at least 1, and numbers are 0 .. 2^63 - 1",
                        (long long)rows, (long long)first);
    return mrc_synth_dataset(out, context, spec, first, rows, seed);
}
