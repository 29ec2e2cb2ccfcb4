/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of options of training. A row describes a field of mercer_train_options that a person may set; fields that
 * belong to the caller's program (callbacks, validation matrices, files) are not in it.
 *
 * To add an option: a field at the end of mercer_train_options, a row here, and the code that uses it. Checks, the
 * program's option with its help, man pages, completions, docs/cli.md and Python's keyword follow.
 */
#include "plan/option_list.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define FIELD(name) sizeof(mercer_option), #name
#define AT(name)    offsetof(mercer_train_options, name)

static const mercer_option options[] = {
    {FIELD(solver), NULL, MERCER_OPTION_NAME, AT(solver), NULL, 0, "how the weights are found"},
    {FIELD(projector), NULL, MERCER_OPTION_NAME, AT(projector), NULL, 0, "how the solver projects onto the centers"},
    {FIELD(epochs), NULL, MERCER_OPTION_INTEGER, AT(epochs), "auto", 0, "passes over the samples; for cg, most steps"},
    {FIELD(batch), "batch_size", MERCER_OPTION_INTEGER, AT(batch), "auto", 0, "samples in a step"},
    {FIELD(lambda), "ridge", MERCER_OPTION_NUMBER, AT(lambda), NULL, 0, "ridge: + V alpha' K(Z,Z) alpha"},
    {FIELD(patience), NULL, MERCER_OPTION_INTEGER, AT(patience), NULL, 0,
     "stop after so many epochs without a better validation result, and keep the best; 0: never"},
    {FIELD(average), NULL, MERCER_OPTION_SWITCH, AT(average), NULL, 0, "return the average of the later iterates"},
    {FIELD(decay), NULL, MERCER_OPTION_SWITCH, AT(decay), NULL, 0, "let the step fall in the later epochs"},
    {FIELD(polish), NULL, MERCER_OPTION_INTEGER, AT(polish), NULL, 0,
     "so many CG steps on the true objective at the end"},
    {FIELD(step_factor), NULL, MERCER_OPTION_NUMBER, AT(step_factor), "auto", 1,
     "gamma of the step rule, between 0 and 1"},
    {FIELD(nystrom), NULL, MERCER_OPTION_INTEGER, AT(nystrom), "auto", 0, "samples of the preconditioner"},
    {FIELD(eigenpairs), NULL, MERCER_OPTION_INTEGER, AT(eigenpairs), "auto|none", 0,
     "eigenpairs of the preconditioner"},
    {FIELD(period), NULL, MERCER_OPTION_INTEGER, AT(period), "auto", 0, "batches between projections"},
    {FIELD(projector_nystrom), NULL, MERCER_OPTION_INTEGER, AT(projector_nystrom), "auto", 0,
     "samples of the projector's own preconditioner"},
    {FIELD(projector_eigenpairs), NULL, MERCER_OPTION_INTEGER, AT(projector_eigenpairs), "auto", 0, "its eigenpairs"},
    {FIELD(projector_passes), NULL, MERCER_OPTION_INTEGER, AT(projector_passes), "auto", 0,
     "at most so many passes over K(Z,Z) in a projection"},
    {FIELD(projector_tolerance), NULL, MERCER_OPTION_NUMBER, AT(projector_tolerance), "auto", 0,
     "stop a projection at this relative residual"},
    {FIELD(projector_block), NULL, MERCER_OPTION_INTEGER, AT(projector_block), "auto", 0, "centers in a block of bgs"},
    {FIELD(carry), NULL, MERCER_OPTION_SWITCH, AT(carry), NULL, 0, "add what a projection leaves over to the next"},
    {FIELD(cache), NULL, MERCER_OPTION_SWITCH, AT(cache), NULL, 0, "keep K(X,Z) if it fits"},
};

const mercer_option *mrc_train_option(int index)
{
    return index >= 0 && (size_t)index < sizeof options / sizeof *options ? &options[index] : NULL;
}

double mrc_option_value(const mercer_option *option, const mercer_train_options *of)
{
    const char *field = (const char *)of + option->offset;
    switch (option->type) {
        case MERCER_OPTION_INTEGER: return (double)*(const int64_t *)(const void *)field;
        case MERCER_OPTION_NUMBER: return *(const double *)(const void *)field;
        case MERCER_OPTION_SWITCH: return *(const mercer_switch *)(const void *)field;
        case MERCER_OPTION_NAME: break;
    }
    const char *name = *(const char *const *)(const void *)field;
    return name && strcmp(name, "auto") != 0;
}

/* The least value: -1 where that has a name. */
static double least(const mercer_option *option)
{
    return option->words && strchr(option->words, '|') ? -1 : 0;
}

mercer_status mrc_check_option_ranges(mercer_context *context, const mercer_train_options *of)
{
    const mercer_option *option;
    for (int i = 0; (option = mrc_train_option(i)) != NULL; i++) {
        double value = mrc_option_value(option, of);
        if (option->type == MERCER_OPTION_SWITCH && !(value >= MERCER_AUTO && value <= MERCER_OFF))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                            "options: %s is %g; use MERCER_AUTO, MERCER_ON or MERCER_OFF", option->name, value);
        if (!(value >= least(option)) || isinf(value))
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %g, it must be >= %g", option->name, value,
                            least(option));
        if (option->limit > 0 && value >= option->limit)
            return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: %s is %g, it must be below %g", option->name,
                            value, option->limit);
    }
    return MERCER_OK;
}
