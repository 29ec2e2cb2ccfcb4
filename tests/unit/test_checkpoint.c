/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints: training that is stopped anywhere and resumed ends with weights bitwise identical to an uninterrupted
   run. */
#include "support/folder.h"

#include "support/info.h"
#include "support/sources.h"
#include "support/tampered.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[FOLDER_CHARS + 64];
static int shards = 0; /* number of virtual shards of each training run; 0: no communicator */

static int open_folder(void **state)
{
    folder_open();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    return open_all(state);
}

static int close_folder(void **state)
{
    folder_close();
    return close_all(state);
}

typedef struct stopper {
    int64_t calls, stop_at; /* number of progress calls; call to stop at, 0: never */
    mercer_trainer *trainer;
    int64_t ask_at; /* progress call that requests a checkpoint; 0: never */
    ino_t file;     /* inode of the checkpoint file at the last call; 0: no file yet */
    int64_t new_at; /* progress call that last found a replaced checkpoint file */
    int news;       /* number of calls that found one */
} stopper;

static int count_calls(void *user, const mercer_progress *progress)
{
    stopper *self = user;
    struct stat about;
    if (progress->phase) return 0; /* set-up, which a resumed run repeats */
    self->calls++;
    if (stat(path, &about) == 0 && about.st_ino != self->file) {
        if (self->file) self->news++, self->new_at = self->calls;
        self->file = about.st_ino;
    }
    if (self->ask_at == self->calls) assert_int_equal(mercer_trainer_checkpoint(self->trainer), MERCER_OK);
    return self->calls == self->stop_at;
}

typedef struct run_result {
    dense weights;
    int stopped;
    int64_t calls;
    mercer_report report;
} run_result;

/* Train from scratch, or from the checkpoint if `resume`, until call number `stop_at` of the progress callback. */
static run_result run_until(const task *self, mercer_train_options options, int threads, bool resume, int64_t stop_at,
                            bool with_checkpoint)
{
    mercer_context *with = open_context(threads);
    stopper watch = {.stop_at = stop_at};
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    mercer_comm *comm = NULL;
    run_result out = {.report = {.struct_size = sizeof out.report}};
    options.progress = count_calls, options.progress_user = &watch;
    options.progress_seconds = 1e-9; /* shorter than any step, so every step calls the callback */
    options.checkpoint = with_checkpoint ? path : NULL;
    options.checkpoint_note = "note";
    if (resume)
        assert_succeeds(with, mercer_model_load(&model, with, NULL, path));
    else
        assert_succeeds(with,
                        mercer_model_create(&model, with, NULL, &self->kernel, &self->z, self->y.cols, self->x.dtype));
    assert_succeeds(with, source_from_matrices(&source, with, &self->x, &self->y, self->weights, self->seed));
    if (shards > 0) assert_succeeds(with, mrc_comm_create_virtual(&comm, with, shards));
    assert_succeeds(with, mercer_trainer_create(&trainer, model, comm, &options));
    if (resume) assert_succeeds(with, mercer_trainer_resume(trainer, path));
    assert_succeeds(with, mercer_trainer_fit(trainer, &source, &out.report));
    copy_plan(&out.report);
    mercer_matrix weights = model_info(model).weights;
    out.weights = dense_of(&weights);
    out.stopped = out.report.stopped;
    out.calls = watch.calls;
    mercer_trainer_free(trainer);
    mercer_comm_free(comm);
    mercer_source_free(&source);
    mercer_model_free(model);
    mercer_context_free(with);
    return out;
}

static void assert_same(dense a, dense b, const char *what, int64_t where)
{
    assert_true(a.rows == b.rows && a.cols == b.cols);
    if (memcmp(a.a, b.a, (size_t)(a.rows * a.cols) * sizeof(double)) != 0)
        fail_msg("%s stopped at %lld: other weights", what, (long long)where);
}

/* A checkpoint is also a model file, with the model at the time of writing. */
static void assert_saved(dense weights, const char *what, int64_t where)
{
    mercer_model *saved;
    assert_succeeds(context, mercer_model_load(&saved, context, NULL, path));
    mercer_matrix found = model_info(saved).weights;
    dense copy = dense_of(&found);
    assert_same(weights, copy, what, where);
    free(copy.a);
    mercer_model_free(saved);
}

