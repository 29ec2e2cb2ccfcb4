/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving a job of several ranks. */
#include "ranks/program_ranks.h"
#include "data.h"
#include "folder.h"
#include "job.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Thread_local cli_rank_state job = {.ranks = 1};

cli_rank_state *cli_rank_state_here(void)
{
    return &job;
}

mercer_comm *cli_comm(void)
{
    return job.comm;
}

mercer_context *cli_comm_context(void)
{
    return job.context;
}

int cli_rank(void)
{
    return job.rank;
}

int cli_ranks(void)
{
    return job.ranks;
}

int cli_is_mpi(void)
{
    return job.mpi;
}

int64_t cli_ranks_memory(void)
{
    return job.memory;
}

void cli_release_context(mercer_context *context)
{
    if (context != job.context) mercer_context_free(context);
}

void cli_ranks_folder(const char *path)
{
    free(job.folder);
    job.folder = cli_copy(path);
}

/* ---- Error reports of a rank ------------------------------------------------------------------------------------- */

int cli_ranks_blame(const char *text)
{
    if (job.blame[0] == '\0') snprintf(job.blame, sizeof job.blame, "%s", text);
    return job.rank == 0 && !job.said;
}

void cli_wait_read(void)
{
    enum { LOOKS = 5000 }; /* limit of 5 s, at 1 ms each: the reader may have ended or stopped reading */
    struct timespec look = {0, 1000000},
                    on = {0, 100000000}; /* 0.1 s for the launcher to forward the text, possibly from another machine */
    struct stat place;
    if (!job.mpi || fstat(STDERR_FILENO, &place) != 0) return;
    unsigned long request = S_ISFIFO(place.st_mode) ? FIONREAD : S_ISSOCK(place.st_mode) ? SIOCOUTQ : 0;
    if (request == 0) return; /* a file or a terminal: no reader to wait for */
    for (int i = 0, unread = 0; i < LOOKS; i++) {
        if (ioctl(STDERR_FILENO, request, &unread) != 0 || unread == 0) break;
        nanosleep(&look, NULL);
    }
    nanosleep(&on, NULL);
}

/* Appends the error to errors.log, with a single write so that lines of ranks that end at the same time do not mix. */
static void append_error_log(void)
{
    char moment[32], host[64] = "?";
    if (job.folder == NULL) return;
    time_t now = time(NULL);
    struct tm parts;
    strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    gethostname(host, sizeof host - 1);
    CLI_OWNED(cli_drop) char *path = cli_format("%s/errors.log", job.folder);
    CLI_OWNED(cli_drop)
    char *line = cli_format("%s rank %d of %d (%s, process %ld): %s\n", moment, job.rank, job.ranks, host,
                            (long)getpid(), job.blame);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    /* Ignore write errors: the text was also printed on stderr. */
    if (file >= 0 && write(file, line, strlen(line)) < 0) errno = 0;
    if (file >= 0) close(file);
}

static void print_rank_error(void)
{
    job.said = 1;
    if (job.rank > 0)
        fprintf(stderr, "mercer: rank %d: %s\n", job.rank, job.blame);
    else
        fprintf(stderr, "mercer: %s\n", job.blame);
    cli_wait_read();
}

/* Called before the exit message is sent: rank 0 prints its error, so that ranks that receive the message do not print
   theirs. */
static void on_leaving(void *user, int code, const char *text)
{
    (void)user, (void)code;
    int unsaid = job.blame[0] == '\0';
    cli_ranks_blame(text);
    append_error_log();
    if (job.rank == 0 && unsaid) print_rank_error();
}

/* ---- Agreement --------------------------------------------------------------------------------------------------- */

int cli_agree(const char *what, const void *data, int64_t bytes)
{
    return job.comm != NULL ? cli_check(job.context, mercer_comm_agree(job.comm, what, data, bytes)) : CLI_OK;
}

int cli_interrupted(int *stop)
{
    *stop = cli_signal() != 0;
    return job.comm != NULL ? cli_check(job.context, mercer_comm_any(job.comm, stop, *stop)) : CLI_OK;
}

/* Checks that all ranks have the same version and options. The options in `own` may differ, because they do not affect
   results. */
