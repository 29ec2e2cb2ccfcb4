/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of backends, and their creation. To add a backend, add its name to BACKENDS. */
#include "backends/backend.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "kernels/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Device numbers of at least this value are rejected as invalid. */
enum { MOST_DEVICES = 1024 };

#ifdef MERCER_HAVE_CUDA
#define CUDA(X) X(cuda)
#else
#define CUDA(X)
#endif
#define BACKENDS(X)   X(cpu) X(reference) CUDA(X)
#define DECLARE(name) extern const mrc_backend_ops mrc_##name##_backend;
#define POINT(name)   &mrc_##name##_backend,
BACKENDS(DECLARE)
const mrc_backend_ops *const mrc_backend_registry[] = {BACKENDS(POINT) NULL};

/* A backend and its own copy of the operations table, with defaults filled in, in one allocation. */
typedef struct made_backend {
    mrc_backend backend;
    mrc_backend_ops ops;
} made_backend;

/* Find a backend by the part of name before the colon. Set *device to the number after the colon; 0 without a colon,
   -1 if it is not a valid number. */
static const mrc_backend_ops *find_backend(const char *name, int *device)
{
    *device = 0;
    if (!name) return mrc_backend_registry[0];
    size_t length = strcspn(name, ":");
    if (name[length] == ':') {
        char *end;
        long number = strtol(name + length + 1, &end, 10);
        *device = end != name + length + 1 && *end == 0 && number >= 0 && number < MOST_DEVICES ? (int)number : -1;
    }
    for (int i = 0; mrc_backend_registry[i]; i++) {
        const char *known = mrc_backend_registry[i]->name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) return mrc_backend_registry[i];
    }
    return NULL;
}

/* List the names of the backends in this build, so that a missing backend is visible. */
static mercer_status fail_unknown_backend(mercer_context *context, const char *name)
{
    char names[256] = "";
    for (int i = 0; mrc_backend_registry[i]; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", mrc_backend_registry[i]->name);
    }
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "backend '%s' is not in this build; use one of: %s", name,
                    names);
}

/* Create a backend with a completed copy of its table. If create fails it has released its own resources, and the scope
   releases the struct; destroy is not called. */
static mercer_status make_backend(mrc_backend **out, mercer_context *context, const mrc_backend_ops *ops, int device)
{
    if (ops->api_version != MRC_BACKEND_API)
        return mrc_fail(context, MERCER_ERROR_INTERNAL,
                        "backend %s has version %d of the ops table, but this "
                        "library needs %d",
                        ops->name, ops->api_version, (int)MRC_BACKEND_API);
    made_backend *made;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &made, 1, sizeof *made, "the backend"));
    made->ops = *ops;
    mrc_backend_fill_defaults(&made->ops);
    made->backend = (mrc_backend){.ops = &made->ops, .context = context, .device = device};
    MRC_TRY(ops->create(&made->backend));
    mrc_scope_disown(&scope);
    *out = &made->backend;
    return MERCER_OK;
}

mercer_status mrc_backend_create(mrc_backend **out, mercer_context *context, const char *name)
{
    int device;
    *out = NULL;
    if (name && strcmp(name, "auto") == 0) {
        /* A missing device is not an error: the default backend is always available. */
        for (int i = 0; mrc_backend_registry[i]; i++) {
            const mrc_backend_ops *ops = mrc_backend_registry[i];
            if (ops->devices && mrc_take_error(context, make_backend(out, context, ops, 0)).status == MERCER_OK)
                return MERCER_OK;
        }
        name = NULL;
    }
    const mrc_backend_ops *ops = find_backend(name, &device);
    if (!ops) return fail_unknown_backend(context, name);
    if (device < 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "backend '%s': the device must be a number from 0, such as "
                        "%s:0",
                        name, ops->name);
    return make_backend(out, context, ops, device);
}

/* The default backend opens no device. Any other backend may open a device, unless its quick check finds none. */
static bool may_be_slow(const mrc_backend_ops *ops)
{
    return ops != mrc_backend_registry[0] && (!ops->may_be_here || ops->may_be_here());
}

bool mrc_backend_is_slow(const char *name)
{
    int device;
    const mrc_backend_ops *named = find_backend(name, &device);
    if (named || !name || strcmp(name, "auto") != 0) return named && may_be_slow(named);
    for (int i = 0; mrc_backend_registry[i]; i++)
        if (mrc_backend_registry[i]->devices && may_be_slow(mrc_backend_registry[i])) return true;
    return false;
}

void mrc_backend_free(mrc_backend *backend)
{
    if (!backend) return;
    backend->ops->destroy(backend);
    mrc_free(backend->context, backend);
}

int mrc_device_count(const char *name)
{
    int device;
    const mrc_backend_ops *ops = find_backend(name, &device);
    if (!ops || (name && strchr(name, ':'))) return 0;
    return ops->devices ? ops->devices() : 1;
}

mercer_status mrc_backend_check_kernel(mrc_backend *backend, const mercer_kernel *kernel)
{
    if (mrc_kernel_is_callback(kernel)) return MERCER_OK;
    int32_t id = mrc_kernel_base(kernel->id); /* a slope is supported if its kernel is */
    const mrc_kernel_entry *entry = mrc_kernel_find(id);
    if (!entry)
        return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED, "backend %s: kernel id %d is not a kernel function",
                        backend->ops->name, (int)kernel->id);
    if (!backend->ops->knows_kernel || backend->ops->knows_kernel(id)) return MERCER_OK;
    return mrc_fail(backend->context, MERCER_ERROR_UNSUPPORTED,
                    "backend %s: kernel %s is not supported; use "
                    "backend cpu",
                    backend->ops->name, entry->form.name);
}

mercer_dtype mrc_value_dtype(const mercer_matrix *x, const mercer_matrix *z, const mercer_matrix *w,
                             const mercer_matrix *y)
{
    const mercer_matrix *all[] = {x, z, w, y};
    for (int i = 0; i < 4; i++)
        if (all[i] && all[i]->dtype == MERCER_F64) return MERCER_F64;
    return MERCER_F32;
}
