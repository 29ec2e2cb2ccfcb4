/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns roles to the columns of a table: targets as requested, features in the requested order. */
#include "core/memory.h"
#include "data/table/columns.h"
#include "data/table/csv_table.h"
#include "data/table/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void mrc_layout_free(mercer_context *context, mrc_layout *layout)
{
    MRC_FREE_ALL(context, layout->roles, layout->names, layout->kinds); /* orders is in the allocation of kinds */
    *layout = (mrc_layout){0};
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

/* Copies the names of the header line into one allocation. A name is at most as long as its field, so the bytes of the
   header line and a zero byte per column suffice. */
static mercer_status read_names(mrc_layout *self, const mrc_table *table)
{
    int64_t count = table->columns, text = table->data.at - table->start.at + count;
    MRC_TRY(
        mrc_alloc(table->input->context, &self->names, text + count * (int64_t)sizeof(char *), 1, "names of columns"));
    char **names = self->names, *at = (char *)(names + count);
    mrc_csv csv = table->start;
    for (int64_t column = 0; column < count; column++) {
        mrc_csv_field field;
        mrc_csv_next(&csv, &field);
        mrc_copy_name(&field, at, field.length + 1);
        names[column] = at;
        at += strlen(at) + 1;
    }
    return MERCER_OK;
}

mercer_status mrc_layout_names(const mrc_layout *self, mercer_context *context, int64_t kind, void **out)
{
    int64_t count = kind == MRC_COLUMN_FEATURE  ? self->features
                    : kind == MRC_COLUMN_TARGET ? self->targets
                                                : self->unused;
    const char *const *names = self->names;
    const char **list;
    *out = NULL;
    if (!names || count == 0) return MERCER_OK;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc(&scope, &list, count, sizeof *list, "names of columns"));
    for (int64_t column = 0, unused = 0; column < self->columns; column++) {
        int64_t role = self->roles[column];
        if (kind == MRC_COLUMN_FEATURE && role >= 0) list[role] = names[column];
        if (kind == MRC_COLUMN_TARGET && role <= MRC_COLUMN_TARGET) list[MRC_COLUMN_TARGET - role] = names[column];
        if (kind == MRC_COLUMN_UNUSED && role == MRC_COLUMN_UNUSED) list[unused++] = names[column];
    }
    return mrc_copy_texts(context, out, list, count);
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

/* Parses a column index; negative indices count from the end. */
static bool parse_index(const char *text, int64_t *index)
{
    double value;
    if (mrc_read_number(text, text + strlen(text), &value) != MRC_NUMBER) return false;
    *index = (int64_t)value;
    return fabs(value) < 1e9 && value == floor(value);
}

/* Finds the column with a name or an index; sets *out to -1 if no column has that name. `what`: role of the column, for
   messages. */
static mercer_status find_column(const mrc_table *table, const char *asked, const char *what, int64_t *out)
{
    const mrc_input *input = table->input;
    int64_t index;
    *out = mrc_table_find(table, asked);
    if (*out == -2)
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: several columns are named '%s'; use the index of the %s (from 0)", input->path, asked,
                        what);
    if (*out >= 0 || !parse_index(asked, &index)) return MERCER_OK;
    *out = index < 0 ? table->columns + index : index;
    if (*out >= 0 && *out < table->columns) return MERCER_OK;
    return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                    "%s: %s column %lld does not exist; there are %lld columns, counted from 0", input->path, what,
                    (long long)index, (long long)table->columns);
}

static mercer_status fail_unknown(const mrc_table *table, const char *asked)
{
    char first[MRC_COLUMN_CHARS], last[MRC_COLUMN_CHARS];
    return mrc_fail(table->input->context, MERCER_ERROR_MISMATCH,
                    "%s: no column is named '%s'; there are %lld columns, from %s to %s%s", table->input->path, asked,
                    (long long)table->columns, mrc_column_text(table, 0, first),
                    mrc_column_text(table, table->columns - 1, last),
                    table->header ? "" : ", without names (no header was found)");
}

