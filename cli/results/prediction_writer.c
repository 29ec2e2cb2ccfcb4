/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes predictions to files, row by row. A row of text has
 *
 *   kept columns of the input | class, or values | probabilities | set of classes
 *
 * where the bounds of its interval follow each value. An array in an NPY file contains one of these: classes, scores,
 * probabilities, (prediction, low, high) for each output, or sets as booleans.
 */
#include "results/results.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_writer {
    FILE *file;
    cli_form form;
    cli_result result;
    int64_t outputs;
    const char *const *labels; /* (outputs) class names, or NULL */
    char **names;              /* (name_count) column names in output order */
    int64_t name_count;
    int named;         /* true: write a header line */
    double *radius;    /* (outputs) interval half-widths, or the threshold of sets; NULL: none */
    int32_t *members;  /* (outputs) class indices of a set, ended by -1 */
    int64_t *numbers;  /* (outputs) labels as integers; NULL if any is not an integer */
    uint32_t *letters; /* (outputs, width) labels as UCS-4 for NPY; NULL if integers */
    int64_t width;
    int single;   /* true: scores are f32 */
    int terminal; /* true: the file is a terminal */
    mercer_context *context;
    mercer_column_texts *kept; /* kept columns of the input, or NULL; borrowed */
    int64_t kept_count;
};

/* ---- Names of classes -------------------------------------------------------------------------------------------- */

static int64_t *names_as_numbers(const char *const *names, int64_t count)
{
    int64_t *numbers = cli_allocate(count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++) {
        char *end = NULL;
        errno = 0;
        numbers[i] = strtoll(names[i], &end, 10);
        if (end == names[i] || *end != '\0' || errno != 0 || names[i][0] == ' ' || names[i][0] == '+') {
            free(numbers);
            return NULL;
        }
    }
    return numbers;
}

/* Decodes one UTF-8 character; an invalid byte is returned as is. */
static uint32_t next_letter(const unsigned char **at)
{
    const unsigned char *s = *at;
    int more = s[0] >= 0xF0 ? 3 : (s[0] >= 0xE0 ? 2 : (s[0] >= 0xC0 ? 1 : 0));
    uint32_t letter = more == 0 ? s[0] : s[0] & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            *at = s + 1;
            return s[0];
        }
        letter = (letter << 6) | (s[i] & 0x3Fu);
    }
    *at = s + 1 + more;
    return letter;
}

static void names_as_letters(cli_writer *w)
{
    w->width = 1;
    for (int64_t i = 0; i < w->outputs; i++) {
        int64_t length = (int64_t)strlen(w->labels[i]);
        if (length > w->width) w->width = length;
    }
    w->letters = cli_allocate(w->outputs * w->width, sizeof *w->letters);
    for (int64_t i = 0; i < w->outputs; i++) {
        const unsigned char *at = (const unsigned char *)w->labels[i];
        for (int64_t j = 0; *at != '\0'; j++) w->letters[i * w->width + j] = next_letter(&at);
    }
}

/* ---- Names of columns -------------------------------------------------------------------------------------------- */

static int has_name(const cli_writer *w, const char *name)
{
    for (int64_t i = 0; i < w->name_count; i++)
        if (strcmp(w->names[i], name) == 0) return 1;
    return 0;
}

/* Adds a column name and takes ownership. A duplicate name gets a number, with a warning if the file has a header. */
static void add_name(cli_writer *w, char *name)
{
    int64_t capacity = w->name_count;
    if (has_name(w, name)) {
        char *given = name, *numbered = NULL;
        for (int number = 2; numbered == NULL || has_name(w, numbered); number++) {
            free(numbered);
            numbered = cli_format("%s_%d", given, number);
        }
        name = numbered;
        if (w->form != CLI_FORM_NPY && w->form != CLI_FORM_TEXT)
            cli_warn("two output columns would be named '%s'; the second is written as '%s'", given, name);
        free(given);
    }
    w->names = cli_grow(w->names, capacity, &capacity, sizeof *w->names);
    w->names[w->name_count++] = name;
}

/* Adds the column names of the class or the values: the target names with "_predicted", so that they differ from the
   names of the targets. */
