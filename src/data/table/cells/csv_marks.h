/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the fields of some records end, found for many bytes at once. */
#ifndef MRC_DATA_TABLE_CELLS_CSV_MARKS_H
#define MRC_DATA_TABLE_CELLS_CSV_MARKS_H

#include "core/memory.h"
#include "data/table/cells/mark_kernels.h"
#include "data/table/csv_parse.h"

typedef struct mrc_marks {
    uint32_t *ends;  /* (room) of fields, counted from where the piece of text begins; ends[-1] is -1 */
    uint32_t *lines; /* (room) those that are line ends */
    int64_t room;
    int64_t bytes; /* a piece of text has so many */
    void (*list)(const char *text, int64_t bytes, char separator, mrc_mark_lists *to);
} mrc_marks;

mercer_status mrc_marks_open(mrc_marks *out, mrc_scope *scope, int64_t columns);
/*
 * The separators and line ends from csv->at on, up to the first quote and up to `apart` bytes before the end of the
 * text; how many records that is, up to the first that has not `columns` fields.
 */
int64_t mrc_marks_find(mrc_marks *marks, const mrc_csv *csv, int64_t columns, int64_t apart);

/* Line ends from at to before stop. False, and *count means nothing, if a line begins there with a space, a control
   character or its end. */
bool mrc_uk_lines_scalar(const char *at, const char *stop, int64_t *count);

#endif
