/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes schemas as JSON:
 *
 *   {"missing": ["NA", ...], "columns": [
 *     {"name": "rooms", "kind": "number", "mean": 5.4, "missing": 12},
 *     {"name": "coast", "kind": "category", "levels": ["island", "near"], "other": true, "missing": 0},
 *     {"name": "code", "kind": "category", "levels": ["a"], "rare": ["b"], "other": true, "missing": 0,
 *      "statistics": 1, "values": [0.2, -0.1, 0]},
 *     {"name": "sold", "kind": "date", "mean": 7305.5, "missing": 0, "deviation": 640.2, "precision": [1.3]},
 *     {"name": "time", "kind": "number", "mean": -3.5, "origin": 1700000025, "missing": 0},
 *     {"name": "price", "kind": "number", "notation": "$1,234.5", "mean": 1308.5, "missing": 0},
 *     {"name": "id", "kind": "drop", "why": "constant"}]}
 *
 * "missing" of the schema lists the words for missing values; "missing" of a column is the number of its missing values
 * in training. Each word of "levels" has its own feature; words of "rare" share one feature, but have statistics.
 * "values" are the statistics of all levels, then the statistics of missing values. "deviation" and "precision" fill in
 * missing numbers (gaps.h): the k-th column with these members has row k of P up to the diagonal. Unknown members are
 * ignored; repeated members of an object are an error. Numbers have 17 digits and are read back as the same doubles.
 */
#include "data/schema/schema.h"

#include "core/memory.h"
#include "core/numbers/bounds.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const kinds[] = {"number", "boolean", "date", "category", "drop"};

static const char *const words[] = {"NA", "N/A", "NaN", "null", "?"};
const mrc_missing mrc_missing_default = {words, sizeof words / sizeof *words};

bool mrc_is_missing(const mrc_missing *missing, const char *text, int64_t length)
{
    for (int64_t i = 0; i < missing->count && length > 0; i++)
        if (strncasecmp(missing->words[i], text, (size_t)length) == 0 && missing->words[i][length] == 0) return true;
    return length == 0;
}

const char *mrc_kind_name(mrc_kind kind)
{
    return kinds[kind];
}

bool mrc_kind_find(const char *name, int64_t length, mrc_kind *kind)
{
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++)
        if ((int64_t)strlen(kinds[i]) == length && strncmp(kinds[i], name, (size_t)length) == 0) {
            *kind = (mrc_kind)i;
            return true;
        }
    return false;
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

/* Adds a member to an object, which takes ownership of `value`. If an allocation fails, frees `value` and returns
   false. */
