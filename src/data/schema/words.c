/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Columns of words whose values are all numbers or dates in one notation (data/table/notation.h).
 *
 * Every level is parsed once. If one notation fits all levels, the column becomes a column of numbers or dates, and its
 * cells are read again. If a notation fits nearly all values, the remaining values are more likely mistakes than
 * categories, and the first of them is an error. All other columns stay categories.
 *
 * In data frames, integers stored as text stay a category, because text is the way to mark codes and months as
 * categories. A warning is issued, unless leading zeros show that the integers are codes.
 *
 * Cost: O(levels), and O(rows) for columns in which a notation fits some levels but not all.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/date.h"
#include "data/schema/schema.h"
#include "data/table/number.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* FEW_WORDS: values that do not fit count as mistakes if fewer than 1 value in FEW_WORDS does not fit; READINGS: bits
   of mrc_readings */
enum { FEW_WORDS = 20, READINGS = 32 };

bool mrc_read_value(mrc_kind kind, const mrc_notation *notation, const char *text, const char *end, double *value)
{
    size_t length = (size_t)(end - text);
    if (kind == MRC_KIND_DATE)
        return notation->date ? mrc_read_date_in(notation->date, text, end, value) : mrc_read_date(text, end, value);
    *value = length == 4 && strncasecmp(text, "true", 4) == 0;
    if (kind == MRC_KIND_BOOLEAN && (*value > 0 || (length == 5 && strncasecmp(text, "false", 5) == 0))) return true;
    if (notation->decimal) return mrc_read_amount(notation, text, end, value);
    return mrc_read_number(text, end, value) == MRC_NUMBER;
}

/* Readings (possible notations, as bits) of the levels of a column. */
typedef struct survey {
    mrc_cells *cells;
    int64_t column;
    const mrc_levels *levels;
    mrc_readings *of;     /* (levels->count) readings of each level; all bits are set for a word that means "missing" */
    mrc_readings allowed; /* readings of the requested kind, or all readings */
    mrc_readings common;  /* readings that all levels have */
    mrc_readings any;     /* readings that at least one level has */
} survey;

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static const char *text_of(const survey *self, int64_t level, char out[MRC_EXCERPT_CHARS])
{
    return mrc_excerpt(out, mrc_levels_text(self->levels, level), self->levels->list[level].length);
}

/* Returns the first level that does not fit a reading, or the number of levels. */
static int64_t first_without(const survey *self, mrc_readings reading)
{
    int64_t k = 0;
    while (k < self->levels->count && (self->of[k] & reading)) k++;
    return k;
}

/* Fails because level `k` is not a number or date, but nearly all values of the column are. */
static mercer_status refuse_level(const survey *self, int64_t k, bool date, int64_t bad, int64_t values)
{
    const mrc_cells *cells = self->cells;
    char place[MRC_LOCATION_CHARS], word[MRC_EXCERPT_CHARS], option[MRC_EXCERPT_CHARS];
    mrc_level_location(cells, self->column, &self->levels->list[k], place);
    mrc_column_option(cells, self->column, option);
    const char *what = date ? "date" : "number";
    if (!cells->path)
        return mrc_fail_at(cells->context, date ? "columns.date" : "columns.number", MERCER_ERROR_DATA,
                           "%s: '%s' is not a %s, but %lld of %lld values are; make it a missing value, or make the "
                           "column a category",
                           place, text_of(self, k, word), what, (long long)(values - bad), (long long)values);
    return mrc_fail(cells->context, MERCER_ERROR_DATA,
                    "%s: '%s' is not a %s, but %lld of %lld values are; if it means \"no value\", add --missing='%s'; "
                    "if these are categories, add --columns '%s:category'",
                    place, text_of(self, k, word), what, (long long)(values - bad), (long long)values, word, option);
}

/* Fails because level `k` is not of the kind that the caller asked for. */
static mercer_status refuse_wish(const survey *self, int64_t k, bool date)
{
    char place[MRC_LOCATION_CHARS], word[MRC_EXCERPT_CHARS];
    mrc_level_location(self->cells, self->column, &self->levels->list[k], place);
    return mrc_fail(self->cells->context, MERCER_ERROR_DATA,
                    "%s: '%s' is not a %s, but --columns declares a column of %ss; if it means \"no value\", add "
                    "--missing='%s'",
                    place, text_of(self, k, word), date ? "date" : "number", date ? "date" : "number", word);
}

/* Fails because the dates would also be valid with day and month exchanged. The message explains how to specify the
   order. */
