/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT, SIGTERM and SIGUSR1 ask the program to end when it can; a second SIGINT ends it at once. */
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
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* a read or write that was under way goes on */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
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
