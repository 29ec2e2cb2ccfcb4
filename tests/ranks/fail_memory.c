/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Module for LD_PRELOAD: allocation number MERCER_FAULT_AT (from 0) of the program in rank MERCER_FAULT_RANK fails.
 * Allocations of MPI do not count. The number of allocations is written to the file MERCER_FAULT_COUNTS.RANK at exit.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long requests, fail_at = -1;
static const char *rank;

__attribute__((constructor)) static void prepare(void)
{
    const char *at = getenv("MERCER_FAULT_AT"), *victim = getenv("MERCER_FAULT_RANK");
    rank = getenv("OMPI_COMM_WORLD_RANK");
    if (at && victim && rank && strcmp(rank, victim) == 0) fail_at = strtoll(at, NULL, 10);
}

__attribute__((destructor)) static void tell(void)
{
    const char *name = getenv("MERCER_FAULT_COUNTS");
    char path[4096];
    if (!name || !rank) return;
    snprintf(path, sizeof path, "%s.%s", name, rank);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "%lld\n", requests);
    fclose(file);
}

/* Replaces the function that the library's default allocator calls. */
int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    int (*next)(void **, size_t, size_t) = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    Dl_info caller;
    const char *name = dladdr(__builtin_return_address(0), &caller) && caller.dli_fname ? caller.dli_fname : "";
    const char *last = strrchr(name, '/');
    if (strcmp(last ? last + 1 : name, "mercer") != 0) return next(out, alignment, bytes);
    return __atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED) == fail_at ? ENOMEM : next(out, alignment, bytes);
}