static bool put_text(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* Makes a list of texts or, if `texts` is NULL, of numbers. Returns NULL if an allocation fails. */
static json_t *list_of(const char *const *texts, const double *numbers, int64_t count)
{
    json_t *list = json_array();
    bool fine = list != NULL;
    for (int64_t i = 0; i < count && fine; i++) {
        json_t *value = texts ? json_string(texts[i]) : numbers ? json_real(numbers[i]) : NULL;
        fine = json_array_append_new(list, value) == 0; /* fails if value is NULL */
    }
    if (fine) return list;
    json_decref(list);
    return NULL;
}

/* Adds the statistics of a category, if there are any: the words with only statistics, the number of statistics per
   level, and their values if known. */
static bool put_statistics(json_t *object, const mrc_column *column)
{
    int64_t kept = column->level_count, count = column->statistics;
    if (count == 0) return true;
    return put_text(object, "rare", list_of(column->levels + kept, NULL, column->rare_count)) &&
           put_text(object, "statistics", json_integer((json_int_t)count)) &&
           (!column->statistic ||
            put_text(object, "values", list_of(NULL, column->statistic, (mrc_column_levels(column) + 1) * count)));
}

/* Adds the members that describe a column. Returns false if there is no memory. */
static bool put_column(json_t *object, const mrc_column *column)
{
    char notation[MRC_NOTATION_CHARS];
    bool fine = (!column->name || put_text(object, "name", json_string(column->name))) &&
                put_text(object, "kind", json_string(kinds[column->kind]));
    if (column->kind == MRC_KIND_DROP) return fine && put_text(object, "why", json_string(column->why));
    if (column->kind == MRC_KIND_CATEGORY)
        fine = fine && put_text(object, "levels", list_of(column->levels, NULL, column->level_count)) &&
               put_text(object, "other", json_boolean(column->other)) && put_statistics(object, column);
    else
        fine = fine &&
               (!mrc_notation_is_set(&column->notation) ||
                put_text(object, "notation", json_string(mrc_notation_text(&column->notation, notation)))) &&
               put_text(object, "mean", json_real(column->mean)) &&
               (column->origin == 0 || put_text(object, "origin", json_real(column->origin)));
    fine = fine && put_text(object, "missing", json_integer((json_int_t)column->missing));
    if (!fine || column->deviation == 0) return fine;
    return put_text(object, "deviation", json_real(column->deviation)) &&
           put_text(object, "precision", list_of(NULL, column->precision, column->gap + 1));
}

static json_t *column_list(const mrc_column *columns, int64_t count)
{
    json_t *list = json_array();
    bool fine = list != NULL;
    for (int64_t i = 0; i < count && fine; i++) {
        json_t *object = json_object();
        fine = object && put_column(object, &columns[i]);
        if (fine)
            fine = json_array_append_new(list, object) == 0;
        else
            json_decref(object);
    }
    if (fine) return list;
    json_decref(list);
    return NULL;
}

mercer_status mrc_schema_print(mercer_context *context, const mrc_column *columns, int64_t count,
                               const mrc_missing *missing, char **out)
{
    const size_t how = JSON_COMPACT | JSON_REAL_PRECISION(17);
    json_auto_t *root = json_object();
    *out = NULL;
    bool fine = root && put_text(root, "missing", list_of(missing->words, NULL, missing->count)) &&
                put_text(root, "columns", column_list(columns, count));
    size_t length = fine ? json_dumpb(root, NULL, 0, how) : 0;
    char *text = NULL;
    MRC_SCOPE(scope, context);
    if (length > 0) MRC_TRY(mrc_scope_alloc_zero(&scope, &text, (int64_t)length + 1, 1, "the schema"));
    if (!text || json_dumpb(root, text, length, how) != length)
        return mrc_fail(context, MERCER_ERROR_MEMORY, "out of memory for the schema");
    mrc_scope_disown(&scope);
    *out = text;
    return MERCER_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

/* Fails because the schema is not valid. column: index of the column that is not valid; -1: the error is not in a
   column. */
static mercer_status fail_schema(const mrc_schema *self, int64_t column, const char *what)
{
    if (column < 0) return mrc_fail(self->context, MERCER_ERROR_FORMAT, "the schema %s", what);
    return mrc_fail(self->context, MERCER_ERROR_FORMAT, "the schema: column %lld (from 0) %s", (long long)column, what);
}

/* Appends the texts of a list at *at and advances *at. Returns false if `list` is not a list of texts. */
static bool take_texts(const json_t *list, const char ***at, const char *const **out, int64_t *count)
{
    *out = *at;
    *count = (int64_t)json_array_size(list);
    for (int64_t i = 0; i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        if (!text) return false;
        *(*at)++ = text;
    }
    return json_is_array(list);
}

/* Reads the notation of a number or a date, if present. */
static mercer_status read_notation(mrc_schema *self, int64_t i, const json_t *notation)
{
    mrc_column *column = &self->columns[i];
    const char *text = json_string_value(notation);
    bool date = column->kind == MRC_KIND_DATE;
    if (!notation) return MERCER_OK;
    if ((!date && column->kind != MRC_KIND_NUMBER) || !text || !mrc_notation_find(text, &column->notation) ||
        date != (column->notation.date != NULL))
        return fail_schema(self, i, "has an unknown notation; it may be from a newer version of Mercer");
    self->noted = true;
    return MERCER_OK;
}

/* Reads a number that a column must have, and checks that it is in low .. high. */
static mercer_status read_scalar(const mrc_schema *self, int64_t i, const json_t *object, const char *key, double low,
                                 double high, double *out)
{
    const json_t *number = json_object_get(object, key);
    char what[96];
    *out = json_number_value(number);
    if (json_is_number(number) && mrc_in_range(*out, low, high)) return MERCER_OK;
    snprintf(what, sizeof what, "has no valid %s: a number in %g .. %g", key, low, high);
    return fail_schema(self, i, what);
}

/* Reads the statistics of a category, if it has any. The words that have only statistics follow the levels. */
static mercer_status read_statistics(mrc_schema *self, int64_t i, const json_t *object, const char ***texts)
{
    mrc_column *column = &self->columns[i];
    const json_t *count = json_object_get(object, "statistics"), *values = json_object_get(object, "values");
    const char *const *rare;
    double *to = self->values + self->value_count;
    if (!count) return MERCER_OK;
    column->statistics = json_integer_value(count);
    if (!take_texts(json_object_get(object, "rare"), texts, &rare, &column->rare_count) ||
        (column->rare_count > 0 && !column->other) || column->statistics < 1 ||
        column->statistics > MRC_STATISTICS_MOST)
        return fail_schema(self, i, "has no valid statistics");
    self->statistics += column->statistics;
    if (!values) return MERCER_OK;
    int64_t needed = (mrc_column_levels(column) + 1) * column->statistics;
    if ((int64_t)json_array_size(values) != needed) return fail_schema(self, i, "has a wrong number of statistics");
    for (int64_t k = 0; k < needed; k++) {
        const json_t *value = json_array_get(values, (size_t)k);
        to[k] = json_number_value(value);
        if (!json_is_number(value) || !mrc_in_range(to[k], -MRC_CELL_MOST, MRC_CELL_MOST))
            return fail_schema(self, i, "has a statistic that is out of range");
    }
    column->statistic = to;
    self->value_count += needed;
    return MERCER_OK;
}

/* Reads the levels of a category. Repeated and empty levels are refused, because their features could never be 1. */
static mercer_status read_levels(mrc_schema *self, int64_t i, const json_t *object, const char ***texts)
{
    mrc_column *column = &self->columns[i];
    const char *repeated;
    column->other = json_is_true(json_object_get(object, "other"));
    if (!take_texts(json_object_get(object, "levels"), texts, &column->levels, &column->level_count))
        return fail_schema(self, i, "has no list of levels");
    if (column->level_count == 0) return fail_schema(self, i, "has an empty list of levels");
    MRC_TRY(read_statistics(self, i, object, texts));
    for (int64_t k = 0; k < mrc_column_levels(column); k++)
        if (!column->levels[k][0]) return fail_schema(self, i, "has an empty level");
    MRC_TRY(mrc_find_repeated(self->context, column->levels, mrc_column_levels(column), &repeated));
    if (repeated) return fail_schema(self, i, "has a repeated level");
    column->width = column->level_count + column->other + (column->missing > 0) + column->statistics;
    return MERCER_OK;
}

static mercer_status read_value(mrc_schema *self, int64_t i, const json_t *object)
{
    mrc_column *column = &self->columns[i];
    MRC_TRY(read_scalar(self, i, object, "mean", -MRC_CELL_MOST, MRC_CELL_MOST, &column->mean));
    if (json_object_get(object, "origin"))
        MRC_TRY(read_scalar(self, i, object, "origin", -MRC_CELL_MOST, MRC_CELL_MOST, &column->origin));
    column->width = (column->kind == MRC_KIND_DATE ? 3 : 1) + (column->missing > 0);
    return read_notation(self, i, json_object_get(object, "notation"));
}

static mercer_status read_column(mrc_schema *self, int64_t i, const json_t *object, const char ***texts)
{
    mrc_column *column = &self->columns[i];
    const json_t *name = json_object_get(object, "name"), *missing = json_object_get(object, "missing");
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!kind || !mrc_kind_find(kind, (int64_t)strlen(kind), &column->kind)) return fail_schema(self, i, "has no kind");
    column->name = json_string_value(name);
    if (name && !column->name) return fail_schema(self, i, "has a name that is not text");
    self->named = self->named && name;
    column->why = json_string_value(json_object_get(object, "why"));
    if (column->kind == MRC_KIND_DROP)
        return column->why ? MERCER_OK : fail_schema(self, i, "has no reason for being ignored");
    column->missing = json_integer_value(missing);
    if (!json_is_integer(missing) || !mrc_in_range((double)column->missing, 0, MRC_ROWS_MOST))
        return fail_schema(self, i, "has no number of missing values");
    MRC_TRY(column->kind == MRC_KIND_CATEGORY ? read_levels(self, i, object, texts) : read_value(self, i, object));
    column->first = self->features;
    self->features += column->width;
    self->used++;
    return MERCER_OK;
}

/* ---- Missing numbers --------------------------------------------------------------------------------------------- */

/* Reads the imputation of missing numbers of a column (gaps.h). Columns with a deviation take part. The k-th of these
   columns (from 0) has k + 1 numbers: row k of P up to the diagonal. */
static mercer_status read_gap(mrc_schema *self, int64_t i, const json_t *object)
{
    mrc_gaps *gaps = &self->gaps;
    mrc_column *column = &self->columns[i];
    const json_t *list = json_object_get(object, "precision"), *deviation = json_object_get(object, "deviation");
    int64_t at = gaps->count, most = MRC_GAPS_COLUMNS;
    column->gap = -1;
    if (!deviation && !list) return MERCER_OK;
    if ((column->kind != MRC_KIND_NUMBER && column->kind != MRC_KIND_DATE) || at == most || !json_is_array(list) ||
        (int64_t)json_array_size(list) != at + 1)
        return fail_schema(self, i, "has no rule for missing values");
    MRC_TRY(read_scalar(self, i, object, "deviation", MRC_CELL_DEVIATION_LEAST, MRC_CELL_MOST, &column->deviation));
    gaps->cells[at] = self->used - 1;
    gaps->mean[at] = column->mean;
    gaps->deviation[at] = column->deviation;
    gaps->factor[at] = 1 / column->deviation;
    for (int64_t j = 0; j <= at; j++) {
        const json_t *number = json_array_get(list, (size_t)j);
        double value = json_number_value(number);
        if (!json_is_number(number)) return fail_schema(self, i, "has a precision that is not a list of numbers");
        gaps->precision[at * most + j] = value;
    }
    column->gap = gaps->count++;
    return MERCER_OK;
}

/* Moves the rows of P from a stride of MRC_GAPS_COLUMNS to a stride of count, and fills the upper triangle. Rows move
   to lower addresses in ascending order, so no row is overwritten before it has moved. */
static void pack_gaps(mrc_gaps *gaps)
{
    int64_t k = gaps->count, most = MRC_GAPS_COLUMNS;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) gaps->precision[i * k + j] = gaps->precision[i * most + j];
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++) gaps->precision[i * k + j] = gaps->precision[j * k + i];
}

