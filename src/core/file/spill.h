/* SPDX-License-Identifier: BSD-3-Clause */
/* A temporary file without a name: what does not fit into memory is written there once and then mapped. */
#ifndef MRC_CORE_SPILL_H
#define MRC_CORE_SPILL_H

#include "core/file/file.h"

typedef struct mrc_spill {
    mercer_context *context;
    const char *folder; /* $TMPDIR, or /tmp */
    int descriptor;     /* -1: closed */
    char *buffer;
    int64_t used;    /* bytes of the buffer */
    int64_t written; /* bytes of the file */
} mrc_spill;

/* Errors: IO, MEMORY. On failure nothing is left to be closed. */
mercer_status mrc_spill_open(mrc_spill *out, mercer_context *context);
/* Appends. Refused where the disk has less left than a tenth of what was written. */
mercer_status mrc_spill_write(mrc_spill *spill, const void *data, int64_t bytes);
/* Maps what was written, and closes. The bytes are gone when the mapping is. */
mercer_status mrc_spill_map(mrc_spill *spill, mrc_mapping *out);
void mrc_spill_close(mrc_spill *spill);

#endif