static mercer_status refuse_ambiguous(const survey *self)
{
    const mrc_cells *cells = self->cells;
    char place[MRC_LOCATION_CHARS], word[MRC_EXCERPT_CHARS], option[MRC_EXCERPT_CHARS];
    mrc_column_location(cells, self->column, place);
    mrc_column_option(cells, self->column, option);
    text_of(self, 0, word);
    if (!cells->path)
        return mrc_fail_at(cells->context, "columns.order", MERCER_ERROR_DATA,
                           "%s: the order of day and month in dates such as '%s' is unclear; convert the column to "
                           "dates",
                           place, word);
    return mrc_fail(cells->context, MERCER_ERROR_DATA,
                    "%s: the order of day and month in dates such as '%s' is unclear; add --columns '%s:date-dmy' "
                    "or '%s:date-mdy'",
                    place, word, option, option);
}

/* ---- Levels ------------------------------------------------------------------------------------------------------ */

/* Parses all levels of a column in all notations. */
static mercer_status open_survey(survey *self, mrc_scope *scope, const mrc_missing *missing)
{
    const mrc_cell_column *column = &self->cells->columns[self->column];
    int64_t count = column->levels.count;
    self->levels = &column->levels;
    self->allowed = !column->asked                    ? ~(mrc_readings)0
                    : column->wish == MRC_KIND_NUMBER ? mrc_readings_numbers
                                                      : mrc_readings_dates;
    MRC_TRY(mrc_scope_alloc(scope, &self->of, count, sizeof *self->of, "words of a column"));
    self->common = self->allowed;
    for (int64_t k = 0; k < count; k++) {
        const char *text = mrc_levels_text(self->levels, k), *end = text + self->levels->list[k].length;
        bool gap = mrc_is_missing(missing, text, end - text);
        self->of[k] = gap ? ~(mrc_readings)0 : mrc_readings_of(text, end, self->cells->separator);
        self->common &= self->of[k];
        if (!gap) self->any |= self->of[k] & self->allowed;
    }
    return MERCER_OK;
}

/* Counts the cells of each level. */
static void count_cells(const survey *self, int64_t *counts)
{
    const mrc_cells *cells = self->cells;
    for (int64_t k = 0; k < self->levels->count; k++) counts[k] = cells->tallied > 0 ? self->levels->list[k].count : 0;
    for (int64_t i = 0; cells->tallied == 0 && i < cells->x.rows; i++) {
        float cell = ((const float *)mrc_row(&cells->x, i))[self->column];
        if (cell >= 0) counts[(int64_t)cell]++;
    }
}

/* Finds the reading that fits most cells. Sets *values to the number of cells, and *bad to the number of cells that do
   not fit. */
static mrc_readings best_reading(const survey *self, const int64_t *counts, int64_t *bad, int64_t *values)
{
    mrc_readings best = 0;
    *values = 0;
    for (int64_t k = 0; k < self->levels->count; k++) *values += counts[k];
    *bad = *values + 1;
    for (int i = 0; i < READINGS; i++) {
        mrc_readings one = (mrc_readings)1 << i;
        int64_t misfits = 0;
        if (!(self->any & one)) continue;
        for (int64_t k = 0; k < self->levels->count; k++) misfits += self->of[k] & one ? 0 : counts[k];
        if (misfits < *bad) *bad = misfits, best = one;
    }
    return best;
}

/* Handles a column with no reading that fits all levels: fails if a reading fits nearly all cells, or if the caller
   asked for a kind. */
static mercer_status refuse_few(const survey *self)
{
    const mrc_cell_column *column = &self->cells->columns[self->column];
    int64_t *counts, bad, values;
    MRC_SCOPE(scope, self->cells->context);
    if (column->asked && self->any == 0) return refuse_wish(self, 0, column->wish == MRC_KIND_DATE);
    MRC_TRY(mrc_scope_alloc(&scope, &counts, self->levels->count, sizeof *counts, "words of a column"));
    count_cells(self, counts);
    mrc_readings best = best_reading(self, counts, &bad, &values);
    bool date = (best & mrc_readings_dates) != 0;
    if (column->asked) return refuse_wish(self, first_without(self, best), date);
    /* Words beyond the limit of levels were not parsed. They count as values that fit. */
    values += column->tally.beyond;
    if (bad * FEW_WORDS >= values) return MERCER_OK;
    return refuse_level(self, first_without(self, best), date, bad, values);
}

/* ---- Text of data frames ----------------------------------------------------------------------------------------- */

