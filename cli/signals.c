/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT, SIGTERM and SIGUSR1 ask the program to end when it can; a second SIGINT ends it at once. */
#include "job.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    if (number == SIGINT && caught == SIGINT) _exit(CLI_SIGINT);
    caught = number;
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
    return 128 + (caught != 0 ? (int)caught : SIGTERM);
}

int cli_signal(void)
{
    return (int)caught;
}
