/* SPDX-License-Identifier: BSD-3-Clause */
/* What the columns of a table are: targets as they were asked for, features in the order that is wanted. */
#include "core/memory.h"
#include "data/table/columns.h"
#include "data/table/csv_table.h"
#include "data/table/number.h"

#include <math.h>
#include <string.h>

void mrc_layout_free(mercer_context *context, mrc_layout *layout)
{
    mrc_free(context, layout->roles);
    mrc_free(context, layout->names);
    *layout = (mrc_layout){0};
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

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
    void *memory;
    *out = NULL;
    if (!names || count == 0) return MERCER_OK;
    MRC_TRY(mrc_alloc(context, &memory, count, sizeof(char *), "names of columns"));
    const char **list = memory;
    for (int64_t column = 0, unused = 0; column < self->columns; column++) {
        int64_t role = self->roles[column];
        if (kind == MRC_COLUMN_FEATURE && role >= 0) list[role] = names[column];
        if (kind == MRC_COLUMN_TARGET && role <= MRC_COLUMN_TARGET) list[MRC_COLUMN_TARGET - role] = names[column];
        if (kind == MRC_COLUMN_UNUSED && role == MRC_COLUMN_UNUSED) list[unused++] = names[column];
    }
    mercer_status status = mrc_copy_texts(context, out, list, count);
    mrc_free(context, memory);
    return status;
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

static bool parse_index(const char *text, int64_t *index)
{
    double value;
    if (mrc_read_number(text, text + strlen(text), &value) != MRC_NUMBER) return false;
    *index = (int64_t)value;
    return fabs(value) < 1e9 && value == floor(value);
}

/* The column that one name or index means; *out is -1 if none does. */
static mercer_status find_column(const mrc_table *table, const char *asked, int64_t *out)
{
    const mrc_input *input = table->input;
    int64_t index;
    *out = mrc_table_find(table, asked);
    if (*out == -2)
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: several columns are named '%s'; give the index of the target, from 0", input->path, asked);
    if (*out >= 0 || !parse_index(asked, &index)) return MERCER_OK;
    *out = index < 0 ? table->columns + index : index;
    if (*out >= 0 && *out < table->columns) return MERCER_OK;
    return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                    "%s: target column %lld does not exist; there are %lld columns, counted from 0", input->path,
                    (long long)index, (long long)table->columns);
}

static mercer_status add_target(mrc_layout *self, const mrc_table *table, const char *asked, int64_t column)
{
    char first[MRC_COLUMN_CHARS], last[MRC_COLUMN_CHARS];
    const mrc_input *input = table->input;
    if (column < 0)
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: no column is named '%s'; there are %lld columns, from %s to %s%s", input->path, asked,
                        (long long)table->columns, mrc_column_text(table, 0, first),
                        mrc_column_text(table, table->columns - 1, last),
                        table->header ? "" : ", without names (no header was found)");
    if (self->roles[column] != MRC_COLUMN_UNUSED)
        return mrc_fail(input->context, MERCER_ERROR_ARGUMENT, "%s: column %s is asked for twice as a target",
                        input->path, mrc_column_text(table, column, first));
    self->roles[column] = MRC_COLUMN_TARGET - self->targets++;
    return MERCER_OK;
}

/* "a,b": one after the other. A name with a comma in it was looked for before. */
static mercer_status add_list(mrc_layout *self, const mrc_table *table, const char *asked)
{
    for (const char *at = asked, *comma; at; at = comma ? comma + 1 : NULL) {
        char piece[MRC_ERROR_CHARS];
        int64_t column;
        comma = strchr(at, ',');
        mrc_csv_field field = {.text = at, .length = comma ? comma - at : (int64_t)strlen(at)};
        mrc_copy_name(&field, piece, sizeof piece);
        MRC_TRY(find_column(table, piece, &column));
        MRC_TRY(add_target(self, table, piece, column));
    }
    return MERCER_OK;
}

static mercer_status find_targets(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish)
{
    int64_t column;
    if (wish->target) {
        MRC_TRY(find_column(table, wish->target, &column));
        if (column < 0 && strchr(wish->target, ',')) return add_list(self, table, wish->target);
        return add_target(self, table, wish->target, column);
    }
    if (wish->alone) {
        for (column = 0; column < table->columns; column++) MRC_TRY(add_target(self, table, "", column));
        return MERCER_OK;
    }
    if (!wish->needed) return MERCER_OK;
    column = mrc_table_find(table, NULL);
    if (column >= 0) return add_target(self, table, "", column);
    return mrc_fail(table->input->context, MERCER_ERROR_MISMATCH,
                    "%s: %s its %lld columns is the target: give its name, or its index from 0 (target), or a file of "
                    "targets (y)",
                    table->input->path,
                    column == -2 ? "several columns could be it; say which of" : "it does not show which of",
                    (long long)table->columns);
}

/* ---- Features ------------------------------------------------------------------------------------------------ */

/* By name: columns[i] is the column of the i-th name that is no target. */
static mercer_status match_features(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish,
                                    const char **names, int64_t *columns, int64_t *places)
{
    int64_t count = 0;
    for (int64_t column = 0; column < table->columns; column++) {
        if (self->roles[column] != MRC_COLUMN_UNUSED) continue;
        names[count] = ((const char *const *)self->names)[column];
        columns[count++] = column;
    }
    MRC_TRY(mrc_columns_match(table->input->context, table->input->path, names, count, wish->columns,
                              wish->column_count, places));
    for (int64_t j = 0; j < wish->column_count; j++) self->roles[columns[places[j]]] = j;
    self->features = wish->column_count;
    return MERCER_OK;
}

static mercer_status find_features(mrc_layout *self, const mrc_table *table, const mrc_layout_wish *wish)
{
    mercer_context *context = table->input->context;
    if (wish->alone) return MERCER_OK;
    if (!wish->columns || !self->names) {
        for (int64_t column = 0; column < table->columns; column++)
            if (self->roles[column] == MRC_COLUMN_UNUSED) self->roles[column] = self->features++;
        return MERCER_OK;
    }
    void *names, *columns = NULL, *places = NULL;
    mercer_status status = mrc_alloc(context, &names, table->columns, sizeof(char *), "names of columns");
    if (status == MERCER_OK) status = mrc_alloc(context, &columns, table->columns, sizeof(int64_t), "columns");
    if (status == MERCER_OK) status = mrc_alloc(context, &places, wish->column_count, sizeof(int64_t), "columns");
    if (status == MERCER_OK) status = match_features(self, table, wish, names, columns, places);
    mrc_free(context, places);
    mrc_free(context, columns);
    mrc_free(context, names);
    return status;
}

mercer_status mrc_layout_find(mrc_layout *out, const mrc_table *table, const mrc_layout_wish *wish)
{
    void *memory;
    *out = (mrc_layout){.columns = table->columns};
    MRC_TRY(mrc_alloc(table->input->context, &memory, table->columns, sizeof(int64_t), "columns of a table"));
    out->roles = memory;
    for (int64_t column = 0; column < table->columns; column++) out->roles[column] = MRC_COLUMN_UNUSED;
    mercer_status status = table->header ? read_names(out, table) : MERCER_OK;
    if (status == MERCER_OK) status = find_targets(out, table, wish);
    if (status == MERCER_OK) status = find_features(out, table, wish);
    out->unused = out->columns - out->features - out->targets;
    if (status != MERCER_OK) mrc_layout_free(table->input->context, out);
    return status;
}
