/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands convert and synth: write data of any kind as NPY files or tables. */
#include "commands/commands.h"
#include "data.h"
#include "options/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Checks that the extension of an output file names a supported format. */
static int check_ending(const char *option, const char *path)
{
    if (cli_ends_with(path, ".npy") || cli_ends_with(path, ".csv") || cli_ends_with(path, ".tsv")) return CLI_OK;
    return cli_error(CLI_USAGE, "%s: %s: the format is not supported; use a name that ends in .npy, .csv or .tsv",
                     option, path);
}

static int check_outputs(const cli_values *v)
{
    const char *x = cli_text(v, "output"), *y = cli_text(v, "y-output");
    if (strcmp(x, "-") == 0 || (y != NULL && strcmp(y, "-") == 0))
        return cli_error(CLI_USAGE, "--output: data cannot be written to stdout; name a file");
    int code = check_ending("--output", x);
    if (code == CLI_OK && y != NULL) code = check_ending("--y-output", y);
    if (code == CLI_OK) code = cli_check_output(x);
    return code == CLI_OK && y != NULL ? cli_check_output(y) : code;
}

/* Returns the smallest error that any model can reach on synthetic samples of a known distribution; NaN for other data.
   The estimate uses at most ESTIMATE_ROWS rows, which is fast for any number of clusters. */
static double smallest_error(const mercer_dataset *dataset, int64_t rows)
{
    enum { ESTIMATE_ROWS = 400 };
    double error;
    return mercer_dataset_least_error(dataset, &error, rows < ESTIMATE_ROWS ? rows : ESTIMATE_ROWS) == MERCER_OK
               ? error
               : (double)NAN;
}

/* Writes a dataset to the output files and prints its description. */
static int write_dataset(const cli_values *v, mercer_context *context, const mercer_dataset *dataset)
{
    const char *x = cli_text(v, "output"), *y = cli_text(v, "y-output");
    mercer_dataset_info info = cli_data_info(dataset);
    if (y != NULL && info.task == MERCER_TASK_UNLABELED)
        return cli_error(CLI_USAGE, "--y-output: the data have no targets; remove the option");
    CLI_TRY(cli_check(context, mercer_dataset_write(dataset, x, y)));
    CLI_OWNED(cli_drop) char *text = cli_data_text(&info);
    double least = smallest_error(dataset, info.rows);
    cli_say(v, "%s: %s", x, text);
    if (!isnan(least)) cli_say(v, "smallest possible error of a model: %.4g", least);
    if (!cli_flag(v, "json")) return CLI_OK;
    json_t *object = cli_data_json(&info);
    json_object_set_new(object, "output", cli_json_text(x));
    if (!isnan(least)) json_object_set_new(object, "least_error", json_real(least));
    if (y != NULL) json_object_set_new(object, "y_output", cli_json_text(y));
    if (info.labels != NULL) {
        json_t *labels = json_array();
        for (int64_t i = 0; i < info.outputs; i++) json_array_append_new(labels, cli_json_text(info.labels[i]));
        json_object_set_new(object, "labels", labels);
    }
    return cli_print_answer(object);
}

int cli_convert(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_dataset) mercer_dataset *dataset = NULL;
    /* Without --y-output, read no targets, so that the target column of a csv file stays among the features. */
    cli_request request = {.unlabeled = cli_text(v, "y-output") == NULL};
    CLI_TRY(cli_check_data(v));
    CLI_TRY(check_outputs(v));
    CLI_TRY(cli_check(NULL, mercer_context_create(&context, NULL)));
    CLI_TRY(cli_open_data(v, context, &request, &dataset));
    return write_dataset(v, context, dataset);
}

int cli_synth(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_dataset) mercer_dataset *dataset = NULL;
    CLI_TRY(check_outputs(v));
    if (cli_integer(v, "rows") == 0) return cli_error(CLI_USAGE, "--rows: must be at least 1");
    CLI_TRY(cli_check(NULL, mercer_context_create(&context, NULL)));
    CLI_TRY(
        cli_check(context, mercer_dataset_synthesize(&dataset, context, cli_positional(v, 0), cli_integer(v, "first"),
                                                     cli_integer(v, "rows"), (uint64_t)cli_integer(v, "seed"))));
    return write_dataset(v, context, dataset);
}
