/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries loaded on demand, searched for next to the library or program that contains this code.
 *
 * In a process with more rights than its caller (set-uid, set-gid, capabilities) that folder is not used: the caller
 * controls the environment and the name that the program is started by.
 */
#ifndef MRC_CORE_FILE_BESIDE_H
#define MRC_CORE_FILE_BESIDE_H

#include <stdbool.h>

enum { MRC_BESIDE_CHARS = 1024 };

bool mrc_has_raised_rights(void);

/* Writes the folder of the library or program that contains this code to folder (MRC_BESIDE_CHARS), without a trailing
   slash. False if it is unknown, too long, or must not be used because of raised rights. */
bool mrc_own_folder(char *folder);

/* Loads a library with RTLD_NOW and RTLD_LOCAL: from the loader's search path, otherwise from the first of `folders`
   that has it. The list ends with NULL; relative folders start at mrc_own_folder. NULL if the library is not found. */
void *mrc_load_library(const char *name, const char *const *folders);

#endif
