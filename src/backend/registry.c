/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of backends, and how one is made. A new backend is one line here. */
#include "backend/backend.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

extern const mrc_backend_ops mrc_cpu_backend;
extern const mrc_backend_ops mrc_reference_backend;

const mrc_backend_ops *const mrc_backend_registry[] = {&mrc_cpu_backend, &mrc_reference_backend, NULL};

/* A backend with a complete copy of its table: two objects in one allocation. */
typedef struct made_backend {
    mrc_backend backend;
    mrc_backend_ops ops;
} made_backend;

static const mrc_backend_ops *find(const char *name)
{
    if (!name) return mrc_backend_registry[0];
    for (int i = 0; mrc_backend_registry[i]; i++)
        if (strcmp(mrc_backend_registry[i]->name, name) == 0) return mrc_backend_registry[i];
    return NULL;
}

mercer_status mrc_backend_create(mrc_backend **out, mercer_context *context, const char *name)
{
    *out = NULL;
    const mrc_backend_ops *ops = find(name);
    if (!ops) {
        char names[256] = "";
        for (int i = 0; mrc_backend_registry[i]; i++) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", mrc_backend_registry[i]->name);
        }
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "backend '%s' is not in this build; it has: %s", name,
                        names);
    }
    if (ops->api_version != MRC_BACKEND_API)
        return mrc_fail(context, MERCER_ERROR_INTERNAL, "backend %s speaks version %d of the ops table, this is %d",
                        ops->name, ops->api_version, (int)MRC_BACKEND_API);
    void *memory;
    MRC_TRY(mrc_alloc_zero(context, &memory, 1, sizeof(made_backend), "the backend"));
    made_backend *made = memory;
    made->ops = *ops;
    mrc_backend_fill_defaults(&made->ops);
    made->backend = (mrc_backend){.ops = &made->ops, .context = context};
    mercer_status status = ops->create(&made->backend);
    if (status != MERCER_OK) {
        mrc_free(context, made);
        return status;
    }
    *out = &made->backend;
    return MERCER_OK;
}

void mrc_backend_free(mrc_backend *backend)
{
    if (!backend) return;
    backend->ops->destroy(backend);
    mrc_free(backend->context, backend);
}

mercer_dtype mrc_value_dtype(const mercer_matrix *x, const mercer_matrix *z, const mercer_matrix *w,
                             const mercer_matrix *y)
{
    const mercer_matrix *all[] = {x, z, w, y};
    for (int i = 0; i < 4; i++)
        if (all[i] && all[i]->dtype == MERCER_F64) return MERCER_F64;
    return MERCER_F32;
}
