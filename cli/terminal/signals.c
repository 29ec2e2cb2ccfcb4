/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals. SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU ask the program to end. Their effect depends on the
 * work that could be saved:
 *
 *   nothing to save   most commands: the first signal ends the program immediately, in the handler
 *   only a log        training without --checkpoint: it has a grace period to end by itself, then the handler ends it
 *   state to save     training with --checkpoint: it ends after the current step, when the checkpoint is written
 *   several ranks     all ranks are notified and end together
 *
 * A second SIGINT always ends the program. While training, SIGUSR1 is instead a request to write a checkpoint and
 * continue. SIGXFSZ, and SIGPIPE while training, become write errors.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_int caught; /* last signal received; 0: none; set by any thread, read by all rank threads */

static atomic_int asked; /* true: a checkpoint was requested (SIGUSR1) */

enum { BY_ITSELF, AT_ONCE, AFTER_GRACE };

/* How a signal ends the program. The other fields change only while `mode` is BY_ITSELF. */
static struct {
    atomic_int mode;
    int grace;                 /* milliseconds before the handler ends the program */
    int code;                  /* exit code; 0: 128 + signal number */
    char text[PATH_MAX + 128]; /* message; "": a generic one */
} ending;

static atomic_int terminal; /* true: stderr is a terminal, so a progress bar may have to be cleared */

/* ---- Async-signal-safe functions --------------------------------------------------------------------------------- */

static void write_error_text(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t done = write(STDERR_FILENO, text, left);
        if (done <= 0) return;
        text += done, left -= (size_t)done;
    }
}

/* Reads the name of an open file from /proc/self/fd/N. Returns 0 if the descriptor has no file name. */
static int find_open_file(int descriptor, char name[PATH_MAX])
{
    char link[32] = "/proc/self/fd/", digits[12];
    int count = 0;
    for (int rest = descriptor; rest > 0 || count == 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
    size_t at = strlen(link);
    for (; count > 0; count--) link[at++] = digits[count - 1];
    link[at] = '\0';
    ssize_t length = readlink(link, name, PATH_MAX - 1);
    name[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Returns whether a path has the form ".NAME.XXXXXX.tmp", used by the library and output.c for files being written. */
static int is_temporary(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    return slash != NULL && slash[1] == '.' && length > 4 && strcmp(path + length - 4, ".tmp") == 0;
}

/* Unfinished output is a file with a temporary name that this process has open for writing and has locked. A file
   locked by another process may only be open here to test the lock: see remove_abandoned_files. */
int cli_remove_unfinished(void)
{
    enum { MOST = 1024 };
    static char name[PATH_MAX];
    int removed = 0;
    for (int i = STDERR_FILENO + 1; i < MOST; i++) {
        int flags = fcntl(i, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || !find_open_file(i, name) || !is_temporary(name)) continue;
        if (flock(i, LOCK_EX | LOCK_NB) == 0 && unlink(name) == 0) removed++;
    }
    return removed;
}

static _Noreturn void end_program(int number)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&begun)) pause(); /* another thread is about to end the program */
    int removed = cli_remove_unfinished();
    if (atomic_load(&terminal)) write_error_text("\r\033[K");
    write_error_text("mercer: ");
    write_error_text(ending.text);
    write_error_text(ending.text[0] != '\0' ? ""
                     : removed > 0          ? "interrupted; unfinished output was removed"
                                            : "interrupted");
    write_error_text("\n");
    _exit(ending.code != 0 ? ending.code : 128 + number);
}

/* ---- Handlers ---------------------------------------------------------------------------------------------------- */

static void handle_end_signal(int number)
{
    int mode = atomic_load(&ending.mode), error = errno;
    if (mode == AT_ONCE) end_program(number);
    int before = atomic_exchange(&caught, number);
    if (before == SIGINT && number == SIGINT) {
        cli_remove_unfinished();
        _exit(CLI_SIGINT);
    }
    struct itimerval grace = {.it_value = {.tv_sec = ending.grace / 1000, .tv_usec = ending.grace % 1000 * 1000}};
    if (mode == AFTER_GRACE && before == 0) setitimer(ITIMER_REAL, &grace, NULL);
    errno = error;
}

static void handle_alarm(int number)
{
    (void)number;
    if (atomic_load(&ending.mode) != BY_ITSELF) end_program(atomic_load(&caught));
}

static void set_handler(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* restart reads and writes that a signal interrupts */
    sigaction(number, &action, NULL);
}

void cli_catch_signals(void)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP};
    struct sigaction before;
    atomic_store(&terminal, cli_is_terminal(stderr));
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++) {
        /* Keep ignoring SIGHUP under nohup: the run should continue without its terminal. */
        if (asking[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        set_handler(asking[i], handle_end_signal);
    }
    set_handler(SIGALRM, handle_alarm);
}

static void handle_checkpoint_request(int number)
{
    (void)number;
    atomic_store(&asked, 1);
}

void cli_keep_on_request(void)
{
    set_handler(SIGUSR1, handle_checkpoint_request);
}

int cli_take_request(void)
{
    return atomic_exchange(&asked, 0);
}

/* ---- How the program ends ---------------------------------------------------------------------------------------- */

void cli_end_on_signals(int grace, int code, const char *text)
{
    atomic_store(&ending.mode, BY_ITSELF);
    ending.grace = grace;
    ending.code = code;
    snprintf(ending.text, sizeof ending.text, "%s", text != NULL ? text : "");
    atomic_store(&ending.mode, grace > 0 ? AFTER_GRACE : AT_ONCE);
    if (cli_signal() != 0) end_program(cli_signal()); /* a signal that arrived before the mode was set */
}

void cli_end_by_itself(void)
{
    atomic_store(&ending.mode, BY_ITSELF);
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
