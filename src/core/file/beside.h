/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries that are loaded when they are needed, looked for beside the one this code is part of.
 *
 * A process with more rights than its caller (set-uid, set-gid, capabilities) has no such place: the caller chooses the
 * environment, and the name that a program is started by.
 */
#ifndef MRC_CORE_FILE_BESIDE_H
#define MRC_CORE_FILE_BESIDE_H

#include <stdbool.h>

enum { MRC_BESIDE_CHARS = 1024 };

bool mrc_has_raised_rights(void);

/* The folder of the library or program this code is part of, without a slash at its end. False where it is not known,
   too long for MRC_BESIDE_CHARS, or not to be used, because of raised rights. */
bool mrc_own_folder(char *folder);

/* Loads a library, RTLD_NOW and local: from where the loader looks, else from the first of the folders that has it. The
   list ends with NULL; a folder that does not begin with a slash is seen from mrc_own_folder. NULL if none has it. */
void *mrc_load_library(const char *name, const char *const *folders);

#endif
