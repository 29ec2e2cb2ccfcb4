/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public: export of models to other file formats.
 *
 * The writers in src/export rely on the checks here: each member has a built-in kernel, this process has all rows of
 * the centers and weights, and the name can begin C identifiers. Everything is checked before a file is created.
 */
#include "api/api_options.h"
#include "export/export.h"
#include "kernels/kernel.h"

#include <string.h>

/* The formats, indexed by the enumeration below. */
static const struct {
    const char *name, *ending;
} formats[] = {{"c99", ".c"}, {"onnx", ".onnx"}};
enum { C99, ONNX, FORMATS };

/* Returns whether the text ends with `end` and has other characters before it. */
static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), more = strlen(end);
    return length > more && strcmp(text + length - more, end) == 0;
}

/* Finds the format by its name or, if asked is NULL, by the ending of the path. */
static mercer_status find_format(mercer_context *context, const char *path, const char *asked, int *out)
{
    for (*out = 0; *out < FORMATS; ++*out)
        if (asked ? strcmp(asked, formats[*out].name) == 0 : ends_with(path, formats[*out].ending)) return MERCER_OK;
    if (asked) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "format '%s' is unknown; valid: c99, onnx", asked);
    return mrc_fail(context, MERCER_ERROR_ARGUMENT, "%s: the name ends in neither .c nor .onnx; set the format", path);
}

/* Returns whether the text is a C identifier of at most 63 characters. Letters are listed, because isalpha depends on
   the locale. The name becomes part of every function name, so that several models can be linked together. */
static bool is_name(const char *text)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", *digits = "0123456789";
    size_t first = strspn(text, letters), length = strlen(text);
    for (size_t i = first; i < length; i++)
        if (!strchr(letters, text[i]) && !strchr(digits, text[i])) return false;
    return first > 0 && length < 64;
}

mercer_status mercer_model_export(mercer_model *model, const char *path, const mercer_export_options *options)
{
    if (!model) return mrc_fail(NULL, MERCER_ERROR_ARGUMENT, "model is NULL");
    mercer_context *context = model->context;
    if (!path) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "path is NULL");
    mercer_export_options ours;
    int format;
    MRC_TRY(mrc_read_struct(context, &ours, MRC_STRUCT(mercer_export_options), options, "options"));
    MRC_TRY(find_format(context, path, ours.format, &format));
    if (!ours.name) ours.name = "model";
    if (!is_name(ours.name))
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "name '%.80s' is not a prefix of a C function name; use at most 63 letters, digits and _",
                        ours.name);
    for (int64_t m = 0; m < model->member_count; m++)
        if (mrc_kernel_is_callback(&model->members[m]->kernel))
            return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                            "format %s cannot express a callback kernel; use a built-in kernel", formats[format].name);
    if (model->comm && model->comm->ranks > 1)
        return mrc_fail(
            context, MERCER_ERROR_UNSUPPORTED,
            "format %s: the model is shared by ranks; save the model, load it in one process and export it there",
            formats[format].name);
    return format == C99 ? mrc_export_c99(model, path, ours.name) : mrc_export_onnx(model, path);
}
