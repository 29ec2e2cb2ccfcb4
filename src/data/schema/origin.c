/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Origins: numbers that are subtracted from columns whose values float cannot distinguish, such as times in seconds,
 * identifiers, or values near 1,000,000.001.
 *
 * Cells are floats with 24 significant bits. The origin of a column, the middle of its range, is stored in the schema
 * and subtracted in double before values are rounded. The 24 bits then cover the range of the column. After
 * standardization, kernels depend only on differences within this range.
 *
 * A column gets an origin if rounding changed a value by more than 2^-17 of the range, because at least 7 of 24 bits
 * were then lost. It also gets an origin if integers beyond 2^24 were rounded and the range is at most half of the
 * largest magnitude. Columns whose values are exact in float never get an origin. A warning names columns that are
 * still too wide.
 *
 * Cost: O(rows) per column, but only a few rows are read if the first values are far enough apart.
 */
#include "data/schema/schema.h"

#include "core/matrix.h"
#include "data/files/input.h"

#include <math.h>
#include <string.h>

static const double LEAST_RANGE = 0x1p17, WHOLE_NUMBERS = 0x1p24;
/* differences of numbers below this may be subnormal and have fewer than 24 bits */
static const double SMALL = 0x1p-102;

/* Finds the smallest and the largest cell, and stops as soon as they are `enough` apart. Returns false if all cells are
   missing. */
static bool range_of(const mrc_cells *self, int64_t j, double enough, double *low, double *high)
{
    const mrc_tally *tally = &self->columns[j].tally;
    *low = 1, *high = 0;
    if (self->tallied > 0) {
        *low = tally->low, *high = tally->high;
        return *low <= *high;
    }
    for (int64_t i = 0; i < self->x.rows && (*low > *high || *high - *low < enough); i++) {
        double value = (double)((const float *)mrc_row(&self->x, i))[j];
        if (isnan(value)) continue;
        bool first = *low > *high;
        *low = first || value < *low ? value : *low;
        *high = first || value > *high ? value : *high;
    }
    return *low <= *high;
}

static bool is_value(const mrc_cell_column *column)
{
    return column->kind == MRC_KIND_NUMBER || column->kind == MRC_KIND_DATE;
}

/* Returns whether rounding changed a value that is beyond 2^24 after subtracting the origin, where floats skip
   integers. */
static bool is_coarse(const mrc_cell_column *column)
{
    return column->off > 0 && fabs(column->rounded - column->origin) > WHOLE_NUMBERS;
}

bool mrc_cells_move(mrc_cells *self)
{
    bool any = false;
    for (int64_t j = 0; j < self->count; j++) {
        mrc_cell_column *column = &self->columns[j];
        double enough = column->off * LEAST_RANGE, low, high;
        bool coarse = is_coarse(column);
        if (!is_value(column) || column->strict || column->closed || column->origin != 0 || column->off == 0) continue;
        if (!range_of(self, j, coarse ? (double)INFINITY : enough, &low, &high)) continue;
        double size = fmax(fabs(low), fabs(high)), range = high - low;
        if (size < SMALL || (range >= enough && !(coarse && 2 * range <= size))) continue;
        column->origin = low / 2 + high / 2;
        any = any || column->origin != 0;
    }
    return any;
}

/* Removes the origin of a column with one value: all cells that are not missing become the value itself. */
static void move_back(mrc_cells *self, int64_t j, float value)
{
    mrc_cell_column *column = &self->columns[j];
    double known = (double)(self->tallied - column->tally.missing);
    column->origin = 0;
    if (self->tallied > 0) {
        column->tally.low = column->tally.high = (double)value;
        column->tally.sum = known * (double)value;
        return;
    }
    for (int64_t i = 0; i < self->x.rows; i++) {
        float *cell = &((float *)mrc_row(&self->x, i))[j];
        if (!isnan(*cell)) *cell = value;
    }
}

void mrc_cells_clear_origins(mrc_cells *self)
{
    for (int64_t j = 0; j < self->count; j++) {
        const mrc_cell_column *column = &self->columns[j];
        double low, high;
        /* 2^-149 is the smallest positive float: stop at the first two cells that differ */
        if (column->origin == 0 || column->closed || !range_of(self, j, 0x1p-149, &low, &high)) continue;
        if (low == high) move_back(self, j, (float)(column->origin + low));
    }
}

void mrc_cells_warn_coarse(const mrc_cells *self)
{
    int64_t warned = 0;
    for (int64_t j = 0; j < self->count; j++) {
        const mrc_cell_column *column = &self->columns[j];
        char place[MRC_LOCATION_CHARS], name[MRC_EXCERPT_CHARS];
        if (!is_coarse(column) || warned++ >= MRC_COLUMN_WARNINGS) continue;
        mrc_warn(self->context, mrc_column_option(self, j, name),
                 "%s: numbers such as %.17g are rounded to float (%.17g) and become equal to others; subtract a "
                 "constant, or %s",
                 mrc_column_location(self, j, place), column->rounded,
                 column->origin + (double)(float)(column->rounded - column->origin),
                 self->path ? "drop the column, or use f64 samples in an npy file" : "remove the column");
    }
    if (warned > MRC_COLUMN_WARNINGS)
        mrc_warn(self->context, "", "%s%s%lld more columns have numbers that are rounded to float and become equal",
                 self->path ? self->path : "", self->path ? ": " : "", (long long)(warned - MRC_COLUMN_WARNINGS));
}
