/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages about columns: positions of values in the table, and warnings. Warnings are about columns that are not used,
 * look like row numbers, or contain values not seen in training.
 *
 * A table may have thousands of columns, but a context keeps only MRC_WARNINGS warnings. For each kind of warning, the
 * first MRC_COLUMN_WARNINGS columns get a warning each, and all other columns share one. Warnings about row numbers
 * stop after the first MRC_COLUMN_WARNINGS columns.
 */
#include "core/matrix.h"
#include "core/spec.h"
#include "data/schema/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static bool has_name(const mrc_cell_column *column)
{
    return column->name && *column->name;
}

/* Writes 'name', or the index of a column without a name. */
static const char *quoted_name(const mrc_cells *cells, int64_t j, char out[MRC_EXCERPT_CHARS + 8])
{
    char name[MRC_EXCERPT_CHARS];
    const char *given = cells->columns[j].name;
    if (has_name(&cells->columns[j]))
        snprintf(out, MRC_EXCERPT_CHARS + 8, "'%s'", mrc_excerpt(name, given, (int64_t)strlen(given)));
    else
        snprintf(out, MRC_EXCERPT_CHARS + 8, "%lld (from 0)", (long long)cells->columns[j].place);
    return out;
}

const char *mrc_column_option(const mrc_cells *cells, int64_t j, char out[MRC_EXCERPT_CHARS])
{
    const mrc_cell_column *column = &cells->columns[j];
    if (has_name(column)) return mrc_excerpt(out, column->name, (int64_t)strlen(column->name));
    snprintf(out, MRC_EXCERPT_CHARS, "%lld", (long long)column->place);
    for (int64_t k = 0; k < cells->count; k++) {
        const char *other = cells->columns[k].name;
        if (!other || strcmp(other, out) != 0) continue;
        snprintf(out, MRC_EXCERPT_CHARS, "%lld", (long long)(column->place - cells->table_columns));
        break;
    }
    return out;
}

const char *mrc_column_location(const mrc_cells *cells, int64_t j, char out[MRC_LOCATION_CHARS])
{
    char name[MRC_EXCERPT_CHARS + 8];
    snprintf(out, MRC_LOCATION_CHARS, "%.400s%scolumn %s", cells->path ? cells->path : "", cells->path ? ": " : "",
             quoted_name(cells, j, name));
    return out;
}

const char *mrc_level_location(const mrc_cells *cells, int64_t j, const mrc_level *level, char out[MRC_LOCATION_CHARS])
{
    char name[MRC_EXCERPT_CHARS + 8];
    quoted_name(cells, j, name);
    if (cells->path)
        snprintf(out, MRC_LOCATION_CHARS, "%.400s: %s %lld, column %s", level->path, cells->unit,
                 (long long)level->line, name);
    else
        snprintf(out, MRC_LOCATION_CHARS, "column %s, row %lld", name, (long long)level->line);
    return out;
}

/* ---- Columns that are not used ----------------------------------------------------------------------------------- */

/* Returns an excerpt of the first level that occurs in a cell, or "". */
static const char *example_of(const mrc_cell_column *column, char out[MRC_EXCERPT_CHARS])
{
    for (int64_t k = 0; k < column->levels.count; k++)
        if (column->levels.list[k].count > 0)
            return mrc_excerpt(out, mrc_levels_text(&column->levels, k), column->levels.list[k].length);
    out[0] = 0;
    return out;
}

/* Warns about a column with one value, and shows the value. */
static void warn_constant(const mrc_cells *cells, int64_t j, const char *place, const char *field)
{
    const mrc_cell_column *column = &cells->columns[j];
    char text[MRC_EXCERPT_CHARS];
    if (column->kind == MRC_KIND_DATE) {
        mrc_warn(cells->context, field, "%s is not used: every value is the same date", place);
        return;
    }
    if (column->kind == MRC_KIND_CATEGORY)
        example_of(column, text);
    else
        mrc_print_number(column->origin + column->tally.low, text, sizeof text);
    mrc_warn(cells->context, field, "%s is not used: it has one value, '%s'", place, text);
}

/* Warns about text that differs in almost every row. Such text is either a number or date in an unknown notation, or a
   row identifier. */
static void warn_words(const mrc_cells *cells, int64_t j, const char *place, const char *field)
{
    char text[MRC_EXCERPT_CHARS];
    bool digits = strpbrk(example_of(&cells->columns[j], text), "0123456789") != NULL;
    if (!cells->path)
        mrc_warn(cells->context, field,
                 "%s is not used: almost every value is different text, such as '%s'; %sremove it, or make it a "
                 "category",
                 place, text, digits ? "if these are numbers or dates, convert them; otherwise " : "");
    else
        mrc_warn(cells->context, field,
                 "%s is not used: almost every value is different text, such as '%s'; %sadd --drop '%s', or --columns "
                 "'%s:category' to use it",
                 place, text,
                 digits ? "if these are numbers or dates, write them as 1234.5 or 2024-02-29; otherwise " : "", field,
                 field);
}

/* Warns that a column is not used, in words that depend on the reason. */
static void warn_dropped(const mrc_cells *cells, int64_t j, const char *why)
{
    char place[MRC_LOCATION_CHARS], field[MRC_EXCERPT_CHARS];
    mrc_column_location(cells, j, place);
    mrc_column_option(cells, j, field);
    if (why == mrc_why_empty)
        mrc_warn(cells->context, field, "%s is not used: it is empty", place);
    else if (why == mrc_why_constant)
        warn_constant(cells, j, place, field);
    else
        warn_words(cells, j, place, field);
}