static void name_predictions(cli_writer *w, const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    int64_t count = info.target_count, classes = w->labels != NULL;
    const char *const *targets = info.target_names;
    int interval = w->radius != NULL && !classes;
    if (w->result != CLI_RESULT_VALUES) {
        add_name(w, count == 1 ? cli_format("%s_predicted", targets[0]) : cli_copy("class"));
        w->named = w->named || count == 1;
        return;
    }
    for (int64_t j = 0; j < w->outputs; j++) {
        const char *target = !classes && count == w->outputs ? targets[j] : NULL;
        CLI_OWNED(cli_drop)
        char *name = target != NULL    ? cli_copy(target)
                     : classes         ? cli_copy(w->labels[j])
                     : w->outputs == 1 ? cli_copy("prediction")
                                       : cli_format("prediction_%" PRId64, j + 1);
        w->named = w->named || classes || target != NULL;
        add_name(w, target != NULL ? cli_format("%s_predicted", name) : cli_copy(name));
        if (interval) add_name(w, cli_format("%s_low", name));
        if (interval) add_name(w, cli_format("%s_high", name));
    }
}

static void name_columns(cli_writer *w, const mercer_model *model)
{
    const char *const *kept = w->kept != NULL ? mercer_column_texts_names(w->kept, &w->kept_count) : NULL;
    w->named = w->kept != NULL || w->radius != NULL || w->result == CLI_RESULT_PROBABILITIES;
    for (int64_t i = 0; i < w->kept_count; i++) add_name(w, cli_copy(kept[i]));
    name_predictions(w, model);
    if (w->result == CLI_RESULT_PROBABILITIES && w->form == CLI_FORM_JSONL)
        add_name(w, cli_copy("probabilities"));
    else if (w->result == CLI_RESULT_PROBABILITIES)
        for (int64_t j = 0; j < w->outputs; j++) add_name(w, cli_format("probability_%s", w->labels[j]));
    if (w->result != CLI_RESULT_VALUES && w->radius != NULL) add_name(w, cli_copy("set"));
}

/* ---- NPY --------------------------------------------------------------------------------------------------------- */

/* Writes the NPY 1.0 header: magic, header length, a Python dictionary padded to a multiple of 64 bytes. */
static void put_npy_header(const cli_writer *w, int64_t rows)
{
    char type[32], shape[64], header[192];
    int values = w->result == CLI_RESULT_VALUES, sets = !values && w->radius != NULL;
    int64_t columns = values && w->radius != NULL ? 3 * w->outputs : w->outputs;
    int flat = (w->result == CLI_RESULT_CLASS && !sets) || columns == 1;
    if (sets)
        snprintf(type, sizeof type, "|b1");
    else if (w->result == CLI_RESULT_CLASS && w->numbers != NULL)
        snprintf(type, sizeof type, "<i8");
    else if (w->result == CLI_RESULT_CLASS)
        snprintf(type, sizeof type, "<U%" PRId64, w->width);
    else
        snprintf(type, sizeof type, values && w->single && w->radius == NULL ? "<f4" : "<f8");
    if (flat)
        snprintf(shape, sizeof shape, "(%" PRId64 ",)", rows);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", rows, columns);
    int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    fwrite(start, 1, sizeof start, w->file);
    fprintf(w->file, "%s%*s\n", header, padded - 1 - length, "");
}

static double matrix_element(const mercer_matrix *m, int64_t i, int64_t j)
{
    if (m->dtype == MERCER_F64) return ((const double *)m->data)[i * m->ld + j];
    return (double)((const float *)m->data)[i * m->ld + j];
}

static int64_t best_output(const mercer_matrix *m, int64_t i)
{
    int64_t best = 0;
    for (int64_t j = 1; j < m->cols; j++)
        if (matrix_element(m, i, j) > matrix_element(m, i, best)) best = j;
    return best;
}

static int set_contains(const cli_writer *w, int64_t label)
{
    for (int64_t k = 0; k < w->outputs && w->members[k] >= 0; k++)
        if (w->members[k] == label) return 1;
    return 0;
}

