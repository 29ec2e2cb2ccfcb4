/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands train and resume: from options to a model file. */
#include "commands/commands.h"
#include "folder.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One training from its beginning or its checkpoint to its end. */
typedef struct run {
    const cli_values *v; /* of train, with the memory decided */
    cli_folder *folder;  /* NULL without --checkpoint */
    int resumed;         /* the folder was read, not made */
    int force;           /* although data changed */
    cli_job job;
    cli_watch watch;
    cli_log *log;
    mercer_trainer *trainer;
    mercer_report report;
    cli_metrics metrics;
    double start;
} run;

/* A signal came: what it means depends on whether there is a folder. */
static int interrupted(const run *r, int with_checkpoint)
{
    if (r->folder == NULL)
        return cli_error(cli_signal_code(), "interrupted; nothing was written (--checkpoint DIR would have kept it)");
    if (r->folder->replaces)
        return cli_error(cli_signal_code(), "interrupted; nothing was written: the earlier run in %s is as it was",
                         r->folder->path);
    return cli_error(CLI_INTERRUPTED, "interrupted; %s; continue with: mercer resume %s",
                     with_checkpoint ? "checkpoint written" : "no checkpoint was due yet", r->folder->path);
}

static int check_signals(const run *r)
{
    int stop = 0, code = cli_interrupted(&stop);
    return code == CLI_OK && stop ? interrupted(r, 0) : code;
}

/* ---- Data that must not change ----------------------------------------------------------------------------------- */

static int check_fingerprints(run *r)
{
    static const char *const parts[] = {"training", "validation"};
    const mercer_dataset *datasets[] = {r->job.train, r->job.validation};
    for (int i = 0; i < 2; i++) {
        uint64_t found = 0;
        if (datasets[i] != NULL) {
            mercer_status status = mercer_dataset_fingerprint(datasets[i], &found);
            if (status != MERCER_OK) return cli_fail(r->job.context, status);
        }
        if (r->resumed && found != r->folder->fingerprints[i]) {
            if (!r->force)
                return cli_error(CLI_DATA, "%s: the %s data changed since the run began; --force goes on all the same",
                                 cli_data_name(r->v), parts[i]);
            cli_warn("%s: the %s data changed since the run began", cli_data_name(r->v), parts[i]);
        }
        r->folder->fingerprints[i] = found;
    }
    /* A run in the folder that --force discards stays until all that can be refused has been. */
    return r->resumed || r->folder->replaces ? CLI_OK : cli_folder_begin(r->folder, r->v);
}

/* ---- From options to a model ------------------------------------------------------------------------------------- */

static int build_model(run *r)
{
    int from_checkpoint = r->folder != NULL && r->resumed && cli_folder_has_checkpoint(r->folder);
    int code = CLI_OK;
    if (from_checkpoint) {
        code = cli_job_load(&r->job, r->folder->checkpoint);
        if (code == CLI_OK) code = cli_job_stream(&r->job);
    } else {
        code = cli_job_prepare(&r->job);
        if (code == CLI_OK) code = cli_job_stream(&r->job);
        if (code == CLI_OK) code = cli_job_centers(&r->job, &r->watch.bar);
        if (code == CLI_OK) code = check_signals(r);
        if (code == CLI_OK) code = cli_job_model(&r->job);
    }
    if (code == CLI_OK) code = cli_job_validation(&r->job);
    return code;
}

static void fill_options(run *r, mercer_train_options *options)
{
    const cli_job *job = &r->job;
    cli_train_options(r->v, options);
    options->memory = cli_job_memory_left(job, mercer_model_size(job->model));
    options->classification = job->info.task == MERCER_TASK_CLASSIFICATION ? MERCER_ON : MERCER_OFF;
    if (job->validation != NULL) {
        options->validation_X = &job->validation_x;
        options->validation_Y = &job->validation_y;
    }
    options->progress = cli_watch_progress;
    options->progress_user = &r->watch;
    options->progress_seconds = 0.05;
    if (r->folder != NULL) {
        double seconds = cli_number(r->v, "checkpoint-every");
        options->checkpoint = r->folder->checkpoint;
        options->checkpoint_seconds = seconds > 0 ? seconds : 1e-9; /* 0 would mean the default */
    }
}

