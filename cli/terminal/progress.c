/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a training run: the progress bar, a plain line per epoch, events of the log. */
#include "terminal/progress.h"
#include "options/options.h"
#include "ranks/program_ranks.h"
#include "results/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of passes done, including the fraction of the current one. */
static double passes_done(const mercer_progress *p)
{
    double part = p->pass_total > 0 ? (double)p->pass_samples / (double)p->pass_total : 0;
    return (double)p->epoch + (part < 1 ? part : 1);
}

void cli_log_progress(cli_log *log, const mercer_progress *p, int ended)
{
    json_t *event =
        json_pack("{sf sI sI so so so so so so so sI sI}", "epoch", passes_done(p), "epochs", (json_int_t)p->epochs,
                  "samples", (json_int_t)p->samples, "seconds", cli_json_real(p->seconds), "train_loss",
                  cli_json_real(p->train_loss), "train_accuracy", cli_json_real(p->train_accuracy), "validation_loss",
                  cli_json_real(p->validation_loss), "validation_accuracy", cli_json_real(p->validation_accuracy),
                  "projection_residual", cli_json_real(p->projection_residual), "step", cli_json_real(p->step), "steps",
                  (json_int_t)p->steps, "projections", (json_int_t)p->projections);
    cli_log_event(log, ended ? "epoch" : "progress", event);
}

/* Logs progress, between epochs at most once per second. */
static void log_progress(cli_watch *watch, const mercer_progress *p, int ended)
{
    if (!ended && p->seconds - watch->last_logged < 1) return;
    watch->last_logged = p->seconds;
    cli_log_progress(watch->log, p, ended);
}

/* Appends a formatted value to a text, truncated to its capacity. */
static void append_value(char *text, size_t size, const char *format, double value)
{
    size_t used = strlen(text);
    if (used + 1 < size) snprintf(text + used, size - used, format, value);
}

static void draw_progress(cli_watch *watch, const mercer_progress *p, int ended)
{
    char text[256] = "", eta[CLI_SHORT];
    double done = passes_done(p), share = p->epochs > 0 ? done / (double)p->epochs : -1;
    double seconds = p->seconds - watch->first_seconds, passes = done - watch->first_passes;
    double rate = seconds > 0 ? (double)(p->samples - watch->first_samples) / seconds : 0;
    int64_t epoch = ended || p->epoch == p->epochs ? p->epoch : p->epoch + 1;
    if (watch->unit != NULL)
        snprintf(text, sizeof text, "%s %" PRId64 "/%" PRId64, watch->unit, epoch, p->epochs);
    else
        snprintf(text, sizeof text, "solving");
    if (isfinite(p->train_loss)) append_value(text, sizeof text, "  loss %.5f", p->train_loss);
    if (isfinite(watch->validation_accuracy))
        append_value(text, sizeof text, "  validation %.2f %%", 100 * watch->validation_accuracy);
    else if (isfinite(watch->validation_loss))
        append_value(text, sizeof text, "  validation loss %.5f", watch->validation_loss);
    else if (watch->search_error > 0)
        append_value(text, sizeof text, "  held-out R2 %.3f in the search", 1 - watch->search_error);
    if (rate >= 10000)
        append_value(text, sizeof text, "  %.0fk rows/s", rate / 1000);
    else if (rate > 0)
        append_value(text, sizeof text, "  %.0f rows/s", rate);
    if (passes > 0 && done < (double)p->epochs) {
        size_t used = strlen(text);
        cli_seconds_text(eta, seconds / passes * ((double)p->epochs - done));
        snprintf(text + used, sizeof text - used, "  ETA %s", eta);
    }
    cli_bar_draw(&watch->bar, share, text, ended);
}

/* Draws the progress of set-up. The last call of this function is the start from which rates and remaining time are
   measured. */
static void draw_setup(cli_watch *watch, const mercer_progress *p)
{
    char text[256], seconds[CLI_SHORT];
    watch->begun = 1;
    watch->first_samples = p->samples;
    watch->first_seconds = p->seconds;
    watch->first_passes = passes_done(p);
    snprintf(text, sizeof text, "setting up: %s, %s", p->phase, cli_seconds_text(seconds, p->seconds));
    cli_bar_draw(&watch->bar, p->phase_share, text, 1);
}

