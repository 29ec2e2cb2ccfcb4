/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two forms of the command bench share. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"

/* Trains on computed digits, random centers, everything at its default. The report's plan is put into *plan. */
mercer_status cli_train_digits(const cli_values *v, mercer_context *context, const char *solver, int64_t rows,
                               int64_t p, mercer_report *report, mercer_plan *plan);
int cli_bench_gpu(const cli_values *v);

#endif
