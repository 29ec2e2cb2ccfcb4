/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens datasets from the options of a command: files, folders in MNIST or CIFAR layout, synthetic samples. */
#include "data.h"
#include "ranks/program_ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Names ------------------------------------------------------------------------------------------------------- */

const char *cli_dtype_name(mercer_dtype dtype)
{
    switch (dtype) {
        case MERCER_F64: return "f64";
        case MERCER_F32: return "f32";
        case MERCER_F16: return "f16";
        case MERCER_U8: return "u8";
    }
    return "?";
}

mercer_dtype cli_dtype(const char *name)
{
    static const mercer_dtype all[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    for (int i = 0; i < 4; i++)
        if (name != NULL && strcmp(name, cli_dtype_name(all[i])) == 0) return all[i];
    return (mercer_dtype)0;
}

int64_t cli_dtype_size(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 8 : (dtype == MERCER_F32 ? 4 : (dtype == MERCER_F16 ? 2 : 1));
}

const char *cli_data_name(const cli_values *v)
{
    if (cli_text(v, "x") != NULL) return cli_text(v, "x");
    return cli_text(v, "data") != NULL ? cli_text(v, "data") : cli_text(v, "synth");
}

mercer_dataset_info cli_data_info(const mercer_dataset *dataset)
{
    mercer_dataset_info info = {.struct_size = sizeof info};
    mercer_dataset_query(dataset, &info);
    return info;
}

mercer_model_info cli_model_info(const mercer_model *model)
{
    mercer_model_info info = {.struct_size = sizeof info};
    if (model != NULL) mercer_model_query(model, &info);
    return info;
}

mercer_preprocess_info cli_preprocess_info(const mercer_preprocess *preprocess)
{
    mercer_preprocess_info info = {.struct_size = sizeof info};
    mercer_preprocess_query(preprocess, &info);
    return info;
}

static const char *task_name(mercer_task task)
{
    return task == MERCER_TASK_CLASSIFICATION ? "classification"
                                              : (task == MERCER_TASK_REGRESSION ? "regression" : "unlabeled");
}

json_t *cli_data_json(const mercer_dataset_info *info)
{
    json_t *object = json_pack("{sI sI sI ss ss ss}", "rows", (json_int_t)info->rows, "features",
                               (json_int_t)info->features, "outputs", (json_int_t)info->outputs, "dtype",
                               cli_dtype_name(info->dtype), "task", task_name(info->task), "format", info->format);
    if (info->schema != NULL) json_object_set_new(object, "schema", json_loads(info->schema, 0, NULL));
    if (info->left_out > 0) json_object_set_new(object, "left_out", json_integer(info->left_out));
    return object;
}

char *cli_data_text(const mercer_dataset_info *info)
{
    char rows[CLI_SHORT], features[CLI_SHORT], outputs[64] = "no targets";
    if (info->task == MERCER_TASK_CLASSIFICATION)
        snprintf(outputs, sizeof outputs, "%" PRId64 " classes", info->outputs);
    else if (info->task == MERCER_TASK_REGRESSION)
        snprintf(outputs, sizeof outputs, "%" PRId64 " value%s", info->outputs, info->outputs == 1 ? "" : "s");
    return cli_format("%s x %s %s, %s (%s)", cli_count_text(rows, info->rows), cli_count_text(features, info->features),
                      cli_dtype_name(info->dtype), outputs, info->format);
}

static char *number_list(const double *values, int64_t count)
{
    enum { SHOWN = 5 };
    char *list = NULL;
    for (int64_t i = 0; i < count && i < SHOWN; i++) list = cli_append(list, "%s%.6g", i > 0 ? ", " : "", values[i]);
    return cli_append(list, "%s", count > SHOWN ? ", ..." : "");
}

char *cli_targets_text(const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    const double *offset = info.target_offset, *scale = info.target_scale;
    int scaled = 0;
    if (offset == NULL) return NULL;
    for (int64_t i = 0; i < info.outputs; i++) scaled = scaled || scale[i] != 1;
    char *offsets = number_list(offset, info.outputs), *scales = number_list(scale, info.outputs);
    const char *curve = info.target_curve;
    const char *before = curve != NULL ? curve : "", *between = curve != NULL ? ", " : "";
    char *text = scaled ? cli_format("%s%soffset %s, scale %s", before, between, offsets, scales)
                        : cli_format("%s%soffset %s", before, between, offsets);
    free(offsets);
    free(scales);
    return text;
}

json_t *cli_members_json(const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    json_t *list = info.member_count > 1 ? json_array() : NULL;
    for (int64_t i = 0; list != NULL && i < info.member_count; i++) {
        char kernel[MERCER_KERNEL_TEXT] = "";
        mercer_model_info member = cli_model_info(info.members[i]);
        mercer_kernel_print(NULL, kernel, sizeof kernel, NULL, member.kernel);
        json_array_append_new(list, json_pack("{ss ss sI}", "kernel", kernel, "preprocess",
                                              cli_preprocess_info(member.preprocess).spec, "centers",
                                              (json_int_t)member.size));
    }
    return list;
}

mercer_dtype cli_result_type(const mercer_model *model)
{
    mercer_model_info info = cli_model_info(model);
    return info.target_offset != NULL && info.labels == NULL ? MERCER_F64 : info.weights.dtype;
}

char *cli_target_text(const cli_values *v, const mercer_dataset_info *info)
{
    char found[CLI_SHORT], what[64];
    int classes = info->task == MERCER_TASK_CLASSIFICATION;
    int open = cli_has(v, "task") && cli_is(v, "task", "auto");
    if (info->task == MERCER_TASK_UNLABELED || strcmp(info->format, "synthetic") == 0) return NULL;
    if (info->distinct > 0)
        snprintf(what, sizeof what, "%s distinct whole numbers", cli_count_text(found, info->distinct));
    else
        snprintf(what, sizeof what, "%s%s", classes ? cli_count_text(found, info->outputs) : "",
                 classes ? " names" : "numbers");
    CLI_OWNED(cli_drop) char *names = NULL;
    for (int64_t i = 0; info->target_names != NULL && i < (classes ? 1 : info->outputs) && i < 8; i++)
        names = cli_append(names, "%s%s%s", i > 0 ? ", " : "", info->target_names[i], i == 7 ? ", ..." : "");
    /* Only whole numbers may be either classes or values; names are always classes, and fractions always values. */
    const char *change = !open || info->distinct == 0 || info->outputs == 0 ? ""
                         : classes                                          ? " (--task regression to change)"
                                                                            : " (--task classification to change)";
    return cli_format("%s%s%s: %s%s", names != NULL ? names : "", names != NULL ? ", " : "", what,
                      task_name(info->task), change);
}

int64_t cli_memory(const cli_values *v)
{
    int64_t bytes = cli_integer(v, "memory");
    if (cli_ranks_memory() > 0) return cli_ranks_memory();
    return bytes > 0 ? bytes : mercer_free_memory() / 2;
}

/* ---- Compatibility of options ------------------------------------------------------------------------------------ */

/* Returns the value of an option, or NULL if it is not set or the command does not have it. */
static const char *optional_text(const cli_values *v, const char *name)
{
    return cli_has(v, name) ? cli_text(v, name) : NULL;
}

static int check_validation(const cli_values *v)
{
    double fraction = cli_number(v, "validation-fraction");
    if (!(fraction < 1))
        return cli_error(CLI_USAGE,
                         "--validation-fraction: %g is not below 1; use, for example, 0.1 for a tenth of "
                         "the rows",
                         fraction);
    if (cli_text(v, "y-val") != NULL && cli_text(v, "x-val") == NULL)
        return cli_error(CLI_USAGE, "--y-val: no samples for these targets; add --x-val FILE");
    if (cli_text(v, "x-val") != NULL && fraction > 0)
        return cli_error(CLI_USAGE, "--x-val and --validation-fraction: only one can be given; remove one of them");
    if (cli_integer(v, "patience") > 0 && cli_text(v, "x-val") == NULL && cli_text(v, "data") == NULL && fraction == 0)
        return cli_error(CLI_USAGE, "--patience: there is no validation set; add --x-val FILE or "
                                    "--validation-fraction 0.1");
    if (cli_integer(v, "patience") > 0 && cli_text(v, "x-val") == NULL && fraction == 0)
        cli_say(v,
                "note: --patience uses the test part of %s to stop training; add --validation-fraction 0.1 to use "
                "training rows instead",
                cli_text(v, "data"));
    return CLI_OK;
}

int cli_check_data(const cli_values *v)
{
    const char *x = cli_text(v, "x"), *data = cli_text(v, "data"), *synth = cli_text(v, "synth");
    int sources = (x != NULL) + (data != NULL) + (synth != NULL);
    if (sources == 0)
        return cli_error(CLI_USAGE,
                         "%s: no data; name a table, as in mercer %s %sTABLE, or add --data DIR or --synth SPEC",
                         cli_command_name(v), cli_command_name(v), cli_has(v, "model") ? "MODEL " : "");
    if (sources > 1)
        return cli_error(CLI_USAGE, "%s: only one of --x, --data and --synth can be given; remove the others",
                         cli_command_name(v));
    if (optional_text(v, "y") != NULL && x == NULL)
        return cli_error(CLI_USAGE, "--y: no samples for these targets; add --x FILE");
    if (cli_is(v, "format", "raw") && cli_text(v, "raw") == NULL)
        return cli_error(CLI_USAGE, "--format raw: the shape is missing; add --raw SHAPE, such as --raw f32:1000x784");
    if (cli_has(v, "part") && cli_text(v, "part") != NULL && data == NULL)
        return cli_error(CLI_USAGE, "--part: has no effect without --data; remove it or add --data DIR");
    return cli_has(v, "validation-fraction") ? check_validation(v) : CLI_OK;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Returns the path of DIR/train-images-idx3-ubyte or one of its variants; NULL if none exists. Release with free. */
static char *find_idx(const char *folder, const char *part, const char *what, int dimensions)
{
    static const char *const separators = "-.";
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 4; i++) {
        char *path =
            cli_format("%s/%s-%s%cidx%d-ubyte%s", folder, part, what, separators[i / 2], dimensions, endings[i % 2]);
        if (access(path, F_OK) == 0) return path;
        free(path);
    }
    return NULL;
}

/* Returns whether a comma-separated list contains the name. */
static int list_contains(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at != NULL ? at + 1 : NULL)
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0) return 1;
    return 0;
}