/* Prints one line per epoch, if there is no progress bar. */
static void print_epoch(cli_watch *watch, const mercer_progress *p)
{
    char text[256] = "", seconds[CLI_SHORT];
    if (watch->unit != NULL)
        snprintf(text, sizeof text, "%s %" PRId64 "/%" PRId64 ": ", watch->unit, p->epoch, p->epochs);
    else
        snprintf(text, sizeof text, "solved: ");
    if (isfinite(p->train_loss)) append_value(text, sizeof text, "loss %.6f, ", p->train_loss);
    if (isfinite(p->train_accuracy)) append_value(text, sizeof text, "accuracy %.2f %%, ", 100 * p->train_accuracy);
    if (isfinite(p->validation_loss)) append_value(text, sizeof text, "validation loss %.6f, ", p->validation_loss);
    if (isfinite(p->validation_accuracy))
        append_value(text, sizeof text, "validation accuracy %.2f %%, ", 100 * p->validation_accuracy);
    cli_say(watch->job->v, "%s%s", text, cli_seconds_text(seconds, p->seconds));
}

void cli_watch_start(cli_watch *watch, mercer_trainer *trainer, const mercer_plan *plan)
{
    mercer_solver_kind kind = mercer_solver_kind_of(plan->solver);
    watch->unit = kind == MERCER_SOLVER_DIRECT ? NULL : kind == MERCER_SOLVER_STEPS ? "step" : "epoch";
    watch->trainer = trainer;
    watch->changes_shown = plan->changes;
}

void cli_watch_plan(cli_watch *watch, const mercer_plan *plan)
{
    if (plan->changes <= watch->changes_shown) return;
    char *lines = cli_copy(plan->text + strlen(plan->text) - (plan->changes - watch->changes_shown)), *rest = NULL;
    cli_bar_clear(&watch->bar);
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (cli_flag(watch->job->v, "verbose")) cli_say(watch->job->v, "%s", line);
    free(lines);
    cli_watch_start(watch, watch->trainer, plan);
}

/* Prints changes that set-up has made to the plan. */
static void report_plan_changes(cli_watch *watch)
{
    CLI_OWNED(cli_drop) mercer_report *report = cli_allocate(1, sizeof *report);
    report->struct_size = sizeof *report;
    if (watch->trainer != NULL && mercer_trainer_report(watch->trainer, report) == MERCER_OK)
        cli_watch_plan(watch, report->plan);
}

/* Writes a checkpoint if SIGUSR1 requested one. A request on one rank is enough. */
static void checkpoint_if_requested(cli_watch *watch)
{
    int silent = cli_rank() > 0 && !cli_is_mpi(); /* if ranks are threads, only rank 0 takes the request */
    if (watch->trainer == NULL || silent || !cli_take_request()) return;
    cli_bar_clear(&watch->bar);
    if (mercer_trainer_checkpoint(watch->trainer) == MERCER_OK)
        cli_say(watch->job->v, "SIGUSR1: a checkpoint is written; training continues");
    else
        cli_warn("SIGUSR1: no checkpoint is written without --checkpoint; training continues");
}

int cli_watch_stages(void *user, const mercer_progress *p)
{
    cli_bar *bar = user;
    char text[96];
    if (strcmp(p->stage, "search") == 0)
        snprintf(text, sizeof text, "search, step %" PRId64 " of %" PRId64 ", held-out R2 %.3f", p->done, p->total,
                 1 - p->error);
    else if (strcmp(p->stage, "members") == 0)
        snprintf(text, sizeof text, "model %" PRId64 " of %" PRId64, p->done + 1, p->total);
    else if (strcmp(p->stage, "calibration") == 0)
        snprintf(text, sizeof text, "cross-validation, part %" PRId64 " of %" PRId64, p->done + 1, p->total);
    else
        snprintf(text, sizeof text, "%s%s", strcmp(p->stage, "centers") == 0 ? "choosing " : "", p->stage);
    cli_bar_draw(bar, p->total > 0 ? (double)p->done / (double)p->total : -1, text, 0);
    return cli_signal() != 0;
}

