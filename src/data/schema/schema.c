/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schemas from cells: the kind of each column of a table.
 *
 * A column is a number if all its values are numbers, and a date if all are dates. It is a boolean if all values are
 * true or false. All other columns are categories. A category has features for its 255 most frequent levels, in
 * bytewise order. If a category has many levels and the table has targets, levels also have statistics of the targets:
 * these levels and all further levels that occur at least twice. Columns with one value, with no value, or with words
 * that differ in nearly every row are left out with a warning. Numbers and dates in other notations have been found
 * before (words.c).
 *
 * Only tallies per column are used, so the cells may be read block by block.
 *
 * Cost: O(cells) and a sort of the levels (at most 65,536 per column).
 */
#include "data/schema/schema.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "data/files/input.h"
#include "data/table/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { IDENTIFIER_ROWS = 32 }; /* fewest rows for which distinct words are considered identifiers */

const char *const mrc_why_constant = "constant", *const mrc_why_empty = "every value is missing",
                  *const mrc_why_words = "different text in nearly every row", *const mrc_why_asked = "asked for";

/* Final cells of a column of words: levels[k].final for cell k, `other` for words beyond the levels. levels is NULL for
   columns whose cells do not change. */
typedef struct final_cells {
    const mrc_level *levels;
    float other;
} final_cells;

/* State of mrc_schema_find. */
typedef struct finder {
    mrc_cells *cells;
    mercer_context *context;
    mrc_column *columns; /* (cells->count) */
    final_cells *finals; /* (cells->count) */
    const char ***lists; /* (cells->count) names of kept levels, or NULL */
    double *precision;   /* memory of the columns' rows of P, or NULL */
    int64_t statistics;  /* number of statistics so far */
    bool held;           /* cells->x has all rows, and finish_cells replaces their cells */
} finder;

/* Marks a column as not used, and records the reason. */
static void leave_out(mrc_column *column, const char *why)
{
    *column = (mrc_column){.name = column->name, .kind = MRC_KIND_DROP, .why = why};
}

/* ---- Tallies ------------------------------------------------------------------------------------------------- */

/* Adds a value without branches, which the processor could not predict. */
static inline void add_value(mrc_tally *to, double value)
{
    bool first = to->low > to->high;
    to->sum += value;
    to->low = first || value < to->low ? value : to->low;
    to->high = first || value > to->high ? value : to->high;
}

/* Adds the cells of a column row by row. The sum is accumulated in the order of the rows, so it does not depend on the
   size of blocks. */
static void tally_values(mrc_tally *to, const float *cells, int64_t rows, int64_t stride)
{
    double sum = to->sum, low = to->low, high = to->high;
    int64_t missing = 0;
    if (low > high) low = (double)INFINITY, high = -(double)INFINITY;
    for (int64_t i = 0; i < rows; i++) {
        double value = (double)cells[i * stride];
        bool known = !isnan(value);
        sum += known ? value : 0; /* missing values add 0, which changes nothing because the sum is never -0 */
        low = value < low ? value : low;
        high = value > high ? value : high;
        missing += !known;
    }
    to->missing += missing;
    to->sum = sum;
    if (low <= high) to->low = low, to->high = high;
}

/* Counts the cells of a column by level. */
static void tally_words(mrc_cell_column *column, const float *cells, int64_t rows, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++) {
        float cell = cells[i * stride];
        if (isnan(cell))
            column->tally.missing++;
        else if (cell < 0)
            column->tally.beyond++;
        else
            column->levels.list[(int64_t)cell].count++;
    }
}

mercer_status mrc_cells_tally(mrc_cells *self)
{
    enum { BLOCK_ROWS = 128 }; /* rows that fit into the cache while all columns are tallied */
    static const mrc_tally none = {.low = 1, .high = 0};
    int64_t columns = self->count, rows;
    for (int64_t j = 0; self->tallied == 0 && j < columns; j++) self->columns[j].tally = none;
    for (int64_t i = 0; i < self->x.rows; i += rows) {
        const float *cells = (const float *)mrc_row(&self->x, i);
        rows = mrc_min(self->x.rows - i, BLOCK_ROWS);
        for (int64_t j = 0; j < columns; j++) {
            if (self->columns[j].kind == MRC_KIND_CATEGORY)
                tally_words(&self->columns[j], cells + j, rows, columns);
            else
                tally_values(&self->columns[j].tally, cells + j, rows, columns);
        }
        for (int64_t k = 0; k < rows; k++)
            MRC_TRY(
                mrc_spread_rows_add(&self->some, self->context, self->tallied + i + k, cells + k * columns, columns));
    }
    self->tallied += self->x.rows;
    return MERCER_OK;
}

