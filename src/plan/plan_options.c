/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What options may be, and which of them a solver has a use for.
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
#include "plan/option_list.h"
#include "plan/plan_parts.h"

#include <string.h>

mercer_status mrc_plan_check_options(mercer_context *context, const mercer_train_options *o)
{
    MRC_TRY(mrc_check_option_ranges(context, o));
    if (o->memory >= 0) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "options: memory is %lld, it must be >= 0", (long long)o->memory);
}

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

const char *mrc_plan_unsuited(const mrc_preset *preset, const mercer_train_options *o)
{
    bool iterates = !preset->exact, projects = iterates && preset->update == MRC_UPDATE_PROJECT;
    bool period = projects && (preset->period == 0 || o->period == preset->period);
    const given_option all[] = {{"projector", o->projector && strcmp(o->projector, "auto") != 0, projects},
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

const char *mrc_plan_useless_size(const mrc_preset *preset, const mercer_train_options *o)
{
    bool iterates = !preset->exact;
    const given_option all[] = {{"epochs", o->epochs > 0, iterates || strcmp(preset->name, "direct") != 0},
                                {"batch", o->batch > 0, iterates},
                                {"nystrom", o->nystrom > 0, iterates},
                                {"eigenpairs", o->eigenpairs > 0, iterates && !preset->no_eigenpairs}};
    return first_without_use(all, sizeof all / sizeof *all);
}
