/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The default output of mercer train: the data that were read; the score on rows that the model was not trained on; the
 * most important columns; the model file; the next command.
 *
 * The score is computed on the validation set or on held-out rows if the fit has any, otherwise from cross-validated
 * predictions. If the fit has none of these, the output shows the held-out error of the search and says so.
 */
#include "results/results.h"

#include "options/options.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TOP_COLUMNS = 5, LABEL = 10 };
/* Columns with a smaller decrease of the score are not shown. */
#define LEAST_DROP 0.0005

/* Prints a label and a text, wrapped on a terminal. Releases `text`, which may be NULL. */
static void print_row(const char *label, char *text)
{
    if (text == NULL) return;
    CLI_OWNED(cli_drop) char *named = cli_name_pipes(text);
    CLI_OWNED(cli_drop) char *shown = cli_visible(named);
    cli_bar_make_way();
    fprintf(stderr, "%-*s", LABEL, label);
    cli_print_wrapped(stderr, shown, LABEL, cli_is_terminal(stderr) ? cli_width(stderr) : 0);
    fputc('\n', stderr);
    free(text);
}

/* ---- What was read ----------------------------------------------------------------------------------------------- */

/* Returns "houses.csv", or "part-1.csv and 2 more" for several files. Release with free. */
static char *source_name(const cli_values *v)
{
    const char *name = cli_data_name(v), *end = strchr(name, CLI_FILE_SEPARATOR[0]);
    int more = 0;
    for (const char *at = end; at != NULL; at = strchr(at + 1, CLI_FILE_SEPARATOR[0])) more++;
    return end == NULL ? cli_copy(name) : cli_format("%.*s and %d more", (int)(end - name), name, more);
}

static char *read_text(const cli_job *job)
{
    char count[CLI_SHORT];
    const mercer_dataset_info *info = &job->info;
    int table = info->schema != NULL || info->feature_names != NULL;
    CLI_OWNED(cli_drop) char *name = source_name(job->v);
    CLI_OWNED(cli_drop)
    char *columns = info->schema != NULL ? cli_schema_text(info->schema, "columns", info->features)
                    : table              ? cli_format("%s number%s", cli_count_text(count, info->features),
                                         info->features == 1 ? "" : "s") /* a table without a schema has only numbers */
                                         : cli_data_text(info);
    if (!table) return cli_format("%s: %s", name, columns);
    return cli_format("%s: %s rows; %s", name, cli_count_text(count, cli_data_info(job->data).rows), columns);
}

/* Returns a text with the number of missing values and the number of their columns; NULL if no values are missing. */
static char *missing_text(const char *schema)
{
    json_auto_t *root = schema != NULL ? json_loads(schema, 0, NULL) : NULL;
    const json_t *list = json_object_get(root, "columns");
    int64_t cells = 0, columns = 0;
    char count[CLI_SHORT];
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t missing = json_integer_value(json_object_get(json_array_get(list, i), "missing"));
        cells += missing, columns += missing > 0;
    }
    if (cells == 0) return NULL;
    return cli_format("%s values in %" PRId64 " column%s", cli_count_text(count, cells), columns,
                      columns == 1 ? "" : "s");
}

void cli_show_read(const cli_job *job)
{
    if (cli_flag(job->v, "quiet") || cli_rank() > 0) return;
    print_row("read", read_text(job));
    print_row("notation", cli_schema_text(job->info.schema, "notations", job->info.features));
    print_row("missing", missing_text(job->info.schema));
    print_row("target", cli_target_text(job->v, &job->info));
}

/* ---- The score --------------------------------------------------------------------------------------------------- */

/* Returns the share of the rows that belong to the largest class. */
static double largest_share(const mercer_evaluation *evaluation, int64_t classes)
{
    const double *matrix = mercer_evaluation_confusion(evaluation);
    double total = 0, largest = 0;
    for (int64_t i = 0; matrix != NULL && i < classes; i++) {
        double sum = 0;
        for (int64_t j = 0; j < classes; j++) sum += matrix[i * classes + j];
        total += sum, largest = fmax(largest, sum);
    }
    return total > 0 ? largest / total : (double)NAN;
}

