/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datasets from columns in memory, such as the columns of a data frame. The dataset has the same features as the
 * dataset of a file with the same cells.
 *
 * A column has numbers (values; NaN is missing), or codes into a list of words (a code below 0 is missing). Columns
 * become cells, one float each; a schema is found from the cells unless the caller gives one; the cells are then
 * encoded. Each distinct word is parsed or looked up once. Targets, weights and keys are copied, and the caller's
 * columns are not needed afterwards.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "data/dataset.h"
#include "data/files/input.h"
#include "data/schema/schema.h"
#include "data/table/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct builder {
    mercer_context *context;
    const mercer_table_column *given; /* (count) columns of features */
    int64_t count, rows;
    mrc_schema *schema; /* schema given or found; NULL if there is none */
    bool closed;        /* the schema was given by the caller */
    mrc_cells cells;
    int64_t *places;     /* (cells.count) indices into `given` */
    const char **names;  /* (count) names of the given columns */
    const char **wanted; /* (cells.count) names in the schema, or NULL */
    mercer_dataset *dataset;
    mrc_scope scope; /* scratch memory of the builder */
} builder;

static void close_builder(builder *self)
{
    mrc_cells_close(&self->cells);
    mrc_schema_free(self->schema);
    mrc_dataset_free(self->dataset);
    mrc_scope_close(&self->scope);
}

static mercer_status fail_kind(const builder *self, int64_t j, const char *what)
{
    char place[MRC_LOCATION_CHARS];
    return mrc_fail(self->context, MERCER_ERROR_MISMATCH, "%s %s", mrc_column_location(&self->cells, j, place), what);
}

/* ---- Matching columns ------------------------------------------------------------------------------------------ */

/* Finds the given column for each column of the schema: by name if all columns have names, else by position. */
static mercer_status match(builder *self)
{
    const mrc_schema *schema = self->schema;
    bool named = schema && schema->named;
    for (int64_t i = 0; i < self->count; i++) {
        self->names[i] = self->given[i].name;
        named = named && self->names[i];
    }
    int64_t used = 0, positions = schema ? schema->count : self->count;
    if (!named && positions != self->count)
        return mrc_fail(self->context, MERCER_ERROR_SHAPE,
                        "%lld columns without names, but the model was trained on %lld; columns without names are "
                        "matched by position",
                        (long long)self->count, (long long)positions);
    for (int64_t i = 0; i < positions; i++) {
        if (schema && schema->columns[i].kind == MRC_KIND_DROP) continue;
        if (named) self->wanted[used] = schema->columns[i].name;
        self->places[used++] = i;
    }
    if (!named) return MERCER_OK;
    return mrc_columns_match(self->context, "columns", self->names, self->count, self->wanted, used, self->places);
}

/* ---- Cells ----------------------------------------------------------------------------------------------------- */

/* Fills the cells of a numeric column from its values. NaN is a missing value. */
static mercer_status fill_values(builder *self, int64_t j)
{
    const double *values = self->given[self->places[j]].values;
    for (int64_t i = 0; i < self->rows; i++) {
        float cell = mrc_cell_number(&self->cells.columns[j], values[i]);
        if (isinf(cell)) return fail_kind(self, j, "has a value outside the range of f32");
        self->cells.columns[j].gaps += isnan(cell);
        ((float *)mrc_row(&self->cells.x, i))[j] = cell;
    }
    return MERCER_OK;
}

/* Finds the cell of a word. A new word becomes a new level, or `beyond` if the levels come from a schema. */
static mercer_status cell_of(mrc_cell_column *column, const char *word, float *cell)
{
    int64_t length = (int64_t)strlen(word), number = mrc_levels_find(&column->levels, word, length);
    if (number < 0 && !column->closed) MRC_TRY(mrc_levels_add(&column->levels, word, length, NULL, -1, &number));
    *cell = number < 0 && column->closed ? column->beyond : (float)number;
    return MERCER_OK;
}

/* Stores the cell of a word (NULL: missing) and updates the counts for later warnings. */
static void put_word(const builder *self, int64_t j, int64_t i, const char *word, float cell)
{
    mrc_cell_column *column = &self->cells.columns[j];
    ((float *)mrc_row(&self->cells.x, i))[j] = word ? cell : (float)NAN;
    column->gaps += !word;
    if (word && column->closed && cell < 0) mrc_note_unknown(column, word, (int64_t)strlen(word));
    if (!word || column->closed || cell < 0) return;
    mrc_level *level = &column->levels.list[(int64_t)cell];
    if (level->line < 0) level->line = i; /* row of the first occurrence */
}

