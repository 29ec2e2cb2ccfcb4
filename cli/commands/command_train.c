/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands train and resume: from options to a model file. */
#include "commands/commands.h"
#include "folder.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "results/results.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A training run, started from the beginning or from a checkpoint. */
typedef struct run {
    const cli_values *v; /* options of train, with --memory resolved */
    cli_folder *folder;  /* NULL without --checkpoint */
    int resumed;         /* true if the folder was read by mercer resume, not created */
    int begun;           /* true once the folder contains this run, so that it can be resumed */
    int force;           /* true: continue even if data files have changed */
    cli_job job;
    cli_watch watch;
    cli_log *log;
    mercer_report report;
    cli_metrics metrics;
    double start;
} run;

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

/* Grace period in milliseconds: after a signal, training has this time to write its log and end by itself. FOLDER_GRACE
   is longer, so that training with a run folder can reach its first step. */
enum { GRACE = 150, FOLDER_GRACE = 5000 };

/* From now on, a signal ends the program, because nothing computed since the last checkpoint is worth saving. `what` is
   the part of the message about written files. With several ranks this function has no effect: a signal is shared among
   the ranks, which then end together. */
static void end_on_signals(const run *r, int grace, const char *what)
{
    if (cli_comm() != NULL) return;
    int resumable = r->folder != NULL && (r->resumed || r->begun);
    CLI_OWNED(cli_drop)
    char *text = resumable ? cli_format("interrupted; %s; continue with: mercer resume %s", what, r->folder->path)
                           : cli_format("interrupted; %s", what);
    CLI_OWNED(cli_drop) char *shown = cli_visible(text);
    cli_end_on_signals(grace, resumable ? CLI_INTERRUPTED : 0, shown);
}

/* Makes a signal end the program while data are read. */
static void end_while_reading(const run *r)
{
    if (r->folder == NULL)
        end_on_signals(r, GRACE, "nothing was written (use --checkpoint DIR to save the state)");
    else
        end_on_signals(r, GRACE, r->resumed ? "the run is unchanged" : "nothing was written");
}

/* Prints the error for a received signal and returns its exit code, which depends on the run folder. */
static int report_interruption(const run *r, int with_checkpoint)
{
    cli_end_by_itself();
    if (r->folder == NULL)
        return cli_error(cli_signal_code(),
                         "interrupted; nothing was written (use --checkpoint DIR to save the state)");
    if (r->folder->replaces)
        return cli_error(cli_signal_code(), "interrupted; nothing was written, and the earlier run in %s is unchanged",
                         r->folder->path);
    return cli_error(CLI_INTERRUPTED, "interrupted; %s; continue with: mercer resume %s",
                     with_checkpoint ? "checkpoint written" : "no checkpoint was written yet", r->folder->path);
}

static int check_signals(const run *r)
{
    int stop = 0, code = cli_interrupted(&stop);
    int with_checkpoint = r->folder != NULL &&
                          cli_folder_has_checkpoint(r->folder); /* the search and rounds of training write one, too */
    return code == CLI_OK && stop ? report_interruption(r, with_checkpoint) : code;
}

/* ---- Detecting changed data -------------------------------------------------------------------------------------- */

/* Compares sizes and modification times of the input files with those recorded by the original run, if `larger`: the
   fingerprint of large data covers only a sample. */
static int check_modification_times(run *r, int larger)
{
    json_t *files = cli_input_states(r->v);
    int changed = r->resumed && larger && json_is_object(r->folder->files) && !json_equal(files, r->folder->files);
    if (changed && !r->force) {
        json_decref(files);
        return cli_error(CLI_DATA, "%s: a file was modified since the run began; use --force to continue with it",
                         cli_data_name(r->v));
    }
    if (changed) cli_warn("%s: a file was modified since the run began", cli_data_name(r->v));
    json_decref(r->folder->files);
    r->folder->files = files;
    return CLI_OK;
}

static int begin_folder(run *r)
{
    CLI_TRY(cli_folder_begin(r->folder, r->v));
    r->begun = 1;
    return CLI_OK;
}