/* Check runs that are stopped once at each of several calls, and a chain of runs that are each stopped after
   `chain_calls` calls. chain_calls must be large enough that every run makes progress; 0: no chain. */
static void check_solver(const task *self, mercer_train_options options, int64_t chain_calls, const char *what)
{
    run_result whole = run_until(self, options, 2, false, 0, false);
    assert_int_equal(whole.stopped, 0);
    int64_t stride = whole.calls / (SANITIZED ? 3 : 7) + 1;
    if (SANITIZED) chain_calls *= 3;
    for (int64_t at = 1; at < whole.calls; at += stride) {
        run_result part = run_until(self, options, 2, false, at, true);
        assert_int_equal(part.stopped, 2);
        /* Solvers other than cg project at the end, which changes the weights. */
        if (strcmp(options.solver, "cg") == 0) assert_saved(part.weights, what, at);
        run_result rest = run_until(self, options, 1, true, 0, false);
        assert_int_equal(rest.stopped, 0);
        assert_same(whole.weights, rest.weights, what, at);
        assert_int_equal(rest.report.epochs, whole.report.epochs);
        assert_int_equal(rest.report.steps, whole.report.steps);
        assert_int_equal(rest.report.samples, whole.report.samples);
        free(part.weights.a), free(rest.weights.a);
    }
    run_result chain = run_until(self, options, 2, false, chain_calls, true);
    for (int64_t at = 1; chain.stopped == 2; at++) {
        assert_true(at < 1000);
        free(chain.weights.a);
        chain = run_until(self, options, 1 + (int)(at % 3), true, chain_calls, true);
    }
    assert_same(whole.weights, chain.weights, what, -1);
    free(whole.weights.a), free(chain.weights.a);
}

static void test_iterative_solvers(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep4", "ep3", "ep3-exact", "gd"};
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (int ridge = SANITIZED ? (int)i % 2 : 0; ridge < 2; ridge += SANITIZED ? 2 : 1) {
            task self =
                task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
            mercer_train_options options = options_for(solvers[i]);
            options.epochs = 3, options.batch = 40, options.nystrom = 50, options.eigenpairs = 8;
            options.lambda = ridge ? 0.1 : 0;
            if (i == 0) options.period = 3, options.projector = ridge ? "pcg" : "bgs";
            check_solver(&self, options, 2, solvers[i]);
            task_close(&self);
        }
}

/* Temporary centers of several shards, stopped within a period; batch sizes 40, 37 and 3, the last below the shard
   count. */
static void test_shards(void **state)
{
    (void)state;
    static const int64_t batches[] = {40, 37, 3};
    for (int i = 0; i < 6; i += SANITIZED ? 5 : 1) {
        task self =
            task_open(context, "laplace:bandwidth=3", (sizes){.n = 110, .p = 30, .d = 4, .c = 2}, 1, MERCER_F32);
        mercer_train_options options = options_for("ep4");
        options.epochs = 2, options.nystrom = 50, options.eigenpairs = 8, options.projector_block = 12;
        options.batch = batches[i % 3], options.period = i % 3 == 2 ? 11 : 3;
        options.lambda = i % 2 ? 0.1 : 0, options.projector = i % 2 ? "pcg" : "bgs";
        shards = i < 3 ? 8 : 5;
        check_solver(&self, options, i % 3 == 2 ? 9 : 2, "ep4 with shards");
        shards = 0;
        task_close(&self);
    }
}

static void test_centers_are_samples(void **state)
{
    (void)state;
    static const char *const solvers[] = {"ep2", "pegasos", "richardson"};
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 120, .d = 3, .c = 2}, 1, MERCER_F64);
        mercer_train_options options = options_for(solvers[i]);
        options.epochs = 4;
        check_solver(&self, options, 2, solvers[i]);
        task_close(&self);
    }
}

