/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of some of the library's own sources (CMakeLists.txt lists them), from which exported files copy functions. */
#ifndef MRC_EXPORT_SOURCE_TEXT_H
#define MRC_EXPORT_SOURCE_TEXT_H

#include <stdint.h>

typedef struct mrc_source_text {
    const char *name, *text;
} mrc_source_text;

/* Ended by one without a name. */
extern const mrc_source_text mrc_source_texts[];

/* Where in the source the function stands whose name is `function`, from the comment before it to its last brace, and
   how long it is; NULL if there is none. */
const char *mrc_source_function(const char *source, const char *function, int64_t *length);

#endif
