/* SPDX-License-Identifier: BSD-3-Clause */
/* The command inspect: shows the contents of a model file. Loading it checks every size, offset and checksum. */
#include "commands/commands.h"
#include "data.h"
#include "options/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { TEXT = 256 };

typedef struct contents {
    const char *path;
    int64_t bytes;
    mercer_matrix centers, weights;
    char kernel[TEXT], folded[TEXT]; /* kernel as given by the user; kernel as stored, "" if the two are equal */
    const char *preprocess;
    int64_t inputs;       /* number of features of a sample */
    mercer_matrix metric; /* linear map of the kernel's metric; no rows: none */
    char *targets;        /* description of the target transform, owned; NULL: none */
    const double *offset, *scale;
    const char *const *labels;
    int64_t label_count;
    const char *const *features, *const *target_names; /* column names, or NULL */
    int64_t feature_count, target_count;
    const char *note, *schema; /* schema: NULL if the model has none */
    const mercer_model *model;
    json_t *header;
} contents;

static json_t *read_header(mercer_context *context, const char *path)
{
    size_t needed = 0;
    mercer_model_file_header(context, NULL, 0, &needed, path);
    CLI_OWNED(cli_drop) char *text = cli_allocate((int64_t)needed + 1, 1);
    json_t *header = NULL;
    if (mercer_model_file_header(context, text, needed, &needed, path) == MERCER_OK) header = json_loads(text, 0, NULL);
    return header != NULL ? header : json_object();
}

static void collect_contents(mercer_context *context, const mercer_model *model, contents *c)
{
    struct stat state;
    mercer_model_info info = cli_model_info(model);
    mercer_preprocess_info preprocess = cli_preprocess_info(info.preprocess);
    const mercer_kernel *given = preprocess.kernel;
    if (stat(c->path, &state) == 0) c->bytes = (int64_t)state.st_size;
    c->centers = info.centers;
    c->weights = info.weights;
    mercer_kernel_print(context, given != NULL ? c->folded : c->kernel, TEXT, NULL, info.kernel);
    if (given != NULL) mercer_kernel_print(context, c->kernel, TEXT, NULL, given);
    c->preprocess = preprocess.spec;
    c->inputs = info.features;
    c->metric = preprocess.metric;
    c->targets = cli_targets_text(model);
    c->offset = info.target_offset;
    c->scale = info.target_scale;
    c->labels = info.labels;
    c->label_count = info.label_count;
    c->features = info.feature_names;
    c->feature_count = info.feature_names != NULL ? info.features : 0;
    c->target_names = info.target_names;
    c->target_count = info.target_count;
    c->note = info.note;
    c->schema = info.schema;
    c->model = model;
    c->header = read_header(context, c->path);
}

static json_t *number_array(const double *values, int64_t count)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(array, json_real(values[i]));
    return array;
}

static json_t *names_json(const char *const *names, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, cli_json_text(names[i]));
    return list;
}

static int is_diagonal(const contents *c)
{
    return c->metric.rows == 1;
}

static json_t *contents_json(const contents *c)
{
    json_t *labels = names_json(c->labels, c->label_count);
    json_t *note = json_loads(c->note, 0, NULL);
    if (note == NULL) note = cli_json_text(c->note);
    json_t *object =
        json_pack("{so sI sI sI sI ss ss ss ss so so ss so}", "path", cli_json_text(c->path), "bytes",
                  (json_int_t)c->bytes, "centers", (json_int_t)c->centers.rows, "features", (json_int_t)c->inputs,
                  "outputs", (json_int_t)c->weights.cols, "centers_dtype", cli_dtype_name(c->centers.dtype),
                  "weights_dtype", cli_dtype_name(c->weights.dtype), "kernel", c->kernel, "preprocess", c->preprocess,
                  "labels", labels, "training", note, "checksums", "ok", "header", json_incref(c->header));
    json_object_set_new(object, "feature_names", names_json(c->features, c->feature_count));
    json_object_set_new(object, "target_names", names_json(c->target_names, c->target_count));
    if (c->schema != NULL) json_object_set_new(object, "schema", json_loads(c->schema, 0, NULL));
    json_t *members = cli_members_json(c->model);
    if (members != NULL) json_object_set_new(object, "members", members);
    if (c->folded[0] != '\0') json_object_set_new(object, "kernel_in_units_of_data", json_string(c->folded));
    if (c->metric.rows > 0)
        json_object_set_new(object, "metric",
                            json_pack("{ss sI}", "kind", is_diagonal(c) ? "diagonal" : "full", "directions",
                                      (json_int_t)c->metric.cols));
    if (c->offset != NULL)
        json_object_set_new(object, "targets",
                            json_pack("{so so}", "offset", number_array(c->offset, c->weights.cols), "scale",
                                      number_array(c->scale, c->weights.cols)));
    return object;
}