/* Checks that every code has a word. Negative codes are missing values. */
static mercer_status check_codes(const builder *self, int64_t j)
{
    const mercer_table_column *from = &self->given[self->places[j]];
    for (int64_t i = 0; i < self->rows; i++)
        if (from->codes[i] >= from->word_count)
            return fail_kind(self, j, "has a code that is not an index of its words");
    return MERCER_OK;
}

/* Fills a category from codes. Each distinct word is looked up once, not once per row. */
static mercer_status fill_words(builder *self, int64_t j)
{
    const mercer_table_column *from = &self->given[self->places[j]];
    float *cells;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &cells, from->word_count, sizeof *cells, "words of a column"));
    for (int64_t k = 0; k < from->word_count; k++) MRC_TRY(cell_of(&self->cells.columns[j], from->words[k], &cells[k]));
    for (int64_t i = 0; i < self->rows; i++) {
        int32_t code = from->codes[i];
        put_word(self, j, i, code < 0 ? NULL : from->words[code], code < 0 ? 0 : cells[code]);
    }
    return MERCER_OK;
}

/* Fails for a word that does not fit the kind of its column. */
static mercer_status fail_word(const builder *self, int64_t j, int64_t row, const char *word)
{
    static const char *const kinds[] = {
        [MRC_KIND_NUMBER] = "number", [MRC_KIND_BOOLEAN] = "boolean", [MRC_KIND_DATE] = "date"};
    char place[MRC_LOCATION_CHARS], text[MRC_EXCERPT_CHARS];
    const mrc_level at = {.line = row};
    static const char *const fields[] = {
        [MRC_KIND_NUMBER] = "columns.number", [MRC_KIND_BOOLEAN] = "columns", [MRC_KIND_DATE] = "columns.date"};
    const mrc_kind kind = self->cells.columns[j].kind;
    return mrc_fail_at(
        self->context, fields[kind], MERCER_ERROR_MISMATCH, "%s: '%s' is not a %s, but the model was trained on one",
        mrc_level_location(&self->cells, j, &at, place), mrc_excerpt(text, word, (int64_t)strlen(word)), kinds[kind]);
}

/* Fills a column of numbers, booleans or dates from words. */
static mercer_status fill_parsed(builder *self, int64_t j)
{
    const mercer_table_column *from = &self->given[self->places[j]];
    const mrc_missing *missing = self->closed ? &self->schema->missing : &mrc_missing_default;
    mrc_cell_column *column = &self->cells.columns[j];
    double *values;
    bool *fits;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &values, from->word_count, sizeof *values, "words of a column"));
    MRC_TRY(mrc_scope_alloc(&scope, &fits, from->word_count, sizeof *fits, "words of a column"));
    for (int64_t k = 0; k < from->word_count; k++) {
        const char *word = from->words[k], *end = word + strlen(word);
        fits[k] = mrc_read_value(column->kind, &column->notation, word, end, &values[k]);
        if (fits[k] || !mrc_is_missing(missing, word, end - word)) continue;
        fits[k] = true;
        values[k] = (double)NAN;
    }
    for (int64_t i = 0; i < self->rows; i++) {
        int32_t code = from->codes[i];
        if (code >= 0 && !fits[code]) return fail_word(self, j, i, from->words[code]);
        float cell = mrc_cell_number(column, code < 0 ? (double)NAN : values[code]);
        if (isinf(cell)) return fail_kind(self, j, "has a value outside the range of f32");
        column->gaps += isnan(cell);
        ((float *)mrc_row(&self->cells.x, i))[j] = cell;
    }
    return MERCER_OK;
}

/* Fills a category from numbers, whose printed forms are the words. */
static mercer_status fill_printed(builder *self, int64_t j)
{
    const double *values = self->given[self->places[j]].values;
    for (int64_t i = 0; i < self->rows; i++) {
        char text[MRC_SPEC_WORD];
        float cell = 0;
        mrc_print_number(values[i], text, sizeof text);
        if (!isnan(values[i])) MRC_TRY(cell_of(&self->cells.columns[j], text, &cell));
        put_word(self, j, i, isnan(values[i]) ? NULL : text, cell);
    }
    return MERCER_OK;
}

/* ---- Kinds ----------------------------------------------------------------------------------------------------- */

/* Sets the kind that the caller gave a column. A column of text may turn out to be numbers or dates later; a category
   may not. */