static int check_fingerprints(run *r)
{
    enum { WHOLE_BYTES = 1 << 30 }; /* data up to this size are fingerprinted in full, larger data by a sample */
    int larger = 0, verify = cli_flag(r->v, "verify");
    static const char *const parts[] = {"training", "validation"};
    const mercer_dataset *datasets[] = {r->job.parts.train, r->job.parts.validation};
    for (int i = 0; i < 2; i++) {
        uint64_t found = 0;
        if (datasets[i] != NULL) {
            CLI_TRY(cli_check(r->job.context, verify ? mercer_dataset_checksum(datasets[i], &found)
                                                     : mercer_dataset_fingerprint(datasets[i], &found)));
            mercer_dataset_info info = cli_data_info(datasets[i]);
            double bytes = (double)info.rows * (double)info.features * (double)cli_dtype_size(info.dtype);
            larger = larger || (bytes > WHOLE_BYTES && !verify);
        }
        if (r->resumed && found != r->folder->fingerprints[i]) {
            if (!r->force)
                return cli_error(CLI_DATA,
                                 "%s: the %s data changed since the run began; use --force to continue with them",
                                 cli_data_name(r->v), parts[i]);
            cli_warn("%s: the %s data changed since the run began", cli_data_name(r->v), parts[i]);
        }
        r->folder->fingerprints[i] = found;
    }
    CLI_TRY(check_modification_times(r, larger));
    /* If --force replaces an old run, keep the old run until all checks have passed. */
    return r->resumed || r->folder->replaces ? CLI_OK : begin_folder(r);
}

/* ---- From options to a model ------------------------------------------------------------------------------------- */

/* Sets the progress callback and checkpoint options of the fit. */
static void set_run_options(run *r)
{
    mercer_train_options *options = &r->job.train;
    r->job.options.run.progress = cli_watch_progress;
    r->job.options.run.progress_user = &r->watch;
    options->progress_seconds = 0.05;
    if (r->folder == NULL) return;
    double seconds = cli_number(r->v, "checkpoint-every");
    options->checkpoint = r->folder->checkpoint;
    options->checkpoint_seconds = seconds > 0 ? seconds : 1e-9; /* 0 would mean the default */
    if (r->resumed && cli_folder_has_checkpoint(r->folder)) r->job.options.run.checkpoint = r->folder->checkpoint;
}

/* Prints the decisions of the fit that have a text, except the decision not to search. */
static void print_decisions(const run *r)
{
    mercer_decision one = MERCER_INIT(mercer_decision);
    int exists = 1;
    for (int i = 0; mercer_fitting_decision(r->job.fitting, i, &one, &exists) == MERCER_OK && exists; i++)
        if (one.text[0] != '\0' && !(strcmp(one.name, "search") == 0 && strcmp(one.value, "none") == 0))
            cli_say(r->v, "%s: %s", one.stage, one.text);
}

/* Prepares the fit, and shows and logs its plan before training starts. */
static int prepare_fit(run *r)
{
    CLI_OWNED(cli_drop) mercer_plan *plan = cli_allocate(1, sizeof *plan);
    plan->struct_size = sizeof *plan;
    mercer_status status = mercer_fitting_prepare(r->job.fitting, plan);
    cli_bar_clear(&r->watch.bar);
    /* A failure may be the effect of a signal; then report the signal. */
    if (status == MERCER_OK || status == MERCER_ERROR_CALLBACK) CLI_TRY(check_signals(r));
    if (status != MERCER_OK) return cli_job_fail(&r->job, status);
    cli_job_look(&r->job);
    if (cli_flag(r->v, "verbose")) {
        print_decisions(r);
        cli_show_plan(&r->job, plan, stderr);
    }
    cli_log_start(r->log, &r->job, r->resumed);
    cli_log_event(r->log, "plan", cli_plan_json(plan));
    cli_log_learned(r->log, &r->job);
    cli_log_search(r->log, &r->job);
    cli_watch_start(&r->watch, r->job.parts.trainer, plan);
    return CLI_OK;
}