static void print_note(cli_table *table, const char *text)
{
    json_auto_t *note = json_loads(text, 0, NULL);
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(note) && *text != '\0') cli_table_row(table, "note", cli_copy(text));
    json_object_foreach(note, key, value)
    {
        if (json_is_null(value)) continue;
        cli_table_row(table, key,
                      json_is_string(value) ? cli_copy(json_string_value(value))
                                            : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)));
    }
}

/* Adds a row with the first SHOWN names; adds nothing if `names` is NULL or empty. */
static void print_names(cli_table *table, const char *what, const char *const *names, int64_t count)
{
    enum { SHOWN = 20 };
    char *list = count > 0 ? cli_format("%" PRId64 ": ", count) : NULL;
    for (int64_t i = 0; i < count && i < SHOWN; i++) list = cli_append(list, "%s%s", i > 0 ? ", " : "", names[i]);
    cli_table_row(table, what, count > SHOWN ? cli_append(list, ", ...") : list);
}

static void print_contents(const contents *c)
{
    char count[CLI_SHORT], more[CLI_SHORT];
    cli_table *table = cli_table_new(2, "ll");
    cli_table_row(table, "file", cli_format("%s, %s, checksums ok", c->path, cli_bytes_text(count, c->bytes)));
    cli_table_row(table, "kernel", cli_copy(c->kernel));
    if (c->folded[0] != '\0') cli_table_row(table, "", cli_format("%s in the units of the data", c->folded));
    cli_table_row(table, "preprocess", cli_copy(c->preprocess));
    if (c->metric.rows > 0)
        cli_table_row(table, "metric",
                      cli_format("%s, %s features to %s directions", is_diagonal(c) ? "diagonal" : "full",
                                 cli_count_text(count, c->inputs), cli_count_text(more, c->metric.cols)));
    json_auto_t *members = cli_members_json(c->model);
    for (size_t i = 1; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        cli_table_row(table, i == 1 ? "averaged with" : "",
                      cli_format("%s, %s", json_string_value(json_object_get(member, "kernel")),
                                 json_string_value(json_object_get(member, "preprocess"))));
    }
    cli_table_row(table, "targets", c->targets != NULL ? cli_copy(c->targets) : NULL);
    cli_table_row(table, "centers",
                  cli_format("%s x %s %s", cli_count_text(count, c->centers.rows),
                             cli_count_text(more, c->centers.cols), cli_dtype_name(c->centers.dtype)));
    cli_table_row(table, "outputs",
                  cli_format("%" PRId64 ", weights %s", c->weights.cols, cli_dtype_name(c->weights.dtype)));
    print_names(table, "classes", c->labels, c->label_count);
    for (int i = 0; cli_schema_titles[i] != NULL; i++)
        cli_table_row(table, cli_schema_titles[i], cli_schema_text(c->schema, cli_schema_titles[i], c->inputs));
    print_names(table, "feature names", c->features, c->feature_count);
    print_names(table, "target names", c->target_names, c->target_count);
    print_note(table, c->note);
    cli_table_print(table, stdout);
}

static void free_contents(contents *c)
{
    json_decref(c->header);
    free(c->targets);
}

int cli_inspect(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    CLI_OWNED(free_contents) contents c = {.path = cli_positional(v, 0)};
    CLI_TRY(cli_check(NULL, mercer_context_create(&context, NULL)));
    CLI_TRY(cli_check(context, mercer_model_load(&model, context, NULL, c.path)));
    collect_contents(context, model, &c);
    if (cli_flag(v, "json")) return cli_print_answer(contents_json(&c));
    print_contents(&c);
    return CLI_OK;
}