/* Prints a note about columns that the model was not trained on, except the model's target and the columns copied to
   the output. */
static void note_ignored_columns(const cli_values *v, const cli_request *request, const char *path,
                                 const mercer_dataset_info *info)
{
    const char *first = NULL;
    int64_t count = 0;
    for (int64_t i = 0; info->unused_names != NULL && i < info->unused; i++) {
        const char *name = info->unused_names[i];
        int known = list_contains(optional_text(v, "keep"), name) || list_contains(optional_text(v, "id-column"), name);
        for (int64_t k = 0; k < request->target_count; k++) known = known || strcmp(request->targets[k], name) == 0;
        if (known) continue;
        if (count++ == 0) first = name;
    }
    if (count == 1) cli_say(v, "note: %s: ignoring column '%s', which the model was not trained on", path, first);
    if (count > 1)
        cli_say(v, "note: %s: ignoring %" PRId64 " columns that the model was not trained on: '%s', ...", path, count,
                first);
}

static int open_options(const cli_values *v, mercer_context *context, const cli_request *request,
                        const mercer_dataset_options *options, mercer_dataset **out)
{
    mercer_status status = mercer_dataset_open(out, context, options);
    int from_model = request->targets != NULL && options->target != NULL && cli_text(v, "target") == NULL;
    if (status == MERCER_ERROR_MISMATCH && from_model) {
        /* Find out whether the target column is the only problem: if so, the file can be opened without targets. */
        CLI_OWNED(cli_drop) char *message = cli_copy(mercer_last_error(context));
        mercer_dataset_options rest = *options;
        rest.target = NULL, rest.labels = NULL, rest.label_count = 0, rest.task = MERCER_TASK_UNLABELED;
        CLI_OWNED(cli_drop_dataset) mercer_dataset *data = NULL;
        if (mercer_dataset_open(&data, context, &rest) == MERCER_OK)
            return cli_error(CLI_DATA, "%s: has no column '%s', the target of the model; add --target NAME or --y FILE",
                             options->x, options->target);
        return cli_error(CLI_DATA, "%s", message);
    }
    CLI_TRY(cli_check(context, status));
    mercer_dataset_info info = cli_data_info(*out);
    if (options->columns != NULL || options->schema != NULL) note_ignored_columns(v, request, options->x, &info);
    return CLI_OK;
}

