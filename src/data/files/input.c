/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening and decompressing input files; the memory budget.
 *
 * The budget counts copies of files, decompressed content and converted samples, but no mappings. Readers take bytes
 * before they allocate them, so that a file whose header claims too much data is refused without an allocation.
 */
#include "data/files/input.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

mercer_status mrc_budget_take(mercer_context *context, mrc_budget *budget, const char *path, int64_t bytes)
{
    int64_t needed;
    if (mrc_add(budget->used, bytes, &needed) && needed <= budget->allowed) {
        budget->used = needed;
        return MERCER_OK;
    }
    return mrc_fail(context, MERCER_ERROR_MEMORY,
                    "%s: needs %lld more bytes of memory, but the limit is %lld and %lld are in use; raise the "
                    "limit, or convert the file to npy, which is mapped",
                    path, (long long)bytes, (long long)budget->allowed, (long long)budget->used);
}

bool mrc_budget_spills(const mrc_budget *budget, int64_t bytes)
{
    return budget->spill > 0 && bytes > mrc_min(budget->spill, budget->allowed - budget->used);
}

/* ---- Opening ------------------------------------------------------------------------------------------------- */

bool mrc_input_begins(const mrc_input *input, const char *mark, int64_t bytes)
{
    return input->bytes >= bytes && memcmp(input->data, mark, (size_t)bytes) == 0;
}

mercer_status mrc_input_open(mrc_input *out, mercer_context *context, const char *path, mrc_budget *budget, bool part)
{
    *out = (mrc_input){.context = context, .budget = budget, .path = path, .part = part};
    MRC_TRY(mrc_open_file(context, &out->map, path, budget->copies ? budget->allowed - budget->used : 0));
    if (budget->copies) {
        MRC_TRY(mrc_budget_take(context, budget, path, out->map.bytes)); /* fails if the file was too large to copy */
        out->copied = out->map.bytes;
    }
    out->data = out->map.data;
    out->bytes = out->map.bytes;
    if (out->bytes == 0 && !part) return mrc_fail(context, MERCER_ERROR_FORMAT, "%s: the file is empty", path);
    return mrc_unpack(out);
}

void mrc_input_close(mrc_input *input)
{
    if (input->map.owner) input->budget->used -= input->copied;
    mrc_unmap(&input->map);
    mrc_free(input->context, input->memory);
    *input = (mrc_input){.context = input->context};
}

void mrc_input_release(const mrc_input *input, const char **done, const char *at)
{
    enum { STEP_BYTES = 1 << 20 };
    if (at - *done < STEP_BYTES || input->budget->spill == 0) return;
    if (input->map.data) mrc_mapping_release(&input->map, *done - (const char *)input->map.data, at - *done);
    *done = at;
}

const char *mrc_excerpt(char out[MRC_EXCERPT_CHARS], const char *text, int64_t length)
{
    /* Leave space for "..." and the zero byte. */
    int64_t most = MRC_EXCERPT_CHARS - 4, kept = mrc_min(length, most);
    for (int64_t i = 0; i < kept; i++) out[i] = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];
    snprintf(out + kept, 4, "%s", length > most ? "..." : "");
    return out;
}
