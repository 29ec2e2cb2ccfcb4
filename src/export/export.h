/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export: models as files of other kinds.
 *
 * c99_file.c writes a C file that predicts without the library: the text of c99_runtime.h, which tests compile as it
 * is, and the data of the model (c99_data.c). onnx_graph.c writes a graph of operators, in double, through the encoder
 * of onnx_proto.h. Both are written atomically, through the text or bytes below.
 */
#ifndef MRC_EXPORT_EXPORT_H
#define MRC_EXPORT_EXPORT_H

#include "core/file/file.h"
#include "model/model.h"

/* Arguments have been checked; the model is in this process alone and has a kernel with a name. `name` begins the names
   of the functions. */
mercer_status mrc_export_c99(const mercer_model *model, const char *path, const char *name);
mercer_status mrc_export_onnx(const mercer_model *model, const char *path);

/* A file that is written through a buffer. The first failure stays, and what is put after it is lost. */
typedef struct mrc_output {
    mrc_writer writer;
    char *buffer;
    int64_t used;
    mercer_status status;
} mrc_output;

mercer_status mrc_output_open(mrc_output *out, mercer_context *context, const char *path);
void mrc_output_bytes(mrc_output *out, const void *data, int64_t bytes);
/* Neither locale nor length of a text matters: no formats of numbers with a point. */
void mrc_output_text(mrc_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Gives the file its name, if nothing has failed, or removes it; releases the buffer. */
mercer_status mrc_output_close(mrc_output *out);

#endif
