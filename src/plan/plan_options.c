/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of training options: names, values, and the solvers that use them.
 *
 * A row describes a field of mercer_train_options that a user may set. Fields that belong to the calling program
 * (callbacks, validation matrices, files) are not listed. To add an option, add a field at the end of
 * mercer_train_options, a row here, and the code that uses it. Checks, the command-line option with its help, man
 * pages, completions, docs/cli.md and Python's keyword are generated from the row.
 *
 * If a solver does not use an option that changes the training, the option is refused, and auto chooses another solver.
 * An unused size of the solver or projector is reported in the plan, and as a warning unless the size could not change
 * the result. A switch that is off, or a period equal to the solver's own, is always accepted. unit_option_use trains
 * with every solver, projector and option to check that none is ignored silently.
 */
#include "plan/plan.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct option_row {
    mercer_option option;
    unsigned trait; /* trait of solvers that use the option; 0: all solvers */
    /* effect of the option with other solvers: an error; a warning and a line in the plan; only the line */
    enum { REFUSED, MENTIONED, NOTED } otherwise;
    unsigned part; /* trait of projectors that use the option; 0: all projectors */
} option_row;

#define ROW_OF(part, field, alias, type, words, limit, trait, otherwise, help) \
    {                                                                          \
        {sizeof(mercer_option),                                                \
         #field,                                                               \
         alias,                                                                \
         MERCER_OPTION_##type,                                                 \
         offsetof(mercer_train_options, field),                                \
         words,                                                                \
         limit,                                                                \
         help},                                                                \
            trait, otherwise, part                                             \
    }
#define ROW(...) ROW_OF(0, __VA_ARGS__)
/* An option of projectors. */
#define PROJECTOR_ROW(part, field, type, help) \
    ROW_OF(part, field, NULL, type, "auto", 0, MRC_USES_PROJECTOR, REFUSED, help)

/* clang-format off */
static const option_row rows[] = {
/*      field, alias, type, words, limit, used by, otherwise, help */
    ROW(solver, "preset", NAME, NULL, 0, 0, REFUSED, "algorithm that computes the weights"),
    ROW(projector, NULL, NAME, NULL, 0, MRC_USES_PROJECTOR, REFUSED, "how the solver projects onto the centers"),
    ROW(epochs, NULL, INTEGER, "auto", 0, MRC_USES_EPOCHS, MENTIONED,
        "passes over the samples; for cg, maximum number of steps"),
    ROW(batch, "batch_size", INTEGER, "auto", 0, MRC_USES_SIZES, MENTIONED, "samples per step"),
    ROW(lambda, "ridge", NUMBER, "auto|none", 0, 0, REFUSED, "ridge: weight of the penalty alpha' K(Z,Z) alpha"),
    ROW(patience, NULL, INTEGER, NULL, 0, MRC_USES_EPOCHS, REFUSED,
        "stop after N epochs without a better validation result and return the best epoch; 0: never"),
    ROW(average, NULL, SWITCH, NULL, 0, MRC_USES_STEPS, REFUSED, "return the average of the later iterates"),
    ROW(decay, NULL, SWITCH, NULL, 0, MRC_USES_STEPS, REFUSED, "decrease the step size in the later epochs"),
    ROW(polish, NULL, INTEGER, NULL, 0, MRC_USES_STEPS, REFUSED, "number of final CG steps on the exact objective"),
    ROW(step_factor, NULL, NUMBER, "auto", 1, MRC_USES_STEPS, REFUSED, "gamma of the step rule, between 0 and 1"),
    ROW(nystrom, NULL, INTEGER, "auto", 0, MRC_USES_SIZES, MENTIONED, "samples of the preconditioner"),
    ROW(eigenpairs, NULL, INTEGER, "auto|none", 0, MRC_USES_EIGENPAIRS, MENTIONED, "eigenpairs of the preconditioner"),
    ROW(period, NULL, INTEGER, "auto", 0, MRC_USES_PERIOD, REFUSED, "batches between projections"),
    PROJECTOR_ROW(MRC_PROJECTOR_SAMPLES, projector_nystrom, INTEGER, "samples of the projector's own preconditioner"),
    PROJECTOR_ROW(MRC_PROJECTOR_SAMPLES, projector_eigenpairs, INTEGER,
        "eigenpairs of the projector's own preconditioner"),
    PROJECTOR_ROW(MRC_PROJECTOR_REPEATS, projector_passes, INTEGER,
        "maximum number of passes over K(Z,Z) in a projection"),
    PROJECTOR_ROW(MRC_PROJECTOR_REPEATS, projector_tolerance, NUMBER, "stop a projection at this relative residual"),
    PROJECTOR_ROW(MRC_PROJECTOR_BLOCKS, projector_block, INTEGER, "centers in a block of bgs"),
    ROW(carry, NULL, SWITCH, NULL, 0, MRC_USES_PROJECTOR, REFUSED, "add the residual of a projection to the next one"),
    ROW(cache, NULL, SWITCH, NULL, 0, MRC_USES_EPOCHS, NOTED, "cache K(X,Z) if it fits into memory"),
    ROW(converge, NULL, SWITCH, NULL, 0, MRC_CONVERGES, REFUSED,
        "use a solver that runs to convergence: krr, direct or cg"),
};
/* clang-format on */