static void test_projectors_and_caches(void **state)
{
    (void)state;
    static const char *const projectors[] = {"exact", "ep2", "pcg", "bgs"};
    for (int i = 0; i < 8; i++) {
        task self =
            task_open(context, "laplace:bandwidth=3", (sizes){.n = 200, .p = 50, .d = 4, .c = 2}, 1, MERCER_F32);
        mercer_train_options options = options_for("ep4");
        options.projector = projectors[i % 4];
        options.epochs = 3, options.batch = 32, options.period = 1 + i % 3;
        options.cache = i < 4 ? MERCER_ON : MERCER_OFF;
        options.polish = i == 1 ? 3 : 0;
        check_solver(&self, options, options.polish ? 0 : 2, projectors[i % 4]);
        task_close(&self);
    }
}

static void test_exact_solvers(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i += SANITIZED ? 2 : 1) {
        task self =
            task_open(context, "laplace:bandwidth=3", (sizes){.n = SANITIZED ? 600 : 3000, .p = 80, .d = 4, .c = 2}, 1,
                      i % 2 ? MERCER_F64 : MERCER_F32);
        mercer_train_options options = options_for("cg");
        options.epochs = 9, options.lambda = i > 1 ? 0.5 : 0;
        options.cache = i == 2 ? MERCER_ON : MERCER_AUTO;
        check_solver(&self, options, 7, "cg");
        options.solver = "direct";
        check_solver(&self, options, 0, "direct");
        task_close(&self);
    }
}

/* With 44 MiB of memory, conjugate gradients must work without a factor of K(Z,Z). */
static void test_without_factor(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 2600, .p = 2400, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("cg");
    options.epochs = 4, options.memory = 44 << 20;
    run_result once = run_until(&self, options, 2, false, 0, false);
    assert_true(mentions(once.report.plan->text, "polynomial"));
    assert_that(once.report.peak_bytes <= options.memory, "%lld bytes", (long long)once.report.peak_bytes);
    free(once.weights.a);
    check_solver(&self, options, 7, "cg without a factor");
    task_close(&self);
}

/* Early stopping: the state includes the best weights and how long ago they were found. */
static void test_validation(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_matrix x = mrc_rows(&self.x, 0, 50), y = mrc_rows(&self.y, 0, 50);
    self.x = mrc_rows(&self.x, 0, 250), self.y = mrc_rows(&self.y, 0, 250);
    mercer_train_options options = options_for("ep4");
    options.epochs = 12, options.batch = 50, options.patience = 2;
    options.validation_X = &x, options.validation_Y = &y;
    run_result whole = run_until(&self, options, 2, false, 0, false);
    for (int64_t at = 1; at < whole.calls; at += 5) {
        run_result part = run_until(&self, options, 2, false, at, true);
        run_result rest = run_until(&self, options, 2, true, 0, false);
        assert_same(whole.weights, rest.weights, "early stopping", at);
        assert_int_equal(rest.stopped, whole.stopped);
        free(part.weights.a), free(rest.weights.a);
    }
    free(whole.weights.a);
    task_close(&self);
}

/* The checkpoint stores the note and can be loaded as a model; checkpoints that do not match the run are rejected. */
static void test_rejected_arguments(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 3, options.batch = 40;
    run_result part = run_until(&self, options, 2, false, 5, true);
    free(part.weights.a);
    mercer_model *model, *other;
    mercer_trainer *trainer;
    mercer_source source;
    assert_succeeds(context, mercer_model_load(&model, context, NULL, path));
    assert_string_equal(model_info(model).note, "note");
    assert_succeeds(context, source_from_matrices(&source, context, &self.x, &self.y, NULL, self.seed));

    options.epochs = 4; /* a different number of epochs */
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_succeeds(context, mercer_trainer_resume(trainer, path));
    assert_fails(context, mercer_trainer_fit(trainer, &source, NULL), MERCER_ERROR_MISMATCH, "epochs 3");
    mercer_trainer_free(trainer);

    self.z.rows--; /* one center less */
    assert_succeeds(context, mercer_model_create(&other, context, NULL, &self.kernel, &self.z, 2, MERCER_F32));
    assert_succeeds(context, mercer_trainer_create(&trainer, other, NULL, &options));
    assert_fails(context, mercer_trainer_resume(trainer, path), MERCER_ERROR_MISMATCH, "centers");
    assert_fails(context, mercer_trainer_resume(trainer, "no such file"), MERCER_ERROR_MISSING, "no such file");
    assert_succeeds(context, mercer_model_save(other, path, NULL));
    assert_fails(context, mercer_trainer_resume(trainer, path), MERCER_ERROR_FORMAT, "checkpoint");
    mercer_trainer_free(trainer);
    mercer_model_free(other);

    options.checkpoint = "/no/such/folder/checkpoint"; /* must fail before training, not after it */
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_fails(context, mercer_trainer_fit(trainer, &source, NULL), MERCER_ERROR_IO, "/no/such/folder");
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    self.z.rows++;
    task_close(&self);
}

