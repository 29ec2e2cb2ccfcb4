/* SPDX-License-Identifier: BSD-3-Clause */
/* The program mercer: finds the command, reads its options and runs it. */
#include "job.h"
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads options from, in order of precedence, command line, environment, configuration file, defaults. */
static int read_options(cli_values *v, int count, char **arguments, int *help)
{
    CLI_TRY(cli_parse(v, count, arguments, help));
    if (*help) return CLI_OK;
    CLI_TRY(cli_read_environment(v));
    if (cli_has(v, "config") && cli_text(v, "config") != NULL) CLI_TRY(cli_read_config(v, cli_text(v, "config")));
    return cli_take_positional(v);
}

static int run_command(const cli_command *command, int count, char **arguments)
{
    CLI_OWNED(cli_drop_values) cli_values *v = cli_values_new(command);
    int help = 0;
    CLI_TRY(read_options(v, count, arguments, &help));
    if (help) {
        cli_print_help(stdout, command, help > 1);
        return CLI_OK;
    }
    if (cli_has(v, "print-config") && cli_flag(v, "print-config")) return cli_print_config(v);
    CLI_TRY(cli_check_required(v));
    CLI_TRY(cli_check_files(v));
    CLI_TRY(cli_open_pipes(v));
    CLI_TRY(cli_ranks_open(v));
    CLI_TRY(cli_local_start(v));
    if (cli_comm() == NULL) { /* several ranks handle signals together, in cli_interrupted */
        cli_catch_signals();
        cli_end_on_signals(0, 0, NULL);
    }
    return command->run(v);
}

static int dispatch_command(int count, char **arguments)
{
    if (count < 2) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    const char *name = arguments[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0) {
        printf("mercer %s\n", mercer_version());
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(name);
    if (command != NULL) return run_command(command, count - 2, arguments + 2);
    if (name[0] == '-')
        return cli_error(CLI_USAGE, "%s: options follow a command, as in mercer train %s ...", name, name);
    const char *meant = cli_suggest_command(name);
    if (meant != NULL) return cli_error(CLI_USAGE, "no command '%s'; did you mean '%s'?", name, meant);
    return cli_error(CLI_USAGE, "no command '%s'; see mercer --help", name);
}

/*
 * Replaces a function of OpenBLAS: the definition in a program takes precedence over the library's definition. When
 * OpenBLAS is loaded, it calls this function to get its number of threads. Mercer uses one OpenBLAS thread; more
 * threads would only take memory, and if memory is scarce, OpenBLAS retries the allocation forever. Other BLAS
 * libraries never call this function.
 */
int openblas_num_threads_env(void);
int openblas_num_threads_env(void)
{
    return 1;
}

int main(int count, char **arguments)
{
    cli_start_clock();
    cli_guard_streams();
    cli_outgrow_limits();
    cli_outlive_files();
    cli_options_init();
    int code = dispatch_command(count, arguments);
    /* A failure to write stdout is an error, so flush the buffered output here. */
    errno = 0;
    if (code == CLI_OK && (fflush(stdout) != 0 || ferror(stdout)))
        code = cli_error(CLI_IO, "stdout: cannot write: %s", strerror(errno));
    code = cli_ranks_close(code);
    if (!cli_ends_at_once()) return code;
    fflush(NULL);
    _Exit(code);
}
