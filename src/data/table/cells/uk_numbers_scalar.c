/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts the numbers of a column one by one. */
#include "data/table/cells/plain_number.h"
#include "data/table/cells/plain_numbers.h"

#include <math.h>

/* Converts all fields. Inlined, so that with the constant '.' as decimal mark the compiler removes half of the search
   for the decimal mark. */
static inline __attribute__((always_inline)) void take_all(const mrc_fields fields, char decimal, int64_t rows,
                                                           mrc_eight_numbers *out)
{
    const uint32_t *end = fields.ends;
    for (int64_t i = 0; i < rows; i += 8, out++) {
        unsigned plain = 0, empty = 0, over = 0;
        for (int64_t k = 0; k < 8 && i + k < rows; k++, end += fields.stride) {
            /* Unsigned arithmetic: UINT32_MAX + 1 is 0, the beginning of the text (csv_marks.h). */
            uint32_t first = end[-1] + 1;
            int64_t length = (int64_t)*end - first;
            double value = (double)NAN;
            bool fine = length > 0 && mrc_plain_number(fields.base + first, length, decimal, fields.begin, &value);
            double moved = value - fields.origin;
            float cell = (float)moved;
            out->values[k] = value;
            out->cells[k] = cell;
            plain |= (unsigned)fine << k;
            empty |= (unsigned)(length == 0) << k;
            over |= (unsigned)(fabs((double)cell - moved) > fields.off) << k;
        }
        out->plain = (uint8_t)plain;
        out->empty = (uint8_t)empty;
        out->over = (uint8_t)over;
    }
}

void mrc_uk_numbers_u8_scalar(const mrc_fields *self, int64_t rows, mrc_eight_numbers *out)
{
    if (self->decimal == '.')
        take_all(*self, '.', rows, out);
    else
        take_all(*self, self->decimal, rows, out);
}