static void test_spectrum(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 1, options.nystrom = 100, options.eigenpairs = 10;
    mercer_model *model;
    mercer_trainer *trainer;
    mercer_source source;
    double values[32];
    int64_t count = -1;
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &self.kernel, &self.z, 2, MERCER_F32));
    assert_succeeds(context, source_from_matrices(&source, context, &self.x, &self.y, NULL, self.seed));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_succeeds(context, mercer_trainer_spectrum(trainer, NULL, 0, &count));
    assert_int_equal(count, 0);
    assert_succeeds(context, mercer_trainer_fit(trainer, &source, NULL));
    assert_succeeds(context, mercer_trainer_spectrum(trainer, values, 32, &count));
    assert_int_equal(count, 11);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_true(values[i] > 0 && (i == 0 || values[i] <= values[i - 1]));
        sum += values[i];
    }
    assert_true(sum <= 1 + 1e-6); /* at most the trace of K / s, which is 1 because K(x, x) = 1 */
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    task_close(&self);
}

/* A checkpoint requested within an epoch is written before the next step and does not change the weights. */
static void test_on_request(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 1, options.batch = 20, options.nystrom = 50, options.eigenpairs = 8;
    run_result whole = run_until(&self, options, 1, false, 0, false);
    for (int64_t ask = 0; ask <= 6; ask += 6) {
        mercer_model *model;
        mercer_source source;
        stopper watch = {.ask_at = ask};
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &self.kernel, &self.z, 2, MERCER_F32));
        assert_succeeds(context, source_from_matrices(&source, context, &self.x, &self.y, NULL, self.seed));
        options.progress = count_calls, options.progress_user = &watch, options.progress_seconds = 1e-9;
        options.checkpoint = path, options.checkpoint_seconds = 1e9;
        assert_succeeds(context, mercer_trainer_create(&watch.trainer, model, NULL, &options));
        assert_succeeds(context, mercer_trainer_fit(watch.trainer, &source, NULL));
        assert_int_equal(watch.news, ask > 0);
        assert_int_equal(watch.new_at, ask > 0 ? ask + 1 : 0);
        mercer_matrix weights = model_info(model).weights;
        dense found = dense_of(&weights);
        assert_same(whole.weights, found, "asked for a checkpoint", ask);
        free(found.a);
        mercer_trainer_free(watch.trainer);
        mercer_source_free(&source);
        mercer_model_free(model);
    }
    mercer_trainer *without;
    mercer_model *model;
    assert_int_equal(mercer_trainer_checkpoint(NULL), MERCER_ERROR_ARGUMENT);
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &self.kernel, &self.z, 2, MERCER_F32));
    options.checkpoint = NULL;
    assert_succeeds(context, mercer_trainer_create(&without, model, NULL, &options));
    assert_int_equal(mercer_trainer_checkpoint(without), MERCER_ERROR_ARGUMENT);
    assert_true(mentions(mercer_last_error(NULL), "options.checkpoint"));
    mercer_trainer_free(without);
    mercer_model_free(model);
    free(whole.weights.a);
    task_close(&self);
}

/* ---- Corrupted files ------------------------------------------------------------------------------------------- */

/* Resume training from the file `from` and return the status. */
static mercer_status go_on(const task *self, mercer_train_options options, const char *from)
{
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    assert_succeeds(context, mercer_model_load(&model, context, NULL, path));
    assert_succeeds(context, source_from_matrices(&source, context, &self->x, &self->y, NULL, self->seed));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    mercer_status status = mercer_trainer_resume(trainer, from);
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, &source, NULL);
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return status;
}

static const char *const state_names[] = {"state.plan", "state.names", "state.numbers", "state.alpha", "state.best"};
static int number_at;

