/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes the schema of a dataset or model in a few lines of text. */
#include "data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

const char *const cli_schema_titles[] = {"columns", "categories", "notations", "missing", "left out", NULL};

static const char *kind_of(const json_t *column)
{
    return json_string_value(json_object_get(column, "kind"));
}

static int is_kind(const json_t *column, const char *kind)
{
    return kind_of(column) != NULL && strcmp(kind_of(column), kind) == 0;
}

/* Returns column counts by kind: "8 numbers, 1 category: 14 features". */
static char *columns_text(const json_t *columns, int64_t features)
{
    static const struct {
        const char *kind, *many;
    } kinds[] = {{"number", "numbers"}, {"boolean", "booleans"}, {"date", "dates"}, {"category", "categories"}};
    char *text = cli_copy("");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int64_t count = 0;
        for (size_t i = 0; i < json_array_size(columns); i++)
            count += is_kind(json_array_get(columns, i), kinds[k].kind);
        if (count > 0)
            text = cli_append(text, "%s%" PRId64 " %s", *text ? ", " : "", count,
                              count == 1 ? kinds[k].kind : kinds[k].many);
    }
    return cli_append(text, "%s%" PRId64 " features", *text ? ": " : "", features);
}

/* Returns the entry of a category: its number of levels, and if it has target statistics, the number of levels they
   cover. */
static char *levels_text(const json_t *column, const char *name)
{
    char count[CLI_SHORT];
    size_t levels = json_array_size(json_object_get(column, "levels"));
    size_t rare = json_array_size(json_object_get(column, "rare"));
    const char *others = json_is_true(json_object_get(column, "other")) ? " and others" : "";
    if (json_object_get(column, "statistics") == NULL) return cli_format("%s (%zu levels%s)", name, levels, others);
    return cli_format("%s (%zu levels%s, target statistics of %s)", name, levels, others,
                      cli_count_text(count, (int64_t)(levels + rare)));
}

/* Returns the entry of a column under a title; NULL if the column has no entry there. */
static char *column_text(const json_t *column, size_t place, const char *title)
{
    char number[2 * CLI_SHORT], count[CLI_SHORT];
    const char *name = json_string_value(json_object_get(column, "name"));
    snprintf(number, sizeof number, "%zu (from 0, without the target)", place);
    if (name == NULL || *name == '\0') name = number;
    int64_t missing = json_integer_value(json_object_get(column, "missing"));
    if (strcmp(title, "categories") == 0 && is_kind(column, "category")) return levels_text(column, name);
    const char *notation = json_string_value(json_object_get(column, "notation"));
    if (strcmp(title, "notations") == 0 && notation != NULL) return cli_format("%s (%s)", name, notation);
    if (strcmp(title, "missing") == 0 && missing > 0)
        return cli_format("%s (%s)", name, cli_count_text(count, missing));
    if (strcmp(title, "left out") == 0 && is_kind(column, "drop"))
        return cli_format("%s (%s)", name, json_string_value(json_object_get(column, "why")));
    return NULL;
}

char *cli_schema_text(const char *schema, const char *title, int64_t features)
{
    json_auto_t *root = schema != NULL ? json_loads(schema, 0, NULL) : NULL;
    const json_t *columns = json_object_get(root, "columns");
    char *text = NULL;
    int shown = 0;
    if (root != NULL && strcmp(title, "columns") == 0) text = columns_text(columns, features);
    for (size_t i = 0; i < json_array_size(columns) && strcmp(title, "columns") != 0; i++) {
        CLI_OWNED(cli_drop) char *one = column_text(json_array_get(columns, i), i, title);
        if (one == NULL) continue;
        if (shown++ < SHOWN) text = cli_append(text, "%s%s", text != NULL ? ", " : "", one);
    }
    if (shown > SHOWN) text = cli_append(text, ", %d more", shown - SHOWN);
    return text;
}
