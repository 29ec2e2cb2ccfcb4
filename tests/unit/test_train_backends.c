/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole training runs on every available backend: two runs give the same bits; several ranks on one machine give the
 * model of one rank; a training run that is stopped and resumed gives the result of an uninterrupted one; memory stays
 * within the plan; and all backends learn the same model.
 *
 * Several ranks, and another backend, round differently at every step: |alpha - alpha'|_H is at most the number of
 * steps times one step's rounding (one_step_error, derived in test_identities.c), in float with its own unit.
 */
#include "support/folder.h"

#include "support/info.h"
#include "support/sources.h"
#include "support/training.h"

#include "backends/backend.h"

#include <stdio.h>
#include <unistd.h>

static const char *const KERNEL = "laplace:bandwidth=2";

static const struct {
    const char *solver, *projector;
    bool on_samples; /* true: the centers are the samples */
} ways[] = {{"direct", NULL, false}, {"cg", NULL, false},   {"ep3-exact", NULL, false}, {"nytro", NULL, false},
            {"gd", NULL, false},     {"ep2", NULL, true},   {"ep1", NULL, true},        {"richardson", NULL, true},
            {"pegasos", NULL, true}, {"ep3", NULL, false},  {"ep4", "exact", false},    {"ep4", "ep2", false},
            {"ep4", "pcg", false},   {"ep4", "bgs", false}, {"krr", NULL, true}};
enum { WAYS = sizeof ways / sizeof *ways };

static mercer_train_options options_of(int way)
{
    const char *solver = ways[way].solver;
    mercer_train_options options = options_for(solver);
    options.projector = ways[way].projector;
    bool stochastic = strcmp(solver, "pegasos") == 0 || strncmp(solver, "ep", 2) == 0;
    if (stochastic && strcmp(solver, "ep3-exact") != 0) options.batch = 8;
    options.nystrom = 40, options.eigenpairs = 3, options.epochs = 3;
    if (projects(solver)) options.projector_nystrom = 20, options.projector_eigenpairs = 4, options.projector_block = 8;
    options.memory = (int64_t)4 << 30; /* the plan must not depend on free memory */
    return options;
}

/* Returns a context, or NULL if the backend's device is not present. */
static mercer_context *context_on(const char *backend, const char *arithmetic)
{
    mercer_context *made = NULL;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.backend = backend, options.arithmetic = arithmetic, options.threads = 2;
    mercer_status status = mercer_context_create(&made, &options);
    if (status == MERCER_ERROR_UNSUPPORTED && mercer_device_count(backend) == 0) {
        print_message("    %s left out: %s\n", backend, mercer_last_error(NULL));
        return NULL;
    }
    assert_succeeds(NULL, status);
    return made;
}

static const char *const arithmetics[] = {"accurate", "fast", "auto"};
enum { ARITHMETICS = sizeof arithmetics / sizeof *arithmetics };

/* Returns another context like the one passed to a test under that name. */
static mercer_context *context_like(const char *name)
{
    for (int how = 1; how < ARITHMETICS; how++)
        if (strstr(name, arithmetics[how])) return context_on("cuda", arithmetics[how]);
    return context_on(name, "accurate");
}

typedef void (*context_test)(mercer_context *with, const char *name);

static void for_each_context(context_test test)
{
    for (int b = 0; mrc_backend_registry[b]; b++)
        for (int how = 0; how < ARITHMETICS; how++) {
            const char *name = mrc_backend_registry[b]->name;
            if (how > 0 && strcmp(name, "cuda") != 0) continue; /* same for other backends */
            mercer_context *with = context_on(name, arithmetics[how]);
            if (!with) continue;
            char label[32];
            snprintf(label, sizeof label, "%s%s%s", name, how ? ", " : "", how ? arithmetics[how] : "");
            print_message("    %s\n", label);
            test(with, label);
            mercer_context_free(with);
        }
}

/* ---- The same bits ------------------------------------------------------------------------------------------- */

