/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals. SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU ask the program to end when it can; a second SIGINT
 * ends it at once. A training takes SIGUSR1 for something else: it is to write a checkpoint and to go on. A command
 * that has nothing to keep ends at the first one, however long what it does would take: it removes its temporary file
 * and is gone. Those that would end it in the midst of a write are turned into failures of that write.
 */
#include "job.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_int caught; /* by any thread, read by all that are ranks */

static atomic_int asked; /* for a checkpoint */

static char unfinished[PATH_MAX]; /* what is removed at a signal */
static atomic_int quits;          /* at the first signal */

void cli_remove_unfinished(void)
{
    if (unfinished[0] != '\0') unlink(unfinished);
}

/* Only what a signal handler may do. */
static _Noreturn void quit(int number)
{
    static const char text[] = "mercer: interrupted; nothing was written\n", clear[] = "\r\033[K";
    cli_remove_unfinished();
    if (atomic_load(&quits) > 1 && write(STDERR_FILENO, clear, sizeof clear - 1) < 0) _exit(128 + number);
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(128 + number);
    _exit(128 + number);
}

static void on_signal(int number)
{
    if (atomic_load(&quits)) quit(number);
    if (atomic_exchange(&caught, number) == SIGINT && number == SIGINT) _exit(CLI_SIGINT);
}

void cli_catch_signals(void)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* a read or write that was under way goes on */
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
        /* nohup: a signal that is ignored means that the run should go on without its terminal. */
        if (asking[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(asking[i], &action, NULL);
    }
}

static void on_request(int number)
{
    (void)number;
    atomic_store(&asked, 1);
}

void cli_keep_on_request(void)
{
    struct sigaction action = {.sa_handler = on_request};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
}

int cli_take_request(void)
{
    return atomic_exchange(&asked, 0);
}

void cli_quit_on_signals(const char *path, int bar)
{
    if (path != NULL && strlen(path) >= sizeof unfinished) return; /* then it ends when it can */
    if (path != NULL) memcpy(unfinished, path, strlen(path) + 1);
    atomic_store(&quits, 1 + bar);
    if (cli_signal() != 0) quit(cli_signal()); /* it came in between */
}

void cli_quit_no_more(void)
{
    atomic_store(&quits, 0);
}

void cli_outlive_readers(void)
{
    signal(SIGPIPE, SIG_IGN);
}

void cli_outgrow_limits(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

int cli_signal_code(void)
{
    int number = atomic_load(&caught);
    return 128 + (number != 0 ? number : SIGTERM);
}

int cli_signal(void)
{
    return atomic_load(&caught);
}
