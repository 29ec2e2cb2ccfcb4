/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, texts and tables in C. Numbers are the shortest decimals that read back as they were. */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "export/c99_job.h"
#include "export/source_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_CHARS = 40, NUMBERS_A_LINE = 8 };

const char *mrc_c99_type(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? "double" : dtype == MERCER_U8 ? "unsigned char" : "float";
}

void mrc_c99_number(mrc_c99_job *job, double value, bool single)
{
    char text[NUMBER_CHARS];
    if (single) value = (double)(float)value;
    /* Norms of very large centers overflow; C99 has macros, but no digits, for what they become. */
    if (!isfinite(value)) {
        mrc_output_text(&job->out, isnan(value) ? "NAN" : value > 0 ? "INFINITY" : "-INFINITY");
        return;
    }
    if (single)
        mrc_print_single((float)value, text, sizeof text);
    else
        mrc_print_number(value, text, sizeof text);
    mrc_output_text(&job->out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
}

void mrc_c99_own(mrc_c99_job *job, const char *name)
{
    if (job->members == 1 || job->member < 0) return;
    mrc_output_text(&job->out, "#define %s %s_%d\n", name, name, job->member);
    if (job->name_count < MRC_C99_NAMES)
        job->names[job->name_count++] = name;
    else if (job->out.status == MERCER_OK)
        job->out.status = mrc_fail(job->model->context, MERCER_ERROR_INTERNAL, "a member has too many names");
}

void mrc_c99_disown(mrc_c99_job *job)
{
    for (int i = 0; i < job->name_count; i++) mrc_output_text(&job->out, "#undef %s\n", job->names[i]);
    job->name_count = 0;
}

/* Element i of a row. */
static void put_element(mrc_c99_job *job, int64_t i, double value, mercer_dtype dtype)
{
    if (i > 0) mrc_output_text(&job->out, i % NUMBERS_A_LINE ? ", " : ",\n     ");
    if (dtype == MERCER_U8)
        mrc_output_text(&job->out, "%d", (int)value);
    else
        mrc_c99_number(job, value, dtype != MERCER_F64);
}

void mrc_c99_array(mrc_c99_job *job, const char *name, int64_t rows, int64_t cols, const double *values, bool single)
{
    mrc_c99_own(job, name);
    mrc_output_text(&job->out, "static const %s %s", single ? "float" : "double", name);
    if (rows > 0) mrc_output_text(&job->out, "[%lld]", (long long)rows);
    mrc_output_text(&job->out, "[%lld] = {\n", (long long)cols);
    for (int64_t i = 0; i < mrc_max(rows, 1); i++) {
        mrc_output_text(&job->out, rows > 0 ? "    {" : "    ");
        for (int64_t j = 0; j < cols; j++) put_element(job, j, values[i * cols + j], single ? MERCER_F32 : MERCER_F64);
        mrc_output_text(&job->out, rows > 0 ? "},\n" : "\n");
    }
    mrc_output_text(&job->out, "};\n\n");
}

void mrc_c99_matrix(mrc_c99_job *job, const char *name, const mercer_matrix *values)
{
    mrc_c99_own(job, name);
    mrc_output_text(&job->out, "static const %s %s[%lld][%lld] = {\n", mrc_c99_type(values->dtype), name,
                    (long long)values->rows, (long long)values->cols);
    for (int64_t i = 0; i < values->rows; i++) {
        mrc_output_text(&job->out, "    {");
        for (int64_t j = 0; j < values->cols; j++) put_element(job, j, mrc_load(values, i, j), values->dtype);
        mrc_output_text(&job->out, "},\n");
    }
    mrc_output_text(&job->out, "};\n\n");
}

/* Whatever is no plain letter is an octal number; a question mark might begin a trigraph. */
void mrc_c99_text(mrc_c99_job *job, const char *text)
{
    mrc_output_bytes(&job->out, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\' || *at == '?')
            mrc_output_text(&job->out, "\\%03o", (unsigned)*at);
        else
            mrc_output_bytes(&job->out, at, 1);
    }
    mrc_output_bytes(&job->out, "\"", 1);
}

void mrc_c99_texts(mrc_c99_job *job, const char *name, const char *const *texts, int64_t count)
{
    mrc_output_text(&job->out, "%s[%lld] = {", name, (long long)count + 1);
    for (int64_t i = 0; i < count; i++) {
        if (texts[i])
            mrc_c99_text(job, texts[i]);
        else
            mrc_output_text(&job->out, "\"\"");
        mrc_output_text(&job->out, i % NUMBERS_A_LINE == NUMBERS_A_LINE - 1 ? ",\n    " : ", ");
    }
    mrc_output_text(&job->out, "0};\n\n");
}

void mrc_c99_function(mrc_c99_job *job, const char *source, const char *function)
{
    int64_t length;
    const char *text = mrc_source_function(source, function, &length);
    if (!text) {
        if (job->out.status == MERCER_OK)
            job->out.status =
                mrc_fail(job->model->context, MERCER_ERROR_INTERNAL, "%s has no function %s", source, function);
        return;
    }
    mrc_c99_own(job, strncmp(function, "UK_PANEL_FN(", 12) == 0 ? "angular" : function);
    /* Public ones of the library are not, there. */
    const char *definition = strncmp(text, "/*", 2) == 0 ? strstr(text, "*/\n") + 3 : text;
    mrc_output_bytes(&job->out, text, definition - text);
    if (strncmp(definition, "static", 6) != 0 && strncmp(definition, "MRC_HD", 6) != 0)
        mrc_output_text(&job->out, "static ");
    mrc_output_bytes(&job->out, definition, text + length - definition);
    mrc_output_text(&job->out, "\n");
}

/* ---- Tables -------------------------------------------------------------------------------------------------- */

static void put_columns(mrc_c99_job *job)
{
    const mrc_schema *schema = job->schema;
    int64_t used = 0;
    mrc_output_text(&job->out, "static const column columns[COLUMNS] = {\n");
    for (int64_t i = 0; i < schema->count; i++) {
        const mrc_column *column = &schema->columns[i];
        if (column->kind == MRC_KIND_DROP) continue;
        mrc_output_text(&job->out, "    {%d, %d, %lld, %lld, %d, ", (int)column->kind, column->missing > 0,
                        (long long)column->first, (long long)column->level_count, (int)column->other);
        mrc_c99_number(job, column->mean, false);
        mrc_output_text(&job->out, ", ");
        mrc_c99_number(job, column->origin, false);
        if (column->kind == MRC_KIND_CATEGORY)
            mrc_output_text(&job->out, ", levels_%lld},\n", (long long)used);
        else
            mrc_output_text(&job->out, ", 0},\n");
        used++;
    }
    mrc_output_text(&job->out, "};\n\n");
}

static void put_column_names(mrc_c99_job *job)
{
    const mrc_schema *schema = job->schema;
    mrc_output_text(&job->out,
                    "/* Names of the columns, \"\" of those without. */\n"
                    "extern const char *const %s_columns[];\nconst char *const %s_columns[%lld] = {",
                    job->name, job->name, (long long)schema->used + 1);
    for (int64_t i = 0; i < schema->count; i++) {
        if (schema->columns[i].kind == MRC_KIND_DROP) continue;
        mrc_c99_text(job, schema->columns[i].name ? schema->columns[i].name : "");
        mrc_output_text(&job->out, ", ");
    }
    mrc_output_text(&job->out, "0};\n\n");
}

/* How missing numbers follow from the others of their row. */
static void put_gaps(mrc_c99_job *job)
{
    const mrc_gaps *gaps = &job->schema->gaps;
    mrc_output_text(&job->out, "enum { MRC_GAPS_COLUMNS = %lld, MRC_GAPS_FAR = %d };\n\nstatic const int filled[] = {",
                    (long long)gaps->count, MRC_GAPS_FAR);
    for (int64_t i = 0; i < gaps->count; i++) mrc_output_text(&job->out, "%lld, ", (long long)gaps->cells[i]);
    mrc_output_text(&job->out, "};\n\n");
    mrc_c99_array(job, "deviations", 0, gaps->count, gaps->deviation, false);
    mrc_c99_array(job, "precision", gaps->count, gaps->count, gaps->precision, false);
    mrc_c99_function(job, "gaps.c", "fill_listed");
    mrc_c99_function(job, "gaps.c", "mrc_fill_gaps");
    mrc_c99_function(job, "c99_parts.h", "fill_from_others");
}

/* How numbers and dates of each column are written. */
static void put_notations(mrc_c99_job *job)
{
    static const char *const functions[] = {"space_bytes", "unit_sign",       "pass_unit", "copy_digits",
                                            "copy_whole",  "mrc_amount_text", "unit_fits", NULL};
    const mrc_schema *schema = job->schema;
    mrc_output_text(
        &job->out,
        "enum { MRC_UNITS = %d, MRC_PERCENT = %d, MRC_AMOUNT_CHARS = %d };\n\n"
        "/* Order of a date, or decimal mark and unit of a number; 0 for plain decimals and ISO dates. */\n"
        "typedef struct notation {\n    const char *date;\n    char decimal;\n    int unit;\n} notation;\n\n"
        "static const notation notations[COLUMNS] = {\n",
        MRC_UNITS, MRC_PERCENT, MRC_AMOUNT_CHARS);
    for (int64_t i = 0; i < schema->count; i++) {
        const mrc_notation *notation = &schema->columns[i].notation;
        if (schema->columns[i].kind == MRC_KIND_DROP) continue;
        mrc_output_text(&job->out, "    {");
        if (notation->date)
            mrc_c99_text(job, notation->date);
        else
            mrc_output_text(&job->out, "0");
        mrc_output_text(&job->out, ", %d, %d},\n", notation->decimal, notation->unit);
    }
    mrc_output_text(&job->out, "};\n\n");
    mrc_c99_function(job, "date.c", "mrc_read_date_in");
    for (int i = 0; functions[i]; i++) mrc_c99_function(job, "notation.c", functions[i]);
    mrc_c99_function(job, "c99_parts.h", "read_noted");
}

void mrc_c99_schema(mrc_c99_job *job)
{
    static const char *const dates[] = {"day_number", "is_leap",   "days_of_month", "take_digits",   "take_sign",
                                        "take_time",  "take_zone", "finish_date",   "mrc_read_date", "mrc_date_season",
                                        NULL};
    static const char *const cells[] = {"is_space",     "small_letter",      "same_word",  "is_missing",
                                        "read_decimal", "is_missing_number", "read_plain", NULL};
    const mrc_schema *schema = job->schema;
    int64_t used = 0;
    mrc_output_text(&job->out,
                    "#define COLUMNS %lld\n"
                    "enum { COLUMN_NUMBER, COLUMN_BOOLEAN, COLUMN_DATE, COLUMN_CATEGORY };\n\n"
                    "/* A column of the table: its first feature; levels of a category, one feature each, one for all "
                    "others if\n   `other`, one for missing values if has_missing; what stands for a missing value of "
                    "others,\n   and what is taken away before they are rounded to float. */\n"
                    "typedef struct column {\n    int kind, has_missing, first, level_count, other;\n"
                    "    double mean, origin;\n    const char *const *levels;\n} column;\n\n",
                    (long long)schema->used);
    mrc_c99_texts(job, "static const char *const missing_words", schema->missing.words, schema->missing.count);
    for (int64_t i = 0; i < schema->count; i++) {
        const mrc_column *column = &schema->columns[i];
        if (column->kind == MRC_KIND_DROP) continue;
        char name[64];
        snprintf(name, sizeof name, "static const char *const levels_%lld", (long long)used++);
        if (column->kind == MRC_KIND_CATEGORY) mrc_c99_texts(job, name, column->levels, column->level_count);
    }
    put_columns(job);
    put_column_names(job);
    for (int i = 0; dates[i]; i++) mrc_c99_function(job, "date.c", dates[i]);
    for (int i = 0; cells[i]; i++) mrc_c99_function(job, "c99_parts.h", cells[i]);
    if (schema->noted) put_notations(job);
    mrc_output_text(&job->out, "#define READ %s\n\n", schema->noted ? "read_noted" : "read_plain");
    mrc_c99_function(job, "c99_parts.h", "read_value");
    mrc_c99_function(job, "c99_parts.h", "encode_word");
    mrc_c99_function(job, "c99_parts.h", "fill_with_means");
    if (schema->gaps.count > 0) put_gaps(job);
    mrc_output_text(&job->out, "#define FILL %s\n\n", schema->gaps.count > 0 ? "fill_from_others" : "fill_with_means");
    mrc_c99_function(job, "c99_parts.h", "encode_value");
    mrc_c99_function(job, "c99_parts.h", "encode_cells");
}
