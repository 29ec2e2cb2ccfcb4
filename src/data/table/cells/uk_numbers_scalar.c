/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of a column one after the other, and which code reads them. */
#include "data/table/cells/plain_number.h"
#include "data/table/cells/plain_numbers.h"

#include <math.h>

void mrc_uk_numbers_scalar(const mrc_fields *self, int64_t rows, mrc_eight_numbers *out)
{
    const uint32_t *end = self->ends;
    for (int64_t i = 0; i < rows; i += 8, out++) {
        out->plain = out->empty = out->over = 0;
        for (int64_t k = 0; k < 8 && i + k < rows; k++, end += self->stride) {
            uint32_t first = end[-1] + 1;
            int64_t length = (int64_t)*end - first;
            const char *text = self->base + first;
            out->values[k] = (double)NAN;
            bool plain = length > 0 && mrc_plain_number(text, length, self->decimal, self->begin, &out->values[k]);
            double moved = out->values[k] - self->origin;
            out->cells[k] = (float)moved;
            out->plain |= (uint8_t)(plain << k);
            out->empty |= (uint8_t)((length == 0) << k);
            out->over |= (uint8_t)((fabs((double)out->cells[k] - moved) > self->off) << k);
        }
    }
}

mrc_take_numbers mrc_numbers_of_isa(mrc_isa isa)
{
#if defined(MERCER_X86)
    if (isa >= MRC_ISA_AVX512) return mrc_uk_numbers_avx512;
#endif
    (void)isa;
    return mrc_uk_numbers_scalar;
}
