/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the folder of this library, and loads other libraries from folders relative to it. */
#define _GNU_SOURCE /* dladdr */
#include "core/file/beside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool mrc_has_raised_rights(void)
{
    return getauxval(AT_SECURE) != 0;
}

bool mrc_own_folder(char *folder)
{
    static const char here; /* an address inside the library or program that contains this code */
    Dl_info about;
    folder[0] = 0;
    if (mrc_has_raised_rights() || !dladdr(&here, &about) || !about.dli_fname) return false;
    /* If a program was found through PATH, the loader knows only its name. */
    ssize_t length =
        strchr(about.dli_fname, '/') ? -1 : readlink("/proc/self/exe", folder, (size_t)MRC_BESIDE_CHARS - 1);
    if (length < 0) length = snprintf(folder, MRC_BESIDE_CHARS, "%s", about.dli_fname);
    char *slash = NULL;
    if (length < MRC_BESIDE_CHARS - 1) {
        folder[length] = 0;
        slash = strrchr(folder, '/');
    }
    if (slash) *slash = 0;
    return slash != NULL;
}

void *mrc_load_library(const char *name, const char *const *folders)
{
    char own[MRC_BESIDE_CHARS], path[2 * MRC_BESIDE_CHARS];
    bool known = mrc_own_folder(own);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (; !library && *folders; folders++) {
        bool absolute = **folders == '/';
        if (!absolute && !known) continue;
        int length = snprintf(path, sizeof path, "%s%s%s/%s", absolute ? "" : own, absolute ? "" : "/", *folders, name);
        if (length < (int)sizeof path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}
