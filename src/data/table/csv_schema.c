/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of the columns of a table: guessed from its first records, and determined when all cells have been read.
 *
 * A wrong guess only costs time. A cell that does not fit a guessed kind marks its column as odd, and the column is
 * read again as words. If its words have a common notation (schema/words.c), the column is read once more as numbers or
 * dates. Kinds that the caller or a schema has set are fixed: a cell that does not fit is then an error.
 */
#include "data/table/csv_schema.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/parquet/parquet_rows.h"
#include "data/schema/date.h"

#include <math.h>
#include <string.h>

enum { SHOWN_RECORDS = 256 }; /* number of records used for the guess */

/* ---- Options ------------------------------------------------------------------------------------------------- */

/* Reads words for missing values: "-999,unknown" adds to the default words, "=NA,?" replaces them. */
static mercer_status read_missing(mrc_column_set *self, const char *text)
{
    const mrc_missing *before = &mrc_missing_default;
    int64_t kept = *text == '=' ? 0 : before->count, count = kept + 1;
    text += *text == '=';
    int64_t length = (int64_t)strlen(text);
    for (const char *at = text; *at; at++) count += *at == ',';
    MRC_TRY(mrc_alloc(self->context, &self->missing_memory, count * (int64_t)sizeof(char *) + length + 1, 1,
                      "missing words"));
    /* The list and a copy of the text are one block; commas become zero bytes. */
    const char **list = self->missing_memory;
    char *at = (char *)(list + count);
    memcpy(at, text, (size_t)length + 1);
    for (int64_t i = 0; i < count; i++) {
        list[i] = i < kept ? before->words[i] : at;
        if (i < kept) continue;
        at += strcspn(at, ",");
        *at++ = 0;
    }
    self->missing = (mrc_missing){list, count};
    self->words = &self->missing;
    return MERCER_OK;
}

mercer_status mrc_column_set_open(mrc_column_set *out, mercer_context *context, const mercer_dataset_options *options)
{
    *out = (mrc_column_set){.context = context, .words = &mrc_missing_default};
    if (options->schema) {
        MRC_TRY(mrc_schema_read(&out->schema, context, options->schema));
        out->given = options->schema;
        out->words = &out->schema->missing;
    }
    return options->missing ? read_missing(out, options->missing) : MERCER_OK;
}

void mrc_column_set_close(mrc_column_set *self)
{
    mrc_cells_close(&self->cells);
    mrc_free(self->context, self->cells.columns);
    mrc_free(self->context, self->missing_memory);
    mrc_schema_free(self->schema);
    *self = (mrc_column_set){.context = self->context};
}

/* ---- Initial kinds ------------------------------------------------------------------------------------------- */

/* Sets up the columns from a schema. Their levels are closed: words that are not in the schema do not become levels.
   The layout has numbered the features in the order of the schema's used columns. */
static mercer_status take_schema(mrc_column_set *self)
{
    int64_t j = 0;
    for (int64_t i = 0; i < self->schema->count; i++) {
        const mrc_column *from = &self->schema->columns[i];
        if (from->kind == MRC_KIND_DROP) continue;
        mrc_cell_column *column = &self->cells.columns[j++];
        column->kind = from->kind;
        column->notation = from->notation;
        column->fixed = column->closed = true;
        column->beyond = from->other ? (float)mrc_column_levels(from) : MRC_LEVEL_BEYOND;
        column->has_missing = from->missing > 0;
        column->origin = from->origin;
        for (int64_t k = 0; k < mrc_column_levels(from); k++) {
            int64_t number;
            MRC_TRY(mrc_levels_add(&column->levels, from->levels[k], (int64_t)strlen(from->levels[k]), "", 0, &number));
        }
    }
    return MERCER_OK;
}

/* Returns the kind of a column after one more cell. */
static mrc_kind widen(const mrc_csv *csv, const mrc_csv_field *field, mrc_kind so_far, bool first)
{
    double value;
    mrc_number kind = mrc_csv_number(csv, field, &value);
    mrc_kind now = kind == MRC_NUMBER || kind == MRC_NUMBER_INFINITE                 ? MRC_KIND_NUMBER
                   : mrc_read_date(field->text, field->text + field->length, &value) ? MRC_KIND_DATE
                                                                                     : MRC_KIND_CATEGORY;
    return first || now == so_far ? now : MRC_KIND_CATEGORY;
}