static void set_number(const mercer_matrix *value, double number)
{
    ((double *)value->data)[number_at] = number;
}

static void set_letter(const mercer_matrix *value, double letter)
{
    ((char *)value->data)[number_at] = (char)letter;
}

/* A state tensor that is missing, not finite, or of another shape or type is rejected; the message names it. */
static void test_tampered(void **state)
{
    (void)state;
    const char *other = in_folder("other.safetensors");
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_matrix x = mrc_rows(&self.x, 0, 50), y = mrc_rows(&self.y, 0, 50);
    mercer_train_options options = options_for("ep4");
    options.epochs = 3, options.batch = 40, options.nystrom = 50, options.eigenpairs = 8, options.patience = 2;
    options.validation_X = &x, options.validation_Y = &y;
    run_result part = run_until(&self, options, 2, false, 12, true);
    free(part.weights.a);
    write_again(path, other, &(tampering){.name = ""});
    assert_succeeds(context, go_on(&self, options, other));
    for (size_t i = 0; i < sizeof state_names / sizeof *state_names; i++)
        for (damage what = DROPPED; what <= NOT_FINITE; what++) {
            if (what == NOT_FINITE && (i == 1 || i == 2)) continue; /* bytes; numbers that may be NaN */
            write_again(path, other, &(tampering){state_names[i], .what = what});
            mercer_status status = go_on(&self, options, other);
            const char *message = mercer_last_error(context);
            assert_that(status == MERCER_ERROR_MISMATCH || status == MERCER_ERROR_FORMAT || status == MERCER_ERROR_DATA,
                        "%s, change %d: %s, %s", state_names[i], (int)what, mercer_status_string(status), message);
            const char *says = i == 0 && what == DROPPED      ? "checkpoint"
                               : i == 0 && what == NOT_FINITE ? "targets_high nan"
                               : i < 2                        ? "plan*version"
                               : i == 2                       ? "solver*version"
                                                              : state_names[i];
            assert_that(mentions(message, says), "%s, change %d: %s", state_names[i], (int)what, message);
        }
    write_again(path, other, &(tampering){"kernel", .what = DROPPED});
    assert_fails(context, go_on(&self, options, other), MERCER_ERROR_MISMATCH, "kernel*laplace:bandwidth=3");
    /* Numbers by their index in the state of the trainer and the solver. */
    static const struct {
        int at;
        double good, bad;
        const char *says;
    } counts[] = {{0, 0, -1, "checkpoint's epoch is -1"},
                  {0, 3, 4, "range"},
                  {1, 0, -1, "checkpoint's pass_rows is -1"},
                  {1, 300, 301, "range"},
                  {1, 300, 0.5, "checkpoint's pass_rows is 0.5"},
                  {2, 0, -1, "checkpoint's samples is -1"},
                  {2, 8.9e15, 9.1e15, "checkpoint's samples is 9.1e+15"},
                  {2, 1, (double)NAN, "checkpoint's samples is nan"},
                  {7, 0, -1, "checkpoint's seconds is -1"},
                  {7, 9, (double)NAN, "checkpoint's seconds is nan"},
                  {7, 9, 1e300, "checkpoint's seconds is 1e+300"},
                  {8, -1e300, 2, "checkpoint's best_score is 2"},
                  {12, 0, (double)INFINITY, "checkpoint's watchdog.seen is inf"},
                  {18, 1, (double)INFINITY, "checkpoint's heaviest is inf"},
                  {19, (double)NAN, -1, "checkpoint's train_loss is -1"},
                  {23, 1, 0.5, "checkpoint's have_best is 0.5"},
                  {30, 0.5, 1e-320, "checkpoint's halving is"},
                  {34, 0.5, (double)NAN, "checkpoint's last_step is nan"},
                  {35, 0.5, 2, "checkpoint's decay is 2"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        number_at = counts[i].at;
        write_again(path, other, &(tampering){"state.numbers", .set = set_number, .to = counts[i].bad});
        mercer_status status = go_on(&self, options, other);
        const char *says = counts[i].says;
        assert_fails(context, status, MERCER_ERROR_FORMAT, says);
        write_again(path, other, &(tampering){"state.numbers", .set = set_number, .to = counts[i].good});
        status = go_on(&self, options, other);
        assert_that(status == MERCER_OK || !mentions(mercer_last_error(context), says), "%d: %s", (int)i,
                    mercer_last_error(context));
    }
    task_close(&self);
}

/* If a value of the plan differs, the checkpoint is refused with a message that names the value. Threads and budget are
   read from the checkpoint, so they are refused only if they are invalid for any training run. */
static void test_other_plans(void **state)
{
    (void)state;
    static const struct {
        int at;
        double to;
        const char *says;
        mercer_status status;
    } values[] = {{0, 0, "0 threads", MERCER_ERROR_FORMAT},
                  {0, (double)NAN, "nan threads", MERCER_ERROR_FORMAT},
                  {1, -1, "-1 bytes", MERCER_ERROR_FORMAT},
                  {2, 299, " n 299*300", MERCER_ERROR_MISMATCH},
                  {8, 4, "epochs 4*3", MERCER_ERROR_MISMATCH},
                  {9, (double)NAN, "batch nan*40", MERCER_ERROR_MISMATCH},
                  {24, 1, "half_precision 1*0", MERCER_ERROR_MISMATCH},
                  {27, 9, "seed 9*3", MERCER_ERROR_MISMATCH},
                  {28, 1, "seed_high 1*0", MERCER_ERROR_MISMATCH}};
    const char *other = in_folder("other.safetensors");
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 300, .p = 60, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 3, options.batch = 40, options.nystrom = 50, options.eigenpairs = 8;
    run_result part = run_until(&self, options, 2, false, 12, true);
    free(part.weights.a);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        number_at = values[i].at;
        write_again(path, other, &(tampering){"state.plan", .set = set_number, .to = values[i].to});
        assert_fails(context, go_on(&self, options, other), values[i].status, values[i].says);
    }
    number_at = 2; /* changes the last letter of the solver's name and the first letter of the projector's name */
    write_again(path, other, &(tampering){"state.names", .set = set_letter, .to = '3'});
    assert_fails(context, go_on(&self, options, other), MERCER_ERROR_MISMATCH, "solver ep3*ep4");
    number_at = 16;
    write_again(path, other, &(tampering){"state.names", .set = set_letter, .to = 'x'});
    assert_fails(context, go_on(&self, options, other), MERCER_ERROR_MISMATCH, "has projector x");
    task_close(&self);
}