static mercer_status given_kind(builder *self, int64_t j, mrc_kind *kind)
{
    const mercer_table_column *from = &self->given[self->places[j]];
    mrc_cell_column *column = &self->cells.columns[j];
    bool text = from->kind && strcmp(from->kind, "text") == 0;
    *kind = MRC_KIND_CATEGORY;
    column->name = from->name;
    column->place = self->places[j];
    if (!text &&
        (!from->kind || !mrc_kind_find(from->kind, (int64_t)strlen(from->kind), kind) || *kind == MRC_KIND_DROP))
        return fail_kind(self, j, "has no kind; use number, boolean, date, category or text");
    if (*kind == MRC_KIND_CATEGORY ? !from->codes || (from->word_count > 0 && !from->words) : !from->values)
        return fail_kind(self, j, "has no values");
    column->kind = *kind;
    /* the words of a category may still turn out to be identifiers or booleans */
    column->fixed = *kind != MRC_KIND_CATEGORY;
    column->asked = *kind == MRC_KIND_CATEGORY && !text;
    column->wish = *kind;
    return *kind == MRC_KIND_CATEGORY ? check_codes(self, j) : MERCER_OK;
}

/* Sets up a column from its entry in a schema. */
static mercer_status known_kind(builder *self, int64_t j, const mrc_column *known, mrc_kind given)
{
    mrc_cell_column *column = &self->cells.columns[j];
    *column = (mrc_cell_column){.name = column->name,
                                .place = column->place,
                                .kind = known->kind,
                                .notation = known->notation,
                                .fixed = true,
                                .origin = known->origin,
                                .beyond = known->other ? (float)mrc_column_levels(known) : MRC_LEVEL_BEYOND,
                                .has_missing = known->missing > 0};
    mrc_levels_open(&column->levels, self->context);
    for (int64_t k = 0; k < mrc_column_levels(known); k++) {
        float cell;
        MRC_TRY(cell_of(column, known->levels[k], &cell));
    }
    /* Close the column only now, because cell_of adds no words to a closed column. */
    column->closed = true;
    if (given != MRC_KIND_CATEGORY && (given == MRC_KIND_DATE) != (known->kind == MRC_KIND_DATE)) {
        char what[MRC_ERROR_CHARS / 4];
        snprintf(what, sizeof what, "is a %s, but the model was trained on a %s", mrc_kind_name(given),
                 mrc_kind_name(known->kind));
        return fail_kind(self, j, what);
    }
    return MERCER_OK;
}

/* Fills a column. The method depends on the given data (words or numbers) and on the kind (category or not). */
static mercer_status fill_column(builder *self, int64_t j)
{
    const mercer_table_column *from = &self->given[self->places[j]];
    bool category = self->cells.columns[j].kind == MRC_KIND_CATEGORY, words = from->codes && !from->values;
    if (words) return category ? fill_words(self, j) : fill_parsed(self, j);
    return category ? fill_printed(self, j) : fill_values(self, j);
}

/* Sets the kinds of all columns and fills their cells. */
static mercer_status fill_columns(builder *self)
{
    for (int64_t j = 0, i = 0; j < self->cells.count; j++) {
        mrc_kind given;
        mrc_levels_open(&self->cells.columns[j].levels, self->context);
        MRC_TRY(given_kind(self, j, &given));
        while (self->schema && self->schema->columns[i].kind == MRC_KIND_DROP) i++;
        if (self->schema) MRC_TRY(known_kind(self, j, &self->schema->columns[i++], given));
        MRC_TRY(fill_column(self, j));
    }
    return MERCER_OK;
}

/* Reads the cells of a column again. */
static mercer_status fill_again(builder *self, int64_t j)
{
    mrc_cell_column *column = &self->cells.columns[j];
    mrc_levels_close(&column->levels);
    column->gaps = 0, column->off = 0;
    return fill_column(self, j);
}

/* Finds columns whose words are numbers or dates, and reads them again as such. */
static mercer_status parse_words(builder *self)
{
    bool changed;
    if (self->closed) return MERCER_OK;
    MRC_TRY(mrc_cells_read_words(&self->cells, &mrc_missing_default, &changed));
    for (int64_t j = 0; j < self->cells.count && changed; j++)
        if (self->cells.columns[j].kind != MRC_KIND_CATEGORY && self->cells.columns[j].levels.count > 0)
            MRC_TRY(fill_again(self, j));
    return MERCER_OK;
}

/* Subtracts an origin from columns whose values float cannot distinguish, and reads their cells again. */
static mercer_status move_origins(builder *self)
{
    if (self->closed || !mrc_cells_move(&self->cells)) return MERCER_OK;
    for (int64_t j = 0; j < self->cells.count; j++)
        if (self->cells.columns[j].origin != 0) MRC_TRY(fill_again(self, j));
    mrc_cells_clear_origins(&self->cells);
    return MERCER_OK;
}