/* Returns whether a field is a missing value. */
static bool is_blank(const mrc_column_set *self, const mrc_csv_field *field)
{
    const char *at = field->text, *end = at + field->length;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t')) end--;
    return mrc_is_missing(self->words, at, end - at);
}

/* A column of a Parquet file while its kind is guessed. */
typedef struct guess {
    const mrc_column_set *set;
    const mrc_csv *csv;
    mrc_cell_column *column;
    bool has_kind;
} guess;

static void widen_guess(void *user, const mrc_csv_field *field)
{
    guess *self = user;
    if (is_blank(self->set, field)) return;
    self->column->kind = widen(self->csv, field, self->column->kind, !self->has_kind);
    self->has_kind = true;
}

/* Guesses the kinds of the columns of a Parquet file from the first SHOWN_RECORDS records, as guess_kinds does for
   text. */
static mercer_status guess_parquet_kinds(mrc_column_set *self, const mrc_table *lead)
{
    for (int64_t c = 0; c < lead->columns; c++) {
        int64_t j = lead->layout->roles[c];
        if (j < 0 || self->cells.columns[j].fixed) continue;
        guess each = {.set = self, .csv = &lead->data, .column = &self->cells.columns[j]};
        MRC_TRY(mrc_parquet_sample(lead, c, mrc_min(lead->records, SHOWN_RECORDS), widen_guess, &each));
    }
    return MERCER_OK;
}

/* Guesses the kinds from the first SHOWN_RECORDS records, so that most columns are read only once. has_kind: scratch
   space. */
static void guess_kinds(mrc_column_set *self, const mrc_table *lead, bool *has_kind)
{
    mrc_csv csv = lead->data;
    for (int64_t i = 0; i < mrc_min(lead->records, SHOWN_RECORDS); i++) {
        mrc_csv_field field = {.last = false};
        for (int64_t c = 0; !field.last; c++) {
            mrc_csv_next(&csv, &field);
            int64_t j = c < lead->columns ? lead->layout->roles[c] : -1;
            if (j < 0 || self->cells.columns[j].fixed || is_blank(self, &field)) continue;
            self->cells.columns[j].kind = widen(&csv, &field, self->cells.columns[j].kind, !has_kind[j]);
            has_kind[j] = true;
        }
    }
}

mercer_status mrc_column_set_prepare(mrc_column_set *self, const mrc_table *lead, bool strict)
{
    const mrc_layout *layout = lead->layout;
    const char *const *names = layout->names;
    mrc_cells *cells = &self->cells;
    bool *has_kind;
    cells->context = self->context;
    cells->path = lead->input->path;
    cells->unit = lead->unit;
    cells->separator = lead->start.separator;
    cells->table_columns = layout->columns;
    MRC_TRY(
        mrc_alloc_zero(self->context, &cells->columns, layout->features, sizeof *cells->columns, "columns of a table"));
    self->cells.count = layout->features;
    for (int64_t j = 0; j < layout->features; j++) mrc_levels_open(&self->cells.columns[j].levels, self->context);
    for (int64_t c = 0; c < layout->columns; c++) {
        int64_t j = layout->roles[c];
        if (j < 0) continue;
        mrc_cell_column *column = &self->cells.columns[j];
        column->name = names ? names[c] : NULL;
        column->place = c;
        column->strict = strict;
        column->fixed = strict || layout->kinds[c] >= 0;
        if (layout->kinds[c] < 0) continue;
        column->kind = column->wish = (mrc_kind)layout->kinds[c];
        column->asked = !strict;
        column->order = (mrc_date_order)layout->orders[c];
    }
    if (self->schema) return take_schema(self);
    if (lead->parquet) return guess_parquet_kinds(self, lead);
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &has_kind, layout->features, sizeof *has_kind, "columns of a table"));
    guess_kinds(self, lead, has_kind);
    return MERCER_OK;
}

bool mrc_column_set_turn_odd(mrc_column_set *self)
{
    bool any = false;
    for (int64_t j = 0; j < self->cells.count; j++) any = any || self->cells.columns[j].odd;
    for (int64_t j = 0; j < self->cells.count && any; j++) {
        mrc_cell_column *column = &self->cells.columns[j];
        if (column->odd) column->kind = MRC_KIND_CATEGORY;
        column->odd = false;
    }
    if (any) mrc_cells_forget(&self->cells);
    return any;
}