static void train_twice(mercer_context *with, const char *name)
{
    int first_way = SANITIZED && strcmp(name, "cpu") == 0;
    for (int way = first_way; way < WAYS; way += SANITIZED ? 2 : 1)
        for (int single = SANITIZED ? way % 2 : 0; single < (SANITIZED ? way % 2 + 1 : 2); single++) {
            mercer_dtype real = single ? MERCER_F32 : MERCER_F64;
            /* more than 128 centers: fast arithmetic is used if it is requested */
            task t =
                task_open(with, KERNEL, (sizes){SANITIZED ? 180 : 300, ways[way].on_samples ? 0 : 170, 4, 2}, 1, real);
            mercer_train_options options = options_of(way);
            dense first = train_as(&t, &options, 0, real, NULL);
            mercer_context *other = context_like(name);
            dense again = train_as(&t, &options, 0, real, NULL); /* with what the first left in the context */
            task elsewhere = t;
            elsewhere.context = other;
            dense fresh = train_as(&elsewhere, &options, 0, real, NULL);
            assert_that(dense_distance(first, again) == 0, "%s, %s %s: %g", name, ways[way].solver,
                        ways[way].projector ? ways[way].projector : "", dense_distance(first, again));
            assert_that(dense_distance(first, fresh) == 0, "%s, %s %s, new context: %g", name, ways[way].solver,
                        ways[way].projector ? ways[way].projector : "", dense_distance(first, fresh));
            free(first.a), free(again.a), free(fresh.a);
            mercer_context_free(other);
            task_close(&t);
        }
}

static void test_same_bits(void **state)
{
    (void)state;
    for_each_context(train_twice);
}

/* ---- Where samples come from --------------------------------------------------------------------------------- */

/* A user-defined source: its samples must be sent to a device batch by batch; built-in sources may store them there. */
static int forward_restart(void *user, int64_t epoch)
{
    const mercer_source *inner = user;
    return inner->restart(inner->user, epoch);
}

static int forward_next(void *user, int64_t most, mercer_batch *batch)
{
    const mercer_source *inner = user;
    return inner->next(inner->user, most, batch);
}

static mercer_source others_source(mercer_source *inner)
{
    mercer_source out = *inner;
    out.restart = forward_restart, out.next = forward_next, out.user = inner;
    out.skip = NULL, out.release = NULL, out.last_error = NULL;
    return out;
}

static dense train_from(const task *self, const mercer_train_options *options, mercer_dtype real,
                        const mercer_source *source)
{
    mercer_context *with = self->context;
    mercer_model *model;
    mercer_trainer *trainer;
    assert_succeeds(with, mercer_model_create(&model, with, NULL, &self->kernel, &self->z, self->y.cols, real));
    assert_succeeds(with, mercer_trainer_create(&trainer, model, NULL, options));
    assert_succeeds(with, mercer_trainer_fit(trainer, source, NULL));
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    mercer_trainer_free(trainer);
    mercer_model_free(model);
    return out;
}

static dense train_from_others(const task *self, const mercer_train_options *options, mercer_dtype real)
{
    mercer_context *with = self->context;
    mercer_source inner;
    assert_succeeds(with, source_from_matrices(&inner, with, &self->x, &self->y, self->weights, self->seed));
    mercer_source source = others_source(&inner);
    dense out = train_from(self, options, real, &source);
    mercer_source_free(&inner);
    return out;
}

static void stream_and_store(mercer_context *with, const char *name)
{
    for (int way = 0; way < WAYS; way++) {
        mercer_dtype real = way % 2 ? MERCER_F32 : MERCER_F64;
        task t = task_open(with, KERNEL, (sizes){300, ways[way].on_samples ? 0 : 170, 4, 2}, 1, real);
        mercer_train_options options = options_of(way);
        if (options.batch > 0) options.batch = 30;
        dense stored = train_as(&t, &options, 0, real, NULL), streamed = train_from_others(&t, &options, real);
        assert_that(dense_distance(stored, streamed) == 0, "%s, %s %s: %g", name, ways[way].solver,
                    ways[way].projector ? ways[way].projector : "", dense_distance(stored, streamed));
        free(stored.a), free(streamed.a);
        task_close(&t);
    }
}

