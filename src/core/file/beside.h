/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries that are loaded on demand, from folders near the library or program that contains this code.
 *
 * These folders are not used in a process that has more privileges than its caller (set-uid, set-gid, capabilities).
 * Otherwise the caller could link to the program from another folder and run any code with these privileges.
 */
#ifndef MRC_CORE_FILE_BESIDE_H
#define MRC_CORE_FILE_BESIDE_H

#include <stdbool.h>

enum { MRC_BESIDE_CHARS = 1024 };

bool mrc_has_raised_rights(void);

/* Writes the folder of the library or program that contains this code to folder (MRC_BESIDE_CHARS), without a trailing
   slash. Returns false if the folder is unknown or its path is too long, or if the process has elevated privileges. */
bool mrc_own_folder(char *folder);

/* Loads a library (RTLD_NOW, RTLD_LOCAL) from the loader's search path, or else from the first of `folders` that
   contains it. The list ends with NULL; relative folders are relative to mrc_own_folder. Returns NULL if the library is
   not found. */
void *mrc_load_library(const char *name, const char *const *folders);

#endif
