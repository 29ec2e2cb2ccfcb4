/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGBUS handler. SIGBUS means that a mapped file became unreadable while in use: another process truncated the file,
 * or the disk failed. The program ends as after any other read error, with an error that names the file (found in
 * /proc/self/maps) and exit code 74. Any other SIGBUS has its default action.
 *
 * The library installs no signal handlers, so the program does.
 */
#include "job.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Reads /proc/self/maps using only async-signal-safe functions. */
typedef struct reader {
    int descriptor;
    ssize_t have, at;
    char bytes[4096];
} reader;

static int next_byte(reader *r)
{
    if (r->at == r->have) {
        r->have = read(r->descriptor, r->bytes, sizeof r->bytes);
        r->at = 0;
    }
    return r->have > 0 ? (unsigned char)r->bytes[r->at++] : -1;
}

/* Reads a hexadecimal number and the byte after it; *byte is -1 at the end. */
static uintptr_t read_hex_number(reader *r, int *byte)
{
    uintptr_t value = 0;
    while ((*byte = next_byte(r)) >= 0) {
        int digit = *byte >= '0' && *byte <= '9' ? *byte - '0' : *byte >= 'a' && *byte <= 'f' ? *byte - 'a' + 10 : -1;
        if (digit < 0) break;
        value = value * 16 + (uintptr_t)digit;
    }
    return value;
}

/* Finds the file mapped at the address; lines are "low-high rights offset device node /name". Returns 0 if there is
   none. */
static int find_mapped_file(uintptr_t address, char name[PATH_MAX])
{
    static reader r;
    size_t length = 0;
    r = (reader){.descriptor = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    for (int byte = 0; r.descriptor >= 0 && byte >= 0 && length == 0;) {
        uintptr_t low = read_hex_number(&r, &byte), high = byte == '-' ? read_hex_number(&r, &byte) : 0;
        int here = address >= low && address < high;
        for (; byte >= 0 && byte != '\n'; byte = next_byte(&r)) {
            if (!here || (length == 0 && byte != '/') || length + 1 >= PATH_MAX) continue;
            name[length++] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte); /* names may contain control characters */
        }
    }
    name[length] = '\0';
    if (r.descriptor >= 0) close(r.descriptor);
    return length > 0;
}

static void write_error_text(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t done = write(STDERR_FILENO, text, left);
        if (done <= 0) return;
        text += done, left -= (size_t)done;
    }
}

static void handle_sigbus(int number, siginfo_t *info, void *context)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    static char name[PATH_MAX];
    (void)context;
    while (atomic_flag_test_and_set(&begun)) pause(); /* another thread is already handling a SIGBUS */
    if (info->si_code <= 0 || !find_mapped_file((uintptr_t)info->si_addr, name)) {
        signal(number, SIG_DFL);
        raise(number); /* the signal is delivered when this handler returns */
        return;
    }
    cli_remove_unfinished();
    write_error_text("mercer: ");
    write_error_text(name);
    write_error_text(
        ": was truncated or became unreadable while in use; replace such files by renaming a new one, or use "
        "--no-map\n");
    _exit(CLI_IO);
}

void cli_outlive_files(void)
{
    struct sigaction action = {.sa_sigaction = handle_sigbus};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}
