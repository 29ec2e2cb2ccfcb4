/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fuzz targets of the program: initializes its option tables once and captures its output. */
#ifndef MRC_TESTS_FUZZ_PROGRAM_H
#define MRC_TESTS_FUZZ_PROGRAM_H

#include "fuzz/fuzz_file.h"
#include "options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *fuzz_stderr, *fuzz_stdout; /* the real streams while output is captured */

/* Capture stderr in *said and stdout in *page until fuzz_loud. */
static inline void fuzz_quiet(char **said, size_t *said_size, char **page, size_t *page_size)
{
    static int ready;
    if (!ready) cli_options_init();
    ready = 1;
    fuzz_stderr = stderr, fuzz_stdout = stdout;
    stderr = open_memstream(said, said_size), stdout = open_memstream(page, page_size);
    if (stderr == NULL || stdout == NULL) abort();
}

/* Restore the streams and check the captured stderr: it must be lines without control characters. code: exit code of
   the call; an error must have exactly one line, success may have warnings. */
static inline void fuzz_loud(int code, char **said, const size_t *said_size, char **page)
{
    int lines = 0;
    fclose(stderr), fclose(stdout);
    stderr = fuzz_stderr, stdout = fuzz_stdout;
    for (size_t i = 0; i < *said_size; i++) {
        unsigned char c = (unsigned char)(*said)[i];
        if (c == '\n')
            lines++;
        else if (c < 32 || c == 127)
            abort();
    }
    if (code != CLI_OK && lines != 1) abort();
    free(*said), free(*page);
}

#endif