cli_score cli_find_score(const cli_job *job, const cli_metrics *metrics)
{
    const mercer_evaluation *crossed = job->parts.scores, *evaluation = metrics != NULL ? metrics->evaluation : crossed;
    cli_score score = {.all = MERCER_INIT(mercer_metrics), .largest = (double)NAN};
    if (evaluation == NULL || mercer_evaluation_query(evaluation, &score.all) != MERCER_OK) return score;
    score.how = metrics == NULL ? "cross-validation" : job->validation != NULL ? "validation set" : "held-out rows";
    if (score.all.task == MERCER_TASK_CLASSIFICATION) score.largest = largest_share(evaluation, score.all.outputs);
    return score;
}

json_t *cli_score_json(const cli_score *score)
{
    if (score->how == NULL) return json_null();
    json_t *object = cli_metrics_json(&score->all);
    json_object_set_new(object, "rows", json_integer(score->all.rows));
    json_object_set_new(object, "how", json_string(score->how));
    if (isfinite(score->largest)) json_object_set_new(object, "largest_class", cli_json_real(score->largest));
    return object;
}

/* Returns a value with three significant digits and separated thousands: 42,000. */
static const char *amount_text(char text[CLI_SHORT], double value)
{
    if (!(fabs(value) >= 1000 && fabs(value) < 1e15)) {
        snprintf(text, CLI_SHORT, "%.3g", value);
        return text;
    }
    double unit = pow(10, floor(log10(fabs(value))) - 2);
    return cli_count_text(text, (int64_t)llround(round(value / unit) * unit));
}

/* Returns R2 with three decimals, or with as many as distinguish it from 1. */
static const char *r2_text(char text[CLI_SHORT], double value)
{
    int decimals = 3;
    while (decimals < 8 && value < 1 && 1 - value < 0.5 * pow(10, -decimals)) decimals++;
    snprintf(text, CLI_SHORT, "%.*f", decimals, value);
    return text;
}

static char *rows_text(const cli_score *score)
{
    char rows[CLI_SHORT];
    int validates = strcmp(score->how, "validation set") == 0, crossed = strcmp(score->how, "cross-validation") == 0;
    return cli_format("on %s %s rows%s", cli_count_text(rows, score->all.rows), validates ? "validation" : "held-out",
                      crossed ? ", by cross-validation" : "");
}

static char *values_score(const cli_score *score)
{
    char r2[CLI_SHORT], error[CLI_SHORT];
    const mercer_metrics *all = &score->all;
    CLI_OWNED(cli_drop) char *rows = rows_text(score);
    if (!isfinite(all->r2)) return cli_format("mean squared error %.4g %s", all->mse, rows);
    /* The outputs of several targets may have different units. */
    CLI_OWNED(cli_drop)
    char *typical =
        all->outputs == 1 ? cli_format(" (typical error %s)", amount_text(error, all->error_median)) : cli_copy("");
    return cli_format("R2 %s %s%s; baseline 0", r2_text(r2, all->r2), rows, typical);
}

static char *classes_score(const cli_score *score)
{
    const mercer_metrics *all = &score->all;
    CLI_OWNED(cli_drop) char *rows = rows_text(score);
    char *text =
        cli_format("accuracy %.1f %% %s; largest class %.1f %%", 100 * all->accuracy, rows, 100 * score->largest);
    if (isfinite(all->auc)) text = cli_append(text, "; AUC %.3f", all->auc);
    return isfinite(all->log_loss) ? cli_append(text, "; log loss %.3f", all->log_loss) : text;
}

