/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What options may be, and which of them a solver has a use for: the traits of its row.
 *
 *   option                                                        direct  cg    projecting   ep2, ep1, ...  gd
 *   projector, projector_*, carry                                 -       -     yes          -              -
 *   period                                                        -       -     ep4          -              -
 *   step_factor, average, decay, polish                           -       -     yes          yes            yes
 *   epochs                                                        (-)     yes   yes          yes            yes
 *   batch, nystrom                                                (-)     (-)   yes          yes            yes
 *   eigenpairs                                                    (-)     (-)   not nytro    not q = 0      (-)
 *
 *   -    says how to train: refused, and a reason for auto to take another solver
 *   (-)  a size, with nothing here to be the size of: the plan and a warning say so
 *
 * A switch that is off, or a period that is the solver's own, asks for what happens anyway.
 */
#include "plan/plan.h"

#include "plan/option_list.h"

#include <stdio.h>
#include <string.h>

/* ---- Use ----------------------------------------------------------------------------------------------------- */

/* An option that was given, and whether the solver has a use for it. */
typedef struct given_option {
    const char *name;
    bool given, used;
} given_option;

/* The first that was given without use; NULL if there is none. */
static const char *first_without_use(const given_option *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].given && !all[i].used) return all[i].name;
    return NULL;
}

const char *mrc_plan_unsuited(const mrc_solver *row, const mercer_train_options *o)
{
    bool iterates = (row->traits & MRC_USES_STEPS) != 0, projects = (row->traits & MRC_USES_PROJECTOR) != 0;
    bool period = row->traits & MRC_USES_PERIOD || (projects && o->period == row->preset.period);
    const given_option all[] = {{"projector", !mrc_name_is_auto(o->projector), projects},
                                {"projector_nystrom", o->projector_nystrom > 0, projects},
                                {"projector_eigenpairs", o->projector_eigenpairs > 0, projects},
                                {"projector_passes", o->projector_passes > 0, projects},
                                {"projector_tolerance", o->projector_tolerance > 0, projects},
                                {"projector_block", o->projector_block > 0, projects},
                                {"carry", o->carry == MERCER_ON, projects},
                                {"period", o->period > 0, period},
                                {"step_factor", o->step_factor > 0, iterates},
                                {"average", o->average == MERCER_ON, iterates},
                                {"decay", o->decay == MERCER_ON, iterates},
                                {"polish", o->polish > 0, iterates}};
    return first_without_use(all, sizeof all / sizeof *all);
}

const char *mrc_plan_useless_size(const mrc_solver *row, const mercer_train_options *o)
{
    bool sizes = (row->traits & MRC_USES_SIZES) != 0;
    const given_option all[] = {{"epochs", o->epochs > 0, (row->traits & MRC_USES_EPOCHS) != 0},
                                {"batch", o->batch > 0, sizes},
                                {"nystrom", o->nystrom > 0, sizes},
                                {"eigenpairs", o->eigenpairs > 0, (row->traits & MRC_USES_EIGENPAIRS) != 0}};
    return first_without_use(all, sizeof all / sizeof *all);
}

/* ---- Names --------------------------------------------------------------------------------------------------- */

/* "auto" and every name of a table, for the message about one that is not there. */
static mercer_status unknown(mercer_context *context, const char *table, const char *name, const char *(*row)(int i))
{
    char names[256] = "auto";
    for (int i = 0; row(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", row(i));
    }
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s '%s' is unknown; valid: %s", table, name, names);
}

static const char *solver_name(int i)
{
    return mrc_solver_row(i) ? mrc_solver_row(i)->name : NULL;
}

static const char *projector_name(int i)
{
    return mrc_projector_row(i) ? mrc_projector_row(i)->name : NULL;
}

mercer_status mrc_plan_check_options(mercer_context *context, const mercer_train_options *o)
{
    const mrc_solver *row = mrc_solver_find(o->solver);
    MRC_TRY(mrc_check_option_ranges(context, o));
    if (o->memory < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: memory is %lld, it must be >= 0",
                        (long long)o->memory);
    if (!row && !mrc_name_is_auto(o->solver)) return unknown(context, "solver", o->solver, solver_name);
    const char *option = row ? mrc_plan_unsuited(row, o) : NULL;
    if (option)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "options: solver %s (%s) has no use for %s: leave it out, or choose another solver", row->name,
                        row->says, option);
    if (mrc_name_is_auto(o->projector) || mrc_projector_find(o->projector)) return MERCER_OK;
    return unknown(context, "projector", o->projector, projector_name);
}
