/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli/commands: one file per command of the program, command_NAME.c, and the table of commands, command_table.c.
 *
 * A command reads its options, calls the library, prints the results and returns an exit code. All decisions about
 * training are made by the library. evaluate.h declares the evaluation that eval, train and demo share. The folder
 * demo/ contains the demonstration.
 */
#ifndef MERCER_CLI_COMMANDS_H
#define MERCER_CLI_COMMANDS_H

#include "cli.h"

/* Each command is a function that returns the exit code. */
int cli_train(const cli_values *v);
int cli_resume(const cli_values *v);
int cli_predict(const cli_values *v);
int cli_eval(const cli_values *v);
int cli_plan(const cli_values *v);
int cli_inspect(const cli_values *v);
int cli_explain(const cli_values *v);
int cli_export(const cli_values *v);
int cli_centers(const cli_values *v);
int cli_synth(const cli_values *v);
int cli_convert(const cli_values *v);
int cli_bench(const cli_values *v);
int cli_demo(const cli_values *v);
int cli_report(const cli_values *v);
int cli_completions(const cli_values *v);
int cli_man(const cli_values *v);
int cli_help(const cli_values *v);

#endif