static void forget_rows(mrc_cells *self)
{
    mrc_free(self->context, self->some.cells);
    self->some = (mrc_spread_rows){.cells = NULL};
}

void mrc_cells_forget(mrc_cells *self)
{
    for (int64_t j = 0; j < self->count; j++) {
        self->columns[j].gaps = self->columns[j].unknown = 0;
        self->columns[j].off = 0;
        if (!self->columns[j].closed) mrc_levels_close(&self->columns[j].levels);
    }
    self->tallied = 0;
    forget_rows(self);
}

void mrc_cells_close(mrc_cells *self)
{
    for (int64_t j = 0; j < self->count; j++) mrc_levels_close(&self->columns[j].levels);
    forget_rows(self);
}

/* ---- Values -------------------------------------------------------------------------------------------------- */

/* Decides from the tally whether a column of values is used, and sets its mean and origin. */
static void settle_values(finder *self, int64_t j, const mrc_tally *of)
{
    mrc_column *column = &self->columns[j];
    int64_t rows = self->cells->tallied;
    column->missing = of->missing;
    column->origin = self->cells->columns[j].origin;
    if (of->missing == rows) {
        leave_out(column, mrc_why_empty);
        return;
    }
    column->mean = of->sum / (double)(rows - of->missing);
    if (of->low == of->high && of->missing == 0) leave_out(column, mrc_why_constant);
}

/* ---- Words --------------------------------------------------------------------------------------------------- */

static bool is_boolean(const char *text, float *value)
{
    *value = strcasecmp(text, "true") == 0;
    return *value > 0 || strcasecmp(text, "false") == 0;
}

/* Returns whether all words that occur are true or false, and sets their final cells. */
static bool all_boolean(const mrc_levels *levels)
{
    bool any = false;
    for (int64_t k = 0; k < levels->count; k++) {
        if (levels->list[k].count == 0) continue;
        if (!is_boolean(mrc_levels_text(levels, k), &levels->list[k].final)) return false;
        any = true;
    }
    return any;
}

/* Turns a column whose words are all true or false into values. */
static void settle_boolean(finder *self, int64_t j)
{
    const mrc_cell_column *cells = &self->cells->columns[j];
    mrc_tally of = cells->tally;
    for (int64_t k = 0; k < cells->levels.count; k++) {
        const mrc_level *level = &cells->levels.list[k];
        if (level->count == 0) continue;
        add_value(&of, (double)level->final);
        /* The other cells of the level change only the sum. */
        of.sum += (double)level->final * (double)(level->count - 1);
    }
    self->columns[j] = (mrc_column){.name = self->columns[j].name, .kind = MRC_KIND_BOOLEAN};
    settle_values(self, j, &of);
}

/* A level with its number, for sorting. */
typedef struct ranked {
    const char *text;
    int64_t number, count;
} ranked;

static int by_count(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const ranked *)a)->text, ((const ranked *)b)->text);
}

/* Returns the first byte of a text that is not UTF-8, or NULL. */
static const unsigned char *bad_byte(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = mrc_utf8_length(at);
        if (length == 0) return at;
        at += length;
    }
    return NULL;
}

/* Fails with the position of a level that is not UTF-8, because schemas are JSON. */
static mercer_status check_encoding(const finder *self, int64_t j, const mrc_level *level, const char *text)
{
    char place[MRC_LOCATION_CHARS];
    const unsigned char *bad = bad_byte(text);
    if (!bad) return MERCER_OK;
    mrc_level_location(self->cells, j, level, place);
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: byte 0x%02x is not UTF-8; save the %s as UTF-8", place,
                    *bad, self->cells->path ? "file" : "text");
}

/* Decides whether a category of `found` levels has statistics of the targets. Returns the number of levels to list:
   `listed` if the category has statistics, else `kept`. */
static int64_t choose_statistics(finder *self, int64_t j, int64_t found, int64_t kept, int64_t listed)
{
    char place[MRC_LOCATION_CHARS];
    int64_t count = self->cells->statistics;
    if (found < MRC_STATISTIC_LEVELS || count == 0) return kept;
    if (listed * count > MRC_STATISTIC_VALUES - self->statistics) {
        mrc_warn(self->context, "levels",
                 "%s has too many levels for statistics of the targets; other columns use up the limit of the table",
                 mrc_column_location(self->cells, j, place));
        return kept;
    }
    self->statistics += listed * count;
    self->columns[j].statistics = count;
    return listed;
}