static const option_row *row_at(int index)
{
    return index >= 0 && (size_t)index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const mercer_option *mrc_train_option(int index)
{
    const option_row *row = row_at(index);
    return row ? &row->option : NULL;
}

/* ---- Values -------------------------------------------------------------------------------------------------- */

/* Returns the value of an option as a number; for a name, 1 if it is not auto. */
static double value_of(const mercer_option *option, const mercer_train_options *options)
{
    const void *field = (const char *)options + option->offset;
    switch (option->type) {
        case MERCER_OPTION_INTEGER: return (double)*(const int64_t *)field;
        case MERCER_OPTION_NUMBER: return *(const double *)field;
        case MERCER_OPTION_SWITCH: return *(const mercer_switch *)field;
        case MERCER_OPTION_NAME: break;
    }
    return !mrc_name_is_auto(*(const char *const *)field);
}

/* Returns whether the caller has set an option to a value other than its default. Keywords such as none, stored as -1,
   and a switch set to off remove something, so every solver accepts them. */
static bool is_given(const mercer_option *option, const mercer_train_options *options)
{
    double value = value_of(option, options);
    return option->type == MERCER_OPTION_SWITCH ? value == MERCER_ON : value > 0;
}

static mercer_status check_value(mrc_reason *reason, const mercer_option *option, double value)
{
    /* the value -1 is valid only for options with a second keyword, such as none */
    double least = option->words && strchr(option->words, '|') ? -1 : 0;
    if (option->type == MERCER_OPTION_SWITCH && !(value >= MERCER_AUTO && value <= MERCER_OFF))
        return mrc_refuse(reason, option->name, MERCER_ERROR_ARGUMENT,
                          "options: %s is %g; use MERCER_AUTO, MERCER_ON or MERCER_OFF", option->name, value);
    if (!(value >= 0 || value == least) || isinf(value))
        return mrc_refuse(reason, option->name, MERCER_ERROR_ARGUMENT, "options: %s is %g; it must be >= %g",
                          option->name, value, least);
    if (option->limit > 0 && value >= option->limit)
        return mrc_refuse(reason, option->name, MERCER_ERROR_ARGUMENT, "options: %s is %g; it must be below %g",
                          option->name, value, option->limit);
    return MERCER_OK;
}

/* ---- Use by solvers ---------------------------------------------------------------------------------------------- */

/* Returns whether a solver uses an option, or has the given period anyway. */
static bool has_use(const mrc_solver *solver, const option_row *row, const mercer_train_options *options)
{
    bool own_period = row->trait == MRC_USES_PERIOD && solver->traits & MRC_USES_PROJECTOR &&
                      options->period == solver->preset.period;
    return row->trait == 0 || solver->traits & row->trait || own_period;
}

/* Returns the first given option that the solver refuses; NULL if there is none. */
static const option_row *unsuited(const mrc_solver *solver, const mercer_train_options *options)
{
    const option_row *row;
    for (int i = 0; (row = row_at(i)) != NULL; i++)
        if (row->otherwise == REFUSED && is_given(&row->option, options) && !has_use(solver, row, options)) return row;
    return NULL;
}

const char *mrc_plan_unsuited(const mrc_solver *solver, const mercer_train_options *options)
{
    const option_row *row = unsuited(solver, options);
    return row ? row->option.name : NULL;
}

void mrc_plan_mention_useless(mrc_planner *planner)
{
    mrc_plan *plan = planner->plan;
    const option_row *row;
    for (int i = 0; (row = row_at(i)) != NULL; i++) {
        bool for_solver = has_use(plan->solver, row, planner->options), warns = row->otherwise != NOTED;
        bool for_projector = row->part == 0 || !plan->projector || plan->projector->uses & row->part;
        const char *option = row->option.name, *who = for_solver ? "projector" : "solver",
                   *name = for_solver && plan->projector ? plan->projector->name : plan->solver->name;
        if (!is_given(&row->option, planner->options) || (for_solver && for_projector)) continue;
        mrc_plan_say(&plan->public_plan, "%s%s %s: %s has no effect\n", warns ? "warning: " : "", who, name, option);
        /* a plan from sizes only gives no warning: training measures the kernel matrix and may choose another solver */
        if (warns && !planner->request->sizes_only)
            mrc_plan_warn(plan, option, "%s %s: %s has no effect; remove it", who, name, option);
    }
}

/* Writes the names of the solvers that use an option: "ep4, ep3". */
static void list_users(const option_row *row, char *names, size_t size)
{
    const mrc_solver *solver;
    size_t used = 0;
    names[0] = 0;
    for (int i = 0; (solver = mrc_solver_row(i)) != NULL && used < size; i++)
        if (solver->traits & row->trait)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "", solver->name);
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

/* Fails with a message about an unknown name that lists "auto" and every name of the table. */
static mercer_status fail_unknown_option(mrc_reason *reason, const char *table, const char *name,
                                         const char *(*row)(int i))
{
    char names[256] = "auto";
    for (int i = 0; row(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", row(i));
    }
    return mrc_refuse(reason, table, MERCER_ERROR_ARGUMENT, "%s '%s' is unknown; valid: %s", table, name, names);
}

static const char *solver_name(int i)
{
    return mrc_solver_row(i) ? mrc_solver_row(i)->name : NULL;
}

static const char *projector_name(int i)
{
    return mrc_projector_row(i) ? mrc_projector_row(i)->name : NULL;
}

/* Values are checked before names, so that an invalid value is reported even if the solver refuses the option. */
mercer_status mrc_plan_check_options(const mercer_train_options *o, mrc_reason *reason)
{
    const mrc_solver *row = mrc_solver_find(o->solver);
    for (int i = 0; row_at(i); i++) MRC_TRY(check_value(reason, &row_at(i)->option, value_of(&row_at(i)->option, o)));
    if (o->memory < 0)
        return mrc_refuse(reason, "memory", MERCER_ERROR_ARGUMENT, "options: memory is %lld; it must be >= 0",
                          (long long)o->memory);
    if (o->classification < MERCER_AUTO || o->classification > MERCER_OFF)
        return mrc_refuse(reason, "classification", MERCER_ERROR_ARGUMENT,
                          "options: classification is %d; use MERCER_AUTO, MERCER_ON or MERCER_OFF",
                          (int)o->classification);
    const char *seconds = !(o->progress_seconds >= 0)     ? "progress_seconds"
                          : !(o->checkpoint_seconds >= 0) ? "checkpoint_seconds"
                                                          : NULL;
    if (seconds) return mrc_refuse(reason, seconds, MERCER_ERROR_ARGUMENT, "options: %s is negative or NaN", seconds);
    if (!row && !mrc_name_is_auto(o->solver)) return fail_unknown_option(reason, "solver", o->solver, solver_name);
    const option_row *option = row ? unsuited(row, o) : NULL;
    if (option) {
        char names[256];
        list_users(option, names, sizeof names);
        return mrc_refuse(reason, option->option.name, MERCER_ERROR_ARGUMENT,
                          "options: solver %s (%s) does not support %s; remove it or use one of: %s", row->name,
                          row->description, option->option.name, names);
    }
    if (mrc_name_is_auto(o->projector) || mrc_projector_find(o->projector)) return MERCER_OK;
    return fail_unknown_option(reason, "projector", o->projector, projector_name);
}