static int agree_on_options(const cli_values *v)
{
    static const char *const own[] = {"threads", "quiet", "json", "color", "log", "memory", "device", "config"};
    json_auto_t *options = cli_config_object(v);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) json_object_del(options, own[i]);
    CLI_OWNED(cli_drop) char *text = json_dumps(options, JSON_SORT_KEYS | JSON_COMPACT);
    CLI_OWNED(cli_drop)
    char *whole = cli_format("%s %s %s", cli_command_name(v), cli_positional_count(v) > 0 ? cli_positional(v, 0) : "",
                             text != NULL ? text : "");
    CLI_TRY(cli_agree("another version of Mercer", mercer_version(), (int64_t)strlen(mercer_version())));
    return cli_agree("other options", whole, (int64_t)strlen(whole));
}

/* ---- Time limits ------------------------------------------------------------------------------------------------- */

/* Alarm handler. Joining and closing a job happen inside the MPI library, which would wait forever for a lost rank. */
static void end_at_deadline(int number)
{
    static const char text[] =
        "mercer: a rank did not answer within the deadline while the job started or ended; the job ends\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0) cli_wait_read();
    _Exit(CLI_RANKS);
}

static void set_deadline(double seconds)
{
    struct sigaction action = {.sa_handler = end_at_deadline};
    struct itimerval timer = {.it_value.tv_sec = (time_t)ceil(seconds)};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- Joining ----------------------------------------------------------------------------------------------------- */

/* Reads device, arithmetic and shards from the folder of the run to resume. Environment and command line override only
   the device. *cut: true if the centers are in shards. *shards: value of --shards; 0: chosen from the number of
   centers. */
static int read_resumed_options(cli_values *v, int *shards, int *cut)
{
    CLI_OWNED(cli_drop_folder) cli_folder *folder = cli_folder_new(cli_positional(v, 0));
    const cli_command *command = cli_values_command(v);
    CLI_TRY(cli_folder_read(folder));
    const char *kind = json_string_value(json_object_get(folder->options, "comm"));
    const char *device = json_string_value(json_object_get(folder->options, "device"));
    const char *arithmetic = json_string_value(json_object_get(folder->options, "arithmetic"));
    const json_t *count = json_object_get(folder->options, "shards");
    *shards = json_is_integer(count) ? (int)json_integer_value(count)
                                     : (json_is_string(count) ? (int)strtol(json_string_value(count), NULL, 10) : 0);
    int listed = device != NULL && (strchr(device, ',') != NULL || strcmp(device, "cuda:all") == 0);
    *cut = *shards > 0 || (kind != NULL && strcmp(kind, "mpi") == 0) || listed;
    /* The run used a list of devices in one process; under a launcher, every process uses one device. */
    if (listed && mercer_comm_launched(NULL) > 0) device = strncmp(device, "cuda", 4) == 0 ? "cuda" : "cpu";
    if (device != NULL)
        CLI_TRY(cli_values_set(v, cli_find_option(command, "device"), device, CLI_FROM_CONFIG, folder->config));
    if (arithmetic == NULL) return CLI_OK;
    return cli_values_set(v, cli_find_option(command, "arithmetic"), arithmetic, CLI_FROM_COMMAND, folder->config);
}

static int choose_options(cli_values *v, mercer_comm_options *options, int *needed)
{
    int launched = mercer_comm_launched(NULL), cut = 0;
    *options = (mercer_comm_options)MERCER_INIT(mercer_comm_options);
    options->kind = cli_is(v, "comm", "auto") ? (launched > 0 ? "mpi" : "self") : cli_text(v, "comm");
    options->deadline = cli_number(v, "deadline");
    options->exchange = cli_text(v, "exchange");
    options->leaving = on_leaving;
    if (strcmp(cli_command_name(v), "resume") == 0) {
        CLI_TRY(read_resumed_options(v, &options->shards, &cut));
        if (!cut) options->shards = 1;
    } else if (cli_has(v, "shards")) {
        options->shards = (int)cli_integer(v, "shards");
    }
    if (cut && options->shards == 0 && strcmp(options->kind, "self") == 0) options->shards = -1;
    job.mpi = strcmp(options->kind, "mpi") == 0;
    *needed = job.mpi || options->shards > 1 || options->shards < 0;
    return CLI_OK;
}

/* Broadcasts the memory limit of rank 0, which depends on the machine. */
static int broadcast_memory_limit(cli_values *v)
{
    job.memory = cli_has(v, "memory") ? cli_memory(v) : 0;
    return cli_check(job.context, mercer_comm_broadcast(job.comm, &job.memory, sizeof job.memory));
}

static int join_job(cli_values *v, const mercer_comm_options *options)
{
    mercer_context *context = NULL;
    CLI_TRY(cli_context(v, &context));
    job.context = context;
    job.deadline = options->deadline > 0 ? options->deadline : 60;
    if (job.mpi) set_deadline(job.deadline);
    mercer_status status = mercer_comm_create(&job.comm, context, options);
    if (job.mpi) set_deadline(0);
    CLI_TRY(cli_check(context, status));
    mercer_comm_info info = {.struct_size = sizeof info};
    mercer_comm_query(job.comm, &info);
    job.rank = info.rank;
    job.ranks = info.ranks;
    CLI_TRY(agree_on_options(v));
    CLI_TRY(broadcast_memory_limit(v));
    if (job.rank == 0) return CLI_OK;
    return cli_values_set(v, cli_find_option(cli_values_command(v), "quiet"), "true", CLI_FROM_COMMAND, "--quiet");
}

/* Creates one rank per device of a list, as threads of this process. Fails if this process is itself one of several
   ranks. */
static int open_device_list(const cli_values *v, const cli_devices *devices, mercer_comm_options *options)
{
    if (job.mpi)
        return cli_error(CLI_USAGE,
                         "--device: %s: a list is not possible for a process that is already a rank (started by a "
                         "launcher or --comm mpi); give one device, such as cuda for the GPU of the local rank",
                         cli_text(v, "device"));
    options->kind = "local";
    options->leaving = NULL; /* rank 0 is a thread of the same process and prints its error when it closes */
    return cli_local_open(v, devices, options);
}

int cli_ranks_open(cli_values *v)
{
    mercer_comm_options options;
    CLI_OWNED(cli_devices_free) cli_devices devices = {0};
    int needed = 0;
    if (!cli_has(v, "comm")) return CLI_OK;
    int launched = mercer_comm_launched(&job.rank);
    if (cli_is(v, "comm", "self") || launched == 0)
        job.rank = 0; /* before MPI is initialized, use the launcher's rank */
    CLI_TRY(choose_options(v, &options, &needed));
    CLI_TRY(cli_devices_read(v, &devices));
    if (devices.list) return open_device_list(v, &devices, &options);
    return needed ? join_job(v, &options) : CLI_OK;
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

/* Returns 1 if every rank ends with success or an interruption, so that no rank waits for another. */
static int is_orderly_end(int code)
{
    int any = 0;
    if (code != CLI_OK && code != CLI_INTERRUPTED && code <= 128) return 0;
    return mercer_comm_any(job.comm, &any, 0) == MERCER_OK;
}

/* Notifies the other ranks. A rank above 0 prints its own error only if rank 0 has not left, because rank 0 prints an
   error when it leaves. */
static int leave_job(int code)
{
    mercer_comm_info info = {.struct_size = sizeof info};
    mercer_comm_query(job.comm, &info);
    if (info.left_code != 0) code = info.left_code;
    if (code == CLI_OK) code = CLI_RANKS;
    if (job.blame[0] == '\0')
        cli_error(code, "%s", mercer_last_error(job.context)); /* only closing failed, so no error was recorded */
    int first_left = mercer_comm_leave(job.comm, code, job.blame);
    /* If ranks are threads, rank 0 cannot be lost: it has printed an error, or prints one when it receives the
       message. */
    if (job.rank > 0 && !first_left && !job.local) print_rank_error();
    return code;
}

int cli_ranks_close(int code)
{
    /* A launcher kills the job when the first rank fails, so wait until the launcher has read rank 0's error. */
    if (code != CLI_OK && job.rank == 0) cli_wait_read();
    if (job.comm != NULL && job.ranks > 1 && !is_orderly_end(code)) {
        code = leave_job(code);
        if (!job.local) {
            fflush(NULL);
            _Exit(code); /* the exit handlers of MPI would wait for ranks that are gone */
        }
    }
    if (job.comm == NULL && job.rank > 0 && job.blame[0] != '\0') {
        /* Without a communicator, ranks cannot agree on who prints. Rank 0 probably has the same error, so let rank 0
           print it first: wait 0.3 s. */
        struct timespec moment = {0, 300000000};
        nanosleep(&moment, NULL);
        print_rank_error();
    }
    if (job.mpi) set_deadline(job.deadline);
    mercer_comm_free(job.comm);
    if (job.mpi) set_deadline(0);
    mercer_context_free(job.context);
    free(job.folder);
    job.comm = NULL;
    job.context = NULL;
    job.folder = NULL;
    if (job.rank == 0) cli_local_join(code);
    return code;
}