/* The one plan of this training, shown before it is followed. */
static mercer_status show_plan(run *r)
{
    mercer_plan *plan = cli_allocate(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_trainer_plan(r->trainer, plan, &r->job.source);
    if (status == MERCER_OK) {
        mercer_matrix centers = mercer_model_centers(r->job.model);
        if (!cli_flag(r->v, "quiet"))
            cli_show_plan(&r->job, plan, mercer_model_size(r->job.model), centers.dtype, stderr);
        cli_log_start(r->log, &r->job, r->resumed);
        cli_log_event(r->log, "plan", cli_plan_json(plan));
        cli_watch_start(&r->watch, r->trainer, plan);
    }
    free(plan);
    return status;
}

static int fit(run *r)
{
    mercer_train_options options;
    fill_options(r, &options);
    mercer_status status = mercer_trainer_create(&r->trainer, r->job.model, cli_comm(), &options);
    if (status == MERCER_OK && r->folder != NULL && r->resumed && cli_folder_has_checkpoint(r->folder))
        status = mercer_trainer_resume(r->trainer, r->folder->checkpoint);
    if (status == MERCER_OK) status = show_plan(r);
    if (status == MERCER_OK && r->folder != NULL && r->folder->replaces) {
        int code = cli_folder_begin(r->folder, r->v);
        if (code != CLI_OK) return code;
    }
    r->report = (mercer_report){.struct_size = sizeof r->report};
    if (status == MERCER_OK) status = mercer_trainer_fit(r->trainer, &r->job.source, &r->report);
    if (status == MERCER_OK) cli_watch_plan(&r->watch, r->report.plan);
    cli_bar_clear(&r->watch.bar);
    return status == MERCER_OK ? CLI_OK : cli_fail_on(r->job.context, status, r->job.train, cli_data_name(r->v));
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* A summary for the model file. It holds nothing that differs between two runs with the same result. */
static char *training_note(const run *r)
{
    const mercer_report *report = &r->report;
    json_t *note =
        json_pack("{ss ss ss sI sI sI sI sI so so}", "program", "mercer train", "solver", report->plan->solver,
                  "projector", report->plan->projector, "rows", (json_int_t)r->job.info.rows, "epochs",
                  (json_int_t)report->epochs, "samples", (json_int_t)report->samples, "batch",
                  (json_int_t)report->plan->batch, "seed", (json_int_t)cli_integer(r->v, "seed"), "train_loss",
                  cli_json_real(report->train_loss), "validation_loss", cli_json_real(report->validation_loss));
    if (r->job.info.task == MERCER_TASK_CLASSIFICATION) {
        json_object_set_new(note, "train_accuracy", cli_json_real(report->train_accuracy));
        json_object_set_new(note, "validation_accuracy", cli_json_real(report->validation_accuracy));
    }
    const char *augment = cli_text(r->v, "augment");
    if (augment != NULL) json_object_set_new(note, "augment", json_string(augment));
    const char *method =
        strncmp(cli_text(r->v, "center-method"), "file:", 5) == 0 ? "file" : cli_text(r->v, "center-method");
    json_object_set_new(note, "center_method", json_string(cli_integer(r->v, "centers") < 0 ? "all" : method));
    char *text = json_dumps(note, JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    json_decref(note);
    return text;
}

static int save_model(run *r)
{
    mercer_save_options options = {.struct_size = sizeof options,
                                   .centers = cli_dtype(cli_text(r->v, "save-centers-as"))};
    char *note = training_note(r);
    mercer_status status = mercer_model_set_note(r->job.model, note != NULL ? note : "");
    free(note);
    if (status == MERCER_OK) status = mercer_model_save(r->job.model, cli_text(r->v, "output"), &options);
    return status == MERCER_OK ? CLI_OK : cli_fail(r->job.context, status);
}

/* What the model gives beside what is true: class against class, or pairs of values. */
static void log_comparison(const run *r)
{
    if (!r->metrics.classifier) {
        cli_log_event(r->log, "predictions", cli_predictions_json(&r->metrics, "validation"));
        return;
    }
    json_t *names = json_array();
    for (int64_t i = 0; i < r->job.info.outputs; i++) {
        json_t *name = json_string(r->job.info.labels[i]);
        json_array_append_new(names, name != NULL ? name : json_string("?"));
    }
    cli_log_event(
        r->log, "confusion",
        json_pack("{ss so so}", "data", "validation", "labels", names, "matrix", cli_confusion_json(&r->metrics)));
}

static int finish(run *r)
{
    const cli_job *job = &r->job;
    int code = save_model(r);
    if (code == CLI_OK && job->validation != NULL)
        code = cli_evaluate(job->model, job->context, job->validation, "validation data", &r->watch.bar, &r->metrics);
    if (code != CLI_OK) return code;
    const cli_metrics *metrics = job->validation != NULL ? &r->metrics : NULL;
    double seconds = cli_now() - r->start;
    cli_log_event(r->log, "plan", cli_plan_json(r->report.plan)); /* with the numbers as they were used */
    cli_log_spectrum(r->log, r->trainer, &r->report);
    if (metrics != NULL) log_comparison(r);
    cli_log_event(r->log, "summary", cli_summary_json(&r->report, metrics, seconds));
    if (r->folder != NULL) {
        r->folder->finished = 1;
        code = cli_folder_write(r->folder, r->v);
    }
    cli_show_summary(job, &r->report, metrics, seconds);
    if (code != CLI_OK || !cli_flag(r->v, "json")) return code;
    json_t *object = cli_summary_json(&r->report, metrics, seconds);
    json_object_set_new(object, "output", cli_json_text(cli_text(r->v, "output")));
    json_object_set_new(object, "kernel", json_string(job->kernel_text));
    json_object_set_new(object, "centers", json_integer(mercer_model_size(job->model)));
    json_object_set_new(object, "data", cli_data_json(&job->info));
    json_object_set_new(object, "plan", cli_plan_json(r->report.plan));
    return cli_print_json(object);
}

/* ---- The commands ------------------------------------------------------------------------------------------------ */

static int run_steps(run *r)
{
    int code = cli_job_open(&r->job, r->v);
    /* Not before the data are there: a run that never begins leaves earlier logs alone. */
    if (code == CLI_OK) code = cli_log_open(&r->log, cli_text(r->v, "log"));
    r->watch.log = r->log;
    if (code == CLI_OK && r->folder != NULL) code = check_fingerprints(r);
    if (code == CLI_OK) code = check_signals(r);
    if (code == CLI_OK) code = build_model(r);
    if (code == CLI_OK) code = fit(r);
    if (code == CLI_OK && r->report.stopped == 2) {
        cli_log_event(r->log, "interrupted",
                      json_pack("{si so}", "signal", cli_signal(), "seconds", cli_json_real(cli_now() - r->start)));
        return interrupted(r, 1);
    }
    return code == CLI_OK ? finish(r) : code;
}

static int run_training(const cli_values *v, cli_folder *folder, int resumed, int force)
{
    run *r = cli_allocate(1, sizeof *r);
    *r = (run){.v = v, .folder = folder, .resumed = resumed, .force = force, .start = cli_now()};
    cli_bar_init(&r->watch.bar, v);
    r->watch.job = &r->job;
    r->watch.validation_accuracy = r->watch.validation_loss = (double)NAN;
    cli_catch_signals();
    cli_outlive_readers();
    int code = run_steps(r);
    int logged = cli_log_close(r->log);
    cli_metrics_free(&r->metrics);
    mercer_trainer_free(r->trainer);
    cli_job_free(&r->job);
    free(r);
    return code != CLI_OK ? code : logged;
}

/* Everything that can be said before data are read. */
static int check_training(const cli_values *v)
{
    int code = cli_check_data(v);
    if (code == CLI_OK) code = cli_check_job(v);
    if (code == CLI_OK) code = cli_check_centers(v);
    if (code == CLI_OK && cli_is(v, "output", "-"))
        code = cli_error(CLI_USAGE, "--output: a model is written to a file, not to stdout");
    if (code == CLI_OK) code = cli_check_output(cli_text(v, "output"));
    if (code == CLI_OK) code = cli_check_log(cli_text(v, "log"));
    return code;
}

/* Rank 0 looks what is there; the others must know what to say should a signal come. */
static int make_folder(cli_folder *folder, int force)
{
    int code = cli_folder_create(folder, force);
    if (code != CLI_OK || cli_comm() == NULL) return code;
    mercer_status status = mercer_comm_any(cli_comm(), &folder->replaces, folder->replaces);
    return status == MERCER_OK ? CLI_OK : cli_fail(cli_comm_context(), status);
}

int cli_train(const cli_values *v)
{
    int code = check_training(v);
    if (code != CLI_OK) return code;
    /* What is free now may differ when the run is resumed; the plan must not. (On a device the checkpoint keeps its
       budget, which is not the host's.) */
    cli_values *fixed = cli_values_copy(v);
    if (!cli_names_gpu(v)) {
        char *memory = cli_format("%" PRId64, cli_memory(v));
        cli_values_set(fixed, cli_find_option(cli_values_command(v), "memory"), memory, CLI_FROM_COMMAND, "--memory");
        free(memory);
    }
    /* That the centers are in shards, too: a run of several ranks may be resumed by one process alone. */
    if (cli_is_mpi())
        cli_values_set(fixed, cli_find_option(cli_values_command(v), "comm"), "mpi", CLI_FROM_COMMAND, "--comm");
    cli_folder *folder = NULL;
    if (cli_text(v, "checkpoint") != NULL) {
        folder = cli_folder_new(cli_text(v, "checkpoint"));
        cli_ranks_folder(folder->path);
        code = make_folder(folder, cli_flag(v, "force"));
    }
    if (code == CLI_OK) code = run_training(fixed, folder, 0, 0);
    cli_folder_free(folder);
    cli_values_free(fixed);
    return code;
}

/* The options of the run, with those that resume may change. */
static int resumed_values(const cli_values *v, const cli_folder *folder, cli_values *train)
{
    static const char *const changeable[] = {"threads",  "device", "log",   "checkpoint-every",
                                             "deadline", "json",   "quiet", "color"};
    int code = cli_take_config(train, folder->options, folder->config, CLI_FROM_CONFIG);
    for (size_t i = 0; i < sizeof changeable / sizeof changeable[0] && code == CLI_OK; i++) {
        const cli_option *option = cli_find_option(cli_values_command(train), changeable[i]);
        /* How the first run talked says nothing about this one. */
        int talk = strcmp(changeable[i], "json") == 0 || strcmp(changeable[i], "quiet") == 0;
        if (talk)
            code = cli_values_set(train, option, cli_flag(v, changeable[i]) ? "true" : "false", CLI_FROM_COMMAND, "");
        else if (cli_given(v, changeable[i]))
            code = cli_values_set(train, option, cli_text(v, changeable[i]), CLI_FROM_COMMAND, changeable[i]);
    }
    if (code == CLI_OK) code = cli_check_files(train); /* its own --log may be a file of the run */
    return code == CLI_OK ? check_training(train) : code;
}

int cli_resume(const cli_values *v)
{
    cli_folder *folder = cli_folder_new(cli_positional(v, 0));
    cli_values *train = cli_values_new(cli_find_command("train"));
    cli_ranks_folder(folder->path);
    int code = cli_folder_read(folder);
    if (code == CLI_OK) code = resumed_values(v, folder, train);
    if (code == CLI_OK && folder->finished && access(cli_text(train, "output"), F_OK) == 0) {
        cli_say(v, "%s: the run is finished; its model is %s", folder->path, cli_text(train, "output"));
        if (cli_flag(v, "json"))
            code = cli_print_json(
                json_pack("{ss so}", "stopped", "finished", "output", cli_json_text(cli_text(train, "output"))));
    } else if (code == CLI_OK && (code = cli_folder_take(folder)) == CLI_OK) {
        folder->finished = 0;
        code = run_training(train, folder, 1, cli_flag(v, "force"));
    }
    cli_values_free(train);
    cli_folder_free(folder);
    return code;
}