static void put_npy_row(const cli_writer *w, const mercer_matrix *m, int64_t i)
{
    int64_t best = best_output(m, i);
    if (w->result == CLI_RESULT_VALUES && w->radius != NULL) {
        for (int64_t j = 0; j < w->outputs; j++) {
            double f = matrix_element(m, i, j), all[3] = {f, f - w->radius[j], f + w->radius[j]};
            fwrite(all, sizeof *all, 3, w->file);
        }
    } else if (w->result != CLI_RESULT_VALUES && w->radius != NULL) {
        for (int64_t j = 0; j < w->outputs; j++) fputc(set_contains(w, j), w->file);
    } else if (w->result != CLI_RESULT_CLASS) {
        size_t size = (size_t)cli_dtype_size(m->dtype);
        fwrite((const char *)m->data + (size_t)(i * m->ld) * size, size, (size_t)m->cols, w->file);
    } else if (w->numbers != NULL) {
        fwrite(&w->numbers[best], sizeof *w->numbers, 1, w->file);
    } else {
        fwrite(w->letters + best * w->width, sizeof *w->letters, (size_t)w->width, w->file);
    }
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

void cli_put_field(FILE *file, char separator, const char *text)
{
    const char special[] = {separator, '"', '\n', '\r', '\0'};
    if (separator == '\0' || strpbrk(text, special) == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

/* Writes a name as a field, quoted if it contains characters that are special in the format. */
static void put_name(const cli_writer *w, const char *name)
{
    if (w->terminal) { /* escape control characters */
        char *shown = cli_visible(name);
        fputs(shown, w->file);
        free(shown);
        return;
    }
    cli_put_field(w->file, w->form == CLI_FORM_CSV ? ',' : (w->form == CLI_FORM_TSV ? '\t' : '\0'), name);
}

static void put_number(const cli_writer *w, double value, int single)
{
    char text[CLI_SHORT];
    fputs(cli_number_text(text, value, single), w->file);
}

/* Writes the text before field k of a row: the separator, or in JSON '{' or ','. */
static void put_before(const cli_writer *w, int64_t k)
{
    if (w->form != CLI_FORM_JSONL) {
        if (k > 0) fputc(w->form == CLI_FORM_CSV ? ',' : (w->form == CLI_FORM_TSV ? '\t' : ' '), w->file);
        return;
    }
    fputc(k > 0 ? ',' : '{', w->file);
}

static void put_json_text(const cli_writer *w, const char *text)
{
    json_t *value = json_string(text);
    if (value == NULL) value = json_string("?"); /* not valid UTF-8 */
    json_dumpf(value, w->file, JSON_ENCODE_ANY);
    json_decref(value);
}

static void put_text(const cli_writer *w, const char *text)
{
    if (w->form == CLI_FORM_JSONL)
        put_json_text(w, text);
    else
        put_name(w, text);
}

static void put_field_name(const cli_writer *w, int64_t *k)
{
    put_before(w, *k);
    if (w->form == CLI_FORM_JSONL) {
        put_json_text(w, w->names[*k]);
        fputc(':', w->file);
    }
    ++*k;
}

static void put_values(const cli_writer *w, const mercer_matrix *m, int64_t i, int64_t *k)
{
    for (int64_t j = 0; j < w->outputs; j++) {
        double f = matrix_element(m, i, j);
        put_field_name(w, k);
        put_number(w, f, w->single);
        for (int side = -1; side <= 1 && w->radius != NULL; side += 2) {
            put_field_name(w, k);
            put_number(w, f + side * w->radius[j], 0);
        }
    }
}

/* Writes probabilities as {"a":0.5,"b":0.5} in JSON, otherwise one field per class. */
static void put_probabilities(const cli_writer *w, const mercer_matrix *m, int64_t i, int64_t *k)
{
    int json = w->form == CLI_FORM_JSONL;
    if (json) put_field_name(w, k);
    for (int64_t j = 0; j < w->outputs; j++) {
        if (!json) put_field_name(w, k);
        if (json) fputc(j > 0 ? ',' : '{', w->file);
        if (json) put_json_text(w, w->labels[j]);
        if (json) fputc(':', w->file);
        put_number(w, matrix_element(m, i, j), 0);
    }
    if (json) fputc('}', w->file);
}

/* Writes a set of classes as ["a","b"] in JSON, otherwise as a|b. */
static void put_set(const cli_writer *w, int64_t *k)
{
    int json = w->form == CLI_FORM_JSONL;
    CLI_OWNED(cli_drop) char *joined = cli_copy("");
    put_field_name(w, k);
    if (json) fputc('[', w->file);
    for (int64_t j = 0; j < w->outputs && w->members[j] >= 0; j++) {
        const char *name = w->labels[w->members[j]];
        if (json && j > 0) fputc(',', w->file);
        if (json) put_json_text(w, name);
        if (!json) joined = cli_append(joined, "%s%s", j > 0 ? "|" : "", name);
    }
    if (json)
        fputc(']', w->file);
    else
        put_name(w, joined);
}

static mercer_status put_text_row(const cli_writer *w, const mercer_matrix *m, int64_t i)
{
    const char *const *fields = NULL;
    int64_t k = 0;
    if (w->kept != NULL) {
        mercer_status status = mercer_column_texts_next(w->kept, &fields);
        if (status != MERCER_OK) return status;
    }
    for (int64_t j = 0; j < w->kept_count; j++) {
        put_field_name(w, &k);
        put_text(w, fields != NULL ? fields[j] : "");
    }
    if (w->result == CLI_RESULT_VALUES) {
        put_values(w, m, i, &k);
    } else {
        put_field_name(w, &k);
        put_text(w, w->labels[best_output(m, i)]);
    }
    if (w->result == CLI_RESULT_PROBABILITIES) put_probabilities(w, m, i, &k);
    if (w->result != CLI_RESULT_VALUES && w->radius != NULL) put_set(w, &k);
    fputs(w->form == CLI_FORM_JSONL ? "}\n" : "\n", w->file);
    return MERCER_OK;
}

/* Writes the header line of csv and tsv; nothing if the file contains only predictions and the model has no target
   names. */
static void put_header(const cli_writer *w)
{
    if (!w->named || (w->form != CLI_FORM_CSV && w->form != CLI_FORM_TSV)) return;
    for (int64_t k = 0; k < w->name_count; k++) {
        put_before(w, k);
        put_name(w, w->names[k]);
    }
    fputc('\n', w->file);
}

/* ---- Writers ----------------------------------------------------------------------------------------------------- */

cli_writer *cli_writer_new(const cli_writer_plan *plan, mercer_context *context, const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    cli_writer *w = cli_allocate(1, sizeof *w);
    *w = (cli_writer){.form = plan->form, .result = plan->result, .context = context, .kept = plan->kept};
    w->outputs = info.outputs;
    w->labels = info.label_count == info.outputs ? info.labels : NULL;
    w->single = cli_result_type(model) == MERCER_F32;
    if (plan->radius != NULL) {
        w->radius = cli_allocate(w->outputs, sizeof *w->radius);
        memcpy(w->radius, plan->radius, (size_t)(w->labels != NULL ? 1 : w->outputs) * sizeof *w->radius);
        w->members = cli_allocate(w->outputs, sizeof *w->members);
    }
    if (w->labels == NULL) w->result = CLI_RESULT_VALUES;
    if (w->labels != NULL && w->result == CLI_RESULT_CLASS) {
        w->numbers = names_as_numbers(w->labels, w->outputs);
        if (w->numbers == NULL) names_as_letters(w);
    }
    name_columns(w, model);
    return w;
}

void cli_writer_begin(cli_writer *w, FILE *file, int64_t rows)
{
    w->file = file;
    w->terminal = isatty(fileno(file)) && w->form != CLI_FORM_JSONL;
    if (w->form == CLI_FORM_NPY) put_npy_header(w, rows);
    put_header(w);
}

mercer_status cli_writer_put(cli_writer *w, const mercer_matrix *m)
{
    for (int64_t i = 0; i < m->rows; i++) {
        if (w->radius != NULL && w->result != CLI_RESULT_VALUES) { /* m is f64 in this case */
            mercer_matrix row = mercer_matrix_view((double *)m->data + i * m->ld, 1, m->cols, MERCER_F64);
            mercer_status status = mercer_class_sets(w->context, w->members, &row, w->radius[0]);
            if (status != MERCER_OK) return status;
        }
        if (w->form == CLI_FORM_NPY) {
            put_npy_row(w, m, i);
            continue;
        }
        mercer_status status = put_text_row(w, m, i);
        if (status != MERCER_OK) return status;
    }
    return MERCER_OK;
}

int cli_writer_failed(const cli_writer *w)
{
    return ferror(w->file);
}

void cli_writer_free(cli_writer *w)
{
    if (w == NULL) return;
    for (int64_t i = 0; i < w->name_count; i++) free(w->names[i]);
    free(w->names);
    free(w->radius);
    free(w->members);
    free(w->numbers);
    free(w->letters);
    free(w);
}