/* Fails because the target is not given, and lists columns that could be the target. */
static mercer_status fail_no_target(const mrc_table *table, bool several)
{
    enum { LISTED = 8 };
    char list[LISTED * (MRC_COLUMN_CHARS + 2)] = "", one[MRC_COLUMN_CHARS];
    int64_t shown = mrc_min(LISTED - 1, table->columns - 1);
    for (int64_t j = 0; j < shown; j++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s, ", mrc_column_text(table, j, one));
    return mrc_fail(table->input->context, MERCER_ERROR_MISMATCH,
                    "%s: %s; add --target NAME, --target INDEX (from 0) or a file of targets (y); columns: %s%s%s%s",
                    table->input->path,
                    several ? "several columns could be the target" : "the target column is unknown", list,
                    shown < table->columns - 1 ? "..., " : "", mrc_column_text(table, table->columns - 1, one),
                    table->header ? "" : ", without names (no header was found)");
}

/* Adds a column to the targets. Fails if the column does not exist or is a target already. */
static mercer_status add_target(mrc_layout *self, const mrc_table *table, const char *asked, int64_t column)
{
    char first[MRC_COLUMN_CHARS];
    const mrc_input *input = table->input;
    if (column < 0) return fail_unknown(table, asked);
    if (self->roles[column] != MRC_COLUMN_UNUSED)
        return mrc_fail(input->context, MERCER_ERROR_ARGUMENT, "%s: column %s is given twice as a target", input->path,
                        mrc_column_text(table, column, first));
    self->roles[column] = MRC_COLUMN_TARGET - self->targets++;
    return MERCER_OK;
}

/* Handler of an item of a comma-separated list. */
typedef mercer_status (*take_piece)(mrc_layout *self, const mrc_table *table, char *piece);

/* Calls `take` for each item of a list such as "a,b", without the spaces around it. */
static mercer_status for_each_piece(mrc_layout *self, const mrc_table *table, const char *list, take_piece take)
{
    for (const char *at = list, *comma; at; at = comma ? comma + 1 : NULL) {
        char piece[MRC_ERROR_CHARS];
        comma = strchr(at, ',');
        mrc_csv_field field = {.text = at, .length = comma ? comma - at : (int64_t)strlen(at)};
        mrc_copy_name(&field, piece, sizeof piece);
        MRC_TRY(take(self, table, piece));
    }
    return MERCER_OK;
}

static mercer_status take_target(mrc_layout *self, const mrc_table *table, char *piece)
{
    int64_t column;
    MRC_TRY(find_column(table, piece, "target", &column));
    return add_target(self, table, piece, column);
}

/* Finds the targets: requested columns, all columns, or a column with a customary name. */
static mercer_status find_targets(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish)
{
    int64_t column;
    if (wish->target) {
        MRC_TRY(find_column(table, wish->target, "target", &column));
        /* A single name that contains a comma takes precedence over a list. */
        if (column < 0 && strchr(wish->target, ',')) return for_each_piece(self, table, wish->target, take_target);
        return add_target(self, table, wish->target, column);
    }
    if (wish->alone) {
        for (column = 0; column < table->columns; column++) MRC_TRY(add_target(self, table, "", column));
        return MERCER_OK;
    }
    if (!wish->needed) return MERCER_OK;
    column = mrc_table_find(table, NULL);
    return column >= 0 ? add_target(self, table, "", column) : fail_no_target(table, column == -2);
}

/* ---- Requested roles and kinds --------------------------------------------------------------------------------- */

/* Finds a column that must exist and must not be a target. */
static mercer_status find_free(const mrc_layout *self, const mrc_table *table, const char *asked, const char *what,
                               int64_t *out)
{
    char name[MRC_COLUMN_CHARS];
    MRC_TRY(find_column(table, asked, what, out));
    if (*out < 0) return fail_unknown(table, asked);
    if (self->roles[*out] == MRC_COLUMN_UNUSED) return MERCER_OK;
    return mrc_fail(table->input->context, MERCER_ERROR_ARGUMENT,
                    "%s: column %s is the target and cannot be the "
                    "%s, too",
                    table->input->path, mrc_column_text(table, *out, name), what);
}

/* Finds a column kind by its name; date kinds may include an order. */
static bool find_kind(const char *name, mrc_kind *kind, mrc_date_order *order)
{
    *order = strcmp(name, "date-dmy") == 0   ? MRC_ORDER_DMY
             : strcmp(name, "date-mdy") == 0 ? MRC_ORDER_MDY
                                             : MRC_ORDER_UNKNOWN;
    *kind = MRC_KIND_DATE;
    return *order != MRC_ORDER_UNKNOWN || mrc_kind_find(name, (int64_t)strlen(name), kind);
}

/* Sets the kind of a column, as in "zip:category". */
static mercer_status take_kind(mrc_layout *self, const mrc_table *table, char *piece)
{
    char *colon = strrchr(piece, ':');
    int64_t column;
    mrc_kind kind;
    mrc_date_order order;
    if (!colon || !find_kind(colon + 1, &kind, &order))
        return mrc_fail(table->input->context, MERCER_ERROR_ARGUMENT,
                        "kinds: '%s' is not of the form NAME:KIND; use number, boolean, date, date-dmy, date-mdy, "
                        "category or drop",
                        piece);
    *colon = 0;
    MRC_TRY(find_free(self, table, piece, mrc_kind_name(kind), &column));
    self->kinds[column] = (signed char)kind;
    self->orders[column] = (signed char)order;
    return MERCER_OK;
}

/* Marks a column that is to be used; read_wish drops all other columns later. */
static mercer_status take_only(mrc_layout *self, const mrc_table *table, char *piece)
{
    int64_t column;
    MRC_TRY(find_free(self, table, piece, "feature", &column));
    self->roles[column] = MRC_COLUMN_FEATURE;
    return MERCER_OK;
}

/* Applies the options about weights, ids, keys, kinds and the columns to use. */
static mercer_status read_wish(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish)
{
    if (wish->weight) MRC_TRY(find_free(self, table, wish->weight, "weight", &self->weight));
    if (wish->id) MRC_TRY(find_free(self, table, wish->id, "id", &self->id));
    if (wish->key) MRC_TRY(find_free(self, table, wish->key, "group or time", &self->key));
    if (wish->kinds) MRC_TRY(for_each_piece(self, table, wish->kinds, take_kind));
    if (!wish->only) return MERCER_OK;
    MRC_TRY(for_each_piece(self, table, wish->only, take_only));
    for (int64_t column = 0; column < self->columns; column++) {
        if (self->roles[column] == MRC_COLUMN_UNUSED) self->kinds[column] = MRC_KIND_DROP;
        if (self->roles[column] == MRC_COLUMN_FEATURE) self->roles[column] = MRC_COLUMN_UNUSED;
    }
    return MERCER_OK;
}

/* Returns whether a column may be a feature: not a target, weight, id or key. */
static bool is_free(const mrc_layout *self, int64_t column)
{
    return self->roles[column] == MRC_COLUMN_UNUSED && column != self->weight && column != self->id &&
           column != self->key;
}

/* ---- Features ------------------------------------------------------------------------------------------------ */

/* Matches features by name. names, columns, places: scratch space; names[i] and columns[i] are name and index of the
   i-th column that may be a feature. */
static mercer_status match_features(mrc_layout *self, const mrc_table *table, const char *const *wanted,
                                    int64_t wanted_count, const char **names, int64_t *columns, int64_t *places)
{
    int64_t count = 0;
    for (int64_t column = 0; column < table->columns; column++) {
        if (!is_free(self, column)) continue;
        names[count] = ((const char *const *)self->names)[column];
        columns[count++] = column;
    }
    MRC_TRY(mrc_columns_match(table->input->context, table->input->path, names, count, wanted, wanted_count, places));
    for (int64_t j = 0; j < wanted_count; j++) self->roles[columns[places[j]]] = j;
    self->features = wanted_count;
    return MERCER_OK;
}

static mercer_status find_named(mrc_layout *self, const mrc_table *table, const char *const *wanted,
                                int64_t wanted_count)
{
    const char **names;
    int64_t *columns, *places;
    MRC_SCOPE(scope, table->input->context);
    MRC_TRY(mrc_scope_alloc(&scope, &names, table->columns, sizeof *names, "names of columns"));
    MRC_TRY(mrc_scope_alloc(&scope, &columns, table->columns, sizeof *columns, "columns"));
    MRC_TRY(mrc_scope_alloc(&scope, &places, wanted_count, sizeof *places, "columns"));
    return match_features(self, table, wanted, wanted_count, names, columns, places);
}

/* Finds the columns that a schema uses: by name, or by position among the columns that may be features. */
static mercer_status find_by_schema(mrc_layout *self, const mrc_table *table, const mrc_schema *schema)
{
    mercer_context *context = table->input->context;
    int64_t open = 0, used = 0;
    if (schema->named && self->names) {
        const char **wanted;
        MRC_SCOPE(scope, context);
        MRC_TRY(mrc_scope_alloc(&scope, &wanted, schema->used, sizeof *wanted, "names of columns"));
        for (int64_t i = 0; i < schema->count; i++)
            if (schema->columns[i].kind != MRC_KIND_DROP) wanted[used++] = schema->columns[i].name;
        return find_named(self, table, wanted, used);
    }
    for (int64_t column = 0; column < self->columns; column++) open += is_free(self, column);
    if (open != schema->count)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%s: %lld columns without names, but the model was trained on %lld; columns without names "
                        "are matched by position",
                        table->input->path, (long long)open, (long long)schema->count);
    for (int64_t column = 0, i = 0; column < self->columns; column++) {
        if (!is_free(self, column)) continue;
        if (schema->columns[i++].kind != MRC_KIND_DROP) self->roles[column] = used++;
    }
    self->features = used;
    return MERCER_OK;
}

