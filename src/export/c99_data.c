/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers, strings and tables as C definitions.
 *
 * The text uses only the basic character set, and every C99 compiler reads it back to the same values: decimals with
 * enough digits, no hexadecimal floats, and octal escapes for other characters. The locale has no influence.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "export/c99_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* NUMBER_CHARS: a double needs at most 24 characters, as in -2.2250738585072014e-308. */
enum { NUMBER_CHARS = 40, NUMBERS_PER_LINE = 8 };

void mrc_c99_number(mrc_c99_job *job, double value, bool single)
{
    char text[NUMBER_CHARS];
    if (single) value = (double)(float)value;
    /* Norms of very large centers may overflow. C99 has macros for infinity and NaN, but no literals. */
    if (!isfinite(value)) {
        mrc_output_text(&job->out, isnan(value) ? "NAN" : value > 0 ? "INFINITY" : "-INFINITY");
        return;
    }
    if (single)
        mrc_print_single((float)value, text, sizeof text);
    else
        mrc_print_number(value, text, sizeof text);
    /* Without a point or an exponent the literal would be an integer, and a suffix f would be an error. */
    mrc_output_text(&job->out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
}

/* Begins the definition of an array and adds it to the fields. The array's name ends with the index of its member, or
   with _data for the whole model. */
static void begin_array(mrc_c99_job *job, const char *type, const char *name)
{
    char full[64];
    size_t used = strlen(job->fields);
    if (job->member < 0)
        snprintf(full, sizeof full, "%s_data", name);
    else
        snprintf(full, sizeof full, "%s_%d", name, job->member);
    mrc_output_text(&job->out, "static const %s %s[] = {", type, full);
    snprintf(job->fields + used, sizeof job->fields - used, "    .%s = %s,\n", name, full);
}

/* Writes an array, several numbers per line, because some compilers limit the length of lines. The element type follows
   from the matrix; `single` selects the literals: an array of doubles may have float literals. */
static void put_numbers(mrc_c99_job *job, const char *name, const mercer_matrix *values, bool single)
{
    mercer_dtype dtype = values->dtype;
    begin_array(job, dtype == MERCER_F64 ? "double" : dtype == MERCER_U8 ? "unsigned char" : "float", name);
    for (int64_t i = 0; i < values->rows; i++)
        for (int64_t j = 0; j < values->cols; j++) {
            mrc_output_text(&job->out, j % NUMBERS_PER_LINE == 0 ? "\n    " : " ");
            if (dtype == MERCER_U8)
                mrc_output_text(&job->out, "%d", (int)mrc_load(values, i, j));
            else
                mrc_c99_number(job, mrc_load(values, i, j), single);
            mrc_output_text(&job->out, ",");
        }
    mrc_output_text(&job->out, "\n};\n\n");
}

void mrc_c99_matrix(mrc_c99_job *job, const char *name, const mercer_matrix *values)
{
    put_numbers(job, name, values, values->dtype != MERCER_F64);
}

void mrc_c99_doubles(mrc_c99_job *job, const char *name, int64_t count, const double *values, bool single)
{
    mercer_matrix row = mrc_view((void *)values, 1, count, MERCER_F64);
    put_numbers(job, name, &row, single);
}

void mrc_c99_struct(mrc_c99_job *job, const char *type, const char *name)
{
    mrc_output_text(&job->out, "static const %s %s", type, name);
    if (job->member >= 0) mrc_output_text(&job->out, "_%d", job->member);
    mrc_output_text(&job->out, " = {\n%s", job->fields);
    job->fields[0] = 0;
}

/* Writes a string literal. Special characters are written as octal escapes, including '?', which might begin a
   trigraph. Three octal digits end an escape; a hexadecimal escape would include digits that follow it. */
static void put_text(mrc_c99_job *job, const char *text)
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

/* The 0 at the end marks the end of the list, and makes an empty list a valid array. */
void mrc_c99_texts(mrc_c99_job *job, const char *name, const char *const *texts, int64_t count)
{
    mrc_output_text(&job->out, "%s[] = {", name);
    for (int64_t i = 0; i < count; i++) {
        put_text(job, texts[i] ? texts[i] : "");
        mrc_output_text(&job->out, i % NUMBERS_PER_LINE == NUMBERS_PER_LINE - 1 ? ",\n    " : ", ");
    }
    mrc_output_text(&job->out, "0};\n\n");
}

/* ---- Tables -------------------------------------------------------------------------------------------------- */

/* Writes the initializer of a column: values in the order of the fields of struct column in c99_runtime.h. place: index
   of the column in the schema, which is part of the names of its arrays. */
static void put_column(mrc_c99_job *job, const mrc_column *column, int64_t place)
{
    static const char *const kinds[] = {[MRC_KIND_NUMBER] = "NUMBER",
                                        [MRC_KIND_BOOLEAN] = "BOOLEAN",
                                        [MRC_KIND_DATE] = "DATE",
                                        [MRC_KIND_CATEGORY] = "CATEGORY"};
    mrc_output_text(&job->out, "    {COLUMN_%s, %d, %d, %lld, ", kinds[column->kind], column->missing > 0,
                    (int)column->other, (long long)column->first);
    if (column->notation.date)
        put_text(job, column->notation.date);
    else
        mrc_output_text(&job->out, "0");
    mrc_output_text(&job->out, ", %d, %d, ", column->notation.decimal, column->notation.unit);
    mrc_c99_number(job, column->mean, false);
    mrc_output_text(&job->out, ", ");
    mrc_c99_number(job, column->origin, false);
    if (column->kind == MRC_KIND_CATEGORY)
        mrc_output_text(&job->out, ", levels_%lld, %lld, %lld, ", (long long)place, (long long)column->level_count,
                        (long long)column->statistics);
    else
        mrc_output_text(&job->out, ", 0, 0, 0, ");
    if (column->statistics > 0)
        mrc_output_text(&job->out, "values_%lld},\n", (long long)place);
    else
        mrc_output_text(&job->out, "0},\n");
}

/* Writes the statistics of the levels of a category: a row for each level, kept or rare, then one for missing
   values. */
static void put_statistics(mrc_c99_job *job, const mrc_column *column, int64_t place)
{
    int64_t count = (mrc_column_levels(column) + 1) * column->statistics;
    mrc_output_text(&job->out, "static const double values_%lld[] = {", (long long)place);
    for (int64_t i = 0; i < count; i++) {
        mrc_output_text(&job->out, i % NUMBERS_PER_LINE == 0 ? "\n    " : " ");
        mrc_c99_number(job, column->statistic[i], false);
        mrc_output_text(&job->out, ",");
    }
    mrc_output_text(&job->out, "\n};\n\n");
}

/* Writes the data for filling missing numbers from the other numbers of their row (data/schema/gaps.h): the columns
   that take part, as indices of cells, their deviations (count), and the precision matrix P (count, count). */
static void put_gaps(mrc_c99_job *job, const mrc_gaps *gaps)
{
    begin_array(job, "int", "filled");
    for (int64_t i = 0; i < gaps->count; i++) mrc_output_text(&job->out, "%lld, ", (long long)gaps->cells[i]);
    mrc_output_text(&job->out, "};\n\n");
    mrc_c99_doubles(job, "deviations", gaps->count, gaps->deviation, false);
    mrc_c99_doubles(job, "precision", gaps->count * gaps->count, gaps->precision, false);
}

/* Writes the public list of column names in the order of cells; columns that training did not use have no cell. */
static void put_column_names(mrc_c99_job *job, const mrc_schema *schema)
{
    mrc_output_text(&job->out, "const char *const %s_columns[] = {", job->name);
    for (int64_t i = 0; i < schema->count; i++) {
        if (schema->columns[i].kind == MRC_KIND_DROP) continue;
        put_text(job, schema->columns[i].name ? schema->columns[i].name : "");
        mrc_output_text(&job->out, ", ");
    }
    mrc_output_text(&job->out, "0};\n\n");
}

/* The arrays of a column are written before the list of columns that refers to them. The numbers in the names of these
   arrays count all columns of the schema, but the list has only the columns that are used. */
void mrc_c99_table(mrc_c99_job *job, const mrc_schema *schema)
{
    for (int64_t i = 0; i < schema->count; i++) {
        const mrc_column *column = &schema->columns[i];
        char name[64];
        snprintf(name, sizeof name, "static const char *const levels_%lld", (long long)i);
        if (column->kind == MRC_KIND_CATEGORY) mrc_c99_texts(job, name, column->levels, mrc_column_levels(column));
        if (column->statistics > 0) put_statistics(job, column, i);
    }
    begin_array(job, "column", "columns");
    mrc_output_text(&job->out, "\n");
    for (int64_t i = 0; i < schema->count; i++)
        if (schema->columns[i].kind != MRC_KIND_DROP) put_column(job, &schema->columns[i], i);
    mrc_output_text(&job->out, "};\n\n");
    put_column_names(job, schema);
    mrc_c99_texts(job, "static const char *const missing_words", schema->missing.words, schema->missing.count);
    if (schema->gaps.count > 0) put_gaps(job, &schema->gaps);
    mrc_c99_struct(job, "table", "the_table");
    mrc_output_text(&job->out, "    .missing = missing_words,\n    .gaps = %lld,\n};\n\n",
                    (long long)schema->gaps.count);
}
