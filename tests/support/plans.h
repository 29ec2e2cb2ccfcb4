/* SPDX-License-Identifier: BSD-3-Clause */
/* Planner calls that store the reason of a failure as the context's error, for assert_fails. */
#ifndef SUPPORT_PLANS_H
#define SUPPORT_PLANS_H

#include "plan/plan.h"

static inline mercer_status as_error(mercer_context *on, mercer_status status, const mrc_reason *reason)
{
    return status == MERCER_OK ? MERCER_OK : mrc_fail_with(on, reason);
}

static inline mercer_status make_plan(mercer_context *on, mrc_plan *plan, const mrc_plan_request *request)
{
    mrc_reason reason;
    return as_error(on, mrc_make_plan(plan, request, &reason), &reason);
}

static inline mercer_status refine_plan(mercer_context *on, mrc_plan *plan, const mrc_plan_request *request)
{
    mrc_reason reason;
    return as_error(on, mrc_refine_plan(plan, request, &reason), &reason);
}

static inline mercer_status replace_plan(mercer_context *on, mrc_plan *plan, const mrc_plan_request *request,
                                         const mrc_solver *row, const char *why)
{
    mrc_reason reason;
    return as_error(on, mrc_replace_plan(plan, request, &(mrc_attempt){.solver = row}, why, &reason), &reason);
}

static inline mercer_status check_options(mercer_context *on, const mercer_train_options *options)
{
    mrc_reason reason;
    return as_error(on, mrc_plan_check_options(options, &reason), &reason);
}

#endif