/* ---- The dataset ----------------------------------------------------------------------------------------------- */

/* Finds the schema if none is given, encodes the cells by it, and moves the result into the dataset. */
static mercer_status finish_samples(builder *self, const char *text)
{
    mercer_dataset *dataset = self->dataset;
    char *found = NULL;
    self->cells.statistics = mrc_statistic_count(dataset->labels != NULL, dataset->outputs);
    if (!self->closed) MRC_TRY(mrc_schema_find(&self->cells, NULL, &mrc_missing_default, &found));
    dataset->schema = dataset->schema_text = found;
    if (found) MRC_TRY(mrc_schema_read(&self->schema, self->context, found));
    if (self->closed) MRC_TRY(mrc_dataset_copy_schema(dataset, text));
    dataset->x = self->cells.x;
    if (self->schema) {
        float *memory;
        int64_t count;
        if (!mrc_multiply(self->rows, self->schema->features, &count))
            return mrc_fail(self->context, MERCER_ERROR_SHAPE, "too many features");
        MRC_TRY(mrc_alloc(self->context, &memory, count, sizeof(float), "samples"));
        dataset->x = mrc_view(memory, self->rows, self->schema->features, MERCER_F32);
        mrc_schema_encode(self->schema, &self->cells.x, &dataset->x);
        mrc_free(self->context, dataset->x_memory);
        dataset->x_memory = memory;
        MRC_TRY(mrc_schema_feature_names(self->schema, &dataset->feature_text));
    } else if (self->names[0]) {
        MRC_TRY(mrc_copy_texts(self->context, &dataset->feature_text, self->names, self->count));
    }
    dataset->feature_names = dataset->feature_text;
    dataset->features = dataset->x.cols;
    mrc_cells_warn_coarse(&self->cells);
    mrc_cells_warn(&self->cells);
    return MERCER_OK;
}

/* Makes the samples of the dataset. text: the schema; NULL: find a schema from the columns. */
static mercer_status build_samples(builder *self, const char *text)
{
    int64_t count;
    if (text) MRC_TRY(mrc_schema_read(&self->schema, self->context, text));
    self->closed = text != NULL;
    int64_t used = text ? self->schema->used : self->count;
    mrc_cell_column *columns;
    MRC_TRY(mrc_scope_alloc_zero(&self->scope, &columns, used, sizeof *columns, "columns of a table"));
    self->cells = (mrc_cells){.context = self->context, .columns = columns, .count = used};
    MRC_TRY(mrc_scope_alloc(&self->scope, &self->places, used, sizeof *self->places, "columns of a table"));
    MRC_TRY(mrc_scope_alloc_zero(&self->scope, &self->names, self->count + used, sizeof(char *), "columns of a table"));
    self->wanted = self->names + self->count;
    MRC_TRY(match(self));
    if (!mrc_multiply(self->rows, used, &count)) return mrc_fail(self->context, MERCER_ERROR_SHAPE, "too many rows");
    MRC_TRY(mrc_alloc(self->context, &self->dataset->x_memory, count, sizeof(float), "samples"));
    self->cells.x = mrc_view(self->dataset->x_memory, self->rows, used, MERCER_F32);
    MRC_TRY(fill_columns(self));
    MRC_TRY(parse_words(self));
    MRC_TRY(move_origins(self));
    return finish_samples(self, text);
}

/* ---- Targets, weights and keys --------------------------------------------------------------------------------- */

static bool is_kind(const mercer_table_column *column, const char *kind)
{
    return column->kind && strcmp(column->kind, kind) == 0;
}

static mercer_status fail_role(const builder *self, const mercer_table_column *column, const char *what)
{
    return mrc_fail(self->context, MERCER_ERROR_DATA, "columns: the %s %s", column->kind, what);
}

/* Checks that all values of a column are finite and at least `least`. */
static mercer_status check_values(const builder *self, const mercer_table_column *column, double least)
{
    if (!column->values) return fail_role(self, column, "has no values");
    for (int64_t i = 0; i < self->rows; i++)
        if (!isfinite(column->values[i]) || column->values[i] < least)
            return fail_role(self, column, least < 0 ? "has a value that is not finite" : "must be finite and >= 0");
    return MERCER_OK;
}