/* Finds the features: the columns of a schema, the columns with requested names, or all columns without another
   role. */
static mercer_status find_features(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish)
{
    if (wish->alone) return MERCER_OK;
    MRC_TRY(read_wish(self, table, wish));
    if (wish->schema) return find_by_schema(self, table, wish->schema);
    if (wish->columns && self->names) return find_named(self, table, wish->columns, wish->column_count);
    for (int64_t column = 0; column < table->columns; column++)
        if (is_free(self, column) && self->kinds[column] != MRC_KIND_DROP) self->roles[column] = self->features++;
    return MERCER_OK;
}

mercer_status mrc_layout_find(mrc_layout *out, const mrc_table *table, const mrc_layout_wish *wish)
{
    mercer_context *context = table->input->context;
    *out = (mrc_layout){.columns = table->columns, .weight = -1, .id = -1, .key = -1};
    MRC_TRY(mrc_alloc(context, &out->roles, table->columns, sizeof *out->roles, "columns of a table"));
    for (int64_t column = 0; column < table->columns; column++) out->roles[column] = MRC_COLUMN_UNUSED;
    MRC_TRY(mrc_alloc_zero(context, &out->kinds, table->columns, 2, "columns of a table"));
    out->orders = out->kinds + table->columns;
    /* -1: no kind was requested; the orders stay 0, MRC_ORDER_UNKNOWN */
    memset(out->kinds, -1, (size_t)table->columns);
    if (table->header) MRC_TRY(read_names(out, table));
    MRC_TRY(find_targets(out, table, wish));
    MRC_TRY(find_features(out, table, wish));
    out->unused = out->columns - out->features - out->targets;
    return MERCER_OK;
}