int cli_watch_progress(void *user, const mercer_progress *p)
{
    cli_watch *watch = user;
    if (strcmp(p->stage, "search") == 0) watch->search_error = p->error;
    if (strcmp(p->stage, "training") != 0) return cli_watch_stages(&watch->bar, p);
    checkpoint_if_requested(watch);
    cli_timeline_progress(&watch->job->timeline, p);
    if (p->phase != NULL) {
        draw_setup(watch, p);
        return cli_signal() != 0;
    }
    /* An epoch has ended if no partial pass is in progress and the epoch was not reported before. */
    int ended = p->pass_samples == 0 && p->epoch > watch->epoch;
    if (!watch->begun) {
        if (watch->saves_checkpoint) cli_end_by_itself();
        report_plan_changes(watch);
        watch->begun = 1;
        watch->first_samples = ended ? 0 : p->samples;
        watch->first_seconds = ended ? 0 : p->seconds;
        watch->first_passes = ended ? 0 : passes_done(p);
    }
    if (ended) watch->epoch = p->epoch;
    if (isfinite(p->validation_accuracy)) watch->validation_accuracy = p->validation_accuracy;
    if (isfinite(p->validation_loss)) watch->validation_loss = p->validation_loss;
    log_progress(watch, p, ended);
    if (watch->bar.on)
        draw_progress(watch, p, ended);
    else if (ended && cli_flag(watch->job->v, "verbose"))
        print_epoch(watch, p);
    return cli_signal() != 0;
}

int cli_watch_job(cli_job *job, cli_bar *bar, const cli_values *v)
{
    cli_bar_init(bar, v);
    cli_catch_signals();
    cli_job_init(job, v);
    job->options.run.progress = cli_watch_stages;
    job->options.run.progress_user = bar;
    return cli_job_open(job);
}

/* ---- Events and objects ------------------------------------------------------------------------------------------ */

json_t *cli_plan_json(const mercer_plan *p)
{
    json_t *object = json_pack("{ss ss sI sI sI sI sI sI sI sI sI}", "solver", p->solver, "projector", p->projector,
                               "epochs", (json_int_t)p->epochs, "batch", (json_int_t)p->batch, "nystrom",
                               (json_int_t)p->nystrom, "eigenpairs", (json_int_t)p->eigenpairs, "period",
                               (json_int_t)p->period, "projector_nystrom", (json_int_t)p->projector_nystrom,
                               "projector_eigenpairs", (json_int_t)p->projector_eigenpairs, "projector_passes",
                               (json_int_t)p->projector_passes, "projector_block", (json_int_t)p->projector_block);
    json_auto_t *rest = json_pack(
        "{sb sb sb sb sb ss so so sI so so ss}", "carry", p->carry, "average", p->average, "decay", p->decay,
        "cache_data", p->cache_data, "cache_centers", p->cache_centers, "precision", cli_dtype_name(p->precision),
        "step_factor", cli_json_real(p->step_factor), "lambda", cli_json_real(p->lambda), "bytes", (json_int_t)p->bytes,
        "flops", cli_json_real(p->flops), "seconds", cli_json_real(p->seconds), "text", p->text);
    json_object_update(object, rest);
    return object;
}

void cli_log_start(cli_log *log, const cli_job *job, int resumed)
{
    mercer_matrix centers = cli_model_info(job->parts.model).centers;
    json_t *chosen = json_pack("{sI ss ss}", "count", (json_int_t)centers.rows, "method", cli_job_center_method(job),
                               "dtype", cli_dtype_name(centers.dtype));
    if (job->choice.seconds > 0) {
        json_object_set_new(chosen, "iterations", json_integer(job->choice.iterations));
        json_object_set_new(chosen, "error", cli_json_real(job->choice.error));
        json_object_set_new(chosen, "seconds", cli_json_real(job->choice.seconds));
    }
    json_t *event = json_pack("{ss ss so so so ss ss sb}", "version", mercer_version(), "command", "train", "config",
                              cli_config_object(job->v), "data", cli_data_json(&job->info), "centers", chosen, "kernel",
                              job->fit.kernel, "preprocess", job->fit.preprocess, "resumed", resumed);
    cli_log_event(log, "start", event);
}

void cli_log_spectrum(cli_log *log, const mercer_trainer *trainer, const mercer_report *report)
{
    int64_t count = 0;
    if (mercer_trainer_spectrum(trainer, NULL, 0, &count) != MERCER_OK || count == 0) return;
    CLI_OWNED(cli_drop) double *values = cli_allocate(count, sizeof *values);
    mercer_trainer_spectrum(trainer, values, count, &count);
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(array, cli_json_real(values[i]));
    cli_log_event(log, "spectrum",
                  json_pack("{so sI so}", "values", array, "eigenpairs", (json_int_t)report->plan->eigenpairs, "tail",
                            cli_json_real(report->tail)));
}

/* Returns the seconds of each phase. For solvers that do not iterate over batches, the phase "solve" is the rest of the
   training time. */