static void test_sources(void **state)
{
    (void)state;
    for_each_context(stream_and_store);
}

/* Augmented samples, made by the host or on the backend's device; an epoch has more samples than the data have rows. */
static void augment(mercer_context *with, const char *name)
{
    static const char *const specs[] = {"noise:sigma=0.2", "flip+mixup:alpha=0.5+noise:sigma=0.1+shift:pixels=1"};
    for (int i = 0; i < 2; i++) {
        task t = task_open(with, KERNEL, (sizes){300, 170, 4, 2}, 1, MERCER_F32);
        mercer_train_options options = options_of(13);
        options.batch = 30, options.epochs = 1;
        mercer_dataset *data;
        mercer_source inner;
        mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &t.x, .Y = &t.y};
        mercer_stream_options stream = {
            .struct_size = sizeof stream, .seed = 3, .augment = specs[i], .height = 2, .width = 2, .samples = 700};
        assert_succeeds(with, mercer_dataset_from_arrays(&data, with, &arrays));
        assert_succeeds(with, mercer_source_from_dataset(&inner, data, &stream));
        mercer_source others = others_source(&inner);
        dense here = train_from(&t, &options, MERCER_F32, &others);
        dense on_device = train_from(&t, &options, MERCER_F32, &inner);
        assert_that(dense_distance(here, on_device) == 0, "%s, %s: %g", name, specs[i],
                    dense_distance(here, on_device));
        free(here.a), free(on_device.a);
        mercer_source_free(&inner);
        mercer_dataset_free(data);
        task_close(&t);
    }
}

/* Noise outside the range of half precision is detected, wherever it is added. */
static void augment_too_much(mercer_context *with, const char *name)
{
    (void)name;
    task t = task_open(with, KERNEL, (sizes){60, 20, 4, 2}, 1, MERCER_F32);
    mercer_train_options options = options_of(13);
    mercer_matrix halves = data_matrix(60, 4, 0, MERCER_F16);
    mercer_dataset *data;
    mercer_source source;
    mercer_model *model;
    mercer_trainer *trainer;
    for (int64_t i = 0; i < 60; i++)
        for (int64_t j = 0; j < 4; j++) data_store(&halves, i, j, mrc_load(&t.x, i, j));
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &halves, .Y = &t.y};
    mercer_stream_options stream = {.struct_size = sizeof stream, .augment = "noise:sigma=1e6"};
    assert_succeeds(with, mercer_dataset_from_arrays(&data, with, &arrays));
    assert_succeeds(with, mercer_source_from_dataset(&source, data, &stream));
    assert_succeeds(with, mercer_model_create(&model, with, NULL, &t.kernel, &t.z, 2, MERCER_F32));
    assert_succeeds(with, mercer_trainer_create(&trainer, model, NULL, &options));
    assert_fails(with, mercer_trainer_fit(trainer, &source, NULL), MERCER_ERROR_DATA, "source: X");
    mercer_trainer_free(trainer), mercer_model_free(model);
    mercer_source_free(&source), mercer_dataset_free(data);
    free(halves.data);
    task_close(&t);
}

static void test_augmented(void **state)
{
    (void)state;
    for_each_context(augment);
    for_each_context(augment_too_much);
}

/* ---- Ranks and machines -------------------------------------------------------------------------------------- */

/* Returns the bound from the top of this file; half precision is a different function with its own bound. */
static double limit_of(const task *t, const kernels *k, dense a, int way, bool single)
{
    double limit = 37 * (single ? 0x1p-24 / U : 1) * one_step_error(t, k, a) * (way < 2 ? k->condition : 1);
    /* cg stops at 1e-4 of the gradient, after a number of steps that rounding may change */
    return way == 1 ? limit + 2e-4 * k->condition * rkhs_norm(k->zz, a) : limit;
}