/* Chooses the levels that get a feature, and sets the final cell of each level. */
static mercer_status keep_levels(finder *self, int64_t j, int64_t beyond)
{
    const mrc_levels *levels = &self->cells->columns[j].levels;
    mrc_column *column = &self->columns[j];
    ranked *all;
    int64_t found = 0;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &all, levels->count, sizeof *all, "levels of a column"));
    for (int64_t k = 0; k < levels->count; k++)
        if (levels->list[k].count > 0) all[found++] = (ranked){mrc_levels_text(levels, k), k, levels->list[k].count};
    qsort(all, (size_t)found, sizeof *all, by_count);
    /* The most frequent levels get a feature each (kept). Further levels that occur at least twice may get statistics
       (listed). */
    int64_t kept = mrc_min(found, MRC_KEPT_LEVELS), listed = kept;
    while (listed < found && all[listed].count > 1) listed++;
    listed = choose_statistics(self, j, found, kept, listed);
    qsort(all, (size_t)kept, sizeof *all, by_text);
    qsort(all + kept, (size_t)(listed - kept), sizeof *all, by_text);
    MRC_TRY(mrc_alloc(self->context, &self->lists[j], listed, sizeof(char *), "levels of a column"));
    column->levels = self->lists[j];
    column->level_count = kept;
    column->rare_count = listed - kept;
    column->other = beyond > 0 || found > kept;
    /* Levels that are not listed share the cell `listed`, which stands for other words. */
    for (int64_t k = 0; k < found; k++) levels->list[all[k].number].final = (float)mrc_min(k, listed);
    for (int64_t k = 0; k < listed; k++) {
        self->lists[j][k] = all[k].text;
        MRC_TRY(check_encoding(self, j, &levels->list[all[k].number], all[k].text));
    }
    return MERCER_OK;
}

/* Decides whether a column of words has booleans, is a category, or is left out because its words are of no use. */
static mercer_status settle_words(finder *self, int64_t j)
{
    const mrc_cell_column *cells = &self->cells->columns[j];
    mrc_column *column = &self->columns[j];
    column->missing = cells->tally.missing;
    int64_t beyond = cells->tally.beyond, values = self->cells->tallied - column->missing, found = 0;
    for (int64_t k = 0; k < cells->levels.count; k++) found += cells->levels.list[k].count > 0;
    if (!cells->fixed && beyond == 0 && all_boolean(&cells->levels)) {
        self->finals[j] = (final_cells){cells->levels.list, 0};
        settle_boolean(self, j);
        return MERCER_OK;
    }
    /* Identifiers: at least 90 % of the values are distinct words. Cells beyond the limit of levels count as
       distinct. */
    bool words = !cells->fixed && !cells->asked && values >= IDENTIFIER_ROWS && (found + beyond) * 10 >= values * 9;
    if (values == 0 || (found + beyond <= 1 && column->missing == 0) || words) {
        leave_out(column, values == 0 ? mrc_why_empty : words ? mrc_why_words : mrc_why_constant);
        return MERCER_OK;
    }
    MRC_TRY(keep_levels(self, j, beyond));
    self->finals[j] = (final_cells){cells->levels.list, (float)mrc_column_levels(column)};
    return MERCER_OK;
}

/* ---- Finding the schema -------------------------------------------------------------------------------------- */

static inline float finish_cell(const final_cells *final, float cell)
{
    if (!final->levels || isnan(cell)) return cell;
    return cell < 0 ? final->other : final->levels[(int64_t)cell].final;
}

/* Replaces cells by their final cells, and removes the columns that are left out. */
static void finish_cells(finder *self)
{
    mercer_matrix *x = &self->cells->x;
    int64_t used = 0, changed = 0, count = self->cells->count;
    for (int64_t j = 0; j < count; j++) {
        used += self->columns[j].kind != MRC_KIND_DROP;
        changed += self->finals[j].levels != NULL;
    }
    float *to = x->data;
    /* Rows become shorter in place: `to` never passes `from`, because used <= count. */
    if (!self->held || (used == count && changed == 0)) return;
    for (int64_t i = 0; i < x->rows; i++) {
        const float *from = (const float *)mrc_row(x, i);
        for (int64_t j = 0; j < count; j++)
            if (self->columns[j].kind != MRC_KIND_DROP) *to++ = finish_cell(&self->finals[j], from[j]);
    }
    *x = mrc_view(x->data, x->rows, used, MERCER_F32);
}

/* Checks that the names of the columns are UTF-8 and distinct, because a model finds columns by name. */
static mercer_status check_names(const finder *self)
{
    MRC_OWNED(mrc_levels_close) mrc_levels names;
    char place[MRC_LOCATION_CHARS];
    const char *path = self->cells->path;
    mrc_levels_open(&names, self->context);
    for (int64_t j = 0; j < self->cells->count; j++) {
        const char *name = self->cells->columns[j].name;
        int64_t number, length = name ? (int64_t)strlen(name) : 0;
        if (!name) continue;
        if (bad_byte(name))
            return mrc_fail(self->context, MERCER_ERROR_FORMAT,
                            "%s%sthe name of column %lld (from 0) is not UTF-8; save the file as UTF-8",
                            path ? path : "", path ? ": " : "", (long long)self->cells->columns[j].place);
        if (mrc_levels_find(&names, name, length) >= 0)
            return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s %s; rename or drop one of them",
                            mrc_column_location(self->cells, j, place),
                            length > 0 ? "occurs twice" : "has no name, and another column has none either");
        MRC_TRY(mrc_levels_add(&names, name, length, "", 0, &number));
    }
    return MERCER_OK;
}

