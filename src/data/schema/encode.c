/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Features of cells.
 *
 *   number, boolean   x (less the column's origin), or what is filled in where it is missing: a number that follows
 *                     from the others of the row (gaps.h), or the mean; and if values were missing in training: 1
 *                     where it is missing
 *   date              days since 2000-01-01, sine and cosine of the part of the year; the same behind them
 *   category          one 0 or 1 for each level; for all other levels; for missing values, likewise
 *
 * A level that the schema does not know is all 0. Every cell becomes features of its own, so a row's bits depend on
 * that row and the schema. Cost: O(rows features).
 */
#include "data/schema/schema.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void encode_category(const mrc_column *column, float cell, float *to)
{
    int64_t last = column->level_count + column->other;
    if (isnan(cell) && column->missing > 0) to[last] = 1;
    if (cell >= 0 && (int64_t)cell < last) to[(int64_t)cell] = 1;
}

static void encode_value(const mrc_column *column, float cell, const double *filled, float *to)
{
    double value = !isnan(cell) ? (double)cell : filled && column->gap >= 0 ? filled[column->gap] : column->mean;
    int64_t at = 0;
    to[at++] = (float)value;
    if (column->kind == MRC_KIND_DATE) {
        double sine, cosine;
        mrc_date_season(value + column->origin, &sine, &cosine);
        to[at++] = (float)sine;
        to[at++] = (float)cosine;
    }
    if (column->missing > 0) to[at] = isnan(cell) ? 1 : 0;
}

void mrc_schema_encode(const mrc_schema *self, const mercer_matrix *cells, const mercer_matrix *x)
{
    double filled[MRC_GAPS_COLUMNS];
    for (int64_t i = 0; i < cells->rows; i++) {
        const float *from = (const float *)mrc_row(cells, i);
        float *to = (float *)mrc_row(x, i);
        bool gaps = self->gaps.count > 0 && mrc_gaps_values(&self->gaps, from, filled);
        memset(to, 0, (size_t)self->features * sizeof *to);
        for (int64_t c = 0; c < self->count; c++) {
            const mrc_column *column = &self->columns[c];
            if (column->kind == MRC_KIND_DROP) continue;
            if (column->kind == MRC_KIND_CATEGORY)
                encode_category(column, *from++, to + column->first);
            else
                encode_value(column, *from++, gaps ? filled : NULL, to + column->first);
        }
    }
}

void mrc_schema_roles(const mrc_schema *self, mrc_role *roles)
{
    for (int64_t c = 0; c < self->count; c++) {
        const mrc_column *column = &self->columns[c];
        bool category = column->kind == MRC_KIND_CATEGORY;
        for (int64_t j = 0; j < column->width; j++) {
            bool sign = !category && column->missing > 0 && j == column->width - 1;
            roles[column->first + j] = category ? MRC_ROLE_LEVEL : sign ? MRC_ROLE_SIGN : MRC_ROLE_VALUE;
        }
    }
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

enum { MOST_CHARS = 512 };

/* The name of feature j of a column, cut if it is too long. */
static void name_feature(const mrc_column *column, int64_t j, char out[MOST_CHARS])
{
    bool category = column->kind == MRC_KIND_CATEGORY;
    if (category && j < column->level_count)
        snprintf(out, MOST_CHARS, "%s=%s", column->name, column->levels[j]);
    else if (category && column->other && j == column->level_count)
        snprintf(out, MOST_CHARS, "%s other", column->name);
    else if (column->missing > 0 && j == column->width - 1)
        snprintf(out, MOST_CHARS, "%s missing", column->name);
    else
        snprintf(out, MOST_CHARS, "%s%s", column->name, j == 0 ? "" : j == 1 ? " sine" : " cosine");
    size_t end = strlen(out);
    if (end < MOST_CHARS - 1) return;
    while (end > 0 && ((unsigned char)out[end - 1] & 0xC0) == 0x80) end--; /* not within a character */
    out[end > 0 ? end - 1 : 0] = 0;
}

mercer_status mrc_schema_feature_names(const mrc_schema *self, void **out)
{
    char name[MOST_CHARS];
    int64_t bytes = self->features * (int64_t)sizeof(char *);
    *out = NULL;
    if (!self->named) return MERCER_OK;
    for (int64_t c = 0; c < self->count; c++)
        for (int64_t j = 0; j < self->columns[c].width; j++) {
            name_feature(&self->columns[c], j, name);
            bytes += (int64_t)strlen(name) + 1;
        }
    MRC_TRY(mrc_alloc(self->context, out, bytes, 1, "names of features"));
    const char **names = *out;
    char *at = (char *)(names + self->features);
    for (int64_t c = 0; c < self->count; c++)
        for (int64_t j = 0; j < self->columns[c].width; j++) {
            name_feature(&self->columns[c], j, name);
            size_t size = strlen(name) + 1;
            memcpy(at, name, size);
            names[self->columns[c].first + j] = at;
            at += size;
        }
    return MERCER_OK;
}
