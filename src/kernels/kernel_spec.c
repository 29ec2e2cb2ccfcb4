/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing and printing of kernel specifications such as "laplace:bandwidth=10". */
#include "kernels/table.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_CHARS = 512 }; /* bytes: enough for a name and six parameters */

mercer_status mrc_kernel_parse(mercer_context *context, mercer_kernel *out, const char *spec)
{
    if (!out) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "out is NULL");
    if (!spec) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "spec is NULL");
    const mrc_spec_grammar grammar = {"kernel", MERCER_ERROR_KERNEL, mrc_kernel_table, sizeof *mrc_kernel_table,
                                      mrc_kernel_table_size};
    mercer_kernel kernel = {0};
    int index;
    MRC_TRY(mrc_spec_read(context, &grammar, spec, &kernel, &index));
    kernel.id = mrc_kernel_table[index].id;
    MRC_TRY(mrc_kernel_check_powers(context, &kernel));
    *out = kernel;
    return MERCER_OK;
}

mercer_status mrc_kernel_print(mercer_context *context, const mercer_kernel *kernel, char *text, size_t size,
                               size_t *needed)
{
    MRC_TRY(mrc_kernel_check(context, kernel));
    if (mrc_kernel_is_callback(kernel))
        return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel: a callback has no text form");
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    char line[TEXT_CHARS];
    size_t bytes = (size_t)snprintf(line, sizeof line, "%s", entry->form.name) + 1;
    for (int i = 0; i < MRC_SPEC_PARAMETERS && entry->form.parameters[i].name; i++) {
        const mrc_parameter *parameter = &entry->form.parameters[i];
        char number[MRC_SPEC_WORD];
        mrc_print_number(mrc_parameter_get(kernel, parameter), number, sizeof number);
        bytes += (size_t)snprintf(line + bytes - 1, sizeof line - bytes + 1, "%c%s=%s", i ? ',' : ':', parameter->name,
                                  number);
    }
    if (needed) *needed = bytes;
    if (bytes > size)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text: %zu bytes are too few; %zu are needed", size, bytes);
    if (!text) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "text is NULL");
    memcpy(text, line, bytes);
    return MERCER_OK;
}
