/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses the installed library. Valid C and C++. Argument: the expected version of the library. */
#include <mercer/mercer.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char compiled[64];
    snprintf(compiled, sizeof compiled, "%d.%d.%d", MERCER_VERSION_MAJOR, MERCER_VERSION_MINOR, MERCER_VERSION_PATCH);
    if (argc != 2 || strcmp(mercer_version(), argv[1]) != 0 || strcmp(compiled, argv[1]) != 0) {
        fprintf(stderr, "library %s, header %s, expected %s\n", mercer_version(), compiled, argc > 1 ? argv[1] : "?");
        return 1;
    }
    /* Creating a context uses the backend, and so the libraries that the library depends on. */
    mercer_context *context = NULL;
    mercer_status status = mercer_context_create(&context, NULL);
    if (status != MERCER_OK) {
        fprintf(stderr, "%s: %s\n", mercer_status_string(status), mercer_last_error(NULL));
        return 1;
    }
    mercer_context_free(context);
    printf("%s %s\n", mercer_version(), mercer_status_string((mercer_status)0));
    return 0;
}
