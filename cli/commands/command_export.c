/* SPDX-License-Identifier: BSD-3-Clause */
/* The command export: writes a model as a file that predicts without Mercer. */
#include "commands/commands.h"
#include "data.h"
#include "options/options.h"

#include <string.h>

int cli_export(const cli_values *v)
{
    CLI_OWNED(cli_drop_context) mercer_context *context = NULL;
    CLI_OWNED(cli_drop_model) mercer_model *model = NULL;
    const char *output = cli_text(v, "output");
    mercer_export_options options = MERCER_INIT(mercer_export_options);
    if (strcmp(output, "-") == 0)
        return cli_error(CLI_USAGE, "--output: an exported model cannot be written to stdout; name a file");
    CLI_TRY(cli_check_output(output));
    options.format = cli_is(v, "format", "auto") ? NULL : cli_text(v, "format");
    options.name = cli_text(v, "name");
    CLI_TRY(cli_check(NULL, mercer_context_create(&context, NULL)));
    CLI_TRY(cli_check(context, mercer_model_load(&model, context, NULL, cli_positional(v, 0))));
    CLI_TRY(cli_check(context, mercer_model_export(model, output, &options)));
    int64_t centers = cli_model_info(model).size;
    cli_say(v, "%s: %lld centers", output, (long long)centers);
    if (!cli_flag(v, "json")) return CLI_OK;
    return cli_print_answer(json_pack("{so sI}", "output", cli_json_text(output), "centers", (json_int_t)centers));
}