static int fit_model(run *r)
{
    CLI_TRY(prepare_fit(r));
    if (r->folder != NULL && r->folder->replaces) CLI_TRY(begin_folder(r));
    /* Set-up may take long but changes nothing that a checkpoint stores, so until the first step a signal ends the
       program without saving. */
    r->watch.saves_checkpoint = r->folder != NULL;
    if (r->folder != NULL) end_on_signals(r, FOLDER_GRACE, "training had not begun");
    r->report = (mercer_report){.struct_size = sizeof r->report};
    r->job.fit.training = &r->report;
    cli_timeline_next(&r->job.timeline, "set-up: other");
    mercer_status status = mercer_fitting_run(r->job.fitting, NULL);
    if (status == MERCER_OK) cli_job_look(&r->job);
    if (r->folder != NULL) cli_end_by_itself(); /* until the model is saved */
    if (status == MERCER_OK) cli_timeline_report(&r->job.timeline, &r->report);
    if (status == MERCER_OK) cli_watch_plan(&r->watch, r->report.plan);
    cli_bar_clear(&r->watch.bar);
    if (status == MERCER_ERROR_CALLBACK) CLI_TRY(check_signals(r)); /* during calibration */
    return status == MERCER_OK ? CLI_OK : cli_job_fail(&r->job, status);
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

static int save_model(run *r)
{
    mercer_save_options options = {.struct_size = sizeof options,
                                   .centers = cli_dtype(cli_text(r->v, "save-centers-as"))};
    return cli_check(r->job.context, mercer_model_save(r->job.parts.model, cli_text(r->v, "output"), &options));
}

/* Logs a comparison of predictions with targets: confusion matrix and curves for a classifier, pairs of values for a
   regression model. */
static void log_comparison(const run *r)
{
    if (r->metrics.all.task != MERCER_TASK_CLASSIFICATION) {
        cli_log_event(r->log, "predictions", cli_predictions_json(&r->metrics, "validation"));
        return;
    }
    json_t *names = json_array();
    for (int64_t i = 0; i < r->job.info.outputs; i++) {
        json_t *name = json_string(r->job.info.labels[i]);
        json_array_append_new(names, name != NULL ? name : json_string("?"));
    }
    const double *matrix = mercer_evaluation_confusion(r->metrics.evaluation);
    cli_log_event(r->log, "curves", cli_curves_json(&r->metrics, r->job.info.labels, "validation"));
    cli_log_event(r->log, "confusion",
                  json_pack("{ss so so}", "data", "validation", "labels", names, "matrix",
                            cli_confusion_json(matrix, r->metrics.all.outputs)));
}

static json_t *summary_json(const run *r, const cli_metrics *metrics, const cli_score *score, double seconds)
{
    json_t *object = cli_summary_json(&r->report, metrics, seconds);
    json_object_set_new(object, "held_out", cli_score_json(score));
    json_t *members = cli_members_json(r->job.parts.model);
    json_object_set_new(object, "timeline", cli_timeline_json(&r->job.timeline));
    if (members != NULL) json_object_set_new(object, "members", members);
    return object;
}

/* Measures the importance of columns in at most 4 % of `seconds`, the duration of the run so far. Returns NULL if the
   result would not be shown, or with several ranks, because all ranks would have to take part. */
static json_t *measure_importance(run *r, double seconds)
{
    const double share = 0.04;
    const mercer_dataset *held = r->job.parts.validation;
    if (cli_comm() != NULL || (cli_flag(r->v, "quiet") && !cli_flag(r->v, "json"))) return NULL;
    return cli_find_importance(r->job.parts.model, held != NULL ? held : r->job.parts.train, share * seconds,
                               &r->watch.bar);
}

static int finish_run(run *r)
{
    const cli_job *job = &r->job;
    int code = CLI_OK;
    cli_timeline_next(&r->job.timeline, "writing the model");
    CLI_TRY(save_model(r));
    end_on_signals(r, GRACE, "the model was written");
    cli_timeline_next(&r->job.timeline, "evaluation");
    if (job->parts.validation != NULL)
        CLI_TRY(cli_evaluate(job->parts.model, job->context, job->parts.validation, "validation data", 0, &r->watch.bar,
                             &r->metrics));
    const cli_metrics *metrics = job->parts.validation != NULL ? &r->metrics : NULL;
    cli_score score = cli_find_score(job, metrics);
    cli_timeline_next(&r->job.timeline, "importance of columns");
    json_auto_t *importance = measure_importance(r, cli_now() - r->start);
    double seconds = cli_now() - r->start;
    cli_timeline_next(&r->job.timeline, "log");
    cli_log_event(r->log, "plan", cli_plan_json(r->report.plan)); /* with the final numbers */
    cli_log_spectrum(r->log, job->parts.trainer, &r->report);
    if (metrics != NULL) log_comparison(r);
    if (cli_log_has_file(r->log) && cli_comm() == NULL)
        cli_log_importance(r->log, job->parts.model, metrics != NULL ? job->parts.validation : job->parts.train);
    cli_timeline_end(&r->job.timeline);
    cli_log_event(r->log, "warnings", json_pack("{so}", "texts", cli_warnings_json()));
    cli_log_event(r->log, "summary", summary_json(r, metrics, &score, seconds));
    if (r->folder != NULL) {
        r->folder->finished = 1;
        code = cli_folder_write(r->folder, r->v);
    }
    cli_show_summary(job, &r->report, metrics, seconds);
    cli_show_result(job, &r->report, &score, importance, seconds);
    if (code != CLI_OK || !cli_flag(r->v, "json")) return code;
    json_t *object = summary_json(r, metrics, &score, seconds);
    json_object_set_new(object, "importance", importance != NULL ? json_incref(importance) : json_null());
    json_object_set_new(object, "output", cli_json_text(cli_text(r->v, "output")));
    json_object_set_new(object, "kernel", json_string(job->fit.kernel));
    json_object_set_new(object, "centers", json_integer(job->fit.centers));
    json_object_set_new(object, "data", cli_data_json(&job->info));
    if (job->search.steps != NULL) json_object_set_new(object, "search", cli_search_json(job));
    json_object_set_new(object, "decisions", cli_decisions_json(job->fitting));
    json_object_set_new(object, "plan", cli_plan_json(r->report.plan));
    json_object_set_new(object, "predicted_seconds", cli_json_real(job->fit.predicted_seconds));
    return cli_print_answer(object);
}

/* ---- The commands ------------------------------------------------------------------------------------------------ */

static int run_steps(run *r)
{
    cli_job_init(&r->job, r->v);
    set_run_options(r);
    CLI_TRY(cli_job_open(&r->job));
    cli_timeline_next(&r->job.timeline, "splitting data");
    CLI_TRY(cli_job_begin(&r->job));
    if (!cli_flag(r->v, "verbose")) cli_show_read(&r->job);
    /* Open the log only after the data, so that a run that cannot read its data leaves existing logs unchanged. */
    CLI_TRY(cli_log_open(&r->log, cli_text(r->v, "log")));
    r->watch.log = r->log;
    if (r->folder != NULL) CLI_TRY(check_fingerprints(r));
    CLI_TRY(check_signals(r));
    if (r->folder != NULL) cli_end_by_itself(); /* the search saves its results when a signal stops it */
    cli_timeline_next(&r->job.timeline, "bandwidth, centers, plan");
    CLI_TRY(fit_model(r));
    if (r->report.stopped != MERCER_STOP_CALLBACK) return finish_run(r);
    cli_log_event(r->log, "interrupted",
                  json_pack("{si so}", "signal", cli_signal(), "seconds", cli_json_real(cli_now() - r->start)));
    return report_interruption(r, 1);
}

static int run_training(const cli_values *v, cli_folder *folder, int resumed, int force)
{
    run *r = cli_allocate(1, sizeof *r);
    *r = (run){.v = v, .folder = folder, .resumed = resumed, .force = force, .start = cli_now()};
    cli_bar_init(&r->watch.bar, v);
    r->watch.job = &r->job;
    r->watch.validation_accuracy = r->watch.validation_loss = (double)NAN;
    cli_catch_signals();
    cli_keep_on_request();
    cli_outlive_readers();
    end_while_reading(r);
    int code = run_steps(r);
    int logged = cli_log_close(r->log);
    cli_metrics_free(&r->metrics);
    cli_job_free(&r->job);
    free(r);
    return code != CLI_OK ? code : logged;
}

/* Runs all checks that need no data. */
static int check_training(const cli_values *v)
{
    CLI_TRY(cli_check_data(v));
    CLI_TRY(cli_check_job(v));
    CLI_TRY(cli_check_centers(v));
    if (cli_flag(v, "quiet") && cli_flag(v, "verbose"))
        return cli_error(CLI_USAGE, "--quiet and --verbose exclude each other; remove one of them");
    if (!cli_given(v, "output") && access(cli_text(v, "output"), F_OK) == 0 && !cli_flag(v, "force"))
        return cli_error(CLI_USAGE, "%s exists; add --force to overwrite it, or -o FILE to write another file",
                         cli_text(v, "output"));
    if (cli_is(v, "output", "-"))
        return cli_error(CLI_USAGE, "--output: a model cannot be written to stdout; name a file");
    CLI_TRY(cli_check_output(cli_text(v, "output")));
    return cli_check_log(cli_text(v, "log"));
}

/* Creates the folder on rank 0, and shares folder->replaces with the other ranks: the message after a signal depends on
   it. */
static int create_folder(cli_folder *folder, int force)
{
    CLI_TRY(cli_folder_create(folder, force));
    if (cli_comm() == NULL) return CLI_OK;
    return cli_check(cli_comm_context(), mercer_comm_any(cli_comm(), &folder->replaces, folder->replaces));
}

int cli_train(const cli_values *v)
{
    CLI_TRY(check_training(v));
    /* Store --memory as a number, because the plan of a resumed run must be the same even if the free memory is not.
       (The checkpoint of a run on a GPU stores the memory limit of the device.) */
    CLI_OWNED(cli_drop_values) cli_values *fixed = cli_values_copy(v);
    CLI_OWNED(cli_drop) char *memory = cli_format("%" PRId64, cli_memory(v));
    if (!cli_names_gpu(v))
        cli_values_set(fixed, cli_find_option(cli_values_command(v), "memory"), memory, CLI_FROM_COMMAND, "--memory");
    /* Store --comm too, because a single process may resume a run of several ranks: --comm mpi in config.json means
       that the centers are in shards. */
    if (cli_is_mpi())
        cli_values_set(fixed, cli_find_option(cli_values_command(v), "comm"), "mpi", CLI_FROM_COMMAND, "--comm");
    /* Store --output as given explicitly: a resumed run writes the same file, even if the file exists by then. */
    cli_values_set(fixed, cli_find_option(cli_values_command(v), "output"), cli_text(v, "output"), CLI_FROM_COMMAND,
                   "--output");
    CLI_OWNED(cli_drop_folder) cli_folder *folder = NULL;
    if (cli_text(v, "checkpoint") != NULL) {
        folder = cli_folder_new(cli_text(v, "checkpoint"));
        cli_ranks_folder(folder->path);
        CLI_TRY(create_folder(folder, cli_flag(v, "force")));
    }
    return run_training(fixed, folder, 0, 0);
}

/* Sets `train` to the options of the original run, overridden by those that resume may change. */
static int resumed_values(const cli_values *v, const cli_folder *folder, cli_values *train)
{
    static const char *const changeable[] = {"threads", "device",  "log",  "checkpoint-every", "deadline", "json",
                                             "quiet",   "verbose", "color"};
    CLI_TRY(cli_take_config(train, folder->options, folder->config, CLI_FROM_CONFIG));
    for (size_t i = 0; i < sizeof changeable / sizeof changeable[0]; i++) {
        const cli_option *option = cli_find_option(cli_values_command(train), changeable[i]);
        /* Ignore the output mode of the original run. */
        int talk = cli_has_word("json|quiet|verbose", changeable[i]);
        if (talk)
            CLI_TRY(cli_values_set(train, option, cli_flag(v, changeable[i]) ? "true" : "false", CLI_FROM_COMMAND, ""));
        else if (cli_given(v, changeable[i]))
            CLI_TRY(cli_values_set(train, option, cli_text(v, changeable[i]), CLI_FROM_COMMAND, changeable[i]));
    }
    CLI_TRY(cli_check_files(train)); /* the new --log may be one of the run's files */
    return check_training(train);
}

int cli_resume(const cli_values *v)
{
    CLI_OWNED(cli_drop_folder) cli_folder *folder = cli_folder_new(cli_positional(v, 0));
    CLI_OWNED(cli_drop_values) cli_values *train = cli_values_new(cli_find_command("train"));
    cli_ranks_folder(folder->path);
    CLI_TRY(cli_folder_read(folder));
    CLI_TRY(resumed_values(v, folder, train));
    CLI_TRY(cli_folder_take(
        folder)); /* lock a finished run too: its process may have been killed before it removed the lock file */
    if (folder->finished && access(cli_text(train, "output"), F_OK) == 0) {
        cli_say(v, "%s: the run is finished; its model is %s", folder->path, cli_text(train, "output"));
        if (!cli_flag(v, "json")) return CLI_OK;
        return cli_print_answer(
            json_pack("{ss so}", "stopped", "finished", "output", cli_json_text(cli_text(train, "output"))));
    }
    folder->finished = 0;
    return run_training(train, folder, 1, cli_flag(v, "force"));
}