static void train_on_ranks(mercer_context *with, const char *name)
{
    static const int counts[] = {1, 2, 3, 8};
    if (strchr(name, ',')) return; /* not in half precision */
    for (int way = 0; way < WAYS; way++)
        for (int single = SANITIZED ? way % 2 : 0; single < (SANITIZED ? way % 2 + 1 : 2); single++) {
            mercer_dtype real = single ? MERCER_F32 : MERCER_F64;
            task t = task_open(with, KERNEL, (sizes){90, ways[way].on_samples ? 0 : 30, 4, 2}, 1, real);
            task on_cpu = t;
            on_cpu.context = context;
            mercer_train_options options = options_of(way);
            kernels k = kernels_of(&t);
            dense first = train_as(&on_cpu, &options, 0, real, NULL);
            double limit = limit_of(&t, &k, first, way, single);
            for (int r = 0; r < 4; r += SANITIZED ? 2 : 1) {
                dense a = train_as(&t, &options, counts[r], real, NULL);
                double error = rkhs_distance(k.zz, a, first);
                assert_that(error <= limit, "%s, %s %s f%d, %d ranks: %g, bound %g", name, ways[way].solver,
                            ways[way].projector ? ways[way].projector : "", single ? 32 : 64, counts[r], error, limit);
                free(a.a);
            }
            free(first.a);
            kernels_free(&k);
            task_close(&t);
        }
}

static void test_ranks(void **state)
{
    (void)state;
    for_each_context(train_on_ranks);
}

/* Half precision with several ranks: the same model, up to the effect of half precision on predictions. */
static void fast_ranks(mercer_context *with, const char *name)
{
    if (!strchr(name, ',')) return;
    for (int way = 9; way < WAYS; way++) {
        if (ways[way].on_samples) continue;
        task t = task_open(with, KERNEL, (sizes){1200, 600, 4, 2}, 1, MERCER_F32), on_cpu = t;
        on_cpu.context = context;
        mercer_train_options options = options_of(way);
        options.batch = 100, options.nystrom = 200, options.eigenpairs = 20, options.lambda = 1;
        kernels k = kernels_of(&t);
        dense right = train_as(&on_cpu, &options, 0, MERCER_F32, NULL);
        dense f = dense_times(false, false, k.xz, right);
        for (int ranks = 0; ranks <= 3; ranks++) {
            dense a = train_as(&t, &options, ranks, MERCER_F32, NULL), g = dense_times(false, false, k.xz, a);
            double error = dense_distance(f, g) / dense_norm(f);
            assert_that(error < 0.02, "%s, %s %s, %d ranks: predictions differ by %g of themselves", name,
                        ways[way].solver, ways[way].projector ? ways[way].projector : "", ranks, error);
            free(a.a), free(g.a);
        }
        free(right.a), free(f.a);
        kernels_free(&k);
        task_close(&t);
    }
}

static void test_fast_ranks(void **state)
{
    (void)state;
    for_each_context(fast_ranks);
}

/* ---- Stopping and resuming ----------------------------------------------------------------------------------- */

static char path[FOLDER_CHARS + 64];

typedef struct stopper {
    int64_t calls, stop_at; /* number of calls; call to stop at, 0: never */
} stopper;

static int count_calls(void *user, const mercer_progress *progress)
{
    stopper *self = user;
    if (progress->phase) return 0; /* set-up, which a resumed run repeats */
    return ++self->calls == self->stop_at;
}

/* Trains from the start, or from the checkpoint if `resume`, until call number `stop_at`. Counts the calls in
   *calls. */
