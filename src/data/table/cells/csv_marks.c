/* SPDX-License-Identifier: BSD-3-Clause */
/* Field ends of a piece of text: chooses the length of pieces, and counts the complete records in them. */
#include "data/table/cells/csv_marks.h"

#include "core/memory.h"

/* The length of a piece is doubled, up to MOST_BYTES, as long as it has fewer than FEW_RECORDS records. */
enum { FIRST_BYTES = 1 << 14, MOST_BYTES = 1 << 22, LEAST_CAPACITY = 1 << 14, FEW_RECORDS = 16 };

mercer_status mrc_marks_open(mrc_marks *out, mrc_scope *scope, int64_t columns)
{
    int64_t capacity = mrc_max(2 * columns, LEAST_CAPACITY) + MRC_MARK_BLOCK + MRC_MARK_SPARE;
    *out = (mrc_marks){.capacity = capacity, .bytes = FIRST_BYTES, .list = mrc_uk_marks_u8_scalar};
#if defined(MERCER_X86)
    if (scope->context->isa >= MRC_ISA_AVX512) out->list = mrc_uk_marks_u8_avx512;
#endif
    MRC_TRY(mrc_scope_alloc(scope, &out->lines, capacity, sizeof *out->lines, "records of a table"));
    MRC_TRY(mrc_scope_alloc(scope, &out->ends, capacity + 1, sizeof *out->ends, "fields of a table"));
    /* The entry before the list; see ends[-1] in csv_marks.h. The scope owns the block, so the pointer may move. */
    *out->ends++ = UINT32_MAX;
    return MERCER_OK;
}

/* Returns the number of leading records with exactly `columns` fields, that is, the last field ends the line and no
   other field does. Both lists are in text order, so record i is whole if its last field end is line end i. */
static int64_t count_whole(const mrc_marks *self, int64_t lines, int64_t fields, int64_t columns)
{
    int64_t most = mrc_min(lines, fields / columns), i = 0;
    const uint32_t *last = self->ends + columns - 1;
    while (i < most && *last == self->lines[i]) i++, last += columns;
    return i;
}

int64_t mrc_marks_find(mrc_marks *self, const mrc_csv *csv, int64_t columns, int64_t apart)
{
    int64_t left = csv->end - csv->at - apart;
    const uint32_t *full = self->ends + self->capacity - MRC_MARK_BLOCK - MRC_MARK_SPARE;
    mrc_mark_lists to = {self->ends, self->lines, full, false};
    if (!csv->separator) return 0;
    self->list(csv->at, mrc_min(left, self->bytes), csv->separator, &to);
    int64_t records = count_whole(self, to.lines - self->lines, to.ends - self->ends, columns);
    if (records < FEW_RECORDS && !to.quoted && self->bytes < mrc_min(left, MOST_BYTES)) self->bytes *= 2;
    return records;
}
