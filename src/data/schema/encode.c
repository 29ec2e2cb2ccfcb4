/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoding of cells as features.
 *
 *   number, boolean   x minus the column's origin; a missing x becomes an estimate from the other numbers of its row
 *                     (gaps.h), or the mean; then, if values were missing in training, a flag: 1 if x is missing
 *   date              days since 2000-01-01 minus the origin, sine and cosine of the time of year; then the same flag
 *   category          one feature, 0 or 1, for each level; then one for all other levels, and one for missing values,
 *                     if there were any in training; then statistics of the targets (level_statistics.c), or the number
 *                     of the level plus 1 while they are not known
 *
 * For a word that is not in the schema, the feature for other levels is 1 if it exists, and all other features are 0.
 * Rows are encoded independently: the features of a row are bitwise identical in every table. Cost: O(rows features).
 */
#include "data/schema/schema.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/date.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows that are encoded together, column by column, while they are in the processor's cache. */
enum { BLOCK_ROWS = 16 };

typedef struct block {
    const float *cells; /* cell of the block's first row in the current column */
    float *features;    /* features of the first row */
    int64_t rows, cells_stride, features_stride;
    bool gaps[BLOCK_ROWS]; /* (rows) whether missing numbers of the row are in `filled` */
    double filled[BLOCK_ROWS][MRC_GAPS_COLUMNS];
} block;

/* Sets the feature of each row's level, or of a missing value, to 1; all other features are 0 already. */
static void encode_category(const mrc_column *column, const block *self)
{
    int64_t kept = column->level_count, last = kept + column->other;
    const float *cells = self->cells;
    float *to = self->features + column->first;
    for (int64_t i = 0; i < self->rows; i++, cells += self->cells_stride, to += self->features_stride) {
        if (isnan(*cells) && column->missing > 0) to[last] = 1;
        if (!(*cells >= 0)) continue;
        /* Cells of rare levels and of unknown words have numbers after the kept levels. They share the next feature, if
           the column has a feature for other levels. */
        int64_t feature = mrc_min((int64_t)*cells, kept);
        if (feature < last) to[feature] = 1;
    }
}

/* Writes the statistics of each row's level. An unknown level keeps 0, the statistic of all rows. */
static void encode_statistics(const mrc_column *column, const block *self)
{
    int64_t count = column->statistics;
    const float *cells = self->cells;
    float *to = self->features + column->first + column->width - count;
    for (int64_t i = 0; i < self->rows; i++, cells += self->cells_stride, to += self->features_stride) {
        int64_t level = mrc_column_level(column, *cells);
        if (!column->statistic) to[0] = (float)(level + 1);
        for (int64_t k = 0; k < count && column->statistic && level >= 0; k++)
            to[k] = (float)column->statistic[level * count + k];
    }
}

/* Writes values, the season of dates, and flags of missing values. */
static void encode_values(const mrc_column *column, const block *self)
{
    const float *cells = self->cells;
    float *to = self->features + column->first;
    bool date = column->kind == MRC_KIND_DATE;
    for (int64_t i = 0; i < self->rows; i++, cells += self->cells_stride, to += self->features_stride) {
        double value = (double)*cells;
        if (isnan(*cells)) value = self->gaps[i] && column->gap >= 0 ? self->filled[i][column->gap] : column->mean;
        to[0] = (float)value;
        if (date) {
            double sine, cosine;
            mrc_date_season(value + column->origin, &sine, &cosine);
            to[1] = (float)sine;
            to[2] = (float)cosine;
        }
        if (column->missing > 0) to[date ? 3 : 1] = isnan(*cells) ? 1 : 0;
    }
}

/* Encodes a block column by column; missing numbers are estimated first, because an estimate needs all numbers of the
   row. */
static void encode_block(const mrc_schema *self, block *part)
{
    for (int64_t i = 0; i < part->rows; i++)
        part->gaps[i] =
            self->gaps.count > 0 && mrc_gaps_values(&self->gaps, part->cells + i * part->cells_stride, part->filled[i]);
    memset(part->features, 0, (size_t)(part->rows * part->features_stride) * sizeof *part->features);
    for (int64_t c = 0; c < self->count; c++) {
        const mrc_column *column = &self->columns[c];
        if (column->kind == MRC_KIND_DROP) continue;
        if (column->kind == MRC_KIND_CATEGORY)
            encode_category(column, part);
        else
            encode_values(column, part);
        if (column->statistics > 0) encode_statistics(column, part);
        /* Cells have no entry for columns that are left out. */
        part->cells++;
    }
}

void mrc_schema_encode(const mrc_schema *self, const mercer_matrix *cells, const mercer_matrix *x)
{
    block part;
    part.cells_stride = cells->cols;
    part.features_stride = self->features;
    for (int64_t i = 0; i < cells->rows; i += BLOCK_ROWS) {
        part.rows = mrc_min(cells->rows - i, BLOCK_ROWS);
        part.cells = (const float *)mrc_row(cells, i);
        part.features = (float *)mrc_row(x, i);
        encode_block(self, &part);
    }
}

void mrc_schema_roles(const mrc_schema *self, mrc_role *roles)
{
    for (int64_t c = 0; c < self->count; c++) {
        const mrc_column *column = &self->columns[c];
        bool category = column->kind == MRC_KIND_CATEGORY;
        for (int64_t j = 0; j < column->width; j++) {
            bool sign = !category && column->missing > 0 && j == column->width - 1;
            bool level = category && j < column->width - column->statistics;
            roles[column->first + j] = level ? MRC_ROLE_LEVEL : sign ? MRC_ROLE_SIGN : MRC_ROLE_VALUE;
        }
    }
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

enum { MOST_CHARS = 512 };

/* Writes the name of feature j of a column, truncated if it is too long. */
static void name_feature(const mrc_column *column, int64_t j, char out[MOST_CHARS])
{
    bool category = column->kind == MRC_KIND_CATEGORY;
    int64_t statistic = j - (column->width - column->statistics);
    if (statistic >= 0 && column->statistics == 1)
        snprintf(out, MOST_CHARS, "%s target", column->name);
    else if (statistic >= 0)
        snprintf(out, MOST_CHARS, "%s target %lld", column->name, (long long)statistic + 1);
    else if (category && j < column->level_count)
        snprintf(out, MOST_CHARS, "%s=%s", column->name, column->levels[j]);
    else if (category && column->other && j == column->level_count)
        snprintf(out, MOST_CHARS, "%s other", column->name);
    else if (column->missing > 0 && j == column->width - column->statistics - 1)
        snprintf(out, MOST_CHARS, "%s missing", column->name);
    else
        snprintf(out, MOST_CHARS, "%s%s", column->name, j == 0 ? "" : j == 1 ? " sine" : " cosine");
    size_t end = strlen(out);
    if (end < MOST_CHARS - 1) return;
    while (end > 0 && ((unsigned char)out[end - 1] & 0xC0) == 0x80) end--; /* do not cut inside a UTF-8 character */
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
