/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for exchanges that failed: the same for ranks that are processes and ranks that are threads. */
#include "comm/comm.h"

#include <stdio.h>

enum { LIST_CHARS = 200 };

/* "rank 2 (node7, process 1234), rank 3 ..." */
static void list_missing(int ranks, const mrc_rank_place *places, const unsigned char *missing, char *text)
{
    int used = 0, listed = 0, all = 0;
    for (int r = 0; r < ranks; r++) all += missing[r];
    for (int r = 0; r < ranks && used < LIST_CHARS / 2 && listed < 3; r++) {
        if (!missing[r]) continue;
        used += snprintf(text + used, (size_t)(LIST_CHARS - used), "%srank %d", listed++ ? ", " : "", r);
        if (places)
            used += snprintf(text + used, (size_t)(LIST_CHARS - used), " (%.40s, process %lld)", places[r].host,
                             (long long)places[r].process);
    }
    if (all > listed) snprintf(text + used, (size_t)(LIST_CHARS - used), " and %d others", all - listed);
}

mercer_status mrc_comm_check(mrc_comm *comm, const mrc_comm_error *failure)
{
    char who[LIST_CHARS] = "another rank";
    switch (failure->kind) {
        case MRC_COMM_ERROR_DONE: return MERCER_OK;
        case MRC_COMM_ERROR_LEFT:
            comm->left_code = failure->code;
            return mrc_fail(comm->context, MERCER_ERROR_COMM, "rank %d ended: %s", failure->rank, failure->text);
        case MRC_COMM_ERROR_SILENT:
            list_missing(comm->ranks, comm->places, failure->missing, who);
            return mrc_fail(comm->context, MERCER_ERROR_COMM,
                            "%s has died or stopped: no word for %.3g s, the deadline; the job ends", who,
                            comm->deadline);
        case MRC_COMM_ERROR_FAILED: break;
    }
    return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: %s", comm->module->name, failure->text);
}