static dense run_until(const task *self, mercer_train_options options, bool resume, int64_t stop_at, int64_t *calls)
{
    mercer_context *with = self->context;
    stopper watch = {.stop_at = stop_at};
    mercer_model *model;
    mercer_source source;
    mercer_trainer *trainer;
    options.progress = count_calls, options.progress_user = &watch, options.progress_seconds = 1e-9;
    options.checkpoint = stop_at > 0 ? path : NULL;
    if (resume)
        assert_succeeds(with, mercer_model_load(&model, with, NULL, path));
    else
        assert_succeeds(with,
                        mercer_model_create(&model, with, NULL, &self->kernel, &self->z, self->y.cols, self->x.dtype));
    assert_succeeds(with, source_from_matrices(&source, with, &self->x, &self->y, self->weights, self->seed));
    assert_succeeds(with, mercer_trainer_create(&trainer, model, NULL, &options));
    if (resume) assert_succeeds(with, mercer_trainer_resume(trainer, path));
    assert_succeeds(with, mercer_trainer_fit(trainer, &source, NULL));
    mercer_matrix weights = model_info(model).weights;
    dense out = dense_of(&weights);
    if (calls) *calls = watch.calls;
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
    return out;
}

static void stop_and_go(mercer_context *with, const char *name)
{
    int first_way = 1 + (SANITIZED && strcmp(name, "cpu") == 0); /* direct restarts from the beginning */
    for (int way = first_way; way < WAYS; way += SANITIZED ? 2 : 1) {
        mercer_dtype real = way % 2 ? MERCER_F32 : MERCER_F64;
        task t = task_open(with, KERNEL, (sizes){200, ways[way].on_samples ? 0 : 140, 4, 2}, 1, real);
        mercer_train_options options = options_of(way);
        if (options.batch > 0) options.batch = 20;
        int64_t calls = 0;
        dense whole = run_until(&t, options, false, 0, &calls);
        for (int part = 1; part <= 3; part++) {
            int64_t at = calls * part / 4;
            if (at == 0) continue;
            dense some = run_until(&t, options, false, at, NULL), rest = run_until(&t, options, true, 0, NULL);
            assert_that(dense_distance(whole, rest) == 0, "%s, %s %s stopped at %lld of %lld: other weights, by %g",
                        name, ways[way].solver, ways[way].projector ? ways[way].projector : "", (long long)at,
                        (long long)calls, dense_distance(whole, rest));
            free(some.a), free(rest.a);
        }
        free(whole.a);
        task_close(&t);
    }
    remove(path);
}

static void test_resume(void **state)
{
    (void)state;
    folder_open();
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    for_each_context(stop_and_go);
    folder_close();
}

/* ---- Memory -------------------------------------------------------------------------------------------------- */

/* Each training run has its own context: scratch memory that an earlier run left allocated would not be counted. */
static void measure(mercer_context *unused, const char *name)
{
    static const sizes grid[] = {{2000, 300, 20, 3}, {3000, 800, 10, 10}, {500, 1000, 300, 2}};
    (void)unused;
    if (SANITIZED || strcmp(name, "reference") == 0) return; /* slow, and host memory like the CPU's */
    for (int g = 0; g < 3; g++)
        for (int way = g; way < WAYS; way += 3) {
            mercer_context *with = context_like(name);
            sizes of = grid[g];
            if (ways[way].on_samples) of.n = 500, of.p = 0;
            task t = task_open(with, "laplace:bandwidth=4", of, 1, MERCER_F32);
            mercer_train_options options = options_for(ways[way].solver);
            options.projector = ways[way].projector, options.epochs = 2, options.memory = (int64_t)1 << 30;
            mercer_report report;
            dense a = train_as(&t, &options, 0, MERCER_F32, &report);
            assert_that(report.peak_bytes <= report.plan->bytes, "%s, %s %s, p %lld: held %lld bytes, planned %lld",
                        name, ways[way].solver, report.plan->projector, (long long)of.p, (long long)report.peak_bytes,
                        (long long)report.plan->bytes);
            assert_true(report.plan->bytes <= options.memory);
            free(a.a);
            task_close(&t);
            mercer_context_free(with);
        }
}

static void test_memory(void **state)
{
    (void)state;
    for_each_context(measure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_sources),    cmocka_unit_test(test_augmented),
        cmocka_unit_test(test_ranks),     cmocka_unit_test(test_fast_ranks), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
