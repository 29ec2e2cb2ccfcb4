/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGXCPU ask the program to end when it can; a second SIGINT ends it at
 * once. Those that would end it in the midst of a write are turned into failures of that write.
 */
#include "job.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int caught; /* by any thread, read by all that are ranks */

static void on_signal(int number)
{
    if (atomic_exchange(&caught, number) == SIGINT && number == SIGINT) _exit(CLI_SIGINT);
}

void cli_catch_signals(void)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* a read or write that was under way goes on */
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
        /* nohup: a signal that is ignored means that the run should go on without its terminal. */
        if (asking[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(asking[i], &action, NULL);
    }
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
