/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: arbitrary bytes as a run log, and the HTML page made from it, which must not run code or load external
   content. */
#define _GNU_SOURCE /* memfd_create */

#include "fuzz/fuzz_program.h"
#include "report/report.h"

static void check_page(const char *text)
{
    static const char *const forbidden[] = {"<script", "<iframe", "<object", "javascript:\"", "src=\"http"};
    if (strncmp(text, "<!DOCTYPE html>", 15) != 0) abort();
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (strcasestr(text, forbidden[i])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *said, *made;
    size_t said_size, made_size;
    fuzz_quiet(&said, &said_size, &made, &made_size);
    int code = report_write(fuzz_file(data, size), "-");
    if (code == CLI_OK) {
        fflush(stdout);
        check_page(made);
    }
    fuzz_loud(code, &said, &said_size, &made);
    return 0;
}
