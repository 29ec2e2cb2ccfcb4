/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export: models in other file formats.
 *
 * c99_file.c writes a C file that predicts without the library: the text of c99_runtime.h, which tests compile
 * unchanged, and the data of the model (c99_data.c). onnx_graph.c writes a graph of operators, in double, with the
 * encoder of onnx_proto.h. Both files are written atomically, through mrc_output.
 */
#ifndef MRC_EXPORT_EXPORT_H
#define MRC_EXPORT_EXPORT_H

#include "core/file/file.h"
#include "model/model.h"

/* Write the model to path. Arguments have been checked: the model is in one process only and has a built-in kernel.
   `name` is the prefix of the function names. */
mercer_status mrc_export_c99(const mercer_model *model, const char *path, const char *name);
mercer_status mrc_export_onnx(const mercer_model *model, const char *path);

/* A file that is written through a buffer. The first failure is saved in `status`, and further output is discarded. */
typedef struct mrc_output {
    mrc_writer writer;
    char *buffer;
    int64_t used;
    mercer_status status;
} mrc_output;

mercer_status mrc_output_open(mrc_output *out, mercer_context *context, const char *path);
void mrc_output_bytes(mrc_output *out, const void *data, int64_t bytes);
/* Writes formatted text of less than 4,096 bytes. Formats with a decimal point are not allowed, because they depend on
   the locale. */
void mrc_output_text(mrc_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Renames the file to its final name if nothing has failed, else removes it; releases the buffer. */
mercer_status mrc_output_close(mrc_output *out);

#endif
