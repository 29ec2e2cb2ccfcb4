/* SPDX-License-Identifier: BSD-3-Clause */
/* Which element of a file is to blame when the library finds a value that is not finite: it only sees parts of it. */
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The first element of a block that is NaN or infinite, or -1. */
static int64_t first_bad(const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) return i;
    }
    return -1;
}

/* Prints where a value that is not finite stands; false if all are finite. */
static int find_bad(const mercer_dataset *dataset, const char *name)
{
    mercer_dataset_info info = cli_data_info(dataset);
    int64_t most = 1 + (1 << 20) / (info.features + 1), place = -1;
    if (info.dtype == MERCER_U8) return 0;
    double *values = cli_allocate(most * info.features, sizeof *values);
    for (int64_t first = 0; first < info.rows && place < 0; first += most) {
        int64_t m = info.rows - first < most ? info.rows - first : most;
        mercer_matrix X = mercer_matrix_view(values, m, info.features, MERCER_F64);
        if (mercer_dataset_read(dataset, &X, NULL, NULL, NULL, NULL, first) != MERCER_OK) break;
        place = first_bad(values, m * info.features);
        if (place >= 0)
            cli_error(CLI_DATA,
                      "%s: row %" PRId64 ", column %" PRId64 " (from 0) is %s: replace it or leave the row out", name,
                      first + place / info.features, place % info.features, isnan(values[place]) ? "NaN" : "infinite");
    }
    free(values);
    return place >= 0;
}

int cli_fail_on(mercer_context *context, mercer_status status, const mercer_dataset *dataset, const char *name)
{
    if (status == MERCER_ERROR_DATA && dataset != NULL) {
        char *message = cli_copy(mercer_last_error(context));
        if (!find_bad(dataset, name)) cli_error(CLI_DATA, "%s: %s", name, message);
        free(message);
        return CLI_DATA;
    }
    return cli_fail(context, status);
}
