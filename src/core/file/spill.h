/* SPDX-License-Identifier: BSD-3-Clause */
/* A temporary file without a name, for data that does not fit into memory: written once, then mapped. */
#ifndef MRC_CORE_SPILL_H
#define MRC_CORE_SPILL_H

#include "core/file/file.h"

typedef struct mrc_spill {
    mercer_context *context;
    const char *folder; /* $TMPDIR, or /tmp */
    int descriptor;     /* -1: closed */
    char *buffer;
    int64_t used;    /* bytes in the buffer */
    int64_t written; /* bytes in the file */
} mrc_spill;

/* Creates the file. Errors: IO, MEMORY. Call mrc_spill_close after a failure too. */
mercer_status mrc_spill_open(mrc_spill *out, mercer_context *context);
/* Appends bytes. Fails if the free disk space is below a tenth of the bytes written so far. */
mercer_status mrc_spill_write(mrc_spill *spill, const void *data, int64_t bytes);
/* Maps the file and closes it. Its disk space is freed when the mapping is released. */
mercer_status mrc_spill_map(mrc_spill *spill, mrc_mapping *out);
void mrc_spill_close(mrc_spill *spill);

#endif