/* ---- Schema and encoding ------------------------------------------------------------------------------------- */

/* Finds the schema. The schema also lists the columns that the user excluded, with their positions among the columns
   that are not targets, weight, id or key. */
static mercer_status find_schema(mrc_column_set *self, const mrc_layout *layout, char **out)
{
    const char *const *names = layout->names;
    const char **list;
    int64_t count = 0, place = 0;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &list, layout->columns, sizeof(char *) + sizeof(int64_t), "columns"));
    int64_t *places = (int64_t *)(list + layout->columns);
    for (int64_t c = 0; c < layout->columns; c++) {
        if (layout->roles[c] <= MRC_COLUMN_TARGET || c == layout->weight || c == layout->id || c == layout->key)
            continue;
        if (layout->roles[c] == MRC_COLUMN_UNUSED) {
            list[count] = names ? names[c] : NULL;
            places[count++] = place;
        }
        place++;
    }
    const mrc_left_out left_out = {list, places, count};
    return mrc_schema_find(&self->cells, &left_out, self->words, out);
}

mercer_status mrc_column_set_find(mrc_column_set *self, const mrc_table *lead, int64_t statistics,
                                  mercer_dataset *dataset)
{
    char *found = NULL;
    if (self->given) return mrc_dataset_copy_schema(dataset, self->given);
    self->cells.statistics = statistics;
    MRC_TRY(find_schema(self, lead->layout, &found));
    dataset->schema = dataset->schema_text = found;
    return found ? mrc_schema_read(&self->schema, self->context, found) : MERCER_OK;
}

mercer_status mrc_column_set_adopt(mrc_column_set *self, mrc_layout *layout)
{
    int64_t used = 0, place = 0;
    mrc_cells_forget(&self->cells);
    for (int64_t c = 0; c < layout->columns; c++) {
        if (layout->roles[c] <= MRC_COLUMN_TARGET || c == layout->weight || c == layout->id || c == layout->key)
            continue;
        int64_t role = layout->roles[c];
        if (self->schema->columns[place++].kind == MRC_KIND_DROP) {
            layout->roles[c] = MRC_COLUMN_UNUSED;
        } else {
            self->cells.columns[used].name = self->cells.columns[role].name; /* used is at most role */
            self->cells.columns[used].place = c;
            layout->roles[c] = used++;
        }
    }
    self->cells.count = layout->features = used;
    return take_schema(self);
}

int64_t mrc_column_set_features(const mrc_column_set *self)
{
    return self->schema ? self->schema->features : self->cells.count;
}

mercer_status mrc_column_set_encode(mrc_column_set *self, const mrc_table *lead, mercer_dataset *dataset)
{
    const mrc_schema *schema = self->schema;
    const mrc_input *input = lead->input;
    int64_t rows = self->cells.x.rows, count, bytes;
    void *memory;
    dataset->x = self->cells.x;
    if (!schema) return MERCER_OK;
    if (!mrc_multiply(rows, schema->features, &count) || !mrc_multiply(count, sizeof(float), &bytes)) bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(self->context, input->budget, input->path, bytes));
    MRC_TRY(mrc_alloc(self->context, &memory, count, sizeof(float), "samples"));
    mercer_matrix x = mrc_view(memory, rows, schema->features, MERCER_F32);
    mrc_schema_encode(schema, &self->cells.x, &x);
    /* The cells were counted in the budget when they were allocated, and are released now. */
    input->budget->used -= rows * self->cells.count * (int64_t)sizeof(float);
    mrc_free(self->context, dataset->x_memory);
    dataset->x_memory = memory;
    dataset->x = x;
    return MERCER_OK;
}

mercer_status mrc_column_set_finish(mrc_column_set *self, const mrc_table *lead, mercer_dataset *dataset)
{
    mrc_cells_warn_coarse(&self->cells);
    if (self->schema) {
        MRC_TRY(mrc_schema_feature_names(self->schema, &dataset->feature_text));
        if (self->given) mrc_cells_warn(&self->cells);
    } else {
        MRC_TRY(mrc_layout_names(lead->layout, self->context, MRC_COLUMN_FEATURE, &dataset->feature_text));
    }
    dataset->feature_names = dataset->feature_text;
    return MERCER_OK;
}
