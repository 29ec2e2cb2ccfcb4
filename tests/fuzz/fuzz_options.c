/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: arbitrary bytes as the arguments of a command, one per line; a first line that is a JSON object is its
 * configuration. Accepted values must survive being printed as a configuration and read back.
 */
#define _GNU_SOURCE /* memfd_create */

#include "fuzz/fuzz_program.h"

enum { MOST_ARGUMENTS = 64 };

/* Check that the output of --print-config, when read back, gives the same values. */
static void print_and_read(const cli_values *v)
{
    json_t *first = cli_config_object(v);
    char *text = json_dumps(first, JSON_REAL_PRECISION(17));
    cli_values *again = cli_values_new(cli_values_command(v));
    if (text == NULL || cli_read_config(again, fuzz_file(text, strlen(text))) != CLI_OK) abort();
    json_t *second = cli_config_object(again);
    if (!json_equal(first, second)) abort();
    json_decref(first), json_decref(second);
    cli_values_free(again);
    free(text);
}

static int take(cli_values *v, char *text, size_t size)
{
    char *arguments[MOST_ARGUMENTS], *end = text + size;
    int count = 0, help = 0, code = CLI_OK;
    if (size > 0 && text[0] == '{') {
        char *line = memchr(text, '\n', size), *stop = line ? line : end;
        code = cli_read_config(v, fuzz_file(text, (size_t)(stop - text)));
        text = line ? line + 1 : end;
    }
    while (text < end && count < MOST_ARGUMENTS) {
        char *line = memchr(text, '\n', (size_t)(end - text)), *stop = line ? line : end;
        *stop = '\0'; /* the buffer has one extra byte */
        arguments[count++] = text;
        text = stop + 1;
    }
    if (code == CLI_OK) code = cli_parse(v, count, arguments, &help);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *said, *page, *text;
    size_t said_size, page_size;
    if (size == 0) return 0;
    fuzz_quiet(&said, &said_size, &page, &page_size);
    cli_values *v = cli_values_new(&cli_commands[data[0] % cli_command_count]);
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    int code = take(v, text, size - 1);
    if (code == CLI_OK) print_and_read(v);
    if (code == CLI_OK) code = cli_check_required(v);
    cli_values_free(v);
    free(text);
    fuzz_loud(code, &said, &said_size, &page);
    return 0;
}