/* Prints the schema: the columns that were found and the columns that the user excluded, in the order of the table. */
static mercer_status print_all(const finder *self, const mrc_left_out *left_out, const mrc_missing *missing, char **out)
{
    mrc_column *all;
    int64_t extra = left_out ? left_out->count : 0, total = self->cells->count + extra;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &all, total, sizeof *all, "columns of a schema"));
    for (int64_t i = 0, j = 0, k = 0; i < total; i++) {
        if (k < extra && (left_out->places[k] == i || j == self->cells->count)) {
            all[i] = (mrc_column){.name = left_out->names ? left_out->names[k] : NULL};
            leave_out(&all[i], mrc_why_asked);
            k++;
        } else {
            all[i] = self->columns[j++];
        }
    }
    return mrc_schema_print(self->context, all, total, missing, out);
}

/* Returns whether all columns are plain numbers without missing values, origin or notation. */
static bool has_no_gaps(const mrc_cells *cells)
{
    for (int64_t j = 0; j < cells->count; j++) {
        const mrc_cell_column *column = &cells->columns[j];
        if (column->kind != MRC_KIND_NUMBER || column->gaps > 0 || column->origin != 0) return false;
        if (mrc_notation_is_set(&column->notation)) return false;
    }
    return true;
}

/* Decides the kinds of all columns and prints the schema. */
static mercer_status find_columns(finder *self, const mrc_left_out *left_out, const mrc_missing *missing, char **out)
{
    mrc_cells *cells = self->cells;
    bool plain = !left_out || left_out->count == 0 || (cells->count > 0 && cells->columns[0].name), any = false;
    for (int64_t j = 0; j < cells->count; j++)
        self->columns[j] = (mrc_column){
            .name = cells->columns[j].name, .kind = cells->columns[j].kind, .notation = cells->columns[j].notation};
    MRC_TRY(check_names(self));
    if (plain && has_no_gaps(cells)) return MERCER_OK;
    self->held = cells->tallied == 0;
    if (self->held) MRC_TRY(mrc_cells_tally(cells));
    for (int64_t j = 0; j < cells->count; j++) {
        bool number = cells->columns[j].kind == MRC_KIND_NUMBER;
        if (cells->columns[j].kind == MRC_KIND_CATEGORY)
            MRC_TRY(settle_words(self, j));
        else
            settle_values(self, j, &cells->columns[j].tally);
        plain = plain && number && self->columns[j].missing == 0 && self->columns[j].why != mrc_why_empty &&
                cells->columns[j].origin == 0 && !mrc_notation_is_set(&cells->columns[j].notation);
        any = any || self->columns[j].kind != MRC_KIND_DROP;
    }
    /* If `plain` is true here, only skipped records have missing values: has_no_gaps counts their cells, but the
       tallies do not. */
    if (plain) return MERCER_OK;
    mrc_cells_warn_dropped(cells, self->columns);
    if (!any)
        return mrc_fail(
            self->context, MERCER_ERROR_DATA,
            "%s%sno column is usable; each of the %lld columns is empty, has one value, or has different text in "
            "almost every row",
            cells->path ? cells->path : "", cells->path ? ": " : "", (long long)cells->count);
    MRC_TRY(mrc_gaps_find(&cells->some, self->context, self->columns, cells->count, &self->precision));
    MRC_TRY(print_all(self, left_out, missing, out));
    finish_cells(self);
    return MERCER_OK;
}

static void free_lists(finder *self)
{
    for (int64_t j = 0; self->lists && j < self->cells->count; j++) mrc_free(self->context, (void *)self->lists[j]);
    mrc_free(self->context, self->precision);
}

mercer_status mrc_schema_find(mrc_cells *cells, const mrc_left_out *left_out, const mrc_missing *missing, char **out)
{
    MRC_SCOPE(scope, cells->context);
    MRC_OWNED(free_lists) finder self = {.cells = cells, .context = cells->context};
    *out = NULL;
    mrc_cells_warn_row_numbers(cells);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.columns, cells->count, sizeof *self.columns, "columns of a schema"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.finals, cells->count, sizeof *self.finals, "columns of a schema"));
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.lists, cells->count, sizeof *self.lists, "levels"));
    return find_columns(&self, left_out, missing, out);
}