/* Allocates the arrays for filling missing numbers, if some column has a row of P. */
static mercer_status open_gaps(mrc_schema *self, const json_t *columns)
{
    enum { MOST = MRC_GAPS_COLUMNS };
    bool any = false;
    for (int64_t i = 0; i < self->count && !any; i++)
        any = json_object_get(json_array_get(columns, (size_t)i), "precision") != NULL;
    if (!any) return MERCER_OK;
    MRC_TRY(mrc_alloc(self->context, &self->gaps.precision, MOST * MOST + 3 * MOST, sizeof(double), "gaps"));
    self->gaps.mean = self->gaps.precision + MOST * MOST;
    self->gaps.deviation = self->gaps.mean + MOST;
    self->gaps.factor = self->gaps.deviation + MOST;
    return MERCER_OK;
}

/* ---- Schema ------------------------------------------------------------------------------------------------------ */

/* Counts the values of all statistics. */
static int64_t count_values(const json_t *columns)
{
    int64_t count = 0;
    for (size_t i = 0; i < json_array_size(columns); i++)
        count += (int64_t)json_array_size(json_object_get(json_array_get(columns, i), "values"));
    return count;
}

/* Counts the texts in all lists. */
static int64_t count_texts(const json_t *missing, const json_t *columns)
{
    int64_t count = (int64_t)json_array_size(missing);
    for (size_t i = 0; i < json_array_size(columns); i++)
        for (int k = 0; k < 2; k++)
            count += (int64_t)json_array_size(json_object_get(json_array_get(columns, i), k ? "rare" : "levels"));
    return count;
}