/* Returns the text shown instead of a score: the held-out R2 of the search, or a note if the fit had no search. */
static char *search_score(const cli_job *job)
{
    char rows[CLI_SHORT];
    if (job->search.steps == NULL || !(job->search.error > 0))
        return cli_copy("not measured, because all rows are training rows; use mercer eval with other rows");
    return cli_format(
        "R2 %.3f on %s held-out rows of the search, by smaller models; score this model by mercer eval with other rows",
        1 - job->search.error, cli_count_text(rows, job->search.held_out));
}

/* ---- Columns, file, next command --------------------------------------------------------------------------------- */

/* Returns the most important columns of a list made by cli_find_importance; NULL if `list` is NULL or empty. trained:
   true if the importance was measured on training rows. */
static char *columns_text(const json_t *list, int classes, int trained)
{
    char *text = NULL;
    for (size_t i = 0; i < json_array_size(list) && i < TOP_COLUMNS; i++) {
        const json_t *one = json_array_get(list, i), *name = json_object_get(one, "name");
        double drop = json_number_value(json_object_get(one, "drop"));
        if (!(drop >= LEAST_DROP)) break;
        text = cli_append(text, "%s%s %.3f", text != NULL ? ", " : "",
                          json_is_string(name) ? json_string_value(name) : "?", drop);
    }
    if (text != NULL)
        return cli_append(text, " (loss of %s%s when shuffled)", classes ? "accuracy" : "R2",
                          trained ? " on training rows" : "");
    return json_array_size(list) > 0
               ? cli_format("no column matters: shuffling any column lowers %s by less than 0.001",
                            classes ? "the accuracy" : "R2")
               : NULL;
}

/* Returns a word for a shell, quoted if needed. Release with free. */
static char *shell_word(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+,:@%-";
    if (strspn(text, safe) == strlen(text)) return cli_copy(text);
    char *word = cli_copy("'");
    for (; *text != '\0'; text++) word = cli_append(word, *text == '\'' ? "'\\''" : "%c", *text);
    return cli_append(word, "'");
}

static char *next_command(const cli_job *job)
{
    const char *data = cli_text(job->v, "data");
    CLI_OWNED(cli_drop) char *model = shell_word(cli_text(job->v, "output"));
    if (data != NULL) {
        CLI_OWNED(cli_drop) char *folder = shell_word(data);
        return cli_format("mercer eval -m %s --data %s", model, folder);
    }
    if (cli_text(job->v, "x") == NULL) return cli_format("mercer inspect %s", model);
    if (job->info.feature_names != NULL)
        return cli_format("mercer predict %s new.%s > predictions.csv", model, job->info.format);
    return cli_format("mercer predict %s new.%s -o predictions.npy", model, job->info.format);
}

static char *model_text(const cli_job *job, const mercer_report *r, double seconds)
{
    char bytes[CLI_SHORT], time[CLI_SHORT];
    struct stat state;
    const char *name = cli_text(job->v, "output");
    int cut = r->stopped == MERCER_STOP_BUDGET || job->search.cut;
    if (stat(name, &state) != 0) state.st_size = 0;
    return cli_format("%s, %s, in %s%s", name, cli_bytes_text(bytes, (int64_t)state.st_size),
                      cli_seconds_text(time, seconds),
                      cut                                  ? ", ended by the time limit"
                      : r->stopped == MERCER_STOP_PATIENCE ? ", stopped early"
                                                           : "");
}

void cli_show_result(const cli_job *job, const mercer_report *r, const cli_score *score, const json_t *importance,
                     double seconds)
{
    int classes = job->info.task == MERCER_TASK_CLASSIFICATION;
    if (cli_flag(job->v, "quiet") || cli_rank() > 0) return;
    print_row("result", score->how == NULL ? search_score(job) : classes ? classes_score(score) : values_score(score));
    print_row("columns", columns_text(importance, classes, job->parts.validation == NULL));
    print_row("model", model_text(job, r, seconds));
    print_row("next", next_command(job));
}
