/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the ends of fields in a piece of text, many bytes at a time. */
#ifndef MRC_DATA_TABLE_CELLS_CSV_MARKS_H
#define MRC_DATA_TABLE_CELLS_CSV_MARKS_H

#include "core/memory.h"
#include "data/table/cells/mark_kernels.h"
#include "data/table/csv_parse.h"

typedef struct mrc_marks {
    /* (capacity) ends of fields, as offsets in the piece of text; ends[-1] is UINT32_MAX, so that ends[-1] + 1 is 0 */
    uint32_t *ends;
    uint32_t *lines;  /* (capacity) the entries of `ends` that are line ends */
    int64_t capacity; /* capacity of the lists */
    int64_t bytes;    /* length of the next piece of text */
    void (*list)(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);
} mrc_marks;

mercer_status mrc_marks_open(mrc_marks *out, mrc_scope *scope, int64_t columns);
/*
 * Finds separators and line ends from csv->at on, up to the first quote and up to `apart` bytes before the end of the
 * text. Returns the number of records before the first record that does not have `columns` fields.
 */
int64_t mrc_marks_find(mrc_marks *marks, const mrc_csv *csv, int64_t columns, int64_t apart);

/* Counts line ends in at .. stop - 1. Returns false, and leaves *count undefined, if a line that begins after `at` is
   empty or begins with a space or a control character: such a line may be blank. */
bool mrc_uk_lines_u8_scalar(const char *at, const char *stop, int64_t *count);

#endif