/* Checks that the names of used columns are distinct, as schema.c does when it finds a schema. Columns that are left
   out may share a name. */
static mercer_status check_names(const mrc_schema *self)
{
    const char **names, *repeated;
    int64_t count = 0;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &names, self->count, sizeof *names, "columns of a schema"));
    for (int64_t i = 0; i < self->count; i++)
        if (self->columns[i].kind != MRC_KIND_DROP && self->columns[i].name) names[count++] = self->columns[i].name;
    MRC_TRY(mrc_find_repeated(self->context, names, count, &repeated));
    return repeated ? fail_schema(self, -1, "has two columns of the same name") : MERCER_OK;
}

/* Fills the schema from the parsed document, which keeps owning the texts. */
static mercer_status read_parts(mrc_schema *self)
{
    const json_t *missing = json_object_get(self->root, "missing"), *columns = json_object_get(self->root, "columns");
    self->named = true;
    self->count = (int64_t)json_array_size(columns);
    if (self->count == 0) return fail_schema(self, -1, "has no columns");
    MRC_TRY(mrc_alloc_zero(self->context, &self->columns, self->count, sizeof *self->columns, "columns of a schema"));
    MRC_TRY(mrc_alloc(self->context, &self->lists, count_texts(missing, columns), sizeof(char *), "words of a schema"));
    MRC_TRY(mrc_alloc(self->context, &self->values, count_values(columns), sizeof(double), "statistics of a schema"));
    const char **texts = self->lists;
    if (!take_texts(missing, &texts, &self->missing.words, &self->missing.count))
        return fail_schema(self, -1, "has no list of missing words");
    MRC_TRY(open_gaps(self, columns));
    for (int64_t i = 0; i < self->count; i++) {
        MRC_TRY(read_column(self, i, json_array_get(columns, (size_t)i), &texts));
        MRC_TRY(read_gap(self, i, json_array_get(columns, (size_t)i)));
    }
    pack_gaps(&self->gaps);
    if (!mrc_precision_valid(self->gaps.count, self->gaps.precision))
        return fail_schema(self, -1, "has a precision matrix that is not positive definite");
    MRC_TRY(check_names(self));
    return self->features > 0 ? MERCER_OK : fail_schema(self, -1, "has no features");
}

mercer_status mrc_schema_read(mrc_schema **out, mercer_context *context, const char *text)
{
    MRC_OWNED(mrc_release_schema) mrc_schema *self = NULL;
    json_error_t error = {0};
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "a schema"));
    self->context = context;
    self->root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    /* Jansson reports a lack of memory as a syntax error. So try again: an error in the syntax fails both times. */
    if (!self->root) self->root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!self->root) return mrc_fail(context, MERCER_ERROR_FORMAT, "the schema: line %d is not JSON", error.line);
    MRC_TRY(read_parts(self));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_schema_free(mrc_schema *self)
{
    if (!self) return;
    json_decref(self->root);
    MRC_FREE_ALL(self->context, self->gaps.precision, self->values, self->lists, self->columns, self);
}