void mrc_cells_warn_dropped(const mrc_cells *cells, const mrc_column *columns)
{
    int64_t warned = 0, empty = 0, constant = 0, words = 0;
    for (int64_t j = 0; j < cells->count; j++) {
        const char *why = columns[j].why;
        if (columns[j].kind != MRC_KIND_DROP) continue;
        if (warned++ < MRC_COLUMN_WARNINGS) {
            warn_dropped(cells, j, why);
            continue;
        }
        empty += why == mrc_why_empty;
        constant += why == mrc_why_constant;
        words += why == mrc_why_words;
    }
    if (warned <= MRC_COLUMN_WARNINGS) return;
    mrc_warn(cells->context, "",
             "%s%s%lld more columns are not used: %lld empty, %lld with one value, %lld with different text in almost "
             "every row",
             cells->path ? cells->path : "", cells->path ? ": " : "", (long long)(warned - MRC_COLUMN_WARNINGS),
             (long long)empty, (long long)constant, (long long)words);
}

/* ---- Row numbers ------------------------------------------------------------------------------------------------- */

/* Returns whether the values of a column are integers that begin with 0 or 1 and increase about as fast as the row
   numbers. Some numbers may be absent, because rows without a target are left out: values up to about twice the number
   of rows are accepted. step: floats per row of `cells`; stride: rows of the table per row of `cells`. */
static bool counts_rows(const mrc_cell_column *column, const float *cells, int64_t rows, int64_t step, int64_t stride)
{
    double last = -1, most = 2 * (double)(rows * stride) + 1;
    for (int64_t i = 0; i < rows; i++) {
        double value = column->origin + (double)cells[i * step];
        if (!(value > last) || value > most || value != floor(value) || (i == 0 && value > 1)) return false;
        last = value;
    }
    return true;
}

void mrc_cells_warn_row_numbers(const mrc_cells *cells)
{
    enum { LEAST_ROWS = 32 }; /* fewer rows could be in ascending order by chance */
    bool tallied = cells->tallied > 0;
    int64_t rows = tallied ? cells->some.saved : cells->x.rows, stride = tallied ? cells->some.stride : 1, warned = 0;
    const float *first = tallied ? cells->some.cells : (const float *)cells->x.data;
    if (cells->count < 2 || rows < LEAST_ROWS || !first) return; /* a single column is certainly meant as a feature */
    for (int64_t j = 0; j < cells->count && warned < MRC_COLUMN_WARNINGS; j++) {
        char place[MRC_LOCATION_CHARS], name[MRC_EXCERPT_CHARS];
        const mrc_cell_column *column = &cells->columns[j];
        if (column->kind != MRC_KIND_NUMBER || column->strict || column->closed) continue;
        if (!counts_rows(column, first + j, rows, cells->count, stride)) continue;
        mrc_column_option(cells, j, name);
        mrc_warn(cells->context, name,
                 "%s: has %lld distinct whole numbers in order, like a row number; if it is one, %s%s%s",
                 mrc_column_location(cells, j, place), (long long)(tallied ? cells->tallied : rows),
                 cells->path ? "add --drop '" : "remove it", cells->path ? name : "", cells->path ? "'" : "");
        warned++;
    }
}

/* ---- New tables -------------------------------------------------------------------------------------------------- */

static void warn_unknown(const mrc_cells *cells, int64_t j, const char *place, const char *field)
{
    const mrc_cell_column *column = &cells->columns[j];
    if (column->unknown == 1)
        mrc_warn(cells->context, field,
                 "%s: 1 cell has a category not seen in training ('%s'); it is treated as unknown", place,
                 column->stranger);
    else
        mrc_warn(cells->context, field,
                 "%s: %lld cells have a category not seen in training (such as '%s'); they are treated as unknown",
                 place, (long long)column->unknown, column->stranger);
}

/* Warns about missing values in a column that had none in training: predictions from filled-in values may be poor. */
static void warn_missing(const mrc_cells *cells, int64_t j, const char *place, const char *field)
{
    const mrc_cell_column *column = &cells->columns[j];
    bool one = column->gaps == 1, word = column->kind == MRC_KIND_CATEGORY;
    mrc_warn(cells->context, field, "%s: %lld value%s missing, but none was missing in training; %s", place,
             (long long)column->gaps, one ? " is" : "s are",
             word ? (one ? "it is treated as unknown" : "they are treated as unknown")
                  : (one ? "it is filled in" : "they are filled in"));
}

void mrc_cells_warn(const mrc_cells *cells)
{
    int64_t warned = 0;
    for (int64_t j = 0; j < cells->count; j++) {
        const mrc_cell_column *column = &cells->columns[j];
        char place[MRC_LOCATION_CHARS], field[MRC_EXCERPT_CHARS];
        bool missing = column->gaps > 0 && !column->has_missing;
        if (!column->closed || (column->unknown == 0 && !missing)) continue;
        if (warned++ >= MRC_COLUMN_WARNINGS) continue;
        mrc_column_location(cells, j, place);
        mrc_column_option(cells, j, field);
        if (column->unknown > 0) warn_unknown(cells, j, place, field);
        if (missing) warn_missing(cells, j, place, field);
    }
    if (warned > MRC_COLUMN_WARNINGS)
        mrc_warn(cells->context, "", "%s%s%lld more columns have categories not seen in training, or missing values",
                 cells->path ? cells->path : "", cells->path ? ": " : "", (long long)(warned - MRC_COLUMN_WARNINGS));
}