static json_t *phases_json(const mercer_report *r)
{
    double named = r->setup_seconds + r->forward_seconds + r->gradient_seconds + r->projection_seconds;
    double rest = r->seconds - named - r->validation_seconds;
    json_t *phases = json_pack("{so so so so}", "setup", cli_json_real(r->setup_seconds), "forward",
                               cli_json_real(r->forward_seconds), "gradient", cli_json_real(r->gradient_seconds),
                               "projection", cli_json_real(r->projection_seconds));
    if (mercer_solver_kind_of(r->plan->solver) < MERCER_SOLVER_BATCHES)
        json_object_set_new(phases, "solve", cli_json_real(rest > 0 ? rest : 0));
    json_object_set_new(phases, "validation", cli_json_real(r->validation_seconds));
    return phases;
}

json_t *cli_summary_json(const mercer_report *r, const cli_metrics *metrics, double seconds)
{
    static const char *const stops[] = {"finished", "early", "interrupted", "budget"};
    json_t *object = metrics != NULL ? cli_metrics_json(&metrics->all) : json_object();
    json_auto_t *rest =
        json_pack("{so so sI sI sI sI so so so sI so so sI so ss}", "train_loss", cli_json_real(r->train_loss),
                  "train_accuracy", cli_json_real(r->train_accuracy), "epochs", (json_int_t)r->epochs, "samples",
                  (json_int_t)r->samples, "steps", (json_int_t)r->steps, "projections", (json_int_t)r->projections,
                  "projection_residual", cli_json_real(r->projection_residual_last), "tail", cli_json_real(r->tail),
                  "beta", cli_json_real(r->beta), "halvings", (json_int_t)r->halvings, "phases", phases_json(r),
                  "seconds", cli_json_real(seconds), "peak_bytes", (json_int_t)r->peak_bytes, "flops",
                  cli_json_real(r->flops), "stopped", stops[r->stopped >= 0 && r->stopped < 4 ? r->stopped : 0]);
    json_object_update(object, rest);
    if (cli_ranks() > 1) {
        mercer_comm_info info = {.struct_size = sizeof info};
        mercer_comm_query(cli_comm(), &info);
        json_object_set_new(object, "ranks", json_integer(info.ranks));
        json_object_set_new(object, "bytes_sent", json_integer(info.bytes_sent)); /* sent by rank 0 */
        json_object_set_new(object, "exchanges", json_integer(info.exchanges));
        json_object_set_new(object, "direct", json_boolean(info.direct)); /* true: directly between GPUs */
    }
    return object;
}

/* ---- Text output ------------------------------------------------------------------------------------------------- */

static char *solver_text(const mercer_plan *plan)
{
    char batch[CLI_SHORT], sample[CLI_SHORT], pairs[CLI_SHORT];
    cli_count_text(batch, plan->batch);
    cli_count_text(sample, plan->nystrom);
    cli_count_text(pairs, plan->eigenpairs);
    mercer_solver_kind kind = mercer_solver_kind_of(plan->solver);
    if (kind == MERCER_SOLVER_DIRECT) return cli_copy(plan->solver);
    if (kind == MERCER_SOLVER_STEPS) return cli_format("%s, at most %" PRId64 " steps", plan->solver, plan->epochs);
    return cli_format("%s, projector %s, %" PRId64 " %s, batch %s, preconditioner %s of %s samples", plan->solver,
                      plan->projector, plan->epochs, plan->epochs == 1 ? "epoch" : "epochs", batch, pairs, sample);
}

static char *preprocess_text(const cli_job *job)
{
    const char *spec = job->fit.preprocess;
    double factor = strncmp(spec, "scale:factor=", 13) == 0 ? strtod(spec + 13, NULL) : 0;
    if (factor == 1.0 / 255) spec = "scale: pixels / 255";
    return cli_format("%s%s", spec,
                      cli_job_decision(job, "kernel", "folded") != NULL
                          ? ", folded into the bandwidth, so samples keep their type"
                          : "");
}