/* Recognizes folders whose files contain both samples and targets, each by a file that is unique to the format. Returns
   the format and sets *files to the file pattern of the requested part. Returns NULL for other folders. */
static const char *find_combined_files(const char *folder, int training, char **files)
{
    static const struct {
        const char *format, *sign, *train, *test;
    } known[] = {{"cifar10", "data_batch_1.bin", "data_batch_*.bin", "test_batch.bin"},
                 {"cifar10", "test_batch.bin", "data_batch_*.bin", "test_batch.bin"},
                 {"cifar100", "train.bin", "train.bin", "test.bin"},
                 {"cifar100", "test.bin", "train.bin", "test.bin"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CLI_OWNED(cli_drop) char *sign = cli_format("%s/%s", folder, known[i].sign);
        if (access(sign, F_OK) != 0) continue;
        *files = cli_format("%s/%s", folder, training ? known[i].train : known[i].test);
        return known[i].format;
    }
    return NULL;
}

static int open_folder(const cli_values *v, mercer_context *context, const cli_request *request, int training,
                       mercer_dataset_options *options, mercer_dataset **out)
{
    const char *folder = cli_text(v, "data"), *part = training ? "train" : "t10k";
    if (access(folder, F_OK) != 0) return cli_error(CLI_MISSING, "%s: the folder does not exist", folder);
    CLI_OWNED(cli_drop) char *records = NULL;
    options->format = find_combined_files(folder, training, &records);
    if (options->format != NULL) {
        options->x = records;
        options->y = NULL;
        return open_options(v, context, request, options, out);
    }
    CLI_OWNED(cli_drop) char *images = find_idx(folder, part, "images", 3);
    CLI_OWNED(cli_drop) char *labels = find_idx(folder, part, "labels", 1);
    if (images == NULL || (labels == NULL && options->task != MERCER_TASK_UNLABELED))
        return cli_error(
            CLI_MISSING,
            "%s: has no %s-%s-idx%d-ubyte (or .gz) and no files of CIFAR; use --x and --y for files with other names",
            folder, part, images == NULL ? "images" : "labels", images == NULL ? 3 : 1);
    options->x = images;
    options->y = options->task == MERCER_TASK_UNLABELED ? NULL : labels;
    options->format = options->y_format = "idx";
    return open_options(v, context, request, options, out);
}

static int open_synthetic(const cli_values *v, mercer_context *context, int64_t first, int64_t rows,
                          mercer_dataset **out)
{
    return cli_check(context, mercer_dataset_synthesize(out, context, cli_text(v, "synth"), first, rows,
                                                        (uint64_t)cli_integer(v, "synth-seed")));
}

static mercer_task requested_task(const cli_values *v, const cli_request *request)
{
    const char *task = optional_text(v, "task");
    if (request->unlabeled) return MERCER_TASK_UNLABELED;
    if (request->labels != NULL) return MERCER_TASK_CLASSIFICATION;
    if (request->regression || (task != NULL && strcmp(task, "regression") == 0)) return MERCER_TASK_REGRESSION;
    if (task != NULL && strcmp(task, "classification") == 0) return MERCER_TASK_CLASSIFICATION;
    return MERCER_TASK_AUTO;
}

/* Returns --columns merged with --drop, which is rewritten as "a:drop,b:drop". NULL if neither is set. Release with
   free. */
static char *requested_kinds(const cli_values *v)
{
    const char *columns = optional_text(v, "columns"), *drop = optional_text(v, "drop");
    char *text = columns != NULL ? cli_copy(columns) : NULL;
    while (drop != NULL) {
        const char *comma = strchr(drop, ',');
        int length = comma != NULL ? (int)(comma - drop) : (int)strlen(drop);
        text = cli_append(text, "%s%.*s:drop", text != NULL ? "," : "", length, drop);
        drop = comma != NULL ? comma + 1 : NULL;
    }
    return text;
}

/* Returns the target columns: --target, or those of the model if targets are read from the table itself. NULL:
   unknown. Release with free. */
static char *requested_target(const cli_values *v, const cli_request *request)
{
    const char *given = cli_text(v, "target");
    char *names = NULL;
    if (given != NULL) return cli_copy(given);
    if (request->unlabeled || cli_text(v, "x") == NULL || optional_text(v, "y") != NULL) return NULL;
    for (int64_t i = 0; i < request->target_count; i++)
        names = cli_append(names, "%s%s", i > 0 ? "," : "", request->targets[i]);
    return names;
}

static void fill_options(const cli_values *v, const cli_request *request, const char *kinds,
                         mercer_dataset_options *options)
{
    *options = (mercer_dataset_options)MERCER_INIT(mercer_dataset_options);
    options->x = cli_text(v, "x");
    options->y = request->unlabeled ? NULL : optional_text(v, "y");
    options->format = cli_text(v, "format");
    options->y_format = optional_text(v, "y-format");
    options->raw = cli_text(v, "raw");
    options->target = cli_text(v, "target");
    options->header = cli_switch(v, "header");
    options->task = requested_task(v, request);
    options->features = request->features > 0 ? request->features : cli_integer(v, "features");
    options->labels = request->labels;
    options->label_count = request->label_count;
    options->columns = request->columns;
    options->column_count = request->column_count;
    options->schema = request->schema;
    if (request->schema == NULL) {
        /* A model without a schema was trained on plain numeric columns. */
        options->kinds = kinds == NULL && request->columns == NULL && request->features > 0 ? "numbers" : kinds;
        options->only = optional_text(v, "only");
        options->missing = optional_text(v, "missing");
    }
    options->weight_column = optional_text(v, "weight-column");
    options->group_column = optional_text(v, "group-column");
    options->time_column = optional_text(v, "time-column");
    /* In mercer predict --id-column has another meaning: a column to copy to the output, which may also be a feature of
       the model. */
    options->id_column = cli_has(v, "model") ? NULL : optional_text(v, "id-column");
    options->first = request->rows > 0 ? request->first : cli_integer(v, "first");
    options->rows = request->rows > 0 ? request->rows : cli_integer(v, "rows");
    options->memory = cli_has(v, "memory") ? cli_memory(v) : 0;
    options->mapping = cli_has(v, "no-map") && cli_flag(v, "no-map") ? MERCER_OFF : MERCER_AUTO;
    /* Commands with --model read their data once, in order, so little memory suffices. */
    options->spill = cli_has(v, "model") ? CLI_USED_ONCE_BYTES : INT64_MAX;
}

int cli_open_data(const cli_values *v, mercer_context *context, const cli_request *request, mercer_dataset **out)
{
    mercer_dataset_options options;
    CLI_OWNED(cli_drop) char *kinds = requested_kinds(v);
    CLI_OWNED(cli_drop) char *target = requested_target(v, request);
    int training = request->training;
    *out = NULL;
    fill_options(v, request, kinds, &options);
    options.target = target;
    if (cli_has(v, "part") && cli_text(v, "part") != NULL) training = cli_is(v, "part", "train");
    if (cli_text(v, "synth") != NULL)
        return open_synthetic(v, context, options.first, options.rows > 0 ? options.rows : 10000, out);
    if (cli_text(v, "data") == NULL) return open_options(v, context, request, &options, out);
    return open_folder(v, context, request, training, &options, out);
}

int cli_open_validation(const cli_values *v, mercer_context *context, const mercer_dataset_info *like,
                        mercer_dataset **out)
{
    mercer_dataset_options options;
    cli_request request = {.regression = like->task == MERCER_TASK_REGRESSION,
                           .labels = like->labels,
                           .label_count = like->labels != NULL ? like->outputs : 0,
                           .columns = like->feature_names,
                           .column_count = like->feature_names != NULL ? like->features : 0,
                           .schema = like->schema,
                           .features = like->features};
    *out = NULL;
    if (like->schema != NULL) request.columns = NULL, request.column_count = 0;
    if (cli_number(v, "validation-fraction") > 0) return CLI_OK;
    fill_options(v, &request, NULL, &options); /* columns and kinds follow the training data */
    options.only = NULL;
    options.first = options.rows = 0;
    if (cli_text(v, "x-val") != NULL) {
        options.x = cli_text(v, "x-val");
        options.y = cli_text(v, "y-val");
        return open_options(v, context, &request, &options, out);
    }
    return cli_text(v, "data") != NULL ? open_folder(v, context, &request, 0, &options, out) : CLI_OK;
}