/* A checkpoint of another kernel, or of centers that differ only in the last element. */
static void test_other_models(void **state)
{
    (void)state;
    task self = task_open(context, "laplace:bandwidth=3", (sizes){.n = 100, .p = 30, .d = 4, .c = 2}, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 1, options.batch = 40;
    run_result part = run_until(&self, options, 1, false, 2, true);
    free(part.weights.a);
    for (int which = 0; which < 3; which++) {
        mercer_model *model;
        mercer_trainer *trainer;
        mercer_kernel kernel;
        assert_succeeds(context,
                        mercer_kernel_parse(&kernel, context, which ? "laplace:bandwidth=3" : "laplace:bandwidth=4"));
        mercer_matrix z = data_matrix(30, which == 2 ? 3 : 4, 0, MERCER_F32);
        for (int64_t i = 0; i < 30; i++)
            for (int64_t j = 0; j < z.cols; j++) data_store(&z, i, j, mrc_load(&self.z, i, j));
        if (which == 1) data_store(&z, 29, 3, 77);
        assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, 2, MERCER_F32));
        assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
        assert_fails(context, mercer_trainer_resume(trainer, path), MERCER_ERROR_MISMATCH,
                     which ? "its centers" : "kernel*laplace:bandwidth=3");
        mercer_trainer_free(trainer);
        mercer_model_free(model);
        free(z.data);
    }
    task_close(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iterative_solvers),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_centers_are_samples),
        cmocka_unit_test(test_projectors_and_caches),
        cmocka_unit_test(test_exact_solvers),
        cmocka_unit_test(test_without_factor),
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_rejected_arguments),
        cmocka_unit_test(test_spectrum),
        cmocka_unit_test(test_on_request),
        cmocka_unit_test(test_tampered),
        cmocka_unit_test(test_other_plans),
        cmocka_unit_test(test_other_models),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