void cli_show_plan(const cli_job *job, const mercer_plan *plan, FILE *file)
{
    const mercer_model *model = job->parts.model;
    mercer_dtype centers = model != NULL ? cli_model_info(model).centers.dtype : job->fit.points;
    char count[CLI_SHORT], bytes[CLI_SHORT], budget[CLI_SHORT], seconds[CLI_SHORT];
    cli_table *table = cli_table_new(2, "ll");
    cli_table_row(table, "data", cli_data_text(&job->info));
    cli_table_row(table, "target", cli_target_text(job->v, &job->info));
    for (int i = 0; cli_schema_titles[i] != NULL; i++)
        cli_table_row(table, cli_schema_titles[i],
                      cli_schema_text(job->info.schema, cli_schema_titles[i], job->info.features));
    if (job->info.schema != NULL) cli_table_row(table, "", cli_copy("(--columns NAME:KIND and --drop NAME to change)"));
    if (job->fit.validation_rows > 0)
        cli_table_row(table, "validation", cli_format("%s rows", cli_count_text(count, job->fit.validation_rows)));
    if (cli_has(job->v, "augment") && cli_text(job->v, "augment") != NULL)
        cli_table_row(table, "augmentation",
                      cli_format("%s, %s samples per epoch", cli_text(job->v, "augment"),
                                 cli_count_text(count, job->fit.samples)));
    cli_table_row(table, "preprocess", preprocess_text(job));
    cli_table_row(table, "targets", model != NULL ? cli_targets_text(model) : NULL);
    cli_table_row(table, "kernel", cli_copy(job->fit.kernel));
    const char *bandwidth = cli_job_decision(job, "kernel", "bandwidth");
    if (bandwidth != NULL)
        cli_table_row(
            table, "",
            cli_format("bandwidth %.4g (median distance; set --bandwidth to change)", strtod(bandwidth, NULL)));
    cli_table_row(table, "centers",
                  cli_format("%s, %s, %s", cli_count_text(count, job->fit.centers), cli_job_center_method(job),
                             cli_dtype_name(centers)));
    if (job->fit.members > 1) cli_table_row(table, "models", cli_format("average of %" PRId64, job->fit.members));
    cli_table_row(table, "solver", solver_text(plan));
    cli_table_row(table, "precision", cli_copy(cli_dtype_name(plan->precision)));
    cli_table_row(table, "memory",
                  cli_job_on_device(job)
                      ? cli_format("%s for training, on the device%s", cli_bytes_text(bytes, plan->bytes),
                                   cli_ranks() > 1 ? "s" : "")
                      : cli_format("%s for training; limit of the whole fit: %s", cli_bytes_text(bytes, plan->bytes),
                                   cli_bytes_text(budget, job->fit.memory)));
    cli_table_row(table, "time",
                  cli_format("about %s in total", cli_seconds_text(seconds, job->fit.predicted_seconds)));
    cli_table_print(table, file);
}

void cli_show_summary(const cli_job *job, const mercer_report *r, const cli_metrics *metrics, double seconds)
{
    char text[CLI_SHORT];
    if (!cli_flag(job->v, "verbose") || cli_rank() > 0) return;
    cli_table *table = cli_table_new(2, "ll");
    const mercer_metrics *all = metrics != NULL ? &metrics->all : NULL;
    if (all != NULL && all->task == MERCER_TASK_CLASSIFICATION)
        cli_table_row(
            table, "accuracy",
            cli_format("%.2f %% of %s validation samples", 100 * all->accuracy, cli_count_text(text, all->rows)));
    if (all != NULL && all->task == MERCER_TASK_CLASSIFICATION && isfinite(all->auc))
        cli_table_row(table, "auc", cli_format("%.4f, log loss %.4g", all->auc, all->log_loss));
    if (all != NULL && all->task != MERCER_TASK_CLASSIFICATION) {
        if (isfinite(all->r2))
            cli_table_row(table, "r2",
                          cli_format("%.4f on %s validation samples", all->r2, cli_count_text(text, all->rows)));
        cli_table_row(table, "rmse", cli_format("%.4g, mean absolute error %.4g", all->rmse, all->mae));
    }
    if (all != NULL) cli_table_row(table, "mse", cli_format("%.6g", all->mse));
    if (isfinite(r->train_loss))
        cli_table_row(table, "training loss",
                      cli_format("%.6g%s", r->train_loss,
                                 r->stopped == MERCER_STOP_PATIENCE ? " (stopped early)"
                                 : r->stopped == MERCER_STOP_BUDGET ? " (ended at the time limit)"
                                                                    : ""));
    if (r->halvings > 0)
        cli_table_row(table, "step",
                      cli_format("step size halved %" PRId64 " times, because the loss increased", r->halvings));
    cli_table_row(table, "time", cli_format("%s", cli_seconds_text(text, seconds)));
    cli_table_row(table, "memory", cli_format("%s at the peak", cli_bytes_text(text, r->peak_bytes)));
    fputc('\n', stderr); /* blank line after the plan */
    cli_table_print(table, stderr);
}
