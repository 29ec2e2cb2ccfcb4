/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of a backend as the host sees them: for the few small loops that no operation of the table does. */
#include "backends/backend.h"

#include "core/matrix.h"
#include "core/memory.h"

mercer_status mrc_host_open(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host)
{
    *host = *matrix;
    if (matrix->memory == MERCER_HOST) return MERCER_OK;
    *host = mrc_view(NULL, matrix->rows, matrix->cols, matrix->dtype);
    int64_t elements = matrix->rows * matrix->cols; /* of a matrix that exists: no overflow */
    MRC_TRY(mrc_alloc(backend->context, &host->data, elements, mrc_dtype_size(matrix->dtype), "a copy for the host"));
    mercer_status status = backend->ops->copy(backend, host, matrix);
    if (status == MERCER_OK) return MERCER_OK;
    mrc_free(backend->context, host->data);
    host->data = NULL;
    return status;
}

mercer_status mrc_host_close(mrc_backend *backend, const mercer_matrix *matrix, mercer_matrix *host, bool changed,
                             mercer_status status)
{
    if (matrix->memory == MERCER_HOST || !host->data) return status;
    if (changed && status == MERCER_OK) status = backend->ops->copy(backend, matrix, host);
    mrc_free(backend->context, host->data);
    host->data = NULL;
    return status;
}