/* Returns whether all plain numbers are integers. Sets *codes to whether at least one of them has a leading zero. */
static bool are_whole(const survey *self, bool *codes)
{
    *codes = false;
    for (int64_t k = 0; k < self->levels->count; k++) {
        const char *text = mrc_levels_text(self->levels, k);
        double value;
        if (mrc_read_number(text, text + strlen(text), &value) != MRC_NUMBER) continue;
        if (value != floor(value)) return false;
        *codes = *codes || (text[0] == '0' && text[1] >= '0' && text[1] <= '9');
    }
    return true;
}

/* Returns whether the column is from a data frame and has integers as text. Such a column stays a category; warns
   unless the integers are codes (see the top of the file). */
static bool stays_category(const survey *self)
{
    char place[MRC_LOCATION_CHARS], name[MRC_EXCERPT_CHARS], word[MRC_EXCERPT_CHARS];
    bool codes;
    if (self->cells->path || !(self->common & mrc_readings_plain) || !are_whole(self, &codes)) return false;
    if (!codes)
        mrc_warn(self->cells->context, mrc_column_option(self->cells, self->column, name),
                 "%s has whole numbers as text, such as '%s', and is used as a category; convert it to numbers, or "
                 "to a category to avoid this warning",
                 mrc_column_location(self->cells, self->column, place), text_of(self, 0, word));
    return true;
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

/* Warns about a comma that is read as a decimal mark, but may also separate thousands. In tables with semicolons
   between fields, a comma is a decimal mark, as in plain numbers. */
static void warn_comma(const survey *self, const mrc_notation *chosen)
{
    mrc_notation other;
    bool date, ambiguous;
    mrc_readings points = self->common & ~mrc_readings_plain;
    if (chosen->decimal != ',' || !mrc_readings_choose(points, ',', MRC_ORDER_UNKNOWN, &other, &date, &ambiguous))
        return;
    for (int64_t k = 0; k < self->levels->count; k++) {
        char place[MRC_LOCATION_CHARS], name[MRC_EXCERPT_CHARS], word[MRC_EXCERPT_CHARS];
        const char *text = mrc_levels_text(self->levels, k);
        double value;
        if (other.decimal != '.' || !strchr(text, ',')) continue;
        if (!mrc_read_amount(chosen, text, text + strlen(text), &value)) continue;
        mrc_warn(self->cells->context, mrc_column_option(self->cells, self->column, name),
                 "%s: '%s' is read as %g, with a decimal comma; if the comma separates thousands, remove it",
                 mrc_column_location(self->cells, self->column, place), text_of(self, k, word), value);
        return;
    }
}

/* Chooses the notation of a column, if one fits. Sets *changed if the cells of the column must be read again. */
static mercer_status read_column(mrc_cells *cells, int64_t j, const mrc_missing *missing, bool *changed)
{
    char text[MRC_NOTATION_CHARS], place[MRC_LOCATION_CHARS];
    mrc_cell_column *column = &cells->columns[j];
    survey self = {.cells = cells, .column = j};
    mrc_notation notation;
    bool date, ambiguous;
    MRC_SCOPE(scope, cells->context);
    MRC_TRY(open_survey(&self, &scope, missing));
    if (self.common == 0 || self.any == 0) return self.any || column->asked ? refuse_few(&self) : MERCER_OK;
    if (stays_category(&self)) return MERCER_OK;
    if (!mrc_readings_choose(self.common, cells->separator, column->order, &notation, &date, &ambiguous))
        return ambiguous && column->levels.count > 1 ? refuse_ambiguous(&self) : MERCER_OK;
    warn_comma(&self, &notation);
    if (notation.date)
        mrc_log(cells->context, MERCER_LOG_INFO, "%s has dates in the order %s", mrc_column_location(cells, j, place),
                mrc_notation_text(&notation, text));
    column->kind = date ? MRC_KIND_DATE : MRC_KIND_NUMBER;
    column->notation = notation;
    /* words beyond the limit of levels were not examined; if such a word does not fit, reading the column again
       fails */
    column->fixed = true;
    column->asked = false;
    *changed = true;
    return MERCER_OK;
}

mercer_status mrc_cells_read_words(mrc_cells *self, const mrc_missing *missing, bool *changed)
{
    *changed = false;
    for (int64_t j = 0; j < self->count; j++) {
        const mrc_cell_column *column = &self->columns[j];
        bool open = column->asked ? column->wish != MRC_KIND_CATEGORY : !column->fixed;
        if (column->kind != MRC_KIND_CATEGORY || column->closed || !open || column->levels.count == 0) continue;
        MRC_TRY(read_column(self, j, missing, changed));
    }
    return MERCER_OK;
}
