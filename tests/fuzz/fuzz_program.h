/* SPDX-License-Identifier: BSD-3-Clause */
/* What the targets of the program share: its tables are made once, and what it says goes nowhere. */
#ifndef MRC_TESTS_FUZZ_PROGRAM_H
#define MRC_TESTS_FUZZ_PROGRAM_H

#include "fuzz/fuzz_file.h"
#include "options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *fuzz_stderr, *fuzz_stdout; /* the real ones, while the program's lead elsewhere */

/* Until fuzz_loud: stderr leads into a text that must be lines without control characters, stdout into *page. */
static inline void fuzz_quiet(char **said, size_t *said_size, char **page, size_t *page_size)
{
    static int ready;
    if (!ready) cli_options_init();
    ready = 1;
    fuzz_stderr = stderr, fuzz_stdout = stdout;
    stderr = open_memstream(said, said_size), stdout = open_memstream(page, page_size);
    if (stderr == NULL || stdout == NULL) abort();
}

/* `code` is the exit code of what was called: a refusal is exactly one line, success may warn. */
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