/* Copies the codes of a column into the dataset as class numbers. */
static mercer_status take_classes(builder *self, const mercer_table_column *column)
{
    mercer_dataset *to = self->dataset;
    if (to->task != MERCER_TASK_UNLABELED)
        return fail_role(self, column, "must be one column of codes, or only values");
    if (column->word_count < 1 || !column->words) return fail_role(self, column, "has no words");
    for (int64_t i = 0; i < self->rows; i++)
        if (column->codes[i] < 0 || column->codes[i] >= column->word_count)
            return fail_role(self, column, "has a code that is not an index of its words");
    MRC_TRY(mrc_alloc(self->context, &to->label_memory, self->rows, sizeof *to->labels, "classes"));
    memcpy(to->label_memory, column->codes, (size_t)self->rows * sizeof *to->labels);
    to->labels = to->label_memory;
    MRC_TRY(mrc_copy_texts(self->context, &to->label_text, column->words, column->word_count));
    to->label_names = to->label_text;
    to->outputs = column->word_count;
    to->task = MERCER_TASK_CLASSIFICATION;
    return MERCER_OK;
}

/* Stores the values of a column in the dataset as target j of `outputs` targets. */
static mercer_status take_values(builder *self, const mercer_table_column *column, int64_t j, int64_t outputs)
{
    mercer_dataset *to = self->dataset;
    MRC_TRY(check_values(self, column, -(double)INFINITY));
    if (to->task == MERCER_TASK_CLASSIFICATION)
        return fail_role(self, column, "must be one column of codes, or only values");
    if (!to->y_memory) MRC_TRY(mrc_alloc(self->context, &to->y_memory, self->rows, outputs * 8, "targets"));
    to->y = mrc_view(to->y_memory, self->rows, outputs, MERCER_F64);
    to->outputs = outputs;
    to->task = MERCER_TASK_REGRESSION;
    for (int64_t i = 0; i < self->rows; i++) mrc_store(&to->y, i, j, column->values[i]);
    return MERCER_OK;
}

static mercer_status take_key(builder *self, const mercer_table_column *column, double *to, double least)
{
    MRC_TRY(check_values(self, column, least));
    memcpy(to, column->values, (size_t)self->rows * sizeof *to);
    return MERCER_OK;
}

/* Copies targets, weights and keys from the given columns into the dataset. All other columns are features. */
static mercer_status take_roles(builder *self, const mercer_table_column *columns, int64_t count)
{
    mercer_table_column *features;
    mercer_dataset *to = self->dataset;
    int64_t outputs = 0, targets = 0;
    double *numbers;
    MRC_TRY(mrc_scope_alloc(&self->scope, &features, count, sizeof *features, "columns of a table"));
    for (int64_t i = 0; i < count; i++) outputs += is_kind(&columns[i], "target");
    for (int64_t i = 0; i < count; i++) {
        const mercer_table_column *column = &columns[i];
        bool group = is_kind(column, "group"), key = group || is_kind(column, "time");
        if (is_kind(column, "target")) {
            MRC_TRY(column->codes ? take_classes(self, column) : take_values(self, column, targets++, outputs));
        } else if (is_kind(column, "weight")) {
            MRC_TRY(mrc_dataset_make_weights(to, &numbers));
            MRC_TRY(take_key(self, column, numbers, 0));
        } else if (key) {
            if (to->keys) return fail_role(self, column, "is given next to another group or time; use one of them");
            MRC_TRY(mrc_dataset_make_keys(to, group ? MRC_KEYS_GROUPS : MRC_KEYS_TIMES, &numbers));
            MRC_TRY(take_key(self, column, numbers, -(double)INFINITY));
        } else {
            features[self->count++] = *column;
        }
    }
    self->given = features;
    return self->count > 0
               ? MERCER_OK
               : mrc_fail(self->context, MERCER_ERROR_SHAPE, "columns: there are no features, only targets");
}

mercer_status mrc_dataset_from_columns(mercer_dataset **out, mercer_context *context,
                                       const mercer_table_column *columns, int64_t count, int64_t rows,
                                       const char *schema)
{
    MRC_OWNED(close_builder)
    builder self = {.context = context, .rows = rows, .scope = {.context = context}};
    MRC_TRY(mrc_alloc_zero(context, &self.dataset, 1, sizeof(mercer_dataset), "the dataset"));
    *self.dataset = (mercer_dataset){
        .context = context, .format = "columns", .task = MERCER_TASK_UNLABELED, .rows = rows, .dtype = MERCER_F32};
    MRC_TRY(take_roles(&self, columns, count));
    MRC_TRY(build_samples(&self, schema));
    MRC_TRY(mrc_dataset_add_statistics(self.dataset));
    *out = self.dataset, self.dataset = NULL;
    return MERCER_OK;
}
