/* SPDX-License-Identifier: BSD-3-Clause */
/* The command predict: labels or values of new samples, block by block, as NPY or text. */
#include "commands/commands.h"
#include "commands/evaluate.h"
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum form { FORM_NPY, FORM_CSV, FORM_TSV, FORM_TEXT } form;

/* How predictions are written. */
typedef struct writer {
    FILE *file;
    form form;
    int labelled;               /* classes, not scores */
    const char *const *names;   /* (outputs) */
    const char *const *columns; /* (column_count) names of the columns of text, or NULL */
    int64_t column_count;
    int64_t outputs;
    int64_t *numbers;  /* (outputs) names as whole numbers; NULL if one of them is none */
    uint32_t *letters; /* (outputs, width) names as UCS-4 for NPY; NULL if they are numbers */
    int64_t width;
    mercer_dtype real;
} writer;

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

/* One character of UTF-8; a byte that begins none stands for itself. */
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

static void names_as_letters(writer *w)
{
    w->width = 1;
    for (int64_t i = 0; i < w->outputs; i++) {
        int64_t length = (int64_t)strlen(w->names[i]);
        if (length > w->width) w->width = length;
    }
    w->letters = cli_allocate(w->outputs * w->width, sizeof *w->letters);
    for (int64_t i = 0; i < w->outputs; i++) {
        const unsigned char *at = (const unsigned char *)w->names[i];
        for (int64_t j = 0; *at != '\0'; j++) w->letters[i * w->width + j] = next_letter(&at);
    }
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* Version 1.0 of the format: magic, length of the header, a Python dictionary padded to a multiple of 64. */
static void put_npy_header(const writer *w, int64_t rows)
{
    char type[32], shape[64], header[192];
    if (w->labelled && w->numbers != NULL)
        snprintf(type, sizeof type, "<i8");
    else if (w->labelled)
        snprintf(type, sizeof type, "<U%" PRId64, w->width);
    else
        snprintf(type, sizeof type, w->real == MERCER_F64 ? "<f8" : "<f4");
    if (w->labelled || w->outputs == 1)
        snprintf(shape, sizeof shape, "(%" PRId64 ",)", rows);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", rows, w->outputs);
    int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    fwrite(start, 1, sizeof start, w->file);
    fprintf(w->file, "%s%*s\n", header, padded - 1 - length, "");
}

/* A name as a field: quoted where a reader of csv would take it apart. */
static void put_name(const writer *w, const char *name)
{
    const char *special = w->form == FORM_CSV ? ",\"\n\r" : (w->form == FORM_TSV ? "\t\"\n\r" : "");
    if (strpbrk(name, special) == NULL) {
        fputs(name, w->file);
        return;
    }
    fputc('"', w->file);
    for (; *name != '\0'; name++) {
        if (*name == '"') fputc('"', w->file);
        fputc(*name, w->file);
    }
    fputc('"', w->file);
}

static double score(const mercer_matrix *F, int64_t i, int64_t j)
{
    if (F->dtype == MERCER_F64) return ((const double *)F->data)[i * F->ld + j];
    return (double)((const float *)F->data)[i * F->ld + j];
}

static int64_t best_output(const mercer_matrix *F, int64_t i)
{
    int64_t best = 0;
    for (int64_t j = 1; j < F->cols; j++) {
        if (score(F, i, j) > score(F, i, best)) best = j;
    }
    return best;
}

static void put_label(const writer *w, int64_t label)
{
    if (w->form == FORM_NPY && w->numbers != NULL)
        fwrite(&w->numbers[label], sizeof *w->numbers, 1, w->file);
    else if (w->form == FORM_NPY)
        fwrite(w->letters + label * w->width, sizeof *w->letters, (size_t)w->width, w->file);
    else {
        put_name(w, w->names[label]);
        fputc('\n', w->file);
    }
}

static char separator_of(const writer *w)
{
    return w->form == FORM_CSV ? ',' : (w->form == FORM_TSV ? '\t' : ' ');
}

/* Tables have names over their columns where the model knows them: those of the targets, or of the classes. */
static void put_header(const writer *w)
{
    if (w->columns == NULL || (w->form != FORM_CSV && w->form != FORM_TSV)) return;
    for (int64_t j = 0; j < w->column_count; j++) {
        if (j > 0) fputc(separator_of(w), w->file);
        put_name(w, w->columns[j]);
    }
    fputc('\n', w->file);
}

static void put_rows(const writer *w, const mercer_matrix *F)
{
    char separator = separator_of(w);
    if (!w->labelled && w->form == FORM_NPY) {
        fwrite(F->data, (size_t)cli_dtype_size(F->dtype), (size_t)(F->rows * F->cols), w->file);
        return;
    }
    for (int64_t i = 0; i < F->rows; i++) {
        if (w->labelled) {
            put_label(w, best_output(F, i));
            continue;
        }
        for (int64_t j = 0; j < F->cols; j++) {
            char number[CLI_SHORT];
            if (j > 0) fputc(separator, w->file);
            fputs(cli_number_text(number, score(F, i, j), F->dtype == MERCER_F32), w->file);
        }
        fputc('\n', w->file);
    }
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static int choose_form(const char *path, form *out)
{
    if (cli_ends_with(path, ".npy"))
        *out = FORM_NPY;
    else if (cli_ends_with(path, ".csv"))
        *out = FORM_CSV;
    else if (cli_ends_with(path, ".tsv"))
        *out = FORM_TSV;
    else if (cli_ends_with(path, ".txt") || strcmp(path, "-") == 0)
        *out = FORM_TEXT;
    else
        return cli_error(CLI_USAGE, "--output: %s: the name must end in .npy, .csv, .tsv or .txt, or be -", path);
    return CLI_OK;
}

/* All ranks stop at the same block. */
static int stopped(const writer *w)
{
    int any = ferror(w->file) || cli_signal() != 0;
    if (cli_comm() != NULL && mercer_comm_any(cli_comm(), &any, any) != MERCER_OK)
        return 0; /* the next call will tell */
    return any;
}

static mercer_status write_blocks(const writer *w, mercer_model *model, const mercer_dataset *dataset, cli_bar *bar)
{
    mercer_dataset_info info = cli_data_info(dataset);
    int64_t most = cli_block_rows(info.features, w->outputs), n = info.rows;
    void *x = cli_allocate(most * info.features, (size_t)cli_dtype_size(info.dtype));
    void *f = cli_allocate(most * w->outputs, (size_t)cli_dtype_size(w->real));
    mercer_status status = MERCER_OK;
    for (int64_t first = 0; first < n && status == MERCER_OK && !stopped(w); first += most) {
        int64_t m = n - first < most ? n - first : most;
        mercer_matrix X = mercer_matrix_view(x, m, info.features, info.dtype);
        mercer_matrix F = mercer_matrix_view(f, m, w->outputs, w->real);
        status = mercer_dataset_read(dataset, &X, NULL, NULL, NULL, NULL, first);
        if (status == MERCER_OK) status = mercer_model_predict(model, &F, &X);
        if (status == MERCER_OK) put_rows(w, &F);
        cli_bar_draw(bar, (double)(first + m) / (double)n, "predicting", 0);
    }
    cli_bar_clear(bar);
    free(x);
    free(f);
    return status;
}

static void name_columns(writer *w, const mercer_model *model)
{
    int64_t classes = 0;
    w->columns = mercer_model_target_names(model, &w->column_count);
    mercer_model_labels(model, &classes);
    if (w->labelled || w->column_count == w->outputs) return;
    w->columns = classes == w->outputs ? w->names : NULL; /* scores of classes */
    w->column_count = w->columns != NULL ? classes : 0;
}

static int predict_to(const cli_values *v, mercer_context *context, mercer_model *model, const mercer_dataset *dataset,
                      form chosen)
{
    int64_t count = 0, rows = cli_data_info(dataset).rows;
    double start = cli_now();
    int stop = 0;
    cli_output *output = NULL;
    cli_bar bar;
    writer w = {.form = chosen};
    w.outputs = mercer_model_weights(model).cols;
    w.real = cli_result_type(model);
    w.names = mercer_model_labels(model, &count);
    w.labelled = w.names != NULL && count == w.outputs && !cli_flag(v, "scores");
    if (w.labelled) w.numbers = names_as_numbers(w.names, w.outputs);
    if (w.labelled && w.numbers == NULL) names_as_letters(&w);
    name_columns(&w, model);
    cli_bar_init(&bar, v);
    int code = cli_output_open(&output, cli_text(v, "output"));
    if (code == CLI_OK) {
        w.file = cli_output_file(output);
        if (w.form == FORM_NPY) put_npy_header(&w, rows);
        put_header(&w);
        mercer_status status = write_blocks(&w, model, dataset, &bar);
        if (status != MERCER_OK)
            code = cli_fail_on(context, status, dataset, cli_data_name(v));
        else
            code = cli_interrupted(&stop);
        if (code == CLI_OK && stop) code = cli_error(cli_signal_code(), "interrupted; nothing was written");
        if (code != CLI_OK)
            cli_output_drop(output);
        else
            code = cli_output_close(output);
    }
    if (code == CLI_OK && cli_flag(v, "json"))
        code = cli_print_json(json_pack("{so sI ss so}", "output", cli_json_text(cli_text(v, "output")), "rows",
                                        (json_int_t)rows, "kind", w.labelled ? "labels" : "values", "seconds",
                                        cli_json_real(cli_now() - start)));
    free(w.numbers);
    free(w.letters);
    return code;
}

int cli_predict(const cli_values *v)
{
    mercer_context *context = NULL;
    mercer_model *model = NULL;
    mercer_dataset *dataset = NULL;
    form chosen = FORM_NPY;
    int code = cli_check_data(v);
    if (code == CLI_OK) code = choose_form(cli_text(v, "output"), &chosen);
    if (code == CLI_OK && cli_flag(v, "json") && cli_is(v, "output", "-"))
        code = cli_error(CLI_USAGE, "--json and --output - both want stdout: name a file");
    if (code == CLI_OK) code = cli_check_output(cli_text(v, "output"));
    if (code == CLI_OK) code = cli_context(v, &context);
    if (code != CLI_OK) return code;
    cli_catch_signals();
    mercer_status status = cli_load_model(v, context, &model);
    if (status != MERCER_OK) code = cli_fail(context, status);
    if (code == CLI_OK) code = cli_open_for_model(v, context, model, 1, &dataset);
    if (code == CLI_OK) code = predict_to(v, context, model, dataset, chosen);
    mercer_dataset_free(dataset);
    mercer_model_free(model);
    cli_release_context(context);
    return code;
}
